/* Implements find, check, run and JSON output of transformations and scripts. */
#include "autotune/kernels/sessions/transform.h"

#include "schedule/program.h"

#include <string.h>

mgl_status mgl_transform_find(const mgl_library *library, const char *name, const char *script,
                              mgl_transform *out, mgl_error *err)
{
    out->transformation = name ? mgl_library_find(library, name) : NULL;
    out->script = script ? mgl_library_find_script(library, script) : NULL;
    if (!name == !script)
        return mgl_fail(err, MGL_USAGE, NULL, "--name or --script is needed, and not both");
    if (out->transformation || out->script)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, name ? name : script,
                    "there is none of that name; `megalith kernel transform list` has them");
}

/* ---- checking -------------------------------------------------------------------------------- */

static mgl_status check_ops(const mgl_library *library, const mgl_transform_script *script,
                            mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < mgl_kernel_unit_count() && !status; i++) {
        const mgl_transformation *steps[MGL_MAX_NAMES];
        int count;
        status = mgl_transform_script_steps(
            library, script, mgl_op_get(mgl_kernel_unit_get(i)->op)->name, steps, &count, err);
    }
    return status;
}

mgl_status mgl_transform_check(const mgl_library *library, const char *text, size_t length,
                               const char *file, mgl_transform_checked *out, mgl_error *err)
{
    out->is_script = mgl_transform_is_script(text, length);
    if (!out->is_script)
        return mgl_transformation_parse(text, length, file, &out->transformation, err);
    mgl_status status = mgl_transform_script_parse(text, length, file, &out->script, err);
    return status ? status : check_ops(library, &out->script, err);
}

void mgl_transform_checked_clear(mgl_transform_checked *checked)
{
    mgl_transformation_clear(&checked->transformation);
    mgl_transform_script_clear(&checked->script);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Splits names at blanks, in place; the results point into the text. */
static void split_names(char *text, mgl_names *out)
{
    char *rest = NULL;
    for (char *at = strtok_r(text, " ", &rest); at && out->count < MGL_MAX_NAMES;
         at = strtok_r(NULL, " ", &rest))
        out->names[out->count++] = at;
}

static mgl_status run(mgl_kernel_store *w, const mgl_transform_options *o,
                      const mgl_transformation *const *steps, int count,
                      mgl_model_client *model_client, mgl_script_engine_result *out, mgl_error *err)
{
    const mgl_waiter waiter = mgl_waiter_real(o->abort);
    mgl_text text = {0}, provides = {0};
    mgl_names names = {0};
    mgl_status status = mgl_kernel_session_text(w->bench, &text, &provides, err);
    if (provides.bytes)
        split_names(provides.bytes, &names);
    const mgl_script_engine_options options = {.work = mgl_kernel_session_work(w->bench),
                                               .text = text.bytes,
                                               .length = text.length,
                                               .steps = steps,
                                               .step_count = count,
                                               .provides = &names,
                                               .versions = mgl_kernel_session_versions(w->bench),
                                               .carry = o->carry,
                                               .evaluations = o->evaluations,
                                               .on_step = o->on_step,
                                               .user = o->user};
    if (!status)
        status = mgl_script_engine_run(&options, model_client, &waiter, out, err);
    mgl_text_clear(&text);
    mgl_text_clear(&provides);
    return status;
}

mgl_status mgl_transform_apply(mgl_kernel_store *w, const mgl_transform_options *o,
                               mgl_model_client *model_client, mgl_script_engine_result *out,
                               mgl_error *err)
{
    mgl_transform found;
    const mgl_transformation *steps[MGL_MAX_NAMES];
    const mgl_work *work = mgl_kernel_session_work(w->bench);
    int count = 1;
    mgl_status status = mgl_transform_find(&w->library, o->name, o->script, &found, err);
    const mgl_transformation *t = status ? NULL : found.transformation;
    const mgl_transform_script *script = status ? NULL : found.script;
    if (!status && mgl_kernel_session_state(w->bench).open)
        status = mgl_fail(err, MGL_USAGE, w->unit->name,
                          "a task is open: `megalith kernel prompt %s --drop` gives it up",
                          w->unit->name);
    if (!status && script && strcmp(script->architecture, work->arch) != 0)
        status = mgl_fail(err, MGL_USAGE, "--arch", "the script is for %s", script->architecture);
    if (!status && t && !mgl_transformation_suits(t, work->op, work->arch))
        status = mgl_fail(err, MGL_USAGE, t->name, "it is not for %s on %s", work->op, work->arch);
    steps[0] = t;
    if (!status && script)
        status = mgl_transform_script_steps(&w->library, script, work->op, steps, &count, err);
    return status ? status : run(w, o, steps, count, model_client, out, err);
}

const char *mgl_transform_why(const mgl_step_report *step)
{
    if (step->missing)
        return step->missing;
    return step->verdict && step->verdict->outcome ? mgl_outcome_name(step->verdict->outcome) : "";
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_names(mgl_json_out *out, const char *key, const mgl_names *names)
{
    mgl_json_out_array(out, key);
    for (int i = 0; i < names->count; i++)
        mgl_json_out_string(out, NULL, names->names[i]);
    mgl_json_out_close_array(out);
}

static void put_transformation(const mgl_transformation *t, mgl_json_out *out)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "name", t->name);
    mgl_json_out_string(out, "summary", t->summary);
    put_names(out, "ops", &t->ops);
    put_names(out, "architectures", &t->architectures);
    put_names(out, "requires", &t->requires);
    put_names(out, "provides", &t->provides);
    mgl_json_out_int(out, "passes", t->pass_count);
    mgl_json_out_int(out, "calls", mgl_transformation_calls(t));
    mgl_json_out_bool(out, "own", t->own);
    mgl_json_out_close_object(out);
}

