/*
 * The CUDA machine in the emulator: the kernel's own sources against the CPU machine, with the
 * checks and tolerances of the tests on a GPU (tests/vm/cuda_checks.h) and shorter replies.
 *
 *     test_emulator GROUP [--seed N] [--case N] [--count N] [--part 1/3] [--pace even|uneven]
 *
 * A group is `shapes`, `replies`, `many` (rows of a second list) or `configs`, of which there is no
 * end: --count says how many. --part takes the first of three shares of the group's cases, of equal
 * length. Another seed is another order of everything that has none: of warps, of the copies that
 * land. What fails can be repeated with the seed and the number of the case.
 *
 * Some cases run with uneven progress (emu_uneven): all of `many` once more, with numbers behind
 * the others', and some of the other groups. --pace uneven makes all cases so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs.h"
#include "past.h"
#include "second_list.h"
#include "tests/emulator/emulator.h"
#include "vm/cuda/encode.h"

static uint64_t first_seed = 1;
static bool all_uneven; /* every case, not only those that are meant to be */

/* ---- shapes -----------------------------------------------------------------------------------
 */

/* Every way through the kernel, and what is odd about a shape. */
static const struct shape {
    const mgl_geometry *geometry;
    device_options options;
} shapes[] = {
    {&small_model, {.dtype = MGL_F32, .exchange = MGL_EXCHANGE_COUNTERS}},
    {&small_model, {.dtype = MGL_F32, .exchange = MGL_EXCHANGE_FLAGS, .queues = 3, .splits = 4}},
    {&small_model, {.arch = "compute_80", .dtype = MGL_F32, .ring_pages = 3, .page_bytes = 2048}},
    {&tiny_model, {.dtype = MGL_F32, .queues = 2, .ring_pages = 2, .page_bytes = 2048}},
    {&odd_model, {.dtype = MGL_F32, .queues = 5, .warps = 1, .rows = 3, .page_bytes = 2048}},
    {&odd_model, {.dtype = MGL_F32, .queues = 6, .warps = 16, .rows = 16, .ring_pages = 2}},
    {&multi_query, {.dtype = MGL_F32, .exchange = MGL_EXCHANGE_FLAGS, .splits = 2}},
    {&narrow_heads, {.dtype = MGL_BF16, .stage_bytes = 1024, .rows = 5}},
    {&even_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .rows = 8,
      .page_bytes = 8192,
      .stage_bytes = 32768}},
    {&even_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_COUNTERS,
      .queues = 6,
      .rows = 1,
      .splits = 2,
      .page_bytes = 8192,
      .ring_pages = 3}},
    {&even_model,
     {.arch = "compute_80",
      .dtype = MGL_F16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 3,
      .page_bytes = 8192}},
    {&even_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 4,
      .page_bytes = 16384,
      .stage_bytes = 65536}},
    {&uneven_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .rows = 2,
      .warps = 4,
      .page_bytes = 8192,
      .stage_bytes = 49152}},
    /* room for two of the ffn's rows in the activation buffer: four go the batch way */
    {&uneven_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 4,
      .page_bytes = 8192,
      .stage_bytes = 20480}},
    /* several rows, attention's values in 16 bits, which the ffn's are anyway */
    {&even_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .narrow = 2,
      .queues = 3,
      .rows = 6,
      .page_bytes = 16384,
      .stage_bytes = 65536}},
    /* several rows: what registers have room for, more than that, and warps without blocks */
    {&even_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 8,
      .page_bytes = 16384,
      .stage_bytes = 65536}},
    {&even_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 8,
      .warps = 2,
      .page_bytes = 8192,
      .stage_bytes = 49152}},
    {&idle_warps,
     {.dtype = MGL_F16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 7,
      .page_bytes = 16384,
      .stage_bytes = 49152}},
    /* plain programs: attention on queues of its own, with splits, with warps that have nothing, by
       cp.async */
    {&even_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 9,
      .rows = 1,
      .page_bytes = 8192}},
    {&even_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 5,
      .rows = 1,
      .splits = 2,
      .page_bytes = 16384}},
    {&idle_warps,
     {.dtype = MGL_F16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 1,
      .narrow = 3,
      .page_bytes = 16384}},
    {&uneven_model,
     {.arch = "compute_80",
      .dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 4,
      .rows = 1,
      .warps = 4,
      .page_bytes = 8192}},
    /* biases and norms of q and k: in f32; heads that the lanes of a warp do not share evenly; one
       row, with splits and without; several */
    {&small_model, {.dtype = MGL_F32, .splits = 2, .extras = ALL_EXTRAS}},
    {&odd_model, {.dtype = MGL_F32, .queues = 5, .warps = 1, .rows = 3, .extras = ALL_EXTRAS}},
    {&narrow_heads, {.dtype = MGL_BF16, .rows = 5, .extras = ALL_EXTRAS}},
    {&paged_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 5,
      .rows = 1,
      .extras = ALL_EXTRAS}},
    {&even_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 9,
      .rows = 1,
      .page_bytes = 8192,
      .extras = ALL_EXTRAS}},
    {&even_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 5,
      .rows = 1,
      .splits = 2,
      .page_bytes = 16384,
      .extras = MGL_EXTRA_QK_NORM}},
    {&even_model, {.dtype = MGL_BF16, .rows = 8, .page_bytes = 8192, .extras = ALL_EXTRAS}},
    /* o merges: with counters and with flags, in f32 and in 16 bits, one row and several, with
       splits that are used from some positions on, more than are merged at once, and idle warps */
    {&small_model,
     {.dtype = MGL_F32, .exchange = MGL_EXCHANGE_COUNTERS, .splits = 3, .merge = 2, .share = 6}},
    {&small_model,
     {.dtype = MGL_F32,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .splits = 6,
      .merge = 2,
      .share = 4}},
    {&even_heads,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 5,
      .rows = 1,
      .splits = 6,
      .merge = 2,
      .share = 4,
      .page_bytes = 16384}},
    {&even_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 9,
      .rows = 1,
      .splits = 3,
      .merge = 2,
      .page_bytes = 8192}},
    {&even_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .rows = 2,
      .splits = 3,
      .merge = 2,
      .share = 8,
      .page_bytes = 8192}},
    {&idle_warps,
     {.dtype = MGL_F16,
      .exchange = MGL_EXCHANGE_FLAGS,
      .queues = 3,
      .rows = 1,
      .splits = 5,
      .merge = 2,
      .share = 1,
      .narrow = 3,
      .page_bytes = 16384,
      .extras = ALL_EXTRAS}},
    {&even_model,
     {.dtype = MGL_BF16,
      .exchange = MGL_EXCHANGE_COUNTERS,
      .queues = 6,
      .rows = 4,
      .splits = 2,
      .merge = 2,
      .stage_bytes = 1024,
      .page_bytes = 8192,
      .ring_pages = 3}},
};

