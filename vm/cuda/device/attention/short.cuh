/*
 * Decode attention on tensor cores for epochs of several rows with few positions. One consumer warp
 * processes a pass (a row and up to four heads) by itself. So the rows are processed in parallel,
 * and all their inputs are waited for at once.
 *
 * Tiles, operands and sums are those of softmax.cuh, but the warps share nothing. A lane waits only
 * for the elements of q, k and v that are in its operands; their RoPE partners must be in the same
 * lane. Other variants give each KV tile to a warp and merge the results. Here the warp scores one
 * KV tile after the other and then adds them up in the same order, so the bits are the same. Each
 * lane keeps its scores in own().partial.
 *
 * A row attends to earlier rows of its sequence. If an epoch has such rows, all rows' keys and
 * values are appended to the cache first, before the only consumer barrier.
 */
#ifndef MGL_DEVICE_ATTENTION_SHORT_CUH
#define MGL_DEVICE_ATTENTION_SHORT_CUH

#include "vm/cuda/device/attention/kv_rounds.cuh"
#include "vm/cuda/device/ops.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
enum {
    PAIRS = (KEY_CHUNKS + 1) / 2, /* chunks c and c + PAIRS are rotated together */
    SHORT_KV_TILES = FOLD,        /* KV tiles of a row, at most: the number that the block merges
                                     at once */
    PREFETCHED_KEYS =
        HEAD_DIM <= 64 /* the first keys fit the registers beside the awaited vectors */
};
static_assert(!HAS_SHORT || (TILED && HALF_DIM % 32 == 0 &&
                             MGL_WARPS * SHORT_KV_TILES * TILES * 64 <= PARTIALS),
              "variants.def says so");

/* region: device */
/* ---- the row's own vectors --------------------------------------------------------------------
 */

/* Eight elements in f32, as loaded. */
struct octet {
    uint4 first, second;
};

/* N octets of a lane, APART elements from one to the next. */
template <int N, int APART> struct octets {
    const u8 *at;
    octet x[N];
};

typedef octets<2 * PAIRS, 32> key_octets; /* dimensions 32 c + 8 (l % 4), ... of q or k */
typedef octets<VALUE_CHUNKS, 64> value_octets;

template <int N, int APART>
static __device__ __forceinline__ void load_octets(octets<N, APART> &o, const u8 *at, u64 policy)
{
    o.at = at;
#pragma unroll
    for (int i = 0; i < N; i++) {
        o.x[i].first = load_words(at + i * APART * 4, policy);
        o.x[i].second = load_words(at + i * APART * 4 + 16, policy);
    }
}

/* Loads again the words that are not written. Returns whether all were written. */
template <int N, int APART>
static __device__ __forceinline__ bool look_again(octets<N, APART> &o, u64 policy)
{
    bool written = true;
#pragma unroll
    for (int i = 0; i < 2 * N; i++) {
        uint4 &words = i % 2 ? o.x[i / 2].second : o.x[i / 2].first;
        if (!is_written(words)) {
            words = load_words(o.at + i / 2 * APART * 4 + i % 2 * 16, policy);
            written = false;
        }
    }
    return written;
}

static __device__ __forceinline__ void unpack_octet(const octet &o, float *to)
{
    format<DTYPE_F32>::unpack(o.first, to);
    format<DTYPE_F32>::unpack(o.second, to + 4);
}

static __device__ __forceinline__ uint4 pack_octet(const float *x)
{
    uint2 low = pack_quad(x), high = pack_quad(x + 4);
    return make_uint4(low.x, low.y, high.x, high.y);
}

/* A row's own key and value. */
struct own_octets {
    key_octets k;
    value_octets v;
};

static __device__ __forceinline__ void load_own(const tile_lane &l, int r, own_octets &own_row,
                                                u64 policy)
{
    const attention &a = own().att;
    load_octets(own_row.k, element_of(a.k_new, r, l.d_key), policy);
    load_octets(own_row.v, element_of(a.v_new, r, l.d_value), policy);
}

/* Cosines and sines of a lane's dimensions in chunks c and c + PAIRS. */
struct lane_rope {
    float4 cosine[2], sine[2];
};

/* The factors of a head's elements in its norm. */
struct lane_norm {
    float scale;
    const float *g; /* (head_dim), from the lane's first dimension on */
};

/* The norm of a head whose elements are in four lanes. Called by all lanes. Chunks c and c + PAIRS
 * are the quads of query.cuh, and the squares are added up in the same order. */
