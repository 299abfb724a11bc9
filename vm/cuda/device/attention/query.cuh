/*
 * The row's own q, k and v for attention on tensor cores. The consumer threads load them from the
 * exchange, apply the optional RMSNorm of heads and the rotary position embedding (RoPE), and write
 * them as MMA operands to own().partial. At the end they append k and v to the cache. Also defines
 * the shape constants of tensor-core attention. kv_rounds.cuh and ring.cuh call load_quads,
 * await_quads, write_quads and append_quads, with a consumer barrier after write_quads.
 */
#ifndef MGL_DEVICE_ATTENTION_QUERY_CUH
#define MGL_DEVICE_ATTENTION_QUERY_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/attention/operands.cuh"

enum {
    TILED = cache_format::SIZE == 2 && HEAD_DIM % 16 == 0 && HEAD_DIM <= 128,
    HALF_DIM = HEAD_DIM / 2,             /* elements i and i + HALF_DIM are rotated together */
    HEAD_COLUMNS = 8,                    /* columns of the B operand: two per head */
    TILE = 16,                           /* positions */
    KV_TILE = MGL_KV_SPAN(HEAD_DIM) / 2, /* positions; a span is two KV tiles */
    TILES = KV_TILE / TILE,
    KEY_CHUNKS = (HEAD_DIM + 31) / 32,   /* 8 dimensions per lane, 4 lanes */
    VALUE_CHUNKS = (HEAD_DIM + 63) / 64, /* 8 dimensions per lane, 8 lanes */
    KEYS = 2 * TILES * KEY_CHUNKS,       /* vectors of a lane in a KV tile */
    VALUES = 4 * TILES * VALUE_CHUNKS,
    SUMS = VALUE_CHUNKS * 4,         /* MMAs per tile, and pairs of dimensions per lane */
    HEAD_QUADS = (HALF_DIM + 3) / 4, /* four elements and their partners, of one vector */
    /* items of a vector; a power of two if heads are normalized, so that they are in one warp */
    QUADS = !MGL_QK_NORM      ? HEAD_QUADS
            : HEAD_QUADS <= 2 ? 2
            : HEAD_QUADS <= 4 ? 4
            : HEAD_QUADS <= 8 ? 8
                              : 16,
    PASSES = (MGL_HEADS + 3) / 4,                   /* passes of a row */
    TILE_HEADS = (MGL_HEADS + PASSES - 1) / PASSES, /* heads of a pass; the last may have fewer */
    VECTOR_K = TILE_HEADS, /* number of k among a pass's vectors, after q's heads */
    VECTOR_V = TILE_HEADS + 1,
    ITEMS = (TILE_HEADS + 2) * QUADS,
    ROUNDS = (ITEMS + THREADS - 1) / THREADS, /* items of a thread */
    /* the first thread with an item: of the middle warp if half of the threads are enough */
    ITEMS_FROM = ITEMS <= THREADS / 2 ? THREADS / 64 * 32 : 0,
    COLUMN_WORDS = HALF_DIM + 16, /* padded against bank conflicts */
    FOLD = 4,                     /* warps, or KV tiles, whose results are merged at once, at
                                     least */
    /* the activation buffer, which is free during attention, has room for the results of all warps
     */
    RESULTS_BUFFERED = MGL_ACTIVATION_BYTES >= MGL_WARPS * SUMS * 256,
    WRITES = RESULTS_BUFFERED ? MGL_WARPS : FOLD,   /* warps that write results at once */
    SWIZZLED = KV_RING && MGL_KV_SWIZZLED(HEAD_DIM) /* the chunks of a position in the cache are
                                                       swizzled */
};

/* Layout of a row's data in own().partial, beside its other parts: see the functions below. */
enum {
    QUERY_WORDS = HEAD_COLUMNS * COLUMN_WORDS,
    RESULT_AT = 2 * QUERY_WORDS + 4 * HALF_DIM, /* after two rows' q, and k and v */
    WEIGHT_AT = RESULT_AT + FOLD * SUMS * 64
};
static_assert(!TILED || WEIGHT_AT + WRITES * 8 <= PARTIALS, "attention's room is too small");

