/*
 * Conversion of a tuning request to a campaign record, and of a record to a subject. A campaign is
 * found by its name. If the user gave no name, the name is derived from what is tuned, so the same
 * command resumes the same campaign. Also creates successors (--rebase) and campaigns from
 * archives, and estimates needs before the start.
 */
#include "autotune/tune.h"

#include "autotune/candidates/judge.h"
#include "autotune/store/frozen.h"
#include "autotune/store/shape.h"
#include "autotune/tune_chat.h"
#include "autotune/tune_checkpoint.h"
#include "base/aliases.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/synthetic.h"
#include "eval/weight_flags.h"
#include "vm/cuda/cuda.h"
#include "vm/pipeline/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define OPTIONS_SCHEMA "megalith.options/1"
enum { MAX_TEXT = 1 << 20, LONGEST_NAME = 100, LONGEST_NAME_OF_FORMATS = 140, MOST_NAME = 160 };

void mgl_tune_clear(mgl_tune *tune)
{
    mgl_campaign_record_clear(&tune->record);
    mgl_subject_close(&tune->subject);
    mgl_free(tune->device);
    mgl_free(tune->proposers);
    mgl_free(tune->chat_url);
    mgl_free(tune->chat_model);
    mgl_free(tune->checkpoint);
    *tune = (mgl_tune){0};
}

/* Moves the contents of a text to a string. */
static mgl_status take_text(mgl_text *text, char **to, mgl_error *err)
{
    mgl_status status = text->failed ? mgl_fail_memory(err, text->capacity) : MGL_OK;
    if (!status) {
        *to = mgl_strdup(text->bytes ? text->bytes : "");
        if (!*to)
            status = mgl_fail_memory(err, text->length + 1);
    }
    mgl_text_clear(text);
    return status;
}

static mgl_status copy_text(const char *from, char **to, mgl_error *err)
{
    *to = mgl_strdup(from);
    return *to ? MGL_OK : mgl_fail_memory(err, strlen(from) + 1);
}

/* ---- a record from a request ----------------------------------------------------------------- */

static mgl_status check_dtype(const char *name, mgl_error *err)
{
    mgl_dtype dtype;
    if (mgl_dtype_parse(name, &dtype) && dtype != MGL_I32)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, name,
                    "unknown dtype; supported: bf16, f16, f32, int8, int4 and fp8");
}

/* Splits the requested dtype into the code of the layers' weights and the dtype of all other
 * numbers. */
static const char *split_dtype(const mgl_tune_request *r, mgl_weight_code *layers)
{
    const char *name = r->dtype ? r->dtype : "bf16";
    *layers = MGL_CODE_BF16;
    return mgl_weight_flag_find(name, strlen(name), layers) ? "bf16" : name;
}

/* Sets the weight formats of the flags; those of a quantized model remain. */
static mgl_status choose_formats(const mgl_tune_request *r, mgl_config *config, mgl_error *err)
{
    mgl_weight_code layers, head = MGL_CODE_BF16;
    split_dtype(r, &layers);
    const bool any_scaled = mgl_weight_code_get(layers)->scaled;
    const bool has_own = mgl_synthetic_is_quantized(config);
    if (has_own && (any_scaled || r->head_dtype || r->group))
        return mgl_fail(err, MGL_USAGE, "--dtype, --group or --head-dtype",
                        MGL_WEIGHT_FLAGS_NEED_NONE);
    if (has_own)
        return MGL_OK;
    mgl_status status = MGL_OK;
    if (r->head_dtype)
        status =
            mgl_weight_flag_read("--head-dtype", r->head_dtype, strlen(r->head_dtype), &head, err);
    if (!status)
        status = mgl_weight_flag_check_group(r->group,
                                             any_scaled || mgl_weight_code_get(head)->scaled, err);
    if (!status)
        mgl_synthetic_choose_formats(config, mgl_weight_flag_format(layers, r->group),
                                     mgl_weight_flag_format(head, r->group));
    return status;
}

