/* Tests of search spaces: the default's values, the JSON round trip, and invalid spaces. */
#include "autotune/candidates/space.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SPACE "{\"schema\":\"megalith.space/1\""

static mgl_target target_of(const char *name)
{
    mgl_target target;
    ck_assert_int_eq(mgl_target_parse(name, &target, NULL), MGL_OK);
    return target;
}

static const mgl_knob *find(const mgl_search_space *space, const char *name)
{
    for (int i = 0; i < space->count; i++)
        if (!strcmp(space->knobs[i].name, name))
            return &space->knobs[i];
    return NULL;
}

static mgl_search_space default_of(const char *target, bool exchange_precision)
{
    mgl_search_space space;
    mgl_target t = target_of(target);
    mgl_search_space_default(&t, exchange_precision, &space);
    return space;
}

static mgl_status parse(const char *text, bool exchange_precision, mgl_search_space *out,
                        mgl_error *err)
{
    mgl_target target = target_of("sm_90a:132");
    return mgl_search_space_parse(text, strlen(text), "space.json", &target, exchange_precision,
                                  out, err);
}

/* ---- knobs ----------------------------------------------------------------------------------- */

START_TEST(a_knob_is_found_by_its_name)
{
    ck_assert_int_eq(mgl_knob_find(mgl_knob_name(_i)), _i);
}
END_TEST

START_TEST(a_knob_is_set_and_got)
{
    mgl_schedule_config config = {0}, other = {0};
    mgl_knob_set(&config, _i, 7);
    ck_assert_int_eq(mgl_knob_get(&config, _i), 7);
    ck_assert(memcmp(&config, &other, sizeof config) != 0);
    mgl_knob_set(&config, _i, 0);
    ck_assert_mem_eq(&config, &other, sizeof config);
}
END_TEST

START_TEST(runs_of_queues_are_knobs)
{
    mgl_schedule_config config = {0};
    mgl_knob_set(&config, mgl_knob_find("queues.head.count"), 5);
    mgl_knob_set(&config, mgl_knob_find("queues.qkv.first"), 3);
    ck_assert_int_eq(config.queues[MGL_STEP_HEAD].count, 5);
    ck_assert_int_eq(config.queues[MGL_STEP_QKV].first, 3);
}
END_TEST

START_TEST(there_is_no_such_knob)
{
    ck_assert_int_eq(mgl_knob_find("queues.qkv"), -1);
}
END_TEST

/* ---- the default ----------------------------------------------------------------------------- */

static const char *const targets[] = {"sm_90a:132", "sm_80:1", "cpu:1", "cpu:7", "sm_90a:256"};

START_TEST(the_values_of_a_default_are_allowed)
{
    mgl_search_space space = default_of(targets[_i], true);
    for (int k = 0; k < space.count; k++)
        for (int v = 0; v < space.knobs[k].count; v++) {
            mgl_error err;
            mgl_status status = mgl_knob_check(mgl_knob_find(space.knobs[k].name),
                                               space.knobs[k].values[v], space.knobs[k].name, &err);
            ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
        }
}
END_TEST

START_TEST(the_values_of_a_default_ascend)
{
    mgl_search_space space = default_of(targets[_i], true);
    for (int k = 0; k < space.count; k++)
        for (int v = 1; v < space.knobs[k].count; v++)
            ck_assert_int_lt(space.knobs[k].values[v - 1], space.knobs[k].values[v]);
}
END_TEST

START_TEST(a_default_has_choices_only)
{
    mgl_search_space space = default_of(targets[_i], true);
    for (int k = 0; k < space.count; k++)
        ck_assert_int_gt(space.knobs[k].count, 1);
}
END_TEST

