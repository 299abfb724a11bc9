/* Collects the declared tokens of a tokenizer's files in Transformers' order. See declared.h. */
#include "importer/tokenizer/declared.h"

#include "base/memory.h"
#include "importer/tokenizer/vocab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ID    ((int64_t)1 << 53) /* of ids in the files; they only define the order */
#define MAX_NAMES 4096

/* A token with its key or its id in the file. */
typedef struct item {
    const char *key; /* of a named token */
    int64_t id;      /* of added_tokens_decoder and of added_tokens.json */
    size_t order;    /* order of reading */
    mgl_declared_token token;
    bool set;     /* false: a standard name without a token */
    bool counted; /* the same text in added_tokens.json is special too */
} item;

typedef struct list {
    item *items; /* (count) */
    size_t count, capacity;
} list;

/* The standard named tokens, in Transformers' order. */
static const char *const standard[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
enum { STANDARD = sizeof standard / sizeof *standard };

typedef struct reader {
    const mgl_tokenizer_files *files;
    bool llama;
    list named;              /* the standard names, then other names of AddedToken objects */
    list specific;           /* names of this model; added last, they override */
    list extra;              /* tokens without a name */
    bool has_extra;          /* the key extra_special_tokens exists */
    const cJSON *additional; /* additional_special_tokens, if nothing replaced it; or NULL */
    const mgl_json *additional_in;
    list decoder; /* tokens with ids */
    mgl_error *err;
} reader;

static mgl_status fail_value(const reader *r, const mgl_json *json, const char *key)
{
    return mgl_fail(r->err, MGL_BAD_INPUT, json->file,
                    "%.100s must be a text, or an object whose content is a text", key);
}

static mgl_status append(const reader *r, list *to, item value)
{
    if (!mgl_grow((void **)&to->items, &to->capacity, to->count, sizeof value))
        return mgl_fail_memory(r->err, sizeof value);
    value.order = to->count;
    to->items[to->count++] = value;
    return MGL_OK;
}

/* Replaces the item of this key, or appends it. */
static mgl_status set(const reader *r, list *to, item value)
{
    for (size_t i = 0; i < to->count; i++) {
        if (!strcmp(to->items[i].key, value.key)) {
            value.order = i;
            to->items[i] = value;
            return MGL_OK;
        }
    }
    if (to->count >= MAX_NAMES)
        return mgl_fail(r->err, MGL_BAD_INPUT, r->files->config.file,
                        "too many keys that end in _token; supported: %d", MAX_NAMES);
    return append(r, to, value);
}

/* Reads a token: a string, or an object with flags. */
static mgl_status read_token(const reader *r, const mgl_json *json, const cJSON *value,
                             const char *key, item *out)
{
    mgl_declared_token *token = &out->token;
    *out = (item){.key = key, .set = true};
    if (cJSON_IsString(value)) {
        *token = (mgl_declared_token){.content = value->valuestring, .special = true};
        return MGL_OK;
    }
    const cJSON *content = cJSON_IsObject(value) ? mgl_json_member(value, "content") : NULL;
    if (!cJSON_IsString(content))
        return fail_value(r, json, key);
    const cJSON *normalized = mgl_json_member(value, "normalized");
    token->content = content->valuestring;
    token->normalized_given = normalized && !cJSON_IsNull(normalized);
    mgl_status status =
        mgl_json_get_bool(json, value, "single_word", false, &token->single_word, r->err);
    if (!status)
        status = mgl_json_get_bool(json, value, "lstrip", false, &token->lstrip, r->err);
    if (!status)
        status = mgl_json_get_bool(json, value, "rstrip", false, &token->rstrip, r->err);
    if (!status)
        status = mgl_json_get_bool(json, value, "normalized", false, &token->normalized, r->err);
    if (!status)
        status = mgl_json_get_bool(json, value, "special", false, &token->special, r->err);
    return status;
}

static bool is_token_object(const cJSON *value)
{
    const cJSON *type = cJSON_IsObject(value) ? mgl_json_member(value, "__type") : NULL;
    return cJSON_IsString(type) && !strcmp(type->valuestring, "AddedToken");
}

static int find_standard(const char *key)
{
    for (int i = 0; i < STANDARD; i++)
        if (!strcmp(key, standard[i]))
            return i;
    return -1;
}

/* Sets a standard name; null removes its token. */
static mgl_status set_standard(const reader *r, const mgl_json *json, const cJSON *value, int name,
                               bool special)
{
    item made = {.key = standard[name]};
    mgl_status status =
        cJSON_IsNull(value) ? MGL_OK : read_token(r, json, value, standard[name], &made);
    made.token.special |= special;
    made.counted = special || cJSON_IsString(value);
    if (!status)
        r->named.items[name] = made;
    return status;
}

static mgl_status set_named(const reader *r, list *to, const mgl_json *json, const cJSON *value,
                            bool special)
{
    item made;
    mgl_status status = read_token(r, json, value, value->string, &made);
    made.token.special |= special;
    return status ? status : set(r, to, made);
}

/* Reads the members of an object as named tokens. */
static mgl_status set_members(reader *r, list *to, const mgl_json *json, const cJSON *object)
{
    mgl_status status = MGL_OK;
    for (const cJSON *value = object->child; value && !status; value = value->next)
        status = set_named(r, to, json, value, false);
    return status;
}

/* Reads the elements of a list as tokens without a name. All are special, except AddedToken
 * objects with a false flag; with `special`, those too. */
static mgl_status add_elements(reader *r, const mgl_json *json, const cJSON *array, bool special)
{
    item made;
    mgl_status status = MGL_OK;
    for (const cJSON *value = array->child; value && !status; value = value->next) {
        status = read_token(r, json, value, array->string, &made);
        made.token.special |= special || !is_token_object(value);
        made.counted = special || cJSON_IsString(value);
        if (!status)
            status = append(r, &r->extra, made);
    }
    return status;
}

static mgl_status fail_extra(const reader *r, const mgl_json *json, const char *key)
{
    return mgl_fail(r->err, MGL_BAD_INPUT, json->file,
                    "%s is neither a list of tokens nor an object of them", key);
}

/* Returns whether the value is falsy in Python. */
static bool is_empty(const cJSON *value)
{
    return !value || cJSON_IsNull(value) || cJSON_IsFalse(value) ||
           ((cJSON_IsArray(value) || cJSON_IsObject(value)) && !value->child) ||
           (cJSON_IsString(value) && !*value->valuestring);
}

/* ---- tokenizer_config.json ------------------------------------------------------------------- */

static mgl_status read_config_extra(reader *r)
{
    const mgl_json *json = &r->files->config;
    const cJSON *extra = mgl_json_member(json->root, "extra_special_tokens");
    const cJSON *additional = mgl_json_member(json->root, "additional_special_tokens");
    const cJSON *specific = mgl_json_member(json->root, "model_specific_special_tokens");
    mgl_status status = MGL_OK;
    if (additional && is_empty(extra)) {
        extra = additional;
        additional = NULL;
    }
    r->additional = additional;
    r->additional_in = json;
    r->has_extra = extra && !cJSON_IsObject(extra);
    if (cJSON_IsObject(extra))
        status = set_members(r, &r->specific, json, extra);
    else if (cJSON_IsArray(extra))
        status = add_elements(r, json, extra, false);
    else if (extra && !cJSON_IsNull(extra))
        return fail_extra(r, json, extra->string);
    if (!status && !r->specific.count && cJSON_IsObject(specific))
        status = set_members(r, &r->specific, json, specific);
    return status;
}

static mgl_status read_config(reader *r)
{
    const mgl_json *json = &r->files->config;
    mgl_status status = MGL_OK;
    for (const cJSON *value = json->root->child; value && !status; value = value->next) {
        int name = find_standard(value->string);
        if (name >= 0)
            status = set_standard(r, json, value, name, false);
        else if (mgl_text_ends(value->string, "_token") && cJSON_IsString(value))
            status = set_named(r, &r->specific, json, value, false);
        else if (mgl_text_ends(value->string, "_token") && is_token_object(value))
            status = set_named(r, &r->named, json, value, false);
    }
    return status ? status : read_config_extra(r);
}

/* Parses an id like Python's int(). */
static mgl_status read_id(const reader *r, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end != text)
        end += strspn(end, " \t\n\r\f\v");
    if (end == text || *end || errno)
        return mgl_fail(r->err, MGL_BAD_INPUT, r->files->config.file,
                        "added_tokens_decoder: the key \"%.100s\" is not an id", text);
    return MGL_OK;
}

