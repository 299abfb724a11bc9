/* Opens the model client of --proposer, and prints results of the proposal loop. See loop.h. */
#include "cli/kernel/loop.h"
#include "cli/campaign/campaign.h"
#include "cli/kernel/text.h"

#include "autotune/agents/chat.h"
#include "base/format.h"

#include <string.h>

/* ---- model client ---------------------------------------------------------------------------- */

static mgl_status open_chat(const mgl_cli_ask *how, mgl_model_client **out, mgl_error *err)
{
    char *key = NULL;
    if (!how->url || !how->model)
        return mgl_fail(err, MGL_USAGE, "--proposer",
                        "chat asks a language model: --chat-url and --chat-model say which");
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
        return mgl_fail(err, MGL_USAGE, "--chat-url", "goes with --proposer chat");
    if (!strncmp(name, script, sizeof script - 1) && name[sizeof script - 1])
        return mgl_model_client_open_replay(name + sizeof script - 1, out, err);
    if (!strcmp(name, "chat"))
        return open_chat(how, out, err);
    return strcmp(name, "external")
               ? mgl_fail(err, MGL_USAGE, "--proposer",
                          "'%.60s' is none of scripted:FILE, chat and external", name)
               : MGL_OK;
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
        mgl_cli_printf("%s: the work stays open; %s\n", mgl_outcome_name(end->stopped),
                       mgl_loop_hint(end->stopped));
    mgl_cli_printf("%s\n%s\n",
                   end->verdict.diagnostic[0] ? end->verdict.diagnostic
                                              : mgl_outcome_name(end->verdict.outcome),
                   mgl_loop_hint(end->verdict.outcome));
    if (end->gates)
        mgl_cli_kernel_tell_gates(end->gates);
    if (end->version[0])
        mgl_cli_printf("checkpoint %s\n", end->version);
    else
        mgl_cli_printf("%d call%s, the work %s\n", end->calls, mgl_plural((size_t)end->calls),
                       end->ended ? "ended without a text" : "goes on");
}
