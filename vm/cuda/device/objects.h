/*
 * Separate compilation of a kernel: the parts (objects) that NVRTC compiles in parallel and
 * nvJitLink links. An object contains functions that the roles call for a task, or a role. The
 * assembler optimizes all functions of a text together, which takes much longer for many functions
 * than for each alone. Separate objects halve the work of a kernel of two lists, over all
 * processors.
 *
 * MGL_OBJECT is the number of the object that is compiled. If it is not defined, the kernel is one
 * text: without a linker, with a compiler before CUDA 13, for architectures that give PTX, and for
 * programs of one list.
 *
 *     FAR void f();            declares a function that another object calls, out of line; it must
 *                              not be called in its own object, where the compiler would clone it
 *     FAR_OR_INLINE void f()   the same, but inline if the kernel is one text
 *     #if IN_OBJECT(FLASH)     around its definition, which begins as the declaration does
 *     NEAR_OR_INLINE           for a function of one object: inline there, else out of line
 *
 * A far function preserves 10 registers for its caller, fewer than the calling convention does. The
 * loop of the consumers needs no more, and a task's function needs all others. A function with a
 * stack frame waits for the frame in L2 (0.5 us a task). Therefore a far function that runs for
 * each task calls no other far function.
 */
#ifndef MGL_DEVICE_OBJECTS_H
#define MGL_DEVICE_OBJECTS_H

/* In the order of compilation: the object that takes longest comes first. */
#define MGL_OBJECT_ATTENTION  0  /* attention of some rows, all variants */
#define MGL_OBJECT_FLASH      1  /* the second list's attention */
#define MGL_OBJECT_BATCH      2  /* products of some rows */
#define MGL_OBJECT_PANELS     3  /* the second list's products */
#define MGL_OBJECT_CONTROLLER 4  /* the controller role */
#define MGL_OBJECT_SKINNY     5  /* products of a few rows */
#define MGL_OBJECT_EPILOGUE   6  /* the epilogue role, with the loader of activation tiles */
#define MGL_OBJECT_SAMPLE     7  /* sampling and draws */
#define MGL_OBJECT_SMALL_M    8  /* the second list's small-M products (few activation rows) */
#define MGL_OBJECT_SWAP_AB    9  /* of few row groups and more than 32 activation rows */
#define MGL_OBJECT_SMALL_N    10 /* the same in a kernel whose panels use warpgroups */
#define MGL_OBJECT_GENERAL    11 /* products of any rows */
#define MGL_OBJECT_KV_ROUNDS  12 /* attention of one row */
#define MGL_OBJECT_LOADER     13 /* loader and landing warp of a kernel with two lists */
#define MGL_OBJECT_MERGE      14 /* the merge of attention's splits */
#define MGL_OBJECT_DECODE_ROW 15 /* the second list's attention of decode rows */
#define MGL_OBJECT_KERNEL     16 /* the entry, and the loop of the consumers */
#define MGL_OBJECTS           17

#ifdef MGL_OBJECT
#define IN_OBJECT(object) (MGL_OBJECT == MGL_OBJECT_##object)
#define FAR                                                                                        \
    _Pragma("nv_abi preserve_n_data(10) preserve_n_control(1)") extern __device__ __noinline__
#define FAR_OR_INLINE  FAR
#define NEAR_OR_INLINE static __device__ __forceinline__
#else
#define IN_OBJECT(object) 1
#define FAR               static __device__ __noinline__
#define FAR_OR_INLINE     static __device__ __forceinline__
#define NEAR_OR_INLINE    static __device__ __noinline__
#endif

#endif
