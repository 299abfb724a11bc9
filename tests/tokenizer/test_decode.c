/* Tests of decoders, whole and token by token: final text is returned at once, uncertain text is
 * held back. */
#include "support.h"

#include "base/utf8.h"

#include <stdio.h>
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

/* Ids without a token have no text, as in Hugging Face's tokenizers. Ids after the last token are
 * an error. */
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
    /* E4 BD A0 in GPT-2's alphabet: a character is returned with its last byte. */
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
    assert_piece(stream, 3, "\u4F60"); /* outside the alphabet: unchanged */
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

/* ---- after a prompt -------------------------------------------------------------------------- */

/* The text of a reply after a prompt, token by token. Release with mgl_text_clear. */
static mgl_text decode_reply(const mgl_tokenizer *t, const int32_t *prompt, size_t prompt_count,
                             const int32_t *reply, size_t count)
{
    mgl_detokenizer *stream;
    mgl_error err = {0};
    mgl_text out = {0};
    const char *piece;
    size_t length;
    ck_assert_int_eq(mgl_detokenizer_open(t, true, &stream, &err), MGL_OK);
    ck_assert_msg(!mgl_detokenizer_prime(stream, prompt, prompt_count, &err), "%s", err.message);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(mgl_detokenizer_next(stream, reply[i], &piece, &length, &err), MGL_OK);
        ck_assert_uint_eq(mgl_utf8_valid(piece, length), length);
        mgl_text_append(&out, piece, length);
    }
    ck_assert_int_eq(mgl_detokenizer_finish(stream, &piece, &length, &err), MGL_OK);
    mgl_text_append(&out, piece, length);
    mgl_detokenizer_close(stream);
    ck_assert(!out.failed);
    return out;
}

static void assert_reply(const mgl_tokenizer *t, const int32_t *prompt, size_t prompt_count,
                         const int32_t *reply, size_t count, const char *want)
{
    mgl_text text = decode_reply(t, prompt, prompt_count, reply, count);
    ck_assert_str_eq(text.bytes, want);
    mgl_text_clear(&text);
}

#define SPECIAL(id, content)                                                                       \
    "{\"id\": " #id ", \"content\": \"" content "\", \"single_word\": false, \"lstrip\": false, "  \
    "\"rstrip\": false, \"normalized\": false, \"special\": true}"

START_TEST(test_reply_behind_a_prompt)
{
    mgl_tokenizer *t = make_tokenizer("\"added_tokens\": [" SPECIAL(8, "</s>") "]," LLAMA,
                                      BYTES ",\"<0x0A>\":7", "", "");
    assert_reply(t, IDS(3), IDS(3, 4), " ab");     /* the space between two words */
    assert_reply(t, NULL, 0, IDS(3, 4), "ab");     /* an empty prompt changes nothing */
    assert_reply(t, IDS(8), IDS(3, 4), "ab");      /* nor does a prompt of special tokens */
    assert_reply(t, IDS(5), IDS(3, 8, 4), " ab");  /* the prompt is the space that is dropped */
    assert_reply(t, IDS(3, 0, 1), IDS(2, 4), "b"); /* the character is part of neither */
    assert_reply(t, IDS(3, 0, 1), IDS(4), "b");    /* nor is an incomplete character */
    assert_reply(t, IDS(3, 0), IDS(1, 2, 0, 1, 2), "\u4F60");
    assert_reply(t, IDS(3, 7), IDS(7, 4), "\nb");      /* a run of bytes that continues */
    assert_reply(t, IDS(3, 7, 0), IDS(1, 2, 7), "\n"); /* with a character in its middle */
    assert_reply(t, IDS(3, 7), IDS(6, 4),
                 "\uFFFD"
                 "b");
    assert_reply(t, IDS(3, 99), IDS(3), " a"); /* ids that the tokenizer does not know */
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_byte_level_behind_a_prompt)
{
    mgl_tokenizer *t = make_tokenizer(
        "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": "
        "true, \"use_regex\": true},",
        "\"\u00E4\u00BD\":0,\"\u0142\":1,\"\u0120a\":2,\"\u4F60\":3", "", "");
    assert_reply(t, IDS(2), IDS(2), " a");
    assert_reply(t, IDS(2, 0), IDS(1, 2), " a");
    assert_reply(t, IDS(2, 0), IDS(2), " a");
    assert_reply(t, IDS(0, 1), IDS(0, 1), "\u4F60");
    assert_reply(t, IDS(0), IDS(0, 1), "\u4F60");
    assert_reply(t, IDS(3), IDS(3), "\u4F60");
    assert_reply(t, IDS(0), NULL, 0, "");
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_prompt_comes_first)
{
    mgl_tokenizer *t = make_tokenizer(LLAMA, BYTES, "", "");
    mgl_detokenizer *stream;
    mgl_error err = {0};
    const int32_t id = 3;
    ck_assert_int_eq(mgl_detokenizer_open(t, true, &stream, &err), MGL_OK);
    assert_piece(stream, id, "a");
    ck_assert_int_eq(mgl_detokenizer_prime(stream, &id, 1, &err), MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "prime it first"));
    ck_assert_int_eq(mgl_detokenizer_prime(NULL, &id, 1, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_detokenizer_prime(stream, NULL, 1, &err), MGL_USAGE);
    mgl_detokenizer_close(stream);
    mgl_tokenizer_close(t);
}
END_TEST

