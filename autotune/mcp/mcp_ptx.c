/*
 * MCP tools for PTX, equivalent to `megalith kernel ptx`: the condensed form of a kernel, the
 * difference of two kernels, and the scan for forbidden content. The results depend only on the
 * texts.
 */
#include "autotune/kernels/ptx/diff.h"
#include "autotune/kernels/ptx/scan.h"
#include "autotune/mcp/mcp_parts.h"
#include "base/memory.h"

static mgl_status read_module(const mcp_call *call, const char *name, const char *path,
                              mgl_ptx *out, mgl_error *err)
{
    char place[PATH_MAX], *text;
    size_t length = 0;
    *out = (mgl_ptx){0};
    mgl_status status =
        mcp_read_either(call, name, path, MGL_PTX_MAX_BYTES, place, &text, &length, err);
    if (!status && mcp_is_given(call, path) && !mgl_ptx_is_module(text, length))
        status = mgl_fail(err, MGL_BAD_INPUT, place,
                          "the file is no PTX module: it must begin with `.version`");
    if (!status)
        status = mgl_ptx_parse(text, length, place, out, err);
    mgl_free(text);
    return status;
}

static mgl_status read_condensed(const mcp_call *call, const char *name, const char *path,
                                 mgl_ptx_condensed *out, mgl_error *err)
{
    mgl_ptx ptx;
    *out = (mgl_ptx_condensed){0};
    mgl_status status = read_module(call, name, path, &ptx, err);
    if (!status)
        status = mgl_ptx_condense(&ptx, out, err);
    mgl_ptx_clear(&ptx);
    return status;
}

static mgl_status ptx_condense(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mgl_ptx_condensed c;
    mgl_status status = read_condensed(call, "text", "path", &c, err);
    if (!status)
        mgl_ptx_condensed_put(&c, out);
    mgl_ptx_condensed_clear(&c);
    return status;
}

static mgl_status ptx_diff(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mgl_ptx_condensed before, after = {0};
    mgl_ptx_diff found = {0};
    mgl_status status = read_condensed(call, "base", "base_path", &before, err);
    if (!status)
        status = read_condensed(call, "text", "path", &after, err);
    if (!status)
        status = mgl_ptx_diff_make(&before, &after, &found, err);
    if (!status)
        mgl_ptx_diff_put(&found, mcp_flag_of(call, "all"), out);
    mgl_ptx_diff_clear(&found);
    mgl_ptx_condensed_clear(&before);
    mgl_ptx_condensed_clear(&after);
    return status;
}

static mgl_status ptx_scan(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    const bool has_base = mcp_is_given(call, "base") || mcp_is_given(call, "base_path");
    mgl_ptx candidate, incumbent = {0};
    mgl_ptx_finding found;
    mgl_status status = read_module(call, "text", "path", &candidate, err);
    if (!status && has_base)
        status = read_module(call, "base", "base_path", &incumbent, err);
    if (!status)
        status = mgl_ptx_scan(&candidate, has_base ? &incumbent : NULL, false, &found, err);
    if (!status)
        mgl_ptx_finding_put(&found, out);
    mgl_ptx_clear(&candidate);
    mgl_ptx_clear(&incumbent);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

#define TEXT                                                                                       \
    {"text", MCP_STRING, false, 0, MGL_PTX_MAX_BYTES, "PTX of the kernel"},                        \
    {                                                                                              \
        "path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains it"                   \
    }
#define BASE(what)                                                                                 \
    {"base", MCP_STRING, false, 0, MGL_PTX_MAX_BYTES, what},                                       \
    {                                                                                              \
        "base_path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains it"              \
    }
static const mcp_param of_condense[] = {TEXT};
static const mcp_param of_diff[] = {
    TEXT,
    BASE("PTX of the kernel to compare with"),
    {"all", MCP_BOOLEAN, false, 0, 0, "include features of which only the counts differ (false)"}};
static const mcp_param of_scan[] = {
    TEXT, BASE("PTX of the incumbent: what the incumbent does is allowed")};

static const mcp_tool tools[] = {
    {"kernel_ptx_condense", "Summarize a kernel",
     "Condenses a PTX module: memory, asynchronous operations, matrix products, barriers, loops.",
     MCP_PARAMS(of_condense), false, .run = ptx_condense},
    {"kernel_ptx_diff", "Compare two kernels", "Compares two PTX modules, feature by feature.",
     MCP_PARAMS(of_diff), false, .run = ptx_diff},
    {"kernel_ptx_scan", "Scan a kernel",
     "Scans a PTX module for clocks, traps, atomics, calls and the like that the incumbent does "
     "not have.",
     MCP_PARAMS(of_scan), false, .run = ptx_scan}};
const mcp_tool_list mcp_ptx_tools = {MCP_PARAMS(tools)};
