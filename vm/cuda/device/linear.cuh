/*
 * Products with streamed weights: y[r, o] = sum over k of x[r, k] W[o, k], for the ops that have a
 * tape. The weights lie in row groups of 8 rows x k blocks of 64 bytes; of a block, lane l holds the
 * 16 bytes of row l / 4 and quarter l % 4, so a block is one 16-byte load a lane.
 *
 * Consumer warp w has k blocks [w S, (w + 1) S) of every row group, S = ceil(blocks / W), which stand on
 * the tape so that each page has some for every warp (mgl_block_place): of the input it needs that run
 * alone, which it normalises (but for 1 / RMS, a factor that the epilogue applies)
 * and rounds to the weights' dtype into its own part of the stage. Rows that do not fit the stage are
 * read where they are.
 *
 * 16-bit weights: tensor cores, mma.m16n8k16 with f32 sums. The weights are the B operand (8 weight rows
 * are its 8 columns), the activation rows the A operand; up to 16 of them cost the same. The order of k
 * inside a block is free, since both sides have the same: a lane's 16 bytes are the B operands of two
 * MMAs as they lie, and the 16 bytes of activation row l / 4 at the same columns the A operands. The
 * activations of a short run (HELD blocks or less) stay in registers over all row groups.
 * Inputs that 16 bits do not hold (normalised ones, and f32 exchange) are split into two parts, x = high +
 * low, each rounded to 16 bits: 16 bits of mantissa and more. The low parts of 8 rows are the A operand's
 * other 8 rows, so they cost nothing but registers.
 * f32 weights: one fused multiply-add a product.
 *
 * Each warp leaves its sums of a row group in a slot (warp, row, 8), and the epilogue adds the warps'
 * up, always in the same order: a row's result does not depend on what else is in the epoch.
 */
#ifndef MGL_DEVICE_LINEAR_CUH
#define MGL_DEVICE_LINEAR_CUH

#include "vm/cuda/device/exchange.cuh"
#include "vm/cuda/device/ring.cuh"

enum {
    VECTOR = weight_format::VECTOR, /* columns in 16 bytes */
    BLOCK_COLUMNS = 4 * VECTOR,
    HELD = 16,    /* blocks of a run whose activations stay in registers */
    HELD_LOW = 8, /* and whose low parts do too */
    AHEAD = 4     /* polls on their way at once, of different words */
};

static __device__ __forceinline__ int mapped(const input &in, int j)
{
    return in.map ? in.map[j] : j;
}

/* Rows that a slot has room for: 1, 8 or 16. */
static __device__ __forceinline__ int slot_rows(int count)
{
    return MOST_ROWS == 1 || count <= 1 ? 1 : MOST_ROWS == 8 || count <= 8 ? 8 : 16;
}

/* The run of k blocks of warp w: the first, and how many. */
static __device__ __forceinline__ int run_of(int kblocks, int w, int *count)
{
    int each = (kblocks + MGL_WARPS - 1) / MGL_WARPS, first = w * each;
    *count = max(0, min(each, kblocks - first));
    return first;
}

/* Whether row groups of so many blocks begin with pages, and warps share pages evenly. */
static __device__ __forceinline__ constexpr bool is_even(int kblocks)
{
    return kblocks % MGL_WARPS == 0 && PAGE_BLOCKS % (2 * MGL_WARPS) == 0 &&
           kblocks % PAGE_BLOCKS == 0;
}

