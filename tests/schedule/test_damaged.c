/*
 * Tests of damaged schedule texts and configs (tests/damaged): each is rejected as bad input with
 * the expected message and without a leak. The table contains every file of the folders.
 */
#include "support.h"

#include <stdio.h>

typedef struct damage {
    const char *name, *where, *says;
} damage;

static const damage schedules[] = {
    {"buffer_twice.mls", ":23:8", "buffer `k0` is declared twice"},
    {"buffer_undeclared.mls", "", "no buffer is called `att`"},
    {"byte_order_mark.mls", "", "begins with the byte order mark (BOM) of UTF-8"},
    {"control_byte.mls", ":39:", "found byte 0x1b"},
    {"counter_undeclared.mls", "", "no counter is called `l0.attend`"},
    {"empty.mls", ":1:1", "the text ends here: expected `megalith`"},
    {"future_version.mls", ":1:10", "this is version 2 of the text form; 1 is known"},
    {"lines_joined.mls", "", "expected the end of the line, found `embed`"},
    {"name_endless.mls", ":32:9", "the counter's name is longer than 128 bytes"},
    {"number_huge.mls", ":3:24", "this number is too large: at most 2147483647"},
    {"number_negative.mls", ":40:", "expected the segment's byte on the tape, found `-8192`"},
    {"number_overflow.mls", ":37:14", "this number is too large: at most 9007199254740992"},
    {"op_unknown.mls", "", "unknown op `fuse`; known: enter, embed,"},
    {"operand_lost.mls", "",
     "attend has 6 `in` regions, but only 5 are given: `v_past` is missing"},
    {"queue_missing.mls", "", "expected `tensor`, `buffer`, `counter` or `queue`, found `enter`"},
    {"queue_skipped.mls", "", "queues are numbered in order: this is queue 1"},
    {"range_backwards.mls", "", "the range ends before it starts"},
    {"rank_wrong.mls", "", "`part` has 4 dimensions, this region 3"},
    {"tensor_undeclared.mls", "", "no tensor is called `l0.up`"},
    {"truncated_in_header.mls", "", "the text ends here: expected `exec`"},
    {"truncated_in_string.mls", "", "the string has no closing"},
    {"truncated_in_task.mls", "", "expected `,`, found the end of the line"},
    {"utf16.mls", "", "begins with the byte order mark (BOM) of UTF-16"},
    {"variant_of_nothing.mls", "",
     "unknown variant `skinn` of norm_swiglu; known: general, skinny, batch"},
    {"wrong_kind.mls", ":1:1", "expected `megalith`, found `{`"},
    {"zeros.mls", ":1:1", "expected `megalith`, found byte 0x00"},
};

static const damage configs[] = {
    {"array.json", "", "a ScheduleConfig is a JSON object"},
    {"comment.json", ":1:33", "not valid JSON"},
    {"empty.json", ":1:1", "not valid JSON"},
    {"first_behind.json", ": queues.o.first", "must be between 0 and 255, not 256"},
    {"key_twice.json", "", "the key \"warps\" is given twice"},
    {"latin1.json", ":1:35", "a byte that is not UTF-8"},
    {"no_schema.json", "", "add \"schema\": \"megalith.config/1\""},
    {"other_schema.json", ": schema", "must be \"megalith.config/1\", not \"megalith.run/1\""},
    {"page_multiple.json", ": page_bytes", "a multiple of 512 between 2048 and 65536, not 4097"},
    {"queues_array.json", ": queues", "must be an object"},
    {"rows_fraction.json", ": rows", "must be a whole number"},
    {"rows_huge.json", ": rows", "must be between"},
    {"rows_negative.json", ": rows", "must be 0 or a whole number between 1 and 16, not -1"},
    {"rows_text.json", ": rows", "must be a whole number"},
    {"run_behind.json", ": queues.o", "must end at queue 255, the last there can be, not at 259"},
    {"schema_number.json", ": schema", "must be a string"},
    {"stage_multiple.json", ": stage_bytes", "must be 0 or a multiple of 1024 between 1024"},
    {"step_number.json", ": queues.o", "must be an object"},
    {"trailing.json", ":1:33", "not valid JSON"},
    {"truncated.json", ":1:43", "not valid JSON"},
    {"unknown_key.json", ": ring", "unknown key \"ring\"; known keys: schema, rows,"},
    {"unknown_queue_key.json", ": queues.o.from",
     "unknown key \"queues.o.from\"; known keys: first, count"},
    {"unknown_step.json", ": queues.mlp", "unknown key \"queues.mlp\"; known keys: qkv, attend,"},
    {"wrong_kind.json", ":1:1", "not valid JSON"},
};

typedef struct corpus {
    const damage *cases;
    size_t count;
    bool schedule;
} corpus;

/* Gives both readers the same signature. */
static mgl_status read_file(const corpus *all, const char *path, mgl_error *err)
{
    mgl_schedule_config config;
    mgl_program *program = NULL;
    if (!all->schedule)
        return mgl_schedule_config_read(path, &config, err);
    mgl_status status = mgl_schedule_read(path, &program, err);
    mgl_program_free(program);
    return status;
}

static void check_damage(const char *path, const char *name, void *user)
{
    const corpus *all = user;
    const damage *wanted = NULL;
    mgl_error err = {0};
    char whole[1024];
    for (size_t i = 0; i < all->count; i++)
        if (!strcmp(all->cases[i].name, name))
            wanted = &all->cases[i];
    ck_assert_msg(wanted != NULL, "%s stands in no table", path);
    snprintf(whole, sizeof whole, "%s/%s", MGL_SOURCE_DIR, path);
    mgl_status status = read_file(all, whole, &err);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: status %d, %s", name, status, err.message);
    ck_assert_msg(strstr(err.message, wanted->says) != NULL, "%s: %s", name, err.message);
    ck_assert_msg(strstr(err.where, name) != NULL, "%s: %s", name, err.where);
    ck_assert_msg(strstr(err.where, wanted->where) != NULL, "%s: %s", name, err.where);
    ck_assert_str_ne(err.message, "");
}

START_TEST(schedule_texts)
{
    corpus all = {schedules, sizeof schedules / sizeof *schedules, true};
    int count = each_file("tests/damaged/schedule", check_damage, &all);
    ck_assert_uint_eq((size_t)count, all.count);
}
END_TEST

START_TEST(schedule_configs)
{
    corpus all = {configs, sizeof configs / sizeof *configs, false};
    int count = each_file("tests/damaged/config", check_damage, &all);
    ck_assert_uint_eq((size_t)count, all.count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule damaged");
    TCase *cases = tcase_create("damaged");
    tcase_add_test(cases, schedule_texts);
    tcase_add_test(cases, schedule_configs);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
