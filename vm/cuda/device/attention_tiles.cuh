/*
 * Attention by tensor cores: for caches in 16 bits. All heads of a kv head at once (HEAD_COLUMNS / 2 of them;
 * of more, as many in another pass), so that a key or a value is read once.
 *
 * A tile is 16 positions. Scores are K q^T: the keys are the A operand as they lie in memory, 16 bytes a lane
 * (the order of the dimensions within an MMA is free, since q's is the same); the B operand has two columns
 * a head, the rotated q rounded to 16 bits and what rounding left. So a lane has the scores of two positions
 * for one head, l % 4. Their weights, again in two parts, become the B operand of V^T p by two 8 x 8
 * transpositions; V^T is made from pairs of positions by byte permutations. Its sums lie as the scores do:
 * the lanes of a head have that head's maximum and sum as well.
 *
 * The block works on one row after the other. Threads fetch four and four elements of q, k or v that are
 * rotated together, and leave them in shared memory as operands. Warp w takes positions [B w, B w + B),
 * [B (w + W), ...) from the first one on, B being BATCH: a batch of keys and values is in registers before
 * the queries are there, since neither depends on this epoch, and coming ones are asked into L2. What the
 * warps have is merged in shared memory; where one batch is all, its warp writes the result.
 */
#ifndef MGL_DEVICE_ATTENTION_TILES_CUH
#define MGL_DEVICE_ATTENTION_TILES_CUH

#include "vm/cuda/device/attention_parts.cuh"

enum {
    TILED = cache_format::SIZE == 2 && HEAD_DIM % 16 == 0 && HEAD_DIM <= 128,
    HALF_DIM = HEAD_DIM / 2,             /* elements i and i + HALF_DIM are rotated together */
    HEAD_COLUMNS = 8,                    /* of the B operands: two a head */
    TILE = 16,                           /* positions */
    TILES = HEAD_DIM <= 64 ? 2 : 1,      /* of a batch */
    BATCH = TILE * TILES,                /* positions */
    ROW_BYTES = HEAD_DIM * 2,            /* of a position in the cache */
    KEY_CHUNKS = (HEAD_DIM + 31) / 32,   /* 8 dimensions a lane, 4 lanes */
    VALUE_CHUNKS = (HEAD_DIM + 63) / 64, /* 8 dimensions a lane, 8 lanes */
    KEYS = 2 * TILES * KEY_CHUNKS,       /* vectors of a lane in a batch */
    VALUES = 4 * TILES * VALUE_CHUNKS,
    SUMS = VALUE_CHUNKS * 4,      /* MMAs a tile, and pairs of dimensions of a lane */
    QUADS = (HALF_DIM + 3) / 4,   /* four elements and their partners, of one vector */
    PASSES = (MGL_HEADS + 3) / 4, /* of a row */
    TILE_HEADS = (MGL_HEADS + PASSES - 1) / PASSES, /* of a pass; the last may have fewer */
    VECTOR_K = TILE_HEADS, /* number of k among a pass's vectors, behind q's heads */
    VECTOR_V = TILE_HEADS + 1,
    ITEMS = (TILE_HEADS + 2) * QUADS,
    ROUNDS = (ITEMS + THREADS - 1) / THREADS, /* of a thread's items */
    COLUMN_WORDS = HALF_DIM + 16,             /* padded against bank conflicts */
    FOLD = 4,                                 /* warps that leave results at once */
    AHEAD_BATCHES = 2 /* of a warp, asked into L2 beyond the one in registers */
};

/* What a row keeps in shared memory, beside own().partial's other parts: see the functions below. */
enum {
    QUERY_WORDS = HEAD_COLUMNS * COLUMN_WORDS,
    RESULT_AT = 2 * QUERY_WORDS + 4 * HALF_DIM, /* behind two rows' q, and k and v */
    WEIGHT_AT = RESULT_AT + FOLD * SUMS * 64
};
static_assert(!TILED || WEIGHT_AT + FOLD * 8 <= PARTIALS, "attention's room is too small");

/* Column `column` of the q operand of pass number `item` (of all rows' passes): words, two dimensions each.
 * Two of them in turn, so that one may be written while a warp still reads the other. */
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
static __device__ __forceinline__ float2 *left_sums(int slot)
{
    return (float2 *)(own().partial + RESULT_AT) + slot * SUMS * 32;
}

