/*
 * Tests of the thread pool: every item is executed once by any number of threads, an abort skips
 * the rest, and missing pages of a map end the run instead of the process.
 */
#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "vm/cpu/pool.h"

enum { ITEMS = 1000, RUNS = 300, PAGES = 64, PAGE = 4096 };

static mgl_pool *open_pool(int threads)
{
    mgl_pool *pool;
    mgl_error err;
    ck_assert_int_eq(mgl_pool_open(threads, &pool, &err), MGL_OK);
    ck_assert_int_eq(mgl_pool_threads(pool), threads);
    return pool;
}

struct tally {
    atomic_int done[ITEMS];
    atomic_int busy[64]; /* items in progress of each worker */
    atomic_int abort;
    size_t last; /* item that sets the abort; ITEMS: none */
    int threads;
};

static void count_item(void *user, int worker, size_t item)
{
    struct tally *t = user;
    ck_assert_int_lt(worker, t->threads);
    ck_assert_int_eq(atomic_fetch_add(&t->busy[worker], 1), 0);
    atomic_fetch_add(&t->done[item], 1);
    if (item == t->last)
        atomic_store(&t->abort, 1);
    atomic_fetch_sub(&t->busy[worker], 1);
}

/* Many consecutive runs, with many items and few. */
START_TEST(every_item_is_done_once)
{
    static struct tally t;
    mgl_pool *pool = open_pool(_i);
    for (int run = 0; run < RUNS; run++) {
        size_t count = run % 3 == 0 ? ITEMS : (size_t)(run % 3);
        memset(&t, 0, sizeof t);
        t.last = ITEMS;
        t.threads = _i;
        ck_assert_int_eq(mgl_pool_run(pool, count, &t.abort, count_item, &t), MGL_POOL_DONE);
        for (size_t i = 0; i < ITEMS; i++)
            ck_assert_int_eq(t.done[i], i < count);
        if (run % 100 == 0)
            usleep(2000); /* so that the threads sleep */
    }
    mgl_pool_close(pool);
}
END_TEST

START_TEST(an_abort_leaves_items_out)
{
    static struct tally t;
    mgl_pool *pool = open_pool(_i);
    memset(&t, 0, sizeof t);
    t.last = 10;
    t.threads = _i;
    ck_assert_int_eq(mgl_pool_run(pool, ITEMS, &t.abort, count_item, &t), MGL_POOL_ABORTED);
    int done = 0;
    for (size_t i = 0; i < ITEMS; i++)
        done += t.done[i];
    ck_assert_int_ge(done, 11);
    ck_assert_int_lt(done, ITEMS);
    mgl_pool_close(pool);
}
END_TEST

static atomic_int sum;

static void read_page(void *user, int worker, size_t item)
{
    const volatile char *bytes = user;
    (void)worker;
    atomic_fetch_add(&sum, bytes[item * PAGE]);
}

/* The file is truncated while it is mapped; another run on the remaining part succeeds. */
START_TEST(pages_that_are_gone_end_the_run)
{
    char path[] = "/tmp/megalith-pool-XXXXXX";
    static const char zeros[PAGES * PAGE];
    mgl_map *map;
    mgl_error err;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, zeros, sizeof zeros), sizeof zeros);
    ck_assert_int_eq(mgl_map_open(path, &map, &err), MGL_OK);
    void *bytes = (void *)(uintptr_t)mgl_map_bytes(map);
    mgl_pool *pool = open_pool(_i);
    ck_assert_int_eq(mgl_pool_run(pool, PAGES, NULL, read_page, bytes), MGL_POOL_DONE);
    ck_assert_int_eq(mgl_map_check(map, sizeof zeros, &err), MGL_OK);
    ck_assert_int_eq(ftruncate(file, PAGES / 2 * PAGE), 0);
    ck_assert_int_eq(mgl_pool_run(pool, PAGES, NULL, read_page, bytes), MGL_POOL_LOST);
    ck_assert_int_eq(mgl_map_check(map, sizeof zeros, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_pool_run(pool, PAGES / 2, NULL, read_page, bytes), MGL_POOL_DONE);
    mgl_pool_close(pool);
    mgl_map_close(map);
    close(file);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tests = tcase_create("pool");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, every_item_is_done_once, 1, 6);
    tcase_add_loop_test(tests, an_abort_leaves_items_out, 1, 4);
    tcase_add_loop_test(tests, pages_that_are_gone_end_the_run, 1, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
