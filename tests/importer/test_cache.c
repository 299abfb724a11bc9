/* Tests of finding MODEL as a path and as org/name in a Hugging Face cache. The test creates the
 * cache, with the links from a snapshot to blobs. */
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[] = "/tmp/megalith-cache-XXXXXX";

/* Runs a shell command in the temporary folder. */
static void shell(const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd %s && %s", root, command);
    ck_assert_int_eq(system(line), 0);
}

static void set_variable(const char *name, const char *below_root)
{
    char value[256];
    snprintf(value, sizeof value, "%s%s", root, below_root);
    setenv(name, value, 1);
}

static void set_up(void)
{
    scratch_make(root);
    shell("r=home/.cache/huggingface/hub/models--org--small.v1 && mkdir -p $r/refs $r/blobs "
          "$r/snapshots/abc123 && printf 'abc123' > $r/refs/main && "
          "cp " MGL_SOURCE_DIR "/tests/models/llama3-rope/config.json $r/blobs/b1 && "
          "cp " MGL_SOURCE_DIR "/tests/models/llama3-rope/model.safetensors $r/blobs/b2 && "
          "ln -s ../../blobs/b1 $r/snapshots/abc123/config.json && "
          "ln -s ../../blobs/b2 $r/snapshots/abc123/model.safetensors");
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HOME");
    set_variable("HOME", "/home");
}

static void tear_down(void)
{
    scratch_remove(root);
}

static const char snapshot[] =
    "/home/.cache/huggingface/hub/models--org--small.v1/snapshots/abc123";