static mgl_status read_decoder(reader *r, const cJSON *decoder)
{
    const mgl_json *json = &r->files->config;
    mgl_status status = cJSON_IsObject(decoder) ? MGL_OK
                                                : mgl_fail(r->err, MGL_BAD_INPUT, json->file,
                                                           "added_tokens_decoder is not an object");
    for (const cJSON *value = decoder->child; value && !status; value = value->next) {
        item made;
        int64_t id = 0;
        status = cJSON_IsObject(value) ? read_id(r, value->string, &id)
                                       : fail_value(r, json, "a token of added_tokens_decoder");
        if (!status)
            status = read_token(r, json, value, "a token of added_tokens_decoder", &made);
        made.id = id;
        if (!status)
            status = append(r, &r->decoder, made);
    }
    return status;
}

/* ---- files of older tokenizers --------------------------------------------------------------- */

static mgl_status read_special_extra(reader *r, const cJSON *value)
{
    const mgl_json *json = &r->files->special;
    r->has_extra = !cJSON_IsObject(value);
    if (cJSON_IsArray(value))
        return add_elements(r, json, value, true);
    r->extra.count = 0;
    if (cJSON_IsObject(value))
        return set_members(r, &r->specific, json, value);
    return cJSON_IsNull(value) ? MGL_OK : fail_extra(r, json, value->string);
}

