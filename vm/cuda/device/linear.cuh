/*
 * Products with streamed weights: y[r, o] = sum over k of x[r, k] W[o, k], for the ops that have a
 * tape. The weights lie in row groups of 8 rows x k blocks of 64 bytes; of a block, lane l holds
 * the 16 bytes of row l / 4 and quarter l % 4, so a block is one 16-byte load a lane.
 *
 * Consumer warp w has k blocks [w S, (w + 1) S) of every row group, S = ceil(blocks / W), which
 * stand on the tape so that each page has some for every warp (schedule/tape.h): of the input it
 * needs that run alone, which it normalises (but for 1 / RMS, a factor that the epilogue applies)
 * and rounds to the weights' dtype into its own part of the stage. Rows that do not fit the stage
 * are read where they are.
 *
 * 16-bit weights: tensor cores, mma.m16n8k16 with f32 sums. The four words of a lane's 16 bytes are
 * the A operand as they lie: its rows 0 to 7 are words 0 and 2 of the 8 weight rows, its rows 8 to
 * 15 words 1 and 3. So a block is one MMA, and an activation row takes two columns of the B
 * operand, the values that belong to the even words and those that belong to the odd ones; of the
 * 16 x 2 sums, rows 0 to 7 of the first and rows 8 to 15 of the second count. The order of k inside
 * a block is free, since both sides have the same. Inputs that 16 bits do not hold (normalised
 * ones, and f32 exchange) are split into two parts, x = high + low, each rounded to 16 bits: 16
 * bits of mantissa and more. The low parts take two more columns: so 4 rows share an MMA's 8
 * columns, or 2 with low parts. So few rows go the short way (device/few.cuh), up to 8 that of
 * several (device/several.cuh), others sum_any. A sum is made in the same order whichever way, of
 * even blocks of the run and of odd ones. f32 weights: one fused multiply-add a product.
 *
 * Each warp leaves its sums of some row groups in a slot (warp, row group, row, 8), and the
 * epilogue adds the warps' up, always in the same order: a row's result does not depend on what
 * else is in the epoch.
 */
#ifndef MGL_DEVICE_LINEAR_CUH
#define MGL_DEVICE_LINEAR_CUH

#include "vm/cuda/device/exchange.cuh"
#include "vm/cuda/device/ops.cuh"
#include "vm/cuda/device/ring.cuh"

enum {
    VECTOR = weight_format::VECTOR, /* columns in 16 bytes */
    BLOCK_COLUMNS = 4 * VECTOR,
    AHEAD = 4, /* rows that are polled at once */
    STEP = 8   /* blocks of a warp that are loaded at once; even: the order of sums */
};

static __device__ __forceinline__ int mapped(const input &in, int j)
{
    return in.map ? in.map[j] : j;
}

/* Rows that a row group's sums have room for in a slot. */
static __device__ __forceinline__ int slot_rows(int count)
{
    return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
}

/* Row groups of a slot: 1, 2 or 4, whose columns of one row are as many as a warp has lanes. */
static __device__ __forceinline__ int slot_groups(int count)
{
    const int fit = SLOT / (MGL_WARPS * MGL_ROW_GROUP) / slot_rows(count);
    return fit >= MGL_SLOT_GROUPS ? MGL_SLOT_GROUPS : fit >= 2 ? 2 : 1;
}

/* Whether a task may go the short way at all: the ring has room for it, and no page is without a
 * block of a warp that has blocks. */
enum {
    MAY_BE_FEW = MGL_WEIGHT != DTYPE_F32 && MGL_RING_GOES_FEW(MGL_RING, PAGE_BLOCKS, (int)MGL_WARPS)
};

/* Rows whose activations are an MMA's B operand. */
static __device__ __forceinline__ int mma_rows(bool low)
{
    return low ? 2 : 4;
}

/* The run of k blocks of warp w: the first, and how many. */
static __device__ __forceinline__ int run_of(int kblocks, int w, int *count)
{
    int each = (kblocks + MGL_WARPS - 1) / MGL_WARPS, first = w * each;
    *count = max(0, min(each, kblocks - first));
    return first;
}

