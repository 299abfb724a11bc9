/*
 * A page of the documentation as one line of text: runs of blanks and line ends are one blank. Each
 * byte has a mark of its kind, so that numbers in code are left out and cells of tables are found.
 */
#ifndef MGL_TESTS_DOCS_PAGE_H
#define MGL_TESTS_DOCS_PAGE_H

#include <stdbool.h>
#include <stddef.h>

enum { IN_CODE = 1, IN_TABLE = 2, COVERED = 4 };

typedef struct page {
    char *text;           /* (length), 0-terminated */
    unsigned char *marks; /* (length) */
    int *lines;           /* (length): line of the file, from 1 */
    size_t length;
} page;

bool page_read(const char *path, page *out);
void page_clear(page *p);

/* The next number from *at on that looks like a result and is neither in code nor covered. It has a
 * unit, or its table cell contains only numbers (heads and first cells are keys). False at the
 * end. */
bool page_next(const page *p, size_t *at, size_t *begin, size_t *end);

#endif
