/* Reads the files of a model from its folder, a compiled model or a GGUF file. See model_files.h.
 */
#include "importer/model_files.h"

#include "base/file.h"
#include "base/memory.h"

mgl_status mgl_model_files_open(const char *path, mgl_model_files *out, mgl_error *err)
{
    bool compiled, is_gguf = false;
    *out = (mgl_model_files){.path = path};
    mgl_status status = mgl_mega_stands(path, &compiled, err);
    if (!status && !compiled)
        status = mgl_gguf_stands(path, &is_gguf, err);
    if (!status && compiled)
        status = mgl_mega_open(path, &out->mega, err);
    if (!status && is_gguf)
        status = mgl_gguf_open(path, &out->gguf, err);
    return status;
}

void mgl_model_files_close(mgl_model_files *files)
{
    mgl_mega_close(files->mega);
    files->mega = NULL;
    mgl_gguf_close(files->gguf);
    files->gguf = NULL;
}

mgl_status mgl_model_files_have(const mgl_model_files *files, const char *name, bool *has,
                                mgl_error *err)
{
    mgl_text path;
    *has = files->mega ? mgl_mega_find(files->mega, name) != NULL
                       : files->gguf && mgl_gguf_has_file(files->gguf, name);
    if (mgl_model_files_are_one(files))
        return MGL_OK;
    mgl_status status = mgl_path_join(files->path, name, &path, err);
    if (!status)
        status = mgl_file_stands(path.bytes, has, err);
    mgl_text_clear(&path);
    return status;
}

/* Writes a file of a GGUF file. Messages about it name the GGUF file. */
static mgl_status write_gguf_file(const mgl_model_files *files, const char *name, mgl_text *path,
                                  char **text, size_t *length, mgl_error *err)
{
    mgl_text written;
    mgl_text_put(path, files->path);
    mgl_status status = path->failed ? mgl_fail_memory(err, strlen(files->path))
                                     : mgl_gguf_write_file(files->gguf, name, &written, err);
    if (!status && !written.bytes)
        status = mgl_fail(err, MGL_BAD_INPUT, files->path, "the metadata gives no %s", name);
    *text = status ? NULL : written.bytes;
    *length = status ? 0 : written.length;
    if (status && !path->failed)
        mgl_text_clear(&written);
    return status;
}

mgl_status mgl_model_files_read(const mgl_model_files *files, const char *name, size_t cap,
                                bool required, mgl_text *path, char **text, size_t *length,
                                mgl_error *err)
{
    const mgl_mega *mega = files->mega;
    bool wanted = required;
    *text = NULL;
    *path = (mgl_text){0};
    mgl_status status = required ? MGL_OK : mgl_model_files_have(files, name, &wanted, err);
    if (!status && files->gguf && wanted)
        return write_gguf_file(files, name, path, text, length, err);
    if (!status)
        status = mgl_path_join(files->path, name, path, err);
    if (status || !wanted)
        return status;
    return mega ? mgl_mega_read(mega, name, text, length, err)
                : mgl_file_read_regular(path->bytes, cap, text, length, err);
}

mgl_status mgl_model_files_parse(const mgl_model_files *files, const char *name, size_t cap,
                                 bool required, mgl_json_parser *parser, mgl_json *out,
                                 mgl_error *err)
{
    mgl_text path;
    char *text;
    size_t length;
    *out = (mgl_json){0};
    mgl_status status =
        mgl_model_files_read(files, name, cap, required, &path, &text, &length, err);
    if (!status && text)
        status = parser(text, length, cap, path.bytes, out, err);
    mgl_free(text);
    mgl_text_clear(&path);
    return status;
}