static __device__ __forceinline__ constexpr int blocks_of(int columns)
{
    return (columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
}

/* Makes own().in[m.which] from what is multiplied and, if has_norm, the norm's weight; all rows, or
 * those that `map` names. One lane of the director. */
static __device__ __forceinline__ void prepare_input(const machine &m, bool has_norm, int count,
                                                     const int *map)
{
    const mgl_device_operand &x = operand(m, MGL_PRODUCT_INPUT);
    input &in = own().in[m.which];
    int columns = x.count[1], kblocks = blocks_of(columns);
    bool low = VECTOR == 8 && (has_norm || x.dtype == DTYPE_F32);
    /* rows 64 bytes apart modulo 128: lanes of two rows then load from different banks */
    int parts = count * (low ? 2 : 1), row_bytes = kblocks * 64;
    if (parts > 1 && kblocks % 2 == 0 && parts * (row_bytes + 64) <= MGL_STAGE)
        row_bytes += 64;
    bool staged = parts * row_bytes <= MGL_STAGE;
    const mgl_few_shape shape = {blocks_of(MGL_HIDDEN), blocks_of(MGL_WIDE), blocks_of(MGL_FFN),
                                 MGL_STAGE};
    bool few = MAY_BE_FEW && mgl_goes_few(&shape, x.flag, count, low, kblocks);
    in.x = view_of(m, x);
    in.g = has_norm ? (const float *)operand(m, MGL_PRODUCT_NORM).at : nullptr;
    in.map = map;
    in.columns = columns;
    in.kblocks = kblocks;
    in.count = count;
    in.row_bytes = row_bytes;
    in.vector = columns % VECTOR == 0 && x.stride0 % VECTOR == 0 && x.at % 16 == 0;
    in.low = low;
    in.staged = staged;
    in.few = few;
    in.flows = few && count == 1;
    in.early = in.flows && has_norm;
    in.segments = task_of(m)->segments;
    in.end = segment(m, in.segments - 1).end;
}

/* ---- reading the input ------------------------------------------------------------------------
 */

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

/* 16 bytes of an input in the weights' dtype, and what rounding took from them; of 16-bit values,
 * the even words and then the odd ones. */
struct chunk {
    uint4 high, low;
};

/* VECTOR values in the weights' dtype. */
static __device__ __forceinline__ uint4 pack_values(const float *v)
{
    if (MGL_WEIGHT == DTYPE_F32)
        return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                          __float_as_uint(v[3]));
    return make_uint4(
        pack_pair(MGL_WEIGHT, v[0], v[1]), pack_pair(MGL_WEIGHT, v[4 % VECTOR], v[5 % VECTOR]),
        pack_pair(MGL_WEIGHT, v[2], v[3]), pack_pair(MGL_WEIGHT, v[6 % VECTOR], v[7 % VECTOR]));
}

/* Exchanges the middle words: the order of memory to that of a chunk, or back. */
static __device__ __forceinline__ uint4 turned(uint4 v)
{
    return make_uint4(v.x, v.z, v.y, v.w);
}

static __device__ __forceinline__ chunk split_values(const float *v, bool low)
{
    chunk c = {pack_values(v)};
    if (VECTOR == 8 && low) {
        float rest[8];
        unpack_half(turned(c.high), rest);
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
 * squares, of this lane. */
static __device__ __forceinline__ float gather_row(const machine &m, const input &in, int j,
                                                   int first, int n)
{
    float squares = 0.0f;
    for (int c = m.lane; c < n; c += 32) {
        chunk made = make_chunk(m, in, j, (first + c) * VECTOR, keep_policy(), &squares);
        stage_chunk(m, in, j, first + c, made);
    }
    return squares;
}

/* Eight values of the norm's weight from column k on. */
struct weights {
    float4 first, second;
};

/* A chunk of each of some rows: what is in memory, in one or (f32) two words of 16 bytes each. */
struct words {
    uint4 raw[AHEAD], more[AHEAD];
};

/* Asks for all words that are not written, over and over until they are: all of them at once, since
 * each look takes a way to L2 and back. The words of row i are at at[i]. */
static __device__ __forceinline__ void poll_all(const machine &m, const u8 *const *at, words &w)
{
    const u64 policy = keep_policy();
    u64 since = 0;
    bool missing = true;
    for (u32 n = 1; missing; n++) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (!is_written(w.raw[i]))
                w.raw[i] = load_words(at[i], policy);
            if (!is_written(w.more[i]))
                w.more[i] = load_words(at[i] + 16, policy);
        }
        missing = false;
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            missing = missing || !is_written(w.raw[i]) || !is_written(w.more[i]);
        if (n % POLLS == 0 && missing &&
            !(since = look_at_clock(since, MGL_REPORT_FLAG, task_of(m)->task, m.epoch,
                                    MGL_PRODUCT_INPUT, 1, 0)))
            break;
    }
}

