/*
 * The loop of a campaign, and its start, limits and end. A trial is a proposal and its result:
 *
 *     proposal     a submission from outside, or a proposer's       campaign_source.c
 *     order        first what needs no compiler                     campaign_ahead.c
 *     gates        parse, lower, digest, validator, cost model      gate.c
 *     correctness  the runner, on a nonce drawn after the proposal  campaign_trial.c
 *     clock        pairs with the incumbent, stage by stage         campaign_measure.c
 *     decision     judge.c, then the floor
 *
 * Every tenth trial is a control: the incumbent against itself (campaign_control.c). A trial is one
 * transaction of the store, and there is no other state. A run that resumes reads the store, passes
 * every trial to the proposers in order, and starts the runner with the store's incumbent. It
 * continues with the next number, whose seed is the same as in an uninterrupted run. Therefore a
 * new incumbent is stored before the runner promotes it.
 */
#include "autotune/search/campaign_parts.h"

#include "autotune/answers/answer.h"
#include "autotune/store/frozen.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/sha256.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const double save_s = 10;  /* between two updates of the time in the store */
static const double idle_s = 0.2; /* seconds to wait if other workers hold all numbers */
/* between two polls of proposers that have nothing to propose yet */
static const double look_s = 0.05;

uint64_t mgl_campaign_seed(uint64_t seed, int64_t number)
{
    unsigned char hash[MGL_SHA256_BYTES], bytes[16];
    uint64_t out = 0;
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(seed >> 8 * i);
        bytes[8 + i] = (unsigned char)((uint64_t)number >> 8 * i);
    }
    mgl_sha256_of(bytes, sizeof bytes, hash);
    for (int i = 0; i < 8; i++)
        out |= (uint64_t)hash[i] << 8 * i;
    return out;
}

/* ---- time ------------------------------------------------------------------------------------ */

double campaign_clock(const campaign *c)
{
    return c->o->clock ? c->o->clock(c->o->user) : mgl_clock_s();
}

double campaign_spent(const campaign *c)
{
    return c->before + campaign_clock(c) - c->began;
}

mgl_status campaign_wait(campaign *c, double seconds, mgl_error *err)
{
    const struct timespec step = {.tv_nsec = 20 * 1000 * 1000};
    const double start = mgl_clock_s(), end = start + seconds;
    mgl_status status = mgl_check_abort(c->o->abort, err);
    while (!status && !c->o->clock && mgl_clock_s() < end) {
        nanosleep(&step, NULL);
        status = mgl_check_abort(c->o->abort, err);
    }
    campaign_note(c, CAMPAIGN_PAUSE, start);
    return status;
}

/* Stores the time regularly, so that a killed run loses little of it. */
static mgl_status save_time(campaign *c, mgl_error *err)
{
    double now = campaign_clock(c);
    if (now - c->saved < save_s)
        return MGL_OK;
    c->saved = now;
    c->record->seconds = campaign_spent(c);
    return mgl_store_set_state(c->o->store, c->record->id, "running", NULL, c->record->seconds,
                               err);
}

/* ---- events ---------------------------------------------------------------------------------- */

mgl_status campaign_tell(campaign *c, bool kept, const char *kind, const mgl_trial *trial,
                         mgl_error *err, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    mgl_format_list(text, sizeof text, format, args);
    va_end(args);
    mgl_campaign_event event = {.kind = kind, .text = text, .trial = trial};
    if (c->o->on_event)
        c->o->on_event(c->o->user, &event);
    return kept ? mgl_store_add_event(c->o->store, c->record->id, kind, text, err) : MGL_OK;
}

void campaign_end(campaign *c, const char *state, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mgl_format_list(c->reason, sizeof c->reason, format, args);
    va_end(args);
    c->over = state;
}

mgl_status campaign_teach(campaign *c, const mgl_trial *trial, mgl_error *err)
{
    const mgl_campaign_options *o = c->o;
    mgl_status status = MGL_OK;
    campaign_await_early(c);
    for (int i = 0; i < o->proposer_count && !status; i++)
        status = o->proposers[i].proposer->learn(o->proposers[i].proposer, trial, err);
    return status;
}

