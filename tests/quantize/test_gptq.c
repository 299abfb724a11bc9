/*
 * Tests of the calibrated methods' parts: the Hessian and its factor, GPTQ against the textbook
 * algorithm with the inverse Hessian in f64, and the forward pass against Hugging Face's answers.
 * Skipped if OpenBLAS is not installed.
 */
#include "base/json.h"
#include "importer/checkpoint.h"
#include "quantize/calibrate/gptq.h"
#include "quantize/calibrate/hessian.h"
#include "tests/quantize/divergence.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mgl_blas *blas;
static mgl_error err;

/* Numbers between -1 and 1. */
static void fill(float *to, size_t count, uint32_t state)
{
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
}

/* Inputs (rows, n) whose columns depend on one another. */
static float *make_inputs(int rows, int n)
{
    float *x = malloc((size_t)rows * (size_t)n * sizeof *x);
    fill(x, (size_t)rows * (size_t)n, 7);
    for (int r = 0; r < rows; r++)
        for (int i = 1; i < n; i++)
            x[r * n + i] += 0.9f * x[r * n + i - 1];
    return x;
}

/* ---- the Hessian ----------------------------------------------------------------------------- */

enum { WIDE = 600, ROWS = 900 }; /* three tiles, the last one not whole */

static float *make_factor(int threads, const float *x)
{
    float *h = calloc(WIDE * WIDE, sizeof *h);
    for (int r = 0; r < ROWS; r += 300)
        ck_assert_int_eq(mgl_hessian_add(blas, threads, h, WIDE, x + r * WIDE, 300, &err), MGL_OK);
    ck_assert_int_eq(mgl_hessian_factor(blas, threads, h, WIDE, "m", &err), MGL_OK);
    return h;
}

START_TEST(the_factor_gives_the_hessian)
{
    float *x = make_inputs(ROWS, WIDE), *one = make_factor(1, x), *four = make_factor(4, x);
    double mean = 0, worst = 0;
    ck_assert_mem_eq(one, four, WIDE * WIDE * sizeof *one);
    for (int i = 0; i < ROWS * WIDE; i++)
        mean += (double)x[i] * (double)x[i] / WIDE;
    for (int i = 0; i < WIDE; i += 7)
        for (int j = i; j < WIDE; j += 11) {
            double wanted = i == j ? 0.1 * mean : 0, sum = 0;
            for (int r = 0; r < ROWS; r++)
                wanted += (double)x[r * WIDE + i] * (double)x[r * WIDE + j];
            for (int k = 0; k < WIDE; k++)
                sum += (double)one[i * WIDE + k] * (double)one[j * WIDE + k];
            worst = fmax(worst, fabs(sum - wanted));
            ck_assert(j == i || one[j * WIDE + i] == 0);
        }
    ck_assert_double_lt(worst, 1e-5 * mean);
    free(x);
    free(one);
    free(four);
}
END_TEST

