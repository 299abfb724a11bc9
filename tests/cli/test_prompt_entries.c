/*
 * Tests of megalith run --prompts on the CPU: lists longer than a launch, JSON Lines, and invalid
 * entries beside valid ones.
 */
#include "list.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- launches -------------------------------------------------------------------------------- */

/* Prompts that differ in text, length, end and seed. */
static char *make_different(int count, const char *open, const char *between, const char *close)
{
    static char list[20000];
    size_t n = (size_t)snprintf(list, sizeof list, "%s", open);
    for (int i = 0; i < count; i++) {
        const char *comma = i ? between : "";
        if (i % 3 == 0)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s\"Once %d\"", comma, i);
        else
            n += (size_t)snprintf(list + n, sizeof list - n,
                                  "%s{\"ids\": [%d, %d], \"max_tokens\": %d, \"seed\": %d}", comma,
                                  909 - 3 * i, 11 * i % 900, 1 + i % 5, i);
    }
    snprintf(list + n, sizeof list - n, "%s", close);
    return list;
}

/* More prompts than one launch has sequences: several launches, replies in order, and each reply
 * is the same as in a list of its own. */
static void check_launches(int count, const char *flags, int launches)
{
    command_result result = run_list(make_different(count, "[", ", ", "]"), flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq((int)json_number(&json, "launches"), launches);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "outputs")), count);
    cJSON *list = cJSON_Parse(make_different(count, "[", ", ", "]"));
    for (int i = 1; i < count; i += 13) {
        char alone[300], *entry = cJSON_PrintUnformatted(cJSON_GetArrayItem(list, i));
        snprintf(alone, sizeof alone, "[%s]", entry);
        command_result one = run_list(alone, "--max-tokens 3 --json");
        mgl_json single = command_json(&one, "megalith.run/1");
        check_same(output_at(&json, i), output_at(&single, 0));
        mgl_json_clear(&single);
        command_clear(&one);
        free(entry);
    }
    cJSON_Delete(list);
    mgl_json_clear(&json);
    command_clear(&result);
}

START_TEST(seventeen_are_two_launches)
{
    check_launches(17, "--max-tokens 3 --json", 2);
}
END_TEST

START_TEST(a_hundred_and_thirty_in_launches_of_64)
{
    char flags[300];
    snprintf(flags, sizeof flags, "--max-tokens 3 --json --config %s",
             scratch_file("most.json", "{\"schema\": \"megalith.config/1\", \"second_rows\": 64}"));
    check_launches(130, flags, 3);
}
END_TEST

/* Replies of two launches as text, in order. */
START_TEST(texts_of_two_launches)
{
    char list[400];
    make_list(list, 17);
    command_result result = run_list(list, "--max-tokens 2");
    const char *at = result.out;
    ck_assert_msg(result.code == 0, "%s", result.err);
    for (int i = 0; i < 17; i++) {
        char line[80];
        snprintf(line, sizeof line, "%s==> prompt %d: length, 2 tokens <==\n there was\n",
                 i ? "\n" : "", i);
        ck_assert_msg(!strncmp(at, line, strlen(line)), "%d: %s", i, result.out);
        at += strlen(line);
    }
    ck_assert_str_eq(at, "");
    ck_assert_ptr_nonnull(strstr(result.err, "17 replies, 34 tokens"));
    command_clear(&result);
}
END_TEST

/* ---- JSON Lines ------------------------------------------------------------------------------ */

START_TEST(lines_are_as_an_array)
{
    command_result array = run_list(make_different(20, "[", ", ", "]"), "--max-tokens 3 --json");
    command_result lines =
        run_list(make_different(20, "\n", "\r\n  \n", "\n\n"), "--max-tokens 3 --json");
    ck_assert_msg(lines.code == 0, "%s", lines.err);
    mgl_json a = command_json(&array, "megalith.run/1"), b = command_json(&lines, "megalith.run/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&b, "outputs")), 20);
    for (int i = 0; i < 20; i++)
        check_same(output_at(&a, i), output_at(&b, i));
    mgl_json_clear(&b);
    mgl_json_clear(&a);
    command_clear(&lines);
    command_clear(&array);
}
END_TEST

typedef struct single {
    const char *list, *out;
} single;

static const single singles[] = {
    {"\"Once\"", "==> prompt 0: length, 2 tokens <==\n there was\n"},
    {"\"Once\"\n", "==> prompt 0: length, 2 tokens <==\n there was\n"},
    {"{\"text\": \"Once\"}", "==> prompt 0: length, 2 tokens <==\n there was\n"},
    {"{\n  \"text\": \"Once\"\n}\n", "==> prompt 0: length, 2 tokens <==\n there was\n"},
    {"[\n\"Once\"\n]\n", "==> prompt 0: length, 2 tokens <==\n there was\n"},
    {"[\"a ]\\\" , b\", {\"text\": \"Once\", \"stop\": [\"x\", \"]\"]}]",
     "==> prompt 1: length, 2 tokens <==\n there was\n"},
};

START_TEST(forms_of_a_list)
{
    command_result result = run_list(singles[_i].list, "--max-tokens 2");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_msg(strstr(result.out, singles[_i].out) != NULL, "%s", result.out);
    command_clear(&result);
}
END_TEST

START_TEST(standard_input)
{
    char line[300];
    snprintf(line, sizeof line, "run %s --device cpu --max-tokens 2 --prompts -",
             model_path("tales-5m"));
    command_result result = command_run(line, "\"Once\"\n{\"text\": 3}\n\"Once\"\n");
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.out, "==> prompt 2: length, 2 tokens <==\n there was\n"));
    ck_assert_ptr_nonnull(strstr(result.err, "standard input: line 2: text: must be a string"));
    command_clear(&result);
}
END_TEST

