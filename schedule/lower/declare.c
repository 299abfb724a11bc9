/*
 * First half of lowering: declares the tensors, buffers and counters that the tasks of lower.c use.
 * It walks the graph layer by layer along its edges. Names and the order of declarations appear in
 * the text form, so they are part of the result.
 *
 * The declarations follow the choices (choose.c). With counters, all layers share one exchange
 * buffer of each kind, and each step has a counter. With flags, each layer has its own exchange
 * buffers in FLAG_SETS sets, in 16 bits as far as the exchange precision (knob
 * `exchange_precision`) allows, and there are no counters.
 */
#include "schedule/lower/lower.h"
#include "schedule/pages.h"

#include <stdio.h>
#include <string.h>

enum { FLAG_SETS = 2 };

/* ---- reading the graph ---------------------------------------------------------------------- */

/* The first node of `kind` whose first input is `in`, or -1. */
static int consumer(const mgl_graph *graph, mgl_node_kind kind, int in)
{
    for (int i = in < 0 ? 0 : in; in >= 0 && i < graph->node_count; i++)
        if (graph->nodes[i].kind == kind && graph->nodes[i].in[0] == in)
            return i;
    return -1;
}

/* The final value of a product: after its bias and the norm of its heads, if it has them. */
static int finished(const mgl_graph *graph, int node)
{
    static const mgl_node_kind kinds[] = {MGL_NODE_BIAS, MGL_NODE_HEAD_NORM};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int next = consumer(graph, kinds[i], node);
        node = next < 0 ? node : next;
    }
    return node;
}

/* The node of that kind between a final value and its product (MGL_NODE_LINEAR: the product
 * itself). -1: there is none. */
static int behind_value(const mgl_graph *graph, int node, mgl_node_kind kind)
{
    while (node >= 0 && graph->nodes[node].kind != kind)
        node = graph->nodes[node].kind == MGL_NODE_BIAS ||
                       graph->nodes[node].kind == MGL_NODE_HEAD_NORM
                   ? graph->nodes[node].in[0]
                   : -1;
    return node;
}

/* Whether a final value is a product of `in`. */
static bool is_product_of(const mgl_graph *graph, int node, int in)
{
    int product = behind_value(graph, node, MGL_NODE_LINEAR);
    return product >= 0 && graph->nodes[product].in[0] == in;
}

static int tensor_of(const mgl_graph *graph, int node)
{
    return node < 0 ? -1 : graph->nodes[node].tensor;
}

/* The nodes of a layer. */
struct nodes {
    int norm, attention, o, sum, ffn_norm, swiglu, down, out;
};

/* Finds the nodes of the decoder layer whose input is value x. False: the nodes form no such
 * layer. */
static bool find_layer(const mgl_graph *graph, int x, struct nodes *n)
{
    n->norm = consumer(graph, MGL_NODE_NORM, x);
    n->attention = consumer(graph, MGL_NODE_ATTENTION,
                            finished(graph, consumer(graph, MGL_NODE_LINEAR, n->norm)));
    n->o = consumer(graph, MGL_NODE_LINEAR, n->attention);
    n->sum = consumer(graph, MGL_NODE_ADD, x);
    n->ffn_norm = consumer(graph, MGL_NODE_NORM, n->sum);
    n->swiglu = consumer(graph, MGL_NODE_SWIGLU,
                         finished(graph, consumer(graph, MGL_NODE_LINEAR, n->ffn_norm)));
    n->down = consumer(graph, MGL_NODE_LINEAR, n->swiglu);
    n->out = consumer(graph, MGL_NODE_ADD, n->sum);
    if (n->attention < 0 || n->o < 0 || n->swiglu < 0 || n->down < 0 || n->out < 0)
        return false;
    const mgl_node *attention = &graph->nodes[n->attention], *swiglu = &graph->nodes[n->swiglu];
    for (int i = 0; i < 3; i++)
        if (!is_product_of(graph, attention->in[i], n->norm))
            return false;
    return is_product_of(graph, swiglu->in[1], n->ffn_norm) &&
           graph->nodes[n->sum].in[1] == finished(graph, n->o) &&
           graph->nodes[n->out].in[1] == finished(graph, n->down);
}

