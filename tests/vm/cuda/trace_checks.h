/*
 * Declares the checks of a traced launch with two lists, on a GPU (test_cuda_trace.c) and in the
 * emulator (tests/emulator).
 */
#ifndef MGL_TESTS_VM_CUDA_TRACE_CHECKS_H
#define MGL_TESTS_VM_CUDA_TRACE_CHECKS_H

#include "tests/vm/cuda/cuda_support.h"

/* Checks the trace of a prompt of 40 tokens (second list; the first one has one row) and a few
 * generated tokens. Each epoch has the events of its own list's tasks, whether the trace keeps all
 * epochs or the last ones, and the tokens equal those without a trace. Returns the total ns that
 * panels waited for activations. */
uint64_t check_traced_lists(const mgl_geometry *geometry, const device_options *options);

#endif
