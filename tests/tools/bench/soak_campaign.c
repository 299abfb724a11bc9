/*
 * Simulates a long campaign: trials on a runner that simulates a device with its own clock. Shows
 * the costs for the host: memory, store, report, and the time of a trial outside the device.
 *
 *     soak_campaign [--trials 10000] [--shape NAME | --model F] [--proposers LIST] [--folder F]
 *
 * Proposers, gates, judge and store are real. The linker replaces the slow functions of a trial by
 * timed ones (--wrap). The result is JSON. The exit code is 1 if memory or store grows faster in
 * the last quarter than in the second one, or if the report exceeds 5 MB.
 */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/report/report.h"
#include "autotune/tune.h"
#include "base/clock.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "base/text.h"
#include "tests/autotune/search/scripted_runner.h"
#include "validator/validator.h"

enum { QUARTERS = 4, LARGEST_REPORT = 5000000, SLACK_BYTES = 2 << 20 };
#define MOST_GROWTH 1.25 /* limit of the growth in the last quarter, relative to the second one */

static struct {
    int64_t trials;
    const char *shape, *model, *proposers, *workloads, *folder;
    int capacity;
} options = {
    .trials = 10000, .proposers = "random,evolve", .workloads = "ctx=0;batch=1", .folder = "."};

/* ---- stopwatches ----------------------------------------------------------------------------- */

/*  name of the part, function, its parameters, its arguments */
#define PARTS(X)                                                                                   \
    X(lower, mgl_schedule_lower,                                                                   \
      (const mgl_graph *a, const mgl_target *b, const mgl_lower_options *c,                        \
       const mgl_schedule_config *d, mgl_program **e, mgl_error *f),                               \
      (a, b, c, d, e, f))                                                                          \
    X(moves, mgl_moves_apply,                                                                      \
      (const mgl_program *a, const mgl_moves *b, mgl_program **c, mgl_error *d), (a, b, c, d))     \
    X(digest, mgl_program_digest,                                                                  \
      (const mgl_program *a, unsigned char b[MGL_SHA256_BYTES], mgl_error *c), (a, b, c))          \
    X(validator, mgl_validator_check,                                                              \
      (const mgl_program *a, const mgl_graph *b, mgl_verdict *c, mgl_error *d), (a, b, c, d))      \
    X(cost, mgl_schedule_cost,                                                                     \
      (const mgl_program *a, const mgl_costs *b, const mgl_cost_load *c, mgl_cost *d,              \
       mgl_error *e),                                                                              \
      (a, b, c, d, e))                                                                             \
    X(store, mgl_store_add_trial, (mgl_store * a, mgl_trial * b, mgl_error * c), (a, b, c))

enum part {
#define X(name, function, parameters, arguments) PART_##name,
    PARTS(X)
#undef X
        PART_propose,
    PART_learn,
    PART_COUNT
};
static const char *const part_names[] = {
#define X(name, function, parameters, arguments) #name,
    PARTS(X)
#undef X
        "propose",
    "learn"};

static struct {
    double seconds;
    int64_t calls;
} spent[PART_COUNT];
static bool proposing; /* set while a proposer runs: its calls count as its own time */

static void add_time(enum part part, double began)
{
    if (proposing)
        return;
    spent[part].seconds += mgl_clock_s() - began;
    spent[part].calls++;
}

#define X(name, function, parameters, arguments)                                                   \
    mgl_status __real_##function parameters;                                                       \
    mgl_status __wrap_##function parameters;                                                       \
    mgl_status __wrap_##function parameters                                                        \
    {                                                                                              \
        double began = mgl_clock_s();                                                              \
        mgl_status status = __real_##function arguments;                                           \
        add_time(PART_##name, began);                                                              \
        return status;                                                                             \
    }
PARTS(X)
#undef X

/* Wraps a proposer to measure its time. */
typedef struct timed {
    mgl_proposer proposer; /* first */
    mgl_proposer *real;
} timed;

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err)
{
    mgl_proposer *real = ((timed *)(void *)self)->real;
    double began = mgl_clock_s();
    proposing = true;
    mgl_status status = real->propose(real, seed, out, answer, err);
    proposing = false;
    add_time(PART_propose, began);
    return status;
}

static mgl_status learn(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    mgl_proposer *real = ((timed *)(void *)self)->real;
    double began = mgl_clock_s();
    proposing = true;
    mgl_status status = real->learn(real, trial, err);
    proposing = false;
    add_time(PART_learn, began);
    return status;
}

static void close_timed(mgl_proposer *self)
{
    mgl_proposer *real = ((timed *)(void *)self)->real;
    real->close(real);
}

/* ---- the campaign ---------------------------------------------------------------------------- */

static struct {
    mgl_store *store;
    mgl_tune tune;
    scripted_runner runner;
    timed proposers[MGL_MAX_PROPOSERS];
    char path[4096];
    double began;
} night;

