/*
 * Attention of the second list: a task has a share of the rows of an epoch, and goes through the
 * keys and values of a sequence once for all its rows of it, times the query heads of the kv head.
 * Both operands are whole: 16 queries by 8 positions, and weights of 16 queries by 8 dimensions.
 * (Rows of queries a warp, softmax and weights in registers: Dao, "FlashAttention-2", arXiv
 * 2307.08691.)
 *
 *   query   one query head of one row
 *   tile    of 16 queries, or of 16 positions
 *   unit    FLASH_TILES tiles of queries of one sequence's rows, or fewer
 *
 * A task works on unit after unit. The unit's queries, rotated, are in shared memory as operands,
 * rounded and what rounding left. Each warp has the sums of all of them, of every MGL_WARPS-th tile
 * of positions; then what the warps have is added up, first warp first. Tiles of positions begin at
 * multiples of 16, so a row has the same bits whatever epoch it is in, and with what other rows.
 *
 * Positions of earlier epochs are in the cache, and come through trays in the memory of panels
 * (attention/kv_trays.cuh), or, in a program without panels, straight into registers. Of this
 * epoch's rows each warp makes keys and values from the exchange for itself, as the cache keeps
 * them: no task waits for the one that appends. A row looks at the rows of its sequence up to
 * itself.
 *
 * In lane l an MMA of scores has words of the 16 bytes at dimensions 32 c + 8 (l % 4) of queries
 * l / 4 and l / 4 + 8, and of position l / 4: which dimensions these are does not matter, since
 * both sides have the same. The scores lie as the weights have to, position for position. Values
 * are those of positions 2 (l % 4) + {0, 1, 8, 9}, dimensions 64 c + 8 (l / 4) and the next 7:
 * column l / 4 of MMA i is dimension i of the 8.
 */
#ifndef MGL_DEVICE_ATTENTION_FLASH_CUH
#define MGL_DEVICE_ATTENTION_FLASH_CUH

#include "vm/cuda/device/attention/kv_trays.cuh"
#include "vm/cuda/device/attention/short.cuh"

#if MGL_ATTEND_ROWS

enum {
    FLASH_TILES = HEAD_DIM <= 64 ? 2 : 1,
    FLASH_QUERIES = FLASH_TILES * TILE,
    FLASH_SUMS = 8 * VALUE_CHUNKS,          /* MMAs of values of a tile of queries */
    FLASH_WORDS = FLASH_QUERIES * HEAD_DIM, /* of a unit's queries: they come first */
    LEFT_BYTES = MGL_WARPS * 256,           /* of one sum of half a tile, of all warps */
#if MGL_PANELS
    LEFT_ROOM = KV_TRAYS > 0 ? KV_LEFT : MGL_ACTIVATION_BYTES
#else
    LEFT_ROOM = MGL_ACTIVATION_BYTES
#endif
};
static_assert(TILED && HEAD_DIM % 64 == 0 && 2 * FLASH_TILES * 2 * LEFT_BYTES <= LEFT_ROOM &&
                  LEFT_ROOM <= MGL_ACTIVATION_BYTES &&
                  FLASH_WORDS + MGL_WARPS * FLASH_QUERIES * 2 <= PARTIALS,
              "variants.def says so");

/* ---- units ------------------------------------------------------------------------------------
 */

/* Queries [first, first + FLASH_QUERIES) of rows [row, end), which are of one sequence; query i is
 * of row row + i / MGL_HEADS. */
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

/* Halves of tiles that have queries of the unit. */
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

/* The unit at the first query of row `row`; of no row where the share ends. */
static __device__ __forceinline__ flash_unit unit_at_row(int row, int end)
{
    flash_unit u = {row, row, 0};
    while (u.end < end &&
           row_entry(u.end)[MGL_TABLE_SEQUENCE] == row_entry(row)[MGL_TABLE_SEQUENCE])
        u.end++;
    return u;
}

