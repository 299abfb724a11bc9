/*
 * Which bytes of a program's weights another program of the same model has as well, and where:
 * whole const buffers, and row groups of the tapes. The bytes of a row group depend on its tensors,
 * its columns and the number of warps alone, so wherever it stands on a tape, it is the same.
 */
#ifndef MGL_VM_OVERLAP_H
#define MGL_VM_OVERLAP_H

#include "schedule/program.h"

/* A place in the weights of a program: see vm/weights.h. */
typedef struct mgl_origin {
    int part; /* or MGL_ORIGIN_... */
    size_t offset;
} mgl_origin;
enum {
    MGL_ORIGIN_NONE = -1, /* there is no such place */
    MGL_ORIGIN_ZEROS = -2 /* padding: memory that was cleared has it already */
};

typedef struct mgl_overlap mgl_overlap;

/* `resident` is the program whose weights there are, `wanted` the one whose weights are to be made.
 * Both must outlive it; release with mgl_overlap_close. */
mgl_status mgl_overlap_open(const mgl_program *resident, const mgl_program *wanted,
                            mgl_overlap **out, mgl_error *err);
void mgl_overlap_close(mgl_overlap *overlap); /* NULL is fine */

/* Where row `row` of a segment of the wanted program, which begins a row group, stands among the
 * weights that there are: to *out. Returns the row, of a row group or the segment's end, up to
 * which the rows follow one another there, or up to which there are none. `overlap` NULL: there are
 * none. */
int64_t mgl_overlap_find_rows(const mgl_overlap *overlap, const mgl_segment *segment, int64_t row,
                              mgl_origin *out);

/* The const buffer among the weights that there are; it begins at its part's first byte. */
mgl_origin mgl_overlap_find_const(const mgl_overlap *overlap, int buffer);

#endif
