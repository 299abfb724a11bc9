/*
 * Products with streamed weights: y[r, o] = sum over k of x[r, k] W[o, k], for the ops that have a
 * tape. The weights lie in row groups of 8 rows x k blocks of 64 bytes; of a block, lane l holds
 * the 16 bytes of row l / 4 and quarter l % 4, so a block is one 16-byte load a lane.
 *
 * Consumer warp w has k blocks [w S, (w + 1) S) of every row group, S = ceil(blocks / W), which
 * stand on the tape so that each page has some for every warp (schedule/tape.h): of the input it
 * needs that run alone, which it normalises (but for 1 / RMS, a factor that the epilogue applies)
 * and rounds to the weights' dtype into its own part of the activation buffer. Rows that do not fit
 * the activation buffer are read where they are.
 *
 * 16-bit weights: tensor cores, mma.m16n8k16 with f32 sums. The four words of a lane's 16 bytes are
 * the A operand as they lie: its rows 0 to 7 are words 0 and 2 of the 8 weight rows, its rows 8 to
 * 15 words 1 and 3. So a block is one MMA, and an activation row takes two columns of the B
 * operand, the values that belong to the even words and those that belong to the odd ones; of the
 * 16 x 2 sums, rows 0 to 7 of the first and rows 8 to 15 of the second count. The order of k inside
 * a block is free, since both sides have the same. Inputs that 16 bits do not hold (normalised
 * ones, and f32 exchange) are split into two parts, x = high + low, each rounded to 16 bits: 16
 * bits of mantissa and more. The low parts take two more columns: so 4 rows share an MMA's 8
 * columns, or 2 with low parts. So few rows go the skinny way (linear/skinny.cuh), up to 8 the
 * batch way (linear/batch.cuh), others sum_general. A sum is made in the same order whichever way,
 * of even blocks of the run and of odd ones. f32 weights: one fused multiply-add a product.
 *
 * Each warp leaves its sums of some row groups in a slot (warp, row group, row, 8), and the
 * epilogue adds the warps' up, always in the same order: a row's result does not depend on what
 * else is in the epoch.
 */
#ifndef MGL_DEVICE_LINEAR_LINEAR_CUH
#define MGL_DEVICE_LINEAR_LINEAR_CUH

#include "vm/cuda/device/linear/batch.cuh"
#include "vm/cuda/device/linear/general.cuh"
#include "vm/cuda/device/linear/skinny.cuh"

enum { SKINNY_PRODUCT, BATCH_PRODUCT, GENERAL_PRODUCT };

static __device__ __forceinline__ int product_path_of(const machine &m)
{
    const input &in = own().in[m.instruction];
    if (BATCH_PATH && in.batch)
        return BATCH_PRODUCT;
    return GENERAL_PATH && (!SKINNY_PATH || !in.skinny) ? GENERAL_PRODUCT : SKINNY_PRODUCT;
}

/* A product of some rows, by its way. */
static __device__ __forceinline__ void multiply(machine &m, const input &in, int way)
{
    constexpr int HIDDEN = blocks_of(MGL_HIDDEN), ATTENDED = blocks_of(MGL_ATTENDED),
                  FFN = blocks_of(MGL_FFN);
    if (BATCH_PATH && way == BATCH_PRODUCT) {
        m = consume_batch(m);
    } else if (GENERAL_PATH && way == GENERAL_PRODUCT) {
        gather_run(m, in);
        input_is_there(m, m.base + in.end);
        __syncwarp();
        m = consume_general(m);
    } else if (in.kblocks == HIDDEN) {
        consume_skinny<HIDDEN>(m, in);
    } else if (ATTENDED != HIDDEN && in.kblocks == ATTENDED) {
        consume_skinny<ATTENDED>(m, in);
    } else if (FFN != HIDDEN && FFN != ATTENDED) {
        consume_skinny<FFN>(m, in);
    }
}

/* The consumers' part of a product. Once a warp has left its last sums, the epilogue may go on, and
 * the task's record be gone: what is needed later is taken before. False: the product has no rows,
 * and leaves nothing in the slots. */
static __device__ __forceinline__ bool make_product(machine &m, int way)
{
    load_ring_place(m);
    if (!own().in[m.instruction].flows)
        wait_start(m);
    if (own().in[m.instruction].count == 0) {
        /* no rows: the tape goes by */
        if (thread_of(m) == 0)
            own().pending = 0;
        ring_done(m, m.base + own().in[m.instruction].end);
        save_ring_place(m);
        return false;
    }
    const input in = own().in[m.instruction];
    own().end[m.warp] = m.base + in.end;
    multiply(m, in, way);
    ring_done(m, own().end[m.warp]);
    save_ring_place(m);
    return true;
}

#ifdef MGL_OBJECT

/* What a product leaves of the machine, and whether there are sums in the slots. */
struct product_end {
    u32 known, freed, slots, starved;
    bool left;
};

static __device__ __forceinline__ product_end end_of(machine &m, int way)
{
    const bool left = make_product(m, way);
    return {m.known, m.freed, m.psums, trace_starved_of(m), left};
}

FAR product_end do_skinny(machine m);
FAR product_end do_batch(machine m);
FAR product_end do_general(machine m);

#if IN_OBJECT(SKINNY)
FAR product_end do_skinny(machine m)
{
    return end_of(m, SKINNY_PRODUCT);
}
#endif

#if IN_OBJECT(BATCH)
FAR product_end do_batch(machine m)
{
    return end_of(m, BATCH_PRODUCT);
}
#endif

#if IN_OBJECT(GENERAL)
FAR product_end do_general(machine m)
{
    return end_of(m, GENERAL_PRODUCT);
}
#endif

static __device__ __forceinline__ bool consume_product(machine &m)
{
    product_end end = {};
    switch (product_path_of(m)) {
    case BATCH_PRODUCT:
        end = do_batch(m);
        break;
    case GENERAL_PRODUCT:
        end = do_general(m);
        break;
    default:
        end = do_skinny(m);
    }
    m.known = end.known;
    m.freed = end.freed;
    m.psums = end.slots;
    trace_set_starved(m, end.starved);
    return end.left;
}

#else

static __device__ __forceinline__ bool consume_product(machine &m)
{
    return make_product(m, product_path_of(m));
}

#endif

#endif
