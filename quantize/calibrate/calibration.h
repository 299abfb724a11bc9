/*
 * The state of a calibrated quantization, shared by calibrate.c, stage.c and sensitivity.c.
 */
#ifndef MGL_QUANTIZE_CALIBRATE_CALIBRATION_H
#define MGL_QUANTIZE_CALIBRATE_CALIBRATION_H

#include "quantize/calibrate/forward.h"
#include "quantize/calibrate/results.h"

/* A run of nodes between two values of the residual stream: a half of a layer. */
typedef struct mgl_segment {
    int first, last; /* nodes */
    int part;        /* number among the segments with matrices to quantize */
    int *sources;    /* owned (count): the stored tensors of these matrices */
    int count;
} mgl_segment;

typedef struct mgl_calibration {
    const mgl_quantize_plan *plan;
    const mgl_quantize_request *request;
    const mgl_graph *graph;
    const mgl_blas *blas;
    mgl_results *results;
    int threads;
    int *sources;          /* owned (graph node_count): the stored tensor that a LINEAR node's
                            * quantized matrix is part of, or -1 */
    mgl_segment *segments; /* owned (segment_count) */
    int segment_count;
    float **weights;         /* owned (graph tensor_count): of the current segment, or NULL */
    mgl_matrix_codes *codes; /* owned (stored tensors): of the current segment */
    size_t *starts;          /* owned (samples + 1): first token of each sample */
    float *states;           /* owned (tokens, hidden): the input of the current segment */
    float *inputs;           /* owned (tokens of a batch, widest): inputs of a stage */
    float *hessian;          /* owned (widest, widest) */
    float **scratch;         /* owned (threads) */
    size_t scratch_floats;
    mgl_forward forward;
    bool measures;        /* the sensitivities are measured; nothing is quantized */
    double *errors;       /* (stored tensors, 3), when measuring: the squared output
                           * error with the format of the layers and with 8 bits, and the
                           * squared output; then the number of measured parts */
    uint64_t done, total; /* bytes of matrices */
} mgl_calibration;

enum { MGL_BATCH_TOKENS = 2048 }; /* samples are added to a batch until it has so many tokens */

/* Adds to the progress, and checks the time limit: each run finishes at least one part. */
mgl_status mgl_calibration_step(mgl_calibration *c, uint64_t bytes, mgl_error *err);

/* stage.c: quantizes (or measures) the matrices of a segment whose input is the value of node
 * `input`. The codes go to c->codes; c->weights become the numbers of the codes. */
mgl_status mgl_calibration_stage(mgl_calibration *c, const mgl_segment *segment, int input,
                                 mgl_error *err);
/* Returns the floats of scratch of a thread that a stage needs for a matrix. */
size_t mgl_calibration_rows_scratch(int64_t rows, int64_t columns, mgl_weight_format format);

/* The first sample after the batch that starts with sample `first`. */
size_t mgl_calibration_batch(const mgl_calibration *c, size_t first);

#endif
