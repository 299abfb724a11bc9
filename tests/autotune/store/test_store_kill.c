/*
 * Kills a process that adds trials with SIGKILL, at random moments.
 *
 *     test_store_kill [KILLS]
 *
 * A child adds trials and reports each through a pipe once it is stored. It is killed after a
 * random time, and the next child continues with the same store. Afterwards the trials must have
 * the numbers 1 to n, each trial must be complete, and n must be at least the reported number.
 * Otherwise the exit code is 1.
 */
#include "tests/autotune/store/failing_disk.h"
#include "tests/autotune/store/store_support.h"

#include "autotune/search/proposer.h"
#include "base/memory.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PAIRS = 40,
    KILLS = 50,
    LONGEST_US = 25000, /* maximum time until a kill */
    SEED = 1            /* seed of the random times */
};

static int fail(const char *what, long long number)
{
    fprintf(stderr, "test_store_kill: %s: %lld\n", what, number);
    return EXIT_FAILURE;
}

/* The child process: adds trials until it is killed. */
static void add_for_ever(const char *path, int said)
{
    mgl_store *store;
    mgl_campaign_record campaign;
    mgl_error err;
    if (mgl_store_open(path, true, &store, &err) ||
        mgl_store_find_campaign(store, NULL, &campaign, &err))
        _exit(EXIT_FAILURE);
    for (int64_t number = campaign.trials + 1;; number++) {
        mgl_trial trial;
        store_fill_trial(campaign.id, number, PAIRS, &trial);
        if (mgl_store_add_trial(store, &trial, &err) ||
            write(said, &number, sizeof number) != sizeof number)
            _exit(EXIT_FAILURE);
        mgl_trial_clear(&trial);
    }
}

static void sleep_us(uint64_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

/* Runs one child until it is killed. *said: the last number that it reported; unchanged if it
 * reported none. */
static bool kill_one(const char *path, uint64_t us, int64_t *said)
{
    int ends[2], status;
    int64_t number;
    if (pipe(ends))
        return false;
    pid_t child = fork();
    if (!child) {
        close(ends[0]);
        add_for_ever(path, ends[1]);
    }
    close(ends[1]);
    sleep_us(us);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        *said = number;
    close(ends[0]);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Numbers are contiguous after each kill. At the end every trial is checked. */
static int run(const char *path, int kills, int64_t *said)
{
    uint64_t state = SEED;
    for (int i = 0; i < kills; i++) {
        mgl_campaign_record campaign;
        mgl_trial last;
        mgl_store *store;
        if (!kill_one(path, mgl_draw_below(&state, LONGEST_US), said))
            return fail("a child ended by itself at kill", i);
        if (mgl_store_open(path, true, &store, NULL) ||
            mgl_store_find_campaign(store, NULL, &campaign, NULL))
            return fail("the store does not open after kill", i);
        if (campaign.trials < *said)
            return fail("a trial is lost that was said to be stored", *said);
        if (campaign.trials) {
            if (mgl_store_get_trial(store, campaign.id, campaign.trials, true, &last, NULL))
                return fail("the last trial is missing", campaign.trials);
            mgl_trial_clear(&last);
        }
        mgl_campaign_record_clear(&campaign);
        mgl_store_close(store);
    }
    return EXIT_SUCCESS;
}

int main(int count, char **arguments)
{
    int kills = count > 1 ? atoi(arguments[1]) : KILLS;
    int64_t said = 0;
    mgl_campaign_record campaign;
    disk_install(); /* what a process wrote outlives it without being flushed */
    store_make_folder();
    const char *path = store_path("store.db");
    mgl_store *store = store_open(path);
    store_add_campaign(store, "one", &campaign);
    mgl_store_close(store);
    int result = run(path, kills, &said);
    if (!result) {
        store = store_open(path);
        int64_t whole = store_count_whole(store, campaign.id, PAIRS);
        mgl_store_close(store);
        if (whole < said)
            result = fail("trials are not whole; they were", said);
        else
            printf("%d kills; %lld trials, all whole\n", kills, (long long)whole);
    }
    mgl_campaign_record_clear(&campaign);
    store_remove_folder();
    return result;
}
