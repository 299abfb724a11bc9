/* Implements enumeration, corners, and rejection sampling of new points. */
#include "autotune/kernels/methods/sample.h"

#include "base/draw.h"

#include <string.h>

enum { DRAWS = 64 /* failed draws in a row before sampling stops */ };

uint64_t mgl_space_size(const mgl_tunable *axes, int count)
{
    uint64_t size = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(size, (uint64_t)axes[i].count, &size))
            return UINT64_MAX;
    return size;
}

bool mgl_point_stands(const mgl_point *list, int list_count, const mgl_point *point, int count)
{
    for (int i = 0; i < list_count; i++)
        if (!memcmp(list[i].values, point->values, (size_t)count * sizeof *point->values))
            return true;
    return false;
}

/* Point number `index`; the last axis runs fastest. */
static mgl_point point_of(const mgl_tunable *axes, int count, uint64_t index)
{
    mgl_point p = {0};
    for (int i = count - 1; i >= 0; i--) {
        p.values[i] = axes[i].values[index % (uint64_t)axes[i].count];
        index /= (uint64_t)axes[i].count;
    }
    return p;
}

/* Corner number `index`: bit i selects the last value of axis i. */
static mgl_point corner_of(const mgl_tunable *axes, int count, unsigned index)
{
    mgl_point p = {0};
    for (int i = 0; i < count; i++)
        p.values[i] = axes[i].values[index >> i & 1 ? axes[i].count - 1 : 0];
    return p;
}

int mgl_sample_points(const mgl_tunable *axes, int count, int most, uint64_t seed, mgl_point *out)
{
    uint64_t size = mgl_space_size(axes, count);
    int made = 0;
    if (size <= (uint64_t)most) {
        for (uint64_t i = 0; i < size; i++)
            out[made++] = point_of(axes, count, i);
        return made;
    }
    for (unsigned c = 0; c < 1u << count && made < most; c++) {
        mgl_point p = corner_of(axes, count, c);
        if (!mgl_point_stands(out, made, &p, count))
            out[made++] = p;
    }
    for (int misses = 0; made < most && misses < DRAWS;) {
        mgl_point p = point_of(axes, count, mgl_draw_below(&seed, size));
        bool stands = mgl_point_stands(out, made, &p, count);
        misses = stands ? misses + 1 : 0;
        if (!stands)
            out[made++] = p;
    }
    return made;
}
