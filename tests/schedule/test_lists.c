/*
 * Tests of the second list: its text, equality and digest, the positions of its segments, and
 * merging both lists.
 */
#include "support.h"

#include <string.h>

#include "schedule/digest.h"
#include "schedule/lists.h"
#include "schedule/moves/moves.h"

#define CASE "tests/validator/cases/accept_many.mls"

/* The canonical text of the case. */
static mgl_text canonical(mgl_program **program)
{
    mgl_text text = fixture(CASE);
    *program = parsed(text.bytes, text.length);
    mgl_text_clear(&text);
    return printed(*program);
}

START_TEST(the_text_goes_round)
{
    mgl_program *a;
    mgl_text text = canonical(&a);
    mgl_program *b = parsed(text.bytes, text.length);
    mgl_text again = printed(b);
    ck_assert_str_eq(again.bytes, text.bytes);
    ck_assert(mgl_program_equal(a, b));
    mgl_text_clear(&again);
    mgl_text_clear(&text);
    mgl_program_free(a);
    mgl_program_free(b);
}
END_TEST

/* Limits that the validator rejects are printed unchanged. */
START_TEST(a_first_list_without_rows_goes_round)
{
    static const char text[] =
        "megalith 1\n"
        "target cpu queues 1 shared 0\n"
        "model hidden 64 layers 1 heads 4 kv_heads 2 head_dim 16 ffn 96 vocab 41 eps 1e-05\n"
        "limits rows 0 second_rows 8 sequences 2 capacity 32\n"
        "exec page 2048 ring 4 warps 8 stage 8192\n"
        "types weights bf16 cache bf16\n"
        "queue 0 tape 0 pad 0\n"
        "second\n"
        "queue 0\n";
    mgl_program *a = parsed(text, sizeof text - 1);
    mgl_text once = printed(a);
    mgl_program *b = parsed(once.bytes, once.length);
    ck_assert(mgl_program_equal(a, b));
    mgl_text_clear(&once);
    mgl_program_free(a);
    mgl_program_free(b);
}
END_TEST

START_TEST(the_second_list_sees_what_the_first_declares)
{
    mgl_program *p;
    mgl_text text = canonical(&p);
    const mgl_program *second = p->second;
    ck_assert_ptr_nonnull(second);
    ck_assert_int_eq(p->limits.rows, 4);
    ck_assert_int_eq(p->limits.second_rows, 16);
    ck_assert_int_eq(second->limits.rows, 16);
    ck_assert_int_eq(second->limits.first_rows, 4);
    ck_assert_int_gt(second->buffer_count, p->buffer_count);
    for (int i = 0; i < p->buffer_count; i++)
        ck_assert_str_eq(second->buffers[i].name, p->buffers[i].name);
    ck_assert_ptr_eq(mgl_program_whole(p), second);
    mgl_text_clear(&text);
    mgl_program_free(p);
}
END_TEST

/* A change in the second list alone gives another program. */
START_TEST(the_second_list_counts)
{
    mgl_program *a, *b;
    unsigned char one[MGL_SHA256_BYTES], other[MGL_SHA256_BYTES];
    mgl_text first = canonical(&a), second = canonical(&b);
    ck_assert_int_eq(mgl_program_digest(a, one, NULL), MGL_OK);
    b->second->waits[b->second->wait_count - 1].threshold++;
    ck_assert(!mgl_program_equal(a, b));
    ck_assert_int_eq(mgl_program_digest(b, other, NULL), MGL_OK);
    ck_assert_mem_ne(one, other, sizeof one);
    mgl_text_clear(&first);
    mgl_text_clear(&second);
    mgl_program_free(a);
    mgl_program_free(b);
}
END_TEST

/* A paged buffer gives another program, and the text contains it. */
START_TEST(pages_count)
{
    mgl_program *a, *b;
    unsigned char one[MGL_SHA256_BYTES], other[MGL_SHA256_BYTES];
    mgl_text first = canonical(&a), second = canonical(&b);
    b->second->buffers[b->second->buffer_count - 1].paged = true;
    ck_assert(!mgl_program_equal(a, b));
    ck_assert_int_eq(mgl_program_digest(a, one, NULL), MGL_OK);
    ck_assert_int_eq(mgl_program_digest(b, other, NULL), MGL_OK);
    ck_assert_mem_ne(one, other, sizeof one);
    mgl_text text = printed(b);
    mgl_program *again = parsed(text.bytes, text.length);
    ck_assert_ptr_nonnull(strstr(text.bytes, "] paged\n"));
    ck_assert(mgl_program_equal(b, again));
    mgl_text_clear(&text);
    mgl_text_clear(&first);
    mgl_text_clear(&second);
    mgl_program_free(a);
    mgl_program_free(b);
    mgl_program_free(again);
}
END_TEST

