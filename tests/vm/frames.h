/* Reads the properties of functions in a cubin (ELF with NVIDIA's section .nv.info). */
#ifndef MGL_TESTS_VM_FRAMES_H
#define MGL_TESTS_VM_FRAMES_H

#include <stddef.h>

/* The bytes of the stack frame and the registers of a thread of the function with that mangled
 * name; -1: no such function. */
int frame_of(const void *cubin, size_t length, const char *function);
int registers_of(const void *cubin, size_t length, const char *function);

#endif
