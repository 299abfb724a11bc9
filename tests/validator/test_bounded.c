/*
 * Tests that the proof is bounded in time and memory: schedules that are short to write and
 * expensive to prove (slow_texts.h) are decided quickly, or rejected with MG121. Counters are
 * bounded too: MG205.
 */
#include "slow_texts.h"
#include "support.h"
#include "tests/time_limit.h"

#include <stdio.h>

/* Time limit. A twentieth suffices without sanitizers and other load; without bounds the proof
 * takes minutes. */
enum { MOST_MS = 30000 };

static const slow_kind *find_kind(const char *name)
{
    for (int i = 0; i < slow_kind_count; i++)
        if (!strcmp(slow_kinds[i].name, name))
            return &slow_kinds[i];
    ck_abort_msg("no kind %s", name);
    return NULL;
}

static mgl_program *slow_program(const char *name, int percent)
{
    const slow_kind *kind = find_kind(name);
    mgl_text text = {0};
    mgl_program *program = NULL;
    mgl_error err = {0};
    slow_write(kind, (int)((long long)kind->count * percent / 100), &text);
    ck_assert(!text.failed);
    mgl_status status = mgl_schedule_parse(text.bytes, text.length, name, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_text_clear(&text);
    return program;
}

/* Validates a kind at this percentage of its size, within the time limit. */
static void expect(const char *name, int percent, const char *codes)
{
    char got[64];
    mgl_program *program = slow_program(name, percent);
    mgl_verdict verdict = verdict_of(program, NULL);
    ck_assert_msg(!strcmp(codes_of(&verdict, got, sizeof got), codes), "%s: %s, not %s", name, got,
                  codes);
    ck_assert_msg(verdict.ms < time_limit(MOST_MS), "%s: %.0f ms", name, verdict.ms);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}

START_TEST(columns_of_clears_are_rejected)
{
    expect("columns", 100, "MG121");
}
END_TEST

START_TEST(planes_of_clears_are_rejected)
{
    expect("planes", 100, "MG121");
}
END_TEST

START_TEST(steps_of_clears_are_rejected)
{
    expect("steps", 100, "MG121");
}
END_TEST

/* Fewer rectangles are accepted: the amount of work is rejected, not the shape. */
START_TEST(fewer_clears_are_proved)
{
    expect("columns", 5, "accept");
    expect("planes", 5, "accept");
    expect("steps", 5, "accept");
}
END_TEST

START_TEST(many_users_of_a_slice_are_rejected)
{
    expect("users", 40, "MG121");
}
END_TEST

START_TEST(many_waits_are_rejected)
{
    expect("waits", 70, "MG121");
}
END_TEST

/* 150,000 clocks of 256 queues. */
START_TEST(memory_for_the_order_is_bounded)
{
    mgl_program *program = slow_program("ladder", 30);
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

/* ---- the range of a counter ------------------------------------------------------------------ */

/* Replaces each `old` in the text; releases the old text. */
static mgl_text replaced(mgl_text text, const char *old, const char *with)
{
    mgl_text to = {0};
    const char *at = text.bytes;
    for (const char *end; (end = strstr(at, old)) != NULL; at = end + strlen(old)) {
        mgl_text_append(&to, at, (size_t)(end - at));
        mgl_text_put(&to, with);
    }
    mgl_text_put(&to, at);
    mgl_text_clear(&text);
    return to;
}

static mgl_text read_case(const char *name)
{
    char path[1024], bytes[1 << 14];
    mgl_text text = {0};
    snprintf(path, sizeof path, "%s/tests/validator/cases/%s", MGL_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    mgl_text_append(&text, bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    return text;
}

/* accept_many_signals.mls with this number of signals of one counter, and of positions. */
static mgl_program *signals_program(int signals, int capacity)
{
    static const char embed[] = "embed in embedding[0:40,0:8] out x[:rows,0:8] signal embedded\n";
    static const char behind[] = "norm_linear in x[:rows,0:16], l0.attn_g[0:16] tape l0.q";
    char number[32];
    mgl_text more = {0}, text = read_case("accept_many_signals.mls");
    mgl_program *program = NULL;
    mgl_error err = {0};
    snprintf(number, sizeof number, "%d", capacity);
    text = replaced(text, "1048576", number);
    snprintf(number, sizeof number, "embedded>=%d", signals);
    text = replaced(text, "embedded>=130", number);
    for (int i = 130; i < signals; i++)
        mgl_text_put(&more, embed);
    mgl_text_put(&more, behind);
    text = replaced(text, behind, more.bytes);
    mgl_status status = mgl_schedule_parse(text.bytes, text.length, "signals", &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_text_clear(&more);
    mgl_text_clear(&text);
    return program;
}

static void expect_signals(int signals, int capacity, const char *codes)
{
    char got[64];
    mgl_program *program = signals_program(signals, capacity);
    mgl_verdict verdict = verdict_of(program, NULL);
    ck_assert_str_eq(codes_of(&verdict, got, sizeof got), codes);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}

START_TEST(the_most_signals_of_the_most_positions)
{
    expect_signals(2047, 1 << 20, "accept");
    expect_signals(2048, 1 << 20, "MG205");
}
END_TEST

/* 2,048 signals in (2^31 - 1) / 2,048 epochs, rounded down; the last epoch is for leaving. */
START_TEST(the_most_positions_of_many_signals)
{
    expect_signals(2048, (1 << 20) - 2, "accept");
    expect_signals(2048, (1 << 20) - 1, "MG205");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator bounded");
    TCase *cases = tcase_create("bounded");
    tcase_set_timeout(cases, 110);
    tcase_add_test(cases, columns_of_clears_are_rejected);
    tcase_add_test(cases, planes_of_clears_are_rejected);
    tcase_add_test(cases, steps_of_clears_are_rejected);
    tcase_add_test(cases, fewer_clears_are_proved);
    tcase_add_test(cases, many_users_of_a_slice_are_rejected);
    tcase_add_test(cases, many_waits_are_rejected);
    tcase_add_test(cases, memory_for_the_order_is_bounded);
    tcase_add_test(cases, fewer_clocks_are_proved);
    tcase_add_test(cases, many_signals_are_proved);
    tcase_add_test(cases, the_most_signals_of_the_most_positions);
    tcase_add_test(cases, the_most_positions_of_many_signals);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
