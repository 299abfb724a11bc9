/*
 * The corpus of tricks. The checks of the text must reject some tricks, with the expected code and
 * reason. Other tricks must pass these checks; the compiler or a device rejects them.
 *
 *     test_kernel_tricks                  the checks of the text
 *     test_kernel_tricks compile          tricks that the compiler detects
 *     test_kernel_tricks compile-all      also: tricks that only a device detects must compile; ten
 *                                         seconds for each
 *
 * Compiling is skipped if NVRTC is missing, unless MEGALITH_REQUIRE_NVRTC is 1.
 */
#include "tests/autotune/kernels/trick.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "vm/cuda/driver.h"

#define FOLDER MGL_SOURCE_DIR "/tests/autotune/kernels/tricks"

static mgl_file_list files;
static bool compiles, compiles_all;

static void read_one(int index, trick *out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", FOLDER, files.names[index]);
    trick_read(path, out);
}

static bool is_of_text(const trick *t)
{
    return !trick_is_of_ptx(t) && (trick_expects(t, MGL_OUTCOME_STATIC_FORBIDDEN) ||
                                   trick_expects(t, MGL_OUTCOME_REGION_VIOLATION) ||
                                   trick_expects(t, MGL_OUTCOME_DUPLICATE));
}

static bool is_of_compiler(const trick *t)
{
    const char *name = mgl_outcome_name(t->verdicts[0]);
    return trick_is_of_ptx(t) || !strncmp(name, "COMPILE_", 8) || !strncmp(name, "RESOURCE_", 9);
}

static void verify(const trick *t, bool no_compile, mgl_kernel_result *out)
{
    const mgl_kernel_candidate candidate = {
        .unit = t->unit, .text = t->text.bytes, .length = t->text.length, .region = t->region};
    const mgl_kernel_options options = {.no_compile = no_compile,
                                        .program = MGL_BINARY_DIR "/megalith"};
    mgl_error err = {0};
    ck_assert_msg(!mgl_kernel_verify(&candidate, &options, out, &err), "%s: %s", err.where,
                  err.message);
}

/* The verdict, and the reason in the diagnostic. */
START_TEST(texts_get_their_verdict)
{
    trick t;
    mgl_kernel_result result;
    read_one(_i, &t);
    verify(&t, true, &result);
    if (is_of_text(&t))
        ck_assert_msg(trick_expects(&t, result.verdict.outcome), "%s: %s %s", files.names[_i],
                      mgl_outcome_name(result.verdict.outcome), result.verdict.diagnostic);
    else
        ck_assert_msg(result.verdict.outcome == MGL_OUTCOME_UNMEASURED ||
                          trick_expects(&t, result.verdict.outcome),
                      "%s: %s", files.names[_i], result.verdict.diagnostic);
    ck_assert_msg(trick_is_of_ptx(&t) || strstr(result.verdict.diagnostic, t.because),
                  "%s: `%s` is not in `%s`", files.names[_i], t.because, result.verdict.diagnostic);
    mgl_kernel_result_clear(&result);
    mgl_text_clear(&t.text);
}
END_TEST

START_TEST(the_compiler_gives_its_verdict)
{
    trick t;
    mgl_kernel_result result;
    read_one(_i, &t);
    if (compiles && is_of_compiler(&t)) {
        verify(&t, false, &result);
        ck_assert_msg(trick_expects(&t, result.verdict.outcome) &&
                          strstr(result.verdict.diagnostic, t.because),
                      "%s: %s %s", files.names[_i], mgl_outcome_name(result.verdict.outcome),
                      result.verdict.diagnostic);
        mgl_kernel_result_clear(&result);
    }
    mgl_text_clear(&t.text);
}
END_TEST

START_TEST(what_a_device_has_to_find_compiles)
{
    trick t;
    mgl_kernel_result result;
    read_one(_i, &t);
    if (compiles_all && !is_of_compiler(&t) && !is_of_text(&t)) {
        verify(&t, false, &result);
        ck_assert_msg(result.verdict.outcome == MGL_OUTCOME_UNMEASURED && result.compiled, "%s: %s",
                      files.names[_i], result.verdict.diagnostic);
        mgl_kernel_result_clear(&result);
    }
    mgl_text_clear(&t.text);
}
END_TEST

START_TEST(there_are_enough)
{
    ck_assert_int_ge((int)files.count, 60);
}
END_TEST

/* Reports a missing compiler. Returns true if the test may then be skipped. */
static bool has_no_compiler(void)
{
    const mgl_nvrtc *nvrtc;
    const char *required = getenv("MEGALITH_REQUIRE_NVRTC");
    mgl_error err = {0};
    if (!mgl_nvrtc_open(&nvrtc, &err))
        return false;
    fprintf(stderr, "SKIPPED: %s\n", err.message);
    return !required || strcmp(required, "1") != 0;
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/kernels", 1);
    compiles_all = argc > 1 && !strcmp(argv[1], "compile-all");
    compiles = compiles_all || (argc > 1 && !strcmp(argv[1], "compile"));
    if (compiles && has_no_compiler())
        return 77;
    if (mgl_folder_list(FOLDER, ".trick", &files, &err)) {
        fprintf(stderr, "%s: %s\n", err.where, err.message);
        return 1;
    }
    Suite *suite = suite_create("kernel_tricks");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 600);
    if (compiles) {
        tcase_add_loop_test(all, the_compiler_gives_its_verdict, 0, (int)files.count);
        tcase_add_loop_test(all, what_a_device_has_to_find_compiles, 0, (int)files.count);
    } else {
        tcase_add_test(all, there_are_enough);
        tcase_add_loop_test(all, texts_get_their_verdict, 0, (int)files.count);
    }
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    mgl_file_list_clear(&files);
    return failed > 0;
}
