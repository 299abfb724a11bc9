/*
 * Declares an open model (struct mgl_model). api/model.c opens and closes models, api/generate.c
 * runs them, and api/ends.c finds their end tokens. A model owns its checkpoint, image, program and
 * machine.
 */
#ifndef MGL_API_MODEL_H
#define MGL_API_MODEL_H

#include "api/cancel.h"
#include "importer/checkpoint.h"
#include "vm/image.h"
#include "vm/pipeline/pipeline.h"
#include "vm/vm.h"

struct mgl_model {
    mgl_checkpoint *checkpoint;
    mgl_image *image;           /* of a compiled model; NULL: the model is a folder */
    mgl_program *made;          /* lowered or read for a folder, owned; NULL: compiled model */
    const mgl_program *program; /* `made`, or the program of `image` */
    /* `tuned.capacity` is set for every model: the positions that replies can use. The program of a
     * tuned entry or of a compiled model may have more positions. */
    mgl_tuned_report tuned;
    mgl_vm *vm;
    char device[128];   /* "cpu" or the GPU's name */
    double open_s;      /* duration of mgl_model_open */
    double driver_s;    /* part of open_s: starting the GPU driver and opening its context */
    double import_s;    /* part of open_s: from the path to the program, without the driver */
    mgl_cancel own;     /* used if the caller passed no switch to mgl_model_open */
    mgl_cancel *cancel; /* &own, or the caller's switch */
    mgl_ids chat_ends;  /* end tokens of chats; ids is NULL before they are looked up */
    mgl_stage_fn *on_stage;
    void *stage_user; /* for on_stage */
};

/* Finds the end tokens of chats and keeps them in `chat_ends`. Later calls return at once. */
mgl_status mgl_model_find_chat_ends(mgl_model *model, const mgl_tokenizer *tokenizer,
                                    mgl_error *err);

#endif
