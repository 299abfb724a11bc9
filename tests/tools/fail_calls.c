/*
 * Makes each call of the C library that a verb makes fail in turn, and looks at what comes of it.
 *
 *     fail_calls MEGALITH SHIM MODEL [--sample N --seed S] [--only NAME] [--jobs N] [--log FILE]
 *
 * Each scenario runs once as it is: SHIM (fail_shim.c) counts its calls, and what it answers is the
 * reference. Then it runs again for each kind of call, for each of its calls, once with this call
 * failing and once with all from it on; and with little address space, as after `ulimit -v`. It has
 * to end by itself, within the limit, with the answer of the reference, or with a message and a code
 * that fits. The file that stood in the place of the output is whole then, the old one or the new
 * one, and nothing else is changed. VERDICTS lists what is not so.
 *
 * --sample takes N of these runs at random, and all of those with little address space. --only is
 * for a kind (malloc), a scenario (run-json), a kind of that (run-json/malloc), or one call of it
 * (run-json/malloc/17/once), and stands as often as you like. Of a run that is the only one it says where in the program the call is. --log
 * writes a line for each run. What is printed is a JSON object; the exit code is 1 when something was
 * bad.
 */
#include "tests/tools/fail_calls.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/parallel.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SPACE = MGL_FAIL_KIND_COUNT, /* the kind of the runs with little address space */
    SPACE_FIRST = 80000,         /* KiB */
    SPACE_LAST = 200000,
    SPACE_STEP = 10000,
    LIMIT_S = 10,
    MAX_PATH = 512,
    MAX_ARGUMENTS = 32,
    MAX_NAMES = 16,
    MAX_NOTE = 160,
    MAX_JOBS = 16,
    LARGEST = 1 << 28
};

#define LINK "link" /* which leads to the output of a scenario */

/* name, code, output in its folder or NULL, what is run there; the inputs are one folder up. */
#define SCENARIOS(X)                                                                               \
    X("run", 0, NULL, "run ../model --device cpu --threads 2 --prompt Once --max-tokens 4")        \
    X("run-mega", 0, NULL,                                                                         \
      "run ../tales.mega --device cpu --threads 2 --prompt Once --max-tokens 4")                   \
    X("run-verify", 0, NULL,                                                                       \
      "run ../tales.mega --device cpu --verify --prompt-ids 1,2 --max-tokens 2")                   \
    X("run-prompts", 0, NULL,                                                                      \
      "run ../model --device cpu --prompts ../prompts.json --max-tokens 5"                         \
      " --temperature 0.8 --top-k 20 --seed 7 --quiet")                                            \
    X("run-json", 0, NULL,                                                                         \
      "run ../tales.mega --device cpu --prompt-file ../text --max-tokens 4"                        \
      " --sample --seed 3 --json")                                                                 \
    X("run-schedule", 0, NULL,                                                                     \
      "run ../model --device cpu --schedule ../tales.mls --prompt Once"                            \
      " --max-tokens 2 --sample --seed 4 --json")                                                  \
    X("run-unsafe", 3, NULL, "run ../model --device cpu --schedule ../unsafe.mls --prompt Once")   \
    X("compile", 0, "x.mega", "compile ../model --target cpu:1 -o x.mega")                         \
    X("compile-json", 0, "x.mega",                                                                 \
      "compile ../model --target cpu:1 --capacity 64 -o x.mega --json")                            \
    X("lower", 0, NULL, "lower ../model --target cpu:2")                                           \
    X("lower-file", 0, "x.mls", "lower ../model --target cpu:2 -o x.mls")                          \
    X("lower-link", 0, "x.mls", "lower ../model --target cpu:1 -o " LINK)                          \
    X("lower-onto", 2, NULL, "lower ../model --target cpu:1 -o ../model/config.json")              \
    X("check", 0, NULL, "check ../tales.mls --model ../model")                                     \
    X("check-json", 0, NULL, "check ../tales.mls --json")                                          \
    X("check-unsafe", 3, NULL, "check ../unsafe.mls")                                              \
    X("check-unsafe-json", 3, NULL, "check ../unsafe.mls --model ../model --json")                 \
    X("eval", 0, NULL, "eval ../model --device cpu --threads 2 --texts ../texts.json")             \
    X("eval-json", 0, NULL, "eval ../tales.mega --device cpu --texts ../texts.json --json")        \
    X("tokenize", 0, NULL, "tokenize ../model --texts ../texts.json")                              \
    X("tokenize-json", 0, NULL, "tokenize ../model --json")                                        \
    X("detokenize", 0, NULL, "detokenize ../model --ids 909,449,268,259")                          \
    X("info", 0, NULL, "info ../model")                                                            \
    X("info-json", 0, NULL, "info ../tales.mega --json")                                           \
    X("info-nothing", 2, NULL, "info ../nothing --json")                                           \
    X("explain", 0, NULL, "explain ../gpu.mls")                                                    \
    X("doctor", 0, NULL, "doctor")                                                                 \
    X("doctor-json", 0, NULL, "doctor --json")

