/* linear_add: y = b + a W^T, and a copy of it rounded; y may be b, element for element. Operands a, b;
 * y, copy. */
#include "vm/cuda/device/finish_rows.cuh"

static __device__ __forceinline__ void prepare_linear_add(const machine &m)
{
    prepare_input(m, false, rows_of(m), nullptr);
}

/* Several rows: the residual is asked for before the sums are there. */
static __device__ __forceinline__ void finish_add_rows(machine &m, int count, const view &b,
                                                       const view &y, const view &copy, bool copies)
{
    const u64 policy = keep_policy();
    finish_rows(
        m, count, 0,
        [&](const pair &p) {
            return make_float2(load_element(b, p.row, p.column),
                               p.both ? load_element(b, p.row, p.column + 1) : 0.0f);
        },
        [&](int, const pair &p, float, float2 sums, float2 before) {
            const float first = sums.x + before.x, second = sums.y + before.y;
            if (copies) /* first: others wait for it */
                store_pair(copy, p.row, p.column, first, second, p.both, policy);
            store_pair(y, p.row, p.column, first, second, p.both, policy);
        });
}

/* One row: each lane has the residual of its column of the first chunk before its sum is there. */
static __device__ __forceinline__ void finish_add_row(machine &m, const view &b, const view &y,
                                                      const view &copy, bool copies, int width)
{
    const u64 policy = keep_policy();
    const int lane = m.lane;
    const float ahead = lane < width ? load_element(b, 0, lane) : 0.0f;
    finish_row(
        m, 0,
        [&](float, float value, int column) {
            return column == lane   ? ahead + value
                   : column < width ? load_element(b, 0, column) + value
                                    : 0.0f;
        },
        [&](int, int column, float first, float second, bool both) {
            if (copies) /* first: others wait for it */
                store_pair(copy, 0, column, first, second, both, policy);
            store_pair(y, 0, column, first, second, both, policy);
        });
}

static __device__ __forceinline__ void finish_linear_add(machine &m)
{
    const view b = view_of(m, operand(m, 1)), y = view_of(m, operand(m, 2));
    const view copy = view_of(m, operand(m, task_of(m)->outputs > 1 ? 3 : 2));
    const bool copies = task_of(m)->outputs > 1;
    const int count = rows_of(m);
    if (has_rows(count))
        return finish_add_rows(m, count, b, y, copy, copies);
    if (count == 1)
        finish_add_row(m, b, y, copy, copies, operand(m, 2).count[1]);
}