/* Resources in use after a quarter. */
static struct quarter {
    int64_t memory, heap, store; /* bytes: resident, allocated, of the store and its log */
    double seconds;
} quarters[QUARTERS + 1];

static void check(mgl_status status, const mgl_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "soak_campaign: %s: %s\n", err->where, err->message);
    exit(1);
}

static int64_t resident_bytes(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* AddressSanitizer's count, because it keeps freed memory resident and mallinfo2 returns zeros
 * under it. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* Allocated and not freed bytes: they may grow only with the data that the campaign keeps. */
static int64_t heap_bytes(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return (int64_t)__sanitizer_get_current_allocated_bytes();
    struct mallinfo2 facts = mallinfo2();
    return (int64_t)(facts.uordblks + facts.hblkhd);
}

/* Includes the log that is not in the file yet. */
static int64_t store_bytes(void)
{
    char log[sizeof night.path + 8];
    struct stat facts;
    int64_t bytes = stat(night.path, &facts) ? 0 : (int64_t)facts.st_size;
    snprintf(log, sizeof log, "%s-wal", night.path);
    return bytes + (stat(log, &facts) ? 0 : (int64_t)facts.st_size);
}

static void look(int number)
{
    quarters[number] = (struct quarter){resident_bytes(), heap_bytes(), store_bytes(),
                                        mgl_clock_s() - night.began};
    fprintf(stderr, "%6.1f s  %d of %d, memory %.1f MB (%.1f allocated), store %.1f MB\n",
            quarters[number].seconds, number, QUARTERS, (double)quarters[number].memory * 1e-6,
            (double)quarters[number].heap * 1e-6, (double)quarters[number].store * 1e-6);
}

static void on_event(void *user, const mgl_campaign_event *event)
{
    (void)user;
    bool trial = !strcmp(event->kind, "trial") || !strcmp(event->kind, "control");
    if (!event->trial || !trial)
        return;
    int64_t number = event->trial->number * QUARTERS;
    if (number % options.trials == 0)
        look((int)(number / options.trials));
}

static void add_proposer(const char *name, size_t length, mgl_campaign_options *out)
{
    static const struct {
        const char *name;
        mgl_status (*open)(const mgl_proposer_options *, mgl_proposer **, mgl_error *);
    } all[] = {{"grid", mgl_grid_open},
               {"random", mgl_random_open},
               {"evolve", mgl_evolve_open},
               {"surrogate", mgl_surrogate_open}};
    mgl_error err = {0};
    const mgl_proposer_options how = {.subject = &night.tune.subject,
                                      .start = &night.tune.subject.start};
    timed *t = &night.proposers[out->proposer_count];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (mgl_text_is(name, length, all[i].name)) {
            check(all[i].open(&how, &t->real, &err), &err);
            t->proposer = (mgl_proposer){t->real->name, propose, learn, close_timed, false};
            out->proposers[out->proposer_count].proposer = &t->proposer;
            out->proposers[out->proposer_count++].share = 1;
            return;
        }
    check(mgl_fail(&err, MGL_USAGE, name, "is none of grid, random, evolve, surrogate"), &err);
}

static void run(void)
{
    mgl_error err = {0};
    mgl_campaign_options how = {.subject = &night.tune.subject,
                                .record = &night.tune.record,
                                .store = night.store,
                                .runner = &night.runner.runner,
                                .max_trials = options.trials,
                                .least_disk = 1,
                                .on_event = on_event,
                                .user = &night.runner,
                                .clock = scripted_runner_clock};
    scripted_runner_init(&night.runner);
    night.runner.by_digest = true;
    for (const char *at = options.proposers; *at;) {
        size_t length = strcspn(at, ",");
        add_proposer(at, length, &how);
        at += length + (at[length] == ',');
    }
    night.began = mgl_clock_s();
    look(0);
    check(mgl_campaign_run(&how, &err), &err);
    for (int i = 0; i < how.proposer_count; i++)
        night.proposers[i].proposer.close(&night.proposers[i].proposer);
}

static void open_campaign(void)
{
    mgl_error err = {0};
    const mgl_tune_request request = {.model = options.model,
                                      .shape = options.shape,
                                      .device = "none",
                                      .workloads = options.workloads,
                                      .capacity = options.capacity,
                                      .has_seed = true,
                                      .seed = 7,
                                      .name = "night"};
    snprintf(night.path, sizeof night.path, "%s/night-%ld.db", options.folder, (long)getpid());
    check(mgl_store_open(night.path, true, &night.store, &err), &err);
    check(mgl_tune_prepare(night.store, &request, true, &night.tune, &err), &err);
}

static void remove_store(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-none-1.lock"};
    char path[sizeof night.path + 16];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", night.path, ends[i]);
        unlink(path);
    }
}

