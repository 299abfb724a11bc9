/* Implements queues.h. */
#include "schedule/lower/queues.h"

#include <string.h>

#include "schedule/lower/roles.h"
#include "schedule/variant_shapes.h"

enum {
    WHOLE_KV_BYTES = 256 * 1024,   /* KV bytes of a kv head up to which one queue is faster than a
                                      merge of splits */
    SPARED_GROUP_BYTES = 32 * 1024 /* bytes of a row group of qkv up to which some queues may have
                                      one more, so that those of attention have none */
};

/* How often a step occurs in an epoch. */
static int64_t step_times(const mgl_geometry *m, mgl_step step)
{
    return step == MGL_STEP_HEAD ? 1 : m->layers;
}

/* ---- numbers of queues ----------------------------------------------------------------------- */

bool mgl_queues_suffice(const mgl_geometry *m, const mgl_lower_options *options)
{
    int64_t position = 2 * m->head_dim * (int64_t)mgl_dtype_size(options->dtype);
    return position * options->capacity * options->sequences <= WHOLE_KV_BYTES;
}

/* Whether attention may have separate queues: it uses one queue for each kv head, and the config
 * sets no queues for it. */
static bool may_stand_apart(const mgl_geometry *m, const mgl_lower_options *options,
                            const mgl_schedule_config *config)
{
    return config->queues[MGL_STEP_ATTEND].first == 0 &&
           config->queues[MGL_STEP_ATTEND].count == 0 &&
           (config->splits == 0 ? mgl_queues_suffice(m, options) : config->splits == 1);
}

/* Cost of an epoch on n queues, in weights that the memory could deliver in that time: the
 * largest share of each step times the queues with a share. A row group has a minimum time, even
 * with few columns. With `apart`, attention could have separate queues. If too few queues are
 * left, some do attention besides other work: the others wait for them, and the next step is
 * late. */
static int64_t epoch_cost(const mgl_geometry *m, int n, int all, bool apart)
{
    enum { LEAST_WEIGHTS = 800000 /* 0.35 us */, LATE_WEIGHTS = 3000000 /* 1.3 us */ };
    int64_t cost = apart && all - n < m->kv_heads ? (int64_t)m->layers * LATE_WEIGHTS : 0;
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int64_t groups = mgl_step_groups(m, (mgl_step)i), busy = groups < n ? groups : n;
        int64_t weights = MGL_ROW_GROUP * mgl_step_columns(m, (mgl_step)i) * busy;
        cost += (groups + n - 1) / n * step_times(m, (mgl_step)i) *
                (weights > LEAST_WEIGHTS ? weights : LEAST_WEIGHTS);
    }
    return cost;
}

/* The cheapest number of queues above three quarters of all; the largest of equals. */
static int choose_queues(const mgl_geometry *m, int all, bool apart)
{
    int best = all;
    for (int n = all - 1; n > all * 3 / 4 && n > 0; n--)
        if (epoch_cost(m, n, all, apart) < epoch_cost(m, best, all, apart))
            best = n;
    return best;
}

/* Sets the queues of each step. Steps that the config leaves open get [first, first + most). */
static void deal_queues(const mgl_target *target, const mgl_schedule_config *config, int most,
                        mgl_choices *out)
{
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int first = config->queues[i].first, count = config->queues[i].count;
        int rest = target->queues - first;
        out->queues[i].first = first;
        out->queues[i].count = count ? count : rest < most ? rest : most;
    }
}

void mgl_queues_deal(const mgl_geometry *m, const mgl_target *target,
                     const mgl_lower_options *options, const mgl_schedule_config *config,
                     mgl_choices *out)
{
    deal_queues(target, config,
                choose_queues(m, target->queues, may_stand_apart(m, options, config)), out);
}

void mgl_queues_deal_all(const mgl_target *target, const mgl_schedule_config *config,
                         mgl_choices *out)
{
    deal_queues(target, config, target->queues, out);
}

/* ---- separate queues ------------------------------------------------------------------------- */

