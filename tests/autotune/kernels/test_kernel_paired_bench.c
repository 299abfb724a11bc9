/*
 * Tests of the verdict on a correct micro-kernel from timing pairs, alone and in a whole model. A
 * scripted runner replaces the device: the first script is for the kernel alone, the next for the
 * model.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/kernels/trial/device_lock.h"
#include "autotune/kernels/trial/trial.h"
#include "base/clock.h"
#include "tests/autotune/search/scripted_runner.h"
#include "tests/time_limit.h"

static scripted_runner runner;
static mgl_kernel_trial trial;

static mgl_status open_runner(void *user, const mgl_subject *subject, mgl_runner **out,
                              mgl_error *err)
{
    (void)subject, (void)err;
    *out = &((scripted_runner *)user)->runner;
    return MGL_OK;
}

static mgl_outcome evaluate(const runner_script *script, int count, mgl_trial_depth depth)
{
    size_t length;
    mgl_error err = {0};
    static const mgl_workloads models = {.list = {{1, 0}, {1, 64}}, .count = 2};
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("norm_linear");
    const mgl_trial_options options = {.depth = depth,
                                       .shape = "smollm2-135m",
                                       .models = &models,
                                       .open_runner = open_runner,
                                       .runner_user = &runner};
    scripted_runner_init(&runner);
    runner.script = script;
    runner.script_count = count;
    runner.seed = 1; /* fixed, because one seed in forty makes a gain of 0 look like a significant
                        loss */
    ck_assert_msg(
        !mgl_kernel_try(unit, mgl_kernel_unit_text(unit, &length), &options, &trial, &err),
        "%s: %s", err.where, err.message);
    return trial.verdict.outcome;
}

#define EVALUATE(depth, ...)                                                                       \
    evaluate((const runner_script[]){__VA_ARGS__},                                                 \
             (int)(sizeof((const runner_script[]){__VA_ARGS__}) / sizeof(runner_script)), depth)

START_TEST(a_gain_is_kept)
{
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = 0.05}), MGL_OUTCOME_OK);
    ck_assert(trial.paired_bench.timed);
    ck_assert_double_eq_tol(trial.paired_bench.gain, 0.05, 0.005);
    ck_assert_double_gt(trial.paired_bench.gain_lo, 0);
    ck_assert_double_gt(trial.paired_bench.results[0].incumbent_us,
                        trial.paired_bench.results[0].candidate_us);
}
END_TEST

START_TEST(a_small_gain_is_none)
{
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = 0.003}), MGL_OUTCOME_NO_GAIN);
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = 0}), MGL_OUTCOME_NO_GAIN);
}
END_TEST

START_TEST(a_loss_is_a_regression)
{
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = -0.05}), MGL_OUTCOME_REGRESSION);
    ck_assert(trial.paired_bench.timed);
}
END_TEST

/* Times below the floor are impossible and are not reported. */
START_TEST(less_than_the_floor_is_no_time)
{
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = 0.05, .below_floor = true}),
                     MGL_OUTCOME_SUBFLOOR);
    ck_assert(!trial.paired_bench.timed);
    ck_assert_double_eq(trial.paired_bench.gain, 0);
    ck_assert_double_eq(trial.paired_bench.results[0].candidate_us, 0);
}
END_TEST

/* The diagnostics are those of campaigns: they name the stage, and count disturbed pairs. */
START_TEST(diagnostics_are_those_of_campaigns)
{
    size_t length;
    static const runner_script gain = {.gain = 0.05};
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("norm_linear");
    const mgl_trial_options options = {.depth = MGL_TRIAL_PAIRED_BENCH,
                                       .shape = "smollm2-135m",
                                       .open_runner = open_runner,
                                       .runner_user = &runner};
    EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = -0.05});
    ck_assert_msg(strstr(trial.verdict.diagnostic, "screened: a gain of -") != NULL, "%s",
                  trial.verdict.diagnostic);
    scripted_runner_init(&runner);
    runner.script = &gain;
    runner.script_count = 1;
    runner.competing = 100;
    ck_assert_int_eq(
        mgl_kernel_try(unit, mgl_kernel_unit_text(unit, &length), &options, &trial, NULL), MGL_OK);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_msg(strstr(trial.verdict.diagnostic, " pairs had an event") != NULL, "%s",
                  trial.verdict.diagnostic);
    ck_assert(!trial.paired_bench.timed);
}
END_TEST