/* The one behind it in a share that ends at row `end`. */
static __device__ __forceinline__ flash_unit unit_behind(const flash_unit &u, int end)
{
    flash_unit next = u;
    next.first += FLASH_QUERIES;
    return next.first < queries_of(u) ? next : unit_at_row(u.end, end);
}

/* Which rows have positions of this epoch: position `past` is that of row `first`, and so on. */
struct flash_rows {
    int past;
    int first, end;
};

/* What a unit looks at: positions of its sequence up to `end`, those of the rows that its queries
 * are of, and those before them. */
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

/* Eight elements of a row, from a column on, in f32, one by one. Out of line: it is rarely wanted,
 * and would stand in many places. */
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

/* Whether rows are read 16 bytes at a time. */
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

/* A head's elements that four lanes have, from column `column` on: all on their way together. */
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

/* The weights of a norm, which stand behind the outputs that the task has. */
static __device__ __forceinline__ const float *norm_weights(const machine &m, int extra)
{
    return MGL_QK_NORM ? (const float *)operand(m, extra - 3 + task_of(m)->outputs).at : NULL;
}

/* The keys and values of a tile of positions: see above. */
struct flash_tile {
    uint4 keys[2][KEY_CHUNKS], values[4][VALUE_CHUNKS];
};

/* Number i of a lane's positions in a tile: of keys, and of values. */
static __device__ __forceinline__ int key_position(const machine &m, int i)
{
    return m.lane / 4 + 8 * i;
}

static __device__ __forceinline__ int value_position(const machine &m, int i)
{
    return m.lane % 4 * 2 + i % 2 + i / 2 * 8;
}

/* The tile's keys, from position `from` on, of this epoch's rows; behind the last row they are 0.
 * All lanes come here. AT_ONCE: 2 of a lane's positions, where registers are free, or 1. */
template <int AT_ONCE>
static __device__ __forceinline__ void make_keys(const machine &m, const flash_rows &rows, int from,
                                                 flash_tile &t)
{
    tile_lane l;
    place_lane(m, l);
#pragma unroll AT_ONCE
    for (int i = 0; i < 2; i++) {
        const int r = rows.first + from + key_position(m, i) - rows.past;
        const int there = min(max(r, rows.first), rows.end - 1);
        key_octets o;
        load_head(own().att.k_new, there, l.d_key, o);
        const lane_norm norm = norm_of(l, o, norm_weights(m, MGL_OPERAND(attend_rows, k_g)));
        uint4 key[KEY_CHUNKS];
#pragma unroll
        for (int c = 0; c < PAIRS; c++) {
            float x[8], y[8];
            rotate_chunks(o, c, norm, load_rope(l, rope_row(there), c), x, y);
            key[c] = pack_octet(x);
            key[c + PAIRS] = pack_octet(y);
        }
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

/* Where chunk `chunk` of a position, 16 bytes, is in the cache of keys (0) or of values (1). */
static __device__ __forceinline__ u8 *cache_chunk(int which, int sequence, int position, int chunk)
{
    const cache_view &cache = which ? own().att.v : own().att.k;
    if (SWIZZLED)
        chunk = mgl_kv_chunk(which, position, chunk);
    return cache.at + cache_index(cache, sequence, position) * 2 + chunk * 16;
}

/* The tile's keys, from position `from` on, that are before `end`; the others are 0. */
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

/* Appends the keys and values of all rows of the epoch. Out of line, as make_queries: their
 * registers are not those of the loop. */
static __device__ __noinline__ void append_rows(const machine m)
{
    const int rows = rows_of(m);
#pragma unroll 1
    for (int row = m.warp * TILE; row < rows; row += MGL_WARPS * TILE) {
        flash_tile t;
        make_keys<2>(m, {0, 0, rows}, row, t);
        make_values(m, {0, 0, rows}, row, t);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = row + key_position(m, i);
            const int *entry = row_entry(min(r, rows - 1));
#pragma unroll
            for (int c = 0; c < KEY_CHUNKS; c++)
                if (r < rows)
                    *(uint4 *)cache_chunk(0, entry[MGL_TABLE_SEQUENCE], entry[MGL_TABLE_POSITION],
                                          m.lane % 4 + 4 * c) = t.keys[i][c];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = row + value_position(m, i);
            const int *entry = row_entry(min(r, rows - 1));
#pragma unroll
            for (int c = 0; c < VALUE_CHUNKS; c++)
                if (r < rows)
                    *(uint4 *)cache_chunk(1, entry[MGL_TABLE_SEQUENCE], entry[MGL_TABLE_POSITION],
                                          m.lane / 4 + 8 * c) = t.values[i][c];
        }
    }
}

/* ---- queries ----------------------------------------------------------------------------------
 */

/* The operand of tile `tile` of the unit: chunk c of its query `query`, 16 bytes of quarter `k`,
 * rounded (0) or what rounding left (1). Eight lanes that read together read one run. */
static __device__ __forceinline__ uint4 *query_words_at(int tile, int part, int c, int query, int k)
{
    const int chunk = (tile * 2 + part) * KEY_CHUNKS + c;
    return (uint4 *)own().partial + (chunk * TILE + query) * 4 + k;
}

/* Eight queries of a tile: half `half`. Those that the unit does not have are 0. */
static __device__ __forceinline__ void make_half(const machine &m, const flash_unit &u, int tile,
                                                 int half)
{
    const int query = half * 8 + m.lane / 4, i = u.first + tile * TILE + query;
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
            *query_words_at(tile, part, c, query, m.lane % 4) = there ? query_words(x, part) : none;
            *query_words_at(tile, part, c + PAIRS, query, m.lane % 4) =
                there ? query_words(y, part) : none;
        }
    }
}

