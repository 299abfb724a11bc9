/*
 * Implements cost_jobs.h: the work of each task by op and variant.
 *
 * A panel (vm/cuda/device/linear/panels.cuh) multiplies all k blocks of its input, activation tile
 * by activation tile, and its weights, page by page. Its cost is the sum over activation tiles,
 * whose number grows with the rows, and over pages.
 */
#include "schedule/cost/cost_jobs.h"

#include <math.h>

#include "base/memory.h"
#include "schedule/formats.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"

enum {
    PAGE_UNIT = 16384, /* bytes of the cost field `page` */
    GENERAL_WARPS = 8, /* warps of the cost field `general` */
    QUERY_TILE = 16    /* queries in a tile, for attention of rows */
};

struct job_maker {
    const mgl_program *program; /* the list */
    const mgl_costs *costs;
    const mgl_cost_epoch *epoch;
    mgl_cost_job *jobs; /* (tasks) */
    bool *is_ffn;       /* (buffers) holds the output of norm_swiglu */
};

/* o and down share an op: down reads the output of norm_swiglu. */
static int step_of(const struct job_maker *s, const mgl_task *task)
{
    const mgl_step step = mgl_op_get(task->op)->step;
    const bool down = step == MGL_STEP_O &&
                      s->is_ffn[mgl_task_operand(s->program, task, MGL_PRODUCT_INPUT)->buffer];
    return down ? MGL_STEP_DOWN : (int)step;
}

/* Attention splits in use. */
static int splits_used(const struct job_maker *s, int splits)
{
    return mgl_splits_used((int)s->epoch->context, splits, s->program->limits.share);
}

int mgl_cost_rows(const mgl_program *list, const mgl_cost_epoch *epoch)
{
    return epoch->context <= list->limits.unsplit ? MGL_ROWS_UNSPLIT : MGL_ROWS_SPLIT;
}

/* Whether the task does nothing in the epoch: its result has a kind of rows that the epoch does not
 * have. */
static bool is_left_out(const struct job_maker *s, const mgl_task *task)
{
    const mgl_region *result = mgl_task_result(s->program, task);
    for (int i = 0; i < 2; i++)
        if (mgl_range_has_row_kind(&result->ranges[i]) &&
            result->ranges[i].lo != mgl_cost_rows(s->program, s->epoch))
            return true;
    return false;
}

/* Earlier positions of a sequence that an attention task reads: its split's share. */
static double positions_of(const struct job_maker *s, const mgl_task *task)
{
    const int operand = mgl_op_attention(task->op)->part;
    if (operand == MGL_NO_OPERAND)
        return s->epoch->context;
    const mgl_region *part = mgl_task_operand(s->program, task, operand);
    const int splits = (int)s->program->buffers[part->buffer].extents[0].count;
    const int used = splits_used(s, splits), split = (int)part->ranges[0].lo;
    return split == splits - 1 || split + 1 < used ? s->epoch->context / used : 0;
}

static double position_bytes(const mgl_program *p)
{
    return 2.0 * p->geometry.head_dim * (double)mgl_dtype_size(p->kv_dtype);
}

/* Number of shares of the epoch's rows, of which an attention task has one. */
static double shares_of(const mgl_program *p, const mgl_task *task)
{
    const mgl_range *rows = &mgl_task_operand(p, task, mgl_op_attention(task->op)->q)->ranges[0];
    return rows->kind == MGL_RANGE_SHARE ? (double)rows->hi : 1;
}

/* Cache bytes that an attention task reads for `sequences` sequences, or its share of them. */
static double cache_bytes(const struct job_maker *s, const mgl_task *task, int sequences)
{
    return positions_of(s, task) * sequences * position_bytes(s->program) /
           shares_of(s->program, task);
}

/* Whether an attention task's keys and values come on the tape: with the ring variant, if there
 * are more positions than registers hold. */
static bool is_on_tape(const struct job_maker *s, const mgl_task *task)
{
    const mgl_program *p = s->program;
    return task->variant == MGL_VARIANT_RING &&
           positions_of(s, task) > MGL_KV_REGISTERS(p->geometry.head_dim, p->exec.warps);
}

/* The queue's task before this one, without clears and attention that does nothing in the epoch.
 * Before the list's first task if there is none. */