START_TEST(inputs_that_are_not_finite)
{
    float h[4] = {INFINITY, 0, 0, 1}, zeros[4] = {0};
    ck_assert_int_eq(mgl_hessian_factor(blas, 1, h, 2, "m", &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "m");
    ck_assert_int_eq(mgl_hessian_factor(blas, 1, zeros, 2, "m", &err), MGL_OK);
    ck_assert_float_eq(zeros[0], 1);
    ck_assert_float_eq(zeros[1], 0);
}
END_TEST

/* ---- GPTQ ------------------------------------------------------------------------------------ */

enum { COLUMNS = 272, MATRIX_ROWS = 24, SAMPLES = 500 };

/* Gauss-Jordan elimination of a positive definite matrix. */
static void invert(double *a, double *to, int n)
{
    for (int i = 0; i < n * n; i++)
        to[i] = i % (n + 1) == 0;
    for (int p = 0; p < n; p++) {
        const double pivot = a[p * n + p];
        for (int j = 0; j < n; j++) {
            a[p * n + j] /= pivot;
            to[p * n + j] /= pivot;
        }
        for (int i = 0; i < n; i++) {
            const double factor = a[i * n + p];
            for (int j = 0; j < n && i != p; j++) {
                a[i * n + j] -= factor * a[p * n + j];
                to[i * n + j] -= factor * to[p * n + j];
            }
        }
    }
}

/* Optimal brain quantization in column order, as the paper gives it: after a column is rounded, the
 * inverse Hessian of the other columns follows by one elimination step. */
static void quantize_by_textbook(const float *x, const float *weights, mgl_weight_format f,
                                 uint8_t *codes)
{
    enum { N = COLUMNS };
    double *h = calloc(N * N, sizeof *h), *inverse = malloc(N * N * sizeof *inverse), mean = 0;
    double *w = malloc(MATRIX_ROWS * N * sizeof *w);
    mgl_grid grids[MATRIX_ROWS];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int r = 0; r < SAMPLES; r++)
                h[i * N + j] += (double)x[r * N + i] * (double)x[r * N + j];
    for (int i = 0; i < N; i++)
        mean += h[i * N + i] / N;
    for (int i = 0; i < N; i++)
        h[i * N + i] += 0.1 * mean;
    invert(h, inverse, N);
    for (int i = 0; i < MATRIX_ROWS * N; i++)
        w[i] = (double)weights[i];
    const int group = f.group ? f.group : N;
    for (int j = 0; j < N; j++) {
        const double own = inverse[j * N + j];
        for (int r = 0; r < MATRIX_ROWS; r++) {
            double *row = w + r * N;
            float updated[COLUMNS];
            for (int k = 0; k < group && j % group == 0; k++)
                updated[k] = (float)row[j + k];
            if (j % group == 0)
                grids[r] = mgl_grid_fit(updated, group, f, (mgl_fit){0});
            codes[r * N + j] = mgl_grid_code(&grids[r], (float)row[j]);
            const double error =
                (row[j] - (double)mgl_grid_weight(&grids[r], codes[r * N + j])) / own;
            for (int k = j; k < N; k++)
                row[k] -= error * inverse[j * N + k];
        }
        for (int a = j + 1; a < N; a++)
            for (int b = j + 1; b < N; b++)
                inverse[a * N + b] -= inverse[a * N + j] * inverse[j * N + b] / own;
    }
    free(h);
    free(inverse);
    free(w);
}

/* The squared output error of rows of numbers. */
static double output_error(const float *x, const float *weights, const float *numbers)
{
    double sum = 0;
    for (int s = 0; s < SAMPLES; s++)
        for (int r = 0; r < MATRIX_ROWS; r++) {
            double y = 0;
            for (int i = 0; i < COLUMNS; i++)
                y += (double)x[s * COLUMNS + i] *
                     ((double)weights[r * COLUMNS + i] - (double)numbers[r * COLUMNS + i]);
            sum += y * y;
        }
    return sum;
}

static const mgl_weight_format formats[] = {
    {MGL_CODE_INT4, MGL_F32, 16, 1, false},           {MGL_CODE_INT4, MGL_F32, 136, 1, false},
    {MGL_CODE_INT4, MGL_F32, MGL_GROUP_ALL, 1, true}, {MGL_CODE_INT8, MGL_F32, 16, 1, true},
    {MGL_CODE_E4M3, MGL_F32, 16, 1, false},
};

START_TEST(gptq_is_the_textbook_algorithm)
{
    const mgl_weight_format f = formats[_i];
    enum { COUNT = MATRIX_ROWS * COLUMNS, GROUPS = COLUMNS / 16 };
    float *x = make_inputs(SAMPLES, COLUMNS), *h = calloc(COLUMNS * COLUMNS, sizeof *h);
    float *weights = malloc(COUNT * sizeof *weights), *numbers = malloc(COUNT * sizeof *numbers);
    float *scratch = malloc(mgl_gptq_scratch(MATRIX_ROWS, COLUMNS, f) * sizeof *scratch);
    uint8_t *codes = malloc(COUNT), *wanted = malloc(COUNT), zeros[MATRIX_ROWS * GROUPS];
    float scales[MATRIX_ROWS * GROUPS];
    int64_t row, column;
    int different = 0;
    fill(weights, COUNT, 99);
    memcpy(numbers, weights, COUNT * sizeof *numbers);
    ck_assert_int_eq(mgl_hessian_add(blas, 1, h, COLUMNS, x, SAMPLES, &err), MGL_OK);
    ck_assert_int_eq(mgl_hessian_factor(blas, 1, h, COLUMNS, "m", &err), MGL_OK);
    const mgl_gptq_rows rows = {
        numbers, MATRIX_ROWS, COLUMNS, codes, scales, f.zeros ? zeros : NULL, scratch};
    ck_assert_int_eq(mgl_gptq_quantize(blas, h, f, (mgl_fit){0}, &rows, &row, &column),
                     MGL_ROUNDED);
    quantize_by_textbook(x, weights, f, wanted);
    for (int i = 0; i < COUNT; i++)
        different += codes[i] != wanted[i];
    ck_assert_int_le(different, COUNT / 100); /* ties that f32 decides otherwise */
    const double compensated = output_error(x, weights, numbers);
    for (int r = 0; r < MATRIX_ROWS; r++) {
        ck_assert_int_eq(mgl_round_row(weights + r * COLUMNS, COLUMNS, f, (mgl_fit){0}, codes,
                                       scales, zeros, &column),
                         MGL_ROUNDED);
        const int group = f.group ? f.group : COLUMNS;
        for (int i = 0; i < COLUMNS; i++) {
            const int zero = f.zeros ? zeros[i / group] : mgl_weight_code_zero(f.code);
            numbers[r * COLUMNS + i] =
                mgl_weight_code_number(f.code, codes[i], zero) * scales[i / group];
        }
    }
    ck_assert_double_lt(compensated, 0.6 * output_error(x, weights, numbers));
    free(x);
    free(h);
    free(weights);
    free(numbers);
    free(scratch);
    free(codes);
    free(wanted);
}
END_TEST