void campaign_count_keep(campaign *c, const mgl_trial *trial)
{
    if (trial->verdict.outcome != MGL_OUTCOME_OK || trial->control)
        return;
    c->gained += trial->gain;
    c->lost = mgl_judge_add_loss(c->lost, trial);
}

/* The worker was silent for too long, and another worker took over the trial. */
static mgl_status lose_trial(campaign *c, mgl_trial *trial, mgl_error *err)
{
    trial->verdict.outcome = MGL_OUTCOME_UNMEASURED;
    mgl_format_into(trial->verdict.diagnostic, sizeof trial->verdict.diagnostic,
                    "another worker took over this trial");
    return campaign_tell(c, true, "error", NULL, err, "trial %lld: %s", (long long)trial->number,
                         trial->verdict.diagnostic);
}

mgl_status campaign_store_trial(campaign *c, mgl_trial *trial, mgl_error *err)
{
    double at = mgl_clock_s();
    mgl_status status = mgl_store_add_trial(c->o->store, trial, err);
    at = campaign_note(c, CAMPAIGN_STORE, at);
    c->taken = 0;
    if (status == MGL_USAGE && c->worker)
        return lose_trial(c, trial, err);
    if (status)
        return status;
    if (!c->worker)
        c->record->trials = trial->number;
    if (trial->verdict.outcome == MGL_OUTCOME_OK && !trial->control)
        c->record->incumbent = trial->number;
    if (!c->worker) /* a worker counts its own trial later, when it reads all new trials from the
                     * store */
        campaign_count_keep(c, trial);
    if (!trial->control && !c->worker)
        status = campaign_teach(c, trial, err);
    campaign_note(c, CAMPAIGN_LEARN, at);
    return status ? status : save_time(c, err);
}

/* ---- start ----------------------------------------------------------------------------------- */

static mgl_status check_manifest(const campaign *c, mgl_error *err)
{
    const char *now = mgl_frozen_digest();
    if (!strcmp(c->record->manifest, now))
        return MGL_OK;
    return mgl_fail(err, MGL_GATE, c->record->name,
                    "%s: the campaign began under manifest %.12s, this program has %.12s; %s "
                    "`campaign resume --rebase` does, too.",
                    mgl_outcome_name(MGL_OUTCOME_FROZEN_TAMPERED), c->record->manifest, now,
                    mgl_outcome_hint(MGL_OUTCOME_FROZEN_TAMPERED));
}

/* Replays a trial of an earlier run. */
static mgl_status replay(void *user, const mgl_trial *trial, mgl_error *err)
{
    campaign *c = user;
    c->before += trial->seconds;
    campaign_count_keep(c, trial);
    if (trial->control)
        c->bad_controls =
            trial->verdict.outcome == MGL_OUTCOME_SUSPICIOUS ? c->bad_controls + 1 : 0;
    mgl_status status = mgl_check_abort(c->o->abort, err);
    return status || trial->control ? status : campaign_teach(c, trial, err);
}

static mgl_status replay_all(campaign *c, mgl_error *err)
{
    mgl_status status =
        c->worker ? campaign_hear(c, err)
                  : mgl_store_each_trial(c->o->store, c->record->id, 1, 0, replay, c, err);
    if (c->worker)
        c->record->incumbent = c->newest;
    if (!status)
        status = mgl_store_count_decisions(c->o->store, c->record->id, &c->decisions, err);
    if (c->before < c->record->seconds)
        c->before = c->record->seconds;
    return status;
}

/* The default and the incumbent must pass all gates. */
static mgl_status pass_gates(const campaign *c, const mgl_proposal *proposal, const char *what,
                             mgl_candidate *out, mgl_error *err)
{
    mgl_status status = mgl_gate_pass(c->subject, proposal, c->o->abort, out, err);
    if (status || out->verdict.outcome == MGL_OUTCOME_UNMEASURED)
        return status;
    status =
        mgl_fail(err, out->verdict.outcome == MGL_OUTCOME_REJECTED ? MGL_REJECTED : MGL_BAD_INPUT,
                 what, "the campaign cannot begin with this config: %s: %s",
                 mgl_outcome_name(out->verdict.outcome), out->verdict.diagnostic);
    mgl_candidate_clear(out);
    return status;
}

