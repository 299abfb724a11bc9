/* Implements the script engine: pass engine, tunable search and version of each step. */
#include "autotune/kernels/methods/script_engine.h"

#include "base/memory.h"

#include <string.h>

typedef struct script_run {
    const mgl_script_engine_options *options;
    mgl_model_client *model_client;
    const mgl_waiter *waiter;
    mgl_script_engine_result *out;
    mgl_text text;
    mgl_names provides;
    mgl_tunable tunables[MGL_MAX_TUNABLES]; /* (tunable_count) of all steps so far */
    int tunable_count;
    mgl_validity valid[MGL_MAX_NAMES]; /* (valid_count) validity expressions of all steps so far */
    int valid_count;
    mgl_configurations carried; /* best configurations of the previous step */
} script_run;

const char *mgl_step_end_name(mgl_step_end end)
{
    static const char *const names[] = {"done", "failed", "left out"};
    return names[end];
}

/* ---- after a transformation ------------------------------------------------------------------ */

/* A text has at most MGL_MAX_TUNABLES tunables. Tunables past the limit keep their first values. */
static int add_tunables(script_run *c, const mgl_transformation *t)
{
    int count = c->tunable_count;
    if (t->has_valid && count + t->tunable_count <= MGL_MAX_TUNABLES)
        c->valid[c->valid_count++] = (mgl_validity){&t->valid, count};
    for (int i = 0; i < t->tunable_count && count < MGL_MAX_TUNABLES; i++)
        c->tunables[count++] = t->tunables[i];
    return count;
}

static mgl_status search(script_run *c, const mgl_pass_engine *engine, int count,
                         mgl_configurations *out, mgl_error *err)
{
    mgl_configurations_options options = {.tunables = c->tunables,
                                          .tunable_count = count,
                                          .valid = c->valid,
                                          .valid_count = c->valid_count,
                                          .start = c->carried.list,
                                          .start_count = c->carried.count,
                                          .start_axes = c->tunable_count,
                                          .evaluator = c->options->work->evaluator,
                                          .most = c->options->evaluations,
                                          .carry = c->options->carry,
                                          .seed = c->options->work->seed};
    options.text = mgl_pass_engine_text(engine, &options.length);
    return mgl_configurations_find(&options, out, err);
}

static void join_names(const mgl_names *names, mgl_text *out)
{
    for (int i = 0; i < names->count; i++)
        mgl_text_format(out, "%s%s", i ? " " : "", names->names[i]);
}

static mgl_status keep(script_run *c, const mgl_transformation *t, const mgl_configuration *best,
                       mgl_version_record *r, mgl_error *err)
{
    mgl_text provides = {0};
    join_names(&c->provides, &provides);
    *r = (mgl_version_record){.unit = c->options->work->unit,
                              .arch = c->options->work->arch,
                              .transformation = t->name,
                              .note = t->summary,
                              .provides = provides.bytes,
                              .text = c->text.bytes,
                              .verdict = best->verdict,
                              .value_count = c->tunable_count};
    for (int i = 0; i < c->tunable_count; i++)
        r->values[i] = (mgl_kernel_value){c->tunables[i].name, best->point.values[i]};
    mgl_status status =
        provides.failed ? mgl_fail_memory(err, 1) : mgl_versions_add(c->options->versions, r, err);
    mgl_text_clear(&provides);
    return status;
}

static mgl_status take_text(script_run *c, const mgl_pass_engine *engine, mgl_error *err)
{
    size_t length;
    const char *text = mgl_pass_engine_text(engine, &length);
    c->text.length = 0;
    mgl_text_append(&c->text, text, length);
    return c->text.failed ? mgl_fail_memory(err, length) : MGL_OK;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static mgl_status end_step(script_run *c, const mgl_pass_engine *engine, mgl_step_report *report,
                           mgl_error *err)
{
    const mgl_transformation *t = report->transformation;
    mgl_configurations found = {0};
    mgl_version_record record = {0};
    const int rules = c->valid_count, count = add_tunables(c, t);
    mgl_status status = search(c, engine, count, &found, err);
    report->end = found.count ? MGL_STEP_DONE : MGL_STEP_FAILED;
    report->evaluated = found.evaluated;
    report->carried = found.count;
    if (!status && found.count) {
        c->tunable_count = count;
        mgl_names_append(&c->provides, &t->provides);
        status = take_text(c, engine, err);
        if (!status)
            status = keep(c, t, &found.list[0], &record, err);
        report->version = record.id;
        report->verdict = &found.list[0].verdict;
    } else
        c->valid_count = rules;
    if (!status && c->options->on_step)
        c->options->on_step(c->options->user, report);
    if (report->end == MGL_STEP_DONE) {
        mgl_configurations_clear(&c->carried);
        c->carried = found;
    } else {
        mgl_configurations_clear(&found);
    }
    return status;
}

static mgl_status run_step(script_run *c, const mgl_transformation *t, mgl_error *err)
{
    mgl_step_report report = {.transformation = t, .end = MGL_STEP_FAILED};
    mgl_pass_engine *engine = NULL;
    mgl_status status =
        mgl_pass_engine_open(c->options->work, t, c->text.bytes, c->text.length, &engine, err);
    if (!status)
        status = mgl_pass_engine_run(engine, c->model_client, c->waiter, &c->out->stopped, err);
    if (status) {
        mgl_pass_engine_close(engine);
        return status;
    }
    report.calls = mgl_pass_engine_calls(engine);
    report.verdict = mgl_pass_engine_verdict(engine);
    c->out->calls += report.calls;
    if (mgl_pass_engine_state_of(engine) == MGL_PASS_ENGINE_DONE)
        status = end_step(c, engine, &report, err);
    else if (c->options->on_step)
        c->options->on_step(c->options->user, &report);
    c->out->done += report.end == MGL_STEP_DONE;
    c->out->failed += report.end == MGL_STEP_FAILED;
    mgl_pass_engine_close(engine);
    return status;
}

static void leave_out(script_run *c, const mgl_transformation *t, const char *missing)
{
    const mgl_step_report report = {
        .transformation = t, .end = MGL_STEP_LEFT_OUT, .missing = missing};
    c->out->left_out++;
    if (c->options->on_step)
        c->options->on_step(c->options->user, &report);
}

mgl_status mgl_script_engine_run(const mgl_script_engine_options *options,
                                 mgl_model_client *model_client, const mgl_waiter *waiter,
                                 mgl_script_engine_result *out, mgl_error *err)
{
    script_run c = {.options = options, .model_client = model_client, .waiter = waiter, .out = out};
    *out = (mgl_script_engine_result){0};
    if (options->provides)
        c.provides = *options->provides;
    mgl_text_append(&c.text, options->text, options->length);
    mgl_status status = c.text.failed ? mgl_fail_memory(err, options->length) : MGL_OK;
    for (int i = 0; i < options->step_count && !status && !out->stopped; i++) {
        const char *missing = mgl_transformation_missing(options->steps[i], &c.provides);
        if (missing)
            leave_out(&c, options->steps[i], missing);
        else
            status = run_step(&c, options->steps[i], err);
    }
    mgl_text_clear(&c.text);
    mgl_configurations_clear(&c.carried);
    return status;
}
