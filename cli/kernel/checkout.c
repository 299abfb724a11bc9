/*
 * megalith kernel checkout UNIT: switches to another branch, or moves the branch to another
 * version.
 */
#include "cli/kernel/loop.h"

#define CHECKOUT_OPTIONS(X)                                                                        \
    X(text, branch, "--branch", "NAME", 0, 0, "switch to this existing branch")                    \
    X(text, at, "--at", "NAME", 0, 0, "set the branch to this version")                            \
    MGL_CLI_PLACE_OPTIONS(X)
MGL_CLI_OPTIONS(CHECKOUT_OPTIONS)

static mgl_status move(const struct options *o, const mgl_kernel_store *b, mgl_error *err)
{
    mgl_versions *c = mgl_kernel_session_versions(b->bench);
    mgl_version_record r = {0};
    mgl_status status = MGL_OK;
    if (mgl_kernel_session_state(b->bench).open)
        return mgl_fail(err, MGL_USAGE, b->unit->name,
                        "a task is open; `megalith kernel prompt %s --drop` drops it",
                        b->unit->name);
    if (o->branch.given)
        status = mgl_versions_go_to(c, o->branch.value, err);
    if (!status && o->at.given)
        status = mgl_versions_restore(c, o->at.value, err);
    if (!status)
        status = mgl_versions_get(c, NULL, &r, err);
    if (!status)
        mgl_cli_printf("%s %s\n", mgl_versions_branch(c), r.id);
    mgl_version_clear(&r);
    return status;
}

static mgl_status checkout(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_store_options how = MGL_CLI_PLACE(o, false);
    mgl_kernel_store b = {0};
    if (!o->branch.given && !o->at.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--branch and --at are missing; give at least one");
    mgl_status status = mgl_kernel_store_open(operand, &how, &b, err);
    if (!status)
        status = move(o, &b, err);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_checkout_verb = {
    .name = "kernel checkout",
    .operand = "UNIT",
    .summary = "switches to another branch, or sets the branch to another version",
    .example = "  megalith kernel checkout merge --branch wide",
    .notes = MGL_CLI_PLACE_NOTES,
    MGL_CLI_VERB_OPTIONS,
    .run = checkout,
};
