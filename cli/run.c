/*
 * megalith run MODEL: a reply, streamed token by token. Ctrl-C ends it at its next token with what
 * was said so far; a second Ctrl-C ends the program at once.
 */
#include "cli/cli.h"
#include "cli/json_out.h"

#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_MAX_TOKENS = 128 };

#define RUN_OPTIONS(X)                                                                             \
    X(text, prompt, "--prompt", "TEXT", 0, 0, "what the reply goes on from")                       \
    X(text, prompt_file, "--prompt-file", "FILE", 0, 0, "the same, from a file, byte for byte")    \
    X(text, prompt_ids, "--prompt-ids", "1,2,3", 0, 0, "the same, as token ids")                   \
    X(int, max_tokens, "--max-tokens", "N", 1, 1 << 20, "new tokens at most (128)")                \
    X(text, device, "--device", "DEVICE", 0, 0, "auto, cpu, cuda or cuda:1 (auto)")                \
    X(text, dtype, "--dtype", "DTYPE", 0, 0,                                                       \
      "auto, f32, bf16 or f16 (auto: the file's on a GPU, f32 on a CPU)")                          \
    X(real, temperature, "--temperature", "X", 0, 1000, "sample at this temperature; 0 is greedy") \
    X(int, top_k, "--top-k", "N", 0, INT32_MAX, "sample from the N likeliest tokens; 0 is all")    \
    X(real, top_p, "--top-p", "X", 0, 1, "sample from the likeliest tokens that sum to X")         \
    X(int, seed, "--seed", "N", 0, INT64_MAX, "sample; the same seed gives the same tokens")       \
    X(flag, sample, "--sample", NULL, 0, 0, "sample with generation_config.json's values")         \
    X(flag, ignore_eos, "--ignore-eos", NULL, 0, 0, "go on behind the end token")                  \
    X(int, capacity, "--capacity", "N", 1, 1 << 20,                                                \
      "positions of the KV cache (prompt + max-tokens, within the model's limit)")                 \
    X(text, config, "--config", "FILE", 0, 0, "a ScheduleConfig for lowering")                     \
    X(text, schedule, "--schedule", "F.mls", 0, 0,                                                 \
      "run this schedule in place of the lowered one")                                             \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(RUN_OPTIONS)

/* What the signal handler sees. */
static _Atomic(mgl_model *) running;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    static const char note[] = "\nmegalith: ending; Ctrl-C again quits at once\n";
    mgl_model *model = atomic_load(&running);
    interrupted = 1;
    if (model)
        mgl_model_cancel(model);
    else if (write(STDERR_FILENO, note, sizeof note - 1) < 0)
        return;
}

/* SA_RESETHAND: the second one has its default effect. */
static void catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;
    sigemptyset(&action.sa_mask);
    if (!sigaction(SIGINT, NULL, &old) && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

/* One reply on its way out. */
typedef struct reply {
    const struct options *options;
    const char *name;         /* the MODEL that was asked for */
    mgl_tokenizer *tokenizer; /* NULL: a model without one, ids in and ids out */
    mgl_detokenizer *stream;  /* NULL: nothing is streamed */
    mgl_model *model;
    mgl_ids prompt;
    mgl_result result;
    mgl_error error; /* of the stream */
    bool first;      /* no id was printed yet */
} reply;

static mgl_status check_options(const struct options *o, mgl_error *err)
{
    int prompts = o->prompt.given + o->prompt_file.given + o->prompt_ids.given;
    if (prompts != 1)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "%s of --prompt, --prompt-file and --prompt-ids is needed",
                        prompts ? "only one" : "one");
    if (o->sample.given && (o->temperature.given || o->top_k.given || o->top_p.given))
        return mgl_fail(err, MGL_USAGE, "--sample",
                        "takes temperature, top-k and top-p from generation_config.json; leave out "
                        "either --sample or those flags");
    return MGL_OK;
}

