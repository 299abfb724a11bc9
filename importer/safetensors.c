/*
 * Reads safetensors. See safetensors.h. A header becomes a list of tensors in three steps: the
 * JSON is parsed, each entry is read (`read_entry`), and the ranges are checked together: sorted
 * by offset, they must be contiguous from 0 to the end (`check_ranges`). Shards are read one
 * after another into the same list. The index and the shards must contain the same tensors.
 */
#include "importer/safetensors.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/placeholder.h"
#include "importer/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SHARDS = 1000, MAX_INDEX = 100 * 1000 * 1000 };

/* Every dtype of the format, with the bits per element. */
static const struct {
    const char *name;
    unsigned bits;
} stored_dtypes[] = {
    {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
    {"F32", 32}, {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
};

/* ---- one header ----------------------------------------------------------------------------- */

static mgl_status fail_tensor(mgl_error *err, const char *file, const char *tensor,
                              const char *problem)
{
    return mgl_fail(err, MGL_BAD_INPUT, file, "tensor %.200s: %s", tensor, problem);
}

/* Sets the dtype; returns the bits per element, or 0 for an unknown name. */
static unsigned find_dtype(const char *name, mgl_stored_tensor *tensor)
{
    for (size_t i = 0; i < sizeof stored_dtypes / sizeof *stored_dtypes; i++) {
        if (strcmp(stored_dtypes[i].name, name) != 0)
            continue;
        tensor->stored_dtype = stored_dtypes[i].name;
        tensor->usable =
            mgl_dtype_parse_safetensors(name, &tensor->dtype) && tensor->dtype != MGL_I32;
        return stored_dtypes[i].bits;
    }
    return 0;
}

/* Sets rank and shape; *elements becomes their product. */
static mgl_status read_shape(const mgl_json *json, const cJSON *entry, const char *name,
                             mgl_stored_tensor *tensor, size_t *elements, mgl_error *err)
{
    const cJSON *shape, *item;
    mgl_status status = mgl_json_get_array(json, entry, "shape", true, &shape, err);
    if (status)
        return status;
    *elements = 1;
    cJSON_ArrayForEach(item, shape)
    {
        int64_t extent;
        if (tensor->rank == MGL_STORED_MAX_RANK)
            return fail_tensor(err, json->file, name, "has more than 8 dimensions");
        status = mgl_json_item_int(json, item, name, 0, INT64_MAX, &extent, err);
        if (status)
            return status;
        tensor->shape[tensor->rank++] = extent;
        if (!mgl_mul(*elements, (size_t)extent, elements))
            return fail_tensor(err, json->file, name, "its shape has more elements than 64 bits");
    }
    return MGL_OK;
}

static mgl_status read_offsets(const mgl_json *json, const cJSON *entry, const char *name,
                               mgl_stored_tensor *tensor, mgl_error *err)
{
    const cJSON *offsets;
    int64_t begin, end;
    mgl_status status = mgl_json_get_array(json, entry, "data_offsets", true, &offsets, err);
    if (status)
        return status;
    if (cJSON_GetArraySize(offsets) != 2)
        return fail_tensor(err, json->file, name, "data_offsets must be two numbers");
    if ((status = mgl_json_item_int(json, offsets->child, name, 0, INT64_MAX, &begin, err)) ||
        (status = mgl_json_item_int(json, offsets->child->next, name, 0, INT64_MAX, &end, err)))
        return status;
    if (end < begin)
        return fail_tensor(err, json->file, name, "data_offsets end before they begin");
    tensor->offset = (size_t)begin;
    tensor->bytes = (size_t)(end - begin);
    return MGL_OK;
}

/* Reads one entry, and checks everything that does not depend on the others. */
static mgl_status read_entry(const mgl_json *json, const cJSON *entry, mgl_stored_tensor *tensor,
                             mgl_error *err)
{
    const char *name = entry->string, *dtype;
    size_t elements, size;
    if (!cJSON_IsObject(entry))
        return fail_tensor(err, json->file, name, "its entry is not an object");
    for (const cJSON *key = entry->child; key; key = key->next)
        if (strcmp(key->string, "dtype") != 0 && strcmp(key->string, "shape") != 0 &&
            strcmp(key->string, "data_offsets") != 0)
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "tensor %.200s: the format does not know the key \"%.100s\"", name,
                            key->string);
    mgl_status status = mgl_json_get_string(json, entry, "dtype", true, &dtype, err);
    if (status)
        return status;
    unsigned bits = find_dtype(dtype, tensor);
    if (!bits)
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "tensor %.200s: the format does not know the dtype \"%.40s\"", name, dtype);
    if ((status = read_shape(json, entry, name, tensor, &elements, err)) ||
        (status = read_offsets(json, entry, name, tensor, err)))
        return status;
    if (!mgl_mul(elements, bits, &size) || size % 8)
        return fail_tensor(err, json->file, name, "its shape makes no whole number of bytes");
    if (size / 8 != tensor->bytes)
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "tensor %.200s: shape and dtype make %zu bytes, data_offsets hold %zu",
                        name, size / 8, tensor->bytes);
    return MGL_OK;
}

