/* Quantizes the matrices of a random model (fixture.h), for tests of scaled weight formats. */
#ifndef MGL_TESTS_VM_SCALED_MODEL_H
#define MGL_TESTS_VM_SCALED_MODEL_H

#include "fixture.h"

/* Rounds the matrices of a graph to a scaled format, with scales and zero points that differ from
 * group to group. `visible`: their tensors are quantized; else they are f32 tensors with the
 * decoded weights. `embedding`: the embedding too. The graph still owns all that it reads from. */
void quantize_matrices(mgl_graph *graph, mgl_weight_format format, bool visible, bool embedding);

/* Gives the quantized matrices with groups of columns orders of their columns that differ from
 * matrix to matrix. `pairs`: gate and up have the same order. */
void reorder_matrices(mgl_graph *graph, bool pairs);

#endif
