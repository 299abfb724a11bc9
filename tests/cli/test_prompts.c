/*
 * Tests of megalith run --prompts with one launch on the CPU: how replies are printed and end, and
 * every rejected list and entry.
 */
#include "command.h"
#include "list.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A text prompt, one with its own sampling options, and a short one as ids. */
static const char three[] =
    "[\"Once there was a small fox named\","
    " {\"text\": \"Once\", \"temperature\": 1.2, \"top_k\": 50, \"seed\": 7, \"max_tokens\": 25},"
    " {\"ids\": [909, 452], \"max_tokens\": 4}]";

static command_result run_alone(const char *flags)
{
    return command_runf("run %s --device cpu %s --json", model_path("tales-5m"), flags);
}

/* The elements of `three` as command lines. */
static const char *const three_alone[] = {
    "--prompt 'Once there was a small fox named'",
    "--prompt Once --temperature 1.2 --top-k 50 --seed 7 --max-tokens 25",
    "--prompt-ids 909,452 --max-tokens 4"};

START_TEST(each_is_as_alone)
{
    command_result batch = run_list(three, "--json"), alone = run_alone(three_alone[_i]);
    ck_assert_msg(batch.code == 0, "%s", batch.err);
    mgl_json json = command_json(&batch, "megalith.run/1");
    mgl_json single = command_json(&alone, "megalith.run/1");
    check_same(output_at(&json, _i), single.root);
    mgl_json_clear(&single);
    mgl_json_clear(&json);
    command_clear(&alone);
    command_clear(&batch);
}
END_TEST

/* The stop string of the flag applies to prompts without their own. A stop string over two tokens,
 * and a list. */
START_TEST(stop_texts)
{
    static const char list[] = "[\"Once there was\", {\"text\": \"Once\", \"stop\": [\"old mi\", "
                               "\"had\"]}, {\"text\": \"Once there was\", \"stop\": \"toad\"},"
                               " {\"text\": \"Once\", \"stop\": []}]";
    static const char *const texts[] = {" a curious toad named Yara who lived near the old m",
                                        " there was a curious toad named Yara who lived near the ",
                                        " a curious ", NULL};
    command_result result = run_list(list, "--stop ill --max-tokens 20 --json");
    mgl_json json = command_json(&result, "megalith.run/1");
    for (int i = 0; i < 4; i++) {
        const cJSON *output = output_at(&json, i);
        ck_assert_str_eq(text_of(output, "stop"), texts[i] ? "stop" : "length");
        if (texts[i])
            ck_assert_str_eq(text_of(output, "text"), texts[i]);
        else
            ck_assert_int_eq(tokens_of(output), 20);
    }
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(json_of_a_batch)
{
    command_result result = run_list(three, "--json");
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "outputs")), 3);
    ck_assert_str_eq(text_of(output_at(&json, 0), "stop"), "eos");
    ck_assert_str_eq(text_of(output_at(&json, 2), "stop"), "length");
    ck_assert_int_eq(tokens_of(output_at(&json, 2)), 4);
    ck_assert_int_eq((int)json_number(&json, "launches"), 1);
    ck_assert_int_eq((int)json_number(&json, "capacity"), 8 + 128); /* the longest of them */
    ck_assert_double_gt(json_number(&json, "timing.tokens_per_s"), 0);
    check_same(json.root, output_at(&json, 0));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The JSON of a reply has the same form as without a batch. */
START_TEST(json_of_one_reply_has_outputs)
{
    command_result result = run_alone("--prompt Once --max-tokens 5");
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "outputs")), 1);
    check_same(json.root, output_at(&json, 0));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(texts_under_their_headers)
{
    command_result result = run_list("[\"Once\", {\"ids\": [909, 452, 449], \"max_tokens\": 2}]",
                                     "--max-tokens 3 --quiet");
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.err, "");
    ck_assert_str_eq(result.out, "==> prompt 0: length, 3 tokens <==\n there was a\n\n"
                                 "==> prompt 1: length, 2 tokens <==\n was a\n");
    command_clear(&result);
}
END_TEST

START_TEST(a_list_of_one_has_its_header)
{
    command_result result = run_list("[\"Once\"]", "--max-tokens 3");
    ck_assert_str_eq(result.out, "==> prompt 0: length, 3 tokens <==\n there was a\n");
    command_clear(&result);
}
END_TEST

