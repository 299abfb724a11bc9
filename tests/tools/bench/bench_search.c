/*
 * Counts the trials that a proposer needs on the cost model: from a bad starting point, with all
 * knobs at values outside the space (cold_start.h), to a share of the shipped default's predicted
 * speed.
 *
 *     bench_search evolve --shape llama-1b --seeds 10 --trials 400
 *
 * Nothing is executed. A trial is lowered, validated (without --quick) and priced by the cost
 * model, and the proposer receives the price. The proposer itself has no costs unless --costs is
 * given. --hide removes the values of the shipped default from the space, and the 0 that leaves a
 * knob to lowering. --prior SHAPE first runs a campaign of that shape with as many trials and
 * passes it to the surrogate model. The result is JSON: for each seed the number of trials needed
 * (0: more than the limit) and the best time after each trial, and the median.
 *
 * --near simulates a campaign on a device instead. It begins with the shipped default, the proposer
 * has the costs of the table, and times are those of another device with slower and later memory. A
 * trial is screened by its prediction, measured with the noise of few pairs, and kept if it gains
 * at least 1 %. The result is the gain of each seed in --trials trials: the true gain of what was
 * kept, and of the best trial. --poor starts at the bad starting point, counts the trials to a
 * share of the default's speed, and ends there. --missed P makes the device slower than the cost
 * model predicts, by about P percent for each knob that differs from the default (a different
 * percentage for each value, the same in all seeds).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/candidates/judge.h"
#include "autotune/search/campaign.h"
#include "base/clock.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/synthetic.h"
#include "tests/tools/bench/cold_start.h"

enum { MOST_TRIALS = 5000, MOST_SEEDS = 100 };

static struct {
    const char *proposer, *shape, *prior, *target;
    int seeds, first_seed, trials, capacity, layers;
    bool quick, costs, hide, keep_queues, moves, near, poor;
    double share, missed; /* missed: in percent */
    mgl_workloads workloads;
} options = {.proposer = "evolve",
             .shape = "llama-1b",
             .target = "sm_90a:132",
             .seeds = 10,
             .first_seed = 1,
             .trials = 400,
             .capacity = 4096,
             .share = 0.98,
             .workloads = {.list = {{1, 1024}}, .count = 1}};

static void stop(const mgl_error *err)
{
    fprintf(stderr, "bench_search: %s: %s\n", err->where, err->message);
    exit(1);
}

static void check(mgl_status status, const mgl_error *err)
{
    if (status)
        stop(err);
}

/* ---- space ----------------------------------------------------------------------------------- */

/* Removes the shipped default's values from the space, if other values remain. */
static void hide_default(mgl_search_space *space)
{
    mgl_schedule_config preset;
    mgl_schedule_config_default(&preset);
    for (int k = 0; k < space->count; k++) {
        mgl_knob *knob = &space->knobs[k];
        int number = mgl_knob_find(knob->name), kept = 0;
        int value = mgl_knob_get(&preset, number);
        if (strstr(knob->name, ".first") || !strcmp(knob->name, "exchange"))
            continue;
        for (int v = 0; v < knob->count; v++)
            if (knob->values[v] != value && knob->values[v] != 0)
                knob->values[kept++] = knob->values[v];
        knob->count = kept;
    }
}

