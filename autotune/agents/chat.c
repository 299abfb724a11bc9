/*
 * Implements the chat proposer. A request is built from the state at the time it is sent. Answers
 * arrive in any order and are queued as proposals until the campaign asks for one. A failure is
 * stored as a message with a PROPOSER_ or EXTRACT_ outcome. It delays the next request by the time
 * that the endpoint demands, and never ends a campaign. Requests stop only for a rejected key, a
 * used-up budget, or too many failures in a row.
 */
#include "autotune/agents/chat.h"

#include "autotune/agents/completion.h"
#include "autotune/agents/extract.h"
#include "autotune/agents/prompt.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HISTORY = 12, /* trials listed in a request */
    READY = MGL_HTTP_MAX_FLIGHTS,
    MAX_ANSWER = 2000, /* tokens */
    MAX_KEY_FILE = 8192
};

/* A request in flight. */
typedef struct asked {
    int request; /* number from http; 0: free */
    char *body;
} asked;

typedef struct chat {
    mgl_proposer proposer; /* first member: a chat is a proposer */
    mgl_chat_options options;
    mgl_http *http;
    asked flights[MGL_HTTP_MAX_FLIGHTS];
    mgl_proposal ready[READY]; /* (ready_count) queued answers */
    int ready_count;
    char *lines[HISTORY]; /* ring of the last trials, from `oldest` on */
    int line_count, oldest;
    mgl_proposal best;
    int64_t best_number;
    int64_t requests, tokens; /* used over the life of the campaign */
    int failures;             /* failed requests in a row */
    int duplicates;           /* answers in a row that repeat an earlier proposal */
    double not_before;        /* clock time in seconds */
    bool refused;             /* no more requests: the key was rejected, or too many failures */
    struct {
        mgl_outcome outcome; /* last failure of the endpoint; MGL_OUTCOME_OK: no failure */
        bool refused, spent;
    } told;       /* the state that was reported last */
    int answered; /* requests in a row without a failure of the endpoint */
} chat;

/* ---- memory of trials ------------------------------------------------------------------------ */

static mgl_status copy_proposal(const mgl_proposal *from, mgl_proposal *to, mgl_error *err)
{
    mgl_proposal made = {.config = from->config};
    mgl_status status = MGL_OK;
    for (int i = 0; i < from->moves.count && !status; i++)
        status = mgl_moves_add(&made.moves, &from->moves.moves[i], err);
    if (status)
        mgl_proposal_clear(&made);
    mgl_proposal_clear(to);
    *to = made;
    return status;
}

static mgl_status remember(chat *c, const mgl_text *line, mgl_error *err)
{
    char *copy = line->failed ? NULL : mgl_strndup(line->bytes, line->length);
    if (!copy)
        return mgl_fail_memory(err, line->length);
    int at = (c->oldest + c->line_count) % HISTORY;
    if (c->line_count == HISTORY) {
        mgl_free(c->lines[at]);
        c->oldest = (c->oldest + 1) % HISTORY;
    } else {
        c->line_count++;
    }
    c->lines[at] = copy;
    return MGL_OK;
}

static mgl_status learn(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    chat *c = (chat *)self;
    mgl_text line = {0};
    if (trial->control)
        return MGL_OK;
    mgl_prompt_describe_trial(c->options.subject, trial, &line);
    mgl_status status = remember(c, &line, err);
    mgl_text_clear(&line);
    bool own = trial->proposal.proposer && !strcmp(trial->proposal.proposer, self->name);
    if (own)
        c->duplicates = trial->verdict.outcome == MGL_OUTCOME_DUPLICATE ? c->duplicates + 1 : 0;
    if (!status && trial->verdict.outcome == MGL_OUTCOME_OK && !trial->proposal.schedule) {
        status = copy_proposal(&trial->proposal, &c->best, err);
        c->best_number = trial->number;
    }
    return status;
}

/* ---- a request ------------------------------------------------------------------------------- */

