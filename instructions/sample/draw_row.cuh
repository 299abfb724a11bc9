/*
 * The draw of one row by the block: the algorithm of instructions/sample/sampler.h in other steps.
 * All its sums are of integers, so their order does not matter, and the token is the same.
 *
 *   bins      A cut is looked for in bins of the ranking. The first bins are of equal widths of
 *             distance below the best, which are chosen by how far the bests of head's parts lie
 *             apart. One pass over the row sums up each bin.
 *   collect   A second pass takes the values of the one bin that holds the cut to a list in the
 *             activation buffer, and sums up what is above that bin by segments of consecutive ids.
 *   range     The list's keys are dealt to bins anew, until a bin is one key: the cut's. Where the
 *             list has no room for the bin's values, the row takes its place.
 *   walk      The rest of the list is added to the segments. The block goes through the one that
 *             holds the token.
 */
#ifndef MGL_INSTRUCTIONS_SAMPLE_DRAW_ROW_CUH
#define MGL_INSTRUCTIONS_SAMPLE_DRAW_ROW_CUH

#include "instructions/sample/row_values.cuh"

/* ---- bins -------------------------------------------------------------------------------------
 */

static __device__ __forceinline__ void clear_bins()
{
    drawing &d = own_drawing();
#pragma unroll 1
    for (int i = (int)thread_index(); i < BINS; i += THREADS)
        d.low[i] = d.high[i] = 0;
    consumer_barrier();
}

/* Adds to bins, side by side. Of 64 bits there is no atomic addition in shared memory but a loop.
 */
static __device__ __forceinline__ void add_to_bins(const u32 (&bin)[ROUND],
                                                   const u64 (&unit)[ROUND])
{
    const u32 low = shared_address(own_drawing().low), high = shared_address(own_drawing().high);
    u32 carried[ROUND], any = 0;
#pragma unroll
    for (int n = 0; n < ROUND; n++)
        carried[n] = add_shared(low + bin[n] * 4, (u32)unit[n]);
#pragma unroll
    for (int n = 0; n < ROUND; n++) {
        carried[n] = (u32)(unit[n] >> 32) + (carried[n] + (u32)unit[n] < carried[n]);
        any |= carried[n];
    }
    if (any)
#pragma unroll
        for (int n = 0; n < ROUND; n++)
            add_to_shared(high + bin[n] * 4, carried[n]);
}

/* To one. */
static __device__ __forceinline__ void add_to_bin(u32 bin, u64 unit)
{
    const u32 low = shared_address(own_drawing().low), high = shared_address(own_drawing().high);
    const u32 before = add_shared(low + bin * 4, (u32)unit);
    add_shared(high + bin * 4, (u32)(unit >> 32) + (before + (u32)unit < before));
}

static __device__ __forceinline__ u64 sum_of_bin(int bin)
{
    const drawing &d = own_drawing();
    return (u64)d.high[bin] << 32 | d.low[bin];
}

/* The sum of the values of the lanes up to this one. */
template <typename T> static __device__ __forceinline__ T sum_up_to(T value)
{
    const int lane = (int)thread_index() % 32;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const T other = __shfl_sync(0xFFFFFFFFu, value, max(lane - offset, 0));
        value += lane >= offset ? other : 0;
    }
    return value;
}

/* Finds the bin at which the running sum, on top of `before`, reaches the limit: d.bin, and
 * d.before of the bins before it. The limit is the one given, or with top_p above 0 that of the sum
 * of all bins; d.limit. */
static __device__ __noinline__ void find_bin(u64 limit, u64 before, float top_p)
{
    enum { SHARE = (BINS + THREADS - 1) / THREADS };
    drawing &d = own_drawing();
    const int thread = (int)thread_index(), first = thread * SHARE;
    u64 sums[SHARE], own_sum = 0, total = 0;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        sums[i] = first + i < BINS ? sum_of_bin(first + i) : 0;
        own_sum += sums[i];
    }
    const u64 running = sum_up_to(own_sum);
    if (thread % 32 == 31)
        d.of_warp[thread / 32] = running;
    if (thread == 0)
        d.bin = BINS;
    consumer_barrier();
    before += running - own_sum;
#pragma unroll 1
    for (int w = 0; w < MGL_WARPS; w++) {
        before += w < thread / 32 ? d.of_warp[w] : 0;
        total += d.of_warp[w];
    }
    if (top_p > 0.0f)
        limit = mgl_sampler_limit(total, top_p);
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        if (before < limit && before + sums[i] >= limit) {
            d.bin = first + i;
            d.before = before;
            d.limit = limit;
        }
        before += sums[i];
    }
    consumer_barrier();
}

/* Which distances a bin has: those of `last` and more widths are all in the last. */
static __device__ __forceinline__ u32 bin_of(u32 distance, int width)
{
    return min(distance >> width, (u32)BINS - 1);
}

