/*
 * megalith eval MODEL: prints the negative log-likelihood, summed over all texts of --texts or
 * --file, and the perplexity. With --stride, longer texts are read through a window that moves.
 * With --compare, compares formats and checkpoints with the model in f32 (compare.h).
 */
#include "cli/cli.h"
#include "cli/generate/compare.h"
#include "cli/generate/corpus.h"
#include "cli/signals.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/eval.h"
#include "importer/checkpoint.h"

#include <stdio.h>

#define EVAL_OPTIONS(X)                                                                            \
    X(file, texts, "--texts", "F.json", 0, 0,                                                      \
      "a JSON array or JSON Lines: texts, or objects with text or ids")                            \
    X(file, file, "--file", "FILE", 0, 0, "one text from a file, byte for byte")                   \
    MGL_CLI_DEVICE_OPTION(X)                                                                       \
    MGL_CLI_DTYPE_OPTION(X)                                                                        \
    X(int, capacity, "--capacity", "N", 1, 1 << 20,                                                \
      "positions of the KV cache (those of the longest text, within the model's limit)")           \
    X(int, stride, "--stride", "N", 1, 1 << 20,                                                    \
      "read longer texts through a window of --capacity tokens that moves by N")                   \
    X(text, compare, "--compare", "LIST", 0, 0,                                                    \
      "formats and checkpoints to compare with the model in f32: bf16,int8,int4-g128,DIR")         \
    X(int, greedy, "--greedy", "N", 1, 1 << 20, "tokens of the greedy replies of --compare (64)")  \
    MGL_CLI_CONFIG_OPTION(X)                                                                       \
    MGL_CLI_SCHEDULE_OPTION(X)                                                                     \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    MGL_CLI_CPU_OPTIONS(X)                                                                         \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(EVAL_OPTIONS)

static mgl_status read_text(const char *file, const mgl_tokenizer *tokenizer, mgl_cli_corpus *out,
                            mgl_error *err)
{
    char *text = NULL;
    size_t length = 0;
    mgl_status status = mgl_file_read(file, MGL_CLI_MAX_TEXT, &text, &length, err);
    if (!status && !length)
        status = mgl_fail(err, MGL_BAD_INPUT, file, "is empty: there is nothing to evaluate");
    if (!status)
        status = mgl_cli_corpus_make(out, 1, err);
    if (!status)
        status = mgl_cli_corpus_encode(out, tokenizer, text, length, err);
    mgl_free(text);
    return status;
}

/* The corpus of --texts or --file. Only texts need a tokenizer. */
static mgl_status read_corpus(const struct options *o, const char *path, mgl_cli_corpus *out,
                              mgl_error *err)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_cli_prompts list = {0};
    mgl_status status = o->texts.given ? mgl_cli_texts_read(o->texts.value, &list, err) : MGL_OK;
    if (!status && (o->file.given || mgl_cli_corpus_needs_tokenizer(&list)))
        status = mgl_tokenizer_open(path, &tokenizer, err);
    if (!status)
        status = o->texts.given ? mgl_cli_corpus_take_list(out, &list, tokenizer, err)
                                : read_text(o->file.value, tokenizer, out, err);
    mgl_cli_prompts_clear(&list);
    mgl_tokenizer_close(tokenizer);
    return status;
}

/* An evaluation in progress. */
typedef struct session {
    const struct options *options;
    mgl_cli_corpus corpus;
    mgl_cli_reading reading;
} session;

static bool count_window(void *user, size_t tokens)
{
    session *s = user;
    mgl_cli_reading_add(&s->reading, tokens);
    return true;
}

/* Prints which tuned entries were left out, and counts the tokens to read. */
static mgl_status look_at(const mgl_model *model, session *s, mgl_error *err)
{
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_status status = mgl_model_get_facts(model, &facts, err);
    if (status)
        return status;
    mgl_cli_say_lines("eval", facts.note);
    for (size_t i = 0; i < s->corpus.count; i++)
        s->reading.total += mgl_eval_count_read(s->corpus.texts[i].count, (size_t)facts.capacity,
                                                (size_t)s->options->stride.value);
    return MGL_OK;
}

/* Adds the file's name to an error of a text. */
static mgl_status name_file(const struct options *o, mgl_status status, mgl_error *err)
{
    if (status != MGL_BAD_INPUT)
        return status;
    err->where[0] = 0;
    mgl_error_name(err, o->texts.given ? o->texts.value : o->file.value);
    return status;
}

static mgl_status score_window(void *user, const int32_t *ids, size_t count, float *logprob,
                               mgl_error *err)
{
    return mgl_model_score(user, ids, count, logprob, err);
}

static mgl_status score_corpus(session *s, mgl_model *model, mgl_eval_result *out, mgl_error *err)
{
    const struct options *o = s->options;
    const mgl_cli_corpus *c = &s->corpus;
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_status status = mgl_model_get_facts(model, &facts, err);
    const mgl_eval_options how = {
        .stride = (size_t)o->stride.value, .progress = count_window, .user = s};
    const mgl_eval_model scored = {model, (size_t)facts.capacity, score_window};
    if (!status)
        status = mgl_eval_score(&scored, c->texts, c->count, &how, out, err);
    return name_file(o, status, err);
}

