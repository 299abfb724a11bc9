/*
 * Implements ops.h: the ops as tables, generated from ops.def, and their lookup by number and name.
 */
#include "instructions/ops.h"

#include "base/aliases.h"
#include "base/text.h"

#include <string.h>

#define OPERANDS(...) __VA_ARGS__
#define ROW(name, space, dtype, ranges, out, optional, over)                                       \
    {name, MGL_SPACE_##space, MGL_OPERAND_##dtype, ranges, out, optional, over},
#define IN(name, space, dtype, ranges)       ROW(#name, space, dtype, ranges, false, false, NULL)
#define OUT(name, space, dtype, ranges)      ROW(#name, space, dtype, ranges, true, false, NULL)
#define OVER(in, name, space, dtype, ranges) ROW(#name, space, dtype, ranges, true, false, #in)
#define OPTIONAL(name, space, dtype, ranges) ROW(#name, space, dtype, ranges, true, true, NULL)
#define EXTRA(name, space, dtype, ranges)    ROW(#name, space, dtype, ranges, false, true, NULL)
#define MGL_OP(id, name, family, step, device, cpu, tape, segments, operands, meaning)             \
    static const mgl_operand operands_##id[] = {operands};
#include "instructions/ops.def"
#undef IN
#undef OUT
#undef OVER
#undef OPTIONAL
#undef EXTRA

/* Counts operands: inputs, required operands, and extra inputs. */
#define IN(...) +1
#define OUT(...)
#define OVER(...)
#define OPTIONAL(...)
#define EXTRA(...)
enum {
#define MGL_OP(id, name, family, step, device, cpu, tape, segments, operands, meaning)             \
    IN_COUNT_##id = 0 operands,
#include "instructions/ops.def"
};
#undef OUT
#undef OVER
#define OUT(...)  +1
#define OVER(...) +1
enum {
#define MGL_OP(id, name, family, step, device, cpu, tape, segments, operands, meaning)             \
    LEAST_COUNT_##id = 0 operands,
#include "instructions/ops.def"
};
#undef IN
#undef OUT
#undef OVER
#undef EXTRA
#define IN(...)
#define OUT(...)
#define OVER(...)
#define EXTRA(...) +1
enum {
#define MGL_OP(id, name, family, step, device, cpu, tape, segments, operands, meaning)             \
    EXTRA_COUNT_##id = 0 operands,
#include "instructions/ops.def"
};
#undef IN
#undef OUT
#undef OVER
#undef OPTIONAL
#undef EXTRA

static const mgl_op_info ops[] = {
#define MGL_OP(id, name, family, step, device, cpu, tape, segments, operands, meaning)             \
    {#name,                                                                                        \
     MGL_FAMILY_##family,                                                                          \
     MGL_STEP_##step,                                                                              \
     MGL_LAYOUT_##tape,                                                                            \
     segments,                                                                                     \
     IN_COUNT_##id,                                                                                \
     (int)(sizeof operands_##id / sizeof *operands_##id) - IN_COUNT_##id - EXTRA_COUNT_##id,       \
     LEAST_COUNT_##id - IN_COUNT_##id,                                                             \
     EXTRA_COUNT_##id,                                                                             \
     operands_##id,                                                                                \
     meaning},
#include "instructions/ops.def"
    {.name = "unknown", .family = MGL_FAMILY_COUNT, .step = MGL_STEP_NONE, .meaning = ""},
};

_Static_assert(MGL_OPERAND(norm_linear, x) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(linear_add, a) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(norm_swiglu, x) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(head, x) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(merge_add, part) == MGL_PRODUCT_INPUT,
               "what a product multiplies is its first input");
_Static_assert(MGL_OPERAND(merge_add, b) == MGL_OPERAND(linear_add, b) &&
                   MGL_OPERAND(merge_add, y) == MGL_OPERAND(linear_add, y) &&
                   MGL_OPERAND(merge_add, copy) == MGL_OPERAND(linear_add, copy) &&
                   MGL_OPERAND(merge_add, bias) == MGL_OPERAND(linear_add, bias),
               "merge_add has linear_add's operands, by number, but for what it multiplies");
_Static_assert(MGL_OPERAND(norm_linear, g) == MGL_PRODUCT_NORM &&
                   MGL_OPERAND(norm_swiglu, g) == MGL_PRODUCT_NORM &&
                   MGL_OPERAND(head, g) == MGL_PRODUCT_NORM,
               "the weight of its norm is the second");

_Static_assert(MGL_OPERAND(embed_gamma, embedding) == MGL_OPERAND(embed, embedding) &&
                   MGL_OPERAND(linear_add_gamma, a) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(linear_add_gamma, b) == MGL_OPERAND(linear_add, b),
               "ops that weigh have the inputs of those that do not, by number");
_Static_assert(MGL_OPERAND(rms_linear, n) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(rms_linear, s) == MGL_PRODUCT_SQUARES &&
                   MGL_OPERAND(rms_linear, y) == MGL_OPERAND(norm_linear, y) &&
                   MGL_OPERAND(rms_swiglu, n) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(rms_swiglu, s) == MGL_PRODUCT_SQUARES &&
                   MGL_OPERAND(rms_swiglu, y) == MGL_OPERAND(norm_swiglu, y) &&
                   MGL_OPERAND(rms_head, n) == MGL_PRODUCT_INPUT &&
                   MGL_OPERAND(rms_head, s) == MGL_PRODUCT_SQUARES &&
                   MGL_OPERAND(rms_head, logits) == MGL_OPERAND(head, logits) &&
                   MGL_OPERAND(rms_head, best_value) == MGL_OPERAND(head, best_value) &&
                   MGL_OPERAND(rms_head, best_id) == MGL_OPERAND(head, best_id) &&
                   MGL_OPERAND(rms_head, penalized) == MGL_OPERAND(head, penalized) &&
                   MGL_OPERAND(rms_head, counts) == MGL_OPERAND(head, counts) &&
                   MGL_OPERAND(rms_head, sequence) == MGL_OPERAND(head, sequence),
               "ops that scale have the outputs of those that norm, by number");

const char *mgl_space_name(mgl_space space)
{
    static const char *const names[] = {
#define MGL_X(id, name, what) name,
        MGL_SPACES(MGL_X)
#undef MGL_X
    };
    return names[space];
}

const char *mgl_layout_name(mgl_layout layout)
{
    static const char *const names[] = {"none", "g8", "g8x2"};
    return names[layout];
}

bool mgl_op_is_known(mgl_op op)
{
    return (unsigned)op < MGL_OP_COUNT;
}

const mgl_op_info *mgl_op_get(mgl_op op)
{
    return &ops[mgl_op_is_known(op) ? op : MGL_OP_COUNT];
}

bool mgl_op_parse(const char *name, size_t length, mgl_op *out)
{
    for (int i = 0; i < MGL_OP_COUNT; i++)
        if (mgl_text_is(name, length, ops[i].name))
            return *out = (mgl_op)i, true;
    const char *renamed = mgl_alias_new(MGL_ALIAS_OP, name, length);
    return renamed && mgl_op_parse(renamed, strlen(renamed), out);
}

const mgl_attention_operands *mgl_op_attention(mgl_op op)
{
#define APPENDS(op, split)                                                                         \
    {                                                                                              \
        MGL_OPERAND(op, q), MGL_OPERAND(op, k), MGL_OPERAND(op, v), MGL_OPERAND(op, rope),         \
            MGL_OPERAND(op, k_past), MGL_OPERAND(op, v_past), split, MGL_OPERAND(op, k_now),       \
            MGL_OPERAND(op, v_now), MGL_OPERAND(op, q_g), MGL_OPERAND(op, k_g)                     \
    }
    static const mgl_attention_operands whole = APPENDS(attend, MGL_NO_OPERAND);
    static const mgl_attention_operands tail = APPENDS(attend_tail, MGL_OPERAND(attend_tail, part));
    static const mgl_attention_operands past = {MGL_OPERAND(attend_past, q),
                                                MGL_NO_OPERAND,
                                                MGL_NO_OPERAND,
                                                MGL_OPERAND(attend_past, rope),
                                                MGL_OPERAND(attend_past, k_past),
                                                MGL_OPERAND(attend_past, v_past),
                                                MGL_OPERAND(attend_past, part),
                                                MGL_NO_OPERAND,
                                                MGL_NO_OPERAND,
                                                MGL_OPERAND(attend_past, q_g),
                                                MGL_NO_OPERAND};
    static const mgl_attention_operands rows = APPENDS(attend_rows, MGL_NO_OPERAND);
#undef APPENDS
    switch (op) {
    case MGL_OP_ATTEND:
        return &whole;
    case MGL_OP_ATTEND_TAIL:
        return &tail;
    case MGL_OP_ATTEND_ROWS:
        return &rows;
    default:
        return &past;
    }
}
