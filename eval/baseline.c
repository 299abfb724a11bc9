/* Implements the baseline (baseline.h): places weights and activations in one allocation, makes the
 * weights, captures one step as a CUDA graph, and launches the graph once per token. */
#include "eval/baseline.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"

enum {
    WORKSPACE_BYTES = 64 << 20, /* workspace of cuBLAS, so that it does not allocate during
                                   capture */
    NORM_THREADS = 1024,
    SMALL_THREADS = 256,
    WARP_THREADS = 32,
    ATTEND_THREADS = 128,    /* as in attend.cuh */
    PROMPT_SILU_COLUMNS = 8, /* columns per thread, as in prompt.cuh */
    ARGMAX_PARTS = 128,      /* blocks per sequence that scan the logits */
    SPLIT_POSITIONS = 256,   /* minimum positions of a split */
    SPLIT_BLOCKS = 4         /* maximum per multiprocessor */
};

/* Addresses of one layer. */
struct layer {
    mgl_address qkv, o, gate_up, down;                     /* bf16 (out, in) */
    mgl_address attention_norm, ffn_norm;                  /* f32 (hidden) */
    mgl_address qkv_bias, o_bias, gate_up_bias, down_bias; /* f32 (out); 0: not in the model */
    mgl_address head_norms;   /* f32 (2, head_dim): q's heads and k's; 0: not in the model */
    mgl_address keys, values; /* bf16 (sequences, kv_heads, capacity, head_dim) */
};

struct mgl_baseline {
    const mgl_bench_device *device;
    const mgl_bench_case *of;
    const mgl_cublas *cublas;
    void *handle;
    int version; /* cuBLAS version */
    int splits;
    int rows;                        /* rows of a step: one per sequence, or all of the prompt */
    int tokens;                      /* tokens per sequence in a run */
    mgl_address arena, cursor;       /* the allocation; address of the next item */
    struct layer *layers;            /* (layers) */
    mgl_address embedding, head;     /* bf16 (vocab, hidden); the same when tied */
    mgl_address norm;                /* f32 (hidden) */
    mgl_address x;                   /* f32 (rows, hidden): the residual stream */
    mgl_address normed, added;       /* bf16 (rows, hidden) */
    mgl_address qkv, attention;      /* bf16 (rows, ...) */
    mgl_address gate_up, activated;  /* bf16 (rows, ...) */
    mgl_address part;                /* partial results of the attention splits */
    mgl_address logits;              /* f32 (sequences, vocab) */
    mgl_address best_value, best_id; /* (sequences, ARGMAX_PARTS) */
    mgl_address token, position;     /* i32 (rows) */
    mgl_address output;              /* i32 (sequences, tokens) */
    mgl_address forced;              /* i32 (1 + sequences tokens) */
    mgl_address workspace;           /* of cuBLAS */
    void *graph, *executable;        /* the captured step */
    int32_t *start;                  /* (1 + rows tokens) initial values of a run */
};

/* First row of a step that goes through the head: 0, or a prompt's last row. */
static int first_sampled(const mgl_baseline *b)
{
    return b->rows - b->of->sequences;
}

/* Position of the first row that goes through the head, at the start of a run. */
static int first_position(const mgl_baseline *b)
{
    return b->of->context + first_sampled(b);
}

/* Tokens made in a run. */
static size_t made_tokens(const mgl_baseline *b)
{
    return (size_t)b->of->sequences * (size_t)b->tokens;
}

/* ---- shapes --------------------------------------------------------------------------------- */

mgl_status mgl_baseline_check(const mgl_geometry *m, mgl_error *err)
{
    int dim = m->head_dim;
    if (dim != 16 && dim != 32 && dim != 64 && dim != 128 && dim != 256)
        return mgl_fail(err, MGL_BAD_INPUT, "head_dim",
                        "the baseline takes head_dim 16, 32, 64, 128 or 256, not %d", dim);
    if (m->heads / m->kv_heads > 8)
        return mgl_fail(err, MGL_BAD_INPUT, "heads",
                        "the baseline takes at most 8 query heads for a key head, not %d",
                        (int)(m->heads / m->kv_heads));
    if (m->hidden % 8 || m->ffn % 8)
        return mgl_fail(err, MGL_BAD_INPUT, "hidden",
                        "the baseline takes hidden and ffn sizes that are multiples of 8, not %d "
                        "and %d",
                        (int)m->hidden, (int)m->ffn);
    return MGL_OK;
}

