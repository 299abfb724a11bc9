/* The tokens of a GGUF file. Parts of tokenizer.c and pieces.c. */
#ifndef MGL_IMPORTER_GGUF_TOKENS_H
#define MGL_IMPORTER_GGUF_TOKENS_H

#include "base/json_out.h"
#include "importer/gguf/gguf.h"

/* Types of tokens, as numbered in the file. */
enum {
    MGL_GGUF_TOKEN_NORMAL = 1,
    MGL_GGUF_TOKEN_UNKNOWN,
    MGL_GGUF_TOKEN_CONTROL,
    MGL_GGUF_TOKEN_USER,
    MGL_GGUF_TOKEN_UNUSED,
    MGL_GGUF_TOKEN_BYTE
};

typedef struct mgl_gguf_tokens {
    mgl_gguf_string *texts; /* owned (count); valid UTF-8 */
    int64_t *types;         /* owned (count); NULL: all are normal */
    float *scores;          /* owned (count); NULL: none */
    size_t count;
} mgl_gguf_tokens;

/* Release *out with mgl_gguf_tokens_clear, also after a failure. */
mgl_status mgl_gguf_tokens_read(const mgl_gguf *gguf, mgl_gguf_tokens *out, mgl_error *err);
void mgl_gguf_tokens_clear(mgl_gguf_tokens *tokens);

/* Writes the key "merges" of a tokenizer of SentencePiece: its scores give the order in which
 * pieces are merged. */
mgl_status mgl_gguf_write_pieces(const mgl_gguf *gguf, const mgl_gguf_tokens *tokens,
                                 mgl_json_out *out, mgl_error *err);

#endif