static mgl_status make_body(const chat *c, uint64_t seed, mgl_text *body, mgl_error *err)
{
    mgl_text history = {0}, task = {0};
    mgl_json_out out = {0};
    for (int i = 0; i < c->line_count; i++)
        mgl_text_put(&history, c->lines[(c->oldest + i) % HISTORY]);
    mgl_prompt prompt = {.subject = c->options.subject,
                         .device = c->options.device,
                         .shape = c->options.shape,
                         .best = &c->best,
                         .best_number = c->best_number,
                         .history = history.bytes,
                         .number = c->requests + 1,
                         .border = seed};
    mgl_prompt_task(&prompt, &task);
    mgl_completion_begin(&out, c->options.model);
    mgl_completion_put_message(&out, "system", mgl_prompt_system());
    mgl_completion_put_message(&out, "user", task.bytes ? task.bytes : "");
    mgl_completion_end(&out, mgl_completion_temperature(c->duplicates), MAX_ANSWER);
    bool failed = history.failed || task.failed || out.text.failed;
    *body = out.text;
    mgl_text_clear(&history);
    mgl_text_clear(&task);
    return failed ? mgl_fail_memory(err, body->length) : MGL_OK;
}

static bool has_budget(const chat *c)
{
    const mgl_chat_options *o = &c->options;
    return (!o->budget_requests || c->requests < o->budget_requests) &&
           (!o->budget_tokens || c->tokens < o->budget_tokens);
}

static mgl_status ask(chat *c, uint64_t seed, mgl_error *err)
{
    mgl_text body = {0};
    asked *to = c->flights;
    while (to->request)
        to++;
    mgl_status status = make_body(c, seed, &body, err);
    if (!status)
        status = mgl_http_start(c->http, body.bytes, body.length, c->options.timeout_s,
                                &to->request, err);
    if (!status) {
        to->body = body.bytes;
        c->requests++;
        /* an estimate, replaced when the answer has arrived */
        c->tokens += (int64_t)(body.length / MGL_COMPLETION_BYTES_OF_A_TOKEN);
        return MGL_OK;
    }
    to->request = 0;
    mgl_text_clear(&body);
    return status;
}

/* ---- reading an answer ----------------------------------------------------------------------- */

/* Makes an answer relative to the best program: puts the moves of the best proposal before the
 * moves of the answer, and sets its parent. */
static mgl_status stand_on_best(const chat *c, mgl_proposal *proposal, mgl_error *err)
{
    mgl_moves added = proposal->moves;
    mgl_status status = MGL_OK;
    proposal->moves = (mgl_moves){0};
    for (int i = 0; i < c->best.moves.count && !status && !proposal->schedule; i++)
        status = mgl_moves_add(&proposal->moves, &c->best.moves.moves[i], err);
    for (int i = 0; i < added.count && !status; i++)
        status = mgl_moves_add(&proposal->moves, &added.moves[i], err);
    mgl_moves_clear(&added);
    proposal->parent = c->best_number;
    mgl_free(proposal->proposer);
    proposal->proposer = mgl_strdup(c->proposer.name);
    return proposal->proposer ? status : mgl_fail_memory(err, 1);
}

static mgl_status read_proposal(chat *c, mgl_completion *a, mgl_error *err)
{
    const char *from = NULL;
    size_t bytes = 0;
    mgl_error why = {0};
    mgl_proposal proposal;
    a->verdict.outcome = mgl_extract(a->content, strlen(a->content), "json", '{', &from, &bytes);
    if (a->verdict.outcome)
        return MGL_OK;
    mgl_status status = MGL_OK;
    if (!memchr(from, '{', bytes)) /* text that is not an object would be parsed as a schedule
                                    * text */
        status = mgl_fail(&why, MGL_BAD_INPUT, "answer",
                          "the code fence does not contain a JSON object");
    else
        status = mgl_proposal_parse(from, bytes, "answer", &c->best.config, &proposal, &why);
    if (!status) {
        status = stand_on_best(c, &proposal, &why);
        if (status)
            mgl_proposal_clear(&proposal);
        else
            c->ready[c->ready_count++] = proposal;
    }
    if (status == MGL_NO_MEMORY)
        return mgl_fail_memory(err, bytes);
    if (status)
        mgl_completion_fail(a, MGL_OUTCOME_PROPOSER_SCHEMA, &why);
    return MGL_OK;
}

