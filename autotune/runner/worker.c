/*
 * The worker process: executes candidates, computes references or compiles kernels for a runner. It
 * reads requests from a socket one after the other, and answers each. protocol.h describes the
 * requests.
 *
 * A worker owns a paired benchmark (eval/paired_bench.h): a device context with the incumbent, the
 * candidate and their kernels. If the runner ends, the worker ends too: by PR_SET_PDEATHSIG of the
 * thread that started it, or by the closed socket.
 */
#include "autotune/runner/protocol.h"
#include "autotune/runner/runner.h"
#include "autotune/runner/sandbox.h"
#include "autotune/runner/worker_fault.h"
#include "autotune/runner/worker_kernel.h"
#include "autotune/runner/worker_real.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "eval/statistics.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct worker {
    mgl_wire wire;
    mgl_worker_role role;
    mgl_config config;
    mgl_paired_bench *paired_bench; /* NULL in a compiler */
    bool gpu;                       /* the device is a GPU */
    mgl_wire_sandbox sandbox;
    bool confined;   /* the sandbox was entered */
    bool under_tool; /* a tool started the process, instead of the runner */
    mgl_worker_fault fault;
    mgl_worker_real real;
    char device[sizeof((mgl_wire_hello *)0)->device + 1]; /* "cuda:1" */
};

/* The current request. */
struct request {
    const char *bytes; /* (length) after its head, followed by a 0 byte */
    size_t length;
    mgl_text reply; /* bytes after the reply's head */
};

static void put(struct request *r, const void *bytes, size_t length)
{
    mgl_text_append(&r->reply, bytes, length);
}

/* Copies the struct at the start of a request. False: the request is too short. */
static bool take(const struct request *r, void *to, size_t size)
{
    if (r->length < size)
        return false;
    memcpy(to, r->bytes, size);
    return true;
}

static mgl_status fail_form(mgl_request_kind kind, mgl_error *err)
{
    return mgl_fail(err, MGL_USAGE, mgl_request_name(kind), "the request is malformed");
}

/* ---- requests -------------------------------------------------------------------------------- */

static mgl_status put_device(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_paired_bench_device device = {0};
    mgl_status status = mgl_paired_bench_get_device(w->paired_bench, &device, err);
    if (!status)
        put(r, &device, sizeof device);
    return status;
}

static mgl_status greet(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_wire_hello hello;
    char build[sizeof hello.build];
    mgl_wire_build(build);
    if (!take(r, &hello, sizeof hello) || memcmp(hello.build, build, sizeof build) != 0)
        return mgl_fail(err, MGL_GATE, NULL, "the worker is another program than the runner");
    if (!w->under_tool && getppid() != (pid_t)hello.parent) /* died before PR_SET_PDEATHSIG */
        return mgl_fail(err, MGL_SYSTEM, NULL, "the runner ended");
    w->role = (mgl_worker_role)hello.role;
    w->config = hello.config;
    if (w->role == MGL_COMPILER || w->paired_bench)
        return MGL_OK;
    mgl_cuda_compile_use_child("/proc/self/exe"); /* a compiler worker is itself such a child */
    memcpy(w->device, hello.device, sizeof hello.device);
    w->gpu = strcmp(w->device, "cpu") != 0;
    mgl_paired_bench_options options = {.config = w->config, .device = w->device};
    mgl_status status = mgl_paired_bench_open(&options, &w->paired_bench, err);
    return status ? status : put_device(w, r, err);
}

/* Finds the folder of compiled kernels and creates it. Also opens the libraries of compiler and
 * linker, because the sandbox prevents opening them later. False: there is none; a worker without a
 * GPU and without the compiler role makes no kernels. */
static bool find_cache(const struct worker *w, char path[PATH_MAX])
{
    const mgl_nvrtc *nvrtc;
    bool compiles = w->gpu || w->role == MGL_COMPILER;
    if (!compiles || mgl_nvrtc_open(&nvrtc, NULL))
        return false;
    (void)mgl_jitlink_for(nvrtc, NULL);
    return mgl_cuda_cache_path(path, PATH_MAX) && !mgl_folder_make(path, 0777, NULL);
}

/* Enters the sandbox. Afterwards kernels are compiled in this process, because it cannot start
 * others. The runner kills the worker if that takes too long. */
