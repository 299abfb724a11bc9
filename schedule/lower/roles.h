/*
 * Roles of queues, for models with small layers; used by choose.c. If every queue runs every step,
 * a queue is ready for a step only some time after its previous step. In small layers that is later
 * than the step's input arrives. So some queues run o and down, which own the residual stream,
 * others run gate and up, and some of those run qkv. Attention has separate queues too. A queue
 * then has fewer steps but more row groups of each. The cost is in partial-sum buffers, which the
 * kernel's epilogue processes one after the other, MGL_PSUM_GROUPS row groups each. Therefore a
 * role has as many queues as fill their buffers.
 */
#ifndef MGL_SCHEDULE_LOWER_ROLES_H
#define MGL_SCHEDULE_LOWER_ROLES_H

#include "schedule/program.h"

typedef struct mgl_roles {
    int64_t residual, ffn, qkv; /* numbers of queues */
    int slots;                  /* partial-sum buffers in sequence in a layer */
} mgl_roles;

/* Partial-sum buffers of a layer with these numbers of queues for o and down, gate and up, and
 * qkv. */
int mgl_roles_slots(const mgl_geometry *geometry, int64_t residual, int64_t ffn, int64_t qkv);

/* The roles with the fewest partial-sum buffers that fit in `most` queues and in rings of `ring`
 * weights; of equals, those with the most queues. slots = 0: there are none. */
mgl_roles mgl_roles_choose(const mgl_geometry *geometry, int64_t most, int64_t ring);

#endif
