/*
 * Timing of a trial in a campaign: the stages of measure.h for an attempt. Each stage takes the
 * state of the campaign (number of decisions, accumulated loss, program sizes) and brings it up to
 * date. A failure of the runner leaves the trial UNMEASURED.
 */
#include "autotune/search/campaign_parts.h"

#include <string.h>

/* Size of a program. A program is simpler if some of these are less and none is more. */
typedef struct size {
    int tasks, counters, waits, signals;
} size;

static size count_parts(const mgl_candidate *candidate)
{
    size all = {0};
    for (int p = 0; p < candidate->program_count; p++) {
        const mgl_program *program = candidate->programs[p];
        all.tasks += program->task_count;
        all.counters += program->counter_count;
        all.waits += program->wait_count;
        all.signals += program->signal_count;
    }
    return all;
}

static bool is_simpler(const campaign *c, const attempt *a)
{
    size old = count_parts(&c->incumbent), new = count_parts(&a->candidate);
    return new.tasks <= old.tasks &&new.counters <= old.counters &&new.waits <=
               old.waits &&new.signals <= old.signals &&memcmp(&old, &new, sizeof old) !=
           0;
}

static mgl_status restart(void *user, const mgl_trial *trial, mgl_error *err)
{
    campaign *c = user;
    mgl_status status = campaign_tell(c, false, "again", trial, err, "trial %lld: %s: once more",
                                      (long long)trial->number, trial->verdict.diagnostic);
    return status ? status : campaign_restart_runner(c, err);
}

mgl_measurement measure_begin(campaign *c, attempt *a)
{
    return (mgl_measurement){.runner = c->o->runner,
                             .candidate = &a->candidate,
                             .trial = &a->trial,
                             .draws = &a->seed,
                             .decision = c->decisions + 1,
                             .lost = c->lost,
                             .simpler = is_simpler(c, a),
                             .abort = c->o->abort,
                             .restart = restart,
                             .user = c,
                             .decided = a->decided};
}

/* Brings the campaign up to date after a stage. */
static mgl_status finish(campaign *c, attempt *a, const mgl_measurement *m, mgl_status status,
                         mgl_error *err)
{
    static const campaign_stretch stretches[MGL_MEASURE_PARTS] = {
        [MGL_MEASURE_CHECK] = CAMPAIGN_CHECK,
        [MGL_MEASURE_PAIRS] = CAMPAIGN_PAIRS,
        [MGL_MEASURE_FLOOR] = CAMPAIGN_FLOOR};
    for (int p = 0; p < MGL_MEASURE_PARTS; p++) {
        c->spent.stretches[stretches[p]].seconds += m->spent[p].seconds;
        c->spent.stretches[stretches[p]].count += m->spent[p].count;
    }
    a->decided = m->decided;
    c->decisions += m->counted;
    c->disturbed |= m->disturbed;
    return campaign_forgive(c, a, status, err);
}

mgl_status measure_screen(campaign *c, attempt *a, mgl_error *err)
{
    mgl_measurement m = measure_begin(c, a);
    mgl_status status = mgl_measure_screen(&m, err);
    return finish(c, a, &m, status, err);
}

mgl_status measure_survivors(campaign *c, attempt *a, mgl_error *err)
{
    mgl_measurement m = measure_begin(c, a);
    mgl_status status = mgl_measure_survivors(&m, err);
    return finish(c, a, &m, status, err);
}

mgl_status measure_decision(campaign *c, attempt *a, mgl_error *err)
{
    mgl_measurement m = measure_begin(c, a);
    mgl_status status = mgl_measure_decision(&m, err);
    if (!status && m.counted)
        status = mgl_measure_floors(&m, err);
    return finish(c, a, &m, status, err);
}
