/*
 * The kernel: one block a queue, all blocks resident at once (a cooperative launch), from the first
 * token of a reply to its last.
 *
 *   queue        the tasks of one block, in order, once an epoch
 *   epoch        one pass of the model over the rows at hand: a step of decoding, or of a prompt
 *   row          one token of one sequence in an epoch; a task works on all rows
 *   task         one op on regions of buffers, with edges before and behind it (instructions/)
 *   record       a task as the host encodes it (record.h); four of a queue's are in shared memory
 *   instruction  one of two places in shared memory where the input of a task is made known: tasks
 *     slot       that need consumers are numbered from 0, and number n takes slot n % 2
 *   counter      a word of global memory that tasks signal and wait for
 *   flag         a word of a flagged region: all ones until it is written (flags.cuh)
 *   tape         a queue's weights in the order of their use, streamed once an epoch
 *   block        of a tape: 64 bytes of each of 8 weight rows; a row group is the blocks of 8 rows
 *                (schedule/tape.h); not the thread block
 *   run          the blocks of a row group that one consumer warp multiplies
 *   page         what the ring is filled with: MGL_PAGE bytes of the tape, or of keys or values
 *   ring         MGL_RING frames in shared memory, each with a `full` and an `empty` mbarrier
 *   frame        where a page is in the ring: page p is in frame p % MGL_RING
 *   activation   shared memory for the input of a product, normalised and rounded (`stage` of a
 *     buffer     schedule's text)
 *   slot         where the consumers leave partial sums of row groups for the epilogue
 *   panel        row groups that are multiplied together by all activation rows of an epoch, in a
 *                program whose second list has such products (linear/panels.cuh)
 *   tray         where some k blocks of those activations are (roles/act_tile_loader.cuh); or,
 * while attention is at work, keys and values of some positions (attention/kv_buffers.cuh) strip
 * positions that a warp attends to at once: one tile of 16 or two
 *
 * Roles of a block's warps, a file each in roles/:
 *
 *   consumers    MGL_WARPS warps: inputs, products, attention, sampling
 *   epilogue     one warp: adds up the slots, writes outputs, ends tasks; copies into trays
 *   loader       one warp: copies pages into the ring
 *   landing      one warp: says which pages have landed; helps the loader in the second list
 *   controller   one warp: waits for counters, makes tasks known, signals, clears
 *
 * A task: the controller prepares its instruction slot, if it can while the task before is at work,
 * waits for its counters and makes it known; flagged input may be read from then on. The epilogue,
 * done with the task before, opens `go` (or the controller: preissued.cuh); consumers and epilogue
 * do it together, or the consumers alone; the controller signals, and resets what the `clear`
 * behind it names. Enter, embed and clear are the controller's alone.
 *
 * Which code runs a task: dispatch.cuh has the functions of its op, linear/linear.cuh chooses the
 * way of a product, attention/attention.cuh that of attention.
 */

#include "vm/cuda/device/delay.cuh"
#include "vm/cuda/device/roles/consumer.cuh"
#include "vm/cuda/device/roles/controller.cuh"
#include "vm/cuda/device/roles/epilogue.cuh"
#include "vm/cuda/device/roles/landing.cuh"
#include "vm/cuda/device/roles/loader.cuh"
#include "vm/cuda/device/roles/panel_loader.cuh"

#if IN_OBJECT(KERNEL)

/* One thread, before a barrier of the block. */
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
