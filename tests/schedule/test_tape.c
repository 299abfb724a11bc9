/*
 * Tests of the geometry of tapes and activation pages: the maps between positions and blocks are
 * inverse, and every page has data for each warp.
 */
#include <check.h>
#include <stdlib.h>

#include "base/memory.h"
#include "schedule/pages.h"
#include "schedule/tape.h"

enum { MOST_BLOCKS = 150, MOST_WARPS = 16 };

START_TEST(a_place_and_its_block_are_inverse)
{
    for (int warps = 1; warps <= MOST_WARPS; warps++)
        for (int blocks = 1; blocks <= MOST_BLOCKS; blocks++)
            for (int b = 0; b < blocks; b++) {
                int place = mgl_tape_place_of_block(blocks, warps, b);
                ck_assert_int_ge(place, 0);
                ck_assert_int_lt(place, blocks);
                ck_assert_int_eq(mgl_tape_block_at(blocks, warps, place), b);
            }
}
END_TEST

START_TEST(a_run_is_a_warp_s_columns)
{
    mgl_tape_order order = mgl_tape_order_of(72, 16); /* runs of 5, the last one of 2 */
    ck_assert_int_eq(order.warps, 15);
    ck_assert_int_eq(order.run, 5);
    ck_assert_int_eq(order.of_last, 2);
    ck_assert_int_eq(mgl_tape_place(order, 14, 1), mgl_tape_place_of_block(72, 16, 71));
}
END_TEST

/* The first blocks of all runs, then the second blocks, and so on. */
START_TEST(every_warp_has_one_of_so_many_places)
{
    for (int warp = 0; warp < 8; warp++)
        ck_assert_int_eq(mgl_tape_place_of_block(64, 8, 8 * warp + 3), 3 * 8 + warp);
}
END_TEST

START_TEST(a_block_has_sixty_four_bytes_of_each_row)
{
    ck_assert_int_eq(mgl_tape_columns(32), 16);
    ck_assert_int_eq(mgl_tape_columns(16), 32);
    ck_assert_int_eq(mgl_tape_columns(8), 64);
    ck_assert_int_eq(mgl_tape_columns(4), 128);
    ck_assert_int_eq(mgl_tape_blocks(65, 16), 3);
    ck_assert_int_eq(mgl_tape_blocks(64, 16), 2);
}
END_TEST

/* The order of elements: columns of a row, rows of a group, blocks by position, alternating
 * tensors, groups. */
START_TEST(every_weight_lies_once)
{
    enum { BLOCKS = 5, COLUMNS = 4, TENSORS = 2, GROUPS = 3, WARPS = 2 };
    enum { ROWS = GROUPS * MGL_ROW_GROUP, WIDTH = BLOCKS * COLUMNS };
    static int seen[TENSORS][ROWS][WIDTH];
    for (long long i = 0; i < TENSORS * ROWS * WIDTH; i++) {
        mgl_tape_weight w = mgl_tape_weight_at(i, BLOCKS, COLUMNS, TENSORS, WARPS);
        ck_assert(w.which < TENSORS && w.row < ROWS && w.column < WIDTH);
        ck_assert_int_eq(seen[w.which][w.row][w.column]++, 0);
        ck_assert_int_eq(w.which, i / (BLOCKS * COLUMNS * MGL_ROW_GROUP) % TENSORS);
    }
}
END_TEST

/* Each value of a paged buffer has its own place, within the bytes of the same number of rows. */
START_TEST(pages_have_a_place_for_each_value)
{
    static const int rows[] = {1, 6, 17, 64, 128};
    const int count = rows[_i], columns = 3 * MGL_PAGE_COLUMNS;
    bool *taken = mgl_alloc_zero((size_t)count * (size_t)columns, sizeof *taken);
    for (int r = 0; r < count; r++)
        for (int c = 0; c < columns; c++) {
            const int block = mgl_tape_place_of_block(columns / MGL_PAGE_BLOCK_COLUMNS, 4,
                                                      c / MGL_PAGE_BLOCK_COLUMNS);
            const long long place =
                mgl_page_at(count, r, block, (unsigned)c) / MGL_PAGE_VALUE_BYTES;
            ck_assert_int_ge(place, 0);
            ck_assert_int_lt(place, count * columns);
            ck_assert(!taken[place]);
            taken[place] = true;
        }
    mgl_free(taken);
}
END_TEST

/* The quarters with the same number of eight neighboring rows are in different banks of shared
 * memory (128 bytes). */
START_TEST(pages_are_free_of_conflicts)
{
    for (int quarter = 0; quarter < 4; quarter++) {
        unsigned banks = 0;
        for (int r = 8 * _i; r < 8 * _i + 8; r++)
            banks |=
                1u << mgl_page_at(64, r, 0, (unsigned)quarter * MGL_PAGE_QUARTER_COLUMNS) / 16 % 8;
        ck_assert_uint_eq(banks, 0xFF);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tape");
    TCase *cases = tcase_create("geometry");
    tcase_add_test(cases, a_place_and_its_block_are_inverse);
    tcase_add_test(cases, a_run_is_a_warp_s_columns);
    tcase_add_test(cases, every_warp_has_one_of_so_many_places);
    tcase_add_test(cases, a_block_has_sixty_four_bytes_of_each_row);
    tcase_add_test(cases, every_weight_lies_once);
    tcase_add_loop_test(cases, pages_have_a_place_for_each_value, 0, 5);
    tcase_add_loop_test(cases, pages_are_free_of_conflicts, 0, 8);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
