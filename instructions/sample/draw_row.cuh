/*
 * Draws a token of one row with the whole block: computes the algorithm of
 * instructions/sample/sampler.h in other steps. All sums are integer sums, so their order does not
 * matter and the token is the same.
 *
 *   guess     With top-p alone: bins over a sample of the row and over the bests of head's parts
 *             estimate the cut. One pass over the row lists the values near it, and sums the
 *             values above by segments of consecutive ids, and in total. If the list does not
 *             contain the searched sum, the next two steps start over.
 *   bins      A cut is searched in bins of the ranking. The first bins have equal widths of
 *             distance below the best, chosen by the spread of the bests of head's parts. One
 *             pass over the row sums each bin.
 *   collect   A second pass copies the values of the bin with the cut to a list in the activation
 *             buffer, and sums the values above that bin by segments of consecutive ids.
 *   range     The keys of the list are distributed over bins again, until a bin is one key: the
 *             cut's. If the values do not fit in the list, the row is used instead.
 *   walk      The kept rest of the list is added to the segments. The block searches the segment
 *             that contains the token.
 */
#ifndef MGL_INSTRUCTIONS_SAMPLE_DRAW_ROW_CUH
#define MGL_INSTRUCTIONS_SAMPLE_DRAW_ROW_CUH

#include "instructions/sample/draw_guess.cuh"

/* ---- the walk -------------------------------------------------------------------------------- */

/* The remaining part of the walk. */
struct walking {
    u64 target;
    u32 ties; /* ties that may still be taken */
    u64 unit; /* weight of each tie */
};

/* The lane whose share contains the token, where each lane has a sum above the cut and a number
 * of ties, in lane order. -1: the token is after all lanes. Run by one warp. */
static __device__ __forceinline__ int find_lane(walking &to, u64 sum, u32 equal)
{
    const u32 equals = sum_up_to(equal) - equal, taken = min(equal, to.ties - min(to.ties, equals));
    const u64 weight = sum + taken * to.unit, running = sum_up_to(weight);
    const u32 beyond = __ballot_sync(0xFFFFFFFFu, running > to.target);
    const int lane = __ffs((int)beyond) - 1;
    const u64 before = __shfl_sync(0xFFFFFFFFu, lane < 0 ? running : running - weight, lane & 31);
    const u32 passed = __shfl_sync(0xFFFFFFFFu, lane < 0 ? equals + equal : equals, lane & 31);
    to.target -= before;
    to.ties -= min(to.ties, passed);
    return lane;
}

/* Skips one contribution if the token is not in it. Returns whether it did. */
static __device__ __forceinline__ bool go_by(walking &to, u64 sum, u32 equal)
{
    const u64 weight = sum + min(equal, to.ties) * to.unit;
    if (to.target < weight)
        return false;
    to.target -= weight;
    to.ties -= min(equal, to.ties);
    return true;
}

/* The segment that contains the token; -1: none. Each warp computes it. */
static __device__ __forceinline__ int find_segment(walking &to, u64 random)
{
    const drawing &d = own_drawing();
    const int lane = (int)thread_index() % 32;
    u64 sum = 0;
    u32 equal = 0;
#pragma unroll
    for (int i = 0; i < SEGMENTS_OF_LANE; i++) {
        sum += d.sums[lane * SEGMENTS_OF_LANE + i];
        equal += d.equal[lane * SEGMENTS_OF_LANE + i];
    }
    to.target = mgl_sampler_scale(random, sum_of_lanes(sum) + to.ties * to.unit);
    const int owner = find_lane(to, sum, equal);
    if (owner < 0)
        return -1;
    int segment = owner * SEGMENTS_OF_LANE;
#pragma unroll 1
    for (int i = 0; i + 1 < SEGMENTS_OF_LANE; i++, segment++)
        if (!go_by(to, d.sums[segment], d.equal[segment]))
            break;
    return segment;
}

/* The weights of four values above the cut, and which values are tied with it. */
struct four_kept {
    u64 weight[4];
    bool tied[4];
};

static __device__ __forceinline__ four_kept keep_four(const values &v, const float4 &x)
{
    const drawing &d = own_drawing();
    const u32 cut = d.cut.key;
    const u64 least = d.least;
    const float4 l = divide(v, x);
    four_kept k;
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const u32 key = mgl_sampler_key(part_of(l, n));
        k.tied[n] = key == cut;
        k.weight[n] = key > cut ? weight_of(v, part_of(l, n), least) : 0;
    }
    return k;
}

/* mgl_sampler_walk by the block, after the segments are summed: each warp sums a part of the
 * segment with the token, and the warp whose part has the token finds it: d.token. */
