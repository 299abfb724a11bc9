/*
 * Tests of properties of lowering, for every queue count and for shapes without even divisions:
 * every weight row is on exactly one tape, once and in order; the row groups of the config's queues
 * differ by at most one; every edge is a join; the output is deterministic; the text parses back.
 */
#include "properties.h"

#include "base/clock.h"
#include "tests/time_limit.h"

#include <stdio.h>

/*           hidden layers heads kv_heads head_dim ffn vocab eps */
static const shape uneven = {{40, 2, 3, 1, 20, 500, 1213, 1e-6F}, false};
static const shape wide = {{96, 2, 8, 8, 32, 64, 300, 1e-5F}, false};
static const shape *const shapes[] = {&even, &uneven, &wide};

/* ---- the tests ------------------------------------------------------------------------------- */

START_TEST(every_queue_count)
{
    const shape *s = shapes[_i];
    mgl_graph *graph = graph_of(s);
    mgl_schedule_config config = preset();
    config.splits = 1;
    for (int queues = 1; queues <= MGL_MAX_QUEUES; queues++) {
        mgl_program *p = lowered(graph, queues, &config, 32);
        check_all(p, s, &config, 1);
        mgl_program_free(p);
    }
    mgl_graph_free(graph);
}
END_TEST

static const int some_counts[] = {1, 2, 3, 7, 16, 132, 256};

START_TEST(text_round_trips)
{
    for (size_t i = 0; i < 3; i++) {
        mgl_graph *graph = graph_of(shapes[i]);
        mgl_schedule_config config = preset();
        for (config.splits = 1; config.splits <= 4; config.splits += 3) {
            mgl_program *p = lowered(graph, some_counts[_i], &config, 32);
            check_text(p);
            mgl_program_free(p);
        }
        mgl_graph_free(graph);
    }
}
END_TEST

START_TEST(splits_are_dealt_out)
{
    static const int splits[] = {1, 2, 5, 64};
    mgl_graph *graph = graph_of(&uneven);
    mgl_schedule_config config = preset();
    config.splits = splits[_i];
    for (size_t i = 0; i < sizeof some_counts / sizeof *some_counts; i++) {
        mgl_program *p = lowered(graph, some_counts[i], &config, 64);
        check_all(p, &uneven, &config, config.splits);
        mgl_program_free(p);
    }
    mgl_graph_free(graph);
}
END_TEST

/* The numbers of attention tasks per queue differ by at most one, and only the named queues have
 * them. */
