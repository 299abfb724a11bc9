/*
 * Selects the product set (products.h) for this CPU, and implements the plain C set, which is the
 * reference in tests of the others. The plain set unpacks a row group to f32 and calls mgl_dot.
 */
#include "vm/cpu/products.h"

#include <string.h>

#include "instructions/reference/reference.h"
#include "vm/cpu/products_sets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* ---- plain C -------------------------------------------------------------------------------- */

/* Unpacks the 8 rows of a group, one after the other. */
static void unpack_group(const mgl_matrix *w, int64_t group, float *to)
{
    const char *from = w->tape + (size_t)group * w->group_stride;
    int64_t columns = mgl_weight_code_columns(w->format.code), width = w->blocks * columns;
    for (int b = 0; b < w->blocks; b++) {
        const char *block = from + (int64_t)(w->place ? w->place[b] : b) * MGL_BLOCK_BYTES;
        for (int i = 0; i < MGL_ROW_GROUP; i++) {
            const char *row = block + (ptrdiff_t)i * MGL_BLOCK_ROW_BYTES;
            float *at = to + i * width + b * columns;
            if (mgl_weight_format_is_scaled(w->format))
                mgl_tape_decode(w->format, at, row, from + w->scales, w->groups, b, i);
            else
                mgl_weight_code_decode(w->format.code, at, row, (size_t)columns);
        }
    }
}

static void multiply_plain(const mgl_matrix *w, int64_t group_lo, int64_t group_hi, int64_t outputs,
                           const float *x, int64_t x_stride, int rows, float *to, int64_t to_stride,
                           float *scratch)
{
    int64_t width = (int64_t)w->blocks * mgl_weight_code_columns(w->format.code);
    for (int64_t group = group_lo; group < group_hi; group++) {
        int64_t first = group * MGL_ROW_GROUP;
        unpack_group(w, group, scratch);
        for (int64_t i = 0; i < MGL_ROW_GROUP && first + i < outputs; i++)
            for (int64_t r = 0; r < rows; r++)
                to[r * to_stride + first + i] =
                    mgl_dot(x + r * x_stride, scratch + i * width, width);
    }
}

static void add_scaled_plain(float *to, float scale, const float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += scale * v[i];
}

static const mgl_products plain = {"plain", multiply_plain, mgl_dot, add_scaled_plain};

/* ---- selection ------------------------------------------------------------------------------ */

#if defined(__x86_64__)
/* __builtin_cpu_supports also checks that the operating system saves the registers. Some compilers
 * do not accept F16C there. */
static bool can_avx2(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool can_avx512(void)
{
    return can_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool can_avx512vbmi(void)
{
    return can_avx512() && __builtin_cpu_supports("avx512vbmi");
}
#elif defined(__aarch64__)
static bool can_neon(void)
{
    return true; /* NEON is mandatory on aarch64 */
}
#endif

static const struct {
    const mgl_products *set;
    bool (*can)(void);
} sets[] = {
#define MGL_X(name) {&mgl_products_##name, can_##name},
    MGL_PRODUCTS_SETS(MGL_X)
#undef MGL_X
        {&plain, NULL}};

enum { SET_COUNT = sizeof sets / sizeof *sets };

mgl_products mgl_products_get(void)
{
    int i = 0;
    while (sets[i].can && !sets[i].can())
        i++;
    return *sets[i].set;
}

bool mgl_products_find(const char *name, mgl_products *out)
{
    for (int i = 0; i < SET_COUNT; i++)
        if (!strcmp(sets[i].set->name, name) && (!sets[i].can || sets[i].can()))
            return *out = *sets[i].set, true;
    return false;
}

/* The plain set needs one unpacked row group. The vector sets need a panel and the partial sums. */
size_t mgl_products_scratch(int blocks, mgl_weight_format format)
{
    size_t group = (size_t)blocks * (size_t)mgl_weight_code_columns(format.code) * MGL_ROW_GROUP;
    size_t run = MGL_ROW_GROUP * (MGL_PRODUCTS_RUN + MGL_PRODUCTS_ROWS * MGL_PRODUCTS_SUMS) +
                 MGL_BLOCK_ROW_BYTES / sizeof(float); /* slack for alignment */
    return group > run ? group : run;
}