/* The least value that a cut keeps some of. */
static __device__ __forceinline__ float floor_of(mgl_sampler_cut cut)
{
    return cut.key ? mgl_sampler_value(cut.key) : -INFINITY;
}

/* Bins of distances: of the values within the cut, their units. */
static __device__ __noinline__ void count_bins(int weighed)
{
    const drawing &d = own_drawing();
    clear_bins();
    const values v = d.row;
    const int width = d.width;
    const float floor = floor_of(d.cut);
    const u32 lane = thread_index() % 32;
    enum { STEP = THREADS * 4 };
    float4 x[FOURS];
    int first = (int)thread_index() * 4;
    load_round(v, first, STEP, x);
#pragma unroll 1
    for (; first < v.count; first += FOURS * STEP) {
        const round_values l = divide_round(v, x);
        load_round(v, first + FOURS * STEP, STEP, x);
        u32 distance[ROUND], bin[ROUND], nearest = MGL_SAMPLER_FAR;
        u64 unit[ROUND];
#pragma unroll
        for (int n = 0; n < ROUND; n++) {
            distance[n] = mgl_sampler_distance(l.value[n], v.best);
            distance[n] = l.value[n] > floor ? distance[n] : MGL_SAMPLER_FAR;
            nearest = min(nearest, distance[n]);
        }
        if (nearest == MGL_SAMPLER_FAR)
            continue;
        if (weighed)
#pragma unroll
            for (int n = 0; n < ROUND; n++)
                unit[n] = exp_of(distance[n]);
        else
#pragma unroll
            for (int n = 0; n < ROUND; n++)
                unit[n] = 1;
#pragma unroll
        for (int n = 0; n < ROUND; n++) {
            const bool counts = distance[n] != MGL_SAMPLER_FAR;
            bin[n] = counts ? bin_of(distance[n], width) : lane; /* 0 to any */
            unit[n] = counts ? unit[n] : 0;
        }
        add_to_bins(bin, unit);
    }
    if (thread_index() == 0 && d.cut.ties) {
        const u32 distance = mgl_sampler_distance(floor, v.best);
        if (distance != MGL_SAMPLER_FAR)
            add_to_bin(bin_of(distance, width), d.cut.ties * (weighed ? exp_of(distance) : 1));
    }
    consumer_barrier();
}

/* ---- the two passes ---------------------------------------------------------------------------
 */

/* What a distance adds to a sum: its weight, if that is not below `least`. */
static __device__ __forceinline__ u64 weight_at(u32 distance, u64 least)
{
    const u64 weight = exp_of(distance); /* in any case: four of them go side by side */
    return distance == MGL_SAMPLER_FAR || weight < least ? 0 : weight;
}

static __device__ __forceinline__ u64 weight_of(const values &v, float value, u64 least)
{
    return weight_at(mgl_sampler_distance(value, v.best), least);
}

/* The sum of all lanes' values, which is below 2^58, in every lane: words of 26 and 32 bits. */
static __device__ __forceinline__ u64 sum_of_lanes(u64 value)
{
    const u32 low = __reduce_add_sync(0xFFFFFFFFu, (u32)value & 0x3FFFFFFu);
    return ((u64)__reduce_add_sync(0xFFFFFFFFu, (u32)(value >> 26)) << 26) + low;
}

/* The distances that one bin has, and the least value that is looked at. */
struct stretch {
    u32 first, last;
    float floor;
};

/* The distance of a value that is looked at. */
static __device__ __forceinline__ u32 distance_of(const values &v, const stretch &of, float value)
{
    const u32 distance = mgl_sampler_distance(value, v.best);
    return value >= of.floor ? distance : MGL_SAMPLER_FAR;
}

static __device__ __forceinline__ bool is_in(const stretch &of, u32 distance)
{
    return distance >= of.first && distance <= of.last;
}

/* Puts a value in a place of the list, if there is room. */
static __device__ __forceinline__ void put_in_list(u32 at, float value, int id)
{
    if (at >= LIST_ROOM)
        return;
    list_values()[at] = value;
    list_ids()[at] = id;
}

/* The stretch of the bin that was found, of the values that the cut keeps so far; or, without one,
 * a stretch that has nothing, behind all that weighs anything. */
static __device__ __forceinline__ stretch stretch_of_bin()
{
    const drawing &d = own_drawing();
    const u32 first = (u32)d.bin << d.width;
    if (d.bin == BINS)
        return {MGL_SAMPLER_FAR, 0, floor_of(d.cut)};
    return {first, d.bin == BINS - 1 ? MGL_SAMPLER_FAR - 1 : first + (1u << d.width) - 1,
            floor_of(d.cut)};
}

/* Sums up the segments, of values before the stretch of the bin, and lists those of the stretch:
 * d.found, and per warp d.lowest and d.highest of their keys. The list is followed by NaNs up to a
 * multiple of four. */