/* A chunk from the words of memory; adds its squares to *squares. */
static __device__ __forceinline__ chunk chunk_of(bool norm, bool low, bool wide, uint4 raw,
                                                 uint4 more, const weights &g, float *squares)
{
    chunk made = {turned(raw)};
    if (!low)
        return made;
    float v[8];
    if (wide) {
        format<DTYPE_F32>::unpack(raw, v);
        format<DTYPE_F32>::unpack(more, v + 4);
    } else {
        unpack_half(raw, v);
    }
    if (norm) {
        const float factor[8] = {g.first.x,  g.first.y,  g.first.z,  g.first.w,
                                 g.second.x, g.second.y, g.second.z, g.second.w};
#pragma unroll
        for (int i = 0; i < 8; i++) {
            *squares = fmaf(v[i], v[i], *squares);
            v[i] *= factor[i];
        }
    }
    return split_values(v, true);
}

/* Leaves this warp's sum of the squares of row j. */
static __device__ __forceinline__ void leave_squares(const machine &m, int j, float squares)
{
    squares = warp_sum(squares);
    if (m.lane == 0)
        own().sums[j * MGL_WARPS + m.warp] = squares;
}

/* Rows [j, j + AHEAD) of this warp's run, flagged ones for 16-bit weights: chunks [first, first +
 * n) into the stage where it has room; leaves their sums of squares. The norm's weights are asked
 * for before the rows. */
static __device__ __forceinline__ void gather_flagged(const machine &m, const input &in, int j,
                                                      int first, int n)
{
    const bool wide = in.x.dtype == DTYPE_F32;
    const u8 *at[AHEAD];
    float squares[AHEAD] = {};
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        at[i] = element_of(in.x, mapped(in, min(j + i, in.count - 1)), (first + m.lane) * VECTOR);
    for (int c = m.lane; c < n; c += 32) {
        const int number = first + c;
        const bool real = number * VECTOR < in.columns;
        words w;
        weights g = {};
        if (in.g && real)
            g = {((const float4 *)in.g)[number * 2], ((const float4 *)in.g)[number * 2 + 1]};
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            u32 none = real && j + i < in.count ? 0xFFFFFFFFu : 0u;
            w.raw[i] = make_uint4(none, none, none, none);
            none = wide ? none : 0u;
            w.more[i] = make_uint4(none, none, none, none);
        }
        poll_all(m, at, w);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (j + i < in.count)
                stage_chunk(
                    m, in, j + i, number,
                    chunk_of(in.g != nullptr, in.low, wide, w.raw[i], w.more[i], g, &squares[i]));
            at[i] += 32 * (wide ? 32 : 16);
        }
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        if (in.g && j + i < in.count)
            leave_squares(m, j + i, squares[i]);
}

/* This warp's share of the input is staged. */
static __device__ __forceinline__ void input_is_there(const machine &m, const input &in)
{
    if (thread_of(m) == 0) {
        own().demanded = m.base + in.end;
        own().pending = 0;
#if MGL_TRACE
        own().input = time_ns();
        own().ahead = own().landed - m.freed;
#endif
    }
}

/* Makes this warp's run of the input ready: waits for flagged words, fills its part of the stage,
 * and leaves its sums of squares. */
static __device__ __forceinline__ void gather_run(const machine &m, const input &in)
{
    int blocks, first = run_of(in.kblocks, m.warp, &blocks);
    if (in.x.flag && VECTOR == 8) {
        for (int j = 0; j < in.count; j += AHEAD)
            gather_flagged(m, in, j, first * 4, blocks * 4);
    } else {
        for (int j = 0; j < in.count; j++) {
            float squares = gather_row(m, in, j, first * 4, blocks * 4);
            if (in.g)
                leave_squares(m, j, squares);
        }
    }
}

static __device__ __forceinline__ void gather(const machine &m, const input &in)
{
    gather_run(m, in);
    input_is_there(m, in);
    __syncwarp();
}

