/*
 * Parses a PTX module: versions, variables and functions (sections 4.3, 5 and 11 of the ISA).
 * Directives that do not affect the code are skipped. Implements mgl_ptx_parse of ptx.h.
 */
#include "autotune/kernels/ptx/parse.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

mgl_status mgl_ptx_complain(mgl_ptx_parser *p, const char *message)
{
    mgl_ptx_slice word = p->lexer.word;
    return mgl_source_fail(&p->lexer.source, word.at, word.at + word.length, message, p->err);
}

bool mgl_ptx_at(const mgl_ptx_parser *p, const char *word)
{
    return p->lexer.kind != MGL_PTX_WORD_STRING && mgl_ptx_equal(p->lexer.word, word);
}

mgl_status mgl_ptx_expect(mgl_ptx_parser *p, const char *word, const char *message)
{
    if (!mgl_ptx_at(p, word))
        return mgl_ptx_complain(p, message);
    mgl_ptx_lex(&p->lexer);
    return MGL_OK;
}

bool mgl_ptx_integer(mgl_ptx_slice word, int64_t *out)
{
    char text[32], *end;
    if (!word.length || word.length >= sizeof text)
        return false;
    memcpy(text, word.at, word.length);
    text[word.length] = 0;
    *out = (int64_t)strtoull(text, &end, 0);
    return !*end || !strcmp(end, "U");
}

/* +1 for an opening bracket, -1 for a closing bracket. */
static int count_bracket(const mgl_ptx_parser *p)
{
    if (p->lexer.kind != MGL_PTX_WORD_MARK)
        return 0;
    char c = *p->lexer.word.at;
    return strchr("{([", c) ? 1 : strchr("})]", c) ? -1 : 0;
}

