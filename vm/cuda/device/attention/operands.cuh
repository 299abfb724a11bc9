/*
 * The operands of an attention task: own().att, which the controller fills, the scale of a head's
 * RMSNorm, and the positions that a row attends to. All attention variants use this file.
 */
#ifndef MGL_DEVICE_ATTENTION_OPERANDS_CUH
#define MGL_DEVICE_ATTENTION_OPERANDS_CUH

#include "vm/cuda/device/flags.cuh"

enum { HEAD_DIM = MGL_HEAD_DIM };

/* The weights of the RMSNorms of q and of k (head_dim), if the program has them (MGL_QK_NORM). */
static __device__ __forceinline__ const float *query_norm(const machine &m)
{
    static_assert(MGL_OPERAND(attend, q_g) == MGL_OPERAND(attend_tail, q_g) &&
                      MGL_OPERAND(attend, k_g) == MGL_OPERAND(attend_tail, k_g),
                  "the norms have the same numbers in the ops that append");
    return (const float *)operand(m, own().att.now ? MGL_OPERAND(attend, q_g)
                                                   : MGL_OPERAND(attend_past, q_g))
        .at;
}

static __device__ __forceinline__ const float *key_norm(const machine &m)
{
    return (const float *)operand(m, MGL_OPERAND(attend, k_g)).at;
}

/* The RMS scale of a head, from the sum of its squares. The norm's weight is applied afterwards. */
static __device__ __forceinline__ float head_scale(float squares)
{
    return rsqrtf(squares * (1.0f / HEAD_DIM) + __uint_as_float(MGL_EPS_BITS));
}

/* Fills own().att from the numbers of the operands that every op has. One lane. */
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
 * after all positions that the task attends to. In a task that appends, hi is the first position of
 * this epoch. */
struct positions {
    int lo, hi, last, end;
};

static __device__ __forceinline__ positions positions_of(const machine &m, int r)
{
    const attention &a = own().att;
    int first_row = mgl_step_first_row(own().table, r);
    const int first = own().table[first_row * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    positions p;
    p.last = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    p.lo = 0;
    p.hi = first;
    if (a.splits > 1)
        mgl_split_positions(first, a.split, a.splits, MGL_SHARE, &p.lo, &p.hi);
    p.end = a.now ? p.last + 1 : p.hi;
    return p;
}

/* Element number of position p of sequence s in the cache. */
static __device__ __forceinline__ long long cache_index(const cache_view &cache, int s, int p)
{
    return s * cache.sequence + (long long)p * cache.position;
}

#endif
