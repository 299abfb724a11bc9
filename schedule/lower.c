/*
 * Lowering: graph + target + ScheduleConfig -> program. Deterministic; coarse on purpose: one task
 * a (queue, step) by default.
 *
 *   enter -> embed -> { qkv -> attend (-> merge) -> o -> gate/up -> down } x layers
 *   -> head -> sample
 *
 * Every step's weight rows are cut into row groups, and the groups are dealt to the queues that
 * choose.c gives it: queue i of n has groups [G i / n, G (i + 1) / n), equal to within one. A queue
 * without a share of a step has no task for it. At the epoch edge `enter` waits for the sample of
 * the epoch before (threshold 0). Inside an epoch there are two kinds of edges:
 *
 * Counters. Each step joins on the one before: one counter a (layer, step), waited for at its full
 * count. Why the joins order everything: x, qkv, att and h exist once and are written anew in each
 * layer. A step's task waits for all tasks of the step before it, so by induction all readers of a
 * buffer are done when its next writer starts.
 *
 * Flags. Each layer has exchange buffers of its own, in two sets, whose words tell by themselves
 * that they were written; the residual r is f32 and plain, and each queue touches only its own
 * columns, in embed, o and down. A queue's last tasks of a layer clear the words that it writes
 * there, in the set of the next epoch. Why two sets are enough: a set is cleared in the epoch
 * between its uses, all tasks of an epoch are done when it is sampled, and all of the next start
 * after that. So sample waits for every queue: for its head, or else for its last task (`done`).
 *
 * The validator proves it all for each program anew.
 */
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "schedule/choose.h"
#include "schedule/step.h"
#include "schedule/variants.h"

enum { FLAG_SETS = 2 };

/* The buffers of a layer in which tasks exchange values; without flags, of all layers. */
struct exchange {
    int x;    /* its input, normed by qkv */
    int qkv;  /* q, k and v */
    int part; /* of attention, when that is split; else -1 */
    int att;  /* of the heads; -1 where o merges them itself */
    int y;    /* x and o's part, normed by gate and up; without flags, x itself */
    int h;    /* of the ffn */
};

/* What one layer has in the program. The counters are -1 where there is nothing to count: with
 * flags, all. */
struct layer {
    int q, k, v, o, gate, up, down;                                         /* on the tapes */
    int attn_g, ffn_g;                                                      /* const buffers */
    int qkv_b[3], o_b, gate_b, up_b, down_b, q_g, k_g;                      /* the same, or -1 */
    int k_cache, v_cache;                                                   /* kv buffers */
    struct exchange act;                                                    /* its activations */
    int qkv_done, attend_done, merge_done, o_done, gate_up_done, down_done; /* counters */
};

struct lowering {
    const mgl_graph *graph;
    mgl_program *program;
    mgl_choices choices;
    struct layer *layers;   /* (layers) */
    int head;               /* program tensor of the head */
    int embedding, rope, g; /* const buffers */
    int residual, x;        /* what is summed up, and what the head reads: one without flags */
    int control, table, sequence, prompt, output, score, logits, best_value, best_id;
    int embedded, head_done, sampled; /* counters; embedded: -1 with flags */
    int idle, done;                   /* counters of queues without a head; -1: none */
    int64_t tape;                     /* bytes so far on the tape of the newest queue */
    const char *prefix;               /* of what the list declares for itself */
    bool second;                      /* it is the second list: without tapes of its own */
    mgl_status status;
    mgl_error *err;
};

/* ---- reading the graph ---------------------------------------------------------------------- */

/* The first node of `kind` whose first input is `in`, or -1. */
static int consumer(const mgl_graph *graph, mgl_node_kind kind, int in)
{
    for (int i = in < 0 ? 0 : in; in >= 0 && i < graph->node_count; i++)
        if (graph->nodes[i].kind == kind && graph->nodes[i].in[0] == in)
            return i;
    return -1;
}

/* The value that a product is finished to: behind its bias and the norm of its heads, if it has
 * them. */
static int finished(const mgl_graph *graph, int node)
{
    static const mgl_node_kind kinds[] = {MGL_NODE_BIAS, MGL_NODE_HEAD_NORM};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int next = consumer(graph, kinds[i], node);
        node = next < 0 ? node : next;
    }
    return node;
}

/* The node of that kind between a finished value and its product (MGL_NODE_LINEAR: the product);
 * -1: there is none. */
static int behind_value(const mgl_graph *graph, int node, mgl_node_kind kind)
{
    while (node >= 0 && graph->nodes[node].kind != kind)
        node = graph->nodes[node].kind == MGL_NODE_BIAS ||
                       graph->nodes[node].kind == MGL_NODE_HEAD_NORM
                   ? graph->nodes[node].in[0]
                   : -1;
    return node;
}

/* Whether a finished value is a product of `in`. */
static bool is_product_of(const mgl_graph *graph, int node, int in)
{
    int product = behind_value(graph, node, MGL_NODE_LINEAR);
    return product >= 0 && graph->nodes[product].in[0] == in;
}