/* Requires that the stored proposal still lowers to the program that was measured. */
static mgl_status check_incumbent(const campaign *c, const mgl_trial *trial, mgl_error *err)
{
    if (!strcmp(trial->digest, c->incumbent.digest))
        return MGL_OK;
    return mgl_fail(err, MGL_GATE, c->record->name,
                    "trial %lld was kept, but its proposal no longer gives the program that was "
                    "measured: lowering or the store has changed; `campaign best -o F`, and "
                    "`campaign submit F` to a new campaign, measure it again",
                    (long long)trial->number);
}

mgl_status campaign_load_incumbent(campaign *c, mgl_error *err)
{
    mgl_trial trial = {0};
    mgl_candidate_clear(&c->incumbent);
    mgl_status status =
        mgl_store_get_trial(c->o->store, c->record->id, c->record->incumbent, false, &trial, err);
    if (!status)
        status = pass_gates(c, &trial.proposal, "the incumbent", &c->incumbent, err);
    if (!status)
        status = check_incumbent(c, &trial, err);
    mgl_trial_clear(&trial);
    return status;
}

static mgl_status find_incumbent(campaign *c, mgl_error *err)
{
    mgl_candidate first;
    mgl_proposal start = {.config = c->subject->start};
    mgl_status status = pass_gates(c, &start, "the default", &first, err);
    if (status)
        return status;
    memcpy(c->first, first.digest, sizeof c->first);
    c->first_predicted = first.predicted;
    c->incumbent = first;
    return c->record->incumbent ? campaign_load_incumbent(c, err) : MGL_OK;
}

mgl_status campaign_restart_runner(campaign *c, mgl_error *err)
{
    const double at = mgl_clock_s();
    mgl_status status = c->o->runner->start(c->o->runner, &c->incumbent, err);
    campaign_note(c, CAMPAIGN_RUNNER, at);
    return status;
}

enum { LOCK_NAME = 40 };

static void name_lock(int64_t id, char name[LOCK_NAME])
{
    mgl_format_into(name, LOCK_NAME, "none:%lld", (long long)id);
}

mgl_status mgl_campaign_lock(mgl_store *store, int64_t id, mgl_store_lock **out, mgl_error *err)
{
    char name[LOCK_NAME];
    *out = NULL;
    if (mgl_store_is_shared(store))
        return campaign_check_workers(store, id, err);
    name_lock(id, name);
    return mgl_store_lock_take(store, name, out, err);
}

mgl_status mgl_campaign_is_run(mgl_store *store, int64_t id, bool *out, mgl_error *err)
{
    char name[LOCK_NAME];
    if (mgl_store_is_shared(store))
        return campaign_has_workers(store, id, out, err);
    name_lock(id, name);
    return mgl_store_lock_look(store, name, out, err);
}

mgl_status mgl_campaign_lock_path(mgl_store *store, int64_t id, mgl_text *out, mgl_error *err)
{
    char name[LOCK_NAME];
    name_lock(id, name);
    return mgl_store_is_shared(store) ? MGL_OK : mgl_store_lock_path(store, name, out, err);
}

bool mgl_campaign_was_interrupted(mgl_store *store, int64_t id)
{
    char name[LOCK_NAME];
    name_lock(id, name);
    return !mgl_store_is_shared(store) && mgl_store_lock_is_marked(store, name);
}

mgl_status campaign_take_locks(const campaign *c, campaign_locks *out, mgl_error *err)
{
    bool shared = mgl_store_is_shared(c->o->store);
    mgl_status status =
        shared ? MGL_OK : mgl_campaign_lock(c->o->store, c->record->id, &out->whole, err);
    if (!status && c->device.uuid[0])
        status = mgl_store_lock_take(c->o->store, c->device.uuid, &out->device, err);
    if (!status && shared)
        status = mgl_campaign_check_kind(c->record, &c->device, err);
    out->taken = !status;
    if (status) {
        mgl_store_lock_release(out->device);
        mgl_store_lock_release(out->whole);
        *out = (campaign_locks){0};
    }
    return status;
}

