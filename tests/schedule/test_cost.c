/*
 * Tests of properties of the cost model that hold for all fitted constants: parts add up, results
 * are repeatable, no time is below that of reading the bytes, more work costs more, and more queues
 * cost less until only edges remain. Also programs without bytes, or without end.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "eval/synthetic.h"
#include "eval/weight_flags.h"
#include "schedule/cost/cost.h"
#include "schedule/variant_shapes.h"
#include "tests/time_limit.h"

/*                               hidden layers heads kv_heads head_dim ffn vocab eps */
static const mgl_geometry tiny = {64, 2, 4, 2, 16, 96, 41, 1e-5F};
static const mgl_geometry small = {512, 4, 8, 2, 64, 2048, 4096, 1e-5F};
static const mgl_geometry billion = {2048, 16, 32, 8, 64, 8192, 128256, 1e-5F};

enum { SEQUENCES = 4, CAPACITY = 32768 };

/* A device without a name, so that fitted costs of real devices do not affect the tests. */
static const mgl_costs device = {.bandwidth = 4690,
                                 .latency = 0.7,
                                 .issue = 0.28,
                                 .flag = 0.9,
                                 .counter = 1.4,
                                 .backlog = 0.5,
                                 .carry = 0.8,
                                 .task = 0.3,
                                 .turn = 0.5,
                                 .input = 0.03,
                                 .page = 0.12,
                                 .scaled_page = 0.6,
                                 .scales = 0.5,
                                 .general = 1.2,
                                 .group = 0.02,
                                 .group_row = 0.004,
                                 .act_tile = 1.1,
                                 .panel = 0.9,
                                 .small_m = 3.0,
                                 .small_m_page = 0.4,
                                 .small_m_rows = 0.3,
                                 .attend = 1.2,
                                 .attend_apart = 0.7,
                                 .attend_row = 0.15,
                                 .cache = 45,
                                 .decode_row = 30,
                                 .merge = 0.6,
                                 .merge_apart = 0.4,
                                 .token = 4,
                                 .token_row = 0.3,
                                 .launch = 12};

static mgl_program *lowered_with(const mgl_geometry *geometry, const char *arch, int queues,
                                 const mgl_schedule_config *config)
{
    static const float inv_freq[64] = {1};
    char name[32];
    mgl_graph *graph = NULL;
    mgl_program *program = NULL;
    mgl_target target;
    mgl_error err = {0};
    snprintf(name, sizeof name, "%s:%d", arch, queues);
    ck_assert_int_eq(mgl_target_parse(name, &target, &err), MGL_OK);
    mgl_lower_options options = {.dtype = MGL_BF16,
                                 .capacity = CAPACITY,
                                 .sequences = config->rows == 1 ? 1
                                              : config->second_rows > SEQUENCES
                                                  ? config->second_rows
                                                  : SEQUENCES};
    mgl_status status =
        mgl_graph_build_llama(geometry, CAPACITY, true, MGL_BF16, inv_freq, &graph, &err);
    if (!status)
        status = mgl_schedule_lower(graph, &target, &options, config, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_graph_free(graph);
    return program;
}

static mgl_program *lowered(const mgl_geometry *geometry, int queues)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    return lowered_with(geometry, "sm_90a", queues, &config);
}

