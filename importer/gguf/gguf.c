/* Lists the files and tensors of a GGUF file. See gguf.h. */
#include "importer/gguf/gguf.h"

#include "base/memory.h"
#include "importer/mega.h"

#include <stdlib.h>

/* ---- files ----------------------------------------------------------------------------------- */

typedef mgl_status write_fn(const mgl_gguf *gguf, mgl_text *out, mgl_error *err);

static const struct file {
    const char *name;
    const char *key; /* without this key, the file does not exist; NULL: it always exists */
    write_fn *write;
} files[] = {
    {MGL_MEGA_CONFIG, NULL, mgl_gguf_write_config},
    {MGL_MEGA_TOKENIZER, "tokenizer.ggml.model", mgl_gguf_write_tokenizer},
    {MGL_MEGA_TOKENIZER_CONFIG, "tokenizer.ggml.model", mgl_gguf_write_tokenizer_config},
};
enum { FILE_COUNT = sizeof files / sizeof *files };

static const struct file *find_file(const mgl_gguf *gguf, const char *name)
{
    for (int i = 0; i < FILE_COUNT; i++)
        if (!strcmp(files[i].name, name) && (!files[i].key || mgl_gguf_find(gguf, files[i].key)))
            return &files[i];
    return NULL;
}

bool mgl_gguf_has_file(const mgl_gguf *gguf, const char *name)
{
    return find_file(gguf, name) != NULL;
}

mgl_status mgl_gguf_write_file(const mgl_gguf *gguf, const char *name, mgl_text *out,
                               mgl_error *err)
{
    const struct file *file = find_file(gguf, name);
    *out = (mgl_text){0};
    mgl_status status = file ? file->write(gguf, out, err) : MGL_OK;
    return !status && out->failed ? mgl_fail_memory(err, out->length) : status;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool is_listed(const mgl_gguf_tensor *tensor)
{
    return !mgl_gguf_is(tensor->name, "rope_freqs.weight");
}

static mgl_status add_tensor(const mgl_gguf_tensor *tensor, mgl_stored_tensor *to, mgl_error *err)
{
    *to = (mgl_stored_tensor){.name = mgl_strndup(tensor->name.bytes, tensor->name.length),
                              .stored_dtype = tensor->type,
                              .rank = tensor->rank,
                              .offset = tensor->offset,
                              .bytes = tensor->bytes};
    to->usable = mgl_dtype_parse_safetensors(tensor->type, &to->dtype) && to->dtype < MGL_I32;
    memcpy(to->shape, tensor->shape, sizeof tensor->shape);
    return to->name ? MGL_OK : mgl_fail_memory(err, tensor->name.length);
}

static int by_name(const void *a, const void *b)
{
    const mgl_stored_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static mgl_status list_tensors(const mgl_gguf *gguf, mgl_safetensors *out, mgl_error *err)
{
    mgl_stored_list *list = &out->tensors;
    mgl_status status = MGL_OK;
    list->items = mgl_alloc_zero(gguf->tensor_count + 1, sizeof *list->items);
    out->files = mgl_alloc_zero(1, sizeof *out->files);
    if (!list->items || !out->files)
        return mgl_fail_memory(err, gguf->tensor_count * sizeof *list->items);
    list->capacity = gguf->tensor_count + 1;
    for (size_t i = 0; i < gguf->tensor_count && !status; i++)
        if (is_listed(&gguf->tensors[i]))
            status = add_tensor(&gguf->tensors[i], &list->items[list->count++], err);
    if (status)
        return status;
    qsort(list->items, list->count, sizeof *list->items, by_name);
    out->files->data = gguf->data;
    status = mgl_map_open(gguf->file, &out->files->map, err);
    out->file_count = !status;
    return status;
}

mgl_status mgl_gguf_open_tensors(const mgl_gguf *gguf, mgl_safetensors **out, mgl_error *err)
{
    *out = mgl_alloc_zero(1, sizeof **out);
    if (!*out)
        return mgl_fail_memory(err, sizeof **out);
    mgl_status status = list_tensors(gguf, *out, err);
    if (!status) /* the file was replaced since its header was read */
        status = mgl_map_check((*out)->files->map, gguf->data, err);
    if (status) {
        mgl_safetensors_close(*out);
        *out = NULL;
    }
    return status;
}