static mgl_subject open_subject(const char *shape)
{
    mgl_error err;
    const char *device;
    mgl_subject subject = {.dtype = MGL_BF16, .capacity = options.capacity, .has_costs = true};
    subject.workloads = options.workloads;
    check(mgl_synthetic_find_shape(shape, &subject.config, &err), &err);
    if (options.layers)
        subject.config.geometry.layers = options.layers;
    check(mgl_target_parse(options.target, &subject.target, &err), &err);
    check(mgl_costs_find_for(&subject.target, NULL, &device, &subject.costs, &err), &err);
    check(mgl_subject_open(&subject, &err), &err);
    if (options.near && !options.poor)
        mgl_schedule_config_default(&subject.start);
    else
        cold_start_make(!options.keep_queues, &subject.start);
    mgl_search_space_default(&subject.target, false, &subject.space);
    if (options.hide)
        hide_default(&subject.space);
    if (!options.moves)
        subject.space.moves = 0;
    return subject;
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* Fills in the result of the trial's proposal. */
static void run_trial(const mgl_subject *subject, mgl_trial *trial)
{
    mgl_error err;
    mgl_candidate candidate;
    if (options.quick) {
        check(mgl_gate_lower(subject, &trial->proposal, &candidate, &err), &err);
        if (candidate.verdict.outcome == MGL_OUTCOME_UNMEASURED)
            mgl_gate_predict(subject, &candidate);
    } else {
        check(mgl_gate_pass(subject, &trial->proposal, NULL, &candidate, &err), &err);
    }
    trial->verdict.outcome = candidate.verdict.outcome;
    trial->predicted_us = candidate.predicted;
    trial->p_value = -1;
    trial->workload_count = subject->workloads.count;
    memcpy(trial->verdict.diagnostic, candidate.verdict.diagnostic,
           sizeof trial->verdict.diagnostic);
    mgl_candidate_clear(&candidate);
}

/* The predicted time of a config, in us. */
static double predict(const mgl_subject *subject, const mgl_schedule_config *config)
{
    mgl_trial trial = {.proposal = {.config = *config}};
    run_trial(subject, &trial);
    return trial.predicted_us;
}

static mgl_proposer *open_proposer(const mgl_subject *subject)
{
    static const struct {
        const char *name;
        mgl_status (*open)(const mgl_proposer_options *, mgl_proposer **, mgl_error *);
    } all[] = {{"grid", mgl_grid_open},
               {"random", mgl_random_open},
               {"evolve", mgl_evolve_open},
               {"surrogate", mgl_surrogate_open}};
    mgl_error err;
    mgl_proposer_options given = {.subject = subject};
    mgl_proposer *proposer = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, options.proposer)) {
            check(all[i].open(&given, &proposer, &err), &err);
            return proposer;
        }
    mgl_fail(&err, MGL_USAGE, options.proposer, "is none of grid, random, evolve, surrogate");
    stop(&err);
    return NULL;
}

/* The progress of a campaign. */
struct convergence {
    mgl_trial *trials; /* (count) */
    double *best;      /* (count) after each trial, us; 0: none yet */
    int count, needed; /* trials needed; 0: not reached */
    double propose_s, seconds;
};

static struct convergence run_convergence(const mgl_subject *subject, const mgl_trial *prior,
                                          int prior_count, uint64_t seed, double goal)
{
    mgl_error err;
    struct convergence c = {mgl_alloc_zero((size_t)options.trials, sizeof(mgl_trial)),
                            mgl_alloc_zero((size_t)options.trials, sizeof(double)),
                            0,
                            0,
                            0,
                            0};
    mgl_subject blind = *subject;
    blind.has_costs = options.costs;
    mgl_proposer *proposer = open_proposer(&blind);
    double start = mgl_clock_s(), best = 0;
    if (prior_count)
        check(mgl_surrogate_add_prior(proposer, prior, prior_count, &err), &err);
    while (c.count < options.trials && !c.needed) {
        mgl_trial *trial = &c.trials[c.count];
        mgl_proposer_answer answer;
        uint64_t state = seed + (uint64_t)c.count * 0x9E3779B97F4A7C15u;
        double before = mgl_clock_s();
        check(proposer->propose(proposer, mgl_draw(&state), &trial->proposal, &answer, &err), &err);
        c.propose_s += mgl_clock_s() - before;
        if (answer != MGL_PROPOSED)
            break;
        trial->number = ++c.count;
        run_trial(subject, trial);
        check(proposer->learn(proposer, trial, &err), &err);
        double value = trial->verdict.outcome == MGL_OUTCOME_UNMEASURED ? trial->predicted_us : 0;
        best = value > 0 && (best <= 0 || value < best) ? value : best;
        c.best[c.count - 1] = best;
        if (best > 0 && best <= goal)
            c.needed = c.count;
        if (getenv("MGL_BENCH_SEARCH_VERBOSE"))
            fprintf(stderr, "%d %s %.1f best %.1f: %s\n", c.count,
                    mgl_outcome_name(trial->verdict.outcome), value, best,
                    trial->proposal.hypothesis);
    }
    c.seconds = mgl_clock_s() - start;
    proposer->close(proposer);
    return c;
}

