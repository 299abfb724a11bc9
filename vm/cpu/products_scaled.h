/*
 * Scaled weights of the vector sets (products_vector.h): the scales and zero points of the eight
 * rows of a row group, converted to f32 group by group as a loop over the columns goes on. A weight
 * is (code - zero) * scale, rounded once, in every set.
 */
#ifndef MGL_VM_CPU_PRODUCTS_SCALED_H
#define MGL_VM_CPU_PRODUCTS_SCALED_H

/* The scales and zero points of a group of columns. */
struct scales {
    float scale[MGL_ROW_GROUP + SUMS], zero[MGL_ROW_GROUP]; /* `scale`: with room for a vector */
    int64_t end;                                            /* the column after the group */
};

/* Loads LANES scales of the tape. */
ALWAYS_INLINE vector load_scales(const char *from, mgl_dtype dtype)
{
    return dtype == MGL_F16    ? load_f16(from)
           : dtype == MGL_BF16 ? load_bf16(from)
                               : load((const float *)(const void *)from);
}

/* Converts the scales of group `group`, which the rows of the row group share or not. */
ALWAYS_INLINE void convert_scales(const mgl_matrix *w, const char *scales, int64_t group,
                                  struct scales *to)
{
    const mgl_dtype dtype = w->format.scales;
    const int64_t size = dtype == MGL_F32 ? 4 : 2;
    const bool shared = w->format.group_rows != 1;
    const char *from = scales + group * size * (shared ? 1 : GROUP);
    for (int i = 0; i < GROUP; i += LANES)
        store(to->scale + i, load_scales(from + (shared ? 0 : i * size), dtype));
    for (int i = 1; shared && i < GROUP; i++)
        to->scale[i] = to->scale[0];
    if (!w->format.zeros)
        return;
    const uint8_t *zeros = (const uint8_t *)scales + w->groups * size * GROUP + group * GROUP;
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++)
        to->zero[i] = (float)zeros[i];
}

/* Before the first column. Factors of rows are not on the tape: their scale here is 1. */
ALWAYS_INLINE void start_scales(const mgl_matrix *w, struct scales *to)
{
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++) {
        to->scale[i] = 1;
        to->zero[i] = (float)mgl_weight_code_zero(w->format.code);
    }
    to->end = 0;
}

/* Converts the scales of column k of the row group at `group`. Columns past the last group, where x
 * is zero, have the scales of the last group. */
ALWAYS_INLINE void next_scales(const mgl_matrix *w, const char *group, int64_t k, struct scales *to)
{
    const unsigned size = (unsigned)w->format.group;
    int64_t at = size == MGL_GROUP_ALL ? 0 : (unsigned)k / size;
    const bool last = at >= w->groups - 1;
    to->end = last ? INT64_MAX : (at + 1) * size;
    if (w->groups)
        convert_scales(w, group + w->scales, last ? w->groups - 1 : at, to);
}

#endif
