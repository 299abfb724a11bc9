/*
 * Tests that lowered programs are accepted, for every shape of model and number of queues, and that
 * running out of memory at any point of a check is an error, not a verdict.
 */
#include <stdio.h>

#include "support.h"

static const struct {
    mgl_geometry geometry;
    bool tied;
} models[] = {
    {{16, 2, 2, 1, 8, 24, 40, 1e-5f}, false},   {{64, 3, 4, 2, 16, 96, 131, 1e-5f}, true},
    {{48, 2, 3, 3, 16, 100, 77, 1e-6f}, false}, /* ffn not a multiple of the row group */
    {{40, 2, 6, 1, 12, 64, 1213, 1e-5f}, true}, /* heads * head_dim is not hidden */
    {{32, 1, 4, 4, 2, 20, 9, 1e-5f}, false},    /* kv rows fewer than a row group */
};
enum { MODELS = sizeof models / sizeof *models };

/* Checks that the program is accepted, and frees it. */
static void expect_accepted(mgl_program *program, const mgl_graph *graph, int splits)
{
    int queues = program->queue_count;
    mgl_verdict verdict = verdict_of(program, graph);
    ck_assert_msg(verdict.accepted, "%d queues, %d splits: MG%d %s", queues, splits,
                  verdict.count ? verdict.diagnostics[0].code : 0,
                  verdict.count ? verdict.diagnostics[0].message : "");
    ck_assert(verdict.meaning_checked);
    ck_assert_int_eq(verdict.tasks, program->task_count);
    ck_assert_int_eq(verdict.counters, program->counter_count);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}

START_TEST(lowered_is_accepted)
{
    mgl_graph *graph = make_graph(&models[_i].geometry, models[_i].tied, MGL_F32);
    static const int queues[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 132, 256};
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        for (int splits = 0; splits <= 5; splits++)
            expect_accepted(lowered(graph, queues[i], splits), graph, splits);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(lowered_with_penalties_is_accepted)
{
    mgl_graph *graph = make_graph(&models[_i].geometry, models[_i].tied, MGL_F32);
    for (int queues = 1; queues <= 16; queues++)
        expect_accepted(lowered_with_penalties(graph, queues), graph, 1);
    mgl_graph_free(graph);
}
END_TEST

/* Flags in f32, and in bf16 if the widths allow it; the last model's heads are too narrow. */
START_TEST(lowered_with_flags_is_accepted)
{
    mgl_graph *graph = make_graph(&models[_i].geometry, models[_i].tied, MGL_F32);
    static const int queues[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 132, 256};
    bool narrow = models[_i].geometry.ffn % 8 || models[_i].geometry.head_dim % 8;
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        for (int splits = 1; splits <= 5; splits++)
            for (int half = 0; half < (narrow ? 1 : 2); half++) {
                mgl_program *program =
                    lowered_with(graph, queues[i], splits, 2, half ? MGL_BF16 : MGL_F32);
                int flagged = 0;
                for (int b = 0; b < program->buffer_count; b++)
                    flagged += program->buffers[b].sets == 2;
                ck_assert_int_ge(flagged, 5 * program->geometry.layers + 1);
                expect_accepted(program, graph, splits);
            }
    mgl_graph_free(graph);
}
END_TEST

/* Whether a queue has gate and up tasks, and none of the residual stream. */
static bool has_roles(const mgl_program *p)
{
    for (int q = 0; q < p->queue_count; q++) {
        bool ffn = false, residual = false;
        for (int i = 0; i < p->queues[q].tasks.count; i++) {
            mgl_op op = p->tasks[p->queues[q].tasks.first + i].op;
            ffn |= op == MGL_OP_NORM_SWIGLU;
            residual |= op == MGL_OP_LINEAR_ADD;
        }
        if (ffn && !residual)
            return true;
    }
    return false;
}

/* With queue roles (schedule/lower/choose.c), which take one sequence. */
START_TEST(roles_are_accepted)
{
    mgl_graph *graph = make_graph(&models[_i].geometry, models[_i].tied, MGL_F32);
    mgl_error err = {0};
    int found = 0;
    for (int queues = 1; queues <= 64; queues++) {
        char name[32];
        mgl_target target;
        mgl_schedule_config config;
        mgl_lower_options options = {.dtype = MGL_F32, .capacity = 32, .sequences = 1};
        mgl_program *program = NULL;
        snprintf(name, sizeof name, "sm_90a:%d", queues);
        ck_assert_int_eq(mgl_target_parse(name, &target, &err), MGL_OK);
        mgl_schedule_config_default(&config);
        config.exchange = MGL_EXCHANGE_FLAGS;
        ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &program, &err),
                         MGL_OK);
        found += has_roles(program);
        expect_accepted(program, graph, 1);
    }
    ck_assert_int_gt(found, 0);
    mgl_graph_free(graph);
}
END_TEST

