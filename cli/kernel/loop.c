/* Opens the model client of --proposer, reads profiles, and prints results of the proposal loop.
 * See loop.h. */
#include "cli/kernel/loop.h"
#include "cli/kernel/text.h"

#include "api/cancel.h"
#include "autotune/agents/chat.h"
#include "base/file.h"
#include "base/format.h"
#include "base/memory.h"
#include "cli/chat_key.h"
#include "schedule/program.h"

#include <string.h>

/* ---- model client ---------------------------------------------------------------------------- */

static mgl_status open_chat(const mgl_cli_ask *how, mgl_model_client **out, mgl_error *err)
{
    char *key = NULL;
    if (!how->url || !how->model)
        return mgl_fail(
            err, MGL_USAGE, "--proposer",
            "the proposer chat needs a language model; give --chat-url and --chat-model");
    mgl_status status = mgl_cli_find_key(how->key_file, &key, err);
    const mgl_model_client_chat_options options = {
        .url = how->url, .key = key, .abort = mgl_cancel_flag(mgl_cli_cancel())};
    if (!status)
        status = mgl_model_client_open_chat(&options, out, err);
    mgl_chat_forget_key(key);
    return status;
}

mgl_status mgl_cli_model_client_open(const mgl_cli_ask *how, mgl_model_client **out, mgl_error *err)
{
    static const char script[] = "scripted:";
    const char *name = how->proposer ? how->proposer : "external";
    *out = NULL;
    if (strcmp(name, "chat") != 0 && (how->url || how->model || how->key_file))
        return mgl_fail(err, MGL_USAGE, "--chat-url", "needs --proposer chat");
    if (!strncmp(name, script, sizeof script - 1) && name[sizeof script - 1])
        return mgl_model_client_open_replay(name + sizeof script - 1, out, err);
    if (!strcmp(name, "chat"))
        return open_chat(how, out, err);
    return strcmp(name, "external")
               ? mgl_fail(err, MGL_USAGE, "--proposer",
                          "unknown proposer: '%.60s'; supported: scripted:FILE, chat and external",
                          name)
               : MGL_OK;
}

/* ---- profile --------------------------------------------------------------------------------- */

enum { MAX_PROFILE = 64 << 20 };

static mgl_status read_csv(const mgl_cli_profile *files, mgl_profile *out, int *found,
                           mgl_error *err)
{
    char *text = NULL;
    size_t length = 0;
    mgl_status status = mgl_file_read(files->ncu, MAX_PROFILE, &text, &length, err);
    if (!status)
        status = mgl_profile_read_csv(text, length, files->kernel, out, found, err);
    mgl_free(text);
    return status;
}

static mgl_status read_trace(const mgl_cli_profile *files, const char *op, mgl_profile *out,
                             int *found, mgl_error *err)
{
    mgl_json json = {0};
    mgl_status status = mgl_json_read_file(files->trace, MAX_PROFILE, &json, err);
    if (!status)
        status = mgl_profile_read_trace(&json, op, out, found, err);
    mgl_json_clear(&json);
    return status;
}

mgl_status mgl_cli_profile_read(const mgl_cli_profile *files, const mgl_kernel_unit *unit,
                                mgl_profile *out, mgl_error *err)
{
    int of_csv = 0, of_trace = 0;
    const char *op = mgl_op_get(unit->op)->name;
    *out = mgl_profile_unknown();
    mgl_status status = files->ncu ? read_csv(files, out, &of_csv, err) : MGL_OK;
    if (!status && files->trace)
        status = read_trace(files, op, out, &of_trace, err);
    if (!status && files->ncu && !of_csv)
        mgl_cli_say("kernel", "%s: no known metric", files->ncu);
    if (!status && files->trace && !of_trace)
        mgl_cli_say("kernel", "%s: no task of %s", files->trace, op);
    return status;
}

/* ---- printing results ------------------------------------------------------------------------ */

void mgl_cli_tell_end(const mgl_kernel_store *b, const mgl_work_end *end, bool json)
{
    mgl_cli_end_with(mgl_outcome_exit(end->stopped ? end->stopped : end->verdict.outcome));
    if (json) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.kernel/1");
        mgl_kernel_store_put_end(b, end, &out);
        mgl_cli_end_json(&out);
        return;
    }
    if (end->stopped)
        mgl_cli_printf("%s: the task stays open; %s\n", mgl_outcome_name(end->stopped),
                       mgl_outcome_kernel_hint(end->stopped));
    mgl_cli_kernel_tell_verdict(&end->verdict, mgl_outcome_kernel_hint(end->verdict.outcome));
    if (end->gates)
        mgl_cli_kernel_tell_gates(end->gates);
    if (end->version[0])
        mgl_cli_printf("version %s\n", end->version);
    else
        mgl_cli_printf("%d call%s, the task %s\n", end->calls, mgl_plural((size_t)end->calls),
                       end->ended ? "ended without a new text" : "continues");
}
