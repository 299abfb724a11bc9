/* Makes the plan of a quantized checkpoint. See plan.h. */
#include "quantize/plan.h"

#include "base/json_out.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mgl_quantize_module(const char *tensor, char module[MGL_MODULE_NAME])
{
    const char *point = strrchr(tensor, '.');
    const size_t length = point ? (size_t)(point - tensor) : strlen(tensor);
    snprintf(module, MGL_MODULE_NAME, "%.*s", (int)length, tensor);
}

/* ---- which tensors are quantized ------------------------------------------------------------- */

static const mgl_stored_tensor *stored_of(const mgl_quantize_plan *plan, int index)
{
    return &plan->files->tensors.items[index];
}

/* Rejects a matrix that the format cannot hold. */
static mgl_status check_matrix(const mgl_stored_tensor *t, mgl_weight_format format, mgl_error *err)
{
    if (!t->usable || t->rank != 2 || !mgl_text_ends(t->name, ".weight"))
        return mgl_fail(err, MGL_BAD_INPUT, t->name,
                        "a tensor of dtype %s and rank %d cannot be quantized; supported: matrices "
                        "of F32, F16 and BF16",
                        t->stored_dtype, t->rank);
    if (format.code != MGL_CODE_E4M3 && t->shape[1] % 8)
        return mgl_fail(err, MGL_BAD_INPUT, t->name,
                        "a matrix of %" PRId64 " columns cannot be packed; supported: multiples "
                        "of 8; use --bits fp8",
                        t->shape[1]);
    return MGL_OK;
}

static mgl_status take_matrix(mgl_quantize_plan *plan, int index, const mgl_quantize_request *r,
                              bool is_head, mgl_error *err)
{
    mgl_planned_source *s = &plan->sources[index];
    s->quantized = true;
    s->is_head = is_head;
    s->format = is_head ? r->head : r->layers;
    if (r->own_scales)
        s->format.scales = stored_of(plan, index)->dtype;
    return check_matrix(stored_of(plan, index), s->format, err);
}

/* A tied head becomes a matrix of its own, made of the embedding. */
static mgl_status take_tied_head(mgl_quantize_plan *plan, const mgl_quantize_request *r,
                                 mgl_error *err)
{
    const mgl_stored_tensor *table = stored_of(plan, plan->embedding);
    const int copy = mgl_safetensors_find(plan->files, MGL_TENSOR_HEAD);
    if (strcmp(table->name, MGL_TENSOR_EMBEDDING) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, table->name,
                        "the head is tied to this tensor, and its own name in this architecture is "
                        "not known; use --head keep");
    if (copy >= 0)
        plan->sources[copy].dropped = true;
    plan->untied = plan->sources[plan->embedding].copied = true;
    return take_matrix(plan, plan->embedding, r, true, err);
}

