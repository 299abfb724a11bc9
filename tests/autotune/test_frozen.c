/*
 * Tests of the manifest of frozen files: the compiled manifest equals the file in the tree, the
 * hashes match the sources, and all of validator/ is listed.
 */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "autotune/store/frozen.h"
#include "base/file.h"
#include "base/memory.h"

#define ADVICE "if that was on purpose, tests/tools/freeze.sh writes the manifest anew"

/* The SHA-256 of a file of the sources. */
static void hash_file(const char *path, char out[MGL_SHA256_HEX])
{
    char full[4096], *bytes = NULL;
    size_t length;
    unsigned char hash[MGL_SHA256_BYTES];
    mgl_error err = {0};
    snprintf(full, sizeof full, "%s/%s", MGL_SOURCE_DIR, path);
    mgl_status status = mgl_file_read(full, 16 << 20, &bytes, &length, &err);
    ck_assert_msg(!status, "%s: %s; " ADVICE, path, err.message);
    mgl_sha256_of(bytes, length, hash);
    mgl_sha256_hex(hash, out);
    mgl_free(bytes);
}

static bool is_listed(const char *path)
{
    size_t count;
    const mgl_frozen_file *files = mgl_frozen_files(&count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(files[i].path, path))
            return true;
    return false;
}

START_TEST(the_digest_is_that_of_the_manifest)
{
    char hash[MGL_SHA256_HEX];
    hash_file("autotune/frozen.txt", hash);
    ck_assert_str_eq(mgl_frozen_digest(), hash);
}
END_TEST

START_TEST(the_version_counts_from_one)
{
    ck_assert_int_ge(mgl_frozen_version(), 1);
}
END_TEST

START_TEST(the_listed_files_are_what_they_were)
{
    size_t count;
    const mgl_frozen_file *files = mgl_frozen_files(&count);
    for (size_t i = 0; i < count; i++) {
        char hash[MGL_SHA256_HEX];
        hash_file(files[i].path, hash);
        ck_assert_msg(!strcmp(hash, files[i].hash), "%s has changed; " ADVICE, files[i].path);
    }
}
END_TEST

START_TEST(all_of_the_validator_is_listed)
{
    DIR *folder = opendir(MGL_SOURCE_DIR "/validator");
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char path[512];
        snprintf(path, sizeof path, "validator/%s", entry->d_name);
        if (entry->d_name[0] != '.')
            ck_assert_msg(is_listed(path), "%s is not in the manifest; " ADVICE, path);
    }
    closedir(folder);
}
END_TEST

static const char *const needed[] = {
    "instructions/ops.def", "schedule/step.h",  "vm/cuda/device/roles/controller.cuh",
    "vm/cpu/fast.c",        "eval/reference.c", "autotune/candidates/judge.c"};

START_TEST(one_of_each_part_is_listed)
{
    ck_assert(is_listed(needed[_i]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frozen");
    TCase *tests = tcase_create("frozen");
    tcase_add_test(tests, the_digest_is_that_of_the_manifest);
    tcase_add_test(tests, the_version_counts_from_one);
    tcase_add_test(tests, the_listed_files_are_what_they_were);
    tcase_add_test(tests, all_of_the_validator_is_listed);
    tcase_add_loop_test(tests, one_of_each_part_is_listed, 0, sizeof needed / sizeof *needed);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_fork_status(suite_runner, CK_NOFORK);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? 1 : 0;
}
