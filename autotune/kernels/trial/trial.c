/* Implements trial.h: runs the gates on a device in order, with compile-ahead and device locks. */
#include "autotune/kernels/trial/trial.h"

#include "autotune/kernels/gates/launch.h"
#include "autotune/kernels/gates/overlay.h"
#include "autotune/kernels/trial/device_lock.h"
#include "autotune/kernels/trial/weights_check.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "vm/cuda/cuda.h"
#include "vm/pipeline/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { MOST_HARNESSES = 3, PAIRED_BENCH_LAYERS = 2, PAIRED_BENCH_CONTEXT = 512, MOST_AHEAD = 24 };
static const double ahead_s = 120; /* longest wait for kernels before a gate */

/* State of one trial. */
struct passage {
    const mgl_kernel_unit *unit;
    const mgl_trial_options *o;
    mgl_target target;
    unsigned char nonce[MGL_SHA256_BYTES];
    mgl_cuda_source sources[MGL_OVERLAY_UNITS]; /* (source_count) texts of the candidate's kernel */
    int source_count;
    mgl_cuda_source own;
    char digest[MGL_SHA256_HEX]; /* digest of the candidate's text */
    mgl_trial_checkpoint checkpoint;
    mgl_kernel_trial *out;
};

static bool is_over(const struct passage *p)
{
    return p->out->verdict.outcome != MGL_OUTCOME_OK;
}

mgl_status mgl_trial_open_runner(const mgl_trial_options *o, const mgl_subject *subject,
                                 mgl_runner **out, mgl_error *err)
{
    if (o->open_runner)
        return o->open_runner(o->runner_user, subject, out, err);
    const mgl_runner_options options = {.subject = subject,
                                        .device = o->device,
                                        .program = o->program ? o->program : "/proc/self/exe",
                                        .kernels = o->kernels,
                                        .abort = o->abort,
                                        .limit_s = o->limit_s,
                                        .no_sandbox = o->no_sandbox};
    return mgl_runner_device_open(&options, out, err);
}

