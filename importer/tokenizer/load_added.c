/* Loads the added tokens of tokenizer.json, and the tokens that the files beside it declare
 * (declared.h), into tokenizer->added. tokenizer.c calls mgl_tokenizer_load_added. */
#include "base/memory.h"
#include "importer/tokenizer/tokenizer.h"

#include <string.h>

static uint32_t *by_id(mgl_tokenizer *tokenizer, int32_t id)
{
    size_t wanted = tokenizer->added_ids ? tokenizer->added_ids : 256;
    if ((size_t)id < tokenizer->added_ids)
        return &tokenizer->added_by_id[id];
    while (wanted <= (size_t)id)
        wanted *= 2;
    uint32_t *grown = mgl_realloc(tokenizer->added_by_id, wanted * sizeof *grown);
    if (!grown)
        return NULL;
    memset(grown + tokenizer->added_ids, 0, (wanted - tokenizer->added_ids) * sizeof *grown);
    tokenizer->added_by_id = grown;
    tokenizer->added_ids = wanted;
    return &grown[id];
}

static mgl_status read_added(const mgl_json *json, const cJSON *item, mgl_added_token *token,
                             const char **content, int32_t *id, mgl_error *err)
{
    int64_t number = 0;
    if (!cJSON_IsObject(item))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "added_tokens: an entry is not an object");
    mgl_status status = mgl_json_get_int(json, item, "id", true, 0, MGL_VOCAB_MAX_ID, &number, err);
    if (!status)
        status = mgl_json_get_string(json, item, "content", true, content, err);
    if (!status)
        status = mgl_json_get_bool(json, item, "single_word", true, &token->single_word, err);
    if (!status)
        status = mgl_json_get_bool(json, item, "lstrip", true, &token->lstrip, err);
    if (!status)
        status = mgl_json_get_bool(json, item, "rstrip", true, &token->rstrip, err);
    if (!status)
        status = mgl_json_get_bool(json, item, "normalized", true, &token->normalized, err);
    if (!status)
        status = mgl_json_get_bool(json, item, "special", true, &token->special, err);
    *id = (int32_t)number;
    return status;
}

/* Sets the searched text and the decoded text of the token. */
static mgl_status set_texts(const mgl_tokenizer *tokenizer, mgl_workspace *w,
                            mgl_added_token *token, const char *content, mgl_error *err)
{
    const char *searched = content;
    size_t length = strlen(content), head = 0;
    if (token->normalized) {
        mgl_growth_add(&w->growth, length);
        mgl_status status = mgl_normalizer_run(&tokenizer->normalizer, &w->normalizer, content,
                                               length, &searched, &length, &head, err);
        if (status)
            return status;
    }
    token->content = mgl_strdup(content);
    token->searched = mgl_strndup(searched, length);
    token->decoded = mgl_strndup(searched, length);
    token->searched_length = token->decoded_length = length;
    return token->content && token->searched && token->decoded ? MGL_OK
                                                               : mgl_fail_memory(err, length);
}

/* State of loading the added tokens. */
typedef struct added_names {
    mgl_vocab index;  /* content -> index in added.tokens */
    int32_t next;     /* the next free id */
    mgl_workspace *w; /* for normalizing the tokens */
} added_names;

/* Assigns the id: the id in the vocabulary, or the next free id. Like Hugging Face's tokenizers,
 * it does not use the id in the file (`stated`, -1 if there is none). If that id differs, it
 * must not belong to another token. */
static mgl_status give_id(mgl_tokenizer *tokenizer, mgl_added_token *token, int32_t stated,
                          int32_t *next, mgl_error *err)
{
    const mgl_vocab *vocab = &tokenizer->bpe.vocab;
    size_t length;
    bool taken = stated >= 0 && mgl_vocab_text(vocab, stated, &length) != NULL;
    taken |= stated >= 0 && (size_t)stated < tokenizer->added_ids && tokenizer->added_by_id[stated];
    token->id = mgl_vocab_find(vocab, token->content, strlen(token->content));
    if (token->id < 0) {
        token->id = (*next)++;
        taken |= token->id > MGL_VOCAB_MAX_ID || mgl_vocab_text(vocab, token->id, &length);
    }
    uint32_t *slot = token->id <= MGL_VOCAB_MAX_ID ? by_id(tokenizer, token->id) : NULL;
    if (token->id <= MGL_VOCAB_MAX_ID && !slot)
        return mgl_fail_memory(err, (size_t)token->id * sizeof *slot);
    if (!slot || *slot || (taken && token->id != stated))
        return mgl_fail(err, MGL_BAD_INPUT, tokenizer->file,
                        "added_tokens: the id %d of \"%.100s\" belongs to another token",
                        stated < 0 ? (int)token->id : (int)stated, token->content);
    *slot = (uint32_t)tokenizer->added.count + 1;
    return MGL_OK;
}

