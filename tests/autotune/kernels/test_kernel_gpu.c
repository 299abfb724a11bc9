/*
 * Tests of the gates of micro-kernels on a GPU. Each unit's own text is correct and gains nothing.
 * Tricks that appear only at run time get their verdicts, one of them from memcheck if memcheck
 * works. A candidate that hangs or traps ends with its worker, and the next candidate works. A
 * slower candidate is a regression. Correctness checks run in parallel in separate processes;
 * paired benchmarks run alone. Prints one line for each.
 *
 *     test_kernel_gpu [cuda] [--at-once N] [--all]    --all: each unit in all harness programs
 *
 * MGL_TEST_PART=K/N runs a part of the checks and benchmarks (tests/parts.h).
 */
#include <check.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/candidates/judge.h"
#include "autotune/kernels/trial/trial.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/autotune/kernels/trick.h"
#include "tests/parts.h"
#include "vm/cuda/cuda.h"

enum { SKIP = 77, MOST_JOBS = 128, AT_ONCE = 14 };

extern char **environ;

static mgl_error err;
static mgl_trial_options options = {
    .device = "cuda", .limit_s = 15, .depth = MGL_TRIAL_CORRECTNESS, .most_harnesses = 1};

/* Tricks of tests/autotune/kernels/tricks that no compiler finds. */
static const char *const tricks[] = {"run_bench_floor",
                                     "run_bias",
                                     "run_constant",
                                     "run_deep",
                                     "run_endless",
                                     "run_knows_shape",
                                     "run_mutates",
                                     "run_nan",
                                     "run_no_go",
                                     "run_no_wait",
                                     "run_null",
                                     "run_other_meaning",
                                     "run_out_of_bounds",
                                     "run_reads_out_of_bounds",
                                     "run_remembers",
                                     "run_rounded",
                                     "run_scaled",
                                     "run_skips_zeros",
                                     "run_writes_half",
                                     "run_writes_nothing",
                                     "run_writes_old",
                                     "run_zeros",
                                     "run_without_bias",
                                     "run_without_norms",
                                     "run_wrong_in_f16",
                                     "run_wrong_beside_panels",
                                     "run_without_penalties"};
enum { TRICKS = sizeof tricks / sizeof *tricks };

/* ---- one text -------------------------------------------------------------------------------- */

/* Returns false if the gates do not work. */
static bool try_text(const char *what, const mgl_kernel_unit *unit, const char *text,
                     mgl_kernel_trial *out)
{
    char sanitizers[600];
    if (mgl_kernel_try(unit, text, &options, out, &err)) {
        printf("%-28s FAILED: %s: %s\n", what, err.where, err.message);
        return false;
    }
    printf("%-28s %s in %.1f s, %d programs, %d cases, error %.1e of the incumbent's %.1e", what,
           mgl_outcome_name(out->verdict.outcome), out->seconds, out->harnesses, out->cases,
           out->correctness.error, out->correctness.incumbent_error);
    if (out->paired_bench.timed)
        printf(", gain %+.2f %% (%+.2f to %+.2f) of %d pairs", 100 * out->paired_bench.gain,
               100 * out->paired_bench.gain_lo, 100 * out->paired_bench.gain_hi,
               out->paired_bench.pairs);
    printf(": %s\n", out->verdict.diagnostic);
    mgl_sanitizer_tell(&out->sanitizers, sanitizers, sizeof sanitizers);
    if (sanitizers[0])
        printf("%-28s in %.1f s: %s\n", "  sanitizers", out->sanitizers.seconds, sanitizers);
    return true;
}

static bool try_original(const char *name, mgl_kernel_trial *out)
{
    size_t length;
    const mgl_kernel_unit *unit = mgl_kernel_unit_find(name);
    return try_text(name, unit, mgl_kernel_unit_text(unit, &length), out);
}

static bool check_unit_correctness(const char *name)
{
    mgl_kernel_trial trial;
    return try_original(name, &trial) && trial.verdict.outcome == MGL_OUTCOME_UNMEASURED;
}

