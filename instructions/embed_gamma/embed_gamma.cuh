/* embed_gamma, run by the controller: gathers a slice of each row's embedding and multiplies
 * it by the norm's weight (gamma_scaled). One lane handles one row. Slices have whole row
 * groups. */
#ifndef MGL_INSTRUCTIONS_EMBED_GAMMA_CUH
#define MGL_INSTRUCTIONS_EMBED_GAMMA_CUH

#include "vm/cuda/device/flags.cuh"
#include "vm/cuda/device/ops.cuh"

#if MGL_PANELS

/* Handles MGL_PAGE_QUARTER_COLUMNS columns of a row from `column` on. Returns the updated sum of
 * squares. */
static __device__ __forceinline__ float weigh_quarter(const u8 *table, long long at, const float *g,
                                                      const view &y, const paged_view &n, int row,
                                                      int column, float squares)
{
    float value[MGL_PAGE_QUARTER_COLUMNS];
    u32 words[MGL_PAGE_QUARTER_COLUMNS / 2];
    float *to = (float *)element_of(y, row, column);
#pragma unroll
    for (int i = 0; i < MGL_PAGE_QUARTER_COLUMNS; i++)
        value[i] = embedding_format::load(table, at + column + i);
#pragma unroll
    for (int i = 0; i < MGL_PAGE_QUARTER_COLUMNS; i++) {
        to[i] = value[i];
        squares = fmaf(value[i], value[i], squares);
    }
#pragma unroll
    for (int i = 0; i < MGL_PAGE_QUARTER_COLUMNS / 2; i++)
        words[i] = pack_pair(n.dtype, value[2 * i] * g[column + 2 * i],
                             value[2 * i + 1] * g[column + 2 * i + 1]);
    *(uint4 *)element_of(n, row, column) = make_uint4(words[0], words[1], words[2], words[3]);
    delay();
    return squares;
}

static __device__ __forceinline__ void do_embed_gamma(machine &m)
{
    const mgl_device_operand &embedding = operand(m, MGL_OPERAND(embed_gamma, embedding));
    const float *g = (const float *)operand(m, MGL_OPERAND(embed_gamma, g)).at;
    const view y = view_of(m, operand(m, MGL_OPERAND(embed_gamma, y)));
    const paged_view n = paged_view_of<MGL_HIDDEN>(m, operand(m, MGL_OPERAND(embed_gamma, n)));
    const mgl_device_operand &s = operand(m, MGL_OPERAND(embed_gamma, s));
    const int width = operand(m, MGL_OPERAND(embed_gamma, y)).count[1];
    for (int r = m.lane; r < rows_of(m); r += 32) {
        const long long at = own().table[r * MGL_TABLE_WORDS + MGL_TABLE_TOKEN] * embedding.stride0;
        float squares = 0.0f;
        for (int c = 0; c < width; c += MGL_PAGE_QUARTER_COLUMNS)
            squares = weigh_quarter((const u8 *)embedding.at, at, g, y, n, r, c, squares);
        *row_of(s, r) = squares;
        delay();
    }
}

#endif

#endif
