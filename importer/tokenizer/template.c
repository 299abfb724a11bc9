/*
 * Post-processors: where the tokenizer's own special tokens are inserted. They run once, when the
 * file is read, on a placeholder for the text (MGL_TEMPLATE_TEXT). The results are two flat lists,
 * one with the special tokens and one without. Encoding inserts the text's ids into one of them.
 *
 * As in Hugging Face's tokenizers, a processor takes a list of encodings and makes a new list. A
 * template depends on the number of encodings: one is a single text, two are a pair.
 */
#include "importer/tokenizer/tokenizer.h"

#include "base/memory.h"

#include <string.h>

#define MAX_ITEMS 65536 /* ids in a template */
#define MAX_DEPTH 16

/* A flat list of encodings: all ids, and where each encoding ends. */
typedef struct encodings {
    mgl_id_list ids;
    size_t *ends; /* (count) */
    size_t count, capacity;
} encodings;

typedef struct expander {
    const mgl_json *json;
    bool special; /* insert special tokens */
    int depth;
    mgl_error *err;
} expander;

static void clear_encodings(encodings *list)
{
    mgl_free(list->ids.ids);
    mgl_free(list->ends);
    *list = (encodings){0};
}

static mgl_status bad(expander *x, const char *message)
{
    return mgl_fail(x->err, MGL_BAD_INPUT, x->json->file, "post-processor: %s", message);
}

static mgl_status append_id(expander *x, encodings *list, int32_t id)
{
    if (list->ids.count >= MAX_ITEMS)
        return bad(x, "a template makes more than 65,536 tokens");
    if (!mgl_id_list_reserve(&list->ids, 1))
        return mgl_fail_memory(x->err, sizeof id);
    list->ids.ids[list->ids.count++] = id;
    return MGL_OK;
}

/* Ends the current encoding. */
static mgl_status end_encoding(expander *x, encodings *list)
{
    if (!mgl_grow((void **)&list->ends, &list->capacity, list->count, sizeof *list->ends))
        return mgl_fail_memory(x->err, sizeof *list->ends);
    list->ends[list->count++] = list->ids.count;
    return MGL_OK;
}

/* Expands {"Sequence": {"id": "A"}}. */
static mgl_status put_sequence(expander *x, const cJSON *piece, const encodings *in, encodings *out)
{
    const char *id;
    mgl_status status = mgl_json_get_string(x->json, piece, "id", true, &id, x->err);
    if (status)
        return status;
    if (strcmp(id, "A") != 0 && strcmp(id, "B") != 0)
        return bad(x, "a sequence of a template must be A or B");
    size_t which = *id == 'B';
    if (which >= in->count)
        return bad(x, "a template for a single text uses sequence B");
    for (size_t i = which ? in->ends[0] : 0; i < in->ends[which] && !status; i++)
        status = append_id(x, out, in->ids.ids[i]);
    return status ? status : end_encoding(x, out);
}

/* Expands {"SpecialToken": {"id": "<s>"}}, whose ids are in special_tokens. */
static mgl_status put_special(expander *x, const cJSON *template, const cJSON *piece,
                              encodings *out)
{
    const cJSON *tokens, *token, *ids;
    const char *name;
    mgl_status status = mgl_json_get_string(x->json, piece, "id", true, &name, x->err);
    if (!status)
        status = mgl_json_get_object(x->json, template, "special_tokens", true, &tokens, x->err);
    if (status)
        return status;
    token = mgl_json_member(tokens, name);
    if (!cJSON_IsObject(token))
        return mgl_fail(x->err, MGL_BAD_INPUT, x->json->file,
                        "post-processor: special_tokens lacks \"%.100s\", which the template uses",
                        name);
    status = mgl_json_get_array(x->json, token, "ids", true, &ids, x->err);
    for (const cJSON *item = status ? NULL : ids->child; item && !status; item = item->next) {
        int64_t id;
        status = mgl_json_item_int(x->json, item, "ids of a special token", 0, MGL_VOCAB_MAX_ID,
                                   &id, x->err);
        if (!status && x->special)
            status = append_id(x, out, (int32_t)id);
    }
    return status || !x->special ? status : end_encoding(x, out);
}

static mgl_status expand_template(expander *x, const cJSON *value, encodings *list)
{
    const cJSON *pieces, *piece;
    encodings made = {0};
    if (list->count < 1 || list->count > 2)
        return bad(x, "a template behind another one sees neither a text nor a pair");
    mgl_status status = mgl_json_get_array(x->json, value, list->count == 1 ? "single" : "pair",
                                           true, &pieces, x->err);
    for (const cJSON *item = status ? NULL : pieces->child; item && !status; item = item->next) {
        const cJSON *special = cJSON_IsObject(item) ? mgl_json_member(item, "SpecialToken") : NULL;
        piece = cJSON_IsObject(item) ? mgl_json_member(item, "Sequence") : NULL;
        if (cJSON_IsObject(piece))
            status = put_sequence(x, piece, list, &made);
        else if (cJSON_IsObject(special))
            status = put_special(x, value, special, &made);
        else
            status = bad(x, "a piece of a template is neither Sequence nor SpecialToken");
    }
    if (status) {
        clear_encodings(&made);
        return status;
    }
    clear_encodings(list);
    *list = made;
    return MGL_OK;
}

static mgl_status expand(expander *x, const cJSON *value, encodings *list)
{
    const char *type;
    const cJSON *processors;
    if (!cJSON_IsObject(value))
        return bad(x, "a component must be an object");
    mgl_status status = mgl_json_get_string(x->json, value, "type", true, &type, x->err);
    if (status)
        return status;
    if (!strcmp(type, "ByteLevel")) /* changes offsets only */
        return MGL_OK;
    if (!strcmp(type, "TemplateProcessing"))
        return expand_template(x, value, list);
    if (strcmp(type, "Sequence") != 0)
        return mgl_fail(x->err, MGL_BAD_INPUT, x->json->file,
                        "the post-processor \"%.100s\" is not supported", type);
    if (++x->depth > MAX_DEPTH)
        return bad(x, "sequences are nested too deeply");
    status = mgl_json_get_array(x->json, value, "processors", true, &processors, x->err);
    for (const cJSON *item = status ? NULL : processors->child; item && !status; item = item->next)
        status = expand(x, item, list);
    x->depth--;
    return status;
}

static mgl_status make_list(const mgl_json *json, const cJSON *value, bool special,
                            mgl_id_list *out, mgl_error *err)
{
    expander x = {json, special, 0, err};
    encodings list = {0};
    mgl_status status = append_id(&x, &list, MGL_TEMPLATE_TEXT);
    if (!status)
        status = end_encoding(&x, &list);
    if (!status && value)
        status = expand(&x, value, &list);
    if (!status) {
        *out = list.ids;
        list.ids = (mgl_id_list){0};
    }
    clear_encodings(&list);
    return status;
}

mgl_status mgl_tokenizer_load_template(mgl_tokenizer *tokenizer, const mgl_json *json,
                                       const cJSON *value, mgl_error *err)
{
    mgl_status status = make_list(json, value, false, &tokenizer->plain, err);
    return status ? status : make_list(json, value, true, &tokenizer->special, err);
}