void mgl_transform_put_library(const mgl_library *library, mgl_json_out *out)
{
    mgl_json_out_array(out, "transformations");
    for (size_t i = 0; i < library->count; i++)
        put_transformation(&library->list[i], out);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "plans");
    for (size_t i = 0; i < library->script_count; i++) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", library->scripts[i].name);
        mgl_json_out_string(out, "architecture", library->scripts[i].architecture);
        put_names(out, "steps", &library->scripts[i].steps);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

void mgl_transform_put(const mgl_transform *found, mgl_json_out *out)
{
    if (found->transformation)
        mgl_json_out_value(out, "transformation", found->transformation->json.root);
    else
        mgl_json_out_value(out, "plan", found->script->json.root);
}

void mgl_transform_put_checked(const mgl_transform_checked *c, mgl_json_out *out)
{
    mgl_json_out_string(out, "kind", c->is_script ? "plan" : "transformation");
    mgl_json_out_string(out, "name", c->is_script ? c->script.name : c->transformation.name);
    if (c->is_script) {
        mgl_json_out_int(out, "steps", c->script.steps.count);
    } else {
        mgl_json_out_int(out, "passes", c->transformation.pass_count);
        mgl_json_out_int(out, "calls", mgl_transformation_calls(&c->transformation));
    }
}

void mgl_transform_put_step(const mgl_step_report *step, mgl_json_out *out)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "transformation", step->transformation->name);
    mgl_json_out_string(out, "end", mgl_step_end_name(step->end));
    mgl_json_out_int(out, "calls", step->calls);
    mgl_json_out_int(out, "judged", step->evaluated);
    mgl_json_out_int(out, "carried", step->carried);
    mgl_json_out_string(out, "why", mgl_transform_why(step));
    mgl_json_out_string(out, "checkpoint", step->version);
    mgl_json_out_close_object(out);
}

void mgl_transform_put_result(const mgl_script_engine_result *result, mgl_json_out *out)
{
    mgl_json_out_int(out, "calls", result->calls);
    mgl_json_out_string(out, "stopped", result->stopped ? mgl_outcome_name(result->stopped) : NULL);
}
