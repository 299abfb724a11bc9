/*
 * Normalizers: transform the text before it is split. A normalizer is a list of steps, each text ->
 * text. Called by tokenizer.c, and by load_added.c for added tokens.
 *
 * Each step also updates `head`: the number of leading bytes that come from the first character of
 * the original text. Metaspace's prepend scheme "first" needs it. (Hugging Face's tokenizers keep
 * an alignment for every byte and check whether the original offset is 0; nothing else needs the
 * alignment.)
 */
#ifndef MGL_IMPORTER_TOKENIZER_NORMALIZE_H
#define MGL_IMPORTER_TOKENIZER_NORMALIZE_H

#include "importer/tokenizer/growth.h"
#include "importer/tokenizer/pattern.h"

typedef enum mgl_normalize_kind {
    MGL_NORMALIZE_FORM,      /* NFC, NFD, NFKC, NFKD */
    MGL_NORMALIZE_PREPEND,   /* `content`, unless the text is empty */
    MGL_NORMALIZE_REPLACE,   /* `pattern` -> `content` */
    MGL_NORMALIZE_LOWERCASE, /* each character by itself */
    MGL_NORMALIZE_STRIP,     /* removes white space at `left` and `right` */
    MGL_NORMALIZE_BYTE_LEVEL /* bytes -> GPT-2's byte alphabet */
} mgl_normalize_kind;

typedef struct mgl_normalize_step {
    mgl_normalize_kind kind;
    bool compose, compatible; /* form: NFC and NFKC compose, NFKC and NFKD are compatible */
    bool left, right;
    char *content;        /* owned */
    mgl_pattern *pattern; /* owned */
} mgl_normalize_step;

typedef struct mgl_normalizer {
    mgl_normalize_step *steps; /* (count) */
    size_t count, capacity;
    const char *file; /* for messages; not owned */
} mgl_normalizer;

/* Scratch memory, one per thread that runs a normalizer. Zero-initialize the members that are
 * not borrowed. */
typedef struct mgl_normalizer_workspace {
    mgl_text text, spare; /* the result is in `text` */
    int32_t *characters;  /* for the normal forms */
    size_t character_room;
    mgl_matcher *matcher; /* borrowed */
    mgl_growth *growth;   /* borrowed; these steps are its first counters */
} mgl_normalizer_workspace;

void mgl_normalizer_workspace_clear(mgl_normalizer_workspace *workspace);

/* Appends a step and takes ownership of its members, also if memory runs out. */
mgl_status mgl_normalizer_add(mgl_normalizer *normalizer, mgl_normalize_step step, mgl_error *err);

/* Runs all steps on valid UTF-8. *out is `text` itself, or is in the workspace and valid until
 * its next use. *head is the head of `text` on input and the head of *out on output. */
mgl_status mgl_normalizer_run(const mgl_normalizer *normalizer, mgl_normalizer_workspace *workspace,
                              const char *text, size_t length, const char **out, size_t *out_length,
                              size_t *head, mgl_error *err);

void mgl_normalizer_clear(mgl_normalizer *normalizer);

#endif
