/*
 * A product of the second list, by its op: what it notes of its rows before, what it makes of a
 * tile's sums, and what it leaves behind all of them.
 */
#ifndef MGL_DEVICE_LINEAR_PANEL_OPS_CUH
#define MGL_DEVICE_LINEAR_PANEL_OPS_CUH

#include "instructions/linear_add_gamma/linear_add_gamma.cuh"
#include "instructions/rms_head/rms_head.cuh"
#include "instructions/rms_linear/rms_linear.cuh"
#include "instructions/rms_swiglu/rms_swiglu.cuh"
#include "vm/cuda/device/linear/small_m.cuh"
#include "vm/cuda/device/linear/small_n.cuh"
#include "vm/cuda/device/linear/swap_ab.cuh"
#include "vm/cuda/device/linear/warp_teams.cuh"
#include "vm/cuda/device/linear/warpgroups.cuh"

#if MGL_PANELS

/* Outputs of a lane's sums. */
static __device__ __forceinline__ void write_lane(const machine &m, panel_lane &p)
{
    switch (task_of(m)->op) {
    case OP_LINEAR_ADD_GAMMA:
        return write_linear_add_gamma(m, p);
    case OP_RMS_LINEAR:
        return write_rms_linear(m, p);
    case OP_RMS_SWIGLU:
        return write_rms_swiglu(m, p, swiglu_output(m));
    default:
        return write_rms_head(m, p);
    }
}

/* Outputs of a pass. Out of line, as all of a task: their registers are not those of the loop. */
NEAR_OR_INLINE void write_outputs(int group, bool last, int pass)
{
    const machine m = machine_now();
    write_tiles(m, group, last, pass, [&](panel_lane &p) { write_lane(m, p); });
}

/* Outputs of a panel: of a pass, or of a warp's own sums. */
struct panel_outputs {
    __device__ __forceinline__ void operator()(int group, bool last, int pass) const
    {
        write_outputs(group, last, pass);
    }

    template <int ROWS>
    __device__ __forceinline__ void own(const machine &m, int group,
                                        const float (&sums)[ROWS / 2]) const
    {
        write_own_swiglu<ROWS>(m, group, sums);
    }
};

/* All panels of a task, whose notes are ready. Behind it all warps' outputs and notes are there. */
template <class WRITE>
static __device__ __forceinline__ void run_panels(machine &m, const WRITE &leave)
{
    if (m.warp == 0) /* the first tray is its own: it may not be another's */
        wait_act_tile(act_tile_walk_of(1, 0, own().act_tile_used[0]));
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
static __device__ __forceinline__ void begin_row_stats(const machine &m, int op)
{
    if (op == OP_LINEAR_ADD_GAMMA || op == OP_RMS_HEAD)
        clear_row_stats(m);
}

/* What it leaves of them, when all outputs are there. */
static __device__ __forceinline__ void write_row_stats()
{
    consumer_barrier();
    const machine m = machine_now();
    if (task_of(m)->op == OP_LINEAR_ADD_GAMMA)
        write_squares(m, rows_of(m));
    if (task_of(m)->op == OP_RMS_HEAD)
        write_bests(m, rows_of(m));
}

/* The outputs of a slim panel of up to ROWS rows at a time: shorter, so that less of it has to be
 * fetched. Behind the last one the task ends, here, where what follows is not waited for. */
template <int ROWS> NEAR_OR_INLINE void write_small_m_outputs(int group, bool last, u32 starved)
{
    machine m = machine_now();
    trace_set_starved(m, starved);
    switch (task_of(m)->op) {
    case OP_LINEAR_ADD_GAMMA:
        write_small_m_add<small_m_at_once<ROWS>>(m, group, last);
        break;
    case OP_RMS_LINEAR:
        write_small_m_linear<small_m_at_once<ROWS>>(m, group);
        break;
    case OP_RMS_SWIGLU: {
        const paged_view y = swiglu_output(m);
        wait_sums();
        write_small_m(m, group, [&](const panel_lane &p) { write_rms_swiglu(m, p, y); });
        break;
    }
    default:
        if (ROWS > 2 * SMALL_M_TILE)
            break; /* the head is never narrow */
        wait_sums();
        write_small_m(m, group, [&](panel_lane &p) { write_rms_head(m, p); });
        if (last)
            write_row_stats();
    }
    if (last)
        end_preissued(m);
}

/* A task whose panels are slim. Out of line, or all of a kernel would have its registers. What can
 * be done before `go` is; but no warp waits for another there: one may leave. False: it did not
 * begin. */
FAR bool do_small_m();

#if IN_OBJECT(SMALL_M)

FAR bool do_small_m()
{
    machine m = machine_now();
    if (task_of(m)->op == OP_RMS_HEAD) {
        if (!wait_preissued_start(m))
            return false;
        begin_row_stats(m, OP_RMS_HEAD); /* those of the task before have been read */
    }
    return run_small_m(m, write_small_m_outputs<2 * SMALL_M_TILE>);
}

#endif

/* The same of a task of more rows, with one panel of few row groups. */
FAR bool do_swap_ab();

#if IN_OBJECT(SWAP_AB)

FAR bool do_swap_ab()
{
    machine m = machine_now();
    if (!add_swap_ab(m))
        return false;
    write_small_m_outputs<SMALL_N_ROWS>(0, true, trace_starved_of(m));
    return true;
}

#endif

#if MGL_WARPGROUPS

/* A task of one narrow panel. */
FAR void do_small_n();

#if IN_OBJECT(SMALL_N)

FAR void do_small_n()
{
    machine m = machine_now();
    if (SMALL_N_GROUPS <= 2 || segment(m, 0).groups <= 2)
        add_small_n<1>(m);
    else
        add_small_n<2>(m);
    write_small_m_outputs<SMALL_N_ROWS>(0, true, trace_starved_of(m));
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
    begin_row_stats(m, op);
    if (op != OP_LINEAR_ADD_GAMMA)
        compute_row_scales<8>(operand(m, MGL_PRODUCT_SQUARES), rows_of(m), m.warp, MGL_WARPS);
    consumer_barrier();
    run_panels(m, panel_outputs{});
    fence_bulk_writes(); /* what comes next in bulk comes where sums stood */
    write_row_stats();
    end_preissued(m);
}

#endif

/* The consumers' part, which is all; nothing, where no row wants logits of the head. False: it did
 * not begin. */
static __device__ __forceinline__ bool consume_panel(machine &m)
{
    const bool heads = same_in_all(task_of(m)->op) == OP_RMS_HEAD;
    const bool small_m = same_in_all(small_m_groups_of(m)) > 0;
    const bool nothing = heads && same_in_all(own().tile_count) == 0;
    if (small_m && MGL_ROWS > SMALL_M_ROWS && same_in_all(rows_of(m)) > SMALL_M_ROWS)
        return do_swap_ab();
    if (small_m && !nothing)
        return do_small_m();
    if (!same_in_all(wait_preissued_start(m)))
        return false;
    if (nothing)
        end_preissued(m);
#if MGL_WARPGROUPS
    else if (MGL_ROWS > SMALL_N_ROWS && same_in_all(is_small_n(m)))
        do_small_n();
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
