/* Implements mgl_archive_write: writes a campaign as an archive (archive.h). The input is only the
 * store. */
#include "autotune/archive/archive.h"
#include "autotune/archive/archive_fields.h"
#include "autotune/candidates/gate.h"
#include "autotune/store/frozen.h"
#include "autotune/store/store_query.h"

#include "base/format.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/memory.h"

#include <string.h>

/* ---- fields --------------------------------------------------------------------------------- */

static const mgl_field share_list[] = {MGL_FIELD(mgl_archive_share, TEXT, proposer, proposer),
                                       MGL_FIELD(mgl_archive_share, INT64, trials, trials),
                                       MGL_FIELD(mgl_archive_share, INT64, kept, kept)};
static const mgl_field predicted_list[] = {
    MGL_FIELD(mgl_answer_predicted, INT64, number, number),
    MGL_FIELD(mgl_answer_predicted, REAL, us, us),
    MGL_FIELD(mgl_answer_predicted, REAL, default_us, default_us)};
static const mgl_field gain_list[] = {
    MGL_FIELD(mgl_answer_gain, REAL, gain, gain), MGL_FIELD(mgl_answer_gain, REAL, gain_lo, lo),
    MGL_FIELD(mgl_answer_gain, REAL, gain_hi, hi), MGL_FIELD(mgl_answer_gain, REAL, us, us),
    MGL_FIELD(mgl_answer_gain, REAL, default_us, default_us)};
const mgl_fields mgl_archive_share_fields = MGL_FIELDS(share_list);
const mgl_fields mgl_archive_predicted_fields = MGL_FIELDS(predicted_list);
const mgl_fields mgl_archive_workload_fields = MGL_FIELDS(gain_list);
const mgl_fields mgl_archive_gain_fields = {gain_list, 3};

/* Writes a text of at most `most` bytes, with slashes replaced, so that it cannot be a path. */
static void put_plain(mgl_json_out *out, const char *key, const char *text, size_t most)
{
    char plain[MGL_MAX_DIAGNOSTIC + 1];
    if (!text) {
        mgl_json_out_null(out, key);
        return;
    }
    mgl_format_into(plain, most + 1, "%s", text);
    for (char *c = plain; *c; c++)
        if (*c == '/' || *c == '\\')
            *c = '-';
    mgl_json_out_string(out, key, plain);
}

static void put_bits(mgl_json_out *out, const char *key, uint64_t bits)
{
    char digits[24];
    mgl_format_into(digits, sizeof digits, "%llu", (unsigned long long)bits);
    mgl_json_out_string(out, key, digits);
}

/* Writes a field. Config and moves are skipped, because the member "proposal" contains them. */
static void put_field(mgl_json_out *out, const char *key, const mgl_field *field, const void *at)
{
    const mgl_field_kind kind = field->kind;
    if (kind == MGL_FIELD_BITS64) /* as a string, because JSON numbers have only 53 bits */
        put_bits(out, key, *(const uint64_t *)at);
    else if (kind == MGL_FIELD_BOOL)
        mgl_json_out_bool(out, key, *(const bool *)at);
    else if (mgl_field_is_int(kind))
        mgl_json_out_int(out, key, mgl_field_int(kind, at));
    else if (kind == MGL_FIELD_REAL)
        mgl_json_out_double(out, key, *(const double *)at);
    else if (kind != MGL_FIELD_CONFIG && kind != MGL_FIELD_MOVES)
        put_plain(out, key, mgl_field_text(kind, at),
                  kind == MGL_FIELD_CHARS ? field->size - 1 : MGL_ARCHIVE_PLAIN);
}

/* Writes fields as members of an object, or as elements of an array. */
static void put_fields(mgl_json_out *out, const mgl_fields *fields, bool named, const void *record)
{
    for (int i = 0; i < fields->count; i++) {
        const mgl_field *field = &fields->list[i];
        if (mgl_archive_has(field))
            put_field(out, named ? field->name : NULL, field, mgl_field_in(field, record));
    }
}

static void put_object(mgl_json_out *out, const char *key, const mgl_fields *fields,
                       const void *record)
{
    mgl_json_out_object(out, key);
    put_fields(out, fields, true, record);
    mgl_json_out_close_object(out);
}