static __device__ __noinline__ chunk direct_chunk(const machine m, int j, int n)
{
    float squares;
    return make_chunk(m, own().in[m.which], j, n * VECTOR, keep_policy(), &squares);
}

/* ---- partial sums -----------------------------------------------------------------------------
 */

/* Where this warp's sums of row group g of a segment go, in the slot of g and its neighbours, once
 * that is empty. */
static __device__ __forceinline__ float *take_slot(const machine &m, int g, int groups, int rows)
{
    u32 slot = m.slot % SLOTS, use = m.slot / SLOTS;
    if (g % groups == 0)
        while (use > 0 && !barrier_passed(&own().slot_empty[slot], (use - 1) & 1))
            ; /* the epilogue has a clock in each of its waits */
    return own().partial + slot * SLOT + (m.warp * groups + g % groups) * MGL_ROW_GROUP * rows;
}

/* This warp's sums of row group g are in the slot; `last`: of the segment. */
static __device__ __forceinline__ void leave_slot(machine &m, int g, int groups, bool last)
{
    if (g % groups != groups - 1 && !last)
        return;
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().slot_full[m.slot % SLOTS]);
    m.slot++;
}

/* A warp without blocks lets the pages go by as it goes through the row groups: a task's tape may
 * be longer than the ring. Its sums are zeros. The segment by value: behind the last slot the
 * record may be gone. */
static __device__ __forceinline__ void pass_groups(machine &m, const input &in,
                                                   const mgl_device_segment seg)
{
    const int count = in.count, rows = slot_rows(count), groups = slot_groups(count);
    for (int g = 0; g < seg.groups; g++) {
        float *to = take_slot(m, g, groups, rows);
        for (int i = m.lane; i < MGL_ROW_GROUP * rows; i += 32)
            to[i] = 0.0f;
        ring_done(m, m.base + (seg.block + (g + 1) * seg.kblocks) / PAGE_BLOCKS);
        leave_slot(m, g, groups, g + 1 == seg.groups);
    }
}

/* ---- 16-bit weights ---------------------------------------------------------------------------
 */

static __device__ __forceinline__ void mma(float *c, uint4 a, uint2 b)
{
    multiply_add<MGL_WEIGHT>(c, a.x, a.y, a.z, a.w, b.x, b.y);
}

/* Which column of the B operand this lane has: of what row, which words, and whether the low parts.
 */
struct column {
    int row; /* within the MMA's */
    int odd; /* 0, 1 */
    bool low;
};

static __device__ __forceinline__ column column_of(int lane, bool low)
{
    int n = lane >> 2;
    column c = {low ? n >> 2 : n >> 1, n & 1, low && (n & 2) != 0};
    return c;
}

/* Sums of one row group and one MMA's rows: of even blocks of the run and of odd ones apart, so
 * that they do not wait for each other. */
struct sums {
    float c[2][4];
};

/* Leaves the sums of rows `first` and on. With low parts two neighbouring lanes have a row's. */
static __device__ __forceinline__ void store_sums(int lane, bool low, int count, const sums &s,
                                                  int first, float *to)
{
    float total = (s.c[0][0] + s.c[1][0]) + (s.c[0][3] + s.c[1][3]);
    int row = lane & 3;
    if (low) {
        total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
        row = (lane & 1) ? count : row >> 1; /* once is enough */
    }
    if (first + row < count)
        to[(first + row) * MGL_ROW_GROUP + (lane >> 2)] = total;
}

/* Adds block number i of a run. */
static __device__ __forceinline__ void add_to(sums &s, int i, uint4 w, uint2 x)
{
    if (i & 1)
        mma(s.c[1], w, x);
    else
        mma(s.c[0], w, x);
}

/* Leaves the sums of all MMAs of a row group. */
template <int N>
static __device__ __forceinline__ void store_all(const machine &m, const input &in, const sums *s,
                                                 float *to)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        if (n * mma_rows(in.low) < in.count)
            store_sums(m.lane, in.low, in.count, s[n], n * mma_rows(in.low), to);
}

/* Blocks of a run that may be loaded at once: all of them must fit the ring, and leave it room. */
static __device__ __forceinline__ constexpr int step_of()
{
    int step = STEP;
    while (step > 1 && (step * MGL_WARPS + PAGE_BLOCKS - 2) / PAGE_BLOCKS + 1 > (MGL_RING + 1) / 2)
        step /= 2;
    return step;
}

