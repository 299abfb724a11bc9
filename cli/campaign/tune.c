/*
 * megalith tune MODEL: searches for a faster schedule without supervision. Creates or continues a
 * campaign in a store and runs it. The validator proves each candidate safe, and only measured
 * gains are kept; see autotune/search/campaign.c.
 */
#include "cli/campaign/campaign.h"
#include "cli/signals.h"

#include "api/cancel.h"
#include "base/file.h"
#include "base/format.h"
#include "eval/synthetic.h"
#include "eval/weight_flags.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TUNE_OPTIONS(X)                                                                            \
    X(text, shape, "--shape", MGL_SHAPE_NAMES, 0, 0,                                               \
      "a shape with random weights, in place of MODEL")                                            \
    MGL_CLI_RUN_OPTIONS(X)                                                                         \
    X(text, workloads, "--workloads", "LIST", 0, 0,                                                \
      "contexts and batches to measure: ctx=0,8192;batch=1,8 (one sequence, at 0 and at half the " \
      "capacity)")                                                                                 \
    X(int, capacity, "--capacity", "N", 1, MGL_MAX_CAPACITY,                                       \
      "positions of the KV cache (4096, within the model's limit)")                                \
    X(text, dtype, "--dtype", "f16|f32|" MGL_WEIGHT_FLAG_NAMES, 0, 0,                              \
      "number format; int8, int4 and fp8: of the layers' weights; f16 and f32 need --device none " \
      "or cpu (bf16, or the formats of a quantized MODEL)")                                        \
    MGL_CLI_WEIGHT_OPTIONS(X)                                                                      \
    X(text, device, "--device", "cuda[:N]|cpu|none", 0, 0,                                         \
      "device of the candidates: cpu measures no times, none executes nothing (cuda)")             \
    X(text, target, "--target", "ARCH:QUEUES", 0, 0,                                               \
      "target of --device none or cpu (" MGL_TUNE_TARGET " with none)")                            \
    X(file, space, "--space", "F.json", 0, 0,                                                      \
      "the search space (all moves, and most knobs except number formats)")                        \
    X(file, config, "--config", "FILE", 0, 0, "the ScheduleConfig to begin with")                  \
    X(text, proposer, "--proposer", MGL_PROPOSER_SYNTAX, 0, 0,                                     \
      "proposers and their shares (" MGL_TUNE_PROPOSERS ")")                                       \
    X(text, chat_url, "--chat-url", "URL", 0, 0,                                                   \
      "endpoint of chat, compatible with OpenAI: https://HOST/v1/chat/completions")                \
    X(text, chat_model, "--chat-model", "NAME", 0, 0, "model of the endpoint of chat")             \
    MGL_CLI_CHAT_OPTIONS(X)                                                                        \
    X(flag, show_prompt, "--show-prompt", NULL, 0, 0, "print the next prompt of chat, and exit")   \
    X(flag, allow_formats, "--allow-formats", NULL, 0, 0,                                          \
      "allow knobs that change number formats")                                                    \
    X(int, seed, "--seed", "N", 0, ((int64_t)1 << 53) - 1,                                         \
      "random seed of the search (a random one)")                                                  \
    X(text, name, "--name", "NAME", 0, 0, "name of the campaign (made from what is tuned)")        \
    X(flag, fresh, "--new", NULL, 0, 0, "begin a new campaign if one of that name exists")         \
    X(flag, rebase, "--rebase", NULL, 0, 0,                                                        \
      "if the frozen files have changed (exit 6 without this flag): begin a successor, which "     \
      "measures the best candidate again")                                                         \
    X(flag, dry_run, "--dry-run", NULL, 0, 0,                                                      \
      "print what would be done and how long it takes, and exit")                                  \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(TUNE_OPTIONS)

enum { NIGHT_S = 8 * 3600 };

/* ---- dry run --------------------------------------------------------------------------------- */

static void print_device(const mgl_tune_outlook *look)
{
    mgl_cli_printf(
        "machines  two at a time, incumbent and candidate; %d program%s: one for each number of "
        "sequences\n",
        look->programs, mgl_plural((size_t)look->programs));
    if (look->memory_needed > 0 && look->memory_free > 0)
        mgl_cli_printf("memory    %.2f GB of the device are needed, %.2f GB are free%s\n",
                       (double)look->memory_needed * 1e-9, (double)look->memory_free * 1e-9,
                       look->memory_needed > look->memory_free ? ": too little" : "");
    if (look->device_s > 0)
        mgl_cli_printf("device    about %s for each measured trial (cost model), plus compiling\n",
                       mgl_cli_format_time(look->device_s).text);
}

