/* Tests of explore: it reports nothing for lowered programs, and detects planted faults. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/sanitized.h"
#include "tests/vm/explore/explore.h"

/* Five prompt tokens in epochs of four rows, then one new token per epoch: three epochs. A second
 * sequence makes the batch ragged. */
static const int32_t prompt[] = {3, 1, 40, 7, 22};
static const mgl_vm_sequence sequences[] = {
    {.prompt = prompt, .prompt_count = 5, .max_new = 2, .temperature = 0.8f, .seed = 5},
    {.prompt = prompt + 1, .prompt_count = 1, .max_new = 3},
};
static const mgl_vm_request request = {.sequences = sequences, .count = 2};

static mgl_program *tiny_program(const mgl_graph *graph, int queues, int splits)
{
    return fixture_program(
        graph, &(fixture_options){
                   .queues = queues, .splits = splits, .rows = 4, .sequences = 2, .capacity = 8});
}

static mgl_explore_report explore(const mgl_program *program, const mgl_graph *graph, int seeds)
{
    mgl_error err;
    mgl_explore_report report;
    mgl_explore_options options = {.request = &request, .seed = 1, .seeds = seeds, .plain = true};
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    return report;
}

static int seeds = 1000;

START_TEST(finds_nothing_in_lowered_programs)
{
    static const int queues[] = {1, 2, 3, 7, 16};
    mgl_graph *graph = random_graph(&small_model, 16, true, MGL_F32, 21);
    mgl_program *program = tiny_program(graph, queues[_i], 1);
    mgl_explore_report report = explore(program, graph, seeds);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%d queues, seed %llu: %s", queues[_i],
                  (unsigned long long)report.seed, report.message);
    ck_assert_int_eq(report.seeds, seeds);
    ck_assert_int_eq(report.epochs, 3);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_nothing_with_splits)
{
    static const int queues[] = {1, 2, 3, 7, 16};
    mgl_graph *graph = random_graph(&small_model, 16, true, MGL_F32, 22);
    mgl_program *program = tiny_program(graph, queues[_i], 3);
    mgl_explore_report report = explore(program, graph, seeds);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%d queues, seed %llu: %s", queues[_i],
                  (unsigned long long)report.seed, report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- planted faults -------------------------------------------------------------------------- */

static mgl_task *task_of(mgl_program *program, int queue, mgl_op op, int nth)
{
    const mgl_run *run = &program->queues[queue].tasks;
    for (int i = run->first; i < run->first + run->count; i++)
        if (program->tasks[i].op == op && nth-- == 0)
            return &program->tasks[i];
    ck_abort_msg("no such task");
}

/* Checks that a fault of this kind is found. */
static void check_found(mgl_program *program, const mgl_graph *graph, mgl_finding wanted,
                        const char *text)
{
    mgl_explore_report report = explore(program, graph, 200);
    ck_assert_msg(report.finding == wanted, "finding %d: %s", (int)report.finding, report.message);
    ck_assert_msg(strstr(report.message, text) != NULL, "%s", report.message);
    mgl_program_free(program);
}

/* Whether the queue's own order may replace a wait: all signals of the counter come from the
 * waiting queue, or an attend_past reads a q that may be of its own queue. */
static bool may_be_needless(const mgl_program *program, int wait)
{
    int waiter = -1, producer = -1;
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_run *run = &program->queues[q].tasks;
        for (int i = run->first; i < run->first + run->count; i++) {
            const mgl_task *t = &program->tasks[i];
            if (wait >= t->waits.first && wait < t->waits.first + t->waits.count) {
                waiter = q;
                if (t->op == MGL_OP_ATTEND_PAST)
                    return true;
            }
            for (int j = 0; j < t->signals.count; j++)
                if (program->signals[t->signals.first + j] == program->waits[wait].counter)
                    producer = producer < 0 || producer == q ? q : program->queue_count;
        }
    }
    return waiter == producer;
}