static __device__ __noinline__ void collect()
{
    drawing &d = own_drawing();
    const int warp = (int)thread_index() / 32, lane = (int)thread_index() % 32;
    int segment = warp * SEGMENTS_OF_WARP, left = SEGMENT;
    const int end = min(segment + SEGMENTS_OF_WARP, (int)SEGMENTS) * SEGMENT;
    float least_found = INFINITY, most_found = -INFINITY;
    u64 sum = 0;
#pragma unroll 1
    for (int i = (int)thread_index(); i < SEGMENT_ROOM; i += THREADS) {
        d.equal[i] = 0;
        if (i >= SEGMENTS)
            d.sums[i] = 0;
    }
    if (thread_index() == 0)
        d.found = 0;
    consumer_barrier();
    const values v = d.row;
    const stretch of = stretch_of_bin();
    const u64 least = d.least;
    const u32 found = shared_address(&d.found);
    float4 x[FOURS];
    int first = segment * SEGMENT + lane * 4;
    load_round(v, first, WARP_IDS, x);
#pragma unroll 1
    for (; first < end; first += ROUND_IDS) {
        const round_values l = divide_round(v, x);
        load_round(v, first + ROUND_IDS, WARP_IDS, x);
        u32 distance[ROUND], nearest = MGL_SAMPLER_FAR, inside = 0;
#pragma unroll
        for (int n = 0; n < ROUND; n++) {
            distance[n] = distance_of(v, of, l.value[n]);
            nearest = min(nearest, distance[n]);
            inside += is_in(of, distance[n]);
        }
        if (nearest < of.first)
#pragma unroll
            for (int n = 0; n < ROUND; n++) {
                const u64 weight = weight_at(distance[n], least);
                sum += distance[n] < of.first ? weight : 0;
            }
        if (inside > 0) {
            u32 at = add_shared(found, inside);
#pragma unroll
            for (int n = 0; n < ROUND; n++)
                if (is_in(of, distance[n])) {
                    least_found = fminf(least_found, l.value[n]);
                    most_found = fmaxf(most_found, l.value[n]);
                    put_in_list(at++, l.value[n], first + n / 4 * WARP_IDS + n % 4);
                }
        }
        left -= ROUND_IDS;
        if (left > 0)
            continue;
        sum = sum_of_lanes(sum);
        if (lane == 0)
            d.sums[segment] = sum;
        sum = 0;
        segment++;
        left = SEGMENT;
    }
    const u32 lowest = __reduce_min_sync(0xFFFFFFFFu, mgl_sampler_key(least_found)),
              highest = __reduce_max_sync(0xFFFFFFFFu, mgl_sampler_key(most_found));
    if (lane == 0) {
        d.lowest[warp] = lowest;
        d.highest[warp] = highest;
    }
    consumer_barrier();
    const u32 at = d.found + thread_index();
    if (at < LIST_ROOM && at < (d.found + 3) / 4 * 4)
        list_values()[at] = __uint_as_float(0x7FFFFFFFu);
    consumer_barrier();
}

static __device__ __forceinline__ bool is_in(const key_range &r, u32 key)
{
    return key >= r.low && key <= r.high;
}

/* The cut that lies in d.range, d.before being the sum above that: d.cut. */
static __device__ __noinline__ void cut_in_range(int weighed)
{
    drawing &d = own_drawing();
    const auto unit_of = [&](u32 key) {
        return weighed ? weight_of(d.row, mgl_sampler_value(key), 0) : 1;
    };
    consumer_barrier();
    const values v = d.rest;
    key_range r = d.range;
    int width;
#pragma unroll 1
    do {
        width = max(0, 32 - __clz((int)(r.high - r.low)) - (int)BIN_BITS);
        clear_bins();
        const mgl_sampler_cut within = d.cut;
        each_four<1>(v, [&](const float4 &x, int) {
            const float4 l = divide(v, x);
#pragma unroll 1
            for (int n = 0; n < 4; n++) {
                const u32 key = mgl_sampler_key(part_of(l, n));
                if (key > within.key && is_in(r, key))
                    add_to_bin((r.high - key) >> width, unit_of(key));
            }
        });
        if (thread_index() == 0 && within.ties && is_in(r, within.key))
            add_to_bin((r.high - within.key) >> width, within.ties * unit_of(within.key));
        consumer_barrier();
        find_bin(d.limit, d.before, 0.0f);
        const u32 most = (1u << width) - 1;
        r.high -= (u32)d.bin << width;
        r.low = r.high - r.low < most ? r.low : r.high - most;
    } while (width > 0);
    if (thread_index() == 0)
        d.cut = mgl_sampler_finish(r.high, unit_of(r.high), d.limit, d.before);
    consumer_barrier();
}