static mgl_status check_metadata(const mgl_json *json, const cJSON *metadata, mgl_error *err)
{
    if (!cJSON_IsObject(metadata))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "__metadata__ must be an object");
    for (const cJSON *item = metadata->child; item; item = item->next)
        if (!cJSON_IsString(item))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "__metadata__.%.100s: every value must be a string", item->string);
    return MGL_OK;
}

static int by_offset(const void *a, const void *b)
{
    const mgl_stored_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorts the tensors by offset. Checks that the ranges are contiguous and end at the end of the
 * file. */
static mgl_status check_ranges(mgl_stored_tensor *tensors, size_t count, size_t data_bytes,
                               const char *file, mgl_error *err)
{
    size_t at = 0;
    if (count)
        qsort(tensors, count, sizeof *tensors, by_offset);
    for (size_t i = 0; i < count; i++) {
        if (tensors[i].offset != at)
            return mgl_fail(err, MGL_BAD_INPUT, file,
                            "tensor %.200s: begins at byte %zu of the data, not at %zu: the file "
                            "has %s",
                            tensors[i].name, tensors[i].offset, at,
                            tensors[i].offset > at ? "a hole" : "tensors that overlap");
        at += tensors[i].bytes; /* no overflow: offset + bytes came from 53 bits */
    }
    if (at != data_bytes)
        return mgl_fail(
            err, MGL_BAD_INPUT, file,
            "the tensors end at byte %zu of the data, the file at %zu: it is %s; download "
            "the file again",
            at, data_bytes, at > data_bytes ? "cut off" : "too long");
    return MGL_OK;
}

static mgl_status read_entries(const mgl_json *json, size_t data_bytes, int index,
                               mgl_stored_list *list, mgl_error *err)
{
    size_t first = list->count;
    if (!cJSON_IsObject(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "the header is not a JSON object");
    for (const cJSON *entry = json->root->child; entry; entry = entry->next) {
        mgl_status status;
        if (!strcmp(entry->string, "__metadata__")) {
            if ((status = check_metadata(json, entry, err)))
                return status;
            continue;
        }
        void *items = list->items;
        if (!mgl_grow(&items, &list->capacity, list->count, sizeof *list->items))
            return mgl_fail_memory(err, 2 * list->capacity * sizeof *list->items);
        list->items = items;
        mgl_stored_tensor *tensor = &list->items[list->count];
        *tensor = (mgl_stored_tensor){.file = index};
        if ((status = read_entry(json, entry, tensor, err)))
            return status;
        tensor->name = mgl_strdup(entry->string);
        if (!tensor->name)
            return mgl_fail_memory(err, strlen(entry->string) + 1);
        list->count++;
    }
    return check_ranges(first ? list->items + first : list->items, list->count - first, data_bytes,
                        json->file, err);
}

mgl_status mgl_safetensors_parse_header(const char *header, size_t length, size_t data_bytes,
                                        const char *file, int index, mgl_stored_list *list,
                                        mgl_error *err)
{
    mgl_json json;
    if (!length || header[0] != '{')
        return mgl_fail(err, MGL_BAD_INPUT, file, "the header does not begin with '{'");
    mgl_status status =
        mgl_json_parse(header, length, MGL_SAFETENSORS_MAX_HEADER, file, &json, err);
    if (status)
        return status;
    status = read_entries(&json, data_bytes, index, list, err);
    mgl_json_clear(&json);
    return status;
}

void mgl_stored_list_clear(mgl_stored_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mgl_free(list->items[i].name);
    mgl_free(list->items);
    *list = (mgl_stored_list){0};
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Maps `path` as the next file and appends its tensors. */
static mgl_status add_file(mgl_safetensors *files, const char *path, mgl_error *err)
{
    unsigned char prefix[8];
    uint64_t length = 0;
    int index = files->file_count;
    mgl_stored_file *file = &files->files[index];
    mgl_status status = mgl_map_open(path, &file->map, err);
    if (status)
        return status;
    files->file_count++;
    if ((status = mgl_placeholder_check_map(file->map, err)))
        return status;
    size_t size = mgl_map_size(file->map);
    if (size < 8)
        return mgl_fail(
            err, MGL_BAD_INPUT, path,
            "%zu bytes are too few for a safetensors file; it is cut off; download the file "
            "again",
            size);
    if ((status = mgl_map_read(file->map, 0, 8, prefix, err)))
        return status;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | prefix[i];
    if (length > MGL_SAFETENSORS_MAX_HEADER)
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the header claims %" PRIu64 " bytes; 100,000,000 are the most accepted",
                        length);
    if (length > size - 8)
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the header claims %" PRIu64
                        " bytes, the file has %zu: it is cut off; download "
                        "the file again",
                        length, size);
    char *header = mgl_alloc((size_t)length);
    if (!header)
        return mgl_fail_memory(err, (size_t)length);
    file->data = 8 + (size_t)length;
    status = mgl_map_read(file->map, 8, (size_t)length, header, err);
    if (!status)
        status = mgl_safetensors_parse_header(header, (size_t)length, size - file->data, path,
                                              index, &files->tensors, err);
    mgl_free(header);
    return status;
}

/* Returns whether the name is a plain file name: an untrusted index must not open files in other
 * folders. */
static bool is_shard_name(const char *name)
{
    return strlen(name) < 256 && name[0] != '.' && !strpbrk(name, "/\\") &&
           mgl_text_ends(name, ".safetensors");
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Fills `names` with the distinct shard names of the map, ascending. `names` has room for one name
 * per entry; *count becomes the number of names. */
static mgl_status list_shards(const mgl_json *json, const cJSON *map, const char **names,
                              size_t *count, mgl_error *err)
{
    size_t n = 0, distinct = 0;
    for (const cJSON *item = map->child; item; item = item->next) {
        if (!cJSON_IsString(item))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "weight_map: the shard of %.200s is not a string", item->string);
        if (!is_shard_name(item->valuestring))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "weight_map: the shard \"%.200s\" of %.200s is not the name of a "
                            ".safetensors file in the same folder",
                            item->valuestring, item->string);
        names[n++] = item->valuestring;
    }
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(names[i], names[i - 1]) != 0)
            names[distinct++] = names[i];
    *count = distinct;
    if (distinct > MAX_SHARDS)
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "%zu shards; 1,000 are the most accepted",
                        distinct);
    return MGL_OK;
}

