/*
 * megalith score MODEL: scores texts from --text, --file, --texts or standard input. Prints the sum
 * and the mean of the log-probabilities of each text, and its perplexity. With --json, it also
 * prints the log-probability of each token. The first token of a text has no context and is not
 * scored.
 */
#include "cli/cli.h"
#include "cli/generate/corpus.h"
#include "cli/generate/prompts.h"
#include "cli/generate/tokenizer.h"
#include "cli/signals.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/eval.h"
#include "importer/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCORE_OPTIONS(X)                                                                           \
    X(text, text, "--text", "T", 0, 0, "the text (standard input, to its end)")                    \
    X(file, file, "--file", "FILE", 0, 0, "the text from a file, byte for byte")                   \
    X(file, texts, "--texts", "F.json", 0, 0,                                                      \
      "a JSON array or JSON Lines: texts, or objects with text or ids")                            \
    MGL_CLI_DEVICE_OPTION(X)                                                                       \
    MGL_CLI_DTYPE_OPTION(X)                                                                        \
    X(int, capacity, "--capacity", "N", 1, 1 << 20,                                                \
      "positions of the KV cache (those of the longest text, within the model's limit)")           \
    MGL_CLI_CONFIG_OPTION(X)                                                                       \
    MGL_CLI_SCHEDULE_OPTION(X)                                                                     \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    MGL_CLI_CPU_OPTIONS(X)                                                                         \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(SCORE_OPTIONS)

#define INPUT_FLAGS "one of --text, --file and --texts"

/* The texts and their results. */
typedef struct session {
    const struct options *options;
    const char *name; /* the MODEL argument */
    const char *file; /* the source of the texts, or NULL */
    char *input;      /* owned (length): the text of a file, or NULL */
    size_t length;
    mgl_cli_prompts list;     /* the list of --texts */
    mgl_tokenizer *tokenizer; /* NULL: the model has none; ids only */
    mgl_model *model;
    mgl_cli_corpus corpus;
    float **logprobs; /* (corpus.count) arrays, each with one value per id */
    mgl_cli_reading reading;
} session;

/* ---- texts ----------------------------------------------------------------------------------- */

/* Opens the tokenizer as `run` does: a model without tokenizer.json accepts ids. */
static mgl_status open_tokenizer(session *s, const char *path, bool wanted, mgl_error *err)
{
    return mgl_cli_open_tokenizer("score", path, wanted, &s->tokenizer, err);
}

static mgl_status take_one(session *s, const char *path, const char *text, size_t length,
                           mgl_error *err)
{
    mgl_status status = open_tokenizer(s, path, true, err);
    if (!status)
        status = mgl_cli_corpus_make(&s->corpus, 1, err);
    return status ? status : mgl_cli_corpus_encode(&s->corpus, s->tokenizer, text, length, err);
}

/* The text of --file or, if no flag gives one, of standard input. */
static mgl_status read_input(session *s, mgl_error *err)
{
    const struct options *o = s->options;
    if (o->text.given || o->texts.given)
        return MGL_OK;
    s->file = o->file.given ? o->file.value : MGL_STDIN;
    mgl_status status = mgl_file_read(s->file, MGL_CLI_MAX_TEXT, &s->input, &s->length, err);
    if (status || s->length)
        return status;
    if (o->file.given)
        return mgl_fail(err, MGL_BAD_INPUT, s->file, "is empty: there is nothing to score");
    return mgl_fail(err, MGL_USAGE, NULL,
                    INPUT_FLAGS " is needed; standard input, which is read in their place, is "
                                "empty");
}

static mgl_status take_list(session *s, const char *path, mgl_error *err)
{
    mgl_status status = mgl_cli_texts_read(s->file, &s->list, err);
    if (!status && !s->list.count)
        status = mgl_fail(err, MGL_BAD_INPUT, s->file, "holds 0 texts; at least one is needed");
    if (!status)
        status = open_tokenizer(s, path, mgl_cli_corpus_needs_tokenizer(&s->list), err);
    return status ? status : mgl_cli_corpus_take_list(&s->corpus, &s->list, s->tokenizer, err);
}

static mgl_status take_texts(session *s, const char *path, mgl_error *err)
{
    const struct options *o = s->options;
    if (o->text.given)
        return take_one(s, path, o->text.value, strlen(o->text.value), err);
    if (s->input)
        return take_one(s, path, s->input, s->length, err);
    s->file = o->texts.value;
    return take_list(s, path, err);
}

/* ---- scoring --------------------------------------------------------------------------------- */

