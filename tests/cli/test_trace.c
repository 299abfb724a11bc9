/* Tests of megalith trace: rejected input everywhere and, on a GPU, its file and its output. */
#include "command.h"

#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of files in the scratch folder. */
static int count_files(void)
{
    char line[128];
    int count = -1;
    snprintf(line, sizeof line, "ls -A '%s' | wc -l", scratch_folder());
    FILE *list = popen(line, "r");
    ck_assert_ptr_nonnull(list);
    ck_assert_int_eq(fscanf(list, "%d", &count), 1);
    pclose(list);
    return count;
}

START_TEST(file_that_cannot_be_written)
{
    command_result result = command_runf("trace %s -o /nowhere/trace.json", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "/nowhere/trace.json"));
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

START_TEST(file_that_is_a_folder)
{
    command_result result =
        command_runf("trace %s -o %s", model_path("tales-5m"), scratch_folder());
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "directory"));
    command_clear(&result);
}
END_TEST

/* The earlier file at the timeline's path is unchanged, and no other file is left. */
START_TEST(without_a_device_nothing_is_written)
{
    const char *path = scratch_file("trace.json", "before");
    char *text = NULL;
    size_t length = 0;
    mgl_error err = {0};
    int files = count_files();
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    command_result result = command_runf("trace %s -o %s --json", model_path("tales-5m"), path);
    unsetenv("CUDA_VISIBLE_DEVICES");
    ck_assert_int_eq(result.code, 4);
    mgl_json json = command_json(&result, "megalith.error/1");
    ck_assert_int_eq((int)json_number(&json, "exit"), 4);
    ck_assert_int_eq(mgl_file_read(path, 64, &text, &length, &err), MGL_OK);
    ck_assert_str_eq(text, "before");
    ck_assert_int_eq(count_files(), files);
    mgl_free(text);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

static bool has_device(void)
{
    command_result doctor = command_run("doctor --json", NULL);
    mgl_json json = command_json(&doctor, "megalith.doctor/1");
    bool found = cJSON_GetArraySize(json_at(&json, "devices")) > 0;
    mgl_json_clear(&json);
    command_clear(&doctor);
    return found;
}

START_TEST(traces_a_launch)
{
    if (!has_device()) {
        printf("SKIPPED traces_a_launch: there is no CUDA device\n");
        return;
    }
    char path[1024];
    mgl_json timeline = {0};
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/timeline.json", scratch_folder());
    command_result result =
        command_runf("trace %s -o %s --json --prompt Once --epochs 3 --device cuda",
                     model_path("tales-5m"), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.trace/1");
    ck_assert_int_eq((int)json_number(&json, "epochs"), 3);
    ck_assert_double_gt(json_number(&json, "epoch_us"), 0);
    ck_assert_double_gt(json_number(&json, "chain_us.all"), 0);
    ck_assert_double_le(json_number(&json, "chain_us.all"), 10 * json_number(&json, "epoch_us"));
    ck_assert_msg(!mgl_json_read_file(path, 256 << 20, &timeline, &err), "%s", err.message);
    ck_assert_ptr_nonnull(mgl_json_member(timeline.root, "traceEvents"));
    mgl_json_clear(&timeline);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli trace");
    TCase *tests = tcase_create("trace");
    tcase_set_timeout(tests, 250);
    tcase_add_test(tests, file_that_cannot_be_written);
    tcase_add_test(tests, file_that_is_a_folder);
    tcase_add_test(tests, without_a_device_nothing_is_written);
    tcase_add_test(tests, traces_a_launch);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
