/* The list of number formats, for base/dtype.h and for device code. Plain C without includes,
 * because NVRTC compiles it too. */
#ifndef MGL_BASE_DTYPES_H
#define MGL_BASE_DTYPES_H

/*  enum  name   bytes  safetensors' name */
#define MGL_DTYPES(X)                                                                              \
    X(F32, "f32", 4, "F32")                                                                        \
    X(BF16, "bf16", 2, "BF16")                                                                     \
    X(F16, "f16", 2, "F16")                                                                        \
    X(I32, "i32", 4, "I32")

#endif
