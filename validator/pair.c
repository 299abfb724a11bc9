/*
 * Two programs of one model that use the same memory: the tapes, const buffers and caches of
 * `owner`. The other passes prove each program alone: its launches read weights from its tapes and
 * constants, and keys and values that its own earlier launches appended. This file proves that the
 * programs agree on this memory, so launches of either program may follow each other:
 *
 *     MG140  the settings that the memory depends on, and the declarations of const and kv buffers
 *     MG606  the contents of the tapes
 *     MG712  the contents of each head of a cache
 *
 * Buffers are matched by name. Second lists declare none of this memory, and lists.c proves that
 * they use it as the first lists do.
 */
#include "validator/check.h"

#include <inttypes.h>
#include <string.h>

/* ---- settings and declarations -------------------------------------------------------------- */

static void check_settings(mgl_check *check, const mgl_program *owner)
{
    const mgl_program *p = check->program;
    const mgl_limits *a = &owner->limits, *b = &p->limits;
    const char *differ = strcmp(owner->target.arch, p->target.arch) != 0       ? "architecture"
                         : !mgl_geometry_equal(&owner->geometry, &p->geometry) ? "geometry"
                         : a->sequences != b->sequences ? "number of sequences"
                         : a->capacity != b->capacity   ? "capacity"
                                                        : NULL;
    if (differ)
        mgl_check_report(check, 140, -1, 0, "its %s differs from the owner's", differ);
}

static int find_buffer(const mgl_program *program, const char *name)
{
    for (int i = 0; i < program->buffer_count; i++)
        if (!strcmp(program->buffers[i].name, name))
            return i;
    return -1;
}

static bool same_tensor(const mgl_program *a, int i, const mgl_program *b, int j)
{
    if (i < 0 || j < 0)
        return i < 0 && j < 0;
    return mgl_program_same_tensor(&a->tensors[i], &b->tensors[j]);
}

/* Whether the buffers are equal. Their tensors may have different indices. */
static bool same_buffer(const mgl_program *owner, const mgl_buffer *a, const mgl_program *p,
                        const mgl_buffer *b)
{
    mgl_buffer moved = *b;
    moved.tensor = a->tensor;
    return mgl_program_same_buffer(a, &moved) && same_tensor(owner, a->tensor, p, b->tensor);
}

static void check_buffers(mgl_check *check, const mgl_program *owner)
{
    const mgl_program *p = check->program;
    for (int i = 0; i < p->buffer_count; i++) {
        const mgl_buffer *b = &p->buffers[i];
        const int of_owner = mgl_validator_is_shared(b) ? find_buffer(owner, b->name) : -1;
        if (!mgl_validator_is_shared(b) ||
            (of_owner >= 0 && same_buffer(owner, &owner->buffers[of_owner], p, b)) ||
            !mgl_check_goes_on(check))
            continue;
        mgl_check_report(check, 140, -1, b->line, "the owner has no such %s buffer %.64s%s",
                         mgl_space_name(b->space), b->name,
                         of_owner < 0 ? "" : ", but another one of that name");
    }
}

/* ---- tapes ---------------------------------------------------------------------------------- */

/* The segments of a queue, in the order of its tape. */
typedef struct walk {
    const mgl_program *program;
    int task, end; /* the current task, and the task after the last one */
    int segment;   /* the next segment of the current task */
} walk;

static walk walk_of(const mgl_program *program, int queue)
{
    const mgl_run tasks = program->queues[queue].tasks;
    return (walk){program, tasks.first, tasks.first + tasks.count, 0};
}

/* The next segment, or NULL. */
static const mgl_segment *next_of(walk *w)
{
    for (; w->task < w->end; w->task++, w->segment = 0) {
        const mgl_run segments = w->program->tasks[w->task].segments;
        if (w->segment < segments.count)
            return &w->program->segments[segments.first + w->segment++];
    }
    return NULL;
}

