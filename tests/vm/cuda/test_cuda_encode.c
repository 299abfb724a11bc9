/*
 * Tests of the programs that the CUDA machine rejects before it uses a device (each rule that the
 * validator does not check, at its limit), and of the end of a queue's tape for the kernel.
 */
#include "tests/vm/fixture.h"

#include <string.h>

#include "base/memory.h"
#include "schedule/schedule.h"
#include "schedule/variants.h"
#include "vm/cuda/encode.h"

static mgl_program *program_of_two(void)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    mgl_graph_free(graph);
    return program;
}

/* Checks that the program is rejected with a message that contains `why`. */
static void refused(const mgl_program *program, const char *why)
{
    mgl_error err = {0};
    ck_assert_int_eq(mgl_cuda_check_program(program, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, why) != NULL, "%s", err.message);
}

START_TEST(a_record_is_as_long_as_shared_memory_has_room)
{
    mgl_error err;
    mgl_program *program = program_of_two();
    ok(mgl_cuda_check_program(program, &err), err);
    int counter = program->signals[0];
    for (int i = 0; i < 20; i++) /* the last added task is the last task of the last queue */
        mgl_program_add_wait(program, counter, 0);
    ok(mgl_cuda_check_program(program, &err), err);
    for (int i = 0; i < 60; i++)
        mgl_program_add_wait(program, counter, 0);
    refused(program, "too many waits");
    mgl_program_free(program);
}
END_TEST

#define CLEARS MGL_SOURCE_DIR "/tests/validator/cases/accept_flags_clear_behind_attention.mls"

/* The records of a queue in order, from the first of it on. */
static const mgl_record *record_of(const mgl_cuda_tables *tables, int queue, int number)
{
    uint32_t at = tables->queues[queue].first;
    for (int i = 0; i < number; i++)
        at = ((const mgl_record *)(tables->records + at))->next;
    return (const mgl_record *)(tables->records + at);
}

/* Queues 2 and 3: enter, attend, clear, attend, clear. */
START_TEST(a_clear_without_room_has_a_record_of_its_own)
{
    mgl_error err;
    mgl_program *program;
    mgl_cuda_tables tables;
    uint64_t addresses[256] = {0};
    ok(mgl_schedule_read(CLEARS, &program, &err), err);
    ok(mgl_cuda_check_program(program, &err), err);
    ck_assert_int_lt(program->buffer_count, 256);
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){addresses, addresses, false}, &tables, &err),
       err);
    for (int queue = 2; queue < 4; queue++) {
        ck_assert_int_eq(record_of(&tables, queue, 1)->op, MGL_OP_ATTEND);
        ck_assert_int_eq(record_of(&tables, queue, 1)->clears, 0);
        ck_assert_int_le(record_of(&tables, queue, 1)->next_bytes, MGL_RECORD_BYTES);
        ck_assert_int_eq(record_of(&tables, queue, 2)->op, MGL_OP_CLEAR);
        ck_assert_int_eq(record_of(&tables, queue, 2)->clears, 8);
        ck_assert_int_eq(record_of(&tables, queue, 3)->op, MGL_OP_ATTEND);
    }
    mgl_cuda_tables_clear(&tables);
    mgl_program_free(program);
}
END_TEST

/* If it fits, the clear is in the record of the preceding task. */
START_TEST(a_clear_travels_with_the_task_before)
{
    mgl_error err;
    mgl_program *program;
    mgl_cuda_tables tables;
    uint64_t addresses[256] = {0};
    ok(mgl_schedule_read(CLEARS, &program, &err), err);
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].op == MGL_OP_CLEAR && program->tasks[i].out.count == 8)
            program->tasks[i].out.count = 2;
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){addresses, addresses, false}, &tables, &err),
       err);
    ck_assert_int_eq(record_of(&tables, 2, 1)->clears, 2);
    ck_assert_int_eq(record_of(&tables, 2, 2)->op, MGL_OP_ATTEND);
    mgl_cuda_tables_clear(&tables);
    mgl_program_free(program);
}
END_TEST

