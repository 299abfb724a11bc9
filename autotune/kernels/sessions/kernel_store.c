/* Implements the kernel store: folders, begin options, branches, and JSON output. */
#include "autotune/kernels/sessions/kernel_store.h"

#include "autotune/kernels/gates/kernel_show.h"
#include "autotune/kernels/sessions/background.h"
#include "autotune/store/keeper.h"
#include "base/data_folder.h"

/* ---- opening --------------------------------------------------------------------------------- */

mgl_status mgl_kernel_store_folder(const char *given, mgl_text *out, mgl_error *err)
{
    if (given)
        mgl_text_put(out, given);
    else if (!mgl_data_folder("kernels", out))
        return mgl_fail(
            err, MGL_USAGE, "--folder",
            "neither XDG_DATA_HOME nor HOME names the folder of kernel sessions: pass it");
    return out->failed ? mgl_fail_memory(err, 1) : MGL_OK;
}

mgl_status mgl_kernel_store_file(const char *given, const char *folder, const char *name,
                                 bool write, mgl_text *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (given)
        mgl_text_put(out, given);
    else
        status = mgl_kernel_store_folder(folder, out, err);
    if (!status && !given && write)
        status = mgl_folder_make(out->bytes, 0777, err);
    if (!given)
        mgl_text_format(out, "/%s", name);
    return !status && out->failed ? mgl_fail_memory(err, 1) : status;
}

/* A log that the caller names must exist, under its name or its old name. */
static mgl_status check_log(const char *given, mgl_error *err)
{
    char found[PATH_MAX];
    bool stands = true;
    mgl_status status = given ? mgl_keeper_locate(given, found, err) : MGL_OK;
    if (!status && given)
        status = mgl_file_stands(found, &stands, err);
    if (!status && !stands)
        status = mgl_fail(err, MGL_BAD_INPUT, given,
                          "does not exist; give an experiment log that `kernel record` or `kernel "
                          "loop` wrote");
    return status;
}

