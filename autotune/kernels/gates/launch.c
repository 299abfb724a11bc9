/* Implements the parser of the launch region, and the choice of tunable values. */
#include "autotune/kernels/gates/launch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = MGL_DIMENSION_COUNT + MGL_KERNEL_VALUES };

static const char *const need_names[MGL_KERNEL_NEED_COUNT] = {
#define MGL_X(id, name, what) #name,
    MGL_KERNEL_NEEDS(MGL_X)
#undef MGL_X
};
static const char *const need_texts[MGL_KERNEL_NEED_COUNT] = {
#define MGL_X(id, name, what) what,
    MGL_KERNEL_NEEDS(MGL_X)
#undef MGL_X
};

const char *mgl_kernel_need_name(mgl_kernel_need need)
{
    return need_names[need];
}

const char *mgl_kernel_need_what(mgl_kernel_need need)
{
    return need_texts[need];
}

/* A comment line without its comment marks. */
typedef struct entry {
    char text[400];
    int line;
} entry;

static mgl_status fail_line(int line, const char *what, mgl_error *err)
{
    char where[32];
    snprintf(where, sizeof where, "line %d", line);
    return mgl_fail(err, MGL_BAD_INPUT, where, "%s", what);
}

/* Names that expressions may use: dimensions, then the tunables read so far. */
static int list_names(const mgl_kernel_launch *launch, const char *names[NAMES])
{
    int count = 0;
    for (int i = 0; i < MGL_DIMENSION_COUNT; i++)
        names[count++] = mgl_dimension_name((mgl_dimension)i);
    for (int i = 0; i < launch->tunable_count; i++)
        names[count++] = launch->tunables[i].name;
    return count;
}

static mgl_status read_need(mgl_kernel_launch *launch, const entry *e, const char *name,
                            const char *value, mgl_error *err)
{
    const char *names[NAMES];
    mgl_error why = {0};
    for (int i = 0; i < MGL_KERNEL_NEED_COUNT; i++) {
        if (strcmp(need_names[i], name) != 0)
            continue;
        if (launch->needs[i].count)
            return fail_line(e->line, "a need is given twice", err);
        launch->lines[i] = e->line;
        const int count = list_names(launch, names);
        if (mgl_expression_parse(value, names, count, &launch->needs[i], &why))
            return fail_line(e->line, why.message, err);
        return MGL_OK;
    }
    return fail_line(e->line,
                     "needs are registers, shared, stage, partials, ring and warps: no other", err);
}

