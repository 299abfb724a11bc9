/*
 * The cut of a draw (top-k, top-p): the steps `bins`, `collect` and `range` of draw_row.cuh, a
 * parallel radix select by histograms in shared memory.
 */
#ifndef MGL_INSTRUCTIONS_SAMPLE_DRAW_CUT_CUH
#define MGL_INSTRUCTIONS_SAMPLE_DRAW_CUT_CUH

#include "instructions/sample/row_values.cuh"

/* ---- bins ------------------------------------------------------------------------------------ */

static __device__ __forceinline__ void clear_bins()
{
    drawing &d = own_drawing();
#pragma unroll 1
    for (int i = (int)thread_index(); i < BINS; i += THREADS)
        d.low[i] = d.high[i] = 0;
    consumer_barrier();
}

/* Adds to several bins at once. Shared memory has no 64-bit atomic addition except a
 * compare-and-swap loop, so each bin has two words and an explicit carry. */
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

/* Adds to one bin. */
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

/* Inclusive prefix sum of the lanes' values. */
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

/* Finds the bin at which the running sum, starting at `before`, reaches the limit. Sets d.bin,
 * d.before (the sum before that bin) and d.limit. With top_p above 0 the limit is that of the
 * sum of all bins. */
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

/* The bin of a distance; the last bin includes all larger distances. */
static __device__ __forceinline__ u32 bin_of(u32 distance, int width)
{
    return min(distance >> width, (u32)BINS - 1);
}

/* The least value that the cut keeps, at least in part. */
static __device__ __forceinline__ float floor_of(mgl_sampler_cut cut)
{
    return cut.key ? mgl_sampler_value(cut.key) : -INFINITY;
}

/* Adds values nearer than d.middle to the bins of a sampled count, which skips them: few values
 * have most of the weight there, and the best value of each part is known. If a share f of the
 * parts has such a value and values are distributed randomly, a part has -ln(1 - f) of them on
 * average. */
static __device__ __forceinline__ void add_parts()
{
    const drawing &d = own_drawing();
    const u32 middle = d.middle;
    u32 parts = 0;
    const auto distance_of_part = [&](int i) {
        return distance_from(d.row.best, fminf(d.parts[i] * d.row.reciprocal, d.row.best));
    };
#pragma unroll 1
    for (int i = (int)thread_index() % 32; i < d.part_count; i += 32)
        parts += distance_of_part(i) < middle;
    const float share = (float)__reduce_add_sync(0xFFFFFFFFu, parts) / (float)d.part_count;
    const float each = share > 0.0f ? fminf(-log1pf(-share) / share, 16.0f) : 1.0f;
#pragma unroll 1
    for (int i = (int)thread_index(); i < d.part_count; i += THREADS) {
        const u32 distance = distance_of_part(i);
        if (distance < middle)
            add_to_bin(bin_of(distance, d.width),
                       (u64)((float)exp_of(distance) * (each / (float)SAMPLED)));
    }
}

/* Fills the bins by distance: with the units of the values within the cut. A sampled count reads
 * one float4 in `sampled`, uses only distances from d.middle on, and calls add_parts. */
static __device__ __noinline__ void count_bins(int by_weight, int sampled)
{
    const drawing &d = own_drawing();
    clear_bins();
    const values v = d.row;
    const int width = d.width;
    const float floor = floor_of(d.cut);
    const u32 lane = thread_index() % 32;
    const int step = THREADS * 4 * sampled;
    const u32 from = sampled > 1 ? d.middle : 0;
    float4 x[FOURS];
    int first = (int)thread_index() * 4 * sampled;
    load_round(v, first, step, x);
#pragma unroll 1
    for (; first < v.count; first += FOURS * step) {
        const round_values l = divide_round(v, x);
        load_round(v, first + FOURS * step, step, x);
        u32 distance[ROUND], bin[ROUND], nearest = FARTHEST;
        u64 unit[ROUND];
#pragma unroll
        for (int n = 0; n < ROUND; n++) {
            distance[n] = distance_from(v.best, l.value[n]);
            distance[n] = l.value[n] > floor ? distance[n] : FARTHEST;
            nearest = min(nearest, distance[n]);
        }
        if (nearest == FARTHEST)
            continue;
        if (by_weight)
#pragma unroll
            for (int n = 0; n < ROUND; n++)
                unit[n] = exp_of(distance[n]);
        else
#pragma unroll
            for (int n = 0; n < ROUND; n++)
                unit[n] = 1;
#pragma unroll
        for (int n = 0; n < ROUND; n++) {
            const bool counts = distance[n] != FARTHEST && distance[n] >= from;
            bin[n] = counts ? bin_of(distance[n], width) : lane; /* adds 0 to an arbitrary bin */
            unit[n] = counts ? unit[n] : 0;
        }
        add_to_bins(bin, unit);
    }
    if (thread_index() == 0 && d.cut.ties) {
        const u32 distance = distance_from(v.best, floor);
        if (distance != FARTHEST)
            add_to_bin(bin_of(distance, width), d.cut.ties * (by_weight ? exp_of(distance) : 1));
    }
    if (sampled > 1)
        add_parts();
    consumer_barrier();
}