static void clear_convergence(struct convergence *c)
{
    for (int i = 0; i < c->count; i++)
        mgl_trial_clear(&c->trials[i]);
    mgl_free(c->trials);
    mgl_free(c->best);
}

/* ---- a campaign near the default ------------------------------------------------------------- */

#define SCREEN_NOISE   0.005  /* standard deviation of a gain from 8 pairs */
#define DECISION_NOISE 0.0018 /* of a gain from 64 pairs */

/* Results of the trials of a campaign. */
struct near {
    int screened, refused, slower, level, kept, moved; /* trials; moved: those with moves */
    double gain, tried;                /* true gains, as log ratios: of the last kept trial, and of
                                          the best */
    double propose_s, most_s, seconds; /* most_s: longest time for one proposal */
    int count, needed;                 /* trials; needed: until the goal, 0: not reached */
};

/* Another device of the same architecture, whose times differ from the cost model's. */
static mgl_subject other_device(const mgl_subject *subject)
{
    mgl_subject other = *subject;
    other.costs.latency *= 1.3;
    other.costs.bandwidth *= 0.65;
    return other;
}

/* An approximately normal number: the sum of twelve uniform ones. */
static double draw_normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(mgl_draw(state) >> 11) * 0x1p-53;
    return sum;
}

/* The difference of the logarithms of a config's time on that device and of the prediction. */
static double miss(const mgl_schedule_config *config)
{
    mgl_schedule_config preset;
    double sum = 0;
    mgl_schedule_config_default(&preset);
    for (int k = 0; k < MGL_KNOB_ROWS && options.missed > 0; k++) {
        int value = mgl_knob_get(config, k);
        uint64_t state = ((uint64_t)k << 32) + (uint32_t)value;
        if (value != 0 && value != mgl_knob_get(&preset, k))
            sum += fabs(draw_normal(&state)) * options.missed / 100;
    }
    return sum;
}

/* A measured gain: the true gain plus noise. */
static void show_gain(mgl_trial *trial, double truth, double noise, uint64_t *state)
{
    trial->gain = truth + noise * draw_normal(state);
    trial->gain_lo = trial->gain - 1.96 * noise;
    trial->gain_hi = trial->gain + 1.96 * noise;
}

/* Measures a trial against the incumbent, as a campaign does in its stages. */
static void measure(mgl_trial *trial, double incumbent_us, double us, uint64_t *state)
{
    double truth = log(incumbent_us / us);
    trial->workloads[0].incumbent_us = incumbent_us;
    show_gain(trial, truth, SCREEN_NOISE, state);
    trial->verdict.outcome = trial->gain_hi < 0 ? MGL_OUTCOME_REGRESSION : MGL_OUTCOME_NO_GAIN;
    if (trial->gain_hi < MGL_KEEP_GAIN)
        return;
    show_gain(trial, truth, DECISION_NOISE, state);
    bool kept = trial->gain >= MGL_KEEP_GAIN && trial->gain_lo > 0;
    trial->verdict.outcome = kept ? MGL_OUTCOME_OK : MGL_OUTCOME_NO_GAIN;
}

/* The prediction for the trial's parent; trials (count) are the earlier ones. */
static double parent_predicted(const mgl_trial *trials, int count, int64_t parent, double start)
{
    for (int i = 0; i < count; i++)
        if (trials[i].number == parent)
            return trials[i].predicted_us;
    return start;
}

