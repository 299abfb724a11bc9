/*
 * Tests of the winners' check on a real checkpoint at the end of a CPU campaign. The model is
 * trained, and the workers are this test, started again. Also tests the verdict on the measured
 * accuracy.
 */
#include "tests/autotune/store/store_support.h"

#include "autotune/answers/answer.h"
#include "autotune/report/report.h"
#include "autotune/tune.h"
#include "tests/sanitized.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAINED MGL_SOURCE_DIR "/tests/models/tales-5m"
#define SMALL   MGL_SOURCE_DIR "/tests/models/llama3-rope"

static mgl_store *store;
static mgl_tune tune;
static mgl_answer_final_facts last;
static mgl_text line;
static mgl_error err;

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

/* A kept trial whose program splits attention into another number of parts. */
static void keep(int64_t number)
{
    mgl_candidate made;
    mgl_trial kept = {.number = number, .verdict.outcome = MGL_OUTCOME_OK, .workload_count = 2};
    kept.campaign = tune.record.id;
    kept.proposal.config = tune.subject.start;
    kept.proposal.config.splits = 2 + (int)number;
    ok(mgl_gate_pass(&tune.subject, &kept.proposal, NULL, &made, &err));
    ck_assert_msg(made.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", made.verdict.diagnostic);
    memcpy(kept.digest, made.digest, sizeof kept.digest);
    mgl_candidate_clear(&made);
    ok(mgl_store_add_trial(store, &kept, &err));
}

/* A campaign with this number of kept trials. */
static void begin_with(const char *name, const char *model, int keeps)
{
    const mgl_tune_request request = {.model = model,
                                      .device = "cpu",
                                      .name = name,
                                      .workloads = "ctx=0;batch=1,3",
                                      .capacity = 96,
                                      .proposers = "random"};
    store = store_open(store_at("campaigns.db"));
    ok(mgl_tune_prepare(store, &request, true, &tune, &err));
    for (int i = 1; i <= keeps; i++)
        keep(i);
    mgl_tune_clear(&tune);
    ok(mgl_tune_find(store, name, &tune, &err));
    ck_assert_int_eq(tune.record.incumbent, keeps);
}

static void begin(const char *name, const char *model)
{
    begin_with(name, model, 1);
}

static void teardown(void)
{
    mgl_text_clear(&line);
    mgl_tune_clear(&tune);
    mgl_store_close(store);
    store = NULL;
}

/* Both reports contain these words. */
static void is_reported(const char *words)
{
    mgl_text page = {0}, markdown = {0};
    const mgl_report_options options = {0};
    ok(mgl_report_html(store, &tune.record, &options, &page, &err));
    ok(mgl_report_markdown(store, &tune.record, &markdown, &err));
    ck_assert_ptr_nonnull(strstr(page.bytes, words));
    ck_assert_ptr_nonnull(strstr(markdown.bytes, words));
    mgl_text_clear(&page);
    mgl_text_clear(&markdown);
}

/* Reads the result of the campaign's final check, and its line of text. */
static void read_last(void)
{
    ok(mgl_answer_find_final(store, tune.record.id, &last, &err));
    mgl_text_clear(&line);
    mgl_answer_final_line(&last, &line);
    printf("%s\n", line.bytes);
}

static void end(const char *checkpoint, const char *fault)
{
    mgl_runner *runner;
    const mgl_runner_options options = {
        .subject = &tune.subject, .device = "cpu", .program = "/proc/self/exe", .fault = fault};
    ok(mgl_runner_device_open(&options, &runner, &err));
    const mgl_campaign_options campaign = {.subject = &tune.subject,
                                           .record = &tune.record,
                                           .store = store,
                                           .runner = runner,
                                           .checkpoint = checkpoint};
    mgl_status status = mgl_campaign_measure_final(&campaign, &err);
    runner->close(runner);
    ok(status);
    read_last();
}

/* ---- the end of a campaign ------------------------------------------------------------------- */

START_TEST(a_good_winner_passes)
{
    begin("good", TRAINED);
    end(tune.checkpoint, NULL);
    ck_assert_msg(last.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", last.verdict.diagnostic);
    ck_assert_int_eq(last.number, 1);
    ck_assert(last.real.checked);
    ck_assert_int_eq(last.real.texts, 2 * MGL_REAL_TEXTS);
    ck_assert_double_gt(last.real.nll, 0);
    ck_assert_double_eq_tol(last.real.nll, last.real.nll_default, MGL_REAL_NLL);
    ck_assert_ptr_nonnull(strstr(line.bytes, "; on the real checkpoint "));
    ok(mgl_answer_check_final(store, &tune.record, &err));
    is_reported("; on the real checkpoint 0 of 32 replies differ, ");
}
END_TEST

/* With biases, or with norms of q and k. */
START_TEST(a_winner_of_a_family_passes)
{
    static const struct {
        const char *name, *path;
    } families[] = {{"biased", MGL_SOURCE_DIR "/tests/models/qwen2"},
                    {"normed", MGL_SOURCE_DIR "/tests/models/qwen3"}};
    begin(families[_i].name, families[_i].path);
    end(tune.checkpoint, NULL);
    ck_assert_msg(last.verdict.outcome == MGL_OUTCOME_UNMEASURED, "%s", last.verdict.diagnostic);
    ck_assert(last.real.checked);
}
END_TEST

static const struct {
    const char *fault;
    mgl_outcome outcome;
    const char *says;
} faults[] = {
    {"real:wrong_token", MGL_OUTCOME_MODEL_MISMATCH, "prompt 0, step 0: the winner makes token"},
    {"real:no_token", MGL_OUTCOME_MODEL_MISMATCH, "vocabulary of 913"},
    {"real:wrong_logits", MGL_OUTCOME_MODEL_MISMATCH, "nats a token, and the default"},
    {"real:nan", MGL_OUTCOME_MODEL_MISMATCH, "nan nats a token"},
    {"real:crash", MGL_OUTCOME_ILLEGAL_ADDRESS, "signal 11"},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static mgl_status take_entry(void *user, const mgl_tuned *entry, mgl_error *e)
{
    (void)user, (void)entry, (void)e;
    return MGL_OK;
}

START_TEST(a_wrong_winner_is_for_nobody)
{
    char name[32];
    mgl_text archive = {0};
    snprintf(name, sizeof name, "wrong-%d", _i);
    begin(name, SMALL);
    end(tune.checkpoint, faults[_i].fault);
    ck_assert_msg(last.verdict.outcome == faults[_i].outcome, "%s: %s",
                  mgl_outcome_name(last.verdict.outcome), last.verdict.diagnostic);
    ck_assert_msg(strstr(last.verdict.diagnostic, faults[_i].says) != NULL, "%s",
                  last.verdict.diagnostic);
    ck_assert_double_eq(last.all.us, 0);
    ck_assert_ptr_nonnull(strstr(line.bytes, mgl_outcome_name(faults[_i].outcome)));
    is_reported(faults[_i].says);
    ck_assert_int_eq(mgl_tune_entries(store, name, take_entry, NULL, &err), MGL_GATE);
    ck_assert_int_eq(mgl_archive_write(store, name, &archive, &err), MGL_GATE);
    ck_assert_uint_eq(archive.length, 0);
    ck_assert_ptr_nonnull(strstr(err.message, mgl_outcome_name(faults[_i].outcome)));
    mgl_text_clear(&archive);
}
END_TEST

/* The run was killed after the verdict on the final check. The next run first quarantines the wrong
 * trial. */
START_TEST(a_campaign_that_goes_on_stands_on_what_is_right)
{
    mgl_trial wrong;
    begin_with("back", SMALL, 2);
    end(tune.checkpoint, "real:wrong_token");
    ck_assert_int_eq(last.number, 2);
    ck_assert_int_eq(last.verdict.outcome, MGL_OUTCOME_MODEL_MISMATCH);
    ok(mgl_tune_run(&tune, &(mgl_tune_run_options){.max_trials = 3}, &err));
    read_last();
    ck_assert_int_eq(last.number, 1);
    ck_assert_int_eq(last.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert(last.real.checked);
    ck_assert_int_eq(tune.record.incumbent, 1);
    ck_assert_int_eq(tune.record.trials, 3);
    ok(mgl_store_get_trial(store, tune.record.id, 2, false, &wrong, &err));
    ck_assert_int_eq(wrong.verdict.outcome, MGL_OUTCOME_MODEL_MISMATCH);
    ck_assert_int_gt(wrong.quarantined, 0);
    mgl_trial_clear(&wrong);
    is_reported("trial 2, which was kept, is wrong: MODEL");
    ok(mgl_answer_check_final(store, &tune.record, &err));
}
END_TEST

START_TEST(another_model_is_not_looked_at)
{
    begin("other", SMALL);
    end(TRAINED, NULL);
    ck_assert(!last.real.checked);
    ck_assert_ptr_nonnull(strstr(last.real.note, "another shape"));
    ck_assert_ptr_nonnull(strstr(line.bytes, "; not run on the real checkpoint: "));
    ck_assert_int_eq(last.verdict.outcome, MGL_OUTCOME_UNMEASURED);
}
END_TEST

START_TEST(without_a_checkpoint_nothing_is_claimed)
{
    begin("none", SMALL);
    end(NULL, NULL);
    ck_assert(!last.real.checked);
    ck_assert_str_eq(last.real.note, "");
    ck_assert_ptr_null(strstr(line.bytes, "checkpoint"));
}
END_TEST

/* As the command line does: the checkpoint's path is read from the store and never printed. */
START_TEST(a_campaign_that_goes_on_finds_its_checkpoint)
{
    mgl_json_out out = {0};
    begin("found", SMALL);
    ck_assert_str_eq(strrchr(tune.checkpoint, '/'), "/llama3-rope");
    ok(mgl_tune_run(&tune, &(mgl_tune_run_options){.max_trials = 1}, &err));
    read_last();
    ck_assert(last.real.checked);
    mgl_json_out_begin(&out, "test");
    ok(mgl_answer_final(&out, store, tune.record.id, &err));
    ck_assert_ptr_nonnull(strstr(out.text.bytes, "\"nll_default\""));
    ck_assert_ptr_null(strstr(out.text.bytes, "llama3"));
    mgl_text_clear(&out.text);
}
END_TEST

START_TEST(a_shape_has_no_checkpoint)
{
    const mgl_tune_request request = {
        .shape = "llama-1b", .device = "none", .name = "shape", .workloads = "ctx=0;batch=1"};
    store = store_open(store_at("campaigns.db"));
    ok(mgl_tune_prepare(store, &request, true, &tune, &err));
    ck_assert_ptr_null(tune.checkpoint);
}
END_TEST

/* ---- comparing ------------------------------------------------------------------------------- */

static mgl_real_texts texts;
static mgl_real_numbers numbers;
static mgl_real_facts facts;
static mgl_trial_verdict verdict;

/* Two programs that agree. */
static void agree(void)
{
    texts = (mgl_real_texts){.length = MGL_REAL_LENGTH};
    facts = (mgl_real_facts){0};
    for (int i = 0; i < MGL_REAL_TEXTS * MGL_REAL_LENGTH; i++)
        for (int side = 0; side < MGL_SIDES; side++) {
            numbers.made[side][i] = i % 7;
            numbers.scores[side][i] = numbers.of_made[side][i] = -2;
        }
}

static mgl_outcome compare(bool changes_format)
{
    mgl_real_compare(&texts, &numbers, 1, changes_format, &facts, &verdict);
    return verdict.outcome;
}

/* One token of the candidate's reply differs from the default's. The default's log-probability of
 * it is lower by `gap`. */
static void part(float gap)
{
    enum { AT = 2 * MGL_REAL_LENGTH + 30 };
    agree();
    numbers.made[MGL_CANDIDATE][AT] = 9;
    numbers.of_made[MGL_CANDIDATE][AT] -= gap;
}

static void shift(float nll)
{
    agree();
    for (int i = 0; i < MGL_REAL_TEXTS * MGL_REAL_LENGTH; i++)
        numbers.scores[MGL_CANDIDATE][i] -= nll;
}

START_TEST(equal_programs_agree)
{
    agree();
    ck_assert_int_eq(compare(false), MGL_OUTCOME_OK);
    ck_assert_int_eq(facts.parted, 0);
    ck_assert_double_eq_tol(facts.nll, 2, 1e-9);
}
END_TEST

START_TEST(near_tokens_may_part)
{
    part(0.39f);
    ck_assert_int_eq(compare(false), MGL_OUTCOME_OK);
    ck_assert_int_eq(facts.parted, 1);
    part(0.41f);
    ck_assert_int_eq(compare(false), MGL_OUTCOME_MODEL_MISMATCH);
    ck_assert_ptr_nonnull(
        strstr(verdict.diagnostic, "prompt 2, step 14: the winner makes token 9"));
    part(NAN);
    ck_assert_int_eq(compare(false), MGL_OUTCOME_MODEL_MISMATCH);
}
END_TEST

START_TEST(likelihoods_may_differ_by_rounding)
{
    shift(0.0059f);
    ck_assert_int_eq(compare(false), MGL_OUTCOME_OK);
    shift(0.0061f);
    ck_assert_int_eq(compare(false), MGL_OUTCOME_MODEL_MISMATCH);
    shift(-0.0061f); /* a too good result is wrong too */
    ck_assert_int_eq(compare(false), MGL_OUTCOME_MODEL_MISMATCH);
}
END_TEST

START_TEST(other_formats_have_more_room)
{
    part(0.44f);
    ck_assert_int_eq(compare(true), MGL_OUTCOME_OK);
    part(0.46f);
    ck_assert_int_eq(compare(true), MGL_OUTCOME_MODEL_MISMATCH);
    shift(0.0067f);
    ck_assert_int_eq(compare(true), MGL_OUTCOME_OK);
    shift(0.0068f);
    ck_assert_int_eq(compare(true), MGL_OUTCOME_MODEL_MISMATCH);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    Suite *suite = suite_create("real");
    TCase *tests = tcase_create("real");
    store_make_folder();
    tcase_set_timeout(tests, 100);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, a_good_winner_passes);
    tcase_add_loop_test(tests, a_winner_of_a_family_passes, 0, BY_SANITIZER(2, 0));
    tcase_add_loop_test(tests, a_wrong_winner_is_for_nobody, 0, BY_SANITIZER(FAULTS, 1));
    if (!MGL_SANITIZED)
        tcase_add_test(tests, a_campaign_that_goes_on_stands_on_what_is_right);
    tcase_add_test(tests, another_model_is_not_looked_at);
    tcase_add_test(tests, without_a_checkpoint_nothing_is_claimed);
    tcase_add_test(tests, a_campaign_that_goes_on_finds_its_checkpoint);
    tcase_add_test(tests, a_shape_has_no_checkpoint);
    tcase_add_test(tests, equal_programs_agree);
    tcase_add_test(tests, near_tokens_may_part);
    tcase_add_test(tests, likelihoods_may_differ_by_rounding);
    tcase_add_test(tests, other_formats_have_more_room);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    store_remove_folder();
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