static bool is_tunable_name(const char *name)
{
    const size_t length = strlen(name);
    if (length == 0 || length >= MGL_KERNEL_TUNABLE_NAME || !islower((unsigned char)name[0]))
        return false;
    for (const char *c = name; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_')
            return false;
    for (int i = 0; i < MGL_DIMENSION_COUNT; i++)
        if (!strcmp(mgl_dimension_name((mgl_dimension)i), name))
            return false;
    return strcmp(name, "min") != 0 && strcmp(name, "max") != 0;
}

static mgl_status read_tunable(mgl_kernel_launch *launch, const entry *e, const char *name,
                               const char *value, mgl_error *err)
{
    if (!is_tunable_name(name))
        return fail_line(e->line,
                         "a tunable's name has small letters, digits and _, and is no dimension's",
                         err);
    if (launch->tunable_count == MGL_KERNEL_VALUES)
        return fail_line(e->line, "there are more than 16 tunables", err);
    for (int i = 0; i < launch->tunable_count; i++)
        if (!strcmp(launch->tunables[i].name, name))
            return fail_line(e->line, "a tunable is given twice", err);
    mgl_kernel_tunable *t = &launch->tunables[launch->tunable_count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    while (*value) {
        char *end;
        const long long number = strtoll(value, &end, 10);
        if (end == value || t->count == MGL_KERNEL_TUNABLE_VALUES || number < 0 ||
            number > INT32_MAX)
            return fail_line(e->line, "a tunable has 1 to 32 whole numbers of at most 31 bits",
                             err);
        t->values[t->count++] = number;
        value = end + strspn(end, " ");
    }
    return t->count ? MGL_OK : fail_line(e->line, "a tunable has 1 to 32 whole numbers", err);
}

/* Parses "need NAME: ..." or "tunable NAME: ..."; ignores other comments. */
static mgl_status read_entry(mgl_kernel_launch *launch, entry *e, mgl_error *err)
{
    const bool need = !strncmp(e->text, "need ", 5), tunable = !strncmp(e->text, "tunable ", 8);
    char *colon = strchr(e->text, ':');
    if (!need && !tunable)
        return MGL_OK;
    if (!colon)
        return fail_line(e->line, "a need or a tunable has a `:` behind its name", err);
    *colon = 0;
    const char *name = e->text + (need ? 5 : 8), *value = colon + 1 + strspn(colon + 1, " ");
    return need ? read_need(launch, e, name, value, err)
                : read_tunable(launch, e, name, value, err);
}

static mgl_status read_line(mgl_kernel_launch *launch, const char *line, size_t length, int number,
                            mgl_error *err)
{
    entry e = {.line = number};
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    if (length == 0)
        return MGL_OK;
    if (length < 5 || memcmp(line, "/* ", 3) != 0 || memcmp(line + length - 3, " */", 3) != 0 ||
        length - 6 >= sizeof e.text)
        return fail_line(number, "the launch region has comments of one line alone", err);
    memcpy(e.text, line + 3, length - 6);
    e.text[length - 6] = 0;
    if (strstr(e.text, "*/"))
        return fail_line(number, "the launch region has comments of one line alone", err);
    return read_entry(launch, &e, err);
}

mgl_status mgl_kernel_launch_read(const char *text, size_t length, mgl_kernel_launch *out,
                                  mgl_error *err)
{
    mgl_kernel_regions regions;
    int number = 1;
    *out = (mgl_kernel_launch){0};
    mgl_status status = mgl_kernel_regions_find(text, length, &regions, err);
    const size_t first = regions.of[MGL_KERNEL_REGION_LAUNCH].first;
    const size_t end = regions.of[MGL_KERNEL_REGION_LAUNCH].end;
    for (size_t i = 0; i < first && !status; i++)
        number += text[i] == '\n';
    for (size_t at = first; at < end && !status; number++) {
        const char *stop = memchr(text + at, '\n', end - at);
        const size_t next = stop ? (size_t)(stop - text) : end;
        status = read_line(out, text + at, next - at, number, err);
        at = next + 1;
    }
    return status;
}

static bool has_value(const mgl_kernel_tunable *t, int64_t value)
{
    for (int i = 0; i < t->count; i++)
        if (t->values[i] == value)
            return true;
    return false;
}

mgl_status mgl_kernel_launch_choose(const mgl_kernel_launch *launch, const mgl_kernel_value *given,
                                    int given_count, int64_t chosen[MGL_KERNEL_VALUES],
                                    mgl_error *err)
{
    for (int i = 0; i < launch->tunable_count; i++)
        chosen[i] = launch->tunables[i].values[0];
    for (int g = 0; g < given_count; g++) {
        int at = 0;
        while (at < launch->tunable_count && strcmp(launch->tunables[at].name, given[g].name) != 0)
            at++;
        if (at == launch->tunable_count || !has_value(&launch->tunables[at], given[g].value))
            return mgl_fail(err, MGL_BAD_INPUT, given[g].name,
                            "the launch region has no such tunable with the value %lld",
                            (long long)given[g].value);
        chosen[at] = given[g].value;
    }
    return MGL_OK;
}

bool mgl_kernel_launch_needs(const mgl_kernel_launch *launch, mgl_kernel_need need,
                             const int64_t chosen[MGL_KERNEL_VALUES],
                             const mgl_dimensions *dimensions, int64_t *out)
{
    int64_t values[NAMES];
    for (int i = 0; i < MGL_DIMENSION_COUNT; i++)
        values[i] = dimensions ? dimensions->of[i] : 1;
    for (int i = 0; i < MGL_KERNEL_VALUES; i++)
        values[MGL_DIMENSION_COUNT + i] = i < launch->tunable_count ? chosen[i] : 0;
    return launch->needs[need].count > 0 && mgl_expression_value(&launch->needs[need], values, out);
}

void mgl_kernel_tunable_macro(const char *name, char to[MGL_KERNEL_TUNABLE_MACRO])
{
    snprintf(to, MGL_KERNEL_TUNABLE_MACRO, "TUNE_%.31s", name);
    for (char *c = to; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}