static void count_trial(struct near *n, const mgl_trial *trial)
{
    n->count++;
    n->moved += trial->proposal.moves.count > 0;
    n->screened += trial->verdict.outcome == MGL_OUTCOME_UNMEASURED;
    n->slower += trial->verdict.outcome == MGL_OUTCOME_REGRESSION;
    n->level += trial->verdict.outcome == MGL_OUTCOME_NO_GAIN;
    n->kept += trial->verdict.outcome == MGL_OUTCOME_OK;
    n->refused = n->count - n->screened - n->slower - n->level - n->kept;
}

/* Measures and decides a trial; *incumbent_us: the incumbent's true time. */
static void judge_near(const mgl_subject *subject, mgl_trial *trials, mgl_trial *trial,
                       double start, double *incumbent_us, struct near *n, uint64_t *state)
{
    mgl_subject other = other_device(subject);
    double truth = 0,
           before = parent_predicted(trials, (int)(trial - trials), trial->proposal.parent, start);
    run_trial(subject, trial);
    if (trial->verdict.outcome == MGL_OUTCOME_UNMEASURED &&
        !(before > 0 && trial->predicted_us > before * (1 + MGL_SCREEN_MARGIN))) {
        mgl_trial copy = {.proposal = trial->proposal};
        bool quick = options.quick;
        options.quick = true;
        run_trial(&other, &copy);
        options.quick = quick;
        truth = copy.predicted_us * exp(miss(&trial->proposal.config));
        measure(trial, *incumbent_us, truth, state);
        n->tried = fmax(n->tried, n->gain + log(*incumbent_us / truth));
    }
    if (trial->verdict.outcome == MGL_OUTCOME_OK) {
        n->gain += log(*incumbent_us / truth);
        *incumbent_us = truth;
    }
    count_trial(n, trial);
}

static struct near run_near(const mgl_subject *subject, uint64_t seed)
{
    mgl_error err;
    mgl_subject other = other_device(subject);
    mgl_trial *trials = mgl_alloc_zero((size_t)options.trials, sizeof *trials);
    struct near n = {0};
    mgl_proposer *proposer = open_proposer(subject);
    double start = predict(subject, &subject->start), began = mgl_clock_s();
    double incumbent_us = predict(&other, &subject->start) * exp(miss(&subject->start));
    mgl_schedule_config preset;
    mgl_schedule_config_default(&preset);
    double goal = options.poor ? predict(&other, &preset) / options.share : 0;
    uint64_t noise = seed * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < options.trials && !n.needed; i++) {
        mgl_trial *trial = &trials[i];
        mgl_proposer_answer answer;
        uint64_t state = seed + (uint64_t)i * 0x9E3779B97F4A7C15u;
        double before = mgl_clock_s();
        check(proposer->propose(proposer, mgl_draw(&state), &trial->proposal, &answer, &err), &err);
        double took = mgl_clock_s() - before;
        if (answer != MGL_PROPOSED)
            break;
        n.propose_s += took;
        n.most_s = fmax(n.most_s, took);
        trial->number = i + 1;
        judge_near(subject, trials, trial, start, &incumbent_us, &n, &noise);
        check(proposer->learn(proposer, trial, &err), &err);
        if (incumbent_us <= goal)
            n.needed = i + 1;
        if (getenv("MGL_BENCH_SEARCH_VERBOSE"))
            fprintf(stderr, "%d %s predicted %+.1f %% gain %+.2f %% on %lld: %s\n", i + 1,
                    mgl_outcome_name(trial->verdict.outcome),
                    100 * (trial->predicted_us / start - 1), 100 * trial->gain,
                    (long long)trial->proposal.parent, trial->proposal.hypothesis);
    }
    n.seconds = mgl_clock_s() - began;
    proposer->close(proposer);
    for (int i = 0; i < options.trials; i++)
        mgl_trial_clear(&trials[i]);
    mgl_free(trials);
    return n;
}