START_TEST(attention_is_dealt_evenly)
{
    mgl_graph *graph = graph_of(&wide);
    mgl_schedule_config config = preset();
    config.splits = 5;
    config.queues[MGL_STEP_ATTEND].first = 3;
    config.queues[MGL_STEP_ATTEND].count = 9;
    mgl_program *p = lowered(graph, 16, &config, 64);
    for (int q = 0; q < 16; q++) {
        int n = 0;
        for (int i = 0; i < p->queues[q].tasks.count; i++) {
            mgl_op op = p->tasks[p->queues[q].tasks.first + i].op;
            n += op == MGL_OP_ATTEND_PAST || op == MGL_OP_ATTEND_TAIL;
        }
        /* 8 heads x 5 splits x 2 layers = 80 tasks over 9 queues: 4 or 5 per layer */
        if (q < 3 || q >= 12)
            ck_assert_int_eq(n, 0);
        else
            ck_assert(n == 8 || n == 10);
    }
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* Merges of a layer, the heads of the largest, and the number of merges that span two kv heads. */
struct merging {
    int merges, heads, crossing;
};

/* Adds a merge, whose inputs and outputs must be the same heads. */
static void add_merge(const mgl_program *p, const mgl_task *task, unsigned char *seen,
                      struct merging *found)
{
    const mgl_range *heads = &p->regions[task->in.first].ranges[2];
    const mgl_range *columns = &p->regions[task->out.first].ranges[1];
    int group = p->geometry.heads / p->geometry.kv_heads;
    int lo = (int)heads->lo, hi = (int)heads->hi;
    NEED(lo >= 0 && lo < hi && hi <= p->geometry.heads);
    NEED(columns->lo == heads->lo * p->geometry.head_dim);
    NEED(columns->hi == heads->hi * p->geometry.head_dim);
    for (int h = lo; h < hi; h++)
        seen[h]++;
    found->merges++;
    found->heads = hi - lo > found->heads ? hi - lo : found->heads;
    found->crossing += lo / group != (hi - 1) / group;
}

/* In a program of one layer with splits, every head is merged once. */
static struct merging merging_of(const mgl_program *p)
{
    unsigned char seen[64] = {0};
    struct merging found = {0};
    NEED(p->geometry.layers == 1 && p->geometry.heads <= 64);
    for (int i = 0; i < p->task_count; i++)
        if (p->tasks[i].op == MGL_OP_MERGE)
            add_merge(p, &p->tasks[i], seen, &found);
    for (int h = 0; h < p->geometry.heads; h++)
        NEED(found.merges == 0 || seen[h] == 1);
    return found;
}

/* Heads of models of eight, three and one billion parameters. 12 warps merge three heads, and 32 is
 * not a multiple of 3. 8 warps merge one head of 132 dimensions, which in bf16 (exchange_precision
 * 2) would end within a granule, so all heads of a kv head are merged together. */
START_TEST(merges_have_as_many_heads_as_warps_merge_at_once)
{
    static const struct {
        mgl_geometry geometry;
        int warps, splits, exchange_precision;
        struct merging wanted;
    } cases[] = {{{4096, 1, 32, 8, 128, 64, 41, 1e-5F}, 8, 4, 1, {16, 2, 0}},
                 {{4096, 1, 32, 8, 128, 64, 41, 1e-5F}, 8, 1, 1, {0, 0, 0}},
                 {{4096, 1, 32, 8, 128, 64, 41, 1e-5F}, 4, 4, 1, {32, 1, 0}},
                 {{4096, 1, 32, 8, 128, 64, 41, 1e-5F}, 12, 4, 1, {11, 3, 5}},
                 {{3072, 1, 24, 8, 128, 64, 41, 1e-5F}, 8, 4, 1, {12, 2, 4}},
                 {{2048, 1, 32, 8, 64, 64, 41, 1e-5F}, 8, 4, 1, {8, 4, 0}},
                 {{264, 1, 4, 2, 132, 64, 41, 1e-5F}, 8, 4, 2, {2, 2, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const shape s = {cases[i].geometry, true};
        mgl_graph *graph = graph_of(&s);
        mgl_schedule_config config = preset();
        config.exchange = MGL_EXCHANGE_FLAGS;
        config.exchange_precision = cases[i].exchange_precision;
        config.warps = cases[i].warps;
        config.splits = cases[i].splits;
        mgl_program *p = lowered(graph, 132, &config, 4096);
        const struct merging found = merging_of(p);
        ck_assert_mem_eq(&found, &cases[i].wanted, sizeof found);
        check_flags(p);
        mgl_program_free(p);
        mgl_graph_free(graph);
    }
}
END_TEST

START_TEST(automatic_splits_stay_in_range)
{
    static const int capacities[] = {1, 255, 256, 257, 4096};
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++)
        for (int queues = 1; queues <= MGL_MAX_QUEUES; queues += 51) {
            mgl_program *p = lowered(graph, queues, &config, capacities[i]);
            int past = count_of(p, MGL_OP_ATTEND_PAST);
            int splits = past / (p->geometry.layers * p->geometry.kv_heads) + 1;
            ck_assert(splits >= 1 && splits <= MGL_MAX_SPLITS);
            check_all(p, &even, &config, splits);
            mgl_program_free(p);
        }
    mgl_graph_free(graph);
}
END_TEST

/* 256 KB of keys and values of a kv head, for both sequences: 64 bytes per position and sequence
 * here. Above that, one split per 344 positions of all sequences, at most 32. */
START_TEST(few_positions_are_not_split)
{
    static const int capacities[] = {2048, 2049, 4096}, splits[] = {1, 12, 24};
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    for (int i = 0; i < 3; i++) {
        mgl_program *p = lowered(graph, 132, &config, capacities[i]);
        check_all(p, &even, &config, splits[i]);
        mgl_program_free(p);
    }
    mgl_graph_free(graph);
}
END_TEST

START_TEST(the_config_names_the_queues)
{
    mgl_graph *graph = graph_of(&uneven);
    mgl_schedule_config config = preset();
    config.splits = 3;
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        config.queues[i].first = 2 * i;
        config.queues[i].count = 1 + 3 * i;
    }
    mgl_program *p = lowered(graph, 27, &config, 64);
    check_all(p, &uneven, &config, 3);
    check_text(p);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* A deterministic pseudorandom number in [lo, hi]. */
static int draw(uint32_t *seed, int lo, int hi)
{
    *seed = *seed * 1664525 + 1013904223;
    return lo + (int)((*seed >> 8) % (uint32_t)(hi - lo + 1));
}

START_TEST(any_shape_any_config)
{
    uint32_t seed = (uint32_t)_i;
    shape s = {.tied = draw(&seed, 0, 1)};
    mgl_geometry *g = &s.geometry;
    g->kv_heads = draw(&seed, 1, 5);
    g->heads = g->kv_heads * draw(&seed, 1, 4);
    g->head_dim = 2 * draw(&seed, 1, 40);
    g->hidden = draw(&seed, 1, 200);
    g->layers = draw(&seed, 1, 3);
    g->ffn = draw(&seed, 1, 300);
    g->vocab = draw(&seed, 1, 500);
    g->eps = 1e-6F;
    int queues = draw(&seed, 1, 40);
    mgl_schedule_config config = preset();
    config.rows = draw(&seed, 2, 16);
    config.splits = draw(&seed, 1, 9);
    config.page_bytes = MGL_BLOCK_BYTES * draw(&seed, 4, 32);
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        config.queues[i].first = draw(&seed, 0, queues - 1);
        config.queues[i].count = draw(&seed, 0, queues - config.queues[i].first);
    }
    mgl_graph *graph = graph_of(&s);
    mgl_program *p = lowered(graph, queues, &config, draw(&seed, 1, 4096));
    check_all(p, &s, &config, config.splits);
    check_text(p);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* The same with flags, and widths that flags allow. */
START_TEST(any_shape_with_flags)
{
    uint32_t seed = (uint32_t)_i + 1000;
    shape s = {.tied = draw(&seed, 0, 1)};
    mgl_geometry *g = &s.geometry;
    g->kv_heads = draw(&seed, 1, 9);
    g->heads = g->kv_heads * draw(&seed, 1, 4);
    g->head_dim = 8 * draw(&seed, 1, 6);
    g->hidden = 8 * draw(&seed, 1, 25);
    g->layers = draw(&seed, 1, 3);
    g->ffn = 8 * draw(&seed, 1, 40);
    g->vocab = draw(&seed, 1, 500);
    g->eps = 1e-6F;
    int queues = draw(&seed, 1, 40);
    mgl_schedule_config config = preset();
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.rows = draw(&seed, 2, 5);
    config.splits = draw(&seed, 1, 9);
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        config.queues[i].first = draw(&seed, 0, queues - 1);
        config.queues[i].count = draw(&seed, 1, queues - config.queues[i].first);
    }
    config.queues[MGL_STEP_DOWN] = config.queues[MGL_STEP_O];
    mgl_graph *graph = graph_of(&s);
    mgl_program *p = lowered(graph, queues, &config, draw(&seed, 1, 4096));
    check_all(p, &s, &config, config.splits);
    check_flags(p);
    check_text(p);
    mgl_program_free(p);
    /* for one sequence, merges may have separate queues */
    config.queues[MGL_STEP_ATTEND].first = config.queues[MGL_STEP_ATTEND].count = 0;
    p = lowered_for(1, graph, queues, &config, draw(&seed, 1, 4096));
    check_flags(p);
    check_text(p);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* Queue 0 has the head, 1 and 2 the layers, 3 nothing. */
START_TEST(sample_waits_for_queues_without_a_head)
{
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    config.exchange = MGL_EXCHANGE_FLAGS;
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        config.queues[i].first = i == MGL_STEP_HEAD ? 0 : 1;
        config.queues[i].count = i == MGL_STEP_HEAD ? 1 : 2;
    }
    mgl_program *p = lowered(graph, 4, &config, 32);
    check_all(p, &even, &config, 1);
    check_flags(p);
    ck_assert_int_eq(p->counter_count, 4);
    ck_assert_str_eq(p->counters[2].name, "idle");
    ck_assert_str_eq(p->counters[3].name, "done");
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* In f32, flags are used only on request. */
START_TEST(flags_in_f32)
{
    static const shape fours = {{20, 1, 3, 1, 4, 12, 41, 1e-5F}, true};
    mgl_graph *graph = graph_of(&fours);
    mgl_schedule_config config = preset();
    mgl_target target = target_of("cpu:2");
    mgl_lower_options options = {.dtype = MGL_F32, .capacity = 32, .sequences = 1};
    mgl_program *p = NULL;
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.splits = 2;
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &p, NULL), MGL_OK);
    check_all(p, &fours, &config, 2);
    check_flags(p);
    for (int i = 0; i < p->buffer_count; i++)
        ck_assert(p->buffers[i].sets == 1 || p->buffers[i].dtype == MGL_F32);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(one_queue_may_do_all)
{
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        config.queues[i].first = 4;
        config.queues[i].count = 1;
    }
    mgl_program *p = lowered(graph, 5, &config, 32);
    check_all(p, &even, &config, 1);
    ck_assert_int_eq(p->queues[1].tape_bytes, 0);
    ck_assert_int_eq(p->queues[1].tasks.count, 1); /* enter */
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(the_same_input_gives_the_same_bytes)
{
    for (size_t i = 0; i < 3; i++) {
        mgl_graph *graph = graph_of(shapes[i]), *other = graph_of(shapes[i]);
        mgl_schedule_config config = preset();
        config.exchange = 0;
        mgl_program *a = lowered(graph, some_counts[_i], &config, 300);
        mgl_program *b = lowered(other, some_counts[_i], &config, 300);
        mgl_text first = printed(a), second = printed(b);
        ck_assert(mgl_program_equal(a, b));
        ck_assert(!strcmp(first.bytes, second.bytes));
        mgl_text_clear(&first);
        mgl_text_clear(&second);
        mgl_program_free(a);
        mgl_program_free(b);
        mgl_graph_free(graph);
        mgl_graph_free(other);
    }
}
END_TEST

static const struct {
    int exchange;
    const char *path;
} goldens[] = {{MGL_EXCHANGE_COUNTERS, "tests/schedule/golden/lowered.mls"},
               {MGL_EXCHANGE_FLAGS, "tests/schedule/golden/lowered_flags.mls"}};

START_TEST(the_text_is_the_golden)
{
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    config.exchange = goldens[_i].exchange;
    config.rows = 4;
    config.splits = 2;
    config.unsplit = 1;
    mgl_program *p = lowered(graph, 3, &config, 32);
    mgl_text text = printed(p), golden = fixture(goldens[_i].path);
    ck_assert(!strcmp(text.bytes, golden.bytes));
    mgl_text_clear(&text);
    mgl_text_clear(&golden);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* capacity, sequences, first queue and number of queues of `o`: each combination is rejected on 4
 * queues */
static const struct {
    int capacity, sequences, first, count;
    const char *where;
} refused[] = {
    {0, 1, 0, 0, "capacity"},    {4097, 1, 0, 0, "capacity"}, {32, 0, 0, 0, "sequences"},
    {32, 17, 0, 0, "sequences"}, {32, 1, 4, 0, "o"},          {32, 1, 3, 2, "o"},
};

START_TEST(what_cannot_be_is_rejected)
{
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    mgl_target target = target_of("cpu:4");
    mgl_lower_options options = {
        .dtype = MGL_F32, .capacity = refused[_i].capacity, .sequences = refused[_i].sequences};
    mgl_program *p = NULL;
    mgl_error err = {0};
    config.queues[MGL_STEP_O].first = refused[_i].first;
    config.queues[MGL_STEP_O].count = refused[_i].count;
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &p, &err),
                     MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, refused[_i].where);
    ck_assert_ptr_null(p);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_graph *graph = graph_of(_i == MGL_EXCHANGE_FLAGS ? &wide : &uneven);
    mgl_schedule_config config = preset();
    mgl_target target = target_of("cpu:3");
    mgl_lower_options options = {.dtype = MGL_F32, .capacity = 32, .sequences = 1};
    mgl_program *p = NULL;
    config.exchange = _i;
    config.splits = 2;
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &p, NULL), MGL_OK);
    uint64_t count = mgl_alloc_count();
    mgl_program_free(p);
    ck_assert_uint_gt(count, 50);
    for (uint64_t n = 1; n <= count; n++) {
        mgl_error err = {0};
        p = NULL;
        mgl_alloc_fail_at(n, false);
        mgl_status status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, MGL_NO_MEMORY);
        ck_assert_ptr_null(p);
    }
    mgl_graph_free(graph);
}
END_TEST

