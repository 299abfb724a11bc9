/*
 * Tests of lower, check and explain, and of running an edited schedule text, as a person or a
 * search does. Also damaged input of every kind through the whole program.
 */
#include "command.h"

#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static char schedule[1024]; /* path of a lowered schedule of tales-5m, on 3 queues */

static void setup(void)
{
    if (!schedule[0])
        strcpy(schedule, scratch_file("tales.mls", ""));
    command_result result = command_runf("lower %s --target cpu:3 --capacity 200 -o %s",
                                         model_path("tales-5m"), schedule);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}

static char *read_schedule(void)
{
    char *text = NULL;
    size_t length;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_file_read(schedule, 1 << 26, &text, &length, &err), MGL_OK);
    return text;
}

/* The schedule with the first `from` replaced by `to`, as a file. */
static const char *edited(const char *name, const char *from, const char *to)
{
    char *text = read_schedule(), *at = strstr(text, from);
    ck_assert_msg(at != NULL, "the schedule has no '%s'", from);
    size_t head = (size_t)(at - text);
    char *made = calloc(1, strlen(text) + strlen(to) + 1);
    memcpy(made, text, head);
    strcpy(made + head, to);
    strcat(made, at + strlen(from));
    const char *path = scratch_file(name, made);
    free(made);
    mgl_free(text);
    return path;
}

START_TEST(lowers_to_the_same_text)
{
    command_result first =
        command_runf("lower %s --target cpu:3 --capacity 200", model_path("tales-5m"));
    char *written = read_schedule();
    ck_assert_int_eq(first.code, 0);
    ck_assert_str_eq(first.out, written);
    ck_assert_int_eq(strncmp(first.out, "megalith 1\ntarget cpu queues 3 ", 30), 0);
    mgl_free(written);
    command_clear(&first);
}
END_TEST

START_TEST(accepts_what_it_lowers)
{
    command_result result =
        command_runf("check %s --model %s --json", schedule, model_path("tales-5m"));
    ck_assert_msg(result.code == 0, "%s%s", result.out, result.err);
    mgl_json json = command_json(&result, "megalith.check/1");
    ck_assert_str_eq(json_string(&json, "verdict"), "accepted");
    ck_assert_str_eq(json_string(&json, "meaning"), "checked");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "diagnostics")), 0);
    ck_assert_double_gt(json_number(&json, "stats.tasks"), 50);
    ck_assert_double_gt(json_number(&json, "stats.counters"), 30);
    ck_assert_double_ge(json_number(&json, "stats.epochs_unrolled"), 1);
    ck_assert_double_ge(json_number(&json, "stats.ms"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("check %s", schedule);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, "accepted"));
    ck_assert_ptr_nonnull(strstr(result.out, "meaning: not checked"));
    command_clear(&result);
}
END_TEST

/* An edit that is unsafe, and the class of its first diagnostic. */
typedef struct edit {
    const char *from, *to, *code;
} edit;

static const edit edits[] = {
    {" signal l0.qkv", "", "MG2"},                 /* the tasks that wait for it wait forever */
    {" wait l0.qkv>=3", "", "MG3"},                /* reads during a write */
    {" wait l0.qkv>=3", " wait l0.qkv>=2", "MG3"}, /* one producer is not waited for */
    {"head_dim 64", "head_dim 62", "MG1"},         /* not this model */
};

