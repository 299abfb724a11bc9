/* Tests of each op alone, in the reference and the fast path, against independent formulas in
 * double. All tasks of a lowered program run on random activations and caches with a ragged row
 * table. */
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"
#include "vm/cpu/machine.h"

enum { ROWS = 7, SEQUENCES = 3, CAPACITY = 24 };

/* Sequence 2 with two rows at 9, sequence 0 with four at 0, sequence 1 with one at 23. */
static const int32_t table[ROWS][MGL_TABLE_WORDS] = {
    {2, 9, 3, MGL_WANT_NOTHING},  {2, 10, 17, MGL_WANT_SAMPLE}, {0, 0, 5, MGL_WANT_NOTHING},
    {0, 1, 40, MGL_WANT_NOTHING}, {0, 2, 0, MGL_WANT_SCORE},    {0, 3, 9, MGL_WANT_SCORE},
    {1, 23, 2, MGL_WANT_SAMPLE},
};

struct bench {
    mgl_graph *graph;
    mgl_program *program;
    mgl_machine machine;
    double tolerance; /* tolerance for values of about 1 */
};

static uint32_t random_state;

static float random_float(void)
{
    random_state = random_state * 1664525 + 1013904223;
    return (float)(random_state >> 8) * 0x1p-23f - 1.0f;
}

/* Fills random activations (set 0 of flagged buffers), consistent maxima and sums of partial
 * results, and the cache. */
static void fill(struct bench *b)
{
    const mgl_program *p = b->program;
    for (int i = 0; i < p->buffer_count; i++) {
        const mgl_buffer *buffer = &p->buffers[i];
        if (buffer->space != MGL_SPACE_ACT && buffer->space != MGL_SPACE_KV)
            continue;
        for (int64_t j = 0; j < mgl_buffer_elements(buffer); j++) {
            float value = random_float();
            if (buffer->space == MGL_SPACE_ACT && buffer->rank == 4 &&
                j % buffer->extents[3].count == p->geometry.head_dim + 1)
                value = 1.5f + value;
            mgl_convert((char *)b->machine.buffers[i] + (size_t)j * mgl_dtype_size(buffer->dtype),
                        buffer->dtype, &value, MGL_F32, 1);
        }
    }
}

/* Exchanged values are f32 with counters, and rounded to dtype with flags. */
static void open_bench(struct bench *b, const mgl_geometry *geometry, mgl_dtype dtype, int splits,
                       bool plain, int exchange, int merge)
{
    static const double rounding[] = {2e-5, 4e-3, 5e-4}; /* f32, bf16, f16 */

    mgl_error err;
    fixture_options options = {.queues = 3,
                               .dtype = dtype,
                               .capacity = CAPACITY,
                               .sequences = SEQUENCES,
                               .rows = ROWS,
                               .splits = splits,
                               .exchange = exchange,
                               .merge = merge,
                               .share = merge == MGL_MERGE_IN_O ? 3 : 0};
    memset(b, 0, sizeof *b);
    b->graph = random_graph(geometry, 64, false, dtype, 31);
    b->program = fixture_program(b->graph, &options);
    b->tolerance = rounding[exchange == MGL_EXCHANGE_FLAGS ? dtype : MGL_F32];
    ok(mgl_machine_open(&b->machine, b->program, b->graph,
                        &(mgl_machine_options){.plain = plain, .threads = 2}, &err),
       err);
    random_state = 1;
    fill(b);
}

static void close_bench(struct bench *b)
{
    mgl_machine_close(&b->machine);
    mgl_program_free(b->program);
    mgl_graph_free(b->graph);
}

/* ---- memory, read anew ----------------------------------------------------------------------- */

static double element(const struct bench *b, int buffer, int64_t index)
{
    const mgl_buffer *at = &b->program->buffers[buffer];
    float value;
    mgl_convert(&value, MGL_F32,
                (char *)b->machine.buffers[buffer] + (size_t)index * mgl_dtype_size(at->dtype),
                at->dtype, 1);
    return (double)value;
}

/* Element (r, column of the region) of a rows x columns region. */
static double at(const struct bench *b, const mgl_region *region, int r, int64_t column)
{
    int64_t width = b->program->buffers[region->buffer].extents[1].count;
    return element(b, region->buffer, r * width + region->ranges[1].lo + column);
}

