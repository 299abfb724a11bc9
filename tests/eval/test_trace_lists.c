/*
 * Tests of traces of programs with two lists, with artificial events: one epoch in three is of the
 * second list. Task i of a queue has a slot of 1,000 ns, the i-th of its epoch, and sample has the
 * last slot, so that every epoch begins after the sample of the epoch before.
 */
#include "base/json.h"
#include "base/memory.h"
#include "launch.h"

#include <string.h>

enum { QUEUES = 3, SLOT = 1000, SLOTS = 40, EPOCH = SLOT * SLOTS, END = 900, AHEAD = 2 };

static bool is_second(int64_t epoch)
{
    return epoch % 3 == 1;
}

static mgl_device_event make_event(mgl_op op, int slot, int epoch)
{
    const uint32_t at = 5000u + (uint32_t)(epoch * EPOCH + slot * SLOT);
    mgl_device_event event = {.epoch = (uint32_t)epoch + 1, .begin = at, .go = at + 100};
    event.end = at + END;
    if (mgl_op_get(op)->family == MGL_FAMILY_PRODUCT) {
        event.input = at + 300;
        event.products = at + 700;
        event.ahead = AHEAD;
    }
    return event;
}

/* Writes the events of an epoch over those of an earlier epoch. */
static void add_epoch(struct launch *l, int epoch)
{
    const mgl_program *list = is_second(epoch) ? l->program->second : l->program;
    mgl_device_event *to = l->events + epoch % l->epochs * l->tasks;
    if (is_second(epoch))
        to += l->program->task_count;
    for (int q = 0; q < list->queue_count; q++)
        for (int i = 0; i < list->queues[q].tasks.count; i++) {
            const int t = list->queues[q].tasks.first + i;
            const mgl_op op = list->tasks[t].op;
            ck_assert_int_lt(i, SLOTS - 1);
            if (op != MGL_OP_CLEAR)
                to[t] = make_event(op, op == MGL_OP_SAMPLE ? SLOTS - 1 : i, epoch);
        }
}

/* Simulates a launch of `count` epochs, of which the last ones are kept. Loop tests: _i is the
 * exchange. */
static struct launch make_launch(int exchange, int count, int kept)
{
    const fixture_options options = {.queues = QUEUES,
                                     .dtype = MGL_BF16,
                                     .splits = 2,
                                     .rows = 2,
                                     .second_rows = 8,
                                     .exchange = exchange};
    struct launch l = launch_open(&options, kept);
    for (int epoch = 0; epoch < count; epoch++)
        add_epoch(&l, epoch);
    return l;
}

