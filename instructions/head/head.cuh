/*
 * head: logits of a slice of the vocabulary for the rows that want them, and the best of each row:
 * largest key (instructions/sample/sampler.h), lowest id. Operands x, g; logits, best_value, best_id.
 *
 * A thread sees the values of one row alone (linear.cuh), so it keeps one best; lanes with the same
 * row merge by shuffles, then the warps in shared memory.
 */
#include "vm/cuda/device/linear.cuh"

struct best {
    float value;
    int id;
};

static __device__ __forceinline__ bool is_better(const best &a, const best &b)
{
    u32 x = mgl_sampler_key(a.value), y = mgl_sampler_key(b.value);
    return x > y || (x == y && a.id < b.id);
}

/* The rows that want logits, in order. */
static __device__ void find_wanted(machine &m)
{
    if (m.tid == 0) {
        int count = 0;
        for (int r = 0; r < rows_of(m); r++)
            if (m.s->table[r * MGL_TABLE_WORDS + MGL_TABLE_WANT] != MGL_WANT_NOTHING)
                m.s->wanted[count++] = r;
        m.s->wanted_count = count;
    }
    consumer_barrier();
}

/* Merges the threads' bests; `rows` is what the thread's row number counts modulo. */
static __device__ void store_best(machine &m, best mine, int count, int rows)
{
    const mgl_device_operand &values = operand(m, 3), &ids = operand(m, 4);
    best *all = (best *)m.s->partial; /* (warps, rows) */
    for (int offset = 16; offset >= rows; offset >>= 1) {
        best other;
        other.value = __shfl_xor_sync(0xFFFFFFFFu, mine.value, offset);
        other.id = __shfl_xor_sync(0xFFFFFFFFu, mine.id, offset);
        if (is_better(other, mine))
            mine = other;
    }
    if (m.lane < rows)
        all[m.warp * rows + m.lane] = mine;
    consumer_barrier();
    if (m.tid < count) {
        best top = all[m.tid];
        for (int w = 1; w < MGL_WARPS; w++)
            if (is_better(all[w * rows + m.tid], top))
                top = all[w * rows + m.tid];
        int r = m.s->wanted[m.tid];
        row_of(values, r)[0] = top.value;
        ((int *)row_of(ids, r))[0] = top.id;
    }
}

static __device__ void op_head(machine &m)
{
    const mgl_device_operand &logits = operand(m, 2);
    input in = input_of(m, true);
    int column = 0;
    best mine = {__uint_as_float(0x7FFFFFFFu), 0x7FFFFFFF}; /* a NaN: worse than all */
    find_wanted(m);
    in.map = m.s->wanted;
    in.count = m.s->wanted_count;
    prepare(m, in);
    for (int i = 0; i < m.task->segments; i++) {
        linear(m, in, segment(m, i), [&](int o, int j, float value) {
            best next = {value, logits.first1 + column + o};
            row_of(logits, in.map[j])[column + o] = value;
            if (is_better(next, mine))
                mine = next;
        });
        column += segment(m, i).rows;
    }
    if (in.count > 0)
        store_best(m, mine, in.count, round_rows(in));
}
