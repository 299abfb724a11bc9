/*
 * Every layout of quantized weights. The models are written element by element (models.h), and
 * every element is compared. The properties that readers get wrong have these cases:
 *
 *     zero points are packed along N, in plain order, q_proj is square: ct-int4-group-asymmetric
 *     asymmetric weights without zero points: ct-asymmetric-without-zeros
 *     orders of columns that change nothing: ct-actorder-*, gptq-desc-act-in-order
 *     zero points minus 1, modulo 2^bits: gptq-v1-*, gptq-v2-*; either name: gptq-v1-name-v2-zeros
 *     one group a row: gptq-one-group, awq-one-group
 *     the order of the fields of AWQ, and zero points as they are: awq
 *     weight_scale_inv multiplies; sizes are no multiples of the block: fp8-*
 *     the name of the repository: test_name_of_the_folder_is_not_read
 *     a head that is quantized or not, against the config: test_quantized_head, test_plain_head
 *     scales of q, k and v, gate and up differ: every case
 *     NaN codes, other bits and layouts: test_damaged.c
 */
#include "importer/checkpoint.h"
#include "importer/quantized/quantization.h"
#include "tests/importer/quantized/models.h"
#include "tests/scratch.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

static char scratch[] = "/tmp/megalith-quantized-XXXXXX";
static char folder[64];

static void set_up(void)
{
    scratch_make(scratch);
    snprintf(folder, sizeof folder, "%s/m", scratch);
}

static void tear_down(void)
{
    scratch_remove(scratch);
}

#define GROUP(weights)                                                                             \
    "{\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\", \"ignore\": "      \
    "[\"lm_head\"], \"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"], \"weights\": "    \
    "{" weights "}}}}"
#define INT4_G32                                                                                   \
    "\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\", "                                \
    "\"group_size\": 32"
#define INT8_ROW "\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"channel\""
#define INT4_ROW "\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"channel\""
#define FLOAT(strategy)                                                                            \
    "\"num_bits\": 8, \"type\": \"float\", "                                                       \
    "\"strategy\": \"" strategy "\""

#define ASYM                    ", \"symmetric\": false"
#define GPTQ_CONFIG(bits, more) "{\"quant_method\": \"gptq\", \"bits\": " bits more "}"
#define AWQ_CONFIG(more)                                                                           \
    "{\"quant_method\": \"awq\", \"bits\": 4, "                                                    \
    "\"zero_point\": true" more "}"

