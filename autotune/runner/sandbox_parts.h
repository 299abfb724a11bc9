/* The two mechanisms of the sandbox, private to sandbox*.c. The int functions return 0 or an error
 * number. */
#ifndef MGL_AUTOTUNE_RUNNER_SANDBOX_PARTS_H
#define MGL_AUTOTUNE_RUNNER_SANDBOX_PARTS_H

#include "autotune/runner/sandbox.h"

/* sandbox_calls.c: seccomp */
int mgl_sandbox_look_calls(void);
int mgl_sandbox_refuse_calls(void);
/* If root: drops all capabilities except those for files, memory and priorities. Otherwise
 * nothing. */
void mgl_sandbox_drop_rights(void);

/* sandbox_files.c: Landlock. *abi becomes the Landlock ABI version. */
int mgl_sandbox_look_files(int *abi);
int mgl_sandbox_refuse_files(const mgl_sandbox_options *options, int *abi);

#endif