static mgl_status score(session *s, const char *path, mgl_eval_result *out, mgl_error *err)
{
    const struct options *o = s->options;
    const mgl_cli_corpus *c = &s->corpus;
    mgl_open_options open = {MGL_CLI_OPEN_MEMBERS(o),
                             .wanted = c->longest < INT32_MAX ? (int32_t)c->longest : INT32_MAX,
                             .on_stage = mgl_cli_reading_stage, .stage_user = &s->reading};
    mgl_model *model = NULL;
    double start = mgl_clock_s();
    mgl_status status = mgl_model_open(path, &open, &model, err);
    double opened = mgl_clock_s();
    if (!status)
        status = look_at(model, s, err);
    if (!status)
        status = score_corpus(s, model, out, err);
    s->reading.load_s = opened - start;
    s->reading.read_s = mgl_clock_s() - opened;
    mgl_model_close(model);
    return status;
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

/* Scores the texts and prints the result. */
static mgl_status evaluate(session *s, const char *path, mgl_error *err)
{
    mgl_eval_result result;
    mgl_status status = score(s, path, &result, err);
    if (status)
        return status;
    print_result(s->options, &result);
    if (!s->options->quiet.given)
        mgl_cli_reading_say(&s->reading, result.tokens);
    return MGL_OK;
}

/* Compares the items of --compare. The models have room for the texts and for the replies. */
static mgl_status compare(const session *s, const char *operand, const char *path,
                          const mgl_cli_compare_list *list, mgl_error *err)
{
    const struct options *o = s->options;
    const int greedy = o->greedy.given ? (int)o->greedy.value : MGL_CLI_GREEDY_TOKENS;
    const size_t reply = (size_t)greedy + MGL_CLI_GREEDY_PROMPT;
    const size_t wanted = s->corpus.longest > reply ? s->corpus.longest : reply;
    const mgl_cli_compare what = {.model = operand,
                                  .path = path,
                                  .list = list,
                                  .corpus = &s->corpus,
                                  .source = o->texts.given ? o->texts.value : o->file.value,
                                  .open = {MGL_CLI_OPEN_MEMBERS(o), .wanted = wanted < INT32_MAX
                                                                                  ? (int32_t)wanted
                                                                                  : INT32_MAX},
                                  .stride = (size_t)o->stride.value,
                                  .greedy = greedy,
                                  .json = o->json.given,
                                  .quiet = o->quiet.given};
    return mgl_cli_compare_run(&what, err);
}

static mgl_status check_options(const struct options *o, mgl_error *err)
{
    if (o->texts.given && o->file.given)
        return mgl_fail(err, MGL_USAGE, NULL, "only one of --file and --texts is possible");
    if (!o->texts.given && !o->file.given)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "--file or --texts is needed: a text, or a list of texts");
    if (o->compare.given && o->schedule.given)
        return mgl_fail(err, MGL_USAGE, "--schedule",
                        "belongs to one number format, and --compare needs a schedule for each; "
                        "leave out --schedule");
    if (!o->compare.given && o->greedy.given)
        return mgl_fail(err, MGL_USAGE, "--greedy",
                        "is the length of the replies of --compare; give --compare LIST too");
    return MGL_OK;
}

static mgl_status eval(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    session s = {.options = o, .reading.verb = "eval"};
    mgl_cli_compare_list list = {0};
    char *path = NULL;
    mgl_status status = check_options(o, err);
    if (!status && o->compare.given)
        status = mgl_cli_compare_list_parse(o->compare.value, &list, err);
    if (!status)
        status = mgl_model_find(operand, &path, err);
    if (!status)
        status = read_corpus(o, path, &s.corpus, err);
    if (!status)
        status =
            o->compare.given ? compare(&s, operand, path, &list, err) : evaluate(&s, path, err);
    mgl_cli_corpus_clear(&s.corpus);
    mgl_cli_compare_list_clear(&list);
    mgl_free(path);
    return status;
}

const mgl_cli_verb mgl_cli_eval_verb = {
    .name = "eval",
    .operand = "MODEL",
    .summary = "computes likelihood and perplexity over texts, and compares formats",
    .example =
        "  megalith eval tests/models/tales-5m --texts tests/models/tales-5m/val_texts.json\n"
        "  megalith eval tests/models/tales-5m --file story.txt\n"
        "  megalith eval tests/models/tales-5m --texts long.json --capacity 512 --stride 256\n"
        "  megalith eval tests/models/tales-5m --texts tests/models/tales-5m/val_texts.json "
        "--compare bf16,int8,int4-g128",
    .overlaid = true,
    MGL_CLI_VERB_OPTIONS,
    .notes =
        "LIST has names separated by commas. Formats: " MGL_CLI_COMPARED_FORMATS
        ". Without -g and -row, int4 has groups of 128 columns, and int8 and fp8 a scale for each "
        "row. A format is quantized as `megalith quantize` does. f32, bf16 and f16 are the number "
        "format of weights, activations and cache. Other items are paths of checkpoints of the "
        "same model; for them and for quantized formats, --dtype is the format of activations and "
        "cache. At each scored token, p is the distribution of the model in f32 and q that of the "
        "format. nll = - sum of ln q(token), in nats; perplexity = exp(nll / tokens); KL = sum of "
        "p (ln p - ln q) over the vocabulary, in nats: its mean, and the value that 99.9 % of the "
        "tokens do not exceed; top-1 = share of tokens with the same most likely id. The first 16 "
        "tokens of each of the first 64 texts are prompts of greedy replies: divergence = mean "
        "number of tokens before the first one that differs; equal = replies without a difference.",
    .run = eval,
};
