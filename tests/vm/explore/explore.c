/*
 * Implements explore (explore.h). Each interleaving is a run of the machine. Before each step, a
 * random runnable queue is chosen, and the shadow (shadow.h) checks every access of its task.
 * Activations are filled with NaN at each epoch edge, so that a stale value that the shadow misses
 * still changes the tokens. Flag words (words.h) are not filled; separate random steps make them
 * visible.
 */
#include "tests/vm/explore/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/draw.h"
#include "base/memory.h"
#include "tests/vm/explore/words.h"

struct explorer {
    mgl_machine machine;
    mgl_shadow *shadow;
    mgl_words *words;
    const mgl_explore_options *options;
    mgl_explore_report *report;
    uint64_t random;   /* state of the random generator */
    int *priorities;   /* (queues) */
    int *runnable;     /* (queues) */
    int *entered;      /* (queues) last epoch that each queue entered; -1: none */
    int32_t *expected; /* output of the first interleaving, then the bits of its scores */
    size_t words_each; /* words of output, and of scores */
    int most_epochs;
    int eager; /* in 1/16: probability that a step makes flag words visible */
};

static int below(struct explorer *x, int n)
{
    return (int)((mgl_draw(&x->random) >> 32) * (uint64_t)n >> 32);
}

static bool found(struct explorer *x, mgl_finding finding)
{
    x->report->finding = finding;
    return true;
}

/* ---- findings ------------------------------------------------------------------------------- */

static void describe(const mgl_machine *m, int task, char *to, size_t size)
{
    int q = m->queue_of[task];
    int line = m->program->tasks[task].line;
    bool second = task >= m->first->task_count;
    int first = second ? m->joined.second[q].first : m->program->queues[q].tasks.first;
    int n = snprintf(to, size, "queue %d%s task %d (%s)", q, second ? ", second list," : "",
                     task - first, mgl_op_get(m->program->tasks[task].op)->name);
    if (line && n > 0 && (size_t)n < size)
        snprintf(to + n, size - (size_t)n, " line %d", line);
}

static bool report_conflict(struct explorer *x, int q, const mgl_conflict *c)
{
    const mgl_machine *m = &x->machine;
    char now[96], other[96] = "no task", where[64] = "";
    describe(m, mgl_machine_task(m, q), now, sizeof now);
    if (c->other >= 0)
        describe(m, c->other, other, sizeof other);
    if (c->position >= 0)
        snprintf(where, sizeof where, " of sequence %d at position %d", c->sequence, c->position);
    const char *name = m->program->buffers[c->buffer].name;
    if (c->kind == MGL_UNWRITTEN) {
        snprintf(x->report->message, sizeof x->report->message,
                 "epoch %d: %s reads %s%s, last written by %s, and not in this epoch",
                 m->queues[q].epoch, now, name, where, other);
        return found(x, MGL_FOUND_UNINITIALISED);
    }
    snprintf(x->report->message, sizeof x->report->message,
             "epoch %d: %s %s %s%s, and nothing orders that after the %s by %s", m->queues[q].epoch,
             now, c->write ? "writes" : "reads", name, where, c->other_write ? "write" : "read",
             other);
    return found(x, MGL_FOUND_RACE);
}

static bool report_stuck(struct explorer *x)
{
    mgl_error err;
    mgl_machine_stuck(&x->machine, &err);
    snprintf(x->report->message, sizeof x->report->message, "%.590s", err.message);
    return found(x, MGL_FOUND_STUCK);
}

static bool report_stale(struct explorer *x, const mgl_stale *s)
{
    static const char *const does[] = {
        [MGL_STALE_READ] = "reads flag words of %s that are not of its epoch: they were written by",
        [MGL_WRITTEN_TWICE] = "writes flag words of %s that have a writer in this epoch:",
        [MGL_NOT_CLEARED] = "writes flag words of %s that were not cleared after the write by"};
    const mgl_machine *m = &x->machine;
    char now[96], other[96] = "no task", verb[128];
    describe(m, s->task, now, sizeof now);
    if (s->other >= 0)
        describe(m, s->other, other, sizeof other);
    snprintf(verb, sizeof verb, does[s->kind], m->program->buffers[s->buffer].name);
    snprintf(x->report->message, sizeof x->report->message, "epoch %d: %s %s %s in epoch %d",
             s->epoch, now, verb, other, s->other_epoch);
    return found(x, s->kind == MGL_WRITTEN_TWICE ? MGL_FOUND_RACE : MGL_FOUND_STALE);
}

/* Queue q has executed `enter`. Detects queues that leave an epoch that other queues run. */
static bool check_exit(struct explorer *x, int q, int epoch)
{
    const mgl_machine *m = &x->machine;
    if (!m->queues[q].left)
        x->entered[q] = epoch;
    for (int i = 0; i < m->program->queue_count; i++) {
        bool early = m->queues[q].left ? x->entered[i] >= epoch
                                       : m->queues[i].left && m->queues[i].epoch <= epoch;
        if (!early)
            continue;
        int left = m->queues[q].left ? q : i;
        snprintf(x->report->message, sizeof x->report->message,
                 "queue %d leaves at epoch %d, and queue %d runs epoch %d", left,
                 m->queues[left].epoch, left == q ? i : q, left == q ? x->entered[i] : epoch);
        return found(x, MGL_FOUND_EARLY_EXIT);
    }
    return false;
}

