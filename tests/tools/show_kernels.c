/*
 * Checks the gates of micro-kernels on a device with known gains, and provides commands for the
 * methods of kernels.sh.
 *
 *     show_kernels equal [--times 20]    the unit's own text against itself
 *     show_kernels planted [--times 2]   the incumbent is `merge` with a delay. Removing a delay of
 *                                        2 % must be kept, removing one of 0.3 % must not. A longer
 *                                        delay calibrates the length.
 *     show_kernels model                 a text that is faster alone, where launches have one row,
 *                                        and slower in a model with two rows: passes the paired
 *                                        benchmark and ends as MODEL_REGRESSION
 *     show_kernels plant UNIT FILE       makes FILE the incumbent, in the overlay
 *     show_kernels ptx UNIT FILE         prints the compiler's output
 *     show_kernels delay LINKS ROWS      prints merge with a delay of LINKS links if ROWS holds
 *     show_kernels warm UNIT FILE        compiles the kernels for the correctness check and paired
 *                                        benchmark of FILE, without a device; --tune NAME=N
 *
 * Each of the first three prints one JSON object; exit code 1: an unexpected result. --device
 * cuda:N; --shape names another model than llama-1b. The model has two layers, except in `model`.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/candidates/judge.h"
#include "autotune/kernels/gates/overlay.h"
#include "autotune/kernels/trial/trial.h"
#include "autotune/tune.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/statistics.h"
#include "vm/cuda/cuda.h"
#include "vm/pipeline/device.h"

enum { MOST_TIMES = 200, LAYERS = 2, CAPACITY = 4096, CONTEXT = 3584 };
enum { FIRST_CHAIN = 600, TRAP_CHAIN = 2400 }; /* links of a delay that costs several percent */
#define ALL_ROWS   "true"
#define LATER_ROWS "r > 0"
#define FOUND      0.02
#define SMALL      0.003

static struct {
    const char *device, *shape, *words[2];
    int times, word_count;
    mgl_kernel_value tuned[MGL_KERNEL_VALUES]; /* (tuned_count) */
    int tuned_count;
} options = {.device = "cuda", .shape = "llama-1b"};

static const mgl_kernel_unit *merge;
static int failures;
static double began;

static void check(mgl_status status, const mgl_error *err)
{
    if (!status)
        return;
    fprintf(stderr, "show_kernels: %s: %s\n", err->where, err->message);
    exit(1);
}

static void tell(const char *what, const mgl_kernel_paired_bench *d)
{
    fprintf(stderr, "%6.1f s  %-12s %s %+.2f %% (%+.2f to %+.2f), %d pairs: %s\n",
            mgl_clock_s() - began, what, mgl_outcome_name(d->verdict.outcome), 100 * expm1(d->gain),
            100 * expm1(d->gain_lo), 100 * expm1(d->gain_hi), d->pairs, d->verdict.diagnostic);
}

