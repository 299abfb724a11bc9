/* Tests of `megalith quantize`: what the other verbs say about the new folder, and rejected input.
 */
#include "command.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[1100];

/* Quantizes tales-5m into a new folder, `path`. */
static void quantize(const char *name, const char *flags)
{
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    command_result result =
        command_runf("quantize %s %s -o %s --json --quiet", model_path("tales-5m"), flags, path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_str_eq(result.err, "");
    mgl_json json = command_json(&result, "megalith.quantize/1");
    ck_assert_str_eq(json_string(&json, "folder"), path);
    ck_assert_double_lt(json_number(&json, "bytes"), json_number(&json, "bytes_read"));
    ck_assert_double_lt(json_number(&json, "bits_per_weight"), 8.3);
    mgl_json_clear(&json);
    command_clear(&result);
}

/* The file of the texts. Under sanitizers only the first texts, because `eval` executes the same
 * code for each text. The limits hold for these texts too. */
static const char *texts_path(void)
{
    enum { SANITIZED = 12 };
    mgl_json texts = model_json("tales-5m", "val_texts.json");
    while (MGL_SANITIZED && cJSON_GetArraySize(texts.root) > SANITIZED)
        cJSON_DeleteItemFromArray(texts.root, SANITIZED);
    const char *file = scratch_json("val_texts.json", texts.root);
    mgl_json_clear(&texts);
    return file;
}

static double likelihood(const char *model)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --json", model, texts_path());
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.eval/1");
    const double nll = json_number(&json, "nll");
    mgl_json_clear(&json);
    command_clear(&result);
    return nll;
}

static const struct {
    const char *flags, *format; /* as `info` prints it */
    double most;                /* relative change of the likelihood */
} formats[] = {
    {"", "int8 row bf16: 42 matrices", 1e-4},
    {"--bits 4 --group 64", "int4 group 64 bf16: 42 matrices", 1e-2},
    {"--bits fp8 --scales f32", "e4m3 row f32: 42 matrices", 1e-3},
    {"--bits 4 --asym", "int4 group 128 bf16 zeros: 42 matrices", 1e-2},
    {"--bits 4 --method clip", "int4 group 128 bf16: 42 matrices", 1e-3},
    {"--bits 4 --method gptq", "int4 group 128 bf16: 42 matrices", 3e-4},
    {"--bits-per-weight 4.5 --method gptq", "int8 group 128 bf16", 3e-4},
    {"--head 8", "int8 row bf16: 43 matrices", 3e-4},
    {"--bits 4 --head fp8", "e4m3 row bf16: 1 matrix", 1e-2},
};

START_TEST(the_model_runs)
{
    char name[8];
    snprintf(name, sizeof name, "f%d", _i);
    quantize(name, formats[_i].flags);
    command_result result = command_runf("info %s", path);
    ck_assert_msg(strstr(result.out, formats[_i].format) != NULL, "%s", result.out);
    command_clear(&result);
    static double wanted; /* of the original model */
    if (wanted == 0)
        wanted = likelihood(model_path("tales-5m"));
    ck_assert_double_le(fabs(likelihood(path) - wanted), formats[_i].most * wanted);
    result = command_runf("run %s --device cpu --prompt 'Once there was' -n 4", path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(the_text_for_people)
{
    snprintf(path, sizeof path, "%s/text", scratch_folder());
    command_result result =
        command_runf("quantize %s -o %s --bits 4 --head 8", model_path("tales-5m"), path);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "layers    int4 group 128\n"));
    ck_assert_ptr_nonnull(
        strstr(result.out, "head      int8 row; no longer tied to the embedding\n"));
    ck_assert_ptr_nonnull(strstr(result.err, "quantized and written in"));
    command_clear(&result);
}
END_TEST

