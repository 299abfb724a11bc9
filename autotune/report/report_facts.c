/*
 * Collects the data of a report in one pass over a campaign's trials. Values are chained
 * (chain.h): each trial was measured against the incumbent at that time, and the sum of the log
 * ratios is the value relative to the default. A trial without a measurement has its predicted
 * value relative to the predicted default, and is marked as predicted everywhere.
 *
 * An effect is the result of a change: each trial is compared with its parent, knob by knob and
 * move by move.
 */
#include "autotune/report/report_facts.h"

#include "autotune/search/chain.h"
#include "base/aliases.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The data of a trial that its children need. */
typedef struct stand {
    mgl_schedule_config config;
    int moves[MGL_MOVE_COUNT];
    double value; /* log ratio to the default; NAN: none */
} stand;

enum { WIDEST_GAP = 4096 }; /* largest accepted gap between trial numbers */

typedef struct gathering {
    report_facts *facts;
    stand *stands; /* (count) indexed by number; [0] is the default */
    size_t count, capacity;
    mgl_chain chain; /* log ratios to the default */
} gathering;

const char report_of_steps[] =
    "Each step was measured against the one before, and kept because it measured well: their sum "
    "tends to be more than the whole.";

void report_put_best(const report_facts *facts, mgl_text *out)
{
    const size_t start = out->length;
    mgl_answer_best_line(&facts->steps, &facts->final, out);
    if (!out->failed)
        out->bytes[start] = (char)toupper((unsigned char)out->bytes[start]);
    mgl_text_put(out, ".");
}

double report_percent(double log_ratio)
{
    return 100 * expm1(log_ratio);
}

void report_put_seconds(double seconds, mgl_text *out)
{
    if (seconds >= 5400)
        mgl_text_format(out, "%.1f h", seconds / 3600);
    else if (seconds >= 120)
        mgl_text_format(out, "%.0f min", seconds / 60);
    else
        mgl_text_format(out, "%.0f s", seconds);
}

void report_put_workload(const report_facts *facts, int w, mgl_text *out)
{
    if (w < facts->workloads.count)
        mgl_text_format(out, "batch %d, context %d", facts->workloads.list[w].batch,
                        facts->workloads.list[w].context);
    else
        mgl_text_format(out, "%d", w + 1);
}

void report_put_error(double error, mgl_text *out)
{
    if (error >= 0)
        mgl_text_format(out, "%.1e", error);
    else
        mgl_text_put(out, "-");
}

void report_put_time(int64_t unix_s, mgl_text *out)
{
    const time_t when = (time_t)unix_s;
    struct tm day;
    char text[32] = "-";
    if (gmtime_r(&when, &day))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &day);
    mgl_text_put(out, text);
}

/* Appends text in printable form. `quote` replaces single quotes; `lines` keeps line ends. */
static void put_shown(const char *text, const char *quote, bool lines, mgl_text *out)
{
    const size_t length = text ? strlen(text) : 0;
    for (size_t i = 0, used; i < length; i += used) {
        char shown[4];
        const size_t n = mgl_utf8_show(text + i, length - i, shown, &used);
        if (lines && text[i] == '\n')
            mgl_text_put(out, "\n");
        else if (shown[0] == '\'')
            mgl_text_put(out, quote);
        else
            mgl_text_append(out, shown, n);
    }
}

void report_put_quoted(const char *name, mgl_text *out)
{
    mgl_text_put(out, "'");
    put_shown(name, "'\\''", false, out);
    mgl_text_put(out, "'");
}

void report_print_best(const report_facts *facts, mgl_text *out)
{
    mgl_text printed = {0};
    if (!facts->best.number || facts->best.proposal.schedule)
        return;
    mgl_proposal_print(&facts->best.proposal, &printed);
    put_shown(printed.bytes, "'", true, out);
    out->failed |= printed.failed;
    mgl_text_clear(&printed);
}

const char *report_weights(const report_facts *facts)
{
    const char *device = facts->campaign->device;
    return device && !strcmp(device, "none")
               ? "Nothing was executed."
               : "Trials ran on synthetic weights of the model's shape, drawn anew for each.";
}

bool report_has_prediction(const report_facts *facts)
{
    return !facts->best.number && facts->played_best > 0;
}

const char report_of_prediction[] =
    "Nothing was measured. The archive has the predicted winner, marked as predicted.";

void report_put_seed(const report_facts *facts, mgl_text *out)
{
    mgl_text_format(out,
                    "Nothing was kept, so that there is nothing to export. In a store of its own "
                    "the same command with --seed %llu makes the same draws.",
                    (unsigned long long)facts->campaign->seed);
}