int mgl_baseline_choose_splits(int length, int sequences, int kv_heads, int multiprocessors)
{
    int wanted = (length + SPLIT_POSITIONS - 1) / SPLIT_POSITIONS;
    int most = SPLIT_BLOCKS * multiprocessors / (sequences * kv_heads);
    int splits = wanted < most ? wanted : most;
    return splits > 1 ? splits : 1;
}

static size_t attention_width(const mgl_geometry *m)
{
    return (size_t)m->heads * (size_t)m->head_dim;
}

static size_t kv_width(const mgl_geometry *m)
{
    return (size_t)m->kv_heads * (size_t)m->head_dim;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Reserves `count` elements of `size` bytes and returns their address. */
static mgl_address take(mgl_baseline *b, size_t count, size_t size)
{
    enum { ALIGNMENT = 256 };
    mgl_address at = b->cursor;
    b->cursor += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

/* Index of the tensor "model.layers.<layer>.<name>"; -1: not in the model. */
static int find_tensor(const mgl_baseline *b, int layer, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "model.layers.%d.%s", layer, name);
    return mgl_graph_find_tensor(b->of->graph, full);
}

/* Reserves floats if the model has the tensor `name`; otherwise 0. */
static mgl_address take_if(mgl_baseline *b, const char *name, size_t count)
{
    return find_tensor(b, 0, name) < 0 ? 0 : take(b, count, sizeof(float));
}

static void place_layer(mgl_baseline *b, struct layer *l)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    size_t hidden = (size_t)m->hidden, ffn = (size_t)m->ffn;
    size_t cached = (size_t)b->of->sequences * (size_t)b->of->capacity * kv_width(m);
    l->qkv = take(b, (attention_width(m) + 2 * kv_width(m)) * hidden, sizeof(uint16_t));
    l->o = take(b, hidden * attention_width(m), sizeof(uint16_t));
    l->gate_up = take(b, 2 * ffn * hidden, sizeof(uint16_t));
    l->down = take(b, hidden * ffn, sizeof(uint16_t));
    l->attention_norm = take(b, hidden, sizeof(float));
    l->ffn_norm = take(b, hidden, sizeof(float));
    l->qkv_bias = take_if(b, "self_attn.q_proj.bias", attention_width(m) + 2 * kv_width(m));
    l->o_bias = take_if(b, "self_attn.o_proj.bias", hidden);
    l->gate_up_bias = take_if(b, "mlp.gate_proj.bias", 2 * ffn);
    l->down_bias = take_if(b, "mlp.down_proj.bias", hidden);
    l->head_norms = take_if(b, "self_attn.q_norm.weight", 2 * (size_t)m->head_dim);
    l->keys = take(b, cached, sizeof(uint16_t));
    l->values = take(b, cached, sizeof(uint16_t));
}

static void place_step(mgl_baseline *b)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    size_t rows = (size_t)b->rows, hidden = (size_t)m->hidden, ffn = (size_t)m->ffn;
    size_t sampled = (size_t)b->of->sequences, words = made_tokens(b);
    b->x = take(b, rows * hidden, sizeof(float));
    b->normed = take(b, rows * hidden, sizeof(uint16_t));
    b->added = take(b, rows * hidden, sizeof(uint16_t));
    b->qkv = take(b, rows * (attention_width(m) + 2 * kv_width(m)), sizeof(uint16_t));
    b->attention = take(b, rows * attention_width(m), sizeof(uint16_t));
    b->gate_up = take(b, rows * 2 * ffn, sizeof(uint16_t));
    b->activated = take(b, rows * ffn, sizeof(uint16_t));
    b->part = take(b, sampled * (size_t)m->heads * (size_t)b->splits * (size_t)(m->head_dim + 2),
                   sizeof(float));
    b->logits = take(b, sampled * (size_t)m->vocab, sizeof(float));
    b->best_value = take(b, sampled * ARGMAX_PARTS, sizeof(float));
    b->best_id = take(b, sampled * ARGMAX_PARTS, sizeof(int32_t));
    b->token = take(b, rows, sizeof(int32_t));
    b->position = take(b, rows, sizeof(int32_t));
    b->output = take(b, words, sizeof(int32_t));
    b->forced = take(b, 1 + words, sizeof(int32_t));
    b->workspace = take(b, WORKSPACE_BYTES, 1);
}

