/*
 * Prints diagnostics as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), for
 * editors and code review. The log has one run, one rule for each validator code that occurs, and
 * one result for each diagnostic with its line. Witnesses become related locations. `check --sarif`
 * calls it.
 */
#ifndef MGL_CLI_SCHEDULE_SARIF_H
#define MGL_CLI_SCHEDULE_SARIF_H

#include "cli/cli.h"
#include "validator/validator.h"

/* Prints the log of one file as one line on standard output. `text` (length) is the checked text.
 * `failed` is NULL, or the error that prevented the check, such as a parse error. */
void mgl_cli_print_sarif(const char *path, const char *text, size_t length,
                         const mgl_verdict *verdict, const mgl_error *failed);

#endif
