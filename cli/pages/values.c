/*
 * Finds the values that an argument of the verbs' tables allows: words, files, folders or programs.
 * See pages.h.
 */
#include "cli/pages/pages.h"

#include "base/text.h"
#include "vm/pipeline/machine_check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    mgl_page_paths paths;
} arguments[] = {
#define MGL_X(name, paths) {name, MGL_PAGE_##paths},
    MGL_PAGE_ARGUMENTS(MGL_X)
#undef MGL_X
};

static void add_codes(mgl_text *words)
{
    for (int i = 0; mgl_get_code(i); i++)
        mgl_text_format(words, " MG%03d", mgl_get_code(i)->code);
}

/* Looks up a name of MGL_PAGE_ARGUMENTS, with an optional suffix: "F.mls". */
static void read_name(const char *name, size_t length, mgl_page_values *out)
{
    size_t stem = strcspn(name, ".|");
    stem = stem < length ? stem : length;
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (mgl_text_is(name, stem, arguments[i].name)) {
            out->paths = arguments[i].paths;
            if (stem < length)
                snprintf(out->suffix, sizeof out->suffix, "%.*s", (int)(length - stem - 1),
                         name + stem + 1);
        }
}

/* Reads one alternative. Text in brackets after it is optional. */
static void read_one(const char *text, size_t length, mgl_page_values *out)
{
    size_t plain = strcspn(text, "[|");
    if (islower((unsigned char)*text))
        mgl_text_format(&out->words, " %.*s", (int)(plain < length ? plain : length), text);
    else if (mgl_text_is(text, length, "MGnnn"))
        add_codes(&out->words);
    else
        read_name(text, length, out);
}

mgl_page_values mgl_page_read_values(const char *argument)
{
    mgl_page_values out = {0};
    for (const char *at = argument; at; at = strchr(at, '|')) {
        at += *at == '|';
        read_one(at, strcspn(at, "|"), &out);
    }
    return out;
}
