/*
 * Tests of megalith kernel transform, prompt, next, submit, log, diff, checkout, branch and export.
 */
#include "command.h"

#include "autotune/kernels/gates/unit.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char folder[600];

/* One folder for each test. */
static void setup(void)
{
    static int number;
    snprintf(folder, sizeof folder, "%s/kernels-%d", scratch_folder(), number++);
}

/* Flags of subcommands that judge texts, without the compiler. */
static const char *scan_only(const char *line)
{
    static const char *const words[] = {"prompt ", "submit ", "transform ", "rounds "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(line, words[i], strlen(words[i])))
            return " --scan-only";
    return "";
}

static mgl_json run_json(const char *line, int code)
{
    command_result result =
        command_runf("kernel %s --folder %s%s --json", line, folder, scan_only(line));
    ck_assert_msg(result.code == code, "%s: exit %d: %s%s", line, result.code, result.out,
                  result.err);
    mgl_json json = command_json(&result, "megalith.kernel/1");
    command_clear(&result);
    return json;
}

static void run(const char *line, int code, const char *wanted)
{
    command_result result = command_runf("kernel %s --folder %s%s", line, folder, scan_only(line));
    ck_assert_msg(result.code == code, "%s: exit %d: %s%s", line, result.code, result.out,
                  result.err);
    ck_assert_msg(!wanted || strstr(result.out, wanted) || strstr(result.err, wanted), "%s: %s%s",
                  line, result.out, result.err);
    command_clear(&result);
}

#define MORE "static __device__ __forceinline__ float more_%d(float x)\n{\n    return x + x;\n}\n"

/* A code fence with the device region of merge and one more function. */
static void put_answer(mgl_text *out, int number)
{
    size_t length;
    mgl_kernel_regions regions;
    const char *text = mgl_kernel_unit_text(mgl_kernel_unit_find("merge"), &length);
    ck_assert_int_eq(mgl_kernel_regions_find(text, length, &regions, NULL), MGL_OK);
    mgl_text_put(out, "So:\n```cuda\n");
    mgl_text_append(out, text + regions.of[MGL_KERNEL_REGION_DEVICE].first,
                    regions.of[MGL_KERNEL_REGION_DEVICE].end -
                        regions.of[MGL_KERNEL_REGION_DEVICE].first);
    mgl_text_format(out, MORE "```\n", number);
}

static const char *answer_file(int number)
{
    mgl_text answer = {0};
    put_answer(&answer, number);
    const char *path = scratch_file("answer.md", answer.bytes);
    mgl_text_clear(&answer);
    return path;
}

static mgl_json submit_json(const char *path, int code)
{
    char line[600];
    snprintf(line, sizeof line, "submit %s --unit merge", path);
    return run_json(line, code);
}

static void submit(const char *path, int code, const char *outcome)
{
    mgl_json json = submit_json(path, code);
    ck_assert_str_eq(json_string(&json, "outcome"), outcome);
    mgl_json_clear(&json);
}

/* The output of `export`, in a code fence. */
static const char *exported(const char *line)
{
    mgl_text answer = {0};
    command_result result = command_runf("kernel %s --folder %s", line, folder);
    ck_assert_msg(result.code == 0, "%s: %s", line, result.err);
    mgl_text_format(&answer, "```cuda\n%s```\n", result.out);
    const char *path = scratch_file("exported.md", answer.bytes);
    mgl_text_clear(&answer);
    command_clear(&result);
    return path;
}

START_TEST(transformations_are_listed_and_shown)
{
    mgl_json json = run_json("transform list", 0);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "transformations")), 20);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "plans")), 3);
    mgl_json_clear(&json);
    json = run_json("transform show --name block_tiling", 0);
    const cJSON *shown = json_at(&json, "transformation");
    ck_assert_str_eq(mgl_json_member(shown, "name")->valuestring, "block_tiling");
    ck_assert_int_eq(cJSON_GetArraySize(mgl_json_member(shown, "passes")), 6);
    mgl_json_clear(&json);
    run("transform show --name block_tiling", 0, "pass 6, store: device macros");
    run("transform show --plan sm_80", 0, "refactor vector_loads");
    run("transform show --name nothing", 1, "there is none of that name");
    run("transform show", 1, "--name or --script is needed");
    run("transform other", 1, "unknown action; supported: list, show, check and apply");
}
END_TEST

