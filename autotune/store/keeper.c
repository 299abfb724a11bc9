/* Implements keeper.h: hash-named object files, folder locks, and atomic replacement of documents.
 */
#include "autotune/store/keeper.h"

#include "base/aliases.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/system/lock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 10 * 1000 };

/* ---- objects --------------------------------------------------------------------------------- */

bool mgl_keeper_is_id(const char *text)
{
    return strlen(text) == MGL_SHA256_HEX - 1 &&
           strspn(text, "0123456789abcdef") == MGL_SHA256_HEX - 1;
}

void mgl_keeper_name(const char *bytes, size_t length, char id[MGL_SHA256_HEX])
{
    unsigned char hash[MGL_SHA256_BYTES];
    mgl_sha256_of(bytes, length, hash);
    mgl_sha256_hex(hash, id);
}

static mgl_status make_path(const mgl_keeper *k, const char *id, char path[PATH_MAX],
                            mgl_error *err)
{
    return mgl_file_path(path, err, "%s/%s%s", k->folder, id, k->end);
}

mgl_status mgl_keeper_put(const mgl_keeper *k, const char *bytes, size_t length,
                          char id[MGL_SHA256_HEX], mgl_error *err)
{
    char path[PATH_MAX];
    mgl_keeper_name(bytes, length, id);
    mgl_status status = make_path(k, id, path, err);
    if (!status)
        status = mgl_folder_make(k->folder, 0777, err);
    return status ? status : mgl_output_write_file(path, bytes, length, err);
}

mgl_status mgl_keeper_get(const mgl_keeper *k, const char *id, char **bytes, size_t *length,
                          mgl_error *err)
{
    char path[PATH_MAX], found[MGL_SHA256_HEX];
    *bytes = NULL;
    mgl_status status = make_path(k, id, path, err);
    if (!status)
        status = mgl_file_read_regular(path, k->most, bytes, length, err);
    if (status)
        return status;
    mgl_keeper_name(*bytes, *length, found);
    if (!strcmp(found, id))
        return MGL_OK;
    mgl_free(*bytes);
    *bytes = NULL;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "the file is damaged: its bytes have another hash; restore a copy, or remove "
                    "what names it");
}

/* The id in the name of an object's file; false: another file. */
static bool read_name(const mgl_keeper *k, const char *name, char id[MGL_SHA256_HEX])
{
    snprintf(id, MGL_SHA256_HEX, "%s", name);
    return mgl_keeper_is_id(id) && !strcmp(name + MGL_SHA256_HEX - 1, k->end);
}

mgl_status mgl_keeper_each(const mgl_keeper *k, mgl_keeper_fn *each, void *user, mgl_error *err)
{
    mgl_file_list files = {0};
    char id[MGL_SHA256_HEX];
    mgl_status status = mgl_folder_list(k->folder, k->end, &files, err);
    for (size_t i = 0; i < files.count && !status; i++)
        if (read_name(k, files.names[i], id))
            status = each(user, id, err);
    mgl_file_list_clear(&files);
    return status;
}

typedef struct finding {
    const char *start;
    char *id;
    size_t *count;
} finding;

static mgl_status compare_start(void *user, const char *id, mgl_error *err)
{
    const finding *f = user;
    (void)err;
    if (strncmp(id, f->start, strlen(f->start)) != 0)
        return MGL_OK;
    memcpy(f->id, id, MGL_SHA256_HEX);
    ++*f->count;
    return MGL_OK;
}

mgl_status mgl_keeper_find(const mgl_keeper *k, const char *start, char id[MGL_SHA256_HEX],
                           size_t *count, mgl_error *err)
{
    finding f = {start, id, count};
    *count = 0;
    return mgl_keeper_each(k, compare_start, &f, err);
}

/* ---- documents ------------------------------------------------------------------------------- */

mgl_status mgl_keeper_lock(const char *path, int *lock, mgl_error *err)
{
    char folder[PATH_MAX], inside[PATH_MAX + 2];
    bool stands = false, taken = false;
    *lock = -1;
    if (strlen(path) >= PATH_MAX)
        return mgl_fail(err, MGL_BAD_INPUT, path, "its path is too long");
    mgl_file_split(path, folder);
    mgl_status status = mgl_file_stands(folder, &stands, err);
    if (status || !stands)
        return status;
    snprintf(inside, sizeof inside, "%s/.", folder); /* never creates a file of that name */
    if (mgl_lock_take(inside, 0, WAIT_MS, lock, &taken, NULL) || taken)
        return MGL_OK;
    return mgl_fail(err, MGL_SYSTEM, path,
                    "another process writes into its folder: wait for the end of that process, "
                    "then try again");
}

void mgl_keeper_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

mgl_status mgl_keeper_locate(const char *path, char found[PATH_MAX], mgl_error *err)
{
    char other[PATH_MAX];
    bool stands = false, other_stands = false;
    mgl_status status = mgl_file_path(found, err, "%s", path);
    if (status)
        return status;
    const char *name = mgl_file_split(path, other);
    const char *renamed = mgl_alias_new(MGL_ALIAS_FILE, name, strlen(name));
    const char *other_name = renamed ? renamed : mgl_alias_published(MGL_ALIAS_FILE, name);
    if (other_name == name)
        return MGL_OK;
    status = mgl_file_path(other, err, "%.*s%s", (int)(name - path), path, other_name);
    if (!status)
        status = mgl_file_stands(path, &stands, err);
    if (!status)
        status = mgl_file_stands(other, &other_stands, err);
    if (status || !other_stands)
        return status;
    if (stands)
        return mgl_fail(err, MGL_BAD_INPUT, renamed ? path : other,
                        "\"%s\" is the old name of \"%s\", which is in the same folder too: move "
                        "the rows of the old file that are missing into the new file, then remove "
                        "the old file",
                        renamed ? name : other_name, renamed ? other_name : name);
    memcpy(found, other, sizeof other);
    return MGL_OK;
}

mgl_status mgl_keeper_rename(const char *path, char found[PATH_MAX], mgl_error *err)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (!strcmp(path, found) || mgl_alias_new(MGL_ALIAS_FILE, name, strlen(name)))
        return MGL_OK;
    if (mgl_file_denied() || rename(found, path))
        return mgl_fail_errno(err, found, "the file cannot be renamed to its new name");
    return mgl_file_path(found, err, "%s", path);
}

mgl_status mgl_keeper_write(const char *path, mgl_json_out *json, mgl_error *err)
{
    mgl_status status = json->text.failed
                            ? mgl_fail_memory(err, json->text.capacity)
                            : mgl_output_write_file(path, json->text.bytes, json->text.length, err);
    mgl_text_clear(&json->text);
    return status;
}
