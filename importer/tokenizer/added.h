/*
 * Added tokens: texts that become one id wherever they occur, before all other processing.
 * Tokens with `normalized` false are searched in the raw text. The other tokens are searched in
 * their normalized form, in the normalized text between the raw matches. The leftmost match
 * wins, then the longest. The rules for lstrip, rstrip and single_word follow
 * AddedVocabulary::find_matches of Hugging Face's tokenizers. Used by tokenizer.c.
 */
#ifndef MGL_IMPORTER_TOKENIZER_ADDED_H
#define MGL_IMPORTER_TOKENIZER_ADDED_H

#include "importer/tokenizer/pattern.h"

#define MGL_ADDED_LONGEST                                                                          \
    4096 /* bytes of the longest token; limits the search per byte of text                         \
          */

typedef struct mgl_added_token {
    char *content;  /* owned; the text in the file */
    char *searched; /* owned; the searched text: the normalized content if `normalized` */
    size_t searched_length;
    char *decoded; /* owned; the decoded text: the normalized content if any entry was normalized */
    size_t decoded_length;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
    bool hidden; /* omitted from a decode without special tokens */
} mgl_added_token;

/* A set of tokens that are searched together: sorted by text, with an index by first byte. */
typedef struct mgl_added_set {
    const mgl_added_token **sorted; /* (count) */
    size_t count;
    uint32_t first[257]; /* tokens whose text starts with byte b: sorted[first[b] .. first[b+1]) */
} mgl_added_set;

typedef struct mgl_added {
    mgl_added_token *tokens; /* (count) */
    size_t count, capacity;
    mgl_added_set raw, normalized;
    mgl_pattern *word; /* matches one word character: \w of the `regex` crate */
} mgl_added;

void mgl_added_token_clear(mgl_added_token *token);

/* Sorts both sets. Call after all tokens are added. Of two tokens with the same text, the first
 * is found. */
mgl_status mgl_added_finish(mgl_added *added, const char *file, mgl_error *err);

/* Called for each part of a text, in order: a token, or the text between tokens (token NULL). */
typedef mgl_status mgl_added_fn(void *user, const mgl_added_token *token, size_t at, size_t to,
                                mgl_error *err);

mgl_status mgl_added_search(const mgl_added *added, const mgl_added_set *set, mgl_matcher *matcher,
                            const char *text, size_t length, mgl_added_fn *take, void *user,
                            mgl_error *err);

void mgl_added_clear(mgl_added *added);

#endif
