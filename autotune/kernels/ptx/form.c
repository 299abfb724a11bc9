/* Implements form.h. A register with several writers gets the form of the first writer in the
 * text: its value at loop entry. */
#include "autotune/kernels/ptx/form.h"

#include "base/memory.h"

enum { MAX_CHAIN = 128 };

static const mgl_ptx_form unknown = {.other = true};

static mgl_ptx_form find_form(mgl_ptx_forms *forms, int32_t id, int depth);

/* ---- arithmetic, modulo 2^64 ----------------------------------------------------------------- */

static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static mgl_ptx_form add(mgl_ptx_form a, mgl_ptx_form b)
{
    return (mgl_ptx_form){sum(a.constant, b.constant),
                          sum(a.thread, b.thread),
                          sum(a.lane, b.lane),
                          sum(a.warp, b.warp),
                          sum(a.part, b.part),
                          a.swizzled || b.swizzled,
                          a.base || b.base,
                          a.other || b.other};
}

static mgl_ptx_form scale(mgl_ptx_form a, int64_t by)
{
    return (mgl_ptx_form){
        product(a.constant, by), product(a.thread, by), product(a.lane, by), product(a.warp, by),
        product(a.part, by),     a.swizzled && by,      a.base && by,        a.other && by};
}

static bool is_uniform(const mgl_ptx_form *a)
{
    return !a->thread && !a->lane && !a->warp && !a->part;
}

static bool is_constant(const mgl_ptx_form *a)
{
    return is_uniform(a) && !a->base && !a->other && !a->swizzled;
}

static mgl_ptx_form multiply(mgl_ptx_form a, mgl_ptx_form b)
{
    if (is_constant(&b))
        return scale(a, b.constant);
    if (is_constant(&a))
        return scale(b, a.constant);
    return (mgl_ptx_form){.part = !is_uniform(&a) || !is_uniform(&b),
                          .base = a.base || b.base,
                          .other = a.other || b.other};
}

/* Returns the form of a value that keeps only some bits of `a`. */
static mgl_ptx_form take_part(mgl_ptx_form a)
{
    return (mgl_ptx_form){
        .part = !is_uniform(&a), .swizzled = a.swizzled, .base = a.base, .other = a.other};
}

static mgl_ptx_form shift_right(mgl_ptx_form a, mgl_ptx_form by)
{
    if (!is_constant(&by))
        return take_part(a);
    if (is_constant(&a))
        return (mgl_ptx_form){
            .constant = by.constant >= 0 && by.constant < 63 ? a.constant >> by.constant : 0};
    if (by.constant >= 31) /* shifts out all bits but the sign, which is 0 for thread numbers */
        return (mgl_ptx_form){0};
    if (by.constant == 5 && a.thread == 1 && !a.lane && !a.part && !a.other)
        return (mgl_ptx_form){.warp = 1};
    return take_part(a);
}

