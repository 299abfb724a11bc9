/* Tests of campaigns without measurements: the predicted winner, and the progress line. */
#include "command.h"
#include "terminal.h"

#include "autotune/tune.h"
#include "cli/campaign/tune_progress.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static command_result tune(const char *store, const char *flags)
{
    return command_runf("tune %s --device none --seed 5 --store %s %s", model_path("tales-5m"),
                        store, flags);
}

/* Runs a subcommand of `campaign` that must succeed. Returns its JSON object. */
static mgl_json ask(const char *word, const char *store)
{
    command_result result = command_runf("campaign %s --store %s --json", word, store);
    ck_assert_msg(result.code == 0, "campaign %s: exit %d: %s", word, result.code, result.err);
    mgl_json json = command_json(&result, "megalith.campaign/1");
    command_clear(&result);
    return json;
}

static mgl_json read_json(const char *path)
{
    mgl_json json;
    mgl_error err = {0};
    ck_assert_msg(mgl_json_read_file(path, 32 << 20, &json, &err) == MGL_OK, "%s", err.message);
    return json;
}

/* ---- the winner ------------------------------------------------------------------------------ */

/* The number of the predicted winner, which is faster than the default. */
static int predicted_winner(const mgl_json *json)
{
    ck_assert(cJSON_IsNull(json_at(json, "best")));
    ck_assert(cJSON_IsTrue(json_at(json, "predicted_best.predicted")));
    ck_assert_str_eq(json_string(json, "predicted_best.outcome"), "UNMEASURED");
    ck_assert_double_lt(json_number(json, "predicted_best.predicted_us"),
                        json_number(json, "predicted_best.default_predicted_us"));
    ck_assert(cJSON_IsObject(json_at(json, "predicted_best.proposal")));
    return (int)json_number(json, "predicted_best.number");
}

/* Without a device, the winner is the trial with the smallest prediction, marked as predicted
 * everywhere. */
START_TEST(the_predicted_winner_is_the_best)
{
    char line[80], file[300];
    const char *store = scratch_store("predicted");
    command_result made = tune(store, "--trials 12 --quiet");
    mgl_json best = ask("best", store), status = ask("status", store);
    const int number = predicted_winner(&best);
    ck_assert_int_eq(predicted_winner(&status), number);
    mgl_json history = ask("history", store);
    const cJSON *trial;
    cJSON_ArrayForEach(trial, json_at(&history, "trials"))
    {
        const cJSON *us = mgl_json_member(trial, "predicted_us");
        ck_assert(!us || us->valuedouble >= json_number(&best, "predicted_best.predicted_us"));
    }
    snprintf(line, sizeof line, "trial %d, predicted ", number);
    ck_assert_ptr_nonnull(strstr(made.out, line));
    ck_assert_ptr_nonnull(strstr(made.out, "predicted, not measured"));
    snprintf(file, sizeof file, "%s/predicted.json", scratch_folder());
    command_result text = command_runf("campaign best --store %s -o %s", store, file);
    ck_assert_ptr_nonnull(strstr(text.err, line));
    ck_assert_ptr_nonnull(strstr(text.err, "predicted, not measured"));
    char *proposal = cJSON_PrintUnformatted(json_at(&best, "predicted_best.proposal"));
    mgl_json written = read_json(file);
    char *same = cJSON_PrintUnformatted(written.root);
    ck_assert_str_eq(proposal, same);
    free(proposal);
    free(same);
    mgl_json_clear(&written);
    mgl_json_clear(&history);
    mgl_json_clear(&status);
    mgl_json_clear(&best);
    command_clear(&text);
    command_clear(&made);
}
END_TEST

