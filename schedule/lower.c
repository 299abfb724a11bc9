/*
 * Lowering: graph + target + ScheduleConfig -> program. Deterministic; coarse on purpose: one task a
 * (queue, step) by default.
 *
 *   enter -> embed -> { qkv -> attend (-> merge) -> o -> gate/up -> down } x layers -> head -> sample
 *
 * Every step's weight rows are cut into row groups, and the groups are dealt to the queues that the
 * config names: queue i of n has groups [G i / n, G (i + 1) / n), equal to within one. A queue
 * without a share of a step has no task for it. Each step joins on the one before: one counter a
 * (layer, step), waited for at its full count. The one exception is the epoch edge: `enter` waits for
 * the sample of the epoch before (threshold 0).
 *
 * Why the joins order everything: x, qkv, att and h exist once and are written anew in each layer. A
 * step's task waits for all tasks of the step before it, so by induction all readers of a buffer
 * are done when its next writer starts. The validator proves it for each program anew.
 */
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/step.h"

/* Program tensors of one layer. */
struct layer {
    int q, k, v, o, gate, up, down;                     /* on the tapes */
    int attn_g, ffn_g;                                  /* const buffers */
    int k_cache, v_cache;                               /* kv buffers */
    int qkv, attend, merge, o_done, gate_up, down_done; /* counters */
};

struct lowering {
    const mgl_graph *graph;
    mgl_program *program;
    const mgl_schedule_config *config;
    struct layer *layers; /* (layers) */
    int splits;
    int head;                                     /* program tensor of the head */
    int embedding, rope, x, qkv, att, h, part, g; /* buffers */
    int control, table, sequence, prompt, output, score, logits, best_value, best_id;
    int embedded, head_done, sampled, idle; /* counters */
    int64_t tape;                           /* bytes so far on the tape of the newest queue */
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
    n->attention = consumer(graph, MGL_NODE_ATTENTION, consumer(graph, MGL_NODE_LINEAR, n->norm));
    n->o = consumer(graph, MGL_NODE_LINEAR, n->attention);
    n->sum = consumer(graph, MGL_NODE_ADD, x);
    n->ffn_norm = consumer(graph, MGL_NODE_NORM, n->sum);
    n->swiglu = consumer(graph, MGL_NODE_SWIGLU, consumer(graph, MGL_NODE_LINEAR, n->ffn_norm));
    n->down = consumer(graph, MGL_NODE_LINEAR, n->swiglu);
    n->out = consumer(graph, MGL_NODE_ADD, n->sum);
    if (n->attention < 0 || n->o < 0 || n->swiglu < 0 || n->down < 0 || n->out < 0)
        return false;
    const mgl_node *attention = &graph->nodes[n->attention], *swiglu = &graph->nodes[n->swiglu];
    for (int i = 0; i < 3; i++)
        if (graph->nodes[attention->in[i]].in[0] != n->norm)
            return false;
    return graph->nodes[swiglu->in[1]].in[0] == n->ffn_norm && graph->nodes[n->sum].in[1] == n->o &&
           graph->nodes[n->out].in[1] == n->down;
}

/* ---- declarations --------------------------------------------------------------------------- */

/* Declares a tensor of the graph under a short name; its index. */
static int declare_tensor(struct lowering *w, const char *name, int tensor, mgl_dtype dtype)
{
    if (tensor < 0) {
        w->status = mgl_fail(w->err, MGL_BAD_INPUT, name, "the graph has no such weight");
        return -1;
    }
    const mgl_tensor *t = &w->graph->tensors[tensor];
    return mgl_program_add_tensor(w->program, name, t->name, dtype, t->rank, t->rows, t->cols);
}

static int declare_layer_tensor(struct lowering *w, int layer, const char *name, int node)
{
    char full[64];
    snprintf(full, sizeof full, "l%d.%s", layer, name);
    return declare_tensor(w, full, tensor_of(w->graph, node), w->program->dtype);
}

