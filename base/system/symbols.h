/*
 * Function tables of libraries that are opened at run time, such as the CUDA driver, cuBLAS or
 * libcurl. A table is a struct of function pointers. A list of names and offsets maps symbols to
 * its members. The caller opens the library and reports what to install, because each library is
 * searched in other places.
 */
#ifndef MGL_BASE_SYSTEM_SYMBOLS_H
#define MGL_BASE_SYSTEM_SYMBOLS_H

#include <stddef.h>

typedef struct {
    const char *name;
    size_t offset; /* of the pointer in the table */
} mgl_symbol;

/* Fills a table from an open library. Returns the name of the first missing symbol, or NULL. */
const char *mgl_symbols_fill(void *library, const mgl_symbol *symbols, size_t count, void *table);

#endif
