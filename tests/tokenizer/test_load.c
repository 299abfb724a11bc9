/* Tests of loading tokenizer.json: supported values, and rejected ones with their names in the
 * message. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}"

static const struct {
    const char *json, *says;
} refusals[] = {
    {"{\"model\": {\"type\": \"Unigram\", \"vocab\": []}}",
     "the model \"Unigram\" is not supported"},
    {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {}}}", "the model \"WordPiece\""},
    {"{\"model\": {\"type\": \"WordLevel\", \"vocab\": {}}}", "the model \"WordLevel\""},
    {"{\"model\": {\"vocab\": {}}}", "(without a type)"},
    {"{}", "model"},
    {"[]", "must be a JSON object"},
    {"{\"version\": \"2.0\", " MODEL "}", "2.0"},
    {"\xEF\xBB\xBF{" MODEL "}", "byte order mark (BOM)"},
    {"{\"normalizer\": {\"type\": \"BertNormalizer\"}, " MODEL "}",
     "the normalizer \"BertNormalizer\" is not supported"},
    {"{\"normalizer\": {\"type\": \"Precompiled\"}, " MODEL "}", "the normalizer \"Precompiled\""},
    {"{\"normalizer\": {\"type\": \"Nmt\"}, " MODEL "}", "the normalizer \"Nmt\""},
    {"{\"normalizer\": {\"type\": \"StripAccents\"}, " MODEL "}",
     "the normalizer \"StripAccents\""},
    {"{\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, " MODEL "}",
     "the pre-tokenizer \"BertPreTokenizer\""},
    {"{\"pre_tokenizer\": {\"type\": \"UnicodeScripts\"}, " MODEL "}",
     "the pre-tokenizer \"UnicodeScripts\""},
    {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
     "\"CharDelimiterSplit\"}]}, " MODEL "}",
     "the pre-tokenizer \"CharDelimiterSplit\""},
    {"{\"decoder\": {\"type\": \"WordPiece\"}, " MODEL "}", "the decoder \"WordPiece\""},
    {"{\"decoder\": {\"type\": \"CTC\"}, " MODEL "}", "the decoder \"CTC\""},
    {"{\"decoder\": {\"type\": \"BPEDecoder\"}, " MODEL "}", "the decoder \"BPEDecoder\""},
    {"{\"post_processor\": {\"type\": \"BertProcessing\"}, " MODEL "}",
     "the post-processor \"BertProcessing\""},
    {"{\"post_processor\": {\"type\": \"RobertaProcessing\"}, " MODEL "}",
     "the post-processor \"RobertaProcessing\""},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], "
     "\"continuing_subword_prefix\": \"##\"}}",
     "model.continuing_subword_prefix is \"##\""},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"end_of_word_suffix\": "
     "\"</w>\"}}",
     "model.end_of_word_suffix is \"</w>\""},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], \"dropout\": 0.1}}",
     "model.dropout is 0.1"},
    {"{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": "
     "\"always\", \"add_prefix_space\": false}, " MODEL "}",
     "does not match"},
};

START_TEST(test_rejections)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        assert_refused(refusals[i].json, refusals[i].says);
}
END_TEST

START_TEST(test_smallest)
{
    mgl_tokenizer *t = parse_tokenizer("{\"truncation\": null, \"padding\": null, \"model\": "
                                       "{\"vocab\": {}, \"merges\": []}}");
    assert_encodes(t, "anything", 8, true, NULL, 0, "smallest");
    assert_encodes(t, "", 0, true, NULL, 0, "smallest");
    assert_encodes(t, NULL, 0, true, NULL, 0, "smallest");
    mgl_tokenizer_close(t);
}
END_TEST

/* Truncation and padding are ignored, as in Transformers, and `info` prints a note. */
START_TEST(test_truncation_and_padding)
{
    const int32_t ids[] = {0, 1, 0};
    mgl_tokenizer *t = parse_tokenizer(
        "{\"truncation\": {\"direction\": \"Right\", \"max_length\": 2, \"strategy\": "
        "\"LongestFirst\", \"stride\": 0}, \"padding\": {\"strategy\": {\"Fixed\": 9}, "
        "\"pad_id\": 0}, " MODEL "}");
    assert_encodes(t, "aba", 3, true, ids, 3, "neither truncated nor padded");
    ck_assert(t->truncation && t->padding);
    mgl_tokenizer_close(t);
    t = parse_tokenizer("{\"truncation\": null, \"padding\": null, " MODEL "}");
    ck_assert(!t->truncation && !t->padding);
    mgl_tokenizer_close(t);
}
END_TEST

START_TEST(test_old_forms)
{
    const int32_t first[] = {1, 2}, plain[] = {2};
    const char *vocab = "\"x\":0,\"_\":1,\"a\":2";
    mgl_tokenizer *with = make_tokenizer("\"pre_tokenizer\": {\"type\": \"Metaspace\", "
                                         "\"replacement\": \"_\", \"add_prefix_space\": true},",
                                         vocab, "", "");
    mgl_tokenizer *without = make_tokenizer("\"pre_tokenizer\": {\"type\": \"Metaspace\", "
                                            "\"replacement\": \"_\", \"add_prefix_space\": false},",
                                            vocab, "", "");
    assert_encodes(with, "a", 1, true, first, 2, "with");
    assert_encodes(without, "a", 1, true, plain, 1, "without");
    mgl_tokenizer_close(with);
    mgl_tokenizer_close(without);
}
END_TEST

START_TEST(test_version_line_of_merges)
{
    const int32_t ids[] = {2};
    mgl_tokenizer *t =
        make_tokenizer("", "\"a\":0,\"b\":1,\"ab\":2", "\"#version: 0.2\",\"a b\"", "");
    assert_encodes(t, "ab", 2, true, ids, 1, "version");
    mgl_tokenizer_close(t);
}
END_TEST

/* A file, a folder, and neither. */
START_TEST(test_paths)
{
    char path[1024];
    mgl_tokenizer *t = NULL;
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/tests/models/tokenizers/qwen", MGL_SOURCE_DIR);
    ck_assert_int_eq(mgl_tokenizer_open(path, &t, &err), MGL_OK);
    mgl_tokenizer_close(t);
    snprintf(path, sizeof path, "%s/tests/models/tokenizers/qwen/tokenizer.json", MGL_SOURCE_DIR);
    ck_assert_int_eq(mgl_tokenizer_open(path, &t, &err), MGL_OK);
    mgl_tokenizer_close(t);
    snprintf(path, sizeof path, "%s/tests/models", MGL_SOURCE_DIR);
    ck_assert_int_ne(mgl_tokenizer_open(path, &t, &err), MGL_OK);
    ck_assert_ptr_nonnull(strstr(err.where, "tokenizer.json"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_rejections,
                                  test_smallest,
                                  test_truncation_and_padding,
                                  test_old_forms,
                                  test_version_line_of_merges,
                                  test_paths};
    return run_case("load", tests, sizeof tests / sizeof *tests);
}
