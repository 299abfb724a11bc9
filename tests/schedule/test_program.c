/*
 * Tests of the program as a data structure: building, the list of ops, the geometry of the tape,
 * and names.
 */
#include "support.h"

#include "schedule/text/names.h"
#include "schedule/variant_shapes.h"

#include <stdio.h>

START_TEST(building_keeps_order_and_runs)
{
    mgl_program *p = NULL;
    ck_assert_int_eq(mgl_program_new(&p, NULL), MGL_OK);
    char name[] = "x";
    mgl_buffer buffer = {.name = name, .rank = 1, .extents = {{MGL_FIXED, 8}}, .sets = 1};
    ck_assert_int_eq(
        mgl_program_add_tensor(p, "w", "model.w", mgl_weight_format_of(MGL_F32), 2, 8, 8), 0);
    ck_assert_int_eq(mgl_program_add_buffer(p, &buffer), 0);
    name[0] = 'y';
    ck_assert_str_eq(p->buffers[0].name, "x"); /* the program has a copy of the name */
    ck_assert_int_eq(mgl_program_add_counter(p, "c"), 0);
    for (int q = 0; q < 3; q++) {
        ck_assert_int_eq(mgl_program_add_queue(p), q);
        for (int i = 0; i < q; i++) {
            mgl_region region = {0};
            mgl_segment segment = {.tensor2 = -1};
            mgl_program_add_task(p, MGL_OP_LINEAR_ADD);
            mgl_program_add_in(p, &region);
            mgl_program_add_in(p, &region);
            mgl_program_add_segment(p, &segment);
            mgl_program_add_out(p, &region);
            mgl_program_add_wait(p, 0, 1);
            mgl_program_add_signal(p, 0);
        }
    }
    ck_assert(!mgl_program_failed(p));
    ck_assert_int_eq(p->task_count, 3);
    ck_assert_int_eq(p->queues[0].tasks.count, 0);
    ck_assert_int_eq(p->queues[2].tasks.first, 1);
    ck_assert_int_eq(p->queues[2].tasks.count, 2);
    const mgl_task *last = &p->tasks[2];
    ck_assert_int_eq(last->in.first, 6);
    ck_assert_int_eq(last->in.count, 2);
    ck_assert_int_eq(last->out.first, 8);
    ck_assert_int_eq(last->out.count, 1);
    ck_assert_int_eq(last->segments.first, 2);
    ck_assert_int_eq(last->waits.first, 2);
    ck_assert_int_eq(last->signals.count, 1);
    mgl_program_free(p);
}
END_TEST

START_TEST(a_failure_while_building_is_sticky)
{
    mgl_program *p = NULL;
    ck_assert_int_eq(mgl_program_new(&p, NULL), MGL_OK);
    mgl_alloc_fail_at(1, false);
    ck_assert_int_eq(mgl_program_add_counter(p, "a"), -1);
    mgl_alloc_fail_at(0, false);
    ck_assert(mgl_program_failed(p));
    ck_assert_int_eq(mgl_program_add_counter(p, "b"), -1);
    ck_assert_int_eq(mgl_program_add_queue(p), -1);
    ck_assert_int_eq(mgl_program_add_task(p, MGL_OP_ENTER), -1);
    ck_assert_int_eq(mgl_program_add_wait(p, 0, 0), -1);
    ck_assert_int_eq(p->counter_count, 0);
    mgl_program_free(p);
}
END_TEST

START_TEST(the_list_of_ops)
{
    mgl_op op;
    for (int i = 0; i < MGL_OP_COUNT; i++) {
        const mgl_op_info *info = mgl_op_get((mgl_op)i);
        ck_assert(mgl_op_parse(info->name, strlen(info->name), &op));
        ck_assert_int_eq(op, i);
        const int extra = info->in_count + info->out_count;
        ck_assert_int_le(extra + info->extra_count, MGL_MAX_OPERANDS);
        for (int k = 0; k < extra + info->extra_count; k++) {
            const mgl_operand *operand = &info->operands[k];
            ck_assert_int_eq(operand->out, k >= info->in_count && k < extra);
            ck_assert(!operand->out || operand->space != MGL_SPACE_CONST);
            ck_assert_int_eq(operand->optional, k >= info->in_count + info->out_least);
            ck_assert_uint_le(strlen(operand->ranges), MGL_MAX_RANK);
            if (strcmp(operand->ranges, "*") != 0) /* any rectangle */
                ck_assert_uint_eq(strspn(operand->ranges, "RAS1PNHV"), strlen(operand->ranges));
        }
    }
    ck_assert(!mgl_op_parse("attend_tai", 10, &op));
    ck_assert(!mgl_op_parse("attend_taill", 12, &op));
    ck_assert(!mgl_op_parse("", 0, &op));
}
END_TEST

