/*
 * The warning of `lower` and `explain` about a schedule that the machine of its target cannot run.
 * `check` reports the same warning as a diagnostic.
 */
#ifndef MGL_CLI_SCHEDULE_WARNING_H
#define MGL_CLI_SCHEDULE_WARNING_H

#include "schedule/program.h"

/* Prints the warning of an accepted program on standard error, if there is one. MGL_NO_MEMORY. */
mgl_status mgl_cli_warn_machine(const char *verb, const mgl_program *program, mgl_error *err);

#endif
