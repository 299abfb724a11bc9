/*
 * Tests of `chat`: through a pipe, where each line is a message, and on a pseudo-terminal of 40
 * columns, with and without libedit. The part with libedit is skipped with a message if libedit is
 * not installed.
 */
#include "command.h"
#include "terminal.h"

#include "base/clock.h"
#include "tests/time_limit.h"

#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMPLATE                                                                                   \
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'tool' %}"                              \
    "{{ raise_exception('no tools here') }}{% endif %}{{ m.content }}"                             \
    "{{ eos_token if m.role == 'assistant' else '<|eot_id|>' }}{% endfor %}"

static const char *talker(void)
{
    const char *path = scratch_model("tales-5m", "talker");
    scratch_file("talker/chat_template.jinja", TEMPLATE);
    return path;
}

static command_result chat(const char *flags, const char *input)
{
    char line[3000];
    snprintf(line, sizeof line, "chat %s --device cpu %s", talker(), flags);
    return command_run(line, input);
}

/* The content of message `index` in the output of --json. */
static const char *content(const mgl_json *json, int index, const char *role)
{
    const cJSON *message = cJSON_GetArrayItem(json_at(json, "messages"), index);
    ck_assert_ptr_nonnull(message);
    ck_assert_str_eq(mgl_json_member(message, "role")->valuestring, role);
    return mgl_json_member(message, "content")->valuestring;
}

static mgl_json chat_json(const char *flags, const char *input, int messages)
{
    char more[2000];
    snprintf(more, sizeof more, "-n 4 --quiet --json %s", flags);
    command_result result = chat(more, input);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.chat/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "messages")), messages);
    command_clear(&result);
    return json;
}

/* ---- through a pipe -------------------------------------------------------------------------- */

START_TEST(lines_are_messages)
{
    command_result result = chat("-n 4 --quiet", "Once there was\n\nA fox\r\nlast");
    ck_assert_msg(result.code == 0, "%s", result.err);
    int lines = 0;
    for (const char *at = result.out; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_int_eq(lines, 3);
    ck_assert_ptr_null(strstr(result.out, ">>>"));
    command_clear(&result);
    mgl_json json = chat_json("", "Once there was\n\nA fox\r\nlast", 6);
    ck_assert_str_eq(content(&json, 2, "user"), "A fox");
    ck_assert_str_eq(content(&json, 4, "user"), "last");
    mgl_json_clear(&json);
}
END_TEST

START_TEST(several_lines_are_one_message)
{
    mgl_json json = chat_json("", "a \\\nb\n\"\"\"\nc\n\n/d\n\"\"\"\n\"\"\"e\"\"\"\n\"\"\"f\ng", 8);
    ck_assert_str_eq(content(&json, 0, "user"), "a \nb");
    ck_assert_str_eq(content(&json, 2, "user"), "c\n\n/d");
    ck_assert_str_eq(content(&json, 4, "user"), "e");
    ck_assert_str_eq(content(&json, 6, "user"), "f\ng");
    mgl_json_clear(&json);
}
END_TEST

START_TEST(clear_begins_anew)
{
    mgl_json json = chat_json("--system S", "a\n/clear\nb\n", 3);
    ck_assert_str_eq(content(&json, 0, "system"), "S");
    ck_assert_str_eq(content(&json, 1, "user"), "b");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "replies")), 2);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(the_system_message_changes)
{
    mgl_json json = chat_json("", "a\n/system Be brief\nb\n/system Be long\n", 5);
    ck_assert_str_eq(content(&json, 0, "system"), "Be long");
    ck_assert_str_eq(content(&json, 1, "user"), "a");
    mgl_json_clear(&json);
}
END_TEST

START_TEST(nothing_stands_behind_exit)
{
    mgl_json json = chat_json("", "a\n/exit\nb\n", 2);
    mgl_json_clear(&json);
    json = chat_json("", "a\n/bye\nb\n", 2);
    mgl_json_clear(&json);
}
END_TEST

