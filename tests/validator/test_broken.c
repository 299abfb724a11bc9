/*
 * Tests of programs that no text can describe: indices outside their arrays, overlapping runs, and
 * numbers at the limits of their types. The validator must reject them without following the
 * indices (sanitizers check). Also the codes that the parser makes unreachable for texts.
 */
#include "support.h"

#include "validator/check.h"

#include <stddef.h>
#include <stdio.h>

/* The integer fields of a program's arrays. */
struct field {
    size_t array,
        count; /* offsets in mgl_program: of the pointer, of its length (0: the program) */
    size_t stride, offset, size;
};
#define IN(array, count, type, member)                                                             \
    {                                                                                              \
        offsetof(mgl_program, array), offsetof(mgl_program, count), sizeof(type),                  \
            offsetof(type, member), sizeof(((type *)0)->member)                                    \
    }
#define HEADER(member)                                                                             \
    {                                                                                              \
        0, 0, 0, offsetof(mgl_program, member), sizeof(((mgl_program *)0)->member)                 \
    }

static const struct field fields[] = {
    IN(tasks, task_count, mgl_task, op),
    IN(tasks, task_count, mgl_task, variant),
    IN(tasks, task_count, mgl_task, in.first),
    IN(tasks, task_count, mgl_task, in.count),
    IN(tasks, task_count, mgl_task, out.first),
    IN(tasks, task_count, mgl_task, out.count),
    IN(tasks, task_count, mgl_task, segments.first),
    IN(tasks, task_count, mgl_task, segments.count),
    IN(tasks, task_count, mgl_task, waits.first),
    IN(tasks, task_count, mgl_task, waits.count),
    IN(tasks, task_count, mgl_task, signals.first),
    IN(tasks, task_count, mgl_task, signals.count),
    IN(queues, queue_count, mgl_queue, tasks.first),
    IN(queues, queue_count, mgl_queue, tasks.count),
    IN(queues, queue_count, mgl_queue, tape_bytes),
    IN(queues, queue_count, mgl_queue, tape_pad),
    IN(regions, region_count, mgl_region, buffer),
    IN(regions, region_count, mgl_region, ranges[0].kind),
    IN(regions, region_count, mgl_region, ranges[0].lo),
    IN(regions, region_count, mgl_region, ranges[0].hi),
    IN(regions, region_count, mgl_region, ranges[1].kind),
    IN(regions, region_count, mgl_region, ranges[1].lo),
    IN(regions, region_count, mgl_region, ranges[1].hi),
    IN(regions, region_count, mgl_region, ranges[2].lo),
    IN(regions, region_count, mgl_region, ranges[2].hi),
    IN(segments, segment_count, mgl_segment, tensor),
    IN(segments, segment_count, mgl_segment, tensor2),
    IN(segments, segment_count, mgl_segment, layout),
    IN(segments, segment_count, mgl_segment, row_lo),
    IN(segments, segment_count, mgl_segment, row_hi),
    IN(segments, segment_count, mgl_segment, col_lo),
    IN(segments, segment_count, mgl_segment, col_hi),
    IN(segments, segment_count, mgl_segment, offset),
    IN(waits, wait_count, mgl_wait, counter),
    IN(waits, wait_count, mgl_wait, threshold),
    {offsetof(mgl_program, signals), offsetof(mgl_program, signal_count), sizeof(int), 0,
     sizeof(int)},
    IN(buffers, buffer_count, mgl_buffer, space),
    IN(buffers, buffer_count, mgl_buffer, dtype),
    IN(buffers, buffer_count, mgl_buffer, rank),
    IN(buffers, buffer_count, mgl_buffer, extents[0].symbol),
    IN(buffers, buffer_count, mgl_buffer, extents[0].count),
    IN(buffers, buffer_count, mgl_buffer, extents[1].symbol),
    IN(buffers, buffer_count, mgl_buffer, extents[1].count),
    IN(buffers, buffer_count, mgl_buffer, source),
    IN(buffers, buffer_count, mgl_buffer, tensor),
    IN(buffers, buffer_count, mgl_buffer, sets),
    IN(tensors, tensor_count, mgl_program_tensor, format),
    IN(tensors, tensor_count, mgl_program_tensor, rows),
    IN(tensors, tensor_count, mgl_program_tensor, cols),
    IN(tensors, tensor_count, mgl_program_tensor, rank),
    HEADER(target.queues),
    HEADER(target.shared_bytes),
    HEADER(geometry.hidden),
    HEADER(geometry.layers),
    HEADER(geometry.heads),
    HEADER(geometry.kv_heads),
    HEADER(geometry.head_dim),
    HEADER(geometry.ffn),
    HEADER(geometry.vocab),
    HEADER(limits.rows),
    HEADER(limits.sequences),
    HEADER(limits.capacity),
    HEADER(exec.page_bytes),
    HEADER(exec.ring_pages),
    HEADER(exec.warps),
    HEADER(exec.stage_bytes),
    HEADER(exec.flight_bytes),
    HEADER(exec.pending_bytes),
    HEADER(exec.prefetch_bytes),
    HEADER(weight_dtype),
    HEADER(embedding_dtype),
    HEADER(exchange_dtype),
    HEADER(kv_dtype),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const int64_t edges[] = {INT64_MIN, INT64_MIN + 1,
                                INT32_MIN, -1000,
                                -8,        -1,
                                0,         1,
                                2,         3,
                                8,         16,
                                1000,      1 << 20,
                                INT32_MAX, 1LL << 40,
                                1LL << 62, INT64_MAX - 1,
                                INT64_MAX};
enum { EDGES = sizeof edges / sizeof *edges };

/* The field's address for item `index`. */
static char *address(mgl_program *p, const struct field *f, uint32_t index)
{
    if (!f->stride)
        return (char *)p + f->offset;
    char *array;
    int count;
    memcpy(&array, (char *)p + f->array, sizeof array);
    memcpy(&count, (char *)p + f->count, sizeof count);
    return array + (size_t)(index % (uint32_t)count) * f->stride + f->offset;
}

static void set_field(mgl_program *p, const struct field *f, uint32_t index, int64_t value)
{
    char *at = address(p, f, index);
    int32_t narrow = (int32_t)(uint32_t)(uint64_t)value;
    if (f->size == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &value, sizeof value);
}

static mgl_graph *graph;
static mgl_program *original;

static void setup(void)
{
    graph = tiny_graph(1);
    original = lowered(graph, 3, 2);
}

static void setup_flags(void)
{
    graph = flags_graph();
    original = flags_program(2);
}

static void teardown(void)
{
    mgl_program_free(original);
    mgl_graph_free(graph);
}

/* Validates without expecting a result, also with the model. A changed program is usually
 * rejected. */
static bool survives(const mgl_program *program)
{
    mgl_verdict alone = verdict_of(program, NULL), verdict = verdict_of(program, graph);
    bool accepted = verdict.accepted;
    ck_assert(!accepted || alone.accepted);
    mgl_verdict_clear(&alone);
    mgl_verdict_clear(&verdict);
    return accepted;
}

START_TEST(every_field_at_every_edge)
{
    for (int f = 0; f < FIELDS; f++)
        for (int e = 0; e < EDGES; e++)
            for (uint32_t index = 0; index < (fields[f].stride ? 7u : 1u); index++) {
                mgl_program *p = copy_without(original, NO_PIECE, -1);
                set_field(p, &fields[f], index * 13, edges[e]);
                survives(p);
                mgl_program_free(p);
            }
}
END_TEST

START_TEST(random_damage)
{
    uint32_t random = 7;
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        mgl_program *p = copy_without(original, NO_PIECE, -1);
        for (int n = 1 + round % 4; n > 0; n--) {
            uint32_t numbers[3];
            for (int i = 0; i < 3; i++) {
                random = random * 1664525u + 1013904223u;
                numbers[i] = random >> 8;
            }
            set_field(p, &fields[numbers[0] % FIELDS], numbers[1], edges[numbers[2] % EDGES]);
        }
        accepted += survives(p);
        mgl_program_free(p);
    }
    ck_assert_int_lt(accepted, 3000);
}
END_TEST

