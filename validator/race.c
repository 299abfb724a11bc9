/*
 * MG3xx: any two accesses to overlapping regions, at least one a write, are ordered. This is a
 * happens-before race detector with vector clocks (order.c).
 *
 * The pass visits the tasks in the order of the simulation, in which every happens-before edge
 * points forward. Each box keeps, for each queue, the last task that read it and the last that
 * wrote it. If that task happens before the current one, so do all earlier tasks of the queue. So
 * every conflicting pair is decided, and the first unordered pair of each operand is reported. The
 * pass covers one epoch; the epoch edge orders accesses of different epochs (deadlock.c). Words of
 * flagged buffers order themselves: flags.c.
 *
 * Rows are not distinguished: [:rows] overlaps [:rows]. In the cache [:pos] never overlaps [pos],
 * and [pos] overlaps [pos] of the same head.
 */
#include "validator/check.h"

#include "base/memory.h"

#include <string.h>

enum { USERS_A_STEP = 8 }; /* users are contiguous in memory: so many take as long as a box */

/* The last task of each queue that used a box, either reading or writing. */
struct users {
    int *tasks;
    size_t count, capacity;
};

struct access {
    struct users readers, writers;
};

/* ---- within a task ---- */

/* The operand at an index of the task's regions. */
static const mgl_operand *operand_at(const mgl_task *task, int place)
{
    return &mgl_op_get(task->op)->operands[mgl_task_operand_at(task, place)];
}

/* Whether the op may write this output over this input if both are the same rectangle. */
static bool in_place(const mgl_operand *in, const mgl_operand *out)
{
    return out->over && !strcmp(out->over, in->name);
}

static void check_self(mgl_check *check, int t)
{
    const mgl_program *p = check->program;
    const mgl_task *task = &p->tasks[t];
    for (int out = task->in.count; out < task->in.count + task->out.count; out++)
        for (int other = 0; other < out; other++) {
            int a = mgl_task_region(task, other), b = mgl_task_region(task, out);
            const mgl_region *x = &p->regions[a], *y = &p->regions[b];
            if (x->buffer != y->buffer || !mgl_region_overlaps(x, y, p->buffers[x->buffer].rank))
                continue;
            if (in_place(operand_at(task, other), operand_at(task, out)) &&
                check->boxes.of_region[a] == check->boxes.of_region[b])
                continue;
            char name[MGL_NAME_TEXT], first[MGL_NAME_TEXT], second[MGL_NAME_TEXT];
            mgl_check_report(check, 303, t, 0, "%s: %s %s overlaps %s %s",
                             mgl_check_task(check, t, name), operand_at(task, out)->name,
                             mgl_check_region(check, b, second), operand_at(task, other)->name,
                             mgl_check_region(check, a, first));
        }
}

/* ---- between tasks ---- */

static void note_user(mgl_check *check, struct users *users, int task)
{
    if (!mgl_check_spend(check, 1 + users->count / USERS_A_STEP))
        return;
    for (size_t i = 0; i < users->count; i++)
        if (check->queue_of[users->tasks[i]] == check->queue_of[task]) {
            users->tasks[i] = task;
            return;
        }
    if (mgl_grow((void **)&users->tasks, &users->capacity, users->count, sizeof *users->tasks))
        users->tasks[users->count++] = task;
    else
        check->no_memory = true;
}

/* A user that does not happen before the task, or -1; also -1 when the steps are used up. */
static int unordered(mgl_check *check, const struct users *users, int task)
{
    if (!mgl_check_spend(check, 1 + users->count / USERS_A_STEP))
        return -1;
    for (size_t i = 0; i < users->count; i++)
        if (!mgl_order_before(check, users->tasks[i], task))
            return users->tasks[i];
    return -1;
}

static void report_race(mgl_check *check, int task, int region, bool writes, int other,
                        int other_region, bool other_writes)
{
    char name[MGL_NAME_TEXT], other_name[MGL_NAME_TEXT];
    char place[MGL_NAME_TEXT], other_place[MGL_NAME_TEXT];
    mgl_check_task(check, task, name);
    mgl_check_task(check, other, other_name);
    mgl_check_region(check, region, place);
    mgl_check_region(check, other_region, other_place);
    const char *verb = writes ? "writes" : "reads";
    const char *other_verb = other_writes ? "writes" : "reads";
    mgl_check_report(check, writes && other_writes ? 301 : 302, task, 0,
                     "%s %s %s and %s %s %s, and neither happens before the other", name, verb,
                     place, other_name, other_verb, other_place);
    mgl_check_witness(check, "%s %s %s", other_name, other_verb, other_place);
    mgl_check_witness(check, "%s %s %s", name, verb, place);
}

static void check_access(mgl_check *check, const struct access *accesses, int task, int region,
                         bool writes)
{
    int count;
    const int *boxes = mgl_boxes_overlapping(check, &check->program->regions[region], &count);
    for (int i = 0; i < count && mgl_check_goes_on(check); i++) {
        const struct access *access = &accesses[boxes[i]];
        int writer = unordered(check, &access->writers, task);
        int reader = writes && writer < 0 ? unordered(check, &access->readers, task) : -1;
        if (writer >= 0 || reader >= 0) {
            report_race(check, task, region, writes, writer >= 0 ? writer : reader,
                        check->boxes.boxes[boxes[i]].region, writer >= 0);
            return;
        }
    }
}

/* Whether accesses to the region must be ordered by happens-before. */
static bool needs_order(const mgl_check *check, int region)
{
    const mgl_program *p = check->program;
    return check->boxes.of_region[region] >= 0 &&
           !mgl_buffer_is_flagged(&p->buffers[p->regions[region].buffer]);
}

static void check_task(mgl_check *check, struct access *accesses, int t)
{
    const mgl_task *task = &check->program->tasks[t];
    const int *of_region = check->boxes.of_region;
    int count = task->in.count + task->out.count;
    for (int i = 0; i < count; i++)
        if (needs_order(check, mgl_task_region(task, i)))
            check_access(check, accesses, t, mgl_task_region(task, i), i >= task->in.count);
    for (int i = 0; i < count; i++) {
        int box = of_region[mgl_task_region(task, i)];
        if (needs_order(check, mgl_task_region(task, i)))
            note_user(check, i < task->in.count ? &accesses[box].readers : &accesses[box].writers,
                      t);
    }
}

void mgl_check_race(mgl_check *check)
{
    const mgl_program *p = check->program;
    size_t count = (size_t)check->boxes.count;
    struct access *accesses = mgl_check_alloc(check, count, sizeof *accesses);
    for (int i = 0; i < p->task_count && mgl_check_goes_on(check); i++) {
        check_self(check, check->order[i]);
        check_task(check, accesses, check->order[i]);
    }
    for (size_t i = 0; i < count && accesses; i++) {
        mgl_free(accesses[i].readers.tasks);
        mgl_free(accesses[i].writers.tasks);
    }
    mgl_free(accesses);
}