/* A model without tokenizer.json can be run by ids. */
static mgl_status open_tokenizer(reply *r, const char *folder, mgl_error *err)
{
    mgl_text path = {0};
    mgl_text_format(&path, "%s/tokenizer.json", folder);
    if (path.failed)
        return mgl_fail_memory(err, strlen(folder));
    bool exists = access(path.bytes, F_OK) == 0;
    mgl_text_clear(&path);
    if (!exists && r->options->prompt_ids.given)
        return MGL_OK;
    return mgl_tokenizer_open(folder, &r->tokenizer, err);
}

static mgl_status read_prompt(reply *r, mgl_error *err)
{
    const struct options *o = r->options;
    if (o->prompt_ids.given)
        return mgl_cli_parse_ids(o->prompt_ids.value, "--prompt-ids", &r->prompt, err);
    if (o->prompt.given)
        return mgl_tokenizer_encode(r->tokenizer, o->prompt.value, strlen(o->prompt.value), true,
                                    &r->prompt, err);
    char *text = NULL;
    size_t length = 0;
    mgl_status status = mgl_file_read(o->prompt_file.value, MGL_CLI_MAX_TEXT, &text, &length, err);
    if (!status)
        status = mgl_tokenizer_encode(r->tokenizer, text, length, true, &r->prompt, err);
    mgl_free(text);
    return status;
}

static bool on_token(void *user, int32_t token)
{
    reply *r = user;
    const char *text = NULL;
    size_t length = 0;
    if (r->stream) {
        if (mgl_detokenizer_next(r->stream, token, &text, &length, &r->error))
            return false;
        mgl_cli_print(text, length);
    } else if (!r->options->json.given) {
        mgl_cli_printf("%s%d", r->first ? "" : " ", (int)token);
        r->first = false;
    }
    return (r->options->json.given || mgl_cli_flush()) && !interrupted;
}

static mgl_request make_request(const reply *r)
{
    const struct options *o = r->options;
    bool samples = o->temperature.given || o->top_k.given || o->top_p.given || o->seed.given;
    return (mgl_request){.prompt = r->prompt.ids,
                         .prompt_count = r->prompt.count,
                         .max_tokens = o->max_tokens.given ? (int32_t)o->max_tokens.value
                                                           : DEFAULT_MAX_TOKENS,
                         .temperature = o->temperature.given ? (float)o->temperature.value
                                        : samples            ? 1.0F
                                                             : 0.0F,
                         .top_k = (int32_t)o->top_k.value,
                         .top_p = (float)o->top_p.value,
                         .seed = (uint64_t)o->seed.value,
                         .ignore_eos = o->ignore_eos.given,
                         .sample = o->sample.given};
}

static mgl_status open_model(reply *r, const char *folder, int32_t max_tokens, mgl_error *err)
{
    const struct options *o = r->options;
    size_t wanted = r->prompt.count + (size_t)max_tokens;
    mgl_open_options open = {.device = o->device.value,
                             .dtype = o->dtype.value,
                             .config = o->config.value,
                             .schedule = o->schedule.value,
                             .capacity = (int32_t)o->capacity.value,
                             .wanted = wanted > INT32_MAX ? INT32_MAX : (int32_t)wanted};
    return mgl_model_open(folder, &open, &r->model, err);
}

static mgl_status generate(reply *r, const char *folder, mgl_error *err)
{
    mgl_request request = make_request(r);
    mgl_status status = open_model(r, folder, request.max_tokens, err);
    if (status)
        return status;
    if (r->tokenizer && !r->options->json.given)
        status = mgl_detokenizer_open(r->tokenizer, true, &r->stream, err);
    if (status)
        return status;
    r->first = true;
    atomic_store(&running, r->model);
    if (interrupted)
        r->result.stop = MGL_STOP_INTERRUPTED;
    else
        status = mgl_model_generate(r->model, &request, on_token, r, &r->result, err);
    atomic_store(&running, NULL);
    if (!status && r->error.code) {
        *err = r->error;
        status = r->error.code;
    }
    return status;
}

