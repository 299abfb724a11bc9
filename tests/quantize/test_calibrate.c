/*
 * Tests of calibrated quantization: all families, continued after interruptions and failures with
 * the same bytes, other commands over unfinished work, memory, the time limit, and mixed precision.
 * Skipped if OpenBLAS is not installed.
 */
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "importer/layout.h"
#include "quantize/calibrate/blas.h"
#include "quantize/quantize.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODELS MGL_SOURCE_DIR "/tests/models/"

static char root[] = "/tmp/megalith-calibrate-XXXXXX";
static char folder[400], whole[400]; /* of the tested model, and of one made without interruption */
static mgl_error err;
static mgl_quantize_report report;

static void set_up(void)
{
    scratch_make(root);
    snprintf(folder, sizeof folder, "%s/q", root);
    snprintf(whole, sizeof whole, "%s/whole", root);
}

static void tear_down(void)
{
    mgl_memory_pretend(0);
    scratch_remove(root);
}

enum { SAMPLES = 5, LENGTH = 48 };

/* A request for GPTQ with samples of several lengths. */
static mgl_quantize_request request_of(mgl_weight_format layers)
{
    static int32_t ids[SAMPLES][LENGTH];
    static mgl_ids samples[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < LENGTH; k++)
            ids[i][k] = (i * 31 + k * k * 7 + k) % 150;
        samples[i] = (mgl_ids){ids[i], (size_t)(LENGTH - 9 * i)};
    }
    return (mgl_quantize_request){.method = MGL_METHOD_GPTQ,
                                  .layers = layers,
                                  .own_scales = true,
                                  .samples = samples,
                                  .sample_count = SAMPLES};
}

/* clang-format off */
#define INT4       {MGL_CODE_INT4, 0, 32, 1, false}
#define INT4_ZEROS {MGL_CODE_INT4, 0, 16, 1, true}
#define FP8        {MGL_CODE_E4M3, 0, MGL_GROUP_ALL, 1, false}
/* clang-format on */
static const mgl_weight_format int4 = INT4, int4_zeros = INT4_ZEROS;

static mgl_status quantize(const char *model, const mgl_quantize_request *request, const char *to)
{
    char path[400];
    snprintf(path, sizeof path, MODELS "%s", model);
    return mgl_quantize(path, request, to, &report, &err);
}

static void must(mgl_status status)
{
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
}

static bool is_equal(const char *a, const char *b)
{
    char command[900];
    snprintf(command, sizeof command, "diff -r %s %s", a, b);
    return system(command) == 0;
}

