/* Computes the checksum of checksum.h, which has the formula. Four independent lanes, 32 bytes a
 * step. */
#include "base/checksum.h"

#include <string.h>

enum { LANES = 4, STRIPE = LANES * sizeof(uint64_t) };

static const uint64_t factor = 0x9E3779B97F4A7C15;

static uint64_t step(uint64_t hash, uint64_t word)
{
    uint64_t product = (hash ^ word) * factor;
    return product << 29 | product >> 35;
}

/* Steps each lane over one word. Both supported architectures are little-endian. */
static void step_lanes(uint64_t hash[LANES], const void *bytes)
{
    uint64_t words[LANES];
    memcpy(words, bytes, sizeof words);
    for (int i = 0; i < LANES; i++)
        hash[i] = step(hash[i], words[i]);
}

uint64_t mgl_checksum(const void *bytes, size_t length)
{
    const char *from = bytes;
    uint64_t hash[LANES] = {1, 2, 3, 4}, sum = length;
    size_t done = 0;
    for (; length - done >= STRIPE; done += STRIPE)
        step_lanes(hash, from + done);
    if (done < length) {
        char last[STRIPE] = {0};
        memcpy(last, from + done, length - done);
        step_lanes(hash, last);
    }
    for (int i = 0; i < LANES; i++)
        sum = step(sum, hash[i]);
    return (sum ^ sum >> 32) * factor;
}
