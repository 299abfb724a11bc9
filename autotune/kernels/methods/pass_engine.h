/*
 * The runner of a transformation: its inserts first, then pass after pass, and in a pass region
 * after region, one call each and its retries. Where a pass may leave a broken text, nothing is
 * judged but that one region changed; behind the other passes, the last one above all, the text is
 * judged by the work's judge, and the retries of the pass's last region mend what it finds.
 *
 * Like the feedback loop it is turned from outside, and run turns it to its end. What it remembers
 * can be written between two calls.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_PASS_ENGINE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_PASS_ENGINE_H

#include "autotune/kernels/methods/edit_span.h"

typedef enum mgl_pass_engine_state {
    MGL_PASS_ENGINE_RUNNING,
    MGL_PASS_ENGINE_DONE,  /* the text is good */
    MGL_PASS_ENGINE_FAILED /* the calls of a region are used up */
} mgl_pass_engine_state;

typedef struct mgl_pass_engine mgl_pass_engine;
/* `work` and `transformation` are lent; the text is copied. */
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

int mgl_pass_engine_calls(const mgl_pass_engine *engine); /* so far, of all regions */
mgl_place mgl_pass_engine_place(const mgl_pass_engine *engine);
/* The text so far: that behind the last region that ended well. */
const char *mgl_pass_engine_text(const mgl_pass_engine *engine, size_t *length);
/* Of the last call; NULL before the first. */
const mgl_loop_verdict *mgl_pass_engine_verdict(const mgl_pass_engine *engine);

void mgl_pass_engine_write(const mgl_pass_engine *engine, mgl_json_out *out, const char *key);
/* Of one that was just opened with the same transformation. */
mgl_status mgl_pass_engine_read(mgl_pass_engine *engine, const mgl_json *json, const cJSON *object,
                                mgl_error *err);

/* The text with a transformation's tunables declared and its pieces inserted, at the start of their
 * regions. */
mgl_status mgl_transformation_insert(const mgl_transformation *transformation, const char *text,
                                     size_t length, mgl_text *out, mgl_error *err);

#endif
