/* Unpacks words of codes and compares each code with its definition. The numbers of rows and
 * columns are not multiples of a tile. */
#include "importer/quantized/unpack.h"

#include <check.h>
#include <stdlib.h>

enum { MOST_ROWS = 21, COLUMNS = 72 };

static uint32_t words[COLUMNS * MOST_ROWS];
static uint8_t codes[MOST_ROWS * COLUMNS + 1];

static void draw(void)
{
    uint32_t state = 7;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        state = state * 1664525u + 1013904223u;
        words[i] = state ^ state >> 16;
    }
}

/* The code of a column: field column % fields of word column / fields. */
static unsigned gptq_code(int bits, int64_t rows, int64_t row, int64_t column)
{
    const int fields = 32 / bits;
    return words[column / fields * rows + row] >> column % fields * bits & ((1u << bits) - 1);
}

/* A permutation: 5 and 72, and 5 and 68, have no common divisor. */
static void fill_order(int32_t *order, int64_t columns)
{
    for (int64_t i = 0; i < columns; i++)
        order[i] = (int32_t)((5 * i + 3) % columns);
}

START_TEST(gptq)
{
    static const int64_t rows[] = {1, 7, 8, 16, MOST_ROWS};
    const int bits = _i ? 8 : 4;
    const int64_t columns = _i ? COLUMNS - 4 : COLUMNS; /* of 8 bits: 4 columns behind a tile */
    int32_t order[COLUMNS];
    uint8_t room[8 * COLUMNS];
    draw();
    fill_order(order, columns);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int sorted = 0; sorted < 2; sorted++) {
            codes[rows[i] * columns] = 0xA5;
            if (sorted)
                mgl_unpack_gptq_sorted(words, bits, rows[i], columns, order, room, codes);
            else
                mgl_unpack_gptq(words, bits, rows[i], columns, codes);
            for (int64_t n = 0; n < rows[i]; n++)
                for (int64_t k = 0; k < columns; k++)
                    ck_assert_uint_eq(codes[n * columns + k],
                                      gptq_code(bits, rows[i], n, sorted ? order[k] : k));
            ck_assert_uint_eq(codes[rows[i] * columns], 0xA5);
        }
}
END_TEST

START_TEST(sorted_codes)
{
    int32_t order[COLUMNS];
    uint8_t from[COLUMNS];
    for (int64_t count = 68; count <= COLUMNS; count += 4) {
        fill_order(order, count);
        for (int64_t k = 0; k < count; k++)
            from[k] = (uint8_t)(3 * k + 1);
        codes[count] = 0xA5;
        mgl_sort_codes(from, order, count, codes);
        for (int64_t i = 0; i < count; i++)
            ck_assert_uint_eq(codes[i], from[order[i]]);
        ck_assert_uint_eq(codes[count], 0xA5);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantized unpack");
    TCase *tests = tcase_create("unpack");
    tcase_add_loop_test(tests, gptq, 0, 2);
    tcase_add_test(tests, sorted_codes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
