/*
 * Tests of programs with two lists on the CPU: for every list of an epoch and every division, a
 * reply has the tokens of a program with one list. explore reports nothing for lowered programs and
 * detects planted faults.
 */
#include "fixture.h"
#include "tests/vm/cuda/mirror.h"

#include <math.h>
#include <string.h>

#include "schedule/step.h"
#include "tests/sanitized.h"
#include "tests/vm/explore/explore.h"

enum { PROMPT = 40, NEW = 8, CAPACITY = 64, MOST = 20 };

/* Token i of the prompt of sequence s. */
static int32_t token_of(int s, int i)
{
    return (int32_t)((unsigned)(s * 7919 + i * 104729 + 13) % 41);
}

/* A launch of several replies: prompts of all lengths, greedy and sampled. */
struct batch {
    int32_t prompts[MOST][PROMPT];
    mgl_vm_sequence sequences[MOST];
    mgl_vm_request request;
};

static void fill_batch(struct batch *b, int count)
{
    memset(b, 0, sizeof *b);
    for (int s = 0; s < count; s++) {
        int length = 1 + (s * 11 + 5) % PROMPT;
        for (int i = 0; i < length; i++)
            b->prompts[s][i] = token_of(s, i);
        b->sequences[s] = (mgl_vm_sequence){.prompt = b->prompts[s],
                                            .prompt_count = length,
                                            .max_new = 1 + (s * 5 + 3) % NEW,
                                            .temperature = s % 3 == 2 ? 0.9f : 0.0f,
                                            .seed = (uint64_t)s};
    }
    b->request = (mgl_vm_request){.sequences = b->sequences, .count = count};
}

static mgl_vm_report run(mgl_vm *vm, const mgl_vm_request *request)
{
    mgl_error err;
    mgl_vm_report report;
    ok(mgl_vm_run(vm, request, &report, &err), err);
    return report;
}