/* Flags are the defaults of a prompt's options. */
START_TEST(flags_are_the_defaults)
{
    command_result result =
        run_list("[{\"text\": \"Once\"}, {\"text\": \"Once\", \"max_tokens\": 9},"
                 " {\"text\": \"Once\", \"ignore_eos\": false}, {\"text\": \"Once\", "
                 "\"temperature\": 0}]",
                 "--max-tokens 100 --ignore-eos --temperature 1.2 --seed 3 --json");
    command_result alone =
        run_alone("--prompt Once --max-tokens 100 --ignore-eos --temperature 1.2 --seed 3");
    mgl_json json = command_json(&result, "megalith.run/1");
    mgl_json single = command_json(&alone, "megalith.run/1");
    check_same(output_at(&json, 0), single.root);
    ck_assert_int_eq(tokens_of(output_at(&json, 1)), 9);
    ck_assert_str_eq(text_of(output_at(&json, 2), "stop"), "eos");
    ck_assert_str_ne(text_of(output_at(&json, 3), "text"), text_of(output_at(&json, 0), "text"));
    mgl_json_clear(&single);
    mgl_json_clear(&json);
    command_clear(&alone);
    command_clear(&result);
}
END_TEST

/* A seed alone turns on sampling, like the flag. */
START_TEST(a_seed_samples)
{
    command_result result = run_list("[{\"text\": \"Once\", \"seed\": 8}]", "--json");
    command_result alone = run_alone("--prompt Once --seed 8");
    mgl_json json = command_json(&result, "megalith.run/1");
    mgl_json single = command_json(&alone, "megalith.run/1");
    check_same(output_at(&json, 0), single.root);
    mgl_json_clear(&single);
    mgl_json_clear(&json);
    command_clear(&alone);
    command_clear(&result);
}
END_TEST

/* ---- random seeds ---------------------------------------------------------------------------- */

static const char unseeded[] =
    "[{\"text\": \"Once\", \"temperature\": 1.2}, {\"text\": \"Once\", \"top_k\": 9},"
    " \"Once\", {\"text\": \"Once\", \"temperature\": 1, \"seed\": 4}]";

START_TEST(each_prompt_draws_its_own)
{
    command_result result = run_list(unseeded, "--max-tokens 20 --json");
    mgl_json json = command_json(&result, "megalith.run/1");
    const cJSON *first = mgl_json_member(output_at(&json, 0), "seed");
    const cJSON *second = mgl_json_member(output_at(&json, 1), "seed");
    ck_assert(cJSON_IsNumber(first));
    ck_assert(cJSON_IsNumber(second));
    ck_assert_double_ne(first->valuedouble, second->valuedouble);
    ck_assert(cJSON_IsNull(mgl_json_member(output_at(&json, 2), "seed")));
    ck_assert_int_eq(mgl_json_member(output_at(&json, 3), "seed")->valueint, 4);
    char flags[200];
    snprintf(flags, sizeof flags, "--prompt Once --temperature 1.2 --max-tokens 20 --seed %.0f",
             first->valuedouble);
    command_result alone = run_alone(flags);
    mgl_json single = command_json(&alone, "megalith.run/1");
    check_same(output_at(&json, 0), single.root);
    mgl_json_clear(&single);
    mgl_json_clear(&json);
    command_clear(&alone);
    command_clear(&result);
}
END_TEST

/* The header prints a seed that was drawn, and no other. */
START_TEST(headers_tell_the_seeds)
{
    unsigned long long seeds[2];
    char text[64];
    command_result result = run_list(unseeded, "--max-tokens 2");
    ck_assert_msg(result.code == 0, "%s", result.err);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "==> prompt %d: length, 2 tokens, seed ", i);
        const char *at = strstr(result.out, text);
        ck_assert_ptr_nonnull(at);
        ck_assert_int_eq(sscanf(at + strlen(text), "%llu <==", &seeds[i]), 1);
    }
    ck_assert_ptr_nonnull(strstr(result.out, "==> prompt 2: length, 2 tokens <=="));
    ck_assert_ptr_nonnull(strstr(result.out, "==> prompt 3: length, 2 tokens <=="));
    ck_assert_ptr_nonnull(strstr(result.err, "megalith run: 4 replies, 8 tokens, "));
    command_clear(&result);
}
END_TEST

