/*
 * Implements answer.h: campaigns, trials, outcome counts, the incumbent and the task of external
 * proposers.
 */
#include "autotune/answers/answer.h"

#include "autotune/candidates/gate.h"
#include "autotune/store/shape.h"
#include "base/format.h"

#include <math.h>
#include <string.h>

enum { LAST_VERDICTS = 20, SHOWN_DIAGNOSTIC = 160 };

/* Copies JSON without line ends; JSON strings contain none. */
void mgl_answer_json(mgl_json_out *out, const char *key, const char *json)
{
    if (!json) {
        mgl_json_out_null(out, key);
        return;
    }
    mgl_text_format(&out->text, "%s\"%s\":", out->comma ? "," : "", key);
    while (*json) {
        size_t length = strcspn(json, "\n");
        mgl_text_append(&out->text, json, length);
        json += length;
        json += strspn(json, "\n ");
    }
    out->comma = true;
}

void mgl_answer_campaign(mgl_json_out *out, const mgl_campaign_record *c)
{
    char weights[MGL_SYNTHETIC_TEXT];
    mgl_json_out_string(out, "name", c->name);
    mgl_json_out_string(out, "state", c->state);
    mgl_json_out_string(out, "reason", c->reason);
    mgl_json_out_string(out, "model", c->model);
    mgl_json_out_string(out, "device", c->device);
    mgl_json_out_string(out, "target", c->target);
    mgl_json_out_string(out, "dtype", c->dtype);
    if (mgl_shape_weights(c->shape, weights)[0])
        mgl_json_out_string(out, "weights", weights);
    mgl_json_out_string(out, "workloads", c->workloads);
    mgl_json_out_int(out, "capacity", c->capacity);
    mgl_json_out_int(out, "seed", (int64_t)c->seed);
    mgl_json_out_string(out, "manifest", c->manifest);
    mgl_json_out_int(out, "created_unix", c->created_unix);
    mgl_json_out_int(out, "updated_unix", c->updated_unix);
    mgl_json_out_real(out, "seconds", c->seconds);
    mgl_json_out_int(out, "trials", c->trials);
    mgl_json_out_int(out, "incumbent", c->incumbent);
}

static void put_gains(mgl_json_out *out, double gain, double lo, double hi)
{
    mgl_json_out_real(out, "gain", expm1(gain));
    mgl_json_out_real(out, "gain_lo", expm1(lo));
    mgl_json_out_real(out, "gain_hi", expm1(hi));
}

static bool is_measured(const mgl_trial *trial)
{
    /* times of an incorrect program are not shown */
    return trial->p_value >= 0 && !trial->quarantined;
}

static void put_workload(mgl_json_out *out, const mgl_workload_result *w, bool timed)
{
    mgl_json_out_object(out, NULL);
    if (w->predicted_us > 0)
        mgl_json_out_real(out, "predicted_us", w->predicted_us);
    if (w->incumbent_us > 0)
        mgl_json_out_real(out, "incumbent_us", w->incumbent_us);
    if (w->candidate_us > 0 && timed) {
        mgl_json_out_real(out, "us", w->candidate_us);
        put_gains(out, w->gain, w->gain_lo, w->gain_hi);
        mgl_json_out_int(out, "pairs", w->pairs);
        mgl_json_out_int(out, "dropped", w->dropped);
    }
    if (w->stream_us > 0)
        mgl_json_out_real(out, "stream_us", w->stream_us);
    if (w->error >= 0)
        mgl_json_out_real(out, "error", w->error);
    if (w->error_default >= 0)
        mgl_json_out_real(out, "error_default", w->error_default);
    mgl_json_out_close_object(out);
}

void mgl_answer_trial(mgl_json_out *out, const mgl_trial *t)
{
    mgl_json_out_int(out, "number", t->number);
    mgl_json_out_string(out, "proposer", t->proposal.proposer);
    mgl_json_out_string(out, "hypothesis", t->proposal.hypothesis);
    mgl_json_out_int(out, "parent", t->proposal.parent);
    mgl_json_out_bool(out, "control", t->control);
    mgl_trial_verdict_put(out, &t->verdict);
    mgl_json_out_string(out, "hint", mgl_outcome_hint(t->verdict.outcome));
    mgl_json_out_string(out, "digest", t->digest[0] ? t->digest : NULL);
    if (t->duplicate_of)
        mgl_json_out_int(out, "duplicate_of", t->duplicate_of);
    if (t->predicted_us > 0)
        mgl_json_out_real(out, "predicted_us", t->predicted_us);
    if (is_measured(t)) {
        put_gains(out, t->gain, t->gain_lo, t->gain_hi);
        mgl_json_out_real(out, "p_value", t->p_value);
        mgl_json_out_real(out, "level", t->level);
    }
    mgl_json_out_array(out, "workloads");
    for (int w = 0; w < t->workload_count; w++)
        put_workload(out, &t->workloads[w], !t->quarantined);
    mgl_json_out_close_array(out);
    mgl_json_out_real(out, "seconds", t->seconds);
    mgl_json_out_int(out, "started_unix", t->started_unix);
}