/* What a run came to: name, bad, meaning. */
#define VERDICTS(X)                                                                                \
    X(same, false, "the reference's answer, although a call failed")                               \
    X(not_reached, false, "the reference's answer; there was no such call this time")              \
    X(told, false, "what failed stands in the answer, as missing or unknown: doctor")              \
    X(refused, false, "a message and a code that fits")                                            \
    X(crash, true, "ended by a signal")                                                            \
    X(hang, true, "did not end within the limit")                                                  \
    X(wrong_answer, true, "code 0 with another answer than the reference's")                       \
    X(wrong_code, true, "a code that the contract has not for this")                               \
    X(no_message, true, "no message on standard error")                                            \
    X(no_object, true, "with --json, standard output is not one megalith.error/1")                 \
    X(torn_output, true, "the output is neither the old file nor the new one")                     \
    X(left_behind, true, "a file beside the output that no next writer removes")                   \
    X(changed_input, true, "the checkpoint is no longer what it was")

typedef enum verdict {
#define MGL_X(name, bad, meaning) VERDICT_##name,
    VERDICTS(MGL_X)
#undef MGL_X
        VERDICT_COUNT
} verdict;

static const struct {
    const char *name;
    bool bad;
} verdicts[] = {
#define MGL_X(name, bad, meaning) {#name, bad},
    VERDICTS(MGL_X)
#undef MGL_X
};

static const struct {
    const char *name;
    int number; /* errno */
} kinds[] = {
#define MGL_X(kind, number, calls) {#kind, number},
    MGL_FAIL_KINDS(MGL_X)
#undef MGL_X
        {"address_space", ENOMEM},
};

/* Bytes of a file, or an answer. Release bytes with mgl_free. */
typedef struct content {
    char *bytes;
    size_t length;
} content;

typedef struct scenario {
    const char *name;
    int code; /* when nothing fails */
    const char *output, *line;
    bool json;
    content answer; /* what it prints, without what differs from run to run */
    content file;   /* its output */
    uint64_t calls[MGL_FAIL_KIND_COUNT];
} scenario;

/* One run. */
typedef struct trial {
    uint16_t scenario, kind;
    bool forever;
    uint64_t at; /* number of the call; of SPACE, KiB */
} trial;

typedef struct outcome {
    uint8_t verdict;
    int16_t code;        /* exit code, or the signal's number below 0 */
    char note[MAX_NOTE]; /* the last line of standard error */
} outcome;

/* What the jobs share. */
typedef struct shared {
    atomic_size_t next; /* trial that nobody has taken */
    outcome outcomes[]; /* (trial_count) */
} shared;

/* Of a process that runs trials: its folder, and what it uses beside it. */
typedef struct job {
    char folder[MAX_PATH], out[MAX_PATH], err[MAX_PATH], count[MAX_PATH];
    mgl_fail_page *page;
} job;

static struct settings {
    char megalith[PATH_MAX], shim[PATH_MAX];
    const char *model;
    const char *only[MAX_NAMES];
    int only_count;  /* 0: all */
    const char *log; /* NULL: none */
    size_t sample;   /* 0: everything */
    unsigned seed;
    int jobs;
} settings;

