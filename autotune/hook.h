/*
 * Event hooks: an external program that is started once for each event, asynchronously. The
 * standard input of the program is the JSON of the event. The program has no arguments, is found as
 * execvp finds it, and no shell is involved. A process that does not end within the time limit
 * (MGL_HOOK_SECONDS by default) is killed together with its process group. Used by commands that
 * report campaign events.
 */
#ifndef MGL_AUTOTUNE_HOOK_H
#define MGL_AUTOTUNE_HOOK_H

#include "base/error.h"

#define MGL_HOOK_SECONDS 10.0
enum { MGL_HOOKS_AT_ONCE = 8 };

typedef struct mgl_hook mgl_hook;
/* `seconds`: time limit of a process; 0 means MGL_HOOK_SECONDS. */
mgl_status mgl_hook_open(const char *program, double seconds, mgl_hook **out, mgl_error *err);
/* Starts the program with `json` as its input and returns at once. MGL_SYSTEM: it cannot be
 * started, or MGL_HOOKS_AT_ONCE processes are running. */
mgl_status mgl_hook_tell(mgl_hook *hook, const char *json, size_t length, mgl_error *err);
/* Waits for the running processes. If `abort` (may be NULL) is set, kills them instead. Releases
 * the hook. `hook` may be NULL. */
void mgl_hook_close(mgl_hook *hook, const atomic_int *abort);

#endif
