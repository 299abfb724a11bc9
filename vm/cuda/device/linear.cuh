/*
 * Products with streamed weights: y[r, o] = sum over k of x[r, k] W[o, k], for the ops that have a
 * tape. The weights lie in row groups of 8 rows x k blocks of 64 bytes; of a block, lane l holds the
 * 16 bytes of row l / 4 and quarter l % 4, so a block is one 16-byte load a lane.
 *
 * A warp works on the k blocks w, w + W, ... of every row group, for all activation rows at once:
 * each weight is read once an epoch however many rows there are. The activations stand in shared
 * memory (already normalised) where they fit the stage, else they are read where they are. Partial
 * sums: lanes by shuffles, then warps through shared memory, always in the same order and the same
 * for any number of rows, so a row's result does not depend on what else is in the epoch.
 *
 * Row groups are worked on in chunks, as many as the room for partial sums holds.
 */
#ifndef MGL_DEVICE_LINEAR_CUH
#define MGL_DEVICE_LINEAR_CUH

#include "vm/cuda/device/ring.cuh"

enum {
    LANE_COLUMNS = weight_format::VECTOR,
    BLOCK_COLUMNS = 4 * LANE_COLUMNS,
    STAGE_FLOATS = MGL_STAGE / 4
};

/* The input of a linear op. */
struct input {
    const float *x;   /* row 0 */
    const float *g;   /* RMSNorm's weight, NULL for none */
    long long stride; /* from row to row */
    int columns;
    int padded;     /* a multiple of BLOCK_COLUMNS */
    int count;      /* rows to work on */
    const int *map; /* (count) which they are; NULL: 0, 1, ... */
    bool staged;    /* in m.stage (count, padded), normalised */
    bool vector;    /* rows begin at multiples of 16 bytes */
};

static __device__ __forceinline__ int mapped(const input &in, int j)
{
    return in.map ? in.map[j] : j;
}

/* 1 / sqrt(mean(x^2) + eps) of row j: the warps' sums in order. */
static __device__ float inverse_rms(const machine &m, const input &in, int j)
{
    float sum = 0.0f;
    for (int w = 0; w < MGL_WARPS; w++)
        sum += m.s->sums[j * MGL_WARPS + w];
    return 1.0f / sqrtf(sum / (float)in.columns + __uint_as_float(MGL_EPS_BITS));
}

static __device__ __forceinline__ int padded(int columns)
{
    return (columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS * BLOCK_COLUMNS;
}

/* Starts fetching the norm's weight of a task that has one: a constant, which need not wait for the
 * task's edges. It stands at the end of the stage, where there is room behind the rows. */
static __device__ void fetch_norm(machine &m, bool has_norm)
{
    m.norm = nullptr;
    if (!has_norm)
        return;
    int columns = operand(m, 0).count[1], room = padded(columns);
    if ((long long)(rows_of(m) + 1) * room > STAGE_FLOATS)
        return;
    const u8 *from = (const u8 *)operand(m, 1).at;
    float *to = m.stage + STAGE_FLOATS - room;
    m.norm = to;
    for (int k = m.tid; k < columns; k += THREADS)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to + k)),
                     "l"(from + k * 4)
                     : "memory");
}

/* Copies row j to the stage, zeros behind it, and adds up its squares. */
static __device__ void stage_row(machine &m, const input &in, int j)
{
    const float *x = in.x + mapped(in, j) * in.stride;
    float *to = m.stage + (size_t)j * in.padded, sum = 0.0f;
    if (in.vector) {
        for (int k = m.tid * 4; k < in.columns; k += THREADS * 4) {
            float4 v = *(const float4 *)(x + k);
            if (in.staged)
                *(float4 *)(to + k) = v;
            sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
        }
    } else {
        for (int k = m.tid; k < in.columns; k += THREADS) {
            float v = x[k];
            if (in.staged)
                to[k] = v;
            sum += v * v;
        }
    }
    for (int k = in.columns + m.tid; in.staged && k < in.padded; k += THREADS)
        to[k] = 0.0f;
    if (in.g) {
        sum = warp_sum(sum);
        if (m.lane == 0)
            m.s->sums[j * MGL_WARPS + m.warp] = sum;
    }
}

/* Makes the input ready: rows in the stage where they fit, and what their norm needs. */
static __device__ void prepare(machine &m, input &in)
{
    in.padded = padded(in.columns);
    in.staged = (long long)in.count * in.padded <= STAGE_FLOATS;
    in.vector = in.columns % 4 == 0 && in.stride % 4 == 0 && (u64)in.x % 16 == 0;
    if (!in.staged && !in.g)
        return;
    for (int j = 0; j < in.count; j++)
        stage_row(m, in, j);
    consumer_barrier();
    const float *g = m.norm ? m.norm : in.g;
    for (int j = 0; in.staged && in.g && j < in.count; j++) {
        float scale = inverse_rms(m, in, j), *row = m.stage + (size_t)j * in.padded;
        for (int k = m.tid; k < in.columns; k += THREADS)
            row[k] = row[k] * scale * g[k];
    }
    consumer_barrier();
}

