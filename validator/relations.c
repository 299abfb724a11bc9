/*
 * MG1xx after bounds.c, when every region is inside its buffer: how the operands of one task fit
 * each other and the model, and which buffer has which role between enter and sample. validator.c
 * calls mgl_check_relations.
 *
 * This file lists all legal combinations. The table of relations is generated from ops.def, and an
 * op without a relation does not compile.
 */
#include "validator/check.h"

#include <inttypes.h>
#include <string.h>

/* The task whose relations are checked. */
struct view {
    mgl_check *check;
    int task;
    const mgl_geometry *model;
    const mgl_segment *segments; /* of the task */
};

static bool has(const struct view *v, int operand)
{
    return mgl_task_place(&v->check->program->tasks[v->task], operand) >= 0;
}

/* The region of an operand, which the task must have. */
static const mgl_region *region_of(const struct view *v, int operand)
{
    return mgl_task_operand(v->check->program, &v->check->program->tasks[v->task], operand);
}

static const mgl_range *range(const struct view *v, int operand, int dimension)
{
    return &region_of(v, operand)->ranges[dimension];
}

/* Number of columns in the slice of a rank-2 operand. */
static int64_t columns(const struct view *v, int operand)
{
    return mgl_range_length(range(v, operand, 1));
}

static const mgl_buffer *buffer_of(const struct view *v, int operand)
{
    return &v->check->program->buffers[region_of(v, operand)->buffer];
}

static int64_t extent(const struct view *v, int operand, int dimension)
{
    return buffer_of(v, operand)->extents[dimension].count;
}

static void equal(const struct view *v, const char *what, int64_t is, const char *of,
                  int64_t wanted)
{
    char name[MGL_NAME_TEXT];
    if (is != wanted)
        mgl_check_report(v->check, 109, v->task, 0, "%s: %s is %" PRId64 ", but %s is %" PRId64,
                         mgl_check_task(v->check, v->task, name), what, is, of, wanted);
}

static void demand(const struct view *v, bool condition, const char *what)
{
    char name[MGL_NAME_TEXT];
    if (!condition)
        mgl_check_report(v->check, 109, v->task, 0, "%s: %s",
                         mgl_check_task(v->check, v->task, name), what);
}

static int64_t group_width(const struct view *v)
{
    return (int64_t)(v->model->heads / v->model->kv_heads) * v->model->head_dim;
}

/* Segments must stream whole rows of tensors of shape (rows, cols); rows 0: any number of rows. */
static void check_tensors(const struct view *v, int64_t rows, int64_t cols)
{
    const mgl_program *p = v->check->program;
    int count = p->tasks[v->task].segments.count;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < 2; j++) {
            int index = j ? v->segments[i].tensor2 : v->segments[i].tensor;
            if (index < 0)
                continue;
            const mgl_program_tensor *tensor = &p->tensors[index];
            equal(v, "the tensor's number of columns", tensor->cols, "the input's width", cols);
            if (rows)
                equal(v, "the tensor's number of rows", tensor->rows, "the output's width", rows);
            equal(v, "the first streamed column", v->segments[i].col_lo, "the tensor's first", 0);
            equal(v, "the end of the streamed columns", v->segments[i].col_hi, "the tensor's",
                  tensor->cols);
        }
}

static int64_t streamed_rows(const struct view *v)
{
    int64_t rows = 0;
    for (int i = 0; i < v->check->program->tasks[v->task].segments.count; i++)
        rows += mgl_segment_rows(&v->segments[i]);
    return rows;
}

/* The task has a bias for each tensor on its tape, or none. */
static void check_biases(const struct view *v, int first)
{
    const mgl_program *p = v->check->program;
    const mgl_task *task = &p->tasks[v->task];
    int tensors = 0, biases = task->in.count - mgl_op_get(task->op)->in_count;
    for (int i = 0; i < task->segments.count; i++)
        for (int j = 0; j < 2; j++) {
            int index = j ? v->segments[i].tensor2 : v->segments[i].tensor;
            if (index < 0 || tensors++ >= biases)
                continue;
            const int bias = first + tensors - 1;
            equal(v, "the width of a bias", extent(v, bias, 0), "its tensor's number of rows",
                  p->tensors[index].rows);
            demand(v, buffer_of(v, bias)->source == MGL_SOURCE_TENSOR,
                   "a bias must come from a tensor");
        }
    if (biases)
        equal(v, "the number of biases", biases, "the number of tensors on its tape", tensors);
}

