/*
 * PTX made machine code by nvJitLink (vm/cuda/driver.h), without a device: it names the line of an
 * error, and says how many registers a kernel takes.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_ASSEMBLE_H
#define MGL_AUTOTUNE_KERNELS_PTX_ASSEMBLE_H

#include "base/error.h"

typedef struct mgl_ptx_assembled {
    bool good;
    int line;             /* of the first error; 0: it names none */
    char message[256];    /* of the assembler */
    int registers;        /* the most of an entry; 0: not said */
    int64_t spill_bytes;  /* stores and loads, of all functions */
    int64_t shared_bytes; /* static, the most of an entry */
    char *cubin;          /* owned */
    size_t cubin_bytes;
} mgl_ptx_assembled;

/* `arch` is "sm_90a". What the assembler refuses is no failure: `good` tells. */
mgl_status mgl_ptx_assemble(const char *ptx, size_t length, const char *arch,
                            mgl_ptx_assembled *out, mgl_error *err);
void mgl_ptx_assembled_clear(mgl_ptx_assembled *assembled);

#endif
