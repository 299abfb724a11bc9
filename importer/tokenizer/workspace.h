/*
 * What encoding a text writes, apart from the tokenizer that it reads: buffers, the state of a
 * search, the cache of words. Each call of mgl_tokenizer_encode takes a workspace and gives it
 * back, so that any number of threads encode at once, and a thread finds the buffers and the cache
 * of the call before. A tokenizer has as many as there ever were calls at one time.
 */
#ifndef MGL_IMPORTER_TOKENIZER_WORKSPACE_H
#define MGL_IMPORTER_TOKENIZER_WORKSPACE_H

#include "importer/tokenizer/bpe.h"
#include "importer/tokenizer/normalize.h"
#include "importer/tokenizer/split.h"

typedef struct mgl_workspace mgl_workspace;
struct mgl_workspace {
    mgl_workspace *next; /* of those that are not in use */
    mgl_matcher *matcher;
    mgl_growth growth; /* of the normalizer's steps, then the splitter's, then of what comes out */
    mgl_normalizer_workspace normalizer;
    mgl_splitter_workspace splitter;
    mgl_bpe_workspace bpe;
    mgl_text repaired; /* a text that was not valid UTF-8 */
    mgl_id_list ids;   /* of the text */
};

typedef struct mgl_workspaces mgl_workspaces;

mgl_status mgl_workspaces_new(mgl_workspaces **out, mgl_error *err);
void mgl_workspaces_free(mgl_workspaces *all); /* NULL is fine; none may be in use */

/* One for this call, for the tokenizer's normalizer and splitter of these numbers of steps. From
 * any thread. */
mgl_status mgl_workspaces_take(mgl_workspaces *all, size_t normalizer_steps, size_t splitter_steps,
                               mgl_workspace **out, mgl_error *err);
void mgl_workspaces_give(mgl_workspaces *all, mgl_workspace *workspace);

#endif
