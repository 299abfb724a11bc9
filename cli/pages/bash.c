/*
 * Generates the tables of the bash completion: shell functions that map a verb to its flags, and a
 * flag to its values.
 */
#include "cli/pages/pages.h"

static const char *const paths[] = {[MGL_PAGE_NONE] = "",
                                    [MGL_PAGE_FILES] = "file",
                                    [MGL_PAGE_FOLDERS] = "folder",
                                    [MGL_PAGE_MODELS] = "model",
                                    [MGL_PAGE_PROGRAMS] = "program"};

static void put_values(mgl_text *out, const char *argument)
{
    mgl_page_values values = mgl_page_read_values(argument);
    mgl_text_put(out, " takes=1");
    if (values.paths)
        mgl_text_format(out, " paths=%s", paths[values.paths]);
    if (values.suffix[0])
        mgl_text_format(out, " suffix=%s", values.suffix);
    if (values.words.length)
        mgl_text_format(out, " words='%s'", values.words.bytes + 1);
    out->failed |= values.words.failed;
    mgl_text_clear(&values.words);
}

static void put_flags(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, "    '%s')%s flags='", verb->name, verb->operand ? " operand=1" : "");
    for (size_t i = 0; i < verb->option_count; i++) {
        const char *brief = mgl_cli_short_of(verb->options[i].flag);
        mgl_text_format(out, "%s%s%s ", brief ? brief : "", brief ? " " : "",
                        verb->options[i].flag);
    }
    mgl_text_put(out, MGL_CLI_HELP_SHORT " " MGL_CLI_HELP_FLAG "' ;;\n");
}

static void put_arguments(mgl_text *out, const mgl_cli_verb *verb)
{
    if (verb->operand) {
        mgl_text_format(out, "    '%s')", verb->name);
        put_values(out, verb->operand);
        mgl_text_put(out, " ;;\n");
    }
    for (size_t i = 0; i < verb->option_count; i++) {
        const mgl_cli_option *option = &verb->options[i];
        const char *brief = mgl_cli_short_of(option->flag);
        if (option->kind == MGL_CLI_flag)
            continue;
        mgl_text_format(out, "    '%s %s'", verb->name, option->flag);
        if (brief)
            mgl_text_format(out, " | '%s %s'", verb->name, brief);
        mgl_text_put(out, ")");
        put_values(out, option->argument);
        mgl_text_put(out, " ;;\n");
    }
}

static void put_verbs(mgl_text *out)
{
    mgl_text_put(out, "_megalith_verbs='");
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++)
        mgl_text_format(out, "%s ", mgl_cli_verbs[i]->name);
    mgl_text_put(out, "help'\n");
}

/* A verb with subcommands, and their names. */
static void put_words(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, "    '%s') words='", verb->name);
    for (size_t w = 0; w < verb->word_count; w++)
        mgl_text_format(out, "%s%s", w ? " " : "", mgl_cli_last_word(verb->words[w]));
    mgl_text_put(out, "' ;;\n");
}

void mgl_page_put_bash(mgl_text *out)
{
    put_verbs(out);
    mgl_text_put(out, "\n# The words that may follow verb $1: words.\n"
                      "_megalith_words() {\n    case $1 in\n");
    mgl_page_each_group(out, put_words);
    mgl_text_put(out, "    esac\n}\n\n# Of the verb $1: flags, and whether it takes an operand.\n"
                      "_megalith_flags() {\n    case $1 in\n");
    mgl_page_each(out, put_flags);
    mgl_text_put(out, "    esac\n}\n\n# What \"VERB\" takes as its operand, and \"VERB FLAG\" as "
                      "the value of the flag.\n_megalith_argument() {\n    case $1 in\n");
    mgl_page_each(out, put_arguments);
    mgl_text_put(out, "    esac\n}\n");
}
