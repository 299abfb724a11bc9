/*
 * Trip counts of loops from constants (induction variable analysis). The latch must branch on a
 * comparison of a register with a constant. Each iteration adds a constant to the register, and its
 * initial value is a constant. Implements mgl_ptx_count_trips of flow.h.
 */
#include "autotune/kernels/ptx/flow.h"

#include <string.h>

/* The known facts of the induction variable. */
typedef struct counter {
    bool has_start, has_step, unclear;
    int64_t start, step;
} counter;

static int32_t block_at(const mgl_ptx_flow *flow, int32_t instruction)
{
    return flow->block_of[(uint32_t)instruction - flow->function->first];
}

static bool is_number(const mgl_ptx_operand *operand)
{
    return operand && operand->kind == MGL_PTX_NUMBER &&
           !memchr(operand->text.at, '.', operand->text.length);
}

/* The single writer of a register; NULL: none or several. */
static const mgl_ptx_instruction *only_writer(const mgl_ptx_flow *flow, int32_t id)
{
    if (flow->writers[id] != 1)
        return NULL;
    return &flow->ptx->instructions[flow->writer[id]];
}

/* Follows moves from a register back to the induction variable: a register with two writers, or
 * an addition. */
static int32_t follow_moves(const mgl_ptx_flow *flow, int32_t id)
{
    for (int i = 0; i < 8; i++) {
        const mgl_ptx_instruction *writer = only_writer(flow, id);
        const mgl_ptx_operand *from = writer ? mgl_ptx_slot(flow->ptx, writer, 1) : NULL;
        if (!writer || !mgl_ptx_is(writer, "mov") || from->kind != MGL_PTX_REGISTER)
            break;
        id = from->id;
    }
    return id;
}

/* The constant that a writer adds to `base`, directly or through one other register; false: no
 * such constant. */
static bool find_step(const mgl_ptx_flow *flow, const mgl_ptx_instruction *writer, int32_t base,
                      int64_t *step)
{
    const mgl_ptx_operand *from = mgl_ptx_slot(flow->ptx, writer, 1);
    if (mgl_ptx_is(writer, "mov") && from && from->kind == MGL_PTX_REGISTER) {
        writer = only_writer(flow, follow_moves(flow, from->id));
        from = writer ? mgl_ptx_slot(flow->ptx, writer, 1) : NULL;
    }
    if (!writer || !from || from->id != base || from->kind != MGL_PTX_REGISTER)
        return false;
    const mgl_ptx_operand *by = mgl_ptx_slot(flow->ptx, writer, 2);
    if (!is_number(by) || (!mgl_ptx_is(writer, "add") && !mgl_ptx_is(writer, "sub")))
        return false;
    *step = mgl_ptx_is(writer, "add") ? by->value : -by->value;
    return *step > -(1 << 30) && *step < 1 << 30;
}

static void take_writer(const mgl_ptx_flow *flow, int32_t at, int32_t loop, int32_t base,
                        counter *out)
{
    const mgl_ptx_instruction *writer = &flow->ptx->instructions[at];
    const mgl_ptx_operand *from = mgl_ptx_slot(flow->ptx, writer, 1);
    bool inside = mgl_ptx_in_loop(flow, block_at(flow, at), loop);
    if (inside && !out->has_step && find_step(flow, writer, base, &out->step)) {
        out->has_step = true;
    } else if (!inside && !out->has_start && mgl_ptx_is(writer, "mov") && from) {
        const mgl_ptx_instruction *other =
            from->kind == MGL_PTX_REGISTER ? only_writer(flow, follow_moves(flow, from->id)) : NULL;
        if (other && mgl_ptx_is(other, "mov"))
            from = mgl_ptx_slot(flow->ptx, other, 1);
        out->has_start = is_number(from);
        out->start = from->value;
        out->unclear = out->unclear || !out->has_start;
    } else {
        out->unclear = true;
    }
}

/* Finds the induction variable of a compared register; *after: the incremented value is
 * compared. */
