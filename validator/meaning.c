/*
 * MG7xx: the tasks compute the graph (translation validation by symbolic execution). The pass
 * interprets one epoch symbolically in the order of the simulation, which is one of many legal
 * orders: after race.c and init.c, every read sees the same write in each of them. A value is a
 * node of the graph. A buffer holds columns of nodes, column for column.
 *
 * Each task is evaluated by the formulas that ops.def gives its op, separated by "; ". Formulas of
 * outputs that the task omits are skipped. Functions are the graph's node kinds: the result is the
 * node of that kind with these inputs and this tensor, which must exist. So every stored value is
 * one of the graph's. A value may be computed several times, and the pass assumes nothing about
 * which task computes what. What a kind requires of its inputs' columns:
 *
 *     norm, sample            the whole input                 gives the whole value
 *     linear                  the whole input                 gives columns = the tensor's rows
 *     embed                                                   gives columns = the tensor's columns
 *     add, swiglu             the same columns of both        gives these columns
 *     bias                    any columns                     gives these columns
 *     head_norm               whole heads                     gives these columns
 *     attention               heads of q, their kv head of k and v     gives the columns of q
 *
 * Five functions are no node kinds. `merge`: splits.c evaluates it, with the cache and the tasks of
 * attention. `gamma_scaled`, `rms_normalized` and `squares`: gamma_scaled.c. `penalized(logits)`:
 * columns of the logits, with a number above those of gamma-scaled values. If sample has penalized
 * logits, it chooses from them, and they must come from the logits that it also has.
 *
 * If a task omits a bias or a norm of q and k, the value stays the same node. If the model has that
 * bias or norm, no later operation of the model accepts that node.
 */
#include "validator/meaning.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- reports ---- */

/* The number of a node's penalized logits; numbers below 3 node_count are of gamma_scaled.c. */
static int penalized_of(const mgl_meaning *m, int node)
{
    return 3 * m->graph->node_count + node;
}

