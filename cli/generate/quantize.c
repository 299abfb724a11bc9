/*
 * megalith quantize MODEL: writes a quantized copy of a model, a folder in the layout of
 * compressed-tensors.
 */
#include "cli/cli.h"
#include "cli/generate/calibration.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"
#include "importer/layout.h"
#include "importer/mega.h"
#include "quantize/quantize.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DEFAULT_GROUP = 128, /* of 4 bits */
    FEW_TOKENS = 1000    /* of a calibration; the program warns of fewer */
};

#define QUANTIZE_OPTIONS(X)                                                                        \
    X(text, output, "-o", "DIR", 0, 0, "the new folder (required)")                                \
    X(text, bits, "--bits", "8|4|fp8", 0, 0, "codes of the matrices of the layers (8)")            \
    X(text, method, "--method", "rtn|clip|gptq", 0, 0,                                             \
      "rtn: round to nearest; clip: with the scale of the least squared error; gptq: with "        \
      "compensation of the output error, calibrated by texts (rtn)")                               \
    X(real, mean, "--bits-per-weight", "X", 4, 9,                                                  \
      "8 bits for the most sensitive matrices of the layers, up to this mean; calibrated by "      \
      "texts")                                                                                     \
    X(file, texts, "--texts", "F.json", 0, 0,                                                      \
      "texts for the calibration: JSON array or JSON Lines (texts of the program, in English)")    \
    X(int, samples, "--samples", "N", 1, 1 << 16, "at most this many samples of the texts (128)")  \
    X(int, length, "--length", "N", 1, 1 << 20, "at most this many tokens a sample (512)")         \
    X(real, limit, "--time-limit", "S", 1, 1e7,                                                    \
      "seconds; then the work stops, and the same command continues it later (no limit)")          \
    X(int, group, "--group", "N", MGL_GROUP_UNIT, MGL_MAX_WEIGHT_GROUP,                            \
      "columns that share a scale, a multiple of 16; a GPU takes 16 and multiples of 32 (4 bits: " \
      "128; "                                                                                      \
      "others: the whole row)")                                                                    \
    X(flag, sym, "--sym", NULL, 0, 0, "integers without zero points (the default)")                \
    X(flag, asym, "--asym", NULL, 0, 0, "integers with zero points; fp8 has none")                 \
    X(text, head, "--head", "8|4|fp8|keep", 0, 0,                                                  \
      "codes of the head; keep: the head is not quantized (keep)")                                 \
    X(text, scales, "--scales", "bf16|f16|f32", 0, 0,                                              \
      "number format of the scales (the number format of the model)")                              \
    MGL_CLI_QUIET_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(QUANTIZE_OPTIONS)

/* ---- flags ----------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    mgl_weight_code code;
} code_rows[] = {{"8", MGL_CODE_INT8}, {"4", MGL_CODE_INT4}, {"fp8", MGL_CODE_E4M3}};

static mgl_status parse_code(const char *flag, const char *word, const char *supported,
                             mgl_weight_code *out, mgl_error *err)
{
    for (size_t i = 0; i < sizeof code_rows / sizeof *code_rows; i++)
        if (!strcmp(word, code_rows[i].word)) {
            *out = code_rows[i].code;
            return MGL_OK;
        }
    return mgl_fail(err, MGL_USAGE, flag, "unknown number of bits: %.40s; supported: %s", word,
                    supported);
}

/* The format of a code. */
static mgl_weight_format format_of(const struct options *o, mgl_weight_code code)
{
    const int32_t group = o->group.given          ? (int32_t)o->group.value
                          : code == MGL_CODE_INT4 ? DEFAULT_GROUP
                                                  : MGL_GROUP_ALL;
    return (mgl_weight_format){.code = code,
                               .group = group,
                               .group_rows = 1,
                               .zeros = o->asym.given && code != MGL_CODE_E4M3};
}

