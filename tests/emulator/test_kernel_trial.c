/*
 * Runs the device gates of micro-kernels on the emulator. The kernel's sources are compiled with a
 * proposed text and run in workers, which are this program. The texts are those of
 * tests/autotune/kernels/tricks whose trick appears only at run time.
 *
 *     test_kernel_trial [TRICK... | own UNIT HARNESS | text UNIT HARNESS FILE]
 *
 * HARNESS may be `all`.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/kernels/trial/trial.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "tests/autotune/kernels/trick.h"
#include "tests/emulator/emulator.h"
#include "tests/scratch.h"
#include "vm/cuda/cuda.h"

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

#define FOLDER MGL_SOURCE_DIR "/tests/autotune/kernels/tricks"

enum { SKIP = 77 };

static mgl_error err;
static const mgl_trial_options options = {.device = "cuda",
                                          .kernels = MGL_BINARY_DIR "/tests/emulator/kernels",
                                          .no_sandbox = true, /* the sandbox is off, because the C++
                                                                 compiler is a program */
                                          .limit_s = 15,
                                          .depth = MGL_TRIAL_CORRECTNESS,
                                          .only = "one row, splits"};

/* One trick for each verdict; one that shows only if a warp merges two blocks at once; and one for
 * each kind of program, wrong only in that kind. */
static const struct {
    const char *name, *only; /* the harness */
} tricks[] = {{"run_scaled", "one row, splits"},
              {"run_mutates", "one row, splits"},
              {"run_out_of_bounds", "one row, splits"},
              {"run_first_block", "one queue that merges"},
              {"run_without_bias", "biases"},
              {"run_without_norms", "norms of q and k"},
              {"run_wrong_in_f16", "f16"},
              {"run_wrong_beside_panels", "two lists"},
              {"run_without_penalties", "penalties"},
              {"run_endless", "one row, splits"}};

static void try_trick(const char *name, const char *only)
{
    char path[512];
    trick t;
    mgl_kernel_trial trial;
    mgl_trial_options own = options;
    own.only = only;
    snprintf(path, sizeof path, "%s/%s.trick", FOLDER, name);
    trick_read(path, &t);
    ok(mgl_kernel_try(t.unit, t.text.bytes, &own, &trial, &err));
    printf("%s: %s in %.1f s: %s\n", name, mgl_outcome_name(trial.verdict.outcome), trial.seconds,
           trial.verdict.diagnostic);
    ck_assert_msg(trick_expects(&t, trial.verdict.outcome), "%s: %s: %s", name,
                  mgl_outcome_name(trial.verdict.outcome), trial.verdict.diagnostic);
    mgl_text_clear(&t.text);
}

START_TEST(tricks_get_their_verdict)
{
    try_trick(tricks[_i].name, tricks[_i].only);
}
END_TEST

/* `text` NULL: the unit's own; `harness` NULL: each that runs the unit; `cases` 0: all. */
static void try_text(const char *name, const char *harness, const char *text, int cases)
{
    size_t length;
    mgl_kernel_trial trial;
    mgl_trial_options own = options;
    own.only = harness;
    own.most_cases = cases;
    const mgl_kernel_unit *unit = mgl_kernel_unit_find(name);
    ok(mgl_kernel_try(unit, text ? text : mgl_kernel_unit_text(unit, &length), &own, &trial, &err));
    printf("%s: %s in %.1f s, %d cases, error %.2e (incumbent %.2e), bias %.2e: %s\n", name,
           mgl_outcome_name(trial.verdict.outcome), trial.seconds, trial.cases,
           trial.correctness.error, trial.correctness.incumbent_error, trial.correctness.bias,
           trial.verdict.diagnostic);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_int_gt(trial.cases, 0);
}

START_TEST(what_is_built_in_is_right)
{
    try_text("merge", "one row, splits", NULL, 1);
}
END_TEST

