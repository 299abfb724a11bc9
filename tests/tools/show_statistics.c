/*
 * Checks a campaign's statistics on a device: A/A trials, planted gains, and disturbed machines.
 *
 *     show_statistics SHAPE [--device cuda] [--aa 200] [--context 1024]
 *     show_statistics --runner simulated
 *
 * All pairs are measured on the device, the default against itself. A gain is planted in a copy of
 * them: the candidate's times are divided by 1.02. The parts:
 *
 *     equal      A/A trials, decided only by their interval at one level, without the least gain:
 *                how many are kept, and whether the p values are uniform
 *     found      campaigns with a planted gain of 2 %, decided by the whole rule, stage by stage
 *     small      the same with 0.3 %: less than the least gain
 *     clocks     a planted gain of 5 %, with the candidate's clocks reported 3 % lower
 *     competitor another process reads the device's memory: while the candidate runs, while the
 *                incumbent runs, and at random. If the device does not report other users (in a
 *                container), a competitor of only the incumbent is not detected and the candidate
 *                would be kept; this is not a failure of the rule
 *
 * The result is JSON on standard output; exit code 1 if a part failed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/candidates/judge.h"
#include "autotune/tune.h"
#include "base/clock.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/statistics.h"
#include "tests/autotune/search/scripted_runner.h"
#include "tests/tools/bench/competitor.h"
#include "vm/pipeline/pipeline.h"

enum { MOST_TRIALS = 1000, MOST_PAIRS = 64, BLOCK = 10, MOST_FAILURES = 10 };
enum { CONFIDENT_PERCENT = 99, FOUND_OF_TEN = 9, DECISIONS_APART = 10 };
#define KS_LEAST 0.01 /* probability of p values as uneven as those */

static struct {
    const char *shape, *model, *device, *runner, *kernels, *config;
    int trials, pairs, found, small, clocks, competitor, context, batch, capacity;
    double level;
    uint64_t seed;
} options = {.device = "cuda",
             .runner = "device",
             .kernels = "show-kernels",
             .trials = 200,
             .pairs = 20,
             .found = 10,
             .small = 20,
             .clocks = 3,
             .competitor = 2,
             .context = 1024,
             .batch = 1,
             .level = 0.05,
             .seed = 1};

static struct {
    mgl_tune tune;
    mgl_candidate start;
    mgl_runner *runner;
    mgl_runner_device device;
    scripted_runner simulated;
    bool plays;    /* the runner is simulated */
    int followed;  /* side that the competitor disturbs */
    long dropped;  /* pairs of the campaigns so far */
    long measured; /* pairs so far */
    const char *failures[MOST_FAILURES];
    int failure_count;
    double began;
} bench = {.followed = COMPETITOR_RESTS};

static void stop(const mgl_error *err)
{
    fprintf(stderr, "show_statistics: %s: %s\n", err->where, err->message);
    competitor_end();
    exit(1);
}

static void check(mgl_status status, const mgl_error *err)
{
    if (status)
        stop(err);
}

static void expect(bool held, const char *what)
{
    if (!held && bench.failure_count < MOST_FAILURES)
        bench.failures[bench.failure_count++] = what;
}

static void tell(const char *part, int done, int of, int kept)
{
    fprintf(stderr, "%6.1f s  %-10s %d of %d, kept %d\n", mgl_clock_s() - bench.began, part, done,
            of, kept);
}

/* ---- the runner ------------------------------------------------------------------------------ */

static mgl_tune_request make_request(char workloads[64])
{
    snprintf(workloads, 64, "ctx=%d;batch=%d", options.context, options.batch);
    return (mgl_tune_request){.model = options.model,
                              .shape = options.shape,
                              .device = bench.plays ? "none" : options.device,
                              .config = options.config,
                              .workloads = workloads,
                              .capacity = options.capacity,
                              .has_seed = true,
                              .seed = options.seed};
}

