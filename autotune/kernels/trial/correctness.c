/* Implements correctness.h: dependence levels by a fixed-point iteration, element checks, error
 * norms. */
#include "autotune/kernels/trial/correctness.h"

#include "autotune/runner/compare.h"
#include "base/format.h"
#include "base/memory.h"
#include "eval/paired_bench.h"

#include <math.h>
#include <string.h>

static const double incumbent_times = 4; /* allowed error / the incumbent's error */
static const double bias_share = 0.25;   /* allowed mean signed error / tolerance */
static const double element_times = 2;   /* allowed element error / (tolerance * root mean
                                          * square) */
static const double rounded = 0x1p-8;    /* minimum tolerance of f32 values computed through 16
                                          * bits */
static const double tiny = 1e-30;        /* smallest divisor, against division by zero */

/* ---- levels ---------------------------------------------------------------------------------- */

bool mgl_correctness_is_task(const mgl_task *task, const mgl_kernel_unit *unit)
{
    const bool family = mgl_op_get(task->op)->family == mgl_op_get(unit->op)->family;
    if (mgl_kernel_unit_is_own(unit))
        return task->op == unit->op;
    return family && task->variant == unit->variant;
}

bool mgl_correctness_may_run(const mgl_task *task, const mgl_kernel_unit *unit)
{
    const mgl_family family = mgl_op_get(unit->op)->family;
    if (mgl_kernel_unit_is_own(unit) && family != MGL_FAMILY_ATTENTION)
        return task->op == unit->op;
    return mgl_op_get(task->op)->family == family;
}

static bool is_half(const mgl_buffer *b)
{
    return mgl_dtype_size(b->dtype) == 2;
}

/* The lowest level that the task's outputs can have. */
static mgl_correctness_level level_of(const mgl_program *program, const mgl_task *task,
                                      const mgl_kernel_unit *unit,
                                      const mgl_correctness_level *levels)
{
    mgl_correctness_level level =
        mgl_correctness_may_run(task, unit) ? MGL_CORRECTNESS_RESULT : MGL_CORRECTNESS_APART;
    for (int i = task->in.first; i < task->in.first + task->in.count; i++) {
        const int b = program->regions[i].buffer;
        mgl_correctness_level of = levels[b];
        if (of != MGL_CORRECTNESS_APART && is_half(&program->buffers[b]))
            of = MGL_CORRECTNESS_ROUNDED;
        level = of > level ? of : level;
    }
    return level;
}

/* Raises the levels of the buffers that the list's tasks write; returns whether a level changed. */
static bool raise_levels(const mgl_program *list, const mgl_kernel_unit *unit,
                         mgl_correctness_level *levels)
{
    bool changed = false;
    for (int t = 0; t < list->task_count; t++) {
        const mgl_task *task = &list->tasks[t];
        const mgl_correctness_level level = level_of(list, task, unit, levels);
        for (int i = task->out.first; i < task->out.first + task->out.count; i++) {
            const int b = list->regions[i].buffer;
            changed |= level > levels[b];
            levels[b] = level > levels[b] ? level : levels[b];
        }
    }
    return changed;
}

int mgl_correctness_levels(const mgl_program *program, const mgl_kernel_unit *unit,
                           mgl_correctness_level *levels)
{
    int tasks = 0;
    for (int b = 0; b < mgl_program_whole(program)->buffer_count; b++)
        levels[b] = MGL_CORRECTNESS_APART;
    for (const mgl_program *list = program; list; list = list->second)
        for (int t = 0; t < list->task_count; t++)
            tasks += mgl_correctness_is_task(&list->tasks[t], unit);
    for (bool changed = true; changed;) {
        changed = false;
        for (const mgl_program *list = program; list; list = list->second)
            changed |= raise_levels(list, unit, levels);
    }
    return tasks;
}

static bool stands_in(const mgl_program *p, mgl_run run, int buffer)
{
    for (int i = run.first; i < run.first + run.count; i++)
        if (p->regions[i].buffer == buffer)
            return true;
    return false;
}

/* Whether a task that may run the unit's code reads the buffer. */
static bool reads(const mgl_correctness *correctness, int buffer)
{
    for (const mgl_program *p = correctness->program; p; p = p->second)
        for (int t = 0; t < p->task_count; t++)
            if (mgl_correctness_may_run(&p->tasks[t], correctness->unit) &&
                stands_in(p, p->tasks[t].in, buffer))
                return true;
    return false;
}

