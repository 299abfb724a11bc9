/* The public functions of the tokenizer: opening, encoding, decoding. tokenizer.h lists the
 * steps. */
#include "importer/tokenizer/tokenizer.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/stops.h"

#include <string.h>

/* ---- opening -------------------------------------------------------------------------------- */

void mgl_tokenizer_close(mgl_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    mgl_added_clear(&tokenizer->added);
    mgl_normalizer_clear(&tokenizer->normalizer);
    mgl_splitter_clear(&tokenizer->splitter);
    mgl_bpe_clear(&tokenizer->bpe);
    mgl_decoder_clear(&tokenizer->decoder);
    mgl_free(tokenizer->plain.ids);
    mgl_free(tokenizer->special.ids);
    mgl_free(tokenizer->added_by_id);
    mgl_workspaces_free(tokenizer->workspaces);
    mgl_free(tokenizer->file);
    mgl_free(tokenizer);
}

static void find_last_id(mgl_tokenizer *tokenizer)
{
    const mgl_vocab *vocab = &tokenizer->bpe.vocab;
    const mgl_added *added = &tokenizer->added;
    tokenizer->last_id = -1;
    for (size_t i = 0; i < vocab->count; i++)
        if (vocab->entries[i].id > tokenizer->last_id)
            tokenizer->last_id = vocab->entries[i].id;
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].id > tokenizer->last_id)
            tokenizer->last_id = added->tokens[i].id;
}

static bool is_given(const mgl_json *json, const char *key)
{
    const cJSON *value = mgl_json_member(json->root, key);
    return value && !cJSON_IsNull(value);
}

static mgl_status check_version(const mgl_json *json, mgl_error *err)
{
    const char *version = NULL;
    if (!cJSON_IsObject(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "a tokenizer must be a JSON object");
    mgl_status status = mgl_json_get_string(json, json->root, "version", false, &version, err);
    if (!status && version && strcmp(version, "1.0") != 0)
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "the version \"%.40s\" is not 1.0",
                        version);
    return status;
}

typedef mgl_status part_fn(mgl_tokenizer *tokenizer, const mgl_json *json, const cJSON *value,
                           mgl_error *err);

/* Loads a part of a file; NULL for a part that is missing or null. */
static mgl_status load_part(mgl_tokenizer *tokenizer, const mgl_json *json, const char *key,
                            part_fn *load, mgl_error *err)
{
    const cJSON *part;
    mgl_status status = mgl_json_get_object(json, json->root, key, false, &part, err);
    return status ? status : load(tokenizer, json, part, err);
}

/* Loads normalizer, splitter and decoder from tokenizer.json or from the class. */
static mgl_status load_steps(mgl_tokenizer *tokenizer, const mgl_json *json, mgl_error *err)
{
    mgl_status status =
        load_part(tokenizer, json, "normalizer", mgl_tokenizer_load_normalizer, err);
    if (!status)
        status = load_part(tokenizer, json, "pre_tokenizer", mgl_tokenizer_load_splitter, err);
    if (!status)
        status = load_part(tokenizer, json, "decoder", mgl_tokenizer_load_decoder, err);
    return status;
}

static mgl_status load_class_steps(mgl_tokenizer *tokenizer, const mgl_tokenizer_class *class,
                                   mgl_error *err)
{
    mgl_json parts = {0};
    mgl_bpe *bpe = &tokenizer->bpe;
    mgl_status status = mgl_tokenizer_class_parts(class, tokenizer->file, &parts, err);
    if (!status)
        status = load_steps(tokenizer, &parts, err);
    mgl_json_clear(&parts);
    bpe->fuse_unk = bpe->byte_fallback = true;
    bpe->ignore_merges = false;
    bpe->unknown = MGL_BPE_NO_UNKNOWN;
    return status;
}

static mgl_status load_added(mgl_tokenizer *tokenizer, const mgl_tokenizer_files *files, bool llama,
                             mgl_error *err)
{
    const mgl_json *json = &files->tokenizer;
    const cJSON *added = NULL;
    mgl_declared declared = {0};
    mgl_status status = mgl_json_get_array(json, json->root, "added_tokens", false, &added, err);
    if (!status && !files->alone)
        status = mgl_declared_read(files, llama, &declared, err);
    if (!status)
        status = mgl_tokenizer_load_added(tokenizer, json, llama ? NULL : added, &declared, err);
    mgl_declared_clear(&declared);
    return status;
}

