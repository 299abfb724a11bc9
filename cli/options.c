/*
 * Parses a command line by a verb's table of options. Parsing is strict: a number must be complete
 * and in range, a flag may be given only once unless it makes a list, and an unknown flag is an
 * error that names the nearest known flag.
 *
 *     --flag value     --flag=value     --     (all words after it are operands)
 */
#include "base/aliases.h"
#include "cli/cli.h"
#include "cli/hints.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *flag, *stands_for;
} shorts[] = {
#define MGL_X(flag, stands_for) {flag, stands_for},
    MGL_CLI_SHORTS(MGL_X)
#undef MGL_X
};
enum { SHORTS = sizeof shorts / sizeof *shorts };

const char *mgl_cli_short_of(const char *flag)
{
    for (size_t i = 0; i < SHORTS; i++)
        if (!strcmp(shorts[i].stands_for, flag))
            return shorts[i].flag;
    return NULL;
}

/* The row of the flag at `text`, whose name ends at `length`; NULL: unknown. */
static const mgl_cli_option *find_option(const mgl_cli_verb *verb, const char *text, size_t length)
{
    for (size_t i = 0; i < SHORTS; i++)
        if (mgl_text_is(text, length, shorts[i].flag)) {
            text = shorts[i].stands_for;
            length = strlen(text);
            break;
        }
    for (size_t i = 0; i < verb->option_count; i++)
        if (mgl_text_is(text, length, verb->options[i].flag))
            return &verb->options[i];
    const char *renamed = mgl_alias_new(MGL_ALIAS_FLAG, text, length);
    return renamed ? find_option(verb, renamed, strlen(renamed)) : NULL;
}

static mgl_status parse_int(const mgl_cli_option *option, const char *text, int64_t *out,
                            mgl_error *err)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool digits =
        *text && strspn(text + (*text == '-'), "0123456789") == strlen(text) - (*text == '-');
    if (!digits || *end || end == text)
        return mgl_fail(err, MGL_USAGE, option->flag, "not a whole number: '%.80s'", text);
    if (errno || value < option->lo || value > option->hi)
        return mgl_fail(err, MGL_USAGE, option->flag, "out of range: %.80s; allowed: %lld to %lld",
                        text, (long long)option->lo, (long long)option->hi);
    *out = value;
    return MGL_OK;
}

static mgl_status parse_real(const mgl_cli_option *option, const char *text, double *out,
                             mgl_error *err)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (!*text || *end || strspn(text, "+-.0123456789eE") != strlen(text) || !isfinite(value))
        return mgl_fail(err, MGL_USAGE, option->flag, "not a number: '%.80s'", text);
    if (value < (double)option->lo || value > (double)option->hi)
        return mgl_fail(err, MGL_USAGE, option->flag, "out of range: %.80s; allowed: %lld to %lld",
                        text, (long long)option->lo, (long long)option->hi);
    *out = value;
    return MGL_OK;
}

static const char *name_file(const char *text)
{
    return strcmp(text, "-") ? text : MGL_STDIN;
}

static mgl_status add(const mgl_cli_option *option, const char *text, mgl_cli_list *list,
                      mgl_error *err)
{
    if (!*text)
        return mgl_fail(err, MGL_USAGE, option->flag, "is empty");
    if (list->count == MGL_CLI_MOST_LISTED)
        return mgl_fail(err, MGL_USAGE, option->flag, "is given more than %d times",
                        MGL_CLI_MOST_LISTED);
    list->values[list->count++] = text;
    return MGL_OK;
}

/* Stores the value. The struct of every kind begins with `given`. */
static mgl_status store(const mgl_cli_option *option, const char *text, void *options,
                        mgl_error *err)
{
    char *at = (char *)options + option->offset;
    bool *given = (bool *)(void *)at;
    if (*given && option->kind != MGL_CLI_list)
        return mgl_fail(err, MGL_USAGE, option->flag, "is given twice on the command line");
    *given = true;
    switch (option->kind) {
    case MGL_CLI_text:
        ((mgl_cli_text *)(void *)at)->value = text;
        break;
    case MGL_CLI_file:
        ((mgl_cli_file *)(void *)at)->value = name_file(text);
        break;
    case MGL_CLI_int:
        return parse_int(option, text, &((mgl_cli_int *)(void *)at)->value, err);
    case MGL_CLI_real:
        return parse_real(option, text, &((mgl_cli_real *)(void *)at)->value, err);
    case MGL_CLI_list:
        return add(option, text, (mgl_cli_list *)(void *)at, err);
    case MGL_CLI_flag:
        break;
    }
    return MGL_OK;
}

/* Parses the flag at argv[*i] and its value, if the flag takes one. */
static mgl_status parse_flag(const mgl_cli_verb *verb, int argc, char **argv, int *i, void *options,
                             mgl_error *err)
{
    const char *word = argv[*i], *equals = strncmp(word, "--", 2) ? NULL : strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const mgl_cli_option *option = find_option(verb, word, length);
    if (!option)
        return mgl_cli_fail_flag(verb, word, err);
    if (option->kind == MGL_CLI_flag) {
        if (equals)
            return mgl_fail(err, MGL_USAGE, option->flag, "takes no value");
        return store(option, NULL, options, err);
    }
    if (equals)
        return store(option, equals + 1, options, err);
    /* If a flag follows, the value is missing. */
    if (*i + 1 >= argc || find_option(verb, argv[*i + 1], strlen(argv[*i + 1])))
        return mgl_fail(err, MGL_USAGE, option->flag, "needs a value: %s %s (or %s=%s)",
                        option->flag, option->argument, option->flag, option->argument);
    return store(option, argv[++*i], options, err);
}

