/* Tests of counting other processes on a device. NVML is not called, because it may be missing. */
#include <check.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eval/clocks.h"

static unsigned self, parent;

static void setup(void)
{
    self = (unsigned)getpid();
    parent = (unsigned)getppid();
}

START_TEST(this_process_and_its_parent_are_none)
{
    unsigned pids[] = {self, parent};
    ck_assert_int_eq(mgl_clocks_count_other_processes(pids, 2), 0);
}
END_TEST

START_TEST(a_child_is_none)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    unsigned pids[] = {(unsigned)child, self};
    int others = mgl_clocks_count_other_processes(pids, 2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_assert_int_eq(others, 0);
}
END_TEST

/* Two children of one program: workers of one campaign. */
START_TEST(a_sibling_of_the_same_program_is_none)
{
    int status = 0;
    pid_t sibling = fork();
    if (sibling == 0)
        for (;;)
            pause();
    pid_t child = fork();
    if (child == 0) {
        unsigned pids[] = {(unsigned)sibling, (unsigned)getpid()};
        _exit(mgl_clocks_count_other_processes(pids, 2) == 0 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    kill(sibling, SIGKILL);
    waitpid(sibling, NULL, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* 1 is the init process; the other id does not exist. */
START_TEST(others_are_counted)
{
    unsigned pids[] = {parent == 1 ? 2 : 1, self, 0x7FFFFFFF};
    ck_assert_int_eq(mgl_clocks_count_other_processes(pids, 3), 2);
}
END_TEST

/* Ids of another namespace give an unknown count. */
START_TEST(a_list_without_this_process_is_unknown)
{
    unsigned pids[] = {0x7FFFFFFF};
    ck_assert_int_eq(mgl_clocks_count_other_processes(pids, 1), -1);
    ck_assert_int_eq(mgl_clocks_count_other_processes(pids, 0), -1);
}
END_TEST

START_TEST(a_device_that_is_not_known_has_no_clocks)
{
    mgl_clocks clocks = {0};
    mgl_clocks_now now = {.sm_mhz = 1};
    ck_assert(!mgl_clocks_read(&clocks, &now));
    ck_assert_uint_eq(now.sm_mhz, 0);
    ck_assert_int_eq(mgl_clocks_count_others(&clocks), -1);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("clocks");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, this_process_and_its_parent_are_none);
    tcase_add_test(tests, a_child_is_none);
    tcase_add_test(tests, a_sibling_of_the_same_program_is_none);
    tcase_add_test(tests, others_are_counted);
    tcase_add_test(tests, a_list_without_this_process_is_unknown);
    tcase_add_test(tests, a_device_that_is_not_known_has_no_clocks);
    Suite *suite = suite_create("clocks");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
