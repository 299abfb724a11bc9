/* The benchmark's device sources, embedded when the library is built (vm/cuda/sources.cmake writes
 * the table). The first is the translation unit; the others are its includes. */
#ifndef MGL_EVAL_SOURCES_H
#define MGL_EVAL_SOURCES_H

#include "vm/cuda/sources.h"

extern const mgl_cuda_source mgl_bench_sources[];
extern const int mgl_bench_source_count;

#endif
