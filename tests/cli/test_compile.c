/*
 * Tests of `megalith compile` and of compiled models: every verb gives the same answers as for the
 * folder, and messages name what a compiled model cannot do.
 */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char compiled[1100]; /* tales-5m for cpu:1, f32 */

static void set_up(void)
{
    snprintf(compiled, sizeof compiled, "%s/tales.mega", scratch_folder());
    command_result result =
        command_runf("compile %s --target cpu:1 -o %s", model_path("tales-5m"), compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
}

static void tear_down(void)
{
    unlink(compiled);
}

/* Checks that both command lines succeed and print the same. */
static void same_answer(const char *format, const char *rest)
{
    char line[3000];
    snprintf(line, sizeof line, format, compiled, rest);
    command_result of_file = command_run(line, NULL);
    snprintf(line, sizeof line, format, model_path("tales-5m"), rest);
    command_result of_folder = command_run(line, NULL);
    ck_assert_msg(of_file.code == 0, "%s", of_file.err);
    ck_assert_int_eq(of_folder.code, 0);
    ck_assert_str_eq(of_file.out, of_folder.out);
    command_clear(&of_file);
    command_clear(&of_folder);
}

START_TEST(answers_as_the_folder_does)
{
    static const char *const lines[][2] = {
        {"run %s --device cpu --prompt 'Once there was a small fox named' --max-tokens 64%s", ""},
        {"run %s --device cpu --prompt Once --max-tokens 24 --sample --seed 7%s", ""},
        {"run %s --device cpu --prompt-ids 909,452,449 --max-tokens 20%s", ""},
        {"tokenize %s --text 'A fox named Yara.'%s", ""},
        {"detokenize %s --ids 452,449,268%s", ""},
        {"lower %s --target cpu:1%s", ""},
        {"lower %s --target sm_90a:132%s", ""}};
    same_answer(lines[_i][0], lines[_i][1]);
}
END_TEST

START_TEST(scores_as_the_folder_does)
{
    char rest[1200];
    snprintf(rest, sizeof rest, "%s",
             scratch_file("texts.json", "[\"Once there was a fox.\", \"Two nuts and three.\"]"));
    same_answer("eval %s --device cpu --texts %s", rest);
}
END_TEST

START_TEST(checks_as_the_folder_does)
{
    char schedule[1100];
    snprintf(schedule, sizeof schedule, "%s/tales.mls", scratch_folder());
    command_result result = command_runf("lower %s --target sm_90a:8 -o %s", compiled, schedule);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("check %s --model %s", schedule, compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "meaning: checked"));
    command_clear(&result);
}
END_TEST

START_TEST(info_knows_what_it_is)
{
    command_result result = command_runf("info %s --json", compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert_int_eq((int)json_number(&json, "parameters"), 4955648);
    ck_assert_int_eq((int)json_number(&json, "bytes"), 9911296);
    ck_assert_str_eq(json_string(&json, "compiled.arch"), "cpu");
    ck_assert_str_eq(json_string(&json, "compiled.dtype"), "f32");
    ck_assert_int_eq((int)json_number(&json, "compiled.capacity"), 1024);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "compiled.kernels")), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A compiled quantized model keeps its formats and evaluates as its folder. */
START_TEST(a_quantized_model_is_compiled)
{
    char file[1100], texts[1200];
    const char *model = model_path("quantized/q-tales-awq-int4-g64");
    snprintf(file, sizeof file, "%s/quantized.mega", scratch_folder());
    snprintf(texts, sizeof texts, "%s",
             scratch_file("quantized.json", "[\"Once there was a fox.\"]"));
    command_result result =
        command_runf("compile %s --target cpu:1 --dtype f32 -o %s", model, file);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("info %s", file);
    ck_assert_ptr_nonnull(strstr(result.out, "quantized     int4 group 64 f16 zeros: 42 matrices"));
    command_clear(&result);
    result = command_runf("eval %s --device cpu --dtype f32 --texts %s", file, texts);
    command_result other =
        command_runf("eval %s --device cpu --dtype f32 --texts %s", model, texts);
    ck_assert_msg(result.code == 0 && other.code == 0, "%s%s", result.err, other.err);
    ck_assert_str_eq(result.out, other.out);
    command_clear(&result);
    command_clear(&other);
}
END_TEST

