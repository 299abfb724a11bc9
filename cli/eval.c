/* megalith eval MODEL: how well the model tells a list of texts. */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include "base/clock.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/eval.h"
#include "importer/checkpoint.h"

#include <stdio.h>

#define EVAL_OPTIONS(X)                                                                            \
    X(file, texts, "--texts", "F.json", 0, 0, "a JSON array of strings (needed)")                  \
    MGL_CLI_DEVICE_OPTION(X)                                                                       \
    MGL_CLI_DTYPE_OPTION(X)                                                                        \
    X(int, capacity, "--capacity", "N", 1, 1 << 20,                                                \
      "positions of the KV cache (those of the longest text, within the model's limit)")           \
    X(int, stride, "--stride", "N", 1, 1 << 20,                                                    \
      "read longer texts through a window of --capacity tokens that moves by N")                   \
    X(file, config, "--config", "FILE", 0, 0, "a ScheduleConfig for lowering")                     \
    X(file, schedule, "--schedule", "F.mls", 0, 0,                                                 \
      "run this schedule in place of the lowered one")                                             \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    MGL_CLI_CPU_OPTIONS(X)                                                                         \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(EVAL_OPTIONS)

/* The texts as ids. */
typedef struct corpus {
    mgl_ids *texts; /* (count) */
    size_t count, longest;
    size_t tokens; /* of all texts */
} corpus;

static void clear_corpus(corpus *c)
{
    for (size_t i = 0; i < c->count; i++)
        mgl_ids_clear(&c->texts[i]);
    mgl_free(c->texts);
}

static mgl_status encode(const mgl_tokenizer *tokenizer, const mgl_cli_texts *texts, corpus *out,
                         mgl_error *err)
{
    out->texts = mgl_alloc_zero(texts->count ? texts->count : 1, sizeof *out->texts);
    if (!out->texts)
        return mgl_fail_memory(err, texts->count * sizeof *out->texts);
    out->count = texts->count;
    for (size_t i = 0; i < texts->count; i++) {
        mgl_status status = mgl_tokenizer_encode(tokenizer, texts->texts[i], texts->lengths[i],
                                                 true, &out->texts[i], err);
        if (!status)
            status = mgl_cli_check_cancel(err);
        if (status)
            return status;
        if (out->texts[i].count > out->longest)
            out->longest = out->texts[i].count;
        out->tokens += out->texts[i].count;
    }
    return MGL_OK;
}

static mgl_status read_corpus(const struct options *o, const char *path, corpus *out,
                              mgl_error *err)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_cli_texts texts = {0};
    mgl_status status = mgl_cli_texts_read(o->texts.value, &texts, err);
    if (!status)
        status = mgl_tokenizer_open(path, &tokenizer, err);
    if (!status)
        status = encode(tokenizer, &texts, out, err);
    mgl_tokenizer_close(tokenizer);
    mgl_cli_texts_clear(&texts);
    return status;
}

/* ---- scoring --------------------------------------------------------------------------------- */

/* How far the evaluation is. */
typedef struct reading {
    const corpus *texts;
    size_t tokens, total;  /* of the windows that are done, and of all */
    double load_s, read_s; /* opening the model; all texts */
} reading;

/* Tokens of a text are told as those of a prompt. */
static void show_stage(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    const reading *r = user;
    if (stage == MGL_STAGE_PROMPT)
        mgl_cli_show("eval", MGL_CLI_COUNT_TOKENS, r->tokens + done, r->total);
    else
        mgl_cli_show_stage(NULL, stage, done, total);
}

static bool count_window(void *user, size_t tokens)
{
    reading *r = user;
    r->tokens += tokens;
    mgl_cli_show("eval", MGL_CLI_COUNT_TOKENS, r->tokens, r->total);
    return true;
}

/* Says which tuned entries were left out, and counts what is going to be read. */
static mgl_status look_at(const mgl_model *model, const struct options *o, reading *r,
                          mgl_error *err)
{
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_status status = mgl_model_get_facts(model, &facts, err);
    if (status)
        return status;
    mgl_cli_say_lines("eval", facts.note);
    for (size_t i = 0; i < r->texts->count; i++)
        r->total += mgl_eval_count_read(r->texts->texts[i].count, (size_t)facts.capacity,
                                        (size_t)o->stride.value);
    return MGL_OK;
}