static int tensor_of(const mgl_graph *graph, int node)
{
    return node < 0 ? -1 : graph->nodes[node].tensor;
}

/* The layer's nodes, found by how they hang together. */
struct nodes {
    int norm, attention, o, sum, ffn_norm, swiglu, down, out;
};

/* Finds the nodes of the decoder layer that starts from value x. False when it is no such layer. */
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

/* Declares a tensor of the graph under a short name; its index. */
static int declare_tensor(struct lowering *w, const char *name, int tensor,
                          mgl_weight_format format)
{
    if (tensor < 0) {
        w->status = mgl_fail(w->err, MGL_BAD_INPUT, name, "the graph has no such weight");
        return -1;
    }
    const mgl_tensor *t = &w->graph->tensors[tensor];
    return mgl_program_add_tensor(w->program, name, t->name, format, t->rank, t->rows, t->cols);
}

/* The format of a matrix: the program's; but in f32 on a CPU the checkpoint's. */
static mgl_weight_format format_of(const struct lowering *w, int tensor)
{
    mgl_weight_format own = MGL_FORMAT_COUNT;
    if (tensor >= 0 && mgl_weight_format_of(w->graph->tensors[tensor].dtype, &own) &&
        mgl_program_takes_format(w->program, own))
        return own;
    return w->program->weight_format;
}

/* The weight of the product behind a value. */
static int declare_layer_tensor(struct lowering *w, int layer, const char *name, int value)
{
    char full[64];
    int tensor = tensor_of(w->graph, behind_value(w->graph, value, MGL_NODE_LINEAR));
    snprintf(full, sizeof full, "l%d.%s", layer, name);
    return declare_tensor(w, full, tensor, format_of(w, tensor));
}

/* gate and up, which share a segment and so a format. */
static void declare_pair(struct lowering *w, int layer, const mgl_node *swiglu)
{
    struct layer *l = &w->layers[layer];
    l->gate = declare_layer_tensor(w, layer, "gate", swiglu->in[0]);
    l->up = declare_layer_tensor(w, layer, "up", swiglu->in[1]);
    if (l->gate < 0 || l->up < 0)
        return;
    mgl_program_tensor *gate = &w->program->tensors[l->gate], *up = &w->program->tensors[l->up];
    if (gate->format != up->format)
        gate->format = up->format = w->program->weight_format;
}

