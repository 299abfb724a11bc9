/*
 * Families: the supported architectures, one row each. A row has the defaults of the configuration
 * class in Hugging Face Transformers for missing keys. A wrapper is an architecture whose key
 * text_config describes a language model.
 */
#ifndef MGL_IMPORTER_FAMILY_H
#define MGL_IMPORTER_FAMILY_H

#include "base/text.h"
#include "importer/graph.h"

/* What the key sliding_window means. */
typedef enum mgl_window_rule {
    MGL_WINDOW_UNREAD,  /* the class in Transformers does not read the key: it limits the positions
                           here, unless use_sliding_window is false */
    MGL_WINDOW_ALWAYS,  /* a window of all layers; null: none */
    MGL_WINDOW_SWITCHED /* use_sliding_window switches it on, by default for the layers from
                           max_window_layers (28) on */
} mgl_window_rule;

/* The pairs of dimensions that rope rotates: i and i + head_dim / 2, or 2 i and 2 i + 1.
 * The graph has the first form; rows of q and k of the second are permuted when they are read. */
typedef enum mgl_rope_pairs { MGL_PAIRS_HALVES, MGL_PAIRS_NEIGHBORS } mgl_rope_pairs;

enum { MGL_FAMILY_BIAS_KEYS = 3 };

typedef struct mgl_model_family {
    const char *architecture, *model_type;
    unsigned extras; /* mgl_extras that every model of the family has */
    struct {
        const char *key; /* of config.json, a bool */
        unsigned extras; /* that it adds */
        bool missing;    /* its value where the key is missing */
    } biases[MGL_FAMILY_BIAS_KEYS];
    struct {
        int32_t hidden, layers, heads, ffn, vocab;
    } sizes;          /* where the keys are missing: in text_config of a wrapper alone */
    int32_t head_dim; /* where the key is missing; 0: hidden_size / num_attention_heads */
    int32_t kv_heads; /* the same; 0: num_attention_heads */
    int32_t max_positions;
    double eps;   /* rms_norm_eps */
    double theta; /* rope_theta */
    bool tied;    /* tie_word_embeddings */
    mgl_window_rule window;
    int32_t window_size; /* sliding_window where the key is missing; 0: none */
    mgl_rope_pairs pairs;
    bool longrope; /* the rope types "su" and "yarn" mean longrope; no other scaled type exists, and
                      original_max_position_embeddings (4096) stands beside the rope object */
} mgl_model_family;

/* The family of an architecture, or of a model_type where `architecture` is NULL; NULL: none. */
const mgl_model_family *mgl_model_family_find(const char *architecture, const char *model_type);

/* The family that a config without any name is read as. */
const mgl_model_family *mgl_model_family_default(void);

/* "LlamaForCausalLM, MistralForCausalLM, ...". Returns the text's bytes. */
const char *mgl_model_family_list(mgl_text *text);

/* Another name of a key in the configs of a family, or NULL: EXAONE's num_layers. */
const char *mgl_model_family_alias(const mgl_model_family *family, const char *key);

typedef struct mgl_wrapper {
    const char *architecture, *model_type;
    bool tied;             /* tie_word_embeddings where the key is missing */
    const char *text_type; /* model_type of text_config where the key is missing */
} mgl_wrapper;

/* The wrapper of an architecture, or of a model_type where `architecture` is NULL; NULL: none. */
const mgl_wrapper *mgl_wrapper_find(const char *architecture, const char *model_type);

#endif
