/* Runs a campaign: opens its proposers by name and share, opens its runner, executes the
 * campaign loop, and measures the winner against the default at the end. Implements mgl_tune_run
 * of tune.h. */
#include "autotune/tune_chat.h"
#include "autotune/tune_prior.h"

#include "autotune/answers/answer.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- proposers ------------------------------------------------------------------------------- */

/* The proposer "external" proposes nothing: it waits for submissions from outside, which the
 * campaign loop takes first. */
static mgl_status propose_nothing(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                                  mgl_proposer_answer *answer, mgl_error *err)
{
    (void)self, (void)seed, (void)out, (void)err;
    *answer = MGL_NOT_YET;
    return MGL_OK;
}

static mgl_status learn_nothing(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    (void)self, (void)trial, (void)err;
    return MGL_OK;
}

static void close_external(mgl_proposer *self)
{
    mgl_free(self);
}

static mgl_status open_external(const mgl_proposer_options *options, mgl_proposer **out,
                                mgl_error *err)
{
    (void)options;
    *out = mgl_alloc_zero(1, sizeof **out);
    if (!*out)
        return mgl_fail_memory(err, sizeof **out);
    **out = (mgl_proposer){"external", propose_nothing, learn_nothing, close_external, false};
    return MGL_OK;
}

static const struct known_proposer {
    const char *name;
    mgl_status (*open)(const mgl_proposer_options *, mgl_proposer **, mgl_error *);
} known[] = {
#define MGL_X(name, open) {name, open},
    MGL_PROPOSERS(MGL_X)
#undef MGL_X
};
#define MGL_X(name, open) ", " name
static const char known_names[] = MGL_PROPOSERS(MGL_X); /* begins with ", " */
#undef MGL_X
enum { KNOWN = sizeof known / sizeof *known };

/* Parses one element of "evolve:2,random": index in `known`, and share. */
static mgl_status read_one(const char *text, size_t length, int *which, double *share,
                           mgl_error *err)
{
    const char *colon = memchr(text, ':', length);
    size_t name = colon ? (size_t)(colon - text) : length;
    int i = 0;
    *share = 1;
    while (i < KNOWN && (strlen(known[i].name) != name || strncmp(known[i].name, text, name) != 0))
        i++;
    if (i == KNOWN)
        return mgl_fail(err, MGL_USAGE, "--proposer", "unknown proposer: \"%.*s\"; known: %s",
                        name < 40 ? (int)name : 40, text, known_names + 2);
    if (colon) {
        char *end;
        *share = strtod(colon + 1, &end);
        if (end != text + length || !isfinite(*share) || !(*share > 0) || colon[1] == '+')
            return mgl_fail(err, MGL_USAGE, "--proposer",
                            "the share of %s must be a number above 0, such as %s:2", known[i].name,
                            known[i].name);
    }
    *which = i;
    return MGL_OK;
}

typedef mgl_status each_proposer(void *user, int which, double share, mgl_error *err);

static mgl_status read_proposers(const char *text, each_proposer *each, void *user, mgl_error *err)
{
    mgl_status status = MGL_OK;
    int count = 0;
    for (bool more = true; more && !status; count++) {
        size_t length = strcspn(text, ",");
        double share;
        int which = 0;
        status = count < MGL_MAX_PROPOSERS
                     ? read_one(text, length, &which, &share, err)
                     : mgl_fail(err, MGL_USAGE, "--proposer",
                                "too many proposers; at most %d are allowed", MGL_MAX_PROPOSERS);
        if (!status)
            status = each(user, which, share, err);
        more = text[length] == ',';
        text += length + 1;
    }
    return status;
}

static mgl_status take_any(void *user, int which, double share, mgl_error *err)
{
    (void)user, (void)which, (void)share, (void)err;
    return MGL_OK;
}

mgl_status mgl_tune_check_proposers(const char *text, mgl_error *err)
{
    return read_proposers(text, take_any, NULL, err);
}

/* Arguments of open_one. */
typedef struct opening {
    const mgl_tune *tune;
    const mgl_tune_run_options *o;
    mgl_campaign_options *out;
} opening;

static mgl_status open_one(void *user, int i, double share, mgl_error *err)
{
    const opening *at = user;
    const mgl_tune *tune = at->tune;
    mgl_campaign_options *out = at->out;
    const mgl_proposer_options options = {
        .subject = &tune->subject, .start = &tune->subject.start, .abort = at->o->abort};
    mgl_proposer *opened = NULL;
    mgl_status status = known[i].open ? known[i].open(&options, &opened, err)
                                      : mgl_tune_open_chat(tune, at->o, &opened, err);
    if (status)
        return status;
    out->proposers[out->proposer_count].proposer = opened;
    out->proposers[out->proposer_count++].share = share;
    return MGL_OK;
}

static mgl_status open_proposers(const mgl_tune *tune, const mgl_tune_run_options *o,
                                 mgl_campaign_options *out, mgl_error *err)
{
    opening at = {tune, o, out};
    return read_proposers(tune->proposers, open_one, &at, err);
}

/* ---- runner ---------------------------------------------------------------------------------- */

