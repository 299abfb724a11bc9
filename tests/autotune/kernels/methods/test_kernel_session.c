/*
 * Tests of the kernel session: works that continue in another process, versions, and transcripts.
 */
#include "autotune/kernels/sessions/kernel_session.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = MGL_BINARY_DIR "/session-XXXXXX";
static mgl_library library;
static mgl_kernel_session *bench;

static void open_bench(void)
{
    const mgl_kernel_session_options options = {.folder = folder,
                                                .unit = mgl_kernel_unit_find("merge"),
                                                .library = &library,
                                                .model = "stub",
                                                .no_compile = true};
    mgl_error err = {0};
    mgl_kernel_session_close(bench);
    bench = NULL;
    ck_assert_msg(mgl_kernel_session_open(&options, &bench, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
}

static void setup(void)
{
    scratch_make(folder);
    ck_assert_int_eq(mgl_library_open(NULL, &library, NULL), MGL_OK);
    open_bench();
}

static void teardown(void)
{
    mgl_kernel_session_close(bench);
    bench = NULL;
    mgl_library_clear(&library);
    scratch_remove(folder);
}

/* The body of a region in the text from which a new work starts. */
static void put_region(mgl_kernel_region region, mgl_text *out)
{
    mgl_text text = {0};
    mgl_kernel_regions regions;
    ck_assert_int_eq(mgl_kernel_session_text(bench, &text, NULL, NULL), MGL_OK);
    ck_assert_int_eq(mgl_kernel_regions_find(text.bytes, text.length, &regions, NULL), MGL_OK);
    mgl_text_append(out, text.bytes + regions.of[region].first,
                    regions.of[region].end - regions.of[region].first);
    mgl_text_clear(&text);
}

static mgl_work_end submit(const char *answer)
{
    mgl_work_end end;
    mgl_error err = {0};
    ck_assert_msg(mgl_kernel_session_submit(bench, answer, strlen(answer), false, &end, &err) ==
                      MGL_OK,
                  "%s: %s", err.where, err.message);
    return end;
}

/* The region with one more function. */
static mgl_work_end submit_region(mgl_kernel_region region, const char *added)
{
    mgl_text answer = {0};
    mgl_text_put(&answer, "```cuda\n");
    put_region(region, &answer);
    mgl_text_format(&answer, "%s\n```\n", added);
    mgl_work_end end = submit(answer.bytes);
    mgl_text_clear(&answer);
    return end;
}

#define MORE                                                                                       \
    "static __device__ __forceinline__ float twice_more(float x)\n{\n    return x + x;\n}\n"

START_TEST(a_task_ends_with_a_version)
{
    mgl_version_record r;
    ck_assert_int_eq(
        mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "add a function", NULL),
        MGL_OK);
    mgl_work_end end = submit_region(MGL_KERNEL_REGION_DEVICE, MORE);
    ck_assert_msg(end.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", end.verdict.diagnostic);
    ck_assert(end.ended);
    ck_assert_int_eq(mgl_versions_get(mgl_kernel_session_versions(bench), NULL, &r, NULL), MGL_OK);
    ck_assert_str_eq(r.id, end.version);
    ck_assert_str_eq(r.note, "add a function");
    ck_assert_ptr_nonnull(strstr(r.text, "twice_more"));
    ck_assert(!mgl_kernel_session_state(bench).open);
    mgl_version_clear(&r);
}
END_TEST

START_TEST(a_task_goes_on_in_another_process)
{
    mgl_text before = {0}, after = {0};
    mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "add a function", NULL);
    mgl_work_end end = submit("no fence");
    ck_assert_int_eq(end.verdict.outcome, MGL_OUTCOME_EXTRACT_NONE);
    ck_assert(!end.ended);
    ck_assert_int_eq(mgl_kernel_session_prompt(bench, true, &before, NULL), MGL_OK);
    open_bench();
    ck_assert_int_eq(mgl_kernel_session_state(bench).calls, 1);
    ck_assert_int_eq(mgl_kernel_session_prompt(bench, true, &after, NULL), MGL_OK);
    ck_assert_str_eq(before.bytes, after.bytes);
    end = submit_region(MGL_KERNEL_REGION_DEVICE, MORE);
    ck_assert_int_eq(end.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_int_eq(end.calls, 2);
    mgl_text_clear(&before);
    mgl_text_clear(&after);
}
END_TEST

START_TEST(a_transformation_goes_pass_by_pass)
{
    const mgl_transformation *t = mgl_library_find(&library, "refactor");
    ck_assert_int_eq(mgl_kernel_session_begin_transformation(bench, t, NULL), MGL_OK);
    ck_assert_int_eq(mgl_kernel_session_state(bench).pass, 1);
    mgl_work_end end = submit_region(MGL_KERNEL_REGION_DEVICE, MORE);
    ck_assert(!end.ended);
    open_bench();
    ck_assert_int_eq(mgl_kernel_session_state(bench).pass, 2);
    ck_assert_int_eq(mgl_kernel_session_state(bench).region, MGL_KERNEL_REGION_MACROS);
    end = submit_region(MGL_KERNEL_REGION_MACROS, "enum { MERGE_MORE = 3 };");
    ck_assert(!end.ended);
    open_bench();
    end = submit_region(MGL_KERNEL_REGION_DEVICE, MORE);
    ck_assert_msg(end.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", end.verdict.diagnostic);
    ck_assert(end.ended);
    ck_assert_int_eq(end.calls, 3);
    mgl_text provides = {0}, text = {0};
    ck_assert_int_eq(mgl_kernel_session_text(bench, &text, &provides, NULL), MGL_OK);
    ck_assert_str_eq(provides.bytes, "parts");
    ck_assert_ptr_nonnull(strstr(text.bytes, "MERGE_MORE"));
    mgl_text_clear(&provides);
    mgl_text_clear(&text);
}
END_TEST

/* Replaces `old` in the open work's file. */
static void edit_work(const char *old, const char *new)
{
    mgl_text path = {0}, out = {0};
    char *text, *at;
    size_t length;
    mgl_text_format(&path, "%s/merge/work.json", folder);
    ck_assert_int_eq(mgl_file_read(path.bytes, 1 << 20, &text, &length, NULL), MGL_OK);
    at = strstr(text, old);
    ck_assert_ptr_nonnull(at);
    mgl_text_format(&out, "%.*s%s", (int)(at - text), text, new);
    mgl_text_put(&out, at + strlen(old));
    ck_assert_int_eq(mgl_output_write_file(path.bytes, out.bytes, out.length, NULL), MGL_OK);
    mgl_free(text);
    mgl_text_clear(&out);
    mgl_text_clear(&path);
}

START_TEST(work_of_an_earlier_program_goes_on)
{
    const mgl_transformation *t = mgl_library_find(&library, "refactor");
    const mgl_kernel_session_options options = {
        .folder = folder, .unit = mgl_kernel_unit_find("merge"), .library = &library};
    mgl_error err = {0};
    ck_assert_int_eq(mgl_kernel_session_begin_transformation(bench, t, NULL), MGL_OK);
    ck_assert(!submit_region(MGL_KERNEL_REGION_DEVICE, MORE).ended);
    edit_work("\"pass_engine\":", "\"peak\":");
    open_bench();
    ck_assert_int_eq(mgl_kernel_session_state(bench).pass, 2);
    edit_work("\"peak\":", "\"pass_engine\":{},\"peak\":");
    mgl_kernel_session_close(bench);
    ck_assert_int_eq(mgl_kernel_session_open(&options, &bench, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "\"peak\" is the old name of \"pass_engine\""));
}
END_TEST

START_TEST(a_whole_text_is_taken_without_a_fence)
{
    mgl_text text = {0};
    mgl_work_end end;
    ck_assert_int_eq(mgl_kernel_session_text(bench, &text, NULL, NULL), MGL_OK);
    mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "the same", NULL);
    ck_assert_int_eq(mgl_kernel_session_submit(bench, text.bytes, text.length, true, &end, NULL),
                     MGL_OK);
    ck_assert_int_eq(end.verdict.outcome, MGL_OUTCOME_DUPLICATE);
    text.bytes[3] ^= 1;
    ck_assert_int_eq(mgl_kernel_session_submit(bench, text.bytes, text.length, true, &end, NULL),
                     MGL_OK);
    ck_assert_int_eq(end.verdict.outcome, MGL_OUTCOME_REGION_VIOLATION);
    mgl_text_clear(&text);
}
END_TEST

START_TEST(fifteen_bad_answers_end_a_task_without_a_version)
{
    mgl_work_end end = {0};
    mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "add a function", NULL);
    for (int i = 0; i < 15; i++) {
        ck_assert(!end.ended);
        end = submit("no fence");
    }
    ck_assert(end.ended);
    ck_assert_str_eq(end.version, "");
    ck_assert(!mgl_kernel_session_state(bench).open);
}
END_TEST

START_TEST(one_work_at_a_time)
{
    mgl_text prompt = {0};
    mgl_work_end end;
    ck_assert_int_eq(mgl_kernel_session_prompt(bench, false, &prompt, NULL), MGL_USAGE);
    ck_assert_int_eq(mgl_kernel_session_submit(bench, "", 0, false, &end, NULL), MGL_USAGE);
    mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "x", NULL);
    ck_assert_int_eq(mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "y", NULL),
                     MGL_USAGE);
    ck_assert_int_eq(mgl_kernel_session_drop(bench, NULL), MGL_OK);
    ck_assert_int_eq(mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_MACROS, "y", NULL),
                     MGL_OK);
}
END_TEST

