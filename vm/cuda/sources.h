/* The kernel's sources as they were when the library was built, with their comments: made by
 * sources.cmake. The first is the translation unit, the others are what it includes, under the
 * names by which it does. Keys and digests are taken of their canonical texts (canonical.h). */
#ifndef MGL_VM_CUDA_SOURCES_H
#define MGL_VM_CUDA_SOURCES_H

typedef struct mgl_cuda_source {
    const char *name;
    const unsigned char *text; /* 0-terminated */
} mgl_cuda_source;

extern const mgl_cuda_source mgl_cuda_sources[];
extern const int mgl_cuda_source_count;

#endif
