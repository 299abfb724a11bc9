/* Classifies PTX instructions by mnemonic, and decodes the mnemonics of memory instructions: state
 * space, width, cache hint, memory order. The fact collector and the scan use it. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_CLASSES_H
#define MGL_AUTOTUNE_KERNELS_PTX_CLASSES_H

#include "autotune/kernels/ptx/ptx.h"
#include "base/text.h"

/* X(name, short form in block lines) */
#define MGL_PTX_CLASSES(X)                                                                         \
    X(int, "i")                                                                                    \
    X(float, "f")                                                                                  \
    X(fma, "fma")                                                                                  \
    X(special, "sp")                                                                               \
    X(move, "mv")                                                                                  \
    X(compare, "cmp")                                                                              \
    X(convert, "cvt")                                                                              \
    X(load, "ld")                                                                                  \
    X(store, "st")                                                                                 \
    X(atomic, "at")                                                                                \
    X(async, "as")                                                                                 \
    X(matrix, "mma")                                                                               \
    X(barrier, "bar")                                                                              \
    X(shuffle, "sh")                                                                               \
    X(branch, "br")                                                                                \
    X(other, "o")
typedef enum mgl_ptx_class {
#define MGL_X(name, code) MGL_PTX_CLASS_##name,
    MGL_PTX_CLASSES(MGL_X)
#undef MGL_X
        MGL_PTX_CLASS_COUNT
} mgl_ptx_class;
const char *mgl_ptx_class_name(mgl_ptx_class class);
const char *mgl_ptx_class_code(mgl_ptx_class class);
mgl_ptx_class mgl_ptx_classify(const mgl_ptx_instruction *instruction);

/* For ld, st, atom and red (sections 9.7.9 and 9.7.13). */
mgl_ptx_space mgl_ptx_access_space(const mgl_ptx_instruction *instruction);
int mgl_ptx_access_vector(const mgl_ptx_instruction *instruction); /* elements: 1, 2, 4, 8 */
int mgl_ptx_access_bytes(const mgl_ptx_instruction *instruction);  /* per thread; 0: unknown */
/* For example "nc+L1::no_allocate"; "none" without a hint. */
void mgl_ptx_access_hint(const mgl_ptx_instruction *instruction, mgl_text *out);
/* For example "relaxed.gpu"; "weak" without an order. */
void mgl_ptx_access_order(const mgl_ptx_instruction *instruction, mgl_text *out);

#endif
