/*
 * nvJitLink, opened at run time: it assembles PTX to machine code without a device, names the line
 * of an error, and says how many registers a kernel takes. The declarations are our own; names and
 * meanings are those of the nvJitLink documentation of CUDA 12 and 13.
 */
#ifndef MGL_AUTOTUNE_PTX_JITLINK_H
#define MGL_AUTOTUNE_PTX_JITLINK_H

#include "base/error.h"

/*  member, symbol, arguments; all return nvJitLinkResult */
#define MGL_JITLINK_FUNCTIONS(X)                                                                   \
    X(create, "nvJitLinkCreate", (void **link, uint32_t count, const char **options))              \
    X(destroy, "nvJitLinkDestroy", (void **link))                                                  \
    X(add, "nvJitLinkAddData",                                                                     \
      (void *link, int kind, const void *data, size_t bytes, const char *name))                    \
    X(complete, "nvJitLinkComplete", (void *link))                                                 \
    X(cubin_size, "nvJitLinkGetLinkedCubinSize", (void *link, size_t *bytes))                      \
    X(cubin, "nvJitLinkGetLinkedCubin", (void *link, void *cubin))                                 \
    X(error_size, "nvJitLinkGetErrorLogSize", (void *link, size_t *bytes))                         \
    X(error_log, "nvJitLinkGetErrorLog", (void *link, char *log))                                  \
    X(info_size, "nvJitLinkGetInfoLogSize", (void *link, size_t *bytes))                           \
    X(info_log, "nvJitLinkGetInfoLog", (void *link, char *log))

typedef struct mgl_jitlink {
#define MGL_X(member, symbol, arguments) int(*member) arguments;
    MGL_JITLINK_FUNCTIONS(MGL_X)
#undef MGL_X
} mgl_jitlink;

/* Opened on first use and kept. Not found: MGL_DEVICE, saying where was looked and what to do. It
 * is looked for where the loader looks, then in $CUDA_HOME/lib64 and /usr/local/cuda/lib64. */
mgl_status mgl_jitlink_open(const mgl_jitlink **out, mgl_error *err);

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