static bool stands(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- models ---------------------------------------------------------------------------------- */

static const struct {
    const char *model;
    mgl_weight_format layers, head;
} cases[] = {
    {"families/phi3", INT4, {0}},                   /* q, k and v are one stored matrix */
    {"families/ernie4_5-biases", INT4_ZEROS, INT4}, /* interleaved rope; a tied head */
    {"families/exaone-untied", FP8, INT4_ZEROS},
    {"families/seed-oss-biases", INT4_ZEROS, {0}},
    {"families/qwen3-yarn", INT4, FP8},
    {"families/llava-llama", INT4, {0}},
};

/* The sum of the squared differences between the matrices of two models. */
static double distance(const char *a, const char *b)
{
    mgl_checkpoint *x, *y;
    double sum = 0;
    must(mgl_import(a, &x, &err));
    must(mgl_import(b, &y, &err));
    for (int i = 0; i < y->graph->tensor_count; i++) {
        const mgl_tensor *t = &x->graph->tensors[i], *u = &y->graph->tensors[i];
        if (t->rank != 2)
            continue;
        for (int64_t r = 0; r < t->rows; r++) {
            float p[4096], q[4096], stored[4096];
            must(x->graph->read(x->graph, i, r, 1, stored, &err));
            mgl_convert(p, MGL_F32, stored, t->dtype, (size_t)t->cols);
            must(y->graph->read(y->graph, i, r, 1, stored, &err));
            mgl_convert(q, MGL_F32, stored, u->dtype, (size_t)t->cols);
            for (int64_t c = 0; c < t->cols; c++)
                sum += (double)((p[c] - q[c]) * (p[c] - q[c]));
        }
    }
    mgl_checkpoint_close(x);
    mgl_checkpoint_close(y);
    return sum;
}

/* Rows are in their places: the weights are about as near to the original as after rounding. */
START_TEST(the_families)
{
    char model[400];
    mgl_quantize_request request = request_of(cases[_i].layers);
    request.head = cases[_i].head;
    must(quantize(cases[_i].model, &request, folder));
    snprintf(model, sizeof model, MODELS "%s", cases[_i].model);
    if (cases[_i].head.code == MGL_CODE_F32) { /* else a tied head is a further tensor */
        request.method = MGL_METHOD_RTN;
        request.sample_count = 0;
        must(quantize(cases[_i].model, &request, whole));
        ck_assert_double_lt(distance(model, folder), 2 * distance(model, whole));
    }
    mgl_checkpoint *checkpoint;
    must(mgl_import(folder, &checkpoint, &err));
    ck_assert_int_eq(checkpoint->quantized >= report.matrices, true);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* ---- interruptions --------------------------------------------------------------------------- */

static mgl_status stop(void *user, uint64_t done, uint64_t total, mgl_error *why)
{
    int *left = user;
    ck_assert_uint_le(done, total);
    return --*left ? MGL_OK : mgl_fail_interrupted(why);
}

/* Each run is interrupted a bit later; the last one gives the same bytes as an uninterrupted run.
 */
START_TEST(interrupted_runs_continue)
{
    mgl_quantize_request request = request_of(int4);
    mgl_status status = MGL_INTERRUPTED;
    char unfinished[500];
    int left, runs = 0;
    bool was_kept = false;
    request.bits_per_weight = _i ? 6.5 : 0;
    must(quantize("families/phi3", &request, whole));
    request.step = stop;
    request.user = &left;
    snprintf(unfinished, sizeof unfinished, "%s/" MGL_QUANTIZE_UNFINISHED, folder);
    for (; status; runs++) {
        left = 5 + runs;
        status = quantize("families/phi3", &request, folder);
        ck_assert(status == MGL_OK || status == MGL_INTERRUPTED);
        was_kept = was_kept || (status && stands(unfinished));
        ck_assert(stands(folder) == (!status || stands(unfinished)));
    }
    ck_assert(was_kept && !stands(unfinished));
    ck_assert_int_gt(runs, 2);
    ck_assert(is_equal(whole, folder));
}
END_TEST

START_TEST(disks_and_memory_that_fail)
{
    const mgl_quantize_request request = request_of(int4_zeros);
    must(quantize("families/phi3", &request, whole));
    mgl_status status = MGL_SYSTEM;
    for (uint64_t n = 1; status; n++) {
        mgl_file_fail_at(n);
        status = quantize("families/phi3", &request, folder);
        mgl_file_fail_at(0);
    }
    ck_assert(is_equal(whole, folder));
    scratch_remove(folder);
    status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n += 1 + n / 6) {
        mgl_alloc_fail_at(n, false);
        status = quantize("families/phi3", &request, folder);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
    }
    ck_assert(is_equal(whole, folder));
}
END_TEST

/* Leaves unfinished work in `folder`. */
static void leave_unfinished(mgl_quantize_request request)
{
    int left = 8;
    request.step = stop;
    request.user = &left;
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_INTERRUPTED);
    ck_assert(stands(folder));
}

START_TEST(another_command_over_unfinished_work)
{
    mgl_quantize_request request = request_of(int4);
    leave_unfinished(request);
    request.layers.group = 16;
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "unfinished work of another command"));
    request = request_of(int4);
    request.sample_count--;
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "unfinished work of another command"));
    request = request_of(int4);
    ck_assert_int_eq(quantize("families/phi3-longrope", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "unfinished work of another command"));
    request.method = MGL_METHOD_RTN;
    request.sample_count = 0;
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "unfinished work of another command"));
    request = request_of(int4);
    must(quantize("families/phi3", &request, folder));
}
END_TEST