/* The seed of the flag applies to every prompt. */
START_TEST(a_seed_of_the_flags_is_everybodys)
{
    command_result result =
        run_list("[{\"text\": \"Once\", \"temperature\": 1.2}, \"Once\"]", "--seed 6 --json");
    mgl_json json = command_json(&result, "megalith.run/1");
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(mgl_json_member(output_at(&json, i), "seed")->valueint, 6);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The cache ends the replies, each where it is full. A prompt that fills the cache is an error. */
START_TEST(the_capacity_ends_them)
{
    static const int tokens[] = {7, 5, 0};
    command_result result = run_list("[{\"ids\": [909]}, {\"ids\": [909, 452, 449]},"
                                     " {\"ids\": [1, 2, 3, 4, 5, 6, 7, 8]}]",
                                     "--capacity 8 --json");
    ck_assert_int_eq(result.code, 2);
    mgl_json json = command_json(&result, "megalith.run/1");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(tokens_of(output_at(&json, i)), tokens[i]);
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(text_of(output_at(&json, i), "stop"), "length");
    const char *error = text_of(output_at(&json, 2), "error");
    ck_assert_msg(strstr(error, "[2].ids: has 8 tokens, and the KV cache has 8 positions"), "%s",
                  error);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(sixteen_are_one_launch)
{
    char list[400];
    make_list(list, 16);
    command_result result = run_list(list, "--max-tokens 5 --json");
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq((int)json_number(&json, "launches"), 1);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "outputs")), 16);
    for (int i = 1; i < 16; i++)
        check_same(output_at(&json, i), output_at(&json, 0));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Forty prompts as ids, with their own seeds and lengths. */
static const char *forty(void)
{
    static char list[4000];
    size_t n = 0;
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(list + n, sizeof list - n,
                              "%s{\"ids\": [%d, %d], \"max_tokens\": %d, \"seed\": %d}",
                              i ? ", " : "[", 909 - 3 * i, 11 * i, 1 + i * 7 % 12, i);
    snprintf(list + n, sizeof list - n, "]");
    return list;
}

/* Each of forty replies equals a single run. A config, a schedule or a compiled file determines the
 * number per launch. */
static void check_forty(const command_result *batch)
{
    ck_assert_msg(batch->code == 0, "%s", batch->err);
    mgl_json json = command_json(batch, "megalith.run/1");
    ck_assert_int_eq((int)json_number(&json, "launches"), 1);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "outputs")), 40);
    for (int i = 3; i < 40; i += 9) {
        char flags[100];
        snprintf(flags, sizeof flags, "--prompt-ids %d,%d --max-tokens %d --seed %d", 909 - 3 * i,
                 11 * i, 1 + i * 7 % 12, i);
        command_result alone = run_alone(flags);
        mgl_json single = command_json(&alone, "megalith.run/1");
        check_same(output_at(&json, i), single.root);
        mgl_json_clear(&single);
        command_clear(&alone);
    }
    mgl_json_clear(&json);
}

static const char *many_config(void)
{
    return scratch_file("second.json", "{\"schema\": \"megalith.config/1\", \"second_rows\": 48}");
}

START_TEST(forty_by_a_config)
{
    char flags[300];
    snprintf(flags, sizeof flags, "--config %s --json", many_config());
    command_result batch = run_list(forty(), flags);
    check_forty(&batch);
    command_clear(&batch);
}
END_TEST

START_TEST(forty_by_a_schedule)
{
    char flags[300], path[200];
    snprintf(path, sizeof path, "%s/forty.mls", scratch_folder());
    ck_assert_int_eq(command_code("lower %s --target cpu:2 --capacity 64 --sequences 40 --config "
                                  "%s -o %s",
                                  model_path("tales-5m"), many_config(), path),
                     0);
    snprintf(flags, sizeof flags, "--schedule %s --json", path);
    command_result batch = run_list(forty(), flags);
    check_forty(&batch);
    command_clear(&batch);
}
END_TEST

START_TEST(forty_by_a_compiled_file)
{
    char path[200];
    snprintf(path, sizeof path, "%s/forty.mega", scratch_folder());
    ck_assert_int_eq(command_code("compile %s --target cpu:2 --capacity 64 --sequences 40 "
                                  "--config %s -o %s --quiet",
                                  model_path("tales-5m"), many_config(), path),
                     0);
    command_result batch = command_runf("run %s --device cpu --prompts %s --json", path,
                                        scratch_file("prompts.json", forty()));
    check_forty(&batch);
    command_clear(&batch);
}
END_TEST