START_TEST(operands_have_the_numbers_of_their_names)
{
#define NAME_OF(op, ID, operand) mgl_op_get(MGL_OP_##ID)->operands[MGL_OPERAND(op, operand)].name
    ck_assert_str_eq(NAME_OF(norm_linear, NORM_LINEAR, x), "x");
    ck_assert_str_eq(NAME_OF(attend, ATTEND, v_past), "v_past");
    ck_assert_str_eq(NAME_OF(attend_past, ATTEND_PAST, k_past), "k_past");
    ck_assert_str_eq(NAME_OF(linear_add, LINEAR_ADD, copy), "copy");
    ck_assert_str_eq(NAME_OF(sample, SAMPLE, score), "score");
    const mgl_attention_operands *past = mgl_op_attention(MGL_OP_ATTEND_PAST);
    ck_assert_int_eq(past->v_past, MGL_OPERAND(attend_past, v_past));
    ck_assert_int_eq(past->k_now, MGL_NO_OPERAND);
#undef NAME_OF
}
END_TEST

/* An extra input follows the other inputs. An omitted output has no index. */
START_TEST(places_of_operands)
{
    mgl_task task = {.op = MGL_OP_LINEAR_ADD, .in = {0, 2}, .out = {2, 1}};
    ck_assert_int_eq(mgl_task_place(&task, MGL_OPERAND(linear_add, y)), 2);
    ck_assert_int_eq(mgl_task_place(&task, MGL_OPERAND(linear_add, copy)), -1);
    ck_assert_int_eq(mgl_task_place(&task, MGL_OPERAND(linear_add, bias)), -1);
    task.in.count = 3;
    ck_assert_int_eq(mgl_task_place(&task, MGL_OPERAND(linear_add, y)), 3);
    ck_assert_int_eq(mgl_task_place(&task, MGL_OPERAND(linear_add, bias)), 2);
    for (int place = 0; place < 4; place++)
        ck_assert_int_eq(mgl_task_place(&task, mgl_task_operand_at(&task, place)), place);
}
END_TEST

START_TEST(a_number_that_is_no_op_is_unknown)
{
    ck_assert(!mgl_op_is_known(MGL_OP_COUNT));
    ck_assert(!mgl_op_is_known((mgl_op)-1));
    ck_assert_str_eq(mgl_op_get((mgl_op)77)->name, "unknown");
    ck_assert_int_eq(mgl_op_get((mgl_op)77)->in_count, 0);
}
END_TEST

START_TEST(bytes_of_a_segment)
{
    static const struct {
        mgl_weight_code code;
        mgl_layout layout;
        int64_t rows, cols, bytes;
    } cases[] = {
        /* groups of 8 rows x blocks of 64 bytes of each row x 512 bytes */
        {MGL_CODE_BF16, MGL_LAYOUT_G8, 8, 32, 512},
        {MGL_CODE_BF16, MGL_LAYOUT_G8, 9, 32, 1024},
        {MGL_CODE_BF16, MGL_LAYOUT_G8, 8, 33, 1024},
        {MGL_CODE_F16, MGL_LAYOUT_G8, 1, 1, 512},
        {MGL_CODE_F32, MGL_LAYOUT_G8, 8, 16, 512},
        {MGL_CODE_F32, MGL_LAYOUT_G8, 8, 17, 1024},
        {MGL_CODE_BF16, MGL_LAYOUT_G8X2, 8, 32, 1024},
        {MGL_CODE_F32, MGL_LAYOUT_G8X2, 20, 40, 9216},
        {MGL_CODE_BF16, MGL_LAYOUT_G8, 1213, 256, 622592},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mgl_program_tensor tensor = {.format.code = cases[i].code};
        mgl_program p = {.tensors = &tensor, .tensor_count = 1};
        mgl_segment segment = {.layout = cases[i].layout, /* both segments are of tensor 0 */
                               .row_lo = 16,
                               .row_hi = 16 + cases[i].rows,
                               .col_hi = cases[i].cols};
        ck_assert_int_eq(mgl_segment_bytes(&p, &segment), cases[i].bytes);
        ck_assert_int_eq(mgl_segment_rows(&segment), cases[i].rows);
    }
}
END_TEST

