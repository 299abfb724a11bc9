/*
 * Lowering: graph + target + ScheduleConfig -> program. It is deterministic and emits one task for
 * each (queue, step) by default. declare.c declares the operands of the tasks first.
 *
 * enter -> embed -> { qkv -> attend (-> merge) -> o -> gate/up -> down } x layers -> head -> sample
 *
 * The weight rows of a step are divided into row groups, which are distributed over the step's
 * queues (choose.c): queue i of n gets groups [G i / n, G (i + 1) / n). A queue without a share has
 * no task for the step. At the epoch edge `enter` waits for the sample of the previous epoch
 * (threshold 0). With gamma_scaled values, attention of the second list has a task for each share
 * of the rows. If choices.unsplit is more than 0, splits and merges have the split rows only, and
 * each layer has one task of attend for each kv head, with the unsplit rows. This task writes the
 * result of a merge, and o waits for both. Inside an epoch there are two kinds of edges.
 *
 * Counters: each step joins on the previous step, with one counter for each (layer, step), waited
 * for at its full count. x, qkv, att and h exist once and are rewritten in each layer. Each task
 * waits for all tasks of the previous step, so by induction all readers of a buffer are done before
 * its next write.
 *
 * Flags: each layer has its own exchange buffers in two sets, whose words encode whether they were
 * written. The residual r is plain f32; each queue accesses only its own columns, in embed, o and
 * down. After qkv a queue clears the words that it wrote in the previous layer, in the set of the
 * next epoch; the words of the last layer are cleared after that layer. The queue of a merge of
 * split rows clears the words of all rows (mgl_region_to_clear). Two sets suffice: a set is
 * cleared in the epoch between its uses, all tasks of an epoch finish before its sample, and the
 * next epoch starts after that. Therefore sample waits for every queue: for its head, or else for
 * its last task (`done`). The clear comes after qkv because its controller work delays the
 * preparation of the task after the next one; attention follows qkv closely and must not be that
 * task.
 *
 * The validator proves all of this for each program.
 */
#include "schedule/lower/lower.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "schedule/variants.h"

/* ---- regions -------------------------------------------------------------------------------- */

static mgl_range fixed(int64_t lo, int64_t hi)
{
    return (mgl_range){MGL_RANGE_FIXED, lo, hi};
}

static const mgl_range all_rows = {MGL_RANGE_ROWS, 0, 0};

/* Buffers with more than one set are flagged. */
static bool is_flagged(const mgl_lowering *w, int buffer)
{
    return buffer >= 0 && w->program->buffers[buffer].sets > 1;
}

/* Columns [lo, hi) of all rows of an activation. */
static mgl_region columns(const mgl_lowering *w, int buffer, int64_t lo, int64_t hi)
{
    return (mgl_region){
        .buffer = buffer, .flag = is_flagged(w, buffer), .ranges = {all_rows, fixed(lo, hi)}};
}

/* All of a buffer, with the rows symbol as the rows of the epoch. */
static mgl_region whole(const mgl_lowering *w, int buffer)
{
    mgl_region region = {.buffer = buffer, .flag = is_flagged(w, buffer)};
    if (buffer < 0)
        return region;
    const mgl_buffer *b = &w->program->buffers[buffer];
    for (int i = 0; i < b->rank; i++)
        region.ranges[i] =
            b->extents[i].symbol == MGL_ROWS ? all_rows : fixed(0, b->extents[i].count);
    return region;
}

static void in(mgl_lowering *w, mgl_region region)
{
    mgl_program_add_in(w->program, &region);
}

/* Adds an optional input: a bias, the norm of q or k, or the penalized logits. */
static void in_extra(mgl_lowering *w, int buffer)
{
    if (buffer >= 0)
        in(w, whole(w, buffer));
}

static void out(mgl_lowering *w, mgl_region region)
{
    mgl_program_add_out(w->program, &region);
}

/* One kv head of a cache: the earlier positions, or the positions of this epoch. */
static mgl_region cache(const mgl_lowering *w, int buffer, int head, mgl_range_kind kind)
{
    mgl_region region = whole(w, buffer);
    region.ranges[1] = fixed(head, head + 1);
    region.ranges[2] = (mgl_range){kind, 0, 0};
    return region;
}

