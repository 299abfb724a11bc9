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
        tokens; /* the most tokens of a prompt, and of a reply; NEIGHBORS_MOST each at most */
    int vocab;
} neighbors_shape;

typedef struct neighbors_counts {
    int groups, replies, ended; /* ended: by an end token */
    int64_t tokens;
    int changes;      /* companies whose second launch, on any machine, made other tokens */
    int apart;        /* greedy replies that differ from those alone */
    int drawn_apart;  /* likewise, drawn */
    double worst_gap; /* the largest, at the first other token of a greedy reply, between the
                         logits of the two likeliest of the reply alone */
    int over_gap;     /* greedy replies where it is NEIGHBORS_GAP and more */
    double seconds;
} neighbors_counts;

#define NEIGHBORS_GAP 0.1 /* of logits; what is nearer may be either in 16 bits */

/* Runs company `round` twice, and each of its replies alone. */
mgl_status neighbors_compare(mgl_vm *vm, const neighbors_shape *shape, int round,
                             neighbors_counts *counts, mgl_error *err);

/* Runs a company that neighbors_compare has seen once more, on any machine of the same program. */
mgl_status neighbors_repeat(mgl_vm *vm, const neighbors_shape *shape, int round,
                            neighbors_counts *counts, mgl_error *err);

#endif
