/*
 * The entry of the benchmark's kernels for the engine, put after their last source. Lanes that fill
 * the last warp are not threads of the block.
 */
#define MGL_X(id, name, block)                                                                     \
    static void emu_run_##name(const void *argument)                                               \
    {                                                                                              \
        if (threadIdx.x < emu_the_grid.threads)                                                    \
            name(*(const block *)argument);                                                        \
    }
MGL_BENCH_KERNELS(MGL_X)
#undef MGL_X

extern "C" const emu_plain_kernel emu_plain_kernels[] = {
#define MGL_X(id, name, block) {#name, emu_run_##name, sizeof(block), &emu_the_grid},
    MGL_BENCH_KERNELS(MGL_X)
#undef MGL_X
        {nullptr, nullptr, 0, nullptr}};
