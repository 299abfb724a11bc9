/*
 * The store: persistent storage of all campaign data, in a SQLite file (WAL, foreign keys,
 * migrations) or on a PostgreSQL server that several machines share ("postgresql://..."). Data
 * survives kill -9 and power loss once a function has returned MGL_OK. A trial is one transaction.
 * Many processes may read; one process for each GPU runs campaigns (mgl_store_lock_take).
 *
 * Errors: MGL_BAD_INPUT for a file that is not a store, a store of a newer version, and a network
 * file system. MGL_SYSTEM for a full or read-only disk, and for a lock that another process holds
 * too long. Messages state what to do. Records own the strings that the store returns.
 *
 * A store may be used by one thread at a time. Callbacks for rows must not write to it.
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_H
#define MGL_AUTOTUNE_STORE_STORE_H

#include "autotune/store/record.h"

typedef struct mgl_store mgl_store;

/* Returns the default path: campaigns.db in $XDG_STATE_HOME/megalith, else in
 * ~/.local/state/megalith. MGL_USAGE: neither variable is set. */
mgl_status mgl_store_default_path(mgl_text *out, mgl_error *err);

/* Opens a store. `path` NULL: the default. `write`: creates the file and its folder if missing, and
 * migrates to the newest version. Otherwise nothing is changed, and a missing file is
 * MGL_BAD_INPUT. */
mgl_status mgl_store_open(const char *path, bool write, mgl_store **out, mgl_error *err);
void mgl_store_close(mgl_store *store); /* NULL is allowed */
/* The name used in errors: the path, or host and database of a server. */
const char *mgl_store_path(const mgl_store *store);
/* The argument of mgl_store_open. It may contain a password: never print or store it. */
const char *mgl_store_url(const mgl_store *store);
/* Whether it names a file and not a server. */
bool mgl_store_is_path(const char *path);
/* The printable form of a path or URL, before it is opened. */
const char *mgl_store_shown(const char *path);
/* Path prefix on this machine for the files that belong to the store. */
const char *mgl_store_beside(const mgl_store *store);
/* Whether several machines write to it, so that several workers may run a campaign
 * (store_share.h). */
bool mgl_store_is_shared(const mgl_store *store);

/* Takes the lock of a device on this machine, by UUID. The names "none:7" and "cpu:7" mean no GPU,
 * but campaign 7 of this store. The lock is held until the process ends or releases it. MGL_DEVICE:
 * another process holds it; the message contains its pid. */
typedef struct mgl_store_lock mgl_store_lock;
mgl_status mgl_store_lock_take(mgl_store *store, const char *uuid, mgl_store_lock **out,
                               mgl_error *err);
void mgl_store_lock_release(mgl_store_lock *lock); /* NULL is allowed */
/* Whether a process holds that lock. Takes nothing and creates no file. */
mgl_status mgl_store_lock_look(mgl_store *store, const char *uuid, bool *held, mgl_error *err);
/* A process that a signal ends marks its lock file, because the store may be busy then.
 * mgl_store_lock_mark may be called on any thread, and ignores a lock of another process. The mark
 * remains until the lock is taken again. */
mgl_status mgl_store_lock_path(const mgl_store *store, const char *uuid, mgl_text *out,
                               mgl_error *err);
void mgl_store_lock_mark(const char *path);
bool mgl_store_lock_is_marked(const mgl_store *store, const char *uuid);

/* ---- campaigns ------------------------------------------------------------------------------- */

/* Adds a campaign. Sets its id, and its creation time if that is 0. MGL_USAGE: the name exists, or
 * is not 1 to 128 bytes without '/' and control characters that do not begin with '.' or '-'. */
mgl_status mgl_store_add_campaign(mgl_store *store, mgl_campaign_record *campaign, mgl_error *err);
/* Finds a campaign by name; NULL: the newest. MGL_BAD_INPUT: there is none; the message lists
 * existing names. */
mgl_status mgl_store_find_campaign(mgl_store *store, const char *name, mgl_campaign_record *out,
                                   mgl_error *err);
typedef mgl_status mgl_store_campaign_fn(void *user, const mgl_campaign_record *campaign,
                                         mgl_error *err);
mgl_status mgl_store_each_campaign(mgl_store *store, mgl_store_campaign_fn *each, void *user,
                                   mgl_error *err); /* oldest first */
/* Sets state, reason and seconds spent. */
mgl_status mgl_store_set_state(mgl_store *store, int64_t campaign, const char *state,
                               const char *reason, double seconds, mgl_error *err);
mgl_status mgl_store_delete_campaign(mgl_store *store, int64_t campaign, mgl_error *err);

/* ---- trials ---------------------------------------------------------------------------------- */

/* Adds a trial with its pairs. If its outcome is OK and it is not a control, it becomes the
 * incumbent. Its submission, if any, is marked as done. All in one transaction. Sets the trial's
 * id. MGL_USAGE: the campaign already has this number. */
mgl_status mgl_store_add_trial(mgl_store *store, mgl_trial *trial, mgl_error *err);
/* Returns one trial by number, with its pairs if requested. */
mgl_status mgl_store_get_trial(mgl_store *store, int64_t campaign, int64_t number, bool pairs,
                               mgl_trial *out, mgl_error *err);
/* Returns the first trial with this digest that is no duplicate and no control; *number 0: none. */
mgl_status mgl_store_find_digest(mgl_store *store, int64_t campaign, const char *digest,
                                 int64_t *number, mgl_error *err);
