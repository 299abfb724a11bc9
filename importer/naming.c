/*
 * Maps tensor names with a table. See naming.h. A row replaces a part of the graph's name by the
 * name in a family's checkpoints, and selects the rows of a fused tensor. Rows are applied in
 * order. Then "model." and "lm_head." are replaced by one of the prefixes in use.
 */
#include "importer/naming.h"

#include "importer/quantized/bind.h"

#include <stdio.h>
#include <string.h>

/* The rows of the stored tensor that a tensor of the graph covers. */
enum part {
    WHOLE,
    FUSED_Q, /* q, k and v, in this order */
    FUSED_K,
    FUSED_V,
    FUSED_GATE, /* gate, then up */
    FUSED_UP
};

/*  model_type, text in the graph's name, text in the stored name, rows */
static const struct row {
    const char *model_type, *graph, *stored;
    enum part part;
} rows[] = {
    {"phi3", ".self_attn.q_proj.", ".self_attn.qkv_proj.", FUSED_Q},
    {"phi3", ".self_attn.k_proj.", ".self_attn.qkv_proj.", FUSED_K},
    {"phi3", ".self_attn.v_proj.", ".self_attn.qkv_proj.", FUSED_V},
    {"phi3", ".mlp.gate_proj.", ".mlp.gate_up_proj.", FUSED_GATE},
    {"phi3", ".mlp.up_proj.", ".mlp.gate_up_proj.", FUSED_UP},
    {"exaone", "model.embed_tokens.", "transformer.wte.", WHOLE},
    {"exaone", "model.layers.", "transformer.h.", WHOLE},
    {"exaone", "model.norm.", "transformer.ln_f.", WHOLE},
    {"exaone", ".self_attn.o_proj.", ".attn.attention.out_proj.", WHOLE},
    {"exaone", ".self_attn.", ".attn.attention.", WHOLE},
    {"exaone", ".input_layernorm.", ".ln_1.", WHOLE},
    {"exaone", ".post_attention_layernorm.", ".ln_2.", WHOLE},
    {"exaone", ".mlp.gate_proj.", ".mlp.c_fc_0.", WHOLE},
    {"exaone", ".mlp.up_proj.", ".mlp.c_fc_1.", WHOLE},
    {"exaone", ".mlp.down_proj.", ".mlp.c_proj.", WHOLE},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

/*  text in the graph's name, text in a GGUF file */
static const struct {
    const char *graph, *stored;
} gguf_rows[] = {
    {"model.embed_tokens.", "token_embd."},  {"model.layers.", "blk."},
    {"model.norm.", "output_norm."},         {"lm_head.", "output."},
    {".self_attn.q_proj.", ".attn_q."},      {".self_attn.k_proj.", ".attn_k."},
    {".self_attn.v_proj.", ".attn_v."},      {".self_attn.o_proj.", ".attn_output."},
    {".self_attn.q_norm.", ".attn_q_norm."}, {".self_attn.k_norm.", ".attn_k_norm."},
    {".input_layernorm.", ".attn_norm."},    {".post_attention_layernorm.", ".ffn_norm."},
    {".mlp.gate_proj.", ".ffn_gate."},       {".mlp.up_proj.", ".ffn_up."},
    {".mlp.down_proj.", ".ffn_down."},
};

/*  replace "model." and "lm_head."; only in wrappers; the first row that fits applies */
static const struct prefix {
    const char *body, *head;
    bool wrapper;
} prefixes[] = {
    {"model.language_model.", "lm_head.", true},
    {"language_model.model.", "language_model.lm_head.", true},
    {"model.text_model.", "lm_head.", true},
    {"language_model.", "lm_head.", true},
    {"model.", "lm_head.", false},
    {"model.model.", "lm_head.", false},
    {"", "lm_head.", false},
};
enum { PREFIX_COUNT = sizeof prefixes / sizeof *prefixes };

/* Names of the head in addition to the prefixes above; all but the first only in wrappers. */
static const char *const heads[] = {"model.lm_head.", "language_model.lm_head.", "lm_head."};

static const struct prefix canonical = {"model.", "lm_head.", false};

/* Replaces the first `from` in `text` by `to`; returns false if not found, or if there is no
 * room. */
static bool replace(char text[160], const char *from, const char *to)
{
    char *at = strstr(text, from);
    size_t length = strlen(text), cut = strlen(from), put = strlen(to);
    if (!at || length - cut + put >= 160)
        return false;
    memmove(at + put, at + cut, strlen(at + cut) + 1);
    memcpy(at, to, put);
    return true;
}

void mgl_naming_name(const mgl_naming *naming, const char *name, char out[160])
{
    snprintf(out, 160, "%s", name);
    if (naming->gguf) {
        for (size_t i = 0; i < sizeof gguf_rows / sizeof *gguf_rows; i++)
            replace(out, gguf_rows[i].graph, gguf_rows[i].stored);
        return;
    }
    for (int i = 0; i < ROW_COUNT && !naming->canonical; i++)
        if (!strcmp(rows[i].model_type, naming->config->model_type) &&
            (naming->renamed || rows[i].part != WHOLE))
            replace(out, rows[i].graph, rows[i].stored);
    if (!strncmp(out, canonical.body, strlen(canonical.body)))
        replace(out, canonical.body, naming->body);
    else if (!strncmp(out, canonical.head, strlen(canonical.head)))
        replace(out, canonical.head, naming->head);
}

static bool fits(const mgl_naming *naming)
{
    char name[160];
    mgl_naming_name(naming, "model.layers.0.input_layernorm.weight", name);
    return mgl_safetensors_find(naming->files, name) >= 0;
}

/* Returns whether a matrix is stored, quantized or not. */
static bool has_matrix(const mgl_safetensors *files, const char *name)
{
    return mgl_safetensors_find(files, name) >= 0 || mgl_quantized_find(files, name) >= 0;
}

/* Finds the head, whose prefix may differ from the body's. */
static void find_head(mgl_naming *naming)
{
    char name[160];
    const size_t count = naming->config->wrapped ? sizeof heads / sizeof *heads : 1;
    mgl_naming_name(naming, MGL_TENSOR_HEAD, name);
    if (has_matrix(naming->files, name))
        return;
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%sweight", heads[i]);
        if (has_matrix(naming->files, name))
            naming->head = heads[i];
    }
}

