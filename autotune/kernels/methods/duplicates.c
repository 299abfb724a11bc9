/* Implements duplicates.h: compares hashes with the original, the base text and the versions. */
#include "autotune/kernels/methods/duplicates.h"

#include "autotune/kernels/gates/kernel.h"

#include <string.h>

enum { SHOWN = 12 /* digits of an id */ };

typedef struct looking {
    const mgl_duplicates *known;
    char hash[MGL_SHA256_HEX]; /* hash of the text to look for */
    mgl_trial_verdict *out;
} looking;

static bool is_found(const looking *l)
{
    return l->out->outcome == MGL_OUTCOME_DUPLICATE;
}

static mgl_status compare(const looking *l, const char *text, size_t length, bool *same,
                          mgl_error *err)
{
    char hash[MGL_SHA256_HEX];
    mgl_status status = mgl_kernel_hash(text, length, hash, err);
    *same = !status && !strcmp(hash, l->hash);
    return status;
}

/* Whether the verdict of a version is still complete: it has the same architecture, and every gate
 * that would run now was run then. */
static bool counts(const mgl_duplicates *known, const mgl_version_record *r)
{
    return !strcmp(r->arch, known->arch) && (!known->compiles || r->verdict.facts.registers > 0) &&
           (!known->has_device || r->verdict.outcome != MGL_OUTCOME_UNMEASURED);
}

static mgl_status look_at(void *user, const mgl_version_record *r, mgl_error *err)
{
    looking *l = user;
    bool same = false;
    if (is_found(l) || !counts(l->known, r))
        return MGL_OK;
    mgl_status status = compare(l, r->text, strlen(r->text), &same, err);
    if (same)
        mgl_trial_verdict_set(l->out, MGL_OUTCOME_DUPLICATE,
                              "DUPLICATE: it equals version %.*s says, which was %s%s%s", SHOWN,
                              r->id, mgl_outcome_name(r->verdict.outcome),
                              r->verdict.diagnostic[0] ? ": " : "", r->verdict.diagnostic);
    return status;
}

mgl_status mgl_duplicates_find(const mgl_duplicates *known, const char *text, size_t length,
                               mgl_trial_verdict *out, mgl_error *err)
{
    looking l = {.known = known, .out = out};
    size_t own_length;
    bool same = false;
    const char *own = mgl_kernel_unit_text(known->unit, &own_length);
    mgl_status status = mgl_kernel_hash(text, length, l.hash, err);
    if (!status)
        status = compare(&l, known->base, known->base_length, &same, err);
    if (same)
        mgl_trial_verdict_set(out, MGL_OUTCOME_DUPLICATE,
                              "DUPLICATE: it equals the text from which it was made");
    if (!status && !is_found(&l))
        status = compare(&l, own, own_length, &same, err);
    if (same && !is_found(&l))
        mgl_trial_verdict_set(out, MGL_OUTCOME_DUPLICATE,
                              "DUPLICATE: it equals the unit's original text");
    if (status || is_found(&l))
        return status;
    return mgl_versions_each(known->versions, look_at, &l, err);
}
