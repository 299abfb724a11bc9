/*
 * megalith kernel branch UNIT: lists the branches of a micro-kernel's versions, or creates a
 * branch.
 */
#include "cli/kernel/loop.h"

#include <string.h>

#define BRANCH_OPTIONS(X)                                                                          \
    X(text, name, "--name", "NEW", 0, 0,                                                           \
      "switch to this branch, and create it if it does not exist")                                 \
    X(text, at, "--at", "NAME", 0, 0,                                                              \
      "version at which the branch begins (the newest version of the current branch)")             \
    MGL_CLI_PLACE_OPTIONS(X)
MGL_CLI_OPTIONS(BRANCH_OPTIONS)

static mgl_status list(const mgl_versions *c, mgl_error *err)
{
    mgl_file_list names = {0};
    mgl_status status = mgl_versions_branches(c, &names, err);
    if (!status && !names.count) /* the branch has no version yet */
        mgl_cli_printf("* %s\n", mgl_versions_branch(c));
    for (size_t i = 0; i < names.count; i++)
        mgl_cli_printf("%s %s\n", strcmp(names.names[i], mgl_versions_branch(c)) ? " " : "*",
                       names.names[i]);
    mgl_file_list_clear(&names);
    return status;
}

static mgl_status branch(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_store_options how = MGL_CLI_PLACE(o, !o->name.given);
    mgl_kernel_store b = {0};
    mgl_status status = mgl_kernel_store_open(operand, &how, &b, err);
    if (!status)
        status = mgl_kernel_store_make_branch(&b, o->name.value, o->at.value, err);
    if (!status)
        status = list(mgl_kernel_session_versions(b.bench), err);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_branch_verb = {
    .name = "kernel branch",
    .operand = "UNIT",
    .summary = "lists the branches of a micro-kernel, or begins a new one",
    .example = "  megalith kernel branch merge --name wide\n"
               "  megalith kernel branch merge --name anew --at original",
    .notes = MGL_CLI_PLACE_NOTES,
    MGL_CLI_VERB_OPTIONS,
    .run = branch,
};