/* Parsing the text of a 1B model on 132 queues takes well under a second (sanitized builds:
 * five). */
START_TEST(a_billion_weights)
{
    mgl_graph *graph = graph_of(&billion);
    mgl_schedule_config config = preset();
    mgl_program *p = lowered(graph, 132, &config, 4096);
    double start = mgl_clock_s();
    mgl_text text = printed(p);
    double middle = mgl_clock_s();
    mgl_program *again = parsed(text.bytes, text.length);
    double end = mgl_clock_s();
    printf("1B on 132 queues: %d tasks, %zu bytes, printed in %.3f s, parsed in %.3f s\n",
           p->task_count, text.length, middle - start, end - middle);
    ck_assert(mgl_program_equal(p, again));
    ck_assert_msg(end - start < time_limit(5), "%.2f s", end - start);
    mgl_program_free(p);
    mgl_program_free(again);
    mgl_text_clear(&text);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule lower");
    TCase *cases = tcase_create("lower");
    tcase_set_timeout(cases, 100);
    tcase_add_loop_test(cases, every_queue_count, 0, 3);
    tcase_add_loop_test(cases, text_round_trips, 0, 7);
    tcase_add_loop_test(cases, splits_are_dealt_out, 0, 4);
    tcase_add_test(cases, attention_is_dealt_evenly);
    tcase_add_test(cases, merges_have_as_many_heads_as_warps_merge_at_once);
    tcase_add_test(cases, automatic_splits_stay_in_range);
    tcase_add_test(cases, few_positions_are_not_split);
    tcase_add_test(cases, the_config_names_the_queues);
    tcase_add_loop_test(cases, any_shape_any_config, 0, 300);
    tcase_add_loop_test(cases, any_shape_with_flags, 0, 200);
    tcase_add_test(cases, sample_waits_for_queues_without_a_head);
    tcase_add_test(cases, flags_in_f32);
    tcase_add_test(cases, one_queue_may_do_all);
    tcase_add_loop_test(cases, the_same_input_gives_the_same_bytes, 0, 7);
    tcase_add_loop_test(cases, the_text_is_the_golden, 0, 2);
    tcase_add_loop_test(cases, what_cannot_be_is_rejected, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_loop_test(cases, every_allocation_may_fail, MGL_EXCHANGE_COUNTERS,
                        MGL_EXCHANGE_FLAGS + 1);
    tcase_add_test(cases, a_billion_weights);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
