/*
 * The units of a kernel: parts that are compiled by themselves, side by side, and linked. A unit
 * has functions that the roles call for a task, or a role. The assembler takes all functions of a
 * text together, and for many of them much longer than for each by itself: of 47 s that a kernel of
 * two lists takes as one text 22 are left, for all processors.
 *
 * MGL_UNIT is the number of the unit at hand; where it is not defined, the kernel is one text: so
 * without a linker, with a compiler before CUDA 13, and for architectures that give PTX.
 *
 *     FAR void f();          declares a function that another unit calls, out of line; it must not
 *                            be called in its own, where the compiler would make two of it
 *     FAR_OR_INLINE void f() the same, but in line where the kernel is one text
 *     #if IN_UNIT(FLASH)     around its definition, which begins as the declaration does
 *     NEAR_OR_INLINE         of a function of one unit: in line there, else out of line
 *
 * A far function keeps 10 registers for its caller, few of what the calling convention has: the
 * consumers' loop needs no more, and a task's function wants all. What has a stack frame waits for
 * it in L2 (0.5 us a task): so a far function that runs for each task calls no other.
 */
#ifndef MGL_DEVICE_UNITS_H
#define MGL_DEVICE_UNITS_H

/* In the order in which they are compiled: what takes longest comes first. */
#define MGL_UNIT_ATTENTION  0  /* of some rows, all ways */
#define MGL_UNIT_FLASH      1  /* the second list's attention */
#define MGL_UNIT_BATCH      2  /* products of some rows */
#define MGL_UNIT_PANELS     3  /* the second list's products */
#define MGL_UNIT_CONTROLLER 4  /* that role */
#define MGL_UNIT_SKINNY     5  /* products of a few rows */
#define MGL_UNIT_EPILOGUE   6  /* that role, with what fills trays */
#define MGL_UNIT_SAMPLE     7  /* sampling and draws */
#define MGL_UNIT_SLIM       8  /* the second list's products of few weight rows */
#define MGL_UNIT_TURNED     9  /* the same of more than 32 activation rows */
#define MGL_UNIT_NARROW     10 /* the same by warpgroups */
#define MGL_UNIT_GENERAL    11 /* products of any rows */
#define MGL_UNIT_WAVES      12 /* attention of one row */
#define MGL_UNIT_LOADER     13 /* loader and landing warp of two lists */
#define MGL_UNIT_MERGE      14 /* of attention's splits */
#define MGL_UNIT_LONE       15 /* the second list's attention, few rows a task */
#define MGL_UNIT_KERNEL     16 /* the entry, and the loop of the consumers */
#define MGL_UNITS           17

#ifdef MGL_UNIT
#define IN_UNIT(unit) (MGL_UNIT == MGL_UNIT_##unit)
#define FAR                                                                                        \
    _Pragma("nv_abi preserve_n_data(10) preserve_n_control(1)") extern __device__ __noinline__
#define FAR_OR_INLINE  FAR
#define NEAR_OR_INLINE static __device__ __forceinline__
#else
#define IN_UNIT(unit)  1
#define FAR            static __device__ __noinline__
#define FAR_OR_INLINE  static __device__ __forceinline__
#define NEAR_OR_INLINE static __device__ __noinline__
#endif

#endif
