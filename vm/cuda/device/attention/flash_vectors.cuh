/*
 * Inputs of attention of rows (attention/flash.cuh, attention/decode_row.cuh): the units of a task;
 * this epoch's keys and values, computed from the exchange and appended to the cache; cached keys
 * and values; and a unit's queries as MMA operands in own().partial.
 */
#ifndef MGL_DEVICE_ATTENTION_FLASH_VECTORS_CUH
#define MGL_DEVICE_ATTENTION_FLASH_VECTORS_CUH

#include "vm/cuda/device/attention/short.cuh"

#if MGL_ATTEND_ROWS

enum {
    FLASH_TILES = HEAD_DIM <= 64 ? 2 : 1,
    FLASH_QUERIES = FLASH_TILES * TILE,
    FLASH_WORDS = FLASH_QUERIES * HEAD_DIM /* words of a unit's queries, at the start of
                                              own().partial */
};

/* ---- units ------------------------------------------------------------------------------------
 */

/* Queries [first, first + FLASH_QUERIES) of rows [row, end), which belong to one sequence. Query i
 * belongs to row row + i / MGL_HEADS. */
struct flash_unit {
    int row, end;
    int first;
};

static __device__ __forceinline__ const int *row_entry(int r)
{
    return own().table + r * MGL_TABLE_WORDS;
}

static __device__ __forceinline__ int queries_of(const flash_unit &u)
{
    return (u.end - u.row) * MGL_HEADS;
}

static __device__ __forceinline__ int tiles_of(const flash_unit &u)
{
    return min((int)FLASH_TILES, (queries_of(u) - u.first + TILE - 1) / TILE);
}

/* Half tiles in which the unit has queries. */
static __device__ __forceinline__ int halves_of(const flash_unit &u)
{
    return min(2 * (int)FLASH_TILES, (queries_of(u) - u.first + 7) / 8);
}

/* The task's share of the epoch's rows, [row, end). */
static __device__ __forceinline__ void find_share(const machine &m, int &row, int &end)
{
    const mgl_device_operand &y = operand(m, MGL_OPERAND(attend_rows, y));
    mgl_row_share(rows_of(m), y.first0, y.extent0, &row, &end);
}

/* The unit at the first query of row `row`; without rows at the end of the share. */
static __device__ __forceinline__ flash_unit unit_at_row(int row, int end)
{
    flash_unit u = {row, row, 0};
    while (u.end < end &&
           row_entry(u.end)[MGL_TABLE_SEQUENCE] == row_entry(row)[MGL_TABLE_SEQUENCE])
        u.end++;
    return u;
}

/* The next unit, in a share that ends at row `end`. */
static __device__ __forceinline__ flash_unit unit_behind(const flash_unit &u, int end)
{
    flash_unit next = u;
    next.first += FLASH_QUERIES;
    return next.first < queries_of(u) ? next : unit_at_row(u.end, end);
}

/* The rows that have positions of this epoch: position `past` belongs to row `first`, and so on. */
struct flash_rows {
    int past;
    int first, end;
};

/* The positions that a unit attends to: those of its sequence up to `end`, which are of the rows of
 * its queries, and earlier ones. */
struct flash_reach {
    flash_rows rows;
    int sequence, end;
};

static __device__ __forceinline__ flash_reach reach_of(const flash_unit &u)
{
    flash_reach r;
    const int last = min(u.first + (int)FLASH_QUERIES, queries_of(u)) - 1;
    r.rows.first = mgl_step_first_row(own().table, u.row);
    r.rows.end = u.row + last / MGL_HEADS + 1;
    r.rows.past = row_entry(r.rows.first)[MGL_TABLE_POSITION];
    r.sequence = row_entry(u.row)[MGL_TABLE_SEQUENCE];
    r.end = r.rows.past + r.rows.end - r.rows.first;
    return r;
}

/* ---- this epoch's vectors ---------------------------------------------------------------------
 */