/* Whether only tasks of the op write the buffer. */
static bool is_own_output(const mgl_correctness *correctness, int buffer)
{
    int own = 0, others = 0;
    for (const mgl_program *p = correctness->program; p; p = p->second)
        for (int t = 0; t < p->task_count; t++) {
            const mgl_task *task = &p->tasks[t];
            const bool writes = task->op != MGL_OP_CLEAR && stands_in(p, task->out, buffer);
            own += writes && mgl_correctness_is_task(task, correctness->unit);
            others += writes && !mgl_correctness_is_task(task, correctness->unit);
        }
    return own > 0 && others == 0;
}

/* ---- one buffer ------------------------------------------------------------------------------ */

/* State of the check of one buffer; the offset `at` is relative to each memory image. */
struct look {
    const mgl_correctness *correctness;
    const mgl_correctness_shots *shots;
    const mgl_buffer *b;
    int buffer;
    size_t at, size, count;                   /* offset in bytes; bytes per element; elements */
    float *candidate, *incumbent, *reference; /* (written) */
    size_t written;
    mgl_correctness_result *out;
    mgl_trial_verdict verdict;
};

static const unsigned char *element(const struct look *l, const mgl_correctness_shot *shot,
                                    size_t i)
{
    return shot->memory + l->at + i * l->size;
}

static bool are_same(const struct look *l, const mgl_correctness_shot *a,
                     const mgl_correctness_shot *b, size_t i)
{
    return !memcmp(element(l, a, i), element(l, b, i), l->size);
}

static bool is_ones(const struct look *l, const mgl_correctness_shot *shot, size_t i)
{
    static const unsigned char ones[4] = {255, 255, 255, 255};
    return !memcmp(element(l, shot, i), ones, l->size);
}

/* Whether a program wrote the element: its first two launches agree, although their memory was
 * poisoned with different patterns. Flagged buffers are not poisoned but initialized to all ones.
 */
static bool is_written(const struct look *l, const mgl_correctness_shot *shots, size_t i)
{
    return are_same(l, &shots[0], &shots[1], i) && !(l->b->sets > 1 && is_ones(l, shots, i));
}

static float value_of(const struct look *l, const mgl_correctness_shot *shot, size_t i)
{
    float value;
    mgl_convert(&value, MGL_F32, element(l, shot, i), l->b->dtype, 1);
    return value;
}

/* Partial results of empty splits are infinite in every correct kernel. */
static bool is_number(const struct look *l, const mgl_correctness_shot *shot, size_t i)
{
    return isfinite(value_of(l, shot, i));
}

static void fail(struct look *l, mgl_outcome outcome, size_t first, const char *what)
{
    mgl_trial_verdict_set(&l->verdict, outcome, "buffer %s, element %zu of %zu: %s", l->b->name,
                          first, l->count, what);
}

/* Checks an element independently of its expected value; MGL_OUTCOME_OK: no fault. */
static mgl_outcome look_at(const struct look *l, size_t i)
{
    const mgl_correctness_shot *inc = l->shots->incumbent, *cand = l->shots->candidate;
    const bool wanted = is_written(l, inc, i), has = is_written(l, cand, i);
    if (!wanted)
        return has && is_number(l, cand, i) ? MGL_OUTCOME_OOB_WRITE : MGL_OUTCOME_OK;
    if (l->b->sets > 1 ? is_ones(l, cand, i)
                       /* still the poison pattern of its launch */
                       : !has && are_same(l, &cand[0], &cand[2], i))
        return MGL_OUTCOME_UNWRITTEN;
    if (!has || !are_same(l, &cand[0], &cand[2], i))
        return MGL_OUTCOME_NONDETERMINISTIC;
    if (is_number(l, inc, i))
        return is_number(l, cand, i) ? MGL_OUTCOME_OK : MGL_OUTCOME_NONFINITE;
    return are_same(l, inc, cand, i) ? MGL_OUTCOME_OK : MGL_OUTCOME_MISMATCH;
}

static void look_at_elements(struct look *l)
{
    static const char *const what[MGL_OUTCOME_COUNT] = {
        [MGL_OUTCOME_OOB_WRITE] = "written, and no task of the op writes there",
        [MGL_OUTCOME_UNWRITTEN] = "left unwritten",
        [MGL_OUTCOME_NONDETERMINISTIC] = "three launches on the same inputs differ",
        [MGL_OUTCOME_NONFINITE] = "not a number",
        [MGL_OUTCOME_MISMATCH] = "a value where the incumbent has an infinity"};
    for (size_t i = 0; i < l->count; i++) {
        const mgl_outcome outcome = look_at(l, i);
        if (outcome != MGL_OUTCOME_OK) {
            fail(l, outcome, i, what[outcome]);
            return;
        }
    }
}