/* Assigns addresses from `base` on. Returns the total bytes. */
static size_t place(mgl_baseline *b, mgl_address base)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    size_t table = (size_t)m->vocab * (size_t)m->hidden;
    b->cursor = base;
    for (int l = 0; l < m->layers; l++)
        place_layer(b, &b->layers[l]);
    b->embedding = take(b, table, sizeof(uint16_t));
    b->head = b->of->graph->tied ? b->embedding : take(b, table, sizeof(uint16_t));
    b->norm = take(b, (size_t)m->hidden, sizeof(float));
    place_step(b);
    return b->cursor - base;
}

static mgl_status allocate(mgl_baseline *b, mgl_error *err)
{
    size_t bytes = place(b, 0);
    mgl_status status = mgl_bench_allocate(b->device, bytes, "the baseline", &b->arena, err);
    if (!status)
        place(b, b->arena);
    return status;
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Makes a tensor of the graph at *to and advances *to, so that tensors can be stacked. */
static mgl_status make_tensor(mgl_baseline *b, int tensor, const char *name, bool wide,
                              mgl_address *to, mgl_error *err)
{
    const mgl_graph *graph = b->of->graph;
    if (tensor < 0)
        return mgl_fail(err, MGL_BAD_INPUT, name, "the graph has no such tensor");
    mgl_synthetic_rule rule = mgl_synthetic_tensor_rule(graph, tensor);
    long long count = (long long)graph->tensors[tensor].rows * graph->tensors[tensor].cols;
    mgl_status status = mgl_bench_fill_rows(b->device, *to, &rule, count, wide, err);
    *to += (mgl_address)count * (wide ? sizeof(float) : sizeof(uint16_t));
    return status;
}

/* Makes tensors of a layer, stacked at `to`. Names follow "model.layers.<layer>." and end with
 * NULL. Does nothing if `to` is 0. */
static mgl_status make_stack(mgl_baseline *b, int layer, const char *const *names, bool wide,
                             mgl_address to, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (; to && *names && !status; names++)
        status = make_tensor(b, find_tensor(b, layer, *names), *names, wide, &to, err);
    return status;
}

static mgl_status make_layer(mgl_baseline *b, int layer, mgl_error *err)
{
    const struct layer *l = &b->layers[layer];
    const struct {
        const char *names[4];
        bool wide;
        mgl_address to;
    } stacks[] = {
        {{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
         false,
         l->qkv},
        {{"self_attn.o_proj.weight"}, false, l->o},
        {{"mlp.gate_proj.weight", "mlp.up_proj.weight"}, false, l->gate_up},
        {{"mlp.down_proj.weight"}, false, l->down},
        {{"input_layernorm.weight"}, true, l->attention_norm},
        {{"post_attention_layernorm.weight"}, true, l->ffn_norm},
        {{"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"},
         true,
         l->qkv_bias},
        {{"self_attn.o_proj.bias"}, true, l->o_bias},
        {{"mlp.gate_proj.bias", "mlp.up_proj.bias"}, true, l->gate_up_bias},
        {{"mlp.down_proj.bias"}, true, l->down_bias},
        {{"self_attn.q_norm.weight", "self_attn.k_norm.weight"}, true, l->head_norms},
    };
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks && !status; i++)
        status = make_stack(b, layer, stacks[i].names, stacks[i].wide, stacks[i].to, err);
    for (int value = 0; value < 2 && !status; value++)
        status = mgl_bench_fill_cache(b->device, value ? l->values : l->keys, b->of->graph, layer,
                                      value, MGL_BF16, false, b->of->sequences, b->of->capacity,
                                      b->of->context, err);
    return status;
}

/* Makes a tensor outside the layers. */
static mgl_status make_single(mgl_baseline *b, const char *name, bool wide, mgl_address to,
                              mgl_error *err)
{
    return make_tensor(b, mgl_graph_find_tensor(b->of->graph, name), name, wide, &to, err);
}

static mgl_status make_weights(mgl_baseline *b, mgl_error *err)
{
    mgl_status status = make_single(b, "model.embed_tokens.weight", false, b->embedding, err);
    if (!status && !b->of->graph->tied)
        status = make_single(b, "lm_head.weight", false, b->head, err);
    if (!status)
        status = make_single(b, "model.norm.weight", true, b->norm, err);
    for (int l = 0; l < b->of->graph->geometry.layers && !status; l++)
        status = make_layer(b, l, err);
    return status ? status : mgl_bench_wait(b->device, err);
}

/* ---- step ----------------------------------------------------------------------------------- */

static unsigned blocks_for(size_t threads)
{
    return (unsigned)((threads + SMALL_THREADS - 1) / SMALL_THREADS);
}

/* y (rows, outer) = x (rows, inner) W^T with W (outer, inner), bf16 to `type`. */
static mgl_status multiply(mgl_baseline *b, int rows, mgl_address weight, mgl_address x,
                           mgl_address y, int type, size_t outer, size_t inner, mgl_error *err)
{
    const float one = 1, zero = 0;
    int result = b->cublas->gemm(b->handle, MGL_CUBLAS_TRANSPOSED, MGL_CUBLAS_PLAIN, (int)outer,
                                 rows, (int)inner, &one, (const void *)(uintptr_t)weight,
                                 MGL_CUBLAS_BF16, (int)inner, (const void *)(uintptr_t)x,
                                 MGL_CUBLAS_BF16, (int)inner, &zero, (void *)(uintptr_t)y, type,
                                 (int)outer, MGL_CUBLAS_COMPUTE_F32, MGL_CUBLAS_ANY_ALGORITHM);
    return mgl_cublas_check(result, "a matrix product of the baseline", err);
}

/* Adds `add` and the bias (may be 0) to the residual stream, or starts it with the tokens' rows of
 * `add`, then normalizes; all rows from `first` on. */
static mgl_status step_norm(mgl_baseline *b, int first, mgl_address add, mgl_address bias,
                            bool start, mgl_address weight, mgl_error *err)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    size_t values = (size_t)first * (size_t)m->hidden;
    mgl_block_norm block = {.x = b->x + values * sizeof(float),
                            .add = add + values * sizeof(uint16_t),
                            .token = start ? b->token : 0,
                            .bias = bias,
                            .weight = weight,
                            .out = b->normed,
                            .hidden = m->hidden,
                            .eps = m->eps};
    mgl_bench_grid grid = {.x = (unsigned)(b->rows - first),
                           .threads = b->of->prompt ? SMALL_THREADS : NORM_THREADS};
    return mgl_bench_launch(b->device, MGL_KERNEL_NORM, grid, &block, err);
}

