/*
 * Attention with scalar multiply-adds and online softmax, the general variant: for caches in f32,
 * and for heads that do not suit the tensor cores.
 *
 * One pass of the block handles one row and up to PASS_HEADS heads of the group, which are
 * distributed over the consumer warps. A team of LANES lanes processes a position of a head, each
 * lane DIMS of its dimensions. Of the HEAD_WARP_TEAMS teams that work on a head, team t takes
 * positions t, t + HEAD_WARP_TEAMS, ..., AHEAD_POSITIONS of them at once. Their keys and values are
 * loaded before the queries are there, because they do not depend on this epoch. A team keeps an
 * online softmax (maximum, sum, weighted sum of values). Teams of a warp are merged by shuffles,
 * warps through shared memory (own().partial, ordered by consumer barriers), always in the same
 * order.
 */
#ifndef MGL_DEVICE_ATTENTION_LANES_CUH
#define MGL_DEVICE_ATTENTION_LANES_CUH

#include "vm/cuda/device/attention/output.cuh"
#include "vm/cuda/device/trace.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
static constexpr int power_of_two(int n)
{
    int power = 1;
    while (power < n)
        power *= 2;
    return power;
}

enum {
    KV_VECTOR = cache_format::VECTOR, /* elements in 16 bytes */
    /* rows of the cache begin at multiples of 16 bytes */
    KV_ALIGNED = HEAD_DIM * cache_format::SIZE % 16 == 0,
    LANES = power_of_two((HEAD_DIM + KV_VECTOR - 1) / KV_VECTOR) < 32
                ? power_of_two((HEAD_DIM + KV_VECTOR - 1) / KV_VECTOR)
                : 32,
    VECTORS = (HEAD_DIM + LANES * KV_VECTOR - 1) / (LANES * KV_VECTOR), /* vectors of a lane */
    DIMS = VECTORS * KV_VECTOR,
    WARP_TEAMS = 32 / LANES,
    AHEAD_POSITIONS = VECTORS == 1 ? 4 : 1, /* positions loaded at once */
    RESULT = HEAD_DIM + 2                   /* weighted sum, max, sum */
};

/* Floats that `heads` heads take in own().partial, the buffer of partial sums: q as loaded and
 * rotated (heads, head_dim each), k and v as loaded and as stored (head_dim each), cosines and
 * sines (head_dim), results (warps, heads, head_dim + 2). */
static constexpr int pass_floats(int heads)
{
    return 2 * heads * MGL_HEAD_DIM + 5 * MGL_HEAD_DIM + MGL_WARPS * heads * (MGL_HEAD_DIM + 2);
}

static constexpr int pass_heads()
{
    int heads = MGL_HEADS < MGL_WARPS ? MGL_HEADS : MGL_WARPS;
    while (heads > 1 && pass_floats(heads) > PARTIALS)
        heads--;
    return heads;
}

enum {
    PASS_HEADS = pass_heads(),
    HEAD_WARPS = MGL_WARPS / PASS_HEADS, /* warps that work on one head */
    HEAD_WARP_TEAMS = HEAD_WARPS * 32 / LANES
};
static_assert(pass_floats(PASS_HEADS) <= PARTIALS, "attention's room is too small");

/* region: device */
/* A pass's arrays in shared memory. */
struct pass {
    float *raw;     /* q of the pass's heads as loaded, then k and v */
    float *rope;    /* cosines, then sines, of the row's position */
    float *q;       /* (PASS_HEADS, head_dim) rotated */
    float *k, *v;   /* (head_dim) this row's, as stored in the cache */
    float *results; /* (warps, PASS_HEADS, RESULT) */
};

static __device__ __forceinline__ pass pass_of(const machine &m)
{
    pass p;
    p.raw = own().partial;
    p.rope = p.raw + (PASS_HEADS + 2) * HEAD_DIM;
    p.q = p.rope + HEAD_DIM;
    p.k = p.q + PASS_HEADS * HEAD_DIM;
    p.v = p.k + HEAD_DIM;
    p.results = p.v + HEAD_DIM;
    return p;
}

/* Element i of a head after rotation (RoPE); `rope` has the cosines, then the sines. */
static __device__ __forceinline__ float rotated(const float *x, const float *rope, int i)
{
    const int half = HEAD_DIM / 2;
    if (i < half)
        return x[i] * rope[i] - x[i + half] * rope[half + i];
    return x[i] * rope[i - half] + x[i - half] * rope[i];
}

/* ---- keys and values of a team ----------------------------------------------------------------
 */

/* This lane's dimensions of one position's key or value, in the cache's format. */
struct row_part {
    uint4 raw[VECTORS];
};

/* Number of this lane's dimension j. */
static __device__ __forceinline__ int dim_of(int lane, int j)
{
    return (j / KV_VECTOR * LANES + lane % LANES) * KV_VECTOR + j % KV_VECTOR;
}

