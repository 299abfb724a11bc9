/*
 * Tests of tokenize, detokenize, eval and info on the provided checkpoints, against Hugging Face's
 * results.
 */
#include "command.h"
#include "tests/sanitized.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hugging Face's results for the tokenizer, as one array under `key`. */
static cJSON *gather(const mgl_json *golden, const char *key)
{
    cJSON *array = cJSON_CreateArray();
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(golden, "tokenizer"))
        cJSON_AddItemToArray(array, cJSON_Duplicate(mgl_json_member(item, key), true));
    return array;
}

static const char *const tokenizers[] = {"tales-5m", "tokenizers/smollm", "tokenizers/qwen",
                                         "tokenizers/metaspace"};

START_TEST(both_directions_of_the_goldens)
{
    mgl_json golden = model_json(tokenizers[_i], "golden.json");
    cJSON *texts = gather(&golden, "text"), *ids = gather(&golden, "ids");
    cJSON *decoded = gather(&golden, "decoded");
    ck_assert_int_gt(cJSON_GetArraySize(texts), 3);
    command_result result =
        command_runf("tokenize %s --texts %s --json", model_path(tokenizers[_i]),
                     scratch_json("texts.json", texts));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tokenize/1");
    ck_assert(cJSON_Compare(json_at(&json, "ids"), ids, true));
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("detokenize %s --ids-file %s --json", model_path(tokenizers[_i]),
                          scratch_json("ids.json", ids));
    ck_assert_msg(result.code == 0, "%s", result.err);
    json = command_json(&result, "megalith.detokenize/1");
    ck_assert(cJSON_Compare(json_at(&json, "text"), decoded, true));
    mgl_json_clear(&json);
    command_clear(&result);
    cJSON_Delete(texts);
    cJSON_Delete(ids);
    cJSON_Delete(decoded);
    mgl_json_clear(&golden);
}
END_TEST

