/*
 * Decoders: tokens -> text, token by token. A decoder is a list of stages; each gets the tokens of
 * the one before and makes its own. Tokens travel as events (begin, text, end), so that a stage
 * that fuses all tokens into one (Fuse, ByteLevel) still hands its text on at once. A stage keeps
 * back only what a later token can still change: half a character, a run of byte tokens, a
 * beginning of what it replaces. Whole and streaming decodes are the same code and give the same
 * text. A decode that goes on behind a prompt has a mark between their tokens, which each stage
 * keeps at its place in the text; what comes out before the mark is dropped.
 */
#ifndef MGL_IMPORTER_TOKENIZER_DECODE_H
#define MGL_IMPORTER_TOKENIZER_DECODE_H

#include "importer/tokenizer/growth.h"
#include "importer/tokenizer/pattern.h"

typedef enum mgl_decode_kind {
    MGL_DECODE_JOIN,          /* what happens without a decoder: a space between tokens */
    MGL_DECODE_BYTE_LEVEL,    /* GPT-2's alphabet -> bytes, all tokens as one; U+FFFD for what is
                                 not UTF-8 */
    MGL_DECODE_METASPACE,     /* `content` -> space, and in the first token -> nothing if `drop` */
    MGL_DECODE_REPLACE,       /* `pattern` -> `content` in each token */
    MGL_DECODE_BYTE_FALLBACK, /* a run of <0x00>..<0xFF> -> its characters, or a U+FFFD for each */
    MGL_DECODE_FUSE,          /* all tokens -> one */
    MGL_DECODE_STRIP /* up to `start` leading and `stop` trailing `content` of each token */
} mgl_decode_kind;

typedef struct mgl_decode_stage {
    mgl_decode_kind kind;
    char *content;        /* owned; of Metaspace and Strip one character */
    char *literal;        /* owned; of Replace, when the pattern is a text that is not empty */
    mgl_pattern *pattern; /* owned */
    bool drop;
    size_t start, stop;
} mgl_decode_stage;

typedef struct mgl_decoder {
    mgl_decode_stage *stages; /* (count) */
    size_t count, capacity;
    const char *file; /* for messages; not owned */
} mgl_decoder;

/* Appends a stage and takes over what it owns, also when memory runs out. */
mgl_status mgl_decoder_add(mgl_decoder *decoder, mgl_decode_stage stage, mgl_error *err);
void mgl_decoder_clear(mgl_decoder *decoder);

/* The byte of a token <0xHH>; -1 when it is none. */
int mgl_decode_byte_token(const char *token, size_t length);

/* One decode in progress. */
typedef struct mgl_decoding mgl_decoding;

mgl_status mgl_decoding_open(const mgl_decoder *decoder, mgl_decoding **out, mgl_error *err);

/* Tokens that belong to a prompt stand between the two, in front of all others: nothing of their
 * text is appended. A character that they leave unfinished is dropped too. */
void mgl_decoding_begin_prompt(mgl_decoding *decoding);
mgl_status mgl_decoding_end_prompt(mgl_decoding *decoding, mgl_text *out, mgl_error *err);

/* One token; what became certain is appended to `out`, whole characters only. */
mgl_status mgl_decoding_token(mgl_decoding *decoding, const char *token, size_t length,
                              mgl_text *out, mgl_error *err);

/* There are no more tokens; appends the rest. */
mgl_status mgl_decoding_finish(mgl_decoding *decoding, mgl_text *out, mgl_error *err);

void mgl_decoding_close(mgl_decoding *decoding); /* NULL is fine */

#endif