static mgl_status open_runner(const mgl_tune *tune, const mgl_tune_run_options *o, mgl_runner **out,
                              mgl_error *err)
{
    const char *device = o->device ? o->device : tune->device;
    mgl_text kernels = {0};
    if (!strcmp(device, "none"))
        return mgl_runner_none_open(&tune->subject, out, err);
    mgl_text_format(&kernels, "%s.kernels/%s", mgl_store_beside(tune->store), tune->record.name);
    if (kernels.failed) {
        mgl_text_clear(&kernels);
        return mgl_fail_memory(err, kernels.capacity);
    }
    const mgl_runner_options options = {.subject = &tune->subject,
                                        .device = device,
                                        .program = "/proc/self/exe",
                                        .kernels = kernels.bytes,
                                        .kernel_bytes =
                                            o->disk_bytes ? o->disk_bytes : MGL_TUNE_DISK,
                                        .abort = o->abort,
                                        .no_sandbox = o->no_sandbox};
    mgl_status status = mgl_runner_device_open(&options, out, err);
    mgl_text_clear(&kernels);
    return status;
}

static mgl_status check_kind(const mgl_tune *tune, mgl_runner *runner, mgl_error *err)
{
    mgl_runner_device device = {0};
    mgl_status status = runner->get_device(runner, &device, err);
    return status ? status : mgl_campaign_check_kind(&tune->record, &device, err);
}

/* ---- final measurement ----------------------------------------------------------------------- */

/* Whether the incumbent needs a final measurement: at the end of the campaign, or when the last
 * final measurement found its candidate wrong. */
static bool wants_final(const mgl_tune *tune, const mgl_campaign_options *options)
{
    mgl_answer_final_facts last;
    if (!options->runner->executes || tune->record.incumbent == 0 ||
        mgl_answer_find_final(tune->store, tune->record.id, &last, NULL))
        return false;
    bool ended = tune->record.state && !strcmp(tune->record.state, "ended");
    return mgl_answer_is_wrong(&last) || (ended && last.number != tune->record.incumbent);
}

/* Measures the winner against the default on a new runner. If this is impossible now, reports an
 * error event; the campaign does not fail. */
static mgl_status measure_final(mgl_tune *tune, const mgl_tune_run_options *o,
                                mgl_campaign_options *options, bool *measured, mgl_error *err)
{
    mgl_error why = {0};
    options->runner->close(options->runner);
    options->runner = NULL;
    mgl_status status = open_runner(tune, o, &options->runner, &why);
    if (!status)
        status = mgl_campaign_measure_final(options, &why);
    *measured = !status;
    if (status == MGL_INTERRUPTED || status == MGL_NO_MEMORY) {
        *err = why;
        return status;
    }
    mgl_campaign_event event = {.kind = "error", .text = why.message};
    if (status && o->on_event)
        o->on_event(o->user, &event);
    return MGL_OK;
}

/* Steps back from a wrong winner to the trial kept before it, until one is correct or the default
 * is reached. */
static mgl_status settle_winner(mgl_tune *tune, const mgl_tune_run_options *o,
                                mgl_campaign_options *options, mgl_error *err)
{
    bool measured = true;
    /* a killed run may have stored the final verdict without the quarantine */
    mgl_status status = mgl_campaign_quarantine(options, err);
    while (!status && measured && options->runner && wants_final(tune, options)) {
        status = measure_final(tune, o, options, &measured, err);
        if (!status)
            status = mgl_campaign_quarantine(options, err);
    }
    return status;
}

/* ---- campaign loop --------------------------------------------------------------------------- */

static void close_proposers(mgl_campaign_options *options)
{
    for (int i = 0; i < options->proposer_count; i++)
        options->proposers[i].proposer->close(options->proposers[i].proposer);
    options->proposer_count = 0;
}

static mgl_status begin_proposers(mgl_tune *tune, const mgl_tune_run_options *o,
                                  mgl_campaign_options *options, mgl_error *err)
{
    close_proposers(options);
    mgl_status status = open_proposers(tune, o, options, err);
    return status ? status : mgl_tune_add_prior(tune, options, err);
}

static mgl_status begin_runner(mgl_tune *tune, const mgl_tune_run_options *o,
                               mgl_campaign_options *options, mgl_error *err)
{
    if (o->runner)
        return MGL_OK;
    mgl_status status = open_runner(tune, o, &options->runner, err);
    if (!status)
        status = check_kind(tune, options->runner, err);
    if (!status)
        status = settle_winner(tune, o, options, err);
    return !status && !options->runner ? open_runner(tune, o, &options->runner, err) : status;
}

static bool goes_on(const mgl_tune *tune)
{
    return tune->record.state && !strcmp(tune->record.state, "running");
}

static mgl_status run_campaign(mgl_tune *tune, const mgl_tune_run_options *o,
                               mgl_campaign_options *options, mgl_error *err)
{
    mgl_status status = mgl_campaign_run(options, err);
    while (!status && goes_on(tune)) {
        status = begin_proposers(tune, o, options, err);
        if (!status)
            status = mgl_campaign_run(options, err);
    }
    return status;
}

mgl_status mgl_tune_run(mgl_tune *tune, const mgl_tune_run_options *o, mgl_error *err)
{
    mgl_campaign_options options = {.subject = &tune->subject,
                                    .record = &tune->record,
                                    .store = tune->store,
                                    .submissions = true,
                                    .max_seconds = o->max_seconds,
                                    .max_trials = o->max_trials,
                                    .until_gain = o->until_gain,
                                    .runner = o->runner,
                                    .clock = o->clock,
                                    .abort = o->abort,
                                    .checkpoint = tune->checkpoint,
                                    .commit = o->commit,
                                    .on_event = o->on_event,
                                    .user = o->user};
    mgl_status status = begin_proposers(tune, o, &options, err);
    if (!status)
        status = begin_runner(tune, o, &options, err);
    if (!status)
        status = run_campaign(tune, o, &options, err);
    if (!status && !o->runner)
        status = settle_winner(tune, o, &options, err);
    if (options.runner && !o->runner)
        options.runner->close(options.runner);
    close_proposers(&options);
    return status;
}