static mgl_status step_rope(mgl_baseline *b, const struct layer *l, mgl_error *err)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    mgl_block_rope block = {.qkv = b->qkv,
                            .bias = l->qkv_bias,
                            .norm = l->head_norms,
                            .table = b->of->rope,
                            .position = b->position,
                            .keys = l->keys,
                            .values = l->values,
                            .sequences = b->rows,
                            .heads = m->heads,
                            .kv_heads = m->kv_heads,
                            .capacity = b->of->capacity,
                            .eps = m->eps,
                            .tokens = b->rows / b->of->sequences};
    size_t pairs = (attention_width(m) + 2 * kv_width(m)) / 2 * (size_t)b->rows;
    mgl_bench_grid grid = {.x = blocks_for(pairs), .threads = SMALL_THREADS};
    return mgl_bench_launch(b->device, MGL_KERNEL_ROPE, grid, &block, err);
}

/* Factor that turns a dot product into an exponent of 2. */
static float score_scale(const mgl_geometry *m)
{
    return (float)(M_LOG2E / sqrt((double)m->head_dim));
}

static mgl_status step_attend_prompt(mgl_baseline *b, const struct layer *l, mgl_error *err)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    mgl_block_prompt_attend block = {.qkv = b->qkv,
                                     .keys = l->keys,
                                     .values = l->values,
                                     .out = b->attention,
                                     .rows = b->rows,
                                     .kv_heads = m->kv_heads,
                                     .capacity = b->of->capacity,
                                     .context = b->of->context,
                                     .scale = score_scale(m)};
    mgl_bench_grid grid = {.x = (unsigned)((b->rows + MGL_PROMPT_ROWS - 1) / MGL_PROMPT_ROWS),
                           .y = (unsigned)m->heads,
                           .threads = (unsigned)MGL_PROMPT_THREADS(m->head_dim)};
    return mgl_bench_launch(b->device, MGL_KERNEL_PROMPT_ATTEND, grid, &block, err);
}

