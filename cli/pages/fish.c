/*
 * Generates the fish completion: a `complete` command for each flag, and the list of flags that
 * take a value.
 */
#include "cli/pages/pages.h"

#include <string.h>

static void put_text(mgl_text *out, const char *text)
{
    mgl_page_put_escaped(out, text, "\\", "\\'");
}

static void put_condition(mgl_text *out, const char *test, const char *of)
{
    mgl_text_format(out, "complete -c megalith -n '%s %s'", test, of);
}

/* " -a 'auto cpu cuda'" if there are values to offer. */
static void put_values(mgl_text *out, const char *argument)
{
    mgl_page_values values = mgl_page_read_values(argument);
    if (values.words.length || values.paths) {
        mgl_text_format(out, " -a '%s", values.words.length ? values.words.bytes + 1 : "");
        if (values.words.length && values.paths)
            mgl_text_put(out, " ");
        if (values.paths == MGL_PAGE_FILES)
            mgl_text_format(out, "(__megalith_files %s)", values.suffix);
        else if (values.paths == MGL_PAGE_MODELS)
            mgl_text_put(out, "(__megalith_files mega gguf)");
        else if (values.paths == MGL_PAGE_FOLDERS)
            mgl_text_put(out, "(__fish_complete_directories)");
        else if (values.paths == MGL_PAGE_PROGRAMS)
            mgl_text_put(out, "(__fish_complete_command)");
        mgl_text_put(out, "'");
    }
    out->failed |= values.words.failed;
    mgl_text_clear(&values.words);
}

/* "-s p" for "-p", and "-l prompt" for "--prompt". */
static void put_flag(mgl_text *out, const char *flag)
{
    mgl_text_format(out, " %s %s", flag[1] == '-' ? "-l" : "-s", flag + strspn(flag, "-"));
}

static void put_verb(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_put(out, "\n");
    for (size_t i = 0; i < verb->option_count; i++) {
        const mgl_cli_option *option = &verb->options[i];
        const char *brief = mgl_cli_short_of(option->flag);
        put_condition(out, "__megalith_at", verb->name);
        if (brief)
            put_flag(out, brief);
        put_flag(out, option->flag);
        if (option->argument) {
            mgl_text_put(out, " -x");
            put_values(out, option->argument);
        }
        mgl_text_put(out, " -d '");
        put_text(out, option->help);
        mgl_text_put(out, "'\n");
    }
    if (verb->operand) {
        put_condition(out, "__megalith_wants", verb->name);
        put_values(out, verb->operand);
        mgl_text_put(out, "\n");
    }
}

static void put_valued(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, "        case '%s'\n            printf '%%s\\n'", verb->name);
    for (size_t i = 0; i < verb->option_count; i++) {
        const char *flag = verb->options[i].flag, *brief = mgl_cli_short_of(flag);
        if (!verb->options[i].argument)
            continue;
        mgl_text_format(out, " %s%s%s", brief ? brief : "", brief ? " " : "", flag);
    }
    mgl_text_put(out, "\n");
}

static void put_word(mgl_text *out, const char *of, const char *word, const char *summary)
{
    put_condition(out, "__megalith_at", of);
    mgl_text_format(out, " -a %s -d '", word);
    put_text(out, summary);
    mgl_text_put(out, "'\n");
}

static void put_group(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, " '%s'", verb->name);
}

static void put_words(mgl_text *out, const mgl_cli_verb *verb)
{
    mgl_text_format(out, "\n");
    for (size_t w = 0; w < verb->word_count; w++) {
        const mgl_cli_verb *word = verb->words[w];
        put_word(out, verb->name, mgl_cli_last_word(word), word->summary);
        mgl_text help = {0};
        mgl_text_format(&help, "help %s", verb->name);
        put_word(out, help.failed ? "" : help.bytes, mgl_cli_last_word(word), word->summary);
        out->failed |= help.failed;
        mgl_text_clear(&help);
    }
}

void mgl_page_put_fish(mgl_text *out)
{
    mgl_text_put(out, "# The flags of a verb that take a value.\nfunction __megalith_valued\n"
                      "    switch \"$argv\"\n");
    mgl_page_each(out, put_valued);
    mgl_text_put(out, "    end\nend\n\n# The verbs that are followed by other words.\n"
                      "set -g __megalith_groups");
    mgl_page_each_group(out, put_group);
    mgl_text_put(out, "\n\n");
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++) {
        const mgl_cli_verb *verb = mgl_cli_verbs[i];
        put_word(out, "", verb->name, verb->summary);
        put_word(out, "help", verb->name, verb->summary);
    }
    put_word(out, "", "help", "the flags of a verb and an example");
    mgl_page_each_group(out, put_words);
    mgl_page_each(out, put_verb);
}
