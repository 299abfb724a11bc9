/* Tests of byte pair encoding: order of merges, long words, characters without a token, limits. */
#include "support.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

#define IDS(...) (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / 4
#define ENCODES(tokenizer, text, ...)                                                              \
    assert_encodes(tokenizer, text, strlen(text), false, IDS(__VA_ARGS__), text)

START_TEST(test_lowest_rank_first)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4,\"abc\":5",
                                      "[\"b\",\"c\"],[\"a\",\"b\"],[\"ab\",\"c\"]", "");
    ENCODES(t, "abc", 0, 4);
    ENCODES(t, "ab", 3);
    ENCODES(t, "abab", 3, 3);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_leftmost_of_equals)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"aa\":1", "\"a a\"", "");
    ENCODES(t, "aaa", 1, 0);
    ENCODES(t, "aaaaa", 1, 1, 0);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_later_merge_of_a_pair_wins)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4",
                                      "\"a b\",\"b c\",\"a b\"", "");
    ENCODES(t, "abc", 0, 4);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_whole_piece_before_merges)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"b\":1,\"ab\":2,\"aba\":3", "\"a b\"",
                                      ", \"ignore_merges\": true");
    ENCODES(t, "aba", 3);
    ENCODES(t, "abab", 2, 2);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_unknown_characters)
{
    const char *vocab = "\"<unk>\":0,\"a\":1,\"<0xC3>\":2,\"<0xA9>\":3";
    mgl_tokenizer *none = make_tokenizer("", vocab, "", "");
    mgl_tokenizer *each = make_tokenizer("", vocab, "", ", \"unk_token\": \"<unk>\"");
    mgl_tokenizer *fused =
        make_tokenizer("", vocab, "", ", \"unk_token\": \"<unk>\", \"fuse_unk\": true");
    mgl_tokenizer *bytes = make_tokenizer(
        "", vocab, "", ", \"unk_token\": \"<unk>\", \"fuse_unk\": true, \"byte_fallback\": true");
    ENCODES(none, "axya", 1, 1);
    ENCODES(each, "axya", 1, 0, 0, 1);
    ENCODES(fused, "axya", 1, 0, 1);
    ENCODES(bytes, "a\u00E9xa", 1, 2, 3, 0, 1);
    /* A pending unknown token comes after the byte tokens, as in Hugging Face's tokenizers. */
    ENCODES(bytes, "x\u00E9\u00E9a", 2, 3, 2, 3, 0, 1);
    mgl_tokenizer_close(none);
    mgl_tokenizer_close(each);
    mgl_tokenizer_close(fused);
    mgl_tokenizer_close(bytes);
}
END_TEST

START_TEST(test_missing_unknown_token)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0", "", ", \"unk_token\": \"<unk>\"");
    mgl_ids ids = {0};
    mgl_error err = {0};
    ENCODES(t, "aa", 0, 0);
    ck_assert_int_eq(mgl_tokenizer_encode(t, "ab", 2, false, &ids, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "U+0062"));
    ck_assert_ptr_nonnull(strstr(err.message, "unk_token"));
    mgl_tokenizer_close(t);
}
END_TEST

/* The heap for long words and the search for short ones must agree: a long word of parts without
 * merges between them has the ids of its parts. */
START_TEST(test_long_word_is_its_parts)
{
    mgl_tokenizer *t = make_tokenizer(
        "", "\"a\":0,\"b\":1,\"c\":2,\"-\":3,\"ab\":4,\"bc\":5,\"abc\":6,\"cab\":7,\"ca\":8",
        "\"c a\",\"a b\",\"b c\",\"ca b\",\"ab c\"", "");
    static const char part[] = "abcabcaabbcc-";
    mgl_ids one = {0}, many = {0};
    mgl_text text = {0};
    mgl_error err = {0};
    for (int i = 0; i < 1000; i++)
        mgl_text_put(&text, part);
    /* The hyphen is not split off: one word, through the heap. */
    memset(t->bpe.joins, 0xFF, sizeof t->bpe.joins);
    ck_assert_int_eq(mgl_tokenizer_encode(t, part, strlen(part), false, &one, &err), MGL_OK);
    ck_assert_int_eq(mgl_tokenizer_encode(t, text.bytes, text.length, false, &many, &err), MGL_OK);
    ck_assert_uint_eq(many.count, 1000 * one.count);
    for (size_t i = 0; i < many.count; i++)
        ck_assert_int_eq(many.ids[i], one.ids[i % one.count]);
    mgl_ids_clear(&one);
    mgl_ids_clear(&many);
    mgl_text_clear(&text);
    mgl_tokenizer_close(t);
}
END_TEST

/* One word of a megabyte in which every merge is possible: O(n log n) time takes seconds, a
 * quadratic search days. */
START_TEST(test_megabyte_word)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":0,\"aa\":1,\"aaaa\":2,\"aaaaaaaa\":3",
                                      "\"a a\",\"aa aa\",\"aaaa aaaa\"", "");
    size_t length = (size_t)1 << 20;
    char *word = mgl_alloc(length);
    mgl_ids ids = {0};
    mgl_error err = {0};
    memset(word, 'a', length);
    ck_assert_int_eq(mgl_tokenizer_encode(t, word, length, false, &ids, &err), MGL_OK);
    ck_assert_uint_eq(ids.count, length / 8);
    ck_assert_int_eq(ids.ids[length / 8 - 1], 3);
    mgl_ids_clear(&ids);
    mgl_free(word);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_sparse_ids)
{
    mgl_tokenizer *t = make_tokenizer("", "\"a\":70000,\"b\":5,\"ab\":16777215", "\"a b\"", "");
    ENCODES(t, "aba", 16777215, 70000);
    assert_decodes(t, IDS(16777215, 6, 70000), true, "ab a", "sparse");
    mgl_tokenizer_close(t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_lowest_rank_first,
        test_leftmost_of_equals,
        test_unknown_characters,
        test_later_merge_of_a_pair_wins,
        test_missing_unknown_token,
        test_whole_piece_before_merges,
        test_megabyte_word,
        test_long_word_is_its_parts,
        test_sparse_ids,
    };
    return run_case("bpe", tests, sizeof tests / sizeof *tests);
}
