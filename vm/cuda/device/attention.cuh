/*
 * Attention of the queue's rows over one kv head, for attend, attend_tail and attend_past.
 *
 * Row r of a sequence with n earlier positions looks at [lo, hi), its split's share of them, and, where
 * this task is the one that appends, at [n, position(r)]. This epoch's keys and values count as they
 * are stored in the cache: a position has one value, whichever epoch it came with.
 *
 * One pass of the block: one row and up to PASS_HEADS heads of the group. A position is the work of a
 * team of LANES lanes, each with DIMS of its dimensions, for H heads: all of the pass where there are many
 * positions (each key is read once), one where there are few (the pass's heads are dealt to the warps, and
 * each has less to do). Of the teams that work on the same heads, number t takes positions t, t + teams,
 * ..., ahead<H>() of them at once: their keys and values are asked for before the
 * queries are there, since neither depends on this epoch. A team keeps an online softmax (maximum, sum,
 * weighted sum of values); teams of a warp are merged by shuffles, warps through shared memory, always
 * in the same order. (Online softmax: Milakov and Gimelshein, arXiv 1805.02867; its use for partial
 * attention: Dao et al., arXiv 2205.14135.)
 */
#ifndef MGL_DEVICE_ATTENTION_CUH
#define MGL_DEVICE_ATTENTION_CUH

#include "vm/cuda/device/exchange.cuh"

static constexpr int power_of_two(int n)
{
    int power = 1;
    while (power < n)
        power *= 2;
    return power;
}

enum {
    HEAD_DIM = MGL_HEAD_DIM,
    KV_VECTOR = cache_format::VECTOR, /* elements in 16 bytes */
    /* rows of the cache begin at multiples of 16 bytes */
    KV_ALIGNED = HEAD_DIM * cache_format::SIZE % 16 == 0,
    LANES = power_of_two((HEAD_DIM + KV_VECTOR - 1) / KV_VECTOR) < 32
                ? power_of_two((HEAD_DIM + KV_VECTOR - 1) / KV_VECTOR)
                : 32,
    VECTORS = (HEAD_DIM + LANES * KV_VECTOR - 1) / (LANES * KV_VECTOR), /* of a lane */
    DIMS = VECTORS * KV_VECTOR,
    WARP_TEAMS = 32 / LANES,
    MOST_HEADS = 32 / DIMS > 1 ? 32 / DIMS : 1, /* registers for q and the sums of values */
    MOST_AHEAD = VECTORS == 1 ? 4 : 1,          /* positions asked for at once */
    RESULT = HEAD_DIM + 2                       /* weighted sum, max, sum */
};

/* How many heads and warps fit the room for partial sums: q as it comes and rotated (heads, head_dim
 * each), k and v as they come and as they are stored (head_dim each), cosines and sines (head_dim),
 * results (warps, heads, head_dim + 2). */
static constexpr int pass_floats(int heads)
{
    return 2 * heads * MGL_HEAD_DIM + 5 * MGL_HEAD_DIM + MGL_WARPS * heads * (MGL_HEAD_DIM + 2);
}

static constexpr int pass_heads()
{
    int heads = MGL_HEADS < MOST_HEADS ? MGL_HEADS : MOST_HEADS;
    while (heads > 1 && pass_floats(heads) > PARTIALS)
        heads--;
    return heads;
}

enum {
    PASS_HEADS = pass_heads(),
    MANY_HEADS = PASS_HEADS < 2 ? PASS_HEADS : 2, /* of a team where there are many positions */
    FEW = 256 /* positions of a row, at most, for which a team has one head */
};

/* Warps that work on the same heads, H of them a team. */
template <int H> static constexpr int share_warps()
{
    return MGL_WARPS / ((PASS_HEADS + H - 1) / H) > 0 ? MGL_WARPS / ((PASS_HEADS + H - 1) / H) : 1;
}
static_assert(pass_floats(PASS_HEADS) <= PARTIALS + MGL_STAGE / 4, "attention's room is too small");