START_TEST(logits_are_the_cpus)
{
    emu_seed(first_seed + (uint64_t)_i);
    emu_uneven(all_uneven);
    check_logits(shapes[_i].geometry, &shapes[_i].options, _i, 19, 5);
    if (_i % 12 != 5)
        return;
    emu_uneven(true); /* some of all kinds once more */
    check_logits(shapes[_i].geometry, &shapes[_i].options, _i, 19, 5);
}
END_TEST

/* ---- replies ----------------------------------------------------------------------------------
 */

static void check_tokens(device_options options, double gap)
{
    golden_model m;
    options.capacity = 64;
    open_device_model(&m, "tales-5m", &options);
    golden_check_first(&m, gap, 6);
    golden_close(&m);
}

static void first_tokens(void)
{
    check_tokens((device_options){.dtype = MGL_BF16, .exchange = MGL_EXCHANGE_FLAGS}, 0.1);
}

/* The other families. */
static void first_tokens_of(const char *name, mgl_dtype dtype, double gap)
{
    golden_model m;
    const device_options options = {.dtype = dtype, .capacity = 64};
    open_device_model(&m, name, &options);
    golden_check_first(&m, gap, 6);
    golden_close(&m);
}

static void first_tokens_of_qwen2(void)
{
    first_tokens_of("qwen2", MGL_F32, 1e-4);
    first_tokens_of("qwen2", MGL_BF16, 0.2);
}

static void first_tokens_of_qwen3(void)
{
    first_tokens_of("qwen3", MGL_F32, 1e-4);
    first_tokens_of("qwen3", MGL_BF16, 0.2);
}

static void first_tokens_of_mistral(void)
{
    first_tokens_of("mistral", MGL_F32, 1e-4);
}

/* Rows that a warp attends for by itself, and longer ones, with norms of q and k. */
static void batch_of_normed_heads(void)
{
    check_ragged(&grouped_heads,
                 &(device_options){.dtype = MGL_BF16, .splits = 1, .rows = 8, .extras = ALL_EXTRAS},
                 9);
}