/* x (rows, hidden) and its norm g (hidden). */
static void check_normed(const struct view *v, int x, int g)
{
    equal(v, "the width of x", extent(v, x, 1), "hidden", v->model->hidden);
    equal(v, "the width of g", extent(v, g, 0), "hidden", v->model->hidden);
    demand(v, buffer_of(v, g)->source == MGL_SOURCE_TENSOR, "g must come from a tensor");
}

static void check_enter(const struct view *v)
{
    const mgl_program *p = v->check->program;
    const mgl_task *sample = &p->tasks[v->check->sample];
    int control = mgl_task_operand(p, sample, MGL_OPERAND(sample, control))->buffer;
    int table = mgl_task_operand(p, sample, MGL_OPERAND(sample, table))->buffer;
    char name[MGL_NAME_TEXT];
    if (region_of(v, MGL_OPERAND(enter, control))->buffer != control ||
        region_of(v, MGL_OPERAND(enter, table))->buffer != table)
        mgl_check_report(v->check, 112, v->task, 0,
                         "%s does not read the control and table that sample writes (%.48s, %.48s)",
                         mgl_check_task(v->check, v->task, name), p->buffers[control].name,
                         p->buffers[table].name);
}

/* Two operands must have the same columns of their buffers. */
static void check_columns(const struct view *v, int one, int other, const char *what)
{
    demand(v,
           range(v, one, 1)->lo == range(v, other, 1)->lo &&
               range(v, one, 1)->hi == range(v, other, 1)->hi,
           what);
}

/* y and its copy, if the task has a copy. */
static void check_copy(const struct view *v, int y, int copy)
{
    if (has(v, copy))
        check_columns(v, y, copy, "y and copy must have the same columns");
}

/* y of embed or embed_gamma, whose table is its first operand. */
static void check_gathered(const struct view *v, int y)
{
    const int embedding = MGL_OPERAND(embed, embedding);
    equal(v, "the embedding's number of rows", extent(v, embedding, 0), "vocab", v->model->vocab);
    equal(v, "the embedding's width", extent(v, embedding, 1), "hidden", v->model->hidden);
    equal(v, "the width of y", columns(v, y), "the width of the embedding's slice",
          columns(v, embedding));
    demand(v, buffer_of(v, embedding)->source == MGL_SOURCE_TENSOR,
           "the embedding must come from a tensor");
}

static void check_embed(const struct view *v)
{
    check_gathered(v, MGL_OPERAND(embed, y));
    check_copy(v, MGL_OPERAND(embed, y), MGL_OPERAND(embed, copy));
}

/* y of norm_linear or rms_linear, and its biases. */
static void check_linear(const struct view *v, int y, int bias)
{
    check_tensors(v, 0, v->model->hidden);
    equal(v, "the width of y", columns(v, y), "the number of streamed rows", streamed_rows(v));
    check_biases(v, bias);
}

static void check_norm_linear(const struct view *v)
{
    check_normed(v, MGL_OPERAND(norm_linear, x), MGL_OPERAND(norm_linear, g));
    check_linear(v, MGL_OPERAND(norm_linear, y), MGL_OPERAND(norm_linear, bias));
}

static void check_rope(const struct view *v, int rope)
{
    demand(v, buffer_of(v, rope)->source == MGL_SOURCE_ROPE, "rope must be the rope table");
}

