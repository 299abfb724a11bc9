/*
 * Tests of limits of sampling values: values that keep the most likely token, and values that
 * change nothing. They are set by flags, by an entry of --prompts and by generation_config.json.
 * The results follow the logits processors of Hugging Face Transformers.
 */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROMPT "-p 'Once there was' -n 8 --device cpu --dtype f32 --quiet"

static char greedy[200];

/* tales-5m with a generation_config.json of these values. */
static const char *model_with(const char *values)
{
    char text[300], line[1300];
    static char path[1100];
    snprintf(path, sizeof path, "%s", scratch_model("tales-5m", "edges"));
    snprintf(line, sizeof line, "%s/generation_config.json", path);
    unlink(line);
    snprintf(text, sizeof text, "{%s\"eos_token_id\": 910, %s}",
             strstr(values, "do_sample") ? "" : "\"do_sample\": true, ", values);
    scratch_file("edges/generation_config.json", text);
    return path;
}

static void assert_reply(const char *model, const char *flags, const char *want)
{
    command_result result = command_runf("run %s " PROMPT " %s", model, flags);
    ck_assert_msg(result.code == 0, "%s: %s", flags, result.err);
    ck_assert_msg(!strcmp(result.out, want), "%s: %s", flags, result.out);
    command_clear(&result);
}

static const char *const one_token[] = {
    "--top-p 0",
    "--top-p 0 --temperature 5",
    "--top-p 1e-60",
    "--top-p 0 --top-k 0",
    "--top-k 1 --temperature 5",
    "--min-p 1 --temperature 5",
    "--temperature 0 --top-p 0",
    "--top-p 0 --min-p 0",
};

START_TEST(the_most_likely_token_is_kept)
{
    char flags[100];
    for (int seed = 1; seed <= 4; seed++) {
        snprintf(flags, sizeof flags, "%s --seed %d", one_token[_i], seed);
        assert_reply(model_path("tales-5m"), flags, greedy);
    }
}
END_TEST

static const char *const nothing[] = {"--top-k 0",
                                      "--min-p 0",
                                      "--top-p 1",
                                      "--top-k 913",
                                      "--repeat-penalty 1",
                                      "--presence-penalty 0",
                                      "--top-p 1 --top-k 0 --min-p 0 --repeat-penalty 1"};

START_TEST(these_change_nothing)
{
    char flags[200];
    command_result plain =
        command_runf("run %s " PROMPT " --temperature 3 --seed 5", model_path("tales-5m"));
    ck_assert_msg(plain.code == 0 && strcmp(plain.out, greedy) != 0, "%s", plain.out);
    snprintf(flags, sizeof flags, "--temperature 3 --seed 5 %s", nothing[_i]);
    assert_reply(model_path("tales-5m"), flags, plain.out);
    command_clear(&plain);
}
END_TEST

static const char *const files[] = {
    "\"top_p\": 0",
    "\"top_p\": 0.0, \"temperature\": 5.0",
    "\"top_p\": 0, \"top_k\": 0",
    "\"top_k\": 1, \"temperature\": 5.0",
    "\"min_p\": 1, \"temperature\": 5.0, \"top_k\": 0",
    "\"temperature\": 0.0, \"repetition_penalty\": 1.0",
};

START_TEST(of_generation_config)
{
    const char *model = model_with(files[_i]);
    assert_reply(model, "--sample --seed 1", greedy);
    assert_reply(model, "--sample --seed 2", greedy);
}
END_TEST

/* Values that cannot be used, and a part of the message. */
static const struct {
    const char *values, *message;
} unusable[] = {
    {"\"top_k\": -1", "top_k"},
    {"\"top_p\": 1.5", "top_p is 1.5"},
    {"\"min_p\": -1", "min_p is -1"},
    {"\"temperature\": \"hot\"", "temperature"},
    {"\"repetition_penalty\": 0", "repetition_penalty is 0"},
    {"\"do_sample\": \"yes\"", "do_sample"},
};

/* A greedy reply does not read the values, and flags replace them. */
START_TEST(unusable_values_are_an_error_of_sampling)
{
    const char *model = model_with(unusable[_i].values);
    assert_reply(model, "", greedy);
    assert_reply(model, "--temperature 1 --top-k 1 --seed 1", greedy);
    ck_assert_int_eq(command_code("info %s", model), 0);
    command_result result = command_runf("run %s " PROMPT " --sample", model);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "generation_config.json") &&
                      strstr(result.err, unusable[_i].message) && strstr(result.err, "top-k"),
                  "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(of_an_entry)
{
    const char *list = scratch_file(
        "edges.json", "[{\"text\": \"Once there was\", \"top_p\": 0, \"temperature\": 5, "
                      "\"seed\": 1}, {\"text\": \"Once there was\", \"top_p\": 0, \"seed\": 2}, "
                      "{\"text\": \"Once there was\", \"top_k\": 1, \"seed\": 3}]");
    command_result result = command_runf("run %s -n 8 --device cpu --dtype f32 --json --prompts %s",
                                         model_path("tales-5m"), list);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    const cJSON *output = json_at(&json, "outputs")->child;
    for (; output; output = output->next) {
        const char *text = mgl_json_member(output, "text")->valuestring;
        ck_assert_msg(!strncmp(text, greedy, strlen(text)) && strlen(text) > 10, "%s", text);
    }
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

static void find_greedy(void)
{
    command_result result = command_runf("run %s " PROMPT, model_path("tales-5m"));
    snprintf(greedy, sizeof greedy, "%s", result.out);
    command_clear(&result);
}

int main(void)
{
    Suite *suite = suite_create("sampling");
    TCase *cases = tcase_create("sampling");
    tcase_set_timeout(cases, time_limit(60));
    tcase_add_unchecked_fixture(cases, find_greedy, NULL);
    tcase_add_loop_test(cases, the_most_likely_token_is_kept, 0,
                        sizeof one_token / sizeof *one_token);
    tcase_add_loop_test(cases, these_change_nothing, 0, sizeof nothing / sizeof *nothing);
    tcase_add_loop_test(cases, of_generation_config, 0, sizeof files / sizeof *files);
    tcase_add_loop_test(cases, unusable_values_are_an_error_of_sampling, 0,
                        sizeof unusable / sizeof *unusable);
    tcase_add_test(cases, of_an_entry);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