static void expect_only(const mgl_program *program, int code)
{
    char got[256], wanted[16];
    mgl_verdict verdict = verdict_of(program, graph);
    snprintf(wanted, sizeof wanted, "MG%d", code);
    ck_assert_str_eq(codes_of(&verdict, got, sizeof got), wanted);
    mgl_verdict_clear(&verdict);
}

START_TEST(indices_outside_are_mg101)
{
    mgl_program *p = copy_without(original, NO_PIECE, -1);
    p->waits[3].counter = p->counter_count;
    expect_only(p, 101);
    mgl_program_free(p);
}
END_TEST

START_TEST(shared_regions_are_mg101)
{
    mgl_program *p = copy_without(original, NO_PIECE, -1);
    p->tasks[2].in.first--;
    expect_only(p, 101);
    mgl_program_free(p);
}
END_TEST

START_TEST(names_must_exist)
{
    mgl_program *p = copy_without(original, NO_PIECE, -1);
    p->buffers[1].name = NULL;
    expect_only(p, 101);
    mgl_program_free(p);
}
END_TEST

START_TEST(missing_operand_is_mg106)
{
    mgl_program *p = copy_without(original, PIECE_REGION, original->tasks[1].in.first);
    expect_only(p, 106);
    mgl_program_free(p);
}
END_TEST

