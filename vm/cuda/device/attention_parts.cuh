/*
 * What the two ways of attention share: what a task attends to, the positions of a row, and what
 * becomes of a head's result.
 */
#ifndef MGL_DEVICE_ATTENTION_PARTS_CUH
#define MGL_DEVICE_ATTENTION_PARTS_CUH

#include "vm/cuda/device/exchange.cuh"
#include "vm/cuda/device/ops.cuh"

enum { HEAD_DIM = MGL_HEAD_DIM };

/* Makes own().att from the numbers of the operands that every op has. One lane. */
static __device__ __forceinline__ attention &prepare_attention(const machine &m, int q, int rope,
                                                               int k, int v)
{
    attention &a = own().att;
    const mgl_device_operand &keys = operand(m, k), &values = operand(m, v);
    a.q = view_of(m, operand(m, q));
    a.rope = (const float *)operand(m, rope).at;
    a.rope_stride = (int)operand(m, rope).stride0;
    a.k = {(u8 *)keys.at, keys.stride0, keys.stride2};
    a.v = {(u8 *)values.at, values.stride0, values.stride2};
    a.split = a.part = 0;
    a.splits = 1;
    a.now = false;
    return a;
}

static __device__ __forceinline__ void prepare_part(const machine &m, attention &a, int part)
{
    a.split = operand(m, part).first0;
    a.splits = operand(m, part).extent0;
    a.part = part;
}

static __device__ __forceinline__ void prepare_now(const machine &m, attention &a, int k, int v)
{
    a.k_new = view_of(m, operand(m, k));
    a.v_new = view_of(m, operand(m, v));
    a.now = true;
}

/* The positions of one row: [lo, hi) of the earlier ones; `last` is the row's own, and `end` is
 * behind all that the task attends to. With the task that appends, hi is the first of this epoch.
 */
struct positions {
    int lo, hi, last, end;
};

static __device__ __forceinline__ positions positions_of(const machine &m, int r)
{
    const attention &a = own().att;
    int start = mgl_step_first_row(own().table, r);
    u32 first = (u32)own().table[start * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    positions p;
    p.last = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    p.lo = 0;
    p.hi = (int)first;
    if (a.splits > 1) {
        p.lo = (int)(first * (u32)a.split / (u32)a.splits);
        p.hi = (int)(first * (u32)(a.split + 1) / (u32)a.splits);
    }
    p.end = a.now ? p.last + 1 : p.hi;
    return p;
}

/* Position p of sequence s: its element number. */
static __device__ __forceinline__ long long cache_index(const cache_view &cache, int s, int p)
{
    return s * cache.sequence + (long long)p * cache.position;
}

/* Whether a wait has to give up at its poll number n, from 1 on, by the clock and by others: then
 * it reports with look_at_clock. Apart from that, since a call costs the registers that it may use.
 */
static __device__ __forceinline__ bool is_late(const machine &m, u32 n, u64 *since)
{
    if (n % POLLS)
        return false;
    u64 now = clock_ns();
    if (*since == 0)
        *since = now;
    return now - *since >= own().launch.deadline_ns || is_stopped();
}

/* The same as is_written; where many words are asked at once, their maxima do not wait for one
 * another. */
static __device__ __forceinline__ bool is_complete(uint4 v)
{
    return max(max(v.x, v.y), max(v.z, v.w)) != 0xFFFFFFFFu;
}

/* Where the result of one row and head goes. */
struct head_output {
    view y;          /* the mean: attention's output, */
    int row, column; /* its row, and the head's first column */
    float *part;     /* or, if not NULL, the partial as it is: (head_dim + 2 or + 4) */
    bool flag;       /* of the partial */
    bool padded;     /* it is head_dim + 4 */
};

static __device__ __forceinline__ head_output output_of(const machine &m, int r, int head)
{
    const attention &a = own().att;
    head_output to = {a.y, r, head * HEAD_DIM, NULL, false, false};
    if (a.part) {
        const mgl_device_operand &part = operand(m, a.part);
        to.part = (float *)address_of(m, part) + (long long)r * part.stride1 +
                  (long long)head * part.stride2;
        to.flag = part.flag;
        to.padded = part.stride2 == HEAD_DIM + 4;
    }
    return to;
}

static __device__ __forceinline__ void store_floats(const head_output &to, int d, float first,
                                                    float second, u64 policy)
{
    if (to.flag) {
        store_two_words(to.part + d, flag_bits(first), flag_bits(second), policy);
    } else {
        to.part[d] = first;
        to.part[d + 1] = second;
    }
}

static __device__ __forceinline__ float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Elements d and d + 1 of a result; with the first two goes what stands behind the last two. */
static __device__ __forceinline__ void store_result(const head_output &to, int d, float2 value,
                                                    float max, float sum, u64 policy)
{
    if (!to.part) {
        float inverse = reciprocal(sum);
        store_pair(to.y, to.row, to.column + d, value.x * inverse, value.y * inverse, true, policy);
        return;
    }
    store_floats(to, d, value.x, value.y, policy);
    if (d == 0)
        store_floats(to, HEAD_DIM, max, sum, policy);
    if (d == 0 && to.padded)
        store_floats(to, HEAD_DIM + 2, 0.0f, 0.0f, policy);
}

#endif