START_TEST(a_part_that_is_damaged)
{
    char command[600];
    const mgl_quantize_request request = request_of(int4);
    leave_unfinished(request);
    snprintf(command, sizeof command, "echo x >> %s/" MGL_QUANTIZE_UNFINISHED "/part-00000",
             folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "is damaged; remove it"));
    snprintf(command, sizeof command, "rm %s/" MGL_QUANTIZE_UNFINISHED "/part-00000", folder);
    ck_assert_int_eq(system(command), 0);
    must(quantize("families/phi3", &request, folder));
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

static void keep_bytes(void *user, uint64_t bytes, uint64_t available)
{
    uint64_t *to = user;
    to[0] = bytes;
    to[1] = available;
}

START_TEST(memory_is_told_beforehand)
{
    uint64_t told[2] = {0};
    mgl_quantize_request request = request_of(int4);
    request.memory = keep_bytes;
    request.user = told;
    mgl_memory_pretend(100000);
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_NO_MEMORY);
    ck_assert_uint_gt(told[0], 100000);
    ck_assert_uint_eq(told[1], 100000);
    ck_assert_ptr_nonnull(strstr(err.message, "100000 are available; give fewer or shorter"));
    ck_assert(!stands(folder));
    mgl_memory_pretend(told[0]);
    must(quantize("families/phi3", &request, folder));
}
END_TEST

START_TEST(the_time_limit)
{
    mgl_quantize_request request = request_of(int4);
    request.time_limit_s = 1e-9;
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_WATCHDOG);
    ck_assert_ptr_nonnull(strstr(err.message, "the same command continues"));
    request.time_limit_s = 1000;
    must(quantize("families/phi3", &request, folder));
}
END_TEST

/* Each run finishes a part: of the measurements first, then of the codes. */
START_TEST(the_time_limit_with_mixed_precision)
{
    mgl_quantize_request request = request_of(int4);
    int runs = 1;
    request.bits_per_weight = 5.5;
    must(quantize("families/seed-oss-biases", &request, whole));
    request.time_limit_s = 1e-9;
    for (mgl_status status; (status = quantize("families/seed-oss-biases", &request, folder));) {
        ck_assert_int_eq(status, MGL_WATCHDOG);
        ck_assert_int_lt(runs++, 100);
    }
    ck_assert_int_ge(runs, 8); /* two layers, of two halves each, twice */
    ck_assert(is_equal(folder, whole));
}
END_TEST

START_TEST(samples_that_are_rejected)
{
    mgl_quantize_request request = request_of(int4);
    int32_t ids[2] = {3, 160};
    const mgl_ids unknown = {ids, 2};
    static int32_t many[5000];
    const mgl_ids long_one = {many, 5000};
    request.samples = &unknown;
    request.sample_count = 1;
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "unknown token id: 160"));
    request.samples = &long_one;
    ck_assert_int_eq(quantize("families/phi3", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "has 5000 tokens; allowed: 1 to"));
}
END_TEST

/* ---- mixed precision ------------------------------------------------------------------------- */

static double mean_bits(void)
{
    return 8 * (double)report.codes / (double)report.weights;
}

static mgl_weight_code code_of(const mgl_graph *graph, int layer, const char *matrix)
{
    char name[80];
    snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, matrix);
    const int tensor = mgl_graph_find_tensor(graph, name);
    ck_assert_int_ge(tensor, 0);
    return graph->tensors[tensor].quantized.code;
}

/* Checks that q, k and v of a layer have the same code, and that gate and up have the same code. */
static void check_fused(const mgl_graph *graph)
{
    for (int i = 0; i < graph->geometry.layers; i++) {
        const mgl_weight_code qkv = code_of(graph, i, "self_attn.q_proj");
        ck_assert_int_eq(code_of(graph, i, "self_attn.k_proj"), qkv);
        ck_assert_int_eq(code_of(graph, i, "self_attn.v_proj"), qkv);
        ck_assert_int_eq(code_of(graph, i, "mlp.gate_proj"), code_of(graph, i, "mlp.up_proj"));
    }
}

