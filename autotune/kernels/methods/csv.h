/* CSV as RFC 4180 has it: fields with commas between them, quoted where they hold commas, quotes
 * (doubled) or line ends. A row at a time, of a text that is there. */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_CSV_H
#define MGL_AUTOTUNE_KERNELS_METHODS_CSV_H

#include "base/error.h"
#include "base/text.h"

enum { MGL_CSV_FIELDS = 4096 /* of a row */ };

/* Zero-initialise, set text and end; release with mgl_csv_clear. */
typedef struct mgl_csv {
    const char *at, *end; /* what was not read */
    mgl_text bytes;       /* of the row's fields, each with a 0 behind it */
    size_t *offsets;      /* (count) of them in bytes */
    size_t count, capacity;
} mgl_csv;

/* The next row; *any false: there is none. MGL_BAD_INPUT: a quote is not closed, or there are too
 * many fields. */
mgl_status mgl_csv_next(mgl_csv *csv, bool *any, mgl_error *err);
const char *mgl_csv_field(const mgl_csv *csv, size_t index); /* "" beyond the last */
void mgl_csv_clear(mgl_csv *csv);

#endif
