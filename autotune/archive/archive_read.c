/*
 * Reader of archives (archive.h), strict because archives are untrusted. Each object has exactly
 * the known keys. Texts are bounded and cannot be paths; numbers are in range. Trials are
 * consistent: their numbers ascend, parents exist, and the winner is the last kept trial.
 * Implements mgl_archive_parse.
 */
#include "autotune/archive/archive.h"
#include "autotune/archive/archive_fields.h"
#include "autotune/candidates/gate.h"
#include "autotune/store/shape.h"
#include "autotune/store/store_place.h"

#include "base/format.h"
#include "base/json.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Keys that are not in the table of an object's fields. */
enum { EXTRA_OF_A_TRIAL = 3, EXTRA_OF_A_CAMPAIGN = 3, EXTRA_OF_A_FINAL_WORKLOAD = 1 };
enum { KEYS_OF_A_FINAL = 5, KEYS_OF_ALL = 6 };
static const int64_t largest = INT64_C(1) << 53; /* largest integer that JSON represents exactly */

/* The reader has a sticky error: the first one is kept. */
typedef struct reader {
    const mgl_json *json;
    char place[64]; /* "trial 12" */
    mgl_status status;
    mgl_error *err;
} reader;

static void refuse(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(reader *r, const char *format, ...)
{
    char what[300];
    va_list args;
    if (r->status)
        return;
    va_start(args, format);
    mgl_format_list(what, sizeof what, format, args);
    va_end(args);
    r->status = mgl_fail(r->err, MGL_BAD_INPUT, r->json->file, "%s: %s", r->place, what);
}

static void fail_memory(reader *r)
{
    if (!r->status)
        r->status = mgl_fail_memory(r->err, 0);
}

/* ---- values --------------------------------------------------------------------------------- */

static int64_t read_int(reader *r, const cJSON *item, const char *name, int64_t lo, int64_t hi)
{
    int64_t value = lo;
    if (!r->status)
        r->status = mgl_json_item_int(r->json, item, name, lo, hi, &value, r->err);
    return value;
}

static double read_real(reader *r, const cJSON *item, const char *name)
{
    if (cJSON_IsNumber(item))
        return item->valuedouble;
    if (!cJSON_IsNull(item))
        refuse(r, "\"%s\" must be a number or null", name);
    return NAN;
}

/* Reads 64 bits as decimal digits in a string. */
static uint64_t read_bits(reader *r, const cJSON *item, const char *name)
{
    enum { MOST_DIGITS = 20 };
    const char *text = cJSON_IsString(item) ? item->valuestring : "";
    size_t length = strlen(text);
    errno = 0;
    uint64_t value = strtoull(text, NULL, 10);
    if (!length || length > MOST_DIGITS || strspn(text, "0123456789") != length || errno)
        refuse(r, "\"%s\" must be a string of decimal digits, of a number below 2^64", name);
    return value;
}

/* Reads a text that is no path and contains no control characters; NULL: it was rejected. */
static const char *read_plain(reader *r, const cJSON *item, const char *name, size_t most)
{
    const char *text = cJSON_IsString(item) ? item->valuestring : NULL;
    bool good = text && strlen(text) <= most && text[0] != '.';
    for (const char *c = text; good && *c; c++)
        good = (unsigned char)*c >= ' ' && *c != 0x7F && *c != '/' && *c != '\\';
    if (!good)
        refuse(r,
               "\"%s\" must be a text of at most %zu bytes without controls and slashes that "
               "does not begin with '.'",
               name, most);
    return good ? text : NULL;
}

static void read_owned(reader *r, const cJSON *item, const char *name, char **out)
{
    if (cJSON_IsNull(item))
        return;
    const char *text = read_plain(r, item, name, MGL_ARCHIVE_PLAIN);
    if (text && !(*out = mgl_strdup(text)))
        fail_memory(r);
}

static void read_chars(reader *r, const cJSON *item, const mgl_field *field, char *out)
{
    const char *text = read_plain(r, item, field->name, field->size - 1);
    if (text)
        memcpy(out, text, strlen(text) + 1);
}

static bool read_bool(reader *r, const cJSON *item, const char *name)
{
    if (!cJSON_IsBool(item))
        refuse(r, "\"%s\" must be true or false", name);
    return cJSON_IsTrue(item);
}

static void read_outcome(reader *r, const cJSON *item, const char *name, mgl_outcome *out)
{
    if (!cJSON_IsString(item) || !mgl_outcome_parse(item->valuestring, out))
        refuse(r, "\"%s\" must be the name of an outcome", name);
}

/* Reads a field. Config and moves are skipped, because the member "proposal" contains them. */
static void read_field(reader *r, const cJSON *item, const mgl_field *field, void *at)
{
    const mgl_field_kind kind = field->kind;
    const int64_t most = kind == MGL_FIELD_INT    ? INT32_MAX
                         : kind == MGL_FIELD_UINT ? UINT32_MAX
                                                  : largest;
    if (kind == MGL_FIELD_BITS64)
        *(uint64_t *)at = read_bits(r, item, field->name);
    else if (kind == MGL_FIELD_BOOL)
        *(bool *)at = read_bool(r, item, field->name);
    else if (mgl_field_is_int(kind))
        mgl_field_set_int(kind, at, read_int(r, item, field->name, 0, most));
    else if (kind == MGL_FIELD_REAL)
        *(double *)at = read_real(r, item, field->name);
    else if (kind == MGL_FIELD_TEXT)
        read_owned(r, item, field->name, at);
    else if (kind == MGL_FIELD_CHARS)
        read_chars(r, item, field, at);
    else if (kind == MGL_FIELD_OUTCOME)
        read_outcome(r, item, field->name, at);
}

/* Returns a required member; NULL: it is missing. */
static const cJSON *find(reader *r, const cJSON *object, const char *key)
{
    const cJSON *item = mgl_json_member(object, key);
    if (!item)
        refuse(r, "the key \"%s\" is missing", key);
    return item;
}

/* Reads the fields of an object that has exactly `others` other keys; duplicate keys are
 * rejected. */
static void read_fields(reader *r, const cJSON *object, const mgl_fields *fields, int others,
                        void *record)
{
    int keys = others;
    if (!cJSON_IsObject(object))
        refuse(r, "it must be an object");
    for (int i = 0; i < fields->count && !r->status; i++) {
        const mgl_field *field = &fields->list[i];
        const cJSON *item = mgl_archive_has(field) ? find(r, object, field->name) : NULL;
        if (item)
            read_field(r, item, field, mgl_field_of(field, record));
        keys += item != NULL;
    }
    if (!r->status && cJSON_GetArraySize(object) != keys)
        refuse(r, "it has keys that this version does not know");
}

static const cJSON *find_array(reader *r, const cJSON *object, const char *key, size_t most,
                               size_t *count)
{
    const cJSON *array = find(r, object, key);
    *count = 0;
    if (array && !cJSON_IsArray(array))
        refuse(r, "\"%s\" must be an array", key);
    else if (array && (size_t)cJSON_GetArraySize(array) > most)
        refuse(r, "\"%s\" has more than %zu items", key, most);
    else if (array)
        *count = (size_t)cJSON_GetArraySize(array);
    return r->status ? NULL : array;
}

static bool is_hash(const char *text)
{
    return strlen(text) == MGL_SHA256_HEX - 1 &&
           strspn(text, "0123456789abcdef") == MGL_SHA256_HEX - 1;
}

/* ---- campaign -------------------------------------------------------------------------------- */

static void read_shape(reader *r, const cJSON *shape, mgl_archive *out)
{
    if (shape && !cJSON_IsObject(shape))
        refuse(r, "\"shape\" must be an object");
    char *text = r->status ? NULL : cJSON_PrintUnformatted(shape);
    if (!text) {
        fail_memory(r);
        return;
    }
    r->status = mgl_shape_parse(text, &out->config, r->err);
    if (!r->status && !(out->campaign.shape = mgl_strdup(text)))
        fail_memory(r);
    cJSON_free(text);
}

/* Checks the required texts of a campaign, and parses its dtype, target, workloads and name. */
static void check_campaign(reader *r, mgl_archive *out)
{
    enum { MOST_POSITIONS = 1 << 28 };
    mgl_campaign_record *campaign = &out->campaign;
    if (r->status)
        return;
    if (!campaign->target || !campaign->dtype || !campaign->workloads || !campaign->model ||
        !campaign->device)
        refuse(r, "model, device, target, dtype and workloads must be texts");
    else if (!mgl_dtype_parse(campaign->dtype, &out->dtype))
        refuse(r, "\"%.40s\" is no dtype", campaign->dtype);
    else if (campaign->capacity < 1 || campaign->capacity > MOST_POSITIONS)
        refuse(r, "a capacity of %lld positions", (long long)campaign->capacity);
    else if (!is_hash(campaign->manifest))
        refuse(r, "\"manifest\" must be a SHA-256");
    if (!r->status)
        r->status = mgl_target_parse(campaign->target, &out->target, r->err);
    if (!r->status)
        r->status = mgl_workloads_parse(campaign->workloads, &out->workloads, r->err);
    if (!r->status)
        r->status = mgl_store_check_name(campaign->name, r->err);
    if (r->status && r->status != MGL_NO_MEMORY) {
        r->status = MGL_BAD_INPUT; /* the error is in a file, not in a flag */
        if (r->err)
            r->err->code = MGL_BAD_INPUT;
    }
}

static void read_campaign(reader *r, const cJSON *root, mgl_archive *out)
{
    mgl_format_into(r->place, sizeof r->place, "campaign");
    const cJSON *campaign = find(r, root, "campaign");
    if (!campaign)
        return;
    read_fields(r, campaign, &mgl_campaign_fields, EXTRA_OF_A_CAMPAIGN, &out->campaign);
    if (r->status)
        return;
    out->campaign.trials = read_int(r, find(r, campaign, "trials"), "trials", 1, largest);
    out->campaign.incumbent =
        read_int(r, find(r, campaign, "incumbent"), "incumbent",
                 mgl_json_member(root, "predicted") ? 0 : 1, out->campaign.trials);
    read_shape(r, find(r, campaign, "shape"), out);
    check_campaign(r, out);
}

static void read_shares(reader *r, const cJSON *root, mgl_archive *out)
{
    enum { MOST = 1024 };
    size_t count;
    const cJSON *array = find_array(r, root, "shares", MOST, &count);
    out->shares = array ? mgl_alloc_zero(count, sizeof *out->shares) : NULL;
    if (array && !out->shares)
        fail_memory(r);
    for (const cJSON *item = array ? array->child : NULL; item && !r->status; item = item->next) {
        mgl_archive_share *share = &out->shares[out->share_count++];
        mgl_format_into(r->place, sizeof r->place, "share %zu", out->share_count);
        read_fields(r, item, &mgl_archive_share_fields, 0, share);
        if (!share->proposer || share->kept > share->trials)
            refuse(r, "it must have a proposer, and kept must be at most trials");
    }
}

/* ---- trials --------------------------------------------------------------------------------- */

static void read_proposal(reader *r, const cJSON *item, mgl_trial *out)
{
    mgl_schedule_config start;
    char *text = item && !r->status ? cJSON_PrintUnformatted(item) : NULL;
    if (!text) {
        fail_memory(r);
        return;
    }
    mgl_schedule_config_default(&start);
    if (!cJSON_IsObject(item))
        refuse(r, "\"proposal\" must be an object");
    else
        r->status =
            mgl_proposal_parse(text, strlen(text), r->place, &start, &out->proposal, r->err);
    cJSON_free(text);
}

static void read_results(reader *r, const cJSON *trial, const mgl_archive *archive, mgl_trial *out)
{
    size_t count;
    const cJSON *array = find_array(r, trial, "results", MGL_MAX_WORKLOADS, &count);
    if (array && count && count != (size_t)archive->workloads.count)
        refuse(r, "%zu results of %d workloads", count, archive->workloads.count);
    for (const cJSON *item = array ? array->child : NULL; item && !r->status; item = item->next)
        read_fields(r, item, &mgl_result_fields, 0, &out->workloads[out->workload_count++]);
}

static void check_pair(reader *r, const mgl_archive *archive, const mgl_pair *pair)
{
    if (pair->workload >= archive->workloads.count || pair->stage >= MGL_PAIRS_STAGES)
        refuse(r, "a pair of a workload or a stage that there is not");
    else if (!(pair->incumbent_us > 0 && pair->candidate_us > 0)) /* also rejects NaN */
        refuse(r, "a pair without its two times");
}

static void read_pairs(reader *r, const cJSON *trial, const mgl_archive *archive, mgl_trial *out)
{
    enum { MOST = 1 << 16 };
    size_t count;
    const cJSON *array = find_array(r, trial, "pairs", MOST, &count);
    out->pairs = array ? mgl_alloc_zero(count, sizeof *out->pairs) : NULL;
    if (array && !out->pairs)
        fail_memory(r);
    for (const cJSON *item = array ? array->child : NULL; item && !r->status; item = item->next) {
        mgl_pair *pair = &out->pairs[out->pair_count++];
        const cJSON *value = item->child;
        if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != mgl_pair_fields.count)
            refuse(r, "a pair is an array of %d values", mgl_pair_fields.count);
        for (int i = 0; i < mgl_pair_fields.count && !r->status; i++, value = value->next)
            read_field(r, value, &mgl_pair_fields.list[i],
                       mgl_field_of(&mgl_pair_fields.list[i], pair));
        if (!r->status)
            check_pair(r, archive, pair);
    }
}

