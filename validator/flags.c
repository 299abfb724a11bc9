/*
 * MG304, MG305, MG503, MG604: the words of flagged buffers. Each word has at most one writing task,
 * each word that is read has a writer, and each word that is written has exactly one clear. These
 * conditions need no order; they follow from the text of the program.
 *
 * Why this suffices. A flagged buffer has n >= 2 sets. In epoch e all its flag regions refer to set
 * e mod n, and a clear resets set (e + 1) mod n. So the words of set e mod n are accessed
 *
 *     by the clear of epoch e - 1, in epoch 0 by the host       they become "not written"
 *     in epoch e by their one writer, then by their readers     a reader waits for the words
 *     by the clear of epoch e + n - 1, the next one             not before epoch e + 1, as n >= 2
 *
 * and by no task in between. deadlock.c proves, from counters and queue order alone, that every
 * task of an epoch happens before its sample and every task of the next epoch after it; readers,
 * writers and clears are tasks. So a clear precedes the write and the polls of the epoch that it
 * prepares, and follows the write and the reads of the epoch that it ends. Within an epoch the
 * write precedes each read, because a read waits for it. Two writes, or a write after a read, do
 * not exist. It remains to prove that a reader's writers run at all: deadlock.c does, with the
 * writers that this pass records in mgl_flags.
 *
 * A flag orders its own words, write before read, and nothing else. order.c ignores flags, so every
 * other location needs counters or queue order, even after a flag was read.
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"

struct words {
    mgl_check *check;
    mgl_cover cover;
    int *clearer;            /* (boxes) the task that clears the box, or -1 */
    bool *written, *cleared; /* (boxes) the box is an output of a writer, of a clear */
};

static bool has_flags(const mgl_program *p)
{
    for (int i = 0; i < p->buffer_count; i++)
        if (mgl_buffer_is_flagged(&p->buffers[i]))
            return true;
    return false;
}

/* A box of another task that overlaps the region, or -1. Two overlapping outputs of one task are
 * MG303. */
static int find_other(struct words *w, const int *owner, int task, int region)
{
    int count;
    const int *boxes = mgl_boxes_overlapping(w->check, &w->check->program->regions[region], &count);
    for (int i = 0; i < count; i++)
        if (owner[boxes[i]] >= 0 && owner[boxes[i]] != task)
            return boxes[i];
    return -1;
}

/* Records the task as the owner of the output region; reports another task that owns a word of it.
 */
static void own(struct words *w, int *owner, int task, int region, int code)
{
    mgl_check *check = w->check;
    int other = find_other(w, owner, task, region);
    MGL_ASSERT(check->boxes.of_region[region] >= 0);
    if (other < 0) {
        owner[check->boxes.of_region[region]] = task;
        return;
    }
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    const char *verb = code == 304 ? "writes" : "clears";
    mgl_check_report(check, code, task, 0, "%s %s flag words of %s, which another task %s too",
                     mgl_check_task(check, task, name), verb,
                     mgl_check_region(check, region, place), verb);
    mgl_check_witness(check, "%s %s %s", mgl_check_task(check, owner[other], name), verb,
                      mgl_check_region(check, check->boxes.boxes[other].region, place));
}

/* Finds the writer and the clearing task of each box. */
static void find_owners(struct words *w)
{
    mgl_check *check = w->check;
    const mgl_program *p = check->program;
    for (int t = 0; t < p->task_count && mgl_check_goes_on(check); t++) {
        const mgl_task *task = &p->tasks[t];
        for (int i = task->out.first; i < task->out.first + task->out.count; i++) {
            int box = check->boxes.of_region[i];
            if (task->op == MGL_OP_CLEAR) {
                own(w, w->clearer, t, i, 305);
                w->cleared[box] = true;
            } else if (p->regions[i].flag) {
                own(w, check->flags.writer, t, i, 304);
                w->written[box] = true;
            }
        }
    }
}

static void report_uncovered(struct words *w, int code, int task, int region)
{
    mgl_check *check = w->check;
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_task(check, task, name);
    mgl_check_region(check, region, place);
    if (code == 503)
        mgl_check_report(check, code, task, 0,
                         "%s waits for the flag words of %s, and no task writes all of them", name,
                         place);
    else
        mgl_check_report(check, code, task, 0,
                         "%s writes the flag words of %s, and no clear resets all of them", name,
                         place);
    mgl_cover_witness(&w->cover, code == 503 ? "not written" : "not cleared");
}

/* The number of written boxes that overlap the region. */
static int count_parts(struct words *w, int region)
{
    int count, parts = 0;
    const int *boxes = mgl_boxes_overlapping(w->check, &w->check->program->regions[region], &count);
    for (int i = 0; i < count; i++)
        parts += w->written[boxes[i]];
    return parts;
}

/* A flag input needs writers, a flag output needs clears. Each input box is checked once. */
static void check_region(struct words *w, int task, int region, bool input)
{
    mgl_check *check = w->check;
    int *parts = &check->flags.parts[check->boxes.of_region[region]];
    if (input && *parts)
        return;
    if (!mgl_cover_all(&w->cover, input ? w->written : w->cleared,
                       &check->program->regions[region])) {
        if (mgl_check_goes_on(check))
            report_uncovered(w, input ? 503 : 604, task, region);
    } else if (input) {
        *parts = count_parts(w, region);
    }
}

static void check_words(struct words *w)
{
    mgl_check *check = w->check;
    const mgl_program *p = check->program;
    for (int t = 0; t < p->task_count && mgl_check_goes_on(check); t++) {
        const mgl_task *task = &p->tasks[t];
        for (int i = 0; i < task->in.count + task->out.count; i++)
            if (p->regions[mgl_task_region(task, i)].flag)
                check_region(w, t, mgl_task_region(task, i), i < task->in.count);
    }
}

void mgl_check_flags(mgl_check *check)
{
    if (!has_flags(check->program))
        return;
    size_t count = (size_t)check->boxes.count;
    mgl_flags *flags = &check->flags;
    flags->writer = mgl_check_alloc(check, count, sizeof *flags->writer);
    flags->parts = mgl_check_alloc(check, count, sizeof *flags->parts);
    struct words w = {.check = check,
                      .cover = {.check = check},
                      .clearer = mgl_check_alloc(check, count, sizeof *w.clearer),
                      .written = mgl_check_alloc(check, count, sizeof *w.written),
                      .cleared = mgl_check_alloc(check, count, sizeof *w.cleared)};
    for (size_t i = 0; i < count && !check->no_memory; i++)
        flags->writer[i] = w.clearer[i] = -1;
    if (!check->no_memory)
        find_owners(&w);
    if (mgl_check_clean(check))
        check_words(&w);
    mgl_free(w.clearer);
    mgl_free(w.written);
    mgl_free(w.cleared);
    mgl_free(w.cover.parts);
}
