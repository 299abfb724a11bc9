/*
 * Decode attention for short contexts. Each row is the only row of its sequence in this epoch and
 * attends to few positions. One consumer warp computes one row: all loads are issued at once, no
 * block barrier is needed, and the cache is read from global memory, not through KV buffers.
 *
 * The results are bitwise those of attention/flash.cuh, whatever task the row is in. There each
 * tile of positions belongs to another warp. Here one warp processes the tiles one after another
 * and adds them up in the same order. Each lane keeps its partial result for a tile in the memory
 * of partial results and KV buffers; no other lane reads it. consume_attend_rows chooses between
 * both paths.
 */
#ifndef MGL_DEVICE_ATTENTION_DECODE_ROW_CUH
#define MGL_DEVICE_ATTENTION_DECODE_ROW_CUH

#include "vm/cuda/device/attention/flash.cuh"

#if MGL_PANELS && MGL_ATTEND_ROWS

/* A lane's results of a tile for query l / 4: sums of two dimensions of each MMA, and the query's
 * maximum and sum. */
enum {
    DECODE_ROW_WORDS = (2 * FLASH_SUMS + 2) * 32, /* of a warp and a tile */
    DECODE_ROW_ROOM =
        (KV_PARTIAL_BYTES + KV_BUFFERS * KV_BUFFER_BYTES) / (MGL_WARPS * DECODE_ROW_WORDS * 4),
    DECODE_ROW_LIKE =
        MGL_WARPS < 4 ? MGL_WARPS : 4, /* tiles, each of which flash.cuh gives to another warp */
    /* a tile of 16 has room for 8 queries, of which the row's key takes one */
    DECODE_ROW_TILES = MGL_HEADS >= 8                      ? 0
                       : DECODE_ROW_ROOM < DECODE_ROW_LIKE ? DECODE_ROW_ROOM
                                                           : DECODE_ROW_LIKE,
    DECODE_ROW_POSITIONS = DECODE_ROW_TILES * TILE
};

static __device__ __forceinline__ int sequence_of(int row)
{
    return row_entry(row)[MGL_TABLE_SEQUENCE];
}

static __device__ __forceinline__ bool is_decode_row(int row, int rows)
{
    const int sequence = sequence_of(row);
    return (row == 0 || sequence_of(row - 1) != sequence) &&
           (row + 1 == rows || sequence_of(row + 1) != sequence) &&
           row_entry(row)[MGL_TABLE_POSITION] < DECODE_ROW_POSITIONS;
}

/* Whether all rows of a share are decode rows, and everything is read and written 16 bytes at a
 * time. Called by the whole warp. */
static __device__ __forceinline__ bool are_decode_rows(const machine &m, int row, int end)
{
    const attention &a = own().att;
    const mgl_device_operand &y = operand(m, MGL_OPERAND(attend_rows, y));
    bool decode_row = DECODE_ROW_TILES > 0 && is_whole(a.q) && is_whole(a.k_new) &&
                      is_whole(a.v_new) && y.paged && y.dtype != DTYPE_F32;
    for (int r = row + m.lane; decode_row && r < end; r += 32)
        decode_row = is_decode_row(r, rows_of(m));
    return __all_sync(0xFFFFFFFFu, decode_row);
}

/* Prefetches the rows' cached positions, which are of earlier epochs, into L2 before `start`, but
 * after the signal of the previous task: the fence of that signal would wait for the prefetches. */
static __device__ __forceinline__ void ask_decode_rows(const machine &m, int row, int end)
{
#if MGL_BULK_COPY
    const u32 task = own().begun[m.warp] - 1;
    while ((int)(load_shared_acquire(&own().signalled) - task) < 0 && !own().stop && !own().dead)
        ; /* each wait of the controller has a deadline */
    __syncwarp();
    for (int r = row + m.lane / 2; r < end; r += 16) {
        const int position = row_entry(r)[MGL_TABLE_POSITION];
        if (position > 0)
            prefetch_vectors(cache_row(m.lane % 2, sequence_of(r), 0), position * POSITION_BYTES);
    }
#endif
}

/* A row: the address of its sequence in the cache, and a lane's part of the row's own vectors as
 * MMA operands. */
struct decode_row_part {
    const u8 *keys, *values;       /* of position 0 */
    int past;                      /* positions in the cache */
    uint2 query[2][KEY_CHUNKS][2]; /* (part, chunk, half of the chunk): words of query l / 4 */
    uint4 key[KEY_CHUNKS], value[VALUE_CHUNKS];
};

static __device__ __forceinline__ const u8 *decode_row_chunk(const u8 *first, int which,
                                                             int position, int chunk)
{
    return first + position * POSITION_BYTES +
           (SWIZZLED ? mgl_kv_chunk(which, position, chunk) : chunk) * 16;
}

/* Loads the keys and values of the tile of positions at `from` that are in the cache; the others
 * are 0. */
