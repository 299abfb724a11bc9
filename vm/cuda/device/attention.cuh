/*
 * Attention of the queue's rows over one kv head, for attend, attend_tail and attend_past.
 *
 * This epoch's keys and values are appended to the cache first and read back from there: so a
 * position counts as it is stored, whichever epoch it came with. Row r of a sequence with n earlier
 * positions looks at [lo, hi), its split's share of them, and, where this task is the one that
 * appends, at [n, position(r)].
 *
 * One pass of the block: one row and up to PASS_HEADS heads of the group. Warp w takes the blocks of
 * 32 positions w, w + W, ...: first a lane has a position each (scores, online softmax), then a lane
 * has dimensions (weighted sum of v). The warps' results (max, sum, weighted sum) are merged in the
 * order of the warps. (Online softmax: Milakov and Gimelshein, arXiv 1805.02867; its use for partial
 * attention: Dao et al., arXiv 2205.14135.)
 */
#ifndef MGL_DEVICE_ATTENTION_CUH
#define MGL_DEVICE_ATTENTION_CUH

#include "vm/cuda/device/machine.cuh"

/* How many heads and warps fit the room for partial sums: q (heads, head_dim), results (warps, heads,
 * head_dim + 2). */
static constexpr int pass_floats(int heads, int warps)
{
    return heads * MGL_HEAD_DIM + warps * heads * (MGL_HEAD_DIM + 2);
}

static constexpr int pass_heads()
{
    int heads = 1;
    while (heads * 2 <= MGL_HEADS && heads * 2 * MGL_HEAD_DIM <= 512 &&
           pass_floats(heads * 2, MGL_WARPS) <= PARTIALS)
        heads *= 2;
    return heads;
}

static constexpr int pass_warps(int heads)
{
    int warps = MGL_WARPS;
    while (warps > 1 && pass_floats(heads, warps) > PARTIALS)
        warps--;
    return warps;
}

enum {
    HEAD_DIM = MGL_HEAD_DIM,
    PASS_HEADS = pass_heads(),
    PASS_WARPS = pass_warps(PASS_HEADS),
    LANE_DIMS = (HEAD_DIM + 31) / 32,
    RESULT = HEAD_DIM + 2, /* weighted sum, max, sum */
    VALUES = 8,            /* positions whose values are on their way at once */
    KV_VECTOR = HEAD_DIM * cache_format::SIZE % 16 == 0 ? cache_format::VECTOR : 1
};

/* What a task attends to. */
struct attention {
    const mgl_device_operand *q, *rope, *k, *v; /* k, v: (sequences, 1, positions, head_dim) */
    int split, splits;                          /* its share of the earlier positions */
    bool now;                                   /* this epoch's rows too */
};

/* The positions of one row: `early` from lo on, then from `first` on, `count` in all. */
struct positions {
    int lo, early, first, count;
};

static __device__ __forceinline__ int position_of(const positions &p, int i)
{
    return i < p.early ? p.lo + i : p.first + i - p.early;
}

