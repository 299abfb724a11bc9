/*
 * Tests of the extraction of a proposal from a model's answer. The fixtures are answers with
 * typical text around the proposal.
 */
#include "autotune/agents/extract.h"
#include "base/clock.h"
#include "base/text.h"
#include "tests/time_limit.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define NONE      MGL_OUTCOME_EXTRACT_NONE
#define AMBIGUOUS MGL_OUTCOME_EXTRACT_AMBIGUOUS
#define OK        MGL_OUTCOME_OK

static const struct {
    const char *what, *text, *found; /* found NULL: no proposal */
    mgl_outcome outcome;
} fixtures[] = {
    {"a tagged fence in words", "a\n```json\n{1}\n```\nb", "{1}\n", OK},
    {"a fence without a tag", "```\n{1}\n```\n", "{1}\n", OK},
    {"the longest without a tag", "```\n{1}\n```\n```\n{22}\n```\n", "{22}\n", OK},
    {"a tag beats length", "```c\nlonger text\n```\n```json\n{1}\n```\n", "{1}\n", OK},
    {"the same twice", "```json\n{1}\n```\n```json\n{1}\n```\n", "{1}\n", OK},
    {"two that differ", "```json\n{1}\n```\n```json\n{2}\n```\n", NULL, AMBIGUOUS},
    {"two of a length without a tag", "```\n{1}\n```\n```\n{2}\n```\n", NULL, AMBIGUOUS},
    {"two of a length, and a longer one", "```\n{1}\n```\n```\n{2}\n```\n```\n{33}\n```\n",
     "{33}\n", OK},
    {"no fence, an object", "  {1}", "{1}", OK},
    {"no fence, words", "words", NULL, NONE},
    {"nothing", "", NULL, NONE},
    {"cut off", "```json\n{1}", NULL, NONE},
    {"cut off, and said anew", "```json\n{1\n\n```json\n{2}\n```\n", "{2}\n", OK},
    {"CRLF", "a\r\n```json\r\n{1}\r\n```\r\nb\r\n", "{1}\r\n", OK},
    {"tildes", "~~~json\n{1}\n~~~\n", "{1}\n", OK},
    {"backquotes do not close tildes", "~~~json\n{1}\n```\n{2}\n~~~\n", "{1}\n```\n{2}\n", OK},
    {"more backquotes hold fewer", "````json\n{1}\n```\n{2}\n````\n", "{1}\n```\n{2}\n", OK},
    {"fewer do not close more", "````json\n{1}\n```\n", NULL, NONE},
    {"more close fewer", "```json\n{1}\n`````\n", "{1}\n", OK},
    {"a fence within one of another tag", "```markdown\na\n```json\n{1}\n```\nb\n```\n", "{1}\n",
     OK},
    {"a fence within tildes", "~~~\n```json\n{1}\n```\n~~~\n", "{1}\n", OK},
    {"capitals", "```JSON\n{1}\n```\n", "{1}\n", OK},
    {"blanks around the tag", "``` json  \n{1}\n```  \n", "{1}\n", OK},
    {"a name behind the tag", "```json:a.json\n{1}\n```\n```c\nxxxxxxxx\n```\n", "{1}\n", OK},
    {"another tag that begins so", "```jsonnet\n{1}\n```\n```json\n{2}\n```\n", "{2}\n", OK},
    {"in a list", "1. so:\n    ```json\n    {1}\n    ```\n", "    {1}\n", OK},
    {"within a line", "use ```json {1}``` so", NULL, NONE},
    {"two backquotes", "``json\n{1}\n``\n", NULL, NONE},
    {"empty", "```json\n```\n", NULL, NONE},
    {"blank", "```json\n \n\t\n```\n", NULL, NONE},
    {"empty, and another", "```json\n```\n```\n{1}\n```\n", "{1}\n", OK},
    {"in a thought alone", "<think>\n```json\n{1}\n```\n</think>\nI can not.\n", NULL, NONE},
    {"behind a thought", "<think>\n```json\n{1}\n```\n</think>\n```json\n{2}\n```\n", "{2}\n", OK},
    {"behind a thought that cuts a fence off",
     "<Thinking>\n```json\n{1\n</Thinking>\n```json\n{2}\n```\n", "{2}\n", OK},
    {"a thought that never ends", "<think>\n```json\n{1}\n```\n", NULL, NONE},
    {"a thought whose begin is missing", "a\n```json\n{1}\n```\n</think>\n```json\n{2}\n```\n",
     "{2}\n", OK},
    {"a thought within a fence is text", "```json\n<think>\n{1}\n```\n", "<think>\n{1}\n", OK},
    {"no fence, behind a thought", "<reasoning>a</reasoning>\n{1}", "{1}", OK},
    {"no line end behind the last fence", "```json\n{1}\n```", "{1}\n", OK},
    {"a quoted fence is text", "> ```json\n> {1}\n> ```\n", NULL, NONE},
    {"empty lines stay", "```json\n\n{1}\n\n```\n", "\n{1}\n\n", OK},
};

