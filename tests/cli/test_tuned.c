/*
 * Tests of tuned entries on the command line: entries in the user's folder are used and named, and
 * --no-tuned ignores them. A faulty entry is a line on standard error, and the reply is the same.
 */
#include "command.h"

#include "schedule/lower/lowering.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN "run %s --device cpu --prompt 'Once there was' --max-tokens 24"

static const char pattern[] =
    "{\"schema\": \"megalith.tuned/1\", \"name\": \"tales-cpu\", \"shape\": {\"hidden\": 256, "
    "\"layers\": 6, \"heads\": 4, \"kv_heads\": 2, \"head_dim\": 64, \"ffn\": 768, \"vocab\": 913, "
    "\"eps\": 1e-05, \"tied\": true}, \"formats\": {\"dtype\": \"f32\", \"kv\": \"f32\"}, "
    "\"device\": \"cpu\", \"target\": \"cpu:1\", \"sequences\": 1, \"capacity\": {\"lo\": 1, "
    "\"hi\": 1024}, \"lowering\": %d, \"config\": {\"splits\": 3}, \"moves\": [], \"evidence\": "
    "{\"gain\": 0.03, \"interval\": [0.02, 0.04], \"date\": \"2026-11-22\"}}\n";

static char entry[2048]; /* the entry's text, with the version of lowering */
static char folder[512]; /* folder of the entries */

static void write_entry(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* The entry with one replacement. */
static void write_changed(const char *name, const char *from, const char *to)
{
    static char text[4096];
    const char *at = strstr(entry, from);
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - entry), entry, to, at + strlen(from));
    write_entry(name, text);
}

/* A new data folder for each test, with the entry in it. */
static void set_up(void)
{
    static int tests;
    char data[256];
    snprintf(data, sizeof data, "%s/data%d", scratch_folder(), tests++);
    ck_assert_int_eq(mkdir(data, 0700), 0);
    snprintf(folder, sizeof folder, "%s/megalith", data);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    snprintf(folder, sizeof folder, "%s/megalith/tuned", data);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    setenv("XDG_DATA_HOME", data, 1);
    write_entry("tales.json", entry);
}

/* The JSON output of the command. */
static mgl_json json_of(const char *line, const char *schema)
{
    command_result result = command_run(line, NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, schema);
    command_clear(&result);
    return json;
}

static mgl_json run_json(const char *flags)
{
    char line[1024];
    snprintf(line, sizeof line, RUN " --json --quiet %s", model_path("tales-5m"), flags);
    return json_of(line, "megalith.run/1");
}

START_TEST(run_names_it)
{
    mgl_json json = run_json("");
    ck_assert_str_eq(json_string(&json, "tuned"), "tales-cpu");
    ck_assert(cJSON_IsNull(json_at(&json, "note")));
    ck_assert_int_eq((int)json_number(&json, "capacity"), 28);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(no_tuned_rejects_it)
{
    mgl_json json = run_json("--no-tuned");
    ck_assert(cJSON_IsNull(json_at(&json, "tuned")));
    ck_assert_int_eq((int)json_number(&json, "capacity"), 28);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(tokens_are_the_same_without)
{
    mgl_json with = run_json(""), without = run_json("--no-tuned");
    ck_assert(cJSON_Compare(json_at(&with, "output_ids"), json_at(&without, "output_ids"), true));
    ck_assert_str_eq(json_string(&with, "stop"), json_string(&without, "stop"));
    mgl_json_clear(&with);
    mgl_json_clear(&without);
}
END_TEST

/* An entry without weight formats is not for a quantized model of the shape, and the other way
 * round; an entry with the formats of the model is. */
START_TEST(entries_are_of_one_set_of_weight_formats)
{
    const char *quantized = MGL_SOURCE_DIR "/tests/models/quantized/q-tales-gptq-int4-g64";
    char line[1024];
    snprintf(line, sizeof line, RUN " --json --quiet", quantized);
    mgl_json json = json_of(line, "megalith.run/1");
    ck_assert(cJSON_IsNull(json_at(&json, "tuned")));
    mgl_json_clear(&json);
    write_changed("tales.json", "\"kv\": \"f32\"",
                  "\"kv\": \"f32\", \"layers\": \"int4 group 64 f16\"");
    json = json_of(line, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "tuned"), "tales-cpu");
    mgl_json_clear(&json);
    json = run_json("");
    ck_assert(cJSON_IsNull(json_at(&json, "tuned")));
    mgl_json_clear(&json);
}
END_TEST

START_TEST(the_closing_line_names_it)
{
    command_result result = command_runf(RUN, model_path("tales-5m"));
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.err, "; tuned: tales-cpu\n"));
    command_clear(&result);
}
END_TEST

