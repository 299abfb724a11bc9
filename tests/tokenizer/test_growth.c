/* Tests of tokenizers that expand their input: exponential growth is rejected early, in little
 * memory; real tokenizers pass. */
#include "support.h"

#include "base/memory.h"
#include "importer/tokenizer/growth.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* `copies` components of a sequence. */
static mgl_text sequence(const char *kind, const char *list, const char *component, int copies)
{
    mgl_text out = {0};
    mgl_text_format(&out, "\"%s\": {\"type\": \"Sequence\", \"%s\": [", kind, list);
    for (int i = 0; i < copies; i++)
        mgl_text_format(&out, "%s%s", i ? ", " : "", component);
    mgl_text_put(&out, "]},");
    ck_assert(!out.failed);
    return out;
}

/* A Replace of `a` by `count` copies. */
static mgl_text replace_by(int count)
{
    mgl_text out = {0};
    mgl_text_put(&out, "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"");
    for (int i = 0; i < count; i++)
        mgl_text_put(&out, "a");
    mgl_text_put(&out, "\"}");
    return out;
}

static void assert_encode_refused(const char *parts, const char *text, const char *says)
{
    mgl_tokenizer *tokenizer = make_tokenizer(parts, "\"a\": 0, \"x\": 1, \"b\": 2", "", "");
    mgl_error err = {0};
    mgl_ids ids = {0};
    double start = seconds();
    mgl_status status = mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &ids, &err);
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, says), "%s", err.message);
    ck_assert_str_eq(err.where, "test.json");
    ck_assert_double_lt(seconds() - start, 20.0);
    mgl_tokenizer_close(tokenizer);
}

START_TEST(test_nested_replaces)
{
    mgl_text step = replace_by(1000);
    mgl_text parts = sequence("normalizer", "normalizers", step.bytes, 4);
    assert_encode_refused(parts.bytes, "aaaa", "the normalizer makes more than 32 times");
    mgl_text_clear(&parts);
    mgl_text_clear(&step);
}
END_TEST

/* The last step removes the output of the earlier steps. */
START_TEST(test_growth_that_is_undone)
{
    mgl_text step = replace_by(1000), parts = {0};
    mgl_text_format(&parts,
                    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [%s, %s, {\"type\": "
                    "\"Replace\", \"pattern\": {\"Regex\": \"a+\"}, \"content\": \"b\"}]},",
                    step.bytes, step.bytes);
    assert_encode_refused(parts.bytes, "a", "the normalizer makes more than 32 times");
    mgl_text_clear(&parts);
    mgl_text_clear(&step);
}
END_TEST

/* Each ByteLevel doubles the bytes. */
START_TEST(test_nested_byte_levels)
{
    mgl_text parts = sequence("normalizer", "normalizers", "{\"type\": \"ByteLevel\"}", 40);
    assert_encode_refused(parts.bytes, "\u00E4", "the normalizer makes more");
    mgl_text_clear(&parts);
    parts = sequence("pre_tokenizer", "pretokenizers",
                     "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": "
                     "true, \"use_regex\": false}",
                     40);
    assert_encode_refused(parts.bytes, "\u00E4", "the pre-tokenizer makes more");
    mgl_text_clear(&parts);
}
END_TEST

/* Each pair splits into characters and prepends one to each: twice as many pieces. */
START_TEST(test_splitters_that_double)
{
    mgl_text parts =
        sequence("pre_tokenizer", "pretokenizers",
                 "{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"always\"}"
                 ", {\"type\": \"Split\", \"pattern\": {\"Regex\": \".\"}, \"behavior\": "
                 "\"Isolated\", \"invert\": false}, {\"type\": \"Metaspace\", \"replacement\": "
                 "\"-\", \"prepend_scheme\": \"always\"}, {\"type\": \"Split\", \"pattern\": "
                 "{\"Regex\": \".\"}, \"behavior\": \"Isolated\", \"invert\": false}",
                 200);
    assert_encode_refused(parts.bytes, "x", "the pre-tokenizer makes more than 32 times");
    mgl_text_clear(&parts);
}
END_TEST

START_TEST(test_nested_decoders)
{
    mgl_text step = replace_by(1000);
    mgl_text parts = sequence("decoder", "decoders", step.bytes, 4);
    mgl_tokenizer *tokenizer = make_tokenizer(parts.bytes, "\"a\": 0", "", "");
    mgl_detokenizer *stream;
    mgl_error err = {0};
    char *text;
    const char *piece;
    double start = seconds();
    ck_assert_int_eq(mgl_tokenizer_decode(tokenizer, (int32_t[]){0}, 1, true, &text, NULL, &err),
                     MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "the decoder makes more than 32 times"), "%s", err.message);
    ck_assert_int_eq(mgl_detokenizer_open(tokenizer, true, &stream, &err), MGL_OK);
    ck_assert_int_eq(mgl_detokenizer_next(stream, 0, &piece, NULL, &err), MGL_BAD_INPUT);
    mgl_detokenizer_close(stream);
    ck_assert_double_lt(seconds() - start, 20.0);
    mgl_tokenizer_close(tokenizer);
    mgl_text_clear(&parts);
    mgl_text_clear(&step);
}
END_TEST

/* Contents of added tokens are normalized when the file is read. */
START_TEST(test_added_tokens)
{
    mgl_text step = replace_by(1000), json = {0};
    mgl_text_format(&json,
                    "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 1, \"content\": \"aa\", "
                    "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": "
                    "true, \"special\": false}], \"normalizer\": {\"type\": \"Sequence\", "
                    "\"normalizers\": [%s, %s, %s]}, \"model\": {\"type\": \"BPE\", \"vocab\": "
                    "{\"a\": 0}, \"merges\": []}}",
                    step.bytes, step.bytes, step.bytes);
    assert_refused(json.bytes, "the normalizer makes more than 32 times");
    mgl_text_clear(&json);
    mgl_text_clear(&step);
}
END_TEST

/* The largest expansion of a character by normal forms, followed by a Replace and GPT-2's alphabet,
 * on a text longer than the free allowance. */
START_TEST(test_the_worst_of_real_ones_passes)
{
    mgl_tokenizer *tokenizer = make_tokenizer(
        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, "
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}, "
        "{\"type\": \"ByteLevel\"}]},",
        "\"x\": 0", "", "");
    enum { COUNT = 30000 };
    char *text = mgl_alloc(3 * COUNT);
    mgl_ids ids = {0};
    mgl_error err = {0};
    for (int i = 0; i < COUNT; i++) /* 18 characters each, 33 bytes */
        memcpy(text + 3 * i, "\uFDFA", 3);
    mgl_status status = mgl_tokenizer_encode(tokenizer, text, 3 * COUNT, true, &ids, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    mgl_ids_clear(&ids);
    mgl_free(text);
    mgl_tokenizer_close(tokenizer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_nested_replaces,
                                  test_growth_that_is_undone,
                                  test_nested_byte_levels,
                                  test_splitters_that_double,
                                  test_nested_decoders,
                                  test_added_tokens,
                                  test_the_worst_of_real_ones_passes};
    return run_case("growth", tests, sizeof tests / sizeof *tests);
}
