/* Tests of the table of device costs (schedule/cost/costs.def): which device and which target has
 * costs. */
#include "support.h"

#include <stdio.h>

#include "schedule/cost/cost.h"

/* Every device of costs.def. */
static const struct {
    const char *name, *arch;
} devices[] = {
#define MGL_COST_DEVICE(name, arch, ...) {name, arch},
#include "schedule/cost/costs.def"
};
enum { DEVICES = sizeof devices / sizeof *devices };

START_TEST(a_device_has_all_costs)
{
    mgl_costs costs;
    ck_assert_int_eq(mgl_costs_find(devices[_i].name, &costs, NULL), MGL_OK);
#define MGL_COST(field, unit, what) ck_assert_double_gt(costs.field, 0);
#include "schedule/cost/costs.def"
}
END_TEST

START_TEST(a_device_s_architecture_is_one_of_a_target)
{
    mgl_target target;
    mgl_error err;
    char text[64];
    snprintf(text, sizeof text, "%s:1", devices[_i].arch);
    ck_assert_msg(!mgl_target_parse(text, &target, &err), "%s", err.message);
}
END_TEST

START_TEST(other_devices_of_an_architecture_have_no_costs)
{
    mgl_costs costs;
    mgl_error err;
    ck_assert_int_eq(mgl_costs_find("NVIDIA H200 NVL", &costs, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "NVIDIA H200 NVL");
    ck_assert_ptr_nonnull(strstr(err.message, "devices with costs: NVIDIA H200"));
}
END_TEST

START_TEST(a_target_means_the_first_device_of_its_architecture)
{
    const char *name;
    mgl_costs costs, named;
    mgl_target target = {.arch = "sm_90a", .queues = 132};
    ck_assert_int_eq(mgl_costs_find_for(&target, NULL, &name, &costs, NULL), MGL_OK);
    ck_assert_str_eq(name, "NVIDIA H200");
    ck_assert_int_eq(mgl_costs_find_for(&target, name, &name, &named, NULL), MGL_OK);
    ck_assert_mem_eq(&costs, &named, sizeof costs);
}
END_TEST

START_TEST(a_device_of_another_architecture_is_rejected)
{
    const char *name;
    mgl_costs costs;
    mgl_error err;
    mgl_target target = {.arch = "sm_80", .queues = 108};
    ck_assert_int_eq(mgl_costs_find_for(&target, "NVIDIA H200", &name, &costs, &err),
                     MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "sm_80"));
}
END_TEST

START_TEST(a_target_that_nobody_measured_has_no_costs)
{
    const char *name;
    mgl_costs costs;
    mgl_error err;
    mgl_target target = {.arch = "cpu", .queues = 2};
    ck_assert_int_eq(mgl_costs_find_for(&target, NULL, &name, &costs, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "cpu");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device costs");
    TCase *cases = tcase_create("device costs");
    tcase_add_loop_test(cases, a_device_has_all_costs, 0, DEVICES);
    tcase_add_loop_test(cases, a_device_s_architecture_is_one_of_a_target, 0, DEVICES);
    tcase_add_test(cases, other_devices_of_an_architecture_have_no_costs);
    tcase_add_test(cases, a_target_means_the_first_device_of_its_architecture);
    tcase_add_test(cases, a_device_of_another_architecture_is_rejected);
    tcase_add_test(cases, a_target_that_nobody_measured_has_no_costs);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
