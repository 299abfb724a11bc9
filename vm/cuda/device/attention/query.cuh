/*
 * A row's own q, k and v for attention by tensor cores: how they come from the exchange into shared
 * memory as operands, rotated, and into the cache.
 */
#ifndef MGL_DEVICE_ATTENTION_QUERY_CUH
#define MGL_DEVICE_ATTENTION_QUERY_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/attention/operands.cuh"

enum {
    TILED = cache_format::SIZE == 2 && HEAD_DIM % 16 == 0 && HEAD_DIM <= 128,
    HALF_DIM = HEAD_DIM / 2,             /* elements i and i + HALF_DIM are rotated together */
    HEAD_COLUMNS = 8,                    /* of the B operands: two a head */
    TILE = 16,                           /* positions */
    KV_TILE = MGL_KV_SPAN(HEAD_DIM) / 2, /* positions; a span is two strips */
    TILES = KV_TILE / TILE,
    KEY_CHUNKS = (HEAD_DIM + 31) / 32,   /* 8 dimensions a lane, 4 lanes */
    VALUE_CHUNKS = (HEAD_DIM + 63) / 64, /* 8 dimensions a lane, 8 lanes */
    KEYS = 2 * TILES * KEY_CHUNKS,       /* vectors of a lane in a strip */
    VALUES = 4 * TILES * VALUE_CHUNKS,
    SUMS = VALUE_CHUNKS * 4,         /* MMAs a tile, and pairs of dimensions of a lane */
    HEAD_QUADS = (HALF_DIM + 3) / 4, /* four elements and their partners, of one vector */
    /* items of a vector: where heads are normed a power of two, so that they are of one warp */
    QUADS = !MGL_QK_NORM      ? HEAD_QUADS
            : HEAD_QUADS <= 2 ? 2
            : HEAD_QUADS <= 4 ? 4
            : HEAD_QUADS <= 8 ? 8
                              : 16,
    PASSES = (MGL_HEADS + 3) / 4,                   /* of a row */
    TILE_HEADS = (MGL_HEADS + PASSES - 1) / PASSES, /* of a pass; the last may have fewer */
    VECTOR_K = TILE_HEADS, /* number of k among a pass's vectors, behind q's heads */
    VECTOR_V = TILE_HEADS + 1,
    ITEMS = (TILE_HEADS + 2) * QUADS,
    ROUNDS = (ITEMS + THREADS - 1) / THREADS, /* of a thread's items */
    /* the first thread with an item: of the middle warp, where half of the threads are enough */
    ITEMS_FROM = ITEMS <= THREADS / 2 ? THREADS / 64 * 32 : 0,
    COLUMN_WORDS = HALF_DIM + 16, /* padded against bank conflicts */
    FOLD = 4,                     /* warps, or strips, whose results are merged at once, at least */
    /* the activation buffer, which nothing else uses here, has room for what all warps leave */
    RESULTS_BUFFERED = MGL_ACTIVATION_BYTES >= MGL_WARPS * SUMS * 256,
    WRITES = RESULTS_BUFFERED ? MGL_WARPS : FOLD,   /* warps that leave results at once */
    SWIZZLED = KV_RING && MGL_KV_SWIZZLED(HEAD_DIM) /* the chunks of a position in the cache */
};

/* What a row keeps in shared memory, beside own().partial's other parts: see the functions below.
 */
enum {
    QUERY_WORDS = HEAD_COLUMNS * COLUMN_WORDS,
    RESULT_AT = 2 * QUERY_WORDS + 4 * HALF_DIM, /* behind two rows' q, and k and v */
    WEIGHT_AT = RESULT_AT + FOLD * SUMS * 64
};
static_assert(!TILED || WEIGHT_AT + WRITES * 8 <= PARTIALS, "attention's room is too small");

/* Column `column` of the q operand of pass number `item` (of all rows' passes): words, two
 * dimensions each. Two of them in turn, so that one may be written while a warp still reads the
 * other. */
static __device__ __forceinline__ u32 *query_column(int item, int column)
{
    return (u32 *)own().partial + (item & 1) * QUERY_WORDS + column * COLUMN_WORDS;
}

/* Row r's own k (which 0) or v (1), as in the cache; two rows in turn as well. */
static __device__ __forceinline__ u32 *own_vector(int r, int which)
{
    return (u32 *)own().partial + 2 * QUERY_WORDS + ((r & 1) * 2 + which) * HALF_DIM;
}

/* What warp `slot` leaves: weighted sums (SUMS, lanes) of two dimensions each, */
static __device__ __forceinline__ float2 *warp_values(int slot)
{
    return (float2 *)(RESULTS_BUFFERED ? (float *)activation_buffer() : own().partial + RESULT_AT) +
           slot * SUMS * 32;
}

/* and max and sum of head `head`. */
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

