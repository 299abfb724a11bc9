/*
 * The input of a product. The controller describes the input (prepare_input). Each consumer warp
 * prepares its run of columns (gather_run): it waits for flagged words, multiplies by the weights
 * of the norm, splits values that need more than 16 bits into high and low parts, and stores them
 * in the activation buffer.
 */
#ifndef MGL_DEVICE_LINEAR_ACTIVATIONS_CUH
#define MGL_DEVICE_LINEAR_ACTIVATIONS_CUH

#include "vm/cuda/device/flags.cuh"
#include "vm/cuda/device/linear/formats.cuh"
#include "vm/cuda/device/linear/merged.cuh"
#include "vm/cuda/device/linear/partial_sums.cuh"
#include "vm/cuda/device/ops.cuh"

enum {
    VECTOR = weight_format::VECTOR, /* columns in 16 bytes */
    WEIGHT_BITS = 8 * weight_format::SIZE,
    BLOCK_COLUMNS = mgl_tape_columns(WEIGHT_BITS),
    AHEAD = 4, /* rows that are polled at once */
    LOADED = 8 /* blocks of a warp that are loaded at once; even: the order of sums */
};

static __device__ __forceinline__ int mapped(const input &in, int j)
{
    return in.map ? in.map[j] : j;
}

/* The kernel variants that some task may use, from the variants that the program names. */
enum {
    SKINNY_PATH = HAS_SKINNY || HAS_BATCH || HAS_BY_ROWS,
    BATCH_PATH = HAS_BATCH || HAS_BY_ROWS,
    GENERAL_PATH = HAS_GENERAL_PRODUCT || HAS_BY_ROWS
};
static_assert(!SKINNY_PATH || MGL_WEIGHT != DTYPE_F32, "the skinny way is for 16 bits");

/* Number of activation rows in the B operand of an MMA. */
static __device__ __forceinline__ int mma_rows(bool low)
{
    return low ? 2 : 4;
}

/* The run of k blocks of warp w: returns the first, and sets *count to the number. */
static __device__ __forceinline__ int run_of(int kblocks, int w, int *count)
{
    int each = (kblocks + MGL_WARPS - 1) / MGL_WARPS, first = w * each;
    *count = max(0, min(each, kblocks - first));
    return first;
}

static __device__ __forceinline__ constexpr int blocks_of(int columns)
{
    return mgl_tape_blocks(columns, WEIGHT_BITS);
}

/* Blocks of a row of scaled weights, if a block has `block_parts` parts. */
static __device__ __forceinline__ int parts_of_columns(int columns, int block_parts)
{
    const int block = block_parts * MGL_PART_COLUMNS;
    return (columns + block - 1) / block;
}

/* Fills own().in[m.instruction] from the operands of the task. `has_norm`: the input has a norm.
 * `map` lists the rows; NULL: all rows. Called by one lane of the controller. */
static __device__ __forceinline__ void prepare_input(const machine &m, bool has_norm, int count,
                                                     const int *map)
{
    const mgl_device_operand &x = operand(m, MGL_PRODUCT_INPUT);
    input &in = own().in[m.instruction];
    const bool merges = MERGES && task_of(m)->op == OP_MERGE_ADD;
    const int number = format_of(m), block_parts = parts_of_block(number);
    const int most = MGL_ACTIVATION_BYTES - (number > 0 ? RANGE_BYTES : 0);
    int columns = merges ? x.count[2] * HEAD_DIM : x.count[1];
    int kblocks = number > 0 ? parts_of_columns(columns, block_parts) : blocks_of(columns);
    const int *column_map = nullptr;
#if MGL_SCALED
    if (number > 0 && !has_factors(number))
        column_map = map_of_columns(m);
#endif
    bool low = ((number > 0 || VECTOR == 8) && (has_norm || x.dtype == DTYPE_F32)) ||
               (column_map == nullptr && half_takes_digits(number, columns));
    /* row pitch = 64 bytes modulo 128, so that the lanes of two rows load from different banks */
    int parts = count * (low ? 2 : 1), row_bytes = kblocks * block_parts * MGL_BLOCK_ROW_BYTES;
    if (parts > 1 && kblocks * block_parts % 2 == 0 && parts * (row_bytes + 64) <= most)
        row_bytes += 64;
    bool buffered = parts * row_bytes <= most;
    bool skinny = SKINNY_PATH && count <= task_of(m)->skinny_rows;
    in.x = view_of(m, x);
    in.g = has_norm ? (const float *)operand(m, MGL_PRODUCT_NORM).at : nullptr;
    in.map = map;
    in.columns = columns;
    in.kblocks = kblocks;
    in.count = count;
    in.row_bytes = row_bytes;
    in.vector = columns % VECTOR == 0 && x.stride0 % VECTOR == 0 && x.at % 16 == 0;
    in.low = low;
    in.buffered = buffered;
    in.skinny = skinny;
    in.batch = BATCH_PATH && !skinny && count >= MGL_BATCH_LEAST(number > 0) &&
               count <= task_of(m)->batch_rows;
    in.flows = skinny && count == 1;
    in.early = in.flows && has_norm;
    if (MERGES)
        in.merges = merges;
#if MGL_SCALED
    in.format = number;
    in.parts = block_parts;
    in.column_map = column_map;
#endif
    in.segments = task_of(m)->segments;
    in.end = segment(m, in.segments - 1).end;
}

