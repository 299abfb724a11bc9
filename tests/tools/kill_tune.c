/*
 * Kills `tune` at random moments (SIGKILL) and checks that it always resumes: no trial is lost or
 * repeated, and the trials equal those of a run that was not killed.
 *
 *     kill_tune MODEL KILLS MEGALITH
 *
 * One campaign without a device is started repeatedly, each time for the same number of trials, and
 * killed at a random moment of the remaining time. When it ends before the kill, a new campaign
 * begins. After each kill the store must open, its trials must have the numbers 1 to n without a
 * gap, n must not decrease, and each trial must have the digest and the outcome of the same trial
 * of the complete run. The output is JSON: the kills, the kills before a campaign existed, the
 * campaigns that ended, and the moments with a fault. The exit code is 1 if there are faults.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/tools/stored.h"

enum { TRIALS = 40, PATHS = 96 };
#define LEAST_SHARE 0.1 /* minimum share of a whole run's time, for runs with few trials left */

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

static void read_store(const char *path, stored *out)
{
    mgl_error err = {0};
    if (stored_read(path, "killed", out, &err))
        fail(err.message);
}

/* ---- killing --------------------------------------------------------------------------------- */

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

/* Whether the run ended before the kill. */
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

static double run_whole(stored *out)
{
    int status;
    double began = mgl_clock_s();
    if (waitpid(start(whole_path), &status, 0) < 0 || status)
        fail("a campaign that nobody killed failed");
    double length = mgl_clock_s() - began;
    read_store(whole_path, out);
    if (!out->ordered || out->count != TRIALS)
        fail("a campaign that nobody killed has not all of its trials");
    return length;
}

int main(int argc, char **argv)
{
    static stored whole, now;
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
    for (int killed = 0; killed < kills;) {
        double left = (double)(TRIALS - before) / TRIALS;
        bool over = kill_one(length * (LEAST_SHARE + (1 - LEAST_SHARE) * left));
        killed += !over;
        read_store(store_path, &now);
        wrong += !stored_agrees(&now, &whole) || now.count < before;
        wrong += over && now.count != TRIALS;
        early += !now.found;
        ended += over;
        before = over ? 0 : now.count;
        if (over)
            stored_remove(store_path);
    }
    char line[PATHS + 16];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    if (system(line) != 0)
        fprintf(stderr, "left behind: %s\n", folder);
    printf("{\"schema\":\"megalith.kill-tune/1\",\"trials\":%d,\"whole_ms\":%.0f,\"kills\":%d,"
           "\"before_a_campaign\":%d,\"ended\":%d,\"wrong\":%d}\n",
           TRIALS, 1e3 * length, kills, early, ended, wrong);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