static mgl_status find_model(const mgl_tune_request *r, mgl_config *config,
                             mgl_campaign_record *out, mgl_error *err)
{
    char name[MGL_SHAPE_NAME];
    mgl_text shape = {0};
    if ((r->model != NULL) == (r->shape != NULL))
        return mgl_fail(err, MGL_USAGE, "--shape", "%s",
                        r->model ? "cannot be combined with MODEL; leave out one of the two"
                                 : "is missing; give --shape or MODEL");
    mgl_status status = r->model ? mgl_synthetic_read_config(r->model, config, err)
                                 : mgl_synthetic_find_shape(r->shape, config, err);
    if (!status)
        status = choose_formats(r, config, err);
    if (!status)
        status = mgl_shape_name(config, name, err);
    if (!status)
        status = copy_text(r->shape ? r->shape : name, &out->model, err);
    if (status)
        return status;
    mgl_shape_print(config, &shape);
    return take_text(&shape, &out->shape, err);
}

/* Copies the name of the GPU. */
static mgl_status name_gpu(int ordinal, mgl_campaign_record *out, mgl_error *err)
{
    mgl_cuda_probe *probe = mgl_alloc(sizeof *probe);
    if (!probe)
        return mgl_fail_memory(err, sizeof *probe);
    mgl_cuda_get_probe(probe);
    mgl_status status =
        ordinal < probe->device_count
            ? copy_text(probe->devices[ordinal].name, &out->device, err)
            : mgl_fail(err, MGL_DEVICE, "--device", "GPU %d does not exist", ordinal);
    mgl_free(probe);
    return status;
}

static mgl_status find_device(const mgl_tune_request *r, mgl_target *target,
                              mgl_campaign_record *out, mgl_error *err)
{
    mgl_text text = {0};
    mgl_device machine = {0};
    const char *device = r->device ? r->device : "cuda";
    bool gpu = !strncmp(device, "cuda", 4), none = !strcmp(device, "none");
    if (!gpu && !none && strcmp(device, "cpu") != 0)
        return mgl_fail(err, MGL_USAGE, device,
                        "unknown device; supported: cuda, cuda:N, cpu and none");
    if (gpu && r->target)
        return mgl_fail(err, MGL_USAGE, "--target",
                        "is fixed by the GPU; --target needs --device none or cpu");
    mgl_status status = none ? MGL_OK : mgl_device_find(device, &machine, err);
    *target = machine.target;
    if (!status && (none || r->target))
        status = mgl_target_parse(r->target ? r->target : MGL_TUNE_TARGET, target, err);
    if (!status)
        status = gpu ? name_gpu(machine.device, out, err) : copy_text(device, &out->device, err);
    /* the value came from a flag, not from a file */
    if (status)
        return status == MGL_BAD_INPUT ? MGL_USAGE : status;
    mgl_text_format(&text, "%s:%d", target->arch, target->queues);
    return take_text(&text, &out->target, err);
}

/* The default workloads cover a typical reply: its first positions, and half of the capacity. */
static void default_workloads(int64_t capacity, char *to, size_t size)
{
    int half = (int)(capacity / 2);
    if (half > MGL_WORKLOAD_TOKENS)
        snprintf(to, size, "ctx=0,%d;batch=1", half);
    else
        snprintf(to, size, "ctx=0;batch=1");
}

