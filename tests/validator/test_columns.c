/* Tests of intervals of values, against an array with one entry per column. */
#include "support.h"

#include "validator/check.h"

enum { COLUMNS = 24 };

START_TEST(agrees_with_an_array)
{
    uint32_t random = 12345u + (uint32_t)_i;
    mgl_columns columns = {0};
    int node[COLUMNS], node_column[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        node[c] = -1;
    for (int round = 0; round < 200; round++) {
        int numbers[4];
        for (int i = 0; i < 4; i++) {
            random = random * 1664525u + 1013904223u;
            numbers[i] = (int)(random >> 24);
        }
        int lo = numbers[0] % COLUMNS, hi = lo + 1 + numbers[1] % (COLUMNS - lo);
        int value = numbers[2] % 2, first = numbers[3] % 3 ? lo : numbers[3] % 5;
        ck_assert(mgl_columns_set(&columns, lo, hi, value, first));
        for (int c = lo; c < hi; c++) {
            node[c] = value;
            node_column[c] = first + c - lo;
        }
        for (int a = 0; a < COLUMNS; a++)
            for (int b = a + 1; b <= COLUMNS; b++) {
                bool whole = node[a] >= 0;
                for (int c = a + 1; c < b; c++)
                    whole = whole && node[c] == node[a] && node_column[c] == node_column[a] + c - a;
                int got = -1;
                int64_t at = -1;
                ck_assert_int_eq(mgl_columns_get(&columns, a, b, &got, &at), whole);
                if (whole)
                    ck_assert(got == node[a] && at == node_column[a]);
            }
    }
    mgl_free(columns.items);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator columns");
    TCase *cases = tcase_create("columns");
    tcase_add_loop_test(cases, agrees_with_an_array, 0, 4);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