/* ---- rejected lists -------------------------------------------------------------------------- */

static const refusal refusals[] = {
    {"[]", "holds 0 prompts"},
    {"", "holds 0 prompts"},
    {" \n\n", "holds 0 prompts"},
    {"3", "is not a list of prompts"},
    {"Once upon a time\n", "not valid JSON"},
    {"{\"text\": \"a\"", "not valid JSON"},
    {"[\"a\", \"b\"", "not valid JSON"},
    {"[\n\"a\",\n\"b\"\n", "not valid JSON"},
    {"[\"a\",]", "not valid JSON"},
    {"[\"a\"] []", "not valid JSON"},
    {"[\"a\", 3]", "[1]: must be a string or an object"},
    {"[\"a\", null]", "[1]: must be a string or an object"},
    {"[[\"a\"]]", "[0]: must be a string or an object"},
    {"[{}]", "[0]: one of \"text\", \"ids\" and \"messages\" is needed"},
    {"[{\"text\": \"a\", \"ids\": [1]}]", "[0]: only one of \"text\", \"ids\" and"},
    {"[{\"text\": \"a\", \"top-k\": 1}]", "[0]: unknown key \"top-k\"; a prompt has text, ids or "},
    {"[{\"prompt\": \"a\"}]", "[0]: unknown key \"prompt\""},
    {"[{\"text\": \"a\", \"capacity\": 9}]", "unknown key \"capacity\""},
    {"[{\"text\": \"a\", \"text\": \"b\"}]", "is given twice"},
    {"[{\"text\": 1}]", "[0].text: must be a string"},
    {"[{\"text\": null}]", "[0].text: must be a string"},
    {"[{\"ids\": \"1,2\"}]", "[0].ids: must be an array"},
    {"[{\"ids\": [1, -1]}]", "[0].ids[1]: must be between 0 and"},
    {"[{\"ids\": [1.5]}]", "[0].ids[0]: must be a whole number"},
    {"[{\"ids\": []}]", "contains no tokens; give at least one"},
    {"[\"a\", {\"ids\": [913]}]", "[1].ids: token 0 is 913"},
    {"[{\"text\": \"a\", \"max_tokens\": 0}]", "[0].max_tokens: must be between 1 and"},
    {"[{\"text\": \"a\", \"max_tokens\": \"9\"}]", "[0].max_tokens: must be a whole number"},
    {"[{\"text\": \"a\", \"temperature\": -0.5}]", "[0].temperature: must be between 0 and 1000"},
    {"[{\"text\": \"a\", \"temperature\": true}]", "[0].temperature: must be a number"},
    {"[{\"text\": \"a\", \"top_k\": -1}]", "[0].top_k: must be between 0 and"},
    {"[{\"text\": \"a\", \"top_p\": 1.5}]", "[0].top_p: must be between 0 and 1"},
    {"[{\"text\": \"a\", \"seed\": -1}]", "[0].seed: must be between 0 and"},
    {"[{\"text\": \"a\", \"seed\": 9007199254740992}]", "[0].seed: must be between 0 and"},
    {"[{\"text\": \"a\", \"ignore_eos\": 1}]", "[0].ignore_eos: must be true or false"},
    {"[{\"text\": \"a\", \"stop\": 1}]", "[0].stop: must be a text or an array of texts"},
    {"[{\"text\": \"a\", \"stop\": [\"b\", \"\"]}]", "[0].stop: must be a text or an array"},
    {"[{\"text\": \"a\", \"stop\": \"b\\u0000c\"}]", "none empty or with a zero byte"},
};

START_TEST(rejects)
{
    command_result result = run_list(refusals[_i].list, "");
    ck_assert_msg(result.code == 2, "%s: exit %d", refusals[_i].list, result.code);
    ck_assert_msg(strstr(result.err, refusals[_i].message) != NULL, "%s: %s", refusals[_i].list,
                  result.err);
    ck_assert_ptr_nonnull(strstr(result.err, "prompts.json"));
    command_clear(&result);
}
END_TEST

START_TEST(rejects_what_only_json_has)
{
    command_result result =
        run_list("[\"Once\", {\"text\": \"a\", \"logprobs\": 3}]", "--max-tokens 2");
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "prompts.json: [1].logprobs: needs --json"));
    command_clear(&result);
}
END_TEST

