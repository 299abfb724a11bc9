/* Reads the properties of functions in a cubin (ELF with NVIDIA's section .nv.info). */
#ifndef MGL_TESTS_VM_FRAMES_H
#define MGL_TESTS_VM_FRAMES_H

#include <stddef.h>

/* Bytes of the stack frame, and registers of a thread, of the function of that mangled name; -1: it
 * has no such function. */
int frame_of(const void *cubin, size_t length, const char *function);
int registers_of(const void *cubin, size_t length, const char *function);

#endif
