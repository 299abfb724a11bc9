/*
 * Tests of damaged schedules, each judged as described in damaged.h: with flag edges and clears,
 * with two lists, with splits that the next product merges, and with variants, biases and norms.
 * Each base is damaged 100 times, and each schedule with variants 100 times. Another 800 damaged
 * schedules together contain each kind of damage. Builds with sanitizers run fewer.
 * tests/emulator/test_damaged.c judges more, and also runs the accepted ones in the emulator.
 *
 *   test_damage [base [round]]     one base; and one round of it, whose text is printed
 *   test_damage base -1 rounds     `rounds` rounds of one base, or of all bases if base is -1
 */
#include "damaged.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/sanitized.h"

enum {
    ROUNDS = BY_SANITIZER(100, 40),
    VARIED_ROUNDS = BY_SANITIZER(100, 20),
    VARIED = 12,
    MADE_ROUNDS = 600
};

/* One head of 16 in a layer; the smallest model with every part of a schedule. */
static const mgl_geometry one_layer = {32, 1, 2, 1, 16, 40, 41, 1e-5f};
static const mgl_geometry in_pages = {64, 1, 4, 2, 16, 64, 41, 1e-5f};
static const mgl_geometry two_heads = {32, 1, 2, 2, 16, 24, 41, 1e-5f};

/* Prompts in epochs of four rows and fewer, then single rows: five epochs, so that both sets are
 * used twice and more. */
#define BASE(shape, queues, split, type)                                                           \
    {                                                                                              \
        .model = shape, .target = "cpu:" queues,                                                   \
        .options = {.dtype = type,                                                                 \
                    .splits = split,                                                               \
                    .rows = 4,                                                                     \
                    .sequences = 2,                                                                \
                    .capacity = 10,                                                                \
                    .exchange = MGL_EXCHANGE_FLAGS},                                               \
        .prompt = 5                                                                                \
    }
