/*
 * FlashAttention of the second list: a task has a share of the rows of an epoch, and loads the keys
 * and values of a sequence once for all its rows of that sequence, times the query heads of the kv
 * head. Both MMA operands are full: 16 queries by 8 positions, and weights of 16 queries by 8
 * dimensions. (Rows of queries per warp, softmax and weights in registers: Dao, "FlashAttention-2",
 * arXiv 2307.08691.)
 *
 *   query   one query head of one row
 *   tile    of 16 queries, or of 16 positions
 *   unit    up to FLASH_TILES tiles of queries of one sequence's rows
 *
 * All consumer warps process unit after unit. own().partial holds the unit's rotated queries as
 * operands in two parts: rounded, and the rounding error. Each warp computes the sums of all
 * queries over every MGL_WARPS-th tile of positions. Then the sums of the warps are added up, the
 * first warp's first; consumer barriers order the exchange in the activation buffer. Tiles of
 * positions begin at multiples of 16, so the results of a row are bitwise equal in every epoch and
 * with any other rows.
 *
 * Positions of earlier epochs are in the cache. In a program with panels they come through KV
 * buffers (attention/kv_buffers.cuh), otherwise straight into registers. Each warp computes the
 * keys and values of this epoch's rows from the exchange for itself, rounded like the cache: no
 * task waits for the task that appends. A row attends to the rows of its sequence up to itself
 * (causal mask).
 *
 * In lane l, an MMA of scores has words of the 16 bytes at dimensions 32 c + 8 (l % 4) of queries l
 * / 4 and l / 4 + 8, and of position l / 4. Which dimensions these are does not matter, because
 * both operands have the same. The scores have the layout that the weights need as an operand,
 * position for position. Values are those of positions 2 (l % 4) + {0, 1, 8, 9}, dimensions 64 c +
 * 8 (l / 4) and the next 7: column l / 4 of MMA i is dimension i of the 8.
 */
#ifndef MGL_DEVICE_ATTENTION_FLASH_CUH
#define MGL_DEVICE_ATTENTION_FLASH_CUH

#include "vm/cuda/device/attention/flash_vectors.cuh"
#include "vm/cuda/device/attention/kv_buffers.cuh"

#if MGL_ATTEND_ROWS

enum {
    FLASH_SUMS = 8 * VALUE_CHUNKS,   /* MMAs of values for a tile of queries */
    PARTIAL_BYTES = MGL_WARPS * 256, /* bytes of one sum of half a tile, of all warps */
#if MGL_PANELS
    PARTIAL_ROOM = KV_BUFFERS > 0 ? KV_PARTIAL_BYTES : MGL_ACTIVATION_BYTES
#else
    PARTIAL_ROOM = MGL_ACTIVATION_BYTES
#endif
};
static_assert(TILED && HEAD_DIM % 64 == 0 && 2 * FLASH_TILES * 2 * PARTIAL_BYTES <= PARTIAL_ROOM &&
                  PARTIAL_ROOM <= MGL_ACTIVATION_BYTES &&
                  FLASH_WORDS + MGL_WARPS * FLASH_QUERIES * 2 <= PARTIALS,
              "variants.def says so");

/* ---- a unit's positions -----------------------------------------------------------------------
 *
 * HALVES: the number of half tiles for which a unit may have queries. The case 1 (a single row) has
 * its own code, so that no empty half is computed. */
template <int HALVES> struct flash_shape {
    enum {
        TILES = (HALVES + 1) / 2,
        SIDES = HALVES > 1 ? 2 : 1,         /* halves of a tile */
        HELD = TILES == 1 && HEAD_DIM <= 64 /* the queries fit the registers */
    };
};

/* A warp's online softmaxes of a unit: of queries l / 4 and l / 4 + 8 of each tile. Maxima and
 * scores are exponents of 2. */
template <int HALVES> struct flash_state {
    enum { TILES = flash_shape<HALVES>::TILES, SIDES = flash_shape<HALVES>::SIDES };
    float max[TILES][SIDES];
    float sum[TILES][SIDES]; /* over this lane's positions */
    float sums[TILES][FLASH_SUMS][4];
};