static mgl_checkpoint *import(const recipe *r, const edit *e)
{
    mgl_checkpoint *checkpoint = NULL;
    mgl_error err = {0};
    ck_assert(write_quantized(r, e, folder));
    mgl_status status = mgl_import(folder, &checkpoint, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return checkpoint;
}

/* Compares `read` and `read_codes` of a matrix with what was drawn for rows of the stored matrix.
 * `head`: the rows of each head of this size are stored interleaved; 0: in order. */
static void check_matrix(const recipe *r, const mgl_graph *graph, const char *name,
                         const char *stored, int64_t first, int64_t head)
{
    const int index = mgl_graph_find_tensor(graph, name);
    ck_assert_msg(index >= 0, "%s", name);
    const mgl_tensor *t = &graph->tensors[index];
    const size_t all = (size_t)(t->rows * t->cols);
    const int64_t groups = mgl_weight_format_groups(t->quantized, t->cols);
    float *numbers = calloc(all, 4), *scales = calloc(all, 4);
    uint8_t *codes = calloc(all, 1), *zeros = calloc(all, 1);
    mgl_quantized_rows to = {codes, scales, t->quantized.zeros ? zeros : NULL, NULL};
    mgl_error err = {0};
    ck_assert(mgl_tensor_is_quantized(t));
    ck_assert_int_eq(t->dtype, MGL_F32);
    ck_assert(mgl_weight_format_valid(t->quantized));
    /* In two parts, at a row that no layout aligns. */
    ck_assert_int_eq(graph->read(graph, index, 0, 13, numbers, &err), MGL_OK);
    ck_assert_int_eq(graph->read(graph, index, 13, t->rows - 13, numbers + 13 * t->cols, &err),
                     MGL_OK);
    ck_assert_int_eq(graph->read_codes(graph, index, 0, t->rows, &to, &err), MGL_OK);
    for (int64_t n = 0; n < t->rows; n++)
        for (int64_t k = 0; k < t->cols; k++) {
            const int64_t g = t->quantized.group ? k / t->quantized.group : 0;
            const size_t at = (size_t)(n * t->cols + k), shared = (size_t)(n * groups + g);
            const int64_t i = head ? n % head : 0;
            const int64_t row = first + n - i +
                                (i < head / 2 ? 2 * i
                                 : i          ? 2 * (i - head / 2) + 1
                                              : 0);
            ck_assert_msg(codes[at] == drawn_code(r, stored, row, k), "%s: code %d %d", name,
                          (int)n, (int)k);
            ck_assert(scales[shared] == drawn_scale(r, stored, row, k));
            if (to.zeros)
                ck_assert_int_eq(zeros[shared], drawn_zero(r, stored, row, k));
            ck_assert_msg(numbers[at] == drawn_number(r, stored, row, k),
                          "%s: number %d %d: %g, not %g", name, (int)n, (int)k, (double)numbers[at],
                          (double)drawn_number(r, stored, row, k));
        }
    free(numbers);
    free(scales);
    free(codes);
    free(zeros);
}

#define LAYER "model.layers.0."

static void check_layer(const recipe *r, const mgl_graph *graph)
{
    static const char *const names[] = {
        "self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj.", "self_attn.o_proj.",
        "mlp.gate_proj.",    "mlp.up_proj.",      "mlp.down_proj."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[128], base[96];
        snprintf(base, sizeof base, LAYER "%s", names[i]);
        snprintf(name, sizeof name, "%sweight", base);
        check_matrix(r, graph, name, base, 0, 0);
    }
}

/* ---- layouts --------------------------------------------------------------------------------- */

static const struct {
    const char *name, *format; /* of q_proj */
    recipe recipe;
} layouts[] = {
#include "layouts.def"
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

START_TEST(test_layout)
{
    const recipe *r = &layouts[_i].recipe;
    mgl_checkpoint *checkpoint = import(r, NULL);
    const mgl_graph *graph = checkpoint->graph;
    const int q = mgl_graph_find_tensor(graph, LAYER "self_attn.q_proj.weight");
    char text[MGL_WEIGHT_FORMAT_TEXT];
    const char *format = mgl_weight_format_print(graph->tensors[q].quantized, text);
    ck_assert_int_eq(graph->dtype, MGL_BF16);
    ck_assert_int_eq(checkpoint->quantized, 7);
    ck_assert_uint_eq(checkpoint->parameters, 4096 * 3 + 2048 * 2 + 8192 * 3 + 64 * 3);
    check_layer(r, graph);
    ck_assert_msg(!strcmp(format, layouts[_i].format), "%s: %s", layouts[_i].name, format);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* ---- parts of matrices ----------------------------------------------------------------------- */

/* Layouts that are packed along rows, along columns, and in blocks that the parts do not align. */
static const recipe cut[] = {
    {.config = GROUP(INT4_G32 ASYM),
     .layout = PACKED,
     .bits = 4,
     .group = 32,
     .rows = 1,
     .scales = "BF16",
     .zeros = true},
    {.config = GROUP(INT8_ROW), .layout = BYTES, .bits = 8, .rows = 1, .scales = "BF16"},
    {.config = GPTQ_CONFIG("4", ", \"group_size\": 32, \"sym\": false"),
     .layout = GPTQ,
     .bits = 4,
     .group = 32,
     .rows = 1,
     .scales = "F16",
     .zeros = true,
     .zero_offset = 1},
    {.config = GPTQ_CONFIG("8", ", \"group_size\": 32, \"sym\": false"),
     .layout = GPTQ,
     .bits = 8,
     .group = 32,
     .rows = 1,
     .scales = "F16",
     .zeros = true,
     .zero_offset = 1},
    {.config = AWQ_CONFIG(", \"group_size\": 32"),
     .layout = AWQ,
     .bits = 4,
     .group = 32,
     .rows = 1,
     .scales = "F16",
     .zeros = true},
    {.config = "{\"quant_method\": \"fp8\", \"weight_block_size\": [48, 80]}",
     .layout = BYTES,
     .bits = 8,
     .is_float = true,
     .group = 80,
     .rows = 48,
     .scales = "F32",
     .scale_name = "weight_scale_inv"},
    {.config = "{\"quant_method\": \"fp8\", \"weight_block_size\": [32, 32]}",
     .layout = BYTES,
     .bits = 8,
     .is_float = true,
     .group = 32,
     .rows = 32,
     .scales = "F32",
     .scale_name = "weight_scale_inv"},
    {.config = "{\"quant_method\": \"fp8\"}",
     .layout = BYTES,
     .bits = 8,
     .is_float = true,
     .scales = "F32",
     .scale_name = "weight_scale_inv"},
};
enum { CUT_RECIPES = sizeof cut / sizeof *cut };

START_TEST(test_fused)
{
    recipe r = cut[_i];
    r.family = "phi3";
    mgl_checkpoint *checkpoint = import(&r, NULL);
    const mgl_graph *graph = checkpoint->graph;
    check_matrix(&r, graph, LAYER "self_attn.q_proj.weight", LAYER "self_attn.qkv_proj.", 0, 0);
    check_matrix(&r, graph, LAYER "self_attn.k_proj.weight", LAYER "self_attn.qkv_proj.", 64, 0);
    check_matrix(&r, graph, LAYER "self_attn.v_proj.weight", LAYER "self_attn.qkv_proj.", 96, 0);
    check_matrix(&r, graph, LAYER "mlp.gate_proj.weight", LAYER "mlp.gate_up_proj.", 0, 0);
    check_matrix(&r, graph, LAYER "mlp.up_proj.weight", LAYER "mlp.gate_up_proj.", 128, 0);
    ck_assert_int_eq(checkpoint->quantized, 7);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* Families with interleaved rope store the rows of q and k in another order. */
START_TEST(test_interleaved)
{
    recipe r = cut[_i];
    r.family = "helium";
    r.more_config = "\"head_dim\": 16";
    mgl_checkpoint *checkpoint = import(&r, NULL);
    const mgl_graph *graph = checkpoint->graph;
    check_matrix(&r, graph, LAYER "self_attn.q_proj.weight", LAYER "self_attn.q_proj.", 0, 16);
    check_matrix(&r, graph, LAYER "self_attn.k_proj.weight", LAYER "self_attn.k_proj.", 0, 16);
    check_matrix(&r, graph, LAYER "self_attn.v_proj.weight", LAYER "self_attn.v_proj.", 0, 0);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* ---- head ------------------------------------------------------------------------------------ */

/* A tied model that stores a quantized head has a head of its own, whether or not the config
 * excludes the head. */
START_TEST(test_quantized_head)
{
    recipe r = cut[_i];
    r.head = true;
    mgl_checkpoint *checkpoint = import(&r, NULL);
    ck_assert(!checkpoint->graph->tied && checkpoint->graph->own_head);
    ck_assert_int_eq(checkpoint->quantized, 8);
    check_matrix(&r, checkpoint->graph, MGL_TENSOR_HEAD, "lm_head.", 0, 0);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* A head that is stored in bf16 is used as it is, whether or not the config excludes the head. */
START_TEST(test_plain_head)
{
    recipe r = cut[_i];
    r.head_only_plain = true;
    mgl_checkpoint *checkpoint = import(&r, NULL);
    ck_assert(!checkpoint->graph->tied);
    const int head = mgl_graph_find_tensor(checkpoint->graph, MGL_TENSOR_HEAD);
    ck_assert(!mgl_tensor_is_quantized(&checkpoint->graph->tensors[head]));
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* ---- stored tensors decide ------------------------------------------------------------------- */

static recipe packed_recipe(const char *config)
{
    return (recipe){
        .config = config, .layout = PACKED, .bits = 4, .group = 32, .rows = 1, .scales = "BF16"};
}

/* A module that the config excludes is stored plain, and a scale beside it is not used. */
START_TEST(test_excluded_module_is_plain)
{
    const recipe r = {
        .layout = PLAIN,
        .config = "{\"quant_method\": \"compressed-tensors\", \"ignore\": [\"re:.*q_proj\"], "
                  "\"config_groups\": {\"a\": {\"targets\": [\"Linear\"], \"weights\": {" INT4_G32
                  "}}}}"};
    const edit e = {ADD, "weight_scale", "BF16", 64, 2};
    mgl_checkpoint *checkpoint = import(&r, &e);
    ck_assert_int_eq(checkpoint->quantized, 0);
    ck_assert_int_eq(checkpoint->ignored, 1);
    ck_assert(!checkpoint->graph->read_codes);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* Scales of a head that the config excludes, in a tied model without a stored head. */
START_TEST(test_scales_of_excluded_head)
{
    const recipe r = packed_recipe(GROUP(INT4_G32));
    const edit e = {ADD, "lm_head.weight_scale", "BF16", 64, 2};
    mgl_checkpoint *checkpoint = import(&r, &e);
    ck_assert(checkpoint->graph->tied);
    ck_assert_int_eq(checkpoint->ignored, 1);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* A module that the config excludes is stored quantized: the stored tensors count. */
START_TEST(test_excluded_module_is_quantized)
{
    const recipe r = packed_recipe(
        "{\"quant_method\": \"compressed-tensors\", \"ignore\": [\"re:.*\"], \"config_groups\": "
        "{\"a\": {\"targets\": [\"Linear\"], \"weights\": {" INT8_ROW
        "}}, \"b\": {\"targets\": [\"Linear\"], \"weights\": {" INT4_G32 "}}}}");
    mgl_checkpoint *checkpoint = import(&r, NULL);
    check_layer(&r, checkpoint->graph);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

static int compiled; /* number of compiled patterns */

pcre2_code *__real_pcre2_compile_8(PCRE2_SPTR text, PCRE2_SIZE length, uint32_t options, int *error,
                                   PCRE2_SIZE *at, pcre2_compile_context *context);
pcre2_code *__wrap_pcre2_compile_8(PCRE2_SPTR text, PCRE2_SIZE length, uint32_t options, int *error,
                                   PCRE2_SIZE *at, pcre2_compile_context *context);

/* Counts calls of pcre2_compile. The linker redirects the calls to this function (--wrap in
 * CMakeLists.txt). */
pcre2_code *__wrap_pcre2_compile_8(PCRE2_SPTR text, PCRE2_SIZE length, uint32_t options, int *error,
                                   PCRE2_SIZE *at, pcre2_compile_context *context)
{
    compiled++;
    return __real_pcre2_compile_8(text, length, options, error, at, context);
}

/* Patterns are compiled once, not for each matrix. */
START_TEST(test_many_patterns)
{
    enum { PATTERNS = 10000, ROOM = 80, LAYERS = 10 };
    static char text[2 * PATTERNS * ROOM];
    size_t used = (size_t)sprintf(
        text, "{\"quantization_config\": {\"quant_method\": \"compressed-tensors\"");
    for (int list = 0; list < 2; list++) {
        used += (size_t)sprintf(text + used, "%s",
                                list ? "], \"config_groups\": {\"a\": {\"targets\": [\"Linear\""
                                     : ", \"ignore\": [\"lm_head\"");
        for (int i = 0; i < PATTERNS; i++)
            used +=
                (size_t)sprintf(text + used, ", \"re:model[.]layers[.](%d|x+)[.].*_(proj|gate)$\"",
                                i + LAYERS / 2 + list * LAYERS);
    }
    used += (size_t)sprintf(text + used, "], \"weights\": {" INT4_G32 "}}}}}");
    mgl_json json;
    mgl_quantization q;
    mgl_reasons reasons = {0};
    mgl_error err;
    char name[64];
    int found = 0;
    ck_assert_int_eq(mgl_json_parse(text, used, used, "config.json", &json, &err), MGL_OK);
    compiled = 0;
    ck_assert_int_eq(mgl_quantization_read(&json, &q, &reasons, &err), MGL_OK);
    ck_assert(!q.rejected);
    ck_assert_int_eq(compiled, 2 * PATTERNS);
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "model.layers.%d.mlp.up_proj", i);
        found += mgl_quantization_find(&q, name, name, "Linear") != NULL;
    }
    ck_assert_int_eq(compiled, 2 * PATTERNS);
    ck_assert_int_eq(found, LAYERS / 2);
    mgl_quantization_clear(&q);
    mgl_reasons_clear(&reasons);
    mgl_json_clear(&json);
}
END_TEST

/* The repository's name says nothing about the layout. */
START_TEST(test_name_of_the_folder_is_not_read)
{
    const recipe r = packed_recipe(GROUP(INT4_G32));
    snprintf(folder, sizeof folder, "%s/Model-AWQ-GPTQ", scratch);
    mgl_checkpoint *checkpoint = import(&r, NULL);
    check_layer(&r, checkpoint->graph);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* Scales of activations, and the bias of zeros that older GPTQ files store, are not used. */
START_TEST(test_companions)
{
    static const edit edits[] = {{ADD, "input_scale", "F32", 1, -1},
                                 {ADD, "activation_scale", "BF16", 1, -1},
                                 {ADD, "input_zero_point", "I8", 1, -1},
                                 {ADD, "bias", "F16", 64, -1}};
    const recipe r = packed_recipe(GROUP(INT4_G32));
    mgl_checkpoint *checkpoint = import(&r, &edits[_i]);
    ck_assert_int_eq(checkpoint->ignored, 1);
    check_layer(&r, checkpoint->graph);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

static void write_beside(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Older repositories declare the quantization in a file beside config.json. */
START_TEST(test_file_beside_config)
{
    const recipe gptq = {.layout = GPTQ,
                         .bits = 4,
                         .group = 32,
                         .rows = 1,
                         .scales = "F16",
                         .zeros = true,
                         .zero_offset = 1};
    const recipe awq = {
        .layout = AWQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zeros = true};
    const recipe *r = _i ? &awq : &gptq;
    mgl_checkpoint *checkpoint;
    mgl_error err;
    ck_assert(write_quantized(r, NULL, folder));
    ck_assert_int_eq(mgl_import(folder, &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "no usable quantization_config"));
    write_beside(
        _i ? "quant_config.json" : "quantize_config.json",
        _i ? "{\"w_bit\": 4, \"q_group_size\": 32, \"zero_point\": true, \"version\": \"GEMM\"}"
           : "{\"bits\": 4, \"group_size\": 32, \"sym\": false, \"desc_act\": false}");
    ck_assert_int_eq(mgl_import(folder, &checkpoint, &err), MGL_OK);
    check_layer(r, checkpoint->graph);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_compression_config)
{
    recipe r = packed_recipe(NULL);
    r.more_config =
        "\"compression_config\": {\"format\": \"pack-quantized\", \"config_groups\": {\"group_0\": "
        "{\"targets\": [\"Linear\"], \"weights\": {" INT4_G32 "}}}}";
    mgl_checkpoint *checkpoint = import(&r, NULL);
    check_layer(&r, checkpoint->graph);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* Without a dtype in config.json, the dtype of the largest tensor that is not quantized counts. */
START_TEST(test_dtype)
{
    static const struct {
        const char *key;
        mgl_dtype dtype;
    } cases[] = {{"\"dtype\": \"float16\"", MGL_F16},
                 {"\"torch_dtype\": \"float32\"", MGL_F32},
                 {"\"torch_dtype\": \"torch.float16\"", MGL_F16},
                 {"\"torch_dtype\": null", MGL_BF16}};
    const recipe r = packed_recipe(GROUP(INT4_G32));
    const edit e = {CONFIG, "\"torch_dtype\": \"bfloat16\"", cases[_i].key, 0, 0};
    mgl_checkpoint *checkpoint = import(&r, &e);
    ck_assert_int_eq(checkpoint->graph->dtype, cases[_i].dtype);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantized_layouts");
    TCase *tests = tcase_create("layouts");
    tcase_set_timeout(tests, 0); /* ctest has the limit */
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, test_layout, 0, LAYOUTS);
    tcase_add_loop_test(tests, test_fused, 0, CUT_RECIPES);
    tcase_add_loop_test(tests, test_interleaved, 0, CUT_RECIPES);
    tcase_add_loop_test(tests, test_quantized_head, 0, CUT_RECIPES);
    tcase_add_loop_test(tests, test_plain_head, 0, CUT_RECIPES);
    tcase_add_test(tests, test_excluded_module_is_plain);
    tcase_add_test(tests, test_scales_of_excluded_head);
    tcase_add_test(tests, test_excluded_module_is_quantized);
    tcase_add_test(tests, test_many_patterns);
    tcase_add_test(tests, test_name_of_the_folder_is_not_read);
    tcase_add_loop_test(tests, test_companions, 0, 4);
    tcase_add_loop_test(tests, test_file_beside_config, 0, 2);
    tcase_add_test(tests, test_compression_config);
    tcase_add_loop_test(tests, test_dtype, 0, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