/* The second measurement, in a restarted runner, has the second script. */
START_TEST(too_much_is_measured_again)
{
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = 1.2}, {.gain = 1.2}),
                     MGL_OUTCOME_OK);
    ck_assert_int_eq(runner.starts, 2);
    ck_assert_int_eq(runner.checks, 2);
    ck_assert(memcmp(runner.nonces[0], runner.nonces[1], MGL_SHA256_BYTES) != 0);
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = 1.2}, {.gain = 0.1}),
                     MGL_OUTCOME_SUSPICIOUS);
    ck_assert(!trial.paired_bench.timed);
}
END_TEST

START_TEST(what_is_wrong_is_not_timed)
{
    static const mgl_outcome wrong[] = {MGL_OUTCOME_MISMATCH, MGL_OUTCOME_HANG,
                                        MGL_OUTCOME_ILLEGAL_ADDRESS, MGL_OUTCOME_NONDETERMINISTIC};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.check = wrong[i]}), wrong[i]);
        ck_assert_int_eq(runner.pairs, 0);
        ck_assert_str_eq(trial.verdict.diagnostic, "scripted");
    }
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_PAIRED_BENCH, {.gain = 0.05, .pair = MGL_OUTCOME_MISMATCH}),
                     MGL_OUTCOME_MISMATCH);
    ck_assert(!trial.paired_bench.timed);
}
END_TEST

START_TEST(the_model_has_the_last_word)
{
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_MODELS, {.gain = 0.05}, {.gain = 0.03}), MGL_OUTCOME_OK);
    ck_assert(trial.paired_bench.timed && trial.models.timed);
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_MODELS, {.gain = 0.05}, {.gain = -0.05}),
                     MGL_OUTCOME_MODEL_REGRESSION);
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_MODELS, {.gain = 0.05}, {.gain = 0.001}),
                     MGL_OUTCOME_NO_GAIN);
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_MODELS, {.gain = 0.05}, {.check = MGL_OUTCOME_MISMATCH}),
                     MGL_OUTCOME_MODEL_MISMATCH);
    ck_assert_int_eq(EVALUATE(MGL_TRIAL_MODELS, {.gain = -0.05}, {.gain = 0.05}),
                     MGL_OUTCOME_REGRESSION);
    ck_assert_int_eq(trial.models.workload_count, 0);
}
END_TEST

/* A model without tasks of the unit gives no evidence about it. */
START_TEST(a_model_that_does_not_run_it_decides_nothing)
{
    size_t length;
    static const runner_script gain = {.gain = 0.05};
    static const mgl_workloads models = {.list = {{1, 0}}, .count = 1};
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("attend.general");
    const mgl_trial_options options = {.depth = MGL_TRIAL_MODELS,
                                       .models = &models,
                                       .open_runner = open_runner,
                                       .runner_user = &runner};
    scripted_runner_init(&runner);
    runner.script = &gain;
    runner.script_count = 1;
    ck_assert_int_eq(
        mgl_kernel_try(unit, mgl_kernel_unit_text(unit, &length), &options, &trial, NULL), MGL_OK);
    ck_assert_int_eq(trial.paired_bench.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    ck_assert_msg(strstr(trial.verdict.diagnostic, "no task of llama-1b runs") != NULL, "%s",
                  trial.verdict.diagnostic);
}
END_TEST

/* ---- device lock ----------------------------------------------------------------------------- */

static struct {
    const char *path;
    mgl_device_lock lock; /* shared */
} sharing;

/* Whether an exclusive holder waits, so that a new shared holder would have to wait. */
static bool is_wished_alone(void)
{
    static const atomic_int at_once = 1;
    mgl_device_lock lock;
    const mgl_status status =
        mgl_device_lock_take(sharing.path, MGL_DEVICE_LOCK_SHARED, &at_once, &lock, NULL);
    mgl_device_lock_end(&lock);
    return status == MGL_INTERRUPTED;
}

/* Ends the shared lock 100 ms after an exclusive waiter is seen. */
static void *end_device_lock(void *unused)
{
    const double end = mgl_clock_s() + time_limit(60);
    while (!is_wished_alone() && mgl_clock_s() < end)
        usleep(1000);
    usleep(100 * 1000);
    mgl_device_lock_end(&sharing.lock);
    return unused;
}

/* A timed measurement waits until no process shares the device. */
START_TEST(times_are_taken_alone)
{
    size_t length;
    char path[] = "/tmp/megalith-paired-bench-XXXXXX";
    static const runner_script gain = {.gain = 0.05};
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("norm_linear");
    const mgl_trial_options options = {.depth = MGL_TRIAL_PAIRED_BENCH,
                                       .shape = "smollm2-135m",
                                       .device_lock = path,
                                       .open_runner = open_runner,
                                       .runner_user = &runner};
    mgl_device_lock lock;
    pthread_t thread;
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    sharing.path = path;
    ck_assert_int_eq(mgl_device_lock_take(path, MGL_DEVICE_LOCK_SHARED, NULL, &sharing.lock, NULL),
                     MGL_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, end_device_lock, NULL), 0);
    scripted_runner_init(&runner);
    runner.script = &gain;
    runner.script_count = 1;
    ck_assert_int_eq(
        mgl_kernel_try(unit, mgl_kernel_unit_text(unit, &length), &options, &trial, NULL), MGL_OK);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_double_ge(trial.spent.waiting, 0.05);
    ck_assert_int_eq(mgl_device_lock_take(path, MGL_DEVICE_LOCK_ALONE, NULL, &lock, NULL), MGL_OK);
    mgl_device_lock_end(&lock);
    close(file);
    unlink(path);
}
END_TEST