/* ---- the result ------------------------------------------------------------------------------ */

static int64_t count_report(double *seconds)
{
    mgl_error err = {0};
    mgl_text page = {0};
    const mgl_report_options how = {.running = false};
    double began = mgl_clock_s();
    check(mgl_report_html(night.store, &night.tune.record, &how, &page, &err), &err);
    *seconds = mgl_clock_s() - began;
    int64_t bytes = (int64_t)page.length;
    mgl_text_clear(&page);
    return bytes;
}

/* Linear growth: the last quarter grows about as much as the second one. The allocated memory may
 * also shrink in a quarter, because a trial in progress at its start needs some. */
static bool is_linear(int64_t before, int64_t second, int64_t third, int64_t last)
{
    const double growth = second > before ? (double)(second - before) : 0;
    return (double)(last - third) <= MOST_GROWTH * growth + SLACK_BYTES;
}

static void put_quarters(mgl_json_out *out)
{
    mgl_json_out_array(out, "quarters");
    for (int q = 0; q <= QUARTERS; q++) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_int(out, "memory_bytes", quarters[q].memory);
        mgl_json_out_int(out, "heap_bytes", quarters[q].heap);
        mgl_json_out_int(out, "store_bytes", quarters[q].store);
        mgl_json_out_real(out, "seconds", quarters[q].seconds);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

/* Milliseconds per trial, and the number of calls of each part. */
static void put_parts(mgl_json_out *out)
{
    double rest = quarters[QUARTERS].seconds;
    mgl_json_out_object(out, "ms_a_trial");
    for (int p = 0; p < PART_COUNT; p++) {
        mgl_json_out_real(out, part_names[p], spent[p].seconds * 1e3 / (double)options.trials);
        rest -= spent[p].seconds;
    }
    mgl_json_out_real(out, "rest", rest * 1e3 / (double)options.trials);
    mgl_json_out_real(out, "all", quarters[QUARTERS].seconds * 1e3 / (double)options.trials);
    mgl_json_out_close_object(out);
    mgl_json_out_object(out, "ms_a_call");
    for (int p = 0; p < PART_COUNT; p++)
        mgl_json_out_real(out, part_names[p],
                          spent[p].calls ? spent[p].seconds * 1e3 / (double)spent[p].calls : 0);
    mgl_json_out_close_object(out);
}

static bool print_result(void)
{
    const struct quarter *q = quarters;
    mgl_json_out out = {0};
    double report_s = 0;
    int64_t report = count_report(&report_s);
    bool memory = is_linear(q[1].heap, q[2].heap, q[3].heap, q[4].heap);
    bool store = is_linear(q[1].store, q[2].store, q[3].store, q[4].store);
    mgl_json_out_begin(&out, "megalith.night/1");
    mgl_json_out_string(&out, "model", night.tune.record.model);
    mgl_json_out_string(&out, "proposers", options.proposers);
    mgl_json_out_int(&out, "trials", options.trials);
    mgl_json_out_real(&out, "virtual_hours", night.runner.clock / 3600);
    put_quarters(&out);
    put_parts(&out);
    mgl_json_out_int(&out, "report_bytes", report);
    mgl_json_out_real(&out, "report_s", report_s);
    mgl_json_out_bool(&out, "memory_linear", memory);
    mgl_json_out_bool(&out, "store_linear", store);
    mgl_json_out_close(&out);
    printf("%s\n", out.text.bytes);
    mgl_text_clear(&out.text);
    return memory && store && report <= LARGEST_REPORT;
}

/* ---- the command line ------------------------------------------------------------------------ */

static void read_arguments(int argc, char **argv)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"--shape", &options.shape},
                 {"--model", &options.model},
                 {"--proposers", &options.proposers},
                 {"--workloads", &options.workloads},
                 {"--folder", &options.folder}};
    bool good = argc % 2 == 1;
    for (int i = 1; i + 1 < argc && good; i += 2) {
        good = false;
        if (!strcmp(argv[i], "--trials"))
            good = (options.trials = atoll(argv[i + 1])) >= QUARTERS;
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            if (!strcmp(argv[i], texts[t].name))
                good = (*texts[t].to = argv[i + 1]) != NULL;
    }
    options.trials -= options.trials % QUARTERS;
    if (!options.shape && !options.model)
        options.model = MGL_SOURCE_DIR "/tests/models/tales-5m";
    if (good && (!options.shape || !options.model))
        return;
    fprintf(stderr, "usage: night [--trials N] [--shape NAME | --model F] [--proposers LIST] "
                    "[--workloads LIST] [--folder F]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    open_campaign();
    run();
    bool good = print_result();
    mgl_tune_clear(&night.tune);
    mgl_store_close(night.store);
    remove_store();
    return !good;
}
