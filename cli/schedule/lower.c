/*
 * megalith lower MODEL: prints the schedule that `run` would use as text, to read, edit, check and
 * run.
 */
#include "cli/cli.h"
#include "cli/schedule/warning.h"
#include "cli/signals.h"

#include "importer/checkpoint.h"
#include "vm/pipeline/pipeline.h"

#define LOWER_OPTIONS(X)                                                                           \
    X(text, target, "--target", "ARCH:QUEUES", 0, 0, "sm_90a:132, cpu:1 (the live device)")        \
    MGL_CLI_DTYPE_OPTION(X)                                                                        \
    X(int, rows, "--rows", "N", 1, MGL_MAX_ROWS, "rows of one epoch (from the config)")            \
    X(int, sequences, "--sequences", "N", 1, MGL_MAX_SEQUENCES,                                    \
      "largest number of replies in one launch (1); docs/schedules.md describes many replies")     \
    X(int, capacity, "--capacity", "N", 1, MGL_MAX_CAPACITY,                                       \
      "positions of the KV cache (4096, within the model's limit)")                                \
    MGL_CLI_PROMPT_OPTION(X)                                                                       \
    MGL_CLI_PENALTIES_OPTION(X)                                                                    \
    X(file, config, "--config", "FILE", 0, 0, "a ScheduleConfig")                                  \
    X(text, device_name, "--device-name", "NAME", 0, 0,                                            \
      "use a tuned schedule of this device, such as 'NVIDIA H200' (the live device, or cpu)")      \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    X(text, output, "-o", "F.mls", 0, 0, "write to this file (default: standard output)")
MGL_CLI_OPTIONS(LOWER_OPTIONS)

static mgl_status write_program(const struct options *o, const mgl_program *program, mgl_error *err)
{
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    mgl_status status = mgl_cli_write_text(o->output.value, &text, err);
    mgl_text_clear(&text);
    return status;
}

static mgl_status lower(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_lower_request request = {.dtype = o->dtype.value,
                                 .config = o->config.value,
                                 .rows = (int32_t)o->rows.value,
                                 .capacity = (int32_t)o->capacity.value,
                                 .sequences = (int32_t)o->sequences.value,
                                 .prompt = (int32_t)o->prompt_tokens.value,
                                 .penalties = o->penalties.given,
                                 .no_tuned = o->no_tuned.given};
    mgl_checkpoint *checkpoint = NULL;
    mgl_program *program = NULL;
    mgl_tuned_report tuned;
    mgl_device machine;
    mgl_status status = mgl_target_find_device(o->target.value, &machine, err);
    request.device = o->device_name.given ? o->device_name.value : machine.name;
    if (!status)
        status = mgl_import(operand, &checkpoint, err);
    if (!status && o->output.given)
        status = mgl_cli_check_output(o->output.value, checkpoint, o->config.value, err);
    if (!status)
        status = mgl_pipeline_lower_tuned(checkpoint->graph, &machine.target, &request, &program,
                                          &tuned, err);
    if (!status)
        mgl_cli_say_lines("lower", tuned.note);
    if (!status)
        status = mgl_cli_warn_machine("lower", program, err);
    if (!status)
        status = mgl_cli_check_cancel(err);
    if (!status)
        status = write_program(o, program, err);
    mgl_program_free(program);
    mgl_checkpoint_close(checkpoint);
    return status;
}

const mgl_cli_verb mgl_cli_lower_verb = {
    .name = "lower",
    .operand = "MODEL",
    .summary = "prints the schedule that runs the model, as text",
    .example = "  megalith lower tests/models/tales-5m --target sm_90a:132 -o tales.mls",
    MGL_CLI_VERB_OPTIONS,
    .run = lower,
};
