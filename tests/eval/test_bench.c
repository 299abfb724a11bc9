/* Tests of the benchmark without a device: rejected cases, the accuracy gate, and the splits of the
 * baseline's attention. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "eval/baseline.h"
#include "eval/bench.h"
#include "eval/reference.h"

static mgl_bench_request request_of(const char *shape)
{
    mgl_error err;
    mgl_bench_request request = {
        .dtype = MGL_BF16, .batch = 1, .tokens = 32, .samples = 21, .seed = 1};
    ck_assert_int_eq(mgl_synthetic_find_shape(shape, &request.config, &err), MGL_OK);
    return request;
}

START_TEST(every_shape_is_accepted)
{
    static const char *const shapes[] = {"llama-1b",      "llama-3b",     "llama-8b",
                                         "smollm2-135m",  "qwen2.5-0.5b", "qwen3-0.6b",
                                         "tinyllama-1.1b"};
    mgl_error err;
    mgl_bench_request request = request_of(shapes[_i]);
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
}
END_TEST

START_TEST(the_model_has_so_many_positions)
{
    mgl_error err;
    mgl_bench_request request = request_of("smollm2-135m");
    request.context = 8192 - 33;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
    request.context++;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    request.context = INT32_MAX;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
}
END_TEST

START_TEST(a_case_needs_room_for_its_inputs_and_tokens)
{
    mgl_bench_request request = request_of("llama-1b");
    request.context = 100;
    ck_assert_int_eq(mgl_bench_needed(&request), 133);
}
END_TEST

START_TEST(what_is_measured_fits_the_capacity)
{
    mgl_error err;
    mgl_bench_request request = request_of("llama-1b");
    request.capacity = 33;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
    request.context = 1;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "capacity");
    ck_assert_ptr_nonnull(strstr(err.message, "34 are needed, and the cache has 33"));
}
END_TEST

START_TEST(the_capacity_is_the_model_s_at_most)
{
    mgl_error err;
    mgl_bench_request request = request_of("smollm2-135m");
    request.capacity = 8192;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
    request.capacity++;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    request.capacity = -1;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
}
END_TEST

/* ---- prompts --------------------------------------------------------------------------------- */

START_TEST(a_prompt_needs_room_for_one_token_behind_it)
{
    mgl_bench_request request = request_of("llama-1b");
    request.context = 100;
    request.prompt = 512;
    ck_assert_int_eq(mgl_bench_needed(&request), 613);
}
END_TEST

START_TEST(prompts_fit_the_model)
{
    mgl_error err;
    mgl_bench_request request = request_of("smollm2-135m");
    request.prompt = 8191;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
    request.prompt++;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "prompt");
    request.prompt = INT32_MAX;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    request.prompt = -1;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
}
END_TEST

START_TEST(a_prompt_is_of_one_sequence)
{
    mgl_error err;
    mgl_bench_request request = request_of("llama-1b");
    request.prompt = 512;
    request.batch = 2;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "of one sequence"));
}
END_TEST

/* Rows per epoch, positions before, tokens; expected epochs, and the mean of the positions before
 * each. */
static const struct {
    int rows, context, prompt, epochs;
    double positions;
} cuts[] = {{1, 0, 1, 1, 0},          {1, 0, 512, 512, 255.5}, {16, 0, 512, 32, 248},
            {16, 0, 513, 33, 256},    {16, 0, 16, 1, 0},       {16, 0, 17, 2, 8},
            {16, 1000, 40, 3, 1016},  {128, 0, 2048, 16, 960}, {128, 0, 100, 1, 0},
            {4, 100000, 6, 2, 100002}};
enum { CUTS = sizeof cuts / sizeof *cuts };

START_TEST(a_prompt_is_cut_as_a_launch_cuts_it)
{
    mgl_bench_cuts found = mgl_bench_cut_prompt(cuts[_i].rows, cuts[_i].context, cuts[_i].prompt);
    ck_assert_int_eq(found.epochs, cuts[_i].epochs);
    ck_assert_double_eq_tol(found.positions, cuts[_i].positions, 1e-9);
}
END_TEST

START_TEST(a_prompt_has_a_rate)
{
    mgl_bench_result result = {.prompt = 512};
    ck_assert_double_eq_tol(mgl_bench_prompt_rate(&result, 8000), 64000, 1e-6);
}
END_TEST

/* ---- batches and queues ---------------------------------------------------------------------- */

START_TEST(batches_have_one_to_sixty_four_sequences)
{
    mgl_error err;
    mgl_bench_request request = request_of("llama-1b");
    request.batch = 64;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
    request.batch = 65;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    request.batch = 0;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
}
END_TEST

START_TEST(queues_are_as_many_as_a_program_has)
{
    mgl_error err;
    mgl_bench_request request = request_of("llama-1b");
    request.queues = MGL_MAX_QUEUES;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
    request.queues++;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
    request.queues = -1;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
}
END_TEST

START_TEST(the_second_machine_has_an_architecture)
{
    mgl_error err;
    mgl_bench_request request = request_of("llama-1b");
    request.also = "compute_80";
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_OK);
    request.also = "cp.async";
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_USAGE);
}
END_TEST

START_TEST(the_prediction_s_error_is_relative)
{
    mgl_bench_result result = {.predicted = {.us = 550}, .machine = {.median = 500}};
    ck_assert_double_eq_tol(mgl_bench_predicted_error(&result), 0.1, 1e-12);
}
END_TEST

