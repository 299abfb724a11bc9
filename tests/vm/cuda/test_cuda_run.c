/*
 * Tests of runs on the CUDA machine: against the CPU machine on random models of many shapes,
 * repeated, sampled, cancelled, ragged, with another program, and stopped by the watchdog.
 */
#include "tests/vm/cuda/cuda_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "schedule/step.h"
#include "schedule/variants.h"
#include "tests/parts.h"
#include "vm/cuda/cuda.h"

/* ---- against the CPU machine ----------------------------------------------------------------- */

static const mgl_geometry multi_query = {96, 3, 6, 1, 32, 200, 333, 1e-5f};
static const mgl_geometry wide_heads = {256, 2, 4, 4, 128, 512, 700, 1e-6f};
static const mgl_geometry grouped_heads = {512, 2, 8, 2, 64, 1024, 500, 1e-5f};
static const mgl_geometry long_heads = {128, 1, 4, 1, 128, 128, 75, 1e-5f};
static const mgl_geometry wide_groups = {512, 1, 8, 2, 128, 512, 600, 1e-5f};
static const mgl_geometry odd_groups = {448, 1, 14, 2, 32, 512, 300, 1e-5f};
static const mgl_geometry wide_layer = {2048, 1, 32, 8, 64, 8192, 500, 1e-5f};
static const mgl_geometry narrow_heads = {80, 2, 4, 2, 20, 104, 130, 1e-5f};

static const struct shape {
    const mgl_geometry *geometry;
    device_options options;
} shapes[] = {
    {&small_model, {.dtype = MGL_F32}},
    {&small_model, {.dtype = MGL_F32, .queues = 1}},
    {&small_model, {.dtype = MGL_F32, .queues = 3, .splits = 4}},
    {&odd_model, {.dtype = MGL_F32}},
    {&odd_model, {.dtype = MGL_F32, .queues = 16, .warps = 16, .rows = 16, .ring_pages = 2}},
    {&odd_model, {.dtype = MGL_F32, .queues = 5, .warps = 1, .rows = 3, .page_bytes = 2048}},
    {&tiny_model, {.dtype = MGL_F32, .queues = 2, .ring_pages = 2, .page_bytes = 2048}},
    {&multi_query, {.dtype = MGL_F32, .splits = 2}},
    {&wide_heads, {.dtype = MGL_F32, .warps = 16}},
    {&wide_heads, {.dtype = MGL_F32, .queues = 40, .splits = 5, .warps = 3}},
    {&narrow_heads, {.dtype = MGL_F32, .stage_bytes = 1024}},
    {&narrow_heads, {.dtype = MGL_BF16}},
    {&odd_model, {.dtype = MGL_BF16, .queues = 9}},
    {&odd_model, {.dtype = MGL_F16, .queues = 9, .splits = 2}},
    {&wide_heads, {.dtype = MGL_F16}},
    {&grouped_heads, {.dtype = MGL_BF16, .queues = 4}},
    {&grouped_heads, {.dtype = MGL_BF16, .queues = 6, .rows = 1, .splits = 3}},
    {&wide_groups, {.dtype = MGL_BF16, .queues = 5}},
    {&wide_groups, {.dtype = MGL_F16, .queues = 3, .warps = 16, .splits = 17}},
    {&grouped_heads, {.dtype = MGL_BF16, .queues = 4, .warps = 1}},
    {&wide_groups, {.dtype = MGL_F16, .queues = 3, .warps = 2, .rows = 3}},
    {&odd_groups, {.dtype = MGL_BF16, .queues = 4, .warps = 4, .splits = 2}},
    {&odd_groups, {.dtype = MGL_F32, .queues = 4, .warps = 3}},
    /* keys and values through the ring */
    {&wide_groups,
     {.dtype = MGL_BF16, .queues = 3, .rows = 1, .splits = 2, .warps = 1, .page_bytes = 8192}},
    /* unsplit rows, then split rows: with 16 bits, with f32, and through the ring */
    {&grouped_heads, {.dtype = MGL_BF16, .queues = 6, .rows = 1, .splits = 3, .unsplit = 45}},
    {&small_model, {.dtype = MGL_F32, .queues = 3, .splits = 4, .unsplit = 20}},
    {&wide_groups,
     {.dtype = MGL_BF16,
      .queues = 3,
      .rows = 1,
      .splits = 2,
      .unsplit = 50,
      .warps = 1,
      .page_bytes = 8192}},
    /* a second list: by warpgroups, without scaled weights and with them; then scaled weights by
     * warp teams, in the last shape by default */
    {&grouped_heads,
     {.dtype = MGL_BF16,
      .queues = 40,
      .rows = 1,
      .second_rows = 128,
      .warpgroups = MGL_WARPGROUPS_YES}},
    {&grouped_heads,
     {.dtype = MGL_BF16,
      .queues = 4,
      .rows = 1,
      .second_rows = 40,
      .warpgroups = MGL_WARPGROUPS_YES,
      .scaled = {MGL_CODE_INT4, MGL_F16, 128, 1, true}}},
    {&grouped_heads,
     {.dtype = MGL_BF16,
      .queues = 40,
      .rows = 1,
      .second_rows = 128,
      .warpgroups = MGL_WARPGROUPS_YES,
      .scaled = {MGL_CODE_INT8, MGL_F32, MGL_GROUP_ALL, 1, false}}},
    {&grouped_heads,
     {.dtype = MGL_BF16,
      .queues = 8,
      .rows = 1,
      .second_rows = 128,
      .warpgroups = MGL_WARPGROUPS_YES,
      .scaled = {MGL_CODE_INT4, MGL_F16, 128, 1, false}}},
    {&grouped_heads,
     {.dtype = MGL_BF16,
      .queues = 4,
      .rows = 1,
      .second_rows = 40,
      .warpgroups = MGL_WARPGROUPS_NO,
      .scaled = {MGL_CODE_E4M3, MGL_F32, 128, 128, false}}},
    {&grouped_heads,
     {.dtype = MGL_BF16,
      .queues = 40,
      .rows = 1,
      .second_rows = 64,
      .scaled = {MGL_CODE_INT4, MGL_F16, 32, 1, false}}},
};

