/*
 * Defines the scenarios of fail_calls, runs one, and judges its end. Each job has a folder for the
 * output of its runs. The folder's parent has a copy of the model and the other inputs.
 */
#include "tests/tools/fail_trial.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/output.h"
#include "tests/time_limit.h"

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
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_ARGUMENTS = 32,
    LARGEST = 1 << 28,
    RIGHTS = 0600 /* RIGHTS: permissions of the earlier
                     output */
};

#define LINK "link" /* name of a link to a scenario's output */

/* name, exit code, output in its folder or NULL, arguments; the inputs are one folder up. */
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
    X("run-chat", 0, NULL,                                                                         \
      "run ../model --device cpu --chat --messages ../messages.json --template ../chat.jinja"      \
      " --system S --max-tokens 2")                                                                \
    X("chat", 0, NULL, "chat ../model --device cpu --template ../chat.jinja --max-tokens 2")       \
    X("chat-json", 0, NULL,                                                                        \
      "chat ../tales.mega --device cpu --template ../chat.jinja --max-tokens 2 --json")            \
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
    X("eval-window", 0, NULL,                                                                      \
      "eval ../model --device cpu --texts ../texts.json --capacity 4 --stride 2 --json")           \
    X("score", 0, NULL, "score ../model --device cpu --threads 2 --file ../text")                  \
    X("score-json", 0, NULL, "score ../tales.mega --device cpu --texts ../texts.json --json")      \
    X("tokenize", 0, NULL, "tokenize ../model --texts ../texts.json")                              \
    X("tokenize-json", 0, NULL, "tokenize ../model --json")                                        \
    X("detokenize", 0, NULL, "detokenize ../model --ids 909,449,268,259")                          \
    X("info", 0, NULL, "info ../model")                                                            \
    X("info-json", 0, NULL, "info ../tales.mega --json")                                           \
    X("info-nothing", 2, NULL, "info ../nothing --json")                                           \
    X("explain", 0, NULL, "explain ../gpu.mls")                                                    \
    X("doctor", 0, NULL, "doctor")                                                                 \
    X("doctor-json", 0, NULL, "doctor --json")

const struct fail_verdict fail_verdicts[VERDICT_COUNT] = {
#define MGL_X(name, bad, meaning) {#name, bad},
    VERDICTS(MGL_X)
#undef MGL_X
};

const struct fail_kind fail_kinds[MGL_FAIL_KIND_COUNT + 1] = {
#define MGL_X(kind, number, calls) {#kind, number},
    MGL_FAIL_KINDS(MGL_X)
#undef MGL_X
        {"address_space", ENOMEM},
};

scenario fail_scenarios[] = {
#define MGL_X(name, code, output, line) {name, code, output, line, false, false, {0}, {0}, {0}},
    SCENARIOS(MGL_X)
#undef MGL_X
};
const int fail_scenario_count = sizeof fail_scenarios / sizeof *fail_scenarios;

fail_setup fail_given;

static char scratch[] = "/tmp/megalith-fail-XXXXXX";
static const char earlier[] = "what stood there before\n";
static uint64_t model_stamp; /* hash of the copied model, before the first run */

