/*
 * Measures the time and size of a store with many trials.
 *
 *     store_soak [TRIALS [PAIRS]]
 *
 * Adds TRIALS trials with PAIRS pairs each and reads them all. The size must grow linearly: the
 * exit code is 1 if the second half of the trials takes more than 1.1 times the bytes of the first
 * half.
 */
#include "tests/autotune/store/store_support.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int64_t size_of(const char *path)
{
    struct stat facts;
    return stat(path, &facts) ? -1 : (int64_t)facts.st_size;
}

static void add_some(const char *path, int64_t campaign, int64_t from, int64_t to, int pairs)
{
    mgl_error err = {0};
    mgl_store *store = store_open(path);
    for (int64_t number = from; number <= to; number++) {
        mgl_trial trial;
        store_fill_trial(campaign, number, pairs, &trial);
        if (mgl_store_add_trial(store, &trial, &err)) {
            fprintf(stderr, "store_soak: %s: %s\n", err.where, err.message);
            exit(EXIT_FAILURE);
        }
        mgl_trial_clear(&trial);
    }
    mgl_store_close(store); /* the log goes into the file */
}

int main(int count, char **arguments)
{
    int64_t trials = count > 1 ? atoll(arguments[1]) : 1000, bytes[3];
    int pairs = count > 2 ? atoi(arguments[2]) : STORE_PAIRS;
    mgl_campaign_record campaign;
    store_make_folder();
    const char *path = store_path("store.db");
    mgl_store *store = store_open(path);
    store_add_campaign(store, "night", &campaign);
    mgl_store_close(store);
    bytes[0] = size_of(path);
    double start = mgl_clock_s();
    add_some(path, campaign.id, 1, trials / 2, pairs);
    bytes[1] = size_of(path);
    add_some(path, campaign.id, trials / 2 + 1, trials, pairs);
    bytes[2] = size_of(path);
    double added = mgl_clock_s();
    store = store_open(path);
    double opened = mgl_clock_s();
    int64_t whole = store_count_whole(store, campaign.id, pairs);
    double read = mgl_clock_s();
    mgl_store_close(store);
    printf("%lld trials of %d pairs: %.1f MB, %.0f bytes a trial\n", (long long)trials, pairs,
           (double)bytes[2] / 1e6, (double)(bytes[2] - bytes[0]) / (double)trials);
    printf("added in %.2f s, %.2f ms each; opened and checked in %.3f s; read in %.2f s\n",
           added - start, (added - start) / (double)trials * 1e3, opened - added, read - opened);
    bool linear = (double)(bytes[2] - bytes[1]) <= 1.1 * (double)(bytes[1] - bytes[0]);
    if (!linear)
        fprintf(stderr, "store_soak: the second half took %lld bytes, the first %lld\n",
                (long long)(bytes[2] - bytes[1]), (long long)(bytes[1] - bytes[0]));
    mgl_campaign_record_clear(&campaign);
    store_remove_folder();
    return linear && whole == trials ? EXIT_SUCCESS : EXIT_FAILURE;
}
