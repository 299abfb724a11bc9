/*
 * Compares the graph of a checkpoint with the stored tensors, and binds each tensor of the graph to
 * a stored tensor. Used by checkpoint.c.
 */
#ifndef MGL_IMPORTER_COMPARE_H
#define MGL_IMPORTER_COMPARE_H

#include "importer/quantized/bind.h"

typedef struct mgl_comparison {
    mgl_graph *graph;
    const mgl_safetensors *files;
    const mgl_naming *naming;
    mgl_view *views; /* (graph tensor_count) */
    bool *used;      /* (stored tensors) */
    mgl_reasons *reasons;
    mgl_quantized *quantized; /* (graph tensor_count) */
    mgl_binder binder;
} mgl_comparison;

/* Fills the views, the formats and dtypes of the graph's tensors, and `used`. Everything that is
 * not supported becomes a reason. Returns the number of stored tensors that are not used and
 * harmless. */
int mgl_compare_tensors(mgl_comparison *comparison);

#endif
