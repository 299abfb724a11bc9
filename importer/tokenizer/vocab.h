/*
 * The vocabulary of a BPE model: text <-> id. All texts are in one arena. A hash table (open
 * addressing) maps texts to ids, an array maps ids to texts. Ids need not be dense.
 */
#ifndef MGL_IMPORTER_TOKENIZER_VOCAB_H
#define MGL_IMPORTER_TOKENIZER_VOCAB_H

#include "base/error.h"
#include "base/text.h"

#include <string.h>

/* The largest possible id. The table by id has as many entries as the largest id in use. */
#define MGL_VOCAB_MAX_ID ((1 << 24) - 1)

typedef struct mgl_vocab_entry {
    size_t offset;   /* of the text in the arena */
    uint32_t length; /* bytes */
    int32_t id;
} mgl_vocab_entry;

typedef struct mgl_vocab {
    mgl_text arena;           /* all texts, concatenated */
    mgl_vocab_entry *entries; /* (count), in the order of adding */
    size_t count, capacity;
    uint32_t *slots;   /* (slot_count) entry + 1, 0: free */
    size_t slot_count; /* a power of two, at least twice `count` */
    uint32_t *by_id;   /* (id_count) entry + 1, 0: no token with this id */
    size_t id_count;
    size_t longest; /* bytes of the longest text */
} mgl_vocab;

/* Hashes eight bytes per step; for tables in memory only, never stored. */
static inline uint64_t mgl_hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = 0x9E3779B97F4A7C15u ^ length, word;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    word = 0;
    if (length)
        memcpy(&word, bytes, length);
    hash = (hash ^ word) * 0xC4CEB9FE1A85EC53u;
    return hash ^ hash >> 29;
}

/* Makes room for `count` tokens in total. Returns false if memory ran out. */
bool mgl_vocab_reserve(mgl_vocab *vocab, size_t count);

typedef enum mgl_vocab_added {
    MGL_VOCAB_ADDED,
    MGL_VOCAB_SAME_TEXT, /* rejected: this text already has an id */
    MGL_VOCAB_SAME_ID,   /* rejected: this id already has a text */
    MGL_VOCAB_NO_MEMORY
} mgl_vocab_added;

/* Adds a token; 0 <= id <= MGL_VOCAB_MAX_ID. */
mgl_vocab_added mgl_vocab_add(mgl_vocab *vocab, const char *text, size_t length, int32_t id);

/* Returns the id of a text, or -1. */
int32_t mgl_vocab_find(const mgl_vocab *vocab, const char *text, size_t length);

/* Returns the text of an id, not 0-terminated, or NULL. */
const char *mgl_vocab_text(const mgl_vocab *vocab, int32_t id, size_t *length);

void mgl_vocab_clear(mgl_vocab *vocab);

#endif