static void expect(mgl_json_out *out, const char *key, bool held)
{
    mgl_json_out_bool(out, key, held);
    failures += !held;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The text of merge with a chain of square roots, if `rows` holds, before a mean is stored. The
 * chain does not change the result. Release with mgl_free. */
static char *delay_merge(int links, const char *rows)
{
    static const char at[] = "        mean[j] = all.value[b][j] * inverse;\n";
    size_t length;
    mgl_text out = {0};
    const char *text = mgl_kernel_unit_text(merge, &length), *place = strstr(text, at);
    if (!place) {
        fprintf(stderr, "show_kernels: merge has no place for a delay any more\n");
        exit(1);
    }
    mgl_text_append(&out, text, (size_t)(place - text));
    mgl_text_format(&out,
                    "    {\n"
                    "        float chain = all.sum + (float)j;\n"
                    "        for (int k = 0; k < (%s ? %d : 0); k++)\n"
                    "            chain = sqrtf(chain * chain + 1e-3f);\n"
                    "        mean[j] = chain < 0.0f ? 0.0f : all.value[b][j] * inverse;\n"
                    "    }\n",
                    rows, links);
    mgl_text_put(&out, place + sizeof at - 1);
    return out.bytes;
}

static char *read_text(const char *path)
{
    mgl_error err = {0};
    char *text = NULL;
    size_t length;
    check(mgl_file_read(path, MGL_KERNEL_TEXT, &text, &length, &err), &err);
    return text;
}

static const mgl_kernel_unit *find_unit(const char *name)
{
    const mgl_kernel_unit *unit = mgl_kernel_unit_find(name);
    if (!unit) {
        fprintf(stderr, "show_kernels: '%s' is no micro-kernel\n", name);
        exit(2);
    }
    return unit;
}

/* ---- paired benchmarks ----------------------------------------------------------------------- */

/* Benchmarks one of two texts of merge (NULL: the original), as the paired benchmark does. */
static void fight(const char *incumbent, const char *candidate, int64_t decision,
                  mgl_kernel_paired_bench *out)
{
    static int number;
    mgl_error err = {0};
    mgl_device device = {0};
    mgl_harness_set set;
    size_t length;
    unsigned char nonce[MGL_SHA256_BYTES], digest[MGL_SHA256_BYTES];
    const char *own = mgl_kernel_unit_text(merge, &length);
    const mgl_workloads workloads = {.list = {{1, 0}, {1, CONTEXT}}, .count = 2};
    const mgl_cuda_source before = {merge->file, (const unsigned char *)incumbent},
                          after = {merge->file,
                                   (const unsigned char *)(candidate ? candidate : own)};
    const double seed[2] = {mgl_clock_s(), number++};
    check(mgl_device_find(options.device, &device, &err), &err);
    check(mgl_harness_open_shape(options.shape, LAYERS, &workloads, CAPACITY, &device.target, &set,
                                 &err),
          &err);
    mgl_candidate old = set.program, new = set.program;
    old.sources = &before;
    old.source_count = incumbent != NULL;
    new.sources = &after;
    new.source_count = 1;
    mgl_sha256_of(after.text, strlen((const char *)after.text), digest);
    mgl_sha256_hex(digest, new.digest);
    mgl_sha256_of(seed, sizeof seed, nonce);
    const mgl_trial_options how = {.device = options.device, .decision = decision};
    check(mgl_trial_paired_bench(&how, &set, &old, &new, nonce, out, &err), &err);
    mgl_harness_clear(&set);
}

static void put_paired_bench(mgl_json_out *out, const mgl_kernel_paired_bench *d)
{
    mgl_trial_verdict_put(out, &d->verdict);
    if (!d->timed)
        return;
    mgl_json_out_real(out, "gain_percent", 100 * expm1(d->gain));
    mgl_json_out_real(out, "gain_lo_percent", 100 * expm1(d->gain_lo));
    mgl_json_out_real(out, "gain_hi_percent", 100 * expm1(d->gain_hi));
    mgl_json_out_int(out, "pairs", d->pairs);
    mgl_json_out_array(out, "us");
    for (int w = 0; w < d->workload_count; w++) {
        mgl_json_out_real(out, NULL, d->results[w].incumbent_us);
        mgl_json_out_real(out, NULL, d->results[w].candidate_us);
    }
    mgl_json_out_close_array(out);
}

static void show_equal(mgl_json_out *out)
{
    double gains[MOST_TIMES];
    int timed = 0, kept = 0, disturbed = 0;
    const int times = options.times ? options.times : 20;
    mgl_json_out_array(out, "duels");
    for (int i = 0; i < times; i++) {
        mgl_kernel_paired_bench d;
        fight(NULL, NULL, i + 1, &d);
        kept += d.verdict.outcome == MGL_OUTCOME_OK;
        disturbed += d.verdict.outcome == MGL_OUTCOME_UNMEASURED;
        if (d.timed)
            gains[timed++] = 100 * expm1(d.gain);
        mgl_json_out_object(out, NULL);
        put_paired_bench(out, &d);
        mgl_json_out_close_object(out);
        tell("equal", &d);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_int(out, "times", times);
    mgl_json_out_int(out, "disturbed", disturbed);
    mgl_json_out_int(out, "kept", kept);
    mgl_json_out_real(out, "error_rate_of_all", MGL_CAMPAIGN_ERROR);
    if (timed) {
        mgl_json_out_real(out, "gain_median_percent", mgl_median(gains, (size_t)timed));
        mgl_json_out_real(out, "gain_p10_percent", mgl_quantile(gains, (size_t)timed, 0.1));
        mgl_json_out_real(out, "gain_p90_percent", mgl_quantile(gains, (size_t)timed, 0.9));
    }
    expect(out, "none_kept", kept == 0);
    expect(out, "most_measured", 2 * timed > times);
}

/* How often the removal of a delay of this number of links is kept. */
static int plant(mgl_json_out *out, const char *key, double gain, int links, int times)
{
    int kept = 0;
    char *slow = delay_merge(links, ALL_ROWS);
    mgl_json_out_object(out, key);
    mgl_json_out_int(out, "links", links);
    mgl_json_out_real(out, "planted_percent", 100 * gain);
    mgl_json_out_array(out, "duels");
    for (int i = 0; i < times; i++) {
        mgl_kernel_paired_bench d;
        fight(slow, NULL, i + 1, &d);
        kept += d.verdict.outcome == MGL_OUTCOME_OK;
        mgl_json_out_object(out, NULL);
        put_paired_bench(out, &d);
        mgl_json_out_close_object(out);
        tell(key, &d);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_int(out, "kept", kept);
    mgl_json_out_close_object(out);
    mgl_free(slow);
    return kept;
}

static void show_planted(mgl_json_out *out)
{
    mgl_kernel_paired_bench d;
    char *slow = delay_merge(FIRST_CHAIN, ALL_ROWS);
    const int times = options.times ? options.times : 2;
    fight(slow, NULL, 1, &d);
    tell("first", &d);
    mgl_free(slow);
    mgl_json_out_object(out, "first");
    mgl_json_out_int(out, "links", FIRST_CHAIN);
    put_paired_bench(out, &d);
    mgl_json_out_close_object(out);
    expect(out, "first_kept", d.verdict.outcome == MGL_OUTCOME_OK);
    if (d.verdict.outcome != MGL_OUTCOME_OK)
        return;
    const double link = d.gain / FIRST_CHAIN; /* a delay and its cost are proportional */
    const int found = plant(out, "found", FOUND, (int)lround(FOUND / link), times);
    const int small = plant(out, "small", SMALL, (int)lround(SMALL / link), times);
    expect(out, "found_kept", found == times);
    expect(out, "small_not_kept", small == 0);
}

/* ---- a loss in the model --------------------------------------------------------------------- */

static void show_model(mgl_json_out *out)
{
    mgl_error err = {0};
    mgl_kernel_trial trial;
    char sanitizers[600], *slow = delay_merge(FIRST_CHAIN, ALL_ROWS),
                          *trap = delay_merge(4 * FIRST_CHAIN, "r > 0");
    const mgl_cuda_source incumbent = {merge->file, (const unsigned char *)slow};
    const mgl_workloads models = {.list = {{2, 0}, {2, 2048}}, .count = 2};
    const mgl_trial_options how = {.device = options.device,
                                   .depth = MGL_TRIAL_MODELS,
                                   .shape = options.shape,
                                   .models = &models,
                                   .sources = &incumbent,
                                   .source_count = 1,
                                   .most_harnesses = 2,
                                   .most_cases = 6};
    check(mgl_kernel_try(merge, trap, &how, &trial, &err), &err);
    tell("alone", &trial.paired_bench);
    tell("in a model", &trial.models);
    mgl_trial_verdict_put(out, &trial.verdict);
    mgl_json_out_int(out, "cases", trial.cases);
    mgl_sanitizer_tell(&trial.sanitizers, sanitizers, sizeof sanitizers);
    mgl_json_out_string(out, "sanitizers", sanitizers);
    mgl_json_out_object(out, "alone");
    put_paired_bench(out, &trial.paired_bench);
    mgl_json_out_close_object(out);
    mgl_json_out_object(out, "in_model");
    put_paired_bench(out, &trial.models);
    mgl_json_out_close_object(out);
    expect(out, "wins_alone", trial.paired_bench.verdict.outcome == MGL_OUTCOME_OK);
    expect(out, "refused_by_the_last_gate", trial.verdict.outcome == MGL_OUTCOME_MODEL_REGRESSION);
    mgl_free(slow);
    mgl_free(trap);
}

/* ---- subcommands ----------------------------------------------------------------------------- */

static int show_plant(void)
{
    mgl_error err = {0};
    char *text = read_text(options.words[1]);
    check(mgl_overlay_put(NULL, find_unit(options.words[0]), text, NULL, &err), &err);
    mgl_free(text);
    return 0;
}

static int show_delay(void)
{
    char *text = delay_merge(atoi(options.words[0]), options.words[1]);
    fputs(text, stdout);
    mgl_free(text);
    return 0;
}

static int show_ptx(void)
{
    mgl_error err = {0};
    char *text = read_text(options.words[1]);
    const mgl_kernel_candidate candidate = {.unit = find_unit(options.words[0]),
                                            .text = text,
                                            .length = strlen(text),
                                            .region = MGL_KERNEL_REGION_ANY};
    const mgl_kernel_options how = {0};
    mgl_kernel_result result = {0};
    check(mgl_kernel_verify(&candidate, &how, &result, &err), &err);
    if (result.ptx)
        fwrite(result.ptx, 1, result.ptx_length, stdout);
    else
        fprintf(stderr, "show_kernels: %s: %s%s\n", options.words[0], result.verdict.diagnostic,
                result.not_compiled);
    const bool made = result.ptx != NULL;
    mgl_kernel_result_clear(&result);
    mgl_free(text);
    return made ? 0 : 1;
}

static void warm_program(const mgl_harness_set *set, const char *name)
{
    mgl_error err = {0};
    mgl_cuda_image image = {0};
    const mgl_status status =
        mgl_cuda_compile(set->program.programs[0], set->subject.target.arch, 0, NULL, &image, &err);
    if (status)
        fprintf(stderr, "show_kernels: %s: %s: %s\n", name, err.where, err.message);
    else
        fprintf(stderr, "show_kernels: %s: %.1f s%s\n", name, image.compile_s,
                image.cached ? ", was there" : "");
    mgl_cuda_image_clear(&image);
}

/* The correctness check uses the first programs that run the unit, and the other kinds. */
static void warm_correctness(const mgl_kernel_unit *unit, const mgl_target *target)
{
    enum { OF_CORRECTNESS = 3 };
    mgl_error err = {0};
    for (int i = 0, taken = 0; i < mgl_harness_count(); i++) {
        mgl_harness_set set;
        const mgl_harness *h = mgl_harness_get(i);
        if ((!h->kind && taken == OF_CORRECTNESS) || mgl_harness_open(h, target, &set, &err))
            continue;
        if (h->kind ? mgl_harness_may_run(&set, unit) : mgl_harness_runs(&set, unit)) {
            warm_program(&set, h->name);
            taken += !h->kind;
        }
        mgl_harness_clear(&set);
    }
}

static void warm_paired_bench(const mgl_kernel_unit *unit, const mgl_target *target)
{
    mgl_error err = {0};
    mgl_kernel_context context;
    mgl_harness_set set;
    check(mgl_kernel_context_read(unit, &context, &err), &err);
    const mgl_context_harness *h = mgl_kernel_context_harness(&context, unit);
    const mgl_workloads workloads = {.list = {{h->sequences, 0}}, .count = 1};
    check(mgl_harness_open_shape(h->shape, LAYERS, &workloads, h->capacity, target, &set, &err),
          &err);
    if (!mgl_harness_runs(&set, unit))
        mgl_harness_make_general(&set);
    warm_program(&set, h->shape);
    mgl_harness_clear(&set);
    mgl_kernel_context_clear(&context);
}

static int show_warm(void)
{
    mgl_error err = {0};
    mgl_target target;
    char *text = read_text(options.words[1]), *tuned = NULL;
    const mgl_kernel_unit *unit = find_unit(options.words[0]);
    const mgl_kernel_candidate candidate = {.unit = unit,
                                            .text = text,
                                            .length = strlen(text),
                                            .values = options.tuned,
                                            .value_count = options.tuned_count};
    check(mgl_target_parse("sm_90a:132", &target, &err), &err);
    check(mgl_trial_text(&candidate, &tuned, &err), &err);
    const mgl_cuda_source source = {unit->file, (const unsigned char *)tuned};
    check(mgl_cuda_override_all_sources(&source, 1, &err), &err);
    warm_correctness(unit, &target);
    warm_paired_bench(unit, &target);
    mgl_cuda_override_sources(NULL, 0, NULL);
    mgl_free(tuned);
    mgl_free(text);
    return 0;
}

static int show(const char *what)
{
    mgl_json_out out = {0};
    began = mgl_clock_s();
    mgl_json_out_begin(&out, "megalith.show-kernels/1");
    mgl_json_out_string(&out, "part", what);
    mgl_json_out_string(&out, "shape", options.shape);
    if (!strcmp(what, "equal"))
        show_equal(&out);
    else if (!strcmp(what, "planted"))
        show_planted(&out);
    else
        show_model(&out);
    mgl_json_out_real(&out, "seconds", mgl_clock_s() - began);
    mgl_json_out_bool(&out, "passed", failures == 0);
    mgl_json_out_close(&out);
    printf("%s\n", out.text.bytes);
    mgl_text_clear(&out.text);
    return failures > 0;
}

/* NAME=N; the argument is split in two. */
static bool read_tuned(char *argument)
{
    char *equals = strchr(argument, '=');
    if (!equals || options.tuned_count == MGL_KERNEL_VALUES)
        return false;
    *equals = 0;
    options.tuned[options.tuned_count++] = (mgl_kernel_value){argument, atoll(equals + 1)};
    return true;
}

static bool read_arguments(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        const bool flag = !strncmp(argv[i], "--", 2);
        if (flag && i + 1 == argc)
            return false;
        if (!flag && options.word_count == 2)
            return false;
        if (!flag)
            options.words[options.word_count++] = argv[i];
        else if (!strcmp(argv[i], "--times"))
            options.times = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--device"))
            options.device = argv[++i];
        else if (!strcmp(argv[i], "--shape"))
            options.shape = argv[++i];
        else if (!strcmp(argv[i], "--tune") && read_tuned(argv[i + 1]))
            i++;
        else
            return false;
    }
    return options.times >= 0 && options.times <= MOST_TIMES;
}

static int usage(void)
{
    fprintf(stderr, "usage: show_kernels equal|planted|model [--times N] [--device cuda:N] "
                    "[--shape NAME], plant|ptx|warm UNIT FILE [--tune NAME=N], or delay LINKS "
                    "ROWS\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void); /* with two words; NULL: a part, with none */
    } words[] = {{"equal", NULL},       {"planted", NULL}, {"model", NULL},
                 {"plant", show_plant}, {"ptx", show_ptx}, {"warm", show_warm},
                 {"delay", show_delay}};
    enum { WORDS = sizeof words / sizeof *words };
    int code = 0, i = 0;
    if (mgl_autotune_is_worker(argc, argv, &code))
        return code;
    while (argc > 1 && i < WORDS && strcmp(argv[1], words[i].name) != 0)
        i++;
    if (argc < 2 || i == WORDS || !read_arguments(argc, argv) ||
        options.word_count != (words[i].run ? 2 : 0))
        return usage();
    merge = find_unit("merge");
    return words[i].run ? words[i].run() : show(argv[1]);
}
