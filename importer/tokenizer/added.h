/*
 * Added tokens: texts that become one id wherever they stand, before anything else looks at them.
 * Those with `normalized` false are searched in the raw text, the others (in their own normalized
 * form) in the normalized text between those. Leftmost, then longest. The rules for lstrip, rstrip
 * and single_word follow AddedVocabulary::find_matches of Hugging Face's tokenizers.
 */
#ifndef MGL_IMPORTER_TOKENIZER_ADDED_H
#define MGL_IMPORTER_TOKENIZER_ADDED_H

#include "importer/tokenizer/pattern.h"

#define MGL_ADDED_LONGEST                                                                          \
    4096 /* bytes of the longest token; bounds the work at each byte of text */

typedef struct mgl_added_token {
    char *content;  /* owned; as the file has it */
    char *searched; /* owned; what is looked for: the normalized content where `normalized` */
    size_t searched_length;
    char *decoded; /* owned; what a decode has for it: the normalized content if it ever was that */
    size_t decoded_length;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
    bool hidden; /* a decode without special tokens leaves it out */
} mgl_added_token;

/* A set that is searched for at once: its tokens sorted by text, and where each first byte's
 * begin. */
typedef struct mgl_added_set {
    const mgl_added_token **sorted; /* (count) */
    size_t count;
    uint32_t first[257]; /* tokens whose text starts with byte b: sorted[first[b] .. first[b+1]) */
} mgl_added_set;

typedef struct mgl_added {
    mgl_added_token *tokens; /* (count) */
    size_t count, capacity;
    mgl_added_set raw, normalized;
    mgl_pattern *word; /* one character of a word, as the `regex` crate's \w has it */
} mgl_added;

void mgl_added_token_clear(mgl_added_token *token);

/* Sorts both sets, when all tokens are there. Of two tokens with one text the first is found. */
mgl_status mgl_added_finish(mgl_added *added, const char *file, mgl_error *err);

/* Called for each part of a text, in order: a token, or with token NULL the text between. */
typedef mgl_status mgl_added_fn(void *user, const mgl_added_token *token, size_t at, size_t to,
                                mgl_error *err);

mgl_status mgl_added_search(const mgl_added *added, const mgl_added_set *set, mgl_matcher *matcher,
                            const char *text, size_t length, mgl_added_fn *take, void *user,
                            mgl_error *err);

void mgl_added_clear(mgl_added *added);

#endif
