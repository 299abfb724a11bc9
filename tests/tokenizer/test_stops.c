/* Tests of stop strings of a stream: text that is held back, the choice among several, and
 * independence of the division into pieces and tokens. */
#include "support.h"

#include "base/text.h"
#include "importer/tokenizer/stops.h"

#include <string.h>

static mgl_error err;

enum { MOST = 4 };

/* Checks the result of `text` in pieces of `piece` bytes; `stops` end with NULL. */
static void assert_cut(const char *const stops[], const char *text, size_t piece, const char *want,
                       bool found)
{
    mgl_stops s;
    mgl_text all = {0};
    size_t count = 0, length = strlen(text);
    while (count < MOST && stops[count])
        count++;
    ck_assert_int_eq(mgl_stops_open(&s, stops, count, &err), MGL_OK);
    for (size_t at = 0; at < length; at += piece) {
        size_t size = length - at < piece ? length - at : piece;
        ck_assert_int_eq(mgl_stops_next(&s, text + at, size, false, &err), MGL_OK);
        mgl_text_append(&all, s.text.bytes, s.out);
    }
    ck_assert_int_eq(mgl_stops_next(&s, "", 0, true, &err), MGL_OK);
    mgl_text_append(&all, s.text.bytes ? s.text.bytes : "", s.out);
    ck_assert_msg(s.found == found, "%s in pieces of %zu", text, piece);
    ck_assert_str_eq(all.bytes ? all.bytes : "", want);
    mgl_text_clear(&all);
    mgl_stops_clear(&s);
}

static const struct cut {
    const char *stops[MOST];
    const char *text, *want;
    bool found;
} cuts[] = {
    {{"\n\n"}, "one\ntwo\n\nthree", "one\ntwo", true},
    {{"\n\n"}, "one\ntwo\n", "one\ntwo\n", false},
    {{"aab"}, "aaaab", "aa", true}, /* a prefix within a prefix */
    {{"abcabd"}, "abcabcabd", "abc", true},
    {{"abcd", "bc"}, "abcd", "a", true}, /* the string that is complete first */
    {{"bc", "abc"}, "xabc", "x", true},  /* of those complete at once, the longest */
    {{"abcx", "bd"}, "abcbd", "abc", true},
    {{"\xC3\xA4"}, "w\xC3\xA4s", "w", true},
    {{"\xC3\xA4u"}, "\xC3\xA4\xC3\xB6", "\xC3\xA4\xC3\xB6", false},
    {{"a"}, "a", "", true},
    {{"stop", "Stop", "STOP"}, "do not Stop here", "do not ", true},
    {{"b"}, "", "", false},
};

START_TEST(pieces_make_no_difference)
{
    const struct cut *c = &cuts[_i];
    for (size_t piece = 1; piece <= strlen(c->text) + 1; piece++)
        assert_cut(c->stops, c->text, piece, c->want, c->found);
}
END_TEST

/* Random texts over two letters, compared with a search at each position. */
START_TEST(is_the_plain_search)
{
    unsigned state = 5;
    for (int n = 0; n < 3000; n++) {
        char text[25] = "", stop[2][6] = {"", ""}, want[25];
        for (int i = 0; i < 24; i++)
            text[i] = (char)('a' + ((state = state * 1103515245u + 12345u) >> 16 & 1));
        for (int s = 0; s < 2; s++)
            for (unsigned i = 0; i < 1 + (unsigned)n / 7 % 5; i++)
                stop[s][i] = (char)('a' + ((state = state * 1103515245u + 12345u) >> 16 & 1));
        size_t end = 25, cut = 24;
        for (int s = 0; s < 2; s++) { /* of equal length: the first to begin is the first to end */
            const char *at = strstr(text, stop[s]);
            if (at && (size_t)(at - text) + strlen(stop[s]) < end) {
                end = (size_t)(at - text) + strlen(stop[s]);
                cut = (size_t)(at - text);
            }
        }
        memcpy(want, text, sizeof want);
        want[cut] = 0;
        const char *const stops[MOST] = {stop[0], stop[1]};
        assert_cut(stops, text, 1 + (size_t)n % 5, want, end < 25);
    }
}
END_TEST

