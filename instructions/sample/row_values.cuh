/*
 * Shared state and access of a row of logits for the block that draws from it (draw_row.cuh):
 * loads, quotients by the temperature, weights.
 *
 * A quotient is the correctly rounded IEEE quotient. It is computed from the temperature's
 * reciprocal with two corrections whose remainders are exact (Markstein, IBM J. Res. Dev. 34,
 * 1990). If a number is too large or too small for exact remainders, it is computed by a division.
 */
#ifndef MGL_INSTRUCTIONS_SAMPLE_ROW_VALUES_CUH
#define MGL_INSTRUCTIONS_SAMPLE_ROW_VALUES_CUH

#include "vm/cuda/device/flags.cuh"

enum {
    BIN_BITS = MGL_ROWS <= 16 ? 10 : 9, /* more rows leave less shared memory */
    BINS = 1 << BIN_BITS,
    WIDEST_BIN = 32 - BIN_BITS,   /* log2; covers all distances, in 2^-27 */
    WARP_IDS = 32 * 4,            /* ids that a warp loads at once: 16 bytes a lane */
    FOURS = 4,                    /* float4 of a lane in a round of a pass over a row */
    ROUND = FOURS * 4,            /* values of a lane in a round */
    ROUND_IDS = FOURS * WARP_IDS, /* ids of a warp in a round */
    MOST_SEGMENTS = 128,
    SEGMENT = (MGL_VOCAB + MOST_SEGMENTS * ROUND_IDS - 1) / (MOST_SEGMENTS * ROUND_IDS) * ROUND_IDS,
    SEGMENTS = (MGL_VOCAB + SEGMENT - 1) / SEGMENT,
    SEGMENT_ROOM = (SEGMENTS + 31) / 32 * 32,
    SEGMENTS_OF_WARP = (SEGMENTS + MGL_WARPS - 1) / MGL_WARPS,
    SEGMENTS_OF_LANE = SEGMENT_ROOM / 32,
    POWERS = 256, /* size of mgl_sampler_powers */
    /* whether the table of powers follows the list: with many rows it does not fit besides
     * sample's data of the rows */
    POWERS_BEHIND = MGL_ROWS > 64 && MGL_ACTIVATION_BYTES >= 16384,
    LIST_BYTES = MGL_ACTIVATION_BYTES - (POWERS_BEHIND ? POWERS * 4 : 0),
    LIST_ROOM = (LIST_BYTES < 32768 ? LIST_BYTES : 32768) / 32 * 4,
    /* whether a cut is guessed first: needs this many values, and this much space for the list */
    GUESSES = MGL_VOCAB >= 8192 && LIST_ROOM >= 1024,
    SAMPLED = 8,               /* the guess reads one float4 of this many */
    AIMED = LIST_ROOM / 8 * 7, /* number of values to list: less than the space, because a sample
                                  is inexact */
    ROWS_ARE_VECTORS = MGL_VOCAB % 4 == 0
};

/* Source of a draw: the logits of a row, or the list. */
struct values {
    const float *at; /* (count) */
    const int *ids;  /* ids of the list; NULL: ids are indices */
    int count;
    float divisor;    /* a value is the stored number divided by this */
    float reciprocal; /* reciprocal of the divisor; 0: use a division */
    float best;       /* the largest value */
};

constexpr u32 FARTHEST = 28u << 27; /* in 2^-27: the distance from which mgl_sampler_distance
                                       returns far */

/* Keys from `low` to `high`. */
struct key_range {
    u32 low, high;
};

/* Distances from `first` to `last`, of values that are at least `floor`. */
struct stretch {
    u32 first, last;
    float floor;
};

/* State of a draw that the threads share. It is in shared memory rather than in registers: a
 * called function only has the registers that its callers leave free, so the loops get more
 * registers. */
struct drawing {
    u64 sums[SEGMENT_ROOM];  /* sums of weights above the cut */
    u32 equal[SEGMENT_ROOM]; /* numbers of values at the cut */
    u32 low[BINS], high[BINS];
    u32 powers[POWERS_BEHIND ? 1 : POWERS];
    u64 of_warp[MGL_WARPS];
    u32 equal_of_warp[MGL_WARPS];
    u64 near_of_warp[MGL_WARPS];
    values row;
    const float *parts; /* (part_count) the best logit of each of head's parts */
    int part_count;
    int width;           /* log2 of the width of the first bins, in 2^-27 */
    u32 middle;          /* half the distance of the worst part from the best */
    u64 least;           /* smaller weights count as 0 after the cuts */
    mgl_sampler_cut cut; /* the cut so far */
    u64 limit, before;   /* the sum searched for, and the known sum before the bins */
    int bin;             /* the bin that contains the limit; BINS: the limit is beyond all bins */
    stretch near;        /* the distances whose values are listed */
    u32 found;           /* number of listed values */
    int guessed;         /* whether `near` contains the cut */
    values rest;         /* the values that contain the final cut */
    key_range range;     /* the keys that contain the final cut */
    int token;
};

static __device__ __forceinline__ drawing &own_drawing()
{
    return *(drawing *)own().partial;
}

/* The list: values, followed by their ids. */
static __device__ __forceinline__ float *list_values()
{
    return (float *)activation_buffer();
}

static __device__ __forceinline__ int *list_ids()
{
    return (int *)activation_buffer() + LIST_ROOM;
}

