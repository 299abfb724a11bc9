/* Prints --help of the program and of each verb, generated from the verbs' tables. */
#include "cli/cli.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 24, WRAP_COLUMNS = 90 };

const char mgl_cli_title[] = "a reply of a Llama-family language model in one kernel launch";
const char mgl_cli_model_text[] =
    "MODEL is a folder in Hugging Face layout, a .gguf file, a compiled .mega file, or org/name or "
    "org/name@revision in the local Hugging Face cache. Nothing is downloaded.";
const char mgl_cli_file_text[] = "A file that is read may be -, which is standard input. 'run' "
                                 "reads its prompt from standard input if no flag gives a prompt.";

void mgl_cli_put_wrapped(const char *indent, const char *text)
{
    while (*text) {
        size_t line = strcspn(text, "\n"), length = line;
        if (length > WRAP_COLUMNS) {
            length = WRAP_COLUMNS;
            while (length > 0 && text[length] != ' ')
                length--;
            if (length == 0)
                length = strcspn(text, " \n");
        }
        mgl_cli_printf("%s%.*s\n", indent, (int)length, text);
        text += length;
        text += strspn(text, length < line ? " " : "") + (length == line && *text == '\n');
    }
}

static const char exit_codes[] = MGL_CLI_EXITS(MGL_CLI_EXIT); /* with ", " in front */
static const char verdict_codes[] = MGL_CLI_VERDICT_EXITS(MGL_CLI_EXIT);

/* The exit codes, at the end of each help. */
static void put_exit_codes(bool gives_verdict)
{
    mgl_text text = {0};
    mgl_text_format(&text, "Exit codes: %s%s%s.", exit_codes + 2,
                    gives_verdict ? "; of a verdict: 0 kept" : "",
                    gives_verdict ? verdict_codes : "");
    if (text.failed)
        mgl_cli_lose_output();
    else
        mgl_cli_put_wrapped("", text.bytes);
    mgl_text_clear(&text);
}

void mgl_cli_print_help(void)
{
    mgl_cli_printf("Megalith %s: %s\n\nusage: megalith VERB ...\n\n", mgl_version(), mgl_cli_title);
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", mgl_cli_verbs[i]->name,
                 mgl_cli_verbs[i]->operand ? " " : "",
                 mgl_cli_verbs[i]->operand ? mgl_cli_verbs[i]->operand : "");
        mgl_cli_printf("  %-*s%s\n", HELP_COLUMN - 4, left, mgl_cli_verbs[i]->summary);
    }
    mgl_cli_put("\n'megalith help VERB' or 'megalith VERB --help' shows the flags of a verb and an "
                "example;\n" MGL_CLI_VERSION_SHORT " or " MGL_CLI_VERSION_FLAG
                " is the version.\n\n");
    mgl_cli_put_wrapped("", mgl_cli_model_text);
    mgl_cli_put_wrapped("", mgl_cli_file_text);
    mgl_cli_put("\n");
    put_exit_codes(false);
}

/* `brief` and `argument` may be NULL. */
static void print_flag(const char *brief, const char *flag, const char *argument, const char *help)
{
    char left[200];
    snprintf(left, sizeof left, "%s%s%s%s%s", brief ? brief : "", brief ? ", " : "", flag,
             argument ? " " : "", argument ? argument : "");
    mgl_cli_printf("  %-*s", HELP_COLUMN - 2, left);
    if (strlen(left) > HELP_COLUMN - 3)
        mgl_cli_printf("\n%*s", HELP_COLUMN, "");
    mgl_cli_printf("%s\n", help);
}

/* The commands and keys of a verb that reads typed lines. */
static void print_lines(const mgl_cli_verb *verb)
{
    mgl_cli_put("\nAt its prompt:\n");
    for (size_t i = 0; i < verb->line_count; i++)
        print_flag(NULL, verb->lines[i].name,
                   *verb->lines[i].argument ? verb->lines[i].argument : NULL, verb->lines[i].help);
}

/* Prints the subcommands of a verb. */
static void print_words(const mgl_cli_verb *verb)
{
    mgl_cli_printf("usage: megalith %s WORD ... [flags]\n\n%s\n\n", verb->name, verb->summary);
    for (size_t i = 0; i < verb->word_count; i++) {
        const mgl_cli_verb *word = verb->words[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", mgl_cli_last_word(word), word->operand ? " " : "",
                 word->operand ? word->operand : "");
        mgl_cli_printf("  %-*s%s\n", HELP_COLUMN - 2, left, word->summary);
    }
    print_flag(MGL_CLI_HELP_SHORT, MGL_CLI_HELP_FLAG, NULL, "this text; after a word: its flags");
    mgl_cli_put("\nExample:\n");
    mgl_cli_put(verb->example);
    mgl_cli_put("\n\n");
    put_exit_codes(false);
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
    if (verb->lines)
        print_lines(verb);
    if (verb->notes) {
        mgl_cli_put("\n");
        mgl_cli_put_wrapped("", verb->notes);
    }
    mgl_cli_put("\nExample:\n");
    mgl_cli_put(verb->example);
    mgl_cli_put("\n\n");
    put_exit_codes(verb->gives_verdict);
}
