/*
 * The ops of panel products (panels.cuh): for each op, the row statistics before the products, the
 * outputs of a tile of sums, and the results that are written after all panels.
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

/* Writes the outputs of a lane's sums. */
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

/* Writes the outputs of a pass. Out of line, so that its registers do not add to those of the loop
 * over tasks. */
NEAR_OR_INLINE void write_outputs(int group, bool last, int pass)
{
    const machine m = machine_now();
    write_tiles(m, group, last, pass, [&](panel_lane &p) { write_lane(m, p); });
}

/* Writes the outputs of a panel, from a pass or from a warp's own sums. */
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

/* Runs all panels of a task whose row statistics are initialized. Afterwards the outputs and row
 * statistics of all warps are complete. */
template <class WRITE>
static __device__ __forceinline__ void run_panels(machine &m, const WRITE &leave)
{
    if (m.warp == 0) /* activation tile 0 belongs to the team or warpgroup of warp 0 */
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
        consumer_barrier(); /* in the next panel, another warp may add to the same statistics */
    }
}

/* Clears the row statistics at the start of a task. */
static __device__ __forceinline__ void begin_row_stats(const machine &m, int op)
{
    if (op == OP_LINEAR_ADD_GAMMA || op == OP_RMS_HEAD)
        clear_row_stats(m);
}

/* Writes the row statistics after all outputs are complete. */
static __device__ __forceinline__ void write_row_stats()
{
    consumer_barrier();
    const machine m = machine_now();
    if (task_of(m)->op == OP_LINEAR_ADD_GAMMA)
        write_squares(m, rows_of(m));
    if (task_of(m)->op == OP_RMS_HEAD)
        write_bests(m, rows_of(m));
}

/* Writes the outputs of a small-M panel of up to ROWS rows. A separate function per ROWS is
 * shorter, so fewer instructions are fetched. Ends the task after the last panel. */
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
            break; /* the head never has small-N panels */
        wait_sums();
        write_small_m(m, group, [&](panel_lane &p) { write_rms_head(m, p); });
        if (last)
            write_row_stats();
    }
    if (last)
        end_preissued(m);
}

/* Runs a task with small-M panels. Out of line, otherwise its registers would count for the whole
 * kernel. Work that needs no input is done before the start barrier, without block barriers,
 * because a warp may exit there. False: the task did not begin. */
FAR bool do_small_m();

#if IN_OBJECT(SMALL_M)

FAR bool do_small_m()
{
    machine m = machine_now();
    if (task_of(m)->op == OP_RMS_HEAD) {
        if (!wait_preissued_start(m))
            return false;
        begin_row_stats(m, OP_RMS_HEAD); /* the statistics of the previous task have been read */
    }
    return run_small_m(m, write_small_m_outputs<2 * SMALL_M_TILE>);
}

#endif

/* Same for a task with more rows and one panel of few row groups (swap_ab). */
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

/* Runs a task with one small-N panel. */
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

/* Runs a task with other panels. Out of line too, except with warpgroups: the compiler serializes
 * wgmma instructions if it cannot see that none is in flight across a call. */
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
        own().pending = 1; /* until the first activation tile is loaded */
    begin_row_stats(m, op);
    if (op != OP_LINEAR_ADD_GAMMA)
        compute_row_scales<8>(operand(m, MGL_PRODUCT_SQUARES), rows_of(m), m.warp, MGL_WARPS);
    consumer_barrier();
    run_panels(m, panel_outputs{});
    fence_bulk_writes(); /* the next bulk copies overwrite memory that contained sums */
    write_row_stats();
    end_preissued(m);
}

#endif

/* Runs the consumers' part, which is the whole task. Does nothing in the head if no row needs
 * logits. False: the task did not begin. */
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

/* For a kernel without panels, where no task is of this family. */
static __device__ __forceinline__ bool consume_panel(machine &)
{
    return false;
}

#endif

#endif