/* LANE_COLUMNS values of row j from column k on, zeros past the end, from where they are. */
static __device__ __forceinline__ void load_direct(const input &in, int j, float scale, int k,
                                                   float *to)
{
    const float *x = in.x + mapped(in, j) * in.stride + k;
#pragma unroll
    for (int i = 0; i < LANE_COLUMNS; i++)
        to[i] = k + i < in.columns ? x[i] : 0.0f;
    if (in.g) {
#pragma unroll
        for (int i = 0; i < LANE_COLUMNS; i++)
            if (k + i < in.columns)
                to[i] = to[i] * scale * in.g[k + i];
    }
}

static __device__ __forceinline__ void load_staged(const machine &m, const input &in, int j, int k,
                                                   float *to)
{
    const float4 *x = (const float4 *)(m.stage + (size_t)j * in.padded + k);
#pragma unroll
    for (int i = 0; i < LANE_COLUMNS / 4; i++) {
        float4 v = x[i];
        to[4 * i] = v.x;
        to[4 * i + 1] = v.y;
        to[4 * i + 2] = v.z;
        to[4 * i + 3] = v.w;
    }
}

/* Adds the products of one k block with R activation rows. */
template <int R, bool STAGED>
static __device__ __forceinline__ void add_block(const machine &m, const input &in,
                                                 const float *scale, uint4 raw, int k, float *sums)
{
    float w[LANE_COLUMNS], x[LANE_COLUMNS];
    weight_format::unpack(raw, w);
#pragma unroll
    for (int r = 0; r < R; r++) {
        int j = min(r, in.count - 1);
        if (STAGED)
            load_staged(m, in, j, k, x);
        else
            load_direct(in, j, scale[STAGED ? 0 : r], k, x);
#pragma unroll
        for (int i = 0; i < LANE_COLUMNS; i++)
            sums[r] = fmaf(w[i], x[i], sums[r]);
    }
}

/* Partial sums of row groups [lo, hi) for R activation rows (those past in.count repeat the last):
 * m.s->partial (group, warp, 8, R). The inner loop stays within a page, so it has nothing to ask. */
template <int R, bool STAGED>
static __device__ __noinline__ void accumulate(machine &machine_of, const input &in_of,
                                               const mgl_device_segment &seg, int lo, int hi)
{
    machine m = machine_of; /* in registers for the loop */
    const input in = in_of;
    u32 block = seg.block + (u32)(lo * seg.kblocks);
    int kblocks = seg.kblocks, quarter = m.lane & 3, row = m.lane >> 2;
    float scale[STAGED ? 1 : R];
    if (!STAGED && in.g) {
#pragma unroll
        for (int r = 0; r < R; r++)
            scale[STAGED ? 0 : r] = inverse_rms(m, in, min(r, in.count - 1));
    }
    for (int g = lo; g < hi; g++, block += kblocks) {
        float sums[R] = {};
        for (int b = m.warp; b < kblocks;) {
            const uint4 *at = ring_at(m, block + b);
            int end = min(kblocks, b + PAGE_BLOCKS - (int)((block + b) % PAGE_BLOCKS));
#pragma unroll(R <= 4 ? 4 : 1)
            for (; b < end; b += MGL_WARPS, at += MGL_WARPS * (BLOCK_BYTES / 16))
                add_block<R, STAGED>(m, in, scale, *at, b * BLOCK_COLUMNS + quarter * LANE_COLUMNS,
                                     sums);
        }
        float *to = m.s->partial + (((g - lo) * MGL_WARPS + m.warp) * GROUP_ROWS + row) * R;
#pragma unroll
        for (int r = 0; r < R; r++) {
            sums[r] += __shfl_xor_sync(0xFFFFFFFFu, sums[r], 1);
            sums[r] += __shfl_xor_sync(0xFFFFFFFFu, sums[r], 2);
            if (quarter == r % 4)
                to[r] = sums[r];
        }
    }
    machine_of.page = m.page;
    machine_of.landed = m.landed;
    machine_of.dead = m.dead;
}

/* Activation rows that there is machine code for: 1, 2, 4, 8 or 16, without the stage 1, 4 or 16. */
static __device__ __forceinline__ int round_rows(const input &in)
{
    int count = in.count;
    if (!in.staged)
        return count <= 1 ? 1 : count <= 4 ? 4 : 16;
    return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
}

