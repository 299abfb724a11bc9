/* Decoders, whole and token by token: what is certain comes at once, what is not is kept back. */
#include "support.h"

#include <string.h>

#define IDS(...) (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / 4

#define LLAMA                                                                                      \
    "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "   \
    "{\"String\": \"\u2581\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": "     \
    "\"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]},"
#define BYTES                                                                                      \
    "\"<0xE4>\":0,\"<0xBD>\":1,\"<0xA0>\":2,\"\u2581a\":3,\"b\":4,\"\u2581\":5,\"<0xFF>\":6"

START_TEST(test_without_a_decoder)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"b\":1", "", "");
    assert_decodes(t, IDS(0, 1, 0), true, "a b a", "join");
    assert_decodes(t, NULL, 0, true, "", "nothing");
    mgl_tokenizer_close(t);
}
END_TEST

static void assert_decode_refused(const mgl_tokenizer *t, int32_t id, const char *says)
{
    mgl_detokenizer *stream;
    mgl_error err = {0};
    char *text;
    const char *piece;
    ck_assert_int_eq(mgl_tokenizer_decode(t, &id, 1, true, &text, NULL, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, says), "%s", err.message);
    ck_assert_int_eq(mgl_detokenizer_open(t, true, &stream, &err), MGL_OK);
    ck_assert_int_eq(mgl_detokenizer_next(stream, id, &piece, NULL, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, says), "%s", err.message);
    mgl_detokenizer_close(stream);
}

/* Ids between tokens are nothing, as in Hugging Face's tokenizers; those behind the last are wrong.
 */
START_TEST(test_ids_without_a_token)
{
    mgl_tokenizer *t = make_tokenizer(
        "\"added_tokens\": [{\"id\": 9, \"content\": \"x\", \"single_word\": false, "
        "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}],",
        "\"a\":0,\"b\":4,\"x\":9", "", "");
    assert_decodes(t, IDS(0, 3, 4), true, "a b", "an id without a token");
    ck_assert(mgl_tokenizer_knows(t, 0) && mgl_tokenizer_knows(t, 3) && mgl_tokenizer_knows(t, 9));
    ck_assert(!mgl_tokenizer_knows(t, 10) && !mgl_tokenizer_knows(t, -1));
    ck_assert(!mgl_tokenizer_knows(NULL, 0));
    assert_decode_refused(t, 10, "the token id 10 is outside the vocabulary, whose last is 9");
    assert_decode_refused(t, INT32_MAX, "outside the vocabulary");
    assert_decode_refused(t, -1, "the token id -1 is outside the vocabulary");
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_byte_fallback)
{
    mgl_tokenizer *t = make_tokenizer(LLAMA, BYTES, "", "");
    assert_decodes(t, IDS(3, 0, 1, 2, 4), true, "a\u4F60b", "whole");
    assert_decodes(t, IDS(3, 0, 1, 4), true, "a\uFFFD\uFFFDb", "cut");
    assert_decodes(t, IDS(0, 1, 2, 6), true, "\uFFFD\uFFFD\uFFFD\uFFFD", "spoiled by its end");
    assert_decodes(t, IDS(5, 3), true, " a", "one space is stripped, of the first token");
    mgl_tokenizer_close(t);
}
END_TEST