static __device__ __forceinline__ row_part load_part(const u8 *cache, long long at, int lane)
{
    row_part part;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int d = dim_of(lane, i * KV_VECTOR);
        part.raw[i] = make_uint4(0, 0, 0, 0);
        if (KV_ALIGNED && d < HEAD_DIM) {
            part.raw[i] = *(const uint4 *)(cache + (at + d) * cache_format::SIZE);
        } else if (!KV_ALIGNED) {
            u32 words[4] = {0, 0, 0, 0};
#pragma unroll
            for (int j = 0; j < KV_VECTOR; j++)
                if (d + j < HEAD_DIM) {
                    if (cache_format::SIZE == 4)
                        words[j % 4] = ((const u32 *)cache)[at + d + j];
                    else
                        words[j / 2] |= (u32)((const u16 *)cache)[at + d + j] << 16 * (j & 1);
                }
            part.raw[i] = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
    return part;
}

static __device__ __forceinline__ void unpack_part(const row_part &part, float *to)
{
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        cache_format::unpack(part.raw[i], to + i * KV_VECTOR);
}

/* A team's online softmax: this lane's dimensions. */
struct team {
    float q[DIMS]; /* scaled */
    float max, sum, mean[DIMS];
};

static __device__ __forceinline__ void begin_team(team &t, const float *q, int lane)
{
    const float scale = 1.0f / sqrtf((float)HEAD_DIM);
    t.max = -INFINITY;
    t.sum = 0.0f;
#pragma unroll
    for (int j = 0; j < DIMS; j++) {
        int d = dim_of(lane, j);
        t.q[j] = d < HEAD_DIM ? q[d] * scale : 0.0f;
        t.mean[j] = 0.0f;
    }
}

/* The score of one key, the same in all lanes of the team. */
static __device__ __forceinline__ float score(const team &t, const float *key)
{
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < DIMS; j++)
        sum = fmaf(t.q[j], key[j], sum);
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    return sum;
}

/* The factor that converts a sum relative to maximum `old` to maximum `top`. */
static __device__ __forceinline__ float rescale(float old, float top)
{
    return old == -INFINITY ? 0.0f : expf(old - top);
}

/* Adds the first `count` of AHEAD_POSITIONS positions to the softmax. */
static __device__ __forceinline__ void add_positions(team &t, const row_part *keys,
                                                     const row_part *values, int count)
{
    float scores[AHEAD_POSITIONS], part[DIMS], top = t.max;
#pragma unroll
    for (int u = 0; u < AHEAD_POSITIONS; u++) {
        unpack_part(keys[u], part);
        scores[u] = score(t, part);
        top = u < count ? fmaxf(top, scores[u]) : top;
    }
    float keep = rescale(t.max, top);
    t.sum *= keep;
    t.max = top;
#pragma unroll
    for (int j = 0; j < DIMS; j++)
        t.mean[j] *= keep;
#pragma unroll
    for (int u = 0; u < AHEAD_POSITIONS; u++) {
        float weight = u < count ? expf(scores[u] - top) : 0.0f;
        t.sum += weight;
        unpack_part(values[u], part);
#pragma unroll
        for (int j = 0; j < DIMS; j++)
            t.mean[j] = fmaf(weight, part[j], t.mean[j]);
    }
}

/* Merges the softmax of the team in lane ^ offset. */
static __device__ __forceinline__ void merge_warp_teams(team &t, int offset)
{
    float other = __shfl_xor_sync(0xFFFFFFFFu, t.max, offset), top = fmaxf(t.max, other);
    float mine = rescale(t.max, top), theirs = rescale(other, top);
    float sum = __shfl_xor_sync(0xFFFFFFFFu, t.sum, offset);
    t.sum = t.sum * mine + sum * theirs;
    t.max = top;
#pragma unroll
    for (int j = 0; j < DIMS; j++) {
        float mean = __shfl_xor_sync(0xFFFFFFFFu, t.mean[j], offset);
        t.mean[j] = t.mean[j] * mine + mean * theirs;
    }
}

/* Merges the teams of a warp; the first team writes the warp's results. */
static __device__ __forceinline__ void write_results(int lane, team &t, float *to)
{
#pragma unroll
    for (int offset = LANES; offset < 32; offset <<= 1)
        merge_warp_teams(t, offset);
    if (lane >= LANES)
        return;
#pragma unroll
    for (int j = 0; j < DIMS; j++)
        if (dim_of(lane, j) < HEAD_DIM)
            to[dim_of(lane, j)] = t.mean[j];
    if (lane == 0) {
        to[HEAD_DIM] = t.max;
        to[HEAD_DIM + 1] = t.sum;
    }
}

/* ---- one pass ---------------------------------------------------------------------------------
 */