START_TEST(takes_what_is_meant)
{
    const char *from = NULL;
    size_t bytes = 0;
    mgl_outcome outcome =
        mgl_extract(fixtures[_i].text, strlen(fixtures[_i].text), "json", '{', &from, &bytes);
    ck_assert_msg(outcome == fixtures[_i].outcome, "%s: %s", fixtures[_i].what,
                  mgl_outcome_name(outcome));
    if (fixtures[_i].found)
        ck_assert_msg(bytes == strlen(fixtures[_i].found) &&
                          !memcmp(from, fixtures[_i].found, bytes),
                      "%s: %.*s", fixtures[_i].what, (int)bytes, from);
}
END_TEST

START_TEST(code_stands_in_a_fence_alone)
{
    const char *from = NULL;
    size_t bytes = 0;
    ck_assert_int_eq(mgl_extract("{1}", 3, "cuda", 0, &from, &bytes), NONE);
}
END_TEST

START_TEST(bytes_of_any_value_are_taken_as_they_stand)
{
    static const char text[] = "\xFF\x00\n```cuda\na\x00\x80\xFE\n```\n\x00";
    const char *from = NULL;
    size_t bytes = 0;
    ck_assert_int_eq(mgl_extract(text, sizeof text - 1, "cuda", 0, &from, &bytes), OK);
    ck_assert_uint_eq(bytes, 5);
    ck_assert(!memcmp(from, "a\x00\x80\xFE\n", 5));
}
END_TEST

/* Patterns that could make the search of a 4 MiB text slow: many fences, thoughts, and marks. */
static const char *const repeated[] = {"```\n", "```x\n",     "<think>\n",        "</think>\n",
                                       "<",     "~~~ json\n", "```json\n1\n```\n"};

START_TEST(a_large_text_takes_no_time)
{
    mgl_text text = {0};
    const char *from = NULL;
    size_t bytes = 0;
    double start = mgl_clock_s();
    while (text.length < 4u << 20)
        mgl_text_put(&text, repeated[_i]);
    mgl_extract(text.bytes, text.length, "json", '{', &from, &bytes);
    ck_assert_double_lt(mgl_clock_s() - start, time_limit(10));
    mgl_text_clear(&text);
}
END_TEST

/* Every prefix of an answer is searched without a read past its end (found by AddressSanitizer). */
START_TEST(every_cut_is_taken)
{
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        size_t length = strlen(fixtures[i].text);
        for (size_t cut = 0; cut <= length; cut++) {
            char *copy = malloc(cut + 1);
            const char *from = NULL;
            size_t bytes = 0;
            memcpy(copy, fixtures[i].text, cut);
            mgl_outcome outcome = mgl_extract(copy, cut, "json", '{', &from, &bytes);
            ck_assert(outcome || (from >= copy && from + bytes <= copy + cut));
            free(copy);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("extract");
    TCase *tests = tcase_create("extract");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, takes_what_is_meant, 0, (int)(sizeof fixtures / sizeof *fixtures));
    tcase_add_test(tests, code_stands_in_a_fence_alone);
    tcase_add_test(tests, bytes_of_any_value_are_taken_as_they_stand);
    tcase_add_loop_test(tests, a_large_text_takes_no_time, 0,
                        (int)(sizeof repeated / sizeof *repeated));
    tcase_add_test(tests, every_cut_is_taken);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