#define SEQUENCE(stages) "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [" stages "]},"
#define REPLACE(from, to)                                                                          \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"" from "\"}, \"content\": \"" to "\"}"
#define STRIP(start, stop)                                                                         \
    "{\"type\": \"Strip\", \"content\": \" \", \"start\": " #start ", \"stop\": " #stop "}"
#define FUSE "{\"type\": \"Fuse\"}"
#define BYTE_LEVEL                                                                                 \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, "               \
    "\"use_regex\": true}"
#define FALLBACK  "{\"type\": \"ByteFallback\"}"
#define METASPACE "{\"type\": \"Metaspace\", \"replacement\": \"\u2581\"}"
#define SPACE     REPLACE("\u2581", " ")
#define RUNS      "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"a+\"}, \"content\": \"-\"}"

static const char *const decoders[] = {
    "",
    LLAMA,
    SEQUENCE(BYTE_LEVEL),
    SEQUENCE(METASPACE),
    SEQUENCE(METASPACE "," FALLBACK "," FUSE),
    SEQUENCE(FALLBACK "," METASPACE),
    SEQUENCE(FUSE "," BYTE_LEVEL),
    SEQUENCE(FUSE "," FALLBACK),
    SEQUENCE(SPACE "," FUSE "," STRIP(1, 0)),
    SEQUENCE(SPACE "," STRIP(1, 1)),
    SEQUENCE(SPACE "," FALLBACK "," FUSE "," STRIP(2, 2)),
    SEQUENCE(FUSE "," SPACE "," STRIP(1, 0)),
    SEQUENCE(FUSE "," REPLACE("ab", "-") "," STRIP(0, 1)),
    SEQUENCE(FUSE "," RUNS),
    SEQUENCE(BYTE_LEVEL "," REPLACE("ab", "-") "," STRIP(1, 1)),
};

#define TOKENS                                                                                     \
    "\"<0xE4>\":0,\"<0xBD>\":1,\"<0xA0>\":2,\"<0x20>\":3,\"<0xFF>\":4,\"<0x0A>\":5,"               \
    "\"\u2581a\":6,\"b\":7,\"\u2581\":8,\"a\":9,\"ab\":10,\"\u2581\u2581\":11,\"\u00E4\u00BD\":12" \
    ",\"\u0142\":13,\"\u0120a\":14,\"\u4F60\":15,\"a\u2581\":16,\"\u0120\":17"
