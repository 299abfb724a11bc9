/* Copies the tapes and const buffers of a CPU machine. See machine_bytes.h. */
#include "tests/vm/cuda/machine_bytes.h"

#include <string.h>

#include "base/memory.h"
#include "tests/vm/tapes.h"
#include "vm/cpu/machine.h"

static void check_part(const void *made, const void *wanted, size_t bytes, int part)
{
    ck_assert_msg(memcmp(made, wanted, bytes) == 0, "part %d is not the packer's", part);
}

/* Copies every tape, and every const buffer that is not gathered from the tapes. */
static void check_bytes(const mgl_machine *m, const mgl_graph *graph)
{
    mgl_error err;
    const mgl_program *p = m->program;
    for (int q = 0; q < p->queue_count; q++) {
        size_t bytes = (size_t)p->queues[q].tape_bytes;
        char *wanted = mgl_alloc(bytes + 1);
        ok(pack_tape(p, graph, q, wanted, &err), err);
        check_part(m->tapes[q], wanted, bytes, q);
        mgl_free(wanted);
    }
    for (int i = 0; i < p->buffer_count; i++) {
        if (p->buffers[i].space != MGL_SPACE_CONST || !m->buffers[i])
            continue;
        size_t bytes = mgl_buffer_bytes(&p->buffers[i]);
        char *wanted = mgl_alloc(bytes + 1);
        ok(mgl_pack_const(p, graph, i, wanted, &err), err);
        check_part(m->buffers[i], wanted, bytes, p->queue_count + i);
        mgl_free(wanted);
    }
}

void check_exchanged_bytes(mgl_graph *graph, const mgl_program *from, const mgl_program *to,
                           bool plain, bool resident)
{
    mgl_error err;
    mgl_machine machine = {0};
    mgl_tensor_read_fn *read = graph->read;
    ok(mgl_machine_open(&machine, from, graph, &(mgl_machine_options){.plain = plain}, &err), err);
    for (int i = 0; i < 2; i++) {
        graph->read = resident ? NULL : read;
        ok(mgl_machine_exchange(&machine, i ? from : to, graph, &err), err);
        graph->read = read;
        ck_assert_ptr_eq(machine.program, i ? from : to);
        check_bytes(&machine, graph);
    }
    mgl_machine_close(&machine);
}