START_TEST(plain_text_in_and_out)
{
    const char *model = model_path("tales-5m");
    command_result result = command_runf("tokenize %s --text 'Hello world'", model);
    ck_assert_str_eq(result.out, "909,39,524,78,258,276,325\n");
    command_clear(&result);
    char line[1200];
    snprintf(line, sizeof line, "tokenize %s", model);
    result = command_run(line, "Hello world");
    ck_assert_str_eq(result.out, "909,39,524,78,258,276,325\n");
    command_clear(&result);
    result = command_run(line, "");
    ck_assert_str_eq(result.out, "909\n");
    command_clear(&result);
    result = command_runf("detokenize %s --ids 909,39,524,78,258,276,325", model);
    ck_assert_str_eq(result.out, "Hello world\n");
    command_clear(&result);
    result = command_runf("detokenize %s --ids '' --json", model);
    mgl_json json = command_json(&result, "megalith.detokenize/1");
    ck_assert_str_eq(json_string(&json, "text"), "");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* Standard input, exit code, and the text or a part of the message. */
static const struct {
    const char *input;
    int code;
    const char *output;
} id_inputs[] = {
    {"909,39,524\n", 0, "Hell\n"},
    {"909 39 524", 0, "Hell\n"},
    {"[909, 39, 524]\r\n", 0, "Hell\n"},
    {"909,39\n\n909,524\n", 0, "H\nell\n"},
    {"[[909, 39], [524]]", 0, "H\nell\n"},
    {"[909,\n 39,\n 524]\n", 0, "Hell\n"},
    {"[909, 39]\n[524]\n", 0, "H\nell\n"},
    {"[]", 0, "\n"},
    {"", 1, "standard input contains no ids"},
    {" \n\n", 1, "contains no ids"},
    {"909,39\n909,x\n", 2, "standard input: line 2: not a list of whole numbers at 'x'"},
    {"[909, 39\n", 2, "standard input: line 1: "},
    {"[909, -1]", 2, "standard input: "},
    {"[909, \"a\"]", 2, "standard input: "},
    {"Hello", 2, "not a list of whole numbers at 'Hello'"},
    {"909\n913\n", 2, "913"},
};

START_TEST(ids_of_standard_input)
{
    char line[1200];
    snprintf(line, sizeof line, "detokenize %s", model_path("tales-5m"));
    command_result result = command_run(line, id_inputs[_i].input);
    ck_assert_msg(result.code == id_inputs[_i].code, "%s: exit %d: %s", id_inputs[_i].input,
                  result.code, result.err);
    if (result.code)
        ck_assert_msg(strstr(result.err, id_inputs[_i].output), "%s", result.err);
    else
        ck_assert_str_eq(result.out, id_inputs[_i].output);
    command_clear(&result);
}
END_TEST

/* detokenize reads the output of tokenize for several texts. */
START_TEST(detokenize_reads_tokenize)
{
    char line[1200];
    command_result ids = command_runf("tokenize %s --texts %s", model_path("tales-5m"),
                                      scratch_file("two.json", "[\"Hello\", \"Once\"]"));
    snprintf(line, sizeof line, "detokenize %s --json", model_path("tales-5m"));
    command_result texts = command_run(line, ids.out);
    ck_assert_msg(strstr(texts.out, "\"text\":[\"Hello\",\"Once\"]"), "%s%s", texts.out, texts.err);
    command_clear(&ids);
    command_clear(&texts);
    ck_assert_int_eq(command_code("detokenize %s --ids 1 --ids-file x", model_path("tales-5m")), 1);
}
END_TEST

START_TEST(special_tokens_can_be_kept)
{
    const char *model = model_path("tales-5m");
    command_result result = command_runf("detokenize %s --ids 909,39 --keep-special", model);
    ck_assert_str_eq(result.out, "<|begin_of_text|>H\n");
    command_clear(&result);
    result = command_runf("detokenize %s --ids-file %s --keep-special --json", model,
                          scratch_file("ids.json", "[[909, 39], [39]]"));
    ck_assert_msg(strstr(result.out, "[\"<|begin_of_text|>H\",\"H\"]") != NULL, "%s", result.out);
    command_clear(&result);
}
END_TEST

/* A file with one text gives the same as an array of one. */
START_TEST(a_plain_file_is_evaluated)
{
    const char *model = model_path("tales-5m");
    command_result list = command_runf("eval %s --device cpu --texts %s", model,
                                       scratch_file("one.json", "[\"Once there was\\n\"]"));
    command_result file = command_runf("eval %s --device cpu --file %s", model,
                                       scratch_file("one.txt", "Once there was\n"));
    ck_assert_msg(file.code == 0, "%s", file.err);
    ck_assert_str_eq(file.out, list.out);
    command_clear(&file);
    command_clear(&list);
    file = command_runf("eval %s --file %s", model, scratch_file("empty.txt", ""));
    ck_assert_int_eq(file.code, 2);
    ck_assert_msg(strstr(file.err, "is empty") != NULL, "%s", file.err);
    command_clear(&file);
    file = command_runf("eval %s --file a --texts b", model);
    ck_assert_int_eq(file.code, 1);
    command_clear(&file);
}
END_TEST

/* Bytes that are not UTF-8 on the command line come out as valid JSON. */
START_TEST(bytes_that_are_no_text)
{
    command_result result =
        command_runf("tokenize %s --text 'a\xff\xfe' --json", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 0);
    mgl_json json = command_json(&result, "megalith.tokenize/1");
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_run("info '/no\xffwhere\n\"' --json", NULL);
    ck_assert_int_eq(result.code, 2);
    json = command_json(&result, "megalith.error/1");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* ---- U+0000 ---------------------------------------------------------------------------------- */

static const char zero_text[] = "a\0Once\0";
enum { ZERO_TEXT = sizeof zero_text - 1 };

static const char *zero_file(void)
{
    const char *path = scratch_file("zero.txt", "");
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(zero_text, 1, ZERO_TEXT, file), ZERO_TEXT);
    fclose(file);
    return path;
}

/* The ids that `tokenize` gives for the text on standard input, which is not parsed as JSON. */
static cJSON *wanted_ids(void)
{
    char line[3000], path[300];
    snprintf(path, sizeof path, "%s/zero.ids", scratch_folder());
    snprintf(line, sizeof line, "%s/megalith tokenize %s --json <%s >%s", MGL_BINARY_DIR,
             model_path("tales-5m"), zero_file(), path);
    ck_assert_int_eq(system(line), 0);
    mgl_json json = {0};
    mgl_error err = {0};
    ck_assert_int_eq(mgl_json_read_file(path, 1 << 20, &json, &err), MGL_OK);
    cJSON *ids = cJSON_Duplicate(json_at(&json, "ids"), true);
    mgl_json_clear(&json);
    ck_assert_int_gt(cJSON_GetArraySize(ids), 4);
    return ids;
}

/* Every form of input: verb, flag, file. */
static const struct zero_way {
    const char *line, *json; /* NULL: the bytes themselves */
    const char *schema, *ids;
} zero_ways[] = {
    {"run %s --device cpu --max-tokens 1 --json --prompt-file %s", NULL, "megalith.run/1",
     "prompt_ids"},
    {"run %s --device cpu --max-tokens 1 --json --prompts %s", "[\"a\\u0000Once\\u0000\"]",
     "megalith.run/1", "prompt_ids"},
    {"run %s --device cpu --max-tokens 1 --json --prompts %s",
     "[{\"text\": \"a\\u0000Once\\u0000\"}]", "megalith.run/1", "prompt_ids"},
    {"tokenize %s --json --texts %s", "[\"a\\u0000Once\\u0000\"]", "megalith.tokenize/1", "ids"},
};

START_TEST(a_text_may_hold_zeros)
{
    const struct zero_way *way = &zero_ways[_i];
    cJSON *wanted = wanted_ids();
    const char *path = way->json ? scratch_file("zero.json", way->json) : zero_file();
    char line[3000];
    snprintf(line, sizeof line, way->line, model_path("tales-5m"), path);
    command_result result = command_run(line, NULL);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, way->schema);
    const cJSON *ids = json_at(&json, way->ids);
    if (cJSON_IsArray(ids->child)) /* of one text among several */
        ids = ids->child;
    ck_assert(cJSON_Compare(ids, wanted, true));
    mgl_json_clear(&json);
    command_clear(&result);
    cJSON_Delete(wanted);
}
END_TEST

