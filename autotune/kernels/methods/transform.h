/* Transformations and plans by name, and runs of them on a workbench, as the command line and
 * agents ask for them, and what is told of them. */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_TRANSFORM_H
#define MGL_AUTOTUNE_KERNELS_METHODS_TRANSFORM_H

#include "autotune/kernels/methods/script_engine.h"
#include "autotune/kernels/versions/kernel_store.h"

/* One of the two; the other is NULL. */
typedef struct mgl_transform {
    const mgl_transformation *transformation;
    const mgl_transform_script *script;
} mgl_transform;
/* MGL_USAGE: not exactly one of the names is given, or there is none of it. */
mgl_status mgl_transform_find(const mgl_library *library, const char *name, const char *script,
                              mgl_transform *out, mgl_error *err);

/* ---- checking -------------------------------------------------------------------------------- */

/* What a file holds. Zero-initialise; release with mgl_transform_checked_clear. */
typedef struct mgl_transform_checked {
    bool is_script;
    mgl_transformation transformation;
    mgl_transform_script script;
} mgl_transform_checked;
enum { MGL_TRANSFORM_MAX_TEXT = 1 << 20 };
/* A text of one, with a 0 behind it, `file` for messages; a plan is looked at with the library as
 * it is, and for each op. MGL_BAD_INPUT, with what is wrong. */
mgl_status mgl_transform_check(const mgl_library *library, const char *text, size_t length,
                               const char *file, mgl_transform_checked *out, mgl_error *err);
void mgl_transform_checked_clear(mgl_transform_checked *checked);

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct mgl_transform_options {
    const char *name, *script; /* as in mgl_transform_find */
    int carry, judgements;     /* as in mgl_script_engine_options */
    void (*on_step)(void *user, const mgl_step_report *step);
    void *user;
    const atomic_int *abort; /* may be NULL */
} mgl_transform_options;
/* Runs it on the text of the workbench's branch. MGL_USAGE: a work is open, or it is not for this
 * op or architecture. */
mgl_status mgl_transform_apply(mgl_kernel_store *kernel_store, const mgl_transform_options *options,
                               mgl_model_client *model_client, mgl_script_engine_result *out,
                               mgl_error *err);
/* Why a step ended as it did, in a word; "": it has a verdict that is OK. */
const char *mgl_transform_why(const mgl_step_report *step);

/* ---- members of an object -------------------------------------------------------------------- */

/* The transformations and plans of a library, without their passes. */
void mgl_transform_put_library(const mgl_library *library, mgl_json_out *out);
/* The whole file. Once: it takes the texts of the tree. */
void mgl_transform_put(const mgl_transform *transform, mgl_json_out *out);
void mgl_transform_put_checked(const mgl_transform_checked *checked, mgl_json_out *out);
/* An element of an array. */
void mgl_transform_put_step(const mgl_step_report *step, mgl_json_out *out);
void mgl_transform_put_result(const mgl_script_engine_result *result, mgl_json_out *out);

#endif
