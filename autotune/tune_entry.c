/*
 * Conversion of a campaign's winner to tuned entries: one entry for each number of sequences among
 * the workloads, valid only for the measured capacity. A winner that was measured only at the first
 * positions is rejected. Called through mgl_tune_entries.
 */
#include "autotune/answers/answer.h"
#include "autotune/archive/archive.h"
#include "autotune/tune.h"
#include "base/format.h"
#include "base/memory.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Fills the gain. If a final measurement against the default exists, uses it. Otherwise the gain is
 * the sum of the kept steps, with the interval of the last step. */
static void fill_gain(const mgl_answer_best_facts *best, const mgl_answer_final_facts *final,
                      const mgl_trial *trial, mgl_tuned_evidence *out)
{
    if (mgl_answer_is_final_of(final, best->number)) {
        out->gain = log1p(final->all.gain);
        out->gain_lo = log1p(final->all.lo);
        out->gain_hi = log1p(final->all.hi);
        return;
    }
    out->gain = log1p(best->gain);
    out->gain_lo = out->gain - (trial->gain - trial->gain_lo);
    out->gain_hi = out->gain + (trial->gain_hi - trial->gain);
}

/* Fills the evidence, which is the same in each entry of the winner. */
static mgl_status fill_evidence(mgl_store *store, const mgl_campaign_record *campaign,
                                const mgl_trial *trial, mgl_tuned_evidence *out, mgl_error *err)
{
    mgl_answer_best_facts best;
    mgl_answer_final_facts final;
    mgl_text archive = {0};
    unsigned char digest[MGL_SHA256_BYTES];
    struct tm day;
    time_t when = (time_t)trial->started_unix;
    mgl_status status = mgl_answer_find_best(store, campaign, &best, err);
    if (!status)
        status = mgl_answer_find_final(store, campaign->id, &final, err);
    if (!status)
        status = mgl_archive_write(store, campaign->name, &archive, err);
    if (status) {
        mgl_text_clear(&archive);
        return status;
    }
    mgl_sha256_of(archive.bytes, archive.length, digest);
    mgl_sha256_hex(digest, out->archive);
    mgl_text_clear(&archive);
    fill_gain(&best, &final, trial, out);
    snprintf(out->commit, sizeof out->commit, "%s", trial->commit);
    if (gmtime_r(&when, &day))
        strftime(out->date, sizeof out->date, "%Y-%m-%d", &day);
    return MGL_OK;
}

/* Builds the entry name: the campaign's name in permitted characters, and the number of
 * sequences. */
static void name_entry(const mgl_campaign_record *campaign, int sequences,
                       char out[MGL_TUNED_NAME + 1])
{
    char tail[16];
    snprintf(tail, sizeof tail, "-b%d", sequences);
    size_t most = MGL_TUNED_NAME - strlen(tail), length = 0;
    for (const char *at = campaign->name; *at && length < most; at++) {
        int c = tolower((unsigned char)*at);
        out[length++] = isalnum(c) || strchr("_-", c) ? (char)c : '-';
    }
    strcpy(out + length, tail);
}

static mgl_status make_entry(const mgl_tune *tune, const mgl_trial *trial, int sequences,
                             const mgl_tuned_evidence *evidence, mgl_tuned *out, mgl_error *err)
{
    const mgl_subject *s = &tune->subject;
    mgl_status status = MGL_OK;
    *out = (mgl_tuned){.geometry = s->config.geometry,
                       .tied = s->config.tied,
                       .extras = s->config.extras,
                       .dtype = s->dtype,
                       .kv = s->dtype,
                       .layers = s->config.layers,
                       .head = s->config.head,
                       .target = s->target,
                       .sequences = sequences,
                       .capacity_lo = s->capacity,
                       .capacity_hi = s->capacity,
                       .lowering = MGL_LOWERING_VERSION,
                       .config = trial->proposal.config,
                       .evidence = *evidence};
    name_entry(&tune->record, sequences, out->name);
    snprintf(out->device, sizeof out->device, "%s", tune->record.device);
    for (int i = 0; i < trial->proposal.moves.count && !status; i++)
        status = mgl_moves_add(&out->moves, &trial->proposal.moves.moves[i], err);
    return status;
}

static mgl_status check_winner(const mgl_campaign_record *campaign, const mgl_trial *trial,
                               mgl_error *err)
{
    if (!campaign->incumbent)
        return mgl_fail(
            err, MGL_BAD_INPUT, campaign->name,
            mgl_answer_has_clock(campaign)
                ? "has no winner: the default is the best schedule and needs no entry"
                : "has no measured winner, which an entry needs: the device is %s; tune on a GPU",
            campaign->device);
    if (!strcmp(campaign->device, "none") || !strcmp(campaign->device, "cpu"))
        return mgl_fail(err, MGL_USAGE, campaign->name,
                        "nothing was measured on %s, and an entry needs a measurement",
                        campaign->device);
    if (trial->proposal.schedule)
        return mgl_fail(err, MGL_USAGE, campaign->name,
                        "the winner is a schedule text, and an entry contains a config and moves; "
                        "run the winner with --schedule");
    return MGL_OK;
}

