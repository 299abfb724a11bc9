/*
 * Rewrites inline assembly into function calls. See rewrite.h. Two small parsers, one inside the
 * other: for C++, only to find the statements and their operands, and for the PTX in their
 * templates.
 */
#include "rewrite.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 48, MOST_TEMPLATE = 2048, MOST_NAME = 200, MOST_WORD = 400 };

struct piece { /* a piece of the text */
    const char *at;
    size_t length;
};

struct rewriter {
    const char *name, *text; /* name and text of the source */
    const char *at;          /* the next character */
    const char *known;       /* the text of device/ptx.h */
    FILE *out;
    char *problem; /* the first problem; empty: none */
    size_t problem_length;
    /* position of the current statement */
    const char *start;
    char template[MOST_TEMPLATE]; /* its template strings, joined */
    size_t template_length;
    struct piece operands[MOST_OPERANDS];
    int operand_count;
};

/* Records the first problem, with its line. Returns false. */
static bool refuse(struct rewriter *r, const char *what, const char *which)
{
    int line = 1;
    for (const char *p = r->text; p < r->start; p++)
        line += *p == '\n';
    if (!r->problem[0])
        snprintf(r->problem, r->problem_length, "%s:%d: %s `%s`", r->name, line, what, which);
    return false;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- reading C++ ----------------------------------------------------------------------------- */

/* The position after the closing quote of the string that starts at p. */
static const char *skip_quoted(const char *p)
{
    const char quote = *p;
    for (p++; *p && *p != quote; p++)
        p += *p == '\\' && p[1];
    return *p ? p + 1 : p;
}

/* The position after a comment or string that starts at p; p if there is none. */
static const char *skip_opaque(const char *p)
{
    const char *end = p;
    if (p[0] == '"' || p[0] == '\'')
        return skip_quoted(p);
    if (p[0] == '/' && p[1] == '/')
        end = strchr(p, '\n');
    else if (p[0] == '/' && p[1] == '*')
        end = (end = strstr(p + 2, "*/")) ? end + 2 : NULL;
    return end ? end : p + strlen(p);
}

static void skip_space(struct rewriter *r)
{
    const char *before;
    do {
        before = r->at;
        while (isspace((unsigned char)*r->at))
            r->at++;
        if (*r->at == '/')
            r->at = skip_opaque(r->at);
    } while (r->at != before);
}

static bool take(struct rewriter *r, const char *word)
{
    size_t length = strlen(word);
    skip_space(r);
    if (strncmp(r->at, word, length) != 0 || (is_word(word[0]) && is_word(r->at[length])))
        return false;
    r->at += length;
    return true;
}

/* Adds a string of the template, its escapes resolved. */
static bool read_string(struct rewriter *r)
{
    for (r->at++; *r->at && *r->at != '"'; r->at++) {
        char c = *r->at;
        if (c == '\\') {
            c = *++r->at;
            c = (char)(c == 'n' || c == 't' ? ' ' : c);
        }
        if (r->template_length + 1 == MOST_TEMPLATE)
            return refuse(r, "a template is too long:", "asm");
        r->template[r->template_length++] = c;
    }
    r->template[r->template_length] = 0;
    return take(r, "\"");
}

/* Reads text in parentheses: `(x + f(y))`. */
static bool read_operand(struct rewriter *r)
{
    int depth = 0;
    const char *start = r->at + 1;
    if (!take(r, "("))
        return refuse(r, "an operand is not understood:", "asm");
    for (depth = 1; *r->at && depth > 0; r->at++)
        depth += *r->at == '(' ? 1 : *r->at == ')' ? -1 : 0;
    if (r->operand_count == MOST_OPERANDS)
        return refuse(r, "a statement has too many operands:", "asm");
    r->operands[r->operand_count++] = (struct piece){start, (size_t)(r->at - 1 - start)};
    return true;
}

/* Reads outputs, inputs and clobbers. Constraints are ignored; clobbers are not operands. */
static bool read_operands(struct rewriter *r)
{
    for (int section = 0; section < 3 && take(r, ":"); section++) {
        for (bool more = true; more && (skip_space(r), *r->at == '"'); more = take(r, ",")) {
            r->at = skip_opaque(r->at);
            skip_space(r);
            if (section < 2 && !read_operand(r))
                return false;
        }
    }
    return take(r, ")") || refuse(r, "a statement does not end as expected:", "asm");
}

/* Reads asm volatile("..." "..." : outputs : inputs : clobbers), without the semicolon. */
static bool read_statement(struct rewriter *r)
{
    r->start = r->at;
    r->at += strlen("asm");
    r->operand_count = 0;
    r->template_length = 0;
    take(r, "volatile");
    if (!take(r, "("))
        return refuse(r, "a statement is not understood:", "asm");
    for (skip_space(r); *r->at == '"'; skip_space(r))
        if (!read_string(r))
            return refuse(r, "a string does not end:", "asm");
    return read_operands(r);
}

/* ---- writing calls --------------------------------------------------------------------------- */

/* Writes ptx_ and the instruction's name; characters that C++ does not allow are replaced. */
static void name_function(const char *instruction, char name[MOST_NAME])
{
    size_t n = (size_t)snprintf(name, MOST_NAME, "ptx_%s", instruction);
    for (size_t i = 0; i < n && i < MOST_NAME; i++)
        if (name[i] && !is_word(name[i]))
            name[i] = '_';
}

/* Whether device/ptx.h has a function of that name. */
static bool is_known(const struct rewriter *r, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = strstr(r->known, name); p; p = strstr(p + 1, name))
        if (p > r->known && !is_word(p[-1]) && p[length] == '(')
            return true;
    return false;
}

