/* Quantizes the matrices of a random model (fixture.h), for tests of scaled weight formats. */
#ifndef MGL_TESTS_VM_SCALED_MODEL_H
#define MGL_TESTS_VM_SCALED_MODEL_H

#include "fixture.h"

/* Rounds the matrices of a graph to a scaled format, with scales and zero points that differ from
 * group to group. `visible`: their tensors are quantized; else they are f32 tensors with the
 * decoded weights. `embedding`: the embedding too. The graph still owns all that it reads from. */
void quantize_matrices(mgl_graph *graph, mgl_weight_format format, bool visible, bool embedding);

/* Reorders the columns of the quantized matrices that have groups of columns. Each matrix gets
 * another column map; `pairs`: except that gate and up have the same one. Call quantize_matrices
 * first. */
void reorder_matrices(mgl_graph *graph, bool pairs);

#endif