static __device__ __forceinline__ lane_norm norm_of(const tile_lane &l, const key_octets &o,
                                                    const float *g)
{
    lane_norm norm = {1.0f, g + l.d_key};
    if (!MGL_QK_NORM)
        return norm;
    float sums[2] = {};
#pragma unroll
    for (int c = 0; c < PAIRS; c++) {
        float x[8], y[8];
        unpack_octet(o.x[c], x);
        unpack_octet(o.x[c + PAIRS], y);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float squares = squares_of(x + 4 * i, y + 4 * i);
            sums[i] = c == 0 ? squares : sums[i] + squares;
        }
    }
#pragma unroll
    for (int offset = 2; offset > 0; offset /= 2)
#pragma unroll
        for (int i = 0; i < 2; i++)
            sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], offset);
    norm.scale = head_scale(sums[0] + sums[1]);
    return norm;
}

/* Prefetches the weights of a norm into L1. */
static __device__ __forceinline__ void touch_norm(const machine &m, const float *g)
{
    uint4 unused;
    if (MGL_QK_NORM)
        load_vector(&unused, (const u8 *)(g + m.lane % (HEAD_DIM / 4) * 4));
}

static __device__ __forceinline__ const float *rope_row(int r)
{
    const attention &a = own().att;
    return a.rope + own().table[r * MGL_TABLE_WORDS + MGL_TABLE_POSITION] * a.rope_stride;
}

/* Prefetches the row's cosines and sines into L1, so that they need no registers while q is
 * awaited. */
static __device__ __forceinline__ void touch_rope(const machine &m, const float *row)
{
    uint4 unused;
    load_vector(&unused, (const u8 *)(row + m.lane % (HEAD_DIM / 4) * 4));
}

static __device__ __forceinline__ lane_rope load_rope(const tile_lane &l, const float *row, int c)
{
    const float *at = row + c * 32 + l.d_key;
    lane_rope rope;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        rope.cosine[i] = *(const float4 *)(at + i * 4);
        rope.sine[i] = *(const float4 *)(at + HALF_DIM + i * 4);
    }
    return rope;
}

/* Normalizes and rotates chunks c and c + PAIRS of q or k. */
static __device__ __forceinline__ void rotate_chunks(const key_octets &o, int c,
                                                     const lane_norm &norm, const lane_rope &rope,
                                                     float *x, float *y)
{
    unpack_octet(o.x[c], x);
    unpack_octet(o.x[c + PAIRS], y);
#pragma unroll
    for (int i = 0; MGL_QK_NORM && i < 2; i++) {
        const float *g = norm.g + c * 32 + 4 * i;
        norm_four(*(const float4 *)g, norm.scale, x + 4 * i);
        norm_four(*(const float4 *)(g + HALF_DIM), norm.scale, y + 4 * i);
    }
    rotate_four(rope.cosine[0], rope.sine[0], x, y);
    rotate_four(rope.cosine[1], rope.sine[1], x + 4, y + 4);
}

/* The row's key and value as the cache stores them: the lane's dimensions. */
struct own_words {
    uint4 key[2 * PAIRS], value[VALUE_CHUNKS];
};

static __device__ __forceinline__ void make_key(const own_octets &from, const lane_norm &norm,
                                                const lane_rope &rope, int c, own_words &to)
{
    float x[8], y[8];
    rotate_chunks(from.k, c, norm, rope, x, y);
    to.key[c] = pack_octet(x);
    to.key[c + PAIRS] = pack_octet(y);
}

static __device__ __forceinline__ void make_value(const own_octets &from, own_words &to)
{
    float x[8];
#pragma unroll
    for (int c = 0; c < VALUE_CHUNKS; c++) {
        unpack_octet(from.v.x[c], x);
        to.value[c] = pack_octet(x);
    }
}

/* The lane's part of the q operand: its column is l / 4. */
static __device__ __forceinline__ uint4 query_words(const float *x, bool rest)
{
    const query_quad low = query_of(x), high = query_of(x + 4);
    return rest ? make_uint4(low.rest.x, low.rest.y, high.rest.x, high.rest.y)
                : make_uint4(low.words.x, low.words.y, high.words.x, high.words.y);
}

static __device__ __forceinline__ void make_query(const machine &m, int heads,
                                                  const key_octets &from, const lane_norm &norm,
                                                  const lane_rope &rope, int c, uint4 *to)
{
    const bool rest = m.lane / 4 % 2;
    float x[8], y[8];
    rotate_chunks(from, c, norm, rope, x, y);
    to[c] = to[c + PAIRS] = make_uint4(0, 0, 0, 0);
    if (m.lane / 8 < heads) {
        to[c] = query_words(x, rest);
        to[c + PAIRS] = query_words(y, rest);
    }
}

