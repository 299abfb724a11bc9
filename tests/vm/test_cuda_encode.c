/*
 * What the CUDA machine refuses before it asks for a device, and where the tape of a queue ends for
 * the kernel: rules that the validator does not know, each at its edge.
 */
#include "fixture.h"

#include <string.h>

#include "base/memory.h"
#include "vm/cuda/encode.h"

static mgl_program *program_of_two(void)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    mgl_graph_free(graph);
    return program;
}

/* Refused with a message that holds `why`. */
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
    for (int i = 0; i < 20; i++) /* the newest task is the last queue's last */
        mgl_program_add_wait(program, counter, 0);
    ok(mgl_cuda_check_program(program, &err), err);
    for (int i = 0; i < 60; i++)
        mgl_program_add_wait(program, counter, 0);
    refused(program, "too many waits");
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

/* The kernel must pass over padding, however many pages it is, with the last segment. */
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
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes}, &tables, &err), err);
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

int main(void)
{
    TCase *tests = tcase_create("cuda encode");
    tcase_add_test(tests, a_record_is_as_long_as_shared_memory_has_room);
    tcase_add_test(tests, pages_of_all_epochs_are_counted_in_32_bits);
    tcase_add_test(tests, the_last_segment_ends_behind_the_padding);
    return fixture_main("cuda encode", tests);
}
