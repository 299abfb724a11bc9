/*
 * asm statements of a unit: their text is made of string literals alone, of instructions that
 * asm.def lists, whose operands are those of the statement, registers that the text declares, and
 * numbers. A memory operand is the address of such a register, and an offset.
 */
#include "autotune/kernel/scan.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "autotune/kernel/declare.h"
#include "base/format.h"

enum { MOST_ASM = 8 << 10, MOST_NAMES = 64, NAME = 32 };

typedef struct statement {
    mgl_scan_fault *fault;
    int line;
    char text[MOST_ASM]; /* of the template, escapes read */
    size_t length;
    char names[MOST_NAMES][NAME]; /* registers and labels of its own */
    int name_count;
} statement;

static bool refuse(statement *a, const char *what, const char *text, size_t length)
{
    return mgl_scan_refuse(a->fault, a->line, "asm: `%.*s` %s", (int)(length > 60 ? 60 : length),
                           text, what);
}

/* ---- the template -----------------------------------------------------------------------------
 */

static bool add_string(statement *a, const mgl_token *t)
{
    for (int i = 1; i < t->length - 1; i++) {
        char c = t->text[i];
        if (c == '\\') {
            c = t->text[++i];
            if (c != 'n' && c != 't')
                return refuse(a, "is no escape that an instruction needs", t->text + i - 1, 2);
            c = c == 'n' ? '\n' : '\t';
        }
        if (a->length + 1 >= sizeof a->text)
            return refuse(a, "is too long", t->text, (size_t)t->length);
        a->text[a->length++] = c;
    }
    a->text[a->length] = 0;
    return true;
}

/* ---- names ------------------------------------------------------------------------------------
 */

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$';
}

static size_t name_length(const char *at)
{
    size_t n = 0;
    while (is_name_start(at[n]) || isdigit((unsigned char)at[n]))
        n++;
    return n;
}

static bool has_name(const statement *a, const char *name, size_t length)
{
    for (int i = 0; i < a->name_count; i++)
        if (strlen(a->names[i]) == length && !memcmp(a->names[i], name, length))
            return true;
    return false;
}

static bool add_name(statement *a, const char *name, size_t length)
{
    if (length == 0 || length >= NAME || a->name_count == MOST_NAMES)
        return refuse(a, "is no name for a register or a label", name, length);
    memcpy(a->names[a->name_count], name, length);
    a->names[a->name_count++][length] = 0;
    return true;
}

/* ".reg .pred p, q<4>": its names. */
static bool read_registers(statement *a, const char *at, const char *end)
{
    at += 4; /* .reg */
    while (at < end) {
        while (at < end && isspace((unsigned char)*at))
            at++;
        if (at >= end || *at != '.')
            break;
        while (at < end && !isspace((unsigned char)*at))
            at++;
    }
    while (at < end) {
        while (at < end && (isspace((unsigned char)*at) || *at == ','))
            at++;
        if (at >= end)
            break;
        if (*at == '%') /* of the compiler's own */
            return refuse(a, "names a register of the compiler's", at, (size_t)(end - at));
        const size_t n = name_length(at);
        if (!add_name(a, at, n))
            return false;
        at += n;
        if (at < end && !isspace((unsigned char)*at) && *at != ',')
            return refuse(a, "registers are declared one by one", at, (size_t)(end - at));
    }
    return true;
}

/* ---- instructions -----------------------------------------------------------------------------
 */

/* Whether one of `list` ("a|b") is among the parts of a mnemonic behind its first dot. */
static bool has_part(const char *mnemonic, size_t length, const char *list)
{
    for (const char *want = list; *want;) {
        const size_t n = strcspn(want, "|");
        for (size_t i = 0; i < length; i++)
            if (mnemonic[i] == '.' && i + 1 + n <= length && !memcmp(mnemonic + i + 1, want, n) &&
                (i + 1 + n == length || mnemonic[i + 1 + n] == '.'))
                return true;
        want += n + (want[n] == '|');
    }
    return false;
}

