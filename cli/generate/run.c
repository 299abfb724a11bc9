/*
 * megalith run MODEL: generates a reply and streams it token by token, or generates the replies to
 * a list of prompts and prints them in order. After a signal, the text so far is kept. At the end,
 * a line on standard error has the times and the seed if one was drawn.
 */
#include "cli/cli.h"
#include "cli/generate/batches.h"
#include "cli/generate/ends.h"
#include "cli/generate/logprobs.h"
#include "cli/generate/prompts.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/wrap.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "importer/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_MAX_TOKENS = 128 };

#define RUN_OPTIONS(X)                                                                             \
    X(text, prompt, "--prompt", "TEXT", 0, 0, "text that the reply continues (standard input)")    \
    X(file, prompt_file, "--prompt-file", "FILE", 0, 0, "the prompt from a file, byte for byte")   \
    X(text, prompt_ids, "--prompt-ids", "1,2,3", 0, 0, "the prompt as token ids")                  \
    X(file, prompts, "--prompts", "F.json", 0, 0,                                                  \
      "a JSON array or JSON Lines of texts, or objects with text, ids or messages, and seed, "     \
      "...; one launch generates up to 16 replies, or 64 (docs/commands.md)")                      \
    X(flag, chat, "--chat", NULL, 0, 0,                                                            \
      "the prompt is a user's message, and the model's chat template renders it")                  \
    X(text, system, "--system", "TEXT", 0, 0, "the system message before the user's message")      \
    X(file, messages, "--messages", "F.json", 0, 0,                                                \
      "a whole conversation, in place of a prompt, with --chat")                                   \
    MGL_CLI_TEMPLATE_OPTIONS(X)                                                                    \
    MGL_CLI_REPLY_OPTIONS(X)                                                                       \
    MGL_CLI_DEVICE_OPTION(X)                                                                       \
    MGL_CLI_DTYPE_OPTION(X)                                                                        \
    X(flag, echo, "--echo", NULL, 0, 0,                                                            \
      "print the prompt before the reply; with --logprobs also the prompt's log-probabilities")    \
    X(flag, sample, "--sample", NULL, 0, 0, "sample with generation_config.json's values")         \
    X(int, capacity, "--capacity", "N", 1, 1 << 20,                                                \
      "positions of the KV cache (prompt + max-tokens, within the model's limit)")                 \
    MGL_CLI_CONFIG_OPTION(X)                                                                       \
    MGL_CLI_SCHEDULE_OPTION(X)                                                                     \
    MGL_CLI_STRICT_OPTION(X)                                                                       \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    MGL_CLI_CPU_OPTIONS(X)                                                                         \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(RUN_OPTIONS)

/* State of printing the replies. */
typedef struct session {
    const struct options *options;
    const char *name;         /* the MODEL argument */
    mgl_tokenizer *tokenizer; /* NULL: the model has none; ids only */
    mgl_detokenizer *stream;  /* NULL: no streaming, or ids are printed */
    mgl_model *model;
    mgl_cli_prompts prompts;
    mgl_cli_batches batches;
    mgl_error error;    /* error of `stream` */
    mgl_cli_wrap wrap;  /* wraps text on a terminal */
    bool first;         /* no id printed yet */
    double start;       /* clock at the start of the verb */
    double first_token; /* clock at the first token; 0: none yet */
} session;

/* Whether there is a single reply, which is printed while it is generated. */
static bool streams(const session *s)
{
    return !s->options->json.given && !s->options->prompts.given;
}

/* ---- prompts --------------------------------------------------------------------------------- */

static mgl_cli_reply_options reply_flags(const struct options *o)
{
    return (mgl_cli_reply_options){MGL_CLI_REPLY_OPTIONS(MGL_CLI_COPY)};
}

#define PROMPT_FLAGS "--prompt, --prompt-file, --prompt-ids, --prompts and --messages"

static int count_prompts(const struct options *o)
{
    return o->prompt.given + o->prompt_file.given + o->prompt_ids.given + o->prompts.given +
           o->messages.given;
}

