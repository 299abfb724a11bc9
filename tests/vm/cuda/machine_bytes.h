/*
 * The weights of a CPU machine as bytes. A separate file, because the headers of the machine and of
 * a checkpoint share a name.
 */
#ifndef MGL_TESTS_VM_CUDA_MACHINE_BYTES_H
#define MGL_TESTS_VM_CUDA_MACHINE_BYTES_H

#include "tests/vm/fixture.h"

/* Exchanges `to` into a machine of `from`, and back: every byte equals the packer's each time. If
 * `resident`, the graph has no weights meanwhile, so all must be copied. */
void check_exchanged_bytes(mgl_graph *graph, const mgl_program *from, const mgl_program *to,
                           bool plain, bool resident);

#endif
