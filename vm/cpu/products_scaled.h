/*
 * Scales of the vector sets (products_vector.h). The scales and zero points of a run are converted
 * to f32 once. A pass over the run then prepares those of its rows where a group of columns begins.
 * A weight is (code - zero) * scale, rounded once, in every set.
 */
#ifndef MGL_VM_CPU_PRODUCTS_SCALED_H
#define MGL_VM_CPU_PRODUCTS_SCALED_H

/* The f32 2^23. An integer below it, as the lower bits, is added to it. */
#define BYTE_BASE 0x1p23f

/* The factor of scales. Sets convert e4m3 codes to the number times 2^-8. */
ALWAYS_INLINE float unit_of(mgl_weight_code code)
{
    return code == MGL_CODE_E4M3 ? 0x1p8f : 1;
}

enum {
    /* Groups of a run, which may begin and end inside one. */
    RUN_GROUPS = MGL_TAPE_RUN * MGL_FORMAT_COLUMNS / MGL_GROUP_UNIT + 1
};

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

/* Converts the scales and zero points of a group. */
ALWAYS_INLINE void convert_group(const mgl_matrix *w, const char *scales, int64_t group,
                                 struct scale_group *to)
{
    const mgl_dtype dtype = w->format.scales;
    const int64_t size = dtype == MGL_F32 ? sizeof(float) : sizeof(uint16_t);
    const int64_t rows = mgl_tape_scale_rows(w->format);
    const vector unit = spread(unit_of(w->format.code));
    for (int i = 0; i < GROUP; i += LANES)
        store(to->scale + i, unit * load_scales(scales + (group * rows + i) * size, dtype));
    for (int i = 0; i < GROUP && rows == 1; i += LANES)
        store(to->scale + i, spread(to->scale[0]));
    const vector zero = spread(BYTE_BASE + (float)mgl_weight_code_zero(w->format.code));
    const char *zeros = scales + w->groups * rows * size + group * rows;
    for (int i = 0; i < GROUP; i += LANES)
        store(to->zero + i, w->format.zeros ? load_bytes(zeros + i) : zero);
}

/* Prefetches the scales of the groups [lo, hi). The caches load few zero points without. */
ALWAYS_INLINE void ask_scales(const mgl_matrix *w, const char *scales, int64_t lo, int64_t hi)
{
    const int64_t each = mgl_tape_scale_rows(w->format) * (int64_t)mgl_dtype_size(w->format.scales);
    for (int64_t at = lo * each; at < hi * each; at += MGL_BLOCK_ROW_BYTES)
        __builtin_prefetch(scales + at, 0, 3);
}

/* Converts the scales of the columns [lo, hi) of the row group at `group`, and prefetches those of
 * the next. Row factors are not on
 * the tape: their scale here is 1. Columns past the last group, where x is zero, have its scales.
 */
static void convert_scales(const mgl_matrix *w, const char *group, const char *next, int64_t lo,
                           int64_t hi, struct scales *to)
{
    to->size = w->format.group == MGL_GROUP_ALL ? INT32_MAX : w->format.group;
    const int64_t first = lo / to->size, last = (hi - 1) / to->size;
    to->end = (first + 1) * to->size;
    if (w->groups)
        ask_scales(w, next + w->scales, first, last + 1);
    for (int64_t i = first; i <= last; i++)
        if (w->groups)
            convert_group(w, group + w->scales, i < w->groups ? i : w->groups - 1,
                          &to->groups[i - first]);
    for (int i = 0; i < GROUP && !w->groups; i++) {
        to->groups->scale[i] = unit_of(w->format.code);
        to->groups->zero[i] = BYTE_BASE + (float)mgl_weight_code_zero(w->format.code);
    }
}

/* The group of columns that a pass over a run has reached. */
struct scale_cursor {
    const struct scale_group *group;
    int64_t end; /* the column after the group */
    struct table tables[GROUP];
};

ALWAYS_INLINE struct scale_cursor start_scales(const struct scales *scales, int64_t k)
{
    return (struct scale_cursor){.group = scales->groups - 1, .end = k};
}

/* Goes on to column k, for rows [first, first + count). */
ALWAYS_INLINE void next_scales(const struct scales *scales, mgl_weight_code code, int64_t k,
                               int first, int count, struct scale_cursor *at)
{
    if (k < at->end)
        return;
    at->group++;
    at->end = at->group == scales->groups ? scales->end : at->end + scales->size;
#pragma GCC unroll 16
    for (int i = 0; i < count; i++)
        at->tables[i] = table_of(code, at->group, first + i);
}

#endif
