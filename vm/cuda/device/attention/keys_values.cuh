/*
 * Cached keys and values for attention on tensor cores: which of them a lane holds in registers,
 * how they are loaded, and which of them are prefetched into L2. kv_rounds.cuh, short.cuh and
 * ring.cuh use it; the controller calls announce_kv.
 */
#ifndef MGL_DEVICE_ATTENTION_KEYS_VALUES_CUH
#define MGL_DEVICE_ATTENTION_KEYS_VALUES_CUH

#include "vm/cuda/device/attention/query.cuh"

/* Keys or values of a KV tile, numbered as below. Of tile t, lane l has keys of positions l / 4 and
 * l / 4 + 8, dimensions 32 c + 8 (l % 4) and the next 7, and values of positions 2 (l % 4) + {0, 1,
 * 8, 9}, dimensions 64 c + 8 (l / 4) and the next 7. Missing positions are 0. */
struct tile_vectors {
    uint4 at[KEYS > VALUES ? KEYS : VALUES];
};

/* Addresses of a lane's first key and value, of the KV tile at position 0. */
struct tile_lane {
    const u8 *keys, *values;
    int key, value;     /* their position in the KV tile */
    int d_key, d_value; /* their first dimension */
    /* SWIZZLED, else 0: offset in bytes of an even chunk of keys (odd chunks: minus it); and
     * offsets of a chunk of values, at even positions and at odd ones */
    int key_swizzle, value_swizzle[2];
};

static __device__ __forceinline__ void place_lane(const machine &m, tile_lane &l)
{
    l.key = m.lane / 4;
    l.value = m.lane % 4 * 2;
    l.d_key = m.lane % 4 * 8;
    l.d_value = m.lane / 4 * 8;
}

/* Sets the swizzle of a lane's chunks; `first` is the cache position that number 0 stands for.
 * Positions eight apart have the same swizzle. */
static __device__ __forceinline__ void swizzle_lane(tile_lane &l, int first)
{
    const int chunk = l.d_value / 8, position = first + l.value;
    l.key_swizzle = SWIZZLED ? mgl_kv_chunk(0, first + l.key, 0) * 16 : 0;
    l.value_swizzle[0] = SWIZZLED ? (mgl_kv_chunk(1, position, chunk) - chunk) * 16 : 0;
    l.value_swizzle[1] = SWIZZLED ? (mgl_kv_chunk(1, position + 1, chunk) - chunk) * 16 : 0;
}

static __device__ __forceinline__ tile_lane lane_of(const machine &m, int sequence)
{
    const attention &a = own().att;
    tile_lane l;
    place_lane(m, l);
    l.keys = a.k.at + (cache_index(a.k, sequence, l.key) + l.d_key) * 2;
    l.values = a.v.at + (cache_index(a.v, sequence, l.value) + l.d_value) * 2;
    return l;
}

/* A lane's vectors of a KV tile by number: the chunk; the position relative to the lane's first;
 * the offset in memory relative to the lane's first; and whether the head has those dimensions. */
struct tile_vector {
    int chunk;
    int position, offset;
    bool whole; /* the head has these dimensions of all lanes */
};

static __device__ __forceinline__ constexpr tile_vector key_vector(int i)
{
    int c = i / (2 * TILES), t = i / 2 % TILES, position = t * TILE + i % 2 * 8;
    return {c, position, position * POSITION_BYTES + c * 64, 32 * c + 32 <= HEAD_DIM};
}

static __device__ __forceinline__ constexpr tile_vector value_vector(int i)
{
    int c = i / (4 * TILES), t = i / 4 % TILES, position = t * TILE + i % 4 / 2 * 8 + i % 2;
    return {c, position, position * POSITION_BYTES + c * 128, 64 * c + 64 <= HEAD_DIM};
}

/* The offsets in memory of a lane's vectors, in a cache that may be swizzled. */
static __device__ __forceinline__ int key_place(const tile_lane &l, const tile_vector &v)
{
    return v.offset + (!SWIZZLED ? 0 : v.chunk % 2 ? -l.key_swizzle : l.key_swizzle);
}

static __device__ __forceinline__ int value_place(const tile_lane &l, const tile_vector &v)
{
    return v.offset + (!SWIZZLED ? 0 : l.value_swizzle[v.position % 2]);
}

/* The number of the key or value `which` of chunk c of tile t. */
static __device__ __forceinline__ constexpr int key_number(int t, int which, int c)
{
    return (c * TILES + t) * 2 + which;
}

static __device__ __forceinline__ constexpr int value_number(int t, int which, int c)
{
    return (c * TILES + t) * 4 + which;
}