/* After a sample task: fills activations with NaN (all ones), because no value of this epoch may be
 * used in the next. */
static void poison(struct explorer *x)
{
    const mgl_machine *m = &x->machine;
    for (int i = 0; i < m->program->buffer_count; i++)
        if (m->program->buffers[i].space == MGL_SPACE_ACT && !mgl_words_has(x->words, i))
            memset(m->buffers[i], 0xFF, mgl_buffer_bytes(&m->program->buffers[i]));
}

/* ---- one interleaving ------------------------------------------------------------------------ */

/* Checks before a task. Returns true on a finding. */
static bool begin(struct explorer *x, int q, mgl_status *status, mgl_error *err)
{
    mgl_stale stale;
    mgl_conflict conflict = mgl_shadow_begin(x->shadow, q);
    if (conflict.kind != MGL_NO_CONFLICT)
        return report_conflict(x, q, &conflict);
    if (!mgl_words_begin(x->words, q, &stale))
        *status = mgl_fail_memory(err, 0);
    return !*status && stale.kind != MGL_NO_STALE && report_stale(x, &stale);
}

/* Executes the next task of queue q. Returns true on a finding. */
static bool step(struct explorer *x, int q, mgl_status *status, mgl_error *err)
{
    mgl_machine *m = &x->machine;
    int task = mgl_machine_task(m, q), epoch = m->queues[q].epoch;
    mgl_op op = m->program->tasks[task].op;
    if (epoch > x->most_epochs) {
        snprintf(x->report->message, sizeof x->report->message,
                 "queue %d runs on: epoch %d of a request that ends after %d at most", q, epoch,
                 x->most_epochs);
        return found(x, MGL_FOUND_STUCK);
    }
    if (begin(x, q, status, err))
        return true;
    if (*status)
        return false;
    mgl_machine_execute(m, q, (const int32_t[MGL_ASKED_WORDS]){0});
    mgl_words_end(x->words);
    if (!m->queues[q].left && !mgl_shadow_end(x->shadow, q, task))
        *status = mgl_fail_memory(err, 0);
    if (op == MGL_OP_SAMPLE)
        poison(x);
    return op == MGL_OP_ENTER && check_exit(x, q, epoch);
}

/* Collects the queues whose next task can run. Returns -1 when all queues have left. */
static int find_runnable(struct explorer *x)
{
    int count = 0, left = 0, queues = x->machine.program->queue_count;
    for (int q = 0; q < queues; q++) {
        if (x->machine.queues[q].left)
            left++;
        else if (!mgl_machine_blocked(&x->machine, q) && !mgl_machine_unwritten(&x->machine, q))
            x->runnable[count++] = q;
    }
    return left == queues ? -1 : count;
}

/* Chooses the next queue. Even seeds: uniformly at random. Odd seeds: probabilistic concurrency
 * testing; the queue of highest priority runs, and priorities change occasionally. Some queue then
 * runs far ahead or far behind (Burckhardt et al., "A Randomized Scheduler with Probabilistic
 * Guarantees of Finding Bugs", ASPLOS 2010). */
static int choose(struct explorer *x, uint64_t seed, int count)
{
    if (seed % 2 == 0)
        return x->runnable[below(x, count)];
    int best = x->runnable[0];
    for (int i = 1; i < count; i++)
        if (x->priorities[x->runnable[i]] > x->priorities[best])
            best = x->runnable[i];
    if (below(x, 16) == 0)
        x->priorities[best] = below(x, 1 << 20);
    return best;
}

/* Makes a random piece of hidden flag words visible. Returns true on a finding. */
static bool show(struct explorer *x)
{
    mgl_stale stale = mgl_words_show(x->words, below(x, mgl_words_hidden(x->words)));
    return stale.kind != MGL_NO_STALE && report_stale(x, &stale);
}

static mgl_status start(struct explorer *x, uint64_t seed, mgl_error *err)
{
    static const int eager[] = {1, 4, 8, 15};
    mgl_machine *m = &x->machine;
    mgl_status status = mgl_machine_start(m, x->options->request, &x->most_epochs, err);
    mgl_shadow_reset(x->shadow);
    for (int s = 0; s < x->options->request->count; s++)
        mgl_shadow_assume(x->shadow, s, x->options->request->sequences[s].start);
    mgl_words_reset(x->words, seed);
    poison(x);
    x->random = seed * 0xD1342543DE82EF95;
    x->eager = eager[below(x, 4)];
    for (int q = 0; q < m->program->queue_count; q++) {
        x->entered[q] = -1;
        x->priorities[q] = below(x, 1 << 20);
    }
    return status;
}

