/*
 * Merges of SentencePiece BPE (https://aclanthology.org/D18-2012). SentencePiece merges the two
 * neighbors whose joined text is the token with the highest score. So every way to write a token as
 * two tokens is a merge, and merges are ranked by the score of the joined token. Equal scores are
 * ranked as by the converter of Hugging Face Transformers: longer left parts first, then longer
 * right parts.
 */
#include "importer/gguf/tokens.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

/* A token by text. */
typedef struct entry {
    mgl_gguf_string text;
    uint32_t id;
} entry;

typedef struct merge {
    float score;
    uint32_t joined, left, right; /* ids */
    uint32_t left_characters, right_characters;
} merge;

typedef struct merge_list {
    merge *items; /* owned (count) */
    size_t count, capacity;
} merge_list;

static int compare_texts(mgl_gguf_string a, mgl_gguf_string b)
{
    const size_t shared = a.length < b.length ? a.length : b.length;
    const int order = memcmp(a.bytes, b.bytes, shared);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int by_text(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int order = compare_texts(x->text, y->text);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static int find_text(const void *key, const void *item)
{
    return compare_texts(*(const mgl_gguf_string *)key, ((const entry *)item)->text);
}

static int compare_ids(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_rank(const void *a, const void *b)
{
    const merge *x = a, *y = b;
    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_characters != y->left_characters)
        return compare_ids(y->left_characters, x->left_characters);
    if (x->right_characters != y->right_characters)
        return compare_ids(y->right_characters, x->right_characters);
    if (x->joined != y->joined)
        return compare_ids(x->joined, y->joined);
    return x->left != y->left ? compare_ids(x->left, y->left) : compare_ids(x->right, y->right);
}

static uint32_t count_characters(mgl_gguf_string text)
{
    uint32_t count = 0;
    for (size_t i = 0; i < text.length; i += mgl_utf8_size(text.bytes[i]))
        count++;
    return count;
}

/* Adds the merges that make a token. */
static bool add_merges(const mgl_gguf_tokens *tokens, const entry *entries, uint32_t id,
                       merge_list *list)
{
    const mgl_gguf_string text = tokens->texts[id];
    for (size_t cut = text.length ? mgl_utf8_size(text.bytes[0]) : 0; cut < text.length;
         cut += mgl_utf8_size(text.bytes[cut])) {
        const mgl_gguf_string sides[2] = {{text.bytes, cut}, {text.bytes + cut, text.length - cut}};
        const entry *left = bsearch(&sides[0], entries, tokens->count, sizeof *entries, find_text);
        const entry *right =
            left ? bsearch(&sides[1], entries, tokens->count, sizeof *entries, find_text) : NULL;
        void *items = list->items;
        if (!right)
            continue;
        if (!mgl_grow(&items, &list->capacity, list->count, sizeof *list->items))
            return false;
        list->items = items;
        list->items[list->count++] =
            (merge){tokens->scores[id],        id, left->id, right->id, count_characters(sides[0]),
                    count_characters(sides[1])};
    }
    return true;
}

static void write_list(const mgl_gguf_tokens *tokens, const merge_list *list, mgl_json_out *out)
{
    mgl_json_out_array(out, "merges");
    for (size_t i = 0; i < list->count; i++) {
        const mgl_gguf_string left = tokens->texts[list->items[i].left];
        const mgl_gguf_string right = tokens->texts[list->items[i].right];
        mgl_json_out_array(out, NULL);
        mgl_json_out_text(out, NULL, left.bytes, left.length);
        mgl_json_out_text(out, NULL, right.bytes, right.length);
        mgl_json_out_close_array(out);
    }
    mgl_json_out_close_array(out);
}

static bool is_piece(const mgl_gguf_tokens *tokens, size_t id)
{
    const int64_t type = tokens->types ? tokens->types[id] : MGL_GGUF_TOKEN_NORMAL;
    return type == MGL_GGUF_TOKEN_NORMAL || type == MGL_GGUF_TOKEN_USER ||
           type == MGL_GGUF_TOKEN_UNUSED;
}

mgl_status mgl_gguf_write_pieces(const mgl_gguf *gguf, const mgl_gguf_tokens *tokens,
                                 mgl_json_out *out, mgl_error *err)
{
    merge_list list = {0};
    if (!tokens->scores)
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        "tokenizer.ggml.scores: the key is missing; download the file again");
    for (size_t i = 0; i < tokens->count; i++)
        if (isnan(tokens->scores[i]))
            return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                            "tokenizer.ggml.scores: the score of token %zu is NaN; download the "
                            "file again",
                            i);
    entry *entries = mgl_alloc_zero(tokens->count, sizeof *entries);
    bool good = entries != NULL;
    for (size_t i = 0; i < tokens->count && good; i++)
        entries[i] = (entry){tokens->texts[i], (uint32_t)i};
    if (good)
        qsort(entries, tokens->count, sizeof *entries, by_text);
    for (size_t i = 0; i < tokens->count && good; i++)
        if (is_piece(tokens, i))
            good = add_merges(tokens, entries, (uint32_t)i, &list);
    if (good && list.count)
        qsort(list.items, list.count, sizeof *list.items, by_rank);
    if (good)
        write_list(tokens, &list, out);
    mgl_free(list.items);
    mgl_free(entries);
    return good ? MGL_OK : mgl_fail_memory(err, tokens->count * sizeof *entries);
}
