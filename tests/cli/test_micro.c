/*
 * Tests of megalith kernel: the printed facts about micro-kernels, and the exit codes of their
 * gates.
 */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

static char path[] = MGL_BINARY_DIR "/micro-XXXXXX";

/* The text of merge, with `from` replaced by `to`. */
static void write_text(const char *from, const char *to)
{
    command_result shown = command_run("kernel show merge --text", NULL);
    char *at = strstr(shown.out, from);
    ck_assert_ptr_nonnull(at);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%.*s%s%s", (int)(at - shown.out), shown.out, to, at + strlen(from));
    ck_assert_int_eq(fclose(file), 0);
    command_clear(&shown);
}

static mgl_json verify(const char *flags, int code)
{
    command_result result =
        command_runf("kernel verify merge --text %s --scan-only --json %s", path, flags);
    ck_assert_msg(result.code == code, "exit %d: %s%s", result.code, result.out, result.err);
    mgl_json json = command_json(&result, "megalith.kernel/1");
    command_clear(&result);
    return json;
}

static void check_outcome(mgl_json *json, const char *outcome)
{
    const char *is = NULL;
    mgl_json_get_string(json, json->root, "outcome", true, &is, NULL);
    ck_assert_str_eq(is, outcome);
    mgl_json_clear(json);
}

/* Lines and JSON print the same hint, for authors of micro-kernels. */
START_TEST(lines_and_json_print_the_same_hint)
{
    const char *hint = NULL;
    write_text("float mean[4];", "float mean[4];");
    mgl_json json = verify("", 11);
    ck_assert_int_eq(mgl_json_get_string(&json, json.root, "hint", true, &hint, NULL), MGL_OK);
    ck_assert_str_eq(hint, "The same text was tried before: write another one.");
    command_result result = command_runf("kernel verify merge --text %s --scan-only", path);
    ck_assert_int_eq(result.code, 11);
    ck_assert_msg(strstr(result.out, hint) != NULL, "%s", result.out);
    command_clear(&result);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(units_are_listed)
{
    command_result result = command_run("kernel list --json", NULL);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, "\"unit\":\"norm_linear.skinny\""));
    command_clear(&result);
}
END_TEST

