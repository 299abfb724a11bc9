/*
 * MG7xx: the tasks compute the graph. One epoch is interpreted symbolically in the order of the
 * simulation, one of many legal orders: behind race.c and init.c every read sees the same write in
 * each of them. A value is a node of the graph; a buffer holds, column for column, columns of
 * nodes.
 *
 * Each task is evaluated by the formulas that ops.def gives its op, "; " between them; those of
 * outputs that the task leaves out do not count. Functions are the graph's node
 * kinds: the result is the node of that kind with these inputs and this tensor, which must exist.
 * So every value stored is one of the graph's, a value may be computed as often as somebody likes,
 * and nothing is assumed about which task computes what. What a kind asks of its inputs' columns:
 *
 *     norm, sample            the whole input                 gives the whole value
 *     linear                  the whole input                 gives columns = the tensor's rows
 *     embed                                                   gives columns = the tensor's columns
 *     add, swiglu             the same columns of both        gives these columns
 *     bias                    any columns                     gives these columns
 *     head_norm               whole heads                     gives these columns
 *     attention               heads of q, their kv head of k and v     gives the columns of q
 *
 * `merge` is no node kind: of all splits' partials it gives the attention that they are parts of.
 *
 * A weighed value is no node: n = weighed(y, g) are columns of y, which is a node that some norm
 * has as its input, times that norm's weight; s = squares(y) is a part of the sum of squares of y.
 * Here both have numbers behind those of the nodes, so no operation of the model takes them.
 * scaled(n, s) is the norm, where s has all parts of its input, in order.
 *
 * Where a task leaves out a bias or a norm of q and k, the value stays the node that it was. If the
 * model has the bias or the norm there, no later operation of the model takes that node.
 *
 * Attention and time: [:pos] of a cache head holds what its one owner (attend, attend_tail)
 * appended in earlier epochs, the same node as today. attend_past may run before the owner, so a
 * partial keeps what it was made from, and merge compares: all splits the same queries and the
 * same cache, and exactly one the tail of that cache, whose node is then the attention.
 */
#include "validator/check.h"

#include "base/assert.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CACHE_SLOTS = 4096, ABSENT = -2 };

/* Columns [lo, hi) of a node, or of a tensor of the graph: the embedding's columns, or the rows of
 * a weight, which become columns. */
struct value {
    bool is_tensor;
    int index; /* ABSENT: a tensor that the task leaves out */
    int64_t lo, hi;
};

/* What split i holds of one head. */
struct partial {
    bool set, tail;
    struct value q;         /* the head's columns */
    int k_cache, v_cache;   /* buffers */
    int64_t kv_head;        /* in them */
    struct value attention; /* of the tail: the result */
};

/* One head of a cache buffer. */
struct owner {
    int task; /* that appends to it, plus 1; 0 for none */
    struct value value;
};

/* One part of the running argmax: the vocabulary rows it was taken over. */
struct best {
    int node;
    int64_t lo, hi;
};

/* The value state of a buffer: of its space and rank one of these is in use. */
struct holding {
    mgl_columns columns;      /* act and io of rank 2 */
    struct partial *partials; /* (splits, heads) act of rank 4 */
    struct owner *owners;     /* (kv_heads) kv */
    int64_t *ends;            /* (columns of the buffer) of a part of squares: the column of the
                                 node behind its last; NULL where none was stored */
};

struct meaning {
    mgl_check *check;
    const mgl_program *program;
    const mgl_graph *graph;
    struct holding *holdings; /* (buffers) */
    struct best *value, *id;  /* (parts) of sample's best_value and best_id */
    int64_t parts;
    int find_cache[CACHE_SLOTS]; /* nodes found before */

    /* the task at hand */
    int task;
    const mgl_segment *segment; /* W and W2, or NULL */
    int bias;                   /* operand of B, that of B2 behind it */
    const char *at;             /* what is left of its formula */
};

/* ---- reports ---- */

static const char *describe(const struct meaning *m, const struct value *v, char to[MGL_NAME_TEXT])
{
    const int nodes = m->graph->node_count;
    if (v->is_tensor) {
        snprintf(to, MGL_NAME_TEXT, "%.120s", m->graph->tensors[v->index].name);
    } else if (v->index >= nodes) {
        snprintf(to, MGL_NAME_TEXT, "%s node %d",
                 v->index < 2 * nodes ? "the weighed input of" : "the squares of",
                 v->index % nodes);
    } else {
        const mgl_node *node = &m->graph->nodes[v->index];
        int n =
            snprintf(to, MGL_NAME_TEXT, "node %d, %s", v->index, mgl_node_kind_name(node->kind));
        if (node->layer >= 0 && n > 0 && n < MGL_NAME_TEXT)
            snprintf(to + n, (size_t)(MGL_NAME_TEXT - n), " of layer %d", node->layer);
    }
    return to;
}

