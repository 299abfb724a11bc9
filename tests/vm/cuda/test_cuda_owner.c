/*
 * Tests of machines that use the weights and the cache of another machine (`owner` of
 * mgl_vm_options), with the fake driver: what is shared has one address, nothing is uploaded twice,
 * each call can fail, and pairs that do not fit are rejected.
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/fake_driver.h"

#include <stdlib.h>
#include <string.h>

#include "tests/scratch.h"
#include "validator/validator.h"
#include "vm/cuda/machine.h"

enum { CAPACITY = 64 };

static mgl_graph *graph;
static mgl_program *one_list, *two_lists, *other_queues;
static char folder[] = "/tmp/megalith-owner-XXXXXX";

static mgl_program *lowered(const char *target, int second_rows)
{
    const device_options options = {
        .dtype = MGL_BF16, .capacity = CAPACITY, .rows = 1, .second_rows = second_rows};
    return program_for(graph, target, &options);
}

static void setup(void)
{
    reset_fake();
    scratch_make(folder);
    setenv("MEGALITH_CACHE", folder, 1);
    mgl_cu_override(&fake_cu);
    mgl_nvrtc_override(&fake_nvrtc);
    graph = random_graph(&odd_model, CAPACITY, true, MGL_F32, 1);
    one_list = lowered("sm_90a:5", 0);
    two_lists = lowered("sm_90a:5", 16);
    other_queues = lowered("sm_90a:4", 16);
}

static void teardown(void)
{
    mgl_program_free(one_list);
    mgl_program_free(two_lists);
    mgl_program_free(other_queues);
    mgl_graph_free(graph);
    mgl_cu_override(NULL);
    mgl_nvrtc_override(NULL);
    scratch_remove(folder);
}

static mgl_status open_vm(const mgl_program *program, mgl_vm *owner, mgl_vm **out, mgl_error *err)
{
    const mgl_vm_options options = {.kind = MGL_VM_CUDA, .owner = owner};
    *err = (mgl_error){0};
    return mgl_vm_open(program, graph, &options, out, err);
}

static mgl_vm *open_ok(const mgl_program *program, mgl_vm *owner)
{
    mgl_error err;
    mgl_vm *vm;
    ok(open_vm(program, owner, &vm, &err), err);
    return vm;
}

static mgl_status run_vm(mgl_vm *vm, mgl_error *err)
{
    static const int32_t prompt[3] = {1, 2, 3};
    mgl_vm_report report;
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 4};
    return mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, err);
}

static int find_buffer(const mgl_program *program, const char *name)
{
    for (int i = 0; i < program->buffer_count; i++)
        if (!strcmp(program->buffers[i].name, name))
            return i;
    return -1;
}

START_TEST(what_is_shared_has_one_address)
{
    mgl_error err;
    mgl_vm *owner = open_ok(one_list, NULL);
    const int copies = fake.copies;
    mgl_vm *vm = open_ok(two_lists, owner);
    const mgl_cuda_vm *a = (const mgl_cuda_vm *)owner, *b = (const mgl_cuda_vm *)vm;
    int shared = 0, own = 0;
    for (int q = 0; q < one_list->queue_count; q++)
        ck_assert_uint_eq(a->tapes[q], b->tapes[q]);
    for (int i = 0; i < b->whole->buffer_count; i++) {
        const mgl_buffer *buffer = &b->whole->buffers[i];
        const bool is_shared = mgl_validator_is_shared(buffer);
        const bool inside = b->buffers[i] >= b->arena && b->buffers[i] < b->arena + b->arena_bytes;
        ck_assert_int_eq(inside, !is_shared);
        if (is_shared)
            ck_assert_uint_eq(b->buffers[i], a->buffers[find_buffer(a->whole, buffer->name)]);
        shared += is_shared;
        own += !is_shared;
    }
    ck_assert_int_gt(shared, 0);
    ck_assert_int_gt(own, 0);
    ck_assert_int_eq(fake.copies, copies);
    ok(run_vm(vm, &err), err);
    ok(run_vm(owner, &err), err);
    mgl_vm_close(vm);
    ok(run_vm(owner, &err), err);
    mgl_vm_close(owner);
    nothing_is_left();
}
END_TEST

START_TEST(machines_that_share_keep_their_programs)
{
    mgl_error err;
    mgl_vm *owner = open_ok(one_list, NULL), *vm = open_ok(two_lists, owner);
    ck_assert_int_eq(mgl_vm_exchange(owner, one_list, graph, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_vm_exchange(vm, two_lists, graph, &err), MGL_USAGE);
    ok(run_vm(vm, &err), err);
    mgl_vm_close(vm);
    ok(mgl_vm_exchange(owner, one_list, graph, &err), err);
    mgl_vm_close(owner);
}
END_TEST

START_TEST(pairs_that_do_not_fit_are_rejected)
{
    mgl_error err;
    mgl_vm *vm, *owner = open_ok(one_list, NULL);
    ck_assert_int_eq(open_vm(other_queues, owner, &vm, &err), MGL_REJECTED);
    ck_assert_ptr_null(vm);
    ck_assert_msg(strstr(err.message, "MG606"), "%s", err.message);
    ok(run_vm(owner, &err), err);
    mgl_vm_close(owner);
    nothing_is_left();
}
END_TEST

static mgl_status no_fill(void *user, const mgl_program *program, const mgl_vm_places *places,
                          mgl_error *err)
{
    (void)user, (void)program, (void)places, (void)err;
    return MGL_OK;
}

START_TEST(wrong_owners_are_rejected)
{
    mgl_error err;
    mgl_vm *owner = open_ok(one_list, NULL), *vm = open_ok(two_lists, owner), *third;
    ck_assert_int_eq(open_vm(two_lists, vm, &third, &err), MGL_USAGE);
    const mgl_vm_options filled = {.kind = MGL_VM_CUDA, .owner = owner, .fill = no_fill};
    ck_assert_int_eq(mgl_vm_open(two_lists, graph, &filled, &third, &err), MGL_USAGE);
    const mgl_vm_options on_cpu = {.kind = MGL_VM_CPU, .owner = owner};
    ck_assert_int_eq(mgl_vm_open(two_lists, graph, &on_cpu, &third, &err), MGL_USAGE);
    mgl_vm_close(vm);
    mgl_vm_close(owner);
}
END_TEST

/* After each failure of the driver, nothing of the second machine is left, and the owner works. */
START_TEST(every_call_can_fail)
{
    mgl_error err;
    mgl_vm *vm = NULL, *owner = open_ok(one_list, NULL);
    int failures = 0;
    for (int at = 1; !vm; at++) {
        fake.calls = 0;
        fake.fail_at = at;
        fake.failure = 1;
        const mgl_status status = open_vm(two_lists, owner, &vm, &err);
        fake.fail_at = 0;
        ck_assert(status == MGL_OK || status == MGL_DEVICE);
        failures += status != MGL_OK;
        ck_assert_int_eq(owner->users, status == MGL_OK);
    }
    ck_assert_int_gt(failures, 5);
    ok(run_vm(owner, &err), err);
    mgl_vm_close(vm);
    mgl_vm_close(owner);
    nothing_is_left();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda_owner");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_shared_has_one_address);
    tcase_add_test(tests, machines_that_share_keep_their_programs);
    tcase_add_test(tests, pairs_that_do_not_fit_are_rejected);
    tcase_add_test(tests, wrong_owners_are_rejected);
    tcase_add_test(tests, every_call_can_fail);
    return fixture_main("cuda_owner", tests);
}