/* Buffers that do not depend on the op's results must be unchanged, bit by bit. */
static void look_at_bits(struct look *l)
{
    const mgl_correctness_shot *inc = l->shots->incumbent, *cand = l->shots->candidate;
    const bool input = reads(l->correctness, l->buffer);
    if (l->count && !memcmp(element(l, inc, 0), element(l, cand, 0), l->count * l->size))
        return;
    for (size_t i = 0; i < l->count; i++)
        if (is_written(l, inc, i) && !are_same(l, inc, cand, i)) {
            fail(l, input ? MGL_OUTCOME_INPUT_MUTATED : MGL_OUTCOME_OOB_WRITE, i,
                 input ? "an input of the op was changed" : "changed, and is no output of the op");
            return;
        }
}

/* ---- values ---------------------------------------------------------------------------------- */

static double tolerance_of(const struct look *l)
{
    const mgl_correctness *e = l->correctness;
    if (l->b->dtype == MGL_BF16)
        return e->tolerance_bf16;
    if (l->b->dtype == MGL_F16)
        return e->tolerance_f16;
    return l->correctness->levels[l->buffer] == MGL_CORRECTNESS_ROUNDED ? rounded
                                                                        : e->tolerance_f32;
}

/* Each machine has its own layout of the cache, so cache values are compared with the
 * incumbent's. */
static bool has_reference(const struct look *l)
{
    return l->b->space != MGL_SPACE_KV;
}

static bool gather(struct look *l)
{
    const size_t bytes = l->count * sizeof *l->candidate;
    l->candidate = mgl_alloc(bytes);
    l->incumbent = mgl_alloc(bytes);
    l->reference = mgl_alloc(bytes);
    if (!l->candidate || !l->incumbent || !l->reference)
        return false;
    for (size_t i = 0; i < l->count; i++) {
        if (!is_written(l, l->shots->incumbent, i) || !is_number(l, l->shots->incumbent, i))
            continue;
        const size_t to = l->written++;
        l->candidate[to] = value_of(l, l->shots->candidate, i);
        l->incumbent[to] = value_of(l, l->shots->incumbent, i);
        l->reference[to] =
            has_reference(l) ? value_of(l, &l->shots->reference, i) : l->incumbent[to];
    }
    return true;
}

/* Distance of values from the reference. */
struct distance {
    double error; /* relative L2 */
    double bias;  /* sum of errors signed away from zero, divided by the sum of absolute values */
    double most;  /* largest absolute error / root mean square */
};

static struct distance measure(const float *values, const float *reference, size_t count)
{
    double squares = 0, norm = 0, sign = 0, sum = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        const double r = (double)reference[i], d = (double)values[i] - r;
        squares += d * d;
        norm += r * r;
        sign += r < 0 ? -d : d;
        sum += fabs(r);
        most = fmax(most, fabs(d));
    }
    const double root = sqrt(norm / (double)count);
    return (struct distance){sqrt(squares) / fmax(sqrt(norm), tiny), sign / fmax(sum, tiny),
                             most / fmax(root, tiny)};
}

static void fail_values(struct look *l, const char *what, double is, double most)
{
    char pattern[64];
    const char *dtype = mgl_dtype_name(l->b->dtype);
    mgl_compare_pattern(l->candidate, l->reference, (int)l->written, pattern, sizeof pattern);
    mgl_trial_verdict_set(&l->verdict, MGL_OUTCOME_MISMATCH,
                          "buffer %s (%s, %zu values): %s %.3g, at most %.3g: %s", l->b->name,
                          dtype, l->written, what, is, most, pattern);
}

static void compare_values(struct look *l)
{
    const double tolerance = tolerance_of(l);
    const struct distance c = measure(l->candidate, l->reference, l->written);
    const struct distance i = measure(l->incumbent, l->reference, l->written);
    const double error = fmax(tolerance, incumbent_times * i.error);
    const double bias = fmax(bias_share * tolerance, incumbent_times * fabs(i.bias));
    const double most = fmax(element_times * tolerance, incumbent_times * i.most);
    if (c.error > l->out->error) {
        l->out->error = c.error;
        l->out->incumbent_error = i.error;
    }
    l->out->bias = fmax(l->out->bias, fabs(c.bias));
    if (!(c.error <= error))
        fail_values(l, "relative L2", c.error, error);
    else if (!(fabs(c.bias) <= bias))
        fail_values(l, "mean signed error", c.bias, bias);
    else if (!(c.most <= most))
        fail_values(l, "largest error, in root mean squares,", c.most, most);
}

static bool has_values(const mgl_buffer *b)
{
    return b->dtype == MGL_F32 || b->dtype == MGL_BF16 || b->dtype == MGL_F16;
}