/* Column `column` of the q operand of pass number `item` (counted over all rows): words of two
 * dimensions each. Double-buffered, so that one pass may be written while a warp still reads the
 * other. */
static __device__ __forceinline__ u32 *query_column(int item, int column)
{
    return (u32 *)own().partial + (item & 1) * QUERY_WORDS + column * COLUMN_WORDS;
}

/* Row r's own k (which 0) or v (1), rounded like the cache; double-buffered as well. */
static __device__ __forceinline__ u32 *own_vector(int r, int which)
{
    return (u32 *)own().partial + 2 * QUERY_WORDS + ((r & 1) * 2 + which) * HALF_DIM;
}

/* The results of warp `slot`: weighted sums (SUMS, lanes) of two dimensions each, */
static __device__ __forceinline__ float2 *warp_values(int slot)
{
    return (float2 *)(RESULTS_BUFFERED ? (float *)activation_buffer() : own().partial + RESULT_AT) +
           slot * SUMS * 32;
}

/* and the maximum and sum of head `head`. */
static __device__ __forceinline__ float2 *warp_weight(int slot, int head)
{
    return (float2 *)(own().partial + WEIGHT_AT) + slot * 4 + head;
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static __device__ __forceinline__ float low_half(u32 word)
{
    return MGL_CACHE == DTYPE_BF16 ? bf16_float(word & 0xFFFFu) : f16_float(word & 0xFFFFu);
}

static __device__ __forceinline__ float high_half(u32 word)
{
    return MGL_CACHE == DTYPE_BF16 ? __uint_as_float(word & 0xFFFF0000u) : f16_float(word >> 16);
}

static __device__ __forceinline__ void mma_tile(float *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                                u32 b1)
{
    multiply_add<MGL_CACHE>(c, a0, a1, a2, a3, b0, b1);
}

/* ---- the row's own vectors --------------------------------------------------------------------
 */

/* A thread's item in the exchange's format: four elements of a vector, and their RoPE partners
 * HALF_DIM further. Each is loaded as the 16 bytes that contain the elements. */
struct quad {
    const u8 *at;
    bool is_16_bit; /* 16-bit elements, eight in 16 bytes */
    uint4 first, second;
    float4 cosine, sine;
    float4 norm[MGL_QK_NORM ? 2 : 1]; /* the norm's weights of both; unused without MGL_QK_NORM */
};

/* Whether elements 0, 4, ... of a vector can be loaded as 16 bytes. */
static __device__ __forceinline__ bool is_aligned(const view &v)
{
    return v.flag || (((size_t)v.at | (size_t)v.stride) & 15) == 0;
}

static __device__ __forceinline__ void load_quad(quad &q, u64 policy)
{
    const u8 *at = (const u8 *)((size_t)q.at & ~(size_t)15);
    q.first = load_words(at, policy);
    q.second = load_words(at + HALF_DIM * (q.is_16_bit ? 2 : 4), policy);
}

/* The same element by element, as floats. */
static __device__ __forceinline__ void load_quad_slowly(quad &q, int dtype)
{
    const view v = {(u8 *)q.at, 0, dtype, false};
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = load_element(v, 0, i % 4 + i / 4 * HALF_DIM);
    q.first = make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                         __float_as_uint(x[3]));
    q.second = make_uint4(__float_as_uint(x[4]), __float_as_uint(x[5]), __float_as_uint(x[6]),
                          __float_as_uint(x[7]));
}

static __device__ __forceinline__ void unpack_quad(const view &v, const quad &q, uint4 raw,
                                                   float *to)
{
    if (!q.is_16_bit)
        return format<DTYPE_F32>::unpack(raw, to);
    bool second = ((size_t)q.at & 8) != 0;
    u32 words[2] = {second ? raw.z : raw.x, second ? raw.w : raw.y};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        u32 bits = words[i / 2] >> 16 * (i & 1) & 0xFFFFu;
        to[i] = v.dtype == DTYPE_BF16 ? bf16_float(bits) : f16_float(bits);
    }
}

