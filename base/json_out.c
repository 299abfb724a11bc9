/* Writes JSON into a growing text. See json_out.h. */
#include "base/json_out.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

static void put_quoted(mgl_json_out *out, const char *text, size_t length)
{
    mgl_text valid = {0};
    mgl_utf8_repair(text, length, &valid);
    out->text.failed |= valid.failed;
    mgl_text_put(&out->text, "\"");
    for (size_t i = 0; i < valid.length; i++) {
        char c = valid.bytes[i];
        if (c == '"' || c == '\\')
            mgl_text_format(&out->text, "\\%c", c);
        else if (c == '\n')
            mgl_text_put(&out->text, "\\n");
        else if ((unsigned char)c < 0x20 || c == 0x7F)
            mgl_text_format(&out->text, "\\u%04x", (unsigned)(unsigned char)c);
        else
            mgl_text_append(&out->text, &c, 1);
    }
    mgl_text_put(&out->text, "\"");
    mgl_text_clear(&valid);
}

/* Writes what precedes a value: a comma, and the key within an object. */
static void start_item(mgl_json_out *out, const char *key)
{
    if (out->comma)
        mgl_text_put(&out->text, ",");
    if (key) {
        put_quoted(out, key, strlen(key));
        mgl_text_put(&out->text, ":");
    }
    out->comma = true;
}

static void open_group(mgl_json_out *out, const char *key, const char *bracket)
{
    start_item(out, key);
    mgl_text_put(&out->text, bracket);
    out->comma = false;
}

static void close_group(mgl_json_out *out, const char *bracket)
{
    mgl_text_put(&out->text, bracket);
    out->comma = true;
}

void mgl_json_out_begin(mgl_json_out *out, const char *schema)
{
    open_group(out, NULL, "{");
    mgl_json_out_string(out, "schema", schema);
}

void mgl_json_out_close(mgl_json_out *out)
{
    close_group(out, "}");
}

void mgl_json_out_object(mgl_json_out *out, const char *key)
{
    open_group(out, key, "{");
}

void mgl_json_out_close_object(mgl_json_out *out)
{
    close_group(out, "}");
}

void mgl_json_out_array(mgl_json_out *out, const char *key)
{
    open_group(out, key, "[");
}

void mgl_json_out_close_array(mgl_json_out *out)
{
    close_group(out, "]");
}

void mgl_json_out_string(mgl_json_out *out, const char *key, const char *value)
{
    if (value)
        mgl_json_out_text(out, key, value, strlen(value));
    else
        mgl_json_out_null(out, key);
}

void mgl_json_out_text(mgl_json_out *out, const char *key, const char *text, size_t length)
{
    start_item(out, key);
    put_quoted(out, text, length);
}

void mgl_json_out_int(mgl_json_out *out, const char *key, int64_t value)
{
    start_item(out, key);
    mgl_text_format(&out->text, "%lld", (long long)value);
}

void mgl_json_out_real(mgl_json_out *out, const char *key, double value)
{
    if (!isfinite(value)) {
        mgl_json_out_null(out, key);
        return;
    }
    start_item(out, key);
    mgl_text_format(&out->text, "%.10g", value);
}

void mgl_json_out_float(mgl_json_out *out, const char *key, float value)
{
    start_item(out, key);
    if (isfinite(value))
        mgl_text_put_float(&out->text, value, 6);
    else
        mgl_text_put(&out->text, "null");
}

void mgl_json_out_double(mgl_json_out *out, const char *key, double value)
{
    start_item(out, key);
    if (isfinite(value))
        mgl_text_put_double(&out->text, value, 15);
    else
        mgl_text_put(&out->text, "null");
}

void mgl_json_out_bool(mgl_json_out *out, const char *key, bool value)
{
    start_item(out, key);
    mgl_text_put(&out->text, value ? "true" : "false");
}

void mgl_json_out_null(mgl_json_out *out, const char *key)
{
    start_item(out, key);
    mgl_text_put(&out->text, "null");
}

static void put_members(mgl_json_out *out, cJSON *group)
{
    for (cJSON *item = group->child; item; item = item->next)
        mgl_json_out_value(out, item->string, item);
}

void mgl_json_out_value(mgl_json_out *out, const char *key, cJSON *value)
{
    size_t length;
    if (cJSON_IsString(value)) {
        const char *text = mgl_json_take_text(value, &length);
        mgl_json_out_text(out, key, text, length);
    } else if (cJSON_IsNumber(value) && value->valuestring) {
        start_item(out, key);
        mgl_text_put(&out->text, value->valuestring);
    } else if (cJSON_IsNumber(value)) {
        mgl_json_out_double(out, key, value->valuedouble);
    } else if (cJSON_IsObject(value)) {
        mgl_json_out_object(out, key);
        put_members(out, value);
        mgl_json_out_close_object(out);
    } else if (cJSON_IsArray(value)) {
        mgl_json_out_array(out, key);
        put_members(out, value);
        mgl_json_out_close_array(out);
    } else if (cJSON_IsBool(value)) {
        mgl_json_out_bool(out, key, cJSON_IsTrue(value));
    } else {
        mgl_json_out_null(out, key);
    }
}

void mgl_json_out_ids(mgl_json_out *out, const char *key, const int32_t *ids, size_t count)
{
    mgl_json_out_array(out, key);
    for (size_t i = 0; i < count; i++)
        mgl_json_out_int(out, NULL, ids[i]);
    mgl_json_out_close_array(out);
}
