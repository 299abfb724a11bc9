/* What the writer and the reader of archives agree on. */
#ifndef MGL_AUTOTUNE_STORE_ARCHIVE_FIELDS_H
#define MGL_AUTOTUNE_STORE_ARCHIVE_FIELDS_H

#include "autotune/store/fields.h"
#include "autotune/store/record.h"

#include <string.h>

#define MGL_ARCHIVE_SCHEMA "megalith.archive/1"
enum {
    MGL_ARCHIVE_PLAIN = 128,    /* bytes of a name, a target, a driver, ... */
    MGL_ARCHIVE_SHAPE = 1 << 16 /* bytes of the shape's JSON */
};

/* MGL_BAD_INPUT, with its number: what the store says of a trial that was kept does not follow from
 * its pairs. *lost: 0 for the first keep of a campaign, and as it was left for the others
 * (mgl_judge_add_loss); NULL: of a campaign of another manifest, which may have had no such bound.
 */
mgl_status mgl_archive_check_keep(const mgl_trial *trial, int workloads, double *lost,
                                  mgl_error *err);

/* Whether a field stands in an archive as one of its own. Left out: what stands there in another
 * form (the proposal, the shape), what is of the machine and its user (options, the space, state),
 * and what only the store knows. */
static inline bool mgl_archive_has(const mgl_field *field)
{
    static const char *const left_out[] = {"shape",    "space",  "options",    "state",
                                           "reason",   "config", "hypothesis", "moves",
                                           "schedule", "parent", "queued",     "condemned"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (!strcmp(field->name, left_out[i]))
            return false;
    return true;
}

#endif
