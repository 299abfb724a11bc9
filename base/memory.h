/* Memory: every allocation of the library goes through these functions, so that a test can make
 * the n-th allocation fail. Also overflow-checked size arithmetic and growing arrays. */
#ifndef MGL_BASE_MEMORY_H
#define MGL_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mgl_alloc(size_t bytes);                           /* uninitialized; NULL if memory ran out */
void *mgl_alloc_zero(size_t count, size_t size);         /* zeroed; NULL on overflow too */
void *mgl_realloc(void *old, size_t bytes);              /* `old` stays valid if NULL is returned */
void *mgl_alloc_aligned(size_t alignment, size_t bytes); /* also released by mgl_free */
char *mgl_strdup(const char *text);
char *mgl_strndup(const char *text, size_t length);
void mgl_free(void *memory); /* NULL is fine */

/* Bytes that the system can still provide: free and reclaimable memory, and swap, within the
 * limits of the process's control groups (cgroup.h); 0 if not known. */
size_t mgl_memory_available(void);
/* Same for a machine whose /proc and control groups are below `root`, for tests. */
size_t mgl_memory_available_below(const char *root);
/* For tests: the value that mgl_memory_available returns from now on; 0: the real value. */
void mgl_memory_pretend(size_t bytes);

/* Makes room for one more element in an array that doubles: *items has *capacity elements of
 * `size` bytes, of which `count` are in use. Returns false if memory ran out; the array is then
 * unchanged. */
bool mgl_grow(void **items, size_t *capacity, size_t count, size_t size);

/* For tests: the n-th allocation from now (1 is the next) fails, and all later ones too if
 * `forever`. 0 switches this off. Allocations of all threads count. */
void mgl_alloc_fail_at(uint64_t n, bool forever);
uint64_t mgl_alloc_count(void); /* allocations since the last mgl_alloc_fail_at */

/* Return false on overflow; *out is then unchanged. */
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
