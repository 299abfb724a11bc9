/* Implements overlay.h: reads, scans, applies and writes the overlay folder. */
#include "autotune/kernels/gates/overlay.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "autotune/kernels/gates/kernel.h"
#include "autotune/kernels/gates/launch.h"
#include "autotune/kernels/gates/scan.h"
#include "autotune/store/keeper.h"
#include "base/data_folder.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "vm/cuda/canonical.h"
#include "vm/cuda/cuda.h"

enum { LARGEST = 1 << 20 };

/* ---- paths ----------------------------------------------------------------------------------- */

/* Builds the path "FOLDER/name". */
static mgl_status place(const char *folder, const char *name, char path[PATH_MAX], mgl_error *err)
{
    mgl_text own = {0};
    if (!folder && !mgl_data_folder("overlay", &own))
        return mgl_fail(err, MGL_SYSTEM, "overlay",
                        "its folder is unknown: set XDG_DATA_HOME or HOME");
    mgl_status status = own.failed
                            ? mgl_fail_memory(err, 1)
                            : mgl_file_path(path, err, "%s/%s", folder ? folder : own.bytes, name);
    mgl_text_clear(&own);
    return status;
}

/* Describes the folder of the texts as a keeper. `path` receives the folder's path. */
static mgl_status find_texts(const char *folder, char path[PATH_MAX], mgl_keeper *out,
                             mgl_error *err)
{
    *out = (mgl_keeper){path, ".cuh", MGL_KERNEL_TEXT};
    return place(folder, "", path, err);
}

/* The hash of the canonical form of the unit's original text. */
static void hash_own(const mgl_kernel_unit *unit, char hex[MGL_SHA256_HEX])
{
    size_t length;
    unsigned char bytes[MGL_SHA256_BYTES];
    const char *text = mgl_kernel_unit_text(unit, &length);
    mgl_cuda_source_digest(&(mgl_cuda_source){unit->file, (const unsigned char *)text}, bytes);
    mgl_sha256_hex(bytes, hex);
}

/* Whether a hash belongs to the unit's original text. */
static bool is_base(const mgl_kernel_unit *unit, const char *hash)
{
    size_t length;
    char own[MGL_SHA256_HEX], bytes[MGL_SHA256_HEX];
    const char *text = mgl_kernel_unit_text(unit, &length);
    hash_own(unit, own);
    mgl_keeper_name(text, length, bytes); /* older folders contain the hash of the bytes */
    return !strcmp(hash, own) || !strcmp(hash, bytes);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void clear_entry(mgl_overlay_entry *entry)
{
    mgl_free(entry->evidence);
    mgl_free(entry->before);
    mgl_free(entry->bytes);
    *entry = (mgl_overlay_entry){0};
}

void mgl_overlay_clear(mgl_overlay *overlay)
{
    for (int i = 0; i < overlay->count; i++)
        clear_entry(&overlay->entries[i]);
    *overlay = (mgl_overlay){0};
}

static mgl_status read_hash(const mgl_json *json, const cJSON *of, const char *key,
                            char out[MGL_SHA256_HEX], mgl_error *err)
{
    const char *text = NULL;
    mgl_status status = mgl_json_get_string(json, of, key, true, &text, err);
    if (status)
        return status;
    if (!mgl_keeper_is_id(text))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "%s: is no SHA-256", key);
    memcpy(out, text, MGL_SHA256_HEX);
    return MGL_OK;
}

static mgl_status read_text(const char *folder, mgl_overlay_entry *entry, mgl_error *err)
{
    char path[PATH_MAX];
    size_t length = 0;
    mgl_keeper texts;
    mgl_status status = find_texts(folder, path, &texts, err);
    if (!status)
        status = mgl_keeper_get(&texts, entry->text, &entry->bytes, &length, err);
    if (!status && strlen(entry->bytes) == length)
        return MGL_OK;
    if (status && status != MGL_BAD_INPUT)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "%s.cuh is missing or was changed since it was promoted; remove the overlay's "
                    "folder, or promote the micro-kernel again",
                    entry->text);
}

/* The position after a line "<directive>NAME" or "<directive>NAME NUMBER", as mgl_trial_text
 * writes it; NULL: `at` is not such a line. */
