/*
 * Archives: a campaign's evidence as one JSON text, which another user replays, validates and
 * measures before using it. An archive contains the campaign's shape, target and workloads; the
 * incumbents and all their ancestor trials with all pairs; and the number of trials of each
 * proposer. It contains no key, no message of a language model and no path. Called by tune.c,
 * tune_entry.c and the commands `campaign export` and `import`.
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
 * `incumbent` 0, and a member that marks the missing measurement:
 *
 *     "predicted": {"number": 12, "us": 467.2, "default_us": 564.9}
 *
 * The keys of a campaign, a trial and a result are listed in autotune/store/fields.h. A pair is the
 * array of its field values in that order. `final` is the final measurement of the winner against
 * the default, or null; archives of earlier versions do not have this key. An archive is untrusted
 * input: hypotheses and diagnostics are bounded data, and everything else is checked while reading.
 */
#ifndef MGL_AUTOTUNE_ARCHIVE_ARCHIVE_H
#define MGL_AUTOTUNE_ARCHIVE_ARCHIVE_H

#include "autotune/answers/answer.h"
#include "autotune/store/store.h"
#include "importer/config.h"

enum { MGL_ARCHIVE_MAX = 32 << 20 }; /* largest size in bytes */

typedef struct mgl_archive_share {
    char *proposer; /* owned */
    int64_t trials, kept;
} mgl_archive_share;

typedef struct mgl_archive {
    mgl_campaign_record campaign; /* space, options, state and reason are not set */
    mgl_config config;            /* parsed from campaign.shape */
    mgl_target target;
    mgl_dtype dtype;
    mgl_workloads workloads;
    int manifest_version;      /* version of campaign.manifest; 0: unknown to the writer */
    mgl_archive_share *shares; /* (share_count) owned */
    size_t share_count;
    mgl_trial *trials; /* (trial_count) owned, sorted by number */
    size_t trial_count;
    const mgl_trial *winner; /* element of `trials`: the incumbent, or the predicted winner */
    /* of a predicted winner: number, us and default_us; number 0: none */
    mgl_answer_predicted predicted;
    /* final measurement of the winner, without notes; number 0: none */
    mgl_answer_final_facts final;
} mgl_archive;

/* Appends the archive of a campaign (NULL: the newest). MGL_BAD_INPUT: nothing was kept and, in a
 * campaign without a clock, no trial is predicted to be faster than the default; or a kept trial
 * (its number is in the message) does not follow from its pairs. */
mgl_status mgl_archive_write(mgl_store *store, const char *name, mgl_text *out, mgl_error *err);

/* Parses an archive. MGL_BAD_INPUT, with the place: the text is not a possible output of
 * mgl_archive_write. The truth of its claims is not checked; the importing campaign measures again.
 * Release with mgl_archive_clear. */
mgl_status mgl_archive_parse(const char *text, size_t length, const char *file, mgl_archive *out,
                             mgl_error *err);
void mgl_archive_clear(mgl_archive *archive);

#endif
