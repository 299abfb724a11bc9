/*
 * The part of the meaning pass for attention, its cache and its splits (split-KV attention): MG705
 * and MG706. meaning.c calls these functions for tasks of attention and merge, and for the function
 * `merge` in formulas, which is no node kind.
 *
 * Cache: each head of a cache has one owner, the only task that appends to it; or it has two, one
 * for the unsplit rows and one for the split rows, and both append the same node. [:pos] of the
 * head holds what the owners appended in earlier epochs. Epochs are alike, so the head holds one
 * node, the node that the owners append in this epoch. A task of attend_rows that does not append
 * must read that node.
 *
 * Splits: a partial is the result of one split for one head. attend_past may run before the owner
 * of its cache, so each partial only records its queries and its cache. merge compares the partials
 * of a head: all must have the same queries and the same cache, and exactly one must be of
 * attend_tail. The result of merge is the attention node of the partial of attend_tail. The unsplit
 * and the split rows have partials of their own, because other tasks may write them; a merge of all
 * rows needs the same node in both.
 */
#include "validator/meaning.h"

#include "base/assert.h"

#include <inttypes.h>
#include <string.h>

static bool same_source(const mgl_partial *a, const mgl_partial *b)
{
    return a->q.index == b->q.index && a->q.lo == b->q.lo && a->k_cache == b->k_cache &&
           a->v_cache == b->v_cache && a->kv_head == b->kv_head;
}

static void witness_partial(mgl_meaning *m, int64_t split, const mgl_partial *cell)
{
    char name[MGL_NAME_TEXT];
    if (cell->set)
        mgl_check_witness(m->check,
                          "split %" PRId64 ": queries are columns %" PRId64 ":%" PRId64
                          " of %s, caches %.48s and %.48s, kv head %" PRId64,
                          split, cell->q.lo, cell->q.hi, mgl_meaning_describe(m, &cell->q, name),
                          m->program->buffers[cell->k_cache].name,
                          m->program->buffers[cell->v_cache].name, cell->kv_head);
}

/* Whether a range of rows has rows of a kind (MGL_ROWS_UNSPLIT or MGL_ROWS_SPLIT). */
static bool has_kind(const mgl_range *rows, int kind)
{
    return !mgl_range_has_row_kind(rows) || rows->lo == kind;
}

/* The partial results of rows of a kind, of split 0 and head 0 of a region's buffer; the heads of a
 * split are contiguous. */
static mgl_partial *partials_of(mgl_meaning *m, const mgl_region *part, int kind)
{
    const int64_t splits = m->program->buffers[part->buffer].extents[0].count;
    return &m->holdings[part->buffer].partials[kind * splits * m->program->geometry.heads];
}

/* Finds the attention node of one head from the partials of all splits, of rows of one kind. */
static bool merge_rows(mgl_meaning *m, const mgl_partial *cells, int64_t splits,
                       mgl_node_value *out)
{
    const mgl_geometry *g = &m->program->geometry;
    int tails = 0;
    for (int64_t i = 0; i < splits; i++) {
        const mgl_partial *cell = &cells[i * g->heads];
        if (!cell->set || !same_source(cell, cells)) {
            mgl_meaning_fail(m, 706, "the splits are not of the same queries and the same cache");
            witness_partial(m, 0, cells);
            witness_partial(m, i, cell);
            return false;
        }
        if (cell->tail)
            *out = cell->attention;
        tails += cell->tail;
    }
    if (tails != 1)
        return mgl_meaning_fail(m, 706, "not exactly one of the splits is an attend_tail");
    return true;
}

static bool is_same_value(const mgl_node_value *a, const mgl_node_value *b)
{
    return a->index == b->index && a->lo == b->lo && a->hi == b->hi;
}

