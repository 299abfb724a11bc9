# The head's epilogue of one row, plainly: the best so far stands in memory, and all lanes look at it behind each pair
# of columns; what lanes have goes down to the first, which tells the others.
/region: device/,/region: end/ {
    /^template <int N> .* best best_of_lanes(best b)$/,/^}$/ {
        s/for (int offset = 1; offset < N; offset \*= 2) {/for (int offset = N \/ 2; offset > 0; offset \/= 2) {/
        s/__shfl_xor_sync(\(.*\), offset)/__shfl_down_sync(\1, offset, N)/
        s/^    return b;/    b.key = __shfl_sync(0xFFFFFFFFu, b.key, 0, N);\
    b.value = __shfl_sync(0xFFFFFFFFu, b.value, 0, N);\
    b.id = __shfl_sync(0xFFFFFFFFu, b.id, 0, N);\
    return b;/
    }
    /^static .* void finish_head_row(machine &m)$/,/^}$/ c\
/* The best of the row's columns so far, of which the first are `begun`. */\
static __device__ __forceinline__ void raise_best(const machine &m, best now, bool begun)\
{\
    const int row = own().wanted[0];\
    const volatile float *value = row_of(operand(m, MGL_OPERAND(head, best_value)), row);\
    const volatile int *id = (const int *)row_of(operand(m, MGL_OPERAND(head, best_id)), row);\
    now = best_of_lanes<32>(now);\
    if (begun) {\
        const float before = value[0];\
        take_better(now, mgl_sampler_key(before), before, id[0]);\
    }\
    __syncwarp();\
    if (m.lane == 0)\
        write_best(m, 0, now);\
    __syncwarp();\
}\
\
/* One row. */\
static __device__ __forceinline__ void finish_head_row(machine &m)\
{\
    const head_results results = results_of(m);\
    bool begun = false;\
    finish_row(\
        m, operand(m, MGL_OPERAND(head, x)).count[1], [](int) { return 0.0f; },\
        [](float scale, float value, float) { return value * scale; },\
        [&](int column, float first, float second, bool mine, bool both) {\
            best now = nothing_yet();\
            if (mine)\
                keep_pair(results, {0, column, true, both}, first, second, now);\
            raise_best(m, now, begun);\
            begun = true;\
        });\
}
}
