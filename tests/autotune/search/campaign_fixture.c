/* Implements the campaign fixture. See campaign_fixture.h. */
#include "tests/autotune/search/campaign_fixture.h"

#include "tests/autotune/store/store_support.h"

#include <stdlib.h>
#include <string.h>

void on_event(void *user, const mgl_campaign_event *event)
{
    fixture *f = user;
    if (f->events < MOST_EVENTS - 1)
        f->kinds[f->events++] = event->kind[0];
    if (!event->trial)
        return;
    if (f->abort_at && event->trial->number == f->abort_at)
        atomic_store(&f->abort, 1);
    if (f->stop_at && event->trial->number == f->stop_at)
        ck_assert_int_eq(mgl_store_ask_stop(f->store, f->tune.record.id, true, NULL), MGL_OK);
}

static double clock_of(void *user)
{
    return ((fixture *)user)->runner.clock;
}

void must(mgl_status status, const mgl_error *err)
{
    ck_assert_msg(status == MGL_OK, "%s: %s", err->where, err->message);
}

void set_up_again(fixture *f)
{
    scripted_runner_init(&f->runner);
    scripted_proposer_init(&f->proposer, &f->tune.subject);
    f->options = (mgl_campaign_options){.subject = &f->tune.subject,
                                        .record = &f->tune.record,
                                        .store = f->store,
                                        .runner = &f->runner.runner,
                                        .proposers = {{&f->proposer.proposer, 1}},
                                        .proposer_count = 1,
                                        .submissions = true,
                                        .abort = &f->abort,
                                        .on_event = on_event,
                                        .user = f,
                                        .clock = clock_of};
}

void set_up_with(fixture *f, const char *name, bool allow_formats)
{
    *f = (fixture){0};
    const mgl_tune_request request = {.workloads = "ctx=0;batch=1",
                                      .model = MGL_SOURCE_DIR "/tests/models/tales-5m",
                                      .device = "none",
                                      .allow_formats = allow_formats,
                                      .has_seed = true,
                                      .seed = 7,
                                      .name = name};
    f->store = store_open(store_at("campaigns.db"));
    must(mgl_tune_prepare(f->store, &request, true, &f->tune, &f->err), &f->err);
    set_up_again(f);
}

void set_up(fixture *f, const char *name)
{
    set_up_with(f, name, false);
}

void tear_down(fixture *f)
{
    mgl_tune_clear(&f->tune);
    mgl_store_close(f->store);
}

mgl_status run(fixture *f, int64_t trials)
{
    f->options.max_trials = trials;
    f->err = (mgl_error){0};
    return mgl_campaign_run(&f->options, &f->err);
}

/* A trial of the store. Release with mgl_trial_clear. */
mgl_trial trial_of(fixture *f, int64_t number)
{
    mgl_trial trial;
    must(mgl_store_get_trial(f->store, f->tune.record.id, number, true, &trial, &f->err), &f->err);
    return trial;
}

mgl_outcome outcome_of(fixture *f, int64_t number)
{
    mgl_trial trial = trial_of(f, number);
    mgl_outcome outcome = trial.verdict.outcome;
    mgl_trial_clear(&trial);
    return outcome;
}

int count_events(const fixture *f, char kind)
{
    int count = 0;
    for (int i = 0; i < f->events; i++)
        count += f->kinds[i] == kind;
    return count;
}

int64_t submit(fixture *f, const char *text)
{
    int64_t id = 0;
    must(mgl_tune_submit(f->store, &f->tune.record, text, strlen(text), "submit", &id, &f->err),
         &f->err);
    return id;
}

int run_suite(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    SRunner *suite_runner = srunner_create(suite);
    suite_add_tcase(suite, tests);
    store_make_folder();
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    store_remove_folder();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

const scripted_proposal proposals[PROPOSALS] = {
    {"prefetch_bytes", 65536}, {"prefetch_bytes", 262144}, {"prefetch_bytes", 0},
    {"pending_bytes", 16384},  {"pending_bytes", 65536},   {"pending_bytes", 98304},
    {"flight_bytes", 49152},   {"flight_bytes", 98304},
};