/* ---- failures -------------------------------------------------------------------------------- */

static void tell(const chat *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(const chat *c, const char *format, ...)
{
    char text[2 * MGL_MAX_DIAGNOSTIC];
    va_list args;
    va_start(args, format);
    mgl_format_list(text, sizeof text, format, args);
    va_end(args);
    mgl_campaign_event event = {.kind = "chat", .text = text};
    if (c->options.on_event)
        c->options.on_event(c->options.user, &event);
}

/* Reports one line when the endpoint starts to fail, fails in another way, or works again. An
 * answer without content counts as a failure of the endpoint; an unusable answer does not. */
static void tell_change(chat *c, const mgl_completion *a)
{
    bool fails = mgl_completion_is_endpoint(a->verdict.outcome) ||
                 a->verdict.outcome == MGL_OUTCOME_PROPOSER_AUTH ||
                 (a->verdict.outcome == MGL_OUTCOME_PROPOSER_SCHEMA && !a->content);
    mgl_outcome now = fails ? a->verdict.outcome : MGL_OUTCOME_OK;
    c->answered = fails ? 0 : c->answered + 1;
    if (!fails && c->answered < c->options.flights) /* other requests in flight may still fail */
        return;
    if (now == c->told.outcome && c->refused == c->told.refused)
        return;
    c->told.outcome = now;
    c->told.refused = c->refused;
    if (!fails)
        tell(c, "the endpoint answers again");
    else if (now == MGL_OUTCOME_PROPOSER_AUTH)
        tell(c,
             "%s: %s; no more requests in this run: check the key (--chat-key-file, "
             "MEGALITH_CHAT_KEY)",
             mgl_outcome_name(now), a->verdict.diagnostic);
    else if (c->refused)
        tell(c,
             "%s: %s; %d failures in a row, no more requests in this run: "
             "`megalith campaign resume` tries again",
             mgl_outcome_name(now), a->verdict.diagnostic, MGL_COMPLETION_MOST_FAILURES);
    else
        tell(c, "%s: %s; the request is repeated later", mgl_outcome_name(now),
             a->verdict.diagnostic);
}

static void tell_spent(chat *c)
{
    if (!c->told.spent)
        tell(c,
             "%s: the requests or tokens of the budget are used up: raise --budget-requests or "
             "--budget-tokens",
             mgl_outcome_name(MGL_OUTCOME_PROPOSER_BUDGET));
    c->told.spent = true;
}

/* Waits as long as the endpoint demands, else twice as long after each failure. */
static void back_off(chat *c, const mgl_completion *a, double retry_after_s)
{
    bool endpoint = mgl_completion_is_endpoint(a->verdict.outcome);
    c->refused |= a->verdict.outcome == MGL_OUTCOME_PROPOSER_AUTH;
    c->failures = endpoint ? c->failures + 1 : 0;
    c->refused |= c->failures >= MGL_COMPLETION_MOST_FAILURES;
    if (!endpoint)
        return;
    c->not_before = mgl_clock_s() + mgl_completion_wait(c->failures, retry_after_s);
}

/* Adds an unusable answer of the model to the history, so that the model reads its mistake. */
static mgl_status remember_failure(chat *c, const mgl_completion *a, mgl_error *err)
{
    mgl_text line = {0};
    bool own = a->verdict.outcome == MGL_OUTCOME_PROPOSER_SCHEMA ||
               a->verdict.outcome == MGL_OUTCOME_EXTRACT_NONE ||
               a->verdict.outcome == MGL_OUTCOME_EXTRACT_AMBIGUOUS;
    if (!own)
        return MGL_OK;
    mgl_text_format(&line, "an answer -> %s: %s %s\n", mgl_outcome_name(a->verdict.outcome),
                    a->verdict.diagnostic, mgl_outcome_hint(a->verdict.outcome));
    mgl_status status = remember(c, &line, err);
    mgl_text_clear(&line);
    return status;
}

static mgl_status keep_message(chat *c, const asked *request, const mgl_completion *a,
                               const mgl_http_response *response, mgl_error *err)
{
    mgl_store_message message = {.request = request->body,
                                 .response = response->body,
                                 .outcome = a->verdict.outcome,
                                 .tokens_in = a->tokens_in,
                                 .tokens_out = a->tokens_out,
                                 .estimated = a->estimated,
                                 .seconds = response->seconds};
    return c->options.store
               ? mgl_store_add_message(c->options.store, c->options.campaign, &message, err)
               : MGL_OK;
}

/* Replaces the estimated tokens of the request by the real ones. */
static void count_tokens(chat *c, const asked *request, mgl_completion *a,
                         const mgl_http_response *response)
{
    int64_t guessed = (int64_t)(strlen(request->body) / MGL_COMPLETION_BYTES_OF_A_TOKEN);
    bool answered = response->end == MGL_HTTP_DONE && response->status == 200;
    if (a->estimated && answered) {
        a->tokens_in = guessed;
        a->tokens_out = (int64_t)(response->length / MGL_COMPLETION_BYTES_OF_A_TOKEN);
    }
    c->tokens += a->tokens_in + a->tokens_out - guessed;
}

static mgl_status take_response(chat *c, const mgl_http_response *response, mgl_error *err)
{
    asked *request = c->flights;
    mgl_completion a;
    while (request->request != response->request)
        request++;
    mgl_completion_read(response, &a);
    count_tokens(c, request, &a, response);
    mgl_status status = a.verdict.outcome ? MGL_OK : read_proposal(c, &a, err);
    back_off(c, &a, response->retry_after_s);
    tell_change(c, &a);
    if (!status)
        status = remember_failure(c, &a, err);
    if (!status)
        status = keep_message(c, request, &a, response, err);
    mgl_completion_clear(&a);
    mgl_free(request->body);
    *request = (asked){0};
    return status;
}

/* ---- the proposer ---------------------------------------------------------------------------- */

/* Takes the answers that have arrived or arrive within `wait_s` seconds. */
static mgl_status take_responses(chat *c, double wait_s, mgl_error *err)
{
    mgl_http_response response;
    bool ended = true;
    mgl_status status = MGL_OK;
    while (!status && ended && c->ready_count < READY) {
        status = mgl_http_poll(c->http, wait_s, &ended, &response, err);
        if (!status && ended)
            status = take_response(c, &response, err);
        wait_s = 0;
    }
    return status;
}

/* Requests progress only during a call, that is, between trials. This time lets a new request
 * complete its handshake and be sent. */
static const double send_s = 0.25;

static mgl_status ask_more(chat *c, uint64_t seed, mgl_error *err)
{
    mgl_status status = MGL_OK;
    bool any = false;
    if (!has_budget(c))
        tell_spent(c);
    while (!status && !c->refused && has_budget(c) && mgl_clock_s() >= c->not_before &&
           mgl_http_flights(c->http) + c->ready_count < c->options.flights) {
        status = ask(c, mgl_draw(&seed), err);
        any = true;
    }
    return status || !any ? status : take_responses(c, send_s, err);
}

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *said, mgl_error *err)
{
    chat *c = (chat *)self;
    mgl_status status = take_responses(c, 0, err);
    if (!status)
        status = ask_more(c, seed, err);
    if (status)
        return status;
    if (c->ready_count) {
        *out = c->ready[0];
        c->ready_count--;
        memmove(c->ready, c->ready + 1, (size_t)c->ready_count * sizeof *c->ready);
        *said = MGL_PROPOSED;
        return MGL_OK;
    }
    bool ended = mgl_http_flights(c->http) == 0 && (c->refused || !has_budget(c));
    *said = ended ? MGL_NO_MORE : MGL_NOT_YET;
    return MGL_OK;
}

