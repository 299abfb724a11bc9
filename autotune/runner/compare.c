/*
 * Implements compare.h. The error bounds are derived as follows.
 *
 * Logits are correct if their relative L2 distance to the f32 reference is at most E =
 * MGL_BENCH_ERROR, in every compared sequence and step.
 *
 * A token is correct if its f32 logit is near the largest one. The allowed distance follows from E.
 * Let r be the V logits of the reference, l = r + d those of the machine, m the reference's choice,
 * i the machine's. Since l_i >= l_m,
 *
 *     r_m - r_i = (l_m - d_m) - (l_i - d_i) <= d_i - d_m,
 *
 * and |d_i| + |d_m| <= sqrt(2) |d| <= sqrt(2) E |r|. This bound holds for any d, and is too weak,
 * because it allows the whole error in two elements. Rounding errors are spread: d is a product of
 * the head's rows with an error of its input, plus rounding of its own. So its elements resemble
 * independent normal values with standard deviation s = |d| / sqrt(V) <= E |r| / sqrt(V), and d_i -
 * d_m resembles one with sqrt(2) s. The machine selects the largest of V elements, so a difference
 * above z sqrt(2) s has a probability of at most V exp(-z^2 / 2). With z = sqrt(2 ln(V / p)) this
 * is p, here 1e-9 a token. The allowed distance is the smaller of the two bounds:
 *
 *     min(sqrt(2) E |r|, sqrt(2 ln(V / p)) sqrt(2) E |r| / sqrt(V)).
 *
 * For 128,256 logits this is 0.23 of their root mean square. The token of a wrong program, which
 * resembles a random one, is 4.5 below the largest.
 */
#include "autotune/runner/compare.h"

#include "base/format.h"
#include "eval/bench.h"

#include <math.h>
#include <string.h>

static const double token_chance = 1e-9; /* p above */

/* ---- words ----------------------------------------------------------------------------------- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Whether the value is the fill pattern of outputs before a launch (eval/paired_bench.h): a
 * signaling NaN, which no arithmetic produces, or bytes of 0xA5. */
static bool is_unwritten(float value)
{
    uint32_t bits = bits_of(value);
    bool nan = (bits & 0x7F800000u) == 0x7F800000u && (bits & 0x007FFFFFu);
    return bits == 0xA5A5A5A5u || (nan && !(bits & 0x00400000u));
}

int mgl_compare_words(const void *a, const void *b, size_t count)
{
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < count; i++)
        if (memcmp(x + 4 * i, y + 4 * i, 4) != 0)
            return (int)i;
    return -1;
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* Statistics of a wrong vector of logits. An element is bad if its error exceeds the bound for
 * elements of a correct vector, by the normal model above. */
struct damage {
    int bad, first, last; /* number, first and last index of bad elements */
    int stride;           /* greatest common divisor of their index distances; 0: fewer than two */
    double largest;       /* absolute error */
    double relative;      /* largest error relative to the reference element */
    bool zero;            /* all computed values are 0 */
    double factor;        /* best-fitting constant factor */
    double rest;          /* relative L2 error that remains after this factor */
};

static int divisor(int a, int b)
{
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void note_bad(struct damage *of, int i)
{
    if (of->bad == 0)
        of->first = i;
    else
        of->stride = divisor(i - of->last, of->stride);
    of->last = i;
    of->bad++;
}

/* Least-squares fit of a factor c, minimizing |l - c r|, and its remaining error. */
static void fit_factor(const float *l, const float *r, int vocab, struct damage *of)
{
    double lr = 0, rr = 0, rest = 0;
    for (int i = 0; i < vocab; i++) {
        lr += (double)l[i] * (double)r[i];
        rr += (double)r[i] * (double)r[i];
    }
    of->factor = rr > 0 ? lr / rr : 0;
    for (int i = 0; i < vocab; i++) {
        double d = (double)l[i] - of->factor * (double)r[i];
        rest += d * d;
    }
    of->rest = sqrt(rest / rr) / fmax(fabs(of->factor), 1e-30);
}

static struct damage look_at(const float *l, const float *r, int vocab, double norm)
{
    struct damage of = {.zero = true};
    double room = mgl_compare_room(norm, vocab) / sqrt(2);
    for (int i = 0; i < vocab; i++) {
        double d = fabs((double)l[i] - (double)r[i]);
        of.zero &= l[i] == 0;
        of.largest = fmax(of.largest, d);
        if (r[i] != 0)
            of.relative = fmax(of.relative, d / fabs((double)r[i]));
        if (d > room)
            note_bad(&of, i);
    }
    fit_factor(l, r, vocab, &of);
    return of;
}

/* Whether at least 90 % of `count` elements are bad. */
static bool is_most(int bad, int count)
{
    return 10 * (int64_t)bad >= 9 * (int64_t)count;
}

static void describe(const struct damage *of, int vocab, char *to, size_t size)
{
    int span = of->last - of->first + 1;
    if (of->zero)
        mgl_format_into(to, size, "all zero");
    else if (of->rest <= MGL_BENCH_ERROR)
        mgl_format_into(to, size, "a constant factor of %.3g", of->factor);
    else if (of->bad == 0)
        mgl_format_into(to, size, "small errors everywhere");
    else if (of->first / MGL_ROW_GROUP == of->last / MGL_ROW_GROUP)
        mgl_format_into(to, size, "one row group");
    else if (of->stride > 1 && is_most(of->bad, span / of->stride + 1))
        mgl_format_into(to, size, "every %d-th", of->stride);
    else if (is_most(of->bad, vocab))
        mgl_format_into(to, size, "all of them");
    else if (of->first > 0 && is_most(of->bad, vocab - of->first))
        mgl_format_into(to, size, "the tail only");
    else if (is_most(of->bad, span))
        mgl_format_into(to, size, "one run, up to %d", of->last);
    else
        mgl_format_into(to, size, "scattered");
}

/* ---- logits ---------------------------------------------------------------------------------- */

static void name_place(const mgl_compare_place *at, char *to, size_t size)
{
    mgl_format_into(to, size, "batch %d, context %d, sequence %d, step %d", at->workload.batch,
                    at->workload.context, at->sequence, at->step);
}

/* Returns the first element for which `is` holds, and the number of such elements; -1: none. */
static int find(const float *values, int count, bool (*is)(float value), int *many)
{
    int first = -1;
    *many = 0;
    for (int i = count - 1; i >= 0; i--)
        if (is(values[i])) {
            first = i;
            ++*many;
        }
    return first;
}

static bool is_no_number(float value)
{
    return !isfinite(value);
}

static double norm_of(const float *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum);
}

