/*
 * Runs a two-layer model through every op once. It has few launches, so that it can also run under
 * compute-sanitizer (memcheck, synccheck), which is slow.
 */
#include "tests/vm/cuda/cuda_support.h"

#include <string.h>

#include "schedule/step.h"

/* Runs a greedy, a sampled and a scored sequence in one launch, with and without splits. */
START_TEST(every_op_runs)
{
    static const int32_t prompt[20] = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                       10, 11, 12, 13, 14, 15, 16, 17, 18};
    mgl_error err;
    mgl_vm_report report;
    device_options options = {.dtype = _i ? MGL_BF16 : MGL_F32,
                              .queues = 6,
                              .capacity = 64,
                              .sequences = 3,
                              .rows = 8,
                              .splits = _i + 1,
                              .deadline_ms = 100000};
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_BF16, 3);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    mgl_vm_sequence sequences[3] = {
        {.prompt = prompt, .prompt_count = 5, .max_new = 8},
        {.prompt = prompt,
         .prompt_count = 9,
         .max_new = 6,
         .temperature = 0.8f,
         .top_k = 20,
         .top_p = 0.9f},
        {.mode = MGL_VM_SCORE, .prompt = prompt, .prompt_count = 18},
    };
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequences, .count = 3}, &report, &err), err);
    ck_assert_int_eq(report.launches, 1);
    ck_assert_int_eq(report.produced[0], 8);
    ck_assert_int_eq(report.produced[1], 6);
    for (int s = 0; s < 3; s++)
        ck_assert_int_eq(report.state[s], MGL_STATE_LENGTH);
    for (int i = 1; i < 18; i++)
        ck_assert(report.score[2][i] < 0.0f && report.score[2][i] > -50.0f);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

static void greedy_of(const mgl_program *program, const mgl_graph *graph,
                      const device_options *options, int32_t tokens[12])
{
    static const int32_t prompt[5] = {7, 3, 11, 2, 30};
    mgl_vm *vm = device_vm(program, graph, options);
    device_greedy(vm, prompt, 5, tokens, 12);
    mgl_vm_close(vm);
}

/* f32 tables hold the bf16 values: only the table is wider, and the tokens are the same. */
START_TEST(the_embedding_has_a_format_of_its_own)
{
    int32_t wanted[12], found[12];
    const device_options options = {
        .dtype = MGL_BF16, .queues = 6, .capacity = 64, .deadline_ms = 100000};
    mgl_graph *graph = random_graph(&small_model, 64, false, MGL_BF16, 3);
    mgl_program *program = device_program(graph, &options);
    greedy_of(program, graph, &options, wanted);
    for (int i = 0; i < program->buffer_count; i++) {
        mgl_buffer *table = &program->buffers[i];
        if (strcmp(table->name, "embedding") != 0)
            continue;
        program->embedding_dtype = table->dtype = MGL_F32;
        program->tensors[table->tensor].format = mgl_weight_format_of(MGL_F32);
    }
    ck_assert_int_eq(program->embedding_dtype, MGL_F32);
    greedy_of(program, graph, &options, found);
    ck_assert_mem_eq(wanted, found, sizeof wanted);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    int skip = skip_without_device("cuda_small");
    if (skip)
        return skip;
    TCase *tests = tcase_create("cuda_small");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, every_op_runs, 0, 2);
    tcase_add_test(tests, the_embedding_has_a_format_of_its_own);
    return fixture_main("cuda_small", tests);
}
