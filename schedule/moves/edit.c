/* Implements edit.h: opening a program as lists of tasks, edits of the lists, and building the
 * result. */
#include "schedule/moves/edit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/format.h"
#include "base/memory.h"

/* ---- errors --------------------------------------------------------------------------------- */

mgl_status mgl_edit_refuse(mgl_edit *e, const char *format, ...)
{
    char why[400];
    va_list args;
    va_start(args, format);
    mgl_format_list(why, sizeof why, format, args);
    va_end(args);
    return mgl_fail(e->err, MGL_BAD_INPUT, e->move, "%s", why);
}

mgl_status mgl_edit_no_memory(mgl_edit *e)
{
    return mgl_fail_memory(e->err, 0);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static bool list_insert(mgl_edit_list *list, size_t place, int item)
{
    if (!mgl_grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return false;
    memmove(list->items + place + 1, list->items + place,
            (list->count - place) * sizeof *list->items);
    list->items[place] = item;
    list->count++;
    return true;
}

size_t mgl_edit_index(const mgl_edit_list *list, int item)
{
    size_t i = 0;
    while (i < list->count && list->items[i] != item)
        i++;
    return i;
}

mgl_status mgl_edit_insert(mgl_edit *e, int queue, size_t place, int task)
{
    MGL_ASSERT(queue >= 0 && queue < e->p->queue_count && place <= e->queues[queue].count);
    if (task < 0 || !list_insert(&e->queues[queue], place, task))
        return mgl_edit_no_memory(e);
    return MGL_OK;
}

void mgl_edit_remove(mgl_edit *e, int queue, size_t place)
{
    mgl_edit_list *list = &e->queues[queue];
    MGL_ASSERT(place < list->count);
    memmove(list->items + place, list->items + place + 1,
            (list->count - place - 1) * sizeof *list->items);
    list->count--;
}

/* ---- places --------------------------------------------------------------------------------- */

/* Position of a step within its layer in lowering's order. */
static int rank_of(int step)
{
    static const int ranks[] = {
        [MGL_EDIT_ENTER] = 0,  [MGL_EDIT_EMBED] = 1, [MGL_STEP_QKV] = 2,   [MGL_EDIT_CLEAR] = 3,
        [MGL_STEP_ATTEND] = 4, [MGL_EDIT_MERGE] = 5, [MGL_STEP_O] = 6,     [MGL_STEP_GATE_UP] = 7,
        [MGL_STEP_DOWN] = 8,   [MGL_STEP_HEAD] = 9,  [MGL_EDIT_DRAW] = 10, [MGL_EDIT_SAMPLE] = 11};
    _Static_assert(sizeof ranks / sizeof *ranks == MGL_EDIT_OTHER, "every step has a place");
    return ranks[step];
}

/* The layer in whose steps a task is placed: clears come after qkv of the next layer. */
static int place_layer(mgl_role role)
{
    return role.layer + (role.step == MGL_EDIT_CLEAR);
}

/* Whether a task comes before a task of `role` whose first column is `first`. */
static bool is_before(const mgl_edit *e, int task, mgl_role role, int64_t first)
{
    const mgl_role *r = &e->roles[task];
    if (r->step == MGL_EDIT_OTHER)
        return false;
    if (place_layer(*r) != place_layer(role))
        return place_layer(*r) < place_layer(role);
    if (r->step != role.step)
        return rank_of(r->step) < rank_of(role.step);
    return mgl_task_first(e->p, task, role.step) < first;
}

size_t mgl_edit_place(const mgl_edit *e, int queue, mgl_role role, int64_t first)
{
    const mgl_edit_list *list = &e->queues[queue];
    size_t place = list->count;
    while (place > 0 && !is_before(e, list->items[place - 1], role, first))
        place--;
    return place;
}

mgl_status mgl_edit_put(mgl_edit *e, int queue, int task)
{
    if (task < 0)
        return mgl_edit_no_memory(e);
    const mgl_role role = e->roles[task];
    return mgl_edit_insert(
        e, queue, mgl_edit_place(e, queue, role, mgl_task_first(e->p, task, role.step)), task);
}

size_t mgl_edit_find(const mgl_edit *e, int queue, int layer, int step, size_t *places, size_t most)
{
    const mgl_edit_list *list = &e->queues[queue];
    size_t count = 0;
    for (size_t i = 0; i < list->count && count < most; i++) {
        const mgl_role *role = &e->roles[list->items[i]];
        if (role->layer == layer && role->step == step)
            places[count++] = i;
    }
    return count;
}

mgl_status mgl_edit_layers(mgl_edit *e, const mgl_move *move, int *first, int *end)
{
    const int layers = e->p->geometry.layers;
    const bool all = move->layer == MGL_MOVE_ALL, head = move->step == MGL_STEP_HEAD;
    *first = head ? layers : all ? 0 : move->layer;
    *end = head ? layers + 1 : all ? layers : move->layer + 1;
    if (head && !all)
        return mgl_edit_refuse(e, "the head is of no layer: write layer=all");
    if (*end > layers + head)
        return mgl_edit_refuse(e, "the model has layers 0 to %d", layers - 1);
    return MGL_OK;
}

mgl_status mgl_edit_check_queue(mgl_edit *e, int queue)
{
    const int count = e->p->queue_count;
    if (queue < 0 || queue >= count)
        return mgl_edit_refuse(e, "the program has queues 0 to %d", count - 1);
    return MGL_OK;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

int mgl_edit_new(mgl_edit *e, mgl_op op, mgl_role role)
{
    int task = mgl_program_add_task(e->p, op);
    if (task < 0 ||
        !mgl_grow((void **)&e->roles, &e->role_capacity, e->role_count, sizeof *e->roles))
        return -1;
    e->roles[e->role_count++] = role;
    return task;
}

/* Sets the variant of the newest task and appends the regions and segments of a task of `from`,
 * which may be the same program. */
static void copy_pieces(mgl_program *to, const mgl_program *from, const mgl_task *task)
{
    mgl_program_set_variant(to, task->variant);
    for (int i = 0; i < task->in.count + task->out.count; i++) {
        const mgl_region region = from->regions[task->in.first + i];
        if (i < task->in.count)
            mgl_program_add_in(to, &region);
        else
            mgl_program_add_out(to, &region);
    }
    for (int i = 0; i < task->segments.count; i++) {
        const mgl_segment segment = from->segments[task->segments.first + i];
        mgl_program_add_segment(to, &segment);
    }
}

/* The same with the task's edges. */
static void copy_parts(mgl_program *to, const mgl_program *from, int index)
{
    const mgl_task task = from->tasks[index];
    copy_pieces(to, from, &task);
    for (int i = 0; i < task.waits.count; i++) {
        const mgl_wait wait = from->waits[task.waits.first + i];
        mgl_program_add_wait(to, wait.counter, wait.threshold);
    }
    for (int i = 0; i < task.signals.count; i++)
        mgl_program_add_signal(to, from->signals[task.signals.first + i]);
}

int mgl_edit_copy(mgl_edit *e, int task)
{
    int copy = mgl_edit_new(e, e->p->tasks[task].op, e->roles[task]);
    if (copy >= 0)
        copy_parts(e->p, e->p, task);
    return mgl_program_failed(e->p) ? -1 : copy;
}

bool mgl_edit_get_edges(const mgl_edit *e, int task, mgl_edges *out)
{
    const mgl_task *t = &e->p->tasks[task];
    out->wait_count = t->waits.count; /* the struct is large: unused entries stay uninitialized */
    out->signal_count = t->signals.count;
    if (t->waits.count >= MGL_EDIT_EDGES || t->signals.count >= MGL_EDIT_EDGES)
        return false;
    for (int i = 0; i < out->wait_count; i++)
        out->waits[i] = e->p->waits[t->waits.first + i];
    for (int i = 0; i < out->signal_count; i++)
        out->signals[i] = e->p->signals[t->signals.first + i];
    return true;
}

mgl_status mgl_edit_set_edges(mgl_edit *e, int queue, size_t place, const mgl_edges *edges)
{
    const mgl_task old = e->p->tasks[mgl_edit_at(e, queue, place)];
    int task = mgl_edit_new(e, old.op, e->roles[mgl_edit_at(e, queue, place)]);
    if (task < 0)
        return mgl_edit_no_memory(e);
    copy_pieces(e->p, e->p, &old);
    for (int i = 0; i < edges->wait_count; i++)
        mgl_program_add_wait(e->p, edges->waits[i].counter, edges->waits[i].threshold);
    for (int i = 0; i < edges->signal_count; i++)
        mgl_program_add_signal(e->p, edges->signals[i]);
    if (mgl_program_failed(e->p))
        return mgl_edit_no_memory(e);
    e->queues[queue].items[place] = task;
    return MGL_OK;
}

mgl_status mgl_edit_collect(mgl_edit *e, int layer, int step, mgl_edit_tasks *out)
{
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const int task = mgl_edit_at(e, q, i);
            if (e->roles[task].layer != layer || e->roles[task].step != step)
                continue;
            if (!mgl_grow((void **)&out->items, &out->capacity, out->count, sizeof *out->items))
                return mgl_edit_no_memory(e);
            const int64_t first = mgl_task_first(e->p, task, step);
            size_t at = out->count++;
            for (; at > 0 && mgl_task_first(e->p, out->items[at - 1].task, step) > first; at--)
                out->items[at] = out->items[at - 1];
            out->items[at] = (mgl_edit_task){task, q};
        }
    return MGL_OK;
}

/* ---- declarations --------------------------------------------------------------------------- */

static bool is_taken(const mgl_program *p, bool counters, const char *name)
{
    for (int i = 0; i < (counters ? p->counter_count : p->buffer_count); i++)
        if (!strcmp(counters ? p->counters[i].name : p->buffers[i].name, name))
            return true;
    return false;
}

/* Appends .2, .3 ... to `name` if it is taken. */
static void find_name(const mgl_program *p, bool counters, char *name, size_t size)
{
    size_t length = strlen(name);
    for (int n = 2; is_taken(p, counters, name); n++)
        mgl_format_into(name + length, size - length, ".%d", n);
}

int mgl_edit_add_counter(mgl_edit *e, size_t place, const char *format, ...)
{
    char name[120];
    va_list args;
    va_start(args, format);
    mgl_format_list(name, sizeof name - 20, format, args);
    va_end(args);
    find_name(e->p, true, name, sizeof name);
    int counter = mgl_program_add_counter(e->p, name);
    return counter >= 0 && list_insert(&e->counters, place, counter) ? counter : -1;
}

int mgl_edit_add_buffer(mgl_edit *e, size_t place, const mgl_buffer *like, const char *format, ...)
{
    char name[120];
    mgl_buffer buffer = *like;
    va_list args;
    va_start(args, format);
    mgl_format_list(name, sizeof name - 20, format, args);
    va_end(args);
    find_name(e->p, false, name, sizeof name);
    buffer.name = name;
    int index = mgl_program_add_buffer(e->p, &buffer);
    return index >= 0 && list_insert(&e->buffers, place, index) ? index : -1;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Copies everything except buffers, counters and queues. */
static void copy_settings(mgl_program *to, const mgl_program *from)
{
    to->target = from->target;
    to->geometry = from->geometry;
    to->limits = from->limits;
    to->exec = from->exec;
    to->weight_dtype = from->weight_dtype;
    to->embedding_dtype = from->embedding_dtype;
    to->exchange_dtype = from->exchange_dtype;
    to->kv_dtype = from->kv_dtype;
    memcpy(to->tuned, from->tuned, sizeof to->tuned);
    memcpy(to->tuned_digest, from->tuned_digest, sizeof to->tuned_digest);
    for (int i = 0; i < from->tensor_count; i++) {
        const mgl_program_tensor *t = &from->tensors[i];
        mgl_program_add_tensor(to, t->name, t->checkpoint, t->format, t->rank, t->rows, t->cols);
    }
}

/* Tapes are rebuilt, so segments must be inside their tensors and of sane size. */
static bool has_sound_segments(const mgl_program *p)
{
    const int64_t longest = INT64_C(1) << 28, largest = INT64_C(1) << 33;
    for (int i = 0; i < p->segment_count; i++) {
        const mgl_segment *s = &p->segments[i];
        const mgl_program_tensor *t = &p->tensors[s->tensor];
        if (s->row_lo < 0 || s->row_lo >= s->row_hi || s->row_hi > t->rows || s->col_lo < 0 ||
            s->col_lo >= s->col_hi || s->col_hi > t->cols || s->row_lo % MGL_ROW_GROUP ||
            (s->row_hi % MGL_ROW_GROUP && s->row_hi != t->rows) || t->rows > longest ||
            t->cols > longest || t->rows * t->cols > largest)
            return false;
    }
    return true;
}

/* Replaces thresholds equal to all signals of an epoch by MGL_EDIT_ALL. */
static bool note_joins(mgl_program *p)
{
    int64_t *signals = mgl_alloc_zero((size_t)p->counter_count + 1, sizeof *signals);
    for (int i = 0; i < p->signal_count && signals; i++)
        signals[p->signals[i]]++;
    for (int i = 0; i < p->wait_count && signals; i++)
        if (p->waits[i].threshold > 0 && p->waits[i].threshold == signals[p->waits[i].counter])
            p->waits[i].threshold = MGL_EDIT_ALL;
    bool noted = signals != NULL;
    mgl_free(signals);
    return noted;
}

/* Marks the counters, then buffers, that listed tasks use. A wait for all signals does not count
 * as use: it disappears together with the last signal. */
static void mark_used(const mgl_edit *e, bool *used)
{
    const mgl_program *p = e->p;
    for (int q = 0; q < p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const mgl_task *t = &p->tasks[e->queues[q].items[i]];
            for (int j = t->waits.first; j < t->waits.first + t->waits.count; j++)
                used[p->waits[j].counter] |= p->waits[j].threshold != MGL_EDIT_ALL;
            for (int j = 0; j < t->signals.count; j++)
                used[p->signals[t->signals.first + j]] = true;
            for (int j = 0; j < t->in.count + t->out.count; j++)
                used[p->counter_count + p->regions[t->in.first + j].buffer] = true;
        }
}

static bool copy_queues(mgl_edit *e, const mgl_program *from)
{
    for (int q = 0; q < from->queue_count; q++) {
        const mgl_run run = from->queues[q].tasks;
        mgl_program_add_queue(e->p);
        for (int t = run.first; t < run.first + run.count; t++) {
            mgl_program_add_task(e->p, from->tasks[t].op);
            copy_parts(e->p, from, t);
            if (mgl_program_failed(e->p) || !list_insert(&e->queues[q], e->queues[q].count, t))
                return false;
        }
    }
    return true;
}

static bool copy_declared(mgl_edit *e, const mgl_program *from)
{
    bool copied = true;
    for (int i = 0; i < from->buffer_count && copied; i++)
        copied = mgl_program_add_buffer(e->p, &from->buffers[i]) == i &&
                 list_insert(&e->buffers, (size_t)i, i);
    for (int i = 0; i < from->counter_count && copied; i++)
        copied = mgl_program_add_counter(e->p, from->counters[i].name) == i &&
                 list_insert(&e->counters, (size_t)i, i);
    return copied;
}

mgl_status mgl_edit_open(mgl_edit *e, const mgl_program *program, mgl_error *err)
{
    *e = (mgl_edit){.err = err, .move = "moves"};
    if (program->queue_count == 0 || !has_sound_segments(program))
        return mgl_edit_refuse(e, "the program has no queues, or segments outside their tensors");
    if (program->second)
        return mgl_edit_refuse(e, "the program has a second list, and moves edit programs of one");
    const size_t tasks = (size_t)program->task_count;
    const size_t declared = (size_t)program->counter_count + (size_t)program->buffer_count;
    mgl_status status = mgl_program_new(&e->p, err);
    if (status)
        return status;
    copy_settings(e->p, program);
    e->queues = mgl_alloc_zero((size_t)program->queue_count, sizeof *e->queues);
    e->roles = mgl_alloc_zero(tasks + 1, sizeof *e->roles);
    e->was_used = mgl_alloc_zero(declared + 1, sizeof *e->was_used);
    e->role_count = tasks;
    e->role_capacity = tasks + 1;
    e->old_counters = program->counter_count;
    e->old_buffers = program->buffer_count;
    if (!e->queues || !e->roles || !e->was_used || !copy_declared(e, program) ||
        !copy_queues(e, program) || mgl_program_failed(e->p) || !note_joins(e->p))
        return mgl_edit_no_memory(e);
    mark_used(e, e->was_used);
    return mgl_roles_find(e->p, e->roles, err);
}

void mgl_edit_close(mgl_edit *e)
{
    for (int q = 0; e->p && e->queues && q < e->p->queue_count; q++)
        mgl_free(e->queues[q].items);
    mgl_program_free(e->p);
    mgl_free(e->queues);
    mgl_free(e->roles);
    mgl_free(e->was_used);
    mgl_free(e->buffers.items);
    mgl_free(e->counters.items);
    *e = (mgl_edit){0};
}

/* ---- building ------------------------------------------------------------------------------- */

/* A program under construction from the lists. */
struct building {
    const mgl_edit *e;
    mgl_program *to;
    bool *used;       /* (counters, buffers) */
    int *indices;     /* (counters, buffers) in the new program */
    int64_t *signals; /* (counters) signals of an epoch */
    int64_t tape;     /* bytes so far on the newest queue's tape */
};

/* Drops a declaration that was used before the moves and is unused now. Others stay. */
static bool stays(const struct building *b, bool counter, int item)
{
    const mgl_edit *e = b->e;
    const int now = counter ? item : e->p->counter_count + item;
    const int old = counter ? item : e->old_counters + item;
    const bool is_old = item < (counter ? e->old_counters : e->old_buffers);
    return b->used[now] || (is_old && !e->was_used[old]);
}

static void declare(struct building *b)
{
    const mgl_program *p = b->e->p;
    for (size_t i = 0; i < b->e->buffers.count; i++) {
        const int item = b->e->buffers.items[i];
        if (stays(b, false, item))
            b->indices[p->counter_count + item] = mgl_program_add_buffer(b->to, &p->buffers[item]);
    }
    for (size_t i = 0; i < b->e->counters.count; i++) {
        const int item = b->e->counters.items[i];
        if (stays(b, true, item))
            b->indices[item] = mgl_program_add_counter(b->to, p->counters[item].name);
    }
}

static void build_edges(struct building *b, const mgl_task *task)
{
    const mgl_program *p = b->e->p;
    for (int i = task->waits.first; i < task->waits.first + task->waits.count; i++) {
        const mgl_wait *wait = &p->waits[i];
        const bool all = wait->threshold == MGL_EDIT_ALL;
        if (!all || b->signals[wait->counter] > 0)
            mgl_program_add_wait(b->to, b->indices[wait->counter],
                                 all ? b->signals[wait->counter] : wait->threshold);
    }
    for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++)
        mgl_program_add_signal(b->to, b->indices[p->signals[i]]);
}

static void build_task(struct building *b, const mgl_task *task)
{
    const mgl_program *p = b->e->p;
    mgl_program_add_task(b->to, task->op);
    mgl_program_set_variant(b->to, task->variant);
    for (int i = 0; i < task->in.count + task->out.count; i++) {
        mgl_region region = p->regions[task->in.first + i];
        region.buffer = b->indices[p->counter_count + region.buffer];
        if (i < task->in.count)
            mgl_program_add_in(b->to, &region);
        else
            mgl_program_add_out(b->to, &region);
    }
    for (int i = task->segments.first; i < task->segments.first + task->segments.count; i++) {
        mgl_segment segment = p->segments[i];
        segment.offset = b->tape;
        b->tape += mgl_segment_bytes(p, &segment);
        mgl_program_add_segment(b->to, &segment);
    }
    build_edges(b, task);
}

static void build_queues(struct building *b)
{
    const mgl_edit *e = b->e;
    const int64_t page = e->p->exec.page_bytes > 0 ? e->p->exec.page_bytes : 1;
    for (int q = 0; q < e->p->queue_count && !mgl_program_failed(b->to); q++) {
        int index = mgl_program_add_queue(b->to);
        b->tape = 0;
        for (size_t i = 0; i < e->queues[q].count && !mgl_program_failed(b->to); i++)
            build_task(b, &e->p->tasks[e->queues[q].items[i]]);
        if (index < 0 || mgl_program_failed(b->to))
            return;
        const int64_t bytes = (b->tape + page - 1) / page * page;
        b->to->queues[index].tape_bytes = bytes;
        b->to->queues[index].tape_pad = bytes - b->tape;
    }
}

static void count_signals(struct building *b)
{
    const mgl_edit *e = b->e;
    for (int q = 0; q < e->p->queue_count; q++)
        for (size_t i = 0; i < e->queues[q].count; i++) {
            const mgl_run *run = &e->p->tasks[e->queues[q].items[i]].signals;
            for (int j = run->first; j < run->first + run->count; j++)
                b->signals[e->p->signals[j]]++;
        }
}

mgl_status mgl_edit_build(mgl_edit *e, mgl_program **out)
{
    const size_t declared = (size_t)e->p->counter_count + (size_t)e->p->buffer_count;
    struct building b = {.e = e};
    *out = NULL;
    mgl_status status = mgl_program_new(&b.to, e->err);
    if (status)
        return status;
    b.used = mgl_alloc_zero(declared + 1, sizeof *b.used);
    b.indices = mgl_alloc_zero(declared + 1, sizeof *b.indices);
    b.signals = mgl_alloc_zero((size_t)e->p->counter_count + 1, sizeof *b.signals);
    if (b.used && b.indices && b.signals) {
        mark_used(e, b.used);
        count_signals(&b);
        copy_settings(b.to, e->p);
        declare(&b);
        build_queues(&b);
    }
    bool built = b.used && b.indices && b.signals && !mgl_program_failed(b.to);
    mgl_free(b.used);
    mgl_free(b.indices);
    mgl_free(b.signals);
    if (built)
        *out = b.to;
    else
        mgl_program_free(b.to);
    return built ? MGL_OK : mgl_edit_no_memory(e);
}