/* Reads the size of the model's vocabulary, if there is a config.json. */
static mgl_status find_model_vocab(mgl_tokenizer *tokenizer, const mgl_json *json, mgl_error *err)
{
    int64_t vocab = 0;
    const cJSON *object = json->root;
    if (object && !is_given(json, "vocab_size") && is_given(json, "text_config"))
        object = mgl_json_member(object, "text_config");
    if (!cJSON_IsObject(object))
        return MGL_OK;
    mgl_status status =
        mgl_json_get_int(json, object, "vocab_size", false, 0, INT32_MAX, &vocab, err);
    tokenizer->model_vocab = (int32_t)vocab;
    return status;
}

/* Loads all parts. The added tokens come last: they are normalized, and their ids depend on the
 * vocabulary. */
static mgl_status load_parts(mgl_tokenizer *tokenizer, const mgl_tokenizer_files *files,
                             mgl_error *err)
{
    const mgl_json *json = &files->tokenizer;
    const cJSON *model;
    mgl_tokenizer_class class = {0};
    mgl_status status = check_version(json, err);
    if (!status)
        status = mgl_json_get_object(json, json->root, "model", true, &model, err);
    if (!status)
        status = mgl_tokenizer_load_model(tokenizer, json, model, err);
    if (!status)
        status = mgl_tokenizer_class_read(files, &class, err);
    if (!status)
        status = class.llama ? load_class_steps(tokenizer, &class, err)
                             : load_steps(tokenizer, json, err);
    if (!status)
        status = load_part(tokenizer, json, "post_processor", mgl_tokenizer_load_template, err);
    if (!status)
        status = load_added(tokenizer, files, class.llama, err);
    if (!status)
        status = find_model_vocab(tokenizer, &files->model, err);
    if (status)
        return status;
    tokenizer->llama = class.llama;
    tokenizer->truncation = is_given(json, "truncation");
    tokenizer->padding = is_given(json, "padding");
    find_last_id(tokenizer);
    return MGL_OK;
}

mgl_status mgl_tokenizer_make(const mgl_tokenizer_files *files, mgl_tokenizer **out, mgl_error *err)
{
    mgl_tokenizer *tokenizer = mgl_alloc_zero(1, sizeof *tokenizer);
    if (tokenizer)
        tokenizer->file = mgl_strdup(files->tokenizer.file);
    mgl_status status = tokenizer && tokenizer->file
                            ? mgl_workspaces_new(&tokenizer->workspaces, err)
                            : mgl_fail_memory(err, sizeof *tokenizer);
    if (!status)
        status = load_parts(tokenizer, files, err);
    if (status)
        mgl_tokenizer_close(tokenizer);
    else
        *out = tokenizer;
    return status;
}

mgl_status mgl_tokenizer_parse(const char *text, size_t length, const char *file,
                               mgl_tokenizer **out, mgl_error *err)
{
    *out = NULL;
    mgl_tokenizer_files files = {.alone = true};
    mgl_status status =
        mgl_json_parse(text, length, MGL_TOKENIZER_CAP, file, &files.tokenizer, err);
    if (!status)
        status = mgl_tokenizer_make(&files, out, err);
    mgl_tokenizer_files_clear(&files);
    return status;
}

mgl_status mgl_tokenizer_open(const char *path, mgl_tokenizer **out, mgl_error *err)
{
    mgl_tokenizer_files files = {0};
    if (out)
        *out = NULL;
    if (!path || !out)
        return mgl_fail_null(err, __func__, path ? "out" : "path");
    mgl_status status = mgl_tokenizer_files_read(path, &files, err);
    if (!status)
        status = mgl_tokenizer_make(&files, out, err);
    mgl_tokenizer_files_clear(&files);
    return status;
}

/* ---- encoding ------------------------------------------------------------------------------- */

/* The state of encoding one text. */
typedef struct encoding {
    const mgl_tokenizer *tokenizer;
    mgl_workspace *w;
    const char *text; /* the raw text */
    const char *part; /* the normalized stretch that is being split */
    size_t head;      /* of `part`, see normalize.h */
} encoding;

static mgl_status put_id(mgl_id_list *ids, int32_t id, mgl_error *err)
{
    if (!mgl_id_list_reserve(ids, 1))
        return mgl_fail_memory(err, ids->count * sizeof id);
    ids->ids[ids->count++] = id;
    return MGL_OK;
}

