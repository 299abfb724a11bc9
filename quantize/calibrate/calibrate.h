/*
 * Calibrated quantization: the matrices are quantized layer by layer with the inputs that they get
 * in a forward pass over samples, in which all earlier matrices are quantized already. Called by
 * quantize.c.
 *
 * Each finished half of a layer is written to the results, and an interrupted run continues after
 * it. The results do not depend on the number of threads, nor on interruptions.
 */
#ifndef MGL_QUANTIZE_CALIBRATE_CALIBRATE_H
#define MGL_QUANTIZE_CALIBRATE_CALIBRATE_H

#include "quantize/calibrate/results.h"

/* Whether the request needs calibration. */
bool mgl_calibrate_applies(const mgl_quantize_request *request);

/* Returns the weight bytes that a calibration reports as progress. */
uint64_t mgl_calibrate_bytes(const mgl_quantize_plan *plan, const mgl_quantize_request *request);

/* The measured numbers of all matrices: their count, and the name of their file in the results. */
#define MGL_CALIBRATE_NUMBERS "sensitivity"
size_t mgl_calibrate_numbers(const mgl_quantize_plan *plan);

/* Measures the sensitivities: `errors` as in mgl_calibration. Continues after the parts that an
 * earlier run has measured. Called by sensitivity.c. */
mgl_status mgl_calibrate_measure(const mgl_quantize_plan *plan, const mgl_quantize_request *request,
                                 mgl_results *results, double *errors, mgl_error *err);

/* Measures how much each matrix of the layers gains from 8 bits, and gives the most sensitive ones
 * 8 bits, as many as request->bits_per_weight allows. Changes the formats of the plan, so the plan
 * must not have tensors yet (mgl_quantize_plan_list). */
mgl_status mgl_calibrate_choose(mgl_quantize_plan *plan, const mgl_quantize_request *request,
                                mgl_results *results, mgl_error *err);

/* Quantizes all matrices of the plan into the results. */
mgl_status mgl_calibrate(const mgl_quantize_plan *plan, const mgl_quantize_request *request,
                         mgl_results *results, mgl_error *err);

#endif
