/* The two parts of the sandbox. Private to sandbox*.c. Of all functions: 0, or an error number. */
#ifndef MGL_AUTOTUNE_RUNNER_SANDBOX_PARTS_H
#define MGL_AUTOTUNE_RUNNER_SANDBOX_PARTS_H

#include "autotune/runner/sandbox.h"

/* sandbox_calls.c: seccomp */
int mgl_sandbox_look_calls(void);
int mgl_sandbox_refuse_calls(void);
/* Of root: what files, memory and priorities take is kept. Nothing to do for others. */
void mgl_sandbox_drop_rights(void);

/* sandbox_files.c: Landlock; its ABI to *abi */
int mgl_sandbox_look_files(int *abi);
int mgl_sandbox_refuse_files(const mgl_sandbox_options *options, int *abi);

#endif
