/*
 * Finds the weight bytes that two programs of the same model share: whole const buffers, and row
 * groups of the tapes. The bytes of a row group depend only on its tensors, its columns and the
 * number of warps. A row group thus has the same bytes at any place on a tape. vm/weights.c uses
 * the result to copy weights from a resident program when a machine exchanges its program.
 */
#ifndef MGL_VM_OVERLAP_H
#define MGL_VM_OVERLAP_H

#include "schedule/program.h"

/* A place in the weights of a program; parts are defined in vm/weights.h. */
typedef struct mgl_origin {
    int part; /* or MGL_ORIGIN_... */
    size_t offset;
} mgl_origin;
enum {
    MGL_ORIGIN_NONE = -1, /* no such place */
    MGL_ORIGIN_ZEROS = -2 /* padding: cleared memory already holds it */
};

typedef struct mgl_overlap mgl_overlap;

/* `resident` is the program whose weights are in memory; `wanted` is the one to be packed. Both
 * must outlive the overlap. Release with mgl_overlap_close. */
mgl_status mgl_overlap_open(const mgl_program *resident, const mgl_program *wanted,
                            mgl_overlap **out, mgl_error *err);
void mgl_overlap_close(mgl_overlap *overlap); /* NULL is allowed */

/* Finds row `row` of a segment of the wanted program, the first row of a row group, in the resident
 * weights. Its place goes to *out (MGL_ORIGIN_NONE if absent). Returns the end of the run of rows
 * that are contiguous there, or that are all absent: a row group boundary or the segment's end. If
 * `overlap` is NULL, all rows are absent. */
int64_t mgl_overlap_find_rows(const mgl_overlap *overlap, const mgl_segment *segment, int64_t row,
                              mgl_origin *out);

/* Finds a const buffer of the wanted program in the resident weights. It starts at offset 0 of its
 * part. */
mgl_origin mgl_overlap_find_const(const mgl_overlap *overlap, int buffer);

#endif
