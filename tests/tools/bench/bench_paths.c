/*
 * Measures each kernel variant of schedule/variants.def: for a row of the benchmark, the default
 * program against the program with the variant in place of those that lowering chose (row_paths.h).
 *
 *     bench_paths [--device cuda] [--tokens 32] [--seconds 1.5] SHAPE:BATCH:CONTEXT[:CAPACITY]...
 *     bench_paths --list [--target sm_90a:132] [--tokens 32] SHAPE:BATCH:CONTEXT[:CAPACITY]...
 *
 * Both programs are resident. Their launches alternate in pairs of random order
 * (eval/paired_bench.h). Before the timing, each program must generate the same tokens and logits
 * twice on poisoned memory, and agree with an f32 reference on the device that reads these tokens
 * (autotune/runner/compare.h). Weights and cache are synthetic. All kernels are compiled first, in
 * parallel on all processors.
 *
 * Prints one JSON object. `ratio` is the variant's time over the default's: above 1 the default is
 * faster. `lo` and `hi` bound the ratio, each with an error probability of 0.5 %
 * (autotune/candidates/judge.h). --list needs no device and prints a line per variant: ROW FAMILY
 * VARIANT, then `chosen`, `permitted` or `refused`; how many tasks of the family have the variant,
 * which other variants remain, and why the other tasks do not have it. Exit code 4 without a GPU, 6
 * for a permitted variant with wrong results.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/candidates/judge.h"
#include "autotune/runner/compare.h"
#include "base/clock.h"
#include "base/draw.h"
#include "base/format.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "eval/paired_bench.h"
#include "eval/statistics.h"
#include "tests/tools/bench/row_paths.h"
#include "vm/cuda/cuda.h"
#include "vm/pipeline/device.h"

enum {
    MOST_ROWS = 32,
    MOST_TOKENS = 256,
    MOST_KERNELS = MOST_ROWS * MOST_PATHS,
    WARM_UPS = 2,
    LEAST_PAIRS = 9,
    MOST_PAIRS = 200,
    SEED = 7
};
static const double level = 0.005;

/* One row of the benchmark. */
typedef struct subject {
    row of;
    mgl_graph *graph;
    mgl_program *program; /* the default */
    row_paths ways;
} subject;

/* A kernel that some variants share. */
typedef struct kernel {
    char key[MGL_SHA256_HEX];
    mgl_cuda_compilation *compilation;
    double compile_s; /* compile time in s; 0: it was in the cache */
} kernel;

static struct {
    bool list;
    const char *device, *target;
    int tokens;
    double seconds;
    subject subjects[MOST_ROWS]; /* (count) */
    int count;
    mgl_target on;
    kernel kernels[MOST_KERNELS]; /* (kernel_count) */
    int kernel_count;
    double compile_s; /* all kernels */
    int wrong;        /* number of failed variants and rows */
    mgl_paired_bench_device facts;
    mgl_json_out out;
} bench = {.device = "cuda", .target = "sm_90a:132", .tokens = 32, .seconds = 1.5};

/* The row being measured. */
static struct {
    const subject *subject;
    mgl_paired_bench *paired_bench;
    mgl_paired_bench_load load;
    size_t vocab;
    float *logits[2]; /* (batch, vocab) of two launches */
    float *wanted;    /* (batch, vocab) of the reference's last step */
    float *steps;     /* (3, batch, tokens): largest, chosen, norms */
    int32_t made[MGL_SIDES][MGL_MAX_ROWS * MOST_TOKENS];
    int32_t fed[MGL_MAX_ROWS * MOST_TOKENS]; /* tokens that the reference was fed with */
    bool referred;
} now;

/* Results of a program. */
typedef struct result {
    mgl_paired_bench_facts facts;
    double compile_s;
    mgl_trial_verdict verdict;
    double error; /* relative L2 of the last logits; -1: none */
    mgl_pair pairs[MOST_PAIRS];
    int pair_count;
} result;

/* ---- rows ------------------------------------------------------------------------------------ */

static mgl_status open_subject(subject *s, mgl_error *err)
{
    mgl_status status = row_lower(&s->of, &bench.on, &s->graph, &s->program, err);
    return status ? status : row_find_paths(s->program, s->graph, &s->ways, err);
}

