/*
 * Derives the error bound for scores that differ only by the order of sums. The start of an epoch
 * determines which positions each split of attention sums. The sums differ in their last bits, and
 * these bits sometimes change how a value is rounded to 16 bits. From there on the two results
 * differ by spacings of the 16-bit format, and later values are rounded differently. The bound
 * therefore counts roundings:
 *
 * - A value with p significant bits is within half a spacing, 2^-p, of the exact value. Errors are
 *   uniform over the spacing, and significands have the density 1 / x (Benford): the root mean
 *   square error is then 2^-p sqrt(2 ln 2) / 3, or 0.39 x 2^-p, of the values' own. For the
 *   difference of two results: sqrt(2) times that.
 * - A product with random weights keeps this ratio; a norm and a residual do not raise it. Errors
 *   of R roundings are independent: sqrt(R) (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019).
 * - A logit of the fixture's models has a standard deviation of at most 1.5: weights are uniform in
 *   +-2.5 / sqrt(n) for n normalized inputs. A score is a logit minus the mean of all, weighted by
 *   their probabilities: sqrt(2).
 * - Of about twenty scores none is beyond three standard deviations.
 *
 * Values that are not stored in 16 bits are computed with 16 significant bits or more: tensor cores
 * split f32 into two parts of 8 bits each, and f32 sums of 2^14 terms in another order are as
 * close.
 */
#include "tests/vm/cuda/rounding.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

enum { BF16_BITS = 8, F16_BITS = 11, ARITHMETIC_BITS = 16 };

/* Roundings of a layer: q, k and v; scores; their weights; o; gate and up; down. */
enum { LAYER_PRODUCTS = 6 };

/* Whether a row has the buffer's value before its first attention. */
static bool is_before_attention(const mgl_buffer *buffer)
{
    static const char *const names[] = {"l0.x", "k0", "v0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(buffer->name, names[i]))
            return true;
    return false;
}

int rounding_count(const mgl_program *program, rounding_kin kin)
{
    int count = 0;
    for (int i = 0; i < program->buffer_count; i++) {
        const mgl_buffer *b = &program->buffers[i];
        if ((b->space == MGL_SPACE_ACT || b->space == MGL_SPACE_KV) &&
            mgl_dtype_size(b->dtype) == 2 && !(kin == SAME_MACHINE && is_before_attention(b)))
            count++;
    }
    return count;
}

double rounding_of_scores(const mgl_program *program, rounding_kin kin)
{
    const double ratio = sqrt(2.0 * log(2.0)) / 3.0, logit = 1.5, deviations = 3.0;
    const int bits = program->exchange_dtype == MGL_F16 ? F16_BITS : BF16_BITS;
    const double rounded = ldexp(ratio, -bits), computed = ldexp(ratio, -ARITHMETIC_BITS);
    const int products = LAYER_PRODUCTS * program->geometry.layers + 1;
    const double square = rounding_count(program, kin) * rounded * rounded +
                          products * computed * computed; /* of the error ratio of one result */
    return deviations * logit * sqrt(2.0) * sqrt(2.0 * square);
}