/* Declares a buffer; `extents` may hold the negative symbols below instead of numbers. */
enum { ROWS = -1, SEQUENCES = -2, CAPACITY = -3 };
static int declare(struct lowering *w, const char *name, mgl_space space, mgl_dtype dtype, int sets,
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

/* The weight of a norm, or a bias: a tensor and the f32 const buffer that holds it. */
static int declare_vector(struct lowering *w, const char *tensor, const char *name, int node)
{
    int source = tensor_of(w->graph, node);
    int index = declare_tensor(w, tensor, source, MGL_FORMAT_F32);
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

static int declare_layer_norm(struct lowering *w, int layer, const char *name, int node)
{
    char tensor[64], buffer[64];
    snprintf(tensor, sizeof tensor, "l%d.%s_norm", layer, name);
    snprintf(buffer, sizeof buffer, "l%d.%s_g", layer, name);
    return declare_vector(w, tensor, buffer, node);
}

/* The norm of a value's heads; -1: it has none. */
static int declare_head_norm(struct lowering *w, int layer, const char *name, int value)
{
    int node = behind_value(w->graph, value, MGL_NODE_HEAD_NORM);
    return node < 0 ? -1 : declare_layer_norm(w, layer, name, node);
}

/* The bias of a product, as l<layer>.<name>_b; -1: it has none. */
static int declare_bias(struct lowering *w, int layer, const char *name, int value)
{
    char tensor[64], buffer[64];
    int node = behind_value(w->graph, value, MGL_NODE_BIAS);
    snprintf(tensor, sizeof tensor, "l%d.%s_bias", layer, name);
    snprintf(buffer, sizeof buffer, "l%d.%s_b", layer, name);
    return node < 0 ? -1 : declare_vector(w, tensor, buffer, node);
}

/* The counter of a step of a layer; with flags there is none. */
static int declare_counter(struct lowering *w, int layer, const char *step)
{
    char name[64];
    if (w->choices.flags)
        return -1;
    snprintf(name, sizeof name, "%sl%d.%s", w->prefix, layer, step);
    return mgl_program_add_counter(w->program, name);
}

/* What a layer has beyond Llama's. */
static void declare_extras(struct lowering *w, int layer, const struct nodes *n)
{
    static const char *const names[] = {"q", "k", "v"};
    const mgl_graph *graph = w->graph;
    const mgl_node *attention = &graph->nodes[n->attention], *swiglu = &graph->nodes[n->swiglu];
    struct layer *l = &w->layers[layer];
    for (int i = 0; i < 3; i++)
        l->qkv_b[i] = declare_bias(w, layer, names[i], attention->in[i]);
    l->q_g = declare_head_norm(w, layer, "q", attention->in[0]);
    l->k_g = declare_head_norm(w, layer, "k", attention->in[1]);
    l->o_b = declare_bias(w, layer, "o", finished(graph, n->o));
    l->gate_b = declare_bias(w, layer, "gate", swiglu->in[0]);
    l->up_b = declare_bias(w, layer, "up", swiglu->in[1]);
    l->down_b = declare_bias(w, layer, "down", finished(graph, n->down));
}

/* Whether tasks of their own merge the splits of attention. */
static bool has_merges(const struct lowering *w)
{
    return w->choices.splits > 1 && !w->choices.merges_in_o;
}

static void declare_layer_counters(struct lowering *w, int layer)
{
    struct layer *l = &w->layers[layer];
    l->qkv_done = declare_counter(w, layer, "qkv");
    l->attend_done = declare_counter(w, layer, "attend");
    l->merge_done = has_merges(w) ? declare_counter(w, layer, "merge") : -1;
    l->o_done = declare_counter(w, layer, "o");
    l->gate_up_done = declare_counter(w, layer, "gate_up");
    l->down_done = declare_counter(w, layer, "down");
}

static void declare_layer(struct lowering *w, int layer, const struct nodes *n)
{
    const mgl_graph *graph = w->graph;
    const mgl_geometry *m = &w->program->geometry;
    const mgl_node *attention = &graph->nodes[n->attention], *swiglu = &graph->nodes[n->swiglu];
    mgl_dtype cache = w->program->kv_dtype;
    struct layer *l = &w->layers[layer];
    char name[32];
    l->attn_g = declare_layer_norm(w, layer, "attn", n->norm);
    l->q = declare_layer_tensor(w, layer, "q", attention->in[0]);
    l->k = declare_layer_tensor(w, layer, "k", attention->in[1]);
    l->v = declare_layer_tensor(w, layer, "v", attention->in[2]);
    l->o = declare_layer_tensor(w, layer, "o", n->o);
    l->ffn_g = declare_layer_norm(w, layer, "ffn", n->ffn_norm);
    declare_pair(w, layer, swiglu);
    l->down = declare_layer_tensor(w, layer, "down", n->down);
    declare_extras(w, layer, n);
    snprintf(name, sizeof name, "k%d", layer);
    l->k_cache = DECLARE(w, name, KV, cache, SEQUENCES, m->kv_heads, CAPACITY, m->head_dim);
    name[0] = 'v';
    l->v_cache = DECLARE(w, name, KV, cache, SEQUENCES, m->kv_heads, CAPACITY, m->head_dim);
    declare_layer_counters(w, layer);
}

/* The dtype of the embedding table: the program's; but in f32 on a CPU the checkpoint's. */
static mgl_dtype table_dtype(const struct lowering *w, int tensor)
{
    if (tensor >= 0 && mgl_program_takes_table(w->program, w->graph->tensors[tensor].dtype))
        return w->graph->tensors[tensor].dtype;
    return w->program->embedding_dtype;
}

static void declare_constants(struct lowering *w, int embed_node)
{
    const mgl_geometry *m = &w->program->geometry;
    int table = tensor_of(w->graph, embed_node);
    const mgl_dtype dtype = table_dtype(w, table);
    mgl_weight_format format = w->program->weight_format;
    (void)mgl_weight_format_of(dtype, &format);
    int embed = declare_tensor(w, "embed", table, format);
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

/* A buffer in which tasks exchange values: of one layer, or of all (layer -1). */
static int declare_exchange(struct lowering *w, int layer, const char *name, mgl_dtype dtype,
                            int rank, const int64_t *extents)
{
    char full[64];
    if (layer < 0)
        snprintf(full, sizeof full, "%s%s", w->prefix, name);
    else
        snprintf(full, sizeof full, "%sl%d.%s", w->prefix, layer, name);
    return declare(w, full, MGL_SPACE_ACT, dtype, w->choices.flags ? FLAG_SETS : 1, rank, extents);
}

static int declare_rows(struct lowering *w, int layer, const char *name, mgl_dtype dtype,
                        int64_t columns)
{
    const int64_t extents[] = {ROWS, columns};
    return declare_exchange(w, layer, name, dtype, 2, extents);
}

/* The dtype in which values are exchanged: exchange_dtype from level `level` of the knob `narrow`
 * on. */
enum { NARROW_FFN = 1, NARROW_ATTENTION, NARROW_RESIDUAL };
static mgl_dtype narrowed(const struct lowering *w, int level)
{
    return w->choices.flags && w->choices.narrow >= level ? w->program->exchange_dtype : MGL_F32;
}

static struct exchange declare_layer_exchange(struct lowering *w, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    bool flags = w->choices.flags;
    struct exchange e = {.part = -1, .att = -1};
    int64_t heads = (int64_t)m->heads * m->head_dim, kv = (int64_t)m->kv_heads * m->head_dim;
    e.x = declare_rows(w, layer, "x", narrowed(w, NARROW_RESIDUAL), m->hidden);
    e.qkv = declare_rows(w, layer, "qkv", MGL_F32, heads + 2 * kv);
    if (!w->choices.merges_in_o)
        e.att = declare_rows(w, layer, "att", narrowed(w, NARROW_ATTENTION), heads);
    e.y = flags ? declare_rows(w, layer, "y", narrowed(w, NARROW_RESIDUAL), m->hidden) : e.x;
    e.h = declare_rows(w, layer, "h", narrowed(w, NARROW_FFN), m->ffn);
    if (w->choices.splits > 1) { /* with flags, whole granules */
        const int64_t part[] = {w->choices.splits, ROWS, m->heads, m->head_dim + (flags ? 4 : 2)};
        e.part = declare_exchange(w, layer, "part", MGL_F32, 4, part);
    }
    return e;
}

static void declare_activations(struct lowering *w)
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
        w->x = declare_rows(w, -1, "x", narrowed(w, NARROW_RESIDUAL), hidden);
    else
        w->x = w->residual = w->layers[0].act.x;
}

static int tasks_of(const struct lowering *w, mgl_step step);

static void declare_io(struct lowering *w)
{
    int rows = mgl_limits_most(&w->program->limits);
    w->control = DECLARE(w, "control", IO, MGL_I32, MGL_CONTROL_WORDS);
    w->table = DECLARE(w, "table", IO, MGL_I32, rows, MGL_TABLE_WORDS);
    w->sequence = DECLARE(w, "sequence", IO, MGL_I32, SEQUENCES, MGL_SEQUENCE_WORDS);
    w->prompt = DECLARE(w, "prompt", IO, MGL_I32, SEQUENCES, CAPACITY);
    w->output = DECLARE(w, "output", IO, MGL_I32, SEQUENCES, CAPACITY);
    w->score = DECLARE(w, "score", IO, MGL_F32, SEQUENCES, CAPACITY);
}

/* What the head makes for sample. */
static void declare_results(struct lowering *w)
{
    int vocab = w->program->geometry.vocab, parts = tasks_of(w, MGL_STEP_HEAD);
    char names[3][64];
    snprintf(names[0], sizeof names[0], "%slogits", w->prefix);
    snprintf(names[1], sizeof names[1], "%sbest_value", w->prefix);
    snprintf(names[2], sizeof names[2], "%sbest_id", w->prefix);
    w->logits = DECLARE(w, names[0], IO, MGL_F32, ROWS, vocab);
    w->best_value = DECLARE(w, names[1], IO, MGL_F32, ROWS, parts);
    w->best_id = DECLARE(w, names[2], IO, MGL_I32, ROWS, parts);
}

/* Declares everything, walking the graph from the embedding to the sample. */
static void declare_all(struct lowering *w)
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
                  w->program->tensors[0].format == format_of(w, table);
    w->head = shared ? 0 : declare_tensor(w, "head", table, format_of(w, table));
    declare_activations(w);
    declare_io(w);
    declare_results(w);
    w->head_done = mgl_program_add_counter(w->program, "head");
    w->sampled = mgl_program_add_counter(w->program, "sampled");
}

/* ---- regions -------------------------------------------------------------------------------- */

static mgl_range fixed(int64_t lo, int64_t hi)
{
    return (mgl_range){MGL_RANGE_FIXED, lo, hi};
}

static const mgl_range all_rows = {MGL_RANGE_ROWS, 0, 0};

/* Buffers with more than one set are flagged. */
static bool is_flagged(const struct lowering *w, int buffer)
{
    return buffer >= 0 && w->program->buffers[buffer].sets > 1;
}

/* Columns [lo, hi) of all rows of an activation. */
static mgl_region columns(const struct lowering *w, int buffer, int64_t lo, int64_t hi)
{
    return (mgl_region){
        .buffer = buffer, .flag = is_flagged(w, buffer), .ranges = {all_rows, fixed(lo, hi)}};
}

/* All of a buffer; its rows symbol, if any, as the rows of the epoch. */
static mgl_region whole(const struct lowering *w, int buffer)
{
    mgl_region region = {.buffer = buffer, .flag = is_flagged(w, buffer)};
    if (buffer < 0)
        return region;
    const mgl_buffer *b = &w->program->buffers[buffer];
    for (int i = 0; i < b->rank; i++)
        region.ranges[i] =
            b->extents[i].symbol == MGL_ROWS ? all_rows : fixed(0, b->extents[i].count);
    return region;
}

static void in(struct lowering *w, mgl_region region)
{
    mgl_program_add_in(w->program, &region);
}

/* A bias, or the norm of q or k, if there is one. */
static void in_extra(struct lowering *w, int buffer)
{
    if (buffer >= 0)
        in(w, whole(w, buffer));
}

static void out(struct lowering *w, mgl_region region)
{
    mgl_program_add_out(w->program, &region);
}

/* One kv head of a cache: the earlier positions, or this epoch's. */
static mgl_region cache(const struct lowering *w, int buffer, int head, mgl_range_kind kind)
{
    mgl_region region = whole(w, buffer);
    region.ranges[1] = fixed(head, head + 1);
    region.ranges[2] = (mgl_range){kind, 0, 0};
    return region;
}

/* ---- shares --------------------------------------------------------------------------------- */

/* The share [*lo, *hi) of a step's row groups that a queue has. False when it is empty. */
static bool share(const struct lowering *w, mgl_step step, int queue, int64_t *lo, int64_t *hi)
{
    int first = w->choices.queues[step].first, count = w->choices.queues[step].count;
    int64_t groups = mgl_step_groups(&w->program->geometry, step);
    if (queue < first || queue >= first + count)
        return false;
    *lo = groups * (queue - first) / count;
    *hi = groups * (queue - first + 1) / count;
    return *lo < *hi;
}

/* Queues with a share: the tasks of a step. */
static int tasks_of(const struct lowering *w, mgl_step step)
{
    int64_t groups = mgl_step_groups(&w->program->geometry, step);
    int count = w->choices.queues[step].count;
    return groups < count ? (int)groups : count;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static void task(struct lowering *w, mgl_op op)
{
    mgl_program_add_task(w->program, op);
}

/* Where flags are the edge there is no counter: it is -1. */
static void wait_for(struct lowering *w, int counter, int64_t threshold)
{
    if (counter >= 0)
        mgl_program_add_wait(w->program, counter, threshold);
}

static void signal_to(struct lowering *w, int counter)
{
    if (counter >= 0)
        mgl_program_add_signal(w->program, counter);
}

/* Puts row groups [lo, hi) of a tensor (of two: tensor2 >= 0) on the tape. */
static void segment(struct lowering *w, int tensor, int tensor2, int64_t lo, int64_t hi)
{
    if (mgl_program_failed(w->program) || w->status)
        return;
    const mgl_program_tensor *t = &w->program->tensors[tensor];
    mgl_segment s = {.tensor = tensor,
                     .tensor2 = tensor2,
                     .layout = tensor2 < 0 ? MGL_LAYOUT_G8 : MGL_LAYOUT_G8X2,
                     .row_lo = lo * MGL_ROW_GROUP,
                     .row_hi = min64(hi * MGL_ROW_GROUP, t->rows),
                     .col_hi = t->cols,
                     .offset = w->second ? 0 : w->tape};
    mgl_program_add_segment(w->program, &s);
    w->tape += mgl_segment_bytes(w->program, &s);
}

static void emit_embed(struct lowering *w, int queue)
{
    const mgl_geometry *m = &w->program->geometry;
    int64_t lo, hi;
    if (!share(w, MGL_STEP_DOWN, queue, &lo, &hi))
        return;
    lo *= MGL_ROW_GROUP;
    hi = min64(hi * MGL_ROW_GROUP, m->hidden);
    mgl_region rows = whole(w, w->embedding);
    rows.ranges[1] = fixed(lo, hi);
    task(w, MGL_OP_EMBED);
    in(w, rows);
    out(w, columns(w, w->residual, lo, hi));
    if (w->choices.flags)
        out(w, columns(w, w->layers[0].act.x, lo, hi));
    signal_to(w, w->embedded);
}

/* q, k and v stand one after the other: a share may hold parts of up to three. */
static void emit_qkv(struct lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    const int tensors[3] = {l->q, l->k, l->v};
    int64_t lo, hi, base = 0, column = 0, from = -1, to = 0;
    if (!share(w, MGL_STEP_QKV, queue, &lo, &hi))
        return;
    task(w, MGL_OP_NORM_LINEAR);
    in(w, whole(w, l->act.x));
    in(w, whole(w, l->attn_g));
    for (int i = 0; i < 3; i++) {
        int64_t rows = (int64_t)(i == 0 ? m->heads : m->kv_heads) * m->head_dim;
        int64_t groups = mgl_row_groups(rows);
        int64_t a = lo > base ? lo - base : 0, b = min64(hi - base, groups);
        if (a < b) {
            segment(w, tensors[i], -1, a, b);
            in_extra(w, l->qkv_b[i]);
            if (from < 0)
                from = column + a * MGL_ROW_GROUP;
            to = column + min64(b * MGL_ROW_GROUP, rows);
        }
        base += groups;
        column += rows;
    }
    out(w, columns(w, l->act.qkv, from, to));
    wait_for(w, layer == 0 ? w->embedded : w->layers[layer - 1].down_done,
             tasks_of(w, MGL_STEP_DOWN));
    signal_to(w, l->qkv_done);
}

/* Split `split` of kv head `head`. */
static void emit_attend_task(struct lowering *w, int layer, int head, int split)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    int group = m->heads / m->kv_heads;
    int64_t d = m->head_dim, q = (int64_t)head * group * d;
    int64_t k = (int64_t)m->heads * d + head * d, v = k + (int64_t)m->kv_heads * d;
    bool last = split == w->choices.splits - 1, whole_head = w->choices.splits == 1;
    task(w, whole_head ? MGL_OP_ATTEND : last ? MGL_OP_ATTEND_TAIL : MGL_OP_ATTEND_PAST);
    in(w, columns(w, l->act.qkv, q, q + group * d));
    if (last) {
        in(w, columns(w, l->act.qkv, k, k + d));
        in(w, columns(w, l->act.qkv, v, v + d));
    }
    in(w, whole(w, w->rope));
    in(w, cache(w, l->k_cache, head, MGL_RANGE_PAST));
    in(w, cache(w, l->v_cache, head, MGL_RANGE_PAST));
    in_extra(w, l->q_g);
    in_extra(w, last ? l->k_g : -1);
    if (whole_head) {
        out(w, columns(w, l->act.att, q, q + group * d));
    } else {
        mgl_region part = whole(w, l->act.part);
        part.ranges[0] = fixed(split, split + 1);
        part.ranges[2] = fixed((int64_t)head * group, (int64_t)(head + 1) * group);
        out(w, part);
    }
    if (last) {
        out(w, cache(w, l->k_cache, head, MGL_RANGE_NOW));
        out(w, cache(w, l->v_cache, head, MGL_RANGE_NOW));
    }
    wait_for(w, l->qkv_done, tasks_of(w, MGL_STEP_QKV));
    signal_to(w, l->attend_done);
}

/* Tasks of attention: task i of T goes to the i n / T-th of n queues. */
static bool has_task(const struct lowering *w, int queue, int64_t index, int64_t count)
{
    int first = w->choices.queues[MGL_STEP_ATTEND].first;
    int n = w->choices.queues[MGL_STEP_ATTEND].count;
    return queue == first + (int)(index * n / count);
}

static void emit_attend(struct lowering *w, int queue, int layer)
{
    int heads = w->program->geometry.kv_heads, splits = w->choices.splits;
    for (int i = 0; i < heads * splits; i++)
        if (has_task(w, queue, i, (int64_t)heads * splits))
            emit_attend_task(w, layer, i / splits, i % splits);
}

/* Heads that one task merges. */
static int merged_heads(const struct lowering *w)
{
    return mgl_merged_heads(&w->program->geometry, &w->choices.exec, w->choices.flags,
                            narrowed(w, NARROW_ATTENTION));
}

/* Merges of a layer; 0: attention is whole. */
static int merges(const struct lowering *w)
{
    int heads = merged_heads(w);
    return has_merges(w) ? (w->program->geometry.heads + heads - 1) / heads : 0;
}

static void emit_merge(struct lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    for (int i = 0, count = merges(w); i < count; i++) {
        int64_t first = (int64_t)i * merged_heads(w);
        int64_t end = min64(first + merged_heads(w), m->heads);
        if (!has_task(w, queue, i, count))
            continue;
        mgl_region part = whole(w, l->act.part);
        part.ranges[2] = fixed(first, end);
        task(w, MGL_OP_MERGE);
        in(w, part);
        out(w, columns(w, l->act.att, first * m->head_dim, end * m->head_dim));
        wait_for(w, l->attend_done, (int64_t)m->kv_heads * w->choices.splits);
        signal_to(w, l->merge_done);
    }
}

/* The value behind a layer, as the next one, or the head, reads it. */
static int behind(const struct lowering *w, int layer)
{
    return layer + 1 < w->program->geometry.layers ? w->layers[layer + 1].act.x : w->x;
}

/* o and down: the residual += a W^T on the queue's share of its columns; with flags, a copy too. */
static void emit_linear_add(struct lowering *w, int queue, int layer, mgl_step step)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    bool down = step == MGL_STEP_DOWN;
    int64_t lo, hi;
    if (!share(w, step, queue, &lo, &hi))
        return;
    int64_t first = lo * MGL_ROW_GROUP, end = min64(hi * MGL_ROW_GROUP, m->hidden);
    const bool merging = !down && w->choices.merges_in_o;
    task(w, merging ? MGL_OP_MERGE_ADD : MGL_OP_LINEAR_ADD);
    in(w, whole(w, down ? l->act.h : merging ? l->act.part : l->act.att));
    in(w, columns(w, w->residual, first, end));
    in_extra(w, down ? l->down_b : l->o_b);
    segment(w, down ? l->down : l->o, -1, lo, hi);
    out(w, columns(w, w->residual, first, end));
    if (w->choices.flags)
        out(w, columns(w, down ? behind(w, layer) : l->act.y, first, end));
    if (down)
        wait_for(w, l->gate_up_done, tasks_of(w, MGL_STEP_GATE_UP));
    else if (has_merges(w))
        wait_for(w, l->merge_done, merges(w));
    else
        wait_for(w, l->attend_done, (int64_t)m->kv_heads * w->choices.splits);
    signal_to(w, down ? l->down_done : l->o_done);
}