static __device__ __forceinline__ constexpr int blocks_of(int columns)
{
    return (columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
}

/* Makes own().in from operand 0 and, if has_norm, the norm's weight, operand 1; all rows, or those that
 * `map` names. One lane of the epilogue. */
static __device__ __forceinline__ void prepare_input(const machine &m, bool has_norm, int count,
                                                     const int *map)
{
    const mgl_device_operand &x = operand(m, 0);
    input &in = own().in;
    int columns = x.count[1], kblocks = blocks_of(columns);
    bool low = VECTOR == 8 && (has_norm || x.dtype == DTYPE_F32);
    /* rows 64 bytes apart modulo 128: lanes of two rows then load from different banks */
    int row_bytes = kblocks * 64 + (count > 1 && kblocks % 2 == 0 ? 64 : 0);
    bool staged = count * row_bytes * (low ? 2 : 1) <= MGL_STAGE;
    bool even = MGL_WEIGHT != DTYPE_F32 && staged && count > 0 && count <= 8 && is_even(kblocks) &&
                (kblocks == blocks_of(MGL_HIDDEN) || kblocks == blocks_of(MGL_WIDE) ||
                 kblocks == blocks_of(MGL_FFN));
    for (int i = 0; i < task_of(m)->segments; i++)
        even = even && segment(m, i).block % PAGE_BLOCKS == 0;
    in.x = view_of(m, x);
    in.g = has_norm ? (const float *)operand(m, 1).at : nullptr;
    in.map = map;
    in.columns = columns;
    in.kblocks = kblocks;
    in.count = count;
    in.row_bytes = row_bytes;
    in.vector = columns % VECTOR == 0 && x.stride0 % VECTOR == 0 && x.at % 16 == 0;
    in.low = low;
    in.staged = staged;
    in.even = even;
}

/* ---- reading the input ------------------------------------------------------------------------ */

/* 16 bytes of 16-bit values as floats. */
static __device__ __forceinline__ void unpack_half(uint4 raw, float *to)
{
    if (MGL_WEIGHT == DTYPE_F16)
        format<DTYPE_F16>::unpack(raw, to);
    else
        format<DTYPE_BF16>::unpack(raw, to);
}

/* VECTOR values of input row j from column k on, zeros past the end; flagged ones once written. */
static __device__ __forceinline__ void read_chunk(const machine &m, const input &in, int j, int k,
                                                  u64 policy, float *to)
{
    bool wide = in.x.dtype == DTYPE_F32;
    const u8 *from = element_of(in.x, mapped(in, j), k);
    if (in.x.flag) {
        if (k >= in.columns) {
#pragma unroll
            for (int i = 0; i < VECTOR; i++)
                to[i] = 0.0f;
        } else if (wide) {
#pragma unroll
            for (int i = 0; i < VECTOR; i += 4)
                format<DTYPE_F32>::unpack(poll_words(m, from + 4 * i, 0, policy), to + i);
        } else if (VECTOR == 8) {
            unpack_half(poll_words(m, from, 0, policy), to);
        }
        return;
    }
    if (in.vector && k < in.columns) {
        if (!wide && VECTOR == 8)
            unpack_half(*(const uint4 *)from, to);
#pragma unroll
        for (int i = 0; wide && i < VECTOR; i += 4)
            format<DTYPE_F32>::unpack(*(const uint4 *)(from + 4 * i), to + i);
        return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        to[i] = 0.0f;
        if (k + i < in.columns)
            to[i] = wide                      ? ((const float *)from)[i]
                    : MGL_WEIGHT == DTYPE_F16 ? f16_float(((const u16 *)from)[i])
                                              : bf16_float(((const u16 *)from)[i]);
    }
}

/* Multiplies by the norm's weight; the sum of the squares before. */
static __device__ __forceinline__ float weigh(const input &in, int k, float *v)
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        sum = fmaf(v[i], v[i], sum);
        v[i] *= k + i < in.columns ? in.g[k + i] : 0.0f;
    }
    return sum;
}

/* 16 bytes of an input in the weights' dtype, and what rounding took from them. */
struct chunk {
    uint4 high, low;
};

/* VECTOR values in the weights' dtype. */
static __device__ __forceinline__ uint4 pack_values(const float *v)
{
    if (MGL_WEIGHT == DTYPE_F32)
        return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                          __float_as_uint(v[3]));
    return make_uint4(pack_pair(MGL_WEIGHT, v[0], v[1]), pack_pair(MGL_WEIGHT, v[2], v[3]),
                      pack_pair(MGL_WEIGHT, v[4 % VECTOR], v[5 % VECTOR]),
                      pack_pair(MGL_WEIGHT, v[6 % VECTOR], v[7 % VECTOR]));
}