/* Requires that the final measurement against the default, if there is one, shows a gain. */
static mgl_status check_gain(mgl_store *store, const mgl_campaign_record *campaign, mgl_error *err)
{
    mgl_answer_final_facts final;
    mgl_status status = mgl_answer_find_final(store, campaign->id, &final, err);
    if (status || !mgl_answer_is_final_of(&final, campaign->incumbent) || final.all.lo > 0)
        return status;
    return mgl_fail(err, MGL_GATE, campaign->name,
                    "the winner was not certainly faster than the default when the campaign ended: "
                    "%+.2f %% (%+.2f to %+.2f)",
                    100 * final.all.gain, 100 * final.all.lo, 100 * final.all.hi);
}

/* Rejects a winner with fewer rows an epoch than the default. Prompts are in no workload, and fewer
 * rows make prompts slower. */
static mgl_status check_rows(const mgl_tune *tune, const mgl_candidate *made, mgl_error *err)
{
    const mgl_proposal start = {.config = tune->subject.start};
    mgl_candidate first;
    mgl_status status = mgl_gate_lower(&tune->subject, &start, &first, err);
    if (status)
        return status;
    for (int p = 0; p < made->program_count && p < first.program_count && !status; p++) {
        int rows = made->programs[p]->limits.rows, wanted = first.programs[p]->limits.rows;
        if (rows < wanted)
            status = mgl_fail(err, MGL_USAGE, tune->record.name,
                              "the winner reads %d rows of a prompt at once, and the default %d: "
                              "prompts would be slower; leave `rows` out of the --space",
                              rows, wanted);
    }
    mgl_candidate_clear(&first);
    return status;
}

/* Requires that the winner's proposal still lowers to the program that was measured, because the
 * store may come from another machine or version. */
static mgl_status check_program(const mgl_tune *tune, const mgl_trial *trial, mgl_error *err)
{
    mgl_candidate made;
    mgl_status status = mgl_gate_pass(&tune->subject, &trial->proposal, NULL, &made, err);
    if (status)
        return status;
    if (made.verdict.outcome != MGL_OUTCOME_UNMEASURED)
        status = mgl_fail(err, MGL_BAD_INPUT, tune->record.name, "the winner is rejected: %s: %s",
                          mgl_outcome_name(made.verdict.outcome), made.verdict.diagnostic);
    else if (strcmp(made.digest, trial->digest) != 0)
        status = mgl_fail(err, MGL_GATE, tune->record.name,
                          "the winner is no longer the program that was measured, because lowering "
                          "or the store has changed; tune again");
    else
        status = check_rows(tune, &made, err);
    mgl_candidate_clear(&made);
    return status;
}

/* Requires a measurement at half of the capacity or above, because an entry is used at all
 * positions. */
static mgl_status check_contexts(const mgl_tune *tune, int sequences, mgl_error *err)
{
    const mgl_workloads *w = &tune->subject.workloads;
    int highest = 0, capacity = tune->subject.capacity;
    for (int i = 0; i < w->count; i++)
        if (w->list[i].batch == sequences && w->list[i].context > highest)
            highest = w->list[i].context;
    if (highest >= capacity / 2)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, tune->record.name,
                    "the winner was measured up to position %d, but an entry is used at all %d "
                    "positions; tune with a context of at least %d among --workloads",
                    highest, capacity, capacity / 2);
}

mgl_status mgl_tune_entries(mgl_store *store, const char *name, mgl_tuned_fn *each, void *user,
                            mgl_error *err)
{
    mgl_tune tune;
    mgl_trial trial = {0};
    mgl_tuned_evidence evidence = {0};
    mgl_status status = mgl_tune_find(store, name, &tune, err);
    if (status)
        return status;
    if (tune.record.incumbent)
        status =
            mgl_store_get_trial(store, tune.record.id, tune.record.incumbent, false, &trial, err);
    if (!status)
        status = mgl_answer_check_final(store, &tune.record, err);
    if (!status)
        status = check_gain(store, &tune.record, err);
    if (!status)
        status = check_winner(&tune.record, &trial, err);
    if (!status)
        status = check_program(&tune, &trial, err);
    if (!status)
        status = fill_evidence(store, &tune.record, &trial, &evidence, err);
    const mgl_workloads *w = &tune.subject.workloads; /* sorted by number of sequences */
    for (int i = 0; i < w->count && !status; i++) {
        mgl_tuned entry;
        if (i > 0 && w->list[i].batch == w->list[i - 1].batch)
            continue;
        status = check_contexts(&tune, w->list[i].batch, err);
        if (status)
            break;
        status = make_entry(&tune, &trial, w->list[i].batch, &evidence, &entry, err);
        if (!status)
            status = each(user, &entry, err);
        mgl_tuned_clear(&entry);
    }
    mgl_trial_clear(&trial);
    mgl_tune_clear(&tune);
    return status;
}