/* With steps on separate queues: other joins, other idle queues. */
START_TEST(spread_steps_are_accepted)
{
    mgl_graph *graph = tiny_graph(2);
    mgl_target target;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_target_parse("sm_90a:7", &target, &err), MGL_OK);
    for (int seed = 0; seed < 200; seed++) {
        mgl_schedule_config config;
        mgl_lower_options options = {.dtype = MGL_F32, .capacity = 32, .sequences = 1};
        mgl_program *program = NULL;
        mgl_schedule_config_default(&config);
        config.splits = 1 + seed % 3;
        for (int step = 0, n = seed * 7919; step < MGL_STEP_COUNT; step++, n = n / 7 + seed) {
            config.queues[step].first = n % 7;
            config.queues[step].count = 1 + n / 7 % (7 - n % 7);
        }
        ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &program, &err),
                         MGL_OK);
        mgl_verdict verdict = verdict_of(program, graph);
        ck_assert_msg(verdict.accepted, "seed %d: MG%d %s", seed,
                      verdict.count ? verdict.diagnostics[0].code : 0,
                      verdict.count ? verdict.diagnostics[0].message : "");
        mgl_verdict_clear(&verdict);
        mgl_program_free(program);
    }
    mgl_graph_free(graph);
}
END_TEST

START_TEST(meaning_needs_a_graph)
{
    mgl_graph *graph = tiny_graph(1);
    mgl_program *program = lowered(graph, 2, 1);
    mgl_verdict verdict = verdict_of(program, NULL);
    ck_assert(verdict.accepted);
    ck_assert(!verdict.meaning_checked);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* A program for one model is rejected for another one. */
START_TEST(another_model_is_rejected)
{
    mgl_graph *one = tiny_graph(1), *two = tiny_graph(2);
    mgl_program *program = lowered(one, 2, 1);
    mgl_verdict verdict = verdict_of(program, two);
    ck_assert(has_code(&verdict, 701));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(one);
    mgl_graph_free(two);
}
END_TEST

/* Fails the n-th allocation of a check, for all n, of an accepted and a rejected program. */
static void sweep(const mgl_program *program, const mgl_graph *graph, bool accepted)
{
    for (uint64_t n = 1;; n++) {
        mgl_verdict verdict = {0};
        mgl_error err = {0};
        mgl_alloc_fail_at(n, n % 2 == 0);
        mgl_status status = mgl_validator_check(program, graph, &verdict, &err);
        bool reached = mgl_alloc_count() >= n;
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, reached ? MGL_NO_MEMORY : MGL_OK);
        ck_assert_int_eq(verdict.accepted, !reached && accepted);
        mgl_verdict_clear(&verdict);
        if (!reached)
            return;
    }
}

START_TEST(lost_memory_is_an_error)
{
    mgl_graph *graph = tiny_graph(2);
    mgl_program *program = lowered(graph, 3, 2);
    mgl_program *bad = copy_without(program, PIECE_WAIT, program->wait_count / 2);
    sweep(program, graph, true);
    sweep(bad, graph, false);
    mgl_program_free(bad);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Checks a program with flags, and programs that each flag check rejects. */
START_TEST(lost_memory_is_an_error_with_flags)
{
    mgl_graph *graph = flags_graph();
    mgl_program *program = flags_program(2);
    int clear = 0, add = 0;
    while (program->tasks[clear].op != MGL_OP_CLEAR)
        clear++;
    while (program->tasks[add].op != MGL_OP_LINEAR_ADD)
        add++;
    mgl_program *lost = copy_without(program, PIECE_REGION, program->tasks[clear].out.first);
    mgl_program *twice = copy_without(program, DOUBLE_TASK, clear);
    mgl_program *stuck = copy_without(program, SWAP_TASK, add);
    sweep(program, graph, true);
    sweep(lost, graph, false);
    sweep(twice, graph, false);
    sweep(stuck, graph, false);
    mgl_program_free(stuck);
    mgl_program_free(twice);
    mgl_program_free(lost);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator lowered");
    TCase *cases = tcase_create("lowered");
    tcase_set_timeout(cases, 100);
    tcase_add_loop_test(cases, lowered_is_accepted, 0, MODELS);
    tcase_add_loop_test(cases, lowered_with_penalties_is_accepted, 0, MODELS);
    tcase_add_loop_test(cases, lowered_with_flags_is_accepted, 0, MODELS - 1);
    tcase_add_loop_test(cases, roles_are_accepted, 0, MODELS - 1);
    tcase_add_test(cases, spread_steps_are_accepted);
    tcase_add_test(cases, meaning_needs_a_graph);
    tcase_add_test(cases, another_model_is_rejected);
    tcase_add_test(cases, lost_memory_is_an_error);
    tcase_add_test(cases, lost_memory_is_an_error_with_flags);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