static mgl_status read_special(reader *r)
{
    const mgl_json *json = &r->files->special;
    mgl_status status = MGL_OK;
    for (const cJSON *value = json->root->child; value && !status; value = value->next) {
        int name = find_standard(value->string);
        bool object = cJSON_IsObject(value);
        if (name >= 0) {
            status = set_standard(r, json, value, name, object);
        } else if (!strcmp(value->string, "extra_special_tokens")) {
            status = read_special_extra(r, value);
        } else if (!strcmp(value->string, "additional_special_tokens")) {
            r->additional = value;
            r->additional_in = json;
        } else if (mgl_text_ends(value->string, "_token") && (object || cJSON_IsString(value))) {
            status = set_named(r, &r->named, json, value, object);
        }
    }
    return status;
}

static mgl_status remember(const reader *r, mgl_vocab *texts, const char *text)
{
    size_t length = strlen(text);
    if (mgl_vocab_find(texts, text, length) >= 0)
        return MGL_OK;
    return mgl_vocab_add(texts, text, length, (int32_t)texts->count) == MGL_VOCAB_ADDED
               ? MGL_OK
               : mgl_fail_memory(r->err, length);
}

static bool has_text(const mgl_vocab *texts, const char *text)
{
    return mgl_vocab_find(texts, text, strlen(text)) >= 0;
}

/* Collects the texts that are special in added_tokens.json. */
static mgl_status find_special(const reader *r, mgl_vocab *out)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < STANDARD && !status; i++)
        if (r->named.items[i].counted)
            status = remember(r, out, r->named.items[i].token.content);
    for (size_t i = 0; i < r->extra.count && !status; i++)
        if (r->extra.items[i].counted)
            status = remember(r, out, r->extra.items[i].token.content);
    return status;
}