_Noreturn void fail_with(const char *what, const char *detail)
{
    fprintf(stderr, "fail_calls: %s: %s\n", what, detail);
    exit(1);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void path_of(const char *name, char path[FAIL_PATH])
{
    snprintf(path, FAIL_PATH, "%s/%s", scratch, name);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        fail_with(path, strerror(errno));
}

static content read_content(const char *path)
{
    content c;
    mgl_error err;
    if (mgl_file_read(path, LARGEST, &c.bytes, &c.length, &err))
        fail_with(path, err.message);
    return c;
}

static bool equals(content a, content b)
{
    return a.length == b.length && !memcmp(a.bytes, b.bytes, a.length);
}

/* A hash of the places and change times of all files of the copied model. */
static uint64_t stamp_model(void)
{
    char path[FAIL_PATH];
    uint64_t sum = 0;
    path_of("model", path);
    DIR *entries = opendir(path);
    if (!entries)
        fail_with(path, strerror(errno));
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

/* Empties the folder, and copies the earlier file to the output's path. */
static void lay_out(const job *j, const scenario *s)
{
    char path[2 * FAIL_PATH];
    DIR *entries = opendir(j->folder);
    if (!entries)
        fail_with(j->folder, strerror(errno));
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    if (!s->output)
        return;
    snprintf(path, sizeof path, "%s/%s", j->folder, s->output);
    write_file(path, earlier);
    if (chmod(path, RIGHTS))
        fail_with(path, strerror(errno));
    snprintf(path, sizeof path, "%s/%s", j->folder, LINK);
    if (symlink(s->output, path))
        fail_with(path, strerror(errno));
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
    char to[FAIL_PATH];
    DIR *entries = opendir(j->folder);
    if (!entries)
        fail_with(j->folder, strerror(errno));
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

/* ---- a process ------------------------------------------------------------------------------- */

static volatile sig_atomic_t running, ran_out; /* the running process, which the alarm kills */

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

static struct rlimit limit_of(uint64_t most)
{
    return (struct rlimit){.rlim_cur = most, .rlim_max = most};
}

/* Sets the shim's environment. Little address space is a limit of the system, without the shim. The
 * C library fills new and freed memory with a pattern, so that wrong uses show. */
static void set_failure(const job *j, const trial *t)
{
    setenv("MALLOC_PERTURB_", "165", 1);
    if (t->kind == FAIL_SPACE) {
        const struct rlimit space = limit_of(t->at << 10);
        setrlimit(RLIMIT_AS, &space);
        return;
    }
    setenv("LD_PRELOAD", fail_given.shim, 1);
    setenv("FAIL_COUNT", j->count, 1);
    if (!t->at)
        return;
    setenv("FAIL_KIND", fail_kinds[t->kind].name, 1);
    setenv("FAIL_FOREVER", t->forever ? "1" : "0", 1);
    set_number("FAIL_AT", t->at);
    if (fail_given.traces)
        setenv("FAIL_TRACE", "1", 1);
}

static _Noreturn void become(const job *j, const scenario *s, const trial *t)
{
    char line[FAIL_PATH], text[FAIL_PATH], *argv[MAX_ARGUMENTS] = {fail_given.megalith};
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
    const struct rlimit core = limit_of(0), cpu = limit_of((uint64_t)time_limit(FAIL_LIMIT_S));
    setrlimit(RLIMIT_CORE, &core);
    setrlimit(RLIMIT_CPU, &cpu);
    set_failure(j, t);
    execv(argv[0], argv);
    _exit(125);
}

/* Runs the program until it ends or is killed at the time limit. Returns its wait status. */
static int run(const job *j, const scenario *s, const trial *t)
{
    int status;
    memset(j->page, 0, sizeof *j->page);
    j->page->failed = t->kind == FAIL_SPACE; /* the system counts calls, and gives no number */
    lay_out(j, s);
    ran_out = 0;
    pid_t pid = fork();
    if (pid < 0)
        fail_with("fork", strerror(errno));
    if (pid == 0)
        become(j, s, t);
    running = pid;
    alarm((unsigned)time_limit(FAIL_LIMIT_S));
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR)
            fail_with("waitpid", strerror(errno));
    alarm(0);
    return status;
}

/* ---- an answer ------------------------------------------------------------------------------- */

/* The length of a part of the text that varies between runs: times, free memory, threads that the
 * system granted, the place of NVRTC, and the reason for a missing driver. */
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

/* The output, with # for each part that varies between runs. */
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

/* Whether the text is one megalith.error/1 object of that exit code. */
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

/* The start of the program's last message; without one, the last line. */
static const char *find_message(const content *c)
{
    const char *found = c->bytes, *line = c->bytes;
    bool is_message = false;
    while (line && *line) {
        bool begins = !strncmp(line, "megalith", strlen("megalith"));
        if (begins || !is_message)
            found = line;
        is_message |= begins;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return found;
}

/* That line, escaped for a JSON string; "" if there is none. */
static void read_note(const char *path, char note[FAIL_NOTE])
{
    content c = read_content(path);
    size_t length = 0;
    for (const char *at = find_message(&c); *at && *at != '\n' && length < FAIL_NOTE - 1; at++) {
        unsigned char byte = (unsigned char)*at;
        note[length++] = byte == '"' || byte == '\\' || byte < 32 || byte > 126 ? '\'' : *at;
    }
    note[length] = 0;
    mgl_free(c.bytes);
}

/* ---- judging --------------------------------------------------------------------------------- */

typedef enum output_state { OUTPUT_NONE, OUTPUT_OLD, OUTPUT_NEW, OUTPUT_TORN } output_state;

static output_state look_at_output(const job *j, const scenario *s)
{
    char path[2 * FAIL_PATH];
    struct stat facts;
    if (!s->output)
        return OUTPUT_NONE;
    snprintf(path, sizeof path, "%s/%s", j->folder, s->output);
    if (stat(path, &facts) || (facts.st_mode & 0777) != RIGHTS)
        return OUTPUT_TORN;
    content now = read_content(path), old = {(char *)(uintptr_t)earlier, strlen(earlier)};
    bool is_old = equals(now, old), is_new = equals(now, s->file);
    mgl_free(now.bytes);
    return is_new ? OUTPUT_NEW : is_old ? OUTPUT_OLD : OUTPUT_TORN;
}

/* Words of an answer that report something missing. */
static int count_lacks(const content *answer)
{
    static const char *const words[] = {"missing", "unknown", "false", "null"};
    int count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = answer->bytes; (at = strstr(at, words[i])); at++)
            count++;
    return count;
}

/* Removes the folders of NVIDIA's libraries: if the first copy of a library fails to open, the next
 * copy is used. */
static void drop_folders(content *answer)
{
    for (char *at = answer->bytes; at && (at = strstr(at, "/libnv"));) {
        char *from = at;
        while (from > answer->bytes && !strchr(" \"(", from[-1]))
            from--;
        memmove(from, at + 1, answer->length - (size_t)(at + 1 - answer->bytes) + 1);
        answer->length -= (size_t)(at + 1 - from);
        at = from;
    }
}

static bool equals_without_folders(const content *a, const content *b)
{
    content copies[] = {{strdup(a->bytes), a->length}, {strdup(b->bytes), b->length}};
    for (int i = 0; i < 2; i++)
        drop_folders(&copies[i]);
    const bool same = equals(copies[0], copies[1]);
    free(copies[0].bytes);
    free(copies[1].bytes);
    return same;
}

/* Checks a run that ended with the reference's code. */
static verdict judge_answer(const job *j, const scenario *s, output_state output, bool reached)
{
    content answer = read_answer(j->out);
    bool same = equals(answer, s->answer) && output != OUTPUT_OLD;
    bool is_doctor = !strncmp(s->line, "doctor", strlen("doctor"));
    bool told = is_doctor && (count_lacks(&answer) > count_lacks(&s->answer) ||
                              equals_without_folders(&answer, &s->answer));
    mgl_free(answer.bytes);
    if (same)
        return reached ? VERDICT_same : VERDICT_not_reached;
    return told ? VERDICT_told : VERDICT_wrong_answer;
}

static bool has_message(const job *j, const outcome *o)
{
    bool mute = j->page->failed_on & 1 << STDERR_FILENO;
    return mute || !strncmp(o->note, "megalith", strlen("megalith"));
}

/* The code is 4 if memory ran out, and 2 if a file could not be read or written. A rejection (3)
 * that was found before its answer failed to be written takes precedence. */
static verdict judge_refusal(const job *j, const trial *t, const outcome *o)
{
    const scenario *s = &fail_scenarios[t->scenario];
    bool lost = j->page->failed_on & 1 << STDOUT_FILENO;
    int wanted = fail_kinds[t->kind].number == ENOMEM ? 4 : 2;
    if (o->code == 0)
        return VERDICT_wrong_answer;
    if (o->code != wanted && !(lost && o->code == s->code))
        return VERDICT_wrong_code;
    if (!has_message(j, o))
        return VERDICT_no_message;
    return s->json && !lost && !is_error_object(j->out, o->code) ? VERDICT_no_object
                                                                 : VERDICT_refused;
}

/* Checks a run that ended by itself. With the reference's code, its answer may differ if something
 * else was rejected or could not be printed. */
static verdict judge_end(const job *j, const trial *t, output_state output, const outcome *o)
{
    const scenario *s = &fail_scenarios[t->scenario];
    bool lost = j->page->failed_on & 1 << STDOUT_FILENO;
    verdict v = VERDICT_wrong_answer;
    if (o->code == s->code)
        v = judge_answer(j, s, output, j->page->failed > 0);
    if (v == VERDICT_wrong_answer && (o->code != s->code || o->code == 2 || lost))
        return judge_refusal(j, t, o);
    return s->refused && !has_message(j, o) ? VERDICT_no_message : v;
}

static outcome judge(const job *j, const trial *t, int status)
{
    const scenario *s = &fail_scenarios[t->scenario];
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

/* ---- preparing ------------------------------------------------------------------------------- */

static void do_line(const char *line)
{
    if (system(line) != 0)
        fail_with("this failed", line);
}

static void remove_scratch(void)
{
    if (system("rm -rf \"$SCRATCH\"") != 0)
        fprintf(stderr, "fail_calls: left behind: %s\n", scratch);
}

/* The inputs of the scenarios. */
static void prepare_inputs(void)
{
    char path[FAIL_PATH];
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
    path_of("messages.json", path);
    write_file(path, "[{\"role\": \"user\", \"content\": \"Once\", \"n\": 1.0}]");
    path_of("chat.jinja", path);
    write_file(path, "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
}

void fail_open_job(int number, job *j)
{
    char name[32];
    snprintf(name, sizeof name, "work-%d", number);
    path_of(name, j->folder);
    snprintf(j->out, FAIL_PATH, "%s/%d.out", scratch, number);
    snprintf(j->err, FAIL_PATH, "%s/%d.err", scratch, number);
    snprintf(j->count, FAIL_PATH, "%s/%d.count", scratch, number);
    int file = open(j->count, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (mkdir(j->folder, 0777) || file < 0 || ftruncate(file, sizeof *j->page))
        fail_with(j->folder, strerror(errno));
    j->page = mmap(NULL, sizeof *j->page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (j->page == MAP_FAILED)
        fail_with(j->count, strerror(errno));
    close(file);
}

/* Records the scenario's answer, output and calls without failures. */
static void learn(const job *j, scenario *s)
{
    char path[2 * FAIL_PATH], note[FAIL_NOTE];
    trial nothing = {0};
    s->json = strstr(s->line, "--json") != NULL;
    int status = run(j, s, &nothing);
    read_note(j->err, note);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != s->code)
        fail_with(s->name, note);
    s->refused = s->code && note[0];
    s->answer = read_answer(j->out);
    for (int kind = 0; kind < MGL_FAIL_KIND_COUNT; kind++)
        s->calls[kind] = j->page->calls[kind];
    if (!s->output)
        return;
    snprintf(path, sizeof path, "%s/%s", j->folder, s->output);
    s->file = read_content(path);
}

/* Runs the scenario twice: an answer that varies by itself is no reference. The first run fills the
 * caches. */
void fail_learn(const job *j)
{
    for (int i = 0; i < fail_scenario_count; i++) {
        scenario *s = &fail_scenarios[i];
        learn(j, s);
        content answer = s->answer, file = s->file;
        learn(j, s);
        if (!equals(answer, s->answer) || (s->output && !equals(file, s->file)))
            fail_with(s->name, "has two answers, although nothing failed");
        mgl_free(answer.bytes);
        mgl_free(file.bytes);
    }
}

void fail_prepare(void)
{
    char cache[FAIL_PATH];
    if (!mkdtemp(scratch))
        fail_with(scratch, strerror(errno));
    atexit(remove_scratch);
    path_of("cache", cache);
    setenv("MEGALITH_CACHE", cache, 1);
    setenv("MEGALITH", fail_given.megalith, 1);
    setenv("MODEL", fail_given.model, 1);
    setenv("SCRATCH", scratch, 1);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    prepare_inputs();
    model_stamp = stamp_model();
}

/* ---- a run ----------------------------------------------------------------------------------- */

outcome fail_try(const job *j, const trial *t)
{
    outcome o = judge(j, t, run(j, &fail_scenarios[t->scenario], t));
    if (stamp_model() != model_stamp)
        o.verdict = VERDICT_changed_input;
    return o;
}

void fail_show(const job *j)
{
    content c = read_content(j->err);
    fwrite(c.bytes, 1, c.length, stderr);
    mgl_free(c.bytes);
}

void fail_check_model(void)
{
    do_line("diff -r \"$MODEL\" \"$SCRATCH/model\"");
}
