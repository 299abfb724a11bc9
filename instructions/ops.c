/*
 * The list of ops as tables: everything here is made from ops.def.
 */
#include "schedule/program.h"

#include <string.h>

#define OPERANDS(...) __VA_ARGS__
#define IN(name, space, dtype, ranges)                                                             \
    {#name, MGL_SPACE_##space, MGL_OPERAND_##dtype, ranges, false, false},
#define OUT(name, space, dtype, ranges)                                                            \
    {#name, MGL_SPACE_##space, MGL_OPERAND_##dtype, ranges, true, false},
#define OPTIONAL(name, space, dtype, ranges)                                                       \
    {#name, MGL_SPACE_##space, MGL_OPERAND_##dtype, ranges, true, true},
#define MGL_OP(id, name, tape, operands, meaning)                                                  \
    static const mgl_operand operands_##id[] = {operands};
#include "instructions/ops.def"
#undef MGL_OP
#undef IN
#undef OUT
#undef OPTIONAL

/* Counts operands: inputs, and those that every task has. */
#define IN(name, space, dtype, ranges) +1
#define OUT(name, space, dtype, ranges)
#define OPTIONAL(name, space, dtype, ranges)
enum {
#define MGL_OP(id, name, tape, operands, meaning) IN_COUNT_##id = 0 operands,
#include "instructions/ops.def"
#undef MGL_OP
};
#undef OUT
#define OUT(name, space, dtype, ranges) +1
enum {
#define MGL_OP(id, name, tape, operands, meaning) LEAST_COUNT_##id = 0 operands,
#include "instructions/ops.def"
#undef MGL_OP
};
#undef IN
#undef OUT
#undef OPTIONAL

static const mgl_op_info ops[] = {
#define MGL_OP(id, name, tape, operands, meaning)                                                  \
    {name,                                                                                         \
     MGL_LAYOUT_##tape,                                                                            \
     IN_COUNT_##id,                                                                                \
     (int)(sizeof operands_##id / sizeof *operands_##id) - IN_COUNT_##id,                          \
     LEAST_COUNT_##id - IN_COUNT_##id,                                                             \
     operands_##id,                                                                                \
     meaning},
#include "instructions/ops.def"
#undef MGL_OP
};

const mgl_op_info *mgl_op_get(mgl_op op)
{
    return &ops[op];
}

bool mgl_op_parse(const char *name, size_t length, mgl_op *out)
{
    for (int i = 0; i < MGL_OP_COUNT; i++)
        if (strlen(ops[i].name) == length && !memcmp(ops[i].name, name, length))
            return *out = (mgl_op)i, true;
    return false;
}
