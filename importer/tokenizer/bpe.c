/* Implements byte pair encoding. bpe.h describes the algorithm. */
#include "importer/tokenizer/bpe.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/byte_level.h"

#include <stdio.h>

#define FREE_KEY   UINT64_MAX
#define NO_RANK    UINT32_MAX
#define SHORT_WORD 48 /* symbols; up to here a linear search is faster than a heap */
#define CACHE_BITS 15
#define CACHE_KEY  30
#define CACHE_IDS  8

/* A cached word and its ids: one cache line. */
struct mgl_bpe_word {
    uint8_t length; /* of the key; 0: the entry is free */
    uint8_t count;
    char key[CACHE_KEY];
    int32_t ids[CACHE_IDS];
};

/* A possible merge. `order` is rank << 32 | position, so the minimum is the next merge. */
typedef struct heap_item {
    uint64_t order;
    int32_t id;
} heap_item;

struct mgl_bpe_heap {
    heap_item *items;
    size_t count, capacity;
    uint32_t *next, *previous; /* (links) neighbors of a symbol; NO_LINK at the ends */
    size_t links;
};

#define NO_LINK UINT32_MAX

bool mgl_id_list_reserve(mgl_id_list *list, size_t more)
{
    size_t need, bytes;
    if (!mgl_add(list->count, more, &need))
        return false;
    if (need <= list->capacity)
        return true;
    size_t wanted = list->capacity ? list->capacity : 64;
    while (wanted < need)
        wanted = wanted > need / 2 ? need : wanted * 2;
    if (wanted < list->capacity + list->capacity / 2)
        wanted = list->capacity + list->capacity / 2;
    if (!mgl_mul(wanted, sizeof *list->ids, &bytes))
        return false;
    int32_t *grown = mgl_realloc(list->ids, bytes);
    if (!grown)
        return false;
    list->ids = grown;
    list->capacity = wanted;
    return true;
}

static bool append_id(mgl_id_list *list, int32_t id)
{
    if (list->count == list->capacity && !mgl_id_list_reserve(list, 1))
        return false;
    list->ids[list->count++] = id;
    return true;
}

/* ---- tables --------------------------------------------------------------------------------- */

static uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static mgl_bpe_merge *merge_slot(const mgl_bpe *bpe, uint64_t key)
{
    size_t mask = bpe->merge_slots - 1;
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(hash ^ hash >> 32) & mask;
    while (bpe->merges[at].key != FREE_KEY && bpe->merges[at].key != key)
        at = (at + 1) & mask;
    return &bpe->merges[at];
}

/* Returns the merge of two neighbors, or NULL. */
static const mgl_bpe_merge *find_merge(const mgl_bpe *bpe, int32_t left, int32_t right)
{
    const mgl_bpe_merge *merge = merge_slot(bpe, pair_key(left, right));
    return merge->key == FREE_KEY ? NULL : merge;
}

bool mgl_bpe_reserve_merges(mgl_bpe *bpe, size_t count)
{
    size_t slots = 16, bytes;
    while (slots / 2 < count)
        slots *= 2;
    if (!mgl_mul(slots, sizeof *bpe->merges, &bytes))
        return false;
    bpe->merges = mgl_alloc(bytes);
    if (!bpe->merges)
        return false;
    bpe->merge_slots = slots;
    for (size_t i = 0; i < slots; i++)
        bpe->merges[i].key = FREE_KEY;
    return true;
}

static size_t join_bit(uint32_t left, uint32_t right)
{
    uint64_t hash = ((uint64_t)left << 21 | right) * 0x9E3779B97F4A7C15u;
    return (size_t)(hash >> (64 - MGL_BPE_JOIN_BITS));
}

/* Records that `left` and `right` can become neighbors within a token. */
static void note_join(mgl_bpe *bpe, int32_t left, int32_t right)
{
    size_t left_length, right_length;
    const char *a = mgl_vocab_text(&bpe->vocab, left, &left_length);
    const char *b = mgl_vocab_text(&bpe->vocab, right, &right_length);
    uint32_t last, first;
    if (!left_length || !right_length)
        return;
    mgl_utf8_next(a + mgl_utf8_last(a, left_length), &last);
    mgl_utf8_next(b, &first);
    size_t bit = join_bit(last, first);
    bpe->joins[bit / 64] |= (uint64_t)1 << (bit % 64);
}

