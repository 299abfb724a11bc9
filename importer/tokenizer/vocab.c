/* The hash table and the arena of a vocabulary. See vocab.h. */
#include "importer/tokenizer/vocab.h"

#include "base/memory.h"

static uint32_t *slot_of(const mgl_vocab *vocab, const char *text, size_t length)
{
    size_t mask = vocab->slot_count - 1;
    size_t at = (size_t)mgl_hash_bytes(text, length) & mask;
    while (vocab->slots[at]) {
        const mgl_vocab_entry *entry = &vocab->entries[vocab->slots[at] - 1];
        if (entry->length == length &&
            (!length || !memcmp(vocab->arena.bytes + entry->offset, text, length)))
            break;
        at = (at + 1) & mask;
    }
    return &vocab->slots[at];
}

static bool rehash(mgl_vocab *vocab, size_t slot_count)
{
    uint32_t *slots = mgl_alloc_zero(slot_count, sizeof *slots);
    if (!slots)
        return false;
    mgl_free(vocab->slots);
    vocab->slots = slots;
    vocab->slot_count = slot_count;
    for (size_t i = 0; i < vocab->count; i++) {
        const mgl_vocab_entry *entry = &vocab->entries[i];
        *slot_of(vocab, vocab->arena.bytes + entry->offset, entry->length) = (uint32_t)i + 1;
    }
    return true;
}

bool mgl_vocab_reserve(mgl_vocab *vocab, size_t count)
{
    size_t wanted = 16;
    while (wanted / 2 < count)
        wanted *= 2;
    if (wanted > vocab->slot_count && !rehash(vocab, wanted))
        return false;
    while (vocab->capacity < count) {
        if (!mgl_grow((void **)&vocab->entries, &vocab->capacity, vocab->capacity,
                      sizeof *vocab->entries))
            return false;
    }
    return true;
}

static bool reserve_id(mgl_vocab *vocab, int32_t id)
{
    if ((size_t)id < vocab->id_count)
        return true;
    size_t wanted = vocab->id_count ? vocab->id_count : 256;
    while (wanted <= (size_t)id)
        wanted *= 2;
    uint32_t *grown = mgl_realloc(vocab->by_id, wanted * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + vocab->id_count, 0, (wanted - vocab->id_count) * sizeof *grown);
    vocab->by_id = grown;
    vocab->id_count = wanted;
    return true;
}

mgl_vocab_added mgl_vocab_add(mgl_vocab *vocab, const char *text, size_t length, int32_t id)
{
    if (length > UINT32_MAX || !mgl_vocab_reserve(vocab, vocab->count + 1) ||
        !reserve_id(vocab, id))
        return MGL_VOCAB_NO_MEMORY;
    uint32_t *slot = slot_of(vocab, text, length);
    if (*slot)
        return MGL_VOCAB_SAME_TEXT;
    if (vocab->by_id[id])
        return MGL_VOCAB_SAME_ID;
    size_t offset = vocab->arena.length;
    mgl_text_append(&vocab->arena, text, length);
    if (vocab->arena.failed)
        return MGL_VOCAB_NO_MEMORY;
    vocab->entries[vocab->count] = (mgl_vocab_entry){offset, (uint32_t)length, id};
    *slot = vocab->by_id[id] = (uint32_t)++vocab->count;
    if (length > vocab->longest)
        vocab->longest = length;
    return MGL_VOCAB_ADDED;
}

int32_t mgl_vocab_find(const mgl_vocab *vocab, const char *text, size_t length)
{
    if (!vocab->count)
        return -1;
    uint32_t entry = *slot_of(vocab, text, length);
    return entry ? vocab->entries[entry - 1].id : -1;
}

const char *mgl_vocab_text(const mgl_vocab *vocab, int32_t id, size_t *length)
{
    if (id < 0 || (size_t)id >= vocab->id_count || !vocab->by_id[id])
        return NULL;
    const mgl_vocab_entry *entry = &vocab->entries[vocab->by_id[id] - 1];
    *length = entry->length;
    return vocab->arena.bytes + entry->offset;
}

void mgl_vocab_clear(mgl_vocab *vocab)
{
    mgl_text_clear(&vocab->arena);
    mgl_free(vocab->entries);
    mgl_free(vocab->slots);
    mgl_free(vocab->by_id);
    *vocab = (mgl_vocab){0};
}
