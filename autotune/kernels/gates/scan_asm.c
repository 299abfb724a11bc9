/*
 * asm statements of a unit: their text is made of string literals alone, of instructions that
 * asm.def lists, whose operands are those of the statement, registers that the text declares, and
 * numbers. An address is an operand of the statement, and an offset: not a number, no register that
 * the text declares, and no operand that the text writes to, since shared memory has addresses from
 * 0 on, and a number would be one of the block's own memory. How C++ came by what it hands in is
 * not looked at here.
 */
#include "autotune/kernels/gates/scan.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "autotune/kernels/gates/declare.h"
#include "base/format.h"
#include "base/text.h"

enum { MOST_ASM = 8 << 10, MOST_NAMES = 64, NAME = 32, MOST_OPERANDS = 256 };

typedef struct statement {
    mgl_scan_fault *fault;
    int line;
    char text[MOST_ASM]; /* of the template, escapes read */
    size_t length;
    char names[MOST_NAMES][NAME]; /* registers and labels of its own */
    int name_count;
    struct {
        bool number;  /* known to the compiler */
        bool written; /* the text writes to it */
    } operands[MOST_OPERANDS];
    int operand_count;
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
                return refuse(a, "is not an allowed escape", t->text + i - 1, 2);
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
        if (mgl_text_is(name, length, a->names[i]))
            return true;
    return false;
}

static bool add_name(statement *a, const char *name, size_t length)
{
    if (length == 0 || length >= NAME || a->name_count == MOST_NAMES)
        return refuse(a, "is not a valid name of a register or a label", name, length);
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
            return refuse(a, "is the name of a register of the compiler", at, (size_t)(end - at));
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
#include "autotune/kernels/ptx/asm.def"
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
            snprintf(what, sizeof what, "is not an allowed form: none of the parts %s is allowed",
                     list[i].without);
            return refuse(a, what, at, length);
        }
        return true;
    }
    return refuse(a, "is not an allowed instruction", at, length);
}

