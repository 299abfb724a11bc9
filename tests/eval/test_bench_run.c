/* Tests of the benchmark on a device with small models: machine, baseline and reference agree, with
 * an empty and a filled cache, for one and several sequences. Speed is not tested. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "eval/bench.h"
#include "eval/cublas.h"
#include "schedule/tuned/tuned.h"
#include "tests/scratch.h"
#include "vm/cuda/cuda.h"

enum { SKIP = 77 };

static const mgl_config small = {
    .geometry = {256, 3, 8, 2, 64, 512, 4001, 1e-5f},
    .max_positions = 4096,
    .tied = true,
    .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
    .extras = 0};

static const struct {
    int batch, context;
} cases[] = {{1, 0}, {1, 1}, {1, 300}, {1, 3000}, {3, 0}, {3, 700}};
enum { CASES = sizeof cases / sizeof *cases };

static void is_right(const mgl_config *config, int batch, int context)
{
    mgl_error err = {0};
    mgl_bench_result result;
    mgl_bench_request request = {.config = *config,
                                 .dtype = MGL_BF16,
                                 .batch = batch,
                                 .context = context,
                                 .tokens = 8,
                                 .samples = 3,
                                 .seed = 1};
    mgl_status status = mgl_bench_run(&request, NULL, NULL, &result, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    printf("heads of %d, extras %u, batch %d, context %d: errors %.2e and %.2e, %.1f and %.1f us\n",
           (int)config->geometry.head_dim, config->extras, batch, context,
           result.accuracy.machine_error, result.accuracy.baseline_error, result.machine.median,
           result.baseline.median);
    ck_assert_double_gt(result.machine.median, 0);
    ck_assert_double_gt(result.baseline.median, 0);
    ck_assert_double_gt(result.stream.median, 0);
}

START_TEST(machine_and_baseline_are_right)
{
    is_right(&small, cases[_i].batch, cases[_i].context);
}
END_TEST

enum {
    EVERY_BIAS = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS,
    EVERY_EXTRA = EVERY_BIAS | MGL_EXTRA_QK_NORM
};

/* Biases as Qwen2 has them, norms of q and k as Qwen3, and all at once. */
static const struct {
    unsigned extras;
    int heads, kv_heads, head_dim, batch, context;
} families[] = {{MGL_EXTRA_QKV_BIAS, 8, 2, 64, 1, 300},
                {MGL_EXTRA_QKV_BIAS, 8, 2, 64, 3, 700},
                {MGL_EXTRA_QK_NORM, 4, 2, 128, 1, 300},
                {EVERY_EXTRA, 8, 2, 64, 1, 300},
                {EVERY_EXTRA, 4, 2, 128, 3, 0}};
enum { FAMILIES = sizeof families / sizeof *families };

START_TEST(families_are_right)
{
    mgl_config config = small;
    config.extras = families[_i].extras;
    config.geometry.heads = families[_i].heads;
    config.geometry.kv_heads = families[_i].kv_heads;
    config.geometry.head_dim = families[_i].head_dim;
    is_right(&config, families[_i].batch, families[_i].context);
}
END_TEST