/* All queries of a unit: a half of a tile a warp. */
static __device__ __noinline__ void make_queries(const machine m, const flash_unit u)
{
    for (int half = m.warp; half < 2 * tiles_of(u); half += MGL_WARPS)
        make_half(m, u, half / 2, half % 2);
}

/* ---- a unit's positions -----------------------------------------------------------------------
 */

/* A warp's softmaxes of a unit: of queries l / 4 and l / 4 + 8 of each tile. Maximum and scores are
 * powers of 2. */
struct flash_state {
    float max[FLASH_TILES][2];
    float sum[FLASH_TILES][2]; /* this lane's positions */
    float sums[FLASH_TILES][FLASH_SUMS][4];
};

/* Scores of a tile of positions: of queries and positions as an MMA has them. */
typedef float flash_scores[FLASH_TILES][2][4];

/* Weights of a tile of positions as operands: rounded, and what rounding left. */
typedef u32 flash_weights[FLASH_TILES][2][4];

static __device__ __forceinline__ void score_tile(const machine &m, int tiles, const flash_tile &t,
                                                  flash_scores &scores)
{
#pragma unroll
    for (int tile = 0; tile < FLASH_TILES; tile++) {
        if (tile >= tiles)
            break;
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
#pragma unroll
            for (int part = 0; part < 2; part++) {
                uint4 q[2];
#pragma unroll
                for (int i = 0; i < 2; i++)
                    q[i] = *query_words_at(tile, part, c, key_position(m, i), m.lane % 4);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const uint4 &k = t.keys[i][c];
                    mma_tile(scores[tile][i], q[0].x, q[1].x, q[0].y, q[1].y, k.x, k.y);
                    mma_tile(scores[tile][i], q[0].z, q[1].z, q[0].w, q[1].w, k.z, k.w);
                }
            }
    }
}

/* The largest of the four lanes that have scores of one query. */
static __device__ __forceinline__ float query_max(float value)
{
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, 2));
}

static __device__ __forceinline__ float query_sum(float value)
{
    value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
    return value + __shfl_xor_sync(0xFFFFFFFFu, value, 2);
}

