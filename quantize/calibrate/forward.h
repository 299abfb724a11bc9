/*
 * A forward pass in f32 on the CPU, node by node over the graph, for calibration. One sample is one
 * sequence from position 0. Products are those of OpenBLAS. Everything that the graph can express
 * is supported. Called by layers.c.
 */
#ifndef MGL_QUANTIZE_CALIBRATE_FORWARD_H
#define MGL_QUANTIZE_CALIBRATE_FORWARD_H

#include "importer/graph.h"
#include "quantize/calibrate/blas.h"

typedef struct mgl_forward {
    const mgl_blas *blas;
    const mgl_graph *graph;
    float *const *weights; /* (graph tensor_count): (rows, cols) of the tensors of the nodes that
                            * are computed; the embedding may be NULL */
    float *rope;           /* owned (length, head_dim): the cosines, then the sines of a position */
    int length;            /* tokens of the longest sample */
} mgl_forward;

/* Makes the rope table for samples of up to `length` tokens. Release with mgl_forward_clear. */
mgl_status mgl_forward_make(const mgl_blas *blas, const mgl_graph *graph, float *const *weights,
                            int length, mgl_forward *out, mgl_error *err);
void mgl_forward_clear(mgl_forward *forward);

/* Returns the floats of scratch that mgl_forward_run needs for nodes from `first` to `last`. */
size_t mgl_forward_scratch(const mgl_forward *forward, int first, int last);

/* Computes node `last` (rows, width) of a sample of `rows` tokens. `input` (rows, width) is the
 * value of node `first` - 1, the only value of earlier nodes that the nodes from `first` to `last`
 * use. Only the nodes that `last` depends on are computed. *out points into the scratch. */
mgl_status mgl_forward_run(const mgl_forward *forward, int first, int last, const float *input,
                           int rows, float *scratch, const float **out, mgl_error *err);

/* Reads the embeddings (count, hidden) of tokens. */
mgl_status mgl_forward_embed(const mgl_graph *graph, const int32_t *ids, size_t count, float *to,
                             mgl_error *err);

#endif
