/*
 * Declares shapes and options of programs whose logits test_emulator compares with those of the CPU
 * machine, in its group `shapes`: each kernel variant of one list, and each odd property of a
 * shape.
 */
#ifndef MGL_TESTS_EMULATOR_SHAPES_H
#define MGL_TESTS_EMULATOR_SHAPES_H

#include "cases.h"
#include "tests/vm/cuda/cuda_support.h"

typedef struct emulator_shape {
    emulator_duration duration;
    const mgl_geometry *geometry;
    device_options options;
} emulator_shape;

enum { EMULATOR_SHAPES = 54 };

extern const emulator_shape emulator_shapes[EMULATOR_SHAPES];

#endif
