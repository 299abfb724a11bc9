/*
 * Tests of the requirements of kernel variants: what each rejects and barely accepts, that the text
 * form keeps variants, and that edits leave no variant that does not fit.
 */
#include "lowering.h"

#include <stdio.h>

#include "eval/synthetic.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"

/* ---- rejected tasks -------------------------------------------------------------------------- */

/* One row with flags, with splits long enough for the ring. */
static mgl_program *decoding(int count)
{
    mgl_config model;
    mgl_schedule_config config;
    mgl_program *p;
    mgl_error err;
    mgl_target target = target_of("sm_90a:12");
    mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 4096, .sequences = 1};
    ck_assert_int_eq(mgl_synthetic_find_shape("llama-1b", &model, NULL), MGL_OK);
    mgl_graph *graph = open_graph(&model);
    mgl_schedule_config_default(&config);
    config.rows = count;
    config.splits = 2;
    mgl_status status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_graph_free(graph);
    return p;
}

static mgl_task *task_of(mgl_program *p, mgl_op op)
{
    for (int i = 0; i < p->task_count; i++)
        if (p->tasks[i].op == op)
            return &p->tasks[i];
    ck_abort_msg("no %s", mgl_op_get(op)->name);
}

static int columns_of(const mgl_program *p, const mgl_task *product)
{
    const mgl_region *x = mgl_task_operand(p, product, MGL_PRODUCT_INPUT);
    return (int)(x->ranges[1].hi - x->ranges[1].lo);
}

/* The reason why a variant does not fit a task; NULL: it fits. */
static const char *fault_of(const mgl_program *p, const mgl_task *task, mgl_variant variant)
{
    static mgl_variant_fault fault;
    mgl_dimensions d;
    mgl_dimensions_of_program(p, &d);
    return mgl_variant_takes_task(p, task, variant, &d, &fault) ? NULL : fault.text;
}

/* Near misses: a field at its limit is accepted; one step less is rejected, with this reason. */
#define NEAREST(p, task, variant, field, least, step, why)                                         \
    do {                                                                                           \
        const int kept = (p)->field;                                                               \
        (p)->field = (least);                                                                      \
        ck_assert_msg(!fault_of(p, task, variant), "%s", fault_of(p, task, variant));              \
        (p)->field = (least) - (step);                                                             \
        ck_assert_ptr_nonnull(fault_of(p, task, variant));                                         \
        ck_assert_str_eq(fault_of(p, task, variant), why);                                         \
        (p)->field = kept;                                                                         \
    } while (0)

START_TEST(skinny_needs_a_stage_and_a_ring)
{
    mgl_program *p = decoding(2);
    const mgl_task *task = task_of(p, MGL_OP_NORM_LINEAR);
    NEAREST(p, task, MGL_VARIANT_SKINNY, exec.stage_bytes, 2 * 2 * 4096, 1,
            "needs 16384 bytes of the stage; there are 16383, 1 too few");
    NEAREST(p, task, MGL_VARIANT_SKINNY, exec.ring_pages, 1, 1,
            "needs 32 blocks of the ring; there are 0, 32 too few");
    NEAREST(p, task, MGL_VARIANT_SKINNY, exec.page_bytes, 4096, 512,
            "needs 8 blocks of a page; there are 7, 1 too few");
    mgl_program_free(p);
}
END_TEST

START_TEST(an_mma_has_four_rows)
{
    mgl_program *p = decoding(3);
    const mgl_task *wide = task_of(p, MGL_OP_NORM_LINEAR), *exchange_precision = NULL;
    for (int i = 0; i < p->task_count && !exchange_precision;
         i++) /* down, whose input has 16 bits */
        if (p->tasks[i].op == MGL_OP_LINEAR_ADD && columns_of(p, &p->tasks[i]) == 8192)
            exchange_precision = &p->tasks[i];
    ck_assert_ptr_nonnull(exchange_precision);
    p->limits.rows = 4;
    p->exec.stage_bytes = 4 * 16384;
    ck_assert_ptr_null(fault_of(p, exchange_precision, MGL_VARIANT_SKINNY));
    ck_assert_str_eq(fault_of(p, wide, MGL_VARIANT_SKINNY),
                     "needs 8 rows of activations in an MMA; there are 4, 4 too few");
    p->limits.rows = 5;
    ck_assert_str_eq(fault_of(p, exchange_precision, MGL_VARIANT_SKINNY),
                     "runs epochs of 4 rows at most; the program has 5, 1 too many");
    mgl_program_free(p);
}
END_TEST

