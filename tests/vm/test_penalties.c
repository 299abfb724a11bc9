/*
 * Tests of penalties on the CPU machine, with the same check as on a GPU, and of the formula alone.
 */
#include "penalties.h"

#include "fixture.h"

#include <math.h>
#include <string.h>

#include "instructions/sample/penalties.h"
#include "instructions/sample/philox.h"
#include "tests/vm/explore/explore.h"

static const mgl_geometry few_words = {32, 1, 2, 1, 16, 40, 13, 1e-5f}; /* 13 tokens */

enum { STATES = 200, CAPACITY = 64 };

static const struct shape {
    const mgl_geometry *geometry;
    fixture_options options;
    bool plain;
} shapes[] = {{&small_model, {.queues = 3, .rows = 4, .sequences = 1, .exchange = 1}, false},
              {&small_model, {.queues = 2, .rows = 4, .sequences = 1}, true},
              {&odd_model, {.queues = 2, .rows = 4, .sequences = 3, .exchange = 2}, false},
              {&few_words, {.queues = 2, .rows = 3, .second_rows = 40, .sequences = 40}, false},
              {&few_words,
               {.queues = 2, .rows = 3, .second_rows = 40, .sequences = 40, .gamma_scaled = 2},
               false}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static mgl_program *lower(const mgl_graph *graph, const fixture_options *wanted, bool penalties)
{
    fixture_options options = *wanted;
    options.capacity = CAPACITY;
    options.penalties = penalties;
    return fixture_program(graph, &options);
}

START_TEST(are_the_published_ones)
{
    const struct shape *s = &shapes[_i];
    mgl_graph *graph = random_graph(s->geometry, CAPACITY, true, MGL_F32, 31);
    mgl_program *program = lower(graph, &s->options, true);
    mgl_vm *vm = fixture_vm(program, graph, s->plain);
    mgl_vm *fresh = fixture_vm(program, graph, s->plain);
    check_penalties(vm, fresh, s->options.sequences < 3 ? 1 : 3, STATES);
    mgl_vm_close(vm);
    mgl_vm_close(fresh);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Random logits, counts and penalties against the formula in f64. */
START_TEST(formula_is_as_in_doubles)
{
    for (unsigned state = 0; state < STATES; state++) {
        unsigned words[4], counter[4] = {state, 1, 1, 1}, key[2] = {3, 4};
        mgl_philox(counter, key, words);
        const mgl_penalties p = {0.5f + (float)(words[0] % 200) * 0.01f,
                                 (float)(words[1] % 400) * 0.01f - 2.0f,
                                 (float)(words[2] % 400) * 0.01f - 2.0f};
        const float logit = (float)(words[3] % 4000) * 0.01f - 20.0f;
        for (int made = 0; made < 5; made++)
            for (int in_prompt = 0; in_prompt < 2; in_prompt++) {
                double wanted = (double)logit;
                if (made > 0 || in_prompt)
                    wanted = wanted < 0 ? wanted * (double)p.repeat : wanted / (double)p.repeat;
                wanted -= made * (double)p.frequency + (made > 0) * (double)p.presence;
                int count = made + (in_prompt ? MGL_COUNT_PROMPT : 0);
                ck_assert_double_le(fabs((double)mgl_penalize(&p, logit, count) - wanted), 1e-5);
            }
    }
}
END_TEST

START_TEST(no_penalty_leaves_every_bit)
{
    const mgl_penalties none = {1.0f, 0.0f, 0.0f};
    static const float logits[] = {-INFINITY, -3.3e38f, -1.1f, -1e-42f, -0.0f,
                                   0.0f,      1e-42f,   0.3f,  3e38f,   INFINITY};
    for (size_t i = 0; i < sizeof logits / sizeof *logits; i++) {
        const float left = mgl_penalize(&none, logits[i], MGL_COUNT_PROMPT + 3);
        ck_assert_mem_eq(&left, &logits[i], sizeof left);
    }
    ck_assert(isnan(mgl_penalize(&none, NAN, 1)));
}
END_TEST

/* A program with penalties gives the same tokens without penalties in the request. */
START_TEST(unused_they_change_nothing)
{
    int32_t tokens[2][20];
    static const int32_t prompt[] = {3, 1, 4};
    const struct shape *s = &shapes[_i];
    mgl_graph *graph = random_graph(s->geometry, CAPACITY, true, MGL_F32, 31);
    for (int with = 0; with < 2; with++) {
        mgl_error err;
        mgl_vm_report report;
        mgl_program *program = lower(graph, &s->options, with);
        mgl_vm *vm = fixture_vm(program, graph, s->plain);
        mgl_vm_sequence sequence = {.prompt = prompt,
                                    .prompt_count = 3,
                                    .max_new = 20,
                                    .temperature = _i % 2 ? 1.0f : 0.0f,
                                    .repeat_penalty = with ? 1.0f : 0.0f};
        const mgl_vm_request request = {.sequences = &sequence, .count = 1};
        ok(mgl_vm_run(vm, &request, &report, &err), err);
        memcpy(tokens[with], report.output[0], sizeof tokens[with]);
        mgl_vm_close(vm);
        mgl_program_free(program);
    }
    ck_assert_mem_eq(tokens[0], tokens[1], sizeof tokens[0]);
    mgl_graph_free(graph);
}
END_TEST

/* explore: in random orders of the queues, with vector clocks. */
START_TEST(explore_finds_nothing)
{
    mgl_error err;
    mgl_explore_report report;
    static const int32_t prompt[] = {3, 1, 4, 1, 5};
    const struct shape *s = &shapes[_i];
    mgl_graph *graph = random_graph(s->geometry, CAPACITY, true, MGL_F32, 31);
    mgl_program *program = lower(graph, &s->options, true);
    const int count = s->options.sequences < 3 ? 1 : 3;
    mgl_vm_sequence sequences[3];
    for (int i = 0; i < count; i++)
        sequences[i] = (mgl_vm_sequence){.prompt = prompt,
                                         .prompt_count = 3 + i,
                                         .max_new = 3,
                                         .repeat_penalty = 1.5f,
                                         .presence_penalty = 0.3f};
    const mgl_vm_request request = {.sequences = sequences, .count = count};
    const mgl_explore_options options = {.request = &request, .seed = 5, .seeds = 6, .plain = true};
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s", report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(hostile_values_are_rejected)
{
    static const float repeats[] = {-1.0f, 1e-9f, 1e30f, NAN, INFINITY, -INFINITY};
    static const float others[] = {-2.01f, 2.01f, 1e30f, NAN, INFINITY, -INFINITY};
    mgl_graph *graph = random_graph(&tiny_model, CAPACITY, true, MGL_F32, 31);
    mgl_program *program = lower(graph, &(fixture_options){.queues = 1}, true);
    mgl_program *without = lower(graph, &(fixture_options){.queues = 1}, false);
    mgl_vm *vm = fixture_vm(program, graph, true), *none = fixture_vm(without, graph, true);
    for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++)
        check_penalty_refused(vm, (mgl_vm_sequence){.repeat_penalty = repeats[i]},
                              "repeat penalty is");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        check_penalty_refused(vm, (mgl_vm_sequence){.presence_penalty = others[i]},
                              "presence penalty is");
        check_penalty_refused(vm, (mgl_vm_sequence){.frequency_penalty = others[i]},
                              "frequency penalty is");
    }
    check_penalty_refused(vm, (mgl_vm_sequence){.repeat_penalty = 1.1f, .start = 2},
                          "2 tokens before the prompt");
    check_penalty_refused(none, (mgl_vm_sequence){.repeat_penalty = 1.1f}, "with --penalties");
    check_penalty_refused(none, (mgl_vm_sequence){.presence_penalty = 0.1f}, "with --penalties");
    check_penalty_refused(none, (mgl_vm_sequence){.frequency_penalty = -1.0f}, "with --penalties");
    mgl_vm_close(vm);
    mgl_vm_close(none);
    mgl_program_free(program);
    mgl_program_free(without);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("penalties");
    tcase_add_loop_test(tests, are_the_published_ones, 0, SHAPES);
    tcase_add_test(tests, formula_is_as_in_doubles);
    tcase_add_test(tests, no_penalty_leaves_every_bit);
    tcase_add_loop_test(tests, unused_they_change_nothing, 0, SHAPES);
    tcase_add_loop_test(tests, explore_finds_nothing, 0, SHAPES);
    tcase_add_test(tests, hostile_values_are_rejected);
    return fixture_main("penalties", tests);
}
