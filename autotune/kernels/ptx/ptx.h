/*
 * PTX as compilers write it, in memory: what the module declares, and every instruction with its
 * operands, in flat arrays that point into one copy of the text. The form is that of the PTX ISA
 * (NVIDIA, "Parallel Thread Execution ISA", sections 4, 5 and 8). What says nothing of the code is
 * dropped: comments, which is also how compilers mark inline assembly, line tables, debug sections
 * and initialisers.
 *
 * A name means what the innermost block that declares it says. So registers are numbers here: two
 * blocks of inline assembly that both declare `p` have two registers.
 *
 *     mgl_ptx ptx;
 *     if (!mgl_ptx_parse(text, length, "kernel.ptx", &ptx, &err)) {
 *         ... ptx.instructions[i], mgl_ptx_is(&ptx.instructions[i], "ld") ...
 *     }
 *     mgl_ptx_clear(&ptx);
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_PTX_H
#define MGL_AUTOTUNE_KERNELS_PTX_PTX_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MGL_PTX_MAX_BYTES = 16 << 20, /* of a text */
    MGL_PTX_MAX_DEPTH = 64,       /* of blocks in blocks */
    MGL_PTX_NONE = -1
};

/* A piece of the text. */
typedef struct mgl_ptx_slice {
    const char *at;
    uint32_t length; /* bytes */
} mgl_ptx_slice;

/* State spaces (section 5.1): X(name) */
#define MGL_PTX_SPACES(X)                                                                          \
    X(generic)                                                                                     \
    X(global)                                                                                      \
    X(shared)                                                                                      \
    X(local)                                                                                       \
    X(const)                                                                                       \
    X(param)
typedef enum mgl_ptx_space {
#define MGL_X(name) MGL_PTX_##name,
    MGL_PTX_SPACES(MGL_X)
#undef MGL_X
        MGL_PTX_SPACE_COUNT
} mgl_ptx_space;
const char *mgl_ptx_space_name(mgl_ptx_space space);

typedef enum mgl_ptx_kind {
    MGL_PTX_REGISTER, /* `id` is its number */
    MGL_PTX_SPECIAL,  /* %tid.x and its like (section 10) */
    MGL_PTX_NUMBER,   /* `value`, where it is an integer */
    MGL_PTX_NAME      /* of a variable, function or label */
} mgl_ptx_kind;

/* One operand, or one part of a vector or of an address. */
typedef struct mgl_ptx_operand {
    mgl_ptx_slice text;
    mgl_ptx_kind kind;
    bool address;  /* within [ ] */
    uint16_t slot; /* which operand of its instruction, from 0: equal for the parts of one */
    int32_t id;    /* of a register */
    int64_t value; /* of a number; behind a name or register: what is added */
} mgl_ptx_operand;

typedef struct mgl_ptx_instruction {
    mgl_ptx_slice name; /* "ld.global.v4.u32": the whole mnemonic */
    uint32_t root;      /* bytes of "ld" in it */
    uint32_t first_operand, operand_count;
    int32_t guard; /* register of the predicate, or MGL_PTX_NONE */
    bool guard_negated;
    int32_t scope; /* the block it stands in */
    int32_t line;
    const char *end; /* behind its ; */
} mgl_ptx_instruction;

typedef struct mgl_ptx_label {
    mgl_ptx_slice name;
    int32_t scope;
    uint32_t at;     /* the instruction behind it */
    const char *end; /* of its line: behind the colon */
} mgl_ptx_label;

typedef struct mgl_ptx_variable {
    mgl_ptx_slice name;
    mgl_ptx_space space;
    int32_t function; /* whose body declares it; MGL_PTX_NONE: the module */
    int64_t bytes;    /* 0: another module, or the launch, says how many */
    int64_t align;
    int32_t line;
    bool external;
} mgl_ptx_variable;

typedef struct mgl_ptx_function {
    mgl_ptx_slice name;
    bool entry, has_body;
    uint32_t first, count; /* instructions */
    int32_t line;
    int64_t max_threads; /* .maxntid or .reqntid, their product; 0: not said */
} mgl_ptx_function;

typedef struct mgl_ptx_register {
    mgl_ptx_slice class; /* "f32", "pred" */
    int32_t function;
} mgl_ptx_register;

typedef struct mgl_ptx_list {
    size_t count, capacity;
} mgl_ptx_list;

typedef struct mgl_ptx {
    char *text; /* owned; all slices point into it */
    size_t length;
    mgl_ptx_slice version, target; /* "9.0", "sm_90a" */
    mgl_ptx_function *functions;
    mgl_ptx_variable *variables;
    mgl_ptx_register *registers;
    mgl_ptx_label *labels;
    mgl_ptx_instruction *instructions;
    mgl_ptx_operand *operands;
    int32_t *scopes; /* the block around each; MGL_PTX_NONE of an outermost one */
    mgl_ptx_list function_list, variable_list, register_list, label_list, instruction_list,
        operand_list, scope_list;
} mgl_ptx;

/* Whether the first word that is no comment is `.version`. Messages may quote such a text. */
bool mgl_ptx_is_module(const char *text, size_t length);
/* Failing with "file:line:column" and the line itself, what is no PTX is MGL_BAD_INPUT. */
mgl_status mgl_ptx_parse(const char *text, size_t length, const char *file, mgl_ptx *out,
                         mgl_error *err);
void mgl_ptx_clear(mgl_ptx *ptx);

bool mgl_ptx_equal(mgl_ptx_slice slice, const char *text);
/* Is `part` one of the modifiers of a mnemonic, "v4" of "ld.v4.u32"? */
bool mgl_ptx_has(const mgl_ptx_instruction *instruction, const char *part);
/* The index-th modifier, from 0; false behind the last. "L2::cache_hint" is one. */
bool mgl_ptx_modifier(const mgl_ptx_instruction *instruction, size_t index, mgl_ptx_slice *out);
/* Is its first word `root`? */
bool mgl_ptx_is(const mgl_ptx_instruction *instruction, const char *root);
/* Does the mnemonic begin with these whole words: "cp.async.bulk"? */
bool mgl_ptx_begins(const mgl_ptx_instruction *instruction, const char *words);
/* The first part of an operand; NULL: there is no such operand. */
const mgl_ptx_operand *mgl_ptx_slot(const mgl_ptx *ptx, const mgl_ptx_instruction *instruction,
                                    int slot);
/* How many parts a slot has. */
int mgl_ptx_slot_width(const mgl_ptx *ptx, const mgl_ptx_instruction *instruction, int slot);

#endif
