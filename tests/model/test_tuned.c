/*
 * Tests of a model with a tuned entry: the reported facts, the same replies as the default, the
 * requested positions, and that no entry prevents a model from opening.
 */
#include "megalith.h"

#include "base/memory.h"
#include "importer/checkpoint.h"
#include "schedule/tuned/tuned.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = MGL_BINARY_DIR "/tuned-model-XXXXXX";
static const char model_folder[] = MGL_SOURCE_DIR "/tests/models/tales-5m";
static const int32_t prompt[] = {909, 452, 449, 268, 259, 804, 637, 453};
static mgl_error err;

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

static void empty_folder(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    setenv("XDG_DATA_HOME", root, 1);
}

/* An entry for the model on a CPU, with the default config. */
static mgl_tuned entry_for(const char *name)
{
    mgl_checkpoint *checkpoint = NULL;
    mgl_tuned entry = {.dtype = MGL_F32,
                       .kv = MGL_F32,
                       .device = "cpu",
                       .sequences = 1,
                       .capacity_lo = 1,
                       .capacity_hi = 1024,
                       .lowering = MGL_LOWERING_VERSION};
    ck_assert_int_eq(mgl_import(model_folder, &checkpoint, &err), MGL_OK);
    entry.geometry = checkpoint->graph->geometry;
    entry.tied = checkpoint->graph->tied;
    mgl_checkpoint_close(checkpoint);
    ck_assert_int_eq(mgl_target_parse("cpu:1", &entry.target, NULL), MGL_OK);
    mgl_schedule_config_default(&entry.config);
    snprintf(entry.name, sizeof entry.name, "%s", name);
    return entry;
}