static double cached(const struct bench *b, int buffer, int64_t s, int64_t head, int64_t p,
                     int64_t i)
{
    const mgl_extent *e = b->program->buffers[buffer].extents;
    return element(b, buffer, ((s * e[1].count + head) * e[2].count + p) * e[3].count + i);
}

/* Row `row` of the checkpoint's tensor, as f32. The program's dtype is the checkpoint's here. */
static const float *weights(const struct bench *b, int tensor, int64_t row)
{
    mgl_error err;
    static float values[1024];
    char raw[4096];
    const mgl_program_tensor *t = &b->program->tensors[tensor];
    int index = mgl_graph_find_tensor(b->graph, t->checkpoint);
    ok(b->graph->read(b->graph, index, row, 1, raw, &err), err);
    mgl_convert(values, MGL_F32, raw, b->graph->tensors[index].dtype, (size_t)t->cols);
    return values;
}

/* Row `row` of a tensor times a vector. */
static double product(const struct bench *b, int tensor, int64_t row, const double *x)
{
    const float *w = weights(b, tensor, row);
    double sum = 0.0;
    for (int64_t i = 0; i < b->program->tensors[tensor].cols; i++)
        sum += (double)w[i] * x[i];
    return sum;
}

static void normed(const struct bench *b, const mgl_region *x, const mgl_region *g, int r,
                   double *to)
{
    int64_t n = x->ranges[1].hi;
    double squares = 0.0;
    for (int64_t i = 0; i < n; i++)
        squares += at(b, x, r, i) * at(b, x, r, i);
    for (int64_t i = 0; i < n; i++)
        to[i] = at(b, x, r, i) / sqrt(squares / (double)n + (double)b->program->geometry.eps) *
                element(b, g->buffer, i);
}

/* Element i of a head rotated to position p; x reads the head. */
static double rotated(const struct bench *b, const double *x, int64_t p, int i)
{
    int half = b->program->geometry.head_dim / 2, j = i % half;
    double angle = (double)(b->graph->inv_freq[j] * (float)p);
    return i < half ? x[j] * cos(angle) - x[j + half] * sin(angle)
                    : x[j + half] * cos(angle) + x[j] * sin(angle);
}

/* ---- the ops anew ---------------------------------------------------------------------------- */

static const mgl_region *in(const struct bench *b, const mgl_task *t, int i)
{
    return &b->program->regions[t->in.first + i];
}

static const mgl_region *out(const struct bench *b, const mgl_task *t, int i)
{
    return &b->program->regions[t->out.first + i];
}

static void near(const struct bench *b, const char *what, double found, double wanted)
{
    double tolerance = b->tolerance * (1.0 + fabs(wanted));
    ck_assert_msg(fabs(found - wanted) <= tolerance, "%s: %.9g, not %.9g", what, found, wanted);
}

static void check_embed(const struct bench *b, const mgl_task *t)
{
    const mgl_region *from = in(b, t, 0), *y = out(b, t, 0);
    for (int r = 0; r < ROWS; r++) {
        const float *w =
            weights(b, b->program->buffers[from->buffer].tensor, table[r][MGL_TABLE_TOKEN]);
        for (int64_t i = 0; i < mgl_region_width(from, 1); i++)
            ck_assert_double_eq(at(b, y, r, i), (double)w[from->ranges[1].lo + i]);
    }
}

static void check_norm_linear(const struct bench *b, const mgl_task *t)
{
    double x[600];
    for (int r = 0; r < ROWS; r++) {
        int64_t column = 0;
        normed(b, in(b, t, 0), in(b, t, 1), r, x);
        for (int s = t->segments.first; s < t->segments.first + t->segments.count; s++) {
            const mgl_segment *segment = &b->program->segments[s];
            for (int64_t i = segment->row_lo; i < segment->row_hi; i++, column++)
                near(b, "norm_linear", at(b, out(b, t, 0), r, column),
                     product(b, segment->tensor, i, x));
        }
        ck_assert_int_eq(column, mgl_region_width(out(b, t, 0), 1));
    }
}

static void check_norm_swiglu(const struct bench *b, const mgl_task *t)
{
    double x[600];
    const mgl_segment *segment = &b->program->segments[t->segments.first];
    for (int r = 0; r < ROWS; r++) {
        normed(b, in(b, t, 0), in(b, t, 1), r, x);
        for (int64_t i = segment->row_lo; i < segment->row_hi; i++) {
            double gate = product(b, segment->tensor, i, x);
            near(b, "norm_swiglu", at(b, out(b, t, 0), r, i - segment->row_lo),
                 gate / (1.0 + exp(-gate)) * product(b, segment->tensor2, i, x));
        }
    }
}