/* Appends the row's key and value to the cache; the first lane that has 16 bytes stores them. */
static __device__ __forceinline__ void append_own(const tile_lane &l, int position,
                                                  const own_words &own_row)
{
    if (l.key == 0)
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
            *(uint4 *)((u8 *)l.keys + (long long)position * POSITION_BYTES + c * 64) =
                own_row.key[c];
    if (l.value == 0)
#pragma unroll
        for (int c = 0; c < VALUE_CHUNKS; c++)
            *(uint4 *)((u8 *)l.values + (long long)position * POSITION_BYTES + c * 128) =
                own_row.value[c];
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* Waits for q, if QUERY, and for the row's key and value if the task appends. `missed`: 0, or 1 +
 * the operand of a wait that gave up. It is reported at the end of the task, because a call costs
 * registers. */
template <bool QUERY>
static __device__ __forceinline__ void await_octets(const machine &m, key_octets &q,
                                                    own_octets &own_row, u64 policy, int &missed)
{
    const attention &a = own().att;
    const bool no_query = !QUERY || !a.q.flag;
    const bool no_key = !a.now || !a.k_new.flag, no_value = !a.now || !a.v_new.flag;
    bool query = true, key = true, value = true;
    const bool written = missed || await_flags<QUIETLY>(m, MGL_OPERAND(attend, q), [&] {
                             query = no_query || look_again(q, policy);
                             key = no_key || look_again(own_row.k, policy);
                             value = no_value || look_again(own_row.v, policy);
                             return query && key && value;
                         });
    if (!written)
        missed = 1 + (!query ? MGL_OPERAND(attend, q)
                      : !key ? MGL_OPERAND(attend, k)
                             : MGL_OPERAND(attend, v));
    __syncwarp();
}

static __device__ __forceinline__ void report_missed(const machine &m, int missed)
{
    if (missed)
        report_flags(m, missed - 1);
}

/* ---- one pass ---------------------------------------------------------------------------------
 */

/* Keys and values of a KV tile. */
struct kv_tile_part {
    tile_vectors keys, values;
};

/* A warp's pass. Positions are numbered from the pass's first one. In a task that appends, the
 * row's own position is the last; the others are in the cache when the pass begins. */
struct short_pass {
    int row, head, heads;
    int count;  /* positions */
    int stored; /* positions that are in the cache */
    tile_lane l;
};

static __device__ __forceinline__ short_pass short_pass_at(const machine &m, int item)
{
    const tile_pass p = pass_at(item);
    const positions at = positions_of(m, p.row);
    short_pass s = {p.row, p.head, p.heads, at.end - at.lo, at.end - at.lo - own().att.now, {}};
    s.l = lane_of(m, own().table[p.row * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE]);
    s.l.keys += (long long)at.lo * POSITION_BYTES;
    s.l.values += (long long)at.lo * POSITION_BYTES;
    return s;
}

/* Inserts the row's own key if it is number `number` of the KV tile. */
static __device__ __forceinline__ void fetch_key(const tile_lane &l, const own_words &own_row,
                                                 int number, kv_tile_part &b)
{
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const tile_vector v = key_vector(i);
        if (v.position == number - l.key)
            b.keys.at[i] = own_row.key[v.chunk];
    }
}

/* Inserts the row's own value likewise. */
static __device__ __forceinline__ void fetch_value(const tile_lane &l, const own_words &own_row,
                                                   int number, kv_tile_part &b)
{
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        const tile_vector v = value_vector(i);
        if (v.position == number - l.value)
            b.values.at[i] = own_row.value[v.chunk];
    }
}

/* Where a lane keeps its scores of KV tile u for itself: an indexed register array would cost more.
 */
static __device__ __forceinline__ float (*warp_scores(const machine &m, int u))[2]
{
    return (float(*)[2])(own().partial + ((m.warp * SHORT_KV_TILES + u) * 32 + m.lane) * 2 * TILES);
}

/* Computes the scores of all KV tiles and returns the head's maximum. The loads of the first tile's
 * keys have been issued. */
