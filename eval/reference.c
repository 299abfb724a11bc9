/* Implements reference.h: runs the reference kernels of cuda/reference.cuh over all rows (sequence,
 * token) at once, node by node of the graph. */
#include "eval/reference.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"

enum { THREADS = 256, TILE_ROWS = 8 /* as in cuda/reference.cuh */ };
enum { LARGEST, CHOSEN, NORM, SEEN }; /* columns of mgl_block_reference_look */

/* A run: rows are (sequence, token). */
struct run {
    const mgl_bench_device *device;
    const mgl_bench_case *of;
    int rows;
    mgl_address token;        /* i32 (rows): inputs */
    mgl_address made;         /* i32 (rows): tokens made elsewhere */
    mgl_address id;           /* i32 (rows): the reference's choices */
    mgl_address seen;         /* f32 (rows, SEEN) */
    mgl_address x, normed;    /* f32 (rows, hidden) */
    mgl_address q, attention; /* f32 (rows, heads head_dim) */
    mgl_address k, v;         /* f32 (rows, kv_heads head_dim) */
    mgl_address gate, up;     /* f32 (rows, ffn) */
    mgl_address logits;       /* f32 (rows, vocab) */
};

double mgl_reference_distance(const float *a, const float *b, size_t count)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        difference += d * d;
        size += (double)b[i] * (double)b[i];
    }
    double distance = sqrt(difference / size);
    return isnan(distance) ? INFINITY : distance;
}

/* ---- memory --------------------------------------------------------------------------------- */

static mgl_status allocate(struct run *r, mgl_error *err)
{
    const mgl_geometry *m = &r->of->graph->geometry;
    int heads = m->heads * m->head_dim, kv_heads = m->kv_heads * m->head_dim;
    const struct {
        mgl_address *to;
        int width;
    } parts[] = {
        {&r->token, 1},         {&r->made, 1},           {&r->id, 1},        {&r->seen, SEEN},
        {&r->x, m->hidden},     {&r->normed, m->hidden}, {&r->q, heads},     {&r->k, kv_heads},
        {&r->v, kv_heads},      {&r->attention, heads},  {&r->gate, m->ffn}, {&r->up, m->ffn},
        {&r->logits, m->vocab},
    };
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++)
        status = mgl_bench_allocate(r->device, (size_t)r->rows * (size_t)parts[i].width * 4,
                                    "the reference", parts[i].to, err);
    return status;
}

static void release(struct run *r)
{
    const mgl_address parts[] = {r->token, r->made, r->id,        r->seen, r->x,  r->normed, r->q,
                                 r->k,     r->v,    r->attention, r->gate, r->up, r->logits};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        mgl_bench_release(r->device, parts[i]);
}

/* Uploads the inputs: the first token of each sequence, then the made tokens. */
static mgl_status upload_inputs(struct run *r, const int32_t *made, mgl_error *err)
{
    size_t rows = (size_t)r->rows;
    int32_t *inputs = mgl_alloc(rows * sizeof *inputs);
    if (!inputs)
        return mgl_fail_memory(err, rows * sizeof *inputs);
    for (int i = 0; i < r->rows; i++)
        inputs[i] = i % r->of->tokens ? made[i - 1] : r->of->first[i / r->of->tokens];
    mgl_status status = mgl_bench_copy_in(r->device, r->token, inputs, rows * sizeof *inputs, err);
    mgl_free(inputs);
    return status ? status : mgl_bench_copy_in(r->device, r->made, made, rows * sizeof *made, err);
}

/* ---- nodes of the graph --------------------------------------------------------------------- */

static mgl_bench_grid grid(int x, int y, int threads)
{
    return (mgl_bench_grid){.x = (unsigned)x, .y = (unsigned)y, .threads = (unsigned)threads};
}

/* Index of the tensor "model.layers.<layer>.<name><ending>", or "<name><ending>" for layer -1; -1:
 * not in the model. */
static int find_tensor(const struct run *r, int layer, const char *name, const char *ending)
{
    char full[96];
    if (layer < 0)
        snprintf(full, sizeof full, "%s%s", name, ending);
    else
        snprintf(full, sizeof full, "model.layers.%d.%s%s", layer, name, ending);
    return mgl_graph_find_tensor(r->of->graph, full);
}

static mgl_synthetic_rule rule_of(const struct run *r, int layer, const char *name)
{
    return mgl_synthetic_tensor_rule(r->of->graph, find_tensor(r, layer, name, ".weight"));
}

static mgl_status embed(const struct run *r, mgl_error *err)
{
    mgl_block_reference_embed block = {.token = r->token,
                                       .x = r->x,
                                       .rule = rule_of(r, -1, "model.embed_tokens"),
                                       .hidden = r->of->graph->geometry.hidden};
    return mgl_bench_launch(r->device, MGL_KERNEL_REFERENCE_EMBED, grid(r->rows, 1, THREADS),
                            &block, err);
}