/* Writes finished JSON as the next member of the current object. */
static void put_json(mgl_json_out *out, const char *key, const mgl_text *json)
{
    out->text.failed |= json->failed;
    mgl_text_format(&out->text, ",\"%s\":%s", key, json->bytes ? json->bytes : "null");
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void put_proposal(mgl_json_out *out, const mgl_proposal *proposal)
{
    mgl_proposal shown = *proposal; /* borrowed */
    mgl_text json = {0};
    char hypothesis[MGL_MAX_HYPOTHESIS + 1];
    mgl_format_into(hypothesis, sizeof hypothesis, "%s",
                    proposal->hypothesis ? proposal->hypothesis : "");
    shown.hypothesis = hypothesis[0] ? hypothesis : NULL;
    if (mgl_config_is_none(&shown.config))
        mgl_schedule_config_default(&shown.config);
    mgl_proposal_print(&shown, &json);
    if (json.length && !json.failed)
        json.bytes[--json.length] = 0; /* removes the final line end */
    put_json(out, "proposal", &json);
    mgl_text_clear(&json);
}

/* State of the writer. */
typedef struct archiving {
    mgl_json_out *out;
    int64_t incumbent;
    int workloads;
    bool ours;   /* the campaign has this program's manifest */
    double lost; /* accumulated loss of the kept trials so far (judge.h) */
} archiving;

static mgl_status check_trial(archiving *a, const mgl_trial *trial, mgl_error *err)
{
    bool kept = trial->verdict.outcome == MGL_OUTCOME_OK && !trial->control;
    if (kept)
        return mgl_archive_check_keep(trial, a->workloads, a->ours ? &a->lost : NULL, err);
    if (trial->number != a->incumbent)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, "archive",
                    "the store names trial %lld as the winner, which was not kept: it is %s",
                    (long long)trial->number, mgl_outcome_name(trial->verdict.outcome));
}

