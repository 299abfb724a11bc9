/*
 * head: logits of a slice of the vocabulary for the rows that want them, and the best of each row:
 * largest key (instructions/sample/sampler.h), lowest id. Consumers: consume_product.
 */
#include "vm/cuda/device/linear/finish_rows.cuh"

/* A row's best so far: of one lane's columns, then of all. */
struct best {
    u32 key; /* 0: none yet */
    float value;
    int id;
};

/* The larger key; of equal ones the lower id. */
static __device__ __forceinline__ void take_better(best &b, u32 key, float value, int id)
{
    if (key > b.key || (key == b.key && id < b.id))
        b = {key, value, id};
}

/* The best of N neighbouring lanes, in each of them. */
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
static __device__ __forceinline__ void leave_best(const machine &m, int row, const best &b)
{
    row_of(operand(m, MGL_OPERAND(head, best_value)), own().wanted[row])[0] = b.value;
    ((int *)row_of(operand(m, MGL_OPERAND(head, best_id)), own().wanted[row]))[0] = b.id;
}

/* Writes a row's pair of logits, and has the better one in b. */
static __device__ __forceinline__ void keep_pair(const mgl_device_operand &logits, const pair &p,
                                                 float first, float second, best &b)
{
    float *to = row_of(logits, own().wanted[p.row]) + p.column;
    const int id = logits.first1 + p.column;
    to[0] = first;
    take_better(b, mgl_sampler_key(first), first, id);
    if (!p.both)
        return;
    to[1] = second;
    take_better(b, mgl_sampler_key(second), second, id + 1);
}

/* Several rows: each lane keeps the best of its columns until the end. */
static __device__ __forceinline__ void finish_head_rows(machine &m, int count)
{
    const mgl_device_operand logits = operand(m, MGL_OPERAND(head, logits));
    best kept[LOOKS];
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
        kept[k] = nothing_yet();
    finish_rows(
        m, count, operand(m, MGL_OPERAND(head, x)).count[1],
        [](int, const pair &) { return make_float2(0.0f, 0.0f); },
        [&](int look, const pair &p, float scale, float2 sums, float2) {
            keep_pair(logits, p, sums.x * scale, sums.y * scale, kept[look]);
        });
#pragma unroll
    for (int k = 0; k < LOOKS; k++) {
        const best b = best_of_lanes<LANES_OF_ROW>(kept[k]);
        const int row = k * LOOK_ROWS + m.lane / LANES_OF_ROW;
        if (row < count && m.lane % LANES_OF_ROW == 0)
            leave_best(m, row, b);
    }
}

/* One row, likewise. */
static __device__ __forceinline__ void finish_head_row(machine &m)
{
    const mgl_device_operand logits = operand(m, MGL_OPERAND(head, logits));
    best kept = nothing_yet();
    finish_row(
        m, operand(m, MGL_OPERAND(head, x)).count[1], [](int) { return 0.0f; },
        [](float scale, float value, float) { return value * scale; },
        [&](int column, float first, float second, bool mine, bool both) {
            if (mine)
                keep_pair(logits, {0, column, true, both}, first, second, kept);
        });
    kept = best_of_lanes<32>(kept);
    if (m.lane == 0)
        leave_best(m, 0, kept);
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
