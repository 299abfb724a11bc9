/*
 * Tests of poison and guards on both machines, the CUDA machine with the fake driver: what is
 * filled, what is unchanged, detection of writes past a buffer, and weights that are generated
 * again.
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scratch.h"
#include "vm/cuda/machine.h"

enum { WORD = 0x7FA17FA1, CONTEXT = 5, CAPACITY = 32 };

static mgl_graph *graph;
static mgl_program *program;
static mgl_vm *vm;
static char folder[] = "/tmp/megalith-poison-XXXXXX";
static int fills; /* calls of the CUDA machine's fill */

static mgl_status fill_cache(void *user, const mgl_program *of, const mgl_vm_places *places,
                             mgl_error *err)
{
    (void)user, (void)err;
    fills++;
    for (int i = 0; i < of->buffer_count; i++)
        if (of->buffers[i].space == MGL_SPACE_KV) /* a byte of each */
            *(unsigned char *)(uintptr_t)places->buffers[i] = 9;
    return MGL_OK;
}

/* Machine 0 is the CPU, 1 CUDA; exchange by flags, so that there are buffers in sets. */
static void open_machine(int cuda)
{
    mgl_error err;
    mgl_vm_options options = {.kind = cuda ? MGL_VM_CUDA : MGL_VM_CPU,
                              .unchecked = true,
                              .fill = cuda ? fill_cache : NULL};
    fills = 0;
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
}

static void setup(void)
{
    reset_fake();
    scratch_make(folder);
    setenv("MEGALITH_CACHE", folder, 1);
    mgl_cu_override(&fake_cu);
    mgl_nvrtc_override(&fake_nvrtc);
    graph = random_graph(&small_model, 64, true, MGL_BF16, 1);
    program = program_for(graph, "sm_90a:2",
                          &(device_options){.dtype = MGL_BF16,
                                            .capacity = CAPACITY,
                                            .sequences = 2,
                                            .exchange = MGL_EXCHANGE_FLAGS});
    vm = NULL;
}

static void teardown(void)
{
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_cu_override(NULL);
    mgl_nvrtc_override(NULL);
    scratch_remove(folder);
    nothing_is_left();
}

/* The address of a buffer: the fake device's memory is the host's. */
static unsigned char *find(int cuda, int buffer)
{
    return cuda ? (unsigned char *)(uintptr_t)((mgl_cuda_vm *)vm)->buffers[buffer]
                : mgl_vm_cpu_buffer(vm, buffer);
}

static int find_space(mgl_space space)
{
    int i = 0;
    while (program->buffers[i].space != space)
        i++;
    return i;
}