static bool fail(struct meaning *m, int code, const char *what)
{
    char name[MGL_NAME_TEXT];
    mgl_check_report(m->check, code, m->task, 0, "%s: %s", mgl_check_task(m->check, m->task, name),
                     what);
    return false;
}

static void witness_value(struct meaning *m, const char *what, const struct value *v)
{
    char name[MGL_NAME_TEXT];
    mgl_check_witness(m->check, "%s: columns %" PRId64 ":%" PRId64 " of %s", what, v->lo, v->hi,
                      describe(m, v, name));
}

/* ---- reading operands ---- */

static const mgl_region *operand_region(const struct meaning *m, int operand)
{
    MGL_ASSERT(operand >= 0 && operand < MGL_MAX_OPERANDS);
    return mgl_task_operand(m->program, &m->program->tasks[m->task], operand);
}

/* Whether the task has the operand: some may be left out. */
static bool has_operand(const struct meaning *m, int operand)
{
    return mgl_task_place(&m->program->tasks[m->task], operand) >= 0;
}

/* The operand of that name, whether the task has it or not; -1 when the op has none. */
static int find_operand(const struct meaning *m, const char *name, size_t length)
{
    const mgl_op_info *op = mgl_op_get(m->program->tasks[m->task].op);
    for (int i = 0; i < op->in_count + op->out_count + op->extra_count; i++)
        if (strlen(op->operands[i].name) == length && !memcmp(op->operands[i].name, name, length))
            return i;
    return -1;
}

/* The value in a slice of a buffer's columns. */
static bool read_columns(struct meaning *m, int operand, struct value *out)
{
    const mgl_region *region = operand_region(m, operand);
    const mgl_range *range = &region->ranges[1];
    const mgl_columns *columns = &m->holdings[region->buffer].columns;
    *out = (struct value){.is_tensor = false};
    if (mgl_columns_get(columns, range->lo, range->hi, &out->index, &out->lo)) {
        out->hi = out->lo + mgl_range_length(range);
        return true;
    }
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_report(m->check, 704, m->task, 0, "%s: %s holds columns of several values",
                     mgl_check_task(m->check, m->task, name),
                     mgl_check_region(m->check, (int)(region - m->program->regions), place));
    for (size_t i = 0; i < columns->count && i < 8; i++) {
        const mgl_interval *item = &columns->items[i];
        struct value v = {false, item->node, item->lo + item->shift, item->hi + item->shift};
        mgl_check_witness(
            m->check, "columns %" PRId64 ":%" PRId64 " are columns %" PRId64 ":%" PRId64 " of %s",
            item->lo, item->hi, v.lo, v.hi, describe(m, &v, place));
    }
    return false;
}

static bool read_operand(struct meaning *m, int operand, struct value *out)
{
    const mgl_region *region = operand_region(m, operand);
    const mgl_buffer *buffer = &m->program->buffers[region->buffer];
    if (buffer->space != MGL_SPACE_CONST)
        return read_columns(m, operand, out);
    const mgl_range *range = &region->ranges[buffer->rank - 1];
    *out = (struct value){true, m->check->graph_tensor[buffer->tensor], range->lo, range->hi};
    return true;
}

/* A name of a formula: tokens, W, W2, B, B2 or an operand. */
static bool read_name(struct meaning *m, const char *name, size_t length, struct value *out)
{
    if (length == 6 && !memcmp(name, "tokens", 6)) {
        const int none[3] = {-1, -1, -1};
        *out = (struct value){false, mgl_graph_find(m->graph, MGL_NODE_TOKENS, none, -1), 0, 1};
        return out->index >= 0 || fail(m, 703, "the graph has no tokens");
    }
    if (m->segment && name[0] == 'W' && length <= 2) {
        int tensor = length == 1 ? m->segment->tensor : m->segment->tensor2;
        *out = (struct value){true, m->check->graph_tensor[tensor], m->segment->row_lo,
                              m->segment->row_hi};
        return true;
    }
    bool bias = m->segment && name[0] == 'B' && length <= 2;
    int operand = bias ? m->bias + (length == 2) : find_operand(m, name, length);
    if (operand >= 0 && has_operand(m, operand))
        return read_operand(m, operand, out);
    *out = (struct value){.is_tensor = true, .index = ABSENT};
    return (operand >= 0 &&
            mgl_op_get(m->program->tasks[m->task].op)->operands[operand].optional) ||
           fail(m, 703, "its formula names what is not an operand");
}

