/* A GPTQ model with reordered columns (desc_act) on the command line: info, run and compile. */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/importer/quantized/models.h"

static char folder[200];

static void write_model(void)
{
    static const recipe gptq = {.config =
                                    "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, "
                                    "\"sym\": false, \"desc_act\": true}",
                                .layout = GPTQ,
                                .bits = 4,
                                .group = 32,
                                .rows = 1,
                                .scales = "F16",
                                .zeros = true,
                                .zero_offset = 1,
                                .order = true,
                                .reorder = ""};
    static int number;
    snprintf(folder, sizeof folder, "%s/reordered%d", scratch_folder(), number++);
    ck_assert(write_quantized(&gptq, NULL, folder));
}

/* info reports the slower path. Relabeling gives down_proj no column map, so info does not count
 * down_proj. */
START_TEST(info_counts_reordered_matrices)
{
    command_result result = command_runf("info %s", folder);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(
        strstr(result.out, "reordered     6 matrices have reordered columns (g_idx): products "
                           "gather their inputs in the order of the columns, which is "
                           "slower\n"));
    command_clear(&result);
    result = command_runf("info %s --json", folder);
    mgl_json json = command_json(&result, "megalith.info/1");
    const cJSON *tensor;
    int count = 0;
    cJSON_ArrayForEach(tensor, json_at(&json, "tensors"))
    {
        const bool reordered = cJSON_IsTrue(mgl_json_member(tensor, "reordered"));
        const char *name = mgl_json_member(tensor, "name")->valuestring;
        ck_assert(reordered == (strstr(name, "_proj") && !strstr(name, "down_proj")));
        count += reordered;
    }
    ck_assert_int_eq(count, 6);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A compiled model prints the same reply as its folder, and info prints the same line. */
START_TEST(a_compiled_model_gives_the_same_reply)
{
    command_result reply = command_runf("run %s --device cpu --prompt-ids 1,9,30 -n 12", folder);
    ck_assert_int_eq(reply.code, 0);
    command_result result = command_runf("compile %s --target cpu:2 -o %s/m.mega", folder, folder);
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
    result = command_runf("run %s/m.mega --prompt-ids 1,9,30 -n 12", folder);
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.out, reply.out);
    command_clear(&result);
    result = command_runf("info %s/m.mega", folder);
    ck_assert_ptr_nonnull(strstr(result.out, "6 matrices have reordered columns"));
    command_clear(&result);
    command_clear(&reply);
}
END_TEST

/* gate and up share a task, which has one map on a GPU. */
START_TEST(a_gpu_needs_one_map_for_gate_and_up)
{
    command_result result =
        command_runf("compile %s --target sm_90a:132 -o %s/m.mega", folder, folder);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(
        strstr(result.err, "gate and up of a layer have different orders of columns (g_idx), which "
                           "only the CPU machine supports; use --device cpu"));
    command_clear(&result);
}
END_TEST

/* Checks that info names the CPU as the only device, for this reason. */
static void check_cpu_only(const char *model, const char *reason)
{
    command_result result = command_runf("info %s", model);
    ck_assert_int_eq(result.code, 0);
    const char *line = strstr(result.out, "supported     yes, on a CPU only");
    ck_assert_msg(line && strstr(line, reason), "%s", result.out);
    command_clear(&result);
    result = command_runf("info %s --json", model);
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert(cJSON_IsTrue(json_at(&json, "supported")));
    const cJSON *devices = json_at(&json, "devices");
    ck_assert_int_eq(cJSON_GetArraySize(devices), 1);
    ck_assert_str_eq(devices->child->valuestring, "cpu");
    const cJSON *why = cJSON_GetArrayItem(json_at(&json, "cuda_reasons"), 0);
    ck_assert_ptr_nonnull(strstr(mgl_json_member(why, "message")->valuestring, reason));
    mgl_json_clear(&json);
    command_clear(&result);
}

/* info prints the reasons of lowering and of the checks of the CUDA machine, without a GPU. */
START_TEST(info_names_the_only_device)
{
    static const recipe groups = {.config = "{\"quant_method\": \"gptq\", \"bits\": 4, "
                                            "\"group_size\": 48, \"sym\": false}",
                                  .layout = GPTQ,
                                  .bits = 4,
                                  .group = 48,
                                  .rows = 1,
                                  .scales = "F16",
                                  .zeros = true,
                                  .zero_offset = 1};
    char name[250];
    check_cpu_only(folder, "gate and up of a layer have different orders of columns (g_idx)");
    snprintf(name, sizeof name, "%s/groups", scratch_folder());
    ck_assert(write_quantized(&groups, NULL, name));
    check_cpu_only(name, "groups of 16 columns, or of a multiple of 32, not int4 group 48 f16");
    command_result result = command_runf("lower %s --target sm_90a:132", name);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.err, "megalith lower: warning: MG801: "));
    command_clear(&result);
}
END_TEST

/* info prints both devices for a model that a GPU runs, and no devices for a compiled model. */
START_TEST(info_names_both_devices)
{
    const char *model = model_path("quantized/q-tales-gptq-int4-g64");
    command_result result = command_runf("info %s --json", model);
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "devices")), 2);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "cuda_reasons")), 0);
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("info %s", model);
    ck_assert_ptr_nonnull(strstr(result.out, "supported     yes\n"));
    command_clear(&result);
    ck_assert_int_eq(command_code("compile %s --target cpu:1 -o %s/m.mega", folder, folder), 0);
    result = command_runf("info %s/m.mega", folder);
    ck_assert_ptr_null(strstr(result.out, "on a CPU only"));
    command_clear(&result);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("orders");
    tcase_add_checked_fixture(tests, write_model, NULL);
    tcase_add_test(tests, info_counts_reordered_matrices);
    tcase_add_test(tests, a_compiled_model_gives_the_same_reply);
    tcase_add_test(tests, a_gpu_needs_one_map_for_gate_and_up);
    tcase_add_test(tests, info_names_the_only_device);
    tcase_add_test(tests, info_names_both_devices);
    Suite *suite = suite_create("reordered columns on the command line");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