template <int HALVES> static __device__ __forceinline__ void empty_state_of(flash_state<HALVES> &s)
{
    s = {};
#pragma unroll
    for (int tile = 0; tile < flash_shape<HALVES>::TILES; tile++)
#pragma unroll
        for (int h = 0; h < flash_shape<HALVES>::SIDES; h++)
            s.max[tile][h] = -INFINITY;
}

/* Scores of a tile of queries and a tile of positions, in the layout of the MMA's result. */
typedef float flash_scores[2][4];

/* Weights of a tile of positions as operands in two parts: rounded, and the rounding error. */
typedef u32 flash_weights[2][4];

/* The lane's operands of a unit's queries in registers, if they fit. */
template <int HALVES> struct flash_queries {
    uint4 at[flash_shape<HALVES>::HELD ? 4 * KEY_CHUNKS : 1];
};

template <int HALVES>
static __device__ __forceinline__ void hold_queries(const machine &m, flash_queries<HALVES> &q)
{
    if (flash_shape<HALVES>::HELD)
#pragma unroll
        for (int n = 0; n < 4 * KEY_CHUNKS; n++)
            q.at[n] = query_operands(0, n / 2 / KEY_CHUNKS, n / 2 % KEY_CHUNKS, n % 2)[m.lane];
}

template <int HALVES>
static __device__ __forceinline__ uint4 held_query(const machine &m, const flash_queries<HALVES> &q,
                                                   int tile, int part, int c, int j)
{
    return flash_shape<HALVES>::HELD ? q.at[(part * KEY_CHUNKS + c) * 2 + j]
                                     : query_operands(tile, part, c, j)[m.lane];
}

/* Computes the scores of one tile of queries. Each part has its own sums, which halves the length
 * of the chains of MMAs. */
template <int HALVES>
static __device__ __forceinline__ void score_tile(const machine &m, const flash_queries<HALVES> &q,
                                                  int tile, const flash_tile &t,
                                                  flash_scores &scores)
{
    flash_scores rest = {};
#pragma unroll
    for (int i = 0; i < 8; i++)
        scores[i / 4][i % 4] = 0.0f;
#pragma unroll
    for (int c = 0; c < KEY_CHUNKS; c++)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int part = 0; part < 2; part++) {
                const uint4 a = held_query(m, q, tile, part, c, j);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const uint4 &k = t.keys[i][c];
                    mma_tile(part ? rest[i] : scores[i], a.x, a.y, a.z, a.w, j ? k.z : k.x,
                             j ? k.w : k.y);
                }
            }
#pragma unroll
    for (int i = 0; i < 8; i++)
        scores[i / 4][i % 4] += rest[i / 4][i % 4];
}

/* The maximum over the four lanes that have scores of one query. */
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

/* How many positions from `from` on query `query` of the unit may attend to. */
static __device__ __forceinline__ int limit_of(const flash_unit &u, const flash_rows &rows,
                                               int from, int query)
{
    const int row = u.row + (u.first + query) / MGL_HEADS;
    return rows.past + row + 1 - rows.first - from;
}

/* Causal mask: sets the scores of positions, from `from` on, that a query does not attend to, to
 * -infinity. */
template <int HALVES>
static __device__ __forceinline__ void limit_scores(const machine &m, const flash_unit &u,
                                                    const flash_rows &rows, int from, int tile,
                                                    flash_scores &scores)
{
#pragma unroll
    for (int h = 0; h < flash_shape<HALVES>::SIDES; h++) {
        const int limit = limit_of(u, rows, from, tile * TILE + m.lane / 4 + 8 * h);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (m.lane % 4 * 2 + i % 2 + i / 2 * 8 >= limit)
                scores[i / 2][2 * h + i % 2] = -INFINITY;
    }
}

/* Adds the scores of a tile of queries to its online softmax, and computes their weights. */
template <int HALVES>
static __device__ __forceinline__ void weigh_tile(const flash_scores &scores, int tile,
                                                  flash_state<HALVES> &s, flash_weights &weights)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        weights[i / 4][i % 4] = 0;
