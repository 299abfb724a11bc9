/* Control of a campaign from another process: stop, correct the reported state, delete, submit
 * proposals and wait for their verdicts. Implements the last part of tune.h. */
#include "autotune/tune.h"

#include "autotune/store/frozen.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "vm/cuda/cache.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- control --------------------------------------------------------------------------------- */

mgl_status mgl_tune_stop(mgl_store *store, const mgl_campaign_record *campaign, bool *running,
                         mgl_error *err)
{
    mgl_store_lock *lock = NULL;
    mgl_status status = mgl_campaign_lock(store, campaign->id, &lock, err);
    *running = status == MGL_DEVICE;
    if (*running)
        return mgl_store_ask_stop(store, campaign->id, true, err);
    /* the campaign may have ended before the lock was taken */
    mgl_campaign_record now = {0};
    if (!status)
        status = mgl_store_find_campaign(store, campaign->name, &now, err);
    bool ended = now.state && !strcmp(now.state, "ended");
    if (!status && !ended) /* an ended campaign keeps its reason */
        status = mgl_store_set_state(store, campaign->id, "stopped", "it was asked to stop",
                                     now.seconds, err);
    mgl_campaign_record_clear(&now);
    mgl_store_lock_release(lock);
    return status;
}

mgl_status mgl_tune_look_state(mgl_store *store, mgl_campaign_record *campaign, mgl_error *err)
{
    bool held = false, begun = campaign->trials > 0 || campaign->seconds > 0;
    if (!campaign->state || strcmp(campaign->state, "running") != 0)
        return MGL_OK;
    mgl_status status = mgl_campaign_is_run(store, campaign->id, &held, err);
    const bool interrupted = !status && mgl_campaign_was_interrupted(store, campaign->id);
    if (status || (held && !interrupted))
        return status;
    char *state = mgl_strdup(interrupted ? "paused" : begun ? "killed" : "waiting");
    char *reason =
        mgl_strdup(interrupted ? MGL_INTERRUPTED_REASON
                               : "no process runs it; `megalith campaign resume` continues it");
    if (!state || !reason) {
        mgl_free(state);
        mgl_free(reason);
        return mgl_fail_memory(err, 1);
    }
    mgl_free(campaign->state);
    mgl_free(campaign->reason);
    campaign->state = state;
    campaign->reason = reason;
    return MGL_OK;
}

/* Removes the kernels, the log and the pid file of a campaign. A file that cannot be removed is not
 * an error, because the campaign is already deleted. Kernels in use stay. */
static void remove_files(const mgl_store *store, const char *name)
{
    static const struct {
        const char *before, *after;
    } files[] = {{".", ".log"}, {".", ".pid"}, {".kernels/", ""}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        mgl_text path = {0};
        uint64_t left;
        mgl_text_format(&path, "%s%s%s%s", mgl_store_beside(store), files[i].before, name,
                        files[i].after);
        if (!path.failed) {
            mgl_cuda_cache_trim(path.bytes, 0, &left, NULL); /* trim the folder, if it exists */
            remove(path.bytes);
        }
        mgl_text_clear(&path);
    }
}

mgl_status mgl_tune_delete(mgl_store *store, const mgl_campaign_record *campaign, mgl_error *err)
{
    mgl_store_lock *lock = NULL;
    mgl_status status = mgl_campaign_lock(store, campaign->id, &lock, err);
    if (!status)
        status = mgl_store_delete_campaign(store, campaign->id, err);
    if (!status)
        remove_files(store, campaign->name);
    mgl_store_lock_release(lock);
    return status;
}

/* ---- submissions ----------------------------------------------------------------------------- */

/* The store holds text only: rejects proposals that are empty, too long, contain a 0 byte or are
 * not UTF-8. */
static mgl_status check_text(const char *text, size_t length, mgl_error *err)
{
    if (length > MGL_SCHEDULE_MAX_TEXT)
        return mgl_fail(err, MGL_BAD_INPUT, "proposal",
                        "is too large: %zu bytes; at most %d are allowed", length,
                        MGL_SCHEDULE_MAX_TEXT);
    if (!length || memchr(text, 0, length))
        return mgl_fail(err, MGL_BAD_INPUT, "proposal", "%s",
                        length ? "contains a zero byte; a proposal is text" : "is empty");
    if (mgl_utf8_valid(text, length) != length)
        return mgl_fail(err, MGL_BAD_INPUT, "proposal", "is not UTF-8");
    return MGL_OK;
}

mgl_status mgl_tune_submit(mgl_store *store, const mgl_campaign_record *campaign, const char *text,
                           size_t length, const char *origin, int64_t *id, mgl_error *err)
{
    if (strcmp(campaign->manifest, mgl_frozen_digest()) != 0)
        return mgl_fail(err, MGL_GATE, campaign->name, "%s: %s",
                        mgl_outcome_name(MGL_OUTCOME_FROZEN_TAMPERED),
                        mgl_outcome_hint(MGL_OUTCOME_FROZEN_TAMPERED));
    mgl_status status = check_text(text, length, err);
    return status ? status : mgl_store_add_submission(store, campaign->id, text, origin, id, err);
}

/* Limit of the seconds between the creation of a record and its lock. The process takes the lock
 * only after its device has answered. */
enum { PATIENCE_S = 10 };

static bool is_beginning(const mgl_campaign_record *c)
{
    return c->trials == 0 && !(c->seconds > 0) && time(NULL) - c->created_unix < PATIENCE_S;
}

mgl_status mgl_tune_is_running(mgl_store *store, const char *name, bool *running, mgl_error *err)
{
    mgl_campaign_record now;
    bool held = false;
    mgl_status status = mgl_store_find_campaign(store, name, &now, err);
    if (status)
        return status;
    bool said = now.state && !strcmp(now.state, "running");
    if (said)
        status = mgl_campaign_is_run(store, now.id, &held, err);
    *running = said && (held || is_beginning(&now));
    mgl_campaign_record_clear(&now);
    return status;
}

mgl_status mgl_tune_await(mgl_store *store, const mgl_campaign_record *campaign, int64_t submission,
                          const atomic_int *abort, mgl_trial *out, mgl_error *err)
{
    const struct timespec step = {.tv_nsec = 50 * 1000 * 1000};
    *out = (mgl_trial){0};
    for (bool running = true;;) {
        mgl_submission s = {0};
        mgl_status status = mgl_store_get_submission(store, submission, &s, err);
        int64_t number = s.trial;
        mgl_submission_clear(&s);
        if (!status && number > 0)
            return mgl_store_get_trial(store, campaign->id, number, false, out, err);
        if (!status && !running)
            return MGL_OK;
        if (!status)
            status = mgl_tune_is_running(store, campaign->name, &running, err);
        if (!status)
            status = mgl_check_abort(abort, err);
        if (status)
            return status;
        nanosleep(&step, NULL);
    }
}
