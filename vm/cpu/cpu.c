/*
 * CPU virtual machine: implements the VM interface (vm.h) for any program. It visits the queues
 * round-robin and runs the tasks of each queue, one at a time, until a wait is not met or a flag
 * word is not written. The pool's threads share the work within a task. Execution relies only on
 * waits and flags, so it runs every program that the validator accepts. A program that deadlocks
 * ends with an error that names the place.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "vm/cpu/machine.h"

struct cpu_vm {
    mgl_vm vm; /* first member: the VM interface */
    mgl_machine machine;
    double pack_s;
    float *logits;                  /* (vocab) of the last sampled row of the last run */
    bool sampled;                   /* `logits` is valid */
    int row;                        /* row of `logits` in the last epoch; -1: the last epoch was
                                       aborted or sampled nothing */
    int logits_buffer;              /* logits buffer of that epoch's list */
    int written[MGL_MAX_SEQUENCES]; /* cache positions written by completed epochs and earlier
                                       runs */
};

/* State of one run. */
struct run {
    struct cpu_vm *cpu;
    const mgl_vm_request *request;
    mgl_vm_delivery delivery;
    double begun; /* clock at the start, in s */
    bool over;    /* stop texts have ended all sequences */
    int epochs;
    uint64_t told; /* prompt tokens reported to on_stage */
};

static void close_cpu(mgl_vm *vm)
{
    struct cpu_vm *cpu = (struct cpu_vm *)vm;
    mgl_machine_close(&cpu->machine);
    mgl_free(cpu->logits);
    mgl_free(cpu);
}

/* After a sample task: copies the logits of its last sampled row from the given buffer. */
static void keep_logits(struct cpu_vm *cpu, const mgl_epoch_rows *epoch, int buffer)
{
    const mgl_machine *m = &cpu->machine;
    const float *logits = m->buffers[buffer];
    size_t vocab = (size_t)m->program->geometry.vocab;
    for (int r = epoch->rows - 1; r >= 0; r--) {
        if (epoch->table[r * MGL_TABLE_WORDS + MGL_TABLE_WANT] != MGL_WANT_SAMPLE)
            continue;
        memcpy(cpu->logits, logits + (size_t)r * vocab, vocab * sizeof *cpu->logits);
        cpu->logits_buffer = buffer;
        cpu->sampled = true;
        cpu->row = r;
        return;
    }
}

/* After a sample task: records the positions that its rows have written. */
static void note_rows(struct cpu_vm *cpu, const mgl_epoch_rows *epoch)
{
    for (int r = 0; r < epoch->rows; r++) {
        const int32_t *row = epoch->table + r * MGL_TABLE_WORDS;
        cpu->written[row[MGL_TABLE_SEQUENCE]] = row[MGL_TABLE_POSITION] + 1;
    }
}

static void give_next(struct run *run, int s, int32_t token)
{
    const mgl_machine *m = &run->cpu->machine;
    size_t at = (size_t)s * (size_t)m->program->limits.capacity + (size_t)run->delivery.given[s];
    const int32_t *likely = m->likely ? m->likely + at * mgl_vm_likely_words(run->request) : NULL;
    mgl_vm_give(&run->delivery, run->request, s, token, likely);
}

/* After a sample task: delivers the new tokens. */
static void deliver(struct run *run)
{
    const mgl_machine *m = &run->cpu->machine;
    const int32_t *sequences = mgl_machine_words(m, m->io->sequence);
    const int32_t *output = mgl_machine_words(m, m->io->output);
    int capacity = m->program->limits.capacity;
    run->over = run->request->is_stop != NULL;
    for (int s = 0; s < run->request->count; s++) {
        const int32_t *q = sequences + s * MGL_SEQUENCE_WORDS;
        while (run->delivery.given[s] < q[MGL_SEQUENCE_PRODUCED] &&
               !mgl_vm_is_stopped(&run->delivery, s))
            give_next(run, s, output[s * capacity + run->delivery.given[s]]);
        if (q[MGL_SEQUENCE_STATE] == MGL_STATE_RUNNING && !mgl_vm_is_stopped(&run->delivery, s))
            run->over = false;
    }
}