/* Takes the scores of a tile of queries into its softmax, `limit[h]` being how many of the tile's
 * positions count for query l / 4 + 8 h; and makes weights of them. */
static __device__ __forceinline__ void weigh_tile(const machine &m, const int (&limit)[2],
                                                  float (&scores)[2][4], float (&max)[2],
                                                  float (&sum)[2], float (&sums)[FLASH_SUMS][4],
                                                  u32 (&weights)[2][4])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float top = max[h];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float &score = scores[i / 2][2 * h + i % 2];
            score = m.lane % 4 * 2 + i % 2 + i / 2 * 8 < limit[h] ? score : -INFINITY;
            top = fmaxf(top, score);
        }
        top = query_max(top);
        const float from = top == -INFINITY ? 0.0f : top, keep = power_of_2(max[h] - from);
        max[h] = top;
        sum[h] *= keep;
#pragma unroll
        for (int i = 0; i < FLASH_SUMS; i++) {
            sums[i][2 * h] *= keep;
            sums[i][2 * h + 1] *= keep;
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float first = power_of_2(scores[i][2 * h] - from);
            const float second = power_of_2(scores[i][2 * h + 1] - from);
            const u32 word = pack_pair(MGL_CACHE, first, second);
            sum[h] += first + second;
            weights[0][2 * i + h] = word;
            weights[1][2 * i + h] =
                pack_pair(MGL_CACHE, first - low_half(word), second - high_half(word));
        }
    }
}

static __device__ __forceinline__ u32 word_of(const uint4 &words, int i)
{
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

static __device__ __forceinline__ void add_weighed(int tiles, const flash_tile &t,
                                                   const flash_weights &weights, flash_state &s)
{
#pragma unroll
    for (int i = 0; i < FLASH_SUMS; i++) {
        u32 words[4];
#pragma unroll
        for (int p = 0; p < 4; p++)
            words[p] = word_of(t.values[p][i / 8], i % 8 / 2);
        const int half = i % 2 ? 0x7632 : 0x5410;
        const u32 low = __byte_perm(words[0], words[1], half);
        const u32 high = __byte_perm(words[2], words[3], half);
#pragma unroll
        for (int tile = 0; tile < FLASH_TILES; tile++) {
            if (tile >= tiles)
                break;
#pragma unroll
            for (int part = 0; part < 2; part++) {
                const u32(&w)[4] = weights[tile][part];
                mma_tile(s.sums[tile][i], w[0], w[1], w[2], w[3], low, high);
            }
        }
    }
}

/* How many positions from `from` on count for query `query` of the unit's. */
static __device__ __forceinline__ int limit_of(const flash_unit &u, const flash_rows &rows,
                                               int from, int query)
{
    const int row = u.row + (u.first + query) / MGL_HEADS;
    return rows.past + row + 1 - rows.first - from;
}

/* Takes the scores of a tile of positions, from `from` on, into the softmaxes of all tiles of
 * queries. */
static __device__ __forceinline__ void weigh_scores(const machine &m, const flash_unit &u,
                                                    const flash_rows &rows, int from,
                                                    flash_scores &scores, flash_state &s,
                                                    flash_weights &weights)
{
    const int tiles = tiles_of(u);
#pragma unroll
    for (int tile = 0; tile < FLASH_TILES; tile++) {
        if (tile >= tiles)
            break;
        const int query = tile * TILE + m.lane / 4;
        const int limit[2] = {limit_of(u, rows, from, query), limit_of(u, rows, from, query + 8)};
        weigh_tile(m, limit, scores[tile], s.max[tile], s.sum[tile], s.sums[tile], weights[tile]);
    }
}

enum { FLASH_STEP = MGL_WARPS * TILE }; /* from a warp's tile of positions to its next one */

/* The warp's tiles of positions, from registers. What is asked for of the next tile is on its way
 * while this one's is worked on; the first one's comes before there are sums, so all at once. */
static __device__ __forceinline__ void attend_registered(const machine &m, const flash_unit &u,
                                                         flash_state &s)
{
    const flash_reach reach = reach_of(u);
    const flash_rows &rows = reach.rows;
    const int tiles = tiles_of(u), sequence = reach.sequence, end = reach.end;
    const int first = m.warp * TILE;
    flash_tile t = {};
    if (first < min(end, rows.past)) {
        find_keys(m, sequence, first, rows.past, t);
        find_values(m, sequence, first, rows.past, t);
    }
    if (first < end && first + TILE > rows.past) {
        make_keys<2>(m, rows, first, t);
        make_values(m, rows, first, t);
    }
#pragma unroll 1
    for (int from = first; from < end; from += FLASH_STEP) {
        const int next = from + FLASH_STEP;
        const bool past = next < end && next < rows.past;
        const bool now = next < end && next + TILE > rows.past;
        flash_weights weights;
        flash_scores scores = {};
        score_tile(m, tiles, t, scores);
        weigh_scores(m, u, rows, from, scores, s, weights);
        if (past)
            find_keys(m, sequence, next, rows.past, t);
        add_weighed(tiles, t, weights, s);
        if (past)
            find_values(m, sequence, next, rows.past, t);
        if (now) { /* when no weights and values take registers */
            make_keys<1>(m, rows, next, t);
            make_values(m, rows, next, t);
        }
    }
}

#if MGL_PANELS

/* Where chunk `chunk` of position `position`, 16 bytes, is in its tray. */
static __device__ __forceinline__ const uint4 *tray_chunk(u32 tray, int which, int position,
                                                          int chunk)
{
    if (SWIZZLED)
        chunk = mgl_kv_chunk(which, position, chunk);
    return (const uint4 *)(kv_tray(tray, which) + position % KV_TRAY_POSITIONS * POSITION_BYTES) +
           chunk;
}

/* The tile's keys, from position `from` on, that are before `end`; the others are 0. */
static __device__ __forceinline__ void take_keys(const machine &m, u32 tray, int from, int end,
                                                 flash_tile &t)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int p = from + key_position(m, i);
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) {
            t.keys[i][c] = make_uint4(0, 0, 0, 0);
            if (p < end)
                t.keys[i][c] = *tray_chunk(tray, 0, p, m.lane % 4 + 4 * c);
        }
    }
}

