/*
 * The graph: a checkpoint in model terms. It is the specification that a program is validated
 * against. It contains no queues, tasks or devices. Nodes are in topological order. Every value has
 * one row per token and `width` columns. The importer builds graphs; lowering, the validator, the
 * packers and the oracles read them.
 *
 * Decoder layer l (0-based) of a Llama-family model, as in Hugging Face's modeling_llama.py (in
 * Qwen2 a bias follows q, k and v; in Qwen3 a head_norm follows q and k: mgl_extras):
 *
 *     n = norm(x, input_layernorm)           q, k, v = linear(n, q_proj), (n, k_proj), (n, v_proj)
 *     a = attention(q, k, v)                 x = add(x, linear(a, o_proj))
 *     m = norm(x, post_attention_layernorm)
 *     x = add(x, linear(swiglu(linear(m, gate_proj), linear(m, up_proj)), down_proj))
 *
 * Around the layers: x = embed(tokens), logits = linear(norm(x, model.norm), lm_head), output =
 * sample(logits).
 */
#ifndef MGL_IMPORTER_GRAPH_H
#define MGL_IMPORTER_GRAPH_H

#include "base/dtype.h"
#include "base/error.h"
#include "base/weight_format.h"

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
    int in[3];  /* indices of nodes; unused entries are -1 */
    int tensor; /* index of its tensor, or -1 */
    int layer;  /* decoder layer, or -1 */
    int width;  /* columns of its output */
} mgl_node;

/* One weight of the checkpoint. A rank-1 tensor has rows = 1 and cols = its length. */
typedef struct mgl_tensor {
    char *name;      /* the name in Hugging Face's Llama checkpoints */
    mgl_dtype dtype; /* the dtype that mgl_graph.read delivers: that of the file, or F32 if the
                      * tensor is quantized */
    int rank;        /* 1 or 2 */
    int64_t rows, cols;
    mgl_weight_format quantized; /* a scaled format: the tensor is quantized; else zero */
    bool reordered;              /* quantized: read_codes delivers the columns sorted by group */
    const int32_t *order; /* (cols) column map of a reordered tensor, owned by the reader: column i
                             of read_codes is column order[i] of the tensor. NULL: not reordered,
                             or a compiled model */
} mgl_tensor;

static inline bool mgl_tensor_is_quantized(const mgl_tensor *tensor)
{
    return mgl_weight_format_is_scaled(tensor->quantized);
}

/* The format of a tensor in the file. */
static inline mgl_weight_format mgl_tensor_format(const mgl_tensor *tensor)
{
    return mgl_tensor_is_quantized(tensor) ? tensor->quantized
                                           : mgl_weight_format_of(tensor->dtype);
}

/* Bytes of a matrix in a format: codes, scales, minimums, and zero points of one byte each, without
 * padding, rounded to the nearest byte. `info` and `quantize` print this size. */
static inline uint64_t mgl_matrix_bytes(mgl_weight_format format, int64_t rows, int64_t cols)
{
    return (uint64_t)(mgl_weight_format_bits(format, rows, cols) * (double)rows * (double)cols / 8 +
                      0.5);
}

/* Bytes of a tensor in its format in the file (mgl_matrix_bytes). */
static inline uint64_t mgl_tensor_bytes(const mgl_tensor *tensor)
{
    return mgl_matrix_bytes(mgl_tensor_format(tensor), tensor->rows, tensor->cols);
}

/* The geometry facts: the numbers that define the shape of a model. Each row is one fact.
 * Everything that handles all facts loops over mgl_geometry_facts: config reading, equality, the
 * model line of the text form, the digest, the meaning check, the constants of the kernel, `info`,
 * tuned entries and the shapes of campaigns.
 *
 * type     name      key in config.json         largest  kernel constant; NULL: none */
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
    int32_t most;     /* the largest size that the importer accepts; a float must be below it */
    bool is_float;
    const char *constant; /* in the kernel; NULL: the kernel does not use the fact, or derives it */
} mgl_geometry_fact;

enum {
#define MGL_X(type, name, key, most, constant) MGL_FACT_##name,
    MGL_GEOMETRY_FACTS(MGL_X)
#undef MGL_X
        MGL_GEOMETRY_FACT_COUNT
};
extern const mgl_geometry_fact mgl_geometry_facts[MGL_GEOMETRY_FACT_COUNT];

/* Returns a pointer to a fact in the geometry: a size (int32_t) or a float. */
int32_t *mgl_fact_size(mgl_geometry *geometry, const mgl_geometry_fact *fact);
float *mgl_fact_float(mgl_geometry *geometry, const mgl_geometry_fact *fact);

/* Returns the bits of a fact (the size itself, or the bits of the float), and its value. */
int32_t mgl_fact_bits(const mgl_geometry *geometry, const mgl_geometry_fact *fact);
double mgl_fact_value(const mgl_geometry *geometry, const mgl_geometry_fact *fact);

/* Bit mask: what a family's decoder layer has in addition to Llama's. */
typedef enum mgl_extras {
    MGL_EXTRA_NONE = 0,
    MGL_EXTRA_QKV_BIAS = 1, /* self_attn.q_proj.bias, k_proj.bias and v_proj.bias */
    MGL_EXTRA_O_BIAS = 2,   /* self_attn.o_proj.bias */
    MGL_EXTRA_MLP_BIAS = 4, /* mlp.gate_proj.bias, up_proj.bias and down_proj.bias */
    MGL_EXTRA_QK_NORM = 8   /* self_attn.q_norm.weight and k_norm.weight, (head_dim) each */
} mgl_extras;