void mgl_bpe_add_merge(mgl_bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    uint64_t key = pair_key(left, right);
    *merge_slot(bpe, key) = (mgl_bpe_merge){key, rank, id};
    note_join(bpe, left, right);
}

bool mgl_bpe_finish(mgl_bpe *bpe)
{
    char text[8];
    bpe->direct = mgl_alloc(MGL_BPE_DIRECT * sizeof *bpe->direct);
    if (!bpe->direct)
        return false;
    for (uint32_t c = 0; c < MGL_BPE_DIRECT; c++)
        bpe->direct[c] = mgl_vocab_find(&bpe->vocab, text, mgl_utf8_put(c, text));
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(text, sizeof text, "<0x%02X>", byte);
        bpe->fallback[byte] = mgl_vocab_find(&bpe->vocab, text, 6);
    }
    return true;
}

bool mgl_bpe_workspace_open(mgl_bpe_workspace *workspace)
{
    workspace->cache = mgl_alloc_zero((size_t)1 << CACHE_BITS, sizeof *workspace->cache);
    workspace->ranks = mgl_alloc(SHORT_WORD * sizeof *workspace->ranks);
    workspace->heap = mgl_alloc_zero(1, sizeof *workspace->heap);
    return workspace->cache && workspace->ranks && workspace->heap;
}

void mgl_bpe_workspace_clear(mgl_bpe_workspace *workspace)
{
    if (workspace->heap) {
        mgl_free(workspace->heap->items);
        mgl_free(workspace->heap->next);
        mgl_free(workspace->heap->previous);
    }
    mgl_free(workspace->heap);
    mgl_free(workspace->ranks);
    mgl_free(workspace->symbols.ids);
    mgl_text_clear(&workspace->mapped);
    mgl_free(workspace->cache);
    *workspace = (mgl_bpe_workspace){0};
}

void mgl_bpe_clear(mgl_bpe *bpe)
{
    mgl_free(bpe->direct);
    mgl_free(bpe->merges);
    mgl_vocab_clear(&bpe->vocab);
    *bpe = (mgl_bpe){0};
}

/* ---- characters -> symbols ------------------------------------------------------------------ */

/* Returns the id of one character's own token, or -1. */
static int32_t character_id(const mgl_bpe *bpe, uint32_t character, const char *text, size_t size)
{
    return character < MGL_BPE_DIRECT ? bpe->direct[character]
                                      : mgl_vocab_find(&bpe->vocab, text, size);
}

/* Appends the byte tokens of a character if all of them exist (*done). Returns false if memory
 * ran out. */
static bool append_fallback(const mgl_bpe *bpe, mgl_bpe_workspace *w, const char *text, size_t size,
                            bool *done)
{
    *done = false;
    for (size_t i = 0; i < size; i++) {
        if (bpe->fallback[(unsigned char)text[i]] < 0)
            return true;
    }
    for (size_t i = 0; i < size; i++) {
        if (!append_id(&w->symbols, bpe->fallback[(unsigned char)text[i]]))
            return false;
    }
    *done = true;
    return true;
}

/* Appends the symbols of one character. *pending: an unknown token is still to be appended. */
static mgl_status append_character(const mgl_bpe *bpe, mgl_bpe_workspace *w, uint32_t character,
                                   const char *text, size_t size, bool *pending, mgl_error *err)
{
    int32_t id = character_id(bpe, character, text, size);
    bool done = false, room = true;
    if (id >= 0) {
        if (*pending)
            room = append_id(&w->symbols, bpe->unknown);
        *pending = false;
        return room && append_id(&w->symbols, id) ? MGL_OK : mgl_fail_memory(err, sizeof id);
    }
    if (bpe->byte_fallback)
        room = append_fallback(bpe, w, text, size, &done);
    if (!room)
        return mgl_fail_memory(err, size * sizeof id);
    if (done || bpe->unknown == MGL_BPE_NO_UNKNOWN)
        return MGL_OK;
    if (bpe->unknown == MGL_BPE_UNKNOWN_MISSING)
        return mgl_fail(
            err, MGL_BAD_INPUT, bpe->file,
            "the text has the character U+%04X, which has no token, and model.unk_token "
            "is not in the vocabulary",
            (unsigned)character);
    if (*pending && !bpe->fuse_unk && !append_id(&w->symbols, bpe->unknown))
        return mgl_fail_memory(err, sizeof id);
    *pending = true;
    return MGL_OK;
}

