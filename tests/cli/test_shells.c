/*
 * Tests of completion in real shells on a pseudo-terminal: types lines that end with Tab, and
 * checks what the shell shows. The argument names the shell: bash, zsh or fish. The test is skipped
 * if the shell is not installed. The offered flags must be those in the verb's help.
 */
#include "command.h"
#include "terminal.h"
#include "tests/time_limit.h"

#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COLUMNS = 250, MAX_FLAGS = 64, MAX_FLAG = 32 };
static const double patience_s = 30; /* time limit for what takes 0.1 s on an idle machine */

#define ENV   "/usr/bin/env" /* the command that finds the shell */
#define PAGES MGL_BINARY_DIR "/pages/"

typedef struct shell {
    const char *name;
    const char *argv[6];
    const char *prepare; /* typed first; its output ends with the word ready, which the command
                            itself does not contain */
    bool lists_at_once;  /* one Tab shows all candidates; else a second one does */
} shell;

static const shell shells[] = {
    {"bash",
     {ENV, "bash", "--norc", "--noprofile", "-i", NULL},
     "PS1='$ '; bind 'set bell-style none'; bind 'set page-completions off'; bind 'set "
     "completion-query-items 0'; bind 'set enable-bracketed-paste off'; . " PAGES
     "megalith.bash; cd " MGL_SOURCE_DIR "; echo rea''dy\n",
     false},
    {"zsh",
     {ENV, "zsh", "-f", "-i", NULL},
     "PS1='$ '; unsetopt beep; LISTMAX=1000; fpath=(" PAGES " $fpath); autoload -U compinit; "
     "compinit -u -D; bindkey '^I' complete-word; bindkey '^U' kill-whole-line; cd " MGL_SOURCE_DIR
     "; echo rea''dy\n",
     true},
    {"fish", {ENV, "fish", "--no-config", "-i", NULL}, NULL, true},
};
static const shell *chosen;
static terminal screen;
static pid_t pid;

/* ---- what a shell offers --------------------------------------------------------------------- */

