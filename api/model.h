/*
 * What an open model is: api/model.c makes it, and generate.c runs it.
 */
#ifndef MGL_API_MODEL_H
#define MGL_API_MODEL_H

#include <stdatomic.h>

#include "api/pipeline.h"
#include "importer/checkpoint.h"
#include "vm/image.h"
#include "vm/vm.h"

struct mgl_cancel {
    atomic_int set; /* what the machines read */
};

struct mgl_model {
    mgl_checkpoint *checkpoint;
    mgl_image *image;           /* of a compiled model, else NULL */
    mgl_program *made;          /* of a folder: lowered or read, else NULL */
    const mgl_program *program; /* of either */
    mgl_tuned_report tuned;     /* of a lowered one; its capacity is that of any: what replies have,
                                   while the program of a tuned entry, or a compiled one, may have
                                   more */
    mgl_vm *vm;
    char device[128];   /* "cpu" or the GPU's name */
    double open_s;      /* mgl_model_open */
    double driver_s;    /* of it: starting the GPU's driver and opening its context */
    double import_s;    /* of it: to the program */
    mgl_cancel own;     /* of a model that was opened without a switch */
    mgl_cancel *cancel; /* that one, or the caller's */
    mgl_ids chat_ends;  /* end tokens of chats; ids is NULL before they are looked up */
    mgl_stage_fn *on_stage;
    void *stage_user; /* for on_stage */
};

/* Looks up the end tokens of chats, once. */
mgl_status mgl_model_find_chat_ends(mgl_model *model, const mgl_tokenizer *tokenizer,
                                    mgl_error *err);

#endif