mgl_status mgl_trial_text(const mgl_kernel_candidate *c, char **out, mgl_error *err)
{
    mgl_kernel_launch launch;
    int64_t chosen[MGL_KERNEL_VALUES];
    char macro[MGL_KERNEL_TUNABLE_MACRO];
    mgl_text text = {0};
    mgl_status status = mgl_kernel_launch_read(c->text, c->length, &launch, err);
    if (!status)
        status = mgl_kernel_launch_choose(&launch, c->values, c->value_count, chosen, err);
    if (status)
        return status;
    for (int i = 0; i < launch.tunable_count; i++) {
        mgl_kernel_tunable_macro(launch.tunables[i].name, macro);
        mgl_text_format(&text, "#define %s %lld\n", macro, (long long)chosen[i]);
    }
    mgl_text_append(&text, c->text, c->length);
    if (c->length && c->text[c->length - 1] != '\n' && launch.tunable_count)
        mgl_text_put(&text, "\n");
    for (int i = 0; i < launch.tunable_count; i++) {
        mgl_kernel_tunable_macro(launch.tunables[i].name, macro);
        mgl_text_format(&text, "#undef %s\n", macro);
    }
    *out = text.bytes;
    if (!text.failed)
        return MGL_OK;
    mgl_text_clear(&text);
    *out = NULL;
    return mgl_fail_memory(err, c->length);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* The promoted texts; the candidate's text replaces the text of its unit or is added. */
static mgl_status take_sources(struct passage *p, const char *text, mgl_error *err)
{
    const mgl_cuda_source own = {p->unit->file, (const unsigned char *)text};
    p->own = own;
    bool placed = false;
    unsigned char bytes[MGL_SHA256_BYTES];
    mgl_sha256_of(text, strlen(text), bytes);
    mgl_sha256_hex(bytes, p->digest);
    if (p->o->source_count >= MGL_OVERLAY_UNITS)
        return mgl_fail(err, MGL_USAGE, "overlay", "has %d texts; there may be %d",
                        p->o->source_count, (int)MGL_OVERLAY_UNITS - 1);
    for (int i = 0; i < p->o->source_count; i++) {
        const bool same = !strcmp(p->o->sources[i].name, own.name);
        p->sources[p->source_count++] = same ? own : p->o->sources[i];
        placed |= same;
    }
    if (!placed)
        p->sources[p->source_count++] = own;
    return MGL_OK;
}

static mgl_status draw_nonce(struct passage *p, mgl_error *err)
{
    unsigned char bits[MGL_SHA256_BYTES];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return mgl_fail_errno(err, "nonce", "the system gives no random number");
    mgl_sha256_of(bits, sizeof bits, p->nonce);
    mgl_sha256_hex(p->nonce, p->out->nonce);
    return MGL_OK;
}

static mgl_status find_target(struct passage *p, mgl_error *err)
{
    mgl_device device = {0};
    if (p->o->open_runner) { /* a simulated runner gets a fixed target */
        p->target = (mgl_target){.arch = "sm_90a", .queues = 132, .shared_bytes = 232448};
        return MGL_OK;
    }
    mgl_status status = mgl_device_find(p->o->device, &device, err);
    if (!status && device.kind != MGL_VM_CUDA)
        status = mgl_fail(err, MGL_USAGE, p->o->device, "a micro-kernel runs on a GPU");
    p->target = device.target;
    return status;
}

/* Opens the checkpoint first, so that an unusable checkpoint ends the trial early. */
static mgl_status open_checkpoint(struct passage *p, mgl_error *err)
{
    if (!p->o->checkpoint || p->o->depth < MGL_TRIAL_MODELS)
        return MGL_OK;
    return mgl_trial_checkpoint_open(p->o->checkpoint, &p->target, &p->checkpoint, err);
}

/* Whether a set's programs can run promoted texts. */
static bool takes_promoted(const mgl_harness_set *set)
{
    return mgl_cuda_takes_sources(set->program.programs[0]);
}

/* Makes the candidate for a harness program. If the program cannot run promoted texts, only the
 * candidate's own text is replaced. */
static mgl_candidate candidate_of(const struct passage *p, const mgl_harness_set *set)
{
    mgl_candidate candidate = set->program;
    const bool alone = set->of && !takes_promoted(set);
    candidate.sources = alone ? &p->own : p->sources;
    candidate.source_count = alone ? 1 : p->source_count;
    candidate.everywhere = set->of != NULL;
    memcpy(candidate.digest, p->digest, sizeof candidate.digest);
    return candidate;
}

static mgl_candidate incumbent_of(const struct passage *p, const mgl_harness_set *set)
{
    mgl_candidate incumbent = set->program;
    incumbent.sources = p->o->sources;
    incumbent.source_count = p->o->source_count;
    return incumbent;
}

/* ---- the correctness check ------------------------------------------------------------------- */

static bool is_wanted(const struct passage *p, const mgl_harness *h, int taken)
{
    const int most = p->o->most_harnesses > 0 ? p->o->most_harnesses : MOST_HARNESSES;
    if (p->o->only)
        return !strcmp(p->o->only, h->name);
    return h->kind || taken < most || p->o->depth == MGL_TRIAL_PROMOTE;
}

/* Whether a harness program applies to the unit: it has tasks of the unit, or it is a special
 * program with tasks that may run the unit's code. */
static bool runs(const struct passage *p, const mgl_harness_set *set)
{
    return set->of->kind ? mgl_harness_may_run(set, p->unit) : mgl_harness_runs(set, p->unit);
}

/* Skips a harness program that does not fit this device. */
static mgl_status check_harness(struct passage *p, const mgl_harness *h, int *taken, mgl_error *err)
{
    mgl_harness_set set;
    mgl_error why = {0};
    mgl_status status = mgl_harness_open(h, &p->target, &set, &why);
    if (status == MGL_NO_MEMORY && err)
        *err = why;
    if (status)
        return status == MGL_NO_MEMORY ? status : MGL_OK;
    if (runs(p, &set)) {
        const mgl_candidate candidate = candidate_of(p, &set);
        status =
            mgl_trial_check_correctness(p->o, p->unit, &set, &candidate, p->nonce, p->out, err);
        *taken += !h->kind;
    }
    mgl_harness_clear(&set);
    return status;
}

static mgl_status pass_correctness(struct passage *p, mgl_error *err)
{
    int taken = 0;
    mgl_status status = MGL_OK;
    for (int i = 0; i < mgl_harness_count() && !status && !is_over(p); i++)
        if (is_wanted(p, mgl_harness_get(i), taken))
            status = check_harness(p, mgl_harness_get(i), &taken, err);
    if (!status && !is_over(p) && p->out->harnesses == 0)
        return mgl_fail(err, MGL_DEVICE, p->unit->name,
                        "no harness program of this device runs the micro-kernel");
    return status;
}

/* ---- sanitizers ------------------------------------------------------------------------------ */

static mgl_status sanitize(struct passage *p, const mgl_harness_set *set, mgl_error *err)
{
    mgl_runner *runner = NULL;
    uint64_t seed;
    const mgl_candidate candidate = candidate_of(p, set), incumbent = incumbent_of(p, set);
    memcpy(&seed, p->nonce + 8, sizeof seed);
    mgl_status status = mgl_trial_open_runner(p->o, &set->subject, &runner, err);
    if (!status)
        status = mgl_sanitize(runner, &incumbent, &candidate, seed, p->o->no_sandbox,
                              &p->out->sanitizers, &p->out->verdict, err);
    if (runner)
        runner->close(runner);
    return status;
}

/* Uses the first program of the correctness check, because its kernels are already compiled. */
static mgl_status pass_sanitizers(struct passage *p, mgl_error *err)
{
    bool taken = false;
    mgl_status status = MGL_OK;
    for (int i = 0; i < mgl_harness_count() && !status && !taken; i++) {
        mgl_harness_set set;
        if (!is_wanted(p, mgl_harness_get(i), 0) ||
            mgl_harness_open(mgl_harness_get(i), &p->target, &set, err))
            continue;
        taken = mgl_harness_runs(&set, p->unit);
        if (taken)
            status = sanitize(p, &set, err);
        mgl_harness_clear(&set);
    }
    return status;
}

/* Whether the set's programs run the candidate's text. */
static bool takes_text(const struct passage *p, const mgl_harness_set *set)
{
    return mgl_harness_runs(set, p->unit) && takes_promoted(set);
}

/* ---- paired benchmarks ----------------------------------------------------------------------- */

/* The model of a paired benchmark: a shape and a number of layers (0: all). */
typedef struct arena {
    char shape[MGL_CONTEXT_NAME];
    int layers, capacity;
    mgl_workloads workloads;
} arena;

static int capacity_of(const mgl_workloads *workloads)
{
    int most = 0;
    for (int i = 0; i < workloads->count; i++)
        if (workloads->list[i].context > most)
            most = workloads->list[i].context;
    return (most + MGL_WORKLOAD_TOKENS + 1 + 1023) / 1024 * 1024;
}

/* The op as isolated as the machine's kernel allows: a two-layer model in the op's context. */
static arena arena_alone(const struct passage *p, const mgl_context_harness *h)
{
    arena a = {.layers = PAIRED_BENCH_LAYERS, .capacity = h->capacity, .workloads.count = 2};
    snprintf(a.shape, sizeof a.shape, "%s", p->o->shape ? p->o->shape : h->shape);
    a.workloads.list[0] = (mgl_workload){.batch = h->sequences, .context = 0};
    a.workloads.list[1] = (mgl_workload){.batch = h->sequences,
                                         .context = h->capacity > 4 * PAIRED_BENCH_CONTEXT
                                                        ? h->capacity - PAIRED_BENCH_CONTEXT
                                                        : h->capacity / 2};
    return a;
}

static arena arena_of_models(const struct passage *p, const mgl_context_harness *first)
{
    static const mgl_workloads standard = {.list = {{1, 0}, {1, 2048}}, .count = 2};
    arena a = {.workloads = p->o->models ? *p->o->models : standard};
    snprintf(a.shape, sizeof a.shape, "%s", p->o->shape ? p->o->shape : first->shape);
    a.capacity = capacity_of(&a.workloads);
    return a;
}

static mgl_status find_arena(const struct passage *p, bool alone, arena *out, mgl_error *err)
{
    mgl_kernel_context context;
    mgl_status status = mgl_kernel_context_read(p->unit, &context, err);
    if (status)
        return status;
    *out = alone ? arena_alone(p, mgl_kernel_context_harness(&context, p->unit))
                 : arena_of_models(p, &context.harnesses[0]);
    mgl_kernel_context_clear(&context);
    return MGL_OK;
}

/* Opens the model. If its programs do not run the unit, an isolated benchmark uses `general`. */
static mgl_status open_arena(const struct passage *p, const arena *a, mgl_harness_set *set,
                             mgl_error *err)
{
    mgl_status status = mgl_harness_open_shape(a->shape, a->layers, &a->workloads, a->capacity,
                                               &p->target, set, err);
    if (!status && a->layers > 0 && !mgl_harness_runs(set, p->unit))
        mgl_harness_make_general(set);
    return status;
}

static mgl_status run_paired_bench(struct passage *p, const arena *a, mgl_kernel_paired_bench *out,
                                   mgl_error *err)
{
    mgl_harness_set set;
    mgl_status status = open_arena(p, a, &set, err);
    *out = (mgl_kernel_paired_bench){.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    if (status)
        return status;
    if (!takes_text(p, &set)) {
        mgl_trial_verdict_set(
            &out->verdict, MGL_OUTCOME_UNMEASURED,
            "no task of %s runs %s on these workloads, or its kernel takes no text but "
            "the built-in one: name another model",
            a->shape, p->unit->name);
        mgl_harness_clear(&set);
        return MGL_OK;
    }
    const mgl_candidate candidate = candidate_of(p, &set), incumbent = incumbent_of(p, &set);
    status = mgl_trial_paired_bench(p->o, &set, &incumbent, &candidate, p->nonce, out, err);
    if (a->layers > 0)
        mgl_format_into(out->shape, sizeof out->shape, "%s, %d layers", a->shape, a->layers);
    else
        mgl_format_into(out->shape, sizeof out->shape, "%s", a->shape);
    mgl_harness_clear(&set);
    return status;
}

static mgl_status pass_paired_bench(struct passage *p, mgl_error *err)
{
    arena a;
    mgl_status status = find_arena(p, true, &a, err);
    if (!status)
        status = run_paired_bench(p, &a, &p->out->paired_bench, err);
    p->out->verdict = p->out->paired_bench.verdict;
    return status;
}

/* A text that wins in isolation and loses in a whole model is rejected. */
static mgl_outcome outcome_in_model(const mgl_kernel_paired_bench *models)
{
    switch (models->verdict.outcome) {
    case MGL_OUTCOME_REGRESSION:
        return MGL_OUTCOME_MODEL_REGRESSION;
    case MGL_OUTCOME_MISMATCH:
    case MGL_OUTCOME_SEMANTIC:
        return MGL_OUTCOME_MODEL_MISMATCH;
    default:
        return models->verdict.outcome;
    }
}

static mgl_status pass_models(struct passage *p, mgl_error *err)
{
    arena a;
    mgl_status status = find_arena(p, false, &a, err);
    if (!status)
        status = run_paired_bench(p, &a, &p->out->models, err);
    p->out->verdict = p->out->models.verdict;
    p->out->verdict.outcome = outcome_in_model(&p->out->models);
    return status;
}

/* A checkpoint whose programs never run the unit is skipped, with a note. */
static mgl_status pass_checkpoint(struct passage *p, mgl_error *err)
{
    const mgl_harness_set *set = &p->checkpoint.set;
    if (!mgl_harness_may_run(set, p->unit) || !takes_promoted(set)) {
        mgl_format_into(p->out->real.note, sizeof p->out->real.note,
                        "no task of the checkpoint's programs runs %s, or their kernels take no "
                        "text but the built-in one",
                        p->unit->name);
        return MGL_OK;
    }
    const mgl_candidate candidate = candidate_of(p, set), incumbent = incumbent_of(p, set);
    return mgl_trial_checkpoint_run(p->o, &p->checkpoint, &incumbent, &candidate, p->nonce, p->out,
                                    err);
}

/* ---- compiling ahead ------------------------------------------------------------------------- */

/* Kernels of later gates, which are compiled in parallel before any gate takes the device lock.
 * Errors are ignored here, because the gate that needs the kernel reports them. */
struct ahead {
    struct {
        mgl_harness_set set;
        mgl_runner *runner;
    } of[MOST_AHEAD]; /* (count) */
    int count;
};

/* Takes ownership of the set. Compiles its kernels if `wanted`. */
static void add_ahead(struct passage *p, mgl_harness_set *set, bool wanted, struct ahead *a)
{
    mgl_runner *runner = NULL;
    if (a->count < MOST_AHEAD && wanted) {
        a->of[a->count].set = *set;
        if (!mgl_trial_open_runner(p->o, &a->of[a->count].set.subject, &runner, NULL)) {
            const mgl_candidate candidate = candidate_of(p, set), incumbent = incumbent_of(p, set);
            runner->prepare(runner, &candidate);
            runner->prepare(runner, &incumbent);
            a->of[a->count++].runner = runner;
            return;
        }
    }
    mgl_harness_clear(set);
}

static void add_correctness_ahead(struct passage *p, struct ahead *a)
{
    int taken = 0;
    for (int i = 0; i < mgl_harness_count(); i++) {
        mgl_harness_set set;
        if (!is_wanted(p, mgl_harness_get(i), taken) ||
            mgl_harness_open(mgl_harness_get(i), &p->target, &set, NULL))
            continue;
        const bool wanted = runs(p, &set);
        taken += wanted && !set.of->kind;
        add_ahead(p, &set, wanted, a);
    }
}

static void add_paired_bench_ahead(struct passage *p, bool alone, struct ahead *a)
{
    arena in;
    mgl_harness_set set;
    if (!find_arena(p, alone, &in, NULL) && !open_arena(p, &in, &set, NULL))
        add_ahead(p, &set, takes_text(p, &set), a);
}

static bool is_ready(mgl_runner *runner, const mgl_candidate *candidate)
{
    return !runner->is_ready || runner->is_ready(runner, candidate);
}

/* Waits for the kernels in order. A finished kernel is not polled again, since each poll hashes
 * sources. */
static mgl_status await_ahead(struct passage *p, const struct ahead *a, mgl_error *err)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    const double end = mgl_clock_s() + ahead_s;
    mgl_status status = MGL_OK;
    for (int i = 0; i < a->count && !status; i++) {
        const mgl_candidate candidate = candidate_of(p, &a->of[i].set),
                            incumbent = incumbent_of(p, &a->of[i].set);
        while (!status && mgl_clock_s() < end &&
               !(is_ready(a->of[i].runner, &candidate) && is_ready(a->of[i].runner, &incumbent))) {
            nanosleep(&pause, NULL);
            status = mgl_check_abort(p->o->abort, err);
        }
    }
    return status;
}

/* Whether compiled kernels are kept in a cache. Otherwise compiling ahead is useless. */
static bool keeps_kernels(const struct passage *p)
{
    char folder[1024];
    return p->o->kernels || mgl_cuda_cache_path(folder, sizeof folder);
}

/* Compiles for the correctness check and the isolated benchmark, or for the benchmark in models. */
static mgl_status compile_ahead(struct passage *p, bool models, mgl_error *err)
{
    const double began = mgl_clock_s();
    if (p->o->open_runner || !keeps_kernels(p))
        return MGL_OK;
    struct ahead *a = mgl_alloc_zero(1, sizeof *a);
    if (!a)
        return mgl_fail_memory(err, sizeof *a);
    if (!models)
        add_correctness_ahead(p, a);
    if (models || p->o->depth >= MGL_TRIAL_PAIRED_BENCH)
        add_paired_bench_ahead(p, !models, a);
    mgl_status status = await_ahead(p, a, err);
    for (int i = 0; i < a->count; i++) {
        a->of[i].runner->close(a->of[i].runner);
        mgl_harness_clear(&a->of[i].set);
    }
    mgl_free(a);
    p->out->spent.compiling += mgl_clock_s() - began;
    return status;
}

/* ---- device locks ---------------------------------------------------------------------------- */

typedef mgl_status gate_fn(struct passage *p, mgl_error *err);

/* Runs a gate under the device lock and adds its duration to *seconds. */
static mgl_status pass_with_device_lock(struct passage *p, mgl_device_lock_kind kind, gate_fn *gate,
                                        double *seconds, mgl_error *err)
{
    mgl_device_lock lock;
    const double asked = mgl_clock_s();
    mgl_status status = mgl_device_lock_take(p->o->device_lock, kind, p->o->abort, &lock, err);
    const double began = mgl_clock_s();
    p->out->spent.waiting += began - asked;
    if (!status)
        status = gate(p, err);
    mgl_device_lock_end(&lock);
    *seconds += mgl_clock_s() - began;
    return status;
}

/* The gates that are not timed. */
static mgl_status pass_untimed(struct passage *p, mgl_error *err)
{
    const double began = mgl_clock_s();
    mgl_status status = pass_correctness(p, err);
    p->out->spent.correctness = mgl_clock_s() - began;
    if (!status && !is_over(p))
        status = pass_sanitizers(p, err);
    if (!status && !is_over(p) && p->o->depth == MGL_TRIAL_CORRECTNESS)
        mgl_trial_verdict_set(&p->out->verdict, MGL_OUTCOME_UNMEASURED,
                              "correct in %d cases; nothing was timed", p->out->cases);
    return status;
}

static mgl_status pass_timed(struct passage *p, mgl_error *err)
{
    mgl_trial_spent *spent = &p->out->spent;
    mgl_status status = pass_with_device_lock(p, MGL_DEVICE_LOCK_ALONE, pass_paired_bench,
                                              &spent->paired_bench, err);
    if (!status && !is_over(p) && p->o->depth >= MGL_TRIAL_MODELS) {
        status = compile_ahead(p, true, err);
        if (!status)
            status =
                pass_with_device_lock(p, MGL_DEVICE_LOCK_ALONE, pass_models, &spent->models, err);
    }
    if (!status && !is_over(p) && p->checkpoint.texts)
        status = pass_with_device_lock(p, MGL_DEVICE_LOCK_SHARED, pass_checkpoint,
                                       &spent->checkpoint, err);
    return status;
}

/* ---- the whole trial ------------------------------------------------------------------------- */

mgl_status mgl_kernel_try(const mgl_kernel_unit *unit, const char *text,
                          const mgl_trial_options *options, mgl_kernel_trial *out, mgl_error *err)
{
    struct passage *p = mgl_alloc_zero(1, sizeof *p);
    const double start = mgl_clock_s();
    *out = (mgl_kernel_trial){.verdict.outcome = MGL_OUTCOME_OK};
    if (!p)
        return mgl_fail_memory(err, sizeof *p);
    p->unit = unit;
    p->o = options;
    p->out = out;
    mgl_status status = draw_nonce(p, err);
    if (!status)
        status = find_target(p, err);
    if (!status)
        status = take_sources(p, text, err);
    if (!status)
        status = open_checkpoint(p, err);
    if (!status)
        status = compile_ahead(p, false, err);
    if (!status && !options->open_runner) {
        double both = 0;
        status = pass_with_device_lock(p, MGL_DEVICE_LOCK_SHARED, pass_untimed, &both, err);
        out->spent.sanitizers = both - out->spent.correctness;
    }
    if (!status && !is_over(p))
        status = pass_timed(p, err);
    out->seconds = mgl_clock_s() - start;
    mgl_trial_checkpoint_clear(&p->checkpoint);
    mgl_free(p);
    return status;
}