static mgl_cost cost_of(const mgl_program *program, const mgl_costs *costs, int batch,
                        double context)
{
    mgl_cost cost;
    mgl_error err = {0};
    mgl_cost_load load = {batch, context, 32};
    mgl_status status = mgl_schedule_cost(program, costs, &load, &cost, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return cost;
}

/* The time of a token on this number of queues. */
static double us_of(const mgl_geometry *geometry, int queues, int batch, double context)
{
    mgl_program *program = lowered(geometry, queues);
    double us = cost_of(program, &device, batch, context).us;
    mgl_program_free(program);
    return us;
}

/* ---- the numbers hang together --------------------------------------------------------------- */

static const struct {
    const mgl_geometry *geometry;
    int queues, batch;
    double context;
} loads[] = {{&tiny, 1, 1, 0},        {&tiny, 132, 4, 20000}, {&small, 7, 2, 100.5},
             {&small, 132, 1, 32000}, {&billion, 132, 1, 0},  {&billion, 132, 4, 8192}};
enum { LOADS = sizeof loads / sizeof *loads };

static mgl_cost cost_of_load(int i)
{
    mgl_program *program = lowered(loads[i].geometry, loads[i].queues);
    mgl_cost cost = cost_of(program, &device, loads[i].batch, loads[i].context);
    mgl_program_free(program);
    return cost;
}

START_TEST(parts_add_up)
{
    mgl_cost cost = cost_of_load(_i);
    double parts = 0;
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        parts += cost.parts[i];
    ck_assert_double_eq_tol(parts, cost.us, cost.us * 1e-9);
}
END_TEST

START_TEST(no_part_is_negative)
{
    mgl_cost cost = cost_of_load(_i);
    for (int i = 0; i < MGL_COST_PART_COUNT; i++)
        ck_assert_msg(cost.parts[i] >= 0, "%s: %g", mgl_cost_part_name((mgl_cost_part)i),
                      cost.parts[i]);
}
END_TEST

START_TEST(steps_add_up)
{
    mgl_cost cost = cost_of_load(_i);
    double steps = 0, bytes = 0;
    for (int i = 0; i <= MGL_STEP_COUNT; i++) {
        steps += cost.steps[i].us;
        bytes += cost.steps[i].bytes;
    }
    ck_assert_double_eq_tol(steps, cost.us, cost.us * 1e-9);
    ck_assert_double_le(bytes, cost.tape_bytes + cost.cache_bytes);
}
END_TEST

/* ---- the timeline ---------------------------------------------------------------------------- */

/* The spans of one of the loads; released by the caller. */
static mgl_cost_span *timeline_of(int i, mgl_program **program, mgl_cost *cost)
{
    mgl_error err = {0};
    mgl_cost_load load = {loads[i].batch, loads[i].context, 32};
    *program = lowered(loads[i].geometry, loads[i].queues);
    mgl_cost_span *spans = mgl_alloc((size_t)(*program)->task_count * sizeof *spans);
    ck_assert_ptr_nonnull(spans);
    ck_assert_int_eq(mgl_schedule_cost_timeline(*program, &device, &load, cost, spans, &err),
                     MGL_OK);
    return spans;
}

START_TEST(a_timeline_is_of_the_same_play)
{
    mgl_program *program;
    mgl_cost cost, alone = cost_of_load(_i);
    mgl_free(timeline_of(_i, &program, &cost));
    ck_assert_mem_eq(&cost, &alone, sizeof cost);
    mgl_program_free(program);
}
END_TEST

START_TEST(tasks_of_a_queue_follow_each_other)
{
    mgl_program *program;
    mgl_cost cost;
    mgl_cost_span *spans = timeline_of(_i, &program, &cost);
    for (int t = 0; t < program->task_count; t++) {
        double before = t && spans[t - 1].queue == spans[t].queue ? spans[t - 1].end : 0;
        ck_assert_double_ge(spans[t].start, before);
        ck_assert_double_ge(spans[t].end, spans[t].start);
    }
    mgl_free(spans);
    mgl_program_free(program);
}
END_TEST

START_TEST(a_timeline_ends_within_the_token)
{
    mgl_program *program;
    mgl_cost cost;
    mgl_cost_span *spans = timeline_of(_i, &program, &cost);
    double last = 0;
    for (int t = 0; t < program->task_count; t++)
        last = spans[t].end > last ? spans[t].end : last;
    ck_assert_double_gt(last, 0);
    ck_assert_double_le(last, cost.us * (1 + 1e-9));
    mgl_free(spans);
    mgl_program_free(program);
}
END_TEST

START_TEST(reading_the_bytes_is_the_least)
{
    mgl_cost cost = cost_of_load(_i);
    ck_assert_double_gt(cost.floor_us, 0);
    ck_assert_double_ge(cost.us, cost.floor_us);
}
END_TEST

START_TEST(the_same_numbers_every_time)
{
    mgl_cost a = cost_of_load(_i), b = cost_of_load(_i);
    ck_assert_int_eq(memcmp(&a, &b, sizeof a), 0);
}
END_TEST

START_TEST(bytes_are_those_of_the_model)
{
    mgl_program *program = lowered(&billion, 132);
    mgl_cost cost = cost_of(program, &device, 2, 1000);
    const mgl_geometry *m = &billion;
    double heads = (double)m->heads * m->head_dim, kv = (double)m->kv_heads * m->head_dim;
    ck_assert_double_eq(cost.steps[MGL_STEP_QKV].bytes,
                        2.0 * m->layers * m->hidden * (heads + 2 * kv));
    ck_assert_double_eq(cost.steps[MGL_STEP_O].bytes, 2.0 * m->layers * m->hidden * heads);
    ck_assert_double_eq(cost.steps[MGL_STEP_GATE_UP].bytes, 4.0 * m->layers * m->hidden * m->ffn);
    ck_assert_double_eq(cost.steps[MGL_STEP_DOWN].bytes, 2.0 * m->layers * m->hidden * m->ffn);
    ck_assert_double_eq(cost.steps[MGL_STEP_HEAD].bytes, 2.0 * m->vocab * m->hidden);
    ck_assert_double_eq_tol(cost.cache_bytes, 2 * 1000 * 4.0 * m->layers * kv, 1);
    ck_assert_double_eq_tol(cost.steps[MGL_STEP_ATTEND].bytes, cost.cache_bytes, 1);
    mgl_program_free(program);
}
END_TEST

/* ---- more and less --------------------------------------------------------------------------- */

START_TEST(more_layers_take_longer)
{
    mgl_geometry m = billion;
    double before = 0;
    for (m.layers = 1; m.layers <= 16; m.layers *= 2) {
        double us = us_of(&m, 132, 1, 0);
        ck_assert_double_gt(us, before);
        before = us;
    }
}
END_TEST

START_TEST(a_layer_takes_what_a_layer_takes)
{
    mgl_geometry m = billion;
    m.layers = 8;
    double eight = us_of(&m, 132, 1, 0);
    m.layers = 12;
    double twelve = us_of(&m, 132, 1, 0), sixteen = us_of(&billion, 132, 1, 0);
    ck_assert_double_eq_tol(sixteen - twelve, twelve - eight, 0.02 * (twelve - eight));
}
END_TEST

START_TEST(more_bytes_take_longer)
{
    mgl_geometry m = small;
    double before = 0;
    for (m.ffn = 512; m.ffn <= 16384; m.ffn *= 2) {
        double us = us_of(&m, 64, 1, 0);
        ck_assert_double_gt(us, before);
        before = us;
    }
}
END_TEST

START_TEST(more_positions_take_longer)
{
    mgl_program *program = lowered(&billion, 132);
    double before = cost_of(program, &device, 1, 0).us;
    for (double context = 256; context < CAPACITY; context *= 2) {
        double us = cost_of(program, &device, 1, context).us;
        ck_assert_double_gt(us, before);
        before = us;
    }
    mgl_program_free(program);
}
END_TEST

/* Longer attention must not be compensated by memory that became idle meanwhile. */
START_TEST(a_few_more_positions_take_no_less)
{
    static const mgl_geometry *const shapes[] = {&small, &billion};
    mgl_program *program = lowered(shapes[_i], 132);
    double before = 0;
    for (double context = 0; context < CAPACITY; context = context * 1.3 + 1) {
        double us = cost_of(program, &device, 1, context).us;
        ck_assert_msg(us >= before, "%g positions: %g us, fewer: %g", context, us, before);
        before = us;
    }
    mgl_program_free(program);
}
END_TEST

/* With one row, long splits are read through the ring: their bytes count once, wait for space in
 * the ring, and are processed at the cache's rate. Short splits are not. */
START_TEST(long_splits_of_one_row_are_on_the_tape)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.rows = 1;
    mgl_program *program = lowered_with(&billion, "sm_90a", 132, &config);
    mgl_costs slow = device;
    slow.cache /= 3;
    double before = 0;
    for (double context = 8192; context < CAPACITY; context *= 1.2) {
        mgl_cost cost = cost_of(program, &device, 1, context);
        double bytes = 2.0 * billion.head_dim * 2 * billion.kv_heads * billion.layers * context;
        ck_assert_double_eq_tol(cost.cache_bytes, bytes, 1);
        ck_assert_double_ge(cost.us, cost.floor_us);
        ck_assert_double_gt(cost.us, before);
        ck_assert_double_gt(cost.parts[MGL_COST_CACHE], 0);
        ck_assert_double_gt(cost_of(program, &slow, 1, context).us, cost.us);
        before = cost.us;
    }
    ck_assert_double_lt(cost_of(program, &device, 1, 1024).us,
                        cost_of(program, &device, 1, 8192).us);
    mgl_program_free(program);
}
END_TEST

