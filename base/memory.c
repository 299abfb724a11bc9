/* Allocation with injected failures for tests, and growing arrays. See memory.h. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t allocations;
static _Atomic uint64_t fail_at;
static _Atomic bool fail_forever;

static bool must_fail(void)
{
    uint64_t n = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return at && (n == at || (n > at && atomic_load_explicit(&fail_forever, memory_order_relaxed)));
}

void mgl_alloc_fail_at(uint64_t n, bool forever)
{
    atomic_store(&allocations, 0);
    atomic_store(&fail_forever, forever);
    atomic_store(&fail_at, n);
}

uint64_t mgl_alloc_count(void)
{
    return atomic_load(&allocations);
}

void *mgl_alloc(size_t bytes)
{
    return must_fail() ? NULL : malloc(bytes ? bytes : 1);
}

void *mgl_alloc_zero(size_t count, size_t size)
{
    size_t bytes;
    if (must_fail() || !mgl_mul(count, size, &bytes))
        return NULL;
    return calloc(bytes ? bytes : 1, 1);
}

void *mgl_realloc(void *old, size_t bytes)
{
    return must_fail() ? NULL : realloc(old, bytes ? bytes : 1);
}

void *mgl_alloc_aligned(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    if (must_fail() || posix_memalign(&memory, alignment, bytes ? bytes : 1))
        return NULL;
    return memory;
}

char *mgl_strndup(const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? mgl_alloc(length + 1) : NULL;
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *mgl_strdup(const char *text)
{
    return mgl_strndup(text, strlen(text));
}

void mgl_free(void *memory)
{
    free(memory);
}

bool mgl_grow(void **items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity : 8, bytes;
    while (wanted <= count) {
        if (!mgl_mul(wanted, 2, &wanted))
            return false;
    }
    if (!mgl_mul(wanted, size, &bytes))
        return false;
    void *grown = mgl_realloc(*items, bytes);
    if (!grown)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}