START_TEST(rejects_a_sampler_beside_sample)
{
    command_result result = run_list("[\"a\", {\"text\": \"a\", \"top_p\": 0.5}]", "--sample");
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "[1].top_p: cannot be combined with --sample"));
    command_clear(&result);
}
END_TEST

START_TEST(rejects_a_prompt_beyond_the_capacity)
{
    command_result result = run_list("[\"Once\", {\"ids\": [1, 2, 3]}]", "--capacity 2");
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "[1].ids: too many tokens: 3; the KV cache has 2"));
    command_clear(&result);
}
END_TEST

START_TEST(rejects_a_list_that_is_not_there)
{
    command_result result =
        command_runf("run %s --device cpu --prompts /nowhere", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "/nowhere"));
    command_clear(&result);
}
END_TEST

/* ---- schedules and configs ------------------------------------------------------------------- */

/* The schedule of two sequences, on two queues. */
static const char *schedule_for_two(void)
{
    static char path[200];
    char line[4000];
    snprintf(path, sizeof path, "%s/two.mls", scratch_folder());
    snprintf(line, sizeof line,
             "%s/megalith lower %s --target cpu:2 --capacity 64 --sequences 2 -o %s",
             MGL_BINARY_DIR, model_path("tales-5m"), path);
    ck_assert_int_eq(system(line), 0);
    return path;
}

START_TEST(a_schedule_has_the_sequences_of_a_launch)
{
    char flags[300];
    snprintf(flags, sizeof flags, "--schedule %s --max-tokens 3", schedule_for_two());
    command_result two = run_list("[\"Once\", {\"ids\": [909, 452]}]", flags);
    command_result more = run_list("[\"Once\", \"Once\", \"Once\"]", flags);
    ck_assert_msg(two.code == 0, "%s", two.err);
    ck_assert_ptr_nonnull(strstr(two.out, "prompt 1: length, 3 tokens"));
    ck_assert_msg(more.code == 0, "%s", more.err);
    ck_assert_ptr_nonnull(strstr(more.out, "prompt 2: length, 3 tokens"));
    command_clear(&two);
    command_clear(&more);
}
END_TEST

