/*
 * Loads and installs tuned entries: the compiled-in entries, and a user's folder, which is read
 * again on each load. A file in the folder that is no valid entry is reported and skipped, so that
 * it cannot stop a run.
 */
#include "schedule/tuned/tuned.h"
#include "schedule/tuned/tuned_files.h"

#include "base/data_folder.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"

#include <string.h>

const char *mgl_tuned_shipped(int index, const char **file)
{
    *file = mgl_tuned_files[index].name;
    return mgl_tuned_files[index].text;
}

bool mgl_tuned_folder(mgl_text *out)
{
    return mgl_data_folder("tuned", out);
}

void mgl_tuned_list_clear(mgl_tuned_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mgl_tuned_clear(&list->entries[i]);
    mgl_free(list->entries);
    *list = (mgl_tuned_list){0};
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Appends one line to the notes. MGL_NO_MEMORY is returned as an error instead. */
static mgl_status note(mgl_text *notes, const mgl_error *why, mgl_error *err)
{
    if (why->code == MGL_NO_MEMORY) {
        if (err)
            *err = *why;
        return why->code;
    }
    mgl_text_format(notes, "%sno tuned entry: %s%s%.*s", notes->length ? "\n" : "", why->where,
                    why->where[0] ? ": " : "", (int)strcspn(why->message, "\n"), why->message);
    return notes->failed ? mgl_fail_memory(err, notes->capacity) : MGL_OK;
}

static mgl_status add(mgl_tuned_list *list, const char *text, size_t length, const char *file,
                      mgl_text *notes, mgl_error *err)
{
    mgl_error why = {0};
    if (!mgl_grow((void **)&list->entries, &list->capacity, list->count, sizeof *list->entries))
        return mgl_fail_memory(err, sizeof *list->entries);
    if (mgl_tuned_parse(text, length, file, &list->entries[list->count], &why))
        return note(notes, &why, err);
    list->count++;
    return MGL_OK;
}

static mgl_status add_file(mgl_tuned_list *list, const char *folder, const char *name,
                           mgl_text *notes, mgl_error *err)
{
    mgl_text path = {0};
    mgl_error why = {0};
    char *text = NULL;
    size_t length = 0;
    mgl_text_format(&path, "%s/%s", folder, name);
    mgl_status status = path.failed ? mgl_fail_memory(err, path.capacity) : MGL_OK;
    if (!status && mgl_file_read_regular(path.bytes, MGL_TUNED_BYTES, &text, &length, &why))
        status = note(notes, &why, err);
    else if (!status)
        status = add(list, text, length, path.bytes, notes, err);
    mgl_free(text);
    mgl_text_clear(&path);
    return status;
}

static mgl_status add_folder(mgl_tuned_list *list, mgl_text *notes, mgl_error *err)
{
    mgl_text folder = {0};
    mgl_error why = {0};
    mgl_file_list files = {0};
    mgl_status status = MGL_OK;
    if (!mgl_tuned_folder(&folder))
        return MGL_OK;
    if (folder.failed)
        status = mgl_fail_memory(err, folder.capacity);
    else if (mgl_folder_list(folder.bytes, ".json", &files, &why))
        status = note(notes, &why, err);
    for (size_t i = 0; i < files.count && !status; i++)
        status = add_file(list, folder.bytes, files.names[i], notes, err);
    mgl_file_list_clear(&files);
    mgl_text_clear(&folder);
    return status;
}

mgl_status mgl_tuned_load(mgl_tuned_list *out, mgl_text *notes, mgl_error *err)
{
    const char *file, *text;
    *out = (mgl_tuned_list){0};
    mgl_status status = add_folder(out, notes, err);
    for (int i = 0; !status && (text = mgl_tuned_shipped(i, &file)); i++)
        status = add(out, text, strlen(text), file, notes, err);
    if (status)
        mgl_tuned_list_clear(out);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Checks that the written text can be parsed. */
static mgl_status check(const mgl_text *text, mgl_error *err)
{
    mgl_tuned again;
    mgl_status status = mgl_tuned_parse(text->bytes, text->length, "tuned entry", &again, err);
    if (!status)
        mgl_tuned_clear(&again);
    return status;
}

mgl_status mgl_tuned_install(const mgl_tuned *entry, mgl_text *path, mgl_error *err)
{
    enum { FOLDER_RIGHTS = 0755 };
    mgl_text text = {0}, place = {0};
    mgl_status status = MGL_OK;
    mgl_tuned_print(entry, &text);
    if (text.failed)
        status = mgl_fail_memory(err, text.capacity);
    else
        status = check(&text, err);
    if (!status && !mgl_tuned_folder(&place))
        status = mgl_fail(
            err, MGL_USAGE, "XDG_DATA_HOME",
            "no folder for tuned entries: neither XDG_DATA_HOME nor HOME is set; set one of them");
    if (!status && place.failed)
        status = mgl_fail_memory(err, place.capacity);
    if (!status)
        status = mgl_folder_make(place.bytes, FOLDER_RIGHTS, err);
    mgl_text_format(&place, "/%s.json", entry->name);
    if (!status && place.failed)
        status = mgl_fail_memory(err, place.capacity);
    if (!status)
        status = mgl_output_write_file(place.bytes, text.bytes, text.length, err);
    if (!status && path)
        mgl_text_put(path, place.bytes);
    mgl_text_clear(&place);
    mgl_text_clear(&text);
    return status;
}
