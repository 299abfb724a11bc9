/* Tests of old names: old names of knobs, ops, variants, dimensions, units and words of the text
 * form are read, and new names are written. */
#include "autotune/kernels/gates/unit.h"
#include "autotune/kernels/methods/transformation.h"
#include "base/aliases.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "instructions/operands.h"
#include "schedule/expression.h"
#include "schedule/knobs.h"
#include "schedule/schedule.h"
#include "schedule/tuned/tuned.h"
#include "schedule/variants.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    mgl_alias_class kind;
    const char *old_name, *new_name;
} rows[] = {
#define MGL_ALIAS(KIND, old_name, new_name) {MGL_ALIAS_##KIND, old_name, new_name},
#include "base/aliases.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

START_TEST(an_old_name_has_its_new_name)
{
    const char *old_name = rows[_i].old_name, *new_name = rows[_i].new_name;
    ck_assert_str_eq(mgl_alias_new(rows[_i].kind, old_name, strlen(old_name)), new_name);
    ck_assert_str_eq(mgl_alias_published(rows[_i].kind, new_name), old_name);
    ck_assert_ptr_null(mgl_alias_new(rows[_i].kind, new_name, strlen(new_name)));
    ck_assert_ptr_null(mgl_alias_new(rows[_i].kind, old_name, strlen(old_name) - 1));
    ck_assert_ptr_eq(mgl_alias_published(rows[_i].kind, old_name), old_name);
}
END_TEST

START_TEST(readers_take_both)
{
    const char *old_name = rows[_i].old_name, *new_name = rows[_i].new_name;
    mgl_op op[2];
    mgl_variant variant[2];
    switch (rows[_i].kind) {
    case MGL_ALIAS_OP:
        ck_assert(mgl_op_parse(old_name, strlen(old_name), &op[0]));
        ck_assert(mgl_op_parse(new_name, strlen(new_name), &op[1]));
        ck_assert_int_eq(op[0], op[1]);
        ck_assert_str_eq(mgl_op_get(op[0])->name, new_name);
        break;
    case MGL_ALIAS_VARIANT:
        ck_assert(mgl_variant_parse(old_name, strlen(old_name), &variant[0]));
        ck_assert(mgl_variant_parse(new_name, strlen(new_name), &variant[1]));
        ck_assert_int_eq(variant[0], variant[1]);
        ck_assert_str_eq(mgl_variant_get(variant[0])->name, new_name);
        break;
    case MGL_ALIAS_KNOB:
        ck_assert_int_ge(mgl_knob_find(old_name), 0);
        ck_assert_int_eq(mgl_knob_find(old_name), mgl_knob_find(new_name));
        ck_assert_str_eq(mgl_knob_name(mgl_knob_find(old_name)), new_name);
        break;
    case MGL_ALIAS_UNIT:
        ck_assert_ptr_nonnull(mgl_kernel_unit_find(old_name));
        ck_assert_ptr_eq(mgl_kernel_unit_find(old_name), mgl_kernel_unit_find(new_name));
        ck_assert_str_eq(mgl_kernel_unit_find(old_name)->name, new_name);
        break;
    case MGL_ALIAS_DIMENSION: {
        mgl_expression e;
        ck_assert_int_eq(mgl_expression_parse(old_name, &new_name, 1, &e, NULL), MGL_OK);
        ck_assert_int_eq(mgl_expression_parse(old_name, &old_name, 1, &e, NULL), MGL_OK);
        break;
    }
    case MGL_ALIAS_WORD:    /* below */
    case MGL_ALIAS_KEY:     /* below */
    case MGL_ALIAS_SCHEMA:  /* tests/autotune/kernels/methods: log, transformation, version */
    case MGL_ALIAS_VERSION: /* tests/autotune/kernels/methods/test_version.c */
    case MGL_ALIAS_TIME:    /* tests/tools/show.c */
    case MGL_ALIAS_EVENT:   /* tests/autotune/report/test_report.c */
    case MGL_ALIAS_FLAG:    /* tests/cli/test_micro.c */
    case MGL_ALIAS_VERB:    /* tests/cli/test_kernel_loop.c */
    case MGL_ALIAS_FILE:    /* tests/autotune/store/test_keeper.c */
    case MGL_ALIAS_ARGUMENT:
    case MGL_ALIAS_TOOL: /* tests/autotune/mcp/transcripts */
        break;
    }
}
END_TEST

/* Tuned entries with old knob names and without younger knobs, and their digests as published. */
static const struct {
    const char *file, *digest;
} published[] = {
    {"llama-1b-h200-2048-batch8",
     "9192827a42aa4f771981129b7c23039d63ffdf24a16da20173620989c1b5734a"},
    {"qwen2.5-0.5b-h200-4096", "a52a3778408383cf1042578b39eb9a2a6baffbfc2194bdf6472ccedf5e2c8e97"}};

START_TEST(digests_of_tuned_entries_outlive_renamings)
{
    static const char *const folders[] = {"tests/schedule/golden/renamed",
                                          "tests/schedule/golden/published"};
    for (size_t i = 0; i < 2; i++) {
        mgl_text path = {0};
        char *text, digest[MGL_SHA256_HEX];
        size_t length;
        mgl_tuned entry;
        mgl_text_format(&path, MGL_SOURCE_DIR "/%s/%s.json", folders[i], published[_i].file);
        ck_assert_int_eq(mgl_file_read(path.bytes, 1 << 20, &text, &length, NULL), MGL_OK);
        ck_assert_int_eq(mgl_tuned_parse(text, length, path.bytes, &entry, NULL), MGL_OK);
        ck_assert_int_eq(mgl_tuned_digest(&entry, digest, NULL), MGL_OK);
        ck_assert_str_eq(digest, published[_i].digest);
        mgl_tuned_clear(&entry);
        mgl_free(text);
        mgl_text_clear(&path);
    }
}
END_TEST

static mgl_program *program_of(const char *path)
{
    char *text;
    size_t length;
    mgl_program *program;
    mgl_error err;
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &text, &length, NULL), MGL_OK);
    ck_assert_msg(!mgl_schedule_parse(text, length, path, &program, &err), "%s", err.message);
    mgl_free(text);
    return program;
}

