/*
 * The benchmark's kernels, compiled as one: what makes the weights, the stream that everything is
 * compared with, the baseline's own kernels (its matrix products are cuBLAS), and the f32
 * reference.
 *
 * Constants that the host defines: MGL_HEAD_DIM, MGL_GROUP (heads of one kv head).
 */
#include "eval/cuda/attend.cuh"
#include "eval/cuda/baseline.cuh"
#include "eval/cuda/fill.cuh"
#include "eval/cuda/prompt.cuh"
#include "eval/cuda/reference.cuh"
#include "eval/cuda/stream.cuh"
