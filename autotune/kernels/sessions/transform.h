/* Transformations and scripts by name: find, check, run in a kernel session, and print as JSON.
 * The command line and the agents' tools call it. */
#ifndef MGL_AUTOTUNE_KERNELS_SESSIONS_TRANSFORM_H
#define MGL_AUTOTUNE_KERNELS_SESSIONS_TRANSFORM_H

#include "autotune/kernels/methods/script_engine.h"
#include "autotune/kernels/sessions/kernel_store.h"

/* Exactly one is set; the other is NULL. */
typedef struct mgl_transform {
    const mgl_transformation *transformation;
    const mgl_transform_script *script;
} mgl_transform;
/* MGL_USAGE: not exactly one name is given, or the name is unknown. */
mgl_status mgl_transform_find(const mgl_library *library, const char *name, const char *script,
                              mgl_transform *out, mgl_error *err);

/* ---- checking -------------------------------------------------------------------------------- */

/* The content of a file. Zero-initialize; release with mgl_transform_checked_clear. */
typedef struct mgl_transform_checked {
    bool is_script;
    mgl_transformation transformation;
    mgl_transform_script script;
} mgl_transform_checked;
enum { MGL_TRANSFORM_MAX_TEXT = 1 << 20 };
/* Checks a text that ends with a 0 byte; `file` is the name in messages. A script is checked
 * against the library, for each op. MGL_BAD_INPUT names the fault. */
mgl_status mgl_transform_check(const mgl_library *library, const char *text, size_t length,
                               const char *file, mgl_transform_checked *out, mgl_error *err);
void mgl_transform_checked_clear(mgl_transform_checked *checked);

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct mgl_transform_options {
    const char *name, *script; /* as in mgl_transform_find */
    int carry, evaluations;    /* as in mgl_script_engine_options */
    void (*on_step)(void *user, const mgl_step_report *step);
    void *user;
    const atomic_int *abort; /* may be NULL */
} mgl_transform_options;
/* Runs the transformation or script on the text of the session's branch. MGL_USAGE: a work is
 * open, or the transformation does not support this op or architecture. */
mgl_status mgl_transform_apply(mgl_kernel_store *kernel_store, const mgl_transform_options *options,
                               mgl_model_client *model_client, mgl_script_engine_result *out,
                               mgl_error *err);
/* The reason for a step's end, as one word; "": its verdict is OK. */
const char *mgl_transform_why(const mgl_step_report *step);

/* ---- members of an object -------------------------------------------------------------------- */

/* Writes the transformations and scripts of a library, without the passes. */
void mgl_transform_put_library(const mgl_library *library, mgl_json_out *out);
/* Writes the whole file. May be called only once, because it moves the texts out of the tree. */
void mgl_transform_put(const mgl_transform *transform, mgl_json_out *out);
void mgl_transform_put_checked(const mgl_transform_checked *checked, mgl_json_out *out);
/* Writes a step as an element of the open array. */
void mgl_transform_put_step(const mgl_step_report *step, mgl_json_out *out);
void mgl_transform_put_result(const mgl_script_engine_result *result, mgl_json_out *out);

#endif
