/*
 * The workbench of a unit: its checkpoints, the one work that is open, and a transcript, in a
 * folder. What is asked for and what came back pass through it, so that whoever proposes may be a
 * process of its own, today or tomorrow.
 *
 *     FOLDER/UNIT/...           the checkpoints (version.h)
 *     FOLDER/UNIT/work.json     the work that is open
 *     FOLDER/UNIT/lock          of the process that has the workbench open
 *     FOLDER/UNIT/calls/N.json  what was asked and answered, from 000001 on
 *
 * A work is a transformation, or a task of its own words for one region. It begins from where the
 * branch stands, or from the unit's own text, and ends with a checkpoint, or when its calls are
 * used up.
 */
#ifndef MGL_AUTOTUNE_KERNELS_VERSIONS_KERNEL_SESSION_H
#define MGL_AUTOTUNE_KERNELS_VERSIONS_KERNEL_SESSION_H

#include "autotune/kernels/methods/gates.h"
#include "autotune/kernels/methods/pass_engine.h"
#include "autotune/kernels/versions/version.h"

typedef struct mgl_kernel_session_options {
    const char *folder; /* of all units; made where it does not stand */
    const mgl_kernel_unit *unit;
    const mgl_library *library; /* lent */
    const char *arch;           /* NULL: the open work's, else "sm_90a" */
    const char *model;          /* for bodies of requests; NULL: "" */
    bool no_compile;            /* the gates end behind the scan */
    bool reads;                 /* no work is begun, dropped, answered or run: nothing is
                                   made or locked */
    const struct mgl_trial_options *device; /* lent: that judges what passes them; NULL: none */
    const atomic_int *abort;                /* may be NULL */
} mgl_kernel_session_options;

typedef struct mgl_kernel_session mgl_kernel_session;
/* MGL_USAGE: another process has it open. */
mgl_status mgl_kernel_session_open(const mgl_kernel_session_options *options,
                                   mgl_kernel_session **out, mgl_error *err);
void mgl_kernel_session_close(mgl_kernel_session *bench); /* NULL is fine */

mgl_versions *mgl_kernel_session_versions(mgl_kernel_session *bench);
/* What a course or rounds on this bench are done with; calls go into the transcript. */
const mgl_work *mgl_kernel_session_work(const mgl_kernel_session *bench);
/* Where a work would begin: the branch's text, or the unit's own. The copy is the caller's; names
 * of what it has go to `provides` (or NULL), with blanks between them. */
mgl_status mgl_kernel_session_text(const mgl_kernel_session *bench, mgl_text *out,
                                   mgl_text *provides, mgl_error *err);

/* What is open. */
typedef struct mgl_work_state {
    bool open;
    const mgl_transformation *transformation; /* NULL: a task */
    const char *instruction;                  /* of the task, or of the pass */
    mgl_kernel_region region;
    int pass, passes; /* of a transformation, from 1 */
    int calls;        /* so far */
} mgl_work_state;
mgl_work_state mgl_kernel_session_state(const mgl_kernel_session *bench);

/* MGL_USAGE: a work is open. */
mgl_status mgl_kernel_session_begin_transformation(mgl_kernel_session *bench,
                                                   const mgl_transformation *transformation,
                                                   mgl_error *err);
mgl_status mgl_kernel_session_begin_task(mgl_kernel_session *bench, mgl_kernel_region region,
                                         const char *instruction, mgl_error *err);
/* Closes the work that is open without a checkpoint. */
mgl_status mgl_kernel_session_drop(mgl_kernel_session *bench, mgl_error *err);

/* As text for a person or an agent, or as the body of a request. MGL_USAGE: nothing is open. */
mgl_status mgl_kernel_session_prompt(const mgl_kernel_session *bench, bool body, mgl_text *out,
                                     mgl_error *err);

/* What became of an answer, or of a run. */
typedef struct mgl_work_end {
    mgl_loop_verdict verdict;
    const mgl_kernel_verdict *gates; /* what the gates found, but for the outcome, until the next
                                      * answer; NULL: no text of it came to them */
    bool ended;                      /* the work is closed */
    char version[MGL_SHA256_HEX];    /* that was made; "": none */
    mgl_outcome stopped;             /* of a run: PROPOSER_..., or OK */
    int calls;                       /* of the work */
} mgl_work_end;
/* `bare`: the answer is the text itself, without a fence. MGL_BAD_INPUT: it is empty, which costs
 * no call. */
mgl_status mgl_kernel_session_submit(mgl_kernel_session *bench, const char *answer, size_t length,
                                     bool bare, mgl_work_end *out, mgl_error *err);
/* Asks until the work ends. */
mgl_status mgl_kernel_session_run(mgl_kernel_session *bench, mgl_model_client *model_client,
                                  const mgl_waiter *waiter, mgl_work_end *out, mgl_error *err);

#endif