/* and max and sum of head `head`. */
static __device__ __forceinline__ float2 *left_weight(int slot, int head)
{
    return (float2 *)(own().partial + WEIGHT_AT) + slot * 4 + head;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static __device__ __forceinline__ float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

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

/* An 8 x 8 matrix of 16-bit values, two of a row in each lane, transposed. */
static __device__ __forceinline__ u32 transposed(u32 word)
{
    u32 result;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
    return result;
}

/* ---- the row's own vectors -------------------------------------------------------------------- */

/* A thread's item: four elements of a vector, and their partners HALF_DIM further, as they come: 16 bytes
 * that they are in. */
struct quad {
    const u8 *at;
    bool narrow; /* 16-bit elements, eight in 16 bytes */
    uint4 first, second;
    float4 cosine, sine;
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
    q.second = load_words(at + HALF_DIM * (q.narrow ? 2 : 4), policy);
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
    if (!q.narrow)
        return format<DTYPE_F32>::unpack(raw, to);
    bool second = ((size_t)q.at & 8) != 0;
    u32 words[2] = {second ? raw.z : raw.x, second ? raw.w : raw.y};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        u32 bits = words[i / 2] >> 16 * (i & 1) & 0xFFFFu;
        to[i] = v.dtype == DTYPE_BF16 ? bf16_float(bits) : f16_float(bits);
    }
}

/* Which vector of the pass an item is of: a head's q, VECTOR_K or VECTOR_V. */
static __device__ __forceinline__ int vector_of(int item)
{
    return item / QUADS;
}

static __device__ __forceinline__ int operand_of(int vector)
{
    return vector < VECTOR_K ? 0 : vector - VECTOR_K + 1;
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
    return i < ITEMS && (vector < VECTOR_K ? vector < p.heads : p.appends);
}

/* Asks for a thread's items, before they need be written, and what they are rotated by. */
static __device__ __forceinline__ void load_quads(const machine &m, const tile_pass &p, quad *to,
                                                  u64 policy)
{
    const attention &a = own().att;
    const float *rope =
        a.rope + own().table[p.row * MGL_TABLE_WORDS + MGL_TABLE_POSITION] * a.rope_stride;
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        int i = m.tid + n * THREADS;
        to[n] = quad();
        if (!has_item(p, i))
            continue;
        const view &v = view_of_vector(vector_of(i));
        to[n].at = element_of(v, p.row, column_of(i, p.head));
        to[n].narrow = v.dtype != DTYPE_F32 && is_aligned(v);
        if (is_aligned(v))
            load_quad(to[n], policy);
        else
            load_quad_slowly(to[n], v.dtype);
        to[n].cosine = *(const float4 *)(rope + i % QUADS * 4);
        to[n].sine = *(const float4 *)(rope + HALF_DIM + i % QUADS * 4);
    }
}

/* Waits for an item's words, both at once. False when the wait has to give up. */
static __device__ __forceinline__ bool await_quad(const machine &m, quad &q, u64 policy, u64 *since)
{
    for (u32 n = 1; !(is_written(q.first) && is_written(q.second)); n++) {
        if (is_late(m, n, since))
            return false;
        load_quad(q, policy);
    }
    return true;
}

/* Waits for all of a thread's items. */
static __device__ __forceinline__ bool await_quads(const machine &m, const tile_pass &p,
                                                   quad *quads, u64 policy, u64 *since)
{
    bool written = true;
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        int i = m.tid + n * THREADS;
        if (!written || !has_item(p, i))
            continue;
        const view &v = view_of_vector(vector_of(i));
        if (v.flag)
            written = await_quad(m, quads[n], policy, since);
    }
    return written;
}

/* Four elements x and their partners y. Which product is rounded is written out here and below, so that a
 * row has the same bits whichever way it goes. */
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

static __device__ __forceinline__ void leave_query(int item, int head, int word, const float *x)
{
    const query_quad q = query_of(x);
    *(uint2 *)(query_column(item, 2 * head) + word) = q.words;
    *(uint2 *)(query_column(item, 2 * head + 1) + word) = q.rest;
}

/* Four elements of the row's key or value from dimension d on, from where leave_quads put them, to the
 * cache. */
static __device__ __forceinline__ void append_quad(int r, int which, int d)
{
    const cache_view &cache = which ? own().att.v : own().att.k;
    const int *row = own().table + r * MGL_TABLE_WORDS;
    long long at = cache_index(cache, row[MGL_TABLE_SEQUENCE], row[MGL_TABLE_POSITION]) + d;
    *(uint2 *)(cache.at + at * 2) = *(const uint2 *)(own_vector(r, which) + d / 2);
}

