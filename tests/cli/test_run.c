/*
 * Tests of megalith run: real replies of the provided checkpoints on the CPU, and every way in
 * which a reply can end.
 */
#include "command.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char prompt[] = "Once there was a small fox named";
static const char *const models[] = {"tales-5m", "llama3-rope", "llama-linear-rope",
                                     "qwen2",    "qwen3",       "mistral"};

/* A near tie in Hugging Face's logits may be decided differently. */
static void compare_ids(const char *model, const cJSON *golden, const cJSON *output)
{
    const cJSON *wanted = mgl_json_member(golden, "output_ids");
    const cJSON *gaps = mgl_json_member(golden, "top_two_gap");
    for (int i = 0; i < cJSON_GetArraySize(wanted); i++) {
        const cJSON *got = cJSON_GetArrayItem(output, i);
        double gap = cJSON_GetArrayItem(gaps, i)->valuedouble;
        if (got && got->valueint == cJSON_GetArrayItem(wanted, i)->valueint)
            continue;
        if (gap < 1e-4) {
            printf("%s: differs at token %d, where the two best are %g apart\n", model, i, gap);
            return;
        }
        ck_abort_msg("%s: token %d differs, where the two best are %g apart", model, i, gap);
    }
    ck_assert_int_eq(cJSON_GetArraySize(output), cJSON_GetArraySize(wanted));
}

START_TEST(says_what_hugging_face_says)
{
    mgl_json golden = model_json(models[_i], "golden.json");
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(&golden, "fp32.greedy"))
    {
        const char *text = mgl_json_member(item, "prompt")->valuestring;
        ck_assert_ptr_null(strchr(text, '\''));
        command_result result =
            command_runf("run %s --device cpu --prompt '%s' --max-tokens 64 --json",
                         model_path(models[_i]), text);
        ck_assert_msg(result.code == 0, "%s", result.err);
        mgl_json json = command_json(&result, "megalith.run/1");
        ck_assert(
            cJSON_Compare(json_at(&json, "prompt_ids"), mgl_json_member(item, "prompt_ids"), true));
        compare_ids(models[_i], item, json_at(&json, "output_ids"));
        ck_assert_int_eq((int)json_number(&json, "launches"), 1);
        mgl_json_clear(&json);
        command_clear(&result);
    }
    mgl_json_clear(&golden);
}
END_TEST