START_TEST(the_batch_needs_room_and_equal_runs)
{
    mgl_program *p = decoding(8);
    const mgl_task *task = task_of(p, MGL_OP_NORM_LINEAR);
    NEAREST(p, task, MGL_VARIANT_BATCH, exec.stage_bytes, 16384, 1,
            "needs 16384 bytes of the stage; there are 16383, 1 too few");
    p->exec.warps = 6; /* 64 blocks in runs of 11, the last of 9 */
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_BATCH),
                     "finds 9 k blocks of a warp that has fewer than the others, and takes none");
    p->exec.warps = 4;
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_BATCH),
                     "needs 40960 bytes of the stage; there are 16384, 24576 too few");
    p->exec.warps = 8;
    p->limits.rows = 9;
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_BATCH),
                     "runs epochs of 8 rows at most; the program has 9, 1 too many");
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_BY_ROWS));
    mgl_program_free(p);
}
END_TEST

START_TEST(inputs_have_widths_and_formats)
{
    mgl_program *p = decoding(8);
    const mgl_task *task = task_of(p, MGL_OP_NORM_LINEAR);
    mgl_region *x = mgl_task_operand(p, task, MGL_PRODUCT_INPUT);
    mgl_buffer *buffer = &p->buffers[x->buffer];
    buffer->dtype = MGL_BF16; /* with a norm, whose products have two parts */
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_BATCH),
                     "takes x of f32, but the program's is bf16");
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_BY_ROWS));
    buffer->dtype = MGL_F32;
    x->ranges[1].hi -= 31;
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_BY_ROWS));
    ck_assert_str_eq(
        fault_of(p, task, MGL_VARIANT_BATCH),
        "finds 31 columns that its input lacks of a whole last k block, and takes none");
    x->ranges[1].hi -= 1;
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_BY_ROWS),
                     "finds 1 k blocks between its input and the widths that it is compiled for, "
                     "and takes none");
    x->ranges[1].hi += 32;
    x->flag = false;
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_BY_ROWS),
                     "takes a flag region as x, but the program's is not one");
    x->flag = true;
    p->tensors[p->segments[task->segments.first].tensor].format = mgl_weight_format_of(MGL_F32);
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_BY_ROWS),
                     "takes 16-bit weights, and the program's are f32");
    mgl_program_free(p);
}
END_TEST

START_TEST(attention_by_kv_rounds_takes_one_row_of_flagged_f32)
{
    mgl_program *p = decoding(1);
    const mgl_task *task = task_of(p, MGL_OP_ATTEND_TAIL);
    ck_assert_int_eq(task->variant, MGL_VARIANT_RING);
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_KV_ROUNDS));
    for (int i = 0; i < 3; i++) {
        mgl_region *region = mgl_task_operand(p, task, i);
        region->flag = false;
        ck_assert_ptr_nonnull(strstr(fault_of(p, task, MGL_VARIANT_KV_ROUNDS), "takes a flag"));
        region->flag = true;
    }
    p->geometry.kv_heads = 6; /* of 32: 5 a group */
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_KV_ROUNDS),
                     "needs 5 query heads of a kv head; there are 4, 1 too few");
    p->geometry.kv_heads = 8;
    p->limits.rows = 2;
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_KV_ROUNDS),
                     "runs epochs of 1 rows at most; the program has 2, 1 too many");
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_TILES));
    mgl_program_free(p);
}
END_TEST

START_TEST(heads_have_whole_tiles)
{
    static const struct {
        int head_dim;
        bool tiles, short_;
    } cases[] = {{64, true, true},   {128, true, true},   {48, true, false},
                 {56, false, false}, {144, false, false}, {192, false, false}};
    mgl_program *p = decoding(4);
    const mgl_task *task = task_of(p, MGL_OP_ATTEND_PAST);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p->geometry.head_dim = cases[i].head_dim;
        ck_assert_int_eq(!fault_of(p, task, MGL_VARIANT_TILES), cases[i].tiles);
        ck_assert_int_eq(!fault_of(p, task, MGL_VARIANT_SHORT), cases[i].short_);
    }
    p->geometry.head_dim = 64;
    NEAREST(p, task, MGL_VARIANT_SHORT, exec.warps, 8, -1,
            "needs 4608 words for partial sums; there are 4096, 512 too few");
    mgl_program_free(p);
}
END_TEST

/* The keys of 64 positions of 64 dimensions take 8 KB. */
START_TEST(the_ring_needs_pages_and_bulk_copies)
{
    mgl_program *p = decoding(1);
    const mgl_task *task = task_of(p, MGL_OP_ATTEND_PAST);
    NEAREST(p, task, MGL_VARIANT_RING, exec.page_bytes, 8192, 512,
            "needs 64 positions on a page; there are 0, 64 too few");
    p->exec.page_bytes = 9 * 8192;
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_RING),
                     "needs 9 warps a page; there are 8, 1 too few");
    p->exec.page_bytes = 16384;
    strcpy(p->target.arch, "sm_89");
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_RING),
                     "is for sm_90 and newer, and the target is sm_89");
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_KV_ROUNDS));
    mgl_program_free(p);
}
END_TEST