/* A thread's items of k and v, behind the barrier: nobody waits for them before the next row. */
static __device__ __forceinline__ void append_quads(const machine &m, const tile_pass &p)
{
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        int i = m.tid + n * THREADS, which = vector_of(i) - VECTOR_K;
        if (which < 0 || !has_item(p, i))
            continue;
        append_quad(p.row, which, i % QUADS * 4);
        append_quad(p.row, which, i % QUADS * 4 + HALF_DIM);
    }
}

/* Takes a thread's items to where the warps find them. */
static __device__ __forceinline__ void leave_quads(const machine &m, const tile_pass &p,
                                                   const quad *from)
{
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        int i = m.tid + n * THREADS;
        if (!has_item(p, i))
            continue;
        int vector = vector_of(i), d = i % QUADS * 4;
        const view &v = view_of_vector(vector);
        float x[4], y[4];
        unpack_quad(v, from[n], from[n].first, x);
        unpack_quad(v, from[n], from[n].second, y);
        if (vector != VECTOR_V)
            rotate_four(from[n].cosine, from[n].sine, x, y);
        if (vector < VECTOR_K) {
            leave_query(p.item, vector, d / 2, x);
            leave_query(p.item, vector, (d + HALF_DIM) / 2, y);
        } else {
            u32 *to = own_vector(p.row, vector - VECTOR_K);
            *(uint2 *)(to + d / 2) = pack_quad(x);
            *(uint2 *)(to + (d + HALF_DIM) / 2) = pack_quad(y);
        }
    }
}

/* ---- keys and values of a batch --------------------------------------------------------------- */

/* A batch of a warp. Of tile t, lane l has keys of positions l / 4 and l / 4 + 8, dimensions 32 c + 8 (l % 4)
 * and the next 7, and values of positions 2 (l % 4) + {0, 1, 8, 9}, dimensions 64 c + 8 (l / 4) and the
 * next 7. Positions that it does not have are 0. */
struct tile_batch {
    uint4 keys[TILES][2][KEY_CHUNKS];
    uint4 values[TILES][4][VALUE_CHUNKS];
};

/* Where a lane finds its first key and value of a batch from position 0 on. */
struct tile_lane {
    const u8 *keys, *values;
    int key, value;     /* their position in the batch */
    int d_key, d_value; /* their first dimension */
};

static __device__ __forceinline__ tile_lane lane_of(const machine &m, int sequence)
{
    const attention &a = own().att;
    tile_lane l;
    l.key = m.lane / 4;
    l.value = m.lane % 4 * 2;
    l.d_key = m.lane % 4 * 8;
    l.d_value = m.lane / 4 * 8;
    l.keys = a.k.at + (cache_index(a.k, sequence, l.key) + l.d_key) * 2;
    l.values = a.v.at + (cache_index(a.v, sequence, l.value) + l.d_value) * 2;
    return l;
}

/* A lane's vectors of a batch by number: chunk, tile, and which of the tile's; how many positions behind the
 * lane's first, whether the head has those dimensions, and where it lies behind the lane's first. */
struct tile_vector {
    int chunk, tile, which;
    int position, offset;
    bool whole; /* all lanes' dimensions are the head's */
};

static __device__ __forceinline__ constexpr tile_vector key_vector(int i)
{
    int c = i / (2 * TILES), t = i / 2 % TILES, position = t * TILE + i % 2 * 8;
    return {c, t, i % 2, position, position * ROW_BYTES + c * 64, 32 * c + 32 <= HEAD_DIM};
}

static __device__ __forceinline__ constexpr tile_vector value_vector(int i)
{
    int c = i / (4 * TILES), t = i / 4 % TILES, position = t * TILE + i % 4 / 2 * 8 + i % 2;
    return {c, t, i % 4, position, position * ROW_BYTES + c * 128, 64 * c + 64 <= HEAD_DIM};
}

static __device__ __forceinline__ void load_vector(uint4 *to, const u8 *from)
{
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to->x), "=r"(to->y), "=r"(to->z), "=r"(to->w)
                 : "l"(from));
}

static __device__ __forceinline__ uint4 &key_of(tile_batch &b, const tile_vector &v)
{
    return b.keys[v.tile][v.which][v.chunk];
}

