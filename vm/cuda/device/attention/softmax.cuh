/*
 * Online softmax over KV tiles on tensor cores, for caches in 16 bits. A consumer warp processes up
 * to four heads of a kv head at once (more heads take further passes), so that each key and value
 * is read once. kv_rounds.cuh, ring.cuh and short.cuh call it; everything is in registers except q,
 * which is in own().partial.
 *
 * A tile is 16 positions. Scores are K q^T. The keys are the A operand in their memory layout, 16
 * bytes per lane; the order of the dimensions within an MMA is free, because q has the same order.
 * The B operand has two columns per head: the rotated q rounded to 16 bits, and the rounding error.
 * So a lane has the scores of two positions for one head, l % 4. Their weights, again in two parts,
 * become the B operand of V^T p by two 8 x 8 transpositions. V^T is made from pairs of positions by
 * byte permutations. The sums have the layout of the scores, so the lanes of a head also have its
 * maximum and sum.
 */
#ifndef MGL_DEVICE_ATTENTION_SOFTMAX_CUH
#define MGL_DEVICE_ATTENTION_SOFTMAX_CUH

#include "vm/cuda/device/attention/keys_values.cuh"

/* A warp's online softmax of head l % 4 in lane l. Maximum and scores are exponents of 2. */
struct tile_state {
    float max;
    float sum;           /* over this lane's positions */
    float sums[SUMS][4]; /* dimension 64 (i / 4) + 8 (l / 4) + 2 (i % 4), two parts, and the next */
};

/* The lane's part of the q operand, chunk c. Loaded for each KV tile, because registers are scarce.
 */
static __device__ __forceinline__ uint4 load_query(const machine &m, const tile_pass &p, int c)
{
    const u32 *at = query_column(p.item, m.lane / 4) + 16 * c + m.lane % 4 * 4;
    uint4 words = make_uint4(0, 0, 0, 0);
    if (m.lane / 8 < p.heads && (32 * c + 32 <= HEAD_DIM || 32 * c + m.lane % 4 * 8 < HEAD_DIM))
        load_shared_vector(&words, at);
    return words;
}

/* Sums of products: enough independent chains of MMAs to keep the tensor cores busy, two for a
 * single tile. */
enum { CHAINS = TILES == 1 ? 2 : 1 };
struct tile_products {
    float sums[TILES][CHAINS][4];
};

/* Adds the products of chunk c. */
static __device__ __forceinline__ void add_products(const tile_vectors &keys, int c, const uint4 &q,
                                                    tile_products &sums)
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        const uint4 x = keys.at[key_number(t, 0, c)], y = keys.at[key_number(t, 1, c)];
        mma_tile(sums.sums[t][0], x.x, y.x, x.y, y.y, q.x, q.y);
        mma_tile(sums.sums[t][CHAINS - 1], x.z, y.z, x.w, y.w, q.z, q.w);
    }
}

/* Scores of this lane's two positions of each tile. Positions of the KV tile from `left` on are
 * -infinity. */
static __device__ __forceinline__ void scores_of(const tile_products &sums, int left,
                                                 float (*scores)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        const float *x = sums.sums[i / 2][0] + i % 2 * 2,
                    *y = sums.sums[i / 2][CHAINS - 1] + i % 2 * 2;
        float score = CHAINS == 1 ? x[0] + x[1] : (x[0] + y[0]) + (x[1] + y[1]);
        scores[i / 2][i % 2] = i * 8 < left ? score : -INFINITY;
    }
}

static __device__ __forceinline__ void score_tiles(const machine &m, const tile_pass &p,
                                                   const tile_vectors &keys, int left,
                                                   float (*scores)[2])
{
    tile_products sums = {};
#pragma unroll
    for (int c = 0; c < KEY_CHUNKS; c++)
        add_products(keys, c, load_query(m, p, c), sums);
    scores_of(sums, left, scores);
}

/* The maximum over a head's lanes. */
static __device__ __forceinline__ float head_max(float value)
{
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    return value;
}

/* The maximum of `top` and this lane's scores of a KV tile. */
static __device__ __forceinline__ float lane_max(float top, float (*scores)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++)
        top = fmaxf(top, scores[i / 2][i % 2]);
    return top;
}

/* Rescales the state to maximum `top`. */
static __device__ __forceinline__ void raise_state(tile_state &s, float top)
{
    float keep = power_of_2(s.max - top);
    s.max = top;
    s.sum *= keep;
#pragma unroll
    for (int i = 0; i < 4 * SUMS; i++)
        s.sums[i / 4][i % 4] *= keep;
}

/* Computes the weights of the KV tile's scores as B operands for the values: two words per tile. */
static __device__ __forceinline__ void weigh(tile_state &s, float (*scores)[2], u32 (*weights)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        float weight = power_of_2(scores[i / 2][i % 2] - s.max);
        u32 word = pack_pair(MGL_CACHE, weight, 0.0f);
        s.sum += weight;
        weights[i / 2][i % 2] =
            transposed(pack_pair(MGL_CACHE, low_half(word), weight - low_half(word)));
    }
}

/* Adds the values of tile t, multiplied by their weights. */
static __device__ __forceinline__ void add_tile(tile_state &s, const tile_vectors &values, int t,
                                                const u32 *weights)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        u32 words[4];
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const uint4 raw = values.at[value_number(t, p, i / 4)];
            words[p] = i % 4 == 0 ? raw.x : i % 4 == 1 ? raw.y : i % 4 == 2 ? raw.z : raw.w;
        }
        mma_tile(s.sums[i], __byte_perm(words[0], words[1], 0x5410),
                 __byte_perm(words[0], words[1], 0x7632), __byte_perm(words[2], words[3], 0x5410),
                 __byte_perm(words[2], words[3], 0x7632), weights[0], weights[1]);
    }
}

/* Adds a KV tile's values, weighted by the scores. */
static __device__ __forceinline__ void add_values(tile_state &s, float (*scores)[2],
                                                  const tile_vectors &values)
{
    u32 weights[TILES][2];
    weigh(s, scores, weights);
#pragma unroll
    for (int t = 0; t < TILES; t++)
        add_tile(s, values, t, weights[t]);
}

static __device__ __forceinline__ tile_state empty_state()
{
    tile_state s;
    s.max = -INFINITY;
    s.sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4 * SUMS; i++)
        s.sums[i / 4][i % 4] = 0.0f;
    return s;
}

#endif