static mgl_status read_workloads(const mgl_tune_request *r, const mgl_config *config,
                                 mgl_campaign_record *out, mgl_error *err)
{
    mgl_text text = {0};
    mgl_workloads workloads;
    int most = config->max_positions < MGL_MAX_CAPACITY ? config->max_positions : MGL_MAX_CAPACITY;
    char preset[48];
    out->capacity = r->capacity ? r->capacity : most < MGL_TUNE_CAPACITY ? most : MGL_TUNE_CAPACITY;
    if (out->capacity > most)
        return mgl_fail(err, MGL_USAGE, "--capacity", "the model has %d positions", most);
    default_workloads(out->capacity, preset, sizeof preset);
    mgl_status status = mgl_workloads_parse(r->workloads ? r->workloads : preset, &workloads, err);
    if (status)
        return status;
    for (int w = 0; w < workloads.count; w++) /* one more position for the first token */
        if (workloads.list[w].context + MGL_WORKLOAD_TOKENS >= out->capacity)
            return mgl_fail(err, MGL_USAGE, "--workloads",
                            "context %d and %d tokens do not fit into %lld positions (--capacity)",
                            workloads.list[w].context, MGL_WORKLOAD_TOKENS,
                            (long long)out->capacity);
    mgl_workloads_print(&workloads, &text);
    return take_text(&text, &out->workloads, err);
}

static mgl_status put_space(const mgl_search_space *space, mgl_campaign_record *out, mgl_error *err)
{
    mgl_text text = {0};
    mgl_search_space_print(space, &text);
    return take_text(&text, &out->space, err);
}

static mgl_status read_space(const mgl_tune_request *r, const mgl_target *target,
                             mgl_campaign_record *out, mgl_error *err)
{
    mgl_search_space space;
    char *bytes = NULL;
    size_t length = 0;
    mgl_status status = MGL_OK;
    if (r->space) {
        status = mgl_file_read(r->space, MAX_TEXT, &bytes, &length, err);
        if (!status)
            status = mgl_search_space_parse(bytes, length, r->space, target, r->allow_formats,
                                            &space, err);
        mgl_free(bytes);
    } else {
        mgl_search_space_default(target, r->allow_formats, &space);
    }
    return status ? status : put_space(&space, out, err);
}

/* Writes the settings that have no field of their own in the record, as JSON. */
static mgl_status write_options(const mgl_tune_request *r, mgl_campaign_record *out, mgl_error *err)
{
    mgl_json_out to = {0};
    mgl_text config = {0};
    mgl_schedule_config start;
    mgl_schedule_config_default(&start);
    mgl_status status = r->config ? mgl_schedule_config_read(r->config, &start, err) : MGL_OK;
    if (status)
        return status;
    mgl_json_out_begin(&to, OPTIONS_SCHEMA);
    mgl_json_out_string(&to, "device", r->device ? r->device : "cuda");
    mgl_json_out_string(&to, "proposers", r->proposers ? r->proposers : MGL_TUNE_PROPOSERS);
    mgl_json_out_bool(&to, "allow_formats", r->allow_formats);
    mgl_tune_put_chat(r, &to);
    mgl_schedule_config_print(&start, &config);
    to.text.failed |= config.failed;
    mgl_text_format(&to.text, ",\"config\":%s", config.bytes ? config.bytes : "null");
    mgl_text_clear(&config);
    mgl_json_out_close(&to);
    return take_text(&to.text, &out->options, err);
}

/* Keeps letters, digits, dots and underscores. Each run of other characters becomes one dash. */
static void put_plain(mgl_text *out, const char *text)
{
    for (; *text; text++) {
        char c = (char)tolower((unsigned char)*text);
        bool plain = isalnum((unsigned char)c) || c == '.' || c == '_';
        if (!plain && out->length && out->bytes[out->length - 1] == '-')
            continue;
        mgl_text_append(out, plain ? &c : "-", 1);
    }
}

static mgl_status choose_name(const mgl_tune_request *r, const mgl_config *config,
                              mgl_campaign_record *out, mgl_error *err)
{
    mgl_text name = {0};
    char formats[MGL_SYNTHETIC_TEXT];
    if (r->name)
        return copy_text(r->name, &out->name, err);
    mgl_synthetic_print_formats(config, formats);
    const size_t most = formats[0] ? LONGEST_NAME_OF_FORMATS : LONGEST_NAME;
    const char *parts[] = {out->model,  formats,    out->device,
                           out->target, out->dtype, out->workloads};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i][0])
            continue;
        mgl_text_put(&name, i ? "-" : "");
        put_plain(&name, parts[i]);
    }
    mgl_text_format(&name, "-cap-%lld", (long long)out->capacity);
    if (!name.failed && name.length > most)
        name.bytes[most] = 0;
    return take_text(&name, &out->name, err);
}

