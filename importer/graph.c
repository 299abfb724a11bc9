/*
 * Builds the graph of a decoder, and implements lookups in a graph. See graph.h. The node and
 * tensor lists are allocated once, from the geometry. `add_node` and `add_tensor` fill them in
 * order, so every node comes after its inputs.
 */
#include "importer/graph.h"

#include "base/memory.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { LAYER_NODES = 22, LAYER_TENSORS = 18 }; /* upper bounds for all families */

static const char *const kind_names[] = {
#define MGL_X(id, name, inputs, meaning) name,
    MGL_NODE_KINDS(MGL_X)
#undef MGL_X
};

const char *mgl_node_kind_name(mgl_node_kind kind)
{
    return kind_names[kind];
}

void mgl_graph_free(mgl_graph *graph)
{
    if (!graph)
        return;
    if (graph->close_reader)
        graph->close_reader(graph->reader);
    for (int i = 0; i < graph->tensor_count; i++)
        mgl_free(graph->tensors[i].name);
    mgl_free(graph->tensors);
    mgl_free(graph->nodes);
    mgl_free(graph->inv_freq);
    mgl_free(graph->long_inv_freq);
    mgl_free(graph);
}

const char *mgl_graph_limit_key(const mgl_graph *graph)
{
    return graph->window ? "sliding_window" : "max_position_embeddings";
}

const float *mgl_graph_frequencies(const mgl_graph *graph, int64_t capacity)
{
    return graph->long_inv_freq && capacity > graph->short_positions ? graph->long_inv_freq
                                                                     : graph->inv_freq;
}

int mgl_graph_find(const mgl_graph *graph, mgl_node_kind kind, const int in[3], int tensor)
{
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *node = &graph->nodes[i];
        if (node->kind == kind && node->tensor == tensor && node->in[0] == in[0] &&
            node->in[1] == in[1] && node->in[2] == in[2])
            return i;
    }
    return -1;
}

#define IS_FLOAT(type) _Generic((type){0}, float : true, int32_t : false)
const mgl_geometry_fact mgl_geometry_facts[MGL_GEOMETRY_FACT_COUNT] = {
#define MGL_X(type, name, key, most, constant)                                                     \
    {#name, key, offsetof(mgl_geometry, name), most, IS_FLOAT(type), constant},
    MGL_GEOMETRY_FACTS(MGL_X)
#undef MGL_X
};

int32_t *mgl_fact_size(mgl_geometry *geometry, const mgl_geometry_fact *fact)
{
    return (int32_t *)(void *)((char *)geometry + fact->offset);
}

float *mgl_fact_float(mgl_geometry *geometry, const mgl_geometry_fact *fact)
{
    return (float *)(void *)((char *)geometry + fact->offset);
}

int32_t mgl_fact_bits(const mgl_geometry *geometry, const mgl_geometry_fact *fact)
{
    int32_t bits;
    memcpy(&bits, (const char *)geometry + fact->offset, sizeof bits);
    return bits;
}

double mgl_fact_value(const mgl_geometry *geometry, const mgl_geometry_fact *fact)
{
    float number;
    memcpy(&number, (const char *)geometry + fact->offset, sizeof number);
    return fact->is_float ? (double)number : mgl_fact_bits(geometry, fact);
}

bool mgl_geometry_equal(const mgl_geometry *a, const mgl_geometry *b)
{
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++)
        if (mgl_fact_bits(a, &mgl_geometry_facts[i]) != mgl_fact_bits(b, &mgl_geometry_facts[i]))
            return false;
    return true;
}

int mgl_graph_find_tensor(const mgl_graph *graph, const char *name)
{
    for (int i = 0; i < graph->tensor_count; i++)
        if (!strcmp(graph->tensors[i].name, name))
            return i;
    return -1;
}

unsigned mgl_graph_extras(const mgl_graph *graph)
{
    static const struct {
        const char *tensor; /* a tensor of the first layer that only this extra adds */
        mgl_extras extra;
    } signs[] = {{"model.layers.0.self_attn.q_proj.bias", MGL_EXTRA_QKV_BIAS},
                 {"model.layers.0.self_attn.o_proj.bias", MGL_EXTRA_O_BIAS},
                 {"model.layers.0.mlp.gate_proj.bias", MGL_EXTRA_MLP_BIAS},
                 {"model.layers.0.self_attn.q_norm.weight", MGL_EXTRA_QK_NORM}};
    unsigned extras = MGL_EXTRA_NONE;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (mgl_graph_find_tensor(graph, signs[i].tensor) >= 0)
            extras |= signs[i].extra;
    return extras;
}

