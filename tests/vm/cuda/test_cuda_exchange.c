/*
 * Tests of exchanging the program of an open CUDA machine (mgl_vm_exchange), with the fake driver:
 * every byte on the device equals that of a machine opened with the program, the kernel stays, and
 * each call and allocation can fail.
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/moves/moves.h"
#include "tests/scratch.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/machine.h"

enum { CAPACITY = 64, TURNS = 20 };

/* ---- fixtures -------------------------------------------------------------------------------- */

static mgl_graph *graph;
static mgl_program *programs[2];
static char folder[] = "/tmp/megalith-driver-XXXXXX";

/* Five queues, and four queues of which two have only attention: other tapes, records and
 * counters. */
static const device_options first = {
    .dtype = MGL_BF16, .capacity = CAPACITY, .exchange = MGL_EXCHANGE_COUNTERS};
static const device_options second = {.dtype = MGL_BF16,
                                      .capacity = CAPACITY,
                                      .exchange = MGL_EXCHANGE_COUNTERS,
                                      .queues = 4,
                                      .products = 2};

static void setup(void)
{
    reset_fake();
    scratch_make(folder);
    setenv("MEGALITH_CACHE", folder, 1);
    mgl_cu_override(&fake_cu);
    mgl_nvrtc_override(&fake_nvrtc);
    graph = random_graph(&odd_model, CAPACITY, true, MGL_F32, 1);
    programs[0] = program_for(graph, "sm_90a:5", &first);
    programs[1] = program_for(graph, "sm_90a:4", &second);
}

static void teardown(void)
{
    mgl_program_free(programs[0]);
    mgl_program_free(programs[1]);
    mgl_graph_free(graph);
    mgl_cu_override(NULL);
    mgl_nvrtc_override(NULL);
    scratch_remove(folder);
}

static mgl_vm *open_vm(int program)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options options = {.kind = MGL_VM_CUDA};
    ok(mgl_vm_open(programs[program], graph, &options, &vm, &err), err);
    return vm;
}

static mgl_status run_vm(mgl_vm *vm, mgl_error *err)
{
    static const int32_t prompt[3] = {1, 2, 3};
    mgl_vm_report report;
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 4};
    return mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, err);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static const void *at(mgl_cu_address address)
{
    return (const void *)(uintptr_t)address;
}

/* The number of bytes with that value. */
static int64_t count_bytes(mgl_cu_address address, unsigned char value, size_t bytes)
{
    const unsigned char *from = at(address);
    int64_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += from[i] == value;
    return count;
}

/* Checks that tapes and tables equal the packer's. */
static void check_weights(const mgl_cuda_vm *vm, const mgl_graph *of)
{
    mgl_error err;
    mgl_weights *weights;
    ok(mgl_weights_pack(vm->vm.program, of, &weights, &err), err);
    for (int part = 0; part < mgl_weights_parts(vm->vm.program); part++) {
        size_t bytes = weights->sizes[part];
        char *wanted = mgl_alloc(bytes + 1);
        ok(mgl_weights_write(weights, part, wanted, NULL, &err), err);
        if (bytes > 0)
            ck_assert_mem_eq(at(mgl_cuda_part_address(vm, part)), wanted, bytes);
        mgl_free(wanted);
    }
    mgl_weights_close(weights);
}

/* Checks that records and queues are the program's. */
static void check_tables(const mgl_cuda_vm *vm)
{
    mgl_error err;
    mgl_cuda_tables tables;
    mgl_cuda_addresses addresses = {vm->buffers, vm->tapes, vm->kv_ring};
    size_t queues = (size_t)vm->vm.program->queue_count * sizeof(mgl_device_queue);
    ok(mgl_cuda_encode(vm->vm.program, &addresses, &tables, &err), err);
    ck_assert_mem_eq(at(vm->records), tables.records, tables.record_bytes);
    ck_assert_mem_eq(at(vm->queues), tables.queues, queues);
    mgl_cuda_tables_clear(&tables);
}

