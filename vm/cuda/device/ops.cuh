/*
 * Tables of the ops in the kernel: op numbers, families, the op of a task, and the variants that
 * the kernel contains. The tables and the dispatch of controller, consumers and epilogue are
 * generated from instructions/ops.def and schedule/variants.def.
 */
#ifndef MGL_DEVICE_OPS_CUH
#define MGL_DEVICE_OPS_CUH

#include "vm/cuda/device/shared.cuh"

enum {
#define MGL_OP(id, ...) OP_##id,
#include "instructions/ops.def"
    OP_COUNT
};
#define MGL_NAMED_OPS

enum {
#define MGL_FAMILY(id, ...) FAMILY_##id,
#include "instructions/ops.def"
    FAMILY_COUNT
};

enum {
    VARIANT_GENERAL,
#define MGL_VARIANT(id, ...) VARIANT_##id,
#include "schedule/variants.def"
};

/* The variants that the program names, whose code the kernel contains: MGL_VARIANTS_<FAMILY> has a
 * bit for each. */
enum {
    HAS_GENERAL_PRODUCT = MGL_VARIANTS_PRODUCT >> VARIANT_GENERAL & 1,
    HAS_GENERAL_ATTENTION = MGL_VARIANTS_ATTENTION >> VARIANT_GENERAL & 1,
#define MGL_VARIANT(id, name, family, ...) HAS_##id = MGL_VARIANTS_##family >> VARIANT_##id & 1,
#include "schedule/variants.def"
};

/* Columns of ops.def: the roles that a family needs; whether the controller prepares a task of it
 * during the previous task, and announces it early. */
enum { NEEDS_CONTROLLER, NEEDS_CONSUMERS, NEEDS_EPILOGUE };
enum { AHEAD_NEVER, AHEAD_ALWAYS, AHEAD_UNLIKE, AHEAD_PREISSUED, AHEAD_PREISSUED_UNLIKE };

/* Whether the kernel contains the op. */
static __device__ __forceinline__ bool has_op(u32 op)
{
    return false
#define MGL_OP(id, ...) || op == OP_##id
#include "instructions/ops.def"
        ;
}

/* Whether the op belongs to the family and the kernel contains it. */
template <int FAMILY> static __device__ __forceinline__ bool is_of(int op)
{
    return false
#define MGL_OP(id, name, family, ...) || (FAMILY_##family == FAMILY && op == OP_##id)
#include "instructions/ops.def"
        ;
}

/* Whether the kernel contains the variant of the op. */
static __device__ __forceinline__ bool has_variant(int op, int variant)
{
#if MGL_PANELS
    if (variant == VARIANT_GENERAL && is_of<FAMILY_PANEL>(op))
        return false;
#endif
#if MGL_ATTEND_ROWS
    if (variant == VARIANT_GENERAL && is_of<FAMILY_ATTEND_ROWS>(op))
        return false;
#endif
    if (variant == VARIANT_GENERAL)
        return (HAS_GENERAL_PRODUCT || !is_of<FAMILY_PRODUCT>(op)) &&
               (HAS_GENERAL_ATTENTION || !is_of<FAMILY_ATTENTION>(op));
    return false
#define MGL_VARIANT(id, name, family, ...)                                                         \
    || (HAS_##id && variant == VARIANT_##id && is_of<FAMILY_##family>(op))
#include "schedule/variants.def"
        ;
}

/* Whether the controller executes the op alone. */
static __device__ __forceinline__ bool is_alone(int op)
{
    return false
#define MGL_FAMILY(id, name, needs, ahead)                                                         \
    || (NEEDS_##needs == NEEDS_CONTROLLER && is_of<FAMILY_##id>(op))
#include "instructions/ops.def"
        ;
}

/* Whether the op is an attention, of either list. */
static __device__ __forceinline__ bool attends(int op)
{
    return is_of<FAMILY_ATTENTION>(op) || is_of<FAMILY_ATTEND_ROWS>(op);
}

/* Whether a task may be prepared during the previous task, of op `before`: the previous task does
 * not use the shared memory that the preparation writes. */
static __device__ __forceinline__ bool goes_ahead(int op, int before)
{
    if (attends(op) && attends(before)) /* both write own().att */
        return false;
    return false
#define MGL_FAMILY(id, name, needs, ahead)                                                         \
    || (AHEAD_##ahead != AHEAD_NEVER && is_of<FAMILY_##id>(op) &&                                  \
        (AHEAD_##ahead == AHEAD_ALWAYS || AHEAD_##ahead == AHEAD_PREISSUED ||                      \
         !is_of<FAMILY_##id>(before)))
#include "instructions/ops.def"
        ;
}

#define IS_PREISSUED(ahead)                                                                        \
    (AHEAD_##ahead == AHEAD_PREISSUED || AHEAD_##ahead == AHEAD_PREISSUED_UNLIKE)

/* Whether a prepared task may be announced to the consumers before its counters are reached. */
static __device__ __forceinline__ bool is_preissued(int op)
{
    return false
#define MGL_FAMILY(id, name, needs, ahead) || (IS_PREISSUED(ahead) && is_of<FAMILY_##id>(op))
#include "instructions/ops.def"
        ;
}

#endif
