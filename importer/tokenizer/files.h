/*
 * Reads the files of a model that define its tokenizer: from a folder in Hugging Face layout, or
 * from the sections of the same names in a compiled model. Called by tokenizer.c.
 */
#ifndef MGL_IMPORTER_TOKENIZER_FILES_H
#define MGL_IMPORTER_TOKENIZER_FILES_H

#include "base/json.h"

#define MGL_TOKENIZER_CAP ((size_t)512 << 20) /* bytes of the largest tokenizer.json */

/* The parsed files. If a file does not exist, its root is NULL; the other roots are objects. */
typedef struct mgl_tokenizer_files {
    mgl_json tokenizer; /* tokenizer.json */
    mgl_json config;    /* tokenizer_config.json */
    mgl_json special;   /* special_tokens_map.json */
    mgl_json added;     /* added_tokens.json */
    mgl_json model;     /* config.json */
    bool alone;         /* tokenizer.json is read without the others */
} mgl_tokenizer_files;

/* Reads the files at `path`: a folder, the name of a model in the local cache, a compiled model,
 * or a file tokenizer.json (which is then read alone). Clear *out also after a failure. */
mgl_status mgl_tokenizer_files_read(const char *path, mgl_tokenizer_files *out, mgl_error *err);

void mgl_tokenizer_files_clear(mgl_tokenizer_files *files);

#endif