static mgl_status confine_more(struct worker *w, struct request *r, mgl_error *err)
{
    char cache[PATH_MAX];
    mgl_sandbox is;
    (void)err;
    if (!w->confined) {
        mgl_sandbox_options options = {.cache = find_cache(w, cache) ? cache : NULL,
                                       .model = r->length ? r->bytes : NULL,
                                       .gpu = w->gpu};
        mgl_sandbox_enter(&options, &is);
        w->confined = true;
        memset(&w->sandbox, 0, sizeof w->sandbox);
        w->sandbox.seccomp = is.seccomp;
        w->sandbox.landlock = is.landlock;
        memcpy(w->sandbox.missing, is.missing, sizeof w->sandbox.missing);
        if (is.seccomp || is.landlock)
            mgl_cuda_compile_use_child(NULL);
    }
    put(r, &w->sandbox, sizeof w->sandbox);
    return MGL_OK;
}

static mgl_status set_fault(struct worker *w, struct request *r, mgl_error *err)
{
    int32_t fault;
    if (!take(r, &fault, sizeof fault))
        return fail_form(MGL_REQUEST_FAULT, err);
    mgl_worker_fault_arm(&w->fault, (mgl_fault)fault);
    return MGL_OK;
}

static bool is_side(int32_t side)
{
    return side >= 0 && side < MGL_SIDES;
}

/* The program of a request, and its replacement texts of kernel sources. */
struct sourced {
    mgl_wire_set wire;
    char *texts[MGL_WIRE_SOURCES]; /* owned */
    mgl_cuda_source sources[MGL_WIRE_SOURCES];
    const char *schedule; /* (length) */
    size_t length;
};

static void clear_sourced(struct sourced *s)
{
    mgl_cuda_override_sources(NULL, 0, NULL);
    for (int i = 0; i < MGL_WIRE_SOURCES; i++)
        mgl_free(s->texts[i]);
}

/* Kernels are compiled with the texts until clear_sourced. */
static mgl_status take_sourced(const struct request *r, mgl_request_kind kind, struct sourced *out,
                               mgl_error *err)
{
    *out = (struct sourced){0};
    mgl_wire_set *wire = &out->wire;
    if (!take(r, wire, sizeof *wire) || wire->source_count < 0 ||
        wire->source_count > MGL_WIRE_SOURCES || !memchr(wire->arch, 0, sizeof wire->arch))
        return fail_form(kind, err);
    size_t at = sizeof *wire;
    for (int i = 0; i < wire->source_count; i++) {
        const size_t length = (size_t)wire->lengths[i];
        if (length > r->length - at || !memchr(wire->files[i], 0, sizeof wire->files[i]))
            return fail_form(kind, err);
        out->texts[i] = mgl_strndup(r->bytes + at, length);
        if (!out->texts[i])
            return mgl_fail_memory(err, length);
        out->sources[i] = (mgl_cuda_source){wire->files[i], (const unsigned char *)out->texts[i]};
        at += length;
    }
    out->schedule = r->bytes + at;
    out->length = r->length - at;
    return mgl_cuda_override_all_sources(out->sources, wire->source_count, err);
}

static mgl_status put_program(struct worker *w, struct request *r, const struct sourced *s,
                              mgl_error *err)
{
    mgl_program *program = NULL;
    mgl_paired_bench_facts facts = {0};
    mgl_status status = mgl_schedule_parse(s->schedule, s->length, "program", &program, err);
    if (!status)
        mgl_paired_bench_expect(w->paired_bench, s->wire.seed, s->wire.context);
    if (!status) /* takes ownership of the program, also on failure */
        status =
            mgl_paired_bench_set(w->paired_bench, (mgl_side)s->wire.side, program, &facts, err);
    if (!status)
        put(r, &facts.kernel_s, sizeof facts.kernel_s);
    return status;
}

static mgl_status set_program(struct worker *w, struct request *r, mgl_error *err)
{
    struct sourced s;
    mgl_status status = take_sourced(r, MGL_REQUEST_SET, &s, err);
    if (!status && (!is_side(s.wire.side) || s.wire.context < 0))
        status = fail_form(MGL_REQUEST_SET, err);
    if (!status)
        status = put_program(w, r, &s, err);
    clear_sourced(&s);
    return status;
}

