/* MODEL as a path and as org/name in a Hugging Face cache that the test lays out, with the links
 * from a snapshot into the blobs that Hugging Face makes. */
#include "base/memory.h"
#include "importer/checkpoint.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[64];

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
    snprintf(root, sizeof root, "/tmp/megalith-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
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
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", root);
    ck_assert_int_eq(system(line), 0);
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
    shell("rm home/.cache/huggingface/hub/models--org--small.v1/refs/main");
    check_refused("org/small.v1", "can not be opened");
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
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
