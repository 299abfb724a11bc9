/*
 * Tests of traces with artificial events. Each task of a queue has a slot of 1,000 ns, by its
 * number in the epoch, and the same times within it (enum below). Tasks of queue 1 end later than
 * all others of their step, so the critical path goes through that queue.
 */
#include "base/json.h"
#include "base/memory.h"
#include "launch.h"

#include <stdlib.h>
#include <string.h>

enum {
    QUEUES = 3,
    LAYERS = 2,
    SLOT = 1000,
    SLOTS = 4 + 7 * LAYERS, /* enter, embed, 7 steps per layer, head, sample */
    EPOCH = SLOT * SLOTS,
    GO = 100, /* times within the slot; begin is 0 */
    INPUT = 300,
    PRODUCTS = 700,
    END = 900,
    SLOW_END = 950, /* of queue 1 */
    STARVED = 50,
    ACT_TILES = 30,
    AHEAD = 3,
    SLOW = 1 /* that queue */
};

static int slot_of(mgl_op op, bool down, int layer)
{
    int base = 2 + 7 * layer;
    switch (op) {
    case MGL_OP_ENTER:
        return 0;
    case MGL_OP_EMBED:
        return 1;
    case MGL_OP_NORM_LINEAR:
        return base;
    case MGL_OP_ATTEND_PAST:
        return base + 1;
    case MGL_OP_ATTEND:
    case MGL_OP_ATTEND_TAIL:
        return base + 2;
    case MGL_OP_MERGE:
        return base + 3;
    case MGL_OP_LINEAR_ADD:
        return down ? base + 6 : base + 4;
    case MGL_OP_NORM_SWIGLU:
        return base + 5;
    default:
        return op == MGL_OP_HEAD ? SLOTS - 2 : SLOTS - 1;
    }
}

static bool has_tape(const mgl_task *task)
{
    return task->segments.count > 0;
}

/* The event of one task; 32-bit times from `start` on. */
static mgl_device_event make_event(const mgl_task *task, bool slow, int slot, int epoch,
                                   uint32_t start)
{
    uint32_t at = start + (uint32_t)(epoch * EPOCH + slot * SLOT);
    mgl_device_event event = {.epoch = (uint32_t)epoch + 1, .begin = at, .go = at + GO};
    event.end = at + (slow ? SLOW_END : END);
    if (!has_tape(task))
        return event;
    event.input = at + INPUT;
    event.products = at + PRODUCTS;
    event.starved = STARVED;
    event.act_tiles = ACT_TILES;
    event.ahead = AHEAD;
    return event;
}

static struct launch launch_of(const fixture_options *options, int first, int epochs,
                               uint32_t start)
{
    struct launch l = launch_open(options, epochs);
    const mgl_program *p = l.program;
    for (int q = 0; q < p->queue_count; q++)
        for (int e = first; e < first + epochs; e++) {
            int layer = -1;
            bool down = true;
            for (int i = 0; i < p->queues[q].tasks.count; i++) {
                int t = p->queues[q].tasks.first + i;
                const mgl_task *task = &p->tasks[t];
                layer += task->op == MGL_OP_NORM_LINEAR;
                if (task->op == MGL_OP_LINEAR_ADD)
                    down = !down;
                if (task->op != MGL_OP_CLEAR)
                    l.events[e % epochs * p->task_count + t] =
                        make_event(task, q == SLOW, slot_of(task->op, down, layer), e, start);
            }
        }
    return l;
}

static struct launch make_launch(int exchange, int first, int epochs, uint32_t start)
{
    const fixture_options options = {
        .queues = QUEUES, .dtype = MGL_BF16, .splits = 2, .rows = 2, .exchange = exchange};
    return launch_of(&options, first, epochs, start);
}

static int step_named(const mgl_trace *trace, const char *name)
{
    for (int i = 0; i < trace->step_count; i++)
        if (!strcmp(trace->steps[i].name, name))
            return i;
    ck_abort_msg("there is no step %s", name);
    return -1;
}

/* The n-th task of queue 0 with that op. */
static int task_of(const mgl_program *p, mgl_op op, int n)
{
    for (int t = 0; t < p->task_count; t++)
        if (p->tasks[t].op == op && n-- == 0)
            return t;
    ck_abort_msg("there is no such task");
    return -1;
}

/* Loop tests: _i is the exchange, MGL_EXCHANGE_COUNTERS or MGL_EXCHANGE_FLAGS. */