/* Fails if a shard is missing, as after an interrupted download. */
static mgl_status check_shards(const char *folder, const char **names, size_t count, mgl_error *err)
{
    const char *missing = NULL;
    size_t there = 0;
    for (size_t i = 0; i < count; i++) {
        bool stands;
        mgl_status status = mgl_folder_holds(folder, names[i], &stands, err);
        if (status)
            return status;
        there += stands;
        missing = stands || missing ? missing : names[i];
    }
    return missing ? mgl_layout_fail_shard(folder, missing, there, count, err) : MGL_OK;
}

static mgl_status open_shards(mgl_safetensors *files, const char *folder, const char **names,
                              size_t count, mgl_error *err)
{
    mgl_status status = check_shards(folder, names, count, err);
    if (status)
        return status;
    files->files = mgl_alloc_zero(count, sizeof *files->files);
    if (!files->files)
        return mgl_fail_memory(err, count * sizeof *files->files);
    for (size_t i = 0; i < count && !status; i++) {
        mgl_text path;
        status = mgl_path_join(folder, names[i], &path, err);
        if (!status)
            status = add_file(files, path.bytes, err);
        mgl_text_clear(&path);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    const mgl_stored_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Sorts by name; a name that occurs in two shards is an error. */
static mgl_status sort_tensors(mgl_safetensors *files, const char *where, mgl_error *err)
{
    mgl_stored_tensor *items = files->tensors.items;
    if (!files->tensors.count)
        return mgl_fail(err, MGL_BAD_INPUT, where, "holds no tensors");
    qsort(items, files->tensors.count, sizeof *items, by_name);
    for (size_t i = 1; i < files->tensors.count; i++)
        if (!strcmp(items[i].name, items[i - 1].name))
            return mgl_fail(err, MGL_BAD_INPUT, where, "tensor %.200s is in two shards",
                            items[i].name);
    return MGL_OK;
}

/* Checks that every tensor of the index is in its shard, and every tensor of a shard is in the
 * index. */
static mgl_status compare_index(const mgl_safetensors *files, const mgl_json *json,
                                const cJSON *map, const char **names, mgl_error *err)
{
    size_t entries = 0;
    for (const cJSON *item = map->child; item; item = item->next, entries++) {
        int tensor = mgl_safetensors_find(files, item->string);
        if (tensor < 0)
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "tensor %.200s is in the index but in none of the shards",
                            item->string);
        const char *shard = names[files->tensors.items[tensor].file];
        if (strcmp(shard, item->valuestring) != 0)
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "tensor %.200s is in %.100s, not in %.100s as the index says",
                            item->string, shard, item->valuestring);
    }
    for (size_t i = 0; i < files->tensors.count && entries < files->tensors.count; i++)
        if (!mgl_json_member(map, files->tensors.items[i].name))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "tensor %.200s is in %.100s but not in the index",
                            files->tensors.items[i].name, names[files->tensors.items[i].file]);
    return MGL_OK;
}

