/*
 * Lists the verbs, and finds one by a word of the command line. Also stores the exit code that a
 * verb sets instead of 0.
 */
#include "cli/cli.h"

#include "base/aliases.h"

#include <stdio.h>
#include <string.h>

const mgl_cli_verb *const mgl_cli_verbs[MGL_CLI_VERB_COUNT] = {
#define MGL_X(name) &mgl_cli_##name##_verb,
    MGL_CLI_VERBS(MGL_X)
#undef MGL_X
};

const mgl_cli_verb *mgl_cli_find_verb(const char *name)
{
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++)
        if (!strcmp(name, mgl_cli_verbs[i]->name))
            return mgl_cli_verbs[i];
    return NULL;
}

const char *mgl_cli_last_word(const mgl_cli_verb *verb)
{
    const char *blank = strrchr(verb->name, ' ');
    return blank ? blank + 1 : verb->name;
}

const mgl_cli_verb *mgl_cli_find_word(const mgl_cli_verb *verb, const char *word)
{
    char name[64];
    for (size_t i = 0; i < verb->word_count; i++)
        if (!strcmp(mgl_cli_last_word(verb->words[i]), word))
            return verb->words[i];
    const int length = snprintf(name, sizeof name, "%s %s", verb->name, word);
    const char *renamed = length > 0 && (size_t)length < sizeof name
                              ? mgl_alias_new(MGL_ALIAS_VERB, name, (size_t)length)
                              : NULL;
    return renamed ? mgl_cli_find_word(verb, strrchr(renamed, ' ') + 1) : NULL;
}

static int end_code; /* exit code of a verb that succeeds */

void mgl_cli_end_with(int code)
{
    end_code = code;
}

int mgl_cli_end_code(void)
{
    return end_code;
}
