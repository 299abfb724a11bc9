/*
 * An archive: what a campaign found, as one JSON text that somebody else replays, validates and
 * measures before any of it is used. It has the campaign's shape, target and workloads, the
 * incumbents and every trial that they stand on with all their pairs, and how many trials each
 * proposer had. It has no key, no message of a model and no path.
 *
 *     {"schema": "megalith.archive/1", "program": "0.1.0", "manifest_version": 1,
 *      "campaign": {"name": ..., "shape": {...}, "target": "sm_90a:132", ...},
 *      "shares": [{"proposer": "evolve", "trials": 812, "kept": 4}],
 *      "trials": [{"number": 12, "proposal": {"schema": "megalith.proposal/1", ...}, ...,
 *                  "results": [{...}], "pairs": [[0, 2, true, ...]]}],
 *      "final": {"number": 12, "gain": 0.19, "gain_lo": ..., "gain_hi": ...,
 *                "workloads": [{"gain": ..., "us": 467.2, "default_us": 564.9, "cublas_us": ...}]}}
 *
 * A campaign without a clock keeps nothing. Its archive has one trial, the fastest by prediction,
 * `incumbent` 0, and a mark that nothing was measured:
 *
 *     "predicted": {"number": 12, "us": 467.2, "default_us": 564.9}
 *
 * The keys of a campaign, a trial and a result are those of autotune/store/fields.h; a pair is the
 * values of its fields in that order. `final` is what the winner was measured to be against the
 * default when the campaign ended, or null; archives of earlier versions have no such key. An
 * archive may come from a stranger: hypotheses and diagnostics are data, bounded, and everything
 * else is checked as it is read.
 */
#ifndef MGL_AUTOTUNE_STORE_ARCHIVE_H
#define MGL_AUTOTUNE_STORE_ARCHIVE_H

#include "autotune/report/answer.h"
#include "autotune/store/store.h"
#include "importer/config.h"

enum { MGL_ARCHIVE_MAX = 32 << 20 }; /* bytes of one */

typedef struct mgl_archive_share {
    char *proposer; /* owned */
    int64_t trials, kept;
} mgl_archive_share;

typedef struct mgl_archive {
    mgl_campaign_record campaign; /* without space, options, state and reason */
    mgl_config config;            /* of campaign.shape */
    mgl_target target;
    mgl_dtype dtype;
    mgl_workloads workloads;
    int manifest_version;      /* of campaign.manifest; 0: the writer did not know it */
    mgl_archive_share *shares; /* (share_count) owned */
    size_t share_count;
    mgl_trial *trials; /* (trial_count) owned, by number */
    size_t trial_count;
    const mgl_trial *winner;        /* of `trials`: the incumbent, or the predicted winner */
    mgl_answer_predicted predicted; /* the latter: number, us and default_us; number 0: none */
    mgl_answer_final_facts final;   /* of the winner, without notes; number 0: there is none */
} mgl_archive;

/* Appends the archive of a campaign (NULL: the newest). MGL_BAD_INPUT if nothing was kept and, in a
 * campaign without a clock, nothing is predicted to be faster than the default; and, with the
 * number of the trial, where what was kept does not follow from its pairs. */
mgl_status mgl_archive_write(mgl_store *store, const char *name, mgl_text *out, mgl_error *err);

/* MGL_BAD_INPUT, with the place, for whatever mgl_archive_write would not have written. That it is
 * true is for whoever imports it to find out. Release with mgl_archive_clear. */
mgl_status mgl_archive_parse(const char *text, size_t length, const char *file, mgl_archive *out,
                             mgl_error *err);
void mgl_archive_clear(mgl_archive *archive);

#endif