static void emit_gate_up(struct lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    int64_t lo, hi;
    if (!share(w, MGL_STEP_GATE_UP, queue, &lo, &hi))
        return;
    task(w, MGL_OP_NORM_SWIGLU);
    in(w, whole(w, l->act.y));
    in(w, whole(w, l->ffn_g));
    in_extra(w, l->gate_b);
    in_extra(w, l->up_b);
    segment(w, l->gate, l->up, lo, hi);
    out(w, columns(w, l->act.h, lo * MGL_ROW_GROUP, min64(hi * MGL_ROW_GROUP, m->ffn)));
    wait_for(w, l->o_done, tasks_of(w, MGL_STEP_O));
    signal_to(w, l->gate_up_done);
}

static void emit_head(struct lowering *w, int queue)
{
    const mgl_geometry *m = &w->program->geometry;
    int64_t lo, hi, groups = mgl_step_groups(m, MGL_STEP_HEAD);
    if (!share(w, MGL_STEP_HEAD, queue, &lo, &hi))
        return;
    int first = w->choices.queues[MGL_STEP_HEAD].first;
    int count = w->choices.queues[MGL_STEP_HEAD].count;
    int64_t index = groups < count ? lo : queue - first; /* shares before this one */
    task(w, MGL_OP_HEAD);
    in(w, whole(w, w->x));
    in(w, whole(w, w->g));
    segment(w, w->head, -1, lo, hi);
    out(w, columns(w, w->logits, lo * MGL_ROW_GROUP, min64(hi * MGL_ROW_GROUP, m->vocab)));
    out(w, columns(w, w->best_value, index, index + 1));
    out(w, columns(w, w->best_id, index, index + 1));
    wait_for(w, w->layers[m->layers - 1].down_done, tasks_of(w, MGL_STEP_DOWN));
    signal_to(w, w->head_done);
}