START_TEST(transformations_are_checked)
{
    char line[600];
    snprintf(line, sizeof line, "transform check --file %s",
             MGL_SOURCE_DIR "/autotune/kernels/methods/transformations/offset.json");
    run(line, 0, "offset: 1 passes, 2 calls");
    snprintf(line, sizeof line, "transform check --file %s", scratch_file("bad.json", "{}"));
    run(line, 2, "schema");
}
END_TEST

START_TEST(a_task_is_asked_and_answered)
{
    run("next merge", 0, "\"open\":false");
    run("submit /dev/null --unit merge", 1, "no task is open");
    run("prompt merge --task 'Add a function.'", 0, "Add a function.");
    mgl_json json = run_json("next merge", 0);
    ck_assert(cJSON_IsTrue(json_at(&json, "open")));
    ck_assert_ptr_nonnull(strstr(json_string(&json, "prompt"), "/* region: device */"));
    mgl_json_clear(&json);
    run("prompt merge --task 'Another.'", 1, "a task is open");
    submit(scratch_file("words.md", "no fence"), 11, "EXTRACT_NONE");
    run("prompt merge", 0, "Attempt 1 of 15 failed");
    submit(answer_file(1), 13, "UNMEASURED");
    run("next merge", 0, "\"open\":false");
    run("log merge", 0, "Add a function.");
    run("diff merge", 0, "+static __device__ __forceinline__ float more_1(float x)");
    run("export merge", 0, "more_1");
}
END_TEST

START_TEST(what_is_known_is_a_duplicate)
{
    mgl_json json;
    run("prompt merge --task 'One.'", 0, NULL);
    submit(answer_file(1), 13, "UNMEASURED");
    run("prompt merge --task 'Nothing.'", 0, NULL);
    json = submit_json(exported("export merge"), 11);
    ck_assert_str_eq(json_string(&json, "outcome"), "DUPLICATE");
    ck_assert_ptr_nonnull(strstr(json_string(&json, "diagnostic"), "from which it was made"));
    ck_assert(cJSON_IsNull(json_at(&json, "checkpoint")));
    mgl_json_clear(&json);
    json = submit_json(exported("export merge --at own"), 11);
    ck_assert_ptr_nonnull(strstr(json_string(&json, "diagnostic"), "the unit's original text"));
    mgl_json_clear(&json);
    submit(answer_file(2), 13, "UNMEASURED");
    run("branch merge --name anew --at original", 0, "* anew");
    run("prompt merge --task 'One again.'", 0, NULL);
    json = submit_json(answer_file(1), 11);
    ck_assert_ptr_nonnull(strstr(json_string(&json, "diagnostic"), "which was UNMEASURED"));
    mgl_json_clear(&json);
}
END_TEST

START_TEST(own_is_the_text_of_the_unit)
{
    run("branch merge", 0, "* main");
    run("diff merge", 0, NULL);
    run("export merge --at original", 0, "/* region: device */");
    run("branch merge --name wide", 0, "* wide");
    run("branch merge", 0, "  main");
    run("checkout merge --branch main", 0, "main original");
    run("prompt merge --task 'One.'", 0, NULL);
    submit(answer_file(1), 13, "UNMEASURED");
    run("diff merge --from main --to own", 0, "-static __device__ __forceinline__ float more_1");
    run("log merge --at wide", 2, "no version yet");
    run("log merge --at own", 2, "and no version");
    run("checkout merge --at own", 0, "main original");
    run("branch merge --name original", 1, "it names the unit's original text");
    mgl_json json = run_json("export merge", 0);
    ck_assert_str_eq(json_string(&json, "id"), "original");
    ck_assert(cJSON_IsNull(json_at(&json, "outcome")));
    mgl_json_clear(&json);
    run("prompt merge --task 'Two.'", 0, NULL);
    submit(answer_file(2), 13, "UNMEASURED");
    json = run_json("log merge", 0);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "checkpoints")), 1);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(a_work_has_words_and_what_it_requires)
{
    run("prompt merge --task ''", 1, "the task is empty");
    run("prompt merge --task '  '", 1, "the task is empty");
    run("prompt merge --task 'One.'", 0, NULL);
    run("prompt head --transform vector_loads", 1, "`parts`, which `refactor` gives");
    run("prompt head --transform nothing", 1, "is no transformation");
    run("next head", 0, "\"open\":false");
    run("prompt merge --transform shuffle_reduction --drop", 1, "which `refactor` gives");
    run("next merge", 0, "\"open\":true"); /* the current work is kept */
    run("prompt merge --drop", 0, "merge: no task is open");
    run("next merge", 0, "\"open\":false");
}
END_TEST

