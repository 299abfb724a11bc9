/*
 * Tests of -o: it must not overwrite an input file, it follows links, it may write other files in
 * the model's folder, and it rejects other places.
 */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void shell(const char *line)
{
    ck_assert_msg(system(line) == 0, "%s", line);
}

/* The working folder contains cpy (a copy of tales-5m), its links, and other files that verbs
 * read. */
static void set_up(void)
{
    char line[3000];
    ck_assert_int_eq(chdir(scratch_folder()), 0);
    snprintf(line, sizeof line,
             "cp -r %s cpy && chmod -R u+w cpy && ln -s cpy linked && "
             "ln cpy/config.json hard && ln -s cpy/model-00002-of-00002.safetensors soft && "
             "echo '{\"schema\": \"megalith.config/1\"}' > own.json && ln own.json own2.json",
             model_path("tales-5m"));
    shell(line);
    command_result result = command_run("lower cpy --target cpu:1 -o own.mls", NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    shell("cp own.mls own.mls.before && cp own.json own.json.before");
}

static void tear_down(void)
{
    shell("rm -rf cpy linked hard soft own* made.mega");
    ck_assert_int_eq(chdir("/"), 0);
}

/* Checks that input files are unchanged and no new file is beside them. */
static void all_is_as_it_was(void)
{
    char line[3000];
    snprintf(line, sizeof line,
             "diff -r %s cpy && cmp own.json own.json.before && cmp own.mls own.mls.before && "
             "test $(ls -A | wc -l) = 9",
             model_path("tales-5m"));
    shell(line);
}

static const char *const refused[] = {
    "compile cpy -o cpy/model-00001-of-00002.safetensors",
    "lower cpy -o cpy/config.json",
    "compile cpy -o cpy/model-00002-of-00002.safetensors",
    "compile cpy -o cpy/model.safetensors.index.json",
    "compile cpy -o cpy/generation_config.json",
    "compile cpy -o cpy/tokenizer.json",
    "compile cpy -o cpy/../cpy/tokenizer_config.json",
    "lower cpy -o linked/config.json",
    "lower linked -o cpy/config.json",
    "lower cpy -o hard",
    "compile cpy -o hard",
    "lower cpy -o soft",
    "compile cpy -o soft",
    "compile cpy -o cpy/model.safetensors", /* would be read instead of the shards */
    "lower cpy --config own.json -o own.json",
    "lower cpy --config own.json -o own2.json",
    "compile cpy --config own.json -o own2.json",
    "compile cpy --schedule own.mls -o own.mls",
    "trace cpy -o cpy/config.json",
    "trace cpy --config own.json -o own2.json"};
enum { REFUSED = sizeof refused / sizeof *refused };

START_TEST(a_file_that_is_read_is_not_written)
{
    command_result result = command_run(refused[_i], NULL);
    ck_assert_msg(result.code == 2, "%s: exit %d", refused[_i], result.code);
    ck_assert_msg(strstr(result.err, "is one of the files that are read") != NULL, "%s",
                  result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
    all_is_as_it_was();
}
END_TEST

START_TEST(a_compiled_model_is_not_written_by_what_reads_it)
{
    command_result result = command_run("compile cpy --target cpu:1 -o made.mega", NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    shell("cp made.mega own.mega");
    result = command_run("lower made.mega --target cpu:1 -o made.mega", NULL);
    ck_assert_int_eq(result.code, 2);
    command_clear(&result);
    result = command_run("compile made.mega --target cpu:1 -o made.mega", NULL);
    ck_assert_int_eq(result.code, 2);
    command_clear(&result);
    shell("cmp made.mega own.mega");
}
END_TEST

START_TEST(other_files_in_the_folder_of_the_model_are_written)
{
    for (int i = 0; i < 2; i++) { /* the second replaces the first */
        command_result result = command_run("compile cpy --target cpu:1 -o cpy/tales.mega", NULL);
        ck_assert_msg(result.code == 0, "%s", result.err);
        command_clear(&result);
    }
    shell("rm cpy/tales.mega");
    all_is_as_it_was();
}
END_TEST

START_TEST(a_link_is_followed)
{
    struct stat facts;
    shell("echo before > own.target && ln -s own.target own.link");
    command_result result = command_run("lower cpy --target cpu:1 -o own.link", NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    ck_assert_int_eq(lstat("own.link", &facts), 0);
    ck_assert(S_ISLNK(facts.st_mode));
    shell("cmp own.target own.mls");
}
END_TEST

static const struct {
    const char *line;
    int code;
    const char *words;
} others[] = {
    {"lower cpy --target cpu:1 -o -", 1, "names a file"},
    {"compile cpy --target cpu:1 -o -", 1, "names a file"},
    {"compile cpy --target cpu:1 -o cpy", 2, "Is a directory"},
    {"lower cpy --target cpu:1 -o cpy", 2, "Is a directory"},
    {"lower cpy --target cpu:1 -o none/f.mls", 2, "No such file"},
};

START_TEST(other_places_are_rejected)
{
    command_result result = command_run(others[_i].line, NULL);
    ck_assert_msg(result.code == others[_i].code, "exit %d: %s", result.code, result.err);
    ck_assert_msg(strstr(result.err, others[_i].words) != NULL, "%s", result.err);
    command_clear(&result);
    all_is_as_it_was();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli outputs");
    TCase *tests = tcase_create("outputs");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_file_that_is_read_is_not_written, 0, REFUSED);
    tcase_add_test(tests, a_compiled_model_is_not_written_by_what_reads_it);
    tcase_add_test(tests, other_files_in_the_folder_of_the_model_are_written);
    tcase_add_test(tests, a_link_is_followed);
    tcase_add_loop_test(tests, other_places_are_rejected, 0, (int)(sizeof others / sizeof *others));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
