/*
 * Roles of queues. Where all queues do all steps of a layer, a queue is ready for a step only some
 * time after it has ended the one before, and if layers are small that is when its input comes. So
 * some have o and down, which the residual stream stays with, the others gate and up, and some of
 * those qkv; attention has queues of its own as well. A queue of a role has few steps, but more row
 * groups of each. What that costs are the slots of sums that the kernel's epilogue goes through one
 * after the other, MGL_PSUM_GROUPS row groups each: so a role's queues are as many as fill theirs.
 */
#ifndef MGL_SCHEDULE_LOWER_ROLES_H
#define MGL_SCHEDULE_LOWER_ROLES_H

#include "schedule/program.h"

typedef struct mgl_roles {
    int64_t residual, ffn, qkv; /* queues */
    int slots;                  /* that are filled one after the other in a layer */
} mgl_roles;

/* Slots of a layer, with so many queues for o and down, gate and up, and qkv. */
int mgl_roles_slots(const mgl_geometry *geometry, int64_t residual, int64_t ffn, int64_t qkv);

/* The roles with the fewest slots that find room in `most` queues and in rings of so many weights;
 * of equals those with the most queues. No slots: there are none. */
mgl_roles mgl_roles_choose(const mgl_geometry *geometry, int64_t most, int64_t ring);

#endif
