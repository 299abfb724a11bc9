/*
 * Rewrites the kernel's sources for the host's C++ compiler. Each inline assembly statement becomes
 * calls of functions named after its instructions (device/ptx.h), so
 *
 *     asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
 *
 * becomes
 *
 *     ({ ptx_ld_acquire_gpu_global_u32(value, at); });
 *
 * Operands keep the order of the instruction, with immediates among them and without brackets and
 * braces. Registers that the statement declares become variables, `@p` becomes an `if`, and
 * `%%name` becomes ptx_name(). Line numbers are unchanged. The declaration of dynamic shared memory
 * is removed: device/cuda.h contains it.
 */
#ifndef MGL_TESTS_EMULATOR_REWRITE_H
#define MGL_TESTS_EMULATOR_REWRITE_H

#include <stddef.h>

/* Returns the rewritten text; release it with free. NULL: `problem` is the error with its place
 * ("name:line: ..."): an instruction without a function in `known` (the text of device/ptx.h), or
 * an unsupported statement. */
char *emu_rewrite(const char *name, const char *text, const char *known, char *problem,
                  size_t length);

#endif
