/*
 * megalith kernel next UNIT: prints as JSON what an external proposer needs: the open work with its
 * prompt, or the transformations that can start.
 */
#include "cli/kernel/loop.h"

#define NEXT_OPTIONS(X)                                                                            \
    MGL_CLI_PLACE_OPTIONS(X)                                                                       \
    MGL_CLI_ARCH_OPTION(X)                                                                         \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(NEXT_OPTIONS)

static mgl_status next(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_kernel_store_options how = MGL_CLI_PLACE(o, true);
    mgl_kernel_store b = {0};
    mgl_json_out out = {0};
    how.arch = o->arch.value;
    mgl_status status = mgl_kernel_store_open(operand, &how, &b, err);
    mgl_json_out_begin(&out, "megalith.kernel/1");
    if (!status)
        status = mgl_kernel_store_put_next(&b, &out, err);
    if (!status) {
        mgl_json_out_string(&out, "submit",
                            mgl_kernel_session_state(b.bench).open
                                ? "megalith kernel submit FILE --unit UNIT"
                                : "megalith kernel prompt UNIT --transform NAME");
        mgl_cli_end_json(&out);
    }
    mgl_text_clear(&out.text);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_next_verb = {
    .name = "kernel next",
    .operand = "UNIT",
    .summary = "prints what an agent needs, as JSON: the open task and its prompt, and possible "
               "next tasks",
    .example = "  megalith kernel next merge",
    MGL_CLI_VERB_OPTIONS,
    .run = next,
};