static __device__ __forceinline__ float score_kv_tiles(const machine &m, const short_pass &s,
                                                       const uint4 *q, const own_words &own_row,
                                                       kv_tile_part &b)
{
    float top = -INFINITY;
#pragma unroll 1
    for (int from = 0; from < s.count; from += KV_TILE) {
        float scores[TILES][2];
        if (own().att.now)
            fetch_key(s.l, own_row, s.stored - from, b);
        tile_products sums = {};
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
            add_products(b.keys, c, q[c], sums);
        if (from + KV_TILE < s.count)
            load_keys(s.l, from + KV_TILE, s.stored, b.keys);
        scores_of(sums, s.count - from - s.l.key, scores);
        top = head_max(lane_max(top, scores));
#pragma unroll
        for (int t = 0; t < TILES; t++)
            *(float2 *)warp_scores(m, from / KV_TILE)[t] = make_float2(scores[t][0], scores[t][1]);
    }
    return top;
}

/* Adds a KV tile's result with factor `weight`. */
static __device__ __forceinline__ void add_result(const tile_result &part, float weight,
                                                  tile_result &total)
{
    total.sum = fmaf(part.sum, weight, total.sum);
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        total.value[i].x = fmaf(part.value[i].x, weight, total.value[i].x);
        total.value[i].y = fmaf(part.value[i].y, weight, total.value[i].y);
    }
}

/* The result of the KV tile at `from`. The loads of its values have been issued. */
static __device__ __forceinline__ tile_result weigh_kv_tile(const machine &m, const short_pass &s,
                                                            int from, const own_words &own_row,
                                                            kv_tile_part &b)
{
    float scores[TILES][2];
    tile_state state = empty_state();
    if (own().att.now)
        fetch_value(s.l, own_row, s.stored - from, b);
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        float2 two = *(const float2 *)warp_scores(m, from / KV_TILE)[t];
        scores[t][0] = two.x;
        scores[t][1] = two.y;
    }
    raise_state(state, head_max(lane_max(-INFINITY, scores)));
    add_values(state, scores, b.values);
    return result_of(state);
}

/* The result of all KV tiles, `top` being the maximum score; the neutral element if there is no
 * tile. The loads of the first tile's values have been issued; those of the next tile are issued
 * during the current one. */
static __device__ __forceinline__ tile_result add_kv_tiles(const machine &m, const short_pass &s,
                                                           float top, const own_words &own_row,
                                                           kv_tile_part &b)
{
    if (s.count > 0 && s.count <= KV_TILE)
        return weigh_kv_tile(m, s, 0, own_row, b);
    tile_result total = result_of(empty_state());
    tile_vectors next;
#pragma unroll 1
    for (int from = 0; from < s.count; from += KV_TILE) {
        load_values(s.l, from + KV_TILE, s.stored, next);
        const tile_result part = weigh_kv_tile(m, s, from, own_row, b);
        add_result(part, power_of_2(part.max - top), total);
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            b.values.at[i] = next.at[i];
    }
    total.max = top;
    return total;
}

/* Prefetches the part of the first KV tile that does not go to registers yet into L1. */
static __device__ __forceinline__ void touch_kv_tile(const machine &m, const short_pass &s)
{
    static_assert(!HAS_SHORT || KV_TILE * POSITION_BYTES == 32 * 128, "a line a lane");
    const long long offset = m.lane * 128;
    uint4 unused;
    if (offset >= s.stored * POSITION_BYTES)
        return;
    if (!PREFETCHED_KEYS)
        load_vector(&unused, s.l.keys - (s.l.key * POSITION_BYTES + s.l.d_key * 2) + offset);
    load_vector(&unused, s.l.values - (s.l.value * POSITION_BYTES + s.l.d_value * 2) + offset);
}

/* Prefetches all KV tiles after the first into L2, while the row's own vectors are awaited. */
static __device__ __forceinline__ void prefetch_rest(const machine &m, const short_pass &s)
{
    const int bytes = (s.stored - KV_TILE) * POSITION_BYTES;
    if (m.lane == 0 && bytes > 0) {
        prefetch_vectors(s.l.keys + KV_TILE * POSITION_BYTES, bytes);
        prefetch_vectors(s.l.values + KV_TILE * POSITION_BYTES, bytes);
    }
}

/* Issues the first loads of the pass and waits for the row's vectors; then makes q as an operand,
 * and the row's own key and value. */
