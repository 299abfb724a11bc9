/*
 * Error messages for folders, files and addresses that are not a model: adapters, weights in
 * other formats, unfinished downloads, addresses of web pages. Each message tells the user what
 * to do. Called where a model is opened: cache.c, checkpoint.c, safetensors.c and the tokenizer.
 */
#ifndef MGL_IMPORTER_LAYOUT_H
#define MGL_IMPORTER_LAYOUT_H

#include "base/error.h"

/* The folder of finished layers inside the folder of a quantized model, while the calibration of
 * `quantize` is unfinished. */
#define MGL_QUANTIZE_UNFINISHED "quantize.unfinished"

/* The file that a folder lacks (bits). */
typedef enum mgl_lack {
    MGL_LACKS_CONFIG = 1,   /* config.json */
    MGL_LACKS_WEIGHTS = 2,  /* model.safetensors or its shards */
    MGL_LACKS_TOKENIZER = 4 /* tokenizer.json */
} mgl_lack;

/* Returns MGL_BAD_INPUT with the reason why the file is missing, or another error if the folder
 * cannot be read. */
mgl_status mgl_layout_fail_folder(const char *folder, mgl_lack lack, mgl_error *err);
/* Returns MGL_BAD_INPUT: `shard` is missing. The index names `count` shards, of which `there`
 * exist. */
mgl_status mgl_layout_fail_shard(const char *folder, const char *shard, size_t there, size_t count,
                                 mgl_error *err);
/* Returns MGL_BAD_INPUT if the folder lacks tokenizer.json. */
mgl_status mgl_layout_check_tokenizer(const char *folder, mgl_error *err);
/* Returns MGL_BAD_INPUT for a file that was given as a MODEL and is not a model. */
mgl_status mgl_layout_fail_file(const char *path, mgl_error *err);
/* Same if the file's name matches a known kind of file; else MGL_OK. */
mgl_status mgl_layout_check_file(const char *path, mgl_error *err);
/* Returns MGL_BAD_INPUT for a MODEL that does not exist, or is the address of a web page. */
mgl_status mgl_layout_fail_name(const char *model, mgl_error *err);

/* Returns MGL_BAD_INPUT if the folder lacks config.json, or contains a LoRA adapter, which
 * Transformers would add to the weights beside it. */
mgl_status mgl_layout_check_folder(const char *folder, mgl_error *err);

#endif
