/*
 * Fuzz target of the tokenizer. The first line of the input is a text; the rest is a
 * tokenizer.json. The file must be rejected, or give a tokenizer that encodes the text and whose
 * whole and streaming decodes agree. Seeds: seeds/fuzz_tokenizer.
 */
#include "base/memory.h"
#include "importer/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Checks that the decoded text of `ids` equals the concatenated pieces of the streaming decode. */
static void check_stream(const mgl_tokenizer *tokenizer, const mgl_ids *ids)
{
    mgl_error err = {0};
    mgl_detokenizer *stream;
    mgl_text pieces = {0};
    const char *piece;
    char *whole = NULL;
    size_t length, piece_length;
    if (mgl_tokenizer_decode(tokenizer, ids->ids, ids->count, false, &whole, &length, &err))
        return;
    require(mgl_detokenizer_open(tokenizer, false, &stream, &err) == MGL_OK);
    for (size_t i = 0; i < ids->count; i++) {
        require(mgl_detokenizer_next(stream, ids->ids[i], &piece, &piece_length, &err) == MGL_OK);
        mgl_text_append(&pieces, piece, piece_length);
    }
    require(mgl_detokenizer_finish(stream, &piece, &piece_length, &err) == MGL_OK);
    mgl_text_append(&pieces, piece, piece_length);
    require(pieces.length == length && (!length || !memcmp(pieces.bytes, whole, length)));
    mgl_detokenizer_close(stream);
    mgl_text_clear(&pieces);
    mgl_text_free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    size_t length = line ? (size_t)(line - text) : 0, skip = line ? length + 1 : 0;
    mgl_tokenizer *tokenizer = NULL;
    mgl_error err = {0};
    mgl_ids ids = {0};
    if (mgl_tokenizer_parse(text + skip, size - skip, "fuzz", &tokenizer, &err)) {
        require(err.code == MGL_BAD_INPUT && !tokenizer && !strncmp(err.where, "fuzz", 4));
        return 0;
    }
    if (!mgl_tokenizer_encode(tokenizer, text, length, true, &ids, &err))
        check_stream(tokenizer, &ids);
    mgl_ids_clear(&ids);
    mgl_tokenizer_close(tokenizer);
    return 0;
}
