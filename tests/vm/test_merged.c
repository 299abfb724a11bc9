/*
 * Tests of splits that the o product merges itself: the same bits as with merge tasks, safe under
 * every order of the queues, and correct after moves.
 */
#include "fixture.h"

#include <string.h>

#include "schedule/moves/moves.h"
#include "tests/vm/explore/explore.h"
#include "validator/validator.h"

enum { PROMPT = 21, MOST_LOGITS = 1213 };

static void logits_of(const mgl_graph *graph, fixture_options options, int merge, bool plain,
                      float *logits)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t prompt[PROMPT];
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = (i * 7 + 3) % 40;
    options.merge = merge;
    mgl_program *program = fixture_program(graph, &options);
    mgl_vm *vm = fixture_vm(program, graph, plain);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = PROMPT, .max_new = 6};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

static const struct {
    const mgl_geometry *model;
    fixture_options options;
} cases[] = {
    {&small_model, {.queues = 1, .splits = 2, .share = 1, .exchange = 1}},
    {&small_model, {.queues = 3, .splits = 5, .share = 4, .exchange = 1}},
    {&small_model, {.queues = 3, .splits = 5, .share = 4, .exchange = 2, .rows = 1}},
    {&small_model, {.queues = 4, .splits = 8, .share = 40, .exchange = 2}},
    {&odd_model, {.queues = 7, .splits = 3, .share = 9, .exchange = 2, .rows = 3}},
    {&tiny_model, {.queues = 2, .splits = 16, .share = 2, .exchange = 2}},
    {&small_model,
     {.queues = 3, .splits = 5, .share = 4, .exchange = 2, .rows = 2, .second_rows = 20}},
};
enum { CASES = sizeof cases / sizeof *cases };

START_TEST(logits_have_the_same_bits)
{
    static float tasks[MOST_LOGITS], merged[MOST_LOGITS];
    mgl_graph *graph = random_graph(cases[_i].model, 64, true, MGL_F32, 12);
    const size_t bytes = (size_t)cases[_i].model->vocab * sizeof *tasks;
    for (int plain = 0; plain < 2; plain++) {
        logits_of(graph, cases[_i].options, MGL_MERGE_TASKS, plain, tasks);
        logits_of(graph, cases[_i].options, MGL_MERGE_IN_O, plain, merged);
        ck_assert_mem_eq(tasks, merged, bytes);
    }
    mgl_graph_free(graph);
}
END_TEST

static int count_of(const mgl_program *p, mgl_op op)
{
    int n = 0;
    for (int i = 0; i < p->task_count; i++)
        n += p->tasks[i].op == op;
    return n;
}

START_TEST(no_task_stands_between)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 12);
    mgl_program *p = fixture_program(
        graph, &(fixture_options){.queues = 3, .splits = 3, .exchange = 2, .merge = 2});
    ck_assert_int_eq(count_of(p, MGL_OP_MERGE), 0);
    ck_assert_int_eq(count_of(p, MGL_OP_MERGE_ADD), count_of(p, MGL_OP_LINEAR_ADD));
    ck_assert_int_eq(p->limits.share, 8 * 64 / 2 - 1);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

static mgl_program *merging_program(const mgl_graph *graph, int exchange)
{
    return fixture_program(
        graph,
        &(fixture_options){
            .queues = 3, .splits = 3, .exchange = exchange, .merge = MGL_MERGE_IN_O, .share = 2});
}

static bool is_accepted(const mgl_program *program, const mgl_graph *graph)
{
    mgl_error err;
    mgl_verdict verdict = {0};
    ok(mgl_validator_check(program, graph, &verdict, &err), err);
    bool accepted = verdict.accepted && verdict.meaning_checked;
    mgl_verdict_clear(&verdict);
    return accepted;
}

/* With counters and with flags: validated, and checked with explore. */
START_TEST(no_interleaving_shows_anything)
{
    mgl_error err;
    mgl_explore_report report;
    mgl_graph *graph = random_graph(&small_model, 24, true, MGL_F32, 12);
    mgl_program *p = merging_program(graph, _i + 1);
    const int32_t prompt[] = {3, 1, 40, 7, 22, 9, 13};
    const mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 7, .max_new = 3};
    const mgl_vm_request request = {.sequences = &sequence, .count = 1};
    const mgl_explore_options options = {.request = &request, .seed = 1, .seeds = 6};
    ck_assert(is_accepted(p, graph));
    ok(mgl_explore(p, graph, &options, &report, &err), err);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s", report.message);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* The program with a move; NULL if it does not fit. */
static mgl_program *moved(const mgl_program *p, const char *move, mgl_error *err)
{
    mgl_moves moves = {0};
    mgl_program *out = NULL;
    ok(mgl_moves_parse(move, strlen(move), "moves", &moves, err), *err);
    if (mgl_moves_apply(p, &moves, &out, err))
        out = NULL;
    mgl_moves_clear(&moves);
    return out;
}

START_TEST(rows_of_o_move_and_splits_do_not)
{
    mgl_error err = {0};
    mgl_graph *graph = random_graph(&small_model, 24, true, MGL_F32, 12);
    mgl_program *p = merging_program(graph, MGL_EXCHANGE_COUNTERS);
    mgl_program *rows = moved(p, "queues layer=all step=o from=0 to=2\n", &err);
    ck_assert_msg(rows != NULL, "%s", err.message);
    ck_assert(is_accepted(rows, graph));
    ck_assert_int_eq(count_of(rows, MGL_OP_MERGE_ADD), 2 * 2);
    ck_assert_ptr_null(moved(p, "splits layer=all from=0 to=3 count=2\n", &err));
    ck_assert_msg(strstr(err.message, "its o merges the splits"), "%s", err.message);
    mgl_program_free(rows);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("merged");
    tcase_add_loop_test(tests, logits_have_the_same_bits, 0, CASES);
    tcase_add_test(tests, no_task_stands_between);
    tcase_add_loop_test(tests, no_interleaving_shows_anything, 0, 2);
    tcase_add_test(tests, rows_of_o_move_and_splits_do_not);
    return fixture_main("merged", tests);
}
