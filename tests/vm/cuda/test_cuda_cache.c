/*
 * Tests of the cache of compiled kernels: damaged files, folders without write permission, and
 * processes that share a cache.
 */
#include <check.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "tests/scratch.h"
#include "vm/cuda/cache.h"
#include "vm/cuda/cuda.h"

static char folder[] = "/tmp/megalith-cache-XXXXXX";

static void setup(void)
{
    scratch_make(folder);
}

static void teardown(void)
{
    scratch_remove(folder);
}

static void path_of(char *path, size_t size, const char *key)
{
    snprintf(path, size, "%s/%s.kernel", folder, key);
}

/* The XDG specification: a relative path in a variable is ignored, as in base/data_folder.h. */
START_TEST(the_folder_is_absolute)
{
    static const struct {
        const char *own, *cache, *home, *path;
    } rows[] = {{"", "/cache", "/home", "/cache/megalith"},
                {"", "cache", "/home", "/home/.cache/megalith"},
                {"", "", "/home", "/home/.cache/megalith"},
                {"", "./cache", "home", NULL},
                {"here", "/cache", "/home", "here"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[64];
        setenv("MEGALITH_CACHE", rows[i].own, 1);
        setenv("XDG_CACHE_HOME", rows[i].cache, 1);
        setenv("HOME", rows[i].home, 1);
        ck_assert_int_eq(mgl_cuda_cache_path(path, sizeof path), rows[i].path != NULL);
        if (rows[i].path)
            ck_assert_str_eq(path, rows[i].path);
    }
}
END_TEST

START_TEST(what_is_kept_comes_back)
{
    char reason[200];
    size_t length = 0;
    ck_assert_ptr_null(mgl_cuda_cache_get(folder, "k", &length));
    ck_assert(mgl_cuda_cache_put(folder, "k", "kernel\0bytes", 12, reason, sizeof reason));
    char *back = mgl_cuda_cache_get(folder, "k", &length);
    ck_assert_uint_eq(length, 12);
    ck_assert_mem_eq(back, "kernel\0bytes", 13);
    mgl_free(back);
}
END_TEST

/* Changes every byte of the file, and cuts it to every length. */
START_TEST(a_damaged_file_counts_as_missing)
{
    char reason[200], path[256], good[64 + 12], bad[64 + 12];
    size_t length, size = 8 + 8 + 32 + 12;
    path_of(path, sizeof path, "k");
    ck_assert(mgl_cuda_cache_put(folder, "k", "kernel bytes", 12, reason, sizeof reason));
    FILE *file = fopen(path, "rb");
    ck_assert_uint_eq(fread(good, 1, sizeof good, file), size);
    fclose(file);
    for (size_t i = 0; i < 2 * size; i++) {
        memcpy(bad, good, size);
        if (i < size)
            bad[i] ^= 1;
        file = fopen(path, "wb");
        ck_assert_uint_eq(fwrite(bad, 1, i < size ? size : i - size, file),
                          i < size ? size : i - size);
        fclose(file);
        ck_assert_ptr_null(mgl_cuda_cache_get(folder, "k", &length));
    }
    ck_assert(mgl_cuda_cache_put(folder, "k", "kernel bytes", 12, reason, sizeof reason));
    void *back = mgl_cuda_cache_get(folder, "k", &length);
    ck_assert_ptr_nonnull(back);
    mgl_free(back);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_told)
{
    char reason[400] = "", path[128];
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "w");
    fclose(file);
    snprintf(path, sizeof path, "%s/file/cache", folder);
    ck_assert(!mgl_cuda_cache_put(path, "k", "x", 1, reason, sizeof reason));
    ck_assert_msg(strstr(reason, path), "%s", reason);
    ck_assert(!mgl_cuda_cache_usable(path, reason, sizeof reason));
    snprintf(path, sizeof path, "%s/new/deep", folder);
    ck_assert(mgl_cuda_cache_usable(path, reason, sizeof reason));
}
END_TEST

