/*
 * Reads weights back from the tape layout (schedule/tape.h): the inverse of vm/pack.c. The
 * reference code of products and the CPU VM use it.
 */
#ifndef MGL_SCHEDULE_UNPACK_H
#define MGL_SCHEDULE_UNPACK_H

#include "schedule/program.h"

/* Unpacks one row of a segment's tensor (row 0 is row_lo) to f32 (cols). If the tensor has row
 * factors, the result is the row without its factor. */
void mgl_unpack_row(const mgl_program *program, const mgl_segment *segment, const void *tape,
                    int which, int64_t row, float *to);

#endif