static __device__ __forceinline__ uint4 &value_of(tile_batch &b, const tile_vector &v)
{
    return b.values[v.tile][v.which][v.chunk];
}

/* Asks for the keys of the batch at `from` that lie before `end`; the others are 0. */
static __device__ __forceinline__ void load_keys(const tile_lane &l, int from, int end,
                                                 tile_batch &b)
{
    const u8 *at = l.keys + (long long)from * ROW_BYTES;
    int left = end - from - l.key;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const tile_vector v = key_vector(i);
        key_of(b, v) = make_uint4(0, 0, 0, 0);
        if (v.position < left && (v.whole || 32 * v.chunk + l.d_key < HEAD_DIM))
            load_vector(&key_of(b, v), at + v.offset);
    }
}

static __device__ __forceinline__ void load_values(const tile_lane &l, int from, int end,
                                                   tile_batch &b)
{
    const u8 *at = l.values + (long long)from * ROW_BYTES;
    int left = end - from - l.value;
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        const tile_vector v = value_vector(i);
        value_of(b, v) = make_uint4(0, 0, 0, 0);
        if (v.position < left && (v.whole || 64 * v.chunk + l.d_value < HEAD_DIM))
            load_vector(&value_of(b, v), at + v.offset);
    }
}

/* This epoch's positions of a batch, so that which make a batch does not depend on where an epoch starts:
 * those before the row's own, which are in the cache by now; */
static __device__ __forceinline__ void add_earlier(const tile_lane &l, int from,
                                                   const positions &at, tile_batch &b)
{
    const u8 *keys = l.keys + (long long)from * ROW_BYTES;
    const u8 *values = l.values + (long long)from * ROW_BYTES;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const tile_vector v = key_vector(i);
        int p = from + l.key + v.position;
        if (p >= at.hi && p < at.last && (v.whole || 32 * v.chunk + l.d_key < HEAD_DIM))
            load_vector(&key_of(b, v), keys + v.offset);
    }
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        const tile_vector v = value_vector(i);
        int p = from + l.value + v.position;
        if (p >= at.hi && p < at.last && (v.whole || 64 * v.chunk + l.d_value < HEAD_DIM))
            load_vector(&value_of(b, v), values + v.offset);
    }
}

/* and the row's own, number `number` of the batch, which is in shared memory. */
static __device__ __forceinline__ void add_own(const tile_lane &l, int r, int number, tile_batch &b)
{
    const u32 *key = own_vector(r, 0) + l.d_key / 2, *value = own_vector(r, 1) + l.d_value / 2;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const tile_vector v = key_vector(i);
        if (v.position == number - l.key && (v.whole || 32 * v.chunk + l.d_key < HEAD_DIM))
            key_of(b, v) = *(const uint4 *)(key + v.chunk * 16);
    }
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        const tile_vector v = value_vector(i);
        if (v.position == number - l.value && (v.whole || 64 * v.chunk + l.d_value < HEAD_DIM))
            value_of(b, v) = *(const uint4 *)(value + v.chunk * 32);
    }
}

/* Asks for bytes [from, end) of a kv head into L2, `bytes` at the most; one lane. */
static __device__ __forceinline__ void prefetch_vectors(const u8 *from, int bytes)
{
#if MGL_BULK_COPY
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
#else
    for (int i = 0; i < bytes; i += 128)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
#endif
}

/* A batch, up to `end`, into L2, by the lane whose vectors begin it. */
static __device__ __forceinline__ void prefetch_batch(const machine &m, const tile_lane &l,
                                                      int from, int end)
{
    int bytes = min(end - from, (int)BATCH) * ROW_BYTES;
    if (m.lane == 0 && bytes > 0) {
        prefetch_vectors(l.keys + (long long)from * ROW_BYTES, bytes);
        prefetch_vectors(l.values + (long long)from * ROW_BYTES, bytes);
    }
}

/* The warp's first batch, in earlier epochs, and the coming ones. */
static __device__ __forceinline__ void begin_tiles(const machine &m, const tile_lane &l,
                                                   const positions &at, tile_batch &b)
{
    int from = at.lo + m.warp * BATCH;
    load_keys(l, from, at.hi, b);
    load_values(l, from, at.hi, b);
#pragma unroll
    for (int n = 1; n <= AHEAD_BATCHES; n++)
        prefetch_batch(m, l, from + n * MGL_WARPS * BATCH, at.hi);
}

