/*
 * Tests of model clients on the command line: scripted answers through the gates with NVRTC, and an
 * endpoint whose key is not leaked.
 */
#include "command.h"
#include "tests/autotune/agents/stub_server.h"

#include "autotune/kernels/gates/unit.h"
#include "base/file.h"
#include "base/json_out.h"
#include "vm/cuda/cuda.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[600];

static void setup(void)
{
    static int number;
    snprintf(folder, sizeof folder, "%s/model-%d", scratch_folder(), number++);
}

/* A code fence with a part of merge's text, and text after the line of a mark. */
static void put_answer(bool whole, const char *mark, const char *added, mgl_text *out)
{
    size_t length;
    mgl_kernel_regions regions;
    const char *text = mgl_kernel_unit_text(mgl_kernel_unit_find("merge"), &length);
    ck_assert_int_eq(mgl_kernel_regions_find(text, length, &regions, NULL), MGL_OK);
    size_t from = whole ? 0 : regions.of[MGL_KERNEL_REGION_DEVICE].first;
    size_t end = whole ? length : regions.of[MGL_KERNEL_REGION_DEVICE].end;
    size_t at = from;
    if (mark)
        at = (size_t)(strstr(text, mark) + strlen(mark) - text);
    mgl_text_clear(out);
    mgl_text_put(out, "I think:\n```cuda\n");
    mgl_text_append(out, text + from, at - from);
    mgl_text_put(out, added);
    mgl_text_append(out, text + at, end - at);
    mgl_text_put(out, "```\n");
}

#define FUNCTION(body)                                                                             \
    "static __device__ __forceinline__ float merge_twice(float x)\n{\n    return " body ";\n}\n"

static const char *write_script(void)
{
    mgl_json_out script = {0};
    mgl_text answer = {0};
    mgl_text_put(&script.text, "[");
    put_answer(false, NULL, FUNCTION("x +"), &answer);
    mgl_json_out_string(&script, NULL, answer.bytes);
    put_answer(false, NULL, FUNCTION("x + nobody_knows"), &answer);
    mgl_json_out_string(&script, NULL, answer.bytes);
    put_answer(true, "/* region: macros */\n", "enum { MERGE_MORE = 1 };\n", &answer);
    mgl_json_out_string(&script, NULL, answer.bytes);
    put_answer(false, NULL, FUNCTION("x + x"), &answer);
    mgl_json_out_string(&script, NULL, answer.bytes);
    mgl_text_put(&script.text, "]");
    const char *path = scratch_file("script.json", script.text.bytes);
    mgl_text_clear(&script.text);
    mgl_text_clear(&answer);
    return path;
}

static void check_call(int number, const char *outcome)
{
    char path[700];
    mgl_json json;
    snprintf(path, sizeof path, "%s/merge/calls/%06d.json", folder, number);
    ck_assert_int_eq(mgl_json_read_file(path, 1 << 20, &json, NULL), MGL_OK);
    ck_assert_msg(!strcmp(json_string(&json, "outcome"), outcome), "call %d: %s", number,
                  json_string(&json, "diagnostic"));
    mgl_json_clear(&json);
}

