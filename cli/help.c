/* What --help prints: made from the verbs' own tables, so that it can not lie about them. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 24 };

static const char exit_codes[] =
    "Exit codes: 0 ok, 1 usage, 2 bad input or a file that can not be read or written, 3 schedule\n"
    "rejected, 4 no device, device error or out of memory, 5 watchdog stopped the kernel, 6 a "
    "gate\n"
    "failed, 128 + signal when Ctrl-C (130), TERM (143) or HUP (129) ended it.\n";

void mgl_cli_print_help(void)
{
    mgl_cli_printf(
        "Megalith %s: a reply of a Llama-family language model from one kernel launch\n\n"
        "usage: megalith VERB ...\n\n",
        mgl_version());
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", mgl_cli_verbs[i]->name,
                 mgl_cli_verbs[i]->operand ? " " : "",
                 mgl_cli_verbs[i]->operand ? mgl_cli_verbs[i]->operand : "");
        mgl_cli_printf("  %-*s%s\n", HELP_COLUMN - 4, left, mgl_cli_verbs[i]->summary);
    }
    mgl_cli_put(
        "\n'megalith help VERB' or 'megalith VERB --help' shows the flags of a verb and an "
        "example;\n" MGL_CLI_VERSION_SHORT " or " MGL_CLI_VERSION_FLAG " is the version.\n\n"
        "MODEL is a folder in Hugging Face layout, a compiled .mega file, or org/name or\n"
        "org/name@revision in the local Hugging Face cache. Nothing is downloaded. A file that is\n"
        "read may be -: standard input, from which 'run' takes a prompt when no flag gives one."
        "\n\n");
    mgl_cli_put(exit_codes);
}

/* `brief` and `argument` may be NULL. */
static void print_flag(const char *brief, const char *flag, const char *argument, const char *help)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s%s%s", brief ? brief : "", brief ? ", " : "", flag,
             argument ? " " : "", argument ? argument : "");
    mgl_cli_printf("  %-*s", HELP_COLUMN - 2, left);
    if (strlen(left) > HELP_COLUMN - 3)
        mgl_cli_printf("\n%*s", HELP_COLUMN, "");
    mgl_cli_printf("%s\n", help);
}

/* What may stand behind a verb of several words. */
static void print_words(const mgl_cli_verb *verb)
{
    mgl_cli_printf("usage: megalith %s WORD ... [flags]\n\n%s\n\n", verb->name, verb->summary);
    for (size_t i = 0; i < verb->word_count; i++) {
        const mgl_cli_verb *word = verb->words[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", word->name + strlen(verb->name) + 1,
                 word->operand ? " " : "", word->operand ? word->operand : "");
        mgl_cli_printf("  %-*s%s\n", HELP_COLUMN - 2, left, word->summary);
    }
    print_flag(MGL_CLI_HELP_SHORT, MGL_CLI_HELP_FLAG, NULL, "this text; behind a word: its flags");
    mgl_cli_put("\nExample:\n");
    mgl_cli_put(verb->example);
    mgl_cli_put("\n\n");
    mgl_cli_put(exit_codes);
}

void mgl_cli_print_verb_help(const mgl_cli_verb *verb)
{
    if (verb->words) {
        print_words(verb);
        return;
    }
    mgl_cli_printf("usage: megalith %s%s%s%s [flags]\n\n%s\n\n", verb->name,
                   !verb->operand           ? ""
                   : verb->operand_optional ? " ["
                                            : " ",
                   verb->operand ? verb->operand : "", verb->operand_optional ? "]" : "",
                   verb->summary);
    for (size_t i = 0; i < verb->option_count; i++) {
        const mgl_cli_option *option = &verb->options[i];
        print_flag(mgl_cli_short_of(option->flag), option->flag, option->argument, option->help);
    }
    print_flag(MGL_CLI_HELP_SHORT, MGL_CLI_HELP_FLAG, NULL, "this text");
    mgl_cli_put("\nExample:\n");
    mgl_cli_put(verb->example);
    mgl_cli_put("\n\n");
    mgl_cli_put(exit_codes);
}