/* Queues whose end sample does not learn from their head, beside its own queue 0. */
struct others {
    int idle; /* that have nothing but enter */
    int done; /* with flags: that end with a layer */
};

/* Whether a queue has any task but enter (queue 0 has sample). */
static bool is_idle(const struct lowering *w, int queue)
{
    int kv_heads = w->program->geometry.kv_heads, splits = w->choices.splits;
    int64_t lo, hi, attends = (int64_t)kv_heads * splits;
    if (queue == 0)
        return false;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        if (share(w, (mgl_step)i, queue, &lo, &hi))
            return false;
    for (int64_t i = 0; i < attends; i++)
        if (has_task(w, queue, i, attends))
            return false;
    for (int i = 0, count = merges(w); i < count; i++)
        if (has_task(w, queue, i, count))
            return false;
    return true;
}

/* Whether nothing that a queue does last is waited for: with counters each step waits for the one
 * before, so all is. */
static bool ends_unseen(const struct lowering *w, int queue)
{
    int64_t lo, hi;
    return w->choices.flags && queue != 0 && !is_idle(w, queue) &&
           !share(w, MGL_STEP_HEAD, queue, &lo, &hi);
}

static struct others count_others(const struct lowering *w)
{
    struct others others = {0};
    for (int q = 0; q < w->program->target.queues; q++) {
        others.idle += is_idle(w, q);
        others.done += ends_unseen(w, q);
    }
    return others;
}