#pragma unroll
    for (int h = 0; h < flash_shape<HALVES>::SIDES; h++) {
        float top = s.max[tile][h];
#pragma unroll
        for (int i = 0; i < 4; i++)
            top = fmaxf(top, scores[i / 2][2 * h + i % 2]);
        top = query_max(top);
        const float from = top == -INFINITY ? 0.0f : top, keep = power_of_2(s.max[tile][h] - from);
        s.max[tile][h] = top;
        s.sum[tile][h] *= keep;
#pragma unroll
        for (int i = 0; i < FLASH_SUMS; i++) {
            s.sums[tile][i][2 * h] *= keep;
            s.sums[tile][i][2 * h + 1] *= keep;
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float first = power_of_2(scores[i][2 * h] - from);
            const float second = power_of_2(scores[i][2 * h + 1] - from);
            const u32 word = pack_pair(MGL_CACHE, first, second);
            s.sum[tile][h] += first + second;
            weights[0][2 * i + h] = word;
            weights[1][2 * i + h] =
                pack_pair(MGL_CACHE, first - low_half(word), second - high_half(word));
        }
    }
}

/* Adds a tile of positions at `from` to the softmaxes of all tiles of queries and computes the
 * weights of its scores. WHOLE: all of its positions are of earlier epochs. */
template <bool WHOLE, int HALVES>
static __device__ __forceinline__ void
weigh_keys(const machine &m, const flash_unit &u, const flash_rows &rows,
           const flash_queries<HALVES> &q, int from, const flash_tile &t, flash_state<HALVES> &s,
           flash_weights *weights)
{
#pragma unroll
    for (int tile = 0; tile < flash_shape<HALVES>::TILES; tile++) {
        flash_scores scores;
        score_tile(m, q, tile, t, scores);
        if (!WHOLE)
            limit_scores<HALVES>(m, u, rows, from, tile, scores);
        weigh_tile(scores, tile, s, weights[tile]);
    }
}

static __device__ __forceinline__ u32 word_of(const uint4 &words, int i)
{
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

/* Adds a tile's values, multiplied by their weights. */
template <int HALVES>
static __device__ __forceinline__ void
accumulate_values(const flash_tile &t, const flash_weights *weights, flash_state<HALVES> &s)
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
        for (int tile = 0; tile < flash_shape<HALVES>::TILES; tile++) {
#pragma unroll
            for (int part = 0; part < 2; part++) {
                const u32(&w)[4] = weights[tile][part];
                mma_tile(s.sums[tile][i], w[0], w[1], w[2], w[3], low, high);
            }
        }
    }
}

enum { FLASH_STEP = MGL_WARPS * TILE }; /* distance of a warp's consecutive tiles of positions */

#if !MGL_PANELS

/* Processes the warp's tiles of positions, with loads to registers. The loads of the next tile are
 * in flight during the current one. The first tile is loaded before there are sums, so all at once.
 */
template <int HALVES>
static __device__ __forceinline__ void attend_positions(machine &m, const flash_unit &u,
                                                        flash_state<HALVES> &s)
{
    const flash_reach reach = reach_of(u);
    const flash_rows &rows = reach.rows;
    const int sequence = reach.sequence, end = reach.end, first = m.warp * TILE;
    flash_queries<HALVES> q;
    flash_tile t = {};
    if (first < min(end, rows.past)) {
        find_keys(m, sequence, first, rows.past, t);
        find_values(m, sequence, first, rows.past, t);
    }
    if (first < end && first + TILE > rows.past) {
        make_keys<2>(m, rows, first, t);
        make_values(m, rows, first, t);
    }
    hold_queries(m, q);
#pragma unroll 1
    for (int from = first; from < end; from += FLASH_STEP) {
        const int next = from + FLASH_STEP;
        const bool past = next < end && next < rows.past;
        const bool now = next < end && next + TILE > rows.past;
        flash_weights weights[flash_shape<HALVES>::TILES];
        weigh_keys<false>(m, u, rows, q, from, t, s, weights);
        if (past)
            find_keys(m, sequence, next, rows.past, t);
        accumulate_values(t, weights, s);
        if (past)
            find_values(m, sequence, next, rows.past, t);
        if (now) { /* at this point no weights and values take registers */
            make_keys<1>(m, rows, next, t);
            make_values(m, rows, next, t);
        }
    }
}

#else