static mgl_status read_added(reader *r)
{
    const mgl_json *json = &r->files->added;
    mgl_vocab special = {0};
    mgl_status status = find_special(r, &special);
    for (const cJSON *value = json->root->child; value && !status; value = value->next) {
        item made = {.set = true};
        bool is_special = has_text(&special, value->string);
        status = mgl_json_item_int(json, value, value->string, -MAX_ID, MAX_ID, &made.id, r->err);
        made.token = (mgl_declared_token){.content = value->string,
                                          .special = is_special,
                                          .normalized = !is_special,
                                          .normalized_given = true};
        if (!status)
            status = append(r, &r->decoder, made);
    }
    mgl_vocab_clear(&special);
    return status;
}

/* Reads the added tokens of tokenizer.json, with the ids in the file. */
static mgl_status read_own(reader *r)
{
    const mgl_json *json = &r->files->tokenizer;
    const cJSON *array;
    mgl_status status = mgl_json_get_array(json, json->root, "added_tokens", false, &array, r->err);
    for (const cJSON *value = array ? array->child : NULL; value && !status; value = value->next) {
        item made;
        int64_t id = 0;
        status = read_token(r, json, value, "an entry of added_tokens", &made);
        if (!status)
            status = mgl_json_get_int(json, value, "id", true, 0, MAX_ID, &id, r->err);
        made.id = id;
        if (!status)
            status = append(r, &r->decoder, made);
    }
    return status;
}

/* ---- order of adding ------------------------------------------------------------------------- */

/* Reads additional_special_tokens, which are used only if nothing else has set the extra tokens. */
static mgl_status read_additional(reader *r)
{
    const cJSON *value = r->additional;
    if (r->has_extra || !value || cJSON_IsNull(value))
        return MGL_OK;
    if (cJSON_IsObject(value))
        return set_members(r, &r->named, r->additional_in, value);
    return cJSON_IsArray(value) ? add_elements(r, r->additional_in, value, false)
                                : fail_extra(r, r->additional_in, value->string);
}

/* Merges the names of this model into the named tokens; they override names written as objects. */
static mgl_status join_names(reader *r)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < r->specific.count && !status; i++)
        status = set(r, &r->named, r->specific.items[i]);
    return status;
}

static int by_id(const void *a, const void *b)
{
    const item *left = a, *right = b;
    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    return left->order < right->order ? -1 : 1;
}

static bool is_replaced(const list *sorted, size_t i)
{
    return i + 1 < sorted->count && sorted->items[i + 1].id == sorted->items[i].id;
}

/* Gives a standard name the flags of the last decoder token with the same text. This matters if
 * another token with the same id replaced that token. */
static void find_flags(reader *r)
{
    for (int i = 0; i < STANDARD; i++) {
        item *named = &r->named.items[i];
        const item *best = NULL;
        for (size_t k = 0; named->set && k < r->decoder.count; k++) {
            const item *other = &r->decoder.items[k];
            if (!strcmp(other->token.content, named->token.content) &&
                (!best || other->order > best->order))
                best = other;
        }
        if (best)
            named->token = best->token;
    }
}

/* The list of tokens to add, and the texts that are already added tokens. */
typedef struct output {
    reader *r;
    mgl_vocab known; /* texts that need no named or extra token */
    mgl_vocab names; /* texts of the named tokens, which are special */
    mgl_declared *out;
} output;

static mgl_status put(output *o, mgl_declared_token token)
{
    mgl_declared *out = o->out;
    token.special |= has_text(&o->names, token.content);
    if (!token.normalized_given)
        token.normalized = !token.special;
    if (!mgl_grow((void **)&out->tokens, &out->capacity, out->count, sizeof token))
        return mgl_fail_memory(o->r->err, sizeof token);
    out->tokens[out->count++] = token;
    return MGL_OK;
}