/* ---- declarations --------------------------------------------------------------------------- */

/* Declares a tensor of the graph under a short name. Returns its index. */
static int declare_tensor(mgl_lowering *w, const char *name, int tensor, mgl_weight_format format)
{
    if (tensor < 0) {
        w->status = mgl_fail(w->err, MGL_BAD_INPUT, name, "the graph has no such weight");
        return -1;
    }
    const mgl_tensor *t = &w->graph->tensors[tensor];
    return mgl_program_add_tensor(w->program, name, t->name, format, t->rank, t->rows, t->cols);
}

/* The format of a matrix: if it is quantized, or on a CPU in f32, that of the checkpoint, if the
 * program takes it; else the program's. */
static mgl_weight_format format_of(const mgl_lowering *w, int tensor)
{
    const mgl_weight_format usual = mgl_weight_format_of(w->program->weight_dtype);
    if (tensor < 0)
        return usual;
    const mgl_weight_format own = mgl_tensor_format(&w->graph->tensors[tensor]);
    const bool keeps = mgl_weight_format_is_scaled(own) || w->program->weight_dtype == MGL_F32;
    return keeps && mgl_program_takes_format(w->program, own) ? own : usual;
}

/* Declares a const buffer (count) for a part of a tensor: its row factors or its column map. The
 * name is that of the tensor with the suffix. */
static void declare_part(mgl_lowering *w, int tensor, const char *suffix, mgl_source source,
                         mgl_dtype dtype, int64_t count)
{
    char name[80];
    snprintf(name, sizeof name, "%s_%s", w->program->tensors[tensor].name, suffix);
    mgl_buffer buffer = {.name = name,
                         .space = MGL_SPACE_CONST,
                         .dtype = dtype,
                         .rank = 1,
                         .extents = {{MGL_FIXED, count}},
                         .source = source,
                         .tensor = tensor,
                         .sets = 1};
    mgl_program_add_buffer(w->program, &buffer);
}

/* Declares the row factors and the column map of a tensor, if it has them. */
static void declare_parts(mgl_lowering *w, int tensor)
{
    if (tensor < 0 || !mgl_weight_format_is_scaled(w->program->tensors[tensor].format))
        return;
    const mgl_program_tensor *t = &w->program->tensors[tensor];
    const int stored = mgl_graph_find_tensor(w->graph, t->checkpoint);
    if (mgl_weight_format_has_factors(t->format))
        declare_part(w, tensor, "scales", MGL_SOURCE_SCALES, MGL_F32, t->rows);
    if (stored >= 0 && w->graph->tensors[stored].reordered)
        declare_part(w, tensor, "order", MGL_SOURCE_ORDER, MGL_I32, t->cols);
}

/* Declares the weight of the product that makes a value. */
static int declare_layer_tensor(mgl_lowering *w, int layer, const char *name, int value)
{
    char full[64];
    int tensor = tensor_of(w->graph, behind_value(w->graph, value, MGL_NODE_LINEAR));
    snprintf(full, sizeof full, "l%d.%s", layer, name);
    return declare_tensor(w, full, tensor, format_of(w, tensor));
}

/* The same, with its row factors and its column map. */
static int declare_layer_matrix(mgl_lowering *w, int layer, const char *name, int value)
{
    const int tensor = declare_layer_tensor(w, layer, name, value);
    declare_parts(w, tensor);
    return tensor;
}

/* Whether two tensors have different column maps. */
static bool orders_differ(const mgl_lowering *w, int first, int second)
{
    const int a = mgl_graph_find_tensor(w->graph, w->program->tensors[first].checkpoint);
    const int b = mgl_graph_find_tensor(w->graph, w->program->tensors[second].checkpoint);
    if (a < 0 || b < 0)
        return true;
    const mgl_tensor *x = &w->graph->tensors[a], *y = &w->graph->tensors[b];
    if (!x->reordered && !y->reordered)
        return false;
    const int64_t columns = w->program->tensors[first].cols;
    return !x->order || !y->order || w->program->tensors[second].cols != columns ||
           memcmp(x->order, y->order, (size_t)columns * sizeof *x->order) != 0;
}

