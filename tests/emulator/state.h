/* The state of a running launch: blocks of warps of lanes. The parts of the engine share it. */
#ifndef MGL_TESTS_EMULATOR_STATE_H
#define MGL_TESTS_EMULATOR_STATE_H

#include <stdio.h>

#include "device/engine.h"
#include "fiber.h"

enum { EMU_LANES = 32, EMU_BARRIERS = 16, EMU_MOST_LOOKS = 32 };

typedef enum emu_lane_state {
    EMU_READY,
    EMU_MEETING,    /* waits for the other lanes of its warp */
    EMU_ASLEEP,     /* polled without success (emu_look) */
    EMU_AT_BARRIER, /* bar.sync */
    EMU_GONE
} emu_lane_state;

/* A pending 16-byte copy of a lane, in one of the lane's groups. */
typedef struct emu_piece {
    unsigned char *to;
    const unsigned char *from;
    unsigned group;
} emu_piece;

typedef struct emu_lane {
    emu_thread self; /* emu_self points here while it runs */
    emu_fiber fiber;
    char *stack;
    struct emu_warp *warp;
    emu_lane_state state;
    int number;        /* index in its warp */
    const void *frame; /* frame of an engine function, where it left its stack */
    const void *pc;    /* address at which a signal stopped it; else NULL */
    /* EMU_MEETING */
    emu_meeting meeting;
    uint64_t value; /* its operand, then its result */
    int argument;
    float *d; /* operands of emu_mma and emu_warpgroup_multiply */
    const uint32_t *a, *b;
    /* EMU_AT_BARRIER */
    int barrier;
    /* EMU_ASLEEP: the address that it polls, and the values seen since its last action */
    const volatile void *asleep_at;
    uint64_t asleep_seen;
    struct {
        const volatile void *at;
        uint64_t seen;
    } looks[EMU_MOST_LOOKS];
    int look_count;
    emu_piece *pieces; /* pending copies, in request order, */
    int piece_count, piece_room;
    unsigned group; /* and the number of the current group */
} emu_lane;

/* Shared memory that a warpgroup product reads: it must not change until the wait. */
typedef struct emu_operand {
    uint64_t descriptor;
    int columns;
    uint64_t sum; /* hash of its words */
} emu_operand;

enum {
    EMU_MOST_PRODUCTS = 64, /* maximum products of a warp before it waits */
    EMU_WARPS_OF_GROUP = 4, /* warps of a warpgroup */
    EMU_MOST_AHEAD = 256    /* maximum number of waits by which one warp may be ahead of another */
};

typedef struct emu_warp {
    emu_lane *lanes; /* (EMU_LANES) */
    struct emu_block *block;
    int number;     /* index in its block */
    uint32_t ready; /* (lane) EMU_READY */
    int live;       /* lanes that have not ended */
    int meeting;    /* lanes that wait for the others */
    int asleep;     /* lanes */
    int turns;      /* collective operations left before another warp runs */
    bool queued;    /* in the list of runnable warps */
    /* products that it has not waited for; of them, the committed ones */
    emu_operand products[EMU_MOST_PRODUCTS];
    int product_count, committed;
    bool fenced; /* executed a fence since its last wait */
    /* hash of all its products at each wait, which must be equal in a warpgroup */
    uint64_t multiplied, multiplied_at[EMU_MOST_AHEAD], waits;
    bool slow; /* slower than other warps of its block (emu_uneven) */
} emu_warp;

typedef struct emu_block {
    emu_warp *warps;
    unsigned char *memory; /* mapping that contains the shared memory */
    size_t memory_bytes;
    unsigned char *shared;
    int number, live;          /* lanes that have not ended */
    int arrived[EMU_BARRIERS]; /* lanes at bar.sync */
    uint64_t stretch_end;      /* step at which other warps become slow */
} emu_block;

typedef struct emu_engine {
    const emu_kernel *kernel;
    const void *launch; /* the kernel's argument */
    emu_block *blocks;
    emu_warp *warps; /* warps of all blocks */
    emu_lane *lanes; /* lanes of all warps */
    int block_count, warp_count, warps_of_block;
    size_t shared_bytes;
    emu_warp **queue; /* runnable warps, in no order */
    int queued;
    emu_fiber scheduler;
    emu_lane *current; /* NULL: the scheduler */
    uint64_t random;   /* state of the generator */
    uint64_t clock_ns;
    uint64_t steps, events; /* turns of warps; number of events that others may wait for */
    int freed;              /* arrivals so far at the `empty` barriers of the first block */
    bool deadlock;          /* deadlock: the clock jumps, so that watchdogs expire */
    bool failed;
} emu_engine;

extern emu_engine emu;

uint32_t emu_random(void);

/* Reports a kernel error once; the launch ends when its thread returns to the scheduler. */
void emu_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Switches from the running thread to the scheduler. */
void emu_leave(void);

/* Reports a change at `at`, in shared memory of a block, or in device memory (block NULL). */
void emu_changed(emu_block *block, const volatile void *at);

/* Executes the collective operation when all remaining lanes of the warp have arrived. */
void emu_conclude(emu_warp *warp);
void emu_make_ready(emu_lane *lane);

/* Pending bulk copies: their number; lands one; discards all. */
int emu_copies(void);
int emu_pieces(void); /* the same for 16-byte copies */
void emu_copies_land(void);
void emu_copies_clear(void);

/* Views of device memory for bulk copies (views.c): start and end of a launch, and the address
 * where the running thread's copy reads the bytes of `from`. */
void emu_views_begin(void);
void emu_views_end(void);
const void *emu_view(const void *from);

/* Describes a barrier in words. */
void emu_barrier_describe(const volatile void *barrier, char *to, size_t length);

/* Prints the position of every role of every block. */
void emu_report(FILE *out);
void emu_report_lane(FILE *out, const emu_lane *lane);

#endif
