/*
 * Reference attention over one kv head, for all attention ops: two-pass softmax in f32. A score is
 * mgl_dot of the rotated q and the cached k, times head_dim^-0.5. exp is in f32. Sums over
 * positions run in position order.
 */
#include "instructions/reference/reference.h"
#include "schedule/variant_shapes.h"

#include <math.h>
#include <string.h>

/* The address of position p of sequence s in a cache region's head: (head_dim) elements of the
 * cache's dtype. */
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

/* The inputs and output of an attention task. */
struct attention {
    const mgl_region *q, *rope, *k_cache, *v_cache; /* caches: any range of positions */
    const mgl_region *to;                           /* y or part */
    int split, splits;                              /* the split, for its share of the earlier
                                                       positions */
    bool tail;                                      /* attends to this epoch's rows too */
    int row, end;                                   /* rows of the task: [row, end) */
};

static struct attention attention_of(const mgl_call *call)
{
    const mgl_attention_operands *o = mgl_op_attention(call->task->op);
    const bool tail = o->k_now != MGL_NO_OPERAND, appended = tail && !call->now;
    struct attention a = {.q = mgl_call_operand(call, o->q),
                          .rope = mgl_call_operand(call, o->rope),
                          .k_cache = mgl_call_operand(call, appended ? o->k_now : o->k_past),
                          .v_cache = mgl_call_operand(call, appended ? o->v_now : o->v_past),
                          .to = mgl_task_result(call->program, call->task),
                          .splits = 1,
                          .tail = tail,
                          .end = call->epoch->rows};
    const mgl_range *rows = &a.q->ranges[0];
    if (rows->kind == MGL_RANGE_SHARE)
        mgl_row_share(call->epoch->rows, (int)rows->lo, (int)rows->hi, &a.row, &a.end);
    if (o->part != MGL_NO_OPERAND) {
        a.split = (int)a.to->ranges[0].lo;
        a.splits = (int)mgl_call_buffer(call, a.to)->extents[0].count;
    }
    return a;
}

/* Normalizes a head by the extra operand g, if the task has it. */
static void norm_head(const mgl_call *call, int g, float *x, int d)
{
    const mgl_region *region = mgl_call_operand(call, g);
    if (region)
        mgl_rms_norm(x, x, mgl_call_at(call, region), d, call->program->geometry.eps);
}

/* Loads this epoch's key and value of row r (head_dim each) before rounding for the cache. The
 * key is normalized and rotated. */
static void load_now(const mgl_call *call, int r, float *key, float *value)
{
    const mgl_attention_operands *o = mgl_op_attention(call->task->op);
    const mgl_region *k = mgl_call_operand(call, o->k), *v = mgl_call_operand(call, o->v);
    const int d = (int)mgl_region_width(k, 1);
    mgl_call_load(call, k, r, 0, d, key);
    norm_head(call, o->k_g, key, d);
    mgl_rope(
        key, key,
        rope_at(call, mgl_call_operand(call, o->rope), mgl_call_table(call, r)[MGL_TABLE_POSITION]),
        d);
    mgl_call_load(call, v, r, 0, d, value);
}

/* Appends this epoch's keys and values, if the task has k_now and v_now. */
void mgl_attention_append(const mgl_call *call)
{
    const mgl_attention_operands *o = mgl_op_attention(call->task->op);
    if (o->k_now == MGL_NO_OPERAND || mgl_task_place(call->task, o->k_now) < 0)
        return;
    const mgl_region *k_now = mgl_call_operand(call, o->k_now);
    const mgl_region *v_now = mgl_call_operand(call, o->v_now);
    const size_t d = (size_t)mgl_call_buffer(call, k_now)->extents[3].count;
    const mgl_dtype dtype = mgl_call_buffer(call, k_now)->dtype;
    float *key = call->scratch, *value = key + d;
    for (int r = 0; r < call->epoch->rows; r++) {
        if (!mgl_call_has_row(call, k_now, r))
            continue;
        const int32_t *row = mgl_call_table(call, r);
        int s = row[MGL_TABLE_SEQUENCE], p = row[MGL_TABLE_POSITION];
        load_now(call, r, key, value);
        mgl_convert(cache_at(call, k_now, s, p), dtype, key, MGL_F32, d);
        mgl_convert(cache_at(call, v_now, s, p), dtype, value, MGL_F32, d);
    }
}