/* Checks the flags of conversations. --chat makes one, and entries of --prompts may contain one. */
static mgl_status check_chat(const struct options *o, mgl_error *err)
{
    mgl_cli_template_options flags = {MGL_CLI_TEMPLATE_OPTIONS(MGL_CLI_COPY)};
    const char *flag = o->messages.given ? "--messages"
                       : o->system.given ? "--system"
                                         : mgl_cli_template_flag(&flags);
    if (flag && !o->chat.given && !o->prompts.given)
        return mgl_fail(err, MGL_USAGE, flag, "needs a conversation; give --chat too");
    if (o->chat.given && o->prompt_ids.given)
        return mgl_fail(
            err, MGL_USAGE, "--prompt-ids",
            "cannot be combined with --chat, which renders a text; leave out one of the two");
    return MGL_OK;
}

static mgl_status check_options(const struct options *o, mgl_error *err)
{
    const char *other, *reader = mgl_cli_reader(&mgl_cli_run_verb, NULL, o, &other);
    int prompts = count_prompts(o);
    mgl_cli_reply_options flags = reply_flags(o);
    if (prompts > 1 || (!prompts && (reader || isatty(STDIN_FILENO))))
        return mgl_fail(err, MGL_USAGE, NULL, "%s of " PROMPT_FLAGS " is needed%s",
                        prompts ? "only one" : "one", prompts ? "" : ", or a text through a pipe");
    if (o->logprobs.given && !o->json.given)
        return mgl_fail(err, MGL_USAGE, "--logprobs",
                        "needs --json; only its output contains log-probabilities");
    if (o->sample.given && mgl_cli_reply_shapes(&flags))
        return mgl_fail(err, MGL_USAGE, "--sample",
                        "reads temperature, top-k, top-p and min-p from generation_config.json; "
                        "leave out either --sample or those flags");
    mgl_status status = mgl_cli_reply_check(&flags, err);
    return status ? status : check_chat(o, err);
}

/* Checks a prompt from a pipe, and removes the line end that `echo` appends. */
static mgl_status check_piped(mgl_cli_prompt *prompt, mgl_error *err)
{
    prompt->length -= prompt->length && prompt->text[prompt->length - 1] == '\n';
    prompt->length -= prompt->length && prompt->text[prompt->length - 1] == '\r';
    if (prompt->length)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, NULL,
                    "one of " PROMPT_FLAGS " is needed; standard input, which is read in their "
                    "place, is empty");
}

static mgl_status read_prompts(session *s, mgl_error *err)
{
    const struct options *o = s->options;
    const mgl_cli_reply_options flags = reply_flags(o);
    if (o->prompts.given)
        return mgl_cli_prompts_read(o->prompts.value, &flags, o->sample.given, o->json.given,
                                    &s->prompts, err);
    mgl_status status = mgl_cli_prompts_make(&s->prompts, err);
    if (status)
        return status;
    mgl_cli_prompt *one = &s->prompts.items[0];
    one->reply = flags;
    if (o->prompt_ids.given)
        return mgl_cli_parse_ids(o->prompt_ids.value, "--prompt-ids", &one->ids, err);
    if (o->messages.given)
        return mgl_cli_messages_read(&one->messages, o->messages.value, err);
    if (o->prompt.given) {
        one->text = o->prompt.value;
        one->length = strlen(one->text);
        return MGL_OK;
    }
    const char *file = o->prompt_file.given ? o->prompt_file.value : MGL_STDIN;
    status = mgl_file_read(file, MGL_CLI_MAX_TEXT, &s->prompts.file, &one->length, err);
    one->text = s->prompts.file;
    return status || o->prompt_file.given ? status : check_piped(one, err);
}

/* ---- the launches ---------------------------------------------------------------------------- */

static bool on_token(void *user, size_t reply, int32_t token)
{
    session *s = user;
    const char *text = NULL;
    size_t length = 0;
    (void)reply; /* only a single reply is streamed */
    if (s->first_token == 0)
        s->first_token = mgl_clock_s();
    if (!streams(s))
        return true;
    if (s->stream) {
        if (!mgl_tokenizer_knows(s->tokenizer, token))
            return true; /* as in decode_reply */
        if (mgl_detokenizer_next(s->stream, token, &text, &length, &s->error))
            return false;
        mgl_cli_wrap_print(&s->wrap, text, length);
    } else {
        mgl_cli_printf("%s%d", s->first ? "" : " ", (int)token);
        s->first = false;
    }
    return mgl_cli_flush();
}

