/* Tests of the CPU VM with programs that deadlock or must not run: errors name the task. */
#include "fixture.h"

#include <string.h>

static const int32_t prompt[] = {3, 1, 40};

/* The first task of that op on that queue. */
static mgl_task *task_of(mgl_program *program, int queue, mgl_op op)
{
    const mgl_run *run = &program->queues[queue].tasks;
    for (int i = run->first; i < run->first + run->count; i++)
        if (program->tasks[i].op == op)
            return &program->tasks[i];
    ck_abort_msg("no such task");
}

START_TEST(a_missing_signal_ends_with_a_report)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm *broken, *good;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 17);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    mgl_program *right = fixture_program(graph, &(fixture_options){.queues = 2});
    task_of(program, 1, MGL_OP_NORM_LINEAR)->signals.count = 0;
    mgl_vm_options options = {.kind = MGL_VM_CPU, .unchecked = true};
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 3};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    ok(mgl_vm_open(program, graph, &options, &broken, &err), err);
    good = fixture_vm(right, graph, false);
    /* the counter now has one signal per epoch: a threshold of 2 is never met */
    ck_assert_int_eq(mgl_vm_run(broken, &request, &report, &err), MGL_WATCHDOG);
    ck_assert_ptr_nonnull(strstr(err.message, "queue 0, task "));
    ck_assert_ptr_nonnull(strstr(err.message, "waits for counter l0.qkv: expected 2, found 1"));
    ok(mgl_vm_run(good, &request, &report, &err), err);
    ck_assert_int_eq(report.produced[0], 3);
    /* the machine stays usable: it runs the repaired program */
    task_of(program, 1, MGL_OP_NORM_LINEAR)->signals.count = 1;
    mgl_vm_close(broken);
    ok(mgl_vm_open(program, graph, &options, &broken, &err), err);
    ok(mgl_vm_run(broken, &request, &report, &err), err);
    ck_assert_int_eq(report.produced[0], 3);
    mgl_vm_close(good);
    mgl_vm_close(broken);
    mgl_program_free(program);
    mgl_program_free(right);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(a_word_that_nobody_writes_ends_with_a_report)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm *vm;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 17);
    fixture_options flags = {.queues = 2, .exchange = MGL_EXCHANGE_FLAGS};
    mgl_program *program = fixture_program(graph, &flags);
    mgl_task *task = task_of(program, 1, MGL_OP_NORM_SWIGLU);
    program->regions[task->out.first].ranges[1].hi -= 8;
    mgl_vm_options options = {.kind = MGL_VM_CPU, .unchecked = true, .plain = true};
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 3};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    program->segments[task->segments.first].row_hi -= 8;
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_WATCHDOG);
    ck_assert_ptr_nonnull(strstr(err.message, "queue 0, task "));
    ck_assert_ptr_nonnull(strstr(err.message, "waits for words of l0.h that no task has written"));
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(a_runaway_queue_is_caught)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm *vm;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 18);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    /* queue 1 only enters, and never waits */
    task_of(program, 1, MGL_OP_ENTER)->waits.count = 0;
    program->queues[1].tasks.count = 1;
    mgl_vm_options options = {.kind = MGL_VM_CPU, .unchecked = true};
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 3};
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(
            mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err),
            MGL_WATCHDOG);
        ck_assert_ptr_nonnull(strstr(err.message, "queue 1"));
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(a_rejected_program_is_not_opened)
{
    mgl_error err;
    mgl_vm *vm = NULL;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 19);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    task_of(program, 1, MGL_OP_NORM_LINEAR)->signals.count = 0;
    mgl_vm_options options = {.kind = MGL_VM_CPU};
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_REJECTED);
    ck_assert_int_eq(strncmp(err.message, "MG", 2), 0);
    ck_assert_ptr_null(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(unknown_op_is_rejected)
{
    mgl_error err;
    mgl_vm *vm = NULL;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 19);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    mgl_task *task = task_of(program, 1, MGL_OP_NORM_LINEAR);
    task->op = (mgl_op)77;
    task->line = 31;
    mgl_vm_options options = {.kind = MGL_VM_CPU, .unchecked = true};
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "line 31");
    ck_assert_str_eq(err.message, "the CPU machine has no op 77");
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cpu broken");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_missing_signal_ends_with_a_report);
    tcase_add_test(tests, a_word_that_nobody_writes_ends_with_a_report);
    tcase_add_test(tests, a_runaway_queue_is_caught);
    tcase_add_test(tests, a_rejected_program_is_not_opened);
    tcase_add_test(tests, unknown_op_is_rejected);
    return fixture_main("cpu broken", tests);
}
