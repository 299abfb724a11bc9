/*
 * Single tokens: the bytes that a token adds to a text, and the token that adds given bytes.
 * Unlike a decode, which outputs whole characters, this includes the bytes of an incomplete
 * character. The bytes are those of a token in the middle of a text. So stages after a stage
 * that fuses all tokens are skipped, and so is the special treatment of the first token.
 */
#include "importer/tokenizer/tokenizer.h"

#include "base/memory.h"
#include "importer/tokenizer/byte_level.h"

#include <string.h>

size_t mgl_tokenizer_size(const mgl_tokenizer *tokenizer)
{
    return tokenizer ? (size_t)tokenizer->last_id + 1 : 0;
}

mgl_tokenizer_facts mgl_tokenizer_get_facts(const mgl_tokenizer *tokenizer)
{
    return (mgl_tokenizer_facts){.ids = mgl_tokenizer_size(tokenizer),
                                 .added = tokenizer->added.count,
                                 .model_ids = (size_t)tokenizer->model_vocab,
                                 .llama = tokenizer->llama,
                                 .truncation = tokenizer->truncation,
                                 .padding = tokenizer->padding};
}

/* State for passing tokens through the stages. */
typedef struct reading {
    const mgl_tokenizer *tokenizer;
    mgl_matcher *matcher;
    mgl_growth growth; /* of the stages */
    mgl_text text;     /* of the current token */
    mgl_text other;    /* the output of a stage */
} reading;

static mgl_status begin_reading(reading *r, mgl_error *err)
{
    mgl_status status = mgl_growth_open(&r->growth, r->tokenizer->decoder.count + 1, err);
    return status ? status : mgl_matcher_new(&r->matcher, err);
}

static void end_reading(reading *r)
{
    mgl_matcher_free(r->matcher);
    mgl_growth_clear(&r->growth);
    mgl_text_clear(&r->text);
    mgl_text_clear(&r->other);
}

/* Makes the output of the stage the current text. */
static void exchange(reading *r)
{
    mgl_text made = r->other;
    r->other = r->text;
    r->text = made;
    r->other.length = 0;
}

static mgl_status replace(reading *r, size_t index, mgl_error *err)
{
    const mgl_decode_stage *stage = &r->tokenizer->decoder.stages[index];
    mgl_pattern_scan scan = {.text = r->text.bytes, .length = r->text.length};
    size_t done = 0, content = strlen(stage->content);
    bool found = r->text.length > 0;
    mgl_status status = MGL_OK;
    while (found && !status) {
        status = mgl_pattern_next(stage->pattern, r->matcher, &scan, &found, err);
        if (status || !found)
            break;
        mgl_text_append(&r->other, r->text.bytes + done, scan.start - done);
        mgl_text_append(&r->other, stage->content, content);
        status = mgl_growth_take(&r->growth, index, content, "decoder", r->tokenizer->file, err);
        done = scan.end;
    }
    if (!status && r->text.length)
        mgl_text_append(&r->other, r->text.bytes + done, r->text.length - done);
    exchange(r);
    return status;
}

static void space_out(reading *r, const char *content)
{
    size_t size = strlen(content), done = 0;
    while (done < r->text.length) {
        const char *from = r->text.bytes + done;
        const char *at = memmem(from, r->text.length - done, content, size);
        size_t before = at ? (size_t)(at - from) : r->text.length - done;
        mgl_text_append(&r->other, from, before);
        if (at)
            mgl_text_append(&r->other, " ", 1);
        done += before + (at ? size : 0);
    }
    exchange(r);
}

static void strip(reading *r, const mgl_decode_stage *stage)
{
    size_t size = strlen(stage->content), from = 0, to = r->text.length;
    const char *bytes = r->text.bytes;
    for (size_t i = 0; i < stage->start && to - from >= size; i++, from += size)
        if (memcmp(bytes + from, stage->content, size) != 0)
            break;
    for (size_t i = 0; i < stage->stop && to - from >= size; i++, to -= size)
        if (memcmp(bytes + to - size, stage->content, size) != 0)
            break;
    if (to > from)
        memmove(r->text.bytes, bytes + from, to - from);
    r->text.length = to - from;
}

