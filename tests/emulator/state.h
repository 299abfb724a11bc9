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
    EMU_ASLEEP,     /* looked in vain (emu_look) */
    EMU_AT_BARRIER, /* bar.sync */
    EMU_GONE
} emu_lane_state;

/* A copy of 16 bytes that a lane has asked for and that has not landed, of its groups one. */
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
    int number;        /* in its warp */
    const void *frame; /* where it left its stack: the frame of a function of the engine */
    const void *pc;    /* where a signal has stopped it; else NULL */
    /* EMU_MEETING */
    emu_meeting meeting;
    uint64_t value; /* what it brought, then what it takes home */
    int argument;
    float *d; /* of emu_mma and emu_warpgroup_multiply */
    const uint32_t *a, *b;
    /* EMU_AT_BARRIER */
    int barrier;
    /* EMU_ASLEEP: what it waits for, and what it saw since it did something */
    const volatile void *asleep_at;
    uint64_t asleep_seen;
    struct {
        const volatile void *at;
        uint64_t seen;
    } looks[EMU_MOST_LOOKS];
    int look_count;
    emu_piece *pieces; /* in the order that they were asked for, */
    int piece_count, piece_room;
    unsigned group; /* and the number of the group at hand */
} emu_lane;

/* What a product of a warpgroup reads of shared memory, which has to stay as it is. */
typedef struct emu_operand {
    uint64_t descriptor;
    int columns;
    uint64_t sum; /* of its words */
} emu_operand;

enum {
    EMU_MOST_PRODUCTS = 64, /* of a warp, before it waits */
    EMU_WARPS_OF_GROUP = 4, /* warps of a warpgroup */
    EMU_MOST_AHEAD = 256    /* waits that one of them may be ahead of another */
};

typedef struct emu_warp {
    emu_lane *lanes; /* (EMU_LANES) */
    struct emu_block *block;
    int number;     /* in its block */
    uint32_t ready; /* (lane) EMU_READY */
    int live;       /* lanes that are not gone */
    int meeting;    /* lanes that wait for the others */
    int asleep;     /* lanes */
    int turns;      /* meetings that it may have before another warp runs */
    bool queued;    /* among those that can run */
    /* products of its warpgroup that it has not waited for, and of them those that are committed */
    emu_operand products[EMU_MOST_PRODUCTS];
    int product_count, committed;
    bool fenced; /* since it waited */
    /* all that it has multiplied, which is the same in a warpgroup: a hash at each of its waits */
    uint64_t multiplied, multiplied_at[EMU_MOST_AHEAD], waits;
    bool slow; /* behind others of its block (emu_uneven) */
} emu_warp;

typedef struct emu_block {
    emu_warp *warps;
    unsigned char *memory; /* mapped; shared memory is in it */
    size_t memory_bytes;
    unsigned char *shared;
    int number, live;          /* lanes that are not gone */
    int arrived[EMU_BARRIERS]; /* lanes at bar.sync */
    uint64_t stretch_end;      /* step from which on other warps are slow */
} emu_block;

typedef struct emu_engine {
    const emu_kernel *kernel;
    const void *launch; /* the kernel's argument */
    emu_block *blocks;
    emu_warp *warps; /* of all blocks */
    emu_lane *lanes; /* of all warps */
    int block_count, warp_count, warps_of_block;
    size_t shared_bytes;
    emu_warp **queue; /* that can run, in no order */
    int queued;
    emu_fiber scheduler;
    emu_lane *current; /* NULL: the scheduler */
    uint64_t random;   /* state of the generator */
    uint64_t clock_ns;
    uint64_t steps, events; /* turns of warps; things that others may wait for */
    int freed;              /* arrivals so far at the ring's barriers of the first block */
    bool deadlock;          /* nothing moves any more: time leaps, watchdogs speak */
    bool failed;
} emu_engine;

extern emu_engine emu;

uint32_t emu_random(void);

/* Reports a failure of the kernel once; the launch ends when its thread leaves. */
void emu_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From the thread that runs to the scheduler. */
void emu_leave(void);

/* Shared memory of a block, or device memory (block NULL), has changed at `at`. */
void emu_changed(emu_block *block, const volatile void *at);

/* All lanes of the warp that are left have met. */
void emu_conclude(emu_warp *warp);
void emu_make_ready(emu_lane *lane);

/* Copies on their way: how many; lands one; forgets all. */
int emu_copies(void);
int emu_pieces(void); /* the same of those of 16 bytes */
void emu_copies_land(void);
void emu_copies_clear(void);

/* Device memory as bulk copies see it (views.c): the launch's beginning and end, and where a copy
 * of the thread that runs reads what is at `from`. */
void emu_views_begin(void);
void emu_views_end(void);
const void *emu_view(const void *from);

/* What is known of a barrier, in words. */
void emu_barrier_describe(const volatile void *barrier, char *to, size_t length);

/* Where every role of every block stands. */
void emu_report(FILE *out);
void emu_report_lane(FILE *out, const emu_lane *lane);

#endif