/* The likelihood includes the tokens after the first U+0000. */
START_TEST(eval_reads_behind_a_zero)
{
    cJSON *wanted = wanted_ids();
    command_result result =
        command_runf("eval %s --device cpu --json --texts %s", model_path("tales-5m"),
                     scratch_file("zero.json", "[\"a\\u0000Once\\u0000\"]"));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.eval/1");
    ck_assert_int_eq((int)json_number(&json, "tokens"), cJSON_GetArraySize(wanted) - 1);
    mgl_json_clear(&json);
    command_clear(&result);
    cJSON_Delete(wanted);
}
END_TEST

typedef struct list_case {
    const char *verb, *flag, *content;
    int code;
    const char *message;
} list_case;

static const list_case lists[] = {
    {"tokenize", "--texts", "[\"a\", 1]", 2, "list.json: [1]: must be a string or an object"},
    {"tokenize", "--texts", "{}", 2, "list.json: line 1: one of \"text\" and \"ids\" is needed"},
    {"tokenize", "--texts", "\"a\"\n{\"ids\": [1]}", 2,
     "list.json: line 2: has ids; tokenize needs"},
    {"tokenize", "--texts", "[\"a\"", 2, "list.json"},
    {"tokenize", "--texts", "", 2, "list.json"},
    {"tokenize", "--texts", "[]", 0, ""},
    {"tokenize", "--texts", "[\"\\u00\"]", 2, "list.json"},
    {"tokenize", "--texts", "[\"\\ud800\"]", 2, "list.json"},
    {"detokenize", "--ids-file", "[1, -1]", 2, "list.json"},
    {"detokenize", "--ids-file", "[1, 2.5]", 2, "list.json"},
    {"detokenize", "--ids-file", "[[1], 2]", 2, "element 1 is not an array"},
    {"detokenize", "--ids-file", "\"1\"", 2, "not a JSON array of ids"},
    {"detokenize", "--ids-file", "[[], [39]]", 0, ""},
    {"eval", "--texts", "[]", 2, "list.json: there is nothing to score"},
    {"eval", "--texts", "[\"\"]", 2, "nothing to score"},
    {"eval", "--texts", "[1]", 2, "list.json: [0]: must be a string or an object"},
    {"eval", "--texts", "[{\"ids\": [1, 913]}]", 2, "list.json: text 0: token 1 is 913"},
};

