/*
 * Generates replies and scores texts (mgl_model_generate_batch, mgl_model_generate,
 * mgl_model_score, mgl_model_score_logits). Requests are validated before anything runs. Each
 * request becomes one sequence of a launch, and the launch's report becomes the results. A
 * streaming detokenizer searches for stop strings while tokens arrive. Prompt log-probabilities
 * need a scoring launch before the reply.
 */
#include "api/model.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/sized.h"
#include "instructions/sample/penalties.h"
#include "schedule/step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)MGL_MAX_BATCH == (int)MGL_MAX_SEQUENCES, "a reply is a sequence of the launch");
_Static_assert((int)MGL_MAX_LOGPROBS == (int)MGL_MOST_LIKELY, "the kernel tells as many");

/* Rejects more tokens than the model, or the KV cache, has positions. */
static mgl_status check_length(const mgl_model *model, const char *where, size_t count,
                               mgl_error *err)
{
    const mgl_graph *graph = model->checkpoint->graph;
    size_t capacity = (size_t)model->tuned.capacity, most = (size_t)graph->max_positions;
    if (count > most)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "too many tokens: %zu; the model has %zu position%s (%s)", count, most,
                        mgl_plural(most), mgl_graph_limit_key(graph));
    if (count > capacity)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "too many tokens: %zu; the KV cache has %zu position%s (the capacity, at "
                        "most %s = %zu)",
                        count, capacity, mgl_plural(capacity), mgl_graph_limit_key(graph), most);
    return MGL_OK;
}

static mgl_status check_ids(const mgl_model *model, const char *where, const int32_t *ids,
                            size_t count, mgl_error *err)
{
    int32_t vocab = model->program->geometry.vocab;
    if (!ids && count > 0)
        return mgl_fail(err, MGL_USAGE, where, "is NULL, but its count is %zu token%s", count,
                        mgl_plural(count));
    if (count == 0)
        return mgl_fail(err, MGL_BAD_INPUT, where, "contains no tokens; give at least one");
    mgl_status status = check_length(model, where, count, err);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return mgl_fail(err, MGL_BAD_INPUT, where,
                            "token %zu is %d; the vocabulary has the ids 0 to %d", i, (int)ids[i],
                            (int)vocab - 1);
    return MGL_OK;
}

/* A reply needs a position after the prompt. */
static mgl_status check_prompt(const mgl_model *model, const int32_t *ids, size_t count,
                               mgl_error *err)
{
    const mgl_graph *graph = model->checkpoint->graph;
    const int32_t capacity = model->tuned.capacity;
    mgl_status status = check_ids(model, "prompt", ids, count, err);
    if (status || count < (size_t)capacity)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, "prompt",
                    "has %zu token%s, and the KV cache has %d position%s (the capacity, at most "
                    "%s = %d), so no position is left for a reply; %sshorten the prompt",
                    count, mgl_plural(count), (int)capacity, mgl_plural((size_t)capacity),
                    mgl_graph_limit_key(graph), (int)graph->max_positions,
                    capacity < graph->max_positions ? "raise the capacity or " : "");
}

/* The repeat penalty of the request, or of generation_config.json if the request has none; 1:
 * off. */
static float repeat_of(const mgl_model *model, const mgl_request *request)
{
    if (request->repeat_penalty != 0)
        return (float)request->repeat_penalty;
    return request->sample ? model->checkpoint->generation.repeat : 1.0f;
}

