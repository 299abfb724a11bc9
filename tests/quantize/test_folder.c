/*
 * Tests of quantizing a checkpoint into a folder: the importer reads the folder, each weight is
 * within half a step of the original, all other tensors are equal, and after a failure nothing is
 * left.
 */
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "importer/safetensors.h"
#include "quantize/quantize.h"
#include "tests/scratch.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODELS MGL_SOURCE_DIR "/tests/models/"

static char root[] = "/tmp/megalith-quantize-XXXXXX";
static char folder[400]; /* of the quantized model, in `root` */
static mgl_error err;

static void set_up(void)
{
    scratch_make(root);
    snprintf(folder, sizeof folder, "%s/q", root);
}

static void tear_down(void)
{
    scratch_remove(root);
}

static const mgl_weight_format int8_row = {MGL_CODE_INT8, MGL_F32, MGL_GROUP_ALL, 1, false};

static void quantize_to(const char *model, const mgl_quantize_request *request, const char *to)
{
    mgl_quantize_report report;
    const mgl_status status = mgl_quantize(model, request, to, &report, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s: %s", model, err.where, err.message);
    ck_assert_int_gt(report.matrices, 0);
}

static mgl_checkpoint *import(const char *model)
{
    mgl_checkpoint *checkpoint = NULL;
    const mgl_status status = mgl_import(model, &checkpoint, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s: %s", model, err.where, err.message);
    return checkpoint;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Half the distance between the numbers around a weight. */
static float half_step(mgl_weight_code code, float weight, float scale)
{
    int exponent;
    if (code != MGL_CODE_E4M3)
        return scale / 2;
    frexpf(weight / scale, &exponent);
    return ldexpf(scale, (exponent < -5 ? -5 : exponent) - 5);
}

/* Reads a row as f32. */
static void read_row(const mgl_graph *graph, int tensor, int64_t row, float *to)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    char *stored = malloc((size_t)t->cols * 4);
    ck_assert_int_eq(graph->read(graph, tensor, row, 1, stored, &err), MGL_OK);
    mgl_convert(to, MGL_F32, stored, t->dtype, (size_t)t->cols);
    free(stored);
}

/* Compares a tensor of both models; a quantized one by half a step. */
static void compare_tensor(const mgl_graph *graph, int tensor, const mgl_graph *old, int index)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    const bool is_quantized = mgl_tensor_is_quantized(t);
    const size_t columns = (size_t)t->cols;
    float *weights = malloc(columns * 4), *before = malloc(columns * 4);
    float *scales = malloc(columns * 4);
    uint8_t *codes = malloc(columns), *zeros = malloc(columns);
    const mgl_quantized_rows rows = {codes, scales, t->quantized.zeros ? zeros : NULL, NULL};
    size_t wrong = 0;
    const int64_t group = t->quantized.group ? t->quantized.group : t->cols;
    for (int64_t row = 0; row < (t->rank == 1 ? 1 : t->rows); row++) {
        read_row(graph, tensor, row, weights);
        read_row(old, index, row, before);
        if (is_quantized)
            ck_assert_int_eq(graph->read_codes(graph, tensor, row, 1, &rows, &err), MGL_OK);
        for (size_t c = 0; c < columns; c++) {
            const float scale = is_quantized ? scales[(int64_t)c / group] : 0;
            const float limit =
                is_quantized ? half_step(t->quantized.code, before[c], scale) * 1.0001f : 0;
            wrong += !(fabsf(weights[c] - before[c]) <= limit);
        }
    }
    ck_assert_msg(!wrong, "%s: %zu weights are wrong", t->name, wrong);
    free(weights);
    free(before);
    free(scales);
    free(codes);
    free(zeros);
}

/* Compares all tensors, and the formats of the matrices with `layers` and `head`. */
static void compare_models(const char *model, const char *layers, const char *head)
{
    mgl_checkpoint *now = import(folder), *before = import(model);
    char text[MGL_WEIGHT_FORMAT_TEXT];
    for (int i = 0; i < now->graph->tensor_count; i++) {
        const mgl_tensor *t = &now->graph->tensors[i];
        const bool is_head = !strcmp(t->name, MGL_TENSOR_HEAD);
        const bool is_matrix = t->rank == 2 && strcmp(t->name, MGL_TENSOR_EMBEDDING) != 0;
        const char *wanted = is_head ? head : is_matrix ? layers : NULL;
        int index = mgl_graph_find_tensor(before->graph, t->name);
        if (index < 0 && is_head)
            index = mgl_graph_find_tensor(before->graph, MGL_TENSOR_EMBEDDING);
        ck_assert_int_ge(index, 0);
        ck_assert_int_eq(mgl_tensor_is_quantized(t), wanted != NULL);
        if (wanted)
            ck_assert_str_eq(mgl_weight_format_print(t->quantized, text), wanted);
        compare_tensor(now->graph, i, before->graph, index);
    }
    ck_assert_int_eq(mgl_graph_find_tensor(now->graph, MGL_TENSOR_HEAD) >= 0,
                     head || !before->graph->tied);
    mgl_checkpoint_close(now);
    mgl_checkpoint_close(before);
}

static const struct {
    const char *model;
    mgl_weight_format layers, head;
    bool own_scales;
    const char *says_layers, *says_head; /* NULL: the head is not quantized */
} cases[] = {
    {"tales-5m", {MGL_CODE_INT8, 0, 0, 1, false}, {0}, true, "int8 row bf16", NULL},
    {"tales-5m", {MGL_CODE_INT4, 0, 64, 1, false}, {0}, true, "int4 group 64 bf16", NULL},
    {"tales-5m",
     {MGL_CODE_INT4, MGL_F16, 128, 1, true},
     {0},
     false,
     "int4 group 128 f16 zeros",
     NULL},
    {"tales-5m", {MGL_CODE_INT8, 0, 0, 1, true}, {0}, true, "int8 row bf16 zeros", NULL},
    {"tales-5m",
     {MGL_CODE_E4M3, 0, 0, 1, false},
     {MGL_CODE_INT8, 0, 0, 1, false},
     true,
     "e4m3 row bf16",
     "int8 row bf16"},
    {"qwen2",
     {MGL_CODE_INT4, MGL_F32, 32, 1, true},
     {MGL_CODE_E4M3, MGL_F32, 0, 1, false},
     false,
     "int4 group 32 f32 zeros",
     "e4m3 row f32"},
    {"mistral",
     {MGL_CODE_INT8, 0, 32, 1, false},
     {MGL_CODE_INT4, 0, 32, 1, true},
     true,
     "int8 group 32 f32",
     "int4 group 32 f32 zeros"},
    {"families/phi3", {MGL_CODE_INT4, 0, 16, 1, true}, {0}, true, "int4 group 16 bf16 zeros", NULL},
    {"families/exaone-untied",
     {MGL_CODE_INT4, 0, 32, 1, false},
     {MGL_CODE_INT4, 0, 32, 1, false},
     true,
     "int4 group 32 bf16",
     "int4 group 32 bf16"},
    {"families/llava-llama",
     {MGL_CODE_INT8, 0, 0, 1, false},
     {MGL_CODE_INT8, 0, 0, 1, false},
     true,
     "int8 row bf16",
     "int8 row bf16"},
};

START_TEST(weights_are_within_half_a_step)
{
    char model[400];
    const mgl_quantize_request request = {
        .layers = cases[_i].layers, .head = cases[_i].head, .own_scales = cases[_i].own_scales};
    snprintf(model, sizeof model, "%s%s", MODELS, cases[_i].model);
    quantize_to(model, &request, folder);
    compare_models(model, cases[_i].says_layers, cases[_i].says_head);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

/* Small files give the same model, and the bytes are the same each time. */
START_TEST(several_files)
{
    char command[1300];
    struct stat facts;
    const mgl_quantize_request request = {
        .layers = int8_row, .own_scales = true, .shard_bytes = 1000000};
    quantize_to(MODELS "tales-5m", &request, folder);
    compare_models(MODELS "tales-5m", "int8 row bf16", NULL);
    snprintf(command, sizeof command, "%s/model-00001-of-00006.safetensors", folder);
    ck_assert_int_eq(stat(command, &facts), 0);
    ck_assert_int_lt(facts.st_size, 1010000);
    snprintf(command, sizeof command, "%s/again", root);
    quantize_to(MODELS "tales-5m", &request, command);
    snprintf(command, sizeof command, "diff -r %s %s/again", folder, root);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void nothing_is_left(void)
{
    char command[900];
    snprintf(command, sizeof command, "test ! -e %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static mgl_status try_model(const char *model)
{
    mgl_quantize_report report;
    const mgl_quantize_request request = {
        .layers = int8_row, .own_scales = true, .shard_bytes = 100000};
    return mgl_quantize(model, &request, folder, &report, &err);
}

/* Each operation on files fails in turn. */
START_TEST(a_disk_that_fails)
{
    uint64_t n = 0;
    mgl_status status = MGL_SYSTEM;
    while (status) {
        n++;
        mgl_file_fail_at(n);
        status = try_model(MODELS "families/phi3");
        mgl_file_fail_at(0);
        if (status)
            nothing_is_left();
    }
    ck_assert_uint_gt(n, 30);
    compare_models(MODELS "families/phi3", "int8 row bf16", NULL);
}
END_TEST

START_TEST(memory_that_runs_out)
{
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n += 1 + n / 8) {
        mgl_alloc_fail_at(n, false);
        status = try_model(MODELS "families/phi3");
        mgl_alloc_fail_at(0, false);
        if (status) {
            ck_assert_int_eq(status, MGL_NO_MEMORY);
            nothing_is_left();
        }
    }
    compare_models(MODELS "families/phi3", "int8 row bf16", NULL);
}
END_TEST

static mgl_status stop(void *user, uint64_t done, uint64_t total, mgl_error *why)
{
    int *left = user;
    ck_assert_uint_le(done, total);
    return --*left ? MGL_OK : mgl_fail_interrupted(why);
}

START_TEST(an_interrupted_step)
{
    mgl_quantize_report report;
    int left;
    const mgl_quantize_request request = {
        .layers = int8_row, .own_scales = true, .step = stop, .user = &left};
    mgl_status status = MGL_INTERRUPTED;
    for (int i = 1; status; i++) { /* also between the files that get their names */
        left = i;
        status = mgl_quantize(MODELS "families/phi3", &request, folder, &report, &err);
        if (status) {
            ck_assert_int_eq(status, MGL_INTERRUPTED);
            nothing_is_left();
        } else {
            ck_assert_int_gt(i, 10);
        }
    }
}
END_TEST

/* A folder that exists is used if it is empty, and is kept after a failure. */
START_TEST(a_folder_that_exists)
{
    char name[500];
    struct stat facts;
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_int_eq(try_model(MODELS "none"), MGL_BAD_INPUT);
    ck_assert_int_eq(stat(folder, &facts), 0);
    ck_assert_int_eq(try_model(MODELS "families/phi3"), MGL_OK);
    snprintf(name, sizeof name, "%s/config.json", folder);
    ck_assert_int_eq(stat(name, &facts), 0);
    ck_assert_int_eq(try_model(MODELS "families/phi3"), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "not empty"));
    ck_assert_int_eq(stat(name, &facts), 0);
}
END_TEST

/* A weight that is not a number is named. */
START_TEST(a_weight_that_is_not_finite)
{
    char model[400], command[1300];
    mgl_safetensors *files;
    snprintf(model, sizeof model, "%s/bad", root);
    snprintf(command, sizeof command, "cp -r %sfamilies/phi3 %s", MODELS, model);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(mgl_safetensors_open(model, &files, &err), MGL_OK);
    const int index = mgl_safetensors_find(files, "model.layers.1.mlp.down_proj.weight");
    const mgl_stored_tensor *t = &files->tensors.items[index];
    const long at = (long)(files->files[t->file].data + t->offset);
    snprintf(command, sizeof command, "%s/model.safetensors", model);
    FILE *file = fopen(command, "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, at + 2 * (3 * t->shape[1] + 7), SEEK_SET);
    fwrite("\xC0\x7F", 1, 2, file); /* a NaN in bf16 */
    fclose(file);
    mgl_safetensors_close(files);
    ck_assert_int_eq(try_model(model), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "model.layers.1.mlp.down_proj.weight");
    ck_assert_ptr_nonnull(strstr(err.message, "row 3 and column 7 is not a finite number"));
    nothing_is_left();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize folder");
    TCase *tests = tcase_create("folder");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 0); /* ctest has the limit */
    tcase_add_loop_test(tests, weights_are_within_half_a_step, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, several_files);
    tcase_add_test(tests, a_disk_that_fails);
    tcase_add_test(tests, memory_that_runs_out);
    tcase_add_test(tests, an_interrupted_step);
    tcase_add_test(tests, a_folder_that_exists);
    tcase_add_test(tests, a_weight_that_is_not_finite);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
