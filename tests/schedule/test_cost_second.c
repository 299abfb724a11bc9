/*
 * Tests of the cost model for programs with two lists: which list it prices, that the first list
 * costs the same alone, and what depends on rows, positions and requested logits in the second
 * list.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "schedule/cost/cost.h"

/*                               hidden layers heads kv_heads head_dim ffn vocab eps */
static const mgl_geometry small = {512, 4, 8, 2, 64, 2048, 4096, 1e-5F};
static const mgl_geometry wide = {1024, 2, 8, 2, 128, 2048, 4096, 1e-5F};
static const mgl_geometry billion = {2048, 16, 32, 8, 64, 8192, 128256, 1e-5F};
static const mgl_geometry eight_billion = {4096, 32, 32, 8, 128, 14336, 128256, 1e-5F};

enum { FEW = 4, MANY = 64, CAPACITY = 2048 };

/* Options of lowering a program. */
typedef struct lowering {
    const mgl_geometry *geometry;
    int queues, rows, second_rows, gamma_scaled, sequences, capacity;
} lowering;

/* A program whose matrices have a format; bf16 if the format is not scaled. */
static mgl_program *lowered_with(const lowering *of, mgl_weight_format format)
{
    static const float inv_freq[64] = {1};
    char name[32];
    mgl_graph *graph = NULL;
    mgl_program *program = NULL;
    mgl_target target;
    mgl_schedule_config config;
    mgl_error err = {0};
    snprintf(name, sizeof name, "sm_90a:%d", of->queues);
    mgl_schedule_config_default(&config);
    config.rows = of->rows;
    config.second_rows = of->second_rows;
    config.gamma_scaled = of->gamma_scaled;
    mgl_lower_options options = {
        .dtype = MGL_BF16, .capacity = of->capacity, .sequences = of->sequences};
    mgl_status status = mgl_target_parse(name, &target, &err);
    if (!status)
        status = mgl_graph_build_llama(of->geometry, of->capacity, true, MGL_BF16, inv_freq, &graph,
                                       &err);
    for (int i = 0; !status && i < graph->tensor_count; i++)
        if (graph->tensors[i].rank == 2 && mgl_weight_format_is_scaled(format))
            graph->tensors[i].quantized = format;
    if (!status)
        status = mgl_schedule_lower(graph, &target, &options, &config, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_graph_free(graph);
    return program;
}

static mgl_program *lowered(const lowering *of)
{
    return lowered_with(of, (mgl_weight_format){0});
}

/* Cases: panels with head dimensions 64 and 128; and, for few rows, the first list's products. */
static const lowering lowerings[] = {{&small, 16, FEW, MANY, 0, MANY, CAPACITY},
                                     {&wide, 132, FEW, 128, 0, MANY, CAPACITY},
                                     {&small, 7, 2, 16, 1, 16, CAPACITY}};
enum { LOWERINGS = sizeof lowerings / sizeof *lowerings };

static mgl_costs device;

static void find_device(void)
{
    ck_assert_int_eq(mgl_costs_find("NVIDIA H100 80GB HBM3", &device, NULL), MGL_OK);
}

static mgl_cost cost_of(const mgl_program *program, int batch, double context)
{
    mgl_cost cost;
    mgl_error err = {0};
    const mgl_cost_load load = {batch, context, 32};
    mgl_status status = mgl_schedule_cost(program, &device, &load, &cost, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return cost;
}

static mgl_cost cost_of_prompt(const mgl_program *program, const mgl_cost_prompt *prompt)
{
    mgl_cost cost;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_cost_prompt(program, &device, prompt, &cost, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return cost;
}

/* Bytes of all weights that a list reads. */
static double weights_of(const mgl_program *list)
{
    double bytes = 0;
    for (int i = 0; i < list->segment_count; i++)
        bytes += (double)mgl_segment_bytes(list, &list->segments[i]);
    return bytes;
}

/* ---- lists ----------------------------------------------------------------------------------- */

START_TEST(a_list_is_chosen_by_the_rows)
{
    mgl_program *program = lowered(&lowerings[0]);
    ck_assert_ptr_eq(mgl_cost_list(program, 1), program);
    ck_assert_ptr_eq(mgl_cost_list(program, FEW), program);
    ck_assert_ptr_eq(mgl_cost_list(program, FEW + 1), program->second);
    ck_assert_ptr_eq(mgl_cost_list(program, MANY), program->second);
    mgl_program_free(program);
}
END_TEST

/* Bitwise equal. */
START_TEST(the_first_list_costs_what_it_does_alone)
{
    mgl_program *program = lowered(&lowerings[_i]);
    const mgl_cost beside = cost_of(program, 2, 300);
    mgl_program *second = program->second;
    const mgl_limits limits = program->limits;
    program->second = NULL;
    program->limits.second_rows = 0;
    const mgl_cost alone = cost_of(program, 2, 300);
    program->second = second;
    program->limits = limits;
    ck_assert_mem_eq(&beside, &alone, sizeof alone);
    mgl_program_free(program);
}
END_TEST

START_TEST(the_second_list_reads_all_weights)
{
    mgl_program *program = lowered(&lowerings[_i]);
    const double weights = weights_of(program->second), bytes = cost_of(program, 16, 0).tape_bytes;
    const double pages = (double)program->exec.page_bytes * program->second->task_count;
    ck_assert_double_ge(bytes, weights);
    ck_assert_double_le(bytes, weights + pages);
    mgl_program_free(program);
}
END_TEST

START_TEST(parts_and_steps_add_up)
{
    mgl_program *program = lowered(&lowerings[_i]);
    const mgl_cost cost = cost_of(program, 16, 500);
    double parts = 0, steps = 0;
    for (int i = 0; i < MGL_COST_PART_COUNT; i++) {
        ck_assert_double_ge(cost.parts[i], 0);
        parts += cost.parts[i];
    }
    for (int i = 0; i <= MGL_STEP_COUNT; i++)
        steps += cost.steps[i].us;
    ck_assert_double_eq_tol(parts, cost.us, cost.us * 1e-9);
    ck_assert_double_eq_tol(steps, cost.us, cost.us * 1e-9);
    ck_assert_double_ge(cost.us, cost.floor_us);
    ck_assert_double_gt(cost.steps[MGL_STEP_DOWN].us, 0);
    mgl_program_free(program);
}
END_TEST

START_TEST(a_timeline_has_the_second_list_s_tasks)
{
    mgl_program *program = lowered(&lowerings[_i]);
    const mgl_cost_load load = {16, 0, 32};
    const mgl_program *list = mgl_cost_list(program, load.batch);
    mgl_cost cost;
    mgl_cost_span *spans = mgl_alloc_zero((size_t)list->task_count, sizeof *spans);
    ck_assert_int_eq(mgl_schedule_cost_timeline(program, &device, &load, &cost, spans, NULL),
                     MGL_OK);
    for (int t = 0; t < list->task_count; t++) {
        const double before = t && spans[t - 1].queue == spans[t].queue ? spans[t - 1].end : 0;
        ck_assert_double_ge(spans[t].start, before);
        ck_assert_double_ge(spans[t].end, spans[t].start);
    }
    ck_assert_int_eq(spans[list->task_count - 1].queue, list->queue_count - 1);
    mgl_free(spans);
    mgl_program_free(program);
}
END_TEST

START_TEST(the_same_numbers_every_time)
{
    mgl_program *program = lowered(&lowerings[_i]);
    const mgl_cost a = cost_of(program, 16, 100), b = cost_of(program, 16, 100);
    ck_assert_mem_eq(&a, &b, sizeof a);
    mgl_program_free(program);
}
END_TEST

/* ---- dependence on the load ------------------------------------------------------------------ */

START_TEST(more_rows_take_no_less)
{
    mgl_program *program = lowered(&lowerings[_i]);
    double before = cost_of(program, program->limits.rows + 1, 500).us;
    for (int batch = 8; batch <= program->limits.sequences; batch *= 2) {
        const double us = cost_of(program, batch, 500).us;
        ck_assert_double_ge(us, before);
        before = us;
    }
    mgl_program_free(program);
}
END_TEST

START_TEST(more_positions_take_longer)
{
    mgl_program *program = lowered(&lowerings[_i]);
    ck_assert_double_gt(cost_of(program, 16, 1500).us, cost_of(program, 16, 0).us);
    ck_assert_double_gt(cost_of(program, 16, 1500).cache_bytes, 0);
    mgl_program_free(program);
}
END_TEST

/* ---- prompts --------------------------------------------------------------------------------- */

/* No row has logits, so the head's weights are not read. */
START_TEST(an_epoch_before_a_prompt_s_end_has_no_head)
{
    mgl_program *program = lowered(&lowerings[0]);
    const mgl_cost_prompt middle = {64, 0, false, 1}, end = {64, 0, true, 1};
    const mgl_cost without = cost_of_prompt(program, &middle), with = cost_of_prompt(program, &end);
    ck_assert_double_gt(with.us, without.us);
    ck_assert_double_eq(without.steps[MGL_STEP_HEAD].bytes, 0);
    ck_assert_double_gt(with.steps[MGL_STEP_HEAD].bytes, 0);
    ck_assert_double_lt(without.tape_bytes, with.tape_bytes);
    mgl_program_free(program);
}
END_TEST

/* Rows of one sequence share the cached positions. */
START_TEST(a_prompt_reads_its_cache_once)
{
    mgl_program *program = lowered(&lowerings[0]);
    const mgl_cost_prompt prompt = {64, 1000, true, 1};
    ck_assert_double_eq_tol(cost_of_prompt(program, &prompt).cache_bytes * 64,
                            cost_of(program, 64, 1000).cache_bytes, 1);
    mgl_program_free(program);
}
END_TEST

START_TEST(later_epochs_of_a_prompt_take_longer)
{
    mgl_program *program = lowered(&lowerings[_i]);
    const int rows = program->limits.second_rows;
    const mgl_cost_prompt first = {rows, 0, false, 4}, later = {rows, 1500, false, 4};
    ck_assert_double_gt(cost_of_prompt(program, &later).us, cost_of_prompt(program, &first).us);
    mgl_program_free(program);
}
END_TEST

START_TEST(a_short_prompt_is_of_the_first_list)
{
    mgl_program *program = lowered(&lowerings[0]);
    const mgl_cost_prompt prompt = {1, 100, true, 32};
    const mgl_cost one = cost_of_prompt(program, &prompt), decoded = cost_of(program, 1, 100);
    ck_assert_mem_eq(&one, &decoded, sizeof one);
    mgl_program_free(program);
}
END_TEST

/* The predicted us of a prompt of this number of epochs of 128 tokens. */
static double prompt_us(int epochs)
{
    const lowering of = {&billion, 132, 0, 128, 0, 1, 128 * epochs + 1};
    mgl_program *program = lowered(&of);
    double us = 0;
    for (int i = 0; i < epochs; i++) {
        const mgl_cost_prompt prompt = {128, 128 * i, i + 1 == epochs, epochs};
        us += cost_of_prompt(program, &prompt).us;
    }
    mgl_program_free(program);
    return us;
}

/* The predicted us of a step of this number of sequences, in a second list of 64 rows. */
static double step_us(const mgl_geometry *model, int first_rows, int batch)
{
    const lowering of = {model, 132, first_rows, 64, 0, 64, 33};
    mgl_program *program = lowered(&of);
    const double us = cost_of(program, batch, 0).us;
    mgl_program_free(program);
    return us;
}

/* Compares with paper/results/h200-prompts.json, h200-batches.json and h200-batches-8b.json, to
 * which the costs of panels are fitted. The test shows that the fit still holds, not that it
 * predicts new cases. */
START_TEST(what_costs_of_panels_are_fitted_to)
{
    ck_assert_int_eq(mgl_costs_find("NVIDIA H200", &device, NULL), MGL_OK);
    const double shares[] = {prompt_us(4) / 7677.0,
                             prompt_us(16) / 31833.3,
                             step_us(&billion, 8, 64) / 1295.2,
                             step_us(&billion, 8, 16) / 973.2,
                             step_us(&billion, 8, 32) / 1107.3,
                             step_us(&eight_billion, 2, 8) / 4403.4,
                             step_us(&eight_billion, 2, 16) / 4401.3,
                             step_us(&eight_billion, 2, 32) / 4809.2,
                             step_us(&eight_billion, 2, 64) / 5482.9};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        printf("row %zu: %.3f of the measured time\n", i, shares[i]);
        ck_assert_double_eq_tol(shares[i], 1, 0.08);
    }
}
END_TEST

/* ---- rejected inputs ------------------------------------------------------------------------- */

/* Reason why a program with this number of rows and sequences does not fit the load. */
static const struct {
    int rows, second_rows, sequences, batch;
    const char *message;
} refused[] = {
    {4, 0, 4, 5, "have room for 1 to 4: more take the knob `rows` of its config"},
    {16, 0, 16, 17, "have room for 1 to 16: more take the knob `second_rows` of its config"},
    {4, 32, 32, 33, "have room for 1 to 32: more take a higher knob `second_rows` of its config"},
    {4, 32, 8, 9, "is 9; the program has room for 1 to 8"},
    {4, 32, 8, 0, "is 0; the program has room for 1 to 8"}};
enum { REFUSED = sizeof refused / sizeof *refused };

START_TEST(batches_without_a_list)
{
    const lowering of = {
        &small, 16, refused[_i].rows, refused[_i].second_rows, 0, refused[_i].sequences, CAPACITY};
    mgl_program *program = lowered(&of);
    const mgl_cost_load load = {refused[_i].batch, 0, 32};
    mgl_cost cost;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_schedule_cost(program, &device, &load, &cost, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "batch");
    ck_assert_ptr_nonnull(strstr(err.message, refused[_i].message));
    mgl_program_free(program);
}
END_TEST

static const struct {
    mgl_cost_prompt prompt;
    const char *where;
} bad_prompts[] = {{{0, 0, true, 1}, "prompt"},
                   {{MANY + 1, 0, true, 1}, "prompt"},
                   {{MANY, -1, true, 1}, "context"},
                   {{MANY, NAN, true, 1}, "context"},
                   {{MANY, CAPACITY - MANY + 1, true, 1}, "context"},
                   {{MANY, 0, true, 0}, "epochs"}};
enum { BAD_PROMPTS = sizeof bad_prompts / sizeof *bad_prompts };

START_TEST(prompts_beyond_the_program)
{
    mgl_program *program = lowered(&lowerings[0]);
    mgl_cost cost;
    mgl_error err = {0};
    ck_assert_int_eq(
        mgl_schedule_cost_prompt(program, &device, &bad_prompts[_i].prompt, &cost, &err),
        MGL_USAGE);
    ck_assert_str_eq(err.where, bad_prompts[_i].where);
    mgl_program_free(program);
}
END_TEST

START_TEST(without_memory)
{
    mgl_program *program = lowered(&lowerings[0]);
    mgl_cost cost;
    const mgl_cost_load load = {16, 100, 1};
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(mgl_schedule_cost(program, &device, &load, &cost, NULL), MGL_OK);
    const uint64_t count = mgl_alloc_count();
    for (uint64_t n = 1; n <= count; n++) {
        mgl_alloc_fail_at(n, false);
        const mgl_status status = mgl_schedule_cost(program, &device, &load, &cost, NULL);
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, MGL_NO_MEMORY);
    }
    mgl_program_free(program);
}
END_TEST

/* A panel has the same activation tiles with quantized weights as with bf16 weights. With more than
 * 64 rows, all products are panels in both cases. */
START_TEST(activation_tiles_do_not_depend_on_weights)
{
    const lowering of = {&small, 16, 1, 128, MGL_GAMMA_YES, 1, 256};
    const mgl_cost_prompt prompt = {128, 0, false, 1};
    const mgl_weight_format formats[] = {{0}, {MGL_CODE_INT4, MGL_F16, 128, 1, false}};
    double more[2];
    for (int i = 0; i < 2; i++) {
        mgl_program *p = lowered_with(&of, formats[i]);
        find_device();
        more[i] = -cost_of_prompt(p, &prompt).us;
        device.act_tile += 100;
        more[i] += cost_of_prompt(p, &prompt).us;
        mgl_program_free(p);
    }
    ck_assert_double_eq_tol(more[1], more[0], more[0] * 0.01);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule cost of many rows");
    TCase *cases = tcase_create("cost");
    tcase_set_timeout(cases, 100);
    tcase_add_checked_fixture(cases, find_device, NULL);
    tcase_add_test(cases, a_list_is_chosen_by_the_rows);
    tcase_add_loop_test(cases, the_first_list_costs_what_it_does_alone, 0, LOWERINGS);
    tcase_add_loop_test(cases, the_second_list_reads_all_weights, 0, LOWERINGS);
    tcase_add_loop_test(cases, parts_and_steps_add_up, 0, LOWERINGS);
    tcase_add_loop_test(cases, a_timeline_has_the_second_list_s_tasks, 0, LOWERINGS);
    tcase_add_loop_test(cases, the_same_numbers_every_time, 0, LOWERINGS);
    tcase_add_loop_test(cases, more_rows_take_no_less, 0, LOWERINGS);
    tcase_add_loop_test(cases, more_positions_take_longer, 0, LOWERINGS);
    tcase_add_test(cases, an_epoch_before_a_prompt_s_end_has_no_head);
    tcase_add_test(cases, a_prompt_reads_its_cache_once);
    tcase_add_loop_test(cases, later_epochs_of_a_prompt_take_longer, 0, LOWERINGS);
    tcase_add_test(cases, a_short_prompt_is_of_the_first_list);
    tcase_add_test(cases, what_costs_of_panels_are_fitted_to);
    tcase_add_test(cases, activation_tiles_do_not_depend_on_weights);
    tcase_add_loop_test(cases, batches_without_a_list, 0, REFUSED);
    tcase_add_loop_test(cases, prompts_beyond_the_program, 0, BAD_PROMPTS);
    tcase_add_test(cases, without_memory);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
