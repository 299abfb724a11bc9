/*
 * Shared code of the subcommands of `megalith kernel` that pass a text through the gates (bench,
 * promote, verify and the proposal loop): reading the text with its tunables, opening the device
 * that tests the text, and printing the verdict.
 */
#ifndef MGL_CLI_KERNEL_TEXT_H
#define MGL_CLI_KERNEL_TEXT_H

#include "autotune/kernels/trial/evaluate.h"
#include "cli/kernel/kernel.h"

#define MGL_CLI_KERNEL_TEXT_OPTIONS(X)                                                             \
    X(file, text, "--text", "FILE", 0, 0, "the whole text of the unit")                            \
    X(file, before, "--before", "FILE", 0, 0, "text from which it was made (the original)")        \
    X(text, region, "--region", "launch|macros|device", 0, 0,                                      \
      "the only region that may differ (all)")                                                     \
    X(list, tune, "--tune", "NAME=N", 0, 0, "set a tunable of the launch region (its first value)")

#define MGL_CLI_KERNEL_DEVICE_OPTIONS(X)                                                           \
    X(text, shape, "--shape", MGL_SHAPE_NAMES, 0, 0,                                               \
      "shape of the model in which the text must gain (the shape of the op's context)")            \
    X(text, workloads, "--workloads", "LIST", 0, 0,                                                \
      "workloads of that model (ctx=0,2048;batch=1)")                                              \
    X(text, checkpoint, "--checkpoint", "F", 0, 0,                                                 \
      "a model with weights; replies of this model are compared too")                              \
    X(text, device_lock, "--device-lock", "FILE", 0, 0,                                            \
      "lock file, with which several commands take turns on the device (none)")                    \
    X(flag, no_sandbox, "--no-sandbox", NULL, 0, 0, "run the text without a sandbox")

/* The values of the flags above. */
typedef struct mgl_cli_kernel_given {
    const char *text, *before, *region;
    const char *const *tune; /* (tune_count) */
    size_t tune_count;
    const char *device, *shape, *workloads, *checkpoint, *device_lock;
    bool no_sandbox;
} mgl_cli_kernel_given;
#define MGL_CLI_KERNEL_GIVEN(o)                                                                    \
    {                                                                                              \
        .text = (o)->text.value, .before = (o)->before.value, .region = (o)->region.value,         \
        .tune = (o)->tune.values, .tune_count = (o)->tune.count, .device = (o)->device.value,      \
        .shape = (o)->shape.value, .workloads = (o)->workloads.value,                              \
        .checkpoint = (o)->checkpoint.value, .device_lock = (o)->device_lock.value,                \
        .no_sandbox = (o)->no_sandbox.given                                                        \
    }

/* A text and the text that it replaces, as read. Zero-initialize; release with
 * mgl_cli_kernel_text_clear. */
typedef struct mgl_cli_kernel_text {
    mgl_kernel_candidate candidate;
    mgl_kernel_value values[MGL_KERNEL_VALUES];
    char names[MGL_KERNEL_VALUES][40];
    char *text, *before; /* owned */
} mgl_cli_kernel_text;
mgl_status mgl_cli_kernel_text_read(const char *unit, const mgl_cli_kernel_given *given,
                                    mgl_cli_kernel_text *out, mgl_error *err);
void mgl_cli_kernel_text_clear(mgl_cli_kernel_text *text);
/* Opens the device of the gates. If `given->device` is NULL, `standard` is used. */
mgl_status mgl_cli_kernel_device_open(const mgl_cli_kernel_given *given, const char *standard,
                                      mgl_trial_depth depth, mgl_kernel_device *out,
                                      mgl_error *err);

/* Prints a verdict and its hint as two lines. */
void mgl_cli_kernel_tell_verdict(const mgl_trial_verdict *verdict, const char *hint);
/* Prints the findings of the gates, without the outcome, as lines. */
void mgl_cli_kernel_tell_gates(const mgl_kernel_findings *verdict);
/* Prints the verdict as lines or as JSON, and sets the exit code. `promoted`: the text was
 * promoted. */
void mgl_cli_kernel_tell(const mgl_kernel_unit *unit, const mgl_kernel_findings *verdict,
                         bool promoted, bool json);

#endif