static mgl_status take_piece(void *user, const char *text, size_t length, mgl_error *err)
{
    encoding *e = user;
    return mgl_bpe_encode(&e->tokenizer->bpe, &e->w->bpe, text, length, &e->w->ids, err);
}

/* Encodes a stretch of normalized text, or an added token found in it. */
static mgl_status take_normalized(void *user, const mgl_added_token *token, size_t at, size_t to,
                                  mgl_error *err)
{
    encoding *e = user;
    mgl_piece piece = {e->part + at, to - at, 0};
    if (token)
        return put_id(&e->w->ids, token->id, err);
    if (e->head > at)
        piece.head = e->head < to ? e->head - at : piece.length;
    return mgl_splitter_run(&e->tokenizer->splitter, &e->w->splitter, piece, take_piece, e, err);
}

/* Encodes a stretch of raw text, or an added token found in it. */
static mgl_status take_raw(void *user, const mgl_added_token *token, size_t at, size_t to,
                           mgl_error *err)
{
    encoding *e = user;
    const mgl_tokenizer *tokenizer = e->tokenizer;
    size_t length = to - at;
    if (token)
        return put_id(&e->w->ids, token->id, err);
    e->head = at || !length ? 0 : mgl_utf8_size(e->text[0]);
    mgl_status status = mgl_normalizer_run(&tokenizer->normalizer, &e->w->normalizer, e->text + at,
                                           length, &e->part, &length, &e->head, err);
    return status ? status
                  : mgl_added_search(&tokenizer->added, &tokenizer->added.normalized, e->w->matcher,
                                     e->part, length, take_normalized, e, err);
}

/* Inserts the ids of the text into the template. */
static mgl_status fill_template(const mgl_id_list *template, const mgl_id_list *text, mgl_ids *out,
                                mgl_error *err)
{
    size_t count = 0, bytes;
    bool fits = true;
    for (size_t i = 0; i < template->count && fits; i++)
        fits = mgl_add(count, template->ids[i] == MGL_TEMPLATE_TEXT ? text->count : 1, &count);
    int32_t *ids = fits && mgl_mul(count, sizeof *ids, &bytes) ? mgl_alloc(bytes) : NULL;
    if (!ids)
        return mgl_fail_memory(err, count * sizeof *ids);
    size_t at = 0;
    for (size_t i = 0; i < template->count; i++) {
        if (template->ids[i] != MGL_TEMPLATE_TEXT) {
            ids[at++] = template->ids[i];
        } else if (text->count) {
            memcpy(ids + at, text->ids, text->count * sizeof *ids);
            at += text->count;
        }
    }
    mgl_ids_clear(out);
    *out = (mgl_ids){ids, count};
    return MGL_OK;
}

mgl_status mgl_tokenizer_take_workspace(const mgl_tokenizer *tokenizer, mgl_workspace **out,
                                        mgl_error *err)
{
    return mgl_workspaces_take(tokenizer->workspaces, tokenizer->normalizer.count,
                               tokenizer->splitter.count, out, err);
}

/* Repairs the text if it is not valid UTF-8. */
static mgl_status repair(mgl_workspace *w, const char **text, size_t *length, mgl_error *err)
{
    if (mgl_utf8_valid(*text, *length) == *length)
        return MGL_OK;
    w->repaired.length = 0;
    mgl_utf8_repair(*text, *length, &w->repaired);
    if (w->repaired.failed) {
        mgl_text_clear(&w->repaired);
        return mgl_fail_memory(err, *length);
    }
    *text = w->repaired.bytes;
    *length = w->repaired.length;
    return MGL_OK;
}

/* Encodes a text into the ids of the workspace. */
static mgl_status encode(const mgl_tokenizer *tokenizer, mgl_workspace *w, const char *text,
                         size_t length, mgl_error *err)
{
    mgl_status status = repair(w, &text, &length, err);
    if (status)
        return status;
    encoding e = {.tokenizer = tokenizer, .w = w, .text = text};
    w->ids.count = 0;
    mgl_growth_begin(&w->growth);
    mgl_growth_add(&w->growth, length);
    return mgl_added_search(&tokenizer->added, &tokenizer->added.raw, w->matcher, text, length,
                            take_raw, &e, err);
}