/* If no capacity is requested, the result states that. */
START_TEST(a_cache_may_have_more_room_than_the_case_needs)
{
    mgl_error err = {0};
    mgl_bench_result derived, roomy;
    mgl_bench_request request = {.config = small,
                                 .dtype = MGL_BF16,
                                 .batch = 2,
                                 .context = 50,
                                 .tokens = 4,
                                 .samples = 3,
                                 .seed = 2};
    mgl_status status = mgl_bench_run(&request, NULL, NULL, &derived, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    request.capacity = 1024;
    status = mgl_bench_run(&request, NULL, NULL, &roomy, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    ck_assert_int_eq(derived.positions, 55);
    ck_assert(derived.derived);
    ck_assert_int_eq(roomy.positions, 1024);
    ck_assert(!roomy.derived);
}
END_TEST

/* Tokens of a prompt, positions before it, capacity (0: the minimum). The baseline reads it in
 * blocks of 128 rows, the machine in epochs. */
static const struct {
    int tokens, context, capacity;
} prompts[] = {{1, 0, 0}, {200, 0, 0}, {200, 0, 1024}, {129, 300, 0}, {1000, 1500, 4096}};
enum { PROMPTS = sizeof prompts / sizeof *prompts };

static void reads_prompt(const mgl_config *config, int tokens, int context, int capacity)
{
    mgl_error err = {0};
    mgl_bench_result result;
    mgl_bench_request request = {.config = *config,
                                 .dtype = MGL_BF16,
                                 .batch = 1,
                                 .context = context,
                                 .capacity = capacity,
                                 .prompt = tokens,
                                 .tokens = 32,
                                 .samples = 3,
                                 .seed = 1};
    mgl_status status = mgl_bench_run(&request, NULL, NULL, &result, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    printf(
        "heads of %d, prompt of %d behind %d: errors %.2e and %.2e, %.1f and %.1f us, %d epochs\n",
        (int)config->geometry.head_dim, tokens, context, result.accuracy.machine_error,
        result.accuracy.baseline_error, result.machine.median, result.baseline.median,
        result.epochs);
    ck_assert_int_eq(result.epochs, mgl_bench_cut_prompt(result.rows, context, tokens).epochs);
    ck_assert_int_eq(result.positions, capacity ? capacity : context + tokens + 1);
    ck_assert_double_gt(result.machine.median, 0);
    ck_assert_double_gt(result.baseline.median, 0);
    ck_assert_double_gt(result.stream.median, 0);
}

START_TEST(prompts_are_read_right)
{
    reads_prompt(&small, prompts[_i].tokens, prompts[_i].context, prompts[_i].capacity);
}
END_TEST

START_TEST(families_read_prompts_right)
{
    mgl_config config = small;
    config.extras = families[_i].extras;
    config.geometry.heads = families[_i].heads;
    config.geometry.kv_heads = families[_i].kv_heads;
    config.geometry.head_dim = families[_i].head_dim;
    reads_prompt(&config, 150, families[_i].context, 0);
}
END_TEST

START_TEST(samples_are_in_order)
{
    mgl_error err = {0};
    mgl_bench_result result;
    mgl_bench_request request = {
        .config = small, .dtype = MGL_BF16, .batch = 1, .tokens = 4, .samples = 9, .seed = 2};
    mgl_status status = mgl_bench_run(&request, NULL, NULL, &result, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    ck_assert_double_le(result.machine.p10, result.machine.median);
    ck_assert_double_le(result.machine.median, result.machine.p90);
}
END_TEST

/* The same program with cp.async copies, alternating with the other. */
START_TEST(a_second_machine_is_timed_beside_the_first)
{
    mgl_error err = {0};
    mgl_bench_result result;
    mgl_bench_request request = {.config = small,
                                 .also = "compute_80",
                                 .dtype = MGL_BF16,
                                 .batch = 1,
                                 .context = 100,
                                 .tokens = 4,
                                 .samples = 3,
                                 .seed = 2};
    mgl_status status = mgl_bench_run(&request, NULL, NULL, &result, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    printf("%.1f us, and %.1f us by cp.async\n", result.machine.median, result.also.median);
    ck_assert_double_gt(result.also.median, 0);
    ck_assert_double_gt(result.accuracy.also_error, 0);
}
END_TEST

static mgl_bench_request tuned_request(void)
{
    return (mgl_bench_request){.config = small,
                               .tuned = true,
                               .dtype = MGL_BF16,
                               .batch = 1,
                               .tokens = 4,
                               .samples = 3,
                               .seed = 2};
}

START_TEST(without_an_entry_nothing_is_measured)
{
    mgl_error err = {0};
    mgl_bench_result result;
    mgl_bench_request request = tuned_request();
    setenv("XDG_DATA_HOME", "/nonexistent", 1);
    mgl_status status = mgl_bench_run(&request, NULL, NULL, &result, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    ck_assert_str_eq(result.tuned, "");
    ck_assert_str_eq(result.note, "");
    ck_assert_double_eq(result.machine.median, 0);
}
END_TEST

/* With the capacity that `run` would choose. */
START_TEST(an_entry_is_measured_and_named)
{
    char root[] = "/tmp/megalith-bench-XXXXXX", path[64];
    mgl_error err = {0};
    mgl_bench_result result;
    mgl_device machine;
    mgl_bench_request request = tuned_request();
    ck_assert_int_eq(mgl_device_find("cuda", &machine, &err), MGL_OK);
    mgl_tuned entry = {.name = "small",
                       .geometry = small.geometry,
                       .tied = true,
                       .dtype = MGL_BF16,
                       .kv = MGL_BF16,
                       .target = machine.target,
                       .sequences = 1,
                       .capacity_lo = 256,
                       .capacity_hi = 256,
                       .lowering = MGL_LOWERING_VERSION};
    mgl_schedule_config_default(&entry.config);
    entry.config.splits = 2;
    snprintf(entry.device, sizeof entry.device, "%s", machine.name);
    scratch_make(root);
    setenv("XDG_DATA_HOME", root, 1);
    mgl_status status = mgl_tuned_install(&entry, NULL, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    status = mgl_bench_run(&request, NULL, NULL, &result, &err);
    static const char *const left[] = {"/megalith/tuned/small.json", "/megalith/tuned", "/megalith",
                                       ""};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(path, sizeof path, "%s%s", root, left[i]);
        remove(path);
    }
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    ck_assert_str_eq(result.tuned, "small");
    ck_assert_int_eq(result.positions, 256);
    ck_assert_double_gt(result.machine.median, 0);
}
END_TEST

int main(void)
{
    mgl_error err;
    mgl_cuda_probe probe;
    const mgl_cublas *cublas;
    mgl_cuda_get_probe(&probe);
    if (!probe.device_count || !probe.nvrtc || mgl_cublas_open(&cublas, &err)) {
        printf("SKIPPED bench_run: no CUDA device, or no NVRTC or cuBLAS: %s%s\n",
               probe.driver_reason, probe.nvrtc_reason);
        return SKIP;
    }
    TCase *tests = tcase_create("bench_run");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, machine_and_baseline_are_right, 0, CASES);
    tcase_add_loop_test(tests, families_are_right, 0, FAMILIES);
    tcase_add_test(tests, a_cache_may_have_more_room_than_the_case_needs);
    tcase_add_loop_test(tests, prompts_are_read_right, 0, PROMPTS);
    tcase_add_loop_test(tests, families_read_prompts_right, 0, FAMILIES);
    tcase_add_test(tests, samples_are_in_order);
    tcase_add_test(tests, a_second_machine_is_timed_beside_the_first);
    tcase_add_test(tests, without_an_entry_nothing_is_measured);
    tcase_add_test(tests, an_entry_is_measured_and_named);
    Suite *suite = suite_create("bench_run");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
