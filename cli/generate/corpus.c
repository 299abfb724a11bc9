/* Implements the corpus of `eval` and `score`, and the progress of reading it. See corpus.h. */
#include "cli/generate/corpus.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include <stdio.h>

mgl_status mgl_cli_corpus_make(mgl_cli_corpus *corpus, size_t room, mgl_error *err)
{
    corpus->texts = mgl_alloc_zero(room ? room : 1, sizeof *corpus->texts);
    corpus->room = room;
    return corpus->texts ? MGL_OK : mgl_fail_memory(err, room * sizeof *corpus->texts);
}

void mgl_cli_corpus_take(mgl_cli_corpus *corpus, mgl_ids *ids)
{
    MGL_ASSERT(corpus->count < corpus->room);
    if (ids->count > corpus->longest)
        corpus->longest = ids->count;
    corpus->texts[corpus->count++] = *ids;
    *ids = (mgl_ids){0};
}

mgl_status mgl_cli_corpus_encode(mgl_cli_corpus *corpus, const mgl_tokenizer *tokenizer,
                                 const char *text, size_t length, mgl_error *err)
{
    mgl_ids ids = {0};
    mgl_status status = mgl_tokenizer_encode(tokenizer, text, length, true, &ids, err);
    if (!status)
        mgl_cli_corpus_take(corpus, &ids);
    return status ? status : mgl_cli_check_cancel(err);
}

bool mgl_cli_corpus_needs_tokenizer(const mgl_cli_prompts *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].text)
            return true;
    return false;
}

mgl_status mgl_cli_corpus_take_list(mgl_cli_corpus *corpus, mgl_cli_prompts *list,
                                    const mgl_tokenizer *tokenizer, mgl_error *err)
{
    char name[200];
    mgl_status status = mgl_cli_corpus_make(corpus, list->count, err);
    for (size_t i = 0; i < list->count && !status; i++) {
        mgl_cli_prompt *item = &list->items[i];
        if (item->text)
            status = mgl_cli_corpus_encode(corpus, tokenizer, item->text, item->length, err);
        else
            mgl_cli_corpus_take(corpus, &item->ids);
        mgl_cli_prompt_name(list, i, name, sizeof name);
        if (status == MGL_BAD_INPUT)
            mgl_error_name(err, name);
    }
    return status;
}

mgl_status mgl_cli_corpus_check(const mgl_cli_corpus *corpus, int32_t vocab, const char *name,
                                mgl_error *err)
{
    char where[200];
    for (size_t i = 0; i < corpus->count; i++)
        for (size_t k = 0; k < corpus->texts[i].count; k++) {
            const int32_t id = corpus->texts[i].ids[k];
            if (id >= 0 && id < vocab)
                continue;
            snprintf(where, sizeof where, "%.150s: text %zu", name ? name : "default texts", i);
            return mgl_fail(err, MGL_BAD_INPUT, where,
                            "token %zu is %d; the vocabulary has the ids 0 to %d", k, (int)id,
                            (int)vocab - 1);
        }
    return MGL_OK;
}

void mgl_cli_corpus_clear(mgl_cli_corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++)
        mgl_ids_clear(&corpus->texts[i]);
    mgl_free(corpus->texts);
    *corpus = (mgl_cli_corpus){0};
}

/* ---- progress -------------------------------------------------------------------------------- */

void mgl_cli_reading_stage(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    const mgl_cli_reading *r = user;
    if (stage == MGL_STAGE_PROMPT)
        mgl_cli_show(r->verb, MGL_CLI_COUNT_TOKENS, r->tokens + done, r->total);
    else
        mgl_cli_show_stage(NULL, stage, done, total);
}

void mgl_cli_reading_add(mgl_cli_reading *reading, size_t tokens)
{
    reading->tokens += tokens;
    mgl_cli_show(reading->verb, MGL_CLI_COUNT_TOKENS, reading->tokens, reading->total);
}

void mgl_cli_reading_say(const mgl_cli_reading *reading, size_t scored)
{
    double rate = reading->read_s > 0 ? (double)scored / reading->read_s : 0;
    mgl_cli_flush();
    mgl_cli_say(reading->verb, "%zu tokens in %s, %.0f tokens/s; loaded in %s", scored,
                mgl_cli_format_time(reading->read_s).text, rate,
                mgl_cli_format_time(reading->load_s).text);
}