/* A graph under construction. After memory ran out, further calls do nothing. */
typedef struct builder {
    mgl_graph *graph;
    unsigned extras; /* mgl_extras */
    mgl_dtype dtype;
    int layer; /* the current layer, or -1 */
    bool failed;
} builder;

/* Adds a tensor: "model.layers.<layer>.<name>" inside a layer, `name` elsewhere. rows < 0: rank
 * 1. */
static int add_tensor(builder *b, const char *name, int64_t rows, int64_t cols)
{
    char full[96];
    if (b->layer >= 0)
        snprintf(full, sizeof full, "model.layers.%d.%s", b->layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    char *copy = b->failed ? NULL : mgl_strdup(full);
    if (!copy) {
        b->failed = true;
        return -1;
    }
    b->graph->tensors[b->graph->tensor_count] = (mgl_tensor){.name = copy,
                                                             .dtype = b->dtype,
                                                             .rank = rows < 0 ? 1 : 2,
                                                             .rows = rows < 0 ? 1 : rows,
                                                             .cols = cols};
    return b->graph->tensor_count++;
}

static int add_node(builder *b, mgl_node_kind kind, int in0, int in1, int in2, int tensor,
                    int width)
{
    b->graph->nodes[b->graph->node_count] = (mgl_node){
        .kind = kind, .in = {in0, in1, in2}, .tensor = tensor, .layer = b->layer, .width = width};
    return b->graph->node_count++;
}

static int add_norm(builder *b, int in, const char *name)
{
    int width = b->graph->geometry.hidden;
    int tensor = add_tensor(b, name, -1, width);
    return add_node(b, MGL_NODE_NORM, in, -1, -1, tensor, width);
}

static int add_linear(builder *b, int in, const char *name, int width)
{
    int tensor = add_tensor(b, name, width, b->graph->nodes[in].width);
    return add_node(b, MGL_NODE_LINEAR, in, -1, -1, tensor, width);
}

/* Adds the projection "<name>.weight" and, if the model has that extra, "<name>.bias". */
static int add_projection(builder *b, int in, const char *name, int width, mgl_extras bias)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    int out = add_linear(b, in, full, width);
    if (!(b->extras & bias))
        return out;
    snprintf(full, sizeof full, "%s.bias", name);
    int tensor = add_tensor(b, full, -1, width);
    return add_node(b, MGL_NODE_BIAS, out, -1, -1, tensor, width);
}

/* Adds the norm of the heads of q or k, if the model has it. */
static int add_head_norm(builder *b, int in, const char *name)
{
    if (!(b->extras & MGL_EXTRA_QK_NORM))
        return in;
    int tensor = add_tensor(b, name, -1, b->graph->geometry.head_dim);
    return add_node(b, MGL_NODE_HEAD_NORM, in, -1, -1, tensor, b->graph->nodes[in].width);
}

/* Adds one decoder layer with input x; returns its output node. */
static int add_layer(builder *b, int x)
{
    const mgl_geometry *g = &b->graph->geometry;
    int width = g->heads * g->head_dim, kv_width = g->kv_heads * g->head_dim;
    int n = add_norm(b, x, "input_layernorm.weight");
    int q = add_projection(b, n, "self_attn.q_proj", width, MGL_EXTRA_QKV_BIAS);
    int k = add_projection(b, n, "self_attn.k_proj", kv_width, MGL_EXTRA_QKV_BIAS);
    int v = add_projection(b, n, "self_attn.v_proj", kv_width, MGL_EXTRA_QKV_BIAS);
    q = add_head_norm(b, q, "self_attn.q_norm.weight");
    k = add_head_norm(b, k, "self_attn.k_norm.weight");
    int a = add_node(b, MGL_NODE_ATTENTION, q, k, v, -1, width);
    int o = add_projection(b, a, "self_attn.o_proj", g->hidden, MGL_EXTRA_O_BIAS);
    int sum = add_node(b, MGL_NODE_ADD, x, o, -1, -1, g->hidden);
    int m = add_norm(b, sum, "post_attention_layernorm.weight");
    int gate = add_projection(b, m, "mlp.gate_proj", g->ffn, MGL_EXTRA_MLP_BIAS);
    int up = add_projection(b, m, "mlp.up_proj", g->ffn, MGL_EXTRA_MLP_BIAS);
    int s = add_node(b, MGL_NODE_SWIGLU, gate, up, -1, -1, g->ffn);
    int down = add_projection(b, s, "mlp.down_proj", g->hidden, MGL_EXTRA_MLP_BIAS);
    return add_node(b, MGL_NODE_ADD, sum, down, -1, -1, g->hidden);
}

