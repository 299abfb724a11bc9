/*
 * Tests of the host side of the CUDA machine without a GPU, with the fake driver and compiler.
 * Every call is made to fail: each failure is one clear error, and nothing leaks (sanitizers
 * check).
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/step.h"
#include "tests/scratch.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/device/record.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/encode.h"
#include "vm/cuda/machine.h"

/* ---- fixtures -------------------------------------------------------------------------------- */

static mgl_graph *graph;
static mgl_program *program;
static char folder[] = "/tmp/megalith-driver-XXXXXX";

static void setup(void)
{
    reset_fake();
    scratch_make(folder);
    setenv("MEGALITH_CACHE", folder, 1);
    mgl_cu_override(&fake_cu);
    mgl_nvrtc_override(&fake_nvrtc);
    graph = random_graph(&tiny_model, 64, true, MGL_F32, 1);
    program = program_for(
        graph, "sm_90a:4",
        &(device_options){
            .dtype = MGL_BF16, .capacity = 32, .sequences = 2, .exchange = MGL_EXCHANGE_COUNTERS});
}

static void teardown(void)
{
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_cu_override(NULL);
    mgl_nvrtc_override(NULL);
    scratch_remove(folder);
}

static mgl_status open_vm(mgl_vm **vm, mgl_error *err)
{
    mgl_vm_options options = {.kind = MGL_VM_CUDA, .unchecked = true, .deadline_ms = 700};
    *vm = NULL;
    return mgl_vm_open(program, graph, &options, vm, err);
}

static mgl_status run_vm(mgl_vm *vm, mgl_vm_report *report, mgl_error *err)
{
    static const int32_t prompt[3] = {1, 2, 3};
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 4};
    return mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, report, err);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Every call of opening and running fails once: an error each time, nothing leaks, and the next
 * attempt works. */
START_TEST(every_driver_call_may_fail)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    int failures = 0;
    for (int n = 1;; n++) {
        reset_fake();
        fake.fail_at = n;
        err.message[0] = 0;
        setenv("MEGALITH_CACHE", "/dev/null/none", 1); /* an unusable cache folder, so that the
                                                          compiler is always asked */
        mgl_status status = open_vm(&vm, &err);
        if (!status)
            status = run_vm(vm, &report, &err);
        mgl_vm_close(vm);
        nothing_is_left();
        if (fake.calls < n) {
            ck_assert_int_eq(status, MGL_OK);
            break;
        }
        ck_assert_int_eq(status, MGL_DEVICE);
        ck_assert_msg(err.message[0], "call %d failed without a message", n);
        failures++;
    }
    ck_assert_int_gt(failures, 30);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_error err;
    mgl_vm *vm;
    for (uint64_t n = 1;; n++) {
        reset_fake();
        mgl_alloc_fail_at(n, false);
        mgl_status status = open_vm(&vm, &err);
        uint64_t count = mgl_alloc_count();
        mgl_alloc_fail_at(0, false);
        mgl_vm_close(vm);
        nothing_is_left();
        if (count < n) {
            ck_assert_int_eq(status, MGL_OK);
            break;
        }
        /* the cache and the compiler's log are optional */
        ck_assert(status == MGL_NO_MEMORY || status == MGL_OK);
    }
}
END_TEST

START_TEST(too_little_memory_is_told_in_bytes)
{
    mgl_error err;
    mgl_vm *vm;
    char wanted[64];
    fake.free_bytes = 12345;
    ck_assert_int_eq(open_vm(&vm, &err), MGL_DEVICE);
    snprintf(wanted, sizeof wanted, "12345 are free");
    ck_assert_msg(strstr(err.message, wanted) && strstr(err.message, "bytes are needed"), "%s",
                  err.message);
    nothing_is_left();
}
END_TEST

START_TEST(too_few_multiprocessors_are_told)
{
    mgl_error err;
    mgl_vm *vm;
    fake.sms = 3;
    ck_assert_int_eq(open_vm(&vm, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "4 queues") && strstr(err.message, "3 blocks"), "%s",
                  err.message);
    nothing_is_left();
}
END_TEST