static mgl_status draw_seed(const mgl_tune_request *r, mgl_campaign_record *out, mgl_error *err)
{
    uint32_t bits = 0;
    out->seed = r->seed;
    if (r->has_seed)
        return MGL_OK;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return mgl_fail_errno(err, "--seed", "the system provides no random numbers; give a seed");
    out->seed = bits;
    return MGL_OK;
}

static mgl_status make_record(const mgl_tune_request *r, mgl_campaign_record *out, mgl_error *err)
{
    mgl_config config;
    mgl_target target;
    mgl_weight_code layers;
    const char *dtype = split_dtype(r, &layers);
    if (r->fresh && r->rebase)
        return mgl_fail(
            err, MGL_USAGE, "--new",
            "discards earlier results, and --rebase measures them again; leave out one of the two");
    mgl_format_into(out->manifest, sizeof out->manifest, "%s", mgl_frozen_digest());
    mgl_status status = check_dtype(dtype, err);
    if (!status)
        status = mgl_tune_check_chat(r, err);
    if (!status && r->proposers)
        status = mgl_tune_check_proposers(r->proposers, err);
    if (!status)
        status = find_model(r, &config, out, err);
    if (!status)
        status = find_device(r, &target, out, err);
    if (!status)
        status = copy_text(dtype, &out->dtype, err);
    if (!status)
        status = read_workloads(r, &config, out, err);
    if (!status)
        status = read_space(r, &target, out, err);
    if (!status)
        status = write_options(r, out, err);
    if (!status)
        status = draw_seed(r, out, err);
    if (!status)
        status = copy_text("running", &out->state, err);
    return status ? status : choose_name(r, &config, out, err);
}

/* ---- a campaign from a record -----------------------------------------------------------------
 */

static mgl_status read_options(mgl_tune *tune, mgl_error *err)
{
    mgl_json json;
    const char *device = NULL, *proposers = NULL, *text = tune->record.options;
    mgl_status status = mgl_json_parse(text, strlen(text), MAX_TEXT, "options", &json, err);
    if (status)
        return status;
    status = mgl_json_get_string(&json, json.root, "device", true, &device, err);
    if (!status)
        status = mgl_json_get_string(&json, json.root, "proposers", true, &proposers, err);
    if (!status)
        status = copy_text(device, &tune->device, err);
    if (!status)
        status = copy_text(proposers, &tune->proposers, err);
    if (!status)
        status = mgl_tune_read_chat(&json, tune, err);
    mgl_json_clear(&json);
    return status;
}

static mgl_status read_record(mgl_tune *tune, mgl_error *err)
{
    mgl_status status = mgl_subject_read(&tune->record, &tune->subject, err);
    return status ? status : read_options(tune, err);
}

/* ---- finding the campaign in the store ------------------------------------------------------- */

/* A family: the campaign of a name, and the numbered campaigns that --new or --rebase made from it.
 */
typedef struct family {
    const char *name;
    char newest[MOST_NAME]; /* name of the campaign to resume; "": none */
    long last;              /* number of the last one: 1, or N of NAME-N; 0: none */
} family;

static mgl_status look_at(void *user, const mgl_campaign_record *campaign, mgl_error *err)
{
    (void)err;
    family *f = user;
    size_t length = strlen(f->name);
    long number = 1;
    if (strncmp(campaign->name, f->name, length) != 0)
        return MGL_OK;
    const char *rest = campaign->name + length;
    if (*rest) {
        size_t digits = *rest == '-' ? strspn(rest + 1, "0123456789") : 0;
        if (!digits || digits > 9 || rest[1 + digits])
            return MGL_OK;
        number = strtol(rest + 1, NULL, 10);
    }
    if (number > f->last) {
        f->last = number;
        mgl_format_into(f->newest, sizeof f->newest, "%s", campaign->name);
    }
    return MGL_OK;
}