static void type(const char *keys)
{
    ck_assert_int_eq(write(screen.master, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* Discards the output so far. */
static void clear_screen(void)
{
    screen.length = 0;
    if (screen.bytes)
        screen.bytes[0] = 0;
}

static void start_shell(void)
{
    char *argv[6];
    if (!chosen->prepare)
        return;
    memcpy(argv, chosen->argv, sizeof argv);
    terminal_open(&screen, COLUMNS);
    setenv("HOME", scratch_folder(), 1);
    setenv("INPUTRC", "/dev/null", 1);
    setenv("LC_ALL", "C", 1);
    unsetenv("HISTFILE");
    pid = terminal_start_other(&screen, argv);
    type(chosen->prepare);
    ck_assert_msg(terminal_await(&screen, "ready", patience_s), "%s", screen.bytes);
}

static void end_shell(void)
{
    if (!chosen->prepare)
        return;
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    terminal_close(&screen);
}

/* fish can print its candidates; the other two need a Tab. */
static void ask_fish(const char *line)
{
    char words[1000];
    snprintf(words, sizeof words,
             "cd %s && XDG_CONFIG_HOME=%s fish --no-config -c 'source %smegalith.fish; complete "
             "-C \"%s\"' 2>&1",
             MGL_SOURCE_DIR, scratch_folder(), PAGES, line);
    FILE *from = popen(words, "r");
    ck_assert_ptr_nonnull(from);
    free(screen.bytes);
    screen.bytes = calloc(1, 1 << 16);
    ck_assert_ptr_nonnull(screen.bytes);
    screen.length = fread(screen.bytes, 1, (1 << 16) - 1, from);
    ck_assert_int_eq(pclose(from), 0);
}

static void complete(const char *line)
{
    if (!chosen->prepare) {
        ask_fish(line);
        return;
    }
    clear_screen();
    type(line);
    type(chosen->lists_at_once ? "\t" : "\t\t");
}

/* Erases the line, and waits until all its output has arrived. */
static void finish_line(void)
{
    if (!chosen->prepare)
        return;
    type("\025echo d''one\n");
    ck_assert_msg(terminal_await(&screen, "done", patience_s), "%s", screen.bytes);
}

static bool is_part_of_word(char c)
{
    return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

/* Whether the text contains it as a separate word. */
static bool has_word(const char *text, const char *word)
{
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !is_part_of_word(at[-1])) && !is_part_of_word(at[strlen(word)]))
            return true;
    return false;
}

static bool shows(const char *word)
{
    for (int i = 0;
         chosen->prepare && i < time_limit(patience_s) * 100 && !has_word(screen.bytes, word); i++)
        terminal_read(&screen, 0.01);
    return has_word(screen.bytes, word);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A typed line, candidates that must be shown, and candidates that must not. Separated by
 * blanks. */
typedef struct line_case {
    const char *line, *shown, *hidden;
} line_case;

static const line_case cases[] = {
    {"megalith ", "run compile campaign doctor help", "submit"},
    {"megalith -", "--help --version", "--prompt"},
    {"megalith help c", "check compile campaign", "run"},
    {"megalith help campaign s", "status submit stop", "list"},
    {"megalith campaign s", "status submit stop", "list"},
    {"megalith run --dev", "--device", "--dtype"},
    {"megalith run --device ", "auto cpu cuda", "none"},
    {"megalith run --device=c", "cpu cuda", "none"},
    {"megalith run m --dtype ", "auto f32 bf16 f16", "int8"},
    {"megalith tune --device c", "cuda cpu", "auto"},
    {"megalith tune --shape qwen", "qwen2.5-0.5b qwen3-0.6b", "llama-1b"},
    {"megalith tune --proposer ", "grid random evolve surrogate chat external", "SHARE"},
    {"megalith compile m --target l", "live", "ARCH"},
    {"megalith explain MG40", "MG401 MG404", "MG301"},
    {"megalith campaign list -", "--store --json", "--name"},
    {"megalith kernel guard s", "scan selftest", "show"},
    {"megalith help kernel guard s", "scan selftest", "show"},
    {"megalith kernel guard selftest -", "--json", "--unit"},
    /* Files and folders. */
    {"megalith run tests/models/tales", "tales-5m", "tokenizers"},
    {"megalith run -p Once -n 3 tests/models/tales", "tales-5m", "tokenizers"},
    {"megalith run --device=cpu tests/models/tales", "tales-5m", "tokenizers"},
    {"megalith lower --target sm_90a:132 tests/models/tales", "tales-5m", "tokenizers"},
    {"megalith check --model tests/models/tales", "tales-5m", "tokenizers"},
    {"megalith run tests/fuzz/seeds/fuzz_gguf/q4_", "q4_0.gguf q4_1.gguf", "q8_0.gguf"},
    {"megalith check tests/validator/programs/flags_", "flags_1.mls flags_2.mls", "CMakeLists"},
    {"megalith run m --config CMakeP", "CMakePresets.json", "CMakeLists"},
    {"megalith run m --prompts CMake", "CMakePresets.json", "CMakeLists"},
    {"megalith campaign submit READ", "README.md", "AGENTS.md"},
    {"megalith mcp --folders exam", "examples", "README.md"},
    {"megalith kernel guard scan READ", "README.md", "AGENTS.md"},
    /* After its operand, a verb has only flags. */
    {"megalith run m --ver", "--verify", "--version"},
};
enum { CASES = sizeof cases / sizeof *cases };

START_TEST(completes)
{
    const line_case *c = &cases[_i];
    char words[300];
    complete(c->line);
    strcpy(words, c->shown);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        ck_assert_msg(shows(word), "%s: \"%s\" shows no %s: %s", chosen->name, c->line, word,
                      screen.bytes);
    finish_line();
    ck_assert_msg(!has_word(screen.bytes, c->hidden), "%s: \"%s\" shows %s: %s", chosen->name,
                  c->line, c->hidden, screen.bytes);
}
END_TEST

/* ---- flags ----------------------------------------------------------------------------------- */

static const char *const verbs[] = {"run",
                                    "compile",
                                    "quantize",
                                    "lower",
                                    "check",
                                    "explain",
                                    "info",
                                    "tokenize",
                                    "detokenize",
                                    "score",
                                    "eval",
                                    "bench",
                                    "trace",
                                    "tune",
                                    "mcp",
                                    "doctor",
                                    "campaign list",
                                    "campaign status",
                                    "campaign next",
                                    "campaign submit",
                                    "campaign history",
                                    "campaign best",
                                    "campaign stop",
                                    "campaign report",
                                    "campaign export",
                                    "campaign import",
                                    "campaign resume",
                                    "campaign delete",
                                    "kernel list",
                                    "kernel show",
                                    "kernel verify",
                                    "kernel guard scan",
                                    "kernel ptx diff"};
enum { VERBS = sizeof verbs / sizeof *verbs };

typedef struct flags {
    char names[MAX_FLAGS][MAX_FLAG];
    int count;
} flags;

static void add_flag(flags *out, const char *flag, size_t length)
{
    ck_assert_int_lt(out->count, MAX_FLAGS);
    ck_assert_uint_lt(length, MAX_FLAG);
    snprintf(out->names[out->count++], MAX_FLAG, "%.*s", (int)length, flag);
}

/* The flags of a help line " -p, --prompt TEXT what ...". */
static void read_help(const char *verb, flags *out)
{
    command_result help = command_runf("%s --help", verb);
    ck_assert_int_eq(help.code, 0);
    out->count = 0;
    for (char *line = strtok(help.out, "\n"); line; line = strtok(NULL, "\n"))
        for (char *flag = line + 2; !strncmp(line, "  -", 3) && *flag == '-';) {
            size_t length = strcspn(flag, ", ");
            add_flag(out, flag, length);
            flag += length;
            flag += strspn(flag, ", ");
        }
    command_clear(&help);
    ck_assert_int_gt(out->count, 1);
}

/* Fails if the screen shows a flag that is not in the list: the verb would reject it. */
static void check_no_others(const char *verb, const flags *known)
{
    char word[MAX_FLAG];
    for (const char *at = screen.bytes; (at = strstr(at, "--")); at += 2) {
        size_t length = 2;
        while (is_part_of_word(at[length]))
            length++;
        if (length == 2 || length >= MAX_FLAG)
            continue;
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        bool is_known = false;
        for (int i = 0; i < known->count; i++)
            is_known |= !strcmp(known->names[i], word);
        ck_assert_msg(is_known, "%s offers %s for %s", chosen->name, word, verb);
    }
}

/* Some shells show flags with one dash only after one dash was typed. */
START_TEST(offers_the_flags_of_help)
{
    char line[100];
    flags known;
    read_help(verbs[_i], &known);
    snprintf(line, sizeof line, "megalith %s -", verbs[_i]);
    complete(line);
    for (int i = 0; i < known.count; i++)
        ck_assert_msg(shows(known.names[i]), "%s: \"%s\" shows no %s: %s", chosen->name, line,
                      known.names[i], screen.bytes);
    finish_line();
    if (!chosen->prepare) /* the others also show summaries, or the line */
        check_no_others(verbs[_i], &known);
}
END_TEST

static bool is_installed(const char *name)
{
    char line[100];
    snprintf(line, sizeof line, "command -v %s >/dev/null", name);
    return system(line) == 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(argv[1], shells[i].name))
            chosen = &shells[i];
    if (!chosen || !is_installed(chosen->name)) {
        printf("SKIPPED: completion in %s needs %s\n", argc == 2 ? argv[1] : "a shell",
               argc == 2 ? argv[1] : "its name");
        return 77;
    }
    Suite *suite = suite_create(chosen->name);
    TCase *tests = tcase_create("completion");
    tcase_set_timeout(tests, 120);
    tcase_add_unchecked_fixture(tests, start_shell, end_shell);
    tcase_add_loop_test(tests, completes, 0, CASES);
    tcase_add_loop_test(tests, offers_the_flags_of_help, 0, VERBS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
