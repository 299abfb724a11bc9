/*
 * The step `guess` of draw_row.cuh: estimates the top-p cut from a sample of the row, so that
 * usually a single pass over the row suffices.
 */
#ifndef MGL_INSTRUCTIONS_SAMPLE_DRAW_GUESS_CUH
#define MGL_INSTRUCTIONS_SAMPLE_DRAW_GUESS_CUH

#include "instructions/sample/draw_cut.cuh"

/* Estimated number of values in a bin of the sample, from its weight: the values in a bin have
 * similar weights. */
static __device__ __forceinline__ u32 count_of_bin(int bin, int width)
{
    const float distance = ((float)bin + 0.5f) * exp2f((float)(width - 27));
    return (u32)((float)sum_of_bin(bin) * exp2f(distance * 1.442695f - 40.0f) * (float)SAMPLED);
}

/* The distance below which there are about `values` values; the bin has `count` values after
 * `before` others. */
static __device__ __forceinline__ u32 distance_at(u32 values, u32 before, u32 count, int bin,
                                                  int width)
{
    const float share = (float)(values - before) / (float)count;
    return ((u32)bin << width) + (u32)(share * (float)(1u << width));
}

/* Sets d.near to a stretch around the sum found, with about AIMED values by the estimated
 * counts, half on either side, or more after it if there are fewer before. Sets d.guessed. */
static __device__ __noinline__ void aim()
{
    enum { SHARE = (BINS + THREADS - 1) / THREADS };
    drawing &d = own_drawing();
    const int thread = (int)thread_index(), first = thread * SHARE, width = d.width;
    u32 counts[SHARE], own_count = 0;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        counts[i] = first + i < BINS - 1 ? count_of_bin(first + i, width) : 0;
        own_count += counts[i];
    }
    const u32 running = sum_up_to(own_count);
    if (thread % 32 == 31)
        d.equal_of_warp[thread / 32] = running;
    if (thread == 0)
        d.near = {0, ((u32)(BINS - 1) << width) - 1, -INFINITY};
    consumer_barrier();
    u32 before = running - own_count;
#pragma unroll 1
    for (int w = 0; w < thread / 32; w++)
        before += d.equal_of_warp[w];
    u32 upto = before; /* the searched sum as a number of values */
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        if (first + i < BINS && first + i == d.bin)
            d.found = upto + (u32)((float)(d.limit - d.before) / (float)sum_of_bin(d.bin) *
                                   (float)counts[i]);
        upto += counts[i];
    }
    consumer_barrier();
    const u32 from = d.found - min(d.found, (u32)AIMED / 2), end = from + AIMED;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        if (from >= before && from - before < counts[i])
            d.near.first = distance_at(from, before, counts[i], first + i, width);
        if (end >= before && end - before < counts[i])
            d.near.last = distance_at(end, before, counts[i], first + i, width);
        before += counts[i];
    }
    consumer_barrier();
    /* the extent of the last bin is unknown; all weights before the stretch must be at least
     * d.least */
    if (thread == 0) {
        d.near.last = min(d.near.last, FARTHEST - 1);
        d.guessed = d.bin < BINS - 1 && exp_of(d.near.first) >= d.least;
    }
    consumer_barrier();
}

/* Whether the list contains the sum that top-p searches for; then sets d.limit, d.before and the
 * range for cut_in_range. Run by the first warp. */
static __device__ __forceinline__ void judge_guess(float top_p)
{
    drawing &d = own_drawing();
    const int lane = (int)thread_index() % 32;
    u64 above = 0, whole = 0, near = 0;
#pragma unroll
    for (int i = 0; i < SEGMENTS_OF_LANE; i++)
        above += d.sums[lane * SEGMENTS_OF_LANE + i];
    above = sum_of_lanes(above);
#pragma unroll 1
    for (int w = 0; w < MGL_WARPS; w++) {
        whole += d.of_warp[w];
        near += d.near_of_warp[w];
    }
    const u64 limit = mgl_sampler_limit(whole, top_p);
    const bool good = d.found <= LIST_ROOM && above < limit && limit <= above + near;
    if (good)
        narrow_range(d, limit);
    if (lane == 0) {
        d.guessed = good;
        d.limit = limit;
        d.before = above;
    }
}

/* select_cut by top-p over all values, including segments, if the guess is right. Returns
 * whether it is. */
static __device__ __noinline__ bool guess_cut(float top_p)
{
    drawing &d = own_drawing();
    count_bins(1, SAMPLED);
    find_bin(0, 0, top_p);
    aim();
    if (d.guessed) {
        collect<true>();
        if (thread_index() < 32)
            judge_guess(top_p);
        consumer_barrier();
    }
    const bool good = d.guessed;
    consumer_barrier();
    if (good) {
        cut_in_range(1);
        add_rest();
    }
    return good;
}

#endif