static void emit_sample(struct lowering *w, const struct others *others)
{
    const int inputs[] = {w->logits, w->best_value, w->best_id, w->sequence, w->prompt};
    const int outputs[] = {w->control, w->table, w->sequence, w->output, w->score};
    task(w, MGL_OP_SAMPLE);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        in(w, whole(w, inputs[i]));
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        out(w, whole(w, outputs[i]));
    wait_for(w, w->head_done, tasks_of(w, MGL_STEP_HEAD));
    wait_for(w, w->idle, others->idle);
    wait_for(w, w->done, others->done);
    signal_to(w, w->sampled);
}

/* Region number `index` of the queue's clears of a layer; a task takes a few. */
static void emit_clear(struct lowering *w, mgl_region region, int index)
{
    if (index % mgl_op_get(MGL_OP_CLEAR)->out_count == 0)
        task(w, MGL_OP_CLEAR);
    region.flag = false;
    out(w, region);
}

/* Clears what the queue's tasks from `first` on write with flags. */
static void emit_clears(struct lowering *w, int first)
{
    const mgl_program *p = w->program;
    int end = p->task_count, count = 0;
    mgl_region run = {.buffer = -1};
    for (int t = first; t < end; t++) {
        for (int i = 0; i < p->tasks[t].out.count && !mgl_program_failed(p); i++) {
            const mgl_region region = p->regions[p->tasks[t].out.first + i];
            if (!region.flag || mgl_region_join(&run, &region))
                continue;
            if (run.buffer >= 0)
                emit_clear(w, run, count++);
            run = region;
        }
    }
    if (run.buffer >= 0)
        emit_clear(w, run, count);
}