static __device__ __forceinline__ chunk split_values(const float *v, bool low)
{
    chunk c = {pack_values(v)};
    if (VECTOR == 8 && low) {
        float rest[8];
        unpack_half(c.high, rest);
#pragma unroll
        for (int i = 0; i < 8; i++)
            rest[i] = v[i % VECTOR] - rest[i];
        c.low = pack_values(rest);
    }
    return c;
}

/* One chunk of the input as the products need it; adds its squares to *squares. */
static __device__ __forceinline__ chunk make_chunk(const machine &m, const input &in, int j, int k,
                                                   u64 policy, float *squares)
{
    float v[VECTOR];
    read_chunk(m, in, j, k, policy, v);
    if (in.g)
        *squares += weigh(in, k, v);
    return split_values(v, in.low);
}

/* Where chunk number n of row j is in the stage, and its low part. */
static __device__ __forceinline__ uint4 *staged_at(const machine &m, const input &in, int j, int n)
{
    return (uint4 *)(stage_memory() + j * in.row_bytes) + n;
}

static __device__ __forceinline__ uint4 *staged_low(const machine &m, const input &in, int j, int n)
{
    return staged_at(m, in, in.count + j, n);
}

static __device__ __forceinline__ void stage_chunk(const machine &m, const input &in, int j, int n,
                                                   const chunk &c)
{
    if (!in.staged)
        return;
    *staged_at(m, in, j, n) = c.high;
    if (in.low)
        *staged_low(m, in, j, n) = c.low;
}

/* Row j of this warp's run: chunks [first, first + n) into the stage where it has room; the sum of
 * squares, of this lane. Of flagged rows several words are asked for at once. */
static __device__ __forceinline__ float gather_row(const machine &m, const input &in, int j,
                                                   int first, int n)
{
    const u64 policy = keep_policy();
    float squares = 0.0f;
    if (!in.x.flag || VECTOR != 8) {
        for (int c = m.lane; c < n; c += 32) {
            chunk made = make_chunk(m, in, j, (first + c) * VECTOR, policy, &squares);
            stage_chunk(m, in, j, first + c, made);
        }
        return squares;
    }
    const bool wide = in.x.dtype == DTYPE_F32;
    const int each = wide ? 32 : 16; /* bytes of a chunk */
    const u8 *row = element_of(in.x, mapped(in, j), 0);
    for (int c = m.lane; c < n; c += 32 * AHEAD) {
        uint4 raw[AHEAD] = {}, more[AHEAD] = {};
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int number = first + c + 32 * i;
            if (c + 32 * i < n && number * VECTOR < in.columns) {
                raw[i] = load_words(row + number * each, policy);
                if (wide)
                    more[i] = load_words(row + number * each + 16, policy);
            }
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int number = first + c + 32 * i;
            if (c + 32 * i >= n)
                break;
            if (!is_written(raw[i]))
                raw[i] = poll_words(m, row + number * each, 0, policy);
            if (wide && !is_written(more[i]))
                more[i] = poll_words(m, row + number * each + 16, 0, policy);
            chunk made = {raw[i]};
            if (in.low) {
                float v[8];
                if (wide) {
                    format<DTYPE_F32>::unpack(raw[i], v);
                    format<DTYPE_F32>::unpack(more[i], v + 4);
                } else {
                    unpack_half(raw[i], v);
                }
                if (in.g)
                    squares += weigh(in, number * VECTOR, v);
                made = split_values(v, true);
            }
            stage_chunk(m, in, j, number, made);
        }
    }
    return squares;
}

/* Makes this warp's run of the input ready: waits for flagged words, fills its part of the stage, and
 * leaves its sums of squares. */