/* The number of attention splits of the program. */
static double splits_of(const mgl_program *program)
{
    for (int i = 0; i < program->buffer_count; i++)
        if (!strcmp(program->buffers[i].name, "l0.part"))
            return (double)program->buffers[i].extents[0].count;
    ck_abort_msg("attention has no splits");
    return 0;
}

/* If keys and values no longer fit in the kernel's registers, they are read through the ring: the
 * time jumps there, and hardly changes otherwise. */
START_TEST(splits_are_on_the_tape_from_where_the_kernel_has_them_there)
{
    static const int head_dims[] = {32, 64, 96, 128};
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.rows = 1;
    config.splits = 4;
    config.unsplit = 1;
    mgl_geometry geometry = billion;
    geometry.head_dim = head_dims[_i];
    mgl_program *program = lowered_with(&geometry, "sm_90a", 132, &config);
    double near = MGL_KV_REGISTERS(geometry.head_dim, program->exec.warps) * splits_of(program);
    double before = cost_of(program, &device, 1, near - 0.5).us;
    double at = cost_of(program, &device, 1, near).us;
    double behind = cost_of(program, &device, 1, near + 0.5).us;
    ck_assert_double_gt(fabs(behind - at), 10 * fabs(at - before));
    mgl_program_free(program);
}
END_TEST