static void install(mgl_tuned *entry)
{
    mgl_status status = mgl_tuned_install(entry, NULL, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    mgl_tuned_clear(entry);
}

/* An entry that splits attention in three. */
static void install_splits(const char *name)
{
    mgl_tuned entry = entry_for(name);
    entry.config.splits = 3;
    install(&entry);
}

static void install_move(const char *name, const char *move)
{
    mgl_tuned entry = entry_for(name);
    ck_assert_int_eq(mgl_moves_parse(move, strlen(move), "move", &entry.moves, &err), MGL_OK);
    install(&entry);
}

static const mgl_open_options on_cpu = {.size = sizeof on_cpu, .device = "cpu", .wanted = 20};

static mgl_model *open_with(const mgl_open_options *options)
{
    mgl_model *model = NULL;
    mgl_status status = mgl_model_open(model_folder, options, &model, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    return model;
}

static mgl_model_facts facts_of(const mgl_model *model)
{
    mgl_model_facts facts = {.size = sizeof facts};
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_OK);
    return facts;
}

START_TEST(an_entry_is_taken_and_named)
{
    install_splits("three");
    mgl_model *model = open_with(&on_cpu);
    ck_assert_str_eq(facts_of(model).tuned, "three");
    ck_assert_ptr_null(facts_of(model).note);
    mgl_model_close(model);
}
END_TEST

START_TEST(without_entries_there_is_none)
{
    mgl_model *model = open_with(&on_cpu);
    ck_assert_ptr_null(facts_of(model).tuned);
    ck_assert_ptr_null(facts_of(model).note);
    mgl_model_close(model);
}
END_TEST

START_TEST(it_can_be_rejected)
{
    mgl_open_options options = on_cpu;
    install_splits("three");
    options.no_tuned = 1;
    mgl_model *model = open_with(&options);
    ck_assert_ptr_null(facts_of(model).tuned);
    mgl_model_close(model);
}
END_TEST

/* A config or a schedule determines lowering, so no entry is used. */
START_TEST(a_config_takes_its_place)
{
    char path[256];
    mgl_open_options options = on_cpu;
    install_splits("three");
    snprintf(path, sizeof path, "%s/config.json", root);
    FILE *file = fopen(path, "w");
    fputs("{\"schema\": \"megalith.config/1\"}", file);
    fclose(file);
    options.config = path;
    mgl_model *model = open_with(&options);
    ck_assert_ptr_null(facts_of(model).tuned);
    mgl_model_close(model);
}
END_TEST

START_TEST(what_is_for_others_is_not_taken)
{
    mgl_tuned entry = entry_for("others");
    entry.sequences = 2;
    install(&entry);
    mgl_model *model = open_with(&on_cpu);
    ck_assert_ptr_null(facts_of(model).tuned);
    ck_assert_ptr_null(facts_of(model).note);
    mgl_model_close(model);
}
END_TEST

/* The reply of at most `most` tokens. Release with mgl_result_clear. */
static mgl_result reply(mgl_model *model, int32_t most)
{
    mgl_result result = {.size = sizeof result};
    mgl_request request = {.size = sizeof request,
                           .prompt = prompt,
                           .prompt_count = 8,
                           .max_tokens = most,
                           .ignore_eos = true};
    mgl_status status = mgl_model_generate(model, &request, NULL, NULL, &result, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    return result;
}

/* Its program has 256 positions, of which replies can use 20. */
START_TEST(replies_are_those_of_the_default)
{
    mgl_open_options plain = on_cpu;
    install_splits("three");
    plain.no_tuned = 1;
    mgl_model *a = open_with(&on_cpu), *b = open_with(&plain);
    mgl_model_facts with = facts_of(a), without = facts_of(b);
    mgl_result x = reply(a, 100), y = reply(b, 100);
    ck_assert_int_eq(with.capacity, 20);
    ck_assert_int_eq(without.capacity, 20);
    ck_assert_uint_eq(with.cache_bytes * 20, without.cache_bytes * 256);
    ck_assert_uint_eq(x.output.count, 12);
    ck_assert_int_eq(x.stop, MGL_STOP_LENGTH);
    ck_assert_uint_eq(y.output.count, 12);
    ck_assert(!memcmp(x.output.ids, y.output.ids, 12 * sizeof(int32_t)));
    mgl_result_clear(&x);
    mgl_result_clear(&y);
    mgl_model_close(a);
    mgl_model_close(b);
}
END_TEST

START_TEST(a_longer_prompt_is_rejected_as_without)
{
    install_splits("three");
    mgl_open_options options = on_cpu;
    mgl_result result = {.size = sizeof result};
    mgl_request request = {
        .size = sizeof request, .prompt = prompt, .prompt_count = 8, .max_tokens = 1};
    options.wanted = 7;
    mgl_model *model = open_with(&options);
    ck_assert_str_eq(facts_of(model).tuned, "three");
    ck_assert_int_eq(mgl_model_generate(model, &request, NULL, NULL, &result, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "7 positions"));
    mgl_model_close(model);
}
END_TEST

START_TEST(a_capacity_that_is_given_is_not_rounded)
{
    install_splits("three");
    mgl_open_options options = on_cpu, plain = on_cpu;
    options.capacity = plain.capacity = 20;
    plain.no_tuned = 1;
    mgl_model *a = open_with(&options), *b = open_with(&plain);
    ck_assert_str_eq(facts_of(a).tuned, "three");
    ck_assert_uint_eq(facts_of(a).cache_bytes, facts_of(b).cache_bytes);
    mgl_model_close(a);
    mgl_model_close(b);
}
END_TEST

/* If the next larger step exceeds the entry, the requested number may still fit. */
START_TEST(an_entry_may_be_for_the_exact_number)
{
    mgl_tuned entry = entry_for("small");
    entry.capacity_hi = 255;
    install(&entry);
    mgl_model *model = open_with(&on_cpu);
    ck_assert_str_eq(facts_of(model).tuned, "small");
    mgl_model_close(model);
}
END_TEST

/* Memory suffices for 20 positions, but not for 256. */
START_TEST(positions_that_nobody_asked_for_take_no_memory)
{
    mgl_open_options plain = on_cpu;
    install_splits("three");
    plain.no_tuned = 1;
    mgl_model *model = open_with(&plain);
    mgl_model_facts facts = facts_of(model);
    mgl_model_close(model);
    mgl_memory_pretend(facts.memory_bytes + facts.cache_bytes + facts.scratch_bytes + 500000);
    model = open_with(&on_cpu);
    mgl_memory_pretend(0);
    ck_assert_str_eq(facts_of(model).tuned, "three");
    ck_assert_uint_eq(facts_of(model).cache_bytes, facts.cache_bytes);
    ck_assert_ptr_null(facts_of(model).note);
    mgl_model_close(model);
}
END_TEST

/* The entry is only for 256 positions, for which memory does not suffice: the entry is not used. */
START_TEST(an_entry_without_memory_is_left_out)
{
    mgl_open_options plain = on_cpu;
    mgl_tuned entry = entry_for("large");
    entry.capacity_lo = 256;
    install(&entry);
    plain.no_tuned = 1;
    mgl_model *model = open_with(&plain);
    mgl_model_facts facts = facts_of(model);
    mgl_model_close(model);
    mgl_memory_pretend(facts.memory_bytes + facts.cache_bytes + facts.scratch_bytes + 500000);
    model = open_with(&on_cpu);
    mgl_memory_pretend(0);
    ck_assert_ptr_null(facts_of(model).tuned);
    ck_assert_ptr_nonnull(strstr(facts_of(model).note, "large"));
    mgl_result result = reply(model, 5);
    ck_assert_uint_eq(result.output.count, 5);
    mgl_result_clear(&result);
    mgl_model_close(model);
}
END_TEST

START_TEST(a_model_without_memory_says_what_the_default_needs)
{
    mgl_model *model = NULL;
    install_splits("three");
    mgl_memory_pretend(100000);
    ck_assert_int_eq(mgl_model_open(model_folder, &on_cpu, &model, &err), MGL_NO_MEMORY);
    mgl_memory_pretend(0);
    ck_assert_ptr_null(model);
    ck_assert_ptr_nonnull(strstr(err.message, "GB"));
}
END_TEST

/* The second entry is tried, whatever is wrong with the first. */
static void expect_second(const char *says)
{
    install_splits("second");
    mgl_model *model = open_with(&on_cpu);
    mgl_model_facts facts = facts_of(model);
    ck_assert_str_eq(facts.tuned, "second");
    ck_assert_ptr_nonnull(facts.note);
    ck_assert_msg(strstr(facts.note, says) != NULL, "%s", facts.note);
    ck_assert_ptr_null(strchr(facts.note, '\n'));
    mgl_model_close(model);
}

START_TEST(a_move_that_does_not_fit)
{
    install_move("first", "rows layer=3 step=o from=12 to=13 count=1");
    expect_second("tuned entry first is ignored: rows layer=3 step=o");
}
END_TEST

START_TEST(a_program_that_is_rejected)
{
    install_move("first", "shift layer=0 step=o from=0 count=1");
    expect_second("tuned entry first is ignored: MG");
}
END_TEST

START_TEST(a_config_that_lowering_rejects)
{
    mgl_tuned entry = entry_for("first");
    entry.config.queues[MGL_STEP_QKV].first = 5;
    entry.config.queues[MGL_STEP_QKV].count = 1;
    install(&entry);
    expect_second("tuned entry first is ignored: ");
}
END_TEST

START_TEST(a_damaged_file)
{
    char path[256];
    install_splits("first");
    snprintf(path, sizeof path, "%s/megalith/tuned/first.json", root);
    FILE *file = fopen(path, "w");
    fputs("{\"schema\": ", file);
    fclose(file);
    expect_second("first.json");
}
END_TEST

START_TEST(what_is_compiled_keeps_it)
{
    char path[256];
    mgl_model *model = NULL;
    mgl_compile_report report = {.size = sizeof report};
    mgl_compile_options options = {.size = sizeof options, .target = "cpu:1", .capacity = 64};
    install_move("first", "rows layer=3 step=o from=12 to=13 count=1");
    install_splits("second");
    snprintf(path, sizeof path, "%s/model.mega", root);
    ck_assert_int_eq(mgl_model_compile(model_folder, &options, path, &report, &err), MGL_OK);
    ck_assert_str_eq(report.tuned, "second");
    ck_assert_ptr_nonnull(strstr(report.left_out, "first"));
    ck_assert_int_eq(report.capacity, 64);
    ck_assert_int_eq(mgl_model_open(path, NULL, &model, &err), MGL_OK);
    ck_assert_str_eq(facts_of(model).tuned, "second");
    mgl_model_close(model);
    options.no_tuned = 1;
    ck_assert_int_eq(mgl_model_compile(model_folder, &options, path, &report, &err), MGL_OK);
    ck_assert_str_eq(report.tuned, "");
    ck_assert_str_eq(report.left_out, "");
}
END_TEST

/* A failed allocation is an error or has no effect; nothing leaks. */
START_TEST(every_allocation_may_fail)
{
    mgl_model *model = NULL;
    install_move("first", "rows layer=3 step=o from=12 to=13 count=1");
    install_splits("second");
    mgl_alloc_fail_at(0, false);
    mgl_model_close(open_with(&on_cpu));
    uint64_t count = mgl_alloc_count();
    for (uint64_t n = 1; n <= count; n += 1 + n / 40) {
        mgl_alloc_fail_at(n, n % 2);
        mgl_status status = mgl_model_open(model_folder, &on_cpu, &model, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(!status || status == MGL_NO_MEMORY, "%d: %s", status, err.message);
        ck_assert(!status == (model != NULL));
        mgl_model_close(model);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tuned model");
    TCase *unit = tcase_create("tuned");
    if (!mkdtemp(root))
        return EXIT_FAILURE;
    tcase_set_timeout(unit, 100);
    tcase_add_checked_fixture(unit, empty_folder, NULL);
    tcase_add_test(unit, an_entry_is_taken_and_named);
    tcase_add_test(unit, without_entries_there_is_none);
    tcase_add_test(unit, it_can_be_rejected);
    tcase_add_test(unit, a_config_takes_its_place);
    tcase_add_test(unit, what_is_for_others_is_not_taken);
    tcase_add_test(unit, replies_are_those_of_the_default);
    tcase_add_test(unit, a_longer_prompt_is_rejected_as_without);
    tcase_add_test(unit, a_capacity_that_is_given_is_not_rounded);
    tcase_add_test(unit, an_entry_may_be_for_the_exact_number);
    tcase_add_test(unit, positions_that_nobody_asked_for_take_no_memory);
    tcase_add_test(unit, an_entry_without_memory_is_left_out);
    tcase_add_test(unit, a_model_without_memory_says_what_the_default_needs);
    tcase_add_test(unit, a_move_that_does_not_fit);
    tcase_add_test(unit, a_program_that_is_rejected);
    tcase_add_test(unit, a_config_that_lowering_rejects);
    tcase_add_test(unit, a_damaged_file);
    tcase_add_test(unit, what_is_compiled_keeps_it);
    tcase_add_test(unit, every_allocation_may_fail);
    suite_add_tcase(suite, unit);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
