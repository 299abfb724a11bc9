/* merge, the reduction of split attention: the weighted mean of the partial results of all
 * splits, split 0 first. The consumers run merge_task.
 *
 * A warp handles a block of 32 dimensions of a row's head, four in a lane. If the task has more
 * blocks than warps, a warp handles two blocks of a head at once, so that all blocks are in
 * flight together. Four groups of lanes take the splits in turn, and a lane loads MERGE_AHEAD
 * splits at once: up to 16 splits are in flight before the first check. Warps share nothing, so
 * no warp waits for another. */
#include "vm/cuda/device/attention/partials.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
enum {
    MERGE_LANES = MGL_MERGE_DIMS / 4,
    MERGE_GROUPS = 4,
    MERGE_SPLITS = MERGE_GROUPS * MERGE_AHEAD,
    MERGE_BLOCKS = (HEAD_DIM + MGL_MERGE_DIMS - 1) / MGL_MERGE_DIMS, /* blocks of a head */
    MERGE_WIDE = MERGE_BLOCKS < 2 ? 1 : 2 /* blocks that a warp handles at once in a task with
                                             many blocks */
};

/* Addresses of a lane's partial results: the first split's block and weight, and the stride in
 * floats to its next split. `left`: dimensions of the head from the lane's first one on, at
 * least 1. */
struct part_place {
    const float *value, *weight;
    long long stride;
    int count, left;
};

/* region: device */
/* The largest maximum of all groups' partial results. */
template <int BLOCKS>
static __device__ __forceinline__ float largest_part(float top,
                                                     const part_words<MERGE_AHEAD, BLOCKS> &parts)
{
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++)
        top = fmaxf(top, __uint_as_float(parts.weight[i].x));
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, MERGE_LANES));
    return fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, 2 * MERGE_LANES));
}

/* Adds up the groups' sums. */
template <int BLOCKS> static __device__ __forceinline__ void add_groups(merged_blocks<BLOCKS> &all)
{
#pragma unroll
    for (int offset = MERGE_LANES; offset < 32; offset <<= 1) {
        all.sum += __shfl_xor_sync(0xFFFFFFFFu, all.sum, offset);
#pragma unroll
        for (int j = 0; j < 4 * BLOCKS; j++)
            all.value[j / 4][j % 4] +=
                __shfl_xor_sync(0xFFFFFFFFu, all.value[j / 4][j % 4], offset);
    }
}

/* Offset in floats from a lane's dimensions in the first block to those in block b. A lane past
 * the head's last dimension rereads its first block. */
static __device__ __forceinline__ int block_at(const part_place &from, int b)
{
    return b * MGL_MERGE_DIMS < from.left ? b * MGL_MERGE_DIMS : 0;
}

/* Loads a lane's partial results; missing splits get neutral values. */
template <int BLOCKS>
static __device__ __forceinline__ void load_parts(const part_place &from,
                                                  part_words<MERGE_AHEAD, BLOCKS> &to, u64 policy)
{
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++) {
        const bool is = i < from.count;
        to.weight[i] = is ? load_words(from.weight + i * from.stride, policy)
                          : make_uint4(__float_as_uint(-INFINITY), 0, 0, 0);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            to.value[i][b] =
                is ? load_words(from.value + i * from.stride + block_at(from, b), policy)
                   : make_uint4(0, 0, 0, 0);
    }
}

/* load_parts for a region without flags. A partial result is head_dim + 2 floats, which may not be
 * aligned to 16 bytes. */
template <int BLOCKS>
static __device__ __forceinline__ void load_floats(const part_place &from,
                                                   part_words<MERGE_AHEAD, BLOCKS> &to)
{
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++) {
        const bool is = i < from.count;
        const u32 *weight = (const u32 *)from.weight + i * from.stride;
        to.weight[i] = is ? make_uint4(weight[0], weight[1], 0, 0)
                          : make_uint4(__float_as_uint(-INFINITY), 0, 0, 0);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const u32 *value = (const u32 *)from.value + i * from.stride + block_at(from, b);
            const int last = from.left - block_at(from, b) - 1;
            to.value[i][b] = is ? make_uint4(value[0], value[min(1, last)], value[min(2, last)],
                                             value[min(3, last)])
                                : make_uint4(0, 0, 0, 0);
        }
    }
}

/* Reloads words that are not written yet. Returns whether all words were written. */
template <int BLOCKS>
static __device__ __forceinline__ bool look_again(const part_place &from,
                                                  part_words<MERGE_AHEAD, BLOCKS> &to, u64 policy)
{
    bool written = true;
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++) {
        const bool weight = largest(to.weight[i]) != 0xFFFFFFFFu;
        written = written && weight;
        if (!weight)
            to.weight[i] = load_words(from.weight + i * from.stride, policy);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const bool value = largest(to.value[i][b]) != 0xFFFFFFFFu;
            written = written && value;
            if (!value)
                to.value[i][b] =
                    load_words(from.value + i * from.stride + block_at(from, b), policy);
        }
    }
    return written;
}

