/* Reads the files of a tokenizer. See files.h. */
#include "importer/tokenizer/files.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/checkpoint.h"
#include "importer/layout.h"
#include "importer/mega.h"

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

/* The source of the files: a folder, or a compiled model. */
typedef struct source {
    const char *path;
    mgl_mega *mega; /* NULL: a folder */
} source;

/* Reads the bytes of a file; *text is NULL if the file does not exist. */
static mgl_status read_bytes(const source *from, const char *path, const char *name, char **text,
                             size_t *length, mgl_error *err)
{
    bool exists = from->mega && mgl_mega_find(from->mega, name);
    mgl_status status = from->mega ? MGL_OK : mgl_file_stands(path, &exists, err);
    *text = NULL;
    if (status || !exists)
        return status;
    return from->mega ? mgl_mega_read(from->mega, name, text, length, err)
                      : mgl_file_read_regular(path, MAX_OTHER, text, length, err);
}

typedef mgl_status parse_fn(const char *text, size_t length, size_t cap, const char *file,
                            mgl_json *out, mgl_error *err);

static mgl_status read_other(const source *from, const char *name, parse_fn *parse, mgl_json *out,
                             mgl_error *err)
{
    mgl_text path = {0};
    char *text = NULL;
    size_t length = 0;
    mgl_text_format(&path, "%s/%s", from->path, name);
    mgl_status status = path.failed ? mgl_fail_memory(err, strlen(name))
                                    : read_bytes(from, path.bytes, name, &text, &length, err);
    if (!status && text)
        status = parse(text, length, MAX_OTHER, path.bytes, out, err);
    if (!status && text && !cJSON_IsObject(out->root))
        status = mgl_fail(err, MGL_BAD_INPUT, path.bytes, "is not a JSON object");
    mgl_free(text);
    mgl_text_clear(&path);
    return status;
}

/* Reads the optional files. A chat template may contain U+0000, and config.json NaN. */
static mgl_status read_others(const source *from, mgl_tokenizer_files *out, mgl_error *err)
{
    parse_fn *values = mgl_json_parse_values;
    mgl_status status = read_other(from, MGL_MEGA_TOKENIZER_CONFIG, values, &out->config, err);
    if (!status)
        status = read_other(from, MGL_MEGA_TOKENS, values, &out->special, err);
    if (!status)
        status = read_other(from, MGL_MEGA_ADDED_TOKENS, values, &out->added, err);
    if (!status)
        status = read_other(from, MGL_MEGA_CONFIG, mgl_json_parse_python, &out->model, err);
    return status;
}

static mgl_status read_compiled(const char *path, mgl_tokenizer_files *out, mgl_error *err)
{
    source from = {.path = path};
    char *text = NULL;
    size_t length;
    mgl_status status = mgl_mega_open(path, &from.mega, err);
    if (status)
        return status;
    if (!mgl_mega_find(from.mega, MGL_MEGA_TOKENIZER))
        status =
            mgl_fail(err, MGL_BAD_INPUT, path, "was compiled from a folder without tokenizer.json");
    if (!status)
        status = mgl_mega_read(from.mega, MGL_MEGA_TOKENIZER, &text, &length, err);
    if (!status)
        status = mgl_json_parse(text, length, MGL_TOKENIZER_CAP, path, &out->tokenizer, err);
    if (!status)
        status = read_others(&from, out, err);
    mgl_free(text);
    mgl_mega_close(from.mega);
    return status;
}

static mgl_status read_folder(const char *path, mgl_tokenizer_files *out, mgl_error *err)
{
    mgl_text file = {0};
    source from = {.path = path};
    mgl_text_format(&file, "%s/%s", path, MGL_MEGA_TOKENIZER);
    mgl_status status =
        file.failed ? mgl_fail_memory(err, strlen(path)) : mgl_layout_check_tokenizer(path, err);
    if (!status)
        status = mgl_json_read_regular(file.bytes, MGL_TOKENIZER_CAP, &out->tokenizer, err);
    mgl_text_clear(&file);
    return status ? status : read_others(&from, out, err);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

static mgl_status read_alone(const char *path, mgl_tokenizer_files *out, mgl_error *err)
{
    mgl_status status = ends_with(path, ".json") ? MGL_OK : mgl_layout_check_file(path, err);
    return status ? status : mgl_json_read_regular(path, MGL_TOKENIZER_CAP, &out->tokenizer, err);
}

mgl_status mgl_tokenizer_files_read(const char *path, mgl_tokenizer_files *out, mgl_error *err)
{
    struct stat facts;
    char *folder;
    bool compiled, exists;
    mgl_status status = mgl_mega_stands(path, &compiled, err);
    if (!status && compiled)
        return read_compiled(path, out, err);
    if (!status)
        status = mgl_file_look(path, &exists, &facts, err);
    out->alone = !status && exists && !S_ISDIR(facts.st_mode);
    if (out->alone)
        return read_alone(path, out, err);
    if (!status)
        status = mgl_model_resolve_path(path, &folder, err);
    if (status)
        return status;
    status = read_folder(folder, out, err);
    mgl_free(folder);
    return status;
}