static char scratch[] = "/tmp/megalith-fail-XXXXXX";
static const char earlier[] = "what stood there before\n";
static scenario scenarios[] = {
#define MGL_X(name, code, output, line) {name, code, output, line, false, {0}, {0}, {0}},
    SCENARIOS(MGL_X)
#undef MGL_X
};
enum { SCENARIO_COUNT = sizeof scenarios / sizeof *scenarios };
static trial *trials;
static size_t trial_count;

static _Noreturn void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fail_calls: %s: %s\n", what, detail);
    exit(1);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void path_of(const char *name, char path[MAX_PATH])
{
    snprintf(path, MAX_PATH, "%s/%s", scratch, name);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        fail(path, strerror(errno));
}

static content read_content(const char *path)
{
    content c;
    mgl_error err;
    if (mgl_file_read(path, LARGEST, &c.bytes, &c.length, &err))
        fail(path, err.message);
    return c;
}

static bool equals(content a, content b)
{
    return a.length == b.length && !memcmp(a.bytes, b.bytes, a.length);
}

/* Of all files of the copied model: where they are, and when they last changed in any way. */
static uint64_t stamp_model(void)
{
    char path[MAX_PATH];
    uint64_t sum = 0;
    path_of("model", path);
    DIR *entries = opendir(path);
    if (!entries)
        fail(path, strerror(errno));
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        struct stat facts;
        if (fstatat(dirfd(entries), entry->d_name, &facts, 0) || S_ISDIR(facts.st_mode))
            continue;
        sum += (uint64_t)facts.st_ino * 31 + (uint64_t)facts.st_size * 17 +
               (uint64_t)facts.st_ctim.tv_sec * 1000000007 + (uint64_t)facts.st_ctim.tv_nsec;
    }
    closedir(entries);
    return sum;
}

/* Empties the folder, and puts the earlier file in the place of the output. */
static void lay_out(const job *j, const scenario *s)
{
    char path[2 * MAX_PATH];
    DIR *entries = opendir(j->folder);
    if (!entries)
        fail(j->folder, strerror(errno));
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    if (!s->output)
        return;
    snprintf(path, sizeof path, "%s/%s", j->folder, s->output);
    write_file(path, earlier);
    snprintf(path, sizeof path, "%s/%s", j->folder, LINK);
    if (symlink(s->output, path))
        fail(path, strerror(errno));
}

/* Whether the next writer of the output removes a file of that name. */
static bool is_temporary(const char *name, const char *output)
{
    size_t mark = strlen(MGL_OUTPUT_MARK), end = strlen(MGL_OUTPUT_END), length = strlen(output);
    return strlen(name) == length + mark + 8 + end && !strncmp(name, output, length) &&
           !strncmp(name + length, MGL_OUTPUT_MARK, mark) &&
           !strcmp(name + length + mark + 8, MGL_OUTPUT_END);
}

static bool left_behind(const job *j, const scenario *s)
{
    bool found = false;
    char to[MAX_PATH];
    DIR *entries = opendir(j->folder);
    if (!entries)
        fail(j->folder, strerror(errno));
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        const char *name = entry->d_name;
        bool known = !strcmp(name, ".") || !strcmp(name, "..");
        if (s->output)
            known |= !strcmp(name, s->output) || is_temporary(name, s->output) ||
                     (!strcmp(name, LINK) && readlinkat(dirfd(entries), name, to, sizeof to) > 0);
        found |= !known;
    }
    closedir(entries);
    return found;
}

/* ---- a process ------------------------------------------------------------------------------ */

static volatile sig_atomic_t running, ran_out; /* running: the process that the alarm kills */

static void on_alarm(int signal)
{
    (void)signal;
    ran_out = 1;
    kill(running, SIGKILL);
}

static void set_number(const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    setenv(name, text, 1);
}

static void set_limit(int resource, uint64_t most)
{
    setrlimit(resource, &(struct rlimit){.rlim_cur = most, .rlim_max = most});
}

/* What the shim is told. Little address space is a limit of the system, without the shim. */
static void set_failure(const job *j, const trial *t)
{
    if (t->kind == SPACE) {
        set_limit(RLIMIT_AS, t->at << 10);
        return;
    }
    setenv("LD_PRELOAD", settings.shim, 1);
    setenv("FAIL_COUNT", j->count, 1);
    if (!t->at)
        return;
    setenv("FAIL_KIND", kinds[t->kind].name, 1);
    setenv("FAIL_FOREVER", t->forever ? "1" : "0", 1);
    set_number("FAIL_AT", t->at);
    if (trial_count == 1)
        setenv("FAIL_TRACE", "1", 1);
}

