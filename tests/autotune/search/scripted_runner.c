/* Implements the simulated runner and the scripted proposer. See scripted_runner.h. */
#include "tests/autotune/search/scripted_runner.h"

#include "base/format.h"
#include "tests/autotune/search/simulate.h"

#include <math.h>
#include <string.h>

#define DEFAULT_US 100.0
#define NOISE      0.001 /* standard deviation of the log of a time */

static scripted_runner *runner_of(mgl_runner *self)
{
    return (scripted_runner *)(void *)self;
}

static mgl_status fail_if_broken(const scripted_runner *runner, mgl_error *err)
{
    return runner->broken ? mgl_fail(err, MGL_DEVICE, "runner", "the device fell off the bus")
                          : MGL_OK;
}

/* ---- gains of programs ----------------------------------------------------------------------- */

static double find_gain(const scripted_runner *runner, const char *digest)
{
    for (int i = 0; i < runner->known_count; i++)
        if (!strcmp(runner->known[i].digest, digest))
            return runner->known[i].gain;
    return 0;
}

/* -10 % to +4 % */
static double gain_of_digest(const char *digest)
{
    unsigned sum = 0;
    for (int i = 0; i < 8; i++)
        sum = sum * 31 + (unsigned char)digest[i];
    return -0.10 + 0.14 * (sum % 1000) / 1000;
}

/* A program's true gain over the default, as a log ratio. */
static double gain_of(const scripted_runner *runner, const mgl_candidate *candidate)
{
    if (runner->by_cost && candidate->predicted > 0)
        return log(DEFAULT_US / candidate->predicted);
    return runner->by_digest ? gain_of_digest(candidate->digest)
                             : find_gain(runner, candidate->digest);
}

static void remember(scripted_runner *runner, const char *digest, double gain)
{
    if (runner->known_count == RUNNER_MOST)
        return;
    memcpy(runner->known[runner->known_count].digest, digest, MGL_SHA256_HEX);
    runner->known[runner->known_count++].gain = gain;
}

/* ---- the runner ------------------------------------------------------------------------------ */

static mgl_status get_device(mgl_runner *self, mgl_runner_device *out, mgl_error *err)
{
    (void)self, (void)err;
    *out = (mgl_runner_device){.name = "scripted", .driver = "1"};
    return MGL_OK;
}

static mgl_status start(mgl_runner *self, const mgl_candidate *incumbent, mgl_error *err)
{
    scripted_runner *runner = runner_of(self);
    runner->starts++;
    memcpy(runner->incumbent, incumbent->digest, MGL_SHA256_HEX);
    runner->incumbent_gain = gain_of(runner, incumbent);
    return fail_if_broken(runner, err);
}

static mgl_status check(mgl_runner *self, const mgl_candidate *candidate,
                        const unsigned char nonce[MGL_SHA256_BYTES], mgl_runner_check *out,
                        mgl_error *err)
{
    static const runner_script nothing = {0};
    scripted_runner *runner = runner_of(self);
    bool itself = !strcmp(candidate->digest, runner->incumbent);
    *out = (mgl_runner_check){.verdict.outcome = MGL_OUTCOME_OK};
    runner->clock += 0.5;
    runner->now = &nothing;
    if (!itself) {
        if (runner->checks < runner->script_count)
            runner->now = &runner->script[runner->checks];
        memcpy(runner->nonces[runner->checks % RUNNER_MOST], nonce, MGL_SHA256_BYTES);
        runner->checks++;
    }
    if (runner->now->failure)
        return mgl_fail(err, runner->now->failure, "runner", "the worker is gone");
    memcpy(runner->candidate, candidate->digest, MGL_SHA256_HEX);
    runner->candidate_gain = itself                                 ? runner->incumbent_gain
                             : runner->by_digest || runner->by_cost ? gain_of(runner, candidate)
                                                                    : runner->now->gain;
    remember(runner, candidate->digest, runner->candidate_gain);
    out->verdict.outcome = runner->now->check;
    for (int w = 0; w < MGL_MAX_WORKLOADS; w++) {
        out->defaults[w] = 1e-3;
        out->errors[w] = 1e-3 * (runner->now->error > 0 ? runner->now->error : 1);
    }
    mgl_format_into(out->verdict.diagnostic, sizeof out->verdict.diagnostic, "scripted");
    return fail_if_broken(runner, err);
}

static mgl_status measure(mgl_runner *self, int workload, int count, uint64_t seed, bool control,
                          mgl_pair *out, mgl_trial_verdict *verdict, mgl_error *err)
{
    scripted_runner *runner = runner_of(self);
    simulator s = {.seed = runner->seed ? runner->seed + (uint64_t)runner->pairs : seed,
                   .kind = NOISE_NORMAL,
                   .spread = runner->noise > 0 ? runner->noise : NOISE};
    double gain = control ? 0 : runner->candidate_gain - runner->incumbent_gain;
    mgl_trial_verdict_set(verdict, control ? MGL_OUTCOME_OK : runner->now->pair, "scripted");
    runner->controls += control;
    runner->pairs += !control;
    if (control && runner->bad_controls > 0 && runner->bad_controls--)
        gain = 0.02;
    if (control && runner->failing_controls > 0 && runner->failing_controls--)
        verdict->outcome = MGL_OUTCOME_HANG;
    simulator_pairs(&s, gain, workload, 0, count, out);
    for (int i = 0; i < count; i++) {
        double unit = DEFAULT_US / 600 * exp(-runner->incumbent_gain); /* pairs are of 600 us */
        out[i].incumbent_us *= unit;
        out[i].candidate_us *= unit;
        out[i].dropped |= runner->competing > 0;
        runner->clock += 32e-6 * (out[i].incumbent_us + out[i].candidate_us);
    }
    runner->competing -= runner->competing > 0;
    return fail_if_broken(runner, err);
}

