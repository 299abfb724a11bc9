/* Packs codes and zero points. See pack.h. */
#include "quantize/pack.h"

#include <string.h>

void mgl_pack_codes(const uint8_t *codes, int64_t count, int bits, uint8_t *to)
{
    if (bits == 8) {
        memcpy(to, codes, (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count / 2; i++)
        to[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
}

int64_t mgl_packed_zero_bytes(int64_t rows, int64_t groups, int bits)
{
    return (rows * bits + 31) / 32 * groups * 4;
}

void mgl_pack_zeros(const uint8_t *zeros, int64_t rows, int64_t groups, int bits, uint8_t *to)
{
    const int fields = 32 / bits; /* rows of a word */
    memset(to, 0, (size_t)mgl_packed_zero_bytes(rows, groups, bits));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t g = 0; g < groups; g++) {
            const int bit = (int)(row % fields) * bits;
            uint8_t *const word = to + (row / fields * groups + g) * 4;
            word[bit / 8] |= (uint8_t)(zeros[row * groups + g] << bit % 8);
        }
}