/* ---- the forward pass ------------------------------------------------------------------------ */

static const char *const models[] = {
    "ernie4_5",         "ernie4_5-biases", "exaone",     "exaone-untied",  "helium",
    "helium-biases",    "internlm3",       "llama-yarn", "llava-llama",    "llava-qwen2-v5",
    "internlm3-biases", "llama-longrope",  "mistral3",   "phi3",           "phi3-longrope",
    "qwen3-yarn",       "qwen2-yarn",      "seed-oss",   "seed-oss-biases"};

START_TEST(the_forward_pass_gives_the_answers_of_hugging_face)
{
    char path[300];
    mgl_checkpoint *checkpoint;
    whole_model model;
    mgl_json golden = {0};
    snprintf(path, sizeof path, "%s/tests/models/families/%s", MGL_SOURCE_DIR, models[_i]);
    ck_assert_int_eq(mgl_import(path, &checkpoint, &err), MGL_OK);
    ck_assert_int_eq(whole_model_load(checkpoint->graph, &model, &err), MGL_OK);
    strcat(path, "/golden.json");
    ck_assert_int_eq(mgl_json_read_file(path, 1 << 24, &golden, &err), MGL_OK);
    const cJSON *wanted =
        cJSON_GetObjectItem(cJSON_GetObjectItem(golden.root, "fp32"), "perplexity");
    const int vocab = checkpoint->graph->geometry.vocab;
    for (int t = 0; t < 2; t++) {
        const cJSON *list = cJSON_GetArrayItem(cJSON_GetObjectItem(wanted, "ids"), t);
        const cJSON *item,
            *logprob = cJSON_GetArrayItem(cJSON_GetObjectItem(wanted, "logprobs"), t)->child;
        int32_t ids[300];
        float *now;
        size_t count = 0;
        cJSON_ArrayForEach(item, list) ids[count++] = item->valueint;
        ck_assert_int_eq(whole_model_run(&model, blas, ids, count, &now, &err), MGL_OK);
        for (size_t i = 1; i < count; i++, logprob = logprob->next) {
            ck_assert_ptr_nonnull(logprob);
            const double is = (double)now[(i - 1) * (size_t)vocab + (size_t)ids[i]];
            ck_assert_msg(fabs(is - logprob->valuedouble) < 2e-4, "%s, text %d, token %zu: %g, %g",
                          models[_i], t, i, is, logprob->valuedouble);
        }
        free(now);
    }
    mgl_json_clear(&golden);
    whole_model_clear(&model);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

int main(void)
{
    if (mgl_blas_open(&blas, &err)) {
        printf("skipped: %s: %s\n", err.where, err.message);
        return 77;
    }
    Suite *suite = suite_create("gptq");
    TCase *tests = tcase_create("gptq");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, the_factor_gives_the_hessian);
    tcase_add_test(tests, inputs_that_are_not_finite);
    tcase_add_loop_test(tests, gptq_is_the_textbook_algorithm, 0, sizeof formats / sizeof *formats);
    tcase_add_loop_test(tests, the_forward_pass_gives_the_answers_of_hugging_face, 0,
                        sizeof models / sizeof *models);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