static mgl_status read_formats(const struct options *o, mgl_quantize_request *r, mgl_error *err)
{
    const char *head = o->head.given ? o->head.value : "keep";
    mgl_weight_code code = o->mean.given ? MGL_CODE_INT4 : MGL_CODE_INT8;
    mgl_weight_code head_code = MGL_CODE_F32;
    mgl_status status = MGL_OK;
    if (o->bits.given)
        status = parse_code("--bits", o->bits.value, "8, 4 and fp8", &code, err);
    if (!status && strcmp(head, "keep") != 0)
        status = parse_code("--head", head, "8, 4, fp8 and keep", &head_code, err);
    if (status)
        return status;
    r->layers = format_of(o, code);
    if (head_code != MGL_CODE_F32)
        r->head = format_of(o, head_code);
    if (o->asym.given && code == MGL_CODE_E4M3)
        return mgl_fail(err, MGL_USAGE, "--asym",
                        "fp8 has no zero points; use --bits 8 or --bits 4, or leave out --asym");
    return MGL_OK;
}

static mgl_status read_scales(const struct options *o, mgl_quantize_request *r, mgl_error *err)
{
    mgl_dtype dtype = MGL_F32;
    r->own_scales = !o->scales.given;
    if (r->own_scales)
        return MGL_OK;
    if (!mgl_dtype_parse(o->scales.value, &dtype) || dtype == MGL_I32)
        return mgl_fail(err, MGL_USAGE, "--scales",
                        "unknown number format: %.40s; supported: bf16, f16 and f32",
                        o->scales.value);
    r->layers.scales = r->head.scales = dtype;
    return MGL_OK;
}

static bool needs_texts(const struct options *o, const mgl_quantize_request *r)
{
    return r->method == MGL_METHOD_GPTQ || o->mean.given || o->texts.given;
}

/* The flags of the method and of the calibration. */
static mgl_status read_method(const struct options *o, mgl_quantize_request *r, mgl_error *err)
{
    if (o->method.given && !mgl_quantize_method_parse(o->method.value, &r->method))
        return mgl_fail(err, MGL_USAGE, "--method",
                        "unknown method: %.40s; supported: rtn, clip, gptq", o->method.value);
    if (o->texts.given && r->method == MGL_METHOD_RTN && !o->mean.given)
        return mgl_fail(err, MGL_USAGE, "--texts",
                        "round to nearest uses no texts; give --method clip, --method gptq or "
                        "--bits-per-weight");
    if (!needs_texts(o, r) && (o->samples.given || o->length.given || o->limit.given))
        return mgl_fail(err, MGL_USAGE,
                        o->samples.given  ? "--samples"
                        : o->length.given ? "--length"
                                          : "--time-limit",
                        "applies to a calibration; give --method gptq, --bits-per-weight, or "
                        "--method clip with --texts");
    if (o->mean.given && r->layers.code != MGL_CODE_INT4)
        return mgl_fail(err, MGL_USAGE, "--bits-per-weight",
                        "chooses between 4 and 8 bits; use --bits 4, or leave out --bits");
    r->bits_per_weight = o->mean.given ? o->mean.value : 0;
    r->time_limit_s = o->limit.given ? o->limit.value : 0;
    return MGL_OK;
}

/* Reads the samples of a calibration. */
static mgl_status read_samples(const char *model, const struct options *o, mgl_quantize_request *r,
                               mgl_cli_calibration *calibration, mgl_error *err)
{
    if (!needs_texts(o, r))
        return MGL_OK;
    mgl_status status = mgl_cli_calibration_read(
        model, o->texts.given ? o->texts.value : NULL,
        o->samples.given ? (size_t)o->samples.value : MGL_CLI_CALIBRATION_SAMPLES,
        o->length.given ? (size_t)o->length.value : MGL_CLI_CALIBRATION_LENGTH, calibration, err);
    r->samples = calibration->samples;
    r->sample_count = calibration->count;
    if (!status && !o->quiet.given)
        mgl_cli_say("quantize", "calibration with %zu samples, %zu tokens%s", calibration->count,
                    calibration->tokens,
                    calibration->tokens < FEW_TOKENS
                        ? "; so few tokens can make the model worse than round to nearest: give "
                          "more or longer texts"
                        : "");
    return status;
}

static mgl_status read_flags(const struct options *o, mgl_quantize_request *r, mgl_error *err)
{
    if (!o->output.given)
        return mgl_fail(err, MGL_USAGE, "-o", "is missing; give the new folder");
    if (o->sym.given && o->asym.given)
        return mgl_fail(err, MGL_USAGE, "--sym", "cannot be given with --asym; give one of them");
    if (o->group.given && o->group.value % MGL_GROUP_UNIT)
        return mgl_fail(err, MGL_USAGE, "--group",
                        "not a multiple of 16: %d; allowed: multiples of 16 up to 1024",
                        (int)o->group.value);
    mgl_status status = read_formats(o, r, err);
    if (!status)
        status = read_method(o, r, err);
    return status ? status : read_scales(o, r, err);
}

