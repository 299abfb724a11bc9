/*
 * Workspaces: the mutable state of encoding (buffers, search state, word cache), separate from
 * the read-only tokenizer. Each call of mgl_tokenizer_encode takes a workspace from a free list
 * and returns it. So any number of threads can encode at once, and a call reuses the buffers and
 * the cache of an earlier call. The number of workspaces is the maximum number of simultaneous
 * calls.
 */
#ifndef MGL_IMPORTER_TOKENIZER_WORKSPACE_H
#define MGL_IMPORTER_TOKENIZER_WORKSPACE_H

#include "importer/tokenizer/bpe.h"
#include "importer/tokenizer/normalize.h"
#include "importer/tokenizer/split.h"

typedef struct mgl_workspace mgl_workspace;
struct mgl_workspace {
    mgl_workspace *next; /* next in the free list */
    mgl_matcher *matcher;
    mgl_growth growth; /* counters of the normalizer's steps, the splitter's steps, and the final
                        * pieces */
    mgl_normalizer_workspace normalizer;
    mgl_splitter_workspace splitter;
    mgl_bpe_workspace bpe;
    mgl_text repaired; /* the repaired text, if it was not valid UTF-8 */
    mgl_id_list ids;   /* of the text */
};

typedef struct mgl_workspaces mgl_workspaces;

mgl_status mgl_workspaces_new(mgl_workspaces **out, mgl_error *err);
void mgl_workspaces_free(mgl_workspaces *all); /* NULL is fine; all must have been returned */

/* Takes a workspace, for a normalizer and a splitter of these numbers of steps. Thread safe. */
mgl_status mgl_workspaces_take(mgl_workspaces *all, size_t normalizer_steps, size_t splitter_steps,
                               mgl_workspace **out, mgl_error *err);
void mgl_workspaces_give(mgl_workspaces *all, mgl_workspace *workspace);

#endif