static _Noreturn void become(const job *j, const scenario *s, const trial *t)
{
    char line[MAX_PATH], text[MAX_PATH], *argv[MAX_ARGUMENTS] = {settings.megalith};
    int count = 1;
    path_of("text", text);
    snprintf(line, sizeof line, "%s", s->line);
    for (char *word = strtok(line, " "); word && count < MAX_ARGUMENTS - 1;
         word = strtok(NULL, " "))
        argv[count++] = word;
    dup2(open(text, O_RDONLY | O_CLOEXEC), 0);
    dup2(open(j->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), 1);
    dup2(open(j->err, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666), 2);
    if (chdir(j->folder))
        _exit(125);
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_CPU, LIMIT_S);
    set_failure(j, t);
    execv(argv[0], argv);
    _exit(125);
}

/* Runs it to its end, which may be ours; the status that the system tells. */
static int run(const job *j, const scenario *s, const trial *t)
{
    int status;
    memset(j->page, 0, sizeof *j->page);
    j->page->failed = t->kind == SPACE; /* there the system counts, and does not tell */
    lay_out(j, s);
    ran_out = 0;
    pid_t pid = fork();
    if (pid < 0)
        fail("fork", strerror(errno));
    if (pid == 0)
        become(j, s, t);
    running = pid;
    alarm(LIMIT_S);
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR)
            fail("waitpid", strerror(errno));
    alarm(0);
    return status;
}

/* ---- an answer ------------------------------------------------------------------------------ */

/* How many bytes of the text that begins there differ from run to run: times, free memory, threads
 * that the system gave, where NVRTC is (in more than one place), and why there is no driver. */
static size_t unsteady_length(const char *from, bool in_word)
{
    static const struct {
        const char *begin, *end;
    } parts[] = {
        {"\"timing\":{", "}"},
        {"\"ms\":", "}"},
        {"\"threads\":", ","},
        {"\"scratch_bytes\":", "}"},
        {"NVRTC     ok", "\n"},
        {"\"nvrtc\":{\"found\":true", "}"},
        {"no NVIDIA driver on this machine (", ")"},
    };
    static const char *const units[] = {" ms", " s", " GB", ",\"libraries\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strncmp(from, parts[i].begin, strlen(parts[i].begin)))
            return strcspn(from, parts[i].end);
    size_t length = in_word ? 0 : strspn(from, "0123456789.");
    for (size_t i = 0; length && i < sizeof units / sizeof *units; i++)
        if (!strncmp(from + length, units[i], strlen(units[i])))
            return length;
    return 0;
}

/* What was printed, with a # for whatever differs from run to run. */
static content read_answer(const char *path)
{
    content c = read_content(path);
    size_t length = 0;
    for (size_t i = 0; i < c.length;) {
        bool in_word = i > 0 && (isalnum((unsigned char)c.bytes[i - 1]) || c.bytes[i - 1] == '.');
        size_t skipped = unsteady_length(c.bytes + i, in_word);
        c.bytes[length++] = skipped ? '#' : c.bytes[i];
        i += skipped ? skipped : 1;
    }
    c.length = length;
    c.bytes[length] = 0;
    return c;
}

/* Whether it is one megalith.error/1 of that exit code. */
static bool is_error_object(const char *path, int code)
{
    mgl_json json = {0};
    const char *schema = NULL;
    int64_t told = -1;
    content c = read_content(path);
    bool good = !mgl_json_parse(c.bytes, c.length, LARGEST, path, &json, NULL) &&
                !mgl_json_get_string(&json, json.root, "schema", true, &schema, NULL) &&
                !mgl_json_get_int(&json, json.root, "exit", true, 0, 255, &told, NULL) &&
                !strcmp(schema, "megalith.error/1") && told == code;
    mgl_json_clear(&json);
    mgl_free(c.bytes);
    return good;
}

/* The last line, fit for a JSON string; "" when there is none. */
static void read_note(const char *path, char note[MAX_NOTE])
{
    content c = read_content(path);
    size_t end = c.length, length = 0;
    while (end > 0 && c.bytes[end - 1] == '\n')
        end--;
    size_t start = end;
    while (start > 0 && c.bytes[start - 1] != '\n')
        start--;
    for (; start < end && length < MAX_NOTE - 1; start++) {
        unsigned char byte = (unsigned char)c.bytes[start];
        note[length++] = byte == '"' || byte == '\\' || byte < 32 || byte > 126 ? '\'' : (char)byte;
    }
    note[length] = 0;
    mgl_free(c.bytes);
}

/* ---- judging -------------------------------------------------------------------------------- */

typedef enum output_state { OUTPUT_NONE, OUTPUT_OLD, OUTPUT_NEW, OUTPUT_TORN } output_state;

static output_state look_at_output(const job *j, const scenario *s)
{
    char path[2 * MAX_PATH];
    if (!s->output)
        return OUTPUT_NONE;
    snprintf(path, sizeof path, "%s/%s", j->folder, s->output);
    if (access(path, F_OK))
        return OUTPUT_TORN;
    content now = read_content(path), old = {(char *)(uintptr_t)earlier, strlen(earlier)};
    bool is_old = equals(now, old), is_new = equals(now, s->file);
    mgl_free(now.bytes);
    return is_new ? OUTPUT_NEW : is_old ? OUTPUT_OLD : OUTPUT_TORN;
}

/* Words of an answer that say that something is not there. */
static int count_lacks(const content *answer)
{
    static const char *const words[] = {"missing", "unknown", "false", "null"};
    int count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = answer->bytes; (at = strstr(at, words[i])); at++)
            count++;
    return count;
}

