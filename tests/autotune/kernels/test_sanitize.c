/*
 * Tests of the sanitizer gate: reading the tool's logs, and the verdict if the tool finds nothing,
 * finds an error only in the candidate, finds one in the incumbent too, does not work, or hangs. A
 * shell script replaces the tool, and the CPU machine the device. The script runs a real worker.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/kernels/trial/harness.h"
#include "autotune/kernels/trial/sanitize.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/time_limit.h"

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

static mgl_error err;
static char folder[] = "/tmp/megalith-test-XXXXXX";
static mgl_harness_set set;
static mgl_runner *runner;
static mgl_sanitizer_ends ends;
static mgl_trial_verdict verdict;

#define FINDING                                                                                    \
    "========= Invalid __global__ read of size 4 bytes\n"                                          \
    "=========     at consume_merge(machine)+0x1a0 in merge.cuh\n"                                 \
    "=========     by thread (3,0,0) in block (7,0,0)\n"                                           \
    "=========     Access to 0x7f0000000000 is out of bounds\n"
#define SUMMARY(n) "========= ERROR SUMMARY: " #n " errors\n"

/* ---- logs ------------------------------------------------------------------------------------ */

static void read_log(const char *log, mgl_outcome wanted, const char *line)
{
    mgl_trial_verdict found;
    mgl_sanitizer_read(log, &found);
    ck_assert_int_eq(found.outcome, wanted);
    ck_assert_msg(!line || strstr(found.diagnostic, line), "%s", found.diagnostic);
    ck_assert_ptr_null(strchr(found.diagnostic, '\n'));
}

START_TEST(logs_are_read)
{
    read_log("========= COMPUTE-SANITIZER\n" SUMMARY(0), MGL_OUTCOME_OK, NULL);
    read_log("========= COMPUTE-SANITIZER\n" FINDING SUMMARY(1), MGL_OUTCOME_SANITIZER_MEMORY,
             "Invalid __global__ read of size 4 bytes, at consume_merge(machine)+0x1a0 in "
             "merge.cuh, by thread (3,0,0) in block (7,0,0)");
    read_log("========= Misaligned Shared or Local Address\n", MGL_OUTCOME_SANITIZER_MEMORY, NULL);
    read_log("========= Barrier error detected. Divergent thread(s) in warp\n" SUMMARY(1),
             MGL_OUTCOME_SANITIZER_SYNC, "Barrier error");
    read_log("========= Uninitialized __global__ memory read of size 4 bytes\n",
             MGL_OUTCOME_SANITIZER_INIT, NULL);
    read_log("", MGL_OUTCOME_UNMEASURED, "no summary");
    read_log("========= COMPUTE-SANITIZER\n", MGL_OUTCOME_UNMEASURED, "no summary");
    read_log("========= Error: No attachable process found.\n", MGL_OUTCOME_UNMEASURED,
             "Error: No attachable");
    read_log("Invalid __global__ read\n" SUMMARY(0), MGL_OUTCOME_OK, NULL);
}
END_TEST

START_TEST(a_long_line_is_cut)
{
    mgl_trial_verdict found;
    char log[2000] = "========= Invalid ";
    memcpy(log + strlen(log), "__global__", 10);
    memset(log + strlen(log), 'x', 1500);
    mgl_sanitizer_read(log, &found);
    ck_assert_int_eq(found.outcome, MGL_OUTCOME_SANITIZER_MEMORY);
    ck_assert_uint_le(strlen(found.diagnostic), MGL_MAX_DIAGNOSTIC);
}
END_TEST

/* ---- a simulated tool ------------------------------------------------------------------------ */

/* Writes the script that replaces the tool. Each test has its own path, because results about a
 * tool are cached by its path. `log`: output of run number $n, from 1; `before`: commands before
 * the program. */
static void play(const char *name, const char *before, const char *log)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    fprintf(file,
            "#!/bin/sh\n"
            "while [ $# -gt 0 ]; do\n"
            "    case $1 in\n"
            "    --log-file) log=$2; shift 2 ;;\n"
            "    --tool) tool=$2; shift 2 ;;\n"
            "    --*) shift 2 ;;\n"
            "    *) break ;;\n"
            "    esac\n"
            "done\n"
            "echo x >>%s.runs\n"
            "n=$(wc -l <%s.runs)\n"
            "%s\n"
            "\"$@\"\n"
            "{\n%s\n} >\"$log\"\n",
            path, path, before, log);
    fclose(file);
    chmod(path, 0755);
    setenv("MEGALITH_SANITIZER", path, 1);
}

/* The verdict on the launches does not come from the tool. */
#define CLEAN "echo '" SUMMARY(0) "'\n"
#define FOUND "echo '" FINDING SUMMARY(1) "'\n"