/* Adds a new token. The tokenizer takes ownership of its texts. */
static mgl_status put_new(mgl_tokenizer *tokenizer, mgl_added_token *token, int32_t stated,
                          added_names *names, mgl_error *err)
{
    mgl_added *added = &tokenizer->added;
    size_t length = strlen(token->content);
    if (!mgl_grow((void **)&added->tokens, &added->capacity, added->count, sizeof *token))
        return mgl_fail_memory(err, sizeof *token);
    mgl_status status = give_id(tokenizer, token, stated, &names->next, err);
    if (!status && mgl_vocab_add(&names->index, token->content, length, (int32_t)added->count) !=
                       MGL_VOCAB_ADDED)
        status = mgl_fail_memory(err, length);
    if (!status)
        added->tokens[added->count++] = *token;
    return status;
}

/* Replaces an entry by a later one for the same text, as Hugging Face's tokenizers do: a special
 * token stays special, and a normalized form stays the decoded text. */
static void replace(mgl_added_token *old, mgl_added_token token)
{
    token.id = old->id;
    token.special |= old->special;
    if (!token.normalized) {
        char *decoded = token.decoded;
        token.decoded = old->decoded;
        token.decoded_length = old->decoded_length;
        old->decoded = decoded;
    }
    mgl_added_token_clear(old);
    *old = token;
}

/* Adds or replaces a token. `token` has the flags; `file` is for messages. */
static mgl_status put_token(mgl_tokenizer *tokenizer, const char *file, mgl_added_token token,
                            const char *content, int32_t stated, added_names *names, mgl_error *err)
{
    if (!*content) /* an empty text is not a token */
        return MGL_OK;
    if (strlen(content) > MGL_ADDED_LONGEST)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "added_tokens: \"%.100s...\" is longer than %d bytes", content,
                        MGL_ADDED_LONGEST);
    mgl_status status = set_texts(tokenizer, names->w, &token, content, err);
    int32_t before = mgl_vocab_find(&names->index, content, strlen(content));
    if (!status && before >= 0)
        replace(&tokenizer->added.tokens[before], token);
    else if (!status)
        status = put_new(tokenizer, &token, stated, names, err);
    if (status)
        mgl_added_token_clear(&token);
    return status;
}

static mgl_status load_one(mgl_tokenizer *tokenizer, const mgl_json *json, const cJSON *item,
                           added_names *names, mgl_error *err)
{
    mgl_added_token token = {0};
    const char *content = "";
    int32_t stated = 0;
    mgl_status status = read_added(json, item, &token, &content, &stated, err);
    return status ? status : put_token(tokenizer, json->file, token, content, stated, names, err);
}

/* Adds the declared tokens. Their new ids follow the largest id of an added token. */
static mgl_status put_declared(mgl_tokenizer *tokenizer, const mgl_declared *declared,
                               added_names *names, mgl_error *err)
{
    const mgl_added *added = &tokenizer->added;
    mgl_status status = MGL_OK;
    names->next = (int32_t)tokenizer->bpe.vocab.count;
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].id >= names->next)
            names->next = added->tokens[i].id + 1;
    for (size_t i = 0; i < declared->count && !status; i++) {
        const mgl_declared_token *from = &declared->tokens[i];
        mgl_added_token token = {.single_word = from->single_word,
                                 .lstrip = from->lstrip,
                                 .rstrip = from->rstrip,
                                 .normalized = from->normalized,
                                 .special = from->special};
        status = put_token(tokenizer, tokenizer->file, token, from->content, -1, names, err);
    }
    return status;
}

/* Marks hidden tokens: tokens that decode to the text of a special token. */
static void find_hidden(mgl_added *added, const mgl_vocab *index)
{
    for (size_t i = 0; i < added->count; i++) {
        mgl_added_token *token = &added->tokens[i];
        int32_t same = mgl_vocab_find(index, token->decoded, token->decoded_length);
        token->hidden = same >= 0 && added->tokens[same].special;
    }
}

mgl_status mgl_tokenizer_load_added(mgl_tokenizer *tokenizer, const mgl_json *json,
                                    const cJSON *value, const mgl_declared *declared,
                                    mgl_error *err)
{
    added_names names = {.next = (int32_t)tokenizer->bpe.vocab.count};
    mgl_status status = mgl_tokenizer_take_workspace(tokenizer, &names.w, err);
    if (status)
        return status;
    mgl_growth_begin(&names.w->growth);
    for (const cJSON *item = value ? value->child : NULL; item && !status; item = item->next)
        status = load_one(tokenizer, json, item, &names, err);
    if (!status)
        status = put_declared(tokenizer, declared, &names, err);
    mgl_workspaces_give(tokenizer->workspaces, names.w);
    if (!status)
        find_hidden(&tokenizer->added, &names.index);
    mgl_vocab_clear(&names.index);
    return status ? status : mgl_added_finish(&tokenizer->added, tokenizer->file, err);
}
