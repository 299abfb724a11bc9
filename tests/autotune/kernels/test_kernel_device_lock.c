/*
 * Tests of the device lock, a reader-writer lock between processes: shared holders run side by
 * side, a timed measurement has the device alone, a waiting exclusive holder precedes new shared
 * ones, and a lock ends with its process.
 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/kernels/trial/device_lock.h"
#include "base/clock.h"
#include "base/file.h"
#include "tests/scratch.h"
#include "tests/time_limit.h"

static const double patience_s = 20;
static char folder[] = "/tmp/megalith-device-lock-XXXXXX", path[64];
static atomic_int set_flag = 1;

static void set_up(void)
{
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/device-lock", folder);
}

static void tear_down(void)
{
    scratch_remove(folder);
}

/* Tries to take the lock without waiting: MGL_INTERRUPTED if it would have to wait. */
static mgl_status try_at_once(mgl_device_lock_kind kind, mgl_device_lock *lock)
{
    return mgl_device_lock_take(path, kind, &set_flag, lock, NULL);
}

static bool is_free(mgl_device_lock_kind kind)
{
    mgl_device_lock lock;
    const mgl_status status = try_at_once(kind, &lock);
    ck_assert(status == MGL_OK || status == MGL_INTERRUPTED);
    mgl_device_lock_end(&lock);
    return !status;
}

/* Waits for the exclusive lock in a thread. */
static struct {
    mgl_device_lock lock;
    mgl_status status;
    atomic_int abort, done;
} waiter;

static void *wait_alone(void *unused)
{
    waiter.status =
        mgl_device_lock_take(path, MGL_DEVICE_LOCK_ALONE, &waiter.abort, &waiter.lock, NULL);
    atomic_store(&waiter.done, 1);
    return unused;
}

static pthread_t start_waiter(void)
{
    pthread_t thread;
    atomic_store(&waiter.abort, 0);
    atomic_store(&waiter.done, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_alone, NULL), 0);
    return thread;
}

static bool wait_until_free(mgl_device_lock_kind kind, bool wanted)
{
    const double end = mgl_clock_s() + time_limit(patience_s);
    while (is_free(kind) != wanted && mgl_clock_s() < end)
        usleep(1000);
    return is_free(kind) == wanted;
}

START_TEST(many_share)
{
    mgl_device_lock first, second;
    ck_assert_int_eq(try_at_once(MGL_DEVICE_LOCK_SHARED, &first), MGL_OK);
    ck_assert_int_eq(try_at_once(MGL_DEVICE_LOCK_SHARED, &second), MGL_OK);
    ck_assert(!is_free(MGL_DEVICE_LOCK_ALONE));
    mgl_device_lock_end(&first);
    ck_assert(!is_free(MGL_DEVICE_LOCK_ALONE));
    mgl_device_lock_end(&second);
    ck_assert(is_free(MGL_DEVICE_LOCK_ALONE));
}
END_TEST

START_TEST(one_is_alone)
{
    mgl_device_lock lock;
    ck_assert_int_eq(try_at_once(MGL_DEVICE_LOCK_ALONE, &lock), MGL_OK);
    ck_assert(!is_free(MGL_DEVICE_LOCK_ALONE));
    ck_assert(!is_free(MGL_DEVICE_LOCK_SHARED));
    mgl_device_lock_end(&lock);
    ck_assert(is_free(MGL_DEVICE_LOCK_SHARED));
}
END_TEST

START_TEST(who_waits_to_be_alone_goes_first)
{
    mgl_device_lock sharing;
    ck_assert_int_eq(try_at_once(MGL_DEVICE_LOCK_SHARED, &sharing), MGL_OK);
    pthread_t thread = start_waiter();
    ck_assert(wait_until_free(MGL_DEVICE_LOCK_SHARED, false));
    ck_assert_int_eq(atomic_load(&waiter.done), 0);
    mgl_device_lock_end(&sharing);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(waiter.status, MGL_OK);
    ck_assert(!is_free(MGL_DEVICE_LOCK_SHARED));
    mgl_device_lock_end(&waiter.lock);
    ck_assert(is_free(MGL_DEVICE_LOCK_SHARED));
}
END_TEST

START_TEST(who_stops_waiting_wishes_nothing)
{
    mgl_device_lock sharing;
    ck_assert_int_eq(try_at_once(MGL_DEVICE_LOCK_SHARED, &sharing), MGL_OK);
    pthread_t thread = start_waiter();
    ck_assert(wait_until_free(MGL_DEVICE_LOCK_SHARED, false));
    atomic_store(&waiter.abort, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(waiter.status, MGL_INTERRUPTED);
    ck_assert(is_free(MGL_DEVICE_LOCK_SHARED));
    mgl_device_lock_end(&sharing);
}
END_TEST

START_TEST(a_lock_ends_with_its_process)
{
    int ready[2], how;
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        mgl_device_lock lock;
        byte = mgl_device_lock_take(path, MGL_DEVICE_LOCK_ALONE, NULL, &lock, NULL) == MGL_OK;
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 1);
    ck_assert(!is_free(MGL_DEVICE_LOCK_SHARED));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(is_free(MGL_DEVICE_LOCK_SHARED));
    close(ready[0]);
    close(ready[1]);
}
END_TEST

START_TEST(without_a_file_nobody_waits)
{
    mgl_device_lock first, second;
    ck_assert_int_eq(mgl_device_lock_take(NULL, MGL_DEVICE_LOCK_ALONE, &set_flag, &first, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_device_lock_take(NULL, MGL_DEVICE_LOCK_ALONE, &set_flag, &second, NULL),
                     MGL_OK);
    mgl_device_lock_end(&first);
    mgl_device_lock_end(&second);
}
END_TEST

START_TEST(a_file_that_cannot_be_is_told)
{
    mgl_device_lock lock;
    mgl_error err = {0};
    ck_assert_int_eq(
        mgl_device_lock_take("/nowhere/device-lock", MGL_DEVICE_LOCK_SHARED, NULL, &lock, &err),
        MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "/nowhere/device-lock");
    ck_assert_int_eq(lock.file, -1);
}
END_TEST

START_TEST(a_failure_is_no_wait)
{
    mgl_device_lock lock;
    static const mgl_device_lock_kind kinds[] = {MGL_DEVICE_LOCK_SHARED, MGL_DEVICE_LOCK_ALONE};
    for (size_t i = 0; i < 2; i++)
        for (uint64_t n = 1; n <= 2; n++) {
            mgl_file_fail_at(n);
            ck_assert_int_ne(mgl_device_lock_take(path, kinds[i], NULL, &lock, NULL), MGL_OK);
            mgl_file_fail_at(0);
            ck_assert_int_eq(lock.file, -1);
            ck_assert(is_free(MGL_DEVICE_LOCK_ALONE));
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_lock");
    TCase *tests = tcase_create("device_lock");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, many_share);
    tcase_add_test(tests, one_is_alone);
    tcase_add_test(tests, who_waits_to_be_alone_goes_first);
    tcase_add_test(tests, who_stops_waiting_wishes_nothing);
    tcase_add_test(tests, a_lock_ends_with_its_process);
    tcase_add_test(tests, without_a_file_nobody_waits);
    tcase_add_test(tests, a_file_that_cannot_be_is_told);
    tcase_add_test(tests, a_failure_is_no_wait);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed > 0;
}