static const mgl_task *task_before(const struct job_maker *s, const mgl_task *task)
{
    const mgl_task *before = task - 1;
    while (
        before > s->program->tasks &&
        (before->op == MGL_OP_CLEAR || (mgl_op_is_attention(before->op) && is_left_out(s, before))))
        before--;
    return before;
}

/* Whether the queue has no qkv before the attention. Then it already polls for the queries when
 * they arrive. */
static bool waits_for_queries(const struct job_maker *s, const mgl_task *task)
{
    const mgl_task *before = task_before(s, task);
    return before < s->program->tasks || mgl_op_get(before->op)->step != MGL_STEP_QKV;
}

/* Attention row by row: rows of a prompt cost as much as rows of different sequences. */
static void make_attention(const struct job_maker *s, const mgl_task *task, mgl_cost_job *job)
{
    const mgl_costs *c = s->costs;
    job->cache_bytes = cache_bytes(s, task, s->epoch->rows);
    if (is_on_tape(s, task)) {
        job->to = (int64_t)job->cache_bytes;
        job->byte_us = 1e-3 / c->cache;
        job->on_tape = true;
    }
    if (job->cache_bytes > 0 || mgl_op_attention(task->op)->k_now != MGL_NO_OPERAND)
        job->fixed[MGL_COST_ATTEND] = (waits_for_queries(s, task) ? c->attend_apart : c->attend) +
                                      c->attend_row * (s->epoch->rows - 1);
}

/* Queries of a unit (vm/cuda/device/attention/flash.cuh). */
static int unit_queries(int head_dim)
{
    return head_dim <= 64 ? 2 * QUERY_TILE : QUERY_TILE;
}

/* Attention for a share of the rows (flash variant). A task reads a sequence's positions once
 * for each unit of rows of that sequence; a unit takes as long as one row elsewhere. The rows of
 * a prompt share their sequence: each unit reads all positions, but memory is read once. With
 * one row a sequence, the loaded data serves one row only. */
static void make_rows(const struct job_maker *s, const mgl_task *task, mgl_cost_job *job)
{
    const mgl_costs *c = s->costs;
    const mgl_geometry *m = &s->program->geometry;
    const double rows = ceil(s->epoch->rows / shares_of(s->program, task));
    const double queries = rows * (m->heads / m->kv_heads);
    const double units = s->epoch->prompt ? ceil(queries / unit_queries(m->head_dim)) : rows;
    job->cache_bytes = cache_bytes(s, task, s->epoch->prompt ? 1 : s->epoch->rows);
    job->fixed[MGL_COST_ATTEND] = c->attend + c->attend_row * (units - 1);
    const double byte_us = 1e-3 / c->cache;
    if (s->epoch->prompt) {
        const double positions = units * (s->epoch->context + s->epoch->rows);
        const double again = positions * position_bytes(s->program) - job->cache_bytes;
        job->fixed[MGL_COST_CACHE] = again * byte_us;
    } else {
        job->fixed[MGL_COST_CACHE] = job->cache_bytes * (1e-3 / c->decode_row - byte_us);
    }
}

