/*
 * Kills `tune` at random moments (SIGKILL), and looks whether it always goes on: no trial lost, none
 * twice, and the trials of a run that nobody killed.
 *
 *     kill_tune MODEL KILLS MEGALITH
 *
 * One campaign without a device is started again and again, each time for the same number of trials,
 * and killed at a moment of that time; whenever it comes to its end, a new one begins. After each kill
 * the store opens, its trials have the numbers 1 to n without a gap, n is no less than before, and
 * each has the digest and the outcome of the same trial of the whole run. Exit code 1 when that does
 * not hold.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "autotune/store.h"
#include "base/clock.h"

enum { TRIALS = 40, PATHS = 96, MOST_TRIALS = TRIALS + 1 };

/* What is compared of a trial. */
typedef struct seen {
    char digest[MGL_SHA256_HEX];
    mgl_outcome outcome;
} seen;

typedef struct list {
    seen trials[MOST_TRIALS]; /* (count) */
    int64_t count;
    bool ordered; /* their numbers are 1, 2, ... */
} list;

static const char *model, *program;
static char folder[] = "/tmp/megalith-kill-tune-XXXXXX";
static char whole_path[PATHS], store_path[PATHS];

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "kill_tune: %s\n", what);
    exit(EXIT_FAILURE);
}

static pid_t start(const char *path)
{
    char trials[16];
    snprintf(trials, sizeof trials, "%d", TRIALS);
    pid_t child = fork();
    if (child < 0)
        fail("no process could be started");
    if (child > 0)
        return child;
    int silence = open("/dev/null", O_WRONLY);
    dup2(silence, STDOUT_FILENO);
    execl(program, program, "tune", model, "--device", "none", "--seed", "11", "--trials", trials,
          "--store", path, "--name", "killed", "--quiet", (char *)NULL);
    _exit(99);
}

/* ---- what a store has ------------------------------------------------------------------------ */

static mgl_status look_at(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    list *l = user;
    l->ordered &= trial->number == l->count + 1 && l->count < TRIALS;
    if (!l->ordered)
        return MGL_OK;
    memcpy(l->trials[l->count].digest, trial->digest, MGL_SHA256_HEX);
    l->trials[l->count++].outcome = trial->outcome;
    return MGL_OK;
}

/* False: there is no campaign yet. */
static bool read_store(const char *path, list *out)
{
    mgl_store *store = NULL;
    mgl_error err = {0};
    mgl_campaign_record record = {0};
    *out = (list){.ordered = true};
    if (access(path, F_OK))
        return false;
    if (mgl_store_open(path, true, &store, &err))
        fail(err.message);
    bool found = !mgl_store_find_campaign(store, "killed", &record, &err);
    if (found && mgl_store_each_trial(store, record.id, 1, 0, look_at, out, &err))
        fail(err.message);
    mgl_campaign_record_clear(&record);
    mgl_store_close(store);
    return found;
}

static bool agrees(const list *part, const list *whole)
{
    if (!part->ordered || part->count > whole->count)
        return false;
    for (int64_t i = 0; i < part->count; i++)
        if (strcmp(part->trials[i].digest, whole->trials[i].digest) != 0 ||
            part->trials[i].outcome != whole->trials[i].outcome)
            return false;
    return true;
}

static void remove_store(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[PATHS + 16];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* ---- killing --------------------------------------------------------------------------------- */

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

/* Whether it came to its end before. */
static bool kill_one(double length)
{
    int status;
    double moment = length * (double)random() / RAND_MAX;
    pid_t child = start(store_path);
    sleep_s(moment);
    kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child)
        fail("the process is lost");
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        fail("a run that nobody killed failed");
    return WIFEXITED(status);
}

static double run_whole(list *out)
{
    int status;
    double began = mgl_clock_s();
    if (waitpid(start(whole_path), &status, 0) < 0 || status)
        fail("a campaign that nobody killed failed");
    double length = mgl_clock_s() - began;
    if (!read_store(whole_path, out) || !out->ordered || out->count != TRIALS)
        fail("a campaign that nobody killed has not all of its trials");
    return length;
}

int main(int argc, char **argv)
{
    static list whole, now;
    int kills = argc == 4 ? atoi(argv[2]) : 0, wrong = 0, ended = 0, early = 0;
    int64_t before = 0;
    if (kills < 1) {
        fprintf(stderr, "usage: kill_tune MODEL KILLS MEGALITH\n");
        return EXIT_FAILURE;
    }
    model = argv[1];
    program = argv[3];
    if (!mkdtemp(folder))
        fail("no folder can be made");
    snprintf(whole_path, sizeof whole_path, "%s/whole.db", folder);
    snprintf(store_path, sizeof store_path, "%s/killed.db", folder);
    double length = run_whole(&whole);
    for (int i = 0; i < kills; i++) {
        bool over = kill_one(length);
        bool found = read_store(store_path, &now);
        wrong += (found && !agrees(&now, &whole)) || now.count < before;
        wrong += over && now.count != TRIALS;
        early += !found;
        ended += over;
        before = over ? 0 : now.count;
        if (over)
            remove_store(store_path);
    }
    char line[PATHS + 16];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    if (system(line) != 0)
        fprintf(stderr, "left behind: %s\n", folder);
    printf("kills %d of a campaign of %d trials and %.0f ms; came to its end %d times\n", kills,
           TRIALS, 1e3 * length, ended);
    printf("  before there was a campaign %d; wrong %d\n", early, wrong);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
