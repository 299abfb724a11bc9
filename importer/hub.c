/* Resolves model names in the Hugging Face cache. See hub.h. */
#include "importer/hub.h"

#include "base/file.h"
#include "base/memory.h"
#include "importer/hub_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REF = 256, LEAST_DIGITS = 7 };

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns whether a part of a name or of a revision is safe in a path. */
static bool is_plain(const char *text, size_t length)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return length > 0 && length <= 96 && text[0] != '.' && text[0] != '-' &&
           strspn(text, allowed) >= length;
}

/* Returns whether the text is a revision: parts separated by slashes, such as "v1.0" or
 * "refs/pr/3". */
static bool is_revision(const char *text)
{
    if (strlen(text) > MAX_REF)
        return false;
    for (;; text++) {
        size_t length = strcspn(text, "/");
        if (!is_plain(text, length))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

bool mgl_hub_parse(const char *model, mgl_hub_name *out)
{
    const char *slash = strchr(model, '/');
    if (!slash)
        return false;
    size_t org = (size_t)(slash - model), name = strcspn(slash + 1, "@");
    bool revised = slash[1 + name] == '@';
    *out = (mgl_hub_name){.org = model,
                          .org_length = (int)org,
                          .name = slash + 1,
                          .name_length = (int)name,
                          .revision = revised ? slash + name + 2 : NULL};
    return is_plain(model, org) && is_plain(slash + 1, name) &&
           (!revised || is_revision(out->revision));
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* Appends `path`, with a leading ~ replaced by the home folder. */
static void put_expanded(mgl_text *text, const char *path)
{
    const char *home = getenv("HOME");
    if (path[0] == '~' && (path[1] == '/' || !path[1]) && home) {
        mgl_text_put(text, home);
        path++;
    }
    mgl_text_put(text, path);
}

static void put_cache_folder(mgl_text *text)
{
    const char *hub = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME");
    if (hub && *hub) {
        put_expanded(text, hub);
    } else if (home && *home) {
        put_expanded(text, home);
        mgl_text_put(text, "/hub");
    } else {
        put_expanded(text, "~/.cache/huggingface/hub");
    }
}

/* ---- refs ------------------------------------------------------------------------------------ */

static mgl_status read_commit(const char *path, char **out, mgl_error *err)
{
    size_t length;
    mgl_status status = mgl_file_read_regular(path, MAX_REF, out, &length, err);
    if (status)
        return status;
    while (length && strchr(" \r\n\t", (*out)[length - 1]))
        (*out)[--length] = 0;
    if (is_plain(*out, length) && strlen(*out) == length)
        return MGL_OK;
    mgl_free(*out);
    *out = NULL;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "does not hold the name of a revision; download the model again");
}

mgl_status mgl_hub_read_ref(const char *repository, const char *ref, char **out, mgl_error *err)
{
    mgl_text path = {0};
    struct stat facts;
    bool stands = false;
    *out = NULL;
    mgl_text_format(&path, "%s/refs/%s", repository, ref);
    mgl_status status = path.failed ? mgl_fail_memory(err, strlen(repository))
                                    : mgl_file_look(path.bytes, &stands, &facts, err);
    if (!status && stands && !S_ISDIR(facts.st_mode))
        status = read_commit(path.bytes, out, err);
    mgl_text_clear(&path);
    return status;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* The wanted model and its place in the cache. */
typedef struct search {
    const mgl_hub_name *name;
    const char *repository;  /* models--ORG--NAME of the cache */
    mgl_file_list snapshots; /* commits */
} search;

static const char *find_commit(const search *s, const char *commit)
{
    for (size_t i = 0; i < s->snapshots.count; i++)
        if (!strcmp(s->snapshots.names[i], commit))
            return s->snapshots.names[i];
    return NULL;
}

static mgl_status fail_revision(const search *s, const char *why, mgl_error *err)
{
    mgl_text there = {0};
    const char *revision = s->name->revision;
    mgl_hub_list_revisions(s->repository, &s->snapshots, &there);
    mgl_status status =
        mgl_fail(err, MGL_BAD_INPUT, s->name->org,
                 "%s; the cache has %s; nothing is downloaded implicitly: `hf download "
                 "%.*s/%.*s%s%.100s` fetches it",
                 why, there.failed || !there.length ? "no snapshot of it" : there.bytes,
                 s->name->org_length, s->name->org, s->name->name_length, s->name->name,
                 revision ? " --revision " : "", revision ? revision : "");
    mgl_text_clear(&there);
    return status;
}

/* Finds the snapshot of a ref. *out stays NULL if there is no such ref; a ref without a snapshot
 * is an error. */
static mgl_status follow_ref(const search *s, const char *ref, const char **out, mgl_error *err)
{
    char why[200], *commit;
    mgl_status status = mgl_hub_read_ref(s->repository, ref, &commit, err);
    if (status || !commit)
        return status;
    *out = find_commit(s, commit);
    if (!*out) {
        snprintf(why, sizeof why, "the snapshot that refs/%.80s names is not there", ref);
        status = fail_revision(s, why, err);
    }
    mgl_free(commit);
    return status;
}

/* Finds the snapshot whose commit begins with these digits. */
static mgl_status find_beginning(const search *s, const char *digits, const char **out,
                                 mgl_error *err)
{
    size_t length = strlen(digits);
    int found = 0;
    if (length < LEAST_DIGITS || strspn(digits, "0123456789abcdef") != length)
        return MGL_OK;
    for (size_t i = 0; i < s->snapshots.count; i++)
        if (!strncmp(s->snapshots.names[i], digits, length)) {
            *out = s->snapshots.names[i];
            found++;
        }
    if (found <= 1)
        return MGL_OK;
    return fail_revision(s, "several snapshots begin with these digits; give more digits", err);
}

static mgl_status find_revision(const search *s, const char *revision, const char **out,
                                mgl_error *err)
{
    *out = find_commit(s, revision);
    mgl_status status = *out ? MGL_OK : follow_ref(s, revision, out, err);
    if (!status && !*out)
        status = find_beginning(s, revision, out, err);
    if (!status && !*out)
        status = fail_revision(s, "unknown revision", err);
    return status;
}

/* Finds the snapshot of a model without a revision. */
static mgl_status find_main(const search *s, const char **out, mgl_error *err)
{
    *out = NULL;
    mgl_status status = follow_ref(s, "main", out, err);
    if (status || *out)
        return status;
    if (s->snapshots.count == 1) {
        *out = s->snapshots.names[0];
        return MGL_OK;
    }
    return fail_revision(s,
                         s->snapshots.count ? "refs/main is missing: name a revision, as in "
                                              "ORG/NAME@REVISION"
                                            : "refs/main is missing",
                         err);
}

static mgl_status list_snapshots(search *s, mgl_error *err)
{
    mgl_text folder = {0};
    mgl_text_format(&folder, "%s/snapshots", s->repository);
    mgl_status status = folder.failed ? mgl_fail_memory(err, strlen(s->repository))
                                      : mgl_folder_list(folder.bytes, "", &s->snapshots, err);
    mgl_text_clear(&folder);
    return status;
}

/* Appends "/snapshots/COMMIT" to the path of an existing repository. */
static mgl_status put_snapshot(const mgl_hub_name *name, mgl_text *path, mgl_error *err)
{
    search s = {.name = name, .repository = path->bytes};
    const char *commit = NULL;
    bool is = true;
    mgl_status status = list_snapshots(&s, err);
    if (!status && name->revision)
        status = find_revision(&s, name->revision, &commit, err);
    else if (!status)
        status = find_main(&s, &commit, err);
    if (!status)
        mgl_text_format(path, "/snapshots/%s", commit);
    mgl_file_list_clear(&s.snapshots);
    if (!status && path->failed)
        status = mgl_fail_memory(err, path->length);
    if (!status)
        status = mgl_folder_stands(path->bytes, &is, err);
    if (!status && !is)
        status = mgl_fail(err, MGL_BAD_INPUT, path->bytes,
                          "is not a snapshot folder; download the model again");
    return status;
}

static mgl_status fail_absent(const mgl_hub_name *name, const char *cache, mgl_error *err)
{
    mgl_text near = {0};
    mgl_hub_list_near(name, cache, &near);
    mgl_status status =
        mgl_fail(err, MGL_BAD_INPUT, name->org,
                 "is neither a folder nor a model in the Hugging Face cache (%.300s)%s; "
                 "nothing is downloaded implicitly: `hf download %.*s/%.*s%s%.100s` fetches it",
                 cache, near.failed || !near.length ? "" : near.bytes, name->org_length, name->org,
                 name->name_length, name->name, name->revision ? " --revision " : "",
                 name->revision ? name->revision : "");
    mgl_text_clear(&near);
    return status;
}

mgl_status mgl_hub_find(const mgl_hub_name *name, mgl_text *path, mgl_error *err)
{
    bool there = false;
    put_cache_folder(path);
    size_t end = path->length;
    mgl_text_format(path, "/models--%.*s--%.*s", name->org_length, name->org, name->name_length,
                    name->name);
    if (path->failed)
        return mgl_fail_memory(err, end);
    mgl_status status = mgl_folder_stands(path->bytes, &there, err);
    if (status || there)
        return status ? status : put_snapshot(name, path, err);
    path->bytes[end] = 0;
    return fail_absent(name, path->bytes, err);
}
