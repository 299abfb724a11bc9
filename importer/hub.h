/*
 * Models by name: resolves ORG/NAME or ORG/NAME@REVISION in the local Hugging Face cache. Nothing
 * is downloaded. Called by cache.c. Layout of the cache:
 *
 *     models--ORG--NAME/refs/BRANCH          the commit of a branch or a tag
 *     models--ORG--NAME/snapshots/COMMIT/    the files of a commit, links into blobs/
 *
 * The cache is HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub. A revision is a
 * commit, at least seven of its leading digits, a branch, or a tag. Without a revision, refs/main
 * is used. If there is no refs/main (a model downloaded by its commit), the only snapshot is used.
 */
#ifndef MGL_IMPORTER_HUB_H
#define MGL_IMPORTER_HUB_H

#include "base/error.h"
#include "base/text.h"

/* The parts of a model's name; pointers into the given text. */
typedef struct mgl_hub_name {
    const char *org, *name;
    const char *revision; /* "v1.0", "refs/pr/3"; NULL: none was given */
    int org_length, name_length;
} mgl_hub_name;

/* Returns false if `model` does not look like a model name. */
bool mgl_hub_parse(const char *model, mgl_hub_name *out);

/* Appends the folder of the model's snapshot. If there is none, the message lists what the cache
 * has: the model's revisions, or models with similar names. */
mgl_status mgl_hub_find(const mgl_hub_name *name, mgl_text *path, mgl_error *err);

/* Reads the commit in refs/REF of a repository; *out is NULL if there is none. Release with
 * mgl_free. */
mgl_status mgl_hub_read_ref(const char *repository, const char *ref, char **out, mgl_error *err);

#endif
