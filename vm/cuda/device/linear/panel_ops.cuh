/*
 * A product of the second list, by its op: what it notes of its rows before, what it makes of a
 * tile's sums, and what it leaves behind all of them.
 */
#ifndef MGL_DEVICE_LINEAR_PANEL_OPS_CUH
#define MGL_DEVICE_LINEAR_PANEL_OPS_CUH

#include "instructions/linear_add_weighed/linear_add_weighed.cuh"
#include "instructions/scaled_head/scaled_head.cuh"
#include "instructions/scaled_linear/scaled_linear.cuh"
#include "instructions/scaled_swiglu/scaled_swiglu.cuh"
#include "vm/cuda/device/linear/narrow.cuh"
#include "vm/cuda/device/linear/slim.cuh"
#include "vm/cuda/device/linear/teams.cuh"
#include "vm/cuda/device/linear/turned.cuh"
#include "vm/cuda/device/linear/warpgroups.cuh"

#if MGL_PANELS

/* Outputs of a lane's sums. */
static __device__ __forceinline__ void leave_lane(const machine &m, panel_lane &p)
{
    switch (task_of(m)->op) {
    case OP_LINEAR_ADD_WEIGHED:
        return leave_linear_add_weighed(m, p);
    case OP_SCALED_LINEAR:
        return leave_scaled_linear(m, p);
    case OP_SCALED_SWIGLU:
        return leave_scaled_swiglu(m, p, swiglu_output(m));
    default:
        return leave_scaled_head(m, p);
    }
}

/* Outputs of a pass. Out of line, as all of a task: their registers are not those of the loop. */
NEAR_OR_INLINE void leave_outputs(int group, bool last, int pass)
{
    const machine m = machine_now();
    leave_tiles(m, group, last, pass, [&](panel_lane &p) { leave_lane(m, p); });
}

/* Outputs of a panel: of a pass, or of a warp's own sums. */
struct panel_outputs {
    __device__ __forceinline__ void operator()(int group, bool last, int pass) const
    {
        leave_outputs(group, last, pass);
    }

    template <int ROWS>
    __device__ __forceinline__ void own(const machine &m, int group,
                                        const float (&sums)[ROWS / 2]) const
    {
        leave_own_swiglu<ROWS>(m, group, sums);
    }
};

/* All panels of a task, whose notes are ready. Behind it all warps' outputs and notes are there. */
template <class LEAVE>
static __device__ __forceinline__ void run_panels(machine &m, const LEAVE &leave)
{
    if (m.warp == 0) /* the first tray is its own: it may not be another's */
        wait_tray(tray_walk_of(1, 0, own().tray_used[0]));
    if (thread_of(m) == 0)
        own().pending = 0;
    trace_input(m);
#pragma unroll 1
    for (int group = 0;; group += PANEL_GROUPS) {
        const bool last = group + PANEL_GROUPS >= same_in_all(segment(machine_now(), 0).groups);
        run_panel(m, group, last, leave);
        if (last)
            break;
        consumer_barrier(); /* the next panel's notes may be another warp's */
    }
}

/* What a task notes of its rows is empty at first. */
static __device__ __forceinline__ void begin_notes(const machine &m, int op)
{
    if (op == OP_LINEAR_ADD_WEIGHED || op == OP_SCALED_HEAD)
        clear_notes(m);
}

/* What it leaves of them, when all outputs are there. */
static __device__ __forceinline__ void leave_notes()
{
    consumer_barrier();
    const machine m = machine_now();
    if (task_of(m)->op == OP_LINEAR_ADD_WEIGHED)
        leave_squares(m, rows_of(m));
    if (task_of(m)->op == OP_SCALED_HEAD)
        leave_bests(m, rows_of(m));
}

/* The outputs of a slim panel of up to ROWS rows at a time: shorter, so that less of it has to be
 * fetched. Behind the last one the task ends, here, where what follows is not waited for. */
