/*
 * Dispatch from an op to its device functions, per role: prepare_op and do_op (controller),
 * consume_op and consume_preissued (consumers), finish_op (epilogue). All switches are generated
 * from instructions/ops.def, so an op or family that is added there is dispatched, or does not
 * compile. The controller stops at a task whose op or variant the kernel does not contain
 * (knows_task), so these functions need no error path.
 */
#ifndef MGL_DEVICE_DISPATCH_CUH
#define MGL_DEVICE_DISPATCH_CUH

#include "instructions/attend/attend.cuh"
#include "instructions/attend_past/attend_past.cuh"
#include "instructions/attend_rows/attend_rows.cuh"
#include "instructions/attend_tail/attend_tail.cuh"
#include "instructions/clear/clear.cuh"
#include "instructions/draw/draw.cuh"
#include "instructions/embed/embed.cuh"
#include "instructions/embed_gamma/embed_gamma.cuh"
#include "instructions/enter/enter.cuh"
#include "instructions/head/head.cuh"
#include "instructions/linear_add/linear_add.cuh"
#include "instructions/merge/merge.cuh"
#include "instructions/merge_add/merge_add.cuh"
#include "instructions/norm_linear/norm_linear.cuh"
#include "instructions/norm_swiglu/norm_swiglu.cuh"
#include "instructions/sample/sample.cuh"
#include "vm/cuda/device/linear/panel_ops.cuh"

/* Merging is compiled as a separate object. */
FAR_OR_INLINE void do_merge(machine m);

#if IN_OBJECT(MERGE)
FAR_OR_INLINE void do_merge(machine m)
{
    merge_task(m);
}
#endif

static __device__ __forceinline__ void consume_merge(machine &m)
{
    do_merge(m);
}

/* Controller, one lane: fills the instruction slot with what the consumers need. */
static __device__ __forceinline__ void prepare_op(const machine &m)
{
#define PREPARE_BARE(id, name)
#define PREPARE_ALONE(id, name)
#define PREPARE_PREPARED(id, name)                                                                 \
    case OP_##id:                                                                                  \
        return prepare_##name(m);
#define PREPARE_FINISHED                            PREPARE_PREPARED
#define MGL_OP(id, name, family, step, device, ...) PREPARE_##device(id, name)
    switch (task_of(m)->op) {
#include "instructions/ops.def"
    }
#undef PREPARE_BARE
#undef PREPARE_ALONE
#undef PREPARE_PREPARED
#undef PREPARE_FINISHED
}

/* Controller: executes a task that needs no consumers. */
static __device__ __forceinline__ void do_op(machine &m)
{
#define ALONE_BARE(id, name)
#define ALONE_PREPARED(id, name)
#define ALONE_FINISHED(id, name)
#define ALONE_ALONE(id, name)                                                                      \
    case OP_##id:                                                                                  \
        return do_##name(m);
#define MGL_OP(id, name, family, step, device, ...) ALONE_##device(id, name)
    switch (task_of(m)->op) {
#include "instructions/ops.def"
    }
#undef ALONE_BARE
#undef ALONE_PREPARED
#undef ALONE_FINISHED
#undef ALONE_ALONE
}

/* Consumers: execute their part of a task that is not pre-issued, by its family. Returns false if
 * the task wrote nothing to the partial-sum buffers. */
static __device__ __forceinline__ bool consume_op(machine &m, int op)
{
#define CONSUME_CONTROLLER(id, name, early)
#define CONSUME_CONSUMERS(id, name, early)                                                         \
    if (!early && is_of<FAMILY_##id>(op))                                                          \
        consume_##name(m);                                                                         \
    else
#define CONSUME_EPILOGUE(id, name, early)                                                          \
    if (is_of<FAMILY_##id>(op))                                                                    \
        return consume_##name(m);                                                                  \
    else
#define MGL_FAMILY(id, name, needs, ahead) CONSUME_##needs(id, name, IS_PREISSUED(ahead))
#include "instructions/ops.def"
    {
    }
#undef CONSUME_CONTROLLER
#undef CONSUME_CONSUMERS
#undef CONSUME_EPILOGUE
    return false;
}

/* Consumers: execute a pre-issued task up to its end (preissued.cuh). Returns false if the task did
 * not begin because the block leaves. */
static __device__ __forceinline__ bool consume_preissued(machine &m, int op)
{
#define BEGIN_NEVER(id, name)
#define BEGIN_ALWAYS(id, name)
#define BEGIN_UNLIKE(id, name)
#define BEGIN_PREISSUED(id, name)                                                                  \
    if (is_of<FAMILY_##id>(op))                                                                    \
        return consume_##name(m);                                                                  \
    else
#define BEGIN_PREISSUED_UNLIKE             BEGIN_PREISSUED
#define MGL_FAMILY(id, name, needs, ahead) BEGIN_##ahead(id, name)
#include "instructions/ops.def"
    {
    }
#undef BEGIN_NEVER
#undef BEGIN_ALWAYS
#undef BEGIN_UNLIKE
#undef BEGIN_PREISSUED
#undef BEGIN_PREISSUED_UNLIKE
    return false;
}

/* Epilogue: executes its part of the task. Returns false if the task has no such part, or writes
 * nothing to the partial-sum buffers. */
static __device__ __forceinline__ bool finish_op(machine &m)
{
#define FINISH_BARE(id, name)
#define FINISH_ALONE(id, name)
#define FINISH_PREPARED(id, name)
#define FINISH_FINISHED(id, name)                                                                  \
    case OP_##id:                                                                                  \
        return finish_##name(m);
#define MGL_OP(id, name, family, step, device, ...) FINISH_##device(id, name)
    switch (task_of(m)->op) {
#include "instructions/ops.def"
    }
#undef FINISH_BARE
#undef FINISH_ALONE
#undef FINISH_PREPARED
#undef FINISH_FINISHED
    return false;
}

#endif