static __device__ __forceinline__ void begin_short(const machine &m, const short_pass &s, uint4 *q,
                                                   own_words &own_row, kv_tile_part &b, int &missed)
{
    const attention &a = own().att;
    const u64 policy = keep_policy();
    key_octets query;
    own_octets raw = {};
    int head = s.head + min(m.lane / 8, s.heads - 1);
    load_octets(query, element_of(a.q, s.row, head * HEAD_DIM + s.l.d_key), policy);
    if (a.now)
        load_own(s.l, s.row, raw, policy);
    if (PREFETCHED_KEYS)
        load_keys(s.l, 0, s.stored, b.keys);
    const float *rotation = rope_row(s.row);
    touch_rope(m, rotation);
    touch_norm(m, query_norm(m));
    touch_kv_tile(m, s);
    prefetch_rest(m, s);
    await_octets<true>(m, query, raw, policy, missed);
    trace_input(m);
    const lane_norm query_by = norm_of(s.l, query, query_norm(m));
    const lane_norm key_by = norm_of(s.l, raw.k, a.now ? key_norm(m) : query_norm(m));
#pragma unroll
    for (int c = 0; c < PAIRS; c++) {
        const lane_rope rope = load_rope(s.l, rotation, c);
        make_query(m, s.heads, query, query_by, rope, c, q);
        make_key(raw, key_by, rope, c, own_row);
    }
    make_value(raw, own_row);
    if (!PREFETCHED_KEYS)
        load_keys(s.l, 0, s.stored, b.keys);
}

/* Properties of all passes of a task, as bits because registers are scarce. */
enum {
    IS_PLAIN = 1,   /* results go to plain_output_of */
    IS_APPENDED = 2 /* the rows' keys and values are in the cache already */
};

/* Processes a pass. The row's own key and value are appended while values are loaded: they are not
 * read before the next epoch. */
static __device__ __forceinline__ void attend_short_pass(const machine &m, int item, int known,
                                                         int &missed)
{
    const short_pass s = short_pass_at(m, item);
    uint4 q[2 * PAIRS];
    own_words own_row;
    kv_tile_part b;
    begin_short(m, s, q, own_row, b, missed);
    const float top = score_kv_tiles(m, s, q, own_row, b);
    load_values(s.l, 0, s.stored, b.values);
    if (own().att.now && s.head == 0 && !(known & IS_APPENDED))
        append_own(s.l, s.stored, own_row);
    const tile_result result = add_kv_tiles(m, s, top, own_row, b);
    if (known & IS_PLAIN)
        store_plain(plain_output_of(m, pass_at(item)), m.lane, result, keep_policy());
    else
        store_alone(m, pass_at(item), result, keep_policy());
}

/* ---- all rows ---------------------------------------------------------------------------------
 */

/* Whether a vector can be loaded by octets. */
static __device__ __forceinline__ bool has_octets(const view &v)
{
    return v.dtype == DTYPE_F32 && is_aligned(v);
}

/* Appends the keys and values of the warp's rows of the mask, for later rows of their sequences. */
static __device__ __forceinline__ void append_rows(const machine &m, u32 rows, int &missed)
{
    const u64 policy = keep_policy();
    for (int r = m.warp; r < rows_of(m); r += MGL_WARPS) {
        if (!(rows >> r & 1))
            continue;
        const short_pass s = short_pass_at(m, r * PASSES);
        key_octets none;
        own_octets raw;
        own_words own_row;
        load_own(s.l, r, raw, policy);
        const float *rotation = rope_row(r);
        touch_rope(m, rotation);
        await_octets<false>(m, none, raw, policy, missed);
        const lane_norm key_by = norm_of(s.l, raw.k, key_norm(m));
#pragma unroll
        for (int c = 0; c < PAIRS; c++)
            make_key(raw, key_by, load_rope(s.l, rotation, c), c, own_row);
        make_value(raw, own_row);
        append_own(s.l, s.stored, own_row);
    }
    consumer_barrier();
}

/* Processes the short rows with all heads of the q region. Returns the mask of the other rows. Out
 * of line, because it needs more registers than the products' loop. */
NEAR_OR_INLINE u32 attend_short(machine m)
{
    const attention &a = own().att;
    const u32 all = attended_rows(m);
    if (!has_octets(a.q) || (a.now && !(has_octets(a.k_new) && has_octets(a.v_new))))
        return all;
    const int r = min(m.lane, rows_of(m) - 1);
    const positions at = positions_of(m, r);
    const u32 rows = rows_that(m, at.end - at.lo <= SHORT_KV_TILES * KV_TILE) & all;
    const bool prompts = a.now && rows_that(m, at.hi < at.last);
    const int known = (is_plain(m) ? IS_PLAIN : 0) | (prompts ? IS_APPENDED : 0);
    int missed = 0;
    if (prompts)
        append_rows(m, rows, missed);
    for (int item = m.warp; item < rows_of(m) * PASSES; item += MGL_WARPS)
        if (rows >> item / PASSES & 1)
            attend_short_pass(m, item, known, missed);
    report_missed(m, missed);
    if (rows != all)
        consumer_barrier(); /* the other rows use the same shared memory */
    return all & ~rows;
}

/* region: end */

#endif