static mgl_status open_model(session *s, const char *path, mgl_error *err)
{
    const struct options *o = s->options;
    size_t longest = s->corpus.longest;
    mgl_open_options open = {MGL_CLI_OPEN_MEMBERS(o),
                             .wanted = longest < INT32_MAX ? (int32_t)longest : INT32_MAX,
                             .on_stage = mgl_cli_reading_stage, .stage_user = &s->reading};
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_status status = mgl_model_open(path, &open, &s->model, err);
    if (!status)
        status = mgl_model_get_facts(s->model, &facts, err);
    if (!status && !o->json.given)
        mgl_cli_say_lines("score", facts.note);
    return status;
}

/* Adds the file's name, and the text's place in a list, to an error. */
static mgl_status name_text(const session *s, size_t index, mgl_status status, mgl_error *err)
{
    char name[200];
    snprintf(name, sizeof name, "%.150s: text %zu", s->file ? s->file : "", index);
    if (s->list.lines)
        mgl_cli_prompt_name(&s->list, index, name, sizeof name);
    if (s->file)
        mgl_error_name(err, s->list.list ? name : s->file);
    return status;
}

static mgl_status score_text(session *s, size_t index, mgl_error *err)
{
    const mgl_ids *text = &s->corpus.texts[index];
    mgl_status status = MGL_OK;
    s->logprobs[index] = mgl_alloc_zero(text->count + 1, sizeof *s->logprobs[index]);
    if (!s->logprobs[index])
        return mgl_fail_memory(err, text->count * sizeof *s->logprobs[index]);
    if (text->count)
        status = mgl_model_score(s->model, text->ids, text->count, s->logprobs[index], err);
    mgl_cli_reading_add(&s->reading, text->count);
    return status;
}

