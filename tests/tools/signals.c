/*
 * Sends INT, TERM and HUP at random moments of the long verbs, and checks that each verb ends as
 * documented: within the limit, with 128 + signal, one line on standard error, with --json one
 * object on standard output, no partial file, and no process left. The trials that a campaign
 * stored are complete and equal the first trials of an undisturbed run. The campaign is paused, not
 * killed: each run continues with the store of the run before.
 *
 *     signals build/megalith tests/models/tales-5m --moments 200 --limit 0.2
 *
 * Each verb first runs twice to its end, to measure its duration. A moment within the duration is
 * then drawn for each signal. A signal before the program waits for signals ends it by default; a
 * signal after its last output may come too late. Both are counted. Standard output is one JSON
 * object, for record.sh.
 */
#include "base/clock.h"
#include "base/json.h"
#include "eval/statistics.h"
#include "tests/tools/stored.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 32, MAX_PATH = 4096, MAX_LINE = 3 * MAX_PATH, MAX_OUTPUT = 1 << 24 };

#define CAMPAIGN "--seed 11 --store SCRATCH/store.db --name ended --quiet"

/* MODEL, SCRATCH and SHAPE are replaced by the given values. */
#define VERBS(X)                                                                                   \
    X("run", "run MODEL --device DEVICE --prompt-ids 1,2,3 --ignore-eos --max-tokens TOKENS")      \
    X("compile", "compile MODEL --target cpu:1 -o SCRATCH/out/f.mega")                             \
    X("eval", "eval MODEL --device DEVICE --texts SCRATCH/texts.json")                             \
    X("score", "score MODEL --device DEVICE --texts SCRATCH/texts.json")                           \
    X("check", "check SCRATCH/f.mls --model MODEL")                                                \
    X("bench", "bench --shape SHAPE --device DEVICE --samples 3")                                  \
    X("tune", "tune MODEL --device none --trials 40 --proposer random " CAMPAIGN)                  \
    X("tune-search", "tune MODEL --device none --trials 12 --proposer surrogate " CAMPAIGN)        \
    X("tune-cpu", "tune MODEL --device cpu --trials 2 --proposer random " CAMPAIGN)

static const struct verb {
    const char *name, *line;
} verbs[] = {
#define MGL_X(name, line) {name, line},
    VERBS(MGL_X)
#undef MGL_X
};
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
enum { KINDS = sizeof numbers / sizeof *numbers };

typedef struct settings {
    const char *megalith, *model;
    const char *device, *shape; /* shape: NULL: without bench */
    const char *tokens;         /* tokens of a run */
    const char *only;           /* a verb, or NULL */
    int moments;                /* moments of each verb and signal */
    int texts;                  /* texts of eval */
    double limit;               /* seconds from signal to end */
    unsigned seed;
    char scratch[64];
} settings;

static _Noreturn void fail(const char *what, const char *detail)
{
    fprintf(stderr, "signals: %s: %s\n", what, detail);
    exit(1);
}

/* ---- files ----------------------------------------------------------------------------------- */

static settings session;

static void remove_scratch(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", session.scratch);
    if (system(line) != 0)
        fprintf(stderr, "signals: left behind: %s\n", session.scratch);
}

static void path_of(const settings *s, const char *name, char path[MAX_PATH])
{
    snprintf(path, MAX_PATH, "%s/%s", s->scratch, name);
}

static void write_texts(const settings *s)
{
    char path[MAX_PATH];
    path_of(s, "texts.json", path);
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path, strerror(errno));
    for (int i = 0; i < s->texts; i++)
        fprintf(file, "%s\"Once there was a fox who had %d nuts, and gave three of them away.\"",
                i ? ", " : "[", i);
    fputs("]\n", file);
    fclose(file);
}

/* Reads a file of the scratch folder and appends a 0 byte. Release with free. */
static char *read_scratch(const settings *s, const char *name, size_t *length)
{
    char path[MAX_PATH], *text = calloc(1, MAX_OUTPUT + 1);
    path_of(s, name, path);
    FILE *file = fopen(path, "rb");
    if (!file || !text)
        fail(path, strerror(errno));
    *length = fread(text, 1, MAX_OUTPUT, file);
    fclose(file);
    return text;
}

