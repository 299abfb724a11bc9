/* Implements the helpers of the tests of schedule/. See support.h. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>

mgl_text fixture(const char *path)
{
    mgl_text text = {0};
    char whole[1024], block[4096];
    size_t n;
    snprintf(whole, sizeof whole, "%s/%s", MGL_SOURCE_DIR, path);
    FILE *file = fopen(whole, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", whole);
    mgl_text_append(&text, "", 0);
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        mgl_text_append(&text, block, n);
    fclose(file);
    ck_assert(!text.failed);
    return text;
}

mgl_program *parsed(const char *text, size_t length)
{
    mgl_program *program = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_parse(text, length, "test.mls", &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return program;
}

mgl_text printed(const mgl_program *program)
{
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    ck_assert(!text.failed);
    return text;
}

mgl_text edited(const char *text, const char *from, const char *to)
{
    mgl_text out = {0};
    const char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "there is no `%s` to edit", from);
    mgl_text_append(&out, text, (size_t)(at - text));
    mgl_text_put(&out, to);
    mgl_text_put(&out, at + strlen(from));
    return out;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int each_file(const char *folder, void (*each)(const char *path, const char *name, void *user),
              void *user)
{
    char path[1024];
    struct dirent **entries;
    snprintf(path, sizeof path, "%s/%s", MGL_SOURCE_DIR, folder);
    int count = scandir(path, &entries, is_visible, alphasort);
    ck_assert_msg(count >= 0, "%s cannot be listed", path);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        each(path, entries[i]->d_name, user);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