enum { SHAPES = (int)(sizeof shapes / sizeof *shapes), SECOND_SHAPES = 6 /* the last ones */ };
enum { NEW = 24, TIMES = 30 };

/* Whether the device has the instructions of a shape. */
static bool is_possible(const struct shape *shape)
{
    mgl_target target;
    mgl_error err;
    if (shape->options.warpgroups != MGL_WARPGROUPS_YES)
        return true;
    ok(mgl_cuda_live_target(0, &target, &err), err);
    return strcmp(target.arch, MGL_WARPGROUP_ARCH) == 0;
}

START_TEST(logits_are_the_cpus)
{
    if (is_possible(&shapes[_i]))
        check_logits(shapes[_i].geometry, &shapes[_i].options, _i, 37, NEW);
}
END_TEST

/* Registers and memory that a product still reads must not change: that would show in some runs. */
START_TEST(prompts_are_repeatable)
{
    const struct shape *shape = &shapes[SHAPES - SECOND_SHAPES + _i];
    ck_assert_int_gt(shape->options.second_rows, 0);
    if (is_possible(shape))
        check_prompts(shape->geometry, &shape->options, _i, TIMES);
}
END_TEST

/* ---- one model, many runs -------------------------------------------------------------------- */

enum { LONG = 1000, LONG_CAPACITY = 1024 };

/* The whole record of a reply: tokens and the last logits. */
static uint64_t fingerprint(mgl_vm *vm, const mgl_vm_sequence *sequence, float *logits, int vocab)
{
    mgl_error err;
    mgl_vm_report report;
    uint64_t hash = 14695981039346656037ull; /* FNV-1a */
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.launches, 1);
    ck_assert_int_eq(report.produced[0], sequence->max_new);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    const unsigned char *parts[2] = {(const unsigned char *)report.output[0],
                                     (const unsigned char *)logits};
    size_t bytes[2] = {(size_t)sequence->max_new * sizeof(int32_t), (size_t)vocab * sizeof(float)};
    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < bytes[p]; i++)
            hash = (hash ^ parts[p][i]) * 1099511628211ull;
    return hash;
}