/* Whether the duration can be estimated: trial times on a CPU are not predicted. */
static bool knows_nights(const mgl_tune *t)
{
    return strcmp(t->record.device, "cpu") != 0;
}

static void print_outlook(const mgl_tune *t, const mgl_tune_outlook *look, const char *store,
                          uint64_t disk)
{
    const mgl_campaign_record *c = &t->record;
    mgl_cli_printf("campaign  %s%s\n", c->name, t->found ? " (continues)" : "");
    mgl_cli_campaign_print_subject(c);
    mgl_cli_printf("space     %d knobs, %.3g configs; %d kinds of moves\n", t->subject.space.count,
                   look->configs, __builtin_popcount(t->subject.space.moves));
    mgl_cli_printf("gates     %s for each trial", mgl_cli_format_time(look->gate_s).text);
    if (knows_nights(t))
        mgl_cli_printf("; at most %.0f trials in 8 hours\n",
                       NIGHT_S / (look->gate_s + look->device_s));
    else
        mgl_cli_put("; the time to execute a candidate is not known in advance\n");
    print_device(look);
    if (look->predicted > 0)
        mgl_cli_printf("default   predicted %.1f us a token\n", look->predicted);
    else
        mgl_cli_put("default   no prediction: the costs of this device are not known\n");
    mgl_cli_printf("store     %s", store);
    if (disk)
        mgl_cli_printf(", %.1f GB of its disk are free", (double)disk * 1e-9);
    mgl_cli_put("\n");
}

static void print_outlook_json(const mgl_tune *t, const mgl_tune_outlook *look, const char *store,
                               uint64_t disk)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.tune/1");
    mgl_json_out_bool(&out, "dry_run", true);
    mgl_json_out_bool(&out, "goes_on", t->found);
    mgl_answer_campaign(&out, &t->record);
    mgl_json_out_int(&out, "programs", look->programs);
    mgl_json_out_int(&out, "knobs", t->subject.space.count);
    mgl_json_out_real(&out, "configs", look->configs);
    mgl_json_out_int(&out, "moves", __builtin_popcount(t->subject.space.moves));
    mgl_json_out_real(&out, "gate_s", look->gate_s);
    if (knows_nights(t))
        mgl_json_out_real(&out, "trials_a_night", NIGHT_S / (look->gate_s + look->device_s));
    if (look->memory_needed > 0)
        mgl_json_out_int(&out, "memory_needed_bytes", (int64_t)look->memory_needed);
    if (look->memory_free > 0)
        mgl_json_out_int(&out, "memory_free_bytes", (int64_t)look->memory_free);
    if (look->device_s > 0)
        mgl_json_out_real(&out, "device_s", look->device_s);
    if (look->predicted > 0)
        mgl_json_out_real(&out, "predicted_us", look->predicted);
    mgl_json_out_string(&out, "store", store);
    if (disk)
        mgl_json_out_int(&out, "disk_free_bytes", (int64_t)disk);
    mgl_cli_end_json(&out);
}

/* Bytes free on the store's file system: in the nearest existing folder of its path. 0: unknown. */
static uint64_t find_disk(const char *store)
{
    char folder[PATH_MAX];
    uint64_t disk = 0;
    if (!mgl_store_is_path(store) || strlen(store) >= sizeof folder)
        return 0;
    mgl_file_split(store, folder);
    while (access(folder, F_OK)) {
        char above[PATH_MAX];
        mgl_file_split(folder, above);
        if (!strcmp(folder, above))
            return 0;
        strcpy(folder, above);
    }
    return mgl_disk_free(folder, &disk, NULL) ? 0 : disk;
}

/* Opens the store for reading if it exists. A dry run needs it to continue a campaign, and to show
 * the trials that a request would contain. */
static mgl_status open_if_there(const char *path, mgl_store **out, mgl_error *err)
{
    mgl_text own = {0};
    struct stat facts;
    bool stands = false;
    *out = NULL;
    mgl_status status = path ? MGL_OK : mgl_store_default_path(&own, err);
    if (!status)
        status = mgl_file_look(path ? path : own.bytes, &stands, &facts, err);
    if (!status && stands)
        status = mgl_store_open(path ? path : own.bytes, false, out, err);
    mgl_text_clear(&own);
    return status;
}

