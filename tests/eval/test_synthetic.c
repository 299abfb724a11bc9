/* Tests of synthetic models: shapes, the distribution of weights, and that the device's formula for
 * tapes gives the same bytes as packing. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "eval/bench.h"
#include "eval/filler.h"
#include "eval/reference.h"
#include "eval/synthetic.h"
#include "megalith.h"
#include "schedule/schedule.h"
#include "tests/vm/tapes.h"
#include "vm/vm.h"

#define ok(call, err) ck_assert_msg((call) == MGL_OK, "%s: %s", (err).where, (err).message)

/* Rows and columns that do not fill a row group or a block. */
static const mgl_config odd = {
    .geometry = {72, 2, 3, 1, 32, 500, 1213, 1e-5f},
    .max_positions = 64,
    .tied = false,
    .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
    .extras = 0};
static const mgl_config small = {
    .geometry = {64, 2, 4, 2, 16, 96, 75, 1e-5f},
    .max_positions = 64,
    .tied = true,
    .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
    .extras = 0};

enum {
    ALL_EXTRAS = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS | MGL_EXTRA_QK_NORM
};

static mgl_graph *open_graph(const mgl_config *config, uint64_t seed)
{
    mgl_error err;
    mgl_graph *graph;
    ok(mgl_synthetic_open(config, seed, &graph, &err), err);
    return graph;
}

static mgl_graph *open_shape(const char *name)
{
    mgl_error err;
    mgl_config config;
    ok(mgl_synthetic_find_shape(name, &config, &err), err);
    return open_graph(&config, 1);
}

