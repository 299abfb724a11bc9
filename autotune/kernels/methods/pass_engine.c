/* Implements the pass engine: inserts, edit spans region by region, and the saved state. */
#include "autotune/kernels/methods/pass_engine.h"

#include "base/json_fields.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

struct mgl_pass_engine {
    mgl_work work;
    const mgl_transformation *transformation;
    mgl_text text;
    int pass, region;    /* current position */
    int calls;           /* calls of the edit spans that have ended */
    mgl_edit_span *span; /* NULL: done */
    mgl_trial_verdict verdict;
    bool any, failed;
};

/* ---- without a model ------------------------------------------------------------------------- */

/* A region's new body: tunable declarations, inserted pieces, and the old body. */
static void put_body(const mgl_transformation *t, mgl_kernel_region region, const char *old,
                     size_t length, mgl_text *out)
{
    for (int i = 0; i < t->tunable_count && region == MGL_KERNEL_REGION_LAUNCH; i++) {
        mgl_text_format(out, "/* tunable %s:", t->tunables[i].name);
        for (int v = 0; v < t->tunables[i].count; v++)
            mgl_text_format(out, " %" PRId64, t->tunables[i].values[v]);
        mgl_text_put(out, " */\n");
    }
    for (int i = 0; i < t->insert_count; i++)
        if (t->inserts[i].region == region) {
            mgl_text_put(out, t->inserts[i].text);
            mgl_text_put(out, "\n");
        }
    mgl_text_append(out, old, length);
}

static mgl_status insert_in(const mgl_transformation *t, mgl_kernel_region region, mgl_text *text,
                            mgl_error *err)
{
    mgl_kernel_regions regions;
    mgl_text body = {0}, made = {0};
    mgl_status status = mgl_kernel_regions_find(text->bytes, text->length, &regions, err);
    if (status)
        return status;
    size_t first = regions.of[region].first, end = regions.of[region].end;
    put_body(t, region, text->bytes + first, end - first, &body);
    if (body.length > end - first) /* equal lengths: there is nothing to insert */
        status = mgl_kernel_region_replace(text->bytes, text->length, region, body.bytes,
                                           body.length, &made, err);
    bool changed = !status && made.length > 0;
    if (!status && (body.failed || made.failed))
        status = mgl_fail_memory(err, text->length);
    mgl_text_clear(&body);
    if (changed && !status) {
        mgl_text_clear(text);
        *text = made;
    } else {
        mgl_text_clear(&made);
    }
    return status;
}

mgl_status mgl_transformation_insert(const mgl_transformation *t, const char *text, size_t length,
                                     mgl_text *out, mgl_error *err)
{
    mgl_text made = {0};
    mgl_text_append(&made, text, length);
    mgl_status status = made.failed ? mgl_fail_memory(err, length) : MGL_OK;
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT && !status; i++)
        status = insert_in(t, (mgl_kernel_region)i, &made, err);
    if (status)
        mgl_text_clear(&made);
    else
        *out = made;
    return status;
}

/* ---- regions in order ------------------------------------------------------------------------ */

static mgl_status open_edit_span(mgl_pass_engine *p, mgl_error *err)
{
    const mgl_pass *pass = &p->transformation->passes[p->pass];
    bool last = p->region == pass->region_count - 1;
    const mgl_edit_span_options options = {.work = &p->work,
                                           .text = p->text.bytes,
                                           .length = p->text.length,
                                           .instruction = pass->instruction,
                                           .region = pass->regions[p->region],
                                           .place = {p->transformation, p->pass, p->region},
                                           .calls = 1 + pass->retries,
                                           .broken = pass->may_break || !last};
    return mgl_edit_span_open(&options, &p->span, err);
}