/* A file written by /save can be read by --messages, here and in `run`. */
START_TEST(a_saved_conversation_goes_on)
{
    char input[1300], flags[1200];
    snprintf(flags, sizeof flags, "%s/talk.json", scratch_folder());
    snprintf(input, sizeof input, "Once \"ä\"\n/save %s\n", flags);
    mgl_json first = chat_json("", input, 2);
    mgl_json_clear(&first);
    snprintf(flags, sizeof flags, "--messages %s/talk.json", scratch_folder());
    mgl_json more = chat_json(flags, "And\n", 4);
    mgl_json whole = chat_json("", "Once \"ä\"\nAnd\n", 4);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(content(&more, i, i % 2 ? "assistant" : "user"),
                         content(&whole, i, i % 2 ? "assistant" : "user"));
    mgl_json_clear(&more);
    mgl_json_clear(&whole);
    command_result result = command_runf("run %s --chat -n 2 --device cpu %s", talker(), flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(save_overwrites_conversations_alone)
{
    char input[1200];
    snprintf(input, sizeof input, "a\n/save %s\n/save %s\n", scratch_file("t.json", "[]"),
             scratch_file("notes.txt", "mine"));
    command_result result = chat("-n 2", input);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "2 messages in ") != NULL, "%s", result.err);
    ck_assert_msg(strstr(result.err, "notes.txt: exists and is not a conversation") != NULL, "%s",
                  result.err);
    command_clear(&result);
    snprintf(input, sizeof input, "%s/notes.txt", scratch_folder());
    FILE *file = fopen(input, "r");
    ck_assert_ptr_nonnull(fgets(input, sizeof input, file));
    fclose(file);
    ck_assert_str_eq(input, "mine");
}
END_TEST

/* The message suggests a remedy. The conversation is unchanged and continues. */
START_TEST(a_full_cache)
{
    char input[1000];
    snprintf(input, sizeof input, "Once\n%0200d\n/clear\nTwice\n", 0);
    command_result result = chat("--json --capacity 40 -n 4", input);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "the KV cache is full: with this message") != NULL, "%s",
                  result.err);
    ck_assert_msg(strstr(result.err, "/clear begins a new one") != NULL, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.chat/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "replies")), 2);
    ck_assert_str_eq(content(&json, 0, "user"), "Twice");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(a_reply_that_fills_the_cache_is_kept)
{
    command_result result = chat("--json --capacity 20 --ignore-eos", "Once\nTwice\n");
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "the KV cache is full, so the reply ends here") != NULL, "%s",
                  result.err);
    mgl_json json = command_json(&result, "megalith.chat/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "messages")), 2);
    ck_assert_int_gt((int)strlen(content(&json, 1, "assistant")), 5);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The template rejects one message; the next gets its reply. */
START_TEST(a_message_that_fails_is_dropped)
{
    char flags[1100];
    snprintf(flags, sizeof flags, "-n 2 --json --template %s",
             scratch_file("picky.jinja", "{% for m in messages %}{% if m.content == 'bad' %}"
                                         "{{ raise_exception('not that') }}{% endif %}"
                                         "{{ m.content }}{% endfor %}"));
    command_result result = chat(flags, "a\nbad\nb\n");
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "not that") != NULL, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.chat/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "messages")), 4);
    ck_assert_str_eq(content(&json, 2, "user"), "b");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

static const struct {
    const char *flags, *input;
    int code;
    const char *says;
} refused[] = {
    {"", "/nope\n", 2, "unknown command: /nope; /help lists the commands"},
    {"", "/save\n", 2, "/save: needs the name of a file"},
    {"", "/system\n", 2, "/system: needs a text"},
    {"--messages -", "[]", 1, "the chat reads its messages from standard input"},
    {"--sample --top-k 3", "", 1, "--sample"},
    {"--messages nowhere.json", "", 2, "nowhere.json"},
    {"--template-name none", "a\n", 2, "is called none"},
};

