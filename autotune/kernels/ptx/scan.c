/* Implements scan.h: lists the forbidden items of both modules, sorts them and compares counts. */
#include "autotune/kernels/ptx/scan.h"

#include "autotune/kernels/ptx/classes.h"
#include "base/format.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- rules ----------------------------------------------------------------------------------- */

/* First words of a mnemonic; X(words, why) */
#define INSTRUCTION_RULES(X)                                                                       \
    X("nanosleep", "it waits")                                                                     \
    X("exit", "it ends a thread")                                                                  \
    X("trap", "it stops the kernel")                                                               \
    X("brkpt", "it stops the kernel")                                                              \
    X("pmevent", "it signals a profiler")                                                          \
    X("atom", "an atomic operation")                                                               \
    X("red", "an atomic operation")                                                                \
    X("multimem", "it writes to other devices")                                                    \
    X("cp.reduce", "an atomic operation")                                                          \
    X("st.async", "it writes to other blocks")                                                     \
    X("mapa", "it accesses other blocks")                                                          \
    X("griddepcontrol", "it signals other launches")                                               \
    X("tensormap", "it changes the descriptor of copies")                                          \
    X("discard", "it discards the contents of memory")                                             \
    X("applypriority", "it changes the cache priority of shared data")                             \
    X("alloca", "it allocates memory")                                                             \
    X("brx", "it branches to a target that cannot be checked")                                     \
    X("call", "a call")

/* First characters of a special register (section 10); X(name, why) */
#define REGISTER_RULES(X)                                                                          \
    X("%clock", "a clock")                                                                         \
    X("%globaltimer", "a clock")                                                                   \
    X("%gridid", "it identifies the launch")                                                       \
    X("%pm", "a counter of a profiler")                                                            \
    X("%envreg", "it depends on the driver")                                                       \
    X("%nctaid", "it depends on the size of the grid")                                             \
    X("%ctaid", "it identifies the block")                                                         \
    X("%smid", "it identifies the SM")                                                             \
    X("%nsmid", "it depends on the size of the device")                                            \
    X("%cluster", "it depends on the cluster")                                                     \
    X("%nclusterid", "it depends on the cluster")                                                  \
    X("%is_explicit_cluster", "it depends on the cluster")                                         \
    X("%nwarpid", "it depends on the device")                                                      \
    X("%total_smem_size", "it depends on the launch")                                              \
    X("%dynamic_smem_size", "it depends on the launch")                                            \
    X("%aggr_smem_size", "it depends on the launch")                                               \
    X("%reserved_smem", "it depends on the driver")                                                \
    X("%current_graph_exec", "it depends on the launch")

static const mgl_ptx_forbidden instruction_rules[] = {
#define MGL_X(what, why) {what, why},
    INSTRUCTION_RULES(MGL_X)
#undef MGL_X
};
static const mgl_ptx_forbidden register_rules[] = {
#define MGL_X(what, why) {what, why},
    REGISTER_RULES(MGL_X)
#undef MGL_X
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

const mgl_ptx_forbidden *mgl_ptx_forbidden_get(int index)
{
    size_t at = (size_t)index;
    if (at < COUNT(instruction_rules))
        return &instruction_rules[at];
    at -= COUNT(instruction_rules);
    return at < COUNT(register_rules) ? &register_rules[at] : NULL;
}

/* ---- items of a module ----------------------------------------------------------------------- */

/* An item that a rule names, with a line of the module: "atom.shared.add.u32". */
typedef struct item {
    mgl_ptx_slice what;
    const char *why;
    int line;
} item;

typedef struct items {
    item *rows;
    size_t count, capacity;
} items;

static mgl_status add_item(items *to, mgl_ptx_slice what, const char *why, int line, mgl_error *err)
{
    if (!mgl_grow((void **)&to->rows, &to->capacity, to->count, sizeof *to->rows))
        return mgl_fail_memory(err, sizeof *to->rows);
    to->rows[to->count++] = (item){what, why, line};
    return MGL_OK;
}

static mgl_status list_registers(const mgl_ptx *ptx, const mgl_ptx_instruction *i, items *out,
                                 mgl_error *err)
{
    mgl_status status = MGL_OK;
    const mgl_ptx_operand *operands = ptx->operands + i->first_operand;
    for (uint32_t k = 0; k < i->operand_count && !status; k++)
        for (size_t r = 0; r < COUNT(register_rules) && !status; r++) {
            size_t length = strlen(register_rules[r].what);
            if (operands[k].kind == MGL_PTX_SPECIAL && operands[k].text.length >= length &&
                !memcmp(operands[k].text.at, register_rules[r].what, length))
                status = add_item(out, operands[k].text, register_rules[r].why, i->line, err);
        }
    return status;
}

/* The name of the called function; the mnemonic if the module does not contain the function. */
static mgl_ptx_slice called(const mgl_ptx *ptx, const mgl_ptx_instruction *i)
{
    for (uint32_t k = 0; k < i->operand_count; k++)
        for (size_t f = 0; f < ptx->function_list.count; f++)
            if (!mgl_ptx_compare(ptx->operands[i->first_operand + k].text, ptx->functions[f].name))
                return ptx->functions[f].name;
    return i->name;
}

/* `kinds`: an item of a call is the called function, not the mnemonic. */
static mgl_status list_forbidden(const mgl_ptx *ptx, bool kinds, items *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t n = 0; n < ptx->instruction_list.count && !status; n++) {
        const mgl_ptx_instruction *i = &ptx->instructions[n];
        for (size_t r = 0; r < COUNT(instruction_rules) && !status; r++)
            if (mgl_ptx_begins(i, instruction_rules[r].what))
                status = add_item(out, kinds && mgl_ptx_is(i, "call") ? called(ptx, i) : i->name,
                                  instruction_rules[r].why, i->line, err);
        if (!status)
            status = list_registers(ptx, i, out, err);
    }
    return status;
}

