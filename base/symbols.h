/*
 * Functions of a library that is opened at run time. A table is a struct of function pointers, and
 * a list of names and offsets says which symbol each of them is. What opens the library, and what
 * to install where it is missing, is its user's: each library is looked for in other places.
 */
#ifndef MGL_BASE_SYMBOLS_H
#define MGL_BASE_SYMBOLS_H

#include <stddef.h>

typedef struct {
    const char *name;
    size_t offset; /* of the pointer in the table */
} mgl_symbol;

/* Fills a table from an open library; the name of the first symbol that it lacks, or NULL. */
const char *mgl_symbols_fill(void *library, const mgl_symbol *symbols, size_t count, void *table);

#endif
