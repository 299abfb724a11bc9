/*
 * Pre-tokenizers: how a text is cut into the pieces that BPE sees. A list of steps; each takes a
 * piece and hands smaller ones to the next, depth first, so that nothing but the piece at hand is
 * ever held. Three kinds are enough: cutting at a pattern (Split, Digits, Punctuation, Whitespace
 * and WhitespaceSplit are that), Metaspace, and ByteLevel.
 *
 * The mapping of bytes to GPT-2's alphabet, which ends ByteLevel, is left to BPE (which has tables
 * for it) when ByteLevel is the last step.
 */
#ifndef MGL_IMPORTER_TOKENIZER_SPLIT_H
#define MGL_IMPORTER_TOKENIZER_SPLIT_H

#include "importer/tokenizer/growth.h"
#include "importer/tokenizer/pattern.h"

/*  enum  Hugging Face's name: what becomes of the delimiters (the matches) */
#define MGL_SPLIT_BEHAVIORS(X)                                                                     \
    X(ISOLATED, "Isolated")                                                                        \
    X(REMOVED, "Removed")                                                                          \
    X(MERGED_WITH_PREVIOUS, "MergedWithPrevious")                                                  \
    X(MERGED_WITH_NEXT, "MergedWithNext")                                                          \
    X(CONTIGUOUS, "Contiguous")

typedef enum mgl_split_behavior {
#define MGL_X(id, name) MGL_SPLIT_##id,
    MGL_SPLIT_BEHAVIORS(MGL_X)
#undef MGL_X
} mgl_split_behavior;

typedef enum mgl_split_scheme {
    MGL_SPLIT_ALWAYS, /* the replacement goes before every piece that does not start with it */
    MGL_SPLIT_FIRST,  /* only where the piece starts the original text */
    MGL_SPLIT_NEVER
} mgl_split_scheme;

typedef enum mgl_split_kind {
    MGL_SPLIT_PATTERN,
    MGL_SPLIT_METASPACE,
    MGL_SPLIT_BYTE_LEVEL
} mgl_split_kind;

typedef struct mgl_split_step {
    mgl_split_kind kind;
    mgl_pattern *pattern; /* owned; of ByteLevel NULL when it does not cut */
    mgl_split_behavior behavior;
    bool invert;         /* what lies between the matches is the delimiter */
    char replacement[5]; /* Metaspace: stands for a space */
    mgl_split_scheme scheme;
    bool cut;          /* Metaspace: cut before each replacement */
    bool prefix_space; /* ByteLevel: a space before each piece without one */
    bool map;          /* ByteLevel: bytes -> GPT-2's alphabet here */
} mgl_split_step;

typedef struct mgl_splitter {
    mgl_split_step *steps; /* (count) */
    size_t count, capacity;
    const char *file; /* for messages; not owned */
} mgl_splitter;

/* What a step writes while its piece is being cut. */
typedef struct mgl_split_texts {
    mgl_text text, mapped;
} mgl_split_texts;

/* What a run writes: one for each thread that runs a splitter. */
typedef struct mgl_splitter_workspace {
    mgl_split_texts *texts; /* (count) of the steps */
    size_t count;
    mgl_matcher *matcher; /* borrowed */
    mgl_growth *growth;   /* borrowed */
    size_t first;         /* the index that `growth` has for the first step; the pieces that come
                             out are counted behind the last */
} mgl_splitter_workspace;

/* Fills what is not borrowed, for a splitter of `count` steps; to be cleared also when memory ran
 * out, which is false. */
bool mgl_splitter_workspace_open(mgl_splitter_workspace *workspace, size_t count);
void mgl_splitter_workspace_clear(mgl_splitter_workspace *workspace);

/* A piece: valid UTF-8, never empty. `head`: see normalize.h. */
typedef struct mgl_piece {
    const char *text;
    size_t length, head;
} mgl_piece;

typedef mgl_status mgl_piece_fn(void *user, const char *text, size_t length, mgl_error *err);

/* Appends a step and takes over its pattern, also when memory runs out. */
mgl_status mgl_splitter_add(mgl_splitter *splitter, mgl_split_step step, mgl_error *err);

/* Cuts a piece and calls `take` for each part, in order; ends at the first failure. */
mgl_status mgl_splitter_run(const mgl_splitter *splitter, mgl_splitter_workspace *workspace,
                            mgl_piece piece, mgl_piece_fn *take, void *user, mgl_error *err);

void mgl_splitter_clear(mgl_splitter *splitter);

#endif
