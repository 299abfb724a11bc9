/*
 * Tests of the progress bar: its text, when it is drawn and erased, and the screen of a terminal
 * while the program works.
 */
#include "cli/progress.h"
#include "command.h"
#include "terminal.h"

#include "base/clock.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the line -------------------------------------------------------------------------------- */

static const struct line_case {
    mgl_cli_progress progress;
    int columns;
    const char *line;
} lines[] = {
    {{"weights", MGL_CLI_COUNT_BYTES, 1300000000, 2900000000, 1.6},
     81,
     "weights  [############----------------]  45 %  1.3 of 2.9 GB, 812 MB/s, 2 s left"},
    {{"prompt", MGL_CLI_COUNT_TOKENS, 50, 200, 2},
     200,
     "prompt   [#######-----------------------]  25 %  50 of 200 tokens, 25.0 tokens/s, 6 s left"},
    {{"eval", MGL_CLI_COUNT_TOKENS, 4000, 8000, 2},
     74,
     "eval     [#####-----]  50 %  4000 of 8000 tokens, 2000 tokens/s, 2 s left"},
    /* No room for a bar, and then not enough room for the rest. */
    {{"eval", MGL_CLI_COUNT_TOKENS, 4000, 8000, 2},
     65,
     "eval      50 %  4000 of 8000 tokens, 2000 tokens/s, 2 s left"},
    {{"eval", MGL_CLI_COUNT_TOKENS, 4000, 8000, 2}, 20, "eval      50 %  400"},
    {{"eval", MGL_CLI_COUNT_TOKENS, 4000, 8000, 2}, 1, ""},
    /* Hours; nothing done yet; unknown duration. */
    {{"bench", MGL_CLI_COUNT_SAMPLES, 1, 61, 60},
     64,
     "bench      2 %  1 of 61 samples, 0.02 samples/s, 60 min left"},
    {{"weights", MGL_CLI_COUNT_BYTES, 0, 5000000, 1}, 50, "weights    0 %  0.0 of 5.0 MB, 0 kB/s"},
    {{"kernel", MGL_CLI_COUNT_BYTES, 0, 0, 12.2}, 80, "kernel   12 s"},
};

START_TEST(says_how_far_it_is)
{
    char line[MGL_CLI_MAX_BAR + 1];
    const struct line_case *c = &lines[_i];
    int length = mgl_cli_bar_format(line, c->columns, &c->progress);
    ck_assert_str_eq(line, c->line);
    ck_assert_int_eq(length, (int)strlen(line));
}
END_TEST

/* The last column stays empty, because a terminal would wrap. */
START_TEST(fits_every_width)
{
    char line[MGL_CLI_MAX_BAR + 1];
    mgl_cli_progress progress = {"weights", MGL_CLI_COUNT_BYTES, 1234567890123, 2345678901234,
                                 9876};
    for (int columns = 1; columns < 300; columns++) {
        int length = mgl_cli_bar_format(line, columns, &progress);
        ck_assert_int_lt(length, columns);
        ck_assert_int_le(length, MGL_CLI_MAX_BAR);
    }
}
END_TEST

/* ---- a bar on a terminal --------------------------------------------------------------------- */

static terminal screen;
static mgl_cli_bar bar;

static void set_up(void)
{
    terminal_open(&screen, 60);
    bar = (mgl_cli_bar){.on = true, .descriptor = screen.slave};
}

static void tear_down(void)
{
    terminal_close(&screen);
}

static void show(uint64_t done, uint64_t total)
{
    mgl_cli_progress progress = {"eval", MGL_CLI_COUNT_TOKENS, done, total, 0};
    mgl_cli_bar_show(&bar, &progress);
}

/* The current first line of the screen. */
static const char *look(void)
{
    terminal_read(&screen, 0.05);
    terminal_draw(&screen);
    return screen.screen[0];
}

START_TEST(stands_on_the_terminal)
{
    show(1, 4);
    ck_assert_ptr_nonnull(strstr(look(), "25 %  1 of 4 tokens, "));
    ck_assert_int_eq(strncmp(screen.screen[0], "eval ", 5), 0);
}
END_TEST

START_TEST(waits_before_it_is_shown)
{
    bar.delay_s = 100;
    show(1, 4);
    ck_assert_str_eq(look(), "");
    bar.start_s -= 100;
    show(2, 4);
    ck_assert_str_ne(look(), "");
}
END_TEST

START_TEST(is_erased_at_the_end)
{
    show(1, 4);
    ck_assert_str_ne(look(), "");
    show(4, 4);
    ck_assert_str_eq(look(), "");
}
END_TEST

START_TEST(is_erased_when_it_is_told_to)
{
    show(1, 4);
    mgl_cli_bar_erase(&bar);
    ck_assert_int_eq(write(bar.descriptor, "text", 4), 4);
    ck_assert_str_eq(look(), "text");
}
END_TEST

/* The next stage is drawn only after its own second. */
START_TEST(another_stage_begins_anew)
{
    mgl_cli_progress next = {"prompt", MGL_CLI_COUNT_TOKENS, 1, 4, 0};
    show(1, 4);
    bar.delay_s = 5;
    mgl_cli_bar_show(&bar, &next);
    ck_assert_str_eq(look(), "");
}
END_TEST

START_TEST(is_drawn_ten_times_a_second)
{
    double start = mgl_clock_s();
    int drawn = 0;
    for (int i = 0; i < 35; i++) {
        show(1, 4);
        bar.drawn_s -= 0.01; /* simulates that much time */
    }
    double lasted = mgl_clock_s() - start + 0.35;
    look();
    for (size_t i = 0; i < screen.length; i++)
        drawn += screen.bytes[i] == '\r';
    ck_assert_int_ge(drawn, 2);
    ck_assert_int_le(drawn, (int)(lasted / 0.1) + 1);
}
END_TEST