static void assert_piece(mgl_detokenizer *stream, int32_t id, const char *want)
{
    const char *text;
    size_t length;
    mgl_error err = {0};
    mgl_status status = id < 0 ? mgl_detokenizer_finish(stream, &text, &length, &err)
                               : mgl_detokenizer_next(stream, id, &text, &length, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    ck_assert_str_eq(text, want);
    ck_assert_uint_eq(length, strlen(want));
}

START_TEST(test_run_of_bytes_is_kept_back)
{
    mgl_tokenizer *t = make_tokenizer(LLAMA, BYTES, "", "");
    mgl_detokenizer *stream;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_detokenizer_open(t, true, &stream, &err), MGL_OK);
    assert_piece(stream, 3, "a");
    assert_piece(stream, 0, "");
    assert_piece(stream, 1, "");
    assert_piece(stream, 2, "");
    assert_piece(stream, 4, "\u4F60b");
    assert_piece(stream, 3, " a");
    assert_piece(stream, 0, "");
    assert_piece(stream, -1, "\uFFFD");
    mgl_detokenizer_close(stream);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_byte_level_stream)
{
    /* E4 BD A0 in GPT-2's alphabet: a character is handed on when its last byte is there. */
    mgl_tokenizer *t = make_tokenizer(
        "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": "
        "true, \"use_regex\": true},",
        "\"\u00E4\u00BD\":0,\"\u0142\":1,\"\u0120a\":2,\"\u4F60\":3", "", "");
    mgl_detokenizer *stream;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_detokenizer_open(t, true, &stream, &err), MGL_OK);
    assert_piece(stream, 2, " a");
    assert_piece(stream, 0, "");
    assert_piece(stream, 1, "\u4F60");
    assert_piece(stream, 0, "");
    assert_piece(stream, 2, "\uFFFD a");
    assert_piece(stream, 3, "\u4F60"); /* outside of the alphabet: as it stands */
    assert_piece(stream, 0, "");
    assert_piece(stream, -1, "\uFFFD");
    mgl_detokenizer_close(stream);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_metaspace)
{
    const char *vocab = "\"\u2581a\":0,\"b\":1,\"a\u2581\u2581b\":2";
    mgl_tokenizer *always = make_tokenizer(
        "\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"\u2581\"},", vocab, "", "");
    mgl_tokenizer *never = make_tokenizer("\"decoder\": {\"type\": \"Metaspace\", \"replacement\": "
                                          "\"\u2581\", \"prepend_scheme\": \"never\"},",
                                          vocab, "", "");
    assert_decodes(always, IDS(0, 0, 1), true, "a ab", "always");
    assert_decodes(always, IDS(2, 2), true, "aba  b", "all of the first token");
    assert_decodes(never, IDS(0, 0, 1), true, " a ab", "never");
    mgl_tokenizer_close(always);
    mgl_tokenizer_close(never);
}
END_TEST

START_TEST(test_replace_across_pieces)
{
    mgl_tokenizer *t = make_tokenizer(
        "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": "
        "\"Replace\", \"pattern\": {\"String\": \"aab\"}, \"content\": \"-\"}]},",
        "\"a\":0,\"b\":1,\"ab\":2", "", "");
    mgl_detokenizer *stream;
    mgl_error err = {0};
    assert_decodes(t, IDS(0, 0, 1, 0, 2, 0), true, "--a", "joined");
    ck_assert_int_eq(mgl_detokenizer_open(t, true, &stream, &err), MGL_OK);
    assert_piece(stream, 0, "");
    assert_piece(stream, 0, "");
    assert_piece(stream, 0, "a");
    assert_piece(stream, 1, "-");
    assert_piece(stream, 0, "");
    assert_piece(stream, -1, "a");
    mgl_detokenizer_close(stream);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_special_tokens)
{
    mgl_tokenizer *t = make_tokenizer(
        "\"added_tokens\": [{\"id\": 1, \"content\": \"<s>\", \"single_word\": false, \"lstrip\": "
        "false, \"rstrip\": false, \"normalized\": false, \"special\": true}, {\"id\": 2, "
        "\"content\": \"<t>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
        "\"normalized\": false, \"special\": false}], \"decoder\": {\"type\": \"Fuse\"},",
        "\"a\":0", "", "");
    assert_decodes(t, IDS(1, 0, 2), true, "a<t>", "skipped");
    assert_decodes(t, IDS(1, 0, 2), false, "<s>a<t>", "kept");
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_negative_id)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0", "", "");
    char *text = NULL;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_tokenizer_decode(t, IDS(-1), true, &text, NULL, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "-1"));
    mgl_tokenizer_close(t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_without_a_decoder,         test_ids_without_a_token, test_byte_fallback,
        test_run_of_bytes_is_kept_back, test_byte_level_stream,   test_metaspace,
        test_replace_across_pieces,     test_special_tokens,      test_negative_id,
    };
    return run_case("decode", tests, sizeof tests / sizeof *tests);
}
