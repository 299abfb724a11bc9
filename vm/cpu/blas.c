/*
 * Which library multiplies is decided once, at the first machine: the first of a few names that
 * opens and has CBLAS's sgemm. dlopen keeps the build free of a dependency, and a machine without
 * OpenBLAS runs mgl_dot.
 */
#include "vm/cpu/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "instructions/reference.h"

/* From the CBLAS interface: row-major, as is, transposed. */
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

enum { BLAS_ROWS = 8 }; /* from which on sgemm is faster than mgl_dot */

typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);
typedef void set_threads_fn(int threads);

static sgemm_fn *sgemm;

static void matmul_plain(const float *x, int x_stride, const float *w, float *to, int to_stride,
                         int rows, int inputs, int outputs, bool add)
{
    for (ptrdiff_t i = 0; i < outputs; i++) {
        for (ptrdiff_t r = 0; r < rows; r++) {
            float *at = to + r * to_stride + i;
            float sum = mgl_dot(x + r * x_stride, w + i * inputs, inputs);
            *at = add ? *at + sum : sum;
        }
    }
}

static void matmul_blas(const float *x, int x_stride, const float *w, float *to, int to_stride,
                        int rows, int inputs, int outputs, bool add)
{
    float beta = add ? 1.0f : 0.0f;
    if (rows < BLAS_ROWS)
        matmul_plain(x, x_stride, w, to, to_stride, rows, inputs, outputs, add);
    else
        sgemm(ROW_MAJOR, AS_IS, TRANSPOSED, rows, outputs, inputs, 1.0f, x, x_stride, w, inputs,
              beta, to, to_stride);
}

/* A function of a library; POSIX lets an object pointer become one. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    *(void **)function = symbol;
    return symbol != NULL;
}

static void open_library(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libblas.so.3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        set_threads_fn *set_threads;
        if (!library)
            continue;
        if (find(library, "cblas_sgemm", &sgemm)) {
            if (find(library, "openblas_set_num_threads", &set_threads))
                set_threads(1);
            return;
        }
        dlclose(library);
    }
}

mgl_blas mgl_blas_plain(void)
{
    return (mgl_blas){"plain C", matmul_plain};
}

mgl_blas mgl_blas_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return sgemm ? (mgl_blas){"OpenBLAS", matmul_blas} : mgl_blas_plain();
}
