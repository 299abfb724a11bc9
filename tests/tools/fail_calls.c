/*
 * Fault injection: makes each call of the C library that a verb makes fail in turn, and checks the
 * result.
 *
 *     fail_calls MEGALITH SHIM MODEL [--sample N --seed S] [--only NAME] [--jobs N] [--log FILE]
 *
 * Each scenario (fail_trial.c) first runs unchanged: SHIM (fail_shim.c) counts its calls, and its
 * answer is the reference. It then runs again for each call of each kind, once with only this call
 * failing and once with all calls from it on, and with little address space, as after `ulimit -v`.
 * Each run must end by itself within the time limit, with the reference's answer, or with a message
 * and a matching exit code. The output file is then complete, the old or the new one, and nothing
 * else is changed. VERDICTS lists the violations.
 *
 * --sample runs N of these at random, and all with little address space. --only selects a kind
 * (malloc), a scenario (run-json), a kind of a scenario (run-json/malloc), or one call
 * (run-json/malloc/17/once), and may be repeated. If a single run is selected, it prints where in
 * the program the call is. --log writes a line for each run. The output is a JSON object; the exit
 * code is 1 after a violation.
 */
#include "tests/tools/fail_trial.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SPACE_FIRST = 20000, /* KiB */
    SPACE_LAST = 200000,
    SPACE_STEP = 10000,
    MAX_NAMES = 16,
    MAX_JOBS = 16
};

/* State shared by the jobs. */
typedef struct shared {
    atomic_size_t next; /* next trial that is not started */
    outcome outcomes[]; /* (trial_count) */
} shared;

static struct settings {
    const char *only[MAX_NAMES];
    int only_count;  /* 0: all */
    const char *log; /* NULL: none */
    size_t sample;   /* 0: everything */
    unsigned seed;
    int jobs;
} settings;

static trial *trials;
static size_t trial_count;

/* ---- trials ---------------------------------------------------------------------------------- */

static void name_trial(const trial *t, char name[FAIL_PATH])
{
    snprintf(name, FAIL_PATH, "%s/%s/%llu/%s", fail_scenarios[t->scenario].name,
             fail_kinds[t->kind].name, (unsigned long long)t->at, t->forever ? "forever" : "once");
}

/* Whether --only selects it, or a part that contains it. */
static bool is_wanted(const trial *t)
{
    char name[FAIL_PATH];
    name_trial(t, name);
    for (int i = 0; i < settings.only_count; i++) {
        if (!strcmp(settings.only[i], fail_kinds[t->kind].name))
            return true;
        size_t length = strlen(settings.only[i]);
        if (!strncmp(name, settings.only[i], length) && (!name[length] || name[length] == '/'))
            return true;
    }
    return settings.only_count == 0;
}

static void add_trial(trial t)
{
    static size_t room;
    if (!mgl_grow((void **)&trials, &room, trial_count, sizeof *trials))
        fail_with("trials", "out of memory");
    if (is_wanted(&t))
        trials[trial_count++] = t;
}

static void add_everything(void)
{
    for (uint16_t s = 0; s < fail_scenario_count; s++)
        for (uint16_t kind = 0; kind < MGL_FAIL_KIND_COUNT; kind++)
            for (uint64_t at = 1; at <= fail_scenarios[s].calls[kind]; at++) {
                add_trial((trial){s, kind, false, at});
                add_trial((trial){s, kind, true, at});
            }
}

/* Adds a trial: a scenario, a kind of its calls, and one call. */
static void add_sample(void)
{
    srandom(settings.seed);
    while (trial_count < settings.sample) {
        uint16_t s = (uint16_t)(random() % fail_scenario_count);
        uint16_t kind = (uint16_t)(random() % MGL_FAIL_KIND_COUNT);
        uint64_t calls = fail_scenarios[s].calls[kind];
        if (calls)
            add_trial((trial){s, kind, random() % 2, 1 + (uint64_t)random() % calls});
    }
}