static double merged(const struct bench *b, const mgl_region *part, int r, int64_t head, int64_t j)
{
    const mgl_extent *e = b->program->buffers[part->buffer].extents;
    const int64_t d = b->program->geometry.head_dim;
    double sum = 0.0, total = 0.0;
    for (int64_t i = 0; i < e[0].count; i++) {
        int64_t p = ((i * e[1].count + r) * e[2].count + head) * e[3].count;
        double scale = exp(element(b, part->buffer, p + d));
        sum += scale * element(b, part->buffer, p + j);
        total += scale * element(b, part->buffer, p + d + 1);
    }
    return sum / total;
}

static void check_merge(const struct bench *b, const mgl_task *t)
{
    const mgl_region *part = in(b, t, 0);
    int64_t d = b->program->geometry.head_dim;
    for (int r = 0; r < ROWS; r++)
        for (int64_t h = part->ranges[2].lo; h < part->ranges[2].hi; h++)
            for (int64_t j = 0; j < d; j++)
                near(b, "merge", at(b, out(b, t, 0), r, (h - part->ranges[2].lo) * d + j),
                     merged(b, part, r, h, j));
}

/* `before` holds b, which the op may have overwritten. */
static void check_linear_add(const struct bench *b, const mgl_task *t, const double *before)
{
    double a[600];
    const mgl_segment *segment = &b->program->segments[t->segments.first];
    const int64_t width = segment->row_hi - segment->row_lo, d = b->program->geometry.head_dim;
    const bool merges = t->op == MGL_OP_MERGE_ADD;
    for (int r = 0; r < ROWS; r++) {
        for (int64_t i = 0; i < mgl_task_inputs(b->program, t); i++)
            a[i] = merges ? merged(b, in(b, t, 0), r, i / d, i % d) : at(b, in(b, t, 0), r, i);
        for (int64_t i = 0; i < width; i++)
            near(b, mgl_op_get(t->op)->name, at(b, out(b, t, 0), r, i),
                 before[r * width + i] + product(b, segment->tensor, segment->row_lo + i, a));
    }
}

static void check_head(const struct bench *b, const mgl_task *t)
{
    double x[600];
    const mgl_segment *segment = &b->program->segments[t->segments.first];
    for (int r = 0; r < ROWS; r++) {
        double best = -1e30;
        if (table[r][MGL_TABLE_WANT] == MGL_WANT_NOTHING) {
            ck_assert_double_eq(at(b, out(b, t, 0), r, 0), 0.0); /* unchanged */
            continue;
        }
        normed(b, in(b, t, 0), in(b, t, 1), r, x);
        for (int64_t i = segment->row_lo; i < segment->row_hi; i++) {
            double found = at(b, out(b, t, 0), r, i - segment->row_lo);
            near(b, "head", found, product(b, segment->tensor, i, x));
            best = found > best ? found : best;
        }
        int32_t id = ((int32_t *)b->machine.buffers[out(b, t, 2)->buffer])
            [r * b->program->buffers[out(b, t, 2)->buffer].extents[1].count +
             out(b, t, 2)->ranges[1].lo];
        ck_assert_double_eq(at(b, out(b, t, 1), r, 0), best);
        ck_assert_double_eq(at(b, out(b, t, 0), r, id - segment->row_lo), best);
    }
}

/* Computes scores and values of row r, head h over the positions that the task attends to. Returns
 * their number. */
