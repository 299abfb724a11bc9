/*
 * Scales of the vector sets (products_vector.h). The scales, zero points and minimums of a run are
 * converted to f32 once. A pass over the run then prepares those of its rows where a group of
 * columns begins. A weight is (code - zero) * scale, rounded once, or code * scale + minimum, with
 * the product and the sum rounded, in every set. products_vector.h includes this file after its
 * constants.
 */
#ifndef MGL_VM_CPU_PRODUCTS_SCALED_H
#define MGL_VM_CPU_PRODUCTS_SCALED_H

/* The factor of scales. Sets convert e4m3 codes to the number times 2^-8. */
ALWAYS_INLINE float unit_of(mgl_weight_code code)
{
    return code == MGL_CODE_E4M3 ? 0x1p8f : 1;
}

/* The zero point without stored zero points, plus the base. */
ALWAYS_INLINE vector zero_of(mgl_weight_code code)
{
    return spread(MGL_BYTE_BASE + (float)mgl_weight_code_zero(code));
}

enum {
    /* Groups of a run, which may begin and end inside one. */
    RUN_GROUPS = MGL_TAPE_RUN * MGL_FORMAT_COLUMNS / MGL_GROUP_UNIT + 1
};

/* What each scale has beside it. */
enum beside { NOTHING, ZEROS, MINIMUMS };

/* The scales and zero points of the groups of columns of a run. */
struct scales {
    int64_t end;                               /* the column after the first group */
    int64_t size;                              /* columns of a group */
    struct scale_group groups[RUN_GROUPS + 1]; /* with room for a vector */
};

/* Loads LANES scales of the tape. */
ALWAYS_INLINE vector load_scales(const char *from, mgl_dtype dtype)
{
    return dtype == MGL_F16    ? load_f16(from)
           : dtype == MGL_BF16 ? load_bf16(from)
                               : load((const float *)(const void *)from);
}

/* Stores 8 values, of which only the first is set if all rows share it. */
ALWAYS_INLINE void store_rows(float *to, const vector *values, bool shared)
{
#pragma GCC unroll 16
    for (int i = 0; i < GROUP; i += LANES)
        store(to + i, values[i / LANES]);
    for (int i = 0; i < GROUP && shared; i += LANES)
        store(to + i, spread(to[0]));
}

/* Converts the scales and zero points of the groups [lo, hi). Columns past the last group, where x
 * is zero, have its scales. A vector may reach into the next row of `to`, which is stored later. */
ALWAYS_INLINE void convert_groups(const mgl_matrix *w, const char *scales, mgl_dtype dtype,
                                  enum beside beside, int64_t lo, int64_t hi,
                                  struct scale_group *to)
{
    const int64_t size = dtype == MGL_F32 ? sizeof(float) : sizeof(uint16_t);
    const int64_t rows = mgl_tape_scale_rows(w->format);
    const vector unit = spread(unit_of(w->format.code)), base = zero_of(w->format.code);
    vector values[GROUP];
    for (int64_t group = lo; group < hi; group++, to++) {
        const int64_t at = (group < w->groups ? group : w->groups - 1) * rows;
#pragma GCC unroll 16
        for (int i = 0; i < GROUP; i += LANES)
            values[i / LANES] = unit * load_scales(scales + (at + i) * size, dtype);
        store_rows(to->scale, values, rows == 1);
#pragma GCC unroll 16
        for (int i = 0; i < GROUP; i += LANES)
            values[i / LANES] =
                beside == MINIMUMS ? load_scales(scales + (w->groups * rows + at + i) * size, dtype)
                : beside == ZEROS  ? load_bytes(scales + w->groups * rows * size + at + i)
                                   : base;
        store_rows(to->zero, values, rows == 1 && beside != NOTHING);
    }
}

/* The same for the format of the matrix. */
ALWAYS_INLINE void convert_dtype(const mgl_matrix *w, const char *scales, mgl_dtype dtype,
                                 int64_t lo, int64_t hi, struct scale_group *to)
{
    if (mgl_weight_format_has_minimums(w->format))
        convert_groups(w, scales, dtype, MINIMUMS, lo, hi, to);
    else if (w->format.zeros)
        convert_groups(w, scales, dtype, ZEROS, lo, hi, to);
    else
        convert_groups(w, scales, dtype, NOTHING, lo, hi, to);
}

/* Prefetches the scales and minimums of the groups [lo, hi), but not their few zero points. */
ALWAYS_INLINE void ask_scales(const mgl_matrix *w, const char *scales, int64_t lo, int64_t hi)
{
    const int64_t each = mgl_tape_scale_rows(w->format) * (int64_t)mgl_dtype_size(w->format.scales);
    const char *const minimums = scales + w->groups * each;
    for (int64_t at = lo * each; at < hi * each; at += MGL_BLOCK_ROW_BYTES)
        __builtin_prefetch(scales + at, 0, 3);
    for (int64_t at = lo * each; mgl_weight_format_has_minimums(w->format) && at < hi * each;
         at += MGL_BLOCK_ROW_BYTES)
        __builtin_prefetch(minimums + at, 0, 3);
}

/* Converts the scales of the columns [lo, hi) of the row group at `group`, and prefetches those of
 * the next row group. Row factors are not on the tape: their scale here is 1. */
static void convert_scales(const mgl_matrix *w, const char *group, const char *next, int64_t lo,
                           int64_t hi, struct scales *to)
{
    to->size = w->format.group == MGL_GROUP_ALL ? INT32_MAX : w->format.group;
    const int64_t first = lo / to->size, end = (hi - 1) / to->size + 1;
    to->end = (first + 1) * to->size;
    if (!w->groups) {
        for (int i = 0; i < GROUP; i += LANES)
            store(to->groups->scale + i, spread(unit_of(w->format.code)));
        for (int i = 0; i < GROUP; i += LANES)
            store(to->groups->zero + i, zero_of(w->format.code));
        return;
    }
    ask_scales(w, next + w->scales, first, end);
    if (w->format.scales == MGL_F16)
        convert_dtype(w, group + w->scales, MGL_F16, first, end, to->groups);
    else if (w->format.scales == MGL_BF16)
        convert_dtype(w, group + w->scales, MGL_BF16, first, end, to->groups);
    else
        convert_dtype(w, group + w->scales, MGL_F32, first, end, to->groups);
}

/* The group of columns that a pass over a run has reached. */
struct scale_cursor {
    const struct scale_group *group; /* NULL: none */
    int64_t end;                     /* the column after the group */
    struct table tables[GROUP];
};

/* Goes on to column k, for rows [first, first + count). */
ALWAYS_INLINE void next_scales(const struct scales *scales, mgl_weight_code code, int64_t k,
                               int first, int count, struct scale_cursor *at)
{
    if (k < at->end)
        return;
    at->end = at->group ? at->end + scales->size : scales->end;
    at->group = at->group ? at->group + 1 : scales->groups;
#pragma GCC unroll 16
    for (unrolled i = 0; i < count; i++)
        at->tables[i] = table_of(code, at->group, first + i);
}

#endif