static __device__ __forceinline__ void ask_tile(const machine &m, const decode_row_part &row,
                                                int from, flash_tile &t)
{
    t = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int p = from + key_position(m, i);
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
            if (p < row.past)
                load_vector(&t.keys[i][c], decode_row_chunk(row.keys, 0, p, m.lane % 4 + 4 * c));
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int p = from + value_position(m, i);
#pragma unroll
        for (int c = 0; c < VALUE_CHUNKS; c++)
            if (p < row.past)
                load_vector(&t.values[i][c],
                            decode_row_chunk(row.values, 1, p, m.lane / 4 + 8 * c));
    }
}

static __device__ __forceinline__ uint4 shuffled(const uint4 &x, int lane)
{
    return make_uint4(__shfl_sync(0xFFFFFFFFu, x.x, lane), __shfl_sync(0xFFFFFFFFu, x.y, lane),
                      __shfl_sync(0xFFFFFFFFu, x.z, lane), __shfl_sync(0xFFFFFFFFu, x.w, lane));
}

static __device__ __forceinline__ float4 floats_of(const uint4 &x)
{
    return make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z),
                       __uint_as_float(x.w));
}

/* Loads and rotates the row's own vectors. The four lanes after the lanes of the queries hold the
 * key, which is rotated in the same way. */
static __device__ __forceinline__ void make_decode_row(const machine &m, int r,
                                                       decode_row_part &row)
{
    const attention &a = own().att;
    const int head = m.lane / 4;
    const bool is_query = head < MGL_HEADS;
    tile_lane l;
    place_lane(m, l);
    const u8 *at =
        (is_query ? element_of(a.q, r, head * HEAD_DIM) : element_of(a.k_new, r, 0)) + l.d_key * 4;
    key_octets o;
    octet v[VALUE_CHUNKS];
    uint4 rope[PAIRS][4];
    const u8 *angle = (const u8 *)(rope_row(r) + l.d_key);
#pragma unroll
    for (int i = 0; i < 4 * PAIRS; i++) /* all loads are issued at once */
        load_vector(&rope[i / 4][i % 4],
                    angle + i / 4 * 128 + i % 2 * 16 + i / 2 % 2 * (HALF_DIM * 4));
#pragma unroll
    for (int c = 0; c < KEY_CHUNKS; c++) {
        load_vector(&o.x[c].first, at + c * 128);
        load_vector(&o.x[c].second, at + c * 128 + 16);
    }
#pragma unroll
    for (int c = 0; c < VALUE_CHUNKS; c++)
        v[c] = load_whole(a.v_new, r, 64 * c + l.d_value);
    const float *g = NULL;
    if (MGL_QK_NORM)
        g = is_query ? norm_weights(m, MGL_OPERAND(attend_rows, q_g))
                     : norm_weights(m, MGL_OPERAND(attend_rows, k_g));
    const lane_norm norm = norm_of(l, o, g);
    float x[8], y[8];
#pragma unroll
    for (int c = 0; c < PAIRS; c++) {
        const lane_rope turn = {{floats_of(rope[c][0]), floats_of(rope[c][1])},
                                {floats_of(rope[c][2]), floats_of(rope[c][3])}};
        rotate_chunks(o, c, norm, turn, x, y);
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const uint4 first = query_words(x, part), second = query_words(y, part);
            row.query[part][c][0] = make_uint2(first.x, first.y);
            row.query[part][c][1] = make_uint2(first.z, first.w);
            row.query[part][c + PAIRS][0] = make_uint2(second.x, second.y);
            row.query[part][c + PAIRS][1] = make_uint2(second.z, second.w);
        }
        row.key[c] = shuffled(pack_octet(x), MGL_HEADS * 4 + m.lane % 4);
        row.key[c + PAIRS] = shuffled(pack_octet(y), MGL_HEADS * 4 + m.lane % 4);
    }
#pragma unroll
    for (int c = 0; c < VALUE_CHUNKS; c++) {
        unpack_octet(v[c], x);
        row.value[c] = pack_octet(x);
    }
}

/* Scores of the tile, computed like score_tile. Scores of positions after the row's own are
 * -infinity. */
static __device__ __forceinline__ void score_decode_row(const machine &m,
                                                        const decode_row_part &row, int from,
                                                        const flash_tile &t, flash_scores &scores)
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
            for (int part = 0; part < 2; part++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const uint2 &a = row.query[part][c][j];
                    const uint4 &k = t.keys[i][c];
                    mma_tile(part ? rest[i] : scores[i], a.x, 0, a.y, 0, j ? k.z : k.x,
                             j ? k.w : k.y);
                }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float &score = scores[i / 2][i % 2];
        score += rest[i / 2][i % 2];
        if (m.lane % 4 * 2 + i % 2 + i / 2 * 8 > row.past - from)
            score = -INFINITY;
    }
}

/* Where a lane keeps its results of a tile: DECODE_ROW_WORDS for the warp, with a stride of 32
 * words between a lane's words. */
static __device__ __forceinline__ float *decode_row_words(const machine &m, int tile)
{
    return (float *)activation_buffer() + (m.warp * DECODE_ROW_TILES + tile) * DECODE_ROW_WORDS +
           m.lane;
}