/* The archive marks the winner as predicted, and `import` gates it like any other winner. */
START_TEST(the_predicted_winner_is_exported)
{
    char file[300];
    const char *store = scratch_store("exported");
    command_result made = tune(store, "--trials 12 --quiet");
    mgl_json best = ask("best", store);
    snprintf(file, sizeof file, "%s/predicted-archive.json", scratch_folder());
    command_result exported = command_runf("campaign export --store %s -o %s", store, file);
    ck_assert_msg(exported.code == 0, "%s", exported.err);
    ck_assert_ptr_nonnull(strstr(exported.err, "predicted, not measured"));
    mgl_json archive = read_json(file);
    ck_assert_double_eq(json_number(&archive, "predicted.number"),
                        json_number(&best, "predicted_best.number"));
    ck_assert_double_gt(json_number(&archive, "predicted.default_us"),
                        json_number(&archive, "predicted.us"));
    ck_assert_int_eq((int)json_number(&archive, "campaign.incumbent"), 0);
    command_result taken = command_runf("campaign import %s --name far --store %s", file, store);
    ck_assert_msg(taken.code == 0, "%s", taken.err);
    command_result run = command_runf("campaign resume far --trials 1 --store %s --quiet", store);
    ck_assert_msg(run.code == 0, "%s", run.err);
    command_result history = command_runf("campaign history far --store %s", store);
    ck_assert_ptr_nonnull(strstr(history.out, "1 UNMEASURED import: "));
    ck_assert_int_eq(command_code("campaign best --install --store %s", store), 2);
    mgl_json_clear(&archive);
    mgl_json_clear(&best);
    command_clear(&history);
    command_clear(&run);
    command_clear(&taken);
    command_clear(&exported);
    command_clear(&made);
}
END_TEST

/* ---- the line of progress -------------------------------------------------------------------- */

typedef struct line_case {
    mgl_cli_tuning how;
    mgl_cli_tune_progress progress;
    double now;
    const char *line;
} line_case;

static const line_case lines[] = {
    {{.trials = 100},
     {.clock = true, .trials = 12, .begun = 2, .best = 7, .gain = .03, .lo = .02, .hi = .04},
     100,
     "12 of 100 trials, best +3.05 % (+2.02 to +4.08) in trial 7, 15 min left"},
    {{.hours = 3},
     {.clock = true, .trials = 12, .spent = 600},
     600,
     "12 trials, best: the default, 2 h 40 min left"},
    /* The campaign ends at whichever limit is reached first. */
    {{.hours = 1, .trials = 20},
     {.clock = true, .trials = 10, .begun = 0},
     50,
     "10 of 20 trials, best: the default, 50 s left"},
    {{0}, {.clock = true, .trials = 1}, 30, "1 trial, best: the default, 30 s so far"},
    {{.trials = 4},
     {.trials = 4, .best = 3, .best_us = 67.84, .default_us = 82.2},
     9,
     "4 of 4 trials, best predicted 67.8 us (trial 3; default 82.2), 9 s so far"},
    {{.trials = 4},
     {.trials = 1, .best = 1, .best_us = 5},
     1,
     "1 of 4 trials, best predicted 5.0 us (trial 1), 3 s left"},
};

START_TEST(progress_is_one_line)
{
    mgl_text text = {0};
    mgl_cli_tune_progress progress = lines[_i].progress;
    progress.how = &lines[_i].how;
    mgl_cli_tune_progress_format(&progress, lines[_i].now, &text);
    ck_assert_str_eq(text.bytes, lines[_i].line);
    mgl_text_clear(&text);
}
END_TEST

/* One line is rewritten in place; its last state stays above the answer. */
START_TEST(progress_on_a_terminal)
{
    terminal screen;
    char line[600];
    snprintf(line, sizeof line, "tune %s --device none --seed 5 --store %s --trials 40",
             model_path("tales-5m"), scratch_store("terminal"));
    terminal_open(&screen, 100);
    const terminal_program program = {line, "xterm", true, false};
    ck_assert_int_eq(terminal_end(&screen, terminal_start(&screen, &program)), 0);
    const char *first = strstr(screen.bytes, " of 40 trials, best predicted ");
    ck_assert_ptr_nonnull(first);
    while (first > screen.bytes && first[-1] >= '0' && first[-1] <= '9')
        first--;
    ck_assert_int_eq(first[-1], '\r');
    int breaks = 0;
    for (const char *at = screen.bytes; (at = strchr(at, '\n')); at++)
        breaks++;
    ck_assert_int_eq(breaks, 4); /* no device, start, the last state, end */
    ck_assert_ptr_nonnull(strstr(screen.bytes, "megalith tune: 40 of 40 trials, best predicted "));
    terminal_close(&screen);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli predicted");
    TCase *tests = tcase_create("predicted");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, the_predicted_winner_is_the_best);
    tcase_add_test(tests, the_predicted_winner_is_exported);
    tcase_add_test(tests, progress_on_a_terminal);
    tcase_add_loop_test(tests, progress_is_one_line, 0, (int)(sizeof lines / sizeof *lines));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