/* Prints what would be done. Writes nothing, not even an empty store. */
static mgl_status dry_run(const struct options *o, const mgl_tune_request *request, mgl_error *err)
{
    mgl_tune tune = {0};
    mgl_tune_outlook look;
    mgl_text path = {0};
    mgl_store *there = NULL;
    mgl_status status = o->store.given ? MGL_OK : mgl_store_default_path(&path, err);
    if (status)
        return status;
    const char *store = o->store.given ? o->store.value : path.bytes;
    uint64_t disk = find_disk(store);
    status = open_if_there(o->store.value, &there, err);
    if (!status)
        status = mgl_tune_prepare(there, request, false, &tune, err);
    if (!status)
        status = mgl_tune_look(&tune, mgl_cancel_flag(mgl_cli_cancel()), &look, err);
    if (!status && o->json.given)
        print_outlook_json(&tune, &look, mgl_store_shown(store), disk);
    else if (!status)
        print_outlook(&tune, &look, mgl_store_shown(store), disk);
    mgl_tune_clear(&tune);
    mgl_store_close(there);
    mgl_text_clear(&path);
    return status;
}

/* ---- printing a prompt ----------------------------------------------------------------------- */

static mgl_status show_prompt(const struct options *o, const mgl_tune_request *request,
                              mgl_error *err)
{
    mgl_store *store;
    mgl_tune tune = {0};
    mgl_text body = {0};
    mgl_status status = open_if_there(o->store.value, &store, err);
    if (!status)
        status = mgl_tune_prepare(store, request, false, &tune, err);
    if (!status)
        status = mgl_tune_show_prompt(&tune, &body, err);
    if (!status)
        mgl_text_put(&body, "\n");
    if (!status)
        status = mgl_cli_write_text(NULL, &body, err);
    mgl_text_clear(&body);
    mgl_tune_clear(&tune);
    mgl_store_close(store);
    return status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static mgl_tune_request read_request(const char *operand, const struct options *o)
{
    return (mgl_tune_request){.model = operand,
                              .shape = o->shape.value,
                              .device = o->device.value,
                              .target = o->target.value,
                              .dtype = o->dtype.value,
                              .head_dtype = o->head_dtype.value,
                              .group = (int)o->group.value,
                              .workloads = o->workloads.value,
                              .capacity = (int)o->capacity.value,
                              .space = o->space.value,
                              .config = o->config.value,
                              .proposers = o->proposer.value,
                              .chat_url = o->chat_url.value,
                              .chat_model = o->chat_model.value,
                              .allow_formats = o->allow_formats.given,
                              .has_seed = o->seed.given,
                              .seed = (uint64_t)o->seed.value,
                              .name = o->name.value,
                              .fresh = o->fresh.given,
                              .rebase = o->rebase.given};
}

static mgl_status tune_model(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_store *store = NULL;
    mgl_tune tune = {0};
    mgl_tune_request request = read_request(operand, o);
    const mgl_cli_tuning how = MGL_CLI_TUNING("tune", o);
    mgl_status status = mgl_cli_check_tuning(&how, o->store.value, err);
    if (status)
        return status;
    if (o->show_prompt.given)
        return show_prompt(o, &request, err);
    if (o->dry_run.given)
        return dry_run(o, &request, err);
    status = mgl_store_open(o->store.value, true, &store, err);
    if (!status)
        status = mgl_tune_prepare(store, &request, true, &tune, err);
    if (!status)
        status = mgl_cli_tune(&tune, &how, err);
    mgl_tune_clear(&tune);
    mgl_store_close(store);
    return status;
}

const mgl_cli_verb mgl_cli_tune_verb = {
    .name = "tune",
    .operand = "MODEL",
    .operand_optional = true,
    .summary = "searches for a faster schedule, unattended; the same command resumes the search",
    .example = "  megalith tune --shape llama-1b --workloads 'ctx=1024;batch=1' --hours 8\n"
               "  megalith tune tests/models/tales-5m --device none --trials 20",
    MGL_CLI_VERB_OPTIONS,
    .run = tune_model,
};