/* All row groups of any shape for staged rows, with up to N MMAs a block. */
template <int N>
static __device__ __noinline__ machine sum_any(machine m, const mgl_device_segment seg)
{
    const input in = own().in[m.which];
    constexpr int EACH = step_of();
    const int groups = seg.groups, kblocks = seg.kblocks;
    const int rows = slot_rows(in.count), each = slot_groups(in.count);
    const column mine = column_of(m.lane, in.low);
    const mgl_tape_order p = mgl_tape_order_of(kblocks, MGL_WARPS);
    int blocks, first = run_of(kblocks, m.warp, &blocks);
    const uint2 *x[N]; /* of this lane's column of each MMA: block 0 of the run */
#pragma unroll
    for (int n = 0; n < N; n++) {
        int row = min(n * mma_rows(in.low) + mine.row, in.count - 1) + (mine.low ? in.count : 0);
        x[n] = (const uint2 *)(stage_memory() + row * in.row_bytes) +
               (first * 4 + (m.lane & 3)) * 2 + mine.odd;
    }
    for (int g = 0; g < groups; g++) {
        const u32 group = seg.block + g * kblocks;
        u32 spot = ring_spot(m, group + m.warp);
        sums s[N] = {};
        for (int i = 0; i < blocks; i += EACH) {
            const int count = min(EACH, blocks - i);
            ring_done(m, m.base + (group + mgl_tape_place(p, m.warp, i)) / PAGE_BLOCKS);
            ring_wait(m, m.base + (group + mgl_tape_place(p, m.warp, i + count - 1)) / PAGE_BLOCKS +
                             1);
            uint4 w[EACH] = {};
#pragma unroll
            for (int k = 0; k < EACH; k++)
                if (k < count) {
                    w[k] = load_block(spot, m.lane);
                    spot += i + k < p.of_last ? p.warps : p.warps - 1;
                    spot = RING_BLOCKS < MGL_WARPS ? spot % RING_BLOCKS
                                                   : min(spot, spot - RING_BLOCKS);
                }
#pragma unroll
            for (int k = 0; k < EACH; k++)
                if (k < count)
#pragma unroll
                    for (int n = 0; n < N; n++)
                        if (n == 0 || n * mma_rows(in.low) < in.count)
                            add_to(s[n], EACH > 1 ? k : i, w[k], x[n][(i + k) * 8]);
        }
        ring_done(m, m.base + (group + kblocks) / PAGE_BLOCKS);
        store_all<N>(m, in, s, take_slot(m, g, each, rows));
        leave_slot(m, g, each, g + 1 == groups);
    }
    return m;
}

/* The same for rows that do not fit the stage: block after block, from where the input is. */
template <int N>
static __device__ __noinline__ machine sum_direct(machine m, const mgl_device_segment seg)
{
    const input &in = own().in[m.which];
    const int groups = seg.groups, kblocks = seg.kblocks;
    const int rows = slot_rows(in.count), each = slot_groups(in.count);
    const column mine = column_of(m.lane, in.low);
    const mgl_tape_order p = mgl_tape_order_of(kblocks, MGL_WARPS);
    int blocks, first = run_of(kblocks, m.warp, &blocks);
    for (int g = 0; g < groups; g++) {
        sums s[N] = {};
        for (int i = 0; i < blocks; i++) {
            u32 block = seg.block + g * kblocks + mgl_tape_place(p, m.warp, i);
            u32 page = m.base + block / PAGE_BLOCKS;
            ring_done(m, page);
            ring_wait(m, page + 1);
            uint4 w = load_block(ring_spot(m, block), m.lane);
#pragma unroll
            for (int n = 0; n < N; n++) {
                if (n * mma_rows(in.low) >= in.count)
                    continue;
                int row = min(n * mma_rows(in.low) + mine.row, in.count - 1);
                chunk c = direct_chunk(m, row, (first + i) * 4 + (m.lane & 3));
                uint4 words = mine.low ? c.low : c.high;
                uint2 x = mine.odd ? make_uint2(words.z, words.w) : make_uint2(words.x, words.y);
                add_to(s[n], i, w, x);
            }
        }
        store_all<N>(m, in, s, take_slot(m, g, each, rows));
        leave_slot(m, g, each, g + 1 == groups);
    }
    return m;
}