/* Keys and values of AHEAD_POSITIONS positions of this lane's team, from `from` on. Positions of
 * earlier epochs are loaded at once, before the queries are there. */
struct kv_tile {
    row_part keys[AHEAD_POSITIONS], values[AHEAD_POSITIONS];
};

static __device__ __forceinline__ void load_kv_tile(int lane, int s, int from, int hi, kv_tile &b)
{
    const attention &a = own().att;
#pragma unroll
    for (int u = 0; u < AHEAD_POSITIONS; u++) {
        int p = from + u * HEAD_WARP_TEAMS;
        b.keys[u] = b.values[u] = row_part();
        if (p < hi) {
            b.keys[u] = load_part(a.k.at, cache_index(a.k, s, p), lane);
            b.values[u] = load_part(a.v.at, cache_index(a.v, s, p), lane);
        }
    }
}

/* Applies RMSNorm to the pass's heads of q, and to k if the task appends, a head per warp. */
static __device__ __forceinline__ void norm_heads(const machine &m, const pass &p, int heads,
                                                  bool appends)
{
    for (int h = m.warp; h < heads + appends; h += MGL_WARPS) {
        float *x = p.raw + (h < heads ? h : (int)PASS_HEADS) * HEAD_DIM, squares = 0.0f;
        const float *g = h < heads ? query_norm(m) : key_norm(m);
        for (int i = m.lane; i < HEAD_DIM; i += 32)
            squares = fmaf(x[i], x[i], squares);
        for (int offset = 16; offset > 0; offset /= 2)
            squares += __shfl_xor_sync(0xFFFFFFFFu, squares, offset);
        const float scale = head_scale(squares);
        for (int i = m.lane; i < HEAD_DIM; i += 32)
            x[i] = x[i] * scale * g[i];
    }
    consumer_barrier();
}

/* Loads the inputs of a pass, 16 bytes per thread: heads [head, head + heads) of q, k and v if the
 * task appends, and the rope row. Then rotates q, and appends the row's position to the cache. */
static __device__ __forceinline__ void begin_pass(const machine &m, const pass &p, int r, int head,
                                                  int heads, bool appends, u64 policy)
{
    const attention &a = own().att;
    const int *row = own().table + r * MGL_TABLE_WORDS;
    const float *rope = a.rope + row[MGL_TABLE_POSITION] * a.rope_stride;
    for (int i = THREADS - 1 - thread_of(m); i < HEAD_DIM; i += THREADS)
        p.rope[i] = rope[i];
    fetch_row(m, a.q, 0, r, head * HEAD_DIM, heads * HEAD_DIM, p.raw, 0, policy);
    if (appends) {
        float *k = p.raw + PASS_HEADS * HEAD_DIM;
        int base = fetch_threads(a.q, heads * HEAD_DIM);
        fetch_row(m, a.k_new, 1, r, 0, HEAD_DIM, k, base, policy);
        base += fetch_threads(a.k_new, HEAD_DIM);
        fetch_row(m, a.v_new, 2, r, 0, HEAD_DIM, k + HEAD_DIM, base, policy);
    }
    consumer_barrier();
    trace_input(m);
    if (MGL_QK_NORM)
        norm_heads(m, p, heads, appends);
    for (int e = thread_of(m); e < PASS_HEADS * HEAD_DIM; e += THREADS)
        p.q[e] = rotated(p.raw + min(e / HEAD_DIM, heads - 1) * HEAD_DIM, p.rope, e % HEAD_DIM);
    if (!appends)
        return consumer_barrier();
    int s = row[MGL_TABLE_SEQUENCE], position = row[MGL_TABLE_POSITION];
    for (int e = thread_of(m); e < 2 * HEAD_DIM; e += THREADS) {
        int i = e % HEAD_DIM;
        bool key = e < HEAD_DIM;
        const cache_view &cache = key ? a.k : a.v;
        const float *raw = p.raw + PASS_HEADS * HEAD_DIM;
        float value = key ? rotated(raw, p.rope, i) : raw[HEAD_DIM + i];
        (key ? p.k : p.v)[i] = cache_format::round(value);
        cache_format::store(cache.at, cache_index(cache, s, position) + i, value);
    }
    consumer_barrier();
}

/* The stored form of a row's own key or value, from its rounded elements. */
static __device__ __forceinline__ row_part own_part(const float *x, int lane)
{
    row_part part;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        u32 words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int j = 0; j < KV_VECTOR; j++) {
            int d = dim_of(lane, i * KV_VECTOR + j);
            float value = d < HEAD_DIM ? x[d] : 0.0f;
            if (cache_format::SIZE == 4)
                words[j % 4] = __float_as_uint(value);
            else
                words[j / 2] |= (u32)(MGL_CACHE == DTYPE_F16 ? float_f16(value) : float_bf16(value))
                                << 16 * (j & 1);
        }
        part.raw[i] = make_uint4(words[0], words[1], words[2], words[3]);
    }
    return part;
}

