/*
 * The JSON files of a quantized checkpoint: config.json with its quantization, and the index of
 * the safetensors files. Called by quantize.c.
 */
#ifndef MGL_QUANTIZE_DECLARE_H
#define MGL_QUANTIZE_DECLARE_H

#include "quantize/plan.h"

/* Writes the text of config.json: the content of `text` with the key quantization_config. Release
 * with mgl_text_clear, also after a failure. */
mgl_status mgl_quantize_put_config(const mgl_quantize_plan *plan,
                                   const mgl_quantize_request *request, const char *text,
                                   size_t length, const char *path, mgl_text *out, mgl_error *err);

/* Writes the text of model.safetensors.index.json. */
mgl_status mgl_quantize_put_index(const mgl_quantize_plan *plan, mgl_text *out, mgl_error *err);

#endif
