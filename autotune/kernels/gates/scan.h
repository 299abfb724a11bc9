/*
 * The static scan of a unit's text, before any compiler sees it: nothing stands in it by which it
 * could do more than compute, or be something else for the compiler than for a reader.
 *
 * Three walks. The words as they stand, directives and bodies of macros included: none that
 * words.def forbids or that is of the machine's scheduling; behind conditions the unit's own alone.
 * Then, its macros put in (expand.h), what it declares: no variable outlives a task, no name is one
 * of the kernel's. Then its asm statements: instructions of asm.def, on operands of the statement.
 * The PTX that is compiled is looked at afterwards (verify.c).
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_SCAN_H
#define MGL_AUTOTUNE_KERNELS_GATES_SCAN_H

#include "autotune/kernels/gates/vocabulary.h"
#include "autotune/kernels/trial/launch.h"

/* fault->line is 0 where nothing is refused. Fails only where memory ran out, or the kernel's own
 * sources can not be read (MGL_GATE). `shared`: bytes of shared memory that the text declares to
 * need. */
mgl_status mgl_kernel_scan(const mgl_kernel_unit *unit, const char *text, size_t length,
                           int64_t shared, mgl_scan_fault *fault, mgl_error *err);

/* Whether what stands behind conditions of the preprocessor is what stands behind those of the
 * unit's own text (branches.c). False: it said what is refused. */
bool mgl_scan_branches(const mgl_tokens *text, const mgl_tokens *own,
                       const mgl_kernel_launch *launch, mgl_scan_fault *fault);

/* The third walk, of words whose macros are put in. False: it said what is refused. */
bool mgl_scan_asm(const mgl_tokens *tokens, mgl_scan_fault *fault);

#endif
