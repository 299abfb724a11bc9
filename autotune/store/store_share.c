/*
 * Implements store_share.h for PostgreSQL: leases of workers, and reservations of trial numbers and
 * submissions. All times are the server's, because clocks of machines differ.
 *
 * A free number is reserved with SKIP LOCKED, so workers do not wait for each other. A new number,
 * a submission and the storing of a trial first lock the campaign's row, so each sees the effects
 * of the others. A thread with its own connection renews the lease, because a compilation may take
 * longer than the lease.
 */
#include "autotune/store/store_share.h"
#include "autotune/store/store_query.h"

#include "base/file.h"
#include "base/format.h"
#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOW   "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"
#define LEASE "30"
#define FRESH NOW " + " LEASE
enum { BEAT_S = 5 };

struct mgl_store_worker {
    mgl_store *store; /* borrowed */
    int64_t campaign, id;
    char boot[120]; /* boot id and PID namespace of the machine */
    char device[128], uuid[48];
    pthread_t thread;
    bool beats;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool over;            /* protected by the lock */
    int64_t id_of_thread; /* protected by the lock: the worker's id */
};

/* ---- liveness -------------------------------------------------------------------------------- */

/* Two containers on one machine have the same boot id, but different PID namespaces. */
static void read_boot(char *out, size_t size)
{
    char *boot = NULL, space[64];
    size_t length = 0;
    if (mgl_file_read("/proc/sys/kernel/random/boot_id", 64, &boot, &length, NULL))
        boot = NULL;
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[n > 0 ? n : 0] = 0;
    mgl_format_into(out, size, "%.36s %s", boot ? boot : "", space);
    mgl_free(boot);
}

/* Whether the process has ended. Known only for the same boot id and PID namespace. */
static bool is_dead(const char *boot, const char *here, int64_t pid)
{
    return boot && here[0] != ' ' && !strcmp(boot, here) && pid > 0 && pid <= INT32_MAX &&
           kill((pid_t)pid, 0) && errno == ESRCH;
}

mgl_status mgl_store_count_workers(mgl_store *store, int64_t campaign, int64_t *out, mgl_error *err)
{
    char here[120];
    read_boot(here, sizeof here);
    *out = 0;
    mgl_query q = mgl_query_open_with(
        store, "SELECT boot, pid FROM workers WHERE campaign = ? AND until >= " NOW,
        MGL_INTS(campaign), err);
    while (mgl_query_step(&q)) {
        char *boot = mgl_query_get_text(&q, 0);
        *out += !is_dead(boot, here, mgl_query_get_int(&q, 1));
        mgl_free(boot);
    }
    return mgl_query_close(&q);
}

static mgl_status remove_worker(mgl_store *store, int64_t id, mgl_error *err)
{
    return mgl_store_run(store, "DELETE FROM workers WHERE id = ?", MGL_INTS(id), err);
}

/* Removes workers with an expired lease or an ended process. Their numbers become free. */
static mgl_status remove_dead(mgl_store_worker *w, mgl_error *err)
{
    mgl_status status =
        mgl_store_run(w->store,
                      "DELETE FROM workers WHERE id IN (SELECT id FROM workers"
                      " WHERE campaign = ? AND until < " NOW " FOR UPDATE SKIP LOCKED)",
                      MGL_INTS(w->campaign), err);
    if (status)
        return status;
    mgl_query q =
        mgl_query_open_with(w->store, "SELECT id, pid FROM workers WHERE campaign = ? AND boot = ?",
                            MGL_INTS(w->campaign), err);
    mgl_query_put_text(&q, w->boot);
    while (mgl_query_step(&q))
        if (is_dead(w->boot, w->boot, mgl_query_get_int(&q, 1)))
            q.status = remove_worker(w->store, mgl_query_get_int(&q, 0), err);
    return mgl_query_close(&q);
}

/* ---- heartbeat ------------------------------------------------------------------------------- */