/* Checks that no matrix with 4 bits, or no matrices that a kernel fuses, would fit with 8 bits. */
static void check_no_rest(const mgl_graph *graph, double limit)
{
    static const char *const sets[][3] = {
        {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
        {"self_attn.o_proj"},
        {"mlp.gate_proj", "mlp.up_proj"},
        {"mlp.down_proj"}};
    const double left = limit * (double)report.weights / 8 - (double)report.codes;
    for (int layer = 0; layer < graph->geometry.layers; layer++)
        for (int set = 0; set < 4; set++) {
            double more = 0;
            for (int i = 0; i < 3 && sets[set][i]; i++) {
                char name[80];
                snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, sets[set][i]);
                const mgl_tensor *t = &graph->tensors[mgl_graph_find_tensor(graph, name)];
                more += t->quantized.code == MGL_CODE_INT4 ? (double)(t->rows * t->cols) / 2 : 0;
            }
            ck_assert_msg(more == 0 || more > left, "layer %d: %s: %.0f of %.0f bytes", layer,
                          sets[set][0], more, left);
        }
}

START_TEST(mixed_precision)
{
    static const double limits[] = {4.5, 5.1, 5.5, 6.2, 7, 9};
    enum { LIMITS = sizeof limits / sizeof *limits };
    static const mgl_quantize_method methods[] = {MGL_METHOD_GPTQ, MGL_METHOD_CLIP, MGL_METHOD_RTN};
    int before = -1;
    for (int i = 0; i < LIMITS; i++) {
        mgl_quantize_request request = request_of(int4);
        request.method = methods[i % 3];
        request.bits_per_weight = limits[i];
        snprintf(folder, sizeof folder, "%s/q%d", root, i);
        must(quantize("families/seed-oss-biases", &request, folder));
        ck_assert_double_le(mean_bits(), limits[i]);
        ck_assert_int_gt(report.wide, before);
        before = report.wide;
        mgl_checkpoint *checkpoint;
        int wide = 0, narrow = 0;
        must(mgl_import(folder, &checkpoint, &err));
        for (int t = 0; t < checkpoint->graph->tensor_count; t++) {
            wide += checkpoint->graph->tensors[t].quantized.code == MGL_CODE_INT8;
            narrow += checkpoint->graph->tensors[t].quantized.code == MGL_CODE_INT4;
        }
        ck_assert_int_eq(wide, report.wide);
        ck_assert_int_eq(wide + narrow, report.matrices);
        check_fused(checkpoint->graph);
        check_no_rest(checkpoint->graph, limits[i]);
        mgl_checkpoint_close(checkpoint);
    }
    ck_assert_int_eq(before, report.matrices);
    mgl_quantize_request request = request_of(int4);
    request.bits_per_weight = 4.2;
    snprintf(folder, sizeof folder, "%s/low", root);
    ck_assert_int_eq(quantize("families/seed-oss-biases", &request, folder), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "4 bits with these scales are 4.5"));
}
END_TEST

int main(void)
{
    const mgl_blas *blas;
    if (mgl_blas_open(&blas, &err)) {
        printf("skipped: %s: %s\n", err.where, err.message);
        return 77;
    }
    Suite *suite = suite_create("quantize calibrate");
    TCase *tests = tcase_create("calibrate");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 0); /* ctest has the limit */
    tcase_add_loop_test(tests, the_families, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tests, interrupted_runs_continue, 0, 2);
    tcase_add_test(tests, disks_and_memory_that_fail);
    tcase_add_test(tests, another_command_over_unfinished_work);
    tcase_add_test(tests, a_part_that_is_damaged);
    tcase_add_test(tests, memory_is_told_beforehand);
    tcase_add_test(tests, the_time_limit);
    tcase_add_test(tests, the_time_limit_with_mixed_precision);
    tcase_add_test(tests, samples_that_are_rejected);
    tcase_add_test(tests, mixed_precision);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