mgl_status mgl_ptx_skip(mgl_ptx_parser *p, const char *until)
{
    int depth = 0;
    for (;; mgl_ptx_lex(&p->lexer)) {
        if (p->lexer.kind == MGL_PTX_WORD_END || p->lexer.kind == MGL_PTX_WORD_BAD)
            return mgl_ptx_complain(p, "the text ends within a declaration");
        depth += count_bracket(p);
        if (depth < 0)
            return mgl_ptx_complain(p, "nothing is open that this closes");
        if (depth == 0 && mgl_ptx_at(p, until))
            break;
    }
    mgl_ptx_lex(&p->lexer);
    return MGL_OK;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* The bytes of a type, from its bits. */
static int64_t type_bytes(mgl_ptx_slice type)
{
    static const struct {
        const char *ending;
        int64_t bytes;
    } rows[] = {{"128", 16}, {"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}, {"x2", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].ending);
        if (type.length > length && !memcmp(type.at + type.length - length, rows[i].ending, length))
            return rows[i].bytes;
    }
    return 0;
}

static bool at_space(const mgl_ptx_parser *p, mgl_ptx_space *out)
{
    if (p->lexer.kind != MGL_PTX_WORD_DIRECTIVE)
        return false;
    mgl_ptx_slice name = {p->lexer.word.at + 1, p->lexer.word.length - 1};
    const char *end = memchr(name.at, ':', name.length); /* .shared::cluster */
    if (end)
        name.length = (uint32_t)(end - name.at);
    for (int i = MGL_PTX_generic + 1; i < MGL_PTX_SPACE_COUNT; i++)
        if (mgl_ptx_equal(name, mgl_ptx_space_name((mgl_ptx_space)i))) {
            *out = (mgl_ptx_space)i;
            return true;
        }
    return false;
}

/* Parses the words between the space and the name; *bytes of one element. */
static mgl_status parse_type(mgl_ptx_parser *p, int64_t *bytes)
{
    int64_t vector = 1, align;
    *bytes = 0;
    while (p->lexer.kind == MGL_PTX_WORD_DIRECTIVE) {
        mgl_ptx_slice word = p->lexer.word;
        bool aligned = mgl_ptx_equal(word, ".align");
        if (mgl_ptx_equal(word, ".v2") || mgl_ptx_equal(word, ".v4"))
            vector = word.at[2] - '0';
        else if (!aligned && type_bytes(word))
            *bytes = type_bytes(word);
        mgl_ptx_lex(&p->lexer);
        if (aligned && !mgl_ptx_integer(p->lexer.word, &align))
            return mgl_ptx_complain(p, "an alignment is a number of bytes");
        if (aligned)
            mgl_ptx_lex(&p->lexer);
        else if (mgl_ptx_equal(word, ".attribute") && mgl_ptx_at(p, "(") && mgl_ptx_skip(p, ")"))
            return MGL_BAD_INPUT;
    }
    *bytes *= vector;
    return MGL_OK;
}

/* [16][4] multiplies by 64; [] gives 0, because the launch sets the size. */
static mgl_status parse_dimensions(mgl_ptx_parser *p, int64_t *bytes)
{
    while (mgl_ptx_at(p, "[")) {
        int64_t count = 0;
        mgl_ptx_lex(&p->lexer);
        if (!mgl_ptx_at(p, "]")) {
            bool fits = mgl_ptx_integer(p->lexer.word, &count) && count >= 0 &&
                        !__builtin_mul_overflow(*bytes, count, bytes);
            if (!fits)
                return mgl_ptx_complain(p, "the number of elements is wrong");
            mgl_ptx_lex(&p->lexer);
        } else {
            *bytes = 0;
        }
        mgl_status status = mgl_ptx_expect(p, "]", "here the ] of the elements belongs");
        if (status)
            return status;
    }
    return MGL_OK;
}

/* Skips = {1, 2}, or = 3, or = other + 4 */
static mgl_status skip_value(mgl_ptx_parser *p)
{
    while (!mgl_ptx_at(p, ";") && !mgl_ptx_at(p, ",")) {
        bool ends = p->lexer.kind == MGL_PTX_WORD_END || p->lexer.kind == MGL_PTX_WORD_BAD;
        if (ends || count_bracket(p) < 0)
            return mgl_ptx_complain(p, "a value is missing its end");
        if (mgl_ptx_at(p, "{") || mgl_ptx_at(p, "(")) {
            mgl_status status = MGL_OK;
            const char *closing = mgl_ptx_at(p, "{") ? "}" : ")";
            status = mgl_ptx_skip(p, closing);
            if (status)
                return status;
        } else {
            mgl_ptx_lex(&p->lexer);
        }
    }
    return MGL_OK;
}

static mgl_status add_variable(mgl_ptx_parser *p, const mgl_ptx_variable *variable)
{
    if (!MGL_PTX_GROW(p, variables, variable_list))
        return mgl_fail_memory(p->err, sizeof *variable);
    p->ptx->variables[p->ptx->variable_list.count++] = *variable;
    return MGL_OK;
}

/* The current word is the state space. Declares variables up to after the semicolon. */
static mgl_status parse_variables(mgl_ptx_parser *p, mgl_ptx_space space)
{
    int64_t element;
    mgl_ptx_lex(&p->lexer);
    mgl_status status = parse_type(p, &element);
    while (!status) {
        if (p->lexer.kind != MGL_PTX_WORD_NAME)
            return mgl_ptx_complain(p, "here the name of a variable belongs");
        mgl_ptx_variable variable = {p->lexer.word, space, p->function, element,
                                     p->lexer.source.number};
        mgl_ptx_lex(&p->lexer);
        status = parse_dimensions(p, &variable.bytes);
        if (!status && mgl_ptx_at(p, "="))
            status = skip_value(p);
        if (!status)
            status = add_variable(p, &variable);
        if (status || !mgl_ptx_at(p, ",") || space == MGL_PTX_param)
            break;
        mgl_ptx_lex(&p->lexer);
    }
    return status ? status : mgl_ptx_expect(p, ";", "here the ; of the declaration belongs");
}

mgl_status mgl_ptx_parse_shared(mgl_ptx_parser *p, bool *known)
{
    mgl_ptx_space space;
    *known = true;
    if (mgl_ptx_at(p, ".pragma"))
        return mgl_ptx_skip(p, ";");
    if (at_space(p, &space))
        return parse_variables(p, space);
    *known = mgl_ptx_at(p, ".loc") || mgl_ptx_at(p, ".file");
    if (*known)
        mgl_ptx_lex_line(&p->lexer);
    return MGL_OK;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Skips ( .param .b32 a, .param .align 8 .b8 b[16] ): parameters are not used. */
static mgl_status skip_parameters(mgl_ptx_parser *p)
{
    return mgl_ptx_at(p, "(") ? mgl_ptx_skip(p, ")") : MGL_OK;
}

/* Parses for example .maxntid 128, 1, 1 */
static mgl_status parse_bound(mgl_ptx_parser *p, mgl_ptx_function *f)
{
    bool threads = mgl_ptx_at(p, ".maxntid") || mgl_ptx_at(p, ".reqntid");
    int64_t product = 1, number;
    mgl_ptx_lex(&p->lexer);
    while (p->lexer.kind == MGL_PTX_WORD_NUMBER || mgl_ptx_at(p, ",")) {
        bool is_number = p->lexer.kind == MGL_PTX_WORD_NUMBER;
        if (is_number && (!mgl_ptx_integer(p->lexer.word, &number) ||
                          __builtin_mul_overflow(product, number, &product)))
            return mgl_ptx_complain(p, "the number of threads is wrong");
        mgl_ptx_lex(&p->lexer);
    }
    if (mgl_ptx_at(p, "("))
        return mgl_ptx_skip(p, ")");
    if (threads)
        f->max_threads = product;
    return MGL_OK;
}

static mgl_status parse_code(mgl_ptx_parser *p, mgl_ptx_function *f)
{
    size_t undo = p->names.undo_count;
    f->has_body = true;
    f->first = (uint32_t)p->ptx->instruction_list.count;
    mgl_status status = mgl_ptx_parse_body(p);
    f->count = (uint32_t)p->ptx->instruction_list.count - f->first;
    mgl_ptx_names_restore(&p->names, undo);
    return status;
}

/* Parses a function's bounds, and its body or the semicolon of a declaration. */
static mgl_status parse_rest(mgl_ptx_parser *p, mgl_ptx_function *f)
{
    mgl_status status = MGL_OK;
    while (!status && p->lexer.kind == MGL_PTX_WORD_DIRECTIVE && !mgl_ptx_at(p, ".entry") &&
           !mgl_ptx_at(p, ".func"))
        status = mgl_ptx_at(p, ".pragma") ? mgl_ptx_skip(p, ";") : parse_bound(p, f);
    if (status)
        return status;
    if (mgl_ptx_at(p, "{"))
        return parse_code(p, f);
    return mgl_ptx_expect(p, ";", "here the body of the function, or ;, belongs");
}

static mgl_status parse_function(mgl_ptx_parser *p)
{
    mgl_ptx_function f = {.entry = mgl_ptx_at(p, ".entry"), .line = p->lexer.source.number};
    mgl_ptx_lex(&p->lexer);
    mgl_status status = f.entry ? MGL_OK : skip_parameters(p); /* return parameters */
    if (status)
        return status;
    if (p->lexer.kind != MGL_PTX_WORD_NAME)
        return mgl_ptx_complain(p, "here the name of the function belongs");
    f.name = p->lexer.word;
    mgl_ptx_lex(&p->lexer);
    if (!MGL_PTX_GROW(p, functions, function_list))
        return mgl_fail_memory(p->err, sizeof f);
    p->function = (int32_t)p->ptx->function_list.count++;
    status = skip_parameters(p);
    if (!status)
        status = parse_rest(p, &f);
    p->ptx->functions[p->function] = f;
    p->function = MGL_PTX_NONE;
    return status;
}

/* ---- the module ------------------------------------------------------------------------------ */

static mgl_status parse_version(mgl_ptx_parser *p, mgl_ptx_slice *out)
{
    mgl_ptx_lex(&p->lexer);
    *out = p->lexer.word;
    mgl_ptx_lex(&p->lexer);
    while (mgl_ptx_at(p, ",")) { /* .target sm_90a, debug */
        mgl_ptx_lex(&p->lexer);
        mgl_ptx_lex(&p->lexer);
    }
    return MGL_OK;
}

static mgl_status parse_statement(mgl_ptx_parser *p)
{
    bool known;
    while (mgl_ptx_at(p, ".extern") || mgl_ptx_at(p, ".visible") || mgl_ptx_at(p, ".weak") ||
           mgl_ptx_at(p, ".common"))
        mgl_ptx_lex(&p->lexer);
    if (mgl_ptx_at(p, ".version"))
        return parse_version(p, &p->ptx->version);
    if (mgl_ptx_at(p, ".target"))
        return parse_version(p, &p->ptx->target);
    if (mgl_ptx_at(p, ".address_size"))
        return parse_version(p, &(mgl_ptx_slice){0});
    if (mgl_ptx_at(p, ".entry") || mgl_ptx_at(p, ".func"))
        return parse_function(p);
    if (mgl_ptx_at(p, ".section")) /* .section .debug_info { ... } */
        return mgl_ptx_skip(p, "}");
    if (mgl_ptx_at(p, ".alias"))
        return mgl_ptx_skip(p, ";");
    mgl_status status = mgl_ptx_parse_shared(p, &known);
    return status || known ? status
                           : mgl_ptx_complain(p, "here a directive of a PTX module belongs");
}

static mgl_status copy_text(const char *text, size_t length, mgl_ptx *out, mgl_error *err)
{
    out->text = mgl_alloc(length + 1);
    if (!out->text)
        return mgl_fail_memory(err, length + 1);
    if (length)
        memcpy(out->text, text, length);
    out->text[length] = 0;
    out->length = length;
    return MGL_OK;
}

mgl_status mgl_ptx_parse(const char *text, size_t length, const char *file, mgl_ptx *out,
                         mgl_error *err)
{
    *out = (mgl_ptx){0};
    if (length > MGL_PTX_MAX_BYTES)
        return mgl_fail(err, MGL_BAD_INPUT, file, "is larger than %d MiB, the most for PTX",
                        MGL_PTX_MAX_BYTES >> 20);
    mgl_status status = copy_text(text, length, out, err);
    mgl_ptx_parser p = {.ptx = out, .function = MGL_PTX_NONE, .scope = MGL_PTX_NONE, .err = err};
    if (!status && !MGL_PTX_GROW(&p, operands, operand_list)) /* never NULL, even if empty */
        status = mgl_fail_memory(err, sizeof *out->operands);
    if (!status)
        mgl_ptx_lex_start(&p.lexer, out->text, length, file);
    while (!status && p.lexer.kind != MGL_PTX_WORD_END)
        status = parse_statement(&p);
    if (!status && !out->target.length)
        status =
            mgl_fail(err, MGL_BAD_INPUT, file, "has no .target: it is not a whole module of PTX");
    mgl_ptx_names_clear(&p.names);
    if (status)
        mgl_ptx_clear(out);
    return status;
}