/* Whether the config leaves the queues of all layer steps open. */
static bool are_open(const mgl_schedule_config *config)
{
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        if (i != MGL_STEP_HEAD && (config->queues[i].first != 0 || config->queues[i].count != 0))
            return false;
    return true;
}

static void give(mgl_choices *out, mgl_step step, int64_t first, int64_t count)
{
    out->queues[step].first = (int)first;
    out->queues[step].count = (int)count;
}

/* Assigns roles to queues if they need no more partial-sum buffers, with flags and one sequence.
 * Returns whether it did. */
static bool give_roles(const mgl_geometry *m, const mgl_target *target,
                       const mgl_lower_options *options, const mgl_schedule_config *config,
                       mgl_choices *out)
{
    int64_t ring = (int64_t)out->exec.ring_pages * out->exec.page_bytes;
    if (!out->flags || options->sequences > 1 || !are_open(config))
        return false;
    const mgl_roles roles = mgl_roles_choose(m, target->queues - m->kv_heads,
                                             ring / (int64_t)mgl_dtype_size(options->dtype));
    const int shared =
        mgl_roles_slots(m, out->queues[MGL_STEP_O].count, out->queues[MGL_STEP_GATE_UP].count,
                        out->queues[MGL_STEP_QKV].count);
    if (roles.slots == 0 || roles.slots > shared)
        return false;
    give(out, MGL_STEP_O, 0, roles.residual);
    give(out, MGL_STEP_DOWN, 0, roles.residual);
    give(out, MGL_STEP_GATE_UP, roles.residual, roles.ffn);
    give(out, MGL_STEP_QKV, roles.residual, roles.qkv);
    return true;
}

/* The first queue after those of a layer's products. */
static int end_of_layer(const mgl_choices *choices)
{
    int end = 0;
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int this_end = choices->queues[i].first + choices->queues[i].count;
        if (i != MGL_STEP_ATTEND && i != MGL_STEP_HEAD && this_end > end)
            end = this_end;
    }
    return end;
}

/* The first queue after those of all products. */
static int end_of_products(const mgl_choices *choices)
{
    const int end = end_of_layer(choices);
    const int head = choices->queues[MGL_STEP_HEAD].first + choices->queues[MGL_STEP_HEAD].count;
    return head > end ? head : end;
}

/* If the remaining queues suffice, attention gets the first of them: they have no other work and
 * start early. Otherwise attention gets the last queues, and some of these may remain too. With
 * fewer queues than kv heads the assignment is unchanged. */
static void place_attention(const mgl_geometry *m, const mgl_target *target, mgl_choices *out)
{
    const int heads = (int)m->kv_heads, used = end_of_products(out);
    if (target->queues - used >= heads)
        give(out, MGL_STEP_ATTEND, used, heads);
    else if (target->queues >= heads)
        give(out, MGL_STEP_ATTEND, target->queues - heads, heads);
}

void mgl_queues_place_unsplit(const mgl_geometry *m, const mgl_target *target, mgl_choices *out)
{
    mgl_choices whole = *out;
    place_attention(m, target, &whole);
    out->unsplit_at.first = whole.queues[MGL_STEP_ATTEND].first;
    out->unsplit_at.count = whole.queues[MGL_STEP_ATTEND].count;
}

/* Places split attention besides roles: on queues without o and down, which wait for attention,
 * and without qkv, which attention waits for. */
static void place_splits(const mgl_target *target, mgl_choices *out)
{
    const int first = out->queues[MGL_STEP_QKV].first + out->queues[MGL_STEP_QKV].count;
    if (first < target->queues)
        give(out, MGL_STEP_ATTEND, first, target->queues - first);
}

/* Heads of a merge task if `queues` queues do nothing else in a layer. The warps must process
 * all heads at once, each warp up to two blocks of a head (instructions/merge/merge.cuh). 0: too
 * few queues. */
