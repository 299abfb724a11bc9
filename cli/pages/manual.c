/* Generates the manual page: its sections in the language of man(7). */
#include "cli/pages/pages.h"

#include <string.h>

enum { SOURCE_COLUMNS = 72 };

/* Appends a character literally. groff replaces - ` ^ ~ ' and \ otherwise. */
static void put_character(mgl_text *out, char c)
{
    static const struct {
        char c;
        const char *roff;
    } marks[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                 {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (c == marks[i].c) {
            mgl_text_put(out, marks[i].roff);
            return;
        }
    mgl_text_append(out, &c, 1);
}

static void put_text(mgl_text *out, const char *text)
{
    for (; *text; text++)
        put_character(out, *text);
}

/* Appends words for filled text. Source lines are filled too, and none begins with a dot. */
static void put_line(mgl_text *out, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (column + length > SOURCE_COLUMNS && column) {
            mgl_text_put(out, "\n");
            column = 0;
        } else if (column) {
            mgl_text_put(out, " ");
        }
        if (!column && *text == '.')
            mgl_text_put(out, "\\&");
        for (size_t i = 0; i < length; i++)
            put_character(out, text[i]);
        column += length + 1;
        text += length + strspn(text + length, " ");
    }
    mgl_text_put(out, "\n");
}

/* Allows a line break after the bar of "cpu|cuda". */
static void put_argument(mgl_text *out, const char *text)
{
    for (; *text; text++) {
        put_character(out, *text);
        if (*text == '|')
            mgl_text_put(out, "\\:");
    }
}

static void put_tag(mgl_text *out, const char *brief, const char *flag, const char *argument)
{
    mgl_text_put(out, ".TP\n");
    if (brief) {
        mgl_text_put(out, "\\fB");
        put_text(out, brief);
        mgl_text_put(out, "\\fR, ");
    }
    mgl_text_put(out, "\\fB");
    put_text(out, flag);
    mgl_text_put(out, "\\fR");
    if (argument) {
        mgl_text_put(out, " \\fI");
        put_argument(out, argument);
        mgl_text_put(out, "\\fR");
    }
    mgl_text_put(out, "\n");
}

static void put_example(mgl_text *out, const char *example)
{
    mgl_text_put(out, ".PP\nExample:\n.PP\n.EX\n");
    while (*example) {
        size_t length = strcspn(example, "\n");
        for (size_t i = 0; i < length; i++)
            put_character(out, example[i]);
        mgl_text_put(out, "\n");
        example += length + (example[length] == '\n');
    }
    mgl_text_put(out, ".EE\n");
}

static void put_verb(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, ".SS megalith %s", verb->name);
    if (verb->operand) {
        mgl_text_put(out, verb->operand_optional ? " [" : " ");
        put_text(out, verb->operand);
        mgl_text_put(out, verb->operand_optional ? "]" : "");
    }
    mgl_text_put(out, " [flags]\n");
    put_line(out, verb->summary);
    for (size_t i = 0; i < verb->option_count; i++) {
        const mgl_cli_option *option = &verb->options[i];
        put_tag(out, mgl_cli_short_of(option->flag), option->flag, option->argument);
        put_line(out, option->help);
    }
    if (verb->lines)
        mgl_text_put(out, ".PP\nAt its prompt:\n");
    for (size_t i = 0; i < verb->line_count; i++) {
        const mgl_cli_typed *line = &verb->lines[i];
        put_tag(out, NULL, line->name, *line->argument ? line->argument : NULL);
        put_line(out, line->help);
    }
    if (verb->notes) {
        mgl_text_put(out, ".PP\n");
        put_line(out, verb->notes);
    }
    put_example(out, verb->example);
}

static void put_exits(mgl_text *out)
{
    static const struct {
        const char *code, *meaning;
    } exits[] = {
#define MGL_X(code, meaning) {code, meaning},
        MGL_CLI_EXITS(MGL_X)
#undef MGL_X
#define MGL_X(code, meaning) {code, "a verdict: " meaning},
            MGL_CLI_VERDICT_EXITS(MGL_X)
#undef MGL_X
    };
    mgl_text_put(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
        put_tag(out, NULL, exits[i].code, NULL);
        put_line(out, exits[i].meaning);
    }
}

void mgl_page_put_manual(mgl_text *out)
{
    mgl_text_put(out, ".SH NAME\nmegalith \\- ");
    put_line(out, mgl_cli_title);
    mgl_text_put(out,
                 ".SH SYNOPSIS\n.B megalith\n.I VERB\n[operand] [flags]\n.br\n.B megalith help\n"
                 ".RI [ VERB ]\n.br\n.B megalith \\-\\-version\n.SH DESCRIPTION\n");
    put_line(out, mgl_cli_model_text);
    mgl_text_put(out, ".PP\n");
    put_line(out, mgl_cli_file_text);
    mgl_text_put(out, ".SH VERBS\n");
    put_line(out, "Each verb also has " MGL_CLI_HELP_SHORT " and " MGL_CLI_HELP_FLAG
                  ", which show its flags and an example. A flag is given once; its value is the "
                  "next word, or follows = in the same word.");
    mgl_page_each(out, put_verb);
    put_exits(out);
}