template <int R>
static __device__ __forceinline__ void
accumulate_rows(machine &m, const input &in, const mgl_device_segment &seg, int lo, int hi)
{
    const bool direct = R == 1 || R == 4 || R == 16;
    if (R > 1 && MGL_ROWS <= (direct ? R / 4 : R / 2))
        return; /* never so many rows: no code for them */
    if (in.staged)
        accumulate<R, true>(m, in, seg, lo, hi);
    else if (direct)
        accumulate<direct ? R : 1, false>(m, in, seg, lo, hi);
}

static __device__ void accumulate_any(machine &m, const input &in, const mgl_device_segment &seg,
                                      int rows, int lo, int hi)
{
    switch (rows) {
    case 1:
        accumulate_rows<1>(m, in, seg, lo, hi);
        break;
    case 2:
        accumulate_rows<2>(m, in, seg, lo, hi);
        break;
    case 4:
        accumulate_rows<4>(m, in, seg, lo, hi);
        break;
    case 8:
        accumulate_rows<8>(m, in, seg, lo, hi);
        break;
    default:
        accumulate_rows<16>(m, in, seg, lo, hi);
    }
}

/* The sum over warps of output row `row` of the chunk's group `group`, activation row r of R. */
static __device__ __forceinline__ float total_of(const machine &m, const mgl_device_segment &seg,
                                                 int group, int row, int r, int rows)
{
    int warps = min(MGL_WARPS, seg.kblocks);
    const float *from = m.s->partial + ((size_t)group * MGL_WARPS * GROUP_ROWS + row) * rows + r;
    float sum = from[0];
    for (int w = 1; w < warps; w++)
        sum += from[w * GROUP_ROWS * rows];
    return sum;
}

/* Streams a segment and calls finish(o, j, value) once for each output row o of it and input row j;
 * the same thread always has the same j. Ends with a barrier. */
template <class FINISH>
static __device__ void linear(machine &m, const input &in, const mgl_device_segment &seg,
                              const FINISH &finish)
{
    int rows = round_rows(in), chunk = PARTIALS / (MGL_WARPS * GROUP_ROWS * rows);
    for (int lo = 0; in.count > 0 && lo < seg.groups; lo += chunk) {
        int hi = min(lo + chunk, seg.groups);
        accumulate_any(m, in, seg, rows, lo, hi);
        /* all warps: a slow one may need the slots of pages that this one has nothing in */
        ring_seek(m, (seg.block + (u32)hi * seg.kblocks) / PAGE_BLOCKS);
        consumer_barrier();
        for (int e = m.tid; e < (hi - lo) * GROUP_ROWS * rows; e += THREADS) {
            int r = e % rows, o = e / rows;
            if (r < in.count && lo * GROUP_ROWS + o < seg.rows)
                finish(lo * GROUP_ROWS + o, r,
                       total_of(m, seg, o / GROUP_ROWS, o % GROUP_ROWS, r, rows));
        }
        consumer_barrier();
    }
    ring_seek(m, seg.end);
}

/* The same for two tensors whose row groups stand in turn: finish(o, j, first, second). Where the
 * room holds one row group only, the first's sums wait in a register for the second's. */
template <class FINISH>
static __device__ void linear_pair(machine &m, const input &in, const mgl_device_segment &seg,
                                   const FINISH &finish)
{
    int rows = round_rows(in), chunk = PARTIALS / (MGL_WARPS * GROUP_ROWS * rows);
    float held = 0.0f;
    chunk = chunk > 1 ? chunk / 2 * 2 : 1;
    for (int lo = 0; in.count > 0 && lo < seg.groups; lo += chunk) {
        int hi = min(lo + chunk, seg.groups), half = lo / 2 * GROUP_ROWS;
        accumulate_any(m, in, seg, rows, lo, hi);
        ring_seek(m, (seg.block + (u32)hi * seg.kblocks) / PAGE_BLOCKS);
        consumer_barrier();
        for (int e = m.tid; e < (hi - lo + 1) / 2 * GROUP_ROWS * rows; e += THREADS) {
            int r = e % rows, o = e / rows, group = o / GROUP_ROWS * 2, row = o % GROUP_ROWS;
            float first = total_of(m, seg, group, row, r, rows), second = first;
            if (chunk > 1)
                second = total_of(m, seg, group + 1, row, r, rows);
            else if (lo % 2 == 0)
                held = first;
            else
                first = held;
            if ((chunk > 1 || lo % 2) && r < in.count && half + o < seg.rows)
                finish(half + o, r, first, second);
        }
        consumer_barrier();
    }
    ring_seek(m, seg.end);
}

/* The input from operands x and, if has_norm, the norm's weight behind it. All rows. */
static __device__ input input_of(const machine &m, bool has_norm)
{
    const mgl_device_operand &x = operand(m, 0);
    input in = {};
    in.x = (const float *)x.at;
    in.g = has_norm ? (const float *)operand(m, 1).at : nullptr;
    in.stride = x.stride0;
    in.columns = x.count[1];
    in.count = rows_of(m);
    return in;
}

#endif
