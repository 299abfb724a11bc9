/*
 * Limits how much a tokenizer may expand a text. A file can chain steps that each produce many
 * bytes from one (Replace "a" by a thousand "a", four times). A short text would then fill the
 * memory or take forever. So no step may produce more than MGL_GROWTH_FACTOR times the input
 * bytes plus MGL_GROWTH_FREE. Real tokenizers stay below: NFKC produces up to 11 bytes per byte,
 * Replace of " " by "\u2581" 3, and ByteLevel 2. Used by normalizers, splitters and decoders.
 */
#ifndef MGL_IMPORTER_TOKENIZER_GROWTH_H
#define MGL_IMPORTER_TOKENIZER_GROWTH_H

#include "base/error.h"

#define MGL_GROWTH_FACTOR 32
#define MGL_GROWTH_FREE   ((size_t)64 << 10)

typedef struct mgl_growth {
    size_t limit; /* bytes that each step may produce */
    size_t *made; /* (steps) bytes that each step has produced */
    size_t steps;
} mgl_growth;

/* Allocates `steps` counters. Release with mgl_growth_clear. */
mgl_status mgl_growth_open(mgl_growth *growth, size_t steps, mgl_error *err);
void mgl_growth_clear(mgl_growth *growth);

/* Begins a new text of unknown length. */
void mgl_growth_begin(mgl_growth *growth);

/* Counts `bytes` of input. */
void mgl_growth_add(mgl_growth *growth, size_t bytes);

/* Counts `bytes` of output of a step. Returns MGL_BAD_INPUT above the limit; `part`
 * ("normalizer") and `file` are for the message. */
mgl_status mgl_growth_take(mgl_growth *growth, size_t step, size_t bytes, const char *part,
                           const char *file, mgl_error *err);

#endif
