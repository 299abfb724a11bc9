/* The free list of a tokenizer's workspaces. See workspace.h. */
#include "importer/tokenizer/workspace.h"

#include "base/memory.h"

#include <pthread.h>

struct mgl_workspaces {
    pthread_mutex_t lock; /* protects only the next field */
    mgl_workspace *idle;
};

mgl_status mgl_workspaces_new(mgl_workspaces **out, mgl_error *err)
{
    *out = NULL;
    mgl_workspaces *all = mgl_alloc_zero(1, sizeof *all);
    if (!all || pthread_mutex_init(&all->lock, NULL)) {
        mgl_free(all);
        return mgl_fail_memory(err, sizeof *all);
    }
    *out = all;
    return MGL_OK;
}

static void free_workspace(mgl_workspace *w)
{
    mgl_matcher_free(w->matcher);
    mgl_growth_clear(&w->growth);
    mgl_normalizer_workspace_clear(&w->normalizer);
    mgl_splitter_workspace_clear(&w->splitter);
    mgl_bpe_workspace_clear(&w->bpe);
    mgl_text_clear(&w->repaired);
    mgl_free(w->ids.ids);
    mgl_free(w);
}

void mgl_workspaces_free(mgl_workspaces *all)
{
    if (!all)
        return;
    while (all->idle) {
        mgl_workspace *workspace = all->idle;
        all->idle = workspace->next;
        free_workspace(workspace);
    }
    pthread_mutex_destroy(&all->lock);
    mgl_free(all);
}

static mgl_status make_workspace(size_t normalizer_steps, size_t splitter_steps,
                                 mgl_workspace **out, mgl_error *err)
{
    mgl_workspace *w = mgl_alloc_zero(1, sizeof *w);
    if (!w)
        return mgl_fail_memory(err, sizeof *w);
    mgl_status status = mgl_matcher_new(&w->matcher, err);
    if (!status)
        status = mgl_growth_open(&w->growth, normalizer_steps + splitter_steps + 1, err);
    if (!status && (!mgl_splitter_workspace_open(&w->splitter, splitter_steps) ||
                    !mgl_bpe_workspace_open(&w->bpe)))
        status = mgl_fail_memory(err, sizeof *w);
    if (status) {
        free_workspace(w);
        return status;
    }
    w->normalizer.matcher = w->splitter.matcher = w->matcher;
    w->normalizer.growth = w->splitter.growth = &w->growth;
    w->splitter.first = normalizer_steps;
    *out = w;
    return MGL_OK;
}

mgl_status mgl_workspaces_take(mgl_workspaces *all, size_t normalizer_steps, size_t splitter_steps,
                               mgl_workspace **out, mgl_error *err)
{
    pthread_mutex_lock(&all->lock);
    mgl_workspace *workspace = *out = all->idle;
    if (workspace)
        all->idle = workspace->next;
    pthread_mutex_unlock(&all->lock);
    return workspace ? MGL_OK : make_workspace(normalizer_steps, splitter_steps, out, err);
}

void mgl_workspaces_give(mgl_workspaces *all, mgl_workspace *workspace)
{
    pthread_mutex_lock(&all->lock);
    workspace->next = all->idle;
    all->idle = workspace;
    pthread_mutex_unlock(&all->lock);
}