START_TEST(a_unit_is_shown)
{
    command_result result = command_run("kernel show attend.waves --json", NULL);
    ck_assert_int_eq(result.code, 0);
    mgl_json json = command_json(&result, "megalith.kernel/1");
    ck_assert_ptr_nonnull(mgl_json_member(json.root, "budget"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(a_region_is_shown_alone)
{
    command_result result = command_run("kernel show merge --region launch", NULL);
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.out, "/* need shared: 0 */\n\n");
    command_clear(&result);
}
END_TEST

START_TEST(its_own_text_is_a_duplicate)
{
    write_text("static", "static");
    mgl_json json = verify("", 11);
    check_outcome(&json, "DUPLICATE");
}
END_TEST

START_TEST(what_is_forbidden_is_rejected)
{
    write_text("float mean[4];", "float mean[4];\n    const long long t = clock64();");
    mgl_json json = verify("", 11);
    check_outcome(&json, "STATIC_FORBIDDEN");
}
END_TEST

START_TEST(a_byte_elsewhere_is_rejected)
{
    write_text("float mean[4];", "float mean[5];");
    mgl_json json = verify("--region macros", 11);
    check_outcome(&json, "REGION_VIOLATION");
}
END_TEST

START_TEST(what_passes_is_unmeasured)
{
    write_text("float mean[4];", "float mean[5];");
    mgl_json json = verify("--region device", 13);
    check_outcome(&json, "UNMEASURED");
}
END_TEST

static void fails(const char *line, int code, const char *says)
{
    command_result result = command_runf("kernel %s", line);
    ck_assert_msg(result.code == code && strstr(result.err, says), "exit %d: %s", result.code,
                  result.err);
    command_clear(&result);
}

/* A text that has not passed the device gates is not promoted, and cannot be demoted. */
START_TEST(promotion_needs_a_device)
{
    char line[600];
    write_text("float mean[4];", "float mean[5];");
    snprintf(line, sizeof line, "promote merge --text %s --device none", path);
    fails(line, 1, "only after checks on a device");
    snprintf(line, sizeof line, "verify merge --text %s --device cpu", path);
    fails(line, 1, "runs no micro-kernel");
    snprintf(line, sizeof line, "verify merge --text %s --device cuda:77", path);
    fails(line, 4, "");
    fails("bench merge --device none", 1, "nothing is timed without a device");
    fails("promote merge", 1, "--text is missing");
    fails("rollback merge", 2, "is not in the overlay");
}
END_TEST

/* A requested gate that cannot run is an error. */
START_TEST(a_checkpoint_needs_its_gate)
{
    char line[900];
    write_text("float mean[4];", "float mean[5];");
    snprintf(line, sizeof line, "verify merge --text %s --checkpoint %s", path,
             model_path("tales-5m"));
    fails(line, 1, "replies are compared on a device");
    snprintf(line, sizeof line, "verify merge --text %s --device cuda --exam-only --checkpoint %s",
             path, model_path("tales-5m"));
    fails(line, 1, "leave out one of --checkpoint and --correctness-only");
    fails("report --ledger a.json --log b.json", 1, "--log: is given twice on the command line");
}
END_TEST

START_TEST(a_tunable_that_is_not_there_is_a_bad_configuration)
{
    write_text("float mean[4];", "float mean[5];");
    mgl_json json = verify("--tune tile=4", 11);
    check_outcome(&json, "INVALID_CONFIG");
}
END_TEST

/* ---- the guard ------------------------------------------------------------------------------- */

static mgl_json guard_scan(const char *flags, int code)
{
    command_result result = command_runf("kernel guard scan %s --json %s", path, flags);
    ck_assert_msg(result.code == code, "exit %d: %s%s", result.code, result.out, result.err);
    mgl_json json = command_json(&result, "megalith.kernel/1");
    command_clear(&result);
    return json;
}

START_TEST(what_ships_is_clean)
{
    write_text("static", "static");
    mgl_json json = guard_scan("", 0);
    ck_assert_str_eq(json_string(&json, "unit"), "merge");
    ck_assert(cJSON_IsTrue(json_at(&json, "clean")));
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "findings")), 0);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(findings_have_code_line_and_hint)
{
    write_text("float mean[4];", "float mean[4];\n    int t = clock64();\n    asm(\"exit;\");");
    mgl_json json = guard_scan("", 11);
    const cJSON *found = json_at(&json, "findings");
    ck_assert(cJSON_IsFalse(json_at(&json, "clean")));
    ck_assert_int_eq(cJSON_GetArraySize(found), 2);
    const cJSON *first = cJSON_GetArrayItem(found, 0), *second = cJSON_GetArrayItem(found, 1);
    ck_assert_str_eq(mgl_json_member(first, "code")->valuestring, "STATIC_FORBIDDEN");
    ck_assert_str_eq(mgl_json_member(first, "message")->valuestring, "`clock64` reads a clock");
    ck_assert_str_eq(mgl_json_member(first, "hint")->valuestring,
                     "Leave out what the message names.");
    ck_assert_int_eq(mgl_json_member(second, "line")->valueint,
                     mgl_json_member(first, "line")->valueint + 1);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(findings_are_lines_too)
{
    write_text("float mean[4];", "float mean[4];\n    int t = clock64();");
    command_result result = command_runf("kernel guard scan %s", path);
    ck_assert_int_eq(result.code, 11);
    ck_assert_ptr_nonnull(strstr(result.out, "STATIC_FORBIDDEN at instructions/merge/merge.cuh:"));
    ck_assert_ptr_nonnull(strstr(result.out, "    Leave out what the message names.\n"));
    command_clear(&result);
}
END_TEST

/* A whole text in a fence, or the body of a region. */
START_TEST(answers_are_scanned_too)
{
    char *text, line[600];
    size_t length;
    mgl_text answer = {0};
    write_text("float mean[4];", "float mean[4];\n    int t = clock64();");
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &text, &length, NULL), MGL_OK);
    mgl_text_format(&answer, "So:\n```cuda\n%s```\n", text);
    snprintf(line, sizeof line, "kernel guard scan %s", scratch_file("whole.md", answer.bytes));
    command_result result = command_run(line, NULL);
    ck_assert_int_eq(result.code, 11);
    ck_assert_ptr_nonnull(strstr(result.out, "`clock64` reads a clock"));
    command_clear(&result);
    const char *body = scratch_file("body.md", "```cuda\nenum { MINE = clock };\n```\n");
    snprintf(line, sizeof line, "kernel guard scan %s --unit merge --region macros", body);
    result = command_run(line, NULL);
    ck_assert_int_eq(result.code, 11);
    ck_assert_ptr_nonnull(strstr(result.out, "`clock` reads a clock"));
    command_clear(&result);
    snprintf(line, sizeof line, "guard scan %s --region macros", body);
    fails(line, 1, "needs --unit");
    mgl_free(text);
    mgl_text_clear(&answer);
}
END_TEST

