/*
 * Synthetic models: model shapes known by name, and graphs whose weights are computed by the
 * function in eval/cuda/synthetic.h. Such a graph needs no files and is lowered, validated and run
 * like any other. The benchmarks, api/ and autotune/ use it.
 */
#ifndef MGL_EVAL_SYNTHETIC_H
#define MGL_EVAL_SYNTHETIC_H

#include "importer/config.h"

#include <string.h>

static inline unsigned mgl_synthetic_bits(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
#define MGL_SYNTHETIC_FN   static inline
#define MGL_SYNTHETIC_BITS mgl_synthetic_bits
#include "eval/cuda/synthetic.h"

/* The shapes: X(id, name). */
#define MGL_SHAPES(X)                                                                              \
    X(LLAMA_1B, "llama-1b")                                                                        \
    X(LLAMA_3B, "llama-3b")                                                                        \
    X(LLAMA_8B, "llama-8b")                                                                        \
    X(SMOLLM2_135M, "smollm2-135m")                                                                \
    X(QWEN2_5_0_5B, "qwen2.5-0.5b")                                                                \
    X(QWEN3_0_6B, "qwen3-0.6b")                                                                    \
    X(TINYLLAMA_1_1B, "tinyllama-1.1b")
enum {
#define MGL_X(id, name) MGL_SHAPE_##id,
    MGL_SHAPES(MGL_X)
#undef MGL_X
        MGL_SHAPE_COUNT
};
/* "llama-1b|llama-3b|...": value syntax of a flag that takes a shape. */
#define MGL_SHAPE_OR(id, name) "|" name
#define MGL_SHAPE_NAMES        (&(MGL_SHAPES(MGL_SHAPE_OR))[1])

/* Configuration of a named shape, such as "llama-1b" or "qwen2.5-0.5b", including the model's
 * biases and q/k norms. MGL_USAGE lists the known names. */
mgl_status mgl_synthetic_find_shape(const char *name, mgl_config *out, mgl_error *err);

/* Scales a model's width: heads, kv heads and ffn change in proportion; head_dim, layers and
 * vocabulary stay. MGL_USAGE: the result is not integral. */
mgl_status mgl_synthetic_widen(mgl_config *config, int hidden, mgl_error *err);

/* Reads the configuration of a MODEL or of a config.json file. Weights are not needed, except those
 * of a quantized model: its files determine the weight formats. MGL_BAD_INPUT: synthetic weights
 * cannot have them (several formats, reordered columns, minimums). */
mgl_status mgl_synthetic_read_config(const char *path, mgl_config *out, mgl_error *err);

/* Kinds of values in a graph's weights and in a cache: X(id, name, what). */
#define MGL_SYNTHETIC_KINDS(X)                                                                     \
    X(DENSE, "dense", "random; activations stay of order 1")                                       \
    X(LARGE, "large", "64 times as large, but for norms and what attention's weights come of")     \
    X(SMALL, "small", "1/64 of that in the same places")                                           \
    X(MIXED, "mixed", "each tensor large, dense or small, by its key")                             \
    X(ZERO, "zero", "all zero but the norms")                                                      \
    X(EQUAL, "equal", "all elements of a tensor are one number")
typedef enum mgl_synthetic_kind {
#define MGL_X(id, name, what) MGL_SYNTHETIC_##id,
    MGL_SYNTHETIC_KINDS(MGL_X)
#undef MGL_X
        MGL_SYNTHETIC_KIND_COUNT
} mgl_synthetic_kind;
const char *mgl_synthetic_kind_name(mgl_synthetic_kind kind);

/* Sets the weight formats of a config: of the matrices of the layers, and of the head; {0}:
 * unscaled. A scaled head is separate even if the config ties it to the embedding. */
void mgl_synthetic_choose_formats(mgl_config *config, mgl_weight_format layers,
                                  mgl_weight_format head);

/* Reads the weight formats of a shape's text, which has the form of a config.json, into a config:
 *
 *     "quantization_config": {"quant_method": "megalith", "layers": "int4 group 128 f16",
 *                             "head": "bf16"}
 *
 * MGL_BAD_INPUT: a format is not valid, or the text declares another quantization. */
#define MGL_SYNTHETIC_FORMATS "quantization_config"
#define MGL_SYNTHETIC_METHOD  "megalith"
mgl_status mgl_synthetic_parse_formats(const mgl_json *json, mgl_config *out, mgl_error *err);
/* Prints the format of matrices: "int4 group 128 f16"; "bf16" if unscaled. Returns `to`. */
const char *mgl_synthetic_print_format(mgl_weight_format format, char to[MGL_WEIGHT_FORMAT_TEXT]);
/* Whether the layers or the head have a scaled format. */
bool mgl_synthetic_is_quantized(const mgl_config *config);
/* Prints both formats of a config: "int4 group 128 f16, head int8 row f32"; "" if unscaled. Returns
 * `to`. */
enum { MGL_SYNTHETIC_TEXT = 2 * MGL_WEIGHT_FORMAT_TEXT + 8 };
const char *mgl_synthetic_print_formats(const mgl_config *config, char to[MGL_SYNTHETIC_TEXT]);

/* A graph with weights made from `seed`, scaled so that activations stay of order 1. The weights
 * are bf16, and the matrices have the formats of the config. Release with mgl_graph_free. */
mgl_status mgl_synthetic_open(const mgl_config *config, uint64_t seed, mgl_graph **out,
                              mgl_error *err);

/* Sets the weight formats of such a graph: of the matrices of the layers, and of the head. If a
 * format is unscaled, the matrices are bf16. MGL_USAGE: `head` is scaled, but the head is tied to
 * the embedding. */
mgl_status mgl_synthetic_set_formats(mgl_graph *graph, mgl_weight_format layers,
                                     mgl_weight_format head, mgl_error *err);

/* Changes the seed of such a graph's weights. */
void mgl_synthetic_set_seed(mgl_graph *graph, uint64_t seed);
/* Changes the kind of its values; initially DENSE. */
void mgl_synthetic_set_kind(mgl_graph *graph, mgl_synthetic_kind kind);

/* The rule of a tensor of such a graph. */
mgl_synthetic_rule mgl_synthetic_tensor_rule(const mgl_graph *graph, int tensor);

/* The rule of a layer's cached keys (`value` false) or values, for a cache that holds
 * `positions`. */
mgl_synthetic_rule mgl_synthetic_cache_rule(const mgl_graph *graph, int layer, bool value,
                                            int positions);

/* Bytes streamed to decode one token: every matrix (with its scales, without padding) and its bias
 * once (the embedding only if it is also the head), and the KV cache of `sequences` sequences at
 * `positions` positions each. */
double mgl_synthetic_streamed_bytes(const mgl_graph *graph, int sequences, double positions);

#endif
