/*
 * Fixture: a campaign of a small model with a scripted runner and a scripted proposer, in a store
 * of its own.
 */
#ifndef MGL_TESTS_AUTOTUNE_SEARCH_CAMPAIGN_FIXTURE_H
#define MGL_TESTS_AUTOTUNE_SEARCH_CAMPAIGN_FIXTURE_H

#include <check.h>

#include "autotune/search/campaign.h"
#include "autotune/tune.h"
#include "tests/autotune/search/scripted_runner.h"

enum { MOST_EVENTS = 1000 };

typedef struct fixture {
    mgl_store *store;
    mgl_tune tune;
    scripted_runner runner;
    scripted_proposer proposer;
    mgl_campaign_options options;
    atomic_int abort;
    char kinds[MOST_EVENTS]; /* first letters of the events */
    int events;
    int abort_at, stop_at; /* number of the trial after which that is done; 0: never */
    mgl_error err;
} fixture;

/* Checks for MGL_OK; otherwise the test fails with the error's message. */
void must(mgl_status status, const mgl_error *err);

/* `name`: the campaign's name, unique per test. Release with tear_down. */
void set_up(fixture *f, const char *name);
void set_up_with(fixture *f, const char *name, bool allow_formats);
/* A new runner and a new proposer for the same campaign. */
void set_up_again(fixture *f);
void tear_down(fixture *f);

/* Runs the campaign until it has this number of trials (0: no limit). */
mgl_status run(fixture *f, int64_t trials);
int64_t submit(fixture *f, const char *text);

/* The fixture's event callback. A test's own callback must call it first. */
void on_event(void *user, const mgl_campaign_event *event);
int count_events(const fixture *f, char kind);

/* A trial of the store. Release with mgl_trial_clear. */
mgl_trial trial_of(fixture *f, int64_t number);
mgl_outcome outcome_of(fixture *f, int64_t number);

/* main of such a test: its cases, with a folder for their stores. */
int run_suite(const char *name, TCase *tests);

/* Proposals with knobs that the cost model ignores: otherwise its screening would reject candidates
 * before the runner. */
enum { PROPOSALS = 8 };
extern const scripted_proposal proposals[PROPOSALS];

#endif
