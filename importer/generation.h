/* generation_config.json of a checkpoint: its end tokens and how replies are sampled. */
#ifndef MGL_IMPORTER_GENERATION_H
#define MGL_IMPORTER_GENERATION_H

#include "base/json.h"

/* An explicit top-p of 0 keeps the most likely token. In mgl_request and in the kernel 0 is off, so
 * it becomes the least positive normal float. */
float mgl_explicit_top_p(double top_p);

/* Where an end token comes from. */
enum { MGL_END_OF_GENERATION = 1, MGL_END_OF_CONFIG = 2 };

enum { MGL_MOST_END_TOKENS = 16 }; /* that a reply can have */

/* The values of generation_config.json; for missing keys, Hugging Face's defaults. */
typedef struct mgl_generation {
    int32_t *end_tokens; /* owned (end_count), ascending, within the vocabulary: the ids of both
                            files */
    unsigned char *end_sources; /* owned (end_count) bits of the files that have it */
    size_t end_count;
    int32_t *beyond_tokens;        /* owned (beyond_count), ascending: the ids that are not in the
                                      vocabulary, and cannot occur */
    unsigned char *beyond_sources; /* owned (beyond_count) */
    size_t beyond_count;
    bool do_sample;     /* false: greedy, and the next four do not matter */
    float temperature;  /* 1 */
    int32_t top_k;      /* 50; 0: off */
    float top_p;        /* 1: off; 0 in the file: see mgl_explicit_top_p */
    float min_p;        /* 0: off */
    float repeat;       /* repetition_penalty; 1: off */
    mgl_error *invalid; /* owned: a value of sampling that cannot be used; NULL for none. The fields
                           above are defaults then. */
    char *unsupported;  /* owned: a key that changes sampling in an unsupported way, as in
                           "num_beams is 4"; NULL for none */
} mgl_generation;

/* `generation` may be NULL (no such file). The end tokens are the union of eos_token_id in both
 * files. */
mgl_status mgl_generation_read(const mgl_json *generation, const mgl_json *config, int32_t vocab,
                               mgl_generation *out, mgl_error *err);
void mgl_generation_clear(mgl_generation *generation);

#endif