static mgl_status check_penalties(const mgl_model *model, const mgl_request *request,
                                  mgl_error *err)
{
    const float repeat = repeat_of(model, request), most = MGL_MOST_PENALTY;
    if (!(repeat >= MGL_LEAST_REPEAT && repeat <= MGL_MOST_REPEAT))
        return mgl_fail(err, MGL_USAGE, "repeat_penalty",
                        "must be from %g to %g; 1 disables the penalty", (double)MGL_LEAST_REPEAT,
                        (double)MGL_MOST_REPEAT);
    if (!(request->presence_penalty >= -(double)most && request->presence_penalty <= (double)most))
        return mgl_fail(err, MGL_USAGE, "presence_penalty",
                        "must be from -2 to 2; 0 disables the penalty");
    if (!(request->frequency_penalty >= -(double)most &&
          request->frequency_penalty <= (double)most))
        return mgl_fail(err, MGL_USAGE, "frequency_penalty",
                        "must be from -2 to 2; 0 disables the penalty");
    const bool wanted = repeat < 1.0f || repeat > 1.0f || request->presence_penalty != 0 ||
                        request->frequency_penalty != 0;
    if (!wanted || mgl_program_has_penalties(model->program))
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, "penalties",
                    "the model was opened without support for penalties; open the model with "
                    "penalties, or compile a .mega file with penalties");
}

/* Rejects values of generation_config.json that sampling does not support. */
static mgl_status check_defaults(const mgl_generation *defaults, mgl_error *err)
{
    if (defaults->invalid)
        return mgl_fail(err, defaults->invalid->code, defaults->invalid->where,
                        "%s; correct the file, or give temperature, top-k and top-p",
                        defaults->invalid->message);
    if (defaults->unsupported)
        return mgl_fail(err, MGL_BAD_INPUT, "generation_config.json",
                        "%s is not supported; give temperature, top-k and top-p",
                        defaults->unsupported);
    return MGL_OK;
}

static mgl_status check_request(const mgl_model *model, const mgl_request *request, mgl_error *err)
{
    if (request->max_tokens < 1)
        return mgl_fail(err, MGL_USAGE, "max_tokens", "must be at least 1, not %d",
                        (int)request->max_tokens);
    if (!(request->temperature >= 0) || isinf(request->temperature))
        return mgl_fail(err, MGL_USAGE, "temperature", "must be a finite number of at least 0");
    if (request->top_k < 0)
        return mgl_fail(err, MGL_USAGE, "top_k", "is negative");
    if (!(request->top_p >= 0 && request->top_p <= 1))
        return mgl_fail(err, MGL_USAGE, "top_p", "must be from 0 to 1");
    if (!(request->min_p >= 0 && request->min_p <= 1))
        return mgl_fail(err, MGL_USAGE, "min_p", "must be from 0 to 1");
    mgl_status status = check_penalties(model, request, err);
    if (status)
        return status;
    if (request->logprobs < 0 || request->logprobs > MGL_MAX_LOGPROBS)
        return mgl_fail(err, MGL_USAGE, "logprobs", "must be from 0 to %d", MGL_MAX_LOGPROBS);
    if ((request->stop_count || request->chat) && !request->tokenizer)
        return mgl_fail(err, MGL_USAGE, "tokenizer", "is NULL; a tokenizer is needed to find %s",
                        request->stop_count ? "stop texts" : "the end tokens of a chat");
    if (request->sample)
        status = check_defaults(&model->checkpoint->generation, err);
    if (status)
        return status;
    return check_prompt(model, request->prompt, request->prompt_count, err);
}

/* Prefixes the error with the index of the request if there are several requests. */
static void name_request(size_t index, size_t count, mgl_error *err)
{
    char name[40];
    snprintf(name, sizeof name, "requests[%zu]", index);
    if (count > 1)
        mgl_error_name(err, name);
}

static mgl_status check_count(const mgl_model *model, size_t count, mgl_error *err)
{
    size_t most = (size_t)model->program->limits.sequences;
    if (count >= 1 && count <= most)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "requests",
                    "wrong number of requests: %zu; this model was opened for %s%zu in one launch",
                    count, mgl_up_to(most), most);
}

/* Element `index` of an array of structs; the first element states the size of each. */
static void *element_of(const void *array, size_t index)
{
    size_t size;
    memcpy(&size, array, sizeof size);
    return (char *)array + index * size;
}