static mgl_status find_floor(mgl_runner *self, int workload, bool again, double *us, mgl_error *err)
{
    (void)workload, (void)again;
    scripted_runner *runner = runner_of(self);
    *us = runner->now && runner->now->below_floor ? 2 * DEFAULT_US : 1;
    return fail_if_broken(runner, err);
}

static mgl_status promote(mgl_runner *self, mgl_error *err)
{
    scripted_runner *runner = runner_of(self);
    runner->promotions++;
    if (runner->fails_promotion) {
        runner->fails_promotion = false;
        runner->broken = true;
    }
    memcpy(runner->incumbent, runner->candidate, MGL_SHA256_HEX);
    runner->incumbent_gain = runner->candidate_gain;
    return fail_if_broken(runner, err);
}

static void prepare(mgl_runner *self, const mgl_candidate *candidate)
{
    (void)candidate;
    runner_of(self)->prepared++;
}

static bool is_ready(mgl_runner *self, const mgl_candidate *candidate)
{
    scripted_runner *runner = runner_of(self);
    int i = 0;
    while (i < runner->looked_count && strcmp(runner->looked[i].digest, candidate->digest) != 0)
        i++;
    if (i == runner->looked_count && i < RUNNER_MOST) {
        memcpy(runner->looked[i].digest, candidate->digest, MGL_SHA256_HEX);
        runner->looked[runner->looked_count++].checks = runner->checks;
    }
    return i >= runner->slow_count || runner->checks - runner->looked[i].checks >= runner->slow[i];
}

void scripted_runner_compile(scripted_runner *runner, const int *slow, int count)
{
    runner->runner.is_ready = is_ready;
    runner->slow = slow;
    runner->slow_count = count;
}

static void close_runner(mgl_runner *self)
{
    (void)self;
}

void scripted_runner_init(scripted_runner *runner)
{
    *runner = (scripted_runner){.runner = {.measures = true,
                                           .executes = true,
                                           .compilers = 2,
                                           .get_device = get_device,
                                           .start = start,
                                           .check = check,
                                           .pair = measure,
                                           .floor = find_floor,
                                           .promote = promote,
                                           .prepare = prepare,
                                           .close = close_runner}};
}

double scripted_runner_clock(void *runner)
{
    return ((scripted_runner *)runner)->clock;
}

/* ---- the proposer ---------------------------------------------------------------------------- */

/* Whether the proposer draws values of a knob. The list does not grow with the space, so that a
 * seed draws the same configs when knobs are added. */
static bool is_drawn(const char *name)
{
    static const char *const drawn[] = {"splits",        "exchange",      "exchange_precision",
                                        "merge",         "page_bytes",    "ring_pages",
                                        "warps",         "stage_bytes",   "flight_bytes",
                                        "pending_bytes", "prefetch_bytes"};
    bool found = !strncmp(name, "queues.", 7);
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn && !found; i++)
        found = !strcmp(name, drawn[i]);
    return found;
}

static void draw_knobs(const mgl_search_space *space, uint64_t seed, mgl_schedule_config *out)
{
    const mgl_knob *knobs[MGL_MAX_KNOBS];
    int known = 0, count = 1 + (int)mgl_draw_below(&seed, 2);
    for (int i = 0; i < space->count; i++)
        if (is_drawn(space->knobs[i].name))
            knobs[known++] = &space->knobs[i];
    for (int i = 0; i < count; i++) {
        const mgl_knob *knob = knobs[mgl_draw_below(&seed, (uint64_t)known)];
        mgl_knob_set(out, mgl_knob_find(knob->name),
                     knob->values[mgl_draw_below(&seed, (uint64_t)knob->count)]);
    }
}

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err)
{
    (void)err;
    scripted_proposer *p = (scripted_proposer *)(void *)self;
    int n = p->goes_on ? p->asked++ : p->told;
    out->config = p->subject->start;
    *answer = p->draws || n < p->count ? MGL_PROPOSED : MGL_NO_MORE;
    if (p->draws)
        draw_knobs(&p->subject->space, seed, &out->config);
    else if (n < p->count && p->list[n].knob)
        mgl_knob_set(&out->config, mgl_knob_find(p->list[n].knob), p->list[n].value);
    return MGL_OK;
}

static mgl_status learn(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    scripted_proposer *p = (scripted_proposer *)(void *)self;
    p->outcomes[p->told++ % RUNNER_MOST] = trial->verdict.outcome;
    return MGL_OK;
}

static void close_proposer(mgl_proposer *self)
{
    (void)self;
}

void scripted_proposer_init(scripted_proposer *p, const mgl_subject *subject)
{
    *p = (scripted_proposer){.proposer = {"scripted", propose, learn, close_proposer, false},
                             .subject = subject};
}
