/*
 * The input of merge_add: the partials of split-KV attention. Each product merges them while it
 * reads them, so that no task and no edge is needed between attention and o. Only splits that have
 * positions are read (mgl_splits_used); a short sequence in a large cache has one or two.
 *
 * PARTS_AHEAD partials are added at once, in the order of the splits, in all kernel variants.
 * Therefore the bits of a row do not depend on the other rows of the epoch.
 */
#ifndef MGL_DEVICE_LINEAR_MERGED_CUH
#define MGL_DEVICE_LINEAR_MERGED_CUH

#include "vm/cuda/device/attention/partials.cuh"

enum {
    /* words of four columns that a lane of a skinny product has in the input of o */
    MERGED_WORDS =
        ((mgl_tape_blocks(MGL_ATTENDED, 8 * weight_format::SIZE) + MGL_WARPS - 1) / MGL_WARPS * 8 +
         31) /
        32,
    /* partials of each word that a lane loads at once; those of all words must fit in registers */
    PARTS_AHEAD = MERGED_WORDS <= 2   ? 3
                  : MERGED_WORDS <= 3 ? 2
                                      : 1
};
typedef part_words<PARTS_AHEAD> next_parts;

/* The partials of one row. */
struct part_row {
    const float *at; /* split 0, head 0 */
    int split, head; /* floats from one split to the next, and from one head to the next */
    int used;        /* number of splits that have positions: the first ones, and the last split */
    int last;        /* number of the last split */
    bool flag;
};

static __device__ __forceinline__ part_row parts_of(const machine &m, int r)
{
    const mgl_device_operand &o = operand(m, MGL_PRODUCT_INPUT);
    const int first =
        own().table[mgl_step_first_row(own().table, r) * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    return {(const float *)address_of(m, o) + (long long)r * o.stride1,
            (int)o.stride0,
            o.stride2,
            mgl_splits_used(first, o.extent0, MGL_SHARE),
            o.extent0 - 1,
            o.flag != 0};
}

/* Partial i of the splits in use. */
static __device__ __forceinline__ const float *part_at(const part_row &p, int i)
{
    return p.at + (long long)(i + 1 < p.used ? i : p.last) * p.split;
}

/* Index of the maximum and the sum of a head among the floats of a split of a flagged row. `place`
 * is the index of one of its dimensions. */
static __device__ __forceinline__ int weight_place(int place)
{
    return place / (HEAD_DIM + 4) * (HEAD_DIM + 4) + HEAD_DIM;
}

/* The largest maximum of the partials and of `top`. */
static __device__ __forceinline__ float largest_of(float top, const next_parts &parts)
{
#pragma unroll
    for (int i = 0; i < PARTS_AHEAD; i++)
        top = fmaxf(top, __uint_as_float(parts.weight[i].x));
    return top;
}

static __device__ __forceinline__ void add_next(merged &all, const next_parts &parts)
{
    add_parts(all, parts, largest_of(all.max, parts));
}

static __device__ __forceinline__ merged nothing_merged()
{
    return {-INFINITY, 0.0f, {{0.0f, 0.0f, 0.0f, 0.0f}}};
}

static __device__ __forceinline__ next_parts no_parts()
{
    next_parts none;
#pragma unroll
    for (int i = 0; i < PARTS_AHEAD; i++) {
        none.value[i][0] = make_uint4(0, 0, 0, 0);
        none.weight[i] = make_uint4(__float_as_uint(-INFINITY), 0, 0, 0);
    }
    return none;
}

/* ---- any column, any edge ---------------------------------------------------------------------
 */

/* Merges column k of a row that is not flagged. */
static __device__ __forceinline__ float merge_column(const part_row &p, int k)
{
    const int place = k / HEAD_DIM * p.head;
    merged all = nothing_merged();
    for (int i = 0; i < p.used; i += PARTS_AHEAD) {
        next_parts parts = no_parts();
        for (int j = 0; j < PARTS_AHEAD && i + j < p.used; j++) {
            const u32 *from = (const u32 *)(part_at(p, i + j) + place);
            parts.value[j][0].x = from[k % HEAD_DIM];
            parts.weight[j] = make_uint4(from[HEAD_DIM], from[HEAD_DIM + 1], 0, 0);
        }
        add_next(all, parts);
    }
    return all.value[0][0] * reciprocal(all.sum);
}

/* Merges four columns of one head of a flagged row. */
static __device__ __forceinline__ void merge_four(const machine &m, const part_row &p, int k,
                                                  float *to)
{
    const u64 policy = keep_policy();
    const int place = k / HEAD_DIM * p.head;
    merged all = nothing_merged();
    for (int i = 0; i < p.used; i += PARTS_AHEAD) {
        next_parts parts = no_parts();
        for (int j = 0; j < PARTS_AHEAD && i + j < p.used; j++) {
            const float *from = part_at(p, i + j) + place;
            parts.value[j][0] = poll_words(m, from + k % HEAD_DIM, MGL_PRODUCT_INPUT, policy);
            parts.weight[j] = poll_words(m, from + HEAD_DIM, MGL_PRODUCT_INPUT, policy);
        }
        add_next(all, parts);
    }
    const float inverse = reciprocal(all.sum);
#pragma unroll
    for (int j = 0; j < 4; j++)
        to[j] = all.value[0][j] * inverse;
}

struct merged_chunk {
    float value[weight_format::VECTOR];
};

/* Merges the columns of a chunk of row r, from column k on; zeros from column `columns` on. Out of
 * line, so that its registers do not add to those of other products. */
static __device__ __noinline__ merged_chunk merge_chunk(const machine m, int r, int k, int columns)
{
    const part_row p = parts_of(m, r);
    merged_chunk to = {};
    for (int i = 0; i < weight_format::VECTOR && k + i < columns; i++)
        if (!p.flag)
            to.value[i] = merge_column(p, k + i);
        else if (i % 4 == 0)
            merge_four(m, p, k + i, to.value + i);
    return to;
}

#endif
