/* Tests of locks on files and folders. */
#include "base/system/lock.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = MGL_BINARY_DIR "/lock-XXXXXX";

static void setup(void)
{
    scratch_make(folder);
}

static void teardown(void)
{
    scratch_remove(folder);
}

static bool take(const char *path, int wait_ms, int *descriptor)
{
    bool taken = false;
    mgl_error err = {0};
    ck_assert_msg(mgl_lock_take(path, 0600, wait_ms, descriptor, &taken, &err) == MGL_OK, "%s",
                  err.message);
    return taken;
}

/* A lock excludes another lock, even by the same process, until its descriptor is closed. */
static void exclude(const char *path)
{
    int first, second;
    ck_assert(take(path, 0, &first));
    ck_assert(!take(path, 10, &second));
    close(second);
    close(first);
    ck_assert(take(path, 0, &first));
    close(first);
}

START_TEST(a_file_is_made_and_locked)
{
    char path[300];
    snprintf(path, sizeof path, "%s/lock", folder);
    exclude(path);
    ck_assert_int_eq(access(path, R_OK | W_OK), 0);
}
END_TEST

START_TEST(a_folder_is_locked)
{
    exclude(folder);
}
END_TEST

START_TEST(a_link_and_a_missing_folder_are_rejected)
{
    char path[300];
    int descriptor;
    bool taken;
    snprintf(path, sizeof path, "%s/link", folder);
    ck_assert_int_eq(symlink("elsewhere", path), 0);
    ck_assert_int_ne(mgl_lock_take(path, 0600, 0, &descriptor, &taken, NULL), MGL_OK);
    ck_assert_int_eq(descriptor, -1);
    snprintf(path, sizeof path, "%s/missing/lock", folder);
    ck_assert_int_ne(mgl_lock_take(path, 0600, 0, &descriptor, &taken, NULL), MGL_OK);
    ck_assert(!taken);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lock");
    TCase *tests = tcase_create("lock");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_file_is_made_and_locked);
    tcase_add_test(tests, a_folder_is_locked);
    tcase_add_test(tests, a_link_and_a_missing_folder_are_rejected);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
