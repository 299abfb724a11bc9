/*
 * Trip counts of loops from constants (induction variable analysis). A loop has a trip count if all
 * of the following hold:
 *
 *     the latch is the only block that leaves the loop or goes back to the header
 *     the latch branches on the comparison of a register with a constant
 *     the register is an induction variable plus a constant
 *     the induction variable starts at a constant, and each iteration adds a constant once
 *
 * The compiler may compare the induction variable before or after the addition, so the order of the
 * instructions decides which value the first iteration compares. Implements mgl_ptx_count_trips of
 * flow.h.
 */
#include "autotune/kernels/ptx/flow.h"

#include <string.h>

enum { MAX_CHAIN = 8 /* instructions between two registers */ };
static const int64_t max_step = INT64_C(1) << 30, max_value = INT64_C(1) << 40;

/* ---- instructions of an iteration ------------------------------------------------------------ */

static int32_t block_of(const mgl_ptx_flow *flow, const mgl_ptx_instruction *instruction)
{
    return flow
        ->block_of[(uint32_t)(instruction - flow->ptx->instructions) - flow->function->first];
}

/* Whether the instruction runs exactly once in each iteration. */
static bool runs_once(const mgl_ptx_flow *flow, const mgl_ptx_instruction *i, int32_t loop)
{
    int32_t block = block_of(flow, i);
    return i->guard == MGL_PTX_NONE && flow->blocks[block].depth == flow->loops[loop].depth &&
           mgl_ptx_in_loop(flow, block, loop) &&
           mgl_ptx_dominates(flow, block, flow->loops[loop].latch);
}

/* The order of two instructions that run once in each iteration. */
static bool runs_before(const mgl_ptx_flow *flow, const mgl_ptx_instruction *a,
                        const mgl_ptx_instruction *b)
{
    int32_t first = block_of(flow, a), second = block_of(flow, b);
    return first == second ? a < b : mgl_ptx_dominates(flow, first, second);
}

/* Whether the latch alone leaves the loop and alone goes back to the header. */
static bool ends_at_latch(const mgl_ptx_flow *flow, int32_t loop)
{
    const mgl_ptx_loop *l = &flow->loops[loop];
    for (int32_t b = l->header; b < l->latch; b++) {
        const mgl_ptx_block *block = &flow->blocks[b];
        const mgl_ptx_instruction *last = &flow->ptx->instructions[block->first + block->count - 1];
        if (!mgl_ptx_in_loop(flow, b, loop))
            continue;
        if (mgl_ptx_is(last, "ret") || mgl_ptx_is(last, "exit") || mgl_ptx_is(last, "brx"))
            return false;
        for (int n = 0; n < 2; n++)
            if (block->next[n] == l->header ||
                (block->next[n] != MGL_PTX_NONE && !mgl_ptx_in_loop(flow, block->next[n], loop)))
                return false;
    }
    return true;
}

/* ---- the induction variable ------------------------------------------------------------------ */

/* A number of the source operands; float literals have no point in PTX, but an 'f' or 'd'. */
static bool is_integer(const mgl_ptx_operand *operand)
{
    return operand && operand->kind == MGL_PTX_NUMBER &&
           (operand->text.length < 2 || !strchr("fFdD", operand->text.at[1])) &&
           !memchr(operand->text.at, '.', operand->text.length) && operand->value <= max_value &&
           operand->value >= -max_value;
}

/* The single writer of a register; NULL: none or several. */
static const mgl_ptx_instruction *only_writer(const mgl_ptx_flow *flow, int32_t id)
{
    return flow->writers[id] == 1 ? &flow->ptx->instructions[flow->writer[id]] : NULL;
}

/* Whether the instruction copies a register, with a constant added. */
static bool adds_constant(const mgl_ptx *ptx, const mgl_ptx_instruction *i, int32_t *from,
                          int64_t *by)
{
    const mgl_ptx_operand *source = mgl_ptx_slot(ptx, i, 1), *number = mgl_ptx_slot(ptx, i, 2);
    bool add = mgl_ptx_is(i, "add"), sub = mgl_ptx_is(i, "sub");
    if (!source || source->kind != MGL_PTX_REGISTER)
        return false;
    *from = source->id;
    *by = add || sub ? (number ? number->value : 0) : 0;
    if (sub)
        *by = -*by;
    return mgl_ptx_is(i, "mov") ||
           ((add || sub) && is_integer(number) && *by<max_step && * by> - max_step);
}

