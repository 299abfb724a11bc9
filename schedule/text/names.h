/* A hash table from names to indices, so that parsing a program takes linear time. Used by
 * parse.c. */
#ifndef MGL_SCHEDULE_TEXT_NAMES_H
#define MGL_SCHEDULE_TEXT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mgl_name_entry {
    const char *name; /* not owned; NULL: free */
    size_t length;
    uint64_t hash;
    int index;
} mgl_name_entry;

/* Zero-initialize; release with mgl_names_clear. */
typedef struct mgl_names {
    mgl_name_entry *entries; /* (capacity), a power of two, open addressing */
    size_t capacity, count;
} mgl_names;

/* The index added under the name, or -1. */
int mgl_names_find(const mgl_names *names, const char *name, size_t length);
/* Adds a name that is not in the table. The name must outlive the table. False if memory ran
 * out. */
bool mgl_names_add(mgl_names *names, const char *name, int index);
void mgl_names_clear(mgl_names *names);

#endif