/* Declares a buffer; `extents` may hold the negative symbols below instead of numbers. */
enum { ROWS = -1, SEQUENCES = -2, CAPACITY = -3 };
static int declare(struct lowering *w, const char *name, mgl_space space, mgl_dtype dtype, int rank,
                   const int64_t *extents)
{
    const mgl_limits *limits = &w->program->limits;
    mgl_buffer buffer = {
        .name = name, .space = space, .dtype = dtype, .rank = rank, .tensor = -1, .sets = 1};
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
    declare(w, name, MGL_SPACE_##space, dtype,                                                     \
            (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* A norm's weight: a tensor and the f32 const buffer that holds it. */
static int declare_norm(struct lowering *w, const char *tensor, const char *name, int node)
{
    int index = declare_tensor(w, tensor, tensor_of(w->graph, node), MGL_F32);
    mgl_buffer buffer = {.name = name,
                         .space = MGL_SPACE_CONST,
                         .dtype = MGL_F32,
                         .rank = 1,
                         .extents = {{MGL_FIXED, w->program->geometry.hidden}},
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
    return declare_norm(w, tensor, buffer, node);
}

static int declare_counter(struct lowering *w, int layer, const char *step)
{
    char name[64];
    snprintf(name, sizeof name, "l%d.%s", layer, step);
    return mgl_program_add_counter(w->program, name);
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
    l->gate = declare_layer_tensor(w, layer, "gate", swiglu->in[0]);
    l->up = declare_layer_tensor(w, layer, "up", swiglu->in[1]);
    l->down = declare_layer_tensor(w, layer, "down", n->down);
    snprintf(name, sizeof name, "k%d", layer);
    l->k_cache = DECLARE(w, name, KV, cache, SEQUENCES, m->kv_heads, CAPACITY, m->head_dim);
    name[0] = 'v';
    l->v_cache = DECLARE(w, name, KV, cache, SEQUENCES, m->kv_heads, CAPACITY, m->head_dim);
    l->qkv = declare_counter(w, layer, "qkv");
    l->attend = declare_counter(w, layer, "attend");
    l->merge = w->splits > 1 ? declare_counter(w, layer, "merge") : -1;
    l->o_done = declare_counter(w, layer, "o");
    l->gate_up = declare_counter(w, layer, "gate_up");
    l->down_done = declare_counter(w, layer, "down");
}

static void declare_constants(struct lowering *w, int embed_node)
{
    const mgl_geometry *m = &w->program->geometry;
    int embed = declare_tensor(w, "embed", tensor_of(w->graph, embed_node), w->program->dtype);
    mgl_buffer embedding = {.name = "embedding",
                            .space = MGL_SPACE_CONST,
                            .dtype = w->program->dtype,
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

static int64_t head_groups(const struct lowering *w);
static int tasks_of(const struct lowering *w, mgl_step step, int64_t groups);

static void declare_shared(struct lowering *w)
{
    const mgl_geometry *m = &w->program->geometry;
    int64_t wide = (int64_t)(m->heads + 2 * m->kv_heads) * m->head_dim;
    int rows = w->program->limits.rows;
    w->x = DECLARE(w, "x", ACT, MGL_F32, ROWS, m->hidden);
    w->qkv = DECLARE(w, "qkv", ACT, MGL_F32, ROWS, wide);
    w->att = DECLARE(w, "att", ACT, MGL_F32, ROWS, (int64_t)m->heads * m->head_dim);
    w->h = DECLARE(w, "h", ACT, MGL_F32, ROWS, m->ffn);
    if (w->splits > 1)
        w->part = DECLARE(w, "part", ACT, MGL_F32, w->splits, ROWS, m->heads, m->head_dim + 2);
    int parts = tasks_of(w, MGL_STEP_HEAD, head_groups(w));
    w->control = DECLARE(w, "control", IO, MGL_I32, MGL_CONTROL_WORDS);
    w->table = DECLARE(w, "table", IO, MGL_I32, rows, MGL_TABLE_WORDS);
    w->sequence = DECLARE(w, "sequence", IO, MGL_I32, SEQUENCES, MGL_SEQUENCE_WORDS);
    w->prompt = DECLARE(w, "prompt", IO, MGL_I32, SEQUENCES, CAPACITY);
    w->output = DECLARE(w, "output", IO, MGL_I32, SEQUENCES, CAPACITY);
    w->score = DECLARE(w, "score", IO, MGL_F32, SEQUENCES, CAPACITY);
    w->logits = DECLARE(w, "logits", IO, MGL_F32, ROWS, m->vocab);
    w->best_value = DECLARE(w, "best_value", IO, MGL_F32, ROWS, parts);
    w->best_id = DECLARE(w, "best_id", IO, MGL_I32, ROWS, parts);
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
    w->embedded = mgl_program_add_counter(w->program, "embedded");
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
    w->g = declare_norm(w, "norm", "g", norm);
    int shared = head >= 0 && tensor_of(graph, head) == tensor_of(graph, embed);
    w->head = shared ? 0 : declare_tensor(w, "head", tensor_of(graph, head), w->program->dtype);
    declare_shared(w);
    w->head_done = mgl_program_add_counter(w->program, "head");
    w->sampled = mgl_program_add_counter(w->program, "sampled");
}

/* ---- regions -------------------------------------------------------------------------------- */

static mgl_range fixed(int64_t lo, int64_t hi)
{
    return (mgl_range){MGL_RANGE_FIXED, lo, hi};
}

static const mgl_range all_rows = {MGL_RANGE_ROWS, 0, 0};

/* Columns [lo, hi) of all rows of an activation. */
static mgl_region columns(int buffer, int64_t lo, int64_t hi)
{
    return (mgl_region){.buffer = buffer, .ranges = {all_rows, fixed(lo, hi)}};
}

/* All of a buffer; its rows symbol, if any, as the rows of the epoch. */
static mgl_region whole(const struct lowering *w, int buffer)
{
    mgl_region region = {.buffer = buffer};
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

static int64_t groups_of(int64_t rows)
{
    return (rows + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
}

static int64_t head_groups(const struct lowering *w)
{
    return groups_of(w->program->geometry.vocab);
}

/* Queues that the config gives to a step. */
static void step_queues(const struct lowering *w, mgl_step step, int *first, int *count)
{
    *first = w->config->queues[step].first;
    *count = w->config->queues[step].count;
    if (*count == 0)
        *count = w->program->target.queues - *first;
}

/* The share [*lo, *hi) of `items` that queue `queue` has of a step. False when it is empty. */
static bool share(const struct lowering *w, mgl_step step, int queue, int64_t items, int64_t *lo,
                  int64_t *hi)
{
    int first, count;
    step_queues(w, step, &first, &count);
    if (queue < first || queue >= first + count)
        return false;
    *lo = items * (queue - first) / count;
    *hi = items * (queue - first + 1) / count;
    return *lo < *hi;
}

/* Queues with a share: the number of tasks of a step whose items are row groups. */
static int tasks_of(const struct lowering *w, mgl_step step, int64_t groups)
{
    int first, count;
    step_queues(w, step, &first, &count);
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

static void wait_for(struct lowering *w, int counter, int64_t threshold)
{
    mgl_program_add_wait(w->program, counter, threshold);
}

static void signal_to(struct lowering *w, int counter)
{
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
                     .offset = w->tape};
    mgl_program_add_segment(w->program, &s);
    w->tape += mgl_segment_bytes(w->program, &s);
}

static void emit_embed(struct lowering *w, int queue)
{
    const mgl_geometry *m = &w->program->geometry;
    int64_t lo, hi;
    if (!share(w, MGL_STEP_DOWN, queue, groups_of(m->hidden), &lo, &hi))
        return;
    lo *= MGL_ROW_GROUP;
    hi = min64(hi * MGL_ROW_GROUP, m->hidden);
    mgl_region rows = whole(w, w->embedding);
    rows.ranges[1] = fixed(lo, hi);
    task(w, MGL_OP_EMBED);
    in(w, rows);
    out(w, columns(w->x, lo, hi));
    signal_to(w, w->embedded);
}

/* Row groups of q, k and v one after the other: a share may hold parts of up to three. */
static int64_t qkv_groups(const struct lowering *w)
{
    const mgl_geometry *m = &w->program->geometry;
    return groups_of((int64_t)m->heads * m->head_dim) +
           2 * groups_of((int64_t)m->kv_heads * m->head_dim);
}

static void emit_qkv(struct lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    const int tensors[3] = {l->q, l->k, l->v};
    int64_t lo, hi, base = 0, column = 0, from = -1, to = 0;
    if (!share(w, MGL_STEP_QKV, queue, qkv_groups(w), &lo, &hi))
        return;
    task(w, MGL_OP_NORM_LINEAR);
    in(w, whole(w, w->x));
    in(w, whole(w, l->attn_g));
    for (int i = 0; i < 3; i++) {
        int64_t rows = (int64_t)(i == 0 ? m->heads : m->kv_heads) * m->head_dim;
        int64_t groups = groups_of(rows);
        int64_t a = lo > base ? lo - base : 0, b = min64(hi - base, groups);
        if (a < b) {
            segment(w, tensors[i], -1, a, b);
            if (from < 0)
                from = column + a * MGL_ROW_GROUP;
            to = column + min64(b * MGL_ROW_GROUP, rows);
        }
        base += groups;
        column += rows;
    }
    out(w, columns(w->qkv, from, to));
    if (layer == 0)
        wait_for(w, w->embedded, tasks_of(w, MGL_STEP_DOWN, groups_of(m->hidden)));
    else
        wait_for(w, w->layers[layer - 1].down_done,
                 tasks_of(w, MGL_STEP_DOWN, groups_of(m->hidden)));
    signal_to(w, l->qkv);
}

/* Split `split` of kv head `head`. */
static void emit_attend_task(struct lowering *w, int layer, int head, int split)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    int group = m->heads / m->kv_heads;
    int64_t d = m->head_dim, q = (int64_t)head * group * d;
    int64_t k = (int64_t)m->heads * d + head * d, v = k + (int64_t)m->kv_heads * d;
    bool last = split == w->splits - 1;
    task(w, w->splits == 1 ? MGL_OP_ATTEND : last ? MGL_OP_ATTEND_TAIL : MGL_OP_ATTEND_PAST);
    in(w, columns(w->qkv, q, q + group * d));
    if (last) {
        in(w, columns(w->qkv, k, k + d));
        in(w, columns(w->qkv, v, v + d));
    }
    in(w, whole(w, w->rope));
    in(w, cache(w, l->k_cache, head, MGL_RANGE_PAST));
    in(w, cache(w, l->v_cache, head, MGL_RANGE_PAST));
    if (w->splits == 1) {
        out(w, columns(w->att, q, q + group * d));
    } else {
        mgl_region part = whole(w, w->part);
        part.ranges[0] = fixed(split, split + 1);
        part.ranges[2] = fixed((int64_t)head * group, (int64_t)(head + 1) * group);
        out(w, part);
    }
    if (last) {
        out(w, cache(w, l->k_cache, head, MGL_RANGE_NOW));
        out(w, cache(w, l->v_cache, head, MGL_RANGE_NOW));
    }
    wait_for(w, l->qkv, tasks_of(w, MGL_STEP_QKV, qkv_groups(w)));
    signal_to(w, l->attend);
}

/* Tasks of attention: task i of T goes to the i n / T-th of n queues. */
static bool has_task(const struct lowering *w, int queue, int64_t index, int64_t count)
{
    int first, n;
    step_queues(w, MGL_STEP_ATTEND, &first, &n);
    return queue == first + (int)(index * n / count);
}

static void emit_attend(struct lowering *w, int queue, int layer)
{
    int heads = w->program->geometry.kv_heads, splits = w->splits;
    for (int i = 0; i < heads * splits; i++)
        if (has_task(w, queue, i, (int64_t)heads * splits))
            emit_attend_task(w, layer, i / splits, i % splits);
}

static void emit_merge(struct lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    int group = m->heads / m->kv_heads;
    int64_t width = (int64_t)group * m->head_dim;
    for (int head = 0; w->splits > 1 && head < m->kv_heads; head++) {
        if (!has_task(w, queue, head, m->kv_heads))
            continue;
        mgl_region part = whole(w, w->part);
        part.ranges[2] = fixed((int64_t)head * group, (int64_t)(head + 1) * group);
        task(w, MGL_OP_MERGE);
        in(w, part);
        out(w, columns(w->att, head * width, (head + 1) * width));
        wait_for(w, w->layers[layer].attend, (int64_t)m->kv_heads * w->splits);
        signal_to(w, w->layers[layer].merge);
    }
}

/* o and down: x += a W^T on the queue's share of the residual's columns. */
static void emit_linear_add(struct lowering *w, int queue, mgl_step step, int tensor, int from,
                            int counter, int64_t threshold, int done)
{
    int64_t hidden = w->program->geometry.hidden, lo, hi;
    if (!share(w, step, queue, groups_of(hidden), &lo, &hi))
        return;
    mgl_region x = columns(w->x, lo * MGL_ROW_GROUP, min64(hi * MGL_ROW_GROUP, hidden));
    task(w, MGL_OP_LINEAR_ADD);
    in(w, whole(w, from));
    in(w, x);
    segment(w, tensor, -1, lo, hi);
    out(w, x);
    wait_for(w, counter, threshold);
    signal_to(w, done);
}

static void emit_gate_up(struct lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    int64_t lo, hi;
    if (!share(w, MGL_STEP_GATE_UP, queue, groups_of(m->ffn), &lo, &hi))
        return;
    task(w, MGL_OP_NORM_SWIGLU);
    in(w, whole(w, w->x));
    in(w, whole(w, l->ffn_g));
    segment(w, l->gate, l->up, lo, hi);
    out(w, columns(w->h, lo * MGL_ROW_GROUP, min64(hi * MGL_ROW_GROUP, m->ffn)));
    wait_for(w, l->o_done, tasks_of(w, MGL_STEP_O, groups_of(m->hidden)));
    signal_to(w, l->gate_up);
}

static void emit_head(struct lowering *w, int queue)
{
    const mgl_geometry *m = &w->program->geometry;
    int first, count;
    int64_t lo, hi, groups = head_groups(w);
    if (!share(w, MGL_STEP_HEAD, queue, groups, &lo, &hi))
        return;
    step_queues(w, MGL_STEP_HEAD, &first, &count);
    int64_t index = groups < count ? lo : queue - first; /* shares before this one */
    task(w, MGL_OP_HEAD);
    in(w, whole(w, w->x));
    in(w, whole(w, w->g));
    segment(w, w->head, -1, lo, hi);
    out(w, columns(w->logits, lo * MGL_ROW_GROUP, min64(hi * MGL_ROW_GROUP, m->vocab)));
    out(w, columns(w->best_value, index, index + 1));
    out(w, columns(w->best_id, index, index + 1));
    wait_for(w, w->layers[m->layers - 1].down_done,
             tasks_of(w, MGL_STEP_DOWN, groups_of(m->hidden)));
    signal_to(w, w->head_done);
}

static void emit_sample(struct lowering *w, int idle)
{
    const int inputs[] = {w->logits, w->best_value, w->best_id, w->sequence, w->prompt};
    const int outputs[] = {w->control, w->table, w->sequence, w->output, w->score};
    task(w, MGL_OP_SAMPLE);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        in(w, whole(w, inputs[i]));
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        out(w, whole(w, outputs[i]));
    wait_for(w, w->head_done, tasks_of(w, MGL_STEP_HEAD, head_groups(w)));
    if (idle)
        wait_for(w, w->idle, idle);
    signal_to(w, w->sampled);
}

/* Whether a queue has any task but enter (queue 0 has sample). */
static bool is_idle(const struct lowering *w, int queue)
{
    const mgl_geometry *m = &w->program->geometry;
    int64_t lo, hi, attends = (int64_t)m->kv_heads * w->splits;
    if (queue == 0 || share(w, MGL_STEP_QKV, queue, qkv_groups(w), &lo, &hi) ||
        share(w, MGL_STEP_O, queue, groups_of(m->hidden), &lo, &hi) ||
        share(w, MGL_STEP_GATE_UP, queue, groups_of(m->ffn), &lo, &hi) ||
        share(w, MGL_STEP_DOWN, queue, groups_of(m->hidden), &lo, &hi) ||
        share(w, MGL_STEP_HEAD, queue, head_groups(w), &lo, &hi))
        return false;
    for (int64_t i = 0; i < attends; i++)
        if (has_task(w, queue, i, attends))
            return false;
    for (int64_t i = 0; w->splits > 1 && i < m->kv_heads; i++)
        if (has_task(w, queue, i, m->kv_heads))
            return false;
    return true;
}

static void emit_layer(struct lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const struct layer *l = &w->layers[layer];
    emit_qkv(w, queue, layer);
    emit_attend(w, queue, layer);
    emit_merge(w, queue, layer);
    if (w->splits > 1)
        emit_linear_add(w, queue, MGL_STEP_O, l->o, w->att, l->merge, m->kv_heads, l->o_done);
    else
        emit_linear_add(w, queue, MGL_STEP_O, l->o, w->att, l->attend, m->kv_heads, l->o_done);
    emit_gate_up(w, queue, layer);
    emit_linear_add(w, queue, MGL_STEP_DOWN, l->down, w->h, l->gate_up,
                    tasks_of(w, MGL_STEP_GATE_UP, groups_of(m->ffn)), l->down_done);
}

static void emit_queue(struct lowering *w, int queue, int idle)
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
    emit_embed(w, queue);
    for (int l = 0; l < program->geometry.layers; l++)
        emit_layer(w, queue, l);
    emit_head(w, queue);
    if (queue == 0)
        emit_sample(w, idle);
    if (index < 0 || mgl_program_failed(program))
        return;
    int64_t page = program->exec.page_bytes, bytes = (w->tape + page - 1) / page * page;
    program->queues[index].tape_bytes = bytes;
    program->queues[index].tape_pad = bytes - w->tape;
}

/* ---- choices -------------------------------------------------------------------------------- */

enum {
    MOST_RING_PAGES = 8,      /* 128 KB of landed and coming weights with the default page */
    WIDE_STAGE_BYTES = 49152, /* where a block has 160 KB of shared memory or more */
    NARROW_STAGE_BYTES = 24576,
    SPLIT_POSITIONS = 256, /* fewer earlier positions than this are not worth a split */
    MOST_AUTO_SPLITS = 16
};

/* Splits of attention: as many as the queues can run at once and the capacity is worth. */
static int choose_splits(const mgl_graph *graph, const mgl_target *target, int capacity,
                         const mgl_schedule_config *config)
{
    if (config->splits)
        return config->splits;
    int count = config->queues[MGL_STEP_ATTEND].count;
    if (count == 0)
        count = target->queues - config->queues[MGL_STEP_ATTEND].first;
    int splits = count / graph->geometry.kv_heads;
    int worth = (capacity + SPLIT_POSITIONS - 1) / SPLIT_POSITIONS;
    if (splits > worth)
        splits = worth;
    if (splits > MOST_AUTO_SPLITS)
        splits = MOST_AUTO_SPLITS;
    return splits < 1 ? 1 : splits;
}

/* The stream's shape: what the config leaves open (0) is fitted to the target's shared memory. */
static mgl_exec choose_exec(const mgl_target *target, const mgl_schedule_config *config)
{
    mgl_exec exec = {config->page_bytes, config->ring_pages, config->warps, config->stage_bytes};
    int64_t shared = target->shared_bytes;
    if (exec.stage_bytes == 0)
        exec.stage_bytes =
            shared == 0 || shared >= 160 * 1024 ? WIDE_STAGE_BYTES : NARROW_STAGE_BYTES;
    if (exec.ring_pages == 0) {
        int64_t fit = (shared - MGL_SHARED_RESERVED - exec.stage_bytes) / exec.page_bytes;
        exec.ring_pages = shared == 0 || fit > MOST_RING_PAGES ? MOST_RING_PAGES : (int)fit;
        if (exec.ring_pages < 2)
            exec.ring_pages = 2;
    }
    return exec;
}

static mgl_status check_choices(const mgl_graph *graph, const mgl_target *target,
                                const mgl_lower_options *options, const mgl_schedule_config *config,
                                mgl_error *err)
{
    if (target->queues < 1 || target->queues > MGL_MAX_QUEUES)
        return mgl_fail(err, MGL_BAD_INPUT, "target", "%d queues: a program has 1 to %d",
                        target->queues, MGL_MAX_QUEUES);
    if (options->capacity < 1 || options->capacity > graph->max_positions ||
        options->capacity > MGL_MAX_CAPACITY)
        return mgl_fail(err, MGL_BAD_INPUT, "capacity",
                        "%d positions: this model has 1 to %d (max_position_embeddings)",
                        options->capacity, graph->max_positions);
    if (config->page_bytes < MGL_BLOCK_BYTES || config->page_bytes % MGL_BLOCK_BYTES)
        return mgl_fail(err, MGL_BAD_INPUT, "page_bytes", "%d: a multiple of %d is needed",
                        config->page_bytes, MGL_BLOCK_BYTES);
    if (options->sequences < 1 || options->sequences > config->rows)
        return mgl_fail(err, MGL_BAD_INPUT, "sequences",
                        "%d sequences: a launch has 1 to rows (%d) of them", options->sequences,
                        config->rows);
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int first = config->queues[i].first, count = config->queues[i].count;
        if (first < 0 || count < 0 || first >= target->queues || count > target->queues - first)
            return mgl_fail(err, MGL_BAD_INPUT, mgl_step_name((mgl_step)i),
                            "queues [%d, %d) are not within the target's %d queues", first,
                            first + count, target->queues);
    }
    return MGL_OK;
}

mgl_status mgl_schedule_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, const mgl_schedule_config *config,
                              mgl_program **out_program, mgl_error *err)
{
    mgl_program *program;
    mgl_status status = check_choices(graph, target, options, config, err);
    if (!status)
        status = mgl_program_new(&program, err);
    if (status)
        return status;
    program->target = *target;
    program->geometry = graph->geometry;
    program->limits = (mgl_limits){config->rows, options->sequences, options->capacity};
    program->exec = choose_exec(target, config);
    program->dtype = program->kv_dtype = options->dtype;
    struct lowering w = {
        .graph = graph, .program = program, .config = config, .err = err, .idle = -1, .part = -1};
    w.splits = choose_splits(graph, target, options->capacity, config);
    w.layers = mgl_alloc_zero((size_t)graph->geometry.layers, sizeof *w.layers);
    if (w.layers)
        declare_all(&w);
    int idle = 0;
    for (int q = 0; w.layers && !w.status && q < target->queues; q++)
        idle += is_idle(&w, q);
    if (idle)
        w.idle = mgl_program_add_counter(program, "idle");
    for (int q = 0; w.layers && !w.status && !mgl_program_failed(program) && q < target->queues;
         q++)
        emit_queue(&w, q, idle);
    if (!w.status && (!w.layers || mgl_program_failed(program)))
        w.status = mgl_fail_memory(err, 0);
    mgl_free(w.layers);
    if (w.status)
        mgl_program_free(program);
    else
        *out_program = program;
    return w.status;
}