START_TEST(says_what_is_wrong)
{
    command_result result = chat(refused[_i].flags, refused[_i].input);
    ck_assert_msg(result.code == refused[_i].code, "%d: %s", result.code, result.err);
    ck_assert_msg(strstr(result.err, refused[_i].says) != NULL, "%s", result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

START_TEST(a_model_without_a_template)
{
    command_result result = command_runf("chat %s", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "give one by --template FILE") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

/* ---- signals --------------------------------------------------------------------------------- */

/* Starts a chat that reads what is written to *input. */
static command start_chat(const char *flags, int *input)
{
    char line[3000];
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    snprintf(line, sizeof line, "chat %s --device cpu --quiet %s", talker(), flags);
    command running = command_start_with(line, ends[0], 0);
    close(ends[0]);
    *input = ends[1];
    return running;
}

static void type(int to, const char *text)
{
    ck_assert_int_eq(write(to, text, strlen(text)), (ssize_t)strlen(text));
}

/* Without a terminal, Ctrl-C ends the program, like other verbs. */
START_TEST(signals_end_the_chat)
{
    int input, number = _i < 2 ? SIGTERM : SIGINT;
    command running = start_chat("--ignore-eos", &input);
    if (_i % 2)
        type(input, "Once there was\n");
    if (_i % 2)
        ck_assert_int_eq(command_await(&running, 20), 1);
    command_await_handler(&running);
    double start = mgl_clock_s();
    kill(running.pid, number);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 128 + number);
    ck_assert_double_lt(mgl_clock_s() - start, COMMAND_ENDS_S);
    command_clear(&result);
    close(input);
}
END_TEST

/* ---- a terminal ------------------------------------------------------------------------------ */

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"
#define CTRLC "\003"
#define CTRLD "\004"

static bool has_libedit(void)
{
    void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    return library || dlopen("libedit.so.0", RTLD_NOW | RTLD_LOCAL);
}

/* TERM of an editor, and no TERM. */
static const char *const kinds[] = {"dumb", "xterm"};

static bool lacks(int kind)
{
    if (!kind || has_libedit())
        return false;
    printf("SKIPPED: libedit is not installed (libedit2): chats with it were not held\n");
    return true;
}

static pid_t open_chat(terminal *t, int kind, const char *flags)
{
    static char line[3000];
    snprintf(line, sizeof line, "chat %s --device cpu %s", talker(), flags);
    terminal_open(t, 40);
    pid_t pid = terminal_start(t, &(terminal_program){.line = line, .kind = kinds[kind]});
    ck_assert_msg(terminal_await(t, ">>>", 20), "%s", t->bytes);
    return pid;
}

static void await(terminal *t, const char *text)
{
    ck_assert_msg(terminal_await(t, text, 20), "no '%s' in %s", text, t->bytes);
}

/* Waits for that text and then the next prompt. */
static void await_prompt(terminal *t, const char *text)
{
    double end = mgl_clock_s() + time_limit(20);
    await(t, text);
    while (!strstr(strstr(t->bytes, text), ">>>") && mgl_clock_s() < end)
        terminal_read(t, 0.01);
    ck_assert_msg(strstr(strstr(t->bytes, text), ">>>") != NULL, "no prompt in %s", t->bytes);
}

/* Discards the output so far, so that the next wait is for new output. */
static void forget(terminal *t)
{
    t->length = 0;
    t->bytes[0] = 0;
}

START_TEST(a_person_is_greeted_and_leaves)
{
    terminal t;
    if (lacks(_i))
        return;
    pid_t pid = open_chat(&t, _i, "-n 4");
    ck_assert_msg(strstr(t.bytes, "on cpu, f32, 1024 positions; /help") != NULL, "%s", t.bytes);
    type(t.master, "Once there was\n");
    await(&t, " a curious");
    await_prompt(&t, "--max-tokens 4\r\n");
    type(t.master, CTRLD);
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    ck_assert_msg(strstr(t.bytes, "1 reply, 4 tokens; prompts of") != NULL, "%s", t.bytes);
    terminal_close(&t);
}
END_TEST

START_TEST(help_fits_40_columns)
{
    terminal t;
    if (lacks(_i))
        return;
    pid_t pid = open_chat(&t, _i, "--quiet");
    forget(&t);
    type(t.master, "/help\n");
    await(&t, "Ctrl-D        leaves\r\n");
    for (const char *at = strstr(t.bytes, "/help "); at && *at;) {
        size_t length = strcspn(at, "\r\n");
        ck_assert_msg(length < 40, "%.*s", (int)length, at);
        at += length + strspn(at + length, "\r\n");
        if (strchr(at, '>'))
            break;
    }
    type(t.master, "/exit\n");
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    terminal_close(&t);
}
END_TEST

/* The help of the verb lists the commands, also before a chat begins. */
START_TEST(help_of_the_verb_has_them)
{
    command_result result = command_run("chat --help", NULL);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, "\n  /save FILE "));
    ck_assert_ptr_nonnull(strstr(result.out, "\n  Ctrl-C "));
    ck_assert_ptr_null(strstr(result.out, "--logprobs"));
    command_clear(&result);
}
END_TEST