static void open_runner(void)
{
    mgl_error err = {0};
    char workloads[64];
    mgl_proposal start = {0};
    mgl_tune_request request = make_request(workloads);
    check(mgl_tune_prepare(NULL, &request, false, &bench.tune, &err), &err);
    const mgl_runner_options how = {.subject = &bench.tune.subject,
                                    .device = options.device,
                                    .program = "/proc/self/exe",
                                    .kernels = options.kernels};
    start.config = bench.tune.subject.start;
    check(mgl_gate_pass(&bench.tune.subject, &start, NULL, &bench.start, &err), &err);
    scripted_runner_init(&bench.simulated);
    bench.runner = &bench.simulated.runner;
    if (!bench.plays)
        check(mgl_runner_device_open(&how, &bench.runner, &err), &err);
    check(bench.runner->start(bench.runner, &bench.start, &err), &err);
    check(bench.runner->get_device(bench.runner, &bench.device, &err), &err);
}

/* The effect of a competitor on a simulated device. */
static void disturb(mgl_pair *pairs, int count)
{
    for (int i = 0; i < count && bench.followed != COMPETITOR_RESTS; i++) {
        pairs[i].dropped = true;
        if (bench.followed == MGL_CANDIDATE)
            pairs[i].candidate_us *= 1.4;
        else
            pairs[i].incumbent_us *= 1.4;
    }
}

/* Measures pairs of the default against itself. */
static void measure(int count, mgl_pair *out)
{
    mgl_error err = {0};
    mgl_trial_verdict verdict = {.outcome = MGL_OUTCOME_OK};
    memset(out, 0, (size_t)count * sizeof *out);
    check(bench.runner->pair(bench.runner, 0, count, mgl_draw(&options.seed), true, out, &verdict,
                             &err),
          &err);
    if (verdict.outcome != MGL_OUTCOME_OK)
        stop((
            mgl_fail(&err, MGL_DEVICE, mgl_outcome_name(verdict.outcome), "%s", verdict.diagnostic),
            &err));
    if (bench.plays)
        disturb(out, count);
    bench.measured += count;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Probability of at most `k` of `n` events with probability `p` each. */
static double binomial_at_most(int k, int n, double p)
{
    double sum = 0;
    for (int i = 0; i <= k; i++)
        sum += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) +
                   (n - i) * log1p(-p));
    return sum;
}

