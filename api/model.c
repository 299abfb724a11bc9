/*
 * Opens and closes models. mgl_model_open runs the pipeline: import, lower, validate, load. It
 * accepts a folder of a checkpoint or a compiled model. Also implements the cancel switches.
 * vm/pipeline/ chooses the device and lowers the program; api/generate.c runs the model.
 */
#include "api/model.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/sized.h"
#include "importer/mega.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

#include <stdio.h>
#include <string.h>

const char *mgl_version(void)
{
    return MGL_VERSION;
}

/* ---- cancel switches ------------------------------------------------------------------------- */

mgl_status mgl_cancel_new(mgl_cancel **out, mgl_error *err)
{
    if (!out)
        return mgl_fail_null(err, __func__, "out");
    *out = mgl_alloc_zero(1, sizeof **out);
    return *out ? MGL_OK : mgl_fail_memory(err, sizeof **out);
}

void mgl_cancel_free(mgl_cancel *cancel)
{
    mgl_free(cancel);
}

void mgl_cancel_set(mgl_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, 1);
}

void mgl_cancel_reset(mgl_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, 0);
}

bool mgl_cancel_is_set(const mgl_cancel *cancel)
{
    return cancel && atomic_load(&cancel->set);
}

const atomic_int *mgl_cancel_flag(const mgl_cancel *cancel)
{
    return cancel ? &cancel->set : NULL;
}

/* ---- opening a model ------------------------------------------------------------------------- */

/* Rejects more sequences than an existing program was lowered for. */
static mgl_status check_sequences(const mgl_program *program, const char *path,
                                  const mgl_open_options *options, mgl_error *err)
{
    if (options->sequences <= program->limits.sequences || options->fewer)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "supports at most %d sequence%s in one launch, but %d are requested; lower or "
                    "compile the model again with a larger --sequences",
                    program->limits.sequences, mgl_plural((size_t)program->limits.sequences),
                    (int)options->sequences);
}

/* Whether the program must support penalties. */
static bool wants_penalties(const mgl_model *model, const mgl_open_options *options)
{
    const float repeat = model->checkpoint->generation.repeat;
    return options->penalties == 1 || (options->penalties == 2 && (repeat < 1.0f || repeat > 1.0f));
}

/* Rejects an existing program without penalties if penalties are requested. */
static mgl_status check_penalties(const mgl_model *model, const mgl_program *program,
                                  const char *path, const mgl_open_options *options, mgl_error *err)
{
    if (!wants_penalties(model, options) || mgl_program_has_penalties(program))
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "was made without support for penalties; lower or compile the model again with "
                    "--penalties");
}

static mgl_status read_program(mgl_model *model, const mgl_open_options *options, mgl_error *err)
{
    mgl_status status = mgl_schedule_read(options->schedule, &model->made, err);
    if (!status)
        status = check_sequences(model->made, options->schedule, options, err);
    return status ? status : check_penalties(model, model->made, options->schedule, options, err);
}

/* Lowers the program for a folder and replaces the model's program. Uses a tuned entry unless
 * `no_tuned` is set. */
static mgl_status lower_program(mgl_model *model, const mgl_device *machine,
                                const mgl_open_options *options, bool exact, bool no_tuned,
                                mgl_tuned_report *report, mgl_error *err)
{
    mgl_lower_request request = {
        .dtype = options->dtype,
        .config = options->config,
        .capacity = options->capacity,
        .wanted = options->wanted,
        .sequences = options->sequences,
        .fewer = options->fewer != 0,
        .prompt = (int32_t)options->prompt,
        .reply = options->wanted > options->prompt ? options->wanted - (int32_t)options->prompt : 0,
        .penalties = wants_penalties(model, options),
        .device = machine->name,
        .no_tuned = no_tuned,
        .exact = exact,
        .unproved = true};
    mgl_program *made;
    mgl_status status = mgl_pipeline_lower_tuned(model->checkpoint->graph, &machine->target,
                                                 &request, &made, report, err);
    if (status)
        return status;
    mgl_program_free(model->made);
    model->made = made;
    model->program = made;
    return MGL_OK;
}