static __device__ __forceinline__ void gather(const machine &m, const input &in)
{
    int blocks, first = run_of(in.kblocks, m.warp, &blocks);
    for (int j = 0; j < in.count; j++) {
        float squares = gather_row(m, in, j, first * 4, blocks * 4);
        if (in.g) {
            squares = warp_sum(squares);
            if (m.lane == 0)
                own().sums[j * MGL_WARPS + m.warp] = squares;
        }
    }
    if (m.tid == 0) {
        own().pending = 0;
#if MGL_TRACE
        own().input = time_ns();
        own().ahead = own().landed - own().done[0];
#endif
    }
    __syncwarp();
}

static __device__ __noinline__ chunk direct_chunk(const machine m, int j, int n)
{
    float squares;
    return make_chunk(m, own().in, j, n * VECTOR, keep_policy(), &squares);
}

/* Row j (the last one for rows past the end) in block b of a weight row, this lane's quarter. */
static __device__ __forceinline__ chunk operand_chunk(const machine &m, const input &in, int j,
                                                      int b, bool low)
{
    int row = min(j, in.count - 1), n = b * 4 + (m.lane & 3);
    if (!in.staged)
        return direct_chunk(m, row, n);
    chunk c = {*staged_at(m, in, row, n)};
    if (low)
        c.low = *staged_low(m, in, row, n);
    return c;
}

/* ---- partial sums ----------------------------------------------------------------------------- */

/* The slot of the next row group, once it is empty. */
static __device__ __forceinline__ float *take_slot(machine &m, int rows)
{
    u32 slot = m.group % SLOTS, use = m.group / SLOTS;
    while (use > 0 && !barrier_passed(&own().slot_empty[slot], (use - 1) & 1))
        ; /* the epilogue has a clock in each of its waits */
    return own().partial + slot * SLOT + m.warp * GROUP_ROWS * rows;
}

/* This warp's sums are in the slot. */
static __device__ __forceinline__ void leave_slot(machine &m)
{
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().slot_full[m.group % SLOTS]);
    m.group++;
}

/* The blocks of one warp in a row group, in the order of the tape: number i of the run is the
 * place_of(.., i)-th block of the row group (mgl_block_place). */
struct places {
    int warps;   /* with blocks */
    int of_last; /* blocks of the last of them */
};

static __device__ __forceinline__ places places_of(int kblocks)
{
    int run = (kblocks + MGL_WARPS - 1) / MGL_WARPS, last = (kblocks - 1) / run;
    return {last + 1, kblocks - last * run};
}

static __device__ __forceinline__ int place_of(const places &p, int warp, int i)
{
    return i < p.of_last ? i * p.warps + warp
                         : p.of_last * p.warps + (i - p.of_last) * (p.warps - 1) + warp;
}

/* A warp without blocks lets the pages go by as it goes through the row groups: a task's tape may be
 * longer than the ring. */
static __device__ __forceinline__ void pass_group(machine &m, const mgl_device_segment &seg, int g,
                                                  int blocks)
{
    if (blocks == 0)
        ring_done(m, m.base + (seg.block + g * seg.kblocks) / PAGE_BLOCKS);
}

/* ---- 16-bit weights --------------------------------------------------------------------------- */

