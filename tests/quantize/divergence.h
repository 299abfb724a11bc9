/*
 * Compares two models in f32 with the forward pass of the calibration: log-likelihood of texts, and
 * the KL divergence of the second model from the first.
 */
#ifndef MGL_TESTS_QUANTIZE_DIVERGENCE_H
#define MGL_TESTS_QUANTIZE_DIVERGENCE_H

#include "importer/graph.h"
#include "quantize/calibrate/blas.h"

/* A model with all of its weights in f32. */
typedef struct whole_model {
    const mgl_graph *graph;
    float **weights; /* owned (tensor_count) */
    int head;        /* the LINEAR node that gives the logits */
    int first;       /* the node after the embedding */
} whole_model;

mgl_status whole_model_load(const mgl_graph *graph, whole_model *out, mgl_error *err);
void whole_model_clear(whole_model *model);

/* Computes the log-softmax (count, vocab) of the logits of a sequence. Release with free. */
mgl_status whole_model_run(const whole_model *model, const mgl_blas *blas, const int32_t *ids,
                           size_t count, float **out, mgl_error *err);

#endif