/* The number of files in the output folder, including names that begin with a dot. */
static int count_outputs(const settings *s)
{
    char path[MAX_PATH];
    int count = 0;
    path_of(s, "out", path);
    DIR *folder = opendir(path);
    if (!folder)
        fail(path, strerror(errno));
    for (struct dirent *file = readdir(folder); file; file = readdir(folder))
        count += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0;
    closedir(folder);
    return count;
}

/* ---- a process ------------------------------------------------------------------------------- */

/* Replaces each capitalized word by the given value. */
static void fill_in(const settings *s, const char *line, char to[MAX_LINE])
{
    const struct {
        const char *word, *text;
    } words[] = {{"MODEL", s->model},
                 {"SCRATCH", s->scratch},
                 {"DEVICE", s->device},
                 {"TOKENS", s->tokens},
                 {"SHAPE", s->shape}};
    size_t length = 0;
    while (*line && length < MAX_PATH) {
        size_t i = 0;
        while (i < sizeof words / sizeof *words &&
               (!words[i].text || strncmp(line, words[i].word, strlen(words[i].word)) != 0))
            i++;
        if (i == sizeof words / sizeof *words) {
            to[length++] = *line++;
            continue;
        }
        length += (size_t)snprintf(to + length, MAX_PATH, "%s", words[i].text);
        line += strlen(words[i].word);
    }
    to[length] = 0;
}

static int open_stream(const settings *s, const char *name)
{
    char path[MAX_PATH];
    path_of(s, name, path);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        fail(path, strerror(errno));
    return file;
}

/* Starts megalith with the line; its streams are files of the scratch folder. */
static pid_t start(const settings *s, const char *line, bool json)
{
    static char text[MAX_LINE];
    char *argv[MAX_ARGUMENTS] = {(char *)(uintptr_t)s->megalith};
    int count = 1, out = open_stream(s, "stdout"), err = open_stream(s, "stderr");
    fill_in(s, line, text);
    for (char *word = strtok(text, " "); word && count < MAX_ARGUMENTS - 2;
         word = strtok(NULL, " "))
        argv[count++] = word;
    if (json)
        argv[count] = (char *)(uintptr_t) "--json";
    pid_t pid = fork();
    if (pid < 0)
        fail("fork", strerror(errno));
    if (pid == 0) {
        for (int i = 0; i < KINDS; i++)
            signal(numbers[i], SIG_DFL);
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(out, 1);
        dup2(err, 2);
        execv(argv[0], argv);
        _exit(127);
    }
    close(out);
    close(err);
    return pid;
}

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

/* Runs a verb to its end. Returns the seconds. */
static double run_whole(const settings *s, const char *line)
{
    int status;
    size_t length;
    double begun = mgl_clock_s();
    pid_t pid = start(s, line, false);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
        fail(line, read_scratch(s, "stderr", &length));
    return mgl_clock_s() - begun;
}

/* ---- a moment -------------------------------------------------------------------------------- */

/* Results of the signals to one verb. */
typedef struct tally {
    const char *verb;
    double *seconds; /* (sent) from a signal to the end of the process */
    int sent;
    int told;  /* ended with 128 + signal and the line */
    int early; /* ended by the signal's default action: the verb did not handle signals yet, or no
                  more */
    int whole; /* had already ended, or ended with 0 */
    int wrong; /* anything else */
    stored made, before; /* trials of a campaign: by an undisturbed run; after the last run */
} tally;

static void complain(tally *t, int number, double moment, const char *what, const char *detail)
{
    t->wrong++;
    fprintf(stderr, "signals: %s, signal %d after %.4f s: %s%s%s\n", t->verb, number, moment, what,
            detail[0] ? ": " : "", detail);
}

/* Checks the one line after the verb's earlier output. */
static bool has_line(const char *err, const char *verb)
{
    char line[64];
    int length = (int)strcspn(verb, "-"); /* the text after it distinguishes two lines of a verb */
    snprintf(line, sizeof line, "megalith %.*s: interrupted by SIG", length, verb);
    const char *at = strstr(err, line);
    return at && !strstr(at + 1, line) && strchr(at, '\n') == err + strlen(err) - 1;
}

/* Checks for one JSON object and a line end. */
static bool is_object(const char *text, size_t length)
{
    mgl_json json = {0};
    mgl_error err;
    bool good = length > 1 && text[length - 1] == '\n' && !memchr(text, '\n', length - 1) &&
                !mgl_json_parse(text, length, MAX_OUTPUT, "stdout", &json, &err);
    mgl_json_clear(&json);
    return good;
}