static bool check_mnemonic(statement *a, const char *at, size_t length)
{
    static const struct {
        const char *name, *needs, *without;
    } list[] = {
#define MGL_ASM(name, needs, without) {name, needs, without},
#include "autotune/kernel/asm.def"
    };
    char what[120];
    size_t base = 0;
    while (base < length && at[base] != '.')
        base++;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (strlen(list[i].name) != base || memcmp(list[i].name, at, base) != 0)
            continue;
        if (*list[i].needs && !has_part(at, length, list[i].needs)) {
            snprintf(what, sizeof what, "needs its state space or kind, one of %s", list[i].needs);
            return refuse(a, what, at, length);
        }
        if (has_part(at, length, list[i].without)) {
            snprintf(what, sizeof what, "is no form that a unit may have: none of %s",
                     list[i].without);
            return refuse(a, what, at, length);
        }
        return true;
    }
    return refuse(a, "is no instruction that a unit may have", at, length);
}

/* %%laneid and the like. */
static bool is_special(const char *name, size_t length)
{
    static const char *const names[] = {"laneid",      "lanemask_eq", "lanemask_le",
                                        "lanemask_lt", "lanemask_ge", "lanemask_gt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], name, length))
            return true;
    return false;
}

static bool check_operands(statement *a, const char *at, const char *end)
{
    int depth = 0;
    bool addressed = false; /* the memory operand has a register */
    while (at < end) {
        const char c = *at;
        size_t n = name_length(at);
        if (c == '%' && at[1] == '%') {
            n = name_length(at + 2);
            if (!is_special(at + 2, n))
                return refuse(a, "is no register that a unit may read", at, n + 2);
            at += n + 2;
        } else if (c == '%' && isdigit((unsigned char)at[1])) {
            addressed = true;
            for (at++; isdigit((unsigned char)*at); at++)
                ;
        } else if (isdigit((unsigned char)c)) {
            while (isalnum((unsigned char)*at) || *at == '.')
                at++;
        } else if (is_name_start(c)) {
            if (!has_name(a, at, n) && !(n == 1 && c == '_'))
                return refuse(a, "is neither an operand nor a register of the statement", at, n);
            addressed = true;
            at += n;
        } else if (c == '[') {
            depth++;
            addressed = false;
            at++;
        } else if (c == ']') {
            if (--depth < 0 || !addressed)
                return refuse(a, "an address has to be an operand", at, 1);
            at++;
        } else if (isspace((unsigned char)c) || strchr(",{}+-!|().:", c)) {
            at++;
        } else {
            return refuse(a, "does not stand in an operand", at, 1);
        }
    }
    return depth == 0 || refuse(a, "a bracket is open", "[", 1);
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    return at;
}

/* One instruction or declaration, without its `;`. */
static bool check_instruction(statement *a, const char *at, const char *end)
{
    at = skip_blanks(at, end);
    while (at < end && (*at == '{' || *at == '}'))
        at = skip_blanks(at + 1, end);
    const size_t label = name_length(at);
    if (label > 0 && at + label < end && at[label] == ':' && at[label + 1] != ':')
        return check_instruction(a, at + label + 1, end);
    if (at >= end)
        return true;
    if (!strncmp(at, ".reg", 4) && isspace((unsigned char)at[4]))
        return true; /* its names are known */
    if (*at == '.')
        return refuse(a, "is no directive that a unit may have", at, (size_t)(end - at));
    if (*at == '@') {
        const char *from = ++at;
        while (at < end && !isspace((unsigned char)*at))
            at++;
        if (!check_operands(a, from, at))
            return false;
        at = skip_blanks(at, end);
    }
    const char *mnemonic = at;
    while (at < end && !isspace((unsigned char)*at) && *at != '[' && *at != '{')
        at++;
    return check_mnemonic(a, mnemonic, (size_t)(at - mnemonic)) && check_operands(a, at, end);
}

typedef bool piece_fn(statement *a, const char *at, const char *end);

static bool each_piece(statement *a, piece_fn *look)
{
    const char *at = a->text, *last = a->text + a->length;
    while (at < last) {
        const char *end = memchr(at, ';', (size_t)(last - at));
        if (!end)
            end = last;
        if (!look(a, at, end))
            return false;
        at = end + 1;
    }
    return true;
}

static bool learn_names(statement *a, const char *at, const char *end)
{
    at = skip_blanks(at, end);
    while (at < end && (*at == '{' || *at == '}'))
        at = skip_blanks(at + 1, end);
    const size_t label = name_length(at);
    if (label > 0 && at + label < end && at[label] == ':' && at[label + 1] != ':')
        return add_name(a, at, label) && learn_names(a, at + label + 1, end);
    if (end - at > 4 && !strncmp(at, ".reg", 4) && isspace((unsigned char)at[4]))
        return read_registers(a, at, end);
    return true;
}

static bool check_template(statement *a)
{
    const char *comment = strstr(a->text, "//");
    if (!comment)
        comment = strstr(a->text, "/*");
    if (comment)
        return refuse(a, "stands in the text: instructions have no comments", comment, 2);
    const char *strange = strpbrk(a->text, "\"#\\'`?=&^~");
    if (strange)
        return refuse(a, "stands in the text", strange, 1);
    return each_piece(a, learn_names) && each_piece(a, check_instruction);
}

/* ---- the statement ----------------------------------------------------------------------------
 */

/* "=r", "+f", "l", "n", "memory". */
static bool check_constraint(statement *a, const mgl_token *t)
{
    const char *at = t->text + 1;
    const int length = t->length - 2;
    if (length == 6 && !memcmp(at, "memory", 6))
        return true;
    int i = 0;
    while (i < length && strchr("=+&", at[i]))
        i++;
    if (i == length - 1 && strchr("rlhfdnq", at[i]))
        return true;
    return refuse(a, "is no constraint that a unit may have", t->text, (size_t)t->length);
}

/* The words between the brackets of asm (...). */
static bool check_statement(const mgl_tokens *tokens, size_t at, size_t end, mgl_scan_fault *fault)
{
    statement a = {.fault = fault, .line = tokens->list[at].line};
    for (; at < end && !mgl_token_is(&tokens->list[at], ":") &&
           !mgl_token_is(&tokens->list[at], "::");
         at++) {
        const mgl_token *t = &tokens->list[at];
        if (t->kind != MGL_TOKEN_STRING)
            return refuse(&a, "its text has to be of string literals", t->text, (size_t)t->length);
        if (!add_string(&a, t))
            return false;
    }
    for (; at < end; at++) {
        const mgl_token *t = &tokens->list[at];
        if (t->kind == MGL_TOKEN_BRANCH || mgl_token_is(t, "asm"))
            return refuse(&a, "a directive or another asm in an asm statement", t->text, 1);
        if (t->kind == MGL_TOKEN_STRING && !check_constraint(&a, t))
            return false;
    }
    return check_template(&a);
}

bool mgl_scan_asm(const mgl_tokens *tokens, mgl_scan_fault *fault)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (!mgl_token_is(&tokens->list[i], "asm"))
            continue;
        size_t at = i + 1;
        if (at < tokens->count && mgl_token_is(&tokens->list[at], "volatile"))
            at++;
        if (at >= tokens->count || !mgl_token_is(&tokens->list[at], "("))
            return mgl_scan_refuse(fault, tokens->list[i].line,
                                   "asm: it has to be asm (...) or asm volatile (...)");
        const size_t end = mgl_tokens_behind(tokens, at);
        if (!check_statement(tokens, at + 1, end - 1, fault))
            return false;
        i = end - 1;
    }
    return true;
}
