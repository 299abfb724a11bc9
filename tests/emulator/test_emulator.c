/*
 * The CUDA machine in the emulator: the kernel's own sources against the CPU machine, with the
 * checks and tolerances of the tests on a GPU (tests/vm/cuda/cuda_checks.h) and shorter replies.
 *
 *     test_emulator GROUP [--seed N] [--case N] [--count N] [--part 1/3] [--pace even|uneven]
 *                         [--skip-quick] [--covers]
 *
 * A group is `shapes`, `replies`, `many` (rows of a second list) or `configs`, which draws random
 * configs; --count sets their number. The group `quick` contains the quick cases of all groups
 * (cases.h). --skip-quick leaves out the quick cases. --part 1/3 takes the first third of the
 * remaining cases. --covers prints the ops, variants and kernel paths that the cases covered.
 *
 * The seed selects the order of warps and of asynchronous copies. To repeat a failed case, pass
 * --seed and --case.
 *
 * Some cases run with uneven progress (emu_uneven): those of `many` with odd numbers, and some of
 * the other groups. With --pace uneven, all cases run with uneven progress.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "configs.h"
#include "coverage.h"
#include "past.h"
#include "second_list.h"
#include "shapes.h"
#include "tests/emulator/emulator.h"
#include "vm/cuda/encode.h"

static uint64_t first_seed = 1;
static bool all_uneven; /* every case with uneven progress */

/* ---- shapes ---------------------------------------------------------------------------------- */

START_TEST(logits_are_the_cpus)
{
    emu_seed(first_seed + (uint64_t)_i);
    emu_uneven(all_uneven);
    check_logits(emulator_shapes[_i].geometry, &emulator_shapes[_i].options, _i, 19, 5);
    if (_i % 12 != 5)
        return;
    emu_uneven(true); /* some cases of each kind again */
    check_logits(emulator_shapes[_i].geometry, &emulator_shapes[_i].options, _i, 19, 5);
}
END_TEST

/* ---- replies --------------------------------------------------------------------------------- */

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

/* Models of other families. */
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

/* Decode rows computed by one warp, and longer ones, with norms of q and k. */
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

/* Vocabularies of 1,213 and of 13 tokens. */
static void likely_tokens(void)
{
    static const mgl_geometry few_words = {32, 1, 2, 1, 16, 40, 13, 1e-5f};
    check_device_likely(&odd_model, &(device_options){.queues = 3, .rows = 4, .sequences = 3});
    check_device_likely(&few_words, &(device_options){.queues = 2, .rows = 1});
}

/* Alone, in a batch, and with two lists. */
static void penalties(void)
{
    static const mgl_geometry few_words = {32, 1, 2, 1, 16, 40, 13, 1e-5f};
    check_device_penalties(&few_words, &(device_options){.queues = 2, .rows = 1}, 12);
    check_device_penalties(&few_words, &(device_options){.queues = 3, .rows = 4, .sequences = 3},
                           12);
    check_device_penalties(
        &few_words, &(device_options){.queues = 2, .rows = 1, .second_rows = 8, .sequences = 3}, 6);
}

static void batch_with_splits(void)
{
    check_ragged(&small_model, &(device_options){.dtype = MGL_BF16, .splits = 2, .rows = 8}, 9);
}

/* Decode rows computed by one warp, and longer ones, in one epoch and alone. */
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

/* Rows with two batches for some warps; a row alone computes both at once. */
static void batch_of_kv_rounds(void)
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