/* The same of all rows of the region `part`. */
static bool merge_head(mgl_meaning *m, const mgl_region *part, int64_t head, mgl_node_value *out)
{
    const int64_t splits = m->program->buffers[part->buffer].extents[0].count;
    bool found = false;
    for (int kind = 0; kind < MGL_ROWS_KINDS; kind++) {
        mgl_node_value v = {.is_tensor = false};
        if (!has_kind(&part->ranges[1], kind))
            continue;
        if (!merge_rows(m, &partials_of(m, part, kind)[head], splits, &v))
            return false;
        if (found && !is_same_value(&v, out))
            return mgl_meaning_fail(
                m, 706, "the splits of unsplit and of split rows are not of the same value");
        *out = v;
        found = true;
    }
    return true;
}

bool mgl_splits_read(mgl_meaning *m, int operand, mgl_node_value *out)
{
    const mgl_region *part = mgl_meaning_region(m, operand);
    for (int64_t head = part->ranges[2].lo; head < part->ranges[2].hi; head++) {
        mgl_node_value v = {.is_tensor = false};
        if (!merge_head(m, part, head, &v))
            return false;
        if (head == part->ranges[2].lo)
            *out = v;
        else if (v.index != out->index || v.lo != out->hi)
            return mgl_meaning_fail(
                m, 704, "the heads that it merges are not columns of one value, in order");
        out->hi = v.hi;
    }
    return true;
}

/* ---- tasks ---- */

/* The owners (MGL_ROWS_KINDS) of the head that a region of a cache names. */
static mgl_owner *owners_of(mgl_meaning *m, const mgl_region *region)
{
    return &m->holdings[region->buffer].owners[region->ranges[1].lo * MGL_ROWS_KINDS];
}

/* Records that the task appends the value of operand `from` to the head of operand `to`, for the
 * rows of `to`: all, the unsplit or the split ones. */
static bool own_cache(mgl_meaning *m, const char *from, const char *to)
{
    const mgl_region *region = mgl_meaning_region(m, mgl_meaning_operand(m, to, strlen(to)));
    const mgl_range *now = &region->ranges[2];
    mgl_owner *owners = owners_of(m, region);
    mgl_node_value value;
    if (!mgl_meaning_read(m, mgl_meaning_operand(m, from, strlen(from)), &value))
        return false;
    for (int kind = 0; kind < MGL_ROWS_KINDS; kind++) {
        mgl_owner *owner = &owners[kind];
        const bool is_own = has_kind(now, kind);
        if (is_own && owner->task) {
            char name[MGL_NAME_TEXT];
            mgl_meaning_fail(
                m, 705, "another task appends the same rows to the same head of the same cache");
            mgl_check_witness(m->check, "%s", mgl_check_task(m->check, owner->task - 1, name));
            return false;
        }
        if (!is_own && owner->task && !is_same_value(&owner->value, &value))
            return mgl_meaning_fail(m, 705,
                                    "another task appends a different value for the other rows of "
                                    "the same head");
        if (owner->is_wanted && !is_same_value(&value, &owner->wanted))
            return mgl_meaning_fail(
                m, 705, "it appends another value than a task of attend_rows reads there");
        if (is_own) {
            owner->task = m->task + 1;
            owner->value = value;
        }
    }
    return true;
}

/* Records that the task relies on the head of operand `past` to hold the earlier positions of
 * operand `from`. The tasks that append to that head may run before or after. */
static bool want_cache(mgl_meaning *m, const char *from, const char *past)
{
    mgl_owner *owners =
        owners_of(m, mgl_meaning_region(m, mgl_meaning_operand(m, past, strlen(past))));
    mgl_node_value value;
    if (!mgl_meaning_read(m, mgl_meaning_operand(m, from, strlen(from)), &value))
        return false;
    for (mgl_owner *owner = owners; owner < owners + MGL_ROWS_KINDS; owner++) {
        if ((owner->task && !is_same_value(&owner->value, &value)) ||
            (owner->is_wanted && !is_same_value(&owner->wanted, &value)))
            return mgl_meaning_fail(m, 705, "the cache that it reads does not hold its k and v");
        owner->is_wanted = true;
        owner->wanted = value;
    }
    return true;
}