static bool is_aborted(const struct run *run)
{
    const atomic_int *abort = run->request->abort;
    return run->delivery.asked[MGL_ASKED_ABORT] || run->cpu->machine.end == MGL_POOL_ABORTED ||
           (abort && atomic_load(abort));
}

/* Whether no more tasks should run. */
static bool is_ended(const struct run *run)
{
    return run->over || is_aborted(run);
}

/* After a sample task: checks that the mapped weights are intact, then records and delivers the
 * results. */
static mgl_status end_epoch(struct run *run, const mgl_epoch_rows *epoch, int logits,
                            mgl_error *err)
{
    mgl_status status = mgl_machine_check(&run->cpu->machine, err);
    run->epochs++;
    if (status)
        return status;
    note_rows(run->cpu, epoch);
    keep_logits(run->cpu, epoch, logits);
    deliver(run);
    mgl_vm_tell_prompt(run->request,
                       mgl_machine_words(&run->cpu->machine, run->cpu->machine.io->sequence),
                       &run->told);
    return MGL_OK;
}

/* Runs queue q until it must wait, leaves, or is aborted. */
static mgl_status run_queue(struct run *run, int q, int most_epochs, bool *progress, mgl_error *err)
{
    mgl_machine *m = &run->cpu->machine;
    const mgl_cpu_queue *queue = &m->queues[q];
    mgl_status status = MGL_OK;
    while (!status && !is_ended(run) && !queue->left && !mgl_machine_blocked(m, q) &&
           !mgl_machine_unwritten(m, q)) {
        if (queue->epoch > most_epochs)
            return mgl_fail(err, MGL_WATCHDOG, NULL,
                            "queue %d began epoch %d; this request ends after %d at most", q,
                            queue->epoch, most_epochs);
        mgl_op op = m->program->tasks[mgl_machine_task(m, q)].op;
        int logits = mgl_machine_io(m, q)->logits;
        mgl_machine_execute(m, q, run->delivery.asked);
        *progress = true;
        if (op == MGL_OP_SAMPLE)
            status = end_epoch(run, &queue->rows, logits, err);
        else if (m->end == MGL_POOL_LOST)
            status = mgl_machine_check(m, err);
    }
    return status;
}

static bool all_left(const mgl_machine *m)
{
    for (int q = 0; q < m->program->queue_count; q++)
        if (!m->queues[q].left)
            return false;
    return true;
}

static mgl_status run_queues(struct run *run, int most_epochs, mgl_error *err)
{
    mgl_machine *m = &run->cpu->machine;
    mgl_status status = MGL_OK;
    while (!status && !all_left(m) && !is_ended(run)) {
        bool progress = false;
        for (int q = 0; q < m->program->queue_count && !status; q++)
            status = run_queue(run, q, most_epochs, &progress, err);
        if (!status && !progress && !is_ended(run))
            status = mgl_machine_stuck(m, err);
    }
    return status;
}

/* Marks sequences that an abort ended, since their `sample` task did not run. */
static void end_sequences(const struct run *run)
{
    const mgl_machine *m = &run->cpu->machine;
    int32_t *sequences = mgl_machine_words(m, m->io->sequence);
    for (int s = 0; s < run->request->count; s++)
        mgl_step_runs(sequences + s * MGL_SEQUENCE_WORDS, is_aborted(run) ? MGL_STATE_ABORTED : 0);
}