/* The cache operands of one kv head: the same head of k and of v, both read and appended. */
static void check_cache(const struct view *v, const mgl_attention_operands *o)
{
    int64_t head = range(v, o->k_past, 1)->lo;
    demand(v, region_of(v, o->k_past)->buffer != region_of(v, o->v_past)->buffer,
           "k and v must have separate caches");
    equal(v, "the kv head of v_past", range(v, o->v_past, 1)->lo, "the kv head of k_past", head);
    if (o->k_now == MGL_NO_OPERAND || !has(v, o->k_now) || !has(v, o->v_now))
        return;
    equal(v, "the kv head of k_now", range(v, o->k_now, 1)->lo, "the kv head of k_past", head);
    equal(v, "the kv head of v_now", range(v, o->v_now, 1)->lo, "the kv head of k_past", head);
    demand(v,
           region_of(v, o->k_now)->buffer == region_of(v, o->k_past)->buffer &&
               region_of(v, o->v_now)->buffer == region_of(v, o->v_past)->buffer,
           "k_now and v_now must be the buffers of k_past and v_past");
}

static void check_query(const struct view *v, const mgl_attention_operands *o)
{
    equal(v, "the width of q", columns(v, o->q), "the width of a group of heads", group_width(v));
    if (o->k == MGL_NO_OPERAND)
        return;
    equal(v, "the width of k", columns(v, o->k), "head_dim", v->model->head_dim);
    equal(v, "the width of v", columns(v, o->v), "head_dim", v->model->head_dim);
}

/* The weight of the norm of q's or k's heads. */
static void check_head_norm(const struct view *v, int g)
{
    equal(v, "the width of a norm of q or k", extent(v, g, 0), "head_dim", v->model->head_dim);
    demand(v, buffer_of(v, g)->source == MGL_SOURCE_TENSOR,
           "a norm of q or k must come from a tensor");
}

static void check_head_norms(const struct view *v, const mgl_attention_operands *o)
{
    if (has(v, o->q_g))
        check_head_norm(v, o->q_g);
    if (o->k_g == MGL_NO_OPERAND)
        return;
    if (has(v, o->k_g))
        check_head_norm(v, o->k_g);
    demand(v, has(v, o->q_g) == has(v, o->k_g), "it has a norm of q and none of k");
}

/* part (splits, rows, heads, head_dim + 2 or + 4); `heads` is the length of its slice, 0: any. */
static void check_part(const struct view *v, int part, int64_t heads)
{
    int64_t splits = extent(v, part, 0);
    demand(v, splits >= 2 && splits <= MGL_MAX_SPLITS, "part must have 2 to 64 splits");
    equal(v, "the number of heads of part", extent(v, part, 2), "heads", v->model->heads);
    int64_t beyond = extent(v, part, 3) - v->model->head_dim;
    demand(v, beyond == 2 || beyond == 4, "the last extent of part must be head_dim + 2 or + 4");
    if (heads)
        equal(v, "the number of heads in the slice of part", mgl_range_length(range(v, part, 2)),
              "the number of heads in a group", heads);
}

/* The kind of a range's rows: MGL_ROWS_UNSPLIT or MGL_ROWS_SPLIT; -1: all rows. */
static int64_t rows_of(const mgl_range *range)
{
    return mgl_range_has_row_kind(range) ? range->lo : -1;
}

/* Checks the rows in dimension `dimension` of operand `result`: if they are the unsplit or the
 * split rows, the program must have limits.unsplit. A task that appends (k_now and v_now are not
 * MGL_NO_OPERAND, and are present) must append the same rows. */
static void check_split_rows(const struct view *v, int result, int dimension, int k_now, int v_now)
{
    const int64_t rows = rows_of(range(v, result, dimension));
    demand(v, rows < 0 || v->check->program->limits.unsplit > 0,
           "unsplit and split rows need `unsplit` in the limits");
    if (k_now != MGL_NO_OPERAND && has(v, k_now))
        demand(v, rows_of(range(v, k_now, 2)) == rows && rows_of(range(v, v_now, 2)) == rows,
               "the result, k_now and v_now must have the same rows");
}