static mgl_ptx_form mask(mgl_ptx_form a, mgl_ptx_form by)
{
    if (is_constant(&a) && is_constant(&by))
        return (mgl_ptx_form){.constant = a.constant & by.constant};
    if (is_constant(&by) && by.constant == 31 && a.thread == 1 && !a.warp && !a.part && !a.other)
        return (mgl_ptx_form){.lane = 1};
    return take_part(a);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static mgl_ptx_form operand_form(mgl_ptx_forms *forms, const mgl_ptx_operand *operand, int depth)
{
    if (!operand)
        return unknown;
    if (operand->kind == MGL_PTX_NUMBER)
        return (mgl_ptx_form){.constant = operand->value};
    if (operand->kind == MGL_PTX_NAME)
        return (mgl_ptx_form){.base = true};
    if (operand->kind == MGL_PTX_REGISTER)
        return find_form(forms, operand->id, depth);
    if (mgl_ptx_equal(operand->text, "%tid.x"))
        return (mgl_ptx_form){.thread = 1};
    if (mgl_ptx_equal(operand->text, "%laneid"))
        return (mgl_ptx_form){.lane = 1};
    if (mgl_ptx_equal(operand->text, "%warpid"))
        return (mgl_ptx_form){.warp = 1};
    return (mgl_ptx_form){.base = true};
}

static bool is_any(const mgl_ptx_instruction *i, const char *const *roots)
{
    for (; *roots; roots++)
        if (mgl_ptx_is(i, *roots))
            return true;
    return false;
}

static mgl_ptx_form compute(mgl_ptx_forms *forms, const mgl_ptx_instruction *i, int depth)
{
    static const char *const copies[] = {"mov", "cvt", "cvta", "shfl", NULL};
    static const char *const parts[] = {"rem", "div", "bfe", "prmt", "brev", NULL};
    const mgl_ptx *ptx = forms->flow->ptx;
    mgl_ptx_form a = operand_form(forms, mgl_ptx_slot(ptx, i, 1), depth);
    if (is_any(i, copies))
        return a;
    if (mgl_ptx_is(i, "ld")) /* a load from a uniform address is uniform */
        return (mgl_ptx_form){.base = is_uniform(&a) && !a.other,
                              .other = !is_uniform(&a) || a.other};
    if (is_any(i, parts))
        return take_part(a);
    mgl_ptx_form b = operand_form(forms, mgl_ptx_slot(ptx, i, 2), depth);
    if (mgl_ptx_is(i, "add"))
        return add(a, b);
    if (mgl_ptx_is(i, "sub"))
        return add(a, scale(b, -1));
    if (mgl_ptx_is(i, "mul"))
        return multiply(a, b);
    if (mgl_ptx_is(i, "mad"))
        return add(multiply(a, b), operand_form(forms, mgl_ptx_slot(ptx, i, 3), depth));
    if (mgl_ptx_is(i, "shl") && is_constant(&b) && b.constant >= 0 && b.constant < 63)
        return scale(a, (int64_t)1 << b.constant);
    if (mgl_ptx_is(i, "shr"))
        return shift_right(a, b);
    if (mgl_ptx_is(i, "and"))
        return is_constant(&a) ? mask(b, a) : mask(a, b);
    if (mgl_ptx_is(i, "or"))
        return add(a, b);
    mgl_ptx_form out = add(a, b);
    if (mgl_ptx_is(i, "xor")) {
        out.swizzled = !is_uniform(&a) || !is_uniform(&b);
        return out;
    }
    return (mgl_ptx_form){.part = !is_uniform(&out), .swizzled = out.swizzled, .other = true};
}

static mgl_ptx_form find_form(mgl_ptx_forms *forms, int32_t id, int depth)
{
    const mgl_ptx_flow *flow = forms->flow;
    int32_t at = flow->writer[id];
    if (forms->state[id] == 2)
        return forms->forms[id];
    if (forms->state[id] == 1 || at == MGL_PTX_NONE || depth > MAX_CHAIN)
        return unknown;
    forms->state[id] = 1;
    for (int i = 0; i < 64; i++) {
        int32_t before = flow->next_writer[(uint32_t)at - flow->function->first];
        if (before == MGL_PTX_NONE)
            break;
        at = before;
    }
    const mgl_ptx_instruction *writer = &flow->ptx->instructions[at];
    forms->forms[id] =
        mgl_ptx_result(flow->ptx, writer) == id ? compute(forms, writer, depth + 1) : unknown;
    forms->state[id] = 2;
    return forms->forms[id];
}

mgl_ptx_form mgl_ptx_form_of(mgl_ptx_forms *forms, const mgl_ptx_operand *operand)
{
    return operand_form(forms, operand, 0);
}

/* ---- all registers --------------------------------------------------------------------------- */

mgl_status mgl_ptx_forms_make(const mgl_ptx_flow *flow, mgl_ptx_forms *out, mgl_error *err)
{
    size_t count = flow->ptx->register_list.count + 1;
    *out = (mgl_ptx_forms){.flow = flow};
    out->forms = mgl_alloc_zero(count, sizeof *out->forms);
    out->state = mgl_alloc_zero(count, 1);
    return out->forms && out->state ? MGL_OK : mgl_fail_memory(err, count * sizeof *out->forms);
}

void mgl_ptx_forms_clear(mgl_ptx_forms *forms)
{
    mgl_free(forms->forms);
    mgl_free(forms->state);
    *forms = (mgl_ptx_forms){0};
}

static void write_term(const char *name, int64_t by, bool *plus, mgl_text *out)
{
    if (!by)
        return;
    mgl_text_format(out, "%s%s*%lld", *plus ? "+" : "", name, (long long)by);
    *plus = true;
}

void mgl_ptx_form_write(const mgl_ptx_form *form, mgl_text *out)
{
    bool plus = false;
    write_term("thread", form->thread, &plus, out);
    write_term("lane", form->lane, &plus, out);
    write_term("warp", form->warp, &plus, out);
    if (form->part)
        mgl_text_put(out, plus ? "+part" : "part");
    else if (!plus)
        mgl_text_put(out, form->other ? "unknown" : "uniform");
    if (form->swizzled)
        mgl_text_put(out, " xor");
}