/* Of a run that ended with the reference's code. */
static verdict judge_answer(const job *j, const scenario *s, output_state output, bool reached)
{
    content answer = read_answer(j->out);
    bool same = equals(answer, s->answer) && output != OUTPUT_OLD;
    bool told = s->line[0] == 'd' && count_lacks(&answer) > count_lacks(&s->answer);
    mgl_free(answer.bytes);
    if (same)
        return reached ? VERDICT_same : VERDICT_not_reached;
    return told ? VERDICT_told : VERDICT_wrong_answer;
}

/* The code is 4 where memory ran out, and 2 where a file could not be read or written. What was found
 * before the answer could not be written (3) counts more than that. */
static verdict judge_refusal(const job *j, const trial *t, const outcome *o)
{
    const scenario *s = &scenarios[t->scenario];
    bool mute = j->page->failed_on & 1 << STDERR_FILENO;
    bool lost = j->page->failed_on & 1 << STDOUT_FILENO;
    int wanted = kinds[t->kind].number == ENOMEM ? 4 : 2;
    if (o->code == 0)
        return VERDICT_wrong_answer;
    if (o->code != wanted && !(lost && o->code == s->code))
        return VERDICT_wrong_code;
    if (!mute && strncmp(o->note, "megalith", strlen("megalith")) != 0)
        return VERDICT_no_message;
    return s->json && !lost && !is_error_object(j->out, o->code) ? VERDICT_no_object
                                                                 : VERDICT_refused;
}

/* Of a run that ended by itself. With the code of the reference it may have another answer when it
 * refuses something else, or can not say what it found. */
static verdict judge_end(const job *j, const trial *t, output_state output, const outcome *o)
{
    const scenario *s = &scenarios[t->scenario];
    bool lost = j->page->failed_on & 1 << STDOUT_FILENO;
    verdict v = VERDICT_wrong_answer;
    if (o->code == s->code)
        v = judge_answer(j, s, output, j->page->failed > 0);
    if (v == VERDICT_wrong_answer && (o->code != s->code || o->code == 2 || lost))
        v = judge_refusal(j, t, o);
    return v;
}