mgl_status mgl_answer_proposal(mgl_json_out *out, const mgl_proposal *proposal, mgl_error *err)
{
    mgl_text text = {0};
    mgl_proposal_print(proposal, &text);
    mgl_status status = text.failed ? mgl_fail_memory(err, text.capacity) : MGL_OK;
    if (!status)
        mgl_answer_json(out, "proposal", text.bytes);
    mgl_text_clear(&text);
    return status;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Returns the group count to which trials with this outcome belong. */
static int64_t *find_sum(mgl_answer_counts *counts, mgl_outcome outcome)
{
    if (outcome == MGL_OUTCOME_DUPLICATE)
        return &counts->duplicates;
    if (outcome == MGL_OUTCOME_PARSE)
        return &counts->unreadable;
    switch (mgl_outcome_exit(outcome)) {
    case MGL_EXIT_KEPT:
        return &counts->kept;
    case MGL_EXIT_NOT_KEPT:
        return &counts->not_kept;
    case MGL_EXIT_INCORRECT:
        return &counts->incorrect;
    case MGL_EXIT_UNMEASURED:
        return &counts->unmeasured;
    default:
        return &counts->refused;
    }
}

mgl_status mgl_answer_count(mgl_store *store, int64_t campaign, mgl_answer_counts *out,
                            mgl_error *err)
{
    *out = (mgl_answer_counts){0};
    mgl_status status = mgl_store_count_outcomes(store, campaign, out->of, err);
    for (int i = 0; i < MGL_OUTCOME_COUNT && !status; i++)
        *find_sum(out, (mgl_outcome)i) += out->of[i];
    return status;
}

void mgl_answer_outcomes(mgl_json_out *out, const mgl_answer_counts *counts)
{
    mgl_json_out_object(out, "outcomes");
    for (int i = 0; i < MGL_OUTCOME_COUNT; i++)
        if (counts->of[i])
            mgl_json_out_int(out, mgl_outcome_name((mgl_outcome)i), counts->of[i]);
    mgl_json_out_close_object(out);
}

/* ---- language model -------------------------------------------------------------------------- */

static void count_failed(mgl_answer_chat_facts *facts)
{
    static const mgl_outcome failures[] = {MGL_OUTCOME_PROPOSER_HTTP, MGL_OUTCOME_PROPOSER_TIMEOUT,
                                           MGL_OUTCOME_PROPOSER_RATE, MGL_OUTCOME_PROPOSER_AUTH};
    facts->most = failures[0];
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        facts->failed += facts->of[failures[i]];
        if (facts->of[failures[i]] > facts->of[facts->most])
            facts->most = failures[i];
    }
}

mgl_status mgl_answer_count_chat(mgl_store *store, int64_t campaign, mgl_answer_chat_facts *out,
                                 mgl_error *err)
{
    *out = (mgl_answer_chat_facts){0};
    mgl_status status = mgl_store_sum_costs(store, campaign, &out->requests, &out->tokens, err);
    if (!status)
        status = mgl_store_count_messages(store, campaign, out->of, err);
    count_failed(out);
    return status;
}

mgl_status mgl_answer_chat(mgl_json_out *out, mgl_store *store, int64_t campaign, mgl_error *err)
{
    mgl_answer_chat_facts facts;
    mgl_status status = mgl_answer_count_chat(store, campaign, &facts, err);
    if (status)
        return status;
    if (!facts.requests) {
        mgl_json_out_null(out, "chat");
        return MGL_OK;
    }
    mgl_json_out_object(out, "chat");
    mgl_json_out_int(out, "requests", facts.requests);
    mgl_json_out_int(out, "tokens", facts.tokens);
    mgl_json_out_int(out, "failed", facts.failed);
    mgl_json_out_string(out, "hint", facts.failed ? mgl_outcome_hint(facts.most) : NULL);
    mgl_json_out_object(out, "outcomes");
    for (int i = 0; i < MGL_OUTCOME_COUNT; i++)
        if (facts.of[i])
            mgl_json_out_int(out, mgl_outcome_name((mgl_outcome)i), facts.of[i]);
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
    return MGL_OK;
}

void mgl_answer_chat_line(const mgl_answer_chat_facts *facts, mgl_text *out)
{
    const char *between = ": ";
    mgl_text_format(out, "%lld times, %lld tokens", (long long)facts->requests,
                    (long long)facts->tokens);
    for (int i = 0; i < MGL_OUTCOME_COUNT; i++)
        if (facts->of[i]) {
            mgl_text_format(out, "%s%lld %s", between, (long long)facts->of[i],
                            mgl_outcome_name((mgl_outcome)i));
            between = ", ";
        }
}

/* ---- incumbent ------------------------------------------------------------------------------- */

static mgl_status add_gain(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    mgl_answer_best_facts *facts = user;
    if (trial->verdict.outcome != MGL_OUTCOME_OK || trial->control)
        return MGL_OK;
    facts->log_gain += trial->gain;
    facts->log_lo += trial->gain_lo;
    facts->log_hi += trial->gain_hi;
    facts->keeps++;
    return MGL_OK;
}