static mgl_status look_at_buffer(struct look *l, mgl_error *err)
{
    bool room = true;
    look_at_elements(l);
    if (l->verdict.outcome == MGL_OUTCOME_OK &&
        l->correctness->levels[l->buffer] == MGL_CORRECTNESS_APART)
        look_at_bits(l);
    else if (l->verdict.outcome == MGL_OUTCOME_OK)
        room = gather(l);
    if (room && l->verdict.outcome == MGL_OUTCOME_OK && l->written > 0)
        compare_values(l);
    mgl_free(l->candidate);
    mgl_free(l->incumbent);
    mgl_free(l->reference);
    return room ? MGL_OK : mgl_fail_memory(err, l->count * sizeof *l->candidate);
}

/* ---- all buffers ----------------------------------------------------------------------------- */

/* Order in which faults are reported: root causes first. With the same outcome, the op's own
 * outputs come before buffers computed from them. */
static int rank_of(mgl_outcome outcome, bool own)
{
    static const mgl_outcome order[] = {MGL_OUTCOME_INPUT_MUTATED,    MGL_OUTCOME_UNWRITTEN,
                                        MGL_OUTCOME_NONDETERMINISTIC, MGL_OUTCOME_OOB_WRITE,
                                        MGL_OUTCOME_NONFINITE,        MGL_OUTCOME_MISMATCH};
    int rank = 0;
    while (rank < (int)(sizeof order / sizeof *order) && order[rank] != outcome)
        rank++;
    return 2 * rank + !own;
}

static void look_at_tokens(const mgl_correctness *correctness, const mgl_correctness_shots *s,
                           mgl_trial_verdict *verdict)
{
    for (int row = 0; row < s->batch && verdict->outcome == MGL_OUTCOME_OK; row++) {
        const int32_t made = s->candidate[0].tokens[row];
        for (int k = 1; k < MGL_CORRECTNESS_CANDIDATES && verdict->outcome == MGL_OUTCOME_OK; k++)
            if (s->candidate[k].tokens[row] != made) {
                mgl_trial_verdict_set(verdict, MGL_OUTCOME_NONDETERMINISTIC,
                                      "sequence %d: token %d, then %d", row, (int)made,
                                      (int)s->candidate[k].tokens[row]);
            }
        if (verdict->outcome == MGL_OUTCOME_OK && correctness->exact_tokens &&
            made != s->incumbent[0].tokens[row]) {
            mgl_trial_verdict_set(verdict, MGL_OUTCOME_SEMANTIC,
                                  "sequence %d: token %d of equal logits, the incumbent's is %d",
                                  row, (int)made, (int)s->incumbent[0].tokens[row]);
        }
    }
}

static mgl_status look_at_buffers(const mgl_correctness *correctness,
                                  const mgl_correctness_shots *shots, mgl_correctness_result *out,
                                  mgl_trial_verdict *verdict, mgl_error *err)
{
    const mgl_program *p = mgl_program_whole(correctness->program);
    size_t at = 0;
    int rank = rank_of(MGL_OUTCOME_OK, true);
    mgl_status status = MGL_OK;
    for (int b = 0; b < p->buffer_count && !status; b++) {
        const mgl_buffer *buffer = &p->buffers[b];
        if (!mgl_paired_bench_keeps(buffer))
            continue;
        struct look l = {.correctness = correctness,
                         .shots = shots,
                         .b = buffer,
                         .buffer = b,
                         .at = at,
                         .size = mgl_dtype_size(buffer->dtype),
                         .out = out};
        l.count = mgl_vm_buffer_bytes(buffer) / l.size;
        at += mgl_vm_buffer_bytes(buffer);
        if (has_values(buffer))
            status = look_at_buffer(&l, err);
        const int of = rank_of(l.verdict.outcome, is_own_output(correctness, b));
        if (l.verdict.outcome != MGL_OUTCOME_OK && of < rank) {
            rank = of;
            *verdict = l.verdict;
        }
    }
    return status;
}

mgl_status mgl_correctness_compare(const mgl_correctness *correctness,
                                   const mgl_correctness_shots *shots, mgl_correctness_result *out,
                                   mgl_trial_verdict *verdict, mgl_error *err)
{
    *verdict = (mgl_trial_verdict){.outcome = MGL_OUTCOME_OK};
    for (int k = 0; k < MGL_CORRECTNESS_CANDIDATES; k++)
        if (memcmp(shots->candidate[k].constants, shots->incumbent[0].constants,
                   MGL_SHA256_BYTES) != 0) {
            mgl_trial_verdict_set(verdict, MGL_OUTCOME_INPUT_MUTATED,
                                  "weights or tables were changed by a launch");
            return MGL_OK;
        }
    mgl_status status = look_at_buffers(correctness, shots, out, verdict, err);
    if (!status)
        look_at_tokens(correctness, shots, verdict);
    return status;
}