/* Address of chunk `chunk`, 16 bytes, of position `position` in its KV buffer. */
static __device__ __forceinline__ const uint4 *kv_chunk(u32 kv_index, int which, int position,
                                                        int chunk)
{
    if (SWIZZLED)
        chunk = mgl_kv_chunk(which, position, chunk);
    return (const uint4 *)(kv_buffer(kv_index, which) +
                           position % KV_BUFFER_POSITIONS * POSITION_BYTES) +
           chunk;
}

/* Loads the keys of the tile at `from` that are before `end`; the others are 0. In a WHOLE tile all
 * are before `end`. */
template <bool WHOLE>
static __device__ __forceinline__ void fetch_keys(const machine &m, u32 kv_index, int from, int end,
                                                  flash_tile &t)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int p = from + key_position(m, i);
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) {
            if (!WHOLE)
                t.keys[i][c] = make_uint4(0, 0, 0, 0);
            if (WHOLE || p < end)
                t.keys[i][c] = *kv_chunk(kv_index, 0, p, m.lane % 4 + 4 * c);
        }
    }
}

template <bool WHOLE>
static __device__ __forceinline__ void fetch_values(const machine &m, u32 kv_index, int from,
                                                    int end, flash_tile &t)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int p = from + value_position(m, i);
#pragma unroll
        for (int c = 0; c < VALUE_CHUNKS; c++) {
            if (!WHOLE)
                t.values[i][c] = make_uint4(0, 0, 0, 0);
            if (WHOLE || p < end)
                t.values[i][c] = *kv_chunk(kv_index, 1, p, m.lane / 4 + 8 * c);
        }
    }
}

/* A warp's place among a unit's KV buffers: `first` is the unit's first buffer, `at` the current
 * one. */
struct flash_place {
    u32 first, at;
};

/* Processes the tile of positions at `from`. WHOLE: all positions are in the cache; else some or
 * all are of this epoch. */
template <int HALVES, bool WHOLE>
static __device__ __forceinline__ void
attend_tile(machine &m, const flash_unit &u, const flash_rows &rows, const flash_queries<HALVES> &q,
            int from, flash_place &place, flash_state<HALVES> &s)
{
    const bool past = WHOLE || from < rows.past;
    const u32 kv_index = (u32)from / KV_BUFFER_POSITIONS;
    flash_tile t;
    flash_weights weights[flash_shape<HALVES>::TILES];
    if (past) {
        pass_kv_buffers(m, place.at, place.first + kv_index);
        wait_kv_buffer(m, place.at);
    }
    fetch_keys<WHOLE>(m, place.at, from, rows.past, t); /* loads nothing if the tile has no
                                                           cached position */
    if (!WHOLE)
        make_keys<1>(m, rows, from, t);
    weigh_keys<WHOLE>(m, u, rows, q, from, t, s, weights);
    fetch_values<WHOLE>(m, place.at, from, rows.past, t);
    if (!WHOLE)
        make_values(m, rows, from, t);
    /* the registers hold all values of short heads, but not of long ones */
    const bool done = past && (u32)(from + FLASH_STEP) / KV_BUFFER_POSITIONS != kv_index;
    if (VALUE_CHUNKS == 1 && done)
        free_kv_buffer(place.at++);
    accumulate_values(t, weights, s);
    if (VALUE_CHUNKS > 1 && done)
        free_kv_buffer(place.at++);
}

/* Processes the warp's tiles of positions, through KV buffers. */
template <int HALVES>
static __device__ __forceinline__ void attend_positions(machine &m, const flash_unit &u,
                                                        flash_state<HALVES> &s)
{
    const flash_reach reach = reach_of(u);
    const flash_rows &rows = reach.rows;
    const u32 first = own().kv_buffer_at[m.warp];
    flash_place place = {first, first};
    flash_queries<HALVES> q;
    int from = m.warp * TILE;
    hold_queries(m, q);
#pragma unroll 1
    for (; from + TILE <= rows.past; from += FLASH_STEP)
        attend_tile<HALVES, true>(m, u, rows, q, from, place, s);
#pragma unroll 1
    for (; from < reach.end; from += FLASH_STEP)
        attend_tile<HALVES, false>(m, u, rows, q, from, place, s);
    pass_kv_buffers(m, place.at, first + kv_buffers_of(rows.past));
    __syncwarp();
    own().kv_buffer_at[m.warp] = place.at; /* every lane stores, so each lane reads its own store
                                              later */
}