START_TEST(more_sequences_take_longer)
{
    mgl_program *program = lowered(&billion, 132);
    double before = 0;
    for (int batch = 1; batch <= SEQUENCES; batch++) {
        double us = cost_of(program, &device, batch, 1000).us;
        ck_assert_double_gt(us, before);
        before = us;
    }
    mgl_program_free(program);
}
END_TEST

START_TEST(a_launch_is_shared_by_its_tokens)
{
    mgl_program *program = lowered(&small, 132);
    mgl_cost_load one = {1, 0, 1}, many = {1, 0, 100};
    mgl_cost a, b;
    ck_assert_int_eq(mgl_schedule_cost(program, &device, &one, &a, NULL), MGL_OK);
    ck_assert_int_eq(mgl_schedule_cost(program, &device, &many, &b, NULL), MGL_OK);
    ck_assert_double_eq_tol(a.us - b.us, device.launch * 0.99, 1e-9);
    mgl_program_free(program);
}
END_TEST

START_TEST(more_queues_take_less)
{
    double before = INFINITY;
    for (int queues = 1; queues <= 128; queues *= 2) {
        double us = us_of(&billion, queues, 1, 0);
        ck_assert_msg(us < before, "%d queues: %g us, and half as many %g", queues, us, before);
        before = us;
    }
}
END_TEST

