/*
 * Diagnostics as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), for editors and
 * code review: one run, a rule for each code of the validator that occurs, a result for each
 * diagnostic with its line, and its witnesses as related locations.
 */
#ifndef MGL_CLI_SCHEDULE_SARIF_H
#define MGL_CLI_SCHEDULE_SARIF_H

#include "cli/cli.h"
#include "validator/validator.h"

/* Prints the log of one file, as one line on standard output. `text` (length) is what was checked;
 * `failed` NULL, or why it could not be: it did not parse, say. */
void mgl_cli_print_sarif(const char *path, const char *text, size_t length,
                         const mgl_verdict *verdict, const mgl_error *failed);

#endif