START_TEST(the_ring_counts_the_pages_of_a_launch)
{
    mgl_program *p = decoding(1);
    const mgl_task *task = task_of(p, MGL_OP_ATTEND_PAST);
    int most = 0;
    for (int q = 0; q < p->queue_count; q++) {
        int count = 0;
        for (int i = 0; i < p->queues[q].tasks.count; i++)
            count += mgl_op_is_attention(p->tasks[p->queues[q].tasks.first + i].op);
        most = count > most ? count : most;
    }
    /* 2,048 positions of a split, 128 a page, keys and values, and a page of the tape once more */
    const int64_t pages = UINT32_MAX / ((int64_t)p->limits.capacity + 2) - most * (2 * 16 + 1);
    p->queues[0].tape_bytes = pages * p->exec.page_bytes;
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_RING));
    p->queues[0].tape_bytes += p->exec.page_bytes;
    ck_assert_ptr_nonnull(strstr(fault_of(p, task, MGL_VARIANT_RING), "numbers for the pages"));
    mgl_program_free(p);
}
END_TEST

START_TEST(the_ring_stands_alone)
{
    mgl_program *p = decoding(1);
    const mgl_task *task = task_of(p, MGL_OP_ATTEND_PAST);
    ck_assert_ptr_null(fault_of(p, task, MGL_VARIANT_RING));
    task_of(p, MGL_OP_HEAD)->variant = MGL_VARIANT_GENERAL;
    ck_assert_str_eq(fault_of(p, task, MGL_VARIANT_RING),
                     "finds 1 tasks beside it that are neither products by skinny nor attention by "
                     "ring, and takes none");
    task_of(p, MGL_OP_HEAD)->variant = MGL_VARIANT_SKINNY;
    task_of(p, MGL_OP_ATTEND_TAIL)->variant = MGL_VARIANT_KV_ROUNDS;
    ck_assert_ptr_nonnull(fault_of(p, task, MGL_VARIANT_RING));
    mgl_program_free(p);
}
END_TEST

START_TEST(architectures_are_numbers)
{
    static const struct {
        const char *arch;
        int number;
    } cases[] = {
        {"sm_90a", 90}, {"sm_90", 90},   {"compute_80", 80}, {"sm_100a", 100}, {"cpu", 0},
        {"sm90a", 0},   {"90", 0},       {"sm_", 0},         {"sm_a90", 0},    {"sm_-90", 0},
        {"", 0},        {"compute_", 0}, {"sm_99999999", 0}, {"sm_86", 86}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(mgl_arch_number(cases[i].arch), cases[i].number);
}
END_TEST

/* ---- text and moves -------------------------------------------------------------------------- */

START_TEST(every_pair_of_op_and_variant_goes_through_the_text)
{
    mgl_program *p = decoding(1);
    for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
        for (int i = 0; i < p->task_count; i++)
            p->tasks[i].variant = (mgl_variant)v;
        mgl_text text = printed(p);
        mgl_program *again = parsed(text.bytes, text.length);
        ck_assert(mgl_program_equal(p, again));
        mgl_program_free(again);
        mgl_text_clear(&text);
    }
    mgl_program_free(p);
}
END_TEST

START_TEST(general_is_left_out)
{
    mgl_text golden = fixture("tests/schedule/golden/two_queues.mls");
    mgl_text with = edited(golden.bytes, "\nenter in", "\nenter.general in");
    mgl_program *p = parsed(with.bytes, with.length);
    mgl_text text = printed(p);
    ck_assert_str_eq(text.bytes, golden.bytes);
    mgl_program_free(p);
    mgl_text_clear(&text);
    mgl_text_clear(&with);
    mgl_text_clear(&golden);
}
END_TEST

/* A user's variant stays while the task fits it. */
START_TEST(mending_keeps_what_still_fits)
{
    mgl_program *p = decoding(1);
    mgl_task *product = task_of(p, MGL_OP_NORM_LINEAR), *tail = task_of(p, MGL_OP_ATTEND_TAIL);
    product->variant = MGL_VARIANT_BY_ROWS;
    ck_assert(!mgl_variants_are_chosen(p));
    mgl_variants_mend(p);
    ck_assert_int_eq(product->variant, MGL_VARIANT_BY_ROWS);
    ck_assert_int_eq(tail->variant,
                     MGL_VARIANT_KV_ROUNDS); /* the ring now has an incompatible task */
    mgl_variants_choose(p);
    ck_assert_int_eq(product->variant, MGL_VARIANT_SKINNY);
    ck_assert_int_eq(tail->variant, MGL_VARIANT_RING);
    ck_assert(mgl_variants_are_chosen(p));
    mgl_program_free(p);
}
END_TEST

