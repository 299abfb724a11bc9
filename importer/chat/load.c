/*
 * Loads the templates of a model in Hugging Face's order: separate files before the key of
 * tokenizer_config.json. Also loads the special tokens, which templates use as variables.
 */
#include "importer/chat/chat.h"

#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/model_files.h"

#include <string.h>

#define SUFFIX ".jinja"

/* ---- templates ------------------------------------------------------------------------------- */

static mgl_status add_template(mgl_chat_template *chat, const char *name, const char *text,
                               size_t length, const char *where, mgl_error *err)
{
    void *templates = chat->templates;
    if (!mgl_grow(&templates, &chat->capacity, chat->count, sizeof *chat->templates))
        return mgl_fail_memory(err, sizeof *chat->templates);
    chat->templates = templates;
    mgl_named_template made = {.name = mgl_strdup(name)};
    if (!made.name)
        return mgl_fail_memory(err, strlen(name));
    mgl_status status = mgl_jinja_parse(text, length, where, &made.jinja, &made.failure);
    if (status && status != MGL_BAD_INPUT) {
        mgl_free(made.name);
        if (err)
            *err = made.failure;
        return status;
    }
    chat->templates[chat->count++] = made;
    return MGL_OK;
}

/* Called with each template of the folder: its path, its name, and its text. */
typedef mgl_status template_fn(void *user, const char *path, const char *name, const char *text,
                               size_t length, mgl_error *err);

static mgl_status visit_file(const char *folder, const char *file, template_fn *each, void *user,
                             mgl_error *err)
{
    mgl_text path;
    char *text = NULL, *name = mgl_strndup(file, strlen(file) - strlen(SUFFIX));
    size_t length;
    mgl_status status = mgl_path_join(folder, file, &path, err);
    if (!status && !name)
        status = mgl_fail_memory(err, strlen(file));
    if (!status)
        status = mgl_file_read_regular(path.bytes, MGL_CHAT_CAP, &text, &length, err);
    if (!status)
        status = each(user, path.bytes, name, text, length, err);
    mgl_free(text);
    mgl_free(name);
    mgl_text_clear(&path);
    return status;
}

/* Visits the additional templates of a model's folder; each is named after its file. */
static mgl_status visit_folder(const char *model, template_fn *each, void *user, mgl_error *err)
{
    mgl_file_list files = {0};
    mgl_text folder;
    mgl_status status = mgl_path_join(model, MGL_TEMPLATES_FOLDER, &folder, err);
    if (!status)
        status = mgl_folder_list(folder.bytes, SUFFIX, &files, err);
    for (size_t i = 0; i < files.count && !status; i++)
        status = visit_file(folder.bytes, files.names[i], each, user, err);
    mgl_file_list_clear(&files);
    mgl_text_clear(&folder);
    return status;
}

static mgl_status add_further(void *user, const char *path, const char *name, const char *text,
                              size_t length, mgl_error *err)
{
    return add_template(user, name, text, length, path, err);
}

static mgl_status add_files(mgl_chat_template *chat, const mgl_model_files *from, mgl_error *err)
{
    mgl_text path;
    char *text;
    size_t length;
    mgl_status status = mgl_model_files_read(from, MGL_MEGA_TEMPLATE, MGL_CHAT_CAP, false, &path,
                                             &text, &length, err);
    if (!status && text)
        status = add_template(chat, "default", text, length, path.bytes, err);
    mgl_free(text);
    mgl_text_clear(&path);
    return status || mgl_model_files_are_one(from)
               ? status
               : visit_folder(from->path, add_further, chat, err);
}

/* Adds the template `text` of the config under its name there. */
static mgl_status add_string(mgl_chat_template *chat, const char *path, const char *name,
                             cJSON *text, mgl_error *err)
{
    size_t length;
    mgl_text where = {0};
    const char *bytes = mgl_json_take_text(text, &length);
    mgl_text_format(&where, "%s: chat_template", path);
    if (strcmp(name, "default") != 0)
        mgl_text_format(&where, " %s", name);
    mgl_status status = where.failed ? mgl_fail_memory(err, strlen(path))
                                     : add_template(chat, name, bytes, length, where.bytes, err);
    mgl_text_clear(&where);
    return status;
}

