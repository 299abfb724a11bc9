/* Implements the rewrites of rewrite.h: cache hints, merged loads, and loop unrolling pragmas. */
#include "autotune/kernels/ptx/rewrite.h"

#include "autotune/kernels/ptx/classes.h"
#include "autotune/kernels/ptx/flow.h"
#include "base/memory.h"

#include <string.h>

/* Output state: the text before `at` is already written. */
typedef struct writer {
    const mgl_ptx *ptx;
    const char *at;
    mgl_text *out;
    size_t count;
} writer;

static void copy_to(writer *w, const char *to)
{
    mgl_text_append(w->out, w->at, (size_t)(to - w->at));
    w->at = to;
}

/* Replaces [to, end) by a text; inserts the text if the range is empty. */
static void put(writer *w, const char *to, const char *text, const char *end)
{
    copy_to(w, to);
    mgl_text_put(w->out, text);
    w->at = end;
    w->count++;
}

/* ---- hints ----------------------------------------------------------------------------------- */

/* Whether it is a load or store of global memory without memory order, hint or policy. */
static bool is_plain(const mgl_ptx_instruction *i, const char *root)
{
    mgl_text hint = {0}, order = {0};
    mgl_ptx_access_hint(i, &hint);
    mgl_ptx_access_order(i, &order);
    bool plain = mgl_ptx_is(i, root) && mgl_ptx_access_space(i) == MGL_PTX_global && hint.bytes &&
                 order.bytes && !strcmp(hint.bytes, "none") && !strcmp(order.bytes, "weak") &&
                 mgl_ptx_begins(i, root) && !mgl_ptx_has(i, "mmio");
    mgl_text_clear(&hint);
    mgl_text_clear(&order);
    return plain;
}

static void add_hint(writer *w, const char *root, const char *space, const char *hint)
{
    for (size_t n = 0; n < w->ptx->instruction_list.count; n++) {
        const mgl_ptx_instruction *i = &w->ptx->instructions[n];
        mgl_ptx_slice first;
        bool plain = is_plain(i, root) && mgl_ptx_modifier(i, 0, &first);
        if (plain && mgl_ptx_equal(first, space))
            put(w, first.at + first.length, hint, first.at + first.length);
    }
}

static void no_allocate(writer *w)
{
    add_hint(w, "ld", "global", ".L1::no_allocate");
}

static void evict_first(writer *w)
{
    add_hint(w, "ld", "global", ".L1::evict_first");
}

static void prefetch_256(writer *w)
{
    add_hint(w, "ld", "global", ".L2::256B");
}

static void read_only(writer *w)
{
    add_hint(w, "ld", "global", ".nc");
}

static void streaming(writer *w)
{
    add_hint(w, "st", "global", ".cs");
}

/* ---- widths ---------------------------------------------------------------------------------- */

static const mgl_ptx_operand *address_of(const mgl_ptx *ptx, const mgl_ptx_instruction *i)
{
    const mgl_ptx_operand *operand = mgl_ptx_slot(ptx, i, 1);
    return operand && operand->address && operand->kind == MGL_PTX_REGISTER ? operand : NULL;
}

/* Two loads of two words each from adjacent addresses. The second load must not read a register
 * that the first load writes. */
static bool fit(const mgl_ptx *ptx, const mgl_ptx_instruction *a, const mgl_ptx_instruction *b)
{
    const mgl_ptx_operand *from = address_of(ptx, a), *next = address_of(ptx, b);
    bool same = a->name.length == b->name.length && !memcmp(a->name.at, b->name.at, a->name.length);
    if (!same || !from || !next || from->id != next->id || !mgl_ptx_is(a, "ld") ||
        mgl_ptx_access_bytes(a) != 8 || mgl_ptx_access_vector(a) != 2 ||
        next->value - from->value != 8 || a->guard != MGL_PTX_NONE || b->guard != MGL_PTX_NONE ||
        a->scope != b->scope || mgl_ptx_has(a, "volatile"))
        return false;
    const mgl_ptx_operand *results = ptx->operands + a->first_operand;
    return mgl_ptx_slot_width(ptx, a, 0) == 2 && mgl_ptx_slot_width(ptx, b, 0) == 2 &&
           results[0].id != next->id && results[1].id != next->id;
}

static bool has_label(const mgl_ptx *ptx, uint32_t at)
{
    for (size_t i = 0; i < ptx->label_list.count; i++)
        if (ptx->labels[i].at == at)
            return true;
    return false;
}