/* Number n of a thread's items; below 0: no item. In a task with few positions the first warps hold
 * the keys and values, so the items go to the warps from the middle on. A lane that waits for its
 * items also waits for its keys and values, because the compiler gives all these loads one
 * scoreboard. */
static __device__ __forceinline__ int item_of(const machine &m, int n)
{
    return thread_of(m) - ITEMS_FROM + n * THREADS;
}

/* The vector of the pass that an item belongs to: a head's q, VECTOR_K or VECTOR_V. */
static __device__ __forceinline__ int vector_of(int item)
{
    return item / QUADS;
}

static_assert(MGL_OPERAND(attend, q) == MGL_OPERAND(attend_past, q) &&
                  MGL_OPERAND(attend, q) == MGL_OPERAND(attend_tail, q) &&
                  MGL_OPERAND(attend, k) == MGL_OPERAND(attend_tail, k) &&
                  MGL_OPERAND(attend, v) == MGL_OPERAND(attend_tail, v) &&
                  MGL_OPERAND(attend, v) == MGL_OPERAND(attend, k) + 1,
              "q, k and v have the same numbers in each op");

/* The operand number of a vector, for reports. */
static __device__ __forceinline__ int operand_of(int vector)
{
    return vector < VECTOR_K ? MGL_OPERAND(attend, q) : vector - VECTOR_K + MGL_OPERAND(attend, k);
}

static __device__ __forceinline__ const view &view_of_vector(int vector)
{
    const attention &a = own().att;
    return vector < VECTOR_K ? a.q : vector == VECTOR_K ? a.k_new : a.v_new;
}

/* First column of the item in its region; `head` is the pass's first head. */
static __device__ __forceinline__ int column_of(int item, int head)
{
    int vector = vector_of(item), d = item % QUADS * 4;
    return vector < VECTOR_K ? (head + vector) * HEAD_DIM + d : d;
}

/* A pass: a row and up to TILE_HEADS of its heads. */
struct tile_pass {
    int item;      /* number of the pass, over all rows */
    int row, head; /* the first head */
    int heads;
    bool appends;
};

static __device__ __forceinline__ tile_pass pass_at(int item)
{
    tile_pass p;
    p.item = item;
    p.row = item / PASSES;
    p.head = item % PASSES * TILE_HEADS;
    p.heads = min((int)TILE_HEADS, MGL_HEADS - p.head);
    p.appends = own().att.now && p.head == 0;
    return p;
}

/* Whether item i belongs to the pass. */
static __device__ __forceinline__ bool has_item(const tile_pass &p, int i)
{
    int vector = vector_of(i);
    return i >= 0 && i < ITEMS && (QUADS == HEAD_QUADS || i % QUADS < HEAD_QUADS) &&
           (vector < VECTOR_K ? vector < p.heads : p.appends);
}

/* Starts loading a thread's items, which may not be written yet, and their cosines and sines. */
template <bool PLAIN>
static __device__ __forceinline__ void load_quads(const machine &m, const tile_pass &p, quad *to,
                                                  u64 policy)
{
    const attention &a = own().att;
    const float *rope =
        a.rope + own().table[p.row * MGL_TABLE_WORDS + MGL_TABLE_POSITION] * a.rope_stride;
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        const int i = item_of(m, n);
        to[n] = quad();
        if (!has_item(p, i))
            continue;
        const view &v = view_of_vector(vector_of(i));
        to[n].at = element_of(v, p.row, column_of(i, p.head));
        to[n].is_16_bit = !PLAIN && v.dtype != DTYPE_F32 && is_aligned(v);
        if (PLAIN || is_aligned(v))
            load_quad(to[n], policy);
        else
            load_quad_slowly(to[n], v.dtype);
        if (MGL_QK_NORM && vector_of(i) != VECTOR_V) {
            const float *g = vector_of(i) < VECTOR_K ? query_norm(m) : key_norm(m);
            to[n].norm[0] = *(const float4 *)(g + i % QUADS * 4);
            to[n].norm[MGL_QK_NORM] = *(const float4 *)(g + HALF_DIM + i % QUADS * 4);
        }
        to[n].cosine = *(const float4 *)(rope + i % QUADS * 4);
        to[n].sine = *(const float4 *)(rope + HALF_DIM + i % QUADS * 4);
    }
}

