/* Tests of the strict JSON wrapper: accepted and rejected texts with error positions, getters, and
 * every allocation failing once. */
#include "base/json_fields.h"
#include "base/json_out.h"
#include "base/memory.h"

#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mgl_status parse(const char *text, size_t length, mgl_json *json, mgl_error *err)
{
    *json = (mgl_json){0};
    *err = (mgl_error){0};
    return mgl_json_parse(text, length, 1 << 20, "f.json", json, err);
}

static const char *const accepted[] = {
    "{}",
    " [ ] ",
    "0",
    "-0",
    "-0.5e-3",
    "1E+9",
    "\"\"",
    "true",
    "null\n",
    "[1,2,[3,{\"a\":[]}]]",
    "{\"a\":1,\"A\":2,\"\":3}",
    "\"\\u00e9\\n\\\"\\\\\\/\\b\\f\\r\\t\"",
    "\"\\uD83D\\ude00\"",
    "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\"",
    "123456789012345678901234567890123456789012345678901234567890123",
    "1e308",
    "1e-400",
};

START_TEST(test_accepts)
{
    mgl_json json;
    mgl_error err;
    mgl_status status = parse(accepted[_i], strlen(accepted[_i]), &json, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s: %s", accepted[_i], err.where, err.message);
    mgl_json_clear(&json);
}
END_TEST

#define TEXT(literal) (literal), sizeof(literal) - 1

static const struct refusal {
    const char *text;
    size_t length;
    const char *where, *message;
} refused[] = {
    {TEXT(""), "f.json:1:1", "the text ends where a value is expected"},
    {TEXT("{"), "f.json:1:2", "key in double quotes"},
    {TEXT("\xEF\xBB\xBF{}"), "f.json", "the byte order mark (BOM) of UTF-8; save it as UTF-8"},
    {TEXT("\xFF\xFE{\0}\0"), "f.json", "the byte order mark (BOM) of UTF-16; save it as UTF-8"},
    {TEXT("\xFE\xFF\0{\0}"), "f.json", "the byte order mark (BOM) of UTF-16"},
    {TEXT("\xFF\xFE\0\0{\0\0\0"), "f.json", "the byte order mark (BOM) of UTF-32"},
    {TEXT("\xEF\xBB{}"), "f.json:1:1", "neither a value"},
    {TEXT("[1,]"), "f.json:1:4", "neither a value"},
    {TEXT("[1 2]"), "f.json:1:4", "',' or ']'"},
    {TEXT("{\"a\" 1}"), "f.json:1:6", "':' is expected"},
    {TEXT("{\"a\":1,}"), "f.json:1:8", "key in double quotes"},
    {TEXT("{a:1}"), "f.json:1:2", "key in double quotes"},
    {TEXT("{'a':1}"), "f.json:1:2", "key in double quotes"},
    {TEXT("{}\n{}"), "f.json:2:1", "text after the end"},
    {TEXT("{}\0"), "f.json:1:3", "text after the end"},
    {TEXT("[] // no"), "f.json:1:4", "text after the end"},
    {TEXT("01"), "f.json:1:2", "must not begin with 0"},
    {TEXT("1."), "f.json:1:3", "a number"},
    {TEXT(".5"), "f.json:1:1", "neither a value"},
    {TEXT("+1"), "f.json:1:1", "neither a value"},
    {TEXT("-"), "f.json:1:2", "a number"},
    {TEXT("1e"), "f.json:1:3", "a number"},
    {TEXT("0x10"), "f.json:1:2", "text after the end"},
    {TEXT("NaN"), "f.json:1:1", "neither a value"},
    {TEXT("Infinity"), "f.json:1:1", "neither a value"},
    {TEXT("1e400"), "f.json", "too large"},
    {TEXT("{\"a\":[0,-1e999]}"), "f.json: a[1]", "too large"},
    {TEXT("1234567890123456789012345678901234567890123456789012345678901234"), "f.json:1:1",
     "63 characters"},
    {TEXT("True"), "f.json:1:1", "neither a value"},
    {TEXT("nul"), "f.json:1:1", "neither a value"},
    {TEXT("\"a"), "f.json:1:3", "ends inside a string"},
    {TEXT("\"a\nb\""), "f.json:1:3", "control character"},
    {TEXT("\"a\0b\""), "f.json:1:3", "control character"},
    {TEXT("\"\\x41\""), "f.json:1:3", "escape"},
    {TEXT("\"\\"), "f.json:1:3", "escape"},
    {TEXT("\"\\u12G4\""), "f.json:1:6", "hexadecimal"},
    {TEXT("\"\\u0000\""), "f.json:1:8", "\\u0000"},
    {TEXT("{\"\\u0000\":1}"), "f.json:1:9", "\\u0000"},
    {TEXT("\"\\uD800\""), "f.json:1:8", "high surrogate"},
    {TEXT("\"\\uD800\\n\""), "f.json:1:8", "high surrogate"},
    {TEXT("\"\\uD800\\u0041\""), "f.json:1:14", "high surrogate"},
    {TEXT("\"\\uDC00\""), "f.json:1:8", "low surrogate"},
    {TEXT("\"\x80\""), "f.json:1:2", "not UTF-8"},
    {TEXT("\"\xC0\xAF\""), "f.json:1:2", "not UTF-8"},
    {TEXT("\"\xE0\x80\xAF\""), "f.json:1:2", "not UTF-8"},
    {TEXT("\"\xED\xA0\x80\""), "f.json:1:2", "not UTF-8"},
    {TEXT("\"\xF4\x90\x80\x80\""), "f.json:1:2", "not UTF-8"},
    {TEXT("\"\xF5\x80\x80\x80\""), "f.json:1:2", "not UTF-8"},
    {TEXT("\"\xE2\x82"), "f.json:1:2", "not UTF-8"},
    {TEXT("{\"a\":1,\"b\":2,\"a\":3}"), "f.json", "\"a\" is given twice"},
    {TEXT("{\"a\":1,\"\\u0061\":3}"), "f.json", "\"a\" is given twice"},
    {TEXT("{\"x\":[{},{\"k\":{\"a\":1,\"a\":1}}]}"), "f.json: x[1].k", "\"a\" is given twice"},
    {TEXT("{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"3\":0}"),
     "f.json", "\"3\" is given twice"},
};

START_TEST(test_rejects)
{
    const struct refusal *r = &refused[_i];
    mgl_json json;
    mgl_error err;
    ck_assert_msg(parse(r->text, r->length, &json, &err) == MGL_BAD_INPUT, "taken: %s", r->text);
    ck_assert_str_eq(err.where, r->where);
    ck_assert_msg(strstr(err.message, r->message) != NULL, "%s: \"%s\" lacks \"%s\"", r->text,
                  err.message, r->message);
}
END_TEST

/* `depth` arrays inside one another. */
static mgl_status parse_nested(int depth, mgl_error *err)
{
    char text[512];
    mgl_json json;
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    mgl_status status = parse(text, 2 * (size_t)depth, &json, err);
    mgl_json_clear(&json);
    return status;
}

START_TEST(test_depth)
{
    mgl_error err;
    ck_assert_int_eq(parse_nested(64, &err), MGL_OK);
    ck_assert_int_eq(parse_nested(65, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "64 levels"));
}
END_TEST

START_TEST(test_cap)
{
    mgl_json json;
    mgl_error err;
    ck_assert_int_eq(mgl_json_parse("[1,2]", 5, 5, "f", &json, &err), MGL_OK);
    mgl_json_clear(&json);
    ck_assert_int_eq(mgl_json_parse("[1,2]", 5, 4, "f", &json, &err), MGL_BAD_INPUT);
}
END_TEST

static const char object_text[] =
    "{\"i\": 42, \"f\": 0.5, \"b\": true, \"s\": \"x\", \"n\": null, \"o\": {\"k\": {}},"
    " \"a\": [7, 7.5, \"q\"], \"big\": 9007199254740991, \"over\": 9007199254740992, \"e\": 1e2}";

START_TEST(test_getters)
{
    mgl_json json;
    mgl_error err;
    int64_t i = -1;
    double f = -1;
    bool b = false;
    const char *s = "untouched";
    const cJSON *node;
    ck_assert_int_eq(parse(object_text, strlen(object_text), &json, &err), MGL_OK);
    ck_assert_int_eq(mgl_json_get_int(&json, json.root, "i", true, 0, 42, &i, &err), MGL_OK);
    ck_assert_int_eq(i, 42);
    ck_assert_int_eq(mgl_json_get_int(&json, json.root, "e", true, 0, 100, &i, &err), MGL_OK);
    ck_assert_int_eq(i, 100);
    ck_assert_int_eq(
        mgl_json_get_int(&json, json.root, "big", true, INT64_MIN, INT64_MAX, &i, &err), MGL_OK);
    ck_assert(i == 9007199254740991);
    ck_assert_int_eq(mgl_json_get_double(&json, json.root, "f", true, &f, &err), MGL_OK);
    ck_assert(f == 0.5);
    ck_assert_int_eq(mgl_json_get_bool(&json, json.root, "b", true, &b, &err), MGL_OK);
    ck_assert(b);
    ck_assert_int_eq(mgl_json_get_string(&json, json.root, "n", false, &s, &err), MGL_OK);
    ck_assert_str_eq(s, "untouched");
    ck_assert_int_eq(mgl_json_get_string(&json, json.root, "S", false, &s, &err), MGL_OK);
    ck_assert_str_eq(s, "untouched");
    ck_assert_int_eq(mgl_json_get_string(&json, json.root, "s", true, &s, &err), MGL_OK);
    ck_assert_str_eq(s, "x");
    ck_assert_int_eq(mgl_json_get_object(&json, json.root, "o", true, &node, &err), MGL_OK);
    ck_assert_ptr_nonnull(mgl_json_member(node, "k"));
    ck_assert_int_eq(mgl_json_get_array(&json, json.root, "none", false, &node, &err), MGL_OK);
    ck_assert_ptr_null(node);
    ck_assert_int_eq(mgl_json_get_array(&json, json.root, "a", true, &node, &err), MGL_OK);
    ck_assert_int_eq(mgl_json_item_int(&json, node->child, "a[0]", 0, 9, &i, &err), MGL_OK);
    ck_assert_int_eq(i, 7);
    mgl_json_clear(&json);
}
END_TEST

/* A table reads what the getters read, in order, up to the first error. */
START_TEST(test_fields)
{
    mgl_json json;
    mgl_error err;
    int64_t i = -1, other = -1;
    double f = -1;
    bool b = false;
    const char *s = NULL;
    const cJSON *o = NULL, *a = NULL;
    ck_assert_int_eq(parse(object_text, strlen(object_text), &json, &err), MGL_OK);
    const mgl_json_field good[] = {
        MGL_JSON_INT("i", 0, 42, &i), MGL_JSON_OPTIONAL_INT("none", 0, 1, &other),
        MGL_JSON_REAL("f", &f),       MGL_JSON_OPTIONAL_REAL("none", &f),
        MGL_JSON_BOOL("b", &b),       MGL_JSON_STRING("s", &s),
        MGL_JSON_OBJECT("o", &o),     MGL_JSON_ARRAY("a", &a)};
    ck_assert_int_eq(MGL_JSON_GET(&json, json.root, good, &err), MGL_OK);
    ck_assert_int_eq(i, 42);
    ck_assert_int_eq(other, -1);
    ck_assert(f == 0.5 && b);
    ck_assert_str_eq(s, "x");
    ck_assert_ptr_nonnull(mgl_json_member(o, "k"));
    ck_assert_int_eq(a->child->valueint, 7);
    const mgl_json_field bad[] = {MGL_JSON_INT("e", 0, 100, &i), MGL_JSON_INT("i", 43, 99, &i),
                                  MGL_JSON_INT("e", 0, 100, &other)};
    ck_assert_int_eq(MGL_JSON_GET(&json, json.root, bad, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "f.json: i");
    ck_assert_int_eq(i, 100);
    ck_assert_int_eq(other, -1);
    ck_assert_int_eq(mgl_json_check_schema(&json, "megalith.x/1", &err), MGL_BAD_INPUT);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(test_schema)
{
    static const struct {
        const char *text, *words;
    } rows[] = {{"{\"schema\": \"megalith.x/1\"}", NULL},
                {"{\"schema\": \"megalith.y/1\"}",
                 "its schema must be \"megalith.x/1\", not \"megalith.y/1\""},
                {"{\"schema\": \"secret\"}", "not another one"},
                {"{\"schema\": 1}", "a string"},
                {"[]", "must be a JSON object"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mgl_json json;
        mgl_error err = {0};
        ck_assert_int_eq(parse(rows[i].text, strlen(rows[i].text), &json, &err), MGL_OK);
        ck_assert_int_eq(mgl_json_check_schema(&json, "megalith.x/1", &err),
                         rows[i].words ? MGL_BAD_INPUT : MGL_OK);
        ck_assert_msg(!rows[i].words || strstr(err.message, rows[i].words), "%s", err.message);
        mgl_json_clear(&json);
    }
}
END_TEST

START_TEST(test_getters_reject)
{
    mgl_json json;
    mgl_error err;
    int64_t i = -1;
    double f;
    bool b;
    const char *s;
    const cJSON *object, *array;
    ck_assert_int_eq(parse(object_text, strlen(object_text), &json, &err), MGL_OK);
#define REFUSED(call, place, words)                                                                \
    do {                                                                                           \
        ck_assert_int_eq(call, MGL_BAD_INPUT);                                                     \
        ck_assert_str_eq(err.where, place);                                                        \
        ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);                      \
    } while (0)
    const cJSON *root = json.root;
    REFUSED(mgl_json_get_int(&json, root, "i", true, 0, 41, &i, &err), "f.json: i", "between");
    REFUSED(mgl_json_get_int(&json, root, "i", true, 43, 99, &i, &err), "f.json: i", "between");
    REFUSED(mgl_json_get_int(&json, root, "f", true, 0, 9, &i, &err), "f.json: f", "whole number");
    REFUSED(mgl_json_get_int(&json, root, "over", true, 0, INT64_MAX, &i, &err), "f.json: over",
            "between");
    REFUSED(mgl_json_get_int(&json, root, "s", false, 0, 9, &i, &err), "f.json: s", "a string");
    REFUSED(mgl_json_get_int(&json, root, "none", true, 0, 9, &i, &err), "f.json: none", "missing");
    REFUSED(mgl_json_get_int(&json, root, "n", true, 0, 9, &i, &err), "f.json: n", "null");
    REFUSED(mgl_json_get_double(&json, root, "b", true, &f, &err), "f.json: b", "a number");
    REFUSED(mgl_json_get_bool(&json, root, "i", true, &b, &err), "f.json: i", "true or false");
    REFUSED(mgl_json_get_string(&json, root, "i", true, &s, &err), "f.json: i", "a string");
    REFUSED(mgl_json_get_object(&json, root, "a", true, &object, &err), "f.json: a", "an object");
    ck_assert_int_eq(mgl_json_get_object(&json, root, "o", true, &object, &err), MGL_OK);
    REFUSED(mgl_json_get_array(&json, object, "k", true, &array, &err), "f.json: o.k", "an array");
    ck_assert_int_eq(mgl_json_get_array(&json, root, "a", true, &array, &err), MGL_OK);
    REFUSED(mgl_json_item_int(&json, array->child->next, "a[1]", 0, 9, &i, &err), "f.json: a[1]",
            "7.5");
    REFUSED(mgl_json_get_int(&json, array, "x", true, 0, 9, &i, &err), "f.json: a.x", "an array");
    ck_assert_int_eq(i, -1);
    mgl_json_clear(&json);
}
END_TEST

/* Every allocation fails once: the status is an error, and nothing leaks (checked by the
 * sanitizers). */
START_TEST(test_memory)
{
    static const char text[] = "{\"a\":[1,2,{\"s\":\"text\"}],\"1\":0,\"2\":0,\"3\":0,\"4\":0,"
                               "\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0}";
    mgl_json json;
    mgl_error err;
    mgl_status status = MGL_NO_MEMORY;
    uint64_t n = 0;
    while (status == MGL_NO_MEMORY) {
        n++;
        mgl_alloc_fail_at(n, n % 2);
        status = parse(text, sizeof text - 1, &json, &err);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_gt(n, 10);
    mgl_json_clear(&json);
}
END_TEST

/* ---- texts that hold U+0000 ------------------------------------------------------------------ */

static mgl_status read_texts(const char *content, mgl_json *json, mgl_error *err)
{
    *json = (mgl_json){0};
    return mgl_json_parse_values(content, strlen(content), 1 << 20, "texts", json, err);
}

static const struct zero_case {
    const char *file;
    const char *text;
    size_t length;
} zeros[] = {
    {"[\"a\\u0000b\"]", TEXT("a\0b")},
    {"[\"\\u0000\"]", TEXT("\0")},
    {"[\"\\u0000\\u0000\\u00001\"]", TEXT("\0\0\0"
                                          "1")},
    {"[\"\\\\u0000\"]", TEXT("\\u0000")}, /* a backslash, and five characters */
    {"[\"\\\\\\u0000\"]", TEXT("\\\0")},  /* a backslash, and U+0000 */
    {"[\"\\u00e0\\u0080x\"]", TEXT("\xC3\xA0\xC2\x80x")},
    {"[\"\"]", TEXT("")},
};

START_TEST(test_texts_hold_zeros)
{
    const struct zero_case *c = &zeros[_i];
    mgl_json json;
    mgl_error err;
    size_t length = 99;
    ck_assert_int_eq(read_texts(c->file, &json, &err), MGL_OK);
    const char *text = mgl_json_take_text(json.root->child, &length);
    ck_assert_uint_eq(length, c->length);
    ck_assert_mem_eq(text, c->text, length + 1);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(test_members_hold_zeros)
{
    mgl_json json;
    mgl_error err;
    const char *text;
    size_t length;
    ck_assert_int_eq(read_texts("{\"text\": \"a\\u0000\", \"n\": 1}", &json, &err), MGL_OK);
    ck_assert_int_eq(mgl_json_get_text(&json, json.root, "text", &text, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, 2);
    ck_assert_mem_eq(text, "a", 2);
    ck_assert_int_eq(mgl_json_get_text(&json, json.root, "n", &text, &length, &err), MGL_BAD_INPUT);
    mgl_json_clear(&json);
}
END_TEST

/* The placeholder of U+0000 in the tree cannot occur in a file, and keys cannot contain U+0000. */
START_TEST(test_texts_reject)
{
    static const char *const files[] = {"[\"\xC0\x80\"]", "{\"\\u0000\": 1}", "[\"\\u000\"]"};
    mgl_json json;
    mgl_error err;
    ck_assert_int_eq(read_texts(files[_i], &json, &err), MGL_BAD_INPUT);
}
END_TEST

/* Like a vocabulary: duplicate checks of 100,000 keys must not compare all pairs. */
/* Numbers keep their text, strings their zeros, objects their order. */
START_TEST(test_values_as_they_stand)
{
    static const char text[] = "{\"b\\\"1\": [1, 1.0, -0, 1e2, 123456789012345678901], \"a\": "
                               "{\"x\": -1.50e-3, \"y\": \"2\\u00003\", \"z\": true}, \"c\": 7}";
    static const char *const numbers[] = {"1", "1.0", "-0", "1e2", "123456789012345678901"};
    mgl_json json;
    mgl_error err;
    size_t i = 0, length;
    ck_assert_int_eq(mgl_json_parse_values(text, strlen(text), 1 << 20, "f.json", &json, &err),
                     MGL_OK);
    for (const cJSON *item = json.root->child->child; item; item = item->next)
        ck_assert_str_eq(item->valuestring, numbers[i++]);
    cJSON *inner = cJSON_GetObjectItem(json.root, "a");
    ck_assert_str_eq(inner->child->valuestring, "-1.50e-3");
    ck_assert_mem_eq(mgl_json_take_text(inner->child->next, &length), "2\0003", 4);
    ck_assert_uint_eq(length, 3);
    ck_assert_str_eq(inner->next->valuestring, "7");
    mgl_json_clear(&json);
    ck_assert_int_eq(mgl_json_parse_values(text, strlen(text), 10, "f.json", &json, &err),
                     MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_json_parse_values("[1,]", 4, 10, "f.json", &json, &err), MGL_BAD_INPUT);
    for (uint64_t n = 1; n < 60; n++) {
        mgl_alloc_fail_at(n, false);
        mgl_status status =
            mgl_json_parse_values(text, strlen(text), 1 << 20, "f.json", &json, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
        if (!status)
            mgl_json_clear(&json);
    }
}
END_TEST

/* A tree without the texts of its numbers. */
/* Numbers are printed in the shortest form that reads back equal, with a point in every locale. */
START_TEST(test_numbers_in_every_locale)
{
    static const char wanted[] = "[0.1,1e-05,100000,16777216,-2.5,null,0.1,1e-300,123456.5,null]";
    mgl_json_out out = {0};
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "de_DE"))
        printf("SKIPPED test_numbers_in_every_locale: no locale de_DE here\n");
    mgl_json_out_array(&out, NULL);
    mgl_json_out_float(&out, NULL, 0.1F);
    mgl_json_out_float(&out, NULL, 1e-5F);
    mgl_json_out_float(&out, NULL, 100000);
    mgl_json_out_float(&out, NULL, 16777216);
    mgl_json_out_float(&out, NULL, -2.5F);
    mgl_json_out_float(&out, NULL, NAN);
    mgl_json_out_double(&out, NULL, 0.1);
    mgl_json_out_double(&out, NULL, 1e-300);
    mgl_json_out_double(&out, NULL, 123456.5);
    mgl_json_out_double(&out, NULL, INFINITY);
    mgl_json_out_close_array(&out);
    setlocale(LC_ALL, "C");
    ck_assert_str_eq(out.text.bytes, wanted);
    mgl_text_clear(&out.text);
}
END_TEST

START_TEST(test_values_as_doubles)
{
    static const char text[] = "{\"a\":[1,-0.5,1e+30,\"x\",null,true],\"b\":{}}";
    mgl_json json;
    mgl_json_out out = {0};
    ck_assert_int_eq(mgl_json_parse(text, strlen(text), 1 << 20, "f.json", &json, NULL), MGL_OK);
    mgl_json_out_value(&out, NULL, json.root);
    ck_assert_str_eq(out.text.bytes, text);
    mgl_text_clear(&out.text);
    mgl_json_clear(&json);
}
END_TEST

START_TEST(test_many_keys)
{
    enum { KEYS = 100000 };
    mgl_json json;
    mgl_error err;
    char *text = malloc(KEYS * 16);
    size_t length = 0;
    for (int i = 0; i < KEYS; i++)
        length += (size_t)sprintf(text + length, "%s\"k%d\":%d", i ? "," : "{", i, i);
    text[length++] = '}';
    ck_assert_int_eq(mgl_json_parse(text, length, length, "f.json", &json, &err), MGL_OK);
    mgl_json_clear(&json);
    length--;
    length += (size_t)sprintf(text + length, ",\"k77\":0}");
    ck_assert_int_eq(mgl_json_parse(text, length, length, "f.json", &json, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "k77"));
    free(text);
}
END_TEST

/* The tree of such a text would need a hundred times its bytes. */
START_TEST(test_too_many_values)
{
    const size_t values = 1 << 24, length = 2 * values + 1;
    mgl_json json;
    mgl_error err;
    char *text = malloc(length);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < length; i++)
        text[i] = i % 2 ? '0' : ',';
    text[0] = '[';
    text[length - 1] = ']';
    ck_assert_int_eq(mgl_json_parse(text, length, length, "f.json", &json, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "16,777,216 values"));
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *cases = tcase_create("json");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, test_accepts, 0, sizeof accepted / sizeof *accepted);
    tcase_add_loop_test(cases, test_rejects, 0, sizeof refused / sizeof *refused);
    tcase_add_test(cases, test_depth);
    tcase_add_test(cases, test_cap);
    tcase_add_test(cases, test_getters);
    tcase_add_test(cases, test_getters_reject);
    tcase_add_test(cases, test_memory);
    tcase_add_loop_test(cases, test_texts_hold_zeros, 0, sizeof zeros / sizeof *zeros);
    tcase_add_test(cases, test_members_hold_zeros);
    tcase_add_loop_test(cases, test_texts_reject, 0, 3);
    tcase_add_test(cases, test_values_as_they_stand);
    tcase_add_test(cases, test_fields);
    tcase_add_test(cases, test_schema);
    tcase_add_test(cases, test_numbers_in_every_locale);
    tcase_add_test(cases, test_values_as_doubles);
    tcase_add_test(cases, test_many_keys);
    tcase_add_test(cases, test_too_many_values);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
