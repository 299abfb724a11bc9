/*
 * The geometry of the tape: where a weight lies on it, and which weight lies at a place. Stands
 * here once, for lowering, packing, both machines and synthetic weights: plain C that NVRTC
 * compiles too, without includes.
 *
 *     weight row   cut into k blocks of MGL_BLOCK_ROW_BYTES bytes; the last one may be partly zeros
 *     row group    MGL_ROW_GROUP rows that follow one another, and lie together
 *     block        one k block of each row of a group, row after row: MGL_BLOCK_BYTES
 *     segment      row groups, one after the other; of two tensors (layout g8x2) in turn
 *     page         what the ring is filled with: whole blocks of whichever segments
 *
 * The blocks of a row group do not lie in the order of their columns. Warp w works on the run of
 * blocks [w S, (w + 1) S), S = ceil(blocks / warps); the runs' first blocks come first, then their
 * second ones, and so on, so that every page has some for each warp.
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
    MGL_GRANULE_BYTES = 16 /* what a thread moves at once, and so what comes into sight together:
                              what flagged regions begin and end on */
};

/* Columns of a block, of weights of so many bits. */
MGL_TAPE_FN int mgl_tape_columns(int bits)
{
    return MGL_BLOCK_ROW_BYTES * 8 / bits;
}

/* k blocks of a row of so many columns. */
MGL_TAPE_FN int mgl_tape_blocks(int columns, int bits)
{
    return (columns + MGL_BLOCK_ROW_BYTES * 8 / bits - 1) / (MGL_BLOCK_ROW_BYTES * 8 / bits);
}

/* The order of the blocks of a row group. */
typedef struct mgl_tape_order {
    int warps;   /* that have blocks */
    int run;     /* blocks of each of them but the last */
    int of_last; /* blocks of the last */
} mgl_tape_order;

MGL_TAPE_FN mgl_tape_order mgl_tape_order_of(int blocks, int warps)
{
    const int run = (blocks + warps - 1) / warps, last = (blocks - 1) / run;
    const mgl_tape_order order = {last + 1, run, blocks - last * run};
    return order;
}

/* The place, in blocks from the start of the row group, of block i of a warp's run. */
MGL_TAPE_FN int mgl_tape_place(mgl_tape_order order, int warp, int i)
{
    return i < order.of_last
               ? i * order.warps + warp
               : order.of_last * order.warps + (i - order.of_last) * (order.warps - 1) + warp;
}

/* The same of k block `block`. */
MGL_TAPE_FN int mgl_tape_place_of_block(int blocks, int warps, int block)
{
    const mgl_tape_order order = mgl_tape_order_of(blocks, warps);
    return mgl_tape_place(order, block / order.run, block % order.run);
}

/* Which k block lies at a place: the inverse. */
MGL_TAPE_FN int mgl_tape_block_at(int blocks, int warps, int place)
{
    const mgl_tape_order order = mgl_tape_order_of(blocks, warps);
    const int full = order.of_last * order.warps;
    if (place < full)
        return place % order.warps * order.run + place / order.warps;
    return (place - full) % (order.warps - 1) * order.run + order.of_last +
           (place - full) / (order.warps - 1);
}

/* A weight of a segment: row and column count from the segment's first ones. */
typedef struct mgl_tape_weight {
    int which; /* of the segment's tensors */
    int row, column;
} mgl_tape_weight;

/* The weight that is element `index` of a segment, of so many blocks a row, columns a block, and
 * tensors; the row or column may be beyond the tensor's edge, where the tape has zeros. */
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