void campaign_release_locks(campaign_locks *held)
{
    mgl_store_lock_release(held->device);
    mgl_store_lock_release(held->whole);
    *held = (campaign_locks){0};
}

/* Clears an old stop request. A request applies only to the workers that were running then. */
static mgl_status forget_stop(const campaign *c, mgl_error *err)
{
    int64_t workers = 0;
    mgl_status status =
        c->worker ? mgl_store_count_workers(c->o->store, c->record->id, &workers, err) : MGL_OK;
    return status || workers > 1 ? status
                                 : mgl_store_ask_stop(c->o->store, c->record->id, false, err);
}

/* Reports once in a campaign's life that the device has no fitted costs. A runner that executes
 * without a clock screens nothing, so no report is needed. */
static mgl_status tell_of_costs(campaign *c, mgl_error *err)
{
    const mgl_runner *runner = c->o->runner;
    if (c->o->subject->has_costs || c->record->trials > 0 ||
        (runner->executes && !runner->measures))
        return MGL_OK;
    return campaign_tell(c, true, "costs", NULL, err,
                         "the costs of %.60s (%s) are not known: times are not predicted, trials "
                         "are not screened, and proposers use only measured trials",
                         c->device.name, c->record->target);
}

static mgl_status begin(campaign *c, campaign_locks *held, mgl_error *err)
{
    const mgl_campaign_options *o = c->o;
    mgl_status status = check_manifest(c, err);
    if (!status)
        status = o->runner->get_device(o->runner, &c->device, err);
    if (!status)
        status = campaign_take_locks(c, held, err);
    if (!status && c->device.sandbox[0])
        status = campaign_tell(c, true, "sandbox", NULL, err, "%s", c->device.sandbox);
    if (!status)
        status = tell_of_costs(c, err);
    if (!status)
        status = campaign_join(c, err);
    if (!status)
        status = replay_all(c, err);
    if (!status)
        status = find_incumbent(c, err);
    if (!status)
        status = forget_stop(c, err);
    if (!status)
        status = mgl_store_set_state(o->store, c->record->id, "running", NULL, c->before, err);
    campaign_note(c, CAMPAIGN_START, c->spent.began);
    if (!status)
        status = campaign_begin_ahead(c, err);
    if (!status)
        status = campaign_restart_runner(c, err);
    if (!status)
        status = campaign_tell(c, false, "start", NULL, err, "%s, %lld trials so far, %s%s",
                               c->record->name, (long long)c->record->trials, c->device.name,
                               o->runner->executes ? ", on synthetic weights of its shape" : "");
    const double at = mgl_clock_s();
    if (!status)
        status = campaign_test_machine(c, err);
    campaign_note(c, CAMPAIGN_SELF_TEST, at);
    return status;
}

/* ---- one step -------------------------------------------------------------------------------- */

static mgl_status check_disk(const campaign *c, mgl_error *err)
{
    uint64_t least = c->o->least_disk ? c->o->least_disk : MGL_LEAST_DISK, bytes = 0;
    const char *path = mgl_store_beside(c->o->store);
    mgl_status status = mgl_disk_free(path, &bytes, err);
    if (!status && bytes < least)
        status = mgl_fail(err, MGL_SYSTEM, path,
                          "too little disk space: %.2f GB are free; a campaign needs %.2f GB; free "
                          "some space, and the campaign continues",
                          (double)bytes * 1e-9, (double)least * 1e-9);
    return status;
}

