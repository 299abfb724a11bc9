/*
 * megalith kernel ptx WORD: condenses, compares and scans the PTX of kernels. Also learns
 * optimization ideas from pairs of kernels, and stores them for the prompts of kernel sessions.
 */
#include "cli/kernel/loop.h"

#include "autotune/kernels/ptx/diff.h"
#include "autotune/kernels/ptx/ideas.h"
#include "autotune/kernels/ptx/scan.h"
#include "autotune/kernels/sessions/background.h"
#include "base/file.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

#define PTX_OPTIONS(X)                                                                             \
    X(file, base, "--base", "FILE.ptx", 0, 0,                                                      \
      "diff, learn: PTX to compare with; scan: PTX of the incumbent")                              \
    X(list, with, "--with", "FILE.ptx", 0, 0, "combine: PTX of another kernel; may be repeated")   \
    X(file, ideas, "--ideas", "FILE.json", 0, 0,                                                   \
      "learn, combine: the store of ideas, which prompts include (ideas.json in --folder)")        \
    MGL_CLI_FOLDER_OPTION(X)                                                                       \
    X(text, op, "--op", "NAME", 0, 0, "learn: the op of both kernels")                             \
    X(text, device, "--device", "NAME", 0, 0, "learn: the device of the measurement")              \
    X(real, ratio, "--ratio", "X", 0, 1000, "learn: measured ratio, old time / new time")          \
    X(text, arch, "--arch", "sm_NN", 0, 0, "combine: the target GPU (from .target)")               \
    X(flag, all, "--all", NULL, 0, 0, "diff: also print differences of counts only")               \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(PTX_OPTIONS)

/* ---- reading --------------------------------------------------------------------------------- */

static mgl_status read_module(const char *path, mgl_ptx *out, mgl_error *err)
{
    char *text = NULL;
    size_t length;
    *out = (mgl_ptx){0};
    mgl_status status = mgl_file_read(path, MGL_PTX_MAX_BYTES, &text, &length, err);
    if (!status)
        status = mgl_ptx_parse(text, length, path, out, err);
    mgl_free(text);
    return status;
}

static mgl_status read_condensed(const char *path, mgl_ptx_condensed *out, mgl_error *err)
{
    char *text = NULL;
    size_t length;
    *out = (mgl_ptx_condensed){0};
    mgl_status status = mgl_file_read(path, MGL_PTX_MAX_BYTES, &text, &length, err);
    if (!status)
        status = mgl_ptx_condense_text(text, length, path, out, err);
    mgl_free(text);
    return status;
}

static mgl_status require(bool given, const char *flag, mgl_error *err)
{
    return given ? MGL_OK : mgl_fail(err, MGL_USAGE, flag, "is missing");
}

static mgl_status print_text(mgl_text *text, mgl_error *err)
{
    mgl_status status = mgl_cli_write_text(NULL, text, err);
    mgl_text_clear(text);
    return status;
}

/* ---- condense and diff ----------------------------------------------------------------------- */

static mgl_status condense(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_ptx_condensed c;
    mgl_text text = {0};
    mgl_status status = read_condensed(operand, &c, err);
    if (!status && o->json.given) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.ptx/1");
        mgl_ptx_condensed_put(&c, &out);
        mgl_cli_end_json(&out);
    } else if (!status) {
        mgl_ptx_condensed_write(&c, &text);
        status = print_text(&text, err);
    }
    mgl_ptx_condensed_clear(&c);
    return status;
}

static void put_diff(const mgl_ptx_diff *diff, bool all)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.ptx_diff/1");
    mgl_ptx_diff_put(diff, all, &out);
    mgl_cli_end_json(&out);
}

static mgl_status read_pair(const char *operand, const struct options *o, mgl_ptx_condensed *before,
                            mgl_ptx_condensed *after, mgl_error *err)
{
    *before = *after = (mgl_ptx_condensed){0};
    mgl_status status = require(o->base.given, "--base", err);
    if (!status)
        status = read_condensed(o->base.value, before, err);
    return status ? status : read_condensed(operand, after, err);
}

