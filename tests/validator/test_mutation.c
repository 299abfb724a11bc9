/*
 * Mutation tests: every single edit of a two-layer, three-queue program, lowered with counters or
 * written with flags. Edits change each field of each task, region, segment, edge, buffer, tensor
 * and of the header, and leave out, double or exchange each part. Programs that the validator
 * accepts must compute the same as the original in every interleaving that the test machine draws.
 * The test also checks the number of harmless edits, which detects a validator that accepts or
 * rejects everything.
 */
#include "machine.h"
#include "support.h"
#include "tests/sanitized.h"

#include <stdio.h>

enum { SEEDS = BY_SANITIZER(12, 3) };

static const mgl_program *original;
static const mgl_graph *graph;
static struct outcome reference;
static int tried, accepted;

static bool same(const struct outcome *a, const struct outcome *b)
{
    return !a->stuck && !a->unordered && !memcmp(a->tokens, b->tokens, sizeof a->tokens);
}

/* Whether the program computes the same as the original in all drawn interleavings. */
static bool is_equivalent(const mgl_program *program)
{
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        struct outcome out;
        machine_run(program, seed, &out);
        if (!same(&out, &reference))
            return false;
    }
    return true;
}

/* Validates an edited program, runs it if it is accepted, and releases it. */
static void judge(mgl_program *program, const char *what, int index)
{
    mgl_verdict verdict = verdict_of(program, graph);
    tried++;
    if (verdict.accepted) {
        accepted++;
        ck_assert_msg(is_equivalent(program), "accepted, but not equivalent: %s of %d", what,
                      index);
    }
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}

static mgl_program *copy(void)
{
    return copy_without(original, NO_PIECE, -1);
}

/* Sets one integer field of the program, by its address in a fresh copy, to `value`. */
#define EDIT(field, value, what, index)                                                            \
    do {                                                                                           \
        mgl_program *edited = copy();                                                              \
        if (edited->field != (value)) {                                                            \
            edited->field = (value);                                                               \
            judge(edited, what, index);                                                            \
        } else {                                                                                   \
            mgl_program_free(edited);                                                              \
        }                                                                                          \
    } while (0)

/* ---- pieces ---------------------------------------------------------------------------------- */

static void drop_all(enum piece piece, int count, const char *what)
{
    for (int i = 0; i < count; i++)
        judge(copy_without(original, piece, i), what, i);
}