/* Processes the tile of positions at `from`; the lane's results go to `to`. */
static __device__ __forceinline__ void attend_decode_row_tile(const machine &m,
                                                              const decode_row_part &row, int from,
                                                              flash_tile &t, float *to)
{
    flash_state<1> s;
    flash_scores scores;
    flash_weights weights;
    empty_state_of(s);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++)
            if (from + key_position(m, i) == row.past)
                t.keys[i][c] = row.key[c];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int c = 0; c < VALUE_CHUNKS; c++)
            if (from + value_position(m, i) == row.past)
                t.values[i][c] = row.value[c];
    score_decode_row(m, row, from, t, scores);
    weigh_tile(scores, 0, s, weights);
    accumulate_values(t, &weights, s);
#pragma unroll
    for (int i = 0; i < FLASH_SUMS; i++) {
        to[2 * i * 32] = s.sums[0][i][0];
        to[(2 * i + 1) * 32] = s.sums[0][i][1];
    }
    to[2 * FLASH_SUMS * 32] = s.max[0][0];
    to[(2 * FLASH_SUMS + 1) * 32] = query_sum(s.sum[0][0]);
}

/* Writes the outputs of a row that has so many tiles, computed like find_scales, write_pass and
 * store_sums. */
static __device__ __forceinline__ void write_decode_row(const machine &m, int r, int tiles)
{
    enum { TOP = 2 * FLASH_SUMS * 32, TOTAL = TOP + 32 };
    const paged_view y = paged_view_of<MGL_ATTENDED>(m, operand(m, MGL_OPERAND(attend_rows, y)));
    const float *from = decode_row_words(m, 0);
    float top = -INFINITY, total = 0.0f, sums[FLASH_SUMS][2] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++)
        top = fmaxf(top, from[tile * DECODE_ROW_WORDS + TOP]);
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++)
        total = fmaf(from[tile * DECODE_ROW_WORDS + TOTAL],
                     power_of_2(from[tile * DECODE_ROW_WORDS + TOP] - top), total);
    const float inverse = reciprocal(total);
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++, from += DECODE_ROW_WORDS) {
        const float scale = power_of_2(from[TOP] - top) * inverse;
#pragma unroll
        for (int i = 0; i < 2 * FLASH_SUMS; i++) /* no fused multiply-add, to match flash.cuh */
            sums[i / 2][i % 2] = __fadd_rn(sums[i / 2][i % 2], __fmul_rn(from[i * 32], scale));
    }
    if (m.lane / 4 >= MGL_HEADS)
        return;
#pragma unroll
    for (int c = 0; c < VALUE_CHUNKS; c++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            u32 words[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                words[i] = pack_pair(y.dtype, sums[8 * c + 2 * i][j], sums[8 * c + 2 * i + 1][j]);
            *(uint4 *)element_of(y, r, m.lane / 4 * HEAD_DIM + c * 64 + m.lane % 4 * 16 + 8 * j) =
                make_uint4(words[0], words[1], words[2], words[3]);
            delay();
        }
}

static __device__ __forceinline__ void attend_row(const machine &m, int r)
{
    decode_row_part row;
    flash_tile t;
    row.keys = cache_row(0, sequence_of(r), 0);
    row.values = cache_row(1, sequence_of(r), 0);
    row.past = row_entry(r)[MGL_TABLE_POSITION];
    ask_tile(m, row, 0, t);
    make_decode_row(m, r, row);
    float *to = decode_row_words(m, 0);
#pragma unroll 1
    for (int from = 0; from <= row.past; from += TILE, to += DECODE_ROW_WORDS) {
        attend_decode_row_tile(m, row, from, t, to);
        if (from + TILE <= row.past)
            ask_tile(m, row, from + TILE, t);
    }
    write_decode_row(m, r, row.past / TILE + 1);
}

/* All rows of a task. Out of line, because it needs more registers than the loop. */
FAR void attend_decode_row();

#if IN_OBJECT(DECODE_ROW)

FAR void attend_decode_row()
{
    const machine m = machine_now();
    int first, end;
    find_share(m, first, end);
    if (thread_of(m) == 0)
        own().pending = 0;
    trace_input(m);
    const bool switched = wait_switched(); /* otherwise the memory still belongs to the first
                                              list */
#pragma unroll 1
    for (int r = first + m.warp; switched && r < end; r += MGL_WARPS)
        attend_row(m, r);
    if (own().att.now)
        append_rows(m);
    end_preissued(m);
}

#endif

/* The consumers' part, which is the whole task. Returns false if it did not begin. */
static __device__ __forceinline__ bool consume_attend_rows(machine &m)
{
    int row, end;
    find_share(m, row, end);
    const bool decode_row = are_decode_rows(m, row, end);
    if (decode_row && m.warp == 0)
        ask_decode_rows(m, row, end);
    if (!wait_preissued_start(m))
        return false;
    if (decode_row)
        attend_decode_row();
    else
        attend_flash(m);
    return true;
}

#endif

#endif