static mgl_status make_program(mgl_model *model, const mgl_device *machine,
                               const mgl_open_options *options, mgl_error *err)
{
    if (!options->schedule)
        return lower_program(model, machine, options, false, options->no_tuned, &model->tuned, err);
    mgl_status status = read_program(model, options, err);
    model->program = model->made;
    return status;
}

/* Opens a folder: finds the machine, imports the checkpoint and makes the program. */
static mgl_status open_folder(mgl_model *model, const char *path, const mgl_open_options *options,
                              mgl_device *machine, mgl_error *err)
{
    mgl_status status = mgl_pipeline_check_schedule(options->schedule, options->config,
                                                    options->dtype, options->capacity, err);
    if (!status)
        status = mgl_device_find(options->device, machine, err);
    if (!status)
        status = mgl_check_abort(&model->cancel->set, err);
    if (!status)
        status = mgl_import(path, &model->checkpoint, err);
    if (!status)
        status = mgl_check_abort(&model->cancel->set, err);
    if (!status)
        status = make_program(model, machine, options, err);
    return status;
}

/* Rejects options that differ from those with which the model was compiled. */
static mgl_status check_compiled(const mgl_program *program, const char *path,
                                 const mgl_open_options *options, mgl_error *err)
{
    const char *dtype = mgl_dtype_name(program->weight_dtype);
    if (options->config || options->schedule)
        return mgl_fail(
            err, MGL_USAGE, path,
            "is compiled, so its schedule is fixed; leave out %s, or compile the model again",
            options->schedule ? "schedule" : "config");
    if (options->dtype && strcmp(options->dtype, "auto") != 0 && strcmp(options->dtype, dtype) != 0)
        return mgl_fail(err, MGL_USAGE, path,
                        "is compiled for dtype %s; for %.40s compile the model again", dtype,
                        options->dtype);
    if (options->capacity < 0)
        return mgl_fail(err, MGL_USAGE, "capacity", "is negative");
    if (options->capacity > program->limits.capacity)
        return mgl_fail(
            err, MGL_USAGE, path,
            "is compiled for a capacity of %d positions; for %d compile the model again",
            program->limits.capacity, (int)options->capacity);
    return MGL_OK;
}

/* Longrope: rejects a smaller cache that needs other frequencies than the compiled ones. */
static mgl_status check_rope(const mgl_model *model, const char *path, int32_t capacity,
                             mgl_error *err)
{
    const mgl_graph *graph = model->checkpoint->graph;
    const int32_t compiled = model->image->program->limits.capacity;
    if (!capacity ||
        mgl_graph_frequencies(graph, capacity) == mgl_graph_frequencies(graph, compiled))
        return MGL_OK;
    return mgl_fail(
        err, MGL_USAGE, path,
        "is compiled with longrope's factors for more than %d positions; for a capacity "
        "of %d compile the model again",
        (int)graph->short_positions, (int)capacity);
}

/* Opens a compiled model: its checkpoint, its program and a machine for it. */
static mgl_status open_compiled(mgl_model *model, const char *path, const mgl_open_options *options,
                                mgl_device *machine, mgl_error *err)
{
    mgl_status status = mgl_import(path, &model->checkpoint, err);
    if (!status)
        status = mgl_image_open(path, &model->image, err);
    if (!status)
        status = check_compiled(model->image->program, path, options, err);
    if (!status)
        status = check_rope(model, path, options->capacity, err);
    if (!status)
        status = check_sequences(model->image->program, path, options, err);
    if (!status)
        status = check_penalties(model, model->image->program, path, options, err);
    if (!status)
        status = mgl_check_abort(&model->cancel->set, err);
    if (!status)
        status = mgl_device_find_for(model->image, options->device, machine, err);
    model->tuned.capacity = options->capacity; /* may be less than the program's */
    model->program = model->image ? model->image->program : NULL;
    if (!status && model->image)
        mgl_tuned_report_describe(&model->tuned, model->checkpoint->graph,
                                  model->image->program->limits.capacity);
    return status;
}