static void check_streams(const settings *s, tally *t, int number, double moment, bool json)
{
    size_t length;
    char *err = read_scratch(s, "stderr", &length);
    if (has_line(err, t->verb))
        t->told++;
    else
        complain(t, number, moment, "standard error is", err);
    free(err);
    char *out = read_scratch(s, "stdout", &length);
    if (json && !is_object(out, length))
        complain(t, number, moment, "standard output is no object", out);
    free(out);
}

/* A file may have been completed before the signal; then it is complete. */
static void check_outputs(const settings *s, tally *t, int number, double moment)
{
    char path[MAX_PATH];
    int count = count_outputs(s);
    path_of(s, "out/f.mega", path);
    if (count > 0 && (count > 1 || access(path, F_OK)))
        complain(t, number, moment, "something is left behind", "");
    else if (count == 1)
        run_whole(s, "info SCRATCH/out/f.mega");
    unlink(path);
}

/* Workers end with their campaign: orphaned processes become children of this process. */
static void check_processes(const settings *s, tally *t, int number, double moment)
{
    double end = mgl_clock_s() + s->limit;
    pid_t left;
    while ((left = waitpid(-1, NULL, WNOHANG)) >= 0 && mgl_clock_s() < end)
        if (!left)
            sleep_s(0.001);
    if (left >= 0)
        complain(t, number, moment, "a process is left behind", "");
}

/* Checks that only the current trial is lost. */
static void check_store(const settings *s, tally *t, bool ended, int number, double moment)
{
    char path[MAX_PATH];
    stored now;
    mgl_error err = {0};
    path_of(s, "store.db", path);
    if (stored_read(path, "ended", &now, &err))
        complain(t, number, moment, "the store is", err.message);
    else if (!stored_agrees(&now, &t->made))
        complain(t, number, moment, "the store has other trials than that of a whole run", "");
    else if (now.count < t->before.count)
        complain(t, number, moment, "the store has lost a trial", "");
    else if (now.killed)
        complain(t, number, moment, "the campaign counts as killed", "");
    else if (ended && now.count != t->made.count)
        complain(t, number, moment, "it ended, and not all of its trials are made", "");
    t->before = now;
    if (ended) {
        stored_remove(path);
        t->before = (stored){0};
    }
}

static void check_end(const settings *s, tally *t, int status, int number, double moment, bool json)
{
    char code[32];
    snprintf(code, sizeof code, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    if (WIFSIGNALED(status) && WTERMSIG(status) == number)
        t->early++;
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        t->whole++;
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 128 + number)
        check_streams(s, t, number, moment, json);
    else
        complain(t, number, moment, "exit code", code);
    check_outputs(s, t, number, moment);
    check_processes(s, t, number, moment);
    if (t->made.found)
        check_store(s, t, WIFEXITED(status) && !WEXITSTATUS(status), number, moment);
}