/* Renews the lease. True: the worker is still registered. */
static bool beat(mgl_store *store, int64_t id, mgl_status *status, mgl_error *err)
{
    int64_t known = 0;
    *status = mgl_store_ask(store, "UPDATE workers SET until = " FRESH " WHERE id = ? RETURNING id",
                            MGL_INTS(id), &known, err);
    return known != 0;
}

/* Renews the lease once. After a failure, the next call uses a new connection. */
static void beat_once(mgl_store **own, const char *url, int64_t id)
{
    mgl_status status = *own ? MGL_OK : mgl_store_open(url, true, own, NULL);
    if (!status)
        beat(*own, id, &status, NULL);
    if (status) {
        mgl_store_close(*own);
        *own = NULL;
    }
}

static void *run_heart(void *user)
{
    mgl_store_worker *w = user;
    mgl_store *own = NULL;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += BEAT_S;
        while (!w->over && !pthread_cond_timedwait(&w->woken, &w->lock, &until))
            ;
        int64_t id = w->id_of_thread;
        if (w->over)
            break;
        pthread_mutex_unlock(&w->lock);
        beat_once(&own, mgl_store_url(w->store), id);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    mgl_store_close(own);
    return NULL;
}

/* ---- joining and leaving --------------------------------------------------------------------- */

static mgl_status add_worker(mgl_store_worker *w, mgl_error *err)
{
    mgl_query q =
        mgl_query_open_with(w->store,
                            "INSERT INTO workers (campaign, pid, boot, device, device_uuid,"
                            " until) VALUES (?, ?, ?, ?, ?, " FRESH ") RETURNING id",
                            MGL_INTS(w->campaign, getpid()), err);
    mgl_query_put_text(&q, w->boot);
    mgl_query_put_text(&q, w->device);
    mgl_query_put_text(&q, w->uuid);
    w->id = w->store->worker = mgl_query_change(&q);
    pthread_mutex_lock(&w->lock);
    w->id_of_thread = w->id;
    pthread_mutex_unlock(&w->lock);
    return mgl_query_close(&q);
}

mgl_status mgl_store_join(mgl_store *store, int64_t campaign, const char *device, const char *uuid,
                          mgl_store_worker **out, mgl_error *err)
{
    *out = NULL;
    mgl_store_worker *w = mgl_alloc_zero(1, sizeof *w);
    if (!w)
        return mgl_fail_memory(err, sizeof *w);
    w->store = store;
    w->campaign = campaign;
    read_boot(w->boot, sizeof w->boot);
    mgl_format_into(w->device, sizeof w->device, "%s", device);
    mgl_format_into(w->uuid, sizeof w->uuid, "%s", uuid);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->woken, NULL);
    mgl_status status = add_worker(w, err);
    if (!status) {
        errno = pthread_create(&w->thread, NULL, run_heart, w);
        w->beats = !errno;
        if (errno)
            status = mgl_fail_errno(err, "--store", "a thread cannot be started");
    }
    if (status)
        mgl_store_leave(w);
    else
        *out = w;
    return status;
}

int64_t mgl_store_worker_id(const mgl_store_worker *w)
{
    return w->id;
}

void mgl_store_leave(mgl_store_worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->woken);
    pthread_mutex_unlock(&w->lock);
    if (w->beats)
        pthread_join(w->thread, NULL);
    if (w->id)
        remove_worker(w->store, w->id, NULL);
    w->store->worker = 0;
    pthread_cond_destroy(&w->woken);
    pthread_mutex_destroy(&w->lock);
    mgl_free(w);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static mgl_status take_free(mgl_store_worker *w, int64_t *number, mgl_error *err)
{
    return mgl_store_ask(w->store,
                         "UPDATE claims SET worker = ?1, submission = 0 WHERE campaign = ?2"
                         " AND number = (SELECT number FROM claims WHERE campaign = ?2"
                         "  AND worker IS NULL ORDER BY number LIMIT 1"
                         "  FOR UPDATE SKIP LOCKED) RETURNING number",
                         MGL_INTS(w->id, w->campaign), number, err);
}

