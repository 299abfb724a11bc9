/* Run-time binding of cuBLAS: the functions that the baseline calls. Names and semantics follow the
 * cuBLAS reference; the declarations are our own. */
#ifndef MGL_EVAL_CUBLAS_H
#define MGL_EVAL_CUBLAS_H

#include "base/error.h"

/*  member, symbol, arguments; all return cublasStatus_t */
#define MGL_CUBLAS_FUNCTIONS(X)                                                                    \
    X(create, "cublasCreate_v2", (void **handle))                                                  \
    X(destroy, "cublasDestroy_v2", (void *handle))                                                 \
    X(version, "cublasGetVersion_v2", (void *handle, int *version))                                \
    X(set_stream, "cublasSetStream_v2", (void *handle, void *stream))                              \
    X(set_workspace, "cublasSetWorkspace_v2", (void *handle, void *workspace, size_t bytes))       \
    X(gemm, "cublasGemmEx",                                                                        \
      (void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,     \
       const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta,   \
       void *c, int c_type, int ldc, int compute_type, int algorithm))

typedef struct mgl_cublas {
#define MGL_X(member, symbol, arguments) int(*member) arguments;
    MGL_CUBLAS_FUNCTIONS(MGL_X)
#undef MGL_X
} mgl_cublas;

enum {
    MGL_CUBLAS_PLAIN = 0,
    MGL_CUBLAS_TRANSPOSED = 1,
    MGL_CUBLAS_F32 = 0,
    MGL_CUBLAS_BF16 = 14,
    MGL_CUBLAS_COMPUTE_F32 = 68,
    MGL_CUBLAS_ANY_ALGORITHM = -1
};

/* Opens the table on first use and keeps it. Searches $MEGALITH_CUBLAS (a file), $CUDA_HOME/lib64,
 * the loader's path, and /usr/local/cuda/lib64. MGL_DEVICE: not found. Not thread-safe. */
mgl_status mgl_cublas_open(const mgl_cublas **out, mgl_error *err);

/* For tests: substitutes a table; NULL restores the library. */
void mgl_cublas_override(const mgl_cublas *table);

/* MGL_OK for result 0; otherwise MGL_DEVICE with `what`. */
mgl_status mgl_cublas_check(int result, const char *what, mgl_error *err);

#endif
