/*
 * Fault injection tests of the store. The disk fails at every operation of adding a trial:
 * afterwards the store contains the whole trial or none of it, and the next process continues.
 * After a power loss at any time, everything reported as stored is there.
 */
#include "tests/autotune/store/failing_disk.h"
#include "tests/autotune/store/store_support.h"

#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIRS = 30, BEFORE = 3 /* trials in the store before the disk fails */ };

static mgl_error err;
static char path[300];

static void set_up(void)
{
    store_make_folder();
    snprintf(path, sizeof path, "%s", store_path("store.db"));
    err = (mgl_error){0};
}

static void tear_down(void)
{
    disk_fail_at(0, DISK_FULL);
    disk_keep_flushed(false);
    store_remove_folder();
}

static mgl_status add(mgl_store *store, int64_t number)
{
    mgl_trial trial;
    store_fill_trial(1, number, PAIRS, &trial);
    mgl_status status = mgl_store_add_trial(store, &trial, &err);
    mgl_trial_clear(&trial);
    return status;
}

/* A new store of campaign 1 with some trials. */
static mgl_store *make_store(void)
{
    mgl_campaign_record campaign;
    unlink(path);
    mgl_store *store = store_open(path);
    store_add_campaign(store, "one", &campaign);
    ck_assert_int_eq(campaign.id, 1);
    mgl_campaign_record_clear(&campaign);
    for (int64_t number = 1; number <= BEFORE; number++)
        ck_assert_int_eq(add(store, number), MGL_OK);
    return store;
}

/* Opens the store as a new process, counts the trials, and adds one. */
static int64_t count_and_go_on(void)
{
    mgl_store *store = store_open(path);
    int64_t count = store_count_whole(store, 1, PAIRS);
    ck_assert_int_eq(add(store, count + 1), MGL_OK);
    ck_assert_int_eq(store_count_whole(store, 1, PAIRS), count + 1);
    mgl_store_close(store);
    return count;
}

/* A store whose disk fails at the n-th operation. Returns whether that operation was reached. */
static bool fail_once(uint64_t n, disk_failure how)
{
    mgl_store *store = make_store();
    disk_fail_at(n, how);
    mgl_status status = add(store, BEFORE + 1);
    bool reached = disk_count() >= n;
    ck_assert(!status || status == MGL_SYSTEM);
    if (how != DISK_GONE) {
        disk_fail_at(0, how);
        /* Adds the trial again on the same connection: it is either new or already stored. */
        mgl_status again = add(store, BEFORE + 1);
        ck_assert_int_eq(again, status ? MGL_OK : MGL_USAGE);
        ck_assert_int_eq(store_count_whole(store, 1, PAIRS), BEFORE + 1);
        status = MGL_OK;
    }
    mgl_store_close(store);
    disk_fail_at(0, how);
    int64_t count = count_and_go_on();
    ck_assert(count == BEFORE + 1 || (status && count == BEFORE));
    return reached;
}

START_TEST(every_write_of_a_trial_fails)
{
    uint64_t n = 1;
    while (fail_once(n, (disk_failure)_i))
        n++;
    ck_assert_uint_gt(n, 5);
}
END_TEST

START_TEST(full_disk_is_told_in_words)
{
    mgl_store *store = make_store();
    disk_fail_at(1, DISK_FULL);
    ck_assert_int_eq(add(store, BEFORE + 1), MGL_SYSTEM);
    ck_assert_ptr_nonnull(strstr(err.message, "free some space"));
    disk_fail_at(1, DISK_BROKEN);
    ck_assert_int_eq(add(store, BEFORE + 1), MGL_SYSTEM);
    ck_assert_ptr_nonnull(strstr(err.message, "the disk failed"));
    mgl_store_close(store);
}
END_TEST

START_TEST(every_operation_of_opening_fails)
{
    mgl_status status = MGL_SYSTEM;
    uint64_t n = 0;
    while (status) {
        mgl_store *store = NULL;
        disk_fail_at(++n, (disk_failure)_i);
        status = mgl_store_open(path, true, &store, &err);
        ck_assert(status == MGL_OK || status == MGL_SYSTEM || status == MGL_BAD_INPUT);
        disk_fail_at(0, DISK_FULL);
        mgl_store_close(store);
    }
    ck_assert_uint_gt(n, 10);
    mgl_store_close(make_store());
    ck_assert_int_eq(count_and_go_on(), BEFORE);
}
END_TEST

/* ---- power ----------------------------------------------------------------------------------- */

/* Replaces a file by its flushed contents. */
static void lose(const char *name)
{
    char flushed[400];
    snprintf(flushed, sizeof flushed, "%s.flushed", store_path(name));
    if (access(flushed, F_OK))
        unlink(store_path(name));
    else
        ck_assert_int_eq(rename(flushed, store_path(name)), 0);
}

/* Power loss at the n-th operation from now: nothing more is written, and unflushed data is
 * lost. */
static bool lose_power_at(uint64_t n)
{
    enum { LATER = 2 };
    disk_keep_flushed(true);
    mgl_store *store = make_store();
    int64_t stored = BEFORE;
    disk_fail_at(n, DISK_GONE);
    while (stored < BEFORE + LATER && !add(store, stored + 1))
        stored++;
    disk_fail_at(1, DISK_GONE);
    mgl_store_close(store);
    disk_fail_at(0, DISK_GONE);
    disk_keep_flushed(false);
    lose("store.db");
    lose("store.db-wal");
    unlink(store_path("store.db-shm"));
    int64_t count = count_and_go_on();
    ck_assert_int_ge(count, stored);
    ck_assert_int_le(count, stored + 1);
    return stored < BEFORE + LATER;
}

START_TEST(power_is_lost_at_every_write)
{
    uint64_t n = 1;
    while (lose_power_at(n))
        n++;
    ck_assert_uint_gt(n, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_faults");
    TCase *cases = tcase_create("store_faults");
    disk_install();
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, every_write_of_a_trial_fails, 0, DISK_FAILURES);
    tcase_add_test(cases, full_disk_is_told_in_words);
    tcase_add_loop_test(cases, every_operation_of_opening_fails, 0, DISK_FAILURES);
    tcase_add_test(cases, power_is_lost_at_every_write);
    suite_add_tcase(suite, cases);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