static mgl_status open_machine(mgl_model *model, const mgl_device *machine,
                               const mgl_open_options *options, mgl_error *err)
{
    mgl_vm_options vm = {.kind = machine->kind,
                         .device = machine->device,
                         .deadline_ms = options->deadline_ms,
                         .threads = options->threads,
                         .verify = options->verify,
                         .strict_formats = options->strict_formats,
                         .abort = &model->cancel->set,
                         .on_stage = options->on_stage,
                         .stage_user = options->stage_user};
    if (model->image) {
        vm.weights = model->image->weights;
        vm.kernels = model->image->kernels;
        vm.kernel_count = model->image->kernel_count;
    }
    mgl_status status = mgl_vm_open(model->program, model->checkpoint->graph, &vm, &model->vm, err);
    if (status == MGL_REJECTED && options->schedule) /* it reports lines without a file */
        mgl_error_name(err, options->schedule);
    return status;
}

/* Lowers again after the program of a tuned entry failed to open. The first retry drops the
 * positions beyond the requested capacity, because memory may not suffice. The next drops the
 * entry. */
static mgl_status lower_again(mgl_model *model, const mgl_device *machine,
                              const mgl_open_options *options, const mgl_error *why, mgl_error *err)
{
    mgl_tuned_report report;
    char entry[sizeof model->program->tuned];
    bool roomy = model->program->limits.capacity > model->tuned.capacity;
    memcpy(entry, model->program->tuned, sizeof entry);
    mgl_status status = lower_program(model, machine, options, true, !roomy, &report, err);
    if (!status && !model->program->tuned[0])
        mgl_tuned_report_add(&model->tuned, entry, why);
    return status;
}

/* Whether fewer sequences, and so a smaller KV cache, may help. */
static bool needs_fewer(const mgl_model *model, const mgl_open_options *options, mgl_status status,
                        const mgl_error *why)
{
    const bool full = status == MGL_NO_MEMORY ||
                      (status == MGL_DEVICE && strstr(why->message, "CUDA_ERROR_OUT_OF_MEMORY"));
    return full && options->fewer && model->program->limits.sequences > 1;
}

/* Opens the machine. On failure, retries without the tuned entry or with fewer sequences, so a
 * tuned entry never prevents a model from opening. */
static mgl_status open_program(mgl_model *model, const mgl_device *machine,
                               const mgl_open_options *options, mgl_error *err)
{
    mgl_error why = {0};
    mgl_open_options less = *options;
    mgl_status status = open_machine(model, machine, options, &why);
    while (status && status != MGL_INTERRUPTED && model->made && !options->schedule) {
        if (model->program->tuned[0]) {
            status = lower_again(model, machine, &less, &why, err);
        } else if (needs_fewer(model, options, status, &why)) {
            less.sequences = model->program->limits.sequences / 2;
            status =
                lower_program(model, machine, &less, false, options->no_tuned, &model->tuned, err);
        } else {
            break;
        }
        if (status)
            return status;
        status = open_machine(model, machine, options, &why);
    }
    if (status && err)
        *err = why;
    return status;
}

/* The whole pipeline. mgl_vm_open validates the program before anything else. */
static mgl_status open_model(mgl_model *model, const char *path, const mgl_open_options *options,
                             mgl_error *err)
{
    double start = mgl_clock_s();
    mgl_device machine;
    mgl_vm_facts facts;
    if (options->threads < 0)
        return mgl_fail(err, MGL_USAGE, "threads", "is negative");
    if (options->sequences < 0 || options->sequences > MGL_MAX_BATCH)
        return mgl_fail(err, MGL_USAGE, "sequences",
                        "must not be %d; one launch generates 1 to %d replies",
                        (int)options->sequences, MGL_MAX_BATCH);
    if (options->penalties < 0 || options->penalties > 2)
        return mgl_fail(err, MGL_USAGE, "penalties", "must be 0, 1 or 2");
    if (options->prompt < 0 || options->prompt > INT32_MAX)
        return mgl_fail(err, MGL_USAGE, "prompt",
                        "must be a number of tokens from 0 to 2147483647");
    bool compiled;
    mgl_status status = mgl_check_abort(&model->cancel->set, err);
    if (!status)
        status = mgl_mega_stands(path, &compiled, err);
    if (!status)
        status = compiled ? open_compiled(model, path, options, &machine, err)
                          : open_folder(model, path, options, &machine, err);
    double imported = mgl_clock_s();
    if (!status)
        status = open_program(model, &machine, options, err);
    if (status)
        return status;
    if (!model->tuned.capacity)
        model->tuned.capacity = model->program->limits.capacity;
    mgl_vm_get_facts(model->vm, &facts);
    snprintf(model->device, sizeof model->device, "%s",
             machine.kind == MGL_VM_CPU ? "cpu" : facts.device);
    model->driver_s = machine.driver_s + facts.driver_s;
    model->import_s = imported - start - machine.driver_s;
    model->open_s = mgl_clock_s() - start;
    return MGL_OK;
}

