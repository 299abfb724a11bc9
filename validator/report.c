/*
 * Collection of faults: diagnostics with their witnesses, the step limit, and the names of tasks
 * and regions in messages. If memory runs out during a report, the whole check fails; it never
 * passes.
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char *format_text(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : mgl_alloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void mgl_check_report(mgl_check *check, int code, int task, int line, const char *format, ...)
{
    mgl_verdict *verdict = check->verdict;
    MGL_ASSERT(task < check->program->task_count);
    check->found++;
    check->newest = NULL;
    if (verdict->count >= MGL_MAX_DIAGNOSTICS)
        return;
    if (!verdict->diagnostics)
        verdict->diagnostics = mgl_alloc_zero(MGL_MAX_DIAGNOSTICS, sizeof *verdict->diagnostics);
    va_list args;
    va_start(args, format);
    char *message = verdict->diagnostics ? format_text(format, args) : NULL;
    va_end(args);
    if (!message) {
        check->no_memory = true;
        return;
    }
    check->newest = &verdict->diagnostics[verdict->count++];
    *check->newest = (mgl_diagnostic){
        .code = code,
        .line = line == 0 && task >= 0 ? check->program->tasks[task].line : line,
        .task = task,
        .message = message,
    };
}

void mgl_check_witness(mgl_check *check, const char *format, ...)
{
    mgl_diagnostic *newest = check->newest;
    if (!newest)
        return;
    va_list args;
    va_start(args, format);
    char *text = format_text(format, args);
    va_end(args);
    size_t count = (size_t)newest->witness_count;
    char **grown = text ? mgl_realloc(newest->witness, (count + 1) * sizeof *grown) : NULL;
    if (!grown) {
        mgl_free(text);
        check->no_memory = true;
        return;
    }
    newest->witness = grown;
    newest->witness[newest->witness_count++] = text;
}

void *mgl_check_alloc(mgl_check *check, size_t count, size_t size)
{
    void *memory = mgl_alloc_zero(count, size);
    if (!memory)
        check->no_memory = true;
    return memory;
}

bool mgl_check_clean(const mgl_check *check)
{
    return check->found == 0 && !check->no_memory;
}

bool mgl_check_goes_on(const mgl_check *check)
{
    return check->found < MGL_MAX_DIAGNOSTICS && !check->no_memory && check->steps <= MGL_MAX_STEPS;
}

void mgl_check_exhaust(mgl_check *check, const char *format, ...)
{
    char reason[256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (check->steps <= MGL_MAX_STEPS)
        mgl_check_report(check, 121, -1, 0, "%s; use coarser tasks", reason);
    check->steps = MGL_MAX_STEPS + 1;
}

bool mgl_check_spend(mgl_check *check, size_t steps)
{
    int64_t left = MGL_MAX_STEPS - check->steps;
    if (left >= 0 && steps <= (size_t)left) {
        check->steps += (int64_t)steps;
        return true;
    }
    mgl_check_exhaust(check,
                      "the proof would take more than %lld steps: too many tasks use pieces of one "
                      "buffer, or wait for one another",
                      (long long)MGL_MAX_STEPS);
    return false;
}

const char *mgl_check_task(const mgl_check *check, int task, char to[MGL_NAME_TEXT])
{
    const mgl_task *t = &check->program->tasks[task];
    const char *op = mgl_op_get(t->op)->name;
    int queue = check->queue_of[task];
    if (t->line)
        snprintf(to, MGL_NAME_TEXT, "%s at line %d (queue %d)", op, t->line, queue);
    else
        snprintf(to, MGL_NAME_TEXT, "%s, task %d of queue %d%s", op, check->position[task], queue,
                 check->first ? " of the second list" : "");
    return to;
}

const char *mgl_check_region(const mgl_check *check, int region, char to[MGL_NAME_TEXT])
{
    const mgl_region *r = &check->program->regions[region];
    const mgl_buffer *buffer = &check->program->buffers[r->buffer];
    int n = snprintf(to, MGL_NAME_TEXT, "%.48s[", buffer->name);
    for (int d = 0; d < buffer->rank && n > 0 && n < MGL_NAME_TEXT; d++) {
        const mgl_range *range = &r->ranges[d];
        char *at = to + n;
        size_t room = (size_t)(MGL_NAME_TEXT - n);
        const char *comma = d ? "," : "";
        if (mgl_range_has_row_kind(range)) {
            n += snprintf(at, room, "%s%s %s", comma,
                          range->kind == MGL_RANGE_NOW ? "pos" : ":rows", mgl_row_kind_name(range));
            continue;
        }
        switch (range->kind) {
        case MGL_RANGE_FIXED:
            n += snprintf(at, room, "%s%" PRId64 ":%" PRId64, comma, range->lo, range->hi);
            break;
        case MGL_RANGE_ROWS:
            n += snprintf(at, room, "%s:rows", comma);
            break;
        case MGL_RANGE_PAST:
            n += snprintf(at, room, "%s:pos", comma);
            break;
        case MGL_RANGE_NOW:
            n += snprintf(at, room, "%spos", comma);
            break;
        case MGL_RANGE_SHARE:
            n += snprintf(at, room, "%s:rows %" PRId64 "/%" PRId64, comma, range->lo, range->hi);
            break;
        case MGL_RANGE_ROW_KIND:
            break;
        }
    }
    if (n > 0 && n < MGL_NAME_TEXT)
        snprintf(to + n, (size_t)(MGL_NAME_TEXT - n), "]");
    return to;
}
