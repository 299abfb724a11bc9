/*
 * Finds the role (layer and step) of each task from the program alone: mgl_roles_find of edit.h,
 * which edit.c and draw.c call. Products are identified by the checkpoint names of their tensors.
 * The layer of attention is the layer of the products that write q, k and v. The layer of a merge
 * is the layer of the attention that writes its partial results. Two tasks are connected if the
 * second reads a flagged buffer that the first writes, or waits for a counter that the first
 * signals. Also has functions for the columns and row groups of a task.
 */
#include "schedule/moves/edit.h"

#include <string.h>

#include "base/memory.h"

struct finding {
    const mgl_program *p;
    mgl_role *roles;
    int *layer_of_buffer;  /* (buffers) layer of the tasks that write it with flags, or -1 */
    int *layer_of_counter; /* (counters) layer of the tasks that signal it, or -1 */
};

bool mgl_role_has_columns(int step)
{
    return step == MGL_EDIT_EMBED ||
           (step >= 0 && step < MGL_STEP_COUNT && step != MGL_STEP_ATTEND);
}

mgl_range mgl_task_columns(const mgl_program *program, const mgl_task *task)
{
    return mgl_task_result(program, task)->ranges[1];
}

int64_t mgl_task_groups(const mgl_program *program, const mgl_task *task)
{
    const mgl_range columns = mgl_task_columns(program, task);
    int64_t groups = 0;
    for (int i = task->segments.first; i < task->segments.first + task->segments.count; i++)
        groups += (mgl_segment_rows(&program->segments[i]) + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
    return task->op == MGL_OP_EMBED ? (columns.hi - columns.lo + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP
                                    : groups;
}

int64_t mgl_task_first(const mgl_program *program, int task, int step)
{
    const mgl_task *t = &program->tasks[task];
    if (mgl_role_has_columns(step))
        return mgl_task_columns(program, t).lo;
    if (step == MGL_EDIT_MERGE)
        return mgl_task_operand(program, t, MGL_OPERAND(merge, part))->ranges[2].lo;
    if (!mgl_op_is_attention(t->op))
        return 0;
    const mgl_attention_operands *o = mgl_op_attention(t->op);
    const int64_t head = mgl_task_operand(program, t, o->k_past)->ranges[1].lo;
    const int64_t split =
        o->part == MGL_NO_OPERAND ? 0 : mgl_task_operand(program, t, o->part)->ranges[0].lo;
    return head * MGL_MAX_SPLITS + split;
}

/* ---- tasks with weights ---------------------------------------------------------------------- */

/* Parses the checkpoint name "model.layers.N.rest" (importer/graph.c): returns N and sets *rest.
 * -1: the tensor belongs to no layer. */
static int layer_of_tensor(const mgl_program *p, int tensor, const char **rest)
{
    enum { MOST = 1 << 16 };
    static const char prefix[] = "model.layers.";
    const char *at = p->tensors[tensor].checkpoint;
    int layer = 0;
    if (strncmp(at, prefix, sizeof prefix - 1) != 0)
        return -1;
    for (at += sizeof prefix - 1; *at >= '0' && *at <= '9' && layer < MOST; at++)
        layer = layer * 10 + (*at - '0');
    *rest = at;
    return *at == '.' && layer < p->geometry.layers ? layer : -1;
}

static int step_of_product(mgl_op op, const char *rest)
{
    const mgl_step step = mgl_op_get(op)->step;
    if (step != MGL_STEP_O)
        return (int)step;
    return !strcmp(rest, ".self_attn.o_proj.weight") ? MGL_STEP_O
           : !strcmp(rest, ".mlp.down_proj.weight")  ? MGL_STEP_DOWN
                                                     : MGL_EDIT_OTHER;
}

/* Whether a task's segments are whole row groups whose rows are the task's columns, and its
 * sliced operands have the same columns. */
static bool has_plain_columns(const mgl_program *p, const mgl_task *task)
{
    enum { MOST_SEGMENTS = 3 };
    const mgl_op_info *info = mgl_op_get(task->op);
    const mgl_range columns = mgl_task_columns(p, task);
    int64_t rows = 0;
    if (columns.kind != MGL_RANGE_FIXED || columns.lo < 0 || columns.lo >= columns.hi ||
        task->segments.count > MOST_SEGMENTS)
        return false;
    for (int i = 0; i < task->segments.count; i++)
        rows += mgl_segment_rows(&p->segments[task->segments.first + i]);
    for (int i = 0; i < task->in.count + task->out.count; i++) {
        const mgl_range *range = &p->regions[task->in.first + i].ranges[1];
        if (info->operands[mgl_task_operand_at(task, i)].ranges[1] == 'S' &&
            (range->kind != MGL_RANGE_FIXED || range->lo != columns.lo || range->hi != columns.hi))
            return false;
    }
    return task->op == MGL_OP_EMBED ? columns.lo % MGL_ROW_GROUP == 0
                                    : task->segments.count > 0 && rows == columns.hi - columns.lo;
}

static mgl_role role_of(const mgl_program *p, const mgl_task *task)
{
    const mgl_role other = {-1, MGL_EDIT_OTHER};
    const char *rest = "";
    int layer;
    switch (mgl_op_get(task->op)->family) {
    case MGL_FAMILY_ENTER:
        return (mgl_role){0, MGL_EDIT_ENTER};
    case MGL_FAMILY_SAMPLE:
        return (mgl_role){p->geometry.layers,
                          task->op == MGL_OP_DRAW ? MGL_EDIT_DRAW : MGL_EDIT_SAMPLE};
    case MGL_FAMILY_GATHER:
        return has_plain_columns(p, task) ? (mgl_role){0, MGL_EDIT_EMBED} : other;
    case MGL_FAMILY_PRODUCT:
        if (!has_plain_columns(p, task))
            return other;
        if (mgl_op_get(task->op)->step == MGL_STEP_HEAD)
            return task->segments.count == 1 ? (mgl_role){p->geometry.layers, MGL_STEP_HEAD}
                                             : other;
        layer = layer_of_tensor(p, p->segments[task->segments.first].tensor, &rest);
        return layer < 0 ? other : (mgl_role){layer, step_of_product(task->op, rest)};
    case MGL_FAMILY_ATTENTION:
        return (mgl_role){-1, MGL_STEP_ATTEND};
    case MGL_FAMILY_MERGE:
        return (mgl_role){-1, MGL_EDIT_MERGE};
    case MGL_FAMILY_CLEAR:
        return (mgl_role){-1, MGL_EDIT_CLEAR};
    case MGL_FAMILY_PANEL: /* of the second list */
    case MGL_FAMILY_ATTEND_ROWS:
    case MGL_FAMILY_COUNT:
        break;
    }
    return other;
}

/* ---- tasks without weights ------------------------------------------------------------------- */

/* Records the layer of a task for its flagged buffers and counters. */
static void teach(struct finding *f, const mgl_task *task, int layer)
{
    const mgl_program *p = f->p;
    for (int i = task->out.first; i < task->out.first + task->out.count; i++)
        if (p->regions[i].flag)
            f->layer_of_buffer[p->regions[i].buffer] = layer;
    for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++)
        f->layer_of_counter[p->signals[i]] = layer;
}

static int learn(const struct finding *f, const mgl_task *task)
{
    const mgl_program *p = f->p;
    if (task->op == MGL_OP_CLEAR)
        return f->layer_of_buffer[p->regions[task->out.first].buffer];
    for (int i = task->in.first; i < task->in.first + task->in.count; i++)
        if (p->regions[i].flag && f->layer_of_buffer[p->regions[i].buffer] >= 0)
            return f->layer_of_buffer[p->regions[i].buffer];
    for (int i = task->waits.first; i < task->waits.first + task->waits.count; i++)
        if (p->waits[i].threshold != 0 && f->layer_of_counter[p->waits[i].counter] >= 0)
            return f->layer_of_counter[p->waits[i].counter];
    return -1;
}

static void find_products(struct finding *f)
{
    const mgl_program *p = f->p;
    for (int t = 0; t < p->task_count; t++) {
        f->roles[t] = role_of(p, &p->tasks[t]);
        if (f->roles[t].layer >= 0 && mgl_role_has_columns(f->roles[t].step))
            teach(f, &p->tasks[t], f->roles[t].layer);
    }
}

/* Finds the layers of tasks of a step without weights. */
static void find_others(struct finding *f, int step)
{
    const mgl_program *p = f->p;
    for (int t = 0; t < p->task_count; t++) {
        mgl_role *role = &f->roles[t];
        if (role->step != step)
            continue;
        role->layer = learn(f, &p->tasks[t]);
        if (role->layer < 0)
            role->step = MGL_EDIT_OTHER;
    }
    for (int t = 0; t < p->task_count; t++)
        if (f->roles[t].step == step)
            teach(f, &p->tasks[t], f->roles[t].layer);
}

mgl_status mgl_roles_find(const mgl_program *program, mgl_role *out, mgl_error *err)
{
    size_t count = (size_t)program->buffer_count + (size_t)program->counter_count;
    int *layers = mgl_alloc_zero(count + 1, sizeof *layers);
    if (!layers)
        return mgl_fail_memory(err, count * sizeof *layers);
    for (size_t i = 0; i < count; i++)
        layers[i] = -1;
    struct finding f = {program, out, layers, layers + program->buffer_count};
    find_products(&f);
    find_others(&f, MGL_STEP_ATTEND);
    find_others(&f, MGL_EDIT_MERGE);
    find_others(&f, MGL_EDIT_CLEAR);
    mgl_free(layers);
    return MGL_OK;
}
