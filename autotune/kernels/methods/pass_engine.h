/*
 * Pass engine: runs one transformation on a text. The engine first applies the inserts, and then
 * runs the passes in order. A pass runs one edit span per region. Each edit span has one call plus
 * retries. A pass that may leave a broken text rejects an answer only for changes outside the
 * region. After any other pass, and always after the last pass, the evaluator evaluates the text.
 * If it rejects the text, the retries of the pass's last region repair the text.
 *
 * Like the feedback loop, the engine is a state machine with `body` and `take`; `run` executes it
 * to its end. Its state can be saved between two calls. The script engine and kernel sessions use
 * it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_PASS_ENGINE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_PASS_ENGINE_H

#include "autotune/kernels/methods/edit_span.h"

typedef enum mgl_pass_engine_state {
    MGL_PASS_ENGINE_RUNNING,
    MGL_PASS_ENGINE_DONE,  /* the text is good */
    MGL_PASS_ENGINE_FAILED /* a region has no calls left */
} mgl_pass_engine_state;

typedef struct mgl_pass_engine mgl_pass_engine;
/* `work` and `transformation` are borrowed; the text is copied. */
mgl_status mgl_pass_engine_open(const mgl_work *work, const mgl_transformation *transformation,
                                const char *text, size_t length, mgl_pass_engine **out,
                                mgl_error *err);
void mgl_pass_engine_close(mgl_pass_engine *engine); /* NULL is fine */

mgl_pass_engine_state mgl_pass_engine_state_of(const mgl_pass_engine *engine);
mgl_status mgl_pass_engine_body(const mgl_pass_engine *engine, mgl_text *out, mgl_error *err);
mgl_status mgl_pass_engine_prompt(const mgl_pass_engine *engine, mgl_text *out, mgl_error *err);
mgl_status mgl_pass_engine_take(mgl_pass_engine *engine, const char *request,
                                const mgl_reply *reply, mgl_error *err);
mgl_status mgl_pass_engine_run(mgl_pass_engine *engine, mgl_model_client *model_client,
                               const mgl_waiter *waiter, mgl_outcome *stopped, mgl_error *err);

int mgl_pass_engine_calls(const mgl_pass_engine *engine); /* calls so far, over all regions */
mgl_place mgl_pass_engine_place(const mgl_pass_engine *engine);
/* The text after the last region that succeeded. */
const char *mgl_pass_engine_text(const mgl_pass_engine *engine, size_t *length);
/* The verdict of the last call; NULL before the first call. */
const mgl_trial_verdict *mgl_pass_engine_verdict(const mgl_pass_engine *engine);

void mgl_pass_engine_write(const mgl_pass_engine *engine, mgl_json_out *out, const char *key);
/* Reads the state into an engine that was just opened with the same transformation. */
mgl_status mgl_pass_engine_read(mgl_pass_engine *engine, const mgl_json *json, const cJSON *object,
                                mgl_error *err);

/* The text with the tunables declared and the pieces inserted at the start of their regions. */
mgl_status mgl_transformation_insert(const mgl_transformation *transformation, const char *text,
                                     size_t length, mgl_text *out, mgl_error *err);

#endif
