/*
 * A GPU emulator for tests: a driver and a compiler in place of CUDA's (vm/cuda/driver.h), which
 * run the kernel's own sources on the CPU (engine.h lists what is modeled). Programs, weights,
 * records and launches are the project's own, so a test of the CUDA machine runs as on a GPU.
 */
#ifndef MGL_TESTS_EMULATOR_EMULATOR_H
#define MGL_TESTS_EMULATOR_EMULATOR_H

#include "engine.h"

/* Installs the driver and the compiler. Returns false, with a sentence on stdout, if there is no
 * C++ compiler. */
bool emu_install(const char *test);

/* The tables of the driver and of the compiler. */
struct mgl_cu;
struct mgl_nvrtc;
void emu_fill_driver(struct mgl_cu *table);
void emu_fill_compiler(struct mgl_nvrtc *table);

/* More functions for the benchmark (plain.c): ordinary launches and graphs in the driver's table,
 * and a cuBLAS for mgl_cublas_override. */
struct mgl_cublas;
void emu_fill_plain(struct mgl_cu *table);
void emu_fill_cublas(struct mgl_cublas *table);

#endif