static __device__ positions positions_of(const machine &m, const attention &a, int r)
{
    int start = mgl_step_first_row(m.s->table, r);
    int first = m.s->table[start * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    long long lo = (long long)first * a.split / a.splits;
    long long hi = (long long)first * (a.split + 1) / a.splits;
    positions p;
    p.lo = (int)lo;
    p.early = (int)(hi - lo);
    p.first = first;
    p.count = p.early;
    if (a.now)
        p.count += m.s->table[r * MGL_TABLE_WORDS + MGL_TABLE_POSITION] - first + 1;
    return p;
}

/* Element i of a head rotated by the row `rope` of the table: cosines, then sines. */
static __device__ __forceinline__ float rotated(const float *x, const float *rope, int i)
{
    const int half = HEAD_DIM / 2;
    if (i < half)
        return x[i] * rope[i] - x[i + half] * rope[half + i];
    return x[i] * rope[i - half] + x[i - half] * rope[i];
}

/* Position p of sequence s in a cache operand: its element number. */
static __device__ __forceinline__ long long cache_index(const mgl_device_operand &cache, int s,
                                                        int p)
{
    return s * cache.stride0 + (long long)p * cache.stride2;
}

/* Appends this epoch's k, rotated, and v. The caller needs a barrier before they are read. */
static __device__ void append(const machine &m, const mgl_device_operand &k,
                              const mgl_device_operand &v, const mgl_device_operand &rope,
                              const mgl_device_operand &k_now, const mgl_device_operand &v_now)
{
    for (int e = m.tid; e < rows_of(m) * HEAD_DIM; e += THREADS) {
        int r = e / HEAD_DIM, i = e % HEAD_DIM;
        const int *row = m.s->table + r * MGL_TABLE_WORDS;
        int s = row[MGL_TABLE_SEQUENCE], p = row[MGL_TABLE_POSITION];
        long long at = cache_index(k_now, s, p) + i;
        cache_format::store((u8 *)k_now.at, at, rotated(row_of(k, r), row_of(rope, p), i));
        cache_format::store((u8 *)v_now.at, cache_index(v_now, s, p) + i, row_of(v, r)[i]);
    }
}

/* The scores of one key against the pass's heads, unscaled. q: (PASS_HEADS, HEAD_DIM), shared. */
static __device__ __forceinline__ void score(const u8 *k, const float *q, float *scores)
{
#pragma unroll
    for (int h = 0; h < PASS_HEADS; h++)
        scores[h] = 0.0f;
#pragma unroll 4
    for (int i = 0; i < HEAD_DIM; i += KV_VECTOR) {
        float key[cache_format::VECTOR];
        if (KV_VECTOR > 1)
            cache_format::unpack(*(const uint4 *)(k + i * cache_format::SIZE), key);
        else
            key[0] = cache_format::load(k, i);
#pragma unroll
        for (int h = 0; h < PASS_HEADS; h++) {
#pragma unroll
            for (int j = 0; j < KV_VECTOR; j++)
                scores[h] = fmaf(q[h * HEAD_DIM + i + j], key[j], scores[h]);
        }
    }
}

/* Adds `here` positions' values from number i on, weighed: a lane has dimensions now, and the weights
 * are those of lanes `lane` on. Positions past the end repeat the last, with weight 0. */
static __device__ __forceinline__ void add_values(const machine &m, const attention &a, int s,
                                                  const positions &p, int i, int here, int lane,
                                                  const float *weight, float (*mean)[LANE_DIMS])
{
    float value[VALUES][LANE_DIMS];
#pragma unroll
    for (int u = 0; u < VALUES; u++) {
        long long row = cache_index(*a.v, s, position_of(p, i + min(u, here - 1)));
#pragma unroll
        for (int j = 0; j < LANE_DIMS; j++) {
            int d = m.lane + 32 * j;
            value[u][j] = d < HEAD_DIM ? cache_format::load((const u8 *)a.v->at, row + d) : 0.0f;
        }
    }
#pragma unroll
    for (int u = 0; u < VALUES; u++) {
#pragma unroll
        for (int h = 0; h < PASS_HEADS; h++) {
            float w = __shfl_sync(0xFFFFFFFFu, weight[h], lane + u);
#pragma unroll
            for (int j = 0; j < LANE_DIMS; j++)
                mean[h][j] = fmaf(w, value[u][j], mean[h][j]);
        }
    }
}

/* One warp's share of the positions: leaves its results in `to` (PASS_HEADS, RESULT), shared. */
static __device__ void attend_warp(const machine &m, const attention &a, int s, const positions &p,
                                   const float *q, float *to)
{
    const float scale = 1.0f / sqrtf((float)HEAD_DIM);
    const u8 *k = (const u8 *)a.k->at;
    float max[PASS_HEADS], sum[PASS_HEADS], mean[PASS_HEADS][LANE_DIMS];
#pragma unroll
    for (int h = 0; h < PASS_HEADS; h++) {
        max[h] = -INFINITY;
        sum[h] = 0.0f;
        for (int i = 0; i < LANE_DIMS; i++)
            mean[h][i] = 0.0f;
    }
    for (int from = m.warp * 32; from < p.count; from += PASS_WARPS * 32) {
        int here = min(32, p.count - from);
        int at = position_of(p, from + min(m.lane, here - 1));
        float weight[PASS_HEADS];
        score(k + cache_index(*a.k, s, at) * cache_format::SIZE, q, weight);
#pragma unroll
        for (int h = 0; h < PASS_HEADS; h++) {
            float value = m.lane < here ? weight[h] * scale : -INFINITY;
            float top = fmaxf(max[h], warp_max(value)), keep = expf(max[h] - top);
            weight[h] = expf(value - top);
            sum[h] = sum[h] * keep + warp_sum(weight[h]);
            max[h] = top;
#pragma unroll
            for (int i = 0; i < LANE_DIMS; i++)
                mean[h][i] *= keep;
        }
        for (int j = 0; j < here; j += VALUES)
            add_values(m, a, s, p, from + j, min((int)VALUES, here - j), j, weight, mean);
    }
#pragma unroll
    for (int h = 0; h < PASS_HEADS; h++) {
#pragma unroll
        for (int i = 0; i < LANE_DIMS; i++)
            if (m.lane + 32 * i < HEAD_DIM)
                to[h * RESULT + m.lane + 32 * i] = mean[h][i];
        if (m.lane == 0) {
            to[h * RESULT + HEAD_DIM] = max[h];
            to[h * RESULT + HEAD_DIM + 1] = sum[h];
        }
    }
}

/* Merges n results, `stride` floats apart, in order: element d of the weighted sum, and max and sum
 * of the whole. Empty ones weigh nothing. */
static __device__ __forceinline__ float merge_results(const float *from, long long stride, int n,
                                                      int d, float *max, float *sum)
{
    float top = -INFINITY, total = 0.0f, value = 0.0f;
    for (int i = 0; i < n; i++)
        top = fmaxf(top, from[i * stride + HEAD_DIM]);
    for (int i = 0; i < n; i++) {
        float other = from[i * stride + HEAD_DIM];
        float weight = other == -INFINITY ? 0.0f : expf(other - top);
        total += from[i * stride + HEAD_DIM + 1] * weight;
        value += from[i * stride + d] * weight;
    }
    *max = top;
    *sum = total;
    return value;
}

/* All rows and heads of the q region. Calls finish(r, head, d, value, max, sum) once an element. */
template <class FINISH>
static __device__ void attend_rows(machine &m, const attention &a, const FINISH &finish)
{
    float *q = m.s->partial, *results = q + PASS_HEADS * HEAD_DIM;
    const int passes =
        (MGL_HEADS + PASS_HEADS - 1) / PASS_HEADS; /* of a row; the last may be short */
    for (int item = 0; item < rows_of(m) * passes; item++) {
        int r = item / passes, head = item % passes * PASS_HEADS;
        const int *row = m.s->table + r * MGL_TABLE_WORDS;
        int s = row[MGL_TABLE_SEQUENCE], heads = min((int)PASS_HEADS, MGL_HEADS - head);
        positions p = positions_of(m, a, r);
        consumer_barrier();
        for (int e = m.tid; e < PASS_HEADS * HEAD_DIM; e += THREADS) {
            int h = min(e / HEAD_DIM, heads - 1);
            q[e] = rotated(row_of(*a.q, r) + (head + h) * HEAD_DIM,
                           row_of(*a.rope, row[MGL_TABLE_POSITION]), e % HEAD_DIM);
        }
        consumer_barrier();
        if (m.warp < PASS_WARPS)
            attend_warp(m, a, s, p, q, results + m.warp * PASS_HEADS * RESULT);
        consumer_barrier();
        for (int e = m.tid; e < heads * HEAD_DIM; e += THREADS) {
            int h = e / HEAD_DIM, d = e % HEAD_DIM;
            float max, sum;
            float value =
                merge_results(results + h * RESULT, PASS_HEADS * RESULT, PASS_WARPS, d, &max, &sum);
            finish(r, head + h, d, value, max, sum);
        }
    }
}

/* Stores a split's results as they are: part (split, row, head, head_dim + 2). */
static __device__ void attend_part(machine &m, const attention &a, const mgl_device_operand &part)
{
    attend_rows(m, a, [&](int r, int head, int d, float value, float max, float sum) {
        float *to = (float *)part.at + (long long)r * part.stride1 + (long long)head * part.stride2;
        to[d] = value;
        if (d == 0) {
            to[HEAD_DIM] = max;
            to[HEAD_DIM + 1] = sum;
        }
    });
}

#endif