static __device__ __forceinline__ void mma(float *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
{
    if (MGL_WEIGHT == DTYPE_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
            "%7}, "
            "{%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* Sums of one row group: of even and odd blocks and of the two halves of a block apart, so that they do
 * not wait for each other. */
struct sums {
    float c[4][4];
};

/* Adds block b. `first` are activation rows 0 to 7 of the A operand, `second` rows 8 to 15. */
static __device__ __forceinline__ void add_block(sums &s, int b, uint4 first, uint4 second, uint4 w)
{
    mma(s.c[b % 2 * 2], first.x, second.x, first.y, second.y, w.x, w.y);
    mma(s.c[b % 2 * 2 + 1], first.z, second.z, first.w, second.w, w.z, w.w);
}

/* total[0..1]: A operand's row l / 4; total[2..3]: row l / 4 + 8; weight rows l % 4 * 2 and the next. */
static __device__ __forceinline__ void add_up(const sums &s, float *total)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        total[i] = (s.c[0][i] + s.c[1][i]) + (s.c[2][i] + s.c[3][i]);
}

/* Leaves the sums of up to 8 activation rows whose low parts are the A operand's other rows. */
static __device__ __forceinline__ void store_sums(machine &m, const input &in, const sums &s)
{
    int rows = slot_rows(in.count), row = m.lane >> 2, column = (m.lane & 3) * 2;
    float *to = take_slot(m, rows) + row * GROUP_ROWS + column, total[4];
    add_up(s, total);
    if (row < in.count)
        *(float2 *)to = make_float2(total[0] + total[2], total[1] + total[3]);
    leave_slot(m);
}

/* Leaves the sums of 9 to 16 activation rows; `low` has those of their low parts. */
static __device__ __forceinline__ void store_many(machine &m, const input &in, const sums &high,
                                                  const sums &low)
{
    int rows = slot_rows(in.count), row = m.lane >> 2, column = (m.lane & 3) * 2;
    float *to = take_slot(m, rows) + row * GROUP_ROWS + column, total[4], rest[4];
    add_up(high, total);
    add_up(low, rest);
    *(float2 *)to = make_float2(total[0] + rest[0], total[1] + rest[1]);
    if (row + 8 < in.count)
        *(float2 *)(to + 8 * GROUP_ROWS) = make_float2(total[2] + rest[2], total[3] + rest[3]);
    leave_slot(m);
}

static __device__ __forceinline__ uint4 load_block(const u8 *at, int lane)
{
    return *((const uint4 *)at + lane);
}

/* All row groups of KB blocks where pages and row groups fit each other (is_even), at most 8 staged
 * activation rows. Activations of a short run stay in registers (HOLD), and so do their low parts, if
 * there are any, of a shorter one. */
template <int KB, bool LOW>
static __device__ __forceinline__ void sum_even(machine &m, const input &in,
                                                const mgl_device_segment &seg)
{
    constexpr int RUN = KB / MGL_WARPS, EACH = PAGE_BLOCKS / MGL_WARPS, PAGES = KB / PAGE_BLOCKS;
    constexpr bool HOLD = RUN <= HELD, HOLD_LOW = LOW && RUN <= HELD_LOW;
    const uint4 zero = {0, 0, 0, 0};
    const int groups = seg.groups;
    const uint4 *high =
        staged_at(m, in, min(m.lane >> 2, in.count - 1), m.warp * RUN * 4 + (m.lane & 3));
    const uint4 *rest = high + in.count * in.row_bytes / 16; /* the low parts */
    uint4 held[HOLD ? RUN : 1], held_low[HOLD_LOW ? RUN : 1];
#pragma unroll
    for (int b = 0; b < RUN; b++) {
        if (HOLD)
            held[HOLD ? b : 0] = high[b * 4];
        if (HOLD_LOW)
            held_low[HOLD_LOW ? b : 0] = rest[b * 4];
    }
    u32 page = m.base + seg.block / PAGE_BLOCKS;
    for (int g = 0; g < groups; g++) {
        sums s = {};
#pragma unroll(HOLD ? PAGES : 1)
        for (int p = 0; p < PAGES; p++, page++) {
            ring_wait(m, page);
            const u8 *at = ring_at(m, page, m.warp);
            uint4 w[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                w[i] = load_block(at + i * MGL_WARPS * BLOCK_BYTES, m.lane);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int b = (p * EACH + i) * 4; /* 16-byte pieces from the run's start */
                add_block(s, i, HOLD ? held[HOLD ? p * EACH + i : 0] : high[b],
                          HOLD_LOW ? held_low[HOLD_LOW ? p * EACH + i : 0]
                          : LOW    ? rest[b]
                                   : zero,
                          w[i]);
            }
            ring_done(m, page + 1);
        }
        store_sums(m, in, s);
    }
}

/* Adds block b of the run to the sums of its parity in its page. MANY: 9 to 16 rows. */
template <bool MANY, bool LOW>
static __device__ __forceinline__ void add_any(const machine &m, const input &in, int b, int parity,
                                               const u8 *at, sums &s, sums &low)
{
    const uint4 zero = {0, 0, 0, 0};
    int row = m.lane >> 2;
    uint4 w = load_block(at, m.lane);
    chunk c = operand_chunk(m, in, row, b, LOW);
    if (!MANY) {
        add_block(s, parity, c.high, LOW ? c.low : zero, w);
        return;
    }
    chunk more = operand_chunk(m, in, row + 8, b, LOW);
    add_block(s, parity, c.high, more.high, w);
    if (LOW)
        add_block(low, parity, c.low, more.low, w);
}

/* All row groups of any shape; activations from the stage or from where they are. */
template <bool MANY, bool LOW>
static __device__ __noinline__ machine sum_any(machine m, const input in,
                                               const mgl_device_segment seg)
{
    const int groups = seg.groups, kblocks = seg.kblocks;
    const places p = places_of(kblocks);
    int blocks, first = run_of(kblocks, m.warp, &blocks);
    for (int g = 0; g < groups; g++) {
        sums s = {}, low = {};
        pass_group(m, seg, g, blocks);
        for (int i = 0; i < blocks; i++) {
            u32 block = seg.block + g * kblocks + place_of(p, m.warp, i);
            u32 page = m.base + block / PAGE_BLOCKS;
            if (page >= m.known) {
                ring_done(m, page);
                ring_wait(m, page);
            }
            add_any<MANY, LOW>(m, in, first + i, i & 1, ring_at(m, page, block % PAGE_BLOCKS), s,
                               low);
        }
        if (MANY)
            store_many(m, in, s, low);
        else
            store_sums(m, in, s);
    }
    return m;
}

/* ---- f32 weights ------------------------------------------------------------------------------ */

/* All row groups for R activation rows (those past in.count repeat the last). */
template <int R>
static __device__ __noinline__ machine sum_floats(machine m, const input in,
                                                  const mgl_device_segment seg)
{
    const int groups = seg.groups, kblocks = seg.kblocks;
    const places p = places_of(kblocks);
    int blocks, first = run_of(kblocks, m.warp, &blocks), quarter = m.lane & 3;
    for (int g = 0; g < groups; g++) {
        float s[R] = {};
        pass_group(m, seg, g, blocks);
        for (int i = 0; i < blocks; i++) {
            u32 block = seg.block + g * kblocks + place_of(p, m.warp, i);
            u32 page = m.base + block / PAGE_BLOCKS;
            if (page >= m.known) {
                ring_done(m, page);
                ring_wait(m, page);
            }
            float w[4], x[4];
            format<DTYPE_F32>::unpack(load_block(ring_at(m, page, block % PAGE_BLOCKS), m.lane), w);
#pragma unroll
            for (int r = 0; r < R; r++) {
                format<DTYPE_F32>::unpack(operand_chunk(m, in, r, first + i, false).high, x);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    s[r] = fmaf(w[k], x[k], s[r]);
            }
        }
        float *to = take_slot(m, slot_rows(in.count)) + (m.lane >> 2);
#pragma unroll
        for (int r = 0; r < R; r++) {
            s[r] += __shfl_xor_sync(0xFFFFFFFFu, s[r], 1);
            s[r] += __shfl_xor_sync(0xFFFFFFFFu, s[r], 2);
            if (quarter == r % 4 && r < in.count)
                to[r * GROUP_ROWS] = s[r];
        }
        leave_slot(m);
    }
    return m;
}

/* ---- the consumers' part ---------------------------------------------------------------------- */

/* Segments of an even input with rows of KB blocks, if there can be such. */
template <int KB> static __device__ __forceinline__ void sum_all_even(machine &m, const input &in)
{
    if constexpr (is_even(KB) && MGL_WEIGHT != DTYPE_F32) {
        const int segments = task_of(m)->segments;
        for (int i = 0; i < segments; i++) {
            if (in.low)
                sum_even<KB, true>(m, in, segment(m, i));
            else
                sum_even<KB, false>(m, in, segment(m, i));
        }
    }
}

template <bool LOW>
static __device__ __forceinline__ machine sum_halves(const machine &m, const input &in,
                                                     const mgl_device_segment &seg)
{
    if (MOST_ROWS > 8 && in.count > 8)
        return sum_any<(MOST_ROWS > 8), LOW>(m, in, seg);
    return sum_any<false, LOW>(m, in, seg);
}

/* Any input. */
static __device__ __noinline__ machine sum_all(machine m)
{
    const input &in = own().in;
    const int segments = task_of(m)->segments;
    for (int i = 0; i < segments; i++) {
        const mgl_device_segment &seg = segment(m, i);
        if (MGL_WEIGHT != DTYPE_F32 && in.low)
            m = sum_halves<true>(m, in, seg);
        else if (MGL_WEIGHT != DTYPE_F32)
            m = sum_halves<false>(m, in, seg);
        else if (in.count <= 1)
            m = sum_floats<1>(m, in, seg);
        else if (MOST_ROWS > 1 && in.count <= 4)
            m = sum_floats<(MOST_ROWS > 1 ? 4 : 1)>(m, in, seg);
        else
            m = sum_floats<MOST_ROWS>(m, in, seg);
    }
    return m;
}

/* Streams the task's segments. Once a warp has left its last sums, the epilogue may go on, and the
 * task's record be gone: what is needed later is taken before. */
static __device__ __forceinline__ void consume_linear(machine &m)
{
    constexpr int HIDDEN = blocks_of(MGL_HIDDEN), WIDE = blocks_of(MGL_WIDE),
                  FFN = blocks_of(MGL_FFN);
    const input &in = own().in;
    const u32 end = m.base + segment(m, task_of(m)->segments - 1).end;
    gather(m, in);
    if (!in.even)
        m = sum_all(m);
    else if (in.kblocks == HIDDEN)
        sum_all_even<HIDDEN>(m, in);
    else if (WIDE != HIDDEN && in.kblocks == WIDE)
        sum_all_even<WIDE>(m, in);
    else if (FFN != HIDDEN && FFN != WIDE)
        sum_all_even<FFN>(m, in);
    ring_done(m, end);
}

/* No rows to work on: the tape goes by. */
static __device__ __forceinline__ void skip_linear(machine &m)
{
    if (m.tid == 0)
        own().pending = 0;
    ring_done(m, m.base + segment(m, task_of(m)->segments - 1).end);
}

/* ---- the epilogue's part ---------------------------------------------------------------------- */

/* The sum over warps of output row o and activation row r: ((0 + 4 + ..) + (1 + 5 + ..)) +
 * ((2 + 6 + ..) + (3 + 7 + ..)). */
static __device__ __forceinline__ float total_of(const float *slot, int o, int r, int rows)
{
    const float *from = slot + r * GROUP_ROWS + o;
    int stride = GROUP_ROWS * rows;
    float part[4] = {};
#pragma unroll
    for (int w = 0; w < MGL_WARPS; w++)
        part[w & 3] = w < 4 ? from[w * stride] : part[w & 3] + from[w * stride];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* Waits until all warps have left their sums of the next row group. */
static __device__ __forceinline__ const float *wait_slot(machine &m)
{
    u32 slot = m.group % SLOTS, use = m.group / SLOTS;
    while (!barrier_passed(&own().slot_full[slot], use & 1))
        ; /* the consumers have a clock in each of their waits */
    __syncwarp();
    return own().partial + slot * SLOT;
}

static __device__ __forceinline__ void free_slot(machine &m)
{
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().slot_empty[m.group % SLOTS]);
    m.group++;
}

/* 1 / sqrt(mean(x^2) + eps) of all rows, from the warps' sums in order. */
static __device__ __forceinline__ void find_scales(const machine &m, int count, int columns)
{
    if (m.lane < count) {
        float sum = 0.0f;
        for (int w = 0; w < MGL_WARPS; w++)
            sum += own().sums[m.lane * MGL_WARPS + w];
        own().scale[m.lane] = 1.0f / sqrtf(sum / (float)columns + __uint_as_float(MGL_EPS_BITS));
    }
    __syncwarp();
}

/* Takes one row group: out[r, column + o] = made(r, o, sum). */
template <class MADE>
static __device__ __forceinline__ void take_group(machine &m, const float *slot, int count,
                                                  const MADE &made)
{
    int rows = slot_rows(count);
    for (int e = m.lane; e < GROUP_ROWS * count; e += 32) {
        int r = e / GROUP_ROWS, o = e % GROUP_ROWS;
        made(r, o, total_of(slot, o, r, rows));
    }
    free_slot(m);
}

/* Writes n finished columns: each lane two of a row at a time, store(r, i, first, second, both) with
 * i the first one's number in the chunk. */
template <class STORE>
static __device__ __forceinline__ void flush(const machine &m, int count, int n, const STORE &store)
{
    __syncwarp();
    int i = (m.lane & 15) * 2;
    for (int r = m.lane >> 4; r < count && i < n; r += 2) {
        float2 v = *(const float2 *)(own().out + r * CHUNK + i);
        store(r, i, v.x, v.y, i + 1 < n);
    }
    __syncwarp();
}

/* The epilogue of a linear task: for every segment and chunk of up to CHUNK output columns, ready(r,
 * value) makes a sum an output, and write(column, n) writes columns [column, column + n) of the task
 * from s->out. `columns` is the norm's width, 0 without one. */
template <class READY, class WRITE>
static __device__ __forceinline__ void finish_linear(machine &m, int count, int columns,
                                                     const READY &ready, const WRITE &write)
{
    int column = 0;
    bool first = columns > 0;
    for (int i = 0; i < task_of(m)->segments; i++) {
        const mgl_device_segment &seg = segment(m, i);
        for (int g = 0; g < seg.groups && count > 0; g++) {
            const float *slot = wait_slot(m);
            if (first)
                find_scales(m, count, columns);
            first = false;
            int at = g * GROUP_ROWS % CHUNK;
            take_group(m, slot, count, [&](int r, int o, float value) {
                own().out[r * CHUNK + at + o] = ready(r, value);
            });
            if (at + GROUP_ROWS == CHUNK || g + 1 == seg.groups) {
                int from = g * GROUP_ROWS - at;
                write(column + from, min((int)CHUNK, seg.rows - from));
            }
        }
        column += seg.rows;
    }
}

/* The same for two tensors whose row groups stand in turn: ready(r, first, second). */
template <class READY, class WRITE>
static __device__ __forceinline__ void finish_pair(machine &m, int count, int columns,
                                                   const READY &ready, const WRITE &write)
{
    const mgl_device_segment &seg = segment(m, 0);
    for (int g = 0; g < seg.groups && count > 0; g++) {
        const float *slot = wait_slot(m);
        if (g == 0)
            find_scales(m, count, columns);
        int at = g / 2 * GROUP_ROWS % CHUNK;
        take_group(m, slot, count, [&](int r, int o, float value) {
            if (g % 2 == 0)
                own().held[r * GROUP_ROWS + o] = value;
            else
                own().out[r * CHUNK + at + o] = ready(r, own().held[r * GROUP_ROWS + o], value);
        });
        if (g % 2 == 1 && (at + GROUP_ROWS == CHUNK || g + 1 == seg.groups)) {
            int from = g / 2 * GROUP_ROWS - at;
            write(from, min((int)CHUNK, seg.rows - from));
        }
    }
}

#endif
