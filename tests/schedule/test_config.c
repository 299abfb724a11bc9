/* Tests of ScheduleConfig: defaults, ranges, canonical form, and invalid configs. */
#include "support.h"

#include <stdio.h>

static mgl_status parse(const char *text, mgl_schedule_config *out, mgl_error *err)
{
    return mgl_schedule_config_parse(text, strlen(text), "config.json", out, err);
}

static bool equal(const mgl_schedule_config *a, const mgl_schedule_config *b)
{
    bool same = a->rows == b->rows && a->splits == b->splits && a->exchange == b->exchange &&
                a->exchange_precision == b->exchange_precision && a->merge == b->merge &&
                a->share == b->share && a->page_bytes == b->page_bytes &&
                a->ring_pages == b->ring_pages && a->warps == b->warps &&
                a->stage_bytes == b->stage_bytes && a->flight_bytes == b->flight_bytes &&
                a->pending_bytes == b->pending_bytes && a->prefetch_bytes == b->prefetch_bytes;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        same = same && a->queues[i].first == b->queues[i].first &&
               a->queues[i].count == b->queues[i].count;
    return same;
}

START_TEST(defaults_print_as_the_golden)
{
    mgl_text golden = fixture("tests/schedule/golden/config_default.json"), text = {0};
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    mgl_schedule_config_print(&config, &text);
    ck_assert_str_eq(text.bytes, golden.bytes);
    mgl_text_clear(&text);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(nothing_said_is_the_default)
{
    mgl_schedule_config config, preset;
    mgl_schedule_config_default(&preset);
    ck_assert_int_eq(parse("{\"schema\":\"megalith.config/1\"}", &config, NULL), MGL_OK);
    ck_assert(equal(&config, &preset));
    ck_assert_int_eq(
        parse("{\"schema\":\"megalith.config/1\",\"queues\":{\"o\":{}}}", &config, NULL), MGL_OK);
    ck_assert(equal(&config, &preset));
}
END_TEST

START_TEST(canonical_form_round_trips)
{
    static const char *const paths[] = {"tests/schedule/golden/config_default.json",
                                        "tests/schedule/golden/config_other.json"};
    mgl_text golden = fixture(paths[_i]), text = {0};
    mgl_schedule_config config;
    mgl_error err = {0};
    mgl_status status = parse(golden.bytes, &config, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_schedule_config_print(&config, &text);
    ck_assert_str_eq(text.bytes, golden.bytes);
    mgl_text_clear(&text);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(fields_are_what_the_text_says)
{
    mgl_schedule_config config;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_config_read(
        MGL_SOURCE_DIR "/tests/schedule/golden/config_other.json", &config, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_int_eq(config.rows, 1);
    ck_assert_int_eq(config.splits, 64);
    ck_assert_int_eq(config.exchange, MGL_EXCHANGE_FLAGS);
    ck_assert_int_eq(config.page_bytes, 2560);
    ck_assert_int_eq(config.ring_pages, 64);
    ck_assert_int_eq(config.warps, 16);
    ck_assert_int_eq(config.stage_bytes, 131072);
    ck_assert_int_eq(config.flight_bytes, 1048576);
    ck_assert_int_eq(config.pending_bytes, 2048);
    ck_assert_int_eq(config.prefetch_bytes, 131072);
    ck_assert_int_eq(config.queues[MGL_STEP_ATTEND].first, 64);
    ck_assert_int_eq(config.queues[MGL_STEP_DOWN].count, 255);
}
END_TEST

/* key, value, is it in range? */
static const struct {
    const char *key;
    long value;
    bool good;
} ranges[] = {
    {"rows", -1, false},
    {"rows", 0, true},
    {"rows", 1, true},
    {"rows", 16, true},
    {"rows", 17, false},
    {"splits", -1, false},
    {"splits", 0, true},
    {"splits", 64, true},
    {"splits", 65, false},
    {"exchange", -1, false},
    {"exchange", 0, true},
    {"exchange", 2, true},
    {"exchange", 3, false},
    {"exchange_precision", -1, false},
    {"exchange_precision", 0, true},
    {"exchange_precision", 3, true},
    {"exchange_precision", 4, false},
    {"page_bytes", 1536, false},
    {"page_bytes", 2048, true},
    {"page_bytes", 65536, true},
    {"page_bytes", 66048, false},
    {"page_bytes", 2049, false},
    {"page_bytes", 2560, true},
    {"ring_pages", 0, true},
    {"ring_pages", 1, false},
    {"ring_pages", 2, true},
    {"ring_pages", 64, true},
    {"ring_pages", 65, false},
    {"warps", 0, false},
    {"warps", 1, true},
    {"warps", 16, true},
    {"warps", 17, false},
    {"stage_bytes", 0, true},
    {"stage_bytes", 1024, true},
    {"stage_bytes", 131072, true},
    {"stage_bytes", 512, false},
    {"stage_bytes", -1024, false},
    {"stage_bytes", 132096, false},
    {"flight_bytes", 0, false},
    {"flight_bytes", 2048, true},
    {"flight_bytes", 1049088, false},
    {"pending_bytes", 0, true},
    {"pending_bytes", 512, false},
    {"pending_bytes", 1048576, true},
    {"pending_bytes", 2049, false},
    {"prefetch_bytes", 0, true},
    {"prefetch_bytes", 512, false},
    {"prefetch_bytes", 131072, true},
};

START_TEST(a_knob_has_a_range)
{
    char text[128];
    mgl_schedule_config config = {.rows = -7};
    mgl_error err = {0};
    snprintf(text, sizeof text, "{\"schema\":\"megalith.config/1\",\"%s\":%ld}", ranges[_i].key,
             ranges[_i].value);
    mgl_status status = parse(text, &config, &err);
    ck_assert_int_eq(status, ranges[_i].good ? MGL_OK : MGL_BAD_INPUT);
    if (!ranges[_i].good) {
        ck_assert_msg(strstr(err.message, ranges[_i].key) || strstr(err.where, ranges[_i].key),
                      "%s: %s", err.where, err.message);
        ck_assert_int_eq(config.rows, -7);
    }
}
END_TEST

#define SCHEMA "\"schema\":\"megalith.config/1\""
static const struct {
    const char *text, *says;
} bad[] = {
    {"[]", "a ScheduleConfig is a JSON object"},
    {"{}", "add \"schema\": \"megalith.config/1\""},
    {"{\"schema\":\"megalith.config/2\"}",
     "must be \"megalith.config/1\", not \"megalith.config/2\""},
    {"{" SCHEMA ",\"row\":1}",
     "unknown key \"row\"; known keys: schema, rows, second_rows, gamma_scaled, warpgroups, "
     "splits, "
     "exchange, "
     "exchange_precision, "
     "merge, share, unsplit, page_bytes, ring_pages, warps, stage_bytes, flight_bytes, "
     "pending_bytes, prefetch_bytes, queues"},
    {"{" SCHEMA ",\"queues\":{\"kqv\":{}}}",
     "unknown key \"queues.kqv\"; known keys: qkv, attend, o, gate_up, down, head"},
    {"{" SCHEMA ",\"queues\":{\"o\":{\"last\":1}}}",
     "unknown key \"queues.o.last\"; known keys: first, count"},
    {"{" SCHEMA ",\"page_bytes\":5000}", "a multiple of 512"},
    {"{" SCHEMA ",\"splits\":99999999999}",
     "must be 0 or a whole number between 1 and 64, not 99999999999"},
    {"{" SCHEMA ",\"queues\":{\"o\":{\"first\":200,\"count\":57}}}", "must end at queue 255"},
};

START_TEST(rejections_say_what_to_do)
{
    mgl_schedule_config config;
    mgl_error err = {0};
    ck_assert_int_eq(parse(bad[_i].text, &config, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, bad[_i].says) != NULL, "%s", err.message);
    ck_assert_ptr_nonnull(strstr(err.where, "config.json"));
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_text golden = fixture("tests/schedule/golden/config_other.json");
    mgl_schedule_config config;
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(parse(golden.bytes, &config, NULL), MGL_OK);
    uint64_t count = mgl_alloc_count();
    ck_assert_uint_gt(count, 10);
    for (uint64_t n = 1; n <= count; n++) {
        mgl_error err = {0};
        mgl_alloc_fail_at(n, false);
        mgl_status status = parse(golden.bytes, &config, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, MGL_NO_MEMORY);
    }
    mgl_text_clear(&golden);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule config");
    TCase *cases = tcase_create("config");
    tcase_add_test(cases, defaults_print_as_the_golden);
    tcase_add_test(cases, nothing_said_is_the_default);
    tcase_add_loop_test(cases, canonical_form_round_trips, 0, 2);
    tcase_add_test(cases, fields_are_what_the_text_says);
    tcase_add_loop_test(cases, a_knob_has_a_range, 0, (int)(sizeof ranges / sizeof *ranges));
    tcase_add_loop_test(cases, rejections_say_what_to_do, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(cases, every_allocation_may_fail);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