static mgl_status diff(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_ptx_condensed before, after;
    mgl_ptx_diff found = {0};
    mgl_text text = {0};
    mgl_status status = read_pair(operand, o, &before, &after, err);
    if (!status)
        status = mgl_ptx_diff_make(&before, &after, &found, err);
    if (!status && o->json.given) {
        put_diff(&found, o->all.given);
    } else if (!status) {
        mgl_ptx_diff_write(&found, o->all.given, &text);
        status = print_text(&text, err);
    }
    mgl_ptx_diff_clear(&found);
    mgl_ptx_condensed_clear(&before);
    mgl_ptx_condensed_clear(&after);
    return status;
}

/* ---- learn and combine ----------------------------------------------------------------------- */

static mgl_status check_learn(const struct options *o, mgl_error *err)
{
    mgl_status status = require(o->op.given, "--op", err);
    if (!status)
        status = require(o->device.given, "--device", err);
    if (!status)
        status = require(o->ratio.given, "--ratio", err);
    if (!status && o->ratio.value <= 0)
        status = mgl_fail(err, MGL_USAGE, "--ratio", "old time / new time is above 0, not %g",
                          o->ratio.value);
    return status;
}

/* The path of the store of ideas. */
static mgl_status find_ideas(const struct options *o, bool write, mgl_text *out, mgl_error *err)
{
    return mgl_kernel_store_file(o->ideas.value, o->folder.value, MGL_BACKGROUND_IDEAS, write, out,
                                 err);
}

static mgl_status learn(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_ptx_condensed before = {0}, after = {0};
    mgl_text path = {0};
    size_t learned = 0, count = 0;
    mgl_status status = check_learn(o, err);
    if (!status)
        status = read_pair(operand, o, &before, &after, err);
    mgl_ptx_pair pair = {&before, &after, o->op.value, o->device.value, log(o->ratio.value)};
    if (!status)
        status = find_ideas(o, true, &path, err);
    if (!status)
        status = mgl_ptx_ideas_learn(path.bytes, &pair, &learned, &count, err);
    if (!status && o->json.given) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.ptx_learn/1");
        mgl_json_out_int(&out, "learned", (int64_t)learned);
        mgl_json_out_int(&out, "ideas", (int64_t)count);
        mgl_cli_end_json(&out);
    } else if (!status) {
        mgl_cli_printf("%zu ideas with this evidence, %zu in all\n", learned, count);
    }
    mgl_text_clear(&path);
    mgl_ptx_condensed_clear(&before);
    mgl_ptx_condensed_clear(&after);
    return status;
}

typedef struct forms {
    mgl_ptx_condensed condensed[MGL_CLI_MOST_LISTED + 1];
    mgl_ptx_source sources[MGL_CLI_MOST_LISTED + 1];
    size_t count;
} forms;

static mgl_status add_form(forms *f, const char *path, mgl_error *err)
{
    mgl_ptx_condensed *c = &f->condensed[f->count];
    f->sources[f->count++] = (mgl_ptx_source){path, c};
    return read_condensed(path, c, err);
}

/* Draws a random border for quoted data, which the data cannot contain by chance or intent. */
static mgl_status draw_border(uint64_t *out, mgl_error *err)
{
    return getrandom(out, sizeof *out, 0) == sizeof *out
               ? MGL_OK
               : mgl_fail_errno(err, NULL, "drawing the border of the prompt");
}

