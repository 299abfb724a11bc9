/*
 * Translation unit of the benchmark's kernels: synthetic weights (fill.cuh), the bandwidth stream
 * (stream.cuh), the baseline's kernels besides cuBLAS (attend.cuh, baseline.cuh, prompt.cuh), and
 * the f32 reference (reference.cuh). eval/device.c compiles it with NVRTC.
 *
 * The host defines the constants MGL_HEAD_DIM and MGL_GROUP (query heads per kv head).
 */
#include "eval/cuda/attend.cuh"
#include "eval/cuda/baseline.cuh"
#include "eval/cuda/fill.cuh"
#include "eval/cuda/prompt.cuh"
#include "eval/cuda/reference.cuh"
#include "eval/cuda/stream.cuh"