static void expect_mended(mgl_program *p)
{
    mgl_dimensions d;
    mgl_variant_fault fault;
    mgl_variants_mend(p);
    mgl_dimensions_of_program(p, &d);
    for (int i = 0; i < p->task_count; i++)
        ck_assert_msg(mgl_variant_takes_task(p, &p->tasks[i], p->tasks[i].variant, &d, &fault),
                      "task %d, %s.%s: %s", i, mgl_op_get(p->tasks[i].op)->name,
                      mgl_variant_get(p->tasks[i].variant)->name, fault.text);
}

/* If a task beside ring attention must change its variant, the attention tasks must change too. */
START_TEST(mending_leaves_nothing_that_does_not_fit)
{
    mgl_program *p = decoding(1);
    const mgl_task *product = task_of(p, MGL_OP_NORM_LINEAR);
    mgl_task_operand(p, product, MGL_PRODUCT_INPUT)->flag = false;
    expect_mended(p);
    ck_assert_int_eq(product->variant, MGL_VARIANT_GENERAL);
    mgl_program_free(p);
    p = decoding(1);
    mgl_task_result(p, task_of(p, MGL_OP_ATTEND_TAIL))->flag = false;
    expect_mended(p);
    mgl_program_free(p);
}
END_TEST

/* The kernel and the cost model compute the k blocks of an activation tile, which must hold all
 * rows of the list; for warp teams and for warpgroups. */
START_TEST(an_act_tile_has_as_many_k_blocks_as_fit)
{
    for (int most = 1; most <= MGL_MAX_SECOND_ROWS; most++) {
        const int least = MGL_PANEL_ACT_TILE_BLOCKS(most, _i),
                  room = least * MGL_PANEL_ROOM(most, _i);
        ck_assert_int_eq(mgl_panel_act_tile_blocks(most, most, _i), least);
        for (int count = 1; count <= most; count++) {
            const int blocks = mgl_panel_act_tile_blocks(most, count, _i);
            ck_assert_int_ge(MGL_PANEL_ROOM(count, _i), count);
            ck_assert_int_le(blocks * MGL_PANEL_ROOM(count, _i), room);
            ck_assert_int_eq(MGL_PANEL_MOST_BLOCKS % blocks, 0);
            ck_assert_int_eq(blocks % least, 0);
            ck_assert(blocks == MGL_PANEL_MOST_BLOCKS ||
                      2 * blocks * MGL_PANEL_ROOM(count, _i) > room);
        }
    }
}
END_TEST

/* For warpgroups, two consecutive row groups, the first with an even number, are on one page: for
 * the smallest pages of the variant, and for pages whose blocks are no power of 2. */
START_TEST(two_row_groups_are_on_one_page)
{
    for (int act_tile = 2; act_tile <= 4; act_tile += 2)
        for (int blocks = 2 * act_tile; blocks <= 64; blocks++)
            for (int groups = 2; groups <= 16; groups++)
                for (int pages = 2; pages <= 32; pages++) {
                    const int piece = mgl_panel_piece(groups, blocks, act_tile, pages, 1);
                    const int per = mgl_panel_per(piece, blocks, 1);
                    ck_assert_msg(per % 2 == 0, "%d groups, %d blocks: %d", groups, blocks, per);
                }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule variant needs");
    TCase *cases = tcase_create("variant needs");
    tcase_add_test(cases, two_row_groups_are_on_one_page);
    tcase_add_test(cases, skinny_needs_a_stage_and_a_ring);
    tcase_add_test(cases, an_mma_has_four_rows);
    tcase_add_test(cases, the_batch_needs_room_and_equal_runs);
    tcase_add_test(cases, inputs_have_widths_and_formats);
    tcase_add_test(cases, attention_by_kv_rounds_takes_one_row_of_flagged_f32);
    tcase_add_test(cases, heads_have_whole_tiles);
    tcase_add_test(cases, the_ring_needs_pages_and_bulk_copies);
    tcase_add_test(cases, the_ring_counts_the_pages_of_a_launch);
    tcase_add_test(cases, the_ring_stands_alone);
    tcase_add_test(cases, architectures_are_numbers);
    tcase_add_test(cases, every_pair_of_op_and_variant_goes_through_the_text);
    tcase_add_test(cases, general_is_left_out);
    tcase_add_test(cases, mending_keeps_what_still_fits);
    tcase_add_test(cases, mending_leaves_nothing_that_does_not_fit);
    tcase_add_loop_test(cases, an_act_tile_has_as_many_k_blocks_as_fit, 0, 2);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