const char *mgl_cli_reader(const mgl_cli_verb *verb, const char *operand, const void *options,
                           const char **other)
{
    const char *first =
        operand && verb->operand_is_file && !strcmp(operand, MGL_STDIN) ? verb->operand : NULL;
    *other = NULL;
    for (size_t i = 0; i < verb->option_count; i++) {
        const mgl_cli_option *option = &verb->options[i];
        const void *at = (const char *)options + option->offset;
        const mgl_cli_file *file = at;
        if (option->kind != MGL_CLI_file || !file->given || strcmp(file->value, MGL_STDIN) != 0)
            continue;
        if (first)
            *other = option->flag;
        else
            first = option->flag;
    }
    return first;
}

/* Standard input can be read only once: a second reader would get nothing. */
static mgl_status check_input(const mgl_cli_verb *verb, const char *operand, const void *options,
                              mgl_error *err)
{
    const char *second, *first = mgl_cli_reader(verb, operand, options, &second);
    if (!second)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, second,
                    "standard input can be read only once, and %s reads it too", first);
}

mgl_status mgl_cli_parse(const mgl_cli_verb *verb, int argc, char **argv, const char **operand,
                         void *options, mgl_error *err)
{
    bool flags = true;
    *operand = NULL;
    for (int i = 0; i < argc; i++) {
        if (flags && !strcmp(argv[i], "--")) {
            flags = false;
        } else if (flags && argv[i][0] == '-' && argv[i][1]) {
            mgl_status status = parse_flag(verb, argc, argv, &i, options, err);
            if (status)
                return status;
        } else if (!verb->operand) {
            return mgl_fail(err, MGL_USAGE, argv[i], "'%s' accepts only flags", verb->name);
        } else if (*operand) {
            return mgl_cli_fail_operand(verb, *operand, argv[i], err);
        } else {
            *operand = verb->operand_is_file ? name_file(argv[i]) : argv[i];
        }
    }
    if (verb->operand && (*operand ? !**operand : !verb->operand_optional))
        return mgl_fail(err, MGL_USAGE, NULL,
                        "'%s' needs %s; 'megalith %s --help' shows an example", verb->name,
                        verb->operand, verb->name);
    return check_input(verb, *operand, options, err);
}

bool mgl_cli_knows(const mgl_cli_verb *verb, const char *flag)
{
    return find_option(verb, flag, strlen(flag)) != NULL;
}

bool mgl_cli_has_flag(const mgl_cli_verb *verb, const void *options, const char *flag)
{
    const mgl_cli_option *option = find_option(verb, flag, strlen(flag));
    const char *at = option ? (const char *)options + option->offset : NULL;
    return at && ((const mgl_cli_flag *)(const void *)at)->given;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static const char blanks[] = " \t\r\n";

static mgl_status fail_ids(const char *at, const char *what, mgl_error *err)
{
    return mgl_fail(err, MGL_USAGE, what,
                    "not a list of whole numbers at '%.40s'; separate numbers with commas or "
                    "blanks: 1,2,3 or [1, 2, 3]",
                    at);
}

/* Parses the id at *at, appends it and moves *at after it. */
static mgl_status add_id(const char **at, const char *what, size_t *capacity, mgl_ids *out,
                         mgl_error *err)
{
    char *end = NULL;
    errno = 0;
    long value = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : -1;
    if (value < 0 || value > INT32_MAX || errno || (*end && !strchr(" \t\r\n,]", *end)))
        return fail_ids(*at, what, err);
    void *items = out->ids;
    if (!mgl_grow(&items, capacity, out->count, sizeof *out->ids))
        return mgl_fail_memory(err, out->count * sizeof *out->ids);
    out->ids = items;
    out->ids[out->count++] = (int32_t)value;
    *at = end;
    return MGL_OK;
}

/* Parses ids up to the end of the text or, with `close`, up to the closing bracket. */
static mgl_status add_ids(const char *at, bool close, const char *what, mgl_ids *out,
                          mgl_error *err)
{
    size_t capacity = 0;
    bool comma = false; /* a comma precedes *at */
    for (;;) {
        at += strspn(at, blanks);
        bool ends = close ? *at == ']' && !at[1 + strspn(at + 1, blanks)] : !*at;
        if (ends && !comma)
            return MGL_OK;
        mgl_status status = add_id(&at, what, &capacity, out, err);
        if (status)
            return status;
        at += strspn(at, blanks);
        comma = *at == ',';
        at += comma;
    }
}

mgl_status mgl_cli_parse_ids(const char *text, const char *what, mgl_ids *out, mgl_error *err)
{
    *out = (mgl_ids){0};
    text += strspn(text, blanks);
    bool bracket = *text == '[';
    mgl_status status = add_ids(text + bracket, bracket, what, out, err);
    if (status)
        mgl_ids_clear(out);
    return status;
}