/* A model of a few KB: a single queue has almost no work. */
START_TEST(in_the_end_there_are_edges)
{
    double few = us_of(&tiny, 8, 1, 0), many = us_of(&tiny, 128, 1, 0);
    mgl_program *program = lowered(&tiny, 128);
    mgl_cost cost = cost_of(program, &device, 1, 0);
    ck_assert_double_gt(many, 0.9 * few);
    ck_assert_double_gt(cost.parts[MGL_COST_EDGE], cost.us / 3);
    mgl_program_free(program);
}
END_TEST

/* ---- constants ------------------------------------------------------------------------------- */

START_TEST(with_nothing_but_memory_it_is_the_floor)
{
    mgl_program *program = lowered(&billion, 128);
    mgl_costs costs = {.bandwidth = 1000, .cache = 1e12};
    mgl_cost cost = cost_of(program, &costs, 1, 0);
    ck_assert_double_ge(cost.us, cost.floor_us * (1 - 1e-9));
    ck_assert_double_le(cost.us, cost.floor_us * 1.01);
    mgl_program_free(program);
}
END_TEST

START_TEST(edges_alone_are_counted)
{
    mgl_program *program = lowered(&small, 128);
    mgl_costs costs = {.bandwidth = 1e12, .cache = 1e12, .flag = 1, .counter = 100};
    /* edges into each layer and within it: qkv, attend, o, gate/up and down, and merge if attention
     * is split; then into the head; then to the draws and the sample */
    const int unsplit = program->limits.unsplit;
    ck_assert_int_gt(unsplit, 0);
    for (int split = 0; split < 2; split++) {
        mgl_cost cost = cost_of(program, &costs, 1, unsplit + split);
        const double edges = 4 * (5 + split) + 1 + 2 * 100;
        ck_assert_double_eq_tol(cost.parts[MGL_COST_EDGE], edges, 1e-3);
        ck_assert_double_eq_tol(cost.us, cost.parts[MGL_COST_EDGE], 1e-3);
    }
    mgl_program_free(program);
}
END_TEST

START_TEST(counters_are_edges_too)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.exchange = MGL_EXCHANGE_COUNTERS;
    config.splits = 1;
    mgl_program *program = lowered_with(&small, "sm_90a", 128, &config);
    mgl_costs costs = {.bandwidth = 1e12, .cache = 1e12, .flag = 100, .counter = 1};
    mgl_cost cost = cost_of(program, &costs, 1, 0);
    ck_assert_double_eq_tol(cost.parts[MGL_COST_EDGE], 4 * 5 + 3, 1e-3);
    mgl_program_free(program);
}
END_TEST

static double *field_of(mgl_costs *costs, int i)
{
    double *const fields[] = {
#define MGL_COST(field, unit, what) &costs->field,
#include "schedule/cost/costs.def"
    };
    return fields[i];
}
enum {
    FIELDS = 0
#define MGL_COST(field, unit, what) +1
#include "schedule/cost/costs.def"
};

/* A program that uses every cost: pages requested faster than they arrive, more than 64 KB of them
 * in flight, and products with a variant and with `general`. */
static mgl_program *lowered_to_meet_all(void)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.page_bytes = 4096;
    config.flight_bytes = config.pending_bytes = 131072;
    mgl_program *program = lowered_with(&billion, "sm_90a", 132, &config);
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].op == MGL_OP_NORM_LINEAR)
            program->tasks[i].variant = MGL_VARIANT_GENERAL;
    return program;
}

/* A program whose second list, for batches of more than two, has panels. */
static mgl_program *lowered_with_panels(void)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.rows = 2;
    config.second_rows = 48;
    return lowered_with(&small, "sm_90a", 16, &config);
}

/* A program of one sequence, whose merges are on separate queues. */
static mgl_program *lowered_with_merges_apart(void)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.rows = 1;
    config.splits = 16;
    return lowered_with(&billion, "sm_90a", 132, &config);
}

