/*
 * Models by name: ORG/NAME or ORG/NAME@REVISION in the local Hugging Face cache, which keeps
 *
 *     models--ORG--NAME/refs/BRANCH          the commit that a branch or a tag was at
 *     models--ORG--NAME/snapshots/COMMIT/    the files of a commit, links into blobs/
 *
 * (environment: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub). A revision is a
 * commit, or seven of its digits or more, or a branch or a tag; without one it is refs/main's, or
 * the only snapshot where there is no refs/main: a model that was downloaded by its commit has
 * none.
 */
#ifndef MGL_IMPORTER_HUB_H
#define MGL_IMPORTER_HUB_H

#include "base/error.h"
#include "base/text.h"

/* The parts of a model's name, in the text that was given. */
typedef struct mgl_hub_name {
    const char *org, *name;
    const char *revision; /* "v1.0", "refs/pr/3"; NULL: none was given */
    int org_length, name_length;
} mgl_hub_name;

/* False where `model` does not look like one. */
bool mgl_hub_parse(const char *model, mgl_hub_name *out);

/* Appends the folder of the model's snapshot. Where there is none, the message says what the cache
 * has: its revisions, or other models with names like it. */
mgl_status mgl_hub_find(const mgl_hub_name *name, mgl_text *path, mgl_error *err);

/* The commit that refs/REF of a repository holds; NULL: there is none. Release with mgl_free. */
mgl_status mgl_hub_read_ref(const char *repository, const char *ref, char **out, mgl_error *err);

#endif