/* Adds "chat_template": a text, or a list of {name, template}. */
static mgl_status add_key(mgl_chat_template *chat, const mgl_json *config, mgl_error *err)
{
    cJSON *key = cJSON_GetObjectItemCaseSensitive(config->root, "chat_template");
    if (!key || cJSON_IsNull(key))
        return MGL_OK;
    if (cJSON_IsString(key))
        return add_string(chat, config->file, "default", key, err);
    mgl_status status = cJSON_IsArray(key)
                            ? MGL_OK
                            : mgl_fail(err, MGL_BAD_INPUT, config->file,
                                       "chat_template must be a text, or a list of objects with "
                                       "name and template");
    for (cJSON *item = key->child; item && !status; item = item->next) {
        const char *name;
        status = mgl_json_get_string(config, item, "name", true, &name, err);
        cJSON *text = cJSON_GetObjectItemCaseSensitive(item, "template");
        if (!status && !cJSON_IsString(text))
            return mgl_fail(err, MGL_BAD_INPUT, config->file,
                            "chat_template: '%.80s' has no text as its template", name);
        if (!status)
            status = add_string(chat, config->file, name, text, err);
    }
    return status;
}

/* ---- special tokens -------------------------------------------------------------------------- */

/* Returns the text of a token: a string, or the content of an object; NULL: not a token. */
static const char *token_text(const cJSON *item)
{
    const cJSON *content = cJSON_IsObject(item) ? mgl_json_member(item, "content") : item;
    return cJSON_IsString(content) ? content->valuestring : NULL;
}

/* Sets the variable of a token. `replace`: overrides an existing one. */
static mgl_status set_token(mgl_chat_template *chat, const cJSON *item, bool replace,
                            mgl_error *err)
{
    const char *text = token_text(item);
    bool stands = mgl_json_member(chat->tokens, item->string) != NULL;
    if (!text || (stands && !replace))
        return MGL_OK;
    if (stands)
        cJSON_DeleteItemFromObjectCaseSensitive(chat->tokens, item->string);
    return cJSON_AddStringToObject(chat->tokens, item->string, text)
               ? MGL_OK
               : mgl_fail_memory(err, strlen(text));
}