/* Checks that all other memory is zero. */
static void check_rest(const mgl_cuda_vm *vm)
{
    const mgl_program *p = vm->vm.program;
    for (int i = 0; i < p->buffer_count; i++) {
        size_t bytes = mgl_buffer_bytes(&p->buffers[i]) * (size_t)p->buffers[i].sets;
        if (p->buffers[i].space != MGL_SPACE_CONST)
            ck_assert_int_eq(count_bytes(vm->buffers[i], 0, bytes), (int64_t)bytes);
    }
}

static void check_device(const mgl_vm *base, const mgl_graph *of, const mgl_program *program)
{
    const mgl_cuda_vm *vm = (const mgl_cuda_vm *)base;
    ck_assert_ptr_eq(base->program, program);
    check_weights(vm, of);
    check_tables(vm);
    check_rest(vm);
}

/* The weights are on the device, so the graph is not read again. */
START_TEST(every_byte_is_that_of_a_fresh_machine)
{
    mgl_error err;
    mgl_vm *vm = open_vm(0);
    mgl_tensor_read_fn *read = graph->read;
    for (int turn = 1; turn <= TURNS; turn++) {
        graph->read = NULL;
        ok(mgl_vm_exchange(vm, programs[turn % 2], graph, &err), err);
        graph->read = read;
        check_device(vm, graph, programs[turn % 2]);
        ok(run_vm(vm, &err), err);
    }
    ck_assert_int_eq(fake.allocations, 2); /* the arena, and pinned memory */
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

START_TEST(every_byte_of_a_checkpoint_is_the_packers)
{
    mgl_error err;
    mgl_vm *vm;
    golden_model m;
    golden_open(&m, "tales-5m");
    const mgl_graph *of = m.checkpoint->graph;
    device_options options = {.dtype = MGL_BF16, .capacity = 256};
    mgl_vm_options open = {.kind = MGL_VM_CUDA};
    mgl_program *pair[2] = {program_for(of, "sm_90a:132", &options),
                            program_for(of, "sm_90a:97", &options)};
    fake.sms = 132;
    ok(mgl_vm_open(pair[0], of, &open, &vm, &err), err);
    for (int turn = 1; turn <= 2; turn++) {
        ok(mgl_vm_exchange(vm, pair[turn % 2], of, &err), err);
        check_device(vm, of, pair[turn % 2]);
    }
    mgl_vm_close(vm);
    mgl_program_free(pair[0]);
    mgl_program_free(pair[1]);
    golden_close(&m);
}
END_TEST

static void rename_tensor(mgl_program *program, int tensor)
{
    ((char *)(uintptr_t)program->tensors[tensor].checkpoint)[0] ^= 1;
}

/* Every other tensor of the old program has another name, so the new program's comes from the
 * graph. */
START_TEST(what_the_old_program_has_not_is_packed)
{
    mgl_error err;
    mgl_vm *vm = open_vm(0);
    int copies = fake.copies;
    for (int i = 0; i < programs[0]->tensor_count; i += 2)
        rename_tensor(programs[0], i);
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    check_device(vm, graph, programs[1]);
    ck_assert_int_gt(fake.copies, copies);
    ck_assert_uint_gt(fake.moved, 0);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

/* Pieces that are contiguous in both arenas are one copy. */
START_TEST(the_same_program_is_copied_in_few_runs)
{
    mgl_error err;
    mgl_vm *vm = open_vm(0);
    mgl_program *same = program_for(graph, "sm_90a:5", &first);
    int calls = fake.calls, consts = 0;
    for (int i = 0; i < same->buffer_count; i++)
        consts += same->buffers[i].space == MGL_SPACE_CONST;
    ok(mgl_vm_exchange(vm, same, graph, &err), err);
    ck_assert_uint_gt(fake.moved, 100000);
    ck_assert_int_lt(fake.calls - calls, same->queue_count + consts + 12);
    check_device(vm, graph, same);
    mgl_vm_close(vm);
    mgl_program_free(same);
}
END_TEST

/* ---- moves ----------------------------------------------------------------------------------- */

/* Applies the next move that fits. */
static mgl_program *moved(const mgl_program *program, uint64_t *state)
{
    mgl_program *out = NULL;
    while (!out) {
        mgl_error err;
        mgl_move move;
        mgl_moves moves = {0};
        ck_assert(mgl_move_draw(program, (1u << MGL_MOVE_COUNT) - 1, state, &move));
        ok(mgl_moves_add(&moves, &move, &err), err);
        if (mgl_moves_apply(program, &moves, &out, &err))
            out = NULL;
        mgl_moves_clear(&moves);
    }
    return out;
}

static size_t buffer_bytes(const mgl_program *program)
{
    size_t bytes = 0;
    for (int i = 0; i < program->buffer_count; i++)
        bytes += mgl_buffer_bytes(&program->buffers[i]) * (size_t)program->buffers[i].sets;
    return bytes;
}

/* Applies random moves, each program exchanged into the machine of the last. The machine has all
 * bytes of the new program or, if it is rejected, of the old one. Some moves change buffers, such
 * as splits and sets. */
START_TEST(moved_programs_are_exchanged)
{
    enum { MOVES = 60 };
    static const mgl_geometry model = {128, 2, 6, 2, 64, 128, 75, 1e-5f};
    const device_options options = {.dtype = MGL_BF16,
                                    .capacity = CAPACITY,
                                    .exchange = _i ? MGL_EXCHANGE_FLAGS : MGL_EXCHANGE_COUNTERS,
                                    .splits = 2,
                                    .rows = 1};
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options open = {.kind = MGL_VM_CUDA};
    mgl_graph *of = random_graph(&model, CAPACITY, true, MGL_BF16, 1);
    mgl_program *now = program_for(of, "sm_90a:5", &options);
    uint64_t state = 7;
    int taken = 0, resized = 0;
    ok(mgl_vm_open(now, of, &open, &vm, &err), err);
    for (int i = 0; i < MOVES; i++) {
        mgl_program *next = moved(now, &state);
        mgl_status status = mgl_vm_exchange(vm, next, of, &err);
        ck_assert(status == MGL_OK || status == MGL_REJECTED || status == MGL_BAD_INPUT);
        resized += !status && buffer_bytes(now) != buffer_bytes(next);
        taken += !status;
        mgl_program_free(status ? next : now);
        now = status ? now : next;
        check_device(vm, of, now);
    }
    printf("of %d moves %d were taken, of which %d changed buffers\n", MOVES, taken, resized);
    ck_assert_int_gt(taken, MOVES / 4);
    ck_assert_int_gt(resized, 0);
    mgl_vm_close(vm);
    mgl_program_free(now);
    mgl_graph_free(of);
    nothing_is_left();
}
END_TEST

START_TEST(the_kernel_stays)
{
    mgl_error err;
    mgl_vm_facts before, behind;
    mgl_vm *vm = open_vm(0);
    const void *module = ((const mgl_cuda_vm *)vm)->module;
    const void *pinned = ((const mgl_cuda_vm *)vm)->pinned;
    nvrtc_compiles = 0;
    mgl_vm_get_facts(vm, &before);
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    mgl_vm_get_facts(vm, &behind);
    ck_assert_int_eq(nvrtc_compiles, 0);
    ck_assert_ptr_eq(((const mgl_cuda_vm *)vm)->module, module);
    ck_assert_ptr_eq(((const mgl_cuda_vm *)vm)->pinned, pinned);
    ck_assert_int_eq(behind.registers, before.registers);
    ck_assert_double_eq(behind.kernel_s, 0);
    ck_assert_uint_eq(behind.kv_bytes, before.kv_bytes);
    mgl_vm_close(vm);
}
END_TEST

/* ---- rejected inputs ------------------------------------------------------------------------- */

/* The machine keeps its program and runs it. */
static void check_refused(const mgl_program *program, const char *word)
{
    mgl_error err = {0};
    mgl_vm *vm = open_vm(0);
    ck_assert_int_eq(mgl_vm_exchange(vm, program, graph, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, word), "%s: %s", err.where, err.message);
    check_device(vm, graph, programs[0]);
    ok(run_vm(vm, &err), err);
    mgl_vm_close(vm);
    nothing_is_left();
}

START_TEST(another_kernel_is_rejected)
{
    device_options options = first;
    options.page_bytes = 8192;
    mgl_program *other = program_for(graph, "sm_90a:5", &options);
    check_refused(other, "another kernel");
    mgl_program_free(other);
}
END_TEST

/* The machine lacks the code of a variant that its own program does not use. */
START_TEST(another_variant_is_rejected)
{
    mgl_program *other = program_for(graph, "sm_90a:5", &first);
    mgl_task *task = other->tasks;
    while (task->op != MGL_OP_ATTEND)
        task++;
    ck_assert_int_eq(task->variant, MGL_VARIANT_TILES);
    task->variant = MGL_VARIANT_GENERAL;
    check_refused(other, "another kernel");
    mgl_program_free(other);
}
END_TEST

/* Splits that use KV rounds, or, on a newer architecture, the ring. */
static const device_options streamed = {.dtype = MGL_BF16,
                                        .capacity = 512,
                                        .rows = 1,
                                        .splits = 2,
                                        .exchange = MGL_EXCHANGE_FLAGS,
                                        .page_bytes = 16384,
                                        .warps = 8};

/* Two programs for a newer architecture on an older machine; the second uses ring attention, which
 * no kernel of the older one has. */
START_TEST(what_the_architecture_has_not_is_rejected)
{
    mgl_error err = {0};
    mgl_vm *vm;
    mgl_graph *of = random_graph(&small_model, 512, true, MGL_BF16, 1);
    mgl_program *own = program_for(of, "sm_80:5", &streamed);
    mgl_program *newer = program_for(of, "sm_90a:5", &streamed);
    const mgl_vm_options open = {.kind = MGL_VM_CUDA, .arch = "compute_80"};
    ck_assert(mgl_cuda_streams_kv(newer, "sm_90a"));
    own->target = newer->target;
    fake.arch = open.arch;
    ok(mgl_vm_open(own, of, &open, &vm, &err), err);
    ck_assert_int_eq(mgl_vm_exchange(vm, newer, of, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, ".ring, which is for sm_90 and newer"), "%s", err.message);
    check_device(vm, of, own);
    ok(run_vm(vm, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(newer);
    mgl_program_free(own);
    mgl_graph_free(of);
    nothing_is_left();
}
END_TEST

START_TEST(more_queues_than_fit_are_rejected)
{
    mgl_program *other = program_for(graph, "sm_90a:9", &first);
    check_refused(other, "9 queues, but only 8");
    mgl_program_free(other);
}
END_TEST

/* The validator accepts the program, but a record of the kernel is too small for it. */
START_TEST(what_the_kernel_cannot_run_is_rejected)
{
    mgl_error err;
    mgl_vm *vm = open_vm(0);
    vm->unchecked = true;
    programs[1]->segments[0].col_hi--;
    ck_assert_int_eq(mgl_vm_exchange(vm, programs[1], graph, &err), MGL_BAD_INPUT);
    check_device(vm, graph, programs[0]);
    mgl_vm_close(vm);
}
END_TEST

START_TEST(too_little_memory_is_told_in_bytes)
{
    mgl_error err;
    mgl_vm *vm = open_vm(0);
    fake.free_bytes = 12345;
    ck_assert_int_eq(mgl_vm_exchange(vm, programs[1], graph, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(err.code, MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "12345 are free"), "%s", err.message);
    check_device(vm, graph, programs[0]);
    ok(run_vm(vm, &err), err);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

/* ---- what fails ------------------------------------------------------------------------------ */

/* The machine has no program, and every call reports that. */
static void check_lost(mgl_vm *vm)
{
    float logits[1213];
    mgl_error err;
    ck_assert_int_eq(run_vm(vm, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "no program"), "%s", err.message);
    ck_assert_int_eq(mgl_vm_get_logits(vm, logits, &err), MGL_DEVICE);
    ck_assert_int_eq(mgl_vm_get_row_logits(vm, 0, logits, &err), MGL_DEVICE);
    ck_assert_int_eq(mgl_vm_poison(vm, 0, 0, &err), MGL_DEVICE);
    ck_assert_int_eq(mgl_vm_check_guards(vm, &err), MGL_DEVICE);
    ck_assert_int_eq(mgl_vm_refill(vm, &err), MGL_DEVICE);
    ck_assert_int_eq(mgl_vm_exchange(vm, programs[0], graph, &err), MGL_DEVICE);
}

/* Each call fails once: after a device error the program is lost; without memory it stays. */
START_TEST(every_driver_call_may_fail)
{
    mgl_error err;
    int lost = 0, kept = 0;
    for (int n = 1;; n++) {
        reset_fake();
        mgl_vm *vm = open_vm(0);
        fake.calls = 0;
        fake.fail_at = n;
        err.message[0] = 0;
        mgl_status status = mgl_vm_exchange(vm, programs[1], graph, &err);
        fake.fail_at = 0;
        if (status == MGL_DEVICE)
            check_lost(vm);
        else
            ok(run_vm(vm, &err), err);
        mgl_vm_close(vm);
        nothing_is_left();
        if (!status)
            break;
        ck_assert_int_eq(err.code, status);
        ck_assert(err.message[0]);
        lost += status == MGL_DEVICE;
        kept += status == MGL_BAD_INPUT;
    }
    ck_assert_int_eq(kept, 2);
    ck_assert_int_gt(lost, 5);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_error err;
    mgl_vm *vm = open_vm(0);
    for (uint64_t n = 1;; n++) {
        mgl_alloc_fail_at(n, false);
        mgl_status status = mgl_vm_exchange(vm, programs[1], graph, &err);
        mgl_alloc_fail_at(0, false);
        if (!status)
            break;
        ck_assert_int_eq(status, MGL_NO_MEMORY);
        check_tables((const mgl_cuda_vm *)vm);
    }
    check_device(vm, graph, programs[1]);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

/* A tensor that neither the old program nor the graph has. */
START_TEST(weights_that_cannot_be_read_leave_the_old)
{
    mgl_error err;
    mgl_program *other = program_for(graph, "sm_90a:4", &second);
    mgl_vm *vm = open_vm(0);
    mgl_tensor_read_fn *read = graph->read;
    rename_tensor(other, 0);
    vm->unchecked = true;
    graph->read = NULL;
    ck_assert_int_eq(mgl_vm_exchange(vm, other, graph, &err), MGL_BAD_INPUT);
    graph->read = read;
    check_device(vm, graph, programs[0]);
    mgl_vm_close(vm);
    mgl_program_free(other);
    nothing_is_left();
}
END_TEST

/* ---- weights that are made in place ---------------------------------------------------------- */

static struct {
    int calls, fail_at;
} fill;

/* Marks every tape and the first byte of the cache; all memory is zero before. */
static mgl_status mark(void *user, const mgl_program *of, const mgl_vm_places *places,
                       mgl_error *err)
{
    ck_assert_ptr_eq(user, &fill);
    if (++fill.calls == fill.fail_at)
        return mgl_fail(err, MGL_USAGE, "fill", "planted by a test");
    for (int q = 0; q < of->queue_count; q++)
        ck_assert_int_eq(count_bytes(places->tapes[q], 0, (size_t)of->queues[q].tape_bytes),
                         of->queues[q].tape_bytes);
    for (int q = 0; q < of->queue_count; q++)
        memset((void *)(uintptr_t)places->tapes[q], q + 1, (size_t)of->queues[q].tape_bytes);
    return MGL_OK;
}

static mgl_vm *open_filled(int program)
{
    mgl_error err;
    mgl_vm *vm;
    fill.calls = fill.fail_at = 0;
    mgl_vm_options options = {.kind = MGL_VM_CUDA, .fill = mark, .fill_user = &fill};
    ok(mgl_vm_open(programs[program], graph, &options, &vm, &err), err);
    return vm;
}

static void check_marks(const mgl_vm *base)
{
    const mgl_cuda_vm *vm = (const mgl_cuda_vm *)base;
    for (int q = 0; q < base->program->queue_count; q++) {
        int64_t bytes = base->program->queues[q].tape_bytes;
        ck_assert_int_eq(count_bytes(vm->tapes[q], (unsigned char)(q + 1), (size_t)bytes), bytes);
    }
    check_tables(vm);
    check_rest(vm);
}

/* The extra arena bytes suffice for programs with other queues: no memory is allocated or freed. */
START_TEST(weights_are_made_anew_in_the_same_memory)
{
    mgl_error err;
    mgl_vm *vm = open_filled(_i);
    mgl_cu_address arena = ((const mgl_cuda_vm *)vm)->arena;
    for (int turn = 1; turn <= TURNS; turn++) {
        ok(mgl_vm_exchange(vm, programs[(_i + turn) % 2], graph, &err), err);
        check_marks(vm);
        ok(run_vm(vm, &err), err);
        ck_assert_uint_eq(((const mgl_cuda_vm *)vm)->arena, arena);
    }
    ck_assert_int_eq(fill.calls, TURNS + 1);
    ck_assert_uint_eq(fake.moved, 0);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

START_TEST(an_arena_that_is_too_small_is_replaced)
{
    mgl_error err;
    mgl_vm *vm = open_filled(0);
    ((mgl_cuda_vm *)vm)->arena_room = 1000;
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    ck_assert_uint_gt(((const mgl_cuda_vm *)vm)->arena_room, 1000);
    check_marks(vm);
    ck_assert_int_eq(fake.allocations, 2);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

/* After any failure of `fill`, the old weights are lost. */
START_TEST(a_fill_that_fails_loses_the_program)
{
    mgl_error err;
    mgl_vm *vm = open_filled(0);
    fill.fail_at = 2;
    ck_assert_int_eq(mgl_vm_exchange(vm, programs[1], graph, &err), MGL_DEVICE);
    ck_assert_int_eq(err.code, MGL_DEVICE);
    ck_assert_str_eq(err.where, "fill");
    check_lost(vm);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

/* Rejected before anything is touched. */
START_TEST(a_rejected_program_leaves_what_was_made)
{
    mgl_error err;
    mgl_vm *vm = open_filled(0);
    mgl_program *other = program_for(graph, "sm_90a:9", &first);
    ck_assert_int_eq(mgl_vm_exchange(vm, other, graph, &err), MGL_BAD_INPUT);
    check_marks(vm);
    ck_assert_int_eq(fill.calls, 1);
    mgl_vm_close(vm);
    mgl_program_free(other);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda_exchange");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, every_byte_is_that_of_a_fresh_machine);
    tcase_add_test(tests, every_byte_of_a_checkpoint_is_the_packers);
    tcase_add_test(tests, what_the_old_program_has_not_is_packed);
    tcase_add_test(tests, the_same_program_is_copied_in_few_runs);
    tcase_add_loop_test(tests, moved_programs_are_exchanged, 0, 2);
    tcase_add_test(tests, the_kernel_stays);
    tcase_add_test(tests, another_kernel_is_rejected);
    tcase_add_test(tests, another_variant_is_rejected);
    tcase_add_test(tests, what_the_architecture_has_not_is_rejected);
    tcase_add_test(tests, more_queues_than_fit_are_rejected);
    tcase_add_test(tests, what_the_kernel_cannot_run_is_rejected);
    tcase_add_test(tests, too_little_memory_is_told_in_bytes);
    tcase_add_test(tests, every_driver_call_may_fail);
    tcase_add_test(tests, every_allocation_may_fail);
    tcase_add_test(tests, weights_that_cannot_be_read_leave_the_old);
    tcase_add_loop_test(tests, weights_are_made_anew_in_the_same_memory, 0, 2);
    tcase_add_test(tests, an_arena_that_is_too_small_is_replaced);
    tcase_add_test(tests, a_fill_that_fails_loses_the_program);
    tcase_add_test(tests, a_rejected_program_leaves_what_was_made);
    return fixture_main("cuda_exchange", tests);
}