/* The same program with current names and with published names. */
START_TEST(a_schedule_with_old_words_is_the_same)
{
    mgl_program *old = program_of(MGL_SOURCE_DIR "/tests/schedule/golden/published/two_lists.mls");
    mgl_program *program =
        program_of(MGL_SOURCE_DIR "/tests/validator/cases/accept_gamma_scaled.mls");
    mgl_text text = {0};
    ck_assert(mgl_program_equal(old, program));
    mgl_schedule_print(old, &text);
    ck_assert_ptr_nonnull(strstr(text.bytes, "\nlimits rows 4 second_rows 16 "));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\nsecond\n"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\nbuffer second.x "));
    ck_assert_ptr_null(strstr(text.bytes, "many"));
    mgl_text_clear(&text);
    mgl_program_free(program);
    mgl_program_free(old);
}
END_TEST

/* A program with two lists whose second list declares `counters`. */
static mgl_status parse_lists(const char *limits, const char *counters, mgl_error *err)
{
    mgl_program *program = NULL;
    mgl_text text = {0};
    mgl_text_format(&text,
                    "megalith 1\n"
                    "target cpu queues 1 shared 0\n"
                    "model hidden 64 layers 1 heads 4 kv_heads 2 head_dim 16 ffn 96 vocab 41 "
                    "eps 1e-05\n"
                    "limits rows 4 %s sequences 2 capacity 32\n"
                    "exec page 2048 ring 4 warps 8 stage 8192\n"
                    "types weights bf16 cache bf16\n"
                    "counter many.first\nqueue 0 tape 0 pad 0\nsecond\n%s\nqueue 0\n",
                    limits, counters);
    mgl_status status = mgl_schedule_parse(text.bytes, text.length, "two.mls", &program, err);
    mgl_program_free(program);
    mgl_text_clear(&text);
    return status;
}

START_TEST(both_words_are_an_error)
{
    mgl_error err;
    ck_assert_int_eq(parse_lists("many 8", "counter many.a\ncounter second.b", &err), MGL_OK);
    ck_assert_int_eq(parse_lists("many 8", "counter many.first", &err), MGL_BAD_INPUT);
    ck_assert_int_eq(parse_lists("second_rows 8", "counter many.a\ncounter second.a", &err),
                     MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "counter `second.a` is declared twice"));
    ck_assert_int_eq(parse_lists("second_rows 8", "counter second.a\ncounter many.a", &err),
                     MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "counter `many.a` is declared twice"));
    ck_assert_int_eq(parse_lists("second_rows 8 many 8", "counter a", &err), MGL_BAD_INPUT);
}
END_TEST

