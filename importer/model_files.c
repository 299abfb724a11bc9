/* Reads the files of a model from its folder, or from a compiled model. See model_files.h. */
#include "importer/model_files.h"

#include "base/file.h"
#include "base/memory.h"

mgl_status mgl_model_files_open(const char *path, mgl_model_files *out, mgl_error *err)
{
    bool compiled;
    *out = (mgl_model_files){.path = path};
    mgl_status status = mgl_mega_stands(path, &compiled, err);
    return !status && compiled ? mgl_mega_open(path, &out->mega, err) : status;
}

void mgl_model_files_close(mgl_model_files *files)
{
    mgl_mega_close(files->mega);
    files->mega = NULL;
}

mgl_status mgl_model_files_read(const mgl_model_files *files, const char *name, size_t cap,
                                bool required, mgl_text *path, char **text, size_t *length,
                                mgl_error *err)
{
    const mgl_mega *mega = files->mega;
    bool wanted = required || (mega && mgl_mega_find(mega, name));
    *text = NULL;
    mgl_status status = mgl_path_join(files->path, name, path, err);
    if (!status && !wanted && !mega)
        status = mgl_file_stands(path->bytes, &wanted, err);
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
