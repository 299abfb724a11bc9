/*
 * The shape of a model as a campaign keeps it: sizes, rope, and which biases and norms it has, in
 * the form of a config.json, from which a graph with synthetic weights is made. No path, no name of
 * a folder.
 */
#ifndef MGL_AUTOTUNE_STORE_SHAPE_H
#define MGL_AUTOTUNE_STORE_SHAPE_H

#include "base/text.h"
#include "importer/config.h"

void mgl_shape_print(const mgl_config *config, mgl_text *out);
/* As strict as a checkpoint's config.json: a store may come from a stranger. */
mgl_status mgl_shape_parse(const char *text, mgl_config *out, mgl_error *err);
/* What a shape without a name is called: "model-" and the first digits of its hash. */
enum { MGL_SHAPE_NAME = 24 };
mgl_status mgl_shape_name(const mgl_config *config, char out[MGL_SHAPE_NAME], mgl_error *err);

#endif
