/*
 * MCP tools for micro-kernels, equivalent to the verbs of `megalith kernel`. Reading a kernel and
 * scanning a text are always allowed; works, verdicts and promotions need permission
 * (allow_trials).
 */
#include "autotune/mcp/mcp_kernel.h"
#include "autotune/kernels/gates/guard.h"
#include "autotune/kernels/gates/kernel_show.h"
#include "base/memory.h"

enum { MAX_FILE = 4 << 20 };

/* ---- reading --------------------------------------------------------------------------------- */

static mgl_status kernel_list(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    (void)call, (void)err;
    mgl_kernel_put_units(out);
    return MGL_OK;
}

static mgl_status kernel_show(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    const mgl_kernel_unit *unit;
    mgl_kernel_view view = {0};
    mgl_status status = mgl_kernel_find(mcp_text_of(call, "unit"), &unit, err);
    if (!status)
        status = mgl_kernel_view_open(unit, &view, err);
    if (!status)
        mgl_kernel_put_view(out, &view);
    mgl_kernel_view_clear(&view);
    return status;
}

/* The named unit, or the unit whose frame the text contains. */
static mgl_status find_unit(const mcp_call *call, const char *text, size_t length,
                            const mgl_kernel_unit **out, mgl_error *err)
{
    const char *name = mcp_text_of(call, "unit");
    if (name)
        return mgl_kernel_find(name, out, err);
    *out = mgl_guard_find_unit(text, length);
    return *out ? MGL_OK
                : mgl_fail(err, MGL_USAGE, "unit",
                           "is needed: the text has the frame of no micro-kernel");
}

static mgl_status kernel_scan(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    char place[PATH_MAX], *text = NULL;
    size_t length = 0;
    const mgl_kernel_unit *unit = NULL;
    mgl_guard_findings *found = mgl_alloc_zero(1, sizeof *found);
    mgl_status status = found ? mcp_read_text(call, "text", MAX_FILE, place, &text, &length, err)
                              : mgl_fail_memory(err, sizeof *found);
    if (!status)
        status = find_unit(call, text, length, &unit, err);
    if (!status)
        status = mgl_guard_scan(unit, text, length, found, err);
    if (!status) {
        mgl_json_out_string(out, "unit", unit->name);
        mgl_json_out_string(out, "file", unit->file);
        mgl_guard_put_findings(out, found);
    }
    mgl_free(text);
    mgl_free(found);
    return status;
}

/* ---- kernel sessions ------------------------------------------------------------------------- */

mgl_status mcp_run_in_store(const mcp_tool *tool, const mcp_call *call, mgl_json_out *out,
                            mgl_error *err)
{
    const char *folder = call->mcp->kernels;
    const mgl_kernel_store_options options = {.folder = folder[0] ? folder : NULL,
                                              .arch = mcp_text_of(call, "arch"),
                                              .device = mcp_text_of(call, "device"),
                                              .no_compile = mcp_flag_of(call, "scan_only"),
                                              .reads = !tool->writes,
                                              .abort = &call->mcp->abort};
    mgl_kernel_store shop = {0};
    mgl_status status = mgl_kernel_store_open(mcp_text_of(call, "unit"), &options, &shop, err);
    if (!status)
        status = tool->in_store(call, &shop, out, err);
    mgl_kernel_store_close(&shop);
    return status;
}

static mgl_status kernel_next(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                              mgl_error *err)
{
    (void)call;
    mgl_status status = mgl_kernel_store_put_next(shop, out, err);
    if (!status)
        mgl_json_out_string(out, "submit",
                            mgl_kernel_session_state(shop->bench).open ? "kernel_submit"
                                                                       : "kernel_begin");
    return status;
}

static mgl_status kernel_prompt(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                                mgl_error *err)
{
    (void)call;
    return mgl_kernel_store_put_prompt(shop, false, out, err);
}

static mgl_status kernel_log(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                             mgl_error *err)
{
    return mgl_kernel_store_put_log(shop, mcp_text_of(call, "at"), out, err);
}