/* Ten launches of 1,000 tokens, end tokens ignored, twice: the same bits. */
START_TEST(long_replies_are_bit_identical)
{
    golden_model m;
    float logits[1024];
    uint64_t hashes[2][10];
    open_device_model(&m, "tales-5m",
                      &(device_options){.dtype = MGL_BF16, .capacity = LONG_CAPACITY});
    int32_t prompt[10][4];
    double start = mgl_clock_s();
    for (int run = 0; run < 2; run++)
        for (int i = 0; i < 10; i++) {
            fill_prompt(prompt[i], 4, 900, i);
            mgl_vm_sequence sequence = {.prompt = prompt[i], .prompt_count = 4, .max_new = LONG};
            sequence.temperature = i % 2 ? 0.9f : 0.0f;
            sequence.seed = (uint64_t)i;
            hashes[run][i] = fingerprint(m.vm, &sequence, logits, 913);
        }
    printf("20 launches of %d tokens: %.1f us a token\n", LONG,
           (mgl_clock_s() - start) * 1e6 / 20 / (double)LONG);
    ck_assert_mem_eq(hashes[0], hashes[1], sizeof hashes[0]);
    for (int i = 1; i < 10; i++)
        ck_assert_uint_ne(hashes[0][i], hashes[0][0]);
    golden_close(&m);
}
END_TEST

START_TEST(sampling_is_the_cpus)
{
    check_sampling(CHECK_SETTINGS, NEW);
}
END_TEST

START_TEST(ragged_sequences_are_as_alone)
{
    static const device_options options[] = {{.dtype = MGL_F32, .splits = 1},
                                             {.dtype = MGL_BF16, .splits = 2},
                                             {.dtype = MGL_BF16, .splits = 1},
                                             {.dtype = MGL_BF16, .splits = 1, .rows = 16},
                                             {.dtype = MGL_BF16, .splits = 2, .unsplit = 9},
                                             /* row after row (variant `tiles`), not adjacent */
                                             {.dtype = MGL_BF16,
                                              .exchange = MGL_EXCHANGE_FLAGS,
                                              .queues = 6,
                                              .splits = 2,
                                              .unsplit = 7,
                                              .warps = 12,
                                              .rows = 8}};
    static const mgl_geometry *const models[] = {&small_model, &small_model,   &grouped_heads,
                                                 &long_heads,  &grouped_heads, &grouped_heads};
    check_ragged(models[_i], &options[_i], 20);
}
END_TEST

START_TEST(a_talk_is_read_once)
{
    static const device_options options[] = {
        {.exchange = MGL_EXCHANGE_COUNTERS, .splits = 1, .rows = 4}, {.splits = 3, .rows = 16}};
    check_talk(&small_model, &options[_i], 10);
}
END_TEST

/* With neighbors and alone. */
START_TEST(stop_texts_end_replies)
{
    static const device_options options[] = {{.queues = 9, .rows = 4, .sequences = 3},
                                             {.rows = 16, .sequences = 16},
                                             {.queues = 6, .rows = 1}};
    check_device_stops(&small_model, &options[_i]);
}
END_TEST

START_TEST(penalties_are_the_published_ones)
{
    static const device_options options[] = {{.queues = 9, .rows = 4, .sequences = 3},
                                             {.rows = 16, .sequences = 16},
                                             {.queues = 6, .rows = 1},
                                             {.rows = 1, .second_rows = 8, .sequences = 3}};
    check_device_penalties(&odd_model, &options[_i], 200);
}
END_TEST

START_TEST(likely_tokens_are_told)
{
    static const device_options options[] = {{.queues = 9, .rows = 4, .sequences = 3},
                                             {.rows = 16, .sequences = 16},
                                             {.queues = 6, .rows = 1}};
    check_device_likely(&odd_model, &options[_i]);
}
END_TEST

struct listener {
    int tokens, most;
    atomic_int abort;
    int32_t heard[LONG];
    bool refuse; /* cancel by the return value, else by the abort word */
};