/* A fault that only changes times passes the correctness check. */
static bool is_right(const trick *t, mgl_outcome outcome)
{
    return trick_expects(t, outcome) ||
           (outcome == MGL_OUTCOME_UNMEASURED &&
            (trick_expects(t, MGL_OUTCOME_NO_GAIN) || trick_expects(t, MGL_OUTCOME_REGRESSION)));
}

static bool try_trick(const char *name)
{
    char path[600];
    const char *folder = getenv("MGL_TEST_TRICKS");
    trick t;
    mgl_kernel_trial trial;
    snprintf(path, sizeof path, "%s/%s.trick",
             folder ? folder : MGL_SOURCE_DIR "/tests/autotune/kernels/tricks", name);
    trick_read(path, &t);
    options.most_harnesses = 3;
    bool good = try_text(name, t.unit, t.text.bytes, &trial) && is_right(&t, trial.verdict.outcome);
    const bool ends = trial.verdict.outcome == MGL_OUTCOME_HANG ||
                      trial.verdict.outcome == MGL_OUTCOME_ILLEGAL_ADDRESS;
    if (good && ends) { /* the next candidate works */
        options.most_harnesses = 1;
        good = check_unit_correctness(t.unit->name);
    }
    mgl_text_clear(&t.text);
    return good;
}

static const char *trick_name;

START_TEST(a_trick_gets_its_verdict)
{
    ck_assert_msg(try_trick(trick_name), "%s did not get its verdict", trick_name);
}
END_TEST

/* Runs the trick as a Check test, because trick.c uses Check's assertions. */
static bool run_trick(const char *name)
{
    Suite *suite = suite_create("tricks");
    TCase *tests = tcase_create("verdict");
    SRunner *suite_runner = srunner_create(suite);
    trick_name = name;
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, a_trick_gets_its_verdict);
    srunner_set_fork_status(suite_runner, CK_NOFORK);
    srunner_run_all(suite_runner, CK_SILENT);
    const int wrong = srunner_ntests_failed(suite_runner);
    if (wrong > 0) {
        TestResult **results = srunner_failures(suite_runner);
        printf("%s\n", tr_msg(results[0]));
        free(results);
    }
    srunner_free(suite_runner);
    return wrong == 0;
}

/* ---- paired benchmarks ----------------------------------------------------------------------- */

/* Replaces one piece of the text by another. */
static char *replace(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    mgl_text out = {0};
    if (!at)
        return NULL;
    mgl_text_append(&out, text, (size_t)(at - text));
    mgl_text_put(&out, new);
    mgl_text_put(&out, at + strlen(old));
    return out.bytes;
}

/* Inserts a chain of square roots that does not change the result. NULL: the text lacks the
 * expected line. */
static char *slow_merge(const mgl_kernel_unit *unit)
{
    size_t length;
    return replace(mgl_kernel_unit_text(unit, &length),
                   "        mean[j] = all.value[b][j] * inverse;\n",
                   "    {\n"
                   "        float chain = all.sum + (float)j;\n"
                   "        for (int k = 0; k < 600; k++)\n"
                   "            chain = sqrtf(chain * chain + 1e-3f);\n"
                   "        mean[j] = chain < 0.0f ? 0.0f : all.value[b][j] * inverse;\n"
                   "    }\n");
}

static bool paired_bench_slower(void)
{
    mgl_kernel_trial trial;
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("merge");
    char *text = slow_merge(unit);
    bool good = text && try_text("merge, planted slower", unit, text, &trial) &&
                trial.verdict.outcome == MGL_OUTCOME_REGRESSION;
    mgl_free(text);
    return good;
}

/* Both sides run the same text. A measured difference comes from clocks, chance, or different
 * memory addresses; it may be significant, but must be within the limit of a campaign's
 * controls. */
static bool paired_bench_own(const char *name)
{
    mgl_kernel_trial trial;
    return try_original(name, &trial) && (trial.verdict.outcome == MGL_OUTCOME_NO_GAIN ||
                                          trial.verdict.outcome == MGL_OUTCOME_UNMEASURED ||
                                          (trial.verdict.outcome == MGL_OUTCOME_REGRESSION &&
                                           fabs(trial.paired_bench.gain) <= MGL_CONTROL_GAIN));
}