/* ---- the two passes -------------------------------------------------------------------------- */

/* The weight of a value in a sum; 0 if it is below `least`. */
static __device__ __forceinline__ u64 weight_of(const values &v, float value, u64 least)
{
    const u64 weight = exp_of(distance_from(v.best, value));
    return weight < least ? 0 : weight;
}

/* The sum of all lanes' values, in every lane: summed in words of 24, 24 and 16 bits. */
static __device__ __forceinline__ u64 sum_of_lanes(u64 value)
{
    const u32 low = __reduce_add_sync(0xFFFFFFFFu, (u32)value & 0xFFFFFFu);
    const u32 middle = __reduce_add_sync(0xFFFFFFFFu, (u32)(value >> 24) & 0xFFFFFFu);
    return ((u64)__reduce_add_sync(0xFFFFFFFFu, (u32)(value >> 48)) << 48) + ((u64)middle << 24) +
           low;
}

/* The distance of a value within the stretch's floor, else FARTHEST. */
static __device__ __forceinline__ u32 distance_of(const values &v, const stretch &of, float value)
{
    const u32 distance = distance_from(v.best, value);
    return value >= of.floor ? distance : FARTHEST;
}

static __device__ __forceinline__ bool is_in(const stretch &of, u32 distance)
{
    return distance >= of.first && distance <= of.last;
}

/* The stretch of the bin found, for values that the cut keeps so far. Without such a bin, an
 * empty stretch beyond all values with a weight. */
static __device__ __forceinline__ stretch stretch_of_bin()
{
    const drawing &d = own_drawing();
    const u32 first = (u32)d.bin << d.width;
    if (d.bin == BINS)
        return {FARTHEST, 0, floor_of(d.cut)};
    return {first, d.bin == BINS - 1 ? FARTHEST - 1 : first + (1u << d.width) - 1, floor_of(d.cut)};
}

/* Appends to the list the ids of the values in a lane's round whose bit in `inside` is set. */
static __device__ __forceinline__ void list_round(u32 inside, int first)
{
    if (inside == 0)
        return;
    u32 at = add_shared(shared_address(&own_drawing().found), (u32)__popc(inside));
#pragma unroll 1
    for (; inside; inside &= inside - 1, at++) {
        const int n = __ffs((int)inside) - 1;
        if (at < LIST_ROOM)
            list_ids()[at] = first + n / 4 * WARP_IDS + n % 4;
    }
}

/* Fills in the list's values, with NaNs up to a multiple of four, and sums their weights for
 * each warp: d.near_of_warp. */
static __device__ __forceinline__ void complete_list(const values &v)
{
    drawing &d = own_drawing();
    const int found = (int)min(d.found, (u32)LIST_ROOM), end = (found + 3) / 4 * 4;
    u64 sum = 0;
#pragma unroll 1
    for (int i = (int)thread_index(); i < end; i += THREADS) {
        float value = __uint_as_float(0x7FFFFFFFu);
        if (i < found) {
            const float x = v.at[list_ids()[i]];
            value = divide(v, make_float4(x, x, x, x)).x;
            sum += weight_of(v, value, 0);
        }
        list_values()[i] = value;
    }
    sum = sum_of_lanes(sum);
    if (thread_index() % 32 == 0)
        d.near_of_warp[thread_index() / 32] = sum;
    consumer_barrier();
}

/* Sums the weights of values before d.near for each segment, and lists the values in d.near:
 * d.found. With WHOLE also sums the weights of all values for each warp: d.of_warp; then no
 * value before d.near has less weight than d.least, and there is no floor. */
