/*
 * The course of a plan: its steps for an op, one transformation after the other. Behind a step that
 * ended well the values of all tunables so far are searched, the best carried on, and a checkpoint
 * is made. A step that fails is left out, and so is each later one that requires what it would have
 * provided; the text stays that of the last checkpoint.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_SCRIPT_ENGINE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_SCRIPT_ENGINE_H

#include "autotune/kernels/methods/configurations.h"
#include "autotune/kernels/methods/pass_engine.h"
#include "autotune/kernels/versions/version.h"

typedef enum mgl_step_end {
    MGL_STEP_DONE,
    MGL_STEP_FAILED, /* the calls of a region were used up, or no values of its tunables are good */
    MGL_STEP_LEFT_OUT /* what it requires is missing */
} mgl_step_end;
const char *mgl_step_end_name(mgl_step_end end);

/* One step, as it is told when it ended. Everything is lent. */
typedef struct mgl_step_report {
    const mgl_transformation *transformation;
    mgl_step_end end;
    int calls, judged, carried; /* of its configurations */
    const mgl_loop_verdict *verdict;
    const char *missing; /* of MGL_STEP_LEFT_OUT */
    const char *version; /* id, of MGL_STEP_DONE */
} mgl_step_report;

typedef struct mgl_script_engine_options {
    const mgl_work *work;
    const char *text; /* (length) to begin with */
    size_t length;
    const mgl_transformation *const *steps; /* (step_count) */
    int step_count;
    const mgl_names *provides; /* what the text has already; NULL: nothing */
    mgl_versions *versions;
    int carry, judgements; /* as in mgl_configurations_options */
    void (*on_step)(void *user, const mgl_step_report *step);
    void *user;
} mgl_script_engine_options;

typedef struct mgl_script_engine_result {
    int done, failed, left_out, calls;
    mgl_outcome stopped; /* MGL_OUTCOME_OK, or the PROPOSER_ outcome for which it ended early */
} mgl_script_engine_result;

mgl_status mgl_script_engine_run(const mgl_script_engine_options *options,
                                 mgl_model_client *model_client, const mgl_waiter *waiter,
                                 mgl_script_engine_result *out, mgl_error *err);

#endif