START_TEST(heads_that_fill_no_warp_are_rejected)
{
    mgl_error err;
    mgl_bench_request request = request_of("llama-1b");
    request.config.geometry.head_dim = 96;
    ck_assert_int_eq(mgl_bench_check(&request, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "head_dim");
}
END_TEST

/* ---- the gate -------------------------------------------------------------------------------- */

START_TEST(small_errors_pass)
{
    mgl_error err;
    mgl_bench_accuracy accuracy = {.machine_error = 1.9e-2, .baseline_error = 4.9e-2};
    ck_assert_int_eq(mgl_bench_gate(&accuracy, &err), MGL_OK);
}
END_TEST

START_TEST(large_errors_fail)
{
    mgl_error err;
    mgl_bench_accuracy machine = {.machine_error = 2.1e-2, .baseline_error = 1e-3};
    mgl_bench_accuracy baseline = {.machine_error = 1e-3, .baseline_error = 5.1e-2};
    ck_assert_int_eq(mgl_bench_gate(&machine, &err), MGL_GATE);
    ck_assert_ptr_nonnull(strstr(err.message, "machine"));
    ck_assert_int_eq(mgl_bench_gate(&baseline, &err), MGL_GATE);
    ck_assert_ptr_nonnull(strstr(err.message, "baseline"));
}
END_TEST

START_TEST(the_second_machine_has_an_error_too)
{
    mgl_error err;
    mgl_bench_accuracy good = {.machine_error = 1e-3, .also_error = 1.9e-2};
    mgl_bench_accuracy bad = {.machine_error = 1e-3, .also_error = 2.1e-2};
    ck_assert_int_eq(mgl_bench_gate(&good, &err), MGL_OK);
    ck_assert_int_eq(mgl_bench_gate(&bad, &err), MGL_GATE);
    ck_assert_ptr_nonnull(strstr(err.message, "second machine"));
}
END_TEST

START_TEST(what_is_not_a_number_fails)
{
    mgl_error err;
    mgl_bench_accuracy accuracy = {.machine_error = (double)NAN, .baseline_error = 0};
    ck_assert_int_eq(mgl_bench_gate(&accuracy, &err), MGL_GATE);
}
END_TEST

START_TEST(the_distance_is_relative)
{
    const float a[] = {3, 4.5f}, b[] = {3, 4};
    ck_assert_double_eq_tol(mgl_reference_distance(a, b, 2), 0.1, 1e-9);
    ck_assert_double_eq(mgl_reference_distance(b, b, 2), 0);
}
END_TEST

START_TEST(the_distance_of_what_is_not_a_number_is_infinite)
{
    const float a[] = {NAN, 4}, b[] = {3, 4}, zero[] = {0, 0};
    ck_assert(isinf(mgl_reference_distance(a, b, 2)));
    ck_assert(isinf(mgl_reference_distance(zero, zero, 2)));
}
END_TEST

/* ---- splits of the baseline's attention ------------------------------------------------------ */

START_TEST(short_contexts_are_not_split)
{
    ck_assert_int_eq(mgl_baseline_choose_splits(1, 1, 8, 132), 1);
    ck_assert_int_eq(mgl_baseline_choose_splits(256, 1, 8, 132), 1);
    ck_assert_int_eq(mgl_baseline_choose_splits(257, 1, 8, 132), 2);
}
END_TEST

START_TEST(long_contexts_fill_the_device)
{
    ck_assert_int_eq(mgl_baseline_choose_splits(8224, 1, 8, 132), 33);
    ck_assert_int_eq(mgl_baseline_choose_splits(131072, 1, 8, 132), 66);
    ck_assert_int_eq(mgl_baseline_choose_splits(131072, 16, 8, 132), 4);
    ck_assert_int_eq(mgl_baseline_choose_splits(131072, 16, 64, 132), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bench");
    TCase *tests = tcase_create("bench");
    tcase_add_loop_test(tests, every_shape_is_accepted, 0, 7);
    tcase_add_test(tests, the_model_has_so_many_positions);
    tcase_add_test(tests, a_case_needs_room_for_its_inputs_and_tokens);
    tcase_add_test(tests, what_is_measured_fits_the_capacity);
    tcase_add_test(tests, the_capacity_is_the_model_s_at_most);
    tcase_add_test(tests, a_prompt_needs_room_for_one_token_behind_it);
    tcase_add_test(tests, prompts_fit_the_model);
    tcase_add_test(tests, a_prompt_is_of_one_sequence);
    tcase_add_loop_test(tests, a_prompt_is_cut_as_a_launch_cuts_it, 0, CUTS);
    tcase_add_test(tests, a_prompt_has_a_rate);
    tcase_add_test(tests, batches_have_one_to_sixty_four_sequences);
    tcase_add_test(tests, queues_are_as_many_as_a_program_has);
    tcase_add_test(tests, the_prediction_s_error_is_relative);
    tcase_add_test(tests, heads_that_fill_no_warp_are_rejected);
    tcase_add_test(tests, small_errors_pass);
    tcase_add_test(tests, large_errors_fail);
    tcase_add_test(tests, the_second_machine_has_an_error_too);
    tcase_add_test(tests, what_is_not_a_number_fails);
    tcase_add_test(tests, the_second_machine_has_an_architecture);
    tcase_add_test(tests, the_distance_is_relative);
    tcase_add_test(tests, the_distance_of_what_is_not_a_number_is_infinite);
    tcase_add_test(tests, short_contexts_are_not_split);
    tcase_add_test(tests, long_contexts_fill_the_device);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
