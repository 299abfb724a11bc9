#include "vm/cpu/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "instructions/reference.h"

/* From the CBLAS interface: row-major, as is, transposed. */
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

typedef void sgemv_fn(int order, int transpose, int m, int n, float alpha, const float *a, int lda,
                      const float *x, int incx, float beta, float *y, int incy);
typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);
typedef void set_threads_fn(int threads);

static sgemv_fn *sgemv;
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
    if (rows == 1)
        sgemv(ROW_MAJOR, AS_IS, outputs, inputs, 1.0f, w, inputs, x, 1, beta, to, 1);
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
        if (find(library, "cblas_sgemv", &sgemv) && find(library, "cblas_sgemm", &sgemm)) {
            if (find(library, "openblas_set_num_threads", &set_threads))
                set_threads(1);
            return;
        }
        dlclose(library);
        sgemv = NULL;
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
    return sgemv && sgemm ? (mgl_blas){"OpenBLAS", matmul_blas} : mgl_blas_plain();
}
