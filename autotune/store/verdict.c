/* Implements verdict.h: the tables generated from verdict.def, and the verdict with its forms. */
#include "autotune/store/verdict.h"

#include "base/format.h"

#include <string.h>

static const struct {
    const char *name, *hint;
    int exit;
} outcomes[] = {
#define MGL_OUTCOME(id, name, exit, hint) {name, hint, exit},
#include "autotune/store/verdict.def"
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

const char *mgl_outcome_kernel_hint(mgl_outcome outcome)
{
    static const char *const hints[MGL_OUTCOME_COUNT] = {
#define MGL_KERNEL_HINT(id, hint) [MGL_OUTCOME_##id] = (hint),
#include "autotune/store/verdict.def"
    };
    return hints[outcome] ? hints[outcome] : mgl_outcome_hint(outcome);
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

bool mgl_outcome_is_good(mgl_outcome outcome)
{
    return outcome == MGL_OUTCOME_UNMEASURED || mgl_outcome_is_correct(outcome);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

void mgl_trial_verdict_set(mgl_trial_verdict *verdict, mgl_outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mgl_format_ends_list(verdict->diagnostic, sizeof verdict->diagnostic, format, args);
    va_end(args);
    verdict->outcome = outcome;
}

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

void mgl_trial_verdict_fail(mgl_trial_verdict *verdict, mgl_outcome outcome, const mgl_error *why)
{
    verdict->outcome = outcome;
    mgl_diagnostic_of(why, verdict->diagnostic);
}

mgl_status mgl_trial_verdict_of(mgl_trial_verdict *verdict, mgl_status status, mgl_outcome outcome,
                                const mgl_error *why, mgl_error *err)
{
    const bool stays = status == MGL_NO_MEMORY || status == MGL_INTERRUPTED;
    if (stays && err)
        *err = *why;
    if (status && !stays)
        mgl_trial_verdict_fail(verdict, outcome, why);
    return stays ? status : MGL_OK;
}

void mgl_trial_verdict_print(const mgl_trial_verdict *verdict, mgl_text *out)
{
    const char *name = mgl_outcome_name(verdict->outcome), *diagnostic = verdict->diagnostic;
    const bool named = !strncmp(diagnostic, name, strlen(name));
    mgl_text_format(out, "%s%s%s", named ? "" : name, named || !diagnostic[0] ? "" : ": ",
                    diagnostic);
}

void mgl_trial_verdict_put(mgl_json_out *out, const mgl_trial_verdict *verdict)
{
    mgl_json_out_string(out, "outcome", mgl_outcome_name(verdict->outcome));
    mgl_json_out_string(out, "diagnostic", verdict->diagnostic);
}

mgl_status mgl_outcome_read(const mgl_json *json, const cJSON *object, mgl_outcome *out,
                            mgl_error *err)
{
    const char *name = NULL;
    mgl_status status = mgl_json_get_string(json, object, "outcome", true, &name, err);
    if (!status && !mgl_outcome_parse(name, out))
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "there is no outcome '%.80s'", name);
    return status;
}

mgl_status mgl_trial_verdict_read(const mgl_json *json, const cJSON *object, mgl_trial_verdict *out,
                                  mgl_error *err)
{
    const char *diagnostic = NULL;
    mgl_status status = mgl_outcome_read(json, object, &out->outcome, err);
    if (!status)
        status = mgl_json_get_string(json, object, "diagnostic", false, &diagnostic, err);
    if (!status)
        mgl_format_into(out->diagnostic, sizeof out->diagnostic, "%s",
                        diagnostic ? diagnostic : "");
    return status;
}
