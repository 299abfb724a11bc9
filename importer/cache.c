/*
 * Where a MODEL lies: a path, or a repository of the local Hugging Face cache, which keeps
 * models--<org>--<name>/refs/main (a revision) and models--<org>--<name>/snapshots/<revision>/.
 * The files of a snapshot are links into the repository's blobs; they are followed.
 */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/checkpoint.h"
#include "importer/mega.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A part of a repository's name or a revision: nothing that could lead elsewhere. */
static bool is_plain(const char *text, size_t length)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return length > 0 && length <= 96 && text[0] != '.' && text[0] != '-' &&
           strspn(text, allowed) >= length;
}

/* The slash of "org/name"; NULL when `model` does not look like one. */
static const char *find_slash(const char *model)
{
    const char *slash = strchr(model, '/');
    if (!slash || !is_plain(model, (size_t)(slash - model)) ||
        !is_plain(slash + 1, strlen(slash + 1)))
        return NULL;
    return slash;
}

/* Appends `path`, in which a leading ~ stands for the home folder. */
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

static mgl_status is_folder(const char *path, bool *is, mgl_error *err)
{
    struct stat facts;
    mgl_status status = mgl_file_look(path, is, &facts, err);
    *is = !status && *is && S_ISDIR(facts.st_mode);
    return status;
}

/* Appends "/snapshots/<revision>", the revision being what refs/main of `repository` says. */
static mgl_status put_snapshot(mgl_text *repository, mgl_error *err)
{
    char *revision;
    bool there = true;
    size_t length, end = repository->length;
    mgl_text_put(repository, "/refs/main");
    if (repository->failed)
        return mgl_fail_memory(err, end);
    mgl_status status = mgl_file_read(repository->bytes, 256, &revision, &length, err);
    if (status)
        return status;
    while (length && strchr(" \r\n\t", revision[length - 1]))
        revision[--length] = 0;
    if (!is_plain(revision, length) || strlen(revision) != length)
        status = mgl_fail(err, MGL_BAD_INPUT, repository->bytes,
                          "does not hold the name of a revision; download the model again");
    repository->length = end;
    mgl_text_format(repository, "/snapshots/%s", revision);
    mgl_free(revision);
    if (!status && repository->failed)
        status = mgl_fail_memory(err, end);
    if (!status)
        status = is_folder(repository->bytes, &there, err);
    if (!status && !there)
        status =
            mgl_fail(err, MGL_BAD_INPUT, repository->bytes,
                     "the snapshot that refs/main names is not there; download the model again");
    return status;
}

static mgl_status find_in_cache(const char *model, const char *slash, mgl_text *path,
                                mgl_error *err)
{
    bool there;
    put_cache_folder(path);
    mgl_text_format(path, "/models--%.*s--%s", (int)(slash - model), model, slash + 1);
    if (path->failed)
        return mgl_fail_memory(err, strlen(model));
    mgl_status status = is_folder(path->bytes, &there, err);
    if (!status && !there)
        return mgl_fail(err, MGL_BAD_INPUT, model,
                        "is neither a folder here nor a model in the Hugging Face cache (%.300s); "
                        "nothing is downloaded implicitly: `hf download %.200s` fetches it",
                        path->bytes, model);
    return status ? status : put_snapshot(path, err);
}

mgl_status mgl_model_resolve_path(const char *model, char **out, mgl_error *err)
{
    *out = NULL;
    struct stat facts;
    mgl_text path = {0};
    const char *slash = find_slash(model);
    bool stands;
    mgl_status status = mgl_file_look(model, &stands, &facts, err);
    if (!status && stands)
        mgl_text_put(&path, model);
    else if (!status && slash)
        status = find_in_cache(model, slash, &path, err);
    else if (!status)
        return mgl_fail(err, MGL_BAD_INPUT, model, "there is no such folder");
    if (!status && path.failed)
        status = mgl_fail_memory(err, strlen(model) + 1);
    if (status) {
        mgl_text_clear(&path);
        return status;
    }
    *out = path.bytes;
    return MGL_OK;
}

mgl_status mgl_model_find(const char *model, char **out, mgl_error *err)
{
    *out = NULL;
    char *path;
    bool is_model;
    mgl_status status = mgl_model_resolve_path(model, &path, err);
    if (status)
        return status;
    status = is_folder(path, &is_model, err);
    if (!status && !is_model)
        status = mgl_mega_stands(path, &is_model, err);
    if (!status && !is_model)
        status = mgl_fail(err, MGL_BAD_INPUT, model,
                          "is a file; a model is the folder with config.json and *.safetensors, or "
                          "what `megalith compile` made of it");
    if (status)
        mgl_free(path);
    else
        *out = path;
    return status;
}

static mgl_status look_into_mega(const char *path, bool *has, mgl_error *err)
{
    mgl_mega *mega;
    mgl_status status = mgl_mega_open(path, &mega, err);
    if (status)
        return status;
    *has = mgl_mega_find(mega, MGL_MEGA_TOKENIZER) != NULL;
    mgl_mega_close(mega);
    return MGL_OK;
}

mgl_status mgl_model_has_tokenizer(const char *path, bool *has, mgl_error *err)
{
    mgl_text file = {0};
    bool compiled;
    mgl_status status = mgl_mega_stands(path, &compiled, err);
    *has = false;
    if (status || compiled)
        return status ? status : look_into_mega(path, has, err);
    mgl_text_format(&file, "%s/%s", path, MGL_MEGA_TOKENIZER);
    status =
        file.failed ? mgl_fail_memory(err, strlen(path)) : mgl_file_stands(file.bytes, has, err);
    mgl_text_clear(&file);
    return status;
}
