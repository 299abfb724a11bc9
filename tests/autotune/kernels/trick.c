/* Reads the files of the trick corpus. See trick.h. */
#include "tests/autotune/kernels/trick.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

static void read_verdicts(trick *t, char *list)
{
    for (char *save, *name = strtok_r(list, "|", &save); name; name = strtok_r(NULL, "|", &save)) {
        ck_assert_int_lt(t->verdict_count, 6);
        ck_assert_msg(mgl_outcome_parse(name, &t->verdicts[t->verdict_count++]), "%s", name);
    }
}

/* Reads the first line; returns the text after it. */
static char *read_head(trick *t, char *text)
{
    char verdicts[128], unit[32], region[16];
    char *end = strchr(text, '\n');
    ck_assert_ptr_nonnull(end);
    *end = 0;
    ck_assert_msg(
        sscanf(text, "// %127s %31s %15[a-z]: %63[^:]:", verdicts, unit, region, t->row) == 4, "%s",
        text);
    read_verdicts(t, verdicts);
    t->unit = mgl_kernel_unit_find(unit);
    ck_assert_ptr_nonnull(t->unit);
    ck_assert(mgl_kernel_region_parse(region, &t->region));
    char *at = end + 1;
    if (strncmp(at, "// because: ", 12) != 0)
        return at;
    end = strchr(at, '\n');
    *end = 0;
    snprintf(t->because, sizeof t->because, "%s", at + 12);
    return end + 1;
}

/* Removes the part between two marks from `at` and returns it. NULL if the first mark is
 * missing. */
static char *cut(char **at, const char *first, const char *last)
{
    char *from = strstr(*at, first);
    if (!from)
        return NULL;
    char *body = from + strlen(first), *end = strstr(body, last);
    ck_assert_ptr_nonnull(end);
    *from = *end = 0;
    *at = end + strlen(last);
    return body;
}

static void replace(trick *t, const char *old, const char *new)
{
    char *at = strstr(t->text.bytes, old);
    mgl_text out = {0};
    ck_assert_msg(at != NULL, "the unit has no text\n%s", old);
    ck_assert_msg(!strstr(at + 1, old), "the unit has the text twice\n%s", old);
    mgl_text_append(&out, t->text.bytes, (size_t)(at - t->text.bytes));
    mgl_text_put(&out, new);
    mgl_text_put(&out, at + strlen(old));
    mgl_text_clear(&t->text);
    t->text = out;
}

/* Inserts a text before the region's content. */
static void put_in_front(trick *t, const char *added)
{
    mgl_kernel_regions regions;
    mgl_text out = {0};
    ck_assert_int_eq(mgl_kernel_regions_find(t->text.bytes, t->text.length, &regions, NULL), 0);
    const size_t at = regions.of[t->region].first;
    mgl_text_append(&out, t->text.bytes, at);
    mgl_text_put(&out, added);
    mgl_text_append(&out, t->text.bytes + at, t->text.length - at);
    mgl_text_clear(&t->text);
    t->text = out;
}

void trick_read(const char *path, trick *out)
{
    char *text;
    size_t length;
    mgl_error err = {0};
    *out = (trick){0};
    ck_assert_msg(!mgl_file_read(path, 1 << 20, &text, &length, &err), "%s", err.message);
    char *body = read_head(out, text), *at = body;
    const char *unit = mgl_kernel_unit_text(out->unit, &length);
    mgl_text_append(&out->text, unit, length);
    for (char *old; (old = cut(&at, "//@ in place of\n", "//@ by\n"));) {
        char *new = at, *end = strstr(at, "//@ end\n");
        ck_assert_ptr_nonnull(end);
        *end = 0;
        at = end + strlen("//@ end\n");
        replace(out, old, new);
    }
    put_in_front(out, body);
    mgl_free(text);
}

bool trick_is_of_ptx(const trick *t)
{
    return !strncmp(t->because, "compiled, ", 10);
}

bool trick_expects(const trick *t, mgl_outcome outcome)
{
    for (int i = 0; i < t->verdict_count; i++)
        if (t->verdicts[i] == outcome)
            return true;
    return false;
}