/* A 0 byte could not be read back from the stored text. */
START_TEST(an_answer_with_a_byte_0_costs_nothing)
{
    static const char answer[] = "```cuda\nint a;\0\n```\n";
    char path[640], line[700];
    snprintf(path, sizeof path, "%.600s.zero", folder);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(answer, 1, sizeof answer - 1, file), sizeof answer - 1);
    fclose(file);
    snprintf(line, sizeof line, "submit %s --unit merge", path);
    run("prompt merge --task 'One.'", 0, NULL);
    run(line, 2, "it holds a byte 0, as no text does: no attempt is counted");
    run("next merge", 0, "\"open\":true");
    run("prompt merge --drop", 0, NULL);
    remove(path);
}
END_TEST

START_TEST(an_empty_answer_costs_nothing)
{
    run("prompt merge --task 'One.'", 0, NULL);
    run("submit /dev/null --unit merge", 2, "it is empty: no attempt is counted");
    char line[700];
    snprintf(line, sizeof line, "kernel submit - --unit merge --folder %s --scan-only", folder);
    command_result result = command_run(line, "\n\n");
    ck_assert_int_eq(result.code, 2);
    command_clear(&result);
    mgl_json json = run_json("next merge", 0);
    ck_assert_int_eq(json_at(&json, "calls")->valueint, 0);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(a_verdict_says_what_the_gates_found)
{
    run("prompt merge --task 'One.'", 0, NULL);
    mgl_json json = submit_json(scratch_file("words.md", "no fence"), 11);
    ck_assert_ptr_null(mgl_json_member(json.root, "hash"));
    mgl_json_clear(&json);
    json =
        submit_json(scratch_file("clock.md", "```cuda\nvoid f()\n{\n    clock64();\n}\n```\n"), 11);
    ck_assert_str_eq(json_string(&json, "outcome"), "STATIC_FORBIDDEN");
    ck_assert_int_gt(json_at(&json, "line")->valueint, 4); /* for the whole text */
    ck_assert_uint_eq(strlen(json_string(&json, "hash")), 64);
    mgl_json_clear(&json);
    json = submit_json(answer_file(1), 13);
    ck_assert(cJSON_IsFalse(json_at(&json, "compiled")));
    ck_assert_ptr_nonnull(strstr(json_string(&json, "not_compiled"), "before the compiler"));
    mgl_json_clear(&json);
    run("prompt merge --task 'Two.'", 0, NULL);
    char line[600];
    snprintf(line, sizeof line, "submit %s --unit merge", answer_file(2));
    run(line, 13, "not compiled: the gates ended before the compiler");
}
END_TEST

/* For each subcommand: its own flags, and those for verdict codes. */
START_TEST(words_have_flags_of_their_own)
{
    static const char *const looking[] = {"log", "branch", "checkout", "diff", "export", "next"};
    static const char *const judging[] = {"verify", "submit", "bench", "promote", "rounds"};
    for (size_t i = 0; i < sizeof looking / sizeof *looking; i++) {
        command_result result = command_runf("kernel %s --help", looking[i]);
        ck_assert_ptr_null(strstr(result.out, "--device"));
        ck_assert_ptr_null(strstr(result.out, "--scan-only"));
        ck_assert_ptr_null(strstr(result.out, "--no-sandbox"));
        ck_assert_ptr_null(strstr(result.out, "of a verdict"));
        command_clear(&result);
    }
    for (size_t i = 0; i < sizeof judging / sizeof *judging; i++) {
        command_result result = command_runf("kernel %s --help", judging[i]);
        ck_assert_msg(strstr(result.out, "of a verdict: 0 kept, 10 not kept, 11 rejected") != NULL,
                      "%s", result.out);
        command_clear(&result);
    }
    command_result result = command_runf("kernel submit --help");
    ck_assert_ptr_nonnull(strstr(result.out, "F may be -, which is standard input."));
    ck_assert_ptr_nonnull(strstr(result.out, "15 answers"));
    command_clear(&result);
}
END_TEST

START_TEST(branches_part)
{
    run("log merge", 2, "no version yet");
    run("prompt merge --task 'One.'", 0, NULL);
    submit(answer_file(1), 13, "UNMEASURED");
    run("branch merge --name wide", 0, "* wide");
    run("prompt merge --task 'Two.'", 0, NULL);
    submit(answer_file(2), 13, "UNMEASURED");
    run("log merge --at main", 0, "One.");
    run("diff merge --from main --to wide", 0, "more_2");
    run("checkout merge --branch main", 0, "main ");
    run("export merge", 0, "more_1");
    run("checkout merge --at wide", 0, "main ");
    run("export merge", 0, "more_2");
    run("checkout merge --branch nothing", 2, "there are: main, wide.");
    run("branch merge", 0, "* main");
    run("checkout merge --at 0123456789", 2, "there is no branch and no version");
    run("checkout merge", 1, "--branch and --at are missing");
}
END_TEST

START_TEST(a_script_applies_a_transformation)
{
    mgl_json_out script = {0};
    mgl_text answer = {0};
    char line[700];
    put_answer(&answer, 1);
    mgl_text_put(&script.text, "[");
    mgl_json_out_string(&script, NULL, answer.bytes);
    mgl_json_out_string(&script, NULL, answer.bytes);
    mgl_text_put(&script.text, "]");
    const char *path = scratch_file("script.json", script.text.bytes);
    snprintf(line, sizeof line,
             "transform apply --name shuffle_reduction --unit merge --proposer scripted:%s", path);
    run(line, 11, "left out"); /* its requirement is not provided */
    snprintf(line, sizeof line, "prompt merge --task 'One.' --proposer scripted:%s", path);
    run(line, 13, "version");
    run("transform apply --name refactor --unit merge", 1,
        "is missing or external; give scripted:FILE or chat");
    run("prompt merge --task x --proposer other", 1, "supported: scripted:FILE");
    run("prompt merge --task x --proposer chat", 1, "--chat-url and --chat-model");
    run("prompt nothing --task x", 1, "is no micro-kernel");
    mgl_text_clear(&script.text);
    mgl_text_clear(&answer);
}
END_TEST

START_TEST(the_body_is_one_of_a_request)
{
    run("prompt merge --task 'One.' --region macros", 0, "You edit the region `macros`");
    command_result result =
        command_runf("kernel prompt merge --body --folder %s --scan-only", folder);
    mgl_json json;
    ck_assert_int_eq(mgl_json_parse(result.out, strlen(result.out), 1 << 20, "body", &json, NULL),
                     MGL_OK);
    ck_assert_int_eq(cJSON_GetArraySize(mgl_json_member(json.root, "messages")), 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A log that is named must exist; the log of a folder begins empty. */
START_TEST(a_missing_experiment_log)
{
    const char *path = scratch_file(
        "shares.json", "{\"schema\":\"megalith.shares/1\",\"ops\":[{\"op\":\"merge\",\"us\":10,"
                       "\"floor_us\":2}]}");
    const char *const lines[] = {"report", "report --csv", "choose", "choose --json"};
    for (int i = 0; i < 4; i++) {
        command_result result = command_runf("kernel %s %s --log %s/none.json", lines[i],
                                             i < 2 ? "" : path, scratch_folder());
        ck_assert_int_eq(result.code, 2);
        ck_assert_msg(strstr(result.err, "/none.json: does not exist; give an") != NULL, "%s",
                      result.err);
        ck_assert_int_eq(command_code("kernel %s %s --folder %s/none", lines[i], i < 2 ? "" : path,
                                      scratch_folder()),
                         0);
        command_clear(&result);
    }
}
END_TEST

START_TEST(an_experiment_log_says_what_comes_next)
{
    char line[1400];
    const char *path = scratch_file(
        "shares.json", "{\"schema\":\"megalith.shares/1\",\"ops\":[{\"op\":\"merge\",\"us\":10,"
                       "\"floor_us\":2},{\"op\":\"head\",\"us\":30,\"floor_us\":26}]}");
    snprintf(line, sizeof line, "kernel plan %s --folder %s", path, folder); /* its old name */
    command_result result = command_run(line, NULL);
    ck_assert_msg(strstr(result.out, "next merge") != NULL, "%s%s", result.out, result.err);
    command_clear(&result);
    snprintf(line, sizeof line, "kernel choose %s --folder %s", path, folder);
    result = command_run(line, NULL);
    ck_assert_msg(strstr(result.out, "next merge") != NULL, "%s%s", result.out, result.err);
    command_clear(&result);
    for (int i = 0; i < 5; i++) {
        result = command_runf(
            "kernel record merge --idea split_k --outcome NO_GAIN --gain 0.2 --folder %s", folder);
        ck_assert_int_eq(result.code, 0);
        command_clear(&result);
    }
    result = command_run(line, NULL);
    ck_assert_msg(strstr(result.out, "next head") != NULL, "%s", result.out);
    command_clear(&result);
    result = command_runf("kernel report --folder %s", folder);
    ck_assert_msg(strstr(result.out, "| merge | 5 | 5 | 0 | +0.20 %") != NULL, "%s", result.out);
    command_clear(&result);
    result = command_runf("kernel record merge --idea x --outcome NOTHING --folder %s", folder);
    ck_assert_int_eq(result.code, 1);
    command_clear(&result);
}
END_TEST

/* A folder of an earlier version: its log is read, and `kernel record` renames the file. */
START_TEST(an_old_experiment_log_is_kept)
{
    static const char old[] =
        "{\"schema\":\"megalith.ledger/1\",\"rows\":[{\"op\":\"merge\",\"idea\":"
        "\"split_k\",\"outcome\":\"NO_GAIN\",\"kept\":false}]}";
    char name[200];
    snprintf(name, sizeof name, "%.100s/ledger.json", strrchr(folder, '/') + 1);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    scratch_file(name, old);
    command_result result = command_runf("kernel report --folder %s", folder);
    ck_assert_msg(strstr(result.out, "| merge | 1 | 1 | 0 |") != NULL, "%s", result.out);
    command_clear(&result);
    result = command_runf("kernel record merge --idea x --outcome NO_GAIN --folder %s", folder);
    ck_assert_str_eq(result.out, "row 2\n");
    command_clear(&result);
    result = command_runf("kernel report --log %s/experiment_log.json", folder);
    ck_assert_msg(strstr(result.out, "| merge | 2 | 2 | 0 |") != NULL, "%s", result.out);
    command_clear(&result);
    scratch_file(name, old); /* written later by an earlier version */
    result = command_runf("kernel report --folder %s", folder);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(
        strstr(result.err, "\"ledger.json\" is the old name of \"experiment_log.json\""));
    command_clear(&result);
}
END_TEST

/* Runs a subcommand without --json and gates. */
static void run_plain(const char *line)
{
    command_result result = command_runf("kernel %s --folder %s", line, folder);
    ck_assert_msg(result.code == 0, "%s: exit %d: %s%s", line, result.code, result.out, result.err);
    command_clear(&result);
}

static void learn_of_ptx(void)
{
    static const char source[] = MGL_SOURCE_DIR "/tests/autotune/kernels/ptx/ring.ptx";
    char line[1400], *text = NULL;
    size_t length;
    ck_assert_int_eq(mgl_file_read(source, 1 << 20, &text, &length, NULL), MGL_OK);
    char *at = strstr(text, "st.global.v4.f32");
    ck_assert_ptr_nonnull(at);
    memcpy(at, "st.global.v4.b32", 16);
    at = strstr(text, "wait_group 2");
    ck_assert_ptr_nonnull(at);
    at[11] = '3';
    snprintf(line, sizeof line, "ptx learn %s --base %s --op merge --device H200 --ratio 1.08",
             scratch_file("deeper.ptx", text), source);
    run_plain(line);
    mgl_free(text);
}

START_TEST(a_prompt_has_what_other_words_keep)
{
    learn_of_ptx();
    run_plain("record merge --idea deeper_ring --outcome NO_GAIN --gain 0.2");
    run("prompt merge --task 'One.'", 0, "async.stages: from [4] to [5]");
    run("prompt merge", 0, "deeper_ring: tried 1, kept 0, mean gain +0.20 %");
    run("next merge", 0, "bulk copies (cp.async.bulk, async.bulk)");
}
END_TEST

START_TEST(a_task_has_the_hint_of_a_profile)
{
    char line[1400];
    snprintf(line, sizeof line, "prompt merge --task 'One.' --ncu %s --kernel norm_linear",
             MGL_SOURCE_DIR "/tests/autotune/kernels/methods/ncu/long.csv");
    run(line, 0, "What is in its way: ");
    run("next merge", 0, "What is in its way: ");
    run("prompt merge --drop", 0, NULL);
    const char *trace = scratch_file(
        "trace.json", "{\"schema\":\"megalith.trace/1\",\"steps\":[{\"step\":\"merge\","
                      "\"tasks\":4,\"wait\":{\"mean\":3},\"input\":{\"mean\":1},"
                      "\"products\":{\"mean\":1},\"output\":{\"mean\":1},"
                      "\"starved\":{\"mean\":0}}]}");
    snprintf(line, sizeof line, "prompt merge --task 'One.' --trace %s", trace);
    run(line, 0, "late edge (time that the controller waits for an edge, %: 50)");
    snprintf(line, sizeof line, "prompt merge --drop --trace %s", trace);
    run(line, 1, "--trace: needs --task");
}
END_TEST

START_TEST(rounds_are_told)
{
    mgl_json_out script = {0};
    char line[1400];
    mgl_text_put(&script.text, "[");
    for (int i = 0; i < 5; i++) {
        mgl_text answer = {0};
        put_answer(&answer, i);
        mgl_json_out_string(&script, NULL, answer.bytes);
        mgl_text_clear(&answer);
    }
    mgl_text_put(&script.text, "]");
    snprintf(line, sizeof line, "rounds merge --ncu %s --kernel norm_linear --proposer scripted:%s",
             MGL_SOURCE_DIR "/tests/autotune/kernels/methods/ncu/long.csv",
             scratch_file("rounds.json", script.text.bytes));
    run(line, 13, "five rounds without an acceptance");
    mgl_json json = run_json(line, 13);
    const cJSON *rounds = json_at(&json, "rounds");
    ck_assert_int_eq(cJSON_GetArraySize(rounds), 5);
    ck_assert(cJSON_IsNull(cJSON_GetObjectItem(rounds->child, "finish")));
    ck_assert_str_eq(cJSON_GetObjectItem(rounds->child->prev, "finish")->valuestring,
                     "five rounds without an acceptance");
    ck_assert_str_eq(json_string(&json, "unit"), "merge");
    ck_assert_double_eq(json_number(&json, "accepted"), 0);
    ck_assert(cJSON_IsNull(json_at(&json, "stopped")));
    mgl_json_clear(&json);
    run("rounds merge", 1, "is missing or external; give scripted:FILE or chat");
    mgl_text_clear(&script.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel loop");
    TCase *tests = tcase_create("kernel loop");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, transformations_are_listed_and_shown);
    tcase_add_test(tests, transformations_are_checked);
    tcase_add_test(tests, a_task_is_asked_and_answered);
    tcase_add_test(tests, what_is_known_is_a_duplicate);
    tcase_add_test(tests, own_is_the_text_of_the_unit);
    tcase_add_test(tests, a_work_has_words_and_what_it_requires);
    tcase_add_test(tests, an_empty_answer_costs_nothing);
    tcase_add_test(tests, an_answer_with_a_byte_0_costs_nothing);
    tcase_add_test(tests, a_verdict_says_what_the_gates_found);
    tcase_add_test(tests, words_have_flags_of_their_own);
    tcase_add_test(tests, branches_part);
    tcase_add_test(tests, a_script_applies_a_transformation);
    tcase_add_test(tests, the_body_is_one_of_a_request);
    tcase_add_test(tests, an_experiment_log_says_what_comes_next);
    tcase_add_test(tests, a_missing_experiment_log);
    tcase_add_test(tests, an_old_experiment_log_is_kept);
    tcase_add_test(tests, a_prompt_has_what_other_words_keep);
    tcase_add_test(tests, a_task_has_the_hint_of_a_profile);
    tcase_add_test(tests, rounds_are_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
