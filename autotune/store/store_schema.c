/*
 * The tables of the store and their migrations: mgl_store_migrations[v] migrates version v to v +
 * 1. A released entry is never changed; new versions append entries.
 *
 * A campaign overnight has about 10,000 trials with about 100 pairs each, so pairs determine the
 * size of a store. They are rows of a WITHOUT ROWID table, readable with the sqlite3 shell, of 44
 * to 52 bytes each: flags, workload and stage use only their header byte. A blob would use 32
 * bytes.
 *
 * Texts of proposals and language models are data, and never become part of a statement.
 */
#include "autotune/store/store_query.h"

static const char version_1[] =
    "CREATE TABLE campaigns ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT," /* AUTOINCREMENT: ids are never reused */
    "  name TEXT NOT NULL UNIQUE,"
    "  model TEXT, shape TEXT, device TEXT, target TEXT, dtype TEXT, workloads TEXT, space TEXT,"
    "  options TEXT, state TEXT, reason TEXT,"
    "  capacity INTEGER NOT NULL,"
    "  seed INTEGER NOT NULL," /* 64 bits, as a signed number */
    "  created_unix INTEGER NOT NULL, updated_unix INTEGER NOT NULL,"
    "  manifest TEXT NOT NULL,"
    "  seconds REAL NOT NULL,"
    "  stop INTEGER NOT NULL DEFAULT 0" /* 1: a stop was requested */
    ") STRICT;"

    "CREATE TABLE trials ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  campaign INTEGER NOT NULL REFERENCES campaigns ON DELETE CASCADE,"
    "  number INTEGER NOT NULL CHECK (number > 0)," /* 1, 2, ... in the campaign */
    "  proposer TEXT, hypothesis TEXT,"
    "  parent INTEGER NOT NULL,"                /* number; 0: the default */
    "  config TEXT, moves TEXT, schedule TEXT," /* config as JSON; one move a line; NULL: none */
    "  queued INTEGER NOT NULL,"                /* submissions.id; 0: none */
    "  digest TEXT NOT NULL, nonce TEXT NOT NULL,"
    "  control INTEGER NOT NULL, same_kernel INTEGER NOT NULL,"
    "  outcome TEXT NOT NULL, diagnostic TEXT NOT NULL,"
    "  duplicate_of INTEGER NOT NULL,"
    "  predicted_us REAL, gain REAL, gain_lo REAL, gain_hi REAL, p_value REAL, level REAL,"
    "  seconds REAL, compile_s REAL, gpu_s REAL,"
    "  started_unix INTEGER NOT NULL,"
    "  commit_id TEXT NOT NULL, driver TEXT NOT NULL, device_uuid TEXT NOT NULL,"
    "  manifest TEXT NOT NULL,"
    "  decided INTEGER NOT NULL," /* has pairs of a deciding stage */
    "  UNIQUE (campaign, number)"
    ") STRICT;"
    "CREATE INDEX trials_digest ON trials (campaign, digest) WHERE digest <> '';"
    "CREATE INDEX trials_outcome ON trials (campaign, control, outcome);"
    "CREATE INDEX trials_decided ON trials (campaign) WHERE decided = 1;"
    "CREATE INDEX trials_kept ON trials (campaign, number) WHERE outcome = 'OK' AND control = 0;"

    "CREATE TABLE results ("
    "  trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
    "  place INTEGER NOT NULL," /* index of the workload in campaigns.workloads, from 0 */
    "  predicted_us REAL, incumbent_us REAL, candidate_us REAL,"
    "  gain REAL, gain_lo REAL, gain_hi REAL, stream_us REAL, error REAL, error_default REAL,"
    "  pairs INTEGER NOT NULL, dropped INTEGER NOT NULL,"
    "  PRIMARY KEY (trial, place)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE pairs ("
    "  trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
    "  place INTEGER NOT NULL," /* index in the trial's list, from 0 */
    "  workload INTEGER NOT NULL,"
    "  stage INTEGER NOT NULL," /* screen, survivors, decision, control, repeat, clear: 0 to 5 */
    "  candidate_first INTEGER NOT NULL, dropped INTEGER NOT NULL,"
    "  incumbent_us REAL, candidate_us REAL,"
    "  incumbent_mhz INTEGER NOT NULL, candidate_mhz INTEGER NOT NULL, memory_mhz INTEGER NOT NULL,"
    "  temperature INTEGER NOT NULL, reasons INTEGER NOT NULL,"
    "  PRIMARY KEY (trial, place)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE submissions ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  campaign INTEGER NOT NULL REFERENCES campaigns ON DELETE CASCADE,"
    "  unix INTEGER NOT NULL,"
    "  text TEXT NOT NULL, origin TEXT,"
    "  trial INTEGER NOT NULL DEFAULT 0" /* number; 0: waiting */
    ") STRICT;"
    "CREATE INDEX submissions_waiting ON submissions (campaign, id) WHERE trial = 0;"

    "CREATE TABLE messages ("
    "  id INTEGER PRIMARY KEY,"
    "  campaign INTEGER NOT NULL REFERENCES campaigns ON DELETE CASCADE,"
    "  unix INTEGER NOT NULL,"
    "  trial INTEGER NOT NULL," /* number; 0: no trial resulted */
    "  request TEXT, response TEXT,"
    "  outcome TEXT NOT NULL,"
    "  tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, estimated INTEGER NOT NULL,"
    "  seconds REAL"
    ") STRICT;"
    "CREATE INDEX messages_costs ON messages (campaign, tokens_in, tokens_out);"

    "CREATE TABLE events ("
    "  id INTEGER PRIMARY KEY,"
    "  campaign INTEGER NOT NULL REFERENCES campaigns ON DELETE CASCADE,"
    "  unix INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX events_campaign ON events (campaign, id);"

    /* Views, so that they cannot disagree with trials and messages. */
    "CREATE VIEW incumbents AS"
    "  SELECT campaign, number, started_unix, gain FROM trials"
    "  WHERE outcome = 'OK' AND control = 0;"
    "CREATE VIEW costs AS"
    "  SELECT campaign, count(*) AS requests, sum(tokens_in) AS tokens_in,"
    "         sum(tokens_out) AS tokens_out, sum(seconds) AS seconds"
    "  FROM messages GROUP BY campaign;";