/* Row groups of 8 rows in all tensors of the segment. */
static double groups_of(const mgl_segment *segment)
{
    int64_t groups = (mgl_segment_rows(segment) + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    return (double)(segment->tensor2 < 0 ? groups : 2 * groups);
}

/* Scales of a row group on the tape. */
static double scales_of_group(const mgl_program *p, const mgl_segment *segment)
{
    const mgl_weight_format format = mgl_segment_format(p, segment);
    if (!mgl_weight_format_is_scaled(format))
        return 0;
    return (double)(mgl_tape_scale_groups(format, segment->col_hi - segment->col_lo) *
                    mgl_tape_scale_rows(format));
}

/* Values of a row that a product reads: its input, or the partial results of all splits in use. */
static double inputs_of(const struct job_maker *s, const mgl_task *task)
{
    const mgl_program *p = s->program;
    const mgl_region *in = mgl_task_operand(p, task, MGL_PRODUCT_INPUT);
    const mgl_extent *extents = p->buffers[in->buffer].extents;
    if (task->op != MGL_OP_MERGE_ADD)
        return (double)mgl_task_inputs(p, task);
    return splits_used(s, (int)extents[0].count) * (double)(extents[2].count * extents[3].count);
}

static void make_product(const struct job_maker *s, const mgl_task *task, mgl_cost_job *job)
{
    const mgl_costs *c = s->costs;
    const mgl_segment *segments = &s->program->segments[task->segments.first];
    const mgl_weight_format format = mgl_segment_format(s->program, segments);
    double groups = 0, scales = 0, rows = s->epoch->rows;
    job->from = job->to = segments[0].offset;
    for (int i = 0; i < task->segments.count; i++) {
        groups += groups_of(&segments[i]);
        scales += groups_of(&segments[i]) * scales_of_group(s->program, &segments[i]);
        job->to += mgl_segment_bytes(s->program, &segments[i]);
    }
    double sums =
        groups * (c->group + c->group_row * (rows - 1)) + scales * c->scales * 1e-3 * rows;
    double page = task->variant == MGL_VARIANT_GENERAL
                      ? c->general * rows * GENERAL_WARPS / s->program->exec.warps
                  : mgl_weight_format_is_scaled(format) ? c->scaled_page
                                                        : c->page;
    if (job->to > job->from)
        job->byte_us = page / PAGE_UNIT + sums / (double)(job->to - job->from);
    job->fixed[MGL_COST_TASK] += c->input * rows * inputs_of(s, task) * 1e-3;
}

/* ---- panels ---------------------------------------------------------------------------------- */

bool mgl_cost_has_panels(const mgl_program *list)
{
    for (int t = 0; t < list->task_count; t++)
        if (mgl_op_get(list->tasks[t].op)->family == MGL_FAMILY_PANEL)
            return mgl_variant_is_panels(list->tasks[t].variant);
    return false;
}

/* The k blocks of a product: of weights, and how many k blocks of activations each of them has. */
struct panel_blocks {
    int weights, parts;
};

/* Time in us of a panel of `groups` row groups by `rows` activation rows: its activation tiles
 * with all k blocks, and its pages. `grouped`: by warpgroups. */
static double panel_us(const struct job_maker *s, int groups, struct panel_blocks k, int rows,
                       bool grouped)
{
    const mgl_exec *exec = &s->program->exec;
    const int most = s->program->limits.rows, least = MGL_PANEL_ACT_TILE_BLOCKS(most, grouped);
    const int act_tile = mgl_panel_act_tile_blocks(most, rows, grouped);
    const int blocks = exec->page_bytes / MGL_BLOCK_BYTES;
    const int piece =
        mgl_panel_piece(groups, blocks, least, MGL_PANEL_PAGES(exec->ring_pages, most), grouped);
    const int pages =
        mgl_panel_pages(groups, piece, blocks, grouped) * ((k.weights + piece - 1) / piece);
    const int act_tiles = (k.weights * k.parts + act_tile - 1) / act_tile;
    return s->costs->act_tile * act_tiles + s->costs->panel * pages;
}

/* The same for a small-M panel of `tiles` tiles of rows: page after page, each with k blocks of
 * all warps. */
static double small_m_us(const struct job_maker *s, int groups, int kblocks, int tiles)
{
    const mgl_exec *exec = &s->program->exec;
    const int most = mgl_small_m_groups(exec->warps);
    const int room = exec->page_bytes / MGL_BLOCK_BYTES / exec->warps;
    const int per = room < most ? room : most;
    const int turns = mgl_small_m_turns(per), blocks = turns * exec->warps;
    const int steps = (kblocks + blocks - 1) / blocks;
    const int pages = (groups + per / turns - 1) / (per / turns) * steps;
    return s->costs->small_m + s->costs->small_m_page * pages +
           s->costs->small_m_rows * (tiles - 1) * steps;
}

/* Row groups of a task's small-M panels; 0: the task uses other panels, as all tasks with scaled
 * weights do. Up to MGL_SMALL_N_ROWS rows, tasks with few row groups use small-N panels, except the
 * head. */
static int small_m_groups(const struct job_maker *s, int groups, struct panel_blocks k, bool heads)
{
    const mgl_exec *exec = &s->program->exec;
    const int rows = s->epoch->rows, most = mgl_small_m_groups(exec->warps);
    const int small_n = most / (MGL_SMALL_N_ROWS / MGL_SMALL_M_TILE);
    if (exec->page_bytes / MGL_BLOCK_BYTES < exec->warps || k.parts > 1)
        return 0;
    if (rows <= MGL_SMALL_M_ROWS)
        return rows <= MGL_SMALL_M_TILE ? most : most / 2;
    return rows <= MGL_SMALL_N_ROWS && groups <= small_n && !heads ? small_n : 0;
}

/* Time of all panels of a product with `groups` row groups. */
static double panels_us(const struct job_maker *s, int groups, struct panel_blocks k, int rows,
                        bool grouped, bool heads)
{
    const int small_m = small_m_groups(s, groups, k, heads);
    const int tiles = s->epoch->rows <= MGL_SMALL_M_TILE   ? 1
                      : s->epoch->rows <= MGL_SMALL_M_ROWS ? MGL_SMALL_M_ROWS / MGL_SMALL_M_TILE
                                                           : MGL_SMALL_N_ROWS / MGL_SMALL_M_TILE;
    const int most = small_m > 0 ? small_m : MGL_PANEL_GROUPS(s->program->exec.warps);
    double us = 0;
    for (; groups > 0; groups -= most) {
        const int here = groups < most ? groups : most;
        us += small_m > 0 ? small_m_us(s, here, k.weights, tiles)
                          : panel_us(s, here, k, rows, grouped);
    }
    return us;
}

/* Activation rows that a product multiplies. A head multiplies only tiles with a wanted row; in
 * the worst case each wanted row has its own tile. */
static int panel_rows(const struct job_maker *s, const mgl_task *task)
{
    enum { TILE = 8 };
    const int rows = s->epoch->rows, tiles = (rows + TILE - 1) / TILE;
    const int wanted = s->epoch->wanted < tiles ? s->epoch->wanted : tiles;
    return mgl_op_heads(task->op) ? wanted * TILE : rows;
}

/* Values of a row that a panel reads for its scale: one sum of squares from each producer task. */
static double scales_of(const struct job_maker *s, const mgl_task *task)
{
    const mgl_program *p = s->program;
    if (task->op == MGL_OP_LINEAR_ADD_GAMMA)
        return 0;
    const mgl_region *squares = mgl_task_operand(p, task, MGL_PRODUCT_SQUARES);
    return (double)p->buffers[squares->buffer].extents[1].count;
}

/* A product of gamma_scaled values. A head without wanted rows reads nothing. */
static void make_panels(const struct job_maker *s, const mgl_task *task, mgl_cost_job *job)
{
    const mgl_program *p = s->program;
    const mgl_segment *segments = &p->segments[task->segments.first];
    const int columns = mgl_weight_code_columns(mgl_segment_format(p, &segments[0]).code);
    const struct panel_blocks k = {
        (int)mgl_segment_blocks(p, &segments[0]),
        columns > MGL_PART_COLUMNS ? columns / MGL_PART_COLUMNS : 1,
    };
    const bool grouped = task->variant == MGL_VARIANT_WARPGROUPS;
    int groups = 0;
    if (mgl_op_heads(task->op) && s->epoch->wanted == 0)
        return;
    for (int i = 0; i < task->segments.count; i++) {
        job->to += mgl_segment_bytes(p, &segments[i]);
        groups += (int)groups_of(&segments[i]);
    }
    if (job->to > 0)
        job->byte_us =
            panels_us(s, groups, k, panel_rows(s, task), grouped, mgl_op_heads(task->op)) /
            (double)job->to;
    job->fixed[MGL_COST_TASK] += s->costs->input * s->epoch->rows * scales_of(s, task) * 1e-3;
}

/* Whether the queue has no task of the layer before the merge. Then it already polls for partial
 * results when they arrive. Before such a merge there are clears of the previous layer and
 * attention that does nothing in the epoch, and before these another merge or the start of the
 * queue. */
static bool is_apart(const struct job_maker *s, const mgl_task *merge)
{
    const mgl_task *before = task_before(s, merge);
    return before < s->program->tasks || before->op == MGL_OP_ENTER ||
           (before->op == MGL_OP_MERGE && before != merge - 1);
}

static void make_job(const struct job_maker *s, const mgl_task *task, mgl_cost_job *job)
{
    const mgl_costs *c = s->costs;
    job->step = step_of(s, task);
    job->last = -1;
    if (s->program->limits.unsplit > 0 && task->out.count > 0 && is_left_out(s, task))
        return;
    switch (mgl_op_get(task->op)->family) {
    case MGL_FAMILY_SAMPLE:
        if (task->op == MGL_OP_DRAW) { /* rows that are not drawn */
            job->fixed[MGL_COST_TASK] = c->task;
            break;
        }
        job->fixed[MGL_COST_TOKEN] =
            c->token + c->token_row * (s->epoch->wanted > 1 ? s->epoch->wanted - 1 : 0);
        break;
    case MGL_FAMILY_ENTER:
    case MGL_FAMILY_CLEAR:
    case MGL_FAMILY_COUNT:
        break;
    case MGL_FAMILY_MERGE:
        job->fixed[MGL_COST_ATTEND] = is_apart(s, task) ? c->merge_apart : c->merge;
        job->fixed[MGL_COST_TASK] = c->task;
        break;
    case MGL_FAMILY_ATTENTION:
        make_attention(s, task, job);
        job->fixed[MGL_COST_TASK] = c->task;
        break;
    case MGL_FAMILY_ATTEND_ROWS:
        make_rows(s, task, job);
        job->fixed[MGL_COST_TASK] = c->task;
        break;
    case MGL_FAMILY_GATHER:
    case MGL_FAMILY_PRODUCT:
    case MGL_FAMILY_PANEL:
        job->fixed[MGL_COST_TASK] = c->task;
        break;
    }
    if (task->segments.count > 0 && mgl_variant_is_panels(task->variant))
        make_panels(s, task, job);
    else if (task->segments.count > 0)
        make_product(s, task, job);
}

/* Lays out what a queue reads in the second list contiguously, as on the first list's tape.
 * Panels start at a page. */
static void lay_tape(const struct job_maker *s, int queue, mgl_cost_tape *tape)
{
    const mgl_run *tasks = &s->program->queues[queue].tasks;
    const int64_t page = s->program->exec.page_bytes;
    int64_t at = 0;
    for (int t = tasks->first; t < tasks->first + tasks->count; t++) {
        mgl_cost_job *job = &s->jobs[t];
        if (s->program->tasks[t].segments.count == 0)
            continue;
        if (mgl_variant_is_panels(s->program->tasks[t].variant))
            at = (at + page - 1) / page * page;
        job->to = at + job->to - job->from;
        job->from = at;
        at = job->to;
    }
    tape->bytes = (at + page - 1) / page * page;
}

/* Inserts keys and values that come with the tape into a queue's tape. */
static void make_tape(const struct job_maker *s, int queue, mgl_cost_tape *tape)
{
    const mgl_queue *q = &s->program->queues[queue];
    int64_t at = 0, more = 0;
    tape->bytes = q->tape_bytes;
    if (s->program->is_second)
        lay_tape(s, queue, tape);
    for (int t = q->tasks.first; t < q->tasks.first + q->tasks.count; t++) {
        mgl_cost_job *job = &s->jobs[t];
        if (job->on_tape) {
            job->from = at + more;
            more += job->to;
            job->to += job->from;
        } else if (s->program->tasks[t].segments.count > 0) {
            at = job->to;
            job->from += more;
            job->to += more;
        }
    }
    tape->stream = tape->bytes + more;
}

mgl_status mgl_cost_make_jobs(const mgl_program *list, const mgl_costs *costs,
                              const mgl_cost_epoch *epoch, mgl_cost_job *jobs, mgl_cost_tape *tapes,
                              mgl_error *err)
{
    const size_t buffers = (size_t)list->buffer_count + 1;
    struct job_maker s = {.program = list, .costs = costs, .epoch = epoch, .jobs = jobs};
    s.is_ffn = mgl_alloc_zero(buffers, sizeof *s.is_ffn);
    if (!s.is_ffn)
        return mgl_fail_memory(err, buffers * sizeof *s.is_ffn);
    for (int t = 0; t < list->task_count; t++)
        if (mgl_op_get(list->tasks[t].op)->step == MGL_STEP_GATE_UP)
            s.is_ffn[mgl_task_result(list, &list->tasks[t])->buffer] = true;
    for (int t = 0; t < list->task_count; t++)
        make_job(&s, &list->tasks[t], &jobs[t]);
    for (int q = 0; q < list->queue_count; q++)
        make_tape(&s, q, &tapes[q]);
    mgl_free(s.is_ffn);
    return MGL_OK;
}