static mgl_status open_index(mgl_safetensors *files, const char *folder, const char *path,
                             mgl_error *err)
{
    mgl_json json;
    const cJSON *map;
    mgl_status status = mgl_json_read_regular(path, MAX_INDEX, &json, err);
    if (status)
        return status;
    status = mgl_json_get_object(&json, json.root, "weight_map", true, &map, err);
    const char **names = NULL;
    size_t count = status ? 0 : (size_t)cJSON_GetArraySize(map);
    if (!status && !count)
        status = mgl_fail(err, MGL_BAD_INPUT, path, "weight_map is empty");
    if (!status && !(names = mgl_alloc_zero(count, sizeof *names)))
        status = mgl_fail_memory(err, count * sizeof *names);
    if (!status)
        status = list_shards(&json, map, names, &count, err);
    if (!status)
        status = open_shards(files, folder, names, count, err);
    if (!status)
        status = sort_tensors(files, path, err);
    if (!status)
        status = compare_index(files, &json, map, names, err);
    mgl_free(names);
    mgl_json_clear(&json);
    return status;
}

static mgl_status open_single(mgl_safetensors *files, const char *path, mgl_error *err)
{
    files->files = mgl_alloc_zero(1, sizeof *files->files);
    if (!files->files)
        return mgl_fail_memory(err, sizeof *files->files);
    mgl_status status = add_file(files, path, err);
    return status ? status : sort_tensors(files, path, err);
}

