/*
 * The files of a model by name: files of its folder, sections of a compiled model, or files made of
 * the metadata of a GGUF file. Used by the readers of config.json, of the tokenizer's files and of
 * chat templates, and by `compile`.
 */
#ifndef MGL_IMPORTER_MODEL_FILES_H
#define MGL_IMPORTER_MODEL_FILES_H

#include "base/json.h"
#include "base/text.h"
#include "importer/gguf/gguf.h"
#include "importer/mega.h"

typedef struct mgl_model_files {
    const char *path; /* not owned */
    mgl_mega *mega;   /* a compiled model, or NULL */
    mgl_gguf *gguf;   /* a GGUF file, or NULL; both NULL: a folder */
} mgl_model_files;

/* Opens the compiled model or the GGUF file at `path`; anything else is taken as a folder. */
mgl_status mgl_model_files_open(const char *path, mgl_model_files *out, mgl_error *err);
void mgl_model_files_close(mgl_model_files *files);

/* Whether the model is one file. */
static inline bool mgl_model_files_are_one(const mgl_model_files *files)
{
    return files->mega || files->gguf;
}

/* Sets *has to whether a file of this name exists. */
mgl_status mgl_model_files_have(const mgl_model_files *files, const char *name, bool *has,
                                mgl_error *err);

/* Reads a file of at most `cap` bytes. If it does not exist, *text is NULL; this is an error if
 * the file is required. *path is the name for messages. Release *path and *text, also after a
 * failure. */
mgl_status mgl_model_files_read(const mgl_model_files *files, const char *name, size_t cap,
                                bool required, mgl_text *path, char **text, size_t *length,
                                mgl_error *err);

/* One of the functions mgl_json_parse. */
typedef mgl_status mgl_json_parser(const char *text, size_t length, size_t cap, const char *file,
                                   mgl_json *out, mgl_error *err);

/* Reads a JSON file. If it does not exist, out->root is NULL. Release with mgl_json_clear. */
mgl_status mgl_model_files_parse(const mgl_model_files *files, const char *name, size_t cap,
                                 bool required, mgl_json_parser *parser, mgl_json *out,
                                 mgl_error *err);

#endif
