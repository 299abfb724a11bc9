/*
 * Generates the tables of the zsh completion: the verbs with their summaries, and the specs of
 * their flags for _arguments.
 */
#include "cli/pages/pages.h"

/* Appends a text in single quotes, and escapes characters that zsh's completion interprets. */
static void put_text(mgl_text *out, const char *text, const char *marked)
{
    mgl_page_put_escaped(out, text, marked, "'\\''");
}

/* "DEVICE:(auto cpu cuda)": a label, and the values to offer. */
static void put_values(mgl_text *out, const char *argument)
{
    static const char *const actions[] = {[MGL_PAGE_NONE] = " ",
                                          [MGL_PAGE_FOLDERS] = "_files -/",
                                          [MGL_PAGE_MODELS] = "_files -g \"*.(mega|gguf)(-.)\"",
                                          [MGL_PAGE_PROGRAMS] = "_command_names -e"};
    mgl_page_values values = mgl_page_read_values(argument);
    put_text(out, argument, "\\:");
    mgl_text_put(out, ":");
    if (values.words.length && values.paths)
        mgl_text_format(out, " _megalith_either \"%s\" \"*.%s\"", values.words.bytes + 1,
                        values.suffix);
    else if (values.words.length)
        mgl_text_format(out, "(%s)", values.words.bytes + 1);
    else if (values.suffix[0])
        mgl_text_format(out, "_files -g \"*.%s(-.)\"", values.suffix);
    else
        mgl_text_put(out, values.paths == MGL_PAGE_FILES ? "_files" : actions[values.paths]);
    out->failed |= values.words.failed;
    mgl_text_clear(&values.words);
}

/* "(-p --prompt)"{-p,--prompt=}"[help]:TEXT: ", or "*--stop=[help]:TEXT: " for a list. */
static void put_flag(mgl_text *out, const mgl_cli_option *option)
{
    const char *brief = mgl_cli_short_of(option->flag), *flag = option->flag;
    const char *argument = option->argument;
    const char *equals = argument && flag[1] == '-' ? "=" : "";
    mgl_text_put(out, " \\\n            ");
    if (brief)
        mgl_text_format(out, "'(%s %s)'{%s,%s%s}'[", brief, flag, brief, flag, equals);
    else
        mgl_text_format(out, "'%s%s%s[", option->kind == MGL_CLI_list ? "*" : "", flag, equals);
    put_text(out, option->help, "\\[]:");
    mgl_text_put(out, "]");
    if (argument) {
        mgl_text_put(out, ":");
        put_values(out, argument);
    }
    mgl_text_put(out, "'");
}

static void put_verb(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, "    ('%s')\n        _arguments -S", verb->name);
    for (size_t i = 0; i < verb->option_count; i++) {
        put_flag(out, &verb->options[i]);
    }
    mgl_text_put(out, " \\\n            '(- *)'{" MGL_CLI_HELP_SHORT "," MGL_CLI_HELP_FLAG
                      "}'[its flags and an example]'");
    if (verb->operand) {
        mgl_text_format(out, " \\\n            '%s:", verb->operand_optional ? ":" : "1:");
        put_values(out, verb->operand);
        mgl_text_put(out, "'");
    }
    mgl_text_put(out, "\n        ;;\n");
}

static void put_summary(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, "        '%s:", mgl_cli_last_word(verb));
    put_text(out, verb->summary, "\\");
    mgl_text_put(out, "'\n");
}

static void put_words(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, "    ('%s') words_of=(\n", verb->name);
    for (size_t w = 0; w < verb->word_count; w++)
        put_summary(out, verb->words[w]);
    mgl_text_put(out, "        ) ;;\n");
}

void mgl_page_put_zsh(mgl_text *out)
{
    mgl_text_put(out, "_megalith_verbs() {\n    local -a verbs=(\n");
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++)
        put_summary(out, mgl_cli_verbs[i]);
    mgl_text_put(out, "        'help:the flags of a verb and an example'\n    )\n"
                      "    _describe -t verbs verb verbs\n}\n\n"
                      "# The words that may follow verb $1: words_of.\n"
                      "_megalith_words() {\n    words_of=()\n    case $1 in\n");
    mgl_page_each_group(out, put_words);
    mgl_text_put(out, "    esac\n    (( $#words_of ))\n}\n\n"
                      "# The word that follows verb $1.\n"
                      "_megalith_verb() {\n    case $1 in\n");
    mgl_page_each(out, put_verb);
    mgl_text_put(out, "    esac\n}\n");
}