/* The table of powers. */
static __device__ __forceinline__ u32 *draw_powers()
{
    return POWERS_BEHIND ? (u32 *)(list_ids() + LIST_ROOM) : own_drawing().powers;
}

static __device__ __forceinline__ values values_of(const float *at, int count, float divisor,
                                                   float best)
{
    const bool plain = divisor > 0x1p-20f && divisor < 0x1p20f;
    return {at, nullptr, count, divisor, plain ? 1.0f / divisor : 0.0f, best};
}

static __device__ __noinline__ float4 divide_apart(float4 x, float divisor)
{
    return make_float4(x.x / divisor, x.y / divisor, x.z / divisor, x.w / divisor);
}

static __device__ __forceinline__ float quotient(const values &v, float x)
{
    float q = x * v.reciprocal;
    q = fmaf(fmaf(-v.divisor, q, x), v.reciprocal, q);
    return fmaf(fmaf(-v.divisor, q, x), v.reciprocal, q);
}

/* How far a magnitude is above the least with exact remainders; large for 0. */
static __device__ __forceinline__ u32 above_least(float x)
{
    return (__float_as_uint(x) << 1) - ((127u - 64) << 24);
}

/* Divides four stored numbers by the divisor. */
static __device__ __forceinline__ float4 divide(const values &v, const float4 &x)
{
    const u32 most =
        max(max(above_least(x.x), above_least(x.y)), max(above_least(x.z), above_least(x.w)));
    if (most >= 128u << 24 || v.reciprocal == 0.0f)
        return divide_apart(x, v.divisor);
    return make_float4(quotient(v, x.x), quotient(v, x.y), quotient(v, x.z), quotient(v, x.w));
}

/* Loads four consecutive numbers; -inf past the end. */
static __device__ __forceinline__ float4 load_four(const values &v, int place)
{
    const float none = -INFINITY;
    if constexpr (ROWS_ARE_VECTORS)
        return place < v.count ? *(const float4 *)(v.at + place)
                               : make_float4(none, none, none, none);
    else
        return make_float4(place + 0 < v.count ? v.at[place + 0] : none,
                           place + 1 < v.count ? v.at[place + 1] : none,
                           place + 2 < v.count ? v.at[place + 2] : none,
                           place + 3 < v.count ? v.at[place + 3] : none);
}

/* Calls look(four numbers, first index) for the indices first, first + step, ... below `end`.
 * AT_ONCE loads are issued together to hide memory latency. */
template <int AT_ONCE, typename LOOK>
static __device__ __forceinline__ void each_four(const values &v, int first, int step, int end,
                                                 LOOK look)
{
#pragma unroll 1
    for (; first < end; first += AT_ONCE * step) {
        float4 x[AT_ONCE];
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++)
            x[n] = load_four(v, first + n * step);
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++)
            if (n == 0 || first + n * step < end)
                look(x[n], first + n * step);
    }
}

/* The same for all indices, by the block. */
template <int AT_ONCE, typename LOOK>
static __device__ __forceinline__ void each_four(const values &v, LOOK look)
{
    each_four<AT_ONCE>(v, (int)thread_index() * 4, (int)THREADS * 4, v.count, look);
}

static __device__ __forceinline__ float part_of(const float4 &x, int n)
{
    return n == 0 ? x.x : n == 1 ? x.y : n == 2 ? x.z : x.w;
}

/* A round of a lane: FOURS times four numbers, `step` apart. An SM has few warps to hide latency
 * with, so the work on the values of a round is interleaved. */
struct round_values {
    float value[ROUND];
};

/* Loads the numbers of the round from `first` on; -inf past the end. */
static __device__ __forceinline__ void load_round(const values &v, int first, int step,
                                                  float4 (&x)[FOURS])
{
#pragma unroll
    for (int n = 0; n < FOURS; n++)
        x[n] = load_four(v, first + n * step);
}

static __device__ __forceinline__ round_values divide_round(const values &v,
                                                            const float4 (&x)[FOURS])
{
    round_values l;
    u32 most = 0;
#pragma unroll
    for (int n = 0; n < ROUND; n++)
        most = max(most, above_least(part_of(x[n / 4], n % 4)));
    if (most >= 128u << 24 || v.reciprocal == 0.0f) {
#pragma unroll
        for (int n = 0; n < FOURS; n++) {
            const float4 four = divide_apart(x[n], v.divisor);
#pragma unroll
            for (int i = 0; i < 4; i++)
                l.value[n * 4 + i] = part_of(four, i);
        }
        return l;
    }
#pragma unroll
    for (int n = 0; n < ROUND; n++)
        l.value[n] = quotient(v, part_of(x[n / 4], n % 4));
    return l;
}

/* mgl_sampler_distance of a value (no NaN) from the largest; FARTHEST for far values, whose
 * mgl_sampler_exp is 0. If both became infinite by the division, their difference is NaN, and
 * the conversion gives 0 as needed. */
static __device__ __forceinline__ u32 distance_from(float best, float value)
{
    return min(__float2uint_rz((best - value) * 0x1p27f), FARTHEST);
}

/* mgl_sampler_exp. */
static __device__ __forceinline__ u64 exp_of(u32 distance)
{
    return mgl_sampler_exp(distance, draw_powers());
}

#endif
