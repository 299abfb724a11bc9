/*
 * Tests of programs with unsplit and split rows. With few positions, the logits have the bits of a
 * program without splits; with more positions they differ by rounding only. Random interleavings of
 * the queues give no race and no wrong result.
 */
#include "fixture.h"

#include <math.h>
#include <string.h>

#include "tests/vm/explore/explore.h"

enum { PROMPT = 21, FEW = 16, MOST_LOGITS = 1213 };

static void logits_of(const mgl_graph *graph, fixture_options options, int prompt, bool plain,
                      float *logits)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t ids[PROMPT];
    for (int i = 0; i < PROMPT; i++)
        ids[i] = (i * 7 + 3) % 40;
    mgl_program *program = fixture_program(graph, &options);
    mgl_vm *vm = fixture_vm(program, graph, plain);
    mgl_vm_sequence sequence = {.prompt = ids, .prompt_count = prompt, .max_new = 1};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

static const struct {
    const mgl_geometry *model;
    fixture_options options;
} cases[] = {
    {&small_model, {.queues = 1, .splits = 2, .exchange = 1, .rows = 1}},
    {&small_model, {.queues = 3, .splits = 5, .exchange = 1, .rows = 4}},
    {&small_model, {.queues = 3, .splits = 5, .exchange = 2, .rows = 1}},
    {&odd_model, {.queues = 7, .splits = 3, .share = 9, .exchange = 2, .rows = 3}},
    {&small_model, {.queues = 3, .splits = 5, .exchange = 2, .rows = 2, .second_rows = 20}},
};
enum { CASES = sizeof cases / sizeof *cases };

START_TEST(few_positions_have_the_bits_of_no_splits)
{
    static float divided[MOST_LOGITS], whole[MOST_LOGITS];
    mgl_graph *graph = random_graph(cases[_i].model, 64, true, MGL_F32, 12);
    const size_t count = (size_t)cases[_i].model->vocab;
    for (int plain = 0; plain < 2; plain++) {
        fixture_options options = cases[_i].options;
        options.unsplit = FEW;
        logits_of(graph, options, FEW + 1, plain, divided);
        fixture_options one = cases[_i].options;
        one.splits = 1;
        one.share = 0;
        logits_of(graph, one, FEW + 1, plain, whole);
        ck_assert_mem_eq(divided, whole, count * sizeof *whole);
        logits_of(graph, options, PROMPT, plain, divided);
        logits_of(graph, one, PROMPT, plain, whole);
        double error = 0, norm = 0;
        for (size_t i = 0; i < count; i++) {
            error += (divided[i] - whole[i]) * (divided[i] - whole[i]);
            norm += whole[i] * whole[i];
        }
        ck_assert_double_lt(sqrt(error / norm), 1e-5);
    }
    mgl_graph_free(graph);
}
END_TEST

/* Two sequences: the first soon has more than `unsplit` positions, so some epochs have both kinds
 * of rows. */
START_TEST(no_order_of_queues_fails)
{
    mgl_error err;
    mgl_explore_report report;
    static const int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2};
    mgl_vm_sequence sequences[2] = {{.prompt = prompt, .prompt_count = 7, .max_new = 3},
                                    {.prompt = prompt, .prompt_count = 2, .max_new = 5}};
    const mgl_vm_request request = {.sequences = sequences, .count = 2};
    const mgl_explore_options options = {
        .request = &request, .seed = 1, .seeds = 200, .plain = true};
    mgl_graph *graph = random_graph(&small_model, 16, true, MGL_F32, 21);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 3,
                                                                     .splits = 3,
                                                                     .unsplit = 4,
                                                                     .exchange = 1 + _i,
                                                                     .rows = 4,
                                                                     .sequences = 2,
                                                                     .capacity = 12});
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s", report.message);
    ck_assert_int_eq(report.seeds, 200);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("unsplit");
    tcase_add_loop_test(tests, few_positions_have_the_bits_of_no_splits, 0, CASES);
    tcase_add_loop_test(tests, no_order_of_queues_fails, 0, 2);
    return fixture_main("unsplit", tests);
}