static uint32_t word_at(const unsigned char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

START_TEST(activations_and_outputs_are_filled)
{
    mgl_error err;
    open_machine(_i);
    ok(mgl_vm_poison(vm, WORD, CONTEXT, &err), err);
    for (int i = 0; i < program->buffer_count; i++) {
        const mgl_buffer *b = &program->buffers[i];
        if (b->space != MGL_SPACE_ACT && b->space != MGL_SPACE_IO)
            continue;
        size_t words = mgl_buffer_bytes(b) * (size_t)b->sets / sizeof(uint32_t);
        for (size_t w = 0; w < words; w++)
            ck_assert_uint_eq(word_at(find(_i, i) + w * sizeof(uint32_t)), WORD);
    }
}
END_TEST

START_TEST(the_cache_is_filled_behind_the_context)
{
    mgl_error err;
    open_machine(_i);
    ok(mgl_vm_poison(vm, WORD, CONTEXT, &err), err);
    const mgl_geometry *m = &program->geometry;
    const unsigned char *cache = find(_i, find_space(MGL_SPACE_KV));
    size_t row = (size_t)m->head_dim * sizeof(uint16_t);
    for (int p = 0; p < 2 * m->kv_heads * CAPACITY; p++) {
        bool filled = word_at(cache + (size_t)p * row + row - sizeof(uint32_t)) == WORD;
        ck_assert_int_eq(filled, p % CAPACITY >= CONTEXT);
    }
}
END_TEST

START_TEST(a_full_cache_is_left_alone)
{
    mgl_error err;
    open_machine(_i);
    ok(mgl_vm_poison(vm, WORD, CAPACITY, &err), err);
    int buffer = find_space(MGL_SPACE_KV);
    const unsigned char *cache = find(_i, buffer);
    for (size_t at = sizeof(uint32_t); at < mgl_buffer_bytes(&program->buffers[buffer]); at++)
        ck_assert_uint_eq(cache[at], 0);
}
END_TEST

START_TEST(a_context_that_has_no_room_is_rejected)
{
    mgl_error err;
    open_machine(_i);
    ck_assert_int_eq(mgl_vm_poison(vm, WORD, CAPACITY + 1, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_vm_poison(vm, WORD, -1, &err), MGL_USAGE);
}
END_TEST

/* Overwrites, for each buffer that tasks write, the first and the last byte of its guard. */
START_TEST(a_write_behind_a_buffer_is_noticed)
{
    mgl_error err;
    open_machine(_i);
    for (int i = 0; i < program->buffer_count; i++) {
        const mgl_buffer *b = &program->buffers[i];
        unsigned char *guard = find(_i, i) + mgl_buffer_bytes(b) * (size_t)b->sets;
        if (b->space == MGL_SPACE_CONST)
            continue;
        for (int at = 0; at < MGL_GUARD_BYTES; at += MGL_GUARD_BYTES - 1) {
            ok(mgl_vm_poison(vm, WORD, CONTEXT, &err), err);
            if (_i) /* as at the start of a launch */
                memset((void *)(uintptr_t)((mgl_cuda_vm *)vm)->flags, 0xFF,
                       ((mgl_cuda_vm *)vm)->flag_bytes);
            ok(mgl_vm_check_guards(vm, &err), err);
            guard[at] ^= 1;
            ck_assert_int_eq(mgl_vm_check_guards(vm, &err), MGL_GATE);
            ck_assert_ptr_nonnull(strstr(err.where, b->name));
        }
    }
}
END_TEST

START_TEST(a_write_behind_a_tape_is_noticed)
{
    mgl_error err;
    open_machine(1);
    ok(mgl_vm_poison(vm, WORD, CONTEXT, &err), err);
    const mgl_cuda_vm *cuda = (const mgl_cuda_vm *)vm;
    memset((void *)(uintptr_t)cuda->flags, 0xFF, cuda->flag_bytes);
    *(unsigned char *)(uintptr_t)(cuda->tapes[1] + (uint64_t)program->queues[1].tape_bytes) = 0;
    ck_assert_int_eq(mgl_vm_check_guards(vm, &err), MGL_GATE);
    ck_assert_str_eq(err.where, "the tape of queue 1");
}
END_TEST

START_TEST(weights_are_made_anew_in_a_cache_that_is_empty)
{
    mgl_error err;
    int buffer = find_space(MGL_SPACE_KV);
    size_t bytes = mgl_buffer_bytes(&program->buffers[buffer]);
    open_machine(1);
    memset(find(1, buffer), 0x55, bytes);
    ok(mgl_vm_refill(vm, &err), err);
    ck_assert_int_eq(fills, 2);
    ck_assert_uint_eq(find(1, buffer)[0], 9);
    for (size_t at = 1; at < bytes; at++)
        ck_assert_uint_eq(find(1, buffer)[at], 0);
}
END_TEST

START_TEST(weights_that_were_packed_are_not_made_anew)
{
    mgl_error err;
    open_machine(0);
    ck_assert_int_eq(mgl_vm_refill(vm, &err), MGL_USAGE);
}
END_TEST

/* Every call of the driver fails once. */
START_TEST(a_driver_that_fails_is_told)
{
    mgl_error err;
    open_machine(1);
    mgl_status status = MGL_DEVICE;
    for (int n = 1; status; n++) {
        fake.calls = 0;
        fake.fail_at = n;
        status = mgl_vm_poison(vm, WORD, CONTEXT, &err);
        if (!status) {
            memset((void *)(uintptr_t)((mgl_cuda_vm *)vm)->flags, 0xFF,
                   ((mgl_cuda_vm *)vm)->flag_bytes);
            status = mgl_vm_check_guards(vm, &err);
        }
        if (!status)
            status = mgl_vm_refill(vm, &err);
        ck_assert(!status || status == MGL_DEVICE);
    }
    ck_assert_int_gt(fake.calls, 20);
}
END_TEST

/* Reads logits of the last epoch's rows, and no others. */
START_TEST(each_sequence_has_its_logits)
{
    static const int32_t prompts[2] = {3, 4};
    mgl_error err;
    mgl_vm_report report;
    float rows[2][128], last[128];
    mgl_vm_sequence sequences[2] = {{.prompt = &prompts[0], .prompt_count = 1, .max_new = 3},
                                    {.prompt = &prompts[1], .prompt_count = 1, .max_new = 3}};
    mgl_vm_request request = {.sequences = sequences, .count = 2};
    open_machine(0);
    ck_assert_int_eq(mgl_vm_get_row_logits(vm, 0, rows[0], &err), MGL_USAGE);
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    for (int r = 0; r < 2; r++)
        ok(mgl_vm_get_row_logits(vm, r, rows[r], &err), err);
    ok(mgl_vm_get_logits(vm, last, &err), err);
    size_t bytes = (size_t)program->geometry.vocab * sizeof(float);
    ck_assert_mem_eq(rows[1], last, bytes);
    ck_assert_mem_ne(rows[0], last, bytes);
    ck_assert_int_eq(mgl_vm_get_row_logits(vm, 2, rows[0], &err), MGL_USAGE);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("poison");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, activations_and_outputs_are_filled, 0, 2);
    tcase_add_loop_test(tests, the_cache_is_filled_behind_the_context, 0, 2);
    tcase_add_loop_test(tests, a_full_cache_is_left_alone, 0, 2);
    tcase_add_loop_test(tests, a_context_that_has_no_room_is_rejected, 0, 2);
    tcase_add_loop_test(tests, a_write_behind_a_buffer_is_noticed, 0, 2);
    tcase_add_test(tests, a_write_behind_a_tape_is_noticed);
    tcase_add_test(tests, weights_are_made_anew_in_a_cache_that_is_empty);
    tcase_add_test(tests, weights_that_were_packed_are_not_made_anew);
    tcase_add_test(tests, a_driver_that_fails_is_told);
    tcase_add_test(tests, each_sequence_has_its_logits);
    return fixture_main("poison", tests);
}
