/* Reads generation_config.json of a checkpoint: end tokens and default sampling values. Called
 * by checkpoint.c. */
#ifndef MGL_IMPORTER_GENERATION_H
#define MGL_IMPORTER_GENERATION_H

#include "base/json.h"

/* Converts an explicit top-p of 0, which keeps only the most likely token, to the smallest
 * positive normal float. In mgl_request and in the kernel, 0 means off. */
float mgl_explicit_top_p(double top_p);

/* The file that an end token comes from (bits). */
enum { MGL_END_OF_GENERATION = 1, MGL_END_OF_CONFIG = 2 };

enum { MGL_MOST_END_TOKENS = 16 }; /* per reply */

/* The values of generation_config.json; a missing key has Hugging Face's default. */
typedef struct mgl_generation {
    int32_t *end_tokens; /* owned (end_count), ascending, within the vocabulary: the ids of both
                          * files */
    unsigned char *end_sources; /* owned (end_count): bits of the files that contain the id */
    size_t end_count;
    int32_t *beyond_tokens;        /* owned (beyond_count), ascending: ids outside the
                                    * vocabulary, which cannot occur */
    unsigned char *beyond_sources; /* owned (beyond_count) */
    size_t beyond_count;
    bool do_sample;     /* false: greedy; the next fields are then unused */
    float temperature;  /* default 1 */
    int32_t top_k;      /* default 50; 0: off */
    float top_p;        /* default 1: off; 0 in the file: see mgl_explicit_top_p */
    float min_p;        /* default 0: off */
    float repeat;       /* repetition_penalty; default 1: off */
    mgl_error *invalid; /* owned: the error of an unusable sampling value, or NULL. The fields
                         * above then have their defaults. */
    char *unsupported;  /* owned: a key that changes sampling in an unsupported way, such as
                         * "num_beams is 4"; or NULL */
} mgl_generation;

/* Reads both files. `generation` may be NULL (no such file). The end tokens are the union of
 * eos_token_id in both files. */
mgl_status mgl_generation_read(const mgl_json *generation, const mgl_json *config, int32_t vocab,
                               mgl_generation *out, mgl_error *err);
void mgl_generation_clear(mgl_generation *generation);

#endif