/* Every threshold of a lowered program reduced by one: each is detected. */
START_TEST(every_lower_threshold_is_found)
{
    int checked = 0;
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 23);
    for (int queues = 2; queues <= 3; queues++) {
        mgl_program *program = tiny_program(graph, queues, 1 + _i);
        for (int i = 0; i < program->wait_count; i++) {
            mgl_wait *wait = &program->waits[i];
            const char *name = program->counters[wait->counter].name;
            if (wait->threshold == 0 || may_be_needless(program, i))
                continue;
            wait->threshold--;
            mgl_explore_report report = explore(program, graph, 200);
            ck_assert_msg(report.finding == MGL_FOUND_RACE ||
                              report.finding == MGL_FOUND_UNINITIALISED,
                          "%d queues, wait %d for %s: %d %s", queues, i, name, (int)report.finding,
                          report.message);
            wait->threshold++;
            checked++;
        }
        mgl_program_free(program);
    }
    ck_assert_int_gt(checked, 40);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_an_unwritten_cache)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 24);
    mgl_program *program = tiny_program(graph, 3, 1);
    /* layer 1 writes the cache of layer 0 and reads its own */
    mgl_task *first = task_of(program, 2, MGL_OP_ATTEND, 0);
    mgl_task *second = task_of(program, 2, MGL_OP_ATTEND, 1);
    for (int i = 1; i <= 2; i++)
        program->regions[second->out.first + i].buffer =
            program->regions[first->out.first + i].buffer;
    check_found(program, graph, MGL_FOUND_UNINITIALISED, "reads k1 of sequence 0 at position 0");
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_a_deadlock)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 25);
    mgl_program *program = tiny_program(graph, 2, 1);
    task_of(program, 1, MGL_OP_NORM_SWIGLU, 1)->signals.count = 0;
    check_found(program, graph, MGL_FOUND_STUCK,
                "waits for counter l1.gate_up: expected 2, found 1");
    program = tiny_program(graph, 2, 1);
    /* a cycle: l0.o of queue 0 waits for the end of its own epoch */
    mgl_task *o = task_of(program, 0, MGL_OP_LINEAR_ADD, 0);
    mgl_task *head = task_of(program, 1, MGL_OP_HEAD, 0);
    program->waits[o->waits.first] = (mgl_wait){program->signals[head->signals.first], 2};
    check_found(program, graph, MGL_FOUND_STUCK, "nothing can run");
    mgl_graph_free(graph);
}
END_TEST

/* A second control buffer without a writer: queue 1 reads "stop" in the first epoch. */
START_TEST(finds_an_early_exit)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 26);
    mgl_program *program = tiny_program(graph, 2, 1);
    mgl_task *enter = task_of(program, 1, MGL_OP_ENTER, 0);
    mgl_region *control = &program->regions[enter->in.first];
    mgl_buffer other = program->buffers[control->buffer];
    other.name = "control2";
    other.space = MGL_SPACE_CONST; /* without a source: zeros */
    other.source = MGL_SOURCE_NONE;
    int index = mgl_program_add_buffer(program, &other);
    program->regions[task_of(program, 1, MGL_OP_ENTER, 0)->in.first].buffer = index;
    check_found(program, graph, MGL_FOUND_EARLY_EXIT, "queue 1 leaves at epoch 0");
    mgl_graph_free(graph);
}
END_TEST

/* Without its wait at the epoch edge, a queue reads a buffer while sample writes it. */
START_TEST(finds_a_missing_epoch_edge)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 27);
    mgl_program *program = tiny_program(graph, 2, 1);
    task_of(program, 1, MGL_OP_ENTER, 0)->waits.count = 0;
    check_found(program, graph, MGL_FOUND_RACE, "queue 1");
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_an_uninitialised_read)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 28);
    mgl_program *program = tiny_program(graph, 2, 1);
    /* the last column of x has no writer */
    mgl_task *embed = task_of(program, 1, MGL_OP_EMBED, 0);
    program->regions[embed->in.first].ranges[1].hi--;
    program->regions[embed->out.first].ranges[1].hi--;
    check_found(program, graph, MGL_FOUND_UNINITIALISED, "x");
    mgl_graph_free(graph);
}
END_TEST

/* ---- flags ----------------------------------------------------------------------------------- */

static mgl_program *flag_program(const mgl_graph *graph, int queues, int splits)
{
    return fixture_program(graph, &(fixture_options){.queues = queues,
                                                     .splits = splits,
                                                     .rows = 4,
                                                     .sequences = 2,
                                                     .capacity = 8,
                                                     .exchange = 2});
}