/* Continues after a region has ended. */
static mgl_status go_on(mgl_pass_engine *p, mgl_error *err)
{
    size_t length;
    const char *text = mgl_edit_span_text(p->span, &length);
    p->failed = !text;
    if (!text)
        return MGL_OK;
    p->text.length = 0;
    mgl_text_append(&p->text, text, length);
    if (p->text.failed)
        return mgl_fail_memory(err, length);
    p->calls += mgl_feedback_count(mgl_edit_span_loop(p->span));
    mgl_edit_span_close(p->span);
    p->span = NULL;
    if (++p->region == p->transformation->passes[p->pass].region_count) {
        p->region = 0;
        p->pass++;
    }
    return p->pass < p->transformation->pass_count ? open_edit_span(p, err) : MGL_OK;
}

static mgl_status look(mgl_pass_engine *p, mgl_error *err)
{
    mgl_feedback *loop = mgl_edit_span_loop(p->span);
    const mgl_trial_verdict *verdict = mgl_feedback_verdict(loop);
    if (verdict) {
        p->verdict = *verdict;
        p->any = true;
    }
    return mgl_feedback_ended(loop) ? go_on(p, err) : MGL_OK;
}

mgl_status mgl_pass_engine_open(const mgl_work *work, const mgl_transformation *transformation,
                                const char *text, size_t length, mgl_pass_engine **out,
                                mgl_error *err)
{
    mgl_pass_engine *p = mgl_alloc_zero(1, sizeof *p);
    *out = NULL;
    if (!p)
        return mgl_fail_memory(err, sizeof *p);
    p->work = *work;
    p->transformation = transformation;
    mgl_status status = mgl_transformation_insert(transformation, text, length, &p->text, err);
    if (!status)
        status = open_edit_span(p, err);
    if (status)
        mgl_pass_engine_close(p);
    else
        *out = p;
    return status;
}

void mgl_pass_engine_close(mgl_pass_engine *p)
{
    if (!p)
        return;
    mgl_edit_span_close(p->span);
    mgl_text_clear(&p->text);
    mgl_free(p);
}

mgl_pass_engine_state mgl_pass_engine_state_of(const mgl_pass_engine *p)
{
    if (p->failed)
        return MGL_PASS_ENGINE_FAILED;
    return p->span ? MGL_PASS_ENGINE_RUNNING : MGL_PASS_ENGINE_DONE;
}

static mgl_status check_running(const mgl_pass_engine *p, mgl_error *err)
{
    return mgl_pass_engine_state_of(p) == MGL_PASS_ENGINE_RUNNING
               ? MGL_OK
               : mgl_fail(err, MGL_USAGE, p->transformation->name, "the transformation has ended");
}

mgl_status mgl_pass_engine_body(const mgl_pass_engine *p, mgl_text *out, mgl_error *err)
{
    mgl_status status = check_running(p, err);
    return status ? status : mgl_feedback_body(mgl_edit_span_loop(p->span), out, err);
}

mgl_status mgl_pass_engine_prompt(const mgl_pass_engine *p, mgl_text *out, mgl_error *err)
{
    mgl_status status = check_running(p, err);
    return status ? status : mgl_feedback_prompt(mgl_edit_span_loop(p->span), out, err);
}

mgl_status mgl_pass_engine_take(mgl_pass_engine *p, const char *request, const mgl_reply *reply,
                                mgl_error *err)
{
    mgl_status status = check_running(p, err);
    if (!status)
        status = mgl_feedback_take(mgl_edit_span_loop(p->span), request, reply, err);
    return status ? status : look(p, err);
}

mgl_status mgl_pass_engine_run(mgl_pass_engine *p, mgl_model_client *model_client,
                               const mgl_waiter *waiter, mgl_outcome *stopped, mgl_error *err)
{
    mgl_status status = MGL_OK;
    *stopped = MGL_OUTCOME_OK;
    while (!status && !*stopped && mgl_pass_engine_state_of(p) == MGL_PASS_ENGINE_RUNNING) {
        status = mgl_feedback_run(mgl_edit_span_loop(p->span), model_client, waiter, stopped, err);
        if (!status)
            status = look(p, err);
    }
    return status;
}