static int attended(const struct bench *b, const mgl_task *t, int r, int h, int64_t kv_head,
                    double *scores, int *positions)
{
    bool past_only = t->op == MGL_OP_ATTEND_PAST, whole = t->op == MGL_OP_ATTEND;
    int d = b->program->geometry.head_dim, count = 0;
    int s = table[r][MGL_TABLE_SEQUENCE], p = table[r][MGL_TABLE_POSITION], first = p;
    for (int i = 0; i < ROWS; i++)
        if (table[i][MGL_TABLE_SEQUENCE] == s && table[i][MGL_TABLE_POSITION] < first)
            first = table[i][MGL_TABLE_POSITION];
    int64_t lo = 0, hi = first;
    if (!whole) {
        int splits = (int)b->program->buffers[out(b, t, 0)->buffer].extents[0].count;
        int split = (int)out(b, t, 0)->ranges[0].lo;
        int used = splits, place = split;
        if (b->program->limits.share) { /* each split in use has at most this number of positions */
            for (used = 1; used < splits && used * b->program->limits.share < first;)
                used++;
            place = split == splits - 1 ? used - 1 : split;
        }
        lo = first * place / used;
        hi = place == used - 1 && split < splits - 1 ? lo : first * (place + 1) / used;
        if (place >= used)
            lo = hi = 0;
    }
    double q[128];
    for (int i = 0; i < d; i++)
        q[i] = at(b, in(b, t, 0), r, h * d + i);
    for (int j = 0; j <= p; j++) {
        bool now = j >= first;
        if (now ? past_only : j < lo || j >= hi)
            continue;
        double score = 0.0;
        for (int i = 0; i < d; i++)
            score += rotated(b, q, p, i) *
                     cached(b, in(b, t, past_only ? 2 : 4)->buffer, s, kv_head, j, i);
        scores[count] = score / sqrt((double)d);
        positions[count++] = j;
    }
    return count;
}

/* This epoch's rotated k, and v, as the cache must contain them. */
static void check_appended(const struct bench *b, const mgl_task *t, int64_t kv_head)
{
    int d = b->program->geometry.head_dim;
    mgl_dtype dtype = b->program->kv_dtype;
    double rounding = dtype == MGL_F32 ? 1e-6 : dtype == MGL_BF16 ? 0.0079 : 0.001;
    for (int r = 0; r < ROWS; r++) {
        int s = table[r][MGL_TABLE_SEQUENCE], p = table[r][MGL_TABLE_POSITION];
        double k[128];
        for (int i = 0; i < d; i++)
            k[i] = at(b, in(b, t, 1), r, i);
        for (int i = 0; i < d; i++) {
            double found = cached(b, out(b, t, 1)->buffer, s, kv_head, p, i);
            ck_assert_double_eq_tol(found, rotated(b, k, p, i), rounding);
            found = cached(b, out(b, t, 2)->buffer, s, kv_head, p, i);
            ck_assert_double_eq_tol(found, at(b, in(b, t, 2), r, i), rounding);
        }
    }
}

static void check_attention(const struct bench *b, const mgl_task *t)
{
    int d = b->program->geometry.head_dim, positions[64];
    bool whole = t->op == MGL_OP_ATTEND, past_only = t->op == MGL_OP_ATTEND_PAST;
    int heads = (int)(mgl_region_width(in(b, t, 0), 1) / d);
    const mgl_region *y = out(b, t, 0);
    const mgl_extent *e = b->program->buffers[y->buffer].extents;
    int64_t kv_head = in(b, t, past_only ? 2 : 4)->ranges[1].lo;
    int v_cache = in(b, t, past_only ? 3 : 5)->buffer;
    if (!past_only)
        check_appended(b, t, kv_head);
    for (int r = 0; r < ROWS; r++) {
        for (int h = 0; h < heads; h++) {
            double scores[64], max = -INFINITY, total = 0.0;
            int n = attended(b, t, r, h, kv_head, scores, positions);
            for (int i = 0; i < n; i++)
                max = scores[i] > max ? scores[i] : max;
            for (int i = 0; i < n; i++)
                total += exp(scores[i] - max);
            int64_t part = ((y->ranges[0].lo * e[1].count + r) * e[2].count + y->ranges[2].lo + h) *
                           e[3].count;
            for (int j = 0; j < d; j++) {
                double sum = 0.0;
                for (int i = 0; i < n; i++)
                    sum += exp(scores[i] - max) * cached(b, v_cache, table[r][MGL_TABLE_SEQUENCE],
                                                         kv_head, positions[i], j);
                if (whole)
                    near(b, "attend", at(b, y, r, h * d + j), sum / total);
                else
                    near(b, "partial", element(b, y->buffer, part + j), sum);
            }
            if (!whole && n == 0)
                ck_assert(isinf(element(b, y->buffer, part + d)));
            else if (!whole)
                near(b, "max", element(b, y->buffer, part + d), max);
            if (!whole)
                near(b, "total", element(b, y->buffer, part + d + 1), total);
            for (int j = d + 2; !whole && j < e[3].count; j++)
                ck_assert_double_eq(element(b, y->buffer, part + j), 0.0);
        }
    }
}