/* Finds the smallest number above all stored and reserved numbers. */
static mgl_status find_new(mgl_store_worker *w, int64_t *number, mgl_error *err)
{
    return mgl_store_ask(w->store,
                         "SELECT 1 + greatest("
                         "(SELECT coalesce(max(number), 0) FROM trials WHERE campaign = ?1),"
                         "(SELECT coalesce(max(number), 0) FROM claims WHERE campaign = ?1))",
                         MGL_INTS(w->campaign), number, err);
}

static mgl_status take_new(mgl_store_worker *w, int64_t most, int64_t *number, mgl_error *err)
{
    *number = 0;
    mgl_status status = mgl_store_lock_campaign(w->store, w->campaign, err);
    if (!status)
        status = find_new(w, number, err);
    if (!status && most > 0 && *number > most)
        *number = 0;
    if (status || !*number)
        return status;
    return mgl_store_run(w->store, "INSERT INTO claims (campaign, number, worker) VALUES (?, ?, ?)",
                         MGL_INTS(w->campaign, *number, w->id), err);
}

/* Reserves a number. A worker that was removed registers again under another id. */
static mgl_status take_any(mgl_store_worker *w, int64_t most, int64_t *number, mgl_error *err)
{
    mgl_status status;
    bool known = beat(w->store, w->id, &status, err);
    if (!status && !known)
        status = add_worker(w, err);
    if (!status)
        status = remove_dead(w, err);
    if (!status)
        status = take_free(w, number, err);
    return status || *number ? status : take_new(w, most, number, err);
}

mgl_status mgl_store_take_number(mgl_store_worker *w, int64_t most, int64_t *number, mgl_error *err)
{
    *number = 0;
    mgl_status status = mgl_store_begin(w->store, err);
    if (status)
        return status;
    status = mgl_store_end(w->store, take_any(w, most, number, err), err);
    if (status)
        *number = 0;
    return status;
}

/* ---- submissions ----------------------------------------------------------------------------- */

static mgl_status find_submission(mgl_store_worker *w, int64_t *id, mgl_error *err)
{
    return mgl_store_ask(w->store,
                         "SELECT id FROM submissions WHERE campaign = ? AND trial = 0"
                         " AND NOT EXISTS (SELECT 1 FROM claims WHERE worker IS NOT NULL"
                         "  AND claims.campaign = submissions.campaign"
                         "  AND claims.submission = submissions.id)"
                         " ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
                         MGL_INTS(w->campaign), id, err);
}

static mgl_status claim_submission(mgl_store_worker *w, int64_t number, int64_t *id, mgl_error *err)
{
    mgl_status status = mgl_store_lock_campaign(w->store, w->campaign, err);
    if (!status)
        status = find_submission(w, id, err);
    if (status || !*id)
        return status;
    int64_t held = 0;
    status = mgl_store_ask(w->store,
                           "UPDATE claims SET submission = ? WHERE campaign = ?"
                           " AND number = ? AND worker = ? RETURNING number",
                           MGL_INTS(*id, w->campaign, number, w->id), &held, err);
    if (!held)
        *id = 0; /* another worker took over the number, so it will also take over the trial */
    return status;
}

mgl_status mgl_store_take_submission(mgl_store_worker *w, int64_t number, bool *found,
                                     mgl_submission *out, mgl_error *err)
{
    int64_t id = 0;
    *found = false;
    *out = (mgl_submission){0};
    mgl_status status = mgl_store_begin(w->store, err);
    if (status)
        return status;
    status = mgl_store_end(w->store, claim_submission(w, number, &id, err), err);
    *found = !status && id;
    return *found ? mgl_store_get_submission(w->store, id, out, err) : status;
}
