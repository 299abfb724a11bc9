/*
 * Measures the upper bound of memory reads: adds words with vectors of a set's width, and does
 * nothing else. The products over the same bytes are compared with this bound.
 */
#ifndef MGL_TESTS_TOOLS_READ_BYTES_H
#define MGL_TESTS_TOOLS_READ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Adds words with four vector sums of this number of bytes. */
#define READ(name, bytes, attributes)                                                              \
    attributes static uint64_t name(const char *from, size_t length)                               \
    {                                                                                              \
        typedef uint64_t vector __attribute__((vector_size(bytes)));                               \
        vector sums[4] = {{0}};                                                                    \
        uint64_t sum = 0;                                                                          \
        const vector *at = (const vector *)(const void *)from;                                     \
        for (size_t i = 0; i < length / sizeof(vector); i += 4)                                    \
            for (int j = 0; j < 4; j++)                                                            \
                sums[j] += at[i + (size_t)j];                                                      \
        for (size_t j = 0; j < 4 * sizeof(vector) / sizeof(uint64_t); j++)                         \
            sum += sums[j / (sizeof(vector) / 8)][j % (sizeof(vector) / 8)];                       \
        return sum;                                                                                \
    }
READ(read_baseline, 16, )
#ifdef __x86_64__
READ(read_avx2, 32, __attribute__((target("avx2"))))
READ(read_avx512, 64, __attribute__((target("avx512f"))))
#endif

/* Adds words with the vectors of that product set (vm/cpu/products.h). */
static uint64_t read_bytes(const char *set, const char *from, size_t length)
{
#ifdef __x86_64__
    if (!strncmp(set, "avx512", 6))
        return read_avx512(from, length);
    if (!strcmp(set, "avx2"))
        return read_avx2(from, length);
#endif
    (void)set;
    return read_baseline(from, length);
}

#endif