/* ---- applying a node kind ---- */

static bool matches(const mgl_node *node, mgl_node_kind kind, const int in[3], int tensor)
{
    return node->kind == kind && node->tensor == tensor && node->in[0] == in[0] &&
           node->in[1] == in[1] && node->in[2] == in[2];
}

/* mgl_graph_find, with a memory: many tasks ask for the same nodes. */
static int find_node(struct meaning *m, mgl_node_kind kind, const int in[3], int tensor)
{
    uint32_t hash = (uint32_t)kind;
    for (int i = 0; i < 3; i++)
        hash = hash * 31 + (uint32_t)in[i];
    int *slot = &m->find_cache[(hash * 31 + (uint32_t)tensor) % CACHE_SLOTS];
    if (*slot < 0 || !matches(&m->graph->nodes[*slot], kind, in, tensor))
        *slot = mgl_graph_find(m->graph, kind, in, tensor);
    return *slot;
}

static bool is_whole(const struct meaning *m, const struct value *v)
{
    return !v->is_tensor && v->lo == 0 && v->hi == m->graph->nodes[v->index].width;
}

/* Query heads against one kv head: which columns belong together. */
static bool heads_match(const struct meaning *m, const struct value *q, const struct value *k,
                        const struct value *v)
{
    const mgl_geometry *g = &m->program->geometry;
    int64_t d = g->head_dim, wide = g->heads / g->kv_heads * d, kv = q->lo / wide * d;
    return q->lo % d == 0 && (q->hi - 1) / wide * d == kv && q->hi % d == 0 && k->lo == kv &&
           k->hi == kv + d && v->lo == kv && v->hi == kv + d;
}

/* The columns that a kind makes of its inputs' columns; false when it can not. */
static bool result_columns(struct meaning *m, mgl_node_kind kind, const struct value *in,
                           const struct value *tensor, struct value *out)
{
    switch (kind) {
    case MGL_NODE_NORM:
    case MGL_NODE_SAMPLE:
    case MGL_NODE_LINEAR:
        if (!is_whole(m, &in[0]))
            return fail(m, 704, "its input is not a whole value, column for column");
        *out = tensor ? *tensor : (struct value){.hi = 1};
        return true;
    case MGL_NODE_EMBED:
        *out = *tensor;
        return true;
    case MGL_NODE_SWIGLU:
    case MGL_NODE_ADD:
        if (in[0].lo != in[1].lo || in[0].hi != in[1].hi)
            return fail(m, 704, "its two inputs are not the same columns");
        *out = in[0];
        return true;
    case MGL_NODE_BIAS:
        *out = in[0];
        return true;
    case MGL_NODE_HEAD_NORM:
        if (in[0].lo % m->program->geometry.head_dim || in[0].hi % m->program->geometry.head_dim)
            return fail(m, 705, "q or k is not whole heads");
        *out = in[0];
        return true;
    case MGL_NODE_ATTENTION:
        if (!heads_match(m, &in[0], &in[1], &in[2]))
            return fail(m, 705, "q, k and v are not heads that belong together");
        *out = in[0];
        return true;
    case MGL_NODE_TOKENS:
    case MGL_NODE_KIND_COUNT:
        break;
    }
    return fail(m, 703, "its formula uses what is not an operation");
}

/* Tensors that the kind takes behind its inputs. */
static int kind_tensors(mgl_node_kind kind)
{
    return kind == MGL_NODE_EMBED || kind == MGL_NODE_NORM || kind == MGL_NODE_LINEAR ||
           kind == MGL_NODE_BIAS || kind == MGL_NODE_HEAD_NORM;
}

static bool apply(struct meaning *m, mgl_node_kind kind, int inputs, const struct value *args,
                  int count, struct value *out)
{
    int in[3] = {-1, -1, -1};
    const struct value *tensor = kind_tensors(kind) ? &args[inputs] : NULL;
    if (count != inputs + kind_tensors(kind) || (tensor && !tensor->is_tensor))
        return fail(m, 703, "its formula does not fit the operation");
    for (int i = 0; i < inputs; i++) {
        if (args[i].is_tensor)
            return fail(m, 703, "its formula does not fit the operation");
        in[i] = args[i].index;
    }
    if (tensor && tensor->index == ABSENT) {
        *out = args[0];
        return true;
    }
    int node = find_node(m, kind, in, tensor ? tensor->index : -1);
    if (node < 0) {
        char name[MGL_NAME_TEXT];
        mgl_check_report(m->check, 703, m->task, 0, "%s: the model has no such %s",
                         mgl_check_task(m->check, m->task, name), mgl_node_kind_name(kind));
        for (int i = 0; i < count; i++)
            witness_value(m, args[i].is_tensor ? "tensor" : "input", &args[i]);
        return false;
    }
    if (!result_columns(m, kind, args, tensor, out))
        return false;
    out->is_tensor = false;
    out->index = node;
    return true;
}

