/*
 * A launch of a kernel on the CPU: every thread of every block is a fiber, all blocks are there at
 * once, and one thread of the system runs them in an order that a seed decides.
 *
 * Modelled: the rendezvous of a warp, bar.sync, mbarriers with phases and expected bytes, copies to
 * shared memory that land late and in any order, and see of device memory what was stored before
 * their block's last proxy fence (views.c), warps that are preempted at any emulated access,
 * memory that holds NaNs until it is written, the ends of shared memory and of allocations, a clock
 * that only counts steps. A thread that waits sleeps until what it looked at has changed.
 *
 * Not modelled: weak memory order (every store is seen at once, by all but bulk copies), the proxy
 * fences of shared memory, preemption between two ordinary accesses, caches, and time: a
 * kernel that is right here may still be slow, or lack a fence.
 *
 * Where nothing moves any more, it says where every role stands, and lets time leap, so that the
 * kernel's own watchdog ends the launch.
 */
#ifndef MGL_TESTS_EMULATOR_ENGINE_H
#define MGL_TESTS_EMULATOR_ENGINE_H

#include "device/engine.h"

/* The order of everything from here on. */
void emu_seed(uint64_t seed);

/* In each launch from here on, whether some warps of a block are much slower than others: they run
 * hardly ever while others of the block can, for a stretch of 2^8 to 2^16 steps, then others are
 * slow. Without this all proceed at about the same pace. */
void emu_uneven(bool wanted);

/* A deadlock is what the test wants: no word about it. */
void emu_expect_deadlock(bool expected);

/* In each launch from here on, one warp of the first block forgets to say that it needs a page of
 * the ring no more: that would be arrival `number` (from 1) on one of these barriers. 0: none does.
 */
void emu_forget_arrival(int number);

/* There is device memory, and is no more. */
void emu_memory_add(void *at, size_t bytes);
void emu_memory_remove(const void *at);

/* Whether fences of bulk copies do nothing, from here on. */
void emu_forget_fences(bool forgotten);

/* Likewise those of one block; -1: none. */
void emu_forget_fences_of(int block);

/* Runs a kernel to its end; false if it did what it must not, with the reasons on stderr. */
bool emu_launch(const emu_kernel *kernel, const void *launch, unsigned blocks, unsigned threads,
                size_t shared_bytes);

/* Turns of warps so far; from any thread. */
uint64_t emu_steps(void);

/* Ends the process with a report. */
void emu_give_up(const char *why);

/* The same in a signal handler of the thread that runs a launch: where it was. */
void emu_give_up_at(const char *why, const void *pc, const void *frame);

#endif