static void edit_pieces(void)
{
    drop_all(PIECE_TASK, original->task_count, "dropped task");
    drop_all(PIECE_WAIT, original->wait_count, "dropped wait");
    drop_all(PIECE_SIGNAL, original->signal_count, "dropped signal");
    drop_all(PIECE_REGION, original->region_count, "dropped region");
    drop_all(PIECE_SEGMENT, original->segment_count, "dropped segment");
    drop_all(DOUBLE_TASK, original->task_count, "doubled task");
    for (int q = 0; q < original->queue_count; q++)
        for (int i = 0; i < original->queues[q].tasks.count - 1; i++) {
            int task = original->queues[q].tasks.first + i;
            judge(copy_without(original, SWAP_TASK, task), "swapped task", task);
        }
    for (int i = 0; i < original->task_count; i++)
        for (int op = 0; op < MGL_OP_COUNT; op++)
            EDIT(tasks[i].op, (mgl_op)op, "op", i);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void edit_edges(void)
{
    const mgl_program *p = original;
    for (int i = 0; i < p->wait_count; i++) {
        for (int c = 0; c < p->counter_count; c++)
            EDIT(waits[i].counter, c, "counter of wait", i);
        for (int t = -1; t <= 4; t++)
            EDIT(waits[i].threshold, t, "threshold of wait", i);
    }
    for (int i = 0; i < p->signal_count; i++)
        for (int c = 0; c < p->counter_count; c++)
            EDIT(signals[i], c, "signal", i);
}

/* ---- regions --------------------------------------------------------------------------------- */

static const int64_t moves[] = {-16, -8, -1, 1, 8, 16};
enum { MOVES = sizeof moves / sizeof *moves };

static void edit_range(int i, int d)
{
    const mgl_range *range = &original->regions[i].ranges[d];
    for (int kind = 0; kind <= MGL_RANGE_ROW_KIND; kind++)
        EDIT(regions[i].ranges[d].kind, (mgl_range_kind)kind, "kind of region", i);
    for (int m = 0; m < MOVES; m++) {
        EDIT(regions[i].ranges[d].lo, range->lo + moves[m], "lo of region", i);
        EDIT(regions[i].ranges[d].hi, range->hi + moves[m], "hi of region", i);
        mgl_program *shifted = copy();
        shifted->regions[i].ranges[d].lo += moves[m];
        shifted->regions[i].ranges[d].hi += moves[m];
        judge(shifted, "shifted region", i);
    }
}

static void edit_regions(void)
{
    for (int i = 0; i < original->region_count; i++) {
        const mgl_buffer *buffer = &original->buffers[original->regions[i].buffer];
        EDIT(regions[i].flag, !original->regions[i].flag, "flag of region", i);
        for (int b = 0; b < original->buffer_count; b++)
            EDIT(regions[i].buffer, b, "buffer of region", i);
        for (int d = 0; d < buffer->rank; d++)
            if (buffer->space != MGL_SPACE_CONST || d == buffer->rank - 1)
                edit_range(i, d);
    }
}

/* ---- segments -------------------------------------------------------------------------------- */

static void edit_segments(void)
{
    const mgl_program *p = original;
    for (int i = 0; i < p->segment_count; i++) {
        const mgl_segment *s = &p->segments[i];
        for (int t = -1; t < p->tensor_count; t++) {
            if (t >= 0)
                EDIT(segments[i].tensor, t, "tensor of segment", i);
            EDIT(segments[i].tensor2, t, "tensor2 of segment", i);
        }
        for (int layout = 0; layout <= MGL_LAYOUT_G8X2; layout++)
            EDIT(segments[i].layout, (mgl_layout)layout, "layout of segment", i);
        for (int m = 0; m < MOVES; m++) {
            EDIT(segments[i].row_lo, s->row_lo + moves[m], "row_lo of segment", i);
            EDIT(segments[i].row_hi, s->row_hi + moves[m], "row_hi of segment", i);
            EDIT(segments[i].col_lo, s->col_lo + moves[m], "col_lo of segment", i);
            EDIT(segments[i].col_hi, s->col_hi + moves[m], "col_hi of segment", i);
            EDIT(segments[i].offset, s->offset + 64 * moves[m], "offset of segment", i);
            mgl_program *shifted = copy();
            shifted->segments[i].row_lo += moves[m];
            shifted->segments[i].row_hi += moves[m];
            judge(shifted, "shifted segment", i);
        }
    }
}

/* ---- declarations ---------------------------------------------------------------------------- */

static void edit_buffers(void)
{
    const mgl_program *p = original;
    for (int i = 0; i < p->buffer_count; i++) {
        for (int v = 0; v < MGL_SPACE_COUNT; v++)
            EDIT(buffers[i].space, (mgl_space)v, "space of buffer", i);
        for (int v = 0; v < MGL_DTYPE_COUNT; v++)
            EDIT(buffers[i].dtype, (mgl_dtype)v, "dtype of buffer", i);
        for (int v = 0; v <= MGL_SOURCE_ROPE; v++)
            if (v != MGL_SOURCE_TENSOR)
                EDIT(buffers[i].source, (mgl_source)v, "source of buffer", i);
        for (int v = 0; v < p->tensor_count; v++)
            if (p->buffers[i].source == MGL_SOURCE_TENSOR)
                EDIT(buffers[i].tensor, v, "tensor of buffer", i);
        for (int v = 1; v <= MGL_MAX_RANK; v++)
            EDIT(buffers[i].rank, v, "rank of buffer", i);
        for (int v = 0; v <= 4; v++)
            EDIT(buffers[i].sets, v, "sets of buffer", i);
        for (int d = 0; d < p->buffers[i].rank; d++) {
            for (int v = 0; v <= MGL_CAPACITY; v++)
                EDIT(buffers[i].extents[d].symbol, (mgl_symbol)v, "symbol of buffer", i);
            for (int m = 0; m < MOVES; m++)
                EDIT(buffers[i].extents[d].count, p->buffers[i].extents[d].count + moves[m],
                     "extent of buffer", i);
        }
    }
}

static void edit_tensors(void)
{
    const mgl_program *p = original;
    for (int i = 0; i < p->tensor_count; i++) {
        for (int v = 0; v <= MGL_CODE_COUNT; v++)
            EDIT(tensors[i].format.code, (mgl_weight_code)v, "format of tensor", i);
        for (int m = 0; m < MOVES; m++) {
            EDIT(tensors[i].rows, p->tensors[i].rows + moves[m], "rows of tensor", i);
            EDIT(tensors[i].cols, p->tensors[i].cols + moves[m], "cols of tensor", i);
        }
        EDIT(tensors[i].rank, 3 - p->tensors[i].rank, "rank of tensor", i);
        for (int v = 0; v < p->tensor_count; v++)
            if (v != i)
                EDIT(tensors[i].checkpoint, p->tensors[v].checkpoint, "name of tensor", i);
    }
}

static void edit_header(void)
{
    const mgl_program *p = original;
    for (int m = 2; m <= 3; m++) { /* -1 and 1 */
        EDIT(geometry.hidden, p->geometry.hidden + (int)moves[m], "hidden", 0);
        EDIT(geometry.layers, p->geometry.layers + (int)moves[m], "layers", 0);
        EDIT(geometry.heads, p->geometry.heads + (int)moves[m], "heads", 0);
        EDIT(geometry.kv_heads, p->geometry.kv_heads + (int)moves[m], "kv_heads", 0);
        EDIT(geometry.head_dim, p->geometry.head_dim + (int)moves[m], "head_dim", 0);
        EDIT(geometry.ffn, p->geometry.ffn + (int)moves[m], "ffn", 0);
        EDIT(geometry.vocab, p->geometry.vocab + (int)moves[m], "vocab", 0);
        EDIT(limits.rows, p->limits.rows + (int)moves[m], "limit of rows", 0);
        EDIT(limits.sequences, p->limits.sequences + (int)moves[m], "limit of sequences", 0);
        EDIT(limits.capacity, p->limits.capacity + (int)moves[m], "capacity", 0);
        EDIT(target.queues, p->target.queues + (int)moves[m], "queues", 0);
        for (int q = 0; q < p->queue_count; q++) {
            EDIT(queues[q].tape_bytes, p->queues[q].tape_bytes + 512 * moves[m], "tape", q);
            EDIT(queues[q].tape_pad, p->queues[q].tape_pad + 512 * moves[m], "pad", q);
        }
    }
    for (int v = 0; v < MGL_DTYPE_COUNT; v++) {
        EDIT(weight_dtype, (mgl_dtype)v, "weight_dtype", 0);
        EDIT(embedding_dtype, (mgl_dtype)v, "embedding_dtype", 0);
        EDIT(exchange_dtype, (mgl_dtype)v, "exchange_dtype", 0);
        EDIT(kv_dtype, (mgl_dtype)v, "kv_dtype", 0);
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Variants 1 and 2 are lowered with that number of splits, variants 3 and 4 use flags; 5 has
 * penalties. */
enum { FLAGS = 3, PENALTIES = 5, VARIANTS = 5 };
static const char *const variants[VARIANTS + 1] = {
    "",         "counters, 1 split", "counters, 2 splits", "flags, 1 split", "flags, 2 splits",
    "penalties"};

static void start(int variant)
{
    const bool flags = variant >= FLAGS && variant < PENALTIES;
    mgl_graph *two = flags ? flags_graph() : tiny_graph(2);
    graph = two;
    original = flags                  ? flags_program(variant - 2)
               : variant == PENALTIES ? lowered_with_penalties(two, 3)
                                      : lowered(two, 3, variant);
    tried = accepted = 0;
    machine_run(original, 1000, &reference);
    ck_assert(!reference.stuck && !reference.unordered);
    ck_assert(is_equivalent(original));
}

static void finish(void)
{
    mgl_program_free((mgl_program *)original);
    mgl_graph_free((mgl_graph *)graph);
}

START_TEST(single_edits_are_rejected_or_harmless)
{
    start(_i);
    edit_pieces();
    edit_edges();
    edit_regions();
    edit_segments();
    edit_buffers();
    edit_tensors();
    edit_header();
    ck_assert_int_gt(tried, 5000);
    ck_assert_int_lt(accepted, tried / 50);
    printf("%s: %d edits, %d accepted and equivalent\n", variants[_i], tried, accepted);
    finish();
}
END_TEST

/* ---- several edits of edges at once ---------------------------------------------------------- */

static uint32_t random_state;
static int draw(int below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 9) % (uint32_t)below);
}

/* Gives the task one more wait or signal: appends it, then moves it up to the task's others. */
static void insert_edge(mgl_program *p, int task, bool signal, int counter, int threshold)
{
    mgl_run *run = signal ? &p->tasks[task].signals : &p->tasks[task].waits;
    int end = run->first + run->count;
    if (signal) {
        mgl_program_add_signal(p, counter);
        memmove(&p->signals[end + 1], &p->signals[end],
                (size_t)(p->signal_count - 1 - end) * sizeof *p->signals);
        p->signals[end] = counter;
        p->tasks[p->task_count - 1].signals.count--;
    } else {
        mgl_program_add_wait(p, counter, threshold);
        memmove(&p->waits[end + 1], &p->waits[end],
                (size_t)(p->wait_count - 1 - end) * sizeof *p->waits);
        p->waits[end] = (mgl_wait){counter, threshold};
        p->tasks[p->task_count - 1].waits.count--;
    }
    run->count++;
    for (int t = task + 1; t < p->task_count; t++) {
        p->tasks[t].signals.first += signal;
        p->tasks[t].waits.first += !signal;
    }
}

/* A copy with `extra` additional waits and signals at random places, and one or two waits fewer. */
static mgl_program *rewired(int extra)
{
    int at[8], counter[8], threshold[8], drop = draw(original->wait_count);
    bool signals[8];
    for (int i = 0; i < extra; i++) {
        at[i] = draw(original->task_count);
        counter[i] = draw(original->counter_count + 2);
        threshold[i] = 1 + draw(3);
        signals[i] = draw(3) == 0;
    }
    mgl_program *to = copy_without(original, NO_PIECE, -1), *from = to;
    mgl_program_add_counter(from, "extra0");
    mgl_program_add_counter(from, "extra1");
    to = copy_without(from, draw(4) ? PIECE_WAIT : NO_PIECE, drop);
    mgl_program_free(from);
    for (int i = 0; i < extra; i++)
        insert_edge(to, at[i], signals[i], counter[i], threshold[i]);
    /* Thresholds usually follow the number of signals, so joins usually stay joins. */
    for (int i = 0; i < to->wait_count; i++) {
        int total = 0;
        for (int j = 0; j < to->signal_count; j++)
            total += to->signals[j] == to->waits[i].counter;
        if (to->waits[i].threshold && (draw(8) || to->waits[i].threshold > total))
            to->waits[i].threshold = total;
    }
    return to;
}

START_TEST(rewired_edges_are_rejected_or_harmless)
{
    start(_i);
    random_state = 4711u + (uint32_t)_i;
    for (int round = 0; round < 6000; round++)
        judge(rewired(1 + draw(7)), "rewiring", round);
    ck_assert_int_gt(accepted, 60);
    ck_assert_int_lt(accepted, tried / 2);
    printf("%s: %d rewirings, %d accepted and equivalent\n", variants[_i], tried, accepted);
    finish();
}
END_TEST

/* Whether some interleaving gives a result other than the original. */
static bool is_seen(const mgl_program *program)
{
    for (uint32_t seed = 0; seed < 50; seed++) {
        struct outcome out;
        machine_run(program, seed, &out);
        if (!same(&out, &reference))
            return true;
    }
    return false;
}

/* The test machine must detect a lost wait, otherwise the tests above prove nothing. */
START_TEST(the_machine_sees_lost_waits)
{
    start(_i);
    int seen = 0;
    for (int i = 0; i < original->wait_count; i++) {
        mgl_program *program = copy_without(original, PIECE_WAIT, i);
        seen += is_seen(program);
        mgl_program_free(program);
    }
    ck_assert_int_gt(seen, original->wait_count / 2);
    finish();
}
END_TEST

/* The same for a lost clear. */
START_TEST(the_machine_sees_lost_clears)
{
    start(_i);
    int seen = 0, all = 0;
    for (int t = 0; t < original->task_count; t++) {
        const mgl_task *task = &original->tasks[t];
        for (int i = 0; i < task->out.count && task->op == MGL_OP_CLEAR; i++) {
            mgl_program *program = copy_without(original, PIECE_REGION, task->out.first + i);
            seen += is_seen(program);
            all++;
            mgl_program_free(program);
        }
    }
    ck_assert_int_gt(seen, all / 2);
    finish();
}
END_TEST

/* Exchanges the last two tasks of two queues that add to the residual: each then reads the other
 * queue's stores, after flags of that queue. */
static void cross_residual(mgl_program *p)
{
    const mgl_task *last[2] = {NULL, NULL};
    for (int t = 0; t < p->task_count; t++)
        if (p->tasks[t].op == MGL_OP_LINEAR_ADD)
            last[p->queues[2].tasks.first <= t] = &p->tasks[t];
    for (int i = 1; i < last[0]->in.count + last[0]->out.count; i++) {
        mgl_region *x = &p->regions[last[0]->in.first + i], kept = *x;
        mgl_region *y = &p->regions[last[1]->in.first + i];
        *x = *y;
        *y = kept;
    }
    mgl_segment *x = &p->segments[last[0]->segments.first], kept = *x;
    mgl_segment *y = &p->segments[last[1]->segments.first];
    x->row_lo = y->row_lo;
    x->row_hi = y->row_hi;
    y->row_lo = kept.row_lo;
    y->row_hi = kept.row_hi;
}

/* The same for plain data that only flags seem to order. */
START_TEST(the_machine_sees_data_behind_flags)
{
    start(_i);
    mgl_program *program = copy();
    cross_residual(program);
    mgl_verdict verdict = verdict_of(program, graph);
    ck_assert(has_code(&verdict, 302));
    ck_assert(is_seen(program));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    finish();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator mutation");
    TCase *cases = tcase_create("mutation");
    tcase_set_timeout(cases, 110);
    tcase_add_loop_test(cases, single_edits_are_rejected_or_harmless, 1, VARIANTS + 1);
    tcase_add_loop_test(cases, rewired_edges_are_rejected_or_harmless, 1, VARIANTS + 1);
    tcase_add_loop_test(cases, the_machine_sees_lost_waits, 1, VARIANTS + 1);
    tcase_add_loop_test(cases, the_machine_sees_lost_clears, FLAGS, PENALTIES);
    tcase_add_loop_test(cases, the_machine_sees_data_behind_flags, FLAGS, PENALTIES);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
