/* Tests of failing allocations in opening, encoding and decoding: each gives MGL_NO_MEMORY without
 * a leak (checked by AddressSanitizer), and the tokenizer works afterwards. */
#include "support.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static const char json[] =
    "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 6, \"content\": \"<s>\", \"single_word\": "
    "true, \"lstrip\": false, \"rstrip\": true, \"normalized\": true, \"special\": true}],"
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
    "\"Prepend\", \"prepend\": \"a\"}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"x+\"}, "
    "\"content\": \"b\"}]}, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
    "[{\"type\": \"Metaspace\", \"replacement\": \"_\"}, {\"type\": \"ByteLevel\", "
    "\"add_prefix_space\": true, \"trim_offsets\": true}]}, \"post_processor\": {\"type\": "
    "\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\"}}, {\"Sequence\": "
    "{\"id\": \"A\"}}], \"special_tokens\": {\"<s>\": {\"ids\": [6]}}}, \"decoder\": {\"type\": "
    "\"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"ab\"}, "
    "\"content\": \"-\"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": "
    "\"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 1}]}, \"model\": {\"type\": \"BPE\", "
    "\"byte_fallback\": true, \"ignore_merges\": true, \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, "
    "\"_\": 3, \"\u0120\": 4, \"<0xE4>\": 5}, \"merges\": [\"a b\"]}}";

static mgl_status use(mgl_tokenizer *tokenizer, mgl_error *err)
{
    static const char text[] = "abab a\u0301 xx <s>  abababababababababababababababababababababab";
    mgl_ids ids = {0};
    char *back = NULL;
    mgl_status status = mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &ids, err);
    if (!status)
        status = mgl_tokenizer_decode(tokenizer, ids.ids, ids.count, false, &back, NULL, err);
    mgl_text_free(back);
    mgl_ids_clear(&ids);
    return status;
}

START_TEST(test_every_allocation_fails_once)
{
    mgl_status status = MGL_NO_MEMORY;
    uint64_t n = 1;
    for (; status; n++) {
        mgl_tokenizer *tokenizer = NULL;
        mgl_error err = {0};
        ck_assert_uint_lt(n, 5000);
        mgl_alloc_fail_at(n, false);
        status = mgl_tokenizer_parse(json, strlen(json), "test.json", &tokenizer, &err);
        bool opened = status == MGL_OK;
        if (opened)
            status = use(tokenizer, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(status == MGL_OK || status == MGL_NO_MEMORY, "allocation %d: status %d: %s",
                      (int)n, status, err.message);
        if (opened)
            ck_assert_int_eq(use(tokenizer, &err), MGL_OK);
        mgl_tokenizer_close(tokenizer);
    }
    ck_assert_uint_gt(n, 50);
}
END_TEST

static void parse_file(const char *text, const char *name, mgl_json *out)
{
    mgl_error err = {0};
    ck_assert_int_eq(mgl_json_parse_values(text, strlen(text), strlen(text), name, out, &err),
                     MGL_OK);
}

/* The same with files beside tokenizer.json. */
static void fail_every_allocation(const char *class)
{
    char config[400];
    mgl_tokenizer_files files = {0};
    mgl_status status = MGL_NO_MEMORY;
    snprintf(config, sizeof config,
             "{\"tokenizer_class\": \"%s\", \"bos_token\": \"<s>\", \"x_token\": \"<x>\", "
             "\"extra_special_tokens\": [\"<y>\", {\"content\": \"<z>\", \"lstrip\": true}]}",
             class);
    parse_file("{\"added_tokens\": [], \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, "
               "\"b\": 1, \"ab\": 2, \"<s>\": 3}, \"merges\": [\"a b\"]}}",
               "tokenizer.json", &files.tokenizer);
    parse_file(config, "tokenizer_config.json", &files.config);
    parse_file("{\"eos_token\": {\"content\": \"</s>\"}}", "special_tokens_map.json",
               &files.special);
    parse_file("{\"<x>\": 9, \"<w>\": 8}", "added_tokens.json", &files.added);
    parse_file("{\"model_type\": \"llama\"}", "config.json", &files.model);
    for (uint64_t n = 1; status; n++) {
        mgl_tokenizer *tokenizer = NULL;
        mgl_error err = {0};
        ck_assert_uint_lt(n, 5000);
        mgl_alloc_fail_at(n, false);
        status = mgl_tokenizer_make(&files, &tokenizer, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(status == MGL_OK || status == MGL_NO_MEMORY, "allocation %d: status %d: %s",
                      (int)n, status, err.message);
        mgl_tokenizer_close(tokenizer);
    }
    mgl_tokenizer_files_clear(&files);
}

START_TEST(test_every_allocation_of_other_files_fails_once)
{
    fail_every_allocation("PreTrainedTokenizerFast");
    fail_every_allocation("LlamaTokenizer");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_every_allocation_fails_once,
                                  test_every_allocation_of_other_files_fails_once};
    return run_case("memory", tests, sizeof tests / sizeof *tests);
}
