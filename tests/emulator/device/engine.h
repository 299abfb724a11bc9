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

/* The running thread's view of itself. */
typedef struct emu_thread {
    unsigned thread, block; /* threadIdx.x, blockIdx.x */
    unsigned char *shared;  /* shared memory of its block */
    size_t shared_bytes;
} emu_thread;

extern emu_thread *emu_self;

/* Collective operations of a warp. */
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
    EMU_MMA_U8_S8,
    EMU_WARPGROUP
} emu_meeting;

/* Performs a collective operation: waits for the warp's other running threads, and returns the
 * result. */
uint64_t emu_meet(emu_meeting kind, uint64_t value, int argument);

/* d = a b + d, with the fragments that this thread holds: of mma.m16n8k16 (PTX ISA 9.7.14.5.8), or
 * of mma.m16n8k32 (9.7.14.5.10), where d has the bits of 32-bit integers. */
void emu_mma(emu_meeting kind, float *d, const uint32_t *a, const uint32_t *b);

/* This thread's part of wgmma: d += a b, with `columns` columns and b at the descriptor (PTX ISA,
 * wgmma: register fragments and matrix descriptor). The shared memory that it reads must not change
 * until the next wait. */
void emu_warpgroup_multiply(float *d, const uint32_t *a, uint64_t descriptor, int columns);
void emu_warpgroup_fence(void);
void emu_warpgroup_commit(void);
void emu_warpgroup_wait(void);

/* bar.sync */
void emu_bar_sync(int barrier, int threads);

/* Preemption point: another warp may run. */
void emu_pause(void);

/* Reports a poll: the thread read `seen` at `at`. If it saw the same before and has done nothing
 * since, it sleeps until the memory there changes. Poll again afterwards. */
void emu_look(const volatile void *at, uint64_t seen);

/* The thread has written to `at`. */
void emu_wrote(const volatile void *at);

/* The thread is about to replace flagged word `before` by `value`. Fails after emu_expect_resets if
 * the word was written and not reset since: an epoch could take it for its own. */
void emu_check_reset(const volatile void *at, unsigned before, unsigned value);
void emu_expect_resets(void);

/* mbarriers in shared memory: initialization with the arrivals of a phase; arrivals and expected
 * bytes; whether the phase of a parity is complete. */
void emu_barrier_init(uint64_t *barrier, int arrivals);
void emu_barrier_arrive(uint64_t *barrier, int arrivals, int bytes);
bool emu_barrier_passed(uint64_t *barrier, unsigned parity);

/* Asynchronous copies to shared memory, each of which lands at a random later time. */
void emu_copy_bulk(void *to, const void *from, int bytes, uint64_t *barrier);
void emu_copy_16(void *to, const void *from);
void emu_copy_group(void);               /* closes a group of copies */
void emu_copy_wait_groups(int count);    /* waits until all groups except the last `count` have
                                            landed */
void emu_copy_wait(void);                /* waits until the thread's 16-byte copies have landed */
void emu_copy_arrive(uint64_t *barrier); /* arrives at a barrier when they have landed */

/* Proxy fence: later bulk copies of the thread's block see all earlier stores to device memory. */
void emu_fence_async(void);

uint64_t emu_clock_ns(void);

/* Lets other warps run for this time. */
void emu_sleep(unsigned ns);
float emu_f16_to_f32(uint16_t half);
uint16_t emu_f32_to_f16(float value);

/* Reports an error of the kernel: the launch fails. Does not return. */
__attribute__((noreturn, format(printf, 1, 2))) void emu_fail(const char *format, ...);

/* Description of a kernel for the engine; each kernel defines `emu_the_kernel` (device/entry.h). */
typedef struct emu_kernel {
    void (*run)(const void *launch); /* function of one thread */
    void (*describe_block)(const unsigned char *shared, char *to, size_t length); /* tasks of a
                                                                                     block */
    void (*describe_warp)(int warp, char *to, size_t length);                     /* role of a
                                                                                     warp */
    unsigned threads;                                                             /* of a block */
    bool copies;                 /* has bulk copies, which see old memory (views.c) */
    size_t own_bytes, own_limit; /* bytes of shared memory: used, and reserved for struct shared */
    size_t ring_at, ring_end;    /* range of the ring's `empty` barriers */
} emu_kernel;

/* ---- kernels with independent blocks --------------------------------------------------------- */

/* Index of the current block, and its number of threads. */
typedef struct emu_grid {
    unsigned block[3], blocks[3]; /* blockIdx, gridDim */
    unsigned threads;             /* blockDim.x */
} emu_grid;

/* A kernel of a module; `emu_plain_kernels` is the module's table (device/plain_entry.h). */
typedef struct emu_plain_kernel {
    const char *name;
    void (*run)(const void *argument); /* function of one thread */
    size_t argument_bytes;
    emu_grid *grid; /* the module's */
} emu_plain_kernel;

#ifdef __cplusplus
}
#endif
#endif