void report_put_device_time(const report_facts *facts, mgl_text *out)
{
    if (!(facts->gpu_s > 0) && !(facts->compile_s > 0))
        return;
    mgl_text_put(out, "Launches took ");
    report_put_seconds(facts->gpu_s, out);
    mgl_text_put(out, ", compiling kernels ");
    report_put_seconds(facts->compile_s, out);
    mgl_text_put(out, ".");
}

/* ---- effects of changes ---------------------------------------------------------------------- */

static void count_moves(const mgl_moves *moves, int counts[MGL_MOVE_COUNT])
{
    memset(counts, 0, MGL_MOVE_COUNT * sizeof *counts);
    for (int i = 0; i < moves->count; i++)
        counts[moves->moves[i].kind]++;
}

/* Adds a trial to an effect. `refusal` is the trial's outcome, and `place` its index. */
static void note_effect(report_effect *e, const mgl_trial *trial, const report_refusal *refusal,
                        int place, double ratio)
{
    bool correct = mgl_outcome_is_correct(trial->verdict.outcome);
    e->tried++;
    e->correct += correct;
    e->refused += mgl_outcome_exit(trial->verdict.outcome) == MGL_EXIT_REFUSED;
    if (!correct && ++e->refusals[place] > e->most_count) {
        e->most_count = e->refusals[place];
        memcpy(e->most, refusal->name, sizeof e->most);
    }
    if (isnan(ratio))
        return;
    if (!e->valued || ratio > e->best)
        e->best = ratio;
    e->sum += ratio;
    e->valued++;
}

static void note_changes(gathering *g, const mgl_trial *trial, int place, const stand *on,
                         const stand *is)
{
    report_facts *f = g->facts;
    const report_refusal *refusal = &f->refusals[place];
    /* a measurement is never compared with a prediction */
    bool told = f->measures ? mgl_outcome_is_correct(trial->verdict.outcome) : true;
    double ratio = told ? is->value - on->value : NAN;
    for (int k = 0; k < f->first_move; k++)
        if (mgl_knob_get(&on->config, k) != mgl_knob_get(&is->config, k))
            note_effect(&f->effects[k], trial, refusal, place, ratio);
    for (int m = 0; m < MGL_MOVE_COUNT; m++)
        if (is->moves[m] > on->moves[m])
            note_effect(&f->effects[f->first_move + m], trial, refusal, place, ratio);
}

static void name_effects(report_facts *f)
{
    f->first_move = mgl_knob_count() < MGL_MAX_KNOBS ? mgl_knob_count() : MGL_MAX_KNOBS;
    for (int k = 0; k < f->first_move; k++)
        snprintf(f->effects[k].name, sizeof f->effects[k].name, "%s", mgl_knob_name(k));
    for (int m = 0; m < MGL_MOVE_COUNT; m++)
        snprintf(f->effects[f->first_move + m].name, sizeof f->effects[0].name, "%s",
                 mgl_move_name((mgl_move_kind)m));
    f->effect_count = f->first_move + MGL_MOVE_COUNT;
}

/* ---- one trial ------------------------------------------------------------------------------- */

static double value_of(const gathering *g, const mgl_trial *trial)
{
    if (trial->p_value >= 0 && mgl_outcome_is_correct(trial->verdict.outcome))
        return g->chain.value + trial->gain;
    if (trial->verdict.outcome == MGL_OUTCOME_UNMEASURED && trial->predicted_us > 0 &&
        g->facts->plays.start_us > 0)
        return log(g->facts->plays.start_us / trial->predicted_us);
    return NAN;
}

/* Stores a trial by number. Missing numbers get no value. A trial beyond a large gap is not
 * stored. */
static mgl_status add_stand(gathering *g, int64_t number, const stand *is, mgl_error *err)
{
    if (number < 1 || (uint64_t)number > g->count + WIDEST_GAP)
        return MGL_OK;
    while (g->count <= (size_t)number) {
        if (!mgl_grow((void **)&g->stands, &g->capacity, g->count, sizeof *g->stands))
            return mgl_fail_memory(err, g->count * sizeof *g->stands);
        g->stands[g->count++] = (stand){.config = g->facts->plays.start, .value = NAN};
    }
    g->stands[number] = *is;
    return MGL_OK;
}

static mgl_status add_point(gathering *g, const mgl_trial *trial, double value, mgl_error *err)
{
    report_facts *f = g->facts;
    bool measured = trial->p_value >= 0;
    if (isnan(value))
        return MGL_OK;
    if (!mgl_grow((void **)&f->points, &f->point_capacity, f->point_count, sizeof *f->points))
        return mgl_fail_memory(err, f->point_count * sizeof *f->points);
    f->points[f->point_count++] =
        (report_point){.number = trial->number,
                       .value = (float)value,
                       .lo = (float)(measured ? g->chain.value + trial->gain_lo : value),
                       .hi = (float)(measured ? g->chain.value + trial->gain_hi : value),
                       .gain = (float)trial->gain,
                       .outcome = trial->verdict.outcome,
                       .measured = measured,
                       .kept = trial->verdict.outcome == MGL_OUTCOME_OK,
                       .control = trial->control};
    return MGL_OK;
}

