/*
 * The graph: a checkpoint in model terms, and the specification that a program is checked against.
 * It knows nothing of queues, tasks or devices. Nodes stand in topological order; every value has
 * one row a token and `width` columns.
 *
 * The decoder layer l (0-based) of a Llama-family model, as in Hugging Face's modeling_llama.py (in
 * Qwen2 a bias follows q, k and v; in Qwen3 a head_norm follows q and k: mgl_extras):
 *
 *     n = norm(x, input_layernorm)           q, k, v = linear(n, q_proj), (n, k_proj), (n, v_proj)
 *     a = attention(q, k, v)                 x = add(x, linear(a, o_proj))
 *     m = norm(x, post_attention_layernorm)
 *     x = add(x, linear(swiglu(linear(m, gate_proj), linear(m, up_proj)), down_proj))
 *
 * and around the layers: x = embed(tokens), logits = linear(norm(x, model.norm), lm_head),
 * output = sample(logits).
 */
#ifndef MGL_IMPORTER_GRAPH_H
#define MGL_IMPORTER_GRAPH_H

#include "base/dtype.h"
#include "base/error.h"

/*  enum       name         inputs  meaning */
#define MGL_NODE_KINDS(X)                                                                          \
    X(TOKENS, "tokens", 0, "the token id of each row; width 1")                                    \
    X(EMBED, "embed", 1, "row `token` of the tensor (vocab, width)")                               \
    X(NORM, "norm", 1, "RMSNorm: x / sqrt(mean(x^2) + eps) * tensor (width)")                      \
    X(LINEAR, "linear", 1, "x W^T with the tensor W (width, input width)")                         \
    X(BIAS, "bias", 1, "x + tensor (width), in every row")                                         \
    X(HEAD_NORM, "head_norm", 1, "the RMSNorm of each head (head_dim) of x with the one tensor")   \
    X(ATTENTION, "attention", 3,                                                                   \
      "rope(q), rope(k) appended with v to the KV cache of the layer; "                            \
      "causal softmax(q K^T / sqrt(head_dim)) V over the sequence")                                \
    X(SWIGLU, "swiglu", 2, "silu(first) * second")                                                 \
    X(ADD, "add", 2, "first + second")                                                             \
    X(SAMPLE, "sample", 1, "the next token of each row, from its logits; width 1")

typedef enum mgl_node_kind {
#define MGL_X(id, name, inputs, meaning) MGL_NODE_##id,
    MGL_NODE_KINDS(MGL_X)
#undef MGL_X
        MGL_NODE_KIND_COUNT
} mgl_node_kind;

const char *mgl_node_kind_name(mgl_node_kind kind);

typedef struct mgl_node {
    mgl_node_kind kind;
    int in[3];  /* indices of nodes; -1 where there are fewer inputs */
    int tensor; /* index of its tensor; -1 for none */
    int layer;  /* decoder layer, or -1 */
    int width;  /* columns of its value */
} mgl_node;

/* One weight of the checkpoint. A rank-1 tensor has rows = 1 and cols = its length. */
typedef struct mgl_tensor {
    char *name;      /* as in the checkpoint */
    mgl_dtype dtype; /* as in the file */
    int rank;        /* 1 or 2 */
    int64_t rows, cols;
} mgl_tensor;

/* The facts of a model: the numbers that shape a program. One row is one fact; config reading,
 * equality, the model line of the text form, the digest, the meaning check, the constants of the
 * kernel, `info`, tuned entries and the shapes of campaigns are loops over mgl_geometry_facts.
 *
 *  type     name      key in config.json         largest  kernel constant, NULL: none of its own */
#define MGL_GEOMETRY_FACTS(X)                                                                      \
    X(int32_t, hidden, "hidden_size", 1 << 17, "HIDDEN")                                           \
    X(int32_t, layers, "num_hidden_layers", 1 << 10, NULL)                                         \
    X(int32_t, heads, "num_attention_heads", 1 << 10, NULL)                                        \
    X(int32_t, kv_heads, "num_key_value_heads", 1 << 10, NULL)                                     \
    X(int32_t, head_dim, "head_dim", 1 << 10, "HEAD_DIM")                                          \
    X(int32_t, ffn, "intermediate_size", 1 << 20, "FFN")                                           \
    X(int32_t, vocab, "vocab_size", 1 << 22, "VOCAB")                                              \
    X(float, eps, "rms_norm_eps", 1, "EPS_BITS") /* of every RMSNorm; the constant is its bits */

typedef struct mgl_geometry {
#define MGL_X(type, name, key, most, constant) type name;
    MGL_GEOMETRY_FACTS(MGL_X)
#undef MGL_X
} mgl_geometry;

typedef struct mgl_geometry_fact {
    const char *name; /* in the text form, in `info` and in tuned entries */
    const char *key;  /* in config.json */
    size_t offset;    /* in mgl_geometry */
    int32_t most;     /* the largest size that an importer accepts; a float is below it */
    bool is_float;
    const char *constant; /* of the kernel; NULL: the kernel needs it in no form, or derives it */
} mgl_geometry_fact;