/* Chooses the seed of each sampled reply: its own, the flags', or a random seed that is printed. */
static mgl_status choose_seeds(session *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < s->prompts.count && !status; i++) {
        mgl_cli_prompt *prompt = &s->prompts.items[i];
        bool sampled =
            !prompt->error && (s->options->sample.given || mgl_cli_reply_samples(&prompt->reply));
        status = mgl_cli_prompt_choose_seed(prompt, sampled, err);
    }
    return status;
}

/* The number of bytes before the U+FFFD characters at the end of a text. */
static size_t count_finished(const char *text, size_t length)
{
    const size_t size = strlen(MGL_UTF8_REPLACEMENT);
    while (length >= size && !memcmp(text + length - size, MGL_UTF8_REPLACEMENT, size))
        length -= size;
    return length;
}

/* Appends the text of ids. An unfinished character at the end of a prompt is left out. Padding ids,
 * which the tokenizer does not have, have no text. */
static mgl_status put_ids(const session *s, mgl_detokenizer *stream, const mgl_ids *ids,
                          bool prompt, mgl_text *out, mgl_error *err)
{
    const char *piece;
    size_t size;
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < ids->count && !status; i++) {
        if (!mgl_tokenizer_knows(s->tokenizer, ids->ids[i]))
            continue;
        status = mgl_detokenizer_next(stream, ids->ids[i], &piece, &size, err);
        if (!status)
            mgl_text_append(out, piece, size);
    }
    if (!status)
        status = mgl_detokenizer_finish(stream, &piece, &size, err);
    if (!status)
        mgl_text_append(out, piece, prompt ? count_finished(piece, size) : size);
    return status;
}

/* The text of a prompt: as given, or decoded from its ids. */
static mgl_status put_prompt(const session *s, size_t reply, mgl_text *out, mgl_error *err)
{
    const mgl_cli_prompt *prompt = &s->prompts.items[reply];
    mgl_status status = MGL_OK;
    if (prompt->text || prompt->rendered) {
        mgl_text_append(out, prompt->rendered ? prompt->rendered : prompt->text,
                        prompt->rendered ? prompt->rendered_length : prompt->length);
        return MGL_OK;
    }
    mgl_detokenizer *stream = NULL;
    status = mgl_detokenizer_open(s->tokenizer, true, &stream, err);
    if (!status)
        status = put_ids(s, stream, &prompt->ids, true, out, err);
    mgl_detokenizer_close(stream);
    return status;
}

static void print_ids(const mgl_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        mgl_cli_printf("%s%d", i ? " " : "", (int)ids->ids[i]);
}

/* Prints the prompt before the streamed reply. */
static mgl_status echo_prompt(session *s, mgl_error *err)
{
    mgl_text text = {0};
    mgl_status status = MGL_OK;
    if (s->tokenizer)
        status = put_prompt(s, 0, &text, err);
    else
        print_ids(&s->prompts.items[0].ids);
    s->first = s->tokenizer != NULL;
    if (!status && text.length)
        mgl_cli_wrap_print(&s->wrap, text.bytes, text.length);
    mgl_text_clear(&text);
    return status;
}

/* Opens the detokenizer of a reply, with its stop strings. Release with mgl_detokenizer_close. */
static mgl_status open_stream(const session *s, size_t reply, mgl_detokenizer **out, mgl_error *err)
{
    const mgl_cli_prompt *prompt = &s->prompts.items[reply];
    const mgl_cli_list *stops = &prompt->reply.stop;
    mgl_status status = mgl_detokenizer_open(s->tokenizer, true, out, err);
    if (!status)
        status = mgl_detokenizer_set_stops(*out, stops->values, stops->count, err);
    return status ? status : mgl_detokenizer_prime(*out, prompt->ids.ids, prompt->ids.count, err);
}

