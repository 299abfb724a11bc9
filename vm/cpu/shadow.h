/*
 * The shadow of a machine's memory: who wrote and read each element last, and in which epoch;
 * vector clocks of queues and counters.
 *
 * Elements that no region tells apart share one cell: each dimension of a buffer is cut where some
 * region of the program begins or ends. Rows are one cell; sequences and positions of the KV cache
 * are cut at every index, and a task touches the positions that its queue's row table says.
 *
 * A buffer with sets has cells for each. A flag edge orders nothing: a read by flags must come
 * after the last clear of its words, as must a write, but need not come after the write; a clear
 * must come after all of both. Whether the words are of the right epoch is seen to in words.h.
 *
 * Clocks: a queue's own entry counts its tasks. A signal is a release: the counter keeps, for each
 * value it takes, the join of all signals up to it (each read-modify-write continues the release
 * sequences of those before it). A wait is an acquire that may have read any value from the wanted
 * one on, so it joins as little as it may: the wanted value's clock, or that of the last signal
 * that is ordered before the wait anyway.
 */
#ifndef MGL_VM_CPU_SHADOW_H
#define MGL_VM_CPU_SHADOW_H

#include "vm/cpu/machine.h"

typedef struct mgl_shadow mgl_shadow;

/* What an access is in conflict with. */
typedef struct mgl_conflict {
    enum { MGL_NO_CONFLICT, MGL_UNORDERED, MGL_UNWRITTEN } kind;
    int buffer;
    bool write;             /* the access now */
    bool other_write;       /* the other one; a clear is a write */
    int other;              /* its task; -1: none */
    int sequence, position; /* in a KV buffer, else -1 */
} mgl_conflict;

mgl_status mgl_shadow_open(const mgl_machine *machine, mgl_shadow **out, mgl_error *err);
void mgl_shadow_close(mgl_shadow *shadow); /* NULL is fine */

/* Forgets all accesses and clocks: the start of a launch. */
void mgl_shadow_reset(mgl_shadow *shadow);
/* Behind a reset: positions [0, count) of a sequence were written by earlier launches. */
void mgl_shadow_assume(mgl_shadow *shadow, int sequence, int count);

/* Queue q is about to execute its next task, whose waits are met: acquires and checks its
 * accesses. */
mgl_conflict mgl_shadow_begin(mgl_shadow *shadow, int q);
/* It has executed task `task`: releases. False when memory ran out. */
bool mgl_shadow_end(mgl_shadow *shadow, int q, int task);

/* The clock of queue q: tasks that it has begun. */
uint32_t mgl_shadow_clock(const mgl_shadow *shadow, int q);
/* Whether the task that queue q has begun comes after what queue `other` did at `clock`. */
bool mgl_shadow_is_after(const mgl_shadow *shadow, int q, int other, uint32_t clock);

#endif