START_TEST(pages_of_all_epochs_are_counted_in_32_bits)
{
    mgl_error err;
    mgl_program *program = program_of_two();
    int64_t most = UINT32_MAX / ((int64_t)program->limits.capacity + 2);
    program->queues[1].tape_bytes = (most - 1) * program->exec.page_bytes;
    ok(mgl_cuda_check_program(program, &err), err);
    program->queues[1].tape_bytes = (most + 1) * program->exec.page_bytes;
    refused(program, "2^32 pages");
    program->queues[1].tape_bytes = program->exec.page_bytes + MGL_BLOCK_BYTES;
    refused(program, "whole pages");
    mgl_program_free(program);
}
END_TEST

/* The numbers of the weights are what the kernel is compiled for. */
/* An unvalidated text may state any model. */
START_TEST(heads_are_counted_from_one)
{
    mgl_program *program = program_of_two();
    const mgl_geometry kept = program->geometry;
    program->geometry.kv_heads = 0;
    refused(program, "1 kv head or more");
    program->geometry.kv_heads = kept.heads + 1;
    refused(program, "no fewer query heads");
    program->geometry = kept;
    program->geometry.head_dim = 0;
    refused(program, "1 to 1073741824 dimensions");
    program->geometry.head_dim = INT32_MAX;
    refused(program, "1 to 1073741824 dimensions");
    mgl_program_free(program);
}
END_TEST

START_TEST(other_numbers_than_the_weights_are_rejected)
{
    mgl_error err;
    mgl_program *program = program_of_two();
    mgl_buffer *h = NULL;
    for (int i = 0; i < program->buffer_count; i++) {
        mgl_buffer *b = &program->buffers[i];
        h = !strcmp(b->name, "h") ? b : h;
    }
    ck_assert(h);
    h->dtype = MGL_F16;
    refused(program, "neither f32 nor of the numbers of the weights");
    h->dtype = MGL_F32;
    ok(mgl_cuda_check_program(program, &err), err);
    program->weight_dtype = MGL_BF16;
    refused(program, "not the format of the types line");
    mgl_program_free(program);
}
END_TEST

/* Its kernel assumes that all positions after its split are the row's own. */
START_TEST(the_last_split_appends)
{
    mgl_error err;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2, .splits = 3});
    ok(mgl_cuda_check_program(program, &err), err);
    for (int i = 0; i < program->task_count; i++) {
        mgl_range *split = &program->regions[program->tasks[i].out.first].ranges[0];
        if (program->tasks[i].op == MGL_OP_ATTEND_TAIL)
            *split = (mgl_range){.kind = MGL_RANGE_FIXED, .lo = 0, .hi = 1};
    }
    refused(program, "not the last one");
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* The kernel must skip padding, however many pages, with the last segment. */
START_TEST(the_last_segment_ends_behind_the_padding)
{
    mgl_error err;
    mgl_cuda_tables tables;
    uint64_t tapes[2] = {0};
    mgl_program *program = program_of_two();
    uint64_t *buffers = mgl_alloc_zero((size_t)program->buffer_count, sizeof *buffers);
    mgl_queue *queue = &program->queues[0];
    queue->tape_bytes += 3 * (int64_t)program->exec.page_bytes;
    queue->tape_pad += 3 * (int64_t)program->exec.page_bytes;
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes, false}, &tables, &err), err);
    const unsigned char *at = tables.records + tables.queues[0].first;
    unsigned before = 0, end = 0;
    for (unsigned i = 0; i < tables.queues[0].tasks; i++) {
        const mgl_record *record = (const mgl_record *)(const void *)at;
        const mgl_device_segment *segments =
            (const mgl_device_segment *)(const void *)(at + record->segment_at);
        for (int s = 0; s < record->segments; s++) {
            before = end;
            end = segments[s].end;
            ck_assert_uint_ge(end, before);
        }
        at = tables.records + record->next;
    }
    ck_assert_uint_eq(tables.queues[0].pages,
                      (unsigned)(queue->tape_bytes / program->exec.page_bytes));
    ck_assert_uint_eq(end, tables.queues[0].pages);
    ck_assert_uint_le(before, tables.queues[0].pages - 3);
    mgl_cuda_tables_clear(&tables);
    mgl_free(buffers);
    mgl_program_free(program);
}
END_TEST