static mgl_status step_attend(mgl_baseline *b, const struct layer *l, mgl_error *err)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    if (b->of->prompt)
        return step_attend_prompt(b, l, err);
    mgl_block_attend block = {.qkv = b->qkv,
                              .position = b->position,
                              .keys = l->keys,
                              .values = l->values,
                              .part = b->part,
                              .out = b->attention,
                              .kv_heads = m->kv_heads,
                              .capacity = b->of->capacity,
                              .splits = b->splits,
                              .scale = score_scale(m)};
    mgl_bench_grid grid = {(unsigned)b->splits, (unsigned)m->kv_heads, (unsigned)b->of->sequences,
                           ATTEND_THREADS};
    mgl_status status = mgl_bench_launch(b->device, MGL_KERNEL_ATTEND, grid, &block, err);
    if (status || b->splits == 1)
        return status;
    mgl_block_merge merge = {.part = b->part, .out = b->attention, .splits = b->splits};
    mgl_bench_grid heads = {.x = (unsigned)(m->heads * b->of->sequences),
                            .threads = (unsigned)m->head_dim};
    return mgl_bench_launch(b->device, MGL_KERNEL_MERGE, heads, &merge, err);
}

static mgl_status step_silu(mgl_baseline *b, const struct layer *l, mgl_error *err)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    mgl_block_silu block = {.gate_up = b->gate_up,
                            .bias = l->gate_up_bias,
                            .out = b->activated,
                            .sequences = b->rows,
                            .ffn = m->ffn};
    mgl_bench_kernel kernel = b->of->prompt ? MGL_KERNEL_PROMPT_SILU : MGL_KERNEL_SILU;
    size_t columns = b->of->prompt ? PROMPT_SILU_COLUMNS : 1;
    mgl_bench_grid grid = {.x = blocks_for((size_t)b->rows * (size_t)m->ffn / columns),
                           .threads = SMALL_THREADS};
    return mgl_bench_launch(b->device, kernel, grid, &block, err);
}

/* Bias of the last product before `layer`. */
static mgl_address bias_before(const mgl_baseline *b, int layer)
{
    return layer ? b->layers[layer - 1].down_bias : 0;
}

/* Launches a layer. Its first norm adds the previous layer's output. */
static mgl_status step_layer(mgl_baseline *b, int layer, mgl_error *err)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    const struct layer *l = &b->layers[layer];
    size_t hidden = (size_t)m->hidden, ffn = (size_t)m->ffn, width = attention_width(m);
    int rows = b->rows;
    mgl_status status = step_norm(b, 0, layer ? b->added : b->embedding, bias_before(b, layer),
                                  layer == 0, l->attention_norm, err);
    if (!status)
        status = multiply(b, rows, l->qkv, b->normed, b->qkv, MGL_CUBLAS_BF16,
                          width + 2 * kv_width(m), hidden, err);
    if (!status)
        status = step_rope(b, l, err);
    if (!status)
        status = step_attend(b, l, err);
    if (!status)
        status =
            multiply(b, rows, l->o, b->attention, b->added, MGL_CUBLAS_BF16, hidden, width, err);
    if (!status)
        status = step_norm(b, 0, b->added, l->o_bias, false, l->ffn_norm, err);
    if (!status)
        status = multiply(b, rows, l->gate_up, b->normed, b->gate_up, MGL_CUBLAS_BF16, 2 * ffn,
                          hidden, err);
    if (!status)
        status = step_silu(b, l, err);
    if (!status)
        status =
            multiply(b, rows, l->down, b->activated, b->added, MGL_CUBLAS_BF16, hidden, ffn, err);
    return status;
}

