/*
 * A program that is started at events, beside whatever goes on: the event's JSON is its standard
 * input. One program without arguments, found as execvp finds it; no shell. What does not end in 10
 * s is killed, with what it started.
 */
#ifndef MGL_AUTOTUNE_HOOK_H
#define MGL_AUTOTUNE_HOOK_H

#include "base/error.h"

#define MGL_HOOK_SECONDS 10.0
enum { MGL_HOOKS_AT_ONCE = 8 };

typedef struct mgl_hook mgl_hook;
/* `seconds` 0: MGL_HOOK_SECONDS. */
mgl_status mgl_hook_open(const char *program, double seconds, mgl_hook **out, mgl_error *err);
/* Starts it. MGL_SYSTEM: it can not be started, or MGL_HOOKS_AT_ONCE are running. */
mgl_status mgl_hook_tell(mgl_hook *hook, const char *json, size_t length, mgl_error *err);
/* Waits for those that are running, or until `abort` (which may be NULL), and then kills them. NULL
 * is fine. */
void mgl_hook_close(mgl_hook *hook, const atomic_int *abort);

#endif