/* Loads eight elements of a row, from a column on, as f32, one by one. Out of line, because it is
 * rarely needed and would be inlined in many places. */
static __device__ __noinline__ octet load_octet_slowly(const view v, int r, int column)
{
    u32 x[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = __float_as_uint(load_element(v, r, column + i));
    octet o;
    o.first = make_uint4(x[0], x[1], x[2], x[3]);
    o.second = make_uint4(x[4], x[5], x[6], x[7]);
    return o;
}

/* Whether rows can be loaded 16 bytes at a time. */
static __device__ __forceinline__ bool is_whole(const view &v)
{
    return v.dtype == DTYPE_F32 && is_aligned(v);
}

static __device__ __forceinline__ octet load_whole(const view &v, int r, int column)
{
    octet o;
    const u8 *at = element_of(v, r, column);
    load_vector(&o.first, at);
    load_vector(&o.second, at + 16);
    return o;
}

/* Loads a head's elements for four lanes, from column `column` on; all loads are in flight
 * together. */
static __device__ __forceinline__ void load_head(const view &v, int r, int column, key_octets &o)
{
    if (is_whole(v)) {
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
            o.x[c] = load_whole(v, r, column + 32 * c);
    } else {
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
            o.x[c] = load_octet_slowly(v, r, column + 32 * c);
    }
}

/* The weights of a norm. Their operand follows the outputs that the task has. */
static __device__ __forceinline__ const float *norm_weights(const machine &m, int extra)
{
    return MGL_QK_NORM ? (const float *)operand(m, extra - 3 + task_of(m)->outputs).at : NULL;
}

/* The keys and values of a tile of positions in a lane: layout as in flash.cuh. */
struct flash_tile {
    uint4 keys[2][KEY_CHUNKS], values[4][VALUE_CHUNKS];
};

/* Position number i of a lane in a tile: of keys, and of values. */
static __device__ __forceinline__ int key_position(const machine &m, int i)
{
    return m.lane / 4 + 8 * i;
}

static __device__ __forceinline__ int value_position(const machine &m, int i)
{
    return m.lane % 4 * 2 + i % 2 + i / 2 * 8;
}

/* Computes a row's key as the cache stores it: the lane's chunks. Called by all lanes. */
static __device__ __forceinline__ void make_key_of(const machine &m, int row,
                                                   uint4 (&key)[KEY_CHUNKS])
{
    tile_lane l;
    place_lane(m, l);
    key_octets o;
    load_head(own().att.k_new, row, l.d_key, o);
    const lane_norm norm = norm_of(l, o, norm_weights(m, MGL_OPERAND(attend_rows, k_g)));
#pragma unroll
    for (int c = 0; c < PAIRS; c++) {
        float x[8], y[8];
        rotate_chunks(o, c, norm, load_rope(l, rope_row(row), c), x, y);
        key[c] = pack_octet(x);
        key[c + PAIRS] = pack_octet(y);
    }
}

/* Loads eight elements of a row, from a column on. */
static __device__ __forceinline__ octet load_eight(const view &v, int r, int column)
{
    return is_whole(v) ? load_whole(v, r, column) : load_octet_slowly(v, r, column);
}

/* Computes the keys of the tile at `from` that are of this epoch's rows; after the last row they
 * are 0. Called by all lanes. AT_ONCE: positions of a lane in flight, 2 if registers are free, or
 * 1. */
template <int AT_ONCE>
static __device__ __forceinline__ void make_keys(const machine &m, const flash_rows &rows, int from,
                                                 flash_tile &t)
{
#pragma unroll AT_ONCE
    for (int i = 0; i < 2; i++) {
        const int r = rows.first + from + key_position(m, i) - rows.past;
        uint4 key[KEY_CHUNKS];
        make_key_of(m, min(max(r, rows.first), rows.end - 1), key);
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) {
            const uint4 words = r < rows.end ? key[c] : make_uint4(0, 0, 0, 0);
            if (r >= rows.first && i == 0)
                t.keys[0][c] = words;
            if (r >= rows.first && i == 1)
                t.keys[1][c] = words;
        }
    }
}

