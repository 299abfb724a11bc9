/*
 * Kernel session: the work on one unit's micro-kernel, stored in a folder. The folder contains the
 * versions, the one open work, and a transcript. Requests and answers go through the session, so
 * the proposer can be another process at another time. Kernel stores (kernel_store.h) open sessions
 * for the command line and agents.
 *
 *     FOLDER/UNIT/...           the versions (version.h)
 *     FOLDER/UNIT/work.json     the open work
 *     FOLDER/UNIT/lock          lock of the process that has the session open
 *     FOLDER/UNIT/calls/N.json  requests and answers, from 000001 on
 *
 * A work is a transformation, or a task in free text for one region. A work starts from the text of
 * the branch, or from the unit's original text. It ends with a new version, or when its calls are
 * used up.
 */
#ifndef MGL_AUTOTUNE_KERNELS_SESSIONS_KERNEL_SESSION_H
#define MGL_AUTOTUNE_KERNELS_SESSIONS_KERNEL_SESSION_H

#include "autotune/kernels/methods/gate_evaluator.h"
#include "autotune/kernels/methods/pass_engine.h"
#include "autotune/kernels/versions/version.h"

typedef struct mgl_kernel_session_options {
    const char *folder; /* folder of the sessions of all units; created if it is missing */
    const mgl_kernel_unit *unit;
    const mgl_library *library; /* borrowed */
    const char *arch;           /* NULL: the architecture of the open work, else "sm_90a" */
    const char *model;          /* model name in request bodies; NULL: "" */
    bool no_compile;            /* the gates end after the scan */
    bool reads;                 /* read-only: works cannot be changed or run, and no file or lock
                                 * is created */
    const struct mgl_trial_options *device; /* borrowed; evaluates texts that pass the gates before
                                             * the device; NULL: none */
    const atomic_int *abort;                /* may be NULL */
} mgl_kernel_session_options;

typedef struct mgl_kernel_session mgl_kernel_session;
/* MGL_USAGE: another process has the session open. */
mgl_status mgl_kernel_session_open(const mgl_kernel_session_options *options,
                                   mgl_kernel_session **out, mgl_error *err);
void mgl_kernel_session_close(mgl_kernel_session *bench); /* NULL is fine */

mgl_versions *mgl_kernel_session_versions(mgl_kernel_session *bench);
/* The options for a script engine or rounds in this session. Their calls are written to the
 * transcript. */
const mgl_work *mgl_kernel_session_work(const mgl_kernel_session *bench);
/* The text from which a work would start: the branch's text, or the unit's original text. The
 * caller owns the copy. `provides` (or NULL) gets the names of the text's properties, separated
 * by blanks. */
mgl_status mgl_kernel_session_text(const mgl_kernel_session *bench, mgl_text *out,
                                   mgl_text *provides, mgl_error *err);

/* The open work. */
typedef struct mgl_work_state {
    bool open;
    const mgl_transformation *transformation; /* NULL: a task */
    const char *instruction;                  /* instruction of the task or of the current pass */
    mgl_kernel_region region;
    int pass,
        passes; /* number of the current pass, from 1, and of all passes of the transformation */
    int calls;  /* calls so far */
} mgl_work_state;
mgl_work_state mgl_kernel_session_state(const mgl_kernel_session *bench);

/* MGL_USAGE: a work is open. */
mgl_status mgl_kernel_session_begin_transformation(mgl_kernel_session *bench,
                                                   const mgl_transformation *transformation,
                                                   mgl_error *err);
mgl_status mgl_kernel_session_begin_task(mgl_kernel_session *bench, mgl_kernel_region region,
                                         const char *instruction, mgl_error *err);
/* Closes the open work without a new version. */
mgl_status mgl_kernel_session_drop(mgl_kernel_session *bench, mgl_error *err);

/* The prompt as text for a person or an agent, or as a request body. MGL_USAGE: no work is open. */
mgl_status mgl_kernel_session_prompt(const mgl_kernel_session *bench, bool body, mgl_text *out,
                                     mgl_error *err);

/* The result of an answer or of a run. */
typedef struct mgl_work_end {
    mgl_trial_verdict verdict;
    const mgl_kernel_findings *gates; /* findings of the gates without the outcome, valid until
                                       * the next answer; NULL: no text reached the gates */
    bool ended;                       /* the work is closed */
    char version[MGL_SHA256_HEX];     /* id of the new version; "": none */
    mgl_outcome stopped;              /* for a run: the PROPOSER_ outcome that stopped it, or OK */
    int calls;                        /* calls of the work so far */
} mgl_work_end;
/* `bare`: the answer is the text itself, without a code fence. MGL_BAD_INPUT: the answer is
 * empty; it does not count as a call. */
mgl_status mgl_kernel_session_submit(mgl_kernel_session *bench, const char *answer, size_t length,
                                     bool bare, mgl_work_end *out, mgl_error *err);
/* Calls the model until the work ends. */
mgl_status mgl_kernel_session_run(mgl_kernel_session *bench, mgl_model_client *model_client,
                                  const mgl_waiter *waiter, mgl_work_end *out, mgl_error *err);

#endif