/* ---- splits ---- */

static bool same_source(const struct partial *a, const struct partial *b)
{
    return a->q.index == b->q.index && a->q.lo == b->q.lo && a->k_cache == b->k_cache &&
           a->v_cache == b->v_cache && a->kv_head == b->kv_head;
}

static void witness_partial(struct meaning *m, int64_t split, const struct partial *cell)
{
    char name[MGL_NAME_TEXT];
    if (cell->set)
        mgl_check_witness(m->check,
                          "split %" PRId64 ": queries are columns %" PRId64 ":%" PRId64
                          " of %s, caches %.48s and %.48s, kv head %" PRId64,
                          split, cell->q.lo, cell->q.hi, describe(m, &cell->q, name),
                          m->program->buffers[cell->k_cache].name,
                          m->program->buffers[cell->v_cache].name, cell->kv_head);
}

/* The attention that all splits of one head make together. */
static bool merge_head(struct meaning *m, const struct partial *cells, int64_t splits,
                       struct value *out)
{
    const mgl_geometry *g = &m->program->geometry;
    int tails = 0;
    for (int64_t i = 0; i < splits; i++) {
        const struct partial *cell = &cells[i * g->heads];
        if (!cell->set || !same_source(cell, cells)) {
            fail(m, 706, "the splits are not of the same queries and the same cache");
            witness_partial(m, 0, cells);
            witness_partial(m, i, cell);
            return false;
        }
        if (cell->tail)
            *out = cell->attention;
        tails += cell->tail;
    }
    if (tails != 1)
        return fail(m, 706, "not exactly one of the splits is an attend_tail");
    return true;
}

/* The value of all heads of a region of partials: columns of one attention, head after head. */
static bool read_merged(struct meaning *m, int operand, struct value *out)
{
    const mgl_region *part = operand_region(m, operand);
    const struct partial *cells = m->holdings[part->buffer].partials;
    const int64_t splits = m->program->buffers[part->buffer].extents[0].count;
    for (int64_t head = part->ranges[2].lo; head < part->ranges[2].hi; head++) {
        struct value v = {.is_tensor = false};
        if (!merge_head(m, &cells[head], splits, &v))
            return false;
        if (head == part->ranges[2].lo)
            *out = v;
        else if (v.index != out->index || v.lo != out->hi)
            return fail(m, 704, "the heads that it merges are not columns of one value, in order");
        out->hi = v.hi;
    }
    return true;
}

/* ---- weighed values ---- */

/* Numbers of what is no node. */
static int weighed_by(const struct meaning *m, int norm)
{
    return m->graph->node_count + norm;
}

static int squares_of(const struct meaning *m, int node)
{
    return 2 * m->graph->node_count + node;
}

/* Columns of a node, times the weight g of the norm that has it as its input. */
static bool weigh(struct meaning *m, const struct value *y, const struct value *g,
                  struct value *out)
{
    const int in[3] = {y->index, -1, -1};
    const int norm = y->index < m->graph->node_count && g->is_tensor
                         ? find_node(m, MGL_NODE_NORM, in, g->index)
                         : -1;
    *out = *y;
    out->index = weighed_by(m, norm);
    return norm >= 0 || fail(m, 710, "the model has no norm of that value with that weight");
}

/* Whether s has the squares of all columns of the node, part after part. */
static bool has_all_squares(struct meaning *m, const mgl_region *s, int node)
{
    const struct holding *holding = &m->holdings[s->buffer];
    int64_t column = 0, lo;
    int index;
    for (int64_t i = s->ranges[1].lo; i < s->ranges[1].hi; i++) {
        if (!holding->ends || !mgl_columns_get(&holding->columns, i, i + 1, &index, &lo) ||
            index != squares_of(m, node) || lo != column)
            return false;
        column = holding->ends[i];
    }
    return column == m->graph->nodes[node].width;
}