/* ---- f32 weights ------------------------------------------------------------------------------
 */

/* Four values of row j (the last one for rows past the end) in block b, this lane's quarter. */
static __device__ __forceinline__ uint4 floats_of(const machine &m, const input &in, int j, int b)
{
    int row = min(j, in.count - 1), n = b * 4 + (m.lane & 3);
    return in.staged ? *staged_at(m, in, row, n) : direct_chunk(m, row, n).high;
}

/* All row groups for R activation rows (those past in.count repeat the last). */
template <int R>
static __device__ __noinline__ machine sum_floats(machine m, const mgl_device_segment seg)
{
    const input &in = own().in[m.which];
    const int groups = seg.groups, kblocks = seg.kblocks, quarter = m.lane & 3;
    const int rows = slot_rows(in.count), each = slot_groups(in.count);
    const mgl_tape_order p = mgl_tape_order_of(kblocks, MGL_WARPS);
    int blocks, first = run_of(kblocks, m.warp, &blocks);
    for (int g = 0; g < groups; g++) {
        float s[R] = {};
        for (int i = 0; i < blocks; i++) {
            u32 block = seg.block + g * kblocks + mgl_tape_place(p, m.warp, i);
            u32 page = m.base + block / PAGE_BLOCKS;
            ring_done(m, page);
            ring_wait(m, page + 1);
            float w[4], x[4];
            format<DTYPE_F32>::unpack(load_block(ring_spot(m, block), m.lane), w);
#pragma unroll
            for (int r = 0; r < R; r++) {
                format<DTYPE_F32>::unpack(floats_of(m, in, r, first + i), x);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    s[r] = fmaf(w[k], x[k], s[r]);
            }
        }
        float *to = take_slot(m, g, each, rows) + (m.lane >> 2);
#pragma unroll
        for (int r = 0; r < R; r++) {
            s[r] += __shfl_xor_sync(0xFFFFFFFFu, s[r], 1);
            s[r] += __shfl_xor_sync(0xFFFFFFFFu, s[r], 2);
            if (quarter == r % 4 && r < in.count)
                to[r * MGL_ROW_GROUP] = s[r];
        }
        leave_slot(m, g, each, g + 1 == groups);
    }
    return m;
}

/* ---- any input --------------------------------------------------------------------------------
 */

/* MMAs a block that most rows take. */
enum { MOST_MMAS = MOST_ROWS <= 1 ? 1 : MOST_ROWS / 2 };

static __device__ __forceinline__ machine sum_segment(const machine &m, const input &in,
                                                      const mgl_device_segment &seg)
{
    if (MGL_WEIGHT != DTYPE_F32) {
        int mmas = (in.count + mma_rows(in.low) - 1) / mma_rows(in.low);
        return !in.staged                   ? sum_direct<MOST_MMAS>(m, seg)
               : mmas <= 1                  ? sum_any<1>(m, seg)
               : MOST_MMAS > 2 && mmas <= 2 ? sum_any<(MOST_MMAS > 2 ? 2 : 1)>(m, seg)
               : MOST_MMAS > 4 && mmas <= 4 ? sum_any<(MOST_MMAS > 4 ? 4 : 1)>(m, seg)
                                            : sum_any<MOST_MMAS>(m, seg);
    }
    return in.count <= 1                    ? sum_floats<1>(m, seg)
           : MOST_ROWS > 1 && in.count <= 4 ? sum_floats<(MOST_ROWS > 1 ? 4 : 1)>(m, seg)
                                            : sum_floats<MOST_ROWS>(m, seg);
}

/* Any input. */
static __device__ __noinline__ machine sum_all(machine m)
{
    const input &in = own().in[m.which];
    const int segments = task_of(m)->segments;
    for (int i = 0; i < segments; i++) {
        const mgl_device_segment &seg = segment(m, i);
        if (m.warp < mgl_tape_order_of(seg.kblocks, MGL_WARPS).warps)
            m = sum_segment(m, in, seg);
        else
            pass_groups(m, in, seg);
    }
    return m;
}

/* No rows to work on: the tape goes by. */
static __device__ __forceinline__ void skip_linear(machine &m)
{
    if (thread_of(m) == 0)
        own().pending = 0;
    ring_done(m, m.base + own().in[m.which].end);
}

#endif