static void check_found(const char *model, const char *below_root)
{
    char wanted[256], *path = NULL;
    mgl_error err = {0};
    snprintf(wanted, sizeof wanted, "%s%s", root, below_root);
    mgl_status status = mgl_model_resolve_path(model, &path, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_str_eq(path, wanted);
    mgl_free(path);
}

static void check_refused(const char *model, const char *words)
{
    char *path;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_model_resolve_path(model, &path, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s: %s", model, err.message);
}

START_TEST(test_home)
{
    check_found("org/small.v1", snapshot);
}
END_TEST

START_TEST(test_variables)
{
    shell("mkdir -p a b && cp -r home/.cache/huggingface/hub a/ && cp -r "
          "home/.cache/huggingface/hub b/hub && rm -r home/.cache");
    check_refused("org/small.v1", "hf download org/small.v1");
    set_variable("HF_HOME", "/b");
    check_found("org/small.v1", "/b/hub/models--org--small.v1/snapshots/abc123");
    set_variable("HF_HUB_CACHE", "/a/hub");
    check_found("org/small.v1", "/a/hub/models--org--small.v1/snapshots/abc123");
    setenv("HF_HUB_CACHE", "", 1);
    check_found("org/small.v1", "/b/hub/models--org--small.v1/snapshots/abc123");
    set_variable("HOME", "");
    setenv("HF_HOME", "~/b", 1);
    check_found("org/small.v1", "/b/hub/models--org--small.v1/snapshots/abc123");
}
END_TEST

START_TEST(test_import_through_links)
{
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    mgl_status status = mgl_import("org/small.v1", &checkpoint, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_str_eq(checkpoint->folder + strlen(root), snapshot);
    ck_assert_uint_eq(checkpoint->parameters, 670720);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_paths_come_first)
{
    char *path, *here = get_current_dir_name();
    mgl_error err = {0};
    shell("mkdir -p org/small.v1");
    ck_assert_int_eq(chdir(root), 0);
    ck_assert_int_eq(mgl_model_resolve_path("org/small.v1", &path, &err), MGL_OK);
    ck_assert_str_eq(path, "org/small.v1");
    mgl_free(path);
    ck_assert_int_eq(chdir(here), 0);
    free(here);
}
END_TEST

START_TEST(test_not_found)
{
    check_refused("org/none", "hf download org/none");
    check_refused("small.v1", "no such folder");
    check_refused("", "no such folder");
    check_refused("../org/small.v1", "no such folder");
    check_refused("org/../small.v1", "no such folder");
    check_refused("/none/small.v1", "no such folder");
    check_refused("org/sma ll", "no such folder");
}
END_TEST

START_TEST(test_damaged_cache)
{
    shell("cd home/.cache/huggingface/hub/models--org--small.v1 && printf '../..' > refs/main");
    check_refused("org/small.v1", "name of a revision");
    shell("cd home/.cache/huggingface/hub/models--org--small.v1 && printf '' > refs/main");
    check_refused("org/small.v1", "name of a revision");
    shell("cd home/.cache/huggingface/hub/models--org--small.v1 && printf 'other' > refs/main");
    check_refused("org/small.v1", "snapshot that refs/main names is not there");
    shell("cd home/.cache/huggingface/hub/models--org--small.v1 && printf 'abc123\\n' > refs/main");
    check_found("org/small.v1", snapshot);
    shell(
        "cd home/.cache/huggingface/hub/models--org--small.v1 && rm refs/main && mkfifo refs/main");
    check_refused("org/small.v1", "is not a regular file");
}
END_TEST

/* ---- revisions ------------------------------------------------------------------------------- */

#define HUB      "home/.cache/huggingface/hub/"
#define REVISED  HUB "models--org--revised"
#define OLD      "0123456789abcdef0123456789abcdef01234567"
#define NEWER    "0123456aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NEWEST   "fedcba9876543210fedcba9876543210fedcba98"
#define SNAPSHOT "/" REVISED "/snapshots/"

/* Three snapshots: main is the newest, a tag and a pull request the oldest. */
static void set_up_revisions(void)
{
    set_up();
    shell("r=" REVISED " && mkdir -p $r/refs/refs/pr $r/snapshots/" OLD " $r/snapshots/" NEWER
          " $r/snapshots/" NEWEST " && printf " NEWEST " > $r/refs/main && printf " OLD
          " > $r/refs/v1.0 && printf " OLD " > $r/refs/refs/pr/7 && "
          "TZ=UTC touch -d '2024-11-02 12:00' $r/snapshots/" OLD " && "
          "TZ=UTC touch -d '2025-03-01 12:00' $r/snapshots/" NEWER " && "
          "TZ=UTC touch -d '2025-12-31 12:00' $r/snapshots/" NEWEST);
}

START_TEST(test_revision_by_branch_and_tag)
{
    check_found("org/revised", SNAPSHOT NEWEST);
    check_found("org/revised@main", SNAPSHOT NEWEST);
    check_found("org/revised@v1.0", SNAPSHOT OLD);
    check_found("org/revised@refs/pr/7", SNAPSHOT OLD);
}
END_TEST

START_TEST(test_revision_by_commit)
{
    check_found("org/revised@" NEWER, SNAPSHOT NEWER);
    check_found("org/revised@fedcba9", SNAPSHOT NEWEST);
    check_found("org/revised@01234567", SNAPSHOT OLD);
    check_found("org/revised@0123456a", SNAPSHOT NEWER);
}
END_TEST

START_TEST(test_revision_that_is_not_one)
{
    check_refused("org/revised@0123456", "several snapshots begin with these digits");
    check_refused("org/revised@fedcba", "unknown revision"); /* six digits */
    check_refused("org/revised@v2.0", "unknown revision");
    check_refused("org/revised@v2.0", "`hf download org/revised --revision v2.0` fetches it");
    check_refused("org/revised@refs", "unknown revision");
    check_refused("org/revised@", "no such folder");
    check_refused("org/revised@../main", "no such folder");
    check_refused("org/revised@refs/../main", "no such folder");
    check_refused("org/revised@refs//main", "no such folder");
    check_refused("org/revised@main/", "no such folder");
}
END_TEST

START_TEST(test_message_lists_revisions)
{
    check_refused("org/revised@v2.0", "the cache has fedcba9 (2025-12-31, main), "
                                      "0123456a (2025-03-01), 01234567 (2024-11-02, v1.0);");
    shell("r=" REVISED " && printf " OLD " > $r/refs/stable");
    check_refused("org/revised@v2.0", "01234567 (2024-11-02, stable, v1.0);");
}
END_TEST

START_TEST(test_message_lists_newest_revisions_first)
{
    shell("cd " REVISED "/snapshots && for i in 1 2 3 4 5 6 7; do mkdir ${i}000000000; "
          "TZ=UTC touch -d 2026-01-0$i ${i}000000000; done");
    check_refused("org/revised@v2.0", "the cache has 7000000 (2026-01-07), 6000000 (2026-01-06), ");
    check_refused("org/revised@v2.0", "fedcba9 (2025-12-31, main) and 2 older;");
}
END_TEST

START_TEST(test_only_snapshot)
{
    shell("rm -r " REVISED "/refs");
    check_refused("org/revised", "refs/main is missing: name a revision, as in ORG/NAME@REVISION; "
                                 "the cache has fedcba9 (2025-12-31)");
    shell("cd " REVISED "/snapshots && rm -r " OLD " " NEWEST);
    check_found("org/revised", SNAPSHOT NEWER);
    check_refused("org/revised@main", "unknown revision");
    shell("rm -r " REVISED "/snapshots/*");
    check_refused("org/revised", "refs/main is missing; the cache has no snapshot of it");
    shell("rmdir " REVISED "/snapshots");
    check_refused("org/revised", "the cache has no snapshot of it");
}
END_TEST

START_TEST(test_ref_without_its_snapshot)
{
    shell("rm -r " REVISED "/snapshots/" NEWEST);
    check_refused("org/revised", "the snapshot that refs/main names is not there; "
                                 "the cache has 0123456a (2025-03-01), 01234567 (");
    check_found("org/revised@v1.0", SNAPSHOT OLD);
}
END_TEST

START_TEST(test_snapshot_that_is_a_file)
{
    shell("cd " REVISED "/snapshots && rmdir " NEWEST " && touch " NEWEST);
    check_refused("org/revised", "is not a snapshot folder");
}
END_TEST

START_TEST(test_names_like_it)
{
    check_refused("org/revisd", "/hub), which has org/revised; nothing is downloaded");
    check_refused("other/Revised-v2", "which has org/revised;");
    check_refused("org/xyzzyxyzzy", ", which has 2 other models;");
    shell("mkdir " HUB "models--org--revised-base " HUB "models--of-one-part " HUB "version.txt");
    check_refused("org/revised-bas@v1", "which has org/revised and org/revised-base;");
    check_refused("org/revised-bas@v1", "`hf download org/revised-bas --revision v1` fetches it");
    check_refused("org/xyzzyxyzzy", ", which has 3 other models;");
    shell("rm -r home/.cache");
    check_refused("org/revised", "/hub); nothing is downloaded");
}
END_TEST

/* The message stays one line for any folder name. */
START_TEST(test_hostile_names)
{
    shell("mkdir " HUB "\"models--org--revised$(printf '\\n\\033[31m')\"");
    char *path;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_model_resolve_path("org/revisd", &path, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(strpbrk(err.message, "\n\033"));
}
END_TEST

START_TEST(test_a_dash_is_no_model)
{
    check_refused("-", "a model cannot come from standard input");
}
END_TEST

START_TEST(test_memory)
{
    char *path = NULL;
    mgl_error err;
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status == MGL_NO_MEMORY; n++) {
        mgl_alloc_fail_at(n, false);
        status = mgl_model_resolve_path("org/small.v1", &path, &err);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_OK);
    mgl_free(path);
}
END_TEST

/* A message without room for its list is still complete. */
START_TEST(test_memory_of_messages)
{
    char *path = NULL;
    mgl_error err;
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; n < 40; n++) {
        mgl_alloc_fail_at(n, true);
        status = mgl_model_resolve_path("org/revised@v2.0", &path, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_NO_MEMORY || status == MGL_BAD_INPUT);
    }
    ck_assert_int_eq(status, MGL_BAD_INPUT);
}
END_TEST

/* Any system call may fail: the message reports that error, or has no list. */
START_TEST(test_calls_that_fail)
{
    char *path = NULL;
    mgl_error err;
    mgl_status status = MGL_SYSTEM;
    for (uint64_t n = 1; status == MGL_SYSTEM; n++) {
        mgl_file_fail_at(n);
        status = mgl_model_resolve_path("org/revised@v1.0", &path, &err);
        mgl_file_fail_at(0);
    }
    ck_assert_int_eq(status, MGL_OK);
    mgl_free(path);
    for (uint64_t n = 1; n < 60; n++) {
        mgl_file_fail_at(n);
        status = mgl_model_resolve_path("org/revised@v2.0", &path, &err);
        mgl_file_fail_at(0);
        ck_assert(status == MGL_SYSTEM || status == MGL_BAD_INPUT);
    }
    ck_assert_int_eq(status, MGL_BAD_INPUT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *cases = tcase_create("cache");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, test_home);
    tcase_add_test(cases, test_variables);
    tcase_add_test(cases, test_import_through_links);
    tcase_add_test(cases, test_paths_come_first);
    tcase_add_test(cases, test_not_found);
    tcase_add_test(cases, test_damaged_cache);
    tcase_add_test(cases, test_memory);
    tcase_add_test(cases, test_a_dash_is_no_model);
    suite_add_tcase(suite, cases);
    TCase *revisions = tcase_create("revisions");
    tcase_add_checked_fixture(revisions, set_up_revisions, tear_down);
    tcase_add_test(revisions, test_revision_by_branch_and_tag);
    tcase_add_test(revisions, test_revision_by_commit);
    tcase_add_test(revisions, test_revision_that_is_not_one);
    tcase_add_test(revisions, test_message_lists_revisions);
    tcase_add_test(revisions, test_message_lists_newest_revisions_first);
    tcase_add_test(revisions, test_only_snapshot);
    tcase_add_test(revisions, test_ref_without_its_snapshot);
    tcase_add_test(revisions, test_snapshot_that_is_a_file);
    tcase_add_test(revisions, test_names_like_it);
    tcase_add_test(revisions, test_hostile_names);
    tcase_add_test(revisions, test_memory_of_messages);
    tcase_add_test(revisions, test_calls_that_fail);
    suite_add_tcase(suite, revisions);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