/* Reads the messages of a file that /save wrote, and checks their number. */
static mgl_json read_saved(const char *path, int count)
{
    mgl_json json = {0};
    mgl_error err;
    ck_assert_int_eq(mgl_json_read_file(path, 1 << 20, &json, &err), MGL_OK);
    ck_assert_int_eq(cJSON_GetArraySize(json.root), count);
    return json;
}

/* The partial reply is kept, and the chat continues. */
START_TEST(ctrl_c_ends_the_reply)
{
    terminal t;
    char save[1200], path[1100];
    if (lacks(_i))
        return;
    snprintf(path, sizeof path, "%s/partial%d.json", scratch_folder(), _i);
    snprintf(save, sizeof save, "/save %s\n", path);
    pid_t pid = open_chat(&t, _i, "--quiet --ignore-eos");
    type(t.master, "Once there was\n");
    await(&t, " a curious");
    type(t.master, CTRLC);
    forget(&t);
    await(&t, ">>>");
    type(t.master, save);
    await(&t, "2 messages in ");
    type(t.master, CTRLD);
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    mgl_json json = read_saved(path, 2);
    const char *said = mgl_json_member(cJSON_GetArrayItem(json.root, 1), "content")->valuestring;
    ck_assert_msg(!strncmp(said, " a curious", 10), "%s", said);
    ck_assert_uint_lt(strlen(said), 2500);
    mgl_json_clear(&json);
    terminal_close(&t);
}
END_TEST

START_TEST(ctrl_c_twice_at_the_prompt_leaves)
{
    terminal t;
    if (lacks(_i))
        return;
    pid_t pid = open_chat(&t, _i, "--quiet");
    forget(&t);
    type(t.master, CTRLC);
    await_prompt(&t, "press Ctrl-C again to leave");
    type(t.master, CTRLC);
    ck_assert_int_eq(terminal_end(&t, pid), 130);
    terminal_close(&t);
}
END_TEST

/* With libedit: Ctrl-C discards the typed line and does not end the chat. */
START_TEST(ctrl_c_drops_a_line)
{
    terminal t;
    if (lacks(1))
        return;
    pid_t pid = open_chat(&t, 1, "--quiet");
    for (int i = 0; i < 2; i++) {
        forget(&t);
        type(t.master, "some");
        await(&t, "some");
        type(t.master, CTRLC);
        await(&t, ">>>");
    }
    type(t.master, "/exit\n");
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    ck_assert_ptr_null(strstr(t.bytes, "Ctrl-C again"));
    terminal_close(&t);
}
END_TEST