/* The value of `penalties` in mgl_open_options. */
static int wanted_penalties(const session *s)
{
    for (size_t i = 0; i < s->prompts.count; i++)
        if (!s->prompts.items[i].error && mgl_cli_reply_penalizes(&s->prompts.items[i].reply))
            return 1;
    return s->options->sample.given ? 2 : 0;
}

/* The largest number of positions of the model. The config is read only if a prompt of a list is
 * long. If the model cannot take such a prompt, the caches of the other replies must not grow. */
static size_t find_limit(const session *s, const char *path, size_t longest)
{
    mgl_checkpoint *checkpoint = NULL;
    size_t limit = INT32_MAX;
    if (!s->prompts.list || longest <= 4096 || mgl_import(path, &checkpoint, NULL))
        return limit;
    limit = (size_t)checkpoint->graph->max_positions;
    mgl_checkpoint_close(checkpoint);
    return limit;
}

/* Finds the positions of the longest reply, *wanted, and of the longest prompt. Prompts of `limit`
 * tokens or more are not counted. */
static void measure(const session *s, size_t limit, size_t *wanted, size_t *prompt)
{
    *wanted = *prompt = 0;
    for (size_t i = 0; i < s->prompts.count; i++) {
        const mgl_request *request = &s->batches.requests[i];
        const size_t length = request->prompt_count + (size_t)request->max_tokens;
        if (s->prompts.items[i].error || request->prompt_count >= limit)
            continue;
        *wanted = length > *wanted ? length : *wanted;
        *prompt = request->prompt_count > *prompt ? request->prompt_count : *prompt;
    }
}

static mgl_status open_model(session *s, const char *path, mgl_error *err)
{
    const struct options *o = s->options;
    size_t count = s->prompts.count - mgl_cli_prompts_count_errors(&s->prompts), wanted, prompt;
    measure(s, INT32_MAX, &wanted, &prompt);
    measure(s, find_limit(s, path, prompt), &wanted, &prompt);
    mgl_open_options open = {MGL_CLI_OPEN_MEMBERS(o),
                             .wanted = wanted > INT32_MAX ? INT32_MAX : (int32_t)wanted,
                             .sequences = count < MGL_MAX_BATCH ? (int32_t)count : MGL_MAX_BATCH,
                             .fewer = s->prompts.list != NULL,
                             .strict_formats = o->strict_formats.given,
                             .penalties = wanted_penalties(s),
                             .prompt = prompt > INT32_MAX ? INT32_MAX : (int64_t)prompt,
                             .on_stage = mgl_cli_show_stage};
    mgl_status status = mgl_model_open(path, &open, &s->model, err);
    if (status != MGL_BAD_INPUT || !open.penalties || !s->prompts.list)
        return status;
    open.penalties = 0; /* entries that need penalties get an error; the others run */
    return mgl_model_open(path, &open, &s->model, NULL) ? status : MGL_OK;
}

/* Prints the tuned entries that were left out. */
static void say_note(const session *s)
{
    mgl_model_facts facts = {.size = sizeof facts};
    if (!s->options->json.given && !mgl_model_get_facts(s->model, &facts, NULL))
        mgl_cli_say_lines("run", facts.note);
}

static mgl_status print_replies(session *s, size_t from, size_t to, mgl_error *err);

/* Runs one launch after another. Texts are printed as soon as they are complete. */
static mgl_status launch(session *s, mgl_error *err)
{
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_status status = s->model ? mgl_model_get_facts(s->model, &facts, err) : MGL_OK;
    for (size_t from = 0, to = 0; from < s->prompts.count && !status; from = to) {
        status = mgl_cli_batches_run(&s->batches, s->model, &s->prompts, (size_t)facts.sequences,
                                     on_token, s, &to, err);
        if (!status && s->error.code) {
            *err = s->error;
            status = s->error.code;
        }
        if (!status && !s->options->json.given && !streams(s))
            status = print_replies(s, from, to, err);
    }
    return status;
}

