/* megalith kernel record OP: adds the outcome of a change to the experiment log. */
#include "cli/kernel/loop.h"

#include "base/format.h"

#include <math.h>

#define RECORD_OPTIONS(X)                                                                          \
    X(text, idea, "--idea", "NAME", 0, 0, "the hypothesis: a transformation, or a word")           \
    X(text, outcome, "--outcome", "NAME", 0, 0, "OK, NO_GAIN, COMPILE_SYNTAX, ...")                \
    X(real, gain, "--gain", "PERCENT", -100, 100000, "measured gain (not measured)")               \
    X(int, calls, "--calls", "N", 0, 1000000000, "calls of a model")                               \
    X(int, tokens, "--tokens", "N", 0, INT64_C(1) << 50, "tokens of these calls")                  \
    X(text, experiment_log, "--log", "F.json", 0, 0,                                               \
      "the experiment log (experiment_log.json in --folder)")                                      \
    MGL_CLI_FOLDER_OPTION(X)
MGL_CLI_OPTIONS(RECORD_OPTIONS)

static mgl_status make_row(const char *op, const struct options *o, mgl_experiment_log_row *row,
                           mgl_error *err)
{
    *row = (mgl_experiment_log_row){.gain = o->gain.given ? o->gain.value / 100 : NAN,
                                    .calls = o->calls.value,
                                    .tokens = o->tokens.value};
    if (!o->idea.given || !o->outcome.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--idea or --outcome is missing; give both");
    if (!mgl_outcome_parse(o->outcome.value, &row->outcome))
        return mgl_fail(err, MGL_USAGE, "--outcome", "unknown outcome: '%.60s'", o->outcome.value);
    mgl_format_into(row->op, sizeof row->op, "%s", op);
    mgl_format_into(row->idea, sizeof row->idea, "%s", o->idea.value);
    row->kept = row->outcome == MGL_OUTCOME_OK;
    return MGL_OK;
}

static mgl_status record(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_experiment_log_row row;
    size_t number = 0;
    mgl_status status = make_row(operand, o, &row, err);
    if (!status)
        status =
            mgl_kernel_store_record(o->experiment_log.value, o->folder.value, &row, &number, err);
    if (!status)
        mgl_cli_printf("row %zu\n", number);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_record_verb = {
    .name = "kernel record",
    .operand = "OP",
    .summary = "adds the outcome of a change to the experiment log: one change, one hypothesis",
    .example = "  megalith kernel record merge --idea split_k --outcome OK --gain 3.1 --calls 4",
    MGL_CLI_VERB_OPTIONS,
    .run = record,
};
