/* Parses function bodies: blocks, registers, labels and instructions (sections 4.3.1 and 9.3). */
#include "autotune/kernels/ptx/parse.h"

#include "base/memory.h"

#include <ctype.h>
#include <string.h>

enum { MAX_REGISTERS = 4 << 20, MAX_OPERANDS = 4096 /* per instruction */ };

/* ---- registers ------------------------------------------------------------------------------- */

static mgl_status add_registers(mgl_ptx_parser *p, mgl_ptx_slice class, int64_t count)
{
    mgl_ptx *ptx = p->ptx;
    if (count < 0 || count > MAX_REGISTERS - (int64_t)ptx->register_list.count)
        return mgl_ptx_complain(p, "these are too many registers");
    for (int64_t i = 0; i < count; i++) {
        if (!MGL_PTX_GROW(p, registers, register_list))
            return mgl_fail_memory(p->err, sizeof *ptx->registers);
        ptx->registers[ptx->register_list.count++] = (mgl_ptx_register){class, p->function};
    }
    return MGL_OK;
}

/* Declares one name after .reg: %p, or %r<12>. */
static mgl_status declare_register(mgl_ptx_parser *p, mgl_ptx_slice class)
{
    int64_t count = 1;
    int32_t base = (int32_t)p->ptx->register_list.count;
    size_t name = mgl_ptx_names_find(&p->names, p->lexer.word);
    if (name == SIZE_MAX || !mgl_ptx_names_save(&p->names, name))
        return mgl_fail_memory(p->err, sizeof *p->names.names);
    mgl_ptx_lex(&p->lexer);
    bool stem = mgl_ptx_at(p, "<");
    if (stem) {
        mgl_ptx_lex(&p->lexer);
        if (!mgl_ptx_integer(p->lexer.word, &count))
            return mgl_ptx_complain(p, "here the number of registers belongs");
        mgl_ptx_lex(&p->lexer);
        mgl_status status = mgl_ptx_expect(p, ">", "here the > of the registers belongs");
        if (status)
            return status;
        p->names.names[name].base = base;
        p->names.names[name].most = count;
    } else {
        p->names.names[name].id = base;
    }
    return add_registers(p, class, count);
}

static mgl_status parse_registers(mgl_ptx_parser *p)
{
    mgl_status status = MGL_OK;
    mgl_ptx_lex(&p->lexer);
    mgl_ptx_slice class = {p->lexer.word.at + 1, p->lexer.word.length - 1};
    if (p->lexer.kind != MGL_PTX_WORD_DIRECTIVE)
        return mgl_ptx_complain(p, "here the type of the registers belongs");
    while (!status && !mgl_ptx_at(p, ";")) {
        while (p->lexer.kind == MGL_PTX_WORD_DIRECTIVE || mgl_ptx_at(p, ","))
            mgl_ptx_lex(&p->lexer); /* .v2 .f32 */
        if (p->lexer.kind != MGL_PTX_WORD_NAME)
            return mgl_ptx_complain(p, "here the name of a register belongs");
        status = declare_register(p, class);
    }
    if (!status)
        mgl_ptx_lex(&p->lexer);
    return status;
}

/* Register %r12 of a stem %r; MGL_PTX_NONE: none. */
static int32_t find_numbered(mgl_ptx_parser *p, mgl_ptx_slice text)
{
    int64_t number;
    mgl_ptx_slice stem = text;
    while (stem.length && isdigit((unsigned char)stem.at[stem.length - 1]))
        stem.length--;
    mgl_ptx_slice digits = {text.at + stem.length, text.length - stem.length};
    if (!stem.length || !digits.length || (digits.length > 1 && *digits.at == '0') ||
        !mgl_ptx_integer(digits, &number))
        return MGL_PTX_NONE;
    size_t name = mgl_ptx_names_find(&p->names, stem);
    if (name == SIZE_MAX || number < 0 || number >= p->names.names[name].most)
        return MGL_PTX_NONE;
    return p->names.names[name].base + (int32_t)number;
}

static int32_t find_register(mgl_ptx_parser *p, mgl_ptx_slice text)
{
    int32_t numbered = find_numbered(p, text);
    if (numbered != MGL_PTX_NONE)
        return numbered;
    size_t name = mgl_ptx_names_find(&p->names, text);
    return name == SIZE_MAX ? MGL_PTX_NONE : p->names.names[name].id;
}

/* ---- operands -------------------------------------------------------------------------------- */

typedef struct place {
    uint16_t slot;
    bool address;
    bool begun; /* an operand was read after the last comma or bracket */
    int open;   /* open brackets of all kinds */
} place;