static mgl_status generate(session *s, const char *path, mgl_error *err)
{
    mgl_status status = mgl_cli_batches_make(s->prompts.count, &s->batches, err);
    for (size_t i = 0; i < s->prompts.count && !status; i++) {
        mgl_request *request = &s->batches.requests[i];
        *request = mgl_cli_prompt_request(&s->prompts.items[i], s->tokenizer,
                                          s->options->sample.given, DEFAULT_MAX_TOKENS);
        request->prompt_logprobs = s->options->echo.given && request->logprobs > 0;
    }
    if (!status && mgl_cli_prompts_count_errors(&s->prompts) < s->prompts.count)
        status = open_model(s, path, err);
    if (!status && s->model)
        say_note(s);
    if (!status && s->tokenizer && streams(s))
        status = open_stream(s, 0, &s->stream, err);
    s->first = true;
    mgl_cli_wrap_start(&s->wrap);
    if (!status && streams(s) && s->options->echo.given)
        status = echo_prompt(s, err);
    if (!status)
        status = launch(s, err);
    if (status)
        mgl_cli_wrap_end(&s->wrap);
    return status;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Ends the streamed text with what the detokenizer held back and a line end. */
static mgl_status finish_stream(session *s, mgl_error *err)
{
    const char *text = NULL;
    size_t length = 0;
    mgl_status status = s->stream ? mgl_detokenizer_finish(s->stream, &text, &length, err) : MGL_OK;
    if (!status && length)
        mgl_cli_wrap_print(&s->wrap, text, length);
    mgl_cli_wrap_end(&s->wrap);
    mgl_cli_put("\n");
    return status;
}

static const char *const stop_names[] = {[MGL_STOP_EOS] = "eos",
                                         [MGL_STOP_LENGTH] = "length",
                                         [MGL_STOP_INTERRUPTED] = "interrupted",
                                         [MGL_STOP_TEXT] = "stop"};

/* Decodes a reply. *out stays NULL without a tokenizer. Padding ids, which the tokenizer does not
 * have, have no text. With --echo the text begins with the prompt. Release with mgl_text_free. */
static mgl_status decode_reply(const session *s, size_t reply, char **out, size_t *length,
                               mgl_error *err)
{
    const mgl_ids *ids = &s->batches.results[reply].output;
    mgl_detokenizer *stream = NULL;
    mgl_text text = {0};
    *out = NULL;
    *length = 0;
    if (!s->tokenizer)
        return MGL_OK;
    mgl_status status = open_stream(s, reply, &stream, err);
    mgl_text_append(&text, "", 0);
    if (!status && s->options->echo.given)
        status = put_prompt(s, reply, &text, err);
    if (!status)
        status = put_ids(s, stream, ids, false, &text, err);
    if (!status && text.failed)
        status = mgl_fail_memory(err, text.length);
    mgl_detokenizer_close(stream);
    if (status)
        mgl_text_clear(&text);
    *out = text.bytes;
    *length = text.length;
    return status;
}

/* Prints the line of a prompt without a reply, and the reason on standard error. */
static void print_error(const session *s, size_t index)
{
    const mgl_error *error = s->prompts.items[index].error;
    if (!s->options->json.given)
        mgl_cli_printf("==> prompt %zu: error <==\n", index);
    mgl_cli_flush();
    mgl_cli_say("run", "%s: %s", error->where, error->message);
}

static mgl_status print_reply(const session *s, size_t index, mgl_error *err)
{
    const mgl_result *result = &s->batches.results[index];
    char *text;
    size_t length;
    mgl_status status = decode_reply(s, index, &text, &length, err);
    if (status)
        return status;
    mgl_cli_printf("==> prompt %zu: %s, %zu token%s", index, stop_names[result->stop],
                   result->output.count, mgl_plural(result->output.count));
    if (s->prompts.items[index].drawn)
        mgl_cli_printf(", seed %" PRIu64, s->prompts.items[index].seed);
    mgl_cli_put(" <==\n");
    if (text)
        mgl_cli_wrap_all(text, length);
    else
        print_ids(&result->output);
    mgl_cli_put("\n");
    mgl_text_free(text);
    return MGL_OK;
}

/* Prints the replies [from, to), each under a line with its name. */
static mgl_status print_replies(session *s, size_t from, size_t to, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = from; i < to && !status; i++) {
        if (i)
            mgl_cli_put("\n");
        if (s->prompts.items[i].error)
            print_error(s, i);
        else
            status = print_reply(s, i, err);
    }
    mgl_cli_flush();
    return status;
}