static bool hear(void *user, int sequence, int32_t token)
{
    struct listener *l = user;
    ck_assert_int_eq(sequence, 0);
    ck_assert_int_lt(l->tokens, LONG);
    l->heard[l->tokens++] = token;
    if (l->tokens < l->most)
        return true;
    l->abort = !l->refuse;
    return !l->refuse;
}

/* Tokens arrive while the kernel runs, all and in order; both forms of cancelling end the reply
 * early, and the machine runs again. */
START_TEST(a_reply_can_be_ended)
{
    static struct listener l;
    mgl_error err;
    mgl_vm_report report;
    golden_model m;
    int32_t prompt[4];
    open_device_model(&m, "tales-5m",
                      &(device_options){.dtype = MGL_BF16, .capacity = LONG_CAPACITY});
    fill_prompt(prompt, 4, 900, 1);
    for (int i = 0; i < 3; i++) {
        mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 4, .max_new = LONG};
        mgl_vm_request request = {
            .sequences = &sequence, .count = 1, .on_token = hear, .user = &l, .abort = &l.abort};
        l = (struct listener){.most = i < 2 ? 20 : LONG + 1, .refuse = i == 0};
        ok(mgl_vm_run(m.vm, &request, &report, &err), err);
        ck_assert_int_eq(report.launches, 1);
        printf("%d tokens heard, %d made\n", l.tokens, report.produced[0]);
        if (i < 2) {
            ck_assert_int_eq(report.state[0], MGL_STATE_ABORTED);
            ck_assert_int_ge(report.produced[0], 20);
            ck_assert_int_lt(report.produced[0], LONG);
        } else {
            ck_assert_int_eq(report.state[0], MGL_STATE_LENGTH);
            ck_assert_int_eq(l.tokens, LONG);
        }
        ck_assert_int_le(l.tokens, report.produced[0]);
        ck_assert_mem_eq(l.heard, report.output[0], (size_t)l.tokens * sizeof(int32_t));
    }
    golden_close(&m);
}
END_TEST

START_TEST(capacities_share_a_kernel)
{
    check_capacities(&odd_model, 24);
}
END_TEST

START_TEST(what_is_no_number_is_rejected)
{
    static const device_options options[] = {{.dtype = MGL_F32},
                                             {.dtype = MGL_BF16, .queues = 9},
                                             {.dtype = MGL_BF16, .queues = 6, .rows = 1}};
    check_numbers(&grouped_heads, &options[_i]);
}
END_TEST

START_TEST(an_end_token_ends_a_reply)
{
    check_end_token(NEW);
}
END_TEST

/* Random delays before waits and after stores: with flags, counters, tensor cores and cp.async,
 * keys and values through the ring, and warpgroups on all queues, which must start their products
 * together. */
START_TEST(delays_change_nothing)
{
    static const device_options options[] = {
        {.dtype = MGL_BF16},
        {.dtype = MGL_BF16, .exchange = MGL_EXCHANGE_COUNTERS, .splits = 2},
        {.dtype = MGL_BF16, .rows = 8, .splits = 3},
        {.dtype = MGL_F16, .arch = "compute_80"},
        {.dtype = MGL_BF16, .rows = 1, .splits = 2, .warps = 1, .page_bytes = 8192},
        {.dtype = MGL_BF16, .rows = 1, .second_rows = 40}};
    static const mgl_geometry *const models[] = {&grouped_heads, &small_model, &long_heads,
                                                 &grouped_heads, &wide_groups, &wide_layer};
    check_delays(models[_i], &options[_i], 20, options[_i].second_rows ? 20 : 50);
}
END_TEST

/* ---- the watchdog ---------------------------------------------------------------------------- */

START_TEST(a_deadlock_is_reported)
{
    static const char *const counters[] = {"l0.qkv", "l1.attend", "head", "sampled", "embedded"};
    check_deadlock(counters[_i], 2.0);
}
END_TEST

START_TEST(words_that_do_not_come_are_reported)
{
    check_missing_words(2.0);
}
END_TEST

START_TEST(an_op_that_nobody_knows_is_reported)
{
    check_unknown_op(2.0);
}
END_TEST