/* Ends the campaign if a limit is reached. */
static mgl_status check_limits(campaign *c, mgl_error *err)
{
    const mgl_campaign_options *o = c->o;
    bool stop = false;
    mgl_status status = mgl_check_abort(o->abort, err);
    if (!status)
        status = mgl_store_is_stop_asked(o->store, c->record->id, &stop, err);
    if (!status)
        status = check_disk(c, err);
    if (status)
        return status;
    if (stop)
        campaign_end(c, "stopped", "it was asked to stop");
    else if (o->max_trials > 0 && c->record->trials >= o->max_trials)
        campaign_end(c, "ended", "its %lld trials are made", (long long)o->max_trials);
    else if (o->until_gain > 0 && c->gained >= log1p(o->until_gain))
        campaign_end(c, "ended", "it is %.2f %% faster than it began", 100 * expm1(c->gained));
    else if (o->max_seconds > 0 && campaign_spent(c) >= o->max_seconds)
        campaign_end(c, "ended", "its %.2f hours are over", o->max_seconds / 3600);
    return MGL_OK;
}

static mgl_status step(campaign *c, mgl_error *err)
{
    mgl_proposer_answer answer = MGL_PROPOSED;
    attempt a;
    int64_t number = 0;
    mgl_status status = check_limits(c, err);
    if (!status && !c->over)
        status = campaign_take_number(c, &number, err);
    if (status || c->over)
        return status;
    if (!number)
        return campaign_wait(c, idle_s, err);
    if (campaign_wants_control(c, number))
        return campaign_run_control(c, number, err);
    status = campaign_find_attempt(c, &a, &answer, err);
    if (!status && answer == MGL_PROPOSED) {
        campaign_look_early(c);
        status = campaign_try(c, &a, err);
    } else if (!status && answer == MGL_NOT_YET) {
        status = campaign_wait(c, look_s, err);
    } else if (!status) {
        campaign_end(c, "ended", "the proposers have nothing left to propose");
    }
    attempt_clear(&a);
    return status;
}

/* ---- end ------------------------------------------------------------------------------------- */

static const char *kind_of_end(const campaign *c, mgl_status status)
{
    if (!strcmp(c->over, "running"))
        return MGL_QUARANTINED_EVENT;
    return status == MGL_OK ? "end" : status == MGL_INTERRUPTED ? "pause" : "error";
}

/* Stores and reports the final state. The error that ended the run has priority over an error while
 * reporting. */
static mgl_status finish(campaign *c, mgl_status status, mgl_error *err)
{
    mgl_error late = {0};
    if (status == MGL_INTERRUPTED)
        campaign_end(c, "paused", MGL_INTERRUPTED_REASON);
    else if (status)
        campaign_end(c, "paused", "%s%s%s", err->where, err->where[0] ? ": " : "", err->message);
    c->record->seconds = campaign_spent(c);
    bool last = true;
    mgl_status told = campaign_leave(c, &last, &late);
    if (!told && last) /* the last worker stores the state; otherwise other workers continue */
        told = mgl_store_set_state(c->o->store, c->record->id, c->over, c->reason,
                                   c->record->seconds, &late);
    if (!told)
        told = campaign_tell_spent(c, &late);
    if (!told)
        told = campaign_tell(c, true, kind_of_end(c, status), NULL, &late, "%s", c->reason);
    if (!told) {
        mgl_free(c->record->state);
        mgl_free(c->record->reason);
        c->record->state = mgl_strdup(c->over);
        c->record->reason = mgl_strdup(c->reason);
    }
    if (!status && told) {
        *err = late;
        return told;
    }
    return status;
}

mgl_status mgl_campaign_run(const mgl_campaign_options *options, mgl_error *err)
{
    mgl_error own = {0};
    campaign_locks held = {0};
    campaign c = {.o = options, .subject = options->subject, .record = options->record};
    c.began = c.saved = campaign_clock(&c);
    campaign_start_spending(&c);
    mgl_status status = begin(&c, &held, &own);
    bool refused = status && !held.taken; /* another process holds the lock, and it maintains the
                                           * state */
    while (!status && !c.over)
        status = step(&c, &own);
    if (!refused)
        status = finish(&c, status, &own);
    campaign_forget_ahead(&c);
    mgl_candidate_clear(&c.incumbent);
    campaign_release_locks(&held);
    if (status && err)
        *err = own;
    return status;
}