/* A script replaces compute-sanitizer. It runs the worker, and reports an error in the first one.
 * The gate runs before the paired benchmark, and also if nothing is timed. */
static const mgl_trial_depth depths[] = {MGL_TRIAL_CORRECTNESS, MGL_TRIAL_PAIRED_BENCH};
START_TEST(what_memcheck_finds_is_the_verdict)
{
    static const char tool[] = "#!/bin/sh\n"
                               "while [ \"$1\" != --log-file ]; do shift; done\n"
                               "log=$2\n"
                               "while case $1 in --*) true ;; *) false ;; esac; do shift 2; done\n"
                               "\"$@\" || exit 1\n"
                               "if [ -e \"$0.ran\" ]; then\n"
                               "    echo '========= ERROR SUMMARY: 0 errors' >\"$log\"\n"
                               "else\n"
                               "    echo '========= Invalid __global__ read of size 4' >\"$log\"\n"
                               "fi\n"
                               ": >\"$0.ran\"\n";
    char folder[] = "/tmp/megalith-test-XXXXXX", path[64], ran[80];
    size_t length;
    mgl_kernel_trial trial;
    mgl_trial_options own = options;
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("merge");
    own.depth = depths[_i];
    own.most_cases = 1;
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/tool", folder);
    snprintf(ran, sizeof ran, "%s.ran", path);
    ok(mgl_output_write_file(path, tool, sizeof tool - 1, &err));
    ck_assert_int_eq(chmod(path, 0755), 0);
    setenv("MEGALITH_SANITIZER", path, 1);
    ok(mgl_kernel_try(unit, mgl_kernel_unit_text(unit, &length), &own, &trial, &err));
    setenv("MEGALITH_SANITIZER", "none", 1);
    ck_assert_int_eq(unlink(ran), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_msg(trial.verdict.outcome == MGL_OUTCOME_SANITIZER_MEMORY, "%s: %s",
                  mgl_outcome_name(trial.verdict.outcome), trial.sanitizers.of[0].skipped);
    ck_assert_str_eq(trial.verdict.diagnostic, "memcheck: Invalid __global__ read of size 4");
    ck_assert_int_eq(trial.paired_bench.pairs, 0);
}
END_TEST

static char **given;

/* The harness program that shows a trick. */
static const char *harness_of(const char *name)
{
    for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++)
        if (!strcmp(tricks[i].name, name))
            return tricks[i].only;
    return options.only;
}

START_TEST(what_is_named)
{
    char *text = NULL;
    size_t length;
    if (strcmp(given[0], "text") == 0)
        ok(mgl_file_read(given[3], MGL_KERNEL_TEXT, &text, &length, &err));
    if (text || strcmp(given[0], "own") == 0)
        try_text(given[1], strcmp(given[2], "all") ? given[2] : NULL, text, 0);
    else
        try_trick(given[_i], harness_of(given[_i]));
    mgl_free(text);
}
END_TEST

static void add_tests(TCase *all, int argc)
{
    if (argc > 0) {
        const bool one = strcmp(given[0], "own") == 0 || strcmp(given[0], "text") == 0;
        tcase_add_loop_test(all, what_is_named, 0, one ? 1 : argc);
        return;
    }
    tcase_add_test(all, what_is_built_in_is_right);
    tcase_add_loop_test(all, what_memcheck_finds_is_the_verdict, 0,
                        (int)(sizeof depths / sizeof *depths));
    tcase_add_loop_test(all, tricks_get_their_verdict, 0, (int)(sizeof tricks / sizeof *tricks));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!emu_install("kernel_trial"))
        return SKIP;
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    if (argc == 3 && !strcmp(argv[1], MGL_CUDA_WORKER_FLAG))
        return mgl_cuda_compile_worker(argv[2]);
    given = argv + 1;
    setenv("MEGALITH_SANITIZER", "none", 1); /* the emulated device is not a GPU */
    Suite *suite = suite_create("kernel_trial");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 600);
    add_tests(all, argc - 1);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