/* If the text does not match a unit, the unit must be named. */
START_TEST(a_text_of_nobody_needs_its_unit)
{
    char line[600];
    write_text("/* region: end */\n", "/* region: end */\nenum { MINE = 1 };\n");
    snprintf(line, sizeof line, "guard scan %s", path);
    fails(line, 1, "--unit: is missing");
    fails("guard scan /nowhere.cuh", 2, "/nowhere.cuh");
    fails("guard scan", 1, "'kernel guard scan' needs FILE");
    fails("guard scan f --unit gemm", 2, "f");
    mgl_json json = guard_scan("--unit merge", 11);
    const cJSON *first = cJSON_GetArrayItem(json_at(&json, "findings"), 0);
    ck_assert_str_eq(mgl_json_member(first, "code")->valuestring, "REGION_VIOLATION");
    mgl_json_clear(&json);
}
END_TEST

START_TEST(the_guard_tests_itself)
{
    command_result result = command_run("kernel guard selftest --json", NULL);
    ck_assert_int_eq(result.code, 0);
    mgl_json json = command_json(&result, "megalith.kernel/1");
    ck_assert(cJSON_IsTrue(json_at(&json, "holds")));
    ck_assert_double_ge(json_number(&json, "tricks"), 100);
    ck_assert_double_ge(json_number(&json, "ptx_tricks"), 50);
    ck_assert_double_ge(json_number(&json, "ptx_modules"), 8);
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_run("kernel guard selftest", NULL);
    ck_assert_ptr_nonnull(strstr(result.out, "the guard passes\n"));
    command_clear(&result);
}
END_TEST

int main(void)
{
    const int file = mkstemp(path);
    if (file < 0)
        return 1;
    close(file);
    Suite *suite = suite_create("micro");
    TCase *all = tcase_create("all");
    tcase_add_test(all, units_are_listed);
    tcase_add_test(all, lines_and_json_print_the_same_hint);
    tcase_add_test(all, a_unit_is_shown);
    tcase_add_test(all, a_region_is_shown_alone);
    tcase_add_test(all, its_own_text_is_a_duplicate);
    tcase_add_test(all, what_is_forbidden_is_rejected);
    tcase_add_test(all, a_byte_elsewhere_is_rejected);
    tcase_add_test(all, what_passes_is_unmeasured);
    tcase_add_test(all, promotion_needs_a_device);
    tcase_add_test(all, a_checkpoint_needs_its_gate);
    tcase_add_test(all, a_tunable_that_is_not_there_is_a_bad_configuration);
    tcase_add_test(all, what_ships_is_clean);
    tcase_add_test(all, findings_have_code_line_and_hint);
    tcase_add_test(all, findings_are_lines_too);
    tcase_add_test(all, answers_are_scanned_too);
    tcase_add_test(all, a_text_of_nobody_needs_its_unit);
    tcase_add_test(all, the_guard_tests_itself);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(path);
    return failed > 0;
}