/* ---- entries with errors --------------------------------------------------------------------- */

/* One bad entry of each kind, between two good ones. */
static const refusal bad_entries[] = {
    {"3", "[1]: must be a string or an object"},
    {"null", "[1]: must be a string or an object"},
    {"{}", "[1]: one of \"text\", \"ids\" and \"messages\" is needed"},
    {"{\"text\": \"a\", \"text\": \"b\"}", "[1]: the key \"text\" is given twice"},
    {"{\"text\": \"a\", \"top-k\": 1}", "[1]: unknown key \"top-k\""},
    {"{\"text\": \"a\",}", "[1], line 1, column 23: not valid JSON"},
    {"{\"text\": \"a\", \"top_k\": -1}", "[1].top_k: must be between 0 and"},
    {"{\"text\": \"a\", \"repeat_penalty\": 0.001}", "[1].repeat_penalty: is 0.001; it must"},
    {"{\"text\": \"a\", \"stop\": 1}", "[1].stop: must be a text or an array of texts"},
    {"{\"ids\": []}", "[1].ids: contains no tokens; give at least one"},
    {"{\"ids\": [1, -1]}", "[1].ids[1]: must be between 0 and"},
    {"{\"ids\": [913]}", "[1].ids: token 0 is 913; the vocabulary has the ids 0 to 912"},
    {"{\"messages\": []}", "[1].messages: the conversation is empty"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "[1]: "}, /* no template */
    {"{\"text\": \"a\", \"seed\": -1}", "[1].seed: must be between 0 and"},
};

static void check_good(const cJSON *output)
{
    ck_assert_str_eq(text_of(output, "text"), " there was");
    ck_assert_ptr_null(mgl_json_member(output, "error"));
}

