/*
 * Where an epoch starts decides which positions a split of attention sums up. The sums differ in
 * their last bits, and where a value is stored in 16 bits these bits decide now and then which way
 * it is rounded. From there on the two ways differ by spacings of the 16-bit format, and all that
 * is rounded behind is rounded apart. So what is allowed is counted in roundings:
 *
 * - A value of p significant bits is within half a spacing, 2^-p, of what was rounded. Errors are
 *   even over the spacing, and significands are as dense as 1 / x (Benford): then the root mean
 *   square is 2^-p sqrt(2 ln 2) / 3, or 0.39 x 2^-p, of the values' own. Two ways: sqrt(2) of that.
 * - A product with random weights keeps that ratio; a norm and a residual do not raise it. Errors
 *   of R roundings are independent: sqrt(R) (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019).
 * - A logit of the fixture's models deviates by at most 1.5: weights are even in +-2.5 / sqrt(n) of
 *   n normed inputs. A score is a logit less the mean of all by their probabilities: sqrt(2).
 * - Of some twenty scores none is beyond three standard deviations.
 *
 * What is not stored in 16 bits is computed with 16 significant bits or more: tensor cores take f32
 * in two parts of 8 bits each, and sums of 2^14 terms in f32 in another order are as near.
 */
#include "tests/vm/cuda/rounding.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

enum { BF16_BITS = 8, F16_BITS = 11, ARITHMETIC_BITS = 16 };

/* Computed of a layer: q, k and v; scores; their weights; o; gate and up; down. */
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
                          products * computed * computed; /* of the ratio of one way */
    return deviations * logit * sqrt(2.0) * sqrt(2.0 * square);
}
