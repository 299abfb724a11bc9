/*
 * Tests a conversation of ten turns. Each reply has the tokens of a fresh start from the whole
 * conversation, and only the new part of each prompt is read, as the counts show. The argument is
 * the device: cpu, or cuda, which is skipped with a message if there is no GPU.
 */
#include "command.h"

#include "vm/cuda/cuda.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 10, CAPACITY = 1024, SKIP = 77 };

static const char *device = "cpu";

#define TEMPLATE                                                                                   \
    "{{ bos_token }}{% for m in messages %}{{ m.content }}"                                        \
    "{{ eos_token if m.role == 'assistant' else '<|eot_id|>' }}{% endfor %}"

static const char *const asked[TURNS] = {"Once there was a small fox named",
                                         "Who lived near the old mill?",
                                         "The wind blew hard",
                                         "Tell me\\\nmore",
                                         "How many do you have now?",
                                         "Once there was a curious badger",
                                         "Snow lay on the ground, and",
                                         "\"Ä\"",
                                         "And then?",
                                         "The two friends sat in the"};

static const char *talker(void)
{
    const char *path = scratch_model("tales-5m", "talker");
    scratch_file("talker/chat_template.jinja", TEMPLATE);
    return path;
}

static mgl_json talk(void)
{
    char line[2000], input[2000] = "";
    for (int i = 0; i < TURNS; i++)
        snprintf(input + strlen(input), sizeof input - strlen(input), "%s\n", asked[i]);
    snprintf(line, sizeof line,
             "chat %s --device %s --dtype f32 --capacity %d --max-tokens 40 --json --quiet",
             talker(), device, CAPACITY);
    command_result result = command_run(line, input);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.chat/1");
    command_clear(&result);
    return json;
}

/* The reply of a new process to the prompt. */
static void assert_fresh(const cJSON *prompt_ids, const cJSON *output_ids)
{
    cJSON *list = cJSON_CreateArray(), *prompt = cJSON_CreateObject();
    cJSON_AddItemToObject(prompt, "ids", cJSON_Duplicate(prompt_ids, true));
    cJSON_AddItemToArray(list, prompt);
    command_result result = command_runf(
        "run %s --device %s --dtype f32 --capacity %d --max-tokens 40 --json --prompts %s",
        talker(), device, CAPACITY, scratch_json("prompt.json", list));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_msg(cJSON_Compare(json_at(&json, "output_ids"), output_ids, true),
                  "the tokens of a fresh start are others");
    mgl_json_clear(&json);
    cJSON_Delete(list);
    command_clear(&result);
}

/* Appends the ids of an array to those (*count) of a cache. */
static void take(const cJSON *ids, int *cache, int *count)
{
    for (const cJSON *id = ids->child; id; id = id->next)
        cache[(*count)++] = (int)id->valuedouble;
}

static int common(const cJSON *ids, const int *cache, int count)
{
    int n = 0;
    for (const cJSON *id = ids->child; id && n < count; id = id->next, n++)
        if (cache[n] != (int)id->valuedouble)
            break;
    return n;
}

START_TEST(ten_turns)
{
    int cache[2 * CAPACITY], held = 0, read = 0, last = 0, turns = 0;
    mgl_json json = talk();
    for (const cJSON *reply = json_at(&json, "replies")->child; reply; reply = reply->next) {
        const cJSON *prompt = mgl_json_member(reply, "prompt_ids");
        const cJSON *output = mgl_json_member(reply, "output_ids");
        int reused = (int)mgl_json_member(reply, "reused")->valuedouble;
        int count = cJSON_GetArraySize(prompt);
        /* The whole cache is a prefix of the prompt, and is not read again. */
        ck_assert_int_eq(common(prompt, cache, held), held);
        ck_assert_int_eq(reused, held);
        read += count - reused;
        ck_assert_int_eq((int)mgl_json_member(reply, "launches")->valuedouble, 1);
        assert_fresh(prompt, output);
        held = 0;
        take(prompt, cache, &held);
        take(output, cache, &held);
        held--; /* the last token was not computed */
        last = count;
        turns++;
    }
    ck_assert_int_eq(turns, TURNS);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "messages")), 2 * TURNS);
    ck_assert_int_lt(read, last);
    printf("%d turns on %s: the last prompt has %d tokens, and %d were read of all\n", turns,
           device, last, read);
    mgl_json_clear(&json);
}
END_TEST

static bool is_there(void)
{
    static mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    return !strcmp(device, "cpu") || (probe.device_count > 0 && probe.nvrtc);
}

int main(int argc, char **argv)
{
    device = argc > 1 ? argv[1] : device;
    if (!is_there()) {
        printf("SKIPPED: no GPU with NVRTC: a conversation on one was not held\n");
        return SKIP;
    }
    Suite *suite = suite_create("talk");
    TCase *tests = tcase_create("talk");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, ten_turns);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
