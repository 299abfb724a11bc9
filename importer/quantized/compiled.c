/* Writes and reads the formats of quantized tensors of a compiled model. See compiled.h. */
#include "importer/quantized/compiled.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

void mgl_compiled_put_formats(const mgl_graph *graph, mgl_text *text)
{
    char format[MGL_WEIGHT_FORMAT_TEXT];
    bool any = false;
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        if (!mgl_tensor_is_quantized(t))
            continue;
        mgl_text_format(text, "%s\"%s\":\"%s\"", any ? "," : "\"__metadata__\":{", t->name,
                        mgl_weight_format_print(t->quantized, format));
        any = true;
    }
    if (any)
        mgl_text_put(text, "},");
}

/* Parses the fields of a text. The caller compares the printed result with the text, so that
 * spaces, signs and further words are rejected. */
static bool parse_fields(const char *text, mgl_weight_format *out)
{
    char code[8] = "", shared[8] = "", dtype[8] = "", zeros[8] = "";
    int a = 0, b = 0;
    *out = (mgl_weight_format){.group_rows = 1};
    if (sscanf(text, "%7s block %d %d %7s", code, &a, &b, dtype) == 4) {
        out->group_rows = a;
        out->group = b;
    } else if (sscanf(text, "%7s group %d %7s %7s", code, &a, dtype, zeros) >= 3) {
        out->group = a;
    } else if (sscanf(text, "%7s %7s %7s %7s", code, shared, dtype, zeros) >= 3) {
        out->group_rows = strcmp(shared, "tensor") != 0;
    }
    out->zeros = mgl_text_ends(text, " zeros");
    return mgl_weight_code_parse(code, &out->code) && mgl_dtype_parse(dtype, &out->scales) &&
           mgl_weight_format_is_scaled(*out) && mgl_weight_format_valid(*out);
}

bool mgl_compiled_parse_format(const char *text, mgl_weight_format *out)
{
    char printed[MGL_WEIGHT_FORMAT_TEXT];
    return parse_fields(text, out) && !strcmp(mgl_weight_format_print(*out, printed), text);
}

mgl_status mgl_compiled_take_formats(const mgl_json *header, mgl_graph *graph,
                                     mgl_quantized *quantized, mgl_error *err)
{
    const cJSON *item, *formats = mgl_json_member(header->root, "__metadata__");
    cJSON_ArrayForEach(item, formats)
    {
        const int index = mgl_graph_find_tensor(graph, item->string);
        mgl_weight_format format;
        if (index < 0 || !cJSON_IsString(item) || graph->tensors[index].rank != 2 ||
            !mgl_compiled_parse_format(item->valuestring, &format))
            return mgl_fail(err, MGL_BAD_INPUT, header->file,
                            "the format of the tensor %.100s is not valid; compile the model again",
                            item->string);
        mgl_tensor *t = &graph->tensors[index];
        const double bits = mgl_weight_format_bits(format, t->rows, t->cols);
        t->quantized = format;
        t->dtype = MGL_F32;
        quantized[index].bytes = (uint64_t)(bits * (double)t->rows * (double)t->cols / 8 + 0.5);
    }
    return MGL_OK;
}