/* The copy operand of embed and linear_add is their first output, rounded. */
static void check_copy(const struct bench *b, const mgl_task *t)
{
    const mgl_region *y = out(b, t, 0), *copy = out(b, t, 1);
    mgl_dtype dtype = b->program->buffers[copy->buffer].dtype;
    for (int r = 0; r < ROWS; r++) {
        for (int64_t i = 0; i < mgl_region_width(y, 1); i++) {
            float value = (float)at(b, y, r, i), rounded;
            char bits[4];
            mgl_convert(bits, dtype, &value, MGL_F32, 1);
            mgl_convert(&rounded, MGL_F32, bits, dtype, 1);
            ck_assert_double_eq(at(b, copy, r, i), (double)rounded);
        }
    }
}

static void check_task(const struct bench *b, const mgl_task *t, const double *before)
{
    if ((t->op == MGL_OP_EMBED || mgl_op_adds(t->op)) && t->out.count == 2)
        check_copy(b, t);
    switch (t->op) {
    case MGL_OP_EMBED:
        check_embed(b, t);
        break;
    case MGL_OP_NORM_LINEAR:
        check_norm_linear(b, t);
        break;
    case MGL_OP_NORM_SWIGLU:
        check_norm_swiglu(b, t);
        break;
    case MGL_OP_LINEAR_ADD:
    case MGL_OP_MERGE_ADD:
        check_linear_add(b, t, before);
        break;
    case MGL_OP_HEAD:
        check_head(b, t);
        break;
    case MGL_OP_MERGE:
        check_merge(b, t);
        break;
    case MGL_OP_ATTEND:
    case MGL_OP_ATTEND_TAIL:
    case MGL_OP_ATTEND_PAST:
        check_attention(b, t);
        break;
    default:
        break;
    }
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void execute(struct bench *b, int task, mgl_epoch_rows *rows)
{
    static const int32_t asked[MGL_ASKED_WORDS];
    mgl_machine *m = &b->machine;
    mgl_call call = {.program = b->program,
                     .asked = asked,
                     .task = &b->program->tasks[task],
                     .buffers = m->buffers,
                     .tapes = &m->segment_tapes[b->program->tasks[task].segments.first],
                     .epoch = rows,
                     .scratch = m->scratch};
    if (m->plain || !mgl_fast_execute(m, &call))
        mgl_reference_op(call.task->op)(&call);
}

/* Every task of the first layer, the embedding and the head, each on fresh random memory. */
static void check_program(const mgl_geometry *geometry, mgl_dtype dtype, int splits, bool plain,
                          int exchange, int merge)
{
    struct bench b;
    mgl_epoch_rows rows = {.go = 1, .rows = ROWS};
    int seen[MGL_OP_COUNT] = {0};
    open_bench(&b, geometry, dtype, splits, plain, exchange, merge);
    memcpy(rows.table, table, sizeof table);
    for (int q = 0; q < b.program->queue_count; q++) {
        const mgl_run *run = &b.program->queues[q].tasks;
        for (int i = run->first; i < run->first + run->count; i++) {
            const mgl_task *t = &b.program->tasks[i];
            static double before[ROWS * 600];
            if (t->op == MGL_OP_ENTER || t->op == MGL_OP_DRAW || t->op == MGL_OP_SAMPLE ||
                t->op == MGL_OP_CLEAR)
                continue;
            fill(&b);
            const mgl_region *y = out(&b, t, 0);
            int64_t width = mgl_region_width(y, 1);
            for (int j = 0; mgl_op_adds(t->op) && j < ROWS * width; j++)
                before[j] = at(&b, in(&b, t, 1), (int)(j / width), j % width);
            execute(&b, i, &rows);
            check_task(&b, t, before);
            seen[t->op]++;
        }
    }
    ck_assert_int_gt(seen[MGL_OP_HEAD], 0);
    ck_assert_int_gt(seen[splits > 1 ? MGL_OP_ATTEND_PAST : MGL_OP_ATTEND], 0);
    close_bench(&b);
}

START_TEST(ops_compute_their_formulas)
{
    mgl_dtype dtype = (mgl_dtype)(_i % 3);
    for (int plain = 0; plain < 2; plain++) {
        for (int exchange = 1; exchange <= 2; exchange++) {
            check_program(&tiny_model, dtype, 1, plain, exchange, 0);
            check_program(&small_model, dtype, 3, plain, exchange, MGL_MERGE_TASKS);
            check_program(&small_model, dtype, 3, plain, exchange, MGL_MERGE_IN_O);
        }
    }
}
END_TEST

/* An irregular shape: columns and rows do not fill blocks. */
START_TEST(odd_shapes)
{
    static const mgl_geometry odd = {36, 1, 3, 1, 12, 50, 61, 1e-5f};
    check_program(&odd, (mgl_dtype)_i, 2, true, MGL_EXCHANGE_COUNTERS, 0);
    check_program(&odd, (mgl_dtype)_i, 1, false, MGL_EXCHANGE_COUNTERS, 0);
}
END_TEST

START_TEST(dot_has_its_stated_order)
{
    float a[37], b[37], sums[16] = {0};
    random_state = 3;
    for (int i = 0; i < 37; i++) {
        a[i] = random_float();
        b[i] = random_float();
        volatile float product = a[i] * b[i];
        sums[i % 16] += product;
    }
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] += sums[i + half];
    ck_assert_float_eq(mgl_dot(a, b, 37), sums[0]);
    ck_assert_float_eq(mgl_dot(a, b, 0), 0.0f);
}
END_TEST