/* Loads the keys of the KV tile at `from` that are before `end`; the others are 0. */
static __device__ __forceinline__ void load_keys(const tile_lane &l, int from, int end,
                                                 tile_vectors &b)
{
    const u8 *at = l.keys + (long long)from * POSITION_BYTES;
    const int left = end - from - l.key;
    if (KEY_CHUNKS * 32 == HEAD_DIM && from + KV_TILE <= end) {
#pragma unroll
        for (int i = 0; i < KEYS; i++)
            load_vector(&b.at[i], at + key_place(l, key_vector(i)));
        return;
    }
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const tile_vector v = key_vector(i);
        b.at[i] = make_uint4(0, 0, 0, 0);
        if (v.position < left && (v.whole || 32 * v.chunk + l.d_key < HEAD_DIM))
            load_vector(&b.at[i], at + key_place(l, v));
    }
}

static __device__ __forceinline__ void load_values(const tile_lane &l, int from, int end,
                                                   tile_vectors &b)
{
    const u8 *at = l.values + (long long)from * POSITION_BYTES;
    const int left = end - from - l.value;
    if (VALUE_CHUNKS * 64 == HEAD_DIM && from + KV_TILE <= end) {
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            load_vector(&b.at[i], at + value_place(l, value_vector(i)));
        return;
    }
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        const tile_vector v = value_vector(i);
        b.at[i] = make_uint4(0, 0, 0, 0);
        if (v.position < left && (v.whole || 64 * v.chunk + l.d_value < HEAD_DIM))
            load_vector(&b.at[i], at + value_place(l, v));
    }
}

/* Inserts the row's own key from shared memory as number `number` of a KV tile. */
static __device__ __forceinline__ void add_own_key(const tile_lane &l, int r, int number,
                                                   tile_vectors &b)
{
    const u32 *key = own_vector(r, 0) + l.d_key / 2;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const tile_vector v = key_vector(i);
        if (v.position == number - l.key && (v.whole || 32 * v.chunk + l.d_key < HEAD_DIM))
            b.at[i] = *(const uint4 *)(key + v.chunk * 16);
    }
}

/* Inserts the row's own value likewise. */
static __device__ __forceinline__ void add_own_value(const tile_lane &l, int r, int number,
                                                     tile_vectors &b)
{
    const u32 *value = own_vector(r, 1) + l.d_value / 2;
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        const tile_vector v = value_vector(i);
        if (v.position == number - l.value && (v.whole || 64 * v.chunk + l.d_value < HEAD_DIM))
            b.at[i] = *(const uint4 *)(value + v.chunk * 32);
    }
}

/* A warp's registers for the two KV tiles of a KV round: their keys, later their values in the same
 * registers. If there is only one KV tile, its keys and values. */
struct kv_round_vectors {
    tile_vectors first, last;
};

/* kv_round_vectors with extra registers for the values of the first KV tile. */
struct tile_one {
    tile_vectors first, last, values;
};

enum { STRIDE = MGL_WARPS * KV_TILE }; /* distance of a warp's consecutive KV tiles */

/* A KV round: LENGTH is the distance between rounds, two KV tiles per warp (PLAIN) or one.
 * WARPS_ASK: the warps prefetch keys and values into L2, because the loader does not. */
template <bool PLAIN> struct kv_round {
    enum { LENGTH = PLAIN ? 2 * STRIDE : STRIDE, WARPS_ASK = !(PLAIN && MGL_BULK_COPY) };
};

enum { MOST_ANNOUNCED = 1 << 20 }; /* positions: their byte count fits a u32 */

/* Announces to the loader the earlier positions of a task of one row, when the controller prepares
 * the task: the memory is idle while the queue waits for the input of the previous task. With
 * KV_RING the loader computes them itself, and the controller learns the page count. Otherwise the
 * fields are a seqlock with version kv_number. One lane. */
static __device__ __forceinline__ void announce_kv(const machine &m)
{
    if (!TILED || rows_of(m) != 1)
        return;
    const attention &a = own().att;
    const positions at = positions_of(m, 0);
    const int sequence = own().table[MGL_TABLE_SEQUENCE];
    if (KV_RING) {
        own().kv_bytes = (u32)(at.hi - at.lo) * POSITION_BYTES;
        own().kv_shift = kv_pages((u32)(at.hi - at.lo)) + task_of(m)->kv_again;
        return;
    }
    const u32 number = own().kv_number;
    store_shared_release(&own().kv_number, number + 1);
    own().kv_keys = (u64)(a.k.at + cache_index(a.k, sequence, at.lo) * 2);
    own().kv_values = (u64)(a.v.at + cache_index(a.v, sequence, at.lo) * 2);
    own().kv_bytes = (u32)min(at.hi - at.lo, MOST_ANNOUNCED) * POSITION_BYTES;
    own().kv_stretch = kv_round<true>::LENGTH * POSITION_BYTES;
    own().kv_used = 0;
    store_shared_release(&own().kv_number, number + 2);
}