static void batch_of_long_normed_heads(void)
{
    check_ragged(&long_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .rows = 16,
                                   .extras = MGL_EXTRA_QK_NORM},
                 25);
}

static void first_tokens_with_counters(void)
{
    check_tokens((device_options){.dtype = MGL_F32, .exchange = MGL_EXCHANGE_COUNTERS, .queues = 7},
                 1e-4);
}

static void batch(void)
{
    check_ragged(&small_model, &(device_options){.dtype = MGL_F32, .splits = 1}, 9);
}

static void talk(void)
{
    check_talk(&small_model, &(device_options){.queues = 3, .splits = 2, .rows = 4}, 3);
}

static void stop_texts(void)
{
    check_device_stops(&small_model, &(device_options){.queues = 3, .rows = 4, .sequences = 3});
    check_device_stops(&small_model, &(device_options){.queues = 2, .rows = 1});
}

/* Of a vocabulary of 1,213 and of one of 13 tokens. */
static void likely_tokens(void)
{
    static const mgl_geometry few_words = {32, 1, 2, 1, 16, 40, 13, 1e-5f};
    check_device_likely(&odd_model, &(device_options){.queues = 3, .rows = 4, .sequences = 3});
    check_device_likely(&few_words, &(device_options){.queues = 2, .rows = 1});
}

/* Alone, in a batch and of two lists. */
static void penalties(void)
{
    static const mgl_geometry few_words = {32, 1, 2, 1, 16, 40, 13, 1e-5f};
    check_device_penalties(&few_words, &(device_options){.queues = 2, .rows = 1}, 12);
    check_device_penalties(&few_words, &(device_options){.queues = 3, .rows = 4, .sequences = 3},
                           12);
    check_device_penalties(&few_words,
                           &(device_options){.queues = 2, .rows = 1, .many = 8, .sequences = 3}, 6);
}

static void batch_with_splits(void)
{
    check_ragged(&small_model, &(device_options){.dtype = MGL_BF16, .splits = 2, .rows = 8}, 9);
}

/* Rows that a warp attends for by itself, and longer ones, in one epoch and alone. */
static void batch_of_grouped_heads(void)
{
    check_ragged(&grouped_heads, &(device_options){.dtype = MGL_BF16, .splits = 1, .rows = 8}, 9);
}

static void batch_of_a_large_group(void)
{
    check_ragged(&large_group,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .rows = 16},
                 9);
}

static void batch_of_long_heads(void)
{
    check_ragged(&long_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .rows = 16},
                 25);
}

/* Rows that have two batches for some warps: alone both are worked on at once. */
static void batch_of_waves(void)
{
    check_ragged(&long_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .warps = 4,
                                   .rows = 16},
                 25);
}

static void batch_of_long_heads_with_splits(void)
{
    check_ragged(
        &long_heads,
        &(device_options){
            .dtype = MGL_BF16, .exchange = MGL_EXCHANGE_FLAGS, .queues = 4, .splits = 3, .rows = 8},
        9);
}

/* As many roundings to 16 bits as there can be, on sums that splits cut elsewhere. */
static void batch_of_splits_in_16_bits(void)
{
    check_ragged(&even_model,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .narrow = 3,
                                   .queues = 8,
                                   .splits = 2,
                                   .warps = 12,
                                   .rows = 14,
                                   .page_bytes = 16384,
                                   .ring_pages = 4,
                                   .stage_bytes = 8192,
                                   .extras = MGL_EXTRA_QK_NORM},
                 9);
}

/* A text whose clears have no room in the record of the attention before them, beside what lowering
 * makes. */
static void clears_behind_attention(void)
{
    static const char path[] =
        MGL_SOURCE_DIR "/tests/validator/cases/accept_flags_clear_behind_attention.mls";
    const device_options options = {.dtype = MGL_BF16,
                                    .exchange = MGL_EXCHANGE_FLAGS,
                                    .capacity = 64,
                                    .queues = 4,
                                    .products = 2,
                                    .splits = 1,
                                    .rows = 4};
    mgl_error err;
    mgl_program *read;
    mgl_graph *graph = random_family(&small_model, MGL_EXTRA_QK_NORM, 64, true, MGL_BF16, 5);
    mgl_program *lowered = device_program(graph, &options);
    ok(mgl_schedule_read(path, &read, &err), err);
    check_same_answer(graph, lowered, read, 9);
    mgl_program_free(read);
    mgl_program_free(lowered);
    mgl_graph_free(graph);
}