/* ---- reading the input ------------------------------------------------------------------------
 */

/* Converts 16 bytes of 16-bit values to floats. */
static __device__ __forceinline__ void unpack_half(uint4 raw, float *to)
{
    if (MGL_WEIGHT == DTYPE_F16)
        format<DTYPE_F16>::unpack(raw, to);
    else
        format<DTYPE_BF16>::unpack(raw, to);
}

/* Reads VECTOR values of input row j from column k on; zeros past the end. Waits for flagged
 * values.
 */
static __device__ __forceinline__ void read_chunk(const machine &m, const input &in, int j, int k,
                                                  u64 policy, float *to)
{
    if (MERGES && in.merges) {
        const merged_chunk merged = merge_chunk(m, mapped(in, j), k, in.columns);
#pragma unroll
        for (int i = 0; i < VECTOR; i++)
            to[i] = merged.value[i];
        return;
    }
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

/* Multiplies values by the weights of the norm. Returns the sum of squares before that. */
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

/* 16 bytes of an input in the dtype of the weights, and the rounding errors (low parts). For 16-bit
 * values, the even words come first, then the odd words. */
struct chunk {
    uint4 high, low;
};

/* Converts VECTOR values to the dtype of the weights. */
static __device__ __forceinline__ uint4 pack_values(const float *v)
{
    if (MGL_WEIGHT == DTYPE_F32)
        return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                          __float_as_uint(v[3]));
    return make_uint4(
        pack_pair(MGL_WEIGHT, v[0], v[1]), pack_pair(MGL_WEIGHT, v[4 % VECTOR], v[5 % VECTOR]),
        pack_pair(MGL_WEIGHT, v[2], v[3]), pack_pair(MGL_WEIGHT, v[6 % VECTOR], v[7 % VECTOR]));
}

/* Exchanges the middle words: converts memory order to the order of a chunk, or back. */
static __device__ __forceinline__ uint4 middle_swapped(uint4 v)
{
    return make_uint4(v.x, v.z, v.y, v.w);
}

static __device__ __forceinline__ chunk split_values(const float *v, bool low)
{
    chunk c = {pack_values(v)};
    if (VECTOR == 8 && low) {
        float rest[8];
        unpack_half(middle_swapped(c.high), rest);
#pragma unroll
        for (int i = 0; i < 8; i++)
            rest[i] = v[i % VECTOR] - rest[i];
        c.low = pack_values(rest);
    }
    return c;
}

/* Reads and converts one chunk of the input. Adds its squares to *squares. */
static __device__ __forceinline__ chunk make_chunk(const machine &m, const input &in, int j, int k,
                                                   u64 policy, float *squares)
{
    float v[VECTOR];
    read_chunk(m, in, j, k, policy, v);
    if (in.g)
        *squares += weigh(in, k, v);
    return split_values(v, in.low);
}

/* Addresses in the activation buffer of chunk n of row j, and of its low part. */
static __device__ __forceinline__ uint4 *buffered_at(const machine &m, const input &in, int j,
                                                     int n)
{
    return (uint4 *)(activation_buffer() + j * in.row_bytes) + n;
}

