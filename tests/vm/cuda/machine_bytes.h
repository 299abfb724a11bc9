/* The weights of a CPU machine, byte by byte. (A file of its own: the machine's headers and those
 * of a checkpoint have a name in common.) */
#ifndef MGL_TESTS_VM_CUDA_MACHINE_BYTES_H
#define MGL_TESTS_VM_CUDA_MACHINE_BYTES_H

#include "tests/vm/fixture.h"

/* Puts `to` on a machine of `from` and back: every byte is the packer's each time. Where
 * `resident`, the graph has no weights meanwhile: all of them have to be copied. */
void check_exchanged_bytes(mgl_graph *graph, const mgl_program *from, const mgl_program *to,
                           bool plain, bool resident);

#endif