/* Makes own().att from the numbers of the operands that differ from op to op; q is 0. One lane. */
static __device__ __forceinline__ attention &prepare_attention(const machine &m, int rope, int k,
                                                               int v)
{
    attention &a = own().att;
    const mgl_device_operand &keys = operand(m, k), &values = operand(m, v);
    a.q = view_of(m, operand(m, 0));
    a.rope = (const float *)operand(m, rope).at;
    a.rope_stride = (int)operand(m, rope).stride0;
    a.k = {(u8 *)keys.at, keys.stride0, keys.stride2};
    a.v = {(u8 *)values.at, values.stride0, values.stride2};
    a.split = a.part = 0;
    a.splits = 1;
    a.now = false;
    return a;
}

static __device__ __forceinline__ void prepare_part(const machine &m, attention &a, int part)
{
    a.split = operand(m, part).first0;
    a.splits = operand(m, part).extent0;
    a.part = part;
}

static __device__ __forceinline__ void prepare_now(const machine &m, attention &a)
{
    a.k_new = view_of(m, operand(m, 1));
    a.v_new = view_of(m, operand(m, 2));
    a.now = true;
}

/* What a pass keeps in shared memory. */
struct pass {
    float *raw;     /* q of the pass's heads as it came, then k and v */
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

/* The positions of one row: [lo, hi) of the earlier ones, then [first, last] of this epoch's; `last` is
 * the row's own. */
struct positions {
    int lo, hi, first, last;
};

static __device__ __forceinline__ positions positions_of(const machine &m, int r)
{
    const attention &a = own().att;
    int start = mgl_step_first_row(own().table, r);
    positions p;
    p.first = own().table[start * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    p.last = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    p.lo = a.splits == 1 ? 0 : (int)((long long)p.first * a.split / a.splits);
    p.hi = a.splits == 1 ? p.first : (int)((long long)p.first * (a.split + 1) / a.splits);
    return p;
}

/* Element i of a head rotated: cosines, then sines in `rope`. */
static __device__ __forceinline__ float rotated(const float *x, const float *rope, int i)
{
    const int half = HEAD_DIM / 2;
    if (i < half)
        return x[i] * rope[i] - x[i + half] * rope[half + i];
    return x[i] * rope[i - half] + x[i - half] * rope[i];
}

/* Position p of sequence s: its element number. */
static __device__ __forceinline__ long long cache_index(const cache_view &cache, int s, int p)
{
    return s * cache.sequence + (long long)p * cache.position;
}

/* ---- keys and values of a team ---------------------------------------------------------------- */

/* One position's key or value, this lane's dimensions: as they are in memory. */
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

/* A team's softmax so far: of its lane's dimensions. */
template <int H> struct team {
    float q[H][DIMS]; /* scaled */
    float max[H], sum[H], mean[H][DIMS];
};

template <int H>
static __device__ __forceinline__ void begin_team(team<H> &t, const float *q, int lane)
{
    const float scale = 1.0f / sqrtf((float)HEAD_DIM);
#pragma unroll
    for (int h = 0; h < H; h++) {
        t.max[h] = -INFINITY;
        t.sum[h] = 0.0f;
#pragma unroll
        for (int j = 0; j < DIMS; j++) {
            int d = dim_of(lane, j);
            t.q[h][j] = d < HEAD_DIM ? q[h * HEAD_DIM + d] * scale : 0.0f;
            t.mean[h][j] = 0.0f;
        }
    }
}

/* The scores of one key, in all lanes of the team. */
template <int H>
static __device__ __forceinline__ void score(const team<H> &t, const float *key, float *scores)
{
#pragma unroll
    for (int h = 0; h < H; h++) {
        scores[h] = 0.0f;
#pragma unroll
        for (int j = 0; j < DIMS; j++)
            scores[h] = fmaf(t.q[h][j], key[j], scores[h]);
#pragma unroll
        for (int offset = LANES / 2; offset > 0; offset >>= 1)
            scores[h] += __shfl_xor_sync(0xFFFFFFFFu, scores[h], offset);
    }
}

/* Takes N positions into the softmax; those from `count` on are none. */
template <int N, int H>
static __device__ __forceinline__ void add_positions(team<H> &t, const row_part *keys,
                                                     const row_part *values, int count)
{
    float scores[N][H], part[DIMS];
#pragma unroll
    for (int u = 0; u < N; u++) {
        unpack_part(keys[u], part);
        score(t, part, scores[u]);
    }
#pragma unroll
    for (int h = 0; h < H; h++) {
        float top = t.max[h];
#pragma unroll
        for (int u = 0; u < N; u++)
            top = u < count ? fmaxf(top, scores[u][h]) : top;
        float keep = t.max[h] == -INFINITY ? 0.0f : __expf(t.max[h] - top);
        t.sum[h] *= keep;
#pragma unroll
        for (int j = 0; j < DIMS; j++)
            t.mean[h][j] *= keep;
#pragma unroll
        for (int u = 0; u < N; u++) {
            scores[u][h] = u < count ? __expf(scores[u][h] - top) : 0.0f;
            t.sum[h] += scores[u][h];
        }
        t.max[h] = top;
    }
#pragma unroll
    for (int u = 0; u < N; u++) {
        unpack_part(values[u], part);
#pragma unroll
        for (int h = 0; h < H; h++)
#pragma unroll
            for (int j = 0; j < DIMS; j++)
                t.mean[h][j] = fmaf(scores[u][h], part[j], t.mean[h][j]);
    }
}

/* Merges the softmax of another team, which lane ^ offset has. */
template <int H> static __device__ __forceinline__ void merge_teams(team<H> &t, int offset)
{
#pragma unroll
    for (int h = 0; h < H; h++) {
        float other = __shfl_xor_sync(0xFFFFFFFFu, t.max[h], offset), top = fmaxf(t.max[h], other);
        float mine = t.max[h] == -INFINITY ? 0.0f : __expf(t.max[h] - top);
        float theirs = other == -INFINITY ? 0.0f : __expf(other - top);
        float sum = __shfl_xor_sync(0xFFFFFFFFu, t.sum[h], offset);
        t.sum[h] = t.sum[h] * mine + sum * theirs;
#pragma unroll
        for (int j = 0; j < DIMS; j++) {
            float mean = __shfl_xor_sync(0xFFFFFFFFu, t.mean[h][j], offset);
            t.mean[h][j] = t.mean[h][j] * mine + mean * theirs;
        }
        t.max[h] = top;
    }
}

/* The first team of each warp leaves the warp's results (H, RESULT). */
template <int H>
static __device__ __forceinline__ void leave_results(int lane, team<H> &t, float *to)
{
#pragma unroll
    for (int offset = LANES; offset < 32; offset <<= 1)
        merge_teams(t, offset);
    if (lane >= LANES)
        return;
#pragma unroll
    for (int h = 0; h < H; h++) {
#pragma unroll
        for (int j = 0; j < DIMS; j++)
            if (dim_of(lane, j) < HEAD_DIM)
                to[h * RESULT + dim_of(lane, j)] = t.mean[h][j];
        if (lane == 0) {
            to[h * RESULT + HEAD_DIM] = t.max[h];
            to[h * RESULT + HEAD_DIM + 1] = t.sum[h];
        }
    }
}

/* ---- one pass --------------------------------------------------------------------------------- */

/* Keys and values of N earlier positions of this lane's team, `teams` apart, asked for at
 * once; those past the end repeat the last one. How many there are. */
template <int N> struct batch {
    row_part keys[N], values[N];
    int count;
};

/* As many as there are registers for. */
template <int H> static constexpr int ahead()
{
    return H * DIMS <= 16 ? MOST_AHEAD : MOST_AHEAD / 2 > 0 ? MOST_AHEAD / 2 : 1;
}

template <int N>
static __device__ __forceinline__ void load_batch(const machine &m, int s, int from, int hi,
                                                  int teams, batch<N> &b)
{
    const attention &a = own().att;
    b.count = from < hi ? min(N, (hi - from + teams - 1) / teams) : 0;
#pragma unroll
    for (int u = 0; u < N; u++) {
        int p = max(0, min(from + u * teams, hi - 1));
        if (u > 0 && u >= b.count) {
            b.keys[u] = b.keys[u - 1];
            b.values[u] = b.values[u - 1];
            continue;
        }
        b.keys[u] = load_part(a.k.at, cache_index(a.k, s, p), m.lane);
        b.values[u] = load_part(a.v.at, cache_index(a.v, s, p), m.lane);
    }
}

/* Fetches what the pass needs, 16 bytes a thread: heads [head, head + heads) of q, then k and v where it
 * appends; and the rope row. Then q rotated, and the cache longer by a position. */
static __device__ __forceinline__ void begin_pass(const machine &m, const pass &p, int r, int head,
                                                  int heads, bool appends, u64 policy)
{
    const attention &a = own().att;
    const int *row = own().table + r * MGL_TABLE_WORDS;
    const float *rope = a.rope + row[MGL_TABLE_POSITION] * a.rope_stride;
    for (int i = THREADS - 1 - m.tid; i < HEAD_DIM; i += THREADS)
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
#if MGL_TRACE
    if (m.tid == 0)
        own().input = time_ns();
#endif
    for (int e = m.tid; e < PASS_HEADS * HEAD_DIM; e += THREADS)
        p.q[e] = rotated(p.raw + min(e / HEAD_DIM, heads - 1) * HEAD_DIM, p.rope, e % HEAD_DIM);
    if (!appends)
        return consumer_barrier();
    int s = row[MGL_TABLE_SEQUENCE], position = row[MGL_TABLE_POSITION];
    for (int e = m.tid; e < 2 * HEAD_DIM; e += THREADS) {
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

/* Positions of this epoch's rows: those before the row's own are in the cache, its own in shared
 * memory. Each is one team's. */
template <int H>
static __device__ __forceinline__ void add_now(const machine &m, const pass &p, int s,
                                               const positions &at, int number, int teams,
                                               team<H> &t)
{
    const attention &a = own().att;
    for (int from = at.first; from <= at.last; from += teams) {
        int position = from + number, mine = position <= at.last;
        row_part key, value;
        float k[DIMS], v[DIMS];
        if (position < at.last) {
            key = load_part(a.k.at, cache_index(a.k, s, position), m.lane);
            value = load_part(a.v.at, cache_index(a.v, s, position), m.lane);
            unpack_part(key, k);
            unpack_part(value, v);
        } else {
#pragma unroll
            for (int j = 0; j < DIMS; j++) {
                int d = dim_of(m.lane, j);
                k[j] = d < HEAD_DIM ? p.k[d] : 0.0f;
                v[j] = d < HEAD_DIM ? p.v[d] : 0.0f;
            }
        }
        __syncwarp();
        float scores[H];
        score(t, k, scores);
#pragma unroll
        for (int h = 0; h < H; h++) {
            float top = mine ? fmaxf(t.max[h], scores[h]) : t.max[h];
            float keep = t.max[h] == -INFINITY ? 0.0f : __expf(t.max[h] - top);
            float weight = mine ? __expf(scores[h] - top) : 0.0f;
            t.sum[h] = (top == -INFINITY ? 0.0f : t.sum[h] * keep) + weight;
            t.max[h] = top;
#pragma unroll
            for (int j = 0; j < DIMS; j++)
                t.mean[h][j] = (mine ? t.mean[h][j] * keep : t.mean[h][j]) + weight * v[j];
        }
    }
}

static __device__ __forceinline__ float load_float(const float *at, bool flag)
{
    return flag ? __uint_as_float(load_relaxed((const u32 *)at)) : *at;
}

/* Merges n results, `stride` floats apart, in order: elements d and d + 1 of the weighted sum, and max
 * and sum of the whole. Empty ones weigh nothing. `flag`: words of a flagged region that are written. */
static __device__ __forceinline__ float2 merge_results(const float *from, long long stride, int n,
                                                       int d, bool flag, float *max, float *sum)
{
    float top = -INFINITY, total = 0.0f;
    float2 value = {0.0f, 0.0f};
#pragma unroll 8
    for (int i = 0; i < n; i++)
        top = fmaxf(top, load_float(from + i * stride + HEAD_DIM, flag));
#pragma unroll 8
    for (int i = 0; i < n; i++) {
        float other = load_float(from + i * stride + HEAD_DIM, flag);
        float weight = other == -INFINITY ? 0.0f : __expf(other - top);
        total += load_float(from + i * stride + HEAD_DIM + 1, flag) * weight;
        value.x += load_float(from + i * stride + d, flag) * weight;
        value.y += load_float(from + i * stride + d + 1, flag) * weight;
    }
    *max = top;
    *sum = total;
    return value;
}

/* One pass: its results are in p.results (share_warps<H>, PASS_HEADS, RESULT), behind a barrier. */
template <int H>
static __device__ __forceinline__ void attend_pass(const machine &m, const pass &p, int r, int head,
                                                   int heads, const positions &at, u64 policy)
{
    const attention &a = own().att;
    constexpr int SHARE = share_warps<H>(), TEAMS = SHARE * WARP_TEAMS;
    const int group = m.warp / SHARE, number = m.warp % SHARE * WARP_TEAMS + m.lane / LANES;
    const int s = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE];
    const bool works = group * H < PASS_HEADS;
    constexpr int N = ahead<H>();
    batch<N> b;
    team<H> t;
    if (works)
        load_batch(m, s, at.lo + number, at.hi, TEAMS, b);
    begin_pass(m, p, r, head, heads, a.now && head == 0, policy);
    if (works) {
        begin_team(t, p.q + group * H * HEAD_DIM, m.lane);
        for (int from = at.lo; from < at.hi; from += N * TEAMS) {
            if (from > at.lo)
                load_batch(m, s, from + number, at.hi, TEAMS, b);
            add_positions<N>(t, b.keys, b.values, b.count);
        }
        if (a.now)
            add_now(m, p, s, at, number, TEAMS, t);
        leave_results(m.lane, t, p.results + (m.warp % SHARE * PASS_HEADS + group * H) * RESULT);
    }
    consumer_barrier();
}

/* Two neighbouring floats of a partial. */
static __device__ __forceinline__ void store_part(const mgl_device_operand &part, float *at,
                                                  float first, float second, u64 policy)
{
    if (part.flag) {
        store_two_words(at, flag_bits(first), flag_bits(second), policy);
    } else {
        at[0] = first;
        at[1] = second;
    }
}

/* Elements d and d + 1 of a head's result: divided by the sum, */
static __device__ __forceinline__ void store_mean(const view &y, int r, int head, int d,
                                                  float2 value, float sum, u64 policy)
{
    store_pair(y, r, head * HEAD_DIM + d, value.x / sum, value.y / sum, true, policy);
}

/* or as they are: part (split, row, head, head_dim + 2 or + 4). */
static __device__ __forceinline__ void store_partial(const machine &m, const mgl_device_operand &y,
                                                     int r, int head, int d, float2 value,
                                                     float max, float sum, u64 policy)
{
    float *to = (float *)address_of(m, y) + (long long)r * y.stride1 + (long long)head * y.stride2;
    store_part(y, to + d, value.x, value.y, policy);
    if (d == 0)
        store_part(y, to + HEAD_DIM, max, sum, policy);
    if (d == 0 && y.stride2 == HEAD_DIM + 4)
        store_part(y, to + HEAD_DIM + 2, 0.0f, 0.0f, policy);
}

/* All rows and heads of the q region. */
static __device__ __forceinline__ void attend_rows(const machine &m)
{
    const attention &a = own().att;
    const pass p = pass_of(m);
    const u64 policy = keep_policy();
    const int passes =
        (MGL_HEADS + PASS_HEADS - 1) / PASS_HEADS; /* of a row; the last may be short */
    for (int item = 0; item < rows_of(m) * passes; item++) {
        int r = item / passes, head = item % passes * PASS_HEADS;
        int heads = min((int)PASS_HEADS, MGL_HEADS - head);
        const positions at = positions_of(m, r);
        attend_pass<1>(m, p, r, head, heads, at, policy);
        const int warps = share_warps<1>();
        for (int e = m.tid; e < heads * HEAD_DIM / 2; e += THREADS) {
            int h = e * 2 / HEAD_DIM, d = e * 2 % HEAD_DIM;
            float max, sum;
            float2 value = merge_results(p.results + h * RESULT, PASS_HEADS * RESULT, warps, d,
                                         false, &max, &sum);
            if (a.part)
                store_partial(m, operand(m, a.part), r, head + h, d, value, max, sum, policy);
            else
                store_mean(a.y, r, head + h, d, value, sum, policy);
        }
        if (item + 1 < rows_of(m) * passes)
            consumer_barrier();
    }
}

#endif
