/* megalith kernel list: prints the micro-kernels. */
#include "cli/kernel/kernel.h"

#define LIST_OPTIONS(X) MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(LIST_OPTIONS)

static void list_json(void)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_kernel_put_units(&out);
    mgl_cli_end_json(&out);
}

static mgl_status list(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    (void)operand, (void)err;
    if (o->json.given) {
        list_json();
        return MGL_OK;
    }
    for (int i = 0; i < mgl_kernel_unit_count(); i++) {
        const mgl_kernel_unit *unit = mgl_kernel_unit_get(i);
        mgl_cli_printf("%-20s %s\n", unit->name, unit->file);
    }
    return MGL_OK;
}

const mgl_cli_verb mgl_cli_kernel_list_verb = {
    .name = "kernel list",
    .summary = "lists the micro-kernels and their files",
    .example = "  megalith kernel list",
    MGL_CLI_VERB_OPTIONS,
    .run = list,
};