/* The previous line comes back with its `ä`, and is longer than the terminal's width. */
START_TEST(the_history_has_what_was_said)
{
    terminal t;
    char save[1200], path[1100];
    if (lacks(1))
        return;
    snprintf(path, sizeof path, "%s/history.json", scratch_folder());
    snprintf(save, sizeof save, "/save %s\n", path);
    pid_t pid = open_chat(&t, 1, "--quiet -n 2");
    type(t.master, "Once there was an \xC3\xA4pfel in a very long line of words\n");
    await_prompt(&t, "--max-tokens 2\r\n");
    forget(&t);
    type(t.master, "\020\n"); /* Ctrl-P, like the up arrow */
    await_prompt(&t, "--max-tokens 2\r\n");
    forget(&t);
    type(t.master, save);
    await(&t, "4 messages in ");
    type(t.master, CTRLD);
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    mgl_json json = read_saved(path, 4);
    for (int i = 0; i < 4; i += 2)
        ck_assert_str_eq(mgl_json_member(cJSON_GetArrayItem(json.root, i), "content")->valuestring,
                         "Once there was an \xC3\xA4pfel in a very long line of words");
    mgl_json_clear(&json);
    terminal_close(&t);
}
END_TEST

START_TEST(colour_is_for_those_who_want_it)
{
    terminal t;
    if (lacks(1))
        return;
    pid_t pid = open_chat(&t, 1, "--quiet");
    await(&t, BOLD ">>>" PLAIN " ");
    type(t.master, CTRLD);
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    terminal_close(&t);
    setenv("NO_COLOR", "1", 1);
    pid = open_chat(&t, 1, "--quiet");
    ck_assert_msg(strstr(t.bytes, BOLD) == NULL, "%s", t.bytes);
    type(t.master, CTRLD);
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    terminal_close(&t);
    unsetenv("NO_COLOR");
    pid = open_chat(&t, 0, "--quiet");
    ck_assert_msg(strchr(t.bytes, '\033') == NULL, "%s", t.bytes);
    type(t.master, CTRLD);
    ck_assert_int_eq(terminal_end(&t, pid), 0);
    terminal_close(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chat");
    TCase *pipes = tcase_create("pipe"), *terminals = tcase_create("terminal");
    tcase_set_timeout(pipes, 60);
    tcase_set_timeout(terminals, 60);
    tcase_add_test(pipes, lines_are_messages);
    tcase_add_test(pipes, several_lines_are_one_message);
    tcase_add_test(pipes, clear_begins_anew);
    tcase_add_test(pipes, the_system_message_changes);
    tcase_add_test(pipes, nothing_stands_behind_exit);
    tcase_add_test(pipes, a_saved_conversation_goes_on);
    tcase_add_test(pipes, save_overwrites_conversations_alone);
    tcase_add_test(pipes, a_full_cache);
    tcase_add_test(pipes, a_reply_that_fills_the_cache_is_kept);
    tcase_add_test(pipes, a_message_that_fails_is_dropped);
    tcase_add_loop_test(pipes, says_what_is_wrong, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(pipes, a_model_without_a_template);
    tcase_add_loop_test(pipes, signals_end_the_chat, 0, 4);
    tcase_add_loop_test(terminals, a_person_is_greeted_and_leaves, 0, 2);
    tcase_add_loop_test(terminals, help_fits_40_columns, 0, 2);
    tcase_add_test(pipes, help_of_the_verb_has_them);
    tcase_add_loop_test(terminals, ctrl_c_ends_the_reply, 0, 2);
    tcase_add_loop_test(terminals, ctrl_c_twice_at_the_prompt_leaves, 0, 2);
    tcase_add_test(terminals, ctrl_c_drops_a_line);
    tcase_add_test(terminals, the_history_has_what_was_said);
    tcase_add_test(terminals, colour_is_for_those_who_want_it);
    suite_add_tcase(suite, pipes);
    suite_add_tcase(suite, terminals);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