static mgl_ptx_operand read_operand(mgl_ptx_parser *p, const place *at)
{
    mgl_ptx_operand operand = {.text = p->lexer.word, .address = at->address, .slot = at->slot};
    operand.id = MGL_PTX_NONE;
    operand.kind = MGL_PTX_NUMBER;
    if (p->lexer.kind == MGL_PTX_WORD_NUMBER) {
        mgl_ptx_integer(p->lexer.word, &operand.value);
        return operand;
    }
    operand.id = find_register(p, p->lexer.word);
    if (operand.id != MGL_PTX_NONE)
        operand.kind = MGL_PTX_REGISTER;
    else
        operand.kind = *p->lexer.word.at == '%' ? MGL_PTX_SPECIAL : MGL_PTX_NAME;
    return operand;
}

/* Adds an operand; with a preceding sign, adds an offset to the previous operand: [%rd1+-16]. */
static mgl_status take_operand(mgl_ptx_parser *p, const place *at, int sign, bool added)
{
    mgl_ptx *ptx = p->ptx;
    mgl_ptx_operand operand = read_operand(p, at);
    if (sign < 0)
        operand.value = (int64_t)(0 - (uint64_t)operand.value);
    if (added && operand.kind == MGL_PTX_NUMBER) {
        mgl_ptx_operand *last = &ptx->operands[ptx->operand_list.count - 1];
        last->value = (int64_t)((uint64_t)last->value + (uint64_t)operand.value);
    } else {
        if (!MGL_PTX_GROW(p, operands, operand_list))
            return mgl_fail_memory(p->err, sizeof operand);
        ptx->operands[ptx->operand_list.count++] = operand;
    }
    mgl_ptx_lex(&p->lexer);
    return MGL_OK;
}

/* Handles a mark; false: the word is not a mark. */
static bool take_mark(mgl_ptx_parser *p, place *at)
{
    if (p->lexer.kind != MGL_PTX_WORD_MARK)
        return false;
    char c = *p->lexer.word.at;
    if (strchr("{([", c))
        at->open++;
    else if (strchr("})]", c))
        at->open--;
    else if (c == ',' && !at->open)
        at->slot++;
    else if (!strchr("|!,=~<>", c))
        return false;
    at->address = c == '[' || (at->address && c != ']');
    at->begun = false;
    mgl_ptx_lex(&p->lexer);
    return at->open >= 0 && at->open < MGL_PTX_MAX_DEPTH;
}

/* Skips + and - before an operand. A sign directly after an operand adds to it. */
static int take_signs(mgl_ptx_parser *p, const place *at, bool *added)
{
    int sign = 1;
    *added = false;
    while (mgl_ptx_at(p, "+") || mgl_ptx_at(p, "-")) {
        *added = at->begun;
        if (mgl_ptx_at(p, "-"))
            sign = -sign;
        mgl_ptx_lex(&p->lexer);
    }
    return sign;
}