/* ---- a real checkpoint ----------------------------------------------------------------------- */

static struct {
    int calls, sequences[4];
    int32_t other;       /* added to one token of the candidate's reply */
    float gap;           /* gap of the two tokens' log-probabilities under the default */
    mgl_outcome outcome; /* outcome of the candidate's run */
} decoding;

static mgl_status decode(mgl_runner *self, const mgl_real_texts *texts, int program, int sequences,
                         mgl_real_numbers *out, mgl_trial_verdict *verdict, mgl_error *err)
{
    const int last = texts->length - 1;
    (void)self, (void)program, (void)err;
    memset(out, 0, sizeof *out);
    for (int side = 0; side < MGL_SIDES; side++)
        memcpy(out->made[side], texts->ids, sizeof texts->ids);
    out->made[MGL_CANDIDATE][last] += decoding.other;
    out->of_made[MGL_CANDIDATE][last] = -decoding.gap;
    decoding.sequences[decoding.calls++] = sequences;
    mgl_trial_verdict_set(verdict, decoding.outcome, "%s",
                          decoding.outcome == MGL_OUTCOME_OK ? "" : "scripted");
    return MGL_OK;
}

static mgl_status try_checkpoint(const char *path, mgl_error *err)
{
    size_t length;
    static const runner_script gains[] = {{.gain = 0.05}, {.gain = 0.05}, {.gain = 0.05}};
    static const mgl_workloads models = {.list = {{1, 0}}, .count = 1};
    const mgl_kernel_unit *unit = mgl_kernel_unit_find("norm_linear");
    const mgl_trial_options options = {.depth = MGL_TRIAL_PROMOTE,
                                       .shape = "smollm2-135m",
                                       .models = &models,
                                       .checkpoint = path,
                                       .open_runner = open_runner,
                                       .runner_user = &runner};
    scripted_runner_init(&runner);
    runner.runner.decode = decode;
    runner.script = gains;
    runner.script_count = 3;
    decoding.calls = 0;
    return mgl_kernel_try(unit, mgl_kernel_unit_text(unit, &length), &options, &trial, err);
}

/* A different token is rounding if the default finds both tokens about equally likely, otherwise a
 * fault. */
START_TEST(the_checkpoint_speaks_last)
{
    static const char path[] = MGL_SOURCE_DIR "/tests/models/tales-5m";
    memset(&decoding, 0, sizeof decoding);
    ck_assert_int_eq(try_checkpoint(path, NULL), MGL_OK);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_int_eq(decoding.calls, 2);
    ck_assert_int_eq(decoding.sequences[0], 1);
    ck_assert_int_gt(decoding.sequences[1], 1);
    ck_assert(trial.real.checked && trial.real.parted == 0 && trial.real.texts > 0);
    decoding.other = 1;
    decoding.gap = 0.1f;
    ck_assert_int_eq(try_checkpoint(path, NULL), MGL_OK);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_int_eq(trial.real.parted, 2);
    decoding.gap = 3;
    ck_assert_int_eq(try_checkpoint(path, NULL), MGL_OK);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_MODEL_MISMATCH);
    ck_assert_int_eq(decoding.calls, 1);
    ck_assert_msg(strstr(trial.verdict.diagnostic, "on the real checkpoint") != NULL, "%s",
                  trial.verdict.diagnostic);
}
END_TEST

