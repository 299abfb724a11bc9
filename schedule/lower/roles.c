/*
 * Implements roles.h: exhaustive search over the numbers of full partial-sum buffers of the two
 * roles; and the row groups of a step (choose.h).
 */
#include "schedule/lower/roles.h"

#include "schedule/lower/choose.h"
#include "schedule/variant_shapes.h"

int64_t mgl_row_groups(int64_t rows)
{
    return (rows + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
}

int64_t mgl_step_groups(const mgl_geometry *m, mgl_step step)
{
    switch (step) {
    case MGL_STEP_QKV: /* q, k and v consecutively */
        return mgl_row_groups((int64_t)m->heads * m->head_dim) +
               2 * mgl_row_groups((int64_t)m->kv_heads * m->head_dim);
    case MGL_STEP_O:
    case MGL_STEP_DOWN:
        return mgl_row_groups(m->hidden);
    case MGL_STEP_GATE_UP:
        return mgl_row_groups(m->ffn);
    case MGL_STEP_HEAD:
        return mgl_row_groups(m->vocab);
    case MGL_STEP_ATTEND:
    case MGL_STEP_COUNT:
        break;
    }
    return 0;
}

/* Row groups of a step; gate and up count separately. */
static int64_t step_total(const mgl_geometry *m, mgl_step step)
{
    return mgl_step_groups(m, step) * (step == MGL_STEP_GATE_UP ? 2 : 1);
}

/* Number of queues that fill `slots` partial-sum buffers of a step each. */
static int64_t full_queues(const mgl_geometry *m, mgl_step step, int slots)
{
    return (step_total(m, step) + MGL_PSUM_GROUPS * slots - 1) / (MGL_PSUM_GROUPS * slots);
}

/* Partial-sum buffers of a step on the most loaded of n queues. Tensors of whole row groups that
 * are adjacent on a tape share buffers (vm/cuda/encode.c). */
static int step_slots(const mgl_geometry *m, mgl_step step, int64_t n)
{
    int64_t dealt = mgl_step_groups(m, step), each = step_total(m, step) / dealt;
    return (int)(((dealt + n - 1) / n * each + MGL_PSUM_GROUPS - 1) / MGL_PSUM_GROUPS);
}

int mgl_roles_slots(const mgl_geometry *m, int64_t residual, int64_t ffn, int64_t qkv)
{
    return 2 * step_slots(m, MGL_STEP_O, residual) + step_slots(m, MGL_STEP_GATE_UP, ffn) +
           step_slots(m, MGL_STEP_QKV, qkv);
}

/* Weights of a step on the most loaded of n queues. */
static int64_t most_weights(const mgl_geometry *m, mgl_step step, int64_t n)
{
    return (mgl_step_groups(m, step) + n - 1) / n * MGL_ROW_GROUP * mgl_step_columns(m, step);
}

/* Whether a queue's share of a layer fits in its ring of `ring` weights. Then the weights are
 * loaded before the input arrives. */
static bool fit_ring(const mgl_geometry *m, const mgl_roles *roles, int64_t ring)
{
    int64_t residual = most_weights(m, MGL_STEP_O, roles->residual) +
                       most_weights(m, MGL_STEP_DOWN, roles->residual);
    int64_t ffn =
        most_weights(m, MGL_STEP_GATE_UP, roles->ffn) + most_weights(m, MGL_STEP_QKV, roles->qkv);
    return residual <= ring && ffn <= ring;
}

/* The roles whose queues fill this many partial-sum buffers of o, and of gate and up. qkv uses
 * the fewest buffers for which that role has enough queues. */
static mgl_roles roles_of(const mgl_geometry *m, int residual, int ffn)
{
    mgl_roles roles = {full_queues(m, MGL_STEP_O, residual), full_queues(m, MGL_STEP_GATE_UP, ffn),
                       0, 0};
    int slots = 1;
    while (full_queues(m, MGL_STEP_QKV, slots) > roles.ffn)
        slots++;
    roles.qkv = full_queues(m, MGL_STEP_QKV, slots);
    return roles;
}

mgl_roles mgl_roles_choose(const mgl_geometry *m, int64_t most, int64_t ring)
{
    enum { MOST_SLOTS = 4 }; /* of a step; a layer that needs more is not small */
    mgl_roles best = {0, 0, 0, 0};
    for (int residual = 1; residual <= MOST_SLOTS; residual++)
        for (int ffn = 1; ffn <= MOST_SLOTS; ffn++) {
            mgl_roles roles = roles_of(m, residual, ffn);
            int64_t queues = roles.residual + roles.ffn;
            if (queues > most || !fit_ring(m, &roles, ring))
                continue;
            roles.slots = mgl_roles_slots(m, roles.residual, roles.ffn, roles.qkv);
            if (best.slots == 0 || roles.slots < best.slots ||
                (roles.slots == best.slots && queues > best.residual + best.ffn))
                best = roles;
        }
    return best;
}
