/*
 * Maps tensors of the graph to stored tensors of a checkpoint. Graph names are canonical
 * (Transformers' names for Llama). A tensor of the graph is a view (a range of rows) of a stored
 * tensor. Used by checkpoint.c.
 */
#ifndef MGL_IMPORTER_NAMING_H
#define MGL_IMPORTER_NAMING_H

#include "importer/config.h"
#include "importer/safetensors.h"

/* A tensor of the graph as rows of a stored tensor. For rank 1, each element is a row. */
typedef struct mgl_view {
    int stored;           /* index in the files; -1: missing */
    int64_t row;          /* first row */
    int64_t total;        /* rows of the whole stored tensor */
    bool wide;            /* rank 1: stored as F64, read as F32 */
    int32_t interleave;   /* 0, or head_dim: the rows of each head are stored as 0, head_dim / 2,
                           * 1, head_dim / 2 + 1, ... of the graph's rows */
    const int32_t *order; /* NULL, or (rows), not owned: row i of the view is stored as row
                           * order[i] of its rows */
} mgl_view;

/* Returns the stored row of row `row` of a view. */
int64_t mgl_view_row(const mgl_view *view, int64_t row);

/* The naming scheme of one checkpoint. */
typedef struct mgl_naming {
    const mgl_config *config;
    const mgl_safetensors *files;
    bool canonical;          /* a compiled model: the graph's own names and order */
    bool gguf;               /* the names of GGUF files; the fields below are unused */
    bool renamed;            /* the family's own names instead of Llama's */
    const char *body, *head; /* replace "model." and "lm_head." */
} mgl_naming;

/* Finds the naming scheme of the files for a model of this config; Llama's if none fits. */
mgl_naming mgl_naming_find(const mgl_config *config, const mgl_safetensors *files);

/* Writes the stored name of a tensor of the graph: at most 159 bytes. */
void mgl_naming_name(const mgl_naming *naming, const char *name, char out[160]);

/* Returns the view of a tensor of the graph. */
mgl_view mgl_naming_view(const mgl_naming *naming, const mgl_tensor *tensor);

/* Returns whether a stored tensor belongs to a wrapper but not to its language model. */
bool mgl_naming_is_outside(const mgl_naming *naming, const char *stored);

#endif
