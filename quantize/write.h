/*
 * Writes the tensors of a quantized checkpoint into its safetensors files. Called by quantize.c.
 */
#ifndef MGL_QUANTIZE_WRITE_H
#define MGL_QUANTIZE_WRITE_H

#include "base/output.h"
#include "quantize/plan.h"

/* Writes the headers and all tensors. `outputs` are the safetensors files of the plan. */
mgl_status mgl_quantize_write(mgl_quantize_plan *plan, mgl_output *const *outputs,
                              const mgl_quantize_request *request, mgl_error *err);

#endif