/* A program whose attention is not split, on queues without qkv. */
static mgl_program *lowered_whole(void)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.splits = 1;
    return lowered_with(&billion, "sm_90a", 132, &config);
}

/* A program of int4 weights with groups of `group` columns, of the shape llama-1b. */
static mgl_program *lowered_with_groups(int group)
{
    mgl_config shape;
    mgl_graph *graph = NULL;
    mgl_program *program = NULL;
    mgl_target target;
    mgl_error err = {0};
    mgl_schedule_config config;
    const mgl_weight_format format = mgl_weight_flag_format(MGL_CODE_INT4, group);
    const mgl_lower_options options = {.dtype = MGL_BF16, .capacity = CAPACITY, .sequences = 2};
    mgl_schedule_config_default(&config);
    mgl_status status = mgl_synthetic_find_shape("llama-1b", &shape, &err);
    mgl_synthetic_choose_formats(&shape, format, format);
    if (!status)
        status = mgl_target_parse("sm_90a:132", &target, &err);
    if (!status)
        status = mgl_synthetic_open(&shape, 1, &graph, &err);
    if (!status)
        status = mgl_schedule_lower(graph, &target, &options, &config, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_graph_free(graph);
    return program;
}

START_TEST(small_groups_take_longer)
{
    mgl_program *large = lowered_with_groups(128), *groups = lowered_with_groups(32);
    const mgl_cost few = cost_of(large, &device, 1, 0), many = cost_of(groups, &device, 1, 0);
    ck_assert_double_gt(many.us, few.us);
    ck_assert_double_gt(many.parts[MGL_COST_PRODUCTS], few.parts[MGL_COST_PRODUCTS]);
    mgl_program_free(large);
    mgl_program_free(groups);
}
END_TEST

/* A higher rate reduces the time, any other higher cost increases it, and each has an effect.
 * Changes are large, because a small delay may meet less busy memory. */
START_TEST(every_cost_counts)
{
    static const char *const names[] = {
#define MGL_COST(field, unit, what) #field,
#include "schedule/cost/costs.def"
    };
    mgl_costs costs = device;
    double *field = field_of(&costs, _i);
    bool rate = field == &costs.bandwidth || field == &costs.cache || field == &costs.decode_row;
    bool small_m = field == &costs.small_m || field == &costs.small_m_page;
    bool rows = field == &costs.small_m_rows;
    bool many = small_m || rows || field == &costs.act_tile || field == &costs.panel ||
                field == &costs.decode_row;
    bool apart = field == &costs.merge_apart, queries = field == &costs.attend_apart;
    bool scaled = field == &costs.scaled_page || field == &costs.scales;
    int batch = small_m ? 4
                : rows  ? MGL_SMALL_M_TILE + 1
                : many  ? MGL_SMALL_M_ROWS + 1
                : apart ? 1
                        : 2;
    mgl_program *program = many      ? lowered_with_panels()
                           : apart   ? lowered_with_merges_apart()
                           : scaled  ? lowered_with_groups(64)
                           : queries ? lowered_whole()
                                     : lowered_to_meet_all();
    double before = cost_of(program, &costs, batch, 8192).us;
    *field *= rate ? 0.1 : 10;
    double after = cost_of(program, &costs, batch, 8192).us;
    ck_assert_msg(after > before, "%s: %g us, then %g", names[_i], before, after);
    mgl_program_free(program);
}
END_TEST

/* ---- extremes -------------------------------------------------------------------------------- */

START_TEST(one_queue)
{
    mgl_program *program = lowered(&small, 1);
    mgl_cost cost = cost_of(program, &device, 1, 0);
    double bytes = cost.tape_bytes;
    ck_assert_double_eq(cost.steps[MGL_STEP_DOWN].most, cost.steps[MGL_STEP_DOWN].bytes);
    ck_assert_double_ge(cost.us, bytes / 16384 * device.page);
    mgl_program_free(program);
}
END_TEST

START_TEST(more_queues_than_work)
{
    mgl_program *program = lowered(&tiny, 256);
    ck_assert_double_gt(cost_of(program, &device, 1, 0).us, 0);
    mgl_program_free(program);
}
END_TEST

START_TEST(an_empty_cache_is_not_read)
{
    mgl_program *program = lowered(&billion, 132);
    mgl_cost cost = cost_of(program, &device, 1, 0);
    ck_assert_double_eq(cost.cache_bytes, 0);
    ck_assert_double_eq(cost.parts[MGL_COST_CACHE], 0);
    mgl_program_free(program);
}
END_TEST

/* The time of a model's tasks without their weights. */
START_TEST(tapes_without_bytes)
{
    mgl_program *program = lowered(&small, 16);
    for (int q = 0; q < program->queue_count; q++)
        program->queues[q].tape_bytes = program->queues[q].tape_pad = 0;
    for (int t = 0; t < program->task_count; t++)
        program->tasks[t].segments.count = 0;
    mgl_cost cost = cost_of(program, &device, 1, 0);
    ck_assert_double_eq(cost.tape_bytes, 0);
    ck_assert_double_eq(cost.floor_us, 0);
    ck_assert_double_eq(cost.parts[MGL_COST_STREAM], 0);
    ck_assert_double_eq(cost.parts[MGL_COST_PRODUCTS], 0);
    ck_assert_double_gt(cost.parts[MGL_COST_EDGE], 0);
    mgl_program_free(program);
}
END_TEST

/* Streams of one page at a time, and of a ring that is larger than the tapes. */
START_TEST(rings_of_any_size)
{
    mgl_schedule_config config;
    double us[3];
    const int pages[3] = {2, 8, 64};
    for (int i = 0; i < 3; i++) {
        mgl_schedule_config_default(&config);
        config.page_bytes = 2048;
        config.ring_pages = pages[i];
        mgl_program *program = lowered_with(&small, "sm_90a", 16, &config);
        us[i] = cost_of(program, &device, 1, 0).us;
        mgl_program_free(program);
    }
    ck_assert_double_gt(us[0], us[1]);
    ck_assert_double_ge(us[1], us[2]);
}
END_TEST

/* ---- rejected inputs ------------------------------------------------------------------------- */

static const struct {
    mgl_cost_load load;
    const char *where;
} bad_loads[] = {{{0, 0, 1}, "batch"},     {{SEQUENCES + 1, 0, 1}, "batch"},
                 {{1, -1, 1}, "context"},  {{1, CAPACITY, 1}, "context"},
                 {{1, NAN, 1}, "context"}, {{1, INFINITY, 1}, "context"},
                 {{1, 0, 0}, "tokens"}};
enum { BAD_LOADS = sizeof bad_loads / sizeof *bad_loads };

START_TEST(loads_beyond_the_program)
{
    mgl_program *program = lowered(&tiny, 4);
    mgl_cost cost;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_schedule_cost(program, &device, &bad_loads[_i].load, &cost, &err),
                     MGL_USAGE);
    ck_assert_str_eq(err.where, bad_loads[_i].where);
    mgl_program_free(program);
}
END_TEST

