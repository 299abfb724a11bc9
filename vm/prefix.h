/*
 * Prefix caching: records which tokens the KV cache of a machine holds from earlier launches, so
 * that a prompt with the same first tokens reads only the rest. vm/vm.c calls it around each
 * launch.
 *
 * For each sequence of the program, mgl_prefix stores the ids whose keys and values a launch has
 * written, from position 0 on. The last token of a reply is not included, because its keys and
 * values were not computed. A failed launch, and anything else that changes the cache, clears the
 * record.
 */
#ifndef MGL_VM_PREFIX_H
#define MGL_VM_PREFIX_H

#include "vm/vm.h"

/* Opens a record for the program, or for any program with the same sequences and capacity. Release
 * with mgl_prefix_close. */
mgl_status mgl_prefix_open(mgl_prefix *prefix, const mgl_program *program, mgl_error *err);
void mgl_prefix_close(mgl_prefix *prefix); /* a zeroed record is allowed */

/* The record of the machine's cache, which may be its owner's. */
static inline mgl_prefix *mgl_prefix_of(mgl_vm *vm)
{
    return vm->owner ? &vm->owner->prefix : &vm->prefix;
}

void mgl_prefix_forget(mgl_prefix *prefix);

/* Skips the prompt tokens of sequence `s` of a request that the cache already holds, and leaves at
 * least one token to read: adjusts *sequence and returns the number of tokens skipped. Returns 0,
 * with no change, if the sequence does not set `reuse`, does not start at 0, or is scored. */
int32_t mgl_prefix_skip(const mgl_prefix *prefix, const mgl_program *program, int s,
                        mgl_vm_sequence *sequence);

/* Records what the cache holds of each sequence (count) after a launch without errors.
 * report->written gives the number of positions. */
void mgl_prefix_note(mgl_prefix *prefix, const mgl_program *program,
                     const mgl_vm_sequence *sequences, int count, const mgl_vm_report *report);

#endif