START_TEST(reads_lists)
{
    const list_case *c = &lists[_i];
    command_result result = command_runf("%s %s %s %s", c->verb, model_path("tales-5m"), c->flag,
                                         scratch_file("list.json", c->content));
    ck_assert_msg(result.code == c->code, "%s %s: exit %d: %s", c->verb, c->content, result.code,
                  result.err);
    ck_assert_msg(strstr(result.err, c->message) != NULL, "%s %s: %s", c->verb, c->content,
                  result.err);
    command_clear(&result);
}
END_TEST

/* A list with one text of at least this number of tokens. */
static const char *long_list(size_t tokens)
{
    static char text[8000];
    ck_assert_uint_lt(tokens + 8, sizeof text);
    strcpy(text, "[\"");
    for (size_t i = 0; i < tokens / 2; i++)
        strcat(text, "x ");
    strcat(text, "\"]");
    return scratch_file("long.json", text);
}

/* A text with more tokens than positions is rejected, not cut. */
START_TEST(eval_rejects_too_long_a_text)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s", model_path("tales-5m"), long_list(1200));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "text 0"));
    ck_assert_ptr_nonnull(strstr(result.err, "1024"));
    ck_assert_ptr_nonnull(strstr(result.err, "eval --stride N"));
    command_clear(&result);
}
END_TEST

/* With a stride, it is read through a sliding window. */
START_TEST(eval_moves_a_window)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --json --capacity 64 --stride 32",
                     model_path("tales-5m"), long_list(200));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.eval/1");
    double tokens = json_number(&json, "tokens");
    ck_assert_double_ge(tokens, 199);
    ck_assert_double_eq(json_number(&json, "capacity"), 64);
    ck_assert_double_eq(json_number(&json, "stride"), 32);
    ck_assert_double_eq(json_number(&json, "windows"), 1 + ceil((tokens + 1 - 64) / 32));
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("eval %s --device cpu --texts %s --capacity 64 --stride 65",
                          model_path("tales-5m"), long_list(200));
    ck_assert_int_eq(result.code, 1);
    ck_assert_ptr_nonnull(strstr(result.err, "stride: 65 is more than the 64 positions"));
    command_clear(&result);
}
END_TEST

/* If all texts fit, each has one window, and the results equal those without a stride. */
START_TEST(eval_with_a_window_that_is_not_needed)
{
    static const char line[] = "eval %s --device cpu --texts %s --json %s";
    const char *list = scratch_file("two.json", "[\"Once there was\", \"a fox\"]");
    command_result plain = command_runf(line, model_path("qwen3"), list, "");
    command_result windows =
        command_runf(line, model_path("qwen3"), list, "--capacity 100 --stride 7");
    ck_assert_msg(plain.code == 0 && windows.code == 0, "%s%s", plain.err, windows.err);
    mgl_json a = command_json(&plain, "megalith.eval/1");
    mgl_json b = command_json(&windows, "megalith.eval/1");
    ck_assert_double_eq(json_number(&a, "nll"), json_number(&b, "nll"));
    ck_assert_double_eq(json_number(&a, "tokens"), json_number(&b, "tokens"));
    ck_assert_double_eq(json_number(&b, "windows"), 2);
    ck_assert(cJSON_IsNull(json_at(&a, "stride")));
    mgl_json_clear(&a);
    mgl_json_clear(&b);
    command_clear(&plain);
    command_clear(&windows);
}
END_TEST

static const char *const scored[] = {"tales-5m", "llama3-rope", "llama-linear-rope",
                                     "qwen2",    "qwen3",       "mistral"};

