/*
 * Tests of the trace of a real launch: every event is present, in a possible order, and tracing
 * changes no result.
 */
#include "tests/vm/cuda/trace_checks.h"

#include "base/memory.h"
#include "eval/trace.h"

enum { EPOCHS = 4, TOKENS = 12 };

static const int32_t prompt[5] = {1, 2, 3, 4, 5};

/* Opens a machine with a trace (or none: epochs 0) and runs one reply, whose tokens go to
 * `tokens`. */
static mgl_vm *run_traced(const mgl_program *program, const mgl_graph *graph, int epochs,
                          int32_t *tokens)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .deadline_ms = 10000, .trace_epochs = epochs};
    ok(mgl_vm_open(program, graph, &open, &vm, &err), err);
    device_greedy(vm, prompt, 5, tokens, TOKENS);
    return vm;
}

START_TEST(every_event_is_there)
{
    mgl_error err;
    mgl_trace *trace;
    mgl_trace_summary summary;
    int32_t traced[TOKENS], plain[TOKENS];
    device_options options = {.dtype = MGL_BF16, .queues = 6, .capacity = 64, .splits = 2};
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_BF16, 3);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = run_traced(program, graph, EPOCHS, traced);
    mgl_vm *other = run_traced(program, graph, 0, plain);
    ck_assert_mem_eq(traced, plain, sizeof plain);
    ok(mgl_trace_take(vm, EPOCHS, &trace, &err), err);
    ok(mgl_trace_sum_up(trace, 0, &summary, &err), err);
    ck_assert_int_eq(trace->rows, EPOCHS);
    ck_assert_int_eq(summary.epochs, EPOCHS);
    ck_assert_int_eq(trace->layers, small_model.layers);
    ck_assert_double_gt(summary.epoch_us, 0);
    for (int row = 1; row < EPOCHS; row++)
        ck_assert_int_eq(trace->epochs[row], trace->epochs[0] + row);
    for (int i = 0; i < trace->chains[0].count; i++)
        ck_assert_int_le(trace->chains[0].links[i].from, trace->chains[0].links[i].end);
    ck_assert_int_gt(trace->chains[0].count, 2 + 5 * small_model.layers);
    mgl_trace_summary_clear(&summary);
    mgl_trace_free(trace);
    mgl_vm_close(other);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* A launch with fewer epochs than the one before keeps no events of that one. */
START_TEST(a_launch_starts_without_events)
{
    mgl_error err;
    mgl_trace *trace;
    int32_t tokens[TOKENS];
    device_options options = {.dtype = MGL_BF16, .queues = 6, .capacity = 64};
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_BF16, 3);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = run_traced(program, graph, EPOCHS, tokens);
    device_greedy(vm, prompt, 1, tokens, 2);
    ok(mgl_trace_take(vm, EPOCHS, &trace, &err), err);
    ck_assert_int_eq(trace->rows, 2);
    ck_assert_int_eq(trace->epochs[0], 0);
    mgl_trace_free(trace);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(events_of_two_lists)
{
    check_traced_lists(&small_model, &(device_options){.dtype = MGL_BF16,
                                                       .exchange = MGL_EXCHANGE_FLAGS,
                                                       .queues = 6,
                                                       .second_rows = 16});
}
END_TEST

/* More rows: hidden, ffn and heads are multiples of a page. */
START_TEST(events_of_panels)
{
    static const mgl_geometry even = {128, 2, 4, 2, 32, 192, 75, 1e-5f};
    check_traced_lists(&even, &(device_options){.dtype = MGL_BF16, .queues = 6, .second_rows = 64});
}
END_TEST

int main(void)
{
    int skip = skip_without_device("cuda_trace");
    if (skip)
        return skip;
    TCase *tests = tcase_create("cuda_trace");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, every_event_is_there);
    tcase_add_test(tests, a_launch_starts_without_events);
    tcase_add_test(tests, events_of_two_lists);
    tcase_add_test(tests, events_of_panels);
    return fixture_main("cuda_trace", tests);
}