mgl_status mgl_answer_find_best(mgl_store *store, const mgl_campaign_record *campaign,
                                mgl_answer_best_facts *out, mgl_error *err)
{
    *out = (mgl_answer_best_facts){.number = campaign->incumbent};
    mgl_status status = mgl_store_each_trial(store, campaign->id, 1, 0, add_gain, out, err);
    out->gain = expm1(out->log_gain);
    return status;
}

static void put_measured_gain(mgl_json_out *out, const mgl_answer_final_facts *final,
                              int64_t number)
{
    static const char key[] = "measured_gain_over_default";
    if (!mgl_answer_is_final_of(final, number)) {
        mgl_json_out_null(out, key);
        return;
    }
    mgl_json_out_object(out, key);
    mgl_json_out_real(out, "gain", final->all.gain);
    mgl_json_out_real(out, "gain_lo", final->all.lo);
    mgl_json_out_real(out, "gain_hi", final->all.hi);
    mgl_json_out_close_object(out);
}

mgl_status mgl_answer_best(mgl_json_out *out, mgl_store *store, const mgl_campaign_record *campaign,
                           mgl_error *err)
{
    mgl_trial best = {0};
    mgl_answer_best_facts facts;
    mgl_answer_final_facts final;
    if (campaign->incumbent == 0) {
        mgl_json_out_null(out, "best");
        return MGL_OK;
    }
    mgl_status status = mgl_answer_find_best(store, campaign, &facts, err);
    if (!status)
        status = mgl_answer_find_final(store, campaign->id, &final, err);
    if (!status)
        status = mgl_store_get_trial(store, campaign->id, facts.number, false, &best, err);
    if (!status) {
        mgl_json_out_object(out, "best");
        mgl_json_out_real(out, "gain_over_default", facts.gain);
        mgl_json_out_int(out, "steps", facts.keeps);
        put_measured_gain(out, &final, facts.number);
        mgl_answer_trial(out, &best);
        status = mgl_answer_proposal(out, &best.proposal, err);
        mgl_json_out_close_object(out);
    }
    mgl_trial_clear(&best);
    return status;
}

int64_t mgl_answer_last(const mgl_campaign_record *campaign, int64_t count)
{
    return campaign->trials > count ? campaign->trials - count + 1 : 1;
}

/* ---- task of an external proposer ------------------------------------------------------------ */

static mgl_status put_verdict(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    mgl_json_out_object(user, NULL);
    mgl_answer_trial(user, trial);
    mgl_json_out_close_object(user);
    return MGL_OK;
}

static void put_moves(mgl_json_out *out)
{
    mgl_json_out_object(out, "moves");
    for (int i = 0; i < MGL_MOVE_COUNT; i++)
        mgl_json_out_string(out, mgl_move_name((mgl_move_kind)i), mgl_move_what((mgl_move_kind)i));
    mgl_json_out_close_object(out);
}

mgl_status mgl_answer_next(mgl_json_out *out, mgl_store *store, const mgl_campaign_record *campaign,
                           mgl_error *err)
{
    int64_t from = mgl_answer_last(campaign, LAST_VERDICTS);
    mgl_answer_campaign(out, campaign);
    mgl_json_out_string(out, "wanted",
                        "a proposal whose objective, the geometric mean over the workloads of "
                        "microseconds a token, is at least 1 % less than the best's");
    mgl_answer_json(out, "space", campaign->space);
    put_moves(out);
    mgl_answer_json(out, "options", campaign->options);
    mgl_status status = mgl_answer_best(out, store, campaign, err);
    mgl_json_out_array(out, "last");
    if (!status)
        status =
            mgl_store_each_trial(store, campaign->id, from, LAST_VERDICTS, put_verdict, out, err);
    mgl_json_out_close_array(out);
    mgl_json_out_string(out, "how",
                        "write {\"schema\": \"megalith.proposal/1\", \"hypothesis\": ..., "
                        "\"config\": {...}, \"moves\": [...]} to a file, or a whole schedule text, "
                        "and hand it in with: megalith campaign submit FILE --wait --name NAME");
    return status;
}

/* ---- text lines ------------------------------------------------------------------------------ */

void mgl_answer_line(const mgl_trial *t, mgl_text *out)
{
    char text[2 * MGL_MAX_DIAGNOSTIC];
    mgl_format_into(text, sizeof text, "%lld %s %.20s", (long long)t->number,
                    mgl_outcome_name(t->verdict.outcome),
                    t->proposal.proposer ? t->proposal.proposer : "?");
    mgl_text_put(out, text);
    if (is_measured(t))
        mgl_text_format(out, " %+.2f %% (%+.2f to %+.2f)", 100 * expm1(t->gain),
                        100 * expm1(t->gain_lo), 100 * expm1(t->gain_hi));
    if (t->verdict.diagnostic[0] && t->verdict.outcome != MGL_OUTCOME_OK && !is_measured(t)) {
        mgl_format_ends(text, SHOWN_DIAGNOSTIC, ": %s", t->verdict.diagnostic);
        size_t end = strcspn(text, "\n");
        mgl_text_append(out, text, end);
    }
}