/* Rejects ids outside the model's vocabulary; added tokens can have such ids. */
static mgl_status check_ids(const mgl_tokenizer *tokenizer, mgl_ids *ids, mgl_error *err)
{
    int32_t vocab = tokenizer->model_vocab;
    for (size_t i = 0; vocab && i < ids->count; i++) {
        if (ids->ids[i] < vocab)
            continue;
        bool special;
        size_t length = 0;
        int32_t id = ids->ids[i];
        const char *token = mgl_tokenizer_text_of(tokenizer, id, &length, &special);
        mgl_ids_clear(ids);
        return mgl_fail(err, MGL_BAD_INPUT, tokenizer->file,
                        "the token \"%.*s\" is outside the vocabulary of the model: its id is %d; "
                        "the model has the ids 0 to %d (vocab_size of config.json)",
                        length < 100 ? (int)length : 100, token ? token : "", (int)id,
                        (int)vocab - 1);
    }
    return MGL_OK;
}

mgl_status mgl_tokenizer_encode(const mgl_tokenizer *tokenizer, const char *text, size_t length,
                                bool special, mgl_ids *out, mgl_error *err)
{
    mgl_workspace *w;
    if (!tokenizer || (!text && length) || !out)
        return mgl_fail_null(err, __func__, !tokenizer ? "tokenizer" : out ? "text" : "out");
    mgl_status status = mgl_tokenizer_take_workspace(tokenizer, &w, err);
    if (status)
        return status;
    status = encode(tokenizer, w, text ? text : "", length, err);
    if (!status)
        status =
            fill_template(special ? &tokenizer->special : &tokenizer->plain, &w->ids, out, err);
    mgl_workspaces_give(tokenizer->workspaces, w);
    return status ? status : check_ids(tokenizer, out, err);
}

void mgl_ids_clear(mgl_ids *ids)
{
    if (!ids)
        return;
    mgl_free(ids->ids);
    *ids = (mgl_ids){0};
}

/* ---- decoding ------------------------------------------------------------------------------- */

const char *mgl_tokenizer_text_of(const mgl_tokenizer *tokenizer, int32_t id, size_t *length,
                                  bool *special)
{
    *special = false;
    if (id >= 0 && (size_t)id < tokenizer->added_ids && tokenizer->added_by_id[id]) {
        const mgl_added_token *token = &tokenizer->added.tokens[tokenizer->added_by_id[id] - 1];
        *special = token->hidden;
        *length = token->decoded_length;
        return token->decoded;
    }
    return mgl_vocab_text(&tokenizer->bpe.vocab, id, length);
}

bool mgl_tokenizer_knows(const mgl_tokenizer *tokenizer, int32_t id)
{
    return tokenizer && id >= 0 && id <= tokenizer->last_id;
}

mgl_status mgl_tokenizer_fail_id(const mgl_tokenizer *tokenizer, int32_t id, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, tokenizer->file,
                    "the token id %d is outside the vocabulary, whose last is %d", (int)id,
                    (int)tokenizer->last_id);
}

struct mgl_detokenizer {
    const mgl_tokenizer *tokenizer;
    bool skip_special;
    mgl_decoding *decoding;
    bool begun;    /* a prompt or a token was decoded */
    mgl_text text; /* what the last call decoded */
    mgl_stops stops;
};

/* Decodes one id. An id within the vocabulary but without a token decodes to nothing, as in
 * Hugging Face's tokenizers. */
static mgl_status decode_id(mgl_detokenizer *stream, int32_t id, mgl_error *err)
{
    bool special;
    size_t length;
    if (!mgl_tokenizer_knows(stream->tokenizer, id))
        return mgl_tokenizer_fail_id(stream->tokenizer, id, err);
    stream->begun = true;
    const char *token = mgl_tokenizer_text_of(stream->tokenizer, id, &length, &special);
    if (!token || (special && stream->skip_special))
        return MGL_OK;
    return mgl_decoding_token(stream->decoding, token, length, &stream->text, err);
}

mgl_status mgl_detokenizer_open(const mgl_tokenizer *tokenizer, bool skip_special,
                                mgl_detokenizer **out, mgl_error *err)
{
    if (out)
        *out = NULL;
    if (!tokenizer || !out)
        return mgl_fail_null(err, __func__, tokenizer ? "out" : "tokenizer");
    mgl_detokenizer *stream = mgl_alloc_zero(1, sizeof *stream);
    if (!stream)
        return mgl_fail_memory(err, sizeof *stream);
    stream->tokenizer = tokenizer;
    stream->skip_special = skip_special;
    mgl_status status = mgl_decoding_open(&tokenizer->decoder, &stream->decoding, err);
    if (status)
        mgl_detokenizer_close(stream);
    else
        *out = stream;
    return status;
}

