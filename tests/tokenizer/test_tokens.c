/* Tests of single tokens: their bytes, and finding a token by its bytes. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mgl_error err;

/* Checks the token's bytes, and that `found` is the lowest id with these bytes. */
static void assert_token(const mgl_tokenizer *t, int32_t id, const char *bytes, size_t size,
                         int32_t found)
{
    char *text;
    size_t length;
    int32_t back;
    ck_assert_msg(!mgl_tokenizer_token(t, id, &text, &length, &err), "%s", err.message);
    ck_assert_msg(length == size && !memcmp(text, bytes, size), "%d is \"%s\"", (int)id, text);
    ck_assert_int_eq(text[length], 0);
    mgl_text_free(text);
    ck_assert_msg(!mgl_tokenizer_find(t, bytes, size, &back, &err), "%s", err.message);
    ck_assert_int_eq(back, found);
}

#define TOKEN(t, id, bytes) assert_token(t, id, bytes, sizeof bytes - 1, id)

START_TEST(of_a_byte_alphabet)
{
    mgl_tokenizer *t = make_tokenizer("\"decoder\": {\"type\": \"ByteLevel\"},",
                                      "\"a\":0,\"\u0120a\":1,\"\u00E4\u00BD\":2,\"\u0142\":3,"
                                      "\"\u0100\":4,\"\u20AC\":5,\"\u010A\":7",
                                      "", "");
    TOKEN(t, 0, "a");
    TOKEN(t, 1, " a");
    TOKEN(t, 2, "\xE4\xBD"); /* half a character */
    TOKEN(t, 3, "\xA0");
    TOKEN(t, 4, "\0");
    TOKEN(t, 5, "\u20AC"); /* no byte value: its own text */
    TOKEN(t, 7, "\n");
    assert_token(t, 6, "", 0, -1); /* an id without a token */
    mgl_tokenizer_close(t);
}
END_TEST

#define LLAMA                                                                                      \
    "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "   \
    "{\"String\": \"\u2581\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": "     \
    "\"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]},"