/* ---- output ---------------------------------------------------------------------------------- */

static mgl_status show(void *user, uint64_t done, uint64_t total, mgl_error *err)
{
    (void)user;
    mgl_cli_show("weights", MGL_CLI_COUNT_BYTES, done, total);
    return mgl_cli_check_cancel(err);
}

/* The memory that has been printed. */
typedef struct shown {
    bool is_quiet;
    uint64_t bytes;
} shown;

/* Prints the memory before the work starts. A calibration of several passes calls this for each
 * pass. `user`: a shown. */
static void show_memory(void *user, uint64_t bytes, uint64_t available)
{
    shown *s = user;
    if (!s->is_quiet && bytes > s->bytes)
        mgl_cli_say("quantize", "the calibration needs %.1f MB of memory; available: %.1f MB",
                    (double)bytes / 1e6, (double)available / 1e6);
    s->bytes = bytes > s->bytes ? bytes : s->bytes;
}

/* Prints a format without the dtype of its scales. */
static const char *print_format(mgl_weight_format f, char text[MGL_WEIGHT_FORMAT_TEXT])
{
    char group[24] = "row";
    if (!mgl_weight_format_is_scaled(f))
        return "not quantized";
    if (f.group != MGL_GROUP_ALL)
        snprintf(group, sizeof group, "group %d", (int)f.group);
    snprintf(text, MGL_WEIGHT_FORMAT_TEXT, "%s %s%s", mgl_weight_code_name(f.code), group,
             f.zeros ? " zeros" : "");
    return text;
}

static double bits_of(const mgl_quantize_report *report)
{
    return report->weights ? 8 * (double)report->codes / (double)report->weights : 0;
}

static void print_text(const char *folder, const mgl_quantize_request *r,
                       const mgl_quantize_report *report)
{
    char layers[MGL_WEIGHT_FORMAT_TEXT], head[MGL_WEIGHT_FORMAT_TEXT];
    mgl_cli_printf("%-10s%s\n%-10s%s\n%-10s%s", "folder", folder, "method",
                   mgl_quantize_method_name(r->method), "layers", print_format(r->layers, layers));
    if (report->wide)
        mgl_cli_printf("; int8 in %d %s", report->wide, report->wide == 1 ? "matrix" : "matrices");
    mgl_cli_printf("\n%-10s%s%s\n", "head", print_format(r->head, head),
                   report->untied ? "; no longer tied to the embedding" : "");
    mgl_cli_printf("%-10s%d, %.3f bits a weight\n%-10s%" PRIu64 " of %" PRIu64 "\n", "matrices",
                   report->matrices, bits_of(report), "bytes", report->written, report->read);
}

static void print_json(const char *model, const char *folder, const mgl_quantize_request *r,
                       const mgl_quantize_report *report, double seconds)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.quantize/1");
    mgl_json_out_string(&out, "model", model);
    mgl_json_out_string(&out, "folder", folder);
    mgl_json_out_string(&out, "method", mgl_quantize_method_name(r->method));
    mgl_json_out_int(&out, "samples", (int64_t)r->sample_count);
    mgl_json_out_string(&out, "layers", print_format(r->layers, text));
    mgl_json_out_string(&out, "head",
                        mgl_weight_format_is_scaled(r->head) ? print_format(r->head, text) : NULL);
    mgl_json_out_string(&out, "scales", r->own_scales ? NULL : mgl_dtype_name(r->layers.scales));
    mgl_json_out_int(&out, "matrices", report->matrices);
    mgl_json_out_int(&out, "matrices_int8", report->wide);
    mgl_json_out_real(&out, "bits_per_weight", bits_of(report));
    mgl_json_out_int(&out, "bytes_read", (int64_t)report->read);
    mgl_json_out_int(&out, "bytes", (int64_t)report->written);
    mgl_json_out_int(&out, "files", report->files);
    mgl_json_out_bool(&out, "untied", report->untied);
    mgl_json_out_object(&out, "timing");
    mgl_json_out_real(&out, "total_s", seconds);
    mgl_json_out_close_object(&out);
    mgl_cli_end_json(&out);
}

