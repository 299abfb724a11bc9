/* Tests of the reason why a reply ended, in the closing line of `run`. */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  flags after the prompt, reason in the last line */
static const struct {
    const char *flags, *end;
} ends[] = {
    {"--prompt Once --max-tokens 3", "; ended by --max-tokens 3; loaded in "},
    {"--prompt Once --max-tokens 400", "; ended by the end token 910; loaded in "},
    {"--prompt Once --max-tokens 9 --stop ' there'",
     "; ended by the stop text \" there\"; loaded in "},
    {"--prompt Once --max-tokens 9 --stop ' there' --stop x", "; ended by a stop text; loaded in "},
    {"--prompt Once --ignore-eos", "; ended by --max-tokens 128; loaded in "},
    {"--prompt Once --max-tokens 9 --capacity 6",
     "; ended by the capacity of 6 positions; loaded in "},
};
enum { ENDS = sizeof ends / sizeof *ends };

START_TEST(tells_why_the_reply_ended)
{
    command_result result =
        command_runf("run %s --device cpu %s", model_path("tales-5m"), ends[_i].flags);
    ck_assert_int_eq(result.code, 0);
    ck_assert_msg(strstr(result.err, ends[_i].end) != NULL, "%s: %s", ends[_i].flags, result.err);
    command_clear(&result);
}
END_TEST

START_TEST(tells_why_the_replies_ended)
{
    char flags[300];
    snprintf(flags, sizeof flags, "--prompts %s --capacity 20",
             scratch_file("ends.json", "[{\"text\": \"Once\", \"max_tokens\": 4}, "
                                       "{\"text\": \"Once\", \"max_tokens\": 5}, "
                                       "{\"text\": \"Once\", \"stop\": \" there\"}, "
                                       "{\"text\": \"Once\", \"max_tokens\": 100}]"));
    command_result result = command_runf("run %s --device cpu %s", model_path("tales-5m"), flags);
    ck_assert_msg(
        strstr(result.err, "; ended by stop text (1), max-tokens (2), capacity (1); loaded in ") !=
            NULL,
        "%s", result.err);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli ends");
    TCase *tests = tcase_create("ends");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, tells_why_the_reply_ended, 0, ENDS);
    tcase_add_test(tests, tells_why_the_replies_ended);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
