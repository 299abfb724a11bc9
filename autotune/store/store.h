/*
 * The store: all that a campaign knows, in one SQLite file (WAL, foreign keys, migrations), or on a
 * PostgreSQL server that several machines use ("postgresql://..."). Whatever returned MGL_OK
 * survives kill -9 and a loss of power; a trial is one transaction. Many processes may read; one
 * process a GPU runs campaigns (mgl_store_lock).
 *
 * Errors: MGL_BAD_INPUT for a path that is no store, a store of a newer version, and a network file
 * system; MGL_SYSTEM for a full or read-only disk and for another process that does not let go, in
 * a sentence that says what to do. Strings that the store hands out belong to the record.
 *
 * A store is used by one thread at a time, and functions that are called for each row do not write.
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_H
#define MGL_AUTOTUNE_STORE_STORE_H

#include "autotune/store/record.h"

typedef struct mgl_store mgl_store;

/* The default path: campaigns.db in $XDG_STATE_HOME/megalith, else ~/.local/state/megalith.
 * MGL_USAGE: neither is set. */
mgl_status mgl_store_default_path(mgl_text *out, mgl_error *err);

/* `path` NULL: the default. `write`: made where it does not stand (its folder too), brought to the
 * newest version. Without it nothing is changed, and a missing file is MGL_BAD_INPUT. */
mgl_status mgl_store_open(const char *path, bool write, mgl_store **out, mgl_error *err);
void mgl_store_close(mgl_store *store); /* NULL is fine */
/* What errors call it: the path, or host and database of a server. */
const char *mgl_store_path(const mgl_store *store);
/* What mgl_store_open takes for it. It may hold a password: never told, never stored. */
const char *mgl_store_url(const mgl_store *store);
/* Whether it names a file, and no server. */
bool mgl_store_is_path(const char *path);
/* What may be told of a path or URL before it is opened. */
const char *mgl_store_shown(const char *path);
/* A path that stands on this machine, with which the names of files begin that belong to the store.
 */
const char *mgl_store_beside(const mgl_store *store);
/* Whether several machines write it, and several workers run a campaign of it (store_share.h). */
bool mgl_store_is_shared(const mgl_store *store);

/* The lock of a device on this machine, by its UUID. "none:7" and "cpu:7" are no GPU: such a lock
 * is of campaign 7 of this store. Held until the process ends or mgl_store_lock_release.
 * MGL_DEVICE: another process has it, with its pid. */
typedef struct mgl_store_lock mgl_store_lock;
mgl_status mgl_store_lock_take(mgl_store *store, const char *uuid, mgl_store_lock **out,
                               mgl_error *err);
void mgl_store_lock_release(mgl_store_lock *lock); /* NULL is fine */
/* Whether a process has that lock; takes nothing, and makes no file. */
mgl_status mgl_store_lock_look(mgl_store *store, const char *uuid, bool *held, mgl_error *err);
/* A process that a signal ends in the middle of its work says so in the lock that it has, since the
 * store may be busy: mark is of any thread, and makes nothing of a lock that is not this process's.
 * The mark stands until somebody takes the lock. */
mgl_status mgl_store_lock_path(const mgl_store *store, const char *uuid, mgl_text *out,
                               mgl_error *err);
void mgl_store_lock_mark(const char *path);
bool mgl_store_lock_is_marked(const mgl_store *store, const char *uuid);

/* ---- campaigns ------------------------------------------------------------------------------- */

/* Adds one; sets its id, and when it was made where that is 0. MGL_USAGE: the name is not free, or
 * not 1 to 128 bytes without '/' and controls that do not begin with '.'. */
mgl_status mgl_store_add_campaign(mgl_store *store, mgl_campaign_record *campaign, mgl_error *err);
/* By name, or the newest for NULL. MGL_BAD_INPUT, with the names there are, when there is none. */
mgl_status mgl_store_find_campaign(mgl_store *store, const char *name, mgl_campaign_record *out,
                                   mgl_error *err);
typedef mgl_status mgl_store_campaign_fn(void *user, const mgl_campaign_record *campaign,
                                         mgl_error *err);
mgl_status mgl_store_each_campaign(mgl_store *store, mgl_store_campaign_fn *each, void *user,
                                   mgl_error *err); /* oldest first */
/* State, reason and seconds spent. */
mgl_status mgl_store_set_state(mgl_store *store, int64_t campaign, const char *state,
                               const char *reason, double seconds, mgl_error *err);
mgl_status mgl_store_delete_campaign(mgl_store *store, int64_t campaign, mgl_error *err);

/* ---- trials ---------------------------------------------------------------------------------- */

/* Adds a trial with its pairs and, where its outcome is OK and it is no control, makes it the
 * incumbent; marks the submission that it came by as done: one transaction. Sets its id. A number
 * that the campaign has already is MGL_USAGE. */
mgl_status mgl_store_add_trial(mgl_store *store, mgl_trial *trial, mgl_error *err);
/* One, by its number; with its pairs when asked for. */
mgl_status mgl_store_get_trial(mgl_store *store, int64_t campaign, int64_t number, bool pairs,
                               mgl_trial *out, mgl_error *err);
/* The first trial of that digest that was not a duplicate or a control; *number 0: none. */
mgl_status mgl_store_find_digest(mgl_store *store, int64_t campaign, const char *digest,
                                 int64_t *number, mgl_error *err);