static mgl_status put_unknown(output *o, const list *items)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < items->count && !status; i++) {
        const char *content = items->items[i].set ? items->items[i].token.content : "";
        if (*content && !has_text(&o->known, content))
            status = put(o, items->items[i].token);
    }
    return status;
}

/* Adds the tokens with ids, and records their texts as known. */
static mgl_status put_decoder(output *o)
{
    list *decoder = &o->r->decoder;
    mgl_status status = MGL_OK;
    if (decoder->count)
        qsort(decoder->items, decoder->count, sizeof *decoder->items, by_id);
    for (size_t i = 0; i < decoder->count && !status; i++) {
        if (is_replaced(decoder, i))
            continue;
        status = remember(o->r, &o->known, decoder->items[i].token.content);
        if (!status)
            status = put(o, decoder->items[i].token);
    }
    return status;
}

static mgl_status remember_own(output *o)
{
    const cJSON *array = mgl_json_member(o->r->files->tokenizer.root, "added_tokens");
    mgl_status status = MGL_OK;
    for (const cJSON *value = array ? array->child : NULL; value && !status; value = value->next) {
        const cJSON *content = cJSON_IsObject(value) ? mgl_json_member(value, "content") : NULL;
        if (cJSON_IsString(content))
            status = remember(o->r, &o->known, content->valuestring);
    }
    return status;
}

static mgl_status put_all(reader *r, mgl_declared *out)
{
    output o = {.r = r, .out = out};
    mgl_status status = r->llama ? MGL_OK : remember_own(&o);
    find_flags(r);
    for (size_t i = 0; i < r->named.count && !status; i++)
        if (r->named.items[i].set)
            status = remember(r, &o.names, r->named.items[i].token.content);
    if (!status)
        status = put_decoder(&o);
    if (!status)
        status = put_unknown(&o, &r->named);
    if (!status)
        status = put_unknown(&o, &r->extra);
    mgl_vocab_clear(&o.known);
    mgl_vocab_clear(&o.names);
    return status;
}

/* A name without a token and without null has the default of the class. */
static void set_defaults(reader *r)
{
    static const struct {
        int name;
        const char *content;
    } defaults[] = {{0, "<s>"}, {1, "</s>"}, {2, "<unk>"}};
    for (size_t i = 0; r->llama && i < sizeof defaults / sizeof *defaults; i++)
        r->named.items[defaults[i].name] =
            (item){.key = standard[defaults[i].name],
                   .set = true,
                   .token = {.content = defaults[i].content, .special = true}};
}

static mgl_status read_all(reader *r)
{
    const mgl_tokenizer_files *files = r->files;
    const cJSON *decoder =
        files->config.root ? mgl_json_member(files->config.root, "added_tokens_decoder") : NULL;
    mgl_status status = MGL_OK;
    for (int i = 0; i < STANDARD && !status; i++)
        status = append(r, &r->named, (item){.key = standard[i]});
    if (status)
        return status;
    set_defaults(r);
    if (files->config.root)
        status = read_config(r);
    if (!status && decoder)
        status = read_decoder(r, decoder);
    if (!status && !decoder && files->special.root)
        status = read_special(r);
    if (!status && !decoder && files->added.root)
        status = read_added(r);
    if (!status && !decoder)
        status = read_own(r);
    if (!status)
        status = read_additional(r);
    return status ? status : join_names(r);
}

mgl_status mgl_declared_read(const mgl_tokenizer_files *files, bool llama, mgl_declared *out,
                             mgl_error *err)
{
    reader r = {.files = files, .llama = llama, .err = err};
    mgl_status status = read_all(&r);
    if (!status)
        status = put_all(&r, out);
    mgl_free(r.named.items);
    mgl_free(r.specific.items);
    mgl_free(r.extra.items);
    mgl_free(r.decoder.items);
    return status;
}

void mgl_declared_clear(mgl_declared *declared)
{
    mgl_free(declared->tokens);
    *declared = (mgl_declared){0};
}
