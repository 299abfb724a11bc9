/* Tests `megalith run` with every damaged model: exit code 2, nothing on standard output, and one
 * line on standard error with the expected words. */
#include "tests/cli/command.h"
#include "tests/damaged/models.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static command_result run_model(const damaged_model *model, int index)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/%d", scratch_folder(), index);
    ck_assert_msg(write_damaged_model(model, folder), "%s cannot be made", model->name);
    return command_runf("run %s --device cpu --prompt-ids 1 --max-tokens 1 --sample --seed 1",
                        folder);
}

START_TEST(test_good)
{
    damaged_model good = {.edit = NONE, .sharded = _i};
    command_result result = run_model(&good, -1 - _i);
    ck_assert_msg(result.code == 0, "exit %d: %s", result.code, result.err);
    command_clear(&result);
}
END_TEST

START_TEST(test_damaged)
{
    const damaged_model *model = &damaged_models[_i];
    command_result result = run_model(model, _i);
    ck_assert_msg(result.code == 2, "%s: exit %d: %s", model->name, result.code, result.err);
    ck_assert_msg(strstr(result.err, model->message) != NULL, "%s: \"%s\" lacks \"%s\"",
                  model->name, result.err, model->message);
    ck_assert_ptr_eq(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
    ck_assert_msg(only_visible(result.err), "%s: speaks to the terminal", model->name);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damaged models, command line");
    TCase *cases = tcase_create("damaged models, command line");
    tcase_set_timeout(cases, 100);
    tcase_add_loop_test(cases, test_good, 0, 2);
    tcase_add_loop_test(cases, test_damaged, 0, (int)damaged_model_count);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