/* ---- shares --------------------------------------------------------------------------------- */

/* The share [*lo, *hi) of a step's row groups on a queue. False if it is empty. */
static bool share(const mgl_lowering *w, mgl_step step, int queue, int64_t *lo, int64_t *hi)
{
    int first = w->choices.queues[step].first, count = w->choices.queues[step].count;
    int64_t groups = mgl_step_groups(&w->program->geometry, step);
    if (queue < first || queue >= first + count)
        return false;
    *lo = groups * (queue - first) / count;
    *hi = groups * (queue - first + 1) / count;
    return *lo < *hi;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The index of a queue's share among the nonempty shares of the step. */
static int64_t share_index(const mgl_lowering *w, mgl_step step, int queue)
{
    int first = w->choices.queues[step].first, count = w->choices.queues[step].count;
    int64_t groups = mgl_step_groups(&w->program->geometry, step);
    return groups < count ? groups * (queue - first) / count : queue - first;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static void task(mgl_lowering *w, mgl_op op)
{
    mgl_program_add_task(w->program, op);
}

/* Adds a wait. counter -1: flags are the edge, and there is no counter. */
static void wait_for(mgl_lowering *w, int counter, int64_t threshold)
{
    if (counter >= 0)
        mgl_program_add_wait(w->program, counter, threshold);
}

static void signal_to(mgl_lowering *w, int counter)
{
    if (counter >= 0)
        mgl_program_add_signal(w->program, counter);
}

/* Appends row groups [lo, hi) of one tensor, or of two (tensor2 >= 0), to the tape. */
static void segment(mgl_lowering *w, int tensor, int tensor2, int64_t lo, int64_t hi)
{
    if (mgl_program_failed(w->program) || w->status)
        return;
    const mgl_program_tensor *t = &w->program->tensors[tensor];
    mgl_segment s = {.tensor = tensor,
                     .tensor2 = tensor2,
                     .layout = tensor2 < 0 ? MGL_LAYOUT_G8 : MGL_LAYOUT_G8X2,
                     .row_lo = lo * MGL_ROW_GROUP,
                     .row_hi = min64(hi * MGL_ROW_GROUP, t->rows),
                     .col_hi = t->cols,
                     .offset = w->second ? 0 : w->tape};
    mgl_program_add_segment(w->program, &s);
    w->tape += mgl_segment_bytes(w->program, &s);
}

/* Adds columns [lo, hi) of the weight of the next norm. */
static void in_weight(mgl_lowering *w, int g, int64_t lo, int64_t hi)
{
    mgl_region region = {.buffer = g, .ranges = {fixed(lo, hi)}};
    in(w, region);
}

/* Adds the outputs of a gamma_scaled value: its columns, and its part of the squares `s`. */
static void out_gamma_scaled(mgl_lowering *w, int s, int64_t part, int64_t lo, int64_t hi)
{
    out(w, columns(w, w->n, lo, hi));
    out(w, columns(w, s, part, part + 1));
}

/* Adds the normalized input of a product: x and the norm's weight, or the gamma_scaled value and
 * its squares. */
static void in_normed(mgl_lowering *w, int x, int g, int s)
{
    in(w, whole(w, w->gamma_scaled ? w->n : x));
    in(w, whole(w, w->gamma_scaled ? s : g));
}

static void emit_embed(mgl_lowering *w, int queue)
{
    const mgl_geometry *m = &w->program->geometry;
    int64_t lo, hi;
    if (!share(w, MGL_STEP_DOWN, queue, &lo, &hi))
        return;
    lo *= MGL_ROW_GROUP;
    hi = min64(hi * MGL_ROW_GROUP, m->hidden);
    mgl_region rows = whole(w, w->embedding);
    rows.ranges[1] = fixed(lo, hi);
    task(w, w->gamma_scaled ? MGL_OP_EMBED_GAMMA : MGL_OP_EMBED);
    in(w, rows);
    if (w->gamma_scaled)
        in_weight(w, mgl_lowering_norm(w, 0), lo, hi);
    out(w, columns(w, w->residual, lo, hi));
    if (w->gamma_scaled)
        out_gamma_scaled(w, w->x_s, share_index(w, MGL_STEP_DOWN, queue), lo, hi);
    if (w->choices.flags)
        out(w, columns(w, w->layers[0].act.x, lo, hi));
    signal_to(w, w->embedded);
}

/* Whether a tensor needs another task than the tensor before it: on a GPU, all weights of a task
 * have one format and one column map. */
static bool is_apart(const mgl_lowering *w, int before, int tensor)
{
    return !mgl_program_failed(w->program) && strcmp(w->program->target.arch, "cpu") != 0 &&
           mgl_lowering_differ(w, before, tensor);
}

static void begin_qkv(mgl_lowering *w, const mgl_lowering_layer *l)
{
    task(w, w->gamma_scaled ? MGL_OP_RMS_LINEAR : MGL_OP_NORM_LINEAR);
    in_normed(w, l->act.x, l->attn_g, w->x_s);
}

static void end_qkv(mgl_lowering *w, int layer, int64_t from, int64_t to)
{
    out(w, columns(w, w->layers[layer].act.qkv, from, to));
    wait_for(w, layer == 0 ? w->embedded : w->layers[layer - 1].down_done,
             mgl_lowering_tasks(w, MGL_STEP_DOWN));
}

/* q, k and v are consecutive: a share may contain parts of up to three tensors, in one or more
 * tasks. Only the last of these tasks signals. */
static void emit_qkv(mgl_lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const mgl_lowering_layer *l = &w->layers[layer];
    const int tensors[3] = {l->q, l->k, l->v};
    int64_t lo, hi, base = 0, column = 0, from = -1, to = 0;
    if (!share(w, MGL_STEP_QKV, queue, &lo, &hi))
        return;
    begin_qkv(w, l);
    for (int i = 0; i < 3; i++) {
        int64_t rows = (int64_t)(i == 0 ? m->heads : m->kv_heads) * m->head_dim;
        int64_t groups = mgl_row_groups(rows);
        int64_t a = lo > base ? lo - base : 0, b = min64(hi - base, groups);
        if (a < b && from >= 0 && is_apart(w, tensors[i - 1], tensors[i])) {
            end_qkv(w, layer, from, to);
            begin_qkv(w, l);
            from = -1;
        }
        if (a < b) {
            segment(w, tensors[i], -1, a, b);
            in_extra(w, l->qkv_b[i]);
            if (from < 0)
                from = column + a * MGL_ROW_GROUP;
            to = column + min64(b * MGL_ROW_GROUP, rows);
        }
        base += groups;
        column += rows;
    }
    end_qkv(w, layer, from, to);
    signal_to(w, l->qkv_done);
}

enum { UNSPLIT = -1 }; /* in place of the number of a split: the attention of unsplit rows */

/* A range with the rows of kind `rows`; with all rows if the program has no kinds of rows. `kind`:
 * MGL_RANGE_ROW_KIND for [:rows], or MGL_RANGE_NOW for [pos]. */
static mgl_range rows_of(const mgl_lowering *w, mgl_range_kind kind, int rows)
{
    const mgl_range all = {kind == MGL_RANGE_ROW_KIND ? MGL_RANGE_ROWS : kind, 0, 0};
    return w->choices.unsplit > 0 ? (mgl_range){kind, rows, MGL_ROWS_KINDS} : all;
}

/* Partial results of all splits, for heads [lo, hi) and the split rows; for all rows if the program
 * has no kinds of rows. */
static mgl_region partials(const mgl_lowering *w, int buffer, int64_t lo, int64_t hi)
{
    mgl_region part = whole(w, buffer);
    part.ranges[1] = rows_of(w, MGL_RANGE_ROW_KIND, MGL_ROWS_SPLIT);
    part.ranges[2] = fixed(lo, hi);
    return part;
}

/* Emits split `split` of kv head `head`; UNSPLIT: the attention of the unsplit rows. */
static void emit_attend_task(mgl_lowering *w, int layer, int head, int split)
{
    const mgl_geometry *m = &w->program->geometry;
    const mgl_lowering_layer *l = &w->layers[layer];
    int group = m->heads / m->kv_heads;
    int64_t d = m->head_dim, q = (int64_t)head * group * d;
    int64_t k = (int64_t)m->heads * d + head * d, v = k + (int64_t)m->kv_heads * d;
    const bool whole_head = w->choices.splits == 1 || split == UNSPLIT;
    const bool last = whole_head || split == w->choices.splits - 1;
    const int rows = split == UNSPLIT ? MGL_ROWS_UNSPLIT : MGL_ROWS_SPLIT;
    task(w, whole_head ? MGL_OP_ATTEND : last ? MGL_OP_ATTEND_TAIL : MGL_OP_ATTEND_PAST);
    in(w, columns(w, l->act.qkv, q, q + group * d));
    if (last) {
        in(w, columns(w, l->act.qkv, k, k + d));
        in(w, columns(w, l->act.qkv, v, v + d));
    }
    in(w, whole(w, w->rope));
    in(w, cache(w, l->k_cache, head, MGL_RANGE_PAST));
    in(w, cache(w, l->v_cache, head, MGL_RANGE_PAST));
    in_extra(w, l->q_g);
    in_extra(w, last ? l->k_g : -1);
    if (whole_head) {
        mgl_region y = columns(w, l->act.att, q, q + group * d);
        y.ranges[0] = rows_of(w, MGL_RANGE_ROW_KIND, rows);
        out(w, y);
    } else {
        mgl_region part =
            partials(w, l->act.part, (int64_t)head * group, (int64_t)(head + 1) * group);
        part.ranges[0] = fixed(split, split + 1);
        out(w, part);
    }
    if (last) {
        mgl_region k_now = cache(w, l->k_cache, head, MGL_RANGE_NOW), v_now = k_now;
        k_now.ranges[2] = v_now.ranges[2] = rows_of(w, MGL_RANGE_NOW, rows);
        v_now.buffer = l->v_cache;
        out(w, k_now);
        out(w, v_now);
    }
    wait_for(w, l->qkv_done, mgl_lowering_tasks(w, MGL_STEP_QKV));
    signal_to(w, split == UNSPLIT ? l->merge_done : l->attend_done);
}

/* Whether attention tasks have shares of the rows: with gamma_scaled values, if the machine has
 * a variant for it. */
static bool shares_rows(const mgl_lowering *w)
{
    const mgl_task task = {.op = MGL_OP_ATTEND_ROWS};
    mgl_dimensions dimensions;
    if (!w->second || !w->gamma_scaled)
        return false;
    mgl_dimensions_of_program(w->program, &dimensions);
    return !strcmp(w->program->target.arch, "cpu") ||
           mgl_variant_takes_task(w->program, &task, MGL_VARIANT_FLASH, &dimensions, NULL);
}

/* Tasks of a kv head: one for each split, or one for each share of the rows, as many as the
 * queues allow. */
static int tasks_of_head(const mgl_lowering *w)
{
    if (!w->shares_rows)
        return w->choices.splits;
    const int queues = w->choices.queues[MGL_STEP_ATTEND].count;
    const int heads = w->program->geometry.kv_heads, rows = w->program->limits.rows;
    return queues < heads ? 1 : queues / heads < rows ? queues / heads : rows;
}

/* Emits share `index` of the rows of kv head `head`. Share 0 appends to the cache. */
static void emit_attend_rows(mgl_lowering *w, int layer, int head, int index)
{
    const mgl_geometry *m = &w->program->geometry;
    const mgl_lowering_layer *l = &w->layers[layer];
    const int64_t d = m->head_dim, wide = m->heads / m->kv_heads * d, q = head * wide;
    const int64_t k = m->heads * d + head * d, v = k + m->kv_heads * d;
    const mgl_range rows = {MGL_RANGE_SHARE, index, tasks_of_head(w)};
    mgl_region queries = columns(w, l->act.qkv, q, q + wide);
    mgl_region results = columns(w, l->act.att, q, q + wide);
    queries.ranges[0] = results.ranges[0] = rows;
    task(w, MGL_OP_ATTEND_ROWS);
    in(w, queries);
    in(w, columns(w, l->act.qkv, k, k + d));
    in(w, columns(w, l->act.qkv, v, v + d));
    in(w, whole(w, w->rope));
    in(w, cache(w, l->k_cache, head, MGL_RANGE_PAST));
    in(w, cache(w, l->v_cache, head, MGL_RANGE_PAST));
    in_extra(w, l->q_g);
    in_extra(w, l->k_g);
    out(w, results);
    if (index == 0) {
        out(w, cache(w, l->k_cache, head, MGL_RANGE_NOW));
        out(w, cache(w, l->v_cache, head, MGL_RANGE_NOW));
    }
    wait_for(w, l->qkv_done, mgl_lowering_tasks(w, MGL_STEP_QKV));
    signal_to(w, l->attend_done);
}

/* Whether the queue runs attention task i of T, which goes to queue i n / T of n. */
static bool has_task(const mgl_lowering *w, int queue, int64_t index, int64_t count)
{
    int first = w->choices.queues[MGL_STEP_ATTEND].first;
    int n = w->choices.queues[MGL_STEP_ATTEND].count;
    return queue == first + (int)(index * n / count);
}

/* Whether the queue has the attention of the unsplit rows over kv head `head`. */
static bool has_unsplit(const mgl_lowering *w, int queue, int64_t head)
{
    const int heads = w->program->geometry.kv_heads;
    return w->choices.unsplit > 0 &&
           queue == w->choices.unsplit_at.first + (int)(head * w->choices.unsplit_at.count / heads);
}

static void emit_attend(mgl_lowering *w, int queue, int layer)
{
    int heads = w->program->geometry.kv_heads, tasks = tasks_of_head(w);
    for (int i = 0; i < heads; i++)
        if (has_unsplit(w, queue, i))
            emit_attend_task(w, layer, i, UNSPLIT);
    for (int i = 0; i < heads * tasks; i++) {
        if (!has_task(w, queue, i, (int64_t)heads * tasks))
            continue;
        if (w->shares_rows)
            emit_attend_rows(w, layer, i / tasks, i % tasks);
        else
            emit_attend_task(w, layer, i / tasks, i % tasks);
    }
}

/* Number of merge tasks of a layer; 0: attention is not split, or o merges. */
static int merges(const mgl_lowering *w)
{
    const int each = w->choices.merged_heads;
    return mgl_lowering_has_merges(w) ? (w->program->geometry.heads + each - 1) / each : 0;
}

static bool has_merge(const mgl_lowering *w, int queue, int64_t index)
{
    return queue == w->choices.merge.first + (int)(index * w->choices.merge.count / merges(w));
}

static void emit_merge(mgl_lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const mgl_lowering_layer *l = &w->layers[layer];
    for (int i = 0; i < merges(w); i++) {
        int64_t first = (int64_t)i * w->choices.merged_heads;
        int64_t end = min64(first + w->choices.merged_heads, m->heads);
        if (!has_merge(w, queue, i))
            continue;
        mgl_region y = columns(w, l->act.att, first * m->head_dim, end * m->head_dim);
        y.ranges[0] = rows_of(w, MGL_RANGE_ROW_KIND, MGL_ROWS_SPLIT);
        task(w, MGL_OP_MERGE);
        in(w, partials(w, l->act.part, first, end));
        out(w, y);
        wait_for(w, l->attend_done, (int64_t)m->kv_heads * w->choices.splits);
        signal_to(w, l->merge_done);
    }
}

/* The output value of a layer: the input of the next layer, or of the head. */
static int behind(const mgl_lowering *w, int layer)
{
    return layer + 1 < w->program->geometry.layers ? w->layers[layer + 1].act.x : w->x;
}

/* Emits o or down: residual += a W^T on the queue's share of the columns; with flags, also a
 * copy. */
static void emit_linear_add(mgl_lowering *w, int queue, int layer, mgl_step step)
{
    const mgl_geometry *m = &w->program->geometry;
    const mgl_lowering_layer *l = &w->layers[layer];
    bool down = step == MGL_STEP_DOWN;
    int64_t lo, hi;
    if (!share(w, step, queue, &lo, &hi))
        return;
    int64_t first = lo * MGL_ROW_GROUP, end = min64(hi * MGL_ROW_GROUP, m->hidden);
    const bool merging = !down && w->choices.merges_in_o;
    task(w, merging           ? MGL_OP_MERGE_ADD
            : w->gamma_scaled ? MGL_OP_LINEAR_ADD_GAMMA
                              : MGL_OP_LINEAR_ADD);
    in(w, whole(w, down ? l->act.h : merging ? l->act.part : l->act.att));
    in(w, columns(w, w->residual, first, end));
    if (w->gamma_scaled)
        in_weight(w, down ? mgl_lowering_norm(w, layer + 1) : l->ffn_g, first, end);
    in_extra(w, down ? l->down_b : l->o_b);
    segment(w, down ? l->down : l->o, -1, lo, hi);
    out(w, columns(w, w->residual, first, end));
    if (w->gamma_scaled)
        out_gamma_scaled(w, down ? w->x_s : w->y_s, share_index(w, step, queue), first, end);
    if (w->choices.flags)
        out(w, columns(w, down ? behind(w, layer) : l->act.y, first, end));
    if (down)
        wait_for(w, l->gate_up_done, mgl_lowering_tasks(w, MGL_STEP_GATE_UP));
    else if (mgl_lowering_has_merges(w))
        wait_for(w, l->merge_done, merges(w) + (w->choices.unsplit > 0 ? m->kv_heads : 0));
    else
        wait_for(w, l->attend_done, (int64_t)m->kv_heads * tasks_of_head(w));
    signal_to(w, down ? l->down_done : l->o_done);
}

static void emit_gate_up(mgl_lowering *w, int queue, int layer)
{
    const mgl_geometry *m = &w->program->geometry;
    const mgl_lowering_layer *l = &w->layers[layer];
    int64_t lo, hi;
    if (!share(w, MGL_STEP_GATE_UP, queue, &lo, &hi))
        return;
    task(w, w->gamma_scaled ? MGL_OP_RMS_SWIGLU : MGL_OP_NORM_SWIGLU);
    in_normed(w, l->act.y, l->ffn_g, w->y_s);
    in_extra(w, l->gate_b);
    in_extra(w, l->up_b);
    segment(w, l->gate, l->up, lo, hi);
    out(w, columns(w, l->act.h, lo * MGL_ROW_GROUP, min64(hi * MGL_ROW_GROUP, m->ffn)));
    wait_for(w, l->o_done, mgl_lowering_tasks(w, MGL_STEP_O));
    signal_to(w, l->gate_up_done);
}

/* Adds the inputs of penalties for vocabulary rows [lo, hi). */
static void in_counts(mgl_lowering *w, int64_t lo, int64_t hi)
{
    mgl_region counts = whole(w, w->counts);
    counts.ranges[1] = fixed(lo, hi);
    in(w, counts);
    in(w, whole(w, w->sequence));
}

static void emit_head(mgl_lowering *w, int queue)
{
    const mgl_geometry *m = &w->program->geometry;
    int64_t lo, hi;
    if (!share(w, MGL_STEP_HEAD, queue, &lo, &hi))
        return;
    int64_t index = share_index(w, MGL_STEP_HEAD, queue);
    task(w, w->gamma_scaled ? MGL_OP_RMS_HEAD : MGL_OP_HEAD);
    in_normed(w, w->x, w->g, w->x_s);
    const int64_t first = lo * MGL_ROW_GROUP, end = min64(hi * MGL_ROW_GROUP, m->vocab);
    if (w->penalties)
        in_counts(w, first, end);
    segment(w, w->head, -1, lo, hi);
    out(w, columns(w, w->logits, first, end));
    out(w, columns(w, w->best_value, index, index + 1));
    out(w, columns(w, w->best_id, index, index + 1));
    if (w->penalties)
        out(w, columns(w, w->penalized, first, end));
    wait_for(w, w->layers[m->layers - 1].down_done, mgl_lowering_tasks(w, MGL_STEP_DOWN));
    signal_to(w, w->head_done);
}

/* Emits the draw of the queue's share of the rows. The tokens follow the head's results in
 * best_id. */
static void emit_draw(mgl_lowering *w, int queue)
{
    const int count = mgl_lowering_draws(w), parts = mgl_lowering_tasks(w, MGL_STEP_HEAD);
    const int64_t index = share_index(w, MGL_STEP_HEAD, queue);
    int64_t lo, hi;
    if (!share(w, MGL_STEP_HEAD, queue, &lo, &hi) || index >= count)
        return;
    mgl_region logits = whole(w, w->penalties ? w->penalized : w->logits);
    mgl_region values = whole(w, w->best_value);
    mgl_region token = columns(w, w->best_id, parts, parts + 1);
    logits.ranges[0] = values.ranges[0] = token.ranges[0] =
        (mgl_range){MGL_RANGE_SHARE, index, count};
    task(w, MGL_OP_DRAW);
    in(w, logits);
    in(w, values);
    in(w, whole(w, w->sequence));
    out(w, token);
    wait_for(w, w->head_done, mgl_lowering_tasks(w, MGL_STEP_HEAD));
    signal_to(w, w->drawn);
}

/* Queues whose end sample does not see through their head task, without sample's own queue 0. */
struct others {
    int idle; /* queues that have only enter */
    int done; /* with flags: queues whose last task belongs to a layer */
};

/* Whether a queue has only enter (queue 0 has sample too). */
static bool is_idle(const mgl_lowering *w, int queue)
{
    int64_t lo, hi, attends = (int64_t)w->program->geometry.kv_heads * tasks_of_head(w);
    if (queue == 0)
        return false;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        if (share(w, (mgl_step)i, queue, &lo, &hi))
            return false;
    for (int64_t i = 0; i < attends; i++)
        if (has_task(w, queue, i, attends))
            return false;
    for (int i = 0; i < w->program->geometry.kv_heads; i++)
        if (has_unsplit(w, queue, i))
            return false;
    for (int i = 0; i < merges(w); i++)
        if (has_merge(w, queue, i))
            return false;
    return true;
}

/* Whether no task waits for the last task of a queue. With counters each step waits for the
 * previous one, so this occurs only with flags. */
static bool ends_unseen(const mgl_lowering *w, int queue)
{
    int64_t lo, hi;
    return w->choices.flags && queue != 0 && !is_idle(w, queue) &&
           !share(w, MGL_STEP_HEAD, queue, &lo, &hi);
}

static struct others count_others(const mgl_lowering *w)
{
    struct others others = {0};
    for (int q = 0; q < w->program->target.queues; q++) {
        others.idle += is_idle(w, q);
        others.done += ends_unseen(w, q);
    }
    return others;
}

static void emit_sample(mgl_lowering *w, const struct others *others)
{
    const int inputs[] = {w->logits, w->best_value, w->best_id, w->sequence, w->prompt};
    const int outputs[] = {w->control, w->table, w->sequence, w->output, w->score};
    task(w, MGL_OP_SAMPLE);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        in(w, whole(w, inputs[i]));
    in_extra(w, w->penalized);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        out(w, whole(w, outputs[i]));
    if (w->penalties)
        out(w, whole(w, w->counts));
    if (mgl_lowering_draws(w)) /* the draws wait for the head */
        wait_for(w, w->drawn, mgl_lowering_draws(w));
    else
        wait_for(w, w->head_done, mgl_lowering_tasks(w, MGL_STEP_HEAD));
    wait_for(w, w->idle, others->idle);
    wait_for(w, w->done, others->done);
    signal_to(w, w->sampled);
}

/* Emits region number `index` of the queue's clears of a layer; one task clears several regions. */
static void emit_clear(mgl_lowering *w, mgl_region region, int index)
{
    if (index % mgl_op_get(MGL_OP_CLEAR)->out_count == 0)
        task(w, MGL_OP_CLEAR);
    out(w, region);
}

/* Emits clears of the flagged words that the queue's tasks [first, end) write. */
static void emit_clears(mgl_lowering *w, int first, int end)
{
    const mgl_program *p = w->program;
    int count = 0;
    mgl_region run = {.buffer = -1};
    for (int t = first; t < end; t++) {
        for (int i = 0; i < p->tasks[t].out.count && !mgl_program_failed(p); i++) {
            mgl_region region = p->regions[p->tasks[t].out.first + i];
            if (!mgl_region_to_clear(&region) || mgl_region_join(&run, &region))
                continue;
            if (run.buffer >= 0)
                emit_clear(w, run, count++);
            run = region;
        }
    }
    if (run.buffer >= 0)
        emit_clear(w, run, count);
}

/* Emits the queue's tasks of a layer, and clears of the words written in the previous layer, by
 * the tasks from *first on. Sets *first to the first task of this layer. */
static void emit_layer(mgl_lowering *w, int queue, int layer, int *first)
{
    const int begin = w->program->task_count;
    emit_qkv(w, queue, layer);
    if (layer > 0) {
        emit_clears(w, *first, begin);
        *first = begin;
    }
    emit_attend(w, queue, layer);
    emit_merge(w, queue, layer);
    emit_linear_add(w, queue, layer, MGL_STEP_O);
    emit_gate_up(w, queue, layer);
    emit_linear_add(w, queue, layer, MGL_STEP_DOWN);
}

static void emit_queue(mgl_lowering *w, int queue, const struct others *others)
{
    mgl_program *program = w->program;
    int index = mgl_program_add_queue(program);
    w->tape = 0;
    task(w, MGL_OP_ENTER);
    in(w, whole(w, w->control));
    in(w, whole(w, w->table));
    wait_for(w, w->sampled, 0);
    if (is_idle(w, queue))
        signal_to(w, w->idle);
    int first = program->task_count;
    emit_embed(w, queue);
    for (int l = 0; l < program->geometry.layers; l++)
        emit_layer(w, queue, l, &first);
    emit_clears(w, first, program->task_count);
    if (ends_unseen(w, queue))
        signal_to(w, w->done);
    emit_head(w, queue);
    emit_draw(w, queue);
    if (queue == 0)
        emit_sample(w, others);
    if (index < 0 || w->second || mgl_program_failed(program))
        return;
    MGL_ASSERT(w->tape % MGL_BLOCK_BYTES == 0);
    int64_t page = program->exec.page_bytes, bytes = (w->tape + page - 1) / page * page;
    program->queues[index].tape_bytes = bytes;
    program->queues[index].tape_pad = bytes - w->tape;
}

/* Emits all queues of a list whose declarations are complete except for the counters of the
 * queue ends. */
static void emit_queues(mgl_lowering *w)
{
    char name[64];
    struct others others = count_others(w);
    snprintf(name, sizeof name, "%sdrawn", w->prefix);
    w->drawn = mgl_lowering_draws(w) ? mgl_program_add_counter(w->program, name) : -1;
    snprintf(name, sizeof name, "%sidle", w->prefix);
    w->idle = others.idle ? mgl_program_add_counter(w->program, name) : -1;
    snprintf(name, sizeof name, "%sdone", w->prefix);
    w->done = others.done ? mgl_program_add_counter(w->program, name) : -1;
    for (int q = 0; !w->status && !mgl_program_failed(w->program) && q < w->program->target.queues;
         q++)
        emit_queue(w, q, &others);
}

/* Lowers the second list: the same steps on the same queues, with counters as edges, attention
 * without splits, and gamma_scaled values if chosen. */
static void lower_second(const mgl_lowering *first)
{
    mgl_lowering w = *first;
    w.status = mgl_program_add_second(first->program, first->err);
    if (w.status)
        return;
    w.program = first->program->second;
    w.prefix = "second.";
    w.second = true;
    w.choices.flags = false;
    w.choices.splits = 1;
    w.choices.unsplit = 0;
    w.choices.merges_in_o = false;
    w.choices.rows = w.program->limits.rows;
    w.gamma_scaled = w.choices.gamma_scaled;
    w.shares_rows = shares_rows(&w);
    if (w.shares_rows) {
        w.choices.queues[MGL_STEP_ATTEND].first = 0;
        w.choices.queues[MGL_STEP_ATTEND].count = w.program->target.queues;
    }
    mgl_lowering_declare_second(&w);
    emit_queues(&w);
}

void mgl_lowering_emit(mgl_lowering *w)
{
    mgl_lowering_declare(w);
    if (w->status || mgl_program_failed(w->program))
        return;
    emit_queues(w);
    if (w->program->limits.second_rows > 0 && !w->status && !mgl_program_failed(w->program))
        lower_second(w);
}