mgl_naming mgl_naming_find(const mgl_config *config, const mgl_safetensors *files)
{
    const bool is_compiled = files->file_count == 0;
    mgl_naming gguf = {.config = config, .files = files, .gguf = true, .body = "", .head = ""};
    if (!is_compiled && fits(&gguf))
        return gguf;
    for (int i = 0; i < 2 * PREFIX_COUNT && !is_compiled; i++) {
        const struct prefix *prefix = &prefixes[i / 2];
        mgl_naming naming = {.config = config,
                             .files = files,
                             .renamed = i % 2 == 0,
                             .body = prefix->body,
                             .head = prefix->head};
        if ((!config->wrapped && prefix->wrapper) || !fits(&naming))
            continue;
        find_head(&naming);
        return naming;
    }
    return (mgl_naming){.config = config,
                        .files = files,
                        .canonical = is_compiled,
                        .renamed = true,
                        .body = canonical.body,
                        .head = canonical.head};
}

static enum part find_part(const mgl_naming *naming, const char *name)
{
    for (int i = 0; i < ROW_COUNT && !naming->canonical; i++)
        if (rows[i].part != WHOLE && !strcmp(rows[i].model_type, naming->config->model_type) &&
            strstr(name, rows[i].graph))
            return rows[i].part;
    return WHOLE;
}

mgl_view mgl_naming_view(const mgl_naming *naming, const mgl_tensor *tensor)
{
    char name[160];
    const mgl_geometry *g = &naming->config->geometry;
    const int64_t q = (int64_t)g->heads * g->head_dim, kv = (int64_t)g->kv_heads * g->head_dim;
    const enum part part = find_part(naming, tensor->name);
    const int64_t starts[] = {[FUSED_K] = q, [FUSED_V] = q + kv, [FUSED_UP] = g->ffn};
    const bool is_q_or_k =
        strstr(tensor->name, ".self_attn.q_proj.") || strstr(tensor->name, ".self_attn.k_proj.");
    mgl_naming_name(naming, tensor->name, name);
    return (mgl_view){.stored = mgl_safetensors_find(naming->files, name),
                      .row = starts[part],
                      .total = part == WHOLE ? (tensor->rank == 1 ? tensor->cols : tensor->rows)
                               : part >= FUSED_GATE ? 2 * (int64_t)g->ffn
                                                    : q + 2 * kv,
                      .interleave = naming->config->pairs == MGL_PAIRS_NEIGHBORS && is_q_or_k &&
                                            !naming->canonical
                                        ? g->head_dim
                                        : 0};
}

int64_t mgl_view_row(const mgl_view *view, int64_t row)
{
    const int64_t size = view->interleave, half = size / 2;
    if (view->order)
        return view->row + view->order[row];
    if (!size)
        return view->row + row;
    const int64_t at = row % size;
    return view->row + row - at + (at < half ? 2 * at : 2 * (at - half) + 1);
}

bool mgl_naming_is_outside(const mgl_naming *naming, const char *stored)
{
    return naming->config->wrapped && strncmp(stored, naming->body, strlen(naming->body)) != 0 &&
           !strstr(stored, "lm_head.");
}