/* Fills w->symbols with the characters of a word. */
static mgl_status read_symbols(const mgl_bpe *bpe, mgl_bpe_workspace *w, const char *word,
                               size_t length, mgl_error *err)
{
    bool pending = false;
    w->symbols.count = 0;
    for (size_t at = 0; at < length;) {
        uint32_t character;
        char mapped[4];
        const char *text = word + at;
        size_t size;
        if (bpe->byte_level) {
            character = mgl_byte_level_character((uint8_t)word[at++]);
            size = mgl_utf8_put(character, mapped);
            text = mapped;
        } else {
            size = mgl_utf8_next(word + at, &character);
            at += size;
        }
        mgl_status status = append_character(bpe, w, character, text, size, &pending, err);
        if (status)
            return status;
    }
    if (pending && !append_id(&w->symbols, bpe->unknown))
        return mgl_fail_memory(err, sizeof(int32_t));
    return MGL_OK;
}

/* ---- merging -------------------------------------------------------------------------------- */

static uint32_t pair_rank(const mgl_bpe *bpe, int32_t left, int32_t right)
{
    const mgl_bpe_merge *merge = find_merge(bpe, left, right);
    return merge ? merge->rank : NO_RANK;
}

/* Merges `count` symbols in place with a linear search; returns how many are left. */
static size_t merge_short(const mgl_bpe *bpe, mgl_bpe_workspace *w, int32_t *symbols, size_t count)
{
    uint32_t *ranks = w->ranks; /* (count - 1) of each symbol with its right neighbor */
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = pair_rank(bpe, symbols[i], symbols[i + 1]);
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++) {
            if (ranks[i] < ranks[best])
                best = i;
        }
        if (ranks[best] == NO_RANK)
            break;
        symbols[best] = find_merge(bpe, symbols[best], symbols[best + 1])->id;
        size_t behind = count - best - 2; /* symbols after the pair */
        memmove(symbols + best + 1, symbols + best + 2, behind * sizeof *symbols);
        if (behind)
            memmove(ranks + best, ranks + best + 1, behind * sizeof *ranks);
        count--;
        if (best > 0)
            ranks[best - 1] = pair_rank(bpe, symbols[best - 1], symbols[best]);
        if (best + 1 < count)
            ranks[best] = pair_rank(bpe, symbols[best], symbols[best + 1]);
    }
    return count;
}

static bool heap_push(mgl_bpe_heap *heap, uint32_t rank, size_t position, int32_t id)
{
    if (!mgl_grow((void **)&heap->items, &heap->capacity, heap->count, sizeof *heap->items))
        return false;
    heap_item item = {(uint64_t)rank << 32 | (uint32_t)position, id};
    size_t at = heap->count++;
    while (at > 0 && heap->items[(at - 1) / 2].order > item.order) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = item;
    return true;
}

static heap_item heap_pop(mgl_bpe_heap *heap)
{
    heap_item top = heap->items[0], last = heap->items[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->items[child + 1].order < heap->items[child].order)
            child++;
        if (heap->items[child].order >= last.order)
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = last;
    return top;
}

static bool push_pair(const mgl_bpe *bpe, mgl_bpe_workspace *w, const int32_t *symbols,
                      uint32_t left, uint32_t right)
{
    const mgl_bpe_merge *merge = find_merge(bpe, symbols[left], symbols[right]);
    return !merge || heap_push(w->heap, merge->rank, left, merge->id);
}

