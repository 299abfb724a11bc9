/*
 * Tests of the text cases. Each file of cases/ begins with `# expect`, the codes of its diagnostics
 * in order of first appearance, or `accept`. `# graph` on the second line also checks its meaning
 * against the one-layer model of support.h; `# strict` also checks the number formats.
 */
#include "support.h"

#include <dirent.h>
#include <stdio.h>

static int is_case(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && !strcmp(end, ".mls");
}

static void read_header(const char *path, char expect[128], bool *graph, bool *strict)
{
    char line[256] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    ck_assert_msg(sscanf(line, "# expect %127[^\n]", expect) == 1, "%s: no expectation", path);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    *strict = !strcmp(line, "# strict\n");
    *graph = *strict || !strcmp(line, "# graph\n");
    fclose(file);
}

static void check_case(const char *path, const mgl_graph *graph)
{
    char expect[128], got[512];
    bool meaning, strict;
    read_header(path, expect, &meaning, &strict);
    mgl_program *program = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_read(path, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_verdict verdict =
        strict ? strict_verdict_of(program, graph) : verdict_of(program, meaning ? graph : NULL);
    codes_of(&verdict, got, sizeof got);
    ck_assert_msg(!strcmp(expect, got), "%s: expected %s, got %s", path, expect, got);
    for (int i = 0; i < verdict.count; i++) {
        const mgl_diagnostic *d = &verdict.diagnostics[i];
        ck_assert_msg(d->task < 0 || d->line > 0, "%s: no line for task %d", path, d->task);
        ck_assert_ptr_nonnull(mgl_validator_explain(d->code));
    }
    if (verdict.accepted)
        ck_assert_int_eq(verdict.meaning_checked, meaning);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}

START_TEST(cases_get_their_verdicts)
{
    struct dirent **entries;
    const char *folder = MGL_SOURCE_DIR "/tests/validator/cases";
    int count = scandir(folder, &entries, is_case, alphasort);
    ck_assert_int_gt(count, 60);
    mgl_graph *graph = tiny_graph(1);
    for (int i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        check_case(path, graph);
        free(entries[i]);
    }
    free(entries);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator cases");
    TCase *cases = tcase_create("cases");
    tcase_add_test(cases, cases_get_their_verdicts);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
