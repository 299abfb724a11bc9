/*
 * Tests log-probabilities of generated tokens on the CPU machine, with the same check as on a GPU.
 */
#include "likely.h"

#include "fixture.h"

static const mgl_geometry few_words = {32, 1, 2, 1, 16, 40, 13, 1e-5f}; /* 13 tokens */

static const struct shape {
    const mgl_geometry *geometry;
    fixture_options options;
} shapes[] = {
    {&small_model, {.queues = 3, .rows = 4, .capacity = 64, .sequences = 1, .exchange = 1}},
    {&odd_model, {.queues = 2, .rows = 4, .capacity = 64, .sequences = 3, .exchange = 2}},
    {&few_words, {.queues = 2, .rows = 3, .second_rows = 40, .capacity = 64, .sequences = 40}}};

START_TEST(is_what_the_logits_say)
{
    mgl_graph *graph = random_graph(shapes[_i].geometry, 64, true, MGL_F32, 31);
    mgl_program *program = fixture_program(graph, &shapes[_i].options);
    mgl_vm *vm = fixture_vm(program, graph, true);
    check_likely(vm, shapes[_i].options.sequences < 3 ? 1 : 3);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(more_than_there_may_be_is_rejected)
{
    mgl_error err;
    mgl_vm_report report;
    static const int32_t prompt[] = {3, 1, 4};
    mgl_graph *graph = random_graph(&tiny_model, 64, true, MGL_F32, 31);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 1});
    mgl_vm *vm = fixture_vm(program, graph, true);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 1};
    mgl_vm_request request = {.sequences = &sequence, .count = 1, .likely = 21};
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_BAD_INPUT);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("likely");
    tcase_add_loop_test(tests, is_what_the_logits_say, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tests, more_than_there_may_be_is_rejected);
    return fixture_main("likely", tests);
}
