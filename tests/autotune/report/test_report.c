/*
 * Tests of the report: foreign text is displayed and never executed, the page stays small, and
 * values that were not measured are marked as predicted.
 */
#include "autotune/answers/answer.h"
#include "autotune/report/report.h"
#include "autotune/report/report_plays.h"
#include "autotune/store/store_query.h"
#include "tests/autotune/search/campaign_fixture.h"
#include "tests/autotune/store/store_support.h"

#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_BYTES = 5 << 20, NIGHT = 10000, EVENING = NIGHT / 5 };
static const double most_growth = 12; /* maximum time ratio for five times the trials: 5 if linear,
                                         25 if quadratic */

static const char evil[] = "<script>alert(1)</script>\"'&\x1b[31m|x`y`\xE2\x80\xAE http://x.y @all";

static mgl_trial make_trial(const fixture *f, int64_t number, mgl_outcome outcome)
{
    mgl_trial trial = {.campaign = f->tune.record.id,
                       .number = number,
                       .verdict.outcome = outcome,
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
    snprintf(trial.verdict.diagnostic, sizeof trial.verdict.diagnostic, "%s", evil);
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

/* A report with hostile text in every foreign field: trials, events, the reason, the name. */
static void set_up_evil(fixture *f, const char *end)
{
    char name[64];
    snprintf(name, sizeof name, "a'; rm -rf ~ <b>|%s", end);
    set_up(f, name);
    add(f, 1, MGL_OUTCOME_REJECTED);
    add(f, 2, MGL_OUTCOME_OK);
    add(f, 3, MGL_OUTCOME_UNMEASURED);
    must(mgl_store_add_event(f->store, f->tune.record.id, "keep", evil, &f->err), &f->err);
    must(mgl_store_set_state(f->store, f->tune.record.id, "paused", evil, 1, &f->err), &f->err);
}

static bool holds(const mgl_text *text, const char *what)
{
    return strstr(text->bytes, what) != NULL;
}

START_TEST(texts_of_others_are_escaped)
{
    fixture f;
    set_up_evil(&f, "x");
    mgl_text html = html_of(&f), text = markdown_of(&f);
    ck_assert(!holds(&html, "<script"));
    ck_assert(!holds(&html, "<b>|x"));
    ck_assert(holds(&html, "&lt;script&gt;alert(1)"));
    ck_assert_ptr_null(strchr(html.bytes, 0x1b));
    ck_assert_ptr_null(strchr(text.bytes, 0x1b));
    ck_assert(!holds(&html, "\xE2\x80\xAE"));
    ck_assert(!holds(&text, "\xE2\x80\xAE"));
    ck_assert(holds(&text, "\\<script\\>"));
    ck_assert(holds(&text, "\\|x\\`y\\`"));
    ck_assert(holds(&text, "http\\://x.y \\@all"));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

static void add_rejected(fixture *f, int64_t number, const char *diagnostic)
{
    mgl_trial trial = make_trial(f, number, MGL_OUTCOME_REJECTED);
    snprintf(trial.verdict.diagnostic, sizeof trial.verdict.diagnostic, "%s", diagnostic);
    must(mgl_store_add_trial(f->store, &trial, &f->err), &f->err);
    mgl_trial_clear(&trial);
}

START_TEST(rejections_are_told_by_code)
{
    fixture f;
    set_up(&f, "codes");
    add_rejected(&f, 1, "MG207: what comes first");
    add_rejected(&f, 2, "MG202: the second");
    add_rejected(&f, 3, "MG207: the third");
    add_rejected(&f, 4, "MGX is no code");
    mgl_text html = html_of(&f), text = markdown_of(&f);
    ck_assert(holds(&text, "| REJECTED MG202 | 1 | 2: MG202: the second |"));
    ck_assert(holds(&text, "| REJECTED MG207 | 2 | 1: MG207: what comes first |"));
    ck_assert(holds(&text, "| REJECTED | 1 | 4: MGX is no code |"));
    ck_assert(holds(&text, "| page_bytes | 4 | 0 | 4 | - | - | REJECTED MG207 |"));
    ck_assert(holds(&html, "<td>REJECTED MG202</td>"));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

START_TEST(it_says_how_it_is_made_again)
{
    fixture f;
    char seed[64];
    set_up(&f, "again");
    add(&f, 1, MGL_OUTCOME_REJECTED);
    snprintf(seed, sizeof seed, "--seed %llu makes", (unsigned long long)f.tune.record.seed);
    mgl_text html = html_of(&f), text = markdown_of(&f);
    ck_assert(holds(&html, "<h2>Reproduce</h2>"));
    ck_assert(holds(&html, seed));
    ck_assert(holds(&text, seed));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

/* Stores a final measurement of trial `number`. */
static void add_final_from(fixture *f, int number, const char *outcome, double lo)
{
    char text[400];
    snprintf(text, sizeof text,
             "{\"schema\":\"megalith.final/1\",\"number\":%d,\"outcome\":\"%s\",\"gain\":0.0185,"
             "\"gain_lo\":%g,\"gain_hi\":0.021,\"workloads\":[{\"gain\":0.0185,"
             "\"gain_lo\":%g,\"gain_hi\":0.021,\"us\":98.2,\"incumbent_us\":100}]}",
             number, outcome, lo, lo);
    must(mgl_store_add_event(f->store, f->tune.record.id, "final", text, &f->err), &f->err);
}

static void add_final(fixture *f, int number, const char *outcome)
{
    add_final_from(f, number, outcome, 0.016);
}

/* Two steps of 2.02 %, the second the incumbent. */
static void set_up_steps(fixture *f, const char *name)
{
    set_up(f, name);
    add(f, 1, MGL_OUTCOME_OK);
    add(f, 2, MGL_OUTCOME_OK);
}

static void check_result(fixture *f, const char *says)
{
    char html_says[400], text_says[400];
    mgl_text html = html_of(f), text = markdown_of(f);
    snprintf(html_says, sizeof html_says, "<h2>Result</h2><p>%s", says);
    snprintf(text_says, sizeof text_says, "## Result\n\n%s",
             strchr(says, '>') ? strchr(says, '>') + 1 : says);
    ck_assert_msg(holds(&html, html_says), "%s", html.bytes);
    ck_assert_msg(holds(&text, text_says), "%s", text.bytes);
    mgl_text_clear(&html);
    mgl_text_clear(&text);
}

START_TEST(the_result_is_what_was_measured_at_the_end)
{
    fixture f;
    set_up_steps(&f, "measured as a whole");
    add_final(&f, 2, "OK");
    check_result(&f, "<b class=\"good\">Trial 2: +1.85 % (+1.60 to +2.10) over the default, "
                     "measured at the end in a fresh process; its 2 steps add up to +4.08 %.");
    tear_down(&f);
}
END_TEST

START_TEST(a_sum_of_steps_is_called_one)
{
    fixture f;
    set_up_steps(&f, "steps");
    check_result(&f, "<b>Trial 2: its 2 steps add up to +4.08 %, not measured as a whole.");
    add_final(&f, 1, "OK"); /* the final measurement of another winner */
    check_result(&f, "<b>Trial 2: its 2 steps add up to +4.08 %, not measured as a whole.");
    tear_down(&f);
}
END_TEST

START_TEST(a_winner_that_was_wrong_gained_nothing)
{
    fixture f;
    set_up_steps(&f, "wrong");
    add_final(&f, 2, "MISMATCH");
    check_result(&f, "<b>Trial 2: MISMATCH at the end; its 2 steps add up to +4.08 %, not "
                     "measured as a whole.");
    tear_down(&f);
}
END_TEST

START_TEST(one_step_is_no_sum)
{
    fixture f;
    set_up(&f, "one step");
    add(&f, 1, MGL_OUTCOME_OK);
    check_result(&f, "<b>Trial 1: its one step gained +2.02 % when it was kept, not measured as "
                     "a whole.");
    tear_down(&f);
}
END_TEST

START_TEST(both_gains_stand_in_the_answer)
{
    fixture f;
    mgl_json_out out = {0};
    mgl_campaign_record record;
    set_up_steps(&f, "both gains");
    add_final(&f, 2, "OK");
    must(mgl_store_find_campaign(f.store, "both gains", &record, &f.err), &f.err);
    mgl_json_out_begin(&out, "test/1");
    must(mgl_answer_best(&out, f.store, &record, &f.err), &f.err);
    mgl_json_out_close(&out);
    ck_assert(holds(&out.text, "\"gain_over_default\":0.0408"));
    ck_assert(holds(&out.text, "\"measured_gain_over_default\":{\"gain\":0.0185,"));
    mgl_text_clear(&out.text);
    mgl_campaign_record_clear(&record);
    tear_down(&f);
}
END_TEST

static mgl_status take_no_entry(void *user, const mgl_tuned *entry, mgl_error *err)
{
    (void)user, (void)entry, (void)err;
    ck_abort_msg("an entry was made");
    return MGL_OK;
}

START_TEST(a_winner_that_may_be_slower_is_no_entry)
{
    fixture f;
    set_up_steps(&f, "may be slower");
    add_final_from(&f, 2, "NO_GAIN", -0.001);
    ck_assert_int_eq(mgl_tune_entries(f.store, "may be slower", take_no_entry, NULL, &f.err),
                     MGL_GATE);
    ck_assert_ptr_nonnull(strstr(f.err.message, "not certainly faster than the default"));
    ck_assert_ptr_nonnull(strstr(f.err.message, "+1.85 % (-0.10 to +2.10)"));
    tear_down(&f);
}
END_TEST

START_TEST(it_says_what_trials_ran_on)
{
    fixture f;
    set_up(&f, "weights");
    mgl_text html = html_of(&f), text = markdown_of(&f);
    const char *says =
        strcmp(f.tune.record.device, "none") != 0 ? "synthetic weights" : "Nothing was executed.";
    ck_assert(holds(&html, says));
    ck_assert(holds(&text, says));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

START_TEST(a_name_stays_one_word_of_the_shell)
{
    fixture f;
    set_up_evil(&f, "y");
    mgl_text html = html_of(&f), text = markdown_of(&f);
    ck_assert(holds(&text, "export 'a'\\''; rm -rf ~ <b>|y' -o"));
    ck_assert(holds(&html, "export &#39;a&#39;\\&#39;&#39;; rm -rf ~ &lt;b&gt;|y&#39; -o"));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

/* Counts the cells of a table row: vertical bars that are not escaped. */
static int count_bars(const char *line, size_t length)
{
    int bars = 0;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\\')
            i++;
        else
            bars += line[i] == '|';
    }
    return bars;
}

START_TEST(nothing_breaks_out_of_a_cell)
{
    fixture f;
    int wanted = 0;
    set_up_evil(&f, "z");
    mgl_text text = markdown_of(&f);
    for (const char *at = text.bytes, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        if (*at != '|')
            wanted = 0;
        else if (!wanted)
            wanted = count_bars(at, (size_t)(end - at));
        if (*at == '|')
            ck_assert_msg(count_bars(at, (size_t)(end - at)) == wanted, "%.*s", (int)(end - at),
                          at);
    }
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

START_TEST(nothing_is_fetched_from_outside)
{
    static const char *const outside[] = {"src=",  "href=",  "url(", "<script",
                                          "<link", "<image", "<use", "@import"};
    fixture f;
    set_up_evil(&f, "v");
    mgl_text html = html_of(&f);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        ck_assert_msg(!strstr(html.bytes, outside[i]), "there is %s", outside[i]);
    ck_assert_ptr_nonnull(strstr(html.bytes, "http-equiv=\"refresh\""));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

/* Checks that every HTML element is closed, in order, except void elements. */
static void check_balance(const char *html)
{
    char open[64][16];
    int depth = 0;
    for (const char *at = strchr(html, '<'); at; at = strchr(at + 1, '<')) {
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
}

START_TEST(elements_are_balanced)
{
    fixture f;
    set_up_evil(&f, "w");
    add(&f, 4, MGL_OUTCOME_NO_GAIN);
    mgl_text html = html_of(&f);
    check_balance(html.bytes);
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

START_TEST(an_empty_campaign_has_a_page)
{
    fixture f;
    set_up(&f, "empty");
    mgl_text html = html_of(&f), text = markdown_of(&f);
    check_balance(html.bytes);
    ck_assert(holds(&html, "No trial came as far"));
    ck_assert(holds(&html, "Nothing is better than the default so far"));
    ck_assert(holds(&text, "Nothing was measured"));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
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

/* A prediction is compared with the default's prediction for the same workload. A timeline names
 * its workload. */
START_TEST(predictions_are_of_the_same_workloads)
{
    fixture f;
    char row[200];
    set_up(&f, "same");
    mgl_trial trial = make_trial(&f, 1, MGL_OUTCOME_UNMEASURED);
    trial.workloads[0].predicted_us = 12.3;
    must(mgl_store_add_trial(f.store, &trial, &f.err), &f.err);
    mgl_text html = html_of(&f), text = markdown_of(&f);
    const mgl_workload *w = &f.tune.subject.workloads.list[0];
    ck_assert(holds(&html, "<th>predicted</th><th class=\"n\">default, us</th>"
                           "<th class=\"n\">trial 1, us</th>"));
    snprintf(row, sizeof row, "<tr><td>batch %d, context %d</td>", w->batch, w->context);
    ck_assert(holds(&html, row));
    ck_assert(holds(&html, "</td><td class=\"n\">12.3</td>"));
    snprintf(row, sizeof row, "the default, batch %d, context %d, ", w->batch, w->context);
    ck_assert(holds(&html, row));
    ck_assert(holds(&text, "The best prediction, 50.0 us a token, is that of trial 1; that of the "
                           "default is "));
    ck_assert(holds(&html, "megalith campaign export"));
    ck_assert(holds(&html, "has the predicted winner, marked as predicted"));
    ck_assert(holds(&html, "@media(max-width:700px)"));
    mgl_trial_clear(&trial);
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

/* ---- graphics -------------------------------------------------------------------------------- */

static int count_of(const mgl_text *text, const char *what)
{
    int count = 0;
    for (const char *at = text->bytes; (at = strstr(at, what)); at++)
        count++;
    return count;
}

START_TEST(predictions_are_a_dashed_line)
{
    fixture f;
    set_up(&f, "dashed");
    add(&f, 1, MGL_OUTCOME_UNMEASURED);
    mgl_text html = html_of(&f);
    ck_assert(holds(&html, "stroke-dasharray"));
    ck_assert(holds(&html, "<title>trial 1, UNMEASURED: predicted +"));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

START_TEST(a_large_gain_is_told_beside_its_line)
{
    fixture f;
    set_up(&f, "large");
    mgl_trial trial = make_trial(&f, 1, MGL_OUTCOME_OK);
    trial.gain = trial.gain_lo = trial.gain_hi = 0.405465; /* log 1.5 */
    must(mgl_store_add_trial(f.store, &trial, &f.err), &f.err);
    mgl_trial_clear(&trial);
    mgl_text html = html_of(&f);
    ck_assert(holds(&html, ">+50.0 %</text>"));
    ck_assert(holds(&html, "<title>trial 1, OK: +50.00 % (+50.00 to +50.00), +50.00 % over"));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

START_TEST(controls_have_their_own_chart)
{
    fixture f;
    set_up(&f, "controls");
    mgl_trial trial = make_trial(&f, 1, MGL_OUTCOME_NO_GAIN);
    trial.control = true;
    must(mgl_store_add_trial(f.store, &trial, &f.err), &f.err);
    mgl_trial_clear(&trial);
    mgl_text html = html_of(&f);
    ck_assert(holds(&html, "aria-label=\"A/A controls\""));
    ck_assert(holds(&html, "<title>trial 1, A/A control: +2.02 %"));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

/* Timelines of a whole token and of two layers, each for both programs. */
START_TEST(default_and_best_stand_side_by_side)
{
    fixture f;
    set_up(&f, "plays");
    add(&f, 1, MGL_OUTCOME_OK);
    mgl_text html = html_of(&f), text = markdown_of(&f);
    ck_assert_int_eq(count_of(&html, "<svg class=\"play\""), 4);
    ck_assert_int_eq(count_of(&html, "the best, trial 1,"), 2);
    ck_assert(holds(&html, "By the cost model, not by a clock"));
    ck_assert(holds(&text, "## Where a token's time goes, predicted"));
    mgl_text_clear(&html);
    mgl_text_clear(&text);
    tear_down(&f);
}
END_TEST

START_TEST(a_play_is_what_is_predicted)
{
    fixture f;
    mgl_candidate made;
    report_plays plays;
    set_up(&f, "prediction");
    const mgl_proposal start = {.config = f.tune.subject.start};
    must(mgl_gate_lower(&f.tune.subject, &start, &made, &f.err), &f.err);
    mgl_gate_predict(&f.tune.subject, &made);
    must(report_plays_start(&f.tune.record, &plays, &f.err), &f.err);
    ck_assert_double_gt(made.predicted, 0);
    ck_assert_double_eq(plays.first.cost.us, made.predicted_us[0]);
    ck_assert_double_eq(plays.start_us, made.predicted);
    report_plays_clear(&plays);
    mgl_candidate_clear(&made);
    tear_down(&f);
}
END_TEST

START_TEST(a_record_without_a_program_has_no_timeline)
{
    fixture f;
    mgl_campaign_record record;
    mgl_text html = {0};
    set_up(&f, "whole");
    store_add_campaign(f.store, "not whole", &record);
    must(mgl_report_html(f.store, &record, &(mgl_report_options){0}, &html, &f.err), &f.err);
    ck_assert(!holds(&html, "<svg class=\"play\""));
    ck_assert(holds(&html, "has not what a program is made of"));
    check_balance(html.bytes);
    mgl_text_clear(&html);
    mgl_campaign_record_clear(&record);
    tear_down(&f);
}
END_TEST

START_TEST(workloads_have_names)
{
    fixture f;
    set_up(&f, "one workload");
    mgl_tune_clear(&f.tune);
    const mgl_tune_request request = {.workloads = "ctx=0,128;batch=1,2",
                                      .model = MGL_SOURCE_DIR "/tests/models/tales-5m",
                                      .device = "none",
                                      .name = "four workloads"};
    must(mgl_tune_prepare(f.store, &request, true, &f.tune, &f.err), &f.err);
    mgl_trial trial = make_trial(&f, 1, MGL_OUTCOME_OK);
    trial.workload_count = 4;
    must(mgl_store_add_trial(f.store, &trial, &f.err), &f.err);
    mgl_trial_clear(&trial);
    mgl_text html = html_of(&f);
    ck_assert(holds(&html, "<td>batch 1, context 0</td>"));
    ck_assert(holds(&html, "<td>batch 2, context 128</td>"));
    check_balance(html.bytes);
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

START_TEST(the_log_has_the_last_fifty)
{
    fixture f;
    char text[32];
    set_up(&f, "log");
    for (int i = 1; i <= 60; i++) {
        snprintf(text, sizeof text, "event %d.", i);
        must(mgl_store_add_event(f.store, f.tune.record.id, i % 2 ? "pause" : "keep", text, &f.err),
             &f.err);
    }
    must(mgl_store_add_event(f.store, f.tune.record.id, "control", "not told", &f.err), &f.err);
    mgl_text html = html_of(&f);
    ck_assert(!holds(&html, "event 10."));
    ck_assert(holds(&html, "event 11."));
    ck_assert(holds(&html, "event 60."));
    ck_assert(holds(&html, "The last 50 of 60 events."));
    ck_assert(!holds(&html, "not told"));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

/* An older version stored this kind of event under another name. */
START_TEST(an_old_kind_of_event_is_shown_with_its_new_name)
{
    fixture f;
    set_up(&f, "events");
    must(
        mgl_store_add_event(f.store, f.tune.record.id, "condemned", "trial 3 is incorrect", &f.err),
        &f.err);
    mgl_text html = html_of(&f);
    ck_assert(holds(&html, "quarantined"));
    ck_assert(holds(&html, "trial 3 is incorrect"));
    ck_assert(!holds(&html, "condemned"));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

START_TEST(exchanges_with_a_model_are_told_by_outcome)
{
    fixture f;
    set_up(&f, "chat");
    const mgl_store_message messages[] = {
        {.outcome = MGL_OUTCOME_OK, .tokens_in = 100, .tokens_out = 20},
        {.outcome = MGL_OUTCOME_PROPOSER_TIMEOUT, .tokens_in = 30}};
    for (int i = 0; i < 2; i++)
        must(mgl_store_add_message(f.store, f.tune.record.id, &messages[i], &f.err), &f.err);
    mgl_text html = html_of(&f);
    ck_assert(holds(&html, "2 times, 150 tokens: 1 OK, 1 PROPOSER_TIMEOUT"));
    mgl_text_clear(&html);
    tear_down(&f);
}
END_TEST

/* ---- a long campaign ------------------------------------------------------------------------- */

/* Copies the first trial to `count` trials with one SQL statement; a third each kept, not kept and
 * rejected. */
static void add_many(fixture *f, int count)
{
    char made[256];
    snprintf(made, sizeof made,
             "CREATE TEMP TABLE many AS WITH RECURSIVE c(n) AS (SELECT 2 UNION ALL SELECT n + 1"
             " FROM c WHERE n < %d) SELECT n, t.* FROM trials t, c WHERE t.id = (SELECT max(id)"
             " FROM trials)",
             count);
    const char *statements[] = {
        made,
        "UPDATE many SET number = n, parent = n - 1, digest = n, gain = 0.0003 * (n % 7 - 3),"
        " outcome = CASE n % 3 WHEN 0 THEN 'OK' WHEN 1 THEN 'NO_GAIN' ELSE 'REJECTED' END",
        "INSERT INTO trials (campaign, decided" MGL_TRIAL_FIELDS(
            MGL_COLUMN_NAME) ") SELECT campaign, decided" MGL_TRIAL_FIELDS(MGL_COLUMN_NAME) " FROM "
                                                                                            "many"};
    add(f, 1, MGL_OUTCOME_OK);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        must(mgl_store_execute(f->store, statements[i], &f->err), &f->err);
}

/* Makes the report of a campaign of `count` trials. Returns the CPU time in seconds. */
static double report_many(const char *name, int count)
{
    fixture f;
    char trials[64];
    set_up(&f, name);
    add_many(&f, count);
    clock_t began = clock();
    mgl_text html = html_of(&f);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    snprintf(trials, sizeof trials, "<b>trials</b>%d<", count);
    ck_assert(holds(&html, trials));
    ck_assert_uint_lt(html.length, MOST_BYTES);
    check_balance(html.bytes);
    mgl_text_clear(&html);
    tear_down(&f);
    return seconds;
}

START_TEST(a_night_stays_small_and_grows_no_faster_than_its_trials)
{
    double evening = report_many("evening", EVENING);
    ck_assert_double_lt(report_many("night", NIGHT), most_growth * evening);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("report");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, texts_of_others_are_escaped);
    tcase_add_test(tests, nothing_is_fetched_from_outside);
    tcase_add_test(tests, elements_are_balanced);
    tcase_add_test(tests, without_a_device_it_says_predicted);
    tcase_add_test(tests, predictions_are_of_the_same_workloads);
    tcase_add_test(tests, a_name_stays_one_word_of_the_shell);
    tcase_add_test(tests, rejections_are_told_by_code);
    tcase_add_test(tests, it_says_how_it_is_made_again);
    tcase_add_test(tests, it_says_what_trials_ran_on);
    tcase_add_test(tests, the_result_is_what_was_measured_at_the_end);
    tcase_add_test(tests, a_sum_of_steps_is_called_one);
    tcase_add_test(tests, a_winner_that_was_wrong_gained_nothing);
    tcase_add_test(tests, one_step_is_no_sum);
    tcase_add_test(tests, both_gains_stand_in_the_answer);
    tcase_add_test(tests, a_winner_that_may_be_slower_is_no_entry);
    tcase_add_test(tests, nothing_breaks_out_of_a_cell);
    tcase_add_test(tests, an_empty_campaign_has_a_page);
    tcase_add_test(tests, predictions_are_a_dashed_line);
    tcase_add_test(tests, a_large_gain_is_told_beside_its_line);
    tcase_add_test(tests, controls_have_their_own_chart);
    tcase_add_test(tests, default_and_best_stand_side_by_side);
    tcase_add_test(tests, a_play_is_what_is_predicted);
    tcase_add_test(tests, a_record_without_a_program_has_no_timeline);
    tcase_add_test(tests, workloads_have_names);
    tcase_add_test(tests, the_log_has_the_last_fifty);
    tcase_add_test(tests, an_old_kind_of_event_is_shown_with_its_new_name);
    tcase_add_test(tests, exchanges_with_a_model_are_told_by_outcome);
    tcase_add_test(tests, a_night_stays_small_and_grows_no_faster_than_its_trials);
    return run_suite("report", tests);
}