enum {
#define MGL_X(type, name, key, most, constant) MGL_FACT_##name,
    MGL_GEOMETRY_FACTS(MGL_X)
#undef MGL_X
        MGL_GEOMETRY_FACT_COUNT
};
extern const mgl_geometry_fact mgl_geometry_facts[MGL_GEOMETRY_FACT_COUNT];

/* Where a fact of the geometry stands: of a size (int32_t), of a float. */
int32_t *mgl_fact_size(mgl_geometry *geometry, const mgl_geometry_fact *fact);
float *mgl_fact_float(mgl_geometry *geometry, const mgl_geometry_fact *fact);

/* The bits of a fact (a size itself, or those of the float), and its value. */
int32_t mgl_fact_bits(const mgl_geometry *geometry, const mgl_geometry_fact *fact);
double mgl_fact_value(const mgl_geometry *geometry, const mgl_geometry_fact *fact);

/* What a family's decoder layer has beyond Llama's: bits. */
typedef enum mgl_extras {
    MGL_EXTRA_NONE = 0,
    MGL_EXTRA_QKV_BIAS = 1, /* self_attn.q_proj.bias, and of k and v */
    MGL_EXTRA_O_BIAS = 2,   /* self_attn.o_proj.bias */
    MGL_EXTRA_MLP_BIAS = 4, /* mlp.gate_proj.bias, and of up and down */
    MGL_EXTRA_QK_NORM = 8   /* self_attn.q_norm.weight and k_norm.weight, (head_dim) each */
} mgl_extras;

/* The same in every number, eps bit for bit. */
bool mgl_geometry_equal(const mgl_geometry *a, const mgl_geometry *b);

struct mgl_graph;

/* Reads rows [row, row + count) of a tensor, as they are in the file (its own dtype), into `to`.
 * Thread safe. Fails when the file shrank or can not be read. */
typedef mgl_status mgl_tensor_read_fn(const struct mgl_graph *graph, int tensor, int64_t row,
                                      int64_t count, void *to, mgl_error *err);

typedef struct mgl_graph {
    mgl_geometry geometry;
    int32_t max_positions; /* max_position_embeddings, or the sliding window if it is smaller */
    mgl_dtype dtype;       /* the checkpoint's: that of its largest tensor */
    bool tied;             /* the head is the embedding table */
    int32_t window;        /* not 0: the sliding window, which is what limits max_positions */
    bool own_head;         /* the config ties the head, and the files have one with other values,
                              which is used: `tied` is false */
    float *inv_freq;       /* (head_dim / 2) f32: rope's inverse frequencies after scaling; the
                              angle at position p is inv_freq[i] * (float)p in f32 */
    float *long_inv_freq;  /* (head_dim / 2): those of a cache of more than `short_positions`
                              positions (longrope); NULL: the same */
    int32_t short_positions;
    float rope_scale;    /* multiplies cos and sin; 1 */
    mgl_tensor *tensors; /* (tensor_count) */
    int tensor_count;
    mgl_node *nodes; /* (node_count), topological */
    int node_count;
    int output;                         /* the SAMPLE node */
    mgl_tensor_read_fn *read;           /* the checkpoint's bytes */
    void *reader;                       /* for `read`; owned by whoever set it */
    void (*close_reader)(void *reader); /* NULL: nothing to close */
    bool any_numbers;                   /* tests only: packed even where they are not finite */
} mgl_graph;

/* The names of the embedding table and of an untied head. */
#define MGL_TENSOR_EMBEDDING "model.embed_tokens.weight"
#define MGL_TENSOR_HEAD      "lm_head.weight"

/* The key of config.json that limits the positions. */
const char *mgl_graph_limit_key(const mgl_graph *graph);

/* The inverse frequencies of a program with a cache of `capacity` positions. */
const float *mgl_graph_frequencies(const mgl_graph *graph, int64_t capacity);

/* Releases the graph and, through close_reader, the checkpoint's files. NULL is fine. */
void mgl_graph_free(mgl_graph *graph);

/* The node (kind, inputs, tensor), or -1: what the meaning of a task is looked up by. */
int mgl_graph_find(const mgl_graph *graph, mgl_node_kind kind, const int in[3], int tensor);

/* The index of the tensor of that name, or -1. */
int mgl_graph_find_tensor(const mgl_graph *graph, const char *name);

/* What its layers have beyond Llama's: bits of mgl_extras. */
unsigned mgl_graph_extras(const mgl_graph *graph);

/* Builds nodes and tensor list of a decoder from its geometry: names as Hugging Face's, all
 * tensors of `dtype`. `extras`: bits of mgl_extras. `read` is left NULL. The importer and the tools
 * that make random models share it. inv_freq (head_dim / 2) is copied. */
mgl_status mgl_graph_build(const mgl_geometry *geometry, unsigned extras, int32_t max_positions,
                           bool tied, mgl_dtype dtype, const float *inv_freq, mgl_graph **out,
                           mgl_error *err);

/* The same of a Llama decoder, which has no extras. */
mgl_status mgl_graph_build_llama(const mgl_geometry *geometry, int32_t max_positions, bool tied,
                                 mgl_dtype dtype, const float *inv_freq, mgl_graph **out,
                                 mgl_error *err);

#endif