START_TEST(splits_partition_the_positions)
{
    for (int splits = 1; splits <= MGL_MAX_SPLITS; splits++)
        for (int n = 0; n < 200; n++) {
            int at = 0, lo, hi;
            for (int i = 0; i < splits; i++, at = hi) {
                mgl_split_positions(n, i, splits, 0, &lo, &hi);
                if (lo != at || hi < lo)
                    ck_abort_msg("split %d of %d of %d positions", i, splits, n);
            }
            ck_assert_int_eq(at, n);
        }
}
END_TEST

/* Splits 0 to U - 2 and the last one; U splits are used. */
START_TEST(splits_with_a_share_partition_the_positions)
{
    enum { SHARE = 7 };
    for (int splits = 2; splits <= MGL_MAX_SPLITS; splits++)
        for (int n = 0; n < 200; n++) {
            const int used = mgl_splits_used(n, splits, SHARE);
            int at = 0, lo, hi;
            ck_assert_int_eq(used, n <= SHARE ? 1 : n > SHARE * splits ? splits : (n + 6) / SHARE);
            for (int i = 0; i < splits; i++) {
                mgl_split_positions(n, i, splits, SHARE, &lo, &hi);
                if (i >= used - 1 && i < splits - 1) {
                    ck_assert_int_eq(hi - lo, 0);
                    continue;
                }
                if (lo != at || hi < lo || (n <= SHARE * splits && hi - lo > SHARE))
                    ck_abort_msg("split %d of %d of %d positions", i, splits, n);
                at = hi;
            }
            ck_assert_int_eq(at, n);
        }
}
END_TEST

START_TEST(names_are_found_and_others_are_not)
{
    static char names[3000][8];
    mgl_names table = {0};
    ck_assert_int_eq(mgl_names_find(&table, "n0", 2), -1);
    for (int i = 0; i < 3000; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        ck_assert(mgl_names_add(&table, names[i], i));
    }
    for (int i = 0; i < 3000; i++)
        ck_assert_int_eq(mgl_names_find(&table, names[i], strlen(names[i])), i);
    ck_assert_int_eq(mgl_names_find(&table, "n3000", 5), -1);
    ck_assert_int_eq(mgl_names_find(&table, "n", 1), -1);
    ck_assert_int_eq(mgl_names_find(&table, "n12x", 3), 12); /* the length matters */
    mgl_names_clear(&table);
    ck_assert_int_eq(mgl_names_find(&table, "n0", 2), -1);
}
END_TEST

START_TEST(a_failed_growth_loses_no_name)
{
    static char names[32][8];
    mgl_names table = {0};
    for (int i = 0; i < 32; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        ck_assert(mgl_names_add(&table, names[i], i));
    }
    mgl_alloc_fail_at(1, true);
    ck_assert(!mgl_names_add(&table, "more", 32)); /* more than half full: it has to grow */
    mgl_alloc_fail_at(0, false);
    for (int i = 0; i < 32; i++)
        ck_assert_int_eq(mgl_names_find(&table, names[i], strlen(names[i])), i);
    mgl_names_clear(&table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule program");
    TCase *cases = tcase_create("program");
    tcase_add_test(cases, building_keeps_order_and_runs);
    tcase_add_test(cases, a_failure_while_building_is_sticky);
    tcase_add_test(cases, the_list_of_ops);
    tcase_add_test(cases, bytes_of_a_segment);
    tcase_add_test(cases, operands_have_the_numbers_of_their_names);
    tcase_add_test(cases, places_of_operands);
    tcase_add_test(cases, a_number_that_is_no_op_is_unknown);
    tcase_add_test(cases, splits_partition_the_positions);
    tcase_add_test(cases, splits_with_a_share_partition_the_positions);
    tcase_add_test(cases, names_are_found_and_others_are_not);
    tcase_add_test(cases, a_failed_growth_loses_no_name);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