enum { SKIPPED = 18, TOKEN_COUNT, CASES = 4000, MOST = 7 }; /* the last is special */

static const char bytes_of[] = {'\xE4', '\xBD', '\xA0', ' ', '\xFF', '\n'}; /* of ids 0 to 5 */

/* Whether whole characters of the prompt become invalid with the bytes after them: for
 * ByteFallback, a run of bytes is either valid UTF-8, or one U+FFFD per byte. */
static bool is_spoiled(const int32_t *ids, size_t prompt, size_t count)
{
    char run[2 * MOST];
    size_t from = prompt, length = 0, before = 0;
    while (from && (ids[from - 1] < (int32_t)sizeof bytes_of || ids[from - 1] == SKIPPED))
        from--;
    for (size_t i = from; i < count; i++) {
        if (ids[i] == SKIPPED)
            continue;
        if (ids[i] >= (int32_t)sizeof bytes_of)
            break;
        before += i < prompt;
        run[length++] = bytes_of[ids[i]];
    }
    return mgl_utf8_valid(run, length) != length && mgl_utf8_valid(run, before) == before;
}

/* The decode of both without the prompt's decode, if that is a prefix. The result is always a
 * suffix. */
static bool check_reply(const mgl_tokenizer *t, const int32_t *ids, size_t prompt, size_t count)
{
    mgl_error err = {0};
    char *whole, *front;
    size_t length, from;
    mgl_text reply = decode_reply(t, ids, prompt, ids + prompt, count - prompt);
    ck_assert_int_eq(mgl_tokenizer_decode(t, ids, count, true, &whole, &length, &err), MGL_OK);
    ck_assert_int_eq(mgl_tokenizer_decode(t, ids, prompt, true, &front, &from, &err), MGL_OK);
    bool begins = from <= length && !memcmp(whole, front, from) && !is_spoiled(ids, prompt, count);
    ck_assert_uint_le(reply.length, length);
    ck_assert_msg(!strcmp(whole + length - reply.length, reply.bytes), "\"%s\" is no end of \"%s\"",
                  reply.bytes, whole);
    if (begins)
        ck_assert_msg(!strcmp(whole + from, reply.bytes), "\"%s\" and \"%s\" are not \"%s\"", front,
                      reply.bytes, whole);
    mgl_text_free(whole);
    mgl_text_free(front);
    mgl_text_clear(&reply);
    return begins;
}

/* Linear congruential generator of Knuth's MMIX. */
static size_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33);
}

static void check_decoder(const char *decoder)
{
    char parts[2000];
    uint64_t random = 1;
    int32_t ids[2 * MOST];
    size_t began = 0;
    snprintf(parts, sizeof parts, "\"added_tokens\": [" SPECIAL(18, "</s>") "],%s", decoder);
    mgl_tokenizer *t = make_tokenizer(parts, TOKENS, "", "");
    for (int i = 0; i < CASES; i++) {
        size_t prompt = next_random(&random) % (MOST + 1);
        size_t count = prompt + next_random(&random) % MOST;
        for (size_t k = 0; k < count; k++)
            ids[k] = (int32_t)(next_random(&random) % TOKEN_COUNT);
        began += check_reply(t, ids, prompt, count);
    }
    ck_assert_uint_ge(began, CASES / 3);
    mgl_tokenizer_close(t);
}

START_TEST(test_random_replies)
{
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        check_decoder(decoders[i]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_without_a_decoder,
        test_ids_without_a_token,
        test_byte_fallback,
        test_run_of_bytes_is_kept_back,
        test_byte_level_stream,
        test_metaspace,
        test_replace_across_pieces,
        test_special_tokens,
        test_negative_id,
        test_reply_behind_a_prompt,
        test_byte_level_behind_a_prompt,
        test_prompt_comes_first,
        test_random_replies,
    };
    return run_case("decode", tests, sizeof tests / sizeof *tests);
}
