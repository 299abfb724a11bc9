/*
 * Byte pair encoding: a piece of text -> ids. The piece is cut into characters, each the id of its
 * own token; then, again and again, the adjacent pair with the lowest rank (the leftmost of
 * equals) becomes one token, until no pair is in the table of merges. Short words search the pairs
 * linearly, long ones keep them in a heap; both give the same ids.
 *
 * Two things make it fast without changing any id. Words seen before come from a small cache. And
 * a long piece is cut between two characters that no merge can ever join (no merged pair has a
 * left side ending in the one and a right side beginning with the other): its parts are then
 * independent, so that a tokenizer that never splits its text costs no more than one that does.
 *
 * Characters without a token: the tokens <0x00>..<0xFF> of their bytes where byte_fallback is set
 * and all of them exist, else the unknown token (runs of it become one where fuse_unk is set),
 * else nothing. Follows BPE::merge_word of Hugging Face's tokenizers, whose order of pending
 * unknown tokens and byte tokens it keeps.
 */
#ifndef MGL_IMPORTER_TOKENIZER_BPE_H
#define MGL_IMPORTER_TOKENIZER_BPE_H

#include "importer/tokenizer/vocab.h"

/* Growing array of ids. */
typedef struct mgl_id_list {
    int32_t *ids; /* (count) */
    size_t count, capacity;
} mgl_id_list;

/* Makes room for `more` ids; false when memory ran out. */
bool mgl_id_list_reserve(mgl_id_list *list, size_t more);

typedef struct mgl_bpe_merge {
    uint64_t key; /* left id << 32 | right id; all ones where the slot is free */
    uint32_t rank;
    int32_t id; /* of the merged token */
} mgl_bpe_merge;

typedef struct mgl_bpe_word mgl_bpe_word; /* a cache entry */
typedef struct mgl_bpe_heap mgl_bpe_heap; /* of long words */

/* What encoding writes: one for each thread that encodes. */
typedef struct mgl_bpe_workspace {
    mgl_bpe_word *cache; /* direct-mapped: words seen before */
    mgl_id_list symbols; /* the word being merged */
    uint32_t *ranks;     /* of short words */
    mgl_bpe_heap *heap;
    mgl_text mapped; /* a piece in GPT-2's alphabet */
} mgl_bpe_workspace;

#define MGL_BPE_NO_UNKNOWN (-1) /* the model names no unknown token */
#define MGL_BPE_UNKNOWN_MISSING                                                                    \
    (-2)                         /* it names one that the vocabulary lacks: an error when used */
#define MGL_BPE_DIRECT    0x3100 /* characters below have their id in a table */
#define MGL_BPE_JOIN_BITS 17

typedef struct mgl_bpe {
    mgl_vocab vocab;
    mgl_bpe_merge *merges; /* (merge_slots), open addressing */
    size_t merge_slots;
    bool byte_fallback, fuse_unk, ignore_merges;
    int32_t unknown;                               /* id or one of the constants above */
    bool byte_level;                               /* pieces are raw bytes, see byte_level.h */
    int32_t fallback[256];                         /* ids of <0x00>..<0xFF>, -1 where missing */
    int32_t *direct;                               /* (MGL_BPE_DIRECT) ids of characters, or -1 */
    uint64_t joins[(1 << MGL_BPE_JOIN_BITS) / 64]; /* hashed pairs of characters that merges join */
    const char *file;                              /* for messages; not owned */
} mgl_bpe;

/* After the vocabulary is filled: room for `count` merges. False when memory ran out. */
bool mgl_bpe_reserve_merges(mgl_bpe *bpe, size_t count);

/* Adds a merge; the later of two for one pair wins. */
void mgl_bpe_add_merge(mgl_bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t id);

/* After the last merge: makes the tables. False when memory ran out. */
bool mgl_bpe_finish(mgl_bpe *bpe);

/* Fills a zeroed workspace; to be cleared also when memory ran out, which is false. */
bool mgl_bpe_workspace_open(mgl_bpe_workspace *workspace);
void mgl_bpe_workspace_clear(mgl_bpe_workspace *workspace);

/* Appends the ids of one piece (valid UTF-8; the raw text also where byte_level is set). A
 * workspace serves one BPE. */
mgl_status mgl_bpe_encode(const mgl_bpe *bpe, mgl_bpe_workspace *workspace, const char *piece,
                          size_t length, mgl_id_list *out, mgl_error *err);

void mgl_bpe_clear(mgl_bpe *bpe);

#endif