static int by_gain(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_gain);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void print_near(mgl_json_out *out, uint64_t seed, const struct near *n)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_int(out, "seed", (int64_t)seed);
    mgl_json_out_int(out, "trials", n->count);
    if (options.poor)
        mgl_json_out_int(out, "trials_needed", n->needed);
    mgl_json_out_int(out, "screened", n->screened);
    mgl_json_out_int(out, "refused", n->refused);
    mgl_json_out_int(out, "slower", n->slower);
    mgl_json_out_int(out, "no_gain", n->level);
    mgl_json_out_int(out, "kept", n->kept);
    mgl_json_out_int(out, "with_moves", n->moved);
    mgl_json_out_real(out, "gain", expm1(n->gain));
    mgl_json_out_real(out, "best_tried_gain", expm1(n->tried));
    mgl_json_out_real(out, "proposing_s", n->propose_s);
    mgl_json_out_real(out, "slowest_proposal_s", n->most_s);
    mgl_json_out_real(out, "seconds", n->seconds);
    mgl_json_out_close_object(out);
}

static void bench_near(const mgl_subject *subject)
{
    mgl_json_out out = {0};
    double gains[MOST_SEEDS], tried[MOST_SEEDS];
    mgl_json_out_begin(&out, "megalith.bench-search-near/1");
    mgl_json_out_string(&out, "proposer", options.proposer);
    mgl_json_out_string(&out, "shape", options.shape);
    mgl_json_out_string(&out, "target", options.target);
    mgl_json_out_bool(&out, "validated", !options.quick);
    mgl_json_out_bool(&out, "moves", options.moves);
    mgl_json_out_array(&out, "courses");
    for (int i = 0; i < options.seeds; i++) {
        uint64_t seed = (uint64_t)(options.first_seed + i);
        struct near n = run_near(subject, seed);
        print_near(&out, seed, &n);
        gains[i] = expm1(n.gain);
        tried[i] = expm1(n.tried);
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_real(&out, "gain_median", median_of(gains, options.seeds));
    mgl_json_out_real(&out, "best_tried_gain_median", median_of(tried, options.seeds));
    mgl_json_out_close(&out);
    printf("%s\n", out.text.bytes);
    mgl_text_clear(&out.text);
}

/* ---- the result ------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void print_convergence(mgl_json_out *out, uint64_t seed, const struct convergence *c)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_int(out, "seed", (int64_t)seed);
    mgl_json_out_int(out, "trials_needed", c->needed);
    mgl_json_out_int(out, "trials", c->count);
    mgl_json_out_real(out, "proposing_s", c->propose_s);
    mgl_json_out_real(out, "seconds", c->seconds);
    mgl_json_out_array(out, "best_predicted_us");
    for (int i = 0; i < c->count; i++)
        mgl_json_out_real(out, NULL, c->best[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

static void print_head(mgl_json_out *out, double start, double preset, double goal)
{
    mgl_json_out_begin(out, "megalith.bench-search/1");
    mgl_json_out_string(out, "proposer", options.proposer);
    mgl_json_out_string(out, "shape", options.shape);
    mgl_json_out_string(out, "target", options.target);
    mgl_json_out_string(out, "prior", options.prior);
    mgl_json_out_bool(out, "costs", options.costs);
    mgl_json_out_bool(out, "default_hidden", options.hide);
    mgl_json_out_bool(out, "validated", !options.quick);
    mgl_json_out_real(out, "start_predicted_us", start);
    mgl_json_out_real(out, "default_predicted_us", preset);
    mgl_json_out_real(out, "goal_predicted_us", goal);
}

/* The median of the sorted numbers of trials; 0: the median seed did not reach the goal. */
static double find_median(int *needed)
{
    qsort(needed, (size_t)options.seeds, sizeof *needed, by_size);
    int low = needed[(options.seeds - 1) / 2], high = needed[options.seeds / 2];
    return high > MOST_TRIALS ? 0 : 0.5 * (low + high);
}

static void print_result(const struct convergence *convergences, double start, double preset,
                         double goal)
{
    mgl_json_out out = {0};
    int needed[MOST_SEEDS], reached = 0;
    print_head(&out, start, preset, goal);
    mgl_json_out_array(&out, "courses");
    for (int i = 0; i < options.seeds; i++) {
        print_convergence(&out, (uint64_t)(options.first_seed + i), &convergences[i]);
        reached += convergences[i].needed > 0;
        needed[i] = convergences[i].needed ? convergences[i].needed : MOST_TRIALS + 1;
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_int(&out, "reached", reached);
    mgl_json_out_real(&out, "trials_needed_median", find_median(needed));
    mgl_json_out_close(&out);
    printf("%s\n", out.text.bytes);
    mgl_text_clear(&out.text);
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool read_flag(const char *name)
{
    const struct {
        const char *name;
        bool *to;
    } flags[] = {{"--quick", &options.quick}, {"--costs", &options.costs},
                 {"--hide", &options.hide},   {"--moves", &options.moves},
                 {"--near", &options.near},   {"--queues-chosen", &options.keep_queues},
                 {"--poor", &options.poor}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!strcmp(name, flags[i].name))
            return *flags[i].to = true;
    return false;
}

static bool read_option(const char *name, const char *value)
{
    const struct {
        const char *name;
        int *to, most;
    } numbers[] = {{"--seeds", &options.seeds, MOST_SEEDS},
                   {"--first-seed", &options.first_seed, 1 << 30},
                   {"--trials", &options.trials, MOST_TRIALS},
                   {"--capacity", &options.capacity, MGL_MAX_CAPACITY},
                   {"--layers", &options.layers, 1000},
                   {"--context", &options.workloads.list[0].context, MGL_MAX_CAPACITY},
                   {"--batch", &options.workloads.list[0].batch, MGL_MAX_ROWS}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name)) {
            *numbers[i].to = atoi(value);
            return *numbers[i].to >= 0 && *numbers[i].to <= numbers[i].most;
        }
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"--shape", &options.shape}, {"--prior", &options.prior}, {"--target", &options.target}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name))
            return (*texts[i].to = value) != NULL;
    if (!strcmp(name, "--missed"))
        return (options.missed = atof(value)) > 0;
    if (!strcmp(name, "--share"))
        return (options.share = atof(value)) > 0;
    return false;
}