/* Version 2: a quarantined incumbent has the outcome of its final measurement. */
static const char version_2[] =
    "ALTER TABLE trials ADD COLUMN condemned INTEGER NOT NULL DEFAULT 0;" /* trials.id; 0: no */
    "CREATE INDEX trials_condemned ON trials (campaign) WHERE condemned > 0;";

const char *const mgl_store_migrations[MGL_STORE_VERSION] = {version_1, version_2};

/*
 * Tables of a shared store: workers, and the trial numbers that they reserved. A worker must renew
 * its lease in time; otherwise it is removed and its numbers become free (store_share.c).
 */
const char mgl_store_sharing[] =
    "CREATE TABLE workers ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  campaign INTEGER NOT NULL REFERENCES campaigns ON DELETE CASCADE,"
    "  boot TEXT NOT NULL, pid INTEGER NOT NULL," /* boot id of the machine, process id */
    "  device TEXT NOT NULL, device_uuid TEXT NOT NULL,"
    "  until REAL NOT NULL" /* end of the lease by the server's clock, in seconds */
    ") STRICT;"

    "CREATE TABLE claims ("
    "  campaign INTEGER NOT NULL REFERENCES campaigns ON DELETE CASCADE,"
    "  number INTEGER NOT NULL,"                              /* trial number */
    "  worker INTEGER REFERENCES workers ON DELETE SET NULL," /* NULL: the number is free */
    "  submission INTEGER NOT NULL DEFAULT 0,"                /* submissions.id; 0: none */
    "  PRIMARY KEY (campaign, number)"
    ") STRICT;"
    "CREATE INDEX claims_worker ON claims (worker);";
