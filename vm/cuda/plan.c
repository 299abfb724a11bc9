/*
 * What the host derives from the variants that a program names (schedule/variants.def): which code
 * the kernel is compiled with, and whether the machine at hand has it.
 */
#include "schedule/variants.h"
#include "schedule/ways.h"
#include "vm/cuda/encode.h"

uint32_t mgl_cuda_variants(const mgl_program *program, mgl_family family, const char *arch)
{
    const int number = mgl_arch_number(arch);
    uint32_t named = 0;
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        if (mgl_op_get(task->op)->family == family &&
            number >= mgl_variant_get(task->variant)->arch)
            named |= UINT32_C(1) << task->variant;
    }
    return named;
}

mgl_status mgl_cuda_check_arch(const mgl_program *program, const char *arch, mgl_error *err)
{
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        const mgl_variant_info *variant = mgl_variant_get(task->variant);
        if (mgl_arch_number(arch) < variant->arch)
            return mgl_fail(
                err, MGL_BAD_INPUT, "target",
                "the schedule names %s.%s, which is for sm_%d and newer, and this device "
                "is %s: lower the model for it",
                mgl_op_get(task->op)->name, variant->name, variant->arch, arch);
    }
    return MGL_OK;
}

bool mgl_cuda_streams_kv(const mgl_program *program, const char *arch)
{
    return mgl_cuda_variants(program, MGL_FAMILY_ATTENTION, arch) >> MGL_VARIANT_RING & 1;
}

bool mgl_cuda_swizzles_kv(const mgl_program *program, const char *arch)
{
    return MGL_KV_SWIZZLED(program->geometry.head_dim) && mgl_cuda_streams_kv(program, arch);
}