START_TEST(a_transformation_of_another_op_is_rejected)
{
    ck_assert_int_eq(mgl_kernel_session_begin_transformation(
                         bench, mgl_library_find(&library, "tensor_core"), NULL),
                     MGL_USAGE);
}
END_TEST

START_TEST(a_script_runs_it_and_the_transcript_has_it_all)
{
    static const char path[] = MGL_BINARY_DIR "/test_kernel_session_script.json";
    mgl_json_out script = {0};
    mgl_text answer = {0}, transcript = {0};
    mgl_model_client *model_client = NULL;
    mgl_waiter waiter = mgl_waiter_real(NULL);
    mgl_work_end end;
    mgl_json json;
    mgl_text_put(&answer, "```cuda\n");
    put_region(MGL_KERNEL_REGION_DEVICE, &answer);
    mgl_text_put(&answer, MORE "\n```\n");
    mgl_text_put(&script.text, "[");
    mgl_json_out_string(&script, NULL, "```cuda\nint x;\r\n```\n");
    mgl_json_out_string(&script, NULL, answer.bytes);
    mgl_text_put(&script.text, "]");
    ck_assert_int_eq(mgl_output_write_file(path, script.text.bytes, script.text.length, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_model_client_open_replay(path, &model_client, NULL), MGL_OK);
    mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "add a function", NULL);
    ck_assert_int_eq(mgl_kernel_session_run(bench, model_client, &waiter, &end, NULL), MGL_OK);
    ck_assert_int_eq(end.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_int_eq(end.calls, 2);
    mgl_text_format(&transcript, "%s/merge/calls/000001.json", folder);
    ck_assert_int_eq(mgl_json_read_file(transcript.bytes, 1 << 20, &json, NULL), MGL_OK);
    ck_assert_ptr_nonnull(strstr(mgl_json_member(json.root, "request")->valuestring, "add a func"));
    ck_assert_str_eq(mgl_json_member(json.root, "answer")->valuestring, "```cuda\nint x;\r\n```\n");
    ck_assert_ptr_nonnull(mgl_json_member(mgl_json_member(json.root, "fixups"), "line_ends"));
    mgl_json_clear(&json);
    mgl_model_client_close(model_client);
    mgl_text_clear(&script.text);
    mgl_text_clear(&answer);
    mgl_text_clear(&transcript);
}
END_TEST

START_TEST(one_process_at_a_time)
{
    const mgl_kernel_session_options options = {
        .folder = folder, .unit = mgl_kernel_unit_find("merge"), .library = &library};
    mgl_kernel_session *other;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_kernel_session_open(&options, &other, &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "another process"));
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(others_may_read_meanwhile)
{
    const mgl_kernel_session_options options = {.folder = folder,
                                                .unit = mgl_kernel_unit_find("merge"),
                                                .library = &library,
                                                .reads = true};
    mgl_kernel_session *other;
    mgl_text prompt = {0};
    mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "add a function", NULL);
    ck_assert_int_eq(mgl_kernel_session_open(&options, &other, NULL), MGL_OK);
    ck_assert_int_eq(mgl_kernel_session_prompt(other, false, &prompt, NULL), MGL_OK);
    ck_assert_ptr_nonnull(strstr(prompt.bytes, "add a function"));
    mgl_text_clear(&prompt);
    mgl_kernel_session_close(other);
}
END_TEST