START_TEST(tasks_that_wait_for_ever)
{
    mgl_program *program = lowered(&tiny, 4);
    mgl_cost cost;
    mgl_cost_load load = {1, 0, 1};
    mgl_error err = {0};
    for (int i = 0; i < program->wait_count; i++)
        program->waits[i].threshold *= 1000;
    ck_assert_int_eq(mgl_schedule_cost(program, &device, &load, &cost, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "queue 0 never reaches its task"));
    mgl_program_free(program);
}
END_TEST

START_TEST(without_memory)
{
    mgl_program *program = lowered(&small, 16);
    mgl_cost cost;
    mgl_cost_load load = {1, 100, 1};
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(mgl_schedule_cost(program, &device, &load, &cost, NULL), MGL_OK);
    uint64_t count = mgl_alloc_count();
    ck_assert_uint_gt(count, 10);
    for (uint64_t n = 1; n <= count; n++) {
        mgl_alloc_fail_at(n, false);
        mgl_status status = mgl_schedule_cost(program, &device, &load, &cost, NULL);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(status == MGL_NO_MEMORY, "allocation %d of %d: status %d", (int)n, (int)count,
                      (int)status);
    }
    mgl_program_free(program);
}
END_TEST

/* ---- speed ----------------------------------------------------------------------------------- */

