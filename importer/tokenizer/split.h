/*
 * Pre-tokenizers: split a text into the pieces that BPE encodes. A splitter is a list of steps.
 * Each step takes a piece and passes smaller pieces to the next step, depth first, so that only the
 * current piece is in memory. There are three kinds: splitting at a pattern (Split, Digits,
 * Punctuation, Whitespace and WhitespaceSplit), Metaspace, and ByteLevel. Called by tokenizer.c.
 *
 * ByteLevel ends by mapping bytes to GPT-2's alphabet. If ByteLevel is the last step, BPE does the
 * mapping, because it has tables for it.
 */
#ifndef MGL_IMPORTER_TOKENIZER_SPLIT_H
#define MGL_IMPORTER_TOKENIZER_SPLIT_H

#include "importer/tokenizer/growth.h"
#include "importer/tokenizer/pattern.h"

/*  enum  Hugging Face's name: treatment of the delimiters (the matches) */
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
    MGL_SPLIT_ALWAYS, /* the replacement is prepended to every piece that does not start with it */
    MGL_SPLIT_FIRST,  /* only if the piece starts the original text */
    MGL_SPLIT_NEVER
} mgl_split_scheme;

typedef enum mgl_split_kind {
    MGL_SPLIT_PATTERN,
    MGL_SPLIT_METASPACE,
    MGL_SPLIT_BYTE_LEVEL
} mgl_split_kind;

typedef struct mgl_split_step {
    mgl_split_kind kind;
    mgl_pattern *pattern; /* owned; NULL for a ByteLevel that does not split */
    mgl_split_behavior behavior;
    bool invert;         /* the text between the matches is the delimiter */
    char replacement[5]; /* Metaspace: the character for a space */
    mgl_split_scheme scheme;
    bool cut;          /* Metaspace: split before each replacement */
    bool prefix_space; /* ByteLevel: prepend a space if missing */
    bool map;          /* ByteLevel: map bytes to GPT-2's alphabet here */
} mgl_split_step;

typedef struct mgl_splitter {
    mgl_split_step *steps; /* (count) */
    size_t count, capacity;
    const char *file; /* for messages; not owned */
} mgl_splitter;

/* Scratch memory of a step. */
typedef struct mgl_split_texts {
    mgl_text text, mapped;
} mgl_split_texts;

/* Scratch memory of a run, one per thread that runs a splitter. */
typedef struct mgl_splitter_workspace {
    mgl_split_texts *texts; /* (count), one per step */
    size_t count;
    mgl_matcher *matcher; /* borrowed */
    mgl_growth *growth;   /* borrowed */
    size_t first;         /* index in `growth` of the first step; the final pieces have the index
                           * after the last step */
} mgl_splitter_workspace;

/* Fills the members that are not borrowed, for a splitter of `count` steps. Returns false if
 * memory ran out; it must be cleared in both cases. */
bool mgl_splitter_workspace_open(mgl_splitter_workspace *workspace, size_t count);
void mgl_splitter_workspace_clear(mgl_splitter_workspace *workspace);

/* A piece: valid UTF-8, never empty. `head`: see normalize.h. */
typedef struct mgl_piece {
    const char *text;
    size_t length, head;
} mgl_piece;

typedef mgl_status mgl_piece_fn(void *user, const char *text, size_t length, mgl_error *err);

/* Appends a step and takes ownership of its pattern, also if memory runs out. */
mgl_status mgl_splitter_add(mgl_splitter *splitter, mgl_split_step step, mgl_error *err);

/* Splits a piece and calls `take` for each part, in order; stops at the first failure. */
mgl_status mgl_splitter_run(const mgl_splitter *splitter, mgl_splitter_workspace *workspace,
                            mgl_piece piece, mgl_piece_fn *take, void *user, mgl_error *err);

void mgl_splitter_clear(mgl_splitter *splitter);

#endif
