/* Implements compile.h: the host's side of the worker. The worker's side is worker_kernel.c. */
#include "autotune/kernels/gates/compile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/runner/process.h"
#include "base/format.h"
#include "base/memory.h"
#include "vm/cuda/driver.h"

static const double limit_s = 300, greeting_s = 30;
enum { LIMIT_BYTES_SHIFT = 33 }; /* memory limit of the worker: 8 GiB */

void mgl_kernel_compiled_clear(mgl_kernel_compiled *compiled)
{
    mgl_free(compiled->ptx);
    *compiled = (mgl_kernel_compiled){0};
}

/* ---- the worker ------------------------------------------------------------------------------ */

static mgl_status greet(mgl_process *process, mgl_error *err)
{
    mgl_wire_hello hello;
    memset(&hello, 0, sizeof hello);
    mgl_wire_build(hello.build);
    hello.role = MGL_COMPILER;
    hello.parent = getpid();
    const mgl_question question = {.kind = MGL_REQUEST_HELLO,
                                   .fixed = &hello,
                                   .fixed_length = sizeof hello,
                                   .limit_s = greeting_s};
    return mgl_process_get(process, &question, NULL, 0, err);
}

/* A proposed text is compiled only if seccomp or Landlock is active in the worker. */
static mgl_status confine(mgl_process *process, mgl_error *err)
{
    mgl_wire_sandbox sandbox;
    const mgl_question question = {.kind = MGL_REQUEST_SANDBOX, .limit_s = greeting_s};
    mgl_status status = mgl_process_get(process, &question, &sandbox, sizeof sandbox, err);
    if (status || sandbox.seccomp || sandbox.landlock)
        return status;
    return mgl_fail(
        err, MGL_SYSTEM, "sandbox",
        "this machine has no sandbox (seccomp or Landlock): proposed texts are not compiled");
}

static mgl_status start(const mgl_kernel_options *options, mgl_process **out, mgl_error *err)
{
    const mgl_process_options process = {.program =
                                             options->program ? options->program : "/proc/self/exe",
                                         .abort = options->abort,
                                         .limit_bytes = UINT64_C(1) << LIMIT_BYTES_SHIFT};
    mgl_status status = mgl_process_start(&process, out, err);
    if (!status)
        status = greet(*out, err);
    if (!status)
        status = confine(*out, err);
    if (status) {
        mgl_process_close(*out);
        *out = NULL;
    }
    if (!status || status == MGL_INTERRUPTED || status == MGL_NO_MEMORY)
        return status;
    if (err)
        err->code = MGL_SYSTEM; /* replaces the code of any other failure */
    return MGL_SYSTEM;
}

/* ---- a job ----------------------------------------------------------------------------------- */

static void write_wire(const mgl_kernel_job *job, mgl_wire_kernel *wire)
{
    memset(wire, 0, sizeof *wire);
    snprintf(wire->arch, sizeof wire->arch, "%s", job->arch);
    snprintf(wire->file, sizeof wire->file, "%s", job->file);
    wire->text_length = job->text_length;
    wire->value_count = job->value_count;
    for (int i = 0; i < job->value_count; i++) {
        wire->values[i] = job->values[i].value;
        snprintf(wire->names[i], sizeof wire->names[i], "TUNE_%.32s", job->values[i].name);
        for (char *c = wire->names[i]; *c; c++)
            *c = (char)toupper((unsigned char)*c);
    }
}

/* Reports a compiler that ended without an answer. */
static void refuse_end(const mgl_answer *answer, mgl_kernel_compiled *out)
{
    mgl_trial_verdict_set(&out->verdict, MGL_OUTCOME_COMPILE_OTHER, "the compiler %s",
                          answer->error.message);
}

static mgl_status read_log(const mgl_kernel_job *job, const mgl_wire_kernel_report *wire,
                           const char *log, const char *ptx, mgl_kernel_compiled *out,
                           mgl_error *err)
{
    out->done = wire->compiled;
    out->compile_s = wire->compile_s;
    if (!out->done) {
        mgl_kernel_log_error(log, job->file, &out->verdict);
        return MGL_OK;
    }
    if (!mgl_kernel_log_resources(log, &out->resources) && !strncmp(job->arch, "sm_", 3))
        return mgl_fail(err, MGL_DEVICE, "nvrtc",
                        "the log of ptxas does not contain the registers");
    out->ptx = mgl_strndup(ptx, wire->ptx_length);
    out->ptx_length = wire->ptx_length;
    return out->ptx ? MGL_OK : mgl_fail_memory(err, wire->ptx_length);
}

static mgl_status read_reply(const mgl_kernel_job *job, const mgl_answer *answer,
                             mgl_kernel_compiled *out, mgl_error *err)
{
    mgl_wire_kernel_report wire;
    const char *at = answer->bytes;
    if (answer->length < sizeof wire)
        return mgl_fail(err, MGL_SYSTEM, "worker", "the worker's reply is malformed");
    memcpy(&wire, at, sizeof wire);
    at += sizeof wire;
    const size_t left = answer->length - sizeof wire;
    if (wire.log_length > left || wire.ptx_length != left - wire.log_length)
        return mgl_fail(err, MGL_SYSTEM, "worker", "the worker's reply is malformed");
    char *log = mgl_strndup(at, wire.log_length);
    if (!log)
        return mgl_fail_memory(err, wire.log_length);
    mgl_status status = read_log(job, &wire, log, at + wire.log_length, out, err);
    mgl_free(log);
    return status;
}

static mgl_status ask(mgl_process *process, const mgl_kernel_job *job,
                      const mgl_kernel_options *options, mgl_kernel_compiled *out, mgl_error *err)
{
    mgl_wire_kernel wire;
    mgl_text bytes = {0};
    mgl_answer answer = {0};
    write_wire(job, &wire);
    mgl_text_append(&bytes, job->text, job->text_length);
    mgl_text_append(&bytes, job->schedule, job->schedule_length);
    if (bytes.failed) {
        mgl_text_clear(&bytes);
        return mgl_fail_memory(err, job->text_length + job->schedule_length);
    }
    const mgl_question question = {.kind = MGL_REQUEST_KERNEL,
                                   .fixed = &wire,
                                   .bytes = bytes.bytes,
                                   .fixed_length = sizeof wire,
                                   .length = bytes.length,
                                   .limit_s = options->limit_s > 0 ? options->limit_s : limit_s};
    mgl_status status = mgl_process_ask(process, &question, MGL_PROCESS_ANY, &answer, err);
    mgl_text_clear(&bytes);
    if (!status && answer.fate != MGL_FATE_ANSWERED)
        refuse_end(&answer, out);
    else if (!status && answer.error.code)
        status = mgl_fail(err, answer.error.code, answer.error.where, "%s", answer.error.message);
    else if (!status)
        status = read_reply(job, &answer, out, err);
    mgl_answer_clear(&answer);
    return status;
}

mgl_status mgl_kernel_compile(const mgl_kernel_job *job, const mgl_kernel_options *options,
                              mgl_kernel_compiled *out, mgl_error *err)
{
    const mgl_nvrtc *nvrtc;
    mgl_process *process = NULL;
    *out = (mgl_kernel_compiled){0};
    mgl_status status = mgl_nvrtc_open(&nvrtc, err);
    if (!status)
        status = start(options, &process, err);
    if (!status)
        status = ask(process, job, options, out, err);
    mgl_process_close(process);
    if (status)
        mgl_kernel_compiled_clear(out);
    return status;
}