/* Makes room for the links of `count` symbols, and links them in order. */
static bool link_symbols(mgl_bpe_heap *heap, size_t count)
{
    if (heap->links < count) {
        mgl_free(heap->next);
        mgl_free(heap->previous);
        heap->next = mgl_alloc(count * sizeof *heap->next);
        heap->previous = mgl_alloc(count * sizeof *heap->previous);
        heap->links = heap->next && heap->previous ? count : 0;
        if (!heap->links)
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        heap->next[i] = i + 1 < count ? (uint32_t)i + 1 : NO_LINK;
        heap->previous[i] = i ? (uint32_t)i - 1 : NO_LINK;
    }
    heap->count = 0;
    return true;
}

/* Applies one merge if its pair still exists. A symbol that was merged into its left neighbor is
 * -1. */
static bool apply_merge(const mgl_bpe *bpe, mgl_bpe_workspace *w, int32_t *symbols, heap_item item)
{
    mgl_bpe_heap *heap = w->heap;
    uint32_t left = (uint32_t)item.order, right = heap->next[left];
    if (symbols[left] < 0 || right == NO_LINK)
        return true;
    const mgl_bpe_merge *merge = find_merge(bpe, symbols[left], symbols[right]);
    if (!merge || merge->id != item.id)
        return true;
    symbols[left] = item.id;
    symbols[right] = -1;
    uint32_t behind = heap->next[left] = heap->next[right];
    if (behind != NO_LINK)
        heap->previous[behind] = left;
    return (heap->previous[left] == NO_LINK ||
            push_pair(bpe, w, symbols, heap->previous[left], left)) &&
           (behind == NO_LINK || push_pair(bpe, w, symbols, left, behind));
}

/* Same result as merge_short, for any length, in O(n log n) with a heap. Returns false if memory
 * ran out. */
static bool merge_long(const mgl_bpe *bpe, mgl_bpe_workspace *w, int32_t *symbols, size_t *count)
{
    mgl_bpe_heap *heap = w->heap;
    size_t left = 0;
    if (!link_symbols(heap, *count))
        return false;
    for (size_t i = 0; i + 1 < *count; i++) {
        if (!push_pair(bpe, w, symbols, (uint32_t)i, (uint32_t)i + 1))
            return false;
    }
    while (heap->count) {
        if (!apply_merge(bpe, w, symbols, heap_pop(heap)))
            return false;
    }
    for (size_t i = 0; i < *count; i++) {
        if (symbols[i] >= 0)
            symbols[left++] = symbols[i];
    }
    *count = left;
    return true;
}

/* Merges w->symbols and appends the result to *out. */
static mgl_status merge_symbols(const mgl_bpe *bpe, mgl_bpe_workspace *w, mgl_id_list *out,
                                mgl_error *err)
{
    int32_t *symbols = w->symbols.ids;
    size_t count = w->symbols.count;
    if (count >= NO_LINK)
        return mgl_fail(err, MGL_BAD_INPUT, bpe->file,
                        "a word of %zu characters is more than the tokenizer can take", count);
    if (count <= SHORT_WORD)
        count = merge_short(bpe, w, symbols, count);
    else if (!merge_long(bpe, w, symbols, &count))
        return mgl_fail_memory(err, count * sizeof(heap_item));
    if (!mgl_id_list_reserve(out, count))
        return mgl_fail_memory(err, count * sizeof *symbols);
    if (count)
        memcpy(out->ids + out->count, symbols, count * sizeof *symbols);
    out->count += count;
    return MGL_OK;
}

/* ---- words ---------------------------------------------------------------------------------- */

/* Sets *id to the token of the whole piece if the model prefers it to merges; -1 if there is
 * none. */