static void add_spaces(void)
{
    for (uint16_t s = 0; s < fail_scenario_count; s++)
        for (uint64_t kib = SPACE_FIRST; kib <= SPACE_LAST && fail_scenarios[s].line[0] == 'r';
             kib += SPACE_STEP)
            add_trial((trial){s, FAIL_SPACE, true, kib});
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void work_off(const job *j, shared *all)
{
    for (;;) {
        size_t i = atomic_fetch_add(&all->next, 1);
        if (i >= trial_count)
            return;
        all->outcomes[i] = fail_try(j, &trials[i]);
    }
}

static void work_off_all(const job *jobs, int count, shared *all)
{
    pid_t workers[MAX_JOBS];
    fflush(NULL);
    for (int i = 0; i < count; i++) {
        workers[i] = fork();
        if (workers[i] == 0) {
            work_off(&jobs[i], all);
            _exit(0);
        }
    }
    for (int i = 0; i < count; i++) {
        int status;
        if (workers[i] < 0 || waitpid(workers[i], &status, 0) < 0 || status)
            fail_with("a job", "did not come to its end");
    }
}

/* A single run prints the program's output. */
static shared *try_all(const job *jobs)
{
    size_t bytes = sizeof(shared) + trial_count * sizeof(outcome);
    shared *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        fail_with("outcomes", strerror(errno));
    fail_given.traces = trial_count == 1;
    work_off_all(jobs, trial_count == 1 ? 1 : settings.jobs, all);
    if (trial_count == 1)
        fail_show(&jobs[0]);
    return all;
}

/* ---- results --------------------------------------------------------------------------------- */

static void write_log(const shared *all)
{
    char name[FAIL_PATH];
    FILE *file = fopen(settings.log, "w");
    if (!file)
        fail_with(settings.log, strerror(errno));
    for (size_t i = 0; i < trial_count; i++) {
        const outcome *o = &all->outcomes[i];
        name_trial(&trials[i], name);
        fprintf(file, "%-40s %-13s %4d  %s\n", name, fail_verdicts[o->verdict].name, o->code,
                o->note);
    }
    fclose(file);
}

/* Prints the number of calls of each kind in each scenario. */
static void print_calls(void)
{
    printf(" \"calls\": {");
    for (int i = 0; i < fail_scenario_count; i++) {
        printf("%s\n  \"%s\": {", i ? "," : "", fail_scenarios[i].name);
        const char *comma = "";
        for (int kind = 0; kind < MGL_FAIL_KIND_COUNT; kind++)
            if (fail_scenarios[i].calls[kind]) {
                printf("%s\"%s\": %llu", comma, fail_kinds[kind].name,
                       (unsigned long long)fail_scenarios[i].calls[kind]);
                comma = ", ";
            }
        printf("}");
    }
    printf("},\n");
}

static void print_kinds(const shared *all)
{
    static size_t counts[MGL_FAIL_KIND_COUNT + 1][VERDICT_COUNT];
    for (size_t i = 0; i < trial_count; i++)
        counts[trials[i].kind][all->outcomes[i].verdict]++;
    for (size_t kind = 0; kind <= MGL_FAIL_KIND_COUNT; kind++) {
        printf("%s\n  \"%s\": {", kind ? "," : " \"kinds\": {", fail_kinds[kind].name);
        const char *comma = "";
        for (size_t v = 0; v < VERDICT_COUNT; v++)
            if (counts[kind][v]) {
                printf("%s\"%s\": %zu", comma, fail_verdicts[v].name, counts[kind][v]);
                comma = ", ";
            }
        printf("}");
    }
    printf("},\n");
}

/* Returns the number of bad runs. */
static size_t print_bad(const shared *all, const char *tool)
{
    char name[FAIL_PATH];
    size_t bad = 0;
    printf(" \"bad\": [");
    for (size_t i = 0; i < trial_count; i++) {
        const outcome *o = &all->outcomes[i];
        if (!fail_verdicts[o->verdict].bad)
            continue;
        name_trial(&trials[i], name);
        printf(
            "%s\n  {\"verdict\": \"%s\", \"code\": %d, \"said\": \"%s\",\n   \"repeat\": \"%s %s "
            "%s %s --only %s\"}",
            bad++ ? "," : "", fail_verdicts[o->verdict].name, o->code, o->note, tool,
            fail_given.megalith, fail_given.shim, fail_given.model, name);
    }
    printf("]}\n");
    return bad;
}

static void resolve(const char *path, char to[PATH_MAX])
{
    if (!realpath(path, to))
        fail_with(path, strerror(errno));
}

static void parse(int argc, char **argv)
{
    if (argc < 4 || argc % 2)
        fail_with("usage", "fail_calls MEGALITH SHIM MODEL [--sample N] [--seed S] [--only NAME] "
                           "[--jobs N] [--log FILE]");
    resolve(argv[1], fail_given.megalith);
    resolve(argv[2], fail_given.shim);
    fail_given.model = argv[3];
    settings.jobs = mgl_parallel_processors();
    settings.seed = 1;
    for (int i = 4; i < argc; i += 2) {
        if (!strcmp(argv[i], "--sample"))
            settings.sample = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--seed"))
            settings.seed = (unsigned)atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--only") && settings.only_count < MAX_NAMES)
            settings.only[settings.only_count++] = argv[i + 1];
        else if (!strcmp(argv[i], "--jobs"))
            settings.jobs = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--log"))
            settings.log = argv[i + 1];
        else
            fail_with("what is this", argv[i]);
    }
    settings.jobs = settings.jobs < 1 ? 1 : settings.jobs > MAX_JOBS ? MAX_JOBS : settings.jobs;
}

int main(int argc, char **argv)
{
    static job jobs[MAX_JOBS];
    double begun = mgl_clock_s();
    parse(argc, argv);
    fail_prepare();
    for (int i = 0; i < settings.jobs; i++)
        fail_open_job(i, &jobs[i]);
    fail_learn(&jobs[0]);
    if (settings.sample)
        add_sample();
    else
        add_everything();
    add_spaces();
    shared *all = try_all(jobs);
    if (settings.log)
        write_log(all);
    printf("{\"schema\": \"megalith.fail_calls/1\", \"runs\": %zu, \"seconds\": %.1f,\n",
           trial_count, mgl_clock_s() - begun);
    print_calls();
    print_kinds(all);
    size_t bad = print_bad(all, argv[0]);
    fail_check_model();
    return bad > 0;
}