START_TEST(the_drivers_name_for_an_error_is_told)
{
    mgl_error err;
    mgl_vm *vm;
    fake.fail_at = 1;
    ck_assert_int_eq(open_vm(&vm, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "CUDA_ERROR_PLANTED (719)"), "%s", err.message);
}
END_TEST

START_TEST(a_kernel_is_compiled_once)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_facts facts;
    nvrtc_compiles = 0;
    for (int i = 0; i < 3; i++) {
        ok(open_vm(&vm, &err), err);
        mgl_vm_get_facts(vm, &facts);
        ck_assert_str_eq(facts.device, "Planted GPU");
        ck_assert_int_eq(facts.registers, 168);
        ck_assert_int_eq(facts.shared_bytes, (int)mgl_cuda_shared_bytes(program));
        mgl_vm_close(vm);
    }
    ck_assert_int_eq(nvrtc_compiles, 1);
}
END_TEST

/* ---- launches -------------------------------------------------------------------------------- */

/* A simulated kernel that makes two tokens and ends. */
static void two_tokens(const mgl_device_launch *launch)
{
    volatile int32_t *stream = (int32_t *)(uintptr_t)launch->stream;
    stream[0] = 8;
    stream[1] = 10;
    ((volatile int32_t *)(uintptr_t)launch->host)[MGL_HOST_SAMPLED] = 1;
    const uint32_t *counters = (const uint32_t *)(uintptr_t)launch->counters;
    for (int i = 0; i < program->counter_count * MGL_COUNTER_WORDS; i++)
        ck_assert_uint_eq(counters[i], 0);
}

static bool hear(void *user, int sequence, int32_t token)
{
    int32_t *heard = user;
    ck_assert_int_eq(sequence, 0);
    heard[++heard[0]] = token;
    return true;
}

START_TEST(tokens_are_handed_out_in_order)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    static const int32_t prompt[3] = {1, 2, 3};
    int32_t heard[8] = {0};
    float logits[64];
    fake.kernel = two_tokens;
    fake.queries = 3;
    ok(open_vm(&vm, &err), err);
    ck_assert_int_eq(mgl_vm_get_logits(vm, logits, &err), MGL_USAGE);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 4};
    mgl_vm_request request = {.sequences = &sequence, .count = 1, .on_token = hear, .user = heard};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.launches, 1);
    ck_assert_int_eq(heard[0], 2);
    ck_assert_int_eq(heard[1], 7);
    ck_assert_int_eq(heard[2], 9);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

/* The device's clock: 2 ms by the planted events. */
START_TEST(a_launch_is_timed_by_the_device)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    ok(open_vm(&vm, &err), err);
    ok(run_vm(vm, &report, &err), err);
    ck_assert_double_eq_tol(report.device_s, 0.002, 1e-9);
    mgl_vm_close(vm);
}
END_TEST

static void check_extents(const mgl_device_launch *launch)
{
    ck_assert_uint_eq(launch->sequences, (unsigned)program->limits.sequences);
    ck_assert_uint_eq(launch->capacity, (unsigned)program->limits.capacity);
    ck_assert_uint_ge(launch->pending, 1);
    ck_assert_uint_lt(launch->pending, (unsigned)program->exec.ring_pages);
}

/* Values that are not constants of the kernel. */
START_TEST(a_launch_is_told_its_extents)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    fake.kernel = check_extents;
    ok(open_vm(&vm, &err), err);
    ok(run_vm(vm, &report, &err), err);
    mgl_vm_close(vm);
}
END_TEST

/* A fill of the weights that marks the first byte of every tape. */
static mgl_status mark_tapes(void *user, const mgl_program *of, const mgl_vm_places *places,
                             mgl_error *err)
{
    int *calls = user;
    if (++*calls == 2)
        return mgl_fail(err, MGL_DEVICE, "fill", "planted by a test");
    for (int q = 0; q < of->queue_count; q++) {
        unsigned char *tape = (unsigned char *)(uintptr_t)places->tapes[q];
        ck_assert_int_eq(tape[0], 0);
        tape[0] = (unsigned char)(q + 1);
    }
    return MGL_OK;
}

