/* linear_add: y = b + a W^T, and a copy of it rounded; y may be b, element for element. Operands a, b;
 * y, copy. */
#include "vm/cuda/device/finish.cuh"

static __device__ __forceinline__ void prepare_linear_add(const machine &m)
{
    prepare_input(m, false, rows_of(m), nullptr);
}

static __device__ __forceinline__ void finish_linear_add(machine &m)
{
    const view b = view_of(m, operand(m, 1)), y = view_of(m, operand(m, 2));
    const view copy = view_of(m, operand(m, task_of(m)->outputs > 1 ? 3 : 2));
    const bool copies = task_of(m)->outputs > 1;
    const int count = rows_of(m), width = operand(m, 2).count[1];
    const int lane_column = count == 1 ? m.lane & ~1 : (m.lane & 15) * 2;
    const int lane_row = count == 1 ? 0 : m.lane >> 4;
    u64 policy = keep_policy();
    /* the first chunk's residual is asked for before its sums are there */
    float2 ahead = {0.0f, 0.0f};
    if (lane_row < count && lane_column < width) {
        ahead.x = load_element(b, lane_row, lane_column);
        if (lane_column + 1 < width)
            ahead.y = load_element(b, lane_row, lane_column + 1);
    }
    finish_linear(
        m, count, 0, [&](float, float value) { return value; },
        [&](int r, int column, float first, float second, bool both) {
            bool is_ahead = column == lane_column && r == lane_row;
            first += is_ahead ? ahead.x : load_element(b, r, column);
            if (both)
                second += is_ahead ? ahead.y : load_element(b, r, column + 1);
            if (copies) /* first: others wait for it */
                store_pair(copy, r, column, first, second, both, policy);
            store_pair(y, r, column, first, second, both, policy);
        });
}
