/* linear_add: y = b + a W^T, and a copy of it rounded; y may be b, element for element. Operands a, b;
 * y, copy. */
#include "vm/cuda/device/linear.cuh"

static __device__ __forceinline__ void prepare_linear_add(const machine &m)
{
    prepare_input(m, false, rows_of(m), nullptr);
}

static __device__ __forceinline__ void finish_linear_add(machine &m)
{
    const view b = view_of(m, operand(m, 1)), y = view_of(m, operand(m, 2));
    const view copy = view_of(m, operand(m, task_of(m)->outputs > 1 ? 3 : 2));
    const bool copies = task_of(m)->outputs > 1;
    const int count = rows_of(m), lane_column = (m.lane & 15) * 2, lane_row = m.lane >> 4;
    u64 policy = keep_policy();
    /* the first chunk's residual is asked for before its sums are there */
    float2 ahead = {0.0f, 0.0f};
    if (lane_row < count && lane_column < operand(m, 2).count[1]) {
        ahead.x = load_element(b, lane_row, lane_column);
        if (lane_column + 1 < operand(m, 2).count[1])
            ahead.y = load_element(b, lane_row, lane_column + 1);
    }
    finish_linear(
        m, count, 0, [&](int, float value) { return value; },
        [&](int column, int n) {
            flush(m, count, n, [&](int r, int i, float first, float second, bool both) {
                bool is_ahead = column == 0 && r == lane_row;
                first += is_ahead ? ahead.x : load_element(b, r, column + i);
                if (both)
                    second += is_ahead ? ahead.y : load_element(b, r, column + i + 1);
                if (copies) /* first: others wait for it */
                    store_pair(copy, r, column + i, first, second, both, policy);
                store_pair(y, r, column + i, first, second, both, policy);
            });
        });
}
