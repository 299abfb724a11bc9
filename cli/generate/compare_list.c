/* Implements compare_list.h. */
#include "cli/generate/compare_list.h"

#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_GROUP = 128, MAX_NAME = 64 };

static const char *const dtypes[] = {"f32", "bf16", "f16"};

static const struct {
    const char *name, *head;
    mgl_weight_format format;
} codes[] = {{"int8", "head8", {.code = MGL_CODE_INT8, .group_rows = 1}},
             {"int4", "head4", {.code = MGL_CODE_INT4, .group_rows = 1, .group = DEFAULT_GROUP}},
             {"fp8", "headfp8", {.code = MGL_CODE_E4M3, .group_rows = 1}}};
enum { CODES = sizeof codes / sizeof *codes };

/* Parses the number of "g64". */
static bool parse_group(const char *word, int32_t *out)
{
    char *end;
    const long group =
        word[0] == 'g' && word[1] >= '1' && word[1] <= '9' ? strtol(word + 1, &end, 10) : 0;
    *out = group > 0 && group <= MGL_MAX_WEIGHT_GROUP ? (int32_t)group : 0;
    return group > 0 && !*end && group <= MGL_MAX_WEIGHT_GROUP && group % MGL_GROUP_UNIT == 0;
}

/* What the words of a name say. -1: nothing. */
typedef struct words {
    int code, head;
    int32_t group;
    bool asym, has_method;
    mgl_quantize_method method;
} words;

static bool parse_word(const char *word, words *w)
{
    int32_t group;
    for (int i = 0; i < CODES; i++)
        if (!strcmp(word, codes[i].head)) {
            const bool first = w->head < 0;
            w->head = i;
            return first;
        }
    if (!w->has_method && mgl_quantize_method_parse(word, &w->method)) {
        w->has_method = true;
        return true;
    }
    if (!strcmp(word, "asym") && !w->asym && codes[w->code].format.code != MGL_CODE_E4M3) {
        w->asym = true;
        return true;
    }
    if (w->group >= 0)
        return false;
    if (!strcmp(word, "row")) {
        w->group = MGL_GROUP_ALL;
        return true;
    }
    if (!parse_group(word, &group))
        return false;
    w->group = group;
    return true;
}

static mgl_weight_format format_of(const words *w, int code)
{
    mgl_weight_format format = codes[code].format;
    if (w->group >= 0)
        format.group = w->group;
    format.zeros = w->asym && format.code != MGL_CODE_E4M3;
    return format;
}

/* Parses "int4-g64-head8". */
static bool parse_quantized(const char *name, mgl_quantize_request *out)
{
    char copy[MAX_NAME], *rest;
    words w = {.code = -1, .head = -1, .group = -1};
    const size_t length = strlen(name);
    if (length >= sizeof copy || name[length - 1] == '-' || strstr(name, "--"))
        return false;
    memcpy(copy, name, length + 1);
    const char *word = strtok_r(copy, "-", &rest);
    for (int i = 0; i < CODES && word; i++)
        w.code = !strcmp(word, codes[i].name) ? i : w.code;
    if (w.code < 0)
        return false;
    while ((word = strtok_r(NULL, "-", &rest)))
        if (!parse_word(word, &w))
            return false;
    *out = (mgl_quantize_request){
        .method = w.method, .layers = format_of(&w, w.code), .own_scales = true};
    if (w.head >= 0)
        out->head = format_of(&w, w.head);
    return true;
}

static mgl_status parse_item(mgl_cli_compared *item, mgl_error *err)
{
    bool stands;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(item->name, dtypes[i]))
            item->dtype = dtypes[i];
    if (item->dtype || parse_quantized(item->name, &item->request))
        return MGL_OK;
    mgl_status status = mgl_file_stands(item->name, &stands, err);
    if (status)
        return status;
    if (!stands && !strchr(item->name, '/'))
        return mgl_fail(err, MGL_USAGE, "--compare",
                        "unknown format: \"%.60s\"; allowed: " MGL_CLI_COMPARED_FORMATS
                        "; or the path of a checkpoint",
                        item->name);
    item->is_path = true;
    return mgl_model_find(item->name, &item->path, err);
}

static mgl_status add_item(mgl_cli_compare_list *list, const char *name, size_t length,
                           mgl_error *err)
{
    if (!mgl_grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return mgl_fail_memory(err, sizeof *list->items);
    mgl_cli_compared *item = &list->items[list->count];
    *item = (mgl_cli_compared){.name = mgl_alloc(length + 1)};
    if (!item->name)
        return mgl_fail_memory(err, length + 1);
    memcpy(item->name, name, length);
    item->name[length] = 0;
    list->count++;
    return parse_item(item, err);
}

mgl_status mgl_cli_compare_list_parse(const char *text, mgl_cli_compare_list *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (bool more = true; more && !status;) {
        const size_t length = strcspn(text, ",");
        if (!length)
            return mgl_fail(err, MGL_USAGE, "--compare",
                            "has an empty name; give formats separated by commas: "
                            "bf16,int8,int4-g128");
        status = add_item(out, text, length, err);
        more = text[length] == ',';
        text += length + more;
    }
    return status;
}

void mgl_cli_compare_list_clear(mgl_cli_compare_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        mgl_free(list->items[i].name);
        mgl_free(list->items[i].path);
    }
    mgl_free(list->items);
    *list = (mgl_cli_compare_list){0};
}
