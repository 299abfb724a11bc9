/* Whole tapes for tests: packs the weights of a queue, and unpacks a segment, by the functions that
 * the machines use for pieces. */
#ifndef MGL_TESTS_VM_TAPES_H
#define MGL_TESTS_VM_TAPES_H

#include <string.h>

#include "schedule/unpack.h"
#include "vm/vm.h"

/* Writes the tape of a queue (tape_bytes) with the graph's weights converted to the program's
 * formats, as the segment descriptors specify. */
static inline mgl_status pack_tape(const mgl_program *program, const mgl_graph *graph, int queue,
                                   void *to, mgl_error *err)
{
    const mgl_queue *q = &program->queues[queue];
    int64_t end = 0;
    for (int t = q->tasks.first; t < q->tasks.first + q->tasks.count; t++) {
        const mgl_run *run = &program->tasks[t].segments;
        for (int s = run->first; s < run->first + run->count; s++) {
            const mgl_segment *segment = &program->segments[s];
            mgl_status status = mgl_pack_rows(program, graph, segment, segment->row_lo,
                                              segment->row_hi, (char *)to + segment->offset, err);
            if (status)
                return status;
            end = segment->offset + mgl_segment_bytes(program, segment);
        }
    }
    memset((char *)to + end, 0, (size_t)(q->tape_bytes - end));
    return MGL_OK;
}

/* Unpacks tensor `which` of a segment (0, or 1 of g8x2) from the queue's tape to row-major f32
 * (rows, cols). */
static inline void unpack_segment(const mgl_program *program, const mgl_segment *segment,
                                  const void *tape, int which, float *to)
{
    int64_t width = segment->col_hi - segment->col_lo;
    for (int64_t row = 0; row < mgl_segment_rows(segment); row++)
        mgl_unpack_row(program, segment, tape, which, row, to + row * width);
}

#endif
