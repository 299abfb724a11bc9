/* Implements the queries on a parsed module: see ptx.h. */
#include "autotune/kernels/ptx/ptx.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

const char *mgl_ptx_space_name(mgl_ptx_space space)
{
    static const char *const names[] = {
#define MGL_X(name) #name,
        MGL_PTX_SPACES(MGL_X)
#undef MGL_X
    };
    return names[space];
}

void mgl_ptx_clear(mgl_ptx *ptx)
{
    mgl_free(ptx->text);
    mgl_free(ptx->functions);
    mgl_free(ptx->variables);
    mgl_free(ptx->registers);
    mgl_free(ptx->labels);
    mgl_free(ptx->instructions);
    mgl_free(ptx->operands);
    mgl_free(ptx->scopes);
    *ptx = (mgl_ptx){0};
}

bool mgl_ptx_equal(mgl_ptx_slice slice, const char *text)
{
    return mgl_text_is(slice.at, slice.length, text);
}

int mgl_ptx_compare(mgl_ptx_slice a, mgl_ptx_slice b)
{
    int order = memcmp(a.at, b.at, a.length < b.length ? a.length : b.length);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

bool mgl_ptx_modifier(const mgl_ptx_instruction *instruction, size_t index, mgl_ptx_slice *out)
{
    const char *at = instruction->name.at + instruction->root;
    const char *end = instruction->name.at + instruction->name.length;
    for (; at; index--) {
        at = memchr(at, '.', (size_t)(end - at));
        if (!at)
            return false;
        at++;
        if (!index)
            break;
    }
    const char *to = at;
    while (to < end && *to != '.' && *to != ' ' && *to != '\t' && *to != '\n')
        to++;
    *out = (mgl_ptx_slice){at, (uint32_t)(to - at)};
    return true;
}

bool mgl_ptx_has(const mgl_ptx_instruction *instruction, const char *part)
{
    mgl_ptx_slice modifier;
    for (size_t i = 0; mgl_ptx_modifier(instruction, i, &modifier); i++)
        if (mgl_ptx_equal(modifier, part))
            return true;
    return false;
}

bool mgl_ptx_is(const mgl_ptx_instruction *instruction, const char *root)
{
    return mgl_ptx_equal((mgl_ptx_slice){instruction->name.at, instruction->root}, root);
}

bool mgl_ptx_begins(const mgl_ptx_instruction *instruction, const char *words)
{
    size_t length = strlen(words);
    return instruction->name.length >= length && !memcmp(instruction->name.at, words, length) &&
           (instruction->name.length == length || strchr(".:", instruction->name.at[length]));
}

const mgl_ptx_operand *mgl_ptx_slot(const mgl_ptx *ptx, const mgl_ptx_instruction *instruction,
                                    int slot)
{
    const mgl_ptx_operand *operands = ptx->operands + instruction->first_operand;
    for (uint32_t i = 0; i < instruction->operand_count; i++)
        if (operands[i].slot == slot)
            return &operands[i];
    return NULL;
}
