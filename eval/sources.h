/* The benchmark's device sources as they were when the library was built: made by
 * vm/cuda/sources.cmake. The first is the translation unit, the others are what it includes. */
#ifndef MGL_EVAL_SOURCES_H
#define MGL_EVAL_SOURCES_H

#include "vm/cuda/sources.h"

extern const mgl_cuda_source mgl_bench_sources[];
extern const int mgl_bench_source_count;

#endif