static mgl_status norm(const struct run *r, int layer, const char *name, mgl_error *err)
{
    const mgl_geometry *m = &r->of->graph->geometry;
    mgl_block_reference_norm block = {.x = r->x,
                                      .out = r->normed,
                                      .rule = rule_of(r, layer, name),
                                      .width = m->hidden,
                                      .eps = m->eps};
    return mgl_bench_launch(r->device, MGL_KERNEL_REFERENCE_NORM, grid(r->rows, 1, THREADS), &block,
                            err);
}

/* Normalizes each head of q or k in place, if the model has such a norm. */
static mgl_status head_norm(const struct run *r, int layer, const char *name, mgl_address x,
                            int heads, mgl_error *err)
{
    const mgl_geometry *m = &r->of->graph->geometry;
    if (find_tensor(r, layer, name, ".weight") < 0)
        return MGL_OK;
    mgl_block_reference_norm block = {
        .x = x, .out = x, .rule = rule_of(r, layer, name), .width = m->head_dim, .eps = m->eps};
    return mgl_bench_launch(r->device, MGL_KERNEL_REFERENCE_NORM, grid(r->rows * heads, 1, THREADS),
                            &block, err);
}

/* Product with "<name>.weight", plus "<name>.bias" if the model has one. */
static mgl_status linear(const struct run *r, int layer, const char *name, mgl_address x,
                         mgl_address y, int inner, int outer, bool add, mgl_error *err)
{
    int bias = find_tensor(r, layer, name, ".bias");
    mgl_block_reference_linear block = {.x = x,
                                        .y = y,
                                        .rule = rule_of(r, layer, name),
                                        .rows = r->rows,
                                        .inner = inner,
                                        .outer = outer,
                                        .add = add,
                                        .biased = bias >= 0};
    if (block.biased)
        block.bias = mgl_synthetic_tensor_rule(r->of->graph, bias);
    int warps = THREADS / 32;
    return mgl_bench_launch(
        r->device, MGL_KERNEL_REFERENCE_LINEAR,
        grid((outer + warps - 1) / warps, (r->rows + TILE_ROWS - 1) / TILE_ROWS, THREADS), &block,
        err);
}

static mgl_status rope(const struct run *r, mgl_address x, int heads, mgl_error *err)
{
    mgl_block_reference_rope block = {.x = x,
                                      .table = r->of->rope,
                                      .heads = heads,
                                      .tokens = r->of->tokens,
                                      .context = r->of->context};
    return mgl_bench_launch(r->device, MGL_KERNEL_REFERENCE_ROPE,
                            grid(r->rows, heads, r->of->graph->geometry.head_dim / 2), &block, err);
}

static mgl_status attend(const struct run *r, int layer, mgl_error *err)
{
    const mgl_geometry *m = &r->of->graph->geometry;
    mgl_block_reference_attend block = {
        .q = r->q,
        .k = r->k,
        .v = r->v,
        .out = r->attention,
        .keys = mgl_synthetic_cache_rule(r->of->graph, layer, false, r->of->context),
        .values = mgl_synthetic_cache_rule(r->of->graph, layer, true, r->of->context),
        .kv_heads = m->kv_heads,
        .tokens = r->of->tokens,
        .context = r->of->context};
    return mgl_bench_launch(r->device, MGL_KERNEL_REFERENCE_ATTEND,
                            grid(r->rows, m->heads, THREADS), &block, err);
}

static mgl_status swiglu(const struct run *r, mgl_error *err)
{
    mgl_block_reference_swiglu block = {
        .gate = r->gate, .up = r->up, .count = (long long)r->rows * r->of->graph->geometry.ffn};
    return mgl_bench_launch(r->device, MGL_KERNEL_REFERENCE_SWIGLU,
                            mgl_bench_spread(r->device, block.count), &block, err);
}

static mgl_status look(const struct run *r, mgl_error *err)
{
    mgl_block_reference_look block = {.logits = r->logits,
                                      .made = r->made,
                                      .id = r->id,
                                      .seen = r->seen,
                                      .vocab = r->of->graph->geometry.vocab};
    return mgl_bench_launch(r->device, MGL_KERNEL_REFERENCE_LOOK, grid(r->rows, 1, THREADS), &block,
                            err);
}

/* ---- the decoder ---------------------------------------------------------------------------- */

static mgl_status attention_half(const struct run *r, int l, mgl_error *err)
{
    const mgl_geometry *m = &r->of->graph->geometry;
    int heads = m->heads * m->head_dim, kv_heads = m->kv_heads * m->head_dim, hidden = m->hidden;
    mgl_status status = norm(r, l, "input_layernorm", err);
    if (!status)
        status = linear(r, l, "self_attn.q_proj", r->normed, r->q, hidden, heads, false, err);
    if (!status)
        status = linear(r, l, "self_attn.k_proj", r->normed, r->k, hidden, kv_heads, false, err);
    if (!status)
        status = linear(r, l, "self_attn.v_proj", r->normed, r->v, hidden, kv_heads, false, err);
    if (!status)
        status = head_norm(r, l, "self_attn.q_norm", r->q, m->heads, err);
    if (!status)
        status = head_norm(r, l, "self_attn.k_norm", r->k, m->kv_heads, err);
    if (!status)
        status = rope(r, r->q, m->heads, err);
    if (!status)
        status = rope(r, r->k, m->kv_heads, err);
    if (!status)
        status = attend(r, l, err);
    if (!status)
        status = linear(r, l, "self_attn.o_proj", r->attention, r->x, heads, hidden, true, err);
    return status;
}

