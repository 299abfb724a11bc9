/* The static scan of micro-kernels: every unit's own text passes; single rules, by small texts. The
 * corpus of tricks is judged by test_kernel_tricks. */
#include "autotune/kernel/scan.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mgl_scan_fault scan(const char *unit, const char *text)
{
    mgl_scan_fault fault;
    mgl_error err = {0};
    const mgl_kernel_unit *u = mgl_kernel_unit_find(unit);
    ck_assert_ptr_nonnull(u);
    ck_assert_msg(!mgl_kernel_scan(u, text, strlen(text), 0, &fault, &err), "%s: %s", err.where,
                  err.message);
    return fault;
}

START_TEST(units_pass)
{
    const mgl_kernel_unit *unit = mgl_kernel_unit_get(_i);
    size_t length;
    const char *text = mgl_kernel_unit_text(unit, &length);
    ck_assert_msg(length > 0, "%s: %s is no source of the kernel", unit->name, unit->file);
    const mgl_scan_fault fault = scan(unit->name, text);
    ck_assert_msg(fault.line == 0, "%s:%d: %s", unit->file, fault.line, fault.what);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_scan");
    TCase *rules = tcase_create("rules");
    tcase_add_loop_test(rules, units_pass, 0, mgl_kernel_unit_count());
    suite_add_tcase(suite, rules);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
