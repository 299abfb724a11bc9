/* megalith kernel checkout UNIT: works on another branch, or from another checkpoint on. */
#include "cli/kernel/loop.h"

#define CHECKOUT_OPTIONS(X)                                                                        \
    X(text, branch, "--branch", "NAME", 0, 0, "of those there are, that is worked on from now on") \
    X(text, at, "--at", "NAME", 0, 0, "where the branch stands from now on")                       \
    MGL_CLI_PLACE_OPTIONS(X)
MGL_CLI_OPTIONS(CHECKOUT_OPTIONS)

static mgl_status move(const struct options *o, const mgl_workshop *b, mgl_error *err)
{
    mgl_checkpoints *c = mgl_workbench_checkpoints(b->bench);
    mgl_checkpoint_record r = {0};
    mgl_status status = MGL_OK;
    if (mgl_workbench_state(b->bench).open)
        return mgl_fail(err, MGL_USAGE, b->unit->name,
                        "a work is open: `megalith kernel prompt %s --drop` gives it up",
                        b->unit->name);
    if (o->branch.given)
        status = mgl_checkpoints_go_to(c, o->branch.value, err);
    if (!status && o->at.given)
        status = mgl_checkpoints_restore(c, o->at.value, err);
    if (!status)
        status = mgl_checkpoints_get(c, NULL, &r, err);
    if (!status)
        mgl_cli_printf("%s %s\n", mgl_checkpoints_branch(c), r.id);
    mgl_checkpoint_clear(&r);
    return status;
}

static mgl_status checkout(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_workshop_options how = MGL_CLI_PLACE(o, false);
    mgl_workshop b = {0};
    if (!o->branch.given && !o->at.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--branch or --at is needed, or both");
    mgl_status status = mgl_workshop_open(operand, &how, &b, err);
    if (!status)
        status = move(o, &b, err);
    mgl_workshop_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_checkout_verb = {
    .name = "kernel checkout",
    .operand = "UNIT",
    .summary = "works on another branch, or lets the branch stand at another checkpoint",
    .example = "  megalith kernel checkout merge --branch wide",
    .notes = MGL_CLI_PLACE_NOTES,
    MGL_CLI_VERB_OPTIONS,
    .run = checkout,
};