/* Splits that o merges; every two positions, one more split is used. */
#define MERGED(shape, queues, split, type, edges)                                                  \
    {                                                                                              \
        .model = shape, .target = "cpu:" queues,                                                   \
        .options = {.dtype = type,                                                                 \
                    .splits = split,                                                               \
                    .merge = MGL_MERGE_IN_O,                                                       \
                    .share = 2,                                                                    \
                    .rows = 4,                                                                     \
                    .sequences = 2,                                                                \
                    .capacity = 10,                                                                \
                    .exchange = MGL_EXCHANGE_##edges},                                             \
        .prompt = 5                                                                                \
    }
/* Unsplit and split rows: some epochs have rows of both kinds. */
#define UNSPLIT(shape, queues, split, type, edges)                                                 \
    {                                                                                              \
        .model = shape, .target = "cpu:" queues,                                                   \
        .options = {.dtype = type,                                                                 \
                    .splits = split,                                                               \
                    .unsplit = 4,                                                                  \
                    .rows = 4,                                                                     \
                    .sequences = 2,                                                                \
                    .capacity = 10,                                                                \
                    .exchange = MGL_EXCHANGE_##edges},                                             \
        .prompt = 5                                                                                \
    }
/* Both lists: prompts in epochs of six rows, or fewer, then of one or two. */
#define LISTS(shape, queues, few, edges, type, weighs)                                             \
    {                                                                                              \
        .model = shape, .target = "cpu:" queues,                                                   \
        .options = {.dtype = type,                                                                 \
                    .rows = few,                                                                   \
                    .gamma_scaled = MGL_GAMMA_##weighs,                                            \
                    .second_rows = 6,                                                              \
                    .sequences = 2,                                                                \
                    .capacity = 10,                                                                \
                    .exchange = MGL_EXCHANGE_##edges},                                             \
        .prompt = 5                                                                                \
    }
/* With flags in the second list too: four epochs of it and three of the first, so that sets of
 * both are used again. */
#define MIRROR(shape, queues, split, merges, sets)                                                 \
    {                                                                                              \
        .model = shape, .target = "cpu:" queues,                                                   \
        .options = {.dtype = MGL_F32,                                                              \
                    .splits = split,                                                               \
                    .rows = 1,                                                                     \
                    .second_rows = 4,                                                              \
                    .sequences = 1,                                                                \
                    .capacity = 20,                                                                \
                    .merge = MGL_MERGE_##merges,                                                   \
                    .exchange = MGL_EXCHANGE_FLAGS},                                               \
        .prompt = 15, .mirrored = sets                                                             \
    }
/* Of quantized matrices, with flags; and with two lists. */
#define QUANTIZED(...) WITH_FORMAT(false, __VA_ARGS__)
#define WITH_FORMAT(orders, shape, queues, second, type, ...)                                      \
    {                                                                                              \
        .model = shape, .target = "cpu:" queues,                                                   \
        .options = {.dtype = type,                                                                 \
                    .rows = second ? 2 : 4,                                                        \
                    .second_rows = second,                                                         \
                    .sequences = 2,                                                                \
                    .capacity = 10,                                                                \
                    .exchange = MGL_EXCHANGE_FLAGS},                                               \
        .prompt = 5, .reordered = orders, .quantized = __VA_ARGS__                                 \
    }
#define BY_ROW(type_code, type)                                                                    \
    {                                                                                              \
        .code = MGL_CODE_##type_code, .scales = MGL_##type, .group_rows = 1                        \
    }
#define BY_GROUP(type_code, type, columns, points)                                                 \
    {                                                                                              \
        .code = MGL_CODE_##type_code, .scales = MGL_##type, .group = columns, .group_rows = 1,     \
        .zeros = points                                                                            \
    }
/* The same with column maps. */
#define REORDERED(...) WITH_FORMAT(true, __VA_ARGS__)
static const damaged_recipe bases[] = {
    BASE(&one_layer, "2", 1, MGL_F32),
    BASE(&one_layer, "3", 1, MGL_BF16),
    BASE(&one_layer, "4", 1, MGL_F32),
    BASE(&one_layer, "2", 2, MGL_F32),
    BASE(&one_layer, "3", 3, MGL_F32),
    BASE(&two_heads, "3", 1, MGL_F32),
    BASE(&two_heads, "4", 2, MGL_BF16),
    BASE(&tiny_model, "2", 1, MGL_F32),
    LISTS(&one_layer, "2", 2, FLAGS, MGL_F32, NO),
    LISTS(&one_layer, "3", 2, COUNTERS, MGL_F32, NO),
    LISTS(&two_heads, "4", 2, FLAGS, MGL_F32, NO),
    LISTS(&one_layer, "2", 2, FLAGS, MGL_F32, YES),
    LISTS(&one_layer, "3", 2, COUNTERS, MGL_BF16, YES),
    LISTS(&in_pages, "4", 2, FLAGS, MGL_BF16, YES),
    LISTS(&tiny_model, "3", 2, COUNTERS, MGL_F32, YES),
    MIRROR(&one_layer, "2", 1, TASKS, 2),
    MIRROR(&one_layer, "3", 2, IN_O, 3),
    MIRROR(&two_heads, "2", 1, TASKS, 3),
    MERGED(&one_layer, "2", 2, MGL_F32, FLAGS),
    MERGED(&two_heads, "3", 3, MGL_BF16, FLAGS),
    MERGED(&one_layer, "3", 2, MGL_F32, COUNTERS),
    UNSPLIT(&one_layer, "3", 2, MGL_F32, FLAGS),
    UNSPLIT(&two_heads, "4", 2, MGL_BF16, FLAGS),
    UNSPLIT(&one_layer, "3", 3, MGL_F32, COUNTERS),
    UNSPLIT(&tiny_model, "3", 2, MGL_F32, COUNTERS),
    UNSPLIT(&tiny_model, "3", 2, MGL_F32, FLAGS),
    QUANTIZED(&one_layer, "2", 0, MGL_F32, BY_ROW(INT8, F32)),
    QUANTIZED(&two_heads, "3", 0, MGL_BF16, BY_ROW(E4M3, BF16)),
    QUANTIZED(&one_layer, "3", 0, MGL_F32, BY_GROUP(INT4, F16, 32, false)),
    QUANTIZED(&two_heads, "2", 6, MGL_F32, BY_GROUP(INT8, F16, 16, true)),
    QUANTIZED(&two_heads, "3", 0, MGL_F32, BY_GROUP(UINT4, F16, 32, false)),
    QUANTIZED(&one_layer, "3", 6, MGL_F32, BY_ROW(INT8, BF16)),
    REORDERED(&one_layer, "3", 0, MGL_F32, BY_GROUP(INT4, F16, 16, true)),
    REORDERED(&two_heads, "2", 6, MGL_F32, BY_GROUP(INT8, BF16, 16, false))};
enum { BASES = sizeof bases / sizeof *bases };

static int only_base = -1, only_round = -1, all_rounds = ROUNDS;

/* Runs the rounds of a base. The counts do not include the undamaged base. */
static damaged_counts judge_rounds(const damaged_recipe *recipe, int base, int rounds)
{
    damaged_counts counts = {0};
    damaged_base *damaged = damaged_open(recipe);
    damaged_judge_base(damaged, NULL, &counts);
    ck_assert_int_eq(counts.accepted, 1);
    counts.tried = counts.accepted = 0;
    for (int round = 0; round < rounds; round++)
        if (only_round < 0 || only_round == round)
            damaged_round(damaged, (uint64_t)base * 1000003u + (uint64_t)round, NULL,
                          only_round == round, &counts);
    printf("base %d: %d damaged: %d unreadable, %d rejected (%d for order, of which %d shown; %d "
           "for variants), %d accepted\n",
           base, counts.tried, counts.unreadable, counts.rejected, counts.unordered, counts.shown,
           counts.of_variants, counts.accepted);
    ck_assert_int_eq(counts.failed, 0);
    damaged_close(damaged);
    return counts;
}

START_TEST(accepted_is_good)
{
    if (only_base >= 0 && only_base != _i)
        return;
    damaged_counts counts = judge_rounds(&bases[_i], _i, all_rounds);
    if (only_round < 0) {
        ck_assert_int_gt(counts.accepted, all_rounds / 100);
        ck_assert_int_ge(counts.shown, counts.unordered * 95 / 100);
    }
}
END_TEST

START_TEST(accepted_with_variants_is_good)
{
    if (only_base >= 0 && only_base != BASES + _i)
        return;
    damaged_recipe recipe = damaged_draw((uint64_t)_i);
    damaged_counts counts = judge_rounds(&recipe, BASES + _i, VARIED_ROUNDS);
    if (only_round < 0)
        ck_assert_int_gt(counts.accepted, VARIED_ROUNDS / 100);
}
END_TEST

/* Cases: a schedule with flags in both lists, one with row factors, one with variants and norms,
 * one with splits that only some rows have, and one with unsplit rows and counters. */
START_TEST(all_damages_are_made)
{
    enum { FLAGS_IN_BOTH = 15, UNSPLIT_ROWS = 24, FACTORS = 26 };
    static const int varied[] = {10, 16, 12};
    if (only_base >= 0)
        return;
    damaged_counts counts[6] = {judge_rounds(&bases[FLAGS_IN_BOTH], FLAGS_IN_BOTH, MADE_ROUNDS)};
    counts[4] = judge_rounds(&bases[FACTORS], FACTORS, VARIED_ROUNDS);
    counts[5] = judge_rounds(&bases[UNSPLIT_ROWS], UNSPLIT_ROWS, MADE_ROUNDS);
    for (int i = 0; i < 3; i++) {
        damaged_recipe recipe = damaged_draw((uint64_t)varied[i]);
        counts[1 + i] = judge_rounds(&recipe, BASES + varied[i], VARIED_ROUNDS);
    }
    for (int damage = 0; damage < DAMAGES; damage++)
        ck_assert_msg(counts[0].made[damage] + counts[1].made[damage] + counts[2].made[damage] +
                              counts[3].made[damage] + counts[4].made[damage] +
                              counts[5].made[damage] >
                          0,
                      "%s", damage_name(damage));
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("damage");
    if (argc > 1)
        only_base = atoi(argv[1]);
    if (argc > 2)
        only_round = atoi(argv[2]);
    if (argc > 3)
        all_rounds = atoi(argv[3]);
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, accepted_is_good, 0, BASES);
    tcase_add_loop_test(tests, accepted_with_variants_is_good, 0, VARIED);
    if (!MGL_SANITIZED)
        tcase_add_test(tests, all_damages_are_made);
    return fixture_main("damage", tests);
}