/* Relations that all ops of attention share. */
static void check_attention(const struct view *v)
{
    const mgl_attention_operands *o = mgl_op_attention(v->check->program->tasks[v->task].op);
    check_query(v, o);
    check_rope(v, o->rope);
    check_head_norms(v, o);
    check_cache(v, o);
    if (o->part != MGL_NO_OPERAND)
        check_part(v, o->part, v->model->heads / v->model->kv_heads);
}

static void check_attend(const struct view *v)
{
    check_attention(v);
    check_split_rows(v, MGL_OPERAND(attend, y), 0, MGL_OPERAND(attend, k_now),
                     MGL_OPERAND(attend, v_now));
    equal(v, "the width of y", columns(v, MGL_OPERAND(attend, y)), "the width of q",
          columns(v, MGL_OPERAND(attend, q)));
}

static void check_attend_tail(const struct view *v)
{
    check_attention(v);
    check_split_rows(v, MGL_OPERAND(attend_tail, part), 1, MGL_OPERAND(attend_tail, k_now),
                     MGL_OPERAND(attend_tail, v_now));
}

static void check_attend_past(const struct view *v)
{
    check_attention(v);
    check_split_rows(v, MGL_OPERAND(attend_past, part), 1, MGL_NO_OPERAND, MGL_NO_OPERAND);
}

static void check_attend_rows(const struct view *v)
{
    const int q = MGL_OPERAND(attend_rows, q), y = MGL_OPERAND(attend_rows, y);
    const int k_now = MGL_OPERAND(attend_rows, k_now);
    check_attention(v);
    demand(v, !has(v, k_now) || rows_of(range(v, k_now, 2)) < 0, "k_now must have all rows");
    demand(v,
           !has(v, MGL_OPERAND(attend_rows, v_now)) ||
               rows_of(range(v, MGL_OPERAND(attend_rows, v_now), 2)) < 0,
           "v_now must have all rows");
    equal(v, "the width of y", columns(v, y), "the width of q", columns(v, q));
    demand(v, range(v, q, 0)->lo == range(v, y, 0)->lo && range(v, q, 0)->hi == range(v, y, 0)->hi,
           "q and y must be of the same share of the rows");
    demand(v, has(v, MGL_OPERAND(attend_rows, k_now)) == has(v, MGL_OPERAND(attend_rows, v_now)),
           "it has k_now and v_now, or neither");
}

static void check_merge(const struct view *v)
{
    const int part = MGL_OPERAND(merge, part), y = MGL_OPERAND(merge, y);
    check_part(v, part, 0);
    check_split_rows(v, part, 1, MGL_NO_OPERAND, MGL_NO_OPERAND);
    demand(v, rows_of(range(v, part, 1)) == rows_of(range(v, y, 0)),
           "part and y must have the same rows");
    equal(v, "the width of y", columns(v, MGL_OPERAND(merge, y)),
          "heads in the slice of part x head_dim",
          mgl_range_length(range(v, MGL_OPERAND(merge, part), 2)) * v->model->head_dim);
}

/* y and the values derived from it: n has the same columns, as does g, and s has its own buffer. */
static void check_gamma_scaled(const struct view *v, int y, int g, int n, int s)
{
    equal(v, "the width of g", extent(v, g, 0), "hidden", v->model->hidden);
    demand(v, buffer_of(v, g)->source == MGL_SOURCE_TENSOR, "g must come from a tensor");
    equal(v, "the width of n's buffer", extent(v, n, 1), "hidden", v->model->hidden);
    check_columns(v, y, n, "y and n must have the same columns");
    demand(v, range(v, g, 0)->lo == range(v, y, 1)->lo && range(v, g, 0)->hi == range(v, y, 1)->hi,
           "y and g must have the same columns");
    demand(v,
           region_of(v, s)->buffer != region_of(v, y)->buffer &&
               region_of(v, s)->buffer != region_of(v, n)->buffer,
           "s must have its own buffer");
}