static mgl_status parse_operands(mgl_ptx_parser *p, mgl_ptx_instruction *out)
{
    place at = {0};
    mgl_ptx *ptx = p->ptx;
    out->first_operand = (uint32_t)ptx->operand_list.count;
    while (!mgl_ptx_at(p, ";") || at.open) {
        bool added;
        if (take_mark(p, &at))
            continue;
        int sign = take_signs(p, &at, &added);
        bool operand = p->lexer.kind == MGL_PTX_WORD_NAME || p->lexer.kind == MGL_PTX_WORD_NUMBER;
        if (!operand || ptx->operand_list.count - out->first_operand >= MAX_OPERANDS)
            return mgl_ptx_complain(p, "here an operand, or the ; of the instruction, belongs");
        mgl_status status = take_operand(p, &at, sign, added);
        if (status)
            return status;
        at.begun = true;
    }
    out->operand_count = (uint32_t)ptx->operand_list.count - out->first_operand;
    mgl_ptx_lex(&p->lexer);
    return MGL_OK;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* @!%p3 */
static mgl_status parse_guard(mgl_ptx_parser *p, mgl_ptx_instruction *out)
{
    out->guard = MGL_PTX_NONE;
    if (!mgl_ptx_at(p, "@"))
        return MGL_OK;
    mgl_ptx_lex(&p->lexer);
    out->guard_negated = mgl_ptx_at(p, "!");
    if (out->guard_negated)
        mgl_ptx_lex(&p->lexer);
    out->guard = find_register(p, p->lexer.word);
    if (p->lexer.kind != MGL_PTX_WORD_NAME || out->guard == MGL_PTX_NONE)
        return mgl_ptx_complain(p, "here a predicate that is declared belongs");
    mgl_ptx_lex(&p->lexer);
    return MGL_OK;
}

static mgl_status parse_instruction(mgl_ptx_parser *p)
{
    mgl_ptx_instruction instruction = {.scope = p->scope, .line = p->lexer.source.number};
    mgl_status status = parse_guard(p, &instruction);
    if (status)
        return status;
    if (p->lexer.kind != MGL_PTX_WORD_NAME)
        return mgl_ptx_complain(p, "here an instruction belongs");
    instruction.name = p->lexer.word;
    const char *point = memchr(instruction.name.at, '.', instruction.name.length);
    instruction.root = point ? (uint32_t)(point - instruction.name.at) : instruction.name.length;
    mgl_ptx_lex(&p->lexer);
    while (p->lexer.kind == MGL_PTX_WORD_DIRECTIVE) { /* written with blanks: ld .global */
        instruction.name.length =
            (uint32_t)(p->lexer.word.at + p->lexer.word.length - instruction.name.at);
        mgl_ptx_lex(&p->lexer);
    }
    status = parse_operands(p, &instruction);
    if (status)
        return status;
    if (!MGL_PTX_GROW(p, instructions, instruction_list))
        return mgl_fail_memory(p->err, sizeof instruction);
    p->ptx->instructions[p->ptx->instruction_list.count++] = instruction;
    return MGL_OK;
}

/* ---- labels and blocks ----------------------------------------------------------------------- */

static mgl_status add_label(mgl_ptx_parser *p, mgl_ptx_slice name)
{
    mgl_ptx *ptx = p->ptx;
    mgl_ptx_lex(&p->lexer);
    if (p->lexer.kind == MGL_PTX_WORD_DIRECTIVE &&
        (mgl_ptx_at(p, ".callprototype") || mgl_ptx_at(p, ".branchtargets") ||
         mgl_ptx_at(p, ".calltargets")))
        return mgl_ptx_skip(p, ";");
    if (!MGL_PTX_GROW(p, labels, label_list))
        return mgl_fail_memory(p->err, sizeof *ptx->labels);
    ptx->labels[ptx->label_list.count++] =
        (mgl_ptx_label){name, p->scope, (uint32_t)ptx->instruction_list.count};
    return MGL_OK;
}

/* Whether the current name is followed by a colon. */
static bool is_label(const mgl_ptx_parser *p)
{
    if (p->lexer.kind != MGL_PTX_WORD_NAME)
        return false;
    mgl_ptx_lexer ahead = p->lexer;
    mgl_ptx_lex(&ahead);
    return ahead.kind == MGL_PTX_WORD_MARK && *ahead.word.at == ':';
}

static mgl_status parse_label(mgl_ptx_parser *p)
{
    mgl_ptx_slice name = p->lexer.word;
    mgl_ptx_lex(&p->lexer);
    return add_label(p, name);
}

static mgl_status parse_directive(mgl_ptx_parser *p)
{
    bool known;
    if (mgl_ptx_at(p, ".extern"))
        mgl_ptx_lex(&p->lexer);
    if (mgl_ptx_at(p, ".reg"))
        return parse_registers(p);
    mgl_status status = mgl_ptx_parse_shared(p, &known);
    return status || known ? status : mgl_ptx_skip(p, ";");
}

static mgl_status open_block(mgl_ptx_parser *p)
{
    if (p->depth >= MGL_PTX_MAX_DEPTH)
        return mgl_ptx_complain(p, "blocks are nested too deeply");
    if (!MGL_PTX_GROW(p, scopes, scope_list))
        return mgl_fail_memory(p->err, sizeof *p->ptx->scopes);
    p->ptx->scopes[p->ptx->scope_list.count] = p->scope;
    p->scope = (int32_t)p->ptx->scope_list.count++;
    p->depth++;
    mgl_ptx_lex(&p->lexer);
    return MGL_OK;
}

mgl_status mgl_ptx_parse_body(mgl_ptx_parser *p)
{
    size_t undo = p->names.undo_count;
    mgl_status status = open_block(p);
    while (!status && !mgl_ptx_at(p, "}")) {
        if (mgl_ptx_at(p, "{"))
            status = mgl_ptx_parse_body(p);
        else if (mgl_ptx_at(p, ";"))
            mgl_ptx_lex(&p->lexer);
        else if (p->lexer.kind == MGL_PTX_WORD_DIRECTIVE)
            status = parse_directive(p);
        else if (is_label(p))
            status = parse_label(p);
        else
            status = parse_instruction(p);
    }
    if (status)
        return status;
    mgl_ptx_names_restore(&p->names, undo);
    p->scope = p->ptx->scopes[p->scope];
    p->depth--;
    mgl_ptx_lex(&p->lexer);
    return MGL_OK;
}
