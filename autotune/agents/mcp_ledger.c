/*
 * What an agent can ask of the ledger, as `megalith kernel plan` and `report` do it: what was
 * tried, and which op comes next.
 */
#include "autotune/agents/mcp_parts.h"
#include "autotune/kernels/versions/workshop.h"
#include "base/memory.h"

/* The one that is handed in, or that of the workbenches. */
static mgl_status read_ledger(const mcp_call *call, mgl_ledger *out, mgl_error *err)
{
    char place[PATH_MAX], *text;
    size_t length = 0;
    const char *folder = call->mcp->kernels[0] ? call->mcp->kernels : NULL;
    if (!mcp_is_given(call, "ledger") && !mcp_is_given(call, "ledger_path"))
        return mgl_workshop_ledger(NULL, folder, out, NULL, err);
    mgl_status status =
        mcp_read_either(call, "ledger", "ledger_path", MGL_LEDGER_FILE, place, &text, &length, err);
    if (!status)
        status = mgl_ledger_parse(text, length, place, out, err);
    mgl_free(text);
    return status;
}

static mgl_status read_shares(const mcp_call *call, mgl_shares *out, mgl_error *err)
{
    char place[PATH_MAX], *text;
    size_t length = 0;
    mgl_status status =
        mcp_read_either(call, "shares", "path", MGL_LEDGER_FILE, place, &text, &length, err);
    if (!status)
        status = mgl_shares_parse(text, length, place, out, err);
    mgl_free(text);
    return status;
}

static mgl_status kernel_plan(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mgl_ledger ledger = {0};
    mgl_ledger_plan plan = {0};
    mgl_status status = read_shares(call, &plan.shares, err);
    if (!status)
        status = read_ledger(call, &ledger, err);
    if (!status) {
        mgl_ledger_make_plan(&ledger, &plan);
        mgl_ledger_put_plan(&plan, out);
    }
    mgl_ledger_clear(&ledger);
    return status;
}

static mgl_status kernel_report(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    const bool csv = mcp_flag_of(call, "csv");
    mgl_ledger ledger = {0};
    mgl_text text = {0};
    mgl_status status = read_ledger(call, &ledger, err);
    if (!status)
        (csv ? mgl_ledger_put_csv : mgl_ledger_put_markdown)(&ledger, &text);
    if (!status && text.failed)
        status = mgl_fail_memory(err, 1);
    if (!status)
        mgl_json_out_string(out, csv ? "csv" : "markdown", text.bytes);
    mgl_ledger_clear(&ledger);
    mgl_text_clear(&text);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

#define LEDGER                                                                                     \
    {"ledger", MCP_OBJECT, false, 0, 0, "megalith.ledger/1: what was tried (the workbenches')"},   \
    {                                                                                              \
        "ledger_path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that holds it"               \
    }
static const mcp_param of_plan[] = {
    {"shares", MCP_OBJECT, false, 0, 0, "megalith.shares/1: each op's time and floor"},
    {"path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that holds it"},
    LEDGER};
static const mcp_param of_report[] = {
    LEDGER, {"csv", MCP_BOOLEAN, false, 0, 0, "every row, for spreadsheets (false)"}};

static const mcp_tool tools[] = {
    {"kernel_plan", "Which op is worked on next",
     "Ops by what the whole gains if they reach their floor, and the ideas that helped most.",
     MCP_PARAMS(of_plan), false, kernel_plan},
    {"kernel_report", "What was tried on micro-kernels",
     "By op and by idea, with the failures counted, as Markdown.", MCP_PARAMS(of_report), false,
     kernel_report}};
const mcp_tool_list mcp_ledger_tools = {MCP_PARAMS(tools)};
