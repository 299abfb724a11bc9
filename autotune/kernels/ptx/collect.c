/* Implements collect.h: one function per kind of instruction. */
#include "autotune/kernels/ptx/collect.h"

#include "autotune/kernels/ptx/classes.h"

#include <stdio.h>
#include <string.h>

typedef struct collector {
    const mgl_ptx_flow *flow;
    mgl_ptx_forms *forms;
    mgl_ptx_facts *facts;
    mgl_text text; /* text of the value that is being built */
} collector;

/* Adds a row whose value is the text, and clears the text. */
static void add_text(collector *c, const char *feature)
{
    c->facts->failed = c->facts->failed || c->text.failed;
    mgl_ptx_facts_add(c->facts, feature, c->text.length ? c->text.bytes : "plain", 1);
    c->text.length = 0;
}

/* Adds the modifiers after the first `skip` ones as a row. */
static void add_rest(collector *c, const char *feature, const mgl_ptx_instruction *i, size_t skip)
{
    mgl_ptx_slice word;
    for (size_t n = skip; mgl_ptx_modifier(i, n, &word); n++)
        mgl_text_format(&c->text, "%s%.*s", n > skip ? "." : "", (int)word.length, word.at);
    add_text(c, feature);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const mgl_ptx_operand *find_address(const mgl_ptx *ptx, const mgl_ptx_instruction *i)
{
    const mgl_ptx_operand *operands = ptx->operands + i->first_operand;
    for (uint32_t k = 0; k < i->operand_count; k++)
        if (operands[k].address)
            return &operands[k];
    return NULL;
}

static int32_t depth_of(const collector *c, const mgl_ptx_instruction *i)
{
    uint32_t at = (uint32_t)(i - c->flow->ptx->instructions) - c->flow->function->first;
    return c->flow->blocks[c->flow->block_of[at]].depth;
}

static void write_address(collector *c, const mgl_ptx_operand *address)
{
    if (!address || address->kind != MGL_PTX_REGISTER) {
        mgl_text_put(&c->text, "fixed");
        return;
    }
    mgl_ptx_form form = mgl_ptx_form_of(c->forms, address);
    mgl_ptx_form_write(&form, &c->text);
}

/* Adds a row of a feature such as "global.load.vector". */
static void add_feature(collector *c, const char *space, const char *kind, const char *what)
{
    char feature[64];
    snprintf(feature, sizeof feature, "%s.%s.%s", space, kind, what);
    add_text(c, feature);
}

static void add_access(collector *c, const mgl_ptx_instruction *i, const char *kind)
{
    const char *space = mgl_ptx_space_name(mgl_ptx_access_space(i));
    const mgl_ptx_operand *address = find_address(c->flow->ptx, i);
    mgl_text_format(&c->text, "%s %s %dB v%d ", space, kind, mgl_ptx_access_bytes(i),
                    mgl_ptx_access_vector(i));
    mgl_ptx_access_hint(i, &c->text);
    mgl_text_put(&c->text, " ");
    mgl_ptx_access_order(i, &c->text);
    mgl_text_format(&c->text, " depth %d ", depth_of(c, i));
    write_address(c, address);
    add_text(c, "memory");
    mgl_text_format(&c->text, "v%d", mgl_ptx_access_vector(i));
    add_feature(c, space, kind, "vector");
    mgl_text_format(&c->text, "%d", mgl_ptx_access_bytes(i));
    add_feature(c, space, kind, "bytes");
    mgl_ptx_access_hint(i, &c->text);
    add_feature(c, space, kind, "hint");
    mgl_ptx_access_order(i, &c->text);
    add_feature(c, space, kind, "order");
    write_address(c, address);
    add_feature(c, space, kind, "address");
}

/* Records addresses that contain an exclusive or. In shared memory this is a swizzle. */
static void add_swizzle(collector *c, const mgl_ptx_instruction *i, const char *kind)
{
    const mgl_ptx_operand *address = find_address(c->flow->ptx, i);
    if (!address || address->kind != MGL_PTX_REGISTER)
        return;
    if (mgl_ptx_form_of(c->forms, address).swizzled) {
        mgl_text_put(&c->text, kind);
        add_text(c, "swizzle");
    }
}

static bool add_memory(collector *c, const mgl_ptx_instruction *i)
{
    bool load = mgl_ptx_is(i, "ld") || mgl_ptx_is(i, "ldu");
    bool matrix = mgl_ptx_is(i, "ldmatrix") || mgl_ptx_is(i, "stmatrix");
    if (!load && !matrix && !mgl_ptx_is(i, "st") && !mgl_ptx_is(i, "atom") &&
        !mgl_ptx_is(i, "red") && !mgl_ptx_begins(i, "cp.async"))
        return false;
    const char *kind = load || mgl_ptx_is(i, "ldmatrix")                  ? "load"
                       : mgl_ptx_is(i, "st") || mgl_ptx_is(i, "stmatrix") ? "store"
                       : mgl_ptx_is(i, "cp")                              ? "copy"
                                                                          : "atomic";
    add_swizzle(c, i, kind);
    if (matrix)
        add_rest(c, "matrix.load", i, 0);
    else if (!mgl_ptx_is(i, "cp") && mgl_ptx_access_space(i) != MGL_PTX_param)
        add_access(c, i, kind);
    return !mgl_ptx_is(i, "cp");
}

/* ---- asynchronous copies --------------------------------------------------------------------- */

static const mgl_ptx_operand *number_at(const mgl_ptx *ptx, const mgl_ptx_instruction *i, int slot)
{
    const mgl_ptx_operand *operand = mgl_ptx_slot(ptx, i, slot);
    return operand && operand->kind == MGL_PTX_NUMBER ? operand : NULL;
}

/* For example cp.async.cg.shared.global.L2::128B [to], [from], 16 */
static void add_copy(collector *c, const mgl_ptx_instruction *i)
{
    const mgl_ptx_operand *bytes = number_at(c->flow->ptx, i, 2);
    mgl_text_format(&c->text, "%lldB ", bytes ? (long long)bytes->value : 0ll);
    mgl_ptx_access_hint(i, &c->text);
    add_text(c, "async.copy");
}

static bool add_async(collector *c, const mgl_ptx_instruction *i)
{
    const mgl_ptx_operand *number = number_at(c->flow->ptx, i, 0);
    if (mgl_ptx_begins(i, "cp.async.commit_group")) {
        mgl_text_put(&c->text, "cp.async");
        add_text(c, "async.groups");
    } else if (mgl_ptx_begins(i, "cp.async.wait_group")) {
        mgl_text_format(&c->text, "%lld", number ? (long long)number->value : 0ll);
        add_text(c, "async.wait");
    } else if (mgl_ptx_begins(i, "cp.async.wait_all")) {
        mgl_text_put(&c->text, "all");
        add_text(c, "async.wait");
    } else if (mgl_ptx_begins(i, "cp.async.mbarrier") || mgl_ptx_is(i, "mbarrier")) {
        add_rest(c, "mbarrier", i, 0);
    } else if (mgl_ptx_begins(i, "cp.async.bulk") || mgl_ptx_begins(i, "cp.reduce")) {
        add_rest(c, "async.bulk", i, 2);
    } else if (mgl_ptx_begins(i, "cp.async")) {
        add_copy(c, i);
    } else {
        return false;
    }
    return true;
}

/* The buffers of a cp.async ring, from the number of groups that may be open after a wait; 0: no
 * ring. */
static int64_t count_stages(const mgl_ptx_flow *flow)
{
    /* wait_group N leaves N groups open, and one buffer is being read. If the loop commits the
     * next group only after the wait, that group fills one more buffer. */
    int64_t stages = 0;
    const mgl_ptx *ptx = flow->ptx;
    uint32_t first = flow->function->first;
    for (uint32_t k = 0; k < flow->function->count; k++) {
        const mgl_ptx_instruction *i = &ptx->instructions[first + k];
        const mgl_ptx_operand *open = number_at(ptx, i, 0);
        const mgl_ptx_block *block = &flow->blocks[flow->block_of[k]];
        if (!mgl_ptx_begins(i, "cp.async.wait_group") || !open || block->loop == MGL_PTX_NONE)
            continue;
        const mgl_ptx_loop *loop = &flow->loops[block->loop];
        uint32_t from = flow->blocks[loop->header].first - first;
        const mgl_ptx_block *latch = &flow->blocks[loop->latch];
        uint32_t to = latch->first + latch->count - first;
        bool before = false, behind = false;
        for (uint32_t n = from; n < to; n++)
            if (mgl_ptx_begins(&ptx->instructions[first + n], "cp.async.commit_group"))
                *(n < k ? &before : &behind) = true;
        int64_t here = open->value + 1 + (behind && !before);
        stages = here > stages ? here : stages;
    }
    return stages;
}

/* ---- other instructions ---------------------------------------------------------------------- */

/* For example "mma m16n8k16 f32.bf16.bf16.f32"; also for wgmma. */
static void add_matrix(collector *c, const mgl_ptx_instruction *i)
{
    mgl_ptx_slice word;
    mgl_text_format(&c->text, "%.*s", (int)i->root, i->name.at);
    for (size_t n = 0; mgl_ptx_modifier(i, n, &word); n++) {
        static const char *const dull[] = {"sync", "aligned", "mma_async", "row", "col"};
        bool said = false;
        for (size_t d = 0; d < sizeof dull / sizeof *dull; d++)
            said = said || mgl_ptx_equal(word, dull[d]);
        if (!said)
            mgl_text_format(&c->text, " %.*s", (int)word.length, word.at);
    }
    add_text(c, "matrix.shape");
}

static void add_number(collector *c, const char *feature, const mgl_ptx_instruction *i)
{
    const mgl_ptx_operand *number = number_at(c->flow->ptx, i, 0);
    mgl_ptx_slice word = {"", 0};
    mgl_ptx_modifier(i, 0, &word);
    mgl_text_format(&c->text, "%.*s %lld", (int)word.length, word.at,
                    number ? (long long)number->value : 0ll);
    add_text(c, feature);
}

/* A branch on the warp number or thread number, for example "warp lt 8". */
static void add_role(collector *c, const mgl_ptx_instruction *branch)
{
    const mgl_ptx *ptx = c->flow->ptx;
    int32_t guard = branch->guard;
    if (guard == MGL_PTX_NONE || c->flow->writers[guard] != 1)
        return;
    const mgl_ptx_instruction *test = &ptx->instructions[c->flow->writer[guard]];
    const mgl_ptx_operand *left = mgl_ptx_slot(ptx, test, 1), *right = number_at(ptx, test, 2);
    mgl_ptx_slice comparison;
    if (!mgl_ptx_is(test, "setp") || !left || !right || !mgl_ptx_modifier(test, 0, &comparison))
        return;
    mgl_ptx_form form = mgl_ptx_form_of(c->forms, left);
    if (form.other || form.lane || form.part || (!form.warp && !form.thread))
        return;
    mgl_text_format(&c->text, "%s %.*s %lld", form.warp ? "warp" : "thread", (int)comparison.length,
                    comparison.at, (long long)((uint64_t)right->value - (uint64_t)form.constant));
    add_text(c, "roles");
}

static void add_instruction(collector *c, const mgl_ptx_instruction *i)
{
    mgl_ptx_class class = mgl_ptx_classify(i);
    mgl_text_put(&c->text, mgl_ptx_class_name(class));
    add_text(c, "instructions");
    if (add_memory(c, i) || add_async(c, i))
        return;
    if (mgl_ptx_is(i, "mma") || mgl_ptx_begins(i, "wgmma.mma_async") ||
        mgl_ptx_begins(i, "wmma.mma") || mgl_ptx_begins(i, "tcgen05.mma"))
        add_matrix(c, i);
    else if (class == MGL_PTX_CLASS_barrier) {
        mgl_text_format(&c->text, "%.*s", (int)i->name.length, i->name.at);
        add_text(c, "barrier");
    } else if (class == MGL_PTX_CLASS_shuffle) {
        mgl_text_format(&c->text, "%.*s", (int)i->name.length, i->name.at);
        add_text(c, "shuffle");
    } else if (class == MGL_PTX_CLASS_convert)
        add_rest(c, "convert", i, 0);
    else if (mgl_ptx_is(i, "setmaxnreg"))
        add_number(c, "setmaxnreg", i);
    else if (mgl_ptx_is(i, "createpolicy"))
        add_rest(c, "policy", i, 0);
    else if (mgl_ptx_is(i, "bra"))
        add_role(c, i);
}

void mgl_ptx_collect(const mgl_ptx_flow *flow, mgl_ptx_forms *forms, mgl_ptx_facts *facts)
{
    collector c = {flow, forms, facts, {0}};
    for (uint32_t i = 0; i < flow->function->count; i++)
        add_instruction(&c, &flow->ptx->instructions[flow->function->first + i]);
    mgl_text_clear(&c.text);
    int64_t stages = count_stages(flow);
    if (stages)
        mgl_ptx_facts_add(facts, "async.stages", "", stages);
}