START_TEST(a_default_reads_back)
{
    mgl_search_space space = default_of(targets[_i], true), back;
    mgl_target target = target_of(targets[_i]);
    mgl_text text = {0}, again = {0};
    mgl_error err = {0};
    mgl_search_space_print(&space, &text);
    mgl_status status =
        mgl_search_space_parse(text.bytes, text.length, "space.json", &target, true, &back, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_search_space_print(&back, &again);
    ck_assert_str_eq(again.bytes, text.bytes);
    mgl_text_clear(&text);
    mgl_text_clear(&again);
}
END_TEST

START_TEST(a_gpu_has_every_knob_but_share_and_those_of_rows)
{
    mgl_search_space space = default_of("sm_90a:132", true);
    ck_assert_int_eq(space.count, mgl_knob_count() - 5);
    ck_assert_int_eq(find(&space, "unsplit")->count, 4);
    ck_assert_ptr_null(find(&space, "share"));
    ck_assert_ptr_null(find(&space, "rows"));
    ck_assert_ptr_null(find(&space, "second_rows"));
    ck_assert_ptr_null(find(&space, "gamma_scaled"));
    ck_assert_ptr_null(find(&space, "warpgroups"));
}
END_TEST

START_TEST(number_formats_need_leave)
{
    mgl_search_space space = default_of("sm_90a:132", false);
    ck_assert_ptr_null(find(&space, "exchange_precision"));
    space = default_of("sm_90a:132", true);
    ck_assert(find(&space, "exchange_precision")->changes_format);
}
END_TEST

START_TEST(a_cpu_streams_nothing)
{
    mgl_search_space space = default_of("cpu:4", false);
    ck_assert_ptr_null(find(&space, "page_bytes"));
    ck_assert_ptr_nonnull(find(&space, "splits"));
}
END_TEST

/* A merge in tasks of its own is 0, the default of lowering, so the knob has two values. */
START_TEST(splits_are_merged_in_tasks_of_their_own_or_in_o)
{
    mgl_search_space space = default_of(targets[_i], false);
    const mgl_knob *merge = find(&space, "merge");
    ck_assert_ptr_nonnull(merge);
    ck_assert_int_eq(merge->count, 2);
    ck_assert_int_eq(merge->values[0], 0);
    ck_assert_int_eq(merge->values[1], MGL_MERGE_IN_O);
}
END_TEST

START_TEST(every_move_is_in_it)
{
    mgl_search_space space = default_of("sm_90a:132", false);
    ck_assert_uint_eq(space.moves, (1u << MGL_MOVE_COUNT) - 1);
}
END_TEST

/* A config with values of another space. */
START_TEST(room_is_made_for_a_config)
{
    mgl_search_space space = default_of("sm_90a:132", false);
    const int before = space.count;
    mgl_schedule_config start, config;
    mgl_schedule_config_default(&start);
    config = start;
    config.splits = 5; /* a knob of the space: its values stay as they are */
    config.share = 64;
    config.rows = MGL_MAX_ROWS;
    config.exchange_precision = 3; /* needs allow_formats */
    mgl_search_space_admit(&config, &start, &space);
    ck_assert_int_eq(space.count, before + 2);
    ck_assert_int_eq(find(&space, "share")->count, 2);
    ck_assert_int_eq(find(&space, "share")->values[0], start.share);
    ck_assert_int_eq(find(&space, "share")->values[1], 64);
    ck_assert_ptr_nonnull(find(&space, "rows"));
    ck_assert_ptr_null(find(&space, "exchange_precision"));
    ck_assert_int_eq(find(&space, "splits")->values[5], 8);
    mgl_search_space_admit(&config, &start, &space);
    ck_assert_int_eq(space.count, before + 2);
}
END_TEST

/* Values that change number formats, prompts, or use queues that the target lacks are not added. */
START_TEST(no_room_is_made_for_slow_prompts_or_other_formats)
{
    mgl_search_space space = default_of("sm_90a:132", false), one = default_of("sm_90a:1", false);
    const int before = space.count, queues = one.count;
    mgl_schedule_config start, config;
    mgl_schedule_config_default(&start);
    config = start;
    config.rows = 1;
    config.second_rows = 32;
    config.gamma_scaled = MGL_GAMMA_YES;
    config.warpgroups = MGL_WARPGROUPS_NO;
    mgl_search_space_admit(&config, &start, &space);
    ck_assert_int_eq(space.count, before);
    config = start;
    mgl_knob_set(&config, mgl_knob_find("queues.qkv.first"), 56);
    mgl_search_space_admit(&config, &start, &one);
    ck_assert_int_eq(one.count, queues);
}
END_TEST

/* ---- JSON ------------------------------------------------------------------------------------ */

START_TEST(a_space_is_what_its_text_says)
{
    mgl_search_space space;
    mgl_error err = {0};
    mgl_status status = parse(SPACE ",\"knobs\":{\"page_bytes\":[16384,2560],"
                                    "\"queues.qkv.count\":[0,132]},\"moves\":[\"rows\",\"shift\"]}",
                              false, &space, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_int_eq(space.count, 2);
    ck_assert_int_eq(space.knobs[0].values[0], 2560);
    ck_assert_int_eq(space.knobs[0].values[1], 16384);
    ck_assert_int_eq(find(&space, "queues.qkv.count")->values[1], 132);
    ck_assert_uint_eq(space.moves, 1u << MGL_MOVE_ROWS | 1u << MGL_MOVE_SHIFT);
}
END_TEST

START_TEST(what_is_left_out_is_the_default_s)
{
    mgl_search_space space, whole = default_of("sm_90a:132", false);
    ck_assert_int_eq(parse(SPACE ",\"moves\":[]}", false, &space, NULL), MGL_OK);
    ck_assert_int_eq(space.count, whole.count);
    ck_assert_uint_eq(space.moves, 0);
    ck_assert_int_eq(parse(SPACE ",\"knobs\":{}}", false, &space, NULL), MGL_OK);
    ck_assert_int_eq(space.count, 0);
    ck_assert_uint_eq(space.moves, whole.moves);
}
END_TEST

static const struct {
    const char *text, *says;
} refused[] = {
    {"[]", "a space must be a JSON object"},
    {"{}", "schema"},
    {"{\"schema\":\"megalith.space/2\"}", "must be \"megalith.space/1\""},
    {SPACE ",\"knob\":{}}", "unknown key \"knob\""},
    {SPACE ",\"knobs\":[]}", "object"},
    {SPACE ",\"knobs\":{\"pages\":[1]}}",
     "unknown knob \"pages\"; known: rows, second_rows, gamma_scaled, warpgroups"},
    {SPACE ",\"knobs\":{\"rows\":[1],\"rows\":[2]}}", "rows"},
    {SPACE ",\"knobs\":{\"weighed\":[1],\"gamma_scaled\":[2]}}", "gamma_scaled"},
    {SPACE ",\"knobs\":{\"rows\":1}}", "must be an array"},
    {SPACE ",\"knobs\":{\"rows\":[]}}", "must be an array"},
    {SPACE ",\"knobs\":{\"rows\":[\"1\"]}}", "number"},
    {SPACE ",\"knobs\":{\"rows\":[1.5]}}", "whole number"},
    {SPACE ",\"knobs\":{\"rows\":[17]}}", "must be 0 or a whole number between 1 and 16, not 17"},
    {SPACE ",\"knobs\":{\"rows\":[1,1]}}", "1 is given twice"},
    {SPACE ",\"knobs\":{\"page_bytes\":[4000]}}", "must be a multiple of 512"},
    {SPACE ",\"knobs\":{\"page_bytes\":[0]}}", "must be a multiple of 512"},
    {SPACE ",\"knobs\":{\"exchange_precision\":[1]}}", "--allow-formats"},
    {SPACE ",\"knobs\":{\"queues.o.first\":[132]}}", "within the target's 132 queues"},
    {SPACE ",\"knobs\":{\"queues.o.count\":[133]}}", "within the target's 132 queues"},
    {SPACE ",\"moves\":{}}", "array"},
    {SPACE ",\"moves\":[\"jump\"]}", "unknown move: \"jump\"; known: queues, rows"},
    {SPACE ",\"moves\":[3]}", "unknown move"},
    {SPACE "} 1", ""},
};

START_TEST(a_text_is_rejected)
{
    mgl_search_space space = {.count = 77};
    mgl_error err = {0};
    ck_assert_int_eq(parse(refused[_i].text, false, &space, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, refused[_i].says) || strstr(err.where, refused[_i].says),
                  "%s: %s", err.where, err.message);
    ck_assert_int_eq(space.count, 77);
}
END_TEST

START_TEST(a_knob_has_not_too_many_values)
{
    mgl_text text = {0};
    mgl_search_space space;
    mgl_error err = {0};
    mgl_text_put(&text, SPACE ",\"knobs\":{\"page_bytes\":[2048");
    for (int i = 1; i <= MGL_MAX_KNOB_VALUES; i++)
        mgl_text_format(&text, ",%d", 2048 + 512 * i);
    mgl_text_put(&text, "]}}");
    ck_assert_int_eq(parse(text.bytes, false, &space, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "at most 64 values"));
    mgl_text_clear(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("space");
    TCase *knobs = tcase_create("knobs"), *preset = tcase_create("default"),
          *json = tcase_create("json");
    tcase_add_loop_test(knobs, a_knob_is_found_by_its_name, 0, MGL_KNOB_ROWS);
    tcase_add_loop_test(knobs, a_knob_is_set_and_got, 0, MGL_KNOB_ROWS);
    tcase_add_test(knobs, runs_of_queues_are_knobs);
    tcase_add_test(knobs, there_is_no_such_knob);
    int count = (int)(sizeof targets / sizeof *targets);
    tcase_add_loop_test(preset, the_values_of_a_default_are_allowed, 0, count);
    tcase_add_loop_test(preset, the_values_of_a_default_ascend, 0, count);
    tcase_add_loop_test(preset, a_default_has_choices_only, 0, count);
    tcase_add_loop_test(preset, a_default_reads_back, 0, count);
    tcase_add_test(preset, a_gpu_has_every_knob_but_share_and_those_of_rows);
    tcase_add_test(preset, number_formats_need_leave);
    tcase_add_test(preset, a_cpu_streams_nothing);
    tcase_add_loop_test(preset, splits_are_merged_in_tasks_of_their_own_or_in_o, 0, count);
    tcase_add_test(preset, every_move_is_in_it);
    tcase_add_test(preset, room_is_made_for_a_config);
    tcase_add_test(preset, no_room_is_made_for_slow_prompts_or_other_formats);
    tcase_add_test(json, a_space_is_what_its_text_says);
    tcase_add_test(json, what_is_left_out_is_the_default_s);
    tcase_add_loop_test(json, a_text_is_rejected, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(json, a_knob_has_not_too_many_values);
    suite_add_tcase(suite, knobs);
    suite_add_tcase(suite, preset);
    suite_add_tcase(suite, json);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