enum { ROUNDED_AT_ONCE = 64 };

/* Rounds f32 values as if stored in the cache and read back. */
static void round_now(const mgl_call *call, float *x, size_t d)
{
    const mgl_dtype dtype = call->program->kv_dtype;
    uint16_t stored[ROUNDED_AT_ONCE];
    for (size_t i = 0; i < d && dtype != MGL_F32; i += ROUNDED_AT_ONCE) {
        const size_t n = d - i < ROUNDED_AT_ONCE ? d - i : ROUNDED_AT_ONCE;
        mgl_convert(stored, dtype, x + i, MGL_F32, n);
        mgl_convert(x + i, MGL_F32, stored, dtype, n);
    }
}

const float *mgl_attention_now(const mgl_call *call)
{
    float *to = call->scratch;
    if (call->task->op != MGL_OP_ATTEND_ROWS)
        return NULL;
    const size_t d = (size_t)call->program->geometry.head_dim;
    for (int r = 0; r < call->epoch->rows; r++) {
        float *key = to + 2 * (size_t)r * d, *value = key + d;
        load_now(call, r, key, value);
        round_now(call, key, 2 * d);
    }
    return to;
}

size_t mgl_attention_now_floats(const mgl_program *program)
{
    return 2 * (size_t)mgl_limits_most(&program->limits) * (size_t)program->geometry.head_dim;
}

/* The positions of a row. */
struct places {
    int sequence, first_row;
    int64_t first; /* first position of this epoch */
};

/* A cached vector as f32: in place, or converted into `to`. Positions of this epoch come from
 * call->now if the task does not read them from the cache; `which`: 0 the key, 1 the value. */
static const float *cached(const mgl_call *call, const mgl_region *region, const struct places *at,
                           int64_t p, int which, int d, float *to)
{
    if (call->now && p >= at->first)
        return call->now + (2 * (at->first_row + p - at->first) + which) * d;
    mgl_dtype dtype = mgl_call_buffer(call, region)->dtype;
    const char *from = cache_at(call, region, at->sequence, p);
    if (dtype == MGL_F32)
        return (const float *)from;
    mgl_convert(to, MGL_F32, from, dtype, (size_t)d);
    return to;
}

static void add_scaled(float *to, float scale, const float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += scale * v[i];
}

/* Attention of row r and head `head` (0-based in the q region): *max of the scores, *total of
 * exp(score - max), and sum (head_dim) of exp(score - max) v. Without positions: -inf, 0 and
 * zeros. `sum` may be the first head_dim + 4 floats of the scratch. k and v of this epoch's rows
 * are rounded as in the cache too, so the values of a prompt do not depend on its division into
 * epochs. */
