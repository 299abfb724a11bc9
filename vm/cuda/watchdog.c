/*
 * Turns the watchdog's reports into an error after a launch (mgl_cuda_read_reports; launch.c calls
 * it). When one queue's wait expires, all queues leave, and each reports what it was waiting for.
 * Most queues wait for others that wait too. The error names one queue, the first of these:
 *
 *   - a queue with a task whose op or variant the kernel does not contain;
 *   - a queue that waits for its own ring, for a counter without a pending task that signals it, or
 *     for flag words without a pending writer;
 *   - the queue whose wait expired first (a cyclic wait).
 */
#include <stdio.h>

#include "base/text.h"
#include "schedule/schedule.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/machine.h"

/* Whether `task` of `queue` still has to run in an epoch before `epochs`. A queue without a report
 * has completed. A task of the list that the queue is not in runs in a later epoch, if at all. */
static bool is_pending(const mgl_cuda_vm *vm, int queue, int task, int64_t epochs)
{
    const volatile int32_t *report = vm->pinned->reports[queue];
    if (report[MGL_REPORT_KIND] == MGL_REPORT_NONE)
        return false;
    const int count = vm->vm.program->task_count;
    const bool other = (task < count) != (report[MGL_REPORT_TASK] < count);
    int64_t done = (int64_t)report[MGL_REPORT_EPOCH] + (other || task < report[MGL_REPORT_TASK]);
    return done < epochs;
}

/* The flagged region that a queue polls. */
static const mgl_region *polled_region(const mgl_program *program, const volatile int32_t *report)
{
    return &program->regions[program->tasks[report[MGL_REPORT_TASK]].in.first +
                             report[MGL_REPORT_COUNTER]];
}

/* Whether two regions of one buffer overlap. */
static bool share_words(const mgl_region *a, const mgl_region *b, int rank)
{
    for (int i = 0; i < rank; i++)
        if (a->ranges[i].kind == MGL_RANGE_FIXED && b->ranges[i].kind == MGL_RANGE_FIXED &&
            (a->ranges[i].lo >= b->ranges[i].hi || b->ranges[i].lo >= a->ranges[i].hi))
            return false;
    return true;
}

/* Whether the task writes flag words of the region. */
static bool writes_words(const mgl_program *program, int task, const mgl_region *words)
{
    const mgl_run *out = &program->tasks[task].out;
    for (int i = out->first; i < out->first + out->count; i++) {
        const mgl_region *r = &program->regions[i];
        if (r->flag && r->buffer == words->buffer &&
            share_words(r, words, program->buffers[words->buffer].rank))
            return true;
    }
    return false;
}

/* The tasks of a queue in a list. */
static mgl_run tasks_of(const mgl_cuda_vm *vm, int queue, int list)
{
    return list ? vm->joined.second[queue] : vm->whole->queues[queue].tasks;
}

/* Whether the queue polls words that have no pending writer. */
static bool polls_in_vain(const mgl_cuda_vm *vm, int queue)
{
    const mgl_program *program = vm->whole;
    const volatile int32_t *report = vm->pinned->reports[queue];
    const mgl_region *words = polled_region(program, report);
    for (int i = 0; i < program->queue_count * mgl_cuda_lists(vm->vm.program); i++) {
        const int q = i % program->queue_count;
        const mgl_run tasks = tasks_of(vm, q, i / program->queue_count);
        for (int task = tasks.first; task < tasks.first + tasks.count; task++)
            if (writes_words(program, task, words) &&
                is_pending(vm, q, task, (int64_t)report[MGL_REPORT_EPOCH] + 1))
                return false;
    }
    return true;
}

static bool signals_counter(const mgl_program *program, int task, int counter)
{
    const mgl_run *signals = &program->tasks[task].signals;
    for (int i = signals->first; i < signals->first + signals->count; i++)
        if (program->signals[i] == counter)
            return true;
    return false;
}

/* Whether the queue waits for a counter without pending signals, for words without a pending
 * writer, or for its own ring, which depends on no other queue. */