START_TEST(eval_as_hugging_face)
{
    mgl_json golden = model_json(scored[_i], "golden.json");
    command_result result = command_runf("eval %s --device cpu --texts %s/val_texts.json --json",
                                         model_path(scored[_i]), model_path(scored[_i]));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.eval/1");
    double nll = json_number(&golden, "fp32.perplexity.nll");
    ck_assert_double_eq(json_number(&json, "tokens"),
                        json_number(&golden, "fp32.perplexity.tokens"));
    ck_assert_double_eq(json_number(&json, "texts"), json_number(&golden, "fp32.perplexity.texts"));
    ck_assert_double_le(fabs(json_number(&json, "nll") - nll), 1e-5 * nll);
    double perplexity = exp(json_number(&json, "nll") / json_number(&json, "tokens"));
    ck_assert_double_le(fabs(json_number(&json, "perplexity") - perplexity), 1e-8 * perplexity);
    mgl_json_clear(&json);
    command_clear(&result);
    mgl_json_clear(&golden);
}
END_TEST

START_TEST(info_of_a_model)
{
    command_result result = command_runf("info %s --json", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 0);
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert_str_eq(json_string(&json, "architecture"), "LlamaForCausalLM");
    ck_assert(cJSON_IsTrue(json_at(&json, "supported")));
    ck_assert(cJSON_IsTrue(json_at(&json, "tied")));
    ck_assert_double_eq(json_number(&json, "parameters"), 4955648);
    ck_assert_double_eq(json_number(&json, "geometry.eps"), 1e-05);
    ck_assert_double_eq(json_number(&json, "geometry.kv_heads"), 2);
    ck_assert_double_eq(json_number(&json, "embedding_copies"), 2);
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_runf("info %s", model_path("tales-5m"));
    ck_assert_ptr_nonnull(strstr(result.out, "holds two copies of the table"));
    command_clear(&result);
}
END_TEST

/* The format of the matrices, their stored bytes, and the model's real number of parameters. */
START_TEST(info_of_a_quantized_model)
{
    command_result result = command_runf("info %s", model_path("quantized/q-tales-gptq-int4-g64"));
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, "parameters    4955648\n"));
    ck_assert_ptr_nonnull(strstr(result.out, "dtype         bf16\n"));
    ck_assert_ptr_nonnull(strstr(result.out, "bytes         2980864; stored: 3073024 in 1 file\n"));
    ck_assert_ptr_nonnull(strstr(result.out, "quantized     int4 group 64 f16: 42 matrices, "
                                             "2506752 bytes, 4.250 bits a weight\n"));
    ck_assert_ptr_nonnull(strstr(result.out, "activations   not quantized"));
    command_clear(&result);
    result = command_runf("info %s --json", model_path("quantized/q-tales-gptq-int4-g64"));
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert_double_eq(json_number(&json, "parameters"), 4955648);
    const cJSON *first = cJSON_GetArrayItem(json_at(&json, "quantized"), 0);
    ck_assert_str_eq(mgl_json_member(first, "format")->valuestring, "int4 group 64 f16");
    ck_assert_double_eq(mgl_json_member(first, "bytes")->valuedouble, 2506752);
    ck_assert_double_eq(mgl_json_member(first, "matrices")->valuedouble, 42);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* info prints the same bytes for a compiled model and for its folder, whatever zero points the
 * folder stores. */
START_TEST(info_of_a_compiled_quantized_model)
{
    static const char *const models[] = {"gptq-int4-g64", "awq-int4-g64", "ct-int8", "fp8-block"};
    char folder[64], line[400];
    snprintf(folder, sizeof folder, "quantized/q-tales-%s", models[_i]);
    snprintf(line, sizeof line, "compile %s --target cpu:1 -o %s/%s.mega", model_path(folder),
             scratch_folder(), models[_i]);
    ck_assert_int_eq(command_code("%s", line), 0);
    command_result result = command_runf("info %s --json", model_path(folder));
    command_result other = command_runf("info %s/%s.mega --json", scratch_folder(), models[_i]);
    mgl_json a = command_json(&result, "megalith.info/1");
    mgl_json b = command_json(&other, "megalith.info/1");
    ck_assert(cJSON_Compare(json_at(&a, "quantized"), json_at(&b, "quantized"), true));
    ck_assert_double_eq(json_number(&a, "bytes"), json_number(&b, "bytes"));
    mgl_json_clear(&a);
    mgl_json_clear(&b);
    command_clear(&result);
    command_clear(&other);
}
END_TEST