static __device__ __forceinline__ uint4 *buffered_low(const machine &m, const input &in, int j,
                                                      int n)
{
    return buffered_at(m, in, in.count + j, n);
}

static __device__ __forceinline__ void buffer_chunk(const machine &m, const input &in, int j, int n,
                                                    const chunk &c)
{
    if (!in.buffered)
        return;
    *buffered_at(m, in, j, n) = c.high;
    if (in.low)
        *buffered_low(m, in, j, n) = c.low;
}

/* Converts chunks [first, first + n) of row j of this warp's run, and stores them if the activation
 * buffer has room. Returns this lane's sum of squares. */
static __device__ __forceinline__ float gather_row(const machine &m, const input &in, int j,
                                                   int first, int n)
{
    float squares = 0.0f;
    for (int c = m.lane; c < n; c += 32) {
        chunk made = make_chunk(m, in, j, (first + c) * VECTOR, keep_policy(), &squares);
        buffer_chunk(m, in, j, first + c, made);
    }
    return squares;
}

/* Eight consecutive weights of the norm. */
struct weights {
    float4 first, second;
};

/* A chunk of each of AHEAD rows as stored in memory: one word of 16 bytes each, or two (f32). */
struct words {
    uint4 raw[AHEAD], more[AHEAD];
};

/* Loads all missing words again until they are written. The loads of a round are issued together,
 * because each takes a round trip to L2. The words of row i are at at[i]. */
static __device__ __forceinline__ void poll_all(const machine &m, const u8 *const *at, words &w)
{
    const u64 policy = keep_policy();
    await_flags<EACH_LANE>(m, MGL_PRODUCT_INPUT, [&] {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (!is_written(w.raw[i]))
                w.raw[i] = load_words(at[i], policy);
            if (!is_written(w.more[i]))
                w.more[i] = load_words(at[i] + 16, policy);
        }
        bool missing = false;
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            missing = missing || !is_written(w.raw[i]) || !is_written(w.more[i]);
        return !missing;
    });
}

/* Converts loaded words to a chunk. Adds its squares to *squares. */
static __device__ __forceinline__ chunk chunk_of(bool norm, bool low, bool wide, uint4 raw,
                                                 uint4 more, const weights &g, float *squares)
{
    chunk made = {middle_swapped(raw)};
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

/* Writes this warp's sum of squares of row j. */
static __device__ __forceinline__ void write_squares(const machine &m, int j, float squares)
{
    squares = warp_sum(squares);
    if (m.lane == 0)
        own().sums[j * MGL_WARPS + m.warp] = squares;
}

/* Converts chunks [first, first + n) of rows [j, j + AHEAD) of this warp's run, and stores them if
 * the activation buffer has room. Writes the sums of squares. The rows are flagged and the weights
 * have 16 bits. The weights of the norm are loaded before the rows. */
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
                buffer_chunk(
                    m, in, j + i, number,
                    chunk_of(in.g != nullptr, in.low, wide, w.raw[i], w.more[i], g, &squares[i]));
            at[i] += 32 * (wide ? 32 : 16);
        }
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        if (in.g && j + i < in.count)
            write_squares(m, j + i, squares[i]);
}

/* Prepares this warp's run of the input: waits for flagged words, fills its part of the activation
 * buffer, and writes its sums of squares. */
static __device__ __forceinline__ void gather_run(const machine &m, const input &in)
{
    int blocks, first = run_of(in.kblocks, m.warp, &blocks);
    if (in.x.flag && VECTOR == 8 && !(MERGES && in.merges)) {
        for (int j = 0; j < in.count; j += AHEAD)
            gather_flagged(m, in, j, first * 4, blocks * 4);
    } else {
        for (int j = 0; j < in.count; j++) {
            float squares = gather_row(m, in, j, first * 4, blocks * 4);
            if (in.g)
                write_squares(m, j, squares);
        }
    }
}

static __device__ __noinline__ chunk direct_chunk(const machine m, int j, int n)
{
    float squares;
    return make_chunk(m, own().in[m.instruction], j, n * VECTOR, keep_policy(), &squares);
}

#endif