/* Checks the sizes of an array of structs. Each struct needs at least `least` bytes. */
static mgl_status check_sizes(const void *array, size_t count, size_t least, const char *name,
                              mgl_error *err)
{
    mgl_status status = mgl_sized_check(array, least, name, err);
    for (size_t i = 1; i < count && !status; i++)
        if (memcmp(array, element_of(array, i), sizeof(size_t)) != 0)
            status = mgl_fail(err, MGL_USAGE, name,
                              "element %zu has another value in its field size than the first "
                              "element; set each to sizeof(%s)",
                              i, name);
    return status;
}

/* Copies the caller's requests (count), of whatever version, to structs of this library. */
static mgl_status read_requests(const mgl_request *requests, size_t count, mgl_request *out,
                                mgl_error *err)
{
    mgl_status status = check_sizes(requests, count, sizeof requests->size, "mgl_request", err);
    for (size_t i = 0; i < count && !status; i++)
        status = mgl_sized_read(&out[i], sizeof *out, element_of(requests, i), "mgl_request", err);
    return status;
}

static mgl_status check_batch(mgl_model *model, const mgl_request *requests, size_t count,
                              mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < count && !status; i++) {
        status = check_request(model, &requests[i], err);
        if (!status && requests[i].chat)
            status = mgl_model_find_chat_ends(model, requests[i].tokenizer, err);
        if (status)
            name_request(i, count, err);
    }
    return status;
}

static mgl_vm_sequence make_sequence(const mgl_model *model, const mgl_request *request)
{
    const mgl_generation *defaults = &model->checkpoint->generation;
    const mgl_ids ends = {defaults->end_tokens, defaults->end_count};
    const mgl_ids *ids = request->chat ? &model->chat_ends : &ends;
    int32_t room = model->tuned.capacity - (int32_t)request->prompt_count;
    return (mgl_vm_sequence){.mode = MGL_VM_GENERATE,
                             .prompt = request->prompt,
                             .prompt_count = (int32_t)request->prompt_count,
                             .max_new = request->max_tokens < room ? request->max_tokens : room,
                             .temperature =
                                 request->sample ? defaults->temperature : request->temperature,
                             .top_k = request->sample ? defaults->top_k : request->top_k,
                             .top_p = request->sample ? defaults->top_p : request->top_p,
                             .min_p = request->sample ? defaults->min_p : (float)request->min_p,
                             .repeat_penalty = repeat_of(model, request),
                             .presence_penalty = (float)request->presence_penalty,
                             .frequency_penalty = (float)request->frequency_penalty,
                             .seed = request->seed,
                             .reuse = request->reuse_prefix != 0,
                             .ends = ids->ids,
                             .end_count = request->ignore_eos ? 0 : (int32_t)ids->count};
}

/* The sequences of a launch, one for each request. */
typedef struct batch {
    mgl_vm_sequence sequences[MGL_MAX_BATCH];       /* (count), one per request */
    mgl_detokenizer *streams[MGL_MAX_BATCH];        /* (count) search for stop strings, or NULL */
    const mgl_tokenizer *tokenizers[MGL_MAX_BATCH]; /* (count) tokenizers of `streams` */
    mgl_result likely[MGL_MAX_BATCH];               /* (count) log-probability fields only, owned */
    float *prompts[MGL_MAX_BATCH];       /* (requests) log-probabilities, owned, or NULL */
    size_t prompt_counts[MGL_MAX_BATCH]; /* (requests) */
    int scored;                          /* launches that scored prompts: 0 or 1 */
    int likely_count;                    /* the largest `logprobs` of the requests */
    struct {
        mgl_likelihood_fn *call; /* may be NULL */
        void *user;
    } on_likelihood[MGL_MAX_BATCH]; /* (count) */
    int count;
    mgl_batch_token_fn *on_token; /* may be NULL */
    void *user;
    mgl_error error; /* the first error of a stream */
} batch;

static void gather_sequences(const mgl_model *model, const mgl_request *requests, size_t count,
                             batch *out)
{
    for (size_t i = 0; i < count; i++)
        out->sequences[i] = make_sequence(model, &requests[i]);
    out->count = (int)count;
}