START_TEST(what_is_never_found_is_rejected)
{
    mgl_stops s;
    const char *const empty[] = {"a", ""}, *const broken[] = {"\xC3"}, *const none[] = {NULL};
    ck_assert_int_eq(mgl_stops_open(&s, empty, 2, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "stops[1]");
    ck_assert_int_eq(mgl_stops_open(&s, broken, 1, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_stops_open(&s, none, 1, &err), MGL_USAGE);
}
END_TEST

/* ---- a stream of tokens ---------------------------------------------------------------------- */

/* Letters, a character in two tokens, and a special token. */
static mgl_tokenizer *make(void)
{
    return make_tokenizer("\"decoder\": {\"type\": \"ByteLevel\"}, \"added_tokens\": [{\"id\": 5, "
                          "\"content\": \"<end>\", \"special\": true, \"normalized\": false, "
                          "\"single_word\": false, \"lstrip\": false, \"rstrip\": false}],",
                          "\"a\":0,\"ab\":1,\"b\":2,\"\u00C3\":3,\"\u00A4\":4", "", "");
}

/* The text of tokens (count); *at: the token that ends it, or -1. */
static void read_stream(const int32_t *ids, int count, const char *stop, mgl_text *out, int *at)
{
    mgl_tokenizer *t = make();
    mgl_detokenizer *stream;
    const char *text;
    size_t length;
    ck_assert_int_eq(mgl_detokenizer_open(t, true, &stream, &err), MGL_OK);
    ck_assert_int_eq(mgl_detokenizer_set_stops(stream, &stop, 1, &err), MGL_OK);
    *at = -1;
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(mgl_detokenizer_next(stream, ids[i], &text, &length, &err), MGL_OK);
        mgl_text_append(out, text, length);
        if (*at < 0 && mgl_detokenizer_is_stopped(stream))
            *at = i;
    }
    ck_assert_int_eq(mgl_detokenizer_finish(stream, &text, &length, &err), MGL_OK);
    mgl_text_append(out, text, length);
    mgl_detokenizer_close(stream);
    mgl_tokenizer_close(t);
}

static const struct streamed {
    int32_t ids[6];
    int count;
    const char *stop, *want;
    int at;
} streamed[] = {
    {{0, 0, 2, 0}, 4, "ab", "a", 2},       /* across two tokens */
    {{2, 1, 0}, 3, "ba", "", 1},           /* within a token, a part of which remains */
    {{0, 3, 4, 2}, 4, "\xC3\xA4", "a", 2}, /* half a character each */
    {{0, 3, 4, 2},
     4,
     "\xC3\xA4"
     "b",
     "a",
     3},
    {{3, 4, 3}, 3, "\xC3\xA4\xC3\xA4", "\xC3\xA4\xEF\xBF\xBD", -1},
    {{0, 5, 2}, 3, "ab", "", 2},       /* a special token is no text */
    {{0, 0, 0}, 3, "aaaa", "aaa", -1}, /* held back until the end */
};

START_TEST(tokens_make_no_difference)
{
    const struct streamed *c = &streamed[_i];
    mgl_text out = {0};
    int at;
    read_stream(c->ids, c->count, c->stop, &out, &at);
    ck_assert_int_eq(at, c->at);
    ck_assert_str_eq(out.bytes ? out.bytes : "", c->want);
    mgl_text_clear(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stops");
    TCase *tests = tcase_create("stops");
    tcase_add_loop_test(tests, pieces_make_no_difference, 0, (int)(sizeof cuts / sizeof *cuts));
    tcase_add_test(tests, is_the_plain_search);
    tcase_add_test(tests, what_is_never_found_is_rejected);
    tcase_add_loop_test(tests, tokens_make_no_difference, 0,
                        (int)(sizeof streamed / sizeof *streamed));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner) != 0;
    srunner_free(runner);
    return failed;
}