static void close_subject(subject *s)
{
    mgl_program_free(s->program);
    mgl_graph_free(s->graph);
}

static void list(const subject *s)
{
    static const char *const kinds[] = {"chosen", "permitted", "refused"};
    for (int i = 0; i < s->ways.count; i++) {
        const way *w = &s->ways.list[i];
        printf("%s %s %s %s", s->of.text, path_family_name(w->family),
               mgl_variant_get(w->variant)->name, kinds[w->kind]);
        if (w->kind != PATH_REFUSED)
            printf(" %d/%d beside %s", w->tasks, w->all, w->beside);
        if (w->code)
            printf(" MG%d %s", w->code, w->reason);
        printf("\n");
    }
}

/* Lowers the program of a variant; NULL: the default. */
static mgl_status make_program(const subject *s, const way *of, mgl_program **out, mgl_error *err)
{
    mgl_graph *graph;
    mgl_status status = row_lower(&s->of, &bench.on, &graph, out, err);
    mgl_graph_free(graph);
    if (!status && of)
        path_apply(of, *out);
    return status;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static kernel *find_kernel(const mgl_program *program)
{
    char key[MGL_SHA256_HEX];
    mgl_cuda_kernel_key(program, bench.on.arch, 0, key);
    for (int i = 0; i < bench.kernel_count; i++)
        if (!strcmp(bench.kernels[i].key, key))
            return &bench.kernels[i];
    memcpy(bench.kernels[bench.kernel_count].key, key, sizeof key);
    return &bench.kernels[bench.kernel_count++];
}

static mgl_status finish_kernel(kernel *k, mgl_error *err)
{
    mgl_cuda_image image;
    mgl_status status = mgl_cuda_compile_finish(k->compilation, NULL, &image, err);
    k->compile_s = image.compile_s;
    mgl_cuda_image_clear(&image);
    return status;
}

/* Starts compiling the program's kernel, unless another program has the same. At most one per
 * processor. */
static mgl_status start_kernel(const mgl_program *program, mgl_error *err)
{
    static int finished;
    const int before = bench.kernel_count;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    mgl_status status = MGL_OK;
    kernel *k = program ? find_kernel(program) : NULL;
    if (k && bench.kernel_count > before)
        status = mgl_cuda_compile_start(program, bench.on.arch, 0, &k->compilation, err);
    while (!status && finished < bench.kernel_count &&
           (!program || bench.kernel_count - finished >= processors))
        status = finish_kernel(&bench.kernels[finished++], err);
    return status;
}

static mgl_status compile_subject(const subject *s, mgl_error *err)
{
    mgl_status status = start_kernel(s->program, err);
    for (int i = 0; i < s->ways.count && !status; i++) {
        mgl_program *program = NULL;
        if (s->ways.list[i].kind != PATH_PERMITTED)
            continue;
        status = make_program(s, &s->ways.list[i], &program, err);
        if (!status)
            status = start_kernel(program, err);
        mgl_program_free(program);
    }
    return status;
}

static mgl_status compile_all(mgl_error *err)
{
    mgl_status status = MGL_OK;
    double start = mgl_clock_s();
    for (int i = 0; i < bench.count && !status; i++)
        status = compile_subject(&bench.subjects[i], err);
    if (!status)
        status = start_kernel(NULL, err);
    bench.compile_s = mgl_clock_s() - start;
    fprintf(stderr, "bench_paths: %d kernels in %.1f s\n", bench.kernel_count, bench.compile_s);
    return status;
}

/* ---- whether a program is right -------------------------------------------------------------- */

/* Two launches on differently poisoned memory. */
static mgl_status launch_twice(mgl_side side, result *r, mgl_error *err)
{
    mgl_paired_bench_load load = now.load;
    static int32_t again[MGL_MAX_ROWS * MOST_TOKENS];
    const size_t words = (size_t)load.batch * (size_t)load.tokens;
    double seconds;
    load.poison = true;
    for (int i = 0; i < 2; i++) {
        int32_t *made = i ? again : now.made[side];
        mgl_status status =
            mgl_paired_bench_run(now.paired_bench, side, &load, made, &seconds, err);
        if (!status)
            status = mgl_paired_bench_get_logits(now.paired_bench, side, now.logits[i], err);
        if (status)
            return status;
    }
    if (mgl_compare_words(now.made[side], again, words) >= 0 ||
        mgl_compare_words(now.logits[0], now.logits[1], (size_t)load.batch * now.vocab) >= 0)
        mgl_trial_verdict_set(&r->verdict, MGL_OUTCOME_NONDETERMINISTIC,
                              "two launches made other tokens or logits");
    return MGL_OK;
}

/* Runs the reference with the tokens, unless it was run with them already. */
static mgl_status refer(const int32_t *made, mgl_error *err)
{
    const size_t words = (size_t)now.load.batch * (size_t)now.load.tokens;
    const int last = now.load.tokens - 1;
    const mgl_paired_bench_reference out = {.largest = now.steps,
                                            .chosen = now.steps + words,
                                            .norms = now.steps + 2 * words,
                                            .steps = &last,
                                            .step_count = 1,
                                            .logits = now.wanted};
    if (now.referred && !memcmp(now.fed, made, words * sizeof *made))
        return MGL_OK;
    mgl_status status = mgl_paired_bench_refer(now.paired_bench, &now.load, made, &out, err);
    memcpy(now.fed, made, words * sizeof *made);
    now.referred = !status;
    return status;
}

static mgl_status check_numbers(mgl_side side, result *r, mgl_error *err)
{
    const mgl_workload workload = {now.load.batch, now.load.context};
    const size_t words = (size_t)now.load.batch * (size_t)now.load.tokens;
    const int vocab = (int)now.vocab, tokens = now.load.tokens;
    const int32_t *made = now.made[side];
    if (!mgl_compare_known(workload, tokens, made, vocab, &r->verdict))
        return MGL_OK;
    mgl_status status = refer(made, err);
    if (status)
        return status;
    const mgl_compare_reference reference = {now.steps, now.steps + words, now.steps + 2 * words};
    mgl_compare_tokens(workload, tokens, made, &reference, vocab, &r->verdict);
    for (int s = 0; s < now.load.batch && r->verdict.outcome == MGL_OUTCOME_OK; s++) {
        const mgl_compare_place place = {workload, s, tokens - 1};
        const size_t at = (size_t)s * now.vocab;
        double error;
        mgl_compare_logits(&place, now.logits[0] + at, now.wanted + at, vocab, &error, &r->verdict);
        r->error = fmax(r->error, error);
    }
    return MGL_OK;
}

/* Sets a program on a side and checks its results. An error is the program's. */
static void set(mgl_side side, mgl_program *program, result *r)
{
    mgl_error err = {0};
    *r = (result){.error = -1};
    r->compile_s = find_kernel(program)->compile_s;
    mgl_status status = mgl_paired_bench_set(now.paired_bench, side, program, &r->facts, &err);
    if (!status)
        status = launch_twice(side, r, &err);
    if (!status && r->verdict.outcome == MGL_OUTCOME_OK)
        status = check_numbers(side, r, &err);
    if (status)
        mgl_trial_verdict_set(&r->verdict, MGL_OUTCOME_LAUNCH, "%s", err.message);
}

/* ---- time ------------------------------------------------------------------------------------ */

static mgl_status time_launch(mgl_side side, double *us, mgl_paired_bench_clocks *clocks, result *r,
                              mgl_error *err)
{
    int32_t made[MGL_MAX_ROWS * MOST_TOKENS];
    const size_t words = (size_t)now.load.batch * (size_t)now.load.tokens;
    double seconds;
    mgl_status status =
        mgl_paired_bench_run(now.paired_bench, side, &now.load, made, &seconds, err);
    *us = seconds * 1e6 / now.load.tokens;
    mgl_paired_bench_look(now.paired_bench, clocks);
    if (!status && memcmp(made, now.made[side], words * sizeof *made) != 0)
        mgl_trial_verdict_set(&r->verdict, MGL_OUTCOME_MISMATCH,
                              "a timed launch made other tokens");
    return status;
}

static mgl_status measure_pair(bool candidate_first, mgl_pair *pair, result *r, mgl_error *err)
{
    mgl_paired_bench_clocks looks[1 + MGL_SIDES];
    *pair = (mgl_pair){.candidate_first = candidate_first, .stage = MGL_PAIRS_CONTROL};
    mgl_status status = MGL_OK;
    mgl_paired_bench_look(now.paired_bench, &looks[0]);
    for (int i = 0; i < MGL_SIDES && !status; i++) {
        const mgl_side side = (i == 0) == candidate_first ? MGL_CANDIDATE : MGL_INCUMBENT;
        double *us = side == MGL_CANDIDATE ? &pair->candidate_us : &pair->incumbent_us;
        status = time_launch(side, us, &looks[1 + i], r, err);
    }
    if (!status)
        mgl_judge_note_clocks(looks, pair);
    return status;
}

static mgl_status measure_pairs(result *r, mgl_error *err)
{
    static uint64_t draws = SEED;
    const double start = mgl_clock_s();
    mgl_status status = MGL_OK;
    mgl_pair warm;
    for (int i = 0; i < WARM_UPS && !status; i++)
        status = measure_pair(false, &warm, r, err);
    while (!status && r->pair_count < MOST_PAIRS &&
           (r->pair_count < LEAST_PAIRS || mgl_clock_s() - start < bench.seconds))
        status = measure_pair(mgl_draw(&draws) & 1, &r->pairs[r->pair_count++], r, err);
    mgl_judge_drop(r->pairs, r->pair_count);
    return status;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void put_quantiles(const result *r)
{
    double us[MOST_PAIRS], other[MOST_PAIRS], ratios[MOST_PAIRS];
    size_t used = 0;
    for (int i = 0; i < r->pair_count; i++) {
        if (r->pairs[i].dropped)
            continue;
        us[used] = r->pairs[i].candidate_us;
        other[used] = r->pairs[i].incumbent_us;
        ratios[used] = us[used] / other[used];
        used++;
    }
    mgl_json_out_int(&bench.out, "pairs", (int64_t)used);
    mgl_json_out_int(&bench.out, "dropped", r->pair_count - (int64_t)used);
    if (used == 0)
        return;
    mgl_json_out_real(&bench.out, "us", mgl_median(us, used));
    mgl_json_out_real(&bench.out, "default_us", mgl_median(other, used));
    mgl_json_out_real(&bench.out, "ratio", mgl_median(ratios, used));
    mgl_json_out_real(&bench.out, "p10", mgl_quantile(ratios, used, 0.1));
    mgl_json_out_real(&bench.out, "p90", mgl_quantile(ratios, used, 0.9));
}

static void put_pairs(const result *r)
{
    mgl_interval found;
    if (r->pair_count == 0)
        return;
    put_quantiles(r);
    if (mgl_judge_workload(r->pairs, r->pair_count, 0, MGL_PAIRS_CONTROL, level, &found, NULL) ||
        found.used == 0)
        return;
    mgl_json_out_real(&bench.out, "lo", exp(-found.hi));
    mgl_json_out_real(&bench.out, "hi", exp(-found.lo));
}

static void put_result(const result *r)
{
    mgl_json_out_string(&bench.out, "outcome", mgl_outcome_name(r->verdict.outcome));
    if (r->verdict.outcome != MGL_OUTCOME_OK)
        mgl_json_out_string(&bench.out, "diagnostic", r->verdict.diagnostic);
    mgl_json_out_real(&bench.out, "compile_s", r->compile_s);
    mgl_json_out_int(&bench.out, "registers", r->facts.vm.registers);
    mgl_json_out_int(&bench.out, "spill_bytes", r->facts.vm.spill_bytes);
    mgl_json_out_int(&bench.out, "shared_bytes", r->facts.vm.shared_bytes);
    mgl_json_out_real(&bench.out, "logits_rel_l2", r->error);
    put_pairs(r);
}

static void put_path(const way *w)
{
    mgl_json_out_object(&bench.out, NULL);
    mgl_json_out_string(&bench.out, "family", path_family_name(w->family));
    mgl_json_out_string(&bench.out, "variant", mgl_variant_get(w->variant)->name);
    if (w->kind != PATH_REFUSED) {
        mgl_json_out_int(&bench.out, "tasks", w->tasks);
        mgl_json_out_int(&bench.out, "of", w->all);
        mgl_json_out_string(&bench.out, "beside", w->beside);
    }
    if (w->code) {
        char code[16];
        snprintf(code, sizeof code, "MG%d", w->code);
        mgl_json_out_string(&bench.out, "code", code);
        mgl_json_out_string(&bench.out, "refused", w->reason);
    }
}

/* ---- measuring a row ------------------------------------------------------------------------- */

static mgl_status open_row(const subject *s, mgl_error *err)
{
    mgl_paired_bench_options options = {.device = bench.device};
    const size_t batch = (size_t)s->of.batch;
    memset(&now, 0, sizeof now);
    now.subject = s;
    now.load = (mgl_paired_bench_load){
        .batch = s->of.batch, .context = s->of.context, .tokens = bench.tokens, .seed = SEED};
    mgl_status status = mgl_synthetic_find_shape(s->of.shape, &options.config, err);
    if (status)
        return status;
    now.vocab = (size_t)options.config.geometry.vocab;
    for (int i = 0; i < 2; i++)
        now.logits[i] = mgl_alloc(batch * now.vocab * sizeof(float));
    now.wanted = mgl_alloc(batch * now.vocab * sizeof(float));
    now.steps = mgl_alloc(3 * batch * (size_t)bench.tokens * sizeof(float));
    if (!now.logits[0] || !now.logits[1] || !now.wanted || !now.steps)
        return mgl_fail_memory(err, batch * now.vocab * sizeof(float));
    status = mgl_paired_bench_open(&options, &now.paired_bench, err);
    return status ? status : mgl_paired_bench_get_device(now.paired_bench, &bench.facts, err);
}

static void close_row(void)
{
    mgl_paired_bench_close(now.paired_bench);
    mgl_free(now.logits[0]);
    mgl_free(now.logits[1]);
    mgl_free(now.wanted);
    mgl_free(now.steps);
}

static mgl_status measure_path(const way *w, mgl_error *err)
{
    static result r;
    mgl_program *program;
    mgl_status status = make_program(now.subject, w, &program, err);
    if (status)
        return status;
    set(MGL_CANDIDATE, program, &r);
    if (r.verdict.outcome == MGL_OUTCOME_OK)
        status = measure_pairs(&r, err);
    bench.wrong += r.verdict.outcome != MGL_OUTCOME_OK;
    put_result(&r);
    fprintf(stderr, "bench_paths: %s %s %s: %s\n", now.subject->of.text,
            path_family_name(w->family), mgl_variant_get(w->variant)->name,
            r.verdict.outcome == MGL_OUTCOME_OK ? "measured" : r.verdict.diagnostic);
    return status;
}

static mgl_status measure_default(mgl_error *err)
{
    static result r;
    char names[PATH_NAMES];
    mgl_program *program;
    mgl_status status = make_program(now.subject, NULL, &program, err);
    if (status)
        return status;
    mgl_json_out_object(&bench.out, "default");
    kernel_path_names(program, MGL_FAMILY_PRODUCT, names);
    mgl_json_out_string(&bench.out, "product", names);
    kernel_path_names(program, MGL_FAMILY_ATTENTION, names);
    mgl_json_out_string(&bench.out, "attention", names);
    set(MGL_INCUMBENT, program, &r);
    put_result(&r);
    mgl_json_out_close_object(&bench.out);
    return r.verdict.outcome == MGL_OUTCOME_OK ? MGL_OK
                                               : mgl_fail(err, MGL_GATE, now.subject->of.text,
                                                          "the default: %s", r.verdict.diagnostic);
}

/* Reports the error of a row; the next row is still measured. */
static void measure_row(const subject *s)
{
    mgl_error err = {0};
    mgl_json_out_object(&bench.out, NULL);
    mgl_json_out_string(&bench.out, "row", s->of.text);
    mgl_json_out_int(&bench.out, "rows", s->program->limits.rows);
    mgl_json_out_int(&bench.out, "capacity", s->program->limits.capacity);
    mgl_status status = open_row(s, &err);
    if (!status)
        status = measure_default(&err);
    mgl_json_out_array(&bench.out, "ways");
    for (int i = 0; i < s->ways.count && !status; i++) {
        put_path(&s->ways.list[i]);
        if (s->ways.list[i].kind == PATH_PERMITTED)
            status = measure_path(&s->ways.list[i], &err);
        mgl_json_out_close_object(&bench.out);
    }
    mgl_json_out_close_array(&bench.out);
    if (status)
        mgl_json_out_string(&bench.out, "error", err.message);
    bench.wrong += status != MGL_OK;
    mgl_json_out_close_object(&bench.out);
    close_row();
}

static mgl_status measure_all(mgl_error *err)
{
    mgl_status status = compile_all(err);
    mgl_json_out_begin(&bench.out, "megalith.bench_paths/1");
    mgl_json_out_int(&bench.out, "tokens", bench.tokens);
    mgl_json_out_int(&bench.out, "kernels", bench.kernel_count);
    mgl_json_out_real(&bench.out, "compile_s", bench.compile_s);
    mgl_json_out_array(&bench.out, "rows");
    for (int i = 0; i < bench.count && !status; i++)
        measure_row(&bench.subjects[i]);
    mgl_json_out_close_array(&bench.out);
    mgl_json_out_string(&bench.out, "device", bench.facts.name);
    mgl_json_out_int(&bench.out, "wrong", bench.wrong);
    mgl_json_out_close(&bench.out);
    if (!status && !bench.out.text.failed)
        printf("%s\n", bench.out.text.bytes);
    mgl_text_clear(&bench.out.text);
    if (!status && bench.wrong)
        status =
            mgl_fail(err, MGL_GATE, NULL, "%d ways or rows are wrong: see the result", bench.wrong);
    return status;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--list"))
            bench.list = true;
        else if (!strcmp(argv[i], "--device") && (bench.device = value)[0])
            i++;
        else if (!strcmp(argv[i], "--target") && (bench.target = value)[0])
            i++;
        else if (!strcmp(argv[i], "--tokens") && (bench.tokens = atoi(value)) > 0 &&
                 bench.tokens <= MOST_TOKENS)
            i++;
        else if (!strcmp(argv[i], "--seconds") && (bench.seconds = atof(value)) > 0)
            i++;
        else if (argv[i][0] == '-' || bench.count == MOST_ROWS ||
                 !row_parse(argv[i], bench.tokens, &bench.subjects[bench.count].of))
            return fprintf(stderr, "bench_paths: what is %s?\n", argv[i]), false;
        else
            bench.count++;
    }
    return bench.count > 0 ||
           (fprintf(stderr, "bench_paths [--list] SHAPE:BATCH:CONTEXT[:CAPACITY]...\n"), false);
}

static mgl_status find_target(mgl_error *err)
{
    mgl_device device;
    if (bench.list)
        return mgl_target_parse(bench.target, &bench.on, err);
    mgl_status status = mgl_device_find(bench.device, &device, err);
    if (!status && device.kind != MGL_VM_CUDA)
        status = mgl_fail(err, MGL_DEVICE, bench.device, "only a GPU is timed");
    bench.on = device.target;
    return status;
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    if (argc > 2 && !strcmp(argv[1], MGL_CUDA_WORKER_FLAG))
        return mgl_cuda_compile_worker(argv[2]);
    mgl_cuda_compile_use_child("/proc/self/exe");
    if (!parse(argc, argv))
        return MGL_USAGE;
    mgl_status status = find_target(&err);
    for (int i = 0; i < bench.count && !status; i++) {
        status = open_subject(&bench.subjects[i], &err);
        if (!status && bench.list)
            list(&bench.subjects[i]);
    }
    if (!status && !bench.list)
        status = measure_all(&err);
    for (int i = 0; i < bench.count; i++)
        close_subject(&bench.subjects[i]);
    if (status)
        fprintf(stderr, "bench_paths: %s: %s\n", err.where, err.message);
    return (int)status;
}