#endif

/* ---- results ----------------------------------------------------------------------------------
 */

/* Maximum and sum of query `query`, of one warp. */
static __device__ __forceinline__ float2 *warp_top(int warp, int query)
{
    return (float2 *)(own().partial + FLASH_WORDS) + warp * FLASH_QUERIES + query;
}

/* Where warp `warp` writes sum i of half a tile, in a pass of `count` sums: two floats per lane, 32
 * floats apart. */
static __device__ __forceinline__ float *warp_pass_sums(int warp, int half, int i, int count)
{
    return (float *)activation_buffer() + ((half * count + i) * MGL_WARPS + warp) * 64;
}

/* How many sums of so many halves all warps write at once: 8, 4 or 2. */
static __device__ __forceinline__ int left_at_once(int halves)
{
    int sums = 8;
    while (sums > 2 && halves * sums * PARTIAL_BYTES > PARTIAL_ROOM)
        sums /= 2;
    return sums;
}

template <int HALVES>
static __device__ __forceinline__ void write_tops(const machine &m, const flash_state<HALVES> &s)
{
#pragma unroll
    for (int tile = 0; tile < flash_shape<HALVES>::TILES; tile++) {
#pragma unroll
        for (int h = 0; h < flash_shape<HALVES>::SIDES; h++) {
            const float sum = query_sum(s.sum[tile][h]);
            if (m.lane % 4 == 0)
                *warp_top(m.warp, tile * TILE + m.lane / 4 + 8 * h) =
                    make_float2(s.max[tile][h], sum);
        }
    }
}

/* The factors of a warp's sums. The scaled sums of all warps only have to be added up. */
template <int HALVES> struct flash_scales {
    float of[flash_shape<HALVES>::TILES][flash_shape<HALVES>::SIDES];
};

template <int HALVES>
static __device__ __forceinline__ void find_scales(const machine &m, const flash_state<HALVES> &s,
                                                   flash_scales<HALVES> &scales)
{
#pragma unroll
    for (int tile = 0; tile < flash_shape<HALVES>::TILES; tile++) {
#pragma unroll
        for (int h = 0; h < flash_shape<HALVES>::SIDES; h++) {
            const int query = tile * TILE + m.lane / 4 + 8 * h;
            float top = -INFINITY, total = 0.0f;
#pragma unroll 4
            for (int w = 0; w < MGL_WARPS; w++)
                top = fmaxf(top, warp_top(w, query)->x);
#pragma unroll 4
            for (int w = 0; w < MGL_WARPS; w++) {
                const float2 left = *warp_top(w, query);
                total = fmaf(left.y, power_of_2(left.x - top), total);
            }
            scales.of[tile][h] = power_of_2(s.max[tile][h] - top) * reciprocal(total);
        }
    }
}

/* A pass: `count` of the sums from number `first` on. */
struct flash_pass {
    int first, count;
};

/* Writes the warp's sums of a pass. */
template <int HALVES>
static __device__ __forceinline__ void
write_pass(const machine &m, int halves, const flash_pass &pass, const flash_state<HALVES> &s,
           const flash_scales<HALVES> &scales)
{
#pragma unroll
    for (int i = 0; i < FLASH_SUMS; i++) {
        const int n = i - pass.first;
        if (n < 0 || n >= pass.count)
            continue;
#pragma unroll
        for (int half = 0; half < HALVES; half++) {
            if (half >= halves)
                break;
            float *to = warp_pass_sums(m.warp, half, n, pass.count) + m.lane;
            to[0] = s.sums[half / 2][i][half % 2 * 2] * scales.of[half / 2][half % 2];
            to[32] = s.sums[half / 2][i][half % 2 * 2 + 1] * scales.of[half / 2][half % 2];
        }
    }
}