static void check_marks(const mgl_device_launch *launch)
{
    const mgl_device_queue *queues = (const mgl_device_queue *)(uintptr_t)launch->queues;
    for (int q = 0; q < program->queue_count; q++) {
        const unsigned char *tape = (const unsigned char *)(uintptr_t)queues[q].tape;
        ck_assert_int_eq(tape[0], q + 1);
        ck_assert_int_eq(tape[1], 0);
    }
}

static mgl_weights *uploaded; /* weights that every tape must equal */

static void check_tapes(const mgl_device_launch *launch)
{
    const mgl_device_queue *queues = (const mgl_device_queue *)(uintptr_t)launch->queues;
    for (int q = 0; q < program->queue_count; q++) {
        size_t bytes = uploaded->sizes[q];
        char *wanted = mgl_alloc(bytes + 1);
        ck_assert_int_eq(mgl_weights_write(uploaded, q, wanted, NULL, NULL), MGL_OK);
        ck_assert_mem_eq((const char *)(uintptr_t)queues[q].tape, wanted, bytes);
        mgl_free(wanted);
    }
    two_tokens(launch);
}

/* From the graph, and from prepared pieces. */
START_TEST(every_byte_of_the_weights_is_uploaded)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    ok(mgl_weights_pack(program, graph, &uploaded, &err), err);
    mgl_vm_options options = {
        .kind = MGL_VM_CUDA, .unchecked = true, .weights = _i ? uploaded : NULL};
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    fake.kernel = check_tapes;
    ok(run_vm(vm, &report, &err), err);
    mgl_vm_close(vm);
    mgl_weights_close(uploaded);
    nothing_is_left();
}
END_TEST

/* Compiler and copies wait for each other: both must run at once, or the test times out. */
START_TEST(the_kernel_is_compiled_beside_the_weights)
{
    mgl_error err;
    mgl_vm *vm;
    nvrtc_compiles = 0;
    fake.meet = true;
    ok(open_vm(&vm, &err), err);
    mgl_vm_close(vm);
    nothing_is_left();
}
END_TEST

static mgl_status (*make_piece)(const mgl_weights *weights, size_t piece, void *to, mgl_error *err);
static size_t damaged_piece;

static mgl_status make_damaged(const mgl_weights *weights, size_t piece, void *to, mgl_error *err)
{
    return piece == damaged_piece ? mgl_fail(err, MGL_BAD_INPUT, "piece", "planted by a test")
                                  : make_piece(weights, piece, to, err);
}

/* The first, a middle and the last piece fails: no machine is opened. */
START_TEST(a_damaged_piece_is_rejected)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_weights *weights;
    ok(mgl_weights_pack(program, graph, &weights, &err), err);
    make_piece = weights->make;
    damaged_piece = (size_t)_i * (weights->count - 1) / 2;
    weights->make = make_damaged;
    mgl_vm_options options = {.kind = MGL_VM_CUDA, .unchecked = true, .weights = weights};
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "piece");
    mgl_weights_close(weights);
    nothing_is_left();
}
END_TEST

START_TEST(a_kernel_that_fits_is_not_compiled)
{
    mgl_error err;
    mgl_vm *vm;
    char key[MGL_SHA256_HEX];
    mgl_cuda_kernel_key(program, "sm_90a", 0, key);
    mgl_vm_kernel kernels[2] = {{"sm_80", key, "other code", 10},
                                {"sm_90a", key, "machine code", 12}};
    mgl_vm_options options = {
        .kind = MGL_VM_CUDA, .unchecked = true, .kernels = kernels, .kernel_count = 2};
    nvrtc_compiles = 0;
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    mgl_vm_close(vm);
    ck_assert_int_eq(nvrtc_compiles, 0);
    key[0] = key[0] == 'f' ? '0' : 'f'; /* key of other sources */
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    mgl_vm_close(vm);
    ck_assert_int_eq(nvrtc_compiles, 1);
}
END_TEST

