/*
 * Decoders: tokens -> text, token by token (streaming). A decoder is a pipeline of stages. Each
 * stage gets the tokens of the stage before and produces its own. Tokens are sent as events
 * (begin, text, end), so a stage that fuses all tokens into one (Fuse, ByteLevel) still forwards
 * its text at once. A stage holds back only what a later token can change: an incomplete
 * character, a run of byte tokens, or the beginning of a match. Whole and streaming decodes use
 * the same code and give the same text. A decode that continues a prompt has a mark after the
 * prompt's tokens. Each stage keeps the mark at its position in the text; output before the mark
 * is discarded. Called by tokenizer.c.
 */
#ifndef MGL_IMPORTER_TOKENIZER_DECODE_H
#define MGL_IMPORTER_TOKENIZER_DECODE_H

#include "importer/tokenizer/growth.h"
#include "importer/tokenizer/pattern.h"

typedef enum mgl_decode_kind {
    MGL_DECODE_JOIN,          /* the default without a decoder: a space between tokens */
    MGL_DECODE_BYTE_LEVEL,    /* GPT-2's byte alphabet -> bytes, all tokens as one; U+FFFD for
                               * invalid UTF-8 */
    MGL_DECODE_METASPACE,     /* `content` -> space; in the first token -> nothing if `drop` */
    MGL_DECODE_REPLACE,       /* `pattern` -> `content` in each token */
    MGL_DECODE_BYTE_FALLBACK, /* a run of <0x00>..<0xFF> -> its characters, or a U+FFFD for each
                               * byte */
    MGL_DECODE_FUSE,          /* all tokens -> one */
    MGL_DECODE_STRIP /* removes up to `start` leading and `stop` trailing `content` per token */
} mgl_decode_kind;

typedef struct mgl_decode_stage {
    mgl_decode_kind kind;
    char *content;        /* owned; one character for Metaspace and Strip */
    char *literal;        /* owned; for Replace if the pattern is a nonempty literal */
    mgl_pattern *pattern; /* owned */
    bool drop;
    size_t start, stop;
} mgl_decode_stage;

typedef struct mgl_decoder {
    mgl_decode_stage *stages; /* (count) */
    size_t count, capacity;
    const char *file; /* for messages; not owned */
} mgl_decoder;

/* Appends a stage and takes ownership of its members, also if memory runs out. */
mgl_status mgl_decoder_add(mgl_decoder *decoder, mgl_decode_stage stage, mgl_error *err);
void mgl_decoder_clear(mgl_decoder *decoder);

/* Returns the byte of a token <0xHH>, or -1 for other tokens. */
int mgl_decode_byte_token(const char *token, size_t length);

/* One decode in progress. */
typedef struct mgl_decoding mgl_decoding;

mgl_status mgl_decoding_open(const mgl_decoder *decoder, mgl_decoding **out, mgl_error *err);

/* Tokens of a prompt come first, between these two calls. Their text is not appended, nor is a
 * character that they leave incomplete. */
void mgl_decoding_begin_prompt(mgl_decoding *decoding);
mgl_status mgl_decoding_end_prompt(mgl_decoding *decoding, mgl_text *out, mgl_error *err);

/* Decodes one token; appends the text that is now certain to `out`, whole characters only. */
mgl_status mgl_decoding_token(mgl_decoding *decoding, const char *token, size_t length,
                              mgl_text *out, mgl_error *err);

/* Ends the decode; appends the rest. */
mgl_status mgl_decoding_finish(mgl_decoding *decoding, mgl_text *out, mgl_error *err);

void mgl_decoding_close(mgl_decoding *decoding); /* NULL is fine */

#endif