const char *mgl_meaning_describe(const mgl_meaning *m, const mgl_node_value *v,
                                 char to[MGL_NAME_TEXT])
{
    const int nodes = m->graph->node_count;
    if (v->is_tensor) {
        snprintf(to, MGL_NAME_TEXT, "%.120s", m->graph->tensors[v->index].name);
    } else if (v->index >= nodes) {
        snprintf(to, MGL_NAME_TEXT, "%s node %d",
                 v->index >= penalized_of(m, 0)             ? "the penalized"
                 : mgl_gamma_is_squares(m->graph, v->index) ? "the squares of"
                                                            : "the gamma-scaled input of",
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

bool mgl_meaning_fail(mgl_meaning *m, int code, const char *what)
{
    char name[MGL_NAME_TEXT];
    mgl_check_report(m->check, code, m->task, 0, "%s: %s", mgl_check_task(m->check, m->task, name),
                     what);
    return false;
}

static void witness_value(mgl_meaning *m, const char *what, const mgl_node_value *v)
{
    char name[MGL_NAME_TEXT];
    mgl_check_witness(m->check, "%s: columns %" PRId64 ":%" PRId64 " of %s", what, v->lo, v->hi,
                      mgl_meaning_describe(m, v, name));
}

/* ---- reading operands ---- */

const mgl_region *mgl_meaning_region(const mgl_meaning *m, int operand)
{
    MGL_ASSERT(operand >= 0 && operand < MGL_MAX_OPERANDS);
    return mgl_task_operand(m->program, &m->program->tasks[m->task], operand);
}

/* Whether the task has the operand, which may be optional. */
static bool has_operand(const mgl_meaning *m, int operand)
{
    return mgl_task_place(&m->program->tasks[m->task], operand) >= 0;
}

int mgl_meaning_operand(const mgl_meaning *m, const char *name, size_t length)
{
    const mgl_op_info *op = mgl_op_get(m->program->tasks[m->task].op);
    for (int i = 0; i < op->in_count + op->out_count + op->extra_count; i++)
        if (mgl_text_is(name, length, op->operands[i].name))
            return i;
    return -1;
}

/* The shares [*first, *end) of the buffer's rows that the region has. Share i of n consists of
 * shares i k to (i + 1) k - 1 of n k, because both end at the same row (mgl_row_share). The unsplit
 * and the split rows are shares 0 and 1 of 2 of another division. If the region's division is not
 * that of the buffer's writers (holding.kind), the region may have rows of every share. */
static void shares_of(const mgl_meaning *m, const mgl_region *region, int *first, int *end)
{
    const mgl_range *rows = &region->ranges[0];
    const int shares = m->holdings[region->buffer].shares;
    *first = 0;
    *end = shares;
    if (mgl_range_is_part_of_rows(rows) && rows->kind == m->holdings[region->buffer].kind &&
        shares % rows->hi == 0) {
        const int each = shares / (int)rows->hi;
        *first = (int)rows->lo * each;
        *end = *first + each;
    }
}

bool mgl_meaning_find(const mgl_meaning *m, const mgl_region *region, int64_t lo, int64_t hi,
                      int *node, int64_t *node_lo)
{
    const mgl_columns *columns = m->holdings[region->buffer].columns;
    int first, end;
    shares_of(m, region, &first, &end);
    if (!mgl_check_spend(m->check, (size_t)(end - first)))
        return false;
    bool found = first < end && mgl_columns_get(&columns[first], lo, hi, node, node_lo);
    for (int i = first + 1; i < end && found; i++) {
        int other;
        int64_t other_lo;
        found = mgl_columns_get(&columns[i], lo, hi, &other, &other_lo) && other == *node &&
                other_lo == *node_lo;
    }
    return found;
}

/* Checks and keeps the number of row shares by which columns [lo, hi) are written. Other columns,
 * of another head, may have another number, as may the next value of the same columns. One value is
 * written by one number of shares. `held`: the columns hold the written value already. */
static bool keep_number(mgl_meaning *m, const mgl_region *region, int64_t lo, int64_t hi, bool held)
{
    mgl_holding *holding = &m->holdings[region->buffer];
    const int number = (int)region->ranges[0].hi;
    bool same = holding->kind == region->ranges[0].kind &&
                holding->shares % number == 0; /* else the least common multiple is too large */
    if (!mgl_check_spend(m->check, 1 + holding->numbers.count))
        return false;
    for (size_t i = 0; i < holding->numbers.count && same && held; i++) {
        const mgl_interval *item = &holding->numbers.items[i];
        same = item->hi <= lo || item->lo >= hi || item->node == number;
    }
    if (!same)
        return mgl_meaning_fail(m, 704, "other tasks divide the rows of its output in another way");
    if (!mgl_columns_set(&holding->numbers, lo, hi, number, lo))
        m->check->no_memory = true;
    return !m->check->no_memory;
}

bool mgl_meaning_put(mgl_meaning *m, const mgl_region *region, int64_t lo, int64_t hi, int node,
                     int64_t node_lo)
{
    mgl_columns *columns = m->holdings[region->buffer].columns;
    const mgl_range *rows = &region->ranges[0];
    int first, end;
    shares_of(m, region, &first, &end);
    int old;
    int64_t old_lo;
    const bool held = first < end && mgl_columns_get(&columns[first], lo, hi, &old, &old_lo) &&
                      old == node && old_lo == node_lo;
    if (mgl_range_is_part_of_rows(rows) && !keep_number(m, region, lo, hi, held))
        return false;
    for (int i = first; i < end && !m->check->no_memory; i++) {
        if (!mgl_check_spend(m->check, 1 + columns[i].count / 16))
            return false;
        if (!mgl_columns_set(&columns[i], lo, hi, node, node_lo))
            m->check->no_memory = true;
    }
    return !m->check->no_memory;
}

/* Reads the value in a slice of a buffer's columns. */
static bool read_columns(mgl_meaning *m, int operand, mgl_node_value *out)
{
    const mgl_region *region = mgl_meaning_region(m, operand);
    const mgl_range *range = &region->ranges[1];
    const mgl_columns *columns = m->holdings[region->buffer].columns; /* of the first share */
    *out = (mgl_node_value){.is_tensor = false};
    if (mgl_meaning_find(m, region, range->lo, range->hi, &out->index, &out->lo)) {
        out->hi = out->lo + mgl_range_length(range);
        return true;
    }
    char name[MGL_NAME_TEXT], place[MGL_NAME_TEXT];
    mgl_check_report(m->check, 704, m->task, 0, "%s: %s holds columns of several values",
                     mgl_check_task(m->check, m->task, name),
                     mgl_check_region(m->check, (int)(region - m->program->regions), place));
    for (size_t i = 0; i < columns->count && i < 8; i++) {
        const mgl_interval *item = &columns->items[i];
        mgl_node_value v = {false, item->node, item->lo + item->shift, item->hi + item->shift};
        mgl_check_witness(
            m->check, "columns %" PRId64 ":%" PRId64 " are columns %" PRId64 ":%" PRId64 " of %s",
            item->lo, item->hi, v.lo, v.hi, mgl_meaning_describe(m, &v, place));
    }
    return false;
}

bool mgl_meaning_read(mgl_meaning *m, int operand, mgl_node_value *out)
{
    const mgl_region *region = mgl_meaning_region(m, operand);
    const mgl_buffer *buffer = &m->program->buffers[region->buffer];
    if (buffer->space != MGL_SPACE_CONST)
        return read_columns(m, operand, out);
    const mgl_range *range = &region->ranges[buffer->rank - 1];
    *out = (mgl_node_value){true, m->check->graph_tensor[buffer->tensor], range->lo, range->hi};
    return true;
}

/* Reads a name of a formula: tokens, W, W2, B, B2 or an operand. */
static bool read_name(mgl_meaning *m, const char *name, size_t length, mgl_node_value *out)
{
    if (mgl_text_is(name, length, "tokens")) {
        const int none[3] = {-1, -1, -1};
        *out = (mgl_node_value){false, mgl_graph_find(m->graph, MGL_NODE_TOKENS, none, -1), 0, 1};
        return out->index >= 0 || mgl_meaning_fail(m, 703, "the graph has no tokens");
    }
    if (m->segment && name[0] == 'W' && length <= 2) {
        int tensor = length == 1 ? m->segment->tensor : m->segment->tensor2;
        *out = (mgl_node_value){true, m->check->graph_tensor[tensor], m->segment->row_lo,
                                m->segment->row_hi};
        return true;
    }
    bool bias = m->segment && name[0] == 'B' && length <= 2;
    int operand = bias ? m->bias + (length == 2) : mgl_meaning_operand(m, name, length);
    if (operand >= 0 && has_operand(m, operand))
        return mgl_meaning_read(m, operand, out);
    *out = (mgl_node_value){.is_tensor = true, .index = MGL_TENSOR_ABSENT};
    return (operand >= 0 &&
            mgl_op_get(m->program->tasks[m->task].op)->operands[operand].optional) ||
           mgl_meaning_fail(m, 703, "its formula names what is not an operand");
}

/* ---- applying a node kind ---- */

static bool matches(const mgl_node *node, mgl_node_kind kind, const int in[3], int tensor)
{
    return node->kind == kind && node->tensor == tensor && node->in[0] == in[0] &&
           node->in[1] == in[1] && node->in[2] == in[2];
}

int mgl_meaning_find_node(mgl_meaning *m, mgl_node_kind kind, const int in[3], int tensor)
{
    uint32_t hash = (uint32_t)kind;
    for (int i = 0; i < 3; i++)
        hash = hash * 31 + (uint32_t)in[i];
    int *slot = &m->find_cache[(hash * 31 + (uint32_t)tensor) % MGL_MEANING_CACHE];
    if (*slot < 0 || !matches(&m->graph->nodes[*slot], kind, in, tensor))
        *slot = mgl_graph_find(m->graph, kind, in, tensor);
    return *slot;
}

static bool is_whole(const mgl_meaning *m, const mgl_node_value *v)
{
    return !v->is_tensor && v->lo == 0 && v->hi == m->graph->nodes[v->index].width;
}

/* Whether query heads and kv heads are paired as in the model, by their columns. */
static bool heads_match(const mgl_meaning *m, const mgl_node_value *q, const mgl_node_value *k,
                        const mgl_node_value *v)
{
    const mgl_geometry *g = &m->program->geometry;
    int64_t d = g->head_dim, wide = g->heads / g->kv_heads * d, kv = q->lo / wide * d;
    return q->lo % d == 0 && (q->hi - 1) / wide * d == kv && q->hi % d == 0 && k->lo == kv &&
           k->hi == kv + d && v->lo == kv && v->hi == kv + d;
}

/* The columns that a kind computes from its inputs' columns. False if the columns do not fit. */
static bool result_columns(mgl_meaning *m, mgl_node_kind kind, const mgl_node_value *in,
                           const mgl_node_value *tensor, mgl_node_value *out)
{
    switch (kind) {
    case MGL_NODE_NORM:
    case MGL_NODE_SAMPLE:
    case MGL_NODE_LINEAR:
        if (!is_whole(m, &in[0]))
            return mgl_meaning_fail(m, 704, "its input is not a whole value, column for column");
        *out = tensor ? *tensor : (mgl_node_value){.hi = 1};
        return true;
    case MGL_NODE_EMBED:
        *out = *tensor;
        return true;
    case MGL_NODE_SWIGLU:
    case MGL_NODE_ADD:
        if (in[0].lo != in[1].lo || in[0].hi != in[1].hi)
            return mgl_meaning_fail(m, 704, "its two inputs are not the same columns");
        *out = in[0];
        return true;
    case MGL_NODE_BIAS:
        *out = in[0];
        return true;
    case MGL_NODE_HEAD_NORM:
        if (in[0].lo % m->program->geometry.head_dim || in[0].hi % m->program->geometry.head_dim)
            return mgl_meaning_fail(m, 705, "q or k is not whole heads");
        *out = in[0];
        return true;
    case MGL_NODE_ATTENTION:
        if (!heads_match(m, &in[0], &in[1], &in[2]))
            return mgl_meaning_fail(m, 705, "q, k and v are not heads that belong together");
        *out = in[0];
        return true;
    case MGL_NODE_TOKENS:
    case MGL_NODE_KIND_COUNT:
        break;
    }
    return mgl_meaning_fail(m, 703, "its formula uses what is not an operation");
}

/* The number of tensors that the kind takes after its inputs. */
static int kind_tensors(mgl_node_kind kind)
{
    return kind == MGL_NODE_EMBED || kind == MGL_NODE_NORM || kind == MGL_NODE_LINEAR ||
           kind == MGL_NODE_BIAS || kind == MGL_NODE_HEAD_NORM;
}

static bool apply(mgl_meaning *m, mgl_node_kind kind, int inputs, const mgl_node_value *args,
                  int count, mgl_node_value *out)
{
    int in[3] = {-1, -1, -1};
    const mgl_node_value *tensor = kind_tensors(kind) ? &args[inputs] : NULL;
    if (count != inputs + kind_tensors(kind) || (tensor && !tensor->is_tensor))
        return mgl_meaning_fail(m, 703, "its formula does not fit the operation");
    for (int i = 0; i < inputs; i++) {
        if (args[i].is_tensor)
            return mgl_meaning_fail(m, 703, "its formula does not fit the operation");
        in[i] = args[i].index;
    }
    if (tensor && tensor->index == MGL_TENSOR_ABSENT) {
        *out = args[0];
        return true;
    }
    int node = mgl_meaning_find_node(m, kind, in, tensor ? tensor->index : -1);
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

/* ---- formulas ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const char *mgl_meaning_take_name(mgl_meaning *m, size_t *length)
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
        if (mgl_text_is(name, length, kinds[i].name)) {
            *kind = (mgl_node_kind)i;
            *inputs = kinds[i].inputs;
            return true;
        }
    return false;
}

/* Evaluates (name) after `merge`. */
static bool evaluate_merge(mgl_meaning *m, mgl_node_value *out)
{
    size_t length;
    m->at++;
    const char *name = mgl_meaning_take_name(m, &length);
    const int operand = mgl_meaning_operand(m, name, length);
    if (*m->at++ != ')' || operand < 0)
        return mgl_meaning_fail(m, 703, "its formula does not merge an operand");
    return mgl_splits_read(m, operand, out);
}

/* Evaluates (y, g) after `gamma_scaled`, or (n, s) after `rms_normalized`. */
static bool evaluate_gamma_scaled(mgl_meaning *m, bool scales, mgl_node_value *out)
{
    size_t length;
    mgl_node_value first, second;
    m->at++;
    const char *name = mgl_meaning_take_name(m, &length);
    if (!read_name(m, name, length, &first))
        return false;
    name = mgl_meaning_take_name(m, &length);
    const int operand = mgl_meaning_operand(m, name, length);
    if (*m->at++ != ')' || operand < 0)
        return mgl_meaning_fail(m, 703, "its formula does not weigh or scale an operand");
    if (scales)
        return mgl_gamma_scale(m, &first, operand, out);
    return mgl_meaning_read(m, operand, &second) && mgl_gamma_make(m, &first, &second, out);
}

/* Evaluates (name) after `penalized`. */
static bool evaluate_penalized(mgl_meaning *m, mgl_node_value *out)
{
    size_t length;
    m->at++;
    const char *name = mgl_meaning_take_name(m, &length);
    if (!read_name(m, name, length, out))
        return false;
    if (*m->at++ != ')' || out->is_tensor || out->index >= m->graph->node_count)
        return mgl_meaning_fail(m, 703, "its formula penalizes values that are not logits");
    out->index = penalized_of(m, out->index);
    return true;
}

/* Grammar: name, or kind(expression, ...). The recursion is as deep as the formulas of ops.def. */
bool mgl_meaning_evaluate(mgl_meaning *m, mgl_node_value *out)
{
    size_t length;
    const char *name = mgl_meaning_take_name(m, &length);
    if (*m->at != '(')
        return read_name(m, name, length, out);
    mgl_node_kind kind;
    int inputs, count = 0;
    mgl_node_value args[4];
    if (mgl_text_is(name, length, "merge"))
        return evaluate_merge(m, out);
    if (mgl_text_is(name, length, "gamma_scaled") || mgl_text_is(name, length, "rms_normalized"))
        return evaluate_gamma_scaled(m, mgl_text_is(name, length, "rms_normalized"), out);
    if (mgl_text_is(name, length, "penalized"))
        return evaluate_penalized(m, out);
    if (!find_kind(name, length, &kind, &inputs))
        return mgl_meaning_fail(m, 703, "its formula uses what is not an operation");
    m->at++;
    while (*m->at != ')') {
        if (count == 4 || *m->at == 0)
            return mgl_meaning_fail(m, 703, "its formula does not fit the operation");
        if (!mgl_meaning_evaluate(m, &args[count++]))
            return false;
    }
    m->at++;
    return apply(m, kind, inputs, args, count, out);
}

bool mgl_meaning_open(mgl_meaning *m, const char *formula, int *output)
{
    size_t length;
    m->at = formula;
    const char *name = mgl_meaning_take_name(m, &length);
    *output = mgl_meaning_operand(m, name, length);
    if (*output < 0 || strncmp(m->at, " = ", 3) != 0)
        return mgl_meaning_fail(m, 703, "its formula does not name an output");
    m->at += 3;
    return true;
}

/* The next formula, or NULL. */
static const char *next_formula(const char *formula)
{
    const char *end = strstr(formula, "; ");
    return end ? end + 2 : NULL;
}

const char *mgl_meaning_formula(const mgl_meaning *m)
{
    return mgl_op_get(m->program->tasks[m->task].op)->meaning;
}

/* ---- storing ---- */

bool mgl_meaning_store(mgl_meaning *m, int operand, int64_t at, const mgl_node_value *v)
{
    return mgl_meaning_put(m, mgl_meaning_region(m, operand), at, at + (v->hi - v->lo), v->index,
                           v->lo);
}

/* s = squares(y) */
static bool run_squares(mgl_meaning *m, int output)
{
    mgl_node_value y;
    size_t length;
    m->at += strlen("squares(");
    m->segment = NULL;
    const char *name = mgl_meaning_take_name(m, &length);
    return read_name(m, name, length, &y) && mgl_gamma_squares(m, output, &y);
}

/* Evaluates one formula segment by segment, into consecutive columns of its output. */
static bool run_formula(mgl_meaning *m, const char *formula)
{
    const mgl_task *task = &m->program->tasks[m->task];
    int count = task->segments.count, output;
    if (!mgl_meaning_open(m, formula, &output))
        return false;
    if (!has_operand(m, output))
        return true;
    const mgl_op_info *op = mgl_op_get(task->op);
    const mgl_range *columns = &mgl_meaning_region(m, output)->ranges[1];
    const char *expression = m->at;
    if (!strncmp(expression, "squares(", 8))
        return run_squares(m, output);
    m->bias = op->in_count + op->out_count;
    int64_t at = columns->lo;
    for (int i = 0; i < (count ? count : 1); i++) {
        mgl_node_value v;
        m->segment = count ? &m->program->segments[task->segments.first + i] : NULL;
        m->at = expression;
        if (!mgl_meaning_evaluate(m, &v) || !mgl_meaning_store(m, output, at, &v))
            return false;
        m->bias += m->segment && m->segment->tensor2 >= 0 ? 2 : 1;
        at += v.hi - v.lo;
    }
    return at == columns->hi || mgl_meaning_fail(m, 704, "its value does not fill the output");
}

bool mgl_meaning_run(mgl_meaning *m)
{
    for (const char *formula = mgl_meaning_formula(m); formula; formula = next_formula(formula))
        if (!run_formula(m, formula))
            return false;
    return true;
}

/* ---- head and sample ---- */

/* One part of the running argmax: the vocabulary rows that it covers. */
struct mgl_best {
    int node;
    int64_t lo, hi;
};

/* Records the rows that a part of the running argmax covers, if sample reads that part. */
static void note_best(mgl_meaning *m, const char *operand, int role, struct mgl_best *parts,
                      const struct mgl_best *best)
{
    const mgl_region *region =
        mgl_meaning_region(m, mgl_meaning_operand(m, operand, strlen(operand)));
    const mgl_task *sample = &m->program->tasks[m->check->sample];
    if (region->buffer == m->program->regions[mgl_task_region(sample, role)].buffer) {
        MGL_ASSERT(region->ranges[1].lo < m->parts);
        parts[region->ranges[1].lo] = *best;
    }
}

static bool run_head(mgl_meaning *m)
{
    if (!mgl_meaning_run(m))
        return false;
    mgl_node_value taken; /* the value whose argmax is taken */
    const int penalized = mgl_meaning_operand(m, "penalized", 9);
    if (!mgl_meaning_read(
            m, has_operand(m, penalized) ? penalized : mgl_meaning_operand(m, "logits", 6), &taken))
        return false;
    struct mgl_best best = {taken.index, taken.lo, taken.hi};
    note_best(m, "best_value", MGL_OPERAND(sample, best_value), m->value, &best);
    note_best(m, "best_id", MGL_OPERAND(sample, best_id), m->id, &best);
    return true;
}

/* The value that sample chooses from: the logits node, or the number of its penalized logits. */
static bool find_chosen(mgl_meaning *m, const mgl_node_value *logits, int *node)
{
    mgl_node_value penalized;
    *node = logits->index;
    if (!has_operand(m, MGL_OPERAND(sample, penalized)))
        return true;
    *node = penalized_of(m, logits->index);
    if (!mgl_meaning_read(m, MGL_OPERAND(sample, penalized), &penalized))
        return false;
    return (penalized.index == *node && penalized.lo == logits->lo && penalized.hi == logits->hi) ||
           mgl_meaning_fail(m, 707, "what it chooses from are not its logits, penalized");
}

/* All tasks draw from one value, from all of its columns. */
static bool run_draw(mgl_meaning *m)
{
    mgl_node_value v;
    if (!mgl_meaning_read(m, MGL_OPERAND(draw, logits), &v))
        return false;
    if (v.lo != 0 || (m->drawn >= 0 && m->drawn != v.index))
        return mgl_meaning_fail(m, 707, "it draws from another value than other tasks");
    m->drawn = v.index;
    return true;
}

static bool run_sample(mgl_meaning *m)
{
    int output, chosen;
    mgl_node_value result, logits;
    m->segment = NULL;
    if (!mgl_meaning_open(m, mgl_meaning_formula(m), &output) ||
        !mgl_meaning_evaluate(m, &result) ||
        !mgl_meaning_read(m, mgl_meaning_operand(m, "logits", 6), &logits) ||
        !find_chosen(m, &logits, &chosen))
        return false;
    if (result.index != m->graph->output)
        return mgl_meaning_fail(m, 707, "what it reads are not the logits of the model's output");
    if (m->drawn >= 0 && m->drawn != chosen)
        return mgl_meaning_fail(m, 707, "its tokens are drawn from another value than its logits");
    int64_t at = 0;
    for (int64_t i = 0; i < m->parts; i++) {
        const struct mgl_best *value = &m->value[i], *id = &m->id[i];
        if (value->lo != at || id->lo != at || value->hi != id->hi || value->node != chosen ||
            id->node != chosen) {
            mgl_meaning_fail(m, 707,
                             "the parts of the running argmax are not the vocabulary in order");
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
        return mgl_meaning_fail(
            m, 707, "the parts of the running argmax do not reach the vocabulary's end");
    return true;
}

/* ---- the interpretation ---- */

typedef bool run_fn(mgl_meaning *m);

static bool run_nothing(mgl_meaning *m)
{
    (void)m;
    return true;
}

static run_fn *const runs[MGL_OP_COUNT] = {
    [MGL_OP_ENTER] = run_nothing,
    [MGL_OP_EMBED] = mgl_meaning_run,
    [MGL_OP_NORM_LINEAR] = mgl_meaning_run,
    [MGL_OP_ATTEND] = mgl_splits_run_attend,
    [MGL_OP_ATTEND_TAIL] = mgl_splits_run_attend_tail,
    [MGL_OP_ATTEND_PAST] = mgl_splits_run_attend_past,
    [MGL_OP_MERGE] = mgl_splits_run_merge,
    [MGL_OP_LINEAR_ADD] = mgl_meaning_run,
    [MGL_OP_NORM_SWIGLU] = mgl_meaning_run,
    [MGL_OP_HEAD] = run_head,
    [MGL_OP_SAMPLE] = run_sample,
    [MGL_OP_CLEAR] = run_nothing,
    [MGL_OP_MERGE_ADD] = mgl_meaning_run,
    [MGL_OP_EMBED_GAMMA] = mgl_meaning_run,
    [MGL_OP_LINEAR_ADD_GAMMA] = mgl_meaning_run,
    [MGL_OP_RMS_LINEAR] = mgl_meaning_run,
    [MGL_OP_RMS_SWIGLU] = mgl_meaning_run,
    [MGL_OP_RMS_HEAD] = run_head,
    [MGL_OP_ATTEND_ROWS] = mgl_splits_run_attend_rows,
    [MGL_OP_DRAW] = run_draw,
};

/* Computes the number of row shares into which all writers of a buffer together divide it. If some
 * writers have shares and others the unsplit or the split rows, the division of the first writer is
 * used, and keep_number rejects the others. */
static void count_shares(mgl_meaning *m)
{
    const mgl_program *p = m->program;
    for (int i = 0; i < p->buffer_count && m->holdings; i++) {
        m->holdings[i].shares = 1;
        m->holdings[i].kind = MGL_RANGE_ROWS;
    }
    for (int t = 0; t < p->task_count && m->holdings; t++)
        for (int i = p->tasks[t].out.first; i < p->tasks[t].out.first + p->tasks[t].out.count; i++)
            if (mgl_range_is_part_of_rows(&p->regions[i].ranges[0])) {
                mgl_holding *h = &m->holdings[p->regions[i].buffer];
                if (h->kind == MGL_RANGE_ROWS)
                    h->kind = p->regions[i].ranges[0].kind;
                if (h->kind == p->regions[i].ranges[0].kind)
                    h->shares = mgl_common_shares(h->shares, (int)p->regions[i].ranges[0].hi);
            }
}

static void prepare(mgl_meaning *m)
{
    mgl_check *check = m->check;
    const mgl_program *p = m->program;
    const mgl_task *sample = &p->tasks[check->sample];
    const mgl_region *best = &p->regions[mgl_task_region(sample, MGL_OPERAND(sample, best_value))];
    m->parts = p->buffers[best->buffer].extents[1].count;
    m->value = mgl_check_alloc(check, (size_t)m->parts, sizeof *m->value);
    m->id = mgl_check_alloc(check, (size_t)m->parts, sizeof *m->id);
    m->holdings = mgl_check_alloc(check, (size_t)p->buffer_count, sizeof *m->holdings);
    m->drawn = -1;
    count_shares(m);
    for (int i = 0; i < MGL_MEANING_CACHE; i++)
        m->find_cache[i] = -1;
    for (int i = 0; i < p->buffer_count && !check->no_memory; i++) {
        const mgl_buffer *b = &p->buffers[i];
        bool used = check->boxes.first[i] < check->boxes.first[i + 1];
        if (used && b->space == MGL_SPACE_ACT && b->rank == 4)
            m->holdings[i].partials = mgl_check_alloc(
                check, (size_t)b->extents[0].count * (size_t)b->extents[2].count * MGL_ROWS_KINDS,
                sizeof(mgl_partial));
        else if (used && b->space == MGL_SPACE_KV)
            m->holdings[i].owners = mgl_check_alloc(
                check, (size_t)b->extents[1].count * MGL_ROWS_KINDS, sizeof(mgl_owner));
        else
            m->holdings[i].columns =
                mgl_check_alloc(check, (size_t)m->holdings[i].shares, sizeof(mgl_columns));
    }
}

static void clear(mgl_meaning *m)
{
    for (int i = 0; i < m->program->buffer_count && m->holdings; i++) {
        for (int s = 0; s < m->holdings[i].shares && m->holdings[i].columns; s++)
            mgl_free(m->holdings[i].columns[s].items);
        mgl_free(m->holdings[i].columns);
        mgl_free(m->holdings[i].numbers.items);
        mgl_free(m->holdings[i].partials);
        mgl_free(m->holdings[i].owners);
        mgl_free(m->holdings[i].ends);
    }
    mgl_free(m->holdings);
    mgl_free(m->value);
    mgl_free(m->id);
}

/* Keeps the content of the caches for the comparison of two lists or two programs. */
static void keep_cached(mgl_meaning *m)
{
    const mgl_program *p = m->program;
    const int heads = p->geometry.kv_heads;
    mgl_check *check = m->check;
    size_t count = 0;
    for (int i = 0; i < p->buffer_count; i++)
        count += p->buffers[i].space == MGL_SPACE_KV;
    mgl_cached *at = check->cached = mgl_check_alloc(check, count * (size_t)heads, sizeof *at);
    for (int i = 0; i < p->buffer_count && at; i++) {
        const mgl_owner *owners = m->holdings[i].owners;
        for (int h = 0; p->buffers[i].space == MGL_SPACE_KV && h < heads; h++, at++) {
            const mgl_owner *owner = owners ? &owners[h * MGL_ROWS_KINDS] : NULL;
            *at = (mgl_cached){.node = -1};
            if (owner && owner->task) /* both owners of a head append the same value */
                *at = (mgl_cached){owner->value.index, owner->value.lo};
        }
    }
}

void mgl_check_meaning(mgl_check *check)
{
    const mgl_program *p = check->program;
    if (!check->graph)
        return;
    mgl_meaning *m = mgl_check_alloc(check, 1, sizeof *m);
    if (!m)
        return;
    *m = (mgl_meaning){.check = check, .program = p, .graph = check->graph};
    prepare(m);
    check->verdict->meaning_checked = true;
    /* The first fault ends the interpretation: later faults would only repeat it. */
    for (int i = 0; i < p->task_count && !check->no_memory; i++) {
        m->task = check->order[i];
        run_fn *run = runs[p->tasks[m->task].op];
        if (run ? !run(m) : !mgl_meaning_fail(m, 703, "the validator has no meaning for its op"))
            break;
    }
    if (p->second || check->first || check->in_pair)
        keep_cached(m);
    clear(m);
    mgl_free(m);
}
