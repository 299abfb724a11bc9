/* Tests of atomic file output: after any failure or kill, the old file is unchanged, and leftovers
 * are removed, at the latest by the next writer. */
#include "base/output.h"

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
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/megalith-output-XXXXXX";
static char path[400];
static bool named; /* simulates a file system without unnamed files (O_TMPFILE) */

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

/* Writes "hello, world", the end first. */
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

START_TEST(keeps_the_rights_of_what_stood_there)
{
    struct stat facts;
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    ck_assert_int_eq(stat(path, &facts), 0);
    ck_assert_int_eq(facts.st_mode & 0777, 0600);
}
END_TEST

START_TEST(gets_the_rights_of_any_new_file)
{
    struct stat facts;
    mode_t mask = umask(027);
    unlink(path);
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

/* Until the new file has its name, the old one stays; then the new one is whole. */
START_TEST(every_operation_may_fail)
{
    mgl_error err;
    int before = 0, after = 0;
    for (uint64_t n = 1;; n++) {
        mgl_file_fail_at(n);
        mgl_status status = write_hello(&err);
        mgl_file_fail_at(0);
        if (!status)
            break;
        ck_assert_int_eq(status, MGL_SYSTEM);
        bool confirmed = strstr(err.message, "did not confirm") == NULL;
        stands(confirmed ? "before" : "hello, world");
        before += confirmed;
        after += !confirmed;
    }
    /* counts of operations: check the target, folder, file, lock, two writes, old permissions, new
     * permissions, flush, link (not needed for a file that has a name from the start), rename */
    ck_assert_int_eq(before, named ? 10 : 11);
    ck_assert_int_eq(after, 2); /* flush of the folder, close */
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

/* Simulates a full disk: the system accepts no more bytes. */
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

START_TEST(other_places_are_rejected)
{
    mgl_error err;
    mgl_output *output;
    ck_assert_int_eq(mgl_output_open("/dev/null", &output, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_output_open(folder, &output, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_output_open("", &output, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_output_open("/nowhere/at/all", &output, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "/nowhere/at/all");
}
END_TEST

/* The target of a link is replaced; the link stays a link. */
START_TEST(a_link_is_followed)
{
    char target[80];
    struct stat facts;
    snprintf(target, sizeof target, "%s/target", folder);
    ck_assert_int_eq(rename(path, target), 0);
    ck_assert_int_eq(symlink("target", path), 0);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    ck_assert_int_eq(lstat(path, &facts), 0);
    ck_assert(S_ISLNK(facts.st_mode));
    ck_assert_int_eq(lstat(target, &facts), 0);
    ck_assert_int_eq(facts.st_size, 12);
    unlink(target);
    mgl_error err;
    ck_assert_int_eq(write_hello(&err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "leads nowhere"));
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_path_without_a_folder_is_here)
{
    char before[1024];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(folder), 0);
    char whole[sizeof path];
    memcpy(whole, path, sizeof path);
    strcpy(path, "f");
    mgl_status status = write_hello(NULL);
    memcpy(path, whole, sizeof path);
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_int_eq(status, MGL_OK);
    stands("hello, world");
}
END_TEST

/* A name of the maximum length. */
START_TEST(a_long_name_has_room_for_the_temporary)
{
    char whole[sizeof path], name[256];
    memcpy(whole, path, sizeof path);
    memset(name, 'n', 255);
    name[255] = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mgl_status status = write_hello(NULL);
    ck_assert_int_eq(unlink(path), 0);
    memcpy(path, whole, sizeof path);
    ck_assert_int_eq(status, MGL_OK);
    stands("before");
}
END_TEST

/* ---- leftovers of killed writers ------------------------------------------------------------- */

/* Starts a process that has written half of the file and waits. */
static pid_t start_writer(void)
{
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        mgl_output *output;
        if (mgl_output_open(path, &output, NULL) || mgl_output_write(output, 0, "half", 4, NULL) ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return writer;
}

static void end_writer(pid_t writer)
{
    int status;
    ck_assert_int_eq(kill(writer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert(WIFSIGNALED(status));
}

START_TEST(a_killed_writer_leaves_at_most_what_the_next_one_removes)
{
    pid_t writer = start_writer();
    end_writer(writer);
    ck_assert_int_eq(count_files(), named ? 2 : 1);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    stands("hello, world");
}
END_TEST

START_TEST(a_writer_that_lives_keeps_its_file)
{
    pid_t writer = start_writer();
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    ck_assert_int_eq(count_files(), named ? 2 : 1);
    end_writer(writer);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    stands("hello, world");
}
END_TEST

/* Creates an empty file of that name. Returns whether a writer of the path keeps it. */
static bool survives(const char *name)
{
    char other[400];
    snprintf(other, sizeof other, "%s/%s", folder, name);
    FILE *file = fopen(other, "wb");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    return !unlink(other);
}

START_TEST(nothing_but_temporaries_is_removed)
{
    static const char *const names[] = {"f.megalith-0123456.partial",
                                        "f.megalith-012345678.partial",
                                        "f.megalith-0123456A.partial",
                                        "f.megalith-01234567.partial~",
                                        "f.megalith-01234567.partia",
                                        "g.megalith-01234567.partial",
                                        ".f.megalith-01234567.partial",
                                        "f.Megalith-01234567.partial",
                                        "f.partial",
                                        "f.012345"};
    ck_assert(survives(names[_i]));
    ck_assert(!survives("f.megalith-01234567.partial"));
}
END_TEST

START_TEST(a_folder_of_that_name_is_left_alone)
{
    char other[400];
    snprintf(other, sizeof other, "%s/f.megalith-01234567.partial", folder);
    ck_assert_int_eq(mkdir(other, 0777), 0);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    ck_assert_int_eq(rmdir(other), 0);
    ck_assert_int_eq(symlink("f", other), 0);
    ck_assert_int_eq(write_hello(NULL), MGL_OK);
    ck_assert_int_eq(unlink(other), 0);
}
END_TEST

/* Several processes write the same file, and each removes leftovers. */
START_TEST(many_write_one_name)
{
    enum { WRITERS = 4, ROUNDS = 50 };
    pid_t writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        ck_assert_int_ge(writers[i], 0);
        if (writers[i])
            continue;
        bool good = true;
        for (int round = 0; round < ROUNDS && good; round++)
            good = !write_hello(NULL);
        _exit(!good);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        ck_assert_int_eq(waitpid(writers[i], &status, 0), writers[i]);
        ck_assert_int_eq(status, 0);
    }
    stands("hello, world");
}
END_TEST

static void use_names(void)
{
    named = true;
    mgl_output_use_names(true);
    set_up();
}

static void use_none(void)
{
    tear_down();
    named = false;
    mgl_output_use_names(false);
}

static void add_case(Suite *suite, const char *name, SFun begin, SFun end)
{
    TCase *cases = tcase_create(name);
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, takes_the_place_of_what_stood_there);
    tcase_add_test(cases, gets_the_rights_of_any_new_file);
    tcase_add_test(cases, keeps_the_rights_of_what_stood_there);
    tcase_add_test(cases, is_not_there_before_it_is_finished);
    tcase_add_test(cases, every_operation_may_fail);
    tcase_add_test(cases, every_allocation_may_fail);
    tcase_add_test(cases, no_room_is_told);
    tcase_add_test(cases, other_places_are_rejected);
    tcase_add_test(cases, a_link_is_followed);
    tcase_add_test(cases, a_path_without_a_folder_is_here);
    tcase_add_test(cases, a_long_name_has_room_for_the_temporary);
    tcase_add_test(cases, a_killed_writer_leaves_at_most_what_the_next_one_removes);
    tcase_add_test(cases, a_writer_that_lives_keeps_its_file);
    tcase_add_loop_test(cases, nothing_but_temporaries_is_removed, 0, 10);
    tcase_add_test(cases, a_folder_of_that_name_is_left_alone);
    tcase_add_test(cases, many_write_one_name);
    suite_add_tcase(suite, cases);
}

int main(void)
{
    Suite *suite = suite_create("output");
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    add_case(suite, "files without a name", set_up, tear_down);
    add_case(suite, "files with a name", use_names, use_none);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    rmdir(folder);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
