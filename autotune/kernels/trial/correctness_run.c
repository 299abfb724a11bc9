/*
 * Runs the correctness check of a candidate in one harness program. The worker launches the
 * incumbent and the candidate and returns memory images. The CPU machine computes the reference in
 * this process, which never runs a candidate. The comparison is in correctness.c; trial.c calls
 * mgl_trial_check_correctness.
 */
#include "autotune/kernels/trial/trial.h"

#include "base/format.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* State of one correctness check. */
struct correctness_state {
    const mgl_harness_set *set;
    mgl_runner *runner;
    mgl_paired_bench *reference; /* the CPU machine */
    mgl_correctness correctness;
    mgl_correctness_level *levels;
    mgl_kernel_trial *out;
    const unsigned char *nonce;
};

/* Memory images of the incumbent, the candidate and the reference. */
enum { SHOTS = MGL_CORRECTNESS_INCUMBENTS + MGL_CORRECTNESS_CANDIDATES, REFERENCE = SHOTS };
struct shots {
    mgl_runner_memory of[SHOTS + 1];
};

static bool is_over(const struct correctness_state *c)
{
    return c->out->verdict.outcome != MGL_OUTCOME_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static mgl_status copy_program(const mgl_program *from, mgl_program **out, mgl_error *err)
{
    mgl_text text = {0};
    mgl_schedule_print(from, &text);
    mgl_status status = text.failed
                            ? mgl_fail_memory(err, MGL_SCHEDULE_MAX_TEXT)
                            : mgl_schedule_parse(text.bytes, text.length, "harness", out, err);
    mgl_text_clear(&text);
    return status;
}

static mgl_status open_reference(struct correctness_state *c, const mgl_trial_options *o,
                                 mgl_error *err)
{
    mgl_program *copy = NULL;
    mgl_paired_bench_facts facts;
    const mgl_paired_bench_options options = {
        .config = c->set->subject.config, .device = "cpu", .plain = true, .abort = o->abort};
    mgl_status status = mgl_paired_bench_open(&options, &c->reference, err);
    if (!status)
        status = copy_program(c->set->program.programs[0], &copy, err);
    if (!status) /* the callee owns the value, also if the call fails */
        status = mgl_paired_bench_set(c->reference, MGL_INCUMBENT, copy, &facts, err);
    return status;
}

static mgl_status open_correctness(struct correctness_state *c, const mgl_kernel_unit *unit,
                                   mgl_error *err)
{
    const mgl_program *program = c->set->program.programs[0];
    mgl_kernel_context context;
    mgl_status status = mgl_kernel_context_read(unit, &context, err);
    if (status)
        return status;
    const size_t buffers = (size_t)mgl_program_whole(program)->buffer_count;
    c->levels = mgl_alloc_zero(buffers, sizeof *c->levels);
    c->correctness = (mgl_correctness){.program = program,
                                       .unit = unit,
                                       .levels = c->levels,
                                       .tolerance_f32 = context.tolerance_f32,
                                       .tolerance_bf16 = context.tolerance_bf16,
                                       .tolerance_f16 = context.tolerance_f16};
    mgl_kernel_context_clear(&context);
    if (!c->levels)
        return mgl_fail_memory(err, buffers * sizeof *c->levels);
    mgl_correctness_levels(program, unit, c->levels);
    return MGL_OK;
}

/* ---- a case ---------------------------------------------------------------------------------- */

static uint64_t seed_of(const struct correctness_state *c, const mgl_runner_look *at)
{
    unsigned char bytes[MGL_SHA256_BYTES];
    mgl_sha256 hash;
    const int32_t numbers[] = {at->workload, (int32_t)at->kind};
    uint64_t seed;
    mgl_sha256_start(&hash);
    mgl_sha256_add(&hash, c->nonce, MGL_SHA256_BYTES);
    mgl_sha256_add(&hash, c->set->of->name, strlen(c->set->of->name));
    mgl_sha256_add(&hash, numbers, sizeof numbers);
    mgl_sha256_end(&hash, bytes);
    memcpy(&seed, bytes, sizeof seed);
    return seed;
}

static const mgl_workload *workload_of(const struct correctness_state *c, const mgl_runner_look *at)
{
    return &c->set->subject.workloads.list[at->workload];
}

static mgl_status look_at_reference(const struct correctness_state *c, const mgl_runner_look *at,
                                    mgl_runner_memory *out, mgl_error *err)
{
    double seconds;
    const mgl_paired_bench_load load = {.batch = workload_of(c, at)->batch,
                                        .context = workload_of(c, at)->context,
                                        .tokens = 1,
                                        .seed = at->seed,
                                        .kind = at->kind,
                                        .poison = true};
    out->length = mgl_paired_bench_side_bytes(c->reference, MGL_INCUMBENT);
    out->memory = mgl_alloc(out->length);
    if (!out->memory)
        return mgl_fail_memory(err, out->length);
    mgl_status status =
        mgl_paired_bench_run(c->reference, MGL_INCUMBENT, &load, out->tokens, &seconds, err);
    return status ? status
                  : mgl_paired_bench_get_memory(c->reference, MGL_INCUMBENT, out->memory,
                                                out->constants, err);
}

/* Adds the case to the diagnostic. */
static void name_case(const struct correctness_state *c, const mgl_runner_look *at,
                      const mgl_trial_verdict *found)
{
    mgl_trial_verdict_set(&c->out->verdict, found->outcome,
                          "%s values, batch %d, context %d, \"%s\": %s",
                          mgl_synthetic_kind_name(at->kind), workload_of(c, at)->batch,
                          workload_of(c, at)->context, c->set->of->name, found->diagnostic);
}

static mgl_status look_at_both(const struct correctness_state *c, const mgl_runner_look *at,
                               struct shots *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    mgl_trial_verdict found = {.outcome = MGL_OUTCOME_OK};
    for (int i = 0; i < SHOTS && !status && !found.outcome; i++) {
        const mgl_side side = i < MGL_CORRECTNESS_INCUMBENTS ? MGL_INCUMBENT : MGL_CANDIDATE;
        status = c->runner->look(c->runner, side, at, &s->of[i], &found, err);
    }
    if (!status && found.outcome)
        name_case(c, at, &found);
    return status;
}

static mgl_correctness_shot shot_of(const mgl_runner_memory *m)
{
    return (mgl_correctness_shot){m->memory, m->constants, m->tokens};
}

static mgl_status compare(const struct correctness_state *c, const mgl_runner_look *at,
                          const struct shots *s, mgl_error *err)
{
    mgl_correctness correctness = c->correctness;
    mgl_correctness_shots shots = {.batch = workload_of(c, at)->batch,
                                   .reference = shot_of(&s->of[REFERENCE])};
    mgl_trial_verdict found;
    for (int i = 0; i < MGL_CORRECTNESS_INCUMBENTS; i++)
        shots.incumbent[i] = shot_of(&s->of[i]);
    for (int i = 0; i < MGL_CORRECTNESS_CANDIDATES; i++)
        shots.candidate[i] = shot_of(&s->of[MGL_CORRECTNESS_INCUMBENTS + i]);
    for (int i = 0; i < SHOTS; i++)
        if (s->of[i].length != s->of[REFERENCE].length)
            return mgl_fail(err, MGL_DEVICE, "memory", "a worker told %zu bytes in place of %zu",
                            s->of[i].length, s->of[REFERENCE].length);
    correctness.exact_tokens = at->kind == MGL_SYNTHETIC_ZERO;
    mgl_status status =
        mgl_correctness_compare(&correctness, &shots, &c->out->correctness, &found, err);
    if (!status && found.outcome)
        name_case(c, at, &found);
    c->out->cases++;
    return status;
}

static mgl_status check_case(struct correctness_state *c, mgl_runner_look *at, mgl_error *err)
{
    struct shots s = {0};
    at->seed = seed_of(c, at);
    mgl_status status = look_at_both(c, at, &s, err);
    if (!status && !is_over(c))
        status = look_at_reference(c, at, &s.of[REFERENCE], err);
    if (!status && !is_over(c))
        status = compare(c, at, &s, err);
    for (int i = 0; i <= REFERENCE; i++)
        mgl_free(s.of[i].memory);
    return status;
}

/* Runs the workloads from last to first; the last has the most positions and rows. */
static mgl_status check_cases(struct correctness_state *c, const mgl_trial_options *o,
                              mgl_error *err)
{
    mgl_status status = MGL_OK;
    const int workloads = c->set->subject.workloads.count;
    const int count = workloads * MGL_SYNTHETIC_KIND_COUNT;
    int left = o->most_cases > 0 ? o->most_cases : count;
    for (int i = 0; i < count && left > 0 && !status && !is_over(c); i++) {
        mgl_runner_look at = {.workload = workloads - 1 - i / MGL_SYNTHETIC_KIND_COUNT,
                              .kind = (mgl_synthetic_kind)(i % MGL_SYNTHETIC_KIND_COUNT)};
        if (c->set->of->without >> at.kind & 1)
            continue;
        left--;
        status = mgl_check_abort(o->abort, err);
        if (!status)
            status = check_case(c, &at, err);
    }
    return status;
}

static mgl_status name_device(const struct correctness_state *c, mgl_error *err)
{
    mgl_runner_device device = {0};
    mgl_kernel_trial *out = c->out;
    mgl_status status = c->runner->get_device(c->runner, &device, err);
    memcpy(out->device, device.name, sizeof out->device);
    memcpy(out->driver, device.driver, sizeof out->driver);
    memcpy(out->uuid, device.uuid, sizeof out->uuid);
    return status;
}

mgl_status mgl_trial_check_correctness(const mgl_trial_options *o, const mgl_kernel_unit *unit,
                                       const mgl_harness_set *set, const mgl_candidate *candidate,
                                       const unsigned char nonce[MGL_SHA256_BYTES],
                                       mgl_kernel_trial *out, mgl_error *err)
{
    struct correctness_state c = {.set = set, .out = out, .nonce = nonce};
    mgl_candidate incumbent = set->program;
    incumbent.sources = o->sources;
    incumbent.source_count = o->source_count;
    out->verdict.outcome = MGL_OUTCOME_OK;
    mgl_status status = open_correctness(&c, unit, err);
    if (!status)
        status = open_reference(&c, o, err);
    if (!status)
        status = mgl_trial_open_runner(o, &set->subject, &c.runner, err);
    if (!status)
        c.runner->prepare(c.runner, candidate);
    if (!status)
        status = c.runner->start(c.runner, &incumbent, err);
    if (!status)
        status = name_device(&c, err);
    if (!status)
        status = c.runner->take(c.runner, candidate, err);
    if (!status)
        status = check_cases(&c, o, err);
    out->harnesses++;
    if (c.runner)
        c.runner->close(c.runner);
    mgl_paired_bench_close(c.reference);
    mgl_free(c.levels);
    return status;
}
