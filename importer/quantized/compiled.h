/*
 * Formats of quantized tensors in a compiled model. The header of its tensor list has them as
 * metadata: {"__metadata__": {"lm_head.weight": "int4 group 128 f16"}}. The dtype of such a tensor
 * in the list is F32. Written by vm/image.c, read by checkpoint.c.
 */
#ifndef MGL_IMPORTER_QUANTIZED_COMPILED_H
#define MGL_IMPORTER_QUANTIZED_COMPILED_H

#include "base/json.h"
#include "base/text.h"
#include "importer/graph.h"

/* Appends the member `"__metadata__":{...},` if a tensor of the graph is quantized. */
void mgl_compiled_put_formats(const mgl_graph *graph, mgl_text *text);

/* Sets the formats of the graph's tensors. */
mgl_status mgl_compiled_take_formats(const mgl_json *header, mgl_graph *graph, mgl_error *err);

/* Parses a format as mgl_weight_format_print prints it. */
bool mgl_compiled_parse_format(const char *text, mgl_weight_format *out);

#endif