static mgl_status step_sample(mgl_baseline *b, mgl_error *err)
{
    size_t at = (size_t)first_sampled(b) * sizeof(int32_t);
    mgl_block_argmax argmax = {.logits = b->logits,
                               .value = b->best_value,
                               .id = b->best_id,
                               .vocab = b->of->graph->geometry.vocab,
                               .parts = ARGMAX_PARTS};
    mgl_block_advance advance = {.value = b->best_value,
                                 .id = b->best_id,
                                 .token = b->token + at,
                                 .position = b->position + at,
                                 .output = b->output,
                                 .forced = b->forced,
                                 .parts = ARGMAX_PARTS,
                                 .tokens = b->tokens,
                                 .context = first_position(b)};
    unsigned sequences = (unsigned)b->of->sequences;
    mgl_bench_grid parts = {.x = ARGMAX_PARTS, .y = sequences, .threads = SMALL_THREADS};
    mgl_bench_grid warps = {.x = sequences, .threads = WARP_THREADS};
    mgl_status status = mgl_bench_launch(b->device, MGL_KERNEL_ARGMAX, parts, &argmax, err);
    return status ? status : mgl_bench_launch(b->device, MGL_KERNEL_ADVANCE, warps, &advance, err);
}

/* Launches a step: one token of every sequence. */
static mgl_status step(mgl_baseline *b, mgl_error *err)
{
    const mgl_geometry *m = &b->of->graph->geometry;
    mgl_status status = MGL_OK;
    for (int l = 0; l < m->layers && !status; l++)
        status = step_layer(b, l, err);
    if (!status)
        status = step_norm(b, first_sampled(b), b->added, bias_before(b, m->layers), false, b->norm,
                           err);
    if (!status)
        status = multiply(b, b->of->sequences, b->head, b->normed, b->logits, MGL_CUBLAS_F32,
                          (size_t)m->vocab, (size_t)m->hidden, err);
    return status ? status : step_sample(b, err);
}

/* ---- opening and running -------------------------------------------------------------------- */

/* Resets everything that a run changes. */
static mgl_status reset(mgl_baseline *b, const int32_t *forced, mgl_error *err)
{
    const mgl_bench_case *of = b->of;
    size_t rows = (size_t)b->rows, words = made_tokens(b);
    b->start[0] = forced != NULL;
    for (size_t i = 0; i < words; i++)
        b->start[1 + i] = forced ? forced[i] : 0;
    mgl_status status =
        mgl_bench_copy_in(b->device, b->forced, b->start, (1 + words) * sizeof *b->start, err);
    if (!status)
        status = mgl_bench_copy_in(b->device, b->token, of->first, rows * sizeof *of->first, err);
    for (size_t i = 0; i < rows; i++)
        b->start[i] = of->context + (of->prompt ? (int32_t)i : 0);
    return status
               ? status
               : mgl_bench_copy_in(b->device, b->position, b->start, rows * sizeof *b->start, err);
}

static mgl_status open_cublas(mgl_baseline *b, mgl_error *err)
{
    mgl_status status = mgl_cublas_open(&b->cublas, err);
    if (status)
        return status;
    int result = b->cublas->create(&b->handle);
    if (result)
        b->handle = NULL;
    if (!result)
        result = b->cublas->version(b->handle, &b->version);
    if (!result)
        result = b->cublas->set_stream(b->handle, b->device->stream);
    if (!result)
        result =
            b->cublas->set_workspace(b->handle, (void *)(uintptr_t)b->workspace, WORKSPACE_BYTES);
    return mgl_cublas_check(result, "starting cuBLAS", err);
}