/* Checks all texts before the first launch. */
static mgl_status score_all(session *s, mgl_error *err)
{
    const mgl_cli_corpus *c = &s->corpus;
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_status status = mgl_model_get_facts(s->model, &facts, err);
    if (status)
        return status;
    s->logprobs = mgl_alloc_zero(c->count, sizeof *s->logprobs);
    if (!s->logprobs)
        return mgl_fail_memory(err, c->count * sizeof *s->logprobs);
    for (size_t i = 0; i < c->count; i++) {
        if (mgl_eval_check_fit(c->texts[i].count, (size_t)facts.capacity, err))
            return name_text(s, i, MGL_BAD_INPUT, err);
        s->reading.total += c->texts[i].count;
    }
    for (size_t i = 0; i < c->count && !status; i++)
        if ((status = score_text(s, i, err)) == MGL_BAD_INPUT)
            name_text(s, i, status, err);
    return status;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* The totals of one text. */
typedef struct totals {
    size_t scored;
    double sum, mean, perplexity; /* mean and perplexity are undefined without scored tokens */
} totals;

static totals add_up(const session *s, size_t index)
{
    size_t count = s->corpus.texts[index].count;
    totals t = {.scored = count > 1 ? count - 1 : 0};
    for (size_t i = 1; i < count; i++)
        t.sum += (double)s->logprobs[index][i];
    t.mean = t.scored ? t.sum / (double)t.scored : 0;
    t.perplexity = exp(-t.mean);
    return t;
}

static void print_line(const session *s, size_t index)
{
    totals t = add_up(s, index);
    if (t.scored)
        mgl_cli_printf("sum %.4f  mean %.6f  perplexity %.6f\n", t.sum, t.mean, t.perplexity);
    else
        mgl_cli_put("sum 0  mean -  perplexity -\n"); /* fewer than two tokens */
}

/* The text of each token; null without a tokenizer, and for an id that the tokenizer does not
 * have. */
static mgl_status put_tokens(mgl_json_out *out, const session *s, const mgl_ids *text,
                             mgl_error *err)
{
    mgl_status status = MGL_OK;
    mgl_json_out_array(out, "tokens");
    for (size_t i = 0; i < text->count && !status; i++) {
        char *token = NULL;
        size_t length = 0;
        if (mgl_tokenizer_knows(s->tokenizer, text->ids[i]))
            status = mgl_tokenizer_token(s->tokenizer, text->ids[i], &token, &length, err);
        if (token)
            mgl_json_out_text(out, NULL, token, length);
        else
            mgl_json_out_null(out, NULL);
        mgl_text_free(token);
    }
    mgl_json_out_close_array(out);
    return status;
}

static void put_real(mgl_json_out *out, const char *key, bool known, double value)
{
    if (known)
        mgl_json_out_double(out, key, value);
    else
        mgl_json_out_null(out, key);
}

static mgl_status put_text(mgl_json_out *out, const session *s, size_t index, mgl_error *err)
{
    const mgl_ids *text = &s->corpus.texts[index];
    totals t = add_up(s, index);
    mgl_json_out_object(out, NULL);
    mgl_json_out_ids(out, "ids", text->ids, text->count);
    mgl_status status = put_tokens(out, s, text, err);
    mgl_json_out_array(out, "logprobs");
    for (size_t i = 0; i < text->count; i++) {
        if (i)
            mgl_json_out_float(out, NULL, s->logprobs[index][i]);
        else
            mgl_json_out_null(out, NULL);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_int(out, "scored", (int64_t)t.scored);
    mgl_json_out_double(out, "sum", t.sum);
    put_real(out, "mean", t.scored > 0, t.mean);
    put_real(out, "perplexity", t.scored > 0, t.perplexity);
    mgl_json_out_close_object(out);
    return status;
}

static mgl_status print_json(const session *s, mgl_error *err)
{
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_json_out out = {0};
    mgl_status status = mgl_model_get_facts(s->model, &facts, err);
    mgl_json_out_begin(&out, "megalith.score/1");
    mgl_json_out_string(&out, "model", s->name);
    mgl_json_out_string(&out, "device", facts.device);
    mgl_json_out_string(&out, "dtype", facts.dtype);
    mgl_json_out_int(&out, "capacity", facts.capacity);
    mgl_json_out_string(&out, "note", facts.note);
    mgl_json_out_array(&out, "texts");
    for (size_t i = 0; i < s->corpus.count && !status; i++)
        status = put_text(&out, s, i, err);
    mgl_json_out_close_array(&out);
    return mgl_cli_finish_json(&out, status);
}

static mgl_status print_all(const session *s, mgl_error *err)
{
    if (s->options->json.given)
        return print_json(s, err);
    for (size_t i = 0; i < s->corpus.count; i++)
        print_line(s, i);
    return MGL_OK;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static void say_closing_line(const session *s)
{
    size_t scored = 0;
    for (size_t i = 0; i < s->corpus.count; i++)
        scored += add_up(s, i).scored;
    mgl_cli_reading_say(&s->reading, scored);
}

static mgl_status work(session *s, mgl_error *err)
{
    char *path = NULL;
    mgl_status status = read_input(s, err);
    if (!status)
        status = mgl_model_find(s->name, &path, err);
    if (!status)
        status = take_texts(s, path, err);
    double start = mgl_clock_s();
    if (!status)
        status = open_model(s, path, err);
    double opened = mgl_clock_s();
    if (!status)
        status = score_all(s, err);
    s->reading.load_s = opened - start;
    s->reading.read_s = mgl_clock_s() - opened;
    if (!status)
        status = print_all(s, err);
    if (!status && !s->options->quiet.given)
        say_closing_line(s);
    mgl_free(path);
    return status;
}

static mgl_status check_options(const struct options *o, mgl_error *err)
{
    const char *other, *reader = mgl_cli_reader(&mgl_cli_score_verb, NULL, o, &other);
    int given = o->text.given + o->file.given + o->texts.given;
    if (given > 1)
        return mgl_fail(err, MGL_USAGE, NULL, "only " INPUT_FLAGS " is possible");
    if (!given && (reader || isatty(STDIN_FILENO)))
        return mgl_fail(err, MGL_USAGE, NULL, INPUT_FLAGS " is needed, or a text through a pipe");
    if (o->text.given && !*o->text.value)
        return mgl_fail(err, MGL_USAGE, "--text", "is empty: there is nothing to score");
    return MGL_OK;
}

static mgl_status score(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    session s = {.options = o, .name = operand, .reading.verb = "score"};
    mgl_status status = check_options(o, err);
    if (status)
        return status;
    status = work(&s, err);
    for (size_t i = 0; s.logprobs && i < s.corpus.count; i++)
        mgl_free(s.logprobs[i]);
    mgl_free(s.logprobs);
    mgl_free(s.input);
    mgl_cli_corpus_clear(&s.corpus);
    mgl_cli_prompts_clear(&s.list);
    mgl_model_close(s.model);
    mgl_tokenizer_close(s.tokenizer);
    return status;
}

const mgl_cli_verb mgl_cli_score_verb = {
    .name = "score",
    .operand = "MODEL",
    .summary = "prints the log-probability of each token of given texts",
    .example =
        "  megalith score tests/models/tales-5m --text \"Once there was a small fox\" --json\n"
        "  megalith score tests/models/tales-5m < story.txt\n"
        "  echo '[\"Once there was\", {\"ids\": [909, 40, 12]}]' > two.json\n"
        "  megalith score tests/models/tales-5m --texts two.json",
    .overlaid = true,
    MGL_CLI_VERB_OPTIONS,
    .run = score,
};