/* Weights made on the device: nothing is packed, and an error there is an error of opening. */
START_TEST(weights_may_be_made_in_place)
{
    mgl_error err;
    mgl_vm *vm = NULL;
    mgl_vm_report report;
    int calls = 0;
    mgl_vm_options options = {
        .kind = MGL_VM_CUDA, .unchecked = true, .fill = mark_tapes, .fill_user = &calls};
    fake.kernel = check_marks;
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    ok(run_vm(vm, &report, &err), err);
    mgl_vm_close(vm);
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_DEVICE);
    ck_assert_str_eq(err.where, "fill");
    nothing_is_left();
}
END_TEST

/* Leaves counter values like a real launch, and runs for a while. */
static void dirty_counters(const mgl_device_launch *launch)
{
    uint32_t *counters = (uint32_t *)(uintptr_t)launch->counters;
    two_tokens(launch);
    for (int i = 0; i < program->counter_count * MGL_COUNTER_WORDS; i++)
        counters[i] = 7;
    fake.queries = 3;
}

START_TEST(every_launch_starts_from_zero)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    fake.kernel = dirty_counters;
    ok(open_vm(&vm, &err), err);
    for (int i = 0; i < 3; i++) {
        ok(run_vm(vm, &report, &err), err);
        ck_assert_int_eq(((int32_t *)(uintptr_t)fake.launch.host)[MGL_HOST_ABORT], 0);
        ck_assert_uint_eq(fake.launch.deadline_ns, 700 * 1000000ull);
    }
    mgl_vm_close(vm);
}
END_TEST

static bool hear_no_more(void *user, int sequence, int32_t token)
{
    (void)sequence, (void)token;
    return ++*(int *)user < 1;
}

/* Each form of cancelling sets the kernel's abort word, and no more tokens are delivered. */
START_TEST(the_kernel_is_told_to_end)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    static const int32_t prompt[3] = {1, 2, 3};
    static const atomic_int abort_now = 1;
    int heard = 0;
    fake.kernel = dirty_counters;
    ok(open_vm(&vm, &err), err);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = 4};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    request.on_token = hear_no_more;
    request.user = &heard;
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(heard, 1);
    ck_assert_int_eq(((int32_t *)(uintptr_t)fake.launch.host)[MGL_HOST_ABORT], 1);
    ok(run_vm(vm, &report, &err), err);
    ck_assert_int_eq(((int32_t *)(uintptr_t)fake.launch.host)[MGL_HOST_ABORT], 0);
    request.on_token = NULL;
    request.abort = &abort_now;
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(((int32_t *)(uintptr_t)fake.launch.host)[MGL_HOST_ABORT], 1);
    mgl_vm_close(vm);
}
END_TEST

/* The first task of a queue that waits for the counter. */
static int waiting_task(int queue, int counter)
{
    const mgl_queue *q = &program->queues[queue];
    for (int t = q->tasks.first; t < q->tasks.first + q->tasks.count; t++)
        for (int w = 0; w < program->tasks[t].waits.count; w++)
            if (program->waits[program->tasks[t].waits.first + w].counter == counter)
                return t;
    return -1;
}

static int counter_of(const char *name)
{
    for (int c = 0; c < program->counter_count; c++)
        if (!strcmp(program->counters[c].name, name))
            return c;
    return -1;
}

static void report_wait(const mgl_device_launch *launch, int queue, const char *counter)
{
    int32_t *report = (int32_t *)(uintptr_t)launch->reports + queue * MGL_REPORT_WORDS;
    report[MGL_REPORT_COUNTER] = counter_of(counter);
    report[MGL_REPORT_TASK] = waiting_task(queue, counter_of(counter));
    report[MGL_REPORT_WANTED] = 4;
    report[MGL_REPORT_SEEN] = 3;
    report[MGL_REPORT_EPOCH] = 0;
    report[MGL_REPORT_KIND] = MGL_REPORT_WAIT;
}

/* Queue 3 waits for a counter whose signaling tasks have all ended; the others wait for later
 * tasks. */
static void one_to_blame(const mgl_device_launch *launch)
{
    for (int q = 0; q < program->queue_count; q++)
        report_wait(launch, q, q == 3 ? "l0.o" : "l0.gate_up");
    ((int32_t *)(uintptr_t)launch->host)[MGL_HOST_EXPIRED] = 1;
}