/* Publishes how many stretches of keys and values (roles/ahead.cuh) the warps have loaded
 * themselves. */
static __device__ __forceinline__ void tell_used(const machine &m, u32 stretches)
{
    if (MGL_BULK_COPY && thread_of(m) == 0)
        own().kv_used = stretches;
}

/* A warp's place among the KV rounds. */
struct tile_share {
    tile_lane l; /* addresses of the warp's first position of the next round */
    int left;    /* positions from that position to the end of the task's positions */
    int stored;  /* the part of `left` that is in the cache. In a task that appends, the last
                    position is the row's own, which is not in the cache yet */
};

static __device__ __forceinline__ tile_share share_of(const machine &m, const tile_pass &p,
                                                      const positions &at)
{
    const int from = at.lo + m.warp * KV_TILE;
    tile_share w = {lane_of(m, own().table[p.row * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE]),
                    at.end - from, at.hi - from};
    w.l.keys += (long long)from * POSITION_BYTES;
    w.l.values += (long long)from * POSITION_BYTES;
    swizzle_lane(w.l, at.lo);
    return w;
}

template <bool PLAIN> static __device__ __forceinline__ void advance(tile_share &w)
{
    constexpr int LENGTH = kv_round<PLAIN>::LENGTH;
    w.left -= LENGTH;
    w.stored -= LENGTH;
    w.l.keys += LENGTH * POSITION_BYTES;
    w.l.values += LENGTH * POSITION_BYTES;
}

/* Prefetches keys or values into L2: up to `count` positions from number `from` of the round on.
 * `first` is lane 0's address for the round; lane 0 issues the prefetch. */
static __device__ __forceinline__ void prefetch_positions(const machine &m, const tile_share &w,
                                                          const u8 *first, int from, int count)
{
    const int bytes = min(w.stored - from, count) * POSITION_BYTES;
    if (m.lane == 0 && bytes > 0)
        prefetch_vectors(first + from * POSITION_BYTES, bytes);
}

/* Prefetches the warp's part of round n, counted from the current one, into L2: not the KV tiles
 * that the warp will process, but as many consecutive ones. */
template <bool PLAIN>
static __device__ __forceinline__ void prefetch_kv_round(const machine &m, const tile_share &w,
                                                         int n)
{
    constexpr int LENGTH = kv_round<PLAIN>::LENGTH, EACH = LENGTH / MGL_WARPS;
    const int from = LENGTH * n + m.warp * (EACH - KV_TILE);
    prefetch_positions(m, w, w.l.keys, from, EACH);
    prefetch_positions(m, w, w.l.values, from, EACH);
}

/* Whether the round that begins at position `from` of this one has a second KV tile. */
template <bool PLAIN>
static __device__ __forceinline__ bool has_second(const tile_share &w, int from = 0)
{
    return PLAIN && w.left > from + STRIDE;
}

/* Loads the second part of a round's initial registers; `from`: 0, or the round's length for the
 * next round. */
template <bool PLAIN>
static __device__ __forceinline__ void load_last(const tile_share &w, int from, kv_round_vectors &v)
{
    if (has_second<PLAIN>(w, from))
        load_keys(w.l, from + STRIDE, w.stored, v.last);
    else
        load_values(w.l, from, w.stored, v.last);
}

/* Loads the warp's only round, except for the values of its second KV tile. */
static __device__ __forceinline__ void begin_one(const machine &m, const tile_share &w, tile_one &v)
{
    load_keys(w.l, 0, w.stored, v.first);
    load_values(w.l, 0, w.stored, v.values);
    load_keys(w.l, STRIDE, w.stored, v.last);
    tell_used(m, 1);
    if (kv_round<true>::WARPS_ASK && has_second<true>(w))
        prefetch_positions(m, w, w.l.values, STRIDE, KV_TILE);
}

/* Loads the warp's first round, and prefetches into L2 what does not fit the registers. */
template <bool PLAIN>
static __device__ __forceinline__ void begin_tiles(const machine &m, const tile_share &w,
                                                   kv_round_vectors &v)
{
    load_keys(w.l, 0, w.stored, v.first);
    if (PLAIN)
        load_last<PLAIN>(w, 0, v);
    if (PLAIN)
        tell_used(m, 1);
    if (!kv_round<PLAIN>::WARPS_ASK)
        return;
    prefetch_positions(m, w, w.l.values, 0, KV_TILE);
    if (has_second<PLAIN>(w))
        prefetch_positions(m, w, w.l.values, STRIDE, KV_TILE);
    if (w.left > kv_round<PLAIN>::LENGTH)
        prefetch_kv_round<PLAIN>(m, w, 1);
}

#endif