static bool explore_once(struct explorer *x, uint64_t seed, mgl_status *status, mgl_error *err)
{
    int count;
    *status = start(x, seed, err);
    while (!*status && (count = find_runnable(x)) >= 0) {
        bool hidden = mgl_words_hidden(x->words) > 0;
        if (count == 0 && !hidden)
            return report_stuck(x);
        bool shows = hidden && (count == 0 || below(x, 16) < x->eager);
        if (shows ? show(x) : step(x, choose(x, seed, count), status, err))
            return true;
    }
    while (!*status && mgl_words_hidden(x->words))
        if (show(x))
            return true;
    return false;
}

static bool is_wanted(const mgl_machine *m, const mgl_vm_report *wanted, int sequence)
{
    const int32_t *state =
        mgl_machine_words(m, m->io->sequence) + (ptrdiff_t)sequence * MGL_SEQUENCE_WORDS;
    size_t first = (size_t)sequence * (size_t)m->program->limits.capacity;
    size_t produced = (size_t)state[MGL_SEQUENCE_PRODUCED];
    size_t scored = wanted->score[sequence] ? (size_t)state[MGL_SEQUENCE_PROMPT] : 0;
    return state[MGL_SEQUENCE_PRODUCED] == wanted->produced[sequence] &&
           state[MGL_SEQUENCE_STATE] == wanted->state[sequence] &&
           !memcmp(mgl_machine_words(m, m->io->output) + first, wanted->output[sequence],
                   produced * sizeof(int32_t)) &&
           (scored == 0 || !memcmp(mgl_machine_words(m, m->io->score) + first,
                                   wanted->score[sequence], scored * sizeof(float)));
}

/* Compares tokens and scores with the expected ones of the options. */
static bool check_wanted(struct explorer *x)
{
    for (int s = 0; s < x->options->request->count; s++) {
        if (is_wanted(&x->machine, x->options->wanted, s))
            continue;
        snprintf(x->report->message, sizeof x->report->message,
                 "sequence %d: tokens or scores differ from the expected ones", s);
        return found(x, MGL_FOUND_DIFFERENCE);
    }
    return false;
}

/* Compares output and scores with those of the first interleaving. */
static bool check_result(struct explorer *x, bool first)
{
    const mgl_machine *m = &x->machine;
    const int32_t *output = mgl_machine_words(m, m->io->output);
    const int32_t *score = mgl_machine_words(m, m->io->score);
    size_t bytes = x->words_each * sizeof *output;
    if (x->options->wanted && check_wanted(x))
        return true;
    if (first) {
        memcpy(x->expected, output, bytes);
        memcpy(x->expected + x->words_each, score, bytes);
        return false;
    }
    if (!memcmp(x->expected, output, bytes) && !memcmp(x->expected + x->words_each, score, bytes))
        return false;
    snprintf(x->report->message, sizeof x->report->message,
             "tokens or scores differ from the run with seed %llu",
             (unsigned long long)x->options->seed);
    return found(x, MGL_FOUND_DIFFERENCE);
}

static mgl_status open_explorer(struct explorer *x, const mgl_program *program,
                                const mgl_graph *graph, mgl_error *err)
{
    const mgl_machine_options how = {.plain = x->options->plain, .threads = 1};
    mgl_status status = mgl_machine_open(&x->machine, program, graph, &how, err);
    if (!status)
        status = mgl_shadow_open(&x->machine, &x->shadow, err);
    if (!status)
        status = mgl_words_open(&x->machine, x->shadow, &x->words, err);
    if (status)
        return status;
    size_t queues = (size_t)program->queue_count;
    x->words_each = (size_t)mgl_buffer_elements(&program->buffers[x->machine.io->output]);
    x->priorities = mgl_alloc_zero(queues, sizeof *x->priorities);
    x->runnable = mgl_alloc_zero(queues, sizeof *x->runnable);
    x->entered = mgl_alloc_zero(queues, sizeof *x->entered);
    x->expected = mgl_alloc_zero(2 * x->words_each, sizeof *x->expected);
    return x->priorities && x->runnable && x->entered && x->expected ? MGL_OK
                                                                     : mgl_fail_memory(err, 0);
}

static void close_explorer(struct explorer *x)
{
    mgl_words_close(x->words);
    mgl_shadow_close(x->shadow);
    mgl_machine_close(&x->machine);
    mgl_free(x->priorities);
    mgl_free(x->runnable);
    mgl_free(x->entered);
    mgl_free(x->expected);
}

mgl_status mgl_explore(const mgl_program *program, const mgl_graph *graph,
                       const mgl_explore_options *options, mgl_explore_report *out, mgl_error *err)
{
    struct explorer x = {.options = options, .report = out};
    memset(out, 0, sizeof *out);
    mgl_status status = open_explorer(&x, program, graph, err);
    for (int i = 0; !status && i < options->seeds && out->finding == MGL_FOUND_NOTHING; i++) {
        out->seed = options->seed + (uint64_t)i;
        out->seeds = i + 1;
        if (explore_once(&x, out->seed, &status, err) || status)
            break;
        out->epochs = x.machine.queues[0].epoch;
        check_result(&x, i == 0);
    }
    close_explorer(&x);
    return status;
}
