/*
 * Declares the checks of a traced launch with two lists, on a GPU (test_cuda_trace.c) and in the
 * emulator (tests/emulator).
 */
#ifndef MGL_TESTS_VM_CUDA_TRACE_CHECKS_H
#define MGL_TESTS_VM_CUDA_TRACE_CHECKS_H

#include "tests/vm/cuda/cuda_support.h"

/* A prompt of 40 tokens by the second list of a program whose first one has one row, then a few
 * tokens by that: each epoch leaves the events of its own list's tasks, whether the trace has room
 * for all epochs or for the last ones, and the tokens are those of a kernel without a trace. The ns
 * that panels waited for activations, in all. */
uint64_t check_traced_lists(const mgl_geometry *geometry, const device_options *options);

#endif
