/*
 * Byte pair encoding (BPE): a piece of text -> ids. The piece is split into characters, each with
 * the id of its own token. Then the adjacent pair with the lowest rank (the leftmost of equals) is
 * merged into one token, until no pair is in the table of merges. In short words the pairs are
 * searched linearly, in long words with a binary heap; both give the same ids. Called by
 * tokenizer.c for each piece.
 *
 * Two optimizations keep the ids the same. A direct-mapped cache stores words seen before. A long
 * piece is split between two characters that no merge can join: no merged pair has a left side that
 * ends in the first character and a right side that begins with the second. The parts are then
 * independent, so a tokenizer without a pre-tokenizer is not slower.
 *
 * A character without a token becomes the tokens <0x00>..<0xFF> of its bytes if byte_fallback is
 * set and all of them exist. Otherwise it becomes the unknown token (a run of them becomes one if
 * fuse_unk is set), or nothing. Follows BPE::merge_word of Hugging Face's tokenizers, including the
 * order of pending unknown tokens and byte tokens.
 */
#ifndef MGL_IMPORTER_TOKENIZER_BPE_H
#define MGL_IMPORTER_TOKENIZER_BPE_H

#include "importer/tokenizer/vocab.h"

/* Growing array of ids. */
typedef struct mgl_id_list {
    int32_t *ids; /* (count) */
    size_t count, capacity;
} mgl_id_list;

/* Makes room for `more` ids; returns false if memory ran out. */
bool mgl_id_list_reserve(mgl_id_list *list, size_t more);

typedef struct mgl_bpe_merge {
    uint64_t key; /* left id << 32 | right id; all ones: the slot is free */
    uint32_t rank;
    int32_t id; /* of the merged token */
} mgl_bpe_merge;

typedef struct mgl_bpe_word mgl_bpe_word; /* a cache entry */
typedef struct mgl_bpe_heap mgl_bpe_heap; /* for long words */

/* Scratch memory of encoding, one per encoding thread. */
typedef struct mgl_bpe_workspace {
    mgl_bpe_word *cache; /* direct-mapped: words seen before */
    mgl_id_list symbols; /* the word to merge */
    uint32_t *ranks;     /* for short words */
    mgl_bpe_heap *heap;
    mgl_text mapped; /* a piece in GPT-2's byte alphabet */
} mgl_bpe_workspace;

#define MGL_BPE_NO_UNKNOWN (-1) /* the model has no unknown token */
#define MGL_BPE_UNKNOWN_MISSING                                                                    \
    (-2)                         /* the vocabulary lacks the unknown token: an error when it is    \
                                  * needed */
#define MGL_BPE_DIRECT    0x3100 /* characters below have their id in a table */
#define MGL_BPE_JOIN_BITS 17

typedef struct mgl_bpe {
    mgl_vocab vocab;
    mgl_bpe_merge *merges; /* (merge_slots), open addressing */
    size_t merge_slots;
    bool byte_fallback, fuse_unk, ignore_merges;
    int32_t unknown;                               /* an id or a constant above */
    bool byte_level;                               /* pieces are raw bytes: see byte_level.h */
    int32_t fallback[256];                         /* ids of <0x00>..<0xFF>, or -1 */
    int32_t *direct;                               /* (MGL_BPE_DIRECT) ids of characters, or -1 */
    uint64_t joins[(1 << MGL_BPE_JOIN_BITS) / 64]; /* hashed pairs that merges can join */
    const char *file;                              /* for messages; not owned */
} mgl_bpe;

/* Makes room for `count` merges; call after the vocabulary is filled. Returns false if memory
 * ran out. */
bool mgl_bpe_reserve_merges(mgl_bpe *bpe, size_t count);

/* Adds a merge; a later merge of the same pair replaces an earlier one. */
void mgl_bpe_add_merge(mgl_bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t id);

/* Builds the tables; call after the last merge. Returns false if memory ran out. */
bool mgl_bpe_finish(mgl_bpe *bpe);

/* Fills a zeroed workspace. Returns false if memory ran out; it must be cleared in both cases. */
bool mgl_bpe_workspace_open(mgl_bpe_workspace *workspace);
void mgl_bpe_workspace_clear(mgl_bpe_workspace *workspace);

/* Appends the ids of one piece: valid UTF-8, not mapped to the byte alphabet even if byte_level is
 * set. A workspace serves only one BPE. */
mgl_status mgl_bpe_encode(const mgl_bpe *bpe, mgl_bpe_workspace *workspace, const char *piece,
                          size_t length, mgl_id_list *out, mgl_error *err);

void mgl_bpe_clear(mgl_bpe *bpe);

#endif
