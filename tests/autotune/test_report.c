/* The report: what came from others can show itself and do nothing; it stays small; it says predicted where
 * nothing was measured. */
#include "autotune/report.h"
#include "tests/autotune/campaign_fixture.h"
#include "tests/autotune/store_support.h"

#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 5 << 20 };

static const char evil[] = "<script>alert(1)</script>\"'&\x1b[31m|x`y`";

static mgl_trial make_trial(const fixture *f, int64_t number, mgl_outcome outcome)
{
    mgl_trial trial = {.campaign = f->tune.record.id,
                       .number = number,
                       .outcome = outcome,
                       .p_value = mgl_outcome_is_correct(outcome) ? 0.01 : -1,
                       .gain = 0.02,
                       .gain_lo = 0.01,
                       .gain_hi = 0.03,
                       .predicted_us = 50,
                       .workload_count = 1};
    trial.proposal.proposer = mgl_strdup("evolve");
    trial.proposal.hypothesis = mgl_strdup(evil);
    trial.proposal.config = f->tune.subject.start;
    trial.proposal.config.page_bytes = 4096 + 512 * (int)(number % 50);
    snprintf(trial.diagnostic, sizeof trial.diagnostic, "%s", evil);
    snprintf(trial.digest, sizeof trial.digest, "%064lld", (long long)number);
    trial.workloads[0] = (mgl_workload_result){.error = 1e-3, .error_default = -1, .pairs = 64};
    return trial;
}

static void add(fixture *f, int64_t number, mgl_outcome outcome)
{
    mgl_trial trial = make_trial(f, number, outcome);
    must(mgl_store_add_trial(f->store, &trial, &f->err), &f->err);
    mgl_trial_clear(&trial);
}

static mgl_text html_of(fixture *f)
{
    mgl_campaign_record record;
    mgl_report_options options = {.running = true};
    mgl_text html = {0};
    must(mgl_store_find_campaign(f->store, f->tune.record.name, &record, &f->err), &f->err);
    must(mgl_report_html(f->store, &record, &options, &html, &f->err), &f->err);
    mgl_campaign_record_clear(&record);
    return html;
}

static mgl_text markdown_of(fixture *f)
{
    mgl_campaign_record record;
    mgl_text text = {0};
    must(mgl_store_find_campaign(f->store, f->tune.record.name, &record, &f->err), &f->err);
    must(mgl_report_markdown(f->store, &record, &text, &f->err), &f->err);
    mgl_campaign_record_clear(&record);
    return text;
}

START_TEST(texts_of_others_are_escaped)
{
    fixture f;
    set_up(&f, "escaped");
    add(&f, 1, MGL_OUTCOME_REJECTED);
    add(&f, 2, MGL_OUTCOME_OK);
    mgl_text html = html_of(&f), text = markdown_of(&f);
    ck_assert_ptr_null(strstr(html.bytes, "<script"));
    ck_assert_ptr_nonnull(strstr(html.bytes, "&lt;script&gt;alert(1)"));
    ck_assert_ptr_null(strchr(html.bytes, 0x1b));
    ck_assert_ptr_null(strchr(text.bytes, 0x1b));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\\<script\\>"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\\|x\\`y\\`"));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

START_TEST(nothing_is_fetched_from_outside)
{
    static const char *const outside[] = {"http:",   "https:", "src=",   "url(",
                                          "<script", "<link",  "@import"};
    fixture f;
    set_up(&f, "outside");
    add(&f, 1, MGL_OUTCOME_OK);
    mgl_text html = html_of(&f);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        ck_assert_msg(!strstr(html.bytes, outside[i]), "there is %s", outside[i]);
    ck_assert_ptr_nonnull(strstr(html.bytes, "http-equiv=\"refresh\""));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

/* Every element that is opened is closed, in order; those without an end are few. */
START_TEST(elements_are_balanced)
{
    fixture f;
    char open[64][16];
    int depth = 0;
    set_up(&f, "balanced");
    add(&f, 1, MGL_OUTCOME_OK);
    add(&f, 2, MGL_OUTCOME_NO_GAIN);
    add(&f, 3, MGL_OUTCOME_REJECTED);
    mgl_text html = html_of(&f);
    for (char *at = strchr(html.bytes, '<'); at; at = strchr(at + 1, '<')) {
        char name[16] = "";
        const char *end = strchr(at, '>');
        ck_assert_ptr_nonnull(end);
        sscanf(at + 1 + (at[1] == '/'), "%15[a-z0-9]", name);
        if (!name[0] || !strcmp(name, "meta") || end[-1] == '/')
            continue;
        if (at[1] != '/') {
            ck_assert_int_lt(depth, 63);
            strcpy(open[depth++], name);
            continue;
        }
        ck_assert_int_gt(depth, 0);
        ck_assert_str_eq(open[--depth], name);
    }
    ck_assert_int_eq(depth, 0);
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

START_TEST(without_a_device_it_says_predicted)
{
    fixture f;
    set_up(&f, "predicted");
    add(&f, 1, MGL_OUTCOME_UNMEASURED);
    mgl_text html = html_of(&f), text = markdown_of(&f);
    ck_assert_ptr_nonnull(strstr(html.bytes, "Nothing was measured"));
    ck_assert_ptr_nonnull(strstr(html.bytes, "Predicted, not measured"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "## Effects, predicted"));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

START_TEST(many_trials_stay_small)
{
    fixture f;
    size_t few, many;
    set_up(&f, "many");
    for (int64_t i = 1; i <= 200; i++)
        add(&f, i, i % 3 ? MGL_OUTCOME_NO_GAIN : MGL_OUTCOME_REJECTED);
    mgl_text html = html_of(&f);
    few = html.length;
    mgl_text_clear(&html);
    for (int64_t i = 201; i <= 1000; i++)
        add(&f, i, i % 3 ? MGL_OUTCOME_NO_GAIN : MGL_OUTCOME_REJECTED);
    html = html_of(&f);
    many = html.length;
    ck_assert_uint_lt(many, 6 * few);
    ck_assert_uint_lt(many, MOST_BYTES / 5);
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report");
    TCase *tests = tcase_create("report");
    store_make_folder();
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, texts_of_others_are_escaped);
    tcase_add_test(tests, nothing_is_fetched_from_outside);
    tcase_add_test(tests, elements_are_balanced);
    tcase_add_test(tests, without_a_device_it_says_predicted);
    tcase_add_test(tests, many_trials_stay_small);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    store_remove_folder();
    return failed != 0;
}