/* Writes the field `error`: the reason why there is no reply. */
static void put_error(mgl_json_out *out, const mgl_error *error)
{
    char sentence[sizeof error->where + sizeof error->message + 2];
    if (!error)
        return;
    snprintf(sentence, sizeof sentence, "%s: %s", error->where, error->message);
    mgl_json_out_string(out, "error", sentence);
}

/* Writes the fields of one reply. */
static mgl_status put_reply(mgl_json_out *out, const session *s, size_t reply, mgl_error *err)
{
    const mgl_cli_prompt *prompt = &s->prompts.items[reply];
    const mgl_result *result = &s->batches.results[reply];
    char *text = NULL;
    size_t length;
    mgl_status status = prompt->error ? MGL_OK : decode_reply(s, reply, &text, &length, err);
    if (status)
        return status;
    if (prompt->rendered)
        mgl_json_out_text(out, "prompt_text", prompt->rendered, prompt->rendered_length);
    mgl_json_out_ids(out, "prompt_ids", prompt->ids.ids, prompt->ids.count);
    mgl_json_out_ids(out, "output_ids", result->output.ids, result->output.count);
    if (text)
        mgl_json_out_text(out, "text", text, length);
    else
        mgl_json_out_null(out, "text");
    mgl_json_out_string(out, "stop", prompt->error ? NULL : stop_names[result->stop]);
    put_error(out, prompt->error);
    mgl_cli_put_prompt_logprobs(out, &prompt->ids, result);
    mgl_cli_put_logprobs(out, result);
    if (prompt->sampled)
        mgl_json_out_int(out, "seed", (int64_t)prompt->seed);
    else
        mgl_json_out_null(out, "seed");
    mgl_text_free(text);
    return MGL_OK;
}