static mgl_status combine(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    forms f = {0};
    mgl_ptx_ideas ideas = {0};
    mgl_text text = {0}, path = {0};
    uint64_t border = 0;
    mgl_status status = draw_border(&border, err);
    if (!status)
        status = add_form(&f, operand, err);
    for (size_t i = 0; i < o->with.count && !status; i++)
        status = add_form(&f, o->with.values[i], err);
    if (!status)
        status = find_ideas(o, false, &path, err);
    if (!status)
        status = mgl_ptx_ideas_read(path.bytes, &ideas, err);
    if (!status)
        status = mgl_ptx_combine(f.sources, f.count, &ideas,
                                 o->arch.given ? o->arch.value : f.condensed[0].target, border,
                                 &text, err);
    if (!status && o->json.given) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.ptx_combine/1");
        mgl_json_out_text(&out, "prompt", text.bytes, text.length);
        mgl_cli_end_json(&out);
    } else if (!status) {
        status = print_text(&text, err);
    }
    mgl_text_clear(&text);
    mgl_text_clear(&path);
    mgl_ptx_ideas_clear(&ideas);
    for (size_t i = 0; i < f.count; i++)
        mgl_ptx_condensed_clear(&f.condensed[i]);
    return status;
}

/* ---- scan ------------------------------------------------------------------------------------ */

static void tell_finding(const mgl_ptx_finding *found, const char *path, bool json)
{
    bool good = found->outcome == MGL_OUTCOME_OK;
    if (json) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.ptx_scan/1");
        mgl_ptx_finding_put(found, &out);
        mgl_cli_end_json(&out);
    } else if (good) {
        mgl_cli_printf("OK\n");
    } else {
        mgl_cli_printf("%s at %s:%d: %s: %s\n", mgl_outcome_name(found->outcome), path, found->line,
                       found->what, found->why);
    }
}

static mgl_status scan(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_ptx candidate = {0}, incumbent = {0};
    mgl_ptx_finding found;
    mgl_status status = read_module(operand, &candidate, err);
    if (!status && o->base.given)
        status = read_module(o->base.value, &incumbent, err);
    if (!status)
        status = mgl_ptx_scan(&candidate, o->base.given ? &incumbent : NULL, false, &found, err);
    if (!status) {
        tell_finding(&found, operand, o->json.given);
        mgl_cli_end_with(mgl_outcome_exit(found.outcome));
    }
    mgl_ptx_clear(&candidate);
    mgl_ptx_clear(&incumbent);
    return status;
}

/* ---- words of the verb ----------------------------------------------------------------------- */

/* X(word, summary, example) */
#define PTX_WORDS(X)                                                                               \
    X(condense, "prints a condensed form of a kernel", "new.ptx --json")                           \
    X(diff, "prints what one kernel does and the other does not", "new.ptx --base old.ptx")        \
    X(learn, "stores the differences as ideas, with the measured ratio",                           \
      "new.ptx --base old.ptx --op merge --device H100 --ratio 1.07")                              \
    X(combine, "prints a prompt for a better kernel, from condensed forms and ideas",              \
      "a.ptx --with b.ptx")                                                                        \
    X(scan, "reports what a kernel must not contain", "new.ptx --base old.ptx")

#define MGL_X(word, text, line)                                                                    \
    static const mgl_cli_verb word##_verb = {                                                      \
        .name = "kernel ptx " #word,                                                               \
        .operand = "FILE.ptx",                                                                     \
        .operand_is_file = true,                                                                   \
        .summary = text,                                                                           \
        .example = "  megalith kernel ptx " #word " " line,                                        \
        MGL_CLI_VERB_OPTIONS,                                                                      \
        .run = word,                                                                               \
    };
PTX_WORDS(MGL_X)
#undef MGL_X

static const mgl_cli_verb *const words[] = {
#define MGL_X(word, text, line) &word##_verb,
    PTX_WORDS(MGL_X)
#undef MGL_X
};

const mgl_cli_verb mgl_cli_kernel_ptx_verb = {
    .name = "kernel ptx",
    .summary = "condenses, compares and scans PTX of kernels, and learns from it",
    .example = "  megalith kernel ptx condense kernel.ptx",
    .words = words,
    .word_count = sizeof words / sizeof *words,
};