static const char *behind_tunable(const char *at, const char *directive, bool valued)
{
    const size_t n = strlen(directive);
    if (strncmp(at, directive, n) != 0)
        return NULL;
    at += n;
    while (isupper((unsigned char)*at) || isdigit((unsigned char)*at) || *at == '_')
        at++;
    if (valued && *at++ != ' ')
        return NULL;
    at += valued && *at == '-';
    while (valued && isdigit((unsigned char)*at))
        at++;
    return *at == '\n' ? at + 1 : NULL;
}

/* Returns the text without the tunable definitions around it. The gates checked this part. */
static const char *find_body(const char *text, size_t *length)
{
    const char *at = text, *next, *end = text + strlen(text), *line;
    while ((next = behind_tunable(at, "#define TUNE_", true)))
        at = next;
    for (; end > at; end = line) {
        line = end - 1;
        while (line > at && line[-1] != '\n')
            line--;
        if (behind_tunable(line, "#undef TUNE_", false) != end)
            break;
    }
    *length = (size_t)(end - at);
    return at;
}

/* Scans the text, so that forbidden content never reaches a compiler, whoever wrote the file. */
static mgl_status scan_text(const mgl_overlay_entry *entry, mgl_error *err)
{
    mgl_kernel_launch launch;
    mgl_scan_fault fault;
    int64_t chosen[MGL_KERNEL_VALUES] = {0}, shared = 0;
    size_t length;
    const char *body = find_body(entry->bytes, &length);
    mgl_status status = mgl_kernel_launch_read(body, length, &launch, err);
    if (!status)
        status = mgl_kernel_launch_choose(&launch, NULL, 0, chosen, err);
    if (status)
        return status;
    mgl_kernel_launch_needs(&launch, MGL_KERNEL_NEED_SHARED, chosen, NULL, &shared);
    status = mgl_kernel_scan(entry->unit, body, length, shared, &fault, err);
    if (status || fault.line == 0)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, entry->text, "line %d of the overlay's %s: %s", fault.line,
                    entry->unit->name, fault.what);
}

/* Prints a value to *out; NULL for no value. */
static bool copy_value(const cJSON *value, char **out)
{
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    *out = text ? mgl_strdup(text) : NULL;
    cJSON_free(text);
    return !value || *out;
}

/* Reads the hashes, the evidence and the replaced entry, and then the text. */
static mgl_status read_body(const char *folder, const mgl_json *json, const cJSON *of,
                            mgl_overlay_entry *entry, mgl_error *err)
{
    const cJSON *evidence = NULL, *before = NULL;
    mgl_status status = read_hash(json, of, "base", entry->base, err);
    if (!status)
        status = read_hash(json, of, "text", entry->text, err);
    if (!status)
        status = mgl_json_get_object(json, of, "evidence", false, &evidence, err);
    if (!status)
        status = mgl_json_get_object(json, of, "before", false, &before, err);
    if (!status && (!copy_value(evidence, &entry->evidence) || !copy_value(before, &entry->before)))
        status = mgl_fail_memory(err, LARGEST);
    return status ? status : read_text(folder, entry, err);
}

static mgl_status read_entry(const char *folder, const mgl_json *json, const cJSON *of,
                             mgl_overlay_entry *entry, mgl_error *err)
{
    const char *name = NULL;
    mgl_status status = mgl_json_get_string(json, of, "unit", true, &name, err);
    if (status)
        return status;
    entry->unit = mgl_kernel_unit_find(name);
    if (!entry->unit)
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "'%.60s' is no micro-kernel", name);
    status = read_body(folder, json, of, entry, err);
    entry->stale = !is_base(entry->unit, entry->base);
    return status || entry->stale ? status : scan_text(entry, err);
}

/* Two units may share one file: the last promoted one is used. */
static void add_source(mgl_overlay *o, const mgl_overlay_entry *entry)
{
    int at = 0;
    while (at < o->source_count && strcmp(o->sources[at].name, entry->unit->file) != 0)
        at++;
    o->sources[at] = (mgl_cuda_source){entry->unit->file, (const unsigned char *)entry->bytes};
    o->source_count += at == o->source_count;
}

