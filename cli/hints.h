/* What is said of a verb, a flag or a device that the command line does not know. */
#ifndef MGL_CLI_HINTS_H
#define MGL_CLI_HINTS_H

#include "cli/cli.h"

/* MGL_USAGE: a word that is no verb. */
mgl_status mgl_cli_fail_verb(const char *word, mgl_error *err);
/* MGL_USAGE: a flag that the verb does not have; "=value" may follow its name. */
mgl_status mgl_cli_fail_flag(const mgl_cli_verb *verb, const char *flag, mgl_error *err);
/* MGL_USAGE: a word behind the operand of the verb. */
mgl_status mgl_cli_fail_operand(const mgl_cli_verb *verb, const char *operand, const char *word,
                                mgl_error *err);
/* MGL_USAGE for a --device that no verb has; the message names those of this verb. */
mgl_status mgl_cli_check_device(const mgl_cli_verb *verb, const void *options, mgl_error *err);
/* Puts in the place of MGL_HINT_CPU, with which messages about a GPU end, what the verb can do
 * without one. */
void mgl_cli_advise_device(const mgl_cli_verb *verb, mgl_error *err);

#endif