static void note_proposer(report_facts *f, const mgl_trial *trial)
{
    const char *name = trial->proposal.proposer ? trial->proposal.proposer : "nobody";
    int i = 0;
    while (i < f->proposer_count &&
           strncmp(f->proposers[i].name, name, sizeof f->proposers[i].name - 1) != 0)
        i++;
    if (i == REPORT_PROPOSERS)
        return;
    if (i == f->proposer_count) {
        mgl_format_into(f->proposers[i].name, sizeof f->proposers[i].name, "%s", name);
        f->proposer_count++;
    }
    f->proposers[i].trials++;
    f->proposers[i].kept += trial->verdict.outcome == MGL_OUTCOME_OK;
    f->proposers[i].seconds += trial->seconds;
}

/* Writes the outcome's name, with the validator's code if it has one. */
static void name_refusal(const mgl_trial *trial, char name[REPORT_REFUSAL_NAME])
{
    const char *why = trial->verdict.diagnostic;
    bool code = trial->verdict.outcome == MGL_OUTCOME_REJECTED && !strncmp(why, "MG", 2) &&
                strspn(why + 2, "0123456789") == 3;
    snprintf(name, REPORT_REFUSAL_NAME, "%s%s%.*s", mgl_outcome_name(trial->verdict.outcome),
             code ? " " : "", code ? 5 : 0, why);
}

/* Counts an outcome and returns its index. If the list is full, the last entry collects further
 * codes. */
static int note_refusal(report_facts *f, const mgl_trial *trial)
{
    char name[REPORT_REFUSAL_NAME];
    int i = 0;
    name_refusal(trial, name);
    while (i < f->refusal_count && strcmp(f->refusals[i].name, name) != 0)
        i++;
    if (i == REPORT_REFUSALS) {
        f->refusals[--i].count++;
        return i;
    }
    report_refusal *r = &f->refusals[i];
    if (r->count++)
        return i;
    f->refusal_count++;
    memcpy(r->name, name, sizeof r->name);
    r->verdict.outcome = trial->verdict.outcome;
    r->example = trial->number;
    memcpy(r->verdict.diagnostic, trial->verdict.diagnostic, sizeof r->verdict.diagnostic);
    return i;
}

static int compare_refusals(const void *a, const void *b)
{
    const report_refusal *x = a, *y = b;
    return x->verdict.outcome != y->verdict.outcome
               ? (int)x->verdict.outcome - (int)y->verdict.outcome
               : strcmp(x->name, y->name);
}

static void note_control(report_facts *f, const mgl_trial *trial)
{
    f->controls++;
    f->bad_controls += trial->verdict.outcome == MGL_OUTCOME_SUSPICIOUS;
    if (fabs(trial->gain) > f->control_largest)
        f->control_largest = fabs(trial->gain);
}

static void note_pairs(report_facts *f, const mgl_trial *trial)
{
    for (int w = 0; w < trial->workload_count; w++) {
        f->pairs += trial->workloads[w].pairs;
        f->dropped_pairs += trial->workloads[w].dropped;
    }
    f->compile_s += trial->compile_s;
    f->gpu_s += trial->gpu_s;
}

static mgl_status take_trial(void *user, const mgl_trial *trial, mgl_error *err)
{
    gathering *g = user;
    report_facts *f = g->facts;
    mgl_chain_reach(&g->chain, trial);
    note_pairs(f, trial);
    if (trial->control) {
        note_control(f, trial);
        return add_point(g, trial, g->chain.value + trial->gain, err);
    }
    f->trials++;
    f->measured += trial->p_value >= 0;
    note_proposer(f, trial);
    int place = note_refusal(f, trial);
    mgl_answer_note_predicted(&f->predicted, trial);
    stand is = {.config = trial->proposal.config, .value = value_of(g, trial)};
    count_moves(&trial->proposal.moves, is.moves);
    size_t parent = (size_t)trial->proposal.parent;
    if (!trial->proposal.schedule && parent < g->count &&
        trial->verdict.outcome != MGL_OUTCOME_DUPLICATE)
        note_changes(g, trial, place, &g->stands[parent], &is);
    mgl_status status = add_stand(g, trial->number, &is, err);
    if (!status)
        status = add_point(g, trial, is.value, err);
    if (trial->verdict.outcome == MGL_OUTCOME_OK && trial->p_value >= 0)
        f->kept++;
    if (mgl_chain_has(trial) && trial->p_value >= 0)
        mgl_chain_add(&g->chain, trial, g->chain.value + trial->gain);
    return status;
}

