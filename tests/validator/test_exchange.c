/*
 * Tests of several simultaneous edits that keep each task well formed: columns of a buffer,
 * operands of two tasks, buffers, segments or tensors are exchanged, everywhere or only at some
 * places. Some edits are renamings and must compute the same; most are wrong. The test machine runs
 * what the validator accepts.
 */
#include "machine.h"
#include "support.h"

#include <stdio.h>

enum { ROUNDS = 4000, SEEDS = 6 };

static uint32_t random_state;
static int draw(int below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 9) % (uint32_t)below);
}

static mgl_region *any_region(mgl_program *p)
{
    return &p->regions[draw(p->region_count)];
}

/* Exchanges two slices of a buffer, in all regions or in some. */
static void exchange_columns(mgl_program *p)
{
    const mgl_region *one = any_region(p);
    const mgl_buffer *buffer = &p->buffers[one->buffer];
    int index = one->buffer, d = buffer->rank == 4 ? 2 * draw(2) : buffer->rank - 1;
    mgl_range from = one->ranges[d];
    int64_t width = from.hi - from.lo, room = buffer->extents[d].count - width;
    if (from.kind != MGL_RANGE_FIXED || width <= 0 || room <= 0)
        return;
    int64_t to = draw((int)room + 1);
    to = draw(2) ? to / 8 * 8 : to;
    bool all = draw(3) > 0;
    for (int i = 0; i < p->region_count; i++) {
        mgl_range *range = &p->regions[i].ranges[d];
        if (p->regions[i].buffer != index || range->kind != MGL_RANGE_FIXED || !(all || draw(2)) ||
            range->hi - range->lo != width)
            continue;
        int64_t lo = range->lo == from.lo ? to : range->lo == to ? from.lo : range->lo;
        *range = (mgl_range){MGL_RANGE_FIXED, lo, lo + width};
    }
}

/* Exchanges some operands, and maybe the segments, of two tasks of one op. */
static void exchange_operands(mgl_program *p)
{
    const mgl_task *a = &p->tasks[draw(p->task_count)], *b = a;
    for (int i = 0; i < 100 && (b == a || b->op != a->op); i++)
        b = &p->tasks[draw(p->task_count)];
    if (b->op != a->op || b->out.count != a->out.count)
        return;
    int count = a->in.count + a->out.count, mask = draw(3) ? 1 + draw((1 << count) - 1) : -1;
    for (int i = 0; i < count; i++) {
        mgl_region *x = &p->regions[a->in.first + i], *y = &p->regions[b->in.first + i], kept = *x;
        if (mask >> i & 1) {
            *x = *y;
            *y = kept;
        }
    }
    for (int i = 0; i < a->segments.count && a->segments.count == b->segments.count && mask < 0;
         i++) {
        mgl_segment *x = &p->segments[a->segments.first + i];
        mgl_segment *y = &p->segments[b->segments.first + i], kept = *x;
        *x = *y;
        x->offset = kept.offset;
        kept.offset = y->offset;
        *y = kept;
    }
}

/* Exchanges two buffers of one space and rank, in all regions or in some. */
static void exchange_buffers(mgl_program *p)
{
    int a = any_region(p)->buffer, b = draw(p->buffer_count);
    bool all = draw(2);
    if (p->buffers[a].rank != p->buffers[b].rank || p->buffers[a].space != p->buffers[b].space)
        return;
    for (int i = 0; i < p->region_count; i++) {
        int *buffer = &p->regions[i].buffer;
        if (all || draw(2))
            *buffer = *buffer == a ? b : *buffer == b ? a : *buffer;
    }
}

static void exchange_tensors(mgl_program *p)
{
    mgl_program_tensor *a = &p->tensors[draw(p->tensor_count)];
    mgl_program_tensor *b = &p->tensors[draw(p->tensor_count)];
    const char *kept = a->checkpoint;
    a->checkpoint = b->checkpoint;
    b->checkpoint = kept;
}

static void move_segment(mgl_program *p)
{
    mgl_segment *segment = &p->segments[draw(p->segment_count)];
    int64_t rows = 8 * (draw(5) - 2);
    segment->row_lo += rows;
    segment->row_hi += rows;
}

typedef void edit_fn(mgl_program *p);
static edit_fn *const edits[] = {exchange_columns, exchange_operands, exchange_buffers,
                                 exchange_tensors, move_segment};

/* Variants 1 to 3 are lowered with that number of splits, variants 4 and 5 use flags. */
enum { VARIANTS = 5 };

START_TEST(exchanges_are_rejected_or_harmless)
{
    mgl_graph *graph = flags_graph();
    mgl_program *original = _i > 3 ? flags_program(_i - 3) : lowered(graph, 3, _i);
    struct outcome reference;
    int harmless = 0, rejected = 0;
    random_state = (uint32_t)_i * 77;
    machine_run(original, 1000, &reference);
    for (int round = 0; round < ROUNDS; round++) {
        mgl_program *p = copy_without(original, NO_PIECE, -1);
        for (int n = 1 + draw(3); n > 0; n--)
            edits[draw(sizeof edits / sizeof *edits)](p);
        mgl_verdict verdict = verdict_of(p, graph);
        bool same = mgl_program_equal(p, original);
        for (uint32_t seed = 0; seed < SEEDS && verdict.accepted && !same; seed++) {
            struct outcome out;
            machine_run(p, seed, &out);
            ck_assert_msg(!out.stuck && !out.unordered &&
                              !memcmp(out.tokens, reference.tokens, sizeof out.tokens),
                          "accepted, but not equivalent: round %d", round);
        }
        harmless += verdict.accepted && !same;
        rejected += !verdict.accepted;
        mgl_verdict_clear(&verdict);
        mgl_program_free(p);
    }
    printf("variant %d: %d rejected, %d accepted and equivalent\n", _i, rejected, harmless);
    ck_assert_int_gt(rejected, ROUNDS / 2);
    ck_assert_int_gt(harmless, 20);
    mgl_program_free(original);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator exchange");
    TCase *cases = tcase_create("exchange");
    tcase_set_timeout(cases, 110);
    tcase_add_loop_test(cases, exchanges_are_rejected_or_harmless, 1, VARIANTS + 1);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