static void close_chat(mgl_proposer *self)
{
    chat *c = (chat *)self;
    mgl_http_close(c->http);
    for (int i = 0; i < MGL_HTTP_MAX_FLIGHTS; i++)
        mgl_free(c->flights[i].body);
    for (int i = 0; i < c->ready_count; i++)
        mgl_proposal_clear(&c->ready[i]);
    for (int i = 0; i < HISTORY; i++)
        mgl_free(c->lines[i]);
    mgl_proposal_clear(&c->best);
    mgl_free(c);
}

/* Makes the proposer without its HTTP client. */
static chat *make_chat(const mgl_chat_options *options)
{
    chat *c = mgl_alloc_zero(1, sizeof *c);
    if (!c)
        return NULL;
    c->proposer = (mgl_proposer){"chat", propose, learn, close_chat, false};
    c->options = *options;
    c->options.key = NULL; /* only http keeps the key */
    c->best.config = options->subject->start;
    if (c->options.flights < 1 || c->options.flights > MGL_HTTP_MAX_FLIGHTS)
        c->options.flights = 2;
    if (c->options.timeout_s <= 0)
        c->options.timeout_s = 120;
    return c;
}

mgl_status mgl_chat_open(const mgl_chat_options *options, mgl_proposer **out, mgl_error *err)
{
    *out = NULL;
    chat *c = make_chat(options);
    if (!c)
        return mgl_fail_memory(err, sizeof *c);
    mgl_status status = mgl_http_open(options->url, options->key, &c->http, err);
    if (!status && options->store)
        status =
            mgl_store_sum_costs(options->store, options->campaign, &c->requests, &c->tokens, err);
    if (status)
        close_chat(&c->proposer);
    else
        *out = &c->proposer;
    return status;
}