/* Waits until all of a thread's items are written. Returns false if the wait gave up. */
template <bool PLAIN>
static __device__ __forceinline__ bool await_quads(const machine &m, const tile_pass &p,
                                                   quad *quads, u64 policy)
{
    bool written = true;
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        const int i = item_of(m, n);
        if (!written || !has_item(p, i))
            continue;
        if (PLAIN || view_of_vector(vector_of(i)).flag)
            written = await_flags<QUIETLY>(m, MGL_OPERAND(attend, q), [&] {
                const u32 most = max(largest(quads[n].first), largest(quads[n].second));
                if (most == 0xFFFFFFFFu)
                    load_quad(quads[n], policy);
                return most != 0xFFFFFFFFu;
            });
    }
    return written;
}

/* The sum of squares of four elements x and of their partners y. The caller adds the sums of a head
 * pair by pair, the most distant pairs first, so that every variant gives a head the same bits. */
static __device__ __forceinline__ float squares_of(const float *x, const float *y)
{
    float sum = x[0] * x[0];
#pragma unroll
    for (int j = 1; j < 4; j++)
        sum = fmaf(x[j], x[j], sum);
#pragma unroll
    for (int j = 0; j < 4; j++)
        sum = fmaf(y[j], y[j], sum);
    return sum;
}

static __device__ __forceinline__ void norm_four(const float4 &norm, float scale, float *x)
{
    x[0] = x[0] * scale * norm.x;
    x[1] = x[1] * scale * norm.y;
    x[2] = x[2] * scale * norm.z;
    x[3] = x[3] * scale * norm.w;
}

/* Rotates four elements x and their partners y (RoPE). The rounding of each product is explicit
 * here and below, so that every variant gives a row the same bits. */
static __device__ __forceinline__ void rotate_four(const float4 &cosines, const float4 &sines,
                                                   float *x, float *y)
{
    const float cosine[4] = {cosines.x, cosines.y, cosines.z, cosines.w};
    const float sine[4] = {sines.x, sines.y, sines.z, sines.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float first = x[j], second = y[j];
        x[j] = fmaf(first, cosine[j], -(second * sine[j]));
        y[j] = fmaf(second, cosine[j], first * sine[j]);
    }
}

static __device__ __forceinline__ uint2 pack_quad(const float *x)
{
    uint2 words;
    words.x = pack_pair(MGL_CACHE, x[0], x[1]);
    words.y = pack_pair(MGL_CACHE, x[2], x[3]);
    return words;
}

/* Four elements of q as operands in two parts: rounded, and the rounding error. Scores are
 * exponents of 2, so q is scaled by log2(e) / sqrt(head_dim). */
struct query_quad {
    uint2 words, rest;
};

static __device__ __forceinline__ query_quad query_of(const float *x)
{
    const float scale = 1.4426950408889634f / sqrtf((float)HEAD_DIM);
    const float scaled[4] = {x[0] * scale, x[1] * scale, x[2] * scale, x[3] * scale};
    query_quad q;
    q.words = pack_quad(scaled);
    const float rest[4] = {
        fmaf(x[0], scale, -low_half(q.words.x)), fmaf(x[1], scale, -high_half(q.words.x)),
        fmaf(x[2], scale, -low_half(q.words.y)), fmaf(x[3], scale, -high_half(q.words.y))};
    q.rest = pack_quad(rest);
    return q;
}

