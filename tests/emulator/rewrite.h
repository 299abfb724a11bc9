/*
 * The kernel's sources, made into what a C++ compiler for the host takes: each inline assembly
 * statement becomes calls of functions that are named after its instructions (device/ptx.h), so
 *
 *     asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
 *
 * becomes
 *
 *     ({ ptx_ld_acquire_gpu_global_u32(value, at); });
 *
 * Operands come in the order of the instruction, immediates among them, brackets and braces left
 * out; registers that the statement declares become variables, `@p` an `if`, `%%name` ptx_name().
 * Lines keep their numbers. The declaration of dynamic shared memory is left out: device/cuda.h has
 * it.
 */
#ifndef MGL_TESTS_EMULATOR_REWRITE_H
#define MGL_TESTS_EMULATOR_REWRITE_H

#include <stddef.h>

/* The rewritten text, released by free; NULL with what is wrong and where ("name:line: ...") in
 * `problem`: an instruction that `known`, the text of device/ptx.h, has no function for, or a
 * statement that is not understood. */
char *emu_rewrite(const char *name, const char *text, const char *known, char *problem,
                  size_t length);

#endif