/* ---- softmax ---------------------------------------------------------------------------------- */

/* A warp's softmax so far, of head l % 4 in lane l. Maximum and scores are powers of 2. */
struct tile_state {
    float max;
    float sum;           /* this lane's positions */
    float sums[SUMS][4]; /* dimension 64 (i / 4) + 8 (l / 4) + 2 (i % 4), two parts, and the next */
};

/* The lane's part of the q operand, chunk c. Asked for in each batch: registers are scarce. */
static __device__ __forceinline__ uint4 load_query(const machine &m, const tile_pass &p, int c)
{
    const u32 *at = query_column(p.item, m.lane / 4) + 16 * c + m.lane % 4 * 4;
    uint4 words = make_uint4(0, 0, 0, 0);
    if (m.lane / 8 < p.heads && (32 * c + 32 <= HEAD_DIM || 32 * c + m.lane % 4 * 8 < HEAD_DIM))
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "r"(shared_address(at)));
    return words;
}

/* Sums of products with the even and the odd words of q. */
struct tile_products {
    float even[TILES][4], odd[TILES][4];
};

/* Adds those of chunk c. */
static __device__ __forceinline__ void add_products(const tile_batch &b, int c, const uint4 &q,
                                                    tile_products &sums)
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        uint4 x = b.keys[t][0][c], y = b.keys[t][1][c];
        mma_tile(sums.even[t], x.x, y.x, x.y, y.y, q.x, q.y);
        mma_tile(sums.odd[t], x.z, y.z, x.w, y.w, q.z, q.w);
    }
}

/* Scores of this lane's two positions of each tile; of the batch's, those before `left` count. */
static __device__ __forceinline__ void scores_of(const tile_products &sums, int left,
                                                 float (*scores)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        const float *even = sums.even[i / 2] + i % 2 * 2, *odd = sums.odd[i / 2] + i % 2 * 2;
        float score = (even[0] + odd[0]) + (even[1] + odd[1]);
        scores[i / 2][i % 2] = i * 8 < left ? score : -INFINITY;
    }
}

static __device__ __forceinline__ void
score_tiles(const machine &m, const tile_pass &p, const tile_batch &b, int left, float (*scores)[2])
{
    tile_products sums = {};
#pragma unroll
    for (int c = 0; c < KEY_CHUNKS; c++)
        add_products(b, c, load_query(m, p, c), sums);
    scores_of(sums, left, scores);
}

/* The largest of a head's lanes. */
static __device__ __forceinline__ float head_max(float value)
{
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    return value;
}

/* The largest of `top` and of the head's scores of a batch. */
static __device__ __forceinline__ float largest(float top, float (*scores)[2])
{
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++)
        top = fmaxf(top, scores[i / 2][i % 2]);
    return head_max(top);
}

/* Weights of the batch's scores, as the B operands of the values: two words a tile. `top` is the largest
 * so far. */
static __device__ __forceinline__ void weigh(tile_state &s, float top, float (*scores)[2],
                                             u32 (*weights)[2])
{
    float keep = power_of_2(s.max - top);
    s.max = top;
    s.sum *= keep;
#pragma unroll
    for (int i = 0; i < 4 * SUMS; i++)
        s.sums[i / 4][i % 4] *= keep;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        float weight = power_of_2(scores[i / 2][i % 2] - top);
        u32 word = pack_pair(MGL_CACHE, weight, 0.0f);
        s.sum += weight;
        weights[i / 2][i % 2] =
            transposed(pack_pair(MGL_CACHE, low_half(word), weight - low_half(word)));
    }
}

/* Adds the values of a tile by weight. */
static __device__ __forceinline__ void add_tile(tile_state &s, uint4 (*values)[VALUE_CHUNKS],
                                                const u32 *weights)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        u32 words[4];
#pragma unroll
        for (int p = 0; p < 4; p++) {
            uint4 raw = values[p][i / 4];
            words[p] = i % 4 == 0 ? raw.x : i % 4 == 1 ? raw.y : i % 4 == 2 ? raw.z : raw.w;
        }
        mma_tile(s.sums[i], __byte_perm(words[0], words[1], 0x5410),
                 __byte_perm(words[0], words[1], 0x7632), __byte_perm(words[2], words[3], 0x5410),
                 __byte_perm(words[2], words[3], 0x7632), weights[0], weights[1]);
    }
}

/* The warp's batches, the first of which is at hand as far as it is of earlier epochs; none leaves the
 * neutral element. */