START_TEST(a_bad_entry_does_not_lose_the_others)
{
    char list[400];
    snprintf(list, sizeof list, "[\"Once\", %s, \"Once\"]", bad_entries[_i].list);
    command_result result = run_list(list, "--max-tokens 2 --json");
    ck_assert_msg(result.code == 2, "%s: exit %d", list, result.code);
    mgl_json json = command_json(&result, "megalith.run/1");
    check_good(output_at(&json, 0));
    check_good(output_at(&json, 2));
    const cJSON *bad = output_at(&json, 1);
    ck_assert_ptr_nonnull(strstr(text_of(bad, "error"), "prompts.json: [1]"));
    ck_assert_msg(strstr(text_of(bad, "error"), bad_entries[_i].message) != NULL, "%s",
                  text_of(bad, "error"));
    ck_assert(cJSON_IsNull(mgl_json_member(bad, "text")));
    ck_assert(cJSON_IsNull(mgl_json_member(bad, "stop")));
    ck_assert_int_eq(tokens_of(bad), 0);
    ck_assert_ptr_nonnull(strstr(result.err, text_of(bad, "error")));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(a_bad_line_does_not_lose_the_others)
{
    command_result result = run_list("\n{\"text\": \"a\"\n\"Once\"\n[\"a\"]\n\n"
                                     "{\"text\": \"a\", \"top_p\": 2}\n{\"ids\": [1, 913]}",
                                     "--max-tokens 2");
    ck_assert_int_eq(result.code, 2);
    ck_assert_str_eq(result.out, "==> prompt 0: error <==\n\n"
                                 "==> prompt 1: length, 2 tokens <==\n there was\n\n"
                                 "==> prompt 2: error <==\n\n==> prompt 3: error <==\n\n"
                                 "==> prompt 4: error <==\n");
    ck_assert_ptr_nonnull(strstr(result.err, "prompts.json: line 2, column 13: not valid JSON"));
    ck_assert_ptr_nonnull(strstr(result.err, "prompts.json: line 4: must be a string or an obj"));
    ck_assert_ptr_nonnull(strstr(result.err, "prompts.json: line 6: top_p: must be between 0"));
    ck_assert_ptr_nonnull(strstr(result.err, "prompts.json: line 7: ids: token 1 is 913"));
    ck_assert_ptr_nonnull(strstr(result.err, "1 reply"));
    command_clear(&result);
}
END_TEST

/* Bad entries in several launches; a launch has as many good ones as it can. */
START_TEST(bad_entries_of_several_launches)
{
    char list[3000] = "[";
    for (int i = 0; i < 40; i++)
        strcat(list, i % 4 == 1 ? "{\"ids\": [913]}, " : "\"Once\", ");
    strcat(list, "\"Once\"]");
    command_result result = run_list(list, "--max-tokens 2 --json");
    ck_assert_int_eq(result.code, 2);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq((int)json_number(&json, "launches"), 2);
    for (int i = 0; i <= 40; i++)
        if (i % 4 == 1)
            ck_assert_ptr_nonnull(strstr(text_of(output_at(&json, i), "error"), ".ids: token 0"));
        else
            check_good(output_at(&json, i));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(all_entries_are_bad)
{
    command_result result = run_list("[3, {\"text\": 4}]", "--json");
    ck_assert_int_eq(result.code, 2);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_ptr_nonnull(strstr(text_of(output_at(&json, 1), "error"), "[1].text: must be"));
    ck_assert_int_eq((int)json_number(&json, "launches"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* An entry that is too long for any cache does not make the caches of the others larger. */
START_TEST(a_prompt_that_no_cache_holds)
{
    static char list[60000];
    size_t n = (size_t)snprintf(list, sizeof list, "[\"Once\", {\"ids\": [1");
    for (int i = 0; i < 5000; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, ", %d", i % 900);
    snprintf(list + n, sizeof list - n, "]}]");
    command_result result = run_list(list, "--max-tokens 2 --json");
    ck_assert_int_eq(result.code, 2);
    mgl_json json = command_json(&result, "megalith.run/1");
    check_good(output_at(&json, 0));
    ck_assert_ptr_nonnull(strstr(
        text_of(output_at(&json, 1), "error"),
        "[1].ids: too many tokens: 5001; the model has 1024 positions (max_position_embeddings)"));
    ck_assert_int_lt((int)json_number(&json, "capacity"), 20);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A compiled model without penalties: an entry with penalties has the error. */
START_TEST(penalties_that_a_compiled_model_has_not)
{
    char path[200];
    snprintf(path, sizeof path, "%s/plain.mega", scratch_folder());
    ck_assert_int_eq(command_code("compile %s --target cpu:2 --capacity 64 -o %s --quiet",
                                  model_path("tales-5m"), path),
                     0);
    command_result result = command_runf(
        "run %s --device cpu --max-tokens 2 --json --prompts %s", path,
        scratch_file("prompts.json", "[\"Once\", {\"text\": \"a\", \"repeat_penalty\": 2}, "
                                     "\"Once\"]"));
    ck_assert_int_eq(result.code, 2);
    mgl_json json = command_json(&result, "megalith.run/1");
    check_good(output_at(&json, 0));
    check_good(output_at(&json, 2));
    ck_assert_ptr_nonnull(
        strstr(text_of(output_at(&json, 1), "error"), "[1].penalties: the model"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli prompt entries");
    TCase *tests = tcase_create("entries");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, seventeen_are_two_launches);
    tcase_add_test(tests, a_hundred_and_thirty_in_launches_of_64);
    tcase_add_test(tests, texts_of_two_launches);
    tcase_add_test(tests, lines_are_as_an_array);
    tcase_add_loop_test(tests, forms_of_a_list, 0, (int)(sizeof singles / sizeof *singles));
    tcase_add_test(tests, standard_input);
    tcase_add_loop_test(tests, a_bad_entry_does_not_lose_the_others, 0,
                        (int)(sizeof bad_entries / sizeof *bad_entries));
    tcase_add_test(tests, a_bad_line_does_not_lose_the_others);
    tcase_add_test(tests, bad_entries_of_several_launches);
    tcase_add_test(tests, all_entries_are_bad);
    tcase_add_test(tests, a_prompt_that_no_cache_holds);
    tcase_add_test(tests, penalties_that_a_compiled_model_has_not);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