static __device__ __forceinline__ void make_values(const machine &m, const flash_rows &rows,
                                                   int from, flash_tile &t)
{
    const view &v = own().att.v_new;
    const int first = rows.first + from - rows.past; /* row of the tile's first position */
#pragma unroll
    for (int n = 0; n < 2 * VALUE_CHUNKS; n++) { /* two of a lane's positions, of a chunk */
        const int c = n / 2, column = 64 * c + m.lane / 4 * 8;
        int r[2];
        octet o[2];
#pragma unroll
        for (int i = 0; i < 2; i++)
            r[i] = first + value_position(m, n % 2 * 2 + i);
        if (is_whole(v)) {
#pragma unroll
            for (int i = 0; i < 2; i++)
                o[i] = load_whole(v, min(max(r[i], 0), rows.end - 1), column);
        } else {
#pragma unroll
            for (int i = 0; i < 2; i++)
                o[i] = load_octet_slowly(v, min(max(r[i], 0), rows.end - 1), column);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float x[8];
            unpack_octet(o[i], x);
            const uint4 words = r[i] < rows.end ? pack_octet(x) : make_uint4(0, 0, 0, 0);
            if (r[i] >= rows.first)
                t.values[n % 2 * 2 + i][c] = words;
        }
    }
}

/* Address of position `position` of a sequence in the cache of keys (0) or values (1). */
static __device__ __forceinline__ const u8 *cache_row(int which, int sequence, int position)
{
    const cache_view &cache = which ? own().att.v : own().att.k;
    return cache.at + cache_index(cache, sequence, position) * 2;
}

/* Address of chunk `chunk`, 16 bytes, of a position in the cache of keys (0) or values (1). */
static __device__ __forceinline__ u8 *cache_chunk(int which, int sequence, int position, int chunk)
{
    const cache_view &cache = which ? own().att.v : own().att.k;
    if (SWIZZLED)
        chunk = mgl_kv_chunk(which, position, chunk);
    return cache.at + cache_index(cache, sequence, position) * 2 + chunk * 16;
}

/* Loads the keys of the tile at `from` that are before `end`; the others are 0. */
static __device__ __forceinline__ void find_keys(const machine &m, int sequence, int from, int end,
                                                 flash_tile &t)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int p = from + key_position(m, i);
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) {
            t.keys[i][c] = make_uint4(0, 0, 0, 0);
            if (p < end)
                load_vector(&t.keys[i][c], cache_chunk(0, sequence, p, m.lane % 4 + 4 * c));
        }
    }
}

static __device__ __forceinline__ void find_values(const machine &m, int sequence, int from,
                                                   int end, flash_tile &t)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int p = from + value_position(m, i);
#pragma unroll
        for (int c = 0; c < VALUE_CHUNKS; c++) {
            t.values[i][c] = make_uint4(0, 0, 0, 0);
            if (p < end)
                load_vector(&t.values[i][c], cache_chunk(1, sequence, p, m.lane / 4 + 8 * c));
        }
    }
}

/* Appends the keys and values of all rows of the epoch, eight rows per warp, the last warps first,
 * because the first warps make queries. Out of line like make_queries, because both need more
 * registers than the loop. */
NEAR_OR_INLINE void append_rows(const machine m)
{
    const int rows = rows_of(m);
#pragma unroll 1
    for (int row = (MGL_WARPS - 1 - m.warp) * 8; row < rows; row += MGL_WARPS * 8) {
        const int r = row + m.lane / 4, there = min(r, rows - 1), chunk = m.lane % 4;
        octet v[KEY_CHUNKS];
        uint4 key[KEY_CHUNKS];
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
            v[c] = load_eight(own().att.v_new, there, (chunk + 4 * c) * 8);
        make_key_of(m, there, key);
        const int sequence = row_entry(there)[MGL_TABLE_SEQUENCE];
        const int position = row_entry(there)[MGL_TABLE_POSITION];
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) {
            float x[8];
            unpack_octet(v[c], x);
            if (r < rows) {
                *(uint4 *)cache_chunk(0, sequence, position, chunk + 4 * c) = key[c];
                *(uint4 *)cache_chunk(1, sequence, position, chunk + 4 * c) = pack_octet(x);
            }
        }
    }
}

