/* Reads the files of a tokenizer. See files.h. */
#include "importer/tokenizer/files.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/checkpoint.h"
#include "importer/layout.h"
#include "importer/model_files.h"

#include <string.h>
#include <sys/stat.h>

enum { MAX_OTHER = 64 << 20 }; /* bytes of the largest other file */

void mgl_tokenizer_files_clear(mgl_tokenizer_files *files)
{
    mgl_json_clear(&files->tokenizer);
    mgl_json_clear(&files->config);
    mgl_json_clear(&files->special);
    mgl_json_clear(&files->added);
    mgl_json_clear(&files->model);
}

static mgl_status read_other(const mgl_model_files *from, const char *name, mgl_json_parser *parser,
                             mgl_json *out, mgl_error *err)
{
    mgl_status status = mgl_model_files_parse(from, name, MAX_OTHER, false, parser, out, err);
    if (!status && out->root && !cJSON_IsObject(out->root))
        status = mgl_fail(err, MGL_BAD_INPUT, out->file, "is not a JSON object");
    return status;
}

/* Reads the optional files. A chat template may contain U+0000, and config.json NaN. */
static mgl_status read_others(const mgl_model_files *from, mgl_tokenizer_files *out, mgl_error *err)
{
    mgl_json_parser *values = mgl_json_parse_values;
    mgl_status status = read_other(from, MGL_MEGA_TOKENIZER_CONFIG, values, &out->config, err);
    if (!status)
        status = read_other(from, MGL_MEGA_TOKENS, values, &out->special, err);
    if (!status)
        status = read_other(from, MGL_MEGA_ADDED_TOKENS, values, &out->added, err);
    if (!status)
        status = read_other(from, MGL_MEGA_CONFIG, mgl_json_parse_python, &out->model, err);
    return status;
}

/* Reads the files of a compiled model or a GGUF file. */
static mgl_status read_one(const mgl_model_files *from, mgl_tokenizer_files *out, mgl_error *err)
{
    mgl_text path = {0};
    char *text = NULL;
    size_t length;
    bool has;
    mgl_status status = mgl_model_files_have(from, MGL_MEGA_TOKENIZER, &has, err);
    if (!status && !has)
        return mgl_fail(err, MGL_BAD_INPUT, from->path,
                        from->mega ? "was compiled from a folder without tokenizer.json"
                                   : "has no tokenizer (tokenizer.ggml.model); give ids instead of "
                                     "texts");
    if (!status)
        status = mgl_model_files_read(from, MGL_MEGA_TOKENIZER, MGL_TOKENIZER_CAP, true, &path,
                                      &text, &length, err);
    if (!status)
        status = mgl_json_parse(text, length, MGL_TOKENIZER_CAP, from->path, &out->tokenizer, err);
    mgl_free(text);
    mgl_text_clear(&path);
    return status ? status : read_others(from, out, err);
}

static mgl_status read_folder(const char *path, mgl_tokenizer_files *out, mgl_error *err)
{
    const mgl_model_files from = {.path = path};
    mgl_status status = mgl_layout_check_tokenizer(path, err);
    if (!status)
        status = mgl_model_files_parse(&from, MGL_MEGA_TOKENIZER, MGL_TOKENIZER_CAP, true,
                                       mgl_json_parse, &out->tokenizer, err);
    return status ? status : read_others(&from, out, err);
}

static mgl_status read_alone(const char *path, mgl_tokenizer_files *out, mgl_error *err)
{
    mgl_status status = mgl_text_ends(path, ".json") ? MGL_OK : mgl_layout_check_file(path, err);
    return status ? status : mgl_json_read_regular(path, MGL_TOKENIZER_CAP, &out->tokenizer, err);
}

mgl_status mgl_tokenizer_files_read(const char *path, mgl_tokenizer_files *out, mgl_error *err)
{
    struct stat facts;
    char *folder;
    bool exists;
    mgl_model_files from;
    mgl_status status = mgl_model_files_open(path, &from, err);
    if (mgl_model_files_are_one(&from)) {
        if (!status)
            status = read_one(&from, out, err);
        mgl_model_files_close(&from);
        return status;
    }
    if (!status)
        status = mgl_file_look(path, &exists, &facts, err);
    out->alone = !status && exists && !S_ISDIR(facts.st_mode);
    if (out->alone)
        return read_alone(path, out, err);
    if (!status)
        status = mgl_model_resolve_path(path, &folder, err);
    if (status)
        return status;
    status = mgl_model_files_open(folder, &from, err); /* a folder may hold one GGUF file */
    if (!status)
        status = from.gguf ? read_one(&from, out, err) : read_folder(folder, out, err);
    mgl_model_files_close(&from);
    mgl_free(folder);
    return status;
}