static int count_runs(const char *name)
{
    char path[220];
    int count = 0;
    snprintf(path, sizeof path, "%s/%s.runs", folder, name);
    FILE *file = fopen(path, "r");
    for (int c; file && (c = fgetc(file)) != EOF;)
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

static void open_runner(double limit_s)
{
    mgl_target target;
    if (runner)
        runner->close(runner);
    mgl_harness_clear(&set);
    ok(mgl_target_parse("cpu:2", &target, &err));
    ok(mgl_harness_open(mgl_harness_get(0), &target, &set, &err));
    const mgl_runner_options options = {
        .subject = &set.subject, .device = "cpu", .program = "/proc/self/exe", .limit_s = limit_s};
    ok(mgl_runner_device_open(&options, &runner, &err));
}

static void sanitize(void)
{
    verdict = (mgl_trial_verdict){.outcome = MGL_OUTCOME_OK};
    ok(mgl_sanitize(runner, &set.program, &set.program, 1, false, &ends, &verdict, &err));
}

START_TEST(a_clean_one_passes)
{
    char line[400];
    play("clean", "", CLEAN);
    open_runner(0);
    sanitize();
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_msg(ends.of[0].ran, "%s", ends.of[0].skipped);
    ck_assert(ends.of[0].ran && !ends.of[0].found && !ends.of[0].no_sandbox);
    mgl_sanitizer_tell(&ends, line, sizeof line);
    ck_assert_str_eq(line, "memcheck ok, synccheck ok");
    ck_assert_int_eq(count_runs("clean"), 2);
}
END_TEST

/* The second run is the incumbent's. */
START_TEST(what_it_finds_in_the_candidate_alone_is_a_verdict)
{
    char line[400];
    play("found", "", "if [ $n -eq 1 ]; then " FOUND " else " CLEAN " fi");
    open_runner(0);
    sanitize();
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_SANITIZER_MEMORY);
    ck_assert_ptr_nonnull(
        strstr(verdict.diagnostic, "memcheck: Invalid __global__ read of size 4 bytes"));
    ck_assert_uint_le(strlen(verdict.diagnostic), MGL_MAX_DIAGNOSTIC);
    mgl_sanitizer_tell(&ends, line, sizeof line);
    ck_assert_str_eq(line, "memcheck found");
    ck_assert_int_eq(count_runs("found"), 2);
}
END_TEST

/* The tool is not run again. */
START_TEST(what_it_finds_in_both_is_the_tools)
{
    play("both", "", "if [ $tool = memcheck ]; then " FOUND " else " CLEAN " fi");
    open_runner(0);
    for (int i = 0; i < 2; i++) {
        sanitize();
        ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
        ck_assert(!ends.of[0].ran);
        ck_assert_ptr_nonnull(strstr(ends.of[0].skipped, "the incumbent is not clean: Invalid"));
        ck_assert(ends.of[1].ran);
    }
    ck_assert_int_eq(count_runs("both"), 4); /* of them two of memcheck */
}
END_TEST

START_TEST(a_tool_that_does_not_work_is_skipped)
{
    char line[600];
    play("broken", "echo '========= Error: no device' >\"$log\"; exit 1", "");
    open_runner(time_limit(1));
    sanitize();
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
    ck_assert(!ends.of[0].ran && !ends.of[1].ran);
    mgl_sanitizer_tell(&ends, line, sizeof line);
    ck_assert_ptr_nonnull(strstr(line, "memcheck skipped: "));
    setenv("MEGALITH_SANITIZER", "/nowhere/compute-sanitizer", 1);
    sanitize();
    ck_assert_ptr_nonnull(strstr(ends.of[0].skipped, "names no program"));
    setenv("MEGALITH_SANITIZER", "none", 1);
    sanitize();
    ck_assert_ptr_nonnull(strstr(ends.of[0].skipped, "says none"));
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
}
END_TEST

/* Its processes end with it. */
START_TEST(a_tool_that_hangs_is_ended)
{
    char path[220];
    long pid = 0;
    play("hangs", "echo $$ >$0.pid; sleep 1000 & wait", "");
    open_runner(time_limit(0.1));
    const double start = mgl_clock_s();
    sanitize();
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
    ck_assert(!ends.of[0].ran);
    ck_assert_ptr_nonnull(strstr(ends.of[0].skipped, "within"));
    ck_assert_double_lt(mgl_clock_s() - start, time_limit(60));
    ck_assert_int_eq(count_runs("hangs"), 2); /* once each: it is not tried again */
    snprintf(path, sizeof path, "%s/hangs.pid", folder);
    FILE *file = fopen(path, "r");
    ck_assert(file && fscanf(file, "%ld", &pid) == 1);
    fclose(file);
    snprintf(path, sizeof path, "/proc/%ld", pid);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* The tool may do what a worker's sandbox forbids. */
START_TEST(a_tool_may_do_without_the_sandbox)
{
    char line[400];
    play("free", "", "if [ $n -gt 1 ]; then " CLEAN " fi");
    open_runner(0);
    sanitize();
    ck_assert_int_eq(verdict.outcome, MGL_OUTCOME_OK);
    mgl_sanitizer_tell(&ends, line, sizeof line);
    ck_assert_str_eq(line, "memcheck ok (without the sandbox), synccheck ok");
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    Suite *suite = suite_create("sanitize");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 300);
    tcase_add_test(all, logs_are_read);
    tcase_add_test(all, a_long_line_is_cut);
    tcase_add_test(all, a_clean_one_passes);
    tcase_add_test(all, what_it_finds_in_the_candidate_alone_is_a_verdict);
    tcase_add_test(all, what_it_finds_in_both_is_the_tools);
    tcase_add_test(all, a_tool_that_does_not_work_is_skipped);
    tcase_add_test(all, a_tool_that_hangs_is_ended);
    tcase_add_test(all, a_tool_may_do_without_the_sandbox);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    char line[80];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    if (system(line))
        return EXIT_FAILURE;
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
