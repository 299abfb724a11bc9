/*
 * Paired benchmark of a micro-kernel trial: measures the incumbent and the candidate in the
 * programs of a harness set, by the protocol of search/measure.h. All results are compared with
 * the floors, because prompts show the floor. A campaign compares only the results of a decision.
 */
#include "autotune/kernels/trial/trial.h"

#include "autotune/search/measure.h"
#include "base/memory.h"

#include <string.h>

/* The runner and the incumbent, for a restart. */
struct arena {
    mgl_runner *runner;
    const mgl_candidate *incumbent;
};

static mgl_status start(void *user, const mgl_trial *trial, mgl_error *err)
{
    const struct arena *arena = user;
    (void)trial;
    return arena->runner->start(arena->runner, arena->incumbent, err);
}

static mgl_status run(mgl_measurement *m, const unsigned char nonce[MGL_SHA256_BYTES],
                      mgl_error *err)
{
    mgl_status status = m->restart(m->user, m->trial, err);
    if (!status)
        status = mgl_measure_check(m, nonce, err);
    if (!status && !m->decided && !m->runner->measures)
        mgl_measure_decide(m, MGL_OUTCOME_UNMEASURED, "correct, and not timed: there is no clock");
    if (!status)
        status = mgl_measure_screen(m, err);
    if (!status)
        status = mgl_measure_survivors(m, err);
    if (!status)
        status = mgl_measure_decision(m, err);
    return status ? status : mgl_measure_floors(m, err);
}

/* Reports no times if the outcome is not a correct one. */
static void tell(const mgl_trial *t, const mgl_harness_set *set, mgl_kernel_paired_bench *out)
{
    const bool told = mgl_outcome_is_correct(t->verdict.outcome) && t->pair_count > 0;
    out->verdict = t->verdict;
    out->workloads = set->subject.workloads;
    out->workload_count = t->workload_count;
    out->pairs = t->pair_count;
    out->timed = told;
    memcpy(out->results, t->workloads, sizeof out->results);
    for (int w = 0; w < MGL_MAX_WORKLOADS && !told; w++)
        out->results[w].candidate_us = out->results[w].gain = out->results[w].gain_lo =
            out->results[w].gain_hi = 0;
    if (told) {
        out->gain = t->gain;
        out->gain_lo = t->gain_lo;
        out->gain_hi = t->gain_hi;
        out->level = t->level;
    }
}

mgl_status mgl_trial_paired_bench(const mgl_trial_options *o, const mgl_harness_set *set,
                                  const mgl_candidate *incumbent, const mgl_candidate *candidate,
                                  const unsigned char nonce[MGL_SHA256_BYTES],
                                  mgl_kernel_paired_bench *out, mgl_error *err)
{
    uint64_t draws;
    struct arena arena = {.incumbent = incumbent};
    mgl_trial *trial = mgl_alloc_zero(1, sizeof *trial);
    *out = (mgl_kernel_paired_bench){.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    if (!trial)
        return mgl_fail_memory(err, sizeof *trial);
    memcpy(&draws, nonce + 16, sizeof draws);
    mgl_sha256_hex(nonce, trial->nonce);
    trial->workload_count = set->subject.workloads.count;
    mgl_status status = mgl_trial_open_runner(o, &set->subject, &arena.runner, err);
    mgl_measurement m = {.runner = arena.runner,
                         .candidate = candidate,
                         .trial = trial,
                         .draws = &draws,
                         .decision = o->decision > 0 ? o->decision : 1,
                         .abort = o->abort,
                         .restart = start,
                         .user = &arena};
    if (!status) {
        arena.runner->prepare(arena.runner, candidate);
        status = run(&m, nonce, err);
    }
    if (!status)
        tell(trial, set, out);
    if (arena.runner)
        arena.runner->close(arena.runner);
    mgl_trial_clear(trial);
    mgl_free(trial);
    return status;
}
