/* Tests of the files beside tokenizer.json: rejected values, and tokens that are an error only in a
 * text. goldens/declared.json has the resulting ids and texts. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#define MODEL                                                                                      \
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 3}, \"merges\": []}}"

static void parse_file(const char *text, const char *name, mgl_json *out)
{
    mgl_error err = {0};
    if (text)
        ck_assert_int_eq(mgl_json_parse_values(text, strlen(text), strlen(text), name, out, &err),
                         MGL_OK);
}

/* A folder of these texts; NULL: no such file. */
typedef struct folder {
    const char *config, *special, *added, *model;
} folder;

static mgl_status make(const folder *from, mgl_tokenizer **out, mgl_error *err)
{
    mgl_tokenizer_files files = {0};
    parse_file(MODEL, "tokenizer.json", &files.tokenizer);
    parse_file(from->config, "tokenizer_config.json", &files.config);
    parse_file(from->special, "special_tokens_map.json", &files.special);
    parse_file(from->added, "added_tokens.json", &files.added);
    parse_file(from->model, "config.json", &files.model);
    mgl_status status = mgl_tokenizer_make(&files, out, err);
    mgl_tokenizer_files_clear(&files);
    return status;
}

static mgl_tokenizer *must_make(const folder *from)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_error err = {0};
    mgl_status status = make(from, &tokenizer, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return tokenizer;
}

static const struct {
    folder files;
    const char *where, *says;
} rejections[] = {
    {{.config = "{\"split_special_tokens\": true}"},
     "tokenizer_config.json",
     "split_special_tokens = true"},
    {{.special = "{\"split_special_tokens\": true}"},
     "special_tokens_map.json",
     "split_special_tokens = true"},
    {{.config = "{\"added_tokens_decoder\": []}"}, "tokenizer_config.json", "is not an object"},
    {{.config = "{\"added_tokens_decoder\": null}"}, "tokenizer_config.json", "is not an object"},
    {{.config = "{\"added_tokens_decoder\": {\"x\": {\"content\": \"d\"}}}"},
     "tokenizer_config.json",
     "the key \"x\" is not an id"},
    {{.config = "{\"added_tokens_decoder\": {\"9\": \"d\"}}"},
     "tokenizer_config.json",
     "a token of added_tokens_decoder must be a text"},
    {{.config = "{\"added_tokens_decoder\": {\"9\": {\"content\": \"d\", \"lstrip\": 1}}}"},
     "tokenizer_config.json",
     "must be true or false"},
    {{.config = "{\"bos_token\": 5}"}, "tokenizer_config.json", "bos_token must be a text"},
    {{.config = "{\"extra_special_tokens\": \"d\"}"},
     "tokenizer_config.json",
     "extra_special_tokens is neither a list"},
    {{.config = "{\"additional_special_tokens\": [5]}"},
     "tokenizer_config.json",
     "additional_special_tokens must be a text"},
    {{.special = "{\"eos_token\": [\"d\"]}"},
     "special_tokens_map.json",
     "eos_token must be a text"},
    {{.added = "{\"d\": \"9\"}"}, "added_tokens.json", "must be a whole number"},
    /* The vocabulary has no id 2. New tokens get the next id after the last, which conflicts with
     * 3. */
    {{.config = "{\"bos_token\": \"d\"}"}, "tokenizer.json", "\"d\" belongs to another token"},
};

START_TEST(test_rejections)
{
    for (size_t i = 0; i < sizeof rejections / sizeof *rejections; i++) {
        mgl_tokenizer *tokenizer = NULL;
        mgl_error err = {0};
        mgl_status status = make(&rejections[i].files, &tokenizer, &err);
        ck_assert_msg(status == MGL_BAD_INPUT, "rejection %zu: status %d", i, status);
        ck_assert_msg(strstr(err.message, rejections[i].says) != NULL, "%s", err.message);
        ck_assert_msg(!strncmp(err.where, rejections[i].where, strlen(rejections[i].where)),
                      "rejection %zu is in %s", i, err.where);
    }
}
END_TEST

/* Options with the value that changes nothing. */
START_TEST(test_options_that_are_off)
{
    mgl_tokenizer_close(must_make(&(folder){.config = "{\"split_special_tokens\": false}"}));
    mgl_tokenizer_close(must_make(&(folder){.config = "{\"split_special_tokens\": null}"}));
}
END_TEST

static void assert_outside(const folder *from, const char *text, bool outside)
{
    mgl_tokenizer *tokenizer = must_make(from);
    mgl_error err = {0};
    mgl_ids ids = {0};
    mgl_status status = mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &ids, &err);
    ck_assert_int_eq(status, outside ? MGL_BAD_INPUT : MGL_OK);
    if (outside)
        ck_assert_msg(strstr(err.message, "the token \"c\" is outside the vocabulary of the model: "
                                          "its id is 3; the model has the ids 0 to 2") != NULL,
                      "%s", err.message);
    mgl_ids_clear(&ids);
    mgl_tokenizer_close(tokenizer);
}

/* A token without a row in the model is an error only in a text that contains it. */
START_TEST(test_ids_outside_the_model)
{
    folder small = {.model = "{\"vocab_size\": 3}"}, large = {.model = "{\"vocab_size\": 4}"};
    folder wrapped = {.model = "{\"text_config\": {\"vocab_size\": 3}}"}, unknown = {.model = "{}"};
    assert_outside(&small, "ab", false);
    assert_outside(&small, "abc", true);
    assert_outside(&wrapped, "abc", true);
    assert_outside(&large, "abc", false);
    assert_outside(&unknown, "abc", false);
    assert_outside(&(folder){0}, "abc", false);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_rejections, test_options_that_are_off,
                                  test_ids_outside_the_model};
    return run_case("declared", tests, sizeof tests / sizeof *tests);
}