static outcome judge(const job *j, const trial *t, int status)
{
    const scenario *s = &scenarios[t->scenario];
    outcome o = {0};
    output_state output = look_at_output(j, s);
    o.code = (int16_t)(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    read_note(j->err, o.note);
    if (ran_out || o.code == -SIGXCPU)
        o.verdict = VERDICT_hang;
    else if (o.code < 0)
        o.verdict = VERDICT_crash;
    else if (output == OUTPUT_TORN)
        o.verdict = VERDICT_torn_output;
    else if (left_behind(j, s))
        o.verdict = VERDICT_left_behind;
    else
        o.verdict = (uint8_t)judge_end(j, t, output, &o);
    return o;
}

/* ---- trials --------------------------------------------------------------------------------- */

static void name_trial(const trial *t, char name[MAX_PATH])
{
    snprintf(name, MAX_PATH, "%s/%s/%llu/%s", scenarios[t->scenario].name, kinds[t->kind].name,
             (unsigned long long)t->at, t->forever ? "forever" : "once");
}

/* Whether --only names it, or something that it is part of. */
static bool is_wanted(const trial *t)
{
    char name[MAX_PATH];
    name_trial(t, name);
    for (int i = 0; i < settings.only_count; i++) {
        if (!strcmp(settings.only[i], kinds[t->kind].name))
            return true;
        size_t length = strlen(settings.only[i]);
        if (!strncmp(name, settings.only[i], length) && (!name[length] || name[length] == '/'))
            return true;
    }
    return settings.only_count == 0;
}

static void add_trial(trial t)
{
    static size_t room;
    if (!mgl_grow((void **)&trials, &room, trial_count, sizeof *trials))
        fail("trials", "out of memory");
    if (is_wanted(&t))
        trials[trial_count++] = t;
}

static void add_everything(void)
{
    for (uint16_t s = 0; s < SCENARIO_COUNT; s++)
        for (uint16_t kind = 0; kind < MGL_FAIL_KIND_COUNT; kind++)
            for (uint64_t at = 1; at <= scenarios[s].calls[kind]; at++) {
                add_trial((trial){s, kind, false, at});
                add_trial((trial){s, kind, true, at});
            }
}

/* A scenario, one of the kinds of which it has calls, and one of those. */
static void add_sample(void)
{
    srandom(settings.seed);
    while (trial_count < settings.sample) {
        uint16_t s = (uint16_t)(random() % SCENARIO_COUNT);
        uint16_t kind = (uint16_t)(random() % MGL_FAIL_KIND_COUNT);
        uint64_t calls = scenarios[s].calls[kind];
        if (calls)
            add_trial((trial){s, kind, random() % 2, 1 + (uint64_t)random() % calls});
    }
}

static void add_spaces(void)
{
    for (uint16_t s = 0; s < SCENARIO_COUNT; s++)
        for (uint64_t kib = SPACE_FIRST; kib <= SPACE_LAST && scenarios[s].line[0] == 'r';
             kib += SPACE_STEP)
            add_trial((trial){s, SPACE, true, kib});
}

/* ---- preparing ------------------------------------------------------------------------------ */

static void do_line(const char *line)
{
    if (system(line) != 0)
        fail("this failed", line);
}

static void remove_scratch(void)
{
    if (system("rm -rf \"$SCRATCH\"") != 0)
        fprintf(stderr, "fail_calls: left behind: %s\n", scratch);
}

/* What the scenarios read. */
static void prepare_inputs(void)
{
    char path[MAX_PATH];
    do_line("cp -r \"$MODEL\" \"$SCRATCH/model\" && cd \"$SCRATCH\" && "
            "\"$MEGALITH\" compile model --target cpu:1 -o tales.mega --quiet > /dev/null && "
            "\"$MEGALITH\" lower model --target cpu:2 --capacity 64 -o tales.mls && "
            "\"$MEGALITH\" lower model --target sm_90a:132 -o gpu.mls && "
            "sed '0,/^clear /{/^clear /d}' gpu.mls > unsafe.mls");
    path_of("text", path);
    write_file(path, "Once there was a fox");
    path_of("texts.json", path);
    write_file(path, "[\"Once there was a fox.\", \"Two\"]");
    path_of("prompts.json", path);
    write_file(path, "[\"Once\", {\"text\": \"Two\", \"seed\": 5, \"max_tokens\": 3}]");
}

static void prepare_job(int number, job *j)
{
    char name[32];
    snprintf(name, sizeof name, "work-%d", number);
    path_of(name, j->folder);
    snprintf(j->out, MAX_PATH, "%s/%d.out", scratch, number);
    snprintf(j->err, MAX_PATH, "%s/%d.err", scratch, number);
    snprintf(j->count, MAX_PATH, "%s/%d.count", scratch, number);
    int file = open(j->count, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (mkdir(j->folder, 0777) || file < 0 || ftruncate(file, sizeof *j->page))
        fail(j->folder, strerror(errno));
    j->page = mmap(NULL, sizeof *j->page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (j->page == MAP_FAILED)
        fail(j->count, strerror(errno));
    close(file);
}

/* What the scenario answers and writes, and which calls it makes, when nothing fails. */
static void learn(const job *j, scenario *s)
{
    char path[2 * MAX_PATH], note[MAX_NOTE];
    trial nothing = {0};
    s->json = strstr(s->line, "--json") != NULL;
    int status = run(j, s, &nothing);
    read_note(j->err, note);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != s->code)
        fail(s->name, note);
    s->answer = read_answer(j->out);
    for (int kind = 0; kind < MGL_FAIL_KIND_COUNT; kind++)
        s->calls[kind] = j->page->calls[kind];
    if (!s->output)
        return;
    snprintf(path, sizeof path, "%s/%s", j->folder, s->output);
    s->file = read_content(path);
}

/* Twice, since an answer that differs by itself says nothing. The first run fills the caches. */
static void learn_all(const job *j)
{
    for (int i = 0; i < SCENARIO_COUNT; i++) {
        scenario *s = &scenarios[i];
        learn(j, s);
        content answer = s->answer, file = s->file;
        learn(j, s);
        if (!equals(answer, s->answer) || (s->output && !equals(file, s->file)))
            fail(s->name, "has two answers, although nothing failed");
        mgl_free(answer.bytes);
        mgl_free(file.bytes);
    }
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void work_off(const job *j, shared *all, uint64_t model)
{
    for (;;) {
        size_t i = atomic_fetch_add(&all->next, 1);
        if (i >= trial_count)
            return;
        const trial *t = &trials[i];
        outcome *o = &all->outcomes[i];
        *o = judge(j, t, run(j, &scenarios[t->scenario], t));
        if (stamp_model() != model)
            o->verdict = VERDICT_changed_input;
    }
}

static void work_off_all(const job *jobs, shared *all)
{
    uint64_t model = stamp_model();
    pid_t workers[MAX_JOBS];
    fflush(NULL);
    for (int i = 0; i < settings.jobs; i++) {
        workers[i] = fork();
        if (workers[i] == 0) {
            work_off(&jobs[i], all, model);
            _exit(0);
        }
    }
    for (int i = 0; i < settings.jobs; i++) {
        int status;
        if (workers[i] < 0 || waitpid(workers[i], &status, 0) < 0 || status)
            fail("a job", "did not come to its end");
    }
}

/* ---- what came of it ------------------------------------------------------------------------ */

static void write_log(const shared *all)
{
    char name[MAX_PATH];
    FILE *file = fopen(settings.log, "w");
    if (!file)
        fail(settings.log, strerror(errno));
    for (size_t i = 0; i < trial_count; i++) {
        const outcome *o = &all->outcomes[i];
        name_trial(&trials[i], name);
        fprintf(file, "%-40s %-13s %4d  %s\n", name, verdicts[o->verdict].name, o->code, o->note);
    }
    fclose(file);
}

/* How many calls of each kind each scenario makes. */
static void print_calls(void)
{
    printf(" \"calls\": {");
    for (int i = 0; i < SCENARIO_COUNT; i++) {
        printf("%s\n  \"%s\": {", i ? "," : "", scenarios[i].name);
        const char *comma = "";
        for (int kind = 0; kind < MGL_FAIL_KIND_COUNT; kind++)
            if (scenarios[i].calls[kind]) {
                printf("%s\"%s\": %llu", comma, kinds[kind].name,
                       (unsigned long long)scenarios[i].calls[kind]);
                comma = ", ";
            }
        printf("}");
    }
    printf("},\n");
}

static void print_kinds(const shared *all)
{
    static size_t counts[MGL_FAIL_KIND_COUNT + 1][VERDICT_COUNT];
    for (size_t i = 0; i < trial_count; i++)
        counts[trials[i].kind][all->outcomes[i].verdict]++;
    for (size_t kind = 0; kind <= MGL_FAIL_KIND_COUNT; kind++) {
        printf("%s\n  \"%s\": {", kind ? "," : " \"kinds\": {", kinds[kind].name);
        const char *comma = "";
        for (size_t v = 0; v < VERDICT_COUNT; v++)
            if (counts[kind][v]) {
                printf("%s\"%s\": %zu", comma, verdicts[v].name, counts[kind][v]);
                comma = ", ";
            }
        printf("}");
    }
    printf("},\n");
}

/* How many were bad. */
static size_t print_bad(const shared *all, const char *tool)
{
    char name[MAX_PATH];
    size_t bad = 0;
    printf(" \"bad\": [");
    for (size_t i = 0; i < trial_count; i++) {
        const outcome *o = &all->outcomes[i];
        if (!verdicts[o->verdict].bad)
            continue;
        name_trial(&trials[i], name);
        printf(
            "%s\n  {\"verdict\": \"%s\", \"code\": %d, \"said\": \"%s\",\n   \"repeat\": \"%s %s "
            "%s %s --only %s\"}",
            bad++ ? "," : "", verdicts[o->verdict].name, o->code, o->note, tool, settings.megalith,
            settings.shim, settings.model, name);
    }
    printf("]}\n");
    return bad;
}

static void show(const char *path)
{
    content c = read_content(path);
    fwrite(c.bytes, 1, c.length, stderr);
    mgl_free(c.bytes);
}

static void resolve(const char *path, char to[PATH_MAX])
{
    if (!realpath(path, to))
        fail(path, strerror(errno));
}

static void parse(int argc, char **argv)
{
    if (argc < 4 || argc % 2)
        fail("usage", "fail_calls MEGALITH SHIM MODEL [--sample N] [--seed S] [--only NAME] "
                      "[--jobs N] [--log FILE]");
    resolve(argv[1], settings.megalith);
    resolve(argv[2], settings.shim);
    settings.model = argv[3];
    settings.jobs = mgl_parallel_processors();
    settings.seed = 1;
    for (int i = 4; i < argc; i += 2) {
        if (!strcmp(argv[i], "--sample"))
            settings.sample = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--seed"))
            settings.seed = (unsigned)atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--only") && settings.only_count < MAX_NAMES)
            settings.only[settings.only_count++] = argv[i + 1];
        else if (!strcmp(argv[i], "--jobs"))
            settings.jobs = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--log"))
            settings.log = argv[i + 1];
        else
            fail("what is this", argv[i]);
    }
    settings.jobs = settings.jobs < 1 ? 1 : settings.jobs > MAX_JOBS ? MAX_JOBS : settings.jobs;
}

static void set_up(job *jobs)
{
    char cache[MAX_PATH];
    if (!mkdtemp(scratch))
        fail(scratch, strerror(errno));
    atexit(remove_scratch);
    path_of("cache", cache);
    setenv("MEGALITH_CACHE", cache, 1);
    setenv("MEGALITH", settings.megalith, 1);
    setenv("MODEL", settings.model, 1);
    setenv("SCRATCH", scratch, 1);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    prepare_inputs();
    for (int i = 0; i < settings.jobs; i++)
        prepare_job(i, &jobs[i]);
    learn_all(&jobs[0]);
}

int main(int argc, char **argv)
{
    static job jobs[MAX_JOBS];
    double begun = mgl_clock_s();
    parse(argc, argv);
    set_up(jobs);
    if (settings.sample)
        add_sample();
    else
        add_everything();
    add_spaces();
    size_t bytes = sizeof(shared) + trial_count * sizeof(outcome);
    shared *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        fail("outcomes", strerror(errno));
    if (trial_count == 1)
        settings.jobs = 1;
    work_off_all(jobs, all);
    if (trial_count == 1)
        show(jobs[0].err);
    if (settings.log)
        write_log(all);
    printf("{\"schema\": \"megalith.fail_calls/1\", \"runs\": %zu, \"seconds\": %.1f,\n",
           trial_count, mgl_clock_s() - begun);
    print_calls();
    print_kinds(all);
    size_t bad = print_bad(all, argv[0]);
    do_line("diff -r \"$MODEL\" \"$SCRATCH/model\"");
    return bad > 0;
}