/* A thread's item: four elements of a vector, and their partners HALF_DIM further, as they come: 16
 * bytes that they are in. */
struct quad {
    const u8 *at;
    bool small_n; /* 16-bit elements, eight in 16 bytes */
    uint4 first, second;
    float4 cosine, sine;
    float4 norm[MGL_QK_NORM ? 2 : 1]; /* the norm's weights of both; else unused */
};

/* Whether 16 bytes can be loaded at once, wherever elements 0, 4, ... of a vector are. */
static __device__ __forceinline__ bool is_aligned(const view &v)
{
    return v.flag || (((size_t)v.at | (size_t)v.stride) & 15) == 0;
}

static __device__ __forceinline__ void load_quad(quad &q, u64 policy)
{
    const u8 *at = (const u8 *)((size_t)q.at & ~(size_t)15);
    q.first = load_words(at, policy);
    q.second = load_words(at + HALF_DIM * (q.small_n ? 2 : 4), policy);
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
    if (!q.small_n)
        return format<DTYPE_F32>::unpack(raw, to);
    bool second = ((size_t)q.at & 8) != 0;
    u32 words[2] = {second ? raw.z : raw.x, second ? raw.w : raw.y};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        u32 bits = words[i / 2] >> 16 * (i & 1) & 0xFFFFu;
        to[i] = v.dtype == DTYPE_BF16 ? bf16_float(bits) : f16_float(bits);
    }
}

/* A thread's item number n; below 0 it has none. In a task with few positions the first warps have
 * the keys and values, so the items go to the warps behind the middle: a lane that waits for its
 * items waits for its keys and values as well, since the compiler gives all these loads one
 * scoreboard. */
static __device__ __forceinline__ int item_of(const machine &m, int n)
{
    return thread_of(m) - ITEMS_FROM + n * THREADS;
}

/* Which vector of the pass an item is of: a head's q, VECTOR_K or VECTOR_V. */
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

/* The operand of a vector, for the report. */
static __device__ __forceinline__ int operand_of(int vector)
{
    return vector < VECTOR_K ? MGL_OPERAND(attend, q) : vector - VECTOR_K + MGL_OPERAND(attend, k);
}

static __device__ __forceinline__ const view &view_of_vector(int vector)
{
    const attention &a = own().att;
    return vector < VECTOR_K ? a.q : vector == VECTOR_K ? a.k_new : a.v_new;
}

/* First column of the item in its region; `head` is the pass's first. */
static __device__ __forceinline__ int column_of(int item, int head)
{
    int vector = vector_of(item), d = item % QUADS * 4;
    return vector < VECTOR_K ? (head + vector) * HEAD_DIM + d : d;
}

/* What a pass is about. */
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

/* Whether thread item i is one of the pass. */
static __device__ __forceinline__ bool has_item(const tile_pass &p, int i)
{
    int vector = vector_of(i);
    return i >= 0 && i < ITEMS && (QUADS == HEAD_QUADS || i % QUADS < HEAD_QUADS) &&
           (vector < VECTOR_K ? vector < p.heads : p.appends);
}

/* Asks for a thread's items, before they need be written, and what they are rotated by. */
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
        to[n].small_n = !PLAIN && v.dtype != DTYPE_F32 && is_aligned(v);
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

/* Waits for all of a thread's items. */
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

/* The sum of squares of four elements x and of their partners y: added to those of the others of
 * the head pair by pair, those that are farthest apart first, so that a head has the same bits
 * whichever way it goes. */
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

/* Four elements x and their partners y. Which product is rounded is written out here and below, so
 * that a row has the same bits whichever way it goes. */
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

/* Four elements of q as operands: rounded, and what rounding left. Scores are to be powers of 2:
 * log2(e) / sqrt(head_dim). */
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

/* Four elements of the row's key or value from dimension d on, from where write_quads put them, to
 * the cache. */
static __device__ __forceinline__ void append_quad(int r, int which, int d)
{
    const cache_view &cache = which ? own().att.v : own().att.k;
    const int *row = own().table + r * MGL_TABLE_WORDS;
    const int position = row[MGL_TABLE_POSITION];
    const int chunk = SWIZZLED ? mgl_kv_chunk(which, position, d / 8) : d / 8;
    long long at = cache_index(cache, row[MGL_TABLE_SEQUENCE], position) + chunk * 8 + d % 8;
    *(uint2 *)(cache.at + at * 2) = *(const uint2 *)(own_vector(r, which) + d / 2);
}

/* A thread's items of k and v, behind the barrier and all else: nobody waits for them before the
 * next row. */
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

/* A thread's item as floats: four elements and their partners. */
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

/* What the item's head is to be scaled by. QUADS lanes have a head; all lanes come here. */
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

/* Takes a thread's items to where the warps find them. */
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
