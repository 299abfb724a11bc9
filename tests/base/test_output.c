/* Files that are written whole or not at all: whatever fails, what stood there stays and nothing else
 * is left. */
#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/megalith-output-XXXXXX";
static char path[64];

static void set_up(void)
{
    snprintf(path, sizeof path, "%s/f", folder);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs("before", file);
    fclose(file);
}

static void tear_down(void)
{
    unlink(path);
}

static int count_files(void)
{
    DIR *all = opendir(folder);
    int count = 0;
    for (const struct dirent *entry = readdir(all); entry; entry = readdir(all))
        count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

static void stands(const char *text)
{
    char *bytes;
    size_t length;
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &bytes, &length, NULL), MGL_OK);
    ck_assert_str_eq(bytes, text);
    mgl_free(bytes);
    ck_assert_int_eq(count_files(), 1);
}

/* "hello, world", the end first. */
static mgl_status write_hello(mgl_error *err)
{
    mgl_output *output;
    mgl_status status = mgl_output_open(path, &output, err);
    if (status)
        return status;
    status = mgl_output_write(output, 7, "world", 5, err);
    if (!status)
        status = mgl_output_write(output, 0, "hello, ", 7, err);
    if (!status)
        return mgl_output_finish(output, err);
    mgl_output_abandon(output);
    return status;
}

START_TEST(takes_the_place_of_what_stood_there)
{
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    stands("hello, world");
}
END_TEST

START_TEST(gets_the_rights_of_any_file)
{
    struct stat facts;
    mode_t mask = umask(027);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    umask(mask);
    ck_assert_int_eq(stat(path, &facts), 0);
    ck_assert_int_eq(facts.st_mode & 0777, 0640);
}
END_TEST

START_TEST(is_not_there_before_it_is_finished)
{
    mgl_output *output;
    ck_assert_int_eq(mgl_output_open(path, &output, NULL), MGL_OK);
    ck_assert_int_eq(mgl_output_write(output, 0, "half", 4, NULL), MGL_OK);
    char *bytes;
    size_t length;
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &bytes, &length, NULL), MGL_OK);
    ck_assert_str_eq(bytes, "before");
    mgl_free(bytes);
    mgl_output_abandon(output);
    stands("before");
}
END_TEST

START_TEST(every_operation_may_fail)
{
    mgl_error err;
    int failures = 0;
    mgl_status status = MGL_SYSTEM;
    for (uint64_t n = 1; status; n++) {
        mgl_file_fail_at(n);
        status = write_hello(&err);
        mgl_file_fail_at(0);
        if (!status)
            break;
        ck_assert_int_eq(status, MGL_SYSTEM);
        stands("before");
        failures++;
    }
    ck_assert_int_eq(failures, 4); /* open, two writes, rename */
    stands("hello, world");
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_error err;
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        mgl_alloc_fail_at(n, false);
        status = write_hello(&err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
        if (status)
            stands("before");
    }
}
END_TEST

/* As a disk that is full: the system writes no further than that. */
START_TEST(no_room_is_told)
{
    mgl_error err;
    struct rlimit before, small = {8, 8};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    mgl_status status = write_hello(&err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(status, MGL_SYSTEM);
    ck_assert_str_eq(err.where, path);
    stands("before");
}
END_TEST

START_TEST(other_places_are_refused)
{
    mgl_error err;
    mgl_output *output;
    ck_assert_int_eq(mgl_output_open("/dev/null", &output, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_output_open(folder, &output, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_output_open("/nowhere/at/all", &output, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "/nowhere/at/all");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("output");
    TCase *cases = tcase_create("output");
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, takes_the_place_of_what_stood_there);
    tcase_add_test(cases, gets_the_rights_of_any_file);
    tcase_add_test(cases, is_not_there_before_it_is_finished);
    tcase_add_test(cases, every_operation_may_fail);
    tcase_add_test(cases, every_allocation_may_fail);
    tcase_add_test(cases, no_room_is_told);
    tcase_add_test(cases, other_places_are_refused);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    rmdir(folder);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