/* The maximum of roundings to 16 bits, on sums that splits divide differently. */
static void batch_of_splits_in_16_bits(void)
{
    check_ragged(&even_model,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .exchange_precision = 3,
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

/* A text with more clears than fit in the record of the attention before them, in addition to those
 * of lowering. */
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

/* So few warps that each has several KV rounds of one row: even and odd numbers of them. */
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

static void kv_rounds_of_long_heads(void)
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

static void kv_rounds_of_splits(void)
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

/* The maximum of rows for the batch variant, and fewer rows: the same bits. */
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

/* Epochs with both unsplit and split rows, so that a task attends with rows that are not adjacent.
 * With so many warps, attention runs row after row (variant `tiles`). */
static void batch_of_mixed_rows(void)
{
    check_ragged(&even_model,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 6,
                                   .splits = 2,
                                   .unsplit = 7,
                                   .warps = 12,
                                   .rows = 8},
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

/* One row with flags only, and keys and values through the ring. */
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

/* With counters, with flags, and one row with flags only. */
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

/* The emulator's clock counts steps, not real time. */
static void watchdog(void)
{
    enum { SECONDS = 60 };
    emu_expect_deadlock(true);
    check_deadlock("l0.qkv", SECONDS);
    check_missing_words(SECONDS);
    emu_expect_deadlock(false);
    check_unknown_op(SECONDS);
}

/* A warp that does not free a page: the loader waits for the warp, and all other roles for the
 * loader. */
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

static const emulator_case replies[] = {
    {first_tokens, CASE_QUICK},
    {first_tokens_with_counters, CASE_QUICK},
    {batch, CASE_LONG},
    {batch_with_splits, CASE_QUICK},
    {drawn_tokens, CASE_QUICK},
    {ended_reply, CASE_QUICK},
    {watchdog, CASE_QUICK},
    {batch_of_grouped_heads, CASE_QUICK},
    {batch_of_a_large_group, CASE_LONG},
    {batch_of_long_heads, CASE_LONG},
    {batch_of_long_heads_with_splits, CASE_QUICK},
    {batch_of_several_rows, CASE_LONG},
    {batch_of_long_runs, CASE_LONG},
    {watchdog_of_the_ring, CASE_QUICK},
    {delays, CASE_QUICK},
    {delays_with_counters, CASE_LONG},
    {delays_merged_in_o, CASE_QUICK},
    {waves, CASE_LONG},
    {kv_rounds_of_long_heads, CASE_LONG},
    {kv_rounds_of_splits, CASE_QUICK},
    {batch_of_kv_rounds, CASE_LONG},
    {two_capacities, CASE_LONG},
    {batch_of_mixed_rows, CASE_LONG},
    {exchanged_programs, CASE_QUICK},
    {exchanged_plain_programs, CASE_QUICK},
    {no_numbers, CASE_LONG},
    {first_tokens_of_qwen2, CASE_LONG},
    {first_tokens_of_qwen3, CASE_LONG},
    {first_tokens_of_mistral, CASE_LONG},
    {batch_of_normed_heads, CASE_LONG},
    {batch_of_long_normed_heads, CASE_LONG},
    {talk, CASE_QUICK},
    {batch_of_splits_in_16_bits, CASE_LONG},
    {clears_behind_attention, CASE_QUICK},
    {stop_texts, CASE_LONG},
    {likely_tokens, CASE_QUICK},
    {penalties, CASE_QUICK},
};
enum { REPLIES = sizeof replies / sizeof *replies };

static const emulator_case *get_reply(int number)
{
    if (number < REPLIES)
        return &replies[number];
    number -= REPLIES;
    return number < PAST_REPLIES ? &past_replies[number]
                                 : &second_list_replies[number - PAST_REPLIES];
}

START_TEST(replies_are_as_on_a_gpu)
{
    emu_seed(first_seed + (uint64_t)_i);
    emu_uneven(all_uneven);
    get_reply(_i)->run();
}
END_TEST

/* Each case runs twice with the same kernels: even numbers with even progress, odd numbers with
 * uneven progress. */
START_TEST(many_rows_are_as_on_a_gpu)
{
    emu_seed(first_seed + (uint64_t)_i);
    emu_uneven(all_uneven || _i % 2);
    second_list_rows[_i / 2].run();
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

/* ---- groups ---------------------------------------------------------------------------------- */

static emulator_duration duration_of_shape(int number)
{
    return emulator_shapes[number].duration;
}

static emulator_duration duration_of_reply(int number)
{
    return get_reply(number)->duration;
}

/* In this group, cases with uneven progress take long. */
static emulator_duration duration_of_many(int number)
{
    return number % 2 ? CASE_LONG : second_list_rows[number / 2].duration;
}

static emulator_duration duration_of_config(int number)
{
    (void)number;
    return CASE_LONG;
}

static const struct group {
    const char *name;
    const TTest *const *test;
    int count;
    emulator_duration (*duration_of)(int number);
} groups[] = {{"shapes", &logits_are_the_cpus, EMULATOR_SHAPES, duration_of_shape},
              {"replies", &replies_are_as_on_a_gpu, REPLIES + PAST_REPLIES + SECOND_LIST_REPLIES,
               duration_of_reply},
              {"many", &many_rows_are_as_on_a_gpu, 2 * SECOND_LIST_ROWS, duration_of_many},
              {"configs", &any_config_gives_the_same, FEW_CONFIGS, duration_of_config}};
enum { GROUPS = sizeof groups / sizeof *groups };

START_TEST(quick_cases_cover_the_kernel)
{
    ck_assert_msg(coverage_is_complete(),
                  "the quick cases are incomplete: see the lines `not covered` above");
}
END_TEST

/* ---- the command line ------------------------------------------------------------------------ */

typedef struct settings {
    const char *group;
    int first, count; /* of the group's cases; count 0: all */
    int part, parts;  /* part 1 to parts */
    bool skip_quick, covers;
} settings;

static int complain(const char *name)
{
    fprintf(stderr,
            "usage: %s quick|shapes|replies|many|configs [--seed N] [--case N] [--count N]\n"
            "          [--part I/N] [--pace even|uneven] [--skip-quick] [--covers]\n",
            name);
    return 2;
}

static bool read_settings(int argc, char **argv, settings *to)
{
    *to = (settings){.group = argc > 1 ? argv[1] : "", .part = 1, .parts = 1};
    for (int i = 2; i < argc; i++) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(flag, "--skip-quick")) {
            to->skip_quick = true;
            continue;
        }
        if (!strcmp(flag, "--covers")) {
            to->covers = true;
            continue;
        }
        if (!strcmp(flag, "--seed"))
            first_seed = strtoull(value, NULL, 10);
        else if (!strcmp(flag, "--case"))
            to->first = atoi(value), to->count = to->count > 0 ? to->count : 1;
        else if (!strcmp(flag, "--count"))
            to->count = atoi(value);
        else if (!strcmp(flag, "--pace"))
            all_uneven = !strcmp(value, "uneven");
        else if (strcmp(flag, "--part") != 0 ||
                 sscanf(value, "%d/%d", &to->part, &to->parts) != 2 || to->part < 1 ||
                 to->part > to->parts)
            return false;
        i++;
    }
    return true;
}

/* Adds the selected cases of a group. If `quick`, only quick cases are selected; if s->skip_quick,
 * only others. Of the selected cases, part s->part of s->parts is added. */
static void add_group(TCase *tests, const struct group *group, const settings *s, bool quick)
{
    const int cases = s->count > 0 ? s->count : group->count;
    int chosen = 0, number = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = s->first; i < s->first + cases; i++) {
            const bool is_quick = i < group->count && group->duration_of(i) == CASE_QUICK;
            if (quick ? !is_quick : s->skip_quick && is_quick)
                continue;
            if (pass == 0) {
                chosen++;
                continue;
            }
            if (number * s->parts / chosen == s->part - 1)
                tcase_add_loop_test(tests, *group->test, i, i + 1);
            number++;
        }
}

static bool add_cases_of(TCase *tests, const settings *s)
{
    const bool quick = !strcmp(s->group, "quick");
    bool found = false;
    for (int i = 0; i < GROUPS; i++)
        if (quick || !strcmp(s->group, groups[i].name)) {
            add_group(tests, &groups[i], s, quick);
            found = true;
        }
    if (quick && s->parts == 1 && !s->count)
        tcase_add_test(tests, quick_cases_cover_the_kernel);
    return found;
}

int main(int argc, char **argv)
{
    settings s;
    TCase *tests = tcase_create("emulator");
    if (!read_settings(argc, argv, &s) || !add_cases_of(tests, &s))
        return complain(argv[0]);
    if (!emu_install("emulator"))
        return SKIP;
    /* compiled kernels are stored beside the test, not in the user's cache */
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/tests/emulator/kernels", 1);
    emu_expect_resets();
    coverage_start();
    const int failed = fixture_main("emulator", tests);
    if (s.covers)
        coverage_print();
    return failed;
}