static int heads_apart(const mgl_geometry *m, const mgl_exec *exec, int queues, mgl_dtype dtype)
{
    const int granule = MGL_GRANULE_BYTES / (int)mgl_dtype_size(dtype);
    const int each = (m->head_dim + 2 * MGL_MERGE_DIMS - 1) / (2 * MGL_MERGE_DIMS); /* warps */
    if (queues < 1)
        return 0;
    int heads = (m->heads + queues - 1) / queues;
    while (heads < m->heads && heads * m->head_dim % granule)
        heads++;
    return heads * each <= exec->warps ? heads : 0;
}

/* Places merge tasks, whose result has type `dtype`. Default: the queues of attention. For one
 * sequence with flags: the last queues without products of a layer, if there are enough. A queue
 * that merges is late with its share of o, and all others wait for that share. If attention has
 * more queues than tasks, it leaves the merge queues. */
static void place_merges(const mgl_geometry *m, const mgl_target *target,
                         const mgl_lower_options *options, const mgl_schedule_config *config,
                         mgl_dtype dtype, mgl_choices *out)
{
    const int all = target->queues, attends = m->kv_heads * out->splits;
    int *first = &out->queues[MGL_STEP_ATTEND].first, *count = &out->queues[MGL_STEP_ATTEND].count;
    out->merge.first = *first;
    out->merge.count = *count;
    out->merged_heads = mgl_merged_heads(m, &out->exec, out->flags, dtype);
    if (!out->flags || options->sequences > 1 || out->splits == 1 || out->merges_in_o ||
        config->queues[MGL_STEP_ATTEND].first || config->queues[MGL_STEP_ATTEND].count)
        return;
    const int apart = heads_apart(m, &out->exec, all - end_of_layer(out), dtype);
    if (apart == 0)
        return;
    out->merged_heads = apart;
    out->merge.count = (m->heads + apart - 1) / apart;
    out->merge.first = all - out->merge.count;
    if (*first + *count > out->merge.first && out->merge.first - *first >= attends)
        *count = out->merge.first - *first;
}

void mgl_queues_place(const mgl_geometry *m, const mgl_target *target,
                      const mgl_lower_options *options, const mgl_schedule_config *config,
                      mgl_dtype merged, mgl_choices *out)
{
    if (may_stand_apart(m, options, config)) {
        give_roles(m, target, options, config, out);
        place_attention(m, target, out);
    } else if (out->splits > 1 && give_roles(m, target, options, config, out)) {
        place_splits(target, out);
    }
    place_merges(m, target, options, config, merged, out);
}

/* Bytes of a row group of q in layer 0. */
static int64_t q_group_bytes(const mgl_graph *graph, mgl_dtype dtype)
{
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *node = &graph->nodes[i];
        if (node->kind != MGL_NODE_LINEAR) /* the first one is q */
            continue;
        const mgl_tensor *q = &graph->tensors[node->tensor];
        return (int64_t)mgl_matrix_bytes(mgl_tensor_is_quantized(q) ? q->quantized
                                                                    : mgl_weight_format_of(dtype),
                                         MGL_ROW_GROUP, q->cols);
    }
    return 0;
}

void mgl_queues_spare(const mgl_graph *graph, const mgl_target *target,
                      const mgl_lower_options *options, const mgl_schedule_config *config,
                      mgl_choices *out)
{
    const mgl_geometry *m = &graph->geometry;
    const int64_t groups = mgl_step_groups(m, MGL_STEP_QKV);
    const int count = out->queues[MGL_STEP_QKV].count,
              first = out->unsplit > 0 ? out->unsplit_at.first : out->queues[MGL_STEP_ATTEND].first;
    const bool is_set = config->queues[MGL_STEP_QKV].first || config->queues[MGL_STEP_QKV].count;
    const bool whole =
        out->unsplit > 0 ? options->sequences == 1 : may_stand_apart(m, options, config);
    if (!out->flags || !strcmp(target->arch, "cpu") || config->second_rows > 0 || is_set || !whole)
        return;
    if (out->queues[MGL_STEP_QKV].first == 0 && first < count && 4 * first >= 3 * target->queues &&
        (groups + first - 1) / first <= (groups + count - 1) / count + 1 &&
        q_group_bytes(graph, options->dtype) <= SPARED_GROUP_BYTES)
        give(out, MGL_STEP_QKV, 0, first);
}
