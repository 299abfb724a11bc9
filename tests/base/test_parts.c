/* The parts of long tests (tests/parts.h). */
#include "tests/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHECKS = 11, MOST_PARTS = 13 };

START_TEST(parts_are_disjoint_and_complete)
{
    for (int count = 1; count <= MOST_PARTS; count++)
        for (int check = 0; check < CHECKS; check++) {
            int runs = 0;
            for (int number = 1; number <= count; number++) {
                char text[16];
                test_part part;
                snprintf(text, sizeof text, "%d/%d", number, count);
                ck_assert(test_part_read(text, &part));
                runs += test_part_has(part, check);
            }
            ck_assert_int_eq(runs, 1);
        }
}
END_TEST

START_TEST(without_a_part_everything_runs)
{
    test_part part;
    ck_assert(test_part_read(NULL, &part));
    for (int check = 0; check < CHECKS; check++)
        ck_assert(test_part_has(part, check));
}
END_TEST

START_TEST(malformed_parts_are_rejected)
{
    static const char *const texts[] = {"",
                                        "1",
                                        "1/",
                                        "/2",
                                        "0/2",
                                        "3/2",
                                        "1/0",
                                        "-1/2",
                                        "1/2x",
                                        "1/2/3",
                                        "1.5/2",
                                        " 1/2",
                                        "x/y",
                                        "1 /2",
                                        "1/-2",
                                        "2/1000000000000",
                                        "99999999999/2"};
    test_part part;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(!test_part_read(texts[i], &part), "\"%s\"", texts[i]);
}
END_TEST

/* ---- a suite in parts ------------------------------------------------------------------------ */

static int to_parent;

START_TEST(tells_its_number)
{
    const char number = (char)_i;
    ck_assert_int_eq(write(to_parent, &number, 1), 1);
}
END_TEST

/* A child process with a suite of CHECKS checks, added in two steps. */
static void run_suite(const char *part)
{
    setenv("MGL_TEST_PART", part, 1);
    Suite *suite = suite_create("child");
    TCase *tests = tcase_create("child");
    suite_add_tcase(suite, tests);
    add_cases(tests, tells_its_number, CHECKS - 1);
    if (next_is_in_part())
        tcase_add_loop_test(tests, tells_its_number, CHECKS - 1, CHECKS);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    _exit(srunner_ntests_failed(runner));
}

/* Counts the runs of each check in one part. Returns the exit code of the child. */
static int count_runs(const char *part, int *runs)
{
    int ends[2], how;
    char number;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (!child) {
        to_parent = ends[1];
        run_suite(part);
    }
    close(ends[1]);
    while (read(ends[0], &number, 1) == 1)
        runs[(int)number]++;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    return WEXITSTATUS(how);
}

START_TEST(a_suite_runs_in_parts)
{
    int runs[CHECKS] = {0};
    ck_assert_int_eq(count_runs("1/3", runs), 0);
    ck_assert_int_eq(runs[0] + runs[3] + runs[6] + runs[9], 4);
    ck_assert_int_eq(runs[1] + runs[2] + runs[10], 0);
    ck_assert_int_eq(count_runs("2/3", runs), 0);
    ck_assert_int_eq(count_runs("3/3", runs), 0);
    for (int i = 0; i < CHECKS; i++)
        ck_assert_int_eq(runs[i], 1);
    ck_assert_int_eq(count_runs("4/3", runs), EXIT_FAILURE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *tests = tcase_create("parts");
    tcase_add_test(tests, parts_are_disjoint_and_complete);
    tcase_add_test(tests, without_a_part_everything_runs);
    tcase_add_test(tests, malformed_parts_are_rejected);
    tcase_add_test(tests, a_suite_runs_in_parts);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
