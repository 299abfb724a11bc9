/*
 * Searches from the shipped default over shapes and workloads. Each is a campaign of one store, and
 * they share a limit of time.
 *
 *     show_shapes SECONDS [--store shapes.db] [--only 1b-1k,8b] [--trials N]
 *     show_shapes 0 --store shapes.db             prints the table so far
 *
 * A second call with the same store continues. The remaining time is divided equally among the
 * campaigns, starting with those that have had the least time. The output is JSON on standard
 * output and a table on standard error. If a campaign fails, its row has the error, and the others
 * continue.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/answers/answer.h"
#include "base/clock.h"
#include "tests/tools/show.h"
#include "vm/pipeline/pipeline.h"

const char *show_name = "show_shapes";

/*  name, shape, workloads, capacity (0: the default) */
#define ROWS(X)                                                                                    \
    X("1b-1k", "llama-1b", "ctx=1024;batch=1", 0)                                                  \
    X("1b-8k", "llama-1b", "ctx=8192;batch=1", 9216)                                               \
    X("1b-batch8", "llama-1b", "ctx=1024;batch=8", 2048)                                           \
    X("3b-1k", "llama-3b", "ctx=1024;batch=1", 0)                                                  \
    X("8b-1k", "llama-8b", "ctx=1024;batch=1", 0)                                                  \
    X("smollm2-1k", "smollm2-135m", "ctx=1024;batch=1", 0)                                         \
    X("qwen2.5-1k", "qwen2.5-0.5b", "ctx=1024;batch=1", 0)                                         \
    X("tinyllama-1k", "tinyllama-1.1b", "ctx=1024;batch=1", 2048)

static const struct kind {
    const char *name, *shape, *workloads;
    int capacity;
} kinds[] = {
#define X(name, shape, workloads, capacity) {name, shape, workloads, capacity},
    ROWS(X)
#undef X
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct {
    double seconds;
    const char *store, *only, *device, *proposers, *runner, *space;
    int64_t trials;
    uint64_t seed;
    bool simulated;
} options = {.store = "shapes.db", .device = "cuda", .runner = "device", .seed = 1};

static mgl_store *store;

/* A campaign of the store. */
static struct row {
    bool wanted, stands; /* selected; started */
    double spent;        /* seconds of the whole campaign */
    mgl_error error;     /* error that ended its current run; no code: none */
    show_counts counts;
    mgl_campaign_record record;
} rows[KINDS];

/* ---- campaigns ------------------------------------------------------------------------------- */

/* Whether a name is in a list like "a,b". */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL)
        if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

static mgl_status note_campaign(void *user, const mgl_campaign_record *campaign, mgl_error *err)
{
    (void)user, (void)err;
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, campaign->name)) {
            rows[i].stands = true;
            rows[i].spent = campaign->seconds;
        }
    return MGL_OK;
}

static void find_rows(void)
{
    mgl_error err = {0};
    for (int i = 0; i < KINDS; i++)
        rows[i].wanted = !options.only || is_listed(options.only, kinds[i].name);
    show_check(mgl_store_each_campaign(store, note_campaign, NULL, &err), &err);
}

static mgl_status run_campaign(int i, double seconds, mgl_error *err)
{
    mgl_tune tune;
    const mgl_tune_request request = {.shape = kinds[i].shape,
                                      .device = options.simulated ? "none" : options.device,
                                      .workloads = kinds[i].workloads,
                                      .capacity = kinds[i].capacity,
                                      .proposers = options.proposers,
                                      .space = options.space,
                                      .has_seed = true,
                                      .seed = options.seed,
                                      .name = kinds[i].name};
    const show_limits limits = {.seconds = rows[i].spent + seconds,
                                .trials = options.trials,
                                .simulated = options.simulated};
    mgl_status status = mgl_tune_prepare(store, &request, true, &tune, err);
    if (status)
        return status;
    show_tell("%s: %.0f s", kinds[i].name, seconds);
    status = show_run(&tune, &limits, err);
    mgl_tune_clear(&tune);
    return status;
}

/* The selected campaign that was not run yet and has had the least time; -1: none is left. */
static int find_next(const bool done[KINDS])
{
    int next = -1;
    for (int i = 0; i < KINDS; i++)
        if (rows[i].wanted && !done[i] && (next < 0 || rows[i].spent < rows[next].spent))
            next = i;
    return next;
}

static void run_all(void)
{
    bool done[KINDS] = {false};
    double end = mgl_clock_s() + options.seconds;
    int left = 0;
    for (int i = 0; i < KINDS; i++)
        left += rows[i].wanted;
    for (int i = find_next(done); i >= 0; i = find_next(done)) {
        double seconds = options.simulated ? options.seconds : (end - mgl_clock_s()) / left;
        left--;
        done[i] = true;
        if (seconds > 0 && run_campaign(i, seconds, &rows[i].error))
            show_tell("%s: %s: %s", kinds[i].name, rows[i].error.where, rows[i].error.message);
    }
}