START_TEST(too_many_tasks_are_mg121)
{
    mgl_program *p = copy_without(original, NO_PIECE, -1);
    int count = p->task_count;
    p->task_count = MGL_MAX_TASKS + 1;
    expect_only(p, 121);
    p->task_count = count;
    mgl_program_free(p);
}
END_TEST

START_TEST(an_empty_program_is_rejected)
{
    mgl_program *p = NULL;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_program_new(&p, &err), MGL_OK);
    ck_assert(!survives(p));
    mgl_program_free(p);
}
END_TEST

/* Reports at most MGL_MAX_DIAGNOSTICS, and rejects if there are more. */
START_TEST(diagnostics_are_bounded)
{
    mgl_program *p = copy_without(original, NO_PIECE, -1);
    for (int i = 0; i < p->region_count; i++)
        p->regions[i].ranges[0].kind = MGL_RANGE_NOW;
    for (int i = 0; i < p->region_count; i++)
        p->regions[i].ranges[0].lo = p->regions[i].ranges[0].hi = 0;
    mgl_verdict verdict = verdict_of(p, graph);
    ck_assert(!verdict.accepted);
    ck_assert_int_eq(verdict.count, MGL_MAX_DIAGNOSTICS);
    mgl_verdict_clear(&verdict);
    ck_assert_int_eq(verdict.count, 0);
    mgl_program_free(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator broken");
    TCase *cases = tcase_create("broken");
    tcase_set_timeout(cases, 110);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, every_field_at_every_edge);
    tcase_add_test(cases, random_damage);
    tcase_add_test(cases, indices_outside_are_mg101);
    tcase_add_test(cases, shared_regions_are_mg101);
    tcase_add_test(cases, names_must_exist);
    tcase_add_test(cases, missing_operand_is_mg106);
    tcase_add_test(cases, too_many_tasks_are_mg121);
    tcase_add_test(cases, an_empty_program_is_rejected);
    tcase_add_test(cases, diagnostics_are_bounded);
    suite_add_tcase(suite, cases);
    TCase *flags = tcase_create("broken flags");
    tcase_set_timeout(flags, 110);
    tcase_add_checked_fixture(flags, setup_flags, teardown);
    tcase_add_test(flags, every_field_at_every_edge);
    tcase_add_test(flags, random_damage);
    tcase_add_test(flags, diagnostics_are_bounded);
    suite_add_tcase(suite, flags);
    return run_suite(suite);
}
