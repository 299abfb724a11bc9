/*
 * head: logits of a slice of the vocabulary for the rows that want them, and the best of each row:
 * largest key (instructions/sample/sampler.h), lowest id. Operands x, g; logits, best_value, best_id.
 */
#include "vm/cuda/device/finish.cuh"

static __device__ __forceinline__ void prepare_head(const machine &m)
{
    prepare_input(m, true, own().wanted_count, own().wanted);
}

/* Takes n columns of out, the first of them vocabulary row `id`, into the running best. */
static __device__ __forceinline__ void keep_best(machine &m, int count, int id, int n)
{
    for (int r = 0; r < count; r++) {
        float value = own().out[r * CHUNK + m.lane];
        u32 key = m.lane < n ? mgl_sampler_key(value) : 0;
        u32 top = __reduce_max_sync(0xFFFFFFFFu, key);
        int first = __ffs(__ballot_sync(0xFFFFFFFFu, key == top)) - 1;
        if (top > mgl_sampler_key(own().best_value[r]) && m.lane == first) {
            own().best_value[r] = value;
            own().best_id[r] = id + m.lane;
        }
        __syncwarp();
    }
}

static __device__ __forceinline__ void finish_head(machine &m)
{
    const mgl_device_operand &logits = operand(m, 2), &values = operand(m, 3), &ids = operand(m, 4);
    int count = own().wanted_count;
    if (m.lane < count) {
        own().best_value[m.lane] = __uint_as_float(0x7FFFFFFFu); /* a NaN: worse than all */
        own().best_id[m.lane] = 0x7FFFFFFF;
    }
    finish_chunks(
        m, count, operand(m, 0).count[1], [&](float scale, float value) { return value * scale; },
        [&](int column, int n) {
            __syncwarp();
            for (int r = 0; r < count; r++)
                if (m.lane < n)
                    row_of(logits, own().wanted[r])[column + m.lane] =
                        own().out[r * CHUNK + m.lane];
            keep_best(m, count, logits.first1 + column, n);
        });
    if (m.lane < count) {
        int r = own().wanted[m.lane];
        row_of(values, r)[0] = own().best_value[m.lane];
        ((int *)row_of(ids, r))[0] = own().best_id[m.lane];
    }
    __syncwarp();
}
