/* Tests of `tune` with quantized weights: of a synthetic model by flags, and of a quantized MODEL.
 */
#include "command.h"

#include "tests/sanitized.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static command_result tune(const char *store, const char *flags)
{
    return command_runf("tune %s --device none --seed 5 --store %s %s", model_path("tales-5m"),
                        store, flags);
}

/* Flags of a campaign, and a part of its answer. */
static const struct {
    const char *what, *weights;
} quantized[] = {
    {"--shape smollm2-135m --dtype int4 --group 64 --head-dtype int8",
     "int4 group 64 f16, head int8 group 64 f16"},
    {"--shape smollm2-135m --dtype int8", "int8 row f32, head bf16"},
    {"--shape smollm2-135m --head-dtype fp8", "bf16, head e4m3 row f32"},
    {MGL_SOURCE_DIR "/tests/models/quantized/q-tales-awq-int4-g64",
     "int4 group 64 f16 zeros, head bf16"},
    {MGL_SOURCE_DIR "/tests/models/quantized/q-tales-fp8-block",
     "e4m3 block 128 128 f32, head bf16"},
    {MGL_SOURCE_DIR "/tests/models/quantized/q-qwen2-ct-fp8", "e4m3 row bf16, head bf16"},
    {MGL_SOURCE_DIR "/tests/models/tales-5m --dtype int4 --group 32",
     "int4 group 32 f16, head bf16"},
};

START_TEST(it_tunes_quantized_weights)
{
    const char *store = scratch_store("quantized");
    command_result result = command_runf(
        "tune %s --device none --seed 5 --trials 2 --store %s --json", quantized[_i].what, store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_str_eq(json_string(&json, "weights"), quantized[_i].weights);
    ck_assert_str_eq(json_string(&json, "dtype"), "bf16");
    ck_assert_int_eq((int)json_number(&json, "outcomes.UNMEASURED"), 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A compiled model has the formats of the checkpoint, and thus its campaign. */
START_TEST(a_compiled_quantized_model_has_the_campaign_of_its_checkpoint)
{
    const char *store = scratch_store("compiled");
    const char *path = scratch_file("quantized.mega", "");
    const char *folder = MGL_SOURCE_DIR "/tests/models/quantized/q-tales-gptq-int4-g64";
    command_result result = command_runf("compile %s --target cpu:1 -o %s", folder, path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("tune %s --device none --trials 1 --store %s --quiet", folder, store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("tune %s --device none --trials 2 --store %s --json", path, store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_str_eq(json_string(&json, "weights"), "int4 group 64 f16, head bf16");
    ck_assert_int_eq((int)json_number(&json, "trials"), 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Each set of formats has a campaign of its own, also under a given name. */
START_TEST(a_campaign_has_one_set_of_weight_formats)
{
    const char *store = scratch_store("formats");
    command_result result = tune(store, "--trials 1 --name mine --dtype int4 --group 64 --quiet");
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    static const char *const others[] = {"", "--dtype bf16", "--dtype int8",
                                         "--dtype int4 --group 32",
                                         "--dtype int4 --group 64 --head-dtype int8"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char flags[128];
        snprintf(flags, sizeof flags, "--trials 2 --name mine %s", others[i]);
        result = tune(store, flags);
        ck_assert_int_eq(result.code, 1);
        ck_assert_msg(strstr(result.err, "--dtype, --group or --head-dtype: the campaign \"mine\" "
                                         "began with another value"),
                      "%s", result.err);
        command_clear(&result);
        snprintf(flags, sizeof flags, "--trials 1 --quiet %s", others[i]);
        result = tune(store, flags);
        ck_assert_msg(result.code == 0, "%s", result.err);
        command_clear(&result);
    }
    result = command_runf("campaign list --store %s --json", store);
    mgl_json json = command_json(&result, "megalith.campaign/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "campaigns")), 5);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Commands that are rejected, with exit code and a part of the message. */
static const struct {
    const char *what;
    int code;
    const char *says;
} wrong_formats[] = {
    {MGL_SOURCE_DIR "/tests/models/quantized/q-tales-ct-int8 --dtype int4", 1,
     "the model is quantized, and its own formats are used; leave out these flags"},
    {MGL_SOURCE_DIR "/tests/models/quantized/q-tales-ct-int8 --group 64", 1, "leave out these"},
    {MGL_SOURCE_DIR "/tests/models/quantized/q-tales-ct-int8 --head-dtype int8", 1,
     "leave out these"},
    {MGL_SOURCE_DIR "/tests/models/quantized/q-tales-ct-int8/config.json", 2,
     "its weight formats are in its other files; give the folder of the model"},
    {MGL_SOURCE_DIR "/tests/fuzz/seeds/fuzz_gguf/q8_0.gguf", 2, "is a GGUF file"},
};

START_TEST(wrong_formats_are_rejected)
{
    command_result result =
        command_runf("tune %s --device none --capacity 16 --trials 1 --store %s",
                     wrong_formats[_i].what, scratch_store("wrong"));
    ck_assert_msg(result.code == wrong_formats[_i].code, "%d: %s", result.code, result.err);
    ck_assert_msg(strstr(result.err, wrong_formats[_i].says), "%s", result.err);
    command_clear(&result);
}
END_TEST

/* The model is compiled from a GGUF file, so its config.json does not declare the quantization. */
START_TEST(a_compiled_model_with_a_quantized_embedding_is_rejected)
{
    const char *path = scratch_file("quantized.mega", "");
    command_result result =
        command_runf("compile %s --target cpu:1 -o %s",
                     MGL_SOURCE_DIR "/tests/fuzz/seeds/fuzz_gguf/q8_0.gguf", path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("tune %s --device none --capacity 16 --trials 1 --store %s", path,
                          scratch_store("embedding"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "the head is a quantized embedding"), "%s", result.err);
    command_clear(&result);
}
END_TEST

/* A real campaign: candidates run on a CPU, and each is compared with the f32 reference. */
START_TEST(a_cpu_tunes_a_quantized_model)
{
    const char *store = scratch_store("cpu-quantized");
    command_result result =
        command_runf("tune %s --device cpu --target cpu:2 --seed 5 --trials 2 --capacity 64 "
                     "--workloads 'ctx=0;batch=1' --store %s --json",
                     MGL_SOURCE_DIR "/tests/models/quantized/q-tales-ct-int4-g64", store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_str_eq(json_string(&json, "state"), "ended");
    ck_assert_str_eq(json_string(&json, "weights"), "int4 group 64 bf16, head bf16");
    ck_assert_int_eq((int)json_number(&json, "outcomes.UNMEASURED"), 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tune_formats");
    TCase *tests = tcase_create("tune_formats");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, it_tunes_quantized_weights, 0, sizeof quantized / sizeof *quantized);
    tcase_add_test(tests, a_compiled_quantized_model_has_the_campaign_of_its_checkpoint);
    tcase_add_test(tests, a_campaign_has_one_set_of_weight_formats);
    tcase_add_loop_test(tests, wrong_formats_are_rejected, 0,
                        sizeof wrong_formats / sizeof *wrong_formats);
    tcase_add_test(tests, a_compiled_model_with_a_quantized_embedding_is_rejected);
    if (!MGL_SANITIZED)
        tcase_add_test(tests, a_cpu_tunes_a_quantized_model);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
