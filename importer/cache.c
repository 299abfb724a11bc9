/* Resolves MODEL (checkpoint.h): a path, or a name in the local Hugging Face cache
 * (importer/hub.h). */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/checkpoint.h"
#include "importer/hub.h"
#include "importer/layout.h"
#include "importer/model_files.h"

#include <string.h>
#include <sys/stat.h>

/* If the path is a folder without safetensors and with one GGUF file, appends the name of that
 * file. */
static mgl_status enter_folder(mgl_text *path, mgl_error *err)
{
    mgl_file_list files = {0};
    bool is_folder, single = false, index = false;
    mgl_status status = mgl_folder_stands(path->bytes, &is_folder, err);
    if (status || !is_folder)
        return status;
    status = mgl_folder_holds(path->bytes, MGL_SAFETENSORS_SINGLE, &single, err);
    if (!status && !single)
        status = mgl_folder_holds(path->bytes, MGL_SAFETENSORS_INDEX, &index, err);
    if (!status && !single && !index)
        status = mgl_folder_list(path->bytes, ".gguf", &files, err);
    if (!status && files.count == 1) {
        mgl_text_format(path, "/%s", files.names[0]);
        status = path->failed ? mgl_fail_memory(err, path->length) : MGL_OK;
    }
    mgl_file_list_clear(&files);
    return status;
}

mgl_status mgl_model_resolve_path(const char *model, char **out, mgl_error *err)
{
    *out = NULL;
    struct stat facts;
    mgl_text path = {0};
    mgl_hub_name name;
    bool stands;
    mgl_status status = mgl_file_look(model, &stands, &facts, err);
    if (!status && stands)
        mgl_text_put(&path, model);
    else if (!status && mgl_hub_parse(model, &name))
        status = mgl_hub_find(&name, &path, err);
    else if (!status)
        return mgl_layout_fail_name(model, err);
    if (!status && path.failed)
        status = mgl_fail_memory(err, strlen(model) + 1);
    if (!status)
        status = enter_folder(&path, err);
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
    status = mgl_folder_stands(path, &is_model, err);
    if (!status && !is_model)
        status = mgl_mega_stands(path, &is_model, err);
    if (!status && !is_model)
        status = mgl_gguf_stands(path, &is_model, err);
    if (!status && !is_model)
        status = mgl_layout_fail_file(path, err);
    if (status)
        mgl_free(path);
    else
        *out = path;
    return status;
}

mgl_status mgl_model_has_tokenizer(const char *path, bool *has, mgl_error *err)
{
    mgl_model_files files;
    *has = false;
    mgl_status status = mgl_model_files_open(path, &files, err);
    if (!status)
        status = mgl_model_files_have(&files, MGL_MEGA_TOKENIZER, has, err);
    mgl_model_files_close(&files);
    return status;
}
