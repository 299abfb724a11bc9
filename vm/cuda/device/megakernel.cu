/*
 * The persistent kernel (megakernel): one block per queue, all blocks co-resident (a cooperative
 * launch). One launch generates all tokens of a reply. The host passes mgl_device_launch
 * (record.h). This file initializes the mbarriers and starts the role of each warp.
 *
 *   queue        the tasks of one block, in order, once an epoch
 *   epoch        one pass of the model over the current rows: a decode step, or a part of a prompt
 *   row          one token of one sequence in an epoch; a task works on all rows
 *   task         one op on regions of buffers, with waits and signals (instructions/)
 *   record       a task as the host encodes it (record.h); shared memory holds four of a queue's
 *   instruction  one of two places in shared memory where the input of a task is announced. Tasks
 *     slot       that need consumers are numbered from 0, and task n uses slot n % 2
 *   counter      a word of global memory that tasks signal and wait for
 *   flag         a word of a flagged region: all ones until it is written (flags.cuh)
 *   tape         a queue's weights in the order of their use, streamed once an epoch
 *   block        of a tape: 64 bytes of each of 8 weight rows; a row group is the blocks of 8 rows
 *                (schedule/tape.h); not the thread block
 *   run          the blocks of a row group that one consumer warp multiplies
 *   page         the unit of the ring: MGL_PAGE bytes of the tape, or of keys or values
 *   ring         MGL_RING frames in shared memory, each with a `full` and an `empty` mbarrier
 *   frame        the place of a page in the ring: page p is in frame p % MGL_RING
 *   activation   shared memory for the input of a product, normalized and rounded (`stage` in the
 *     buffer     text form of a schedule)
 *   partial-sum  where the consumers write partial sums of row groups for the epilogue
 *     buffer
 *   panel        row groups that are multiplied together by all activation rows of an epoch, in a
 *                program whose second list has such products (linear/panels.cuh)
 *   activation   shared memory for some k blocks of those activations (roles/act_tile_loader.cuh)
 *     tile
 *   KV buffer    the same memory while attention runs: keys and values of some positions
 *                (attention/kv_buffers.cuh)
 *   KV tile      positions that a warp attends to at once: one tile of 16 or two
 *
 * Roles of a block's warps, a file each in roles/:
 *
 *   consumers    MGL_WARPS warps: inputs, products, attention, sampling
 *   epilogue     one warp: adds up partial sums, writes outputs, ends tasks; fills activation tiles
 *   loader       one warp: copies pages into the ring
 *   landing      one warp: publishes which pages have landed; helps the loader in the second list
 *   controller   one warp: waits for counters, announces tasks, signals, clears
 *
 * The steps of a task: the controller prepares its instruction slot (during the previous task if
 * possible), waits for its counters and announces the task. From then on flagged input may be read.
 * When the epilogue is done with the previous task, it opens the start barrier (or the controller
 * does: preissued.cuh). Consumers and epilogue execute the task together, or the consumers alone.
 * The controller signals, and resets the regions of the `clear` that follows the task. The
 * controller executes enter, embed and clear alone.
 *
 * The code that runs a task: dispatch.cuh calls the functions of its op. linear/linear.cuh chooses
 * the kernel variant of a product, attention/attention.cuh the variant of attention.
 */

#include "vm/cuda/device/delay.cuh"
#include "vm/cuda/device/roles/consumer.cuh"
#include "vm/cuda/device/roles/controller.cuh"
#include "vm/cuda/device/roles/epilogue.cuh"
#include "vm/cuda/device/roles/landing.cuh"
#include "vm/cuda/device/roles/loader.cuh"
#include "vm/cuda/device/roles/panel_loader.cuh"

#if IN_OBJECT(KERNEL)

/* Called by one thread before a block barrier. */
static __device__ void init_barriers()
{
    for (int i = 0; i < MGL_RING; i++) {
        barrier_init(&own().full[i], MGL_BULK_COPY ? 1 : 32);
        barrier_init(&own().empty[i], MGL_WARPS);
    }
    for (int i = 0; i < PSUM_COUNT; i++) {
        barrier_init(&own().psum_full[i], MGL_WARPS);
        barrier_init(&own().psum_empty[i], 1);
    }
    barrier_init(&own().announced[0], 1);
    barrier_init(&own().announced[1], 1);
    barrier_init(&own().start, 1);
    barrier_init(&own().body, MGL_WARPS);
    barrier_init(&own().done, MGL_WARPS);
    barrier_init(&own().squares_full, MGL_WARPS);
#if MGL_PANELS
    for (int i = 0; i < PANEL_PAGES; i++) {
        barrier_init(&own().page_full[i], 1);
        barrier_init(&own().page_empty[i], MGL_WARPS);
    }
    for (int i = 0; i < ACT_TILES; i++) {
        barrier_init(&own().act_tile_full[i], 1);
        barrier_init(&own().act_tile_empty[i], MGL_WARPS);
    }
    for (int i = 0; i < KV_BUFFERS; i++) {
        barrier_init(&own().kv_buffer_full[i], 1);
        barrier_init(&own().kv_buffer_empty[i], MGL_WARPS);
    }
#endif
    barrier_init_fence();
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    megalith(const __grid_constant__ mgl_device_launch launch)
{
    machine m = {};
    know_thread(m);
    look_for_memory();
    const mgl_device_queue &queue = ((const mgl_device_queue *)launch.queues)[blockIdx.x * LISTS];
    if (thread_of(m) == 0) {
        own().launch = launch;
        init_barriers();
        own().pending = own().leave = own().dead = own().stop = 0;
        own().landed = own().lost = 0;
        own().early = own().demanded = 0;
        own().prepared = own().finished = own().reported = 0;
#if PREISSUED_TASKS
        own().opened[0] = own().opened[1] = own().reached = own().signalled = 0;
#endif
        own().instruction[0] = own().instruction[1] = {};
        trace_start();
        own().kv_number = own().kv_used = 0;
        own().entered = 0;
#if MGL_LISTS
        own().others = 0;
        for (int w = 0; w < MGL_WARPS; w++)
            own().psums_at[w] = own().landed_at[w] = own().freed_at[w] = 0;
#endif
#if MGL_PANELS
        own().listed = own().switched = own().paneled = 0;
        own().act_tile_filled = own().kv_buffer_next = 0;
        own().stream_epoch = 0;
        for (int w = 0; w < MGL_WARPS; w++)
            own().page_at[w] = own().act_tile_used[w] = own().kv_buffer_at[w] = 0;
#endif
        for (int w = 0; w < MGL_WARPS; w++)
            own().begun[w] = 0;
        delay_init();
    }
#if MGL_PANELS
    cache_panel_shapes(thread_of(m));
#endif
    __syncthreads();
    if (m.warp == LOADER)
#if MGL_PANELS
        run_panel_loader(m, &queue);
#else
        run_loader(m, queue);
#endif
    else if (m.warp == LANDING)
#if MGL_PANELS
        run_panel_landing(m, &queue);
#else
        run_landing(m);
#endif
    else if (m.warp == CONTROLLER)
        run_controller(m, &queue);
    else if (m.warp == EPILOGUE)
        run_epilogue(m);
    else
        run_consumer(m);
}

#endif