START_TEST(what_fails_on_the_checkpoint_is_not_kept)
{
    static const char path[] = MGL_SOURCE_DIR "/tests/models/tales-5m";
    memset(&decoding, 0, sizeof decoding);
    decoding.outcome = MGL_OUTCOME_HANG;
    ck_assert_int_eq(try_checkpoint(path, NULL), MGL_OK);
    ck_assert_int_eq(trial.verdict.outcome, MGL_OUTCOME_HANG);
    ck_assert_str_eq(trial.verdict.diagnostic, "scripted");
}
END_TEST

/* An invalid checkpoint is an error before any measurement starts. */
START_TEST(a_checkpoint_that_is_none_ends_it_first)
{
    mgl_error err = {0};
    ck_assert_int_eq(try_checkpoint(MGL_SOURCE_DIR "/tests/autotune", &err), MGL_BAD_INPUT);
    ck_assert_int_eq(runner.starts, 0);
}
END_TEST

START_TEST(a_runner_without_a_clock_leaves_it_unmeasured)
{
    static const runner_script right = {0};
    scripted_runner_init(&runner);
    EVALUATE(MGL_TRIAL_PAIRED_BENCH, right);
    runner.runner.measures = false;
    const mgl_trial_options options = {.open_runner = open_runner, .runner_user = &runner};
    mgl_harness_set set;
    mgl_kernel_paired_bench paired_bench;
    unsigned char nonce[MGL_SHA256_BYTES] = {0};
    const mgl_target target = {.arch = "sm_90a", .queues = 132, .shared_bytes = 232448};
    ck_assert_int_eq(mgl_harness_open(mgl_harness_get(0), &target, &set, NULL), MGL_OK);
    mgl_candidate candidate = set.program;
    strcpy(candidate.digest, "other");
    ck_assert_int_eq(mgl_trial_paired_bench(&options, &set, &set.program, &candidate, nonce,
                                            &paired_bench, NULL),
                     MGL_OK);
    ck_assert_int_eq(paired_bench.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    mgl_harness_clear(&set);
}
END_TEST

START_TEST(a_text_has_its_tunables_in_front)
{
    static const char text[] = "/* region: launch */\n/* tunable tile: 4 8 */\n"
                               "/* region: end */\n";
    static const mgl_kernel_value value = {"tile", 8};
    mgl_kernel_candidate candidate = {.unit = mgl_kernel_unit_find("merge"),
                                      .text = text,
                                      .length = sizeof text - 1,
                                      .values = &value,
                                      .value_count = 1};
    char *out;
    ck_assert_int_eq(mgl_trial_text(&candidate, &out, NULL), MGL_OK);
    ck_assert_ptr_eq(strstr(out, "#define TUNE_TILE 8\n"), out);
    ck_assert_int_eq(strncmp(out + strlen("#define TUNE_TILE 8\n"), text, strlen(text)), 0);
    ck_assert_str_eq(out + strlen("#define TUNE_TILE 8\n") + strlen(text), "#undef TUNE_TILE\n");
    free(out);
    candidate.value_count = 0;
    ck_assert_int_eq(mgl_trial_text(&candidate, &out, NULL), MGL_OK);
    ck_assert_ptr_eq(strstr(out, "#define TUNE_TILE 4\n"), out);
    free(out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_paired_bench");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_gain_is_kept);
    tcase_add_test(all, a_small_gain_is_none);
    tcase_add_test(all, a_loss_is_a_regression);
    tcase_add_test(all, less_than_the_floor_is_no_time);
    tcase_add_test(all, diagnostics_are_those_of_campaigns);
    tcase_add_test(all, too_much_is_measured_again);
    tcase_add_test(all, what_is_wrong_is_not_timed);
    tcase_add_test(all, the_model_has_the_last_word);
    tcase_add_test(all, a_model_that_does_not_run_it_decides_nothing);
    tcase_add_test(all, times_are_taken_alone);
    tcase_add_test(all, the_checkpoint_speaks_last);
    tcase_add_test(all, what_fails_on_the_checkpoint_is_not_kept);
    tcase_add_test(all, a_checkpoint_that_is_none_ends_it_first);
    tcase_add_test(all, a_runner_without_a_clock_leaves_it_unmeasured);
    tcase_add_test(all, a_text_has_its_tunables_in_front);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
