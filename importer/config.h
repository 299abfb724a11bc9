/*
 * Reads config.json of a checkpoint of the Llama family (architectures: family.h), in the form
 * of Transformers 5 (rope_parameters) and in the older form (rope_theta, rope_scaling). A key
 * that changes what the model computes, and that the graph cannot represent, becomes a reason
 * against the checkpoint. Called by checkpoint.c.
 */
#ifndef MGL_IMPORTER_CONFIG_H
#define MGL_IMPORTER_CONFIG_H

#include "base/json.h"
#include "importer/family.h"
#include "importer/graph.h"
#include "importer/reasons.h"

/*  enum      name */
#define MGL_ROPE_TYPES(X)                                                                          \
    X(DEFAULT, "default")                                                                          \
    X(LINEAR, "linear")                                                                            \
    X(LLAMA3, "llama3")                                                                            \
    X(DYNAMIC, "dynamic")                                                                          \
    X(YARN, "yarn")                                                                                \
    X(LONGROPE, "longrope")

typedef enum mgl_rope_type {
#define MGL_X(id, name) MGL_ROPE_##id,
    MGL_ROPE_TYPES(MGL_X)
#undef MGL_X
        MGL_ROPE_TYPE_COUNT
} mgl_rope_type;

enum { MGL_ROPE_FACTORS = 512 }; /* half of the largest head_dim */

typedef struct mgl_rope {
    mgl_rope_type type;
    double theta;                             /* the base of the frequencies */
    double factor;                            /* linear, llama3, dynamic, yarn */
    double low_freq_factor, high_freq_factor; /* llama3 */
    double original_max_positions;            /* llama3, yarn, longrope */
    double attention_factor;                  /* multiplies cos and sin: yarn, longrope;
                                               * otherwise 1 */
    double beta_fast, beta_slow;              /* yarn */
    bool truncate;                            /* yarn: round the ends of the ramp to whole
                                               * indices */
    float short_factor[MGL_ROPE_FACTORS];     /* longrope (head_dim / 2): for sequences up to */
    float long_factor[MGL_ROPE_FACTORS];      /* original_max_positions, and for longer ones */
} mgl_rope;

/* The valid values of config.json. */
typedef struct mgl_config {
    mgl_geometry geometry;
    int32_t max_positions; /* max_position_embeddings, or the sliding window if that is smaller */
    bool tied;             /* tie_word_embeddings */
    mgl_rope rope;
    unsigned extras;        /* bit mask of mgl_extras */
    int32_t window;         /* the sliding window, if it limits max_positions; otherwise 0 */
    const char *model_type; /* of the family; static storage */
    mgl_rope_pairs pairs;   /* the order of the rows of q and k in the files */
    bool wrapped;           /* the model is the language model (text_config) of a wrapper */
    /* Formats of the matrices of the layers and of the head: {0} if unscaled. config.json does not
     * determine them; eval/synthetic.h sets and uses them. */
    mgl_weight_format layers, head;
} mgl_config;

/* Fills *out and adds every reason against the config. Fails only if memory runs out. */
mgl_status mgl_config_read(const mgl_json *json, mgl_config *out, mgl_reasons *reasons,
                           mgl_error *err);

/* Returns whether two ropes are equal in every number. */
bool mgl_rope_equal(const mgl_rope *a, const mgl_rope *b);

/* Computes the inverse frequencies (head_dim / 2), with the f32 operations of Hugging Face's
 * modeling_rope_utils.py in the same order. `is_long`: for sequences longer than
 * original_max_positions, which differ only for longrope. */
void mgl_rope_frequencies(const mgl_rope *rope, int32_t head_dim, bool is_long, float *inv_freq);

/* Builds the graph of a config. All tensors have `dtype`; `read` is not set. Release *out with
 * mgl_graph_free. */
mgl_status mgl_config_build_graph(const mgl_config *config, mgl_dtype dtype, mgl_graph **out,
                                  mgl_error *err);

#endif