static double distance(const float *a, const float *b, int count, double norm)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sqrt(sum) / norm;
}

void mgl_compare_logits(const mgl_compare_place *at, const float *logits, const float *wanted,
                        int vocab, double *error, mgl_trial_verdict *verdict)
{
    char place[100], pattern[48];
    int many;
    *error = -1;
    name_place(at, place, sizeof place);
    int first = find(logits, vocab, is_unwritten, &many);
    const bool written = first < 0;
    if (written)
        first = find(logits, vocab, is_no_number, &many);
    if (first >= 0) {
        mgl_trial_verdict_set(verdict, written ? MGL_OUTCOME_NONFINITE : MGL_OUTCOME_UNWRITTEN,
                              "%s: %s, first logit %d, %.3g %% of them", place,
                              written ? "not a number" : "left unwritten", first,
                              100.0 * many / vocab);
        return;
    }
    double norm = norm_of(wanted, vocab);
    *error = distance(logits, wanted, vocab, norm);
    if (*error <= MGL_BENCH_ERROR) { /* false for NaN */
        *verdict = (mgl_trial_verdict){.outcome = MGL_OUTCOME_OK};
        return;
    }
    struct damage of = look_at(logits, wanted, vocab, norm);
    describe(&of, vocab, pattern, sizeof pattern);
    mgl_trial_verdict_set(
        verdict, MGL_OUTCOME_MISMATCH,
        "%s: relative L2 %.3g of at most %g; largest error %.3g (relative %.3g), first "
        "bad logit %d, %.3g %% bad: %s",
        place, *error, MGL_BENCH_ERROR, of.largest, of.relative, of.first, 100.0 * of.bad / vocab,
        pattern);
}

void mgl_compare_pattern(const float *values, const float *wanted, int count, char *to, size_t size)
{
    struct damage of = look_at(values, wanted, count, norm_of(wanted, count));
    describe(&of, count, to, size);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

double mgl_compare_room(double norm, int vocab)
{
    double any = sqrt(2) * MGL_BENCH_ERROR * norm;
    double z = sqrt(2 * log((double)vocab / token_chance));
    return fmin(any, any * z / sqrt((double)vocab));
}

bool mgl_compare_known(mgl_workload workload, int tokens, const int32_t *made, int vocab,
                       mgl_trial_verdict *verdict)
{
    for (int i = 0; i < workload.batch * tokens; i++)
        if (made[i] < 0 || made[i] >= vocab) {
            mgl_compare_place at = {workload, i / tokens, i % tokens};
            char place[100];
            name_place(&at, place, sizeof place);
            mgl_trial_verdict_set(verdict, MGL_OUTCOME_SEMANTIC,
                                  "%s: token %d is none of the %d of the vocabulary", place,
                                  (int)made[i], vocab);
            return false;
        }
    return true;
}

int mgl_compare_tokens(mgl_workload workload, int tokens, const int32_t *made,
                       const mgl_compare_reference *reference, int vocab,
                       mgl_trial_verdict *verdict)
{
    char place[100];
    for (int step = 0; step < tokens; step++)
        for (int s = 0; s < workload.batch; s++) {
            int i = s * tokens + step;
            double below = (double)reference->largest[i] - (double)reference->chosen[i];
            double room = mgl_compare_room((double)reference->norms[i], vocab);
            if (below <= room)
                continue;
            mgl_compare_place at = {workload, s, step};
            name_place(&at, place, sizeof place);
            mgl_trial_verdict_set(
                verdict, MGL_OUTCOME_SEMANTIC,
                "%s: the f32 logit of token %d is %.3g below the largest; at most %.3g "
                "is allowed",
                place, (int)made[i], below, room);
            return i;
        }
    return -1;
}