bool mgl_splits_run_attend(mgl_meaning *m)
{
    return mgl_meaning_run(m) && own_cache(m, "k", "k_now") && own_cache(m, "v", "v_now");
}

bool mgl_splits_run_attend_rows(mgl_meaning *m)
{
    const mgl_task *task = &m->program->tasks[m->task];
    if (!mgl_meaning_run(m))
        return false;
    if (mgl_task_place(task, MGL_OPERAND(attend_rows, k_now)) < 0)
        return want_cache(m, "k", "k_past") && want_cache(m, "v", "v_past");
    return own_cache(m, "k", "k_now") && own_cache(m, "v", "v_now");
}

/* Stores one partial for each head of the part's slice, for the rows that it has. */
static bool store_partials(mgl_meaning *m, const mgl_node_value *q, bool tail,
                           const mgl_node_value *attention)
{
    const mgl_region *part = mgl_meaning_region(m, mgl_meaning_operand(m, "part", 4));
    const mgl_region *k = mgl_meaning_region(m, mgl_meaning_operand(m, "k_past", 6));
    const mgl_region *v = mgl_meaning_region(m, mgl_meaning_operand(m, "v_past", 6));
    const mgl_geometry *g = &m->program->geometry;
    const int64_t at = part->ranges[0].lo * g->heads + part->ranges[2].lo;
    MGL_ASSERT(part->ranges[2].hi <= g->heads);
    if (q->lo % g->head_dim)
        return mgl_meaning_fail(m, 705, "q does not start at a head");
    for (int64_t i = 0; i < mgl_range_length(&part->ranges[2]); i++) {
        mgl_node_value one = *q;
        one.lo += i * g->head_dim;
        one.hi = one.lo + g->head_dim;
        mgl_partial cell = {.set = true,
                            .tail = tail,
                            .q = one,
                            .k_cache = k->buffer,
                            .v_cache = v->buffer,
                            .kv_head = k->ranges[1].lo,
                            .attention = one};
        cell.attention.index = attention ? attention->index : -1;
        for (int kind = 0; kind < MGL_ROWS_KINDS; kind++)
            if (has_kind(&part->ranges[1], kind))
                partials_of(m, part, kind)[at + i] = cell;
    }
    return true;
}

/* The queries of the task: the first argument of its formula. */
static bool read_query(mgl_meaning *m, mgl_node_value *q)
{
    int output;
    size_t length;
    if (!mgl_meaning_open(m, mgl_meaning_formula(m), &output))
        return false;
    mgl_meaning_take_name(m, &length);
    m->at++;
    return mgl_meaning_evaluate(m, q);
}

bool mgl_splits_run_attend_tail(mgl_meaning *m)
{
    int output;
    mgl_node_value q, attention;
    m->segment = NULL;
    return mgl_meaning_open(m, mgl_meaning_formula(m), &output) &&
           mgl_meaning_evaluate(m, &attention) && read_query(m, &q) &&
           store_partials(m, &q, true, &attention) && own_cache(m, "k", "k_now") &&
           own_cache(m, "v", "v_now");
}

bool mgl_splits_run_attend_past(mgl_meaning *m)
{
    mgl_node_value q;
    m->segment = NULL;
    return read_query(m, &q) && store_partials(m, &q, false, NULL);
}

bool mgl_splits_run_merge(mgl_meaning *m)
{
    const mgl_region *part = mgl_meaning_region(m, 0);
    const mgl_geometry *g = &m->program->geometry;
    int64_t at = mgl_meaning_region(m, 1)->ranges[1].lo;
    for (int64_t head = part->ranges[2].lo; head < part->ranges[2].hi; head++) {
        mgl_node_value v = {.is_tensor = false};
        if (!merge_head(m, part, head, &v) || !mgl_meaning_store(m, 1, at, &v))
            return false;
        at += g->head_dim;
    }
    return true;
}
