/* Lists the vector product sets compiled for this architecture, best first. Each is implemented in
 * the file of its name; products.c selects one. */
#ifndef MGL_VM_CPU_PRODUCTS_SETS_H
#define MGL_VM_CPU_PRODUCTS_SETS_H

#include "vm/cpu/products.h"

#if defined(__x86_64__)
#define MGL_PRODUCTS_SETS(X) X(avx512vbmi) X(avx512) X(avx2)
#elif defined(__aarch64__)
#define MGL_PRODUCTS_SETS(X) X(neon)
#else
#define MGL_PRODUCTS_SETS(X)
#endif

#define MGL_X(name) extern const mgl_products mgl_products_##name;
MGL_PRODUCTS_SETS(MGL_X)
#undef MGL_X

enum {
    MGL_PRODUCTS_SUMS = 16, /* partial sums per output */
    MGL_PRODUCTS_RUN = 640, /* columns that a vector set processes at once: 20 KiB of f32
                               weights */
    MGL_TAPE_RUN = 8,       /* maximum blocks of a run that is read from a tape */
    MGL_PRODUCTS_ROWS = 66  /* rows of x that a vector set processes at once */
};

/* Register tile of a pass: the partial sums of `weights` weight rows with `rows` rows of x, in
 * `parts` vectors of the 16 partial sums each. */
struct tile {
    int weights, parts, rows;
};

/* The f32 2^23. Its lower bits hold an integer that is added to it. */
#define MGL_BYTE_BASE 0x1p23f

/* The scales of a group of columns, times unit_of(code) (products_scaled.h), and its zero points,
 * plus MGL_BYTE_BASE; or its minimums in place of the zero points. */
struct scale_group {
    float scale[MGL_ROW_GROUP], zero[MGL_ROW_GROUP];
};

/* For functions with arguments that must be compile-time constants. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Whether codes have 4 bits, which all formats place alike. */
ALWAYS_INLINE bool is_nibble(mgl_weight_code code)
{
    return code == MGL_CODE_INT4 || code == MGL_CODE_UINT4;
}

#endif