int mgl_pass_engine_calls(const mgl_pass_engine *p)
{
    return p->calls + (p->span ? mgl_feedback_count(mgl_edit_span_loop(p->span)) : 0);
}

mgl_place mgl_pass_engine_place(const mgl_pass_engine *p)
{
    return (mgl_place){p->transformation, p->pass, p->region};
}

const char *mgl_pass_engine_text(const mgl_pass_engine *p, size_t *length)
{
    *length = p->text.length;
    return p->text.bytes;
}

const mgl_trial_verdict *mgl_pass_engine_verdict(const mgl_pass_engine *p)
{
    return p->any ? &p->verdict : NULL;
}

/* ---- on disk --------------------------------------------------------------------------------- */

void mgl_pass_engine_write(const mgl_pass_engine *p, mgl_json_out *out, const char *key)
{
    mgl_json_out_object(out, key);
    mgl_json_out_string(out, "transformation", p->transformation->name);
    mgl_json_out_int(out, "pass", p->pass);
    mgl_json_out_int(out, "region", p->region);
    mgl_json_out_int(out, "calls", p->calls);
    mgl_json_out_bool(out, "failed", p->failed);
    mgl_json_out_text(out, "text", p->text.bytes, p->text.length);
    if (p->span)
        mgl_feedback_write(mgl_edit_span_loop(p->span), out, "loop");
    mgl_json_out_close_object(out);
}

/* Checks that the transformation has the saved pass and region. */
static mgl_status check_place(const mgl_pass_engine *p, int64_t pass, int64_t region,
                              const mgl_json *json, mgl_error *err)
{
    const mgl_transformation *t = p->transformation;
    bool fits = pass < t->pass_count ? region < t->passes[pass].region_count
                                     : pass == t->pass_count && region == 0;
    return fits ? MGL_OK
                : mgl_fail(err, MGL_BAD_INPUT, json->file,
                           "%s has no region %lld of a pass %lld: begin the work again", t->name,
                           (long long)region, (long long)pass);
}

mgl_status mgl_pass_engine_read(mgl_pass_engine *p, const mgl_json *json, const cJSON *object,
                                mgl_error *err)
{
    const char *name = NULL, *text = NULL;
    const cJSON *loop = NULL;
    int64_t pass = 0, region = 0, calls = 0;
    const mgl_json_field fields[] = {MGL_JSON_STRING("transformation", &name),
                                     MGL_JSON_INT("pass", 0, MGL_MAX_PASSES, &pass),
                                     MGL_JSON_INT("region", 0, MGL_KERNEL_REGION_COUNT, &region),
                                     MGL_JSON_INT("calls", 0, 1 << 20, &calls),
                                     MGL_JSON_BOOL("failed", &p->failed),
                                     MGL_JSON_STRING("text", &text)};
    mgl_status status = MGL_JSON_GET(json, object, fields, err);
    if (!status && strcmp(name, p->transformation->name) != 0)
        status =
            mgl_fail(err, MGL_BAD_INPUT, json->file, "it is of the transformation %.80s", name);
    if (!status)
        status = check_place(p, pass, region, json, err);
    if (status)
        return status;
    p->pass = (int)pass;
    p->region = (int)region;
    p->calls = (int)calls;
    mgl_edit_span_close(p->span);
    p->span = NULL;
    p->text.length = 0;
    mgl_text_put(&p->text, text);
    if (p->text.failed)
        return mgl_fail_memory(err, strlen(text));
    if (p->pass == p->transformation->pass_count)
        return MGL_OK;
    status = open_edit_span(p, err);
    if (!status)
        status = mgl_json_get_object(json, object, "loop", true, &loop, err);
    return status ? status : mgl_feedback_read(mgl_edit_span_loop(p->span), json, loop, err);
}
