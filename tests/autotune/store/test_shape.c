/*
 * Tests of the text form of a model's shape: the round trip with the biases and norms of every
 * family, and an unchanged text for models without them.
 */
#include "autotune/store/shape.h"
#include "eval/synthetic.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

enum { ATTENTION = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS };

static mgl_config config_of(const char *shape)
{
    mgl_error err = {0};
    mgl_config config;
    ok(mgl_synthetic_find_shape(shape, &config, &err));
    return config;
}

static mgl_text print(const mgl_config *config)
{
    mgl_text text = {0};
    mgl_shape_print(config, &text);
    ck_assert(!text.failed);
    return text;
}

/* Every combination that a config.json can give a model. */
static const unsigned families[] = {MGL_EXTRA_NONE,     ATTENTION,
                                    MGL_EXTRA_MLP_BIAS, ATTENTION | MGL_EXTRA_MLP_BIAS,
                                    MGL_EXTRA_QKV_BIAS, MGL_EXTRA_QKV_BIAS | MGL_EXTRA_MLP_BIAS,
                                    MGL_EXTRA_O_BIAS,   MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS,
                                    MGL_EXTRA_QK_NORM,  MGL_EXTRA_QK_NORM | ATTENTION};
enum { FAMILIES = sizeof families / sizeof *families };

START_TEST(a_family_reads_back)
{
    mgl_error err = {0};
    mgl_config config = config_of("llama-1b"), again;
    config.extras = families[_i];
    mgl_text text = print(&config);
    ok(mgl_shape_parse(text.bytes, &again, &err));
    ck_assert_uint_eq(again.extras, families[_i]);
    mgl_text second = print(&again);
    ck_assert_str_eq(second.bytes, text.bytes);
    mgl_text_clear(&text);
    mgl_text_clear(&second);
}
END_TEST

/* Every type of rope. */
START_TEST(a_rope_reads_back)
{
    mgl_error err = {0};
    mgl_config config = config_of("llama-1b"), again;
    config.rope.type = (mgl_rope_type)_i;
    config.rope.attention_factor = _i == MGL_ROPE_YARN || _i == MGL_ROPE_LONGROPE ? 1.25 : 1;
    config.rope.beta_fast = 30;
    config.rope.beta_slow = 2;
    for (int i = 0; i < config.geometry.head_dim / 2; i++) {
        config.rope.short_factor[i] = 1 + (float)i / 3;
        config.rope.long_factor[i] = 1 + (float)i / 7;
    }
    mgl_text text = print(&config);
    ok(mgl_shape_parse(text.bytes, &again, &err));
    mgl_text second = print(&again);
    ck_assert_str_eq(second.bytes, text.bytes);
    ck_assert_int_eq(again.rope.type, _i);
    mgl_text_clear(&text);
    mgl_text_clear(&second);
}
END_TEST

START_TEST(a_shape_reads_back)
{
    static const char *const names[] = {"llama-1b", "qwen2.5-0.5b", "qwen3-0.6b"};
    mgl_error err = {0};
    mgl_config config = config_of(names[_i]), again;
    mgl_text text = print(&config);
    ok(mgl_shape_parse(text.bytes, &again, &err));
    ck_assert(mgl_geometry_equal(&config.geometry, &again.geometry));
    ck_assert_uint_eq(again.extras, config.extras);
    ck_assert_int_eq(again.tied, config.tied);
    mgl_text_clear(&text);
}
END_TEST

static const mgl_weight_format int4 = {MGL_CODE_INT4, MGL_F16, 128, 1, false};
static const mgl_weight_format int8 = {MGL_CODE_INT8, MGL_F32, 0, 1, false};

/* Formats of a config, and how they are printed. */
static const struct {
    mgl_weight_format layers, head;
    const char *text;
} weights[] = {
    {{0}, {0}, ""},
    {int4, {0}, "int4 group 128 f16, head bf16"},
    {{0}, int8, "bf16, head int8 row f32"},
    {int4, int8, "int4 group 128 f16, head int8 row f32"},
    {{MGL_CODE_INT4, MGL_BF16, 32, 1, true}, int8, "int4 group 32 bf16 zeros, head int8 row f32"},
    {{MGL_CODE_E4M3, MGL_F32, 128, 128, false}, {0}, "e4m3 block 128 128 f32, head bf16"},
};
enum { WEIGHTS = sizeof weights / sizeof *weights };

