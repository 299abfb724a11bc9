/*
 * The runner of a transformation: its inserts first, then pass after pass, and in a pass region
 * after region, one call each and its retries. Where a pass may leave a broken text, nothing is
 * judged but that one region changed; behind the other passes, the last one above all, the text is
 * judged by the work's judge, and the retries of the pass's last region mend what it finds.
 *
 * Like the feedback loop it is turned from outside, and run turns it to its end. What it remembers
 * can be written between two calls.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_PEAK_H
#define MGL_AUTOTUNE_KERNELS_METHODS_PEAK_H

#include "autotune/kernels/methods/site.h"

typedef enum mgl_peak_state {
    MGL_PEAK_RUNNING,
    MGL_PEAK_DONE,  /* the text is good */
    MGL_PEAK_FAILED /* the calls of a region are used up */
} mgl_peak_state;

typedef struct mgl_peak mgl_peak;
/* `work` and `transformation` are lent; the text is copied. */
mgl_status mgl_peak_open(const mgl_work *work, const mgl_transformation *transformation,
                         const char *text, size_t length, mgl_peak **out, mgl_error *err);
void mgl_peak_close(mgl_peak *peak); /* NULL is fine */

mgl_peak_state mgl_peak_state_of(const mgl_peak *peak);
mgl_status mgl_peak_body(const mgl_peak *peak, mgl_text *out, mgl_error *err);
mgl_status mgl_peak_prompt(const mgl_peak *peak, mgl_text *out, mgl_error *err);
mgl_status mgl_peak_take(mgl_peak *peak, const char *request, const mgl_reply *reply,
                         mgl_error *err);
mgl_status mgl_peak_run(mgl_peak *peak, mgl_asker *asker, const mgl_waiter *waiter,
                        mgl_outcome *stopped, mgl_error *err);

int mgl_peak_calls(const mgl_peak *peak); /* so far, of all regions */
mgl_place mgl_peak_place(const mgl_peak *peak);
/* The text so far: that behind the last region that ended well. */
const char *mgl_peak_text(const mgl_peak *peak, size_t *length);
/* Of the last call; NULL before the first. */
const mgl_loop_verdict *mgl_peak_verdict(const mgl_peak *peak);

void mgl_peak_write(const mgl_peak *peak, mgl_json_out *out, const char *key);
/* Of one that was just opened with the same transformation. */
mgl_status mgl_peak_read(mgl_peak *peak, const mgl_json *json, const cJSON *object, mgl_error *err);

/* The text with a transformation's tunables declared and its pieces inserted, at the start of their
 * regions. */
mgl_status mgl_transformation_insert(const mgl_transformation *transformation, const char *text,
                                     size_t length, mgl_text *out, mgl_error *err);

#endif
