/*
 * Writes the tensors of a quantized checkpoint into its safetensors files. Called by quantize.c.
 */
#ifndef MGL_QUANTIZE_WRITE_H
#define MGL_QUANTIZE_WRITE_H

#include "base/output.h"
#include "quantize/calibrate/results.h"
#include "quantize/round.h"

/* Writes the headers and all tensors. `outputs` are the safetensors files of the plan. `results`:
 * the codes of a calibration; NULL: the matrices are rounded here. */
mgl_status mgl_quantize_write(mgl_quantize_plan *plan, mgl_output *const *outputs,
                              const mgl_quantize_request *request, const mgl_results *results,
                              mgl_error *err);

/* Returns the bytes that the whole work reports as progress. */
uint64_t mgl_quantize_bytes(const mgl_quantize_plan *plan, const mgl_quantize_request *request);

/* Fails for a row and column of a stored matrix that have no codes. */
mgl_status mgl_quantize_fail_row(const mgl_quantize_plan *plan, int source, mgl_rounded rounded,
                                 int64_t row, int64_t column, mgl_error *err);

#endif
