/*
 * megalith_pages FORMAT TEMPLATE FILE DATE: writes FILE from the template and the tables of the
 * verbs. Marks @version@ and @date@ of the template are replaced too. The build runs this program.
 */
#include "cli/pages/pages.h"

#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TEMPLATE = 1 << 20 };

static const struct format {
    const char *name;
    void (*put)(mgl_text *out);
} formats[] = {{"bash", mgl_page_put_bash},
               {"zsh", mgl_page_put_zsh},
               {"fish", mgl_page_put_fish},
               {"man", mgl_page_put_manual}};

/* Visits a verb and its subcommands: if `groups`, only verbs with subcommands, else only the
 * others. */
static void visit(mgl_text *out, const mgl_cli_verb *verb, bool groups, mgl_page_fn *each)
{
    if ((verb->words != NULL) == groups)
        each(out, verb);
    for (size_t w = 0; w < verb->word_count; w++)
        visit(out, verb->words[w], groups, each);
}

void mgl_page_each(mgl_text *out, mgl_page_fn *each)
{
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++)
        visit(out, mgl_cli_verbs[i], false, each);
}

void mgl_page_each_group(mgl_text *out, mgl_page_fn *each)
{
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++)
        visit(out, mgl_cli_verbs[i], true, each);
}

void mgl_page_put_escaped(mgl_text *out, const char *text, const char *marked, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            mgl_text_put(out, quote);
            continue;
        }
        if (strchr(marked, *text))
            mgl_text_put(out, "\\");
        mgl_text_append(out, text, 1);
    }
}

/* Appends the text that replaces a mark of the template. @tables@ is replaced by the tables. */
static void put_mark(mgl_text *out, const struct format *format, const char *mark, size_t length,
                     const char *date)
{
    if (!strncmp(mark, "tables", length))
        format->put(out);
    else if (!strncmp(mark, "version", length))
        mgl_text_put(out, mgl_version());
    else if (!strncmp(mark, "date", length))
        mgl_text_put(out, date);
    else
        mgl_text_format(out, "@%.*s@", (int)length, mark);
}

static void fill(mgl_text *out, const struct format *format, const char *template, const char *date)
{
    while (*template) {
        size_t length = strcspn(template, "@");
        mgl_text_append(out, template, length);
        template += length;
        size_t name = *template ? strspn(template + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
        if (name && template[name + 1] == '@') {
            put_mark(out, format, template + 1, name, date);
            template += name + 2;
        } else if (*template) {
            mgl_text_append(out, template ++, 1);
        }
    }
}

static mgl_status make_page(const struct format *format, char **argv, mgl_error *err)
{
    char *template;
    size_t length;
    mgl_text out = {0};
    mgl_status status = mgl_file_read(argv[0], MAX_TEMPLATE, &template, &length, err);
    if (status)
        return status;
    fill(&out, format, template, argv[2]);
    status = mgl_cli_write_text(argv[1], &out, err);
    mgl_text_clear(&out);
    mgl_free(template);
    return status;
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    const struct format *format = NULL;
    for (size_t i = 0; argc == 5 && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, argv[1]))
            format = &formats[i];
    if (!format) {
        fputs("megalith_pages bash|zsh|fish|man TEMPLATE FILE DATE\n", stderr);
        return 1;
    }
    mgl_status status = make_page(format, argv + 2, &err);
    if (status)
        fprintf(stderr, "megalith_pages: %s: %s\n", err.where, err.message);
    return status != MGL_OK;
}