START_TEST(a_damaged_one_is_named_and_skipped)
{
    write_entry("a.json", "{\"schema\": \"megalith.tuned/1\"");
    command_result result = command_runf(RUN, model_path("tales-5m"));
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.err, "megalith run: no tuned entry: "));
    ck_assert_ptr_nonnull(strstr(result.err, "/a.json"));
    ck_assert_ptr_nonnull(strstr(result.err, "; tuned: tales-cpu\n"));
    command_clear(&result);
    mgl_json json = run_json("");
    ck_assert_ptr_nonnull(strstr(json_string(&json, "note"), "/a.json"));
    mgl_json_clear(&json);
}
END_TEST

START_TEST(one_that_does_not_replay_is_skipped)
{
    write_changed("tales.json", "\"moves\": []",
                  "\"moves\": [\"rows layer=3 step=o from=12 to=13 count=1\"]");
    command_result result = command_runf(RUN, model_path("tales-5m"));
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(
        strstr(result.err, "megalith run: tuned entry tales-cpu is ignored: rows layer=3"));
    command_clear(&result);
    mgl_json json = run_json("");
    ck_assert(cJSON_IsNull(json_at(&json, "tuned")));
    ck_assert_ptr_nonnull(strstr(json_string(&json, "note"), "tales-cpu"));
    mgl_json_clear(&json);
}
END_TEST

START_TEST(one_that_is_rejected_is_skipped)
{
    write_changed("tales.json", "\"moves\": []",
                  "\"moves\": [\"shift layer=0 step=o from=0 count=1\"]");
    mgl_json json = run_json("");
    ck_assert(cJSON_IsNull(json_at(&json, "tuned")));
    ck_assert_ptr_nonnull(strstr(json_string(&json, "note"), "MG"));
    mgl_json_clear(&json);
}
END_TEST