START_TEST(finds_nothing_in_programs_with_flags)
{
    static const int queues[] = {1, 2, 3, 7};
    mgl_graph *graph = random_graph(&small_model, 16, true, MGL_F32, 31);
    mgl_program *program = flag_program(graph, queues[_i / 2], 1 + _i % 2 * 2);
    mgl_explore_report report = explore(program, graph, seeds / 4);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%d queues, seed %llu: %s", queues[_i / 2],
                  (unsigned long long)report.seed, report.message);
    ck_assert_int_eq(report.epochs, 3);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Three sets, and eight, more than the epochs. */
START_TEST(finds_nothing_with_more_sets)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 32);
    mgl_program *program = flag_program(graph, 3, 1);
    for (int i = 0; i < program->buffer_count; i++)
        if (program->buffers[i].sets > 1)
            program->buffers[i].sets = 3 + 5 * _i;
    mgl_explore_report report = explore(program, graph, 100);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s", report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Removes region `nth` from a clear; the last one takes its place. */
static void drop_cleared(mgl_program *program, mgl_task *clear, int nth)
{
    program->regions[clear->out.first + nth] =
        program->regions[clear->out.first + clear->out.count - 1];
    clear->out.count--;
}

/* Each region of each clear left out: each is detected, with the words' earlier writer. */
START_TEST(every_missing_clear_is_found)
{
    int checked = 0;
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 33);
    for (int t = 0, nth = 0, tasks = 1; t < tasks; nth++) {
        mgl_program *program = flag_program(graph, 3, 1 + _i);
        mgl_task *task = &program->tasks[t];
        tasks = program->task_count;
        if (task->op == MGL_OP_CLEAR && nth < task->out.count) {
            drop_cleared(program, task, nth);
            check_found(program, graph, MGL_FOUND_STALE, "in epoch 0");
            checked++;
        } else {
            mgl_program_free(program);
            t++;
            nth = -1;
        }
    }
    ck_assert_int_gt(checked, 10);
    mgl_graph_free(graph);
}
END_TEST

/* After head, whose signal sample waits for, nothing orders a clear before the next epoch. */
START_TEST(finds_a_late_clear)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 34);
    mgl_program *program = flag_program(graph, 2, 1);
    mgl_task *head = task_of(program, 1, MGL_OP_HEAD, 0), copy = head[-1];
    ck_assert_int_eq(copy.op, MGL_OP_CLEAR);
    ck_assert_int_eq(head[1].op, MGL_OP_DRAW);
    head[-1] = head[0];
    head[0] = head[1];
    head[1] = copy;
    check_found(program, graph, MGL_FOUND_RACE, "(clear)");
    mgl_graph_free(graph);
}
END_TEST

/* Two queues update the residual: o writes it on one queue, down adds to it on the other. Only flag
 * edges are between them. */
START_TEST(flags_order_no_other_words)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 35);
    mgl_program *program = flag_program(graph, 2, 1);
    mgl_task *a = task_of(program, 0, MGL_OP_LINEAR_ADD, 1);
    mgl_task *b = task_of(program, 1, MGL_OP_LINEAR_ADD, 1);
    for (int i = a->in.first + 1, j = b->in.first + 1; i < a->out.first + a->out.count; i++, j++) {
        mgl_region copy = program->regions[i];
        program->regions[i] = program->regions[j];
        program->regions[j] = copy;
    }
    check_found(program, graph, MGL_FOUND_RACE, "reads r, and nothing orders that");
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_a_reader_without_flag)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 36);
    mgl_program *program = flag_program(graph, 2, 1);
    program->regions[task_of(program, 1, MGL_OP_NORM_LINEAR, 0)->in.first].flag = false;
    mgl_explore_report report = explore(program, graph, 50);
    ck_assert_msg(report.finding == MGL_FOUND_RACE || report.finding == MGL_FOUND_UNINITIALISED,
                  "finding %d: %s", (int)report.finding, report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_a_writer_without_flag)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 37);
    mgl_program *program = flag_program(graph, 2, 1);
    program->regions[task_of(program, 1, MGL_OP_NORM_SWIGLU, 0)->out.first].flag = false;
    check_found(program, graph, MGL_FOUND_RACE, "(norm_swiglu)");
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_a_word_that_nobody_writes)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 38);
    mgl_program *program = flag_program(graph, 2, 1);
    /* the last two words of the input of layer 0 */
    mgl_task *embed = task_of(program, 1, MGL_OP_EMBED, 0);
    program->regions[embed->in.first].ranges[1].hi -= 2;
    program->regions[embed->out.first].ranges[1].hi -= 2;
    program->regions[embed->out.first + 1].ranges[1].hi -= 2;
    check_found(program, graph, MGL_FOUND_STUCK, "waits for words of l0.x");
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_two_writers_of_a_word)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 39);
    mgl_program *program = flag_program(graph, 2, 1);
    mgl_task *a = task_of(program, 0, MGL_OP_EMBED, 0), *b = task_of(program, 1, MGL_OP_EMBED, 0);
    program->regions[b->out.first + 1] = program->regions[a->out.first + 1];
    check_found(program, graph, MGL_FOUND_RACE, "have a writer in this epoch");
    mgl_graph_free(graph);
}
END_TEST