/* If q, k and v are contiguous on the tape in whole row groups, they are one matrix for the
 * kernel. */
START_TEST(segments_that_follow_one_another_are_one)
{
    mgl_error err;
    mgl_cuda_tables tables;
    uint64_t tapes[1] = {0};
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 1});
    uint64_t *buffers = mgl_alloc_zero((size_t)program->buffer_count, sizeof *buffers);
    const mgl_task *task = &program->tasks[program->queues[0].tasks.first];
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes, false}, &tables, &err), err);
    const unsigned char *at = tables.records + tables.queues[0].first;
    for (; task->op != MGL_OP_NORM_LINEAR; task++)
        at = tables.records + ((const mgl_record *)(const void *)at)->next;
    const mgl_record *record = (const mgl_record *)(const void *)at;
    const mgl_device_segment *segment =
        (const mgl_device_segment *)(const void *)(at + record->segment_at);
    ck_assert_int_eq(task->segments.count, 3);
    ck_assert_int_eq(record->segments, 1);
    ck_assert_int_eq(segment->rows, 64 + 32 + 32);
    ck_assert_int_eq(segment->groups, (64 + 32 + 32) / MGL_ROW_GROUP);
    mgl_cuda_tables_clear(&tables);
    mgl_free(buffers);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- two lists ------------------------------------------------------------------------------- */

static mgl_program *program_of_lists(int queues, int second_rows)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    mgl_program *program = fixture_program(
        graph, &(fixture_options){.queues = queues, .rows = 2, .second_rows = second_rows});
    mgl_graph_free(graph);
    return program;
}

START_TEST(a_second_list_without_panels_has_16_rows_at_most)
{
    mgl_error err;
    mgl_program *program = program_of_lists(2, 16);
    ok(mgl_cuda_check_program(program, &err), err);
    mgl_program_free(program);
    program = program_of_lists(2, 17);
    refused(program, "the second list has 17 rows");
    mgl_program_free(program);
}
END_TEST

/* Lowers for a GPU in bf16, with a large enough ring and stage. */
static mgl_program *program_of_heads(int heads, int head_dim, int second_rows, int sequences)
{
    const mgl_geometry widths = {128, 1, heads, 2, head_dim, 192, 75, 1e-5f};
    mgl_error err;
    mgl_target target;
    mgl_program *program;
    mgl_schedule_config config;
    mgl_graph *graph = random_graph(&widths, 64, true, MGL_BF16, 5);
    const mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 64, .sequences = sequences};
    mgl_schedule_config_default(&config);
    config.rows = 1;
    config.second_rows = second_rows;
    ok(mgl_target_parse("sm_90a:3", &target, &err), err);
    ok(mgl_schedule_lower(graph, &target, &options, &config, &program, &err), err);
    mgl_graph_free(graph);
    return program;
}

static mgl_program *program_of_panels(int second_rows, int sequences)
{
    return program_of_heads(4, 32, second_rows, sequences);
}

START_TEST(panels_have_128_rows_and_launches_64_sequences)
{
    mgl_error err;
    mgl_program *program = program_of_panels(128, 64);
    ok(mgl_cuda_check_program(program, &err), err);
    for (mgl_program *list = program; list; list = list->second)
        list->limits.sequences = 65;
    refused(program, "at most 64");
    for (mgl_program *list = program; list; list = list->second)
        list->limits.sequences = 64;
    program->limits.second_rows = program->second->limits.rows = 129;
    refused(program, "1 to ");
    mgl_program_free(program);
}
END_TEST

/* The kernel has no other code for products of gamma-scaled values; the reason is that of the
 * variant. */
START_TEST(gamma_scaled_products_are_panels)
{
    mgl_program *program = program_of_panels(128, 1), *second_list = program->second;
    int task = 0, head = 0;
    while (second_list->tasks[task].op != MGL_OP_RMS_LINEAR)
        task++;
    second_list->tasks[task].variant = MGL_VARIANT_GENERAL;
    refused(program, "does not use panels");
    program->exec.stage_bytes = second_list->exec.stage_bytes = 1024;
    refused(program, "bytes of the stage");
    while (second_list->tasks[head].op != MGL_OP_RMS_HEAD)
        head++;
    second_list->tasks[head].op = MGL_OP_HEAD; /* reads the ring, which holds pages of panels */
    refused(program, "use panels for all products, or for none");
    mgl_program_free(program);
}
END_TEST