static mgl_status kernel_diff(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                              mgl_error *err)
{
    mgl_text diff = {0};
    mgl_status status =
        mgl_kernel_store_diff(shop, mcp_text_of(call, "from"), mcp_text_of(call, "to"), &diff, err);
    if (!status) {
        mgl_json_out_string(out, "unit", shop->unit->name);
        mgl_json_out_string(out, "diff", diff.bytes ? diff.bytes : "");
    }
    mgl_text_clear(&diff);
    return status;
}

static mgl_status kernel_export(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                                mgl_error *err)
{
    mgl_version_record record = {0};
    mgl_status status = mgl_versions_get(mgl_kernel_session_versions(shop->bench),
                                         mcp_text_of(call, "at"), &record, err);
    if (!status)
        mgl_kernel_store_put_record(&record, out);
    mgl_version_clear(&record);
    return status;
}

static mgl_status kernel_branches(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                                  mgl_error *err)
{
    (void)call;
    return mgl_kernel_store_put_branches(shop, out, err);
}

static mgl_status kernel_branch(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                                mgl_error *err)
{
    mgl_status status =
        mgl_kernel_store_make_branch(shop, mcp_text_of(call, "name"), mcp_text_of(call, "at"), err);
    return status ? status : mgl_kernel_store_put_branches(shop, out, err);
}

static mgl_status kernel_begin(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                               mgl_error *err)
{
    const mgl_kernel_store_begin_options options = {.transformation =
                                                        mcp_text_of(call, "transformation"),
                                                    .task = mcp_text_of(call, "task"),
                                                    .region = mcp_text_of(call, "region"),
                                                    .drop = mcp_flag_of(call, "drop")};
    if (!options.transformation == !options.task)
        return mgl_fail(err, MGL_USAGE, "arguments", "one of transformation and task is needed");
    mgl_status status = mgl_kernel_store_begin(shop, &options, err);
    return status ? status : mgl_kernel_store_put_prompt(shop, false, out, err);
}