static mgl_program *lower(const mgl_graph *graph, int queues, mgl_dtype dtype)
{
    mgl_error err;
    mgl_program *program;
    mgl_schedule_config config;
    mgl_target target = {.arch = "cpu", .queues = queues};
    mgl_lower_options options = {.dtype = dtype, .capacity = 32, .sequences = 2};
    mgl_schedule_config_default(&config);
    ok(mgl_schedule_lower(graph, &target, &options, &config, &program, &err), err);
    return program;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The bytes that PERFORMANCE states for these shapes, to the printed digits. */
START_TEST(shapes_stream_what_they_should)
{
    static const struct {
        const char *name;
        double gigabytes;
    } known[] = {{"llama-1b", 2.471},     {"llama-3b", 6.425},   {"llama-8b", 15.01},
                 {"qwen2.5-0.5b", 0.988}, {"qwen3-0.6b", 1.192}, {"tinyllama-1.1b", 2.069}};
    mgl_graph *graph = open_shape(known[_i].name);
    double bytes = mgl_synthetic_streamed_bytes(graph, 1, 0);
    ck_assert_double_eq_tol(bytes * 1e-9, known[_i].gigabytes, 0.0051);
    mgl_graph_free(graph);
}
END_TEST

static const char *const shapes[] = {"llama-1b",     "llama-3b",   "llama-8b",      "smollm2-135m",
                                     "qwen2.5-0.5b", "qwen3-0.6b", "tinyllama-1.1b"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(shapes_have_schedules_that_the_validator_accepts)
{
    mgl_error err;
    mgl_program *program;
    mgl_schedule_config knobs;
    mgl_target target;
    mgl_graph *graph = open_shape(shapes[_i]);
    mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 1024, .sequences = 1};
    mgl_schedule_config_default(&knobs);
    ok(mgl_target_parse("sm_90a:132", &target, &err), err);
    ok(mgl_schedule_lower(graph, &target, &options, &knobs, &program, &err), err);
    ok(mgl_vm_check(program, graph, &err), err);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(the_cache_is_streamed_too)
{
    mgl_graph *graph = open_shape("llama-1b");
    double without = mgl_synthetic_streamed_bytes(graph, 1, 0);
    double with = mgl_synthetic_streamed_bytes(graph, 3, 1000.5);
    ck_assert_double_eq_tol(with - without, 3 * 1000.5 * 2 * 16 * 8 * 64 * 2, 1);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(smollm_is_tied_and_short)
{
    mgl_graph *graph = open_shape("smollm2-135m");
    ck_assert(graph->tied);
    ck_assert_int_eq(graph->max_positions, 8192);
    ck_assert_float_eq(graph->inv_freq[0], 1.0f);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(an_unknown_shape_names_those_there_are)
{
    mgl_error err;
    mgl_config config;
    ck_assert_int_eq(mgl_synthetic_find_shape("llama-2b", &config, &err), MGL_USAGE);
    ck_assert_str_eq(err.message, "unknown shape; there are llama-1b, llama-3b, llama-8b, "
                                  "smollm2-135m, qwen2.5-0.5b, qwen3-0.6b, tinyllama-1.1b");
}
END_TEST

START_TEST(a_wider_model_is_in_proportion)
{
    mgl_error err;
    mgl_config config;
    ok(mgl_synthetic_find_shape("llama-1b", &config, &err), err);
    ok(mgl_synthetic_widen(&config, 4096, &err), err);
    ck_assert_int_eq(config.geometry.hidden, 4096);
    ck_assert_int_eq(config.geometry.heads, 64);
    ck_assert_int_eq(config.geometry.kv_heads, 16);
    ck_assert_int_eq(config.geometry.ffn, 16384);
    ck_assert_int_eq(config.geometry.head_dim, 64);
    ck_assert_int_eq(config.geometry.vocab, 128256);
}
END_TEST

START_TEST(a_model_can_be_as_wide_as_it_is)
{
    mgl_error err;
    mgl_config config = odd;
    ok(mgl_synthetic_widen(&config, 72, &err), err);
    ck_assert_int_eq(memcmp(&config.geometry, &odd.geometry, sizeof odd.geometry), 0);
}
END_TEST

START_TEST(a_width_that_does_not_come_out_even_is_rejected)
{
    static const int widths[] = {0, -2048, 100, 1000, 2047};
    mgl_error err;
    mgl_config config;
    ok(mgl_synthetic_find_shape("llama-1b", &config, &err), err);
    ck_assert_int_eq(mgl_synthetic_widen(&config, widths[_i], &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "hidden");
    ck_assert_int_eq(config.geometry.hidden, 2048);
}
END_TEST

START_TEST(a_config_is_read_from_folder_or_file)
{
    mgl_error err;
    mgl_config folder, file;
    const char *path = MGL_SOURCE_DIR "/tests/models/tales-5m";
    ok(mgl_synthetic_read_config(path, &folder, &err), err);
    ok(mgl_synthetic_read_config(MGL_SOURCE_DIR "/tests/models/tales-5m/config.json", &file, &err),
       err);
    ck_assert_int_eq(folder.geometry.hidden, 256);
    ck_assert_int_eq(file.geometry.layers, folder.geometry.layers);
}
END_TEST

/* The config ties the head, but the checkpoint stores a head with other values: the shape has a
 * separate head. A config.json alone has no weights. */
START_TEST(a_stored_head_is_a_part_of_the_shape)
{
    static const struct {
        const char *path;
        bool tied;
    } known[] = {{MGL_SOURCE_DIR "/tests/models/families/mistral3", false},
                 {MGL_SOURCE_DIR "/tests/models/families/mistral3/config.json", true},
                 {MGL_BINARY_DIR "/synthetic-mistral3.mega", false},
                 {MGL_SOURCE_DIR "/tests/models/tales-5m", true},
                 {MGL_BINARY_DIR "/synthetic-tales-5m.mega", true}};
    mgl_error err;
    mgl_config config;
    mgl_compile_options options = {.size = sizeof options, .target = "cpu:1", .capacity = 16};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strstr(known[i].path, ".mega"))
            ok(mgl_model_compile(known[i - 2 + (i == 4)].path, &options, known[i].path, NULL, &err),
               err);
        ok(mgl_synthetic_read_config(known[i].path, &config, &err), err);
        ck_assert_msg(config.tied == known[i].tied, "%s", known[i].path);
        if (strstr(known[i].path, ".mega"))
            remove(known[i].path);
    }
}
END_TEST

/* The formats of a quantized model are those of its files, compiled or not. */
START_TEST(a_quantized_model_has_its_formats)
{
    static const struct {
        const char *name, *formats;
    } known[] = {{"q-tales-ct-int4-g64", "int4 group 64 bf16, head bf16"},
                 {"q-tales-ct-int8", "int8 row bf16, head bf16"},
                 {"q-tales-gptq-int4-g64", "int4 group 64 f16, head bf16"},
                 {"q-tales-awq-int4-g64", "int4 group 64 f16 zeros, head bf16"},
                 {"q-tales-fp8-block", "e4m3 block 128 128 f32, head bf16"},
                 {"q-qwen2-ct-fp8", "e4m3 row bf16, head bf16"}};
    mgl_error err;
    mgl_config config;
    char path[512], text[MGL_SYNTHETIC_TEXT];
    mgl_compile_options options = {.size = sizeof options, .target = "cpu:1", .capacity = 16};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        snprintf(path, sizeof path, MGL_SOURCE_DIR "/tests/models/quantized/%s", known[i].name);
        ok(mgl_synthetic_read_config(path, &config, &err), err);
        ck_assert_str_eq(mgl_synthetic_print_formats(&config, text), known[i].formats);
        const char *mega = MGL_BINARY_DIR "/synthetic-quantized.mega";
        ok(mgl_model_compile(path, &options, mega, NULL, &err), err);
        ok(mgl_synthetic_read_config(mega, &config, &err), err);
        ck_assert_str_eq(mgl_synthetic_print_formats(&config, text), known[i].formats);
        remove(mega);
        strcat(path, "/config.json");
        ck_assert_int_eq(mgl_synthetic_read_config(path, &config, &err), MGL_BAD_INPUT);
        ck_assert_msg(strstr(err.message, "give the folder of the model"), "%s", err.message);
    }
}
END_TEST

/* Older checkpoints declare the quantization in a file beside config.json. */
START_TEST(a_quantization_beside_the_config_is_found)
{
    mgl_error err;
    mgl_config config;
    char folder[] = MGL_BINARY_DIR "/synthetic-beside-XXXXXX", path[512], beside[512];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/config.json", folder);
    snprintf(beside, sizeof beside, "%s/quantize_config.json", folder);
    ck_assert_int_eq(symlink(MGL_SOURCE_DIR "/tests/models/tales-5m/config.json", path), 0);
    ok(mgl_synthetic_read_config(path, &config, &err), err);
    FILE *file = fopen(beside, "w");
    fputs("{\"bits\": 4, \"group_size\": 64}", file);
    fclose(file);
    ck_assert_int_eq(mgl_synthetic_read_config(path, &config, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "give the folder of the model"), "%s", err.message);
    remove(beside);
    remove(path);
    rmdir(folder);
}
END_TEST

START_TEST(a_config_that_is_not_supported_is_rejected)
{
    mgl_error err;
    mgl_config config;
    char path[] = MGL_BINARY_DIR "/synthetic-config-XXXXXX";
    static const char text[] = "{\"architectures\": [\"Phi3ForCausalLM\"]}";
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    ck_assert_int_eq(mgl_synthetic_read_config(path, &config, &err), MGL_BAD_INPUT);
    remove(path);
}
END_TEST

/* ---- families -------------------------------------------------------------------------------- */

START_TEST(shapes_have_the_biases_and_norms_of_their_models)
{
    static const struct {
        const char *name;
        unsigned extras;
    } known[] = {{"qwen2.5-0.5b", MGL_EXTRA_QKV_BIAS},
                 {"qwen3-0.6b", MGL_EXTRA_QK_NORM},
                 {"llama-1b", MGL_EXTRA_NONE}};
    mgl_error err;
    mgl_config config;
    ok(mgl_synthetic_find_shape(known[_i].name, &config, &err), err);
    ck_assert_uint_eq(config.extras, known[_i].extras);
}
END_TEST

START_TEST(configs_have_the_biases_and_norms_of_their_models)
{
    static const struct {
        const char *path;
        unsigned extras;
    } known[] = {{MGL_SOURCE_DIR "/tests/models/qwen2", MGL_EXTRA_QKV_BIAS},
                 {MGL_SOURCE_DIR "/tests/models/qwen3", MGL_EXTRA_QK_NORM}};
    mgl_error err;
    mgl_config config;
    ok(mgl_synthetic_read_config(known[_i].path, &config, &err), err);
    ck_assert_uint_eq(config.extras, known[_i].extras);
}
END_TEST

/* Bytes of the biases of q, k and v, in bf16. */
START_TEST(biases_are_streamed_too)
{
    mgl_config with = small;
    with.extras = MGL_EXTRA_QKV_BIAS;
    mgl_graph *a = open_graph(&with, 1), *b = open_graph(&small, 1);
    double more = mgl_synthetic_streamed_bytes(a, 3, 10) - mgl_synthetic_streamed_bytes(b, 3, 10);
    ck_assert_double_eq(more, 2 * (4 + 2 + 2) * 16 * 2);
    mgl_graph_free(a);
    mgl_graph_free(b);
}
END_TEST

/* ---- weights --------------------------------------------------------------------------------- */

static void read_floats(const mgl_graph *graph, int tensor, int64_t row, int64_t count, float *to)
{
    mgl_error err;
    size_t elements = (size_t)(count * graph->tensors[tensor].cols);
    uint16_t *bits = mgl_alloc(elements * sizeof *bits);
    ok(graph->read(graph, tensor, row, count, bits, &err), err);
    mgl_convert(to, MGL_F32, bits, MGL_BF16, elements);
    mgl_free(bits);
}

/* Mean 0 and standard deviation 1 / sqrt(inputs), within a factor of sqrt(2), so that activations
 * keep their magnitude. Every value is exact in bf16, so formats agree. */
START_TEST(matrices_are_centred_and_scaled)
{
    enum { ROWS = 64, COLS = 2048 };
    mgl_graph *graph = open_shape("llama-1b");
    int tensor = mgl_graph_find_tensor(graph, "model.layers.3.self_attn.q_proj.weight");
    float *values = mgl_alloc(ROWS * COLS * sizeof *values);
    double sum = 0, squares = 0;
    mgl_synthetic_rule rule = mgl_synthetic_tensor_rule(graph, tensor);
    read_floats(graph, tensor, 100, ROWS, values);
    for (int i = 0; i < ROWS * COLS; i++) {
        uint64_t element = (uint64_t)(100 * COLS + i);
        ck_assert_float_eq(values[i], mgl_synthetic_value(&rule, element));
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    double mean = sum / (ROWS * COLS), spread = sqrt(squares / (ROWS * COLS)) * sqrt((double)COLS);
    ck_assert_double_eq_tol(mean, 0, 3e-4);
    ck_assert_double_gt(spread, 0.70);
    ck_assert_double_lt(spread, 1.42);
    mgl_free(values);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(norms_are_around_one)
{
    float values[64];
    double sum = 0;
    mgl_graph *graph = open_graph(&small, 1);
    read_floats(graph, mgl_graph_find_tensor(graph, "model.norm.weight"), 0, 1, values);
    for (int i = 0; i < 64; i++) {
        ck_assert_float_ge(values[i], 0.5f);
        ck_assert_float_lt(values[i], 1.5f);
        sum += (double)values[i];
    }
    ck_assert_double_eq_tol(sum / 64, 1, 0.1);
    mgl_graph_free(graph);
}
END_TEST

/* Biases have mean 0 and are about half as large as the products; those of the residual stream are
 * smaller. */
START_TEST(biases_are_centred_and_smaller_than_products)
{
    enum { WIDTH = 2048 };
    static const struct {
        const char *name;
        double lo, hi; /* bounds of the standard deviation */
    } known[] = {{"model.layers.3.self_attn.q_proj.bias", 0.35, 0.71},
                 {"model.layers.3.self_attn.o_proj.bias", 0.35 / 5.66, 0.71 / 5.65},
                 {"model.layers.3.mlp.down_proj.bias", 0.35 / 5.66, 0.71 / 5.65}};
    mgl_error err;
    mgl_config config;
    float values[WIDTH];
    double sum = 0, squares = 0;
    ok(mgl_synthetic_find_shape("llama-1b", &config, &err), err);
    config.extras = ALL_EXTRAS;
    mgl_graph *graph = open_graph(&config, 1);
    read_floats(graph, mgl_graph_find_tensor(graph, known[_i].name), 0, 1, values);
    for (int i = 0; i < WIDTH; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    double spread = sqrt(squares / WIDTH);
    ck_assert_double_eq_tol(sum / WIDTH, 0, 0.1 * spread);
    ck_assert_double_gt(spread, known[_i].lo);
    ck_assert_double_lt(spread, known[_i].hi);
    mgl_graph_free(graph);
}
END_TEST

/* Every possible value is exact in f16 too: converting it and back changes nothing. */
START_TEST(every_dtype_holds_the_same_values)
{
    mgl_error err;
    mgl_config config;
    ok(mgl_synthetic_find_shape("llama-8b", &config, &err), err);
    config.extras = ALL_EXTRAS;
    mgl_graph *graph = open_graph(&config, 1);
    for (int t = 0; t < graph->tensor_count; t++) {
        mgl_synthetic_rule rule = mgl_synthetic_tensor_rule(graph, t);
        for (int draw = 0; draw <= 508; draw++) {
            float value = (float)(rule.offset + (draw >> rule.shift)) * rule.scale;
            ck_assert_float_eq(mgl_bf16_to_f32(mgl_f32_to_bf16(value)), value);
            ck_assert_float_eq(mgl_f16_to_f32(mgl_f32_to_f16(value)), value);
            ck_assert_uint_eq(mgl_synthetic_f16(mgl_synthetic_bits(value)), mgl_f32_to_f16(value));
        }
    }
    mgl_graph_free(graph);
}
END_TEST

START_TEST(draws_use_all_their_range)
{
    int lowest = 508, highest = 0;
    for (uint64_t i = 0; i < 10000000 && (lowest > 40 || highest < 468); i++) {
        int draw = mgl_synthetic_draw(12345, i);
        ck_assert(draw >= 0 && draw <= 508);
        lowest = draw < lowest ? draw : lowest;
        highest = draw > highest ? draw : highest;
    }
    ck_assert_int_le(lowest, 40);
    ck_assert_int_ge(highest, 468);
}
END_TEST

/* Seeds, tensors and caches use different keys. */
START_TEST(no_two_tensors_are_alike)
{
    mgl_graph *one = open_graph(&small, 1), *two = open_graph(&small, 2);
    uint64_t keys[64];
    int count = 0;
    for (int t = 0; t < one->tensor_count; t++)
        keys[count++] = mgl_synthetic_tensor_rule(one, t).key;
    for (int l = 0; l < 2; l++)
        for (int value = 0; value < 2; value++)
            keys[count++] = mgl_synthetic_cache_rule(one, l, value, 9).key;
    keys[count++] = mgl_synthetic_tensor_rule(two, 0).key;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(keys[i], keys[j]);
    mgl_graph_free(one);
    mgl_graph_free(two);
}
END_TEST

/* The mean of many values approaches 0, but their standard deviation grows, so that attention keeps
 * its magnitude. */
START_TEST(cached_values_grow_with_the_context)
{
    mgl_graph *graph = open_graph(&small, 1);
    float none = mgl_synthetic_cache_rule(graph, 0, true, 0).scale;
    ck_assert_float_eq(mgl_synthetic_cache_rule(graph, 0, true, 4).scale, none);
    ck_assert_float_eq(mgl_synthetic_cache_rule(graph, 0, true, 1024).scale, 16 * none);
    ck_assert_float_eq(mgl_synthetic_cache_rule(graph, 0, false, 1024).scale, none);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(cached_elements_are_numbered_apart)
{
    uint64_t one = mgl_synthetic_cached(0, 1, 2, 0, 64, 0),
             two = mgl_synthetic_cached(1, 0, 2, 0, 64, 0);
    ck_assert_uint_eq(one, 64ull << 20);
    ck_assert_uint_eq(two, 2 * (64ull << 20));
    ck_assert_uint_eq(mgl_synthetic_cached(0, 0, 2, (1 << 20) - 1, 64, 63), one - 1);
}
END_TEST

/* ---- tapes ----------------------------------------------------------------------------------- */

static void fill_segment(const mgl_program *program, const mgl_graph *graph,
                         const mgl_segment *segment, uint16_t *tape)
{
    mgl_error err;
    mgl_synthetic_segment block;
    ok(mgl_filler_describe(program, graph, segment, &block, &err), err);
    uint32_t *to = (uint32_t *)(tape + segment->offset / (int64_t)sizeof *tape);
    for (int64_t i = 0; i < block.elements / 2; i++)
        to[i] = mgl_synthetic_word(&block, i);
}

static void compare_tapes(const mgl_graph *graph)
{
    mgl_error err;
    mgl_program *program = lower(graph, 3, MGL_BF16);
    for (int q = 0; q < program->queue_count; q++) {
        size_t bytes = (size_t)program->queues[q].tape_bytes;
        uint16_t *packed = mgl_alloc_zero(bytes, 1), *made = mgl_alloc_zero(bytes, 1);
        ok(pack_tape(program, graph, q, packed, &err), err);
        const mgl_run *tasks = &program->queues[q].tasks;
        for (int t = tasks->first; t < tasks->first + tasks->count; t++)
            for (int s = 0; s < program->tasks[t].segments.count; s++)
                fill_segment(program, graph,
                             &program->segments[program->tasks[t].segments.first + s], made);
        ck_assert_msg(!memcmp(made, packed, bytes), "queue %d differs", q);
        mgl_free(packed);
        mgl_free(made);
    }
    mgl_program_free(program);
}

/* The device's element-wise formula gives the bytes that packing copies row by row. */
START_TEST(made_tapes_are_packed_tapes)
{
    mgl_graph *graph = open_graph(_i ? &odd : &small, 3);
    compare_tapes(graph);
    mgl_graph_free(graph);
}
END_TEST

static const mgl_weight_format formats[] = {
    {MGL_CODE_INT4, MGL_F16, 128, 1, false},   {MGL_CODE_INT4, MGL_BF16, 32, 1, true},
    {MGL_CODE_INT8, MGL_F32, 0, 1, false},     {MGL_CODE_INT8, MGL_F32, 64, 1, true},
    {MGL_CODE_INT4, MGL_F16, 16, 1, false},    {MGL_CODE_E4M3, MGL_F32, 16, 16, false},
    {MGL_CODE_E4M3, MGL_F32, 128, 128, false}, {MGL_CODE_E4M3, MGL_F16, 0, 0, false}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* The same for scaled weights; and each code, zero point and scale gives the weight. */
START_TEST(made_scaled_tapes_are_packed_tapes)
{
    mgl_error err;
    const mgl_weight_format f = formats[_i];
    mgl_graph *graph = open_graph(&odd, 3);
    ok(mgl_synthetic_set_formats(graph, f, formats[FORMATS - 1 - _i], &err), err);
    compare_tapes(graph);
    const int tensor = mgl_graph_find_tensor(graph, "model.layers.1.mlp.down_proj.weight");
    const mgl_tensor *t = &graph->tensors[tensor];
    const int64_t groups = mgl_weight_format_groups(f, t->cols);
    float values[2 * 500], scales[2 * 32];
    uint8_t codes[2 * 500], zeros[2 * 32];
    ck_assert(t->cols == 500 && groups <= 32);
    mgl_quantized_rows rows = {codes, scales, f.zeros ? zeros : NULL, NULL};
    ok(graph->read_codes(graph, tensor, 31, 2, &rows, &err), err);
    ok(graph->read(graph, tensor, 31, 2, values, &err), err);
    double squares = 0, sum = 0;
    for (int i = 0; i < 1000; i++) {
        const int64_t at = i / 500 * groups + (f.group ? i % 500 / f.group : 0);
        const int zero = f.zeros ? zeros[at] : mgl_weight_code_zero(f.code);
        ck_assert(values[i] == mgl_weight_code_number(f.code, codes[i], zero) * scales[at]);
        squares += (double)values[i] * (double)values[i];
        sum += mgl_weight_code_number(f.code, codes[i], mgl_weight_code_zero(f.code));
    }
    /* without a mean, which would grow from layer to layer */
    ck_assert_double_le(fabs(sum / 1000), f.code == MGL_CODE_INT4 ? 0.25 : 4);
    /* two layers: half of 1 / sqrt(columns), within the rounding to powers of two */
    ck_assert_double_eq_tol(log2(sqrt(squares / 1000) / (0.5 / sqrt(500))), 0, 1.1);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(a_tied_head_is_not_scaled)
{
    mgl_error err;
    mgl_graph *graph = open_graph(&small, 3);
    ck_assert_int_eq(mgl_synthetic_set_formats(graph, formats[0], formats[0], &err), MGL_USAGE);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(other_dtypes_are_not_made)
{
    mgl_error err;
    mgl_synthetic_segment block;
    mgl_graph *graph = open_graph(&small, 3);
    mgl_program *program = lower(graph, 1, MGL_F16);
    ck_assert_int_eq(mgl_filler_describe(program, graph, &program->segments[0], &block, &err),
                     MGL_BAD_INPUT);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* The whole pipeline accepts such a graph: it is validated, packed, and decodes. */
START_TEST(a_synthetic_model_decodes)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    const int32_t prompt[] = {5, 6, 7};
    mgl_config config = small;
    config.extras = _i ? ALL_EXTRAS : MGL_EXTRA_NONE;
    mgl_graph *graph = open_graph(&config, 4);
    mgl_program *program = lower(graph, 2, MGL_BF16);
    mgl_vm_options options = {.kind = MGL_VM_CPU};
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 20};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    bool differ = false;
    for (int i = 1; i < 20; i++)
        differ |= report.output[0][i] != report.output[0][0];
    ck_assert_msg(differ, "one token over and over");
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- biases and norms in a model ------------------------------------------------------------- */

static mgl_status (*read_all)(const mgl_graph *, int, int64_t, int64_t, void *, mgl_error *);

/* Biases of 0, and weights of 1 for the norms of q and k. */
static mgl_status read_without(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                               void *to, mgl_error *err)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    bool bias = strstr(t->name, ".bias"), norm = strstr(t->name, "_norm.");
    uint16_t *bits = to;
    for (int64_t i = 0; (bias || norm) && i < count * t->cols; i++)
        bits[i] = bias ? 0 : mgl_f32_to_bf16(1);
    return bias || norm ? MGL_OK : read_all(graph, tensor, row, count, to, err);
}

/* Logits (75) after three tokens. */
static void decode(const mgl_program *program, const mgl_graph *graph, float *logits)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    const int32_t prompt[] = {5, 6, 7};
    mgl_vm_options options = {.kind = MGL_VM_CPU};
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 1};
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
}

/* Biases and norms are large enough that a machine without them exceeds the error limit. */
START_TEST(biases_and_norms_matter)
{
    static const unsigned extras[] = {MGL_EXTRA_QKV_BIAS, MGL_EXTRA_O_BIAS, MGL_EXTRA_MLP_BIAS,
                                      MGL_EXTRA_QK_NORM};
    float with[75], without[75];
    mgl_config config = small;
    config.extras = extras[_i];
    mgl_graph *graph = open_graph(&config, 4);
    mgl_program *program = lower(graph, 2, MGL_F32);
    decode(program, graph, with);
    read_all = graph->read;
    graph->read = read_without;
    decode(program, graph, without);
    double distance = mgl_reference_distance(without, with, 75);
    printf("extras %u left out: %.2g\n", extras[_i], distance);
    ck_assert_double_gt(distance, 2 * MGL_BENCH_ERROR);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("synthetic");
    TCase *tests = tcase_create("synthetic");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, shapes_stream_what_they_should, 0, 6);
    tcase_add_loop_test(tests, shapes_have_schedules_that_the_validator_accepts, 0, SHAPES);
    tcase_add_test(tests, the_cache_is_streamed_too);
    tcase_add_test(tests, smollm_is_tied_and_short);
    tcase_add_test(tests, an_unknown_shape_names_those_there_are);
    tcase_add_test(tests, a_wider_model_is_in_proportion);
    tcase_add_test(tests, a_model_can_be_as_wide_as_it_is);
    tcase_add_loop_test(tests, a_width_that_does_not_come_out_even_is_rejected, 0, 5);
    tcase_add_test(tests, a_config_is_read_from_folder_or_file);
    tcase_add_test(tests, a_stored_head_is_a_part_of_the_shape);
    tcase_add_test(tests, a_quantized_model_has_its_formats);
    tcase_add_test(tests, a_quantization_beside_the_config_is_found);
    tcase_add_test(tests, a_config_that_is_not_supported_is_rejected);
    tcase_add_loop_test(tests, shapes_have_the_biases_and_norms_of_their_models, 0, 3);
    tcase_add_loop_test(tests, configs_have_the_biases_and_norms_of_their_models, 0, 2);
    tcase_add_test(tests, biases_are_streamed_too);
    tcase_add_test(tests, matrices_are_centred_and_scaled);
    tcase_add_test(tests, norms_are_around_one);
    tcase_add_loop_test(tests, biases_are_centred_and_smaller_than_products, 0, 3);
    tcase_add_test(tests, every_dtype_holds_the_same_values);
    tcase_add_test(tests, draws_use_all_their_range);
    tcase_add_test(tests, no_two_tensors_are_alike);
    tcase_add_test(tests, cached_values_grow_with_the_context);
    tcase_add_test(tests, cached_elements_are_numbered_apart);
    tcase_add_loop_test(tests, made_tapes_are_packed_tapes, 0, 2);
    tcase_add_loop_test(tests, made_scaled_tapes_are_packed_tapes, 0, FORMATS);
    tcase_add_test(tests, a_tied_head_is_not_scaled);
    tcase_add_test(tests, other_dtypes_are_not_made);
    tcase_add_loop_test(tests, a_synthetic_model_decodes, 0, 2);
    tcase_add_loop_test(tests, biases_and_norms_matter, 0, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