static void attend_row(const mgl_call *call, const struct attention *a, int r, int head, float *sum,
                       float *max, float *total)
{
    static const mgl_arithmetic plain = {mgl_dot, add_scaled};
    const mgl_arithmetic *with = call->arithmetic ? call->arithmetic : &plain;
    int d = (int)mgl_call_buffer(call, a->k_cache)->extents[3].count;
    const int32_t *row = mgl_call_table(call, r);
    const int p = row[MGL_TABLE_POSITION], first_row = mgl_call_first_row(call, r);
    const int64_t first = mgl_call_table(call, first_row)[MGL_TABLE_POSITION];
    const struct places places = {row[MGL_TABLE_SEQUENCE], first_row, first};
    float *q = call->scratch + d + 4, *room = q + d, *scores = room + d;
    float scale = (float)(1.0 / sqrt((double)d));
    int64_t end = a->tail ? p + 1 : first;
    int lo, hi;
    mgl_split_positions((int)first, a->split, a->splits, call->program->limits.share, &lo, &hi);
    /* n positions: [lo, hi), then [first, end); number i is position lo + i, or after the gap */
    int64_t early = hi - lo, n = early + (end - first);
    mgl_call_load(call, a->q, r, (int64_t)head * d, d, q);
    norm_head(call, mgl_op_attention(call->task->op)->q_g, q, d);
    mgl_rope(q, q, rope_at(call, a->rope, p), d);
    *max = -INFINITY;
    *total = 0.0f;
    memset(sum, 0, (size_t)d * sizeof *sum);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i < early ? lo + i : first + i - early;
        scores[i] = with->dot(q, cached(call, a->k_cache, &places, at, 0, d, room), d) * scale;
        *max = scores[i] > *max ? scores[i] : *max;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i < early ? lo + i : first + i - early;
        float weight = expf(scores[i] - *max);
        with->add_scaled(sum, weight, cached(call, a->v_cache, &places, at, 1, d, room), d);
        *total += weight;
    }
}

static int heads_of(const mgl_call *call, const struct attention *a)
{
    return (int)(mgl_region_width(a->q, 1) / mgl_call_buffer(call, a->k_cache)->extents[3].count);
}

int mgl_attention_items(const mgl_call *call)
{
    struct attention a = attention_of(call);
    return (a.end - a.row) * heads_of(call, &a);
}

/* Stores the mean, in a task with all positions. */
static void store_mean(const mgl_call *call, const struct attention *a, int r, int h)
{
    int64_t d = mgl_call_buffer(call, a->k_cache)->extents[3].count;
    float *mean = call->scratch, max, total; /* (head_dim) */
    attend_row(call, a, r, h, mean, &max, &total);
    for (int64_t i = 0; i < d; i++)
        mean[i] /= total;
    mgl_call_store(call, a->to, r, h * d, d, mean);
}

/* part[split, r, h, :]. */
static void store_partial(const mgl_call *call, const struct attention *a, int r, int h)
{
    const mgl_buffer *buffer = mgl_call_buffer(call, a->to);
    int64_t d = mgl_call_buffer(call, a->k_cache)->extents[3].count;
    float *partial = call->scratch; /* (head_dim + 4); the buffer may have two floats less */
    float *to = (float *)mgl_call_at(call, a->to) + r * mgl_buffer_stride(buffer, 1) +
                h * mgl_buffer_stride(buffer, 2);
    attend_row(call, a, r, h, partial, &partial[d], &partial[d + 1]);
    partial[d + 2] = partial[d + 3] = 0.0f;
    mgl_publish(to, MGL_F32, partial, buffer->extents[3].count);
}

void mgl_attention_item(const mgl_call *call, int item)
{
    struct attention a = attention_of(call);
    int heads = heads_of(call, &a), r = a.row + item / heads, h = item % heads;
    if (!mgl_call_has_row(call, a.to, r))
        return;
    if (mgl_op_attention(call->task->op)->part == MGL_NO_OPERAND)
        store_mean(call, &a, r, h);
    else
        store_partial(call, &a, r, h);
}

size_t mgl_attention_scratch(const mgl_program *program)
{
    return 4 + 4 * (size_t)program->geometry.head_dim + (size_t)program->limits.capacity +
           (size_t)mgl_limits_most(&program->limits);
}

void mgl_attention_all(const mgl_call *call)
{
    mgl_call own = *call;
    mgl_attention_append(call);
    own.now = mgl_attention_now(call);
    own.scratch += own.now ? mgl_attention_now_floats(call->program) : 0;
    for (int i = 0; i < mgl_attention_items(&own); i++)
        mgl_attention_item(&own, i);
}