static bool is_load(const mgl_wire_load *load)
{
    return is_side(load->side) && load->batch >= 1 && load->batch <= MGL_MAX_SEQUENCES &&
           load->tokens >= 1 && load->tokens <= MGL_WORKLOAD_TOKENS && load->context >= 0 &&
           load->kind >= 0 && load->kind < MGL_SYNTHETIC_KIND_COUNT;
}

static mgl_paired_bench_load load_of(const mgl_wire_load *load)
{
    return (mgl_paired_bench_load){.batch = load->batch,
                                   .context = load->context,
                                   .tokens = load->tokens,
                                   .seed = load->seed,
                                   .kind = (mgl_synthetic_kind)load->kind,
                                   .poison = load->poison};
}

static mgl_status run(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_wire_load wire;
    int32_t tokens[MGL_MAX_SEQUENCES * MGL_WORKLOAD_TOKENS];
    double seconds = 0;
    if (!take(r, &wire, sizeof wire) || !is_load(&wire))
        return fail_form(MGL_REQUEST_RUN, err);
    mgl_paired_bench_load load = load_of(&wire);
    mgl_fault fault = wire.side == MGL_CANDIDATE ? w->fault.kind : MGL_FAULT_NONE;
    mgl_status status = mgl_worker_fault_before(fault, &w->wire, err);
    if (!status)
        status = mgl_paired_bench_run(w->paired_bench, (mgl_side)wire.side, &load, tokens, &seconds,
                                      err);
    if (status)
        return status;
    mgl_worker_fault_behind(fault, tokens, w->config.geometry.vocab, &seconds);
    put(r, &seconds, sizeof seconds);
    put(r, tokens, (size_t)wire.batch * (size_t)wire.tokens * sizeof *tokens);
    return MGL_OK;
}

static mgl_status put_logits(struct worker *w, struct request *r, mgl_error *err)
{
    int32_t of[2]; /* side, batch */
    if (!take(r, of, sizeof of) || !is_side(of[0]) || of[1] < 1 || of[1] > MGL_MAX_SEQUENCES)
        return fail_form(MGL_REQUEST_LOGITS, err);
    size_t count = (size_t)of[1] * (size_t)w->config.geometry.vocab;
    float *logits = mgl_alloc_zero(count, sizeof *logits);
    if (!logits)
        return mgl_fail_memory(err, count * sizeof *logits);
    mgl_status status = mgl_paired_bench_get_logits(w->paired_bench, (mgl_side)of[0], logits, err);
    if (!status && of[0] == MGL_CANDIDATE)
        mgl_worker_fault_logits(&w->fault, logits, count);
    if (!status)
        put(r, logits, count * sizeof *logits);
    mgl_free(logits);
    return status;
}

static mgl_status put_memory_of(struct worker *w, struct request *r, mgl_side side, size_t bytes,
                                char *to, mgl_error *err)
{
    unsigned char constants[MGL_SHA256_BYTES];
    mgl_status status = mgl_paired_bench_get_memory(w->paired_bench, side, to, constants, err);
    if (status)
        return status;
    put(r, constants, sizeof constants);
    put(r, to, bytes);
    return MGL_OK;
}

static mgl_status put_memory(struct worker *w, struct request *r, mgl_error *err)
{
    int32_t side;
    if (!take(r, &side, sizeof side) || !is_side(side))
        return fail_form(MGL_REQUEST_MEMORY, err);
    const size_t bytes = mgl_paired_bench_side_bytes(w->paired_bench, (mgl_side)side);
    if (bytes == 0 || bytes > MGL_WIRE_LARGEST / 2)
        return mgl_fail(err, MGL_USAGE, "memory", "%zu bytes are none that can be told", bytes);
    char *to = mgl_alloc(bytes);
    if (!to)
        return mgl_fail_memory(err, bytes);
    mgl_status status = put_memory_of(w, r, (mgl_side)side, bytes, to, err);
    mgl_free(to);
    return status;
}

static mgl_status refer_to(struct worker *w, struct request *r, const mgl_wire_refer *wire,
                           float *numbers, mgl_error *err)
{
    size_t words = (size_t)wire->load.batch * (size_t)wire->load.tokens;
    mgl_paired_bench_load load = load_of(&wire->load);
    int32_t made[MGL_MAX_SEQUENCES * MGL_WORKLOAD_TOKENS];
    int steps[MGL_WIRE_STEPS];
    memcpy(made, r->bytes + sizeof *wire, words * sizeof *made);
    for (int i = 0; i < wire->step_count; i++)
        steps[i] = wire->steps[i];
    mgl_paired_bench_reference reference = {.largest = numbers,
                                            .chosen = numbers + words,
                                            .norms = numbers + 2 * words,
                                            .steps = steps,
                                            .step_count = wire->step_count,
                                            .logits = numbers + 3 * words};
    return mgl_paired_bench_refer(w->paired_bench, &load, made, &reference, err);
}