START_TEST(enter_copies_what_sample_wrote)
{
    struct bench b;
    mgl_epoch_rows rows = {0};
    open_bench(&b, &tiny_model, MGL_F32, 1, true, MGL_EXCHANGE_COUNTERS, 0);
    int32_t *control = b.machine.buffers[b.machine.io->control];
    control[MGL_CONTROL_ROWS] = 5;
    control[MGL_CONTROL_GO] = 1;
    control[MGL_CONTROL_EPOCH] = 12;
    memcpy(b.machine.buffers[b.machine.io->table], table, sizeof table);
    execute(&b, 0, &rows);
    ck_assert_int_eq(rows.rows, 5);
    ck_assert_int_eq(rows.go, 1);
    ck_assert_int_eq(rows.epoch, 12);
    ck_assert_mem_eq(rows.table, table, sizeof table);
    close_bench(&b);
}
END_TEST

/* Sequence 0 is scored, 1 draws its last token, 2 has its first one. */
static void start_sequences(const mgl_machine *m)
{
    int32_t *sequences = m->buffers[m->io->sequence];
    const float temperature = 0.5f;
    for (int s = 0; s < SEQUENCES; s++) {
        int32_t *q = sequences + s * MGL_SEQUENCE_WORDS;
        q[MGL_SEQUENCE_STATE] = MGL_STATE_RUNNING;
        q[MGL_SEQUENCE_MODE] = s == 0 ? MGL_WANT_SCORE : MGL_WANT_SAMPLE;
        q[MGL_SEQUENCE_PROMPT] = s == 0 ? 5 : 2;
        q[MGL_SEQUENCE_LENGTH] = s == 0 ? 4 : s == 1 ? 24 : 11;
        q[MGL_SEQUENCE_MAX_NEW] = s == 0 ? 0 : 3;
        q[MGL_SEQUENCE_PRODUCED] = s == 1 ? 2 : 0;
    }
    memcpy(&sequences[MGL_SEQUENCE_WORDS + MGL_SEQUENCE_TEMPERATURE], &temperature, 4);
    sequences[MGL_SEQUENCE_WORDS + MGL_SEQUENCE_SEED_LO] = 77;
}

