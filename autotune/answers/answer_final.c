/* Reads the final measurement of a campaign from its last "final" event, which is JSON text.
 * Returns the measurement as JSON, as facts or as text lines. Also writes the quarantined
 * incumbents. Implements these parts of answer.h. */
#include "autotune/answers/answer.h"

#include "base/format.h"
#include "base/json.h"
#include "base/memory.h"

#include <string.h>

enum { MOST_TEXT = 1 << 20 };

/* The last final event; owned by the caller. */
typedef struct last_event {
    char *text; /* NULL: there is none */
} last_event;

static mgl_status take_event(void *user, int64_t unix_s, const char *kind, const char *text,
                             mgl_error *err)
{
    last_event *last = user;
    (void)unix_s;
    if (strcmp(kind, MGL_FINAL_EVENT) != 0)
        return MGL_OK;
    mgl_free(last->text);
    last->text = mgl_strdup(text);
    return last->text ? MGL_OK : mgl_fail_memory(err, strlen(text) + 1);
}

static mgl_status find(mgl_store *store, int64_t campaign, last_event *out, mgl_error *err)
{
    *out = (last_event){0};
    return mgl_store_each_event(store, campaign, take_event, out, err);
}

mgl_status mgl_answer_final(mgl_json_out *out, mgl_store *store, int64_t campaign, mgl_error *err)
{
    last_event last;
    mgl_status status = find(store, campaign, &last, err);
    if (!status && last.text)
        mgl_answer_json(out, "final", last.text);
    else if (!status)
        mgl_json_out_null(out, "final");
    mgl_free(last.text);
    return status;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static mgl_status read_gains(const mgl_json *json, const cJSON *from, mgl_answer_gain *out,
                             mgl_error *err)
{
    const struct {
        const char *name;
        double *to;
    } members[] = {{"gain", &out->gain},
                   {"gain_lo", &out->lo},
                   {"gain_hi", &out->hi},
                   {"us", &out->us},
                   {"incumbent_us", &out->default_us}};
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof members / sizeof *members && !status; i++)
        status = mgl_json_get_double(json, from, members[i].name, false, members[i].to, err);
    return status;
}

static mgl_status read_note(const mgl_json *json, const cJSON *from,
                            char out[MGL_MAX_DIAGNOSTIC + 1], mgl_error *err)
{
    const char *note = NULL;
    mgl_status status = mgl_json_get_string(json, from, "note", false, &note, err);
    mgl_format_into(out, MGL_MAX_DIAGNOSTIC + 1, "%s", note ? note : "");
    return status;
}

static mgl_status read_real(const mgl_json *json, mgl_real_facts *out, mgl_error *err)
{
    const cJSON *from = NULL;
    int64_t texts = 0, parted = 0;
    mgl_status status = mgl_json_get_object(json, json->root, "checkpoint", false, &from, err);
    if (status || !from)
        return status;
    status = mgl_json_get_bool(json, from, "checked", true, &out->checked, err);
    if (!status)
        status = mgl_json_get_int(json, from, "replies", false, 0, INT32_MAX, &texts, err);
    if (!status)
        status = mgl_json_get_int(json, from, "parted", false, 0, INT32_MAX, &parted, err);
    if (!status)
        status = mgl_json_get_double(json, from, "nll", false, &out->nll, err);
    if (!status)
        status = mgl_json_get_double(json, from, "nll_default", false, &out->nll_default, err);
    out->texts = (int)texts;
    out->parted = (int)parted;
    return status ? status : read_note(json, from, out->note, err);
}

static mgl_status read_cublas(const mgl_json *json, mgl_answer_final_facts *out, mgl_error *err)
{
    const cJSON *from = NULL, *list = NULL, *one;
    int w = 0;
    mgl_status status = mgl_json_get_object(json, json->root, "cublas_graph", false, &from, err);
    if (status || !from)
        return status;
    status = mgl_json_get_array(json, from, "us", true, &list, err);
    cJSON_ArrayForEach(one, list)
    {
        if (cJSON_IsNumber(one) && w < MGL_MAX_WORKLOADS)
            out->cublas_us[w++] = one->valuedouble;
    }
    return status ? status : read_note(json, from, out->no_cublas, err);
}

static mgl_status read_final(const char *text, mgl_answer_final_facts *out, mgl_error *err)
{
    mgl_json json;
    const cJSON *list = NULL, *one;
    mgl_status status = mgl_json_parse(text, strlen(text), MOST_TEXT, "final", &json, err);
    if (status)
        return status;
    status =
        mgl_json_get_int(&json, json.root, "number", true, 1, INT64_C(1) << 53, &out->number, err);
    if (!status)
        status = mgl_trial_verdict_read(&json, json.root, &out->verdict, err);
    if (!status)
        status = read_gains(&json, json.root, &out->all, err);
    if (!status)
        status = mgl_json_get_array(&json, json.root, "workloads", true, &list, err);
    cJSON_ArrayForEach(one, list)
    {
        if (!status && out->workload_count < MGL_MAX_WORKLOADS)
            status = read_gains(&json, one, &out->each[out->workload_count++], err);
    }
    if (!status)
        status = read_real(&json, &out->real, err);
    if (!status)
        status = read_cublas(&json, out, err);
    mgl_json_clear(&json);
    return status;
}

mgl_status mgl_answer_find_final(mgl_store *store, int64_t campaign, mgl_answer_final_facts *out,
                                 mgl_error *err)
{
    last_event last;
    *out = (mgl_answer_final_facts){0};
    mgl_status status = find(store, campaign, &last, err);
    if (!status && last.text)
        status = read_final(last.text, out, err);
    mgl_free(last.text);
    return status;
}