/* The norm whose weighed input is n, and the squares of its input s. */
static bool scale(struct meaning *m, const struct value *n, int s, struct value *out)
{
    const int norm = n->index - m->graph->node_count;
    if (n->is_tensor || norm < 0 || norm >= m->graph->node_count)
        return fail(m, 710, "its n is not a weighed value");
    *out = *n;
    out->index = norm;
    if (n->lo != 0 || n->hi != m->graph->nodes[norm].width)
        return fail(m, 704, "its input is not a whole value, column for column");
    return has_all_squares(m, operand_region(m, s), m->graph->nodes[norm].in[0]) ||
           fail(m, 710, "its s does not have the squares of what n was made of, part after part");
}

/* The task's part of the sum of squares of y. */
static bool store_squares(struct meaning *m, int operand, const struct value *y)
{
    const mgl_region *s = operand_region(m, operand);
    struct holding *holding = &m->holdings[s->buffer];
    const int64_t part = s->ranges[1].lo;
    if (y->is_tensor || y->index >= m->graph->node_count)
        return fail(m, 710, "what it squares is no value of the model");
    if (!holding->ends)
        holding->ends =
            mgl_check_alloc(m->check, (size_t)m->program->buffers[s->buffer].extents[1].count,
                            sizeof *holding->ends);
    if (!holding->ends ||
        !mgl_columns_set(&holding->columns, part, part + 1, squares_of(m, y->index), y->lo)) {
        m->check->no_memory = true;
        return false;
    }
    holding->ends[part] = y->hi;
    return true;
}

/* ---- formulas ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next name of the formula. */
static const char *take_name(struct meaning *m, size_t *length)
{
    while (*m->at == ' ' || *m->at == ',')
        m->at++;
    const char *name = m->at;
    while (is_letter(*m->at))
        m->at++;
    *length = (size_t)(m->at - name);
    return name;
}

static bool find_kind(const char *name, size_t length, mgl_node_kind *kind, int *inputs)
{
    static const struct {
        const char *name;
        int inputs;
    } kinds[] = {
#define MGL_X(id, kind_name, count, what) {kind_name, count},
        MGL_NODE_KINDS(MGL_X)
#undef MGL_X
    };
    for (int i = 0; i < MGL_NODE_KIND_COUNT; i++)
        if (strlen(kinds[i].name) == length && !memcmp(kinds[i].name, name, length)) {
            *kind = (mgl_node_kind)i;
            *inputs = kinds[i].inputs;
            return true;
        }
    return false;
}

/* (name), behind `merge`. */
static bool evaluate_merge(struct meaning *m, struct value *out)
{
    size_t length;
    m->at++;
    const char *name = take_name(m, &length);
    const int operand = find_operand(m, name, length);
    if (*m->at++ != ')' || operand < 0)
        return fail(m, 703, "its formula does not merge an operand");
    return read_merged(m, operand, out);
}

static bool is_word(const char *name, size_t length, const char *word)
{
    return strlen(word) == length && !memcmp(name, word, length);
}

/* (y, g), behind `weighed`, and (n, s), behind `scaled`. */
static bool evaluate_weighed(struct meaning *m, bool scales, struct value *out)
{
    size_t length;
    struct value first, second;
    m->at++;
    const char *name = take_name(m, &length);
    if (!read_name(m, name, length, &first))
        return false;
    name = take_name(m, &length);
    const int operand = find_operand(m, name, length);
    if (*m->at++ != ')' || operand < 0)
        return fail(m, 703, "its formula does not weigh or scale an operand");
    if (scales)
        return scale(m, &first, operand, out);
    return read_operand(m, operand, &second) && weigh(m, &first, &second, out);
}

/* name, or kind(expression, ...); as deep as the formulas of ops.def are. */
static bool evaluate(struct meaning *m, struct value *out)
{
    size_t length;
    const char *name = take_name(m, &length);
    if (*m->at != '(')
        return read_name(m, name, length, out);
    mgl_node_kind kind;
    int inputs, count = 0;
    struct value args[4];
    if (is_word(name, length, "merge"))
        return evaluate_merge(m, out);
    if (is_word(name, length, "weighed") || is_word(name, length, "scaled"))
        return evaluate_weighed(m, is_word(name, length, "scaled"), out);
    if (!find_kind(name, length, &kind, &inputs))
        return fail(m, 703, "its formula uses what is not an operation");
    m->at++;
    while (*m->at != ')') {
        if (count == 4 || *m->at == 0)
            return fail(m, 703, "its formula does not fit the operation");
        if (!evaluate(m, &args[count++]))
            return false;
    }
    m->at++;
    return apply(m, kind, inputs, args, count, out);
}

