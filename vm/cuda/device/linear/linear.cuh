/*
 * Products with streamed weights: y[r, o] = sum over k of x[r, k] W[o, k], for the ops that have a
 * tape. The weights are stored in row groups of 8 rows and k blocks of 64 bytes. Lane l has the 16
 * bytes of quarter l % 4 of row l / 4 of a block, so a block is one 16-byte load in each lane.
 *
 * The k dimension is split over the W consumer warps (split-K). Warp w has k blocks
 * [w S, (w + 1) S) of every row group, with S = ceil(blocks / W). The tape is ordered so that each
 * page has blocks for every warp (schedule/tape.h). A warp needs only its run of the input. It
 * multiplies the run by the weights of the norm (the epilogue applies the factor 1 / RMS), rounds
 * it to the dtype of the weights, and stores it in its own part of the activation buffer. Rows that
 * do not fit in the activation buffer are read from memory each time.
 *
 * 16-bit weights use tensor cores: mma.m16n8k16 with f32 sums. The four words of a lane's 16 bytes
 * are the A operand without rearrangement: rows 0 to 7 of A are words 0 and 2 of the 8 weight rows,
 * rows 8 to 15 are words 1 and 3. So a block is one MMA. An activation row takes two columns of the
 * B operand: the values for the even words, and the values for the odd words. Of the 16 x 2 sums,
 * rows 0 to 7 of the first column and rows 8 to 15 of the second column are used. The order of k
 * within a block is arbitrary, because it is the same for both operands.
 *
 * Inputs that need more than 16 bits (outputs of a norm, f32 exchange) are split into two parts,
 * x = high + low, each rounded to 16 bits. Together they have at least 16 bits of mantissa. The low
 * parts take two more columns of B. So the 8 columns of an MMA have room for 4 rows, or for 2 rows
 * with low parts. Up to that number of rows, the skinny variant is used (linear/skinny.cuh), up to
 * 8 rows the batch variant (linear/batch.cuh), otherwise sum_general. All variants add in the same
 * order: even and odd blocks of the run separately. f32 weights use fused multiply-adds. Scaled
 * weights have other operands and sums (linear/formats.cuh).
 *
 * Each warp writes its sums of some row groups to a partial-sum buffer (warp, row group, row, 8).
 * The epilogue adds the sums of the warps in a fixed order. Therefore the result of a row does not
 * depend on the other rows of the epoch.
 */
#ifndef MGL_DEVICE_LINEAR_LINEAR_CUH
#define MGL_DEVICE_LINEAR_LINEAR_CUH

#include "vm/cuda/device/linear/batch.cuh"
#include "vm/cuda/device/linear/general.cuh"
#include "vm/cuda/device/linear/scaled_batch.cuh"
#include "vm/cuda/device/linear/skinny.cuh"

enum { SKINNY_PRODUCT, BATCH_PRODUCT, GENERAL_PRODUCT };

static __device__ __forceinline__ int product_path_of(const machine &m)
{
    const input &in = own().in[m.instruction];
    if (BATCH_PATH && in.batch)
        return BATCH_PRODUCT;
    return GENERAL_PATH && (!SKINNY_PATH || !in.skinny) ? GENERAL_PRODUCT : SKINNY_PRODUCT;
}

/* Whether tasks have unscaled weights and an input of as many blocks as `columns` columns. */
static __device__ __forceinline__ constexpr bool has_unscaled(int columns)
{
    const int widths[] = {MGL_HIDDEN, MGL_ATTENDED, MGL_FFN};
    bool has = !MGL_SCALED;
    for (int i = 0; i < 3; i++)
        has |= blocks_of(widths[i]) == blocks_of(columns) &&
               (has_input(MGL_INPUTS, widths[i], MGL_INPUT_HALF) ||
                has_input(MGL_INPUTS, widths[i], MGL_INPUT_PARTS));
    return has;
}

/* Computes a product of at least one row with its kernel variant. */
static __device__ __forceinline__ void multiply(machine &m, const input &in, int way)
{
    constexpr int HIDDEN = blocks_of(MGL_HIDDEN), ATTENDED = blocks_of(MGL_ATTENDED),
                  FFN = blocks_of(MGL_FFN);
    if (BATCH_PATH && way == BATCH_PRODUCT) {
#if MGL_SCALED
        if (in.format > 0)
            return consume_scaled_batch(m, in);
#endif
        m = consume_batch(m);
    } else if (GENERAL_PATH && way == GENERAL_PRODUCT) {
        gather_any(m, in);
        input_is_there(m, m.base + in.end);
        __syncwarp();
        m = consume_general(m);
#if MGL_SCALED
    } else if (in.format > 0) {
        consume_scaled_skinny(m, in);
#endif
    } else if (in.kblocks == HIDDEN) {
        if constexpr (has_unscaled(MGL_HIDDEN))
            consume_skinny<HIDDEN>(m, in);
    } else if (ATTENDED != HIDDEN && in.kblocks == ATTENDED) {
        if constexpr (has_unscaled(MGL_ATTENDED))
            consume_skinny<ATTENDED>(m, in);
    } else if (FFN != HIDDEN && FFN != ATTENDED) {
        if constexpr (has_unscaled(MGL_FFN))
            consume_skinny<FFN>(m, in);
    }
}

/* The consumers' part of a product. After a warp has written its last sums, the epilogue may
 * continue, and the record of the task may be overwritten. Therefore values that are needed later
 * are copied before. False: the product has no rows, and wrote no partial sums. */
static __device__ __forceinline__ bool make_product(machine &m, int way)
{
    load_ring_place(m);
    if (!own().in[m.instruction].flows)
        wait_start(m);
    if (own().in[m.instruction].count == 0) {
        /* no rows: skip the tape of the task */
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

/* The state of the machine after a product, and whether it wrote partial sums. */
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
