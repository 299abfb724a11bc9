/* The outcomes of a proposal: enum, names, exit codes and hints, all generated from the list in
 * autotune/search/verdict.def. Used by the campaign, the store, the reports and the commands. */
#ifndef MGL_AUTOTUNE_SEARCH_VERDICT_H
#define MGL_AUTOTUNE_SEARCH_VERDICT_H

#include "base/error.h"

typedef enum mgl_outcome {
#define MGL_OUTCOME(id, name, exit, hint) MGL_OUTCOME_##id,
#include "autotune/search/verdict.def"
#undef MGL_OUTCOME
    MGL_OUTCOME_COUNT
} mgl_outcome;

enum {
    MGL_EXIT_KEPT = 0,
    MGL_EXIT_NOT_KEPT = 10,
    MGL_EXIT_REFUSED = 11,
    MGL_EXIT_INCORRECT = 12,
    MGL_EXIT_UNMEASURED = 13,
    MGL_EXIT_FROZEN = 14
};

const char *mgl_outcome_name(mgl_outcome outcome); /* "NO_GAIN" */
int mgl_outcome_exit(mgl_outcome outcome);         /* MGL_EXIT_... */
const char *mgl_outcome_hint(mgl_outcome outcome); /* one sentence, at most 300 bytes */
/* False: no such name. */
bool mgl_outcome_parse(const char *name, mgl_outcome *out);

/* Whether the candidate ran and computed the model's result, kept or not, timed or not. */
bool mgl_outcome_is_correct(mgl_outcome outcome);

#endif
