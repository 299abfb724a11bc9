/*
 * Implements staged.h: shapes and stage bytes of the three product inputs, as rows and for the
 * batch variant.
 */
#include "schedule/lower/staged.h"

#include "schedule/variant_shapes.h"
#include "schedule/variants.h"

mgl_staged mgl_staged_input(const mgl_geometry *m, mgl_dtype dtype, int exchange_precision,
                            int input)
{
    const int parts = dtype == MGL_F32 ? 1 : 2;
    const mgl_staged inputs[MGL_STAGED_INPUTS] = {
        {m->hidden, parts, exchange_precision < 3},
        {(int64_t)m->heads * m->head_dim, exchange_precision >= 2 ? 1 : parts,
         exchange_precision < 2},
        {m->ffn, exchange_precision >= 1 ? 1 : parts, exchange_precision < 1}};
    return inputs[input];
}

/* Bytes of the activation buffer that the batch variant needs for a 16-bit input. 0: the variant
 * does not accept the input, or registers hold all of it. Such an input is counted as rows,
 * because the measured buffer and ring sizes are based on that. */
static int64_t batch_bytes(const mgl_staged *in, int warps)
{
    const int columns = mgl_tape_columns(16);
    int64_t blocks = in->columns / columns, run = (blocks + warps - 1) / warps, bytes;
    mgl_dimensions d = {0};
    if (in->columns % columns || run == 0 || blocks % run || in->wide != (in->parts == 2) ||
        (in->parts == 1 && run <= MGL_BATCH_HELD(1)))
        return 0;
    d.of[MGL_DIMENSION_FEWEST] = 1;
    d.of[MGL_DIMENSION_KBLOCKS] = blocks;
    d.of[MGL_DIMENSION_RUN] = run;
    d.of[MGL_DIMENSION_PARTS] = in->parts;
    return mgl_variant_needs(MGL_VARIANT_BATCH, MGL_NEED_STAGE, &d, &bytes) ? bytes : 0;
}

int64_t mgl_staged_bytes(const mgl_staged *in, mgl_dtype dtype, int warps, int rows)
{
    int64_t row = in->columns * in->parts * (int64_t)mgl_dtype_size(dtype);
    int64_t batch = batch_bytes(in, warps);
    if (dtype == MGL_F32 || rows < MGL_BATCH_LEAST(0) ||
        rows > mgl_variant_get(MGL_VARIANT_BATCH)->rows || batch == 0)
        return rows * row;
    return batch < rows * row ? batch : rows * row;
}
