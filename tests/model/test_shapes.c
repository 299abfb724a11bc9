/*
 * Tests of random models of unusual shapes through the public interface, against shapes.json:
 * greedy tokens, and the negative log-likelihood of the prompt by a simple forward pass in NumPy in
 * f32. The argument is the device: cpu, or cuda, which is skipped with a message if there is no
 * GPU.
 */
#include "megalith.h"

#include "base/json.h"
#include "tests/scoring.h"
#include "tests/scratch.h"
#include "vm/cuda/cuda.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIP = 77, MOST = 64 };
static const char *device;
static mgl_error err;

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

/* The environment variable `name`, or else the folder that the macro names. */
static const char *folder_of(const char *name, const char *otherwise)
{
    const char *folder = getenv(name);
    return folder ? folder : otherwise;
}

static int read_ids(const mgl_json *json, const cJSON *object, const char *key, int32_t *ids)
{
    const cJSON *array, *item;
    int count = 0;
    int64_t id;
    ok(mgl_json_get_array(json, object, key, true, &array, &err));
    cJSON_ArrayForEach(item, array)
    {
        ck_assert_int_lt(count, MOST);
        ok(mgl_json_item_int(json, item, key, 0, INT32_MAX, &id, &err));
        ids[count++] = (int32_t)id;
    }
    return count;
}

static void write_model(const char *folder, const char *options)
{
    char line[1024];
    snprintf(line, sizeof line, "'%s/write_random_model' '%s' %s",
             folder_of("MGL_TEST_TOOLS", MGL_BINARY_DIR "/tests/tools"), folder, options);
    ck_assert_msg(system(line) == 0, "%s", line);
}

static void check_shape(const mgl_json *json, const cJSON *shape, const char *folder)
{
    const char *options;
    int32_t prompt[MOST], wanted[MOST];
    float logprob[MOST];
    double nll = 0.0, wanted_nll;
    mgl_model *model;
    mgl_result result = {.size = sizeof result};
    ok(mgl_json_get_string(json, shape, "model", true, &options, &err));
    ok(mgl_json_get_double(json, shape, "nll", true, &wanted_nll, &err));
    int count = read_ids(json, shape, "prompt_ids", prompt);
    int answer = read_ids(json, shape, "output_ids", wanted);
    write_model(folder, options);
    ok(mgl_model_open(folder,
                      &(mgl_open_options){.size = sizeof(mgl_open_options),
                                          .device = device,
                                          .dtype = "f32",
                                          .capacity = 2 * MOST},
                      &model, &err));
    mgl_request request = {.size = sizeof request,
                           .prompt = prompt,
                           .prompt_count = (size_t)count,
                           .max_tokens = answer,
                           .ignore_eos = true};
    ok(mgl_model_generate(model, &request, NULL, NULL, &result, &err));
    ck_assert_uint_eq(result.output.count, (size_t)answer);
    for (int i = 0; i < answer; i++)
        ck_assert_msg(result.output.ids[i] == wanted[i], "%s: token %d is %d, not %d", options, i,
                      result.output.ids[i], wanted[i]);
    ok(mgl_model_score(model, prompt, (size_t)count, logprob, &err));
    for (int i = 1; i < count; i++)
        nll -= (double)logprob[i];
    ck_assert_msg(fabs(nll / wanted_nll - 1.0) < 1e-5, "%s: nll %.6f, not %.6f", options, nll,
                  wanted_nll);
    mgl_result_clear(&result);
    mgl_model_close(model);
}

START_TEST(shapes_are_numpys)
{
    char path[1024], folder[] = "/tmp/mgl-shapes-XXXXXX", line[128];
    mgl_json json;
    const cJSON *shape;
    int count = 0;
    snprintf(path, sizeof path, "%s/shapes.json",
             folder_of("MGL_TEST_SHAPES", MGL_SOURCE_DIR "/tests/model"));
    ok(mgl_json_read_file(path, 1 << 20, &json, &err));
    scratch_make(folder);
    cJSON_ArrayForEach(shape, json.root)
    {
        check_shape(&json, shape, folder);
        count++;
    }
    ck_assert_int_eq(count, 6);
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    ck_assert_int_eq(system(line), 0);
    mgl_json_clear(&json);
}
END_TEST

/* ---- weights that are no numbers ------------------------------------------------------------- */

enum { HIDDEN = 64, SPOILT = 7 /* token */, REPLIES = 3 };

/* Sets one number of a row-major f32 matrix of HIDDEN columns that begins at byte `start`. */
static void put_number(FILE *file, long start, int row, float value)
{
    fseek(file, start + row * HIDDEN * (long)sizeof value, SEEK_SET);
    ck_assert_uint_eq(fwrite(&value, sizeof value, 1, file), 1);
}