static bool same_segment(const mgl_program *owner, const mgl_segment *a, const mgl_program *p,
                         const mgl_segment *b)
{
    return same_tensor(owner, a->tensor, p, b->tensor) &&
           same_tensor(owner, a->tensor2, p, b->tensor2) && a->layout == b->layout &&
           a->row_lo == b->row_lo && a->row_hi == b->row_hi && a->col_lo == b->col_lo &&
           a->col_hi == b->col_hi && a->offset == b->offset;
}

/* Reports the first difference of a queue's tapes. */
static void check_tape(mgl_check *check, const mgl_program *owner, int queue)
{
    const mgl_program *p = check->program;
    walk a = walk_of(owner, queue), b = walk_of(p, queue);
    const mgl_segment *wanted = next_of(&a), *s = next_of(&b);
    while (wanted && s && same_segment(owner, wanted, p, s)) {
        wanted = next_of(&a);
        s = next_of(&b);
    }
    if (s)
        mgl_check_report(check, 606, b.task, 0,
                         "rows %" PRId64 ":%" PRId64 " of %.64s at byte %" PRId64
                         " of the tape of queue %d: the owner's tape differs from there on",
                         s->row_lo, s->row_hi, p->tensors[s->tensor].name, s->offset, queue);
    else if (wanted)
        mgl_check_report(check, 606, -1, p->queues[queue].line,
                         "the owner's tape of queue %d goes on with %.64s", queue,
                         owner->tensors[wanted->tensor].name);
    else if (owner->queues[queue].tape_bytes != p->queues[queue].tape_bytes)
        mgl_check_report(check, 606, -1, p->queues[queue].line,
                         "the tape of queue %d has %" PRId64 " bytes, the owner's %" PRId64, queue,
                         p->queues[queue].tape_bytes, owner->queues[queue].tape_bytes);
}

static void check_tapes(mgl_check *check, const mgl_program *owner)
{
    const mgl_program *p = check->program;
    if (owner->queue_count != p->queue_count)
        mgl_check_report(check, 606, -1, 0, "it has %d queues with tapes, the owner %d",
                         p->queue_count, owner->queue_count);
    else if (owner->exec.warps != p->exec.warps)
        mgl_check_report(check, 606, -1, 0,
                         "its k blocks have the order for %d warps, the owner's for %d",
                         p->exec.warps, owner->exec.warps);
    for (int q = 0; q < p->queue_count && mgl_check_clean(check) && mgl_check_goes_on(check); q++)
        check_tape(check, owner, q);
}

/* ---- caches --------------------------------------------------------------------------------- */

/* The contents of the heads of cache `buffer`, or NULL without a graph. */
static const mgl_cached *cached_of(const mgl_check *check, int buffer)
{
    const mgl_cached *at = check->cached;
    for (int i = 0; i < buffer && at; i++)
        if (check->program->buffers[i].space == MGL_SPACE_KV)
            at += check->program->geometry.kv_heads;
    return at;
}

static void check_caches(mgl_check *check, const mgl_check *owner)
{
    const mgl_program *p = check->program;
    for (int i = 0; i < p->buffer_count; i++) {
        const int of_owner = find_buffer(owner->program, p->buffers[i].name);
        const mgl_cached *a = cached_of(owner, of_owner), *b = cached_of(check, i);
        for (int h = 0; p->buffers[i].space == MGL_SPACE_KV && a && b && h < p->geometry.kv_heads;
             h++)
            if ((a[h].node != b[h].node || a[h].lo != b[h].lo) && mgl_check_goes_on(check))
                mgl_check_report(check, 712, -1, p->buffers[i].line,
                                 "the programs append different values to head %d of %.64s", h,
                                 p->buffers[i].name);
    }
}

void mgl_check_pair(mgl_check *check, const mgl_check *owner)
{
    check_settings(check, owner->program);
    if (mgl_check_clean(check))
        check_buffers(check, owner->program);
    if (mgl_check_clean(check))
        check_tapes(check, owner->program);
    if (mgl_check_clean(check))
        check_caches(check, owner);
}