static mgl_status refer(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_wire_refer wire;
    if (!take(r, &wire, sizeof wire) || !is_load(&wire.load) || wire.step_count < 0 ||
        wire.step_count > MGL_WIRE_STEPS)
        return fail_form(MGL_REQUEST_REFER, err);
    size_t words = (size_t)wire.load.batch * (size_t)wire.load.tokens;
    if (r->length != sizeof wire + words * sizeof(int32_t))
        return fail_form(MGL_REQUEST_REFER, err);
    size_t vocab = (size_t)w->config.geometry.vocab;
    size_t count = 3 * words + (size_t)wire.step_count * (size_t)wire.load.batch * vocab;
    float *numbers = mgl_alloc_zero(count, sizeof *numbers);
    if (!numbers)
        return mgl_fail_memory(err, count * sizeof *numbers);
    mgl_status status = refer_to(w, r, &wire, numbers, err);
    if (!status)
        put(r, numbers, count * sizeof *numbers);
    mgl_free(numbers);
    return status;
}

static mgl_status stream(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_wire_stream wire;
    double seconds = 0;
    if (!take(r, &wire, sizeof wire) || !(wire.bytes > 0) || wire.count < 1 ||
        wire.count > MGL_WIRE_STREAM_LOOKS)
        return fail_form(MGL_REQUEST_STREAM, err);
    mgl_status status =
        mgl_paired_bench_stream(w->paired_bench, wire.bytes, wire.count, &seconds, err);
    if (!status)
        put(r, &seconds, sizeof seconds);
    return status;
}

static mgl_status look(struct worker *w, struct request *r, mgl_error *err)
{
    (void)err;
    mgl_paired_bench_clocks clocks;
    mgl_paired_bench_look(w->paired_bench, &clocks);
    put(r, &clocks, sizeof clocks);
    return MGL_OK;
}

static mgl_status promote(struct worker *w, struct request *r, mgl_error *err)
{
    (void)r, (void)err;
    mgl_paired_bench_promote(w->paired_bench);
    return MGL_OK;
}

static mgl_status drop(struct worker *w, struct request *r, mgl_error *err)
{
    int32_t side;
    if (!take(r, &side, sizeof side) || !is_side(side))
        return fail_form(MGL_REQUEST_DROP, err);
    mgl_paired_bench_drop(w->paired_bench, (mgl_side)side);
    return MGL_OK;
}

/* Compiles into the cache that the executor reads. */
static mgl_status compile(struct worker *w, struct request *r, mgl_error *err)
{
    (void)w;
    struct sourced s;
    mgl_program *program = NULL;
    mgl_cuda_image image = {0};
    mgl_status status = take_sourced(r, MGL_REQUEST_COMPILE, &s, err);
    if (!status)
        status = mgl_schedule_parse(s.schedule, s.length, "program", &program, err);
    mgl_cuda_compile_use_processors(2); /* other compilers run in parallel */
    if (!status)
        status = mgl_cuda_compile(program, s.wire.arch, 0, NULL, &image, err);
    mgl_cuda_image_clear(&image);
    mgl_program_free(program);
    clear_sourced(&s);
    return status;
}

/* Compiles a kernel with a proposed source text, only inside the sandbox. */
static mgl_status compile_kernel(struct worker *w, struct request *r, mgl_error *err)
{
    if (w->role != MGL_COMPILER || !w->confined)
        return mgl_fail(err, MGL_USAGE, "kernel", "the worker is no compiler in a sandbox");
    return mgl_worker_kernel(r->bytes, r->length, &r->reply, err);
}

/* ---- real checkpoint and baseline ------------------------------------------------------------ */

static mgl_status open_checkpoint(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_wire_checkpoint wire;
    if (!take(r, &wire, sizeof wire) || !is_side(wire.side) ||
        !memchr(wire.path, 0, sizeof wire.path))
        return fail_form(MGL_REQUEST_CHECKPOINT, err);
    return mgl_worker_real_open(&w->real, w->device, &wire, r->bytes + sizeof wire,
                                r->length - sizeof wire, err);
}