START_TEST(json_says_what_was_written)
{
    struct stat facts;
    command_result result = command_runf("compile %s --target cpu:2 --dtype bf16 --capacity 100 "
                                         "-o %s --json",
                                         model_path("tales-5m"), compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.compile/1");
    ck_assert_str_eq(json_string(&json, "file"), compiled);
    ck_assert_str_eq(json_string(&json, "target"), "cpu:2");
    ck_assert_str_eq(json_string(&json, "dtype"), "bf16");
    ck_assert_int_eq((int)json_number(&json, "capacity"), 100);
    ck_assert_int_eq(stat(compiled, &facts), 0);
    ck_assert_int_eq((long)json_number(&json, "bytes"), facts.st_size);
    ck_assert_double_ge(json_number(&json, "timing.pack_s"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Several replies in one launch of a compiled model. */
START_TEST(a_file_has_room_for_several_replies)
{
    command_result result = command_runf("compile %s --target cpu:2 --sequences 3 -o %s --json",
                                         model_path("tales-5m"), compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.compile/1");
    ck_assert_int_eq((int)json_number(&json, "sequences"), 3);
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("run %s --prompts %s --max-tokens 4 --json", compiled,
                          scratch_file("three.json", "[\"Once\", \"Two nuts\", \"A fox\"]"));
    ck_assert_msg(result.code == 0, "%s", result.err);
    json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "outputs")), 3);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A user's schedule is stored in the file unchanged. */
START_TEST(a_schedule_can_be_compiled)
{
    char schedule[1100];
    snprintf(schedule, sizeof schedule, "%s/own.mls", scratch_folder());
    command_result result = command_runf("lower %s --target cpu:3 --capacity 90 -o %s",
                                         model_path("tales-5m"), schedule);
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
    result =
        command_runf("compile %s --schedule %s -o %s", model_path("tales-5m"), schedule, compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("run %s --prompt Once --max-tokens 4 --json", compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq((int)json_number(&json, "queues"), 3);
    ck_assert_int_eq((int)json_number(&json, "capacity"), 90);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

static const struct {
    const char *line; /* %s: the compiled file */
    int code;
    const char *words;
} refusals[] = {
    {"run %s --prompt x --device cpu --dtype bf16", 1, "is compiled for dtype f32"},
    {"run %s --prompt x --device cpu --capacity 1025", 1, "is compiled for a capacity of 1024"},
    {"run %s --prompt x --device cpu --schedule s.mls", 1, "leave out schedule"},
    {"run %s --prompt x --device cpu --config c.json", 1, "leave out config"},
    {"compile %s --target cpu:1 -o again.mega", 2, "is a compiled file"},
    {"compile %s --schedule s.mls --sequences 2 -o again.mega", 1, "leave out sequences"},
    {"compile %s --schedule s.mls --prompt-tokens 9 -o again.mega", 1, "leave out prompt"},
};

START_TEST(what_is_fixed_cannot_be_asked_for)
{
    command_result result = command_runf(refusals[_i].line, compiled);
    ck_assert_msg(result.code == refusals[_i].code, "exit %d: %s", result.code, result.err);
    ck_assert_msg(strstr(result.err, refusals[_i].words) != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(what_it_has_can_be_asked_for)
{
    command_result result = command_runf(
        "run %s --prompt Once --device cpu --dtype f32 --capacity 1024 --max-tokens 3", compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(it_is_no_schedule)
{
    static const char *const verbs[] = {"check", "explain"};
    for (int i = 0; i < 2; i++) {
        command_result result = command_runf("%s %s", verbs[i], compiled);
        ck_assert_int_eq(result.code, 2);
        ck_assert_msg(strstr(result.err, "is a compiled model, not the text of a schedule") != NULL,
                      "%s", result.err);
        command_clear(&result);
    }
}
END_TEST

START_TEST(a_damaged_file_is_rejected)
{
    struct stat facts;
    ck_assert_int_eq(stat(compiled, &facts), 0);
    FILE *file = fopen(compiled, "r+b"); /* at an offset in the weights */
    fseek(file, facts.st_size / 2, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, facts.st_size / 2, SEEK_SET);
    fputc(byte ^ 4, file);
    fclose(file);
    command_result result = command_runf("run %s --device cpu --prompt Once --verify", compiled);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "is damaged: its section ") != NULL, "%s", result.err);
    command_clear(&result);
    ck_assert_int_eq(truncate(compiled, facts.st_size - 1), 0);
    result = command_runf("run %s --device cpu --prompt Once", compiled);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "is cut off") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(what_stands_there_stays_when_it_fails)
{
    struct stat before, after;
    ck_assert_int_eq(stat(compiled, &before), 0);
    command_result result = command_runf("compile %s --target cpu:1 --capacity 5000 -o %s",
                                         model_path("tales-5m"), compiled);
    ck_assert_int_eq(result.code, 2);
    command_clear(&result);
    ck_assert_int_eq(stat(compiled, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    result = command_runf("compile %s --target cpu:1 -o %s/no/f.mega", model_path("tales-5m"),
                          scratch_folder());
    ck_assert_int_eq(result.code, 2);
    command_clear(&result);
    result = command_runf("compile %s --target cpu:1 -o /dev/full", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "is not a regular file") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

/* A folder without tokenizer.json gives a compiled file without a tokenizer, which runs with
 * ids. */
START_TEST(a_model_without_a_tokenizer_runs_by_ids)
{
    char line[3000];
    const char *folder = scratch_folder(), *model = model_path("llama3-rope");
    snprintf(line, sizeof line, "mkdir %s/bare && cp %s/config.json %s/*.safetensors %s/bare",
             folder, model, model, folder);
    ck_assert_int_eq(system(line), 0);
    command_result result = command_runf("compile %s/bare --target cpu:1 -o %s", folder, compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("run %s --prompt-ids 1,2,3 --max-tokens 4", compiled);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("run %s --prompt Once", compiled);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "without tokenizer.json") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

/* A smaller capacity keeps the program and limits the positions of replies. */
START_TEST(a_lower_capacity_limits_the_positions)
{
    const char *model = model_path("tales-5m");
    static const char flags[] = "--device cpu --prompt-ids 909,452,449 --ignore-eos -n 40 --json";
    command_result folder = command_runf("run %s %s --capacity 12", model, flags);
    command_result result = command_runf("run %s %s --capacity 12", compiled, flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    mgl_json wanted = command_json(&folder, "megalith.run/1");
    ck_assert_int_eq((int)json_number(&json, "capacity"), 12);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "output_ids")), 9);
    ck_assert(cJSON_Compare(json_at(&json, "output_ids"), json_at(&wanted, "output_ids"), true));
    mgl_json_clear(&wanted);
    mgl_json_clear(&json);
    command_clear(&result);
    command_clear(&folder);
    result = command_runf("run %s --device cpu --prompt-ids 1,2,3,4,5 --capacity 4", compiled);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "the KV cache has 4 positions") != NULL, "%s", result.err);
    command_clear(&result);
    result = command_runf("score %s --device cpu --capacity 4 --text 'Once there was a small fox'",
                          compiled);
    ck_assert_int_eq(result.code, 2);
    command_clear(&result);
}
END_TEST

/* Longrope has other frequencies up to the original length: a compiled file keeps its own. */
START_TEST(a_lower_capacity_keeps_the_rope)
{
    const char *folder = scratch_folder(), *model = model_path("families/phi3-longrope");
    command_result result =
        command_runf("compile %s --target cpu:1 --capacity 200 -o %s/long.mega", model, folder);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("run %s/long.mega --device cpu --prompt-ids 1,2,3 --capacity 60", folder);
    ck_assert_int_eq(result.code, 1);
    ck_assert_msg(strstr(result.err, "factors for more than 64 positions") != NULL, "%s",
                  result.err);
    command_clear(&result);
    result = command_runf(
        "run %s/long.mega --device cpu --prompt-ids 1,2,3 --capacity 65 -n 2 --quiet --json",
        folder);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli compile");
    TCase *tests = tcase_create("compile");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_lower_capacity_limits_the_positions);
    tcase_add_test(tests, a_lower_capacity_keeps_the_rope);
    tcase_add_loop_test(tests, answers_as_the_folder_does, 0, 7);
    tcase_add_test(tests, scores_as_the_folder_does);
    tcase_add_test(tests, checks_as_the_folder_does);
    tcase_add_test(tests, info_knows_what_it_is);
    tcase_add_test(tests, json_says_what_was_written);
    tcase_add_test(tests, a_file_has_room_for_several_replies);
    tcase_add_test(tests, a_schedule_can_be_compiled);
    tcase_add_loop_test(tests, what_is_fixed_cannot_be_asked_for, 0,
                        (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(tests, what_it_has_can_be_asked_for);
    tcase_add_test(tests, a_quantized_model_is_compiled);
    tcase_add_test(tests, it_is_no_schedule);
    tcase_add_test(tests, a_damaged_file_is_rejected);
    tcase_add_test(tests, what_stands_there_stays_when_it_fails);
    tcase_add_test(tests, a_model_without_a_tokenizer_runs_by_ids);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
