/*
 * Tests of damaged tokenizers (tests/damaged/tokenizer): each is rejected as bad input with the
 * expected message and without a leak. The table contains every file of the folder.
 */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *says;
} damage[] = {
    {"added_flag_text.json", "lstrip"},
    {"added_id_huge.json", "id"},
    {"added_id_negative.json", "id"},
    {"added_id_taken.json", "belongs to another token"},
    {"added_id_twice.json", "belongs to another token"},
    {"added_no_content.json", "content"},
    {"added_normalized_away.json", "leaves nothing"},
    {"added_not_objects.json", "not an object"},
    {"behavior_unknown.json", "the behavior \"Kept\" is unknown"},
    {"binary.json", "not valid JSON"},
    {"component_array.json", "normalizer"},
    {"component_no_type.json", "type"},
    {"empty.json", "not valid JSON"},
    {"merge_number.json", "neither"},
    {"merge_outside_vocab.json", "\"b\" is not in the vocabulary"},
    {"merge_result_outside_vocab.json", "\"ab\" is not in the vocabulary"},
    {"merge_three_parts.json", "not two tokens"},
    {"merge_triple.json", "neither"},
    {"merges_missing.json", "merges"},
    {"merges_mixed.json", "both strings and pairs"},
    {"pattern_neither.json", "either \"String\" or \"Regex\""},
    {"pattern_unclosed.json", "malformed"},
    {"pattern_unknown_property.json", "cannot be compiled"},
    {"replacement_two_characters.json", "must be one character"},
    {"scheme_unknown.json", "\"last\" is unknown"},
    {"sequence_too_deep.json", "nested too deeply"},
    {"strip_negative.json", "start"},
    {"template_id_huge.json", "ids"},
    {"template_sequence_b.json", "sequence B"},
    {"template_token_missing.json", "special_tokens lacks \"<s>\""},
    {"truncated.json", "not valid JSON"},
    {"vocab_array.json", "object"},
    {"vocab_id_fraction.json", "must be a whole number"},
    {"vocab_id_huge.json", "must be a whole number"},
    {"vocab_id_negative.json", "must be a whole number"},
    {"vocab_id_text.json", "must be a whole number"},
    {"vocab_id_twice.json", "have the same id 0"},
    {"vocab_token_twice.json", "twice"},
};

#define COUNT (sizeof damage / sizeof *damage)

START_TEST(test_each_is_rejected)
{
    char path[1024];
    mgl_tokenizer *tokenizer = NULL;
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/tests/damaged/tokenizer/%s", MGL_SOURCE_DIR, damage[_i].name);
    mgl_status status = mgl_tokenizer_open(path, &tokenizer, &err);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: status %d", damage[_i].name, status);
    ck_assert_ptr_null(tokenizer);
    ck_assert_msg(strstr(err.where, damage[_i].name), "%s: where is %s", damage[_i].name,
                  err.where);
    ck_assert_msg(strstr(err.message, damage[_i].says) || strstr(err.where, damage[_i].says),
                  "%s: \"%s\" at %s does not say \"%s\"", damage[_i].name, err.message, err.where,
                  damage[_i].says);
}
END_TEST

START_TEST(test_table_is_complete)
{
    size_t files = 0;
    DIR *folder = opendir(MGL_SOURCE_DIR "/tests/damaged/tokenizer");
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        files += strstr(entry->d_name, ".json") != NULL;
    closedir(folder);
    ck_assert_uint_eq(files, COUNT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damaged tokenizers");
    TCase *tcase = tcase_create("damaged tokenizers");
    tcase_add_loop_test(tcase, test_each_is_rejected, 0, (int)COUNT);
    tcase_add_test(tcase, test_table_is_complete);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