/* So few warps that each has several waves of strips of one row: even and odd numbers of them. */
static void waves(void)
{
    check_logits(&grouped_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 2,
                                   .splits = 1,
                                   .warps = 1,
                                   .rows = 16},
                 1, 60, 6);
}

static void waves_of_long_heads(void)
{
    check_logits(&long_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 2,
                                   .splits = 1,
                                   .warps = 2,
                                   .rows = 16},
                 2, 60, 10);
}

static void waves_of_splits(void)
{
    check_logits(&long_heads,
                 &(device_options){.dtype = MGL_F16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 3,
                                   .warps = 1,
                                   .rows = 8},
                 3, 60, 10);
}

/* As many rows as a product takes by the batch way, and fewer: the same bits. */
static void batch_of_several_rows(void)
{
    check_ragged(&even_model,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .rows = 8,
                                   .page_bytes = 8192,
                                   .stage_bytes = 32768},
                 9);
}

static void batch_of_long_runs(void)
{
    check_ragged(&even_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .rows = 8,
                                   .warps = 2,
                                   .page_bytes = 8192,
                                   .stage_bytes = 49152},
                 9);
}

static void two_capacities(void)
{
    check_capacities(&small_model, 9);
}

/* Fewer queues, and products apart from attention. */
static void exchanged_programs(void)
{
    const device_options from = {
        .dtype = MGL_F32, .exchange = MGL_EXCHANGE_COUNTERS, .capacity = 64, .queues = 3};
    device_options to = from;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_BF16, 3);
    to.queues = 4;
    to.products = 2;
    check_exchange(graph, &from, &to, 2, 5);
    mgl_graph_free(graph);
}

/* Of one row by flags alone, with keys and values through the ring. */
static void exchanged_plain_programs(void)
{
    const device_options from = {.dtype = MGL_F16,
                                 .exchange = MGL_EXCHANGE_FLAGS,
                                 .capacity = CHECK_CAPACITY,
                                 .queues = 3,
                                 .splits = 2,
                                 .warps = 1,
                                 .rows = 1,
                                 .page_bytes = 6144};
    device_options to = from;
    mgl_graph *graph = random_graph(&paged_heads, CHECK_CAPACITY, true, MGL_F16, 3);
    to.queues = 4;
    to.products = 2;
    check_exchange(graph, &from, &to, 2, 5);
    mgl_graph_free(graph);
}

/* By counters, by flags, and of one row by flags alone. */
static void no_numbers(void)
{
    check_numbers(&small_model, &(device_options){.dtype = MGL_F32});
    check_numbers(&small_model,
                  &(device_options){.dtype = MGL_BF16, .queues = 3, .rows = 4, .splits = 2});
    check_numbers(&grouped_heads,
                  &(device_options){
                      .dtype = MGL_BF16, .exchange = MGL_EXCHANGE_FLAGS, .queues = 3, .rows = 1});
}

static void drawn_tokens(void)
{
    check_sampling(4, 6);
}

static void ended_reply(void)
{
    check_end_token(8);
}

/* The emulator's clock is not that of the wall. */
static void watchdog(void)
{
    enum { SECONDS = 60 };
    emu_expect_deadlock(true);
    check_deadlock("l0.qkv", SECONDS);
    check_missing_words(SECONDS);
    emu_expect_deadlock(false);
    check_unknown_op(SECONDS);
}

/* A warp that does not let go of a page: the loader waits for it, and all for the loader. */
static void watchdog_of_the_ring(void)
{
    enum { SECONDS = 60, ARRIVAL = 40 };
    emu_expect_deadlock(true);
    emu_forget_arrival(ARRIVAL);
    check_lost_page(SECONDS);
    emu_forget_arrival(0);
    emu_expect_deadlock(false);
}

static void delays(void)
{
    check_delays(&grouped_heads, &(device_options){.dtype = MGL_BF16, .queues = 3}, 3, 4);
}

static void delays_merged_in_o(void)
{
    check_delays(
        &grouped_heads,
        &(device_options){
            .dtype = MGL_BF16, .queues = 3, .rows = 1, .splits = 3, .merge = 2, .share = 2},
        3, 4);
}

static void delays_with_counters(void)
{
    check_delays(
        &small_model,
        &(device_options){.dtype = MGL_BF16, .exchange = MGL_EXCHANGE_COUNTERS, .splits = 2}, 3, 4);
}

