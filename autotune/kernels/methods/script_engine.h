/*
 * Script engine: runs a script, that is, a list of transformations, on a text. After each
 * successful step, the values of all tunables so far are searched. The best configurations are
 * carried to the next step (beam search), and a version is stored. After a failed step, the engine
 * continues with the text of the last version. Later steps that require what the failed step
 * provides are skipped. transform.c calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_SCRIPT_ENGINE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_SCRIPT_ENGINE_H

#include "autotune/kernels/methods/configurations.h"
#include "autotune/kernels/methods/pass_engine.h"
#include "autotune/kernels/versions/version.h"

typedef enum mgl_step_end {
    MGL_STEP_DONE,
    MGL_STEP_FAILED,  /* a region had no calls left, or no values of the tunables are good */
    MGL_STEP_LEFT_OUT /* a requirement is missing */
} mgl_step_end;
const char *mgl_step_end_name(mgl_step_end end);

/* One step, reported when it has ended. All pointers are borrowed. */
typedef struct mgl_step_report {
    const mgl_transformation *transformation;
    mgl_step_end end;
    int calls, evaluated,
        carried; /* model calls; configurations evaluated; configurations carried */
    const mgl_trial_verdict *verdict;
    const char *missing; /* the missing requirement, for MGL_STEP_LEFT_OUT */
    const char *version; /* id of the new version, for MGL_STEP_DONE */
} mgl_step_report;

typedef struct mgl_script_engine_options {
    const mgl_work *work;
    const char *text; /* (length) the initial text */
    size_t length;
    const mgl_transformation *const *steps; /* (step_count) */
    int step_count;
    const mgl_names *provides; /* what the initial text provides; NULL: nothing */
    mgl_versions *versions;
    int carry, evaluations; /* as in mgl_configurations_options */
    void (*on_step)(void *user, const mgl_step_report *step);
    void *user;
} mgl_script_engine_options;

typedef struct mgl_script_engine_result {
    int done, failed, left_out, calls;
    mgl_outcome stopped; /* MGL_OUTCOME_OK, or the PROPOSER_ outcome that stopped the run early */
} mgl_script_engine_result;

mgl_status mgl_script_engine_run(const mgl_script_engine_options *options,
                                 mgl_model_client *model_client, const mgl_waiter *waiter,
                                 mgl_script_engine_result *out, mgl_error *err);

#endif