START_TEST(joined_lists_have_all_tasks)
{
    mgl_program *p;
    mgl_joined joined;
    mgl_error err = {0};
    mgl_text text = canonical(&p);
    ck_assert_int_eq(mgl_program_join(p, &joined, &err), MGL_OK);
    ck_assert_int_eq(joined.program->task_count, p->task_count + p->second->task_count);
    ck_assert_int_eq(joined.program->buffer_count, p->second->buffer_count);
    for (int q = 0; q < p->queue_count; q++) {
        ck_assert_int_eq(joined.program->queues[q].tasks.count, p->queues[q].tasks.count);
        ck_assert_int_eq(joined.second[q].count, p->second->queues[q].tasks.count);
        ck_assert_int_eq(joined.program->tasks[joined.second[q].first].op, MGL_OP_ENTER);
    }
    mgl_joined_clear(&joined);
    mgl_text_clear(&text);
    mgl_program_free(p);
}
END_TEST

/* The segments have the same rows of the same tensor, at the same tape and byte. */
START_TEST(segments_lie_where_the_first_list_has_them)
{
    mgl_text text = fixture("tests/validator/cases/accept_many_parts.mls");
    mgl_program *p = parsed(text.bytes, text.length);
    mgl_joined joined;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_program_join(p, &joined, &err), MGL_OK);
    const mgl_program *j = joined.program;
    for (int i = p->segment_count; i < j->segment_count; i++) {
        const mgl_segment *part = &j->segments[i];
        int found = 0;
        for (int k = 0; k < p->segment_count; k++) {
            const mgl_segment *s = &p->segments[k];
            int64_t groups = (part->row_lo - s->row_lo) / MGL_ROW_GROUP;
            int64_t bytes = mgl_segment_group_bytes(p, s) * (s->tensor2 < 0 ? 1 : 2);
            found += s->tensor == part->tensor && part->row_lo >= s->row_lo &&
                     part->row_hi <= s->row_hi && joined.tapes[i] == joined.tapes[k] &&
                     part->offset == s->offset + groups * bytes;
        }
        ck_assert_int_eq(found, 1);
    }
    mgl_joined_clear(&joined);
    mgl_program_free(p);
    mgl_text_clear(&text);
}
END_TEST

START_TEST(a_segment_without_a_home_is_rejected)
{
    mgl_text text = fixture("tests/validator/cases/mg605_across.mls");
    mgl_program *p = parsed(text.bytes, text.length);
    mgl_joined joined;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_program_join(p, &joined, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "l0.gate");
    ck_assert_ptr_null(joined.program);
    mgl_program_free(p);
    mgl_text_clear(&text);
}
END_TEST

START_TEST(moves_reject_two_lists)
{
    mgl_program *p, *moved;
    mgl_moves moves = {.count = 0};
    mgl_error err = {0};
    mgl_text text = canonical(&p);
    static const char one[] = "sample to=1\n";
    mgl_status status = mgl_moves_parse(one, sizeof one - 1, "moves", &moves, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_int_eq(mgl_moves_apply(p, &moves, &moved, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "second list"));
    mgl_moves_clear(&moves);
    mgl_text_clear(&text);
    mgl_program_free(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule lists");
    TCase *cases = tcase_create("lists");
    tcase_add_test(cases, the_text_goes_round);
    tcase_add_test(cases, a_first_list_without_rows_goes_round);
    tcase_add_test(cases, the_second_list_sees_what_the_first_declares);
    tcase_add_test(cases, the_second_list_counts);
    tcase_add_test(cases, pages_count);
    tcase_add_test(cases, joined_lists_have_all_tasks);
    tcase_add_test(cases, segments_lie_where_the_first_list_has_them);
    tcase_add_test(cases, a_segment_without_a_home_is_rejected);
    tcase_add_test(cases, moves_reject_two_lists);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
