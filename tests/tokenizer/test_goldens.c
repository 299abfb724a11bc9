/*
 * Tests against ids and texts of Hugging Face's tokenizers: the fixtures in tests/models, and
 * tokenizers in goldens/ that cover every component and option. An entry is a whole tokenizer, or a
 * fixture (`base`) with replaced parts. The entries of declared.json, from Transformers, have more
 * files of a model (make_goldens.py).
 */
#include "support.h"

#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* Replaces U+0000 in strings, which JSON allows and cJSON does not. */
#define NUL       "\\uE0FF"
#define NUL_BYTES "\xEE\x83\xBF"

static void read_json(const char *path, mgl_json *out)
{
    mgl_error err = {0};
    char *text;
    size_t length;
    mgl_status status = mgl_file_read(path, (size_t)64 << 20, &text, &length, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    for (char *at = text; (at = strstr(at, "\\u0000"));)
        memcpy(at, NUL, strlen(NUL));
    status = mgl_json_parse(text, length, length, path, out, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_free(text);
}

/* The bytes of a string; release with mgl_text_clear. */
static mgl_text text_of(const cJSON *object, const char *key)
{
    mgl_text text = {0};
    const char *from = mgl_json_member(object, key)->valuestring, *at;
    for (; (at = strstr(from, NUL_BYTES)); from = at + strlen(NUL_BYTES)) {
        mgl_text_append(&text, from, (size_t)(at - from));
        mgl_text_append(&text, "", 1);
    }
    mgl_text_put(&text, from);
    return text;
}

/* The ids of a JSON array; release with mgl_ids_clear. */
static mgl_ids ids_of(const cJSON *array)
{
    mgl_ids ids = {0};
    ck_assert(cJSON_IsArray(array));
    ids.count = (size_t)cJSON_GetArraySize(array);
    ids.ids = mgl_alloc(ids.count * sizeof *ids.ids);
    size_t at = 0;
    for (const cJSON *item = array->child; item; item = item->next)
        ids.ids[at++] = (int32_t)item->valuedouble;
    return ids;
}

static void check_encode(const mgl_tokenizer *tokenizer, const cJSON *value, bool special,
                         const char *what)
{
    mgl_text text = text_of(value, "text");
    mgl_ids ids = ids_of(mgl_json_member(value, "ids"));
    assert_encodes(tokenizer, text.bytes, text.length, special, ids.ids, ids.count, what);
    mgl_ids_clear(&ids);
    mgl_text_clear(&text);
}

/* Ids outside the vocabulary have no text in Hugging Face's tokenizers, and are an error here. */
static void leave_out_unknown(const mgl_tokenizer *tokenizer, mgl_ids *ids, bool skip)
{
    mgl_error err;
    char *text;
    size_t known = 0;
    for (size_t i = 0; i < ids->count; i++)
        known += mgl_tokenizer_knows(tokenizer, ids->ids[i]);
    if (known == ids->count)
        return;
    ck_assert_int_eq(mgl_tokenizer_decode(tokenizer, ids->ids, ids->count, skip, &text, NULL, &err),
                     MGL_BAD_INPUT);
    known = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (mgl_tokenizer_knows(tokenizer, ids->ids[i]))
            ids->ids[known++] = ids->ids[i];
    ids->count = known;
}

static void check_decode(const mgl_tokenizer *tokenizer, const cJSON *value, const char *key,
                         bool skip, const char *what)
{
    mgl_text text = text_of(value, key);
    mgl_ids ids = ids_of(mgl_json_member(value, "ids"));
    leave_out_unknown(tokenizer, &ids, skip);
    assert_decodes_bytes(tokenizer, ids.ids, ids.count, skip, text.bytes, text.length, what);
    mgl_ids_clear(&ids);
    mgl_text_clear(&text);
}

static const char *const fixtures[] = {
    "tales-5m",
    "tokenizers/smollm",
    "tokenizers/qwen",
    "tokenizers/metaspace",
};

START_TEST(test_fixtures)
{
    char path[1024];
    mgl_json golden;
    mgl_tokenizer *tokenizer;
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/tests/models/%s", MGL_SOURCE_DIR, fixtures[_i]);
    ck_assert_msg(mgl_tokenizer_open(path, &tokenizer, &err) == MGL_OK, "%s", err.message);
    snprintf(path, sizeof path, "%s/tests/models/%s/golden.json", MGL_SOURCE_DIR, fixtures[_i]);
    read_json(path, &golden);
    const cJSON *cases = mgl_json_member(golden.root, "tokenizer");
    ck_assert_int_ge(cJSON_GetArraySize(cases), 25);
    for (const cJSON *item = cases->child; item; item = item->next) {
        check_encode(tokenizer, item, true, fixtures[_i]);
        check_decode(tokenizer, item, "decoded", true, fixtures[_i]);
    }
    mgl_json_clear(&golden);
    mgl_tokenizer_close(tokenizer);
}
END_TEST

/* Copies the members of `parts` to `object`, replacing members of the same name. */
static void replace_members(cJSON *object, const cJSON *parts)
{
    for (const cJSON *part = parts->child; part; part = part->next) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, part->string);
        cJSON_AddItemToObject(object, part->string, cJSON_Duplicate(part, true));
    }
}

