/*
 * State of the reader of config.json. Each error of a key becomes a reason against the
 * checkpoint. Shared by config.c (sizes, biases, windows) and config_rope.c (rope).
 */
#ifndef MGL_IMPORTER_CONFIG_READER_H
#define MGL_IMPORTER_CONFIG_READER_H

#include "importer/config.h"
#include "importer/family.h"

typedef struct mgl_config_reader {
    const mgl_json *json;
    const cJSON
        *root;        /* the object that describes the language model: the file's, or text_config */
    const char *path; /* path of `root` in the file: "" or "text_config." */
    const char *text_type; /* model_type of text_config if the key is missing; or NULL */
    const mgl_model_family *family;
    mgl_config *config;
    mgl_reasons *reasons;
    mgl_status status; /* the first failure that is not a reason, such as lack of memory */
    mgl_error *err;
} mgl_config_reader;

/* Adds a reason at `key`, which may be a path. */
void mgl_config_refuse(mgl_config_reader *r, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Converts the failure of a getter into a reason, or into the reader's status. */
void mgl_config_take(mgl_config_reader *r, mgl_status status, const mgl_error *cause);

double mgl_config_number(mgl_config_reader *r, const cJSON *object, const char *key, bool required,
                         double missing);
const char *mgl_config_string(mgl_config_reader *r, const cJSON *object, const char *key);
bool mgl_config_flag(mgl_config_reader *r, const cJSON *object, const char *key, bool missing);

/* Fills the rope of the config from rope_parameters, rope_scaling and rope_theta. `positions` is
 * max_position_embeddings. Called after the sizes are read. */
void mgl_config_read_rope(mgl_config_reader *r, int32_t positions);

#endif