static int binomial_bound(int n, double p)
{
    int k = 0;
    while (k < n && binomial_at_most(k, n, p) < CONFIDENT_PERCENT / 100.0)
        k++;
    return k;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The probability that uniform values (count) in 0 to 1 are as uneven as these, which are sorted.
 * Kolmogorov-Smirnov test with the correction for a finite count by Stephens, "EDF statistics for
 * goodness of fit and some comparisons", 1974. *distance: the statistic. */
static double test_uniform(double *values, int count, double *distance)
{
    double root = sqrt(count), chance = 0;
    *distance = 0;
    qsort(values, (size_t)count, sizeof *values, by_size);
    for (int i = 0; i < count; i++)
        *distance =
            fmax(*distance, fmax((i + 1.0) / count - values[i], values[i] - (double)i / count));
    double scaled = (root + 0.12 + 0.11 / root) * *distance;
    for (int k = 1; k <= 100; k++)
        chance += (k % 2 ? 2 : -2) * exp(-2.0 * k * k * scaled * scaled);
    return scaled < 0.2 ? 1 : fmax(0, fmin(1, chance));
}

static void put_quantiles(mgl_json_out *out, const char *key, const double *values, int count)
{
    mgl_json_out_object(out, key);
    if (count > 0) {
        mgl_json_out_real(out, "median", mgl_median(values, (size_t)count));
        mgl_json_out_real(out, "p10", mgl_quantile(values, (size_t)count, 0.1));
        mgl_json_out_real(out, "p90", mgl_quantile(values, (size_t)count, 0.9));
    }
    mgl_json_out_close_object(out);
}

/* ---- equal programs -------------------------------------------------------------------------- */

static struct {
    double p[MOST_TRIALS], gain[MOST_TRIALS], width[MOST_TRIALS], us[MOST_TRIALS];
    int done, kept, dropped;
} equal;

/* Runs one A/A trial. */
static void judge_equal(mgl_pair *pairs)
{
    mgl_error err = {0};
    mgl_interval found;
    int t = equal.done++;
    for (int i = 0; i < options.pairs; i++)
        pairs[i].stage = MGL_PAIRS_CONTROL;
    mgl_judge_drop(pairs, options.pairs);
    check(
        mgl_judge_workload(pairs, options.pairs, 0, MGL_PAIRS_CONTROL, options.level, &found, &err),
        &err);
    equal.p[t] = found.p_value;
    equal.gain[t] = 100 * expm1(found.gain);
    equal.width[t] = 100 * (found.hi - found.lo);
    equal.us[t] = pairs[0].incumbent_us;
    equal.kept += found.lo > 0;
    equal.dropped += found.dropped;
}

static void show_equal(mgl_json_out *out)
{
    static mgl_pair pairs[BLOCK * MOST_PAIRS];
    double distance = 0;
    int bound = binomial_bound(options.trials, options.level);
    while (equal.done < options.trials) {
        int block = options.trials - equal.done < BLOCK ? options.trials - equal.done : BLOCK;
        measure(block * options.pairs, pairs);
        for (int t = 0; t < block; t++)
            judge_equal(pairs + t * options.pairs);
        tell("equal", equal.done, options.trials, equal.kept);
    }
    mgl_json_out_object(out, "equal");
    mgl_json_out_int(out, "trials", equal.done);
    mgl_json_out_int(out, "pairs", options.pairs);
    mgl_json_out_int(out, "dropped", equal.dropped);
    mgl_json_out_real(out, "level", options.level);
    mgl_json_out_int(out, "kept", equal.kept);
    mgl_json_out_int(out, "bound_99", bound);
    put_quantiles(out, "gain_percent", equal.gain, equal.done);
    put_quantiles(out, "interval_percent", equal.width, equal.done);
    put_quantiles(out, "us", equal.us, equal.done);
    double chance = test_uniform(equal.p, equal.done, &distance);
    mgl_json_out_real(out, "ks_distance", distance);
    mgl_json_out_real(out, "ks_p_value", chance);
    mgl_json_out_close_object(out);
    expect(equal.kept <= bound, "equal: more are kept than the level allows");
    expect(chance >= KS_LEAST, "equal: the p values are not uniform");
}

/* ---- planted gains, decided by the whole rule ------------------------------------------------ */

/* Changes of the copied pairs before the decision. */
typedef struct plan {
    const char *name;
    double factor;       /* factor of the candidate's speed */
    double clock_factor; /* factor of its clocks; 1: unchanged */
    int campaigns;
} plan;

static void plant(const plan *p, mgl_pair_stage stage, mgl_pair *pairs, int count)
{
    for (int i = 0; i < count; i++) {
        unsigned *mhz = pairs[i].sm_mhz;
        pairs[i].workload = 0;
        pairs[i].stage = (int)stage;
        pairs[i].candidate_us /= p->factor;
        if (p->clock_factor < 1 && !mhz[0])
            mhz[0] = mhz[1] = 1980; /* simulate a device that does not report it */
        mhz[1] = (unsigned)(mhz[1] * p->clock_factor);
    }
    mgl_judge_drop(pairs, count);
}

/* Runs the stages like campaign_measure.c. *decided: it reached the last one. */
static mgl_outcome judge_planted(const plan *p, int64_t decision, mgl_trial *trial, bool *decided)
{
    static mgl_pair pairs[3 * MOST_PAIRS];
    mgl_error err = {0};
    *trial = (mgl_trial){.verdict.outcome = MGL_OUTCOME_NO_GAIN, .p_value = -1, .pairs = pairs};
    *decided = false;
    for (int s = MGL_PAIRS_SCREEN; s <= MGL_PAIRS_DECISION; s++) {
        int count = mgl_judge_pairs((mgl_pair_stage)s);
        measure(count, pairs + trial->pair_count);
        plant(p, (mgl_pair_stage)s, pairs + trial->pair_count, count);
        trial->pair_count += count;
        if (s != MGL_PAIRS_DECISION && !mgl_judge_survives(pairs, trial->pair_count, 1, s, false))
            return trial->verdict.outcome;
    }
    *decided = true;
    check(mgl_judge_decide(trial, 1, decision, false, &err), &err);
    return trial->verdict.outcome;
}

/* Each campaign starts at another number of decisions, because later decisions have smaller error
 * levels. */
static int show_planted(const plan *p, mgl_json_out *out)
{
    double gains[MOST_TRIALS];
    int kept = 0, decided = 0;
    long dropped = 0, pairs = 0;
    for (int i = 0; i < p->campaigns; i++) {
        mgl_trial trial;
        bool last;
        kept += judge_planted(p, 1 + (int64_t)DECISIONS_APART * i, &trial, &last) == MGL_OUTCOME_OK;
        if (last)
            gains[decided++] = 100 * expm1(trial.gain);
        for (int k = 0; k < trial.pair_count; k++)
            dropped += trial.pairs[k].dropped;
        pairs += trial.pair_count;
        tell(p->name, i + 1, p->campaigns, kept);
    }
    mgl_json_out_object(out, p->name);
    mgl_json_out_int(out, "campaigns", p->campaigns);
    mgl_json_out_real(out, "planted_percent", 100 * (p->factor - 1));
    mgl_json_out_int(out, "last_decision", 1 + (int64_t)DECISIONS_APART * (p->campaigns - 1));
    mgl_json_out_int(out, "decided", decided);
    mgl_json_out_int(out, "kept", kept);
    mgl_json_out_int(out, "pairs", pairs);
    mgl_json_out_int(out, "dropped", dropped);
    put_quantiles(out, "gain_percent", gains, decided);
    mgl_json_out_close_object(out);
    bench.dropped += dropped;
    return kept;
}

static void show_gains(mgl_json_out *out)
{
    const plan found = {"found", 1.02, 1, options.found},
               small = {"small", 1.003, 1, options.small},
               clocks = {"clocks", 1.05, 0.97, options.clocks};
    expect(10 * show_planted(&found, out) >= FOUND_OF_TEN * options.found,
           "found: a gain of 2 % was missed too often");
    expect(show_planted(&small, out) == 0, "small: a gain of 0.3 % was kept");
    expect(show_planted(&clocks, out) == 0, "clocks: kept although the clocks differed");
}

/* ---- a competitor ---------------------------------------------------------------------------- */

static int compete(int whom, const char *name, mgl_json_out *out)
{
    const plan nothing = {name, 1, 1, options.competitor};
    bench.followed = whom;
    competitor_follow(whom);
    int kept = show_planted(&nothing, out);
    bench.followed = COMPETITOR_RESTS;
    competitor_follow(COMPETITOR_RESTS);
    return kept;
}

static void show_competitor(mgl_json_out *out)
{
    mgl_error err = {0};
    if (!bench.plays)
        check(competitor_arm(&bench.tune.subject.config, options.device, &err), &err);
    bench.dropped = 0;
    expect(compete(MGL_CANDIDATE, "competitor_on_candidate", out) == 0,
           "competitor: kept while it met the candidate");
    expect(compete(COMPETITOR_BY_COIN, "competitor_by_coin", out) == 0,
           "competitor: kept while it met launches by a coin");
    int kept = compete(MGL_INCUMBENT, "competitor_on_incumbent", out);
    expect(kept == 0 || bench.dropped == 0, "competitor: seen, and kept");
    mgl_json_out_bool(out, "competitor_seen", bench.dropped > 0);
    mgl_json_out_int(out, "competitor_reads", competitor_reads());
}

/* ---- the result ------------------------------------------------------------------------------ */

static void begin_result(mgl_json_out *out)
{
    mgl_json_out_begin(out, "megalith.show-statistics/1");
    mgl_json_out_string(out, "shape", bench.tune.record.model);
    mgl_json_out_string(out, "device", bench.device.name);
    mgl_json_out_string(out, "lab", options.runner);
    mgl_json_out_int(out, "context", options.context);
    mgl_json_out_int(out, "batch", options.batch);
    mgl_json_out_int(out, "seed", (int64_t)options.seed);
}

static void end_result(mgl_json_out *out)
{
    mgl_json_out_int(out, "pairs", bench.measured);
    mgl_json_out_real(out, "seconds", mgl_clock_s() - bench.began);
    mgl_json_out_array(out, "failures");
    for (int i = 0; i < bench.failure_count; i++)
        mgl_json_out_string(out, NULL, bench.failures[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_bool(out, "passed", bench.failure_count == 0);
    mgl_json_out_close(out);
    printf("%s\n", out->text.bytes);
    mgl_text_clear(&out->text);
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool read_option(const char *name, const char *value)
{
    const struct {
        const char *name;
        int *to, least, most;
    } numbers[] = {{"--aa", &options.trials, 1, MOST_TRIALS},
                   {"--pairs", &options.pairs, 5, MOST_PAIRS},
                   {"--found", &options.found, 1, MOST_TRIALS},
                   {"--small", &options.small, 1, MOST_TRIALS},
                   {"--clocks", &options.clocks, 1, MOST_TRIALS},
                   {"--competitor", &options.competitor, 0, MOST_TRIALS},
                   {"--context", &options.context, 0, MGL_MAX_CAPACITY},
                   {"--batch", &options.batch, 1, MGL_MAX_ROWS},
                   {"--capacity", &options.capacity, 1, MGL_MAX_CAPACITY}};
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"--device", &options.device},
                 {"--runner", &options.runner},
                 {"--model", &options.model},
                 {"--config", &options.config},
                 {"--kernels", &options.kernels}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name)) {
            *numbers[i].to = atoi(value);
            return *numbers[i].to >= numbers[i].least && *numbers[i].to <= numbers[i].most;
        }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name))
            return (*texts[i].to = value) != NULL;
    if (!strcmp(name, "--level"))
        return (options.level = atof(value)) > 0 && options.level < 0.5;
    return !strcmp(name, "--seed") && (options.seed = strtoull(value, NULL, 10)) > 0;
}