START_TEST(the_gates_lead_a_script_to_its_good_text)
{
    command_result result = command_runf(
        "kernel prompt merge --task 'Add a function.' --proposer scripted:%s --folder %s --json",
        write_script(), folder);
    ck_assert_msg(result.code == 13, "exit %d: %s%s", result.code, result.out, result.err);
    mgl_json json = command_json(&result, "megalith.kernel/1");
    ck_assert_str_eq(json_string(&json, "outcome"), "UNMEASURED");
    ck_assert_double_eq_tol(json_number(&json, "calls"), 4, 0.1);
    check_call(1, "COMPILE_SYNTAX");
    check_call(2, "COMPILE_UNDEFINED");
    check_call(3, "REGION_VIOLATION");
    check_call(4, "UNMEASURED");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Checks that the key is neither in the folder nor in the program's output. */
static void check_no_key(const command_result *result)
{
    char line[700];
    ck_assert_ptr_null(strstr(result->out, "sesame"));
    ck_assert_ptr_null(strstr(result->err, "sesame"));
    snprintf(line, sizeof line, "grep -rq sesame '%s'", folder);
    ck_assert_int_ne(system(line), 0);
}

/* The PTX of a text and of the unit's own text, as `kernel ptx` reads them. */
START_TEST(the_ptx_of_a_text_is_written)
{
    size_t length;
    mgl_text text = {0};
    char old[700], new[700];
    snprintf(old, sizeof old, "%s-old.ptx", folder);
    snprintf(new, sizeof new, "%s-new.ptx", folder);
    mgl_text_put(&text, mgl_kernel_unit_text(mgl_kernel_unit_find("merge"), &length));
    char *mean = strstr(text.bytes, "float mean[4];");
    ck_assert_ptr_nonnull(mean);
    mean[11] = '5';
    command_result result =
        command_runf("kernel verify merge --text %s --region device --ptx %s --base-ptx %s",
                     scratch_file("merge.cuh", text.bytes), new, old);
    ck_assert_msg(result.code == 13, "exit %d: %s%s", result.code, result.out, result.err);
    command_clear(&result);
    result = command_runf("kernel ptx diff %s --base %s --all --json", new, old);
    ck_assert_msg(result.code == 0, "exit %d: %s%s", result.code, result.out, result.err);
    command_clear(&result);
    mgl_text_clear(&text);
}
END_TEST

START_TEST(a_text_that_is_not_compiled_has_no_ptx)
{
    char path[700];
    bool stands = true;
    snprintf(path, sizeof path, "%s-none.ptx", folder);
    command_result result = command_runf("kernel verify merge --text %s --ptx %s",
                                         scratch_file("bad.cuh", "void f();\n"), path);
    ck_assert_int_eq(result.code, 11);
    ck_assert_ptr_nonnull(strstr(result.err, "is not written: the text was not compiled"));
    ck_assert_int_eq(mgl_file_stands(path, &stands, NULL), MGL_OK);
    ck_assert(!stands);
    command_clear(&result);
}
END_TEST

START_TEST(the_key_is_sent_and_kept_nowhere)
{
    mgl_text answer = {0};
    put_answer(false, NULL, FUNCTION("x + x"), &answer);
    const stub_answer script[] = {{.status = 200, .body = stub_completion("no fence")},
                                  {.status = 200, .body = stub_completion(answer.bytes)}};
    stub_server *server = stub_start(script, 2);
    setenv("MEGALITH_CHAT_KEY", "sesame", 1);
    command_result result = command_runf(
        "kernel prompt merge --task 'Add a function.' --proposer chat --chat-url %s --chat-model m "
        "--folder %s --scan-only",
        stub_url(server), folder);
    unsetenv("MEGALITH_CHAT_KEY");
    ck_assert_msg(result.code == 13, "exit %d: %s%s", result.code, result.out, result.err);
    ck_assert_int_eq(stub_requests(server), 2);
    ck_assert_ptr_nonnull(strstr(stub_head(server, 1), "Bearer sesame"));
    ck_assert_ptr_null(strstr(stub_body(server, 1), "sesame"));
    check_no_key(&result);
    command_clear(&result);
    stub_stop(server);
    mgl_text_clear(&answer);
}
END_TEST

int main(void)
{
    static mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    const bool compiles = probe.nvrtc;
    Suite *suite = suite_create("kernel model");
    TCase *tests = tcase_create("kernel model");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_set_timeout(tests, 280);
    tcase_add_test(tests, the_key_is_sent_and_kept_nowhere);
    tcase_add_test(tests, a_text_that_is_not_compiled_has_no_ptx);
    if (compiles) {
        tcase_add_test(tests, the_gates_lead_a_script_to_its_good_text);
        tcase_add_test(tests, the_ptx_of_a_text_is_written);
    } else
        fprintf(stderr,
                "SKIPPED in part: there is no NVRTC, so no script is led by the compiler\n");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (!failed && !compiles)
        return getenv("MEGALITH_REQUIRE_NVRTC") ? EXIT_FAILURE : 77;
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
