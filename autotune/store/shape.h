/*
 * The shape of a model, as stored with a campaign: sizes, rope, biases, norms and weight formats.
 * The text has the form of a config.json and no paths. A graph with synthetic weights is made from
 * it. Called by tune.c, tune_prior.c, gate.c, real.c and the archive code.
 */
#ifndef MGL_AUTOTUNE_STORE_SHAPE_H
#define MGL_AUTOTUNE_STORE_SHAPE_H

#include "base/text.h"
#include "eval/synthetic.h"

void mgl_shape_print(const mgl_config *config, mgl_text *out);
/* Parses a shape as strictly as a checkpoint's config.json, because a store is untrusted input. */
mgl_status mgl_shape_parse(const char *text, mgl_config *out, mgl_error *err);
/* Prints the weight formats of a shape's text, as mgl_synthetic_print_formats; "" if the shape is
 * NULL or not valid. Returns `to`. */
const char *mgl_shape_weights(const char *text, char to[MGL_SYNTHETIC_TEXT]);
/* Size of a generated name: "model-" and the first digits of the shape's hash. */
enum { MGL_SHAPE_NAME = 24 };
mgl_status mgl_shape_name(const mgl_config *config, char out[MGL_SHAPE_NAME], mgl_error *err);

#endif