typedef mgl_status mgl_store_trial_fn(void *user, const mgl_trial *trial, mgl_error *err);
/* Visits trials from number `from` on, in order, without pairs; at most `limit` (0: all). */
mgl_status mgl_store_each_trial(mgl_store *store, int64_t campaign, int64_t from, int64_t limit,
                                mgl_store_trial_fn *each, void *user, mgl_error *err);
/* Quarantines an incumbent that was found wrong: stores the verdict, and sets
 * mgl_trial.quarantined. Does nothing if the trial is already quarantined. */
mgl_status mgl_store_quarantine(mgl_store *store, int64_t campaign, int64_t number,
                                const mgl_trial_verdict *verdict, mgl_error *err);
/* Visit the quarantined trials in order, without pairs; and count them. */
mgl_status mgl_store_each_quarantined(mgl_store *store, int64_t campaign, mgl_store_trial_fn *each,
                                      void *user, mgl_error *err);
mgl_status mgl_store_count_quarantined(mgl_store *store, int64_t campaign, int64_t *out,
                                       mgl_error *err);
/* Returns the number of the last kept trial; 0: none. */
mgl_status mgl_store_find_incumbent(mgl_store *store, int64_t campaign, int64_t *out,
                                    mgl_error *err);
/* Visits the trials that were stored after the trial with the id `after` (0: all), in the order of
 * their ids, without pairs. */
mgl_status mgl_store_each_newer(mgl_store *store, int64_t campaign, int64_t after,
                                mgl_store_trial_fn *each, void *user, mgl_error *err);
/* Visits all incumbents and their ancestors in order, with pairs; at most MGL_MAX_LINE. */
enum { MGL_MAX_LINE = 4096 };
mgl_status mgl_store_each_in_line(mgl_store *store, int64_t campaign, mgl_store_trial_fn *each,
                                  void *user, mgl_error *err);
/* Visits each proposer with its number of trials and of kept trials, without controls. */
typedef mgl_status mgl_store_share_fn(void *user, const char *proposer, int64_t trials,
                                      int64_t kept, mgl_error *err);
mgl_status mgl_store_each_share(mgl_store *store, int64_t campaign, mgl_store_share_fn *each,
                                void *user, mgl_error *err);
/* Counts trials by outcome, without controls. */
mgl_status mgl_store_count_outcomes(mgl_store *store, int64_t campaign,
                                    int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err);
/* Counts decisions: trials that reached MGL_PAIRS_DECISION or MGL_PAIRS_CLEAR. */
mgl_status mgl_store_count_decisions(mgl_store *store, int64_t campaign, int64_t *out,
                                     mgl_error *err);

/* ---- submissions: proposals from outside ----------------------------------------------------- */

typedef struct mgl_submission {
    int64_t id, campaign;
    char *text;    /* the proposal's JSON, or a schedule text; owned */
    char *origin;  /* "submit", "mcp" */
    int64_t trial; /* number of the resulting trial; 0: waiting */
} mgl_submission;
void mgl_submission_clear(mgl_submission *submission);
mgl_status mgl_store_add_submission(mgl_store *store, int64_t campaign, const char *text,
                                    const char *origin, int64_t *id, mgl_error *err);
/* Returns the oldest waiting submission; *found false: none. */
mgl_status mgl_store_next_submission(mgl_store *store, int64_t campaign, bool *found,
                                     mgl_submission *out, mgl_error *err);
mgl_status mgl_store_get_submission(mgl_store *store, int64_t id, mgl_submission *out,
                                    mgl_error *err);

/* ---- messages and costs of a language model, events, stop requests --------------------------- */

/* One exchange with a chat endpoint. It must not contain a key. */
typedef struct mgl_store_message {
    int64_t trial; /* trial number; 0: no trial resulted */
    const char *request, *response;
    mgl_outcome outcome; /* MGL_OUTCOME_OK, or PROPOSER_... */
    int64_t tokens_in, tokens_out;
    bool estimated; /* the token counts are estimates, because the endpoint reported none */
    double seconds;
} mgl_store_message;
mgl_status mgl_store_add_message(mgl_store *store, int64_t campaign,
                                 const mgl_store_message *message, mgl_error *err);
/* Counts exchanges by outcome. */
mgl_status mgl_store_count_messages(mgl_store *store, int64_t campaign,
                                    int64_t counts[MGL_OUTCOME_COUNT], mgl_error *err);
mgl_status mgl_store_sum_costs(mgl_store *store, int64_t campaign, int64_t *requests,
                               int64_t *tokens, mgl_error *err);
/* Adds an event to the campaign's log: a kind ("keep", "pause", "error", "end", "control", ...) and
 * one sentence. */
mgl_status mgl_store_add_event(mgl_store *store, int64_t campaign, const char *kind,
                               const char *text, mgl_error *err);
typedef mgl_status mgl_store_event_fn(void *user, int64_t unix_s, const char *kind,
                                      const char *text, mgl_error *err);
mgl_status mgl_store_each_event(mgl_store *store, int64_t campaign, mgl_store_event_fn *each,
                                void *user, mgl_error *err);
/* Sets or clears a request to end after the current trial (`campaign stop`), and reads it. */
mgl_status mgl_store_ask_stop(mgl_store *store, int64_t campaign, bool stop, mgl_error *err);
mgl_status mgl_store_is_stop_asked(mgl_store *store, int64_t campaign, bool *out, mgl_error *err);

#endif
