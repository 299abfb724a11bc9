/* CSV reader for RFC 4180: fields are separated by commas; a field with commas, quotes (doubled)
 * or line ends is quoted. Reads a text in memory, one row per call. The profile reader uses it
 * for the output of Nsight Compute. */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_CSV_H
#define MGL_AUTOTUNE_KERNELS_METHODS_CSV_H

#include "base/error.h"
#include "base/text.h"

enum { MGL_CSV_FIELDS = 4096 /* per row */ };

/* Zero-initialize, set `at` and `end`; release with mgl_csv_clear. */
typedef struct mgl_csv {
    const char *at, *end; /* the unread part */
    mgl_text bytes;       /* the fields of the row, each terminated by a 0 byte */
    size_t *offsets;      /* (count) the offset of each field in bytes */
    size_t count, capacity;
} mgl_csv;

/* Reads the next row. *any is false at the end. MGL_BAD_INPUT: a quote is not closed, or the row
 * has too many fields. */
mgl_status mgl_csv_next(mgl_csv *csv, bool *any, mgl_error *err);
const char *mgl_csv_field(const mgl_csv *csv, size_t index); /* "" past the last field */
void mgl_csv_clear(mgl_csv *csv);

#endif