static void fill_report(const struct run *run, mgl_vm_report *out)
{
    const mgl_machine *m = &run->cpu->machine;
    const int32_t *sequences = mgl_machine_words(m, m->io->sequence);
    const float *score = m->buffers[m->io->score];
    double end = mgl_clock_s();
    memset(out, 0, sizeof *out);
    out->launches = 1;
    out->epochs = run->epochs;
    for (int s = 0; s < run->request->count; s++) {
        const int32_t *q = sequences + s * MGL_SEQUENCE_WORDS;
        size_t offset = (size_t)s * (size_t)m->program->limits.capacity;
        out->output[s] = mgl_machine_words(m, m->io->output) + offset;
        out->produced[s] = q[MGL_SEQUENCE_PRODUCED];
        out->state[s] = q[MGL_SEQUENCE_STATE];
        out->written[s] = run->cpu->written[s];
        if (run->request->sequences[s].mode == MGL_VM_SCORE)
            out->score[s] = score + offset;
    }
    double first = run->delivery.first_s;
    out->prefill_s = (first > 0.0 ? first : end) - run->begun;
    out->decode_s = first > 0.0 ? end - first : 0.0;
    mgl_vm_cut_stopped(&run->delivery, run->request, out);
}

static mgl_status run_cpu(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out,
                          mgl_error *err)
{
    struct cpu_vm *cpu = (struct cpu_vm *)vm;
    struct run run = {.cpu = cpu,
                      .request = request,
                      .delivery = mgl_vm_begin_delivery(vm->program, request),
                      .begun = mgl_clock_s()};
    int most_epochs;
    for (int s = 0; s < request->count && s < MGL_MAX_SEQUENCES; s++)
        cpu->written[s] = request->sequences[s].start;
    cpu->sampled = false;
    cpu->row = -1;
    mgl_status status = mgl_machine_start(&cpu->machine, request, &most_epochs, err);
    if (!status)
        status = run_queues(&run, most_epochs, err);
    if (is_aborted(&run)) /* the aborted epoch may have overwritten the logits buffer */
        cpu->row = -1;
    if (!status) {
        end_sequences(&run);
        fill_report(&run, out);
    }
    return status;
}

static mgl_status get_logits_cpu(mgl_vm *vm, float *logits, mgl_error *err)
{
    const struct cpu_vm *cpu = (const struct cpu_vm *)vm;
    if (!cpu->sampled)
        return mgl_fail(err, MGL_USAGE, NULL, "no token was sampled: there are no logits yet");
    memcpy(logits, cpu->logits, (size_t)vm->program->geometry.vocab * sizeof *logits);
    return MGL_OK;
}

static mgl_status get_row_logits_cpu(mgl_vm *vm, int row, float *logits, mgl_error *err)
{
    const struct cpu_vm *cpu = (const struct cpu_vm *)vm;
    size_t vocab = (size_t)vm->program->geometry.vocab;
    if (row < 0 || row > cpu->row)
        return mgl_fail(err, MGL_USAGE, NULL, "row %d was not sampled in the last epoch", row);
    memcpy(logits, (const float *)cpu->machine.buffers[cpu->logits_buffer] + (size_t)row * vocab,
           vocab * sizeof *logits);
    return MGL_OK;
}

static mgl_status poison_cpu(mgl_vm *vm, uint32_t word, int context, mgl_error *err)
{
    (void)err;
    struct cpu_vm *cpu = (struct cpu_vm *)vm;
    for (int i = 0; i < cpu->machine.program->buffer_count; i++) {
        const mgl_buffer *b = &cpu->machine.program->buffers[i];
        mgl_vm_stretches s = mgl_vm_poisoned(b, context);
        char *buffer = cpu->machine.buffers[i];
        for (size_t n = 0; n < s.count; n++)
            for (size_t byte = 0; byte < s.width; byte += sizeof word)
                memcpy(buffer + s.first + n * s.pitch + byte, &word,
                       s.width - byte < sizeof word ? s.width - byte : sizeof word);
        if (b->space != MGL_SPACE_CONST)
            memset(buffer + mgl_vm_buffer_bytes(b), MGL_GUARD_BYTE, MGL_GUARD_BYTES);
    }
    return MGL_OK;
}

static mgl_status check_guards_cpu(mgl_vm *vm, mgl_error *err)
{
    const struct cpu_vm *cpu = (const struct cpu_vm *)vm;
    for (int i = 0; i < cpu->machine.program->buffer_count; i++) {
        const mgl_buffer *b = &cpu->machine.program->buffers[i];
        const unsigned char *buffer = cpu->machine.buffers[i];
        if (b->space == MGL_SPACE_CONST)
            continue;
        long at =
            mgl_vm_find_damage(buffer + mgl_vm_buffer_bytes(b), MGL_GUARD_BYTES, MGL_GUARD_BYTE);
        if (at >= 0)
            return mgl_vm_fail_guard(cpu->machine.program, i, -1, at, err);
    }
    return MGL_OK;
}