bool mgl_lowering_differ(const mgl_lowering *w, int first, int second)
{
    const mgl_program_tensor *all = w->program->tensors;
    return !mgl_weight_format_equal(all[first].format, all[second].format) ||
           (mgl_weight_format_is_scaled(all[first].format) && orders_differ(w, first, second));
}

/* Declares gate and up, which share a segment and therefore a format. */
static void declare_pair(mgl_lowering *w, int layer, const mgl_node *swiglu)
{
    mgl_lowering_layer *l = &w->layers[layer];
    l->gate = declare_layer_tensor(w, layer, "gate", swiglu->in[0]);
    l->up = declare_layer_tensor(w, layer, "up", swiglu->in[1]);
    if (l->gate < 0 || l->up < 0)
        return;
    mgl_program_tensor *gate = &w->program->tensors[l->gate], *up = &w->program->tensors[l->up];
    const bool scaled =
        mgl_weight_format_is_scaled(gate->format) || mgl_weight_format_is_scaled(up->format);
    const bool differ = !mgl_weight_format_equal(gate->format, up->format);
    if (scaled && strcmp(w->program->target.arch, "cpu") != 0 &&
        mgl_lowering_differ(w, l->gate, l->up))
        w->status = mgl_fail(w->err, MGL_BAD_INPUT, gate->checkpoint,
                             "gate and up of a layer have different %s, which only the CPU machine "
                             "supports; use --device cpu, or the target cpu",
                             differ ? "weight formats" : "orders of columns (g_idx)");
    if (differ)
        gate->format = up->format =
            mgl_weight_format_of(scaled ? MGL_F32 : w->program->weight_dtype);
    declare_parts(w, l->gate);
    declare_parts(w, l->up);
}

