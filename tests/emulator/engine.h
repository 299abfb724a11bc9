/*
 * Runs a launch of a kernel on the CPU. Each thread of each block is a fiber. All blocks are
 * resident, and one system thread runs the fibers in an order that a seed determines.
 *
 * Modeled: warp convergence, bar.sync, and mbarriers with phases and expected bytes. Copies to
 * shared memory complete late and in any order, and see only device memory stored before their
 * block's last proxy fence (views.c). Warps are preempted at any emulated access. Memory holds NaNs
 * until it is written. Ends of shared memory and of allocations are checked. The clock counts
 * steps. A waiting thread sleeps until what it reads changes.
 *
 * Not modeled: weak memory order (stores are visible at once, except to bulk copies), proxy fences
 * of shared memory, preemption between two ordinary accesses, caches, and time. A kernel that
 * passes here may still be slow, or lack a fence.
 *
 * On a deadlock, the engine prints the position of every role and advances the clock, so that the
 * kernel's own watchdog ends the launch.
 */
#ifndef MGL_TESTS_EMULATOR_ENGINE_H
#define MGL_TESTS_EMULATOR_ENGINE_H

#include "device/engine.h"

/* Sets the seed of the order of all later steps. */
void emu_seed(uint64_t seed);

/* Sets whether some warps of a block are much slower than others in later launches. Slow warps
 * rarely run while other warps of the block can, for 2^8 to 2^16 steps; then other warps are slow.
 * Otherwise all warps proceed at about the same pace. */
void emu_uneven(bool wanted);

/* The test expects a deadlock: print no report. */
void emu_expect_deadlock(bool expected);

/* Fault injection for later launches: one warp of the first block does not free a page of the ring.
 * `number` (from 1) is the dropped arrival at one of these barriers; 0: none. */
void emu_forget_arrival(int number);

/* Registers and unregisters device memory. */
void emu_memory_add(void *at, size_t bytes);
void emu_memory_remove(const void *at);

/* Fault injection: whether proxy fences have no effect from now on. */
void emu_forget_fences(bool forgotten);

/* The same for the fences of one block; -1: none. */
void emu_forget_fences_of(int block);

/* Runs a kernel to its end. Returns false, with the reasons on stderr, if it made an error. */
bool emu_launch(const emu_kernel *kernel, const void *launch, unsigned blocks, unsigned threads,
                size_t shared_bytes);

/* Number of turns of warps so far; callable from any thread. */
uint64_t emu_steps(void);

/* Ends the process with a report. */
void emu_give_up(const char *why);

/* The same for a signal handler of the thread that runs a launch: prints its position. */
void emu_give_up_at(const char *why, const void *pc, const void *frame);

#endif