/* A search calls the cost model often, so a prediction must be fast. The fastest of three runs
 * counts. */
START_TEST(quick_enough_for_a_search)
{
    mgl_program *program = lowered(&billion, 132);
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        double start = mgl_clock_s();
        cost_of(program, &device, 1, 8192);
        best = fmin(best, mgl_clock_s() - start);
    }
    printf("1B on 132 queues: predicted in %.1f ms\n", best * 1e3);
    ck_assert_msg(best < time_limit(0.5), "%.3f s", best);
    mgl_program_free(program);
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_add_loop_test(cases, parts_add_up, 0, LOADS);
    tcase_add_loop_test(cases, no_part_is_negative, 0, LOADS);
    tcase_add_loop_test(cases, steps_add_up, 0, LOADS);
    tcase_add_loop_test(cases, a_timeline_is_of_the_same_play, 0, LOADS);
    tcase_add_loop_test(cases, tasks_of_a_queue_follow_each_other, 0, LOADS);
    tcase_add_loop_test(cases, a_timeline_ends_within_the_token, 0, LOADS);
    tcase_add_loop_test(cases, reading_the_bytes_is_the_least, 0, LOADS);
    tcase_add_loop_test(cases, the_same_numbers_every_time, 0, LOADS);
    tcase_add_test(cases, bytes_are_those_of_the_model);
    tcase_add_test(cases, more_layers_take_longer);
    tcase_add_test(cases, a_layer_takes_what_a_layer_takes);
    tcase_add_test(cases, more_bytes_take_longer);
    tcase_add_test(cases, more_positions_take_longer);
    tcase_add_loop_test(cases, a_few_more_positions_take_no_less, 0, 2);
    tcase_add_test(cases, long_splits_of_one_row_are_on_the_tape);
    tcase_add_loop_test(cases, splits_are_on_the_tape_from_where_the_kernel_has_them_there, 0, 4);
    tcase_add_test(cases, more_sequences_take_longer);
    tcase_add_test(cases, a_launch_is_shared_by_its_tokens);
    tcase_add_test(cases, more_queues_take_less);
    tcase_add_test(cases, in_the_end_there_are_edges);
    tcase_add_test(cases, with_nothing_but_memory_it_is_the_floor);
    tcase_add_test(cases, edges_alone_are_counted);
    tcase_add_test(cases, counters_are_edges_too);
    tcase_add_loop_test(cases, every_cost_counts, 0, FIELDS);
    tcase_add_test(cases, small_groups_take_longer);
    tcase_add_test(cases, one_queue);
    tcase_add_test(cases, more_queues_than_work);
    tcase_add_test(cases, an_empty_cache_is_not_read);
    tcase_add_test(cases, tapes_without_bytes);
    tcase_add_test(cases, rings_of_any_size);
    tcase_add_loop_test(cases, loads_beyond_the_program, 0, BAD_LOADS);
    tcase_add_test(cases, tasks_that_wait_for_ever);
    tcase_add_test(cases, without_memory);
    tcase_add_test(cases, quick_enough_for_a_search);
}

int main(void)
{
    Suite *suite = suite_create("schedule cost");
    TCase *cases = tcase_create("cost");
    tcase_set_timeout(cases, 100);
    add_tests(cases);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