static void add_model(builder *b)
{
    const mgl_geometry *g = &b->graph->geometry;
    int tokens = add_node(b, MGL_NODE_TOKENS, -1, -1, -1, -1, 1);
    int table = add_tensor(b, MGL_TENSOR_EMBEDDING, g->vocab, g->hidden);
    int x = add_node(b, MGL_NODE_EMBED, tokens, -1, -1, table, g->hidden);
    for (b->layer = 0; b->layer < g->layers; b->layer++)
        x = add_layer(b, x);
    b->layer = -1;
    x = add_norm(b, x, "model.norm.weight");
    int logits = b->graph->tied ? add_node(b, MGL_NODE_LINEAR, x, -1, -1, table, g->vocab)
                                : add_linear(b, x, MGL_TENSOR_HEAD, g->vocab);
    b->graph->output = add_node(b, MGL_NODE_SAMPLE, logits, -1, -1, -1, 1);
}

mgl_status mgl_graph_build(const mgl_geometry *geometry, unsigned extras, int32_t max_positions,
                           bool tied, mgl_dtype dtype, const float *inv_freq, mgl_graph **out,
                           mgl_error *err)
{
    *out = NULL;
    size_t layers = (size_t)geometry->layers, half = (size_t)geometry->head_dim / 2;
    mgl_graph *graph = mgl_alloc_zero(1, sizeof *graph);
    if (!graph)
        return mgl_fail_memory(err, sizeof *graph);
    graph->geometry = *geometry;
    graph->max_positions = max_positions;
    graph->dtype = dtype;
    graph->tied = tied;
    graph->rope_scale = 1;
    graph->inv_freq = mgl_alloc_zero(half, sizeof *graph->inv_freq);
    graph->tensors = mgl_alloc_zero(layers * LAYER_TENSORS + 3, sizeof *graph->tensors);
    graph->nodes = mgl_alloc_zero(layers * LAYER_NODES + 5, sizeof *graph->nodes);
    builder b = {.graph = graph, .extras = extras, .dtype = dtype, .layer = -1};
    b.failed = !graph->inv_freq || !graph->tensors || !graph->nodes;
    if (!b.failed) {
        memcpy(graph->inv_freq, inv_freq, half * sizeof *inv_freq);
        add_model(&b);
    }
    if (b.failed) {
        mgl_graph_free(graph);
        return mgl_fail_memory(err, layers * LAYER_TENSORS * sizeof *graph->tensors);
    }
    *out = graph;
    return MGL_OK;
}

mgl_status mgl_graph_build_llama(const mgl_geometry *geometry, int32_t max_positions, bool tied,
                                 mgl_dtype dtype, const float *inv_freq, mgl_graph **out,
                                 mgl_error *err)
{
    return mgl_graph_build(geometry, MGL_EXTRA_NONE, max_positions, tied, dtype, inv_freq, out,
                           err);
}

bool mgl_graph_is_head(const mgl_graph *graph, int tensor)
{
    return !strcmp(graph->tensors[tensor].name,
                   graph->tied ? MGL_TENSOR_EMBEDDING : MGL_TENSOR_HEAD);
}

int mgl_graph_find_formats(const mgl_graph *graph, mgl_weight_format *layers,
                           mgl_weight_format *head)
{
    bool found = false;
    *layers = *head = (mgl_weight_format){0};
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *node = &graph->nodes[i];
        if (node->kind != MGL_NODE_LINEAR)
            continue;
        const mgl_tensor *t = &graph->tensors[node->tensor];
        const bool is_head = mgl_graph_is_head(graph, node->tensor);
        if (t->reordered || (found && !is_head && !mgl_weight_format_equal(t->quantized, *layers)))
            return node->tensor;
        *(is_head ? head : layers) = t->quantized;
        found |= !is_head;
    }
    return -1;
}