/* A register, traced back to the register `base` plus an offset within an iteration. `reader` is
 * the instruction that reads `base`. */
typedef struct traced {
    int32_t base;
    int64_t offset;
    const mgl_ptx_instruction *reader;
} traced;

/* Follows copies and additions back to a register with several writers. */
static bool trace(const mgl_ptx_flow *flow, int32_t loop, int32_t id,
                  const mgl_ptx_instruction *reader, traced *out)
{
    *out = (traced){id, 0, reader};
    for (int i = 0; i < MAX_CHAIN; i++) {
        const mgl_ptx_instruction *writer = only_writer(flow, out->base);
        int64_t by;
        if (!writer)
            return true;
        if (!runs_once(flow, writer, loop) || !adds_constant(flow->ptx, writer, &out->base, &by))
            return false;
        out->offset += by;
        out->reader = writer;
    }
    return false;
}

/* Whether the instruction runs each time that the loop is entered, and never within it. */
static bool runs_at_entry(const mgl_ptx_flow *flow, const mgl_ptx_instruction *i, int32_t loop)
{
    const mgl_ptx_loop *l = &flow->loops[loop];
    int32_t block = block_of(flow, i);
    if (i->guard != MGL_PTX_NONE || mgl_ptx_in_loop(flow, block, loop) ||
        !mgl_ptx_dominates(flow, block, l->header))
        return false;
    for (int32_t outer = 0; outer < flow->loop_count; outer++)
        if (flow->loops[outer].depth < l->depth && mgl_ptx_in_loop(flow, l->header, outer) &&
            !mgl_ptx_in_loop(flow, block, outer))
            return false;
    return true;
}

/* The constant that a move writes, directly or through one other register. */
static bool find_constant(const mgl_ptx_flow *flow, const mgl_ptx_instruction *move, int64_t *out)
{
    const mgl_ptx_operand *from = mgl_ptx_slot(flow->ptx, move, 1);
    const mgl_ptx_instruction *other =
        from && from->kind == MGL_PTX_REGISTER ? only_writer(flow, from->id) : NULL;
    if (!mgl_ptx_is(move, "mov"))
        return false;
    if (other && mgl_ptx_is(other, "mov") && other->guard == MGL_PTX_NONE)
        from = mgl_ptx_slot(flow->ptx, other, 1);
    *out = from ? from->value : 0;
    return is_integer(from);
}

typedef struct counter {
    int64_t start, step;
    const mgl_ptx_instruction *update; /* writes the next value in each iteration */
} counter;

