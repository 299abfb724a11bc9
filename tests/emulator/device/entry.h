/*
 * Describes the kernel to the engine. The emulator puts this header after the kernel's last source.
 */
#include <cstddef>
#include <cstdio>

#include "vm/cuda/device/record.h"

static void emu_run(const void *launch)
{
    megalith(*(const mgl_device_launch *)launch);
}

#undef MGL_NAMED_OPS /* every op has a name here */

/* The block's tasks: the previous, the current and the next. */
static void emu_describe_block(const unsigned char *memory, char *to, size_t length)
{
    static const char *const names[] = {
#define MGL_OP(id, name, ...) #name,
#include "instructions/ops.def"
    };
    const shared &own = *(const shared *)memory;
    size_t n = (size_t)snprintf(to, length, "has records of");
    for (int i = 0; i < RECORDS; i++) {
        const mgl_record *record = (const mgl_record *)own.record[i];
        if ((unsigned)record->op < OP_COUNT && n < length)
            n += (size_t)snprintf(to + n, length - n, " task %d (%s)", record->task,
                                  names[record->op]);
    }
}

static void emu_describe_warp(int warp, char *to, size_t length)
{
    static const char *const others[MGL_OTHER_WARPS] = {"epilogue", "loader", "landing",
                                                        "controller"};
    if (warp >= EPILOGUE)
        snprintf(to, length, "%s", others[warp - EPILOGUE]);
    else
        snprintf(to, length, "consumer %d", warp);
}

extern "C" const emu_kernel emu_the_kernel = {emu_run,
                                              emu_describe_block,
                                              emu_describe_warp,
                                              BLOCK_THREADS,
                                              true,
                                              sizeof(shared),
                                              MGL_SHARED,
                                              offsetof(shared, empty),
                                              offsetof(shared, empty) + sizeof(shared::empty)};