/* The tokenizer.json of an entry. */
static cJSON *root_of(const cJSON *all, const cJSON *entry)
{
    const cJSON *base = mgl_json_member(entry, "base"), *model = mgl_json_member(entry, "model");
    const cJSON *parts = mgl_json_member(entry, "replace");
    mgl_json file = {0};
    char path[1024];
    if (cJSON_IsTrue(mgl_json_member(entry, "llama")))
        parts = mgl_json_member(all, "llama");
    if (!cJSON_IsString(base)) {
        cJSON *root = cJSON_CreateObject();
        replace_members(root, parts);
        return root;
    }
    snprintf(path, sizeof path, "%s/tests/models/%s/tokenizer.json", MGL_SOURCE_DIR,
             base->valuestring);
    read_json(path, &file);
    cJSON *root = file.root;
    file.root = NULL;
    mgl_json_clear(&file);
    if (model)
        replace_members(cJSON_GetObjectItemCaseSensitive(root, "model"), model);
    if (parts)
        replace_members(root, parts);
    return root;
}

static void parse_file(const cJSON *files, const char *name, mgl_json *out)
{
    const cJSON *value = mgl_json_member(files, name);
    mgl_error err = {0};
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    if (text)
        ck_assert_int_eq(mgl_json_parse_values(text, strlen(text), strlen(text), name, out, &err),
                         MGL_OK);
    cJSON_free(text);
}

static mgl_tokenizer *tokenizer_of(const cJSON *all, const cJSON *entry)
{
    const cJSON *others = mgl_json_member(entry, "files");
    cJSON *root = root_of(all, entry);
    char *text = cJSON_PrintUnformatted(root);
    mgl_tokenizer *tokenizer = NULL;
    mgl_tokenizer_files files = {0};
    mgl_error err = {0};
    cJSON_Delete(root);
    if (!others) {
        tokenizer = parse_tokenizer(text);
        cJSON_free(text);
        return tokenizer;
    }
    ck_assert_int_eq(
        mgl_json_parse(text, strlen(text), strlen(text), "test.json", &files.tokenizer, &err),
        MGL_OK);
    parse_file(others, "tokenizer_config.json", &files.config);
    parse_file(others, "special_tokens_map.json", &files.special);
    parse_file(others, "added_tokens.json", &files.added);
    parse_file(others, "config.json", &files.model);
    mgl_status status = mgl_tokenizer_make(&files, &tokenizer, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_tokenizer_files_clear(&files);
    cJSON_free(text);
    return tokenizer;
}

static const char *const collections[] = {"components", "declared", "models"};

START_TEST(test_collections)
{
    char path[1024], what[80];
    mgl_json golden;
    int number = 0;
    snprintf(path, sizeof path, "%s/tests/tokenizer/goldens/%s.json", MGL_SOURCE_DIR,
             collections[_i]);
    read_json(path, &golden);
    const cJSON *entries = mgl_json_member(golden.root, "tokenizers");
    ck_assert_int_ge(cJSON_GetArraySize(entries), 30);
    for (const cJSON *entry = entries->child; entry; entry = entry->next, number++) {
        mgl_tokenizer *tokenizer = tokenizer_of(golden.root, entry);
        snprintf(what, sizeof what, "%s, tokenizer %d", collections[_i], number);
        for (const cJSON *item = mgl_json_member(entry, "encode")->child; item; item = item->next)
            check_encode(tokenizer, item, cJSON_IsTrue(mgl_json_member(item, "special")), what);
        for (const cJSON *item = mgl_json_member(entry, "decode")->child; item; item = item->next)
            check_decode(tokenizer, item, "text",
                         cJSON_IsTrue(mgl_json_member(item, "skip_special")), what);
        mgl_tokenizer_close(tokenizer);
    }
    mgl_json_clear(&golden);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("goldens");
    TCase *tcase = tcase_create("goldens");
    tcase_add_loop_test(tcase, test_fixtures, 0, 4);
    tcase_add_loop_test(tcase, test_collections, 0, 3);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
