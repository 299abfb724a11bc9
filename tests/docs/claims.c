/*
 * Compares the numbers of the documentation with the result files that they come from:
 *
 *     claims SOURCES TOOLS
 *
 * tests/docs/claims.txt lists the claims; its head explains the form. Fails if a text is not on its
 * page, if a value is missing or does not round to what is printed, if a table differs from what
 * its tool prints, or if a page has a number with a unit that no claim names.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "values.h"

enum { MAX_LINE = 4096, MAX_NUMBERS = 64, MAX_TABLE = 256, MAX_COLUMNS = 32 };

typedef struct checker {
    const char *sources;
    values values;
    page page;
    char name[256];                              /* name of the page; "" before the first */
    char text[MAX_LINE];                         /* the current claim, without its braces */
    size_t begin[MAX_NUMBERS], end[MAX_NUMBERS]; /* positions of its numbers */
    int numbers, given;                          /* number of them with a formula so far */
    size_t place;                                /* position of the text on the page */
    bool found;
    int failures, claims, compared;
} checker;

static void report(checker *c, const char *what, const char *value)
{
    printf("%s: %s: %s\n", c->name, what, value);
    c->failures++;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* A printed number, with the largest distance of a value that rounds to it. */
static bool read_number(const char *text, double *value, double *half)
{
    static const char *const words[] = {"zero",  "one",   "two",  "three", "four",   "five",  "six",
                                        "seven", "eight", "nine", "ten",   "eleven", "twelve"};
    char plain[64];
    size_t count = 0;
    int decimals = -1, power = 0;
    for (int i = 0; i < 13; i++)
        if (!strcmp(text, words[i])) {
            *value = i;
            *half = 0.5;
            return true;
        }
    for (const char *at = text; *at && count + 1 < sizeof plain; at++)
        if (*at != ',')
            plain[count++] = *at;
    plain[count] = 0;
    char *end;
    *value = strtod(plain, &end);
    if (end == plain || *end)
        return false;
    for (const char *at = plain; *at && *at != 'e'; at++)
        decimals = *at == '.' ? 0 : decimals >= 0 ? decimals + 1 : decimals;
    const char *e = strchr(plain, 'e');
    power = e ? atoi(e + 1) : 0;
    *half = 0.5 * pow(10, power - (decimals > 0 ? decimals : 0));
    return true;
}

static void compare_number(checker *c, int n, double value)
{
    char printed[256];
    double number, half;
    snprintf(printed, sizeof printed, "%.*s", (int)(c->end[n] - c->begin[n]),
             c->text + c->begin[n]);
    if (!read_number(printed, &number, &half)) {
        report(c, "no number is between the braces", printed);
        return;
    }
    c->compared++;
    if (fabs(value - number) <= half * (1 + 1e-6))
        return;
    printf("%s: %s, but the result is %.7g: %s\n", c->name, printed, value, c->text);
    c->failures++;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static void cover(checker *c, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        c->page.marks[i] |= COVERED;
}

/* Ends the current claim: every brace must have its line. */
static void end_claim(checker *c)
{
    if (c->text[0] && c->given != c->numbers)
        report(c, "the claim has other numbers of braces and of formulas", c->text);
    c->text[0] = 0;
}

static void begin_claim(checker *c, const char *line)
{
    size_t length = 0;
    c->numbers = c->given = 0;
    for (; *line && length + 1 < sizeof c->text; line++) {
        if (*line == '{' && c->numbers < MAX_NUMBERS)
            c->begin[c->numbers] = length;
        else if (*line == '}' && c->numbers < MAX_NUMBERS)
            c->end[c->numbers++] = length;
        else
            c->text[length++] = *line;
    }
    c->text[length] = 0;
    c->claims++;
    const char *at = c->page.text ? strstr(c->page.text, c->text) : NULL;
    c->found = at;
    if (!at) {
        report(c, "the page does not have the text", c->text);
        return;
    }
    c->place = (size_t)(at - c->page.text);
    if (strstr(at + 1, c->text))
        report(c, "the page has the text twice", c->text);
    for (int i = 0; i < c->numbers; i++)
        cover(c, c->place + c->begin[i], c->place + c->end[i]);
}

static void read_formula(checker *c, const char *formula)
{
    char why[512];
    double value;
    if (*formula == '!') {
        if (!formula[1 + strspn(formula + 1, " ")])
            report(c, "a reason is missing", c->text);
        c->given = c->numbers;
        return;
    }
    formula += *formula == '=';
    if (c->given >= c->numbers) {
        report(c, "more formulas than braces", c->text);
        return;
    }
    if (!values_compute(&c->values, formula, &value, why, sizeof why)) {
        printf("%s: %s: %s\n", c->name, why, c->text);
        c->failures++;
        c->given++;
        return;
    }
    compare_number(c, c->given++, value);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

typedef struct table {
    int rows, columns;
    char cells[MAX_TABLE][MAX_COLUMNS][96]; /* row 0 is the head */
} table;

/* Reads the row of a table that begins at `at`. Returns the text after it. */
static const char *read_row(const char *at, table *t, int row)
{
    int column = 0;
    for (at++; *at && *at != '\n' && column < MAX_COLUMNS; column++) {
        at += *at == ' ';
        size_t length = strcspn(at, "|\n"), kept = length;
        while (kept && at[kept - 1] == ' ')
            kept--;
        snprintf(t->cells[row][column], sizeof t->cells[row][column], "%.*s", (int)kept, at);
        at += length + (at[length] == '|');
        if (row && column + 1 == t->columns)
            return *at ? at + 1 : at;
        if (!row && (*at == '\n' || !strncmp(at, " |", 2) || !*at)) {
            t->columns = column + 1;
            return *at ? at + 1 : at;
        }
    }
    return at;
}

/* Reads the first table of a text from `at` on, without the row of dashes. On a page, the rows are
 * on one line; in the output of a tool, each row is a line. */
static void read_table(const char *at, table *t)
{
    t->rows = 0;
    while (*at == '|' && t->rows < MAX_TABLE) {
        at = read_row(at, t, t->rows);
        if (t->rows != 1 || strspn(t->cells[1][0], "-") != strlen(t->cells[1][0]) ||
            !t->cells[1][0][0])
            t->rows++;
    }
}

static int find_column(const table *t, const char *name)
{
    for (int i = 0; i < t->columns; i++)
        if (!strcmp(t->cells[0][i], name))
            return i;
    return -1;
}

static bool has_row(const table *t, const table *of, int row)
{
    for (int r = 1; r < t->rows; r++) {
        bool same = true;
        for (int i = 0; i < of->columns && same; i++) {
            int column = find_column(t, of->cells[0][i]);
            same = column < 0 || !strcmp(t->cells[r][column], of->cells[row][i]);
        }
        if (same)
            return true;
    }
    return false;
}

/* Compares the columns that both tables have. A column of the page must be in both. */
static void compare_tables(checker *c, const table *shown, const table *printed)
{
    for (int i = 0; i < shown->columns; i++)
        if (find_column(printed, shown->cells[0][i]) < 0)
            report(c, "the tool prints no such column", shown->cells[0][i]);
    for (int way = 0; way < 2; way++) {
        const table *a = way ? printed : shown, *b = way ? shown : printed;
        for (int r = 1; r < a->rows; r++) {
            char row[1024] = "";
            size_t length = 0;
            for (int i = 0; i < a->columns && length < sizeof row; i++)
                length +=
                    (size_t)snprintf(row + length, sizeof row - length, "| %s ", a->cells[r][i]);
            c->compared++;
            if (!has_row(b, a, r))
                report(c, way ? "the table does not have the row" : "the tool does not print", row);
        }
    }
}

/* `HEAD | COMMAND`: checks that the table whose head begins with HEAD equals the output of the
 * command. */
static void check_table(checker *c, char *line)
{
    char *command = strstr(line, " : ");
    const char *at = NULL;
    static table shown, printed;
    if (command) {
        *command = 0;
        command += 3;
        at = strstr(c->page.text, line);
    }
    if (!at) {
        report(c, "the page does not have the table", line);
        return;
    }
    char *output = values_run(&c->values, command);
    const char *rows = output ? strchr(output, '|') : NULL;
    /* The table ends before a blank line. */
    size_t first = (size_t)(at - c->page.text), last = first;
    while (last + 1 < c->page.length && c->page.lines[last + 1] - c->page.lines[last] <= 1)
        last++;
    char *text = strndup(at, last - first);
    if (!text)
        abort();
    read_table(text, &shown);
    free(text);
    cover(c, first, last);
    if (!rows)
        report(c, "the command failed", command);
    else {
        read_table(rows, &printed);
        compare_tables(c, &shown, &printed);
    }
    free(output);
}

/* The text of element i, made by the template; false after the last element. */
static bool fill_template(checker *c, const char *path, int i, const char *template, char *out,
                          size_t size)
{
    char member[128], why[512];
    size_t length = 0;
    for (; *template && length + 1 < size; template ++) {
        if (*template != '{') {
            out[length++] = *template;
            continue;
        }
        snprintf(member, sizeof member, "%.*s", (int)strcspn(template + 1, "}"), template + 1);
        if (!values_text(&c->values, path, i, member, out + length, size - length, why,
                         sizeof why)) {
            if (*why)
                report(c, why, path);
            return false;
        }
        length += strlen(out + length);
        template += strlen(member) + 1;
    }
    out[length] = 0;
    return true;
}

/* `PATH : TEMPLATE`: each element must have a row on the page. With a template `A ... B`, the row
 * begins with A and contains B after it. */
static void check_rows(checker *c, char *line)
{
    char row[1024], *template = strstr(line, " : ");
    int i = 0;
    if (!template) {
        report(c, "`rows FILE.json:PATH : TEMPLATE` is meant", line);
        return;
    }
    *template = 0;
    template += 3;
    for (; fill_template(c, line, i, template, row, sizeof row); i++) {
        char *rest = strstr(row, " ... ");
        if (rest)
            *rest = 0;
        const char *at = strstr(c->page.text, row), *end = at;
        if (at && rest)
            end = strstr(at, rest + 5);
        size_t first = at ? (size_t)(at - c->page.text) : 0;
        size_t last = end ? (size_t)(end - c->page.text) : 0;
        c->compared++;
        if (at && end && c->page.lines[first] == c->page.lines[last])
            cover(c, first, last + strlen(rest ? rest + 5 : row));
        else
            report(c, "the page does not have the row", row);
    }
    if (!i)
        report(c, "no rows", line);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void end_page(checker *c)
{
    end_claim(c);
    size_t at = 0, begin, end;
    while (c->name[0] && page_next(&c->page, &at, &begin, &end)) {
        size_t first = begin > 50 ? begin - 50 : 0;
        while (first > 0 && (c->page.text[first] & 0xc0) == 0x80)
            first--;
        printf("%s:%d: no claim names %.*s: ...%.110s\n", c->name, c->page.lines[begin],
               (int)(end - begin), c->page.text + begin, c->page.text + first);
        c->failures++;
    }
    if (c->page.text)
        page_clear(&c->page);
    c->page = (page){0};
    c->name[0] = 0;
}

static void begin_page(checker *c, const char *name)
{
    char path[4096];
    end_page(c);
    snprintf(c->name, sizeof c->name, "%.*s", (int)strcspn(name, "]"), name);
    snprintf(path, sizeof path, "%s/%s", c->sources, c->name);
    if (!page_read(path, &c->page)) {
        c->failures++;
        c->name[0] = 0;
    }
}

static void read_let(checker *c, char *line)
{
    char *sign = strstr(line, " = ");
    if (!sign) {
        report(c, "`let NAME = FILE.json:PATH` is meant", line);
        return;
    }
    *sign = 0;
    values_define(&c->values, line, sign + 3);
}

static void read_line(checker *c, char *line)
{
    size_t length = strlen(line), indent = strspn(line, " ");
    while (length && isspace((unsigned char)line[length - 1]))
        line[--length] = 0;
    if (!line[indent] || *line == '#')
        return;
    if (indent && c->text[0]) {
        read_formula(c, line + indent);
        return;
    }
    end_claim(c);
    if (*line == '[')
        begin_page(c, line + 1);
    else if (!strncmp(line, "let ", 4))
        read_let(c, line + 4);
    else if (!strncmp(line, "table ", 6))
        check_table(c, line + 6);
    else if (!strncmp(line, "rows ", 5))
        check_rows(c, line + 5);
    else
        begin_claim(c, line);
}

int main(int count, char **arguments)
{
    static checker c;
    static char line[MAX_LINE], folder[4096], path[4096];
    if (count != 3) {
        fprintf(stderr, "usage: claims SOURCES TOOLS\n");
        return 1;
    }
    c.sources = arguments[1];
    snprintf(folder, sizeof folder, "%s/paper/results", c.sources);
    snprintf(path, sizeof path, "%s/tests/docs/claims.txt", c.sources);
    c.values = (values){.folder = folder, .tools = arguments[2]};
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s: cannot be read\n", path);
        return 1;
    }
    while (fgets(line, sizeof line, file))
        read_line(&c, line);
    end_page(&c);
    fclose(file);
    values_clear(&c.values);
    printf("%d claims, %d numbers and rows compared, %d failures\n", c.claims, c.compared,
           c.failures);
    return c.failures ? 1 : 0;
}