/* quantize and info count the same bytes, including zero points. */
START_TEST(bytes_as_info_counts_them)
{
    snprintf(path, sizeof path, "%s/counted", scratch_folder());
    command_result result = command_runf("quantize %s -o %s --bits 4 --asym --json --quiet",
                                         model_path("tales-5m"), path);
    mgl_json json = command_json(&result, "megalith.quantize/1");
    const double bits = json_number(&json, "bits_per_weight"), bytes = json_number(&json, "bytes");
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("info %s --json", path);
    json = command_json(&result, "megalith.info/1");
    ck_assert_double_eq(json_number(&json, "bytes_in_files"), bytes);
    const cJSON *kind = cJSON_GetArrayItem(json_at(&json, "quantized"), 0);
    ck_assert_double_eq(8 * mgl_json_member(kind, "bytes")->valuedouble /
                            mgl_json_member(kind, "parameters")->valuedouble,
                        bits);
    ck_assert_double_eq(bits, 4 + (16 + 8) / 128.0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

static const struct {
    const char *line;
    int code;
    const char *message;
} rejected[] = {
    {"quantize %s", 1, "-o: is missing"},
    {"quantize %s -o x --bits 3", 1, "unknown number of bits: 3; supported: 8, 4 and fp8"},
    {"quantize %s -o x --head f16", 1, "unknown number of bits: f16; supported: 8, 4, fp8 and"},
    {"quantize %s -o x --bits fp8 --asym", 1, "fp8 has no zero points"},
    {"quantize %s -o x --sym --asym", 1, "cannot be given with --asym"},
    {"quantize %s -o x --method awq", 1, "unknown method: awq; supported: rtn, clip, gptq"},
    {"quantize %s -o x --texts t.json", 1, "round to nearest uses no texts"},
    {"quantize %s -o x --samples 4", 1, "--samples: applies to a calibration"},
    {"quantize %s -o x --time-limit 4", 1, "--time-limit: applies to a calibration"},
    {"quantize %s -o x --bits 8 --bits-per-weight 5", 1, "chooses between 4 and 8 bits"},
    {"quantize %s -o x --bits-per-weight 3", 1, "allowed: 4 to 9"},
    {"quantize %s -o x --method gptq --texts none.json", 2, "none.json"},
    {"quantize %s -o x --group 40", 1, "not a multiple of 16: 40"},
    {"quantize %s -o x --group 2048", 1, "allowed: 16 to 1024"},
    {"quantize %s -o x --scales f64", 1, "unknown number format: f64"},
    {"quantize %s -o x --group 48", 2, "with groups of 48, the new model runs on a CPU only"},
    {"quantize %s -o x --group 512", 2,
     "768 columns are not a multiple of the group: 512; use groups of 256 columns"},
    {"quantize %s/config.json -o x", 2, "config.json"},
};

START_TEST(what_is_rejected)
{
    struct stat facts;
    command_result result = command_runf(rejected[_i].line, model_path("tales-5m"));
    ck_assert_msg(result.code == rejected[_i].code, "exit %d: %s", result.code, result.err);
    ck_assert_msg(strstr(result.err, rejected[_i].message) != NULL, "%s", result.err);
    command_clear(&result);
    ck_assert_int_ne(stat("x", &facts), 0);
}
END_TEST

/* A model is rounded once. */
START_TEST(models_that_are_rejected)
{
    command_result result = command_runf("quantize %s -o %s/x",
                                         model_path("quantized/q-tales-ct-int8"), scratch_folder());
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "is quantized already"));
    command_clear(&result);
    snprintf(path, sizeof path, "%s/tales.mega", scratch_folder());
    ck_assert_int_eq(command_code("compile %s --target cpu:1 -o %s", model_path("tales-5m"), path),
                     0);
    result = command_runf("quantize %s -o %s/x", path, scratch_folder());
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "is a compiled file"));
    command_clear(&result);
    result = command_runf("quantize %s -o %s", model_path("tales-5m"), path);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "is not a folder"));
    command_clear(&result);
    result = command_runf("quantize %s -o %s", model_path("tales-5m"), model_path("tales-5m"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "the folder is not empty"));
    command_clear(&result);
}
END_TEST

/* The bytes do not depend on the number of threads, and the memory is printed beforehand. */
START_TEST(a_calibration)
{
    char line[3000], texts[1100];
    snprintf(
        texts, sizeof texts, "%s",
        scratch_file("texts.json", "[\"Once there was a fox.\", \"Near the mill lived a hare.\"]"));
    quantize("all", "--bits 4 --method gptq");
    snprintf(line, sizeof line,
             "taskset -c 0 %s quantize %s --bits 4 --method gptq -o %s/one --quiet >/dev/null && "
             "diff -r %s %s/one",
             MGL_BINARY_DIR "/megalith", model_path("tales-5m"), scratch_folder(), path,
             scratch_folder());
    ck_assert_int_eq(system(line), 0);
    command_result result = command_runf(
        "quantize %s -o %s/few --bits 4 --method clip --texts %s --length 4 --samples 3",
        model_path("tales-5m"), scratch_folder(), texts);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.err, "calibration with 3 samples, "));
    ck_assert_ptr_nonnull(strstr(result.err, "MB of memory; available: "));
    ck_assert_ptr_nonnull(strstr(result.out, "method    clip\n"));
    command_clear(&result);
}
END_TEST