/* Sets the members NAME_token of an object; `any`: all members, as in extra_special_tokens. */
static mgl_status set_tokens(mgl_chat_template *chat, const cJSON *object, bool replace, bool any,
                             mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (const cJSON *item = object ? object->child : NULL; item && !status; item = item->next)
        if (item->string && (any || mgl_text_ends(item->string, "_token")))
            status = set_token(chat, item, replace, err);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Reads a JSON file; its root is NULL if the file does not exist. */
static mgl_status read_json(const mgl_model_files *from, const char *name, mgl_json *out,
                            mgl_error *err)
{
    mgl_status status =
        mgl_model_files_parse(from, name, MGL_CHAT_CAP, false, mgl_json_parse_values, out, err);
    if (!status && out->root && !cJSON_IsObject(out->root))
        status = mgl_fail(err, MGL_BAD_INPUT, out->file, "is not a JSON object");
    return status;
}

/* Loads the special tokens. If the config does not list the added tokens (older tokenizers), the
 * other file has priority. */
static mgl_status load_tokens(mgl_chat_template *chat, const mgl_json *config, const mgl_json *map,
                              mgl_error *err)
{
    bool old = config->root && !mgl_json_member(config->root, "added_tokens_decoder");
    const cJSON *extra =
        config->root ? mgl_json_member(config->root, "extra_special_tokens") : NULL;
    mgl_status status = set_tokens(chat, config->root, true, false, err);
    if (!status && cJSON_IsObject(extra))
        status = set_tokens(chat, extra, true, true, err);
    if (!status)
        status = set_tokens(chat, map->root, old, false, err);
    return status;
}

/* Loads the model's own templates. */
static mgl_status load_templates(mgl_chat_template *chat, const mgl_model_files *from,
                                 const mgl_json *config, mgl_error *err)
{
    mgl_json packed = {0};
    mgl_status status = add_files(chat, from, err);
    if (!status && from->mega)
        status = read_json(from, MGL_MEGA_TEMPLATES, &packed, err);
    if (!status && packed.root)
        status = add_key(chat, &packed, err);
    if (!status && !chat->count && config->root)
        status = add_key(chat, config, err);
    mgl_json_clear(&packed);
    return status;
}

static mgl_status load_from(mgl_chat_template *chat, const mgl_model_files *from, const char *file,
                            mgl_error *err)
{
    mgl_json config = {0}, map = {0};
    mgl_status status = read_json(from, MGL_MEGA_TOKENIZER_CONFIG, &config, err);
    if (!status)
        status = read_json(from, MGL_MEGA_TOKENS, &map, err);
    chat->tokens = status ? NULL : cJSON_CreateObject();
    if (!status && !chat->tokens)
        status = mgl_fail_memory(err, sizeof *chat->tokens);
    if (!status)
        status = load_tokens(chat, &config, &map, err);
    if (!status && !file)
        status = load_templates(chat, from, &config, err);
    mgl_json_clear(&config);
    mgl_json_clear(&map);
    return status;
}

/* Loads the template of a given file, which must exist. */
static mgl_status load_named(mgl_chat_template *chat, const char *file, mgl_error *err)
{
    char *text;
    size_t length;
    mgl_status status = mgl_file_read(file, MGL_JINJA_CAP, &text, &length, err);
    if (status)
        return status;
    status = add_template(chat, "default", text, length, file, err);
    mgl_free(text);
    if (!status && !chat->templates[0].jinja) {
        if (err)
            *err = chat->templates[0].failure;
        status = MGL_BAD_INPUT;
    }
    return status;
}

mgl_status mgl_chat_template_load(mgl_chat_template *chat, const char *file, mgl_error *err)
{
    mgl_model_files from;
    mgl_status status = mgl_model_files_open(chat->path, &from, err);
    if (!status)
        status = load_from(chat, &from, file, err);
    mgl_model_files_close(&from);
    if (!status && file)
        status = load_named(chat, file, err);
    if (!status && !chat->count)
        status = mgl_fail(err, MGL_BAD_INPUT, chat->path,
                          "the model has no chat template: neither " MGL_MEGA_TEMPLATE
                          " nor the key chat_template of " MGL_MEGA_TOKENIZER_CONFIG
                          "; give one by --template FILE");
    return status;
}

/* ---- packing for a compiled model ------------------------------------------------------------ */

static mgl_status put_further(void *user, const char *path, const char *name, const char *text,
                              size_t length, mgl_error *err)
{
    mgl_json_out *out = user;
    (void)path;
    if (!out->text.length) {
        mgl_json_out_begin(out, "megalith.templates/1");
        mgl_json_out_array(out, "chat_template");
    }
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "name", name);
    mgl_json_out_text(out, "template", text, length);
    mgl_json_out_close_object(out);
    return out->text.failed ? mgl_fail_memory(err, length) : MGL_OK;
}

mgl_status mgl_chat_templates_pack(const char *folder, char **text, size_t *length, mgl_error *err)
{
    mgl_json_out out = {0};
    *text = NULL;
    *length = 0;
    mgl_status status = visit_folder(folder, put_further, &out, err);
    if (!status && out.text.length) {
        mgl_json_out_close_array(&out);
        mgl_json_out_close(&out);
        if (out.text.failed)
            status = mgl_fail_memory(err, out.text.length);
    }
    if (status) {
        mgl_text_clear(&out.text);
        return status;
    }
    *text = out.text.bytes;
    *length = out.text.length;
    return MGL_OK;
}