bool mgl_answer_is_wrong(const mgl_answer_final_facts *facts)
{
    return facts->number > 0 && mgl_outcome_exit(facts->verdict.outcome) == MGL_EXIT_INCORRECT;
}

static void put_gain(const mgl_answer_gain *gain, mgl_text *out)
{
    mgl_text_format(out, "%+.2f %% (%+.2f to %+.2f)", 100 * gain->gain, 100 * gain->lo,
                    100 * gain->hi);
}

bool mgl_answer_is_final_of(const mgl_answer_final_facts *final, int64_t number)
{
    return number > 0 && final->number == number && mgl_outcome_is_correct(final->verdict.outcome);
}

static void put_steps(const mgl_answer_best_facts *best, mgl_text *out)
{
    if (best->keeps == 1)
        mgl_text_format(out, "its one step gained %+.2f %% when it was kept", 100 * best->gain);
    else
        mgl_text_format(out, "its %d steps add up to %+.2f %%", best->keeps, 100 * best->gain);
}

void mgl_answer_best_line(const mgl_answer_best_facts *best, const mgl_answer_final_facts *final,
                          mgl_text *out)
{
    mgl_text_format(out, "trial %lld: ", (long long)best->number);
    if (mgl_answer_is_final_of(final, best->number)) {
        put_gain(&final->all, out);
        mgl_text_put(out, " over the default, measured at the end in a fresh process; ");
        put_steps(best, out);
        return;
    }
    if (final->number == best->number)
        mgl_text_format(out, "%s at the end; ", mgl_outcome_name(final->verdict.outcome));
    put_steps(best, out);
    mgl_text_put(out, ", not measured as a whole");
}

mgl_status mgl_answer_check_final(mgl_store *store, const mgl_campaign_record *campaign,
                                  mgl_error *err)
{
    mgl_answer_final_facts facts;
    mgl_status status = mgl_answer_find_final(store, campaign->id, &facts, err);
    if (status || !mgl_answer_is_wrong(&facts) ||
        (campaign->incumbent && facts.number != campaign->incumbent))
        return status;
    return mgl_fail(err, MGL_GATE, campaign->name,
                    "its winner was found wrong when the campaign ended: %s: %s",
                    mgl_outcome_name(facts.verdict.outcome), facts.verdict.diagnostic);
}

/* ---- text line ------------------------------------------------------------------------------- */

static void put_times(const mgl_answer_gain *one, double cublas_us, mgl_text *out)
{
    if (!(one->us > 0))
        return;
    mgl_text_format(out, ", %.1f us a token, the default %.1f", one->us, one->default_us);
    if (cublas_us > 0)
        mgl_text_format(out, ", a CUDA graph of cuBLAS %.1f", cublas_us);
}

static void put_workloads(const mgl_answer_final_facts *facts, mgl_text *out)
{
    put_gain(&facts->all, out);
    if (facts->workload_count == 1)
        put_times(&facts->each[0], facts->cublas_us[0], out);
    for (int w = 0; w < facts->workload_count && facts->workload_count > 1; w++) {
        const mgl_answer_gain *one = &facts->each[w];
        mgl_text_format(out, "; workload %d ", w + 1);
        put_gain(one, out);
        put_times(one, facts->cublas_us[w], out);
    }
    if (facts->no_cublas[0])
        mgl_text_format(out, "; cuBLAS was not measured: %s", facts->no_cublas);
}

static void put_real(const mgl_real_facts *real, mgl_text *out)
{
    if (real->note[0])
        mgl_text_format(out, "; not run on the real checkpoint: %s", real->note);
    if (!real->checked)
        return;
    mgl_text_format(out,
                    "; on the real checkpoint %d of %d replies differ, %.5f nats a token, the "
                    "default %.5f",
                    real->parted, real->texts, real->nll, real->nll_default);
}

void mgl_answer_final_line(const mgl_answer_final_facts *facts, mgl_text *out)
{
    mgl_text_format(
        out, "trial %lld against the default in a fresh process: ", (long long)facts->number);
    if (mgl_outcome_is_correct(facts->verdict.outcome))
        put_workloads(facts, out);
    else
        mgl_trial_verdict_print(&facts->verdict, out);
    if (mgl_outcome_exit(facts->verdict.outcome) != MGL_EXIT_INCORRECT)
        put_real(&facts->real, out);
}

/* ---- quarantined incumbents ------------------------------------------------------------------ */

static mgl_status put_quarantined(void *user, const mgl_trial *trial, mgl_error *err)
{
    mgl_json_out *out = user;
    (void)err;
    mgl_json_out_object(out, NULL);
    mgl_json_out_int(out, "number", trial->number);
    mgl_trial_verdict_put(out, &trial->verdict);
    mgl_json_out_close_object(out);
    return MGL_OK;
}

mgl_status mgl_answer_quarantined(mgl_json_out *out, mgl_store *store, int64_t campaign,
                                  mgl_error *err)
{
    mgl_json_out_array(out, "condemned");
    mgl_status status = mgl_store_each_quarantined(store, campaign, put_quarantined, out, err);
    mgl_json_out_close_array(out);
    return status;
}

void mgl_answer_quarantined_line(const mgl_trial *trial, mgl_text *out)
{
    mgl_text_format(out, "trial %lld, which was kept, is wrong: ", (long long)trial->number);
    mgl_trial_verdict_print(&trial->verdict, out);
}