static int compare_items(const void *a, const void *b)
{
    const item *left = a, *right = b;
    int order = mgl_ptx_compare(left->what, right->what);
    return order ? order : (left->line > right->line) - (left->line < right->line);
}

static void sort_items(items *list)
{
    if (list->count)
        qsort(list->rows, list->count, sizeof *list->rows, compare_items);
}

/* ---- comparison with the incumbent ----------------------------------------------------------- */

static void report(const item *at, mgl_ptx_finding *out)
{
    if (out->outcome == MGL_OUTCOME_STATIC_FORBIDDEN && out->line <= at->line)
        return;
    out->outcome = MGL_OUTCOME_STATIC_FORBIDDEN;
    out->line = at->line;
    mgl_format_into(out->what, sizeof out->what, "%.*s", (int)at->what.length, at->what.at);
    mgl_format_into(out->why, sizeof out->why, "%s", at->why);
}

/* Compares two sorted lists. Reports an item that occurs more often than in the incumbent; with
 * `kinds`, only an item that the incumbent does not have. */
static void compare_lists(const items *candidate, const items *incumbent, bool kinds,
                          mgl_ptx_finding *out)
{
    size_t j = 0;
    for (size_t i = 0; i < candidate->count;) {
        size_t end = i, have = 0;
        mgl_ptx_slice what = candidate->rows[i].what;
        while (end < candidate->count && !mgl_ptx_compare(candidate->rows[end].what, what))
            end++;
        while (j < incumbent->count && mgl_ptx_compare(incumbent->rows[j].what, what) < 0)
            j++;
        for (; j < incumbent->count && !mgl_ptx_compare(incumbent->rows[j].what, what); j++)
            have++;
        if (end - i > have && (!kinds || !have))
            report(&candidate->rows[i + have], out);
        i = end;
    }
}

static bool names(const mgl_ptx_instruction *i, const char *modifiers)
{
    const size_t n = strlen(modifiers);
    for (size_t at = 0; at + n <= i->name.length; at++)
        if (!memcmp(i->name.at + at, modifiers, n))
            return true;
    return false;
}

/* Lists stores and copies to memory that other blocks can read. */
static mgl_status list_stores(const mgl_ptx *ptx, bool kinds, items *out, mgl_error *err)
{
    (void)kinds;
    mgl_status status = MGL_OK;
    for (size_t n = 0; n < ptx->instruction_list.count && !status; n++) {
        const mgl_ptx_instruction *i = &ptx->instructions[n];
        mgl_ptx_space space = mgl_ptx_access_space(i);
        bool outside = space == MGL_PTX_generic || space == MGL_PTX_global;
        if ((mgl_ptx_is(i, "st") && (outside || names(i, ".shared::cluster"))) ||
            (mgl_ptx_begins(i, "cp.async.bulk") && names(i, ".global.shared")))
            status = add_item(out, i->name, "the incumbent has no such store", i->line, err);
    }
    return status;
}