static void (*const replies[])(void) = {first_tokens,
                                        first_tokens_with_counters,
                                        batch,
                                        batch_with_splits,
                                        drawn_tokens,
                                        ended_reply,
                                        watchdog,
                                        batch_of_grouped_heads,
                                        batch_of_a_large_group,
                                        batch_of_long_heads,
                                        batch_of_long_heads_with_splits,
                                        batch_of_several_rows,
                                        batch_of_long_runs,
                                        watchdog_of_the_ring,
                                        delays,
                                        delays_with_counters,
                                        delays_merged_in_o,
                                        waves,
                                        waves_of_long_heads,
                                        waves_of_splits,
                                        batch_of_waves,
                                        two_capacities,
                                        exchanged_programs,
                                        exchanged_plain_programs,
                                        no_numbers,
                                        first_tokens_of_qwen2,
                                        first_tokens_of_qwen3,
                                        first_tokens_of_mistral,
                                        batch_of_normed_heads,
                                        batch_of_long_normed_heads,
                                        talk,
                                        batch_of_splits_in_16_bits,
                                        clears_behind_attention,
                                        stop_texts,
                                        likely_tokens,
                                        penalties};
enum { REPLIES = sizeof replies / sizeof *replies };

START_TEST(replies_are_as_on_a_gpu)
{
    emu_seed(first_seed + (uint64_t)_i);
    emu_uneven(all_uneven);
    if (_i < REPLIES)
        replies[_i]();
    else if (_i < REPLIES + PAST_REPLIES)
        past_replies[_i - REPLIES]();
    else
        second_list_replies[_i - REPLIES - PAST_REPLIES]();
}
END_TEST

/* All of them, then all once more with uneven progress. */
START_TEST(many_rows_are_as_on_a_gpu)
{
    emu_seed(first_seed + (uint64_t)_i);
    emu_uneven(all_uneven || _i >= SECOND_LIST_MANY);
    second_list_many[_i % SECOND_LIST_MANY]();
}
END_TEST

enum { FEW_CONFIGS = 4 /* by default */ };

START_TEST(any_config_gives_the_same)
{
    emu_seed(first_seed + (uint64_t)_i);
    emu_uneven(all_uneven);
    check_config(_i);
}
END_TEST

/* ---- the command line -------------------------------------------------------------------------
 */

static int complain(const char *name)
{
    fprintf(stderr,
            "usage: %s shapes|replies|many|configs [--seed N] [--case N] [--count N] [--part I/N]\n"
            "          [--pace even|uneven]\n",
            name);
    return 2;
}

/* A share of a group's cases. */
typedef struct share {
    int part, parts; /* part 1 to parts */
} share;

/* Adds the group's cases: `count` of them from `first` on, or as many as there are, or a share of
 * those; false: there is no such group. */
static bool add_group(TCase *tests, const char *group, int first, int count, share of)
{
    const struct {
        const char *name;
        const TTest *test;
        int count;
    } groups[] = {
        {"shapes", logits_are_the_cpus, (int)(sizeof shapes / sizeof *shapes)},
        {"replies", replies_are_as_on_a_gpu, REPLIES + PAST_REPLIES + SECOND_LIST_REPLIES},
        {"many", many_rows_are_as_on_a_gpu, 2 * SECOND_LIST_MANY},
        {"configs", any_config_gives_the_same, FEW_CONFIGS}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const int cases = count > 0 ? count : groups[i].count;
        if (!strcmp(group, groups[i].name)) {
            tcase_add_loop_test(tests, groups[i].test, first + cases * (of.part - 1) / of.parts,
                                first + cases * of.part / of.parts);
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    int first = 0, count = 0;
    share of = {1, 1};
    if (argc % 2)
        return complain(argv[0]);
    for (int i = 2; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "--seed"))
            first_seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--case"))
            first = atoi(argv[i + 1]), count = count > 0 ? count : 1;
        else if (!strcmp(argv[i], "--count"))
            count = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--pace"))
            all_uneven = !strcmp(argv[i + 1], "uneven");
        else if (strcmp(argv[i], "--part") != 0 ||
                 sscanf(argv[i + 1], "%d/%d", &of.part, &of.parts) != 2 || of.part < 1 ||
                 of.part > of.parts)
            return complain(argv[0]);
    TCase *tests = tcase_create(argv[1]);
    if (!add_group(tests, argv[1], first, count, of))
        return complain(argv[0]);
    if (!emu_install("emulator"))
        return SKIP;
    /* kernels are kept beside the test, not among the user's */
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/tests/emulator/kernels", 1);
    return fixture_main("emulator", tests);
}