START_TEST(fixture_has_its_exchange)
{
    struct launch l = make_launch(_i, 0, 1, 0);
    bool flags = false;
    for (int r = 0; r < l.program->region_count; r++)
        flags |= l.program->regions[r].flag;
    ck_assert_int_eq(flags, _i == MGL_EXCHANGE_FLAGS);
    launch_close(&l);
}
END_TEST

START_TEST(tasks_have_names)
{
    struct launch l = make_launch(_i, 0, 1, 5000);
    mgl_trace *trace = launch_trace(&l);
    const struct {
        mgl_op op;
        int n;
        const char *name;
    } cases[] = {
        {MGL_OP_ENTER, 0, "enter"},
        {MGL_OP_NORM_LINEAR, 1, "norm_linear l1.qkv"},
        {MGL_OP_ATTEND_TAIL, 0, "attend_tail l0"},
        {MGL_OP_MERGE, 0, "merge l0"},
        {MGL_OP_LINEAR_ADD, 0, "linear_add l0.o"},
        {MGL_OP_LINEAR_ADD, 3, "linear_add l1.down"},
        {MGL_OP_NORM_SWIGLU, 0, "norm_swiglu l0.gate_up"},
        {MGL_OP_HEAD, 0, "head"},
        {MGL_OP_SAMPLE, 0, "sample"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[MGL_TRACE_NAME];
        mgl_trace_task_name(trace, task_of(l.program, cases[i].op, cases[i].n), name);
        ck_assert_str_eq(name, cases[i].name);
    }
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(layers_are_counted)
{
    struct launch l = make_launch(_i, 0, 1, 5000);
    mgl_trace *trace = launch_trace(&l);
    ck_assert_int_eq(trace->layers, LAYERS);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(o_and_down_are_two_steps)
{
    struct launch l = make_launch(_i, 0, 1, 5000);
    mgl_trace *trace = launch_trace(&l);
    ck_assert_int_ne(step_named(trace, "linear_add o"), step_named(trace, "linear_add down"));
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Epochs are sorted oldest first, in whichever rows they are. */
START_TEST(epochs_are_in_order)
{
    struct launch l = make_launch(_i, 6, 4, 5000);
    mgl_trace *trace = launch_trace(&l);
    ck_assert_int_eq(trace->rows, 4);
    for (int row = 0; row < 4; row++) {
        ck_assert_int_eq(trace->epochs[row], 6 + row);
        ck_assert(trace->whole[row]);
        ck_assert_int_eq(mgl_trace_at(trace, row, 0)->begin, row * EPOCH);
    }
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* The trace is the same wherever the 32-bit times wrap. */
START_TEST(times_wrap)
{
    struct launch plain = make_launch(MGL_EXCHANGE_FLAGS, 0, 3, 5000);
    struct launch wraps = make_launch(MGL_EXCHANGE_FLAGS, 0, 3, (uint32_t)-_i * 1777 - 1);
    mgl_trace *a = launch_trace(&plain), *b = launch_trace(&wraps);
    for (int row = 0; row < 3; row++)
        for (int t = 0; t < plain.program->task_count; t++) {
            ck_assert_int_eq(mgl_trace_at(a, row, t)->begin, mgl_trace_at(b, row, t)->begin);
            ck_assert_int_eq(mgl_trace_at(a, row, t)->input, mgl_trace_at(b, row, t)->input);
            ck_assert_int_eq(mgl_trace_at(a, row, t)->end, mgl_trace_at(b, row, t)->end);
        }
    mgl_trace_free(a);
    mgl_trace_free(b);
    launch_close(&plain);
    launch_close(&wraps);
}
END_TEST

START_TEST(summary_of_a_step)
{
    struct launch l = make_launch(_i, 0, 3, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_trace_summary s = launch_sum_up(trace, 0);
    int down = step_named(trace, "linear_add down");
    const mgl_trace_spread *m = s.parts[down].metrics;
    ck_assert_int_eq(trace->steps[down].tasks, QUEUES * LAYERS);
    near(m[MGL_TRACE_OF_WAIT].mean, 0.1);
    near(m[MGL_TRACE_OF_INPUT].mean, 0.2);
    near(m[MGL_TRACE_OF_PRODUCTS].mean, 0.4);
    near(m[MGL_TRACE_OF_OUTPUT].mean, (0.2 + 0.2 + 0.25) / 3);
    near(m[MGL_TRACE_OF_OUTPUT].p90, 0.25);
    near(m[MGL_TRACE_OF_STARVED].mean, 0.05);
    near(m[MGL_TRACE_OF_ACT_TILES].mean, 0.03);
    near(m[MGL_TRACE_OF_AHEAD].mean, AHEAD);
    near(s.ahead_bytes, AHEAD * (double)l.program->exec.page_bytes);
    near(s.epoch_us, EPOCH * 1e-3);
    ck_assert_int_eq(s.epochs, 3);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* The layer's span: from its first slot to the slow queue's end in the last step; and the time by
 * kind per queue. */
START_TEST(summary_of_a_layer)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_trace_summary s = launch_sum_up(trace, 0);
    const mgl_trace_part *down = &s.parts[step_named(trace, "linear_add down")];
    double all = 0;
    near(s.layer_us, (6 * SLOT + SLOW_END) * 1e-3);
    near(down->span_us, SLOW_END * 1e-3);
    near(down->layer_us[MGL_TRACE_EDGE], 0.1);
    near(down->layer_us[MGL_TRACE_INPUT], 0.2);
    near(down->layer_us[MGL_TRACE_STARVED], 0.05);
    near(down->layer_us[MGL_TRACE_ACT_TILES], 0.03);
    near(down->layer_us[MGL_TRACE_COMPUTING], 0.32);
    near(down->layer_us[MGL_TRACE_WRITING], (0.2 + 0.2 + 0.25) / 3);
    near(down->layer_us[MGL_TRACE_BETWEEN], (0.1 + 0.1 + 0.05) / 3);
    /* each queue spends a slot per step; a queue without attention tasks waits */
    for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
        all += s.layer_kinds[k];
    near(all, 7 * SLOT * 1e-3);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* The critical path follows the slow queue from one sample's end to the next; from head to sample
 * it changes queues. */
START_TEST(longest_chain)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_trace_summary s = launch_sum_up(trace, 0);
    double all = 0;
    near(s.chain_us, EPOCH * 1e-3);
    for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
        all += s.chain_kinds[k];
    near(all, s.chain_us);
    ck_assert_int_eq(l.program->tasks[trace->chains[0].links[0].task].op, MGL_OP_SAMPLE);
    ck_assert_int_eq(trace->queue_of[trace->chains[0].links[0].task], 0);
    ck_assert_int_eq(l.program->tasks[trace->chains[0].links[1].task].op, MGL_OP_HEAD);
    ck_assert_int_eq(trace->queue_of[trace->chains[0].links[1].task], SLOW);
    int down = step_named(trace, "linear_add down"), sampled = step_named(trace, "sample");
    ck_assert_int_eq(s.parts[down].links, LAYERS);
    near(s.parts[down].chain_us, LAYERS * SLOT * 1e-3);
    near(s.parts[sampled].chain_us, (SLOT - SLOW_END + END) * 1e-3);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* One queue's task ends long after its slot; tasks that depend on it start at its end. */
START_TEST(chain_goes_through_the_last_writer)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    const mgl_program *p = l.program;
    int late = task_of(p, MGL_OP_NORM_SWIGLU, 0);
    l.events[p->task_count + late].end += 80;
    mgl_trace *trace = launch_trace(&l);
    bool found = false;
    for (int i = 0; i < trace->chains[0].count; i++)
        found |= trace->chains[0].links[i].task == late;
    ck_assert(found);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Clocks of two SMs disagree: a writer seems to begin after its readers end. The parts of the path
 * still sum to its length. */
START_TEST(chain_of_times_that_cannot_be)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    int writer = l.program->task_count + task_of(l.program, MGL_OP_NORM_SWIGLU, 0);
    mgl_device_event *event = &l.events[writer];
    event->begin += 2 * SLOT;
    event->go += 2 * SLOT;
    event->input += 2 * SLOT;
    event->products += 2 * SLOT;
    event->end += 2 * SLOT;
    mgl_trace *trace = launch_trace(&l);
    mgl_trace_summary s = launch_sum_up(trace, 0);
    double all = 0;
    for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
        all += s.chain_kinds[k];
    near(all, s.chain_us);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* The first merge reads what its own queue wrote; the writers of other heads end later. */
START_TEST(writers_are_those_of_the_words_read)
{
    struct launch l = make_launch(MGL_EXCHANGE_FLAGS, 0, 1, 5000);
    l.events[task_of(l.program, MGL_OP_ATTEND_TAIL, LAYERS)].end += 50; /* the next queue's */
    mgl_trace *trace = launch_trace(&l);
    int merge = task_of(l.program, MGL_OP_MERGE, 0);
    int writer = mgl_trace_last_writer(trace, 0, merge);
    ck_assert_int_ge(writer, 0);
    ck_assert_int_eq(trace->queue_of[merge], 0);
    ck_assert_int_eq(trace->queue_of[writer], 0);
    ck_assert_int_eq(l.program->tasks[writer].op, MGL_OP_ATTEND_TAIL);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(steps_are_in_order)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_trace *trace = launch_trace(&l);
    const char *names[] = {"enter",           "embed", "norm_linear",  "attend_past",
                           "attend_tail",     "merge", "linear_add o", "norm_swiglu",
                           "linear_add down", "head",  "sample"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_str_eq(trace->steps[i].name, names[i]);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* If a flag word is written after the reader begins to poll, the time counts as waiting for the
 * edge. */
START_TEST(flags_are_waited_for)
{
    struct launch l = make_launch(MGL_EXCHANGE_FLAGS, 0, 1, 5000);
    int writer = task_of(l.program, MGL_OP_NORM_SWIGLU, 0);
    int reader = writer + 1;
    ck_assert_int_eq(l.program->tasks[reader].op, MGL_OP_LINEAR_ADD);
    l.events[writer].end += 1000 - END + 200; /* 200 ns after the start of its readers' slot */
    mgl_trace *trace = launch_trace(&l);
    const mgl_trace_time *time = mgl_trace_at(trace, 0, reader);
    ck_assert_int_eq(time->ready - time->begin, 200);
    ck_assert_int_eq(time->input - time->begin, INPUT);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Tasks whose rows an epoch does not have are left out: they have one time, and do not count. */
START_TEST(tasks_left_out_do_not_count)
{
    const fixture_options options = {
        .queues = QUEUES, .dtype = MGL_BF16, .splits = 2, .unsplit = 9, .rows = 2, .exchange = _i};
    struct launch l = launch_of(&options, 0, 1, 5000);
    int attends = 0;
    for (int t = 0; t < l.program->task_count; t++) {
        const mgl_op op = l.program->tasks[t].op;
        attends += op == MGL_OP_ATTEND;
        if (op == MGL_OP_ATTEND_PAST || op == MGL_OP_ATTEND_TAIL || op == MGL_OP_MERGE)
            l.events[t].go = l.events[t].end = l.events[t].begin;
    }
    ck_assert_int_gt(attends, 0);
    mgl_trace *trace = launch_trace(&l);
    ck_assert(trace->whole[0]);
    ck_assert_int_eq(trace->steps[step_named(trace, "attend")].tasks, attends);
    ck_assert_int_eq(trace->steps[step_named(trace, "merge")].tasks, 0);
    for (int t = 0; t < l.program->task_count; t++) {
        const mgl_op op = l.program->tasks[t].op;
        if (op == MGL_OP_ATTEND_PAST || op == MGL_OP_ATTEND_TAIL || op == MGL_OP_MERGE)
            ck_assert(!mgl_trace_at(trace, 0, t)->known);
    }
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Half an epoch, as after a stopped kernel: printed, but not in the summary. */
START_TEST(half_an_epoch)
{
    struct launch l = make_launch(_i, 0, 3, 5000);
    int half = l.program->task_count / 2;
    memset(l.events + 2 * l.program->task_count + half, 0,
           (size_t)(l.program->task_count - half) * sizeof *l.events);
    mgl_trace *trace = launch_trace(&l);
    mgl_trace_summary s = launch_sum_up(trace, 0);
    ck_assert_int_eq(trace->rows, 3);
    ck_assert(!trace->whole[2]);
    ck_assert_int_eq(trace->chains[0].row, 1);
    ck_assert_int_eq(s.epochs, 2);
    ck_assert(mgl_trace_at(trace, 2, 0)->known);
    ck_assert(!mgl_trace_at(trace, 2, l.program->task_count - 2)->known);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Fewer epochs than rows. */
START_TEST(rows_without_events)
{
    struct launch l = make_launch(_i, 0, 3, 5000);
    memset(l.events + l.program->task_count, 0,
           2 * (size_t)l.program->task_count * sizeof *l.events);
    mgl_trace *trace = launch_trace(&l);
    mgl_trace_summary s = launch_sum_up(trace, 0);
    ck_assert_int_eq(trace->rows, 1);
    ck_assert_double_eq(s.epoch_us, 0);
    ck_assert_double_gt(s.chain_us, 0);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(no_events_at_all)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_error err = {0};
    mgl_trace *trace = NULL;
    memset(l.events, 0, 2 * (size_t)l.program->task_count * sizeof *l.events);
    ck_assert_int_eq(mgl_trace_new(l.program, l.events, 2, &trace, &err), MGL_DEVICE);
    ck_assert_ptr_null(trace);
    ck_assert_ptr_nonnull(strstr(err.message, "no epoch"));
    launch_close(&l);
}
END_TEST

/* Impossible times are still printed in order. */
START_TEST(times_out_of_order)
{
    struct launch l = make_launch(_i, 0, 1, 5000);
    int task = task_of(l.program, MGL_OP_NORM_SWIGLU, 0);
    mgl_device_event *event = &l.events[task];
    event->products = event->begin - 10;
    event->go = event->end + 10;
    event->starved = 1 << 30;
    mgl_trace *trace = launch_trace(&l);
    const mgl_trace_time *t = mgl_trace_at(trace, 0, task);
    ck_assert(t->begin <= t->go && t->go <= t->ready && t->ready <= t->input);
    ck_assert(t->input <= t->products && t->products <= t->end);
    ck_assert_int_le(t->starved, t->products - t->input);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* ---- the timeline ---------------------------------------------------------------------------- */

static mgl_json timeline_of(const mgl_trace *trace)
{
    mgl_text text = {0};
    mgl_json json = {0};
    mgl_error err = {0};
    mgl_trace_print_timeline(trace, &text);
    ck_assert(!text.failed);
    ok(mgl_json_parse(text.bytes, text.length, 64 << 20, "timeline", &json, &err), err);
    mgl_text_clear(&text);
    return json;
}

static const char *text_at(const cJSON *object, const char *key)
{
    const cJSON *item = mgl_json_member(object, key);
    return item && cJSON_IsString(item) ? item->valuestring : "";
}

static double number_at(const cJSON *object, const char *key)
{
    const cJSON *item = mgl_json_member(object, key);
    ck_assert_msg(item && cJSON_IsNumber(item), "there is no number %s", key);
    return item->valuedouble;
}

/* How many slices have args with a task and an epoch. */
START_TEST(timeline_has_every_event)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_json json = timeline_of(trace);
    int slices = 0, events = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, mgl_json_member(json.root, "traceEvents"))
    {
        const cJSON *args = mgl_json_member(item, "args");
        slices += args && mgl_json_member(args, "epoch");
    }
    for (int i = 0; i < 2 * l.program->task_count; i++)
        events += l.events[i].epoch > 0;
    ck_assert_int_eq(slices, events);
    mgl_json_clear(&json);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(timeline_names_queues)
{
    struct launch l = make_launch(_i, 0, 1, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_json json = timeline_of(trace);
    int named = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, mgl_json_member(json.root, "traceEvents"))
    {
        if (strcmp(text_at(item, "name"), "thread_name"))
            continue;
        ck_assert_str_eq(text_at(item, "ph"), "M");
        named += !strncmp(text_at(mgl_json_member(item, "args"), "name"), "queue ", 6);
    }
    ck_assert_int_eq(named, QUEUES);
    mgl_json_clear(&json);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(timeline_of_a_task)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_json json = timeline_of(trace);
    bool found = false;
    const cJSON *item;
    cJSON_ArrayForEach(item, mgl_json_member(json.root, "traceEvents"))
    {
        const cJSON *args = mgl_json_member(item, "args");
        if (strcmp(text_at(item, "name"), "linear_add l1.down") ||
            !mgl_json_member(args, "epoch") || (int)number_at(args, "epoch") != 1)
            continue;
        ck_assert_str_eq(text_at(item, "ph"), "X");
        near(number_at(item, "ts"), 1e-3 * (EPOCH + SLOT * slot_of(MGL_OP_LINEAR_ADD, true, 1)));
        near(number_at(args, "wait_us"), 0.1);
        near(number_at(args, "input_us"), 0.2);
        near(number_at(args, "products_us"), 0.4);
        near(number_at(args, "starved_us"), 0.05);
        near(number_at(args, "trays_us"), 0.03);
        near(number_at(args, "pages_ahead"), AHEAD);
        ck_assert_str_eq(text_at(args, "waits"),
                         _i == MGL_EXCHANGE_COUNTERS ? "l1.gate_up>=3" : "");
        found = true;
    }
    ck_assert(found);
    mgl_json_clear(&json);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Slices of a thread are disjoint or nested, in order. */
START_TEST(slices_nest)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_json json = timeline_of(trace);
    double task_end[QUEUES + 3] = {0};
    const cJSON *item;
    cJSON_ArrayForEach(item, mgl_json_member(json.root, "traceEvents"))
    {
        if (strcmp(text_at(item, "ph"), "X"))
            continue;
        double *end = &task_end[(int)number_at(item, "tid")];
        double from = number_at(item, "ts"), to = from + number_at(item, "dur");
        if (mgl_json_member(item, "args")) {
            ck_assert_double_ge(from, *end - 1e-6);
            *end = to;
        }
        ck_assert_double_le(to, *end + 1e-6);
    }
    mgl_json_clear(&json);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

START_TEST(summary_as_text)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    mgl_trace *trace = launch_trace(&l);
    mgl_trace_summary s = launch_sum_up(trace, 0);
    mgl_text text = {0};
    mgl_trace_print_summary(trace, &s, &text);
    ck_assert(!text.failed);
    const char *wanted[] = {"2 epochs of 3 queues: 18.0 us", "linear_add down", "a layer, us",
                            "longest chain of epoch 1", "GB/s"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_msg(strstr(text.bytes, wanted[i]) != NULL, "no '%s' in\n%s", wanted[i],
                      text.bytes);
    mgl_text_clear(&text);
    mgl_trace_summary_clear(&s);
    mgl_trace_free(trace);
    launch_close(&l);
}
END_TEST

/* Every allocation fails once: MGL_NO_MEMORY, and nothing leaks. */
START_TEST(memory_runs_out)
{
    struct launch l = make_launch(_i, 0, 2, 5000);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        mgl_error err = {0};
        mgl_trace *trace = NULL;
        mgl_trace_summary s = {0};
        mgl_alloc_fail_at(n, false);
        mgl_status status = mgl_trace_new(l.program, l.events, l.epochs, &trace, &err);
        if (!status)
            status = mgl_trace_sum_up(trace, 0, &s, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
        done = status == MGL_OK;
        ck_assert(!done || n > 10);
        mgl_trace_summary_clear(&s);
        mgl_trace_free(trace);
    }
    launch_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trace");
    const int lo = MGL_EXCHANGE_COUNTERS, hi = MGL_EXCHANGE_FLAGS + 1;
    tcase_add_loop_test(tests, fixture_has_its_exchange, lo, hi);
    tcase_add_loop_test(tests, tasks_have_names, lo, hi);
    tcase_add_loop_test(tests, layers_are_counted, lo, hi);
    tcase_add_loop_test(tests, o_and_down_are_two_steps, lo, hi);
    tcase_add_loop_test(tests, epochs_are_in_order, lo, hi);
    tcase_add_loop_test(tests, times_wrap, 0, 32);
    tcase_add_loop_test(tests, summary_of_a_step, lo, hi);
    tcase_add_loop_test(tests, summary_of_a_layer, lo, hi);
    tcase_add_loop_test(tests, longest_chain, lo, hi);
    tcase_add_loop_test(tests, chain_goes_through_the_last_writer, lo, hi);
    tcase_add_loop_test(tests, chain_of_times_that_cannot_be, lo, hi);
    tcase_add_test(tests, writers_are_those_of_the_words_read);
    tcase_add_loop_test(tests, steps_are_in_order, lo, hi);
    tcase_add_test(tests, flags_are_waited_for);
    tcase_add_loop_test(tests, half_an_epoch, lo, hi);
    tcase_add_loop_test(tests, tasks_left_out_do_not_count, lo, hi);
    tcase_add_loop_test(tests, rows_without_events, lo, hi);
    tcase_add_loop_test(tests, no_events_at_all, lo, hi);
    tcase_add_loop_test(tests, times_out_of_order, lo, hi);
    tcase_add_loop_test(tests, timeline_has_every_event, lo, hi);
    tcase_add_loop_test(tests, timeline_names_queues, lo, hi);
    tcase_add_loop_test(tests, timeline_of_a_task, lo, hi);
    tcase_add_loop_test(tests, slices_nest, lo, hi);
    tcase_add_loop_test(tests, summary_as_text, lo, hi);
    tcase_add_loop_test(tests, memory_runs_out, lo, hi);
    return fixture_main("trace", tests);
}