/* A folder of an earlier version, in which the unit is named attend.waves. */
START_TEST(a_renamed_unit_keeps_its_folder)
{
    const mgl_kernel_session_options options = {
        .folder = folder, .unit = mgl_kernel_unit_find("attend.kv_rounds"), .library = &library};
    mgl_text path = {0};
    mgl_error err = {0};
    bool stands = true;
    mgl_kernel_session_close(bench);
    mgl_text_format(&path, "%s/attend.waves", folder);
    ck_assert_int_eq(mkdir(path.bytes, 0700), 0);
    ck_assert_int_eq(mgl_kernel_session_open(&options, &bench, &err), MGL_OK);
    ck_assert_int_eq(mgl_kernel_session_begin_task(bench, MGL_KERNEL_REGION_DEVICE, "tune", NULL),
                     MGL_OK);
    path.length = 0;
    mgl_text_format(&path, "%s/attend.kv_rounds", folder);
    ck_assert_int_eq(mgl_file_stands(path.bytes, &stands, NULL), MGL_OK);
    ck_assert(!stands);
    path.length = 0;
    mgl_text_format(&path, "%s/attend.waves/work.json", folder);
    ck_assert_int_eq(mgl_file_stands(path.bytes, &stands, NULL), MGL_OK);
    ck_assert(stands);
    mgl_text_clear(&path);
}
END_TEST