static mgl_status kernel_submit(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                                mgl_error *err)
{
    char place[PATH_MAX], *answer;
    size_t length = 0;
    mgl_work_end end;
    mgl_status status = mcp_read_text(call, "answer", MAX_FILE, place, &answer, &length, err);
    if (!status)
        status = mgl_kernel_session_submit(shop->bench, answer, length, mcp_flag_of(call, "bare"),
                                           &end, err);
    if (!status)
        mgl_kernel_store_put_end(shop, &end, out);
    mgl_free(answer);
    return status;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* A candidate from a call's arguments. Zero-initialize; release with clear_candidate. */
typedef struct candidate {
    mgl_kernel_candidate of;
    mgl_kernel_value values[MGL_KERNEL_VALUES];
    char *text; /* owned */
} candidate;

/* Reads an object such as {"tile": 8}. */
static mgl_status read_values(const mcp_call *call, candidate *c, mgl_error *err)
{
    const cJSON *tune = call->arguments ? mgl_json_member(call->arguments, "tune") : NULL;
    mgl_status status = MGL_OK;
    for (const cJSON *i = tune ? tune->child : NULL; i && !status; i = i->next) {
        if (c->of.value_count == MGL_KERNEL_VALUES)
            return mgl_fail(err, MGL_USAGE, "tune", "there are %d tunables at most",
                            MGL_KERNEL_VALUES);
        mgl_kernel_value *value = &c->values[c->of.value_count++];
        value->name = i->string;
        status =
            mgl_json_item_int(call->json, i, i->string, INT32_MIN, INT32_MAX, &value->value, err);
    }
    c->of.values = c->values;
    return status;
}

static mgl_status read_candidate(const mcp_call *call, candidate *c, mgl_error *err)
{
    char place[PATH_MAX];
    mgl_status status = mgl_kernel_find(mcp_text_of(call, "unit"), &c->of.unit, err);
    if (!status)
        status = mgl_kernel_find_region(mcp_text_of(call, "region"), &c->of.region, err);
    if (!status)
        status = read_values(call, c, err);
    if (!status)
        status = mcp_read_text(call, "text", MAX_FILE, place, &c->text, &c->of.length, err);
    c->of.text = c->text;
    return status;
}

/* Runs the gates; with `promote` runs all of them, and promotes a candidate that passes. */
static mgl_status run_gates(const mcp_call *call, bool promote, mgl_json_out *out, mgl_error *err)
{
    char checkpoint[PATH_MAX];
    mgl_kernel_device_options where = {.device = mcp_text_of(call, "device"),
                                       .shape = mcp_text_of(call, "shape"),
                                       .workloads = mcp_text_of(call, "workloads"),
                                       .depth = promote ? MGL_TRIAL_PROMOTE
                                                : mcp_flag_of(call, "correctness_only")
                                                    ? MGL_TRIAL_CORRECTNESS
                                                    : MGL_TRIAL_MODELS,
                                       .abort = &call->mcp->abort};
    const char *arch = mcp_text_of(call, "arch");
    candidate c = {0};
    mgl_kernel_device device = {0};
    mgl_kernel_findings verdict = {0};
    bool promoted = false;
    mgl_status status = read_candidate(call, &c, err);
    if (!status)
        status = mcp_find_model(call, "checkpoint", checkpoint, err);
    where.checkpoint = !status && checkpoint[0] ? checkpoint : NULL;
    if (!status)
        status = mgl_kernel_device_open(&where, &device, err);
    if (!status && promote && !device.given)
        status = mgl_fail(err, MGL_USAGE, "device",
                          "a text is promoted only after the gates of a device: name one");
    const mgl_kernel_options before = {.arch = arch           ? arch
                                               : device.given ? device.arch
                                                              : NULL,
                                       .no_compile = mcp_flag_of(call, "scan_only"),
                                       .abort = &call->mcp->abort};
    if (!status)
        status = mgl_kernel_evaluate(&c.of, &before, &device, &verdict, err);
    if (!status && promote)
        status = mgl_kernel_promote(&c.of, &verdict, &promoted, err);
    if (!status)
        mgl_kernel_put_verdict(out, c.of.unit, &verdict, promoted);
    mgl_kernel_findings_clear(&verdict);
    mgl_kernel_device_clear(&device);
    mgl_free(c.text);
    return status;
}

static mgl_status kernel_verify(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    return run_gates(call, false, out, err);
}

/* Without a text, times the current kernel against itself. */
static mgl_status kernel_bench(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    const char *where = mcp_text_of(call, "device");
    const bool has_text = mcp_is_given(call, "text") || mcp_is_given(call, "path");
    char checkpoint[PATH_MAX];
    mgl_kernel_device_options options = {.device = where ? where : "cuda",
                                         .shape = mcp_text_of(call, "shape"),
                                         .workloads = mcp_text_of(call, "workloads"),
                                         .depth = MGL_TRIAL_MODELS,
                                         .abort = &call->mcp->abort};
    candidate c = {0};
    mgl_kernel_device device = {0};
    mgl_kernel_findings verdict = {0};
    mgl_status status = has_text ? read_candidate(call, &c, err)
                                 : mgl_kernel_find(mcp_text_of(call, "unit"), &c.of.unit, err);
    if (!status)
        status = mcp_find_model(call, "checkpoint", checkpoint, err);
    options.checkpoint = !status && checkpoint[0] ? checkpoint : NULL;
    if (!status)
        status = mgl_kernel_device_open(&options, &device, err);
    if (!status)
        status = mgl_kernel_bench(&c.of, &device, &verdict, err);
    if (!status)
        mgl_kernel_put_verdict(out, c.of.unit, &verdict, false);
    mgl_kernel_findings_clear(&verdict);
    mgl_kernel_device_clear(&device);
    mgl_free(c.text);
    return status;
}

static mgl_status kernel_promote(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    return run_gates(call, true, out, err);
}

static mgl_status kernel_rollback(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    const mgl_kernel_unit *unit;
    bool restored = false;
    mgl_status status = mgl_kernel_find(mcp_text_of(call, "unit"), &unit, err);
    if (!status)
        status = mgl_overlay_roll_back(NULL, unit, &restored, err);
    if (!status) {
        mgl_json_out_string(out, "unit", unit->name);
        mgl_json_out_bool(out, "restored", restored);
    }
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

#define TEXT                                                                                       \
    {"text", MCP_STRING, false, 0, MGL_KERNEL_TEXT, "the whole text of the unit"},                 \
    {                                                                                              \
        "path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains the text"             \
    }
#define TUNE                                                                                       \
    {                                                                                              \
        "tune", MCP_OBJECT, false, 0, 0,                                                           \
            "an integer value for each tunable, by name (the first value of each)"                 \
    }
#define MODELS                                                                                     \
    {                                                                                              \
        "shape",      MCP_STRING,                                                                  \
        false,        0,                                                                           \
        MCP_MAX_NAME, "the model in which the text is timed (the shape in the op's context)"},     \
        {"workloads", MCP_STRING,   false,                                                         \
         0,           MCP_MAX_NAME, "workloads of that model (ctx=0,2048;batch=1)"},               \
    {                                                                                              \
        "checkpoint", MCP_STRING, false, 0, MCP_MAX_PATH,                                          \
            "folder of a model with weights, on which replies are compared too"                    \
    }

static const mcp_param of_unit[] = {MCP_UNIT};
static const mcp_param of_scan[] = {{"unit", MCP_STRING, false, 0, MCP_MAX_NAME,
                                     "the unit of the text (the unit whose regions the text has)"},
                                    TEXT};
static const mcp_param of_version[] = {
    MCP_UNIT,
    {"at", MCP_STRING, false, 0, MCP_MAX_NAME,
     "a branch, a version, or original: the unit's original text (the current branch)"}};
static const mcp_param of_diff[] = {
    MCP_UNIT,
    {"from", MCP_STRING, false, 0, MCP_MAX_NAME,
     "a branch, a version, or original: the unit's original text (original)"},
    {"to", MCP_STRING, false, 0, MCP_MAX_NAME,
     "a branch, a version, or original (the current branch)"}};
static const mcp_param of_branch[] = {
    MCP_UNIT,
    {"name", MCP_STRING, true, 0, MCP_MAX_NAME, "a new branch, or an existing branch to return to"},
    {"at", MCP_STRING, false, 0, MCP_MAX_NAME,
     "where a new branch begins: as `at` of kernel_log (at the head of the current branch)"}};
static const mcp_param of_begin[] = {
    MCP_UNIT,
    {"transformation", MCP_STRING, false, 0, MCP_MAX_NAME,
     "a transformation that kernel_next lists"},
    {"task", MCP_STRING, false, 0, 10000, "or a task in words"},
    MCP_REGION("launch, macros or device: the region that the task edits (device)"),
    MCP_ARCH,
    {"drop", MCP_BOOLEAN, false, 0, 0, "drop the open task first (false)"}};
static const mcp_param of_submit[] = {
    MCP_UNIT,
    {"answer", MCP_STRING, false, 0, MAX_FILE, "the answer to the prompt, in one code fence"},
    {"path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains the text"},
    {"bare", MCP_BOOLEAN, false, 0, 0, "the answer is the text itself, without a fence (false)"},
    MCP_SCAN_ONLY,
    MCP_DEVICE("none, cuda or cuda:N: the device that checks and times a compiled text (none)")};
static const mcp_param of_verify[] = {
    MCP_UNIT,
    TEXT,
    MCP_REGION("launch, macros or device: the only region that may differ (any region)"),
    TUNE,
    MCP_ARCH,
    MCP_SCAN_ONLY,
    MCP_DEVICE("none, cuda or cuda:N: the device that checks and times the text (none)"),
    {"correctness_only", MCP_BOOLEAN, false, 0, 0,
     "stop before timing: the correctness check and the sanitizers run (false)"},
    MODELS};
static const mcp_param of_bench[] = {
    MCP_UNIT,
    TEXT,
    MCP_REGION("launch, macros or device: the only region that may differ (any region)"),
    TUNE,
    MCP_DEVICE("cuda or cuda:N: the device that times the text (cuda)"),
    MODELS};
static const mcp_param of_promote[] = {
    MCP_UNIT,
    TEXT,
    MCP_REGION("launch, macros or device: the only region that may differ (any region)"),
    TUNE,
    {"device", MCP_STRING, true, 0, 31,
     "cuda or cuda:N: the device that checks and times the text"},
    MODELS};

static const mcp_tool tools[] = {
    {"kernel_list", "List micro-kernels",
     "Lists the micro-kernels whose text may be changed, with their files.", NULL, 0, false,
     .run = kernel_list},
    {"kernel_show", "Show a micro-kernel",
     "Shows its meaning, scalars, inputs, outputs, budget, and the text of its regions.",
     MCP_PARAMS(of_unit), false, .run = kernel_show},
    {"kernel_scan", "Scan a text of a micro-kernel",
     "Lists all findings of the static scan in a text, with code, line and hint.",
     MCP_PARAMS(of_scan), false, .run = kernel_scan},
    {"kernel_next", "Show the open task",
     "Shows the open task and its prompt, or the transformations that may begin.",
     MCP_PARAMS(of_unit), false, .in_store = kernel_next},
    {"kernel_prompt", "Show the prompt of the open task",
     "Shows the prompt that kernel_submit answers.", MCP_PARAMS(of_unit), false,
     .in_store = kernel_prompt},
    {"kernel_log", "List versions", "Lists the versions of a branch, the newest first.",
     MCP_PARAMS(of_version), false, .in_store = kernel_log},
    {"kernel_diff", "Compare two versions",
     "Shows the differences line by line. By default, compares the original and the current text.",
     MCP_PARAMS(of_diff), false, .in_store = kernel_diff},
    {"kernel_export", "Export a version",
     "Returns the verdict of a version, its values of tunables, and its text.",
     MCP_PARAMS(of_version), false, .in_store = kernel_export},
    {"kernel_branches", "List branches",
     "Lists the branches of a micro-kernel, and names the current branch.", MCP_PARAMS(of_unit),
     false, .in_store = kernel_branches},
    {"kernel_branch", "Make or change a branch",
     "Makes a branch or returns to one. Returns the same as kernel_branches.",
     MCP_PARAMS(of_branch), true, .in_store = kernel_branch},
    {"kernel_begin", "Begin a task",
     "Begins a transformation or a task on a micro-kernel, and returns its prompt.",
     MCP_PARAMS(of_begin), true, .in_store = kernel_begin},
    {"kernel_submit", "Submit an answer",
     "Runs the gates on the answer to the prompt of the open task. A text that passes becomes a "
     "version.",
     MCP_PARAMS(of_submit), true, .in_store = kernel_submit},
    {"kernel_verify", "Check a text with the gates",
     "Runs the gates on a whole text of a micro-kernel. With `device`, runs the gates on that "
     "device too.",
     MCP_PARAMS(of_verify), true, .run = kernel_verify},
    {"kernel_bench", "Time a text",
     "Times a correct text against the text in use. Without a text, times the text in use against "
     "itself.",
     MCP_PARAMS(of_bench), true, .run = kernel_bench},
    {"kernel_promote", "Promote a text",
     "Runs all gates on a text. If it passes, kernels are compiled with it from then on.",
     MCP_PARAMS(of_promote), true, .run = kernel_promote},
    {"kernel_rollback", "Undo a promotion",
     "Restores the text that was in use before the last promotion of a micro-kernel.",
     MCP_PARAMS(of_unit), true, .run = kernel_rollback}};
const mcp_tool_list mcp_kernel_tools = {MCP_PARAMS(tools)};