void mgl_detokenizer_close(mgl_detokenizer *stream)
{
    if (!stream)
        return;
    mgl_decoding_close(stream->decoding);
    mgl_text_clear(&stream->text);
    mgl_stops_clear(&stream->stops);
    mgl_free(stream);
}

mgl_status mgl_detokenizer_set_stops(mgl_detokenizer *stream, const char *const *stops,
                                     size_t count, mgl_error *err)
{
    if (!stream || (!stops && count))
        return mgl_fail_null(err, __func__, stream ? "stops" : "stream");
    mgl_stops_clear(&stream->stops);
    return mgl_stops_open(&stream->stops, stops, count, err);
}

bool mgl_detokenizer_is_stopped(const mgl_detokenizer *stream)
{
    return stream && stream->stops.found;
}

mgl_status mgl_detokenizer_prime(mgl_detokenizer *stream, const int32_t *ids, size_t count,
                                 mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (!stream || (!ids && count))
        return mgl_fail_null(err, __func__, stream ? "ids" : "stream");
    if (stream->begun)
        return mgl_fail(err, MGL_USAGE, "mgl_detokenizer_prime",
                        "is called too late: the stream has a prompt or tokens; prime it first");
    stream->begun = true;
    mgl_decoding_begin_prompt(stream->decoding);
    for (size_t i = 0; i < count && !status; i++)
        if (mgl_tokenizer_knows(stream->tokenizer, ids[i]))
            status = decode_id(stream, ids[i], err);
    return status ? status : mgl_decoding_end_prompt(stream->decoding, &stream->text, err);
}

/* Returns the text that became certain; with stop strings, only the text before the first one. */
static mgl_status hand_out(mgl_detokenizer *stream, bool last, const char **text, size_t *length,
                           mgl_error *err)
{
    mgl_stops *stops = &stream->stops;
    const mgl_text *out = stops->count ? &stops->text : &stream->text;
    mgl_status status = MGL_OK;
    if (stops->count)
        status = mgl_stops_next(stops, stream->text.bytes ? stream->text.bytes : "",
                                stream->text.length, last, err);
    if (status)
        return status;
    size_t size = stops->count ? stops->out : out->length;
    *text = size ? out->bytes : "";
    if (length)
        *length = size;
    return MGL_OK;
}

mgl_status mgl_detokenizer_next(mgl_detokenizer *stream, int32_t id, const char **text,
                                size_t *length, mgl_error *err)
{
    if (!stream || !text)
        return mgl_fail_null(err, __func__, stream ? "text" : "stream");
    stream->text.length = 0;
    mgl_status status = decode_id(stream, id, err);
    return status ? status : hand_out(stream, false, text, length, err);
}

mgl_status mgl_detokenizer_finish(mgl_detokenizer *stream, const char **text, size_t *length,
                                  mgl_error *err)
{
    if (!stream || !text)
        return mgl_fail_null(err, __func__, stream ? "text" : "stream");
    stream->text.length = 0;
    mgl_status status = mgl_decoding_finish(stream->decoding, &stream->text, err);
    return status ? status : hand_out(stream, true, text, length, err);
}

mgl_status mgl_tokenizer_decode(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                bool skip_special, char **out, size_t *length, mgl_error *err)
{
    mgl_detokenizer *stream;
    if (out)
        *out = NULL;
    if (!tokenizer || !out || (!ids && count))
        return mgl_fail_null(err, __func__, !tokenizer ? "tokenizer" : out ? "ids" : "out");
    mgl_status status = mgl_detokenizer_open(tokenizer, skip_special, &stream, err);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++)
        status = decode_id(stream, ids[i], err);
    if (!status)
        status = mgl_decoding_finish(stream->decoding, &stream->text, err);
    if (!status) {
        *out = mgl_strndup(stream->text.bytes ? stream->text.bytes : "", stream->text.length);
        if (length)
            *length = stream->text.length;
        if (!*out)
            status = mgl_fail_memory(err, stream->text.length);
    }
    mgl_detokenizer_close(stream);
    return status;
}

void mgl_text_free(char *text)
{
    mgl_free(text);
}
