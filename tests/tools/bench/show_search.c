/*
 * Checks that a search on a device finds what was found by hand: from a bad starting point outside
 * the space (cold_start.h) to a share of the shipped default's speed.
 *
 *     show_search SHAPE [--proposer evolve] [--seeds 3] [--minutes 10] [--store search.db]
 *
 * A campaign that begins with the default first measures the starting point, which gives the
 * required gain. Each seed is then a campaign from the starting point. The sum of its gains is only
 * a rough estimate: selected gains are biased upwards, and next to a slow program a launch has few
 * tokens. Whenever the sum comes near the required gain, and when the minutes are over, a campaign
 * that begins with the default measures the result. This gain over the default counts, and the
 * search does not see it. If it is too small, the search continues. A second call with the same
 * store continues. --runner simulated simulates a device with the cost model's times. The result is
 * JSON; exit code 1 if a seed did not succeed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/bench/cold_start.h"
#include "tests/tools/show.h"
#include "vm/pipeline/pipeline.h"

const char *show_name = "show_search";

enum { MOST_SEEDS = 20, MOST_TRIES = 5 };

static struct {
    const char *shape, *proposer, *device, *store, *runner, *target;
    int seeds, first_seed, context, capacity, trials;
    double minutes, share;
    bool queues_chosen;
    /* the following parts */
    bool simulated;
    char workloads[64], config[4096];
} options = {.proposer = "evolve",
             .device = "cuda",
             .store = "search.db",
             .runner = "device",
             .seeds = 3,
             .first_seed = 1,
             .context = 1024,
             .minutes = 10,
             .share = 0.98};

/* A search checks its result when the sum of its gains is this close to the required gain, and
 * again when the sum has grown by most of the missing gain, or by the step: log ratios. */
static const double near_gain = 0.06, gain_step = 0.005, most_of_missing = 0.75;

/* Seeds of the default's campaign, of the checks, and of the searches, so that no campaign depends
 * on another. */
static mgl_store *store;

/* Results of a seed. */
typedef struct convergence {
    show_counts counts;
    double seconds, gain; /* gain: log ratio over the bad start, of all keeps */
    int checks;           /* checks of the result against the default */
    bool reached;         /* the last check reached it */
    mgl_trial last;       /* the last check; without pairs */
    char end[300];        /* why it ended */
} convergence;

/* ---- bad starting point ---------------------------------------------------------------------- */

static void write_poor(mgl_schedule_config *poor)
{
    mgl_text text = {0};
    cold_start_make(!options.queues_chosen, poor);
    snprintf(options.config, sizeof options.config, "%s.poor.json", options.store);
    mgl_schedule_config_print(poor, &text);
    FILE *file = fopen(options.config, "w");
    if (!file || text.failed || fwrite(text.bytes, 1, text.length, file) != text.length ||
        fclose(file)) {
        fprintf(stderr, "%s: %s cannot be written\n", show_name, options.config);
        exit(1);
    }
    mgl_text_clear(&text);
}

static void open_campaign(const char *name, const char *proposer, bool poor, int seed,
                          mgl_tune *tune)
{
    mgl_error err = {0};
    const mgl_tune_request request = {.shape = options.shape,
                                      .device = options.simulated ? "none" : options.device,
                                      .workloads = options.workloads,
                                      .capacity = options.capacity,
                                      .config = poor ? options.config : NULL,
                                      .proposers = proposer,
                                      .has_seed = true,
                                      .seed = (uint64_t)seed,
                                      .name = name};
    show_check(mgl_tune_prepare(store, &request, true, tune, &err), &err);
}

/* Submits a proposal and runs the campaign until it is a trial, which may have to wait for a
 * control. */
static void measure(mgl_tune *tune, const mgl_proposal *proposal, mgl_trial *out)
{
    mgl_error err = {0};
    mgl_text text = {0};
    mgl_submission found = {0};
    int64_t id = 0;
    mgl_proposal_print(proposal, &text);
    show_check(mgl_tune_submit(store, &tune->record, text.bytes, text.length, "submit", &id, &err),
               &err);
    for (int i = 0; i < MOST_TRIES && !found.trial; i++) {
        const show_limits limits = {.trials = tune->record.trials + 1,
                                    .simulated = options.simulated};
        mgl_submission_clear(&found);
        show_check(show_run(tune, &limits, &err), &err);
        show_check(mgl_store_get_submission(store, id, &found, &err), &err);
    }
    show_check(mgl_store_get_trial(store, tune->record.id, found.trial, false, out, &err), &err);
    mgl_submission_clear(&found);
    mgl_text_clear(&text);
}

