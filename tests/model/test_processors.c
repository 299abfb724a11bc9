/*
 * Tests of penalties and sampling through the public interface, against processors.json
 * (make_processors.py): on 200 random states, the tokens of Hugging Face's logits processors, alone
 * and 16 in a launch, and the log-probabilities of a forward pass of Hugging Face. The argument is
 * the device: cpu, or cuda, which is skipped with a message if there is no GPU.
 */
#include "megalith.h"

#include "base/json.h"
#include "tests/sanitized.h"
#include "vm/cuda/cuda.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 77, CASES = 200, ROOM = 64, MOST = 8, TOP = 3 };
static const char *device;
static mgl_error err;

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

static struct state {
    mgl_request request;
    int32_t prompt[ROOM], wanted[MOST];
    const cJSON *likely; /* [{"logprob": l, "top": [l, ...]}], one for each token */
} states[CASES];

/* The environment variable `name`, or else the given folder. */
static const char *folder_of(const char *name, const char *otherwise)
{
    const char *folder = getenv(name);
    return folder ? folder : otherwise;
}

static int read_ids(const mgl_json *json, const cJSON *object, const char *key, int most,
                    int32_t *ids)
{
    const cJSON *array, *item;
    int count = 0;
    int64_t id;
    ok(mgl_json_get_array(json, object, key, true, &array, &err));
    ck_assert_int_le(cJSON_GetArraySize(array), most);
    cJSON_ArrayForEach(item, array)
    {
        ok(mgl_json_item_int(json, item, key, 0, INT32_MAX, &id, &err));
        ids[count++] = (int32_t)id;
    }
    return count;
}

static double read_number(const cJSON *object, const char *key)
{
    const cJSON *item = mgl_json_member(object, key);
    return item ? item->valuedouble : 0.0;
}

static void read_state(const mgl_json *json, const cJSON *item, struct state *s)
{
    const int count = read_ids(json, item, "prompt", ROOM, s->prompt);
    s->likely = mgl_json_member(item, "likely");
    s->request = (mgl_request){.size = sizeof s->request,
                               .prompt = s->prompt,
                               .prompt_count = (size_t)count,
                               .max_tokens = read_ids(json, item, "output_ids", MOST, s->wanted),
                               .temperature = (float)read_number(item, "temperature"),
                               .top_k = (int32_t)read_number(item, "top_k"),
                               .top_p = (float)read_number(item, "top_p"),
                               .min_p = read_number(item, "min_p"),
                               .seed = (uint64_t)read_number(item, "seed"),
                               .ignore_eos = true,
                               .logprobs = TOP,
                               .repeat_penalty = read_number(item, "repeat_penalty"),
                               .presence_penalty = read_number(item, "presence_penalty"),
                               .frequency_penalty = read_number(item, "frequency_penalty")};
}

static mgl_json read_states(void)
{
    char path[1024];
    mgl_json json;
    const cJSON *item;
    int count = 0;
    snprintf(path, sizeof path, "%s/processors.json",
             folder_of("MGL_TEST_SHAPES", MGL_SOURCE_DIR "/tests/model"));
    ok(mgl_json_read_file(path, 1 << 20, &json, &err));
    cJSON_ArrayForEach(item, json.root)
    {
        ck_assert_int_lt(count, CASES);
        read_state(&json, item, &states[count++]);
    }
    ck_assert_int_eq(count, CASES);
    return json;
}

static void check_result(int number, const mgl_result *result)
{
    const struct state *s = &states[number];
    const cJSON *likely = s->likely->child;
    ck_assert_uint_eq(result->output.count, (size_t)s->request.max_tokens);
    ck_assert_uint_eq(result->top_count, TOP);
    for (size_t i = 0; i < result->output.count; i++, likely = likely->next) {
        const cJSON *top = mgl_json_member(likely, "top")->child;
        ck_assert_msg(result->output.ids[i] == s->wanted[i], "state %d: token %zu is %d, not %d",
                      number, i, (int)result->output.ids[i], (int)s->wanted[i]);
        ck_assert_double_le(fabs((double)result->logprobs[i] - read_number(likely, "logprob")),
                            1e-4);
        for (int j = 0; j < TOP; j++, top = top->next)
            ck_assert_double_le(
                fabs((double)result->top_logprobs[i * TOP + (size_t)j] - top->valuedouble), 1e-4);
    }
}

/* Runs all states, `together` in each launch. */
static void check_states(int together)
{
    char path[1024];
    mgl_model *model;
    mgl_request requests[MGL_MAX_BATCH];
    mgl_result results[MGL_MAX_BATCH];
    mgl_open_options options = {.size = sizeof options,
                                .device = device,
                                .dtype = "f32",
                                .capacity = ROOM,
                                .sequences = together,
                                .penalties = 1};
    snprintf(path, sizeof path, "%s/tales-5m",
             folder_of("MGL_TEST_MODELS", MGL_SOURCE_DIR "/tests/models"));
    for (int i = 0; i < together; i++)
        results[i] = (mgl_result){.size = sizeof *results};
    ok(mgl_model_open(path, &options, &model, &err));
    for (int first = 0; first < CASES; first += together) {
        const int count = CASES - first < together ? CASES - first : together;
        for (int i = 0; i < count; i++)
            requests[i] = states[first + i].request;
        ok(mgl_model_generate_batch(model, requests, (size_t)count, NULL, NULL, results, &err));
        for (int i = 0; i < count; i++)
            check_result(first + i, &results[i]);
    }
    for (int i = 0; i < together; i++)
        mgl_result_clear(&results[i]);
    mgl_model_close(model);
}

static const int groups[] = {1, 3, 16};

START_TEST(tokens_are_hugging_faces)
{
    mgl_json json = read_states();
    check_states(groups[_i]);
    mgl_json_clear(&json);
}
END_TEST

int main(int argc, char **argv)
{
    mgl_cuda_probe probe;
    device = argc > 1 ? argv[1] : "cpu";
    mgl_cuda_get_probe(&probe);
    if (!strcmp(device, "cuda") && (probe.device_count == 0 || !probe.nvrtc)) {
        printf("SKIPPED test_processors: %s\n",
               probe.device_count ? probe.nvrtc_reason : probe.driver_reason);
        return SKIP;
    }
    Suite *suite = suite_create("processors");
    TCase *tests = tcase_create("processors");
    tcase_set_timeout(tests, 200);
    tcase_add_loop_test(tests, tokens_are_hugging_faces, 0,
                        BY_SANITIZER((int)(sizeof groups / sizeof *groups), 1));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