/* Adds this epoch's positions to a KV tile: the ones before the row's own come from the cache, its
 * own from shared memory. So the positions of a KV tile do not depend on where an epoch starts. */
static __device__ __forceinline__ void complete_kv_tile(int lane, const pass &p, int s, int from,
                                                        const positions &at, kv_tile &b)
{
    const attention &a = own().att;
#pragma unroll
    for (int u = 0; u < AHEAD_POSITIONS; u++) {
        int position = from + u * HEAD_WARP_TEAMS;
        if (position == at.last) {
            b.keys[u] = own_part(p.k, lane);
            b.values[u] = own_part(p.v, lane);
        } else if (position >= at.hi && position < at.last) {
            b.keys[u] = load_part(a.k.at, cache_index(a.k, s, position), lane);
            b.values[u] = load_part(a.v.at, cache_index(a.v, s, position), lane);
        }
    }
    __syncwarp();
}

/* Merges the results of a head's warps in order, the first at `from`. Returns elements d and d + 1
 * of the weighted sum, and the maximum and sum of the whole. Empty results have factor 0. */
static __device__ __forceinline__ float2 merge_results(const float *from, int d, float *max,
                                                       float *sum)
{
    const int stride = PASS_HEADS * RESULT;
    float top = -INFINITY, total = 0.0f;
    float2 value = {0.0f, 0.0f};
#pragma unroll 8
    for (int i = 0; i < HEAD_WARPS; i++)
        top = fmaxf(top, from[i * stride + HEAD_DIM]);
#pragma unroll 8
    for (int i = 0; i < HEAD_WARPS; i++) {
        float weight = rescale(from[i * stride + HEAD_DIM], top);
        total += from[i * stride + HEAD_DIM + 1] * weight;
        value.x += from[i * stride + d] * weight;
        value.y += from[i * stride + d + 1] * weight;
    }
    *max = top;
    *sum = total;
    return value;
}

/* Processes one pass. Its results are in p.results (HEAD_WARPS, PASS_HEADS, RESULT) after a
 * barrier. */
static __device__ __forceinline__ void attend_pass(const machine &m, const pass &p, int r, int head,
                                                   int heads, const positions &at, u64 policy)
{
    const bool now = own().att.now;
    const int h = m.warp / HEAD_WARPS, number = m.warp % HEAD_WARPS * WARP_TEAMS + m.lane / LANES;
    const int s = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE];
    const bool works = h < PASS_HEADS;
    kv_tile b;
    team t;
    if (works)
        load_kv_tile(m.lane, s, at.lo + number, at.hi, b);
    begin_pass(m, p, r, head, heads, now && head == 0, policy);
    if (works) {
        begin_team(t, p.q + h * HEAD_DIM, m.lane);
        for (int from = at.lo; from < at.end; from += AHEAD_POSITIONS * HEAD_WARP_TEAMS) {
            if (from > at.lo)
                load_kv_tile(m.lane, s, from + number, at.hi, b);
            if (now)
                complete_kv_tile(m.lane, p, s, from + number, at, b);
            int left = at.end - from - number;
            add_positions(t, b.keys, b.values,
                          left > 0 ? (left + HEAD_WARP_TEAMS - 1) / HEAD_WARP_TEAMS : 0);
        }
        write_results(m.lane, t, p.results + (m.warp % HEAD_WARPS * PASS_HEADS + h) * RESULT);
    }
    consumer_barrier();
}

/* Processes all rows and heads of the q region. */
static __device__ __forceinline__ void attend_lanes(const machine &m)
{
    const pass p = pass_of(m);
    const u64 policy = keep_policy();
    const int passes =
        (MGL_HEADS + PASS_HEADS - 1) / PASS_HEADS; /* passes of a row; the last may be short */
    for (int item = 0; item < rows_of(m) * passes; item++) {
        int r = item / passes, head = item % passes * PASS_HEADS;
        int heads = min((int)PASS_HEADS, MGL_HEADS - head);
        if (leaves_out(r))
            continue;
        const positions at = positions_of(m, r);
        attend_pass(m, p, r, head, heads, at, policy);
        for (int e = thread_of(m); e < heads * HEAD_DIM / 2; e += THREADS) {
            int h = e * 2 / HEAD_DIM, d = e * 2 % HEAD_DIM;
            float max, sum;
            float2 value = merge_results(p.results + h * RESULT, d, &max, &sum);
            store_result(output_of(m, r, head + h), d, value, max, sum, policy);
        }
        if (item + 1 < rows_of(m) * passes)
            consumer_barrier();
    }
}

/* region: end */

#endif