mgl_status mgl_chat_show(const mgl_chat_options *options, const mgl_trial *trials, int count,
                         mgl_text *out, mgl_error *err)
{
    chat *c = make_chat(options);
    mgl_status status = c ? MGL_OK : mgl_fail_memory(err, sizeof *c);
    for (int i = 0; i < count && !status; i++)
        status = learn(&c->proposer, &trials[i], err);
    if (!status)
        status = make_body(c, 0, out, err);
    if (c)
        close_chat(&c->proposer);
    return status;
}

/* ---- the key --------------------------------------------------------------------------------- */

/* Rejects a file that others can read: any reader could spend the owner's money. */
static mgl_status check_key_file(const char *path, mgl_error *err)
{
    struct stat facts;
    bool stands = false;
    mgl_status status = mgl_file_look(path, &stands, &facts, err);
    if (!status && !stands)
        status = mgl_fail(err, MGL_USAGE, path, "the key file does not exist");
    if (!status && (facts.st_mode & 077) != 0)
        status = mgl_fail(err, MGL_USAGE, path,
                          "other users can read the key file: run 'chmod 600' on it");
    return status;
}

static mgl_status read_key_file(const char *path, char **out, mgl_error *err)
{
    bool input = !strcmp(path, MGL_STDIN);
    size_t length = 0;
    mgl_status status = input ? MGL_OK : check_key_file(path, err);
    if (!status)
        status =
            (input ? mgl_file_read : mgl_file_read_regular)(path, MAX_KEY_FILE, out, &length, err);
    if (status)
        return status;
    while (length && strchr(" \t\r\n", (*out)[length - 1]))
        (*out)[--length] = 0;
    return length ? MGL_OK
                  : mgl_fail(err, MGL_USAGE, path, "the key file is empty; write the key in it");
}

mgl_status mgl_chat_read_key(const char *path, char **out, mgl_error *err)
{
    *out = NULL;
    mgl_status status = read_key_file(path, out, err);
    if (status) {
        mgl_chat_forget_key(*out);
        *out = NULL;
    }
    return status;
}

mgl_status mgl_chat_take_key(char **out, mgl_error *err)
{
    static const char variable[] = "MEGALITH_CHAT_KEY";
    *out = NULL;
    char *here = getenv(variable);
    if (!here)
        return MGL_OK;
    size_t length = strlen(here);
    if (length)
        *out = mgl_strdup(here);
    explicit_bzero(here, length); /* removes the key for child processes and /proc/self/environ */
    unsetenv(variable);
    return length && !*out ? mgl_fail_memory(err, length) : MGL_OK;
}

void mgl_chat_forget_key(char *key)
{
    if (key)
        explicit_bzero(key, strlen(key));
    mgl_free(key);
}
