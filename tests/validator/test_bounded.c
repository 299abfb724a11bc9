/*
 * The proof is bounded in time and memory: schedules that are short to write and expensive to prove
 * (heavy.h) are decided quickly, or refused with MG121.
 */
#include "heavy.h"
#include "support.h"

/* A tenth of it would do, without sanitizers and neighbours; without bounds it is minutes. */
enum { MOST_MS = 15000 };

static const heavy_kind *find_kind(const char *name)
{
    for (int i = 0; i < heavy_kind_count; i++)
        if (!strcmp(heavy_kinds[i].name, name))
            return &heavy_kinds[i];
    ck_abort_msg("no kind %s", name);
    return NULL;
}

static mgl_program *heavy_program(const char *name, int percent)
{
    const heavy_kind *kind = find_kind(name);
    mgl_text text = {0};
    mgl_program *program = NULL;
    mgl_error err = {0};
    heavy_write(kind, (int)((long long)kind->count * percent / 100), &text);
    ck_assert(!text.failed);
    mgl_status status = mgl_schedule_parse(text.bytes, text.length, name, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_text_clear(&text);
    return program;
}

/* What is made of so many percent of a kind, within the time. */
static void expect(const char *name, int percent, const char *codes)
{
    char got[64];
    mgl_program *program = heavy_program(name, percent);
    mgl_verdict verdict = verdict_of(program, NULL);
    ck_assert_msg(!strcmp(codes_of(&verdict, got, sizeof got), codes), "%s: %s, not %s", name, got,
                  codes);
    ck_assert_msg(verdict.ms < MOST_MS, "%s: %.0f ms", name, verdict.ms);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}

START_TEST(columns_of_clears_are_refused)
{
    expect("columns", 100, "MG121");
}
END_TEST

START_TEST(planes_of_clears_are_refused)
{
    expect("planes", 100, "MG121");
}
END_TEST

START_TEST(steps_of_clears_are_refused)
{
    expect("steps", 100, "MG121");
}
END_TEST

/* A part of the rectangles is proved: what is refused is the work, not the shape. */
START_TEST(fewer_clears_are_proved)
{
    expect("columns", 5, "accept");
    expect("planes", 5, "accept");
    expect("steps", 5, "accept");
}
END_TEST

START_TEST(many_users_of_a_slice_are_refused)
{
    expect("users", 40, "MG121");
}
END_TEST

START_TEST(many_waits_are_refused)
{
    expect("waits", 70, "MG121");
}
END_TEST

/* 150,000 clocks of 256 queues. */
START_TEST(memory_for_the_order_is_bounded)
{
    mgl_program *program = heavy_program("ladder", 30);
    mgl_verdict verdict = verdict_of(program, NULL);
    ck_assert_int_eq(verdict.count, 1);
    ck_assert_int_eq(verdict.diagnostics[0].code, 121);
    ck_assert_ptr_nonnull(strstr(verdict.diagnostics[0].message, "128 MiB"));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}
END_TEST

START_TEST(fewer_clocks_are_proved)
{
    expect("ladder", 5, "accept");
}
END_TEST

START_TEST(many_signals_are_proved)
{
    expect("signals", 20, "accept");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator bounded");
    TCase *cases = tcase_create("bounded");
    tcase_set_timeout(cases, 110);
    tcase_add_test(cases, columns_of_clears_are_refused);
    tcase_add_test(cases, planes_of_clears_are_refused);
    tcase_add_test(cases, steps_of_clears_are_refused);
    tcase_add_test(cases, fewer_clears_are_proved);
    tcase_add_test(cases, many_users_of_a_slice_are_refused);
    tcase_add_test(cases, many_waits_are_refused);
    tcase_add_test(cases, memory_for_the_order_is_bounded);
    tcase_add_test(cases, fewer_clocks_are_proved);
    tcase_add_test(cases, many_signals_are_proved);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