static mgl_status put_outputs(mgl_json_out *out, const session *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    mgl_json_out_array(out, "outputs");
    for (size_t i = 0; i < s->prompts.count && !status; i++) {
        mgl_json_out_object(out, NULL);
        status = put_reply(out, s, i, err);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    return status;
}

/* Tokens per second of all replies together. The first token of each is excluded, because the
 * prompt's pass produces it. */
static double decode_rate(const session *s)
{
    size_t tokens = 0;
    for (size_t i = 0; i < s->prompts.count; i++)
        tokens += s->batches.results[i].output.count ? s->batches.results[i].output.count - 1 : 0;
    const double seconds = s->batches.decode_s;
    return tokens > 0 && seconds > 0 ? (double)tokens / seconds : 0;
}

/* Writes the time from the start of the verb, with the tokenizer, to the first token. The start of
 * the driver is excluded, because it does not depend on the model. */
static void put_first_token(mgl_json_out *out, const session *s, const mgl_model_facts *facts)
{
    if (s->first_token > 0)
        mgl_json_out_real(out, "first_token_s", s->first_token - s->start - facts->driver_s);
    else
        mgl_json_out_null(out, "first_token_s");
}

/* Writes the fields that only a CPU has. */
static void put_cpu(mgl_json_out *out, const mgl_model_facts *facts)
{
    if (!facts->instructions)
        return;
    mgl_json_out_string(out, "instructions", facts->instructions);
    mgl_json_out_int(out, "threads", facts->threads);
    mgl_json_out_object(out, "memory");
    mgl_json_out_int(out, "weights_bytes", (int64_t)facts->memory_bytes);
    mgl_json_out_int(out, "cache_bytes", (int64_t)facts->cache_bytes);
    mgl_json_out_int(out, "scratch_bytes", (int64_t)facts->scratch_bytes);
    mgl_json_out_close_object(out);
}

/* Writes the number and the times of the launches. */
static void put_launch(mgl_json_out *out, const session *s, const mgl_model_facts *facts)
{
    mgl_json_out_int(out, "launches", s->batches.launches);
    mgl_json_out_int(out, "queues", facts->queues);
    mgl_json_out_int(out, "capacity", facts->capacity);
    mgl_json_out_string(out, "tuned", facts->tuned);
    mgl_json_out_string(out, "note", facts->note);
    mgl_json_out_int(out, "weight_bytes", (int64_t)facts->weight_bytes);
    put_cpu(out, facts);
    mgl_json_out_object(out, "timing");
    mgl_json_out_real(out, "load_s", facts->load_s);
    mgl_json_out_real(out, "compile_s", facts->compile_s);
    mgl_json_out_real(out, "prefill_s", s->batches.prefill_s);
    mgl_json_out_real(out, "decode_s", s->batches.decode_s);
    mgl_json_out_real(out, "tokens_per_s", decode_rate(s));
    mgl_json_out_real(out, "driver_s", facts->driver_s);
    mgl_json_out_real(out, "import_s", facts->import_s);
    mgl_json_out_real(out, "check_s", facts->check_s);
    mgl_json_out_real(out, "weights_s", facts->weights_s);
    mgl_json_out_real(out, "kernel_s", facts->kernel_s);
    put_first_token(out, s, facts);
    mgl_json_out_close_object(out);
}

/* Prints the object. The first reply's fields are also in the object itself, where readers of a
 * single reply expect them. If every entry has an error, no model was opened, and its fields are
 * null and 0. */
static mgl_status print_json(const session *s, mgl_error *err)
{
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_json_out out = {0};
    mgl_status status = s->model ? mgl_model_get_facts(s->model, &facts, err) : MGL_OK;
    if (status)
        return status;
    mgl_json_out_begin(&out, "megalith.run/1");
    mgl_json_out_string(&out, "model", s->name);
    mgl_json_out_string(&out, "device", facts.device);
    mgl_json_out_string(&out, "dtype", facts.dtype);
    status = put_reply(&out, s, 0, err);
    if (!status)
        status = put_outputs(&out, s, err);
    if (status) {
        mgl_text_clear(&out.text);
        return status;
    }
    put_launch(&out, s, &facts);
    mgl_cli_end_json(&out);
    for (size_t i = 0; i < s->prompts.count; i++)
        if (s->prompts.items[i].error)
            print_error(s, i);
    return MGL_OK;
}

/* Prints what has not been printed. */
static mgl_status print_session(session *s, mgl_error *err)
{
    if (s->options->json.given)
        return print_json(s, err);
    return streams(s) ? finish_stream(s, err) : MGL_OK;
}

/* ---- the closing line ------------------------------------------------------------------------ */

static void add_tokens(mgl_text *line, const session *s)
{
    size_t made = 0;
    double rate = decode_rate(s);
    for (size_t i = 0; i < s->prompts.count; i++)
        made += s->batches.results[i].output.count;
    const size_t replies = s->prompts.count - mgl_cli_prompts_count_errors(&s->prompts);
    if (s->prompts.count > 1)
        mgl_text_format(line, "%zu %s, ", replies, replies == 1 ? "reply" : "replies");
    mgl_text_format(line, "%zu %s", made, made == 1 ? "token" : "tokens");
    if (rate > 0)
        mgl_text_format(line, ", %.*f tokens/s", rate < 100, rate);
}

static void add_ends(mgl_text *line, const session *s)
{
    mgl_model_facts facts = {.size = sizeof facts};
    if (mgl_model_get_facts(s->model, &facts, NULL))
        return;
    mgl_cli_limits limits = {.max_tokens = DEFAULT_MAX_TOKENS, .capacity = facts.capacity};
    mgl_cli_add_ends(line, s->prompts.items, s->batches.results, s->prompts.count, &limits);
}

static void add_prompts(mgl_text *line, const session *s)
{
    size_t read = 0;
    for (size_t i = 0; i < s->prompts.count; i++)
        read += s->prompts.items[i].error ? 0 : s->prompts.items[i].ids.count;
    mgl_text_format(line, "; prompt%s of %zu %s in %s", s->prompts.count > 1 ? "s" : "", read,
                    read == 1 ? "token" : "tokens", mgl_cli_format_time(s->batches.prefill_s).text);
}

/* Adds the loading time. On a GPU the kernel is compiled or read while weights are loaded. */
static void add_loading(mgl_text *line, const session *s)
{
    mgl_model_facts facts = {.size = sizeof facts};
    if (mgl_model_get_facts(s->model, &facts, NULL))
        return;
    mgl_text_format(line, "; loaded in %s",
                    mgl_cli_format_time(facts.load_s + facts.compile_s).text);
    if (facts.kernel_s > 0)
        mgl_text_format(line, ", kernel in %s", mgl_cli_format_time(facts.kernel_s).text);
    if (facts.tuned)
        mgl_text_format(line, "; tuned: %s", facts.tuned);
}

/* Prints the closing line. In a list, each reply has its seed, so the line has none. */
static void say_closing_line(const session *s)
{
    mgl_text line = {0};
    add_tokens(&line, s);
    add_prompts(&line, s);
    add_ends(&line, s);
    add_loading(&line, s);
    if (s->prompts.items[0].drawn && !s->options->prompts.given)
        mgl_text_format(&line, "; seed %" PRIu64, s->prompts.items[0].seed);
    mgl_cli_flush();
    if (!line.failed)
        mgl_cli_say("run", "%s", line.bytes);
    mgl_text_clear(&line);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static mgl_status work(session *s, mgl_error *err)
{
    char *path = NULL;
    const struct options *o = s->options;
    const mgl_cli_template_options flags = {MGL_CLI_TEMPLATE_OPTIONS(MGL_CLI_COPY)};
    const mgl_cli_prompts_conversation conversation = {
        .chat = o->chat.given, .system = o->system.value, .messages = o->messages.value, &flags};
    mgl_status status = read_prompts(s, err);
    if (!status)
        status = mgl_model_find(s->name, &path, err);
    if (!status)
        status = mgl_cli_prompts_render(&s->prompts, path, &conversation, err);
    if (!status)
        status = mgl_cli_prompts_tokenize(&s->prompts, path, &s->tokenizer, err);
    if (!status)
        status = choose_seeds(s, err);
    if (!status)
        status = generate(s, path, err);
    if (!status)
        status = print_session(s, err);
    if (!status && s->model && !s->options->quiet.given)
        say_closing_line(s);
    mgl_free(path);
    for (size_t i = 0; i < s->prompts.count && !status; i++)
        if (s->batches.results[i].stop == MGL_STOP_INTERRUPTED)
            status = mgl_fail(err, MGL_INTERRUPTED, NULL, "%s", "");
    if (!status && mgl_cli_prompts_count_errors(&s->prompts))
        status = mgl_fail(err, MGL_BAD_INPUT, NULL, "%s", ""); /* all errors were printed */
    return status;
}

static mgl_status run(const char *operand, const void *options, mgl_error *err)
{
    session s = {.options = options, .name = operand, .start = mgl_clock_s()};
    mgl_status status = check_options(s.options, err);
    if (status)
        return status;
    status = work(&s, err);
    mgl_cli_batches_clear(&s.batches);
    mgl_model_close(s.model);
    mgl_detokenizer_close(s.stream);
    mgl_cli_prompts_clear(&s.prompts);
    mgl_tokenizer_close(s.tokenizer);
    return status;
}

const mgl_cli_verb mgl_cli_run_verb = {
    .name = "run",
    .operand = "MODEL",
    .summary = "generates a reply in one launch and streams its text",
    .example = "  megalith run tests/models/tales-5m --prompt \"Once there was\" --max-tokens 64\n"
               "  echo \"Once there was\" | megalith run tests/models/tales-5m -n 64\n"
               "  echo '[\"Once\", {\"text\": \"Once\", \"seed\": 7}]' > two.json\n"
               "  megalith run tests/models/tales-5m --prompts two.json --max-tokens 20\n"
               "  megalith run org/name --chat --system \"Be brief.\" -p \"What is a fox?\"",
    .overlaid = true,
    MGL_CLI_VERB_OPTIONS,
    .run = run,
};