static bool is_to_blame(const mgl_cuda_vm *vm, int queue)
{
    const mgl_program *program = vm->whole;
    const volatile int32_t *report = vm->pinned->reports[queue];
    if (report[MGL_REPORT_KIND] == MGL_REPORT_FLAG)
        return polls_in_vain(vm, queue);
    if (report[MGL_REPORT_KIND] == MGL_REPORT_RING)
        return true;
    if (report[MGL_REPORT_KIND] != MGL_REPORT_WAIT)
        return false;
    int counter = report[MGL_REPORT_COUNTER], task = report[MGL_REPORT_TASK];
    int64_t epochs = report[MGL_REPORT_EPOCH]; /* epochs that the wait needs; threshold 0 needs only
                                                  the earlier ones */
    for (int i = 0; i < program->tasks[task].waits.count; i++) {
        const mgl_wait *wait = &program->waits[program->tasks[task].waits.first + i];
        if (wait->counter == counter && wait->threshold > 0) {
            epochs++;
            break;
        }
    }
    for (int i = 0; i < program->queue_count * mgl_cuda_lists(vm->vm.program); i++) {
        const int q = i % program->queue_count;
        const mgl_run tasks = tasks_of(vm, q, i / program->queue_count);
        for (int other = tasks.first; other < tasks.first + tasks.count; other++)
            if (signals_counter(program, other, counter) && is_pending(vm, q, other, epochs))
                return false;
    }
    return true;
}

/* Whether a queue has a task whose op or variant the kernel does not contain. */
static bool lacks_code(const volatile int32_t *report)
{
    return report[MGL_REPORT_KIND] == MGL_REPORT_OP ||
           report[MGL_REPORT_KIND] == MGL_REPORT_VARIANT;
}

/* The queue to blame, or else the one whose wait expired first. */
static int find_blamed(const mgl_cuda_vm *vm)
{
    const int count = vm->vm.program->queue_count;
    for (int q = 0; q < count; q++)
        if (lacks_code(vm->pinned->reports[q]))
            return q;
    for (int q = 0; q < count; q++)
        if (is_to_blame(vm, q))
            return q;
    return vm->pinned->host[MGL_HOST_EXPIRED] - 1;
}

/* Describes what the queue waited for. */
static void describe_wait(const mgl_program *program, const volatile int32_t *report, char *to,
                          size_t size)
{
    const int counter = report[MGL_REPORT_COUNTER];
    if (report[MGL_REPORT_KIND] == MGL_REPORT_WAIT)
        snprintf(to, size, "counter %s", program->counters[counter].name);
    else if (report[MGL_REPORT_KIND] == MGL_REPORT_FLAG)
        snprintf(to, size, "words of %.100s to be written",
                 program->buffers[polled_region(program, report)->buffer].name);
    else
        snprintf(to, size, "page %u of its tape", (unsigned)counter);
}

mgl_status mgl_cuda_read_reports(const mgl_cuda_vm *vm, mgl_error *err)
{
    const mgl_program *program = vm->whole;
    char where[96], what[300];
    mgl_text text = {0};
    mgl_status status;
    if (vm->pinned->host[MGL_HOST_EXPIRED] == 0)
        return MGL_OK;
    const int queue = find_blamed(vm);
    const volatile int32_t *report = vm->pinned->reports[queue];
    const int task = report[MGL_REPORT_TASK];
    mgl_schedule_print_task(program, task, &text);
    const char *line = text.bytes ? text.bytes : "";
    snprintf(where, sizeof where, "queue %d, task %d", queue, task);
    if (lacks_code(report)) {
        status = mgl_fail(err, MGL_WATCHDOG, where,
                          "the kernel stopped: it has no %s %d, which queue %d was to run as task "
                          "%d in epoch %d\n%s",
                          report[MGL_REPORT_KIND] == MGL_REPORT_OP ? "op" : "variant",
                          report[MGL_REPORT_COUNTER], queue, task, report[MGL_REPORT_EPOCH], line);
    } else {
        describe_wait(program, report, what, sizeof what);
        status =
            mgl_fail(err, MGL_WATCHDOG, where,
                     "the watchdog stopped the kernel after %d ms: queue %d, task %d waits for %s: "
                     "expected %u, found %u, in epoch %d\n%s",
                     vm->deadline_ms, queue, task, what, (unsigned)report[MGL_REPORT_WANTED],
                     (unsigned)report[MGL_REPORT_SEEN], report[MGL_REPORT_EPOCH], line);
    }
    mgl_text_clear(&text);
    return status;
}
