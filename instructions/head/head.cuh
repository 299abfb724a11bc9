/*
 * head: logits of a slice of the vocabulary for the rows that want them, and the best of each row:
 * largest key (instructions/sample/sampler.h), lowest id. The consumers run consume_product,
 * and the epilogue warp runs finish_head.
 */
#ifndef MGL_INSTRUCTIONS_HEAD_CUH
#define MGL_INSTRUCTIONS_HEAD_CUH

#include "vm/cuda/device/linear/finish_rows.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* The outputs of a task for each logit, and with penalties their inputs. */
struct head_results {
    mgl_device_operand logits;
#if MGL_PENALTIES
    mgl_device_operand penalized, counts, sequence;
#endif
};

/* region: device */
static __device__ __forceinline__ head_results results_of(const machine &m)
{
#if MGL_PENALTIES
    return {operand(m, MGL_OPERAND(head, logits)), operand(m, MGL_OPERAND(head, penalized)),
            operand(m, MGL_OPERAND(head, counts)), operand(m, MGL_OPERAND(head, sequence))};
#else
    return {operand(m, MGL_OPERAND(head, logits))};
#endif
}

/* The logit of a row and a column of the task used for the choice. With penalties, applies those
 * of the row's sequence and stores the result. */
static __device__ __forceinline__ float penalize(const head_results &to, int row, int column,
                                                 float logit)
{
#if MGL_PENALTIES
    const int s = own().table[row * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE];
    const int *q = (const int *)row_of(to.sequence, s);
    const mgl_penalties p = {__int_as_float(q[MGL_SEQUENCE_REPEAT]),
                             __int_as_float(q[MGL_SEQUENCE_PRESENCE]),
                             __int_as_float(q[MGL_SEQUENCE_FREQUENCY])};
    logit = mgl_penalize(&p, logit, ((const int *)row_of(to.counts, s))[column]);
    row_of(to.penalized, row)[column] = logit;
#endif
    return logit;
}

/* A row's best so far, in one lane's columns, later in all columns. */
struct best {
    u32 key; /* 0: none */
    float value;
    int id;
};

/* Keeps the larger key; of equal keys the lower id. */
static __device__ __forceinline__ void take_better(best &b, u32 key, float value, int id)
{
    if (key > b.key || (key == b.key && id < b.id))
        b = {key, value, id};
}

/* The best of N adjacent lanes, returned in each of them. */
template <int N> static __device__ __forceinline__ best best_of_lanes(best b)
{
#pragma unroll
    for (int offset = 1; offset < N; offset *= 2) {
        const u32 key = __shfl_xor_sync(0xFFFFFFFFu, b.key, offset);
        const float value = __shfl_xor_sync(0xFFFFFFFFu, b.value, offset);
        take_better(b, key, value, __shfl_xor_sync(0xFFFFFFFFu, b.id, offset));
    }
    return b;
}

static __device__ __forceinline__ best nothing_yet()
{
    return {0, __uint_as_float(0x7FFFFFFFu), 0x7FFFFFFF}; /* a NaN */
}

/* Writes the best of a row. */
static __device__ __forceinline__ void write_best(const machine &m, int row, const best &b)
{
    row_of(operand(m, MGL_OPERAND(head, best_value)), own().wanted[row])[0] = b.value;
    ((int *)row_of(operand(m, MGL_OPERAND(head, best_id)), own().wanted[row]))[0] = b.id;
}

/* Writes a row's pair of logits, and updates b with the better of the penalized values. */
static __device__ __forceinline__ void keep_pair(const head_results &results, const pair &p,
                                                 float first, float second, best &b)
{
    const int row = own().wanted[p.row];
    float *to = row_of(results.logits, row) + p.column;
    const int id = results.logits.first1 + p.column;
    to[0] = first;
    first = penalize(results, row, p.column, first);
    take_better(b, mgl_sampler_key(first), first, id);
    if (!p.both)
        return;
    to[1] = second;
    second = penalize(results, row, p.column + 1, second);
    take_better(b, mgl_sampler_key(second), second, id + 1);
}

/* Several rows: each lane keeps the best of its columns until the end. */
static __device__ __forceinline__ void finish_head_rows(machine &m, int count)
{
    const head_results results = results_of(m);
    best kept[LOOKS];
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
        kept[k] = nothing_yet();
    finish_rows(
        m, count, operand(m, MGL_OPERAND(head, x)).count[1],
        [](int, const pair &) { return make_float2(0.0f, 0.0f); },
        [&](int look, const pair &p, float scale, float2 sums, float2) {
            keep_pair(results, p, sums.x * scale, sums.y * scale, kept[look]);
        });
#pragma unroll
    for (int k = 0; k < LOOKS; k++) {
        const best b = best_of_lanes<LANES_OF_ROW>(kept[k]);
        const int row = k * LOOK_ROWS + m.lane / LANES_OF_ROW;
        if (row < count && m.lane % LANES_OF_ROW == 0)
            write_best(m, row, b);
    }
}

/* One row: the same. */
static __device__ __forceinline__ void finish_head_row(machine &m)
{
    const head_results results = results_of(m);
    best kept = nothing_yet();
    finish_row(
        m, operand(m, MGL_OPERAND(head, x)).count[1], [](int) { return 0.0f; },
        [](float scale, float value, float) { return value * scale; },
        [&](int column, float first, float second, bool mine, bool both) {
            if (mine)
                keep_pair(results, {0, column, true, both}, first, second, kept);
        });
    kept = best_of_lanes<32>(kept);
    if (m.lane == 0)
        write_best(m, 0, kept);
}

static __device__ __forceinline__ void prepare_head(const machine &m)
{
    prepare_input(m, true, own().wanted_count, own().wanted);
}

static __device__ __forceinline__ bool finish_head(machine &m)
{
    if (own().wanted_count <= 0)
        return false;
    if (has_rows(own().wanted_count))
        finish_head_rows(m, own().wanted_count);
    else
        finish_head_row(m);
    __syncwarp();
    return true;
}

/* region: end */

#endif
