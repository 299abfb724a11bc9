/* The kernel's sources, embedded when the library is built, with their comments (sources.cmake
 * writes the table). The first is the translation unit. The others are its includes, under the
 * names in its #include lines. Keys and digests use their canonical texts (canonical.h). */
#ifndef MGL_VM_CUDA_SOURCES_H
#define MGL_VM_CUDA_SOURCES_H

typedef struct mgl_cuda_source {
    const char *name;
    const unsigned char *text; /* 0-terminated */
} mgl_cuda_source;

extern const mgl_cuda_source mgl_cuda_sources[];
extern const int mgl_cuda_source_count;

#endif
