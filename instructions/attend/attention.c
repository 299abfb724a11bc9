/*
 * Attention over one kv head, as the three attention ops use it. Scores are f32: mgl_dot of the
 * rotated q and the cached k, times head_dim^-0.5; exp in f32; sums over positions in order of
 * position.
 */
#include "instructions/reference.h"

#include <math.h>
#include <string.h>

/* Position p of sequence s in a cache region's head: (head_dim) elements of the cache's dtype. */
static char *cache_at(const mgl_call *call, const mgl_region *region, int s, int64_t p)
{
    const mgl_buffer *b = mgl_call_buffer(call, region);
    int64_t element = s * mgl_buffer_stride(b, 0) + region->ranges[1].lo * mgl_buffer_stride(b, 1) +
                      p * mgl_buffer_stride(b, 2);
    return (char *)call->buffers[region->buffer] + element * (int64_t)mgl_dtype_size(b->dtype);
}

static const float *rope_at(const mgl_call *call, const mgl_region *rope, int64_t p)
{
    return (const float *)mgl_call_at(call, rope) +
           p * mgl_buffer_stride(mgl_call_buffer(call, rope), 0);
}

void mgl_attention_append(const mgl_call *call, const mgl_region *k, const mgl_region *v,
                          const mgl_region *rope, const mgl_region *k_now, const mgl_region *v_now)
{
    int d = (int)mgl_region_width(k, 1);
    mgl_dtype dtype = mgl_call_buffer(call, k_now)->dtype;
    for (int r = 0; r < call->epoch->rows; r++) {
        const int32_t *row = mgl_call_table(call, r);
        int s = row[MGL_TABLE_SEQUENCE], p = row[MGL_TABLE_POSITION];
        mgl_call_load(call, k, r, 0, d, call->scratch);
        mgl_rope(call->scratch, call->scratch, rope_at(call, rope, p), d);
        mgl_convert(cache_at(call, k_now, s, p), dtype, call->scratch, MGL_F32, (size_t)d);
        mgl_call_load(call, v, r, 0, d, call->scratch);
        mgl_convert(cache_at(call, v_now, s, p), dtype, call->scratch, MGL_F32, (size_t)d);
    }
}

/* A cached vector as f32: in place, or converted into `to`. */
static const float *cached(const mgl_call *call, const mgl_region *region, int s, int64_t p, int d,
                           float *to)
{
    mgl_dtype dtype = mgl_call_buffer(call, region)->dtype;
    const char *at = cache_at(call, region, s, p);
    if (dtype == MGL_F32)
        return (const float *)at;
    mgl_convert(to, MGL_F32, at, dtype, (size_t)d);
    return to;
}

void mgl_attention_row(const mgl_call *call, const mgl_attention *a, int r, int head, float *sum,
                       float *max, float *total)
{
    int d = (int)mgl_call_buffer(call, a->k_cache)->extents[3].count;
    const int32_t *row = mgl_call_table(call, r);
    int s = row[MGL_TABLE_SEQUENCE], p = row[MGL_TABLE_POSITION];
    int64_t first = mgl_call_table(call, mgl_call_first_row(call, r))[MGL_TABLE_POSITION];
    float *q = call->scratch + d + 4, *room = q + d, *scores = room + d;
    float scale = (float)(1.0 / sqrt((double)d));
    int64_t lo, hi, end = a->tail ? p + 1 : first;
    mgl_split_range(first, a->split, a->splits, &lo, &hi);
    /* the n positions [lo, hi), then [first, end): number i is at i + lo, or past the gap */
    int64_t early = hi - lo, n = early + (end - first);
    mgl_call_load(call, a->q, r, (int64_t)head * d, d, q);
    mgl_rope(q, q, rope_at(call, a->rope, p), d);
    *max = -INFINITY;
    *total = 0.0f;
    memset(sum, 0, (size_t)d * sizeof *sum);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i < early ? lo + i : first + i - early;
        scores[i] = mgl_dot(q, cached(call, a->k_cache, s, at, d, room), d) * scale;
        *max = scores[i] > *max ? scores[i] : *max;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i < early ? lo + i : first + i - early;
        float weight = expf(scores[i] - *max);
        const float *v = cached(call, a->v_cache, s, at, d, room);
        for (int j = 0; j < d; j++)
            sum[j] += weight * v[j];
        *total += weight;
    }
}
