/*
 * Swizzled layout of paged activations: maps (row, column) of a paged buffer to a byte offset. A
 * paged buffer has 16-bit values and a multiple of MGL_PAGE_COLUMNS columns. Its size equals that
 * of a row-major buffer. The CPU VM and the CUDA kernel share this file: plain C without includes
 * that NVRTC compiles too.
 *
 *     page      two k blocks
 *     k block   MGL_PAGE_BLOCK_BYTES of each row, row after row: as wide as a k block of 16-bit
 *               weights on a tape. k blocks have the order of the k blocks of a row group with the
 *               same columns (schedule/tape.h), so one bulk copy loads what is multiplied together
 *     quarter   MGL_PAGE_QUARTER_BYTES of a row of a k block. Quarter q of row r is stored at place
 *               q ^ (r / 2 % 4), so that quarter q of eight adjacent rows uses different banks of
 *               shared memory
 */
#ifndef MGL_SCHEDULE_PAGES_H
#define MGL_SCHEDULE_PAGES_H

#ifndef MGL_PAGE_FN
#define MGL_PAGE_FN static inline
#endif

enum {
    MGL_PAGE_COLUMNS = 64,
    MGL_PAGE_BLOCK_COLUMNS = 32,
    MGL_PAGE_QUARTER_COLUMNS = 8,
    MGL_PAGE_VALUE_BYTES = 2,
    MGL_PAGE_BLOCK_BYTES = MGL_PAGE_BLOCK_COLUMNS * MGL_PAGE_VALUE_BYTES,
    MGL_PAGE_QUARTER_BYTES = MGL_PAGE_QUARTER_COLUMNS * MGL_PAGE_VALUE_BYTES
};

/* Rows reserved for each k block in an epoch of `rows` rows, in a buffer declared with
 * `declared` rows. */
MGL_PAGE_FN int mgl_page_rows(int declared, int rows)
{
    const int room = rows <= 16 ? 16 : rows <= 32 ? 32 : rows <= 64 ? 64 : declared;
    return room < declared ? room : declared;
}

/* Byte offset of (row, column) in a buffer of less than 4 GB whose k blocks hold `rows` rows.
 * `place` is the place of the column's k block in a row group. The columns up to the next
 * multiple of MGL_PAGE_QUARTER_COLUMNS are contiguous with it. */
MGL_PAGE_FN unsigned mgl_page_at(int rows, int row, int place, unsigned column)
{
    const unsigned quarter = column % MGL_PAGE_BLOCK_COLUMNS / MGL_PAGE_QUARTER_COLUMNS;
    const unsigned rest = column % MGL_PAGE_QUARTER_COLUMNS;
    return ((unsigned)place * (unsigned)rows + (unsigned)row) * MGL_PAGE_BLOCK_BYTES +
           (quarter ^ ((unsigned)row / 2 % 4)) * MGL_PAGE_QUARTER_BYTES +
           rest * MGL_PAGE_VALUE_BYTES;
}

#endif
