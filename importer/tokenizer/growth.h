/*
 * How much a tokenizer may make of a text. A file can chain steps that each make many bytes of one
 * (Replace "a" by a thousand "a", four times), so that a short text would fill the memory or take
 * for ever. So no step may make more than MGL_GROWTH_FACTOR times the bytes of the text that went
 * in, and MGL_GROWTH_FREE more. What real tokenizers do passes: NFKC makes up to 11 bytes of one, a
 * Replace of " " by "\u2581" 3, and ByteLevel 2.
 */
#ifndef MGL_IMPORTER_TOKENIZER_GROWTH_H
#define MGL_IMPORTER_TOKENIZER_GROWTH_H

#include "base/error.h"

#define MGL_GROWTH_FACTOR 32
#define MGL_GROWTH_FREE   ((size_t)64 << 10)

typedef struct mgl_growth {
    size_t limit; /* bytes that each step may make */
    size_t *made; /* (steps) bytes that each has made */
    size_t steps;
} mgl_growth;

/* Room for `steps` counters. Release with mgl_growth_clear. */
mgl_status mgl_growth_open(mgl_growth *growth, size_t steps, mgl_error *err);
void mgl_growth_clear(mgl_growth *growth);

/* A new text begins, of which nothing is known yet. */
void mgl_growth_begin(mgl_growth *growth);

/* `bytes` of it go in. */
void mgl_growth_add(mgl_growth *growth, size_t bytes);

/* The step has made `bytes` more. MGL_BAD_INPUT when that is too much; `part` ("normalizer") and
 * `file` are for the message. */
mgl_status mgl_growth_take(mgl_growth *growth, size_t step, size_t bytes, const char *part,
                           const char *file, mgl_error *err);

#endif