/* The blank that decoding removes at the start of a text belongs to the token. */
START_TEST(of_byte_fallback)
{
    mgl_tokenizer *t = make_tokenizer(
        LLAMA, "\"<0xE4>\":0,\"<0x61>\":1,\"\u2581a\":2,\"a\":3,\"\u2581\":4,\"\u2581\u2581\":5",
        "", "");
    TOKEN(t, 0, "\xE4");
    TOKEN(t, 1, "a");
    TOKEN(t, 2, " a");
    assert_token(t, 3, "a", 1, 1); /* two tokens with the same text: the lower id */
    TOKEN(t, 4, " ");
    TOKEN(t, 5, "  ");
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(of_metaspace)
{
    mgl_tokenizer *t = make_tokenizer("\"decoder\": {\"type\": \"Metaspace\", \"replacement\": "
                                      "\"\u2581\", \"prepend_scheme\": \"always\"},",
                                      "\"\u2581a\u2581\":0,\"b\":1,\"\u2581\":2", "", "");
    TOKEN(t, 0, " a ");
    TOKEN(t, 1, "b");
    TOKEN(t, 2, " ");
    mgl_tokenizer_close(t);
}
END_TEST

/* A decoder step before tokens are joined applies to each token. */
START_TEST(of_stages_of_a_token)
{
    mgl_tokenizer *t = make_tokenizer(
        "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Strip\", \"content\": "
        "\"_\", \"start\": 1, \"stop\": 2}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": "
        "\"[0-9]+\"}, \"content\": \"<n>\"}]},",
        "\"__a___\":0,\"_\":1,\"x12y3\":2", "", "");
    TOKEN(t, 0, "_a_");
    TOKEN(t, 1, "");
    TOKEN(t, 2, "x<n>y<n>");
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(without_a_decoder)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"b\":1", "", "");
    int32_t id;
    TOKEN(t, 0, "a");
    TOKEN(t, 1, "b");
    ck_assert_int_eq(mgl_tokenizer_find(t, "ab", 2, &id, &err), MGL_OK);
    ck_assert_int_eq(id, -1);
    ck_assert_int_eq(mgl_tokenizer_find(t, NULL, 0, &id, &err), MGL_OK);
    ck_assert_int_eq(id, -1);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(special_tokens_have_their_text)
{
    mgl_tokenizer *t = make_tokenizer(
        "\"decoder\": {\"type\": \"ByteLevel\"},"
        "\"added_tokens\": [{\"id\": 9, \"content\": \"<|end|>\", \"single_word\": false, "
        "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}],",
        "\"a\":0,\"<|end|>\":9", "", "");
    TOKEN(t, 9, "<|end|>");
    ck_assert_uint_eq(mgl_tokenizer_size(t), 10);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(ids_outside_are_rejected)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"b\":1", "", "");
    char *text = (char *)"";
    ck_assert_int_eq(mgl_tokenizer_token(t, 2, &text, NULL, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(text);
    ck_assert_str_eq(err.message, "the token id 2 is outside the vocabulary, whose last is 1");
    ck_assert_int_eq(mgl_tokenizer_token(t, -1, &text, NULL, &err), MGL_BAD_INPUT);
    ck_assert_uint_eq(mgl_tokenizer_size(t), 2);
    ck_assert_uint_eq(mgl_tokenizer_size(NULL), 0);
    mgl_tokenizer_close(t);
}
END_TEST

/* A step that expands a token too much is stopped, as in decoding. */
START_TEST(what_grows_is_rejected)
{
    static char decoder[120000] = "\"decoder\": {\"type\": \"Replace\", \"pattern\": {\"String\": "
                                  "\"a\"}, \"content\": \"";
    size_t at = strlen(decoder);
    memset(decoder + at, 'b', 100000);
    strcpy(decoder + at + 100000, "\"},");
    mgl_tokenizer *t = make_tokenizer(decoder, "\"a\":0", "", "");
    char *text;
    int32_t id;
    ck_assert_int_eq(mgl_tokenizer_token(t, 0, &text, NULL, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_tokenizer_find(t, "b", 1, &id, &err), MGL_BAD_INPUT);
    mgl_tokenizer_close(t);
}
END_TEST

/* ---- real tokenizers ------------------------------------------------------------------------- */

static const char *const real[] = {"tales-5m", "tokenizers/smollm", "tokenizers/qwen",
                                   "tokenizers/metaspace"};

/* The bytes of a text's tokens concatenate to the text. */
START_TEST(tokens_make_the_text)
{
    static const char said[] = " Once \u00E9t\u00E9 \U0001F98A, caf\u00E9\n\n  12345 <|x|>";
    const char *root = getenv("MGL_TEST_MODELS");
    char path[1024], made[256] = "";
    mgl_tokenizer *t;
    mgl_ids ids = {0};
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", root ? root : MGL_SOURCE_DIR "/tests/models", real[_i]);
    ck_assert_msg(!mgl_tokenizer_open(path, &t, &err), "%s", err.message);
    ck_assert_int_eq(mgl_tokenizer_encode(t, said, sizeof said - 1, false, &ids, &err), MGL_OK);
    for (size_t i = 0; i < ids.count; i++) {
        char *text;
        size_t length;
        ck_assert_int_eq(mgl_tokenizer_token(t, ids.ids[i], &text, &length, &err), MGL_OK);
        ck_assert_uint_lt(size + length, sizeof made);
        memcpy(made + size, text, length);
        size += length;
        mgl_text_free(text);
    }
    const char *from = made + (size > sizeof said - 1); /* a blank that Metaspace prepended */
    ck_assert_str_eq(from, said);
    mgl_ids_clear(&ids);
    mgl_tokenizer_close(t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        of_a_byte_alphabet,       of_byte_fallback,      of_metaspace,
        of_stages_of_a_token,     without_a_decoder,     special_tokens_have_their_text,
        ids_outside_are_rejected, what_grows_is_rejected};
    int failed = run_case("tokens", tests, sizeof tests / sizeof *tests);
    Suite *suite = suite_create("real tokenizers");
    TCase *each = tcase_create("each");
    tcase_add_loop_test(each, tokens_make_the_text, 0, (int)(sizeof real / sizeof *real));
    suite_add_tcase(suite, each);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed |= srunner_ntests_failed(runner) != 0;
    srunner_free(runner);
    return failed;
}
