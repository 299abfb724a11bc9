/*
 * explore: executes a program under seeded random interleavings of its queues, with the real
 * arithmetic, and looks for what must not be: a race, a stuck state, a read of what nobody wrote, a
 * queue that leaves while others go on, another result. The test oracle of the validator, with
 * which it shares no code. It finds what a seed happens to show and proves nothing.
 */
#ifndef MGL_VM_CPU_EXPLORE_H
#define MGL_VM_CPU_EXPLORE_H

#include "vm/vm.h"

typedef enum mgl_finding {
    MGL_FOUND_NOTHING,
    MGL_FOUND_RACE,          /* two accesses to one element, one a write, and nothing orders them;
                                a flag edge orders its words alone */
    MGL_FOUND_STUCK,         /* no queue can run, or one runs on beyond the last epoch */
    MGL_FOUND_UNINITIALISED, /* a read of what was not written (an activation: in this epoch) */
    MGL_FOUND_STALE,         /* flag words of another epoch read, or written over: nobody cleared */
    MGL_FOUND_EARLY_EXIT,    /* a queue leaves at an epoch that another queue runs */
    MGL_FOUND_DIFFERENCE     /* other tokens or scores than those wanted */
} mgl_finding;

typedef struct mgl_explore_options {
    const mgl_vm_request *request; /* what to run; on_token and abort are not used */
    uint64_t seed;                 /* of the first interleaving; the next ones count up */
    int seeds;                     /* interleavings */
    bool plain;                    /* the reference ops rather than the fast path */
    const mgl_vm_report *wanted;   /* tokens and scores of a run of the request; NULL: those of the
                                      first interleaving */
} mgl_explore_options;

typedef struct mgl_explore_report {
    mgl_finding finding; /* the first; exploring ends with it */
    uint64_t seed;       /* that shows it */
    int seeds;           /* interleavings run, the last one included */
    int epochs;          /* of the last complete one */
    char message[600];   /* which queues, tasks and elements; "" for nothing */
} mgl_explore_report;

/* Runs `seeds` interleavings of the request, or fewer when one shows something. The program must be
 * in bounds; it need not be safe. MGL_OK whatever is found. */
mgl_status mgl_explore(const mgl_program *program, const mgl_graph *graph,
                       const mgl_explore_options *options, mgl_explore_report *out, mgl_error *err);

#endif