static void read_arguments(int argc, char **argv)
{
    bool good = argc > 1;
    if (good)
        options.proposer = argv[1];
    for (int i = 2; i < argc && good; i++)
        if (!read_flag(argv[i]))
            good = i + 1 < argc && read_option(argv[i], argv[i + 1]) && ++i;
    if (good && options.seeds > 0 && options.trials > 0)
        return;
    fprintf(stderr, "usage: bench_search grid|random|evolve|surrogate [--shape NAME] [--seeds N] "
                    "[--first-seed N] [--trials N] [--share S] [--context N] [--batch N] "
                    "[--capacity N] [--layers N] [--target T] [--prior SHAPE] [--costs] [--hide] "
                    "[--moves] [--queues-chosen] [--quick] [--near [--poor] [--missed P]]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static struct convergence convergences[MOST_SEEDS];
    struct convergence prior = {0};
    mgl_schedule_config preset;
    read_arguments(argc, argv);
    mgl_subject subject = open_subject(options.shape);
    if (options.near) {
        bench_near(&subject);
        mgl_subject_close(&subject);
        return 0;
    }
    mgl_schedule_config_default(&preset);
    double start = predict(&subject, &subject.start), shipped = predict(&subject, &preset);
    double goal = shipped / options.share;
    for (int i = 0; i < options.seeds; i++) {
        uint64_t seed = (uint64_t)(options.first_seed + i);
        if (options.prior) {
            mgl_subject other = open_subject(options.prior);
            prior = run_convergence(&other, NULL, 0, seed + 1000, 0);
            mgl_subject_close(&other);
        }
        convergences[i] = run_convergence(&subject, prior.trials, prior.count, seed, goal);
        clear_convergence(&prior);
    }
    print_result(convergences, start, shipped, goal);
    for (int i = 0; i < options.seeds; i++)
        clear_convergence(&convergences[i]);
    mgl_subject_close(&subject);
    return 0;
}