/* The times in us of the default and of the bad start, measured as a pair. */
static void compare_starts(const mgl_schedule_config *poor, double us[2])
{
    mgl_error err = {0};
    mgl_tune tune;
    mgl_trial trial = {0};
    open_campaign("search-default", "external", false, 1, &tune);
    if (tune.record.trials > 0)
        show_check(mgl_store_get_trial(store, tune.record.id, 1, false, &trial, &err), &err);
    else
        measure(&tune, &(mgl_proposal){.config = *poor}, &trial);
    us[0] = trial.workloads[0].incumbent_us;
    us[1] = trial.workloads[0].candidate_us;
    if (!(us[0] > 0) || !(us[1] > 0))
        show_check(mgl_fail(&err, MGL_GATE, "the poor start", "it was not measured: %s: %s",
                            mgl_outcome_name(trial.verdict.outcome), trial.verdict.diagnostic),
                   &err);
    mgl_trial_clear(&trial);
    mgl_tune_clear(&tune);
}

/* ---- a seed ---------------------------------------------------------------------------------- */

static bool is_program_of(const mgl_trial *a, const mgl_trial *b)
{
    return !strcmp(a->digest, b->digest);
}

/* Checks the result in a separate campaign; false: the campaign has a check of another program from
 * an earlier run. */
static bool make_check(const char *name, int seed, const mgl_trial *found, mgl_trial *out)
{
    mgl_error err = {0};
    mgl_tune judge;
    bool made = true;
    open_campaign(name, "external", false, seed, &judge);
    mgl_trial_clear(out);
    if (judge.record.trials > 0) {
        show_check(
            mgl_store_get_trial(store, judge.record.id, judge.record.trials, false, out, &err),
            &err);
        made = is_program_of(out, found);
    } else {
        measure(&judge, &found->proposal, out);
    }
    mgl_tune_clear(&judge);
    return made;
}

/* Measures the result of a seed against the default, in the default's campaigns. */
static void check_found(const mgl_tune *tune, int seed, convergence *out)
{
    mgl_error err = {0};
    mgl_store *of_seed = store;
    mgl_trial found = {0};
    char name[100];
    show_check(
        mgl_store_get_trial(store, tune->record.id, tune->record.incumbent, false, &found, &err),
        &err);
    found.proposal.parent = 0; /* the parent is a trial that the other campaign does not have */
    show_check(mgl_store_open(options.store, true, &store, &err), &err);
    do
        snprintf(name, sizeof name, "check-%s-%d-%d", options.proposer, seed, ++out->checks);
    while (!make_check(name, seed, &found, &out->last));
    out->reached = out->last.p_value >= 0 && out->last.gain >= log(options.share);
    show_tell("%s: trial %lld over the default: %+.2f %%", name, (long long)found.number,
              100 * expm1(out->last.gain));
    mgl_store_close(store);
    mgl_trial_clear(&found);
    store = of_seed;
}

/* The additional gain until the next check of a seed. */
static double step_after(const convergence *c)
{
    const double missing = c->last.p_value >= 0 ? log(options.share) - c->last.gain : 0;
    return fmax(gain_step, most_of_missing * missing);
}

/* Runs a seed's campaign until it has this gain (a log ratio), or its time is over. */
static void go_on(mgl_tune *tune, double gain, convergence *out)
{
    mgl_error err = {0};
    const show_limits limits = {.seconds = 60 * options.minutes,
                                .trials = options.trials,
                                .gain = expm1(gain),
                                .simulated = options.simulated};
    show_check(show_run(tune, &limits, &err), &err);
    show_count(store, &tune->record, &out->counts);
    out->seconds = tune->record.seconds;
    out->gain = out->counts.gain;
    snprintf(out->end, sizeof out->end, "%s", tune->record.reason ? tune->record.reason : "");
}

static void run_seed(int seed, double wanted, convergence *out)
{
    mgl_error err = {0};
    mgl_tune tune;
    char name[100], path[4096];
    int64_t checked = 0; /* number of the trial at the last check */
    double next = log1p(wanted) - near_gain;
    bool ended = false;
    snprintf(name, sizeof name, "search-%s-%d", options.proposer, seed);
    snprintf(path, sizeof path, "%s.%d", options.store, seed);
    show_check(mgl_store_open(path, true, &store, &err), &err);
    open_campaign(name, options.proposer, true, seed, &tune);
    while (!out->reached && !ended) {
        go_on(&tune, next, out);
        ended = out->gain < next;
        if (tune.record.incumbent != checked)
            check_found(&tune, seed, out);
        checked = tune.record.incumbent;
        next = out->gain + step_after(out);
    }
    mgl_tune_clear(&tune);
    mgl_store_close(store);
}

/* ---- the result ------------------------------------------------------------------------------ */