static mgl_status choose_matrices(mgl_quantize_plan *plan, const mgl_quantize_request *r,
                                  mgl_error *err)
{
    const mgl_graph *graph = plan->checkpoint->graph;
    mgl_status status = MGL_OK;
    plan->keeps_head = !mgl_weight_format_is_scaled(r->head);
    for (int i = 0; i < graph->tensor_count && !status; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        const char *name = mgl_checkpoint_stored_name(plan->checkpoint, i);
        const int index = mgl_safetensors_find(plan->files, name);
        const bool is_head = !strcmp(t->name, MGL_TENSOR_HEAD);
        if (index < 0)
            status = mgl_fail(err, MGL_BAD_INPUT, name, "the tensor is missing now; start again");
        else if (!strcmp(t->name, MGL_TENSOR_EMBEDDING))
            plan->embedding = index;
        else if (t->rank == 2 && !(is_head && plan->keeps_head))
            status = take_matrix(plan, index, r, is_head, err);
    }
    if (!status && graph->tied && !plan->keeps_head)
        status = take_tied_head(plan, r, err);
    return status;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Whether groups of `group` columns divide all matrices with this group in their format. */
static bool divides(const mgl_quantize_plan *plan, int32_t of, int32_t group)
{
    for (size_t i = 0; i < plan->files->tensors.count; i++) {
        const mgl_planned_source *s = &plan->sources[i];
        if (s->quantized && s->format.group == of && stored_of(plan, (int)i)->shape[1] % group)
            return false;
    }
    return true;
}

static mgl_status check_groups(const mgl_quantize_plan *plan, mgl_error *err)
{
    for (size_t i = 0; i < plan->files->tensors.count; i++) {
        const mgl_planned_source *s = &plan->sources[i];
        const mgl_stored_tensor *t = stored_of(plan, (int)i);
        int32_t group = s->format.group;
        if (!s->quantized || group == MGL_GROUP_ALL || t->shape[1] % group == 0)
            continue;
        while (group && !divides(plan, s->format.group, group))
            group -= MGL_GROUP_UNIT;
        if (group)
            return mgl_fail(err, MGL_BAD_INPUT, t->name,
                            "%" PRId64 " columns are not a multiple of the group: %d; use "
                            "groups of %d columns",
                            t->shape[1], (int)s->format.group, (int)group);
        return mgl_fail(err, MGL_BAD_INPUT, t->name,
                        "%" PRId64 " columns are not a multiple of a group of 16 columns; use "
                        "--bits 8 or --bits fp8 without --group",
                        t->shape[1]);
    }
    return MGL_OK;
}

/* ---- tensors of the new folder --------------------------------------------------------------- */

static mgl_status add(mgl_quantize_plan *plan, const mgl_planned_tensor *tensor, mgl_error *err)
{
    for (size_t i = 0; i < plan->count && tensor->name; i++)
        if (!strcmp(plan->tensors[i].name, tensor->name)) {
            mgl_status status =
                mgl_fail(err, MGL_BAD_INPUT, tensor->name,
                         "the model stores a tensor with the name of a part of a quantized matrix; "
                         "remove this tensor from the model");
            mgl_free(tensor->name);
            return status;
        }
    if (!tensor->name ||
        !mgl_grow((void **)&plan->tensors, &plan->capacity, plan->count, sizeof *tensor)) {
        mgl_free(tensor->name);
        return mgl_fail_memory(err, sizeof *tensor);
    }
    plan->tensors[plan->count++] = *tensor;
    return MGL_OK;
}

static mgl_status add_copy(mgl_quantize_plan *plan, int index, mgl_error *err)
{
    const mgl_stored_tensor *t = stored_of(plan, index);
    mgl_planned_tensor to = {.name = mgl_strdup(t->name),
                             .part = MGL_PART_COPY,
                             .source = index,
                             .dtype = t->stored_dtype,
                             .rank = t->rank,
                             .bytes = t->bytes};
    memcpy(to.shape, t->shape, sizeof to.shape);
    return add(plan, &to, err);
}

static const char *scale_dtype(mgl_dtype dtype)
{
    return dtype == MGL_F32 ? "F32" : dtype == MGL_F16 ? "F16" : "BF16";
}

static mgl_status add_part(mgl_quantize_plan *plan, int index, mgl_planned_tensor part,
                           const char *suffix, mgl_error *err)
{
    char module[MGL_MODULE_NAME];
    mgl_text name = {0};
    mgl_quantize_module(stored_of(plan, index)->name, module);
    if (plan->sources[index].copied) /* the tied embedding */
        mgl_quantize_module(MGL_TENSOR_HEAD, module);
    mgl_text_format(&name, "%s.%s", module, suffix);
    part.name = name.failed ? NULL : name.bytes;
    if (name.failed)
        mgl_text_clear(&name);
    part.source = index;
    return add(plan, &part, err);
}

/* The tensors of a quantized matrix. */
static mgl_status add_matrix(mgl_quantize_plan *plan, int index, mgl_error *err)
{
    const mgl_weight_format f = plan->sources[index].format;
    const int64_t rows = stored_of(plan, index)->shape[0];
    const int64_t columns = stored_of(plan, index)->shape[1];
    const int64_t groups = mgl_weight_format_groups(f, columns);
    const int bits = mgl_weight_code_get(f.code)->bits;
    const bool is_float = f.code == MGL_CODE_E4M3;
    const int64_t zero_rows = (rows * bits + 31) / 32;
    mgl_planned_tensor codes = {.part = MGL_PART_CODES, .rank = 2, .dtype = "I32"};
    mgl_planned_tensor scales = {.part = MGL_PART_SCALES, .rank = 2, .shape = {rows, groups}};
    codes.shape[0] = rows;
    codes.shape[1] = is_float ? columns : columns * bits / 32;
    codes.bytes = (uint64_t)(rows * columns * bits / 8);
    if (is_float)
        codes.dtype = "F8_E4M3";
    scales.dtype = scale_dtype(f.scales);
    scales.bytes = (uint64_t)(rows * groups) * mgl_dtype_size(f.scales);
    mgl_status status = add_part(plan, index, codes, is_float ? "weight" : "weight_packed", err);
    if (!status)
        status = add_part(plan, index, scales, "weight_scale", err);
    if (!status && f.zeros)
        status = add_part(plan, index,
                          (mgl_planned_tensor){.part = MGL_PART_ZEROS,
                                               .rank = 2,
                                               .dtype = "I32",
                                               .shape = {zero_rows, groups},
                                               .bytes = (uint64_t)(zero_rows * groups) * 4},
                          "weight_zero_point", err);
    if (!status && !is_float)
        status = add_part(
            plan, index,
            (mgl_planned_tensor){
                .part = MGL_PART_SHAPE, .rank = 1, .dtype = "I64", .shape = {2}, .bytes = 16},
            "weight_shape", err);
    return status;
}

static mgl_status list_tensors(mgl_quantize_plan *plan, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < plan->files->tensors.count && !status; i++) {
        const mgl_planned_source *s = &plan->sources[i];
        if (s->quantized)
            status = add_matrix(plan, (int)i, err);
        if (!status && !s->dropped && (!s->quantized || s->copied))
            status = add_copy(plan, (int)i, err);
    }
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static uint64_t element_bytes(const mgl_planned_tensor *t)
{
    uint64_t elements = 1;
    for (int i = 0; i < t->rank; i++)
        elements *= (uint64_t)t->shape[i];
    return elements ? t->bytes / elements : 1;
}

/* By file, then the largest elements first, so that each tensor is aligned; then by name. */
static int compare(const void *a, const void *b)
{
    const mgl_planned_tensor *x = a, *y = b;
    const uint64_t p = element_bytes(x), q = element_bytes(y);
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static mgl_status place_tensors(mgl_quantize_plan *plan, uint64_t shard_bytes, mgl_error *err)
{
    uint64_t used = 0;
    int file = 0;
    for (size_t i = 0; i < plan->count; i++) {
        mgl_planned_tensor *t = &plan->tensors[i];
        if (used && t->bytes > shard_bytes - used) {
            used = 0;
            file++;
        }
        t->file = file;
        used = t->bytes < shard_bytes ? used + t->bytes : shard_bytes;
    }
    plan->file_count = file + 1;
    qsort(plan->tensors, plan->count, sizeof *plan->tensors, compare);
    for (size_t i = 0; i < plan->count; i++) {
        mgl_planned_tensor *t = &plan->tensors[i], *before = i ? t - 1 : NULL;
        t->offset = before && before->file == t->file ? before->offset + before->bytes : 0;
        plan->sources[t->source].parts[t->part] = (int)i;
    }
    plan->headers = mgl_alloc_zero((size_t)plan->file_count, sizeof *plan->headers);
    return plan->headers ? MGL_OK : mgl_fail_memory(err, (size_t)plan->file_count * 8);
}

void mgl_quantize_shard_name(const mgl_quantize_plan *plan, int file, char name[MGL_SHARD_NAME])
{
    if (plan->file_count == 1)
        snprintf(name, MGL_SHARD_NAME, "%s", MGL_SAFETENSORS_SINGLE);
    else
        snprintf(name, MGL_SHARD_NAME, "model-%05d-of-%05d.safetensors", file + 1,
                 plan->file_count);
}

static void put_tensor(const mgl_planned_tensor *t, mgl_json_out *out)
{
    mgl_json_out_object(out, t->name);
    mgl_json_out_string(out, "dtype", t->dtype);
    mgl_json_out_array(out, "shape");
    for (int d = 0; d < t->rank; d++)
        mgl_json_out_int(out, NULL, t->shape[d]);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "data_offsets");
    mgl_json_out_int(out, NULL, (int64_t)t->offset);
    mgl_json_out_int(out, NULL, (int64_t)(t->offset + t->bytes));
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

void mgl_quantize_put_header(const mgl_quantize_plan *plan, int file, mgl_text *out)
{
    mgl_json_out json = {0};
    char length[8];
    mgl_json_out_object(&json, NULL);
    mgl_json_out_object(&json, "__metadata__");
    mgl_json_out_string(&json, "format", "pt"); /* Transformers reads no other format */
    mgl_json_out_close_object(&json);
    for (size_t i = 0; i < plan->count; i++)
        if (plan->tensors[i].file == file)
            put_tensor(&plan->tensors[i], &json);
    mgl_json_out_close_object(&json);
    while (json.text.length % 8 && !json.text.failed)
        mgl_text_put(&json.text, " ");
    for (int i = 0; i < 8; i++)
        length[i] = (char)((uint64_t)json.text.length >> 8 * i & 0xFF);
    mgl_text_append(out, length, sizeof length);
    mgl_text_append(out, json.text.bytes ? json.text.bytes : "", json.text.length);
    out->failed |= json.text.failed;
    mgl_text_clear(&json.text);
}

/* ---- the plan -------------------------------------------------------------------------------- */

mgl_status mgl_quantize_plan_make(const mgl_checkpoint *checkpoint, const mgl_safetensors *files,
                                  const mgl_quantize_request *request, mgl_quantize_plan *plan,
                                  mgl_error *err)
{
    *plan = (mgl_quantize_plan){.checkpoint = checkpoint, .files = files, .embedding = -1};
    plan->sources = mgl_alloc_zero(files->tensors.count, sizeof *plan->sources);
    if (!plan->sources)
        return mgl_fail_memory(err, files->tensors.count * sizeof *plan->sources);
    for (size_t i = 0; i < files->tensors.count; i++)
        memset(plan->sources[i].parts, -1, sizeof plan->sources[i].parts);
    mgl_status status = choose_matrices(plan, request, err);
    return status ? status : check_groups(plan, err);
}

mgl_status mgl_quantize_plan_list(mgl_quantize_plan *plan, const mgl_quantize_request *request,
                                  mgl_error *err)
{
    const uint64_t shard = request->shard_bytes ? request->shard_bytes : MGL_QUANTIZE_SHARD_BYTES;
    mgl_status status = list_tensors(plan, err);
    return status ? status : place_tensors(plan, shard, err);
}

void mgl_quantize_plan_clear(mgl_quantize_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        mgl_free(plan->tensors[i].name);
    mgl_free(plan->tensors);
    mgl_free(plan->sources);
    mgl_free(plan->headers);
    *plan = (mgl_quantize_plan){0};
}
