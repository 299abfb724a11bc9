/*
 * What the cache of a machine holds of earlier launches, so that a prompt which begins with the
 * same tokens reads only the rest.
 *
 * mgl_prefix has, for each sequence of the program, the ids whose keys and values a launch has
 * written, from position 0 on. The last token that a reply made is not among them: nothing was
 * computed from it. A launch that fails leaves nothing behind, nor does whatever else touches the
 * cache.
 */
#ifndef MGL_VM_PREFIX_H
#define MGL_VM_PREFIX_H

#include "vm/vm.h"

/* For a program, or another one with as many sequences and the same capacity. Release with
 * mgl_prefix_close. */
mgl_status mgl_prefix_open(mgl_prefix *prefix, const mgl_program *program, mgl_error *err);
void mgl_prefix_close(mgl_prefix *prefix); /* all zero is fine */

void mgl_prefix_forget(mgl_prefix *prefix);

/* Sequence `s` of a request for `program`: its prompt begins behind what the cache holds of it, one
 * token at least being left to read. How many tokens need not be read. A sequence that does not ask
 * for it, starts behind other positions, or is scored, stays as it is: 0. */
int32_t mgl_prefix_skip(const mgl_prefix *prefix, const mgl_program *program, int s,
                        mgl_vm_sequence *sequence);

/* After a launch of the sequences (count) of a request, which ended without an error: what the
 * cache holds of each now, of which report->written says how many. */
void mgl_prefix_note(mgl_prefix *prefix, const mgl_program *program,
                     const mgl_vm_sequence *sequences, int count, const mgl_vm_report *report);

#endif