/* %%laneid and the like. */
static bool is_special(const char *name, size_t length)
{
    static const char *const names[] = {"laneid",      "lanemask_eq", "lanemask_le",
                                        "lanemask_lt", "lanemask_ge", "lanemask_gt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mgl_text_is(name, length, names[i]))
            return true;
    return false;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    return at;
}

/* ---- addresses --------------------------------------------------------------------------------
 */

/* Behind "%7", whose number it reads: -1 where it is of no operand. */
static const char *read_operand(const statement *a, const char *at, int *index)
{
    int n = 0;
    for (at++; isdigit((unsigned char)*at); at++)
        n = n < MOST_OPERANDS ? 10 * n + (*at - '0') : n;
    *index = n < a->operand_count ? n : -1;
    return at;
}

static bool is_operand(const char *at, const char *end)
{
    return end - at > 1 && *at == '%' && isdigit((unsigned char)at[1]);
}

/* Whether an operand that may be an address stands there. Behind it: *behind. */
static bool check_base(statement *a, const char *at, const char *end, const char **behind)
{
    int index;
    if (!is_operand(at, end))
        return refuse(a,
                      "is an address, which has to be an operand of the statement, and an offset: "
                      "compute it before",
                      at, (size_t)(end - at));
    *behind = read_operand(a, at, &index);
    if (index < 0)
        return refuse(a, "is not an operand of the statement", at, (size_t)(*behind - at));
    if (a->operands[index].number)
        return refuse(a, "is a numeric address: pass the address of your own memory as an operand",
                      at, (size_t)(*behind - at));
    if (a->operands[index].written)
        return refuse(a, "is an address that the statement writes to: use another operand", at,
                      (size_t)(*behind - at));
    return true;
}

/* "[%0+16]". Behind it: *behind. */
static bool check_address(statement *a, const char *at, const char *end, const char **behind)
{
    int index;
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (!close)
        return refuse(a, "a bracket is open", at, 1);
    *behind = close + 1;
    if (!check_base(a, skip_blanks(at + 1, close), close, &at))
        return false;
    for (at = skip_blanks(at, close); at < close; at = skip_blanks(at, close)) {
        const char *offset = at;
        while (at < close && (isspace((unsigned char)*at) || strchr("+-", *at)))
            at++;
        const bool is_sum = at > offset;
        if (is_operand(at, close)) {
            at = read_operand(a, at, &index);
            if (is_sum && index >= 0 && a->operands[index].number)
                continue;
        } else if (is_sum && isdigit((unsigned char)*at)) {
            while (isalnum((unsigned char)*at))
                at++;
            continue;
        }
        return refuse(a, "is not an offset of an address: an offset is a number", offset,
                      (size_t)(close - offset));
    }
    return true;
}

/* The descriptors of a product of warpgroups, which say where in shared memory its factors are:
 * the second and third operand, if they are no registers in braces. */
static bool check_descriptors(statement *a, const char *at, const char *end)
{
    const char *behind;
    for (int i = 0, depth = 0; at < end && i < 3; at++) {
        depth += (*at == '{') - (*at == '}');
        i += *at == ',' && depth == 0;
        if (*at != ',' || depth > 0 || i > 2)
            continue;
        const char *operand = skip_blanks(at + 1, end);
        if (operand < end && *operand != '{' && !check_base(a, operand, end, &behind))
            return false;
    }
    return true;
}

/* ---- operands ---------------------------------------------------------------------------------
 */

static bool check_operands(statement *a, const char *at, const char *end)
{
    while (at < end) {
        const char c = *at;
        size_t n = name_length(at);
        if (c == '%' && at[1] == '%') {
            n = name_length(at + 2);
            if (!is_special(at + 2, n))
                return refuse(a, "is not a register that a unit may read", at, n + 2);
            at += n + 2;
        } else if (is_operand(at, end)) {
            for (at++; isdigit((unsigned char)*at); at++)
                ;
        } else if (isdigit((unsigned char)c)) {
            while (isalnum((unsigned char)*at) || *at == '.')
                at++;
        } else if (is_name_start(c)) {
            if (!has_name(a, at, n) && !(n == 1 && c == '_'))
                return refuse(a, "is neither an operand nor a register of the statement", at, n);
            at += n;
        } else if (c == '[') {
            if (!check_address(a, at, end, &at))
                return false;
        } else if (isspace((unsigned char)c) || strchr(",{}+-!|().:", c)) {
            at++;
        } else {
            return refuse(a, "is not allowed in an operand", at, 1);
        }
    }
    return true;
}

/* Behind braces and labels. */
static const char *skip_labels(const char *at, const char *end)
{
    for (;;) {
        at = skip_blanks(at, end);
        const size_t label = name_length(at);
        if (at < end && (*at == '{' || *at == '}'))
            at++;
        else if (label > 0 && at + label < end && at[label] == ':' && at[label + 1] != ':')
            at += label + 1;
        else
            return at;
    }
}

/* Behind "@!p"; `at` where there is none. */
static const char *skip_guard(const char *at, const char *end)
{
    const bool guarded = at < end && *at == '@';
    while (guarded && at < end && !isspace((unsigned char)*at))
        at++;
    return at;
}

static const char *skip_mnemonic(const char *at, const char *end)
{
    while (at < end && (isalnum((unsigned char)*at) || strchr("._:", *at)))
        at++;
    return at;
}

/* The operands that an instruction writes to: all that its first operand names, unless that is an
 * address. (A few only read their first operand: none of them has an address as well.) */
static bool learn_written(statement *a, const char *at, const char *end)
{
    int index, depth = 0;
    at = skip_labels(at, end);
    at = skip_blanks(skip_guard(at, end), end);
    at = skip_mnemonic(at, end);
    while (at < end && *at != '[' && (*at != ',' || depth > 0)) {
        if (is_operand(at, end)) {
            at = read_operand(a, at, &index);
            if (index >= 0)
                a->operands[index].written = true;
            continue;
        }
        depth += (*at == '{') - (*at == '}');
        at++;
    }
    return true;
}

/* One instruction or declaration, without its `;`. */
static bool check_instruction(statement *a, const char *at, const char *end)
{
    at = skip_labels(at, end);
    if (at >= end)
        return true;
    if (!strncmp(at, ".reg", 4) && isspace((unsigned char)at[4]))
        return true; /* its names are known */
    if (*at == '.')
        return refuse(a, "is not an allowed directive", at, (size_t)(end - at));
    const char *guard = skip_guard(at, end);
    if (guard > at && !check_operands(a, at + 1, guard))
        return false;
    const char *mnemonic = skip_blanks(guard, end), *behind = skip_mnemonic(mnemonic, end);
    const size_t length = (size_t)(behind - mnemonic);
    return check_mnemonic(a, mnemonic, length) && check_operands(a, behind, end) &&
           (!has_part(mnemonic, length, "mma_async") || check_descriptors(a, behind, end));
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
        return refuse(a, "is not allowed in the text: instructions have no comments", comment, 2);
    const char *strange = strpbrk(a->text, "\"#\\'`?=&^~");
    if (strange)
        return refuse(a, "is not allowed in the text", strange, 1);
    return each_piece(a, learn_names) && each_piece(a, learn_written) &&
           each_piece(a, check_instruction);
}

/* ---- the statement ----------------------------------------------------------------------------
 */

/* "=r", "+f", "l", "n", "memory". */
static bool check_constraint(statement *a, const mgl_token *t)
{
    const char *at = t->text + 1;
    const int length = t->length - 2;
    if (mgl_text_is(at, (size_t)length, "memory"))
        return true;
    int i = 0;
    while (i < length && strchr("=+&", at[i]))
        i++;
    if (i == length - 1 && strchr("rlhfdnq", at[i]))
        return true;
    return refuse(a, "is not an allowed constraint", t->text, (size_t)t->length);
}

/* "r"(x): whether `x` is a number. */
static bool add_operand(statement *a, const mgl_tokens *tokens, size_t at)
{
    const mgl_token *constraint = &tokens->list[at];
    const size_t end = mgl_tokens_behind(tokens, at + 1);
    bool number = true;
    if (a->operand_count == MOST_OPERANDS)
        return refuse(a, "is one operand too many", constraint->text, (size_t)constraint->length);
    for (size_t i = at + 1; i < end; i++)
        number = number && tokens->list[i].kind != MGL_TOKEN_WORD;
    a->operands[a->operand_count++].number =
        number || memchr(constraint->text, 'n', (size_t)constraint->length);
    return true;
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
        if (t->kind == MGL_TOKEN_STRING && at + 1 < end &&
            mgl_token_is(&tokens->list[at + 1], "(") && !add_operand(&a, tokens, at))
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
