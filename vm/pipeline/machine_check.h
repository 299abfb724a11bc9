/*
 * Checks whether the machine of a program's target can run the program. This check is not part of
 * the proof: the validator does not read machine limits. If an accepted program cannot run, its
 * verdict gets a warning with a code, like the diagnostics of the validator. No device is needed.
 */
#ifndef MGL_VM_PIPELINE_MACHINE_CHECK_H
#define MGL_VM_PIPELINE_MACHINE_CHECK_H

#include "validator/validator.h"

/* MGL_BAD_INPUT with the reason; err->where is "line N" of the task, or what the program has too
 * much of. The CPU machine runs each accepted program. */
mgl_status mgl_check_machine(const mgl_program *program, mgl_error *err);

/* Adds the warning to the verdict of an accepted program that its machine cannot run. The verdict
 * stays accepted. MGL_NO_MEMORY. */
mgl_status mgl_machine_warn(const mgl_program *program, mgl_verdict *verdict, mgl_error *err);

/* The entry of a code: a diagnostic of the validator, or a warning. NULL: unknown. */
const mgl_code_info *mgl_find_code(int code);
bool mgl_is_warning_code(int code);
/* All codes by number, in order; NULL: there are no more. */
const mgl_code_info *mgl_get_code(int index);

#endif
