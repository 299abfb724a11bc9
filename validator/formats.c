/*
 * MG708, MG711 and the verdict's formats: number formats are part of what a program computes. A
 * program packs weights, exchanges activations and keeps the cache in its own formats. The same
 * tasks in another format are another computation: the largest f16 is 65504, while bf16 reaches
 * 3e38; bf16 has 8 significant bits, f16 has 11.
 *
 * A format is lossy if it cannot hold every number of the checkpoint's format. Lossy formats are
 * often chosen on purpose, so they are a fault only if the caller asks for strict formats.
 */
#include "validator/check.h"

#include "base/assert.h"
#include <stdio.h>
#include <string.h>

/* Bits of the significand, including the implicit bit, and of the exponent. */
static const struct {
    int digits, exponent;
} shapes[MGL_DTYPE_COUNT] = {[MGL_F32] = {24, 8}, [MGL_BF16] = {8, 8}, [MGL_F16] = {11, 5}};

static bool holds(mgl_dtype format, mgl_dtype other)
{
    return shapes[format].digits >= shapes[other].digits &&
           shapes[format].exponent >= shapes[other].exponent;
}

static unsigned bit(mgl_dtype format)
{
    return 1u << format;
}

static void print(const char *name, char to[MGL_FORMATS_TEXT])
{
    size_t length = strlen(to);
    snprintf(to + length, MGL_FORMATS_TEXT - length, "%s%s", length ? " and " : "", name);
}

const char *mgl_formats_print_weights(unsigned formats, char to[MGL_FORMATS_TEXT])
{
    to[0] = 0;
    for (int i = 0; i < MGL_CODE_COUNT; i++)
        if (formats & 1u << i)
            print(mgl_weight_code_name((mgl_weight_code)i), to);
    return to;
}

const char *mgl_formats_print(unsigned dtypes, char to[MGL_FORMATS_TEXT])
{
    to[0] = 0;
    for (int i = 0; i < MGL_DTYPE_COUNT; i++)
        if (dtypes & bit((mgl_dtype)i))
            print(mgl_dtype_name((mgl_dtype)i), to);
    return to;
}

/* The dtype that the weights of a tensor are decoded to. */
static mgl_dtype numbers_of(const mgl_program_tensor *tensor)
{
    return mgl_weight_code_get(tensor->format.code)->numbers;
}

/* The checkpoint's tensor of a tensor of the program. */
static const mgl_tensor *stored_tensor(const mgl_check *check, int tensor)
{
    return &check->graph->tensors[check->graph_tensor[tensor]];
}

static void list(mgl_check *check)
{
    const mgl_program *p = check->program;
    mgl_formats *formats = &check->verdict->formats;
    for (int i = 0; i < p->segment_count; i++)
        formats->weights |= 1u << mgl_segment_format(p, &p->segments[i]).code;
    for (int i = 0; i < p->tensor_count; i++) {
        MGL_ASSERT(!check->graph || check->graph_tensor[i] >= 0); /* otherwise MG702 was reported */
        if (check->graph && !mgl_tensor_is_quantized(stored_tensor(check, i)))
            formats->checkpoint |= bit(stored_tensor(check, i)->dtype);
    }
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].space == MGL_SPACE_ACT)
            formats->exchange |= bit(p->buffers[i].dtype);
        else if (p->buffers[i].space == MGL_SPACE_KV)
            formats->cache |= bit(p->buffers[i].dtype);
        else if (p->buffers[i].source == MGL_SOURCE_TENSOR && p->buffers[i].rank == 2)
            formats->embedding |= bit(p->buffers[i].dtype);
}

/* Compares one of the program's formats with the checkpoint's. Only the first loss of a kind is
 * reported. */
static void compare(mgl_check *check, const char *kind, const char *name, int line,
                    mgl_dtype format, mgl_dtype checkpoint, bool *told)
{
    if (holds(format, checkpoint))
        return;
    check->verdict->formats.lossy = true;
    if (!check->strict_formats || *told)
        return;
    *told = true;
    mgl_check_report(check, 708, -1, line,
                     "%s %.64s is %s, which cannot hold every number of the checkpoint's %s", kind,
                     name, mgl_dtype_name(format), mgl_dtype_name(checkpoint));
}

/* A quantized tensor is on the tape as the checkpoint stores it, or decoded to f32: any other
 * format would quantize its values, or quantize them again. */
static void check_quantized(mgl_check *check, const mgl_program_tensor *t, const mgl_tensor *stored)
{
    char own[MGL_WEIGHT_FORMAT_TEXT], wanted[MGL_WEIGHT_FORMAT_TEXT];
    const bool same = mgl_weight_format_equal(t->format, mgl_tensor_format(stored));
    const bool scaled = mgl_weight_format_is_scaled(t->format);
    if (same || (!scaled && !mgl_tensor_is_quantized(stored)) ||
        mgl_weight_format_is(t->format, MGL_F32))
        return;
    mgl_check_report(check, 711, -1, t->line,
                     "tensor %.64s is %s, but the checkpoint stores it as %s; a program keeps the "
                     "stored format, or decodes it to f32",
                     t->name, mgl_weight_format_print(t->format, own),
                     mgl_weight_format_print(mgl_tensor_format(stored), wanted));
}

/* MG711: a tensor in a scaled format has a column map if and only if the checkpoint reorders its
 * columns, because its tape has the columns group by group. The CPU machine checks that the map is
 * a permutation. */
static void check_order(mgl_check *check, const mgl_program_tensor *t, const mgl_tensor *stored)
{
    const bool wanted = stored->reordered && mgl_weight_format_is_scaled(t->format);
    if (wanted == (t->order >= 0))
        return;
    mgl_check_report(check, 711, -1, t->line,
                     wanted
                         ? "tensor %.64s: the checkpoint reorders its columns, so its products "
                           "need a column map (`order`)"
                         : "tensor %.64s has a column map (`order`), but the checkpoint does not "
                           "reorder its columns",
                     t->name);
}

void mgl_check_formats(mgl_check *check)
{
    const mgl_program *p = check->program;
    const mgl_graph *graph = check->graph;
    bool tensor_told = false, buffer_told = false, cache_told = false;
    list(check);
    for (int i = 0; i < p->tensor_count && graph; i++) {
        const mgl_program_tensor *t = &p->tensors[i];
        const mgl_tensor *stored = stored_tensor(check, i);
        check_quantized(check, t, stored);
        check_order(check, t, stored);
        compare(check, "tensor", t->name, t->line, numbers_of(t), stored->dtype, &tensor_told);
    }
    for (int i = 0; i < p->buffer_count && graph; i++) {
        const mgl_buffer *b = &p->buffers[i];
        if (b->space == MGL_SPACE_ACT)
            compare(check, "buffer", b->name, b->line, b->dtype, graph->dtype, &buffer_told);
        else if (b->space == MGL_SPACE_KV)
            compare(check, "cache", b->name, b->line, b->dtype, graph->dtype, &cache_told);
    }
}