/* An induction variable has two writers: one before the loop, one in each iteration. */
static bool find_counter(const mgl_ptx_flow *flow, int32_t loop, int32_t base, counter *out)
{
    bool has_start = false, has_step = false;
    if (flow->writers[base] != 2)
        return false;
    for (int32_t at = flow->writer[base]; at != MGL_PTX_NONE;
         at = flow->next_writer[(uint32_t)at - flow->function->first]) {
        const mgl_ptx_instruction *writer = &flow->ptx->instructions[at];
        int32_t from;
        traced next;
        if (mgl_ptx_result(flow->ptx, writer) != base)
            return false;
        if (runs_at_entry(flow, writer, loop)) {
            has_start = find_constant(flow, writer, &out->start);
        } else if (runs_once(flow, writer, loop) &&
                   adds_constant(flow->ptx, writer, &from, &out->step) &&
                   trace(flow, loop, from, writer, &next)) {
            out->step += next.offset;
            out->update = writer;
            has_step = next.base == base && out->step;
        }
    }
    return has_start && has_step;
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* Relations in pairs: the negation of relation r is r ^ 1. */
typedef enum relation { EQ, NE, LT, GE, LE, GT } relation;

/* The comparison under which the latch repeats the loop, and the values of its type. */
typedef struct comparison {
    relation relation;
    int64_t least, most;
} comparison;

static bool find_relation(mgl_ptx_slice word, relation *out)
{
    static const char *const words[][2] = {{"eq", "eq"}, {"ne", "ne"}, {"lt", "lo"},
                                           {"ge", "hs"}, {"le", "ls"}, {"gt", "hi"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mgl_ptx_equal(word, words[i][0]) || mgl_ptx_equal(word, words[i][1])) {
            *out = (relation)i;
            return true;
        }
    return false;
}

/* Reads for example setp.lt.u32, of integers, without a second predicate. */
static bool read_comparison(const mgl_ptx_instruction *test, bool negated, comparison *out)
{
    mgl_ptx_slice word, type, more;
    if (!mgl_ptx_is(test, "setp") || !mgl_ptx_modifier(test, 0, &word) ||
        !mgl_ptx_modifier(test, 1, &type) || mgl_ptx_modifier(test, 2, &more) ||
        !find_relation(word, &out->relation))
        return false;
    bool is_signed = *type.at == 's', small = type.length == 3 && !memcmp(type.at + 1, "16", 2);
    bool large = type.length == 3 && !memcmp(type.at + 1, "64", 2);
    if (type.length != 3 || !strchr("sub", *type.at))
        return false;
    int bits = small ? 16 : large ? 42 : 32; /* values of 64 bits are at most max_value */
    if (*word.at == 'l' || *word.at == 'h')  /* lo, ls, hi and hs compare without a sign */
        is_signed = is_signed && word.at[1] != 'o' && word.at[1] != 's' && word.at[1] != 'i';
    out->least =
        is_signed || (*type.at == 'b' && out->relation <= NE) ? -(INT64_C(1) << (bits - 1)) : 0;
    out->most = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    out->relation = (relation)(out->relation ^ (unsigned)negated);
    return true;
}

static bool holds(relation r, int64_t a, int64_t b)
{
    switch (r) {
    case EQ:
        return a == b;
    case NE:
        return a != b;
    case LT:
        return a < b;
    case GE:
        return a >= b;
    case LE:
        return a <= b;
    default:
        return a > b;
    }
}

/* The iterations until the comparison with `end` fails, if the first one compares `first`; 0: the
 * comparison never fails, or fails only after an overflow. */
static int64_t count_rounds(const comparison *c, int64_t first, int64_t step, int64_t end)
{
    bool up = step > 0;
    int64_t distance = up ? end - first : first - end, size = up ? step : -step, more;
    if (first < c->least || first > c->most || end < c->least || end > c->most)
        return 0;
    if (!holds(c->relation, first, end))
        return 1;
    if (c->relation == EQ)
        more = 1;
    else if (c->relation == NE)
        more = distance > 0 && distance % size == 0 ? distance / size : 0;
    else if (up != (c->relation == LT || c->relation == LE))
        more = 0;
    else if (c->relation == LT || c->relation == GT)
        more = (distance + size - 1) / size;
    else
        more = distance / size + 1;
    int64_t last = first + more * step;
    return more && last >= c->least && last <= c->most ? more + 1 : 0;
}

static int64_t find_trips(const mgl_ptx_flow *flow, int32_t loop)
{
    const mgl_ptx_block *latch = &flow->blocks[flow->loops[loop].latch];
    const mgl_ptx_instruction *branch = &flow->ptx->instructions[latch->first + latch->count - 1];
    const mgl_ptx_instruction *test =
        branch->guard == MGL_PTX_NONE ? NULL : only_writer(flow, branch->guard);
    comparison c;
    traced compared;
    counter v;
    bool repeats = latch->next[0] == flow->loops[loop].header;
    if (!test || latch->next[0] == latch->next[1] || !runs_once(flow, test, loop) ||
        !read_comparison(test, branch->guard_negated == repeats, &c) || !ends_at_latch(flow, loop))
        return 0;
    const mgl_ptx_operand *left = mgl_ptx_slot(flow->ptx, test, 1);
    const mgl_ptx_operand *right = mgl_ptx_slot(flow->ptx, test, 2);
    if (!left || left->kind != MGL_PTX_REGISTER || !is_integer(right) ||
        !trace(flow, loop, left->id, test, &compared) ||
        !find_counter(flow, loop, compared.base, &v))
        return 0;
    bool updated = runs_before(flow, v.update, compared.reader);
    int64_t first = v.start + compared.offset + (updated ? v.step : 0);
    return count_rounds(&c, first, v.step, right->value);
}

void mgl_ptx_count_trips(mgl_ptx_flow *flow)
{
    for (int32_t i = 0; i < flow->loop_count; i++)
        flow->loops[i].trips = find_trips(flow, i);
}
