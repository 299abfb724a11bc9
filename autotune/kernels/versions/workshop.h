/* A workbench that is open with all that it borrows, by names and folders as the command line and
 * agents give them, and what is told of it. */
#ifndef MGL_AUTOTUNE_KERNELS_VERSIONS_WORKSHOP_H
#define MGL_AUTOTUNE_KERNELS_VERSIONS_WORKSHOP_H

#include "autotune/kernels/trial/kernel_judge.h"
#include "autotune/kernels/versions/ledger.h"
#include "autotune/kernels/versions/workbench.h"

/* Of zeros: the user's folders, no device, all gates before one. */
typedef struct mgl_workshop_options {
    const char *folder;          /* of all workbenches; NULL: the user's */
    const char *transformations; /* a folder; NULL: the user's */
    const char *arch, *model;    /* as in mgl_workbench_options */
    const char *device;          /* as in mgl_kernel_device_options */
    bool no_compile, no_sandbox;
    bool reads;              /* as in mgl_workbench_options */
    const atomic_int *abort; /* may be NULL */
} mgl_workshop_options;

/* Zero-initialise; release with mgl_workshop_close. */
typedef struct mgl_workshop {
    const mgl_kernel_unit *unit;
    mgl_library library;
    mgl_kernel_device device;
    mgl_workbench *bench;
} mgl_workshop;
mgl_status mgl_workshop_open(const char *unit, const mgl_workshop_options *options,
                             mgl_workshop *out, mgl_error *err);
void mgl_workshop_close(mgl_workshop *workshop);
/* The folder of all workbenches, or the user's for NULL. */
mgl_status mgl_workshop_folder(const char *given, mgl_text *out, mgl_error *err);
/* The ledger of a path, or of that folder for NULL; its path goes to `path`, whose folder is made,
 * or NULL. Release both. */
mgl_status mgl_workshop_ledger(const char *given, const char *folder, mgl_ledger *out,
                               mgl_text *path, mgl_error *err);
/* The transformations of a folder, or of the user's for NULL; release with mgl_library_clear. */
mgl_status mgl_workshop_library(const char *folder, mgl_library *out, mgl_error *err);

/* What a work is begun with; of zeros nothing is. */
typedef struct mgl_workshop_begin_options {
    const char *transformation; /* its name */
    const char *task, *region;  /* words of its own, for "device" where no region is named */
    bool drop;                  /* what is open is given up first */
} mgl_workshop_begin_options;
/* MGL_USAGE: a work is open, the task has no words, there is no such transformation or region, or
 * the text lacks what the transformation requires. */
mgl_status mgl_workshop_begin(mgl_workshop *workshop, const mgl_workshop_begin_options *options,
                              mgl_error *err);

/* What differs between two checkpoints, as mgl_text_diff has it; `from` NULL: the unit's own text,
 * `to` NULL: where the branch that is worked on stands. */
mgl_status mgl_workshop_diff(const mgl_workshop *workshop, const char *from, const char *to,
                             mgl_text *out, mgl_error *err);
/* Makes a branch, and works on it; `name` NULL: nothing. MGL_USAGE: `at` without a name. */
mgl_status mgl_workshop_make_branch(mgl_workshop *workshop, const char *name, const char *at,
                                    mgl_error *err);

/* ---- members of an object -------------------------------------------------------------------- */

/* What is open, without the prompt. */
void mgl_workshop_put_state(const mgl_workshop *workshop, mgl_json_out *out);
/* The same and the prompt. MGL_USAGE: nothing is open. */
mgl_status mgl_workshop_put_prompt(const mgl_workshop *workshop, bool body, mgl_json_out *out,
                                   mgl_error *err);
/* What is open with its prompt, or what may be begun. */
mgl_status mgl_workshop_put_next(const mgl_workshop *workshop, mgl_json_out *out, mgl_error *err);
/* What became of an answer or of a run. */
void mgl_workshop_put_end(const mgl_workshop *workshop, const mgl_work_end *end, mgl_json_out *out);
/* A checkpoint without its text. */
void mgl_workshop_put_checkpoint(const mgl_checkpoint_record *record, mgl_json_out *out);
/* The same and its text. */
void mgl_workshop_put_record(const mgl_checkpoint_record *record, mgl_json_out *out);
/* The branch that is worked on, and all of them. */
mgl_status mgl_workshop_put_branches(const mgl_workshop *workshop, mgl_json_out *out,
                                     mgl_error *err);
/* The checkpoints of a branch or from one on (NULL: the branch that is worked on), the newest
 * first, without their texts. */
mgl_status mgl_workshop_put_log(const mgl_workshop *workshop, const char *at, mgl_json_out *out,
                                mgl_error *err);

#endif
