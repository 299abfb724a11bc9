/*
 * Shapes of the models in the emulator's tests. Each odd property of a shape exercises a path of
 * the kernel.
 */
#ifndef MGL_TESTS_EMULATOR_MODELS_H
#define MGL_TESTS_EMULATOR_MODELS_H

#include "tests/vm/cuda/cuda_checks.h"

static const mgl_geometry even_model = {512, 1, 8, 2, 64, 1024, 300, 1e-5f};
static const mgl_geometry uneven_model = {448, 1, 14, 2, 32, 4608, 200, 1e-5f};
static const mgl_geometry grouped_heads = {128, 1, 6, 2, 64, 128, 75, 1e-5f};
static const mgl_geometry multi_query = {96, 2, 6, 1, 32, 200, 333, 1e-5f};
static const mgl_geometry narrow_heads = {80, 2, 4, 2, 20, 104, 130, 1e-5f};
static const mgl_geometry even_heads = {1024, 1, 8, 2, 128, 2048, 300, 1e-5f};
static const mgl_geometry idle_warps = {576, 1, 9, 3, 64, 1536, 120, 1e-5f};
static const mgl_geometry large_group = {128, 1, 8, 1, 64, 128, 75, 1e-5f};
static const mgl_geometry paged_heads = {256, 2, 4, 2, 96, 256, 120, 1e-5f};
static const mgl_geometry wide_groups = {256, 1, 8, 2, 128, 256, 120, 1e-5f};
static const mgl_geometry long_heads = {128, 1, 4, 1, 128, 128, 75, 1e-5f};

#endif
