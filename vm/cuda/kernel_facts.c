/*
 * Derives compile-time facts of a program's kernel (encode.h): the ops, variants
 * (schedule/variants.def) and optional operands that tasks use, whether an architecture supports
 * the variants, and byte counts in pages.
 */
#include <string.h>

#include "schedule/variant_shapes.h"
#include "schedule/variants.h"
#include "vm/cuda/encode.h"

uint32_t mgl_cuda_variants(const mgl_program *program, mgl_family family, const char *arch)
{
    const int number = mgl_arch_number(arch);
    uint32_t named = program->second ? mgl_cuda_variants(program->second, family, arch) : 0;
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
        if (task->variant == MGL_VARIANT_WARPGROUPS && strcmp(arch, MGL_WARPGROUP_ARCH) != 0)
            return mgl_fail(err, MGL_BAD_INPUT, "target",
                            "the schedule names %s.%s, which is for %s alone, and this device is "
                            "%s: lower the model for it",
                            mgl_op_get(task->op)->name, variant->name, MGL_WARPGROUP_ARCH, arch);
    }
    return program->second ? mgl_cuda_check_arch(program->second, arch, err) : MGL_OK;
}

bool mgl_cuda_streams_kv(const mgl_program *program, const char *arch)
{
    return mgl_cuda_variants(program, MGL_FAMILY_ATTENTION, arch) >> MGL_VARIANT_RING & 1;
}

bool mgl_cuda_swizzles_kv(const mgl_program *program, const char *arch)
{
    return MGL_KV_SWIZZLED(program->geometry.head_dim) && mgl_cuda_streams_kv(program, arch);
}

static bool any_extra(const mgl_program *program, bool attention)
{
    if (program->second && any_extra(program->second, attention))
        return true;
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        const int extra =
            attention ? task->in.count - mgl_op_get(task->op)->in_count : mgl_task_biases(task);
        if (mgl_op_attends(task->op) == attention && extra > 0)
            return true;
    }
    return false;
}

bool mgl_cuda_has_biases(const mgl_program *program)
{
    return any_extra(program, false);
}

bool mgl_cuda_has_merges(const mgl_program *program)
{
    bool has = program->second && mgl_cuda_has_merges(program->second);
    for (int i = 0; i < program->task_count; i++)
        has |= program->tasks[i].op == MGL_OP_MERGE_ADD;
    return has;
}

bool mgl_cuda_has_draws(const mgl_program *program)
{
    bool has = program->second && mgl_cuda_has_draws(program->second);
    for (int i = 0; i < program->task_count; i++)
        has |= program->tasks[i].op == MGL_OP_DRAW;
    return has;
}

/* The index of a format in `formats`; `count` if the list does not contain the format. */
static int index_of(mgl_weight_format format, const mgl_weight_format *formats, int count)
{
    int i = 0;
    while (i < count && !mgl_weight_format_equal(format, formats[i]))
        i++;
    return i;
}

int mgl_cuda_formats(const mgl_program *program, mgl_weight_format out[MGL_CUDA_FORMATS])
{
    mgl_weight_format all[MGL_CUDA_FORMATS + 1];
    int count = 0;
    for (int i = 0; i < program->tensor_count && count <= MGL_CUDA_FORMATS; i++) {
        const mgl_program_tensor *t = &program->tensors[i];
        if (t->rank == 2 && mgl_weight_format_is_scaled(t->format) &&
            index_of(t->format, all, count) == count)
            all[count++] = t->format;
    }
    memcpy(out, all, (size_t)(count < MGL_CUDA_FORMATS ? count : MGL_CUDA_FORMATS) * sizeof *out);
    return count;
}

/* mgl_cuda_format_of, with the `count` formats of mgl_cuda_formats. */
static int format_of(const mgl_program *program, const mgl_task *task,
                     const mgl_weight_format *formats, int count)
{
    if (task->segments.count == 0)
        return 0;
    const mgl_weight_format own =
        mgl_segment_format(program, &program->segments[task->segments.first]);
    return mgl_weight_format_is_scaled(own) ? 1 + index_of(own, formats, count) : 0;
}

/* mgl_cuda_formats, without the formats that do not fit. */
static int first_formats(const mgl_program *program, mgl_weight_format out[MGL_CUDA_FORMATS])
{
    const int count = mgl_cuda_formats(program, out);
    return count < MGL_CUDA_FORMATS ? count : MGL_CUDA_FORMATS;
}

int mgl_cuda_format_of(const mgl_program *program, const mgl_task *task)
{
    mgl_weight_format formats[MGL_CUDA_FORMATS];
    return format_of(program, task, formats, first_formats(program, formats));
}

uint32_t mgl_cuda_inputs(const mgl_program *program, int number)
{
    const mgl_geometry *m = &program->geometry;
    mgl_weight_format formats[MGL_CUDA_FORMATS];
    const int count = first_formats(program, formats);
    uint32_t inputs = program->second ? mgl_cuda_inputs(program->second, number) : 0;
    for (int i = 0; i < program->task_count; i++) {
        const mgl_task *task = &program->tasks[i];
        if (mgl_op_get(task->op)->family != MGL_FAMILY_PRODUCT ||
            format_of(program, task, formats, count) != number)
            continue;
        const int64_t columns = mgl_task_inputs(program, task);
        const int width = columns == m->hidden                         ? 0
                          : columns == (int64_t)m->heads * m->head_dim ? 1
                                                                       : 2;
        const int kind = mgl_product_is_parted(program, task)      ? MGL_INPUT_PARTS
                         : mgl_product_takes_digits(program, task) ? MGL_INPUT_DIGITS
                                                                   : MGL_INPUT_HALF;
        inputs |= UINT32_C(1) << MGL_CUDA_INPUT(width, kind);
    }
    return inputs;
}

bool mgl_cuda_has_norms(const mgl_program *program)
{
    return any_extra(program, true);
}

uint32_t mgl_cuda_pages(const mgl_program *program, int bytes)
{
    const int pages = bytes / program->exec.page_bytes;
    return (uint32_t)(bytes > 0 && pages == 0 ? 1 : pages);
}

uint32_t mgl_cuda_ring_pages(const mgl_program *program, int bytes)
{
    const uint32_t most = (uint32_t)program->exec.ring_pages - 1;
    const uint32_t pages = mgl_cuda_pages(program, bytes);
    return pages < most ? pages : most;
}
