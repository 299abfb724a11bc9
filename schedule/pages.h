/*
 * The geometry of activations in pages: where a value of a paged buffer (rows, columns) lies. Such
 * a buffer has 16-bit values and a multiple of MGL_PAGE_COLUMNS columns, and takes the bytes that
 * it would take row after row. Stands here once, for the machines: plain C that NVRTC compiles too,
 * without includes.
 *
 *     page      MGL_PAGE_COLUMNS columns of all rows that the buffer is declared with: what one
 *               bulk copy brings
 *     k block   half of a page: of each row, row after row, MGL_PAGE_BLOCK_BYTES, as wide as a
 *               k block of 16-bit weights on a tape (schedule/tape.h)
 *     quarter   MGL_PAGE_QUARTER_BYTES of a row of a k block. Quarter q of row r lies at place
 *               q ^ (r / 2 % 4), so that eight neighbouring rows' quarters q are in different banks
 *               of shared memory
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

/* Where column `column` of row `row` lies, in bytes from the start of a buffer of `rows` rows,
 * which has less than 4 GB. The columns up to the next multiple of MGL_PAGE_QUARTER_COLUMNS follow
 * it. */
MGL_PAGE_FN unsigned mgl_page_place(int rows, int row, unsigned column)
{
    const unsigned block = column / MGL_PAGE_BLOCK_COLUMNS;
    const unsigned quarter = column % MGL_PAGE_BLOCK_COLUMNS / MGL_PAGE_QUARTER_COLUMNS;
    const unsigned rest = column % MGL_PAGE_QUARTER_COLUMNS;
    return (block * (unsigned)rows + (unsigned)row) * MGL_PAGE_BLOCK_BYTES +
           (quarter ^ ((unsigned)row / 2 % 4)) * MGL_PAGE_QUARTER_BYTES +
           rest * MGL_PAGE_VALUE_BYTES;
}

#endif