template <int ROWS> NEAR_OR_INLINE void leave_slim_outputs(int group, bool last, u32 starved)
{
    machine m = machine_now();
    trace_set_starved(m, starved);
    switch (task_of(m)->op) {
    case OP_LINEAR_ADD_WEIGHED:
        leave_slim_add<slim_at_once<ROWS>>(m, group, last);
        break;
    case OP_SCALED_LINEAR:
        leave_slim_linear<slim_at_once<ROWS>>(m, group);
        break;
    case OP_SCALED_SWIGLU: {
        const paged_view y = swiglu_output(m);
        wait_sums();
        leave_slim(m, group, [&](const panel_lane &p) { leave_scaled_swiglu(m, p, y); });
        break;
    }
    default:
        if (ROWS > 2 * SLIM_TILE)
            break; /* the head is never narrow */
        wait_sums();
        leave_slim(m, group, [&](panel_lane &p) { leave_scaled_head(m, p); });
        if (last)
            leave_notes();
    }
    if (last)
        end_early(m);
}

/* A task whose panels are slim. Out of line, or all of a kernel would have its registers. What can
 * be done before `go` is; but no warp waits for another there: one may leave. False: it did not
 * begin. */
FAR bool do_slim();

#if IN_OBJECT(SLIM)

FAR bool do_slim()
{
    machine m = machine_now();
    if (task_of(m)->op == OP_SCALED_HEAD) {
        if (!wait_early_go(m))
            return false;
        begin_notes(m, OP_SCALED_HEAD); /* those of the task before have been read */
    }
    return run_slim(m, leave_slim_outputs<2 * SLIM_TILE>);
}

#endif

/* The same of a task of more rows, with one panel of few row groups. */
FAR bool do_slim_narrow();

#if IN_OBJECT(TURNED)

FAR bool do_slim_narrow()
{
    machine m = machine_now();
    if (!add_turned(m))
        return false;
    leave_slim_outputs<NARROW_ROWS>(0, true, trace_starved_of(m));
    return true;
}

#endif

#if MGL_WARPGROUPS

/* A task of one narrow panel. */
FAR void do_narrow();

#if IN_OBJECT(NARROW)

FAR void do_narrow()
{
    machine m = machine_now();
    if (NARROW_GROUPS <= 2 || segment(m, 0).groups <= 2)
        add_narrow<1>(m);
    else
        add_narrow<2>(m);
    leave_slim_outputs<NARROW_ROWS>(0, true, trace_starved_of(m));
}

#endif

#endif

/* A task whose panels are not. Out of line too; but the compiler lets products of warpgroups wait
 * for one another where it can not see that none is on its way over a call. */
#if MGL_WARPGROUPS
#define FAR_PANELS FAR_OR_INLINE
#else
#define FAR_PANELS FAR
#endif

FAR_PANELS void do_panels(machine m);

#if IN_OBJECT(PANELS)

FAR_PANELS void do_panels(machine m)
{
    const int op = same_in_all(task_of(m)->op);
    if (thread_of(m) == 0)
        own().pending = 1; /* up to the first tray */
    begin_notes(m, op);
    if (op != OP_LINEAR_ADD_WEIGHED)
        note_scales<8>(operand(m, MGL_PRODUCT_SQUARES), rows_of(m), m.warp, MGL_WARPS);
    consumer_barrier();
    run_panels(m, panel_outputs{});
    fence_bulk_writes(); /* what comes next in bulk comes where sums stood */
    leave_notes();
    end_early(m);
}

#endif

/* The consumers' part, which is all; nothing, where no row wants logits of the head. False: it did
 * not begin. */
static __device__ __forceinline__ bool consume_panel(machine &m)
{
    const bool heads = same_in_all(task_of(m)->op) == OP_SCALED_HEAD;
    const bool slim = same_in_all(slim_groups_of(m)) > 0;
    const bool nothing = heads && same_in_all(own().tile_count) == 0;
    if (slim && MGL_ROWS > SLIM_ROWS && same_in_all(rows_of(m)) > SLIM_ROWS)
        return do_slim_narrow();
    if (slim && !nothing)
        return do_slim();
    if (!same_in_all(wait_early_go(m)))
        return false;
    if (nothing)
        end_early(m);
#if MGL_WARPGROUPS
    else if (MGL_ROWS > NARROW_ROWS && same_in_all(is_narrow(m)))
        do_narrow();
#endif
    else
        do_panels(m);
    return true;
}

#else

/* Of a kernel without panels: no task is of that family. */
static __device__ __forceinline__ bool consume_panel(machine &)
{
    return false;
}

#endif

#endif
