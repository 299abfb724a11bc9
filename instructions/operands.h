/*
 * The operands of each op by name, generated from ops.def: MGL_OPERAND(attend_past, k_past) is the
 * number of that operand. Inputs come before outputs, extra inputs last (mgl_task_place gives the
 * index among the task's regions). Plain C, and C++ that NVRTC compiles.
 */
#ifndef MGL_INSTRUCTIONS_OPERANDS_H
#define MGL_INSTRUCTIONS_OPERANDS_H

/* Two ops may have operands of the same name, so each op has a structure for its names. In C++
 * the structure contains an enumeration. In C it contains a byte for each operand, whose offset
 * is the number. */
#ifdef __cplusplus
#define OPERANDS(...)         enum { __VA_ARGS__ };
#define NAME(name)            name,
#define MGL_OPERAND(op, name) ((int)mgl_operands_of_##op::name)
#else
#include <stddef.h>
#define OPERANDS(...)         __VA_ARGS__
#define NAME(name)            char name;
#define MGL_OPERAND(op, name) ((int)offsetof(struct mgl_operands_of_##op, name))
#endif

#define IN(name, ...)       NAME(name)
#define OUT(name, ...)      NAME(name)
#define OVER(in, name, ...) NAME(name)
#define OPTIONAL(name, ...) NAME(name)
#define EXTRA(name, ...)    NAME(name)
#define MGL_OP(id, name, family, step, device, cpu, tape, segments, operands, meaning)             \
    struct mgl_operands_of_##name {                                                                \
        operands                                                                                   \
    };
#include "instructions/ops.def"
#undef OPERANDS
#undef NAME
#undef IN
#undef OUT
#undef OVER
#undef OPTIONAL
#undef EXTRA

enum {
    MGL_NO_OPERAND = -1,
    MGL_PRODUCT_INPUT = 0,  /* what a product multiplies: x, n, a of linear_add, or part of
                               merge_add */
    MGL_PRODUCT_NORM = 1,   /* g, in a product with a norm */
    MGL_PRODUCT_SQUARES = 1 /* s, in a product of a gamma_scaled input */
};

#endif
