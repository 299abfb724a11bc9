/*
 * Tests of models with biases and with norms of q and k on the CPU: the same tokens for every
 * division of the program, on both paths; each bias and norm has an effect; explore finds no fault.
 */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "tests/vm/explore/explore.h"

enum { NEW = 12, CAPACITY = 32 };
static const int32_t prompt[] = {3, 1, 40, 7, 7, 22, 9, 13, 30, 2};
enum { PROMPT = sizeof prompt / sizeof *prompt };

static const unsigned families[] = {MGL_EXTRA_QKV_BIAS, MGL_EXTRA_QK_NORM,
                                    MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS, ALL_EXTRAS};
enum { FAMILIES = sizeof families / sizeof *families };

static const fixture_options ways[] = {{.queues = 1, .splits = 3},
                                       {.queues = 3, .splits = 1, .exchange = 1},
                                       {.queues = 7, .splits = 2, .exchange = 2},
                                       {.queues = 16, .splits = 4, .exchange = 2, .rows = 4}};

START_TEST(queues_splits_and_paths_agree)
{
    mgl_graph *graph = random_family(&small_model, families[_i], CAPACITY, _i % 2, MGL_F32, 7);
    int32_t wanted[NEW], tokens[NEW];
    fixture_greedy(graph, &(fixture_options){0}, true, prompt, PROMPT, wanted, NEW);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int plain = 0; plain < 2; plain++) {
            fixture_greedy(graph, &ways[i], plain, prompt, PROMPT, tokens, NEW);
            ck_assert_mem_eq(tokens, wanted, sizeof wanted);
        }
    mgl_graph_free(graph);
}
END_TEST

static void get_logits(const mgl_graph *graph, bool plain, float *logits)
{
    mgl_error err;
    mgl_vm_report report;
    const mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = PROMPT, .max_new = 1};
    const mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 3});
    mgl_vm *vm = fixture_vm(program, graph, plain);
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

static double distance(const float *a, const float *b, int n)
{
    double largest = 0;
    for (int i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        largest = d > largest ? d : -d > largest ? -d : largest;
    }
    return largest;
}

/* One tensor of one layer with another value everywhere: the logits change, on both paths alike. */
START_TEST(every_extra_matters)
{
    static const char *const tensors[] = {
        "self_attn.q_proj.bias", "self_attn.k_proj.bias",   "self_attn.v_proj.bias",
        "self_attn.o_proj.bias", "mlp.gate_proj.bias",      "mlp.up_proj.bias",
        "mlp.down_proj.bias",    "self_attn.q_norm.weight", "self_attn.k_norm.weight"};
    enum { VOCAB = 75 };
    float whole[VOCAB], spoilt[VOCAB], fast[VOCAB];
    char name[64];
    mgl_graph *graph = random_family(&small_model, ALL_EXTRAS, CAPACITY, true, MGL_F32, 8);
    get_logits(graph, true, whole);
    snprintf(name, sizeof name, "model.layers.1.%s", tensors[_i]);
    spoil_row(graph, name, 0, 2.5f);
    get_logits(graph, true, spoilt);
    get_logits(graph, false, fast);
    ck_assert_double_gt(distance(whole, spoilt, VOCAB), 1e-3);
    ck_assert_double_lt(distance(fast, spoilt, VOCAB), 1e-4);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(explore_finds_nothing)
{
    static const mgl_vm_sequence sequences[] = {
        {.prompt = prompt, .prompt_count = 5, .max_new = 2},
        {.prompt = prompt + 1, .prompt_count = 1, .max_new = 3}};
    static const mgl_vm_request request = {.sequences = sequences, .count = 2};
    mgl_error err;
    mgl_explore_report report;
    const mgl_explore_options options = {
        .request = &request, .seed = 1, .seeds = 100, .plain = true};
    mgl_graph *graph = random_family(&small_model, ALL_EXTRAS, 16, true, MGL_F32, 22);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 5,
                                                                     .splits = 1 + _i % 2 * 2,
                                                                     .exchange = 1 + _i / 2,
                                                                     .rows = 4,
                                                                     .sequences = 2,
                                                                     .capacity = 8});
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s", report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("families");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, queues_splits_and_paths_agree, 0, FAMILIES);
    tcase_add_loop_test(tests, every_extra_matters, 0, 9);
    tcase_add_loop_test(tests, explore_finds_nothing, 0, 4);
    return fixture_main("families", tests);
}
