/* Implements record.h: release of records, and diagnostics of errors. */
#include "autotune/store/record.h"

#include "base/format.h"
#include "base/memory.h"

#include <string.h>

/* Whether a line only contains carets that point at the line above. */
static bool is_caret(const char *line, size_t length)
{
    size_t drawn = 0;
    for (size_t i = 0; i < length; i++) {
        if (!strchr(" ^~", line[i]))
            return false;
        drawn += line[i] != ' ';
    }
    return drawn > 0;
}

/* Joins the lines of a message with " | ", without caret lines. */
static void join_lines(const char *message, char *to, size_t size)
{
    size_t used = 0;
    to[0] = 0;
    for (const char *at = message; *at;) {
        size_t length = strcspn(at, "\n");
        if (length && !is_caret(at, length)) {
            mgl_format_into(to + used, size - used, "%s%.*s", used ? " | " : "", (int)length, at);
            used += strlen(to + used);
        }
        at += length + (at[length] == '\n');
    }
}

void mgl_diagnostic_of(const mgl_error *why, char out[MGL_MAX_DIAGNOSTIC + 1])
{
    static const char whole[] = "%s%s%s";
    const char *colon = why->where[0] ? ": " : "";
    char joined[2 * sizeof why->message];
    join_lines(why->message, joined, sizeof joined);
    if (strchr(why->message, '\n'))
        mgl_format_into(out, MGL_MAX_DIAGNOSTIC + 1, whole, why->where, colon, joined);
    else
        mgl_format_ends(out, MGL_MAX_DIAGNOSTIC + 1, whole, why->where, colon, joined);
}

void mgl_proposal_clear(mgl_proposal *proposal)
{
    mgl_free(proposal->proposer);
    mgl_free(proposal->hypothesis);
    mgl_free(proposal->schedule);
    mgl_moves_clear(&proposal->moves);
    *proposal = (mgl_proposal){0};
}

void mgl_trial_clear(mgl_trial *trial)
{
    mgl_proposal_clear(&trial->proposal);
    mgl_free(trial->pairs);
    *trial = (mgl_trial){0};
}

void mgl_campaign_record_clear(mgl_campaign_record *record)
{
    char *texts[] = {record->name,    record->model, record->shape,     record->device,
                     record->target,  record->dtype, record->workloads, record->space,
                     record->options, record->state, record->reason};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        mgl_free(texts[i]);
    *record = (mgl_campaign_record){0};
}