/* Shapes of different formats have different texts and names. */
START_TEST(weight_formats_read_back)
{
    mgl_error err = {0};
    mgl_config config = config_of("llama-1b"), other = config, again;
    char name[MGL_SHAPE_NAME], own[MGL_SHAPE_NAME], shown[MGL_SYNTHETIC_TEXT];
    mgl_synthetic_choose_formats(&config, weights[_i].layers, weights[_i].head);
    mgl_text text = print(&config);
    ok(mgl_shape_parse(text.bytes, &again, &err));
    ck_assert(mgl_weight_format_equal(again.layers, weights[_i].layers));
    ck_assert(mgl_weight_format_equal(again.head, weights[_i].head));
    ck_assert_int_eq(again.tied, !mgl_weight_format_is_scaled(weights[_i].head));
    ck_assert_str_eq(mgl_shape_weights(text.bytes, shown), weights[_i].text);
    ck_assert_int_eq(strstr(text.bytes, "quantization_config") != NULL, _i > 0);
    ok(mgl_shape_name(&config, own, &err));
    for (int i = 0; i < WEIGHTS; i++) {
        mgl_synthetic_choose_formats(&other, weights[i].layers, weights[i].head);
        other.tied = config.tied;
        ok(mgl_shape_name(&other, name, &err));
        ck_assert_int_eq(!strcmp(name, own), i == _i);
    }
    mgl_text_clear(&text);
}
END_TEST

/* What replaces the formats of a shape, and a part of the message. */
static const struct {
    const char *formats, *says;
} damages[] = {
    {"{\"quant_method\":\"gptq\",\"bits\":4}", "quant_method = \"gptq\""},
    {"{\"bits\":4}", "quant_method"},
    {"[]", "quantization_config"},
    {"{\"quant_method\":\"megalith\",\"layers\":\"int4 group 128 f16\"}", "head"},
    {"{\"quant_method\":\"megalith\",\"layers\":\"int4\",\"head\":\"bf16\"}", "layers = \"int4\""},
    {"{\"quant_method\":\"megalith\",\"layers\":\"f16\",\"head\":\"bf16\"}", "layers = \"f16\""},
    {"{\"quant_method\":\"megalith\",\"layers\":\"bf16\",\"head\":\"uint4 group 32 f16\"}",
     "head = \"uint4"},
    {"{\"quant_method\":\"megalith\",\"layers\":\"bf16\",\"head\":\"int8 row f32\"}",
     "tied to the embedding"},
};

START_TEST(damaged_weight_formats_are_rejected)
{
    mgl_error err = {0};
    mgl_config config = config_of("llama-1b"), out;
    mgl_text text = print(&config), damaged = {0};
    mgl_text_format(&damaged, "%.*s,\"quantization_config\":%s}", (int)text.length - 1, text.bytes,
                    damages[_i].formats);
    ck_assert_int_eq(mgl_shape_parse(damaged.bytes, &out, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, damages[_i].says) || strstr(err.where, damages[_i].says),
                  "%s: %s", err.where, err.message);
    mgl_text_clear(&text);
    mgl_text_clear(&damaged);
}
END_TEST

/* Campaigns in stores are identified by these texts. */
START_TEST(without_biases_a_shape_keeps_its_name)
{
    mgl_error err = {0};
    mgl_config config = config_of("qwen2.5-0.5b");
    char name[MGL_SHAPE_NAME], biased[MGL_SHAPE_NAME];
    ok(mgl_shape_name(&config, biased, &err));
    config.extras = MGL_EXTRA_NONE;
    ok(mgl_shape_name(&config, name, &err));
    ck_assert_str_eq(name, "model-04ca85c8016a");
    ck_assert_str_ne(biased, name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shape");
    TCase *tests = tcase_create("shape");
    tcase_add_loop_test(tests, a_family_reads_back, 0, FAMILIES);
    tcase_add_loop_test(tests, a_rope_reads_back, 0, MGL_ROPE_TYPE_COUNT);
    tcase_add_loop_test(tests, a_shape_reads_back, 0, 3);
    tcase_add_loop_test(tests, weight_formats_read_back, 0, WEIGHTS);
    tcase_add_loop_test(tests, damaged_weight_formats_are_rejected, 0,
                        sizeof damages / sizeof *damages);
    tcase_add_test(tests, without_biases_a_shape_keeps_its_name);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
