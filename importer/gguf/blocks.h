/* Quantized types of GGUF files that a weight format represents exactly. Used by the binder and the
 * reader of quantized matrices (importer/quantized). */
#ifndef MGL_IMPORTER_GGUF_BLOCKS_H
#define MGL_IMPORTER_GGUF_BLOCKS_H

#include "base/weight_format.h"

enum { MGL_GGUF_BLOCK_GROUPS = 16 }; /* the most groups of a block */

/* A type: a row is a sequence of blocks. */
typedef struct mgl_gguf_blocks {
    const char *type; /* "Q8_0" */
    mgl_weight_format format;
    int weights, bytes; /* of a block */
    /* Unpacks a block: `weights` codes, and for each group a scale, and a minimum if the format has
     * minimums. */
    void (*unpack)(const uint8_t *block, uint8_t *codes, float *scales, float *minimums);
} mgl_gguf_blocks;

/* Returns the blocks of a type, or NULL: not supported. */
const mgl_gguf_blocks *mgl_gguf_find_blocks(const char *type);

/* Returns whether the type is quantized, supported or not. */
bool mgl_gguf_is_quantized(const char *type);

/* The names of the supported types, for messages. */
#define MGL_GGUF_SUPPORTED "F32, F16, BF16, Q8_0, Q6_K, Q4_K, Q4_1 and Q4_0"

#endif