/* Goes to the formula at `formula`: *output is the operand it names, m->at its expression. */
static bool open_formula(struct meaning *m, const char *formula, int *output)
{
    size_t length;
    m->at = formula;
    const char *name = take_name(m, &length);
    *output = find_operand(m, name, length);
    if (*output < 0 || strncmp(m->at, " = ", 3) != 0)
        return fail(m, 703, "its formula does not name an output");
    m->at += 3;
    return true;
}

/* The formula behind this one, or NULL. */
static const char *next_formula(const char *formula)
{
    const char *end = strstr(formula, "; ");
    return end ? end + 2 : NULL;
}

static const char *first_formula(const struct meaning *m)
{
    return mgl_op_get(m->program->tasks[m->task].op)->meaning;
}

/* ---- storing ---- */

/* Puts the value into columns [at, at + its length) of the operand's buffer. */
static bool store(struct meaning *m, int operand, int64_t at, const struct value *v)
{
    mgl_columns *columns = &m->holdings[operand_region(m, operand)->buffer].columns;
    if (!mgl_check_spend(m->check, 1 + columns->count / 16))
        return false;
    if (!mgl_columns_set(columns, at, at + (v->hi - v->lo), v->index, v->lo))
        m->check->no_memory = true;
    return !m->check->no_memory;
}

/* s = squares(y) */
static bool run_squares(struct meaning *m, int output)
{
    struct value y;
    size_t length;
    m->at += strlen("squares(");
    m->segment = NULL;
    const char *name = take_name(m, &length);
    return read_name(m, name, length, &y) && store_squares(m, output, &y);
}

/* One formula: evaluated segment by segment, into consecutive columns of its output. */
static bool run_formula(struct meaning *m, const char *formula)
{
    const mgl_task *task = &m->program->tasks[m->task];
    int count = task->segments.count, output;
    if (!open_formula(m, formula, &output))
        return false;
    if (!has_operand(m, output))
        return true;
    const mgl_op_info *op = mgl_op_get(task->op);
    const mgl_range *columns = &operand_region(m, output)->ranges[1];
    const char *expression = m->at;
    if (!strncmp(expression, "squares(", 8))
        return run_squares(m, output);
    m->bias = op->in_count + op->out_count;
    int64_t at = columns->lo;
    for (int i = 0; i < (count ? count : 1); i++) {
        struct value v;
        m->segment = count ? &m->program->segments[task->segments.first + i] : NULL;
        m->at = expression;
        if (!evaluate(m, &v) || !store(m, output, at, &v))
            return false;
        m->bias += m->segment && m->segment->tensor2 >= 0 ? 2 : 1;
        at += v.hi - v.lo;
    }
    return at == columns->hi || fail(m, 704, "its value does not fill the output");
}

/* Most ops. */
static bool run_plain(struct meaning *m)
{
    for (const char *formula = first_formula(m); formula; formula = next_formula(formula))
        if (!run_formula(m, formula))
            return false;
    return true;
}

/* ---- attention ---- */

/* The task appends the value of operand `from` to the head of operand `to`. */
static bool own_cache(struct meaning *m, const char *from, const char *to)
{
    const mgl_region *region = operand_region(m, find_operand(m, to, strlen(to)));
    struct owner *owner = &m->holdings[region->buffer].owners[region->ranges[1].lo];
    if (owner->task) {
        char name[MGL_NAME_TEXT];
        fail(m, 705, "another task appends to the same head of the same cache");
        mgl_check_witness(m->check, "%s", mgl_check_task(m->check, owner->task - 1, name));
        return false;
    }
    owner->task = m->task + 1;
    return read_operand(m, find_operand(m, from, strlen(from)), &owner->value);
}

static bool run_attend(struct meaning *m)
{
    return run_plain(m) && own_cache(m, "k", "k_now") && own_cache(m, "v", "v_now");
}

/* One partial for each head of the part's slice. */
static bool store_partials(struct meaning *m, const struct value *q, bool tail,
                           const struct value *attention)
{
    const mgl_region *part = operand_region(m, find_operand(m, "part", 4));
    const mgl_region *k = operand_region(m, find_operand(m, "k_past", 6));
    const mgl_region *v = operand_region(m, find_operand(m, "v_past", 6));
    const mgl_geometry *g = &m->program->geometry;
    struct partial *row =
        &m->holdings[part->buffer].partials[part->ranges[0].lo * g->heads + part->ranges[2].lo];
    MGL_ASSERT(part->ranges[2].hi <= g->heads);
    if (q->lo % g->head_dim)
        return fail(m, 705, "q does not start at a head");
    for (int64_t i = 0; i < mgl_range_length(&part->ranges[2]); i++) {
        struct value one = *q;
        one.lo += i * g->head_dim;
        one.hi = one.lo + g->head_dim;
        row[i] = (struct partial){.set = true,
                                  .tail = tail,
                                  .q = one,
                                  .k_cache = k->buffer,
                                  .v_cache = v->buffer,
                                  .kv_head = k->ranges[1].lo,
                                  .attention = one};
        row[i].attention.index = attention ? attention->index : -1;
    }
    return true;
}