/* ld.global.v4.u32 {a, b, c, d}, [%rd1+16]; */
static void write_merged(writer *w, const mgl_ptx_instruction *a, const mgl_ptx_instruction *b)
{
    const mgl_ptx_operand *x = w->ptx->operands + a->first_operand;
    const mgl_ptx_operand *y = w->ptx->operands + b->first_operand;
    const char *wide = memmem(a->name.at, a->name.length, ".v2", 3);
    put(w, wide, ".v4", wide + 3);
    copy_to(w, a->name.at + a->name.length);
    mgl_text_format(w->out, " {%.*s, %.*s, %.*s, %.*s}, [%.*s+%lld];", (int)x[0].text.length,
                    x[0].text.at, (int)x[1].text.length, x[1].text.at, (int)y[0].text.length,
                    y[0].text.at, (int)y[1].text.length, y[1].text.at, (int)x[2].text.length,
                    x[2].text.at, (long long)x[2].value);
    w->at = b->end;
}

static void merge_loads(writer *w)
{
    for (size_t n = 0; n + 1 < w->ptx->instruction_list.count; n++) {
        const mgl_ptx_instruction *a = &w->ptx->instructions[n], *b = a + 1;
        if (!fit(w->ptx, a, b) || has_label(w->ptx, (uint32_t)n + 1))
            continue;
        write_merged(w, a, b);
        n++;
    }
}

/* ---- unrolling ------------------------------------------------------------------------------- */

static bool is_target(const mgl_ptx *ptx, const mgl_ptx_label *label)
{
    for (size_t n = label->at; n < ptx->instruction_list.count; n++) {
        const mgl_ptx_instruction *i = &ptx->instructions[n];
        const mgl_ptx_operand *to = mgl_ptx_is(i, "bra") ? mgl_ptx_slot(ptx, i, 0) : NULL;
        if (to && i->scope == label->scope && to->text.length == label->name.length &&
            !memcmp(to->text.at, label->name.at, label->name.length))
            return true;
    }
    return false;
}

/* The pragma "nounroll" follows the label of a loop (section 12.1). */
static void keep_loops(writer *w)
{
    for (size_t i = 0; i < w->ptx->label_list.count; i++) {
        const mgl_ptx_label *label = &w->ptx->labels[i];
        if (is_target(w->ptx, label))
            put(w, label->end, "\n\t.pragma \"nounroll\";", label->end);
    }
}

static void free_loops(writer *w)
{
    static const char pragma[] = ".pragma \"nounroll\";";
    const char *found;
    while ((found = strstr(w->at, pragma)))
        put(w, found, "", found + strlen(pragma));
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef void rewrite_fn(writer *w);

/* X(function, name, needs, changes) */
#define RULES(X)                                                                                   \
    X(no_allocate, "load-no-allocate", "each byte is read once", "loads leave the L1 cache alone") \
    X(evict_first, "load-evict-first", "each byte is read once", "loads leave the L1 cache first") \
    X(prefetch_256, "load-prefetch-256", "neighbours are read soon, sm_80",                        \
      "loads fetch 256 bytes into the L2 cache")                                                   \
    X(read_only, "load-read-only", "nobody writes these bytes while the kernel runs",              \
      "loads take the read-only path")                                                             \
    X(streaming, "store-streaming", "what is stored is not read soon", "stores leave first")       \
    X(merge_loads, "load-merge", "addresses are multiples of 16",                                  \
      "two loads of 8 neighbouring bytes become one of 16")                                        \
    X(keep_loops, "loop-keep", "nothing", "loops are not unrolled any further")                    \
    X(free_loops, "loop-free", "nothing", "loops may be unrolled")

const mgl_ptx_rule mgl_ptx_rules[] = {
#define MGL_X(function, name, needs, changes) {name, needs, changes},
    RULES(MGL_X)
#undef MGL_X
};
static rewrite_fn *const functions[] = {
#define MGL_X(function, name, needs, changes) function,
    RULES(MGL_X)
#undef MGL_X
};
const size_t mgl_ptx_rule_count = sizeof mgl_ptx_rules / sizeof *mgl_ptx_rules;

mgl_status mgl_ptx_rewrite(const mgl_ptx *ptx, const char *rule, mgl_text *out, size_t *count,
                           mgl_error *err)
{
    writer w = {ptx, ptx->text, out, 0};
    size_t n = 0;
    while (n < mgl_ptx_rule_count && strcmp(mgl_ptx_rules[n].name, rule) != 0)
        n++;
    if (n == mgl_ptx_rule_count)
        return mgl_fail(err, MGL_USAGE, rule,
                        "there is no rewrite of this name; load-merge is one");
    functions[n](&w);
    copy_to(&w, ptx->text + ptx->length);
    *count = w.count;
    return out->failed ? mgl_fail_memory(err, out->capacity) : MGL_OK;
}
