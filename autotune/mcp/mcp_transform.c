/*
 * MCP tools for transformations, equivalent to `megalith kernel transform`. Reading and checking
 * are always allowed. A run adds versions and needs permission (allow_trials). A run replays
 * answers from its arguments, because the caller is a language model; kernel_begin asks for the
 * answers one by one.
 */
#include "autotune/kernels/sessions/transform.h"
#include "autotune/mcp/mcp_kernel.h"
#include "base/memory.h"

enum { MAX_ANSWERS = 64 << 20 };

static mgl_status transform_list(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mgl_library library = {0};
    (void)call;
    mgl_status status = mgl_kernel_store_library(NULL, &library, err);
    if (!status)
        mgl_transform_put_library(&library, out);
    mgl_library_clear(&library);
    return status;
}

static mgl_status transform_show(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mgl_library library = {0};
    mgl_transform found;
    mgl_status status = mgl_kernel_store_library(NULL, &library, err);
    if (!status)
        status = mgl_transform_find(&library, mcp_text_of(call, "name"),
                                    mcp_text_of(call, "script"), &found, err);
    if (!status)
        mgl_transform_put(&found, out);
    mgl_library_clear(&library);
    return status;
}

static mgl_status transform_check(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    char place[PATH_MAX], *text;
    size_t length = 0;
    mgl_library library = {0};
    mgl_transform_checked checked = {0};
    mgl_status status = mcp_read_either(call, "transformation", "path", MGL_TRANSFORM_MAX_TEXT,
                                        place, &text, &length, err);
    if (!status)
        status = mgl_kernel_store_library(NULL, &library, err);
    if (!status)
        status = mgl_transform_check(&library, text, length, place, &checked, err);
    if (!status)
        mgl_transform_put_checked(&checked, out);
    mgl_transform_checked_clear(&checked);
    mgl_library_clear(&library);
    mgl_free(text);
    return status;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void put_step(void *user, const mgl_step_report *step)
{
    mgl_transform_put_step(step, user);
}

static mgl_status run(const mcp_call *call, mgl_kernel_store *shop, mgl_model_client *model_client,
                      mgl_json_out *out, mgl_error *err)
{
    const mgl_transform_options options = {.name = mcp_text_of(call, "name"),
                                           .script = mcp_text_of(call, "script"),
                                           .carry = (int)mcp_number_of(call, "carry", 0),
                                           .evaluations =
                                               (int)mcp_number_of(call, "evaluations", 0),
                                           .on_step = put_step,
                                           .user = out,
                                           .abort = &call->mcp->abort};
    mgl_script_engine_result result;
    mgl_json_out_string(out, "unit", shop->unit->name);
    mgl_json_out_array(out, "steps");
    mgl_status status = mgl_transform_apply(shop, &options, model_client, &result, err);
    mgl_json_out_close_array(out);
    if (!status)
        mgl_transform_put_result(&result, out);
    return status;
}

static mgl_status transform_apply(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                                  mgl_error *err)
{
    char place[PATH_MAX], *answers;
    size_t length = 0;
    mgl_model_client *model_client = NULL;
    mgl_status status =
        mcp_read_either(call, "answers", "path", MAX_ANSWERS, place, &answers, &length, err);
    if (!status)
        status = mgl_model_client_open_replay_text(answers, length, place, &model_client, err);
    if (!status)
        status = run(call, shop, model_client, out, err);
    mgl_model_client_close(model_client);
    mgl_free(answers);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

#define NAMES                                                                                      \
    {"name", MCP_STRING, false, 0, MCP_MAX_NAME, "a transformation"},                              \
    {                                                                                              \
        "script", MCP_STRING, false, 0, MCP_MAX_NAME, "or a script, such as sm_90a"                \
    }
static const mcp_param of_show[] = {NAMES};
static const mcp_param of_check[] = {
    {"transformation", MCP_OBJECT, false, 0, 0, "megalith.transformation/1 or megalith.script/1"},
    {"path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains it"}};
static const mcp_param of_apply[] = {
    MCP_UNIT,
    NAMES,
    {"answers", MCP_ARRAY, false, 0, 0,
     "a text for each call of a pass, in order, each with the region in one code fence"},
    {"path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains the list"},
    {"carry", MCP_INTEGER, false, 1, MGL_CONFIGURATIONS_ALL,
     "configurations that a step passes to the next step (128)"},
    {"evaluations", MCP_INTEGER, false, 1, MGL_CONFIGURATIONS_ALL,
     "configurations that a step evaluates at most (512)"},
    MCP_ARCH,
    MCP_SCAN_ONLY,
    MCP_DEVICE("none, cuda or cuda:N: the device that checks and times a compiled text (none)")};

static const mcp_tool tools[] = {
    {"kernel_transform_list", "List transformations",
     "Lists the transformations, with what they require and provide, and the scripts.", NULL, 0,
     false, .run = transform_list},
    {"kernel_transform_show", "Show a transformation or script",
     "Shows all of it, with its passes in words.", MCP_PARAMS(of_show), false,
     .run = transform_show},
    {"kernel_transform_check", "Check a transformation or script",
     "Shows the contents of a well-formed transformation or script, or what is wrong in it.",
     MCP_PARAMS(of_check), false, .run = transform_check},
    {"kernel_transform_apply", "Apply a transformation or script",
     "Runs the passes with the given answers. Each completed step becomes a version. kernel_begin "
     "prompts for the answers pass by pass instead.",
     MCP_PARAMS(of_apply), true, .in_store = transform_apply}};
const mcp_tool_list mcp_transform_tools = {MCP_PARAMS(tools)};