static mgl_status read_manifest(const char *folder, const mgl_json *json, mgl_overlay *out,
                                mgl_error *err)
{
    const cJSON *list = NULL, *item;
    mgl_status status = mgl_json_check_schema(json, "megalith.overlay/1", err);
    if (!status)
        status = mgl_json_get_array(json, json->root, "units", true, &list, err);
    if (status)
        return status;
    cJSON_ArrayForEach(item, list)
    {
        if (out->count == MGL_OVERLAY_UNITS)
            return mgl_fail(err, MGL_BAD_INPUT, json->file, "has more than 32 units");
        mgl_overlay_entry *entry = &out->entries[out->count++];
        status = read_entry(folder, json, item, entry, err);
        if (status)
            return status;
        if (!entry->stale)
            add_source(out, entry);
    }
    return MGL_OK;
}

mgl_status mgl_overlay_read(const char *folder, mgl_overlay *out, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_json json = {0};
    bool stands = false;
    *out = (mgl_overlay){0};
    if (place(folder, "manifest.json", path, NULL))
        return MGL_OK; /* no data folder: nothing was promoted */
    mgl_status status = mgl_file_stands(path, &stands, err);
    if (status || !stands)
        return status;
    status = mgl_json_read_regular(path, LARGEST, &json, err);
    if (!status)
        status = read_manifest(folder, &json, out, err);
    mgl_json_clear(&json);
    if (status)
        mgl_overlay_clear(out);
    return status;
}