/* A program with more blocks than can be resident is rejected with numbers, not launched. */
START_TEST(too_many_queues_are_rejected)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_target live;
    ok(mgl_cuda_live_target(0, &live, &err), err);
    if (live.queues >= MGL_MAX_QUEUES)
        return;
    device_options options = {
        .dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = live.queues + 1};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *program = device_program(graph, &options);
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .unchecked = true};
    ck_assert_int_eq(mgl_vm_open(program, graph, &open, &vm, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "queues"), "%s", err.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Other queues; one row with flags; products separate from attention; a checkpoint last. */
static const struct exchange {
    const mgl_geometry *geometry; /* NULL: tales-5m */
    device_options from, to;
} exchanges[] = {
    {&odd_model,
     {.dtype = MGL_F32, .exchange = MGL_EXCHANGE_COUNTERS, .capacity = 96, .queues = 9},
     {.dtype = MGL_F32, .exchange = MGL_EXCHANGE_COUNTERS, .capacity = 96, .queues = 6}},
    {&grouped_heads,
     {.dtype = MGL_BF16, .capacity = 96, .queues = 6, .rows = 1, .splits = 2},
     {.dtype = MGL_BF16, .capacity = 96, .queues = 6, .products = 4, .rows = 1, .splits = 2}},
    {NULL,
     {.dtype = MGL_BF16, .capacity = 256},
     {.dtype = MGL_BF16, .capacity = 256, .queues = 97}},
};

START_TEST(exchanged_programs_are_as_opened)
{
    const struct exchange *e = &exchanges[_i];
    golden_model m;
    mgl_graph *graph = NULL;
    if (e->geometry)
        graph = random_graph(e->geometry, 96, true, MGL_BF16, 3);
    else
        golden_open(&m, "tales-5m");
    check_exchange(graph ? graph : m.checkpoint->graph, &e->from, &e->to, 20, NEW);
    if (graph)
        mgl_graph_free(graph);
    else
        golden_close(&m);
}
END_TEST

/* The options of the program that reads. */
static const struct {
    const mgl_geometry *geometry;
    device_options options;
} readers[] = {
    {&small_model, {.rows = 1, .second_rows = 8, .queues = 3}},
    {&grouped_heads, {.rows = 1, .second_rows = 16, .queues = 6, .splits = 2, .delay_seed = 1}},
    {&wide_groups, {.rows = 1, .second_rows = 64}},
};

START_TEST(a_machine_reads_prompts_for_its_owner)
{
    check_owner(readers[_i].geometry, &readers[_i].options, 5);
}
END_TEST

int main(void)
{
    int skip = skip_without_device("cuda_run");
    if (skip)
        return skip;
    TCase *tests = tcase_create("cuda_run");
    tcase_set_timeout(tests, 300);
    add_cases(tests, logits_are_the_cpus, SHAPES);
    add_cases(tests, prompts_are_repeatable, SECOND_SHAPES);
    add_cases(tests, sampling_is_the_cpus, 1);
    add_cases(tests, ragged_sequences_are_as_alone, 6);
    add_cases(tests, a_talk_is_read_once, 2);
    add_cases(tests, a_machine_reads_prompts_for_its_owner,
              (int)(sizeof readers / sizeof *readers));
    add_cases(tests, stop_texts_end_replies, 3);
    add_cases(tests, likely_tokens_are_told, 3);
    add_cases(tests, penalties_are_the_published_ones, 4);
    add_cases(tests, delays_change_nothing, 6);
    add_cases(tests, capacities_share_a_kernel, 1);
    add_cases(tests, what_is_no_number_is_rejected, 3);
    add_cases(tests, an_end_token_ends_a_reply, 1);
    add_cases(tests, a_reply_can_be_ended, 1);
    add_cases(tests, a_deadlock_is_reported, 5);
    add_cases(tests, words_that_do_not_come_are_reported, 1);
    add_cases(tests, an_op_that_nobody_knows_is_reported, 1);
    add_cases(tests, too_many_queues_are_rejected, 1);
    add_cases(tests, exchanged_programs_are_as_opened, (int)(sizeof exchanges / sizeof *exchanges));
    add_cases(tests, long_replies_are_bit_identical, 1);
    return fixture_main("cuda_run", tests);
}
