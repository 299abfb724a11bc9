/* A JSON array of strings, as --texts takes it. Texts may hold the character U+0000. */
#include "cli/cli.h"

#include "base/memory.h"

void mgl_cli_texts_clear(mgl_cli_texts *texts)
{
    mgl_free(texts->texts);
    mgl_free(texts->lengths);
    mgl_json_clear(&texts->json);
    *texts = (mgl_cli_texts){0};
}

static mgl_status check_form(const mgl_json *json, size_t *count, mgl_error *err)
{
    const cJSON *item;
    *count = 0;
    if (!cJSON_IsArray(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "is not a JSON array of strings");
    for (item = json->root->child; item; item = item->next, ++*count)
        if (!cJSON_IsString(item))
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "element %zu is not a string: a JSON array of strings is wanted",
                            *count);
    return MGL_OK;
}

static mgl_status take_texts(size_t count, mgl_cli_texts *out, mgl_error *err)
{
    out->texts = mgl_alloc_zero(count ? count : 1, sizeof *out->texts);
    out->lengths = mgl_alloc_zero(count ? count : 1, sizeof *out->lengths);
    if (!out->texts || !out->lengths)
        return mgl_fail_memory(err, count * sizeof *out->texts);
    for (cJSON *item = out->json.root->child; item; item = item->next, out->count++)
        out->texts[out->count] = mgl_json_take_text(item, &out->lengths[out->count]);
    return MGL_OK;
}

mgl_status mgl_cli_texts_read(const char *path, mgl_cli_texts *out, mgl_error *err)
{
    size_t count = 0;
    *out = (mgl_cli_texts){0};
    mgl_status status = mgl_json_read_texts(path, MGL_CLI_MAX_TEXT, &out->json, err);
    if (!status)
        status = check_form(&out->json, &count, err);
    if (!status)
        status = take_texts(count, out, err);
    if (status)
        mgl_cli_texts_clear(out);
    return status;
}
