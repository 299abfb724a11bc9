/*
 * The key of a chat endpoint, and the environment of the processes that may have it. `tune`,
 * `campaign` and `kernel` use it.
 */
#ifndef MGL_CLI_CHAT_KEY_H
#define MGL_CLI_CHAT_KEY_H

#include <stdbool.h>

#include "megalith.h"

/* Called by main: moves the key of a chat endpoint from the environment to this process's
 * memory. */
void mgl_cli_take_key(void);
/* The key from a file (`path`), or else the key of mgl_cli_take_key; *out is NULL if there is none.
 * Standard input is read once; its key then replaces the key of the environment. Release with
 * mgl_chat_forget_key. */
mgl_status mgl_cli_find_key(const char *path, char **out, mgl_error *err);
/* A copy of this process's environment, with the key put back if there was one. */
typedef struct mgl_cli_environment {
    char **entries; /* ends with NULL */
    char *key;
} mgl_cli_environment;
mgl_status mgl_cli_make_environment(bool with_key, mgl_cli_environment *out, mgl_error *err);
void mgl_cli_clear_environment(mgl_cli_environment *environment);

#endif