typedef struct wanted_name {
    char text[MOST_NAME];
    bool stands;
} wanted_name;

static mgl_status compare_name(void *user, const mgl_campaign_record *campaign, mgl_error *err)
{
    (void)err;
    wanted_name *wanted = user;
    wanted->stands |= !strcmp(campaign->name, wanted->text);
    return MGL_OK;
}

/* Looks up a name that the user gave. The name must match completely: "exp" does not select
 * "exp-2024". The numbers that --new and --rebase append have no gaps. */
static mgl_status follow_name(mgl_store *store, bool rebase, family *f, mgl_error *err)
{
    wanted_name wanted = {.stands = true};
    mgl_status status = MGL_OK;
    while (!status && wanted.stands) {
        mgl_format_into(wanted.text, sizeof wanted.text, "%s", f->name);
        if (f->last)
            mgl_format_into(wanted.text, sizeof wanted.text, "%s-%ld", f->name, f->last + 1);
        wanted.stands = false;
        status = mgl_store_each_campaign(store, compare_name, &wanted, err);
        if (status || !wanted.stands)
            break;
        if (!f->last || rebase)
            mgl_format_into(f->newest, sizeof f->newest, "%s", wanted.text);
        f->last++;
    }
    return status;
}

static bool differs(const char *a, const char *b)
{
    return !a || !b || strcmp(a, b) != 0;
}

/* Rejects a given flag that differs from the value with which the campaign began. */
static mgl_status compare(const mgl_tune_request *r, const mgl_campaign_record *wanted,
                          const mgl_campaign_record *found, mgl_error *err)
{
    /* the chat flags require --proposer */
    bool options = r->config || r->proposers || r->allow_formats;
    const char *flag = NULL;
    char wanted_weights[MGL_SYNTHETIC_TEXT], found_weights[MGL_SYNTHETIC_TEXT];
    if (strcmp(mgl_shape_weights(wanted->shape, wanted_weights),
               mgl_shape_weights(found->shape, found_weights)) != 0)
        flag = "--dtype, --group or --head-dtype";
    else if (differs(wanted->shape, found->shape))
        flag = "MODEL or --shape";
    else if (differs(wanted->device, found->device))
        flag = "--device";
    else if (differs(wanted->target, found->target))
        flag = "--target";
    else if (differs(wanted->dtype, found->dtype))
        flag = "--dtype";
    else if (differs(wanted->workloads, found->workloads))
        flag = "--workloads";
    else if (wanted->capacity != found->capacity)
        flag = "--capacity";
    else if (r->space && differs(wanted->space, found->space))
        flag = "--space";
    else if (options && differs(wanted->options, found->options))
        flag = "--config, --proposer or --allow-formats";
    else if (r->has_seed && wanted->seed != found->seed)
        flag = "--seed";
    if (!flag)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, flag,
                    "the campaign \"%.80s\" began with another value; --new begins a new campaign, "
                    "and --name names it",
                    found->name);
}

/* Gives the record the next free name of the family. */
static mgl_status number_name(const family *f, mgl_campaign_record *record, mgl_error *err)
{
    mgl_text name = {0};
    mgl_text_format(&name, "%s-%ld", f->name, f->last + 1);
    mgl_free(record->name);
    record->name = NULL;
    return take_text(&name, &record->name, err);
}

static bool is_current(const mgl_campaign_record *record)
{
    return !strcmp(record->manifest, mgl_frozen_digest());
}