static __device__ __forceinline__ void take_values(const machine &m, u32 tray, int from, int end,
                                                   flash_tile &t)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int p = from + value_position(m, i);
#pragma unroll
        for (int c = 0; c < VALUE_CHUNKS; c++) {
            t.values[i][c] = make_uint4(0, 0, 0, 0);
            if (p < end)
                t.values[i][c] = *tray_chunk(tray, 1, p, m.lane / 4 + 8 * c);
        }
    }
}

/* The warp's tiles of positions, from trays. */
static __device__ __forceinline__ void attend_trays(machine &m, const flash_unit &u, flash_state &s)
{
    const flash_reach reach = reach_of(u);
    const flash_rows &rows = reach.rows;
    const int tiles = tiles_of(u);
    const u32 first = own().kv_tray_at[m.warp]; /* the unit's first tray, */
    u32 at = first;                             /* and the one that the warp has come to */
#pragma unroll 1
    for (int from = m.warp * TILE; from < reach.end; from += FLASH_STEP) {
        const bool past = from<rows.past, now = from + TILE> rows.past;
        flash_tile t = {};
        flash_weights weights;
        flash_scores scores = {};
        if (past) {
            pass_kv_trays(m, at, first + (u32)from / KV_TRAY_POSITIONS);
            wait_kv_tray(m, at);
            take_keys(m, at, from, rows.past, t);
        }
        if (now)
            make_keys<1>(m, rows, from, t);
        score_tile(m, tiles, t, scores);
        weigh_scores(m, u, rows, from, scores, s, weights);
        if (past)
            take_values(m, at, from, rows.past, t);
        if (now)
            make_values(m, rows, from, t);
        if (past && (u32)(from + FLASH_STEP) / KV_TRAY_POSITIONS != (u32)from / KV_TRAY_POSITIONS)
            free_kv_tray(at++);
        add_weighed(tiles, t, weights, s);
    }
    pass_kv_trays(m, at, first + kv_trays_of(rows.past));
    __syncwarp();
    own().kv_tray_at[m.warp] = at; /* every lane: whoever reads it next has written it */
}