static bool run_paired_benches(void)
{
    options.depth = MGL_TRIAL_PAIRED_BENCH;
    bool good = !next_is_in_part() || paired_bench_own("merge");
    good &= !next_is_in_part() || paired_bench_own("norm_linear.skinny");
    good &= !next_is_in_part() || paired_bench_slower();
    return good;
}

/* ---- parallel jobs --------------------------------------------------------------------------- */

/* A job runs this program with two more arguments. */
static struct {
    const char *kind, *name;
    pid_t pid;
} jobs[MOST_JOBS];
static int job_count, failed;

/* Adds a job, if it is in the part of MGL_TEST_PART. */
static void add_job(const char *kind, const char *name)
{
    if (!next_is_in_part())
        return;
    jobs[job_count].kind = kind;
    jobs[job_count++].name = name;
}

static void await_job(void)
{
    int how = 0;
    const pid_t pid = wait(&how);
    for (int i = 0; i < job_count; i++)
        if (jobs[i].pid == pid && how != 0) {
            failed++;
            printf("%s %s: WRONG (%s %d)\n", jobs[i].kind, jobs[i].name,
                   WIFSIGNALED(how) ? "signal" : "exit",
                   WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
        }
}

static void run_jobs(int at_once, bool all)
{
    char self[] = "test_kernel_gpu", whole[] = "--all";
    int running = 0;
    for (int i = 0; i < job_count; i++) {
        char *argv[] = {self, (char *)jobs[i].kind, (char *)jobs[i].name, all ? whole : NULL, NULL};
        if (running == at_once) {
            await_job();
            running--;
        }
        if (posix_spawn(&jobs[i].pid, "/proc/self/exe", NULL, NULL, argv, environ)) {
            failed++;
            continue;
        }
        running++;
    }
    for (; running > 0; running--)
        await_job();
}

/* Adds all jobs, those that take longest first. */
static void list_jobs(void)
{
    static const char *const last[] = {"run_endless", "run_null", "run_reads_out_of_bounds"};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        add_job("--trick", last[i]);
    for (int i = 0; i < mgl_kernel_unit_count(); i++)
        add_job("--unit", mgl_kernel_unit_get(i)->name);
    for (int i = 0; i < TRICKS; i++) {
        bool listed = false;
        for (size_t k = 0; k < sizeof last / sizeof *last; k++)
            listed |= !strcmp(tricks[i], last[k]);
        if (!listed)
            add_job("--trick", tricks[i]);
    }
}

static int run_all(int argc, char **argv)
{
    mgl_target target;
    int at_once = AT_ONCE;
    bool all = false;
    const double start = mgl_clock_s();
    char *slow = slow_merge(mgl_kernel_unit_find("merge"));
    mgl_free(slow);
    if (!slow) { /* found without a GPU too */
        printf("merge, planted slower: WRONG (its text is not what this test changes)\n");
        return EXIT_FAILURE;
    }
    for (int i = 1; i < argc; i++) {
        all |= !strcmp(argv[i], "--all");
        if (!strcmp(argv[i], "--at-once") && i + 1 < argc)
            at_once = atoi(argv[i + 1]);
    }
    if (mgl_cuda_live_target(0, &target, &err)) {
        printf("SKIPPED: the gates of micro-kernels need a GPU: %s\n", err.message);
        return SKIP;
    }
    list_jobs();
    run_jobs(at_once > 0 ? at_once : 1, all);
    printf("%d correctness checks, %d wrong, %.1f s\n", job_count, failed, mgl_clock_s() - start);
    if (!run_paired_benches()) {
        printf("paired benchmarks: WRONG\n");
        failed++;
    }
    printf("all: %d wrong, %.1f s\n", failed, mgl_clock_s() - start);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    if (argc == 3 && !strcmp(argv[1], MGL_CUDA_WORKER_FLAG))
        return mgl_cuda_compile_worker(argv[2]);
    if (argc >= 4 && !strcmp(argv[3], "--all"))
        options.most_harnesses = mgl_harness_count();
    if (argc >= 3 && !strcmp(argv[1], "--unit"))
        return check_unit_correctness(argv[2]) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (argc >= 3 && !strcmp(argv[1], "--trick"))
        return run_trick(argv[2]) ? EXIT_SUCCESS : EXIT_FAILURE;
    return run_all(argc, argv);
}