typedef mgl_status mgl_store_trial_fn(void *user, const mgl_trial *trial, mgl_error *err);
/* Those with numbers from `from` on, in order, without pairs; `limit` at most (0: all). */
mgl_status mgl_store_each_trial(mgl_store *store, int64_t campaign, int64_t from, int64_t limit,
                                mgl_store_trial_fn *each, void *user, mgl_error *err);
/* An incumbent was found wrong: it has this outcome and diagnostic from now on, and mgl_trial's
 * `condemned`. Does nothing where it has them already. */
mgl_status mgl_store_quarantine(mgl_store *store, int64_t campaign, int64_t number,
                                mgl_outcome outcome, const char *diagnostic, mgl_error *err);
/* Those, in order, without pairs; and how many there are. */
mgl_status mgl_store_each_quarantined(mgl_store *store, int64_t campaign, mgl_store_trial_fn *each,
                                      void *user, mgl_error *err);
mgl_status mgl_store_count_quarantined(mgl_store *store, int64_t campaign, int64_t *out,
                                       mgl_error *err);
/* Number of the trial that was kept last; 0: none was. */
mgl_status mgl_store_find_incumbent(mgl_store *store, int64_t campaign, int64_t *out,
                                    mgl_error *err);
/* Those that were stored behind the one of id `after` (0: all), in that order, without pairs. */
mgl_status mgl_store_each_newer(mgl_store *store, int64_t campaign, int64_t after,
                                mgl_store_trial_fn *each, void *user, mgl_error *err);
/* The incumbents there were and all trials that they stand on, in order, with their pairs; at most
 * MGL_MAX_LINE. */
enum { MGL_MAX_LINE = 4096 };
mgl_status mgl_store_each_in_line(mgl_store *store, int64_t campaign, mgl_store_trial_fn *each,
                                  void *user, mgl_error *err);
/* How many trials each proposer had, and how many of them were kept; controls left out. */
typedef mgl_status mgl_store_share_fn(void *user, const char *proposer, int64_t trials,
                                      int64_t kept, mgl_error *err);
mgl_status mgl_store_each_share(mgl_store *store, int64_t campaign, mgl_store_share_fn *each,
                                void *user, mgl_error *err);
/* How many trials have each outcome, controls left out. */
mgl_status mgl_store_count_outcomes(mgl_store *store, int64_t campaign,
                                    int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err);
/* The decisions so far: trials that reached MGL_PAIRS_DECISION or MGL_PAIRS_CLEAR. */
mgl_status mgl_store_count_decisions(mgl_store *store, int64_t campaign, int64_t *out,
                                     mgl_error *err);

/* ---- submissions: proposals from outside ----------------------------------------------------- */

typedef struct mgl_submission {
    int64_t id, campaign;
    char *text;    /* the proposal's JSON, or a schedule text; owned */
    char *origin;  /* "submit", "mcp" */
    int64_t trial; /* number of the trial it became; 0: it waits */
} mgl_submission;
void mgl_submission_clear(mgl_submission *submission);
mgl_status mgl_store_add_submission(mgl_store *store, int64_t campaign, const char *text,
                                    const char *origin, int64_t *id, mgl_error *err);
/* The oldest that waits; *found false: none. */
mgl_status mgl_store_next_submission(mgl_store *store, int64_t campaign, bool *found,
                                     mgl_submission *out, mgl_error *err);
mgl_status mgl_store_get_submission(mgl_store *store, int64_t id, mgl_submission *out,
                                    mgl_error *err);

/* ---- messages and costs of a model, events, requests to stop --------------------------------- */

/* One exchange with a chat endpoint. No key, ever. */
typedef struct mgl_store_message {
    int64_t trial; /* number; 0: it led to none */
    const char *request, *response;
    mgl_outcome outcome; /* MGL_OUTCOME_OK, or PROPOSER_... */
    int64_t tokens_in, tokens_out;
    bool estimated; /* the endpoint did not say how many */
    double seconds;
} mgl_store_message;
mgl_status mgl_store_add_message(mgl_store *store, int64_t campaign,
                                 const mgl_store_message *message, mgl_error *err);
/* How many exchanges had each outcome. */
mgl_status mgl_store_count_messages(mgl_store *store, int64_t campaign,
                                    int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err);
mgl_status mgl_store_sum_costs(mgl_store *store, int64_t campaign, int64_t *requests,
                               int64_t *tokens, mgl_error *err);
/* A line of the campaign's log: "keep", "pause", "error", "end", "control", ... and one sentence.
 */
mgl_status mgl_store_add_event(mgl_store *store, int64_t campaign, const char *kind,
                               const char *text, mgl_error *err);
typedef mgl_status mgl_store_event_fn(void *user, int64_t unix_s, const char *kind,
                                      const char *text, mgl_error *err);
mgl_status mgl_store_each_event(mgl_store *store, int64_t campaign, mgl_store_event_fn *each,
                                void *user, mgl_error *err);
/* `campaign stop`: asks whoever runs it to end after the trial at hand; and whether that was asked.
 */
mgl_status mgl_store_ask_stop(mgl_store *store, int64_t campaign, bool stop, mgl_error *err);
mgl_status mgl_store_is_stop_asked(mgl_store *store, int64_t campaign, bool *out, mgl_error *err);

#endif