/* Turns the record into a new campaign with the same settings under this program's manifest. */
static mgl_status make_successor(const family *f, mgl_tune *out, mgl_error *err)
{
    mgl_campaign_record *c = &out->record;
    out->successor_of.campaign = c->id;
    out->successor_of.trial = c->incumbent;
    c->id = c->trials = c->incumbent = c->created_unix = c->updated_unix = 0;
    c->seconds = 0;
    mgl_format_into(c->manifest, sizeof c->manifest, "%s", mgl_frozen_digest());
    mgl_free(c->reason);
    mgl_free(c->state);
    c->reason = c->state = NULL;
    mgl_status status = copy_text("running", &c->state, err);
    return status ? status : number_name(f, c, err);
}

/* Finds the record in the store. If it is not found, or --new is given, chooses a free name. */
static mgl_status find_record(mgl_store *store, const mgl_tune_request *r, mgl_tune *out,
                              mgl_error *err)
{
    char name[MOST_NAME];
    family f = {.name = name};
    mgl_campaign_record found = {0};
    mgl_format_into(name, sizeof name, "%s", out->record.name);
    mgl_status status = r->name ? follow_name(store, r->rebase, &f, err)
                                : mgl_store_each_campaign(store, look_at, &f, err);
    if (status || !f.last)
        return status;
    if (r->fresh)
        return number_name(&f, &out->record, err);
    status = mgl_store_find_campaign(store, f.newest, &found, err);
    if (!status)
        status = compare(r, &out->record, &found, err);
    if (status) {
        mgl_campaign_record_clear(&found);
        return status;
    }
    mgl_campaign_record_clear(&out->record);
    out->record = found;
    out->found = !r->rebase || is_current(&out->record);
    return out->found ? MGL_OK : make_successor(&f, out, err);
}

/* Replaces the record by the newest successor of the campaign. Campaigns that --new made and that
 * tune something else do not count as successors. */
static mgl_status find_successor(mgl_store *store, const family *f, mgl_tune *out, mgl_error *err)
{
    const mgl_tune_request nothing_else = {0};
    mgl_campaign_record last = {0};
    mgl_status status = mgl_store_find_campaign(store, f->newest, &last, err);
    if (!status && !compare(&nothing_else, &out->record, &last, NULL)) {
        mgl_campaign_record_clear(&out->record);
        out->record = last;
    } else {
        mgl_campaign_record_clear(&last);
    }
    return status;
}

/* Replaces a record of another manifest by one that this program may resume. */
static mgl_status rebase_record(mgl_store *store, mgl_tune *out, mgl_error *err)
{
    char name[MOST_NAME];
    family f = {.name = name};
    if (is_current(&out->record))
        return MGL_OK;
    mgl_format_into(name, sizeof name, "%s", out->record.name);
    mgl_status status = follow_name(store, true, &f, err);
    if (!status)
        status = find_successor(store, &f, out, err);
    out->found = !status && is_current(&out->record);
    return status || out->found ? status : make_successor(&f, out, err);
}

/* ---- initial submissions --------------------------------------------------------------------- */

/* Queues a winner as a submission. Its parent has no number in this campaign, so `parent` becomes
 * 0. */
static mgl_status submit_winner(mgl_store *store, const mgl_proposal *proposal, int64_t campaign,
                                const char *origin, mgl_error *err)
{
    mgl_proposal winner = *proposal;
    mgl_text text = {0};
    int64_t id;
    winner.parent = 0;
    mgl_proposal_print(&winner, &text);
    mgl_status status =
        text.failed ? mgl_fail_memory(err, text.capacity)
                    : mgl_store_add_submission(store, campaign, text.bytes, origin, &id, err);
    mgl_text_clear(&text);
    return status;
}

static mgl_status add_record(mgl_tune *out, mgl_error *err)
{
    mgl_trial incumbent = {0};
    mgl_status status = mgl_store_add_campaign(out->store, &out->record, err);
    if (status || out->successor_of.trial == 0)
        return status;
    status = mgl_store_get_trial(out->store, out->successor_of.campaign, out->successor_of.trial,
                                 false, &incumbent, err);
    if (!status)
        status = submit_winner(out->store, &incumbent.proposal, out->record.id, "rebase", err);
    mgl_trial_clear(&incumbent);
    return status;
}