START_TEST(rejects_what_is_unsafe)
{
    const char *path = edited("edited.mls", edits[_i].from, edits[_i].to);
    command_result result = command_runf("check %s --json", path);
    ck_assert_msg(result.code == 3, "%s -> %s: exit %d: %s", edits[_i].from, edits[_i].to,
                  result.code, result.err);
    mgl_json json = command_json(&result, "megalith.check/1");
    ck_assert_str_eq(json_string(&json, "verdict"), "rejected");
    const cJSON *first = cJSON_GetArrayItem(json_at(&json, "diagnostics"), 0);
    const char *code = mgl_json_member(first, "code")->valuestring;
    ck_assert_msg(!strncmp(code, edits[_i].code, 3), "%s -> %s: %s", edits[_i].from, edits[_i].to,
                  code);
    ck_assert(cJSON_IsArray(mgl_json_member(first, "witness")));
    ck_assert(cJSON_IsString(mgl_json_member(first, "message")));
    ck_assert_ptr_nonnull(mgl_json_member(first, "task"));
    ck_assert(cJSON_IsNumber(mgl_json_member(first, "line")));
    command_result text = command_runf("check %s", path);
    ck_assert_int_eq(text.code, 3);
    ck_assert_ptr_nonnull(strstr(text.out, code));
    ck_assert_ptr_nonnull(strstr(text.out, "rejected"));
    command_clear(&text);
    /* `explain` accepts the code of a diagnostic. */
    command_result explained = command_runf("explain %s", code);
    ck_assert_int_eq(explained.code, 0);
    ck_assert_ptr_nonnull(strstr(explained.out, "How to fix it"));
    command_clear(&explained);
    /* No machine runs it either. */
    command_result run =
        command_runf("run %s --device cpu --prompt x --schedule %s", model_path("tales-5m"), path);
    ck_assert_msg(run.code == 3, "exit %d: %s", run.code, run.err);
    ck_assert_str_eq(run.out, "");
    ck_assert_ptr_nonnull(strstr(run.err, "MG"));
    ck_assert_ptr_nonnull(strstr(run.err, "edited.mls"));
    command_clear(&run);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A schedule of another model is safe, but means something else. */
START_TEST(meaning_is_checked_with_a_model)
{
    command_result result =
        command_runf("check %s --model %s", schedule, model_path("llama3-rope"));
    ck_assert_int_eq(result.code, 3);
    command_clear(&result);
}
END_TEST

START_TEST(runs_a_schedule)
{
    const char *model = model_path("tales-5m");
    command_result lowered =
        command_runf("run %s --device cpu --prompt 'Once there was' --max-tokens 30", model);
    command_result scheduled =
        command_runf("run %s --device cpu --prompt 'Once there was' --max-tokens 30 --schedule %s",
                     model, schedule);
    ck_assert_msg(scheduled.code == 0, "%s", scheduled.err);
    ck_assert_str_eq(scheduled.out, lowered.out);
    command_clear(&lowered);
    command_clear(&scheduled);
}
END_TEST

START_TEST(config_changes_the_schedule)
{
    const char *config =
        scratch_file("config.json", "{\"schema\":\"megalith.config/1\",\"rows\":2}");
    command_result result =
        command_runf("lower %s --target cpu:2 --config %s", model_path("tales-5m"), config);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "limits rows 2 "));
    command_clear(&result);
    result = command_runf("lower %s --target cpu:2 --config %s --rows 5", model_path("tales-5m"),
                          config);
    ck_assert_ptr_nonnull(strstr(result.out, "limits rows 5 "));
    command_clear(&result);
}
END_TEST

/* Requests that `lower` cannot fulfill. */
typedef struct lower_case {
    const char *flags;
    int code;
    const char *message;
} lower_case;

static const lower_case lowers[] = {
    {"--target sm_90a", 1, "sm_90a"},     {"--target cpu:0", 1, "cpu:0"},
    {"--target cpu:257", 1, "cpu:257"},   {"--target sm_999:4", 1, "sm_999"},
    {"--dtype int8", 1, "dtype"},         {"--capacity 1025", 2, "1024"},
    {"-o /nowhere/f.mls", 2, "/nowhere"},
};