START_TEST(finds_a_reader_before_its_writer)
{
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 40);
    mgl_program *program = flag_program(graph, 2, 1);
    mgl_task *attend = task_of(program, 1, MGL_OP_ATTEND, 0), copy = *attend;
    mgl_task *o = task_of(program, 1, MGL_OP_LINEAR_ADD, 0);
    *attend = *o;
    *o = copy;
    check_found(program, graph, MGL_FOUND_STUCK, "waits for words of l0.att");
    mgl_graph_free(graph);
}
END_TEST

/* explore accepts the tokens of the CPU VM, and reports any others. */
START_TEST(compares_with_a_run)
{
    mgl_error err;
    mgl_vm_report wanted;
    mgl_explore_report report;
    int32_t other[] = {-1, -1, -1};
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 41);
    mgl_program *program = tiny_program(graph, 2, 1);
    mgl_vm *vm = fixture_vm(program, graph, true);
    ok(mgl_vm_run(vm, &request, &wanted, &err), err);
    mgl_explore_options options = {
        .request = &request, .seed = 1, .seeds = 5, .plain = true, .wanted = &wanted};
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_int_eq(report.finding, MGL_FOUND_NOTHING);
    wanted.output[1] = other;
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_int_eq(report.finding, MGL_FOUND_DIFFERENCE);
    ck_assert_str_eq(report.message, "sequence 1: tokens or scores differ from the expected ones");
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(survives_running_out_of_memory)
{
    mgl_error err;
    mgl_explore_report report;
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 29);
    mgl_program *program = _i ? flag_program(graph, 2, 1) : tiny_program(graph, 2, 1);
    mgl_explore_options options = {.request = &request, .seeds = 2};
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status != MGL_OK; n++) {
        mgl_alloc_fail_at(n, false);
        status = mgl_explore(program, graph, &options, &report, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
    }
    ck_assert_int_eq(report.finding, MGL_FOUND_NOTHING);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("explore");
    if (argc > 1)
        seeds = atoi(argv[1]);
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, finds_nothing_in_lowered_programs, 0, BY_SANITIZER(5, 1));
    tcase_add_loop_test(tests, finds_nothing_with_splits, 0, BY_SANITIZER(5, 1));
    tcase_add_loop_test(tests, every_lower_threshold_is_found, 0, 2);
    tcase_add_loop_test(tests, finds_nothing_in_programs_with_flags, 0, BY_SANITIZER(8, 2));
    tcase_add_loop_test(tests, finds_nothing_with_more_sets, 0, 2);
    tcase_add_loop_test(tests, every_missing_clear_is_found, 0, 2);
    tcase_add_test(tests, finds_a_late_clear);
    tcase_add_test(tests, flags_order_no_other_words);
    tcase_add_test(tests, finds_a_reader_without_flag);
    tcase_add_test(tests, finds_a_writer_without_flag);
    tcase_add_test(tests, finds_a_word_that_nobody_writes);
    tcase_add_test(tests, finds_two_writers_of_a_word);
    tcase_add_test(tests, finds_a_reader_before_its_writer);
    tcase_add_test(tests, compares_with_a_run);
    tcase_add_loop_test(tests, survives_running_out_of_memory, 0, 2);
    tcase_add_test(tests, finds_an_unwritten_cache);
    tcase_add_test(tests, finds_a_deadlock);
    tcase_add_test(tests, finds_an_early_exit);
    tcase_add_test(tests, finds_a_missing_epoch_edge);
    tcase_add_test(tests, finds_an_uninitialised_read);
    return fixture_main("explore", tests);
}
