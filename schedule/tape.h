/*
 * Interleaved tape layout: the place of a weight on the tape, and the weight at a place. Lowering,
 * packing, both machines and synthetic weights share this file: plain C without includes that NVRTC
 * compiles too.
 *
 *     weight row   divided into k blocks of MGL_BLOCK_ROW_BYTES bytes; the last is zero-padded
 *     row group    MGL_ROW_GROUP adjacent rows, stored together
 *     block        one k block of each row of a group, row after row: MGL_BLOCK_BYTES
 *     segment      row groups in order; with two tensors (layout g8x2) alternating
 *     page         the unit of the ring: whole blocks, of one or more segments
 *
 * The blocks of a row group are not in column order. Warp w multiplies the run of blocks [w S, (w +
 * 1) S), S = ceil(blocks / warps). The tape has the first blocks of all runs, then their second
 * blocks, and so on, so that every page has blocks for each warp.
 */
#ifndef MGL_SCHEDULE_TAPE_H
#define MGL_SCHEDULE_TAPE_H

#ifndef MGL_TAPE_FN
#define MGL_TAPE_FN static inline
#endif

enum {
    MGL_ROW_GROUP = 8,
    MGL_BLOCK_ROW_BYTES = 64,
    MGL_BLOCK_BYTES = MGL_ROW_GROUP * MGL_BLOCK_ROW_BYTES,
    MGL_PART_COLUMNS = 32, /* columns that one MMA adds up; a block of 16-bit weights */
    MGL_GRANULE_BYTES = 16 /* bytes that a thread stores at once, so they become visible
                              together; the alignment of flagged regions */
};

/* Columns of a block, for weights of `bits` bits. */
MGL_TAPE_FN int mgl_tape_columns(int bits)
{
    return MGL_BLOCK_ROW_BYTES * 8 / bits;
}

/* k blocks of a row of `columns` columns. */
MGL_TAPE_FN int mgl_tape_blocks(int columns, int bits)
{
    return (columns + MGL_BLOCK_ROW_BYTES * 8 / bits - 1) / (MGL_BLOCK_ROW_BYTES * 8 / bits);
}

/* The order of the blocks of a row group. */
typedef struct mgl_tape_order {
    int warps;   /* warps that have blocks */
    int run;     /* blocks of each warp except the last */
    int of_last; /* blocks of the last warp */
} mgl_tape_order;

MGL_TAPE_FN mgl_tape_order mgl_tape_order_of(int blocks, int warps)
{
    const int run = (blocks + warps - 1) / warps, last = (blocks - 1) / run;
    const mgl_tape_order order = {last + 1, run, blocks - last * run};
    return order;
}

/* The place of block i of a warp's run, in blocks from the start of the row group. */
MGL_TAPE_FN int mgl_tape_place(mgl_tape_order order, int warp, int i)
{
    return i < order.of_last
               ? i * order.warps + warp
               : order.of_last * order.warps + (i - order.of_last) * (order.warps - 1) + warp;
}

/* The place of k block `block`. */
MGL_TAPE_FN int mgl_tape_place_of_block(int blocks, int warps, int block)
{
    const mgl_tape_order order = mgl_tape_order_of(blocks, warps);
    return mgl_tape_place(order, block / order.run, block % order.run);
}

/* The k block at a place: the inverse of mgl_tape_place_of_block. */
MGL_TAPE_FN int mgl_tape_block_at(int blocks, int warps, int place)
{
    const mgl_tape_order order = mgl_tape_order_of(blocks, warps);
    const int full = order.of_last * order.warps;
    if (place < full)
        return place % order.warps * order.run + place / order.warps;
    return (place - full) % (order.warps - 1) * order.run + order.of_last +
           (place - full) / (order.warps - 1);
}

/* A weight of a segment. Row and column count from the first row and column of the segment. */
typedef struct mgl_tape_weight {
    int which; /* index among the tensors of the segment */
    int row, column;
} mgl_tape_weight;

/* The weight at element `index` of a segment with `blocks` k blocks a row, `columns` columns a
 * block and `tensors` tensors. The row or column may lie beyond the tensor, where the tape has
 * zeros. */
MGL_TAPE_FN mgl_tape_weight mgl_tape_weight_at(long long index, int blocks, int columns,
                                               int tensors, int warps)
{
    const long long block = index / (columns * MGL_ROW_GROUP);
    const int group = (int)(block / blocks / tensors);
    const mgl_tape_weight weight = {
        (int)(block / blocks % tensors),
        group * MGL_ROW_GROUP + (int)(index / columns % MGL_ROW_GROUP),
        mgl_tape_block_at(blocks, warps, (int)(block % blocks)) * columns + (int)(index % columns)};
    return weight;
}

#endif
