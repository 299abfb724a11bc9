/*
 * The operands of an attention task: own().att, which the controller fills, the scale of a head's
 * RMSNorm, the rows that the task attends with (unsplit and split rows), and the positions that a
 * row attends to. All attention variants use this file.
 */
#ifndef MGL_DEVICE_ATTENTION_OPERANDS_CUH
#define MGL_DEVICE_ATTENTION_OPERANDS_CUH

#include "vm/cuda/device/flags.cuh"

enum {
    HEAD_DIM = MGL_HEAD_DIM,
    MIXED = MGL_UNSPLIT > 0 && MGL_ROWS > 1 /* an epoch may have both unsplit and split rows */
};

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
    a.rows = MGL_KV_ALL;
    return a;
}

/* Positions that the sequence of row r has from earlier epochs. */
static __device__ __forceinline__ int earlier_positions(int r)
{
    const int first_row = mgl_step_first_row(own().table, r);
    return own().table[first_row * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
}

/* The kind of row r: MGL_KV_UNSPLIT or MGL_KV_SPLIT. */
static __device__ __forceinline__ int kind_of_row(int r)
{
    return earlier_positions(r) <= MGL_UNSPLIT ? MGL_KV_UNSPLIT : MGL_KV_SPLIT;
}

/* The value of own().rows_kinds for the epoch; all lanes of a warp call this. A lane looks at one
 * row. If the epoch has more rows than a warp has lanes, both kinds count as present. */
static __device__ __forceinline__ u32 kinds_of_rows(const machine &m)
{
    const bool is_long = rows_of(m) > 32;
    const int kind = m.lane < rows_of(m) && !is_long ? kind_of_row(m.lane) : (int)MGL_KV_ALL;
    u32 kinds = 1u << MGL_KV_ALL;
    for (int k = MGL_KV_UNSPLIT; k <= MGL_KV_SPLIT; k++)
        if (__any_sync(0xFFFFFFFFu, is_long || kind == k))
            kinds |= 1u << k;
    return kinds;
}

/* Whether the epoch has rows of the kind (MGL_KV_...). */
static __device__ __forceinline__ bool has_rows_of(int kind)
{
    return MGL_UNSPLIT == 0 || (own().rows_kinds >> kind & 1);
}

/* Whether the task does not attend with row r, because the row is of the other kind. In epochs of
 * one row, has_rows_of decides for the whole task. */
static __device__ __forceinline__ bool leaves_out(int r)
{
    const int rows = own().att.rows;
    return MIXED && rows != MGL_KV_ALL && rows != kind_of_row(r);
}

static __device__ __forceinline__ void prepare_part(const machine &m, attention &a, int part)
{
    a.split = operand(m, part).first0;
    a.splits = operand(m, part).extent0;
    a.part = part;
    a.rows = operand(m, part).first1;
}

static __device__ __forceinline__ void prepare_now(const machine &m, attention &a, int k, int v)
{
    a.k_new = view_of(m, operand(m, k));
    a.v_new = view_of(m, operand(m, v));
    a.now = true;
}

/* A mask of rows: bit r is set if `wanted` is true in lane r. */
static __device__ __forceinline__ u32 rows_that(const machine &m, bool wanted)
{
    return __ballot_sync(0xFFFFFFFFu, m.lane < rows_of(m) && wanted);
}

/* The mask of the rows that the task attends with; bit r is row r. */
static __device__ __forceinline__ u32 attended_rows(const machine &m)
{
    return rows_that(m, !leaves_out(min(m.lane, rows_of(m) - 1)));
}

/* The positions of one row: [lo, hi) of the earlier ones; `last` is the row's own, and `end` is
 * after all positions that the task attends to. In a task that appends, hi is the first position of
 * this epoch. If the epoch has no rows of the task's kind, [lo, hi) is empty. */
struct positions {
    int lo, hi, last, end;
};

static __device__ __forceinline__ positions positions_of(const machine &m, int r)
{
    const attention &a = own().att;
    const int first = earlier_positions(r);
    positions p;
    p.last = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_POSITION];
    p.lo = 0;
    p.hi = first;
    if (!has_rows_of(a.rows))
        p.hi = 0;
    else if (a.splits > 1)
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
