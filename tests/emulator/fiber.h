/*
 * Fibers: threads with their own stacks that one system thread runs in turn, and the switch between
 * them.
 */
#ifndef MGL_TESTS_EMULATOR_FIBER_H
#define MGL_TESTS_EMULATOR_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

enum { EMU_STACK_BYTES = 64 * 1024 };

typedef struct emu_fiber {
#if defined(__x86_64__)
    void *top; /* stack pointer, where its registers are saved */
#else
    ucontext_t context;
#endif
} emu_fiber;

/* Makes a fiber that calls `start` (which never returns) at the first switch to it. `bytes` of
 * stack: a multiple of 64. */
void emu_fiber_init(emu_fiber *fiber, void *stack, size_t bytes, void (*start)(void));

/* Switches to `to`. Returns when another fiber switches back to `from`. */
void emu_fiber_switch(emu_fiber *from, emu_fiber *to);

#endif
