/*
 * Tests of the reader of compiler logs: the class and position of the first error, the counts of
 * ptxas, and logs without them.
 */
#include "autotune/kernels/gates/compile.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "instructions/merge/merge.cuh"

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
    const char *log;
    mgl_outcome outcome;
    int line;
    const char *diagnostic;
} errors[] = {
    {FILE_NAME "(141): error: identifier \"invers\" is undefined\n          mean = invers;\n      "
               "           ^\n\n1 error detected in the compilation of \"megakernel.cu\".\n",
     MGL_OUTCOME_COMPILE_UNDEFINED, 141, "identifier \"invers\" is undefined"},
    {FILE_NAME "(7): warning #177-D: variable \"x\" was declared but never referenced\n" FILE_NAME
               "(9): error: expected a \";\"\n",
     MGL_OUTCOME_COMPILE_SYNTAX, 9, "expected a \";\""},
    {FILE_NAME "(12): error: class \"view\" has no member \"aat\"\n", MGL_OUTCOME_COMPILE_UNDEFINED,
     12, "class \"view\" has no member \"aat\""},
    {FILE_NAME "(3): error: a value of type \"float *\" cannot be used to initialize an entity of "
               "type \"int\"\n",
     MGL_OUTCOME_COMPILE_TYPE, 3,
     "a value of type \"float *\" cannot be used to initialize an entity of type \"int\""},
    {FILE_NAME "(3): error: no instance of overloaded function \"max\" matches the argument list\n",
     MGL_OUTCOME_COMPILE_TYPE, 3, "no instance of overloaded function \"max\" matches"},
    {FILE_NAME "(3): error: an asm operand must have scalar type\n", MGL_OUTCOME_COMPILE_ASM, 3,
     "an asm operand must have scalar type"},
    {FILE_NAME "(3): catastrophic error: cannot open source file \"x.h\"\n",
     MGL_OUTCOME_COMPILE_UNDEFINED, 3, "cannot open source file"},
    {"vm/cuda/device/dispatch.cuh(90): error: identifier \"consume_merge\" is undefined\n",
     MGL_OUTCOME_COMPILE_UNDEFINED, 0,
     "vm/cuda/device/dispatch.cuh:90: identifier \"consume_merge\" is undefined"},
    {"/etc/passwd(1): error: identifier \"root\" is undefined\n  root:x:0:0\n",
     MGL_OUTCOME_COMPILE_OTHER, 0, "an error outside of the kernel's sources"},
    {"ptxas application ptx input, line 4711; error   : Unknown modifier '.nosuch'\nptxas fatal   "
     ": "
     "Ptx assembly aborted due to errors\n",
     MGL_OUTCOME_COMPILE_ASM, 0, "ptxas:  Unknown modifier '.nosuch'"},
    {FILE_NAME "(3): error: a thing that nobody has seen\n", MGL_OUTCOME_COMPILE_OTHER, 3,
     "a thing that nobody has seen"},
    {"", MGL_OUTCOME_COMPILE_OTHER, 0, "does not say why"}};
enum { ERRORS = sizeof errors / sizeof *errors };

START_TEST(classes)
{
    mgl_trial_verdict is = {0};
    mgl_kernel_log_error(errors[_i].log, FILE_NAME, &is);
    ck_assert_str_eq(mgl_outcome_name(is.outcome), mgl_outcome_name(errors[_i].outcome));
}
END_TEST

START_TEST(places)
{
    mgl_trial_verdict is = {0};
    mgl_kernel_log_error(errors[_i].log, FILE_NAME, &is);
    ck_assert_int_eq(is.line, errors[_i].line);
}
END_TEST

START_TEST(words)
{
    mgl_trial_verdict is = {0};
    mgl_kernel_log_error(errors[_i].log, FILE_NAME, &is);
    ck_assert_msg(strstr(is.diagnostic, errors[_i].diagnostic) != NULL, "%s", is.diagnostic);
}
END_TEST

/* NVRTC prints the source line after the error. */
START_TEST(lines_of_files_are_not_told)
{
    mgl_trial_verdict is = {0};
    mgl_kernel_log_error("/etc/shadow(1): error: expected a declaration\n  root:$6$secret\n  ^\n",
                         FILE_NAME, &is);
    ck_assert_ptr_null(strstr(is.diagnostic, "secret"));
    ck_assert_ptr_null(strstr(is.diagnostic, "shadow"));
}
END_TEST

START_TEST(a_line_is_cut)
{
    char log[2000] = FILE_NAME "(1): error: ";
    mgl_trial_verdict is = {0};
    memset(log + strlen(log), 'x', 1500);
    mgl_kernel_log_error(log, FILE_NAME, &is);
    ck_assert_uint_le(strlen(is.diagnostic), 180);
}
END_TEST

/* ---- resources ------------------------------------------------------------------------------- */

static const char one_function[] =
    "ptxas info    : 288 bytes gmem\n"
    "ptxas info    : Compiling entry function 'megalith' for 'sm_90a'\n"
    "ptxas info    : Function properties for megalith\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 2 barriers\n"
    "ptxas info    : Compile time = 7559.378 ms\n";
static const char spilled[] =
    "ptxas info    : 288 bytes gmem, 96 bytes cmem[3]\n"
    "ptxas info    : Function properties for megalith\n"
    "    16 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 544 bytes cmem[0]\n"
    "ptxas info    : Function properties for consume_merge\n"
    "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
    "ptxas info    : Used 40 registers, used 0 barriers\n";

static mgl_kernel_resources read_resources(const char *log)
{
    mgl_kernel_resources out;
    ck_assert(mgl_kernel_log_resources(log, &out));
    return out;
}

START_TEST(registers_are_the_most)
{
    ck_assert_int_eq(read_resources(one_function).registers, 168);
    ck_assert_int_eq(read_resources(spilled).registers, 255);
}
END_TEST

START_TEST(spills_are_added_up)
{
    ck_assert_int_eq(read_resources(one_function).spill_stores, 0);
    ck_assert_int_eq(read_resources(spilled).spill_stores, 28);
    ck_assert_int_eq(read_resources(spilled).spill_loads, 24);
    ck_assert_int_eq(read_resources(spilled).frame, 24);
}
END_TEST

START_TEST(memory_is_counted)
{
    ck_assert_int_eq(read_resources(one_function).shared, 0);
    ck_assert_int_eq(read_resources(spilled).shared, 1024);
    ck_assert_int_eq(read_resources(spilled).global, 288);
    ck_assert_int_eq(read_resources(spilled).constant, 96);
}
END_TEST

START_TEST(a_log_without_counts_is_told)
{
    mgl_kernel_resources out;
    ck_assert(!mgl_kernel_log_resources("ptxas info    : 288 bytes gmem\n", &out));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_log");
    TCase *log = tcase_create("log");
    tcase_add_loop_test(log, classes, 0, ERRORS);
    tcase_add_loop_test(log, places, 0, ERRORS);
    tcase_add_loop_test(log, words, 0, ERRORS);
    tcase_add_test(log, lines_of_files_are_not_told);
    tcase_add_test(log, a_line_is_cut);
    tcase_add_test(log, registers_are_the_most);
    tcase_add_test(log, spills_are_added_up);
    tcase_add_test(log, memory_is_counted);
    tcase_add_test(log, a_log_without_counts_is_told);
    suite_add_tcase(suite, log);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed > 0;
}
