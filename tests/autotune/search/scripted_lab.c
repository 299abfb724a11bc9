#include "tests/autotune/search/scripted_lab.h"

#include "base/format.h"
#include "tests/autotune/search/simulate.h"

#include <math.h>
#include <string.h>

#define DEFAULT_US 100.0
#define NOISE      0.001 /* of the log of a time */

static scripted_lab *lab_of(mgl_lab *self)
{
    return (scripted_lab *)(void *)self;
}

static mgl_status fail_if_broken(const scripted_lab *lab, mgl_error *err)
{
    return lab->broken ? mgl_fail(err, MGL_DEVICE, "lab", "the device fell off the bus") : MGL_OK;
}

/* ---- what programs are worth ----------------------------------------------------------------- */

static double find_gain(const scripted_lab *lab, const char *digest)
{
    for (int i = 0; i < lab->known_count; i++)
        if (!strcmp(lab->known[i].digest, digest))
            return lab->known[i].gain;
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

/* What a program is worth by itself. */
static double gain_of(const scripted_lab *lab, const mgl_candidate *candidate)
{
    if (lab->by_cost && candidate->predicted > 0)
        return log(DEFAULT_US / candidate->predicted);
    return lab->by_digest ? gain_of_digest(candidate->digest) : find_gain(lab, candidate->digest);
}

static void remember(scripted_lab *lab, const char *digest, double gain)
{
    if (lab->known_count == LAB_MOST)
        return;
    memcpy(lab->known[lab->known_count].digest, digest, MGL_SHA256_HEX);
    lab->known[lab->known_count++].gain = gain;
}

/* ---- the lab --------------------------------------------------------------------------------- */

static mgl_status get_device(mgl_lab *self, mgl_lab_device *out, mgl_error *err)
{
    (void)self, (void)err;
    *out = (mgl_lab_device){.name = "scripted", .driver = "1"};
    return MGL_OK;
}

static mgl_status start(mgl_lab *self, const mgl_candidate *incumbent, mgl_error *err)
{
    scripted_lab *lab = lab_of(self);
    lab->starts++;
    memcpy(lab->incumbent, incumbent->digest, MGL_SHA256_HEX);
    lab->incumbent_gain = gain_of(lab, incumbent);
    return fail_if_broken(lab, err);
}

static mgl_status check(mgl_lab *self, const mgl_candidate *candidate,
                        const unsigned char nonce[MGL_SHA256_BYTES], mgl_lab_check *out,
                        mgl_error *err)
{
    static const lab_script nothing = {0};
    scripted_lab *lab = lab_of(self);
    bool itself = !strcmp(candidate->digest, lab->incumbent);
    *out = (mgl_lab_check){.outcome = MGL_OUTCOME_OK};
    lab->clock += 0.5;
    lab->now = &nothing;
    if (!itself) {
        if (lab->checks < lab->script_count)
            lab->now = &lab->script[lab->checks];
        memcpy(lab->nonces[lab->checks % LAB_MOST], nonce, MGL_SHA256_BYTES);
        lab->checks++;
    }
    if (lab->now->failure)
        return mgl_fail(err, lab->now->failure, "lab", "the worker is gone");
    memcpy(lab->candidate, candidate->digest, MGL_SHA256_HEX);
    lab->candidate_gain = itself                           ? lab->incumbent_gain
                          : lab->by_digest || lab->by_cost ? gain_of(lab, candidate)
                                                           : lab->now->gain;
    remember(lab, candidate->digest, lab->candidate_gain);
    out->outcome = lab->now->check;
    for (int w = 0; w < MGL_MAX_WORKLOADS; w++) {
        out->defaults[w] = 1e-3;
        out->errors[w] = 1e-3 * (lab->now->error > 0 ? lab->now->error : 1);
    }
    mgl_format_into(out->diagnostic, sizeof out->diagnostic, "scripted");
    return fail_if_broken(lab, err);
}

static mgl_status measure(mgl_lab *self, int workload, int count, uint64_t seed, bool control,
                          mgl_pair *out, mgl_outcome *outcome,
                          char diagnostic[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err)
{
    scripted_lab *lab = lab_of(self);
    simulator s = {.seed = lab->seed ? lab->seed + (uint64_t)lab->pairs : seed,
                   .kind = NOISE_NORMAL,
                   .spread = lab->noise > 0 ? lab->noise : NOISE};
    double gain = control ? 0 : lab->candidate_gain - lab->incumbent_gain;
    *outcome = control ? MGL_OUTCOME_OK : lab->now->pair;
    lab->controls += control;
    lab->pairs += !control;
    if (control && lab->bad_controls > 0 && lab->bad_controls--)
        gain = 0.02;
    if (control && lab->failing_controls > 0 && lab->failing_controls--)
        *outcome = MGL_OUTCOME_HANG;
    mgl_format_into(diagnostic, MGL_MAX_DIAGNOSTIC + 1, "scripted");
    simulator_pairs(&s, gain, workload, 0, count, out);
    for (int i = 0; i < count; i++) {
        double unit = DEFAULT_US / 600 * exp(-lab->incumbent_gain); /* pairs are of 600 us */
        out[i].incumbent_us *= unit;
        out[i].candidate_us *= unit;
        out[i].dropped |= lab->competing > 0;
        lab->clock += 32e-6 * (out[i].incumbent_us + out[i].candidate_us);
    }
    lab->competing -= lab->competing > 0;
    return fail_if_broken(lab, err);
}

static mgl_status find_floor(mgl_lab *self, int workload, bool again, double *us, mgl_error *err)
{
    (void)workload, (void)again;
    scripted_lab *lab = lab_of(self);
    *us = lab->now && lab->now->below_floor ? 2 * DEFAULT_US : 1;
    return fail_if_broken(lab, err);
}

static mgl_status promote(mgl_lab *self, mgl_error *err)
{
    scripted_lab *lab = lab_of(self);
    lab->promotions++;
    if (lab->fails_promotion) {
        lab->fails_promotion = false;
        lab->broken = true;
    }
    memcpy(lab->incumbent, lab->candidate, MGL_SHA256_HEX);
    lab->incumbent_gain = lab->candidate_gain;
    return fail_if_broken(lab, err);
}

static void prepare(mgl_lab *self, const mgl_candidate *candidate)
{
    (void)candidate;
    lab_of(self)->prepared++;
}

static bool is_ready(mgl_lab *self, const mgl_candidate *candidate)
{
    scripted_lab *lab = lab_of(self);
    int i = 0;
    while (i < lab->looked_count && strcmp(lab->looked[i].digest, candidate->digest) != 0)
        i++;
    if (i == lab->looked_count && i < LAB_MOST) {
        memcpy(lab->looked[i].digest, candidate->digest, MGL_SHA256_HEX);
        lab->looked[lab->looked_count++].checks = lab->checks;
    }
    return i >= lab->slow_count || lab->checks - lab->looked[i].checks >= lab->slow[i];
}

void scripted_lab_compile(scripted_lab *lab, const int *slow, int count)
{
    lab->lab.is_ready = is_ready;
    lab->slow = slow;
    lab->slow_count = count;
}

static void close_lab(mgl_lab *self)
{
    (void)self;
}

void scripted_lab_init(scripted_lab *lab)
{
    *lab = (scripted_lab){.lab = {.measures = true,
                                  .executes = true,
                                  .compilers = 2,
                                  .get_device = get_device,
                                  .start = start,
                                  .check = check,
                                  .pair = measure,
                                  .floor = find_floor,
                                  .promote = promote,
                                  .prepare = prepare,
                                  .close = close_lab}};
}

double scripted_lab_clock(void *lab)
{
    return ((scripted_lab *)lab)->clock;
}

/* ---- the proposer ---------------------------------------------------------------------------- */

static void draw_knobs(const mgl_search_space *space, uint64_t seed, mgl_schedule_config *out)
{
    int count = 1 + (int)mgl_draw_below(&seed, 2);
    for (int i = 0; i < count; i++) {
        const mgl_knob *knob = &space->knobs[mgl_draw_below(&seed, (uint64_t)space->count)];
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
    p->outcomes[p->told++ % LAB_MOST] = trial->outcome;
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