/* ---- collection ------------------------------------------------------------------------------ */

static mgl_status take_quarantined(void *user, const mgl_trial *trial, mgl_error *err)
{
    report_facts *f = user;
    if (f->quarantined_count == REPORT_QUARANTINED)
        return MGL_OK;
    report_quarantined *one = &f->quarantined[f->quarantined_count++];
    mgl_text line = {0};
    mgl_answer_quarantined_line(trial, &line);
    mgl_format_into(one->line, sizeof one->line, "%s", line.bytes ? line.bytes : "");
    bool failed = line.failed;
    mgl_text_clear(&line);
    return failed ? mgl_fail_memory(err, line.capacity) : MGL_OK;
}

/* Returns the kind of event under its new name, as the report shows it (static storage). NULL: the
 * report does not show it, because trials and controls have their own sections. */
static const char *shown_kind(const char *kind)
{
    static const char *const shown[] = {
        "costs", "keep", "pause", "error", "end", MGL_QUARANTINED_EVENT, MGL_FINAL_EVENT};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (mgl_alias_is(MGL_ALIAS_EVENT, shown[i], kind))
            return shown[i];
    return NULL;
}

static mgl_status take_event(void *user, int64_t unix_s, const char *kind, const char *text,
                             mgl_error *err)
{
    report_facts *f = user;
    (void)err;
    kind = kind ? shown_kind(kind) : NULL;
    if (!kind)
        return MGL_OK;
    report_event *event = &f->events[f->event_count++ % REPORT_EVENTS];
    event->unix_s = unix_s;
    mgl_format_into(event->kind, sizeof event->kind, "%s", kind);
    mgl_format_into(event->text, sizeof event->text, "%s",
                    strcmp(kind, MGL_FINAL_EVENT) != 0 && text
                        ? text
                        : "the best, measured against the default in a fresh process");
    return MGL_OK;
}

static mgl_status take_trials(mgl_store *store, report_facts *f, mgl_error *err)
{
    gathering g = {.facts = f};
    if (!mgl_grow((void **)&g.stands, &g.capacity, 0, sizeof *g.stands))
        return mgl_fail_memory(err, sizeof *g.stands);
    g.stands[g.count++] = (stand){.config = f->plays.start};
    mgl_status status = mgl_store_each_trial(store, f->campaign->id, 1, 0, take_trial, &g, err);
    mgl_free(g.stands);
    return status;
}

/* Finds the best trial: the incumbent or, without a clock, the trial with the lowest prediction if
 * that is below the default's prediction. */
static int64_t find_best(const report_facts *f)
{
    if (f->campaign->incumbent || f->measures)
        return f->campaign->incumbent;
    return f->predicted.us < f->plays.start_us ? f->predicted.number : 0;
}

mgl_status report_facts_gather(mgl_store *store, const mgl_campaign_record *campaign,
                               report_facts *out, mgl_error *err)
{
    *out = (report_facts){.campaign = campaign, .measures = mgl_answer_has_clock(campaign)};
    if (campaign->workloads && mgl_workloads_parse(campaign->workloads, &out->workloads, NULL))
        out->workloads = (mgl_workloads){0};
    name_effects(out);
    mgl_status status = report_plays_start(campaign, &out->plays, err);
    if (!status)
        status = take_trials(store, out, err);
    qsort(out->refusals, (size_t)out->refusal_count, sizeof *out->refusals, compare_refusals);
    out->played_best = find_best(out);
    if (!status)
        status = report_plays_best(store, campaign, out->played_best, &out->plays, err);
    if (!status && campaign->incumbent)
        status =
            mgl_store_get_trial(store, campaign->id, campaign->incumbent, false, &out->best, err);
    if (!status)
        status = mgl_answer_find_best(store, campaign, &out->steps, err);
    if (!status)
        status = mgl_answer_count_chat(store, campaign->id, &out->chat, err);
    if (!status)
        status = mgl_answer_find_final(store, campaign->id, &out->final, err);
    if (!status)
        status = mgl_store_each_quarantined(store, campaign->id, take_quarantined, out, err);
    if (!status)
        status = mgl_store_each_event(store, campaign->id, take_event, out, err);
    out->requests = out->chat.requests;
    out->tokens = out->chat.tokens;
    return status;
}

void report_facts_clear(report_facts *facts)
{
    mgl_free(facts->points);
    report_plays_clear(&facts->plays);
    mgl_trial_clear(&facts->best);
    *facts = (report_facts){0};
}
