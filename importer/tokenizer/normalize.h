/*
 * Normalizers: what is done to the text before it is cut. A list of steps, each text -> text.
 *
 * Beside the text goes one number, `head`: how many leading bytes come from the first character of
 * the original text. Metaspace's prepend scheme "first" asks for it (Hugging Face's tokenizers keep
 * an alignment for every byte and ask whether the original offset is 0; nothing else needs it).
 */
#ifndef MGL_IMPORTER_TOKENIZER_NORMALIZE_H
#define MGL_IMPORTER_TOKENIZER_NORMALIZE_H

#include "importer/tokenizer/growth.h"
#include "importer/tokenizer/pattern.h"

typedef enum mgl_normalize_kind {
    MGL_NORMALIZE_FORM,      /* NFC, NFD, NFKC, NFKD */
    MGL_NORMALIZE_PREPEND,   /* `content`, unless the text is empty */
    MGL_NORMALIZE_REPLACE,   /* `pattern` by `content` */
    MGL_NORMALIZE_LOWERCASE, /* character by character */
    MGL_NORMALIZE_STRIP,     /* white space at `left` and `right` */
    MGL_NORMALIZE_BYTE_LEVEL /* bytes -> GPT-2's alphabet */
} mgl_normalize_kind;

typedef struct mgl_normalize_step {
    mgl_normalize_kind kind;
    bool compose, compatible; /* the form: NFC and NFKC compose, NFKC and NFKD are compatible */
    bool left, right;
    char *content;        /* owned */
    mgl_pattern *pattern; /* owned */
} mgl_normalize_step;

typedef struct mgl_normalizer {
    mgl_normalize_step *steps; /* (count) */
    size_t count, capacity;
    const char *file; /* for messages; not owned */
} mgl_normalizer;

/* What a run writes: one for each thread that runs a normalizer. Zero-initialise but for what is
 * borrowed. */
typedef struct mgl_normalizer_workspace {
    mgl_text text, spare; /* the result lies in `text` */
    int32_t *characters;  /* of the normal forms */
    size_t character_room;
    mgl_matcher *matcher; /* borrowed */
    mgl_growth *growth;   /* borrowed; the steps are the first of its own */
} mgl_normalizer_workspace;

void mgl_normalizer_workspace_clear(mgl_normalizer_workspace *workspace);

/* Appends a step and takes over what it owns, also when memory runs out. */
mgl_status mgl_normalizer_add(mgl_normalizer *normalizer, mgl_normalize_step step, mgl_error *err);

/* Runs all steps on valid UTF-8. *out is `text` itself or lies in the workspace until its next
 * use. *head goes in as the head of `text` and comes out as that of *out. */
mgl_status mgl_normalizer_run(const mgl_normalizer *normalizer, mgl_normalizer_workspace *workspace,
                              const char *text, size_t length, const char **out, size_t *out_length,
                              size_t *head, mgl_error *err);

void mgl_normalizer_clear(mgl_normalizer *normalizer);

#endif
