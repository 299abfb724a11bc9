/*
 * Families: the table of supported architectures, one row each. A row has the defaults of the
 * configuration class in Hugging Face Transformers for missing keys. A wrapper is an
 * architecture, such as a vision-language model, whose key text_config describes a language
 * model. Used by config.c.
 */
#ifndef MGL_IMPORTER_FAMILY_H
#define MGL_IMPORTER_FAMILY_H

#include "base/text.h"
#include "importer/graph.h"

/* The meaning of the key sliding_window. */
typedef enum mgl_window_rule {
    MGL_WINDOW_UNREAD,  /* the class in Transformers ignores the key; here the key limits the
                         * positions, unless use_sliding_window is false */
    MGL_WINDOW_ALWAYS,  /* all layers have a window; null: none */
    MGL_WINDOW_SWITCHED /* use_sliding_window enables it, by default for the layers from
                         * max_window_layers (28) on */
} mgl_window_rule;

/* The pairs of dimensions that rope rotates: i and i + head_dim / 2, or 2 i and 2 i + 1. The
 * graph uses the first form. For the second, the rows of q and k are permuted when they are
 * read. */
typedef enum mgl_rope_pairs { MGL_PAIRS_HALVES, MGL_PAIRS_NEIGHBORS } mgl_rope_pairs;

enum { MGL_FAMILY_BIAS_KEYS = 3 };

typedef struct mgl_model_family {
    const char *architecture, *model_type;
    unsigned extras; /* bit mask of mgl_extras that every model of the family has */
    struct {
        const char *key; /* of config.json, a bool */
        unsigned extras; /* that it adds */
        bool missing;    /* its value if the key is missing */
    } biases[MGL_FAMILY_BIAS_KEYS];
    struct {
        int32_t hidden, layers, heads, ffn, vocab;
    } sizes;          /* for missing keys; only in text_config of a wrapper */
    int32_t head_dim; /* if the key is missing; 0: hidden_size / num_attention_heads */
    int32_t kv_heads; /* likewise; 0: num_attention_heads */
    int32_t max_positions;
    double eps;   /* rms_norm_eps */
    double theta; /* rope_theta */
    bool tied;    /* tie_word_embeddings */
    mgl_window_rule window;
    int32_t window_size; /* sliding_window if the key is missing; 0: none */
    mgl_rope_pairs pairs;
    bool longrope; /* the rope types "su" and "yarn" mean longrope; no other scaled type exists,
                    * and original_max_position_embeddings (4096) is beside the rope object */
} mgl_model_family;

/* Returns the family of an architecture, or of a model_type if `architecture` is NULL; NULL: not
 * supported. */
const mgl_model_family *mgl_model_family_find(const char *architecture, const char *model_type);

/* Returns the family for a config without architectures and model_type. */
const mgl_model_family *mgl_model_family_default(void);

/* Appends "LlamaForCausalLM, MistralForCausalLM, ..." to the text. Returns the text's bytes. */
const char *mgl_model_family_list(mgl_text *text);

/* Returns the alias of a key in the configs of a family (EXAONE's num_layers), or NULL. */
const char *mgl_model_family_alias(const mgl_model_family *family, const char *key);

typedef struct mgl_wrapper {
    const char *architecture, *model_type;
    bool tied;             /* tie_word_embeddings if the key is missing */
    const char *text_type; /* model_type of text_config if the key is missing */
} mgl_wrapper;

/* Returns the wrapper of an architecture, or of a model_type if `architecture` is NULL; NULL:
 * none. */
const mgl_wrapper *mgl_wrapper_find(const char *architecture, const char *model_type);

#endif
