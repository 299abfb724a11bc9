/*
 * Launches of several sequences for soak.c, with random lengths, ends and seeds, half of them
 * sampled, compared with the same replies alone.
 *
 * In bf16 a reply with neighbors may differ from the reply alone, because other tasks multiply
 * other rows. At its first different token, the two most likely tokens of the reply alone are
 * close, or, if sampled, the random number lies between the shares of two tokens. In f32 none
 * differs.
 */
#ifndef MGL_TESTS_TOOLS_BENCH_SOAK_NEIGHBORS_H
#define MGL_TESTS_TOOLS_BENCH_SOAK_NEIGHBORS_H

#include "vm/vm.h"

enum { NEIGHBORS_MOST = 512 /* tokens of a prompt, and of a reply */ };

typedef struct neighbors_shape {
    int sequences, prompt,
        tokens; /* maximum tokens of a prompt, and of a reply; at most NEIGHBORS_MOST each */
    int vocab;
} neighbors_shape;

typedef struct neighbors_counts {
    int groups, replies, ended; /* ended: by an end token */
    int64_t tokens;
    int changes;      /* launches with neighbors whose repetition, on any machine, gave other
                         tokens */
    int apart;        /* greedy replies that differ from the replies alone */
    int drawn_apart;  /* sampled replies that differ */
    double worst_gap; /* largest gap, at the first different token of a greedy reply, between the
                         two largest logits of the reply alone */
    int over_gap;     /* greedy replies with a gap of NEIGHBORS_GAP or more */
    double seconds;
} neighbors_counts;

#define NEIGHBORS_GAP                                                                              \
    0.1 /* gap of logits, below which rounding to 16 bits may change the choice                    \
         */

/* Runs the launch `round` twice, and each of its replies alone. */
mgl_status neighbors_compare(mgl_vm *vm, const neighbors_shape *shape, int round,
                             neighbors_counts *counts, mgl_error *err);

/* Repeats a launch that neighbors_compare has run, on any machine with the same program. */
mgl_status neighbors_repeat(mgl_vm *vm, const neighbors_shape *shape, int round,
                            neighbors_counts *counts, mgl_error *err);

#endif