/* Row 1 takes the lowest of equal best tokens, row 6 draws, rows 4 and 5 are scored. */
START_TEST(sample_decides)
{
    struct bench b;
    mgl_epoch_rows rows = {.go = 1, .rows = ROWS, .epoch = 4};
    open_bench(&b, &tiny_model, MGL_F32, 1, true, MGL_EXCHANGE_COUNTERS, 0);
    memcpy(rows.table, table, sizeof table);
    const mgl_machine *m = &b.machine;
    const mgl_program *p = b.program;
    int last = p->queues[0].tasks.first + p->queues[0].tasks.count - 1;
    int parts = (int)p->buffers[m->io->best_value].extents[1].count;
    float *logits = m->buffers[m->io->logits], *values = m->buffers[m->io->best_value];
    int32_t *ids = m->buffers[m->io->best_id], *sequences = m->buffers[m->io->sequence];
    int32_t *prompt = m->buffers[m->io->prompt], *output = m->buffers[m->io->output];
    float *score = m->buffers[m->io->score];
    ck_assert_int_eq(p->tasks[last].op, MGL_OP_SAMPLE);
    for (int i = 0; i < ROWS * 41; i++)
        logits[i] = random_float() * 3.0f;
    for (int i = 0; i < parts; i++) {
        values[parts + i] = 2.0f;
        ids[parts + 1 + i] = 40 - i; /* one more id for each row: the drawn token */
    }
    for (int r = 0; r < ROWS; r += ROWS - 1)
        for (int i = 0; i < parts; i++)
            values[r * parts + i] = 1.0f;
    start_sequences(m);
    for (int i = 0; i < 5; i++)
        prompt[i] = 7 + i;
    for (int t = 0; t < p->task_count; t++)
        if (p->tasks[t].op == MGL_OP_DRAW)
            execute(&b, t, &rows);
    for (int r = 0; r < ROWS; r++)
        ck_assert_int_eq(ids[r * (parts + 1) + parts] == MGL_NO_TOKEN, r != 6);
    execute(&b, last, &rows);
    ck_assert_int_eq(output[2 * CAPACITY], 41 - parts);
    /* key (77, 0), counter (token 2, 0, 0, 0), independent of the sequence */
    unsigned counter[4] = {2, 0, 0, 0}, key[2] = {77, 0}, word[4];
    mgl_philox(counter, key, word);
    ck_assert_int_eq(output[CAPACITY + 2],
                     mgl_sampler_draw(logits + 6 * 41, 41, 0.5f, 0, 0.0f, 0.0f,
                                      (unsigned long long)word[1] << 32 | word[0]));
    ck_assert_int_eq(sequences[MGL_SEQUENCE_WORDS + MGL_SEQUENCE_STATE], MGL_STATE_LENGTH);
    ck_assert_int_eq(sequences[MGL_SEQUENCE_STATE], MGL_STATE_LENGTH);
    for (int r = 4; r < 6; r++) {
        double sum = 0.0;
        for (int i = 0; i < 41; i++)
            sum += exp((double)logits[r * 41 + i]);
        ck_assert_double_eq_tol((double)score[r - 1],
                                (double)logits[r * 41 + prompt[r - 1]] - log(sum), 1e-5);
    }
    /* only sequence 2 continues: position 11 with the new token */
    const int32_t *control = m->buffers[m->io->control], *next = m->buffers[m->io->table];
    ck_assert_int_eq(control[MGL_CONTROL_ROWS], 1);
    ck_assert_int_eq(control[MGL_CONTROL_GO], 1);
    ck_assert_int_eq(control[MGL_CONTROL_EPOCH], 5);
    ck_assert_int_eq(next[MGL_TABLE_SEQUENCE], 2);
    ck_assert_int_eq(next[MGL_TABLE_POSITION], 11);
    ck_assert_int_eq(next[MGL_TABLE_TOKEN], 41 - parts);
    close_bench(&b);
}
END_TEST

/* Parts of row 1 (greedy) and row 6 (draws) with a NaN, or without a finite value. */
static const float no_numbers[] = {NAN, INFINITY, -INFINITY};

START_TEST(sample_makes_no_token_of_what_is_no_number)
{
    struct bench b;
    mgl_epoch_rows rows = {.go = 1, .rows = ROWS, .epoch = 4};
    open_bench(&b, &tiny_model, MGL_F32, 1, true, MGL_EXCHANGE_COUNTERS, 0);
    memcpy(rows.table, table, sizeof table);
    const mgl_machine *m = &b.machine;
    const mgl_run *tasks = &b.program->queues[0].tasks;
    const int parts = (int)b.program->buffers[m->io->best_value].extents[1].count;
    float *values = m->buffers[m->io->best_value];
    const int32_t *sequences = m->buffers[m->io->sequence], *output = m->buffers[m->io->output];
    ck_assert_int_gt(parts, 1);
    for (int i = 0; i < parts; i++)
        values[parts + i] = values[6 * parts + i] =
            i == 1 || no_numbers[_i] < 0 ? no_numbers[_i] : 2.0f;
    start_sequences(m);
    execute(&b, tasks->first + tasks->count - 1, &rows);
    for (int s = 1; s <= 2; s++) {
        const int32_t *q = sequences + s * MGL_SEQUENCE_WORDS;
        ck_assert_int_eq(q[MGL_SEQUENCE_STATE], MGL_STATE_NOT_A_NUMBER);
        ck_assert_int_eq(q[MGL_SEQUENCE_PRODUCED], s == 1 ? 2 : 0);
        ck_assert_int_eq(output[s * CAPACITY + q[MGL_SEQUENCE_PRODUCED]], 0);
    }
    ck_assert_int_eq(((int32_t *)m->buffers[m->io->control])[MGL_CONTROL_GO], 0);
    close_bench(&b);
}
END_TEST

