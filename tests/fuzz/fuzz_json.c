/*
 * Fuzz target of the JSON reader. The bytes must be rejected with a position, or give a tree that
 * is equal after printing and reading. Seeds: any *.json of the tests.
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Calls every getter on every member, whatever its type. */
static void get_all(const mgl_json *json, const cJSON *object)
{
    mgl_error err;
    for (const cJSON *item = object->child; item; item = item->next) {
        int64_t whole;
        double number;
        bool flag;
        const char *text;
        const cJSON *node;
        mgl_status status = mgl_json_item_int(json, item, "item", -5, 1 << 20, &whole, &err);
        require(status == MGL_BAD_INPUT || (whole >= -5 && whole <= 1 << 20));
        if (cJSON_IsObject(object)) {
            require(mgl_json_member(object, item->string) == item);
            mgl_json_get_int(json, object, item->string, true, 0, INT64_MAX, &whole, &err);
            mgl_json_get_double(json, object, item->string, false, &number, &err);
            mgl_json_get_bool(json, object, item->string, true, &flag, &err);
            mgl_json_get_string(json, object, item->string, false, &text, &err);
            mgl_json_get_object(json, object, item->string, true, &node, &err);
            mgl_json_get_array(json, object, item->string, true, &node, &err);
        }
        get_all(json, item);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mgl_json json, again;
    mgl_error err = {0};
    if (mgl_json_parse((const char *)data, size, 1 << 20, "fuzz.json", &json, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0] && err.where[0]);
        return 0;
    }
    if (size < 2000) /* a failing getter computes its path, which is quadratic in the size of the
                        tree */
        get_all(&json, json.root);
    char *printed = cJSON_PrintUnformatted(json.root);
    require(printed != NULL);
    require(!mgl_json_parse(printed, strlen(printed), SIZE_MAX, "again.json", &again, &err));
    require(cJSON_Compare(json.root, again.root, true));
    cJSON_free(printed);
    mgl_json_clear(&again);
    mgl_json_clear(&json);
    return 0;
}
