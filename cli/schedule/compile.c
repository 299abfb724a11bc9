/*
 * megalith compile MODEL: compiles a model to one file that `run` maps, with the program, the
 * packed weights and the kernel.
 */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include "base/json_out.h"

#include "schedule/program.h"

#include <inttypes.h>
#include <stdio.h>

#define COMPILE_OPTIONS(X)                                                                         \
    X(text, output, "-o", "F.mega", 0, 0, "the file to write (required)")                          \
    X(text, target, "--target", "live|ARCH:QUEUES", 0, 0,                                          \
      "sm_90a:132, cpu:1 or the live device (live)")                                               \
    MGL_CLI_DTYPE_OPTION(X)                                                                        \
    X(int, capacity, "--capacity", "N", 1, MGL_MAX_CAPACITY,                                       \
      "positions of the KV cache (4096, within the model's limit)")                                \
    X(int, sequences, "--sequences", "N", 1, MGL_MAX_SEQUENCES,                                    \
      "largest number of replies in one launch (1); docs/schedules.md describes many replies")     \
    MGL_CLI_CONFIG_OPTION(X)                                                                       \
    MGL_CLI_PROMPT_OPTION(X)                                                                       \
    MGL_CLI_PENALTIES_OPTION(X)                                                                    \
    X(file, schedule, "--schedule", "F.mls", 0, 0,                                                 \
      "compile this schedule instead of lowering one")                                             \
    MGL_CLI_STRICT_OPTION(X)                                                                       \
    MGL_CLI_TUNED_OPTION(X)                                                                        \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(COMPILE_OPTIONS)

static void print_text(const char *path, const mgl_compile_report *report)
{
    mgl_cli_printf("%-10s%s\n%-10s%" PRIu64 "\n%-10s%s\n%-10s%s\n%-10s%d\n%-10s%d\n%-10s%s\n",
                   "file", path, "bytes", report->bytes, "target", report->target, "dtype",
                   report->dtype, "capacity", (int)report->capacity, "sequences",
                   (int)report->sequences, "kernel", report->kernel ? "yes" : "no");
    if (report->tuned[0])
        mgl_cli_printf("%-10s%s\n", "tuned", report->tuned);
    mgl_cli_say_lines("compile", report->note);
    mgl_cli_say_lines("compile", report->left_out);
}

static void say_closing_line(const mgl_compile_report *report)
{
    mgl_cli_flush();
    if (report->kernel)
        mgl_cli_say("compile", "packed and written in %s, kernel in %s",
                    mgl_cli_format_time(report->pack_s).text,
                    mgl_cli_format_time(report->compile_s).text);
    else
        mgl_cli_say("compile", "packed and written in %s",
                    mgl_cli_format_time(report->pack_s).text);
}

/* The reasons for a missing kernel or tokenizer, and the tuned entries that were left out. */
static void put_notes(mgl_json_out *out, const mgl_compile_report *report)
{
    char note[sizeof report->note + sizeof report->left_out];
    snprintf(note, sizeof note, "%s%s%s", report->note,
             report->note[0] && report->left_out[0] ? "\n" : "", report->left_out);
    mgl_json_out_string(out, "note", note[0] ? note : NULL);
}

static void print_json(const char *model, const char *path, const mgl_compile_report *report)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.compile/1");
    mgl_json_out_string(&out, "model", model);
    mgl_json_out_string(&out, "file", path);
    mgl_json_out_int(&out, "bytes", (int64_t)report->bytes);
    mgl_json_out_string(&out, "target", report->target);
    mgl_json_out_string(&out, "dtype", report->dtype);
    mgl_json_out_int(&out, "capacity", report->capacity);
    mgl_json_out_int(&out, "sequences", report->sequences);
    mgl_json_out_bool(&out, "kernel", report->kernel);
    mgl_json_out_string(&out, "tuned", report->tuned[0] ? report->tuned : NULL);
    put_notes(&out, report);
    mgl_json_out_object(&out, "timing");
    mgl_json_out_real(&out, "pack_s", report->pack_s);
    mgl_json_out_real(&out, "compile_s", report->compile_s);
    mgl_json_out_close_object(&out);
    mgl_cli_end_json(&out);
}

static mgl_status compile(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_compile_options how = {.size = sizeof how,
                               .target = o->target.value,
                               .dtype = o->dtype.value,
                               .config = o->config.value,
                               .schedule = o->schedule.value,
                               .capacity = (int32_t)o->capacity.value,
                               .sequences = (int32_t)o->sequences.value,
                               .no_tuned = o->no_tuned.given,
                               .strict_formats = o->strict_formats.given,
                               .penalties = o->penalties.given,
                               .prompt = o->prompt_tokens.value,
                               .cancel = mgl_cli_cancel(),
                               .on_stage = mgl_cli_show_stage};
    mgl_compile_report report = {.size = sizeof report};
    if (!o->output.given)
        return mgl_fail(err, MGL_USAGE, "-o", "is missing; give the file to write");
    mgl_status status = mgl_cli_check_file(o->output.value, err);
    if (!status)
        status = mgl_model_compile(operand, &how, o->output.value, &report, err);
    if (status)
        return status;
    if (o->json.given)
        print_json(operand, o->output.value, &report);
    else
        print_text(o->output.value, &report);
    if (!o->quiet.given)
        say_closing_line(&report);
    return MGL_OK;
}

const mgl_cli_verb mgl_cli_compile_verb = {
    .name = "compile",
    .operand = "MODEL",
    .summary = "compiles a model into one file that loads at once",
    .example = "  megalith compile tests/models/tales-5m --target cpu:1 -o tales.mega\n"
               "  megalith run tales.mega --prompt \"Once there was\"",
    .overlaid = true,
    MGL_CLI_VERB_OPTIONS,
    .run = compile,
};