/* If both exist, the single file is used, as Hugging Face does. */
static mgl_status open_either(mgl_safetensors *files, const char *folder, mgl_error *err)
{
    mgl_text path;
    bool has_single, has_index = false;
    mgl_status status = mgl_folder_holds(folder, MGL_SAFETENSORS_SINGLE, &has_single, err);
    if (!status && !has_single)
        status = mgl_folder_holds(folder, MGL_SAFETENSORS_INDEX, &has_index, err);
    if (status)
        return status;
    if (!has_single && !has_index)
        return mgl_layout_fail_folder(folder, MGL_LACKS_WEIGHTS, err);
    status = mgl_path_join(folder, has_single ? MGL_SAFETENSORS_SINGLE : MGL_SAFETENSORS_INDEX,
                           &path, err);
    if (!status)
        status = has_single ? open_single(files, path.bytes, err)
                            : open_index(files, folder, path.bytes, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_safetensors_open(const char *folder, mgl_safetensors **out, mgl_error *err)
{
    *out = NULL;
    mgl_safetensors *files = mgl_alloc_zero(1, sizeof *files);
    if (!files)
        return mgl_fail_memory(err, sizeof *files);
    mgl_status status = open_either(files, folder, err);
    if (status)
        mgl_safetensors_close(files);
    else
        *out = files;
    return status;
}

mgl_status mgl_safetensors_list(const char *header, size_t length, size_t data_bytes,
                                const char *file, mgl_safetensors **out, mgl_error *err)
{
    *out = NULL;
    mgl_safetensors *files = mgl_alloc_zero(1, sizeof *files);
    if (!files)
        return mgl_fail_memory(err, sizeof *files);
    mgl_status status =
        mgl_safetensors_parse_header(header, length, data_bytes, file, 0, &files->tensors, err);
    if (!status)
        status = sort_tensors(files, file, err);
    if (status)
        mgl_safetensors_close(files);
    else
        *out = files;
    return status;
}

void mgl_safetensors_close(mgl_safetensors *files)
{
    if (!files)
        return;
    mgl_stored_list_clear(&files->tensors);
    for (int i = 0; i < files->file_count; i++)
        mgl_map_close(files->files[i].map);
    mgl_free(files->files);
    mgl_free(files);
}

int mgl_safetensors_find(const mgl_safetensors *files, const char *name)
{
    size_t low = 0, high = files->tensors.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(files->tensors.items[middle].name, name);
        if (!order)
            return (int)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

mgl_status mgl_safetensors_read(const mgl_safetensors *files, int tensor, size_t offset,
                                size_t length, void *to, mgl_error *err)
{
    const mgl_stored_tensor *t = &files->tensors.items[tensor];
    size_t end = 0;
    if (!files->file_count)
        return mgl_fail(err, MGL_USAGE, t->name, "the tensors were listed without their bytes");
    const mgl_stored_file *file = &files->files[t->file];
    if (!mgl_add(offset, length, &end) || end > t->bytes)
        return mgl_fail(err, MGL_BAD_INPUT, t->name,
                        "%zu bytes at offset %zu are outside the tensor of %zu bytes", length,
                        offset, t->bytes);
    return mgl_map_read(file->map, file->data + t->offset + offset, length, to, err);
}

/* Copies bytes in [offset, end) of a tensor with `work`, whose argument is `user`, under a guard.
 */
static mgl_status copy_guarded(const mgl_safetensors *files, const mgl_stored_tensor *t,
                               mgl_guarded_fn *work, void *user, size_t offset, size_t end,
                               mgl_error *err)
{
    const mgl_map *map = files->files[t->file].map;
    const size_t start = files->files[t->file].data + t->offset;
    if (mgl_file_denied())
        return mgl_fail_errno(err, mgl_map_path(map), "cannot be read");
    const bool copied = mgl_map_guard(work, user);
    mgl_status status = mgl_map_check(map, start + end, err);
    if (status || copied)
        return status;
    return mgl_fail(err, MGL_SYSTEM, mgl_map_path(map),
                    "the disk could not deliver %zu bytes at offset %zu", end - offset,
                    start + offset);
}

/* Checks that `count` pieces of `length` bytes are inside the tensor and its file. */
static mgl_status check_pieces(const mgl_safetensors *files, const mgl_stored_tensor *t,
                               size_t offset, size_t length, size_t stride, size_t count,
                               size_t *end, mgl_error *err)
{
    if (!files->file_count)
        return mgl_fail(err, MGL_USAGE, t->name, "the tensors were listed without their bytes");
    const mgl_stored_file *file = &files->files[t->file];
    if (!mgl_mul(stride, count - 1, end) || !mgl_add(*end, offset, end) ||
        !mgl_add(*end, length, end) || *end > t->bytes ||
        file->data + t->offset + *end > mgl_map_size(file->map))
        return mgl_fail(err, MGL_BAD_INPUT, t->name,
                        "%zu pieces of %zu bytes from offset %zu are outside the tensor of %zu "
                        "bytes",
                        count, length, offset, t->bytes);
    return MGL_OK;
}

static const char *bytes_of(const mgl_safetensors *files, const mgl_stored_tensor *t)
{
    const mgl_stored_file *file = &files->files[t->file];
    return (const char *)mgl_map_bytes(file->map) + file->data + t->offset;
}

/* The argument of copy_pieces. */
typedef struct pieces {
    const char *from;
    char *to;
    size_t length, stride, count;
} pieces;

static void copy_pieces(void *user)
{
    const pieces *p = user;
    for (size_t i = 0; i < p->count; i++)
        memcpy(p->to + i * p->length, p->from + i * p->stride, p->length);
}

mgl_status mgl_safetensors_read_strided(const mgl_safetensors *files, int tensor, size_t offset,
                                        size_t length, size_t stride, size_t count, void *to,
                                        mgl_error *err)
{
    const mgl_stored_tensor *t = &files->tensors.items[tensor];
    size_t end = 0;
    if (length == stride || count <= 1)
        return mgl_safetensors_read(files, tensor, offset, length * count, to, err);
    mgl_status status = check_pieces(files, t, offset, length, stride, count, &end, err);
    if (status)
        return status;
    pieces p = {bytes_of(files, t) + offset, to, length, stride, count};
    return copy_guarded(files, t, copy_pieces, &p, offset, end, err);
}

/* The argument of copy_picks. */
typedef struct pick_copy {
    const char *from;
    char *to;
    const mgl_picks *picks;
} pick_copy;

/* The picks of a piece lie on cache lines of their own, so the lines of a later piece are
 * prefetched. */
static void copy_picks(void *user)
{
    enum { AHEAD = 2 };
    const pick_copy *c = user;
    const mgl_picks *p = c->picks;
    for (size_t i = 0; i < p->count; i++) {
        const char *from = c->from + i * p->stride;
        const char *next = from + (i + AHEAD < p->count ? AHEAD * p->stride : 0);
        char *to = c->to + i * p->picks * p->size;
        if (p->size == 4)
            for (size_t j = 0; j < p->picks; j++) {
                __builtin_prefetch(next + 4 * (size_t)p->places[j]);
                memcpy(to + 4 * j, from + 4 * (size_t)p->places[j], 4);
            }
        else
            for (size_t j = 0; j < p->picks; j++) {
                __builtin_prefetch(next + 2 * (size_t)p->places[j]);
                memcpy(to + 2 * j, from + 2 * (size_t)p->places[j], 2);
            }
    }
}

mgl_status mgl_safetensors_pick(const mgl_safetensors *files, int tensor, const mgl_picks *picks,
                                void *to, mgl_error *err)
{
    const mgl_stored_tensor *t = &files->tensors.items[tensor];
    size_t last = 0, end = 0;
    for (size_t i = 0; i < picks->picks; i++)
        last = (size_t)picks->places[i] > last ? (size_t)picks->places[i] : last;
    if (!picks->count || !picks->picks)
        return MGL_OK;
    mgl_status status = check_pieces(files, t, picks->offset, (last + 1) * picks->size,
                                     picks->stride, picks->count, &end, err);
    if (status)
        return status;
    pick_copy c = {bytes_of(files, t) + picks->offset, to, picks};
    return copy_guarded(files, t, copy_picks, &c, picks->offset, end, err);
}
