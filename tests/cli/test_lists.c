/*
 * Tests of the common reader of lists of texts: `run --prompts`, and `score`, `eval` and `tokenize`
 * with --texts.
 */
#include "command.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\xEF\xBB\xBF"

static const char *const verbs[] = {
    "run %s --device cpu -n 2 --quiet --prompts %s", "score %s --device cpu --quiet --texts %s",
    "eval %s --device cpu --quiet --texts %s", "tokenize %s --texts %s"};
enum { VERBS = sizeof verbs / sizeof *verbs };

static command_result run_verb(int verb, const char *list)
{
    return command_runf(verbs[verb], model_path("tales-5m"), scratch_file("list.jsonl", list));
}

/* The first list of each pair is an array, the second is the same as JSON Lines. */
static const char *const pairs[][2] = {
    {"[\"Once there was\", \"Once\"]", "\"Once there was\"\n\"Once\"\n"},
    {"[\"Once there\", {\"text\": \"Once\"}]", "\n\"Once there\"\r\n\n{\"text\": \"Once\"}"},
    {"[{\"text\": \"a [b\\nc\"}]", "{\"text\":\n\"a [b\\nc\"\n}\n"},
    {"[\"[1, 2\", \"{\"]", "\"[1, 2\"\n\"{\"\n"},
};

START_TEST(lines_are_as_an_array)
{
    for (int verb = 0; verb < VERBS; verb++) {
        command_result array = run_verb(verb, pairs[_i][0]);
        command_result lines = run_verb(verb, pairs[_i][1]);
        ck_assert_msg(array.code == 0 && lines.code == 0, "%s%s", array.err, lines.err);
        ck_assert_str_eq(array.out, lines.out);
        command_clear(&array);
        command_clear(&lines);
    }
}
END_TEST

/* Ids are scored as they are. */
START_TEST(ids_are_texts)
{
    for (int verb = 0; verb < VERBS - 1; verb++) {
        command_result text = run_verb(verb, "[\"Once there was\"]");
        command_result ids = run_verb(verb, "{\"ids\": [909, 452, 449, 268]}\n");
        ck_assert_msg(ids.code == 0, "%s", ids.err);
        ck_assert_str_eq(text.out, ids.out);
        command_clear(&text);
        command_clear(&ids);
    }
}
END_TEST

/* Lists that every verb rejects, and the message. */
static const struct {
    const char *list, *message;
} wrong[] = {
    {"[1, \"a\"\nOnce upon a time\n", "list.jsonl:2:1: not valid JSON: ',' or ']' is expected"},
    {"[\"a\", \"b\"\n", "list.jsonl:2:1: not valid JSON"},
    {"Once upon a time\nthere was\n", "list.jsonl:1:1: not valid JSON"},
    {"{\"text\": \"a\"} {\"text\": \"b\"}\n",
     "list.jsonl:1:15: not valid JSON: unexpected text after the end of the value"},
    {"\"a\" \"b\"", "list.jsonl:1:5: not valid JSON: unexpected text after the end of the value"},
    {"\"Once\"\n{\"text\": \"a\"} {\"text\": \"b\"}\n\"Once\"\n",
     "list.jsonl: line 2, column 15: not valid JSON: unexpected text after the end of the value"},
    {"\"Once\"\n  \"a\", \"b\"\n", "list.jsonl: line 2, column 6: not valid JSON"},
    {"\"Once\"\nOnce upon\n", "list.jsonl: line 2, column 1: not valid JSON"},
    {"[\"Once\",\n  {\"text\" \"a\"}]", "list.jsonl: [1], line 2, column 11: not valid JSON"},
    {"[\"Once\",\n  {\"text\":\n a}]", "list.jsonl: [1], line 3, column 2: not valid JSON"},
    {"[\"Once\"]\n\"Once\"\n", "list.jsonl: line 1: must be a string or an object"},
    {"\"Once\"\n[\"Once\"]\n", "list.jsonl: line 2: must be a string or an object"},
    {"[[\"Once\"]]", "list.jsonl: [0]: must be a string or an object"},
    {"\"Once\"\n1984\n", "list.jsonl: line 2: must be a string or an object"},
    {MARK "[\"Once\"]", "list.jsonl: begins with the byte order mark (BOM) of UTF-8"},
    {MARK "\"Once\"\n\"Once\"\n", "list.jsonl: begins with the byte order mark (BOM) of UTF-8"},
    {"\xFF\xFE\"", "list.jsonl: begins with the byte order mark (BOM) of UTF-16"},
    {"", "list.jsonl: holds 0 "},
    {" \n\n", "list.jsonl: holds 0 "},
    {"1984\n", "list.jsonl: is not a list of "},
};

START_TEST(wrong_shapes)
{
    for (int verb = 0; verb < VERBS; verb++) {
        command_result result = run_verb(verb, wrong[_i].list);
        ck_assert_msg(result.code == 2, "%s: %s: exit %d", verbs[verb], wrong[_i].list,
                      result.code);
        ck_assert_msg(strstr(result.err, wrong[_i].message), "%s: %s", verbs[verb], result.err);
        if (verb)
            ck_assert_str_eq(result.out, "");
        command_clear(&result);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lists");
    TCase *cases = tcase_create("lists");
    tcase_set_timeout(cases, time_limit(60));
    tcase_add_loop_test(cases, lines_are_as_an_array, 0, sizeof pairs / sizeof *pairs);
    tcase_add_test(cases, ids_are_texts);
    tcase_add_loop_test(cases, wrong_shapes, 0, sizeof wrong / sizeof *wrong);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