/* Opens the detokenizer that searches for the stop strings of the request. */
static mgl_status open_stream(const mgl_request *request, mgl_detokenizer **out, mgl_error *err)
{
    mgl_status status = mgl_detokenizer_open(request->tokenizer, true, out, err);
    if (!status)
        status = mgl_detokenizer_set_stops(*out, request->stops, request->stop_count, err);
    if (!status)
        status = mgl_detokenizer_prime(*out, request->prompt, request->prompt_count, err);
    return status;
}

static mgl_status open_streams(const mgl_request *requests, size_t count, batch *b, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int s = 0; s < b->count && !status; s++) {
        const mgl_request *request = &requests[s];
        b->tokenizers[s] = request->tokenizer;
        if (request->stop_count)
            status = open_stream(request, &b->streams[s], err);
        if (status)
            name_request((size_t)s, count, err);
    }
    return status;
}

/* Frees the fields of log-probabilities. */
static void free_likely(mgl_result *result)
{
    mgl_free(result->logprobs);
    mgl_free(result->top_ids);
    mgl_free(result->top_logprobs);
    result->logprobs = result->top_logprobs = NULL;
    result->top_ids = NULL;
}

static void close_batch(batch *b)
{
    for (int s = 0; s < b->count; s++) {
        mgl_detokenizer_close(b->streams[s]);
        free_likely(&b->likely[s]);
    }
    for (int i = 0; i < MGL_MAX_BATCH; i++)
        mgl_free(b->prompts[i]);
}

/* Allocates the log-probability fields of each sequence that needs them. */
static mgl_status open_likely(const mgl_model *model, const mgl_request *requests, batch *b,
                              mgl_error *err)
{
    size_t vocab = (size_t)model->program->geometry.vocab;
    for (int s = 0; s < b->count; s++) {
        size_t wanted = (size_t)requests[s].logprobs, most;
        mgl_result *likely = &b->likely[s];
        if (!wanted)
            continue;
        b->on_likelihood[s].call = requests[s].on_likelihood;
        b->on_likelihood[s].user = requests[s].likelihood_user;
        b->likely_count = (int)wanted > b->likely_count ? (int)wanted : b->likely_count;
        likely->top_count = wanted < vocab ? wanted : vocab;
        most = (size_t)b->sequences[s].max_new;
        likely->logprobs = mgl_alloc_zero(most, sizeof *likely->logprobs);
        likely->top_ids = mgl_alloc_zero(most * likely->top_count, sizeof *likely->top_ids);
        likely->top_logprobs =
            mgl_alloc_zero(most * likely->top_count, sizeof *likely->top_logprobs);
        if (!likely->logprobs || !likely->top_ids || !likely->top_logprobs)
            return mgl_fail_memory(err, most * likely->top_count * sizeof *likely->top_ids);
    }
    return MGL_OK;
}

/* Stores the log-probabilities of the next token, and passes them to the caller's callback. */
static void keep_likelihood(void *user, int sequence, const mgl_vm_likelihood *told)
{
    const batch *b = user;
    mgl_result *likely = &((batch *)user)->likely[sequence];
    size_t count = likely->top_count, at = likely->output.count;
    if (!count)
        return;
    likely->output.count++;
    likely->logprobs[at] = told->logprob;
    memcpy(likely->top_ids + at * count, told->ids, count * sizeof *told->ids);
    memcpy(likely->top_logprobs + at * count, told->logprobs, count * sizeof *told->logprobs);
    const mgl_likelihood likelihood = {.size = sizeof likelihood,
                                       .token = told->token,
                                       .logprob = told->logprob,
                                       .top_ids = told->ids,
                                       .top_logprobs = told->logprobs,
                                       .top_count = count};
    if (b->on_likelihood[sequence].call)
        b->on_likelihood[sequence].call(b->on_likelihood[sequence].user, (size_t)sequence,
                                        &likelihood);
}