static bool is_decode(const mgl_wire_decode *wire, const struct request *r)
{
    return wire->count >= 1 && wire->count <= MGL_REAL_TEXTS && wire->length >= 2 &&
           wire->length <= MGL_WIRE_POSITIONS && wire->tokens >= 1 &&
           wire->tokens <= MGL_WIRE_POSITIONS &&
           r->length == sizeof *wire + (size_t)wire->count * (size_t)wire->length * sizeof(int32_t);
}

/* `numbers` has room for tokens or log-likelihoods, which have equal size. */
static mgl_status decode_into(struct worker *w, struct request *r, const mgl_wire_decode *wire,
                              int32_t *numbers, mgl_error *err)
{
    const int32_t *prompts = (const int32_t *)(const void *)(r->bytes + sizeof *wire);
    mgl_fault fault = w->real.side == MGL_CANDIDATE ? w->fault.kind : MGL_FAULT_NONE;
    size_t words = (size_t)wire->count * (size_t)(wire->score ? wire->length : wire->tokens);
    double seconds = 0;
    mgl_status status = mgl_worker_fault_before(fault, &w->wire, err);
    if (!status)
        status =
            mgl_worker_real_run(&w->real, wire, prompts, numbers, (float *)(void *)numbers, err);
    if (status)
        return status;
    if (!wire->score)
        mgl_worker_fault_behind(fault, numbers, w->config.geometry.vocab, &seconds);
    else if (fault)
        mgl_worker_fault_logits(&w->fault, (float *)(void *)numbers, words);
    put(r, numbers, words * sizeof *numbers);
    return MGL_OK;
}

static mgl_status decode(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_wire_decode wire;
    if (!take(r, &wire, sizeof wire) || !is_decode(&wire, r))
        return fail_form(MGL_REQUEST_DECODE, err);
    size_t count = (size_t)wire.count * (size_t)(wire.score ? wire.length : wire.tokens);
    int32_t *numbers = mgl_alloc_zero(count, sizeof *numbers);
    if (!numbers)
        return mgl_fail_memory(err, count * sizeof *numbers);
    mgl_status status = decode_into(w, r, &wire, numbers, err);
    mgl_free(numbers);
    return status;
}

static mgl_status time_baseline(struct worker *w, struct request *r, mgl_error *err)
{
    mgl_wire_baseline wire;
    double seconds = 0;
    if (!take(r, &wire, sizeof wire) || !is_load(&wire.load) || wire.count < 1 ||
        wire.count > MGL_MAX_SAMPLES)
        return fail_form(MGL_REQUEST_BASELINE, err);
    mgl_paired_bench_load load = load_of(&wire.load);
    mgl_status status =
        mgl_paired_bench_baseline(w->paired_bench, &load, wire.count, &seconds, err);
    if (!status)
        put(r, &seconds, sizeof seconds);
    return status;
}

typedef mgl_status answer_fn(struct worker *w, struct request *r, mgl_error *err);

static mgl_status answer(struct worker *w, mgl_request_kind kind, struct request *r, mgl_error *err)
{
    static answer_fn *const answers[MGL_REQUEST_COUNT] = {[MGL_REQUEST_HELLO] = greet,
                                                          [MGL_REQUEST_FAULT] = set_fault,
                                                          [MGL_REQUEST_SET] = set_program,
                                                          [MGL_REQUEST_RUN] = run,
                                                          [MGL_REQUEST_LOGITS] = put_logits,
                                                          [MGL_REQUEST_REFER] = refer,
                                                          [MGL_REQUEST_STREAM] = stream,
                                                          [MGL_REQUEST_LOOK] = look,
                                                          [MGL_REQUEST_DEVICE] = put_device,
                                                          [MGL_REQUEST_PROMOTE] = promote,
                                                          [MGL_REQUEST_DROP] = drop,
                                                          [MGL_REQUEST_COMPILE] = compile,
                                                          [MGL_REQUEST_SANDBOX] = confine_more,
                                                          [MGL_REQUEST_CHECKPOINT] =
                                                              open_checkpoint,
                                                          [MGL_REQUEST_DECODE] = decode,
                                                          [MGL_REQUEST_BASELINE] = time_baseline,
                                                          [MGL_REQUEST_KERNEL] = compile_kernel,
                                                          [MGL_REQUEST_MEMORY] = put_memory};
    bool alone = kind == MGL_REQUEST_HELLO || kind == MGL_REQUEST_COMPILE ||
                 kind == MGL_REQUEST_SANDBOX || kind == MGL_REQUEST_KERNEL;
    if (!w->paired_bench && !alone)
        return mgl_fail(err, MGL_USAGE, mgl_request_name(kind), "the worker has no device");
    if (w->role == MGL_REFEREE && (kind == MGL_REQUEST_SET || kind == MGL_REQUEST_RUN ||
                                   kind == MGL_REQUEST_CHECKPOINT || kind == MGL_REQUEST_MEMORY))
        return mgl_fail(err, MGL_USAGE, mgl_request_name(kind), "the referee runs no program");
    return answers[kind](w, r, err);
}

