/* Tests of generation_config.json: end tokens from both files, sampling values and Hugging Face's
 * defaults, and keys that change sampling in other ways. */
#include "importer/generation.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 100 };

static mgl_json parse(const char *text)
{
    mgl_json json;
    mgl_error err = {0};
    mgl_status status = mgl_json_parse(text, strlen(text), 4096, "g.json", &json, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return json;
}

/* `text` NULL: no generation_config.json. */
static mgl_generation read_both(const char *text, const char *config_text)
{
    mgl_json config = parse(config_text), json = {0};
    mgl_generation generation;
    mgl_error err = {0};
    if (text)
        json = parse(text);
    mgl_status status = mgl_generation_read(text ? &json : NULL, &config, VOCAB, &generation, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_json_clear(&json);
    mgl_json_clear(&config);
    return generation;
}

static const struct {
    const char *generation, *config;
    size_t count;
    int32_t ids[3];
} end_tokens[] = {
    {NULL, "{}", 0, {0}},
    {NULL, "{\"eos_token_id\": 5}", 1, {5}},
    {NULL, "{\"eos_token_id\": [5, 4]}", 2, {4, 5}},
    {"{}", "{\"eos_token_id\": 5}", 1, {5}},
    {"{\"eos_token_id\": null}", "{\"eos_token_id\": 5}", 1, {5}},
    {"{\"eos_token_id\": 6}", "{\"eos_token_id\": 5}", 2, {5, 6}},
    {"{\"eos_token_id\": 6}", "{\"eos_token_id\": [6, 5]}", 2, {5, 6}},
    {"{\"eos_token_id\": [9, 7, 9, 8]}", "{}", 3, {7, 8, 9}},
    {"{\"eos_token_id\": []}", "{\"eos_token_id\": 5}", 1, {5}},
    {"{\"eos_token_id\": [99, 100, -1]}", "{}", 1, {99}},
    {"{\"eos_token_id\": 0}", "{}", 1, {0}},
};

START_TEST(test_end_tokens)
{
    mgl_generation g = read_both(end_tokens[_i].generation, end_tokens[_i].config);
    ck_assert_uint_eq(g.end_count, end_tokens[_i].count);
    for (size_t i = 0; i < g.end_count; i++)
        ck_assert_int_eq(g.end_tokens[i], end_tokens[_i].ids[i]);
    mgl_generation_clear(&g);
}
END_TEST

START_TEST(test_sources_of_end_tokens)
{
    mgl_generation g = read_both("{\"eos_token_id\": [7, 6]}", "{\"eos_token_id\": [6, 5]}");
    static const int sources[] = {MGL_END_OF_CONFIG, MGL_END_OF_GENERATION | MGL_END_OF_CONFIG,
                                  MGL_END_OF_GENERATION};
    ck_assert_uint_eq(g.end_count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(g.end_sources[i], sources[i]);
    mgl_generation_clear(&g);
}
END_TEST

/* Ids that the model does not have. */
START_TEST(test_ids_beyond_the_vocabulary)
{
    mgl_generation g = read_both("{\"eos_token_id\": [100, 7, -1]}", "{\"eos_token_id\": 100}");
    ck_assert_uint_eq(g.end_count, 1);
    ck_assert_uint_eq(g.beyond_count, 2);
    ck_assert(g.beyond_tokens[0] == -1 && g.beyond_tokens[1] == 100);
    ck_assert_int_eq(g.beyond_sources[0], MGL_END_OF_GENERATION);
    ck_assert_int_eq(g.beyond_sources[1], MGL_END_OF_GENERATION | MGL_END_OF_CONFIG);
    mgl_generation_clear(&g);
}
END_TEST

/* A top_p of 0 keeps the most likely token, but 0 means off in the kernel. The same for a value
 * below the smallest float. */
START_TEST(test_top_p_of_zero)
{
    static const char *const texts[] = {"{\"top_p\": 0}", "{\"top_p\": 0.0}", "{\"top_p\": 1e-60}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mgl_generation g = read_both(texts[i], "{}");
        ck_assert_float_gt(g.top_p, 0.0f);
        ck_assert_float_lt(g.top_p, 1e-30f);
        mgl_generation_clear(&g);
    }
    mgl_generation g = read_both("{\"top_p\": null, \"min_p\": 1}", "{}");
    ck_assert_float_eq(g.top_p, 1.0f);
    ck_assert_float_eq(g.min_p, 1.0f);
    mgl_generation_clear(&g);
}
END_TEST

START_TEST(test_sampling)
{
    mgl_generation g = read_both(NULL, "{}");
    ck_assert(!g.do_sample && g.temperature == 1 && g.top_k == 50 && g.top_p == 1 && g.min_p == 0);
    mgl_generation_clear(&g);
    g = read_both("{\"do_sample\": true, \"temperature\": 0.6, \"top_p\": 0.9, \"top_k\": 0, "
                  "\"min_p\": 0.05}",
                  "{}");
    ck_assert(g.do_sample && g.temperature == 0.6f && g.top_k == 0 && g.top_p == 0.9f);
    ck_assert_float_eq(g.min_p, 0.05f);
    ck_assert_float_eq(g.repeat, 1.0f);
    ck_assert_ptr_null(g.unsupported);
    mgl_generation_clear(&g);
    g = read_both("{\"temperature\": null, \"top_k\": null, \"do_sample\": null}", "{}");
    ck_assert(!g.do_sample && g.temperature == 1 && g.top_k == 50);
    mgl_generation_clear(&g);
}
END_TEST

START_TEST(test_foreign_keys)
{
    mgl_generation g = read_both("{\"num_beams\": 4, \"min_p\": 0.1}", "{}");
    ck_assert_str_eq(g.unsupported, "num_beams is 4");
    mgl_generation_clear(&g);
    g = read_both("{\"repetition_penalty\": 1.0, \"num_beams\": 1, \"min_p\": null,"
                  " \"suppress_tokens\": [], \"no_repeat_ngram_size\": 0, \"max_length\": 4096}",
                  "{}");
    ck_assert_ptr_null(g.unsupported);
    mgl_generation_clear(&g);
}
END_TEST

START_TEST(test_repetition_penalty)
{
    mgl_generation g = read_both("{\"repetition_penalty\": 1.05}", "{}");
    ck_assert_float_eq(g.repeat, 1.05f);
    ck_assert_ptr_null(g.unsupported);
    mgl_generation_clear(&g);
}
END_TEST

/* The text after the key is in the message. */
static const struct {
    const char *text, *where, *message;
} invalid[] = {
    {"{\"top_k\": -1}", "top_k", "-1"},
    {"{\"top_k\": 2.5}", "top_k", "whole"},
    {"{\"top_k\": \"50\"}", "top_k", "number"},
    {"{\"top_p\": 1.5}", "g.json", "top_p is 1.5"},
    {"{\"top_p\": -0.5}", "g.json", "top_p is -0.5"},
    {"{\"min_p\": 2}", "g.json", "min_p is 2"},
    {"{\"temperature\": -1}", "g.json", "temperature is -1"},
    {"{\"temperature\": true}", "temperature", "number"},
    {"{\"do_sample\": 1}", "do_sample", "true or false"},
    {"{\"repetition_penalty\": 0}", "g.json", "repetition_penalty is 0"},
    {"{\"repetition_penalty\": -1.1}", "g.json", "repetition_penalty is -1.1"},
    {"{\"repetition_penalty\": 1e9}", "g.json", "repetition_penalty is 1e+09"},
};

/* Bad values do not reject the file: a greedy reply does not read them. */
START_TEST(test_invalid_values)
{
    mgl_generation g = read_both(invalid[_i].text, "{\"eos_token_id\": 5}");
    ck_assert_ptr_nonnull(g.invalid);
    ck_assert_int_eq(g.invalid->code, MGL_BAD_INPUT);
    ck_assert_msg(strstr(g.invalid->where, invalid[_i].where), "%s", g.invalid->where);
    ck_assert_msg(strstr(g.invalid->message, invalid[_i].message), "%s", g.invalid->message);
    ck_assert(g.temperature == 1 && g.top_k == 50 && g.top_p == 1 && g.min_p == 0 && g.repeat == 1);
    ck_assert_uint_eq(g.end_count, 1);
    mgl_generation_clear(&g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("generation");
    TCase *cases = tcase_create("generation");
    tcase_add_loop_test(cases, test_end_tokens, 0, sizeof end_tokens / sizeof *end_tokens);
    tcase_add_test(cases, test_sources_of_end_tokens);
    tcase_add_test(cases, test_ids_beyond_the_vocabulary);
    tcase_add_test(cases, test_top_p_of_zero);
    tcase_add_test(cases, test_sampling);
    tcase_add_test(cases, test_foreign_keys);
    tcase_add_test(cases, test_repetition_penalty);
    tcase_add_loop_test(cases, test_invalid_values, 0, sizeof invalid / sizeof *invalid);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
