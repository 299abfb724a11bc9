/*
 * The geometry of activations in pages: where a value of a paged buffer (rows, columns) lies. Such
 * a buffer has 16-bit values and a multiple of MGL_PAGE_COLUMNS columns, and takes the bytes that
 * it would take row after row. Stands here once, for the machines: plain C that NVRTC compiles too,
 * without includes.
 *
 *     page      two k blocks
 *     k block   of each row, row after row, MGL_PAGE_BLOCK_BYTES, as wide as a k block of 16-bit
 *               weights on a tape. k blocks lie in the order that those of a row group of as many
 *               columns have there (schedule/tape.h): so what is multiplied together is one bulk
 *               copy
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

/* Rows that a k block has room for in an epoch of `rows`, of a buffer that is declared with so
 * many. */
MGL_PAGE_FN int mgl_page_rows(int declared, int rows)
{
    const int room = rows <= 16 ? 16 : rows <= 32 ? 32 : rows <= 64 ? 64 : declared;
    return room < declared ? room : declared;
}

/* Where column `column` of row `row` lies, in bytes from the start of a buffer whose k blocks have
 * room for `rows` rows, and which has less than 4 GB; the column's k block being that of place
 * `place` of a row group. The columns up to the next multiple of MGL_PAGE_QUARTER_COLUMNS follow
 * it. */
MGL_PAGE_FN unsigned mgl_page_at(int rows, int row, int place, unsigned column)
{
    const unsigned quarter = column % MGL_PAGE_BLOCK_COLUMNS / MGL_PAGE_QUARTER_COLUMNS;
    const unsigned rest = column % MGL_PAGE_QUARTER_COLUMNS;
    return ((unsigned)place * (unsigned)rows + (unsigned)row) * MGL_PAGE_BLOCK_BYTES +
           (quarter ^ ((unsigned)row / 2 % 4)) * MGL_PAGE_QUARTER_BYTES +
           rest * MGL_PAGE_VALUE_BYTES;
}

#endif