static void read_arguments(int argc, char **argv)
{
    int i = 1;
    bool good = true;
    if (argc > 1 && argv[1][0] != '-')
        options.shape = argv[i++];
    for (; i < argc && good; i += 2)
        good = i + 1 < argc && read_option(argv[i], argv[i + 1]);
    bench.plays = !strcmp(options.runner, "simulated");
    good = good && (bench.plays || !strcmp(options.runner, "device"));
    if (bench.plays && !options.shape && !options.model)
        options.model = MGL_SOURCE_DIR "/tests/models/tales-5m", options.context = 100;
    if (good && (options.shape == NULL) != (options.model == NULL))
        return;
    fprintf(stderr, "usage: show_statistics SHAPE|--model F [--device cuda] [--runner "
                    "device|simulated] [--aa N] [--pairs N] [--level P] [--found N] [--small N] "
                    "[--clocks N] [--competitor N] [--context N] [--batch N] [--capacity N] "
                    "[--config F] [--kernels FOLDER] [--seed N]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    mgl_json_out out = {0};
    int code = 0;
    if (mgl_autotune_is_worker(argc, argv, &code))
        return code;
    read_arguments(argc, argv);
    bench.began = mgl_clock_s();
    if (!bench.plays && options.competitor > 0)
        check(competitor_start(&err), &err);
    open_runner();
    begin_result(&out);
    show_equal(&out);
    show_gains(&out);
    if (options.competitor > 0)
        show_competitor(&out);
    end_result(&out);
    competitor_end();
    bench.runner->close(bench.runner);
    mgl_candidate_clear(&bench.start);
    mgl_tune_clear(&bench.tune);
    return bench.failure_count > 0;
}
