/*
 * A checkpoint in Hugging Face layout: config.json, *.safetensors, generation_config.json. Callers:
 * api/, cli/, eval/, the tokenizer, and the chat templates.
 *
 *     mgl_checkpoint *checkpoint;
 *     if (mgl_import("tests/models/tales-5m", &checkpoint, &err))
 *         ... err describes the error ...
 *     ... checkpoint->graph, checkpoint->generation ...
 *     mgl_checkpoint_close(checkpoint);
 *
 * A model that the graph cannot represent exactly is rejected, after reading the config and the
 * names of all tensors. A compiled model (mega.h) opens the same way, except for the weights: its
 * weights are packed for its own program, so its graph cannot read any.
 */
#ifndef MGL_IMPORTER_CHECKPOINT_H
#define MGL_IMPORTER_CHECKPOINT_H

#include "importer/config.h"
#include "importer/generation.h"
#include "importer/graph.h"
#include "importer/reasons.h"

typedef struct mgl_checkpoint {
    char *folder;              /* owned: the path where MODEL was found: a folder or a compiled
                                * file */
    char *architecture;        /* owned: the name in config.json; "" if there is none */
    mgl_graph *graph;          /* owned; NULL if the model is not supported */
    mgl_generation generation; /* end tokens and sampling values */
    mgl_reasons reasons;       /* why the model is not supported; empty: it is supported */
    uint64_t parameters;       /* elements of the model's tensors; a tied table counts once */
    uint64_t bytes;            /* of the model's tensors (mgl_tensor_bytes) */
    uint64_t stored_bytes;     /* of all tensors in the files; 0: a compiled model */
    int quantized;             /* quantized tensors of the graph */
    int files;                 /* safetensors files, or the GGUF file; 0: a compiled model */
    bool gguf;                 /* a GGUF file */
    int ignored;               /* stored tensors that the model does not use, of harmless kinds:
                                * precomputed rope frequencies, the head of a tied model, the
                                * vision part of a wrapper, scales of activations; 0 if there is no
                                * graph */
} mgl_checkpoint;

/* Resolves, opens and reads `model`, and returns everything known about it. A model that is not
 * supported is returned too, with the reasons. Fails if files are missing or damaged. */
mgl_status mgl_checkpoint_open(const char *model, mgl_checkpoint **out, mgl_error *err);

/* Same, but fails with MGL_BAD_INPUT and the first reason if the model is not supported. */
mgl_status mgl_import(const char *model, mgl_checkpoint **out, mgl_error *err);

/* Clears config->tied if the model at `path` stores a head with its own values. If the weights
 * cannot be read, the config is unchanged. */
mgl_status mgl_checkpoint_find_tie(const char *path, mgl_config *config, mgl_error *err);

/* Reads the end token of the model's chats: eos_token of tokenizer_config.json. A chat template
 * ends each message with this token, and eos_token_id of the other two files often lacks its id.
 * *out is NULL if the file does not exist or has no such key. Release *out with mgl_free. */
mgl_status mgl_end_token_read(const mgl_checkpoint *checkpoint, char **out, mgl_error *err);
/* Returns the id of the token with this text, or -1 if the tokenizer has none. */
int32_t mgl_end_token_find(const mgl_tokenizer *tokenizer, const char *text);

/* Returns MGL_BAD_INPUT if `output` is a file that the checkpoint was read from (by any name),
 * or would be a file of its folder: such a file must not be overwritten. Requires
 * checkpoint->graph. */
mgl_status mgl_checkpoint_check_output(const mgl_checkpoint *checkpoint, const char *output,
                                       mgl_error *err);

/* Returns the stored name of a tensor of the graph; the tensor may be a part of the stored one.
 * Owned by the checkpoint, valid while it has its graph. */
const char *mgl_checkpoint_stored_name(const mgl_checkpoint *checkpoint, int tensor);

/* Returns the row of the stored tensor that is row `row` of a tensor of the graph. Requires the
 * checkpoint's graph. */
int64_t mgl_checkpoint_stored_row(const mgl_checkpoint *checkpoint, int tensor, int64_t row);

/* Returns the name of the `index`-th stored tensor that the model does not use; NULL past the
 * last. Owned by the checkpoint, as above. */
const char *mgl_checkpoint_unused_name(const mgl_checkpoint *checkpoint, int index);

/* Releases the checkpoint with its graph and files. To keep the graph (which owns the files),
 * take it out: `graph = checkpoint->graph; checkpoint->graph = NULL;`. NULL is fine. */
void mgl_checkpoint_close(mgl_checkpoint *checkpoint);

/* Resolves MODEL to a path: the path itself if it exists, else the snapshot of `org/name` or
 * `org/name@revision` in the local Hugging Face cache (importer/hub.h). Release *out with
 * mgl_free. */
mgl_status mgl_model_resolve_path(const char *model, char **out, mgl_error *err);

/* Same for a MODEL that must have weights: a folder, or a compiled file. */
mgl_status mgl_model_find(const char *model, char **out, mgl_error *err);

/* Sets *has if the model that mgl_model_find found has a tokenizer.json. */
mgl_status mgl_model_has_tokenizer(const char *path, bool *has, mgl_error *err);

#endif