/* If the token is a byte token, replaces it by its byte, which no later stage changes. */
static bool take_byte(reading *r)
{
    int byte = mgl_decode_byte_token(r->text.bytes, r->text.length);
    if (byte < 0)
        return false;
    r->text.bytes[0] = (char)byte;
    r->text.length = 1;
    return true;
}

static void take_bytes(reading *r)
{
    if (mgl_byte_level_unmap(r->text.bytes, r->text.length, &r->other))
        exchange(r);
}

/* Runs one stage. *last: no later stage changes a single token. */
static mgl_status pass(reading *r, size_t index, bool *last, mgl_error *err)
{
    const mgl_decode_stage *stage = &r->tokenizer->decoder.stages[index];
    switch (stage->kind) {
    case MGL_DECODE_JOIN:
        return MGL_OK;
    case MGL_DECODE_BYTE_LEVEL:
        take_bytes(r);
        *last = true;
        return MGL_OK;
    case MGL_DECODE_METASPACE:
        space_out(r, stage->content);
        return MGL_OK;
    case MGL_DECODE_REPLACE:
        return replace(r, index, err);
    case MGL_DECODE_BYTE_FALLBACK:
        *last = take_byte(r);
        return MGL_OK;
    case MGL_DECODE_FUSE:
        *last = true;
        return MGL_OK;
    case MGL_DECODE_STRIP:
        strip(r, stage);
        return MGL_OK;
    }
    return MGL_OK;
}

/* Reads the bytes of an id into r->text; *has: the id has a token. */
static mgl_status read_token(reading *r, int32_t id, bool *has, mgl_error *err)
{
    const mgl_decoder *decoder = &r->tokenizer->decoder;
    size_t length;
    bool special, last = false;
    mgl_status status = MGL_OK;
    const char *token = mgl_tokenizer_text_of(r->tokenizer, id, &length, &special);
    *has = token != NULL;
    r->text.length = r->other.length = 0;
    mgl_growth_begin(&r->growth);
    mgl_growth_add(&r->growth, token ? length : 0);
    mgl_text_append(&r->text, token ? token : "", token ? length : 0);
    for (size_t i = 0; i < decoder->count && r->text.length && !last && !status; i++)
        status = pass(r, i, &last, err);
    if (!status && (r->text.failed || r->other.failed))
        status = mgl_fail_memory(err, r->text.capacity);
    return status;
}

mgl_status mgl_tokenizer_token(const mgl_tokenizer *tokenizer, int32_t id, char **out,
                               size_t *length, mgl_error *err)
{
    reading r = {.tokenizer = tokenizer};
    bool has;
    if (out)
        *out = NULL;
    if (!tokenizer || !out)
        return mgl_fail_null(err, __func__, tokenizer ? "out" : "tokenizer");
    if (!mgl_tokenizer_knows(tokenizer, id))
        return mgl_tokenizer_fail_id(tokenizer, id, err);
    mgl_status status = begin_reading(&r, err);
    if (!status)
        status = read_token(&r, id, &has, err);
    if (!status) {
        *out = mgl_strndup(r.text.length ? r.text.bytes : "", r.text.length);
        if (length)
            *length = r.text.length;
        if (!*out)
            status = mgl_fail_memory(err, r.text.length);
    }
    end_reading(&r);
    return status;
}

mgl_status mgl_tokenizer_find(const mgl_tokenizer *tokenizer, const char *bytes, size_t length,
                              int32_t *out, mgl_error *err)
{
    reading r = {.tokenizer = tokenizer};
    int32_t found = -1;
    if (out)
        *out = -1;
    if (!tokenizer || !out || (!bytes && length))
        return mgl_fail_null(err, __func__, !tokenizer ? "tokenizer" : out ? "bytes" : "out");
    mgl_status status = begin_reading(&r, err);
    for (int32_t id = 0; id <= tokenizer->last_id && found < 0 && !status; id++) {
        bool has;
        status = read_token(&r, id, &has, err);
        if (!status && has && r.text.length == length &&
            (!length || !memcmp(r.text.bytes, bytes, length)))
            found = id;
    }
    end_reading(&r);
    if (!status)
        *out = found;
    return status;
}
