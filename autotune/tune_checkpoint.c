/*
 * Implements tune_checkpoint.h. A campaign's record holds only the shape of a model and no path,
 * because the record is printed, exported and sent. The path is an event of the store that no
 * command prints, so a resumed campaign finds its weights again.
 */
#include "autotune/tune_checkpoint.h"

#include "base/memory.h"
#include "importer/checkpoint.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static mgl_status take_event(void *user, int64_t unix_s, const char *kind, const char *text,
                             mgl_error *err)
{
    char **last = user;
    (void)unix_s;
    if (strcmp(kind, MGL_CHECKPOINT_EVENT) != 0)
        return MGL_OK;
    mgl_free(*last);
    *last = mgl_strdup(text);
    return *last ? MGL_OK : mgl_fail_memory(err, strlen(text) + 1);
}

/* Resolves the path. *out is NULL if the model is a config.json or no longer exists. */
static mgl_status find_path(const char *model, char **out, mgl_error *err)
{
    char *found = NULL, whole[PATH_MAX];
    *out = NULL;
    mgl_status status = mgl_model_find(model, &found, NULL);
    bool stands = !status && realpath(found, whole);
    mgl_free(found);
    if (stands)
        *out = mgl_strdup(whole);
    return stands && !*out ? mgl_fail_memory(err, strlen(whole) + 1) : MGL_OK;
}

mgl_status mgl_tune_choose_checkpoint(mgl_tune *tune, const char *model, bool add, mgl_error *err)
{
    char *given = NULL, **kept = &tune->checkpoint;
    mgl_status status = MGL_OK;
    if (tune->store && tune->record.id)
        status = mgl_store_each_event(tune->store, tune->record.id, take_event, kept, err);
    if (!status && model)
        status = find_path(model, &given, err);
    else if (!status && tune->successor_of.campaign)
        status =
            mgl_store_each_event(tune->store, tune->successor_of.campaign, take_event, &given, err);
    if (status || !given || (*kept && !strcmp(*kept, given))) {
        mgl_free(given);
        return status;
    }
    mgl_free(*kept);
    *kept = given;
    return add ? mgl_store_add_event(tune->store, tune->record.id, MGL_CHECKPOINT_EVENT, given, err)
               : MGL_OK;
}