static mgl_status ffn_half(const struct run *r, int l, mgl_error *err)
{
    const mgl_geometry *m = &r->of->graph->geometry;
    int hidden = m->hidden, ffn = m->ffn;
    mgl_status status = norm(r, l, "post_attention_layernorm", err);
    if (!status)
        status = linear(r, l, "mlp.gate_proj", r->normed, r->gate, hidden, ffn, false, err);
    if (!status)
        status = linear(r, l, "mlp.up_proj", r->normed, r->up, hidden, ffn, false, err);
    if (!status)
        status = swiglu(r, err);
    if (!status)
        status = linear(r, l, "mlp.down_proj", r->gate, r->x, ffn, hidden, true, err);
    return status;
}

static mgl_status decode(const struct run *r, mgl_error *err)
{
    const mgl_graph *graph = r->of->graph;
    const mgl_geometry *m = &graph->geometry;
    const char *head = graph->tied ? "model.embed_tokens" : "lm_head";
    mgl_status status = embed(r, err);
    for (int l = 0; l < m->layers && !status; l++) {
        status = attention_half(r, l, err);
        if (!status)
            status = ffn_half(r, l, err);
    }
    if (!status)
        status = norm(r, -1, "model.norm", err);
    if (!status)
        status = linear(r, -1, head, r->normed, r->logits, m->hidden, m->vocab, false, err);
    return status ? status : look(r, err);
}

/* ---- results -------------------------------------------------------------------------------- */

/* Computes all rows. The caller releases `r`, also after an error. */
static mgl_status run_rows(struct run *r, const mgl_bench_device *device, const mgl_bench_case *of,
                           const int32_t *made, mgl_error *err)
{
    *r = (struct run){.device = device, .of = of, .rows = of->sequences * of->tokens};
    mgl_status status = allocate(r, err);
    if (!status)
        status = upload_inputs(r, made, err);
    if (!status)
        status = mgl_bench_start_clock(device, err);
    return status ? status : decode(r, err);
}

/* The logits (vocab) of one row. */
static mgl_status copy_row(const struct run *r, int row, float *to, mgl_error *err)
{
    size_t bytes = (size_t)r->of->graph->geometry.vocab * sizeof *to;
    return mgl_bench_copy_out(r->device, to, r->logits + (size_t)row * bytes, bytes, err);
}

mgl_status mgl_reference_run(const mgl_bench_device *device, const mgl_bench_case *of,
                             const int32_t *made, int32_t *chosen, float *logits, mgl_error *err)
{
    struct run r;
    mgl_status status = run_rows(&r, device, of, made, err);
    if (!status)
        status = mgl_bench_copy_out(device, chosen, r.id, (size_t)r.rows * sizeof *chosen, err);
    if (!status)
        status = copy_row(&r, r.rows - 1, logits, err);
    release(&r);
    return status;
}

static mgl_status hand_out_rows(const struct run *r, const mgl_paired_bench_reference *out,
                                mgl_error *err)
{
    size_t rows = (size_t)r->rows;
    float *seen = mgl_alloc(rows * SEEN * sizeof *seen);
    if (!seen)
        return mgl_fail_memory(err, rows * SEEN * sizeof *seen);
    mgl_status status =
        mgl_bench_copy_out(r->device, seen, r->seen, rows * SEEN * sizeof *seen, err);
    for (size_t i = 0; i < rows && !status; i++) {
        out->largest[i] = seen[i * SEEN + LARGEST];
        out->chosen[i] = seen[i * SEEN + CHOSEN];
        out->norms[i] = seen[i * SEEN + NORM];
    }
    mgl_free(seen);
    return status;
}

static mgl_status hand_out_steps(const struct run *r, const mgl_paired_bench_reference *out,
                                 mgl_error *err)
{
    size_t vocab = (size_t)r->of->graph->geometry.vocab;
    float *to = out->logits;
    mgl_status status = MGL_OK;
    for (int i = 0; i < out->step_count; i++)
        for (int s = 0; s < r->of->sequences && !status; s++, to += vocab)
            status = copy_row(r, s * r->of->tokens + out->steps[i], to, err);
    return status;
}

mgl_status mgl_reference_look(const mgl_bench_device *device, const mgl_bench_case *of,
                              const int32_t *made, const mgl_paired_bench_reference *out,
                              mgl_error *err)
{
    struct run r;
    double seconds = 0;
    mgl_status status = run_rows(&r, device, of, made, err);
    if (!status)
        status = mgl_bench_stop_clock(device, &seconds, err);
    if (out->device_s)
        *out->device_s += seconds;
    if (!status)
        status = hand_out_rows(&r, out, err);
    if (!status)
        status = hand_out_steps(&r, out, err);
    release(&r);
    return status;
}
