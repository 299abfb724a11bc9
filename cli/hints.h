/*
 * Error messages for verbs, flags and devices that the command line does not have, with the nearest
 * known name. main and the parser call them.
 */
#ifndef MGL_CLI_HINTS_H
#define MGL_CLI_HINTS_H

#include "cli/cli.h"

/* MGL_USAGE: a word that is not a verb. */
mgl_status mgl_cli_fail_verb(const char *word, mgl_error *err);
/* MGL_USAGE: a flag that the verb does not have; "=value" may follow its name. */
mgl_status mgl_cli_fail_flag(const mgl_cli_verb *verb, const char *flag, mgl_error *err);
/* MGL_USAGE: a word after the operand of the verb. */
mgl_status mgl_cli_fail_operand(const mgl_cli_verb *verb, const char *operand, const char *word,
                                mgl_error *err);
/* MGL_USAGE for an unknown --device; the message lists the devices of this verb. */
mgl_status mgl_cli_check_device(const mgl_cli_verb *verb, const void *options, mgl_error *err);
/* MGL_USAGE for a --dtype of another program that has a name here. */
mgl_status mgl_cli_check_dtype(const mgl_cli_verb *verb, const void *options, mgl_error *err);
/* Replaces MGL_HINT_CPU, the end of messages about a GPU, by the devices that the verb can use
 * without a GPU. */
void mgl_cli_advise_device(const mgl_cli_verb *verb, mgl_error *err);

#endif