/* The queries that the task attends with: the first argument of its formula. */
static bool read_query(struct meaning *m, struct value *q)
{
    int output;
    size_t length;
    if (!open_formula(m, first_formula(m), &output))
        return false;
    take_name(m, &length);
    m->at++;
    return evaluate(m, q);
}

static bool run_attend_tail(struct meaning *m)
{
    int output;
    struct value q, attention;
    m->segment = NULL;
    return open_formula(m, first_formula(m), &output) && evaluate(m, &attention) &&
           read_query(m, &q) && store_partials(m, &q, true, &attention) &&
           own_cache(m, "k", "k_now") && own_cache(m, "v", "v_now");
}

static bool run_attend_past(struct meaning *m)
{
    struct value q;
    m->segment = NULL;
    return read_query(m, &q) && store_partials(m, &q, false, NULL);
}

static bool run_merge(struct meaning *m)
{
    const mgl_region *part = operand_region(m, 0);
    const mgl_geometry *g = &m->program->geometry;
    const struct partial *cells = m->holdings[part->buffer].partials;
    int64_t splits = m->program->buffers[part->buffer].extents[0].count;
    int64_t at = operand_region(m, 1)->ranges[1].lo;
    for (int64_t head = part->ranges[2].lo; head < part->ranges[2].hi; head++) {
        struct value v = {.is_tensor = false};
        if (!merge_head(m, &cells[head], splits, &v) || !store(m, 1, at, &v))
            return false;
        at += g->head_dim;
    }
    return true;
}

/* ---- head and sample ---- */

/* Remembers what a part of the running argmax was taken over, if it is one that sample reads. */
static void note_best(struct meaning *m, const char *operand, int role, struct best *parts,
                      const struct best *best)
{
    const mgl_region *region = operand_region(m, find_operand(m, operand, strlen(operand)));
    const mgl_task *sample = &m->program->tasks[m->check->sample];
    if (region->buffer == m->program->regions[mgl_task_region(sample, role)].buffer) {
        MGL_ASSERT(region->ranges[1].lo < m->parts);
        parts[region->ranges[1].lo] = *best;
    }
}

static bool run_head(struct meaning *m)
{
    if (!run_plain(m))
        return false;
    struct value logits;
    if (!read_operand(m, find_operand(m, "logits", 6), &logits))
        return false;
    struct best best = {logits.index, logits.lo, logits.hi};
    note_best(m, "best_value", MGL_OPERAND(sample, best_value), m->value, &best);
    note_best(m, "best_id", MGL_OPERAND(sample, best_id), m->id, &best);
    return true;
}

static bool run_sample(struct meaning *m)
{
    int output;
    struct value result, logits;
    m->segment = NULL;
    if (!open_formula(m, first_formula(m), &output) || !evaluate(m, &result) ||
        !read_operand(m, find_operand(m, "logits", 6), &logits))
        return false;
    if (result.index != m->graph->output)
        return fail(m, 707, "what it reads are not the logits of the model's output");
    int64_t at = 0;
    for (int64_t i = 0; i < m->parts; i++) {
        const struct best *value = &m->value[i], *id = &m->id[i];
        if (value->lo != at || id->lo != at || value->hi != id->hi || value->node != logits.index ||
            id->node != logits.index) {
            fail(m, 707, "the parts of the running argmax are not the vocabulary in order");
            mgl_check_witness(m->check,
                              "part %" PRId64 ": best_value over rows %" PRId64 ":%" PRId64
                              ", best_id over rows %" PRId64 ":%" PRId64
                              ", expected from row %" PRId64,
                              i, value->lo, value->hi, id->lo, id->hi, at);
            return false;
        }
        at = value->hi;
    }
    if (at != m->program->geometry.vocab)
        return fail(m, 707, "the parts of the running argmax do not reach the vocabulary's end");
    return true;
}

/* ---- the interpretation ---- */

typedef bool run_fn(struct meaning *m);

static bool run_nothing(struct meaning *m)
{
    (void)m;
    return true;
}