/* A program of one task over one flagged buffer: (3 rows, 8) f32 in two sets of 24 words. */
struct flagged {
    mgl_program *program;
    uint32_t words[48];
    void *buffers[1];
    mgl_epoch_rows epoch;
    mgl_call call;
};

static void open_flagged(struct flagged *f, mgl_op op, mgl_range columns)
{
    mgl_error err;
    mgl_buffer buffer = {.name = "h",
                         .space = MGL_SPACE_ACT,
                         .dtype = MGL_F32,
                         .rank = 2,
                         .extents = {{MGL_ROWS, 3}, {MGL_FIXED, 8}},
                         .tensor = -1,
                         .sets = 2};
    mgl_region region = {.ranges = {{MGL_RANGE_ROWS, 0, 0}, columns}};
    memset(f, 0, sizeof *f);
    ok(mgl_program_new(&f->program, &err), err);
    f->program->limits.rows = 3;
    mgl_program_add_buffer(f->program, &buffer);
    mgl_program_add_queue(f->program);
    mgl_program_add_task(f->program, op);
    mgl_program_add_out(f->program, &region);
    f->buffers[0] = f->words;
    f->call = (mgl_call){.program = f->program,
                         .task = &f->program->tasks[0],
                         .buffers = f->buffers,
                         .epoch = &f->epoch};
}

/* `clear` clears all rows of its columns, in the set of the next epoch. */
START_TEST(clear_marks_its_columns)
{
    struct flagged f;
    open_flagged(&f, MGL_OP_CLEAR, (mgl_range){MGL_RANGE_FIXED, 4, 8});
    f.epoch = (mgl_epoch_rows){.rows = 1, .turn = 6 + _i};
    mgl_reference_op(MGL_OP_CLEAR)(&f.call);
    for (int i = 0; i < 48; i++)
        ck_assert_uint_eq(f.words[i], i / 24 == _i || i % 8 < 4 ? 0 : UINT32_MAX);
    mgl_program_free(f.program);
}
END_TEST

/* Words of the epoch's rows, in its set. */
START_TEST(a_region_is_written_when_all_its_words_are)
{
    struct flagged f;
    open_flagged(&f, MGL_OP_EMBED, (mgl_range){MGL_RANGE_FIXED, 4, 8});
    f.epoch = (mgl_epoch_rows){.rows = 2, .turn = 3};
    const mgl_region *region = mgl_call_out(&f.call, 0);
    for (int i = 0; i < 48; i++) {
        bool within = i >= 24 && i < 40 && i % 8 >= 4;
        f.words[i] = UINT32_MAX;
        ck_assert_int_eq(mgl_call_written(&f.call, region), !within);
        f.words[i] = UINT32_MAX - 1;
    }
    mgl_program_free(f.program);
}
END_TEST

/* NaNs of each kind: as a float, and truncated to 16 bits. */
START_TEST(no_published_value_is_all_ones)
{
    static const uint32_t nans[] = {UINT32_MAX, 0x7FFFFFFF, 0xFF800001, 0x7FC00000, 0xFFFF0000};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        float value[2];
        uint32_t word;
        memcpy(&value[0], &nans[i], sizeof word);
        value[1] = value[0];
        mgl_publish(&word, MGL_F32, value, 1);
        ck_assert_uint_eq(word, 0x7FFFFFFF);
        mgl_publish(&word, MGL_BF16, value, 2);
        ck_assert_uint_eq(word, 0x7FFF7FFF);
        mgl_publish(&word, MGL_F16, value, 2);
        ck_assert_uint_eq(word, 0x7FFF7FFF);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("reference");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, ops_compute_their_formulas, 0, 3);
    tcase_add_loop_test(tests, odd_shapes, 0, 3);
    tcase_add_test(tests, dot_has_its_stated_order);
    tcase_add_test(tests, enter_copies_what_sample_wrote);
    tcase_add_test(tests, sample_decides);
    tcase_add_loop_test(tests, sample_makes_no_token_of_what_is_no_number, 0, 3);
    tcase_add_loop_test(tests, clear_marks_its_columns, 0, 2);
    tcase_add_test(tests, a_region_is_written_when_all_its_words_are);
    tcase_add_test(tests, no_published_value_is_all_ones);
    return fixture_main("reference", tests);
}