static mgl_status whole_piece(const mgl_bpe *bpe, mgl_bpe_workspace *w, const char *piece,
                              size_t length, int32_t *id, mgl_error *err)
{
    *id = -1;
    if (!bpe->ignore_merges || length > bpe->vocab.longest)
        return MGL_OK;
    if (!bpe->byte_level) {
        *id = mgl_vocab_find(&bpe->vocab, piece, length);
        return MGL_OK;
    }
    w->mapped.length = 0;
    mgl_byte_level_map(piece, length, &w->mapped);
    if (w->mapped.failed) {
        mgl_text_clear(&w->mapped);
        return mgl_fail_memory(err, 2 * length);
    }
    *id = mgl_vocab_find(&bpe->vocab, w->mapped.bytes, w->mapped.length);
    return MGL_OK;
}

static mgl_status encode_word(const mgl_bpe *bpe, mgl_bpe_workspace *w, const char *word,
                              size_t length, mgl_id_list *out, mgl_error *err)
{
    mgl_status status = read_symbols(bpe, w, word, length, err);
    return status ? status : merge_symbols(bpe, w, out, err);
}

/* Encodes a word through the cache. `whole`: the word is the whole piece. */
static mgl_status encode_cached(const mgl_bpe *bpe, mgl_bpe_workspace *w, const char *word,
                                size_t length, bool whole, mgl_id_list *out, mgl_error *err)
{
    mgl_bpe_word *entry = &w->cache[mgl_hash_bytes(word, length) >> (64 - CACHE_BITS)];
    if (entry->length == length && !memcmp(entry->key, word, length)) {
        if (!mgl_id_list_reserve(out, CACHE_IDS))
            return mgl_fail_memory(err, CACHE_IDS * sizeof *out->ids);
        memcpy(out->ids + out->count, entry->ids, sizeof entry->ids);
        out->count += entry->count;
        return MGL_OK;
    }
    size_t before = out->count;
    int32_t id = -1;
    mgl_status status = whole ? whole_piece(bpe, w, word, length, &id, err) : MGL_OK;
    if (!status && id < 0)
        status = encode_word(bpe, w, word, length, out, err);
    else if (!status && !append_id(out, id))
        status = mgl_fail_memory(err, sizeof id);
    if (status || out->count - before > CACHE_IDS)
        return status;
    entry->length = (uint8_t)length;
    entry->count = (uint8_t)(out->count - before);
    memcpy(entry->key, word, length);
    if (entry->count)
        memcpy(entry->ids, out->ids + before, entry->count * sizeof *entry->ids);
    return MGL_OK;
}

/* Returns the length of the first part that no merge can join to the rest. */
static size_t independent_part(const mgl_bpe *bpe, const char *text, size_t length)
{
    uint32_t left, right;
    size_t before = 0, at = mgl_utf8_next(text, &left);
    for (; at < length; left = right) {
        size_t size = mgl_utf8_next(text + at, &right), bit = join_bit(left, right);
        if (!(bpe->joins[bit / 64] >> (bit % 64) & 1) &&
            character_id(bpe, left, text + before, at - before) >= 0 &&
            character_id(bpe, right, text + at, size) >= 0)
            return at;
        before = at;
        at += size;
    }
    return length;
}

mgl_status mgl_bpe_encode(const mgl_bpe *bpe, mgl_bpe_workspace *w, const char *piece,
                          size_t length, mgl_id_list *out, mgl_error *err)
{
    if (!length)
        return MGL_OK;
    if (length <= CACHE_KEY)
        return encode_cached(bpe, w, piece, length, true, out, err);
    int32_t id;
    mgl_status status = whole_piece(bpe, w, piece, length, &id, err);
    if (status)
        return status;
    if (id >= 0)
        return append_id(out, id) ? MGL_OK : mgl_fail_memory(err, sizeof id);
    if (bpe->byte_level)
        return encode_word(bpe, w, piece, length, out, err);
    while (length) {
        size_t part = independent_part(bpe, piece, length);
        /* If the token of a whole piece has priority over merges, the cache contains only whole
         * pieces. */
        status = part <= CACHE_KEY && !bpe->ignore_merges
                     ? encode_cached(bpe, w, piece, part, false, out, err)
                     : encode_word(bpe, w, piece, part, out, err);
        if (status)
            return status;
        piece += part;
        length -= part;
    }
    return MGL_OK;
}