mgl_status mgl_kernel_store_experiment_log(const char *given, const char *folder,
                                           mgl_experiment_log *out, mgl_error *err)
{
    mgl_text path = {0};
    mgl_status status = check_log(given, err);
    if (!status)
        status = mgl_kernel_store_file(given, folder, MGL_BACKGROUND_LOG, false, &path, err);
    if (!status)
        status = mgl_experiment_log_read(path.bytes, out, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_kernel_store_record(const char *given, const char *folder,
                                   const mgl_experiment_log_row *row, size_t *number,
                                   mgl_error *err)
{
    mgl_text path = {0};
    mgl_status status = mgl_kernel_store_file(given, folder, MGL_BACKGROUND_LOG, true, &path, err);
    if (!status)
        status = mgl_experiment_log_record(path.bytes, row, number, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_kernel_store_library(const char *folder, mgl_library *out, mgl_error *err)
{
    mgl_text path = {0};
    bool has = folder || mgl_data_folder("transformations", &path);
    mgl_status status = mgl_library_open(folder ? folder : has ? path.bytes : NULL, out, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_kernel_store_open(const char *unit, const mgl_kernel_store_options *o,
                                 mgl_kernel_store *out, mgl_error *err)
{
    const mgl_kernel_device_options device = {.device = o->device,
                                              .no_sandbox = o->no_sandbox,
                                              .depth = MGL_TRIAL_PAIRED_BENCH,
                                              .abort = o->abort};
    mgl_text folder = {0};
    mgl_status status = mgl_kernel_find(unit, &out->unit, err);
    if (!status)
        status = mgl_kernel_store_folder(o->folder, &folder, err);
    if (!status)
        status = mgl_kernel_store_library(o->transformations, &out->library, err);
    if (!status)
        status = mgl_kernel_device_open(&device, &out->device, err);
    if (!status) {
        const mgl_kernel_session_options options = {
            .folder = folder.bytes,
            .unit = out->unit,
            .library = &out->library,
            .arch = o->arch,
            .model = o->model,
            .no_compile = o->no_compile,
            .reads = o->reads,
            .device = out->device.given ? &out->device.options : NULL,
            .abort = o->abort};
        status = mgl_kernel_session_open(&options, &out->bench, err);
    }
    mgl_text_clear(&folder);
    return status;
}

void mgl_kernel_store_close(mgl_kernel_store *w)
{
    mgl_kernel_session_close(w->bench);
    mgl_library_clear(&w->library);
    mgl_kernel_device_clear(&w->device);
}

/* ---- works ----------------------------------------------------------------------------------- */

/* The named transformation, if the text provides what it requires; NULL: no name is given. */
static mgl_status find_ready(const mgl_kernel_store_begin_options *o, const mgl_kernel_store *w,
                             const mgl_transformation **out, mgl_error *err)
{
    mgl_text text = {0}, provides = {0};
    *out = o->transformation ? mgl_library_find(&w->library, o->transformation) : NULL;
    if (!o->transformation)
        return MGL_OK;
    if (!*out)
        return mgl_fail(err, MGL_USAGE, o->transformation,
                        "is no transformation; `megalith kernel transform list` has them");
    const mgl_work *work = mgl_kernel_session_work(w->bench);
    mgl_status status = mgl_kernel_session_text(w->bench, &text, &provides, err);
    if (!status && provides.failed)
        status = mgl_fail_memory(err, 1);
    if (!status && mgl_transformation_suits(*out, work->op, work->arch))
        status = mgl_library_check_ready(&w->library, *out, work->op,
                                         provides.bytes ? provides.bytes : "", err);
    mgl_text_clear(&text);
    mgl_text_clear(&provides);
    return status;
}

static mgl_status begin_task(const mgl_kernel_store_begin_options *o, mgl_kernel_store *w,
                             mgl_error *err)
{
    mgl_kernel_region region = MGL_KERNEL_REGION_DEVICE;
    mgl_status status = o->region ? mgl_kernel_find_region(o->region, &region, err) : MGL_OK;
    return status ? status : mgl_kernel_session_begin_task(w->bench, region, o->task, err);
}

mgl_status mgl_kernel_store_begin(mgl_kernel_store *w, const mgl_kernel_store_begin_options *o,
                                  mgl_error *err)
{
    const mgl_transformation *t = NULL;
    if (o->transformation && o->task)
        return mgl_fail(err, MGL_USAGE, "--task", "give a transformation or a task, not both");
    if (o->region && !o->task)
        return mgl_fail(err, MGL_USAGE, "--region", "needs --task");
    if (o->task && !o->task[strspn(o->task, " \t\r\n")])
        return mgl_fail(err, MGL_USAGE, "--task", "the task is empty; describe what to do");
    mgl_status status = find_ready(o, w, &t, err);
    if (!status && o->drop && mgl_kernel_session_state(w->bench).open)
        status = mgl_kernel_session_drop(w->bench, err);
    if (!status && t)
        status = mgl_kernel_session_begin_transformation(w->bench, t, err);
    else if (!status && o->task)
        status = begin_task(o, w, err);
    return status;
}

/* ---- versions -------------------------------------------------------------------------------- */

mgl_status mgl_kernel_store_diff(const mgl_kernel_store *w, const char *from, const char *to,
                                 mgl_text *out, mgl_error *err)
{
    const mgl_versions *c = mgl_kernel_session_versions(w->bench);
    mgl_version_record before = {0}, after = {0};
    mgl_status status = mgl_versions_get(c, to, &after, err);
    if (!status)
        status = mgl_versions_get(c, from ? from : mgl_version_original, &before, err);
    if (!status)
        status = mgl_text_diff(before.text, after.text, out, err);
    mgl_version_clear(&before);
    mgl_version_clear(&after);
    return status;
}

mgl_status mgl_kernel_store_make_branch(mgl_kernel_store *w, const char *name, const char *at,
                                        mgl_error *err)
{
    if (at && !name)
        return mgl_fail(err, MGL_USAGE, "--at", "needs --name, the name of the new branch");
    if (!name)
        return MGL_OK;
    return mgl_versions_make_branch(mgl_kernel_session_versions(w->bench), name, at, err);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void mgl_kernel_store_put_state(const mgl_kernel_store *w, mgl_json_out *out)
{
    mgl_work_state s = mgl_kernel_session_state(w->bench);
    mgl_json_out_string(out, "unit", w->unit->name);
    mgl_json_out_string(out, "arch", mgl_kernel_session_work(w->bench)->arch);
    mgl_json_out_string(out, "branch", mgl_versions_branch(mgl_kernel_session_versions(w->bench)));
    mgl_json_out_bool(out, "open", s.open);
    if (!s.open)
        return;
    mgl_json_out_string(out, "transformation", s.transformation ? s.transformation->name : NULL);
    if (s.transformation) {
        mgl_json_out_int(out, "pass", s.pass);
        mgl_json_out_int(out, "passes", s.passes);
    }
    mgl_json_out_string(out, "region", mgl_kernel_region_name(s.region));
    mgl_json_out_string(out, "instruction", s.instruction);
    mgl_json_out_int(out, "calls", s.calls);
}

mgl_status mgl_kernel_store_put_prompt(const mgl_kernel_store *w, bool body, mgl_json_out *out,
                                       mgl_error *err)
{
    mgl_text text = {0};
    mgl_status status = mgl_kernel_session_prompt(w->bench, body, &text, err);
    if (!status) {
        mgl_kernel_store_put_state(w, out);
        mgl_json_out_string(out, "prompt", text.bytes);
    }
    mgl_text_clear(&text);
    return status;
}

/* Writes the transformations whose requirements the text meets. */
static void put_ready(const mgl_kernel_store *w, const char *provides, mgl_json_out *out)
{
    const mgl_work *work = mgl_kernel_session_work(w->bench);
    mgl_json_out_array(out, "transformations");
    for (size_t i = 0; i < w->library.count; i++) {
        const mgl_transformation *t = &w->library.list[i];
        if (!mgl_transformation_suits(t, work->op, work->arch) ||
            !mgl_transformation_is_ready(t, provides))
            continue;
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", t->name);
        mgl_json_out_string(out, "summary", t->summary);
        mgl_json_out_int(out, "calls", mgl_transformation_calls(t));
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

mgl_status mgl_kernel_store_put_next(const mgl_kernel_store *w, mgl_json_out *out, mgl_error *err)
{
    mgl_text prompt = {0}, text = {0}, provides = {0};
    mgl_work_state state = mgl_kernel_session_state(w->bench);
    mgl_status status = mgl_kernel_session_text(w->bench, &text, &provides, err);
    if (!status && state.open)
        status = mgl_kernel_session_prompt(w->bench, false, &prompt, err);
    if (!status) {
        mgl_kernel_store_put_state(w, out);
        mgl_json_out_string(out, "prompt", prompt.bytes);
        mgl_json_out_string(out, "provides", provides.bytes ? provides.bytes : "");
        put_ready(w, provides.bytes ? provides.bytes : "", out);
    }
    mgl_text_clear(&prompt);
    mgl_text_clear(&text);
    mgl_text_clear(&provides);
    return status;
}

void mgl_kernel_store_put_end(const mgl_kernel_store *w, const mgl_work_end *end, mgl_json_out *out)
{
    mgl_json_out_string(out, "unit", w->unit->name);
    mgl_kernel_put_outcome(out, &end->verdict);
    if (end->gates)
        mgl_kernel_put_gates(out, end->gates);
    mgl_json_out_int(out, "calls", end->calls);
    mgl_json_out_bool(out, "ended", end->ended);
    mgl_json_out_string(out, "stopped", end->stopped ? mgl_outcome_name(end->stopped) : NULL);
    mgl_json_out_string(out, "checkpoint", end->version[0] ? end->version : NULL);
}

void mgl_kernel_store_put_version(const mgl_version_record *r, mgl_json_out *out)
{
    mgl_json_out_string(out, "id", r->id);
    mgl_json_out_array(out, "parents");
    for (int i = 0; i < r->parent_count; i++)
        mgl_json_out_string(out, NULL, r->parents[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_string(out, "unit", r->unit);
    mgl_json_out_string(out, "arch", r->arch[0] ? r->arch : NULL);
    mgl_json_out_string(out, "transformation", r->transformation[0] ? r->transformation : NULL);
    mgl_json_out_string(out, "note", r->note);
    mgl_json_out_string(out, "provides", r->provides);
    mgl_json_out_string(out, "outcome",
                        mgl_version_is_original(r) ? NULL : mgl_outcome_name(r->verdict.outcome));
    mgl_json_out_object(out, "values");
    for (int i = 0; i < r->value_count; i++)
        mgl_json_out_int(out, r->values[i].name, r->values[i].value);
    mgl_json_out_close_object(out);
}

void mgl_kernel_store_put_record(const mgl_version_record *r, mgl_json_out *out)
{
    mgl_kernel_store_put_version(r, out);
    mgl_json_out_string(out, "text", r->text);
}

mgl_status mgl_kernel_store_put_branches(const mgl_kernel_store *w, mgl_json_out *out,
                                         mgl_error *err)
{
    const mgl_versions *c = mgl_kernel_session_versions(w->bench);
    mgl_file_list names = {0};
    mgl_status status = mgl_versions_branches(c, &names, err);
    if (!status) {
        mgl_json_out_string(out, "unit", w->unit->name);
        mgl_json_out_string(out, "branch", mgl_versions_branch(c));
        mgl_json_out_array(out, "branches");
        for (size_t i = 0; i < names.count; i++)
            mgl_json_out_string(out, NULL, names.names[i]);
        mgl_json_out_close_array(out);
    }
    mgl_file_list_clear(&names);
    return status;
}

static mgl_status put_one(void *user, const mgl_version_record *r, mgl_error *err)
{
    mgl_json_out *out = user;
    (void)err;
    mgl_json_out_object(out, NULL);
    mgl_kernel_store_put_version(r, out);
    mgl_json_out_close_object(out);
    return MGL_OK;
}

mgl_status mgl_kernel_store_put_log(const mgl_kernel_store *w, const char *at, mgl_json_out *out,
                                    mgl_error *err)
{
    const mgl_versions *c = mgl_kernel_session_versions(w->bench);
    mgl_json_out_string(out, "unit", w->unit->name);
    mgl_json_out_string(out, "branch", mgl_versions_branch(c));
    mgl_json_out_array(out, "checkpoints");
    mgl_status status = mgl_versions_log(c, at, put_one, out, err);
    mgl_json_out_close_array(out);
    return status;
}