static bool write_call(struct rewriter *r, const char *instruction)
{
    char name[MOST_NAME];
    name_function(instruction, name);
    if (!is_known(r, name))
        return refuse(r, "tests/emulator/device/ptx.h has no function for the instruction",
                      instruction);
    fprintf(r->out, "%s(", name);
    return true;
}

/* Writes the next part of an instruction's operands, at least one character. */
static const char *write_operand(struct rewriter *r, const char *p)
{
    char word[MOST_WORD];
    size_t length = strspn(p + 2, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    if (p[0] == '%' && p[1] == '%') {
        snprintf(word, sizeof word, "%.*s", (int)length, p + 2);
        if (write_call(r, word))
            fputs(")", r->out);
        return p + 2 + length;
    }
    if (p[0] == '%' && isdigit((unsigned char)p[1])) {
        char *end;
        long number = strtol(p + 1, &end, 10);
        if (number < r->operand_count)
            fprintf(r->out, "(%.*s)", (int)r->operands[number].length, r->operands[number].at);
        else
            refuse(r, "an operand is missing for", r->template);
        return end;
    }
    if (!strchr("{}[]", *p))
        fputc(*p, r->out);
    return p + 1;
}

/* .reg .b64 state */
static bool write_register(struct rewriter *r, const char *p)
{
    static const struct {
        const char *ptx, *type;
    } types[] = {{".pred", "bool"},    {".b16", "unsigned short"},
                 {".b32", "unsigned"}, {".u32", "unsigned"},
                 {".s32", "int"},      {".b64", "unsigned long long"},
                 {".f32", "float"},    {".u64", "unsigned long long"},
                 {".f64", "double"},   {".u16", "unsigned short"},
                 {".s64", "long long"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i].ptx);
        if (!strncmp(p, types[i].ptx, length) && p[length] == ' ') {
            fprintf(r->out, "%s%s; ", types[i].type, p + length);
            return true;
        }
    }
    return refuse(r, "a register's type is not known:", p);
}

/* Writes one instruction, without its semicolon. */
static bool write_instruction(struct rewriter *r, char *p)
{
    char instruction[MOST_WORD];
    if (!strncmp(p, ".reg", 4))
        return write_register(r, p + 4 + strspn(p + 4, " "));
    if (*p == '@') {
        size_t length = strcspn(p, " ");
        fprintf(r->out, "if (%.*s) ", (int)length - 1, p + 1);
        p += length + strspn(p + length, " ");
    }
    size_t length = strcspn(p, " ");
    if (length >= sizeof instruction || p[length - 1] == ':')
        return refuse(r, "not an instruction:", p);
    snprintf(instruction, sizeof instruction, "%.*s", (int)length, p);
    if (!write_call(r, instruction))
        return false;
    for (const char *q = p + length + strspn(p + length, " "); *q;)
        q = write_operand(r, q);
    fputs("); ", r->out);
    return !r->problem[0];
}

/* Writes the instructions of a template, with or without braces. */
static bool write_template(struct rewriter *r)
{
    for (char *p = r->template; *p;) {
        size_t skip = strspn(p, " \t\n;{}");
        p += skip;
        char *end = strchr(p, ';');
        if (!*p)
            break;
        if (!end)
            return refuse(r, "an instruction has no semicolon:", p);
        *end = 0;
        if (!write_instruction(r, p))
            return false;
        p = end + 1;
    }
    return true;
}

/* Keeps the statement's number of lines, so that later line numbers are unchanged. */
static void write_lines(struct rewriter *r)
{
    for (const char *p = r->start; p < r->at; p++)
        if (*p == '\n')
            fputc('\n', r->out);
}

static bool rewrite_statement(struct rewriter *r)
{
    if (!read_statement(r))
        return false;
    fputs("({ ", r->out);
    if (!write_template(r))
        return false;
    fputs("})", r->out);
    write_lines(r);
    return true;
}

/* Removes the declaration extern __shared__ ... name[]; */
static bool skip_shared(struct rewriter *r)
{
    const char *end = strchr(r->at, ';');
    r->start = r->at;
    if (!end || end[-1] != ']' || end[-2] != '[')
        return refuse(r, "shared memory is declared in an unknown way:", "extern __shared__");
    r->at = end + 1;
    return true;
}

/* Copies or rewrites the next statement, comment, string, word or character. */
static bool rewrite_next(struct rewriter *r)
{
    const char *start = r->at;
    const bool fresh = start == r->text || !is_word(start[-1]);
    if (fresh && !strncmp(start, "asm", 3) && !is_word(start[3]))
        return rewrite_statement(r);
    if (fresh && !strncmp(start, "extern __shared__", 17))
        return skip_shared(r);
    r->at = skip_opaque(start);
    r->at += r->at == start;
    fwrite(start, 1, (size_t)(r->at - start), r->out);
    return true;
}

char *emu_rewrite(const char *name, const char *text, const char *known, char *problem,
                  size_t length)
{
    char *out = NULL;
    size_t out_length;
    struct rewriter r = {.name = name, .text = text, .at = text, .known = known};
    r.problem = problem;
    r.problem_length = length;
    problem[0] = 0;
    r.out = open_memstream(&out, &out_length);
    if (!r.out)
        return NULL;
    bool good = true;
    while (good && *r.at)
        good = rewrite_next(&r);
    fclose(r.out);
    if (!good) {
        free(out);
        return NULL;
    }
    return out;
}
