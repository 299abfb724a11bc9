/*
 * Tests of exchanging the program of an open CPU machine (mgl_vm_exchange): every byte of tapes and
 * tables equals the packer's, replies equal those of a machine opened with the program bit by bit,
 * and a rejection or failure leaves the machine unchanged.
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/machine_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "vm/image.h"

enum { CAPACITY = 64, TURNS = 20, TOKENS = 12 };

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Options of lowering of the two programs of a pair. */
static const struct pair {
    const mgl_geometry *geometry;
    const char *targets[2];
    device_options options[2];
    bool tied, plain;
    bool packed; /* the bytes must come from the graph */
} pairs[] = {
    {&small_model, {"cpu:4", "cpu:3"}, {{.dtype = MGL_F32}, {.dtype = MGL_F32}}, true, false, 0},
    {&small_model, {"cpu:1", "cpu:7"}, {{.dtype = MGL_F32}, {.dtype = MGL_F32}}, true, true, 0},
    {&odd_model, {"cpu:5", "cpu:6"}, {{.dtype = MGL_BF16}, {.dtype = MGL_BF16}}, false, false, 0},
    {&odd_model,
     {"cpu:16", "cpu:16"},
     {{.dtype = MGL_F32, .splits = 2}, {.dtype = MGL_F32, .page_bytes = 4096}},
     true,
     false,
     0},
    {&odd_model,
     {"sm_90a:5", "sm_90a:9"},
     {{.dtype = MGL_BF16}, {.dtype = MGL_BF16, .splits = 3}},
     false,
     false,
     0},
    {&tiny_model,
     {"cpu:2", "cpu:3"},
     {{.dtype = MGL_F16, .exchange = MGL_EXCHANGE_COUNTERS},
      {.dtype = MGL_F16, .exchange = MGL_EXCHANGE_FLAGS}},
     false,
     false,
     0},
    {&odd_model,
     {"sm_90a:3", "sm_90a:2"},
     {{.dtype = MGL_F32, .warps = 8}, {.dtype = MGL_F32, .warps = 3}},
     false,
     false,
     true},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static mgl_program *program_of(const mgl_graph *graph, const struct pair *pair, int i)
{
    device_options options = pair->options[i];
    options.capacity = CAPACITY;
    return program_for(graph, pair->targets[i], &options);
}

START_TEST(every_byte_is_the_packers)
{
    const struct pair *pair = &pairs[_i];
    mgl_graph *graph = random_graph(pair->geometry, CAPACITY, pair->tied, MGL_BF16, 7);
    mgl_program *programs[2] = {program_of(graph, pair, 0), program_of(graph, pair, 1)};
    ck_assert(!mgl_program_equal(programs[0], programs[1]));
    check_exchanged_bytes(graph, programs[0], programs[1], pair->plain, !pair->packed);
    mgl_program_free(programs[0]);
    mgl_program_free(programs[1]);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(every_byte_of_a_checkpoint_is_the_packers)
{
    golden_model m;
    golden_open(&m, "tales-5m");
    device_options options = {.dtype = MGL_BF16, .capacity = 256};
    mgl_program *from = program_for(m.checkpoint->graph, "sm_90a:132", &options);
    mgl_program *to = program_for(m.checkpoint->graph, "sm_90a:97", &options);
    check_exchanged_bytes(m.checkpoint->graph, from, to, false, true);
    mgl_program_free(from);
    mgl_program_free(to);
    golden_close(&m);
}
END_TEST

/* ---- replies --------------------------------------------------------------------------------- */

static mgl_graph *graph;
static mgl_program *programs[2];

static void setup(void)
{
    graph = random_graph(&odd_model, CAPACITY, true, MGL_BF16, 3);
    programs[0] = program_for(
        graph, "cpu:4", &(device_options){.dtype = MGL_BF16, .capacity = CAPACITY, .splits = 2});
    programs[1] =
        program_for(graph, "cpu:3", &(device_options){.dtype = MGL_BF16, .capacity = CAPACITY});
}

static void teardown(void)
{
    mgl_program_free(programs[0]);
    mgl_program_free(programs[1]);
    mgl_graph_free(graph);
}

typedef struct reply {
    int32_t tokens[TOKENS];
    float logits[1213];
} reply;

/* A reply from position `start` on, before which the cache may be empty. */
static reply reply_of(mgl_vm *vm, int start)
{
    static const int32_t prompt[5] = {5, 700, 31, 900, 2};
    mgl_error err;
    mgl_vm_report report;
    reply r;
    mgl_vm_sequence sequence = {
        .prompt = prompt, .prompt_count = 5, .start = start, .max_new = TOKENS};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.produced[0], TOKENS);
    memcpy(r.tokens, report.output[0], sizeof r.tokens);
    ok(mgl_vm_get_logits(vm, r.logits, &err), err);
    return r;
}

static void check_reply(mgl_vm *vm, int start, const reply *wanted)
{
    reply r = reply_of(vm, start);
    ck_assert_mem_eq(r.tokens, wanted->tokens, sizeof r.tokens);
    ck_assert_mem_eq(r.logits, wanted->logits, sizeof r.logits);
}

/* The reply of a machine opened for the program. */
static reply fresh_reply(int program, int start)
{
    mgl_vm *vm = fixture_vm(programs[program], graph, false);
    reply r = reply_of(vm, start);
    mgl_vm_close(vm);
    return r;
}

START_TEST(replies_are_those_of_a_fresh_machine)
{
    mgl_error err;
    reply wanted[2] = {fresh_reply(0, 0), fresh_reply(1, 0)};
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    for (int turn = 1; turn <= TURNS; turn++) {
        ok(mgl_vm_exchange(vm, programs[turn % 2], graph, &err), err);
        check_reply(vm, 0, &wanted[turn % 2]);
    }
    mgl_vm_close(vm);
}
END_TEST

/* Positions that the earlier program wrote are gone. */
START_TEST(the_cache_is_empty)
{
    mgl_error err;
    reply wanted = fresh_reply(1, 9);
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    reply_of(vm, 0);
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    check_reply(vm, 9, &wanted);
    mgl_vm_close(vm);
}
END_TEST

START_TEST(logits_of_the_old_program_are_gone)
{
    mgl_error err;
    float logits[1213];
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    reply_of(vm, 0);
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    ck_assert_int_eq(mgl_vm_get_logits(vm, logits, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_vm_get_row_logits(vm, 0, logits, &err), MGL_USAGE);
    mgl_vm_close(vm);
}
END_TEST

/* Guards and poison cover the new program's memory. */
START_TEST(poison_changes_nothing)
{
    mgl_error err;
    reply wanted = fresh_reply(1, 0);
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    ok(mgl_vm_poison(vm, 0x7FA00000, 0, &err), err);
    check_reply(vm, 0, &wanted);
    ok(mgl_vm_check_guards(vm, &err), err);
    mgl_vm_close(vm);
}
END_TEST

START_TEST(the_old_program_may_be_released)
{
    mgl_error err;
    reply wanted = fresh_reply(1, 0);
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    mgl_program_free(programs[0]);
    programs[0] = NULL;
    check_reply(vm, 0, &wanted);
    mgl_vm_close(vm);
}
END_TEST

/* ---- rejections and failures ----------------------------------------------------------------- */

/* `program` is rejected with that status and word; the machine gives the same reply as before. */
static void check_refused(const mgl_program *program, mgl_status status, const char *word)
{
    mgl_error err = {0};
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    reply before = reply_of(vm, 0);
    ck_assert_int_eq(mgl_vm_exchange(vm, program, graph, &err), status);
    ck_assert_msg(strstr(err.message, word), "%s: %s", err.where, err.message);
    check_reply(vm, 0, &before);
    mgl_vm_close(vm);
}

static const struct other {
    const char *target, *word;
    device_options options;
} others[] = {
    {"cpu:4", "limits", {.dtype = MGL_BF16, .capacity = CAPACITY / 2}},
    {"cpu:4", "limits", {.dtype = MGL_BF16, .capacity = CAPACITY, .rows = 3}},
    {"cpu:4", "formats", {.dtype = MGL_F16, .capacity = CAPACITY}},
    {"sm_90a:4", "architecture", {.dtype = MGL_BF16, .capacity = CAPACITY}},
};
enum { OTHERS = sizeof others / sizeof *others };

START_TEST(another_kind_of_program_is_rejected)
{
    mgl_program *other = program_for(graph, others[_i].target, &others[_i].options);
    check_refused(other, MGL_BAD_INPUT, others[_i].word);
    mgl_program_free(other);
}
END_TEST

START_TEST(another_models_program_is_rejected)
{
    mgl_graph *model = random_graph(&small_model, CAPACITY, true, MGL_BF16, 3);
    mgl_program *other = fixture_program(model, &(fixture_options){.dtype = MGL_BF16});
    check_refused(other, MGL_REJECTED, "MG7");
    mgl_program_free(other);
    mgl_graph_free(model);
}
END_TEST

START_TEST(an_unsafe_program_is_rejected)
{
    for (int i = 0; i < programs[1]->wait_count; i++)
        programs[1]->waits[i].threshold = 0;
    check_refused(programs[1], MGL_REJECTED, "MG");
}
END_TEST

/* Each allocation of an exchange fails once: the machine is unchanged. */
START_TEST(every_allocation_may_fail)
{
    mgl_error err;
    mgl_vm *vm = fixture_vm(programs[0], graph, false);
    reply before = reply_of(vm, 0);
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        mgl_alloc_fail_at(n, false);
        mgl_status status = mgl_vm_exchange(vm, programs[1], graph, &err);
        mgl_alloc_fail_at(0, false);
        if (!status)
            break;
        ck_assert_int_eq(status, MGL_NO_MEMORY);
        failures++;
        if (n % 16 == 0)
            check_reply(vm, 0, &before);
    }
    ck_assert_int_gt(failures, 20);
    mgl_vm_close(vm);
}
END_TEST

/* Another number of warps gives another order of the tapes: nothing can be copied, and a graph
 * without weights cannot provide them. */
START_TEST(weights_that_cannot_be_read_leave_the_old)
{
    mgl_error err;
    mgl_program *pair[2];
    for (int i = 0; i < 2; i++)
        pair[i] = program_for(
            graph, "sm_90a:4",
            &(device_options){.dtype = MGL_BF16, .capacity = CAPACITY, .warps = 8 - 5 * i});
    mgl_vm *vm = fixture_vm(pair[0], graph, false);
    reply before = reply_of(vm, 0);
    mgl_tensor_read_fn *read = graph->read;
    graph->read = NULL;
    ck_assert_int_eq(mgl_vm_exchange(vm, pair[1], graph, &err), MGL_USAGE);
    graph->read = read;
    check_reply(vm, 0, &before);
    mgl_vm_close(vm);
    mgl_program_free(pair[0]);
    mgl_program_free(pair[1]);
}
END_TEST

/* ---- compiled models ------------------------------------------------------------------------- */

static char path[64];

static mgl_image *open_image(void)
{
    mgl_error err;
    mgl_image *image;
    uint64_t bytes;
    mgl_image_content content = {.program = programs[0], .graph = graph};
    snprintf(path, sizeof path, "/tmp/megalith-exchange-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    ok(mgl_image_write(path, &content, &bytes, &err), err);
    ok(mgl_image_open(path, &image, &err), err);
    return image;
}

static mgl_vm *open_mapped(const mgl_image *image)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options options = {.kind = MGL_VM_CPU, .weights = image->weights};
    ok(mgl_vm_open(image->program, graph, &options, &vm, &err), err);
    return vm;
}

/* The mapped weights are copied, and the map may be released then. */
START_TEST(mapped_weights_are_copied)
{
    mgl_error err;
    mgl_image *image = open_image();
    mgl_vm *vm = open_mapped(image);
    reply wanted = fresh_reply(1, 0);
    mgl_tensor_read_fn *read = graph->read;
    graph->read = NULL;
    ok(mgl_vm_exchange(vm, programs[1], graph, &err), err);
    graph->read = read;
    mgl_image_close(image);
    unlink(path);
    check_reply(vm, 0, &wanted);
    mgl_vm_close(vm);
}
END_TEST

/* A truncated file is an error, not a crash. */
START_TEST(a_map_that_shrank_is_rejected)
{
    mgl_error err;
    mgl_image *image = open_image();
    mgl_vm *vm = open_mapped(image);
    ck_assert_int_eq(truncate(path, 8192), 0);
    ck_assert_int_eq(mgl_vm_exchange(vm, programs[1], graph, &err), MGL_BAD_INPUT);
    mgl_vm_close(vm);
    mgl_image_close(image);
    unlink(path);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("vm_exchange");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, every_byte_is_the_packers, 0, PAIRS);
    tcase_add_test(tests, every_byte_of_a_checkpoint_is_the_packers);
    tcase_add_test(tests, replies_are_those_of_a_fresh_machine);
    tcase_add_test(tests, the_cache_is_empty);
    tcase_add_test(tests, logits_of_the_old_program_are_gone);
    tcase_add_test(tests, poison_changes_nothing);
    tcase_add_test(tests, the_old_program_may_be_released);
    tcase_add_loop_test(tests, another_kind_of_program_is_rejected, 0, OTHERS);
    tcase_add_test(tests, another_models_program_is_rejected);
    tcase_add_test(tests, an_unsafe_program_is_rejected);
    tcase_add_test(tests, every_allocation_may_fail);
    tcase_add_test(tests, weights_that_cannot_be_read_leave_the_old);
    tcase_add_test(tests, mapped_weights_are_copied);
    tcase_add_test(tests, a_map_that_shrank_is_rejected);
    return fixture_main("vm_exchange", tests);
}
