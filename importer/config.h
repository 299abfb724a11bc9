/*
 * config.json of a checkpoint of the Llama family (Llama, Mistral, Qwen2, Qwen3), in the form of
 * Transformers 5 (rope_parameters) and in the older one (rope_theta, rope_scaling). Keys that
 * change what the model computes in a way that the graph has no words for become reasons against
 * the checkpoint.
 */
#ifndef MGL_IMPORTER_CONFIG_H
#define MGL_IMPORTER_CONFIG_H

#include "base/json.h"
#include "importer/graph.h"
#include "importer/reasons.h"

/*  enum      name */
#define MGL_ROPE_TYPES(X)                                                                          \
    X(DEFAULT, "default")                                                                          \
    X(LINEAR, "linear")                                                                            \
    X(LLAMA3, "llama3")                                                                            \
    X(DYNAMIC, "dynamic")

typedef enum mgl_rope_type {
#define MGL_X(id, name) MGL_ROPE_##id,
    MGL_ROPE_TYPES(MGL_X)
#undef MGL_X
        MGL_ROPE_TYPE_COUNT
} mgl_rope_type;

typedef struct mgl_rope {
    mgl_rope_type type;
    double theta;                             /* the base of the frequencies */
    double factor;                            /* linear, llama3 */
    double low_freq_factor, high_freq_factor; /* llama3 */
    double original_max_positions;            /* llama3 */
} mgl_rope;

/* What config.json says, as far as it makes sense. */
typedef struct mgl_config {
    mgl_geometry geometry;
    int32_t max_positions;
    bool tied;
    mgl_rope rope;
    unsigned extras; /* bits of mgl_extras */
} mgl_config;

/* Fills *out and adds every reason against it. Fails only when memory runs out. */
mgl_status mgl_config_read(const mgl_json *json, mgl_config *out, mgl_reasons *reasons,
                           mgl_error *err);

/* The inverse frequencies (head_dim / 2), in the f32 arithmetic and its order of Hugging Face's
 * modeling_rope_utils.py. */
void mgl_rope_frequencies(const mgl_rope *rope, int32_t head_dim, float *inv_freq);

#endif