static void emit_layer(struct lowering *w, int queue, int layer)
{
    emit_qkv(w, queue, layer);
    emit_attend(w, queue, layer);
    emit_merge(w, queue, layer);
    emit_linear_add(w, queue, layer, MGL_STEP_O);
    emit_gate_up(w, queue, layer);
    emit_linear_add(w, queue, layer, MGL_STEP_DOWN);
}

static void emit_queue(struct lowering *w, int queue, const struct others *others)
{
    mgl_program *program = w->program;
    int index = mgl_program_add_queue(program);
    w->tape = 0;
    task(w, MGL_OP_ENTER);
    in(w, whole(w, w->control));
    in(w, whole(w, w->table));
    wait_for(w, w->sampled, 0);
    if (is_idle(w, queue))
        signal_to(w, w->idle);
    int first = program->task_count;
    emit_embed(w, queue);
    for (int l = 0; l < program->geometry.layers; l++, first = program->task_count) {
        emit_layer(w, queue, l);
        emit_clears(w, first);
    }
    if (ends_unseen(w, queue))
        signal_to(w, w->done);
    emit_head(w, queue);
    if (queue == 0)
        emit_sample(w, others);
    if (index < 0 || w->second || mgl_program_failed(program))
        return;
    MGL_ASSERT(w->tape % MGL_BLOCK_BYTES == 0);
    int64_t page = program->exec.page_bytes, bytes = (w->tape + page - 1) / page * page;
    program->queues[index].tape_bytes = bytes;
    program->queues[index].tape_pad = bytes - w->tape;
}