/* A kernel has one panel variant, and warpgroups need one architecture. */
START_TEST(panels_are_by_warpgroups_in_all_or_in_none)
{
    mgl_error err;
    mgl_program *program = program_of_panels(128, 1), *second_list = program->second;
    ok(mgl_variants_name_warpgroups(second_list, &err), err);
    ok(mgl_cuda_check_program(program, &err), err);
    ok(mgl_cuda_check_arch(program, "sm_90a", &err), err);
    ck_assert_int_eq(mgl_cuda_check_arch(program, "sm_100a", &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "for sm_90a alone"), "%s", err.message);
    int task = second_list->task_count - 1;
    while (mgl_op_get(second_list->tasks[task].op)->family != MGL_FAMILY_PANEL)
        task--;
    second_list->tasks[task].variant = MGL_VARIANT_PANELS;
    refused(program, "others use warpgroups");
    mgl_program_free(program);
}
END_TEST

/* Its kernel supports pages only in the code of products and of that attention. */
START_TEST(beside_attention_of_rows_no_other_op_writes_pages)
{
    mgl_error err;
    mgl_program *program = program_of_heads(2, 64, 40, 1), *second_list = program->second;
    const mgl_task *task = second_list->tasks;
    ok(mgl_cuda_check_program(program, &err), err);
    while (task->op != MGL_OP_ATTEND_ROWS)
        task++;
    for (task = second_list->tasks; task->op != MGL_OP_SAMPLE;)
        task++;
    ck_assert_int_gt(task->out.count, 0);
    second_list->buffers[second_list->regions[task->out.first].buffer].paged = true;
    refused(program, "writes pages beside attention of rows");
    mgl_program_free(program);
}
END_TEST

/* The loader has marks for head products, which it may skip. */
START_TEST(panels_that_make_logits_are_told_apart)
{
    mgl_error err;
    mgl_cuda_tables tables;
    uint64_t tapes[3] = {0};
    mgl_program *program = program_of_panels(40, 20);
    uint64_t *buffers = mgl_alloc_zero((size_t)program->second->buffer_count, sizeof *buffers);
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes, false}, &tables, &err), err);
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_device_queue *entry = &tables.queues[2 * q + 1];
        const mgl_device_panel *panels =
            (const mgl_device_panel *)(const void *)(tables.records + entry->kv_at);
        ck_assert_int_gt(entry->kv_count, 1);
        for (unsigned i = 0; i < entry->kv_count; i++)
            ck_assert_int_eq(panels[i].heads, i + 1 == entry->kv_count);
    }
    mgl_cuda_tables_clear(&tables);
    mgl_free(buffers);
    mgl_program_free(program);
}
END_TEST

/* Two exchanged segments of the second list. */
START_TEST(both_lists_take_a_tape_in_one_order)
{
    mgl_program *program = program_of_lists(1, 8);
    mgl_program *second_list = program->second;
    const mgl_task *task = second_list->tasks;
    while (task->op != MGL_OP_NORM_LINEAR)
        task++;
    mgl_segment *segments = &second_list->segments[task->segments.first], first = segments[0];
    ck_assert_int_ge(task->segments.count, 2);
    segments[0] = segments[1];
    segments[1] = first;
    refused(program, "in the same order");
    mgl_program_free(program);
}
END_TEST

START_TEST(both_lists_take_all_of_a_tape)
{
    mgl_program *program = program_of_lists(2, 8);
    mgl_run *tasks = &program->second->queues[1].tasks;
    while (program->second->tasks[tasks->first + tasks->count - 1].op != MGL_OP_HEAD)
        tasks->count--;
    tasks->count--;
    refused(program, "leaves out one of");
    mgl_program_free(program);
}
END_TEST

/* The records of a list of a queue, and the number of padding records. */
static int count_records(const mgl_cuda_tables *tables, int entry, int *padding)
{
    const unsigned first = tables->queues[entry].first;
    unsigned at = first;
    int count = 0;
    do {
        const mgl_record *record = (const mgl_record *)(const void *)(tables->records + at);
        *padding += record->op == MGL_OP_CLEAR && record->clears == 0;
        at = record->next;
        count++;
    } while (at != first);
    return count;
}

