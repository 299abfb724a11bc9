/* Implements the common parts of the tools that run campaigns. See show.h. */
#include "tests/tools/show.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aliases.h"
#include "base/clock.h"
#include "eval/statistics.h"
#include "tests/autotune/search/scripted_runner.h"

enum { TELL_EVERY = 50, MOST_CONTROLS = 1001 };

const char *show_commit;

void show_check(mgl_status status, const mgl_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s: %s\n", show_name, err->where, err->message);
    exit(1);
}

void show_tell(const char *format, ...)
{
    static double began;
    va_list args;
    if (began <= 0)
        began = mgl_clock_s();
    fprintf(stderr, "%7.1f s  ", mgl_clock_s() - began);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* ---- running --------------------------------------------------------------------------------- */

static void on_event(void *user, const mgl_campaign_event *event)
{
    (void)user;
    bool trial = !strcmp(event->kind, "trial");
    if (!trial || (event->trial && event->trial->number % TELL_EVERY == 0))
        show_tell("%s: %s", event->kind, event->text);
}

mgl_status show_run(mgl_tune *tune, const show_limits *limits, mgl_error *err)
{
    scripted_runner played;
    mgl_tune_run_options how = {.commit = show_commit,
                                .max_seconds = limits->seconds,
                                .max_trials = limits->trials,
                                .until_gain = limits->gain,
                                .on_event = on_event};
    if (limits->simulated) {
        scripted_runner_init(&played);
        played.by_cost = true;
        how.runner = &played.runner;
        how.clock = scripted_runner_clock;
        how.user = &played;
    }
    return mgl_tune_run(tune, &how, err);
}

/* ---- counting -------------------------------------------------------------------------------- */

static void count_control(show_counts *c, const mgl_trial *trial)
{
    c->bad_controls += trial->verdict.outcome == MGL_OUTCOME_SUSPICIOUS;
    if (trial->p_value < 0 || c->controls == MOST_CONTROLS)
        return;
    c->control_gain[c->controls] = trial->gain;
    c->control_width[c->controls++] = trial->gain_hi - trial->gain_lo;
}

static void count_measured(show_counts *c, const mgl_trial *trial)
{
    int moves = trial->proposal.moves.count;
    c->measured++;
    c->configs += moves == 0;
    c->moved += moves > 0;
    c->moves += moves;
}

static mgl_status count_trial(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    show_counts *c = user;
    c->seconds += trial->seconds;
    c->device_s += trial->gpu_s;
    if (trial->control) {
        count_control(c, trial);
        return MGL_OK;
    }
    c->trials++;
    c->suspicious += trial->verdict.outcome == MGL_OUTCOME_SUSPICIOUS;
    c->refused += mgl_outcome_exit(trial->verdict.outcome) == MGL_EXIT_REFUSED;
    if (trial->workload_count > 0 && trial->workloads[0].incumbent_us > 0)
        count_measured(c, trial);
    if (trial->verdict.outcome == MGL_OUTCOME_OK) {
        c->kept++;
        c->gain += trial->gain;
        c->gain_lo += trial->gain_lo;
        c->gain_hi += trial->gain_hi;
    }
    return MGL_OK;
}

/* ---- where the time went --------------------------------------------------------------------- */

static const char *const part_names[SHOW_PARTS] = {"stretches", "requests", "device"};

static void add_spent(show_spent *to, int part, const char *name, double seconds)
{
    int i = 0;
    while (i < to->count && (to->list[i].part != part || strcmp(to->list[i].name, name) != 0))
        i++;
    if (i == SHOW_MOST_SPENT)
        return;
    if (i == to->count) {
        to->list[to->count].part = part;
        snprintf(to->list[to->count++].name, sizeof to->list[i].name, "%s", name);
    }
    to->list[i].seconds += seconds;
}

/* "of 40.8 s: start 1.20 s (1), ...; requests: set 3.21 s (22), ...; device: ..." */
static mgl_status read_spent(void *user, int64_t unix_s, const char *kind, const char *text,
                             mgl_error *err)
{
    (void)unix_s, (void)err;
    show_spent *to = user;
    double seconds = 0;
    char name[24];
    int part = SHOW_STRETCHES;
    if (strcmp(kind, MGL_SPENT_EVENT) != 0 || sscanf(text, "of %lf s", &seconds) != 1)
        return MGL_OK;
    to->seconds += seconds;
    for (const char *at = strchr(text, ':'); at; at = strpbrk(at + 1, ":,;")) {
        if (*at == ';')
            part = at[2] == 'r' ? SHOW_REQUESTS : SHOW_DEVICE;
        else if (sscanf(at + 1, " %23[a-z-] %lf s", name, &seconds) == 2)
            add_spent(to, part, name, seconds);
    }
    return MGL_OK;
}

static double sum_spent(const show_spent *spent, int part)
{
    double sum = 0;
    for (int i = 0; i < spent->count; i++)
        sum += spent->list[i].part == part ? spent->list[i].seconds : 0;
    return sum;
}

static double read_stretch(const show_spent *spent, const char *name)
{
    for (int i = 0; i < spent->count; i++)
        if (spent->list[i].part == SHOW_STRETCHES &&
            mgl_alias_is(MGL_ALIAS_TIME, name, spent->list[i].name))
            return spent->list[i].seconds;
    return 0;
}

void show_put_spent(mgl_json_out *out, const show_counts *counts, double seconds)
{
    const show_spent *spent = &counts->spent;
    const double device_s = sum_spent(spent, SHOW_DEVICE);
    mgl_json_out_real(out, "device_s", counts->device_s);
    if (device_s > 0)
        mgl_json_out_real(out, "device_share", device_s / spent->seconds);
    else if (seconds > 0)
        mgl_json_out_real(out, "device_share", counts->device_s / seconds);
    const double start = read_stretch(spent, "start") + read_stretch(spent, "runner") +
                         read_stretch(spent, "self-test");
    if (spent->seconds > start) /* after the start */
        mgl_json_out_real(out, "device_share_of_trials",
                          counts->device_s / (spent->seconds - start));
    mgl_json_out_object(out, "spent_s");
    mgl_json_out_real(out, "all", spent->seconds);
    for (int part = 0; part < SHOW_PARTS; part++) {
        mgl_json_out_object(out, part_names[part]);
        for (int i = 0; i < spent->count; i++)
            if (spent->list[i].part == part)
                mgl_json_out_real(out, spent->list[i].name, spent->list[i].seconds);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_object(out);
}

void show_count(mgl_store *store, const mgl_campaign_record *campaign, show_counts *out)
{
    mgl_error err = {0};
    *out = (show_counts){0};
    show_check(mgl_store_each_trial(store, campaign->id, 1, 0, count_trial, out, &err), &err);
    show_check(mgl_store_each_event(store, campaign->id, read_spent, &out->spent, &err), &err);
}

/* ---- results --------------------------------------------------------------------------------- */

void show_put_percent(mgl_json_out *out, const char *key, const double *values, int count)
{
    static const struct {
        const char *name;
        double share;
    } points[] = {{"median", 0.5}, {"p10", 0.1}, {"p90", 0.9}};
    mgl_json_out_object(out, key);
    for (size_t i = 0; i < sizeof points / sizeof *points && count > 0; i++)
        mgl_json_out_real(out, points[i].name,
                          100 * expm1(mgl_quantile(values, (size_t)count, points[i].share)));
    mgl_json_out_close_object(out);
}

void show_end_json(mgl_json_out *out)
{
    mgl_json_out_close(out);
    printf("%s\n", out->text.bytes);
    mgl_text_clear(&out->text);
}