static mgl_status get_buffer_cpu(mgl_vm *vm, int buffer, void *to, mgl_error *err)
{
    const struct cpu_vm *cpu = (const struct cpu_vm *)vm;
    const mgl_buffer *b = &cpu->machine.program->buffers[buffer];
    if (!cpu->machine.buffers[buffer])
        return mgl_fail(err, MGL_USAGE, b->name, "is on the tapes only");
    memcpy(to, cpu->machine.buffers[buffer], mgl_vm_buffer_bytes(b));
    return MGL_OK;
}

void *mgl_vm_cpu_buffer(mgl_vm *vm, int buffer)
{
    return ((struct cpu_vm *)vm)->machine.buffers[buffer];
}

static void get_facts_cpu(const mgl_vm *vm, mgl_vm_facts *out)
{
    const struct cpu_vm *cpu = (const struct cpu_vm *)vm;
    memset(out, 0, sizeof *out);
    snprintf(out->device, sizeof out->device, "cpu");
    out->instructions = cpu->machine.plain ? "plain" : cpu->machine.products.name;
    out->threads = cpu->machine.plain ? 1 : mgl_pool_threads(cpu->machine.pool);
    out->memory_bytes = cpu->machine.memory_bytes;
    out->scratch_bytes = cpu->machine.scratch_bytes;
    out->pack_s = cpu->pack_s;
    out->tape_bytes = cpu->machine.tape_bytes;
    out->const_bytes = cpu->machine.const_bytes;
    out->kv_bytes = cpu->machine.kv_bytes;
}

static mgl_status exchange_cpu(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                               mgl_error *err)
{
    struct cpu_vm *cpu = (struct cpu_vm *)vm;
    double begun = mgl_clock_s();
    mgl_status status = mgl_machine_exchange(&cpu->machine, program, graph, err);
    if (status)
        return status;
    vm->program = program;
    cpu->sampled = false;
    cpu->row = -1;
    cpu->pack_s = mgl_clock_s() - begun;
    return MGL_OK;
}

mgl_status mgl_vm_cpu_open(const mgl_program *program, const mgl_graph *graph,
                           const mgl_vm_options *options, mgl_vm **out, mgl_error *err)
{
    double begun = mgl_clock_s();
    struct cpu_vm *cpu = mgl_alloc_zero(1, sizeof *cpu);
    if (!cpu)
        return mgl_fail_memory(err, sizeof *cpu);
    size_t vocab = (size_t)program->geometry.vocab;
    const mgl_machine_options how = {.weights = options->weights,
                                     .plain = options->plain,
                                     .verify = options->verify,
                                     .threads = options->threads,
                                     .abort = options->abort,
                                     .on_stage = options->on_stage,
                                     .stage_user = options->stage_user};
    cpu->row = -1;
    cpu->logits = mgl_alloc_zero(vocab, sizeof *cpu->logits);
    cpu->vm = (mgl_vm){.program = program,
                       .close = close_cpu,
                       .run = run_cpu,
                       .get_logits = get_logits_cpu,
                       .get_facts = get_facts_cpu,
                       .get_row_logits = get_row_logits_cpu,
                       .poison = poison_cpu,
                       .check_guards = check_guards_cpu,
                       .get_buffer = get_buffer_cpu,
                       .exchange = exchange_cpu};
    mgl_status status = cpu->logits ? MGL_OK : mgl_fail_memory(err, vocab * sizeof *cpu->logits);
    if (!status)
        status = mgl_machine_open(&cpu->machine, program, graph, &how, err);
    if (status) {
        close_cpu(&cpu->vm);
        return status;
    }
    cpu->pack_s = mgl_clock_s() - begun;
    *out = &cpu->vm;
    return MGL_OK;
}
