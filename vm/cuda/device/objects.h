/*
 * The objects of a kernel: parts that are compiled by themselves, side by side, and linked. An
 * object has functions that the roles call for a task, or a role. The assembler takes all functions
 * of a text together, and for many of them much longer than for each by itself: of a kernel of two
 * lists half of the work is left, for all processors.
 *
 * MGL_OBJECT is the number of the object at hand; where it is not defined, the kernel is one text:
 * so without a linker, with a compiler before CUDA 13, for architectures that give PTX, and for
 * programs of one list.
 *
 *     FAR void f();            declares a function that another object calls, out of line; it must
 *                              not be called in its own, where the compiler would make two of it
 *     FAR_OR_INLINE void f()   the same, but in line where the kernel is one text
 *     #if IN_OBJECT(FLASH)     around its definition, which begins as the declaration does
 *     NEAR_OR_INLINE           of a function of one object: in line there, else out of line
 *
 * A far function keeps 10 registers for its caller, few of what the calling convention has: the
 * consumers' loop needs no more, and a task's function wants all. What has a stack frame waits for
 * it in L2 (0.5 us a task): so a far function that runs for each task calls no other.
 */
#ifndef MGL_DEVICE_OBJECTS_H
#define MGL_DEVICE_OBJECTS_H

/* In the order in which they are compiled: what takes longest comes first. */
#define MGL_OBJECT_ATTENTION  0  /* of some rows, all ways */
#define MGL_OBJECT_FLASH      1  /* the second list's attention */
#define MGL_OBJECT_BATCH      2  /* products of some rows */
#define MGL_OBJECT_PANELS     3  /* the second list's products */
#define MGL_OBJECT_CONTROLLER 4  /* that role */
#define MGL_OBJECT_SKINNY     5  /* products of a few rows */
#define MGL_OBJECT_EPILOGUE   6  /* that role, with what fills trays */
#define MGL_OBJECT_SAMPLE     7  /* sampling and draws */
#define MGL_OBJECT_SMALL_M    8  /* the second list's products of few weight rows */
#define MGL_OBJECT_SWAP_AB    9  /* the same of more than 32 activation rows */
#define MGL_OBJECT_SMALL_N    10 /* the same by warpgroups */
#define MGL_OBJECT_GENERAL    11 /* products of any rows */
#define MGL_OBJECT_KV_ROUNDS  12 /* attention of one row */
#define MGL_OBJECT_LOADER     13 /* loader and landing warp of two lists */
#define MGL_OBJECT_MERGE      14 /* of attention's splits */
#define MGL_OBJECT_DECODE_ROW 15 /* the second list's attention, few rows a task */
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