static mgl_status score(const struct options *o, const char *path, reading *r, mgl_eval_result *out,
                        mgl_error *err)
{
    const corpus *c = r->texts;
    mgl_open_options open = {.size = sizeof open,
                             .device = o->device.value,
                             .dtype = o->dtype.value,
                             .config = o->config.value,
                             .schedule = o->schedule.value,
                             .capacity = (int32_t)o->capacity.value,
                             .wanted = c->longest < INT32_MAX ? (int32_t)c->longest : INT32_MAX,
                             .threads = (int32_t)o->threads.value,
                             .verify = o->verify.given,
                             .no_tuned = o->no_tuned.given,
                             .cancel = mgl_cli_cancel(),
                             .on_stage = show_stage,
                             .stage_user = r};
    mgl_model *model = NULL;
    double start = mgl_clock_s();
    mgl_status status = mgl_model_open(path, &open, &model, err);
    double opened = mgl_clock_s();
    mgl_eval_options how = {.stride = (size_t)o->stride.value, .progress = count_window, .user = r};
    if (!status)
        status = look_at(model, o, r, err);
    if (!status)
        status = mgl_eval_score(model, c->texts, c->count, &how, out, err);
    r->load_s = opened - start;
    r->read_s = mgl_clock_s() - opened;
    if (status == MGL_BAD_INPUT && !err->where[0])
        mgl_error_name(err, o->texts.value);
    mgl_model_close(model);
    return status;
}

static void say_closing_line(const reading *r, size_t tokens)
{
    double rate = r->read_s > 0 ? (double)tokens / r->read_s : 0;
    mgl_cli_flush();
    mgl_cli_say("eval", "%zu tokens in %s, %.0f tokens/s; loaded in %s", tokens,
                mgl_cli_format_time(r->read_s).text, rate, mgl_cli_format_time(r->load_s).text);
}

static void print_result(const struct options *o, const mgl_eval_result *result)
{
    if (!o->json.given) {
        mgl_cli_printf("texts       %zu\ntokens      %zu\n", result->texts, result->tokens);
        if (o->stride.given)
            mgl_cli_printf("windows     %zu\n", result->windows);
        mgl_cli_printf("nll         %.4f\nperplexity  %.6f\n", result->nll, result->perplexity);
        return;
    }
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.eval/1");
    mgl_json_out_int(&out, "texts", (int64_t)result->texts);
    mgl_json_out_int(&out, "tokens", (int64_t)result->tokens);
    mgl_json_out_int(&out, "windows", (int64_t)result->windows);
    mgl_json_out_int(&out, "capacity", (int64_t)result->capacity);
    if (o->stride.given)
        mgl_json_out_int(&out, "stride", o->stride.value);
    else
        mgl_json_out_null(&out, "stride");
    mgl_json_out_real(&out, "nll", result->nll);
    mgl_json_out_real(&out, "perplexity", result->perplexity);
    mgl_cli_end_json(&out);
}

static mgl_status eval(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_eval_result result;
    corpus texts = {0};
    reading r = {.texts = &texts};
    char *path = NULL;
    if (!o->texts.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--texts is needed: a JSON array of strings");
    mgl_status status = mgl_model_find(operand, &path, err);
    if (!status)
        status = read_corpus(o, path, &texts, err);
    if (!status)
        status = score(o, path, &r, &result, err);
    if (!status)
        print_result(o, &result);
    if (!status && !o->quiet.given)
        say_closing_line(&r, result.tokens);
    clear_corpus(&texts);
    mgl_free(path);
    return status;
}

const mgl_cli_verb mgl_cli_eval_verb = {
    .name = "eval",
    .operand = "MODEL",
    .summary = "negative log-likelihood and perplexity over texts",
    .example =
        "  megalith eval tests/models/tales-5m --texts tests/models/tales-5m/val_texts.json\n"
        "  megalith eval tests/models/tales-5m --texts long.json --capacity 512 --stride 256",
    MGL_CLI_VERB_OPTIONS,
    .run = eval,
};
