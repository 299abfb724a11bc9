/*
 * Quantized checkpoints that other programs wrote (tests/models/quantized). Every matrix is read.
 * Elements of the models in the layouts of compressed-tensors, GPTQ, AWQ and fp8 are compared with
 * the arithmetic below, which reads the stored words by the published layouts. The models in
 * `library` are compared with the numbers that compressed-tensors decompresses.
 */
#include "base/json.h"
#include "base/sha256.h"
#include "importer/checkpoint.h"
#include "importer/safetensors.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODELS MGL_SOURCE_DIR "/tests/models/quantized/"

static mgl_checkpoint *import(const char *folder)
{
    mgl_checkpoint *checkpoint = NULL;
    mgl_error err = {0};
    const mgl_status status = mgl_import(folder, &checkpoint, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s: %s", folder, err.where, err.message);
    return checkpoint;
}

/* ---- the arithmetic of each layout ----------------------------------------------------------- */

/* The stored tensors of one matrix. */
typedef struct matrix {
    const mgl_safetensors *files;
    const char *base; /* "model.layers.0.mlp.up_proj." */
    int64_t rows, columns;
} matrix;

static void read_stored(const matrix *m, const char *suffix, int64_t index, size_t size, void *to)
{
    char name[160];
    mgl_error err;
    snprintf(name, sizeof name, "%s%s", m->base, suffix);
    const int tensor = mgl_safetensors_find(m->files, name);
    ck_assert_msg(tensor >= 0, "%s", name);
    ck_assert_int_eq(mgl_safetensors_read(m->files, tensor, (size_t)index * size, size, to, &err),
                     MGL_OK);
}

static int word_field(const matrix *m, const char *suffix, int64_t index, int64_t field, int bits)
{
    uint32_t word;
    read_stored(m, suffix, index, 4, &word);
    return (int)(word >> field * bits & ((1u << bits) - 1));
}

static float bf16_scale(const matrix *m, const char *suffix, int64_t index)
{
    uint16_t half;
    read_stored(m, suffix, index, 2, &half);
    return mgl_bf16_to_f32(half);
}

static float f16_scale(const matrix *m, int64_t index)
{
    uint16_t half;
    read_stored(m, "scales", index, 2, &half);
    return mgl_f16_to_f32(half);
}

static float e4m3(const matrix *m, int64_t row, int64_t column)
{
    uint8_t byte;
    read_stored(m, "weight", row * m->columns + column, 1, &byte);
    return mgl_weight_code_number(MGL_CODE_E4M3, byte, 0);
}

static float ct_int4(const matrix *m, int64_t n, int64_t k)
{
    const int q = word_field(m, "weight_packed", n * (m->columns / 8) + k / 8, k % 8, 4) - 8;
    return (float)q * bf16_scale(m, "weight_scale", n * (m->columns / 64) + k / 64);
}

static float ct_int8(const matrix *m, int64_t n, int64_t k)
{
    const int q = word_field(m, "weight_packed", n * (m->columns / 4) + k / 4, k % 4, 8) - 128;
    return (float)q * bf16_scale(m, "weight_scale", n);
}

static float ct_fp8(const matrix *m, int64_t n, int64_t k)
{
    return e4m3(m, n, k) * bf16_scale(m, "weight_scale", n);
}

static float fp8_block(const matrix *m, int64_t n, int64_t k)
{
    float scale;
    const int64_t width = (m->columns + 127) / 128;
    read_stored(m, "weight_scale_inv", n / 128 * width + k / 128, 4, &scale);
    return e4m3(m, n, k) * scale;
}

static float gptq_int4(const matrix *m, int64_t n, int64_t k)
{
    const int64_t g = k / 64;
    const int q = word_field(m, "qweight", k / 8 * m->rows + n, k % 8, 4);
    const int z = (word_field(m, "qzeros", g * (m->rows / 8) + n / 8, n % 8, 4) + 1) & 15;
    return (float)(q - z) * f16_scale(m, g * m->rows + n);
}

static float awq_int4(const matrix *m, int64_t n, int64_t k)
{
    static const int fields[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int64_t g = k / 64, width = m->rows / 8;
    const int q = word_field(m, "qweight", k * width + n / 8, fields[n % 8], 4);
    const int z = word_field(m, "qzeros", g * width + n / 8, fields[n % 8], 4);
    return (float)(q - z) * f16_scale(m, g * m->rows + n);
}

static const struct {
    const char *folder, *format;
    int matrices;
    float (*number)(const matrix *m, int64_t row, int64_t column);
} models[] = {
    {"q-tales-ct-int4-g64", "int4 group 64 bf16", 42, ct_int4},
    {"q-tales-ct-int8", "int8 row bf16", 42, ct_int8},
    {"q-tales-gptq-int4-g64", "int4 group 64 f16", 42, gptq_int4},
    {"q-tales-awq-int4-g64", "int4 group 64 f16 zeros", 42, awq_int4},
    {"q-tales-fp8-block", "e4m3 block 128 128 f32", 42, fp8_block},
    {"q-qwen2-ct-fp8", "e4m3 row bf16", 21, ct_fp8},
};
enum { MODEL_COUNT = sizeof models / sizeof *models };

/* Compares two elements of each column. */
static void check_rows(const matrix *m, const float *numbers, int model)
{
    for (int64_t k = 0; k < m->columns; k++)
        for (int64_t i = 0; i < 2; i++) {
            const int64_t n = (k * 7 + i * 61) % m->rows;
            const float number = models[model].number(m, n, k);
            const float read = numbers[n * m->columns + k];
            ck_assert_msg(!memcmp(&number, &read, 4), "%s: row %d, column %d: %.9g, not %.9g",
                          m->base, (int)n, (int)k, (double)read, (double)number);
        }
}

START_TEST(test_model)
{
    char folder[256], text[MGL_WEIGHT_FORMAT_TEXT];
    snprintf(folder, sizeof folder, MODELS "%s", models[_i].folder);
    mgl_checkpoint *checkpoint = import(folder);
    const mgl_graph *graph = checkpoint->graph;
    mgl_safetensors *files;
    mgl_error err;
    ck_assert_int_eq(mgl_safetensors_open(folder, &files, &err), MGL_OK);
    ck_assert_int_eq(checkpoint->quantized, models[_i].matrices);
    ck_assert_int_eq(graph->dtype, MGL_BF16);
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        float *numbers = calloc((size_t)(t->rows * t->cols), sizeof *numbers);
        ck_assert_int_eq(graph->read(graph, i, 0, t->rows, numbers, &err), MGL_OK);
        if (mgl_tensor_is_quantized(t)) {
            char base[160];
            snprintf(base, sizeof base, "%.*s", (int)(strlen(t->name) - strlen("weight")), t->name);
            ck_assert_str_eq(mgl_weight_format_print(t->quantized, text), models[_i].format);
            check_rows(&(matrix){files, base, t->rows, t->cols}, numbers, _i);
        }
        free(numbers);
    }
    mgl_safetensors_close(files);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* ---- the library's own numbers --------------------------------------------------------------- */

static const struct {
    const char *folder, *format;
} library[] = {
    {"int8-row", "int8 row bf16"},
    {"int8-row-asymmetric", "int8 row f32 zeros"},
    {"fp8-row", "e4m3 row bf16"},
    {"fp8-tensor", "e4m3 tensor f16"},
    {"fp8-block", "e4m3 block 48 48 f32"},
    {"int4-group", "int4 group 32 bf16"},
    {"int4-group-asymmetric", "int4 group 32 f16 zeros"},
};
enum { LIBRARY_COUNT = sizeof library / sizeof *library };

static void check_digest(const mgl_graph *graph, const char *name, const char *digest,
                         const char *format)
{
    const int index = mgl_graph_find_tensor(graph, name);
    ck_assert_msg(index >= 0, "%s", name);
    const mgl_tensor *t = &graph->tensors[index];
    const size_t all = (size_t)(t->rows * t->cols);
    float *numbers = calloc(all, sizeof *numbers);
    unsigned char hash[MGL_SHA256_BYTES];
    char hex[MGL_SHA256_HEX], text[MGL_WEIGHT_FORMAT_TEXT];
    mgl_error err;
    ck_assert_str_eq(mgl_weight_format_print(t->quantized, text), format);
    ck_assert_int_eq(graph->read(graph, index, 0, t->rows, numbers, &err), MGL_OK);
    mgl_sha256_of(numbers, all * sizeof *numbers, hash);
    mgl_sha256_hex(hash, hex);
    ck_assert_msg(!strcmp(hex, digest), "%s: %s", name, hex);
    free(numbers);
}

START_TEST(test_library)
{
    char folder[256], path[300];
    mgl_json json;
    mgl_error err;
    snprintf(folder, sizeof folder, MODELS "library/%s", library[_i].folder);
    snprintf(path, sizeof path, "%s/decompressed.json", folder);
    mgl_checkpoint *checkpoint = import(folder);
    ck_assert_int_eq(mgl_json_read_file(path, 1 << 20, &json, &err), MGL_OK);
    int count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, json.root)
    {
        check_digest(checkpoint->graph, item->string, item->valuestring, library[_i].format);
        count++;
    }
    ck_assert_int_eq(count, 7);
    ck_assert_int_eq(checkpoint->quantized, 7);
    mgl_json_clear(&json);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantized_fixtures");
    TCase *tests = tcase_create("fixtures");
    tcase_add_loop_test(tests, test_model, 0, MODEL_COUNT);
    tcase_add_loop_test(tests, test_library, 0, LIBRARY_COUNT);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