/* True if the reply now contains a stop string. Padding ids of the vocabulary have no text. */
static bool is_stop(void *user, int sequence, int32_t token)
{
    batch *b = user;
    const char *text;
    if (!b->streams[sequence] || !mgl_tokenizer_knows(b->tokenizers[sequence], token))
        return false;
    mgl_error *err = b->error.code ? NULL : &b->error;
    return !mgl_detokenizer_next(b->streams[sequence], token, &text, NULL, err) &&
           mgl_detokenizer_is_stopped(b->streams[sequence]);
}

static bool pass_token(void *user, int sequence, int32_t token)
{
    const batch *b = user;
    if (b->error.code)
        return false;
    return !b->on_token || b->on_token(b->user, (size_t)sequence, token);
}

/* Names the request whose logits became NaN or infinite. */
static void name_broken(const batch *b, const mgl_vm_report *report, size_t count, mgl_error *err)
{
    for (int s = 0; s < b->count && err; s++)
        if (report->state[s] == MGL_STATE_NOT_A_NUMBER) {
            err->where[0] = 0;
            name_request((size_t)s, count, err);
            return;
        }
}

static mgl_status take_sequence(const mgl_vm_report *report, int sequence, mgl_result *out,
                                mgl_error *err)
{
    size_t count = (size_t)report->produced[sequence];
    int32_t state = report->state[sequence];
    out->output.ids = mgl_alloc((count ? count : 1) * sizeof(int32_t));
    if (!out->output.ids)
        return mgl_fail_memory(err, count * sizeof(int32_t));
    if (count)
        memcpy(out->output.ids, report->output[sequence], count * sizeof(int32_t));
    out->output.count = count;
    out->reused = report->reused[sequence];
    out->stop = state == MGL_STATE_EOS       ? MGL_STOP_EOS
                : state == MGL_STATE_LENGTH  ? MGL_STOP_LENGTH
                : state == MGL_STATE_STOPPED ? MGL_STOP_TEXT
                                             : MGL_STOP_INTERRUPTED;
    return MGL_OK;
}

/* Whether the caller's results have the log-probability fields, and the fields of prompts. */
static bool has_likely(const mgl_result *out)
{
    return out->size >= offsetof(mgl_result, prompt_logprobs);
}

static bool has_prompt_likely(const mgl_result *out)
{
    return out->size >= sizeof *out;
}

/* Moves the log-probability fields. */
static void take_likely(mgl_result *from, mgl_result *out)
{
    out->logprobs = from->logprobs;
    out->top_ids = from->top_ids;
    out->top_logprobs = from->top_logprobs;
    out->top_count = from->top_count;
    *from = (mgl_result){0};
}

static void take_prompt(batch *b, size_t request, mgl_result *out)
{
    out->prompt_logprobs = b->prompts[request];
    out->prompt_logprob_count = b->prompt_counts[request];
    b->prompts[request] = NULL;
}

/* Fills the results (count) from the launch's report. */
static mgl_status take_report(batch *b, const mgl_vm_report *report, mgl_result *out, size_t count,
                              mgl_error *err)
{
    mgl_result results[MGL_MAX_BATCH];
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < count; i++) {
        results[i] = (mgl_result){.size = sizeof results[i],
                                  .stop = MGL_STOP_LENGTH,
                                  .launches = report->launches + b->scored,
                                  .prefill_s = report->prefill_s,
                                  .decode_s = report->decode_s};
        if (has_prompt_likely(out))
            take_prompt(b, i, &results[i]);
    }
    for (int s = 0; s < b->count && !status; s++) {
        status = take_sequence(report, s, &results[s], err);
        if (!status && has_likely(out))
            take_likely(&b->likely[s], &results[s]);
    }
    for (size_t i = 0; i < count; i++) {
        if (status)
            mgl_result_clear(&results[i]);
        else
            mgl_sized_write(element_of(out, i), &results[i], sizeof results[i]);
    }
    return status;
}