/* Runs one step directly, so that cuBLAS loads its kernels, then captures one. */
static mgl_status capture(mgl_baseline *b, mgl_error *err)
{
    const mgl_cu *cu = b->device->cu;
    mgl_status status = reset(b, NULL, err);
    if (!status)
        status = step(b, err);
    if (!status)
        status = mgl_bench_wait(b->device, err);
    if (!status)
        status = mgl_cu_check(cu, cu->capture_begin(b->device->stream, MGL_CU_CAPTURE_RELAXED),
                              "capturing the baseline", err);
    if (status)
        return status;
    status = step(b, err);
    int result = cu->capture_end(b->device->stream, &b->graph);
    if (!status)
        status = mgl_cu_check(cu, result, "capturing the baseline", err);
    return status ? status
                  : mgl_cu_check(cu, cu->graph_instantiate(&b->executable, b->graph, 0),
                                 "making the baseline's graph", err);
}

static mgl_status open_baseline(mgl_baseline *b, mgl_error *err)
{
    const mgl_bench_case *of = b->of;
    const mgl_geometry *m = &of->graph->geometry;
    b->rows = of->prompt ? of->tokens : of->sequences;
    b->tokens = of->prompt ? 1 : of->tokens;
    size_t words = 1 + (size_t)b->rows * (size_t)b->tokens;
    b->splits = mgl_baseline_choose_splits(of->context + of->tokens, of->sequences, m->kv_heads,
                                           b->device->target.queues);
    b->layers = mgl_alloc_zero((size_t)m->layers, sizeof *b->layers);
    b->start = mgl_alloc_zero(words, sizeof *b->start);
    if (!b->layers || !b->start)
        return mgl_fail_memory(err, words * sizeof *b->start);
    mgl_status status = allocate(b, err);
    if (!status)
        status = make_weights(b, err);
    if (!status)
        status = open_cublas(b, err);
    return status ? status : capture(b, err);
}

mgl_status mgl_baseline_open(const mgl_bench_device *device, const mgl_bench_case *of,
                             mgl_baseline **out, mgl_error *err)
{
    *out = NULL;
    mgl_status status = mgl_baseline_check(&of->graph->geometry, err);
    if (status)
        return status;
    mgl_baseline *b = mgl_alloc_zero(1, sizeof *b);
    if (!b)
        return mgl_fail_memory(err, sizeof *b);
    b->device = device;
    b->of = of;
    status = open_baseline(b, err);
    if (status)
        mgl_baseline_close(b);
    else
        *out = b;
    return status;
}

void mgl_baseline_close(mgl_baseline *b)
{
    if (!b)
        return;
    const mgl_cu *cu = b->device->cu;
    if (b->executable)
        cu->graph_release(b->executable);
    if (b->graph)
        cu->graph_destroy(b->graph);
    if (b->handle)
        b->cublas->destroy(b->handle);
    mgl_bench_release(b->device, b->arena);
    mgl_free(b->layers);
    mgl_free(b->start);
    mgl_free(b);
}

mgl_status mgl_baseline_run(mgl_baseline *b, const int32_t *forced, int32_t *output,
                            double *seconds, mgl_error *err)
{
    const mgl_cu *cu = b->device->cu;
    size_t words = made_tokens(b);
    mgl_status status = reset(b, b->of->prompt ? NULL : forced, err);
    if (!status)
        status = mgl_bench_start_clock(b->device, err);
    for (int t = 0; t < b->tokens && !status; t++)
        status = mgl_cu_check(cu, cu->graph_launch(b->executable, b->device->stream),
                              "launching the baseline", err);
    if (!status)
        status = mgl_bench_stop_clock(b->device, seconds, err);
    return status ? status
                  : mgl_bench_copy_out(b->device, output, b->output, words * sizeof *output, err);
}

mgl_status mgl_baseline_get_logits(mgl_baseline *b, int sequence, float *logits, mgl_error *err)
{
    size_t bytes = (size_t)b->of->graph->geometry.vocab * sizeof *logits;
    return mgl_bench_copy_out(b->device, logits, b->logits + (mgl_address)sequence * bytes, bytes,
                              err);
}

int mgl_baseline_cublas_version(const mgl_baseline *b)
{
    return b->version;
}