/* A model without tied weights in a new folder, whose logits overflow after one token. The token's
 * embedding has one element that outweighs all others. The last rows of the head multiply that
 * element, positive or negative, by a factor with which an ordinary element just does not
 * overflow. */
static void write_spoilt(char *folder)
{
    enum { VOCAB = 65 };
    char path[128];
    uint64_t header;
    scratch_make(folder);
    write_model(folder, "--dtype f32 --vocab 65");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(&header, sizeof header, 1, file), 1);
    put_number(file, (long)(sizeof header + header), SPOILT, 1e6f);
    fseek(file, 0, SEEK_END);
    long head = ftell(file) - VOCAB * HIDDEN * (long)sizeof(float);
    put_number(file, head, VOCAB - 1, FLT_MAX / 4);
    put_number(file, head, VOCAB - 2, -FLT_MAX / 4);
    fclose(file);
}

static mgl_model *open_spoilt(char *folder)
{
    mgl_model *model;
    write_spoilt(folder);
    ok(mgl_model_open(folder,
                      &(mgl_open_options){.size = sizeof(mgl_open_options),
                                          .device = device,
                                          .dtype = "f32",
                                          .capacity = 64,
                                          .sequences = REPLIES},
                      &model, &err));
    return model;
}

static void close_spoilt(mgl_model *model, const char *folder)
{
    char line[128];
    mgl_model_close(model);
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    ck_assert_int_eq(system(line), 0);
}

/* NaN is an error of the evaluation, not a result. */
START_TEST(a_likelihood_that_is_no_number)
{
    char folder[] = "/tmp/mgl-shapes-XXXXXX";
    int32_t ids[] = {1, 2, SPOILT, 4};
    mgl_eval_result result;
    mgl_model *model = open_spoilt(folder);
    mgl_status status = score_texts(model, &(mgl_ids){ids, 4}, 1, NULL, &result, &err);
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "text 0") &&
                      strstr(err.message, "position 3 is not a number"),
                  "%s", err.message);
    close_spoilt(model, folder);
}
END_TEST

static bool count_token(void *user, size_t reply, int32_t token)
{
    int *counts = user;
    ck_assert_int_ge(token, 0);
    counts[reply]++;
    return true;
}

/* The error names the request; no token and no result is returned. */
START_TEST(a_reply_that_is_no_number)
{
    char folder[] = "/tmp/mgl-shapes-XXXXXX";
    int counts[REPLIES] = {0};
    const int32_t good[] = {1, 2, 3}, bad[] = {4, SPOILT};
    const mgl_request requests[REPLIES] = {
        {.size = sizeof *requests,
         .prompt = good,
         .prompt_count = 3,
         .max_tokens = 2,
         .ignore_eos = true},
        {.size = sizeof *requests, .prompt = bad, .prompt_count = 2, .max_tokens = 2},
        {.size = sizeof *requests,
         .prompt = good,
         .prompt_count = 2,
         .max_tokens = 2,
         .ignore_eos = true}};
    mgl_result results[REPLIES];
    for (int i = 0; i < REPLIES; i++)
        results[i] = (mgl_result){.size = sizeof *results};
    mgl_model *model = open_spoilt(folder);
    mgl_status status =
        mgl_model_generate_batch(model, requests, REPLIES, count_token, counts, results, &err);
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "requests[1]");
    ck_assert_msg(strstr(err.message, "position 2 is not a number"), "%s", err.message);
    ck_assert_int_eq(counts[1], 0);
    ck_assert_int_eq(counts[0], 2);
    for (int i = 0; i < REPLIES; i++)
        ck_assert_ptr_null(results[i].output.ids);
    status = mgl_model_generate(model, &requests[1], NULL, NULL, &results[0], &err);
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "");
    ok(mgl_model_generate(model, &requests[0], NULL, NULL, &results[0], &err));
    mgl_result_clear(&results[0]);
    close_spoilt(model, folder);
}
END_TEST

int main(int argc, char **argv)
{
    mgl_cuda_probe probe;
    device = argc > 1 ? argv[1] : "cpu";
    mgl_cuda_get_probe(&probe);
    if (!strcmp(device, "cuda") && (probe.device_count == 0 || !probe.nvrtc)) {
        printf("SKIPPED test_shapes: %s\n",
               probe.device_count ? probe.nvrtc_reason : probe.driver_reason);
        return SKIP;
    }
    Suite *suite = suite_create("shapes");
    TCase *tests = tcase_create("shapes");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, shapes_are_numpys);
    tcase_add_test(tests, a_likelihood_that_is_no_number);
    tcase_add_test(tests, a_reply_that_is_no_number);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
