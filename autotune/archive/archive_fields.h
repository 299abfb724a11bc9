/* Definitions shared by the writer and the reader of archives (archive_write.c, archive_read.c). */
#ifndef MGL_AUTOTUNE_ARCHIVE_ARCHIVE_FIELDS_H
#define MGL_AUTOTUNE_ARCHIVE_ARCHIVE_FIELDS_H

#include "autotune/store/fields.h"
#include "autotune/store/record.h"

#include <string.h>

#define MGL_ARCHIVE_SCHEMA "megalith.archive/1"
enum {
    MGL_ARCHIVE_PLAIN = 128,    /* largest name, target, driver and similar text, in bytes */
    MGL_ARCHIVE_SHAPE = 1 << 16 /* largest JSON text of the shape, in bytes */
};

/* A share, a predicted winner, a gain, and a gain in one workload. */
extern const mgl_fields mgl_archive_share_fields, mgl_archive_predicted_fields,
    mgl_archive_gain_fields, mgl_archive_workload_fields;

/* Checks that the stored result of a kept trial follows from its pairs. MGL_BAD_INPUT, with the
 * trial's number: it does not. *lost: 0 before the first keep of a campaign, then updated by each
 * call (mgl_judge_add_loss). NULL: the campaign has another manifest, which may not have had this
 * bound. */
mgl_status mgl_archive_check_keep(const mgl_trial *trial, int workloads, double *lost,
                                  mgl_error *err);

/* Whether a field is written to an archive under its own name. Left out are fields written in
 * another form (proposal, shape), facts of the machine and its user (options, space, state), and
 * facts that only matter in the store. */
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
