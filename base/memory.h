/* Memory: the one seam through which the library allocates, so that a test can make the n-th
 * allocation fail. Also checked arithmetic for sizes, and growing arrays. */
#ifndef MGL_BASE_MEMORY_H
#define MGL_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mgl_alloc(size_t bytes);                   /* uninitialised; NULL when memory ran out */
void *mgl_alloc_zero(size_t count, size_t size); /* zeroed; NULL on overflow too */
void *mgl_realloc(void *old, size_t bytes);      /* `old` stays valid when NULL is returned */
void *mgl_alloc_aligned(size_t alignment, size_t bytes); /* released by mgl_free as well */
char *mgl_strdup(const char *text);
char *mgl_strndup(const char *text, size_t length);
void mgl_free(void *memory); /* NULL is fine */

/* Bytes that the system can still give: memory that is free or can be freed, and swap, within what
 * the limits of the process's control groups leave (cgroup.h); 0 if that is not known. */
size_t mgl_memory_available(void);
/* The same of a machine whose /proc and control groups are below `root`, for tests. */
size_t mgl_memory_available_below(const char *root);
/* Tests: what it tells from now on; 0: the truth. */
void mgl_memory_pretend(size_t bytes);

/* Makes room for one element more in an array that doubles: *items has *capacity elements of
 * `size` bytes, of which `count` are in use. False when memory ran out; nothing is lost. */
bool mgl_grow(void **items, size_t *capacity, size_t count, size_t size);

/* Tests: the n-th allocation from now (1 is the next) fails, as do all after it if `forever`.
 * 0 switches it off. Counts in every thread. */
void mgl_alloc_fail_at(uint64_t n, bool forever);
uint64_t mgl_alloc_count(void); /* allocations since the last mgl_alloc_fail_at */

/* False on overflow; *out is then untouched. */
static inline bool mgl_mul(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}
static inline bool mgl_add(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

#endif