/* A new name that would be too long to read is not written. */
START_TEST(a_long_name_stays)
{
    mgl_error err;
    char counters[512];
    snprintf(counters, sizeof counters, "counter many.%0*d\ncounter many.%0*d", 122, 0, 121, 0);
    ck_assert_int_eq(parse_lists("many 8", counters, &err), MGL_OK);
}
END_TEST

static mgl_status parse(const char *text, mgl_schedule_config *out, mgl_error *err)
{
    return mgl_schedule_config_parse(text, strlen(text), "config.json", out, err);
}

START_TEST(a_config_with_old_keys_is_the_same)
{
    mgl_schedule_config old_config, new_config;
    mgl_text text = {0};
    mgl_error err;
    ck_assert_int_eq(
        parse("{\"schema\":\"megalith.config/1\",\"narrow\":3,\"weighed\":2,\"many\":24}",
              &old_config, &err),
        MGL_OK);
    ck_assert_int_eq(parse("{\"schema\":\"megalith.config/1\",\"exchange_precision\":3,"
                           "\"gamma_scaled\":2,\"second_rows\":24}",
                           &new_config, &err),
                     MGL_OK);
    ck_assert_int_eq(memcmp(&old_config, &new_config, sizeof old_config), 0);
    mgl_schedule_config_print(&old_config, &text);
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"exchange_precision\": 3"));
    ck_assert_ptr_null(strstr(text.bytes, "narrow"));
    text.length = 0;
    mgl_schedule_config_print_published(&old_config, &text);
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"narrow\": 3"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"many\": 24"));
    mgl_text_clear(&text);
}
END_TEST

START_TEST(both_names_are_an_error)
{
    mgl_schedule_config config;
    mgl_error err;
    ck_assert_int_eq(parse("{\"schema\":\"megalith.config/1\",\"narrow\":3,"
                           "\"exchange_precision\":3}",
                           &config, &err),
                     MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "\"narrow\" is the old name of \"exchange_precision\""));
}
END_TEST

/* The key that a reader of stored JSON searches for. */
START_TEST(a_key_has_two_names)
{
    static const struct {
        const char *text, *key; /* key NULL: an error */
    } objects[] = {{"{}", "allow_formats"},
                   {"{\"allow_formats\":true}", "allow_formats"},
                   {"{\"allow_narrow\":true}", "allow_narrow"},
                   {"{\"allow_narrow\":true,\"allow_formats\":true}", NULL}};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        const char *key;
        mgl_json json;
        mgl_error err;
        ck_assert_int_eq(
            mgl_json_parse(objects[i].text, strlen(objects[i].text), 100, "options", &json, NULL),
            MGL_OK);
        mgl_status status =
            mgl_alias_key(MGL_ALIAS_KEY, &json, json.root, "", "allow_formats", &key, &err);
        ck_assert_int_eq(status, objects[i].key ? MGL_OK : MGL_BAD_INPUT);
        if (objects[i].key)
            ck_assert_str_eq(key, objects[i].key);
        else
            ck_assert_str_eq(err.message, "\"allow_narrow\" is the old name of "
                                          "\"allow_formats\", which is given too: leave one out");
        mgl_json_clear(&json);
    }
}
END_TEST

START_TEST(a_name_is_itself_or_its_published_one)
{
    ck_assert(mgl_alias_is(MGL_ALIAS_SCHEMA, "megalith.script/1", "megalith.script/1"));
    ck_assert(mgl_alias_is(MGL_ALIAS_SCHEMA, "megalith.script/1", "megalith.plan/1"));
    ck_assert(!mgl_alias_is(MGL_ALIAS_SCHEMA, "megalith.script/1", "megalith.ledger/1"));
    ck_assert(!mgl_alias_is(MGL_ALIAS_KNOB, "megalith.script/1", "megalith.plan/1"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("aliases");
    TCase *cases = tcase_create("aliases");
    tcase_add_loop_test(cases, an_old_name_has_its_new_name, 0, ROWS);
    tcase_add_loop_test(cases, readers_take_both, 0, ROWS);
    tcase_add_test(cases, a_config_with_old_keys_is_the_same);
    tcase_add_test(cases, both_names_are_an_error);
    tcase_add_test(cases, a_schedule_with_old_words_is_the_same);
    tcase_add_test(cases, both_words_are_an_error);
    tcase_add_test(cases, a_long_name_stays);
    tcase_add_test(cases, a_key_has_two_names);
    tcase_add_test(cases, a_name_is_itself_or_its_published_one);
    tcase_add_loop_test(cases, digests_of_tuned_entries_outlive_renamings, 0, 2);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
