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
        "path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that holds it"                      \
    }
#define TUNE                                                                                       \
    {                                                                                              \
        "tune", MCP_OBJECT, false, 0, 0,                                                           \
            "values of tunables by name, whole numbers (the first of each)"                        \
    }
#define MODELS                                                                                     \
    {"shape", MCP_STRING,   false,                                                                 \
     0,       MCP_MAX_NAME, "the model that it has to gain in (that of the op's context)"},        \
        {"workloads", MCP_STRING, false, 0, MCP_MAX_NAME, "of that model (ctx=0,2048;batch=1)"},   \
    {                                                                                              \
        "checkpoint", MCP_STRING, false, 0, MCP_MAX_PATH,                                          \
            "folder of a model with weights, on which its replies are compared too"                \
    }

static const mcp_param of_unit[] = {MCP_UNIT};
static const mcp_param of_scan[] = {
    {"unit", MCP_STRING, false, 0, MCP_MAX_NAME, "whose text it is (the unit that has its frame)"},
    TEXT};
static const mcp_param of_version[] = {
    MCP_UNIT,
    {"at", MCP_STRING, false, 0, MCP_MAX_NAME,
     "a branch, a version, or original: the unit's original text (the branch that is worked on)"}};
static const mcp_param of_diff[] = {
    MCP_UNIT,
    {"from", MCP_STRING, false, 0, MCP_MAX_NAME,
     "a branch, a version, or original: the unit's original text (original)"},
    {"to", MCP_STRING, false, 0, MCP_MAX_NAME, "likewise (the branch that is worked on)"}};
static const mcp_param of_branch[] = {
    MCP_UNIT,
    {"name", MCP_STRING, true, 0, MCP_MAX_NAME, "a new branch, or one to go on with"},
    {"at", MCP_STRING, false, 0, MCP_MAX_NAME,
     "where a new one begins: as `at` of kernel_log (where the branch that is worked on stands)"}};
static const mcp_param of_begin[] = {
    MCP_UNIT,
    {"transformation", MCP_STRING, false, 0, MCP_MAX_NAME, "one of those that kernel_next has"},
    {"task", MCP_STRING, false, 0, 10000, "or what is to be done, in words"},
    MCP_REGION("launch, macros or device: the one that the task edits (device)"),
    MCP_ARCH,
    {"drop", MCP_BOOLEAN, false, 0, 0, "gives up the work that is open, first (false)"}};
static const mcp_param of_submit[] = {
    MCP_UNIT,
    {"answer", MCP_STRING, false, 0, MAX_FILE, "what the prompt asked for, in one fence"},
    {"path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that holds it"},
    {"bare", MCP_BOOLEAN, false, 0, 0, "the answer is the text itself, without a fence (false)"},
    MCP_SCAN_ONLY,
    MCP_DEVICE("none, cuda or cuda:N: that evaluates what passes the compiler (none)")};
static const mcp_param of_verify[] = {
    MCP_UNIT,
    TEXT,
    MCP_REGION("launch, macros or device: the only one that may differ (each may)"),
    TUNE,
    MCP_ARCH,
    MCP_SCAN_ONLY,
    MCP_DEVICE("none, cuda or cuda:N: where it is examined and timed (none)"),
    {"correctness_only", MCP_BOOLEAN, false, 0, 0,
     "the gates end before anything is timed (false)"},
    MODELS};
static const mcp_param of_bench[] = {
    MCP_UNIT,
    TEXT,
    MCP_REGION("launch, macros or device: the only one that may differ (each may)"),
    TUNE,
    MCP_DEVICE("cuda or cuda:N: where (cuda)"),
    MODELS};
static const mcp_param of_promote[] = {
    MCP_UNIT,
    TEXT,
    MCP_REGION("launch, macros or device: the only one that may differ (each may)"),
    TUNE,
    {"device", MCP_STRING, true, 0, 31, "cuda or cuda:N: that evaluates it"},
    MODELS};

static const mcp_tool tools[] = {
    {"kernel_list", "The micro-kernels", "Those whose text may be changed, and the file of each.",
     NULL, 0, false, .run = kernel_list},
    {"kernel_show", "What is known of a micro-kernel",
     "Its meaning, scalars, inputs, outputs, budget, and the text of its regions.",
     MCP_PARAMS(of_unit), false, .run = kernel_show},
    {"kernel_scan", "Scan a text of a micro-kernel",
     "All that the gates before the compiler refuse in a text, with code, line and hint.",
     MCP_PARAMS(of_scan), false, .run = kernel_scan},
    {"kernel_next", "What is wanted of a micro-kernel",
     "The open work and its prompt, or the transformations that may be begun.", MCP_PARAMS(of_unit),
     false, .in_store = kernel_next},
    {"kernel_prompt", "The prompt of the open work", "What kernel_submit has to answer.",
     MCP_PARAMS(of_unit), false, .in_store = kernel_prompt},
    {"kernel_log", "Versions of a micro-kernel", "Those of a branch, the newest first.",
     MCP_PARAMS(of_version), false, .in_store = kernel_log},
    {"kernel_diff", "What differs between two versions",
     "Line by line, as a text; where nothing is named, what the branch's text has changed.",
     MCP_PARAMS(of_diff), false, .in_store = kernel_diff},
    {"kernel_export", "A version with its text", "Its verdict, values of tunables and text.",
     MCP_PARAMS(of_version), false, .in_store = kernel_export},
    {"kernel_branches", "Branches of a micro-kernel's versions",
     "All of them, and the one that is worked on.", MCP_PARAMS(of_unit), false,
     .in_store = kernel_branches},
    {"kernel_branch", "Make or change the branch",
     "Makes a branch, or goes on with one; answers as kernel_branches.", MCP_PARAMS(of_branch),
     true, .in_store = kernel_branch},
    {"kernel_begin", "Begin a work",
     "Begins a transformation or a task on a micro-kernel, and answers with its prompt.",
     MCP_PARAMS(of_begin), true, .in_store = kernel_begin},
    {"kernel_submit", "Hand in an answer",
     "Passes the answer to the open work's prompt through the gates; a text that passes is a "
     "version.",
     MCP_PARAMS(of_submit), true, .in_store = kernel_submit},
    {"kernel_verify", "Pass a text through the gates",
     "The verdict on a whole text of a micro-kernel: before a device, and on one where it is "
     "named.",
     MCP_PARAMS(of_verify), true, .run = kernel_verify},
    {"kernel_bench", "Time a text",
     "Times a text that is right against the one that runs today; without a text that one against "
     "itself.",
     MCP_PARAMS(of_bench), true, .run = kernel_bench},
    {"kernel_promote", "Promote a text",
     "Passes a text through all gates, and compiles kernels with it from then on when all say OK.",
     MCP_PARAMS(of_promote), true, .run = kernel_promote},
    {"kernel_rollback", "Take a promotion back",
     "Puts back what ran before a text of a micro-kernel was promoted.", MCP_PARAMS(of_unit), true,
     .run = kernel_rollback}};
const mcp_tool_list mcp_kernel_tools = {MCP_PARAMS(tools)};