/* The results (count) of replies that were cancelled before they began. */
static mgl_status end_at_once(mgl_result *out, size_t count)
{
    const mgl_result ended = {.size = sizeof ended, .stop = MGL_STOP_INTERRUPTED};
    for (size_t i = 0; i < count; i++)
        mgl_sized_write(element_of(out, i), &ended, sizeof ended);
    return MGL_OK;
}

/* Allocates the log-probabilities of a prompt. The first is 0. */
static mgl_status open_prompt(batch *b, size_t index, size_t count, mgl_error *err)
{
    b->prompt_counts[index] = count;
    b->prompts[index] = mgl_alloc_zero(count, sizeof *b->prompts[index]);
    return b->prompts[index] ? MGL_OK : mgl_fail_memory(err, count * sizeof *b->prompts[index]);
}

/* Scores, in one launch, the prompts whose log-probabilities are requested. *ended: the launch was
 * cancelled. A prompt of one token needs no scoring. */
static mgl_status score_prompts(mgl_model *model, const mgl_request *requests, size_t count,
                                batch *b, bool *ended, mgl_error *err)
{
    mgl_vm_sequence sequences[MGL_MAX_BATCH];
    size_t of[MGL_MAX_BATCH];
    mgl_vm_request run = {.sequences = sequences, .abort = &model->cancel->set};
    mgl_vm_report report = {0};
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < count && !status; i++) {
        if (!requests[i].prompt_logprobs)
            continue;
        status = open_prompt(b, i, requests[i].prompt_count, err);
        if (requests[i].prompt_count < 2)
            continue;
        of[run.count] = i;
        sequences[run.count++] =
            (mgl_vm_sequence){.mode = MGL_VM_SCORE,
                              .prompt = requests[i].prompt,
                              .prompt_count = (int32_t)requests[i].prompt_count,
                              .max_new = 1};
    }
    if (status || run.count == 0)
        return status;
    status = mgl_vm_run(model->vm, &run, &report, err);
    b->scored = 1;
    for (int s = 0; s < run.count && !status; s++) {
        *ended |= report.state[s] == MGL_STATE_ABORTED;
        memcpy(b->prompts[of[s]], report.score[s], b->prompt_counts[of[s]] * sizeof(float));
    }
    return status;
}

static mgl_status run_batch(mgl_model *model, batch *b, mgl_result *out, size_t count,
                            mgl_error *err)
{
    mgl_vm_report report = {0};
    mgl_vm_request run = {.sequences = b->sequences,
                          .count = b->count,
                          .on_token = pass_token,
                          .is_stop = is_stop,
                          .on_likelihood = keep_likelihood,
                          .likely = b->likely_count,
                          .user = b,
                          .abort = &model->cancel->set,
                          .on_stage = model->on_stage,
                          .stage_user = model->stage_user};
    mgl_status status = mgl_vm_run(model->vm, &run, &report, err);
    if (status)
        name_broken(b, &report, count, err);
    if (!status && b->error.code && err)
        *err = b->error;
    if (!status)
        status = b->error.code;
    return status ? status : take_report(b, &report, out, count, err);
}

mgl_status mgl_model_generate_batch(mgl_model *model, const mgl_request *requests, size_t count,
                                    mgl_batch_token_fn *on_token, void *user, mgl_result *out,
                                    mgl_error *err)
{
    mgl_request known[MGL_MAX_BATCH];
    if (!model || !requests || !out)
        return mgl_fail_null(err, __func__, !model ? "model" : !requests ? "requests" : "out");
    mgl_cancel_reset(&model->own); /* the caller resets its own switch */
    mgl_status status = check_count(model, count, err);
    if (!status)
        status = read_requests(requests, count, known, err);
    if (!status)
        status = check_sizes(out, count, offsetof(mgl_result, stop), "mgl_result", err);
    if (!status)
        status = check_batch(model, known, count, err);
    if (status)
        return status;
    batch b = {.on_token = on_token, .user = user};
    gather_sequences(model, known, count, &b);
    status = open_streams(known, count, &b, err);
    if (!status)
        status = open_likely(model, known, &b, err);
    if (!status) {
        for (size_t i = 0; i < count; i++)
            mgl_result_clear(element_of(out, i));
        bool ended = mgl_cancel_is_set(model->cancel);
        if (!ended)
            status = score_prompts(model, known, count, &b, &ended, err);
        if (!status)
            status = ended ? end_at_once(out, count) : run_batch(model, &b, out, count, err);
    }
    close_batch(&b);
    return status;
}

