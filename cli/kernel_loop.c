#include "cli/kernel_loop.h"
#include "cli/campaign.h"
#include "cli/signals.h"
#include "pipeline.h"

#include "autotune/chat.h"
#include "base/data_folder.h"
#include "base/format.h"

#include <string.h>

mgl_status mgl_cli_kernels_folder(const char *given, mgl_text *out, mgl_error *err)
{
    if (given)
        mgl_text_put(out, given);
    else if (!mgl_data_folder("kernels", out))
        return mgl_fail(err, MGL_USAGE, "--folder",
                        "neither XDG_DATA_HOME nor HOME says where workbenches are kept: give it");
    return out->failed ? mgl_fail_memory(err, 1) : MGL_OK;
}

mgl_status mgl_cli_library_open(const char *folder, mgl_library *out, mgl_error *err)
{
    mgl_text path = {0};
    bool has = folder || mgl_data_folder("transformations", &path);
    mgl_status status = mgl_library_open(folder ? folder : has ? path.bytes : NULL, out, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_cli_bench_open(const char *unit, const mgl_cli_bench_how *how, mgl_cli_bench *out,
                              mgl_error *err)
{
    mgl_text folder = {0};
    mgl_status status = mgl_cli_kernel_find(unit, &out->unit, err);
    if (!status)
        status = mgl_cli_kernels_folder(how->folder, &folder, err);
    if (!status)
        status = mgl_cli_library_open(how->transformations, &out->library, err);
    const mgl_cli_kernel_given given = {.device = how->device, .no_sandbox = how->no_sandbox};
    if (!status)
        status = mgl_cli_kernel_device_open(&given, "none", MGL_TRIAL_DUEL, &out->device, err);
    if (!status) {
        const mgl_workbench_options options = {.folder = folder.bytes,
                                               .unit = out->unit,
                                               .library = &out->library,
                                               .arch = how->arch,
                                               .model = how->model,
                                               .no_compile = how->scan_only,
                                               .device =
                                                   out->device.given ? &out->device.options : NULL,
                                               .abort = mgl_cancel_flag(mgl_cli_cancel())};
        status = mgl_workbench_open(&options, &out->bench, err);
    }
    mgl_text_clear(&folder);
    return status;
}

void mgl_cli_bench_close(mgl_cli_bench *b)
{
    mgl_workbench_close(b->bench);
    mgl_library_clear(&b->library);
    mgl_cli_kernel_device_clear(&b->device);
}

/* ---- who is asked ---------------------------------------------------------------------------- */

static mgl_status open_chat(const mgl_cli_ask *how, mgl_asker **out, mgl_error *err)
{
    char *key = NULL;
    if (!how->url || !how->model)
        return mgl_fail(err, MGL_USAGE, "--proposer",
                        "chat asks a language model: --chat-url and --chat-model say which");
    mgl_status status = mgl_cli_find_key(how->key_file, &key, err);
    const mgl_asker_chat_options options = {
        .url = how->url, .key = key, .abort = mgl_cancel_flag(mgl_cli_cancel())};
    if (!status)
        status = mgl_asker_open_chat(&options, out, err);
    mgl_chat_forget_key(key);
    return status;
}

mgl_status mgl_cli_asker_open(const mgl_cli_ask *how, mgl_asker **out, mgl_error *err)
{
    static const char script[] = "scripted:";
    const char *name = how->proposer ? how->proposer : "external";
    *out = NULL;
    if (strcmp(name, "chat") != 0 && (how->url || how->model || how->key_file))
        return mgl_fail(err, MGL_USAGE, "--chat-url", "goes with --proposer chat");
    if (!strncmp(name, script, sizeof script - 1) && name[sizeof script - 1])
        return mgl_asker_open_script(name + sizeof script - 1, out, err);
    if (!strcmp(name, "chat"))
        return open_chat(how, out, err);
    return strcmp(name, "external")
               ? mgl_fail(err, MGL_USAGE, "--proposer",
                          "'%.60s' is none of scripted:FILE, chat and external", name)
               : MGL_OK;
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void put_end(const mgl_cli_bench *b, const mgl_work_end *end)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_string(&out, "unit", b->unit->name);
    mgl_json_out_string(&out, "outcome", mgl_outcome_name(end->verdict.outcome));
    mgl_json_out_string(&out, "diagnostic",
                        end->verdict.diagnostic[0] ? end->verdict.diagnostic : NULL);
    mgl_json_out_string(&out, "hint", mgl_loop_hint(end->verdict.outcome));
    mgl_json_out_int(&out, "calls", end->calls);
    mgl_json_out_bool(&out, "ended", end->ended);
    mgl_json_out_string(&out, "stopped", end->stopped ? mgl_outcome_name(end->stopped) : NULL);
    mgl_json_out_string(&out, "checkpoint", end->checkpoint[0] ? end->checkpoint : NULL);
    mgl_cli_end_json(&out);
}

void mgl_cli_tell_end(const mgl_cli_bench *b, const mgl_work_end *end, bool json)
{
    mgl_cli_end_with(mgl_outcome_exit(end->stopped ? end->stopped : end->verdict.outcome));
    if (json) {
        put_end(b, end);
        return;
    }
    if (end->stopped)
        mgl_cli_printf("%s: the work stays open; %s\n", mgl_outcome_name(end->stopped),
                       mgl_loop_hint(end->stopped));
    mgl_cli_printf("%s\n%s\n",
                   end->verdict.diagnostic[0] ? end->verdict.diagnostic
                                              : mgl_outcome_name(end->verdict.outcome),
                   mgl_loop_hint(end->verdict.outcome));
    if (end->checkpoint[0])
        mgl_cli_printf("checkpoint %s\n", end->checkpoint);
    else
        mgl_cli_printf("%d call%s, the work %s\n", end->calls, mgl_plural((size_t)end->calls),
                       end->ended ? "ended without a text" : "goes on");
}

void mgl_cli_put_state(const mgl_cli_bench *b, mgl_json_out *out)
{
    mgl_work_state s = mgl_workbench_state(b->bench);
    mgl_json_out_string(out, "unit", b->unit->name);
    mgl_json_out_string(out, "arch", mgl_workbench_work(b->bench)->arch);
    mgl_json_out_string(out, "branch", mgl_checkpoints_branch(mgl_workbench_checkpoints(b->bench)));
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

void mgl_cli_put_checkpoint(const mgl_checkpoint_record *r, mgl_json_out *out)
{
    mgl_json_out_string(out, "id", r->id);
    mgl_json_out_array(out, "parents");
    for (int i = 0; i < r->parent_count; i++)
        mgl_json_out_string(out, NULL, r->parents[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_string(out, "unit", r->unit);
    mgl_json_out_string(out, "arch", r->arch);
    mgl_json_out_string(out, "transformation", r->transformation[0] ? r->transformation : NULL);
    mgl_json_out_string(out, "note", r->note);
    mgl_json_out_string(out, "provides", r->provides);
    mgl_json_out_string(out, "outcome", mgl_outcome_name(r->verdict.outcome));
    mgl_json_out_object(out, "values");
    for (int i = 0; i < r->value_count; i++)
        mgl_json_out_int(out, r->values[i].name, r->values[i].value);
    mgl_json_out_close_object(out);
}