START_TEST(json_has_every_field)
{
    command_result result =
        command_runf("run %s --device cpu --prompt '%s' --max-tokens 9 --json --quiet",
                     model_path("tales-5m"), prompt);
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.err, "");
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "model"), model_path("tales-5m"));
    ck_assert_str_eq(json_string(&json, "device"), "cpu");
    ck_assert_str_eq(json_string(&json, "dtype"), "f32");
    ck_assert_str_eq(json_string(&json, "stop"), "length");
    ck_assert_str_eq(json_string(&json, "text"), " Yara who lived near the old mill. The");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "output_ids")), 9);
    static const char *const times[] = {
        "timing.load_s",       "timing.compile_s", "timing.prefill_s", "timing.decode_s",
        "timing.tokens_per_s", "timing.driver_s",  "timing.import_s",  "timing.check_s",
        "timing.weights_s",    "timing.kernel_s"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        ck_assert_double_ge(json_number(&json, times[i]), 0);
    ck_assert_double_gt(json_number(&json, "timing.tokens_per_s"), 0);
    ck_assert_double_gt(json_number(&json, "weight_bytes"), 5e6);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Checks that the parts of loading add up, and loading ends before the first token. */
START_TEST(times_of_loading_fit_together)
{
    command_result result = command_runf("run %s --device cpu --prompt '%s' --max-tokens 1 --json",
                                         model_path("tales-5m"), prompt);
    mgl_json json = command_json(&result, "megalith.run/1");
    double load_s = json_number(&json, "timing.load_s");
    ck_assert_double_le(json_number(&json, "timing.import_s") +
                            json_number(&json, "timing.check_s") +
                            json_number(&json, "timing.weights_s"),
                        load_s);
    ck_assert_double_le(load_s + json_number(&json, "timing.prefill_s"),
                        json_number(&json, "timing.first_token_s"));
    ck_assert_double_eq(json_number(&json, "timing.driver_s"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The text that is streamed is the text of --json and a line end. */
START_TEST(streams_the_same_text)
{
    command_result json_result =
        command_runf("run %s --device cpu --prompt '%s' --json", model_path("tales-5m"), prompt);
    mgl_json json = command_json(&json_result, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "stop"), "eos");
    command_result streamed =
        command_runf("run %s --device cpu --prompt '%s' --quiet", model_path("tales-5m"), prompt);
    ck_assert_int_eq(streamed.code, 0);
    ck_assert_str_eq(streamed.err, "");
    size_t length = strlen(json_string(&json, "text"));
    ck_assert_uint_eq(streamed.out_length, length + 1);
    ck_assert_int_eq(strncmp(streamed.out, json_string(&json, "text"), length), 0);
    ck_assert_int_eq(streamed.out[length], '\n');
    /* The end token belongs to the ids, not to the text. */
    const cJSON *ids = json_at(&json, "output_ids");
    ck_assert_int_eq(cJSON_GetArrayItem(ids, cJSON_GetArraySize(ids) - 1)->valueint, 910);
    command_clear(&streamed);
    mgl_json_clear(&json);
    command_clear(&json_result);
}
END_TEST

static command_result run_with(const char *flags)
{
    return command_runf("run %s --device cpu %s", model_path("tales-5m"), flags);
}

/* A stop string over two tokens, and text that is held back until the end. */
START_TEST(streams_up_to_a_stop_text)
{
    static const char *const cases[][2] = {
        {"-n 11 --stop nowhere --stop 'lived near the old mi'",
         " a curious toad named Yara who \n"},
        {"-n 10 --stop 'near the old x'", " a curious toad named Yara who lived near the old\n"}};
    command_result result = command_runf("run %s --device cpu --prompt 'Once there was' %s",
                                         model_path("tales-5m"), cases[_i][0]);
    ck_assert_str_eq(result.out, cases[_i][1]);
    ck_assert_int_eq(result.code, 0);
    command_clear(&result);
}
END_TEST

/* A prompt as text and as ids, streamed and in JSON. */
START_TEST(echoes_the_prompt)
{
    static const char *const cases[][2] = {
        {"--prompt 'Once there was'", "Once there was a curious toad\n"},
        {"--prompt-ids 909,452,449,268", "Once there was a curious toad\n"},
        {"--prompt 'Once there was' --json", "\"text\":\"Once there was a curious toad\""}};
    command_result result =
        command_runf("run %s --device cpu --echo -n 3 %s", model_path("tales-5m"), cases[_i][0]);
    ck_assert_msg(strstr(result.out, cases[_i][1]) != NULL, "%s", result.out);
    command_clear(&result);
}
END_TEST

START_TEST(tells_log_probabilities)
{
    command_result result = command_runf("run %s --device cpu --prompt 'Once there was' -n 3 "
                                         "--logprobs 2 --json",
                                         model_path("tales-5m"));
    mgl_json json = command_json(&result, "megalith.run/1");
    const cJSON *told = json_at(&json, "logprobs"), *first = cJSON_GetArrayItem(told, 0);
    const cJSON *top = mgl_json_member(first, "top");
    ck_assert_int_eq(cJSON_GetArraySize(told), 3);
    ck_assert_int_eq(mgl_json_member(first, "id")->valueint, 259);
    ck_assert_double_lt(mgl_json_member(first, "logprob")->valuedouble, 0);
    ck_assert_int_eq(cJSON_GetArraySize(top), 2);
    ck_assert_int_eq(mgl_json_member(cJSON_GetArrayItem(top, 0), "id")->valueint, 259);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* With --echo, prompt tokens too; the first has no log-probability. */
START_TEST(tells_log_probabilities_of_the_prompt)
{
    command_result result = command_runf("run %s --device cpu --prompt 'Once there was' -n 3 "
                                         "--logprobs 2 --echo --json",
                                         model_path("tales-5m"));
    mgl_json json = command_json(&result, "megalith.run/1");
    const cJSON *told = json_at(&json, "prompt_logprobs"), *first = cJSON_GetArrayItem(told, 0);
    const cJSON *second = cJSON_GetArrayItem(told, 1);
    ck_assert_int_eq(cJSON_GetArraySize(told), 4);
    ck_assert_int_eq(mgl_json_member(first, "id")->valueint, 909);
    ck_assert(cJSON_IsNull(mgl_json_member(first, "logprob")));
    ck_assert_double_lt(fabs(mgl_json_member(second, "logprob")->valuedouble + 1.0404), 1e-3);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* As a flag, and as a key in a list. */
START_TEST(penalties_change_what_is_greedy)
{
    command_result greedy = run_with("--prompt 'Once there was' -n 24");
    command_result flag = run_with("--prompt 'Once there was' -n 24 --repeat-penalty 1.5");
    char flags[1200];
    const char *list =
        scratch_file("penalties.json", "[{\"text\": \"Once there was\", \"repeat_penalty\": 1.5}, "
                                       "{\"text\": \"Once there was\"}]");
    snprintf(flags, sizeof flags, "--prompts %s -n 24", list);
    command_result both = run_with(flags);
    ck_assert_str_ne(flag.out, greedy.out);
    ck_assert_ptr_nonnull(strstr(both.out, flag.out));
    ck_assert_ptr_nonnull(strstr(both.out, greedy.out));
    command_clear(&greedy);
    command_clear(&flag);
    command_clear(&both);
}
END_TEST

START_TEST(prompts_from_file_and_ids)
{
    char flags[1200];
    command_result by_text, by_file, by_ids;
    by_text = run_with("--prompt 'Once there was a small fox named' --max-tokens 20");
    snprintf(flags, sizeof flags, "--prompt-file %s --max-tokens 20",
             scratch_file("prompt.txt", prompt));
    by_file = run_with(flags);
    by_ids = run_with("--prompt-ids 909,452,449,268,259,804,637,453 --max-tokens 20");
    ck_assert_int_eq(by_text.code, 0);
    ck_assert_uint_gt(by_text.out_length, 20);
    ck_assert_str_eq(by_file.out, by_text.out);
    ck_assert_str_eq(by_ids.out, by_text.out);
    command_clear(&by_text);
    command_clear(&by_file);
    command_clear(&by_ids);
}
END_TEST

START_TEST(samples_by_seed)
{
    static const char line[] = "--prompt 'Once' --max-tokens 40 --temperature 1.2 --seed %d --json";
    char *said[3];
    for (int i = 0; i < 3; i++) {
        char flags[200];
        snprintf(flags, sizeof flags, line, i == 2 ? 8 : 7);
        command_result result = run_with(flags);
        ck_assert_int_eq(result.code, 0);
        mgl_json json = command_json(&result, "megalith.run/1");
        said[i] = strdup(json_string(&json, "text"));
        mgl_json_clear(&json);
        command_clear(&result);
    }
    ck_assert_str_eq(said[0], said[1]);
    ck_assert_str_ne(said[0], said[2]);
    for (int i = 0; i < 3; i++)
        free(said[i]);
}
END_TEST

/* ---- random seeds ---------------------------------------------------------------------------- */

static const char *const samplers[] = {"--temperature 1.2", "--sample", "--top-p 0.9",
                                       "--top-k 40 --temperature 2"};

/* The result of `flags`, and its seed. */
static double run_sampled(const char *flags, mgl_json *out)
{
    char line[300];
    snprintf(line, sizeof line, "--prompt 'Once' --max-tokens 40 --json %s", flags);
    command_result result = run_with(line);
    ck_assert_msg(result.code == 0, "%s", result.err);
    *out = command_json(&result, "megalith.run/1");
    command_clear(&result);
    return json_number(out, "seed");
}

START_TEST(a_drawn_seed_gives_the_reply_again)
{
    char flags[200];
    mgl_json drawn, again;
    double seed = run_sampled(samplers[_i], &drawn);
    snprintf(flags, sizeof flags, "%s --seed %.0f", samplers[_i], seed);
    ck_assert_double_eq(run_sampled(flags, &again), seed);
    ck_assert_str_eq(json_string(&again, "text"), json_string(&drawn, "text"));
    mgl_json_clear(&drawn);
    mgl_json_clear(&again);
}
END_TEST

START_TEST(every_run_draws_anew)
{
    mgl_json one, two;
    ck_assert_double_ne(run_sampled("--temperature 1.2", &one),
                        run_sampled("--temperature 1.2", &two));
    mgl_json_clear(&one);
    mgl_json_clear(&two);
}
END_TEST

START_TEST(a_greedy_reply_has_no_seed)
{
    static const char *const greedy[] = {"", "--temperature 0", "--temperature 0 --seed 5"};
    char line[200];
    snprintf(line, sizeof line, "--prompt Once --max-tokens 2 --json %s", greedy[_i]);
    command_result result = run_with(line);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert(cJSON_IsNull(json_at(&json, "seed")));
    ck_assert_ptr_null(strstr(result.err, "seed"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* ---- the closing line ------------------------------------------------------------------------ */

START_TEST(says_tokens_and_times)
{
    command_result result = run_with("--prompt Once --max-tokens 9");
    ck_assert_ptr_eq(strstr(result.err, "megalith run: 9 tokens, "), result.err);
    ck_assert_ptr_nonnull(strstr(result.err, " tokens/s; prompt of 2 tokens in "));
    ck_assert_ptr_nonnull(strstr(result.err, "; loaded in "));
    ck_assert_ptr_null(strstr(result.err, "kernel"));
    ck_assert_ptr_eq(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
    command_clear(&result);
}
END_TEST

START_TEST(says_the_seed_that_was_drawn)
{
    unsigned long long seed = 0;
    command_result result = run_with("--prompt Once --max-tokens 9 --temperature 1");
    const char *said = strstr(result.err, "; seed ");
    ck_assert_ptr_nonnull(said);
    ck_assert_int_eq(sscanf(said, "; seed %llu\n", &seed), 1);
    command_clear(&result);
    result = run_with("--prompt Once --max-tokens 9 --temperature 1 --seed 3");
    ck_assert_ptr_null(strstr(result.err, "seed"));
    command_clear(&result);
}
END_TEST

START_TEST(is_quiet)
{
    command_result result = run_with("--prompt Once --max-tokens 9 --temperature 1 --quiet");
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.err, "");
    command_clear(&result);
}
END_TEST

START_TEST(greedy_unless_asked)
{
    command_result greedy, cold, one, sampled;
    greedy = run_with("--prompt 'Once' --max-tokens 30");
    cold = run_with("--prompt 'Once' --max-tokens 30 --temperature 0");
    one = run_with("--prompt 'Once' --max-tokens 30 --top-k 1");
    sampled = run_with("--prompt 'Once' --max-tokens 30 --sample --seed 3");
    ck_assert_int_eq(sampled.code, 0);
    ck_assert_str_eq(cold.out, greedy.out);
    ck_assert_str_eq(one.out, greedy.out);
    ck_assert_str_ne(sampled.out, greedy.out);
    command_clear(&greedy);
    command_clear(&cold);
    command_clear(&one);
    command_clear(&sampled);
}
END_TEST

/* The closing facts of a reply: model, flags, stop, new tokens. */
typedef struct end_case {
    const char *model, *flags, *stop;
    int tokens; /* -1: any number */
} end_case;

static const end_case ends[] = {
    {"tales-5m", "--max-tokens 1", "length", 1},
    {"tales-5m", "--max-tokens 500", "eos", -1},
    {"tales-5m", "--max-tokens 120 --ignore-eos", "length", 120},
    /* The cache ends the reply before max-tokens does. */
    {"tales-5m", "--max-tokens 50 --capacity 12", "length", 10},
    {"tales-5m", "--max-tokens 50 --capacity 3", "length", 1},
    /* the model has 512 positions */
    {"llama3-rope", "--max-tokens 5000 --ignore-eos", "length", 510},
};

START_TEST(ends_as_it_should)
{
    const end_case *c = &ends[_i];
    command_result result = command_runf("run %s --device cpu --prompt-ids 909,452 %s --json",
                                         model_path(c->model), c->flags);
    ck_assert_msg(result.code == 0, "%s: %s", c->flags, result.err);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_msg(!strcmp(json_string(&json, "stop"), c->stop), "%s: %s", c->flags,
                  json_string(&json, "stop"));
    int count = cJSON_GetArraySize(json_at(&json, "output_ids"));
    ck_assert_msg(c->tokens < 0 || count == c->tokens, "%s: %d tokens", c->flags, count);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

typedef struct refusal {
    const char *flags;
    int code;
    const char *message;
} refusal;

static const refusal refusals[] = {
    {"--device cpu --prompt-ids 909,452,449 --capacity 2", 2, "the KV cache has 2 positions"},
    {"--device cpu --prompt-ids 909,452 --capacity 2", 2,
     "prompt: has 2 tokens, and the KV cache has 2 positions (the capacity, at most "
     "max_position_embeddings = 1024), so no position is left for a reply; raise the capacity or "
     "shorten"},
    {"--device cpu --prompt-ids 913", 2, "ids 0 to 912"},
    {"--device cpu --prompt-ids 1,,2", 1, "--prompt-ids"},
    {"--device cpu --prompt-ids 1,2,", 1, "--prompt-ids"},
    {"--device cpu --prompt-ids -1", 1, "--prompt-ids"},
    {"--device cpu --prompt-ids 1 --capacity 5000", 2, "1024"},
    {"--device cpu --prompt-file /nowhere", 2, "/nowhere"},
    {"--device cpu --prompt x --config /nowhere", 2, "/nowhere"},
    {"--device cpu --prompt x --schedule /nowhere", 2, "/nowhere"},
    {"--prompt x --schedule s --capacity 9", 1, "leave out capacity"},
    {"--prompt x --schedule s --config c", 1, "leave out config"},
    {"--prompt x --schedule s --dtype bf16", 1, "leave out dtype"},
    {"--device tpu --prompt x", 1, "unknown device"},
    {"--device cpu --prompt-ids 5,913", 2, "token 1 is 913; the vocabulary has the ids 0 to 912"},
    {"--device cpu --prompt-ids ''", 2, "contains no tokens; give at least one"},
    {"--device cuda: --prompt x", 1, "unknown device"},
    {"--device cuda:x --prompt x", 1, "unknown device"},
    {"--device cpu --dtype int5 --prompt x", 1, "unknown dtype; supported: auto, f32, bf16 and"},
    {"--device cpu --dtype int8 --prompt x", 1, "`megalith quantize MODEL --bits 8 -o DIR` makes"},
    {"--device cpu --dtype fp8 --prompt x", 1, "`megalith bench MODEL --dtype fp8` measures"},
    {"--device cpu --dtype i32 --prompt x", 1, "unknown dtype"},
    {"--device cpu --prompt x --logprobs 21", 1, "out of range: 21; allowed: 0 to 20"},
    {"--device cpu --prompt x --logprobs 2", 1, "--logprobs: needs --json"},
    {"--device cpu --prompt x --repeat-penalty 0", 1, "is 0; it must be from 0.01 to 100"},
    {"--device cpu --prompt x --repeat-penalty -1", 1, "out of range: -1; allowed: 0 to 100"},
    {"--device cpu --prompt x --repeat-penalty nan", 1, "not a number: 'nan'"},
    {"--device cpu --prompt x --presence-penalty 2.5", 1, "out of range: 2.5; allowed: -2 to 2"},
    {"--device cpu --prompt x --frequency-penalty 1e99", 1, "out of range: 1e99; allowed: -2 to 2"},
    {"--device cpu --prompt x --stop ''", 1, "--stop: is empty"},
    {"--device cpu --prompt x --stop '\xC3'", 2, "stops[0]: is not UTF-8"},
    {"--prompt x --stop 1 --stop 2 --stop 3 --stop 4 --stop 5 --stop 6 --stop 7 --stop 8 --stop 9 "
     "--stop 1 --stop 2 --stop 3 --stop 4 --stop 5 --stop 6 --stop 7 --stop 8",
     1, "--stop: is given more than 16 times"},
};

START_TEST(rejects)
{
    command_result result = command_runf("run %s %s", model_path("tales-5m"), refusals[_i].flags);
    ck_assert_msg(result.code == refusals[_i].code, "%s: exit %d: %s", refusals[_i].flags,
                  result.code, result.err);
    ck_assert_msg(strstr(result.err, refusals[_i].message) != NULL, "%s: %s", refusals[_i].flags,
                  result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

/* A model may have more ids than its tokenizer: they have no text. */
START_TEST(leaves_out_what_the_tokenizer_does_not_know)
{
    char line[4096], folder[200];
    snprintf(folder, sizeof folder, "%s/small", scratch_folder());
    snprintf(line, sizeof line, "mkdir -p %s && ln -sf %s/*.json %s/*.safetensors %s && rm %s/tok*",
             folder, model_path("llama3-rope"), model_path("llama3-rope"), folder, folder);
    ck_assert_int_eq(system(line), 0);
    scratch_file("small/tokenizer.json",
                 "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}}");
    static const char *const ways[] = {"", "--json", "--prompts"};
    const char *list = scratch_file("one.json", "[{\"ids\": [909]}]");
    for (int i = 0; i < 3; i++) {
        command_result result =
            command_runf("run %s --device cpu --max-tokens 4 --ignore-eos %s %s", folder, ways[i],
                         i == 2 ? list : "--prompt-ids 909");
        ck_assert_msg(result.code == 0, "%s", result.err);
        command_clear(&result);
    }
    command_result result = command_runf("detokenize %s --ids 0,909", folder);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(
        strstr(result.err, "the token id 909 is outside the vocabulary, whose last is 0"));
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

/* Models of other families are rejected by name. */
START_TEST(rejects_other_families)
{
    static const char *const others[] = {"Qwen2MoeForCausalLM", "Phi3ForCausalLM"};
    char line[4096], folder[200];
    snprintf(folder, sizeof folder, "%s/other", scratch_folder());
    snprintf(line, sizeof line,
             "mkdir -p %s && ln -sf %s/*.safetensors %s/tokenizer.json %s && "
             "sed 's/Qwen2ForCausalLM/%s/' %s/config.json > %s/config.json",
             folder, model_path("qwen2"), model_path("qwen2"), folder, others[_i],
             model_path("qwen2"), folder);
    ck_assert_int_eq(system(line), 0);
    command_result result = command_runf("run %s --prompt x", folder);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, others[_i]));
    command_clear(&result);
}
END_TEST

/* org/name is searched only in the local Hugging Face cache. */
START_TEST(finds_org_and_name)
{
    char line[3000];
    snprintf(line, sizeof line,
             "cd '%s' && rm -rf hub && mkdir -p hub/models--org--name/refs "
             "hub/models--org--name/snapshots && printf 0123abcd > hub/models--org--name/refs/main "
             "&& ln -s '%s' hub/models--org--name/snapshots/0123abcd",
             scratch_folder(), model_path("llama3-rope"));
    ck_assert_int_eq(system(line), 0);
    snprintf(line, sizeof line, "%s/hub", scratch_folder());
    setenv("HF_HUB_CACHE", line, 1);
    command_result found =
        command_run("run org/name --device cpu --prompt-ids 909 --max-tokens 3 --json", NULL);
    command_result revised = command_run(
        "run org/name@0123abc --device cpu --prompt-ids 909 --max-tokens 3 --json", NULL);
    command_result missing = command_run("run org/other --prompt-ids 909", NULL);
    unsetenv("HF_HUB_CACHE");
    ck_assert_msg(found.code == 0, "%s", found.err);
    mgl_json json = command_json(&found, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "model"), "org/name");
    mgl_json_clear(&json);
    ck_assert_msg(revised.code == 0, "%s", revised.err);
    json = command_json(&revised, "megalith.run/1");
    ck_assert_str_eq(json_string(&json, "model"), "org/name@0123abc");
    mgl_json_clear(&json);
    ck_assert_int_eq(missing.code, 2);
    ck_assert_uint_eq(strcspn(missing.err, "\n") + 1, strlen(missing.err));
    ck_assert_ptr_nonnull(strstr(missing.err, ", which has 1 other model;"));
    command_clear(&revised);
    command_clear(&found);
    command_clear(&missing);
}
END_TEST

/* A file instead of a folder gets a message, and is not read as a tokenizer. */
START_TEST(a_file_is_no_model)
{
    char line[1200];
    snprintf(line, sizeof line, "run '%s/config.json' --prompt x", model_path("tales-5m"));
    command_result run = command_run(line, NULL);
    snprintf(line, sizeof line, "eval '%s/config.json' --texts x.json", model_path("tales-5m"));
    command_result eval = command_run(line, NULL);
    ck_assert_int_eq(run.code, 2);
    ck_assert_ptr_nonnull(strstr(run.err, "is a file"));
    ck_assert_int_eq(eval.code, 2);
    ck_assert_ptr_nonnull(strstr(eval.err, "is a file"));
    command_clear(&run);
    command_clear(&eval);
}
END_TEST

/* A copy of llama3-rope whose weights are NaN. The folder is new; static storage. */
static const char *model_of_nan(void)
{
    static char folder[512];
    char line[2048];
    uint64_t header;
    const char *from = model_path("llama3-rope");
    snprintf(folder, sizeof folder, "%s/nan", scratch_folder());
    snprintf(line, sizeof line,
             "mkdir -p '%s' && cp '%s'/*.json '%s'/*.safetensors '%s' && chmod u+w '%s'/*", folder,
             from, from, folder, folder);
    ck_assert_int_eq(system(line), 0);
    snprintf(line, sizeof line, "%s/model.safetensors", folder);
    FILE *file = fopen(line, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(&header, sizeof header, 1, file), 1);
    fseek(file, 0, SEEK_END);
    long end = ftell(file), begin = (long)(sizeof header + header);
    fseek(file, begin, SEEK_SET);
    for (long i = begin; i < end; i++)
        putc(0xFF, file);
    ck_assert_int_eq(fclose(file), 0);
    return folder;
}

/* With NaN weights, only the reason is printed. */
START_TEST(says_that_nothing_is_a_number)
{
    static const char *const flags[] = {"", "--temperature 0.8 --seed 3"};
    const char *model = model_of_nan();
    for (int i = 0; i < 2; i++) {
        command_result result =
            command_runf("run %s --device cpu --prompt '%s' %s", model, prompt, flags[i]);
        ck_assert_int_eq(result.code, 2);
        ck_assert_str_eq(result.out, "");
        ck_assert_msg(strstr(result.err, "is not a finite number"), "%s", result.err);
        command_clear(&result);
    }
}
END_TEST

/* A copy of a model whose angles of rope overflow from position 11 on. Static storage. */
static const char *overflowing_model(void)
{
    static char folder[512];
    char line[2048];
    const char *from = model_path("llama-linear-rope");
    snprintf(folder, sizeof folder, "%s/overflow", scratch_folder());
    snprintf(line, sizeof line,
             "mkdir -p '%s' && cp '%s'/*.json '%s'/*.safetensors '%s' && "
             "sed -i 's/\"factor\": *[0-9.]*/\"factor\": 3e-38/' '%s/config.json'",
             folder, from, from, folder, folder);
    ck_assert_int_eq(system(line), 0);
    return folder;
}

/* The tokens before the error are printed, then the reason. */
START_TEST(says_what_is_no_number)
{
    static const char *const flags[] = {"", "--temperature 0.8 --seed 3"};
    const char *model = overflowing_model();
    for (int i = 0; i < 2; i++) {
        command_result result =
            command_runf("run %s --device cpu --prompt '%s' --max-tokens 40 --ignore-eos %s", model,
                         prompt, flags[i]);
        command_result shorter = command_runf(
            "run %s --device cpu --prompt Once --max-tokens 6 --ignore-eos %s", model, flags[i]);
        ck_assert_int_eq(shorter.code, 0);
        ck_assert_int_eq(result.code, 2);
        ck_assert_msg(strstr(result.err, "position 12 is not a number") &&
                          strstr(result.err, "dtype"),
                      "%s", result.err);
        command_clear(&result);
        command_clear(&shorter);
    }
}
END_TEST

/* Without a token, nothing is printed. In a list, the other replies are printed. */
START_TEST(says_nothing_where_nothing_is_a_number)
{
    static const char ids[] = "1,2,3,4,5,6,7,8,9,10,11,12,13";
    command_result alone =
        command_runf("run %s --device cpu --prompt-ids %s", overflowing_model(), ids);
    ck_assert_int_eq(alone.code, 2);
    ck_assert_str_eq(alone.out, "");
    ck_assert_msg(strstr(alone.err, "position 13 is not a number"), "%s", alone.err);
    command_clear(&alone);
    char list[128];
    snprintf(list, sizeof list, "[{\"ids\": [1, 2], \"max_tokens\": 3}, {\"ids\": [%s]}]", ids);
    command_result both = command_runf("run %s --device cpu --prompts %s", overflowing_model(),
                                       scratch_file("overflow.json", list));
    ck_assert_int_eq(both.code, 2);
    ck_assert_ptr_nonnull(strstr(both.out, "==> prompt 0: length, 3 tokens <=="));
    ck_assert_ptr_nonnull(strstr(both.out, "==> prompt 1: error <==\n"));
    ck_assert_msg(strstr(both.err, "overflow.json: [1]: the likelihood of"), "%s", both.err);
    command_clear(&both);
}
END_TEST

START_TEST(says_that_there_is_no_device)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    command_result result = command_runf("run %s --device cuda --prompt x", model_path("tales-5m"));
    command_result automatic = command_runf("run %s --device auto --prompt x --max-tokens 3 --json",
                                            model_path("tales-5m"));
    unsetenv("CUDA_VISIBLE_DEVICES");
    ck_assert_int_eq(result.code, 4);
    ck_assert_uint_gt(strlen(result.err), 40);
    ck_assert_str_eq(result.out, "");
    ck_assert_int_eq(automatic.code, 0);
    command_clear(&result);
    command_clear(&automatic);
}
END_TEST

/* ---- interruptions --------------------------------------------------------------------------- */

static const char endless[] = "--prompt 'Once' --ignore-eos --max-tokens 1000";

static command start_endless(const char *more)
{
    char line[2000];
    snprintf(line, sizeof line, "run %s --device cpu %s %s", model_path("tales-5m"), endless, more);
    return command_start(line);
}

START_TEST(interrupted_while_streaming)
{
    command running = start_endless("--quiet");
    ck_assert(command_await(&running, 30));
    ck_assert_int_eq(kill(running.pid, SIGINT), 0);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 130);
    ck_assert_str_eq(result.err, "megalith run: interrupted by SIGINT\n");
    ck_assert_int_eq(result.out[result.out_length - 1], '\n');
    command_clear(&result);
}
END_TEST

/* At any moment of the interrupt, one complete object is printed with the partial reply, or
 * nothing. */
START_TEST(interrupted_with_json)
{
    command running = start_endless("--json");
    command_await_handler(&running);
    usleep((useconds_t)_i * 20000);
    ck_assert_int_eq(kill(running.pid, SIGINT), 0);
    command_result result = command_end(&running);
    ck_assert_int_eq(result.code, 130);
    bool loading = strstr(result.out, "megalith.error/1") != NULL;
    mgl_json json = command_json(&result, loading ? "megalith.error/1" : "megalith.run/1");
    if (loading) {
        ck_assert_int_eq((int)json_number(&json, "exit"), 130);
    } else {
        ck_assert_str_eq(json_string(&json, "stop"), "interrupted");
        ck_assert_int_lt(cJSON_GetArraySize(json_at(&json, "output_ids")), 1000);
    }
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* `megalith run ... | head`: the reader closes the pipe, and the reply ends. */
START_TEST(reader_goes_away)
{
    command running = start_endless("");
    ck_assert(command_await(&running, 10));
    close(running.out);
    int status;
    ck_assert_int_eq(waitpid(running.pid, &status, 0), running.pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 130);
    close(running.err);
}
END_TEST

START_TEST(output_cannot_be_written)
{
    static const char *const ways[] = {">/dev/full", ">&-"};
    char line[2000];
    for (size_t i = 0; i < 2; i++) {
        snprintf(line, sizeof line,
                 "%s/megalith run %s --device cpu --prompt x --max-tokens 3 %s 2>%s/e",
                 MGL_BINARY_DIR, model_path("tales-5m"), ways[i], scratch_folder());
        ck_assert_int_eq(WEXITSTATUS(system(line)), 2);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli run");
    TCase *tests = tcase_create("run");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, says_what_hugging_face_says, 0, 6);
    tcase_add_test(tests, json_has_every_field);
    tcase_add_test(tests, times_of_loading_fit_together);
    tcase_add_test(tests, a_file_is_no_model);
    tcase_add_test(tests, streams_the_same_text);
    tcase_add_loop_test(tests, streams_up_to_a_stop_text, 0, 2);
    tcase_add_loop_test(tests, echoes_the_prompt, 0, 3);
    tcase_add_test(tests, tells_log_probabilities);
    tcase_add_test(tests, tells_log_probabilities_of_the_prompt);
    tcase_add_test(tests, penalties_change_what_is_greedy);
    tcase_add_test(tests, prompts_from_file_and_ids);
    tcase_add_test(tests, samples_by_seed);
    tcase_add_loop_test(tests, a_drawn_seed_gives_the_reply_again, 0, 4);
    tcase_add_test(tests, every_run_draws_anew);
    tcase_add_loop_test(tests, a_greedy_reply_has_no_seed, 0, 3);
    tcase_add_test(tests, says_tokens_and_times);
    tcase_add_test(tests, says_the_seed_that_was_drawn);
    tcase_add_test(tests, is_quiet);
    tcase_add_test(tests, greedy_unless_asked);
    tcase_add_loop_test(tests, ends_as_it_should, 0, (int)(sizeof ends / sizeof *ends));
    tcase_add_loop_test(tests, rejects, 0, (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(tests, leaves_out_what_the_tokenizer_does_not_know);
    tcase_add_loop_test(tests, rejects_other_families, 0, 2);
    tcase_add_test(tests, finds_org_and_name);
    tcase_add_test(tests, says_that_nothing_is_a_number);
    tcase_add_test(tests, says_what_is_no_number);
    tcase_add_test(tests, says_nothing_where_nothing_is_a_number);
    tcase_add_test(tests, says_that_there_is_no_device);
    tcase_add_test(tests, interrupted_while_streaming);
    tcase_add_loop_test(tests, interrupted_with_json, 0, 6);
    tcase_add_test(tests, reader_goes_away);
    tcase_add_test(tests, output_cannot_be_written);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
