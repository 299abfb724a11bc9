/* Kernel store: opens a kernel session with all that it borrows (transformations, device), by
 * names and folders from the command line or an agent. It also prints sessions, versions and
 * results as JSON. */
#ifndef MGL_AUTOTUNE_KERNELS_SESSIONS_KERNEL_STORE_H
#define MGL_AUTOTUNE_KERNELS_SESSIONS_KERNEL_STORE_H

#include "autotune/kernels/sessions/kernel_session.h"
#include "autotune/kernels/trial/evaluate.h"
#include "autotune/kernels/versions/experiment_log.h"

/* Options of a kernel store. A zeroed struct selects the user's folders, no device, and all gates
 * before the device. */
typedef struct mgl_kernel_store_options {
    const char *folder;          /* folder of all kernel sessions; NULL: the user's */
    const char *transformations; /* a folder; NULL: the user's */
    const char *arch, *model;    /* as in mgl_kernel_session_options */
    const char *device;          /* as in mgl_kernel_device_options */
    bool no_compile, no_sandbox;
    bool reads;              /* as in mgl_kernel_session_options */
    const atomic_int *abort; /* may be NULL */
} mgl_kernel_store_options;

/* Zero-initialize; release with mgl_kernel_store_close. */
typedef struct mgl_kernel_store {
    const mgl_kernel_unit *unit;
    mgl_library library;
    mgl_kernel_device device;
    mgl_kernel_session *bench;
} mgl_kernel_store;
mgl_status mgl_kernel_store_open(const char *unit, const mgl_kernel_store_options *options,
                                 mgl_kernel_store *out, mgl_error *err);
void mgl_kernel_store_close(mgl_kernel_store *kernel_store);
/* The folder of all kernel sessions; for NULL the user's. */
mgl_status mgl_kernel_store_folder(const char *given, mgl_text *out, mgl_error *err);
/* Path of a file in the folder of all kernel sessions, or `given`. `write`: creates the folder. */
mgl_status mgl_kernel_store_file(const char *given, const char *folder, const char *name,
                                 bool write, mgl_text *out, mgl_error *err);
/* Reads the experiment log at a path, which must exist; for NULL, the log in `folder`, which is
 * empty before the first experiment. */
mgl_status mgl_kernel_store_experiment_log(const char *given, const char *folder,
                                           mgl_experiment_log *out, mgl_error *err);
/* Adds a row to that log; *number: the row's number. */
mgl_status mgl_kernel_store_record(const char *given, const char *folder,
                                   const mgl_experiment_log_row *row, size_t *number,
                                   mgl_error *err);
/* The transformations of a folder, or the user's for NULL; release with mgl_library_clear. */
mgl_status mgl_kernel_store_library(const char *folder, mgl_library *out, mgl_error *err);

/* Options to begin a work. A zeroed struct begins no work. */
typedef struct mgl_kernel_store_begin_options {
    const char *transformation; /* name */
    const char *task, *region;  /* free text; the region is "device" if NULL */
    bool drop;                  /* drops the open work first */
} mgl_kernel_store_begin_options;
/* MGL_USAGE: a work is open, the task is empty, the transformation or region is unknown, or the
 * text lacks what the transformation requires. */
mgl_status mgl_kernel_store_begin(mgl_kernel_store *kernel_store,
                                  const mgl_kernel_store_begin_options *options, mgl_error *err);

/* The difference between two versions in the format of mgl_text_diff. `from` NULL: the unit's
 * original text; `to` NULL: the current branch. */
mgl_status mgl_kernel_store_diff(const mgl_kernel_store *kernel_store, const char *from,
                                 const char *to, mgl_text *out, mgl_error *err);
/* Creates a branch and switches to it; `name` NULL: does nothing. MGL_USAGE: `at` without a
 * name. */
mgl_status mgl_kernel_store_make_branch(mgl_kernel_store *kernel_store, const char *name,
                                        const char *at, mgl_error *err);

/* ---- members of an object -------------------------------------------------------------------- */

/* The open work without the prompt. */
void mgl_kernel_store_put_state(const mgl_kernel_store *kernel_store, mgl_json_out *out);
/* The open work with the prompt. MGL_USAGE: no work is open. */
mgl_status mgl_kernel_store_put_prompt(const mgl_kernel_store *kernel_store, bool body,
                                       mgl_json_out *out, mgl_error *err);
/* The open work with its prompt, or the transformations that can begin. */
mgl_status mgl_kernel_store_put_next(const mgl_kernel_store *kernel_store, mgl_json_out *out,
                                     mgl_error *err);
/* The result of an answer or of a run. */
void mgl_kernel_store_put_end(const mgl_kernel_store *kernel_store, const mgl_work_end *end,
                              mgl_json_out *out);
/* A version without its text. */
void mgl_kernel_store_put_version(const mgl_version_record *record, mgl_json_out *out);
/* A version with its text. */
void mgl_kernel_store_put_record(const mgl_version_record *record, mgl_json_out *out);
/* The current branch, and all branches. */
mgl_status mgl_kernel_store_put_branches(const mgl_kernel_store *kernel_store, mgl_json_out *out,
                                         mgl_error *err);
/* The versions of a branch, or a version with the versions before it (NULL: the current branch),
 * newest first, without texts. */
mgl_status mgl_kernel_store_put_log(const mgl_kernel_store *kernel_store, const char *at,
                                    mgl_json_out *out, mgl_error *err);

#endif
