/* Implements worker_real.h: import of the checkpoint, and launches that generate or score. */
#include "autotune/runner/worker_real.h"

#include "schedule/schedule.h"
#include "vm/pipeline/device.h"

#include <string.h>

void mgl_worker_real_close(mgl_worker_real *real)
{
    mgl_vm_close(real->vm);
    mgl_program_free(real->program);
    mgl_checkpoint_close(real->checkpoint);
    *real = (mgl_worker_real){0};
}

static mgl_status open_machine(mgl_worker_real *real, const char *device, mgl_error *err)
{
    mgl_device machine = {0};
    mgl_status status = mgl_device_find(device, &machine, err);
    const mgl_vm_options options = {.kind = machine.kind, .device = machine.device};
    return status ? status
                  : mgl_vm_open(real->program, real->checkpoint->graph, &options, &real->vm, err);
}

mgl_status mgl_worker_real_open(mgl_worker_real *real, const char *device,
                                const mgl_wire_checkpoint *wire, const char *text, size_t length,
                                mgl_error *err)
{
    mgl_worker_real_close(real);
    real->side = wire->side;
    mgl_status status = mgl_schedule_parse(text, length, "program", &real->program, err);
    if (!status)
        status = mgl_import(wire->path, &real->checkpoint, err);
    if (!status)
        status = open_machine(real, device, err);
    if (status)
        mgl_worker_real_close(real);
    return status;
}

static mgl_status take_reply(const mgl_wire_decode *wire, const mgl_vm_report *report, int sequence,
                             int32_t *made, mgl_error *err)
{
    if (report->produced[sequence] != wire->tokens)
        return mgl_fail(err, MGL_GATE, "decode", "sequence %d made %d tokens in place of %d",
                        sequence, (int)report->produced[sequence], (int)wire->tokens);
    memcpy(made + sequence * wire->tokens, report->output[sequence],
           (size_t)wire->tokens * sizeof *made);
    return MGL_OK;
}

mgl_status mgl_worker_real_run(mgl_worker_real *real, const mgl_wire_decode *wire,
                               const int32_t *prompts, int32_t *made, float *scores, mgl_error *err)
{
    mgl_vm_sequence sequences[MGL_MAX_ROWS] = {0};
    mgl_vm_report report = {0};
    if (!real->vm)
        return mgl_fail(err, MGL_USAGE, "decode", "no checkpoint is open");
    for (int s = 0; s < wire->count; s++)
        sequences[s] = (mgl_vm_sequence){.mode = wire->score ? MGL_VM_SCORE : MGL_VM_GENERATE,
                                         .prompt = prompts + s * wire->length,
                                         .prompt_count = wire->length,
                                         .max_new = wire->score ? 1 : wire->tokens};
    const mgl_vm_request request = {.sequences = sequences, .count = wire->count};
    mgl_status status = mgl_vm_run(real->vm, &request, &report, err);
    for (int s = 0; s < wire->count && !status; s++) {
        if (wire->score)
            memcpy(scores + s * wire->length, report.score[s],
                   (size_t)wire->length * sizeof *scores);
        else
            status = take_reply(wire, &report, s, made, err);
    }
    return status;
}