typedef mgl_status list_fn(const mgl_ptx *ptx, bool kinds, items *out, mgl_error *err);

static mgl_status scan_lists(const mgl_ptx *candidate, const mgl_ptx *incumbent, list_fn *list,
                             bool kinds, mgl_ptx_finding *out, mgl_error *err)
{
    items ours = {0}, theirs = {0};
    mgl_status status = list(candidate, kinds, &ours, err);
    if (!status && incumbent)
        status = list(incumbent, kinds, &theirs, err);
    sort_items(&ours);
    sort_items(&theirs);
    if (!status)
        compare_lists(&ours, &theirs, kinds, out);
    mgl_free(ours.rows);
    mgl_free(theirs.rows);
    return status;
}

/* ---- variables and functions ----------------------------------------------------------------- */

/* Lists the sorted names of all operands. A variable of the module counts as state only if an
 * instruction names it. Constants of C++ classes, which no instruction names, are thereby excluded.
 */
static mgl_status list_named(const mgl_ptx *ptx, items *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < ptx->operand_list.count && !status; i++)
        if (ptx->operands[i].kind == MGL_PTX_NAME)
            status = add_item(out, ptx->operands[i].text, "", 0, err);
    sort_items(out);
    return status;
}

static int compare_what(const void *a, const void *b)
{
    return mgl_ptx_compare(((const item *)a)->what, ((const item *)b)->what);
}

static bool has_item(const items *sorted, mgl_ptx_slice what)
{
    const item key = {.what = what};
    return sorted->count &&
           bsearch(&key, sorted->rows, sorted->count, sizeof key, compare_what) != NULL;
}

static mgl_status list_globals(const mgl_ptx *ptx, bool kinds, items *out, mgl_error *err)
{
    (void)kinds;
    items named = {0};
    mgl_status status = list_named(ptx, &named, err);
    for (size_t i = 0; i < ptx->variable_list.count && !status; i++) {
        const mgl_ptx_variable *v = &ptx->variables[i];
        bool lasts = v->space == MGL_PTX_global || v->space == MGL_PTX_const;
        if (v->function == MGL_PTX_NONE && lasts && has_item(&named, v->name))
            status = add_item(out, v->name, "a variable of the module lasts beyond a launch",
                              v->line, err);
    }
    mgl_free(named.rows);
    return status;
}

/* Lists functions without a body in the module, such as vprintf, malloc and cudaLaunchDevice. */
static mgl_status list_declared(const mgl_ptx *ptx, bool kinds, items *out, mgl_error *err)
{
    (void)kinds;
    items bodies = {0};
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < ptx->function_list.count && !status; i++)
        if (ptx->functions[i].has_body)
            status = add_item(&bodies, ptx->functions[i].name, "", 0, err);
    sort_items(&bodies);
    for (size_t i = 0; i < ptx->function_list.count && !status; i++)
        if (!has_item(&bodies, ptx->functions[i].name))
            status = add_item(out, ptx->functions[i].name, "an external function",
                              ptx->functions[i].line, err);
    mgl_free(bodies.rows);
    return status;
}

mgl_status mgl_ptx_scan(const mgl_ptx *candidate, const mgl_ptx *incumbent, bool kinds,
                        mgl_ptx_finding *out, mgl_error *err)
{
    *out = (mgl_ptx_finding){.outcome = MGL_OUTCOME_OK};
    mgl_status status = scan_lists(candidate, incumbent, list_forbidden, kinds, out, err);
    if (!status)
        status = scan_lists(candidate, incumbent, list_globals, true, out, err);
    if (!status)
        status = scan_lists(candidate, incumbent, list_declared, true, out, err);
    if (!status && incumbent)
        status = scan_lists(candidate, incumbent, list_stores, true, out, err);
    return status;
}

void mgl_ptx_finding_put(const mgl_ptx_finding *f, mgl_json_out *out)
{
    mgl_json_out_string(out, "verdict", mgl_outcome_name(f->outcome));
    if (f->outcome == MGL_OUTCOME_OK)
        return;
    mgl_json_out_int(out, "line", f->line);
    mgl_json_out_string(out, "what", f->what);
    mgl_json_out_string(out, "why", f->why);
}