static void count_all(void)
{
    mgl_error err = {0};
    find_rows(); /* some campaigns exist only now */
    for (int i = 0; i < KINDS; i++) {
        if (!rows[i].stands)
            continue;
        show_check(mgl_store_find_campaign(store, kinds[i].name, &rows[i].record, &err), &err);
        show_count(store, &rows[i].record, &rows[i].counts);
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

static void print_table(void)
{
    fprintf(stderr, "%-13s %6s %8s %8s %6s %5s %27s %9s %8s\n", "campaign", "trials", "configs",
            "moved", "moves", "kept", "gain %", "controls", "seconds");
    for (int i = 0; i < KINDS; i++) {
        const show_counts *c = &rows[i].counts;
        if (!rows[i].stands)
            continue;
        fprintf(stderr,
                "%-13s %6lld %8lld %8lld %6lld %5lld %+7.2f (%+7.2f to %+7.2f) %4d, %d bad "
                "%7.0f\n",
                kinds[i].name, (long long)c->trials, (long long)c->configs, (long long)c->moved,
                (long long)c->moves, (long long)c->kept, 100 * expm1(c->gain),
                100 * expm1(c->gain_lo), 100 * expm1(c->gain_hi), c->controls, c->bad_controls,
                rows[i].record.seconds);
    }
}

static void put_row(mgl_json_out *out, int i)
{
    mgl_error err = {0};
    const show_counts *c = &rows[i].counts;
    mgl_json_out_object(out, NULL);
    mgl_answer_campaign(out, &rows[i].record);
    mgl_json_out_string(out, "shape", kinds[i].shape);
    mgl_json_out_string(out, "error", rows[i].error.code ? rows[i].error.message : NULL);
    mgl_json_out_int(out, "proposals", c->trials);
    mgl_json_out_int(out, "measured", c->measured);
    mgl_json_out_int(out, "configs_measured", c->configs);
    mgl_json_out_int(out, "moved_measured", c->moved);
    mgl_json_out_int(out, "moves_measured", c->moves);
    mgl_json_out_int(out, "kept", c->kept);
    mgl_json_out_int(out, "suspicious", c->suspicious);
    mgl_json_out_int(out, "refused", c->refused);
    mgl_json_out_real(out, "gain_percent", 100 * expm1(c->gain));
    mgl_json_out_real(out, "gain_percent_lo", 100 * expm1(c->gain_lo));
    mgl_json_out_real(out, "gain_percent_hi", 100 * expm1(c->gain_hi));
    mgl_json_out_int(out, "controls", c->controls);
    mgl_json_out_int(out, "bad_controls", c->bad_controls);
    show_put_percent(out, "control_percent", c->control_gain, c->controls);
    show_put_percent(out, "control_interval_percent", c->control_width, c->controls);
    show_put_spent(out, c, rows[i].record.seconds);
    show_check(mgl_answer_final(out, store, rows[i].record.id, &err), &err);
    show_check(mgl_answer_best(out, store, &rows[i].record, &err), &err);
    mgl_json_out_close_object(out);
}

static void print_result(void)
{
    mgl_json_out out = {0};
    show_counts all = {0};
    mgl_json_out_begin(&out, "megalith.show-shapes/1");
    mgl_json_out_string(&out, "lab", options.runner);
    mgl_json_out_array(&out, "campaigns");
    for (int i = 0; i < KINDS; i++) {
        if (!rows[i].stands)
            continue;
        put_row(&out, i);
        all.configs += rows[i].counts.configs;
        all.moved += rows[i].counts.moved;
        all.moves += rows[i].counts.moves;
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_int(&out, "configs_measured", all.configs);
    mgl_json_out_int(&out, "moved_measured", all.moved);
    mgl_json_out_int(&out, "moves_measured", all.moves);
    show_end_json(&out);
}

/* ---- the command line ------------------------------------------------------------------------ */

static void read_arguments(int argc, char **argv)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"--store", &options.store},   {"--only", &options.only},
                 {"--device", &options.device}, {"--proposers", &options.proposers},
                 {"--runner", &options.runner}, {"--commit", &show_commit},
                 {"--space", &options.space}};
    bool good = argc > 1 && argc % 2 == 0 && argv[1][0] >= '0' && argv[1][0] <= '9';
    if (good)
        options.seconds = atof(argv[1]);
    for (int i = 2; i + 1 < argc && good; i += 2) {
        good = false;
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            if (!strcmp(argv[i], texts[t].name))
                good = (*texts[t].to = argv[i + 1]) != NULL;
        if (!strcmp(argv[i], "--trials"))
            good = (options.trials = atoll(argv[i + 1])) > 0;
        if (!strcmp(argv[i], "--seed"))
            good = (options.seed = strtoull(argv[i + 1], NULL, 10)) > 0;
    }
    options.simulated = !strcmp(options.runner, "simulated");
    if (good && (options.simulated || !strcmp(options.runner, "device")))
        return;
    fprintf(stderr,
            "usage: show_shapes SECONDS [--store F] [--only NAME,...] [--proposers LIST] "
            "[--space F.json] [--trials N] [--seed N] [--commit C] [--device cuda] [--runner "
            "device|simulated]\nnames:");
    for (int i = 0; i < KINDS; i++)
        fprintf(stderr, " %s", kinds[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    int code = 0, failed = 0;
    if (mgl_autotune_is_worker(argc, argv, &code))
        return code;
    read_arguments(argc, argv);
    show_check(mgl_store_open(options.store, true, &store, &err), &err);
    find_rows();
    if (options.seconds > 0)
        run_all();
    count_all();
    print_table();
    print_result();
    for (int i = 0; i < KINDS; i++) {
        failed += rows[i].error.code != MGL_OK;
        mgl_campaign_record_clear(&rows[i].record);
    }
    mgl_store_close(store);
    return failed > 0;
}