static const mgl_trial *find_trial(const mgl_archive *archive, int64_t number)
{
    for (size_t lo = 0, hi = archive->trial_count; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        if (archive->trials[mid].number == number)
            return &archive->trials[mid];
        if (archive->trials[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* Checks a trial against the trials before it. */
static void check_trial(reader *r, mgl_archive *archive, const mgl_trial *trial)
{
    size_t before = archive->trial_count - 1;
    int64_t parent = trial->proposal.parent;
    if (r->status)
        return;
    archive->trial_count = before; /* find_trial must search only the earlier trials */
    if (trial->number <= (before ? archive->trials[before - 1].number : 0))
        refuse(r, "its number must be above that of the trial before it");
    else if (trial->number > archive->campaign.trials)
        refuse(r, "the campaign has %lld trials", (long long)archive->campaign.trials);
    else if (parent && !find_trial(archive, parent))
        refuse(r, "its parent is trial %lld, which is not before it", (long long)parent);
    else if ((trial->digest[0] && !is_hash(trial->digest)) ||
             (trial->nonce[0] && !is_hash(trial->nonce)) ||
             (trial->manifest[0] && !is_hash(trial->manifest)))
        refuse(r, "digest, nonce and manifest must be SHA-256 or empty");
    archive->trial_count = before + 1;
}

static void read_trial(reader *r, const cJSON *item, mgl_archive *out)
{
    mgl_trial *trial = &out->trials[out->trial_count++];
    mgl_format_into(r->place, sizeof r->place, "trial %zu of the list", out->trial_count);
    const cJSON *proposal = find(r, item, "proposal");
    if (!proposal)
        return;
    read_proposal(r, proposal, trial);
    if (!r->status)
        read_fields(r, item, &mgl_trial_fields, EXTRA_OF_A_TRIAL, trial);
    if (!r->status)
        read_results(r, item, out, trial);
    if (!r->status)
        read_pairs(r, item, out, trial);
    check_trial(r, out, trial);
}

static void read_trials(reader *r, const cJSON *root, mgl_archive *out)
{
    size_t count;
    const cJSON *array = find_array(r, root, "trials", MGL_MAX_LINE, &count);
    out->trials = array ? mgl_alloc_zero(count, sizeof *out->trials) : NULL;
    if (array && !out->trials)
        fail_memory(r);
    for (const cJSON *item = array ? array->child : NULL; item && !r->status; item = item->next)
        read_trial(r, item, out);
}

static double find_real(reader *r, const cJSON *object, const char *key)
{
    const cJSON *item = find(r, object, key);
    return item ? read_real(r, item, key) : NAN;
}

/* Finds the predicted winner: the only trial, which was not measured. */
static void find_predicted(reader *r, const cJSON *predicted, mgl_archive *out)
{
    mgl_format_into(r->place, sizeof r->place, "predicted");
    read_fields(r, predicted, &mgl_archive_predicted_fields, 0, &out->predicted);
    if (!r->status && !(out->predicted.us > 0 && out->predicted.default_us >= 0))
        refuse(r, "us must be above 0, and default_us 0 or more");
    const mgl_trial *trial = out->trial_count == 1 ? out->trials : NULL;
    if (!r->status && (out->campaign.incumbent || !trial ||
                       trial->number != out->predicted.number || !trial->digest[0] ||
                       !mgl_answer_may_win(trial) || trial->verdict.outcome == MGL_OUTCOME_OK))
        refuse(r, "it must be the only trial, with a digest and a prediction, and not kept");
    out->winner = r->status ? NULL : trial;
}

/* Finds the winner: the last kept trial, which needs a measured gain. */
static void find_winner(reader *r, mgl_archive *out)
{
    const mgl_trial *last = NULL;
    if (r->status)
        return;
    for (size_t i = 0; i < out->trial_count; i++)
        if (out->trials[i].verdict.outcome == MGL_OUTCOME_OK && !out->trials[i].control)
            last = &out->trials[i];
    mgl_format_into(r->place, sizeof r->place, "incumbent");
    if (!last || last->number != out->campaign.incumbent)
        refuse(r, "it must be the last trial that was kept");
    else if (!isfinite(last->gain) || !last->digest[0])
        refuse(r, "it must have a digest and a gain that was measured");
    out->winner = r->status ? NULL : last;
}

/* ---- final measurement ----------------------------------------------------------------------- */

/* Reads the final measurement: null, or the winner's results in every workload. */
static void read_final(reader *r, const cJSON *final, mgl_archive *out)
{
    size_t count;
    if (r->status || !final || cJSON_IsNull(final))
        return;
    mgl_format_into(r->place, sizeof r->place, "final");
    if (!cJSON_IsObject(final) || cJSON_GetArraySize(final) != KEYS_OF_A_FINAL)
        refuse(r, "it must have number, gain, gain_lo, gain_hi and workloads");
    mgl_answer_gain *all = &out->final.all;
    read_fields(r, final, &mgl_archive_gain_fields, 2, all);
    if (!r->status && (all->lo <= -1 || all->gain < all->lo || all->hi < all->gain))
        refuse(r, "gain must lie between gain_lo, which is above -1, and gain_hi");
    out->final.number =
        read_int(r, find(r, final, "number"), "number", out->winner->number, out->winner->number);
    const cJSON *list = find_array(r, final, "workloads", MGL_MAX_WORKLOADS, &count);
    if (list && count != (size_t)out->workloads.count)
        refuse(r, "%zu results of %d workloads", count, out->workloads.count);
    for (const cJSON *item = list ? list->child : NULL; item && !r->status; item = item->next) {
        const int w = out->final.workload_count++;
        mgl_answer_gain *each = &out->final.each[w];
        read_fields(r, item, &mgl_archive_workload_fields, EXTRA_OF_A_FINAL_WORKLOAD, each);
        out->final.cublas_us[w] = find_real(r, item, "cublas_us");
        if (!r->status && (each->us < 0 || each->default_us < 0 || out->final.cublas_us[w] < 0))
            refuse(r, "a time must be 0 or more");
    }
}

/* ---- whole archive --------------------------------------------------------------------------- */

void mgl_archive_clear(mgl_archive *archive)
{
    for (size_t i = 0; i < archive->share_count; i++)
        mgl_free(archive->shares[i].proposer);
    for (size_t i = 0; i < archive->trial_count; i++)
        mgl_trial_clear(&archive->trials[i]);
    mgl_free(archive->shares);
    mgl_free(archive->trials);
    mgl_campaign_record_clear(&archive->campaign);
    *archive = (mgl_archive){0};
}

static void read_all(reader *r, const cJSON *root, mgl_archive *out)
{
    mgl_format_into(r->place, sizeof r->place, "the archive");
    r->status = mgl_json_check_schema(r->json, MGL_ARCHIVE_SCHEMA, r->err);
    if (r->status)
        return;
    const cJSON *program = r->status ? NULL : find(r, root, "program");
    if (program)
        read_plain(r, program, "program", MGL_ARCHIVE_PLAIN);
    const cJSON *version = r->status ? NULL : find(r, root, "manifest_version");
    if (version)
        out->manifest_version = (int)read_int(r, version, "manifest_version", 0, INT32_MAX);
    const cJSON *final = mgl_json_member(root, "final");
    const cJSON *predicted = mgl_json_member(root, "predicted");
    if (!r->status &&
        cJSON_GetArraySize(root) != KEYS_OF_ALL + (final != NULL) + (predicted != NULL))
        refuse(r, "it has keys that this version does not know, or lacks one");
    if (!r->status)
        read_campaign(r, root, out);
    if (!r->status)
        read_shares(r, root, out);
    if (!r->status)
        read_trials(r, root, out);
    if (predicted && !r->status)
        find_predicted(r, predicted, out);
    else
        find_winner(r, out);
    read_final(r, final, out);
}

mgl_status mgl_archive_parse(const char *text, size_t length, const char *file, mgl_archive *out,
                             mgl_error *err)
{
    mgl_json json;
    *out = (mgl_archive){0};
    mgl_status status = mgl_json_parse(text, length, MGL_ARCHIVE_MAX, file, &json, err);
    if (status)
        return status;
    reader r = {.json = &json, .err = err};
    read_all(&r, json.root, out);
    mgl_json_clear(&json);
    if (r.status)
        mgl_archive_clear(out);
    return r.status;
}
