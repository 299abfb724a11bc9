/*
 * The interface between a kernel compiled for the host (device/cuda.h, device/ptx.h) and the engine
 * that runs its threads (engine.c, warp.c, copies.c). A thread of the kernel calls these functions
 * on its own stack.
 */
#ifndef MGL_TESTS_EMULATOR_DEVICE_ENGINE_H
#define MGL_TESTS_EMULATOR_DEVICE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The thread that runs, as it sees itself. */
typedef struct emu_thread {
    unsigned thread, block; /* threadIdx.x, blockIdx.x */
    unsigned char *shared;  /* of its block */
    size_t shared_bytes;
} emu_thread;

extern emu_thread *emu_self;

/* What the threads of a warp do together. */
typedef enum emu_meeting {
    EMU_SYNC,
    EMU_SHUFFLE, /* the value of lane `argument` */
    EMU_BALLOT,
    EMU_ALL,
    EMU_ANY,
    EMU_MAX,
    EMU_MIN,
    EMU_MIN_SIGNED,
    EMU_ADD,
    EMU_MMA_BF16,
    EMU_MMA_F16,
    EMU_WARPGROUP
} emu_meeting;

/* Waits for the other threads of the warp that have not ended; what it makes of their values. */
uint64_t emu_meet(emu_meeting kind, uint64_t value, int argument);

/* d = a b + d: the fragments of mma.m16n8k16 that this thread holds (PTX ISA 9.7.14.5.8). */
void emu_mma(emu_meeting kind, float *d, const uint32_t *a, const uint32_t *b);

/* What wgmma does for this thread's warp: d += a b, of `columns` columns, b where the descriptor
 * says (PTX ISA, wgmma: its register fragments and its matrix descriptor). What is read of shared
 * memory has to stay as it is until the wait behind it. */
void emu_warpgroup_multiply(float *d, const uint32_t *a, uint64_t descriptor, int columns);
void emu_warpgroup_fence(void);
void emu_warpgroup_commit(void);
void emu_warpgroup_wait(void);

/* bar.sync */
void emu_bar_sync(int barrier, int threads);

/* Another warp may run here. */
void emu_pause(void);

/* The thread looked at `at`, saw `seen` and may look again: where it has seen the same before,
 * without having done anything since, it sleeps until something happens there. Look again behind
 * it. */
void emu_look(const volatile void *at, uint64_t seen);

/* The thread has written to `at`. */
void emu_wrote(const volatile void *at);

/* mbarriers in shared memory: how many arrivals complete a phase; arrivals, and bytes to expect;
 * whether the phase of that parity is complete. */
void emu_barrier_init(uint64_t *barrier, int arrivals);
void emu_barrier_arrive(uint64_t *barrier, int arrivals, int bytes);
bool emu_barrier_passed(uint64_t *barrier, unsigned parity);

/* Copies to shared memory, which land later, each at a time of its own. */
void emu_copy_bulk(void *to, const void *from, int bytes, uint64_t *barrier);
void emu_copy_16(void *to, const void *from);
void emu_copy_group(void);               /* those behind the last call are a group */
void emu_copy_wait_groups(int count);    /* until all groups but the last so many have landed */
void emu_copy_wait(void);                /* until the thread's copies of 16 bytes have landed */
void emu_copy_arrive(uint64_t *barrier); /* arrives when they have */

/* Bulk copies of the thread's block see from now on what all have stored to device memory. */
void emu_fence_async(void);

uint64_t emu_clock_ns(void);

/* Other warps run, for so long. */
void emu_sleep(unsigned ns);
float emu_f16_to_f32(uint16_t half);
uint16_t emu_f32_to_f16(float value);

/* The kernel has done what it must not: the launch fails. Does not return. */
__attribute__((noreturn, format(printf, 1, 2))) void emu_fail(const char *format, ...);

/* What the engine has to know of a kernel; each kernel has one, `emu_the_kernel` (device/entry.h).
 */
typedef struct emu_kernel {
    void (*run)(const void *launch); /* one thread of it */
    void (*describe_block)(const unsigned char *shared, char *to, size_t length); /* its task */
    void (*describe_warp)(int warp, char *to, size_t length);                     /* its role */
    unsigned threads;                                                             /* of a block */
    bool copies;                 /* has bulk copies, which see memory as it was (views.c) */
    size_t own_bytes, own_limit; /* of shared memory: used and reserved for struct shared */
    size_t ring_at, ring_end;    /* of the ring's barriers that say that a page is free */
} emu_kernel;

/* ---- kernels whose blocks know nothing of one another -----------------------------------------
 */

/* Where the block at hand is, and of how many threads. */
typedef struct emu_grid {
    unsigned block[3], blocks[3]; /* blockIdx, gridDim */
    unsigned threads;             /* blockDim.x */
} emu_grid;

/* One of a module's, whose table is `emu_plain_kernels` (device/plain_entry.h). */
typedef struct emu_plain_kernel {
    const char *name;
    void (*run)(const void *argument); /* one thread of it */
    size_t argument_bytes;
    emu_grid *grid; /* the module's */
} emu_plain_kernel;

#ifdef __cplusplus
}
#endif
#endif
