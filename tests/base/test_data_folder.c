/* Tests of the path of the user's data folder. */
#include "base/data_folder.h"

#include <check.h>
#include <stdlib.h>

static void is_at(const char *data, const char *home, const char *wanted)
{
    mgl_text path = {0};
    setenv("XDG_DATA_HOME", data, 1);
    setenv("HOME", home, 1);
    ck_assert_int_eq(mgl_data_folder("things", &path), wanted != NULL);
    if (wanted)
        ck_assert_str_eq(path.bytes, wanted);
    else
        ck_assert_uint_eq(path.length, 0);
    mgl_text_clear(&path);
}

START_TEST(xdg_comes_first)
{
    is_at("/data", "/home", "/data/megalith/things");
}
END_TEST

START_TEST(else_it_is_at_home)
{
    is_at("", "/home", "/home/.local/share/megalith/things");
}
END_TEST

START_TEST(relative_folders_are_none)
{
    is_at("data", "/home", "/home/.local/share/megalith/things");
    is_at("data", "home", NULL);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("data folder");
    tcase_add_test(tests, xdg_comes_first);
    tcase_add_test(tests, else_it_is_at_home);
    tcase_add_test(tests, relative_folders_are_none);
    Suite *suite = suite_create("data folder");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
