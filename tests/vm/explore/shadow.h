/*
 * Shadow memory of a happens-before race detector with vector clocks. For each element of the
 * machine's memory it stores the last write and reads with their tasks and epochs; for each queue
 * and counter it stores a vector clock. explore.c calls it around each task.
 *
 * Elements that no region distinguishes share one cell: each dimension of a buffer is cut where
 * some region of the program begins or ends. Rows are one cell. Sequences and positions of the KV
 * cache are cut at every index; a task accesses the positions in its queue's row table.
 *
 * A buffer with sets has cells for each set. A flag edge orders nothing. A flag read or flag write
 * must come after the last clear of its words; a flag read need not come after the write. A clear
 * must come after all reads and writes. words.h checks the epoch of flag words.
 *
 * Clocks: a queue's own entry counts its tasks. A signal is a release: for each value, the counter
 * stores the join of all signals up to that value, because each read-modify-write continues the
 * earlier release sequences. A wait is an acquire that may have read any value from the wanted one
 * on. It joins the minimum: the clock of the wanted value, or of the last signal that is already
 * ordered before the wait.
 */
#ifndef MGL_TESTS_VM_EXPLORE_SHADOW_H
#define MGL_TESTS_VM_EXPLORE_SHADOW_H

#include "vm/cpu/machine.h"

typedef struct mgl_shadow mgl_shadow;

/* The earlier access that an access conflicts with. */
typedef struct mgl_conflict {
    enum { MGL_NO_CONFLICT, MGL_UNORDERED, MGL_UNWRITTEN } kind;
    int buffer;
    bool write;             /* whether the current access is a write */
    bool other_write;       /* whether the earlier access is a write; a clear counts as one */
    int other;              /* task of the earlier access; -1: none */
    int sequence, position; /* in a KV buffer, else -1 */
} mgl_conflict;

mgl_status mgl_shadow_open(const mgl_machine *machine, mgl_shadow **out, mgl_error *err);
void mgl_shadow_close(mgl_shadow *shadow); /* NULL is allowed */

/* Removes all accesses and clocks, at the start of a launch. */
void mgl_shadow_reset(mgl_shadow *shadow);
/* Call after a reset: marks positions [0, count) of a sequence as written by earlier launches. */
void mgl_shadow_assume(mgl_shadow *shadow, int sequence, int count);

/* Called before queue q executes its next task, whose waits are met. Acquires the waits and checks
 * the task's accesses. */
mgl_conflict mgl_shadow_begin(mgl_shadow *shadow, int q);
/* Called after queue q executed task `task`: releases its signals. False when memory ran out. */
bool mgl_shadow_end(mgl_shadow *shadow, int q, int task);

/* Clock of queue q: the number of tasks that it has begun. */
uint32_t mgl_shadow_clock(const mgl_shadow *shadow, int q);
/* Whether the task that queue q has begun is ordered after queue `other`'s task at `clock`. */
bool mgl_shadow_is_after(const mgl_shadow *shadow, int q, int other, uint32_t clock);

#endif