mgl_status mgl_tune_prepare(mgl_store *store, const mgl_tune_request *request, bool add,
                            mgl_tune *out, mgl_error *err)
{
    *out = (mgl_tune){.store = store};
    mgl_status status = make_record(request, &out->record, err);
    if (!status && store)
        status = find_record(store, request, out, err);
    if (!status)
        status = read_record(out, err);
    if (!status && add && !out->found)
        status = add_record(out, err);
    if (!status)
        status = mgl_tune_choose_checkpoint(out, request->model, add, err);
    /* another worker added the campaign first */
    if (status == MGL_USAGE && store && mgl_store_is_shared(store) && !request->fresh)
        status = find_record(store, request, out, err);
    if (status)
        mgl_tune_clear(out);
    return status;
}

static mgl_status find(mgl_store *store, const char *name, bool rebase, mgl_tune *out,
                       mgl_error *err)
{
    *out = (mgl_tune){.store = store, .found = true};
    mgl_status status = mgl_store_find_campaign(store, name, &out->record, err);
    if (!status && rebase)
        status = rebase_record(store, out, err);
    if (!status)
        status = read_record(out, err);
    if (!status && !out->found)
        status = add_record(out, err);
    if (!status)
        status = mgl_tune_choose_checkpoint(out, NULL, !out->found, err);
    if (status)
        mgl_tune_clear(out);
    return status;
}

mgl_status mgl_tune_find(mgl_store *store, const char *name, mgl_tune *out, mgl_error *err)
{
    return find(store, name, false, out, err);
}

mgl_status mgl_tune_rebase(mgl_store *store, const char *name, mgl_tune *out, mgl_error *err)
{
    return find(store, name, true, out, err);
}

/* ---- from an archive ------------------------------------------------------------------------- */

static mgl_status copy_archive(const mgl_archive *archive, const mgl_tune_request *r,
                               mgl_campaign_record *out, mgl_error *err)
{
    const mgl_campaign_record *c = &archive->campaign;
    const struct {
        const char *from;
        char **to;
    } texts[] = {{r->name ? r->name : c->name, &out->name},
                 {c->model, &out->model},
                 {c->shape, &out->shape},
                 {c->device, &out->device},
                 {c->target, &out->target},
                 {c->dtype, &out->dtype},
                 {c->workloads, &out->workloads},
                 {"running", &out->state}};
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !status; i++)
        status = copy_text(texts[i].from ? texts[i].from : "", texts[i].to, err);
    out->capacity = c->capacity;
    out->seed = c->seed;
    mgl_format_into(out->manifest, sizeof out->manifest, "%s", mgl_frozen_digest());
    return status;
}

/* The default space, extended by the values of the winner, whose campaign may have had another
 * space. */
static mgl_status choose_space(const mgl_archive *archive, const mgl_tune_request *r,
                               mgl_campaign_record *out, mgl_error *err)
{
    mgl_search_space space;
    mgl_schedule_config start;
    mgl_schedule_config_default(&start);
    mgl_search_space_default(&archive->target, r->allow_formats, &space);
    mgl_search_space_admit(&archive->winner->proposal.config, &start, &space);
    return put_space(&space, out, err);
}

/* Uses the requested device instead of the archive's. A program fits only one target, so the
 * targets must be equal. */
static mgl_status take_device(const mgl_tune_request *r, mgl_campaign_record *out, mgl_error *err)
{
    mgl_tune_request named = {.device = r->device};
    mgl_campaign_record live = {0};
    mgl_target target;
    if (strncmp(r->device, "cuda", 4) != 0)
        named.target = out->target;
    mgl_status status = find_device(&named, &target, &live, err);
    if (!status && strcmp(live.target, out->target) != 0)
        status = mgl_fail(err, MGL_USAGE, "--device",
                          "the archive's winner is for %.40s, and %.80s is %.40s; --device none "
                          "proves it, and --device cpu checks whether it is correct",
                          out->target, live.device, live.target);
    if (!status) {
        mgl_free(out->device);
        out->device = live.device;
        live.device = NULL;
    }
    mgl_campaign_record_clear(&live);
    return status;
}

