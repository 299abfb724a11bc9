/*
 * The vocabulary of a BPE model: text <-> id. Texts lie in one arena; a hash table (open
 * addressing) finds the id, an array indexed by id finds the text. Ids need not be dense.
 */
#ifndef MGL_IMPORTER_TOKENIZER_VOCAB_H
#define MGL_IMPORTER_TOKENIZER_VOCAB_H

#include "base/error.h"
#include "base/text.h"

#include <string.h>

/* The largest id; the table by id has as many slots as the largest id in use. */
#define MGL_VOCAB_MAX_ID ((1 << 24) - 1)

typedef struct mgl_vocab_entry {
    size_t offset;   /* of the text in the arena */
    uint32_t length; /* bytes */
    int32_t id;
} mgl_vocab_entry;

typedef struct mgl_vocab {
    mgl_text arena;           /* all texts, one behind the other */
    mgl_vocab_entry *entries; /* (count), in the order they were added */
    size_t count, capacity;
    uint32_t *slots;   /* (slot_count) entry + 1, 0 where free */
    size_t slot_count; /* a power of two, at least twice `count` */
    uint32_t *by_id;   /* (id_count) entry + 1, 0 where no token has this id */
    size_t id_count;
    size_t longest; /* bytes of the longest text */
} mgl_vocab;

/* Mixes eight bytes a step; for tables in memory only, never stored. */
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

/* Makes room for `count` tokens in all. False when memory ran out. */
bool mgl_vocab_reserve(mgl_vocab *vocab, size_t count);

typedef enum mgl_vocab_added {
    MGL_VOCAB_ADDED,
    MGL_VOCAB_SAME_TEXT, /* refused: this text has an id already */
    MGL_VOCAB_SAME_ID,   /* refused: this id has a text already */
    MGL_VOCAB_NO_MEMORY
} mgl_vocab_added;

/* Adds a token; 0 <= id <= MGL_VOCAB_MAX_ID. */
mgl_vocab_added mgl_vocab_add(mgl_vocab *vocab, const char *text, size_t length, int32_t id);

/* The id of a text; -1 when there is none. */
int32_t mgl_vocab_find(const mgl_vocab *vocab, const char *text, size_t length);

/* The text of an id, not 0-terminated; NULL when there is none. */
const char *mgl_vocab_text(const mgl_vocab *vocab, int32_t id, size_t *length);

void mgl_vocab_clear(mgl_vocab *vocab);

#endif
