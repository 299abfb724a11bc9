/* The vector sets that are compiled for this architecture, the best first, each in the file of its
 * name. */
#ifndef MGL_VM_CPU_PRODUCTS_SETS_H
#define MGL_VM_CPU_PRODUCTS_SETS_H

#include "vm/cpu/products.h"

#if defined(__x86_64__)
#define MGL_PRODUCTS_SETS(X) X(avx512) X(avx2)
#elif defined(__aarch64__)
#define MGL_PRODUCTS_SETS(X) X(neon)
#else
#define MGL_PRODUCTS_SETS(X)
#endif

#define MGL_X(name) extern const mgl_products mgl_products_##name;
MGL_PRODUCTS_SETS(MGL_X)
#undef MGL_X

enum {
    MGL_PRODUCTS_SUMS = 16, /* partial sums of an output */
    MGL_PRODUCTS_RUN = 640, /* columns that a vector set works on at once: 20 KiB of f32 weights */
    MGL_PRODUCTS_ROWS = 66  /* rows of x that it works on at once */
};

/* What a pass of a vector set keeps in registers: the partial sums of some rows of weights with
 * rows of x, all 16 or some vectors of them. */
struct tile {
    int weights, parts, rows;
};

#endif
