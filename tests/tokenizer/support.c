#include "support.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mgl_tokenizer *parse_tokenizer(const char *json)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_tokenizer_parse(json, strlen(json), "test.json", &tokenizer, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return tokenizer;
}

mgl_tokenizer *make_tokenizer(const char *parts, const char *vocab, const char *merges,
                              const char *options)
{
    mgl_text json = {0};
    mgl_text_format(&json,
                    "{\"version\": \"1.0\", %s \"model\": {\"type\": \"BPE\", \"vocab\": {%s}, "
                    "\"merges\": [%s] %s}}",
                    parts, vocab, merges, options);
    ck_assert(!json.failed);
    mgl_tokenizer *tokenizer = parse_tokenizer(json.bytes);
    mgl_text_clear(&json);
    return tokenizer;
}

void assert_refused(const char *json, const char *says)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_tokenizer_parse(json, strlen(json), "test.json", &tokenizer, &err);
    ck_assert_msg(status == MGL_BAD_INPUT, "status %d instead of bad input: %s", status, json);
    ck_assert_ptr_null(tokenizer);
    ck_assert_msg(strstr(err.message, says) || strstr(err.where, says),
                  "\"%s\" at %s does not say \"%s\"", err.message, err.where, says);
    ck_assert_msg(!strncmp(err.where, "test.json", 9), "where is \"%s\"", err.where);
}

static void put_ids(mgl_text *out, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mgl_text_format(out, " %d", (int)ids[i]);
}

void assert_encodes(const mgl_tokenizer *tokenizer, const char *text, size_t length, bool special,
                    const int32_t *ids, size_t count, const char *what)
{
    mgl_ids got = {0};
    mgl_error err = {0};
    mgl_status status = mgl_tokenizer_encode(tokenizer, text, length, special, &got, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", what, err.message);
    if (got.count != count || (count && memcmp(got.ids, ids, count * sizeof *ids) != 0)) {
        mgl_text want = {0}, have = {0};
        put_ids(&want, ids, count);
        put_ids(&have, got.ids, got.count);
        ck_abort_msg("%s: \"%.*s\" has%s, want%s", what, (int)length, text,
                     have.bytes ? have.bytes : " nothing", want.bytes ? want.bytes : " nothing");
    }
    mgl_ids_clear(&got);
}

/* The same ids, decoded token by token. */
static mgl_text stream_all(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                           bool skip_special, const char *what)
{
    mgl_detokenizer *stream;
    mgl_error err = {0};
    mgl_text all = {0};
    const char *piece;
    size_t length;
    ck_assert_int_eq(mgl_detokenizer_open(tokenizer, skip_special, &stream, &err), MGL_OK);
    for (size_t i = 0; i <= count; i++) {
        mgl_status status = i < count ? mgl_detokenizer_next(stream, ids[i], &piece, &length, &err)
                                      : mgl_detokenizer_finish(stream, &piece, &length, &err);
        ck_assert_msg(status == MGL_OK, "%s: %s", what, err.message);
        ck_assert_msg(mgl_utf8_valid(piece, length) == length, "%s: a piece is cut", what);
        mgl_text_append(&all, piece, length);
    }
    mgl_detokenizer_close(stream);
    return all;
}

void assert_decodes_bytes(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                          bool skip_special, const char *text, size_t size, const char *what)
{
    char *got = NULL;
    size_t length = 0;
    mgl_error err = {0};
    mgl_status status =
        mgl_tokenizer_decode(tokenizer, ids, count, skip_special, &got, &length, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", what, err.message);
    ck_assert_msg(length == size && !memcmp(got, text, size), "%s: decodes to \"%s\", want \"%s\"",
                  what, got, text);
    mgl_text streamed = stream_all(tokenizer, ids, count, skip_special, what);
    ck_assert_msg(streamed.length == size && (!size || !memcmp(streamed.bytes, text, size)),
                  "%s: streams \"%s\", want \"%s\"", what, streamed.bytes, text);
    mgl_text_clear(&streamed);
    mgl_text_free(got);
}

void assert_decodes(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                    bool skip_special, const char *text, const char *what)
{
    assert_decodes_bytes(tokenizer, ids, count, skip_special, text, strlen(text), what);
}

int run_case(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