/* Declares a buffer. `extents` may contain the negative symbols below instead of numbers. */
enum { ROWS = -1, SEQUENCES = -2, CAPACITY = -3 };
static int declare(mgl_lowering *w, const char *name, mgl_space space, mgl_dtype dtype, int sets,
                   int rank, const int64_t *extents)
{
    const mgl_limits *limits = &w->program->limits;
    mgl_buffer buffer = {
        .name = name, .space = space, .dtype = dtype, .rank = rank, .tensor = -1, .sets = sets};
    for (int i = 0; i < rank; i++) {
        mgl_extent *extent = &buffer.extents[i];
        *extent = extents[i] == ROWS        ? (mgl_extent){MGL_ROWS, limits->rows}
                  : extents[i] == SEQUENCES ? (mgl_extent){MGL_SEQUENCES, limits->sequences}
                  : extents[i] == CAPACITY  ? (mgl_extent){MGL_CAPACITY, limits->capacity}
                                            : (mgl_extent){MGL_FIXED, extents[i]};
    }
    return mgl_program_add_buffer(w->program, &buffer);
}
#define DECLARE(w, name, space, dtype, ...)                                                        \
    declare(w, name, MGL_SPACE_##space, dtype, 1,                                                  \
            (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* Declares the weight of a norm, or a bias: a tensor, and the f32 const buffer for it. */
static int declare_vector(mgl_lowering *w, const char *tensor, const char *name, int node)
{
    int source = tensor_of(w->graph, node);
    int index = declare_tensor(w, tensor, source, mgl_weight_format_of(MGL_F32));
    mgl_buffer buffer = {.name = name,
                         .space = MGL_SPACE_CONST,
                         .dtype = MGL_F32,
                         .rank = 1,
                         .extents = {{MGL_FIXED, source < 0 ? 0 : w->graph->tensors[source].cols}},
                         .source = MGL_SOURCE_TENSOR,
                         .tensor = index,
                         .sets = 1};
    return mgl_program_add_buffer(w->program, &buffer);
}

static int declare_layer_norm(mgl_lowering *w, int layer, const char *name, int node)
{
    char tensor[64], buffer[64];
    snprintf(tensor, sizeof tensor, "l%d.%s_norm", layer, name);
    snprintf(buffer, sizeof buffer, "l%d.%s_g", layer, name);
    return declare_vector(w, tensor, buffer, node);
}

/* Declares the norm of a value's heads. -1: there is none. */
static int declare_head_norm(mgl_lowering *w, int layer, const char *name, int value)
{
    int node = behind_value(w->graph, value, MGL_NODE_HEAD_NORM);
    return node < 0 ? -1 : declare_layer_norm(w, layer, name, node);
}

/* Declares the bias of a product as l<layer>.<name>_b. -1: there is none. */
static int declare_bias(mgl_lowering *w, int layer, const char *name, int value)
{
    char tensor[64], buffer[64];
    int node = behind_value(w->graph, value, MGL_NODE_BIAS);
    snprintf(tensor, sizeof tensor, "l%d.%s_bias", layer, name);
    snprintf(buffer, sizeof buffer, "l%d.%s_b", layer, name);
    return node < 0 ? -1 : declare_vector(w, tensor, buffer, node);
}

/* Declares the counter of a layer's step. -1 with flags. */
static int declare_counter(mgl_lowering *w, int layer, const char *step)
{
    char name[64];
    if (w->choices.flags)
        return -1;
    snprintf(name, sizeof name, "%sl%d.%s", w->prefix, layer, step);
    return mgl_program_add_counter(w->program, name);
}

/* Declares the tensors that a layer has beyond Llama's. */
static void declare_extras(mgl_lowering *w, int layer, const struct nodes *n)
{
    static const char *const names[] = {"q", "k", "v"};
    const mgl_graph *graph = w->graph;
    const mgl_node *attention = &graph->nodes[n->attention], *swiglu = &graph->nodes[n->swiglu];
    mgl_lowering_layer *l = &w->layers[layer];
    for (int i = 0; i < 3; i++)
        l->qkv_b[i] = declare_bias(w, layer, names[i], attention->in[i]);
    l->q_g = declare_head_norm(w, layer, "q", attention->in[0]);
    l->k_g = declare_head_norm(w, layer, "k", attention->in[1]);
    l->o_b = declare_bias(w, layer, "o", finished(graph, n->o));
    l->gate_b = declare_bias(w, layer, "gate", swiglu->in[0]);
    l->up_b = declare_bias(w, layer, "up", swiglu->in[1]);
    l->down_b = declare_bias(w, layer, "down", finished(graph, n->down));
}

bool mgl_lowering_has_merges(const mgl_lowering *w)
{
    return w->choices.splits > 1 && !w->choices.merges_in_o;
}

static void declare_layer_counters(mgl_lowering *w, int layer)
{
    mgl_lowering_layer *l = &w->layers[layer];
    l->qkv_done = declare_counter(w, layer, "qkv");
    l->attend_done = declare_counter(w, layer, "attend");
    l->merge_done = mgl_lowering_has_merges(w) ? declare_counter(w, layer, "merge") : -1;
    l->o_done = declare_counter(w, layer, "o");
    l->gate_up_done = declare_counter(w, layer, "gate_up");
    l->down_done = declare_counter(w, layer, "down");
}

static void declare_layer(mgl_lowering *w, int layer, const struct nodes *n)
{
    const mgl_graph *graph = w->graph;
    const mgl_geometry *m = &w->program->geometry;
    const mgl_node *attention = &graph->nodes[n->attention], *swiglu = &graph->nodes[n->swiglu];
    mgl_dtype cache = w->program->kv_dtype;
    mgl_lowering_layer *l = &w->layers[layer];
    char name[32];
    l->attn_g = declare_layer_norm(w, layer, "attn", n->norm);
    l->q = declare_layer_matrix(w, layer, "q", attention->in[0]);
    l->k = declare_layer_matrix(w, layer, "k", attention->in[1]);
    l->v = declare_layer_matrix(w, layer, "v", attention->in[2]);
    l->o = declare_layer_matrix(w, layer, "o", n->o);
    l->ffn_g = declare_layer_norm(w, layer, "ffn", n->ffn_norm);
    declare_pair(w, layer, swiglu);
    l->down = declare_layer_matrix(w, layer, "down", n->down);
    declare_extras(w, layer, n);
    snprintf(name, sizeof name, "k%d", layer);
    l->k_cache = DECLARE(w, name, KV, cache, SEQUENCES, m->kv_heads, CAPACITY, m->head_dim);
    name[0] = 'v';
    l->v_cache = DECLARE(w, name, KV, cache, SEQUENCES, m->kv_heads, CAPACITY, m->head_dim);
    declare_layer_counters(w, layer);
}

/* The dtype of the embedding table: if it is quantized, or on a CPU in f32, that of the checkpoint,
 * if the program takes it; else the program's. */
static mgl_dtype table_dtype(const mgl_lowering *w, int tensor)
{
    const mgl_dtype usual = w->program->embedding_dtype;
    if (tensor < 0)
        return usual;
    const mgl_tensor *t = &w->graph->tensors[tensor];
    const bool keeps = mgl_tensor_is_quantized(t) || usual == MGL_F32;
    return keeps && mgl_program_takes_table(w->program, t->dtype) ? t->dtype : usual;
}

static void declare_constants(mgl_lowering *w, int embed_node)
{
    const mgl_geometry *m = &w->program->geometry;
    int table = tensor_of(w->graph, embed_node);
    const mgl_dtype dtype = table_dtype(w, table);
    int embed = declare_tensor(w, "embed", table, mgl_weight_format_of(dtype));
    mgl_buffer embedding = {.name = "embedding",
                            .space = MGL_SPACE_CONST,
                            .dtype = dtype,
                            .rank = 2,
                            .extents = {{MGL_FIXED, m->vocab}, {MGL_FIXED, m->hidden}},
                            .source = MGL_SOURCE_TENSOR,
                            .tensor = embed,
                            .sets = 1};
    mgl_buffer rope = {
        .name = "rope",
        .space = MGL_SPACE_CONST,
        .dtype = MGL_F32,
        .rank = 2,
        .extents = {{MGL_CAPACITY, w->program->limits.capacity}, {MGL_FIXED, m->head_dim}},
        .source = MGL_SOURCE_ROPE,
        .tensor = -1,
        .sets = 1};
    w->embedding = mgl_program_add_buffer(w->program, &embedding);
    w->rope = mgl_program_add_buffer(w->program, &rope);
}

/* Declares a buffer of exchanged values, for one layer, or for all layers (layer -1). */
static int declare_exchange(mgl_lowering *w, int layer, const char *name, mgl_dtype dtype, int rank,
                            const int64_t *extents)
{
    char full[64];
    if (layer < 0)
        snprintf(full, sizeof full, "%s%s", w->prefix, name);
    else
        snprintf(full, sizeof full, "%sl%d.%s", w->prefix, layer, name);
    return declare(w, full, MGL_SPACE_ACT, dtype, w->choices.flags ? FLAG_SETS : 1, rank, extents);
}

static int declare_rows(mgl_lowering *w, int layer, const char *name, mgl_dtype dtype,
                        int64_t columns)
{
    const int64_t extents[] = {ROWS, columns};
    const int index = declare_exchange(w, layer, name, dtype, 2, extents);
    if (index >= 0 && w->gamma_scaled && mgl_dtype_size(dtype) == MGL_PAGE_VALUE_BYTES)
        w->program->buffers[index].paged = columns % MGL_PAGE_COLUMNS == 0;
    return index;
}

/* The dtype of exchanged values of a kind: exchange_dtype if the exchange precision reaches
 * `level`. */
static mgl_dtype exchange_dtype_at(const mgl_lowering *w, int level)
{
    const bool exchange_precision =
        w->gamma_scaled ? level < MGL_EXCHANGE_RESIDUAL
                        : w->choices.flags && w->choices.exchange_precision >= level;
    return exchange_precision ? w->program->exchange_dtype : MGL_F32;
}

int mgl_lowering_norm(const mgl_lowering *w, int layer)
{
    return layer < w->program->geometry.layers ? w->layers[layer].attn_g : w->g;
}

static mgl_lowering_exchange declare_layer_exchange(mgl_lowering *w, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    bool flags = w->choices.flags;
    mgl_lowering_exchange e = {.part = -1, .att = -1};
    int64_t heads = (int64_t)m->heads * m->head_dim, kv = (int64_t)m->kv_heads * m->head_dim;
    e.x = declare_rows(w, layer, "x", exchange_dtype_at(w, MGL_EXCHANGE_RESIDUAL), m->hidden);
    e.qkv = declare_rows(w, layer, "qkv", MGL_F32, heads + 2 * kv);
    if (!w->choices.merges_in_o)
        e.att = declare_rows(w, layer, "att", exchange_dtype_at(w, MGL_EXCHANGE_ATTENTION), heads);
    e.y = flags
              ? declare_rows(w, layer, "y", exchange_dtype_at(w, MGL_EXCHANGE_RESIDUAL), m->hidden)
              : e.x;
    e.h = declare_rows(w, layer, "h", exchange_dtype_at(w, MGL_EXCHANGE_FFN), m->ffn);
    if (w->choices.splits > 1) { /* with flags, whole granules */
        const int64_t part[] = {w->choices.splits, ROWS, m->heads, m->head_dim + (flags ? 4 : 2)};
        e.part = declare_exchange(w, layer, "part", MGL_F32, 4, part);
    }
    return e;
}

static void declare_activations(mgl_lowering *w)
{
    int layers = w->program->geometry.layers, hidden = w->program->geometry.hidden;
    bool flags = w->choices.flags;
    if (flags)
        w->residual = DECLARE(w, "r", ACT, MGL_F32, ROWS, hidden);
    for (int l = 0; l < layers; l++)
        w->layers[l].act = flags    ? declare_layer_exchange(w, l)
                           : l == 0 ? declare_layer_exchange(w, -1)
                                    : w->layers[0].act;
    if (flags)
        w->x = declare_rows(w, -1, "x", exchange_dtype_at(w, MGL_EXCHANGE_RESIDUAL), hidden);
    else
        w->x = w->residual = w->layers[0].act.x;
}

/* Declares the gamma_scaled value and its squares, shared by all layers: each reader is done
 * before the next write. */
static void declare_gamma_scaled(mgl_lowering *w)
{
    w->n = w->x_s = w->y_s = -1;
    if (!w->gamma_scaled)
        return;
    w->n = declare_rows(w, -1, "n", w->program->exchange_dtype, w->program->geometry.hidden);
    w->x_s = declare_rows(w, -1, "x_s", MGL_F32, mgl_lowering_tasks(w, MGL_STEP_DOWN));
    w->y_s = declare_rows(w, -1, "y_s", MGL_F32, mgl_lowering_tasks(w, MGL_STEP_O));
}

static void declare_io(mgl_lowering *w)
{
    int rows = mgl_limits_most(&w->program->limits);
    w->control = DECLARE(w, "control", IO, MGL_I32, MGL_CONTROL_WORDS);
    w->table = DECLARE(w, "table", IO, MGL_I32, rows, MGL_TABLE_WORDS);
    w->sequence = DECLARE(w, "sequence", IO, MGL_I32, SEQUENCES, MGL_SEQUENCE_WORDS);
    w->prompt = DECLARE(w, "prompt", IO, MGL_I32, SEQUENCES, CAPACITY);
    w->output = DECLARE(w, "output", IO, MGL_I32, SEQUENCES, CAPACITY);
    w->score = DECLARE(w, "score", IO, MGL_F32, SEQUENCES, CAPACITY);
    w->counts = -1;
    if (w->penalties)
        w->counts = DECLARE(w, "counts", IO, MGL_I32, SEQUENCES, w->program->geometry.vocab);
}

int mgl_lowering_tasks(const mgl_lowering *w, mgl_step step)
{
    int64_t groups = mgl_step_groups(&w->program->geometry, step);
    int count = w->choices.queues[step].count;
    return groups < count ? (int)groups : count;
}

int mgl_lowering_draws(const mgl_lowering *w)
{
    const mgl_limits *limits = &w->program->limits;
    const int heads = mgl_lowering_tasks(w, MGL_STEP_HEAD);
    const int count = limits->rows < heads ? limits->rows : heads;
    return limits->sequences > 1 && count > 1 ? count : 0;
}

/* Declares the results of the head and the draws, which are inputs of sample. */
static void declare_results(mgl_lowering *w)
{
    int vocab = w->program->geometry.vocab, parts = mgl_lowering_tasks(w, MGL_STEP_HEAD);
    char names[4][64];
    snprintf(names[0], sizeof names[0], "%slogits", w->prefix);
    snprintf(names[1], sizeof names[1], "%sbest_value", w->prefix);
    snprintf(names[2], sizeof names[2], "%sbest_id", w->prefix);
    w->logits = DECLARE(w, names[0], IO, MGL_F32, ROWS, vocab);
    w->best_value = DECLARE(w, names[1], IO, MGL_F32, ROWS, parts);
    w->best_id = DECLARE(w, names[2], IO, MGL_I32, ROWS, parts + (mgl_lowering_draws(w) > 0));
    w->penalized = -1;
    snprintf(names[3], sizeof names[3], "%spenalized", w->prefix);
    if (w->penalties)
        w->penalized = DECLARE(w, names[3], IO, MGL_F32, ROWS, vocab);
}

void mgl_lowering_declare(mgl_lowering *w)
{
    const mgl_graph *graph = w->graph;
    int x = -1;
    for (int i = 0; i < graph->node_count && x < 0; i++)
        if (graph->nodes[i].kind == MGL_NODE_EMBED)
            x = i;
    int embed = x;
    declare_constants(w, embed);
    w->embedded = w->choices.flags ? -1 : mgl_program_add_counter(w->program, "embedded");
    for (int l = 0; l < w->program->geometry.layers; l++) {
        struct nodes nodes;
        if (!find_layer(graph, x, &nodes)) {
            w->status = mgl_fail(w->err, MGL_BAD_INPUT, NULL,
                                 "layer %d of the graph is not a Llama decoder layer", l);
            return;
        }
        declare_layer(w, l, &nodes);
        x = nodes.out;
    }
    int norm = consumer(graph, MGL_NODE_NORM, x), head = consumer(graph, MGL_NODE_LINEAR, norm);
    w->g = declare_vector(w, "norm", "g", norm);
    int table = tensor_of(graph, head);
    bool shared = head >= 0 && table == tensor_of(graph, embed) && w->program->tensor_count > 0 &&
                  mgl_weight_format_equal(w->program->tensors[0].format, format_of(w, table));
    w->head = shared ? 0 : declare_tensor(w, "head", table, format_of(w, table));
    declare_parts(w, w->head);
    declare_activations(w);
    declare_io(w);
    declare_results(w);
    w->head_done = mgl_program_add_counter(w->program, "head");
    w->sampled = mgl_program_add_counter(w->program, "sampled");
}

void mgl_lowering_declare_second(mgl_lowering *w)
{
    w->embedded = mgl_program_add_counter(w->program, "second.embedded");
    for (int l = 0; l < w->program->geometry.layers; l++)
        declare_layer_counters(w, l);
    declare_activations(w);
    declare_gamma_scaled(w);
    declare_results(w);
    w->head_done = mgl_program_add_counter(w->program, "second.head");
}