#else

static __device__ __forceinline__ void attend_trays(machine &, const flash_unit &, flash_state &) {}

#endif

/* ---- results ----------------------------------------------------------------------------------
 */

/* Maximum and sum of query `query` of a warp. */
static __device__ __forceinline__ float2 *left_top(int warp, int query)
{
    return (float2 *)(own().partial + FLASH_WORDS) + warp * FLASH_QUERIES + query;
}

/* Where warp `warp` leaves sum i of a pass, which has `count` of them, of half a tile: a lane's
 * two, 32 floats from one to the next. */
static __device__ __forceinline__ float *left_pass(int warp, int half, int i, int count)
{
    return (float *)activation_buffer() + ((half * count + i) * MGL_WARPS + warp) * 64;
}

/* How many sums of so many halves all warps leave at once: 8, 4 or 2. */
static __device__ __forceinline__ int left_at_once(int halves)
{
    int sums = 8;
    while (sums > 2 && halves * sums * LEFT_BYTES > LEFT_ROOM)
        sums /= 2;
    return sums;
}

static __device__ __forceinline__ void leave_tops(const machine &m, int tiles, flash_state &s)
{
#pragma unroll
    for (int tile = 0; tile < FLASH_TILES; tile++) {
        if (tile >= tiles)
            break;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float sum = query_sum(s.sum[tile][h]);
            if (m.lane % 4 == 0)
                *left_top(m.warp, tile * TILE + m.lane / 4 + 8 * h) =
                    make_float2(s.max[tile][h], sum);
        }
    }
}

/* What a warp's sums are to be multiplied by, so that those of all warps need to be added up. */
typedef float flash_scales[FLASH_TILES][2];

static __device__ __forceinline__ void find_scales(const machine &m, int tiles,
                                                   const flash_state &s, flash_scales &scales)
{
#pragma unroll
    for (int tile = 0; tile < FLASH_TILES; tile++) {
        if (tile >= tiles)
            break;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int query = tile * TILE + m.lane / 4 + 8 * h;
            float top = -INFINITY, total = 0.0f;
#pragma unroll 4
            for (int w = 0; w < MGL_WARPS; w++)
                top = fmaxf(top, left_top(w, query)->x);
#pragma unroll 4
            for (int w = 0; w < MGL_WARPS; w++) {
                const float2 left = *left_top(w, query);
                total = fmaf(left.y, power_of_2(left.x - top), total);
            }
            scales[tile][h] = power_of_2(s.max[tile][h] - top) * reciprocal(total);
        }
    }
}

/* A pass: `count` of the sums from number `first` on. */
struct flash_pass {
    int first, count;
};

/* Leaves the warp's sums of a pass. */
static __device__ __forceinline__ void leave_pass(const machine &m, int halves,
                                                  const flash_pass &pass, const flash_state &s,
                                                  const flash_scales &scales)
{
#pragma unroll
    for (int i = 0; i < FLASH_SUMS; i++) {
        const int n = i - pass.first;
        if (n < 0 || n >= pass.count)
            continue;
#pragma unroll
        for (int half = 0; half < 2 * FLASH_TILES; half++) {
            if (half >= halves)
                break;
            float *to = left_pass(m.warp, half, n, pass.count) + m.lane;
            to[0] = s.sums[half / 2][i][half % 2 * 2] * scales[half / 2][half % 2];
            to[32] = s.sums[half / 2][i][half % 2 * 2 + 1] * scales[half / 2][half % 2];
        }
    }
}