static counter find_counter(const mgl_ptx_flow *flow, int32_t compared, int32_t loop, bool *after)
{
    counter out = {0};
    int32_t base = compared;
    const mgl_ptx_instruction *writer = only_writer(flow, base);
    *after = false;
    if (writer && mgl_ptx_result(flow->ptx, writer) == base && mgl_ptx_is(writer, "add")) {
        const mgl_ptx_operand *from = mgl_ptx_slot(flow->ptx, writer, 1);
        if (!from || from->kind != MGL_PTX_REGISTER) {
            out.unclear = true;
            return out;
        }
        base = from->id;
        *after = true; /* the sum is compared */
    }
    int32_t at = flow->writer[base];
    for (int i = 0; at != MGL_PTX_NONE && i < 4; i++) {
        take_writer(flow, at, loop, base, &out);
        at = flow->next_writer[(uint32_t)at - flow->function->first];
    }
    out.unclear = out.unclear || flow->writers[base] != 2;
    return out;
}

/* Iterations of a do loop until the comparison fails; the first compared value is start + step. */
static int64_t count_rounds(const char *comparison, int64_t start, int64_t step, int64_t end)
{
    int64_t distance = end - start;
    if (step < 0) {
        step = -step;
        distance = -distance;
    }
    if (!strcmp(comparison, "ne"))
        return distance > 0 && distance % step == 0 ? distance / step : 0;
    bool equal = !strcmp(comparison, "le") || !strcmp(comparison, "ge") ||
                 !strcmp(comparison, "ls") || !strcmp(comparison, "hs");
    if (distance < 0)
        return 1;
    return equal ? distance / step + 1 : (distance + step - 1) / step;
}

/* The comparison under which the branch repeats the loop: "ge" with a negated guard is "lt". */
static const char *find_comparison(mgl_ptx_slice word, bool negated)
{
    static const char *const pairs[][2] = {{"ne", "eq"}, {"lt", "ge"}, {"le", "gt"}, {"lo", "hs"},
                                           {"ls", "hi"}, {"gt", "le"}, {"ge", "lt"}, {"eq", "ne"},
                                           {"hi", "ls"}, {"hs", "lo"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (mgl_ptx_equal(word, pairs[i][0]))
            return pairs[i][negated];
    return NULL;
}

static int64_t find_trips(const mgl_ptx_flow *flow, int32_t loop)
{
    const mgl_ptx_block *latch = &flow->blocks[flow->loops[loop].latch];
    const mgl_ptx_instruction *branch = &flow->ptx->instructions[latch->first + latch->count - 1];
    const mgl_ptx_instruction *test =
        branch->guard == MGL_PTX_NONE ? NULL : only_writer(flow, branch->guard);
    mgl_ptx_slice word;
    if (!test || !mgl_ptx_is(test, "setp") || !mgl_ptx_modifier(test, 0, &word))
        return 0;
    bool round = latch->next[0] == flow->loops[loop].header;
    const char *comparison = find_comparison(word, branch->guard_negated == round);
    const mgl_ptx_operand *left = mgl_ptx_slot(flow->ptx, test, 1);
    const mgl_ptx_operand *right = mgl_ptx_slot(flow->ptx, test, 2);
    if (!comparison || !left || left->kind != MGL_PTX_REGISTER || !is_number(right))
        return 0;
    bool after;
    counter c = find_counter(flow, left->id, loop, &after);
    bool large = right->value > INT32_MAX || right->value < INT32_MIN || c.start > INT32_MAX ||
                 c.start < INT32_MIN;
    if (c.unclear || !c.has_start || !c.has_step || !c.step || large || !strcmp(comparison, "eq"))
        return 0;
    return count_rounds(comparison, c.start, c.step, right->value);
}

void mgl_ptx_count_trips(mgl_ptx_flow *flow)
{
    for (int32_t i = 0; i < flow->loop_count; i++)
        flow->loops[i].trips = find_trips(flow, i);
}
