/*
 * Renders a template: mgl_jinja_render takes a parsed template and the variables as JSON, and
 * returns the text. chat.c calls it. Also has the scopes and the limits of a rendering (render.h).
 * Each evaluated node costs a step, and so do every 64 bytes of text that are read or written.
 */
#include "importer/chat/render.h"

#include "base/format.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 64 }; /* bytes of text that cost as much as a node */

/* ---- errors ---------------------------------------------------------------------------------- */

bool mgl_render_fail(mgl_render *r, const char *format, ...)
{
    char message[1000];
    va_list args;
    if (r->status) /* keep the first error */
        return false;
    va_start(args, format);
    mgl_format_list(message, sizeof message, format, args);
    va_end(args);
    size_t from = r->at ? r->at->from : 0, to = r->at ? r->at->to : 0;
    r->status = mgl_jinja_fail(r->jinja, from, to, r->err, message);
    return false;
}

bool mgl_render_fail_undefined(mgl_render *r, mgl_value value)
{
    char why[300];
    mgl_missing_tell(value.missing, why, sizeof why);
    return mgl_render_fail(r, "%s", why);
}

/* ---- limits ---------------------------------------------------------------------------------- */

void *mgl_render_take(mgl_render *r, size_t bytes)
{
    void *taken = r->status ? NULL : mgl_arena_take(&r->memory, bytes);
    if (taken || r->status)
        return taken;
    if (r->memory.full)
        mgl_render_fail(r, "the template takes more than %d bytes of memory", MGL_JINJA_MEMORY);
    else
        r->status = mgl_fail_memory(r->err, bytes);
    return NULL;
}

bool mgl_render_grow(mgl_render *r, void **items, size_t *capacity, size_t count, size_t size)
{
    size_t wanted = *capacity ? *capacity * 2 : 4;
    if (wanted > SIZE_MAX / 2 / size)
        return mgl_render_fail(r, "the template takes more than %d bytes of memory",
                               MGL_JINJA_MEMORY);
    void *grown = mgl_render_take(r, wanted * size);
    if (!grown)
        return false;
    if (count)
        memcpy(grown, *items, count * size);
    *items = grown;
    *capacity = wanted;
    return true;
}

bool mgl_render_spend(mgl_render *r, size_t bytes)
{
    bool enough = bytes < (size_t)INT64_MAX && (r->steps -= (int64_t)bytes) > 0;
    if (enough)
        return !r->status;
    r->steps = 0;
    return mgl_render_fail(r, "the template takes more than %d steps", MGL_JINJA_STEPS);
}

bool mgl_render_enter(mgl_render *r)
{
    if (++r->depth > MGL_JINJA_DEPTH)
        return mgl_render_fail(r, "more than %d parts within parts; does a macro call itself?",
                               MGL_JINJA_DEPTH);
    return mgl_render_spend(r, STEP);
}

/* ---- scopes ---------------------------------------------------------------------------------- */

mgl_scope *mgl_scope_new(mgl_render *r, mgl_scope *parent)
{
    mgl_scope *scope = mgl_render_take(r, sizeof *scope);
    if (scope)
        *scope = (mgl_scope){.parent = parent};
    return scope;
}

static mgl_value *find_in(const mgl_scope *scope, uint32_t name)
{
    for (size_t i = 0; i < scope->count; i++)
        if (scope->items[i].name == name)
            return &scope->items[i].value;
    return NULL;
}

bool mgl_scope_set(mgl_render *r, mgl_scope *scope, uint32_t name, mgl_value value)
{
    mgl_value *there = find_in(scope, name);
    if (!mgl_render_spend(r, scope->count))
        return false;
    if (there) {
        *there = value;
        return true;
    }
    void *items = scope->items;
    if (scope->count == scope->capacity &&
        !mgl_render_grow(r, &items, &scope->capacity, scope->count, sizeof *scope->items))
        return false;
    scope->items = items;
    scope->items[scope->count++] = (mgl_binding){name, value};
    return true;
}