/* The next process that stores a kernel removes the leftovers of a killed process. */
START_TEST(what_was_left_is_removed)
{
    char reason[256], path[256];
    snprintf(path, sizeof path, "%s/k.kernel.megalith-01234567.partial", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_msg(mgl_cuda_cache_put(folder, "k", "kernel", 6, reason, sizeof reason), "%s",
                  reason);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* Several processes write and read one key: a reader gets nothing or everything. */
START_TEST(processes_share_a_folder)
{
    enum { PROCESSES = 4, ROUNDS = 50, BYTES = 50000 };
    pid_t children[PROCESSES];
    char *bytes = mgl_alloc(BYTES);
    memset(bytes, 'm', BYTES);
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        ck_assert_int_ge(children[p], 0);
        if (children[p])
            continue;
        int code = 0;
        for (int i = 0; i < ROUNDS && !code; i++) {
            char reason[200];
            size_t length;
            if (!mgl_cuda_cache_put(folder, "k", bytes, BYTES, reason, sizeof reason))
                code = 1;
            char *back = mgl_cuda_cache_get(folder, "k", &length);
            if (!back || length != BYTES || memcmp(back, bytes, BYTES))
                code = 2;
            mgl_free(back);
        }
        _exit(code);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        ck_assert_int_eq(waitpid(children[p], &status, 0), children[p]);
        ck_assert_int_eq(status, 0);
    }
    mgl_free(bytes);
    char command[128];
    snprintf(command, sizeof command, "test $(ls %s | wc -l) = 1", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Stores kernels "0" to "4" of a thousand bytes, each used one second after the previous. */
static void keep_five(void)
{
    char reason[200], path[256], bytes[1000 - 48] = "";
    for (int i = 0; i < 5; i++) {
        char key[2] = {(char)('0' + i), 0};
        struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        ck_assert(mgl_cuda_cache_put(folder, key, bytes, sizeof bytes, reason, sizeof reason));
        path_of(path, sizeof path, key);
        ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

/* The existing keys as a text. */
static const char *keys(void)
{
    static char found[8];
    char path[256], *to = found;
    for (char key[2] = "0"; key[0] <= '4'; key[0]++) {
        path_of(path, sizeof path, key);
        if (!access(path, F_OK))
            *to++ = key[0];
    }
    *to = 0;
    return found;
}

static uint64_t trim_to(uint64_t most)
{
    uint64_t left = 99;
    mgl_error err;
    ck_assert_int_eq(mgl_cuda_cache_trim(folder, most, &left, &err), MGL_OK);
    return left;
}

START_TEST(the_oldest_are_trimmed)
{
    keep_five();
    ck_assert_uint_eq(trim_to(5000), 5000);
    ck_assert_str_eq(keys(), "01234");
    ck_assert_uint_eq(trim_to(3999), 3000);
    ck_assert_str_eq(keys(), "234");
    ck_assert_uint_eq(trim_to(0), 0);
    ck_assert_str_eq(keys(), "");
}
END_TEST

START_TEST(what_was_got_is_not_old)
{
    size_t length;
    keep_five();
    mgl_free(mgl_cuda_cache_get(folder, "0", &length));
    trim_to(2000);
    ck_assert_str_eq(keys(), "04");
}
END_TEST

START_TEST(what_is_locked_or_no_kernel_stays)
{
    char path[256], other[256];
    keep_five();
    path_of(path, sizeof path, "0");
    int locked = open(path, O_RDONLY);
    ck_assert_int_eq(flock(locked, LOCK_EX), 0);
    snprintf(other, sizeof other, "%s/notes.txt", folder);
    fclose(fopen(other, "w"));
    ck_assert_uint_eq(trim_to(0), 1000);
    ck_assert_str_eq(keys(), "0");
    ck_assert_int_eq(access(other, F_OK), 0);
    close(locked);
}
END_TEST

START_TEST(trimming_fails_in_words)
{
    uint64_t left;
    mgl_error err;
    char path[256];
    snprintf(path, sizeof path, "%s/none", folder);
    ck_assert_int_eq(mgl_cuda_cache_trim(path, 0, &left, &err), MGL_OK);
    ck_assert_uint_eq(left, 0);
    keep_five();
    path_of(path, sizeof path, "1");
    ck_assert_int_eq(mgl_cuda_cache_trim(path, 0, &left, &err), MGL_BAD_INPUT);
    mgl_file_fail_at(1);
    ck_assert_int_eq(mgl_cuda_cache_trim(folder, 0, &left, &err), MGL_SYSTEM);
    mgl_file_fail_at(0);
    mgl_alloc_fail_at(1, false);
    ck_assert_int_eq(mgl_cuda_cache_trim(folder, 0, &left, &err), MGL_NO_MEMORY);
    mgl_alloc_fail_at(0, false);
    ck_assert_str_eq(keys(), "01234");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_cache");
    TCase *tests = tcase_create("cuda_cache");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_folder_is_absolute);
    tcase_add_test(tests, what_is_kept_comes_back);
    tcase_add_test(tests, a_damaged_file_counts_as_missing);
    tcase_add_test(tests, what_was_left_is_removed);
    tcase_add_test(tests, a_folder_that_cannot_be_made_is_told);
    tcase_add_test(tests, processes_share_a_folder);
    tcase_add_test(tests, the_oldest_are_trimmed);
    tcase_add_test(tests, what_was_got_is_not_old);
    tcase_add_test(tests, what_is_locked_or_no_kernel_stays);
    tcase_add_test(tests, trimming_fails_in_words);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