static void check_embed_gamma(const struct view *v)
{
    const int y = MGL_OPERAND(embed_gamma, y);
    check_gathered(v, y);
    check_gamma_scaled(v, y, MGL_OPERAND(embed_gamma, g), MGL_OPERAND(embed_gamma, n),
                       MGL_OPERAND(embed_gamma, s));
}

/* n (rows, hidden), and s, which has at most as many parts as n has columns. */
static void check_rms_normalized(const struct view *v)
{
    equal(v, "the width of n", extent(v, MGL_PRODUCT_INPUT, 1), "hidden", v->model->hidden);
    demand(v, extent(v, MGL_PRODUCT_SQUARES, 1) <= v->model->hidden,
           "s has more parts than n has columns");
}

/* y: the sum of b and of the product of an input of that width. */
static void check_sum(const struct view *v, int64_t width, int y, int bias)
{
    check_tensors(v, v->model->hidden, width);
    equal(v, "the width of y", columns(v, y), "the number of streamed rows", streamed_rows(v));
    check_columns(v, MGL_OPERAND(linear_add, b), y, "b and y must have the same columns");
    check_biases(v, bias);
}

/* The same for linear_add, and its copy. */
static void check_add(const struct view *v, int64_t width)
{
    check_sum(v, width, MGL_OPERAND(linear_add, y), MGL_OPERAND(linear_add, bias));
    check_copy(v, MGL_OPERAND(linear_add, y), MGL_OPERAND(linear_add, copy));
}

/* The width of the input of linear_add or linear_add_gamma. */
static int64_t added_width(const struct view *v)
{
    int64_t width = extent(v, MGL_PRODUCT_INPUT, 1);
    demand(v, width == (int64_t)v->model->heads * v->model->head_dim || width == v->model->ffn,
           "a must be as wide as the attention's output or ffn");
    return width;
}

static void check_linear_add(const struct view *v)
{
    check_add(v, added_width(v));
}

static void check_linear_add_gamma(const struct view *v)
{
    const int y = MGL_OPERAND(linear_add_gamma, y);
    check_sum(v, added_width(v), y, MGL_OPERAND(linear_add_gamma, bias));
    check_gamma_scaled(v, y, MGL_OPERAND(linear_add_gamma, g), MGL_OPERAND(linear_add_gamma, n),
                       MGL_OPERAND(linear_add_gamma, s));
}

/* The operands have the same numbers as those of linear_add. */
static void check_merge_add(const struct view *v)
{
    check_part(v, MGL_OPERAND(merge_add, part), 0);
    check_add(v, (int64_t)v->model->heads * v->model->head_dim);
}

/* y of norm_swiglu or rms_swiglu, and its biases. */
static void check_swiglu(const struct view *v, int y, int bias)
{
    check_tensors(v, v->model->ffn, v->model->hidden);
    equal(v, "the width of y", columns(v, y), "the number of streamed rows", streamed_rows(v));
    check_biases(v, bias);
}

static void check_norm_swiglu(const struct view *v)
{
    check_normed(v, MGL_OPERAND(norm_swiglu, x), MGL_OPERAND(norm_swiglu, g));
    check_swiglu(v, MGL_OPERAND(norm_swiglu, y), MGL_OPERAND(norm_swiglu, bias));
}

static void check_rms_linear(const struct view *v)
{
    check_rms_normalized(v);
    check_linear(v, MGL_OPERAND(rms_linear, y), MGL_OPERAND(rms_linear, bias));
}

static void check_rms_swiglu(const struct view *v)
{
    check_rms_normalized(v);
    check_swiglu(v, MGL_OPERAND(rms_swiglu, y), MGL_OPERAND(rms_swiglu, bias));
}

/* The outputs of head, which have the same numbers in rms_head. */
static void check_logits(const struct view *v)
{
    const int logits = MGL_OPERAND(head, logits);
    check_tensors(v, v->model->vocab, v->model->hidden);
    equal(v, "the width of the logits", extent(v, logits, 1), "vocab", v->model->vocab);
    equal(v, "the first column of the logits", range(v, logits, 1)->lo, "the first streamed row",
          v->segments[0].row_lo);
    equal(v, "the end of the columns of the logits", range(v, logits, 1)->hi,
          "the end of the streamed rows", v->segments[0].row_hi);
    equal(v, "the part of best_id", range(v, MGL_OPERAND(head, best_id), 1)->lo,
          "the part of best_value", range(v, MGL_OPERAND(head, best_value), 1)->lo);
}

