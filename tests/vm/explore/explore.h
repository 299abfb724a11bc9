/*
 * explore: systematic concurrency testing. It executes a program under seeded random interleavings
 * of its queues, with real arithmetic. It detects races, deadlocks, uninitialized reads, early
 * exits of a queue, and differing results. It is the test oracle of the validator and shares no
 * code with it. It finds what a seed happens to trigger and proves nothing.
 */
#ifndef MGL_TESTS_VM_EXPLORE_EXPLORE_H
#define MGL_TESTS_VM_EXPLORE_EXPLORE_H

#include "vm/vm.h"

typedef enum mgl_finding {
    MGL_FOUND_NOTHING,
    MGL_FOUND_RACE,          /* two accesses to one element, at least one a write, without
                                happens-before order; a flag edge orders only its own words */
    MGL_FOUND_STUCK,         /* no queue can run, or a queue runs past the last epoch */
    MGL_FOUND_UNINITIALISED, /* a read of an element never written (an activation: not written in
                                this epoch) */
    MGL_FOUND_STALE,         /* flag words of another epoch are read or overwritten: a clear is
                                missing */
    MGL_FOUND_EARLY_EXIT,    /* a queue leaves at an epoch that another queue runs */
    MGL_FOUND_DIFFERENCE     /* tokens or scores differ from the expected ones */
} mgl_finding;

typedef struct mgl_explore_options {
    const mgl_vm_request *request; /* request to run; on_token and abort are not used */
    uint64_t seed;                 /* seed of the first interleaving; later ones count up */
    int seeds;                     /* number of interleavings */
    bool plain;                    /* use the reference ops instead of the vector kernels */
    const mgl_vm_report *wanted;   /* expected tokens and scores, of a run of the request; NULL:
                                      those of the first interleaving */
} mgl_explore_options;

typedef struct mgl_explore_report {
    mgl_finding finding; /* the first finding; it ends the search */
    uint64_t seed;       /* seed of the interleaving */
    int seeds;           /* interleavings run, including the last */
    int epochs;          /* epochs of the last complete interleaving */
    char message[600];   /* queues, tasks and elements of the finding; "" if nothing was found */
} mgl_explore_report;

/* Runs `seeds` interleavings of the request, or stops at the first finding. The program must be in
 * bounds; it need not be free of races. Returns MGL_OK whatever it finds. */
mgl_status mgl_explore(const mgl_program *program, const mgl_graph *graph,
                       const mgl_explore_options *options, mgl_explore_report *out, mgl_error *err);

#endif