/* Adds up sums i and i + 1 of a pass, of half a tile, and stores them. */
static __device__ __forceinline__ void store_sums(const machine &m, const flash_unit &u,
                                                  const flash_pass &pass, int half, int i,
                                                  u64 policy)
{
    const paged_view y = paged_view_of(m, operand(m, MGL_OPERAND(attend_rows, y)));
    float sums[2][2] = {};
#pragma unroll 4
    for (int w = 0; w < MGL_WARPS; w++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sums[j / 2][j % 2] += left_pass(w, half, i + j / 2, pass.count)[j % 2 * 32 + m.lane];
    const int number = pass.first + i, d = number / 8 * 64 + m.lane % 4 * 16 + number % 8;
    const int query = u.first + half * 8 + m.lane / 4;
    if (query >= queries_of(u))
        return;
    const int row = u.row + query / MGL_HEADS, column = query % MGL_HEADS * HEAD_DIM + d;
#pragma unroll
    for (int j = 0; j < 2; j++)
        store_pair(y, row, column + 8 * j, sums[0][j], sums[1][j], true, policy);
}

static __device__ __forceinline__ void store_pass(const machine &m, const flash_unit &u,
                                                  const flash_pass &pass, u64 policy)
{
    const int pairs = pass.count / 2;
    for (int item = m.warp; item < halves_of(u) * pairs; item += MGL_WARPS)
        store_sums(m, u, pass, item / pairs, item % pairs * 2, policy);
}

/* ---- a task -----------------------------------------------------------------------------------
 */

static __device__ __forceinline__ flash_state empty_flash()
{
    flash_state s = {};
#pragma unroll
    for (int i = 0; i < 2 * FLASH_TILES; i++)
        s.max[i / 2][i % 2] = -INFINITY;
    return s;
}

/* One unit. Its last pass is left to add up. */
static __device__ __forceinline__ flash_pass attend_unit(machine &m, const flash_unit &u,
                                                         u64 policy)
{
    const int tiles = tiles_of(u), halves = halves_of(u);
    flash_state s = empty_flash();
    flash_scales scales = {};
    if (KV_TRAYS > 0)
        attend_trays(m, u, s);
    else
        attend_registered(m, u, s);
    leave_tops(m, tiles, s);
    consumer_barrier(); /* nobody needs the queries any more */
    find_scales(m, tiles, s, scales);
    for (flash_pass pass = {0, left_at_once(halves)};; pass.first += pass.count) {
        leave_pass(m, halves, pass, s, scales);
        if (pass.first + pass.count == FLASH_SUMS)
            return pass;
        consumer_barrier();
        store_pass(m, u, pass, policy);
        consumer_barrier();
    }
}

/* All of a task. Out of line: its registers are not those of the loop. The queries of a unit are
 * made when those of the one before are not needed any more, and its sums stand in registers no
 * more. How long the warp waited for trays. */
static __device__ __noinline__ u32 attend_flash(machine m)
{
    const u64 policy = keep_policy();
    int row, end;
    find_share(m, row, end);
    if (thread_of(m) == 0)
        own().pending = 0;
    trace_input(m);
    if (own().att.now)
        append_rows(m);
    flash_unit u = unit_at_row(row, end);
    if (u.row < end)
        make_queries(m, u);
    consumer_barrier();
    while (u.row < end) {
        const flash_pass last = attend_unit(m, u, policy);
        const flash_unit next = unit_behind(u, end);
        if (next.row < end)
            make_queries(m, next);
        consumer_barrier();
        store_pass(m, u, last, policy);
        u = next;
    }
    return trace_starved_of(m);
}

/* The consumers' part, which is all. */
static __device__ __forceinline__ void consume_attend_rows(machine &m)
{
    wait_go(m);
    trace_set_starved(m, attend_flash(m));
}

#else

/* Of a kernel without: no task is of that family. */
static __device__ __forceinline__ void consume_attend_rows(machine &) {}

#endif

#endif