START_TEST(the_watchdog_names_the_wait_to_blame)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    fake.kernel = one_to_blame;
    ok(open_vm(&vm, &err), err);
    ck_assert_int_eq(run_vm(vm, &report, &err), MGL_WATCHDOG);
    ck_assert_msg(strstr(err.message, "queue 3") && strstr(err.message, "counter l0.o:") &&
                      strstr(err.message, "expected 4, found 3") &&
                      strstr(err.message, "norm_swiglu"),
                  "%s", err.message);
    fake.kernel = two_tokens;
    ok(run_vm(vm, &report, &err), err);
    mgl_vm_close(vm);
}
END_TEST

/* Queue 2 has a task whose op the kernel lacks; queue 0 waits for its ring. */
static void one_unknown(const mgl_device_launch *launch)
{
    int32_t *reports = (int32_t *)(uintptr_t)launch->reports;
    reports[MGL_REPORT_KIND] = MGL_REPORT_RING;
    reports += 2 * MGL_REPORT_WORDS;
    reports[MGL_REPORT_TASK] = program->queues[2].tasks.first + 1;
    reports[MGL_REPORT_COUNTER] = 77;
    reports[MGL_REPORT_KIND] = MGL_REPORT_OP;
    ((int32_t *)(uintptr_t)launch->host)[MGL_HOST_EXPIRED] = 1;
}

START_TEST(an_op_missing_in_the_kernel_is_named)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    fake.kernel = one_unknown;
    ok(open_vm(&vm, &err), err);
    ck_assert_int_eq(run_vm(vm, &report, &err), MGL_WATCHDOG);
    ck_assert_msg(strstr(err.message, "it has no op 77, which queue 2 was to run"), "%s",
                  err.message);
    mgl_vm_close(vm);
}
END_TEST

static void one_unknown_variant(const mgl_device_launch *launch)
{
    int32_t *reports = (int32_t *)(uintptr_t)launch->reports;
    one_unknown(launch);
    reports[2 * MGL_REPORT_WORDS + MGL_REPORT_KIND] = MGL_REPORT_VARIANT;
}

START_TEST(a_variant_missing_in_the_kernel_is_named)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_report report;
    fake.kernel = one_unknown_variant;
    ok(open_vm(&vm, &err), err);
    ck_assert_int_eq(run_vm(vm, &report, &err), MGL_WATCHDOG);
    ck_assert_msg(strstr(err.message, "it has no variant 77, which queue 2 was to run"), "%s",
                  err.message);
    mgl_vm_close(vm);
}
END_TEST

/* ---- encoding -------------------------------------------------------------------------------- */

/* Records of a queue form a ring, fit in shared memory, and contain the task's data. */
START_TEST(records_are_the_tasks)
{
    mgl_error err;
    mgl_cuda_tables tables;
    uint64_t buffers[256] = {0}, tapes[4] = {1, 2, 3, 4};
    ck_assert_int_lt(program->buffer_count, 256);
    for (int i = 0; i < program->buffer_count; i++)
        buffers[i] = (uint64_t)(i + 1) << 32;
    ok(mgl_cuda_check_program(program, &err), err);
    ok(mgl_cuda_encode(program, &(mgl_cuda_addresses){buffers, tapes, false}, &tables, &err), err);
    for (int q = 0; q < program->queue_count; q++) {
        const mgl_device_queue *queue = &tables.queues[q];
        unsigned at = queue->first, bytes = queue->first_bytes;
        ck_assert_uint_eq(queue->tape, (uint64_t)q + 1);
        for (unsigned i = 0; i < queue->tasks; i++) {
            int index = program->queues[q].tasks.first + (int)i;
            const mgl_task *task = &program->tasks[index];
            const mgl_record *record = (const mgl_record *)(tables.records + at);
            const mgl_device_operand *first = (const mgl_device_operand *)(record + 1);
            ck_assert_uint_le(bytes, MGL_RECORD_BYTES);
            ck_assert_uint_eq(bytes % 16, 0);
            ck_assert_int_eq(record->op, (int)task->op);
            ck_assert_int_eq(record->task, index);
            ck_assert_int_eq(record->segments, task->segments.count);
            ck_assert_int_eq(record->waits, task->waits.count);
            ck_assert_int_eq(record->signals, task->signals.count);
            if (task->in.count > 0)
                ck_assert_uint_eq(first->at >> 32,
                                  (uint64_t)program->regions[task->in.first].buffer + 1);
            at = record->next;
            bytes = record->next_bytes;
        }
        ck_assert_uint_eq(at, queue->first);
    }
    mgl_cuda_tables_clear(&tables);
}
END_TEST