/* A declaration that is not supported: exit code 2, and the sentence. */
START_TEST(quantized_model_that_is_not_supported)
{
    char line[4096], folder[200];
    const char *model = model_path("quantized/q-tales-ct-int4-g64");
    snprintf(folder, sizeof folder, "%s/three-bits", scratch_folder());
    snprintf(line, sizeof line,
             "mkdir -p %s && ln -sf %s/*.safetensors %s/tokenizer.json %s && "
             "sed 's/num_bits\": 4/num_bits\": 3/' %s/config.json > %s/config.json",
             folder, model, model, folder, model, folder);
    ck_assert_int_eq(system(line), 0);
    command_result result =
        command_runf("eval %s --device cpu --file %s/config.json", folder, folder);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "weights of 3 bits"));
    command_clear(&result);
    result = command_runf("info %s", folder);
    ck_assert_ptr_nonnull(strstr(result.out, "weights of 3 bits"));
    ck_assert_ptr_null(strstr(result.out, "ignored")); /* no tensors are bound */
    command_clear(&result);
}
END_TEST

/* All reasons why a model is not supported; the exit code is 0. */
START_TEST(info_of_a_model_that_is_not_supported)
{
    char line[4096], folder[200];
    snprintf(folder, sizeof folder, "%s/unknown", scratch_folder());
    snprintf(line, sizeof line,
             "mkdir -p %s && ln -sf %s/*.safetensors %s && "
             "sed 's/Qwen2For/OtherFor/' %s/config.json > %s/config.json",
             folder, model_path("qwen2"), folder, model_path("qwen2"), folder);
    ck_assert_int_eq(system(line), 0);
    command_result result = command_runf("info %s --json", folder);
    ck_assert_int_eq(result.code, 0);
    mgl_json json = command_json(&result, "megalith.info/1");
    ck_assert(cJSON_IsFalse(json_at(&json, "supported")));
    ck_assert_int_ge(cJSON_GetArraySize(json_at(&json, "reasons")), 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli text");
    TCase *tests = tcase_create("text");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, both_directions_of_the_goldens, 0, 4);
    tcase_add_test(tests, plain_text_in_and_out);
    tcase_add_test(tests, bytes_that_are_no_text);
    tcase_add_loop_test(tests, ids_of_standard_input, 0, sizeof id_inputs / sizeof *id_inputs);
    tcase_add_test(tests, detokenize_reads_tokenize);
    tcase_add_test(tests, special_tokens_can_be_kept);
    tcase_add_test(tests, a_plain_file_is_evaluated);
    tcase_add_loop_test(tests, a_text_may_hold_zeros, 0,
                        (int)(sizeof zero_ways / sizeof *zero_ways));
    tcase_add_test(tests, eval_reads_behind_a_zero);
    tcase_add_loop_test(tests, reads_lists, 0, (int)(sizeof lists / sizeof *lists));
    tcase_add_test(tests, eval_rejects_too_long_a_text);
    tcase_add_test(tests, eval_moves_a_window);
    tcase_add_test(tests, eval_with_a_window_that_is_not_needed);
    tcase_add_loop_test(tests, eval_as_hugging_face, 0, BY_SANITIZER(6, 1));
    tcase_add_test(tests, info_of_a_model);
    tcase_add_test(tests, info_of_a_quantized_model);
    tcase_add_loop_test(tests, info_of_a_compiled_quantized_model, 0, 4);
    tcase_add_test(tests, quantized_model_that_is_not_supported);
    tcase_add_test(tests, info_of_a_model_that_is_not_supported);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