/* Some queues of a small model have little to do. */
START_TEST(each_list_of_a_queue_has_four_records)
{
    enum { QUEUES = 24 };
    mgl_error err;
    mgl_cuda_tables tables;
    uint64_t tapes[QUEUES] = {0};
    mgl_program *program = program_of_lists(QUEUES, 8);
    uint64_t *buffers = mgl_alloc_zero((size_t)program->second->buffer_count, sizeof *buffers);
    int padding = 0;
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes, false}, &tables, &err), err);
    ck_assert_int_eq(tables.queue_entries, 2 * QUEUES);
    for (int i = 0; i < tables.queue_entries; i++)
        ck_assert_int_ge(count_records(&tables, i, &padding), MGL_LEAST_RECORDS);
    ck_assert_int_gt(padding, 0);
    mgl_cuda_tables_clear(&tables);
    mgl_free(buffers);
    mgl_program_free(program);
}
END_TEST

/* A wait counts the epochs of both lists. */
START_TEST(waits_count_the_signals_of_both_lists)
{
    mgl_error err;
    mgl_cuda_tables tables;
    uint64_t tapes[2] = {0};
    mgl_program *program = program_of_lists(2, 8);
    uint64_t *buffers = mgl_alloc_zero((size_t)program->second->buffer_count, sizeof *buffers);
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes, false}, &tables, &err), err);
    for (int list = 0; list < 2; list++) {
        const unsigned char *at = tables.records + tables.queues[list].first;
        const mgl_record *enter = (const mgl_record *)(const void *)at;
        const mgl_device_wait *wait = (const mgl_device_wait *)(const void *)(at + enter->wait_at);
        ck_assert_int_eq(enter->op, MGL_OP_ENTER);
        ck_assert_int_eq(enter->waits, 1);
        ck_assert_uint_eq(wait->threshold, 0);
        ck_assert_uint_gt(wait->per_epoch, 0);
        ck_assert_uint_gt(wait->per_other, 0);
    }
    mgl_cuda_tables_clear(&tables);
    mgl_free(buffers);
    mgl_program_free(program);
}
END_TEST

/* In a program with a second list, no attention uses the ring: the loader streams the same pages
 * for both lists, and keys and values of one list would not fit the other's code. */
START_TEST(beside_a_second_list_no_attention_is_by_the_ring)
{
    static const mgl_geometry heads = {256, 1, 4, 2, 96, 256, 120, 1e-5f};
    mgl_graph *graph = random_graph(&heads, 2048, true, MGL_BF16, 5);
    for (int second_rows = 0; second_rows <= 8; second_rows += 8) {
        mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2,
                                                                         .dtype = MGL_BF16,
                                                                         .rows = 1,
                                                                         .second_rows = second_rows,
                                                                         .splits = 2,
                                                                         .exchange = 2});
        for (mgl_program *list = program; list; list = list->second) {
            strcpy(list->target.arch, "sm_90a");
            list->exec.warps = 8;
        }
        mgl_variants_choose(program);
        ck_assert_int_eq(mgl_cuda_streams_kv(program, "sm_90a"), second_rows == 0);
        mgl_program_free(program);
    }
    mgl_graph_free(graph);
}
END_TEST

/* ---- plain programs -------------------------------------------------------------------------- */

static mgl_program *decoding_program(mgl_dtype dtype, int rows, int exchange)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, dtype, 5);
    mgl_program *program = fixture_program(
        graph, &(fixture_options){
                   .queues = 2, .dtype = dtype, .rows = rows, .splits = 2, .exchange = exchange});
    mgl_graph_free(graph);
    strcpy(program->target.arch, "sm_90a");
    mgl_variants_choose(program);
    return program;
}

/* Whether all products are skinny, and attention uses KV rounds. */
static bool is_plain(const mgl_program *program)
{
    return mgl_cuda_variants(program, MGL_FAMILY_PRODUCT, "sm_90a") == 1u << MGL_VARIANT_SKINNY &&
           mgl_cuda_variants(program, MGL_FAMILY_ATTENTION, "sm_90a") ==
               1u << MGL_VARIANT_KV_ROUNDS;
}