static run_fn *const runs[MGL_OP_COUNT] = {
    [MGL_OP_ENTER] = run_nothing,
    [MGL_OP_EMBED] = run_plain,
    [MGL_OP_NORM_LINEAR] = run_plain,
    [MGL_OP_ATTEND] = run_attend,
    [MGL_OP_ATTEND_TAIL] = run_attend_tail,
    [MGL_OP_ATTEND_PAST] = run_attend_past,
    [MGL_OP_MERGE] = run_merge,
    [MGL_OP_LINEAR_ADD] = run_plain,
    [MGL_OP_NORM_SWIGLU] = run_plain,
    [MGL_OP_HEAD] = run_head,
    [MGL_OP_SAMPLE] = run_sample,
    [MGL_OP_CLEAR] = run_nothing,
    [MGL_OP_MERGE_ADD] = run_plain,
    [MGL_OP_EMBED_WEIGHED] = run_plain,
    [MGL_OP_LINEAR_ADD_WEIGHED] = run_plain,
    [MGL_OP_SCALED_LINEAR] = run_plain,
    [MGL_OP_SCALED_SWIGLU] = run_plain,
    [MGL_OP_SCALED_HEAD] = run_head,
};

static void prepare(struct meaning *m)
{
    mgl_check *check = m->check;
    const mgl_program *p = m->program;
    const mgl_task *sample = &p->tasks[check->sample];
    const mgl_region *best = &p->regions[mgl_task_region(sample, MGL_OPERAND(sample, best_value))];
    m->parts = p->buffers[best->buffer].extents[1].count;
    m->value = mgl_check_alloc(check, (size_t)m->parts, sizeof *m->value);
    m->id = mgl_check_alloc(check, (size_t)m->parts, sizeof *m->id);
    m->holdings = mgl_check_alloc(check, (size_t)p->buffer_count, sizeof *m->holdings);
    for (int i = 0; i < CACHE_SLOTS; i++)
        m->find_cache[i] = -1;
    for (int i = 0; i < p->buffer_count && !check->no_memory; i++) {
        const mgl_buffer *b = &p->buffers[i];
        bool used = check->boxes.first[i] < check->boxes.first[i + 1];
        if (used && b->space == MGL_SPACE_ACT && b->rank == 4)
            m->holdings[i].partials =
                mgl_check_alloc(check, (size_t)b->extents[0].count * (size_t)b->extents[2].count,
                                sizeof(struct partial));
        else if (used && b->space == MGL_SPACE_KV)
            m->holdings[i].owners =
                mgl_check_alloc(check, (size_t)b->extents[1].count, sizeof(struct owner));
    }
}

static void clear(struct meaning *m)
{
    for (int i = 0; i < m->program->buffer_count && m->holdings; i++) {
        mgl_free(m->holdings[i].columns.items);
        mgl_free(m->holdings[i].partials);
        mgl_free(m->holdings[i].owners);
        mgl_free(m->holdings[i].ends);
    }
    mgl_free(m->holdings);
    mgl_free(m->value);
    mgl_free(m->id);
}

/* What the caches hold, for the comparison of two lists. */
static void keep_cached(struct meaning *m)
{
    const mgl_program *p = m->program;
    const int heads = p->geometry.kv_heads;
    mgl_check *check = m->check;
    size_t count = 0;
    for (int i = 0; i < p->buffer_count; i++)
        count += p->buffers[i].space == MGL_SPACE_KV;
    mgl_cached *at = check->cached = mgl_check_alloc(check, count * (size_t)heads, sizeof *at);
    for (int i = 0; i < p->buffer_count && at; i++) {
        const struct owner *owners = m->holdings[i].owners;
        for (int h = 0; p->buffers[i].space == MGL_SPACE_KV && h < heads; h++, at++) {
            *at = (mgl_cached){.node = -1};
            if (owners && owners[h].task)
                *at = (mgl_cached){owners[h].value.index, owners[h].value.lo};
        }
    }
}

void mgl_check_meaning(mgl_check *check)
{
    const mgl_program *p = check->program;
    if (!check->graph)
        return;
    struct meaning *m = mgl_check_alloc(check, 1, sizeof *m);
    if (!m)
        return;
    *m = (struct meaning){.check = check, .program = p, .graph = check->graph};
    prepare(m);
    check->verdict->meaning_checked = true;
    /* The first fault ends it: what stands behind would only repeat it. */
    for (int i = 0; i < p->task_count && !check->no_memory; i++) {
        m->task = check->order[i];
        run_fn *run = runs[p->tasks[m->task].op];
        if (run ? !run(m) : !fail(m, 703, "nobody has said what its op computes"))
            break;
    }
    if (p->many || check->first)
        keep_cached(m);
    clear(m);
    mgl_free(m);
}
