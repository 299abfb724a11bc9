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
#include "vm/cuda/device/linear/teams.cuh"
#include "vm/cuda/device/linear/warpgroups.cuh"

#if MGL_PANELS

/* Outputs of a pass. Out of line, as all of a task: their registers are not those of the loop. */
static __device__ __noinline__ void leave_outputs(int group, bool last, int pass)
{
    const machine m = machine_now();
    leave_tiles(m, group, last, pass, [&](const panel_lane &p) {
        switch (task_of(m)->op) {
        case OP_LINEAR_ADD_WEIGHED:
            return leave_linear_add_weighed(m, p);
        case OP_SCALED_LINEAR:
            return leave_scaled_linear(m, p);
        case OP_SCALED_SWIGLU:
            return leave_scaled_swiglu(m, p);
        default:
            return leave_scaled_head(m, p);
        }
    });
}

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
    fence_bulk_writes(); /* the next task's activations come where sums stood */
    consumer_barrier();
}

/* Out of line, or all of a kernel would have its registers; but the compiler lets products of
 * warpgroups wait for one another where it can not see that none is on its way over a call. */
#if MGL_WARPGROUPS
#define DO_PANELS __forceinline__
#else
#define DO_PANELS __noinline__
#endif

static __device__ DO_PANELS u32 do_panels(machine m)
{
    const int op = same_in_all(task_of(m)->op);
    if (op == OP_SCALED_HEAD && same_in_all(own().tile_count) == 0)
        return 0; /* no row wants logits: nothing comes */
    if (op == OP_LINEAR_ADD_WEIGHED)
        clear_notes(m, {0.0f, 0});
    else
        note_scales(m, operand(m, MGL_PRODUCT_SQUARES), rows_of(m));
    if (op == OP_SCALED_HEAD)
        clear_notes(m, note_of_best(nothing_yet()));
    consumer_barrier();
    run_panels(m, leave_outputs);
    const machine now = machine_now();
    if (task_of(now)->op == OP_LINEAR_ADD_WEIGHED)
        leave_squares(now, rows_of(now));
    if (task_of(now)->op == OP_SCALED_HEAD)
        leave_bests(now, rows_of(now));
    return trace_starved_of(m);
}

/* The consumers' part, which is all. */
static __device__ __forceinline__ void consume_panel(machine &m)
{
    wait_go(m);
    trace_set_starved(m, do_panels(m));
}

#else

/* Of a kernel without panels: no task is of that family. */
static __device__ __forceinline__ void consume_panel(machine &) {}

#endif

#endif
