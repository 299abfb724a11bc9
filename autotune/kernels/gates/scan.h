/*
 * Static scan of a unit's text before any compiler sees it. It rejects text that could do more than
 * compute, or that the compiler could read differently from a reader. The gates (verify.c), the
 * guard and the overlay call it.
 *
 * The scan has three passes. The first checks all tokens, including directives and macro bodies:
 * forbidden words (words.def), words of the scheduling code, and conditionals that differ from the
 * original. The second expands the text's macros (expand.h) and checks declarations: no variable
 * outlives a task, and no name belongs to the kernel. The third checks asm statements: instructions
 * of asm.def with operands of the statement. The compiled PTX is scanned later (verify.c).
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_SCAN_H
#define MGL_AUTOTUNE_KERNELS_GATES_SCAN_H

#include "autotune/kernels/gates/launch.h"
#include "autotune/kernels/gates/vocabulary.h"

/* fault->line is 0 if nothing is rejected. Fails only if memory runs out, or the kernel's own
 * sources cannot be read (MGL_GATE). `shared`: bytes of shared memory that the text declares. */
mgl_status mgl_kernel_scan(const mgl_kernel_unit *unit, const char *text, size_t length,
                           int64_t shared, mgl_scan_fault *fault, mgl_error *err);

/* Whether the content of conditionals equals the unit's original text (branches.c). False: the
 * fault is set. */
bool mgl_scan_branches(const mgl_tokens *text, const mgl_tokens *own,
                       const mgl_kernel_launch *launch, mgl_scan_fault *fault);

/* The third pass, on tokens after macro expansion. False: the fault is set. */
bool mgl_scan_asm(const mgl_tokens *tokens, mgl_scan_fault *fault);

#endif