/* ---- loop ------------------------------------------------------------------------------------ */

static bool send_reply(struct worker *w, mgl_request_kind kind, mgl_status status, double device_s,
                       const mgl_error *err, const mgl_text *reply)
{
    mgl_wire_reply start;
    size_t length = status ? 0 : reply->length;
    mgl_wire_head head = {
        .magic = MGL_WIRE_MAGIC, .kind = kind, .reply = 1, .length = sizeof start + length};
    memset(&start, 0, sizeof start);
    start.status = (int32_t)status;
    start.device_s = device_s;
    if (status) {
        memcpy(start.where, err->where, sizeof start.where);
        memcpy(start.message, err->message, sizeof start.message);
    }
    return mgl_wire_send(&w->wire, &head, sizeof head) == MGL_WIRE_DONE &&
           mgl_wire_send(&w->wire, &start, sizeof start) == MGL_WIRE_DONE &&
           mgl_wire_send(&w->wire, reply->bytes, length) == MGL_WIRE_DONE;
}

/* Serves one request. False: the socket is closed or the request invalid. */
static bool serve(struct worker *w)
{
    mgl_wire_head head;
    mgl_error err = {0};
    if (mgl_wire_receive(&w->wire, &head, sizeof head) != MGL_WIRE_DONE ||
        memcmp(head.magic, MGL_WIRE_MAGIC, sizeof head.magic) != 0 ||
        head.kind >= MGL_REQUEST_COUNT || head.length > MGL_WIRE_LARGEST)
        return false;
    char *bytes = mgl_alloc_zero(head.length + 1, 1);
    if (!bytes || mgl_wire_receive(&w->wire, bytes, head.length) != MGL_WIRE_DONE) {
        mgl_free(bytes);
        return false;
    }
    struct request r = {.bytes = bytes, .length = head.length};
    mgl_request_kind kind = (mgl_request_kind)head.kind;
    const double before = w->paired_bench ? mgl_paired_bench_device_s(w->paired_bench) : 0;
    mgl_status status = answer(w, kind, &r, &err);
    const double device_s =
        w->paired_bench ? mgl_paired_bench_device_s(w->paired_bench) - before : 0;
    if (!status && r.reply.failed)
        status = mgl_fail_memory(&err, r.reply.length);
    mgl_free(bytes);
    bool good = send_reply(w, kind, status, device_s, &err, &r.reply);
    mgl_text_clear(&r.reply);
    return good;
}

/* Restricts the process from its start: it ends with the runner, writes no core dump, and gains no
 * rights by running another program. sandbox.h follows after its device is open. Under a tool, the
 * thread that started the process may have ended already, so only the closed socket ends it. */
static void confine(bool under_tool)
{
    struct rlimit none = {0, 0};
    prctl(PR_SET_NAME, "megalith-tune"); /* otherwise the process is named "exe" */
    if (!under_tool)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &none);
}

int mgl_worker_main(const char *socket)
{
    char *end;
    long descriptor = strtol(socket, &end, 10);
    const bool under_tool = end != socket && !strcmp(end, MGL_WORKER_UNDER_TOOL);
    confine(under_tool);
    if (end == socket || (*end && !under_tool) || descriptor < 3 || descriptor > 1 << 20)
        return 1;
    struct worker w = {.wire = {.socket = (int)descriptor}, .under_tool = under_tool};
    while (serve(&w))
        ;
    if (w.under_tool) { /* the tool checks how the process ends */
        mgl_paired_bench_close(w.paired_bench);
        return 0;
    }
    _exit(0); /* the runner is gone: release everything at once */
}