/* Each sequence needs a row of an epoch, so three prompts take two launches. */
START_TEST(a_config_with_few_rows)
{
    char flags[300];
    snprintf(flags, sizeof flags, "--json --max-tokens 2 --config %s",
             scratch_file("rows.json", "{\"schema\": \"megalith.config/1\", \"rows\": 2}"));
    command_result result = run_list("[\"Once\", \"Once\", \"Once\"]", flags);
    mgl_json json = command_json(&result, "megalith.run/1");
    ck_assert_int_eq(result.code, 0);
    ck_assert_int_eq((int)json_number(&json, "launches"), 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* ---- without a tokenizer --------------------------------------------------------------------- */

/* A model without tokenizer.json, in the scratch folder. */
static const char *bare_model(void)
{
    static char path[200];
    char line[4000];
    snprintf(path, sizeof path, "%s/bare", scratch_folder());
    snprintf(line, sizeof line,
             "mkdir -p %s && ln -sf %s/*.json %s/*.safetensors %s && rm -f "
             "%s/tokenizer.json",
             path, model_path("llama3-rope"), model_path("llama3-rope"), path, path);
    ck_assert_int_eq(system(line), 0);
    return path;
}

START_TEST(one_token_is_no_tokens)
{
    command_result result =
        command_runf("run %s --device cpu --max-tokens 1 --prompts %s", bare_model(),
                     scratch_file("ids.json", "[{\"ids\": [909, 452]}]"));
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_msg(strstr(result.out, "prompt 0: length, 1 token <==\n"), "%s", result.out);
    command_clear(&result);
}
END_TEST

START_TEST(ids_in_and_ids_out)
{
    command_result result = command_runf(
        "run %s --device cpu --max-tokens 3 --prompts %s", bare_model(),
        scratch_file("ids.json", "[{\"ids\": [909, 452]}, {\"ids\": [909, 452, 449]}]"));
    int ids[6];
    ck_assert_msg(result.code == 0, "%s", result.err);
    int read = sscanf(result.out,
                      "==> prompt 0: length, 3 tokens <==\n%d %d %d\n\n"
                      "==> prompt 1: length, 3 tokens <==\n%d %d %d\n",
                      &ids[0], &ids[1], &ids[2], &ids[3], &ids[4], &ids[5]);
    ck_assert_int_eq(read, 6);
    command_clear(&result);
}
END_TEST

START_TEST(a_text_needs_a_tokenizer)
{
    command_result result =
        command_runf("run %s --device cpu --prompts %s", bare_model(),
                     scratch_file("texts.json", "[{\"ids\": [909]}, \"Once\"]"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "texts.json: [1]: "));
    ck_assert_ptr_nonnull(strstr(result.err, "tokenizer"));
    ck_assert_ptr_nonnull(strstr(result.out, "==> prompt 0: length"));
    command_clear(&result);
}
END_TEST

/* ---- interruptions --------------------------------------------------------------------------- */

static const char endless[] = "[\"Once\", \"There\"]";

/* Starts endless replies, and interrupts them. */
static command_result interrupt_after(useconds_t time, const char *flags)
{
    char line[3000];
    snprintf(line, sizeof line,
             "run %s --device cpu --prompts %s --ignore-eos --max-tokens 1000 %s",
             model_path("tales-5m"), scratch_file("endless.json", endless), flags);
    command running = command_start(line);
    command_await_handler(&running);
    usleep(time);
    ck_assert_int_eq(kill(running.pid, SIGINT), 0);
    return command_end(&running);
}

/* At any moment of the interrupt, one complete JSON object with the partial replies is printed, or
 * nothing. */
START_TEST(interrupted_with_json)
{
    command_result result = interrupt_after((useconds_t)_i * 40000, "--json");
    ck_assert_int_eq(result.code, 130);
    bool loading = strstr(result.out, "megalith.error/1") != NULL;
    mgl_json json = command_json(&result, loading ? "megalith.error/1" : "megalith.run/1");
    for (int i = 0; i < 2 && !loading; i++) {
        ck_assert_str_eq(text_of(output_at(&json, i), "stop"), "interrupted");
        ck_assert_int_lt(tokens_of(output_at(&json, i)), 1000);
    }
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(interrupted_with_headers)
{
    command_result result = interrupt_after((useconds_t)_i * 40000, "");
    ck_assert_int_eq(result.code, 130);
    if (result.out[0]) { /* otherwise it was loading */
        ck_assert_ptr_nonnull(strstr(result.out, "==> prompt 0: interrupted, "));
        ck_assert_ptr_nonnull(strstr(result.out, "==> prompt 1: interrupted, "));
    }
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli prompts");
    TCase *tests = tcase_create("prompts");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, each_is_as_alone, 0, 3);
    tcase_add_test(tests, stop_texts);
    tcase_add_test(tests, json_of_a_batch);
    tcase_add_test(tests, json_of_one_reply_has_outputs);
    tcase_add_test(tests, texts_under_their_headers);
    tcase_add_test(tests, a_list_of_one_has_its_header);
    tcase_add_test(tests, flags_are_the_defaults);
    tcase_add_test(tests, a_seed_samples);
    tcase_add_test(tests, each_prompt_draws_its_own);
    tcase_add_test(tests, headers_tell_the_seeds);
    tcase_add_test(tests, a_seed_of_the_flags_is_everybodys);
    tcase_add_test(tests, the_capacity_ends_them);
    tcase_add_test(tests, sixteen_are_one_launch);
    tcase_add_test(tests, forty_by_a_config);
    tcase_add_test(tests, forty_by_a_schedule);
    tcase_add_test(tests, forty_by_a_compiled_file);
    tcase_add_loop_test(tests, rejects, 0, (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(tests, rejects_a_sampler_beside_sample);
    tcase_add_test(tests, rejects_what_only_json_has);
    tcase_add_test(tests, rejects_a_prompt_beyond_the_capacity);
    tcase_add_test(tests, rejects_a_list_that_is_not_there);
    tcase_add_test(tests, a_schedule_has_the_sequences_of_a_launch);
    tcase_add_test(tests, a_config_with_few_rows);
    tcase_add_test(tests, one_token_is_no_tokens);
    tcase_add_test(tests, ids_in_and_ids_out);
    tcase_add_test(tests, a_text_needs_a_tokenizer);
    tcase_add_loop_test(tests, interrupted_with_json, 0, 4);
    tcase_add_loop_test(tests, interrupted_with_headers, 0, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