START_TEST(a_damaged_work_is_told)
{
    mgl_text path = {0};
    mgl_error err = {0};
    mgl_text_format(&path, "%s/merge/work.json", folder);
    ck_assert_int_eq(mgl_output_write_file(path.bytes, "{\"schema\":\"x\"}", 14, NULL), MGL_OK);
    mgl_kernel_session_close(bench);
    const mgl_kernel_session_options options = {
        .folder = folder, .unit = mgl_kernel_unit_find("merge"), .library = &library};
    ck_assert_int_eq(mgl_kernel_session_open(&options, &bench, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(bench);
    mgl_text_clear(&path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_session");
    TCase *tests = tcase_create("kernel_session");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_task_ends_with_a_version);
    tcase_add_test(tests, a_task_goes_on_in_another_process);
    tcase_add_test(tests, a_transformation_goes_pass_by_pass);
    tcase_add_test(tests, work_of_an_earlier_program_goes_on);
    tcase_add_test(tests, a_whole_text_is_taken_without_a_fence);
    tcase_add_test(tests, fifteen_bad_answers_end_a_task_without_a_version);
    tcase_add_test(tests, one_work_at_a_time);
    tcase_add_test(tests, a_transformation_of_another_op_is_rejected);
    tcase_add_test(tests, a_script_runs_it_and_the_transcript_has_it_all);
    tcase_add_test(tests, one_process_at_a_time);
    tcase_add_test(tests, others_may_read_meanwhile);
    tcase_add_test(tests, a_renamed_unit_keeps_its_folder);
    tcase_add_test(tests, a_damaged_work_is_told);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
