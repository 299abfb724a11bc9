/* Tests of parallel work: each item runs once, a worker runs one item at a time, and the lowest
 * failing item's error is returned. */
#include "base/parallel.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 5000 };

static struct {
    atomic_int done[ITEMS];           /* number of executions */
    atomic_int busy[MGL_MAX_THREADS]; /* a worker does one item at a time */
    size_t failing;                   /* this item fails */
} work;

static mgl_status do_item(void *user, int worker, size_t item, mgl_error *err)
{
    ck_assert_ptr_eq(user, &work);
    ck_assert(worker >= 0 && worker < MGL_MAX_THREADS);
    ck_assert_int_eq(atomic_fetch_add(&work.busy[worker], 1), 0);
    atomic_fetch_add(&work.done[item], 1);
    atomic_fetch_sub(&work.busy[worker], 1);
    if (item == work.failing)
        return mgl_fail(err, MGL_BAD_INPUT, "item", "it is the one that fails");
    return MGL_OK;
}

START_TEST(every_item_is_done_once)
{
    mgl_error err;
    memset(&work, 0, sizeof work);
    work.failing = ITEMS;
    ck_assert_int_eq(mgl_parallel(_i, ITEMS, do_item, &work, &err), MGL_OK);
    for (int i = 0; i < ITEMS; i++)
        ck_assert_int_eq(work.done[i], 1);
}
END_TEST

START_TEST(nothing_to_do_is_done)
{
    ck_assert_int_eq(mgl_parallel(4, 0, do_item, &work, NULL), MGL_OK);
}
END_TEST

START_TEST(a_failure_ends_it_and_is_told)
{
    mgl_error err = {0};
    memset(&work, 0, sizeof work);
    work.failing = 7;
    ck_assert_int_eq(mgl_parallel(_i, ITEMS, do_item, &work, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "item");
    ck_assert_int_eq(work.done[ITEMS - 1] && _i == 1, 0);
    ck_assert_int_eq(mgl_parallel(_i, ITEMS, do_item, &work, NULL), MGL_BAD_INPUT);
}
END_TEST

static mgl_status fail_late(void *user, int worker, size_t item, mgl_error *err)
{
    (void)user, (void)worker;
    if (item == 0)
        usleep(2000); /* the others fail first */
    return mgl_fail(err, item ? MGL_BAD_INPUT : MGL_NO_MEMORY, item ? "later" : "first", "%s", "");
}

START_TEST(the_lowest_failure_is_told)
{
    mgl_error err = {0};
    ck_assert_int_eq(mgl_parallel(4, ITEMS, fail_late, NULL, &err), MGL_NO_MEMORY);
    ck_assert_str_eq(err.where, "first");
}
END_TEST

START_TEST(there_is_a_thread_at_least)
{
    ck_assert_int_ge(mgl_parallel_threads(), 1);
    ck_assert_int_le(mgl_parallel_threads(), MGL_MAX_THREADS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parallel");
    TCase *cases = tcase_create("parallel");
    tcase_add_loop_test(cases, every_item_is_done_once, 1, MGL_MAX_THREADS + 2);
    tcase_add_test(cases, nothing_to_do_is_done);
    tcase_add_loop_test(cases, a_failure_ends_it_and_is_told, 1, 5);
    tcase_add_test(cases, the_lowest_failure_is_told);
    tcase_add_test(cases, there_is_a_thread_at_least);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
