/*
 * Parsed PTX: the declarations of a module and all instructions with their operands, in flat arrays
 * that point into one copy of the text. Input: PTX as compilers write it. The format follows
 * NVIDIA, "Parallel Thread Execution ISA", sections 4, 5 and 8. Content without effect on the code
 * is dropped: comments, line tables, debug sections and initializers. (Compilers mark inline
 * assembly with comments.) All tools of this folder work on this form.
 *
 * A name refers to the declaration in the innermost enclosing block. Registers are numbers: if two
 * blocks of inline assembly both declare `p`, these are two registers.
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
    MGL_PTX_MAX_BYTES = 16 << 20, /* per text */
    MGL_PTX_MAX_DEPTH = 64,       /* nesting depth of blocks */
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
    MGL_PTX_SPECIAL,  /* %tid.x and others (section 10) */
    MGL_PTX_NUMBER,   /* the number is in `value` if it is an integer */
    MGL_PTX_NAME      /* of a variable, function or label */
} mgl_ptx_kind;

/* One operand, or one part of a vector or of an address. */
typedef struct mgl_ptx_operand {
    mgl_ptx_slice text;
    mgl_ptx_kind kind;
    bool address;  /* within [ ] */
    uint16_t slot; /* index of the operand in its instruction, from 0; all parts of an operand have
                    * the same index */
    int32_t id;    /* number of a register */
    int64_t value; /* value of a number, or the offset after a name or register */
} mgl_ptx_operand;

typedef struct mgl_ptx_instruction {
    mgl_ptx_slice name; /* "ld.global.v4.u32": the whole mnemonic */
    uint32_t root;      /* bytes of "ld" in `name` */
    uint32_t first_operand, operand_count;
    int32_t guard; /* register of the predicate, or MGL_PTX_NONE */
    bool guard_negated;
    int32_t scope; /* the enclosing block */
    int32_t line;
} mgl_ptx_instruction;

typedef struct mgl_ptx_label {
    mgl_ptx_slice name;
    int32_t scope;
    uint32_t at; /* the instruction after the label */
} mgl_ptx_label;

typedef struct mgl_ptx_variable {
    mgl_ptx_slice name;
    mgl_ptx_space space;
    int32_t function; /* the function that declares it; MGL_PTX_NONE: the module */
    int64_t bytes;    /* 0: the size is set by another module or the launch */
    int32_t line;
} mgl_ptx_variable;

typedef struct mgl_ptx_function {
    mgl_ptx_slice name;
    bool entry, has_body;
    uint32_t first, count; /* instructions */
    int32_t line;
    int64_t max_threads; /* product of .maxntid or .reqntid; 0: not given */
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
    int32_t *scopes; /* the enclosing block of each; MGL_PTX_NONE: none */
    mgl_ptx_list function_list, variable_list, register_list, label_list, instruction_list,
        operand_list, scope_list;
} mgl_ptx;

/* Whether the first word after comments is `.version`. Messages may quote such a text. */
bool mgl_ptx_is_module(const char *text, size_t length);
/* MGL_BAD_INPUT if the text is not PTX, with "file:line:column" and the line. */
mgl_status mgl_ptx_parse(const char *text, size_t length, const char *file, mgl_ptx *out,
                         mgl_error *err);
void mgl_ptx_clear(mgl_ptx *ptx);

bool mgl_ptx_equal(mgl_ptx_slice slice, const char *text);
/* Order of the bytes: negative, 0 or positive. */
int mgl_ptx_compare(mgl_ptx_slice a, mgl_ptx_slice b);
/* Whether `part` is a modifier of the mnemonic, such as "v4" in "ld.v4.u32". */
bool mgl_ptx_has(const mgl_ptx_instruction *instruction, const char *part);
/* The index-th modifier, from 0; false past the end. "L2::cache_hint" is one modifier. */
bool mgl_ptx_modifier(const mgl_ptx_instruction *instruction, size_t index, mgl_ptx_slice *out);
/* Whether the first word of the mnemonic is `root`. */
bool mgl_ptx_is(const mgl_ptx_instruction *instruction, const char *root);
/* Whether the mnemonic starts with these whole words, such as "cp.async.bulk". */
bool mgl_ptx_begins(const mgl_ptx_instruction *instruction, const char *words);
/* The first part of an operand; NULL: no such operand. */
const mgl_ptx_operand *mgl_ptx_slot(const mgl_ptx *ptx, const mgl_ptx_instruction *instruction,
                                    int slot);

#endif