/* Remaining events of older epochs of the other list are ignored. */
START_TEST(rows_have_lists)
{
    struct launch l = make_launch(_i, 11, 4);
    mgl_trace *trace = launch_trace(&l);
    ck_assert_int_eq(trace->lists, 2);
    ck_assert_int_eq(trace->rows, 4);
    for (int row = 0; row < 4; row++) {
        ck_assert_int_eq(trace->epochs[row], 7 + row);
        ck_assert_int_eq(trace->list[row], is_second(7 + row));
        ck_assert(trace->whole[row]);
        for (int t = 0; t < l.tasks; t++)
            ck_assert(!mgl_trace_at(trace, row, t)->known ||
                      mgl_trace_list_of(trace, t) == trace->list[row]);
    }
    ck_assert_int_eq(mgl_trace_last_row(trace, 0), 2);
    ck_assert_int_eq(mgl_trace_last_row(trace, 1), 3);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* The steps of the first list, then of the second, each in order. A name occurs once per list. */
START_TEST(steps_are_of_a_list)
{
    struct launch l = make_launch(_i, 4, 4);
    mgl_trace *trace = launch_trace(&l);
    int named[2] = {0};
    for (int i = 0; i < trace->step_count; i++) {
        const mgl_trace_step *step = &trace->steps[i];
        if (i > 0)
            ck_assert_int_ge(step->list, step[-1].list);
        if (strcmp(step->name, "norm_linear") != 0)
            continue;
        named[step->list]++;
        ck_assert_int_eq(step->tasks, QUEUES * small_model.layers);
    }
    ck_assert_int_eq(named[0], 1);
    ck_assert_int_eq(named[1], 1);
    for (int t = 0; t < l.tasks; t++)
        ck_assert_int_eq(trace->steps[trace->step_of[t]].list, mgl_trace_list_of(trace, t));
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(tasks_of_the_second_list_have_names)
{
    struct launch l = make_launch(_i, 4, 4);
    mgl_trace *trace = launch_trace(&l);
    bool down = false, attend = false;
    for (int t = trace->first_tasks; t < l.tasks; t++) {
        char name[MGL_TRACE_NAME];
        mgl_trace_task_name(trace, t, name);
        down |= !strcmp(name, "linear_add l1.down");
        attend |= !strncmp(name, "attend", 6) && strstr(name, " l1");
    }
    ck_assert(down && attend);
    ck_assert_int_eq(trace->layers, small_model.layers);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(summaries_are_of_a_list)
{
    struct launch l = make_launch(_i, 7, 7);
    mgl_trace *trace = launch_trace(&l);
    for (int list = 0; list < 2; list++) {
        mgl_trace_summary s = launch_sum_up(trace, list);
        ck_assert_int_eq(s.epochs, list ? 2 : 5);
        near(s.epoch_us, EPOCH * 1e-3);
        for (int i = 0; i < trace->step_count; i++)
            if (trace->steps[i].list != list) {
                near(s.parts[i].span_us, 0);
                near(s.parts[i].metrics[MGL_TRACE_OF_OUTPUT].mean, 0);
                ck_assert_int_eq(s.parts[i].links, 0);
            } else if (!strcmp(trace->steps[i].name, "norm_linear")) {
                near(s.parts[i].metrics[MGL_TRACE_OF_INPUT].mean, 0.2);
                near(s.parts[i].metrics[MGL_TRACE_OF_AHEAD].mean, AHEAD);
            }
        mgl_trace_summary_clear(&s);
    }
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* The path goes from the sample of the previous epoch, which is of the other list, to its own
 * sample. */
START_TEST(chains_begin_behind_the_other_list)
{
    struct launch l = make_launch(_i, 6, 6);
    mgl_trace *trace = launch_trace(&l);
    const mgl_trace_chain *chain = &trace->chains[1];
    mgl_trace_summary s = launch_sum_up(trace, 1);
    ck_assert_int_eq(chain->row, 4);
    for (int i = 0; i < chain->count; i++)
        ck_assert_int_eq(mgl_trace_list_of(trace, chain->links[i].task), 1);
    ck_assert_int_eq(trace->program->tasks[chain->links[0].task].op, MGL_OP_SAMPLE);
    ck_assert_int_eq(trace->program->tasks[chain->links[chain->count - 1].task].op, MGL_OP_ENTER);
    near(s.chain_us, EPOCH * 1e-3);
    ck_assert_int_eq(trace->chains[0].row, 5);
    ck_assert_int_eq(mgl_trace_list_of(trace, trace->chains[0].links[0].task), 0);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(half_an_epoch)
{
    struct launch l = make_launch(_i, 5, 5);
    const int tasks = l.program->second->task_count, half = tasks / 2;
    memset(l.events + 4 * l.tasks + l.program->task_count + half, 0,
           (size_t)(tasks - half) * sizeof *l.events);
    mgl_trace *trace = launch_trace(&l);
    ck_assert_int_eq(trace->rows, 5);
    ck_assert_int_eq(trace->list[4], 1);
    ck_assert(!trace->whole[4]);
    ck_assert_int_eq(trace->chains[1].row, 1);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* ---- what is printed ------------------------------------------------------------------------- */

static mgl_text text_of(const mgl_trace *trace)
{
    mgl_error err = {0};
    mgl_text text = {0};
    ok(mgl_trace_print_lists(trace, &text, &err), err);
    return text;
}

START_TEST(text_of_both_lists)
{
    struct launch l = make_launch(_i, 7, 7);
    mgl_trace *trace = launch_trace(&l);
    mgl_text text = text_of(trace);
    const char *first = strstr(text.bytes, "first: 5 epochs of 3 queues: 40.0 us");
    const char *second = strstr(text.bytes, "\nsecond: 2 epochs of 3 queues: 40.0 us");
    ck_assert_ptr_eq(first, text.bytes);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_nonnull(strstr(second, "longest chain of epoch 4"));
    mgl_text_clear(&text);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* The second list has no epoch among the last two. */
START_TEST(text_of_one_list)
{
    struct launch l = make_launch(_i, 4, 2);
    mgl_trace *trace = launch_trace(&l);
    mgl_text text = text_of(trace);
    ck_assert_int_eq(trace->chains[1].row, -1);
    ck_assert_int_eq(trace->chains[1].count, 0);
    ck_assert_ptr_nonnull(strstr(text.bytes, "first: 2 epochs"));
    ck_assert_ptr_null(strstr(text.bytes, "many"));
    mgl_text_clear(&text);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Slices have their list, and tasks have their index in it. */
START_TEST(timeline_tells_lists)
{
    struct launch l = make_launch(_i, 4, 4);
    mgl_trace *trace = launch_trace(&l);
    mgl_text text = {0};
    mgl_json json = {0};
    mgl_error err = {0};
    int slices[2] = {0}, events = 0;
    const cJSON *item;
    mgl_trace_print_timeline(trace, &text);
    ok(mgl_json_parse(text.bytes, text.length, 64 << 20, "timeline", &json, &err), err);
    cJSON_ArrayForEach(item, mgl_json_member(json.root, "traceEvents"))
    {
        const cJSON *args = mgl_json_member(item, "args");
        if (!args || !mgl_json_member(args, "epoch"))
            continue;
        const bool second = is_second((int64_t)mgl_json_member(args, "epoch")->valuedouble);
        const char *name = second ? "second" : "first";
        ck_assert_str_eq(mgl_json_member(args, "list")->valuestring, name);
        ck_assert_str_eq(mgl_json_member(item, "cat")->valuestring, name);
        ck_assert_int_lt((int)mgl_json_member(args, "task")->valuedouble,
                         (second ? l.program->second : l.program)->task_count);
        slices[second]++;
    }
    for (int i = 0; i < 4 * l.tasks; i++)
        events += l.events[i].epoch > 0;
    ck_assert_int_gt(slices[1], 0);
    ck_assert_int_eq(slices[0] + slices[1], events);
    mgl_json_clear(&json);
    mgl_text_clear(&text);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Every allocation fails once: MGL_NO_MEMORY, and nothing leaks. */
START_TEST(memory_runs_out)
{
    struct launch l = make_launch(_i, 4, 4);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        mgl_error err = {0};
        mgl_trace *trace = NULL;
        mgl_text text = {0};
        mgl_alloc_fail_at(n, false);
        mgl_status status = mgl_trace_new(l.program, l.events, l.epochs, &trace, &err);
        if (!status)
            status = mgl_trace_print_lists(trace, &text, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
        done = status == MGL_OK;
        ck_assert(!done || n > 10);
        mgl_text_clear(&text);
        mgl_trace_free(trace);
    }
    launch_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trace_lists");
    const int lo = MGL_EXCHANGE_COUNTERS, hi = MGL_EXCHANGE_FLAGS + 1;
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, rows_have_lists, lo, hi);
    tcase_add_loop_test(tests, steps_are_of_a_list, lo, hi);
    tcase_add_loop_test(tests, tasks_of_the_second_list_have_names, lo, hi);
    tcase_add_loop_test(tests, summaries_are_of_a_list, lo, hi);
    tcase_add_loop_test(tests, chains_begin_behind_the_other_list, lo, hi);
    tcase_add_loop_test(tests, half_an_epoch, lo, hi);
    tcase_add_loop_test(tests, text_of_both_lists, lo, hi);
    tcase_add_loop_test(tests, text_of_one_list, lo, hi);
    tcase_add_loop_test(tests, timeline_tells_lists, lo, hi);
    tcase_add_loop_test(tests, memory_runs_out, lo, hi);
    return fixture_main("trace_lists", tests);
}
