/*
 * A checkpoint in the Hugging Face layout: config.json, *.safetensors, generation_config.json.
 *
 *     mgl_checkpoint *checkpoint;
 *     if (mgl_import("tests/models/tales-5m", &checkpoint, &err))
 *         ... err says why ...
 *     ... checkpoint->graph, checkpoint->generation ...
 *     mgl_checkpoint_close(checkpoint);
 *
 * What cannot be represented exactly is refused, by the config and by a scan of every tensor name.
 * A compiled model (mega.h) holds the same, but for the weights: those it has are packed for its
 * own program, and its graph has none to read.
 */
#ifndef MGL_IMPORTER_CHECKPOINT_H
#define MGL_IMPORTER_CHECKPOINT_H

#include "importer/config.h"
#include "importer/generation.h"
#include "importer/graph.h"
#include "importer/reasons.h"

typedef struct mgl_checkpoint {
    char *folder;              /* owned: where MODEL was found, be it a compiled file */
    char *architecture;        /* owned: as config.json names it; "" when it does not */
    mgl_graph *graph;          /* owned; NULL when not supported */
    mgl_generation generation; /* end tokens and sampling values */
    mgl_reasons reasons;       /* why it is not supported; none: it is */
    uint64_t parameters;       /* elements of the model's tensors; a tied table counts once */
    uint64_t bytes;            /* of those tensors, as stored */
    int files;                 /* safetensors files; 0: compiled */
    int ignored;               /* stored tensors that the model does not use, known as harmless:
                                   precomputed rope frequencies, the head of a tied model, the
                                   vision part of a wrapper */
} mgl_checkpoint;

/* Resolves, opens and reads `model`, and hands out everything that is to be said about it, the
 * reasons against it included. Fails for files that are missing or damaged. */
mgl_status mgl_checkpoint_open(const char *model, mgl_checkpoint **out, mgl_error *err);

/* The same, but fails with MGL_BAD_INPUT and the first reason if there is one. */
mgl_status mgl_import(const char *model, mgl_checkpoint **out, mgl_error *err);

/* Clears config->tied if the model at `path` stores a head with values of its own. Without weights
 * that can be read, the config stays. */
mgl_status mgl_checkpoint_find_tie(const char *path, mgl_config *config, mgl_error *err);

/* Reads an optional JSON file of the model, or the section of a compiled one. out->root is NULL if
 * there is none. Release with mgl_json_clear. */
mgl_status mgl_checkpoint_read_file(const mgl_checkpoint *checkpoint, const char *name,
                                    mgl_json *out, mgl_error *err);

/* The end token of the model's chats: eos_token of tokenizer_config.json, with which a chat
 * template ends each message. Its id is often missing in the eos_token_id of the other two files.
 * *out is NULL if the file does not exist or has none. Release *out with mgl_free. */
mgl_status mgl_end_token_read(const mgl_checkpoint *checkpoint, char **out, mgl_error *err);
/* The id of a token with this text; -1: the tokenizer has none. */
int32_t mgl_end_token_find(const mgl_tokenizer *tokenizer, const char *text);

/* MGL_BAD_INPUT when `output` is a file that the checkpoint was read from, by whatever name, or
 * would be one of its folder: nothing may be written there. While it has its graph. */
mgl_status mgl_checkpoint_check_output(const mgl_checkpoint *checkpoint, const char *output,
                                       mgl_error *err);

/* The name under which a tensor of the graph is stored: a tensor may be a part of it. Owned by the
 * checkpoint, while it has its graph. */
const char *mgl_checkpoint_stored_name(const mgl_checkpoint *checkpoint, int tensor);

/* The name of the stored tensor number `index` of those that the model does not use; NULL behind
 * the last. Owned likewise. */
const char *mgl_checkpoint_unused_name(const mgl_checkpoint *checkpoint, int index);

/* Releases it with its graph and files. To keep the graph (which holds the files), take it out:
 * `graph = checkpoint->graph; checkpoint->graph = NULL;`. NULL is fine. */
void mgl_checkpoint_close(mgl_checkpoint *checkpoint);

/* Where MODEL lies: the path itself when it exists, else the snapshot of `org/name` or
 * `org/name@revision` in the local Hugging Face cache (importer/hub.h). Release *out with mgl_free.
 */
mgl_status mgl_model_resolve_path(const char *model, char **out, mgl_error *err);

/* The same for a MODEL with weights: a folder, or a compiled file. */
mgl_status mgl_model_find(const char *model, char **out, mgl_error *err);

/* Whether tokenizer.json stands in what mgl_model_find found. */
mgl_status mgl_model_has_tokenizer(const char *path, bool *has, mgl_error *err);

#endif
