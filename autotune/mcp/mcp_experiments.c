/*
 * MCP tools for the experiment log, equivalent to `megalith kernel choose` and `megalith kernel
 * report`: what was tried, and which op comes next.
 */
#include "autotune/kernels/sessions/kernel_store.h"
#include "autotune/mcp/mcp_parts.h"
#include "base/memory.h"

/* The log in the arguments, or the log of the kernel sessions. */
static mgl_status read_experiment_log(const mcp_call *call, mgl_experiment_log *out, mgl_error *err)
{
    char place[PATH_MAX], *text;
    size_t length = 0;
    const char *folder = call->mcp->kernels[0] ? call->mcp->kernels : NULL;
    if (!mcp_is_given(call, "log") && !mcp_is_given(call, "log_path"))
        return mgl_kernel_store_experiment_log(NULL, folder, out, err);
    mgl_status status = mcp_read_either(call, "log", "log_path", MGL_EXPERIMENT_LOG_FILE, place,
                                        &text, &length, err);
    if (!status)
        status = mgl_experiment_log_parse(text, length, place, out, err);
    mgl_free(text);
    return status;
}

static mgl_status read_shares(const mcp_call *call, mgl_shares *out, mgl_error *err)
{
    char place[PATH_MAX], *text;
    size_t length = 0;
    mgl_status status = mcp_read_either(call, "shares", "path", MGL_EXPERIMENT_LOG_FILE, place,
                                        &text, &length, err);
    if (!status)
        status = mgl_shares_parse(text, length, place, out, err);
    mgl_free(text);
    return status;
}

static mgl_status kernel_choose(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mgl_experiment_log experiment_log = {0};
    mgl_experiment_log_choice choice = {0};
    mgl_status status = read_shares(call, &choice.shares, err);
    if (!status)
        status = read_experiment_log(call, &experiment_log, err);
    if (!status) {
        mgl_experiment_log_choose(&experiment_log, &choice);
        mgl_experiment_log_put_choice(&choice, out);
    }
    mgl_experiment_log_clear(&experiment_log);
    return status;
}

static mgl_status kernel_report(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    const bool csv = mcp_flag_of(call, "csv");
    mgl_experiment_log experiment_log = {0};
    mgl_text text = {0};
    mgl_status status = read_experiment_log(call, &experiment_log, err);
    if (!status)
        (csv ? mgl_experiment_log_put_csv : mgl_experiment_log_put_markdown)(&experiment_log,
                                                                             &text);
    if (!status && text.failed)
        status = mgl_fail_memory(err, 1);
    if (!status)
        mgl_json_out_string(out, csv ? "csv" : "markdown", text.bytes);
    mgl_experiment_log_clear(&experiment_log);
    mgl_text_clear(&text);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

#define EXPERIMENT_LOG                                                                             \
    {"log", MCP_OBJECT,                                                                            \
     false, 0,                                                                                     \
     0,     "megalith.experiment_log/1: what was tried (the log of the kernel sessions)"},         \
    {                                                                                              \
        "log_path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains it"               \
    }
static const mcp_param of_choose[] = {
    {"shares", MCP_OBJECT, false, 0, 0, "megalith.shares/1: each op's time and floor"},
    {"path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains it"},
    EXPERIMENT_LOG};
static const mcp_param of_report[] = {EXPERIMENT_LOG,
                                      {"csv", MCP_BOOLEAN, false, 0, 0, "all rows as CSV (false)"}};

static const mcp_tool tools[] = {
    {"kernel_choose", "Choose the next op",
     "Ranks ops by the gain of the whole if each reached its floor, with the best ideas so far.",
     MCP_PARAMS(of_choose), false, .run = kernel_choose},
    {"kernel_report", "Report on experiments",
     "Reports what was tried on micro-kernels, by op and by idea, with counts of failures.",
     MCP_PARAMS(of_report), false, .run = kernel_report}};
const mcp_tool_list mcp_experiment_log_tools = {MCP_PARAMS(tools)};