/* Adds up sums i and i + 1 of a pass over the warps, for half a tile, and stores the outputs. */
static __device__ __forceinline__ void store_sums(const machine &m, const flash_unit &u,
                                                  const flash_pass &pass, int half, int i,
                                                  u64 policy)
{
    const paged_view y = paged_view_of<MGL_ATTENDED>(m, operand(m, MGL_OPERAND(attend_rows, y)));
    float sums[2][2] = {};
#pragma unroll 4
    for (int w = 0; w < MGL_WARPS; w++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sums[j / 2][j % 2] +=
                warp_pass_sums(w, half, i + j / 2, pass.count)[j % 2 * 32 + m.lane];
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

/* Keeps the current unit, and the row at which the task's share ends, in shared memory, for each
 * warp separately. Beside the sums of a unit the compiler would keep these values in local memory.
 */
static __device__ __forceinline__ void keep_unit(const flash_unit &u, int end)
{
    volatile int *kept = own().unit_at[thread_index() / 32];
    __syncwarp();
    kept[0] = u.row; /* every lane stores, so each lane reads its own store later */
    kept[1] = u.end;
    kept[2] = u.first;
    kept[3] = end;
}

static __device__ __forceinline__ flash_unit kept_unit()
{
    const volatile int *kept = own().unit_at[thread_index() / 32];
    return {kept[0], kept[1], kept[2]};
}

static __device__ __forceinline__ int kept_end()
{
    return own().unit_at[thread_index() / 32][3];
}

/* Processes one unit. The caller adds up the last pass. */
template <int HALVES>
static __device__ __forceinline__ flash_pass attend_halves(machine &m, const flash_unit &u,
                                                           u64 policy)
{
    const int halves = halves_of(u);
    flash_state<HALVES> s;
    flash_scales<HALVES> scales;
    empty_state_of(s);
    attend_positions(m, u, s);
    write_tops(m, s);
    consumer_barrier(); /* after this barrier no warp reads the queries */
    find_scales(m, s, scales);
    for (flash_pass pass = {0, left_at_once(halves)};; pass.first += pass.count) {
        write_pass(m, halves, pass, s, scales);
        if (pass.first + pass.count == FLASH_SUMS)
            return pass;
        consumer_barrier();
        store_pass(m, u, pass, policy);
        consumer_barrier();
    }
}

static __device__ __forceinline__ flash_pass attend_unit(machine &m, const flash_unit &u,
                                                         u64 policy)
{
    const int halves = halves_of(u);
    if (halves == 1)
        return attend_halves<1>(m, u, policy);
    if (FLASH_TILES == 1 || halves == 2)
        return attend_halves<2>(m, u, policy);
    return attend_halves<2 * FLASH_TILES>(m, u, policy);
}

/* All units of a task. Out of line, because it needs more registers than the loop. The queries of
 * the next unit are made when those of the current one are not needed any more and its sums have
 * left the registers. */
FAR void attend_flash(machine m);

#if IN_OBJECT(FLASH)

FAR void attend_flash(machine m)
{
    int row, end;
    find_share(m, row, end);
    if (thread_of(m) == 0)
        own().pending = 0;
    trace_input(m);
    touch_rows(m, row, end);
    if (own().att.now)
        append_rows(m);
    keep_unit(unit_at_row(row, end), end);
    if (kept_unit().row < kept_end())
        make_queries(m, kept_unit());
    consumer_barrier();
    while (kept_unit().row < kept_end()) {
        const flash_pass last = attend_unit(m, kept_unit(), keep_policy());
        const flash_unit u = kept_unit();
        keep_unit(unit_behind(u, kept_end()), kept_end());
        if (kept_unit().row < kept_end())
            make_queries(m, kept_unit());
        consumer_barrier();
        store_pass(m, u, last, keep_policy());
    }
    end_preissued(m);
}

#endif

#if !MGL_PANELS /* kernels with panels use attention/decode_row.cuh */

/* The consumers' part, which is the whole task. Returns false if it did not begin. */
static __device__ __forceinline__ bool consume_attend_rows(machine &m)
{
    if (!wait_preissued_start(m))
        return false;
    attend_flash(m);
    return true;
}

#endif

#else

/* For a kernel without this attention: it has no task of that family. */
static __device__ __forceinline__ bool consume_attend_rows(machine &)
{
    return false;
}

#endif

#endif