static __device__ __noinline__ void walk(u64 random)
{
    drawing &d = own_drawing();
    const values v = d.row;
    const int warp = (int)thread_index() / 32, lane = (int)thread_index() % 32;
    walking to = {0, d.cut.ties, 0};
    if (d.cut.ties)
        to.unit = weight_of(v, mgl_sampler_value(d.cut.key), d.least);
    if (thread_index() == 0)
        d.token = 0;
    const int segment = find_segment(to, random), end = (segment + 1) * SEGMENT;
#pragma unroll 1
    for (int from = segment * SEGMENT; segment >= 0 && from < end; from += MGL_WARPS * WARP_IDS) {
        const int id = from + warp * WARP_IDS + lane * 4;
        const four_kept k = keep_four(v, load_four(v, id < end ? id : v.count));
        const u64 sum = k.weight[0] + k.weight[1] + k.weight[2] + k.weight[3];
        const u32 equal = k.tied[0] + k.tied[1] + k.tied[2] + k.tied[3];
        const u64 all = sum_of_lanes(sum);
        const u32 equals = __reduce_add_sync(0xFFFFFFFFu, equal);
        if (lane == 0) {
            d.of_warp[warp] = all;
            d.equal_of_warp[warp] = equals;
        }
        consumer_barrier();
        int part = 0;
#pragma unroll 1
        while (part < MGL_WARPS && go_by(to, d.of_warp[part], d.equal_of_warp[part]))
            part++;
        if (part == warp && find_lane(to, sum, equal) == lane) {
            int n = 0;
#pragma unroll
            for (int i = 0; i < 3; i++)
                if (n == i && go_by(to, k.weight[i], k.tied[i]))
                    n = i + 1;
            d.token = id + n;
        }
        if (part < MGL_WARPS)
            break;
        consumer_barrier();
    }
    consumer_barrier();
}

/* log2 of the width of the first bins, such that they cover 8 to 16 times the spread of the
 * parts' bests. In practice this covers all values of a row. Farther values fall into the last
 * bin. */
static __device__ __forceinline__ int width_of(const values &v, float lowest)
{
    const u32 apart = distance_from(v.best, lowest);
    return apart == 0 ? (int)WIDEST_BIN
                      : max(0, min((int)WIDEST_BIN, 32 + 3 - __clz((int)apart) - (int)BIN_BITS));
}

/* The key and id of the best of a row's parts, and the least key of a part. Run by one warp. */
struct best_parts {
    u32 best, lowest;
    int id;
};

static __device__ __forceinline__ best_parts find_best(const mgl_device_operand &values,
                                                       const mgl_device_operand *ids, int r)
{
    u32 best = 0, lowest = 0xFFFFFFFFu;
    int id = 0x7FFFFFFF;
#pragma unroll 1
    for (int i = (int)thread_index() % 32; i < values.count[1]; i += 32) {
        const u32 key = mgl_sampler_key(row_of(values, r)[i]);
        const int other = ids ? ((const int *)row_of(*ids, r))[i] : 0;
        lowest = min(lowest, key);
        if (key > best || (key == best && other < id)) {
            best = key;
            id = other;
        }
    }
    const u32 top = __reduce_max_sync(0xFFFFFFFFu, best);
    return {top, __reduce_min_sync(0xFFFFFFFFu, lowest),
            __reduce_min_sync(0xFFFFFFFFu, best == top ? id : 0x7FFFFFFF)};
}

static __device__ __forceinline__ bool is_drawn(const int *sequence)
{
    return __int_as_float(sequence[MGL_SEQUENCE_TEMPERATURE]) > 0.0f;
}

static __device__ __forceinline__ u64 random_of(const int *sequence)
{
    return mgl_philox_token((u32)sequence[MGL_SEQUENCE_SEED_LO],
                            (u32)sequence[MGL_SEQUENCE_SEED_HI],
                            (u32)sequence[MGL_SEQUENCE_PRODUCED]);
}

/* mgl_sampler_draw by the block. `parts`: the largest logit of each part of the row; `best` and
 * `lowest`: keys of the largest and the smallest of those. */
static __device__ __noinline__ int draw_row(const float *logits, const float *parts, int part_count,
                                            const int *sequence, u32 best, u32 lowest, u64 random)
{
    drawing &d = own_drawing();
    const float temperature = __int_as_float(sequence[MGL_SEQUENCE_TEMPERATURE]);
    const int top_k = sequence[MGL_SEQUENCE_TOP_K];
    const float top_p = __int_as_float(sequence[MGL_SEQUENCE_TOP_P]);
    const bool by_count = top_k > 0 && top_k < MGL_VOCAB;
    const bool by_sum = top_p > 0.0f && top_p < 1.0f;
    const float top = mgl_sampler_value(best) / temperature;
    if (!mgl_sampler_is_finite(best) || top == -INFINITY)
        return 0;
    if (thread_index() == 0) {
        d.row = values_of(logits, MGL_VOCAB, temperature, top);
        d.width = width_of(d.row, mgl_sampler_value(lowest) / temperature);
        d.middle = distance_from(top, mgl_sampler_value(lowest) / temperature) / 2;
        d.least = mgl_sampler_least(__int_as_float(sequence[MGL_SEQUENCE_MIN_P]));
        d.cut = {0, 0};
        d.bin = BINS;
        d.near = {FARTHEST, 0, -INFINITY};
        d.parts = parts;
        d.part_count = part_count;
        d.guessed = 0;
    }
#pragma unroll 1
    for (int i = (int)thread_index(); i < POWERS; i += THREADS)
        draw_powers()[i] = load_relaxed(mgl_sampler_powers + i); /* avoids ld.global.nc */
    bool selects = by_sum;
    if constexpr (GUESSES) /* a guess reads d.row after the barrier of its first step */
        if (by_sum && !by_count)
            selects = !guess_cut(top_p);
    if (by_count)
        select_cut((u64)top_k, 0.0f, !by_sum);
    if (selects)
        select_cut(0, top_p, true);
    if (!by_count && !by_sum)
        collect<false>();
    walk(random);
    return d.token;
}

#endif