static void try_moment(const settings *s, const struct verb *verb, tally *t, int number,
                       double moment)
{
    int status;
    bool json = t->sent % 2;
    pid_t pid = start(s, verb->line, json);
    sleep_s(moment);
    double sent = mgl_clock_s();
    kill(pid, number);
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid", strerror(errno));
    double lasted = mgl_clock_s() - sent;
    t->seconds[t->sent++] = lasted;
    if (lasted > s->limit) {
        char detail[32];
        snprintf(detail, sizeof detail, "%.3f s", lasted);
        complain(t, number, moment, "it ended late", detail);
    }
    check_end(s, t, status, number, moment, json);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Prints a row of the result on standard output, and a readable line on standard error. */
static void print_tally(const tally *t, double whole, bool first)
{
    size_t count = (size_t)t->sent;
    double median = 1e3 * mgl_median(t->seconds, count);
    double p90 = 1e3 * mgl_quantile(t->seconds, count, 0.9);
    double p99 = 1e3 * mgl_quantile(t->seconds, count, 0.99);
    double most = 1e3 * mgl_quantile(t->seconds, count, 1);
    printf("%s{\"verb\":\"%s\",\"whole_s\":%.3f,\"sent\":%d,\"told\":%d,\"early\":%d,\"ended\":%d,"
           "\"wrong\":%d,\"ms_median\":%.1f,\"ms_p90\":%.1f,\"ms_p99\":%.1f,\"ms_max\":%.1f}",
           first ? "" : ",", t->verb, whole, t->sent, t->told, t->early, t->whole, t->wrong, median,
           p90, p99, most);
    fflush(stdout);
    fprintf(
        stderr,
        "%-8s %.2f s, %d signals: %d told, %d early, %d ended, %d wrong; %.1f ms in the median, "
        "p90 %.1f, p99 %.1f, at most %.1f\n",
        t->verb, whole, t->sent, t->told, t->early, t->whole, t->wrong, median, p90, p99, most);
}

/* Removes the store before a campaign. */
static double run_anew(const settings *s, const struct verb *verb, tally *t)
{
    char path[MAX_PATH];
    mgl_error err = {0};
    path_of(s, "store.db", path);
    stored_remove(path);
    double whole = run_whole(s, verb->line);
    if (stored_read(path, "ended", &t->made, &err))
        fail(path, err.message);
    stored_remove(path);
    return whole;
}

/* The number of moments with a violation. */
static int try_verb(const settings *s, const struct verb *verb, bool first)
{
    tally t = {.verb = verb->name,
               .seconds = calloc((size_t)s->moments * KINDS, sizeof *t.seconds)};
    if (!t.seconds)
        fail(verb->name, "out of memory");
    bool campaign = strstr(verb->line, CAMPAIGN) != NULL;
    run_whole(s, verb->line); /* its files are then in the page cache */
    double whole = campaign ? run_anew(s, verb, &t) : run_whole(s, verb->line);
    check_outputs(s, &t, 0, whole);
    for (int i = 0; i < s->moments * KINDS; i++) {
        double part = (double)rand() / RAND_MAX;
        try_moment(s, verb, &t, numbers[i % KINDS], part * whole);
    }
    print_tally(&t, whole, first);
    free(t.seconds);
    return t.wrong;
}

static bool is_wanted(const settings *s, const struct verb *verb)
{
    if (!strcmp(verb->name, "bench") && !s->shape)
        return false;
    return !s->only || !strcmp(s->only, verb->name);
}

static settings parse(int argc, char **argv)
{
    settings s = {
        .device = "cpu", .tokens = "200", .moments = 2, .texts = 40, .limit = 1, .seed = 1};
    for (int i = 1; i < argc; i++) {
        const char *value = argv[i][0] == '-' && i + 1 < argc ? argv[++i] : NULL;
        const char *flag = argv[value ? i - 1 : i];
        if (!value && !s.megalith)
            s.megalith = flag;
        else if (!value && !s.model)
            s.model = flag;
        else if (value && !strcmp(flag, "--moments"))
            s.moments = atoi(value);
        else if (value && !strcmp(flag, "--limit"))
            s.limit = atof(value);
        else if (value && !strcmp(flag, "--device"))
            s.device = value;
        else if (value && !strcmp(flag, "--bench"))
            s.shape = value;
        else if (value && !strcmp(flag, "--tokens"))
            s.tokens = value;
        else if (value && !strcmp(flag, "--texts"))
            s.texts = atoi(value);
        else if (value && !strcmp(flag, "--verb"))
            s.only = value;
        else if (value && !strcmp(flag, "--seed"))
            s.seed = (unsigned)atoi(value);
        else
            fail("what is this", flag);
    }
    if (!s.model || s.moments < 1)
        fail("usage", "signals MEGALITH MODEL [--moments N] [--limit SECONDS] [--device cpu] "
                      "[--bench SHAPE] [--tokens N] [--texts N] [--verb VERB] [--seed N]");
    return s;
}

int main(int argc, char **argv)
{
    char path[MAX_PATH];
    int wrong = 0;
    bool first = true;
    session = parse(argc, argv);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(session.scratch, sizeof session.scratch, "/tmp/megalith-signals-XXXXXX");
    if (!mkdtemp(session.scratch))
        fail(session.scratch, strerror(errno));
    atexit(remove_scratch);
    path_of(&session, "out", path);
    mkdir(path, 0777);
    write_texts(&session);
    run_whole(&session, "lower MODEL --target sm_90a:132 -o SCRATCH/f.mls");
    srand(session.seed);
    printf("{\"schema\":\"megalith.signals/1\",\"limit_s\":%g,\"verbs\":[", session.limit);
    for (int i = 0; i < VERB_COUNT; i++)
        if (is_wanted(&session, &verbs[i])) {
            wrong += try_verb(&session, &verbs[i], first);
            first = false;
        }
    printf("]}\n");
    if (wrong)
        fprintf(stderr, "signals: %d times something was wrong\n", wrong);
    return wrong > 0;
}
