/* Writes and reads the formats of quantized tensors of a compiled model. See compiled.h. */
#include "importer/quantized/compiled.h"

#include "base/text.h"

#include <string.h>

/* Suffix of the format of a tensor with reordered columns. */
#define REORDERED " reordered"

void mgl_compiled_put_formats(const mgl_graph *graph, mgl_text *text)
{
    char format[MGL_WEIGHT_FORMAT_TEXT];
    bool any = false;
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        if (!mgl_tensor_is_quantized(t))
            continue;
        mgl_text_format(text, "%s\"%s\":\"%s%s\"", any ? "," : "\"__metadata__\":{", t->name,
                        mgl_weight_format_print(t->quantized, format),
                        t->reordered ? REORDERED : "");
        any = true;
    }
    if (any)
        mgl_text_put(text, "},");
}

bool mgl_compiled_parse_format(const char *text, mgl_weight_format *out)
{
    char printed[MGL_WEIGHT_FORMAT_TEXT];
    const char *at = text;
    return mgl_weight_format_read(&at, text + strlen(text), out) == MGL_FORMAT_READ &&
           mgl_weight_format_is_scaled(*out) &&
           !strcmp(mgl_weight_format_print(*out, printed), text);
}

/* Parses the format of a tensor, with or without the suffix for reordered columns. */
static bool parse_tensor(const char *text, mgl_weight_format *out, bool *reordered)
{
    char format[MGL_WEIGHT_FORMAT_TEXT];
    *reordered = mgl_text_ends(text, REORDERED);
    const size_t length = strlen(text) - (*reordered ? strlen(REORDERED) : 0);
    if (length >= sizeof format)
        return false;
    memcpy(format, text, length);
    format[length] = 0;
    return mgl_compiled_parse_format(format, out) && (!*reordered || out->group != MGL_GROUP_ALL);
}

mgl_status mgl_compiled_take_formats(const mgl_json *header, mgl_graph *graph, mgl_error *err)
{
    const cJSON *item, *formats = mgl_json_member(header->root, "__metadata__");
    cJSON_ArrayForEach(item, formats)
    {
        const int index = mgl_graph_find_tensor(graph, item->string);
        mgl_weight_format format;
        bool reordered;
        if (index < 0 || !cJSON_IsString(item) || graph->tensors[index].rank != 2 ||
            !parse_tensor(item->valuestring, &format, &reordered))
            return mgl_fail(err, MGL_BAD_INPUT, header->file,
                            "the format of the tensor %.100s is not valid; compile the model again",
                            item->string);
        mgl_tensor *t = &graph->tensors[index];
        t->quantized = format;
        t->reordered = reordered;
        t->dtype = MGL_F32;
    }
    return MGL_OK;
}