/* Emits all queues of a list that has declared everything but the counters that their ends need. */
static void emit_queues(struct lowering *w)
{
    char name[64];
    struct others others = count_others(w);
    snprintf(name, sizeof name, "%sidle", w->prefix);
    w->idle = others.idle ? mgl_program_add_counter(w->program, name) : -1;
    snprintf(name, sizeof name, "%sdone", w->prefix);
    w->done = others.done ? mgl_program_add_counter(w->program, name) : -1;
    for (int q = 0; !w->status && !mgl_program_failed(w->program) && q < w->program->target.queues;
         q++)
        emit_queue(w, q, &others);
}

/* The second list: the same steps on the same queues, joined by counters, with attention whole. */
static void lower_many(const struct lowering *first)
{
    struct lowering w = *first;
    w.status = mgl_program_add_many(first->program, first->err);
    if (w.status)
        return;
    w.program = first->program->many;
    w.prefix = "many.";
    w.second = true;
    w.choices.flags = false;
    w.choices.splits = 1;
    w.choices.merges_in_o = false;
    w.choices.rows = w.program->limits.rows;
    w.embedded = mgl_program_add_counter(w.program, "many.embedded");
    for (int l = 0; l < w.program->geometry.layers; l++)
        declare_layer_counters(&w, l);
    declare_activations(&w);
    declare_results(&w);
    w.head_done = mgl_program_add_counter(w.program, "many.head");
    emit_queues(&w);
}

/* Emits the lists into the program of `w`. */
static void emit_lists(struct lowering *w)
{
    declare_all(w);
    if (w->status || mgl_program_failed(w->program))
        return;
    emit_queues(w);
    if (w->program->limits.many > 0 && !w->status && !mgl_program_failed(w->program))
        lower_many(w);
}

/* Whether memory ran out while a list was made. */
static bool has_failed(const mgl_program *program)
{
    return mgl_program_failed(program) ||
           (program->limits.many > 0 && (!program->many || mgl_program_failed(program->many)));
}

mgl_status mgl_schedule_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, const mgl_schedule_config *config,
                              mgl_program **out_program, mgl_error *err)
{
    *out_program = NULL;
    mgl_program *program;
    struct lowering w = {.graph = graph, .err = err, .prefix = ""};
    mgl_status status = mgl_schedule_choose(graph, target, options, config, &w.choices, err);
    if (!status)
        status = mgl_program_new(&program, err);
    if (status)
        return status;
    program->target = *target;
    program->geometry = graph->geometry;
    program->limits = (mgl_limits){.rows = w.choices.rows,
                                   .sequences = options->sequences,
                                   .capacity = options->capacity,
                                   .many = w.choices.many,
                                   .share = w.choices.share};
    program->exec = w.choices.exec;
    if (!strcmp(target->arch, "cpu")) /* a row group's blocks in order, as one reader wants them */
        program->exec.warps = 1;
    mgl_program_set_dtype(program, options->dtype);
    w.program = program;
    w.layers = mgl_alloc_zero((size_t)graph->geometry.layers, sizeof *w.layers);
    if (w.layers)
        emit_lists(&w);
    if (!w.status && (!w.layers || has_failed(program)))
        w.status = mgl_fail_memory(err, 0);
    mgl_free(w.layers);
    if (!w.status)
        mgl_variants_choose(program);
    MGL_ASSERT(w.status || program->queue_count == target->queues);
    if (w.status)
        mgl_program_free(program);
    else
        *out_program = program;
    return w.status;
}