const mgl_value *mgl_scope_find(mgl_render *r, const mgl_scope *scope, uint32_t name)
{
    for (; scope; scope = scope->parent) {
        const mgl_value *there = find_in(scope, name);
        if (!mgl_render_spend(r, scope->count))
            return NULL;
        if (there)
            return there;
    }
    return NULL;
}

/* ---- variables from JSON --------------------------------------------------------------------- */

static bool from_json(mgl_render *r, cJSON *json, mgl_value *out);

static bool number_from_json(mgl_render *r, const cJSON *json, mgl_value *out)
{
    const char *text = json->valuestring;
    if (!text || strpbrk(text, ".eE")) {
        *out = mgl_real(json->valuedouble);
        return true;
    }
    errno = 0;
    *out = mgl_integer(strtoll(text, NULL, 10));
    if (!errno)
        return true;
    *out = (mgl_value){.kind = MGL_VALUE_LARGE, .string = mgl_string_share(r, text, strlen(text))};
    return out->string != NULL;
}

static bool list_from_json(mgl_render *r, cJSON *json, mgl_value *out)
{
    mgl_list *list = mgl_list_new(r, (size_t)cJSON_GetArraySize(json));
    for (cJSON *item = json->child; list && item; item = item->next) {
        mgl_value value;
        if (!from_json(r, item, &value) || !mgl_list_add(r, list, value))
            return false;
    }
    *out = mgl_of_list(list);
    return list != NULL;
}

static bool dict_from_json(mgl_render *r, cJSON *json, mgl_value *out)
{
    mgl_dict *dict = mgl_dict_new(r, (size_t)cJSON_GetArraySize(json));
    for (cJSON *item = json->child; dict && item; item = item->next) {
        mgl_value key, value;
        if (!mgl_string_value(r, item->string, strlen(item->string), &key) ||
            !from_json(r, item, &value) || !mgl_dict_add(r, dict, key, value))
            return false;
    }
    *out = mgl_of_dict(dict);
    return dict != NULL;
}

/* Converts a JSON tree. Its strings are shared, because the tree outlives the rendering. */
static bool from_json(mgl_render *r, cJSON *json, mgl_value *out)
{
    const char *text;
    size_t length;
    switch (json->type & 0xFF) {
    case cJSON_False:
    case cJSON_True:
        *out = mgl_bool(cJSON_IsTrue(json));
        return true;
    case cJSON_Number:
        return number_from_json(r, json, out);
    case cJSON_String:
        text = mgl_json_take_text(json, &length);
        return mgl_string_value(r, text, length, out);
    case cJSON_Array:
        return list_from_json(r, json, out);
    case cJSON_Object:
        return dict_from_json(r, json, out);
    default:
        *out = mgl_none();
        return true;
    }
}

/* Sets the variables whose names occur in the template. */
static bool set_variables(mgl_render *r, cJSON *variables)
{
    for (cJSON *item = variables->child; item; item = item->next) {
        uint32_t name = mgl_jinja_find_symbol(r->jinja, item->string, strlen(item->string));
        mgl_value value;
        if (name == UINT32_MAX)
            continue;
        if (!from_json(r, item, &value) || !mgl_scope_set(r, r->scope, name, value))
            return false;
    }
    return true;
}

/* ---- rendering ------------------------------------------------------------------------------- */

mgl_status mgl_jinja_render(const mgl_jinja *jinja, cJSON *variables, char **out, size_t *length,
                            mgl_error *err)
{
    mgl_sink sink = {0};
    mgl_scope scope = {0};
    mgl_render r = {.jinja = jinja,
                    .memory.limit = MGL_JINJA_MEMORY,
                    .steps = (int64_t)MGL_JINJA_STEPS * STEP,
                    .scope = &scope,
                    .sink = &sink,
                    .err = err};
    *out = NULL;
    *length = 0;
    bool good = set_variables(&r, variables) && mgl_execute(&r, jinja->body);
    if (good) {
        *out = mgl_strndup(sink.length ? sink.bytes : "", sink.length);
        *length = sink.length;
        if (!*out)
            r.status = mgl_fail_memory(err, sink.length);
    }
    mgl_arena_clear(&r.memory);
    return r.status;
}