/* Adds to the segments what the cut keeps of d.range. */
static __device__ __noinline__ void add_rest()
{
    drawing &d = own_drawing();
    const values v = d.rest;
    each_four<1>(v, [&](const float4 &x, int place) {
        const float4 l = divide(v, x);
#pragma unroll 1
        for (int n = 0; n < 4; n++) {
            const u32 key = mgl_sampler_key(part_of(l, n));
            if (key < d.cut.key || !is_in(d.range, key))
                continue;
            const int segment = (v.ids ? v.ids[place + n] : place + n) / SEGMENT;
            if (key > d.cut.key)
                atomicAdd(&d.sums[segment], weight_of(v, part_of(l, n), d.least));
            else
                atomicAdd(&d.equal[segment], 1u);
        }
    });
    consumer_barrier();
}

/* Where the cut is in the end: among the values of the bin, or, there being none that reaches the
 * limit, anywhere. One thread. */
static __device__ __forceinline__ void narrow(drawing &d, u64 limit)
{
    d.rest = d.row;
    d.range = {0xFFFFFFFFu, 0};
    if (d.bin == BINS) {
        d.range = {0, mgl_sampler_key(d.row.best)};
        d.limit = limit;
        d.before = 0;
        return;
    }
    for (int w = 0; w < MGL_WARPS; w++) {
        d.range.low = min(d.range.low, d.lowest[w]);
        d.range.high = max(d.range.high, d.highest[w]);
    }
    if (d.found > LIST_ROOM)
        return;
    d.rest = values_of(list_values(), ((int)d.found + 3) / 4 * 4, 1.0f, d.row.best);
    d.rest.ids = list_ids();
}

/* mgl_sampler_select by the block, of d.row's values within d.cut, which is then the narrower one.
 * The limit is the one given, or with top_p above 0 that of their sum. `segments`: the sums of what
 * the cut keeps are wanted. */
static __device__ __noinline__ void select_cut(u64 limit, float top_p, bool segments)
{
    drawing &d = own_drawing();
    count_bins(top_p > 0.0f);
    find_bin(limit, 0, top_p);
    const bool found = d.bin < BINS;
    if (found || segments)
        collect();
    if (thread_index() == 0)
        narrow(d, limit);
    cut_in_range(top_p > 0.0f);
    if (found && segments)
        add_rest();
}

/* ---- the walk ---------------------------------------------------------------------------------
 */

/* What is left to go. */
struct walking {
    u64 target;
    u32 ties; /* that may still be taken, */
    u64 unit; /* each of so much */
};

/* The lane whose share holds the token, each having a sum above the cut and values at the cut, in
 * the order of lanes; -1: it is behind them. One warp. */
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

/* Goes by what one of several adds, if the token is not there. */
static __device__ __forceinline__ bool go_by(walking &to, u64 sum, u32 equal)
{
    const u64 weight = sum + min(equal, to.ties) * to.unit;
    if (to.target < weight)
        return false;
    to.target -= weight;
    to.ties -= min(equal, to.ties);
    return true;
}

/* The place of the segment that holds the token; -1: there is none. Every warp by itself. */
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

/* What of four values is above the cut, and which are tied with it. */
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

/* mgl_sampler_walk by the block, the segments being summed up: each warp sums up a part of the
 * segment that holds the token, and the one whose part it is finds it: d.token. */
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

/* The width of the first bins, log2: twice as far apart as the bests of parts are, four times, as
 * much again, must be all that there is of a row in practice. What is not comes into the last bin.
 */
static __device__ __forceinline__ int width_of(const values &v, float lowest)
{
    const u32 apart = mgl_sampler_distance(lowest, v.best);
    return apart == 0 ? (int)WIDEST_BIN
                      : max(0, min((int)WIDEST_BIN, 32 + 3 - __clz((int)apart) - (int)BIN_BITS));
}

/* The best of a row's parts and its key, and the least key that a part has; one warp. */
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

/* mgl_sampler_draw by the block. `best` and `lowest` are keys of the largest logit, and of the
 * least of the parts' largest. */
static __device__ __noinline__ int draw_row(const float *logits, const int *sequence, u32 best,
                                            u32 lowest, u64 random)
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
        d.least = mgl_sampler_least(__int_as_float(sequence[MGL_SEQUENCE_MIN_P]));
        d.cut = {0, 0};
        d.bin = BINS;
    }
#pragma unroll 1
    for (int i = (int)thread_index(); i < POWERS; i += THREADS)
        draw_powers()[i] = load_relaxed(mgl_sampler_powers + i); /* else it would be ld.global.nc */
    if (by_count)
        select_cut((u64)top_k, 0.0f, !by_sum);
    if (by_sum)
        select_cut(0, top_p, true);
    if (!by_count && !by_sum)
        collect();
    walk(random);
    return d.token;
}

#endif