mgl_status mgl_tune_import(mgl_store *store, const mgl_archive *archive,
                           const mgl_tune_request *request, mgl_campaign_record *out,
                           mgl_error *err)
{
    mgl_tune_request r = *request;
    *out = (mgl_campaign_record){0};
    mgl_status status = copy_archive(archive, &r, out, err);
    if (!status && r.device)
        status = take_device(&r, out, err);
    if (!status)
        status = mgl_subject_check_formats(out, err);
    if (!r.device && archive->campaign.device && strcmp(archive->campaign.device, "none") == 0)
        r.device = "none";
    if (!status)
        status = choose_space(archive, &r, out, err);
    if (!status)
        status = write_options(&r, out, err);
    if (!status)
        status = mgl_store_add_campaign(store, out, err);
    if (!status)
        status = submit_winner(store, &archive->winner->proposal, out->id, "import", err);
    if (status)
        mgl_campaign_record_clear(out);
    return status;
}

/* ---- estimates before the start -------------------------------------------------------------- */

/* Approximate launches of one trial and workload: correctness check, warm-up, screen, and the
 * average for the few candidates that survive the screen. */
enum { LAUNCHES = 11 + 4 + 16 + 6 };

static double guess_trial(const mgl_subject *subject, const mgl_candidate *candidate)
{
    double us = 0;
    for (int w = 0; w < subject->workloads.count; w++)
        us += candidate->predicted_us[w] * MGL_WORKLOAD_TOKENS * LAUNCHES;
    return us * 1e-6;
}

/* Asks a worker process for the device facts, as the campaign would. */
static mgl_status look_at_device(const mgl_tune *tune, const mgl_candidate *candidate,
                                 const atomic_int *abort, mgl_tune_outlook *out, mgl_error *err)
{
    mgl_runner *runner;
    mgl_runner_device device;
    const mgl_runner_options options = {.subject = &tune->subject,
                                        .device = tune->device,
                                        .program = "/proc/self/exe",
                                        .abort = abort};
    if (!strcmp(tune->device, "none"))
        return MGL_OK;
    mgl_status status = mgl_runner_device_open(&options, &runner, err);
    if (status)
        return status;
    status = runner->get_device(runner, &device, err);
    if (!status) {
        out->memory_needed = mgl_runner_bytes(&tune->subject, candidate);
        out->memory_free = device.memory_free;
        out->device_s = runner->measures ? guess_trial(&tune->subject, candidate) : 0;
    }
    runner->close(runner);
    return status;
}

mgl_status mgl_tune_look(const mgl_tune *tune, const atomic_int *abort, mgl_tune_outlook *out,
                         mgl_error *err)
{
    mgl_candidate candidate;
    mgl_proposal start = {.config = tune->subject.start};
    *out = (mgl_tune_outlook){.configs = 1};
    for (int k = 0; k < tune->subject.space.count; k++)
        out->configs *= tune->subject.space.knobs[k].count;
    double began = mgl_clock_s();
    mgl_status status = mgl_gate_pass(&tune->subject, &start, abort, &candidate, err);
    if (status)
        return status;
    out->gate_s = mgl_clock_s() - began;
    out->programs = candidate.program_count;
    out->predicted = candidate.predicted;
    if (candidate.verdict.outcome != MGL_OUTCOME_UNMEASURED)
        status = mgl_fail(
            err, MGL_BAD_INPUT, "the default", "the campaign cannot begin with this config: %s: %s",
            mgl_outcome_name(candidate.verdict.outcome), candidate.verdict.diagnostic);
    if (!status)
        status = look_at_device(tune, &candidate, abort, out, err);
    mgl_candidate_clear(&candidate);
    return status;
}
