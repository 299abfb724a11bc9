/*
 * Compares a graph with the stored tensors. See compare.h.
 *
 * The comparison goes both ways. Every tensor of the graph must be stored with its shape and a
 * usable dtype. Every stored tensor that the graph does not use must be of a harmless kind;
 * otherwise the model is not supported, because leaving out a bias silently would give another
 * model. Reasons of one kind are reported once, with the first tensor and the count.
 */
#include "importer/compare.h"

#include "base/text.h"
#include "importer/quantized/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- stored tensors that the graph does not use ---------------------------------------------- */

enum match { ENDS, HOLDS };

#define QUANTIZED_PART                                                                             \
    "a part of a quantized matrix that the model does not use; download the whole model again"

#define QUANTIZED_CACHE                                                                            \
    "a scale or zero point of a KV cache of 8 bits, which changes the results and is not "         \
    "supported; export the "                                                                       \
    "model without a KV cache scheme (kv_cache_scheme)"

/*  how, text in the name, why the tensor is rejected; the first match applies */
static const struct foreign {
    enum match match;
    const char *text;
    const char *why;
} foreign_tensors[] = {
    {HOLDS, "lora_", "an adapter; merge it into the model first"},
    {HOLDS, ".experts.", "mixtures of experts cannot be represented"},
    {HOLDS, "block_sparse_moe", "mixtures of experts cannot be represented"},
    {ENDS, ".mlp.gate.weight", "mixtures of experts cannot be represented"},
    {ENDS, ".bias", "a bias that config.json does not give the model; it would be left out"},
    {HOLDS, "q_norm.", "a norm of q or k that config.json does not give the model"},
    {HOLDS, "k_norm.", "a norm of q or k that config.json does not give the model"},
    {HOLDS, "q_layernorm.", "norms of q and k cannot be represented"},
    {HOLDS, "k_layernorm.", "norms of q and k cannot be represented"},
    {HOLDS, "qkv_proj", "this architecture has no fused projections; store q, k and v apart"},
    {HOLDS, "query_key_value",
     "this architecture has no fused projections; store q, k and v apart"},
    {HOLDS, "c_attn", "this architecture has no fused projections; store q, k and v apart"},
    {HOLDS, "W_pack", "this architecture has no fused projections; store q, k and v apart"},
    {HOLDS, "gate_up_proj", "this architecture has no fused projections; store gate and up apart"},
    {HOLDS, "qweight", QUANTIZED_PART},
    {HOLDS, "qzeros", QUANTIZED_PART},
    {ENDS, ".scales", QUANTIZED_PART},
    {ENDS, ".g_idx", QUANTIZED_PART},
    {ENDS, ".SCB", "weights of bitsandbytes are not supported; use the original checkpoint"},
    {ENDS, "weight_scale", QUANTIZED_PART},
    {ENDS, "weight_scale_inv", QUANTIZED_PART},
    {ENDS, "weight_packed", QUANTIZED_PART},
    {ENDS, "weight_shape", QUANTIZED_PART},
    {ENDS, "weight_zero_point", QUANTIZED_PART},
    {ENDS, "weight_g_idx", QUANTIZED_PART},
    {HOLDS, ".absmax", "weights of bitsandbytes are not supported; use the original checkpoint"},
    {HOLDS, "quant_map", "weights of bitsandbytes are not supported; use the original checkpoint"},
    {ENDS, "kv_scale", QUANTIZED_CACHE},
    {ENDS, "k_scale", QUANTIZED_CACHE},
    {ENDS, "v_scale", QUANTIZED_CACHE},
    {ENDS, ".k_zero_point", QUANTIZED_CACHE},
    {ENDS, ".v_zero_point", QUANTIZED_CACHE},
    {ENDS, ".output_scale", QUANTIZED_CACHE},
    {HOLDS, "pre_feedforward_layernorm", "further norms in a layer cannot be represented"},
    {HOLDS, "post_feedforward_layernorm", "further norms in a layer cannot be represented"},
    {HOLDS, "", "a model with this configuration has no such tensor"},
};

/* Returns the first entry of the table with the same explanation as the entry that matches this
 * name. */