/* Adapts the callback of one reply to the callback of a batch. */
typedef struct listener {
    mgl_token_fn *on_token; /* may be NULL */
    void *user;
} listener;

static bool pass_to_listener(void *user, size_t reply, int32_t token)
{
    const listener *to = user;
    (void)reply;
    return !to->on_token || to->on_token(to->user, token);
}

mgl_status mgl_model_generate(mgl_model *model, const mgl_request *request, mgl_token_fn *on_token,
                              void *user, mgl_result *out, mgl_error *err)
{
    listener to = {on_token, user};
    if (!model || !request || !out)
        return mgl_fail_null(err, __func__, !model ? "model" : !request ? "request" : "out");
    return mgl_model_generate_batch(model, request, 1, pass_to_listener, &to, out, err);
}

void mgl_result_clear(mgl_result *result)
{
    static const mgl_result cleared;
    if (!result)
        return;
    if (result->size >= offsetof(mgl_result, stop))
        mgl_ids_clear(&result->output);
    if (has_likely(result))
        free_likely(result);
    if (has_prompt_likely(result))
        mgl_free(result->prompt_logprobs);
    if (result->size)
        mgl_sized_write(result, &cleared, sizeof cleared);
}

mgl_status mgl_model_score(mgl_model *model, const int32_t *ids, size_t count, float *logprob,
                           mgl_error *err)
{
    if (!model || !logprob)
        return mgl_fail_null(err, __func__, model ? "logprob" : "model");
    mgl_cancel_reset(&model->own);
    mgl_status status = check_ids(model, "text", ids, count, err);
    if (!status)
        status = mgl_check_abort(&model->cancel->set, err);
    if (status)
        return status;
    logprob[0] = 0;
    if (count < 2) /* the first token has no context */
        return MGL_OK;
    mgl_vm_sequence sequence = {
        .mode = MGL_VM_SCORE, .prompt = ids, .prompt_count = (int32_t)count, .max_new = 1};
    mgl_vm_request run = {.sequences = &sequence,
                          .count = 1,
                          .abort = &model->cancel->set,
                          .on_stage = model->on_stage,
                          .stage_user = model->stage_user};
    mgl_vm_report report = {0};
    status = mgl_vm_run(model->vm, &run, &report, err);
    if (!status && report.state[0] == MGL_STATE_ABORTED)
        status = mgl_fail_interrupted(err);
    if (!status)
        memcpy(logprob, report.score[0], count * sizeof *logprob);
    return status;
}

mgl_status mgl_model_score_logits(mgl_model *model, const int32_t *ids, size_t count, size_t begin,
                                  float *logits, mgl_error *err)
{
    if (!model || !logits)
        return mgl_fail_null(err, __func__, model ? "logits" : "model");
    mgl_cancel_reset(&model->own);
    mgl_status status = check_ids(model, "text", ids, count, err);
    if (!status && begin >= count)
        status = mgl_fail(err, MGL_USAGE, "begin",
                          "is %zu; the text has %zu token%s, and the first "
                          "logits belong to token begin + 1",
                          begin, count, mgl_plural(count));
    if (!status)
        status = mgl_check_abort(&model->cancel->set, err);
    return status ? status
                  : mgl_vm_score_logits(model->vm, ids, (int32_t)count, (int32_t)begin,
                                        &model->cancel->set, logits, err);
}

mgl_status mgl_model_get_logits(const mgl_model *model, float *logits, mgl_error *err)
{
    if (!model || !logits)
        return mgl_fail_null(err, __func__, model ? "logits" : "model");
    return mgl_vm_get_logits(model->vm, logits, err);
}