static __device__ __forceinline__ void attend_batches(const machine &m, const tile_pass &p,
                                                      const tile_lane &l, const positions &at,
                                                      tile_batch &b, tile_state &s)
{
    const int stride = MGL_WARPS * BATCH;
    for (int from = at.lo + m.warp * BATCH; from < at.end; from += stride) {
        float scores[TILES][2];
        u32 weights[TILES][2];
        if (from >= at.lo + stride)
            load_values(l, from, at.hi, b);
        prefetch_batch(m, l, from + (AHEAD_BATCHES + 1) * stride, at.hi);
        if (from + BATCH > at.hi && at.last > at.hi)
            add_earlier(l, from, at, b);
        if (at.end > at.hi && from + BATCH >= at.end)
            add_own(l, p.row, at.last - from, b);
        score_tiles(m, p, b, at.end - from - l.key, scores);
        load_keys(l, from + stride, at.hi, b);
        weigh(s, largest(s.max, scores), scores, weights);
#pragma unroll
        for (int t = 0; t < TILES; t++)
            add_tile(s, b.values[t], weights[t]);
    }
}

/* ---- results ---------------------------------------------------------------------------------- */

/* A warp's result: its lane's pairs of dimensions of head l % 4. */
struct tile_result {
    float max, sum;
    float2 value[SUMS];
};

static __device__ __forceinline__ tile_result result_of(const tile_state &s)
{
    tile_result result;
    result.max = s.max;
    result.sum = s.sum;
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1)
        result.sum += __shfl_xor_sync(0xFFFFFFFFu, result.sum, offset);
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        result.value[i] = make_float2(s.sums[i][0] + s.sums[i][1], s.sums[i][2] + s.sums[i][3]);
    return result;
}

/* Dimension of value i of a lane. */
static __device__ __forceinline__ int result_dim(int lane, int i)
{
    return i / 4 * 64 + lane / 4 * 8 + i % 4 * 2;
}

/* A partial's maximum is the score's, not its power's. */
static __device__ __forceinline__ void store_value(const head_output &to, int lane, int i,
                                                   float2 value, float max, float sum, u64 policy)
{
    int d = result_dim(lane, i);
    if (d < HEAD_DIM)
        store_result(to, d, value, max * 0.6931471805599453f, sum, policy);
}

/* The usual case, without its questions: a mean to a flagged region in f32. */
static __device__ __forceinline__ void store_words(const head_output &to, int lane,
                                                   const tile_result &result, u64 policy)
{
    const float inverse = reciprocal(result.sum);
    u8 *at = element_of(to.y, to.row, to.column + result_dim(lane, 0));
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        if (VALUE_CHUNKS * 64 == HEAD_DIM || result_dim(lane, i) < HEAD_DIM)
            store_two_words(at + result_dim(0, i) * 4, flag_bits(result.value[i].x * inverse),
                            flag_bits(result.value[i].y * inverse), policy);
}

static __device__ __forceinline__ void store_alone(const machine &m, const tile_pass &p,
                                                   const tile_result &result, u64 policy)
{
    if (m.lane % 4 >= p.heads)
        return;
    const head_output to = output_of(m, p.row, p.head + m.lane % 4);
    if (!to.part && to.y.flag && to.y.dtype == DTYPE_F32)
        return store_words(to, m.lane, result, policy);
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        store_value(to, m.lane, i, result.value[i], result.max, result.sum, policy);
}

static __device__ __forceinline__ void leave_result(int slot, int lane, const tile_result &result)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        left_sums(slot)[i * 32 + lane] = result.value[i];
    if (lane < 4)
        *left_weight(slot, lane) = make_float2(result.max, result.sum);
}

/* Merges what another warp has left in the slot. */
static __device__ __forceinline__ void take_result(int slot, int lane, tile_result &result)
{
    float2 other = *left_weight(slot, lane % 4);
    float top = fmaxf(result.max, other.x);
    float mine = power_of_2(result.max - top), theirs = power_of_2(other.x - top);
    result.max = top;
    result.sum = result.sum * mine + other.y * theirs;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        float2 value = left_sums(slot)[i * 32 + lane];
        result.value[i].x = result.value[i].x * mine + value.x * theirs;
        result.value[i].y = result.value[i].y * mine + value.y * theirs;
    }
    __syncwarp(); /* the slot may be left to anew: all lanes have its weight */
}