static size_t classify(const char *name)
{
    size_t i = 0, same = 0;
    while (foreign_tensors[i].match == ENDS ? !mgl_text_ends(name, foreign_tensors[i].text)
                                            : !strstr(name, foreign_tensors[i].text))
        i++;
    while (strcmp(foreign_tensors[same].why, foreign_tensors[i].why) != 0)
        same++;
    return same;
}

/* Tensors that are reported as one reason, because the explanation is the same. */
typedef struct group {
    const char *first; /* name of the first one; NULL for none */
    size_t count;
} group;

static void add_groups(const group *groups, mgl_reasons *reasons)
{
    for (size_t i = 0; i < sizeof foreign_tensors / sizeof *foreign_tensors; i++) {
        if (!groups[i].count)
            continue;
        if (groups[i].count == 1)
            mgl_reasons_add(reasons, groups[i].first, "%s", foreign_tensors[i].why);
        else
            mgl_reasons_add(reasons, groups[i].first, "%s (%zu tensors of this kind)",
                            foreign_tensors[i].why, groups[i].count);
    }
}

/* ---- comparison with the graph -------------------------------------------------------------- */

typedef mgl_comparison comparison;

/* "[913, 256]" */
static const char *print_shape(int rank, const int64_t *shape, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

/* Compares shapes. `total`: the rows of the stored tensor; the graph's tensor may be a part of
 * it. */
static bool has_shape(const mgl_stored_tensor *stored, const mgl_tensor *tensor, int64_t total)
{
    return stored->rank == tensor->rank && stored->shape[0] == total &&
           (tensor->rank == 1 || stored->shape[1] == tensor->cols);
}

static void refuse_shape(mgl_reasons *reasons, const mgl_stored_tensor *stored,
                         const mgl_tensor *tensor, int64_t total)
{
    char is[160], must[80];
    int64_t shape[2] = {total, tensor->cols};
    mgl_reasons_add(reasons, stored->name, "its shape is %s; config.json makes it %s",
                    print_shape(stored->rank, stored->shape, is, sizeof is),
                    print_shape(tensor->rank, shape, must, sizeof must));
}

static void refuse_dtype(mgl_reasons *reasons, const mgl_stored_tensor *stored)
{
    if (!strcmp(stored->stored_dtype, "F8_E5M2")) {
        mgl_reasons_add(reasons, stored->name,
                        "its dtype F8_E5M2 is not supported; of 8 bits, F8_E4M3 and I8 with scales "
                        "are; quantize the original checkpoint to one of these");
        return;
    }
    mgl_reasons_add(
        reasons, stored->name, "its dtype %s is not supported; F32, F16 and BF16 are%s",
        stored->stored_dtype,
        strcmp(stored->stored_dtype, "F64") != 0
            ? ""
            : ", and F64 for vectors whose numbers F32 holds; load the model with "
              "from_pretrained(..., dtype=\"float32\") of Transformers and save it with "
              "save_pretrained");
}

/* Finds the stored tensor of a tensor of the graph. If a tied model stores only the head, the
 * head is also the embedding. */
static mgl_view find_view(const comparison *c, const mgl_tensor *tensor)
{
    mgl_view view = mgl_naming_view(c->naming, tensor);
    if (view.stored < 0 && c->graph->tied && !strcmp(tensor->name, MGL_TENSOR_EMBEDDING)) {
        mgl_tensor head = *tensor;
        head.name = MGL_TENSOR_HEAD;
        view = mgl_naming_view(c->naming, &head);
    }
    return view;
}

/* Returns whether F32 represents each number of an F64 tensor of rank 1 exactly. */
static bool fits_f32(const comparison *c, const mgl_stored_tensor *stored)
{
    const int index = (int)(stored - c->files->tensors.items);
    for (int64_t i = 0; i < stored->shape[0] && c->files->file_count; i++) {
        double value;
        if (mgl_safetensors_read(c->files, index, (size_t)i * sizeof value, sizeof value, &value,
                                 NULL) ||
            (!isnan(value) && (double)(float)value - value != 0))
            return false;
    }
    return true;
}

/* Copies the dtype of a stored tensor; false: the dtype is rejected. F64 vectors (norms and
 * biases) are read as F32 if no number changes. */
static bool take_dtype(const comparison *c, const mgl_stored_tensor *stored, mgl_tensor *tensor,
                       mgl_view *view)
{
    const bool is_wide = !strcmp(stored->stored_dtype, "F64") && stored->rank == 1;
    if (stored->usable)
        tensor->dtype = stored->dtype;
    view->wide = is_wide && fits_f32(c, stored);
    return stored->usable || view->wide;
}

/* Binds a quantized matrix, or rejects it. Returns false if it is not quantized. */
static bool bind_quantized(comparison *c, int index)
{
    mgl_tensor *tensor = &c->graph->tensors[index];
    mgl_quantized *quantized = &c->quantized[index];
    mgl_view *view = &c->views[index];
    const mgl_binding binding = mgl_quantized_bind(&c->binder, tensor, view, quantized);
    if (binding != MGL_BINDING_QUANTIZED)
        return binding == MGL_BINDING_REJECTED;
    *view = quantized->view;
    tensor->quantized = quantized->format;
    tensor->dtype = MGL_F32;
    return true;
}

/* Binds each tensor of the graph to the stored tensor of its name, and copies the stored dtype. */
static void bind_tensors(comparison *c)
{
    size_t missing = 0, shapes = 0, dtypes = 0;
    char first_missing[160];
    for (int i = 0; i < c->graph->tensor_count; i++) {
        mgl_tensor *tensor = &c->graph->tensors[i];
        mgl_view *view = &c->views[i];
        *view = find_view(c, tensor);
        if (bind_quantized(c, i))
            continue;
        const int index = view->stored;
        if (index < 0) {
            if (!missing++)
                mgl_naming_name(c->naming, tensor->name, first_missing);
            continue;
        }
        const mgl_stored_tensor *stored = &c->files->tensors.items[index];
        c->used[index] = true;
        if (!has_shape(stored, tensor, view->total) && !shapes++)
            refuse_shape(c->reasons, stored, tensor, view->total);
        if (!take_dtype(c, stored, tensor, view) && !dtypes++)
            refuse_dtype(c->reasons, stored);
    }
    if (c->graph->tied)
        mgl_quantized_skip_head(&c->binder);
    mgl_quantized_report(&c->binder, c->reasons);
    if (missing == 1 && strstr(first_missing, MGL_TENSOR_HEAD))
        mgl_reasons_add(c->reasons, first_missing,
                        "the tensor is missing: the checkpoint has no head, as models that make "
                        "embeddings; take the checkpoint of the whole model");
    else if (missing == 1)
        mgl_reasons_add(c->reasons, first_missing, "the tensor is missing");
    else if (missing)
        mgl_reasons_add(c->reasons, first_missing,
                        "the tensor is missing (as are %zu more that the model needs)",
                        missing - 1);
}

/* Harmless unused tensors: precomputed rope frequencies, the head of a tied model that equals
 * the embedding (see is_head_own), the parts of a wrapper that do not process text, and tensors
 * beside a quantized matrix, such as scales of activations. */
static bool is_harmless(const comparison *c, const mgl_stored_tensor *stored)
{
    char head[160];
    mgl_naming_name(c->naming, MGL_TENSOR_HEAD, head);
    return mgl_text_ends(stored->name, ".rotary_emb.inv_freq") ||
           mgl_naming_is_outside(c->naming, stored->name) ||
           c->binder.companion[stored - c->files->tensors.items] ||
           (c->graph->tied && !strcmp(stored->name, head));
}

/* Checks every stored tensor that the graph does not use; returns the number of harmless ones. */
static int check_unwanted(comparison *c)
{
    group groups[sizeof foreign_tensors / sizeof *foreign_tensors] = {0};
    int harmless = 0;
    for (size_t i = 0; i < c->files->tensors.count; i++) {
        const mgl_stored_tensor *stored = &c->files->tensors.items[i];
        if (c->used[i])
            continue;
        if (is_harmless(c, stored)) {
            harmless++;
            continue;
        }
        group *g = &groups[classify(stored->name)];
        if (!g->count++)
            g->first = stored->name;
    }
    add_groups(groups, c->reasons);
    return harmless;
}

int mgl_compare_tensors(comparison *c)
{
    bind_tensors(c);
    mgl_orders_apply(c);
    return check_unwanted(c);
}