static void put_convergence(mgl_json_out *out, int seed, const convergence *c)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_int(out, "seed", seed);
    mgl_json_out_bool(out, "reached", c->reached);
    mgl_json_out_string(out, "end", c->end);
    mgl_json_out_int(out, "trials", c->counts.trials);
    mgl_json_out_int(out, "measured", c->counts.measured);
    mgl_json_out_int(out, "kept", c->counts.kept);
    mgl_json_out_int(out, "suspicious", c->counts.suspicious);
    mgl_json_out_int(out, "refused", c->counts.refused);
    mgl_json_out_real(out, "seconds", c->seconds);
    show_put_spent(out, &c->counts, c->seconds);
    mgl_json_out_real(out, "gain_percent", 100 * expm1(c->gain));
    mgl_json_out_int(out, "checks", c->checks);
    if (c->checks > 0)
        mgl_json_out_string(out, "outcome", mgl_outcome_name(c->last.verdict.outcome));
    if (c->checks > 0 && c->last.p_value >= 0) {
        mgl_json_out_real(out, "over_default_percent", 100 * expm1(c->last.gain));
        mgl_json_out_real(out, "over_default_percent_lo", 100 * expm1(c->last.gain_lo));
        mgl_json_out_real(out, "over_default_percent_hi", 100 * expm1(c->last.gain_hi));
    }
    show_put_percent(out, "control_percent", c->counts.control_gain, c->counts.controls);
    mgl_json_out_close_object(out);
}

static void begin_result(mgl_json_out *out, const double us[2], double gain)
{
    mgl_json_out_begin(out, "megalith.show-search/1");
    mgl_json_out_string(out, "shape", options.shape);
    mgl_json_out_string(out, "lab", options.runner);
    mgl_json_out_string(out, "workloads", options.workloads);
    mgl_json_out_string(out, "proposer", options.proposer);
    mgl_json_out_bool(out, "queues_chosen", options.queues_chosen);
    mgl_json_out_real(out, "minutes", options.minutes);
    mgl_json_out_real(out, "share", options.share);
    mgl_json_out_real(out, "default_us", us[0]);
    mgl_json_out_real(out, "start_us", us[1]);
    mgl_json_out_real(out, "wanted_gain_percent", 100 * gain);
    mgl_json_out_array(out, "seeds");
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool read_option(const char *name, const char *value)
{
    const struct {
        const char *name;
        int *to, most;
    } numbers[] = {{"--seeds", &options.seeds, MOST_SEEDS},
                   {"--first-seed", &options.first_seed, 1 << 30},
                   {"--context", &options.context, MGL_MAX_CAPACITY},
                   {"--capacity", &options.capacity, MGL_MAX_CAPACITY},
                   {"--trials", &options.trials, 1 << 30}};
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"--proposer", &options.proposer},
                 {"--device", &options.device},
                 {"--runner", &options.runner},
                 {"--commit", &show_commit},
                 {"--store", &options.store}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name)) {
            *numbers[i].to = atoi(value);
            return *numbers[i].to >= 0 && *numbers[i].to <= numbers[i].most;
        }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name))
            return (*texts[i].to = value) != NULL;
    if (!strcmp(name, "--minutes"))
        return (options.minutes = atof(value)) > 0;
    return !strcmp(name, "--share") && (options.share = atof(value)) > 0;
}

static void read_arguments(int argc, char **argv)
{
    bool good = argc > 1 && argv[1][0] != '-';
    if (good)
        options.shape = argv[1];
    for (int i = 2; i < argc && good; i++) {
        if (!strcmp(argv[i], "--queues-chosen"))
            options.queues_chosen = true;
        else
            good = i + 1 < argc && read_option(argv[i], argv[i + 1]) && ++i;
    }
    options.simulated = !strcmp(options.runner, "simulated");
    snprintf(options.workloads, sizeof options.workloads, "ctx=%d;batch=1", options.context);
    if (good && (options.simulated || !strcmp(options.runner, "device")))
        return;
    fprintf(
        stderr,
        "usage: show_search SHAPE [--proposer LIST] [--seeds N] [--first-seed N] "
        "[--minutes M] [--trials N] [--context N] [--capacity N] [--share S] "
        "[--queues-chosen] [--store F] [--commit C] [--device cuda] [--runner device|simulated]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static convergence one;
    mgl_error err = {0};
    mgl_json_out out = {0};
    mgl_schedule_config poor;
    double us[2];
    int code = 0, reached = 0;
    if (mgl_autotune_is_worker(argc, argv, &code))
        return code;
    read_arguments(argc, argv);
    show_check(mgl_store_open(options.store, true, &store, &err), &err);
    write_poor(&poor);
    compare_starts(&poor, us);
    mgl_store_close(store);
    double gain = us[1] / us[0] * options.share - 1;
    show_tell("default %.1f us, poor start %.1f us, wanted gain %.1f %%", us[0], us[1], 100 * gain);
    begin_result(&out, us, gain);
    for (int i = 0; i < options.seeds; i++) {
        one = (convergence){0};
        run_seed(options.first_seed + i, gain, &one);
        put_convergence(&out, options.first_seed + i, &one);
        reached += one.reached;
        mgl_trial_clear(&one.last);
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_int(&out, "there", reached);
    show_end_json(&out);
    return reached < options.seeds;
}