/* Removes the files of a folder, and the folder unless something is left. */
static void empty_folder(const char *folder)
{
    mgl_file_list list = {0};
    char path[PATH_MAX];
    if (!mgl_folder_list(folder, "", &list, NULL))
        for (size_t i = 0; i < list.count; i++)
            if (!mgl_file_path(path, NULL, "%s/%s", folder, list.names[i]))
                unlink(path); /* fails for a folder: chat templates, finished layers */
    mgl_file_list_clear(&list);
    rmdir(folder);
}

/* Called if the verb is ended while files get their names: a part of a model is not left. */
static void leave(const char *folder)
{
    char templates[PATH_MAX];
    if (!mgl_file_path(templates, NULL, "%s/" MGL_TEMPLATES_FOLDER, folder))
        empty_folder(templates);
    empty_folder(folder);
}

/* Whether all files in the folder will be those of this command. */
static mgl_status find_ownership(const char *folder, bool *owns, mgl_error *err)
{
    bool is_folder = false, stands = false;
    mgl_file_list list = {0};
    mgl_status status = mgl_folder_stands(folder, &is_folder, err);
    if (!status && is_folder)
        status = mgl_folder_list(folder, "", &list, err);
    else if (!status)
        status = mgl_file_stands(folder, &stands, err); /* a file, or a dangling link */
    *owns = !status && !stands &&
            (!list.count || (list.count == 1 && !strcmp(list.names[0], MGL_QUANTIZE_UNFINISHED)));
    mgl_file_list_clear(&list);
    return status;
}

static mgl_status run_request(const char *model, const struct options *o,
                              mgl_quantize_request *request, mgl_quantize_report *report,
                              mgl_error *err)
{
    mgl_cli_calibration calibration = {0};
    bool owns = false;
    mgl_status status = find_ownership(o->output.value, &owns, err);
    if (!status)
        status = read_samples(model, o, request, &calibration, err);
    if (!status && owns)
        mgl_cli_signals_leave(leave, o->output.value);
    if (calibration.count)
        mgl_cli_signals_hint("; the same command continues the calibration");
    if (!status)
        status = mgl_quantize(model, request, o->output.value, report, err);
    mgl_cli_signals_leave(NULL, NULL);
    mgl_cli_calibration_clear(&calibration);
    return status;
}

static mgl_status quantize(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const double start = mgl_clock_s();
    shown memory = {.is_quiet = o->quiet.given};
    mgl_quantize_request request = {.step = show, .memory = show_memory, .user = &memory};
    mgl_quantize_report report;
    mgl_status status = read_flags(o, &request, err);
    if (!status && !o->quiet.given && o->group.given && o->group.value != MGL_GROUP_UNIT &&
        o->group.value % (2 * MGL_GROUP_UNIT))
        mgl_cli_say("quantize",
                    "a GPU takes groups of %d columns and multiples of %d: with groups "
                    "of %d, the new model runs on a CPU only",
                    MGL_GROUP_UNIT, 2 * MGL_GROUP_UNIT, (int)o->group.value);
    if (!status)
        status = run_request(operand, o, &request, &report, err);
    if (status)
        return status;
    const double seconds = mgl_clock_s() - start;
    if (o->json.given)
        print_json(operand, o->output.value, &request, &report, seconds);
    else
        print_text(o->output.value, &request, &report);
    mgl_cli_flush();
    if (!o->quiet.given)
        mgl_cli_say("quantize", "quantized and written in %s", mgl_cli_format_time(seconds).text);
    return MGL_OK;
}

const mgl_cli_verb mgl_cli_quantize_verb = {
    .name = "quantize",
    .operand = "MODEL",
    .summary = "writes a model with 8-bit or 4-bit weights",
    .example = "  megalith quantize tests/models/tales-5m --bits 4 --group 64 -o tales-4\n"
               "  megalith run tales-4 --prompt \"Once there was\"",
    MGL_CLI_VERB_OPTIONS,
    .run = quantize,
    .notes =
        "The folder has the layout of compressed-tensors. A model that is quantized already is "
        "rejected. A calibration (gptq, --texts, --bits-per-weight) needs OpenBLAS: the packages "
        "libopenblas0 and liblapacke. After an interruption, the same command continues it.",
};
