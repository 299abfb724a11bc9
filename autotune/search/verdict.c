/* Tables and functions of verdict.h, generated from verdict.def. */
#include "autotune/search/verdict.h"

#include <string.h>

static const struct {
    const char *name, *hint;
    int exit;
} outcomes[] = {
#define MGL_OUTCOME(id, name, exit, hint) {name, hint, exit},
#include "autotune/search/verdict.def"
#undef MGL_OUTCOME
};

const char *mgl_outcome_name(mgl_outcome outcome)
{
    return outcomes[outcome].name;
}

int mgl_outcome_exit(mgl_outcome outcome)
{
    return outcomes[outcome].exit;
}

const char *mgl_outcome_hint(mgl_outcome outcome)
{
    return outcomes[outcome].hint;
}

bool mgl_outcome_parse(const char *name, mgl_outcome *out)
{
    for (int i = 0; i < MGL_OUTCOME_COUNT; i++)
        if (!strcmp(outcomes[i].name, name)) {
            *out = (mgl_outcome)i;
            return true;
        }
    return false;
}

bool mgl_outcome_is_correct(mgl_outcome outcome)
{
    return outcome == MGL_OUTCOME_OK || mgl_outcome_exit(outcome) == MGL_EXIT_NOT_KEPT;
}
