/*
 * Assembles PTX to machine code with nvJitLink (vm/cuda/driver.h), without a device. Output: the
 * cubin, the counts of registers, spills and shared memory, or the line and message of the first
 * error. `megalith kernel ptx` (cli/kernel/ptx.c) calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_ASSEMBLE_H
#define MGL_AUTOTUNE_KERNELS_PTX_ASSEMBLE_H

#include "base/error.h"

typedef struct mgl_ptx_assembled {
    bool good;
    int line;             /* of the first error; 0: unknown */
    char message[256];    /* message of the assembler */
    int registers;        /* maximum over the entries; 0: unknown */
    int64_t spill_bytes;  /* stores and loads, sum over all functions */
    int64_t shared_bytes; /* static, maximum over the entries */
    char *cubin;          /* owned */
    size_t cubin_bytes;
} mgl_ptx_assembled;

/* `arch` is for example "sm_90a". Rejected PTX is not a failure: it sets `good` to false. */
mgl_status mgl_ptx_assemble(const char *ptx, size_t length, const char *arch,
                            mgl_ptx_assembled *out, mgl_error *err);
void mgl_ptx_assembled_clear(mgl_ptx_assembled *assembled);

#endif