/* Merges four dimensions of each block of a head over all splits. `place`: the lane's first
 * split; `splits`: number of splits. False if a wait gave up. */
template <int BLOCKS>
static __device__ __forceinline__ bool merge_splits(const machine &m, part_place place, bool flag,
                                                    int splits, merged_blocks<BLOCKS> &all,
                                                    u64 policy)
{
    bool written = true;
    all = {};
    all.max = -INFINITY;
    for (;; splits -= MERGE_SPLITS) {
        part_words<MERGE_AHEAD, BLOCKS> parts;
        place.count = (splits + MERGE_GROUPS - 1 - m.lane / MERGE_LANES) / MERGE_GROUPS;
        if (flag)
            load_parts(place, parts, policy);
        else
            load_floats(place, parts);
        if (flag && written)
            written = await_flags<QUIETLY>(m, MGL_OPERAND(merge, part),
                                           [&] { return look_again(place, parts, policy); });
        __syncwarp();
        add_parts(all, parts, largest_part(all.max, parts));
        if (splits <= MERGE_SPLITS)
            break;
        place.value += MERGE_AHEAD * place.stride;
        place.weight += MERGE_AHEAD * place.stride;
    }
    add_groups(all);
    return written;
}

/* Stores a lane's four dimensions of the mean in block b. `column`: its first column in the
 * first block; `left`: dimensions of the head from that column on. */
template <int BLOCKS>
static __device__ __forceinline__ void store_mean(const view &y, int r, int column, int left,
                                                  const merged_blocks<BLOCKS> &all, int b,
                                                  u64 policy)
{
    const float inverse = reciprocal(all.sum);
    float mean[4];
    column += b * MGL_MERGE_DIMS;
    left -= b * MGL_MERGE_DIMS;
#pragma unroll
    for (int j = 0; j < 4; j++)
        mean[j] = all.value[b][j] * inverse;
    if (HEAD_DIM % 4 == 0 && y.flag && y.dtype == DTYPE_F32 && left >= 4)
        return store_four_floats(element_of(y, r, column), mean, policy);
#pragma unroll
    for (int j = 0; j < 4; j += 2)
        if (j < left)
            store_pair(y, r, column + j, mean[j], mean[j + 1], true, policy);
}

/* Merges all rows and heads of a task, BLOCKS blocks of a head at a time. Not inlined, to keep
 * its registers separate from those of the main loop. */
template <int BLOCKS> NEAR_OR_INLINE void merge_heads(machine m)
{
    constexpr int UNITS = (MERGE_BLOCKS + BLOCKS - 1) / BLOCKS; /* units of a head */
    const mgl_device_operand &part = operand(m, MGL_OPERAND(merge, part));
    const u64 policy = keep_policy();
    const view y = view_of(m, operand(m, MGL_OPERAND(merge, y)));
    const int units = operand(m, MGL_OPERAND(merge, y)).count[1] / HEAD_DIM * UNITS; /* units of
                                                                                        a row */
    const float *parts = (const float *)address_of(m, part) + m.lane / MERGE_LANES * part.stride0;
    const int lane_dim = m.lane % MERGE_LANES * 4;
    bool written = true;
    int r = 0;
    if (!part.flag)
        wait_start(m);
    for (int unit = m.warp;; unit += MGL_WARPS) {
        for (; unit >= units; unit -= units)
            r++;
        if (r >= rows_of(m))
            break;
        if (MGL_UNSPLIT > 0 && part.first1 != MGL_KV_ALL && part.first1 != kind_of_row(r))
            continue;
        const int head = unit / UNITS, d = unit % UNITS * BLOCKS * MGL_MERGE_DIMS + lane_dim;
        const int left = HEAD_DIM - d;
        const float *from = parts + (long long)r * part.stride1 + (long long)head * part.stride2;
        const part_place place = {from + (left > 0 ? d : 0), from + HEAD_DIM,
                                  MERGE_GROUPS * part.stride0, 0, max(left, 1)};
        merged_blocks<BLOCKS> all;
        written = merge_splits(m, place, part.flag, part.count[0], all, policy) && written;
        wait_start(m);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            if (m.lane < MERGE_LANES && left > b * MGL_MERGE_DIMS)
                store_mean(y, r, head * HEAD_DIM + d, left, all, b, policy);
    }
    if (!written) /* reported here, where the call costs no registers of the loop */
        report_flags(m, MGL_OPERAND(merge, part));
}

static __device__ __forceinline__ void merge_task(machine &m)
{
    const int blocks = operand(m, MGL_OPERAND(merge, y)).count[1] / HEAD_DIM * MERGE_BLOCKS;
    if (MERGE_WIDE > 1 && blocks > MGL_WARPS)
        return merge_heads<MERGE_WIDE>(m);
    merge_heads<1>(m);
}

/* region: end */
