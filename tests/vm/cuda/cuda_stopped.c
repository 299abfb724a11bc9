/* Checks of the CUDA machine with runs that the watchdog ends. See cuda_checks.h. */
#include "base/clock.h"
#include "schedule/variant_shapes.h"
#include "tests/vm/cuda/cuda_checks.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/machine.h"
#include <stdio.h>
#include <string.h>

/* ---- the watchdog ---------------------------------------------------------------------------- */

enum { REPLY = 24 };

/* Removes the last signal of a counter. Without any signal, the wait at the epoch edge (sample's
 * counter) would not wait: its first wait then asks for one missing signal. */
static void remove_signal(mgl_program *program, const char *counter)
{
    for (int t = program->task_count - 1; t >= 0; t--) {
        mgl_task *task = &program->tasks[t];
        for (int i = 0; i < task->signals.count; i++) {
            int *signal = &program->signals[task->signals.first + i];
            if (strcmp(program->counters[*signal].name, counter) != 0)
                continue;
            *signal = program->signals[task->signals.first + task->signals.count - 1];
            task->signals.count--;
            for (int w = 0; w < program->wait_count && !strcmp(counter, "sampled"); w++)
                program->waits[w].threshold += program->waits[w].threshold == 0;
            return;
        }
    }
}

/* Opens with a short deadline and without the validator. */
static mgl_vm *open_unchecked(const mgl_program *program, const mgl_graph *graph)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .unchecked = true, .deadline_ms = 500};
    ok(mgl_vm_open(program, graph, &open, &vm, &err), err);
    return vm;
}

/* Checks that the watchdog ends the run in time, with these words. */
static void check_stopped(mgl_vm *vm, const int32_t *prompt, int count, const char *words,
                          double most_s)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = count, .max_new = REPLY};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    double start = mgl_clock_s();
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_WATCHDOG);
    ck_assert_double_le(mgl_clock_s() - start, most_s);
    ck_assert_msg(strstr(err.message, words) && strstr(err.message, "queue") &&
                      strstr(err.message, "expected") && strstr(err.message, "found"),
                  "%s", err.message);
    printf("%s: %s\n", err.where, err.message);
}

static void check_signal(const mgl_geometry *geometry, const device_options *wanted,
                         const char *counter, double most_s)
{
    const device_options options = *wanted;
    mgl_graph *graph = random_graph(geometry, 128, true, options.dtype, 4);
    mgl_program *good = device_program(graph, &options), *bad = device_program(graph, &options);
    int32_t prompt[CHECK_CAPACITY], tokens[REPLY], again[REPLY];
    const int count =
        options.second_rows > MGL_SMALL_M_ROWS ? options.second_rows : 3; /* else: small-M panels */
    fill_prompt(prompt, count, graph->geometry.vocab, 1);
    remove_signal(options.second_rows ? bad->second : bad, counter);
    mgl_vm *vm = open_unchecked(bad, graph);
    for (int i = 0; i < 2; i++)
        check_stopped(vm, prompt, count, counter, most_s);
    mgl_vm_close(vm);
    vm = device_vm(good, graph, &options);
    device_greedy(vm, prompt, count, tokens, REPLY);
    device_greedy(vm, prompt, count, again, REPLY);
    ck_assert_mem_eq(tokens, again, sizeof tokens);
    mgl_vm_close(vm);
    mgl_program_free(good);
    mgl_program_free(bad);
    mgl_graph_free(graph);
}

void check_deadlock(const char *counter, double most_s)
{
    check_signal(&small_model,
                 &(device_options){.dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 6},
                 counter, most_s);
}

void check_deadlock_of_second(const char *counter, double most_s)
{
    check_signal(
        &small_model,
        &(device_options){
            .dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 6, .rows = 2, .second_rows = 8},
        counter, most_s);
}

void check_deadlock_of_panels(const mgl_geometry *geometry, const device_options *wanted,
                              const char *counter, double most_s)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    check_signal(geometry, &options, counter, most_s);
}

static void check_missing(const device_options *options, double most_s)
{
    mgl_graph *graph = random_graph(&small_model, 128, true, options->dtype, 4);
    mgl_program *bad = device_program(graph, options);
    int32_t prompt[3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    int task = bad->task_count - 1;
    while (bad->tasks[task].op != MGL_OP_LINEAR_ADD)
        task--;
    bad->tasks[task].out.count = 1; /* the last layer's copy output is left out */
    mgl_vm *vm = open_unchecked(bad, graph);
    check_stopped(vm, prompt, 3, "words of x to be written", most_s);
    mgl_vm_close(vm);
    mgl_program_free(bad);
    mgl_graph_free(graph);
}

/* With several rows, and with one, whose flag words are polled before the task begins. */
void check_missing_words(double most_s)
{
    device_options options = {
        .dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 6, .exchange = MGL_EXCHANGE_FLAGS};
    check_missing(&options, most_s);
    options.dtype = MGL_BF16;
    options.rows = 1;
    check_missing(&options, most_s);
}

/* Changes the op of task `count` of queue 0 in the machine's memory. */
static void damage_op(mgl_vm *base, int count, int op)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    mgl_device_queue queue;
    mgl_record record;
    mgl_error err;
    ok(mgl_cuda_enter(vm, &err), err);
    ck_assert_int_eq(vm->cu->copy_out(&queue, vm->queues, sizeof queue), 0);
    mgl_cu_address at = vm->records + queue.first;
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(vm->cu->copy_out(&record, at, sizeof record), 0);
        at = vm->records + record.next;
    }
    ck_assert_int_eq(vm->cu->copy_in(at, &op, sizeof op), 0);
    mgl_cuda_leave(vm);
}

void check_unknown_op(double most_s)
{
    enum { AT = 2, OP = 77 };
    device_options options = {.dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 3};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *program = device_program(graph, &options);
    mgl_error err;
    mgl_vm_report report;
    int32_t prompt[3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = REPLY};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_vm *vm = open_unchecked(program, graph);
    damage_op(vm, AT, OP);
    double start = mgl_clock_s();
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_WATCHDOG);
    ck_assert_double_le(mgl_clock_s() - start, most_s);
    ck_assert_msg(strstr(err.message, "has no op 77, which queue 0 was to run as task"), "%s",
                  err.message);
    damage_op(vm, AT, (int)program->tasks[program->queues[0].tasks.first + AT].op);
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

void check_lost_page(double most_s)
{
    device_options options = {.dtype = MGL_F32,
                              .capacity = CHECK_CAPACITY,
                              .queues = 3,
                              .ring_pages = 3,
                              .page_bytes = 2048};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *program = device_program(graph, &options);
    int32_t prompt[3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    mgl_vm *vm = open_unchecked(program, graph);
    check_stopped(vm, prompt, 3, "of its tape", most_s);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