/* The program's header names the entry, and a program with that header runs. */
START_TEST(lower_records_it)
{
    char path[600];
    snprintf(path, sizeof path, "%s/tales.mls", folder);
    command_result result =
        command_runf("lower %s --target cpu:1 --capacity 64 -o %s", model_path("tales-5m"), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    char flags[700];
    snprintf(flags, sizeof flags, "--schedule %s", path);
    mgl_json json = run_json(flags);
    ck_assert_str_eq(json_string(&json, "tuned"), "tales-cpu");
    mgl_json_clear(&json);
}
END_TEST

START_TEST(lower_can_be_for_a_device_that_is_not_there)
{
    write_changed("tales.json", "\"device\": \"cpu\", \"target\": \"cpu:1\"",
                  "\"device\": \"NVIDIA H200\", \"target\": \"sm_90a:132\"");
    command_result with = command_runf("lower %s --target sm_90a:132 --dtype f32 "
                                       "--device-name 'NVIDIA H200'",
                                       model_path("tales-5m"));
    command_result without =
        command_runf("lower %s --target sm_90a:132 --dtype f32", model_path("tales-5m"));
    ck_assert_ptr_nonnull(strstr(with.out, "\ntuned tales-cpu "));
    ck_assert_ptr_null(strstr(without.out, "\ntuned "));
    command_clear(&with);
    command_clear(&without);
}
END_TEST

START_TEST(compile_names_it)
{
    char path[600], line[2048];
    snprintf(path, sizeof path, "%s/tales.mega", folder);
    snprintf(line, sizeof line, "compile %s --target cpu:1 -o %s --json --quiet",
             model_path("tales-5m"), path);
    mgl_json json = json_of(line, "megalith.compile/1");
    ck_assert_str_eq(json_string(&json, "tuned"), "tales-cpu");
    mgl_json_clear(&json);
    snprintf(line, sizeof line, "info %s --json", path);
    json = json_of(line, "megalith.info/1");
    ck_assert_str_eq(json_string(&json, "compiled.tuned"), "tales-cpu");
    mgl_json_clear(&json);
}
END_TEST

START_TEST(info_lists_those_of_the_shape)
{
    char line[1024];
    write_changed("other.json", "\"hidden\": 256", "\"hidden\": 512");
    write_changed("zold.json", "\"lowering\": ", "\"lowering\": 999");
    snprintf(line, sizeof line, "info %s --json", model_path("tales-5m"));
    mgl_json json = json_of(line, "megalith.info/1");
    const cJSON *list = json_at(&json, "tuned");
    ck_assert_int_eq(cJSON_GetArraySize(list), 2);
    const cJSON *first = cJSON_GetArrayItem(list, 0), *second = cJSON_GetArrayItem(list, 1);
    ck_assert_str_eq(mgl_json_member(first, "name")->valuestring, "tales-cpu");
    ck_assert(cJSON_IsTrue(mgl_json_member(first, "used")));
    ck_assert(cJSON_IsFalse(mgl_json_member(second, "used")));
    mgl_json_clear(&json);
    command_result result = command_runf("info %s", model_path("tales-5m"));
    ck_assert_ptr_nonnull(strstr(result.out, "tales-cpu: cpu, cpu:1, f32, 1 sequence, 1 to 1024"));
    ck_assert_ptr_nonnull(strstr(result.out, "; not used: "));
    command_clear(&result);
}
END_TEST

START_TEST(eval_says_the_same)
{
    char texts[600];
    snprintf(texts, sizeof texts, "%s/texts.txt", folder);
    write_entry("texts.txt", "[\"Once there was a small fox.\"]");
    command_result with =
        command_runf("eval %s --texts %s --device cpu", model_path("tales-5m"), texts);
    command_result without =
        command_runf("eval %s --texts %s --device cpu --no-tuned", model_path("tales-5m"), texts);
    ck_assert_int_eq(with.code, 0);
    ck_assert_int_eq(without.code, 0);
    /* The splits of attention are added in another order, so the last digit may differ. */
    double a = strtod(strstr(with.out, "nll") + 3, NULL);
    double b = strtod(strstr(without.out, "nll") + 3, NULL);
    ck_assert_double_eq_tol(a, b, 1e-3);
    command_clear(&with);
    command_clear(&without);
}
END_TEST

int main(void)
{
    snprintf(entry, sizeof entry, pattern, MGL_LOWERING_VERSION);
    Suite *suite = suite_create("cli tuned");
    TCase *unit = tcase_create("tuned");
    tcase_set_timeout(unit, 100);
    tcase_add_checked_fixture(unit, set_up, NULL);
    tcase_add_test(unit, run_names_it);
    tcase_add_test(unit, no_tuned_rejects_it);
    tcase_add_test(unit, tokens_are_the_same_without);
    tcase_add_test(unit, entries_are_of_one_set_of_weight_formats);
    tcase_add_test(unit, the_closing_line_names_it);
    tcase_add_test(unit, a_damaged_one_is_named_and_skipped);
    tcase_add_test(unit, one_that_does_not_replay_is_skipped);
    tcase_add_test(unit, one_that_is_rejected_is_skipped);
    tcase_add_test(unit, lower_records_it);
    tcase_add_test(unit, lower_can_be_for_a_device_that_is_not_there);
    tcase_add_test(unit, compile_names_it);
    tcase_add_test(unit, info_lists_those_of_the_shape);
    tcase_add_test(unit, eval_says_the_same);
    suite_add_tcase(suite, unit);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
