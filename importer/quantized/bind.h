/*
 * Finds the stored tensors of each quantized matrix of a graph. The stored tensors decide how a
 * matrix is quantized; what contradicts the declaration (quantization.h) and could change the
 * weights is rejected. Used by checkpoint.c.
 */
#ifndef MGL_IMPORTER_QUANTIZED_BIND_H
#define MGL_IMPORTER_QUANTIZED_BIND_H

#include "importer/gguf/blocks.h"
#include "importer/naming.h"
#include "importer/quantized/quantization.h"

/* How the codes of a matrix (N rows, K columns) of b bits are packed. */
typedef enum mgl_code_packing {
    MGL_CODES_BYTES,   /* [N, K]: a byte a code */
    MGL_CODES_NIBBLES, /* [N, K / 8] words: 4 bits, along K */
    MGL_CODES_GPTQ,    /* [K b / 32, N] words: along K */
    MGL_CODES_AWQ,     /* [K, N / 8] words: along N, in AWQ's order */
    MGL_CODES_BLOCKS   /* [N, K / b] blocks of b codes with their scales: GGUF */
} mgl_code_packing;

/* How the zero points are packed: G groups a row. */
typedef enum mgl_zero_packing {
    MGL_ZEROS_NONE,  /* every zero point is 2^(b - 1) */
    MGL_ZEROS_BYTES, /* [N, G]: signed bytes, without the offset 2^(b - 1) */
    MGL_ZEROS_ROWS,  /* [N b / 32, G] words: along N */
    MGL_ZEROS_GPTQ,  /* [G, N b / 32] words: along N */
    MGL_ZEROS_AWQ    /* [G, N / 8] words: along N, in AWQ's order */
} mgl_zero_packing;

/* A quantized matrix of the graph, as stored. */
typedef struct mgl_quantized {
    mgl_weight_format format;
    mgl_view view; /* of the rows of the stored matrix */
    int64_t columns, groups;
    int codes, scales, zeros; /* stored tensors; zeros is -1 if there are none */
    mgl_code_packing packing;
    const mgl_gguf_blocks *blocks; /* MGL_CODES_BLOCKS */
    bool is_signed;                /* MGL_CODES_BYTES: two's complement integers */
    bool scales_by_group;          /* scales are [G, N]; else [N / scale_rows, G] */
    int64_t scale_rows;            /* stored rows that share a row of scales */
    bool scales_are_powers;        /* scales are F8_E8M0: 2^(byte - 127) */
    mgl_zero_packing zero_packing;
    int zero_add;   /* is added to a stored zero point, modulo 2^b */
    int32_t *order; /* owned (columns): column i of the codes is stored as column order[i]; NULL:
                       the columns are not reordered (order.h) */
    bool relabeled; /* the inputs of the matrix have the same order, so column i of the codes is
                       column i of the graph's tensor */
} mgl_quantized;

/* The state of binding a checkpoint. */
typedef struct mgl_binder {
    const mgl_safetensors *files;
    const mgl_naming *naming;
    const mgl_quantization *quantization;
    bool *used;      /* (stored tensors): a part of the graph */
    bool *companion; /* (stored tensors): belongs to a matrix and is not needed */
    size_t failures; /* matrices that were rejected; the first one: */
    char where[256], message[512];
    mgl_status status; /* a failure that is not a reason */
    mgl_error *err;
} mgl_binder;

typedef enum mgl_binding {
    MGL_BINDING_PLAIN,     /* not quantized, or not stored */
    MGL_BINDING_QUANTIZED, /* *out is filled */
    MGL_BINDING_REJECTED   /* `failures` has counted it */
} mgl_binding;

/* Binds a matrix of the graph. *view is the view of its plain tensor. */
mgl_binding mgl_quantized_bind(mgl_binder *b, const mgl_tensor *tensor, const mgl_view *view,
                               mgl_quantized *out);

/* Marks tensors beside the head of a model without a head of its own, such as scales, as
 * companions, if the config excludes the head. */
void mgl_quantized_skip_head(mgl_binder *b);

/* Adds the reason against the rejected matrices, if there are any. */
void mgl_quantized_report(const mgl_binder *b, mgl_reasons *reasons);

/* Returns the index of a stored tensor that holds the codes of the matrix whose plain tensor would
 * have the stored name `name`, or -1. */
int mgl_quantized_find(const mgl_safetensors *files, const char *name);

#endif