static mgl_status put_trial(void *user, const mgl_trial *trial, mgl_error *err)
{
    archiving *a = user;
    mgl_json_out *out = a->out;
    mgl_status status = check_trial(a, trial, err);
    if (status)
        return status;
    mgl_json_out_object(out, NULL);
    put_fields(out, &mgl_trial_fields, true, trial);
    put_proposal(out, &trial->proposal);
    mgl_json_out_array(out, "results");
    for (int i = 0; i < trial->workload_count; i++)
        put_object(out, NULL, &mgl_result_fields, &trial->workloads[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "pairs");
    for (int i = 0; i < trial->pair_count; i++) {
        mgl_json_out_array(out, NULL);
        put_fields(out, &mgl_pair_fields, false, &trial->pairs[i]);
        mgl_json_out_close_array(out);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
    if (out->text.failed)
        return mgl_fail_memory(err, out->text.capacity);
    if (out->text.length > MGL_ARCHIVE_MAX)
        return mgl_fail(err, MGL_BAD_INPUT, "archive",
                        "the campaign's evidence has more than %d MiB, which is the most an "
                        "archive may have",
                        MGL_ARCHIVE_MAX >> 20);
    return MGL_OK;
}

static mgl_status put_share(void *user, const char *proposer, int64_t trials, int64_t kept,
                            mgl_error *err)
{
    (void)err;
    put_object(user, NULL, &mgl_archive_share_fields,
               &(mgl_archive_share){(char *)proposer, trials, kept});
    return MGL_OK;
}

/* Writes the campaign. The stored shape is parsed first, so that a damaged store does not produce
 * invalid JSON. */
static mgl_status put_campaign(mgl_json_out *out, const mgl_campaign_record *campaign,
                               mgl_error *err)
{
    mgl_json shape;
    mgl_text text = {0};
    const char *json = campaign->shape ? campaign->shape : "";
    mgl_status status =
        mgl_json_parse(json, strlen(json), MGL_ARCHIVE_SHAPE, "the campaign's shape", &shape, err);
    if (status)
        return status;
    mgl_json_clear(&shape);
    mgl_json_out_object(out, "campaign");
    put_fields(out, &mgl_campaign_fields, true, campaign);
    mgl_json_out_int(out, "trials", campaign->trials);
    mgl_json_out_int(out, "incumbent", campaign->incumbent);
    mgl_text_put(&text, json);
    put_json(out, "shape", &text);
    mgl_text_clear(&text);
    mgl_json_out_close_object(out);
    return MGL_OK;
}

/* Writes the final measurement if it measured the winner. A time of 0 means not measured. */
static mgl_status put_final(mgl_json_out *out, mgl_store *store,
                            const mgl_campaign_record *campaign, int workloads, mgl_error *err)
{
    mgl_answer_final_facts final;
    mgl_status status = mgl_answer_find_final(store, campaign->id, &final, err);
    const bool is = !status && mgl_answer_is_final_of(&final, campaign->incumbent) &&
                    final.workload_count == workloads;
    if (!status && !is)
        mgl_json_out_null(out, "final");
    if (!is)
        return status;
    mgl_json_out_object(out, "final");
    mgl_json_out_int(out, "number", final.number);
    put_fields(out, &mgl_archive_gain_fields, true, &final.all);
    mgl_json_out_array(out, "workloads");
    for (int w = 0; w < final.workload_count; w++) {
        mgl_json_out_object(out, NULL);
        put_fields(out, &mgl_archive_workload_fields, true, &final.each[w]);
        mgl_json_out_double(out, "cublas_us", final.cublas_us[w]);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
    return MGL_OK;
}

/* Writes the predicted winner as a trial without a parent. */
static mgl_status put_predicted_trial(archiving *a, mgl_store *store,
                                      const mgl_campaign_record *campaign, int64_t number,
                                      mgl_error *err)
{
    mgl_trial trial = {0};
    mgl_status status = mgl_store_get_trial(store, campaign->id, number, false, &trial, err);
    trial.proposal.parent = 0;
    if (!status)
        status = put_trial(a, &trial, err);
    mgl_trial_clear(&trial);
    return status;
}

static mgl_status put_all(mgl_store *store, const mgl_campaign_record *campaign, mgl_json_out *out,
                          mgl_error *err)
{
    mgl_workloads workloads;
    mgl_answer_predicted predicted = {0};
    mgl_status status = mgl_answer_check_final(store, campaign, err);
    if (!status)
        status = mgl_answer_find_predicted(store, campaign, &predicted, err);
    if (!status && !campaign->incumbent && !predicted.number)
        status = mgl_fail(err, MGL_BAD_INPUT, campaign->name,
                          mgl_answer_has_clock(campaign)
                              ? "the campaign has kept nothing yet: there is nothing to export"
                              : "no trial is predicted to be faster than the default: there is "
                                "nothing to export");
    if (!status)
        status =
            mgl_workloads_parse(campaign->workloads ? campaign->workloads : "", &workloads, err);
    if (status)
        return status;
    /* If the campaign has another manifest, only its digest is known, not its version. */
    bool ours = !strcmp(campaign->manifest, mgl_frozen_digest());
    archiving a = {out, campaign->incumbent, workloads.count, ours, 0};
    mgl_json_out_begin(out, MGL_ARCHIVE_SCHEMA);
    mgl_json_out_string(out, "program", MGL_VERSION);
    mgl_json_out_int(out, "manifest_version", ours ? mgl_frozen_version() : 0);
    status = put_campaign(out, campaign, err);
    mgl_json_out_array(out, "shares");
    if (!status)
        status = mgl_store_each_share(store, campaign->id, put_share, out, err);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "trials");
    if (!status && predicted.number)
        status = put_predicted_trial(&a, store, campaign, predicted.number, err);
    else if (!status)
        status = mgl_store_each_in_line(store, campaign->id, put_trial, &a, err);
    mgl_json_out_close_array(out);
    if (!status && predicted.number)
        put_object(out, "predicted", &mgl_archive_predicted_fields, &predicted);
    if (!status)
        status = put_final(out, store, campaign, workloads.count, err);
    mgl_json_out_close(out);
    return status;
}

mgl_status mgl_archive_write(mgl_store *store, const char *name, mgl_text *out, mgl_error *err)
{
    mgl_json_out json = {0};
    mgl_campaign_record campaign = {0};
    /* a snapshot, because trials may be added meanwhile */
    mgl_status status = mgl_store_begin_reading(store, err);
    if (status)
        return status;
    status = mgl_store_find_campaign(store, name, &campaign, err);
    if (!status)
        status = put_all(store, &campaign, &json, err);
    status = mgl_store_end(store, status, err);
    mgl_text_put(&json.text, "\n");
    if (!status)
        mgl_text_append(out, json.text.bytes, json.text.failed ? 0 : json.text.length);
    if (!status && (json.text.failed || out->failed))
        status = mgl_fail_memory(err, json.text.capacity);
    mgl_text_clear(&json.text);
    mgl_campaign_record_clear(&campaign);
    return status;
}