mgl_status mgl_model_open(const char *path, const mgl_open_options *options, mgl_model **out,
                          mgl_error *err)
{
    mgl_open_options known = {0};
    if (out)
        *out = NULL;
    if (!path || !out)
        return mgl_fail_null(err, __func__, path ? "out" : "path");
    mgl_status status =
        options ? mgl_sized_read(&known, sizeof known, options, "mgl_open_options", err) : MGL_OK;
    if (status)
        return status;
    mgl_model *model = mgl_alloc_zero(1, sizeof *model);
    if (!model)
        return mgl_fail_memory(err, sizeof *model);
    model->cancel = known.cancel ? known.cancel : &model->own;
    model->on_stage = known.on_stage;
    model->stage_user = known.stage_user;
    status = open_model(model, path, &known, err);
    if (status)
        mgl_model_close(model);
    else
        *out = model;
    return status;
}

void mgl_model_close(mgl_model *model)
{
    if (!model)
        return;
    mgl_vm_close(model->vm);
    mgl_program_free(model->made);
    mgl_image_close(model->image);
    mgl_checkpoint_close(model->checkpoint);
    mgl_ids_clear(&model->chat_ends);
    mgl_free(model);
}

static mgl_model_facts gather_facts(const mgl_model *model)
{
    mgl_vm_facts vm;
    mgl_vm_get_facts(model->vm, &vm);
    return (mgl_model_facts){.device = model->device,
                             .dtype = mgl_dtype_name(model->program->weight_dtype),
                             .vocab = model->program->geometry.vocab,
                             .max_positions = model->checkpoint->graph->max_positions,
                             .capacity = model->tuned.capacity,
                             .queues = model->program->queue_count,
                             .sequences = model->program->limits.sequences,
                             .load_s = model->open_s - model->driver_s - vm.compile_s,
                             .compile_s = vm.compile_s,
                             .driver_s = model->driver_s,
                             .import_s = model->import_s,
                             .check_s = vm.check_s,
                             .weights_s = vm.pack_s,
                             .kernel_s = vm.kernel_s,
                             .weight_bytes = vm.tape_bytes + vm.const_bytes,
                             .instructions = vm.instructions,
                             .threads = vm.threads,
                             .memory_bytes = vm.memory_bytes,
                             .cache_bytes = vm.instructions ? vm.kv_bytes : 0,
                             .scratch_bytes = vm.scratch_bytes,
                             .tuned = model->program->tuned[0] ? model->program->tuned : NULL,
                             .note = model->tuned.note[0] ? model->tuned.note : NULL};
}

mgl_status mgl_model_get_facts(const mgl_model *model, mgl_model_facts *out, mgl_error *err)
{
    if (!model || !out)
        return mgl_fail_null(err, __func__, model ? "out" : "model");
    mgl_status status = mgl_sized_check(out, sizeof out->size, "mgl_model_facts", err);
    if (status)
        return status;
    mgl_model_facts facts = gather_facts(model);
    mgl_sized_write(out, &facts, sizeof facts);
    return MGL_OK;
}

void mgl_model_cancel(mgl_model *model)
{
    if (model)
        mgl_cancel_set(model->cancel);
}
