/* Tests of the device record: its path, when it is written, and that it is written once. */
#include "eval/device_record.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "tests/scratch.h"

static char root[] = "device-record-XXXXXX"; /* XDG_DATA_HOME */

static void begin(void)
{
    scratch_make(root);
    char *full = realpath(root, NULL);
    ck_assert_ptr_nonnull(full);
    setenv("XDG_DATA_HOME", full, 1);
    free(full);
}

static void end(void)
{
    mgl_file_fail_at(0);
    scratch_remove(root);
}

static void is_called(const char *device, const char *name)
{
    mgl_text path = {0};
    ck_assert(mgl_device_record_path(device, &path));
    ck_assert_ptr_nonnull(strstr(path.bytes, "/megalith/devices/"));
    ck_assert_str_eq(strrchr(path.bytes, '/') + 1, name);
    mgl_text_clear(&path);
}

START_TEST(its_name_is_the_device_s)
{
    is_called("NVIDIA B200", "NVIDIA-B200.json");
    is_called("GeForce_RTX-4090 v1.2", "GeForce_RTX-4090-v1.2.json");
}
END_TEST

START_TEST(no_name_leads_elsewhere)
{
    is_called("../../x", "-.-..-x.json");
    is_called(".hidden", "-hidden.json");
}
END_TEST

static bool is_wanted(const char *device)
{
    mgl_error err;
    bool wanted;
    ck_assert_int_eq(mgl_device_record_wanted(device, &wanted, &err), MGL_OK);
    return wanted;
}

START_TEST(devices_without_costs_have_one)
{
    ck_assert(is_wanted("NVIDIA B200"));
    ck_assert(!is_wanted("NVIDIA H200"));
    ck_assert(!is_wanted("NVIDIA H100 80GB HBM3"));
    ck_assert(!is_wanted(""));
}
END_TEST

START_TEST(without_a_place_there_is_none)
{
    setenv("XDG_DATA_HOME", "", 1);
    setenv("HOME", "", 1);
    ck_assert(!is_wanted("NVIDIA B200"));
}
END_TEST

static mgl_status write_record(const char *text, mgl_error *err)
{
    mgl_text json = {0};
    mgl_text_put(&json, text);
    mgl_status status = mgl_device_record_write("NVIDIA B200", &json, err);
    mgl_text_clear(&json);
    return status;
}

START_TEST(one_is_enough)
{
    mgl_error err;
    mgl_text path = {0};
    char *text;
    size_t length;
    ck_assert_int_eq(write_record("{}\n", &err), MGL_OK);
    ck_assert(!is_wanted("NVIDIA B200"));
    ck_assert(is_wanted("NVIDIA B100"));
    ck_assert(mgl_device_record_path("NVIDIA B200", &path));
    ck_assert_int_eq(mgl_file_read(path.bytes, 100, &text, &length, &err), MGL_OK);
    ck_assert_str_eq(text, "{}\n");
    mgl_free(text);
    mgl_text_clear(&path);
}
END_TEST

/* After any failure, no file is left that the next run would read as a record. */
START_TEST(half_a_record_is_none)
{
    mgl_error err;
    int failures = 0;
    for (uint64_t n = 1; n < 100; n++) {
        mgl_file_fail_at(n);
        mgl_status status = write_record("{}\n", &err);
        mgl_file_fail_at(0);
        if (!status)
            break;
        failures++;
        ck_assert_ptr_nonnull(strstr(err.where, "devices"));
    }
    ck_assert_int_gt(failures, 3);
    ck_assert(!is_wanted("NVIDIA B200"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("device record");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, its_name_is_the_device_s);
    tcase_add_test(tests, no_name_leads_elsewhere);
    tcase_add_test(tests, devices_without_costs_have_one);
    tcase_add_test(tests, without_a_place_there_is_none);
    tcase_add_test(tests, one_is_enough);
    tcase_add_test(tests, half_a_record_is_none);
    Suite *suite = suite_create("device record");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