mgl_status mgl_overlay_use(const mgl_overlay *overlay, mgl_error *err)
{
    return mgl_cuda_override_sources(overlay ? overlay->sources : NULL,
                                     overlay ? overlay->source_count : 0, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* `value` is JSON, or NULL. */
static mgl_status put_value(mgl_json_out *out, const char *key, const char *value, mgl_error *err)
{
    mgl_json json = {0};
    if (!value)
        return MGL_OK;
    mgl_status status = mgl_json_parse_values(value, strlen(value), LARGEST, key, &json, err);
    if (!status)
        mgl_json_out_value(out, key, json.root);
    mgl_json_clear(&json);
    return status;
}

/* Writes the members that read_body reads: base, text, evidence and before. */
static mgl_status put_body(mgl_json_out *out, const mgl_overlay_entry *entry, mgl_error *err)
{
    mgl_json_out_string(out, "base", entry->base);
    mgl_json_out_string(out, "text", entry->text);
    mgl_status status = put_value(out, "evidence", entry->evidence, err);
    return status ? status : put_value(out, "before", entry->before, err);
}

static mgl_status write_manifest(const char *folder, const mgl_overlay *overlay, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_json_out out = {0};
    mgl_status status = place(folder, "manifest.json", path, err);
    mgl_json_out_begin(&out, "megalith.overlay/1");
    mgl_json_out_array(&out, "units");
    for (int i = 0; i < overlay->count && !status; i++) {
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "unit", overlay->entries[i].unit->name);
        status = put_body(&out, &overlay->entries[i], err);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_close(&out);
    if (!status)
        return mgl_keeper_write(path, &out, err);
    mgl_text_clear(&out.text);
    return status;
}

static int find_unit(const mgl_overlay *overlay, const mgl_kernel_unit *unit)
{
    for (int i = 0; i < overlay->count; i++)
        if (overlay->entries[i].unit == unit)
            return i;
    return -1;
}

/* Removes an entry and keeps the order of the others. */
static void take_out(mgl_overlay *overlay, int at)
{
    clear_entry(&overlay->entries[at]);
    for (int i = at; i + 1 < overlay->count; i++)
        overlay->entries[i] = overlay->entries[i + 1];
    overlay->entries[--overlay->count] = (mgl_overlay_entry){0};
}

/* Prints an entry as JSON. The entry that replaces it stores this JSON as its `before`. */
static mgl_status describe_before(const mgl_overlay_entry *entry, char **out, mgl_error *err)
{
    mgl_json_out json = {0};
    mgl_json_out_begin(&json, "megalith.overlay/1");
    mgl_status status = put_body(&json, entry, err);
    mgl_json_out_close(&json);
    if (!status && json.text.failed)
        status = mgl_fail_memory(err, LARGEST);
    *out = status ? NULL : json.text.bytes;
    if (status)
        mgl_text_clear(&json.text);
    return status;
}

static mgl_status add_entry(mgl_overlay *overlay, const mgl_kernel_unit *unit, const char *text,
                            const char *evidence, mgl_error *err)
{
    char *before = NULL;
    const int at = find_unit(overlay, unit);
    if (at < 0 && overlay->count == MGL_OVERLAY_UNITS)
        return mgl_fail(err, MGL_BAD_INPUT, "overlay", "has 32 units already");
    mgl_status status = at < 0 ? MGL_OK : describe_before(&overlay->entries[at], &before, err);
    if (status)
        return status;
    if (at >= 0)
        take_out(overlay, at);
    mgl_overlay_entry *entry = &overlay->entries[overlay->count++];
    entry->unit = unit;
    entry->before = before;
    hash_own(unit, entry->base);
    mgl_keeper_name(text, strlen(text), entry->text);
    entry->bytes = mgl_strdup(text);
    entry->evidence = evidence ? mgl_strdup(evidence) : NULL;
    if (!entry->bytes || (evidence && !entry->evidence))
        return mgl_fail_memory(err, strlen(text));
    return scan_text(entry, err);
}

/* Locks the folder and reads the overlay. end_change writes the manifest if `status` is MGL_OK, and
 * returns the status. */
static mgl_status begin_change(const char *folder, mgl_overlay *overlay, int *lock, mgl_error *err)
{
    char path[PATH_MAX];
    *overlay = (mgl_overlay){0};
    *lock = -1;
    mgl_status status = place(folder, "manifest.json", path, err);
    if (!status)
        status = mgl_keeper_lock(path, lock, err);
    return status ? status : mgl_overlay_read(folder, overlay, err);
}

static mgl_status end_change(const char *folder, mgl_overlay *overlay, int lock, mgl_status status,
                             mgl_error *err)
{
    if (!status)
        status = write_manifest(folder, overlay, err);
    mgl_overlay_clear(overlay);
    mgl_keeper_unlock(lock);
    return status;
}

/* The text is written first, so that the manifest never names a missing text. */
mgl_status mgl_overlay_put(const char *folder, const mgl_kernel_unit *unit, const char *text,
                           const char *evidence, mgl_error *err)
{
    char path[PATH_MAX], id[MGL_SHA256_HEX];
    mgl_overlay overlay;
    mgl_keeper texts;
    int lock = -1;
    mgl_status status = find_texts(folder, path, &texts, err);
    if (!status)
        status = mgl_folder_make(path, 0777, err);
    if (status)
        return status;
    status = begin_change(folder, &overlay, &lock, err);
    if (!status)
        status = add_entry(&overlay, unit, text, evidence, err);
    if (!status)
        status = mgl_keeper_put(&texts, text, strlen(text), id, err);
    return end_change(folder, &overlay, lock, status, err);
}

/* Replaces the entry by its `before`. */
static mgl_status restore(const char *folder, mgl_overlay_entry *entry, mgl_error *err)
{
    mgl_json json = {0};
    mgl_overlay_entry old = {.unit = entry->unit};
    mgl_status status =
        mgl_json_parse(entry->before, strlen(entry->before), LARGEST, "before", &json, err);
    if (!status)
        status = read_body(folder, &json, json.root, &old, err);
    mgl_json_clear(&json);
    clear_entry(status ? &old : entry);
    if (!status)
        *entry = old;
    return status;
}

mgl_status mgl_overlay_roll_back(const char *folder, const mgl_kernel_unit *unit, bool *restored,
                                 mgl_error *err)
{
    mgl_overlay overlay;
    int lock = -1;
    *restored = false;
    mgl_status status = begin_change(folder, &overlay, &lock, err);
    const int at = status ? -1 : find_unit(&overlay, unit);
    if (!status && at < 0)
        status = mgl_fail(err, MGL_BAD_INPUT, unit->name, "is not in the overlay");
    if (!status && overlay.entries[at].before) {
        status = restore(folder, &overlay.entries[at], err);
        *restored = !status;
    } else if (!status) {
        take_out(&overlay, at);
    }
    return end_change(folder, &overlay, lock, status, err);
}
