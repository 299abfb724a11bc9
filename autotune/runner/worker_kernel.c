/* Implements worker_kernel.h: parses the request, overrides the source and runs NVRTC. */
#include "autotune/runner/worker_kernel.h"

#include <string.h>

#include "api/plan.h"
#include "autotune/runner/protocol.h"
#include "base/memory.h"
#include "vm/cuda/cuda.h"

static bool is_request(const mgl_wire_kernel *wire, size_t length)
{
    if (!memchr(wire->arch, 0, sizeof wire->arch) || !memchr(wire->file, 0, sizeof wire->file) ||
        wire->text_length > length - sizeof *wire || wire->value_count < 0 ||
        wire->value_count > MGL_WIRE_VALUES)
        return false;
    for (int i = 0; i < wire->value_count; i++)
        if (!memchr(wire->names[i], 0, sizeof wire->names[i]))
            return false;
    return true;
}

static void put_report(const mgl_cuda_report *report, mgl_text *reply)
{
    mgl_wire_kernel_report wire;
    memset(&wire, 0, sizeof wire);
    wire.compiled = report->compiled;
    wire.compile_s = report->compile_s;
    wire.log_length = report->log ? strlen(report->log) : 0;
    wire.ptx_length = report->ptx_length;
    mgl_text_append(reply, (const char *)&wire, sizeof wire);
    mgl_text_append(reply, report->log, wire.log_length);
    mgl_text_append(reply, report->ptx, wire.ptx_length);
}

/* `text` is 0-terminated. */
static mgl_status compile(const mgl_wire_kernel *wire, const char *text, const mgl_plan *plan,
                          mgl_text *reply, mgl_error *err)
{
    const mgl_cuda_source source = {wire->file, (const unsigned char *)text};
    mgl_cuda_value values[MGL_WIRE_VALUES];
    mgl_cuda_report report;
    for (int i = 0; i < wire->value_count; i++)
        values[i] = (mgl_cuda_value){wire->names[i], wire->values[i]};
    mgl_status status = mgl_cuda_override_sources(&source, 1, err);
    if (!status)
        status = mgl_cuda_compile_report(plan->program, wire->arch, values, (int)wire->value_count,
                                         &report, err);
    if (!status) {
        put_report(&report, reply);
        mgl_cuda_report_clear(&report);
    }
    mgl_cuda_override_sources(NULL, 0, NULL);
    return status;
}

mgl_status mgl_worker_kernel(const char *bytes, size_t length, mgl_text *reply, mgl_error *err)
{
    mgl_wire_kernel wire;
    mgl_plan *plan = NULL;
    if (length < sizeof wire)
        return mgl_fail(err, MGL_USAGE, "kernel", "the request is malformed");
    memcpy(&wire, bytes, sizeof wire);
    if (!is_request(&wire, length))
        return mgl_fail(err, MGL_USAGE, "kernel", "the request is malformed");
    const char *at = bytes + sizeof wire;
    char *text = mgl_strndup(at, wire.text_length);
    if (!text)
        return mgl_fail_memory(err, wire.text_length);
    mgl_status status = mgl_plan_parse(
        at + wire.text_length, length - sizeof wire - wire.text_length, "program", &plan, err);
    if (!status)
        status = compile(&wire, text, plan, reply, err);
    mgl_plan_close(plan);
    mgl_free(text);
    return status;
}