START_TEST(one_row_by_flags_is_plain)
{
    static const struct {
        mgl_dtype dtype;
        int rows, exchange;
        bool plain;
    } cases[] = {{MGL_BF16, 1, MGL_EXCHANGE_FLAGS, true},
                 {MGL_F16, 1, MGL_EXCHANGE_FLAGS, true},
                 {MGL_BF16, 2, MGL_EXCHANGE_FLAGS, false},
                 {MGL_BF16, 1, MGL_EXCHANGE_COUNTERS, false},
                 {MGL_F32, 1, MGL_EXCHANGE_FLAGS, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mgl_program *program = decoding_program(cases[i].dtype, cases[i].rows, cases[i].exchange);
        ck_assert_msg(is_plain(program) == cases[i].plain, "case %zu", i);
        mgl_program_free(program);
    }
}
END_TEST

/* Two columns are written as one word, or as two adjacent words. */
START_TEST(flagged_pairs_need_even_segments)
{
    mgl_error err;
    mgl_program *program = decoding_program(MGL_BF16, 1, MGL_EXCHANGE_FLAGS);
    const mgl_task *task = program->tasks;
    ok(mgl_cuda_check_program(program, &err), err);
    while (task->op != MGL_OP_NORM_LINEAR || task->segments.count < 2)
        task++;
    program->segments[task->segments.first].row_hi--;
    refused(program, "odd number of rows");
    mgl_program_free(program);
}
END_TEST

/* Every input counts: those of products, and of attention. */
START_TEST(a_plain_program_has_flags_throughout)
{
    static const mgl_op ops[] = {MGL_OP_NORM_LINEAR, MGL_OP_LINEAR_ADD, MGL_OP_HEAD,
                                 MGL_OP_ATTEND_TAIL, MGL_OP_ATTEND_PAST};
    mgl_program *program = decoding_program(MGL_BF16, 1, MGL_EXCHANGE_FLAGS);
    for (int i = 0, task; i < (int)(sizeof ops / sizeof *ops); i++) {
        for (task = 0; program->tasks[task].op != ops[i]; task++)
            ck_assert_int_lt(task, program->task_count - 1);
        mgl_region *first = &program->regions[program->tasks[task].in.first];
        first->flag = false;
        mgl_variants_choose(program);
        ck_assert_msg(!is_plain(program), "op %d", (int)ops[i]);
        first->flag = true;
    }
    mgl_variants_choose(program);
    ck_assert(is_plain(program));
    mgl_program_free(program);
}
END_TEST

/* Programs that the validator rejects are rejected here too, because the kernel relies on these
 * rules. */
START_TEST(a_variant_that_does_not_take_its_task_is_rejected)
{
    mgl_error err;
    mgl_program *program = decoding_program(MGL_BF16, 1, MGL_EXCHANGE_FLAGS);
    mgl_task *task = program->tasks;
    while (task->op != MGL_OP_NORM_LINEAR)
        task++;
    task->variant = MGL_VARIANT_BY_ROWS;
    ok(mgl_cuda_check_program(program, &err), err);
    task->variant = MGL_VARIANT_TILES;
    refused(program, "is not a variant of norm_linear");
    mgl_program_free(program);
}
END_TEST

/* ---- clears ---------------------------------------------------------------------------------- */

enum { BASE_SHIFT = 32 }; /* buffer i is at (i + 1) << BASE_SHIFT */

/* Marks the bytes that a region of `clear` covers, in one set, all rows. */
static void mark_region(const mgl_program *program, const mgl_region *region, char *map)
{
    const mgl_buffer *b = &program->buffers[region->buffer];
    int64_t size = (int64_t)mgl_dtype_size(b->dtype), elements = mgl_buffer_elements(b);
    for (int64_t e = 0; e < elements; e++) {
        bool inside = true;
        int64_t rest = e;
        for (int i = b->rank - 1; i >= 0; i--) {
            int64_t index = rest % b->extents[i].count;
            rest /= b->extents[i].count;
            inside = inside && (region->ranges[i].kind == MGL_RANGE_ROWS ||
                                (index >= region->ranges[i].lo && index < region->ranges[i].hi));
        }
        if (inside)
            memset(map + e * size, 1, (size_t)size);
    }
}

/* The rows with which tasks write a buffer, by its name: partial results only with split rows, and
 * the output of attention with both kinds. */
static unsigned kinds_of(const mgl_program *program, int buffer)
{
    const char *dot = strchr(program->buffers[buffer].name, '.');
    if (program->limits.unsplit > 0 && dot && !strcmp(dot, ".part"))
        return 1u << MGL_KV_SPLIT;
    if (program->limits.unsplit > 0 && dot && !strcmp(dot, ".att"))
        return 1u << MGL_KV_SPLIT | 1u << MGL_KV_UNSPLIT;
    return 1u << MGL_KV_ALL;
}

static void mark_record(const mgl_program *program, const mgl_record *record, char **maps)
{
    const mgl_device_clear *clears =
        (const mgl_device_clear *)(const void *)((const char *)record + record->clear_at);
    for (int i = 0; i < record->clears; i++) {
        const mgl_device_clear *c = &clears[i];
        int buffer = (int)(c->at >> BASE_SHIFT) - 1;
        ck_assert_uint_eq(c->set_bytes, mgl_buffer_bytes(&program->buffers[buffer]));
        ck_assert_uint_eq(c->kinds, kinds_of(program, buffer));
        for (unsigned o = 0; o < c->outer; o++)
            for (int r = 0; r < program->limits.rows; r++)
                memset(maps[buffer] + (c->at & UINT32_MAX) + o * c->outer_bytes +
                           (size_t)r * c->row_bytes,
                       1, c->bytes);
    }
}

static char **make_maps(const mgl_program *program)
{
    char **maps = mgl_alloc_zero((size_t)program->buffer_count, sizeof *maps);
    for (int i = 0; i < program->buffer_count; i++)
        maps[i] = mgl_alloc_zero(mgl_buffer_bytes(&program->buffers[i]) + 1, 1);
    return maps;
}

/* Several splits and heads per queue, so that a `clear` task combines them; several such tasks in a
 * row. */
static const fixture_options clear_shapes[] = {
    {.queues = 1, .splits = 4, .rows = 3, .exchange = MGL_EXCHANGE_FLAGS},
    {.queues = 2, .splits = 4, .rows = 4, .exchange = MGL_EXCHANGE_FLAGS},
    {.queues = 3, .splits = 2, .rows = 16, .exchange = MGL_EXCHANGE_FLAGS},
    {.queues = 5, .rows = 1, .exchange = MGL_EXCHANGE_FLAGS},
    {.queues = 3, .splits = 3, .rows = 2, .exchange = MGL_EXCHANGE_FLAGS, .unsplit = 8},
};

START_TEST(records_reset_what_clears_name)
{
    mgl_error err;
    mgl_cuda_tables tables;
    uint64_t tapes[8] = {0}, buffers[256];
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    mgl_program *program = fixture_program(graph, &clear_shapes[_i]);
    ck_assert_int_le(program->buffer_count, 256);
    for (int i = 0; i < program->buffer_count; i++)
        buffers[i] = (uint64_t)(i + 1) << BASE_SHIFT;
    ok(mgl_cuda_check_program(program, &err), err);
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes, false}, &tables, &err), err);
    char **wanted = make_maps(program), **reset = make_maps(program);
    for (int t = 0; t < program->task_count; t++)
        for (int i = 0; program->tasks[t].op == MGL_OP_CLEAR && i < program->tasks[t].out.count;
             i++) {
            const mgl_region *region = &program->regions[program->tasks[t].out.first + i];
            mark_region(program, region, wanted[region->buffer]);
        }
    for (int q = 0; q < program->queue_count; q++) {
        unsigned at = tables.queues[q].first;
        do {
            const mgl_record *record = (const mgl_record *)(const void *)(tables.records + at);
            mark_record(program, record, reset);
            at = record->next;
        } while (at != tables.queues[q].first);
    }
    for (int i = 0; i < program->buffer_count; i++) {
        ck_assert_mem_eq(wanted[i], reset[i], mgl_buffer_bytes(&program->buffers[i]));
        mgl_free(wanted[i]);
        mgl_free(reset[i]);
    }
    mgl_free(wanted);
    mgl_free(reset);
    mgl_cuda_tables_clear(&tables);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(a_clear_of_broken_runs_is_rejected)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    mgl_program *program = fixture_program(graph, &clear_shapes[1]);
    for (int i = 0; i < program->region_count; i++) {
        mgl_region *region = &program->regions[i];
        const mgl_buffer *b = &program->buffers[region->buffer];
        if (b->rank == 4 && b->sets > 1 && !region->flag) {
            region->ranges[3].hi -= 4; /* part of the last dimension, of several heads */
            break;
        }
    }
    refused(program, "not one run");
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* The buffer of records may grow in the middle of a task, before its biases or edges. */
START_TEST(memory_may_run_out_anywhere)
{
    uint64_t addresses[1024] = {0};
    int failures = 0;
    for (int layers = 30; layers <= 48; layers += 3) {
        mgl_geometry deep = small_model;
        deep.layers = layers;
        mgl_graph *graph = random_graph(&deep, 64, true, MGL_F32, 5);
        mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 3});
        ck_assert_int_lt(program->buffer_count, 1024);
        mgl_status status = MGL_NO_MEMORY;
        for (int n = 1; status; n++) {
            mgl_error err;
            mgl_cuda_tables tables;
            mgl_alloc_fail_at((uint64_t)n, true);
            status = mgl_cuda_encode(program, &(mgl_cuda_addresses){addresses, addresses, false},
                                     &tables, &err);
            mgl_alloc_fail_at(0, false);
            if (status)
                ck_assert_int_eq(status, MGL_NO_MEMORY);
            else
                mgl_cuda_tables_clear(&tables);
            failures += status != MGL_OK;
        }
        mgl_program_free(program);
        mgl_graph_free(graph);
    }
    ck_assert_int_gt(failures, 20);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda encode");
    tcase_add_test(tests, a_record_is_as_long_as_shared_memory_has_room);
    tcase_add_test(tests, a_clear_without_room_has_a_record_of_its_own);
    tcase_add_test(tests, a_clear_travels_with_the_task_before);
    tcase_add_test(tests, pages_of_all_epochs_are_counted_in_32_bits);
    tcase_add_test(tests, heads_are_counted_from_one);
    tcase_add_test(tests, other_numbers_than_the_weights_are_rejected);
    tcase_add_test(tests, the_last_split_appends);
    tcase_add_test(tests, the_last_segment_ends_behind_the_padding);
    tcase_add_test(tests, a_second_list_without_panels_has_16_rows_at_most);
    tcase_add_test(tests, panels_have_128_rows_and_launches_64_sequences);
    tcase_add_test(tests, gamma_scaled_products_are_panels);
    tcase_add_test(tests, panels_are_by_warpgroups_in_all_or_in_none);
    tcase_add_test(tests, beside_attention_of_rows_no_other_op_writes_pages);
    tcase_add_test(tests, panels_that_make_logits_are_told_apart);
    tcase_add_test(tests, both_lists_take_a_tape_in_one_order);
    tcase_add_test(tests, both_lists_take_all_of_a_tape);
    tcase_add_test(tests, each_list_of_a_queue_has_four_records);
    tcase_add_test(tests, waits_count_the_signals_of_both_lists);
    tcase_add_test(tests, beside_a_second_list_no_attention_is_by_the_ring);
    tcase_add_test(tests, segments_that_follow_one_another_are_one);
    tcase_add_test(tests, flagged_pairs_need_even_segments);
    tcase_add_test(tests, one_row_by_flags_is_plain);
    tcase_add_test(tests, a_plain_program_has_flags_throughout);
    tcase_add_test(tests, a_variant_that_does_not_take_its_task_is_rejected);
    tcase_add_loop_test(tests, records_reset_what_clears_name, 0,
                        sizeof clear_shapes / sizeof *clear_shapes);
    tcase_add_test(tests, a_clear_of_broken_runs_is_rejected);
    tcase_add_test(tests, memory_may_run_out_anywhere);
    return fixture_main("cuda encode", tests);
}