template <bool WHOLE> static __device__ __noinline__ void collect()
{
    drawing &d = own_drawing();
    const int warp = (int)thread_index() / 32, lane = (int)thread_index() % 32;
    int segment = warp * SEGMENTS_OF_WARP, left = SEGMENT;
    const int end = min(segment + SEGMENTS_OF_WARP, (int)SEGMENTS) * SEGMENT;
    u64 sum = 0, whole = 0;
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
    const stretch of = d.near;
    const u64 least = d.least;
    float4 x[FOURS];
    int first = segment * SEGMENT + lane * 4;
    load_round(v, first, WARP_IDS, x);
#pragma unroll 1
    for (; first < end; first += ROUND_IDS) {
        const round_values l = divide_round(v, x);
        load_round(v, first + ROUND_IDS, WARP_IDS, x);
        u32 distance[ROUND], nearest = FARTHEST, inside = 0;
#pragma unroll
        for (int n = 0; n < ROUND; n++) {
            distance[n] =
                WHOLE ? distance_from(v.best, l.value[n]) : distance_of(v, of, l.value[n]);
            nearest = min(nearest, distance[n]);
            inside |= is_in(of, distance[n]) ? 1u << n : 0;
        }
        if (WHOLE || nearest < of.first)
#pragma unroll
            for (int n = 0; n < ROUND; n++) {
                const u64 weight = exp_of(distance[n]);
                if (distance[n] < of.first && (WHOLE || weight >= least))
                    sum += weight;
                whole += WHOLE ? weight : 0;
            }
        list_round(inside, first);
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
    whole = sum_of_lanes(whole);
    if (lane == 0)
        d.of_warp[warp] = whole;
    consumer_barrier();
    complete_list(v);
}

static __device__ __forceinline__ bool is_in(const key_range &r, u32 key)
{
    return key >= r.low && key <= r.high;
}

/* Finds the cut in d.range, with d.before as the sum above that range. Sets d.cut. */
static __device__ __noinline__ void cut_in_range(int by_weight)
{
    drawing &d = own_drawing();
    const auto unit_of = [&](u32 key) {
        return by_weight ? weight_of(d.row, mgl_sampler_value(key), 0) : 1;
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

/* Adds the values of d.range that the cut keeps to the segments. */
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

/* The least key whose distance is below `distance`; if there is none, the key after the best's.
 * A warp searches five bits at a time. */
static __device__ __forceinline__ u32 key_before(const values &v, u32 distance)
{
    const u32 lane = thread_index() % 32, best = mgl_sampler_key(v.best);
    u32 key = 0; /* all smaller keys are farther */
#pragma unroll 1
    for (int shift = 27; shift > -5; shift -= 5) {
        const int down = max(shift, 0);
        const u32 tried = key + ((lane + 1) << down), last = tried - 1;
        const bool farther = tried > key && last <= best &&
                             distance_from(v.best, mgl_sampler_value(last)) >= distance;
        key += (u32)__popc(__ballot_sync(0xFFFFFFFFu, farther)) << down;
    }
    return key;
}

/* Sets where the final cut is searched: in the values of d.near, or if no bin reaches the limit,
 * in the whole row. Run by the first warp. */
static __device__ __forceinline__ void narrow_range(drawing &d, u64 limit)
{
    if (thread_index() == 0)
        d.rest = d.row;
    if (d.bin == BINS) {
        if (thread_index() == 0) {
            d.range = {0, mgl_sampler_key(d.row.best)};
            d.limit = limit;
            d.before = 0;
        }
        return;
    }
    const u32 end = key_before(d.row, d.near.first), first = key_before(d.row, d.near.last + 1);
    if (thread_index() != 0)
        return;
    d.range = {first, end - 1};
    if (d.found > LIST_ROOM)
        return;
    d.rest = values_of(list_values(), ((int)d.found + 3) / 4 * 4, 1.0f, d.row.best);
    d.rest.ids = list_ids();
}

/* mgl_sampler_select by the block, over d.row's values within d.cut; sets d.cut to the narrower
 * cut. With top_p above 0 the limit is that of the values' sum. `segments`: also compute the
 * sums of the values kept. */
static __device__ __noinline__ void select_cut(u64 limit, float top_p, bool segments)
{
    drawing &d = own_drawing();
    count_bins(top_p > 0.0f, 1);
    find_bin(limit, 0, top_p);
    const bool found = d.bin < BINS;
    if (thread_index() == 0)
        d.near = stretch_of_bin();
    consumer_barrier();
    if (found || segments)
        collect<false>();
    if (thread_index() < 32)
        narrow_range(d, limit);
    cut_in_range(top_p > 0.0f);
    if (found && segments)
        add_rest();
}

#endif