/* Returns whether two geometries are equal in every number, eps bit for bit. */
bool mgl_geometry_equal(const mgl_geometry *a, const mgl_geometry *b);

struct mgl_graph;

/* Reads rows [row, row + count) of a tensor in the file's dtype into `to`. Thread safe. Fails if
 * the file has shrunk or cannot be read. */
typedef mgl_status mgl_tensor_read_fn(const struct mgl_graph *graph, int tensor, int64_t row,
                                      int64_t count, void *to, mgl_error *err);

/* Rows of a quantized tensor, with the values of the file. Where several rows share a scale, each
 * row has a copy. */
typedef struct mgl_quantized_rows {
    uint8_t *codes;  /* (count, columns): int8 and int4: q + 2^(bits - 1), unsigned; uint4 and e4m3:
                      * the  bits */
    float *scales;   /* (count, groups): mgl_weight_format_groups; exact */
    uint8_t *zeros;  /* (count, groups): zero points, counted as the codes; NULL if the format has
                      * none */
    float *minimums; /* (count, groups); exact; NULL if the format has none */
} mgl_quantized_rows;

/* Reads rows [row, row + count) of a quantized tensor. Thread safe. Fails if the file has shrunk,
 * cannot be read, or holds a code or scale that is not a finite number. */
typedef mgl_status mgl_tensor_read_codes_fn(const struct mgl_graph *graph, int tensor, int64_t row,
                                            int64_t count, const mgl_quantized_rows *to,
                                            mgl_error *err);

typedef struct mgl_graph {
    mgl_geometry geometry;
    int32_t max_positions; /* max_position_embeddings, or the sliding window if it is smaller */
    mgl_dtype dtype;       /* the dtype of the largest tensor */
    bool tied;             /* the head uses the embedding table */
    int32_t window;        /* the sliding window if it limits max_positions, else 0 */
    bool own_head;         /* the config ties the head, but the files have a head with other
                            * values, which is used: `tied` is false */
    float *inv_freq;       /* (head_dim / 2) f32: rope's inverse frequencies after scaling; the
                            * angle at position p is inv_freq[i] * (float)p in f32 */
    float *long_inv_freq;  /* (head_dim / 2): for a cache of more than `short_positions`
                            * positions (longrope); NULL: inv_freq applies */
    int32_t short_positions;
    float rope_scale;    /* multiplies cos and sin; usually 1 */
    mgl_tensor *tensors; /* (tensor_count) */
    int tensor_count;
    mgl_node *nodes; /* (node_count), topological */
    int node_count;
    int output;                           /* the SAMPLE node */
    mgl_tensor_read_fn *read;             /* reads the checkpoint's bytes; a quantized tensor as
                                           * (code - zero) * scale in f32 */
    mgl_tensor_read_codes_fn *read_codes; /* NULL: no tensor is quantized */
    void *reader;                         /* argument of `read`, owned by the code that set it */
    void (*close_reader)(void *reader);   /* NULL: nothing to close */
    bool any_numbers;                     /* tests only: pack weights even if they are not finite */
} mgl_graph;

/* Finds the weight formats of the matrices: one of all layers, and one of the head; {0} if
 * unscaled. Returns -1, or a tensor of the layers with another format than the first one, or a
 * tensor whose columns are reordered. */
int mgl_graph_find_formats(const mgl_graph *graph, mgl_weight_format *layers,
                           mgl_weight_format *head);
/* Returns whether a matrix is the head, which may be the embedding table. */
bool mgl_graph_is_head(const mgl_graph *graph, int tensor);

/* Names of the embedding table and of an untied head. */
#define MGL_TENSOR_EMBEDDING "model.embed_tokens.weight"
#define MGL_TENSOR_HEAD      "lm_head.weight"

/* Returns the key of config.json that limits the positions. */
const char *mgl_graph_limit_key(const mgl_graph *graph);

/* Returns the inverse frequencies for a program with a cache of `capacity` positions. */
const float *mgl_graph_frequencies(const mgl_graph *graph, int64_t capacity);

/* Releases the graph and, through close_reader, the checkpoint's files. NULL is fine. */
void mgl_graph_free(mgl_graph *graph);

/* Returns the node (kind, inputs, tensor), or -1. The meaning check looks up a task's node with
 * it. */
int mgl_graph_find(const mgl_graph *graph, mgl_node_kind kind, const int in[3], int tensor);

/* Returns the index of the tensor of that name, or -1. */
int mgl_graph_find_tensor(const mgl_graph *graph, const char *name);

/* Returns what the graph's layers have in addition to Llama's: bits of mgl_extras. */
unsigned mgl_graph_extras(const mgl_graph *graph);

/* Builds the nodes and the tensor list of a decoder from its geometry. Names are Hugging Face's;
 * all tensors have `dtype`. `extras`: bits of mgl_extras. `read` stays NULL. inv_freq (head_dim
 * / 2) is copied. Called by the importer and by tools that make random models. */
mgl_status mgl_graph_build(const mgl_geometry *geometry, unsigned extras, int32_t max_positions,
                           bool tied, mgl_dtype dtype, const float *inv_freq, mgl_graph **out,
                           mgl_error *err);

/* Same for a Llama decoder, which has no extras. */
mgl_status mgl_graph_build_llama(const mgl_geometry *geometry, int32_t max_positions, bool tied,
                                 mgl_dtype dtype, const float *inv_freq, mgl_graph **out,
                                 mgl_error *err);

#endif