START_TEST(lower_rejects)
{
    command_result result = command_runf("lower %s %s", model_path("tales-5m"), lowers[_i].flags);
    ck_assert_msg(result.code == lowers[_i].code, "%s: exit %d: %s", lowers[_i].flags, result.code,
                  result.err);
    ck_assert_msg(strstr(result.err, lowers[_i].message) != NULL, "%s: %s", lowers[_i].flags,
                  result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

/* ---- number formats -------------------------------------------------------------------------- */

START_TEST(check_names_the_formats)
{
    command_result result =
        command_runf("check %s --model %s --json", schedule, model_path("tales-5m"));
    mgl_json json = command_json(&result, "megalith.check/1");
    ck_assert_str_eq(json_at(&json, "formats.checkpoint")->child->valuestring, "bf16");
    ck_assert_str_eq(json_at(&json, "formats.weights")->child->valuestring, "bf16");
    ck_assert_str_eq(json_at(&json, "formats.exchange")->child->valuestring, "f32");
    ck_assert_str_eq(json_at(&json, "formats.cache")->child->valuestring, "f32");
    ck_assert(cJSON_IsFalse(json_at(&json, "formats.lossy")));
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("check %s --model %s", schedule, model_path("tales-5m"));
    ck_assert_ptr_nonnull(
        strstr(result.out, "\nformats: checkpoint bf16, weights bf16, exchange f32, cache f32\n"));
    command_clear(&result);
}
END_TEST

START_TEST(strict_formats_need_a_model)
{
    command_result result = command_runf("check %s --strict-formats", schedule);
    ck_assert_int_eq(result.code, 1);
    ck_assert_ptr_nonnull(strstr(result.err, "--model"));
    command_clear(&result);
}
END_TEST

/* f16 for a bf16 model is rejected only with --strict-formats. */
START_TEST(strict_formats_reject_what_loses)
{
    char model[1024], half[1024];
    const char *flags[2] = {"", "--strict-formats"};
    int codes[2] = {0, 3};
    snprintf(model, sizeof model, "%s", model_path("tales-5m"));
    snprintf(half, sizeof half, "%s/half.mls", scratch_folder());
    command_result result = command_runf("lower %s --target cpu:2 --dtype f16 -o %s", model, half);
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
    for (int i = 0; i < 2; i++) {
        result = command_runf("check %s --model %s %s", half, model, flags[i]);
        ck_assert_int_eq(result.code, codes[i]);
        ck_assert_int_eq(strstr(result.out, "MG708") != NULL, i);
        command_clear(&result);
        result = command_runf("run %s --schedule %s --device cpu --prompt Once %s", model, half,
                              flags[i]);
        ck_assert_int_eq(result.code, codes[i]);
        ck_assert_int_eq(strstr(result.err, "MG708") != NULL, i);
        command_clear(&result);
        result = command_runf("compile %s --dtype f16 --target cpu:2 -o %s.mega %s", model, half,
                              flags[i]);
        ck_assert_int_eq(result.code, codes[i]);
        ck_assert_int_eq(strstr(result.err, "MG708") != NULL, i);
        command_clear(&result);
    }
}
END_TEST

/* If the validator rejects the config, nothing is printed. */
START_TEST(lower_ends_with_the_validator)
{
    const char *config = scratch_file(
        "large.json", "{\"schema\":\"megalith.config/1\",\"page_bytes\":65536,\"ring_pages\":64}");
    command_result result =
        command_runf("lower %s --target sm_90a:132 --config %s", model_path("tales-5m"), config);
    ck_assert_int_eq(result.code, 3);
    ck_assert_ptr_nonnull(strstr(result.err, "MG406"));
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

/* For a small model, no prompt is long enough for a second list. */
START_TEST(lowers_for_a_long_prompt)
{
    const char *line = "lower %s --target sm_90a:132 --dtype bf16%s";
    command_result plain = command_runf(line, model_path("tales-5m"), "");
    command_result told = command_runf(line, model_path("tales-5m"), " --prompt-tokens 1024");
    ck_assert_msg(told.code == 0, "%s", told.err);
    ck_assert_str_eq(told.out, plain.out);
    command_clear(&plain);
    command_clear(&told);
}
END_TEST

/* A schedule for the only target with known costs; the device need not exist. */
static const char *lowered_for_a_gpu(void)
{
    const char *path = scratch_file("gpu.mls", "");
    command_result result = command_runf("lower %s --target sm_90a:132 --sequences 2 -o %s",
                                         model_path("tales-5m"), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    return path;
}

START_TEST(explains_where_the_time_goes)
{
    const char *path = lowered_for_a_gpu();
    command_result result = command_runf("explain %s --json --context 500 --batch 2", path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.cost/1");
    double us = json_number(&json, "predicted_us"), sum = 0;
    const cJSON *parts = json_at(&json, "predicted_parts_us");
    for (const cJSON *part = parts->child; part; part = part->next)
        sum += part->valuedouble;
    ck_assert_double_gt(us, json_number(&json, "predicted_floor_us"));
    ck_assert_double_eq_tol(sum, us, us * 1e-6);
    ck_assert_str_eq(json_string(&json, "device"), "NVIDIA H200");
    ck_assert_double_eq(json_number(&json, "context"), 500);
    ck_assert_double_eq(json_number(&json, "batch"), 2);
    ck_assert_double_gt(json_number(&json, "steps.down.bytes"), 0);
    ck_assert_double_gt(json_number(&json, "cache_bytes"), 0);
    double by_variant = 0;
    const cJSON *variants = json_at(&json, "variants");
    for (const cJSON *variant = variants->child; variant; variant = variant->next)
        by_variant += cJSON_GetObjectItem(variant, "us")->valuedouble;
    ck_assert_double_gt(by_variant, us / 2);
    ck_assert_double_le(by_variant, us);
    ck_assert_ptr_nonnull(cJSON_GetObjectItem(variants, "norm_swiglu.by_rows"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* explain of a quantized model prints the bytes of weights and scales, and the bytes of the padding
 * that fills blocks. */
START_TEST(explains_the_bytes_of_quantized_weights)
{
    const char *path = scratch_file("quantized.mls", "");
    command_result result = command_runf("lower %s --target sm_90a:132 -o %s",
                                         model_path("quantized/q-tales-ct-int4-g64"), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("explain %s --json", path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.cost/1");
    /* 42 matrices in int4 with one bf16 scale for 64 columns, and the head in bf16 */
    ck_assert_double_eq(json_number(&json, "weight_bytes"), 2506752 + 913 * 256 * 2);
    ck_assert_double_gt(json_number(&json, "padding_bytes"), 0);
    ck_assert_double_le(json_number(&json, "weight_bytes") + json_number(&json, "padding_bytes"),
                        json_number(&json, "tape_bytes"));
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("explain %s", path);
    ck_assert_ptr_nonnull(strstr(result.out, "\nweights     2974208 bytes, and "));
    ck_assert_ptr_nonnull(strstr(result.out, " of padding ("));
    command_clear(&result);
}
END_TEST

/* No costs were measured for a CPU, so explain prints the bytes only. */
START_TEST(explains_the_bytes_on_a_cpu)
{
    const char *path = scratch_file("cpu.mls", "");
    command_result result = command_runf("lower %s --target cpu:2 -o %s",
                                         model_path("quantized/q-tales-ct-int4-g64"), path);
    ck_assert_str_eq(result.err, "");
    command_clear(&result);
    result = command_runf("explain %s --json", path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.cost/1");
    ck_assert_double_eq(json_number(&json, "weight_bytes"), 2506752 + 913 * 256 * 2);
    ck_assert(cJSON_IsNull(json_at(&json, "predicted_us")));
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("explain %s", path);
    ck_assert_ptr_nonnull(strstr(result.out, "predicted   unknown: the costs of steps have not"));
    ck_assert_ptr_nonnull(strstr(result.out, "\nweights     2974208 bytes, and "));
    command_clear(&result);
    result = command_runf("explain %s --device-name 'NVIDIA H200'", path);
    ck_assert_int_eq(result.code, 2);
    command_clear(&result);
}
END_TEST

/* By default, warpgroups multiply panels of quantized weights, but warp teams those of 4 bits in
 * lists of up to 64 rows. */
START_TEST(gamma_scaled_products_of_quantized_weights)
{
    static const struct {
        const char *model;
        int rows, warpgroups;
        const char *variant, *other;
    } cases[] = {{"q-tales-ct-int4-g64", 64, 0, "panels", "warpgroups"},
                 {"q-tales-ct-int4-g64", 72, 0, "warpgroups", "panels"},
                 {"q-tales-ct-int4-g64", 64, 2, "warpgroups", "panels"},
                 {"q-tales-ct-int4-g64", 72, 1, "panels", "warpgroups"},
                 {"q-tales-ct-int8", 24, 0, "warpgroups", "panels"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128], model[64], variant[32], other[32];
        snprintf(text, sizeof text,
                 "{\"schema\": \"megalith.config/1\", \"second_rows\": %d, \"gamma_scaled\": 2, "
                 "\"warpgroups\": %d}",
                 cases[i].rows, cases[i].warpgroups);
        snprintf(model, sizeof model, "quantized/%s", cases[i].model);
        snprintf(variant, sizeof variant, "rms_linear.%s", cases[i].variant);
        snprintf(other, sizeof other, "rms_linear.%s", cases[i].other);
        command_result result = command_runf("lower %s --target sm_90a:132 --config %s",
                                             model_path(model), scratch_file("gamma.json", text));
        ck_assert_msg(result.code == 0, "%s", result.err);
        ck_assert_ptr_nonnull(strstr(result.out, variant));
        ck_assert_ptr_null(strstr(result.out, other));
        command_clear(&result);
    }
}
END_TEST

START_TEST(explains_in_words)
{
    const char *path = lowered_for_a_gpu();
    command_result result = command_runf("explain %s", path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_int_eq(strncmp(result.out, "predicted   ", 12), 0);
    ck_assert_ptr_nonnull(strstr(result.out,
                                 "of          NVIDIA H200, sm_90a:132, batch 1, context 0, "
                                 "32 tokens a launch\n"));
    ck_assert_ptr_nonnull(strstr(result.out, "\n    norm_linear.by_rows "));
    command_clear(&result);
}
END_TEST

/* Lowers a schedule with these knobs, for 4 sequences, or 64 with a second list. */
static const char *lowered_by(const char *knobs)
{
    char config[128];
    const char *path = scratch_file("by.mls", "");
    snprintf(config, sizeof config, "{\"schema\": \"megalith.config/1\", %s}", knobs);
    command_result result =
        command_runf("lower %s --target sm_90a:132 --sequences %d --dtype bf16 --config %s -o %s",
                     model_path("tales-5m"), strstr(knobs, "second_rows") ? 64 : 4,
                     scratch_file("by.json", config), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    return path;
}

static const struct {
    const char *flags, *list, *value; /* value: the list in JSON */
} listed[] = {{"", "first", "few"},
              {"--batch 4", "first", "few"},
              {"--batch 5", "second", "many"},
              {"--batch 64", "second", "many"},
              {"--prompt 4", "first", "few"},
              {"--prompt 64", "second", "many"}};
enum { LISTED = sizeof listed / sizeof *listed };

START_TEST(explains_the_list_that_the_rows_are_for)
{
    const char *path = lowered_by("\"rows\": 4, \"second_rows\": 64");
    command_result result = command_runf("explain %s --json %s", path, listed[_i].flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.cost/1");
    ck_assert_str_eq(json_string(&json, "list"), listed[_i].value);
    ck_assert_double_gt(json_number(&json, "predicted_us"),
                        json_number(&json, "predicted_floor_us"));
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("explain %s %s", path, listed[_i].flags);
    char line[32];
    snprintf(line, sizeof line, "\nlist        %s\n", listed[_i].list);
    ck_assert_ptr_nonnull(strstr(result.out, line));
    ck_assert_int_eq(!strstr(result.out, "us per epoch\n"), !strstr(listed[_i].flags, "prompt"));
    command_clear(&result);
}
END_TEST

static const struct {
    const char *config, *flags, *message;
} unlisted[] = {{"\"rows\": 4", "--batch 5", "more take the knob `rows` of its config"},
                {"\"rows\": 4", "--batch 64", "more take the knob `second_rows` of its config"},
                {"\"rows\": 4", "--prompt 128", "more take the knob `second_rows` of its config"},
                {"\"rows\": 4, \"second_rows\": 64", "--prompt 65",
                 "more take a higher knob `second_rows` of its config"},
                {"\"rows\": 4, \"second_rows\": 64", "--batch 65", "--batch"},
                {"\"rows\": 4, \"second_rows\": 64", "--batch 2 --prompt 2",
                 "--prompt: applies to one sequence"}};
enum { UNLISTED = sizeof unlisted / sizeof *unlisted };

START_TEST(has_no_time_for_rows_without_a_list)
{
    const char *path = lowered_by(unlisted[_i].config);
    command_result result = command_runf("explain %s %s", path, unlisted[_i].flags);
    ck_assert_int_eq(result.code, 1);
    ck_assert_ptr_nonnull(strstr(result.err, unlisted[_i].message));
    command_clear(&result);
}
END_TEST

START_TEST(explains_for_a_device_that_has_costs)
{
    const char *path = lowered_for_a_gpu();
    command_result result = command_runf("explain %s --device-name 'NVIDIA H200'", path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
    result = command_runf("explain %s --device-name 'NVIDIA T4'", path);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "NVIDIA T4: the costs of steps have not been "
                                             "measured; devices with costs: NVIDIA H200"));
    command_clear(&result);
}
END_TEST

START_TEST(has_no_time_without_costs_or_for_a_rejected_schedule)
{
    command_result result = command_runf("explain %s", schedule);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, "have not been measured"));
    ck_assert_ptr_null(strstr(result.out, " us "));
    command_clear(&result);
    result = command_runf("explain %s", edited("unsafe.mls", " wait l0.qkv>=3", ""));
    ck_assert_int_eq(result.code, 3);
    ck_assert_ptr_nonnull(strstr(result.err, "MG3"));
    command_clear(&result);
}
END_TEST

START_TEST(text_that_does_not_parse)
{
    command_result result = command_runf("check %s", edited("bad.mls", "queue 1", "quene 1"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "bad.mls:"));
    ck_assert_ptr_nonnull(strstr(result.err, "\n"));
    ck_assert_ptr_nonnull(strchr(result.err, '^')); /* the caret under the place */
    command_clear(&result);
    result = command_runf("check %s --json", edited("bad.mls", "queue 1", "quene 1"));
    ck_assert_int_eq(result.code, 2);
    mgl_json json = command_json(&result, "megalith.error/1");
    ck_assert_ptr_nonnull(strstr(json_string(&json, "where"), "bad.mls:"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

/* A model folder in which one file is damaged. */
static const char *damaged_model(const char *file, const char *content)
{
    char line[4096];
    snprintf(line, sizeof line,
             "rm -rf '%s/m' && mkdir '%s/m' && cp '%s'/*.json '%s'/*.safetensors '%s/m/' && "
             "chmod -R u+w '%s/m'",
             scratch_folder(), scratch_folder(), model_path("llama3-rope"),
             model_path("llama3-rope"), scratch_folder(), scratch_folder());
    ck_assert_int_eq(system(line), 0);
    snprintf(line, sizeof line, "m/%s", file);
    scratch_file(line, content);
    static char folder[1024];
    snprintf(folder, sizeof folder, "%s/m", scratch_folder());
    return folder;
}

typedef struct damage {
    const char *file, *content;
} damage;

static const damage damages[] = {
    {"config.json", ""},
    {"config.json", "{"},
    {"config.json", "[]"},
    {"config.json", "{\"architectures\":[\"LlamaForCausalLM\"]}"},
    {"model.safetensors", ""},
    {"model.safetensors", "1234567"},
    {"model.safetensors", "\xff\xff\xff\xff\xff\xff\xff\x7f{}"},
    {"tokenizer.json", ""},
    {"tokenizer.json", "{\"model\":{\"type\":\"Unigram\"}}"},
    {"generation_config.json", "{\"eos_token_id\":\"no\"}"},
};

START_TEST(damaged_input_is_one_message)
{
    const damage *d = &damages[_i];
    command_result result =
        command_runf("run %s --device cpu --prompt x", damaged_model(d->file, d->content));
    ck_assert_msg(result.code == 2, "%s '%s': exit %d: %s", d->file, d->content, result.code,
                  result.err);
    ck_assert_msg(strstr(result.err, d->file) != NULL, "%s '%s': %s", d->file, d->content,
                  result.err);
    ck_assert_int_eq(strncmp(result.err, "megalith run: ", 14), 0);
    ck_assert_ptr_eq(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

static const cJSON *parse_sarif(const command_result *result, mgl_json *json)
{
    mgl_error err = {0};
    mgl_status status =
        mgl_json_parse(result->out, result->out_length, 1 << 26, "sarif", json, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    return cJSON_GetArrayItem(json_at(json, "runs"), 0);
}

static const cJSON *first_of(const cJSON *object, const char *array)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItem(object, array), 0);
}

START_TEST(sarif_has_the_line_of_each_diagnostic)
{
    const char *path = edited("unsafe.mls", " wait l0.qkv>=3", "");
    command_result result = command_runf("check %s --sarif", path);
    mgl_json json;
    const cJSON *run = parse_sarif(&result, &json), *found = first_of(run, "results");
    const cJSON *region = cJSON_GetObjectItem(
        cJSON_GetObjectItem(first_of(found, "locations"), "physicalLocation"), "region");
    ck_assert_int_eq(result.code, 3);
    ck_assert_str_eq(json_string(&json, "version"), "2.1.0");
    ck_assert_int_eq(strncmp(cJSON_GetObjectItem(found, "ruleId")->valuestring, "MG", 2), 0);
    ck_assert_double_gt(cJSON_GetObjectItem(region, "startLine")->valuedouble, 1);
    ck_assert_ptr_nonnull(first_of(found, "relatedLocations"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A safe schedule that the CUDA machine rejects: it requires the same order of the tape for both
 * lists. */
#define CANNOT_RUN MGL_SOURCE_DIR "/tests/cli/schedules/second_list_in_another_order.mls"

START_TEST(what_the_machine_cannot_run_is_a_warning)
{
    command_result result = command_runf("check %s", CANNOT_RUN);
    ck_assert_int_eq(result.code, 0);
    ck_assert_msg(strstr(result.out, ": warning: MG801: ") != NULL, "%s", result.out);
    ck_assert_ptr_nonnull(strstr(result.out, "accepted: 56 tasks"));
    command_clear(&result);
    result = command_runf("check %s --json", CANNOT_RUN);
    ck_assert_int_eq(result.code, 0);
    mgl_json json = command_json(&result, "megalith.check/1");
    ck_assert_str_eq(json_string(&json, "verdict"), "accepted");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "diagnostics")), 1);
    const cJSON *first = cJSON_GetArrayItem(json_at(&json, "diagnostics"), 0);
    ck_assert_str_eq(mgl_json_member(first, "code")->valuestring, "MG801");
    ck_assert_str_eq(mgl_json_member(first, "level")->valuestring, "warning");
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("check %s --sarif", CANNOT_RUN);
    ck_assert_int_eq(result.code, 0);
    const cJSON *run = parse_sarif(&result, &json), *found = first_of(run, "results");
    ck_assert_str_eq(cJSON_GetObjectItem(found, "ruleId")->valuestring, "MG801");
    ck_assert_str_eq(cJSON_GetObjectItem(found, "level")->valuestring, "warning");
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("explain %s", CANNOT_RUN);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.err, "megalith explain: warning: MG801: the CUDA machine"));
    command_clear(&result);
    result = command_runf("explain MG801");
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, "cannot run the schedule"));
    command_clear(&result);
}
END_TEST

START_TEST(sarif_of_what_does_not_parse_names_the_line)
{
    const char *path = edited("broken.mls", "\n", "\nbogus\n");
    command_result result = command_runf("check %s --sarif", path);
    mgl_json json;
    const cJSON *run = parse_sarif(&result, &json);
    const cJSON *invocation = first_of(run, "invocations");
    const cJSON *told = first_of(invocation, "toolExecutionNotifications");
    const cJSON *region = cJSON_GetObjectItem(
        cJSON_GetObjectItem(first_of(told, "locations"), "physicalLocation"), "region");
    ck_assert_int_eq(result.code, 2);
    ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(invocation, "executionSuccessful")));
    ck_assert_int_eq((int)cJSON_GetObjectItem(region, "startLine")->valuedouble, 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(sarif_of_a_model_that_is_none_is_a_log)
{
    const char *path = edited("whole.mls", "", "");
    command_result plain = command_runf("check %s --model /no/such/model", path);
    command_result result = command_runf("check %s --model /no/such/model --sarif", path);
    mgl_json json;
    const cJSON *run = parse_sarif(&result, &json);
    const cJSON *invocation = first_of(run, "invocations");
    const cJSON *told = first_of(invocation, "toolExecutionNotifications");
    const cJSON *message = cJSON_GetObjectItem(cJSON_GetObjectItem(told, "message"), "text");
    ck_assert_int_eq(plain.code, 2);
    ck_assert_int_eq(result.code, plain.code);
    ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(invocation, "executionSuccessful")));
    ck_assert_ptr_nonnull(strstr(message->valuestring, "/no/such/model"));
    ck_assert_ptr_null(first_of(told, "locations")); /* not an error of the schedule */
    mgl_json_clear(&json);
    command_clear(&plain);
    command_clear(&result);
}
END_TEST

/* If the output cannot be written completely, the old file stays. */
START_TEST(writes_all_or_nothing)
{
    struct rlimit old, small;
    char *before = read_schedule();
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1 << 14;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    command_result result =
        command_runf("lower %s --target cpu:64 -o %s", model_path("tales-5m"), schedule);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_msg(result.code == 2, "%d: %s", result.code, result.err);
    ck_assert_ptr_nonnull(strstr(result.err, "could not be written"));
    char *after = read_schedule();
    ck_assert_str_eq(after, before);
    mgl_free(before);
    mgl_free(after);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli schedule");
    TCase *tests = tcase_create("schedule");
    tcase_set_timeout(tests, 100);
    tcase_add_unchecked_fixture(tests, setup, NULL);
    tcase_add_test(tests, lowers_to_the_same_text);
    tcase_add_test(tests, accepts_what_it_lowers);
    tcase_add_loop_test(tests, rejects_what_is_unsafe, 0, (int)(sizeof edits / sizeof *edits));
    tcase_add_test(tests, meaning_is_checked_with_a_model);
    tcase_add_test(tests, runs_a_schedule);
    tcase_add_test(tests, config_changes_the_schedule);
    tcase_add_test(tests, check_names_the_formats);
    tcase_add_test(tests, strict_formats_need_a_model);
    tcase_add_test(tests, strict_formats_reject_what_loses);
    tcase_add_test(tests, lower_ends_with_the_validator);
    tcase_add_loop_test(tests, lower_rejects, 0, (int)(sizeof lowers / sizeof *lowers));
    tcase_add_test(tests, lowers_for_a_long_prompt);
    tcase_add_test(tests, explains_where_the_time_goes);
    tcase_add_test(tests, explains_in_words);
    tcase_add_test(tests, explains_the_bytes_of_quantized_weights);
    tcase_add_test(tests, explains_the_bytes_on_a_cpu);
    tcase_add_test(tests, gamma_scaled_products_of_quantized_weights);
    tcase_add_loop_test(tests, explains_the_list_that_the_rows_are_for, 0, LISTED);
    tcase_add_loop_test(tests, has_no_time_for_rows_without_a_list, 0, UNLISTED);
    tcase_add_test(tests, explains_for_a_device_that_has_costs);
    tcase_add_test(tests, has_no_time_without_costs_or_for_a_rejected_schedule);
    tcase_add_test(tests, text_that_does_not_parse);
    tcase_add_test(tests, sarif_has_the_line_of_each_diagnostic);
    tcase_add_test(tests, sarif_of_what_does_not_parse_names_the_line);
    tcase_add_test(tests, what_the_machine_cannot_run_is_a_warning);
    tcase_add_test(tests, sarif_of_a_model_that_is_none_is_a_log);
    tcase_add_test(tests, writes_all_or_nothing);
    tcase_add_loop_test(tests, damaged_input_is_one_message, 0,
                        (int)(sizeof damages / sizeof *damages));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