/* Brings the results of `active` warps to the first FOLD of them, FOLD at a time. */
static __device__ __forceinline__ void fold_results(const machine &m, int active,
                                                    tile_result &result)
{
#pragma unroll
    for (int first = (MGL_WARPS - 1) / FOLD * FOLD; first > 0; first -= FOLD) {
        if (first >= active)
            continue;
        if (m.warp >= first && m.warp < min(active, first + FOLD))
            leave_result(m.warp - first, m.lane, result);
        consumer_barrier();
        if (m.warp < FOLD && m.warp + first < active)
            take_result(m.warp, m.lane, result);
        if (first > FOLD)
            consumer_barrier();
    }
    if (m.warp < min(active, (int)FOLD))
        leave_result(m.warp, m.lane, result);
    consumer_barrier();
}

/* Merges and writes what the first `slots` warps have left, a pair of dimensions a thread. */
static __device__ __forceinline__ void store_folded(const machine &m, const tile_pass &p, int slots,
                                                    u64 policy)
{
    int lane = m.tid % 32, head = lane % 4;
    if (head >= p.heads)
        return;
    float top = -INFINITY, weights[FOLD], sum = 0.0f;
#pragma unroll
    for (int u = 0; u < FOLD; u++) {
        weights[u] = u < slots ? left_weight(u, head)->x : -INFINITY;
        top = fmaxf(top, weights[u]);
    }
#pragma unroll
    for (int u = 0; u < FOLD; u++) {
        weights[u] = power_of_2(weights[u] - top);
        sum = u < slots ? fmaf(left_weight(u, head)->y, weights[u], sum) : sum;
    }
    const head_output to = output_of(m, p.row, p.head + head);
    for (int i = m.tid / 32; i < SUMS; i += MGL_WARPS) {
        float2 value = {0.0f, 0.0f};
#pragma unroll
        for (int u = 0; u < FOLD; u++)
            if (u < slots) {
                float2 part = left_sums(u)[i * 32 + lane];
                value.x = fmaf(part.x, weights[u], value.x);
                value.y = fmaf(part.y, weights[u], value.y);
            }
        store_value(to, lane, i, value, top, sum, policy);
    }
}

/* ---- all rows --------------------------------------------------------------------------------- */

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

/* What the warps have of a pass, `active` of them, to where it goes. */
static __device__ __forceinline__ void finish_pass(const machine &m, const tile_pass &p, int active,
                                                   tile_result &result, u64 policy)
{
    if (active > 1) {
        fold_results(m, active, result);
        store_folded(m, p, min(active, (int)FOLD), policy);
    } else if (m.warp == 0) {
        store_alone(m, p, result, policy);
    }
}

/* One pass. What does not depend on this epoch is asked for first. False when a wait gave up. */
static __device__ __forceinline__ bool attend_pass_tiles(const machine &m, const tile_pass &p,
                                                         u64 policy, u64 *since)
{
    const positions at = positions_of(m, p.row);
    quad quads[ROUNDS];
    tile_batch b;
    load_quads(m, p, quads, policy);
    const tile_lane l = lane_of(m, own().table[p.row * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE]);
    begin_tiles(m, l, at, b);
    bool written = await_quads(m, p, quads, policy, since);
    leave_quads(m, p, quads);
    consumer_barrier();
#if MGL_TRACE
    if (m.tid == 0)
        own().input = time_ns();
#endif
    append_quads(m, p);
    tile_state s = empty_state();
    attend_batches(m, p, l, at, b, s);
    tile_result result = result_of(s);
    finish_pass(m, p, min((at.end - at.lo + BATCH - 1) / BATCH, MGL_WARPS), result, policy);
    return written;
}

/* The rows of the mask, with all heads of the q region. A wait that gave up is reported at the end: a call in
 * between would cost the registers that hold keys and values. */
static __device__ __forceinline__ void attend_tiles(const machine &m, u32 rows)
{
    const u64 policy = keep_policy();
    bool written = true;
    u64 since = 0;
    for (int item = 0; item < rows_of(m) * PASSES; item++)
        if (rows >> item / PASSES & 1)
            written = attend_pass_tiles(m, pass_at(item), policy, &since) && written;
    if (!written)
        look_at_clock(m.launch, since, MGL_REPORT_FLAG, task_of(m)->task, m.epoch,
                      (u32)operand_of(vector_of(m.tid)), 1, 0);
}

#endif