static __device__ __forceinline__ void write_query(int item, int head, int word, const float *x)
{
    const query_quad q = query_of(x);
    *(uint2 *)(query_column(item, 2 * head) + word) = q.words;
    *(uint2 *)(query_column(item, 2 * head + 1) + word) = q.rest;
}

/* Copies four elements, from dimension d on, of the row's key or value from own_vector to the
 * cache. */
static __device__ __forceinline__ void append_quad(int r, int which, int d)
{
    const cache_view &cache = which ? own().att.v : own().att.k;
    const int *row = own().table + r * MGL_TABLE_WORDS;
    const int position = row[MGL_TABLE_POSITION];
    const int chunk = SWIZZLED ? mgl_kv_chunk(which, position, d / 8) : d / 8;
    long long at = cache_index(cache, row[MGL_TABLE_SEQUENCE], position) + chunk * 8 + d % 8;
    *(uint2 *)(cache.at + at * 2) = *(const uint2 *)(own_vector(r, which) + d / 2);
}

/* Appends a thread's items of k and v to the cache. Called after the barrier and all other work,
 * because the cache entries are first read with the next row. */
static __device__ __forceinline__ void append_quads(const machine &m, const tile_pass &p)
{
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        const int i = item_of(m, n), which = vector_of(i) - VECTOR_K;
        if (which < 0 || !has_item(p, i))
            continue;
        append_quad(p.row, which, i % QUADS * 4);
        append_quad(p.row, which, i % QUADS * 4 + HALF_DIM);
    }
}

/* Unpacks a thread's item to floats: four elements and their partners. */
template <bool PLAIN>
static __device__ __forceinline__ void unpack_item(const quad &from, int vector, float *x, float *y)
{
    if (PLAIN) {
        format<DTYPE_F32>::unpack(from.first, x);
        format<DTYPE_F32>::unpack(from.second, y);
    } else {
        const view &v = view_of_vector(vector);
        unpack_quad(v, from, from.first, x);
        unpack_quad(v, from, from.second, y);
    }
}

/* The RMS scale of the item's head. QUADS lanes hold a head. All lanes of the warp must call this.
 */
template <bool PLAIN>
static __device__ __forceinline__ float scale_of_head(const tile_pass &p, const quad &from, int i)
{
    float squares = 0.0f;
    if (has_item(p, i)) {
        float x[4], y[4];
        unpack_item<PLAIN>(from, vector_of(i), x, y);
        squares = squares_of(x, y);
    }
#pragma unroll
    for (int offset = QUADS / 2; offset > 0; offset /= 2)
        squares += __shfl_xor_sync(0xFFFFFFFFu, squares, offset);
    return head_scale(squares);
}

/* Normalizes, rotates and writes a thread's items to shared memory, where the warps read them. */
template <bool PLAIN>
static __device__ __forceinline__ void write_quads(const machine &m, const tile_pass &p,
                                                   const quad *from)
{
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        const int i = item_of(m, n);
        const float scale = MGL_QK_NORM ? scale_of_head<PLAIN>(p, from[n], i) : 1.0f;
        if (!has_item(p, i))
            continue;
        int vector = vector_of(i), d = i % QUADS * 4;
        float x[4], y[4];
        unpack_item<PLAIN>(from[n], vector, x, y);
        if (MGL_QK_NORM && vector != VECTOR_V) {
            norm_four(from[n].norm[0], scale, x);
            norm_four(from[n].norm[MGL_QK_NORM], scale, y);
        }
        if (vector != VECTOR_V)
            rotate_four(from[n].cosine, from[n].sine, x, y);
        if (vector < VECTOR_K) {
            write_query(p.item, vector, d / 2, x);
            write_query(p.item, vector, (d + HALF_DIM) / 2, y);
        } else {
            u32 *to = own_vector(p.row, vector - VECTOR_K);
            *(uint2 *)(to + d / 2) = pack_quad(x);
            *(uint2 *)(to + (d + HALF_DIM) / 2) = pack_quad(y);
        }
    }
}

#endif
