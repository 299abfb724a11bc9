/*
 * Damaged schedules with variants, biases and norms (tests/vm/damaged.h), as many as requested.
 * Accepted ones run in explore and in the emulator of the kernel.
 *
 *     test_damaged                          a few, as a test
 *     test_damaged judge [--bases N] [--rounds N] [--kernels N] [--first N] [--step N]
 *                        [--seconds S] [--done FILE]
 *                                           N schedules, N rounds of each; one JSON object
 *     test_damaged show BASE ROUND          one round again, with its text
 *
 * The bases are those from `--first` on, every `--step`-th. Bases 4 and 6 have two lists. Compiling
 * a kernel takes two seconds, with two lists three. --kernels limits the kernels per base; accepted
 * schedules beyond the limit run only in explore. Kernels are kept beside the tests for later
 * calls. `--done` stores the counts of each finished base in FILE, from which the next call
 * continues. After `--seconds` a call ends before the next base. The exit code is 1 if an accepted
 * schedule fails, or if bases are left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "emulator.h"
#include "schedule/variants.h"
#include "tests/vm/damaged.h"

static struct {
    int bases, rounds, kernels, seconds;
    int first, step;
    const char *done;
    bool json;
    int base, round; /* to show; -1 */
} options = {.bases = 6, .rounds = 30, .kernels = 2, .step = 1, .base = -1, .round = -1};

static damaged_counts total;
static int bases_done;

static void seed_run(uint64_t run)
{
    emu_seed(run + 1);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void judge_base(int number, damaged_counts *counts)
{
    const damaged_recipe recipe = damaged_draw((uint64_t)number);
    damaged_base *base = damaged_open(&recipe);
    *counts = (damaged_counts){0};
    damaged_judge_base(base, &(damaged_device){seed_run, options.kernels}, counts);
    ck_assert_int_eq(counts->accepted, 1);
    ck_assert_int_eq(counts->failed, 0);
    *counts = (damaged_counts){0};
    for (int round = 0; round < options.rounds; round++)
        if (options.round < 0 || options.round == round)
            damaged_round(base, (uint64_t)number * 1000003u + (uint64_t)round,
                          &(damaged_device){seed_run, options.kernels}, options.round == round,
                          counts);
    damaged_close(base);
}

/* All members of the counts are int. */
static void add_counts(const damaged_counts *counts)
{
    int to[sizeof total / sizeof(int)], from[sizeof total / sizeof(int)];
    memcpy(to, &total, sizeof total);
    memcpy(from, counts, sizeof total);
    for (size_t i = 0; i < sizeof total / sizeof(int); i++)
        to[i] += from[i];
    memcpy(&total, to, sizeof total);
    bases_done++;
}

static void read_done(void)
{
    damaged_counts counts;
    FILE *file = options.done ? fopen(options.done, "rb") : NULL;
    while (file && fread(&counts, sizeof counts, 1, file) == 1)
        add_counts(&counts);
    if (file)
        fclose(file);
}

static void write_done(const damaged_counts *counts)
{
    FILE *file = options.done ? fopen(options.done, "ab") : NULL;
    if (file) {
        fwrite(counts, sizeof *counts, 1, file);
        fclose(file);
    }
}

START_TEST(accepted_runs_in_the_emulator)
{
    const double start = mgl_clock_s();
    damaged_counts counts;
    read_done();
    while (bases_done < options.bases &&
           (!options.seconds || mgl_clock_s() - start < options.seconds)) {
        judge_base(options.base < 0 ? options.first + bases_done * options.step : options.base,
                   &counts);
        add_counts(&counts);
        write_done(&counts);
    }
    if (!options.json && options.base < 0) {
        printf("%d damaged, %d accepted, %d in the emulator\n", total.tried, total.accepted,
               total.emulated);
        ck_assert_int_gt(total.emulated, total.tried / 20);
        ck_assert_int_eq(total.failed, 0);
    }
}
END_TEST

/* ---- the command line ------------------------------------------------------------------------ */

static void print_json(void)
{
    const char *comma = "";
    printf("{\"schema\":\"megalith.damaged/1\",\"bases\":%d,\"rounds\":%d,\"damaged\":%d,"
           "\"unreadable\":%d,\"rejected\":%d,\"accepted\":%d,\n",
           bases_done, options.rounds, total.tried, total.unreadable, total.rejected,
           total.accepted);
    printf(" \"explored\":%d,\"emulated\":%d,\"kernels\":%d,\"without_a_kernel\":%d,"
           "\"for_cpus\":%d,\"refused_by_the_machine\":%d,\"failed\":%d,\n",
           total.accepted, total.emulated, total.kernels, total.without_kernel, total.for_cpus,
           total.refused, total.failed);
    printf(" \"rejected_for_order_alone\":%d,\"of_which_explore_shows\":%d,"
           "\"rejected_for_variants_alone\":%d,\n \"accepted_with_variants\":%d,"
           "\"accepted_naming\":{",
           total.unordered, total.shown, total.of_variants, total.with_variants);
    for (int v = 0; v < MGL_VARIANT_COUNT; v++, comma = ",")
        printf("%s\"%s\":%d", comma, mgl_variant_get((mgl_variant)v)->name, total.naming[v]);
    printf("},\n \"rejected_with\":{");
    comma = "";
    for (int code = 0; code < DAMAGED_CODES; code++)
        if (total.rejected_for[code]) {
            printf("%s\"MG%d\":%d", comma, code, total.rejected_for[code]);
            comma = ",";
        }
    printf("},\n \"made\":{");
    for (int damage = 0; damage < DAMAGES; damage++)
        printf("%s\"%s\":%d", damage ? "," : "", damage_name(damage), total.made[damage]);
    printf("}}\n");
}

static int complain(const char *name)
{
    fprintf(stderr,
            "usage: %s [judge [--bases N] [--rounds N] [--kernels N] [--first N] [--step N]"
            " [--seconds S] [--done FILE] | show BASE ROUND]\n",
            name);
    return 2;
}

static bool read_options(int argc, char **argv)
{
    const struct {
        const char *name;
        int *to;
    } numbers[] = {{"--bases", &options.bases},     {"--rounds", &options.rounds},
                   {"--kernels", &options.kernels}, {"--first", &options.first},
                   {"--step", &options.step},       {"--seconds", &options.seconds}};
    for (int i = 2; i < argc; i += 2) {
        bool known = i + 1 < argc && !strcmp(argv[i], "--done");
        if (known)
            options.done = argv[i + 1];
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers && i + 1 < argc; n++)
            if (!strcmp(argv[i], numbers[n].name)) {
                *numbers[n].to = atoi(argv[i + 1]);
                known = true;
            }
        if (!known)
            return false;
    }
    return true;
}

static bool read_command(int argc, char **argv)
{
    if (argc == 1)
        return true;
    if (argc == 4 && !strcmp(argv[1], "show")) {
        options.bases = 1;
        options.base = atoi(argv[2]);
        options.round = atoi(argv[3]);
        options.rounds = options.kernels = options.round + 1;
        return true;
    }
    options.json = true;
    return !strcmp(argv[1], "judge") && read_options(argc, argv);
}

int main(int argc, char **argv)
{
    if (!read_command(argc, argv))
        return complain(argv[0]);
    if (!emu_install("emulator_damaged"))
        return SKIP;
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/tests/emulator/kernels", 1);
    Suite *suite = suite_create("damaged");
    TCase *tests = tcase_create("damaged");
    tcase_add_test(tests, accepted_runs_in_the_emulator);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, options.json ? CK_SILENT : CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (options.json)
        print_json();
    return failed || total.failed || bases_done < options.bases;
}