/* The message names the file and the text, in `quantize` and in `eval --compare`. */
START_TEST(ids_outside_the_vocabulary)
{
    char ids[1100];
    snprintf(ids, sizeof ids, "%s",
             scratch_file("ids.json", "[{\"ids\": [1]}, {\"ids\": [5, 913]}]"));
    command_result result = command_runf("quantize %s -o %s/ids --method gptq --texts %s",
                                         model_path("tales-5m"), scratch_folder(), ids);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "ids.json: text 1: token 1 is 913; the vocabulary has the ids "
                                     "0 to 912"),
                  "%s", result.err);
    command_clear(&result);
    result = command_runf("eval %s --compare int8 --texts %s", model_path("tales-5m"), ids);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "ids.json: text 1: token 1 is 913"), "%s", result.err);
    command_clear(&result);
}
END_TEST

/* A long text is cut at the positions of the model, here 512. */
START_TEST(a_calibration_with_long_texts)
{
    static char texts[9000];
    strcpy(texts, "[{\"ids\": [5");
    for (int i = 0; i < 1100; i++)
        strcat(texts, ",7");
    strcat(texts, "]}]");
    command_result result =
        command_runf("quantize %s -o %s/long --method clip --length 2000 --texts %s",
                     model_path("qwen2"), scratch_folder(), scratch_file("long.json", texts));
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.err, "calibration with 3 samples, 1101 tokens"));
    command_clear(&result);
}
END_TEST

/* The line about Ctrl-C states that the same command continues. Mixed precision takes two passes,
 * and the memory is printed once. */
START_TEST(an_interrupted_calibration)
{
    char line[3000], said[4096];
    size_t length = 0;
    snprintf(line, sizeof line,
             "quantize %s --bits-per-weight 5 --method gptq --samples 9 -o %s/hint",
             model_path("tales-5m"), scratch_folder());
    command running = command_start(line);
    do {
        ck_assert_int_eq(read(running.err, said + length, 1), 1);
        said[++length] = 0;
    } while (length + 1 < sizeof said && !strstr(said, "MB of memory; available: "));
    kill(running.pid, SIGINT);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 130);
    ck_assert_msg(strstr(result.err, "megalith quantize: interrupted by SIGINT; the same command "
                                     "continues the calibration\n"),
                  "%s", result.err);
    command_clear(&result);
    result = command_run(line, NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    const char *first = strstr(result.err, "MB of memory; available: ");
    ck_assert_msg(first && !strstr(first + 1, "MB of memory"), "%s", result.err);
    command_clear(&result);
}
END_TEST

/* Ctrl-C at growing times: the command continues, and the bytes are those of one run. */
START_TEST(a_calibration_with_signals)
{
    char line[3000];
    int code = 1, seconds = 0;
    quantize("calm", "--bits 4 --group 64 --method gptq");
    while (code) {
        snprintf(line, sizeof line,
                 "timeout -s INT %d %s quantize %s --bits 4 --group 64 --method gptq -o %s/stopped "
                 "--quiet >/dev/null 2>&1",
                 ++seconds, MGL_BINARY_DIR "/megalith", model_path("tales-5m"), scratch_folder());
        code = system(line);
        ck_assert_int_lt(seconds, 100);
    }
    snprintf(line, sizeof line, "diff -r %s %s/stopped", path, scratch_folder());
    ck_assert_int_eq(system(line), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli quantize");
    TCase *tests = tcase_create("quantize");
    tcase_set_timeout(tests, 0); /* ctest has the limit */
    tcase_add_loop_test(tests, the_model_runs, 0, sizeof formats / sizeof *formats);
    tcase_add_test(tests, the_text_for_people);
    tcase_add_test(tests, bytes_as_info_counts_them);
    tcase_add_loop_test(tests, what_is_rejected, 0, sizeof rejected / sizeof *rejected);
    tcase_add_test(tests, models_that_are_rejected);
    tcase_add_test(tests, a_calibration);
    tcase_add_test(tests, a_calibration_with_long_texts);
    tcase_add_test(tests, ids_outside_the_vocabulary);
    tcase_add_test(tests, an_interrupted_calibration);
    tcase_add_test(tests, a_calibration_with_signals);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
