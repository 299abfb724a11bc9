/*
 * megalith kernel rollback UNIT: removes the promoted text of a micro-kernel and restores the text
 * used before.
 */
#include "cli/kernel/kernel.h"

#include "autotune/kernels/gates/overlay.h"

#define ROLLBACK_OPTIONS(X) MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(ROLLBACK_OPTIONS)

static mgl_status roll_back(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_unit *unit;
    bool restored = false;
    mgl_json_out out = {0};
    mgl_status status = mgl_kernel_find(operand, &unit, err);
    if (!status)
        status = mgl_overlay_roll_back(NULL, unit, &restored, err);
    if (status)
        return status;
    if (!o->json.given) {
        mgl_cli_printf("%s: %s\n", unit->name,
                       restored ? "the previously promoted text is restored"
                                : "the built-in text is restored");
        return MGL_OK;
    }
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_string(&out, "unit", unit->name);
    mgl_json_out_bool(&out, "restored", restored);
    mgl_cli_end_json(&out);
    return MGL_OK;
}

const mgl_cli_verb mgl_cli_kernel_rollback_verb = {
    .name = "kernel rollback",
    .operand = "UNIT",
    .summary = "restores the text that a promotion of a micro-kernel replaced",
    .example = "  megalith kernel rollback merge",
    MGL_CLI_VERB_OPTIONS,
    .run = roll_back,
};
