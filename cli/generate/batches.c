/*
 * Runs a list of prompts in launches of the model's batch size, one after another. See batches.h.
 */
#include "cli/generate/batches.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* One launch. */
typedef struct launch {
    mgl_request requests[MGL_MAX_BATCH]; /* (count) */
    mgl_result results[MGL_MAX_BATCH];   /* (count) */
    size_t prompt[MGL_MAX_BATCH];        /* (count) index of each one's prompt */
    size_t count;
} launch;

mgl_status mgl_cli_batches_make(size_t count, mgl_cli_batches *out, mgl_error *err)
{
    out->count = count;
    out->requests = mgl_alloc_zero(count, sizeof *out->requests);
    out->results = mgl_alloc_zero(count, sizeof *out->results);
    if (!out->requests || !out->results)
        return mgl_fail_memory(err, count * (sizeof *out->requests + sizeof *out->results));
    for (size_t i = 0; i < count; i++)
        out->results[i].size = sizeof *out->results;
    return MGL_OK;
}

/* Collects prompts without an error, from `from` on. Returns the first prompt after them. */
static size_t gather(const mgl_cli_batches *b, const mgl_cli_prompts *prompts, size_t from,
                     size_t most, launch *out)
{
    out->count = 0;
    while (from < b->count && out->count < most) {
        if (!prompts->items[from].error) {
            out->requests[out->count] = b->requests[from];
            out->results[out->count].size = sizeof *out->results;
            out->prompt[out->count++] = from;
        }
        from++;
    }
    while (from < b->count && prompts->items[from].error)
        from++;
    return from;
}

/* Finds the request that the library rejected and named in err->where, and removes that name.
 * False: the error names no request. */
static bool take_rejected(mgl_status status, size_t count, size_t *index, mgl_error *err)
{
    int length = 0;
    *index = 0;
    if (status != MGL_BAD_INPUT && status != MGL_USAGE)
        return false;
    if (sscanf(err->where, "requests[%zu]%n", index, &length) != 1 || !length)
        return count == 1;
    length += err->where[length] == ':' ? 2 : 0;
    memmove(err->where, err->where + length, strlen(err->where + length) + 1);
    return *index < count;
}

/* The key of an entry that determines a field of its request. */
static const char *key_of(const mgl_cli_prompt *prompt, const char *field)
{
    if (strcmp(field, "prompt") != 0)
        return field;
    return prompt->messages.count ? "messages" : prompt->text ? "text" : "ids";
}

/* Gives the rejected prompt its error and returns MGL_OK; otherwise returns `status`. */
static mgl_status reject(const launch *l, mgl_cli_prompts *prompts, mgl_status status,
                         mgl_error *err)
{
    size_t index;
    mgl_error why = *err;
    if (!prompts->list || !take_rejected(status, l->count, &index, &why))
        return status;
    *err = why;
    if (!why.where[0])
        return mgl_cli_prompt_end(prompts, l->prompt[index], status, err);
    return mgl_cli_prompt_end_key(prompts, l->prompt[index],
                                  key_of(&prompts->items[l->prompt[index]], why.where), status,
                                  err);
}

static void take_results(mgl_cli_batches *b, const launch *l)
{
    for (size_t i = 0; i < l->count; i++)
        b->results[l->prompt[i]] = l->results[i];
    b->launches += l->results[0].launches;
    b->prefill_s += l->results[0].prefill_s;
    b->decode_s += l->results[0].decode_s;
}

mgl_status mgl_cli_batches_run(mgl_cli_batches *b, mgl_model *model, mgl_cli_prompts *prompts,
                               size_t most, mgl_batch_token_fn *on_token, void *user, size_t *next,
                               mgl_error *err)
{
    launch *l = mgl_alloc_zero(1, sizeof *l);
    mgl_status status = l ? MGL_OK : mgl_fail_memory(err, sizeof *l);
    bool done = false;
    while (!status && !done) {
        const size_t behind = gather(b, prompts, *next, most, l);
        if (l->count)
            status = mgl_model_generate_batch(model, l->requests, l->count, on_token, user,
                                              l->results, err);
        done = !status;
        if (done && l->count)
            take_results(b, l);
        if (done)
            *next = behind;
        else
            status = reject(l, prompts, status, err);
    }
    mgl_free(l);
    return status;
}

void mgl_cli_batches_clear(mgl_cli_batches *batches)
{
    for (size_t i = 0; i < batches->count && batches->results; i++)
        mgl_result_clear(&batches->results[i]);
    mgl_free(batches->results);
    mgl_free(batches->requests);
    *batches = (mgl_cli_batches){0};
}