START_TEST(a_shorter_line_covers_a_longer_one)
{
    show(100, 400);
    usleep(110000);
    show(1, 4);
    ck_assert_ptr_nonnull(strstr(look(), "1 of 4 tokens"));
    ck_assert_ptr_null(strstr(look(), "400"));
    const char *line = look();
    ck_assert_str_eq(line + strlen(line) - strlen(" left"), " left");
}
END_TEST

START_TEST(sends_no_escapes)
{
    show(1, 4);
    usleep(110000);
    show(2, 4);
    show(4, 4);
    look();
    for (size_t i = 0; i < screen.length; i++)
        ck_assert(screen.bytes[i] == '\r' || (screen.bytes[i] >= ' ' && screen.bytes[i] < 0x7F));
}
END_TEST

START_TEST(without_a_place_nothing_is_shown)
{
    bar.on = false;
    show(1, 4);
    look();
    ck_assert_uint_eq(screen.length, 0);
}
END_TEST

/* ---- the program ----------------------------------------------------------------------------- */

/* Enough texts for many seconds of eval. */
static const char *many_texts(void)
{
    static char path[300];
    mgl_json texts = model_json("tales-5m", "val_texts.json");
    cJSON *list = cJSON_CreateArray();
    const cJSON *item;
    for (int i = 0; i < 30; i++)
        cJSON_ArrayForEach(item, texts.root)
            cJSON_AddItemToArray(list, cJSON_Duplicate(item, true));
    snprintf(path, sizeof path, "%s", scratch_json("second.json", list));
    cJSON_Delete(list);
    mgl_json_clear(&texts);
    return path;
}

/* Runs eval on a terminal of that kind. */
static pid_t start_eval(const char *flags, terminal_program how)
{
    char line[3000];
    snprintf(line, sizeof line, "eval %s --device cpu --texts %s%s", model_path("tales-5m"),
             many_texts(), flags);
    how.line = line;
    return terminal_start(&screen, &how);
}

START_TEST(long_work_has_a_bar)
{
    double start = mgl_clock_s();
    pid_t pid = start_eval("", (terminal_program){.kind = "xterm"});
    ck_assert(terminal_await(&screen, "tokens/s", 60));
    ck_assert_double_ge(mgl_clock_s() - start, 0.9);
    terminal_draw(&screen);
    ck_assert_ptr_eq(strstr(screen.screen[0], "eval "), screen.screen[0]);
    kill(pid, SIGINT);
    ck_assert_int_eq(terminal_end(&screen, pid), 130);
    terminal_draw(&screen);
    ck_assert_str_eq(screen.screen[0], "megalith eval: interrupted by SIGINT");
    ck_assert_str_eq(screen.screen[1], "");
    ck_assert_ptr_null(strchr(screen.bytes, '\033'));
}
END_TEST

/* Without a bar, nothing is printed for longer than a second. */
static const struct still {
    const char *flags;
    terminal_program how;
} stills[] = {
    {" --quiet", {.kind = "xterm"}},
    {"", {.kind = "dumb"}},
    {"", {.kind = ""}},
    {"", {.kind = "xterm", .no_error = true}},
};

START_TEST(there_is_no_bar)
{
    pid_t pid = start_eval(stills[_i].flags, stills[_i].how);
    ck_assert_msg(terminal_read(&screen, 1.6), "it ended already");
    ck_assert_uint_eq(screen.length, 0);
    kill(pid, SIGINT);
    ck_assert_int_eq(terminal_end(&screen, pid), 130);
}
END_TEST

/* If standard output is redirected, the bar is still on standard error. */
START_TEST(output_may_go_elsewhere)
{
    pid_t pid = start_eval("", (terminal_program){.kind = "xterm", .no_output = true});
    ck_assert(terminal_await(&screen, "tokens/s", 60));
    kill(pid, SIGTERM);
    ck_assert_int_eq(terminal_end(&screen, pid), 143);
    terminal_draw(&screen);
    ck_assert_str_eq(screen.screen[0], "megalith eval: interrupted by SIGTERM");
}
END_TEST

/* Short work prints the answer and the closing line, and no bar. */
START_TEST(short_work_has_none)
{
    char line[2000];
    snprintf(line, sizeof line, "run %s --device cpu --prompt Once --max-tokens 3",
             model_path("tales-5m"));
    pid_t pid = terminal_start(&screen, &(terminal_program){.line = line, .kind = "xterm"});
    ck_assert_int_eq(terminal_end(&screen, pid), 0);
    ck_assert_ptr_eq(strstr(screen.bytes, " there was a\r\nmegalith run: 3 tokens, "),
                     screen.bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli progress");
    TCase *tests = tcase_create("progress");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, says_how_far_it_is, 0, (int)(sizeof lines / sizeof *lines));
    tcase_add_test(tests, fits_every_width);
    tcase_add_test(tests, stands_on_the_terminal);
    tcase_add_test(tests, waits_before_it_is_shown);
    tcase_add_test(tests, is_erased_at_the_end);
    tcase_add_test(tests, is_erased_when_it_is_told_to);
    tcase_add_test(tests, another_stage_begins_anew);
    tcase_add_test(tests, is_drawn_ten_times_a_second);
    tcase_add_test(tests, a_shorter_line_covers_a_longer_one);
    tcase_add_test(tests, sends_no_escapes);
    tcase_add_test(tests, without_a_place_nothing_is_shown);
    tcase_add_test(tests, long_work_has_a_bar);
    tcase_add_loop_test(tests, there_is_no_bar, 0, (int)(sizeof stills / sizeof *stills));
    tcase_add_test(tests, output_may_go_elsewhere);
    tcase_add_test(tests, short_work_has_none);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