/* Generates each reply of the batch alone, with a program with one list. */
static void replies_alone(const mgl_graph *graph, const struct batch *b, int32_t (*tokens)[NEW])
{
    mgl_program *program = fixture_program(graph, &(fixture_options){.capacity = CAPACITY});
    mgl_vm *vm = fixture_vm(program, graph, true);
    for (int s = 0; s < b->request.count; s++) {
        mgl_vm_report report =
            run(vm, &(mgl_vm_request){.sequences = &b->sequences[s], .count = 1});
        memcpy(tokens[s], report.output[0], (size_t)report.produced[0] * sizeof **tokens);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
}

static void check_replies(const mgl_graph *graph, const struct batch *b,
                          const fixture_options *options, bool plain, int32_t (*wanted)[NEW])
{
    mgl_program *program = fixture_program(graph, options);
    mgl_vm *vm = fixture_vm(program, graph, plain);
    mgl_vm_report report = run(vm, &b->request);
    for (int s = 0; s < b->request.count; s++) {
        ck_assert_int_eq(report.produced[s], b->sequences[s].max_new);
        for (int i = 0; i < report.produced[s]; i++)
            ck_assert_msg(
                report.output[s][i] == wanted[s][i],
                "queues %d rows %d second_rows %d plain %d: token %d of reply %d is %d, not %d",
                options->queues, options->rows, options->second_rows, plain, i, s,
                report.output[s][i], wanted[s][i]);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
}

/* Rows of both lists, with as many replies as rows of the second list, or fewer. */
static const struct {
    int queues, rows, second_rows, count, exchange, splits;
} shapes[] = {{1, 1, 2, 1, 1, 1},   {1, 4, 64, 1, 1, 1},    {2, 16, 128, 20, 1, 1},
              {3, 2, 20, 20, 1, 1}, {7, 4, 23, 18, 1, 3},   {2, 3, 7, 5, 2, 1},
              {3, 4, 40, 20, 2, 3}, {16, 16, 17, 17, 2, 2}, {5, 8, 31, 8, 1, 1},
              {132, 4, 33, 3, 1, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(replies_are_those_alone)
{
    static struct batch b;
    int32_t wanted[MOST][NEW];
    mgl_graph *graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 31);
    fixture_options options = {.queues = shapes[_i].queues,
                               .rows = shapes[_i].rows,
                               .second_rows = shapes[_i].second_rows,
                               .sequences = shapes[_i].count,
                               .exchange = shapes[_i].exchange,
                               .splits = shapes[_i].splits,
                               .capacity = CAPACITY};
    fill_batch(&b, shapes[_i].count);
    replies_alone(graph, &b, wanted);
    for (int plain = 0; plain < 2; plain++)
        check_replies(graph, &b, &options, plain, wanted);
    mgl_graph_free(graph);
}
END_TEST

/* A prompt of 40 in epochs of up to 32 rows, then one row an epoch. */
START_TEST(a_prompt_takes_few_epochs)
{
    static struct batch b;
    mgl_graph *graph = random_graph(&tiny_model, CAPACITY, true, MGL_F32, 32);
    mgl_program *program = fixture_program(
        graph, &(fixture_options){.rows = 4, .second_rows = 32, .capacity = CAPACITY, .queues = 2});
    mgl_vm *vm = fixture_vm(program, graph, false);
    fill_batch(&b, 1);
    for (int i = 0; i < PROMPT; i++)
        b.prompts[0][i] = token_of(0, i);
    b.sequences[0].prompt_count = PROMPT;
    b.sequences[0].max_new = 6;
    mgl_vm_report report = run(vm, &b.request);
    ck_assert_int_eq(report.epochs, 2 + 5);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(scores_are_those_of_one_list)
{
    static struct batch b;
    mgl_graph *graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 33);
    float wanted[PROMPT];
    for (int second_rows = 0; second_rows <= 32; second_rows += 32) {
        mgl_program *program = fixture_program(
            graph, &(fixture_options){
                       .rows = 3, .second_rows = second_rows, .capacity = CAPACITY, .queues = 3});
        mgl_vm *vm = fixture_vm(program, graph, true);
        fill_batch(&b, 1);
        for (int i = 0; i < PROMPT; i++)
            b.prompts[0][i] = token_of(1, i);
        b.sequences[0] =
            (mgl_vm_sequence){.mode = MGL_VM_SCORE, .prompt = b.prompts[0], .prompt_count = PROMPT};
        mgl_vm_report report = run(vm, &b.request);
        if (!second_rows)
            memcpy(wanted, report.score[0], sizeof wanted);
        else
            ck_assert_mem_eq(wanted, report.score[0], sizeof wanted);
        mgl_vm_close(vm);
        mgl_program_free(program);
    }
    mgl_graph_free(graph);
}
END_TEST

/* The available logits are those of the last epoch, of either list. */
START_TEST(logits_are_of_the_last_epoch)
{
    static struct batch b;
    mgl_error err;
    float wanted[75], logits[75];
    mgl_graph *graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 34);
    for (int second_rows = 0; second_rows <= 64; second_rows += 64) {
        mgl_program *program = fixture_program(
            graph, &(fixture_options){
                       .rows = 2, .second_rows = second_rows, .capacity = CAPACITY, .queues = 2});
        mgl_vm *vm = fixture_vm(program, graph, true);
        fill_batch(&b, 1);
        b.sequences[0].max_new = 1;
        run(vm, &b.request);
        ok(mgl_vm_get_logits(vm, second_rows ? logits : wanted, &err), err);
        if (second_rows) { /* the last row of the prompt; of one list, the last of two rows */
            int row = b.sequences[0].prompt_count - 1;
            ck_assert_mem_eq(wanted, logits, sizeof wanted);
            memset(logits, 0, sizeof logits);
            ok(mgl_vm_get_row_logits(vm, row, logits, &err), err);
            ck_assert_mem_eq(wanted, logits, sizeof wanted);
        }
        mgl_vm_close(vm);
        mgl_program_free(program);
    }
    mgl_graph_free(graph);
}
END_TEST

/* A machine exchanges a program with one list for one with two, and back. */
START_TEST(lists_come_and_go)
{
    static struct batch b;
    mgl_error err;
    int32_t wanted[MOST][NEW];
    mgl_graph *graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 38);
    mgl_program *programs[2];
    for (int i = 0; i < 2; i++)
        programs[i] = fixture_program(graph, &(fixture_options){.rows = 4,
                                                                .second_rows = i ? 50 : 0,
                                                                .sequences = 3,
                                                                .queues = 2 + i,
                                                                .capacity = CAPACITY});
    fill_batch(&b, 3);
    replies_alone(graph, &b, wanted);
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    for (int turn = 1; turn < 4; turn++) {
        ok(mgl_vm_exchange(vm, programs[turn % 2], graph, &err), err);
        mgl_vm_report report = run(vm, &b.request);
        for (int s = 0; s < 3; s++)
            ck_assert_mem_eq(report.output[s], wanted[s],
                             (size_t)report.produced[s] * sizeof **wanted);
    }
    mgl_vm_close(vm);
    mgl_program_free(programs[0]);
    mgl_program_free(programs[1]);
    mgl_graph_free(graph);
}
END_TEST

/* Logits after a prompt in one epoch of the second list, with the given exchange. */
static void logits_of(const mgl_graph *graph, mgl_dtype dtype, int gamma_scaled, bool plain,
                      float *logits)
{
    static struct batch b;
    mgl_error err;
    mgl_program *program = fixture_program(graph, &(fixture_options){.dtype = dtype,
                                                                     .queues = 3,
                                                                     .rows = 4,
                                                                     .second_rows = 24,
                                                                     .gamma_scaled = gamma_scaled,
                                                                     .capacity = CAPACITY});
    mgl_vm *vm = fixture_vm(program, graph, plain);
    fill_batch(&b, 1);
    b.sequences[0].prompt_count = 24;
    b.sequences[0].max_new = 1;
    for (int i = 0; i < 24; i++)
        b.prompts[0][i] = token_of(2, i);
    run(vm, &b.request);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

/* The norm of the difference of the logits, relative to the norm of the expected ones. */
static double distance(const float *a, const float *wanted, int count)
{
    double apart = 0, mean = 0, spread = 0;
    for (int i = 0; i < count; i++)
        mean += (double)wanted[i] / count;
    for (int i = 0; i < count; i++) {
        apart += pow((double)a[i] - (double)wanted[i], 2);
        spread += pow((double)wanted[i] - mean, 2);
    }
    return sqrt(apart / spread);
}

/* Gamma-scaled values are exact except for rounding: to f32, or with bf16 to 8 bits. */
START_TEST(gamma_scaled_values_are_the_exact_ones_rounded)
{
    static const mgl_dtype dtypes[] = {MGL_F32, MGL_F16, MGL_BF16};
    static const double bounds[] = {1e-5, 4e-3, 3e-2};
    const bool plain = _i % 2, family = _i / 2 % 2;
    const mgl_dtype dtype = dtypes[_i / 4];
    float exact[75], gamma_scaled[75];
    mgl_graph *graph =
        random_family(&small_model, family ? ALL_EXTRAS : 0, CAPACITY, true, dtype, 39);
    logits_of(graph, dtype, MGL_GAMMA_NO, plain, exact);
    logits_of(graph, dtype, MGL_GAMMA_YES, plain, gamma_scaled);
    const double apart = distance(gamma_scaled, exact, 75);
    ck_assert_double_lt(apart, bounds[_i / 4]);
    ck_assert_double_gt(apart, 0);
    mgl_graph_free(graph);
}
END_TEST

/* Epochs of 17 rows and more exchange 16 bits where the program does, and f32 where it does not. */
START_TEST(the_formats_choose)
{
    static const struct {
        mgl_dtype dtype;
        int second_rows;
        bool gamma_scaled;
    } cases[] = {
        {MGL_BF16, 17, true}, {MGL_F16, 64, false}, {MGL_BF16, 16, false}, {MGL_F32, 64, false}};
    mgl_graph *graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 40);
    mgl_program *program = fixture_program(
        graph, &(fixture_options){
                   .dtype = cases[_i].dtype, .rows = 4, .second_rows = cases[_i].second_rows});
    int gamma_scaled = 0;
    for (int t = 0; t < program->second->task_count; t++)
        gamma_scaled += program->second->tasks[t].op == MGL_OP_RMS_LINEAR;
    ck_assert_int_eq(gamma_scaled > 0, cases[_i].gamma_scaled);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- explore --------------------------------------------------------------------------------- */

static mgl_explore_report explore(const mgl_program *program, const mgl_graph *graph, int seeds)
{
    static struct batch b;
    mgl_error err;
    mgl_explore_report report;
    fill_batch(&b, 3);
    for (int s = 0; s < 3; s++) {
        b.sequences[s].prompt_count = 1 + 5 * s;
        b.sequences[s].max_new = 3 - s;
    }
    mgl_explore_options options = {.request = &b.request, .seed = 1, .seeds = seeds, .plain = true};
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    return report;
}

static mgl_program *tiny_program(const mgl_graph *graph, int queues, int exchange, int gamma_scaled)
{
    return fixture_program(graph, &(fixture_options){.queues = queues,
                                                     .gamma_scaled = gamma_scaled,
                                                     .rows = 2,
                                                     .second_rows = 9,
                                                     .sequences = 3,
                                                     .exchange = exchange,
                                                     .capacity = 16});
}

START_TEST(finds_nothing_in_lowered_programs)
{
    static const int queues[] = {1, 2, 3, 7};
    mgl_graph *graph = random_graph(&small_model, 16, true, MGL_F32, 35);
    mgl_program *program = tiny_program(graph, queues[_i % 4], 1 + _i / 4 % 2, 1 + _i / 8);
    mgl_explore_report report = explore(program, graph, 200);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%d queues, seed %llu: %s", queues[_i % 4],
                  (unsigned long long)report.seed, report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Flags and clears in the second list: all words are reset, for any number of rows in an epoch.
 * Three epochs of it, so that a set is reused. */
START_TEST(flags_of_the_second_list_are_cleared)
{
    static struct batch b;
    mgl_error err;
    mgl_explore_report report;
    mgl_graph *graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 39);
    mgl_program *program = fixture_program(
        graph, &(fixture_options){.queues = 3, .rows = 2, .second_rows = 7, .exchange = 2});
    mirror_list(program, 2 + _i);
    fill_batch(&b, 1);
    b.sequences[0].prompt_count = 30;
    mgl_explore_options options = {.request = &b.request, .seed = 1, .seeds = 20, .plain = true};
    ok(mgl_vm_check(program, graph, &err), err);
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "seed %llu: %s",
                  (unsigned long long)report.seed, report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Whether all signals of the counter come from the waiting queue. */
static bool is_own(const mgl_program *list, int queue, int counter)
{
    for (int q = 0; q < list->queue_count; q++)
        for (int t = 0; t < list->queues[q].tasks.count; t++) {
            const mgl_run *run = &list->tasks[list->queues[q].tasks.first + t].signals;
            for (int i = run->first; i < run->first + run->count; i++)
                if (list->signals[i] == counter && q != queue)
                    return false;
        }
    return true;
}

/* Reduces every threshold of the second list by one. */
START_TEST(every_lower_threshold_is_found)
{
    int checked = 0;
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 36);
    mgl_program *program = tiny_program(graph, 3, 1 + _i % 2, 1 + _i / 2);
    mgl_program *second = program->second;
    for (int q = 0; q < second->queue_count; q++)
        for (int t = 0; t < second->queues[q].tasks.count; t++) {
            const mgl_run *run = &second->tasks[second->queues[q].tasks.first + t].waits;
            for (int i = run->first; i < run->first + run->count; i++) {
                mgl_wait *wait = &second->waits[i];
                if (wait->threshold == 0 || is_own(second, q, wait->counter))
                    continue;
                wait->threshold--;
                mgl_explore_report report = explore(program, graph, 300);
                ck_assert_msg(report.finding == MGL_FOUND_RACE ||
                                  report.finding == MGL_FOUND_UNINITIALISED,
                              "wait %d for %s: %d %s", i, second->counters[wait->counter].name,
                              (int)report.finding, report.message);
                wait->threshold++;
                checked++;
            }
        }
    ck_assert_int_gt(checked, 10);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* An enter of the second list that does not wait for the previous epoch's sample. */
START_TEST(finds_an_epoch_that_is_preissued)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 37);
    mgl_program *program = tiny_program(graph, 3, 1, MGL_GAMMA_NO);
    mgl_program *list = _i ? program->second : program;
    list->tasks[list->queues[1].tasks.first].waits.count = 0;
    mgl_explore_report report = explore(program, graph, 300);
    ck_assert_int_ne(report.finding, MGL_FOUND_NOTHING);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("lists");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, replies_are_those_alone, 0, SHAPES);
    tcase_add_test(tests, a_prompt_takes_few_epochs);
    tcase_add_test(tests, scores_are_those_of_one_list);
    tcase_add_test(tests, logits_are_of_the_last_epoch);
    tcase_add_test(tests, lists_come_and_go);
    tcase_add_loop_test(tests, gamma_scaled_values_are_the_exact_ones_rounded, 0, 12);
    tcase_add_loop_test(tests, the_formats_choose, 0, 4);
    tcase_add_loop_test(tests, finds_nothing_in_lowered_programs, 0, BY_SANITIZER(16, 3));
    tcase_add_loop_test(tests, every_lower_threshold_is_found, 0, 4);
    tcase_add_loop_test(tests, flags_of_the_second_list_are_cleared, 0, 3);
    tcase_add_loop_test(tests, finds_an_epoch_that_is_preissued, 0, 2);
    return fixture_main("lists", tests);
}