/* Prefetches the task's rows of q, k and v and their cosines and sines into L1, a row per warp. The
 * loads are in flight together, ahead of the units that use them. */
static __device__ __forceinline__ void touch_rows(const machine &m, int row, int end)
{
    enum { HEAD_BYTES = HEAD_DIM * 4, GROUP_BYTES = MGL_HEADS * HEAD_BYTES };
    const attention &a = own().att;
    uint4 unused;
    if (!is_whole(a.q) || !is_whole(a.k_new) || !is_whole(a.v_new))
        return;
#pragma unroll 1
    for (int r = row + 1 + m.warp; r < end; r += MGL_WARPS) { /* the first row is loaded
                                                                 immediately anyway */
#pragma unroll 1
        for (int at = m.lane * 16; at < GROUP_BYTES; at += 512)
            load_vector(&unused, element_of(a.q, r, 0) + at);
        const int at = m.lane * 16 % HEAD_BYTES;
        load_vector(&unused, element_of(a.k_new, r, 0) + at);
        load_vector(&unused, element_of(a.v_new, r, 0) + at);
        touch_rope(m, rope_row(r));
    }
}

/* ---- queries ----------------------------------------------------------------------------------
 */

/* Operands of tile `tile` of the unit for all lanes: of chunk c of its queries the first (j 0) or
 * the last (j 1) two words of a lane's four, rounded (part 0) or the rounding error (part 1). */
static __device__ __forceinline__ uint4 *query_operands(int tile, int part, int c, int j)
{
    return (uint4 *)own().partial + (((tile * 2 + part) * KEY_CHUNKS + c) * 2 + j) * 32;
}

/* Stores the words of one query of half `half` of a tile at the places of the lane's MMA operand.
 */
static __device__ __forceinline__ void write_words(const machine &m, int tile, int part, int c,
                                                   int half, const uint4 &words)
{
    u32 *first = (u32 *)(query_operands(tile, part, c, 0) + m.lane) + half;
    u32 *last = (u32 *)(query_operands(tile, part, c, 1) + m.lane) + half;
    first[0] = words.x;
    first[2] = words.y;
    last[0] = words.z;
    last[2] = words.w;
}

/* Makes eight queries of a tile, half `half`. Queries that the unit does not have are 0. */
static __device__ __forceinline__ void make_half(const machine &m, const flash_unit &u, int tile,
                                                 int half)
{
    const int i = u.first + tile * TILE + half * 8 + m.lane / 4;
    const bool there = i < queries_of(u);
    const int row = u.row + (there ? i / MGL_HEADS : 0);
    tile_lane l;
    place_lane(m, l);
    key_octets o;
    load_head(own().att.q, row, (there ? i % MGL_HEADS : 0) * HEAD_DIM + l.d_key, o);
    const lane_norm norm = norm_of(l, o, norm_weights(m, MGL_OPERAND(attend_rows, q_g)));
#pragma unroll
    for (int c = 0; c < PAIRS; c++) {
        float x[8], y[8];
        rotate_chunks(o, c, norm, load_rope(l, rope_row(row), c), x, y);
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const uint4 none = make_uint4(0, 0, 0, 0);
            write_words(m, tile, part, c, half, there ? query_words(x, part) : none);
            write_words(m, tile, part, c + PAIRS, half, there ? query_words(y, part) : none);
        }
    }
}

/* Makes all queries of a unit, half a tile per warp. */
NEAR_OR_INLINE void make_queries(const machine m, const flash_unit u)
{
    for (int half = m.warp; half < 2 * tiles_of(u); half += MGL_WARPS)
        make_half(m, u, half / 2, half % 2);
}

#endif

#endif
