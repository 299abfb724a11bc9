/* Prints the warning about a machine. See warning.h. */
#include "cli/schedule/warning.h"

#include "cli/cli.h"
#include "vm/pipeline/machine_check.h"

mgl_status mgl_cli_warn_machine(const char *verb, const mgl_program *program, mgl_error *err)
{
    mgl_verdict verdict = {.accepted = true};
    mgl_status status = mgl_machine_warn(program, &verdict, err);
    for (int i = 0; i < verdict.count; i++)
        mgl_cli_say(verb, "warning: MG%03d: %s", verdict.diagnostics[i].code,
                    verdict.diagnostics[i].message);
    mgl_verdict_clear(&verdict);
    return status;
}