/* An operand of the program's sample task. */
static const mgl_region *sample_region(const struct view *v, int operand)
{
    const mgl_program *p = v->check->program;
    return mgl_task_operand(p, &p->tasks[v->check->sample], operand);
}

/* The operands for penalties of a head, required if sample counts tokens. The operand numbers also
 * hold for rms_head. */
static void check_penalized(const struct view *v)
{
    const int penalized = MGL_OPERAND(head, penalized), counts = MGL_OPERAND(head, counts);
    const int sequence = MGL_OPERAND(head, sequence);
    const bool wanted = sample_region(v, MGL_OPERAND(sample, counts)) != NULL;
    demand(v, has(v, penalized) == wanted && has(v, counts) == wanted && has(v, sequence) == wanted,
           "it has penalized, counts and sequence where sample has counts, and else none of them");
    if (!has(v, penalized) || !has(v, sequence) || !wanted)
        return;
    equal(v, "the width of the penalized logits", extent(v, penalized, 1), "vocab",
          v->model->vocab);
    check_columns(v, MGL_OPERAND(head, logits), penalized,
                  "logits and penalized must have the same columns");
    check_columns(v, MGL_OPERAND(head, logits), counts,
                  "logits and counts must have the same columns");
    demand(v,
           region_of(v, counts)->buffer == sample_region(v, MGL_OPERAND(sample, counts))->buffer &&
               region_of(v, sequence)->buffer ==
                   sample_region(v, MGL_OPERAND(sample, sequence))->buffer,
           "counts and sequence must be those that sample writes");
}

static void check_head(const struct view *v)
{
    check_normed(v, MGL_OPERAND(head, x), MGL_OPERAND(head, g));
    check_logits(v);
    check_penalized(v);
}

static void check_rms_head(const struct view *v)
{
    check_rms_normalized(v);
    check_logits(v);
    check_penalized(v);
}

/* One io buffer of sample: its shape, and that it has no other role. */
static void check_role(const struct view *v, int operand, int64_t first, int64_t second)
{
    const mgl_buffer *buffer = buffer_of(v, operand);
    const mgl_op_info *op = mgl_op_get(MGL_OP_SAMPLE);
    char name[MGL_NAME_TEXT];
    mgl_check_task(v->check, v->task, name);
    if (buffer->extents[0].count != first ||
        (buffer->rank > 1 && buffer->extents[1].count != second))
        mgl_check_report(v->check, 112, v->task, 0,
                         "%s: buffer %.64s has the wrong shape for %s; it must be %" PRId64
                         " by %" PRId64,
                         name, buffer->name, op->operands[operand].name, first, second);
    for (int other = 0; other < operand; other++)
        if (has(v, other) && region_of(v, other)->buffer == region_of(v, operand)->buffer &&
            !(other == MGL_OPERAND(sample, sequence) &&
              operand == MGL_OPERAND(sample, sequence_next)))
            mgl_check_report(v->check, 112, v->task, 0, "%s: buffer %.64s is both %s and %s", name,
                             buffer->name, op->operands[other].name, op->operands[operand].name);
}

/* A draw reads rows of the value that sample chooses from. Its tokens follow the parts of sample's
 * best_id. */
