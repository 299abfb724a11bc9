/* A workbench that is open with all that it borrows, by names and folders as the command line and
 * agents give them, and what is told of it. */
#ifndef MGL_AUTOTUNE_KERNELS_VERSIONS_KERNEL_STORE_H
#define MGL_AUTOTUNE_KERNELS_VERSIONS_KERNEL_STORE_H

#include "autotune/kernels/trial/kernel_judge.h"
#include "autotune/kernels/versions/experiment_log.h"
#include "autotune/kernels/versions/kernel_session.h"

/* Of zeros: the user's folders, no device, all gates before one. */
typedef struct mgl_kernel_store_options {
    const char *folder;          /* of all workbenches; NULL: the user's */
    const char *transformations; /* a folder; NULL: the user's */
    const char *arch, *model;    /* as in mgl_kernel_session_options */
    const char *device;          /* as in mgl_kernel_device_options */
    bool no_compile, no_sandbox;
    bool reads;              /* as in mgl_kernel_session_options */
    const atomic_int *abort; /* may be NULL */
} mgl_kernel_store_options;

/* Zero-initialise; release with mgl_kernel_store_close. */
typedef struct mgl_kernel_store {
    const mgl_kernel_unit *unit;
    mgl_library library;
    mgl_kernel_device device;
    mgl_kernel_session *bench;
} mgl_kernel_store;
mgl_status mgl_kernel_store_open(const char *unit, const mgl_kernel_store_options *options,
                                 mgl_kernel_store *out, mgl_error *err);
void mgl_kernel_store_close(mgl_kernel_store *kernel_store);
/* The folder of all workbenches, or the user's for NULL. */
mgl_status mgl_kernel_store_folder(const char *given, mgl_text *out, mgl_error *err);
/* The ledger of a path, or of that folder for NULL; its path goes to `path`, whose folder is made,
 * or NULL. Release both. */
mgl_status mgl_kernel_store_experiment_log(const char *given, const char *folder,
                                           mgl_experiment_log *out, mgl_text *path, mgl_error *err);
/* The transformations of a folder, or of the user's for NULL; release with mgl_library_clear. */
mgl_status mgl_kernel_store_library(const char *folder, mgl_library *out, mgl_error *err);

/* What a work is begun with; of zeros nothing is. */
typedef struct mgl_kernel_store_begin_options {
    const char *transformation; /* its name */
    const char *task, *region;  /* words of its own, for "device" where no region is named */
    bool drop;                  /* what is open is given up first */
} mgl_kernel_store_begin_options;
/* MGL_USAGE: a work is open, the task has no words, there is no such transformation or region, or
 * the text lacks what the transformation requires. */
mgl_status mgl_kernel_store_begin(mgl_kernel_store *kernel_store,
                                  const mgl_kernel_store_begin_options *options, mgl_error *err);

/* What differs between two checkpoints, as mgl_text_diff has it; `from` NULL: the unit's own text,
 * `to` NULL: where the branch that is worked on stands. */
mgl_status mgl_kernel_store_diff(const mgl_kernel_store *kernel_store, const char *from,
                                 const char *to, mgl_text *out, mgl_error *err);
/* Makes a branch, and works on it; `name` NULL: nothing. MGL_USAGE: `at` without a name. */
mgl_status mgl_kernel_store_make_branch(mgl_kernel_store *kernel_store, const char *name,
                                        const char *at, mgl_error *err);

/* ---- members of an object -------------------------------------------------------------------- */

/* What is open, without the prompt. */
void mgl_kernel_store_put_state(const mgl_kernel_store *kernel_store, mgl_json_out *out);
/* The same and the prompt. MGL_USAGE: nothing is open. */
mgl_status mgl_kernel_store_put_prompt(const mgl_kernel_store *kernel_store, bool body,
                                       mgl_json_out *out, mgl_error *err);
/* What is open with its prompt, or what may be begun. */
mgl_status mgl_kernel_store_put_next(const mgl_kernel_store *kernel_store, mgl_json_out *out,
                                     mgl_error *err);
/* What became of an answer or of a run. */
void mgl_kernel_store_put_end(const mgl_kernel_store *kernel_store, const mgl_work_end *end,
                              mgl_json_out *out);
/* A checkpoint without its text. */
void mgl_kernel_store_put_version(const mgl_version_record *record, mgl_json_out *out);
/* The same and its text. */
void mgl_kernel_store_put_record(const mgl_version_record *record, mgl_json_out *out);
/* The branch that is worked on, and all of them. */
mgl_status mgl_kernel_store_put_branches(const mgl_kernel_store *kernel_store, mgl_json_out *out,
                                         mgl_error *err);
/* The checkpoints of a branch or from one on (NULL: the branch that is worked on), the newest
 * first, without their texts. */
mgl_status mgl_kernel_store_put_log(const mgl_kernel_store *kernel_store, const char *at,
                                    mgl_json_out *out, mgl_error *err);

#endif
