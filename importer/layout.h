/*
 * What a folder, a file or an address is that is not a model, and what to do about it: adapters,
 * weights in other formats, downloads that are not finished, addresses of web pages.
 */
#ifndef MGL_IMPORTER_LAYOUT_H
#define MGL_IMPORTER_LAYOUT_H

#include "base/error.h"

/* What a folder lacks. */
typedef enum mgl_lack {
    MGL_LACKS_CONFIG = 1,   /* config.json */
    MGL_LACKS_WEIGHTS = 2,  /* model.safetensors or its shards */
    MGL_LACKS_TOKENIZER = 4 /* tokenizer.json */
} mgl_lack;

/* MGL_BAD_INPUT: why the folder lacks that. Fails otherwise if it can not be read. */
mgl_status mgl_layout_fail_folder(const char *folder, mgl_lack lack, mgl_error *err);
/* MGL_BAD_INPUT: `shard` of the index, which has `count` shards, of which `there` stand. */
mgl_status mgl_layout_fail_shard(const char *folder, const char *shard, size_t there, size_t count,
                                 mgl_error *err);
/* MGL_BAD_INPUT if the folder lacks tokenizer.json. */
mgl_status mgl_layout_check_tokenizer(const char *folder, mgl_error *err);
/* MGL_BAD_INPUT: a file that is given as a MODEL and is none. */
mgl_status mgl_layout_fail_file(const char *path, mgl_error *err);
/* The same if the name of the file says what it is; else MGL_OK. */
mgl_status mgl_layout_check_file(const char *path, mgl_error *err);
/* MGL_BAD_INPUT: a MODEL at which nothing stands, be it the address of a web page. */
mgl_status mgl_layout_fail_name(const char *model, mgl_error *err);

/* MGL_BAD_INPUT if the folder lacks config.json, or holds a LoRA adapter, which Transformers would
 * add to the weights beside it. */
mgl_status mgl_layout_check_folder(const char *folder, mgl_error *err);

#endif
