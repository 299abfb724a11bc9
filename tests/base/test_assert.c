/* Tests of MGL_ASSERT: it ends the process in checked builds, and is not evaluated in other
 * builds. */
#include "base/assert.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MGL_ASSERTS
enum { LOOKED_AT = 1 };
#else
enum { LOOKED_AT = 0 };
#endif

static int calls;

static int count_call(int value)
{
    calls++;
    return value;
}

START_TEST(a_condition_that_holds_goes_on)
{
    calls = 0;
    MGL_ASSERT(count_call(1));
    ck_assert_int_eq(calls, LOOKED_AT);
}
END_TEST

/* Runs in a child process, whose error output is discarded. */
START_TEST(a_condition_that_does_not_hold_ends_the_process)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
        MGL_ASSERT(count_call(0));
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, LOOKED_AT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("assert");
    TCase *tests = tcase_create("assert");
    tcase_add_test(tests, a_condition_that_holds_goes_on);
    tcase_add_test(tests, a_condition_that_does_not_hold_ends_the_process);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