/* Ends the streamed text with what the detokenizer held back and a line end. */
static mgl_status finish_stream(reply *r, mgl_error *err)
{
    const char *text = NULL;
    size_t length = 0;
    mgl_status status = r->stream ? mgl_detokenizer_finish(r->stream, &text, &length, err) : MGL_OK;
    if (!status && length)
        mgl_cli_print(text, length);
    mgl_cli_put("\n");
    return status;
}

static const char *const stop_names[] = {
    [MGL_STOP_EOS] = "eos", [MGL_STOP_LENGTH] = "length", [MGL_STOP_INTERRUPTED] = "interrupted"};

static mgl_status print_json(const reply *r, mgl_error *err)
{
    const mgl_result *result = &r->result;
    mgl_model_facts facts;
    char *text = NULL;
    size_t length = 0;
    mgl_status status = MGL_OK;
    if (r->tokenizer)
        status = mgl_tokenizer_decode(r->tokenizer, result->output.ids, result->output.count, true,
                                      &text, &length, err);
    if (status)
        return status;
    mgl_model_get_facts(r->model, &facts);
    double rate = result->decode_s > 0 && result->output.count > 1
                      ? (double)(result->output.count - 1) / result->decode_s
                      : 0;
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.run/1");
    mgl_json_out_string(&out, "model", r->name);
    mgl_json_out_string(&out, "device", facts.device);
    mgl_json_out_string(&out, "dtype", facts.dtype);
    mgl_json_out_ids(&out, "prompt_ids", r->prompt.ids, r->prompt.count);
    mgl_json_out_ids(&out, "output_ids", result->output.ids, result->output.count);
    if (text)
        mgl_json_out_text(&out, "text", text, length);
    else
        mgl_json_out_null(&out, "text");
    mgl_json_out_string(&out, "stop", stop_names[result->stop]);
    mgl_json_out_int(&out, "launches", result->launches);
    mgl_json_out_int(&out, "queues", facts.queues);
    mgl_json_out_int(&out, "capacity", facts.capacity);
    mgl_json_out_object(&out, "timing");
    mgl_json_out_real(&out, "load_s", facts.load_s);
    mgl_json_out_real(&out, "compile_s", facts.compile_s);
    mgl_json_out_real(&out, "prefill_s", result->prefill_s);
    mgl_json_out_real(&out, "decode_s", result->decode_s);
    mgl_json_out_real(&out, "tokens_per_s", rate);
    mgl_json_out_close_object(&out);
    mgl_json_out_end(&out);
    mgl_text_free(text);
    return MGL_OK;
}

static mgl_status run(const char *operand, const void *options, mgl_error *err)
{
    reply r = {.options = options, .name = operand};
    char *folder = NULL;
    mgl_status status = check_options(r.options, err);
    if (status)
        return status;
    catch_interrupt();
    status = mgl_model_find_folder(operand, &folder, err);
    if (!status)
        status = open_tokenizer(&r, folder, err);
    if (!status)
        status = read_prompt(&r, err);
    if (!status)
        status = generate(&r, folder, err);
    if (!status)
        status = r.options->json.given ? print_json(&r, err) : finish_stream(&r, err);
    if (!status && r.result.stop == MGL_STOP_INTERRUPTED)
        status = mgl_fail(err, MGL_INTERRUPTED, NULL, "%s", "");
    mgl_result_clear(&r.result);
    mgl_model_close(r.model);
    mgl_detokenizer_close(r.stream);
    mgl_ids_clear(&r.prompt);
    mgl_tokenizer_close(r.tokenizer);
    mgl_free(folder);
    return status;
}

const mgl_cli_verb mgl_cli_run_verb = {
    .name = "run",
    .operand = "MODEL",
    .summary = "generates a reply in one launch and streams its text",
    .example = "  megalith run tests/models/tales-5m --prompt \"Once there was\" --max-tokens 64",
    MGL_CLI_VERB_OPTIONS,
    .run = run,
};