START_TEST(what_the_machine_has_not_is_rejected)
{
    mgl_error err;
    program->regions[0].flag = true;
    ck_assert_int_eq(mgl_cuda_check_program(program, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "flag"), "%s", err.message);
    program->regions[0].flag = false;
    program->exec.warps = 17;
    ck_assert_int_eq(mgl_cuda_check_program(program, &err), MGL_BAD_INPUT);
    program->exec.warps = 8;
    ok(mgl_cuda_check_program(program, &err), err);
    program->segments[0].col_hi--;
    ck_assert_int_eq(mgl_cuda_check_program(program, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "columns"), "%s", err.message);
}
END_TEST

/* ---- detection ------------------------------------------------------------------------------- */

START_TEST(the_probe_tells_what_there_is)
{
    mgl_error err;
    mgl_target target;
    mgl_cuda_probe *probe = mgl_alloc(sizeof *probe);
    mgl_cuda_get_probe(probe);
    ck_assert(probe->driver && probe->nvrtc && probe->cache);
    ck_assert_int_eq(probe->driver_version, 13000);
    ck_assert_int_eq(probe->device_count, 1);
    ck_assert_str_eq(probe->devices[0].arch, "sm_90a");
    ck_assert_str_eq(probe->cache_path, folder);
    ok(mgl_cuda_live_target(0, &target, &err), err);
    ck_assert_str_eq(target.arch, "sm_90a");
    ck_assert_int_eq(target.queues, 8);
    ck_assert_int_eq(target.shared_bytes, 232448);
    ck_assert_int_eq(mgl_cuda_live_target(1, &target, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "device 1"), "%s", err.message);
    fake.calls = 0;
    fake.fail_at = 1;
    mgl_cuda_get_probe(probe);
    ck_assert(!probe->driver && probe->driver_reason[0]);
    mgl_free(probe);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda_driver");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, every_driver_call_may_fail);
    tcase_add_test(tests, every_allocation_may_fail);
    tcase_add_test(tests, too_little_memory_is_told_in_bytes);
    tcase_add_test(tests, too_few_multiprocessors_are_told);
    tcase_add_test(tests, the_drivers_name_for_an_error_is_told);
    tcase_add_test(tests, a_kernel_is_compiled_once);
    tcase_add_test(tests, tokens_are_handed_out_in_order);
    tcase_add_test(tests, a_launch_is_timed_by_the_device);
    tcase_add_test(tests, a_launch_is_told_its_extents);
    tcase_add_loop_test(tests, every_byte_of_the_weights_is_uploaded, 0, 2);
    tcase_add_test(tests, the_kernel_is_compiled_beside_the_weights);
    tcase_add_loop_test(tests, a_damaged_piece_is_rejected, 0, 3);
    tcase_add_test(tests, a_kernel_that_fits_is_not_compiled);
    tcase_add_test(tests, weights_may_be_made_in_place);
    tcase_add_test(tests, every_launch_starts_from_zero);
    tcase_add_test(tests, the_kernel_is_told_to_end);
    tcase_add_test(tests, the_watchdog_names_the_wait_to_blame);
    tcase_add_test(tests, an_op_missing_in_the_kernel_is_named);
    tcase_add_test(tests, a_variant_missing_in_the_kernel_is_named);
    tcase_add_test(tests, records_are_the_tasks);
    tcase_add_test(tests, what_the_machine_has_not_is_rejected);
    tcase_add_test(tests, the_probe_tells_what_there_is);
    return fixture_main("cuda_driver", tests);
}
