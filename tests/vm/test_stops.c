/* Tests replies that a stop string ends on the CPU machine, with the same check as on a GPU. */
#include "stops.h"

#include "fixture.h"

static const fixture_options shapes[] = {
    {.queues = 3, .rows = 4, .capacity = 64, .sequences = 1, .exchange = 1},
    {.queues = 2, .rows = 4, .capacity = 64, .sequences = 3, .exchange = 2},
    {.queues = 2, .rows = 3, .second_rows = 40, .capacity = 64, .sequences = 40, .exchange = 2}};

START_TEST(end_each_alone)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 31);
    mgl_program *program = fixture_program(graph, &shapes[_i]);
    mgl_vm *vm = fixture_vm(program, graph, true), *fresh = fixture_vm(program, graph, true);
    check_stops(vm, fresh, shapes[_i].sequences < 3 ? 1 : 3);
    mgl_vm_close(vm);
    mgl_vm_close(fresh);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

enum { LAST = 39 };

/* Whether the reply of sequence LAST ends. */
static bool ends_the_last(void *user, int sequence, int32_t token)
{
    (void)user, (void)token;
    return sequence == LAST;
}

/* One bit beyond the first word of the mask. */
START_TEST(the_fortieth_ends)
{
    mgl_error err;
    mgl_vm_report report;
    static const int32_t prompt[] = {3, 1, 4};
    mgl_vm_sequence sequences[LAST + 1];
    mgl_graph *graph = random_graph(&tiny_model, 64, true, MGL_F32, 31);
    mgl_program *program = fixture_program(graph, &shapes[2]);
    mgl_vm *vm = fixture_vm(program, graph, true);
    for (int s = 0; s <= LAST; s++)
        sequences[s] = (mgl_vm_sequence){.prompt = prompt, .prompt_count = 3, .max_new = 4};
    mgl_vm_request request = {.sequences = sequences, .count = LAST + 1, .is_stop = ends_the_last};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.state[LAST], MGL_STATE_STOPPED);
    ck_assert_int_eq(report.produced[LAST], 1);
    for (int s = 0; s < LAST; s++)
        ck_assert_int_eq(report.state[s], MGL_STATE_LENGTH);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* The only reply of a launch: no further token is computed. */
static bool ends_at_once(void *user, int sequence, int32_t token)
{
    (void)user, (void)sequence, (void)token;
    return true;
}

START_TEST(nothing_runs_behind_the_last)
{
    mgl_error err;
    mgl_vm_report report;
    static const int32_t prompt[] = {3, 1, 4};
    mgl_graph *graph = random_graph(&tiny_model, 64, true, MGL_F32, 31);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2, .rows = 4});
    mgl_vm *vm = fixture_vm(program, graph, true);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 40};
    mgl_vm_request request = {.sequences = &sequence, .count = 1, .is_stop = ends_at_once};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.epochs, 1);
    ck_assert_int_eq(report.produced[0], 1);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("stops");
    tcase_add_loop_test(tests, end_each_alone, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tests, the_fortieth_ends);
    tcase_add_test(tests, nothing_runs_behind_the_last);
    return fixture_main("stops", tests);
}