static void check_draw(const struct view *v)
{
    const int logits = MGL_OPERAND(draw, logits), values = MGL_OPERAND(draw, best_value);
    const int token = MGL_OPERAND(draw, token);
    const mgl_region *penalized = sample_region(v, MGL_OPERAND(sample, penalized));
    const mgl_region *wanted =
        penalized ? penalized : sample_region(v, MGL_OPERAND(sample, logits));
    demand(v,
           range(v, logits, 0)->lo == range(v, token, 0)->lo &&
               range(v, logits, 0)->hi == range(v, token, 0)->hi &&
               range(v, values, 0)->lo == range(v, token, 0)->lo &&
               range(v, values, 0)->hi == range(v, token, 0)->hi,
           "logits, best_value and token must be of the same share of the rows");
    demand(v,
           region_of(v, logits)->buffer == wanted->buffer &&
               region_of(v, values)->buffer ==
                   sample_region(v, MGL_OPERAND(sample, best_value))->buffer &&
               region_of(v, MGL_OPERAND(draw, sequence))->buffer ==
                   sample_region(v, MGL_OPERAND(sample, sequence))->buffer &&
               region_of(v, token)->buffer ==
                   sample_region(v, MGL_OPERAND(sample, best_id))->buffer,
           "its logits, best_value and sequence must be sample's, and its token must be in "
           "sample's best_id");
    equal(v, "the index of the token", range(v, token, 1)->lo, "the number of parts of best_value",
          extent(v, values, 1));
}

/* Whether the program has tasks that draw. */
static bool has_draws(const mgl_program *p)
{
    bool has = false;
    for (int t = 0; t < p->task_count && !has; t++)
        has = p->tasks[t].op == MGL_OP_DRAW;
    return has;
}

static void check_sample(const struct view *v)
{
    const mgl_limits *limits = &v->check->program->limits;
    int64_t parts = extent(v, MGL_OPERAND(sample, best_value), 1), sequences = limits->sequences;
    check_role(v, MGL_OPERAND(sample, logits), limits->rows, v->model->vocab);
    check_role(v, MGL_OPERAND(sample, best_value), limits->rows, parts);
    check_role(v, MGL_OPERAND(sample, best_id), limits->rows, parts + has_draws(v->check->program));
    check_role(v, MGL_OPERAND(sample, sequence), sequences, MGL_CHECK_SEQUENCE_WORDS);
    check_role(v, MGL_OPERAND(sample, prompt), sequences, limits->capacity);
    check_role(v, MGL_OPERAND(sample, control), MGL_CHECK_CONTROL_WORDS, 1);
    check_role(v, MGL_OPERAND(sample, table), mgl_limits_most(limits), MGL_CHECK_TABLE_WORDS);
    check_role(v, MGL_OPERAND(sample, sequence_next), sequences, MGL_CHECK_SEQUENCE_WORDS);
    check_role(v, MGL_OPERAND(sample, output), sequences, limits->capacity);
    check_role(v, MGL_OPERAND(sample, score), sequences, limits->capacity);
    demand(v, has(v, MGL_OPERAND(sample, counts)) == has(v, MGL_OPERAND(sample, penalized)),
           "it has counts and penalized, or neither");
    if (has(v, MGL_OPERAND(sample, counts)))
        check_role(v, MGL_OPERAND(sample, counts), sequences, v->model->vocab);
    if (has(v, MGL_OPERAND(sample, penalized)))
        check_role(v, MGL_OPERAND(sample, penalized), limits->rows, v->model->vocab);
    demand(v,
           region_of(v, MGL_OPERAND(sample, sequence))->buffer ==
               region_of(v, MGL_OPERAND(sample, sequence_next))->buffer,
           "sequence and sequence_next must be one buffer");
}

/* The regions of a clear have no relations. */
static void check_clear(const struct view *v)
{
    (void)v;
}

typedef void relation_fn(const struct view *view);

static relation_fn *const relations[] = {
#define MGL_OP(id, name, ...) check_##name,
#include "instructions/ops.def"
};

void mgl_check_relations(mgl_check *check)
{
    const mgl_program *p = check->program;
    for (int t = 0; t < p->task_count; t++) {
        const mgl_task *task = &p->tasks[t];
        struct view view = {.check = check,
                            .task = t,
                            .model = &p->geometry,
                            .segments =
                                task->segments.count ? &p->segments[task->segments.first] : NULL};
        relations[task->op](&view);
    }
}
